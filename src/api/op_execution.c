/* Submitting executions, and what operators do to them. */
#include "api/op_execution.h"

/* --- submitting --- */

/* {"argv":[...]} of the words behind --, canonical; ptr NULL: there are none. */
static belay_rc argv_payload(const struct op_call *call, struct belay_arena *a,
                             struct bytes *out, struct belay_error *err)
{
    struct op_reader r = { .arena = a, .err = err };
    json_t *payload CLEANUP(json_decrefp) = json_object();
    json_t *argv = json_array();
    int failed = 0;

    for (size_t i = 0; i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, "argv") == 0)
            failed |= json_array_append_new(argv, op_text(call->values[i].text));
    }
    *out = bytes_of(NULL, 0);
    bool is_empty = json_array_size(argv) == 0;
    failed |= json_object_set_new(payload, "argv", argv);
    if (failed)
        return err_no_memory(err, "the payload");
    return is_empty ? BELAY_OK : op_field_canonical(&r, payload, out);
}

static belay_rc read_payload(const struct op_call *call, struct belay_arena *a,
                             struct belay_submission *out, struct belay_error *err)
{
    const struct op_value *given = op_get(call, "payload");
    struct bytes payload;
    belay_rc rc = argv_payload(call, a, &payload, err);

    if (rc == BELAY_OK && given && payload.ptr)
        return err_reason(err, BELAY_INVALID, "payload",
                          "--payload: not together with a command behind --");
    if (given)
        payload = given->text;
    out->payload = payload.ptr;
    out->payload_len = payload.len;
    out->payload_is_json = payload.ptr != NULL;
    return rc;
}

/* The policy where something of it is given. */
static belay_rc read_retry(const struct op_call *call, struct belay_arena *a,
                           struct belay_retry_policy *policy,
                           struct belay_submission *out, struct belay_error *err)
{
    const struct op_value *backoff = op_get(call, "backoff");

    *policy = (struct belay_retry_policy){
        .size = sizeof(*policy),
        .max_retries = op_number(call, "retries", BELAY_MAX_RETRIES),
    };
    if (backoff && !op_read_backoff(backoff->text, policy)) {
        (void)err_reason(err, BELAY_INVALID, "retry",
                         "--backoff: must be fixed:D or exp:D..D, from above 0 up to "
                         "no less, as in exp:1s..60s");
        err_entity(err, bytes_str("backoff"));
        return BELAY_INVALID;
    }
    if (backoff || op_get(call, "retries") || op_get(call, "retryable"))
        out->retry = policy;
    return op_strs(call, "retryable", a, &policy->retryable, &policy->n_retryable, err);
}

/* What cannot be 0, since a 0 of the struct means that it is not given. */
static belay_rc refuse_zeros(const struct op_call *call, struct belay_error *err)
{
    static const struct {
        const char *name, *option, *why;
    } given[] = {
        { "deadline", "--deadline", OP_ZERO_NO_LIMIT },
        { "attempt_timeout", "--attempt-timeout", OP_ZERO_NO_LIMIT },
        { "key_window", "--key-window", OP_ZERO_NO_KEY },
    };

    for (size_t i = 0; i < COUNT_OF(given); i++) {
        if (op_number(call, given[i].name, 1) == 0)
            return err_reason(err, BELAY_INVALID, given[i].name, "%s: %s",
                              given[i].option, given[i].why);
    }
    return BELAY_OK;
}

/* None is -1 in the struct, whose 0 is the usual. */
static int64_t none_or(int64_t number)
{
    return number == 0 ? -1 : number;
}

static belay_rc read_submission(const struct op_call *call, struct belay_arena *a,
                                struct belay_retry_policy *policy,
                                struct belay_submission *out, struct belay_error *err)
{
    *out = (struct belay_submission){
        .size = sizeof(*out),
        .lane = op_str(call, "lane"),
        .kind = op_str(call, "kind"),
        .priority = (int32_t)op_number(call, "priority", 0),
        .delay_ms = op_number(call, "delay", 0),
        .run_at_ms = op_number(call, "run_at", 0),
        .deadline_ms = op_number(call, "deadline", 0),
        .attempt_timeout_ms = op_number(call, "attempt_timeout", 0),
        .session = op_str(call, "session"),
        .process = op_str(call, "process"),
        .process_event = op_str(call, "process_event"),
        .traceparent = op_str(call, "trace_parent"),
        .tracestate = op_str(call, "trace_state"),
        .creator = call->principal,
        .key = op_str(call, "key"),
        .key_window_ms = op_number(call, "key_window", 0),
        .max_reclaims = none_or(op_number(call, "max_reclaims", BELAY_MAX_RECLAIMS)),
        .retention_ms =
            op_get(call, "retention") ? none_or(op_number(call, "retention", 0)) : 0,
    };
    belay_rc rc = refuse_zeros(call, err);
    if (rc == BELAY_OK && op_get(call, "delay") && op_get(call, "run_at"))
        rc = err_reason(err, BELAY_INVALID, "run_at",
                        "--run-at: " OP_DELAY_GIVEN("--delay"));
    if (rc == BELAY_OK)
        rc = read_payload(call, a, out, err);
    if (rc == BELAY_OK)
        rc = read_retry(call, a, policy, out, err);
    if (rc == BELAY_OK)
        rc = op_strs(call, "require", a, &out->requires, &out->n_requires, err);
    if (rc == BELAY_OK)
        rc = op_tags(call, "tag", a, &out->tags, &out->n_tags, err);
    return rc;
}

static json_t *submitted(const struct belay_submitted *s)
{
    json_t *to = json_object();
    int failed = op_set_text(to, "id", s->execution_id);

    failed |= op_set_value(to, "state", BELAY_DIM_STATE, s->state);
    failed |= op_set_bool(to, "duplicate", s->duplicate);
    return op_whole(to, failed);
}

/* The whole execution; where it cannot be read now, what is known of it: submitted it
 * is. */
static belay_rc answer_submitted(const struct op_call *call,
                                 const struct belay_submitted *done,
                                 struct belay_arena *a, json_t **out,
                                 struct belay_error *err)
{
    struct op_maker m = { .err = err };
    struct belay_execution e;
    json_t *result;
    int failed = 0;

    if (exec_describe(&call->belay->site, done->execution_id, a, &e, NULL)) {
        result = submitted(done);
    } else {
        result = op_json_execution(&m, &e, true);
        failed = op_set_bool(result, "duplicate", done->duplicate);
    }
    return op_made(&m, result, failed | !result, out);
}

belay_rc op_submit(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_retry_policy policy;
    struct belay_submission item;
    struct belay_submitted done = { 0 };

    belay_rc rc = read_submission(call, &arena, &policy, &item, err);
    if (rc == BELAY_OK)
        rc = exec_submit(&call->belay->site, &item, 1, &arena, &done, err);
    return rc ? rc : answer_submitted(call, &done, &arena, out, err);
}

/* "item 3: why" */
static belay_rc of_item(belay_rc rc, size_t i, struct belay_error *err)
{
    char where[32];

    (void)snprintf(where, sizeof(where), "item %zu", i + 1);
    err_context(err, where);
    return rc;
}

belay_rc op_submit_batch(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *list CLEANUP(json_decrefp) = NULL;
    struct op_maker m = { .err = err };
    belay_rc rc =
        op_read_many(op_get(call, "items")->text, BELAY_SUBMIT_MAX, &list, err);
    size_t n = json_array_size(list);

    if (rc)
        return rc;
    struct belay_submission *items = arena_zalloc(&arena, n, sizeof(*items));
    struct belay_submitted *done = arena_zalloc(&arena, n, sizeof(*done));
    if (!items || !done)
        return err_no_memory(err, "the submissions");
    for (size_t i = 0; i < n; i++) {
        rc = op_read_submission(json_array_get(list, i), &arena, &items[i], err);
        if (rc)
            return of_item(rc, i, err);
        if (!items[i].creator)
            items[i].creator = call->principal;
    }
    rc = exec_submit(&call->belay->site, items, n, &arena, done, err);
    if (rc)
        return rc;
    json_t *answers = json_array();
    int failed = 0;
    for (size_t i = 0; i < n; i++)
        failed |= json_array_append_new(answers, submitted(&done[i]));
    return op_made_pages(&m, answers, failed, NULL, out);
}

/* --- control --- */

belay_rc op_cancel(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const char *id = op_str(call, "id");
    belay_rc rc =
        exec_cancel(&call->belay->site, id, op_str(call, "reason"), NULL, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "id", id);
    failed |= op_set_value(result, "state", BELAY_DIM_STATE, BELAY_STATE_CANCELLED);
    return op_finish(result, failed, out, err);
}

belay_rc op_replay(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const char *id = op_str(call, "id");
    belay_rc rc = exec_replay(&call->belay->site, id, op_str(call, "reason"), err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "id", id);
    failed |= op_set_bool(result, "replayed", true);
    return op_finish(result, failed, out, err);
}

belay_rc op_priority(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const char *id = op_str(call, "id");
    int priority = (int)op_number(call, "priority", 0);
    belay_rc rc = exec_set_priority(&call->belay->site, id, priority, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "id", id);
    failed |= op_set_i64(result, "priority", priority);
    return op_finish(result, failed, out, err);
}

belay_rc op_revoke(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const char *id = op_str(call, "id");
    bool revoked = false;
    belay_rc rc = exec_revoke(&call->belay->site, id, op_str(call, "lease_id"),
                              op_str(call, "reason"), &revoked, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "id", id);
    failed |= op_set_bool(result, "revoked", revoked);
    return op_finish(result, failed, out, err);
}

/* Tags to set and those to remove, whose value is NULL. */
static belay_rc read_changes(const struct op_call *call, struct belay_arena *a,
                             struct belay_tag **out, size_t *n, struct belay_error *err)
{
    const struct belay_tag *set = NULL;
    const char *const *removed = NULL;
    size_t n_set = 0, n_removed = 0;
    belay_rc rc = op_tags(call, "tags", a, &set, &n_set, err);

    if (rc == BELAY_OK)
        rc = op_strs(call, "remove", a, &removed, &n_removed, err);
    if (rc)
        return rc;
    struct belay_tag *tags = arena_zalloc(a, n_set + n_removed + 1, sizeof(*tags));
    if (!tags)
        return err_no_memory(err, "the tags");
    if (n_set + n_removed == 0)
        return err_reason(err, BELAY_INVALID, "tag",
                          "nothing to do: give KEY=VALUE or --remove KEY");
    memcpy(tags, set, n_set * sizeof(*tags));
    for (size_t i = 0; i < n_removed; i++)
        tags[n_set + i].key = removed[i];
    *out = tags;
    *n = n_set + n_removed;
    return BELAY_OK;
}

belay_rc op_tag(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *id = op_str(call, "id");
    struct belay_tag *tags = NULL;
    size_t n = 0;
    belay_rc rc = read_changes(call, &arena, &tags, &n, err);

    if (rc == BELAY_OK)
        rc = exec_tag(&call->belay->site, id, tags, n, err);
    if (rc)
        return rc;
    json_t *result = json_object(), *changed = json_object();
    int failed = op_set_text(result, "id", id);
    for (size_t i = 0; i < n; i++)
        failed |= op_set_text(changed, tags[i].key, tags[i].value);
    failed |= json_object_set_new(result, "tags", changed);
    return op_finish(result, failed, out, err);
}

/* --- what happens by itself --- */

static json_t *report_of(const struct belay_timer_report *r)
{
    json_t *to = json_object();
    int failed = op_set_i64(to, "promoted", r->promoted);

    failed |= op_set_i64(to, "expired_leases", r->expired_leases);
    failed |= op_set_i64(to, "capped", r->capped);
    failed |= op_set_i64(to, "timed_out", r->timed_out);
    failed |= op_set_i64(to, "expired", r->expired);
    failed |= op_set_i64(to, "purged", r->purged);
    failed |= op_set_i64(to, "keys", r->keys);
    failed |= op_set_time(to, "next_due_at_ms", r->next_due_at_ms);
    failed |= op_set_bool(to, "busy", r->busy);
    return op_whole(to, failed);
}

/* Steps until nothing more is due. */
static belay_rc run_once(const struct op_call *call,
                         const struct belay_scanner_filter *filter, json_t **out,
                         struct belay_error *err)
{
    struct belay_timer_report all = { 0 }, one;

    do {
        one = (struct belay_timer_report){ 0 };
        belay_rc rc = exec_timers_pass(call->belay->store, call->belay->site.grace_ms,
                                       filter, &one, err);
        if (rc)
            return rc;
        all.next_due_at_ms =
            BELAY_TIME_NONE; /* what counts is when the last one ended */
        all.busy = false;
        timer_report_add(&all, &one);
    } while (one.more && !one.busy);
    json_t *result = report_of(&all);
    return op_finish(result, !result, out, err);
}

belay_rc op_timers(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_scanner_filter filter = { .size = sizeof(filter) };
    const struct belay_tag *tags = NULL;
    size_t n = 0;
    belay_rc rc = op_tags(call, "only_tag", &arena, &tags, &n, err);

    if (rc)
        return rc;
    if (n > 0) {
        filter.tag_key = tags[0].key;
        filter.tag_value = tags[0].value;
    }
    filter.ns = op_str(call, "only_namespace");
    if (op_get(call, "once"))
        return run_once(call, &filter, out, err);
    rc = exec_timers_serve(&call->belay->site, &filter, call->cancel, err);
    if (rc != BELAY_OK && rc != BELAY_CANCELLED)
        return rc;
    json_t *result = json_object();
    return op_finish(result, op_set_bool(result, "stopped", true), out, err);
}
