#include "work/queue_rows.h"

#include <assert.h>

#include "base/clock.h"
#include "work/process_event.h"

/* --- batches --- */

struct batch_key batch_key(struct bytes session, int64_t seq)
{
    return (struct batch_key){ { value_text(session), value_i64(seq) } };
}

belay_rc batch_rank(struct txn *t, const struct inbox *in, int64_t seq,
                    int64_t due_at_ms)
{
    char text[I64_TEXT_MAX];
    struct bytes member = bytes_of(text, bytes_put_i64(text, seq));

    return due_at_ms == BATCH_READY ? txn_rank_add(t, in->ready, seq, member)
                                    : txn_rank_add(t, in->due, due_at_ms, member);
}

belay_rc batch_unrank(struct txn *t, const struct inbox *in, const struct row *row)
{
    char text[I64_TEXT_MAX];
    int64_t seq = batch_seq(row);
    struct bytes member = bytes_of(text, bytes_put_i64(text, seq));

    if (batch_is_ready(row))
        return txn_rank_remove(t, in->ready, seq, member);
    return txn_rank_remove(t, in->due, row_i64(row, BATCH_DUE_AT_MS, 0), member);
}

/* What goes along with a move, at most. */
#define CHANGES_MAX (LEASE_COLUMNS + 4)

belay_rc batch_place(struct txn *t, const struct inbox *in, const struct row *row,
                     int64_t due_at_ms, const struct change *changes, size_t n_changes)
{
    struct value due = due_at_ms == BATCH_READY ? value_null() : value_i64(due_at_ms);
    struct change all[CHANGES_MAX + 1] = { { BATCH_DUE_AT_MS, due } };

    assert(n_changes <= CHANGES_MAX);
    for (size_t i = 0; i < n_changes; i++)
        all[i + 1] = changes[i];
    belay_rc rc = batch_unrank(t, in, row);
    if (rc == BELAY_OK)
        rc = batch_rank(t, in, batch_seq(row), due_at_ms);
    return rc ? rc : txn_put(t, &row_batch, row->v, all, n_changes + 1);
}

static bool batch_has_items(const struct row *row)
{
    return row->v[BATCH_ITEMS].kind != VALUE_NULL;
}

belay_rc batch_payloads(struct txn *t, const struct row *const *rows, size_t n,
                        const struct row **out)
{
    struct belay_arena *a = txn_arena(t);
    size_t n_wants = 0, k = 0;

    for (size_t i = 0; i < n; i++) {
        out[i] = NULL;
        n_wants += !batch_has_items(rows[i]);
    }
    if (n_wants == 0)
        return BELAY_OK;
    struct batch_key *keys = arena_zalloc(a, n_wants, sizeof(*keys));
    struct row_want *wants = arena_zalloc(a, n_wants, sizeof(*wants));
    const struct row **found = arena_zalloc(a, n_wants, sizeof(const struct row *));
    if (!keys || !wants || !found)
        return err_no_memory(txn_error(t), "batches");
    for (size_t i = 0; i < n; i++) {
        if (batch_has_items(rows[i]))
            continue;
        keys[k] = batch_key(row_bytes(rows[i], BATCH_SESSION), batch_seq(rows[i]));
        wants[k] = (struct row_want){ &row_batch_payload, keys[k].v };
        k++;
    }
    belay_rc rc = txn_get_many(t, wants, n_wants, found);
    k = 0;
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        if (!batch_has_items(rows[i]))
            out[i] = found[k++];
    }
    return rc;
}

const struct value *batch_items(const struct row *row, const struct row *payload)
{
    static const struct value missing = { .kind = VALUE_NULL };

    if (batch_has_items(row))
        return &row->v[BATCH_ITEMS];
    return payload ? &payload->v[PAYLOAD_ITEMS] : &missing;
}

/* --- removing --- */

/* The rows beside the batch's own. */
enum { BESIDE_PAYLOAD, BESIDE_NAME, BESIDE_SOURCE, BESIDES };
struct besides {
    struct value key[BESIDES][2];
    struct row_want wants[BESIDES];
    size_t n; /* without the last one when it has no source key */
};

static void besides_of(struct besides *b, const struct row *row)
{
    const struct value *session = &row->v[BATCH_SESSION];
    static const struct {
        const struct row_type *type;
        unsigned column;
    } rows[BESIDES] = {
        [BESIDE_PAYLOAD] = { &row_batch_payload, BATCH_SEQ },
        [BESIDE_NAME] = { &row_batch_name, BATCH_ID },
        [BESIDE_SOURCE] = { &row_batch_source, BATCH_SOURCE_KEY },
    };

    b->n = 0;
    for (unsigned i = batch_has_items(row) ? BESIDE_NAME : BESIDE_PAYLOAD; i < BESIDES;
         i++) {
        const struct value *second = &row->v[rows[i].column];
        if (second->kind == VALUE_NULL ||
            (second->kind == VALUE_TEXT && second->b.len == 0))
            continue;
        b->key[b->n][0] = *session;
        b->key[b->n][1] = *second;
        b->wants[b->n] = (struct row_want){ rows[i].type, b->key[b->n] };
        b->n++;
    }
}

/* The rows beside all of them; NULL: no memory. */
static struct row_want *all_besides(struct txn *t, const struct row *const *rows,
                                    size_t n, size_t *out_n)
{
    struct besides *b = arena_zalloc(txn_arena(t), n, sizeof(*b));
    struct row_want *wants =
        arena_zalloc(txn_arena(t), n, BESIDES * sizeof(struct row_want));

    *out_n = 0;
    if (!b || !wants)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        besides_of(&b[i], rows[i]);
        memcpy(&wants[*out_n], b[i].wants, b[i].n * sizeof(*wants));
        *out_n += b[i].n;
    }
    return wants;
}

belay_rc batch_fetch_all(struct txn *t, const struct row *const *rows, size_t n)
{
    size_t n_wants;
    const struct row_want *wants = all_besides(t, rows, n, &n_wants);
    const struct row **out =
        arena_zalloc(txn_arena(t), n, BESIDES * sizeof(const struct row *));

    return wants && out ? txn_get_many(t, wants, n_wants, out)
                        : err_no_memory(txn_error(t), "batches");
}

belay_rc batch_foresee(struct txn *t, const struct row *const *rows, size_t n)
{
    size_t n_wants;
    const struct row_want *wants = all_besides(t, rows, n, &n_wants);

    return wants ? txn_foresee(t, wants, n_wants)
                 : err_no_memory(txn_error(t), "batches");
}

/* The lookup by source key belongs to whoever has that key now. */
static bool is_of(const struct row *beside, int64_t seq)
{
    if (beside->type == &row_batch_source)
        return row_i64(beside, BATCH_SOURCE_SEQ, 0) == seq;
    return beside->type != &row_batch_name || row_i64(beside, BATCH_NAME_SEQ, 0) == seq;
}

/* Sequences have no gaps: when as many are gone as the highest of them says, all up to that one
 * are. */
static void count_out(struct inbox *in, int64_t seq)
{
    in->gone++;
    if (seq > in->last_gone)
        in->last_gone = seq;
    if (in->gone == in->last_gone)
        in->first_seq = in->last_gone + 1;
    else if (seq == in->first_seq)
        in->first_seq = seq + 1;
}

belay_rc batch_delete(struct txn *t, struct inbox *in, const struct row *row,
                      enum belay_wake_state wake)
{
    const struct row *beside, *there;
    struct besides b;
    belay_rc rc = txn_get(t, &row_batch, row->v, &there);

    if (rc || !there)
        return rc;
    besides_of(&b, row);
    for (size_t i = 0; i < b.n && rc == BELAY_OK; i++) {
        rc = txn_get(t, b.wants[i].type, b.wants[i].key, &beside);
        if (rc == BELAY_OK && beside && is_of(beside, batch_seq(row)))
            rc = txn_delete(t, b.wants[i].type, b.wants[i].key);
    }
    if (rc == BELAY_OK)
        rc = txn_delete(t, &row_batch, row->v);
    if (rc == BELAY_OK)
        count_out(in, batch_seq(row));
    return rc ? rc : wake_settle(t, row, wake); /* P4 */
}

/* --- what is in the rows --- */

/* Numbers of a batch, and their bounds. */
static const struct {
    int64_t min, max;
    unsigned column;
    bool optional;
} numbers[] = {
    { 1, RANK_MAX - 1, BATCH_SEQ, false },
    { 0, TIME_MAX_MS, BATCH_AVAILABLE_AT_MS, true },
    { 0, TIME_MAX_MS, BATCH_ENQUEUED_AT_MS, false },
    { 0, TIME_MAX_MS, BATCH_DUE_AT_MS, true },
    { 1, BELAY_CLAIM_MAX, BATCH_CLAIM_SIZE, true },
    { 0, RANK_MAX - 1, BATCH_LEASE + LEASE_FENCE, true },
    { 0, TIME_MAX_MS, BATCH_LEASE + LEASE_CLAIMED_AT_MS, true },
    { 0, TIME_MAX_MS, BATCH_LEASE + LEASE_EXPIRES_AT_MS, true },
};

/* What is there exactly when somebody holds the batch. */
static const unsigned held_columns[] = {
    BATCH_CLAIM_ID,
    BATCH_CLAIM_SIZE,
    BATCH_LEASE + LEASE_OWNER,
    BATCH_LEASE + LEASE_TOKEN,
    BATCH_LEASE + LEASE_ID,
    BATCH_LEASE + LEASE_CLAIMED_AT_MS,
    BATCH_LEASE + LEASE_EXPIRES_AT_MS,
};

static bool is_null(const struct row *row, unsigned column)
{
    return row->v[column].kind == VALUE_NULL;
}

static unsigned number_fault(const struct row *row)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int64_t n = row_i64(row, numbers[i].column, -1);
        bool absent = is_null(row, numbers[i].column);
        if (absent ? !numbers[i].optional : n < numbers[i].min || n > numbers[i].max)
            return numbers[i].column;
    }
    return BATCH_COLUMNS;
}

static unsigned lease_fault(const struct row *row)
{
    struct lease l = lease_of(row, BATCH_LEASE);
    bool held = lease_is_granted(&l);

    for (size_t i = 0; i < COUNT_OF(held_columns); i++) {
        if (is_null(row, held_columns[i]) == held)
            return held_columns[i];
    }
    if (held && l.fence < 1)
        return BATCH_LEASE + LEASE_FENCE;
    if (l.expires_at_ms < l.claimed_at_ms)
        return BATCH_LEASE + LEASE_EXPIRES_AT_MS;
    int64_t due = held ? l.expires_at_ms : row_i64(row, BATCH_AVAILABLE_AT_MS, 0);
    return row_i64(row, BATCH_DUE_AT_MS, due) == due ? BATCH_COLUMNS : BATCH_DUE_AT_MS;
}

/* Whether b begins with `head` and ends with `tail`; *out is what is between them. */
static bool between(struct bytes b, const char *head, const char *tail,
                    struct bytes *out)
{
    size_t h = strlen(head), l = strlen(tail);

    if (b.len < h + l || memcmp(b.ptr, head, h) != 0 ||
        memcmp(b.ptr + b.len - l, tail, l) != 0)
        return false;
    *out = bytes_of(b.ptr + h, b.len - h - l);
    return true;
}

/* A group as merge_key_make wrote it: without control characters, so that quote and
 * backslash are all that is escaped. */
static bool group_of(struct bytes merge_key, char out[MERGE_GROUP_MAX + 1])
{
    struct bytes in;
    size_t n = 0;

    if (!between(merge_key, "{\"group\":\"", "\"}", &in))
        return false;
    for (size_t i = 0; i < in.len; i++) {
        bool escaped = in.ptr[i] == '\\';
        i += escaped;
        uint8_t c = i < in.len ? in.ptr[i] : 0;
        if (n == MERGE_GROUP_MAX || escaped != (c == '"' || c == '\\'))
            return false;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return bytes_is_id(bytes_of(out, n), MERGE_GROUP_MAX);
}

/* Which kind of merge key it is, and its group; false: none. */
static bool merge_parse(struct bytes key, int32_t *out_merge,
                        char group[MERGE_GROUP_MAX + 1])
{
    group[0] = '\0';
    *out_merge = BELAY_MERGE_GROUP;
    if (bytes_eq(key, bytes_str("\"never\"")))
        *out_merge = BELAY_MERGE_NEVER;
    else if (bytes_eq(key, bytes_str("\"payload_default\"")))
        *out_merge = BELAY_MERGE_PAYLOAD_DEFAULT;
    else
        return group_of(key, group);
    return true;
}

unsigned batch_fault(const struct row *row)
{
    char group[MERGE_GROUP_MAX + 1];
    int32_t n;
    unsigned column = number_fault(row);

    if (row_bytes(row, BATCH_ID).len == 0)
        return BATCH_ID;
    if (!delivery_parse(row_bytes(row, BATCH_DELIVERY), &n))
        return BATCH_DELIVERY;
    if (!slot_parse(row_bytes(row, BATCH_SLOT), &n))
        return BATCH_SLOT;
    if (!merge_parse(row_bytes(row, BATCH_MERGE_KEY), &n, group))
        return BATCH_MERGE_KEY;
    return column < BATCH_COLUMNS ? column : lease_fault(row);
}

static belay_rc corrupt_batch(const struct row *row, const char *what,
                              const struct value *holds, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    buf_printf(&text, "batch %lld (", (long long)batch_seq(row));
    buf_append_escaped(&text, row_bytes(row, BATCH_ID));
    buf_printf(&text, "): %s is ", what);
    if (holds->kind == VALUE_NULL)
        buf_append_str(&text, "missing");
    else if (holds->kind == VALUE_I64)
        buf_append_i64(&text, holds->i);
    else
        buf_append_escaped(&text, holds->b);
    buf_append_char(&text, '\0');
    if (text.failed)
        return err_no_memory(err, "a message");
    belay_rc rc = err_reason(err, BELAY_CORRUPT, what, "%s", (const char *)text.ptr);
    err_entity(err, row_bytes(row, BATCH_ID));
    return rc;
}

belay_rc batch_corrupt(const struct row *row, unsigned column, struct belay_error *err)
{
    return corrupt_batch(row, row->type->columns[column].name, &row->v[column], err);
}

belay_rc batch_missing(struct bytes index, struct bytes member, struct belay_error *err)
{
    belay_rc rc =
        err_reason(err, BELAY_CORRUPT, "rank_without_row",
                   "batch %.*s: stands in %.*s and has no row", (int)member.len,
                   (const char *)member.ptr, (int)index.len, (const char *)index.ptr);

    err_entity(err, member);
    return rc;
}

belay_rc batch_candidate(const struct row *row, struct claim_candidate *out,
                         struct belay_error *err)
{
    unsigned column = batch_fault(row);

    if (column < BATCH_COLUMNS)
        return batch_corrupt(row, column, err);
    out->merge_key = row_bytes(row, BATCH_MERGE_KEY);
    bool known = delivery_parse(row_bytes(row, BATCH_DELIVERY), &out->delivery) &&
                 slot_parse(row_bytes(row, BATCH_SLOT), &out->slot);
    return known ? BELAY_OK : batch_corrupt(row, BATCH_DELIVERY, err);
}

/* --- a batch as the caller sees it --- */

/* An optional text column. */
static bool copy_text(struct belay_arena *a, const struct row *row, unsigned column,
                      const char **out)
{
    struct bytes copy = { .ptr = NULL };

    if (!is_null(row, column) && !arena_copy(a, row_bytes(row, column), &copy))
        return false;
    *out = (const char *)copy.ptr;
    return true;
}

static bool copy_batch(const struct row *row, const char *group, struct belay_arena *a,
                       struct belay_batch *out)
{
    struct lease l = lease_of(row, BATCH_LEASE);
    struct bytes own_group = { .ptr = NULL };

    if (group[0] != '\0' && !arena_copy(a, bytes_str(group), &own_group))
        return false;
    out->merge_group = (const char *)own_group.ptr;
    out->enqueue_seq = batch_seq(row);
    out->available_at_ms = row_i64(row, BATCH_AVAILABLE_AT_MS, 0);
    out->enqueued_at_ms = row_i64(row, BATCH_ENQUEUED_AT_MS, 0);
    out->fence = l.fence;
    out->claimed_at_ms = l.claimed_at_ms;
    out->expires_at_ms = l.expires_at_ms;
    return copy_text(a, row, BATCH_ID, &out->batch_id) &&
           copy_text(a, row, BATCH_SOURCE_KEY, &out->source_key) &&
           copy_text(a, row, BATCH_CLAIM_ID, &out->claim_id) &&
           copy_text(a, row, BATCH_LEASE + LEASE_OWNER, &out->owner_id);
}

belay_rc batch_decode(const struct row *row, const struct row *payload,
                      const char *session_id, struct belay_arena *a,
                      struct belay_batch *out, struct belay_error *err)
{
    const struct value *items = batch_items(row, payload);
    struct belay_batch b = { .session_id = session_id };
    char group[MERGE_GROUP_MAX + 1];
    struct claim_candidate c = { .delivery = 0 };

    belay_rc rc = batch_candidate(row, &c, err);
    if (rc)
        return rc;
    if (!merge_parse(c.merge_key, &b.merge, group))
        return batch_corrupt(row, BATCH_MERGE_KEY, err);
    if (!items_count(items->b, &b.n_items))
        return corrupt_batch(row, "payload", items, err);
    b.delivery = c.delivery;
    b.slot = c.slot;
    struct belay_item *item = arena_zalloc(a, b.n_items, sizeof(*item));
    b.items = item;
    if (!item || !copy_batch(row, group, a, &b) ||
        !items_cut(items->b, b.batch_id, a, item, b.n_items))
        return err_no_memory(err, "a batch");
    *out = b;
    return BELAY_OK;
}
