/* One wording for each refusal of the registry. */
#include "policy/members.h"
#include "policy/process_event.h"

belay_rc refuse_unknown_process(struct bytes process_id, struct belay_error *err)
{
    (void)err_reason(err, BELAY_NOT_FOUND, "process", "unknown process `%s`",
                     shown(process_id).text);
    err_entity(err, process_id);
    return BELAY_NOT_FOUND;
}

belay_rc refuse_registration(struct bytes process_id, struct bytes existing_hash,
                             const char *new_hash, struct belay_error *err)
{
    (void)err_set(err, BELAY_REGISTRATION_CONFLICT,
                  "process `%s` registration hash conflict: existing %.*s, new %s",
                  shown(process_id).text, (int)existing_hash.len,
                  (const char *)existing_hash.ptr, new_hash);
    err_entity(err, process_id);
    return BELAY_REGISTRATION_CONFLICT;
}

belay_rc refuse_grant(struct bytes process_id, struct scope from,
                      struct belay_error *err)
{
    bool framed = from.frame.len > 0;

    (void)err_reason(err, BELAY_NOT_FOUND, "grant",
                     "process handle `%s` is not granted to session `%s`%s%s%s",
                     shown(process_id).text, shown(from.session).text,
                     framed ? " frame `" : "", shown(from.frame).text,
                     framed ? "`" : "");
    err_entity(err, process_id);
    return BELAY_NOT_FOUND;
}

belay_rc refuse_no_target(struct bytes process_id, struct bytes event_type,
                          struct belay_error *err)
{
    return err_reason(err, BELAY_INVALID, "wake_target",
                      "process `%s`: wake event `%s` without a wake target scope",
                      shown(process_id).text, shown(event_type).text);
}

belay_rc refuse_terminal(struct bytes process_id, struct belay_error *err)
{
    (void)err_reason(err, BELAY_WRONG_STATE, "terminal",
                     "process `%s` is already terminal", shown(process_id).text);
    err_entity(err, process_id);
    return BELAY_WRONG_STATE;
}

belay_rc refuse_lease_held(struct bytes process_id, struct bytes owner, int64_t now_ms,
                           int64_t expires_at_ms, struct belay_error *err)
{
    (void)err_set(err, BELAY_LEASE_HELD,
                  "process `%s` is already leased by `%s` until %lld",
                  shown(process_id).text, shown(owner).text, (long long)expires_at_ms);
    err_entity(err, process_id);
    err_numbers(err, now_ms, expires_at_ms);
    return BELAY_LEASE_HELD;
}

belay_rc refuse_lease_lost(struct bytes process_id, const char *reason,
                           struct belay_error *err)
{
    (void)err_reason(err, BELAY_LEASE_LOST, reason,
                     "process lease for `%s` is missing or expired",
                     shown(process_id).text);
    err_entity(err, process_id);
    return BELAY_LEASE_LOST;
}
