/* process_event.h - whether an event may be appended to a process, what follows from it,
 * and what events, wakes and their keys are called.
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_PROCESS_EVENT_H
#define POLICY_PROCESS_EVENT_H

#include "base/hash.h"
#include "policy/event_type.h"
#include "policy/process_scope.h"

/* SHA-256 hex of the canonical ["<type>",<payload>]. */
MUST_USE belay_rc event_payload_hash(struct bytes type, const json_t *payload,
                                     char out[SHA256_HEX_LEN + 1],
                                     struct belay_arena *a, struct belay_error *err);

/* "wake:" + SHA-256 hex of the canonical ["<scope text>","<dedupe key>"]: the same for
 * the same target and key, whatever the event or the process. */
#define WAKE_ID_LEN (5 + SHA256_HEX_LEN)
MUST_USE belay_rc wake_id_make(struct scope target, struct bytes dedupe_key,
                               char out[WAKE_ID_LEN + 1], struct belay_arena *a,
                               struct belay_error *err);

/* "process:<pid>:event:<sequence>:wake", in the arena. */
MUST_USE belay_rc wake_source_key(struct bytes process_id, int64_t sequence,
                                  struct belay_arena *a, struct bytes *out,
                                  struct belay_error *err);

/* "process:<pid>:cancel_requested:<payload hash>", in the arena: asking again with the
 * same reason is a replay. */
MUST_USE belay_rc cancel_replay_key(struct bytes process_id, const char *payload_hash,
                                    struct belay_arena *a, struct bytes *out,
                                    struct belay_error *err);

/* {"reason":"<text>"} or, with a NULL ptr, {"reason":null}, in the arena. */
MUST_USE belay_rc cancel_payload(struct bytes reason, struct belay_arena *a,
                                 struct bytes *out, struct belay_error *err);

/* "process:<pid>:terminal:<event type of the state>", in the arena. */
MUST_USE belay_rc complete_replay_key(struct bytes process_id, enum process_state state,
                                      struct belay_arena *a, struct bytes *out,
                                      struct belay_error *err);

/* {"await_output":<output>}, canonical, in the arena. */
MUST_USE belay_rc complete_payload(const struct await_output *output,
                                   struct belay_arena *a, struct bytes *out,
                                   struct belay_error *err);

/* --- appending --- */

#define EVENT_SEQUENCE_MAX ((int64_t)9007199254740991) /* 2^53-1: a JSON number */
#define REPLAY_KEY_MAX 1024 /* bytes; UTF-8 without control characters */

/* What is asked for.  All borrowed. */
struct append_request {
    struct bytes process_id;
    struct bytes event_type;
    const json_t *payload;
    struct bytes replay_key;    /* NULL ptr: none */
    const struct scope *target; /* whom a wake is for; NULL: none */
};

/* What the store says. */
struct append_facts {
    const json_t *event_types; /* of the stored registration */
    enum process_state state;
    int64_t last_sequence;      /* of the process's log; 0: nothing yet */
    struct bytes replayed_hash; /* payload hash of the event that has the replay key in
                                   this process; NULL ptr: there is none */
};

enum append_verdict {
    APPEND_NEW,    /* store it */
    APPEND_REPLAY, /* it is there: answer with the stored event, append nothing */
};

struct append_answer {
    enum append_verdict verdict;
    char payload_hash[SHA256_HEX_LEN + 1];
    /* Of APPEND_NEW alone: */
    int64_t sequence;              /* last + 1: E1, no gap, none twice */
    struct event_meaning meaning;  /* terminal: the state and output to store */
    char wake_id[WAKE_ID_LEN + 1]; /* "" without a wake */
};

/* Before the transaction: shape of ids and key.  `invalid`, reasons "process_id",
 * "event_type", "replay_key", "scope". */
MUST_USE belay_rc append_check(const struct append_request *r, struct belay_error *err);

/* Decides, in this order:
 *   1. replay key in use: equal hash APPEND_REPLAY, else `replay_conflict`
 *   2. `invalid`, reason "undeclared": "undeclared event type"
 *   3. `invalid`, reason "replay_key": "requires a deterministic replay key" for types
 *      with terminal semantics and process.cancel_requested, without one or an empty one
 *   4. `invalid`, reasons of event_schema_validate: "invalid `TYPE` payload: ..."
 *   5. `invalid`, reasons of event_type_mean
 *   6. `wrong_state`, reason "terminal": "is already terminal", for terminal semantics
 *      on a terminal process; other events are welcome there
 *   7. `invalid`, reason "wake_target": "without a wake target scope"
 *   8. `out_of_range` when there is no next sequence
 * A replay key that is empty is none, except in 3. */
MUST_USE belay_rc append_judge(const struct append_request *r,
                               const struct append_facts *f, struct belay_arena *a,
                               struct append_answer *out, struct belay_error *err);

/* --- refusals that transactions make by themselves: one wording each --- */

/* not_found, entity the id: "unknown process `X`" */
belay_rc refuse_unknown_process(struct bytes process_id, struct belay_error *err);
/* registration_conflict: "process `X` registration hash conflict: existing H, new H" */
belay_rc refuse_registration(struct bytes process_id, struct bytes existing_hash,
                             const char *new_hash, struct belay_error *err);
/* not_found, reason "grant": "process handle `X` is not granted to session `S`" (and
 * "frame `F`" where there is one) */
belay_rc refuse_grant(struct bytes process_id, struct scope from,
                      struct belay_error *err);
/* invalid, reason "wake_target": also for a replay of a wake event without a target */
belay_rc refuse_no_target(struct bytes process_id, struct bytes event_type,
                          struct belay_error *err);
/* wrong_state, reason "terminal" */
belay_rc refuse_terminal(struct bytes process_id, struct belay_error *err);
/* lease_held, expected and actual: now and the expiry: "process `X` is already leased by
 * `O` until MS" */
belay_rc refuse_lease_held(struct bytes process_id, struct bytes owner, int64_t now_ms,
                           int64_t expires_at_ms, struct belay_error *err);
/* lease_lost with that reason: "process lease for `X` is missing or expired" */
belay_rc refuse_lease_lost(struct bytes process_id, const char *reason,
                           struct belay_error *err);

#endif /* POLICY_PROCESS_EVENT_H */
