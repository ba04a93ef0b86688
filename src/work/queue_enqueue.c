/* How batches enter an inbox. */
#include "base/clock.h"
#include "base/json.h"
#include "work/queue_rows.h"

belay_rc queue_check_session(const char *id, struct belay_error *err)
{
    if (id && bytes_is_id(bytes_str(id), SESSION_ID_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "session_id",
                      "session id: must be 1 to %d bytes of UTF-8 without control "
                      "characters",
                      SESSION_ID_MAX);
}

/* --- drafts --- */

static belay_rc check_draft(const struct belay_draft *d, struct belay_error *err)
{
    bool grouped = d->merge == BELAY_MERGE_GROUP;
    belay_rc rc = queue_check_session(d->session_id, err);

    if (rc)
        return rc;
    if (d->source_key && !bytes_is_id(bytes_str(d->source_key), SOURCE_KEY_MAX))
        return err_reason(err, BELAY_INVALID, "source_key",
                          "source key: must be 1 to %d bytes of UTF-8 without control "
                          "characters",
                          SOURCE_KEY_MAX);
    if (!delivery_name(d->delivery))
        return err_reason(err, BELAY_INVALID, "delivery",
                          "delivery: must be earliest_safe_boundary or "
                          "after_current_turn_commit");
    if (!slot_name(d->slot))
        return err_reason(err, BELAY_INVALID, "slot",
                          "slot: must be join or exclusive");
    if (grouped != (d->merge_group != NULL))
        return err_reason(err, BELAY_INVALID, "merge",
                          "merge: a group has a merge_group, and nothing else has");
    if (grouped && !bytes_is_id(bytes_str(d->merge_group), MERGE_GROUP_MAX))
        return err_reason(err, BELAY_INVALID, "merge",
                          "merge group: must be 1 to %d bytes of UTF-8 without control "
                          "characters",
                          MERGE_GROUP_MAX);
    if (d->available_at_ms < 0)
        return err_reason(err, BELAY_INVALID, "available_at",
                          "available at: %lld is before the beginning of time",
                          (long long)d->available_at_ms);
    return BELAY_OK;
}

static belay_rc too_large(size_t len, struct belay_error *err)
{
    belay_rc rc = err_reason(err, BELAY_INVALID, "too_large",
                             "payloads: %zu bytes, a batch has at most %zu", len,
                             BATCH_BYTES_MAX);

    err_numbers(err, (int64_t)BATCH_BYTES_MAX, (int64_t)len);
    return rc;
}

/* *out_len: of all of them. */
static belay_rc check_sizes(const struct belay_draft *d, size_t *out_len,
                            struct belay_error *err)
{
    size_t len = 0;

    for (size_t i = 0; i < d->n_payloads; i++) {
        if (!d->payloads[i])
            return err_reason(err, BELAY_INVALID, "payload", "payload %zu: is none", i);
        len += strlen(d->payloads[i]);
        if (len > BATCH_BYTES_MAX)
            return too_large(len, err);
    }
    *out_len = len;
    return BELAY_OK;
}

static belay_rc make_items(const struct belay_draft *d, struct belay_arena *a,
                           struct bytes *out, struct belay_error *err)
{
    struct buf items = buf_in(a);
    struct belay_error why = { .code = 0 };
    size_t len = 0;
    belay_rc rc = check_sizes(d, &len, err);

    buf_expect(&items, len + d->n_payloads + 2); /* if they are canonical already */
    buf_append_char(&items, '[');
    for (size_t i = 0; i < d->n_payloads && rc == BELAY_OK; i++) {
        if (i > 0)
            buf_append_char(&items, ',');
        rc = json_canonical(bytes_str(d->payloads[i]), BATCH_BYTES_MAX, &items, &why);
        if (rc == BELAY_INVALID)
            return err_reason(err, rc, "payload", "payload %zu: %s", i, why.message);
        if (rc)
            return err_set(err, rc, "%s", why.message);
    }
    if (rc)
        return rc;
    buf_append_str(&items, "]");
    if (items.failed)
        return err_no_memory(err, "payloads");
    *out = buf_view(&items);
    len = items.len - 2 - (d->n_payloads > 0 ? d->n_payloads - 1 : 0);
    return len > BATCH_BYTES_MAX ? too_large(len, err) : BELAY_OK;
}

belay_rc queue_prepare(const struct belay_draft *draft, struct belay_arena *a,
                       struct queue_entry *out, struct belay_error *err)
{
    const char *group = draft->merge_group ? draft->merge_group : "";
    struct queue_entry e = { .delivery = draft->delivery,
                             .slot = draft->slot,
                             .merge = draft->merge,
                             .available_at_ms = draft->available_at_ms };
    belay_rc rc = check_draft(draft, err);
    if (rc)
        return rc;

    e.session = bytes_str(draft->session_id);
    if (draft->source_key)
        e.source_key = bytes_str(draft->source_key);
    if (e.available_at_ms > TIME_MAX_MS)
        e.available_at_ms = TIME_MAX_MS;
    rc = merge_key_make(e.merge, bytes_str(group), &e.merge_key, a, err);
    if (rc == BELAY_OK)
        rc = make_items(draft, a, &e.items, err);
    if (rc == BELAY_OK)
        *out = e;
    return rc;
}

/* --- entering --- */

/* Reads of the inbox what entering changes, and the lookup by source key, together; *out_source
 * NULL: nothing has that key. */
static belay_rc look_up(struct txn *t, const struct queue_entry *e, bool waits,
                        struct inbox *in, const struct row **out_source)
{
    struct value key[] = { value_text(e->session), value_text(e->source_key) };
    struct row_want wants[3] = { { &row_inbox, key } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    size_t n = 1;

    if (e->source_key.ptr)
        wants[n++] = (struct row_want){ &row_batch_source, key };
    if (waits)
        wants[n++] = (struct row_want){ &row_inbox_front, key };
    belay_rc rc = txn_get_many(t, wants, n, rows);
    *out_source = e->source_key.ptr ? rows[1] : NULL;
    if (rc == BELAY_OK && !inbox_names(in, e->session, txn_arena(t)))
        rc = err_no_memory(txn_error(t), "an inbox");
    if (rc)
        return rc;
    return waits ? inbox_get_both(t, in) : inbox_get_back(t, in);
}

static belay_rc insert_batch(struct txn *t, const struct queue_entry *e, int64_t seq,
                             int64_t now_ms, const char *batch_id)
{
    struct value session = value_text(e->session), id = value_str(batch_id);
    bool waits = e->available_at_ms > now_ms, apart = e->items.len > BATCH_ITEMS_MAX;
    const struct value batch[BATCH_COLUMNS] = {
        [BATCH_SESSION] = session,
        [BATCH_SEQ] = value_i64(seq),
        [BATCH_ID] = id,
        [BATCH_SOURCE_KEY] =
            e->source_key.ptr ? value_text(e->source_key) : value_null(),
        [BATCH_DELIVERY] = value_str(delivery_name(e->delivery)),
        [BATCH_SLOT] = value_str(slot_name(e->slot)),
        [BATCH_MERGE_KEY] = value_json(e->merge_key),
        [BATCH_AVAILABLE_AT_MS] =
            e->available_at_ms > 0 ? value_i64(e->available_at_ms) : value_null(),
        [BATCH_ENQUEUED_AT_MS] = value_i64(now_ms),
        [BATCH_DUE_AT_MS] = waits ? value_i64(e->available_at_ms) : value_null(),
        [BATCH_ITEMS] = apart ? value_null() : value_json(e->items),
        [BATCH_WAKE] = e->wake.ptr ? value_text(e->wake) : value_null(),
    };
    const struct value payload[PAYLOAD_COLUMNS] = { session, value_i64(seq),
                                                    value_json(e->items) };
    const struct value name[BATCH_NAME_COLUMNS] = { session, id, value_i64(seq) };
    const struct value source[BATCH_SOURCE_COLUMNS] = { session,
                                                        value_text(e->source_key),
                                                        value_i64(seq) };
    belay_rc rc = txn_insert(t, &row_batch, batch);

    if (rc == BELAY_OK && apart)
        rc = txn_insert(t, &row_batch_payload, payload);
    if (rc == BELAY_OK)
        rc = txn_insert(t, &row_batch_name, name);
    if (rc == BELAY_OK && e->source_key.ptr)
        rc = txn_insert(t, &row_batch_source, source);
    return rc;
}

/* What waits for its time enters an index anywhere, the others behind everything else. */
static belay_rc put_inbox(struct txn *t, struct inbox *in, bool waits)
{
    belay_rc rc = inbox_put_back(t, in);

    return rc || !waits ? rc : inbox_put_front(t, in);
}

static belay_rc add_batch(struct txn *t, const struct queue_entry *e, struct inbox *in,
                          int64_t now_ms, int64_t *out_seq)
{
    char batch_id[BATCH_ID_LEN + 1];
    int64_t seq = in->last_seq + 1;
    belay_rc rc = BELAY_OK;

    if (seq >= RANK_MAX)
        rc = txn_fail(t, BELAY_OUT_OF_RANGE, "enqueue_seq",
                      "session %.*s: its last sequence was given out",
                      (int)in->session.len, (const char *)in->session.ptr);
    if (rc == BELAY_OK) /* Q4: with the sequence, two of one millisecond differ */
        rc = batch_id_make(e->session, e->source_key, now_ms, seq, batch_id,
                           txn_arena(t), txn_error(t));
    if (rc == BELAY_OK)
        rc = insert_batch(t, e, seq, now_ms, batch_id);
    if (rc == BELAY_OK)
        rc = batch_rank(t, in, seq,
                        e->available_at_ms > now_ms ? e->available_at_ms : BATCH_READY);
    if (rc)
        return rc;
    in->last_seq = *out_seq = seq;
    rc = in->exists ? put_inbox(t, in, e->available_at_ms > now_ms) : inbox_make(t, in);
    return rc ? rc : txn_wake(t, in->topic);
}

/* The batch that a lookup by source key names. */
static belay_rc existing_batch(struct txn *t, const struct row *source,
                               const struct row **out)
{
    struct batch_key key = batch_key(row_bytes(source, BATCH_SOURCE_SESSION),
                                     row_i64(source, BATCH_SOURCE_SEQ, 0));
    belay_rc rc = txn_get(t, &row_batch, key.v, out);
    if (rc || *out)
        return rc;
    rc = txn_fail(t, BELAY_CORRUPT, "source_key",
                  "batch %lld: is looked up by a source key and has no row",
                  (long long)key.v[1].i);
    err_entity(txn_error(t), row_bytes(source, BATCH_SOURCE_NAME));
    return rc;
}

belay_rc queue_enqueue_in(struct txn *t, const struct queue_entry *e, int64_t *out_seq,
                          const struct row **out_existing)
{
    const struct row *source;
    struct inbox in = { .exists = false };
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    *out_existing = NULL;
    if (rc == BELAY_OK)
        rc = look_up(t, e, e->available_at_ms > now_ms, &in, &source);
    if (rc)
        return rc;
    if (in.deleted)
        return inbox_gone(t, &in);
    if (!source)
        return add_batch(t, e, &in, now_ms, out_seq);
    *out_seq = row_i64(source, BATCH_SOURCE_SEQ, 0);
    return existing_batch(t, source, out_existing);
}

struct enqueueing {
    const struct queue_entry *entry;
    const char *session_id;
    struct belay_enqueued out;
};

static belay_rc enqueue_body(struct txn *t, void *arg)
{
    struct enqueueing *q = arg;
    struct belay_batch *batch = arena_alloc(txn_arena(t), sizeof(*batch));
    const struct row *existing, *row, *payload;
    int64_t seq = 0;

    if (!batch)
        return err_no_memory(txn_error(t), "a batch");
    belay_rc rc = queue_enqueue_in(t, q->entry, &seq, &existing);
    struct batch_key key = batch_key(q->entry->session, seq);
    if (rc == BELAY_OK)
        rc = txn_get(t, &row_batch, key.v, &row);
    if (rc == BELAY_OK)
        rc = batch_payloads(t, &row, 1, &payload);
    if (rc == BELAY_OK)
        rc = batch_decode(row, payload, q->session_id, txn_arena(t), batch,
                          txn_error(t));
    if (rc)
        return rc;
    q->out = (struct belay_enqueued){
        .batch = batch,
        .replayed = existing != NULL,
        .payload_mismatch =
            existing && !bytes_eq(batch_items(row, payload)->b, q->entry->items),
    };
    return BELAY_OK;
}

belay_rc queue_enqueue(struct space *sp, const struct belay_draft *draft,
                       struct belay_arena *a, struct belay_enqueued *out,
                       struct belay_error *err)
{
    struct queue_entry entry;
    struct enqueueing q = { .entry = &entry };
    struct bytes session_id;
    belay_rc rc = queue_prepare(draft, a, &entry, err);
    if (rc)
        return rc;

    if (!arena_copy(a, entry.session, &session_id))
        return err_no_memory(err, "a batch");
    q.session_id = (const char *)session_id.ptr;
    rc = txn_run(sp, enqueue_body, &q, NULL, a, err);
    if (rc == BELAY_OK)
        *out = q.out;
    return rc;
}
