/* What handlers of executions read of a call. */
#include "api/duration.h"
#include "api/op_execution.h"

const char *const op_state_names[] = {
    "waiting", "delayed",   "rate_limited", "waiting_children",
    "active",  "suspended", "resumable",    "completed",
    "failed",  "cancelled", "expired",      "skipped",
    NULL
};
const char *const op_failure_class_names[] = { "transient", "permanent", "infra_crash",
                                               "timeout",   "cancelled", NULL };
const char *const op_frame_kind_names[] = { "stdout", "stderr", "event", "blob", NULL };
const char *const op_frame_mode_names[] = { "durable", NULL };
const char *const op_event_names[] = { "completion",       "acquired", "released",
                                       "expired",          "revoked",  "reclaimed",
                                       "replay_initiated", NULL };

belay_rc op_handle(const struct op_call *call, struct belay_arena *a,
                   struct belay_handle *out, struct belay_error *err)
{
    return handle_parse(op_str(call, "handle"), a, out, err);
}

/* k=v: what is before the first = is the key. */
static belay_rc split_tag(struct bytes text, struct belay_arena *a,
                          struct belay_tag *out, struct belay_error *err)
{
    const uint8_t *equals = text.len > 0 ? memchr(text.ptr, '=', text.len) : NULL;
    struct bytes key = { 0 };

    if (!equals || equals == text.ptr) {
        (void)err_reason(err, BELAY_INVALID, "tag", "a tag must be KEY=VALUE");
        err_entity(err, text);
        return BELAY_INVALID;
    }
    if (!arena_copy(a, bytes_of(text.ptr, (size_t)(equals - text.ptr)), &key))
        return err_no_memory(err, "the tags");
    out->key = (const char *)key.ptr;
    out->value = (const char *)equals + 1; /* a NUL stands behind the text */
    return BELAY_OK;
}

belay_rc op_tags(const struct op_call *call, const char *name, struct belay_arena *a,
                 const struct belay_tag **out, size_t *n, struct belay_error *err)
{
    struct belay_tag *tags = arena_zalloc(a, call->n_values + 1, sizeof(*tags));
    belay_rc rc = BELAY_OK;
    size_t found = 0;

    if (!tags)
        return err_no_memory(err, "the tags");
    for (size_t i = 0; rc == BELAY_OK && i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, name) == 0)
            rc = split_tag(call->values[i].text, a, &tags[found++], err);
    }
    *out = tags;
    *n = found;
    return rc;
}

bool op_read_backoff(struct bytes text, struct belay_retry_policy *out)
{
    static const char fixed[] = "fixed:", exponential[] = "exp:";
    const size_t n_fixed = sizeof(fixed) - 1, n_exp = sizeof(exponential) - 1;

    if (text.len > n_fixed && memcmp(text.ptr, fixed, n_fixed) == 0) {
        out->backoff = BELAY_BACKOFF_FIXED;
        bool good = duration_parse(bytes_of(text.ptr + n_fixed, text.len - n_fixed),
                                   &out->delay_ms);
        if (good && out->delay_ms == 0)
            out->delay_ms = -1; /* at once */
        return good;
    }
    if (text.len <= n_exp || memcmp(text.ptr, exponential, n_exp) != 0)
        return false;
    text = bytes_of(text.ptr + n_exp, text.len - n_exp);
    const uint8_t *dots = memmem(text.ptr, text.len, "..", 2);
    if (!dots)
        return false;
    size_t first = (size_t)(dots - text.ptr);
    out->backoff = BELAY_BACKOFF_EXPONENTIAL;
    return duration_parse(bytes_of(text.ptr, first), &out->delay_ms) &&
           duration_parse(bytes_of(dots + 2, text.len - first - 2),
                          &out->max_delay_ms) &&
           out->delay_ms > 0 && out->max_delay_ms >= out->delay_ms;
}
