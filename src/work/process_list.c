/* Lists of processes, a page at a time, along the index that fits the filter best. */
#include "work/exec_show.h"
#include "work/process_rows.h"

#define SCANS_MAX 8

struct listing {
    const struct belay_process_page *page;
    struct bytes index;
    struct scan_cursor after, last;
    bool begun, more;
    bool by_age; /* ranks of the index are times of creation */
    size_t limit, looked, n;
    struct belay_process *items;
};

static bool matches_text(const char *want, const struct row *row, unsigned column)
{
    return !want || bytes_eq(row_bytes(row, column), bytes_str(want));
}

static bool matches(const struct listing *l, const struct proc *p,
                    const struct row *spec)
{
    const struct belay_process_page *page = l->page;
    int64_t created = proc_i64(p, PROCESS_CREATED_AT_MS, 0);

    return p->status != PROC_DELETING &&
           (page->status == BELAY_PROCESS_ANY || p->status == page->status) &&
           matches_text(page->owner_session, spec, PROCESS_SPEC_OWNER_SESSION) &&
           matches_text(page->kind, spec, PROCESS_SPEC_KIND) &&
           matches_text(page->host_profile_id, spec, PROCESS_SPEC_HOST_PROFILE) &&
           created >= page->created_from_ms &&
           (page->created_to_ms == 0 || created <= page->created_to_ms);
}

static belay_rc add(struct txn *t, struct listing *l, const struct hit *hit)
{
    const struct proc_parts parts = { hit->rows[1], hit->rows[2], hit->rows[3] };
    struct proc p;

    if (!hit->rows[0] || !hit->rows[1]) {
        belay_rc rc = txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                               "process: one stands in %.*s and has no row",
                               (int)hit->index.len, (const char *)hit->index.ptr);
        err_entity(txn_error(t), hit->member);
        return rc;
    }
    belay_rc rc = proc_of(t, hit->rows[0], &p);
    if (rc || !matches(l, &p, hit->rows[1]))
        return rc;
    return proc_decode(t, &p, &parts, false, txn_arena(t), &l->items[l->n++]);
}

static belay_rc list_body(struct txn *t, void *arg)
{
    static const struct fetch fetch[] = { { &row_process, NULL },
                                          { &row_process_spec, NULL },
                                          { &row_process_ref, NULL },
                                          { &row_process_end, NULL } };
    struct listing *l = arg;
    int64_t to = l->page->created_to_ms;
    const struct scan scan = { .indexes = &l->index,
                               .n_indexes = 1,
                               .min_rank = l->by_age ? l->page->created_from_ms : 0,
                               .max_rank = l->by_age && to > 0 ? to : RANK_MAX,
                               .after = l->begun ? &l->after : NULL,
                               .limit = l->limit - l->looked,
                               .fetch = fetch,
                               .n_fetch = COUNT_OF(fetch) };
    struct hits hits;
    belay_rc rc = txn_scan(t, &scan, &hits);

    l->n = l->looked;
    if (rc)
        return rc;
    for (size_t i = 0; i < hits.n && rc == BELAY_OK; i++)
        rc = add(t, l, &hits.hit[i]);
    l->more = hits.n == scan.limit;
    if (hits.n > 0)
        l->last = (struct scan_cursor){ .rank = hits.hit[hits.n - 1].rank,
                                        .member = hits.hit[hits.n - 1].member,
                                        .index = hits.hit[hits.n - 1].index };
    return rc;
}

static belay_rc check_page(const struct belay_process_page *page,
                           struct belay_error *err)
{
    const struct {
        const char *text, *reason;
    } texts[] = { { page->owner_session, "owner" },
                  { page->kind, "kind" },
                  { page->host_profile_id, "host_profile_id" } };
    belay_rc rc = BELAY_OK;

    if (page->status != BELAY_PROCESS_ANY && !proc_status_name(page->status))
        return err_reason(err, BELAY_INVALID, "status", "status: there is no %d",
                          (int)page->status);
    if (page->created_from_ms < 0 || page->created_to_ms < 0)
        return err_reason(err, BELAY_INVALID, "created", "created: a time is negative");
    for (size_t i = 0; i < COUNT_OF(texts) && rc == BELAY_OK; i++) {
        if (texts[i].text)
            rc = proc_check_id(texts[i].text, texts[i].reason, err);
    }
    return rc;
}

/* Few run, and few are one owner's: of both the one that is asked for most exactly. */
static bool choose_index(struct listing *l, struct belay_arena *a)
{
    const struct belay_process_page *page = l->page;

    l->by_age = page->status == BELAY_PROCESS_ANY || page->owner_session;
    if (page->owner_session)
        return proc_name(PROCESS_OWNER_INDEX, bytes_str(page->owner_session), a,
                         &l->index);
    if (page->status != BELAY_PROCESS_ANY)
        return proc_status_index(bytes_str(proc_status_name(page->status)), a,
                                 &l->index);
    l->index = bytes_str(PROCESS_INDEX);
    return true;
}

belay_rc proc_list(const struct proc_site *site, const struct belay_process_page *page,
                   struct belay_arena *a, struct belay_processes *out,
                   struct belay_error *err)
{
    struct listing l = { .page = page };
    const char *next = NULL;
    belay_rc rc = check_page(page, err);

    if (rc == BELAY_OK)
        rc = look_limit(page->limit, &l.limit, err);
    if (rc == BELAY_OK && page->cursor)
        rc = list_cursor_read(page->cursor, a, &l.after, err);
    if (rc)
        return rc;
    l.begun = page->cursor != NULL;
    l.items = arena_zalloc(a, l.limit, sizeof(*l.items));
    if (!l.items || !choose_index(&l, a))
        return err_no_memory(err, "processes");
    for (int i = 0; i < SCANS_MAX && rc == BELAY_OK; i++) {
        rc = txn_run(site->space, list_body, &l, &look_only, a, err);
        l.looked = l.n;
        l.after = l.last;
        l.begun = true;
        if (rc || !l.more || l.n == l.limit)
            break;
    }
    if (rc)
        return rc;
    if (l.more && !list_cursor_write(&l.last, a, &next))
        return err_no_memory(err, "processes");
    *out = (struct belay_processes){ l.items, l.n, next };
    return BELAY_OK;
}
