/* session.h - sessions as transaction bodies.
 *
 * What must be true (beside S1 to S3)
 *   N1  revision, log `commits/<session>` and turns move together: entry n of the log is
 *       revision n
 *   N2  node_count counts the nodes that are not tombstoned; seqs are never used again
 *   N3  a session that is deleted has a row that says so, for ever; every write looks
 *   N4  what a commit completes, names and appends happens with the head's move or not at
 *       all
 *
 * Types are the public ones of <belay/session.h>; functions do what their public
 * namesakes say.
 */
#ifndef WORK_SESSION_H
#define WORK_SESSION_H

#include <belay/session.h>

#include "store/txn.h"

/* One session of a space, and how its checkpoints are stored. */
struct session {
    struct space *sp;
    const char *id;
    int32_t profile;
};

/* `invalid`, reason session_id. */
MUST_USE belay_rc session_check_id(const char *id, struct belay_error *err);

MUST_USE belay_rc session_commit(const struct session *s,
                                 const struct belay_commit *commit,
                                 struct belay_arena *a, struct belay_committed *out,
                                 struct belay_error *err);

MUST_USE belay_rc session_head(const struct session *s, struct belay_arena *a,
                               struct belay_head *out, struct belay_error *err);
MUST_USE belay_rc session_nodes(const struct session *s, int64_t after_seq,
                                size_t limit, struct belay_arena *a,
                                struct belay_nodes *out, struct belay_error *err);
MUST_USE belay_rc session_path(const struct session *s, const char *leaf,
                               struct belay_arena *a, struct belay_nodes *out,
                               struct belay_error *err);
MUST_USE belay_rc session_node(const struct session *s, const char *node_id,
                               struct belay_arena *a, struct belay_node *out,
                               struct belay_error *err);
MUST_USE belay_rc session_usage(const struct session *s, struct belay_arena *a,
                                const struct belay_usage **out, size_t *out_n,
                                struct belay_error *err);
MUST_USE belay_rc session_log(const struct session *s, int64_t after, size_t limit,
                              struct belay_arena *a, struct belay_commit_log *out,
                              struct belay_error *err);
MUST_USE belay_rc session_list(struct space *sp, const char *parent, const char *cursor,
                               size_t limit, struct belay_arena *a,
                               struct belay_sessions *out, struct belay_error *err);

MUST_USE belay_rc session_meta_save(const struct session *s,
                                    const struct belay_session_meta *meta,
                                    bool only_if_absent, struct belay_error *err);
MUST_USE belay_rc session_meta_load(const struct session *s, struct belay_arena *a,
                                    struct belay_session_meta *out,
                                    struct belay_error *err);

MUST_USE belay_rc session_tombstone(const struct session *s,
                                    const char *const *node_ids, size_t n,
                                    size_t *out_n, struct belay_error *err);
MUST_USE belay_rc session_vacuum(const struct session *s, size_t *out_removed,
                                 struct belay_error *err);
MUST_USE belay_rc session_heal(const struct session *s, bool *out_changed,
                               struct belay_error *err);
MUST_USE belay_rc session_delete(const struct session *s, bool *out_deleted,
                                 struct belay_error *err);

MUST_USE belay_rc attachment_intent(const struct session *s, const char *attachment_id,
                                    const char *uri, bool *out_new,
                                    struct belay_error *err);
MUST_USE belay_rc attachment_commit(const struct session *s, const char *const *ids,
                                    size_t n, size_t *out_n, struct belay_error *err);
MUST_USE belay_rc attachment_uncommitted(const struct session *s, int64_t older_than_ms,
                                         size_t limit, struct belay_arena *a,
                                         const struct belay_attachment **out,
                                         size_t *out_n, struct belay_error *err);
MUST_USE belay_rc attachment_forget(const struct session *s, const char *attachment_id,
                                    bool *out_removed, struct belay_error *err);

#endif /* WORK_SESSION_H */
