/* Submissions, before the body: every field checked, everything that is stored made ready. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "work/exec_submit.h"

#define DAYS_MS(n) ((int64_t)(n)*24 * 60 * 60 * 1000)
#define COUNT_MAX 1000000
#define RETRY_DELAY_MAX DAYS_MS(30)
#define RETRY_MULTIPLIER_MAX 1000.0
#define RETRYABLE_MAX 64
#define RETRYABLE_BYTES_MAX 128

/* --- fields --- */

struct number_rule {
    const char *name; /* also the reason */
    size_t offset;
    int64_t min, max;
};

struct text_rule {
    const char *name;
    size_t offset;
    size_t max;
};

/* clang-format off */
static const struct number_rule numbers[] = {
    { "delay",           offsetof(struct belay_submission, delay_ms),           0, TIME_MAX_MS },
    { "run_at",          offsetof(struct belay_submission, run_at_ms),          0, INT64_MAX },
    { "deadline",        offsetof(struct belay_submission, deadline_ms),        0, TIME_MAX_MS },
    { "attempt_timeout", offsetof(struct belay_submission, attempt_timeout_ms), 0, TIME_MAX_MS },
    { "key_window",      offsetof(struct belay_submission, key_window_ms),      0, TIME_MAX_MS },
    { "max_reclaims",    offsetof(struct belay_submission, max_reclaims),      -1, COUNT_MAX },
    { "retention",       offsetof(struct belay_submission, retention_ms),      -1, TIME_MAX_MS },
};

static const struct number_rule retry_numbers[] = {
    { "max_retries", offsetof(struct belay_retry_policy, max_retries),  0, COUNT_MAX },
    { "delay",       offsetof(struct belay_retry_policy, delay_ms),    -1, RETRY_DELAY_MAX },
    { "max_delay",   offsetof(struct belay_retry_policy, max_delay_ms), 0, RETRY_DELAY_MAX },
};

/* Optional ones. */
static const struct text_rule texts[] = {
    { "session",     offsetof(struct belay_submission, session),     255 },
    { "process",     offsetof(struct belay_submission, process),     255 },
    { "process_event", offsetof(struct belay_submission, process_event), 255 },
    { "creator",     offsetof(struct belay_submission, creator),     255 },
    { "traceparent", offsetof(struct belay_submission, traceparent), 128 },
    { "tracestate",  offsetof(struct belay_submission, tracestate),  512 },
    { "key",         offsetof(struct belay_submission, key),         EXECUTION_KEY_MAX },
};
/* clang-format on */

/* `reason` NULL: its name. */
static belay_rc check_number(const void *of, const struct number_rule *rule,
                             const char *reason, struct belay_error *err)
{
    int64_t n;

    memcpy(&n, (const char *)of + rule->offset, sizeof(n));
    if (n >= rule->min && n <= rule->max)
        return BELAY_OK;
    (void)err_reason(err, BELAY_INVALID, reason ? reason : rule->name,
                     "%s%s%s: %lld is not within %lld to %lld", reason ? reason : "",
                     reason ? ": " : "", rule->name, (long long)n, (long long)rule->min,
                     (long long)rule->max);
    err_numbers(err, n < rule->min ? rule->min : rule->max, n);
    return BELAY_INVALID;
}

static belay_rc check_text(const struct belay_submission *s,
                           const struct text_rule *rule, struct belay_error *err)
{
    const char *text;

    memcpy(&text, (const char *)s + rule->offset, sizeof(text));
    if (!text || bytes_is_id(bytes_str(text), rule->max))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, rule->name,
                      "%s: must be 1 to %zu bytes of UTF-8 without control characters",
                      rule->name, rule->max);
}

static belay_rc check_fields(const struct belay_submission *s, struct belay_error *err)
{
    const struct number_rule priority = { .name = "priority",
                                          .max = BELAY_PRIORITY_MAX };
    int64_t n = s->priority;
    belay_rc rc = lane_check(s->lane, err);

    if (rc == BELAY_OK)
        rc = check_number(&n, &priority, NULL, err);
    if (rc == BELAY_OK && s->kind && s->kind[0] &&
        !bytes_is_id(bytes_str(s->kind), EXECUTION_KIND_MAX))
        rc = err_reason(err, BELAY_INVALID, "kind",
                        "kind: must be at most %d bytes of UTF-8 without control "
                        "characters",
                        EXECUTION_KIND_MAX);
    for (size_t i = 0; i < COUNT_OF(numbers) && rc == BELAY_OK; i++)
        rc = check_number(s, &numbers[i], NULL, err);
    for (size_t i = 0; i < COUNT_OF(texts) && rc == BELAY_OK; i++)
        rc = check_text(s, &texts[i], err);
    return rc;
}

/* --- retries --- */

static belay_rc bad_retry(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_INVALID, "retry", "retry: %s", why);
}

static belay_rc check_backoff(const struct belay_retry_policy *r,
                              struct belay_error *err)
{
    int64_t first_ms = r->delay_ms != 0 ? r->delay_ms : RETRY_FIRST_MS;
    int64_t longest_ms = r->max_delay_ms > 0 ? r->max_delay_ms : RETRY_LONGEST_MS;
    bool grows = isfinite(r->multiplier) && r->multiplier >= 1 &&
                 r->multiplier <= RETRY_MULTIPLIER_MAX;

    if (!grows && r->multiplier != 0)
        return bad_retry(err, "multiplier: must be 1 to 1000");
    if (r->backoff == BELAY_BACKOFF_FIXED)
        return BELAY_OK;
    if (r->backoff != BELAY_BACKOFF_EXPONENTIAL)
        return bad_retry(err, "backoff: must be exponential or fixed");
    if (first_ms < 0)
        return bad_retry(err, "delay: the first one must be above 0 to grow");
    if (longest_ms < first_ms)
        return bad_retry(err, "max_delay: must not be below the first delay");
    return BELAY_OK;
}

/* Of a class that is never tried again an entry would never have an effect. */
static belay_rc check_retryable(const char *entry, struct belay_error *err)
{
    int named = 0;

    if (!entry || !bytes_is_id(bytes_str(entry), RETRYABLE_BYTES_MAX))
        return bad_retry(err, "retryable: must be 1 to 128 bytes of UTF-8 without "
                              "control characters");
    if (!vector_parse(BELAY_DIM_FAILURE_CLASS, bytes_str(entry), &named) ||
        retry_class_allows((enum belay_failure_class)named))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "retry",
                      "retry: retryable: %s failures are never tried again", entry);
}

static belay_rc check_retry(const struct belay_retry_policy *r, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (!r)
        return BELAY_OK;
    for (size_t i = 0; i < COUNT_OF(retry_numbers) && rc == BELAY_OK; i++)
        rc = check_number(r, &retry_numbers[i], "retry", err);
    if (rc == BELAY_OK)
        rc = check_backoff(r, err);
    if (rc)
        return rc;
    if (r->n_retryable > RETRYABLE_MAX || (r->n_retryable > 0 && !r->retryable))
        return bad_retry(err, "retryable: at most 64 are taken");
    for (size_t i = 0; i < r->n_retryable && rc == BELAY_OK; i++)
        rc = check_retryable(r->retryable[i], err);
    return rc;
}

/* --- tags --- */

static belay_rc bad_tag(struct belay_error *err, const char *why, const char *key)
{
    (void)err_reason(err, BELAY_INVALID, "tag", "tag: %s", why);
    if (key)
        err_entity(err, bytes_str(key));
    return BELAY_INVALID;
}

/* [a-z][a-z0-9_.]{0,63} */
static bool is_tag_key(const char *key)
{
    static const char others[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    size_t len = strnlen(key, TAG_KEY_MAX + 1);

    return len <= TAG_KEY_MAX && key[0] >= 'a' && key[0] <= 'z' &&
           strspn(key, others) == len;
}

static int tag_cmp(const void *a, const void *b)
{
    return strcmp(((const struct belay_tag *)a)->key,
                  ((const struct belay_tag *)b)->key);
}

belay_rc exec_tags_sort(const struct belay_tag *tags, size_t n,
                        struct belay_tag *sorted, struct belay_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!tags[i].key || !is_tag_key(tags[i].key))
            return bad_tag(err, "a key must be [a-z][a-z0-9_.]{0,63}", tags[i].key);
        if (!tags[i].value ||
            (tags[i].value[0] && !bytes_is_id(bytes_str(tags[i].value), TAG_VALUE_MAX)))
            return bad_tag(err,
                           "a value must be at most 256 bytes of UTF-8 without control "
                           "characters",
                           tags[i].key);
        sorted[i] = tags[i];
    }
    if (n > 1)
        qsort(sorted, n, sizeof(*sorted), tag_cmp);
    for (size_t i = 1; i < n; i++) {
        if (tag_cmp(&sorted[i - 1], &sorted[i]) == 0)
            return bad_tag(err, "a key is there twice", sorted[i].key);
    }
    return BELAY_OK;
}

bool exec_tag_index(const struct belay_tag *tag, struct belay_arena *a,
                    struct bytes *out)
{
    struct bytes key = bytes_str(tag->key), value = bytes_str(tag->value);
    const size_t prefix = sizeof(TAG_INDEX) - 1;
    uint8_t *name = arena_alloc(a, prefix + key.len + 1 + value.len);

    if (!name)
        return false;
    memcpy(name, TAG_INDEX, prefix);
    memcpy(name + prefix, key.ptr, key.len);
    name[prefix + key.len] = '=';
    memcpy(name + prefix + key.len + 1, value.ptr, value.len);
    *out = bytes_of(name, prefix + key.len + 1 + value.len);
    return true;
}

/* --- JSON of what was checked --- */

/* "key":"text", with a comma in front unless it is the first. */
static void append_member(struct buf *out, const char *key, const char *text)
{
    buf_append_char(out, out->len > 0 ? ',' : '{');
    json_append_string(out, bytes_str(key));
    buf_append_char(out, ':');
    json_append_string(out, bytes_str(text));
}

/* Empty when it has no member. */
static belay_rc finish_object(struct buf *text, struct belay_arena *a,
                              struct bytes *out, struct belay_error *err)
{
    if (text->len == 0 && !text->failed)
        return BELAY_OK;
    buf_append_char(text, '}');
    if (text->failed || !arena_copy(a, buf_view(text), out))
        return err_no_memory(err, "a submission");
    return BELAY_OK;
}

static belay_rc make_tags(const struct belay_submission *s, struct belay_arena *a,
                          struct submit_item *out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    if (s->n_tags > TAGS_PER_EXECUTION || (s->n_tags > 0 && !s->tags))
        return bad_tag(err, "an execution has at most 64", NULL);
    out->tags = arena_zalloc(a, s->n_tags, sizeof(*out->tags));
    if (!out->tags)
        return err_no_memory(err, "tags");
    belay_rc rc = exec_tags_sort(s->tags, s->n_tags, out->tags, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->n_tags; i++)
        append_member(&text, out->tags[i].key, out->tags[i].value);
    return finish_object(&text, a, &out->tags_json, err);
}

static belay_rc make_trace(const struct belay_submission *s, struct belay_arena *a,
                           struct submit_item *out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    if (s->traceparent)
        append_member(&text, "traceparent", s->traceparent);
    if (s->tracestate)
        append_member(&text, "tracestate", s->tracestate);
    return finish_object(&text, a, &out->trace, err);
}

static belay_rc make_requires(const struct belay_submission *s, struct belay_arena *a,
                              struct submit_item *out, struct belay_error *err)
{
    if (s->n_requires > 0 && !s->requires)
        return err_reason(err, BELAY_INVALID, "requires",
                          "requires: empty_token: there are none");
    belay_rc rc =
        capability_join(s->requires, s->n_requires, "requires", a, &out->requires, err);
    if (rc == BELAY_OK)
        route_make(out->requires, out->route);
    return rc;
}

/* --- the payload --- */

static belay_rc too_large(struct belay_error *err, size_t len)
{
    (void)err_reason(err, BELAY_INVALID, "too_large",
                     "payload: %zu bytes, at most %zu are taken", len,
                     BELAY_PAYLOAD_MAX);
    err_numbers(err, (int64_t)BELAY_PAYLOAD_MAX, (int64_t)len);
    return BELAY_INVALID;
}

static belay_rc read_json(struct bytes payload, struct belay_arena *a,
                          struct bytes *out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct belay_error why = { .code = 0 };
    belay_rc rc = json_canonical(payload, BELAY_PAYLOAD_MAX, &text, &why);

    if (rc == BELAY_INVALID)
        return err_reason(err, rc, "payload", "payload: %s", why.message);
    if (rc)
        return err_set(err, rc, "payload: %s", why.message);
    if (text.len > BELAY_PAYLOAD_MAX)
        return too_large(err, text.len);
    return arena_copy(a, buf_view(&text), out) ? BELAY_OK
                                               : err_no_memory(err, "a payload");
}

static belay_rc make_payload(const struct belay_submission *s, struct space *sp,
                             struct belay_arena *a, struct submit_item *out,
                             struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (!s->payload && s->payload_len > 0)
        return err_reason(err, BELAY_INVALID, "payload", "payload: has a length only");
    if (!s->payload)
        return BELAY_OK;
    if (s->payload_len > BELAY_PAYLOAD_MAX)
        return too_large(err, s->payload_len);
    out->payload = bytes_of(s->payload, s->payload_len);
    if (s->payload_is_json)
        rc = read_json(out->payload, a, &out->payload, err);
    if (rc || out->payload.len <= PAYLOAD_INLINE_MAX)
        return rc;
    out->piece = arena_zalloc(a, 1, sizeof(*out->piece));
    if (!out->piece)
        return err_no_memory(err, "a payload");
    return blob_prepare(out->piece, sp, out->payload, bytes_of(NULL, 0), false, a, err);
}

/* --- what a key stands for --- */

/* A text with its length in front; absent and empty ones differ. */
static void append_part(struct buf *b, struct bytes text)
{
    buf_append_i64(b, text.ptr ? (int64_t)text.len : -1);
    buf_append_char(b, ':');
    buf_append(b, text);
}

static struct bytes optional(const char *text)
{
    return text ? bytes_str(text) : bytes_of(NULL, 0);
}

/* Not the trace: who tries again does so in another span. */
static belay_rc make_hash(struct submit_item *item, struct belay_error *err)
{
    const struct belay_submission *s = item->s;
    CLEANUP(buf_release) struct buf b = { 0 };
    uint8_t digest[SHA256_LEN];
    const struct bytes parts[] = {
        item->lane,           optional(s->kind ? s->kind : ""),
        item->payload,        item->policy,
        item->requires,       item->tags_json,
        optional(s->session), optional(s->process),
        optional(s->creator),
    };

    buf_printf(&b, "%d,%d,%lld,%lld,", (int)s->priority,
               s->payload && s->payload_is_json, (long long)s->delay_ms,
               (long long)s->run_at_ms);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        append_part(&b, parts[i]);
    if (s->process_event)
        append_part(&b, optional(s->process_event));
    if (b.failed)
        return err_no_memory(err, "a submission");
    belay_rc rc = sha256(buf_view(&b), digest, err);
    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), item->hash);
    return rc;
}

belay_rc submit_prepare(const struct belay_submission *s, struct space *sp,
                        struct belay_arena *a, struct submit_item *out,
                        struct belay_error *err)
{
    struct submit_item item = { .s = s };
    belay_rc rc = check_fields(s, err);

    if (rc == BELAY_OK)
        rc = check_retry(s->retry, err);
    if (rc == BELAY_OK)
        rc = make_requires(s, a, &item, err);
    if (rc == BELAY_OK)
        rc = make_tags(s, a, &item, err);
    if (rc == BELAY_OK)
        rc = make_trace(s, a, &item, err);
    if (rc == BELAY_OK)
        rc = exec_policy_write(s, a, &item.policy, err);
    if (rc == BELAY_OK)
        rc = make_payload(s, sp, a, &item, err);
    if (rc)
        return rc;
    if (s->process_event && !s->process)
        return err_reason(err, BELAY_INVALID, "process_event",
                          "process_event: there is no process");
    if (s->key_window_ms > 0 && !s->key)
        return err_reason(err, BELAY_INVALID, "key_window",
                          "key_window: there is no key");
    item.lane = bytes_str(s->lane);
    item.key = optional(s->key);
    if (s->key)
        rc = make_hash(&item, err);
    if (rc == BELAY_OK)
        rc = space_mint(sp, EXECUTION_PREFIX, item.id, err);
    if (rc == BELAY_OK)
        *out = item;
    return rc;
}
