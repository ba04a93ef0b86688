/* Events as the log has them, and as their callers see them. */
#include "base/json.h"
#include "work/exec_show.h"
#include "work/process_event.h"

#define HEADER_MAX ((size_t)4 << 20)

bool event_stream(struct bytes process, struct belay_arena *a, struct bytes *out)
{
    return proc_name(PROCESS_STREAM, process, a, out);
}

/* --- writing --- */

static void add_text(struct buf *out, const char *before, struct bytes text)
{
    if (!text.ptr)
        return;
    buf_append_str(out, before);
    json_append_string(out, text);
}

static void add_wake(struct buf *out, const struct event_wake *w)
{
    add_text(out, ",\"wake\":{\"id\":", w->id);
    add_text(out, ",\"session\":", w->session);
    add_text(out, ",\"frame\":", w->frame);
    add_text(out, ",\"dedupe\":", w->dedupe);
    add_text(out, ",\"input\":", w->input);
    buf_append_char(out, '}');
}

void event_encode(const struct proc_event *e, struct buf *out)
{
    buf_append_str(out, "{\"at\":");
    buf_append_i64(out, e->at_ms);
    add_text(out, ",\"type\":", e->type);
    add_text(out, ",\"hash\":", e->hash);
    add_text(out, ",\"key\":", e->key);
    if (e->fence > 0) {
        buf_append_str(out, ",\"fence\":");
        buf_append_i64(out, e->fence);
    }
    if (e->authority)
        add_text(out, ",\"authority\":", bytes_str(proc_authority_name(e->authority)));
    if (e->terminal)
        add_text(out, ",\"terminal\":", bytes_str(proc_status_name(e->terminal)));
    if (e->wakes)
        add_wake(out, &e->wake);
    if (e->apart)
        buf_append_str(out, ",\"apart\":true");
    buf_append_str(out, "}\n");
    if (!e->apart)
        buf_append(out, e->payload);
}

/* --- reading --- */

static belay_rc corrupt_event(struct txn *t, struct bytes process, int64_t seq)
{
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, "event", "process %.*s: event %lld cannot be read",
                 (int)process.len, (const char *)process.ptr, (long long)seq);

    err_entity(txn_error(t), process);
    return rc;
}

/* A text of an object, in the arena; ptr NULL where it is absent.  False: no memory. */
static bool take_text(const json_t *o, const char *key, struct belay_arena *a,
                      struct bytes *out)
{
    const json_t *text = json_object_get(o, key);

    *out = bytes_of(NULL, 0);
    return !json_is_string(text) ||
           arena_copy(a, bytes_of(json_string_value(text), json_string_length(text)),
                      out);
}

static bool take_texts(const json_t *o, struct belay_arena *a, struct proc_event *out)
{
    const json_t *w = json_object_get(o, "wake");

    out->wakes = json_is_object(w);
    return take_text(o, "type", a, &out->type) && take_text(o, "hash", a, &out->hash) &&
           take_text(o, "key", a, &out->key) && take_text(w, "id", a, &out->wake.id) &&
           take_text(w, "session", a, &out->wake.session) &&
           take_text(w, "frame", a, &out->wake.frame) &&
           take_text(w, "dedupe", a, &out->wake.dedupe) &&
           take_text(w, "input", a, &out->wake.input);
}

/* The number of a word, 0 where there is none; false: it is no such word. */
static bool take_word(const json_t *o, const char *key, const char *(*name)(int),
                      int *out)
{
    const char *text = json_string_value(json_object_get(o, key));

    *out = 0;
    for (int i = 1; text && name(i); i++) {
        if (strcmp(text, name(i)) == 0)
            *out = i;
    }
    return !text || *out > 0;
}

belay_rc event_read(struct bytes data, struct belay_arena *a, struct proc_event *out,
                    struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *o = NULL;
    const uint8_t *end = data.len > 0 ? memchr(data.ptr, '\n', data.len) : NULL;
    struct proc_event e = { .seq = 0 };

    if (!end)
        return BELAY_CORRUPT;
    size_t len = (size_t)(end - data.ptr);
    belay_rc rc = json_read(bytes_of(data.ptr, len), HEADER_MAX, &o, err);
    if (rc)
        return rc == BELAY_INVALID ? BELAY_CORRUPT : rc;
    e.at_ms = json_integer_value(json_object_get(o, "at"));
    e.fence = json_integer_value(json_object_get(o, "fence"));
    e.apart = json_is_true(json_object_get(o, "apart"));
    e.payload = bytes_of(end + 1, data.len - len - 1);
    if (!take_texts(o, a, &e))
        return err_no_memory(err, "an event");
    if (!take_word(o, "authority", proc_authority_name, &e.authority) ||
        !take_word(o, "terminal", proc_status_name, &e.terminal) || !e.type.ptr ||
        !e.hash.ptr || (e.wakes && (!e.wake.id.ptr || !e.wake.session.ptr)))
        return BELAY_CORRUPT;
    *out = e;
    return BELAY_OK;
}

belay_rc event_decode(struct txn *t, struct bytes process,
                      const struct log_entry *entry, struct proc_event *out)
{
    belay_rc rc = event_read(entry->data, txn_arena(t), out, txn_error(t));

    if (rc == BELAY_CORRUPT)
        return corrupt_event(t, process, entry->seq);
    out->seq = entry->seq;
    return rc;
}

/* --- what is beside --- */

belay_rc event_fetch(struct txn *t, struct bytes process, struct proc_event *events,
                     size_t n, const struct row **wakes)
{
    struct belay_arena *a = txn_arena(t);
    struct value(*keys)[2] = arena_zalloc(a, n, sizeof(*keys));
    struct row_want *wants = arena_zalloc(a, 2 * n, sizeof(*wants));
    const struct row **rows = arena_zalloc(a, 2 * n, sizeof(*rows));
    size_t asked = 0, at = 0;

    if (!keys || !wants || !rows)
        return err_no_memory(txn_error(t), "events");
    for (size_t i = 0; i < n; i++) {
        keys[i][0] = value_text(process);
        keys[i][1] = value_i64(events[i].seq);
        if (events[i].apart)
            wants[asked++] = (struct row_want){ &row_process_payload, keys[i] };
        if (events[i].wakes)
            wants[asked++] = (struct row_want){ &row_process_wake, keys[i] };
    }
    belay_rc rc = asked > 0 ? txn_get_many(t, wants, asked, rows) : BELAY_OK;
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        wakes[i] = NULL;
        if (events[i].apart && !rows[at])
            return corrupt_event(t, process, events[i].seq);
        if (events[i].apart)
            events[i].payload = row_bytes(rows[at++], PROCESS_PAYLOAD_PAYLOAD);
        if (events[i].wakes)
            wakes[i] = rows[at++];
    }
    return rc;
}

belay_rc event_show(struct txn *t, const struct event_facts_of *of,
                    const struct proc_event *e, const struct row *wake_row,
                    struct belay_arena *a, struct belay_process_event *out)
{
    *out = (struct belay_process_event){ .sequence = e->seq,
                                         .payload_len = e->payload.len,
                                         .occurred_at_ms = e->at_ms,
                                         .terminal = e->terminal,
                                         .authority = e->authority,
                                         .fence = e->fence };
    if (!show_text(a, of->process, &out->process_id) ||
        !show_text(a, e->type, &out->event_type) ||
        !show_text(a, e->payload, &out->payload) ||
        !show_text(a, e->hash, &out->payload_hash) ||
        !show_text(a, e->key, &out->replay_key) ||
        !show_text(a, of->owner_session, &out->owner_session))
        return err_no_memory(txn_error(t), "an event");
    return e->wakes ? wake_show(t, of, e, wake_row, a, &out->wake) : BELAY_OK;
}
