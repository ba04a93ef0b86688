/* session.h - what an agent knows, committed by compare-and-set.
 *
 * A session has a head: its revision, its graph of nodes with one leaf, its checkpoint,
 * agent frames and configuration.  A commit changes all of it at once, together with
 * the inbox batches it completes (queue.h), or nothing.  Of all commits that expect the
 * same revision one wins (S1); a turn that is committed again answers what it answered
 * the first time.
 *
 * A handle is bound to one session and is as thread-safe as its belay.  A session
 * begins with its first commit.  A session that was deleted is gone for good: its id
 * cannot be used again.
 *
 * Ids of sessions, nodes, turns, frames and attachments: 1 to 255 bytes of UTF-8
 * without control characters.  Strings of a result end with a NUL; optional ones are
 * NULL where absent.
 */
#ifndef BELAY_SESSION_H
#define BELAY_SESSION_H

#include <belay/blob.h>
#include <belay/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay_session;

struct belay_session_options {
    uint32_t size;   /* sizeof(struct belay_session_options) */
    int32_t profile; /* enum belay_profile, for checkpoints */
};

/* Binds a handle; nothing is read or written.  options may be NULL.  The belay must
 * outlive it. */
BELAY_API BELAY_MUST_USE belay_rc
belay_session_open(struct belay *b, const char *session_id,
                   const struct belay_session_options *options,
                   struct belay_session **out, struct belay_error *err);
BELAY_API void belay_session_close(struct belay_session *s); /* takes NULL */
BELAY_API const char *belay_session_id(const struct belay_session *s);

/* --- commits --- */

/* No comparison: whatever the head is, it is replaced. */
#define BELAY_ANY_REVISION ((int64_t)-1)

enum belay_graph_delta {
    BELAY_GRAPH_UNCHANGED = 0, /* only the leaf may move: that switches branches */
    BELAY_GRAPH_APPEND = 1,
    BELAY_GRAPH_REPLACE = 2, /* all nodes go, tombstoned ones too; these come */
};

/* One part of a checkpoint: a body, which is stored and gets a ref; or the ref of a
 * blob that is there, which stays (`invalid`, reason unknown_ref, when it is not); or
 * neither, and the checkpoint has no such part. */
struct belay_part {
    const void *body; /* not NULL: this many bytes */
    size_t len;
    const char *ref;
};

struct belay_checkpoint {
    const char *turn_state; /* JSON; NULL: {} */
    struct belay_part tool_state, plugin_snapshot, execution_state;
    int64_t plugin_snapshot_revision; /* BELAY_NONE: none */
};

/* Tokens that were used.  Deltas with the same id count once; an id that comes with
 * other content is `key_conflict`. */
struct belay_usage {
    const char *id; /* NULL: derived from the turn, or new each time without one */
    const char *source, *model;
    int64_t input_tokens, output_tokens, cached_input_tokens, reasoning_tokens;
};

struct belay_commit {
    uint32_t size;             /* sizeof(struct belay_commit) */
    int32_t graph;             /* enum belay_graph_delta */
    const char *session_id;    /* NULL: the handle's; another one is
                                   session_binding_mismatch */
    int64_t expected_revision; /* 0: there is no session yet */
    const char *turn_id;       /* NULL: no stamp */
    const char *config;        /* JSON object; NULL: as it is */
    const char *agent_frames;  /* JSON array of objects; NULL: as they are */
    const char *current_frame; /* NULL: as it is */

    /* JSON objects {"node_id", "parent_node_id"?, "caused_by"?, "agent_frame_id"?,
     * "timestamp"?, "kind", ...}.  Refused, `invalid` with the reason: duplicate_node,
     * dangling_parent, cycle, missing_leaf. */
    const char *const *nodes;
    size_t n_nodes;
    const char *leaf; /* NULL: the last node given, else as it is */
    bool clear_leaf;  /* no leaf at all */

    const struct belay_checkpoint *checkpoint; /* NULL: as it is */
    const struct belay_usage *usage;
    size_t n_usage;
    const struct belay_claim *const *completes; /* claims on the session's inbox whose
                                                    batches are done with this commit */
    size_t n_completes;
    const char *const *attachments; /* ids whose intents are fulfilled */
    size_t n_attachments;
};

struct belay_committed {
    int64_t revision;
    bool replayed; /* the turn was committed before: this is its answer */
    /* Ref and JSON of the manifest; NULL: the commit left the checkpoint as it was. */
    const char *checkpoint_ref, *manifest;
    const char *leaf;
    int64_t node_count;          /* not tombstoned */
    const char *const *node_ids; /* appended by it, in order */
    size_t n_node_ids;
};

/* The order of the checks: binding, turn, revision, claims, refs, usage, graph.
 *
 *   session_binding_mismatch, wrong_state (reason deleted)
 *   turn_conflict           the turn was committed with other content
 *   head_revision_conflict  expected and actual
 *   lease_lost              a claim that does not own exactly the batches it lists
 *   invalid                 see above */
BELAY_API BELAY_MUST_USE belay_rc belay_session_commit(
    struct belay_session *s, const struct belay_commit *commit,
    struct belay_arena *arena, struct belay_committed *out, struct belay_error *err);

/* --- reading --- */

struct belay_head {
    const char *session_id;
    int64_t revision;
    const char *config;       /* JSON; "{}" when never given */
    const char *agent_frames; /* JSON; "[]" when never given */
    const char *current_frame;
    const char *checkpoint_ref;
    const char *leaf;
    int64_t node_count;
    int64_t created_at_ms, updated_at_ms;
};

/* not_found when there is no session (reason `deleted` when there was one). */
BELAY_API BELAY_MUST_USE belay_rc belay_session_head(struct belay_session *s,
                                                     struct belay_arena *arena,
                                                     struct belay_head *out,
                                                     struct belay_error *err);

struct belay_node {
    int64_t seq;
    const char *node_id;
    const char *parent_node_id; /* NULL: a root */
    const char *json;           /* as it was committed, canonical */
    size_t json_len;
};

struct belay_nodes {
    const struct belay_node *nodes;
    size_t n;
    const char *leaf;       /* of the head, or the one asked for */
    int64_t next_after_seq; /* to go on with; 0: there is no more */
    bool truncated;         /* a path that ended at a tombstoned or missing node */
};

/* All nodes that are not tombstoned, in the order they were committed; limit 0: 1000. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_nodes(struct belay_session *s,
                                                      int64_t after_seq, size_t limit,
                                                      struct belay_arena *arena,
                                                      struct belay_nodes *out,
                                                      struct belay_error *err);

/* From the root to `leaf` (NULL: the head's).  not_found for a leaf that is not there;
 * no leaf at all is an empty path. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_path(struct belay_session *s,
                                                     const char *leaf,
                                                     struct belay_arena *arena,
                                                     struct belay_nodes *out,
                                                     struct belay_error *err);

/* not_found when it is not there or tombstoned. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_node(struct belay_session *s,
                                                     const char *node_id,
                                                     struct belay_arena *arena,
                                                     struct belay_node *out,
                                                     struct belay_error *err);

/* The checkpoint of the head: its manifest, and what its parts are called.  Bodies are
 * read with belay_blob_read_open. */
struct belay_checkpoint_info {
    const char *ref, *manifest, *turn_state; /* manifest, turn_state: JSON */
    const char *tool_state_ref, *plugin_snapshot_ref, *execution_state_ref;
    int64_t plugin_snapshot_revision; /* BELAY_NONE: none */
};

/* not_found when there is none; `corrupt` when a part of it is missing (reason
 * missing_blob) or its manifest cannot be read. */
BELAY_API BELAY_MUST_USE belay_rc
belay_session_checkpoint(struct belay_session *s, struct belay_arena *arena,
                         struct belay_checkpoint_info *out, struct belay_error *err);

/* The sums by (source, model) in the order they were first seen, without those of which
 * input + output + reasoning is 0. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_usage(struct belay_session *s,
                                                      struct belay_arena *arena,
                                                      const struct belay_usage **out,
                                                      size_t *out_n,
                                                      struct belay_error *err);

struct belay_commit_entry {
    int64_t revision, at_ms;
    const char *turn_id;
    const char *json; /* what belay_committed said, and what it completed */
};

struct belay_commit_log {
    const struct belay_commit_entry *entries;
    size_t n;
    int64_t next_after; /* revision to go on behind; 0: there is no more */
};

/* Commits behind a revision, oldest first; limit 0: 100. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_log(struct belay_session *s,
                                                    int64_t after, size_t limit,
                                                    struct belay_arena *arena,
                                                    struct belay_commit_log *out,
                                                    struct belay_error *err);

struct belay_sessions {
    const struct belay_head *heads; /* in the order they began; config and agent_frames
                                       are NULL here */
    size_t n;
    const char *next_cursor; /* NULL: there is no more */
};

/* Sessions of the namespace, or (parent not NULL) those whose meta names that parent;
 * limit 0: 100. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_list(
    struct belay *b, const char *parent, const char *cursor, size_t limit,
    struct belay_arena *arena, struct belay_sessions *out, struct belay_error *err);

/* --- meta --- */

struct belay_session_meta {
    uint32_t size; /* sizeof(struct belay_session_meta) */
    uint32_t reserved;
    const char *name;       /* NULL: the session's id */
    const char *created_at; /* any text; NULL: "unix:<seconds>" of now */
    const char *model;      /* NULL: "" */
    const char *cwd;        /* NULL: none */
    const char *parent;     /* session id; NULL: a root */
    const char *caused_by;  /* JSON; NULL: none; only with a parent */
};

/* Replaces it, or (only_if_absent) leaves what is there.  It needs no commit before. */
BELAY_API BELAY_MUST_USE belay_rc
belay_session_meta_save(struct belay_session *s, const struct belay_session_meta *meta,
                        bool only_if_absent, struct belay_error *err);
/* not_found when there is none. */
BELAY_API BELAY_MUST_USE belay_rc
belay_session_meta_load(struct belay_session *s, struct belay_arena *arena,
                        struct belay_session_meta *out, struct belay_error *err);

/* --- care --- */

/* Hides nodes from every read at once; unknown ids are ignored.  *out_n (may be NULL):
 * how many were hidden now. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_tombstone(struct belay_session *s,
                                                          const char *const *node_ids,
                                                          size_t n, size_t *out_n,
                                                          struct belay_error *err);

/* Removes tombstoned nodes for good, in bounded steps. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_vacuum(struct belay_session *s,
                                                       size_t *out_removed,
                                                       struct belay_error *err);

/* Where the head's leaf is not there any more: moves it to the last conversation node
 * in the order of commits (none: no leaf), as a commit of its own.  *out_changed tells
 * whether it had to. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_heal(struct belay_session *s,
                                                     bool *out_changed,
                                                     struct belay_error *err);

/* Deletes the session with its inbox, for good: the id stays taken.  May be repeated,
 * and goes on where an interrupted one stopped.  *out_deleted (may be NULL): whether
 * there was anything; an id that nothing was ever under stays free. */
BELAY_API BELAY_MUST_USE belay_rc belay_session_delete(struct belay_session *s,
                                                       bool *out_deleted,
                                                       struct belay_error *err);

/* --- attachments: bytes kept elsewhere, announced before they are written --- */

struct belay_attachment {
    const char *attachment_id, *session_id, *uri;
    int64_t intent_at_ms, committed_at_ms; /* BELAY_TIME_NONE: not committed */
};

/* Ignored when the session has that id already; *out_new (may be NULL) tells. */
BELAY_API BELAY_MUST_USE belay_rc belay_attachment_intent(struct belay_session *s,
                                                          const char *attachment_id,
                                                          const char *uri,
                                                          bool *out_new,
                                                          struct belay_error *err);
/* Stamps them committed, once each; ids the session does not have are left alone. */
BELAY_API BELAY_MUST_USE belay_rc belay_attachment_commit(struct belay_session *s,
                                                          const char *const *ids,
                                                          size_t n, size_t *out_n,
                                                          struct belay_error *err);
/* Not committed and announced at or before older_than_ms, oldest first; limit 0: 100. */
BELAY_API BELAY_MUST_USE belay_rc belay_attachment_uncommitted(
    struct belay_session *s, int64_t older_than_ms, size_t limit,
    struct belay_arena *arena, const struct belay_attachment **out, size_t *out_n,
    struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_attachment_forget(struct belay_session *s,
                                                          const char *attachment_id,
                                                          bool *out_removed,
                                                          struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SESSION_H */
