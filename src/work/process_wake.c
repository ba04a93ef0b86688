/* Wakes: into an inbox with the event that makes them, out of it with what settles them. */
#include "base/json.h"
#include "work/exec_show.h"
#include "work/process_event.h"
#include "work/queue_rows.h"

static const char *const states[] = {
    [BELAY_WAKE_QUEUED] = "queued",
    [BELAY_WAKE_CONSUMED] = "consumed",
    [BELAY_WAKE_ACKNOWLEDGED] = "acknowledged",
    [BELAY_WAKE_CANCELLED] = "cancelled",
    [BELAY_WAKE_DUPLICATE] = "duplicate",
    [BELAY_WAKE_TARGET_GONE] = "target_gone",
};

const char *proc_wake_state_name(int state)
{
    return state > 0 && (size_t)state < COUNT_OF(states) ? states[state] : NULL;
}

static bool is_in(const struct row *wake, enum belay_wake_state state)
{
    return bytes_eq(row_bytes(wake, WAKE_STATE), bytes_str(states[state]));
}

/* --- names --- */

/* What a batch says of the wake that it is. */
static bool batch_mark(struct bytes process, int64_t seq, struct belay_arena *a,
                       struct bytes *out)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    buf_append_i64(&text, seq);
    buf_append_char(&text, ':');
    buf_append(&text, process);
    return !text.failed && arena_copy(a, buf_view(&text), out);
}

static bool read_mark(struct bytes mark, struct value key[2])
{
    const uint8_t *colon = mark.len > 0 ? memchr(mark.ptr, ':', mark.len) : NULL;
    int64_t seq = 0;

    if (!colon || !bytes_to_i64(bytes_of(mark.ptr, (size_t)(colon - mark.ptr)), &seq))
        return false;
    size_t head = (size_t)(colon - mark.ptr) + 1;
    key[0] = value_text(bytes_of(mark.ptr + head, mark.len - head));
    key[1] = value_i64(seq);
    return mark.len > head;
}

/* --- delivering --- */

/* "name":"text" behind `before`, or nothing where it is none. */
static void add(struct buf *out, const char *before, struct bytes text)
{
    if (!text.ptr)
        return;
    buf_append_str(out, before);
    json_append_string(out, text);
}

/* Where the event came from: scope, subject, cause, replay. */
static void add_invocation(struct buf *out, const struct event_facts_of *of,
                           const struct proc_event *e)
{
    add(out, ",\"event_invocation\":{\"caused_by\":{\"process_id\":", of->process);
    buf_append_str(out, ",\"type\":\"process\"}");
    add(out, ",\"replay\":{\"key\":", e->key);
    if (e->key.ptr)
        buf_append_char(out, '}');
    add(out, ",\"scope\":{\"session_id\":", of->owner_session);
    add(out, "},\"subject\":{\"event_type\":", e->type);
    add(out, ",\"process_id\":", of->process);
    buf_append_str(out, ",\"sequence\":");
    buf_append_i64(out, e->seq);
    buf_append_str(out, ",\"type\":\"process_event\"}}");
}

/* The one item of the batch, in canonical form: keys are sorted. */
static void write_item(struct buf *out, const struct event_facts_of *of,
                       const struct proc_event *e)
{
    buf_append_str(out, "[{\"type\":\"process_wake\",\"wake\":{\"created_at_ms\":");
    buf_append_i64(out, e->at_ms);
    add(out, ",\"dedupe_key\":", e->wake.dedupe);
    add_invocation(out, of, e);
    add(out, ",\"event_type\":", e->type);
    add(out, ",\"input\":", e->wake.input);
    if (of->caused_by.ptr) {
        buf_append_str(out, ",\"process_caused_by\":");
        buf_append(out, of->caused_by);
    }
    add(out, ",\"process_id\":", of->process);
    buf_append_str(out, ",\"sequence\":");
    buf_append_i64(out, e->seq);
    add(out, ",\"target_frame_id\":", e->wake.frame);
    add(out, ",\"target_session_id\":", e->wake.session);
    add(out, ",\"wake_id\":", e->wake.id);
    buf_append_str(out, "}}]");
}

static belay_rc make_entry(struct txn *t, const struct event_facts_of *of,
                           const struct proc_event *e, struct queue_entry *out)
{
    CLEANUP(buf_release) struct buf items = { 0 };
    struct belay_arena *a = txn_arena(t);

    *out = (struct queue_entry){ .session = e->wake.session,
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_EXCLUSIVE,
                                 .merge = BELAY_MERGE_NEVER,
                                 .merge_key = bytes_str("\"never\"") };
    write_item(&items, of, e);
    if (items.failed || !arena_copy(a, buf_view(&items), &out->items) ||
        !batch_mark(of->process, e->seq, a, &out->wake))
        return err_no_memory(txn_error(t), "a wake");
    return wake_source_key(of->process, e->seq, a, &out->source_key, txn_error(t));
}

static belay_rc keep(struct txn *t, const struct event_facts_of *of,
                     const struct proc_event *e, enum belay_wake_state state,
                     int64_t enqueue_seq)
{
    bool queued = state == BELAY_WAKE_QUEUED;
    char text[I64_TEXT_MAX];
    struct bytes index;
    const struct value v[WAKE_COLUMNS] = {
        [WAKE_PROCESS] = value_text(of->process),
        [WAKE_SEQ] = value_i64(e->seq),
        [WAKE_ID] = value_text(e->wake.id),
        [WAKE_STATE] = value_str(states[state]),
        [WAKE_SESSION] = value_text(e->wake.session),
        [WAKE_FRAME] = e->wake.frame.ptr ? value_text(e->wake.frame) : value_null(),
        [WAKE_ENQUEUE_SEQ] = enqueue_seq > 0 ? value_i64(enqueue_seq) : value_null(),
        [WAKE_CREATED_AT_MS] = value_i64(e->at_ms),
        [WAKE_SETTLED_AT_MS] = queued ? value_null() : value_i64(e->at_ms),
    };
    belay_rc rc = txn_insert(t, &row_process_wake, v);

    if (rc || !queued)
        return rc;
    if (!proc_name(WAKE_INDEX, of->process, txn_arena(t), &index))
        return err_no_memory(txn_error(t), "a wake");
    return txn_rank_add(t, index, e->seq, bytes_of(text, bytes_put_i64(text, e->seq)));
}

/* Somebody has put a batch of that source key there by hand: it is the wake. */
static belay_rc adopt(struct txn *t, const struct row *batch, struct bytes mark)
{
    const struct change change = { BATCH_WAKE, value_text(mark) };

    return txn_put(t, &row_batch, batch->v, &change, 1);
}

belay_rc wake_deliver(struct txn *t, const struct event_facts_of *of,
                      const struct proc_event *e)
{
    const struct value target[WAKE_TARGET_COLUMNS] = { value_text(e->wake.session),
                                                       value_text(e->wake.id),
                                                       value_text(of->process),
                                                       value_i64(e->seq) };
    const struct row *before = NULL, *existing = NULL;
    struct queue_entry entry;
    int64_t seq = 0;
    belay_rc rc = txn_get(t, &row_wake_target, target, &before);

    if (rc == BELAY_OK && before) /* P3: one for a target and wake id */
        return keep(t, of, e, BELAY_WAKE_DUPLICATE, 0);
    if (rc == BELAY_OK)
        rc = make_entry(t, of, e, &entry);
    if (rc)
        return rc;
    rc = queue_enqueue_in(t, &entry, &seq, &existing);
    if (rc == BELAY_WRONG_STATE) /* what has happened has happened */
        return keep(t, of, e, BELAY_WAKE_TARGET_GONE, 0);
    if (rc == BELAY_OK && existing)
        rc = adopt(t, existing, entry.wake);
    if (rc == BELAY_OK)
        rc = txn_insert(t, &row_wake_target, target);
    return rc ? rc : keep(t, of, e, BELAY_WAKE_QUEUED, seq);
}

/* --- settling --- */

/* One that was taken out by hand, or whose target is gone, may come again. */
static belay_rc unmark_target(struct txn *t, const struct row *wake)
{
    const struct value key[] = { wake->v[WAKE_SESSION], wake->v[WAKE_ID] };
    const struct row *target;
    belay_rc rc = txn_get(t, &row_wake_target, key, &target);

    if (rc || !target ||
        !value_eq(&target->v[WAKE_TARGET_PROCESS], &wake->v[WAKE_PROCESS]) ||
        !value_eq(&target->v[WAKE_TARGET_SEQ], &wake->v[WAKE_SEQ]))
        return rc;
    return txn_delete(t, &row_wake_target, key);
}

static belay_rc unrank(struct txn *t, const struct row *wake)
{
    char text[I64_TEXT_MAX];
    int64_t seq = row_i64(wake, WAKE_SEQ, 0);
    struct bytes index;

    if (!proc_name(WAKE_INDEX, row_bytes(wake, WAKE_PROCESS), txn_arena(t), &index))
        return err_no_memory(txn_error(t), "a wake");
    return txn_rank_remove(t, index, seq, bytes_of(text, bytes_put_i64(text, seq)));
}

static belay_rc settle_row(struct txn *t, const struct row *wake,
                           enum belay_wake_state state)
{
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);
    const struct change changes[] = { { WAKE_STATE, value_str(states[state]) },
                                      { WAKE_SETTLED_AT_MS, value_i64(now_ms) } };

    if (rc == BELAY_OK)
        rc = txn_put(t, &row_process_wake, wake->v, changes, COUNT_OF(changes));
    if (rc == BELAY_OK)
        rc = unrank(t, wake);
    if (rc == BELAY_OK &&
        (state == BELAY_WAKE_CANCELLED || state == BELAY_WAKE_TARGET_GONE))
        rc = unmark_target(t, wake);
    return rc;
}

belay_rc wake_settle(struct txn *t, const struct row *batch,
                     enum belay_wake_state state)
{
    const struct row *wake;
    struct value key[2];

    if (batch->v[BATCH_WAKE].kind == VALUE_NULL ||
        !read_mark(row_bytes(batch, BATCH_WAKE), key))
        return BELAY_OK;
    belay_rc rc = txn_get(t, &row_process_wake, key, &wake);
    /* The process may be another one of the same id by now. */
    if (rc || !wake || !is_in(wake, BELAY_WAKE_QUEUED) ||
        !value_eq(&wake->v[WAKE_SESSION], &batch->v[BATCH_SESSION]) ||
        !value_eq(&wake->v[WAKE_ENQUEUE_SEQ], &batch->v[BATCH_SEQ]))
        return rc;
    return settle_row(t, wake, state);
}

/* --- acknowledging --- */

struct acking {
    struct bytes process;
    int64_t seq;
    bool settled;
};

/* Its batch leaves the inbox with it, unless somebody is working on it. */
static belay_rc ack_batch(struct txn *t, const struct row *wake, bool *out_done)
{
    struct inbox in = { .exists = false };
    const struct row *row;
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    *out_done = false;
    if (rc == BELAY_OK)
        rc = inbox_open(t, &in, row_bytes(wake, WAKE_SESSION));
    struct batch_key key = batch_key(in.session, row_i64(wake, WAKE_ENQUEUE_SEQ, 0));
    if (rc == BELAY_OK)
        rc = txn_get(t, &row_batch, key.v, &row);
    if (rc || !row)
        return rc;
    struct lease l = lease_of(row, BATCH_LEASE);
    if (lease_is_live(&l, now_ms))
        return BELAY_OK;
    rc = batch_fetch_all(t, &row, 1);
    if (rc == BELAY_OK)
        rc = batch_unrank(t, &in, row);
    if (rc == BELAY_OK)
        rc = batch_delete(t, &in, row, BELAY_WAKE_ACKNOWLEDGED);
    if (rc == BELAY_OK)
        rc = inbox_put_front(t, &in);
    *out_done = true;
    return rc ? rc : txn_wake(t, in.topic);
}

static belay_rc ack_body(struct txn *t, void *arg)
{
    struct acking *k = arg;
    const struct value key[] = { value_text(k->process), value_i64(k->seq) };
    const struct row_want wants[] = { { &row_process_spec, key },
                                      { &row_process_wake, key } };
    const struct row *rows[COUNT_OF(wants)];
    bool done = false;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    k->settled = false;
    if (rc == BELAY_OK && !rows[0])
        rc = proc_unknown(t, k->process);
    if (rc || !rows[1] || !is_in(rows[1], BELAY_WAKE_QUEUED))
        return rc;
    k->settled = true;
    rc = ack_batch(t, rows[1], &done);
    return rc || done ? rc : settle_row(t, rows[1], BELAY_WAKE_ACKNOWLEDGED);
}

belay_rc proc_ack(const struct proc_site *site, const char *process_id,
                  int64_t sequence, bool *out_settled, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct acking k = { .process = bytes_str(process_id), .seq = sequence };
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc == BELAY_OK && sequence < 1)
        rc = err_reason(err, BELAY_INVALID, "sequence", "sequence: %lld is less than 1",
                        (long long)sequence);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, ack_body, &k, NULL, &arena, err);
    if (rc == BELAY_OK && out_settled)
        *out_settled = k.settled;
    return rc;
}

/* --- forgetting --- */

/* A batch stays that is in an inbox, but whoever has the process's id next may have one of
 * its source key, too. */
static belay_rc detach(struct txn *t, const struct row *wake)
{
    struct value key[2] = { wake->v[WAKE_SESSION], { .kind = VALUE_NULL } };
    const struct row *source;
    struct bytes name;

    belay_rc rc =
        wake_source_key(row_bytes(wake, WAKE_PROCESS), row_i64(wake, WAKE_SEQ, 0),
                        txn_arena(t), &name, txn_error(t));
    if (rc)
        return rc;
    key[1] = value_text(name);
    rc = txn_get(t, &row_batch_source, key, &source);
    if (rc || !source ||
        !value_eq(&source->v[BATCH_SOURCE_SEQ], &wake->v[WAKE_ENQUEUE_SEQ]))
        return rc;
    return txn_delete(t, &row_batch_source, key);
}

belay_rc wake_forget(struct txn *t, struct bytes process, int64_t seq)
{
    const struct value key[] = { value_text(process), value_i64(seq) };
    const struct row *wake;
    belay_rc rc = txn_get(t, &row_process_wake, key, &wake);

    if (rc || !wake)
        return rc;
    bool queued = is_in(wake, BELAY_WAKE_QUEUED);
    if (queued)
        rc = unrank(t, wake);
    /* Of one that was acknowledged somebody may still have the batch. */
    if (rc == BELAY_OK && (queued || is_in(wake, BELAY_WAKE_ACKNOWLEDGED)))
        rc = detach(t, wake);
    if (rc == BELAY_OK)
        rc = unmark_target(t, wake);
    return rc ? rc : txn_delete(t, &row_process_wake, key);
}

/* --- showing --- */

belay_rc wake_show(struct txn *t, const struct event_facts_of *of,
                   const struct proc_event *e, const struct row *row,
                   struct belay_arena *a, const struct belay_wake **out)
{
    struct belay_wake *w = arena_zalloc(a, 1, sizeof(*w));

    if (!w)
        return err_no_memory(txn_error(t), "a wake");
    if (!row)
        return txn_fail(t, BELAY_CORRUPT, "process_wake",
                        "process %.*s: the wake of event %lld is missing",
                        (int)of->process.len, (const char *)of->process.ptr,
                        (long long)e->seq);
    for (int i = 1; proc_wake_state_name(i); i++) {
        if (is_in(row, (enum belay_wake_state)i))
            w->state = i;
    }
    if (w->state == 0)
        return proc_corrupt(t, row, WAKE_STATE);
    w->sequence = e->seq;
    w->created_at_ms = e->at_ms;
    w->enqueue_seq = row_i64(row, WAKE_ENQUEUE_SEQ, 0);
    w->settled_at_ms = row_i64(row, WAKE_SETTLED_AT_MS, BELAY_TIME_NONE);
    if (!show_text(a, e->wake.id, &w->wake_id) ||
        !show_text(a, e->wake.session, &w->target.session_id) ||
        !show_text(a, e->wake.frame, &w->target.frame_id) ||
        !show_text(a, of->process, &w->process_id) ||
        !show_text(a, e->type, &w->event_type) ||
        !show_text(a, e->wake.dedupe, &w->dedupe_key) ||
        !show_text(a, e->wake.input, &w->input) ||
        !show_text(a, of->caused_by, &w->process_caused_by))
        return err_no_memory(txn_error(t), "a wake");
    *out = w;
    return BELAY_OK;
}
