/* exec_show.h - what the files that look at executions share.
 *
 *   exec_show.c        an execution as its caller sees it; its result
 *   exec_attempts.c    its attempts
 *   exec_list.c        many of them
 *   exec_why.c         why one is not running
 *   exec_stats.c       how many there are, on which lanes
 *   exec_wait.c        looking until there is something to see
 *   exec_frame_read.c  frames
 *   exec_events.c      what happened
 *   exec_event_page.c  a page of that
 *   exec_text.c        bytes and places as text
 */
#ifndef WORK_EXEC_SHOW_H
#define WORK_EXEC_SHOW_H

#include "policy/filter.h"
#include "work/execution_rows.h"

/* A page of a list, at most and unless told. */
#define LOOK_MAX 1000
#define LOOK_USUAL 100

/* limit or the usual one; `invalid`, reason limit. */
MUST_USE belay_rc look_limit(size_t limit, size_t *out, struct belay_error *err);

extern const struct txn_options look_only; /* read_only */

/* --- exec_show.c --- */

/* Text with a NUL, in the arena; *out is NULL where b has no bytes to point to.  False: no
 * memory. */
MUST_USE bool show_text(struct belay_arena *a, struct bytes b, const char **out);

/* The same of a column; NULL where that is. */
MUST_USE bool show_column(struct belay_arena *a, const struct row *row, unsigned column,
                          const char **out);

/* What is told beside an execution's own row; NULL: there is none, or it is not asked for. */
struct exec_parts {
    const struct row *spec, *end, *progress;
};

/* As its caller sees it, copied into the arena.  `corrupt`. */
MUST_USE belay_rc exec_decode(struct txn *t, const struct exec *e,
                              const struct exec_parts *parts, const char *ns,
                              struct belay_arena *a, struct belay_execution *out);

/* The failure class of a column; 0 for NULL.  `corrupt`. */
MUST_USE belay_rc exec_class_of(struct txn *t, struct bytes id, const struct row *row,
                                unsigned column, int32_t *out);

/* Whether the end row tells of the last grant, and not of a former one. */
bool end_is_current(const struct exec *e, const struct row *end);
/* Whether it has a failure to tell of, or a result. */
bool exec_has_failed(const struct exec *e, const struct row *end);
bool exec_has_result(const struct exec *e, const struct row *end);

/* --- exec_list.c --- */

/* The indexes of ready work of a lane, or of all lanes where it is empty; in the arena of
 * the body.  Guards nothing. */
MUST_USE belay_rc exec_ready_indexes(struct txn *t, struct bytes lane,
                                     struct bytes **out, size_t *out_n);

/* --- exec_frame_read.c --- */

/* The log of an attempt's frames, in the arena; false: no memory. */
MUST_USE bool frame_stream(struct bytes execution, int64_t attempt,
                           struct belay_arena *a, struct bytes *out);

/* --- exec_wait.c --- */

#define WAIT_MS_MAX ((int64_t)24 * 60 * 60 * 1000)

enum look {
    LOOK_NOTHING, /* as before */
    LOOK_NEWS,    /* something, but not what is wanted */
    LOOK_DONE,
};
typedef belay_rc exec_look(void *arg, enum look *out, struct belay_error *err);

struct exec_watch {
    struct space *space;
    struct bytes topic; /* that is posted when there may be news */
    int64_t wait_ms;
    struct belay_cancel *cancel;
    bool late; /* what is posted may be seen a little later only (feeds) */
    exec_look *look;
    void *arg;
};
/* Looks until it is done or wait_ms have passed; always once.  `invalid`, reason wait;
 * `cancelled`. */
MUST_USE belay_rc exec_watch(const struct exec_watch *w, bool *out_done,
                             struct belay_error *err);

/* --- exec_text.c --- */

/* Standard base64, padded. */
void base64_append(struct buf *out, struct bytes data);
/* And back into the arena.  False: it is none, or (*no_memory) there is no memory. */
MUST_USE bool base64_read(struct bytes text, struct belay_arena *a, struct bytes *out,
                          bool *no_memory);

/* A place in a list, as text that is safe everywhere and whose damage is noticed. */
MUST_USE bool list_cursor_write(const struct scan_cursor *c, struct belay_arena *a,
                                const char **out);
MUST_USE belay_rc list_cursor_read(const char *text, struct belay_arena *a,
                                   struct scan_cursor *out, struct belay_error *err);

/* A place in the feed: behind an entry, and some events of the one that follows it. */
struct event_place {
    struct feed_pos pos;
    int64_t skip;
};
MUST_USE bool event_cursor_write(const struct event_place *p, struct belay_arena *a,
                                 const char **out);
MUST_USE belay_rc event_cursor_read(const char *text, struct event_place *out,
                                    struct belay_error *err);

/* --- exec_events.c, exec_event_page.c --- */

/* Events from a place on, collected page by page. */
struct event_follow {
    const struct exec_site *site;
    const struct belay_event_request *request;
    struct filter filter;
    struct bytes ns, id; /* id.ptr NULL: of all */
    size_t limit;
    struct belay_arena *arena;
    struct belay_event *items;
    const char *
        *blobs; /* of each: where its payload is; NULL: here, or there is none */
    size_t n;
    struct event_place place;
    bool trimmed;

    /* Of one run of the body. */
    struct arena_mark mark;  /* of the arena, where the page begins */
    struct event_place next; /* behind what was looked at */
    size_t found;            /* items from n on */
    bool lost;               /* something was trimmed in between */
    bool end;                /* there is nothing behind `next` */
};
/* The body that reads a page. */
MUST_USE belay_rc event_page(struct txn *t, void *arg);

/* --- exec_text.c --- */

#define MOMENT_MAX 32
/* 2026-01-31T23:59:59.999Z */
void moment_text(char out[MOMENT_MAX], int64_t ms);

#endif /* WORK_EXEC_SHOW_H */
