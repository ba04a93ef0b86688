/* process_grants.h - grants in rows, for the files about them. */
#ifndef WORK_PROCESS_GRANTS_H
#define WORK_PROCESS_GRANTS_H

#include "work/process_rows.h"

/* A scope as the rows have it, in an arena. */
struct grant_scope {
    struct bytes session, frame; /* as given; frame.ptr NULL: the session itself */
    struct bytes frame_key;      /* GRANT_TO_SESSION, or GRANT_TO_FRAME and the frame */
    struct bytes index;          /* grants/<session> 1f <frame key> */
    struct bytes member;         /* <session> 1f <frame key> */
};
MUST_USE bool grant_scope_make(struct grant_scope *out, const struct belay_scope *scope,
                               struct belay_arena *a);
/* Of a member: back again.  False: it is none. */
MUST_USE bool grant_member_split(struct bytes member, struct bytes *before,
                                 struct bytes *behind);
/* The frame of a frame key; ptr NULL: the session itself. */
struct bytes grant_frame(struct bytes frame_key);

/* A grant and the two counts that every change of it writes (P6). */
struct grant_rows {
    struct value key[3];
    const struct row *grant, *of_process, *of_session;
};
MUST_USE belay_rc grant_load(struct txn *t, const struct grant_scope *s,
                             struct bytes process, struct grant_rows *out);
/* Removes one that is there, with its entries and from the counts. */
MUST_USE belay_rc grant_remove(struct txn *t, const struct grant_scope *s,
                               struct bytes process);
/* Adds to a count, or takes away from it. */
MUST_USE belay_rc grant_count_add(struct txn *t, const char *noun, struct bytes id,
                                  int64_t delta);
/* How many a count has, guarded. */
MUST_USE belay_rc grant_count_get(struct txn *t, const char *noun, struct bytes id,
                                  int64_t *out);

#endif /* WORK_PROCESS_GRANTS_H */
