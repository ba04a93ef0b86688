/* Processes: reading, following, waiting, wakes, changes. */
#include "api/op_follow.h"
#include "api/op_process.h"

/* --- events --- */

/* Until the process has ended and everything was told, or told to stop. */
static belay_rc follow_events(const struct op_call *call,
                              struct belay_process_event_request *request, json_t **out,
                              struct belay_error *err)
{
    struct proc_site site = op_processes(call);
    struct op_maker m = { .err = err };
    bool follows = op_get(call, "follow") != NULL, over = false;
    int64_t left = op_number(call, "limit", INT64_MAX);
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && !over && left > 0) {
        struct belay_arena arena CLEANUP(arena_release) = { 0 };
        struct belay_process_events page = { 0 };

        request->limit = left < FOLLOW_PAGE ? (size_t)left : FOLLOW_PAGE;
        rc = proc_events(&site, request, &arena, &page, err);
        left -= (int64_t)page.n;
        for (size_t i = 0; rc == BELAY_OK && i < page.n; i++)
            rc = op_emit(call, &m, op_json_process_event(&m, &page.items[i]));
        if (rc)
            break;
        request->after = page.next_after;
        request->tail = 0;
        over = page.n == 0 && (!follows || page.status != BELAY_PROCESS_RUNNING);
        /* What has ended is asked once more without waiting: nothing may be missing. */
        request->wait_ms =
            follows && page.status == BELAY_PROCESS_RUNNING ? FOLLOW_WAIT_MS : 0;
    }
    return op_followed(rc, NULL, out, err);
}

belay_rc op_process_events(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct op_maker m = { .err = err };
    struct belay_process_events page = { 0 };
    struct belay_process_event_request request = {
        .size = sizeof(request),
        .wakes_only = op_get(call, "wakes") != NULL,
        .process_id = op_str(call, "process"),
        .event_type = op_str(call, "type"),
        .after = op_number(call, "after", 0),
        .tail = op_number(call, "tail", 0),
        .limit = (size_t)op_number(call, "limit", PAGE_USUAL),
        .wait_ms = op_number(call, "wait", 0),
        .cancel = call->cancel,
    };

    if (call->follow)
        return follow_events(call, &request, out, err);
    belay_rc rc = proc_events(&site, &request, &arena, &page, err);
    if (rc)
        return rc;
    json_t *items = json_array(), *result = json_object();
    int failed = 0;
    for (size_t i = 0; i < page.n; i++)
        failed |=
            json_array_append_new(items, op_json_process_event(&m, &page.items[i]));
    bool more = page.n == request.limit;
    failed |= json_object_set_new(result, "items", items);
    failed |= json_object_set_new(
        result, "next_cursor",
        more ? json_sprintf("%lld", (long long)page.next_after) : json_null());
    failed |= op_set_i64(result, "next_after", page.next_after);
    failed |= op_set_i64(result, "last_sequence", page.last_sequence);
    failed |= op_set_text(result, "status", proc_status_name(page.status));
    return op_made(&m, result, failed, out);
}

/* --- the end --- */

belay_rc op_process_await(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    const struct belay_process *p = NULL;
    struct op_maker m = { .err = err };
    belay_rc rc = proc_await(&site, op_str(call, "process"),
                             op_number(call, "timeout", (int64_t)24 * 60 * 60 * 1000),
                             call->cancel, &arena, &p, err);

    if (rc)
        return rc;
    json_t *result = op_json_process(&m, p, false);
    return op_made(&m, result, !result, out);
}

int op_exit_of_process(const json_t *answer)
{
    const char *status = json_string_value(json_object_get(answer, "status"));

    return status && strcmp(status, "completed") == 0 ? 0 : 1;
}

/* --- wakes --- */

belay_rc op_process_wakes(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_wakes found = { 0 };
    struct op_maker m = { .err = err };
    const struct belay_wake_page page = {
        .size = sizeof(page),
        .all = op_get(call, "all") != NULL,
        .process_id = op_str(call, "process"),
        .after = op_number(call, "after", 0),
        .limit = (size_t)op_get(call, "limit")->number,
    };
    belay_rc rc = proc_wakes(&site, &page, &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_wake(&m, &found.items[i]));
    return op_made_list(&m, items, failed, found.next_after, out);
}

belay_rc op_process_ack(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct proc_site site = op_processes(call);
    bool settled = false;
    belay_rc rc = proc_ack(&site, op_str(call, "process"),
                           op_get(call, "sequence")->number, &settled, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    return op_finish(result, op_set_bool(result, "acknowledged", settled), out, err);
}

/* --- changes --- */

static belay_rc follow_changes(const struct op_call *call,
                               struct belay_change_request *request, json_t **out,
                               struct belay_error *err)
{
    struct proc_site site = op_processes(call);
    struct buf cursor CLEANUP(buf_release) = { 0 };
    int64_t left = op_number(call, "limit", INT64_MAX);
    struct op_maker m = { .err = err };
    belay_rc rc = BELAY_OK;

    request->wait_ms = FOLLOW_WAIT_MS;
    while (rc == BELAY_OK && left > 0) {
        struct belay_arena arena CLEANUP(arena_release) = { 0 };
        struct belay_process_changes page = { 0 };

        request->limit = left < FOLLOW_PAGE ? (size_t)left : FOLLOW_PAGE;
        rc = proc_changes(&site, request, &arena, &page, err);
        left -= (int64_t)page.n;
        for (size_t i = 0; rc == BELAY_OK && i < page.n; i++)
            rc = op_emit(call, &m, op_json_process_change(&page.items[i]));
        if (rc == BELAY_OK)
            rc = op_keep_cursor(&cursor, page.cursor, &request->after, err);
    }
    return op_followed(rc, NULL, out, err);
}

belay_rc op_process_changes(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct proc_site site = op_processes(call);
    struct belay_process_changes page = { 0 };
    struct op_maker m = { .err = err };
    struct belay_change_request request = {
        .size = sizeof(request),
        .after = op_str(call, "after"),
        .limit = (size_t)op_number(call, "limit", PAGE_USUAL),
        .cancel = call->cancel,
    };

    if (call->follow)
        return follow_changes(call, &request, out, err);
    belay_rc rc = proc_changes(&site, &request, &arena, &page, err);
    if (rc)
        return rc;
    json_t *items = json_array(), *result = json_object();
    bool more = page.n == request.limit;
    int failed = 0;
    for (size_t i = 0; i < page.n; i++)
        failed |= json_array_append_new(items, op_json_process_change(&page.items[i]));
    failed |= json_object_set_new(result, "items", items);
    failed |= op_set_text(result, "next_cursor", more ? page.cursor : NULL);
    failed |= op_set_text(result, "cursor", page.cursor);
    failed |= op_set_bool(result, "trimmed", page.trimmed);
    return op_made(&m, result, failed, out);
}
