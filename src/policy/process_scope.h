/* process_scope.h - who owns a process, who holds a grant, whom a wake is for: a session,
 * or a frame of one.
 *
 * A scope is a pair, and two scopes are the same when both parts are.  As one text it is
 * "session:<s>" or "session:<s>/frame:<f>", with "%" and "/" within the parts written as
 * %25 and %2F, so that different scopes have different texts: session "a/frame:b" is not
 * frame "b" of session "a".
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_PROCESS_SCOPE_H
#define POLICY_PROCESS_SCOPE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

#define SCOPE_PART_MAX 255 /* bytes of a session id or frame id */

/* Borrowed.  A frame of length 0: the session itself. */
struct scope {
    struct bytes session, frame;
};

bool scope_eq(struct scope a, struct scope b);

/* `invalid` (reason "scope") unless both parts are ids (bytes_is_id); the frame may be
 * empty.  "owner scope must include a session id" for an empty session; `what` goes
 * before it. */
MUST_USE belay_rc scope_check(struct scope s, const char *what,
                              struct belay_error *err);

/* The text, in the arena. */
MUST_USE belay_rc scope_text(struct scope s, struct belay_arena *a, struct bytes *out,
                             struct belay_error *err);

/* And back: `invalid` (reason "scope") for what scope_text would not have written.
 * The parts are in the arena. */
MUST_USE belay_rc scope_parse(struct bytes text, struct belay_arena *a,
                              struct scope *out, struct belay_error *err);

/* {"session_id":"..","agent_frame_id":".."?}: an empty or null frame is none; any other
 * member is `invalid` (reason "scope").  Borrowed from the JSON. */
MUST_USE belay_rc scope_read(const json_t *value, const char *what, struct scope *out,
                             struct belay_error *err);

/* Appends that form, session_id first. */
void scope_write(struct scope s, struct buf *out);

#endif /* POLICY_PROCESS_SCOPE_H */
