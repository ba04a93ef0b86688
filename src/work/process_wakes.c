/* Lists of wakes: what became of each. */
#include "work/exec_show.h"
#include "work/process_event.h"

#define LOG_PAGE 128
#define PAGES_MAX 64

struct listing {
    const struct belay_wake_page *page;
    struct bytes id;
    const struct proc_reg *reg;
    size_t limit;

    /* Of one run of the body. */
    struct proc_event *events;
    size_t n;
    int64_t next;
    bool more, stale;
    struct belay_wakes out;
};

/* Events that wake, in the order of the log. */
static belay_rc find_all(struct txn *t, struct listing *l, struct bytes stream)
{
    struct log_entries page = { .n = 0 };

    l->more = true;
    for (int i = 0; i < PAGES_MAX && l->n < l->limit && l->more; i++) {
        belay_rc rc = txn_log_read(t, stream, l->next, LOG_PAGE, &page);
        for (size_t k = 0; k < page.n && l->n < l->limit && rc == BELAY_OK; k++) {
            rc = event_decode(t, l->id, &page.entry[k], &l->events[l->n]);
            l->next = page.entry[k].seq;
            l->n += rc == BELAY_OK && l->events[l->n].wakes;
        }
        if (rc)
            return rc;
        l->more = page.n == LOG_PAGE || (page.n > 0 && l->n == l->limit &&
                                         l->next < page.entry[page.n - 1].seq);
    }
    return BELAY_OK;
}

/* Those that are queued have an index. */
static belay_rc find_queued(struct txn *t, struct listing *l, struct bytes stream)
{
    struct log_entries page = { .n = 0 };
    struct bytes index;
    struct hits hits;

    if (!proc_name(WAKE_INDEX, l->id, txn_arena(t), &index))
        return err_no_memory(txn_error(t), "wakes");
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .min_rank = l->next + 1,
                               .max_rank = RANK_MAX,
                               .limit = l->limit };
    belay_rc rc = txn_scan(t, &scan, &hits);
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++) {
        int64_t seq = hits.hit[i].rank;
        rc = txn_log_read(t, stream, seq - 1, 1, &page);
        if (rc == BELAY_OK && (page.n == 0 || page.entry[0].seq != seq))
            rc = txn_fail(t, BELAY_CORRUPT, "event",
                          "process %.*s: event %lld is missing", (int)l->id.len,
                          (const char *)l->id.ptr, (long long)seq);
        if (rc == BELAY_OK)
            rc = event_decode(t, l->id, &page.entry[0], &l->events[l->n]);
        l->next = seq;
        l->n++;
    }
    l->more = rc == BELAY_OK && hits.n == l->limit;
    return rc;
}

static belay_rc show(struct txn *t, struct listing *l)
{
    struct belay_arena *a = txn_arena(t);
    const struct event_facts_of of = { l->id, l->reg->owner_session,
                                       l->reg->caused_by };
    const struct row **rows = arena_zalloc(a, l->n, sizeof(*rows));
    struct belay_wake *items = arena_zalloc(a, l->n, sizeof(*items));

    if (!rows || !items)
        return err_no_memory(txn_error(t), "wakes");
    belay_rc rc = event_fetch(t, l->id, l->events, l->n, rows);
    for (size_t i = 0; i < l->n && rc == BELAY_OK; i++) {
        const struct belay_wake *wake = NULL;
        rc = wake_show(t, &of, &l->events[i], rows[i], a, &wake);
        if (rc == BELAY_OK)
            items[i] = *wake;
    }
    l->out = (struct belay_wakes){ items, l->n, l->more ? l->next : 0 };
    return rc;
}

static belay_rc list_body(struct txn *t, void *arg)
{
    struct listing *l = arg;
    struct value key = value_text(l->id);
    struct bytes stream;
    const struct row *row;
    struct proc p;
    belay_rc rc = txn_peek(t, &row_process, &key, &row);

    l->n = 0;
    l->next = l->page->after;
    l->stale = false;
    if (rc == BELAY_OK)
        rc = proc_found(t, l->id, row, &p);
    if (rc)
        return rc;
    l->stale = !bytes_eq(p.hash, l->reg->hash);
    if (l->stale)
        return BELAY_OK;
    l->events = arena_zalloc(txn_arena(t), l->limit + 1, sizeof(*l->events));
    if (!l->events || !event_stream(l->id, txn_arena(t), &stream))
        return err_no_memory(txn_error(t), "wakes");
    rc = l->page->all ? find_all(t, l, stream) : find_queued(t, l, stream);
    return rc ? rc : show(t, l);
}

belay_rc proc_wakes(const struct proc_site *site, const struct belay_wake_page *page,
                    struct belay_arena *a, struct belay_wakes *out,
                    struct belay_error *err)
{
    struct listing l = { .page = page };
    belay_rc rc = proc_check_id(page->process_id, "process_id", err);

    if (rc == BELAY_OK && page->after < 0)
        rc = err_reason(err, BELAY_INVALID, "after", "after: is less than nothing");
    if (rc == BELAY_OK)
        rc = look_limit(page->limit, &l.limit, err);
    l.id = bytes_str(page->process_id);
    l.stale = true;
    for (bool anew = false; rc == BELAY_OK && l.stale; anew = true) {
        proc_reg_drop(l.reg);
        l.reg = NULL;
        rc = proc_reg_get(site, l.id, anew, &l.reg, err);
        if (rc == BELAY_OK)
            rc = txn_run(site->space, list_body, &l, &look_only, a, err);
    }
    proc_reg_drop(l.reg);
    if (rc == BELAY_OK)
        *out = l.out;
    return rc;
}
