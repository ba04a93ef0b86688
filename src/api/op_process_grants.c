/* Processes: leases and handle grants. */
#include "api/op_process.h"

/* --- leases --- */

belay_rc op_process_lease(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct belay_process_lease *lease = NULL;
    struct op_maker m = { .err = err };
    belay_rc rc = proc_lease(&site, op_str(call, "process"), op_str(call, "owner"),
                             op_get(call, "lease")->number, NULL, &arena, &lease, err);

    if (rc)
        return rc;
    json_t *result = op_json_process_lease(&m, lease, &arena);
    return op_made(&m, result, !result, out);
}

belay_rc op_process_renew(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct belay_process_lease *lease = NULL;
    int64_t expires_at_ms = 0;
    belay_rc rc = op_lease(call, "handle", &arena, &lease, err);

    if (rc == BELAY_OK)
        rc = proc_renew(&site, lease, op_get(call, "lease")->number, &expires_at_ms,
                        err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "process_id", lease->process_id);
    failed |= op_set_i64(result, "fence", lease->fence);
    failed |= op_set_i64(result, "expires_at_ms", expires_at_ms);
    return op_finish(result, failed, out, err);
}

belay_rc op_process_release(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct belay_process_lease *lease = NULL;
    bool released = false;
    belay_rc rc = op_lease(call, "handle", &arena, &lease, err);

    if (rc == BELAY_OK)
        rc = proc_release(&site, lease, &released, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "process_id", lease->process_id);
    failed |= op_set_bool(result, "released", released);
    return op_finish(result, failed, out, err);
}

/* --- grants --- */

static belay_rc say(const char *what, bool done, json_t **out, struct belay_error *err)
{
    json_t *result = json_object();

    return op_finish(result, op_set_bool(result, what, done), out, err);
}

belay_rc op_process_grant(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct proc_site site = op_processes(call);
    struct belay_scope scope = op_scope(call, "session", "frame");
    belay_rc rc = proc_grant(&site, &scope, op_str(call, "process"),
                             op_str(call, "kind"), op_str(call, "label"), err);

    return rc ? rc : say("granted", true, out, err);
}

belay_rc op_process_revoke(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct proc_site site = op_processes(call);
    struct belay_scope scope = op_scope(call, "session", "frame");
    bool revoked = false;
    belay_rc rc = proc_revoke(&site, &scope, op_str(call, "process"), &revoked, err);

    return rc ? rc : say("revoked", revoked, out, err);
}

belay_rc op_process_transfer(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_scope from = op_scope(call, "session", "frame"),
                       to = op_scope(call, "to", "to_frame");
    const char *const *ids = NULL;
    size_t n = 0;
    belay_rc rc = op_strs(call, "process", &arena, &ids, &n, err);

    if (rc == BELAY_OK)
        rc = proc_transfer(&site, &from, &to, ids, n, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    return op_finish(result, op_set_i64(result, "transferred", (int64_t)n), out, err);
}

belay_rc op_process_grants(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_process_grants found = { 0 };
    struct op_maker m = { .err = err };
    const struct belay_grant_page page = {
        .size = sizeof(page),
        .live = op_get(call, "live") != NULL,
        .scope = op_scope(call, "session", "frame"),
        .process_id = op_str(call, "process"),
        .cursor = op_str(call, "cursor"),
        .limit = (size_t)op_get(call, "limit")->number,
    };
    belay_rc rc = proc_grants(&site, &page, &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_process_grant(&found.items[i]));
    return op_made_pages(&m, items, failed, found.next_cursor, out);
}

static json_t *names_json(const char *const *names, size_t n)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < n; i++)
        failed |= json_array_append_new(list, json_string(names[i]));
    return op_whole(list, failed);
}

belay_rc op_process_forget_session(const struct op_call *call, json_t **out,
                                   struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_forget_report report = { 0 };
    belay_rc rc = proc_forget_session(&site, op_str(call, "session"),
                                      op_get(call, "cancel") != NULL,
                                      op_str(call, "reason"), &arena, &report, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "session_id", report.session_id);
    failed |= op_set_i64(result, "revoked_handle_count", report.revoked);
    failed |= op_set_i64(result, "deleted_wake_count", 0);
    failed |= json_object_set_new(result, "cancel_process_ids",
                                  names_json(report.cancel_ids, report.n_cancel));
    failed |= json_object_set_new(result, "preserved_process_ids",
                                  names_json(report.preserved_ids, report.n_preserved));
    failed |= op_set_bool(result, "cancel_requested", report.cancel_requested);
    return op_finish(result, failed, out, err);
}
