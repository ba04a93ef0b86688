/* recall_page.h - parts of rank indexes that are kept with a row: what recall.c and
 * recall_page.c share.  All of it is used with the mutex held, but for making pages. */
#ifndef STORE_RECALL_PAGE_H
#define STORE_RECALL_PAGE_H

#include "store/recall.h"

/* One row, in one block: its key, values and their bytes stand behind it. */
struct recalled {
    uint64_t hash;
    struct bytes key;
    struct kept_page *pages; /* of its version (R4) */
    unsigned distrust; /* commits until it counts again; until then it is a hint */
    bool is_row;       /* else the place of one that is not known */
    uint64_t era;
    size_t len; /* of the bytes of all values */
    int64_t ver;
    struct value v[];
};

/* --- recall.c --- */

/* A row, or with v NULL the place of one that is not trusted; NULL: too large, or no memory. */
struct recalled *recalled_make(const struct row_ref *ref, const struct value *v);
/* With its pages. */
void recalled_free(struct recall *r, struct recalled *e);
const struct row *recalled_copy(const struct recalled *e, const struct row_type *type,
                                struct belay_arena *a);

/* --- recall_page.c --- */

struct kept_page;

/* Of all pages under this cover, NULL when there are none, or no memory. */
struct kept_page *pages_make(const struct recall_page *pages,
                             const struct row_ref *cover);
/* Adds those of `old` that `pages` says nothing about, frees the others, and does to all of
 * them what the plan did. */
struct kept_page *pages_carry(struct kept_page *pages, struct kept_page *old,
                              const struct plan *plan);
void pages_free(struct kept_page *pages);
size_t pages_size(const struct kept_page *pages);
MUST_USE bool pages_answer(const struct kept_page *pages, const struct scan *scan,
                           struct belay_arena *a, struct hits *out);

#endif /* STORE_RECALL_PAGE_H */
