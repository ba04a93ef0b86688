/* What has changed about processes: the feed, in pages and as it goes on. */
#include "base/json.h"
#include "work/exec_show.h"
#include "work/process_rows.h"

#define ENTRY_MAX ((size_t)64 << 10)

struct reading {
    const struct proc_site *site;
    const struct belay_change_request *request;
    struct event_place place;
    size_t limit;
    struct belay_arena *arena;
    struct arena_mark mark;
    bool trimmed; /* in a look before */

    /* Of one run of the body. */
    struct event_place next;
    struct belay_process_changes out;
};

static belay_rc corrupt_change(struct txn *t)
{
    return txn_fail(t, BELAY_CORRUPT, "feed", "a change of processes cannot be read");
}

static struct bytes text_of(const json_t *o, const char *key)
{
    const json_t *text = json_object_get(o, key);

    return json_is_string(text)
               ? bytes_of(json_string_value(text), json_string_length(text))
               : bytes_of(NULL, 0);
}

static belay_rc decode(struct txn *t, const struct feed_entry *entry,
                       struct belay_process_change *out)
{
    CLEANUP(json_decrefp) json_t *changes = NULL;
    const struct event_place place = { entry->pos, 0 };
    struct belay_arena *a = txn_arena(t);
    belay_rc rc = json_read(entry->data, ENTRY_MAX, &changes, txn_error(t));

    if (rc == BELAY_INVALID)
        return corrupt_change(t);
    if (rc)
        return rc;
    const json_t *o = json_array_get(changes, 0);
    struct bytes kind = text_of(o, "change"), id = text_of(o, "process");
    *out = (struct belay_process_change){
        .status = proc_status_of(text_of(o, "status")),
        .at_ms = json_integer_value(json_object_get(o, "at")),
        .sequence = json_integer_value(json_object_get(o, "seq")),
    };
    for (int i = 1; kind.ptr && proc_change_name(i); i++) {
        if (bytes_eq(kind, bytes_str(proc_change_name(i))))
            out->kind = i;
    }
    if (out->kind == 0 || !id.ptr || out->status < 0)
        return corrupt_change(t);
    if (!event_cursor_write(&place, a, &out->cursor) ||
        !show_text(a, id, &out->process_id) ||
        !show_text(a, text_of(o, "hash"), &out->registration_hash) ||
        !show_text(a, text_of(o, "detail"), &out->detail))
        return err_no_memory(txn_error(t), "changes");
    return BELAY_OK;
}

static belay_rc read_body(struct txn *t, void *arg)
{
    struct reading *r = arg;
    struct feed_entries feed;
    belay_rc rc =
        txn_feed_read(t, bytes_str(PROCESS_FEED), r->place.pos, r->limit, &feed);

    r->out = (struct belay_process_changes){ .n = 0 };
    r->next = r->place;
    if (rc)
        return rc;
    struct belay_process_change *items =
        arena_zalloc(txn_arena(t), feed.n, sizeof(*items));
    if (!items)
        return err_no_memory(txn_error(t), "changes");
    r->out.trimmed = feed_pos_cmp(feed.trimmed, r->place.pos) > 0;
    if (r->out.trimmed)
        r->next.pos = feed.trimmed;
    for (size_t i = 0; i < feed.n && rc == BELAY_OK; i++) {
        rc = decode(t, &feed.entry[i], &items[i]);
        r->next.pos = feed.entry[i].pos;
    }
    r->out.items = items;
    r->out.n = feed.n;
    if (rc == BELAY_OK && !event_cursor_write(&r->next, txn_arena(t), &r->out.cursor))
        rc = err_no_memory(txn_error(t), "changes");
    return rc;
}

static belay_rc look(void *arg, enum look *out, struct belay_error *err)
{
    struct reading *r = arg;
    const struct txn_options options = { .cancel = r->request->cancel,
                                         .read_only = true };

    arena_rewind(r->arena, r->mark);
    belay_rc rc = txn_run(r->site->space, read_body, r, &options, r->arena, err);
    if (rc)
        return rc;
    *out = r->out.n > 0 ? LOOK_DONE : LOOK_NOTHING;
    r->trimmed |= r->out.trimmed;
    r->place = r->next;
    return BELAY_OK;
}

belay_rc proc_changes(const struct proc_site *site,
                      const struct belay_change_request *request, struct belay_arena *a,
                      struct belay_process_changes *out, struct belay_error *err)
{
    struct reading r = {
        .site = site, .request = request, .arena = a, .mark = arena_mark(a)
    };
    const struct exec_watch watching = { .space = site->space,
                                         .topic = bytes_str(CHANGES_TOPIC),
                                         .wait_ms = request->wait_ms,
                                         .cancel = request->cancel,
                                         .late = true,
                                         .look = look,
                                         .arg = &r };
    bool done = false;
    belay_rc rc = look_limit(request->limit, &r.limit, err);

    if (rc == BELAY_OK && request->after)
        rc = event_cursor_read(request->after, &r.place, err);
    if (rc == BELAY_OK)
        rc = exec_watch(&watching, &done, err);
    if (rc)
        return rc;
    *out = r.out;
    out->trimmed = r.trimmed && request->after;
    return BELAY_OK;
}
