/* What callers say about executions, as JSON. */
#include <stdio.h>

#include "api/op_execution.h"
#include "base/json.h"

/* --- a submission --- */

/* A number that is not 0, which `why` says, since a 0 of the struct means the usual. */
static belay_rc read_above_zero(struct op_reader *r, const char *where,
                                const json_t *object, const char *field,
                                const char *why, int64_t *out)
{
    int64_t given = -1;
    belay_rc rc = op_field_number(r, where, object, field, &given);

    if (rc == BELAY_OK && given == 0)
        return op_field_wrong(r, where, field, why);
    if (rc == BELAY_OK && given > 0)
        *out = given;
    return rc;
}

/* A number whose 0 is none: -1 in the struct. */
static belay_rc read_or_none(struct op_reader *r, const char *where,
                             const json_t *object, const char *field, int64_t *out)
{
    int64_t given = *out;
    belay_rc rc = op_field_number(r, where, object, field, &given);

    if (rc == BELAY_OK && json_is_integer(json_object_get(object, field)))
        *out = given == 0 ? -1 : given;
    return rc;
}

static belay_rc read_multiplier(struct op_reader *r, const json_t *backoff,
                                struct belay_retry_policy *out)
{
    const json_t *multiplier = json_object_get(backoff, "multiplier");
    const json_t *jitter = json_object_get(backoff, "jitter");

    if (multiplier &&
        (!json_is_number(multiplier) || json_number_value(multiplier) == 0))
        return op_field_wrong(r, "retry.backoff", "multiplier",
                              "must be a number, 1 to 1000");
    if (jitter && !json_is_boolean(jitter))
        return op_field_wrong(r, "retry.backoff", "jitter", "must be true or false");
    out->multiplier = multiplier ? json_number_value(multiplier) : 0;
    out->no_jitter = json_is_false(jitter);
    return BELAY_OK;
}

static belay_rc read_backoff(struct op_reader *r, const json_t *backoff,
                             struct belay_retry_policy *out)
{
    static const char *const fixed[] = { "type", "delay_ms", NULL };
    static const char *const exponential[] = { "type",         "initial_delay_ms",
                                               "max_delay_ms", "multiplier",
                                               "jitter",       NULL };
    static const char where[] = "retry.backoff";
    const char *type = NULL;
    belay_rc rc = op_field_text(r, where, backoff, "type", true, &type);

    if (rc != BELAY_OK)
        return rc;
    if (strcmp(type, "fixed") == 0) {
        out->backoff = BELAY_BACKOFF_FIXED;
        rc = op_field_only(r, where, backoff, fixed);
        return rc ? rc : read_or_none(r, where, backoff, "delay_ms", &out->delay_ms);
    }
    if (strcmp(type, "exponential") != 0)
        return op_field_wrong(r, where, "type", "must be fixed or exponential");
    rc = op_field_only(r, where, backoff, exponential);
    if (rc == BELAY_OK)
        rc = read_above_zero(r, where, backoff, "initial_delay_ms", "must be above 0",
                             &out->delay_ms);
    if (rc == BELAY_OK)
        rc = read_above_zero(r, where, backoff, "max_delay_ms", "must be above 0",
                             &out->max_delay_ms);
    return rc ? rc : read_multiplier(r, backoff, out);
}

static belay_rc read_retry(struct op_reader *r, const json_t *value,
                           struct belay_submission *out)
{
    static const char *const fields[] = { "max_retries", "backoff", "retryable", NULL };
    const json_t *retry, *backoff = NULL;
    belay_rc rc = op_field_object(r, "", value, "retry", &retry);

    if (rc != BELAY_OK || !retry)
        return rc;
    struct belay_retry_policy *policy = arena_zalloc(r->arena, 1, sizeof(*policy));
    if (!policy)
        return err_no_memory(r->err, "a submission");
    *policy = (struct belay_retry_policy){ .size = sizeof(*policy),
                                           .max_retries = BELAY_MAX_RETRIES };
    rc = op_field_only(r, "retry", retry, fields);
    if (rc == BELAY_OK)
        rc = op_field_number(r, "retry", retry, "max_retries", &policy->max_retries);
    if (rc == BELAY_OK)
        rc = op_field_texts(r, "retry", retry, "retryable", &policy->retryable,
                            &policy->n_retryable);
    if (rc == BELAY_OK)
        rc = op_field_object(r, "retry", retry, "backoff", &backoff);
    if (rc == BELAY_OK && backoff)
        rc = read_backoff(r, backoff, policy);
    out->retry = policy;
    return rc;
}

static belay_rc read_tags(struct op_reader *r, const json_t *value,
                          struct belay_submission *out)
{
    const json_t *object;
    const char *key;
    json_t *tag;
    size_t n = 0;
    belay_rc rc = op_field_object(r, "", value, "tags", &object);

    if (rc != BELAY_OK || json_object_size(object) == 0)
        return rc;
    struct belay_tag *tags =
        arena_zalloc(r->arena, json_object_size(object), sizeof(*tags));
    if (!tags)
        return err_no_memory(r->err, "a submission");
    json_object_foreach((json_t *)object, key, tag)
    {
        if (!json_is_string(tag))
            return op_field_wrong(r, "tags", key, "must be a string");
        tags[n++] = (struct belay_tag){ .key = key, .value = json_string_value(tag) };
    }
    out->tags = tags;
    out->n_tags = n;
    return BELAY_OK;
}

static belay_rc read_texts(struct op_reader *r, const json_t *value,
                           struct belay_submission *out)
{
    const struct {
        const char *name;
        bool required;
        const char **to;
    } texts[] = {
        { "lane", true, &out->lane },
        { "kind", false, &out->kind },
        { "session", false, &out->session },
        { "process", false, &out->process },
        { "process_event", false, &out->process_event },
        { "traceparent", false, &out->traceparent },
        { "tracestate", false, &out->tracestate },
        { "creator", false, &out->creator },
        { "key", false, &out->key },
    };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; rc == BELAY_OK && i < COUNT_OF(texts); i++)
        rc = op_field_text(r, "", value, texts[i].name, texts[i].required, texts[i].to);
    return rc;
}

static belay_rc read_numbers(struct op_reader *r, const json_t *value,
                             struct belay_submission *out)
{
    int64_t priority = 0;
    const struct {
        const char *name;
        int64_t *to;
        const char *no_zero; /* why not */
    } numbers[] = {
        { "priority", &priority, NULL },
        { "delay_ms", &out->delay_ms, NULL },
        { "run_at_ms", &out->run_at_ms, NULL },
        { "deadline_ms", &out->deadline_ms, OP_ZERO_NO_LIMIT },
        { "attempt_timeout_ms", &out->attempt_timeout_ms, OP_ZERO_NO_LIMIT },
        { "key_window_ms", &out->key_window_ms, OP_ZERO_NO_KEY },
    };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; rc == BELAY_OK && i < COUNT_OF(numbers); i++)
        rc = numbers[i].no_zero
                 ? read_above_zero(r, "", value, numbers[i].name, numbers[i].no_zero,
                                   numbers[i].to)
                 : op_field_number(r, "", value, numbers[i].name, numbers[i].to);
    out->max_reclaims = BELAY_MAX_RECLAIMS;
    if (rc == BELAY_OK)
        rc = read_or_none(r, "", value, "max_reclaims", &out->max_reclaims);
    if (rc == BELAY_OK)
        rc = read_or_none(r, "", value, "retention_ms", &out->retention_ms);
    if (rc == BELAY_OK && json_object_get(value, "delay_ms") &&
        json_object_get(value, "run_at_ms"))
        rc = op_field_wrong(r, "", "run_at_ms", OP_DELAY_GIVEN("delay_ms"));
    if (rc == BELAY_OK && priority > BELAY_PRIORITY_MAX)
        rc = op_field_wrong(r, "", "priority", "must be from 0 to 9000");
    out->priority = (int32_t)priority;
    return rc;
}

belay_rc op_read_submission(const json_t *value, struct belay_arena *a,
                            struct belay_submission *out, struct belay_error *err)
{
    static const char *const fields[] = { "lane",
                                          "kind",
                                          "session",
                                          "process",
                                          "process_event",
                                          "traceparent",
                                          "tracestate",
                                          "creator",
                                          "key",
                                          "priority",
                                          "delay_ms",
                                          "run_at_ms",
                                          "deadline_ms",
                                          "retry",
                                          "requires",
                                          "tags",
                                          "attempt_timeout_ms",
                                          "payload",
                                          "max_reclaims",
                                          "retention_ms",
                                          "payload_base64",
                                          "key_window_ms",
                                          NULL };
    struct belay_submission s = { .size = sizeof(s) };
    struct op_reader r = { .arena = a, .err = err };
    struct bytes payload;

    if (!json_is_object(value))
        return err_reason(err, BELAY_INVALID, "field",
                          "a submission must be an object");
    belay_rc rc = op_field_only(&r, "", value, fields);
    if (rc == BELAY_OK)
        rc = read_texts(&r, value, &s);
    if (rc == BELAY_OK)
        rc = read_numbers(&r, value, &s);
    if (rc == BELAY_OK)
        rc = read_retry(&r, value, &s);
    if (rc == BELAY_OK)
        rc = op_field_texts(&r, "", value, "requires", &s.requires, &s.n_requires);
    if (rc == BELAY_OK)
        rc = read_tags(&r, value, &s);
    if (rc == BELAY_OK)
        rc = op_field_data(&r, "", value, "payload", &payload, &s.payload_is_json);
    if (rc != BELAY_OK)
        return rc;
    s.payload = payload.ptr;
    s.payload_len = payload.len;
    *out = s;
    return BELAY_OK;
}

/* --- claims --- */

belay_rc op_read_policy(const json_t *value, struct belay_arena *a,
                        struct belay_claim_policy *out, struct belay_error *err)
{
    static const char *const fields[] = { "lanes", "worker",   "capabilities",
                                          "max",   "lease_ms", "wait_ms",
                                          NULL };
    struct belay_claim_policy p = { .size = sizeof(p) };
    struct op_reader r = { .arena = a, .err = err };
    int64_t max = 1, lease_ms = BELAY_EXECUTION_LEASE_MS;

    if (!json_is_object(value))
        return err_reason(err, BELAY_INVALID, "field",
                          "who asks for work must be an object");
    belay_rc rc = op_field_only(&r, "", value, fields);
    if (rc == BELAY_OK)
        rc = op_field_texts(&r, "", value, "lanes", &p.lanes, &p.n_lanes);
    if (rc == BELAY_OK)
        rc = op_field_text(&r, "", value, "worker", true, &p.worker);
    if (rc == BELAY_OK)
        rc = op_field_texts(&r, "", value, "capabilities", &p.capabilities,
                            &p.n_capabilities);
    if (rc == BELAY_OK)
        rc = op_field_number(&r, "", value, "max", &max);
    if (rc == BELAY_OK)
        rc = op_field_number(&r, "", value, "lease_ms", &lease_ms);
    if (rc == BELAY_OK)
        rc = op_field_number(&r, "", value, "wait_ms", &p.max_wait_ms);
    if (rc == BELAY_OK && (max < 1 || max > BELAY_WORK_MAX))
        rc = op_field_wrong(&r, "", "max", "must be from 1 to 1000");
    if (rc != BELAY_OK)
        return rc;
    p.max = (size_t)max;
    p.lease_ms = lease_ms == 0 ? -1 : lease_ms; /* past due at once */
    *out = p;
    return BELAY_OK;
}

belay_rc op_read_completion(const json_t *value, struct belay_arena *a,
                            struct belay_completion *out, struct belay_error *err)
{
    static const char *const fields[] = { "handle", "result", "result_base64", NULL };
    struct belay_completion c = { .size = sizeof(c) };
    struct op_reader r = { .arena = a, .err = err };
    struct belay_handle *handle = arena_zalloc(a, 1, sizeof(*handle));
    const char *text = NULL;
    struct bytes result;

    if (!handle)
        return err_no_memory(err, "a handle");
    if (!json_is_object(value))
        return err_reason(err, BELAY_INVALID, "field",
                          "a completion must be an object");
    belay_rc rc = op_field_only(&r, "", value, fields);
    if (rc == BELAY_OK)
        rc = op_field_text(&r, "", value, "handle", true, &text);
    if (rc == BELAY_OK)
        rc = handle_parse(text, a, handle, err);
    if (rc == BELAY_OK)
        rc = op_field_data(&r, "", value, "result", &result, &c.result_is_json);
    if (rc != BELAY_OK)
        return rc;
    c.handle = handle;
    c.result = result.ptr;
    c.result_len = result.len;
    *out = c;
    return BELAY_OK;
}

/* --- many --- */

/* One value a line; empty lines do not count. */
static belay_rc read_lines(struct bytes text, json_t *list, struct belay_error *err)
{
    for (size_t line = 1; text.len > 0; line++) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        struct bytes one = bytes_of(text.ptr, len);
        json_t *value = NULL;

        text = bytes_of(text.ptr + len + (end ? 1 : 0), text.len - len - (end ? 1 : 0));
        while (one.len > 0 && strchr(" \t\r", one.ptr[one.len - 1]))
            one.len--;
        if (one.len == 0)
            continue;
        belay_rc rc = json_read(one, one.len, &value, err);
        if (rc == BELAY_OK && json_array_append_new(list, value))
            rc = err_no_memory(err, "the input");
        if (rc != BELAY_OK) {
            char where[32];
            (void)snprintf(where, sizeof(where), "line %zu", line);
            err_context(err, where);
            return rc;
        }
    }
    return BELAY_OK;
}

/* The list that a document is or holds, or one of only itself; NULL: no memory. */
static json_t *list_in(json_t *document)
{
    json_t *items = json_object_get(document, "items");

    if (json_is_array(items))
        return json_incref(items);
    if (json_is_array(document))
        return json_incref(document);
    json_t *list = json_array();
    return op_whole(list, json_array_append(list, document));
}

belay_rc op_read_many(struct bytes text, size_t max, json_t **out,
                      struct belay_error *err)
{
    json_t *document CLEANUP(json_decrefp) = NULL;
    struct belay_error ignored;
    belay_rc rc = json_read(text, text.len, &document, &ignored);
    json_t *list = rc == BELAY_OK ? list_in(document) : json_array();

    if (!list || rc == BELAY_NO_MEMORY) {
        json_decref(list);
        return err_no_memory(err, "the input");
    }
    rc = rc == BELAY_OK ? BELAY_OK : read_lines(text, list, err);
    size_t n = json_array_size(list);
    if (rc == BELAY_OK && (n < 1 || n > max)) {
        rc = err_reason(err, BELAY_INVALID, "count", "must hold 1 to %zu values", max);
        err_numbers(err, (int64_t)max, (int64_t)n);
    }
    if (rc != BELAY_OK)
        json_decref(list);
    else
        *out = list;
    return rc;
}
