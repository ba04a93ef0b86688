/* Following what happened.
 *
 * A place in the feed is behind an entry, and some events of the one that follows it.
 * Nothing ever appears before an entry that was read (the feed is prefix-closed), so that
 * one stays the same until it is trimmed, which is told. */
#include "store/blob.h"
#include "work/exec_show.h"

/* Questions of one look. */
#define PAGES_MAX 50
/* A page ends early behind this much payload. */
#define PAYLOADS_MAX ((size_t)16 << 20)

/* --- pages --- */

static belay_rc read_page(struct event_follow *f, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { .first = NULL };
    const struct txn_options options = { .cancel = f->request->cancel,
                                         .read_only = true };

    f->mark = arena_mark(f->arena);
    belay_rc rc = txn_run(f->site->space, event_page, f, &options, &scratch, err);
    if (rc)
        return rc;
    f->n += f->found;
    f->place = f->next;
    f->trimmed |= f->lost;
    return BELAY_OK;
}

static belay_rc look(void *arg, enum look *out, struct belay_error *err)
{
    struct event_follow *f = arg;
    struct event_place before = f->place;
    belay_rc rc = BELAY_OK;

    f->end = false;
    for (unsigned i = 0; i < PAGES_MAX && rc == BELAY_OK && f->n < f->limit && !f->end;
         i++)
        rc = read_page(f, err);
    if (f->n > 0 || !f->end)
        *out = LOOK_DONE;
    else
        *out = feed_pos_cmp(before.pos, f->place.pos) != 0 ? LOOK_NEWS : LOOK_NOTHING;
    return rc;
}

/* Results that are blobs; a page ends early where they are too much. */
static belay_rc load_blobs(struct event_follow *f, struct belay_error *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < f->n; i++) {
        struct belay_event *e = &f->items[i];
        struct bytes content;
        belay_rc rc = f->blobs[i]
                          ? blob_load(f->site->space, f->blobs[i],
                                      (size_t)BLOB_SIZE_MAX, f->arena, &content, err)
                          : BELAY_NOT_FOUND;
        if (rc && rc != BELAY_NOT_FOUND)
            return rc;
        if (rc == BELAY_OK) {
            e->payload = content.ptr;
            e->payload_len = content.len;
        } else if (f->blobs[i]) { /* it went while the page was read */
            e->payload_gone = true;
            e->payload_is_json = false;
        }
        bytes += e->payload_len;
        if (bytes > PAYLOADS_MAX && i + 1 < f->n) {
            f->n = i + 1;
            return event_cursor_read(e->cursor, &f->place, err);
        }
    }
    return BELAY_OK;
}

/* --- the end of the feed --- */

struct ending {
    struct feed_pos last;
};

/* Goes on to the first entry behind `from`, if there is one. */
static belay_rc jump(struct txn *t, struct ending *e, struct feed_pos from, bool *out)
{
    struct feed_entries feed;
    belay_rc rc = txn_feed_read(t, bytes_str(EXECUTION_FEED), from, 1, &feed);

    /* A driver that counts with one number does not look at the others. */
    *out = rc == BELAY_OK && feed.n > 0 && feed_pos_cmp(feed.entry[0].pos, from) > 0;
    if (*out)
        e->last = feed.entry[0].pos;
    else if (rc == BELAY_OK && feed_pos_cmp(feed.trimmed, e->last) > 0)
        e->last = feed.trimmed;
    return rc;
}

/* The last entry but those right behind it: longer and longer leaps, then shorter ones. */
static belay_rc leap(struct txn *t, struct ending *e, bool by_epoch)
{
    bool growing = true, hit;

    for (int64_t step = 1; step > 0;) {
        struct feed_pos from = { e->last.epoch + (by_epoch ? step : 0),
                                 by_epoch ? 0 : e->last.major + step, 0 };
        belay_rc rc = jump(t, e, from, &hit);
        if (rc)
            return rc;
        growing = growing && hit && step < RANK_MAX;
        step = growing ? step * 2 : step / 2;
    }
    return BELAY_OK;
}

/* A feed does not tell where it ends, but what is behind a position, there or not. */
static belay_rc end_body(struct txn *t, void *arg)
{
    struct ending *e = arg;
    bool hit = false;

    *e = (struct ending){ .last = { 0, 0, 0 } };
    belay_rc rc = jump(t, e, e->last, &hit);
    if (rc == BELAY_OK && hit)
        rc = leap(t, e, true);
    if (rc == BELAY_OK && hit)
        rc = leap(t, e, false);
    while (rc == BELAY_OK && hit)
        rc = jump(t, e, e->last, &hit);
    return rc;
}

static belay_rc find_place(struct event_follow *f, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { .first = NULL };
    const char *after = f->request->after;
    struct ending ending;

    if (!after)
        return BELAY_OK;
    if (strcmp(after, "now") != 0)
        return event_cursor_read(after, &f->place, err);
    belay_rc rc = txn_run(f->site->space, end_body, &ending, &look_only, &scratch, err);
    if (rc == BELAY_OK)
        f->place = (struct event_place){ ending.last, 0 };
    return rc;
}

/* --- the request --- */

static belay_rc take_filter(struct event_follow *f, struct belay_error *err)
{
    const struct belay_scanner_filter *filter = f->request->filter;

    if (f->request->execution_id) {
        f->id = bytes_str(f->request->execution_id);
        belay_rc rc = exec_check_id(f->request->execution_id, err);
        if (rc)
            return rc;
    }
    if (!filter)
        return BELAY_OK;
    if (!filter->tag_key != !filter->tag_value)
        return err_reason(err, BELAY_INVALID, "tag",
                          "tag: a key and a value are needed");
    if (filter->ns)
        f->filter.ns = bytes_str(filter->ns);
    if (filter->tag_key) {
        f->filter.tag_key = bytes_str(filter->tag_key);
        f->filter.tag_value = bytes_str(filter->tag_value);
    }
    return BELAY_OK;
}

static belay_rc follow(struct event_follow *f, struct belay_events *out,
                       struct belay_error *err)
{
    struct exec_watch watching = { .space = f->site->space,
                                   .topic = bytes_str(EVENTS_TOPIC),
                                   .wait_ms = f->request->wait_ms,
                                   .cancel = f->request->cancel,
                                   .late = true,
                                   .look = look,
                                   .arg = f };
    bool done = false;
    belay_rc rc = find_place(f, err);

    if (rc == BELAY_OK)
        rc = exec_watch(&watching, &done, err);
    if (rc == BELAY_OK)
        rc = load_blobs(f, err);
    if (rc)
        return rc;
    *out = (struct belay_events){ .items = f->items,
                                  .n = f->n,
                                  .trimmed = f->trimmed && f->request->after };
    if (!event_cursor_write(&f->place, f->arena, &out->cursor))
        return err_no_memory(err, "events");
    return BELAY_OK;
}

belay_rc exec_events(const struct exec_site *site,
                     const struct belay_event_request *request, struct belay_arena *a,
                     struct belay_events *out, struct belay_error *err)
{
    struct event_follow f = {
        .site = site, .request = request, .ns = space_name(site->space), .arena = a
    };
    struct belay_events page;
    belay_rc rc = look_limit(request->limit, &f.limit, err);

    if (rc == BELAY_OK)
        rc = take_filter(&f, err);
    if (rc)
        return rc;
    f.items = arena_zalloc(a, f.limit, sizeof(*f.items));
    f.blobs = arena_zalloc(a, f.limit, sizeof(*f.blobs));
    if (!f.items || !f.blobs)
        return err_no_memory(err, "events");
    rc = follow(&f, &page, err);
    if (rc == BELAY_OK)
        *out = page;
    return rc;
}
