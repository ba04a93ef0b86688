/* Executions through the library: names, handles, submitting, claiming, holding. */
#include <belay/execution.h>

#include "api/check_execution.h"
#include "api/handle.h"
#include "policy/filter.h"
#include "policy/vector.h"
#include "work/execution.h"

static const struct sized submission_type = {
    "belay_submission", sizeof(struct belay_submission),
    END_OF(struct belay_submission, retention_ms)
};
static const struct sized retry_type = {
    "belay_retry_policy", sizeof(struct belay_retry_policy),
    END_OF(struct belay_retry_policy, n_retryable)
};
static const struct sized policy_type = { "belay_claim_policy",
                                          sizeof(struct belay_claim_policy),
                                          END_OF(struct belay_claim_policy, cancel) };

/* --- names --- */

int belay_state_derive(const struct belay_vector *v)
{
    return v ? (int)vector_state(v) : (int)BELAY_STATE_ANY;
}

static bool is_dimension(int dimension)
{
    return dimension >= 0 && dimension < (int)BELAY_DIM_COUNT;
}

const char *belay_value_name(int dimension, int value)
{
    return is_dimension(dimension) ? vector_name((enum belay_dimension)dimension, value)
                                   : NULL;
}

bool belay_value_parse(int dimension, const char *name, int *out)
{
    return name && out && is_dimension(dimension) &&
           vector_parse((enum belay_dimension)dimension, bytes_str(name), out);
}

/* NULL is empty with a pointer that is NULL. */
static struct bytes bytes_or_none(const char *text)
{
    return text ? bytes_str(text) : bytes_of(NULL, 0);
}

static struct filter filter_of(const struct belay_scanner_filter *f)
{
    const struct filter none = { 0 };

    if (!f)
        return none;
    return (struct filter){ .ns = bytes_or_none(f->ns),
                            .tag_key = bytes_or_none(f->tag_key),
                            .tag_value = bytes_or_none(f->tag_value) };
}

bool belay_scanner_filter_is_noop(const struct belay_scanner_filter *f)
{
    const struct filter filter = filter_of(f);

    return filter_is_noop(&filter);
}

bool belay_scanner_filter_matches(const struct belay_scanner_filter *f, const char *ns,
                                  const struct belay_tag *tags, size_t n_tags)
{
    const struct filter filter = filter_of(f);
    struct bytes tag = { 0 };

    for (size_t i = 0; f && f->tag_key && tags && i < n_tags; i++) {
        if (tags[i].key && tags[i].value && strcmp(tags[i].key, f->tag_key) == 0)
            tag = bytes_str(tags[i].value);
    }
    return filter_matches(&filter, bytes_or_none(ns), tag);
}

/* --- handles --- */

belay_rc handle_given(const struct belay_handle *h, struct belay_error *err)
{
    if (!h || (!h->opaque && h->opaque_len > 0))
        return err_set(err, BELAY_MISUSE,
                       "struct belay_handle: it, or its bytes, is NULL");
    return BELAY_OK;
}

belay_rc belay_handle_text(const struct belay_handle *h, struct belay_arena *arena,
                           const char **out, struct belay_error *err)
{
    const char *text = NULL;

    if (!h || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    if (rc == BELAY_OK)
        rc = handle_text(h, arena, &text, err);
    if (rc == BELAY_OK)
        *out = text;
    return rc;
}

belay_rc belay_handle_parse(const char *text, struct belay_arena *arena,
                            struct belay_handle *out, struct belay_error *err)
{
    struct belay_handle found;

    if (!text || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = handle_parse(text, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_handle_read(const struct belay_handle *h, struct belay_arena *arena,
                           struct belay_handle_info *out, struct belay_error *err)
{
    struct exec_handle found;

    if (!h || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    if (rc == BELAY_OK)
        rc = handle_decode(h, &found, err);
    if (rc)
        return rc;
    struct bytes parts[] = { found.ns,       found.execution, found.attempt_id,
                             found.lease_id, found.lane,      found.worker };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (!arena_copy(arena, parts[i], &parts[i]))
            return err_no_memory(err, "a handle");
    }
    *out = (struct belay_handle_info){
        .ns = (const char *)parts[0].ptr,
        .execution_id = (const char *)parts[1].ptr,
        .attempt_id = (const char *)parts[2].ptr,
        .lease_id = (const char *)parts[3].ptr,
        .lane = (const char *)parts[4].ptr,
        .worker = (const char *)parts[5].ptr,
        .attempt = found.attempt,
        .fence = found.fence,
        .lease_ms = found.lease_ms,
    };
    return BELAY_OK;
}

/* --- submitting --- */

belay_rc count_given(size_t n, size_t max, const char *what, struct belay_error *err)
{
    if (n >= 1 && n <= max)
        return BELAY_OK;
    (void)err_reason(err, BELAY_INVALID, "count", "%s: must be 1 to %zu", what, max);
    err_numbers(err, (int64_t)max, (int64_t)n);
    return BELAY_INVALID;
}

belay_rc bytes_given(const void *bytes, size_t len, const char *what,
                     struct belay_error *err)
{
    return bytes || len == 0 ? BELAY_OK : null_given(err, what);
}

static belay_rc tags_given(const struct belay_tag *tags, size_t n,
                           struct belay_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!tags || !tags[i].key || !tags[i].value)
            return null_given(err, "belay_submission.tags");
    }
    return BELAY_OK;
}

static belay_rc submission_given(const struct belay_submission *s,
                                 struct belay_error *err)
{
    const struct belay_retry_policy *retry = s->retry;
    belay_rc rc = s->lane ? BELAY_OK : null_given(err, "belay_submission.lane");

    if (rc == BELAY_OK)
        rc = bytes_given(s->payload, s->payload_len, "belay_submission.payload", err);
    if (rc == BELAY_OK)
        rc = strings_given(s->requires, s->n_requires, "requires", err);
    if (rc == BELAY_OK)
        rc = tags_given(s->tags, s->n_tags, err);
    if (rc == BELAY_OK && retry)
        rc = strings_given(retry->retryable, retry->n_retryable, "retryable", err);
    return rc;
}

/* Items with retry policies of this version: the list itself unless one has another. */
static belay_rc with_policies(const struct belay_submission *items, size_t n,
                              struct belay_arena *a,
                              const struct belay_submission **out,
                              struct belay_error *err)
{
    struct belay_submission *own = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct belay_retry_policy *retry = items[i].retry;
        if (!retry || retry->size == sizeof(*retry))
            continue;
        struct belay_retry_policy *known = arena_alloc(a, sizeof(*known));
        if (!own && (own = arena_zalloc(a, n, sizeof(*own))) != NULL)
            memcpy(own, items, n * sizeof(*own));
        if (!known || !own)
            return err_no_memory(err, "a submission");
        belay_rc rc = sized_read(&retry_type, retry, known, err);
        if (rc)
            return rc;
        own[i].retry = known;
    }
    *out = own ? own : items;
    return BELAY_OK;
}

static belay_rc submissions_read(const struct belay_submission *in, size_t n,
                                 struct belay_arena *a,
                                 const struct belay_submission **out,
                                 struct belay_error *err)
{
    const void *list = NULL;
    belay_rc rc = sized_list(&submission_type, in, n, a, &list, err);

    if (rc == BELAY_OK)
        rc = with_policies(list, n, a, out, err);
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        rc = submission_given(&(*out)[i], err);
    return rc;
}

belay_rc belay_execution_submit(struct belay *b, const struct belay_submission *items,
                                size_t n, struct belay_arena *arena,
                                struct belay_submitted *out, struct belay_error *err)
{
    const struct belay_submission *known = NULL;

    if (!b || !items || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = count_given(n, BELAY_SUBMIT_MAX, "submissions", err);
    if (rc == BELAY_OK)
        rc = submissions_read(items, n, arena, &known, err);
    if (rc)
        return rc;
    struct belay_submitted *found = arena_zalloc(arena, n, sizeof(*found));
    if (!found)
        return err_no_memory(err, "the answer");
    rc = exec_submit(&b->site, known, n, arena, found, err);
    if (rc == BELAY_OK)
        memcpy(out, found, n * sizeof(*found));
    return rc;
}

/* --- claiming --- */

belay_rc claim_policy_read(const struct belay_claim_policy *in,
                           struct belay_claim_policy *out, struct belay_error *err)
{
    belay_rc rc = sized_read(&policy_type, in, out, err);

    if (rc == BELAY_OK && !out->worker)
        rc = null_given(err, "belay_claim_policy.worker");
    if (rc == BELAY_OK)
        rc = strings_given(out->lanes, out->n_lanes, "lanes", err);
    if (rc == BELAY_OK)
        rc = strings_given(out->capabilities, out->n_capabilities, "capabilities", err);
    return rc;
}

belay_rc belay_execution_claim(struct belay *b, const struct belay_claim_policy *policy,
                               struct belay_arena *arena, struct belay_works *out,
                               struct belay_error *err)
{
    struct belay_claim_policy known;
    struct belay_works found = { 0 };

    if (!b || !policy || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = claim_policy_read(policy, &known, err);
    if (rc == BELAY_OK)
        rc = exec_claim(&b->site, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_grant(struct belay *b, const struct belay_claim_policy *policy,
                               int64_t grant_ms, struct belay_arena *arena,
                               struct belay_grant *out, struct belay_error *err)
{
    struct belay_claim_policy known;
    struct belay_grant found = { 0 };

    if (!b || !policy || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = claim_policy_read(policy, &known, err);
    if (rc == BELAY_OK)
        rc = exec_grant(&b->site, &known, grant_ms, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_grant_one(struct belay *b, const char *execution_id,
                                   const char *worker, int64_t grant_ms,
                                   struct belay_arena *arena, struct belay_grant *out,
                                   struct belay_error *err)
{
    struct belay_grant found = { 0 };

    if (!b || !execution_id || !worker || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc =
        exec_grant_one(&b->site, execution_id, worker, grant_ms, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_claim_grant(struct belay *b, const char *grant_id,
                                     const char *worker, int64_t lease_ms,
                                     struct belay_arena *arena, struct belay_work *out,
                                     struct belay_error *err)
{
    struct belay_work found = { 0 };

    if (!b || !grant_id || !worker || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc =
        exec_claim_grant(&b->site, grant_id, worker, lease_ms, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}
