/* Lists of grants, of a scope or of a process. */
#include "work/exec_show.h"
#include "work/process_grants.h"

/* Entries of one scan, and scans of one page. */
#define SCANS_MAX 8

struct listing {
    const struct belay_grant_page *page;
    struct grant_scope scope;
    struct bytes process, index;
    struct scan_cursor after;
    bool begun;
    size_t limit;
    struct belay_arena *arena;
    struct belay_process_grant *items;

    /* Of one run of the body. */
    size_t n, looked;
    bool more;
    struct scan_cursor last;
};

static belay_rc corrupt(struct txn *t, const struct hit *hit)
{
    belay_rc rc = txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                           "grant: one stands in %.*s and has no row",
                           (int)hit->index.len, (const char *)hit->index.ptr);

    err_entity(txn_error(t), hit->member);
    return rc;
}

static belay_rc add(struct txn *t, struct listing *l, const struct row *grant,
                    const struct row *process)
{
    struct belay_process_grant *out = &l->items[l->n];
    struct belay_arena *a = txn_arena(t);
    struct proc p;
    belay_rc rc = proc_of(t, process, &p);

    if (rc)
        return rc;
    if (p.status == PROC_DELETING ||
        (l->page->live && p.status != BELAY_PROCESS_RUNNING))
        return BELAY_OK;
    *out = (struct belay_process_grant){ .status = p.status,
                                         .granted_at_ms =
                                             row_i64(grant, HANDLE_GRANT_AT_MS, 0) };
    if (!show_column(a, grant, HANDLE_GRANT_SESSION, &out->scope.session_id) ||
        !show_text(a, grant_frame(row_bytes(grant, HANDLE_GRANT_FRAME)),
                   &out->scope.frame_id) ||
        !show_column(a, grant, HANDLE_GRANT_PROCESS, &out->process_id) ||
        !show_column(a, grant, HANDLE_GRANT_KIND, &out->kind) ||
        !show_column(a, grant, HANDLE_GRANT_LABEL, &out->label))
        return err_no_memory(txn_error(t), "grants");
    l->n++;
    return BELAY_OK;
}

/* Of a scope: the index names processes. */
static belay_rc of_scope(struct txn *t, struct listing *l, const struct hits *hits)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < hits->n && rc == BELAY_OK; i++) {
        if (!hits->hit[i].rows[0] || !hits->hit[i].rows[1])
            return corrupt(t, &hits->hit[i]);
        rc = add(t, l, hits->hit[i].rows[0], hits->hit[i].rows[1]);
    }
    return rc;
}

/* Of a process: the index names scopes. */
static belay_rc of_process(struct txn *t, struct listing *l, const struct hits *hits,
                           const struct row *process)
{
    struct belay_arena *a = txn_arena(t);
    struct value *keys = arena_zalloc(a, 3 * hits->n, sizeof(*keys));
    struct row_want *wants = arena_zalloc(a, hits->n, sizeof(*wants));
    const struct row **rows = arena_zalloc(a, hits->n, sizeof(*rows));

    if (!keys || !wants || !rows)
        return err_no_memory(txn_error(t), "grants");
    for (size_t i = 0; i < hits->n; i++) {
        struct bytes session, frame;
        if (!grant_member_split(hits->hit[i].member, &session, &frame))
            return corrupt(t, &hits->hit[i]);
        keys[3 * i] = value_text(session);
        keys[3 * i + 1] = value_text(frame);
        keys[3 * i + 2] = value_text(l->process);
        wants[i] = (struct row_want){ &row_handle_grant, &keys[3 * i] };
    }
    belay_rc rc = hits->n > 0 ? txn_get_many(t, wants, hits->n, rows) : BELAY_OK;
    for (size_t i = 0; i < hits->n && rc == BELAY_OK; i++)
        rc = rows[i] ? add(t, l, rows[i], process) : corrupt(t, &hits->hit[i]);
    return rc;
}

static belay_rc list_body(struct txn *t, void *arg)
{
    struct listing *l = arg;
    struct value prefix[] = { value_text(l->scope.session),
                              value_text(l->scope.frame_key) };
    const struct fetch fetch[] = { { &row_handle_grant, prefix },
                                   { &row_process, NULL } };
    bool by_scope = !l->page->process_id;
    const struct scan scan = { .indexes = &l->index,
                               .n_indexes = 1,
                               .after = l->begun ? &l->after : NULL,
                               .limit = l->limit - l->looked,
                               .fetch = fetch,
                               .n_fetch = by_scope ? COUNT_OF(fetch) : 0 };
    struct hits hits = { .n = 0 };
    struct proc p = { .row = NULL };
    belay_rc rc = BELAY_OK;

    l->n = l->looked;
    if (!by_scope)
        rc = proc_get(t, l->process, &p);
    if (rc == BELAY_OK)
        rc = txn_scan(t, &scan, &hits);
    if (rc == BELAY_OK)
        rc = by_scope ? of_scope(t, l, &hits) : of_process(t, l, &hits, p.row);
    l->more = hits.n == scan.limit;
    if (hits.n > 0)
        l->last = (struct scan_cursor){ .rank = hits.hit[hits.n - 1].rank,
                                        .member = hits.hit[hits.n - 1].member,
                                        .index = hits.hit[hits.n - 1].index };
    return rc;
}

static belay_rc prepare(struct listing *l, struct belay_error *err)
{
    const struct belay_grant_page *page = l->page;
    bool by_scope = page->scope.session_id != NULL;

    if (by_scope == (page->process_id != NULL))
        return err_reason(err, BELAY_INVALID, "scope",
                          "grants: of a scope or of a process, and not of both");
    belay_rc rc = by_scope ? proc_check_scope(&page->scope, "scope", err)
                           : proc_check_id(page->process_id, "process_id", err);
    if (rc == BELAY_OK)
        rc = look_limit(page->limit, &l->limit, err);
    if (rc == BELAY_OK && page->cursor)
        rc = list_cursor_read(page->cursor, l->arena, &l->after, err);
    if (rc)
        return rc;
    l->begun = page->cursor != NULL;
    l->process = page->process_id ? bytes_str(page->process_id) : bytes_of(NULL, 0);
    bool named = by_scope
                     ? grant_scope_make(&l->scope, &page->scope, l->arena)
                     : proc_name(GRANTED_TO_INDEX, l->process, l->arena, &l->index);
    if (named && by_scope)
        l->index = l->scope.index;
    l->items = arena_zalloc(l->arena, l->limit, sizeof(*l->items));
    return named && l->items ? BELAY_OK : err_no_memory(err, "grants");
}

belay_rc proc_grants(const struct proc_site *site, const struct belay_grant_page *page,
                     struct belay_arena *a, struct belay_process_grants *out,
                     struct belay_error *err)
{
    struct listing l = { .page = page, .arena = a };
    const char *next = NULL;
    belay_rc rc = prepare(&l, err);

    /* Where most have ended, a page of those that run takes more than one look. */
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
        return err_no_memory(err, "grants");
    *out = (struct belay_process_grants){ l.items, l.n, next };
    return BELAY_OK;
}
