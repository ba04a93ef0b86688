/* Processes: registering, appending, ending. */
#include "api/op_process.h"

#include "policy/process_scope.h"

const char *const op_status_names[] = { "running", "completed", "failed", "cancelled",
                                        NULL };
const char *const op_authority_names[] = { "owner", "external", "operator", NULL };

struct proc_site op_processes(const struct op_call *call)
{
    struct proc_site site = call->belay->processes;

    site.principal = bytes_str(op_principal(call));
    return site;
}

struct belay_scope op_scope(const struct op_call *call, const char *session,
                            const char *frame)
{
    return (struct belay_scope){ op_str(call, session), op_str(call, frame) };
}

belay_rc op_lease(const struct op_call *call, const char *name, struct belay_arena *a,
                  const struct belay_process_lease **out, struct belay_error *err)
{
    const char *text = op_str(call, name);

    *out = NULL;
    return text ? proc_lease_parse(text, a, out, err) : BELAY_OK;
}

static int32_t authority_of(const struct op_call *call)
{
    const struct op_value *v = op_get(call, "authority");

    return v ? 1 + op_read_name(op_authority_names, v->text) : BELAY_AUTHORITY_NONE;
}

/* --- registering --- */

belay_rc op_process_register(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct op_value *retention = op_get(call, "retention");
    struct op_maker m = { .err = err };
    struct belay_registered done;
    const struct belay_registration r = {
        .size = sizeof(r),
        .process_id = op_str(call, "process"),
        .input = op_str(call, "input"),
        .event_types = op_str(call, "event_types"),
        .owner = op_scope(call, "owner", "owner_frame"),
        .host_profile_id = op_str(call, "host_profile"),
        .caused_by = op_str(call, "caused_by"),
        .retention_ms = retention ? retention->number : 0,
    };

    if (r.owner.frame_id && !r.owner.session_id)
        return err_reason(err, BELAY_INVALID, "owner",
                          "--owner-frame: takes an --owner");
    belay_rc rc = proc_register(&site, &r, &arena, &done, err);
    if (rc)
        return rc;
    json_t *result = op_json_process(&m, done.process, true);
    int failed = !result;
    failed |= op_set_bool(result, "created", done.created);
    return op_made(&m, result, failed, out);
}

belay_rc op_process_show(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct belay_process *p = NULL;
    struct op_maker m = { .err = err };
    belay_rc rc = proc_show(&site, op_str(call, "process"), &arena, &p, err);

    if (rc)
        return rc;
    json_t *result = op_json_process(&m, p, true);
    return op_made(&m, result, !result, out);
}

belay_rc op_process_ls(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct op_value *status = op_get(call, "status");
    struct belay_processes found = { 0 };
    struct op_maker m = { .err = err };
    const struct belay_process_page page = {
        .size = sizeof(page),
        .status = status ? 1 + op_read_name(op_status_names, status->text) : 0,
        .owner_session = op_str(call, "owner"),
        .kind = op_str(call, "kind"),
        .host_profile_id = op_str(call, "host_profile"),
        .created_from_ms = op_number(call, "created_from", 0),
        .created_to_ms = op_number(call, "created_to", 0),
        .cursor = op_str(call, "cursor"),
        .limit = (size_t)op_get(call, "limit")->number,
    };
    belay_rc rc = proc_list(&site, &page, &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |=
            json_array_append_new(items, op_json_process(&m, &found.items[i], false));
    return op_made_pages(&m, items, failed, found.next_cursor, out);
}

belay_rc op_process_external_ref(const struct op_call *call, json_t **out,
                                 struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct belay_process_lease *lease;
    const struct belay_process *p = NULL;
    struct op_maker m = { .err = err };
    belay_rc rc = op_lease(call, "with_lease", &arena, &lease, err);

    if (rc == BELAY_OK)
        rc = proc_set_ref(&site, op_str(call, "process"), op_str(call, "ref"), lease,
                          &arena, &p, err);
    if (rc)
        return rc;
    json_t *result = op_json_process(&m, p, false);
    return op_made(&m, result, !result, out);
}

belay_rc op_process_delete(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct proc_site site = op_processes(call);
    belay_rc rc =
        proc_delete(&site, op_str(call, "process"), op_get(call, "force") != NULL, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    return op_finish(result, op_set_bool(result, "deleted", true), out, err);
}

/* --- events --- */

static belay_rc answer_appended(const struct belay_appended *done, json_t **out,
                                struct belay_error *err)
{
    struct op_maker m = { .err = err };
    json_t *result = op_json_process_event(&m, done->event);
    int failed = !result;

    failed |= op_set_bool(result, "replayed", done->replayed);
    return op_made(&m, result, failed, out);
}

/* Whom an event wakes: a session (and its frame beside it), or a scope in its text form.
 * The id of a session that begins like one is written as a scope. */
static belay_rc wake_target(const struct op_call *call, struct belay_arena *a,
                            struct belay_scope *out, struct belay_error *err)
{
    struct bytes text, prefix = bytes_str("session:"), session, frame = { 0 };
    struct scope parsed;

    *out = op_scope(call, "wake_target", "wake_frame");
    if (!out->session_id)
        return BELAY_OK;
    text = bytes_str(out->session_id);
    if (text.len < prefix.len || memcmp(text.ptr, prefix.ptr, prefix.len) != 0)
        return BELAY_OK;
    if (out->frame_id)
        return err_reason(err, BELAY_INVALID, "scope",
                          "wake target: a scope names its frame itself");
    belay_rc rc = scope_parse(text, a, &parsed, err);
    if (rc)
        return rc;
    if (!arena_copy(a, parsed.session, &session) ||
        (parsed.frame.len > 0 && !arena_copy(a, parsed.frame, &frame)))
        return err_no_memory(err, "a scope");
    *out = (struct belay_scope){ (const char *)session.ptr, (const char *)frame.ptr };
    return BELAY_OK;
}

belay_rc op_process_append(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_appended done;
    struct belay_event_draft draft = {
        .size = sizeof(draft),
        .authority = authority_of(call),
        .process_id = op_str(call, "process"),
        .event_type = op_str(call, "type"),
        .payload = op_str(call, "payload"),
        .replay_key = op_str(call, "key"),
    };
    belay_rc rc = op_lease(call, "with_lease", &arena, &draft.lease, err);

    if (rc == BELAY_OK)
        rc = wake_target(call, &arena, &draft.wake_target, err);
    if (rc == BELAY_OK)
        rc = proc_append(&site, &draft, &arena, &done, err);
    return rc ? rc : answer_appended(&done, out, err);
}

belay_rc op_process_cancel(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_appended done;
    belay_rc rc = proc_cancel(&site, op_str(call, "process"), op_str(call, "reason"),
                              &arena, &done, err);

    return rc ? rc : answer_appended(&done, out, err);
}

belay_rc op_process_complete(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct op_maker m = { .err = err };
    struct belay_completed done;
    struct belay_process_end end = {
        .size = sizeof(end),
        .authority = authority_of(call),
        .process_id = op_str(call, "process"),
        .await_output = op_str(call, "result"),
    };
    belay_rc rc = op_lease(call, "with_lease", &arena, &end.lease, err);

    if (rc == BELAY_OK)
        rc = wake_target(call, &arena, &end.wake_target, err);
    if (rc == BELAY_OK)
        rc = proc_complete(&site, &end, &arena, &done, err);
    if (rc)
        return rc;
    json_t *result = op_json_process(&m, done.process, false);
    int failed = !result;
    failed |= op_set_bool(result, "replayed", done.replayed);
    return op_made(&m, result, failed, out);
}
