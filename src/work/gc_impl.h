/* gc_impl.h - one collection, step by step.
 *
 *     gc_open
 *     while more: gc_collect, gc_trace, gc_sweep
 *     gc_sweep_uploads, gc_count
 *     gc_close
 *
 * gc_run does this; tests put the work of others between the steps.
 */
#ifndef WORK_GC_IMPL_H
#define WORK_GC_IMPL_H

#include "work/gc.h"

/* A blob that goes unless something names it. */
struct gc_candidate {
    uint8_t digest[SHA256_LEN];
    int64_t ver;   /* of its row, before the trace */
    int64_t bytes; /* in its chunks */
    bool marked;   /* it is named */
};

/* A rank index, page by page. */
struct gc_walk {
    const char *index;
    int64_t max_rank;
    size_t limit;
    const struct fetch *fetch;
    size_t n_fetch;

    struct hits hits; /* in the collection's arena, until the next page */
    bool done;        /* there is no page behind this one */
    bool begun;
    int64_t rank; /* of the last hit, with its member */
    uint8_t member[SCHEMA_NAME_MAX];
    size_t member_len;
};

struct gc {
    struct space *sp;
    struct txn_options reading, writing;
    bool dry_run;
    int64_t cutoff_ms;                     /* touched later: within the grace */
    struct belay_arena page, item, values; /* of a walk, of one hit, of its manifest */

    /* Candidates in the order of the index, found by an open-addressing table of their
     * numbers (from 1).  Names can be chosen by whoever stores blobs, so where they
     * stand in the table depends on a secret. */
    struct gc_walk blobs;
    struct gc_candidate *candidates;
    size_t n_candidates, max_candidates;
    size_t room;     /* for so many, a power of two */
    uint32_t *slots; /* twice as many */
    size_t n_slots;
    uint64_t secret;
    int64_t seen; /* candidates of all pages */

    bool refused; /* the report says why */
    struct belay_gc_report *report;
};

/* `invalid`, reason option.  page_max: candidates at once.  Fills *report anew. */
MUST_USE belay_rc gc_open(struct gc *g, struct space *sp,
                          const struct belay_gc_options *options, size_t page_max,
                          struct belay_gc_report *report, struct belay_error *err);
void gc_close(struct gc *g);

/* The next candidates, into the table; g->blobs.done tells whether there are more
 * pages. */
MUST_USE belay_rc gc_collect(struct gc *g, struct belay_error *err);

/* Marks the candidates that something names.  `corrupt` with g->refused when that
 * cannot be told. */
MUST_USE belay_rc gc_trace(struct gc *g, struct belay_error *err);

/* Removes, or with dry_run counts, what is not marked. */
MUST_USE belay_rc gc_sweep(struct gc *g, struct belay_error *err);
MUST_USE belay_rc gc_sweep_uploads(struct gc *g, struct belay_error *err);

/* How many blobs there are; if there is no time to tell, how many were looked at and
 * stay. */
void gc_count(struct gc *g);

/* timeout or cancelled when it is time to stop. */
MUST_USE belay_rc gc_goes_on(const struct gc *g, struct belay_error *err);

/* The next page of an index. */
MUST_USE belay_rc gc_next(struct gc *g, struct gc_walk *w, struct belay_error *err);

/* The candidate of that name, or NULL; the name is one (blob_is_name). */
struct gc_candidate *gc_find(const struct gc *g, struct bytes name);

#endif /* WORK_GC_IMPL_H */
