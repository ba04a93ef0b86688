/* session_rows.h - the rows of a session: finding, judging and removing them. */
#ifndef WORK_SESSION_ROWS_H
#define WORK_SESSION_ROWS_H

#include "policy/graph.h"
#include "work/session.h"

/* An id that a caller chose; a JSON text it gave. */
#define SESSION_NAME_MAX 255
#define SESSION_JSON_MAX ((size_t)1 << 20)

/* Rows that one round trip of a long read asks for; node ids, or attachments, that one
 * transaction changes. */
#define SESSION_PAGE 128
#define SESSION_STEP 256
#define SESSION_IDS_MAX 1000

extern const struct txn_options session_reads; /* read only */

/* `invalid` with `what` as the reason. */
MUST_USE belay_rc session_check_name(const char *id, const char *what,
                                     struct belay_error *err);
/* Text that is not an id: at most max bytes of UTF-8; NULL is none. */
MUST_USE belay_rc session_check_text(const char *text, size_t max, const char *what,
                                     struct belay_error *err);

/* Of a page: what was asked for, within bounds; 0 is `otherwise`. */
size_t session_limit(size_t limit, size_t otherwise, size_t max);

/* --- keys and names --- */

struct row_key {
    struct value v[2];
};

static inline struct row_key key_of_seq(struct bytes session, int64_t seq)
{
    return (struct row_key){ { value_text(session), value_i64(seq) } };
}

static inline struct row_key key_of_name(struct bytes session, struct bytes name)
{
    return (struct row_key){ { value_text(session), value_text(name) } };
}

/* prefix and session, in the arena; false: no memory. */
MUST_USE bool session_index(struct belay_arena *a, const char *prefix,
                            struct bytes session, struct bytes *out);
/* Likewise, in a body. */
MUST_USE belay_rc session_index_in(struct txn *t, const char *prefix,
                                   struct bytes session, struct bytes *out);

/* A seq as the member of an index. */
struct bytes seq_member(int64_t seq, char buffer[I64_TEXT_MAX]);

/* A column's text in the arena; *out is NULL where the column is.  False: no memory. */
MUST_USE bool session_text(struct belay_arena *a, const struct row *row,
                           unsigned column, const char **out);

/* --- the session's own row --- */

/* A session as its row says, checked: numbers that cannot be are `corrupt`. */
struct session_now {
    const struct row *row; /* NULL: there is none; the numbers are those of a new one */
    bool gone;             /* deleted, or being deleted */
    int64_t revision, node_count, first_seq, last_seq;
    int64_t created_at_ms, updated_at_ms;
};

MUST_USE belay_rc session_load(struct txn *t, struct bytes session,
                               struct session_now *out);
/* N3: wrong_state, reason deleted, for one that is gone; one that is not there yet is
 * fine. */
MUST_USE belay_rc session_to_write(struct txn *t, struct bytes session,
                                   struct session_now *out);
/* not_found for one that is not there, with reason deleted for one that is gone. */
MUST_USE belay_rc session_to_read(struct txn *t, struct bytes session,
                                  struct session_now *out);
/* Only the second half of it. */
MUST_USE belay_rc session_not_gone(struct txn *t, struct bytes session);

/* --- rows of it --- */

/* Rows (session, from..from + n - 1), in one round trip; NULL where there is none. */
MUST_USE belay_rc rows_by_seq(struct txn *t, const struct row_type *type,
                              struct bytes session, int64_t from, size_t n,
                              const struct row **out);
/* Rows (session, names[i]), likewise. */
MUST_USE belay_rc rows_by_name(struct txn *t, const struct row_type *type,
                               struct bytes session, const struct bytes *names,
                               size_t n, const struct row **out);

/* The node of that id; *out is NULL where there is none. */
MUST_USE belay_rc node_by_name(struct txn *t, struct bytes session, struct bytes id,
                               const struct row **out);
bool node_is_live(const struct row *node); /* takes NULL */
bool name_is_live(const struct row *name); /* likewise: what its node is, without it */

/* Removes nodes (entries may be NULL) with their names and their places among the
 * tombstones.  Names that `keep` (may be NULL) brings anew stay. */
MUST_USE belay_rc nodes_remove(struct txn *t, struct bytes session,
                               const struct row *const *nodes, size_t n,
                               const struct graph *keep, size_t *out_removed);

#endif /* WORK_SESSION_ROWS_H */
