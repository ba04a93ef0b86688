/* exec_submit.h - submissions on their way: what was checked and made ready before the
 * body.
 *
 *   exec_prepare.c  checking what was given, making it ready
 *   exec_submit.c   the body: lanes, keys
 *   exec_create.c   in it: one execution
 */
#ifndef WORK_EXEC_SUBMIT_H
#define WORK_EXEC_SUBMIT_H

#include "store/blob.h"
#include "work/execution_rows.h"

#define EXECUTION_KEY_MAX 512
#define EXECUTION_KIND_MAX 255
#define TAGS_PER_EXECUTION 64
#define TAG_KEY_MAX 64
#define TAG_VALUE_MAX 256

/* Payloads of one call that go to blobs are written by its own commit, as long as they
 * are not more than this all together; others are stored ahead of it. */
#define SUBMIT_BLOBS_MAX ((int64_t)8 << 20)

struct submit_item {
    const struct belay_submission *s;
    char id[ID_MAX];
    struct bytes lane, requires;
    char route[ROUTE_MAX];
    struct bytes payload;     /* canonical, when it is JSON; ptr NULL: none */
    struct blob_piece *piece; /* where it is long; NULL: it is in the row */
    bool stored;              /* the blob was stored ahead */
    struct bytes policy;
    struct belay_tag *tags;        /* sorted by key */
    struct bytes tags_json, trace; /* empty: none */
    struct bytes key;              /* empty: none */
    char hash[SHA256_HEX_LEN +
              1]; /* of everything but key and window, if there is a key */
};

/* `invalid` with the reason that names the field, `too_large`. */
MUST_USE belay_rc submit_prepare(const struct belay_submission *s, struct space *sp,
                                 struct belay_arena *a, struct submit_item *out,
                                 struct belay_error *err);

/* Writes one that is new.  *out_state: the public one. */
MUST_USE belay_rc submit_create(struct txn *t, const struct submit_item *item,
                                int64_t now_ms, int32_t *out_state);

/* Keys and values, and that no key is there twice; `sorted` has n entries.  `invalid`,
 * reason tag. */
MUST_USE belay_rc exec_tags_sort(const struct belay_tag *tags, size_t n,
                                 struct belay_tag *sorted, struct belay_error *err);
/* tag/<key>=<value>, in the arena; false: no memory. */
MUST_USE bool exec_tag_index(const struct belay_tag *tag, struct belay_arena *a,
                             struct bytes *out);

#endif /* WORK_EXEC_SUBMIT_H */
