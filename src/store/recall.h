/* recall.h - rows as this program left them, so that they need not be asked for again.
 *
 * Where a read costs a round trip (DRIVER_FAR), a transaction begins with what its program
 * wrote or confirmed itself: who claims work completes it, and knows its row.  A recalled row
 * is guarded like one that was read; the commit finds out whether it still stands, and so does
 * the check of an answer that writes nothing (T4).  If it does not, the body runs again
 * and asks.
 *
 * With a row goes what is known of the rank indexes that it covers (scan.cover in read.h): whoever
 * changes such an index changes the row, so that a part of the index stands as long as the row
 * does, and no longer.
 *
 *   R1  Only what a commit has shown to stand is kept: nothing of a commit whose outcome was not
 *       told, and what was merely read only along with a commit that stands, in its era: rows
 *       that are alone in their type, pages, and what a body has foreseen.
 *   R2  What was kept in one era of the server (driver.h) is not recalled in another: versions
 *       of lost writes may come again.
 *   R3  A row that others change is not kept for a while: a recall in vain costs a run.  It
 *       is remembered as a hint.
 *   R4  A page belongs to one version of its cover.  It is carried over to the next one only by
 *       the commit that made that version, with the changes of its own.
 *
 * Bounded: older rows make room.  Memory that cannot be had is no error.
 */
#ifndef STORE_RECALL_H
#define STORE_RECALL_H

#include <pthread.h>

#include "store/read.h"

/* Sets of a few rows each; rows that are larger than this are not kept. */
#define RECALL_SETS 1024
#define RECALL_WAYS 4
#define RECALL_ROW_MAX ((size_t)4096)

/* So many commits pass before a row that was recalled in vain is kept again. */
#define RECALL_DISTRUST 8

/* All pages together; then older ones go. */
#define RECALL_PAGES_MAX ((size_t)4 << 20)

struct recall {
    pthread_mutex_t mutex;
    struct recalled *
        *sets; /* RECALL_SETS * RECALL_WAYS, the latest first; made when used */
    size_t page_bytes;
    size_t hand; /* the next row that loses its pages */
};

void recall_init(struct recall *r);
void recall_release(struct recall *r);
void recall_clear(struct recall *r);

/* The row as it was kept in this era, copied into the arena; NULL: there is none, or no
 * memory. */
const struct row *recall_get(struct recall *r, const struct row_ref *ref, uint64_t era,
                             struct belay_arena *a);

/* The same, and also one that is not kept just now: how it was when this program last knew it.
 * For guesses that are looked at again. */
const struct row *recall_hint(struct recall *r, const struct row_ref *ref, uint64_t era,
                              struct belay_arena *a);

/* A member of an index, and the row that it names; NULL: there is none. */
struct recalled_hit {
    int64_t rank;
    struct bytes member;
    struct row_ref ref;
    const struct row *row;
};

/* Every member of an index from one rank to another. */
struct recall_page {
    const struct recall_page *next;
    struct row_ref cover;
    struct bytes index;
    int64_t from, to;
    const struct recalled_hit *hit; /* in order; those behind `to` do not count */
    size_t n;
};

/* A row with its values under a version. */
struct recall_news {
    struct row_ref ref;
    const struct value *v;
    int64_t ver;
    bool own; /* the commit made this version out of the one before */
};

/* What a commit of one era has shown. */
struct recall_lesson {
    uint64_t era;
    const struct recall_page
        *pages;              /* of before the plan, under rows that it changed */
    const struct plan *plan; /* its changes of indexes; NULL: none */
};

/* Keeps them. */
void recall_put(struct recall *r, const struct recall_news *news, size_t n,
                const struct recall_lesson *lesson);

/* What is kept of the index of a scan, from when its cover had this version; false: it does not
 * answer the scan.  Hits and rows are in the arena. */
MUST_USE bool recall_scan(struct recall *r, const struct row_ref *cover, int64_t ver,
                          uint64_t era, const struct scan *scan, struct belay_arena *a,
                          struct hits *out);

/* Whether rows of this type can be kept: their version tells all that changes. */
bool recall_keeps(const struct row_type *type);

/* A row with its values, each with a NUL behind it, in the arena; NULL: no memory.  And how many
 * bytes its values have. */
const struct row *recall_copy_row(const struct row_type *type, int64_t ver,
                                  const struct value *v, struct belay_arena *a);
size_t recall_row_size(const struct row_type *type, const struct value *v);

/* It no longer stands.  in_vain: that was found out by recalling it. */
void recall_drop(struct recall *r, const struct row_ref *ref, bool in_vain);

#endif /* STORE_RECALL_H */
