/* flow.h - executions that belong together: types. */
#ifndef BELAY_FLOW_H
#define BELAY_FLOW_H

#include <belay/execution.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of the members when a flow is cancelled. */
enum belay_cancel_flow_policy {
    BELAY_CANCEL_FLOW_ONLY = 0, /* nothing: they run on and can be claimed */
    BELAY_CANCEL_FLOW_ALL,      /* all that have not ended are cancelled */
    BELAY_CANCEL_FLOW_PENDING,  /* all but those that somebody works on */
};

/* "flow_only", "cancel_all", "cancel_pending"; NULL for a number that is none.  And back:
 * false, and *out as it was. */
BELAY_API const char *belay_cancel_flow_policy_name(int policy);
BELAY_API bool belay_cancel_flow_policy_parse(const char *name, int *out);

/* How long the caller waits for that. */
enum belay_cancel_flow_wait_kind {
    BELAY_FLOW_WAIT_NONE = 0,
    BELAY_FLOW_WAIT_TIMEOUT, /* up to timeout_ms */
    BELAY_FLOW_WAIT_FOREVER,
};

/* "none", "timeout", "forever"; NULL for a number that is none. */
BELAY_API const char *belay_cancel_flow_wait_name(int kind);

struct belay_cancel_flow_wait {
    int32_t kind; /* enum belay_cancel_flow_wait_kind */
    int64_t timeout_ms;
};

/* What is told when an execution has ended: a completion among the events. */
struct belay_completion_payload {
    const char *execution_id;
    int32_t outcome;     /* enum belay_terminal */
    const void *payload; /* the result; NULL: none, or the event's payload_gone */
    size_t payload_len;
    int64_t produced_at_ms;
    const char *flow_id; /* NULL: it belongs to none */
};

/* An event as that; its strings and bytes are the event's.  False, and *out as it was, for
 * an event that is no completion. */
BELAY_API bool belay_completion_of(const struct belay_event *event,
                                   struct belay_completion_payload *out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_FLOW_H */
