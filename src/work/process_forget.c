/* A session goes: its grants, and with them the processes that nobody else has. */
#include <stdlib.h>

#include "base/json.h"
#include "work/process_event.h"
#include "work/process_grants.h"

#define SCAN_PAGE 500

struct forgetting {
    struct bytes session;
    bool cancel;
    const char *reason;

    /* Of one run of the body. */
    struct hits grants; /* of session_grants/<session> */
    struct belay_forget_report out;
};

/* --- reading --- */

static belay_rc more_hits(struct txn *t, struct hits *all, const struct hits *page)
{
    struct hit *hits = arena_zalloc(txn_arena(t), all->n + page->n, sizeof(*hits));

    if (!hits)
        return err_no_memory(txn_error(t), "grants");
    if (all->n > 0)
        memcpy(hits, all->hit, all->n * sizeof(*hits));
    if (page->n > 0)
        memcpy(hits + all->n, page->hit, page->n * sizeof(*hits));
    *all = (struct hits){ .hit = hits, .n = all->n + page->n };
    return BELAY_OK;
}

/* All of them: their count is guarded, so that none comes or goes meanwhile (P6). */
static belay_rc find_grants(struct txn *t, struct forgetting *f)
{
    struct scan_cursor after;
    struct bytes index;
    struct hits page;
    int64_t n = 0;

    if (!proc_name(SESSION_GRANT_INDEX, f->session, txn_arena(t), &index))
        return err_no_memory(txn_error(t), "grants");
    struct scan scan = { .indexes = &index, .n_indexes = 1, .limit = SCAN_PAGE };
    belay_rc rc = grant_count_get(t, GRANTS_OF_SESSION, f->session, &n);
    f->grants = (struct hits){ .n = 0 };
    do {
        if (rc == BELAY_OK)
            rc = txn_scan(t, &scan, &page);
        if (rc == BELAY_OK)
            rc = more_hits(t, &f->grants, &page);
        if (rc)
            return rc;
        if (page.n > 0)
            after = (struct scan_cursor){ .member = page.hit[page.n - 1].member,
                                          .index = index };
        scan.after = &after;
    } while (page.n == SCAN_PAGE);
    if ((int64_t)f->grants.n != n) {
        rc = txn_fail(t, BELAY_CORRUPT, "grants",
                      "session %.*s: has %zu grants, its count says %lld",
                      (int)f->session.len, (const char *)f->session.ptr, f->grants.n,
                      (long long)n);
        err_entity(txn_error(t), f->session);
    }
    return rc;
}

/* Scope and process of each grant. */
struct member {
    struct grant_scope scope;
    struct bytes process;
};

static belay_rc read_members(struct txn *t, struct bytes of, const struct hits *hits,
                             struct member *out)
{
    struct belay_arena *a = txn_arena(t);

    for (size_t i = 0; i < hits->n; i++) {
        struct belay_scope scope = { .session_id = NULL };
        struct bytes frame_key, session, frame;
        if (!grant_member_split(hits->hit[i].member, &frame_key, &out[i].process))
            return txn_fail(t, BELAY_CORRUPT, "grants",
                            "session %.*s: an entry is none", (int)of.len,
                            (const char *)of.ptr);
        frame = grant_frame(frame_key);
        if (!arena_copy(a, of, &session) || !arena_copy(a, frame, &frame))
            return err_no_memory(txn_error(t), "grants");
        scope.session_id = (const char *)session.ptr;
        scope.frame_id = frame.len > 0 ? (const char *)frame.ptr : NULL;
        if (!grant_scope_make(&out[i].scope, &scope, a))
            return err_no_memory(txn_error(t), "grants");
    }
    return BELAY_OK;
}

/* What the rest will look at, in one round trip. */
static belay_rc load(struct txn *t, const struct forgetting *f,
                     const struct member *members)
{
    struct belay_arena *a = txn_arena(t);
    size_t n = f->grants.n, k = 0, per = f->cancel ? 4 : 3;
    struct row_want *wants = arena_zalloc(a, per * n, sizeof(*wants));
    const struct row **rows = arena_zalloc(a, per * n, sizeof(*rows));
    struct value *keys = arena_zalloc(a, 5 * n, sizeof(*keys));

    if (!wants || !rows || !keys)
        return err_no_memory(txn_error(t), "grants");
    for (size_t i = 0; i < n; i++) {
        struct value *key = keys + 5 * i;
        key[0] = value_text(f->session);
        key[1] = value_text(members[i].scope.frame_key);
        key[2] = value_text(members[i].process);
        key[3] = value_str(GRANTS_OF_PROCESS);
        key[4] = key[2];
        wants[k++] = (struct row_want){ &row_handle_grant, key };
        wants[k++] = (struct row_want){ &row_grant_count, key + 3 };
        wants[k++] = (struct row_want){ &row_process, key + 2 };
        if (f->cancel)
            wants[k++] = (struct row_want){ &row_process_spec, key + 2 };
    }
    return k > 0 ? txn_get_many(t, wants, k, rows) : BELAY_OK;
}

belay_rc grants_drop(struct txn *t, struct bytes session, size_t limit, size_t *out_n)
{
    struct belay_arena *a = txn_arena(t);
    struct bytes index;
    struct hits hits = { .n = 0 };

    if (!proc_name(SESSION_GRANT_INDEX, session, a, &index))
        return err_no_memory(txn_error(t), "grants");
    const struct scan scan = { .indexes = &index, .n_indexes = 1, .limit = limit };
    belay_rc rc = txn_scan(t, &scan, &hits);
    struct member *members = arena_zalloc(a, hits.n, sizeof(*members));
    if (rc == BELAY_OK && !members)
        rc = err_no_memory(txn_error(t), "grants");
    if (rc == BELAY_OK)
        rc = read_members(t, session, &hits, members);
    for (size_t i = 0; i < hits.n && rc == BELAY_OK; i++)
        rc = grant_remove(t, &members[i].scope, members[i].process);
    *out_n = hits.n;
    return rc;
}

/* --- deciding --- */

static int compare(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return bytes_cmp(x->process, y->process);
}

static belay_rc request_cancel(struct txn *t, const struct forgetting *f,
                               struct bytes process)
{
    CLEANUP(json_decrefp) json_t *payload = NULL;
    CLEANUP(proc_reg_dropp) const struct proc_reg *reg = NULL;
    struct value key = value_text(process);
    struct proc_draft d = { .process = process };
    struct proc_applied applied;
    const struct row *spec;
    belay_rc rc = txn_get(t, &row_process_spec, &key, &spec);

    if (rc == BELAY_OK && !spec)
        rc = proc_unknown(t, process);
    if (rc == BELAY_OK)
        rc = proc_reg_of(t, spec, &reg);
    if (rc == BELAY_OK)
        rc = cancel_draft(&d, f->reason, &payload, txn_arena(t), txn_error(t));
    d.reg = reg;
    if (rc == BELAY_OK)
        rc = draft_judge(&d, txn_arena(t), txn_error(t));
    return rc ? rc : append_in(t, &d, &applied);
}

/* One process whose grants of this session are gone. */
static belay_rc decide(struct txn *t, struct forgetting *f, struct bytes process,
                       const char **cancel, const char **preserved)
{
    struct bytes id;
    struct proc p;
    int64_t left = 0;
    belay_rc rc = proc_get(t, process, &p);

    if (rc == BELAY_NOT_FOUND) /* it is being removed */
        return BELAY_OK;
    if (rc || p.status != BELAY_PROCESS_RUNNING)
        return rc;
    rc = grant_count_get(t, GRANTS_OF_PROCESS, process, &left);
    if (rc)
        return rc;
    if (!arena_copy(txn_arena(t), process, &id))
        return err_no_memory(txn_error(t), "a report");
    if (left > 0) {
        preserved[f->out.n_preserved++] = (const char *)id.ptr;
        return BELAY_OK;
    }
    cancel[f->out.n_cancel++] = (const char *)id.ptr;
    return f->cancel ? request_cancel(t, f, process) : BELAY_OK;
}

static belay_rc forget_body(struct txn *t, void *arg)
{
    struct forgetting *f = arg;
    belay_rc rc = find_grants(t, f);

    f->out = (struct belay_forget_report){ .revoked = (int64_t)f->grants.n };
    if (rc)
        return rc;
    struct belay_arena *a = txn_arena(t);
    size_t n = f->grants.n;
    struct member *members = arena_zalloc(a, n, sizeof(*members));
    const char **cancel = arena_zalloc(a, n, sizeof(*cancel));
    const char **preserved = arena_zalloc(a, n, sizeof(*preserved));
    if (!members || !cancel || !preserved)
        return err_no_memory(txn_error(t), "a report");
    rc = read_members(t, f->session, &f->grants, members);
    if (rc == BELAY_OK)
        rc = load(t, f, members);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = grant_remove(t, &members[i].scope, members[i].process);
    if (n > 1)
        qsort(members, n, sizeof(*members), compare);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        if (i == 0 || !bytes_eq(members[i - 1].process, members[i].process))
            rc = decide(t, f, members[i].process, cancel, preserved);
    }
    f->out.cancel_ids = cancel;
    f->out.preserved_ids = preserved;
    f->out.cancel_requested = f->cancel;
    return rc;
}

belay_rc proc_forget_session(const struct proc_site *site, const char *session_id,
                             bool cancel, const char *reason, struct belay_arena *a,
                             struct belay_forget_report *out, struct belay_error *err)
{
    struct forgetting f = { .session = bytes_str(session_id),
                            .cancel = cancel,
                            .reason = reason ? reason : "session_forgotten" };
    struct bytes session;
    belay_rc rc = proc_check_id(session_id, "session_id", err);

    if (rc)
        return rc;
    if (!arena_copy(a, f.session, &session))
        return err_no_memory(err, "a report");
    rc = txn_run(site->space, forget_body, &f, NULL, a, err);
    if (rc)
        return rc;
    *out = f.out;
    out->session_id = (const char *)session.ptr;
    return BELAY_OK;
}
