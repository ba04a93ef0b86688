/* ops_sessions.h - the rows of inboxes, sessions, attachments and blobs. */
#ifndef API_OPS_SESSIONS_H
#define API_OPS_SESSIONS_H

#include "api/ops.h"

extern const struct operation ops_queue[8];
extern const struct operation ops_session[14];
extern const struct operation ops_attachment[4];
extern const struct operation ops_blob[6];

#endif /* API_OPS_SESSIONS_H */
