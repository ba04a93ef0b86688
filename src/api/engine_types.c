/* Types of the engine that no noun has yet: their names, and what can be said of them
 * without a store. */
#include <belay/budget.h>
#include <belay/flow.h>
#include <belay/waitpoint.h>

#include "api/check.h"
#include "policy/redact.h"
#include "policy/usage.h"
#include "policy/words.h"

static const char *const waitpoint_kinds[] = { "signal_name", "correlation_id",
                                               "external" };
static const char *const admissions[] = { "admitted", "throttled", "rejected" };
static const char *const cancel_policies[] = { "flow_only", "cancel_all",
                                               "cancel_pending" };
static const char *const flow_waits[] = { "none", "timeout", "forever" };

#define WORDS(list) ((struct words){ list, COUNT_OF(list) })

static bool parse(struct words w, const char *name, int *out)
{
    return name && out && words_parse(w, bytes_str(name), out);
}

const char *belay_waitpoint_kind_name(int kind)
{
    return words_name(WORDS(waitpoint_kinds), kind);
}

bool belay_waitpoint_kind_parse(const char *name, int *out)
{
    return parse(WORDS(waitpoint_kinds), name, out);
}

const char *belay_admission_name(int decision)
{
    return words_name(WORDS(admissions), decision);
}

const char *belay_cancel_flow_policy_name(int policy)
{
    return words_name(WORDS(cancel_policies), policy);
}

bool belay_cancel_flow_policy_parse(const char *name, int *out)
{
    return parse(WORDS(cancel_policies), name, out);
}

const char *belay_cancel_flow_wait_name(int kind)
{
    return words_name(WORDS(flow_waits), kind);
}

size_t belay_waitpoint_token_redact(const char *token, char *out, size_t cap)
{
    return redact_token(token ? bytes_str(token) : bytes_of(NULL, 0), out,
                        out ? cap : 0);
}

/* --- usage --- */

static const struct sized usage_type = {
    "belay_usage_dimensions", sizeof(struct belay_usage_dimensions),
    END_OF(struct belay_usage_dimensions, n_custom)
};

belay_rc belay_usage_sort(const struct belay_usage_dimensions *usage,
                          struct belay_arena *arena, struct belay_usage_dimensions *out,
                          struct belay_error *err)
{
    struct belay_usage_dimensions known;

    if (!usage || !arena || !out)
        return null_given(err, "belay_usage_sort");
    belay_rc rc = sized_check(&usage_type, out, err);
    if (!rc)
        rc = sized_read(&usage_type, usage, &known, err);
    if (!rc && known.n_custom > 0 && !known.custom)
        rc = null_given(err, "belay_usage_sort");
    if (!rc)
        rc = usage_sort(&known, arena, &known, err);
    if (!rc)
        sized_write(&usage_type, &known, out);
    return rc;
}

bool belay_usage_eq(const struct belay_usage_dimensions *a,
                    const struct belay_usage_dimensions *b)
{
    return a && b && usage_eq(a, b);
}

/* --- completions --- */

bool belay_completion_of(const struct belay_event *event,
                         struct belay_completion_payload *out)
{
    if (!event || !out || event->type != BELAY_EVENT_COMPLETION)
        return false;
    *out = (struct belay_completion_payload){
        .execution_id = event->execution_id,
        .outcome = event->outcome,
        .payload = event->payload,
        .payload_len = event->payload_len,
        .produced_at_ms = event->produced_at_ms,
        .flow_id = event->flow,
    };
    return true;
}
