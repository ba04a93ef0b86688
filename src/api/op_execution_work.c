/* What workers do. */
#include "api/op_execution.h"
#include "base/clock.h"

belay_rc op_work(const struct op_call *call, json_t **out, struct belay_error *err)
{
    if (!call->work)
        return err_set(err, BELAY_MISUSE, "jobs can be run by the command line only");
    return call->work(call, out, err);
}

/* A lease of 0 is past due at once, where a policy says it with -1. */
static int64_t lease_of_call(const struct op_call *call, int64_t usual)
{
    const struct op_value *lease = op_get(call, "lease");

    if (!lease)
        return usual;
    return lease->number == 0 ? -1 : lease->number;
}

static belay_rc policy_of(const struct op_call *call, struct belay_arena *a,
                          struct belay_claim_policy *out, struct belay_error *err)
{
    *out = (struct belay_claim_policy){
        .size = sizeof(*out),
        .worker = op_str(call, "worker"),
        .max = (size_t)op_number(call, "max", 1),
        .lease_ms = lease_of_call(call, 0),
        .max_wait_ms = op_number(call, "wait", 0),
        .cancel = call->cancel,
    };
    belay_rc rc = op_strs(call, "lane", a, &out->lanes, &out->n_lanes, err);
    if (rc == BELAY_OK)
        rc = op_strs(call, "capability", a, &out->capabilities, &out->n_capabilities,
                     err);
    return rc;
}

/* --- claims --- */

static belay_rc answer_works(const struct belay_works *works, struct belay_arena *a,
                             json_t **out, struct belay_error *err)
{
    struct op_maker m = { .err = err };
    json_t *result = json_object();
    int failed = json_object_set_new(result, "claims", op_json_works(&m, works, a));

    if (works->n == 0)
        failed |= op_set_time(result, "next_at_ms", works->next_at_ms);
    return op_made(&m, result, failed, out);
}

/* Where it is done, by whom. */
static struct exec_site site_of(const struct op_call *call)
{
    struct exec_site site = call->belay->site;

    site.principal = bytes_str(op_principal(call));
    return site;
}

static belay_rc claim_grant(const struct op_call *call, const char *grant, json_t **out,
                            struct belay_error *err)
{
    const struct exec_site site = site_of(call);
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_work work = { 0 };
    const struct belay_works works = { .work = &work, .n = 1 };
    belay_rc rc = exec_claim_grant(&site, grant, op_str(call, "worker"),
                                   lease_of_call(call, 0), &arena, &work, err);

    return rc ? rc : answer_works(&works, &arena, out, err);
}

belay_rc op_claim(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const struct exec_site site = site_of(call);
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *grant = op_str(call, "grant");
    struct belay_claim_policy policy;
    struct belay_works works = { 0 };
    belay_rc rc = policy_of(call, &arena, &policy, err);

    if (rc == BELAY_OK && (grant != NULL) == (policy.n_lanes > 0))
        rc = err_reason(err, BELAY_INVALID, "lane",
                        "either --lane, or --grant without it");
    if (rc == BELAY_OK && grant)
        return claim_grant(call, grant, out, err);
    if (rc == BELAY_OK)
        rc = exec_claim(&site, &policy, &arena, &works, err);
    return rc ? rc : answer_works(&works, &arena, out, err);
}

belay_rc op_grant(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct exec_site *site = &call->belay->site;
    const char *id = op_str(call, "id");
    int64_t grant_ms = op_number(call, "for", 0);
    struct belay_claim_policy policy;
    struct belay_grant grant = { 0 };
    belay_rc rc = policy_of(call, &arena, &policy, err);

    if (rc == BELAY_OK && (id != NULL) == (policy.n_lanes > 0))
        rc = err_reason(err, BELAY_INVALID, "lane",
                        "either --lane, or the execution without it");
    if (rc)
        return rc;
    rc = id ? exec_grant_one(site, id, policy.worker, grant_ms, &arena, &grant, err)
            : exec_grant(site, &policy, grant_ms, &arena, &grant, err);
    if (rc)
        return rc;
    json_t *result = op_json_grant(&grant);
    return op_finish(result, !result, out, err);
}

/* --- while it is held --- */

belay_rc op_renew(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_lease_renewal renewal = { 0 };
    struct belay_handle handle;
    belay_rc rc = op_handle(call, &arena, &handle, err);

    if (rc == BELAY_OK)
        rc = exec_renew(&call->belay->site, &handle, op_number(call, "lease", 0),
                        &renewal, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_time(result, "lease_expires_at_ms", renewal.expires_at_ms);
    failed |= op_set_i64(result, "fence", renewal.fence);
    return op_finish(result, failed, out, err);
}

/* {"<what>":true} */
static belay_rc answer_done(belay_rc rc, const char *what, json_t **out,
                            struct belay_error *err)
{
    if (rc)
        return rc;
    json_t *result = json_object();
    return op_finish(result, op_set_bool(result, what, true), out, err);
}

belay_rc op_progress(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    int percent = (int)op_number(call, "percent", -1);
    const char *message = op_str(call, "message");
    struct belay_handle handle;
    belay_rc rc = op_handle(call, &arena, &handle, err);

    if (rc == BELAY_OK && percent < 0 && !message)
        rc = err_reason(err, BELAY_INVALID, "progress",
                        "nothing to tell: give --percent or --message");
    if (rc == BELAY_OK)
        rc = exec_progress(&call->belay->site, &handle, percent, message, err);
    return answer_done(rc, "told", out, err);
}

belay_rc op_frame(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct bytes data = op_get(call, "data")->text;
    int64_t seq = op_number(call, "seq", 0);
    bool is_handed_on = call->frame_seq > 0;
    const struct belay_frame frame = {
        .size = sizeof(frame),
        .kind = op_read_name(op_frame_kind_names, op_get(call, "kind")->text),
        .mode = op_read_name(op_frame_mode_names, op_get(call, "mode")->text),
        .bytes = data.ptr,
        .len = data.len,
        .seq = is_handed_on ? call->frame_seq : seq,
        .frame_type = op_str(call, "frame_type"),
        .correlation_id = op_str(call, "correlation"),
        .caller_seq = is_handed_on && seq == 0 ? -1 : seq,
    };
    struct belay_frame_appended done = { 0 };
    struct belay_handle handle;
    belay_rc rc = op_handle(call, &arena, &handle, err);

    if (rc == BELAY_OK)
        rc = exec_append_frames(&call->belay->site, &handle, &frame, 1, &done, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_i64(result, "seq", done.seq);
    failed |= op_set_i64(result, "frame_count", done.frame_count);
    if (done.repeated > 0 && !is_handed_on) /* else only an answer was lost */
        failed |= op_set_bool(result, "duplicate", true);
    return op_finish(result, failed, out, err);
}

static belay_rc delay_until(const struct op_call *call, int64_t *out,
                            struct belay_error *err)
{
    const struct op_value *length = op_get(call, "for");
    const struct op_value *until = op_get(call, "until");

    if ((length != NULL) == (until != NULL))
        return err_reason(err, BELAY_INVALID, "delay", "either --for or --until");
    if (until) {
        *out = until->number;
        return BELAY_OK;
    }
    belay_rc rc = space_now(call->belay->space, out, err);
    *out = rc ? 0 : time_add_ms(*out, length->number);
    return rc;
}

belay_rc op_delay(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_handle handle;
    int64_t until_ms = 0;
    belay_rc rc = op_handle(call, &arena, &handle, err);

    if (rc == BELAY_OK)
        rc = delay_until(call, &until_ms, err);
    if (rc == BELAY_OK)
        rc = exec_delay(&call->belay->site, &handle, until_ms, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_time(result, "delay_until_ms", until_ms);
    return op_finish(result, failed, out, err);
}

belay_rc op_release(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_handle handle;
    belay_rc rc = op_handle(call, &arena, &handle, err);

    if (rc == BELAY_OK)
        rc = exec_release(&call->belay->site, &handle, err);
    return answer_done(rc, "released", out, err);
}

belay_rc op_abort(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_handle handle;
    belay_rc rc = op_handle(call, &arena, &handle, err);

    if (rc == BELAY_OK)
        rc = exec_abort(&call->belay->site, &handle, op_str(call, "reason"), err);
    return answer_done(rc, "cancelled", out, err);
}

/* --- ends --- */

/* What became of the only item: its error is the answer's. */
static belay_rc single(belay_rc rc, const struct belay_ended *ended,
                       struct belay_error *err)
{
    if (rc != BELAY_OK || ended->code == BELAY_OK)
        return rc;
    if (err)
        *err = ended->err;
    return ended->code;
}

static belay_rc answer_completed(const struct belay_ended *ended,
                                 const struct belay_works *next, struct belay_arena *a,
                                 json_t **out, struct belay_error *err)
{
    struct op_maker m = { .err = err };
    json_t *result = json_object();
    int failed = op_set_text(result, "outcome", "success");

    failed |= op_set_bool(result, "replayed", ended->replayed);
    if (next)
        failed |= json_object_set_new(result, "claims", op_json_works(&m, next, a));
    return op_made(&m, result, failed, out);
}

belay_rc op_complete(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const struct exec_site site = site_of(call);
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_value *result = op_get(call, "result");
    const struct op_value *next = op_get(call, "claim_next");
    struct belay_claim_policy policy;
    struct belay_handle handle;
    struct belay_works works = { 0 };
    struct belay_ended ended = { 0 };
    const struct belay_completion item = {
        .size = sizeof(item),
        .handle = &handle,
        .result = result ? result->text.ptr : NULL,
        .result_len = result ? result->text.len : 0,
        .result_is_json = result != NULL,
    };

    belay_rc rc = op_handle(call, &arena, &handle, err);
    if (rc == BELAY_OK && next)
        rc = op_read_policy(next->json, &arena, &policy, err);
    if (rc == BELAY_OK)
        rc = exec_complete(&site, &item, 1, next ? &policy : NULL, &arena, &ended,
                           &works, err);
    rc = single(rc, &ended, err);
    return rc ? rc : answer_completed(&ended, next ? &works : NULL, &arena, out, err);
}

static json_t *ended_of(const struct belay_ended *e)
{
    json_t *to = json_object();
    int failed = op_set_text(to, "outcome", e->code == BELAY_OK ? "success" : NULL);

    failed |= op_set_bool(to, "replayed", e->replayed);
    failed |= json_object_set_new(to, "error",
                                  e->code ? op_json_error(&e->err) : json_null());
    return op_whole(to, failed);
}

/* All of them.  Of many, a handle that cannot be read concerns its own item only: why[i]
 * says what is wrong with it, and the item has one that is none. */
static belay_rc read_completions(const json_t *list, struct belay_arena *a,
                                 struct belay_completion *items,
                                 struct belay_error *why, struct belay_error *err)
{
    static const struct belay_handle none = { .opaque = NULL };
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++) {
        belay_rc rc =
            op_read_completion(json_array_get(list, i), a, &items[i], &why[i]);
        if (rc == BELAY_BAD_HANDLE && n > 1) {
            items[i] =
                (struct belay_completion){ .size = sizeof(items[i]), .handle = &none };
        } else if (rc != BELAY_OK) {
            *err = why[i];
            return rc;
        }
    }
    return BELAY_OK;
}

belay_rc op_complete_batch(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    const struct exec_site site = site_of(call);
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *list CLEANUP(json_decrefp) = NULL;
    struct op_maker m = { .err = err };
    belay_rc rc = op_read_many(op_get(call, "items")->text, BELAY_WORK_MAX, &list, err);
    size_t n = json_array_size(list);

    if (rc)
        return rc;
    struct belay_completion *items = arena_zalloc(&arena, n, sizeof(*items));
    struct belay_ended *ended = arena_zalloc(&arena, n, sizeof(*ended));
    struct belay_error *why = arena_zalloc(&arena, n, sizeof(*why));
    if (!items || !ended || !why)
        return err_no_memory(err, "the completions");
    rc = read_completions(list, &arena, items, why, err);
    if (rc == BELAY_OK)
        rc = exec_complete(&site, items, n, NULL, &arena, ended, NULL, err);
    if (rc)
        return rc;
    json_t *answers = json_array();
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (why[i].code == BELAY_BAD_HANDLE)
            ended[i] = (struct belay_ended){ .code = BELAY_BAD_HANDLE, .err = why[i] };
        failed |= json_array_append_new(answers, ended_of(&ended[i]));
    }
    return op_made_pages(&m, answers, failed, NULL, out);
}

int op_exit_of_items(const json_t *answer)
{
    const json_t *items = json_object_get(answer, "items");

    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *error = json_object_get(json_array_get(items, i), "error");
        const char *code = json_string_value(json_object_get(error, "code"));
        if (code)
            return belay_error_info(belay_error_code(code))->exit_code;
    }
    return 0;
}

belay_rc op_fail(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_value *detail = op_get(call, "detail");
    struct belay_handle handle;
    struct belay_ended ended = { 0 };
    const struct belay_failure item = {
        .size = sizeof(item),
        .failure_class =
            1 + op_read_name(op_failure_class_names, op_get(call, "class")->text),
        .handle = &handle,
        .message = op_str(call, "message"),
        .detail = detail ? detail->text.ptr : NULL,
        .detail_len = detail ? detail->text.len : 0,
    };

    belay_rc rc = op_handle(call, &arena, &handle, err);
    if (rc == BELAY_OK)
        rc = exec_fail(&call->belay->site, &item, 1, &arena, &ended, err);
    rc = single(rc, &ended, err);
    if (rc)
        return rc;
    bool again = ended.outcome == BELAY_RETRY_SCHEDULED;
    json_t *result = json_object();
    int failed =
        op_set_text(result, "outcome", again ? "retry_scheduled" : "terminal_failed");
    failed |= op_set_time(result, "delay_until_ms", again ? ended.delay_until_ms : -1);
    failed |= op_set_bool(result, "replayed", ended.replayed);
    return op_finish(result, failed, out, err);
}
