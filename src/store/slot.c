/* How a lost reply is resolved: by writing, not by reading.
 *
 * A commit that may lose its reply carries a slot: the plan guards the slot's row as
 * its last commit left it and writes the next version of it.  When the reply is lost,
 * the same version is written as `aborted` under the same guard.  One of the two
 * succeeds, for ever: if ours does, the original can never apply; if it does not, the
 * row tells which version it has, and whose.
 *
 * The version is the slot's number: each commit raises it by one, and a row that is made
 * anew begins elsewhere.  So an ordinary commit changes no column of the row, and a driver
 * can check and write it in one step.
 */
#include <stdlib.h>

#include "store/txn_impl.h"

/* The rank that lets unused slots be found is moved at most this often. */
#define TOUCH_MS ((int64_t)10 * 60 * 1000)

#define RESOLVE_TRIES 10
#define RESOLVE_FIRST_PAUSE_US 1000

/* --- the pool of a space --- */

static belay_rc slot_ref(struct txn *t, const struct slot *s, struct row_ref *out)
{
    struct value key = value_str(s->owner);

    return row_ref_make(out, &row_slot, &key, t->arena, &t->err);
}

static struct slot *slot_reuse(struct space *sp)
{
    pthread_mutex_lock(&sp->mutex);
    struct slot *s = sp->free_slots;
    if (s)
        sp->free_slots = s->next;
    pthread_mutex_unlock(&sp->mutex);
    return s;
}

/* Whether the body itself works on the slot's row: a prune that found ours.  The plan
 * cannot hold two effects of one row, so such a slot is given up. */
static bool is_in_body(struct txn *t, const struct slot *s)
{
    struct row_ref ref;

    return t->rows.n > 0 && (slot_ref(t, s, &ref) || txn_find_row(t, &ref));
}

static void slot_give_back(struct space *sp, struct slot *s)
{
    pthread_mutex_lock(&sp->mutex);
    s->next = sp->free_slots;
    sp->free_slots = s;
    pthread_mutex_unlock(&sp->mutex);
}

/* --- the slot's part of a plan --- */

/* Adds a guard on the row as it was and the write of the next version.  Needs room for
 * SLOT_GUARDS and SLOT_EFFECTS. */
static belay_rc add_slot(struct txn *t, const struct slot *s, bool aborted,
                         int64_t now_ms, struct plan *plan)
{
    struct row_ref ref;
    struct value *v = arena_zalloc(t->arena, SLOT_COLUMNS, sizeof(*v));
    if (!v)
        return txn_no_memory(t);
    belay_rc rc = slot_ref(t, s, &ref);
    if (rc)
        return rc;

    bool touch = now_ms - s->touched_at_ms >= TOUCH_MS;
    v[SLOT_OWNER] = value_str(s->owner);
    v[SLOT_N] = value_i64(0);
    v[SLOT_ABORTED] = value_i64(aborted);
    v[SLOT_TOUCHED_AT_MS] = value_i64(touch ? now_ms : s->touched_at_ms);
    plan->guards[plan->n_guards++] = (struct guard){ .ref = ref, .ver = s->ver };
    plan->effects[plan->n_effects++] = (struct effect){
        .kind = EFFECT_PUT,
        .row = { .ref = ref,
                 .ver = s->ver + 1,
                 .v = v,
                 .changed = (1U << SLOT_ABORTED) | (1U << SLOT_TOUCHED_AT_MS),
                 .same = (touch ? 0U : 1U << SLOT_TOUCHED_AT_MS) |
                         (s->aborted == aborted ? 1U << SLOT_ABORTED : 0U) },
    };
    if (touch)
        plan->effects[plan->n_effects++] = (struct effect){
            .kind = EFFECT_RANK_MOVE,
            .rank = { .index = bytes_str(SLOT_INDEX),
                      .member = v[SLOT_OWNER].b,
                      .old_rank = s->touched_at_ms,
                      .rank = now_ms },
        };
    return BELAY_OK;
}

/* --- new slots --- */

/* Writes the row of a new slot, in a commit of its own.  Work never rides on the absence
 * of a slot's row: once the row was pruned, "applied, then pruned" would look like "never
 * applied". */
static belay_rc slot_write_row(struct txn *t, struct slot *s, int64_t now_ms)
{
    struct value v[SLOT_COLUMNS] = { [SLOT_OWNER] = value_str(s->owner),
                                     [SLOT_N] = value_i64(0),
                                     [SLOT_ABORTED] = value_i64(0),
                                     [SLOT_TOUCHED_AT_MS] = value_i64(now_ms) };
    struct guard guard = { .ver = 0 };
    struct effect effects[SLOT_EFFECTS] = {
        { .kind = EFFECT_INSERT,
          .row = { .ver = (int64_t)(rng_next(&t->store->rng) >> 16) + 1, .v = v } },
        { .kind = EFFECT_RANK_ADD,
          .rank = { .index = bytes_str(SLOT_INDEX),
                    .member = v[SLOT_OWNER].b,
                    .rank = now_ms } },
    };
    struct effect_result results[SLOT_EFFECTS] = { { .known = false } };
    struct plan plan = { .id = t->id,
                         .ns = t->space->name,
                         .guards = &guard,
                         .n_guards = 1,
                         .effects = effects,
                         .n_effects = SLOT_EFFECTS };
    struct plan_result result = { .effects = results };
    void *attempt = arena_zalloc(t->arena, 1, t->driver->attempt_size);

    if (!attempt)
        return txn_no_memory(t);
    belay_rc rc = slot_ref(t, s, &guard.ref);
    effects[0].row.ref = guard.ref;
    if (!rc)
        rc = driver_begin(t->driver, attempt, t->space->name, &t->err);
    if (rc)
        return rc;
    rc = driver_commit(t->driver, attempt, &plan, &result, &t->err);
    driver_end(t->driver, attempt);
    if (!rc && result.conflict) /* somebody has our minted id: as good as lost */
        rc = err_set(&t->err, BELAY_UNKNOWN_OUTCOME, "its slot is another's");
    s->ver = effects[0].row.ver;
    s->touched_at_ms = now_ms;
    return rc;
}

/* A new slot.  If the reply to its row is lost, the row is left to be pruned and another
 * id is tried: nothing depends on it yet. */
static belay_rc slot_make(struct txn *t, int64_t now_ms, struct slot **out)
{
    struct store *store = t->space->store;
    struct slot *s = calloc(1, sizeof(*s));
    belay_rc rc = BELAY_UNKNOWN_OUTCOME;

    if (!s)
        return txn_no_memory(t);
    for (int i = 0; i < RESOLVE_TRIES && rc == BELAY_UNKNOWN_OUTCOME; i++) {
        rc = id_mint_next(&store->mint, "slt_", now_ms, &store->options.random,
                          s->owner, &t->err);
        if (!rc)
            rc = slot_write_row(t, s, now_ms);
    }
    if (!rc) {
        *out = s;
        return BELAY_OK;
    }
    free(s);
    if (rc == BELAY_UNKNOWN_OUTCOME) { /* of the slot's row; the work was never sent */
        const struct belay_error why = t->err;
        rc = err_set(&t->err, BELAY_UNAVAILABLE,
                     "commit: the store does not answer: %s", why.message);
    }
    return txn_broken(t, rc);
}

static belay_rc slot_take(struct txn *t, int64_t now_ms, struct slot **out)
{
    struct slot *s = slot_reuse(t->space);

    while (s && is_in_body(t, s)) {
        free(s);
        s = slot_reuse(t->space);
    }
    if (!s)
        return slot_make(t, now_ms, out);
    *out = s;
    return BELAY_OK;
}

/* --- resolving --- */

/* What became of a commit whose reply was lost. */
enum fate { APPLIED, NOT_APPLIED, NOT_KNOWN };

/* Takes over what the slot's row says. */
static void slot_adopt(struct slot *s, const struct row *row)
{
    s->ver = row->ver;
    s->touched_at_ms = row_i64(row, SLOT_TOUCHED_AT_MS, 0);
    s->aborted = row_i64(row, SLOT_ABORTED, 0) != 0;
}

/* Writes the next version as aborted, in an attempt of its own. */
static belay_rc write_aborted(struct txn *t, void *attempt, const struct slot *s,
                              int64_t now_ms)
{
    struct guard guards[SLOT_GUARDS];
    struct effect effects[SLOT_EFFECTS] = { { .kind = EFFECT_PUT } };
    struct effect_result results[SLOT_EFFECTS] = { { .known = false } };
    struct plan plan = { .id = t->id, .ns = t->space->name };
    struct plan_result result = { .effects = results };

    plan.guards = guards;
    plan.effects = effects;
    belay_rc rc = add_slot(t, s, true, now_ms, &plan);
    return rc ? rc : driver_commit(t->driver, attempt, &plan, &result, &t->err);
}

/* One look at the row and, if the version is not there yet, one write.  True: *out is
 * the verdict. */
static bool resolve_once(struct txn *t, struct slot *s, int64_t now_ms, enum fate *out)
{
    struct read q = { .kind = READ_ROW };
    void *attempt = arena_zalloc(t->arena, 1, t->driver->attempt_size);
    bool known = false;

    if (!attempt || slot_ref(t, s, &q.row.ref) ||
        driver_begin(t->driver, attempt, t->space->name, &t->err))
        return false;
    if (driver_read(t->driver, attempt, &q, 1, t->arena, &t->err))
        goto out;

    const struct row *row = q.row.out;
    if (row && row->ver == s->ver + 1) {
        *out = row_i64(row, SLOT_ABORTED, 0) ? NOT_APPLIED : APPLIED;
        slot_adopt(s, row);
        known = true;
    } else if (row) {
        /* Whatever becomes of this write, the next look tells: it may be lost, too. */
        (void)write_aborted(t, attempt, s, now_ms);
    } else {
        *out = NOT_KNOWN; /* pruned: an hour has passed since it was used */
        known = true;
    }
out:
    driver_end(t->driver, attempt);
    return known;
}

static enum fate resolve(struct txn *t, struct slot *s, int64_t now_ms)
{
    const struct belay_clock *clock = &t->store->options.clock;
    enum fate verdict = NOT_KNOWN;
    int64_t pause_us = RESOLVE_FIRST_PAUSE_US;

    for (int i = 0; i < RESOLVE_TRIES; i++) {
        if (resolve_once(t, s, now_ms, &verdict))
            return verdict;
        if (i > 0) { /* the look after the first write follows at once */
            clock->sleep_us(clock->arg, pause_us);
            pause_us *= 2;
        }
    }
    return NOT_KNOWN;
}

/* --- committing --- */

/* The slot after a commit whose reply arrived; `own` is its row's effect in the plan.
 */
static void advance(struct slot *s, const struct effect *own)
{
    s->ver = own->row.ver;
    s->touched_at_ms = own->row.v[SLOT_TOUCHED_AT_MS].i;
    s->aborted = false;
}

/* A lost reply: finds out, and says whether the slot can be used again. */
static enum verdict resolved(struct txn *t, struct slot *s, int64_t now_ms,
                             bool *reusable)
{
    enum fate fate = resolve(t, s, now_ms);

    for (size_t i = 0; i < t->plan.n_effects; i++)
        t->result.effects[i].known = false;
    t->rc = BELAY_OK;
    if (fate == NOT_KNOWN) {
        *reusable = false;
        txn_post_topics(t);
        t->rc = err_set(&t->err, BELAY_UNKNOWN_OUTCOME,
                        "commit: its reply was lost and could not be found out");
    }
    return fate == NOT_APPLIED ? CONFLICT : DONE;
}

enum verdict slot_commit(struct txn *t)
{
    struct slot *s = NULL;
    int64_t now_ms = 0;
    struct plan plan = t->plan; /* with the slot's guard and effects behind its own */
    enum verdict verdict = DONE;
    bool reusable = true;

    t->rc = txn_now(t, &now_ms);
    if (!t->rc)
        t->rc = slot_take(t, now_ms, &s);
    if (t->rc)
        return DONE;
    t->rc = add_slot(t, s, false, now_ms, &plan);
    if (!t->rc)
        t->rc = driver_commit(t->driver, t->attempt, &plan, &t->result, &t->err);

    if (t->rc == BELAY_UNKNOWN_OUTCOME) {
        verdict = resolved(t, s, now_ms, &reusable);
    } else if (!t->rc && t->result.conflict) {
        verdict = CONFLICT;
        reusable = t->result.failed_guard != t->plan.n_guards; /* not the slot's own */
    } else if (!t->rc) {
        advance(s, &plan.effects[t->plan.n_effects]);
    }
    if (reusable)
        slot_give_back(t->space, s);
    else
        free(s);
    return verdict;
}

/* --- pruning --- */

struct prune {
    int64_t before_ms;
    size_t limit;
    size_t n;
};

static belay_rc prune_body(struct txn *t, void *arg)
{
    struct prune *p = arg;
    struct bytes index = bytes_str(SLOT_INDEX);
    struct fetch fetch = { .type = &row_slot };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = p->before_ms > 0 ? p->before_ms - 1 : -1,
                         .limit = p->limit,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits = { .n = 0 };
    belay_rc rc = txn_scan(t, &scan, &hits);

    p->n = 0;
    for (size_t i = 0; i < hits.n && !rc; i++) {
        struct value key = value_text(hits.hit[i].member);
        rc = txn_rank_remove(t, index, hits.hit[i].rank, hits.hit[i].member);
        if (!rc && hits.hit[i].rows[0])
            rc = txn_delete(t, &row_slot, &key);
        p->n++;
    }
    return rc;
}

belay_rc space_prune_slots(struct space *sp, int64_t before_ms, size_t limit,
                           size_t *out_pruned, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct prune p = { .before_ms = before_ms, .limit = limit };
    belay_rc rc = txn_run(sp, prune_body, &p, NULL, &arena, err);

    if (!rc)
        *out_pruned = p.n;
    return rc;
}
