#include <string.h>

#include "store/txn_impl.h"

/* Counts what a plan will carry.  Every write passes here. */
static belay_rc charge(struct txn *t, size_t len)
{
    size_t n = t->n_written + t->ranks.n + t->n_ops;

    if (t->failed)
        return t->failed;
    if (t->options && t->options->read_only)
        return txn_misuse(t, "a read-only body writes");
    if (len > PLAN_BYTES_MAX - t->bytes || n >= PLAN_EFFECTS_MAX)
        return err_reason(&t->err, BELAY_INVALID, "too_large",
                          "transaction: more than %zu bytes or %d effects",
                          PLAN_BYTES_MAX, PLAN_EFFECTS_MAX);
    t->bytes += len;
    return BELAY_OK;
}

/* A body's memory may be gone at commit, so bytes are copied. */
static belay_rc keep(struct txn *t, struct bytes in, struct bytes *out)
{
    belay_rc rc = charge(t, in.len);
    if (rc)
        return rc;
    return arena_copy(t->arena, in, out) ? BELAY_OK : txn_no_memory(t);
}

/* --- rows --- */

static belay_rc keep_value(struct txn *t, const struct column *column,
                           const struct value *in, struct value *out)
{
    if (in->kind != VALUE_NULL && in->kind != column->type)
        return err_reason(&t->err, BELAY_INVALID, "kind",
                          "column %s: wrong kind of value", column->name);
    bool text = in->kind == VALUE_TEXT || in->kind == VALUE_JSON;
    if (text && in->b.len > 0 &&
        (memchr(in->b.ptr, 0, in->b.len) || !bytes_is_utf8(in->b)))
        return err_reason(&t->err, BELAY_INVALID, "utf8",
                          "column %s: must be UTF-8 text without U+0000", column->name);
    *out = *in;
    if (in->kind == VALUE_NULL || in->kind == VALUE_I64) {
        out->b = bytes_of(NULL, 0);
        return charge(t, sizeof(*in));
    }
    return keep(t, in->b, &out->b);
}

static void written(struct txn *t, struct txn_row *r, enum row_state state)
{
    t->n_written += r->state == ROW_KEPT;
    r->state = state;
}

/* A row of its own for the body to change, with the values of `from` (NULL: all NULL).
 */
static struct row *own_row(struct txn *t, const struct row_type *type,
                           const struct row *from, struct value **v)
{
    size_t len = type->n_columns * sizeof(**v);
    struct row *row = arena_alloc(t->arena, sizeof(*row) + len);

    if (!row)
        return NULL;
    *v = (struct value *)(row + 1);
    if (from)
        memcpy(*v, from->v, len);
    else
        memset(*v, 0, len);
    *row = (struct row){ .type = type, .ver = from ? from->ver : 0, .v = *v };
    return row;
}

/* Runs in which rows are inserted without looking, whatever went wrong before. */
#define RUNS_UNSEEN 3

/* Whether a row that is to be inserted is looked for before.  Where that is a round trip it
 * takes a reason: one that was thought to be new was there. */
static bool looks_first(const struct txn *t)
{
    bool is_far = (t->driver->caps & DRIVER_FAR) != 0;

    return t->doubtful || t->run > (is_far ? RUNS_UNSEEN : 1);
}

/* The remembered row of an insert.  An unread row is taken to be absent; if that turns out
 * wrong the body runs again and then it is read. */
static belay_rc absent_row(struct txn *t, const struct row_type *type,
                           const struct value *key, struct txn_row **out)
{
    struct row_ref ref;
    belay_rc rc = row_ref_make(&ref, type, key, t->arena, &t->err);
    if (rc)
        return rc;

    if (!txn_find_row(t, &ref) && looks_first(t)) {
        const struct row *row;
        rc = txn_get(t, type, key, &row);
        if (rc)
            return rc;
    }
    bool assumed = !txn_find_row(t, &ref);
    rc = txn_remember(t, &ref, NULL, out);
    if (rc)
        return rc;
    (*out)->assumed |= assumed;
    t->assumed |= assumed;
    if ((*out)->state == ROW_DELETED)
        return txn_misuse(t, "a row that was deleted in the same body is inserted");
    if ((*out)->cur) {
        rc = err_reason(&t->err, BELAY_WRONG_STATE, "exists",
                        "%s: the row exists already", type->name);
        err_entity(&t->err, bytes_str(type->name));
    }
    return rc;
}

belay_rc txn_insert(struct txn *t, const struct row_type *type, const struct value *v)
{
    struct txn_row *r;
    struct value *own;
    belay_rc rc = charge(t, 0);
    if (!rc)
        rc = absent_row(t, type, v, &r);
    if (rc)
        return rc;

    struct row *row = own_row(t, type, NULL, &own);
    if (!row)
        return txn_no_memory(t);
    for (unsigned i = 0; i < type->n_columns; i++) {
        rc = keep_value(t, &type->columns[i], &v[i], &own[i]);
        if (rc)
            return rc;
    }
    r->cur = txn_with_counters(t, &r->ref, row); /* T3: counted in before */
    r->initial = own;
    written(t, r, ROW_INSERTED);
    return r->cur ? BELAY_OK : txn_no_memory(t);
}

/* The remembered row that a put or delete is about: present, and guarded (T1). */
static belay_rc present_row(struct txn *t, const struct row_type *type,
                            const struct value *key, struct txn_row **out)
{
    struct row_ref ref;
    belay_rc rc = row_ref_make(&ref, type, key, t->arena, &t->err);
    if (rc)
        return rc;
    *out = txn_find_row(t, &ref);
    if (!*out || !(*out)->cur)
        return txn_misuse(t, "a row is written that the body has not read, or that is "
                             "not there");
    return BELAY_OK;
}

belay_rc txn_put(struct txn *t, const struct row_type *type, const struct value *key,
                 const struct change *changes, size_t n_changes)
{
    struct txn_row *r;
    struct value *own;
    belay_rc rc = charge(t, 0);
    if (!rc)
        rc = present_row(t, type, key, &r);
    if (rc)
        return rc;

    struct row *row = own_row(t, type, r->cur, &own);
    if (!row)
        return txn_no_memory(t);
    uint64_t changed = r->changed;
    for (size_t i = 0; i < n_changes; i++) {
        unsigned c = changes[i].column;
        if (c < type->n_key || c >= type->n_columns || type->columns[c].counter)
            return txn_misuse(t, "put of a key column, a counter or no column at all");
        rc = keep_value(t, &type->columns[c], &changes[i].value, &own[c]);
        if (rc)
            return rc;
        changed |= UINT64_C(1) << c;
    }
    r->cur = row;
    r->changed = changed;
    if (r->state == ROW_KEPT) {
        row->ver++;
        written(t, r, ROW_CHANGED);
    }
    return BELAY_OK;
}

belay_rc txn_delete(struct txn *t, const struct row_type *type, const struct value *key)
{
    struct txn_row *r;
    belay_rc rc = charge(t, 0);
    if (!rc)
        rc = present_row(t, type, key, &r);
    if (rc)
        return rc;
    for (struct txn_op *op = t->ops; op; op = op->next) {
        const struct effect *e = &op->effect;
        if ((e->kind == EFFECT_ADD || e->kind == EFFECT_RAISE) &&
            row_ref_eq(&e->counter.ref, &r->ref))
            return txn_misuse(t, "a row is deleted whose counter the body changed");
    }
    r->cur = NULL;
    written(t, r, ROW_DELETED);
    return BELAY_OK;
}

/* --- everything else is collected in order --- */

static belay_rc collect(struct txn *t, const struct effect *e, struct txn_op **out)
{
    belay_rc rc = charge(t, sizeof(*e));
    if (rc)
        return rc;
    struct txn_op *op = arena_alloc(t->arena, sizeof(*op));
    if (!op)
        return txn_no_memory(t);
    *op = (struct txn_op){ .effect = *e };
    *t->ops_last = op;
    t->ops_last = &op->next;
    t->n_ops++;
    if (out)
        *out = op;
    return BELAY_OK;
}

/* --- counters --- */

/* e: kind, column, amount and bounds of the change. */
static belay_rc count(struct txn *t, struct effect e, const struct row_type *type,
                      const struct value *key, struct txn_sum *out)
{
    unsigned column = e.counter.column;

    if (column >= type->n_columns || !type->columns[column].counter)
        return txn_misuse(t, "a column is counted in that is no counter");
    if (e.counter.min > e.counter.max)
        return txn_misuse(t, "a counter's least value is above its greatest");
    belay_rc rc = row_ref_make(&e.counter.ref, type, key, t->arena, &t->err);
    if (rc)
        return rc;
    struct txn_row *r = txn_find_row(t, &e.counter.ref);
    if (r && r->state == ROW_DELETED)
        return txn_misuse(t, "a counter of a row that the body deleted is changed");

    struct txn_op *op;
    rc = collect(t, &e, &op);
    if (rc)
        return rc;
    op->sum = out;
    if (r && r->cur) {
        r->cur = txn_with_counter(t, r->cur, &op->effect); /* T3 */
        if (!r->cur)
            return txn_no_memory(t);
    }
    return BELAY_OK;
}

belay_rc txn_add(struct txn *t, const struct row_type *type, const struct value *key,
                 unsigned column, int64_t delta, int64_t min, int64_t max,
                 struct txn_sum *out)
{
    struct effect e = {
        .kind = EFFECT_ADD,
        .counter = { .column = column, .amount = delta, .min = min, .max = max }
    };

    return count(t, e, type, key, out);
}

belay_rc txn_raise(struct txn *t, const struct row_type *type, const struct value *key,
                   unsigned column, int64_t value)
{
    struct effect e = { .kind = EFFECT_RAISE,
                        .counter = { .column = column, .amount = value } };

    return count(t, e, type, key, NULL);
}

/* --- ranks --- */

static belay_rc check_rank(struct txn *t, struct bytes index, int64_t rank,
                           struct bytes member)
{
    belay_rc rc = name_check(index, "rank index", &t->err);
    if (!rc)
        rc = name_check(member, "rank member", &t->err);
    if (!rc && (rank < -RANK_MAX || rank > RANK_MAX))
        rc = err_reason(&t->err, BELAY_INVALID, "rank", "rank: beyond 2^53");
    return rc;
}

/* One change of a member's place: from old_rank (if it has one) to rank (if it gets
 * one).  Several changes in one body become one. */
static belay_rc change_rank(struct txn *t, struct bytes index, struct bytes member,
                            bool had, int64_t old_rank, bool has, int64_t rank)
{
    struct txn_rank *r;
    belay_rc rc = charge(t, 0);
    if (!rc)
        rc = check_rank(t, index, has ? rank : old_rank, member);
    if (!rc)
        rc = txn_find_rank(t, index, member, &r);
    if (rc)
        return rc;

    if (r) {
        if (r->has != had || (had && r->rank != old_rank)) {
            rc = err_reason(&t->err, BELAY_CORRUPT, "rank",
                            "rank entry: the member is not where the body put it");
            err_entity(&t->err, index);
            return rc;
        }
    } else {
        rc = charge(t, index.len + member.len);
        if (!rc)
            rc = txn_remember_rank(t, index, member, &r);
        if (rc)
            return rc;
        r->had = had;
        r->old_rank = old_rank;
    }
    r->has = has;
    r->rank = rank;
    return BELAY_OK;
}

belay_rc txn_rank_add(struct txn *t, struct bytes index, int64_t rank,
                      struct bytes member)
{
    return change_rank(t, index, member, false, 0, true, rank);
}

belay_rc txn_rank_move(struct txn *t, struct bytes index, int64_t old_rank,
                       int64_t rank, struct bytes member)
{
    return change_rank(t, index, member, true, old_rank, true, rank);
}

belay_rc txn_rank_remove(struct txn *t, struct bytes index, int64_t old_rank,
                         struct bytes member)
{
    return change_rank(t, index, member, true, old_rank, false, 0);
}

/* --- logs, feeds, chunks, wake-ups --- */

belay_rc txn_log_append(struct txn *t, struct bytes stream, int64_t seq,
                        struct bytes data)
{
    struct effect e = { .kind = EFFECT_LOG_APPEND, .log = { .seq = seq } };
    if (seq < 1)
        return txn_misuse(t, "a log sequence below 1");
    belay_rc rc = name_check(stream, "log stream", &t->err);
    if (!rc)
        rc = keep(t, stream, &e.log.stream);
    if (!rc)
        rc = keep(t, data, &e.log.data);
    return rc ? rc : collect(t, &e, NULL);
}

belay_rc txn_log_trim(struct txn *t, struct bytes stream, int64_t upto)
{
    struct effect e = { .kind = EFFECT_LOG_TRIM, .log = { .seq = upto } };
    belay_rc rc = name_check(stream, "log stream", &t->err);
    if (!rc)
        rc = keep(t, stream, &e.log.stream);
    return rc ? rc : collect(t, &e, NULL);
}

belay_rc txn_feed_append(struct txn *t, struct bytes feed, struct bytes data,
                         struct txn_pos *out)
{
    struct effect e = { .kind = EFFECT_FEED_APPEND };
    struct txn_op *op;
    belay_rc rc = name_check(feed, "feed", &t->err);
    if (!rc)
        rc = keep(t, feed, &e.feed.feed);
    if (!rc)
        rc = keep(t, data, &e.feed.data);
    if (!rc)
        rc = collect(t, &e, &op);
    if (!rc)
        op->pos = out;
    return rc;
}

belay_rc txn_feed_trim(struct txn *t, struct bytes feed, struct feed_pos upto)
{
    struct effect e = { .kind = EFFECT_FEED_TRIM, .feed = { .upto = upto } };
    belay_rc rc = name_check(feed, "feed", &t->err);
    if (!rc)
        rc = keep(t, feed, &e.feed.feed);
    return rc ? rc : collect(t, &e, NULL);
}

belay_rc txn_chunk_put(struct txn *t, struct bytes upload, int64_t index,
                       struct bytes data)
{
    struct effect e = { .kind = EFFECT_CHUNK_PUT,
                        .chunk = { .index = index, .data = data } };
    belay_rc rc = name_check(upload, "upload", &t->err);
    if (!rc && data.len > CHUNK_MAX)
        rc = err_reason(&t->err, BELAY_INVALID, "too_large",
                        "chunk: %zu bytes, at most %zu are allowed", data.len,
                        CHUNK_MAX);
    if (!rc)
        rc = charge(t, data.len); /* large, so borrowed instead of copied: see txn.h */
    if (!rc)
        rc = keep(t, upload, &e.chunk.upload);
    return rc ? rc : collect(t, &e, NULL);
}

belay_rc txn_chunk_drop(struct txn *t, struct bytes upload, int64_t index)
{
    struct effect e = { .kind = EFFECT_CHUNK_DROP, .chunk = { .index = index } };
    belay_rc rc = name_check(upload, "upload", &t->err);
    if (!rc)
        rc = keep(t, upload, &e.chunk.upload);
    return rc ? rc : collect(t, &e, NULL);
}

belay_rc txn_wake(struct txn *t, struct bytes topic)
{
    struct plan_topic *w = arena_zalloc(t->arena, 1, sizeof(*w));
    if (!w)
        return txn_no_memory(t);
    belay_rc rc = name_check(topic, "topic", &t->err);
    if (!rc)
        rc = keep(t, topic, &w->name);
    if (rc)
        return rc;
    w->next = t->topics;
    t->topics = w;
    return BELAY_OK;
}
