/* session_impl.h - a commit on its way: what was made ready before the body, and what
 * one run of the body decides.
 *
 *   session_prepare.c checking what was given, making it ready
 *   session_commit.c  the order of the body, the head
 *   session_graph.c   nodes
 *   session_turn.c    the hash of a turn, its stamp, the log
 *   session_usage.c   tokens
 */
#ifndef WORK_SESSION_IMPL_H
#define WORK_SESSION_IMPL_H

#include "base/json.h"
#include "work/checkpoint.h"
#include "work/queue.h"
#include "work/session_rows.h"

#define COMMIT_NODES_MAX 10000
#define COMMIT_NODES_BYTES ((size_t)16 << 20) /* all together */
#define COMMIT_USAGE_MAX 1000
#define COMMIT_CLAIMS_MAX 64
#define COMMIT_ATTACHMENTS_MAX SESSION_IDS_MAX

/* Nodes that one commit can replace: more do not fit into a transaction. */
#define COMMIT_REPLACE_MAX 20000

/* A log entry: node ids, a manifest, usage ids. */
#define COMMIT_ENTRY_MAX ((size_t)32 << 20)

enum { TOKENS_CACHED, TOKENS_INPUT, TOKENS_OUTPUT, TOKENS_REASONING, TOKENS };
extern const char *const token_names[TOKENS]; /* sorted, as canonical JSON has them */

struct commit_node {
    struct bytes json;             /* canonical */
    char hash[SHA256_HEX_LEN + 1]; /* of what counts in a turn */
};

struct commit_usage {
    struct bytes id, source, model;
    int64_t tokens[TOKENS];
    struct bytes content; /* canonical JSON, without the id */
    char hash[SHA256_HEX_LEN + 1];
};

struct commit {
    const struct session *s;
    const struct belay_commit *in;
    struct belay_arena *a;
    struct bytes session;

    /* Made ready.  What has a NULL ptr was not given. */
    struct bytes config, frames; /* canonical */
    const char **frame_refs;     /* in order, each once */
    size_t n_frame_refs;
    struct graph_node *nodes; /* in->n_nodes, as bodies */
    struct commit_node *bodies;
    struct graph *graph;
    struct bytes leaf; /* named: its node must be there */
    struct checkpoint_plan checkpoint;
    struct commit_usage *usage;       /* in->n_usage */
    struct bytes node_ids, usage_ids; /* JSON arrays */
    char hash[SHA256_HEX_LEN + 1];    /* of the turn */
    struct row_want *wants;           /* rows that the body will ask for */
    size_t n_wants;

    /* Of one run of the body. */
    struct session_now now; /* before; the numbers then become those after */
    int64_t now_ms;
    struct bytes new_leaf;     /* NULL ptr: none */
    struct queue_owned *owned; /* in->n_completes */
    bool replayed;
    struct bytes entry; /* ... what the log says about the turn */
};

/* What one entry of a session's log tells.  Empty arrays are "[]". */
struct commit_note {
    int64_t revision, at_ms, node_count;
    bool heal;
    struct bytes turn_id, checkpoint_ref, manifest, leaf; /* NULL ptr: none */
    struct bytes node_ids, completed, usage_ids;          /* JSON arrays */
};

/* A JSON text given by the caller, read; the caller json_decref()s it.  `invalid`, reason
 * `what` (too_large for a long one). */
MUST_USE belay_rc session_json(const char *text, const char *what, json_t **out,
                               struct belay_error *err);
/* The canonical form in the arena. */
MUST_USE belay_rc session_canonical(const json_t *value, struct belay_arena *a,
                                    struct bytes *out, struct belay_error *err);
/* A buffer's content in the arena, or why it has none. */
MUST_USE belay_rc session_keep(const struct buf *text, struct belay_arena *a,
                               struct bytes *out, struct belay_error *err);
/* Appends {"a","b",...} as a JSON array of strings; the i-th text is at
 * first + i * stride. */
void append_texts(struct buf *out, const struct bytes *first, size_t n, size_t stride);

/* --- session_graph.c --- */

/* Reads the nodes given; parents are among them or not. */
MUST_USE belay_rc graph_prepare(struct commit *c, struct belay_error *err);
/* A node whose event is a message. */
bool node_is_conversation(const json_t *node);
/* Names that graph_apply asks the store for, at most 2 * n_nodes + 1; returns how many. */
size_t graph_names(const struct commit *c, struct bytes *out);
/* Checks and writes the delta; sets the new leaf and the numbers after it. */
MUST_USE belay_rc graph_apply(struct txn *t, struct commit *c);

/* --- session_usage.c --- */

MUST_USE belay_rc usage_prepare(struct commit *c, struct belay_error *err);
/* Checks and writes: ids that were seen count no more. */
MUST_USE belay_rc usage_apply(struct txn *t, const struct commit *c);

/* --- session_turn.c --- */

/* The hash, from everything that was made ready. */
MUST_USE belay_rc turn_prepare(struct commit *c, struct belay_error *err);
/* Whether the turn was committed before; turn_conflict when that was another. */
MUST_USE belay_rc turn_find(struct txn *t, struct commit *c);
MUST_USE belay_rc turn_stamp(struct txn *t, const struct commit *c);
/* Adds the entry of a revision (N1), and wakes who listens to the session. */
MUST_USE belay_rc session_note(struct txn *t, struct bytes session,
                               const struct commit_note *note);
/* An entry, read; the caller json_decref()s it, whatever is returned. */
MUST_USE belay_rc session_read_note(struct bytes entry, json_t **out,
                                    struct belay_error *err);
/* The answer that an entry holds. */
MUST_USE belay_rc turn_answer(struct bytes entry, struct belay_arena *a,
                              struct belay_committed *out, struct belay_error *err);

/* --- session_read.c --- */

/* What the session's row says, which is there; false: no memory. */
MUST_USE bool session_take_head(const struct session_now *now, struct belay_arena *a,
                                struct belay_head *out);

/* --- attachments.c --- */

/* Stamps intents as fulfilled; the first stamp stays. */
MUST_USE belay_rc attachments_stamp(struct txn *t, struct bytes session,
                                    const char *const *ids, size_t n, size_t *out_n);
/* Removes one whose row this body has read. */
MUST_USE belay_rc attachment_remove(struct txn *t, struct bytes session,
                                    const struct row *row);

/* --- session_prepare.c --- */

/* Everything but the deciding. */
MUST_USE belay_rc commit_prepare(struct commit *c, struct belay_error *err);
/* The refs of frames, in order and each once. */
int compare_refs(const void *a, const void *b);
MUST_USE belay_rc sorted_refs(struct bytes frames, struct belay_arena *a,
                              const char ***out, size_t *out_n,
                              struct belay_error *err);

#endif /* WORK_SESSION_IMPL_H */
