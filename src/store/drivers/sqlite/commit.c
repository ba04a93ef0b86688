/* Checking and applying a plan, inside the write transaction.
 *
 * What may well be refused is checked before the first write, so that a refusal (a
 * counter out of its bounds, say) costs its own caller the answer and nobody else
 * anything.  What fails in applying is the disk, a bug, or damage: then the group is taken
 * back, and each member alone is checked for everything. */
#include <string.h>

#include "store/drivers/sqlite/impl.h"
#include "store/refuse.h"

/* Steps a statement for at most one row and one number; *found tells whether there was
 * one.  Resets it. */
static belay_rc one_number(struct conn *c, sqlite3_stmt *st, const char *what,
                           bool *found, int64_t *out, struct belay_error *err)
{
    int step = sqlite3_step(st);

    *found = step == SQLITE_ROW;
    if (*found)
        *out = sqlite3_column_int64(st, 0);
    belay_rc rc =
        step == SQLITE_ROW || step == SQLITE_DONE ? BELAY_OK : conn_error(c, what, err);
    (void)sqlite3_reset(st);
    return rc;
}

static belay_rc unprepared(const struct belay_error *err)
{
    return err->code ? (belay_rc)err->code : BELAY_NO_MEMORY;
}

/* --- check --- */

static belay_rc check_guard(struct conn *c, struct bytes ns, const struct guard *g,
                            bool *holds, struct belay_error *err)
{
    sqlite3_stmt *st = conn_type(c, g->ref.type, TYPE_VER, err);
    int64_t ver = 0;
    bool found = false;

    if (!st)
        return unprepared(err);
    (void)bind_key(st, 1, ns, &g->ref);
    belay_rc rc = one_number(c, st, "check a guard", &found, &ver, err);
    *holds = (found ? ver : 0) == g->ver;
    return rc;
}

static belay_rc check_rank(struct conn *c, struct bytes ns, const struct effect *e,
                           struct belay_error *err)
{
    sqlite3_stmt *st = conn_plain(c, SQL_RANK_AT, err);
    int64_t rank = 0;
    bool found = false;

    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, e->rank.index);
    bind_text(st, 3, e->rank.member);
    belay_rc rc = one_number(c, st, "check a rank", &found, &rank, err);
    return rc ? rc : refuse_rank(e, found ? &rank : NULL, err);
}

static belay_rc check_log(struct conn *c, const struct plan *plan, size_t i,
                          struct belay_error *err)
{
    const struct effect *e = &plan->effects[i];
    int64_t tail = 0;
    bool found = false;

    if (log_needs_tail(plan, i, &tail)) {
        sqlite3_stmt *st = conn_plain(c, SQL_LOG_LAST, err);
        if (!st)
            return unprepared(err);
        bind_text(st, 1, plan->ns);
        bind_text(st, 2, e->log.stream);
        belay_rc rc = one_number(c, st, "check a log", &found, &tail, err);
        if (rc)
            return rc;
    }
    return refuse_log(e, tail, err);
}

/* The stored value of the counter that effect i changes. */
static belay_rc stored_counter(struct conn *c, struct bytes ns, const struct effect *e,
                               bool *found, int64_t *out, struct belay_error *err)
{
    sqlite3_stmt *st = conn_type(c, e->counter.ref.type, TYPE_GET, err);

    if (!st)
        return unprepared(err);
    (void)bind_key(st, 1, ns, &e->counter.ref);
    int step = sqlite3_step(st);
    *found = step == SQLITE_ROW;
    *out = *found ? sqlite3_column_int64(st, (int)e->counter.column + 1) : 0;
    belay_rc rc = step == SQLITE_ROW || step == SQLITE_DONE
                      ? BELAY_OK
                      : conn_error(c, "read a counter", err);
    (void)sqlite3_reset(st);
    return rc;
}

static belay_rc check_counters(struct conn *c, const struct plan *plan,
                               struct plan_result *result, struct belay_error *err)
{
    belay_rc range = BELAY_OK;

    /* not_found anywhere goes before out_of_range anywhere (rule 3). */
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        int64_t stored = 0, old = 0;
        bool found = false;
        if (!is_counter_effect(e))
            continue;
        belay_rc rc = stored_counter(c, plan->ns, e, &found, &stored, err);
        if (!rc)
            rc = refuse_counter(plan, result, i, found ? &stored : NULL, &old, err);
        if (rc)
            return rc;
        if (!range)
            range = counter_add(e, old, &result->effects[i].value, err);
    }
    return range;
}

/* Counters may be refused, and that must not go before what is wrong with a rank or a log
 * (rule 3); trims hide what a log was before. */
static bool effects_tell(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        if (is_counter_effect(e) || e->kind == EFFECT_LOG_TRIM)
            return false;
    }
    return true;
}

belay_rc plan_check(struct conn *c, const struct plan *plan, enum trust trust,
                    struct plan_result *result, struct belay_error *err)
{
    bool counters = false;

    if (trust == TRUST_EFFECTS && !effects_tell(plan))
        trust = TRUST_READS;
    for (size_t i = 0; i < plan->n_guards; i++) {
        const struct guard *g = &plan->guards[i];
        bool holds = (trust >= TRUST_READS && g->read) ||
                     (trust == TRUST_EFFECTS && g->inserted);
        if (holds)
            continue;
        belay_rc rc = check_guard(c, plan->ns, g, &holds, err);
        if (rc)
            return rc;
        if (!holds) {
            result->conflict = true;
            result->failed_guard = i;
            return BELAY_OK;
        }
    }
    for (size_t i = 0; i < plan->n_effects && trust < TRUST_EFFECTS; i++) {
        const struct effect *e = &plan->effects[i];
        belay_rc rc = BELAY_OK;
        if (e->kind >= EFFECT_RANK_ADD && e->kind <= EFFECT_RANK_REMOVE)
            rc = check_rank(c, plan->ns, e, err);
        else if (e->kind == EFFECT_LOG_APPEND)
            rc = check_log(c, plan, i, err);
        else
            counters |= is_counter_effect(e);
        if (rc)
            return rc;
    }
    return counters ? check_counters(c, plan, result, err) : BELAY_OK;
}

/* --- apply --- */

static belay_rc apply_row(struct conn *c, struct bytes ns, const struct effect *e,
                          struct belay_error *err)
{
    const struct row_type *type = e->row.ref.type;
    sqlite3_stmt *st = NULL;

    if (e->kind == EFFECT_INSERT) {
        st = conn_type(c, type, TYPE_INSERT, err);
        if (!st)
            return unprepared(err);
        bind_text(st, 1, ns);
        (void)sqlite3_bind_int64(st, 2, e->row.ver);
        for (unsigned i = 0; i < type->n_columns; i++)
            bind_value(st, (int)i + 3, &e->row.v[i]);
    } else if (e->kind == EFFECT_PUT) {
        int at = 2;
        st = conn_put(c, type, e->row.changed, err);
        if (!st)
            return unprepared(err);
        (void)sqlite3_bind_int64(st, 1, e->row.ver);
        for (unsigned i = 0; i < type->n_columns; i++) {
            if ((e->row.changed >> i) & 1)
                bind_value(st, at++, &e->row.v[i]);
        }
        (void)bind_key(st, at, ns, &e->row.ref);
    } else {
        st = conn_type(c, type, TYPE_DELETE, err);
        if (!st)
            return unprepared(err);
        (void)bind_key(st, 1, ns, &e->row.ref);
    }
    return conn_run(c, st, "write a row", err);
}

static belay_rc apply_counter(struct conn *c, struct bytes ns, const struct effect *e,
                              struct effect_result *result, struct belay_error *err)
{
    sqlite3_stmt *st = conn_count(c, e->counter.ref.type, e->counter.column, err);

    if (!st)
        return unprepared(err);
    (void)sqlite3_bind_int64(st, 1, result->value);
    (void)bind_key(st, 2, ns, &e->counter.ref);
    result->known = true;
    return conn_run(c, st, "count", err);
}

/* Runs a statement that must change one row. */
static belay_rc run_one(struct conn *c, sqlite3_stmt *st, const char *what,
                        struct belay_error *err)
{
    belay_rc rc = conn_run(c, st, what, err);

    if (rc || sqlite3_changes(c->db) == 1)
        return rc;
    return err_set(err, BELAY_CORRUPT, "sqlite: %s: not as it should be", what);
}

static belay_rc run_rank(struct conn *c, struct bytes ns, enum plain_sql which,
                         const struct effect *e, int64_t rank, struct belay_error *err)
{
    sqlite3_stmt *st = conn_plain(c, which, err);

    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, e->rank.index);
    bind_text(st, 3, e->rank.member);
    (void)sqlite3_bind_int64(st, 4, rank);
    return run_one(c, st, "write a rank", err);
}

static belay_rc apply_rank(struct conn *c, struct bytes ns, const struct effect *e,
                           struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (e->kind != EFFECT_RANK_ADD)
        rc = run_rank(c, ns, SQL_RANK_REMOVE, e, e->rank.old_rank, err);
    if (!rc && e->kind != EFFECT_RANK_REMOVE)
        rc = run_rank(c, ns, SQL_RANK_ADD, e, e->rank.rank, err);
    return rc;
}

/* Statements of the form (ns, name, number, data). */
static belay_rc run_entry(struct conn *c, struct bytes ns, enum plain_sql which,
                          struct bytes name, int64_t number, const struct bytes *data,
                          struct belay_error *err)
{
    sqlite3_stmt *st = conn_plain(c, which, err);

    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, name);
    (void)sqlite3_bind_int64(st, 3, number);
    if (data)
        bind_bytes(st, 4, *data);
    return conn_run(c, st, "write an entry", err);
}

static belay_rc apply_feed(struct conn *c, struct bytes ns, const struct effect *e,
                           struct effect_result *result, struct belay_error *err)
{
    bool found = false;
    belay_rc rc;

    if (e->kind == EFFECT_FEED_TRIM) {
        rc = run_entry(c, ns, SQL_FEED_TRIM, e->feed.feed, e->feed.upto.major, NULL,
                       err);
        return rc ? rc
                  : run_entry(c, ns, SQL_FEED_TRIMMED, e->feed.feed, e->feed.upto.major,
                              NULL, err);
    }
    sqlite3_stmt *st = conn_plain(c, SQL_FEED_NEXT, err);
    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, e->feed.feed);
    rc = one_number(c, st, "count a feed on", &found, &result->pos.major, err);
    result->known = true;
    return rc ? rc
              : run_entry(c, ns, SQL_FEED_APPEND, e->feed.feed, result->pos.major,
                          &e->feed.data, err);
}

static belay_rc apply_one(struct conn *c, struct bytes ns, const struct effect *e,
                          struct effect_result *result, struct belay_error *err)
{
    switch (e->kind) {
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
        return apply_row(c, ns, e, err);
    case EFFECT_ADD:
    case EFFECT_RAISE:
        return apply_counter(c, ns, e, result, err);
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE:
        return apply_rank(c, ns, e, err);
    case EFFECT_LOG_APPEND:
        return run_entry(c, ns, SQL_LOG_APPEND, e->log.stream, e->log.seq, &e->log.data,
                         err);
    case EFFECT_LOG_TRIM:
        return run_entry(c, ns, SQL_LOG_TRIM, e->log.stream, e->log.seq, NULL, err);
    case EFFECT_FEED_APPEND:
    case EFFECT_FEED_TRIM:
        return apply_feed(c, ns, e, result, err);
    case EFFECT_CHUNK_PUT:
        return run_entry(c, ns, SQL_CHUNK_PUT, e->chunk.upload, e->chunk.index,
                         &e->chunk.data, err);
    case EFFECT_CHUNK_DROP:
        return run_entry(c, ns, SQL_CHUNK_DROP, e->chunk.upload, e->chunk.index, NULL,
                         err);
    }
    return err_set(err, BELAY_MISUSE, "commit: unknown kind of effect");
}

/* Counters are of rows that are not kept. */
static void remember(struct conn *c, struct bytes ns, const struct effect *e)
{
    if (e->kind == EFFECT_DELETE)
        rowcache_drop(c->rows, ns, &e->row.ref);
    else if (e->kind == EFFECT_INSERT || e->kind == EFFECT_PUT)
        rowcache_put(c->rows, ns, &e->row.ref, e->row.ver, e->row.v);
}

belay_rc plan_apply(struct conn *c, const struct plan *plan, struct plan_result *result,
                    struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    /* The plan's rows stand before its counters, so a row it inserts is there by then.
     */
    for (size_t i = 0; i < plan->n_effects && !rc; i++) {
        rc = apply_one(c, plan->ns, &plan->effects[i], &result->effects[i], err);
        if (!rc && c->rows)
            remember(c, plan->ns, &plan->effects[i]);
    }
    return rc;
}
