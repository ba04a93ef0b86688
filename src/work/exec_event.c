/* Telling what happened: the events of one commit are one entry of the feed.  This is in
 * the way of every claim and every completion, so it writes text and builds nothing. */
#include "base/json.h"
#include "work/exec_show.h"

/* An entry is closed behind this; one event is a few KiB at most. */
#define ENTRY_MAX ((size_t)256 << 10)
#define EVENT_MAX ((size_t)32 << 10)

void event_list_init(struct event_list *l, struct txn *t)
{
    *l = (struct event_list){ .t = t };
}

void event_list_release(struct event_list *l)
{
    buf_release(&l->text);
    l->n = 0;
}

/* ,"name":"text", or nothing where it is empty. */
static void add_text(struct buf *out, const char *before, struct bytes text)
{
    if (text.len == 0)
        return;
    buf_append_str(out, before);
    json_append_string(out, text);
}

/* A JSON result is kept as text, whatever its depth. */
static void add_result(struct buf *out, const struct event_facts *f)
{
    if (!f->result.ptr)
        return;
    if (f->result.len > EVENT_PAYLOAD_MAX) {
        buf_append_str(out, ",\"payload_apart\":true");
    } else if (f->result_is_json) {
        buf_append_str(out, ",\"payload\":");
        json_append_string(out, f->result);
    } else {
        buf_append_str(out, ",\"payload_base64\":\"");
        base64_append(out, f->result);
        buf_append_char(out, '"');
    }
}

static void write_event(struct buf *out, const struct exec *e,
                        const struct event_facts *f)
{
    buf_append_str(out, "{\"type\":\"");
    buf_append_str(out, vector_name(BELAY_DIM_EVENT, (int)f->type));
    buf_append_str(out, "\",\"execution\":");
    json_append_string(out, e->id);
    add_text(out, ",\"lane\":", exec_bytes(e, EXEC_LANE));
    buf_append_str(out, ",\"at\":");
    buf_append_i64(out, f->at_ms);
    if (f->fence > 0) {
        buf_append_str(out, ",\"fence\":");
        buf_append_i64(out, f->fence);
    }
    add_text(out, ",\"worker\":", f->worker);
    add_text(out, ",\"reason\":", f->reason);
    add_text(out, ",\"flow\":", exec_bytes(e, EXEC_FLOW));
    if (f->type == BELAY_EVENT_COMPLETION) {
        buf_append_str(out, ",\"outcome\":\"");
        buf_append_str(out, vector_name(BELAY_DIM_OUTCOME, (int)f->outcome));
        buf_append_char(out, '"');
        add_result(out, f);
    }
    buf_append_char(out, '}');
}

/* What is there so far, as an entry. */
static belay_rc close_entry(struct event_list *l)
{
    buf_append_char(&l->text, ']');
    belay_rc rc = l->text.failed ? err_no_memory(txn_error(l->t), "events")
                                 : txn_feed_append(l->t, bytes_str(EXECUTION_FEED),
                                                   buf_view(&l->text), NULL);
    buf_reset(&l->text);
    return rc;
}

belay_rc event_add(struct event_list *l, const struct exec *e,
                   const struct event_facts *f)
{
    buf_append_char(&l->text, l->text.len > 0 ? ',' : '[');
    write_event(&l->text, e, f);
    l->n++;
    if (l->text.failed)
        return err_no_memory(txn_error(l->t), "events");
    return l->text.len + EVENT_MAX > ENTRY_MAX ? close_entry(l) : BELAY_OK;
}

belay_rc event_flush(struct event_list *l)
{
    belay_rc rc = BELAY_OK;

    if (l->n == 0)
        return BELAY_OK;
    if (l->text.len > 0)
        rc = close_entry(l);
    l->n = 0;
    return rc ? rc : txn_wake(l->t, bytes_str(EVENTS_TOPIC));
}
