/* Whether an event may be appended. */
#include "policy/process_event.h"

#include "policy/members.h"

static bool has_key(const struct append_request *r)
{
    return r->replay_key.ptr && r->replay_key.len > 0;
}

belay_rc append_check(const struct append_request *r, struct belay_error *err)
{
    static const char rule[] = "bytes of UTF-8 without control characters";

    if (!bytes_is_id(r->process_id, 255))
        return err_reason(err, BELAY_INVALID, "process_id", "process id: 1 to 255 %s",
                          rule);
    if (!bytes_is_id(r->event_type, EVENT_NAME_MAX))
        return err_reason(err, BELAY_INVALID, "event_type", "event type: 1 to %d %s",
                          EVENT_NAME_MAX, rule);
    if (has_key(r) && !bytes_is_id(r->replay_key, REPLAY_KEY_MAX))
        return err_reason(err, BELAY_INVALID, "replay_key", "replay key: 1 to %d %s",
                          REPLAY_KEY_MAX, rule);
    return r->target ? scope_check(*r->target, "wake target", err) : BELAY_OK;
}

static belay_rc replay_conflict(const struct append_request *r, struct belay_error *err)
{
    return err_set(err, BELAY_REPLAY_CONFLICT,
                   "process `%s` event replay key `%s` conflicts with an event "
                   "that is there",
                   shown(r->process_id).text, shown(r->replay_key).text);
}

static belay_rc undeclared(const struct append_request *r, struct belay_error *err)
{
    return err_reason(err, BELAY_INVALID, "undeclared",
                      "process `%s`: undeclared event type `%s`",
                      shown(r->process_id).text, shown(r->event_type).text);
}

/* What ends a process, or asks it to end, must not happen twice by a retry. */
static belay_rc check_key(const struct append_request *r, const struct event_type *t,
                          struct belay_error *err)
{
    if (has_key(r) || !(t->has_terminal ||
                        bytes_eq(r->event_type, bytes_str(EVENT_CANCEL_REQUESTED))))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "replay_key",
                      "process `%s`: event `%s` requires a deterministic replay "
                      "key",
                      shown(r->process_id).text, shown(r->event_type).text);
}

static belay_rc check_payload(const struct append_request *r,
                              const struct event_type *t, struct belay_arena *a,
                              struct belay_error *err)
{
    struct belay_error why = { .size = sizeof(why) };

    if (!t->schema)
        return BELAY_OK;
    belay_rc rc = event_schema_validate(t->schema, r->payload, a, &why);
    if (rc == BELAY_OK)
        return BELAY_OK;
    return err_reason(err, rc, why.reason, "invalid `%s` payload: %s",
                      shown(r->event_type).text, why.message);
}

/* Everything that depends on the type, in the order of the contract. */
static belay_rc judge_type(const struct append_request *r, const struct append_facts *f,
                           const struct event_type *t, struct belay_arena *a,
                           struct append_answer *out, struct belay_error *err)
{
    belay_rc rc = check_key(r, t, err);

    if (rc == BELAY_OK)
        rc = check_payload(r, t, a, err);
    if (rc == BELAY_OK)
        rc = event_type_mean(t, r->payload, r->process_id, out->sequence, a,
                             &out->meaning, err);
    if (rc != BELAY_OK)
        return rc;
    if (out->meaning.terminal && process_state_is_terminal(f->state))
        return refuse_terminal(r->process_id, err);
    if (!out->meaning.wake)
        return BELAY_OK;
    if (!r->target)
        return refuse_no_target(r->process_id, r->event_type, err);
    return wake_id_make(*r->target, out->meaning.dedupe_key, out->wake_id, a, err);
}

belay_rc append_judge(const struct append_request *r, const struct append_facts *f,
                      struct belay_arena *a, struct append_answer *out,
                      struct belay_error *err)
{
    struct append_answer answer = { .verdict = APPEND_NEW };
    struct event_type type;
    bool found = false;
    belay_rc rc =
        event_payload_hash(r->event_type, r->payload, answer.payload_hash, a, err);

    if (rc != BELAY_OK)
        return rc;
    if (has_key(r) && f->replayed_hash.ptr) {
        if (!bytes_eq(f->replayed_hash, bytes_str(answer.payload_hash)))
            return replay_conflict(r, err);
        answer.verdict = APPEND_REPLAY;
        *out = answer;
        return BELAY_OK;
    }
    rc = event_type_find(f->event_types, r->event_type, a, &type, &found, err);
    if (rc == BELAY_OK && !found)
        rc = undeclared(r, err);
    if (rc != BELAY_OK)
        return rc;
    if (f->last_sequence < 0 || f->last_sequence >= EVENT_SEQUENCE_MAX)
        return err_set(err, BELAY_OUT_OF_RANGE, "process `%s`: no sequence is left",
                       shown(r->process_id).text);
    answer.sequence = f->last_sequence + 1;
    rc = judge_type(r, f, &type, a, &answer, err);
    if (rc == BELAY_OK)
        *out = answer;
    return rc;
}
