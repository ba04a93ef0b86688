/* What a plan has besides rows and ranks: counters, then logs, feeds and chunks in the
 * plan's order.  A statement that finds something else than it should raises a refusal;
 * which one it was is found out afterwards (refusal.c). */
#include <stdio.h>

#include "store/drivers/postgres/impl.h"
#include "store/refuse.h"

struct rest {
    struct pg_store *s;
    struct pg_pipe *p;
    const struct plan *plan;
    bool together; /* log entries: nothing is trimmed, so they are looked at as they are
                      written, in any order */
};

static struct pg_call *add_text(const struct rest *r, struct buf *text, unsigned args)
{
    return pg_add(r->p, pg_sql_of(r->s, text), args);
}

/* --- logs --- */

/* How many effects of a kind there are; *only is one of them. */
static size_t count_kind(const struct rest *r, enum effect_kind kind,
                         const struct effect **only)
{
    size_t n = 0;

    for (size_t i = 0; i < r->plan->n_effects; i++) {
        if (r->plan->effects[i].kind == kind) {
            *only = &r->plan->effects[i];
            n++;
        }
    }
    return n;
}

static void add_refusal(const struct rest *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_printf(&text, "SELECT \"%s\".belay1_refuse(true)", r->s->schema);
    (void)add_text(r, &text, 0);
}

/* Whether each entry is the next one of its stream, before anything is trimmed. */
static void add_log_checks(const struct rest *r)
{
    for (size_t i = 0; i < r->plan->n_effects && !r->together; i++) {
        CLEANUP(buf_release) struct buf text = { .ptr = NULL };
        const struct effect *e = &r->plan->effects[i];
        int64_t tail = 0;

        if (e->kind != EFFECT_LOG_APPEND)
            continue;
        if (!log_needs_tail(r->plan, i, &tail)) {
            if (refuse_log(e, tail, NULL))
                add_refusal(r);
            continue;
        }
        buf_printf(&text, "SELECT \"%s\".belay1_refuse((SELECT max(seq) FROM ",
                   r->s->schema);
        pg_table(r->s, "log", &text);
        buf_append_str(&text, " WHERE ns = $1 AND stream = $2) <> $3::int8)");
        struct pg_call *c = add_text(r, &text, 3);
        pg_arg_bytes(r->p, c, r->plan->ns);
        pg_arg_bytes(r->p, c, e->log.stream);
        pg_arg_i64(r->p, c, e->log.seq - 1);
    }
}

/* The entry, and whether it is the next one of its stream: what the statement looks at is
 * from before it. */
static void add_one_entry(const struct rest *r, const struct effect *e)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, "WITH a AS (INSERT INTO ");
    pg_table(r->s, "log", &text);
    buf_printf(&text,
               " (ns, stream, seq, data) VALUES ($1, $2, $3, $4)) SELECT"
               " \"%s\".belay1_refuse((SELECT max(seq) FROM ",
               r->s->schema);
    pg_table(r->s, "log", &text);
    buf_append_str(&text, " WHERE ns = $1 AND stream = $2) <> $3::int8 - 1)");
    struct pg_call *c = add_text(r, &text, 4);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_bytes(r->p, c, e->log.stream);
    pg_arg_i64(r->p, c, e->log.seq);
    pg_arg_bytes(r->p, c, e->log.data);
}

/* Streams, numbers and data of the entries among effects first..end - 1, in three rows of
 * `most` values. */
static size_t entry_values(const struct rest *r, size_t first, size_t end,
                           struct value *v, size_t most)
{
    size_t n = 0;

    for (size_t i = first; i < end; i++) {
        const struct effect *e = &r->plan->effects[i];
        if (e->kind != EFFECT_LOG_APPEND)
            continue;
        v[n] = value_text(e->log.stream);
        v[most + n] = value_i64(e->log.seq);
        v[2 * most + n] = value_bytes(e->log.data);
        n++;
    }
    return n;
}

static void entries_into(const struct rest *r, struct buf *text)
{
    buf_append_str(text, "INSERT INTO ");
    pg_table(r->s, "log", text);
    buf_append_str(text, " (ns, stream, seq, data) SELECT $1, u.* FROM"
                         " unnest($2::text[], $3::int8[], $4::bytea[]) AS u");
}

static struct pg_call *add_entries(const struct rest *r, struct buf *text,
                                   const struct value *v, size_t most, size_t n)
{
    struct pg_call *c = add_text(r, text, 6);

    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_array(r->p, c, VALUE_TEXT, v, n);
    pg_arg_array(r->p, c, VALUE_I64, v + most, n);
    pg_arg_array(r->p, c, VALUE_BYTES, v + 2 * most, n);
    return c;
}

/* A run of appends from effect `first` on, in one statement; returns its end. */
static size_t add_log_appends(const struct rest *r, size_t first)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t end = first;

    while (end < r->plan->n_effects && r->plan->effects[end].kind == EFFECT_LOG_APPEND)
        end++;
    size_t n = end - first;
    struct value *v = arena_zalloc(r->p->arena, 3 * n, sizeof(*v));
    if (!v) {
        r->p->no_memory = true;
        return end;
    }
    (void)entry_values(r, first, end, v, n);
    entries_into(r, &text);
    (void)add_entries(r, &text, v, n, n);
    return end;
}

/* Where the plan's entries begin in each stream. */
static size_t first_entries(const struct rest *r, struct value *v, size_t most)
{
    size_t n = 0;

    for (size_t i = 0; i < r->plan->n_effects; i++) {
        const struct effect *e = &r->plan->effects[i];
        int64_t tail = 0;

        if (e->kind != EFFECT_LOG_APPEND)
            continue;
        if (log_needs_tail(r->plan, i, &tail)) {
            v[n] = value_text(e->log.stream);
            v[most + n++] = value_i64(e->log.seq - 1);
        } else if (refuse_log(e, tail, NULL)) {
            add_refusal(r);
        }
    }
    return n;
}

/* All entries of all streams, and whether each is the next one of its stream: what the
 * statement looks at is from before it. */
static void add_all_entries(const struct rest *r)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    size_t most = r->plan->n_effects;
    struct value *v = arena_zalloc(r->p->arena, 5 * most, sizeof(*v));

    if (!v) {
        r->p->no_memory = true;
        return;
    }
    size_t n = entry_values(r, 0, most, v, most);
    size_t n_streams = first_entries(r, v + 3 * most, most);
    buf_append_str(&text, "WITH a AS (");
    entries_into(r, &text);
    buf_printf(&text,
               ") SELECT \"%s\".belay1_refuse(EXISTS (SELECT FROM unnest($5::text[],"
               " $6::int8[]) AS k(stream, tail) WHERE (SELECT max(l.seq) FROM ",
               r->s->schema);
    pg_table(r->s, "log", &text);
    buf_append_str(&text, " l WHERE l.ns = $1 AND l.stream = k.stream) <> k.tail))");
    struct pg_call *c = add_entries(r, &text, v, most, n);
    pg_arg_array(r->p, c, VALUE_TEXT, v + 3 * most, n_streams);
    pg_arg_array(r->p, c, VALUE_I64, v + 4 * most, n_streams);
}

static void add_log_trim(const struct rest *r, const struct effect *e)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, "DELETE FROM ");
    pg_table(r->s, "log", &text);
    buf_append_str(&text, " WHERE ns = $1 AND stream = $2 AND seq <= $3");
    struct pg_call *c = add_text(r, &text, 3);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_bytes(r->p, c, e->log.stream);
    pg_arg_i64(r->p, c, e->log.seq);
}

/* --- counters --- */

/* $1 ns, key..., then amount and, for an addition, the bounds. */
static struct pg_call *add_counter(const struct rest *r, const struct effect *e)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct row_type *type = e->counter.ref.type;
    const char *column = type->columns[e->counter.column].name;
    unsigned next = 2U + type->n_key;

    buf_append_str(&text, "WITH u AS (UPDATE ");
    pg_table(r->s, type->name, &text);
    if (e->kind == EFFECT_ADD)
        buf_printf(&text, " SET \"%s\" = coalesce(\"%s\", 0) + $%u::int8", column,
                   column, next);
    else
        buf_printf(&text, " SET \"%s\" = greatest(coalesce(\"%s\", 0), $%u::int8)",
                   column, column, next);
    buf_append_str(&text, " WHERE ");
    pg_where_key(type, 2, &text);
    if (e->kind == EFFECT_ADD)
        buf_printf(&text,
                   " AND coalesce(\"%s\", 0)::numeric + $%u::int8::numeric BETWEEN"
                   " $%u::int8 AND $%u::int8",
                   column, next, next + 1, next + 2);
    buf_printf(&text,
               " RETURNING \"%s\" AS c) SELECT (SELECT c FROM u),"
               " \"%s\".belay1_refuse(NOT EXISTS (SELECT FROM u))",
               column, r->s->schema);
    struct pg_call *c = add_text(r, &text, next + 2);
    pg_arg_key(r->p, c, r->plan->ns, &e->counter.ref);
    pg_arg_i64(r->p, c, e->counter.amount);
    if (e->kind == EFFECT_ADD) {
        pg_arg_i64(r->p, c, e->counter.min);
        pg_arg_i64(r->p, c, e->counter.max);
    }
    return c;
}

/* --- feeds and chunks --- */

static struct pg_call *add_feed_append(const struct rest *r, const struct effect *e,
                                       size_t n)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, "INSERT INTO ");
    pg_table(r->s, "feed", &text);
    buf_append_str(&text, " (ns, feed, epoch, xid, n, data) VALUES ($1, $2, ");
    if (r->s->epoch) {
        buf_append_str(&text, "coalesce((SELECT epoch FROM ");
        pg_table(r->s, r->s->epoch->name, &text);
        buf_append_str(&text, " WHERE ns = $1), 0)");
    } else {
        buf_append_str(&text, "0");
    }
    buf_append_str(&text, ", pg_current_xact_id()::text::int8, $3, $4)"
                          " RETURNING epoch, xid, n");
    struct pg_call *c = add_text(r, &text, 4);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_bytes(r->p, c, e->feed.feed);
    pg_arg_i64(r->p, c, (int64_t)n + 1);
    pg_arg_bytes(r->p, c, e->feed.data);
    return c;
}

static void add_feed_trim(const struct rest *r, const struct effect *e)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, "WITH d AS (DELETE FROM ");
    pg_table(r->s, "feed", &text);
    buf_append_str(&text,
                   " WHERE ns = $1 AND feed = $2 AND (epoch, xid, n) <= ($3::int8,"
                   " $4::int8, $5::int8) RETURNING epoch, xid, n) INSERT INTO ");
    pg_table(r->s, "feed_head", &text);
    buf_append_str(&text,
                   " AS h (ns, feed, epoch, xid, n) SELECT $1, $2, d.* FROM d"
                   " ORDER BY d.epoch DESC, d.xid DESC, d.n DESC LIMIT 1"
                   " ON CONFLICT (ns, feed) DO UPDATE SET epoch = excluded.epoch,"
                   " xid = excluded.xid, n = excluded.n WHERE (h.epoch, h.xid,"
                   " h.n) < (excluded.epoch, excluded.xid, excluded.n)");
    struct pg_call *c = add_text(r, &text, 5);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_bytes(r->p, c, e->feed.feed);
    pg_arg_i64(r->p, c, e->feed.upto.epoch);
    pg_arg_i64(r->p, c, e->feed.upto.major);
    pg_arg_i64(r->p, c, e->feed.upto.minor);
}

static void add_chunk(const struct rest *r, const struct effect *e)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    bool put = e->kind == EFFECT_CHUNK_PUT;

    buf_append_str(&text, put ? "INSERT INTO " : "DELETE FROM ");
    pg_table(r->s, "chunk", &text);
    buf_append_str(&text, put ? " (ns, upload, no, data) VALUES ($1, $2, $3, $4) ON"
                                " CONFLICT (ns, upload, no) DO UPDATE SET data ="
                                " excluded.data"
                              : " WHERE ns = $1 AND upload = $2 AND no = $3");
    struct pg_call *c = add_text(r, &text, 4);
    pg_arg_bytes(r->p, c, r->plan->ns);
    pg_arg_bytes(r->p, c, e->chunk.upload);
    pg_arg_i64(r->p, c, e->chunk.index);
    if (put)
        pg_arg_bytes(r->p, c, e->chunk.data);
}

/* --- all of it --- */

/* Rule 4: in the plan's order. */
static void add_ordered(const struct rest *r, struct pg_call **calls)
{
    for (size_t i = 0; i < r->plan->n_effects; i++) {
        const struct effect *e = &r->plan->effects[i];

        switch (e->kind) {
        case EFFECT_LOG_APPEND:
            if (!r->together)
                i = add_log_appends(r, i) - 1;
            break;
        case EFFECT_LOG_TRIM:
            add_log_trim(r, e);
            break;
        case EFFECT_FEED_APPEND:
            calls[i] = add_feed_append(r, e, i);
            break;
        case EFFECT_FEED_TRIM:
            add_feed_trim(r, e);
            break;
        case EFFECT_CHUNK_PUT:
        case EFFECT_CHUNK_DROP:
            add_chunk(r, e);
            break;
        case EFFECT_INSERT:
        case EFFECT_PUT:
        case EFFECT_DELETE:
        case EFFECT_ADD:
        case EFFECT_RAISE:
        case EFFECT_RANK_ADD:
        case EFFECT_RANK_MOVE:
        case EFFECT_RANK_REMOVE:
            break;
        }
    }
}

belay_rc pg_add_rest(struct pg_store *s, struct pg_pipe *p, const struct plan *plan,
                     struct pg_call **calls, struct belay_error *err)
{
    struct rest r = { .s = s, .p = p, .plan = plan };
    const struct effect *any = NULL;

    r.together = count_kind(&r, EFFECT_LOG_TRIM, &any) == 0;
    add_log_checks(&r);
    size_t n_entries = count_kind(&r, EFFECT_LOG_APPEND, &any);
    if (r.together && n_entries == 1)
        add_one_entry(&r, any);
    else if (r.together && n_entries > 1)
        add_all_entries(&r);
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (is_counter_effect(&plan->effects[i]))
            calls[i] = add_counter(&r, &plan->effects[i]);
    }
    add_ordered(&r, calls);
    return p->no_memory ? err_no_memory(err, "a commit") : BELAY_OK;
}
