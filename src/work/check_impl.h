/* check_impl.h - what the files of the check share. */
#ifndef WORK_CHECK_IMPL_H
#define WORK_CHECK_IMPL_H

#include "policy/vector.h"
#include "work/audit.h"
#include "work/check.h"

/* Things found by a key, in an arena; a chained table that grows. */
struct check_entry {
    struct check_entry *next; /* in its chain */
    uint64_t hash;
    struct bytes key;
};

struct check_map {
    struct check_entry **buckets;
    size_t n_buckets, n;
};

/* Where the row says that it stands in an index. */
struct check_rank {
    struct check_entry entry; /* key: index, 00, member */
    struct bytes index, member;
    int64_t rank;
    bool seen;
};

/* An upload, or a blob with its upload; key: the upload's id. */
struct check_blob {
    struct check_entry entry;
    struct bytes sha256; /* empty: an upload that is not finished */
    int64_t size, stored, chunks;
    bool packed;
    bool opaque; /* its row is of no use: the chunks are somebody's, and no more */
    bool seen;
};

/* One namespace while it is walked. */
struct check {
    struct bytes ns;
    struct check_counts *counts;
    struct belay_arena arena;
    struct check_map ranks, uploads, tallies, executions, processes;
    struct belay_vector *vectors; /* that an execution can have; NULL: not asked yet */
    size_t n_vectors;
    unsigned has; /* bit per row that every namespace has, check.c */
    bool holds_anything;
    struct check_names *names; /* of the system namespace: the registry's; else NULL */

    struct buf stream; /* the log, or feed, of the last entry */
    int64_t seq;
    struct audit_walk audit;
    struct row head; /* audit_head, if there is one */
    struct value head_values[AUDIT_HEAD_COLUMNS];
    bool has_head;

    struct check_blob *blob;    /* whose chunks are being seen */
    struct buf orphan;          /* upload of the chunks that belong to nobody */
    int64_t next, taken;        /* chunks and bytes of it so far */
    struct sha256_stream *hash; /* NULL: there is, or is left, nothing to compare */
    struct unpacker *unpacker;  /* of a compressed one */
    uint8_t *unpacked;          /* room for a part of its content */

    /* Findings wait until it is known that the namespace was not being deleted. */
    struct check_finding *first, **last;
};

struct check_finding {
    struct check_finding *next;
    struct finding f;
};

/* Keeps a finding in the namespace. */
MUST_USE belay_rc PRINTF_LIKE(5, 6)
    check_found(struct check *c, const char *what, struct bytes entity,
                struct belay_error *err, const char *fmt, ...);

struct check_entry *check_find(const struct check_map *m, struct bytes key);
/* Adds one whose key is set and not there yet; false: no memory. */
MUST_USE bool check_add(struct check_map *m, struct check_entry *e,
                        struct belay_arena *a);

/* Remembers that a member should stand in an index; the walk tells whether it does. */
MUST_USE belay_rc check_expect_rank(struct check *c, struct bytes index,
                                    struct bytes member, int64_t rank,
                                    struct belay_error *err);

/* --- check_tally.c --- */

enum tally_kind {
    TALLY_BATCHES,
    TALLY_FRONT,
    TALLY_NODES,
    TALLY_NAMES,
    TALLY_COMMITS,
    TALLY_BLOB,
    TALLY_GRANTS_OF_PROCESS,
    TALLY_GRANTS_OF_SESSION,
};

/* A row says that there are n. */
MUST_USE belay_rc check_told(struct check *c, enum tally_kind kind, struct bytes name,
                             int64_t n, struct belay_error *err);
/* A row says that there are n more than others say. */
MUST_USE belay_rc check_told_more(struct check *c, enum tally_kind kind,
                                  struct bytes name, int64_t n,
                                  struct belay_error *err);
/* One is there; or, where they are numbered, number `upto` is. */
MUST_USE belay_rc check_seen(struct check *c, enum tally_kind kind, struct bytes name,
                             int64_t upto, struct belay_error *err);
MUST_USE belay_rc check_tallies_end(struct check *c, struct belay_error *err);

/* --- check_queue.c --- */

MUST_USE belay_rc check_inbox_front_row(struct check *c, const struct row *row,
                                        struct belay_error *err);
MUST_USE belay_rc check_inbox_row(struct check *c, const struct row *row,
                                  struct belay_error *err);

MUST_USE belay_rc check_batch_row(struct check *c, const struct row *row,
                                  struct belay_error *err);

/* --- check_sessions.c --- */

MUST_USE belay_rc check_session_row(struct check *c, const struct row *row,
                                    struct belay_error *err);
MUST_USE belay_rc check_node_name_row(struct check *c, const struct row *row,
                                      struct belay_error *err);
MUST_USE belay_rc check_node_row(struct check *c, const struct row *row,
                                 struct belay_error *err);
MUST_USE belay_rc check_attachment_row(struct check *c, const struct row *row,
                                       struct belay_error *err);
MUST_USE belay_rc check_meta_row(struct check *c, const struct row *row,
                                 struct belay_error *err);
MUST_USE belay_rc check_pin_row(struct check *c, const struct row *row,
                                struct belay_error *err);

/* --- check_executions.c --- */

MUST_USE belay_rc check_execution_row(struct check *c, const struct row *row,
                                      struct belay_error *err);
MUST_USE belay_rc check_execution_spec_row(struct check *c, const struct row *row,
                                           struct belay_error *err);
MUST_USE belay_rc check_execution_end_row(struct check *c, const struct row *row,
                                          struct belay_error *err);
MUST_USE belay_rc check_execution_progress_row(struct check *c, const struct row *row,
                                               struct belay_error *err);
MUST_USE belay_rc check_attempt_row(struct check *c, const struct row *row,
                                    struct belay_error *err);
MUST_USE belay_rc check_frame_head_row(struct check *c, const struct row *row,
                                       struct belay_error *err);
MUST_USE belay_rc check_execution_key_row(struct check *c, const struct row *row,
                                          struct belay_error *err);
MUST_USE belay_rc check_execution_grant_row(struct check *c, const struct row *row,
                                            struct belay_error *err);
MUST_USE belay_rc check_lane_row(struct check *c, const struct row *row,
                                 struct belay_error *err);
MUST_USE belay_rc check_route_row(struct check *c, const struct row *row,
                                  struct belay_error *err);
/* An entry of a log; only frames are looked at. */
MUST_USE belay_rc check_frame_entry(struct check *c, const struct item *item,
                                    struct belay_error *err);
/* When everything was seen. */
MUST_USE belay_rc check_executions_end(struct check *c, struct belay_error *err);

/* --- check_processes.c --- */

MUST_USE belay_rc check_process_row(struct check *c, const struct row *row,
                                    struct belay_error *err);
MUST_USE belay_rc check_process_spec_row(struct check *c, const struct row *row,
                                         struct belay_error *err);
/* Rows beside it: ref, end, key, payload. */
MUST_USE belay_rc check_process_part_row(struct check *c, const struct row *row,
                                         struct belay_error *err);
MUST_USE belay_rc check_wake_row(struct check *c, const struct row *row,
                                 struct belay_error *err);
MUST_USE belay_rc check_wake_target_row(struct check *c, const struct row *row,
                                        struct belay_error *err);
MUST_USE belay_rc check_handle_grant_row(struct check *c, const struct row *row,
                                         struct belay_error *err);
MUST_USE belay_rc check_grant_count_row(struct check *c, const struct row *row,
                                        struct belay_error *err);
/* An entry of a log; only events are looked at. */
MUST_USE belay_rc check_event_entry(struct check *c, const struct item *item,
                                    struct belay_error *err);
/* When everything was seen. */
MUST_USE belay_rc check_processes_end(struct check *c, struct belay_error *err);

/* --- check_blobs.c --- */

MUST_USE belay_rc check_blob_row(struct check *c, const struct row *row,
                                 struct belay_error *err);
MUST_USE belay_rc check_upload_row(struct check *c, const struct row *row,
                                   struct belay_error *err);
MUST_USE belay_rc check_chunk(struct check *c, const struct item *item,
                              struct belay_error *err);
/* After the last chunk. */
MUST_USE belay_rc check_blobs_end(struct check *c, struct belay_error *err);
void check_blobs_release(struct check *c);

#endif /* WORK_CHECK_IMPL_H */
