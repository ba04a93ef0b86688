/* What is frozen at submission, as canonical JSON.  What is usual is left out, so that the
 * policy of most executions is {} and costs nothing to read. */
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "work/execution_rows.h"

#define POLICY_BYTES_MAX ((size_t)1 << 17)
#define USUAL "{}"

/* --- writing --- */

/* Unless it is the usual one. */
static int set_number(json_t *to, const char *key, int64_t n, int64_t usual)
{
    return n == usual ? 0 : json_object_set_new(to, key, json_integer(n));
}

static int64_t or_usual(int64_t n, int64_t usual)
{
    return n != 0 ? n : usual;
}

/* {"type":"fixed","delay_ms":n} or {"type":"exponential",...}. */
static int set_backoff(json_t *to, const struct belay_retry_policy *r)
{
    CLEANUP(json_decrefp) json_t *backoff = json_object();
    bool fixed = r->backoff == BELAY_BACKOFF_FIXED;
    int64_t delay_ms = r->delay_ms < 0 ? 0 : or_usual(r->delay_ms, RETRY_FIRST_MS);
    int64_t longest_ms = or_usual(r->max_delay_ms, RETRY_LONGEST_MS);
    int failed = set_number(backoff, fixed ? "delay_ms" : "initial_delay_ms", delay_ms,
                            RETRY_FIRST_MS);

    if (!fixed) {
        failed |= set_number(backoff, "max_delay_ms", longest_ms, RETRY_LONGEST_MS);
        if (r->multiplier != 0 && r->multiplier != RETRY_MULTIPLIER)
            failed |=
                json_object_set_new(backoff, "multiplier", json_real(r->multiplier));
        if (r->no_jitter)
            failed |= json_object_set_new(backoff, "jitter", json_false());
    }
    if (!fixed && json_object_size(backoff) == 0)
        return failed;
    failed |= json_object_set_new(backoff, "type",
                                  json_string(fixed ? "fixed" : "exponential"));
    return failed | json_object_set(to, "backoff", backoff);
}

static int set_retryable(json_t *to, const struct belay_retry_policy *r)
{
    CLEANUP(json_decrefp) json_t *list = json_array();
    int failed = 0;

    if (r->n_retryable == 0)
        return 0;
    for (size_t i = 0; i < r->n_retryable; i++)
        failed |= json_array_append_new(list, json_string(r->retryable[i]));
    return failed | json_object_set(to, "retryable", list);
}

static int set_retry(json_t *to, const struct belay_retry_policy *r)
{
    CLEANUP(json_decrefp) json_t *retry = json_object();

    if (!r || r->max_retries == 0)
        return 0;
    return json_object_set_new(retry, "max_retries", json_integer(r->max_retries)) |
           set_backoff(retry, r) | set_retryable(retry, r) |
           json_object_set(to, "retry", retry);
}

/* How many lost leases are allowed: -1 asks for none. */
static int64_t reclaims_of(const struct belay_submission *s)
{
    return s->max_reclaims < 0 ? 0 : or_usual(s->max_reclaims, BELAY_MAX_RECLAIMS);
}

int64_t exec_policy_retention(const struct belay_submission *s)
{
    return s->retention_ms < 0 ? 0 : or_usual(s->retention_ms, BELAY_RETENTION_MS);
}

/* Where it is told, also as the usual one. */
static int set_retention(json_t *to, const struct belay_submission *s)
{
    return s->retention_ms == 0
               ? 0
               : json_object_set_new(to, "retention_ms",
                                     json_integer(exec_policy_retention(s)));
}

static bool is_usual(const struct belay_submission *s)
{
    return (!s->retry || s->retry->max_retries == 0) && s->attempt_timeout_ms == 0 &&
           s->deadline_ms == 0 && s->retention_ms == 0 &&
           reclaims_of(s) == BELAY_MAX_RECLAIMS;
}

belay_rc exec_policy_write(const struct belay_submission *s, struct belay_arena *a,
                           struct bytes *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *policy = NULL;
    CLEANUP(buf_release) struct buf text = { 0 };

    if (is_usual(s)) {
        *out = bytes_str(USUAL);
        return BELAY_OK;
    }
    policy = json_object();
    int failed =
        set_number(policy, "attempt_timeout_ms", s->attempt_timeout_ms, 0) |
        set_number(policy, "deadline_ms", s->deadline_ms, 0) |
        set_number(policy, "max_reclaims", reclaims_of(s), BELAY_MAX_RECLAIMS) |
        set_retention(policy, s) | set_retry(policy, s->retry);
    if (failed)
        return err_no_memory(err, "a policy");
    belay_rc rc = json_write(policy, &text, err);
    if (rc == BELAY_OK && !arena_copy(a, buf_view(&text), out))
        rc = err_no_memory(err, "a policy");
    return rc;
}

/* --- reading --- */

static belay_rc corrupt(struct txn *t, const struct row *spec, const char *what)
{
    struct bytes id = row_bytes(spec, SPEC_ID);
    belay_rc rc = txn_fail(t, BELAY_CORRUPT, "policy",
                           "execution %.*s: the %s of its policy cannot be",
                           (int)id.len, (const char *)id.ptr, what);

    err_entity(txn_error(t), id);
    return rc;
}

/* *io stays as it is where there is none; false: it is no number, or not within 0..max. */
static bool get_number(const json_t *of, const char *key, int64_t max, int64_t *io)
{
    const json_t *n = json_object_get(of, key);

    if (!n)
        return true;
    if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) > max)
        return false;
    *io = json_integer_value(n);
    return true;
}

static bool get_backoff(const json_t *backoff, struct retry_policy *out)
{
    const json_t *type = json_object_get(backoff, "type");
    const json_t *multiplier = json_object_get(backoff, "multiplier");
    const json_t *jitter = json_object_get(backoff, "jitter");

    if (!backoff)
        return true;
    if (!json_is_string(type) || (multiplier && !json_is_number(multiplier)) ||
        (jitter && !json_is_boolean(jitter)))
        return false;
    if (multiplier)
        out->multiplier = json_number_value(multiplier);
    if (jitter)
        out->jitter = json_is_true(jitter);
    if (strcmp(json_string_value(type), "fixed") == 0) {
        out->backoff = BELAY_BACKOFF_FIXED;
        return get_number(backoff, "delay_ms", TIME_MAX_MS, &out->delay_ms);
    }
    return strcmp(json_string_value(type), "exponential") == 0 &&
           isfinite(out->multiplier) && out->multiplier >= 1 &&
           get_number(backoff, "initial_delay_ms", TIME_MAX_MS, &out->delay_ms) &&
           get_number(backoff, "max_delay_ms", TIME_MAX_MS, &out->max_delay_ms);
}

static bool is_list_of_strings(const json_t *list)
{
    if (!json_is_array(list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_string(json_array_get(list, i)))
            return false;
    }
    return true;
}

static belay_rc read_retry(struct txn *t, const struct row *spec, const json_t *retry,
                           struct retry_policy *out)
{
    const json_t *list = json_object_get(retry, "retryable");
    CLEANUP(buf_release) struct buf text = { 0 };

    if (!retry)
        return BELAY_OK;
    if (!json_is_object(retry) ||
        !get_number(retry, "max_retries", TIME_MAX_MS, &out->max_retries) ||
        !get_backoff(json_object_get(retry, "backoff"), out))
        return corrupt(t, spec, "retry");
    if (!list)
        return BELAY_OK;
    if (!is_list_of_strings(list))
        return corrupt(t, spec, "retryable");
    belay_rc rc = json_write(list, &text, txn_error(t));
    if (rc == BELAY_OK && !arena_copy(txn_arena(t), buf_view(&text), &out->retryable))
        rc = err_no_memory(txn_error(t), "a policy");
    return rc;
}

belay_rc exec_policy_read(struct txn *t, const struct row *spec,
                          struct exec_policy *out)
{
    CLEANUP(json_decrefp) json_t *policy = NULL;
    struct bytes text = row_bytes(spec, SPEC_POLICY);
    struct exec_policy p = { .retry = { .backoff = BELAY_BACKOFF_EXPONENTIAL,
                                        .delay_ms = RETRY_FIRST_MS,
                                        .max_delay_ms = RETRY_LONGEST_MS,
                                        .multiplier = RETRY_MULTIPLIER,
                                        .jitter = true },
                             .max_reclaims = BELAY_MAX_RECLAIMS };

    if (text.len == 0 || bytes_eq(text, bytes_str(USUAL))) {
        *out = p;
        return BELAY_OK;
    }
    belay_rc rc = json_read(text, POLICY_BYTES_MAX, &policy, NULL);
    if (rc == BELAY_NO_MEMORY)
        return err_no_memory(txn_error(t), "a policy");
    if (rc || !json_is_object(policy))
        return corrupt(t, spec, "JSON");
    if (!get_number(policy, "attempt_timeout_ms", TIME_MAX_MS, &p.attempt_timeout_ms) ||
        !get_number(policy, "deadline_ms", TIME_MAX_MS, &p.deadline_ms))
        return corrupt(t, spec, "time");
    if (!get_number(policy, "max_reclaims", TIME_MAX_MS, &p.max_reclaims))
        return corrupt(t, spec, "max_reclaims");
    rc = read_retry(t, spec, json_object_get(policy, "retry"), &p.retry);
    if (rc == BELAY_OK)
        *out = p;
    return rc;
}
