/* Reading events, also as they come, and waiting for the end of a process.
 *
 * No guards: the process is looked at first, then its log.  Whoever appends writes the
 * process, so all events up to the head that it shows are there, and none between them
 * can come later (E2). */
#include "work/exec_show.h"
#include "work/process_event.h"

/* Events of one question, questions of one look; a page ends early behind this much. */
#define LOG_PAGE 128
#define PAGES_MAX 64
#define BYTES_MAX ((size_t)8 << 20)

struct reading {
    const struct proc_site *site;
    const struct belay_process_event_request *request;
    struct bytes id, type; /* type.ptr NULL: any */
    const struct proc_reg *reg;
    size_t limit;
    int64_t after;
    bool placed; /* `tail` was turned into `after` */
    struct belay_arena *arena;
    struct arena_mark mark; /* where a look begins */

    /* Of one run of the body. */
    struct bytes stream;
    struct proc_event *events;
    int64_t next; /* looked at up to here */
    size_t bytes;
    bool end, stale;
    struct belay_process_events out;
};

/* --- one look --- */

/* The events of a page that are asked for. */
static belay_rc take(struct txn *t, struct reading *r, const struct log_entries *page)
{
    for (size_t i = 0; i < page->n && r->out.n < r->limit && r->bytes < BYTES_MAX;
         i++) {
        struct proc_event *e = &r->events[r->out.n];
        belay_rc rc = event_decode(t, r->id, &page->entry[i], e);
        if (rc)
            return rc;
        r->next = e->seq;
        if (r->type.ptr && !bytes_eq(r->type, e->type))
            continue;
        r->bytes += page->entry[i].data.len;
        r->out.n++;
    }
    return BELAY_OK;
}

static belay_rc read_log(struct txn *t, struct reading *r)
{
    for (int pages = 0;
         pages < PAGES_MAX && r->out.n < r->limit && !r->end && r->bytes < BYTES_MAX;
         pages++) {
        size_t room = r->limit - r->out.n;
        size_t want = r->type.ptr || room > LOG_PAGE ? LOG_PAGE : room;
        struct log_entries page = { .n = 0 };
        belay_rc rc = txn_log_read(t, r->stream, r->next, want, &page);
        if (rc == BELAY_OK)
            rc = take(t, r, &page);
        if (rc)
            return rc;
        r->end = page.n < want;
    }
    return BELAY_OK;
}

/* One event by its number; pages are kept as long as they are of use. */
static belay_rc read_one(struct txn *t, struct reading *r, int64_t seq,
                         struct log_entries *page)
{
    struct proc_event *e = &r->events[r->out.n];
    size_t at = page->n;

    for (size_t i = 0; i < page->n; i++) {
        if (page->entry[i].seq == seq)
            at = i;
    }
    if (at == page->n) {
        belay_rc rc = txn_log_read(t, r->stream, seq - 1, LOG_PAGE, page);
        if (rc)
            return rc;
        if (page->n == 0 || page->entry[0].seq != seq)
            return txn_fail(t, BELAY_CORRUPT, "event",
                            "process %.*s: event %lld is missing", (int)r->id.len,
                            (const char *)r->id.ptr, (long long)seq);
        at = 0;
    }
    belay_rc rc = event_decode(t, r->id, &page->entry[at], e);
    if (rc == BELAY_OK && (!r->type.ptr || bytes_eq(r->type, e->type)))
        r->out.n++;
    return rc;
}

static belay_rc read_wakes(struct txn *t, struct reading *r)
{
    struct log_entries page = { .n = 0 };
    struct bytes index;
    struct hits hits;

    if (!proc_name(WAKE_INDEX, r->id, txn_arena(t), &index))
        return err_no_memory(txn_error(t), "events");
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .min_rank = r->next + 1,
                               .max_rank = RANK_MAX,
                               .limit = r->limit };
    belay_rc rc = txn_scan(t, &scan, &hits);
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++) {
        rc = read_one(t, r, hits.hit[i].rank, &page);
        r->next = hits.hit[i].rank;
    }
    r->end = rc == BELAY_OK && hits.n < r->limit;
    if (r->end && r->out.last_sequence > r->next)
        r->next = r->out.last_sequence;
    return rc;
}

static belay_rc show(struct txn *t, struct reading *r)
{
    struct belay_arena *a = txn_arena(t);
    const struct event_facts_of of = { r->id, r->reg->owner_session,
                                       r->reg->caused_by };
    const struct row **wakes = arena_zalloc(a, r->out.n, sizeof(*wakes));
    struct belay_process_event *items = arena_zalloc(a, r->out.n, sizeof(*items));

    if (!wakes || !items)
        return err_no_memory(txn_error(t), "events");
    belay_rc rc = event_fetch(t, r->id, r->events, r->out.n, wakes);
    for (size_t i = 0; i < r->out.n && rc == BELAY_OK; i++)
        rc = event_show(t, &of, &r->events[i], wakes[i], a, &items[i]);
    r->out.items = items;
    return rc;
}

static belay_rc place(struct reading *r)
{
    int64_t tail = r->request->tail;

    if (!r->placed && tail > 0)
        r->after = r->out.last_sequence > tail ? r->out.last_sequence - tail : 0;
    r->placed = true;
    return BELAY_OK;
}

static belay_rc read_body(struct txn *t, void *arg)
{
    struct reading *r = arg;
    struct value key = value_text(r->id);
    const struct row *row;
    struct proc p;
    belay_rc rc = txn_peek(t, &row_process, &key, &row);

    r->out = (struct belay_process_events){ .n = 0 };
    r->bytes = 0;
    r->end = r->stale = false;
    if (rc == BELAY_OK)
        rc = proc_found(t, r->id, row, &p);
    if (rc)
        return rc;
    r->stale = !bytes_eq(p.hash, r->reg->hash);
    if (r->stale)
        return BELAY_OK;
    r->out.last_sequence = p.last_seq;
    r->out.status = p.status;
    rc = place(r);
    r->next = r->after;
    r->events = arena_zalloc(txn_arena(t), r->limit, sizeof(*r->events));
    if (!r->events || !event_stream(r->id, txn_arena(t), &r->stream))
        return err_no_memory(txn_error(t), "events");
    if (rc == BELAY_OK)
        rc = r->request->wakes_only ? read_wakes(t, r) : read_log(t, r);
    return rc ? rc : show(t, r);
}

static belay_rc look(void *arg, enum look *out, struct belay_error *err)
{
    struct reading *r = arg;
    const struct txn_options options = { .cancel = r->request->cancel,
                                         .read_only = true };
    belay_rc rc;

    do {
        arena_rewind(r->arena, r->mark);
        rc = txn_run(r->site->space, read_body, r, &options, r->arena, err);
        if (rc == BELAY_OK && r->stale) {
            proc_reg_drop(r->reg);
            r->reg = NULL;
            rc = proc_reg_get(r->site, r->id, true, &r->reg, err);
            continue;
        }
        if (rc == BELAY_OK && r->out.n == 0)
            r->after = r->next; /* what was looked at is not looked at again */
    } while (rc == BELAY_OK && (r->stale || (r->out.n == 0 && !r->end)));
    *out = r->out.n > 0 ? LOOK_DONE : LOOK_NOTHING;
    return rc;
}

/* --- events --- */

static belay_rc check_request(const struct belay_process_event_request *request,
                              struct belay_error *err)
{
    belay_rc rc = proc_check_id(request->process_id, "process_id", err);

    if (rc == BELAY_OK && request->event_type)
        rc = proc_check_id(request->event_type, "event_type", err);
    if (rc == BELAY_OK && (request->after < 0 || request->tail < 0))
        rc = err_reason(err, BELAY_INVALID, "after", "after: is less than nothing");
    return rc;
}

/* *out_found: not only because the time was over. */
static belay_rc read_events(const struct proc_site *site,
                            const struct belay_process_event_request *request,
                            struct belay_arena *a, struct belay_process_events *out,
                            bool *out_found, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct reading r = { .site = site,
                         .request = request,
                         .after = request->after,
                         .arena = a,
                         .mark = arena_mark(a) };
    struct exec_watch watching = { .space = site->space,
                                   .wait_ms = request->wait_ms,
                                   .cancel = request->cancel,
                                   .look = look,
                                   .arg = &r };
    belay_rc rc = check_request(request, err);

    if (rc == BELAY_OK)
        rc = look_limit(request->limit, &r.limit, err);
    if (rc)
        return rc;
    r.id = bytes_str(request->process_id);
    if (request->event_type)
        r.type = bytes_str(request->event_type);
    if (!proc_topic(r.id, &arena, &watching.topic))
        return err_no_memory(err, "a topic");
    rc = proc_reg_get(site, r.id, false, &r.reg, err);
    if (rc == BELAY_OK)
        rc = exec_watch(&watching, out_found, err);
    proc_reg_drop(r.reg);
    if (rc)
        return rc;
    *out = r.out;
    out->next_after = r.next;
    return BELAY_OK;
}

belay_rc proc_events(const struct proc_site *site,
                     const struct belay_process_event_request *request,
                     struct belay_arena *a, struct belay_process_events *out,
                     struct belay_error *err)
{
    bool found = false;

    return read_events(site, request, a, out, &found, err);
}

belay_rc proc_wait_event(const struct proc_site *site,
                         const struct belay_process_event_request *request,
                         struct belay_arena *a, const struct belay_process_event **out,
                         struct belay_error *err)
{
    struct belay_process_events events;
    bool found = false;
    belay_rc rc = read_events(site, request, a, &events, &found, err);

    if (rc)
        return rc;
    if (found) {
        *out = events.items;
        return BELAY_OK;
    }
    rc = err_set(err, BELAY_TIMEOUT, "process %.100s: no %.64s after %lld ms",
                 request->process_id, request->event_type, (long long)request->wait_ms);
    err_entity(err, bytes_str(request->process_id));
    return rc;
}

/* --- the end --- */

struct awaiting {
    const struct proc_site *site;
    struct bytes id;
    struct belay_cancel *cancel;
    struct belay_arena *arena;
    struct arena_mark mark;
    const struct belay_process *out;
};

static belay_rc await_body(struct txn *t, void *arg)
{
    struct awaiting *w = arg;
    struct value key = value_text(w->id);
    const struct row *row;
    struct proc p;
    belay_rc rc = txn_peek(t, &row_process, &key, &row);

    w->out = NULL;
    if (rc == BELAY_OK)
        rc = proc_found(t, w->id, row, &p);
    if (rc || p.status == BELAY_PROCESS_RUNNING)
        return rc;
    return proc_describe(t, w->id, txn_arena(t), &w->out);
}

static belay_rc look_at_end(void *arg, enum look *out, struct belay_error *err)
{
    struct awaiting *w = arg;
    const struct txn_options options = { .cancel = w->cancel, .read_only = true };

    arena_rewind(w->arena, w->mark);
    belay_rc rc = txn_run(w->site->space, await_body, w, &options, w->arena, err);
    *out = rc == BELAY_OK && w->out ? LOOK_DONE : LOOK_NOTHING;
    return rc;
}

belay_rc proc_await(const struct proc_site *site, const char *process_id,
                    int64_t wait_ms, struct belay_cancel *cancel, struct belay_arena *a,
                    const struct belay_process **out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct awaiting w = { .site = site,
                          .id = bytes_str(process_id),
                          .cancel = cancel,
                          .arena = a,
                          .mark = arena_mark(a) };
    struct exec_watch watching = { .space = site->space,
                                   .wait_ms = wait_ms,
                                   .cancel = cancel,
                                   .look = look_at_end,
                                   .arg = &w };
    bool done = false;
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc)
        return rc;
    if (!proc_topic(w.id, &arena, &watching.topic))
        return err_no_memory(err, "a topic");
    rc = exec_watch(&watching, &done, err);
    if (rc)
        return rc;
    if (done) {
        *out = w.out;
        return BELAY_OK;
    }
    rc = err_set(err, BELAY_TIMEOUT, "process %.100s: is running after %lld ms",
                 process_id, (long long)wait_ms);
    err_entity(err, w.id);
    return rc;
}
