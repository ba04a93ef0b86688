/* nouns.h - sessions, inboxes and blobs as their callers meet them.
 *
 * Every case gets a world: a fresh store of the kind that the program was started with,
 * opened by its URL through the public library, and nothing else.  It has two handles on
 * that store, `a` and `b`, for cases of two callers; where a store cannot be opened
 * twice (it lives in one handle's memory) both are the same handle, and the two callers
 * share it.  Helpers act through the handle in `use`.
 *
 * Time stands still until world_pass; where the store's time is a server's, world_pass
 * waits instead.  So no case asks what time it is: it compares the times it was told.
 *
 * Cases of threads begin with "threads:", so that the thread sanitizer can run them
 * alone.
 */
#ifndef TESTS_NOUNS_H
#define TESTS_NOUNS_H

#include <belay/session.h>

#include "fakes.h"
#include "stores.h"
#include "tap.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A minute is longer than any case takes; leases of it are live until it passes. */
#define MINUTE ((int64_t)60 * 1000)
#define WORLD_START_MS ((int64_t)1750000000000)

struct world_memory;
struct world_session;

struct world {
    struct tap *t;
    const struct test_store *store;
    bool real_time;
    char dir[160], url[256];
    struct belay *a, *b, *use;
    struct belay_arena *arena;
    struct belay_error err;
    struct fake_clock clock;
    struct fake_random random[2];
    /* Called whenever the library looks at the clock, in its thread: where a case steps
     * in between.  Set while no call is running. */
    void (*on_clock)(void *arg);
    void *on_clock_arg;
    struct world_memory *memory;    /* what the helpers allocated */
    struct world_session *sessions; /* and opened */
    struct tap own_tap;             /* of a visitor */

    /* What the last call of each kind answered. */
    struct belay_enqueued enqueued;
    struct belay_claimed claimed;
    struct belay_committed committed;
    struct belay_head head;
    struct belay_blob_info blob;
    struct belay_gc_report gc;
};

/* --- cases --- */

enum {
    CASE_REAL_TIME = 1, /* the system's clock: the case waits */
    CASE_SHARED = 2,    /* needs a store that other processes open */
    CASE_DAMAGE = 4,    /* needs a store that can be damaged below the library */
};

struct noun_case {
    const char *name;
    void (*run)(struct world *w);
    unsigned flags;
};

struct topic {
    const struct noun_case *cases;
    size_t n;
};

/* Of the specification (5.1), by its names; of the traps (5.2 and "Do:"), in words; of the
 * promises, by their numbers. */
extern const struct topic topic_spec_queue, topic_spec_claims, topic_spec_sessions,
    topic_spec_commits, topic_spec_storage, topic_pure, topic_traps_queue,
    topic_traps_claims, topic_traps_sessions, topic_traps_graph, topic_traps_blobs,
    topic_care, topic_reads, topic_text, topic_leases, topic_stale, topic_heads,
    topic_garbage, topic_interleave, topic_bad_queue, topic_bad_claims,
    topic_bad_commits, topic_bad_blobs, topic_bounds, topic_crowds, topic_waiting,
    topic_threads, topic_thread_commits, topic_processes, topic_damage, topic_damage_gc,
    topic_exec_traces, topic_exec_operations, topic_exec_stale, topic_exec_claims,
    topic_exec_submit, topic_exec_holding, topic_exec_looking, topic_exec_timers,
    topic_exec_feeds, topic_exec_handles, topic_exec_waiting, topic_exec_workers,
    topic_proc_spec, topic_proc_spec_more, topic_proc_traps, topic_proc_stale,
    topic_proc_wakes, topic_proc_life, topic_proc_waiting, topic_proc_children,
    topic_hosts;

/* A process of its own that the program starts on the same store: see processes.c. */
int child_main(int argc, char **argv);
/* Likewise one that works executions off: see exec_workers.c. */
int worker_main(int argc, char **argv);

/* --- worlds --- */

/* Time stands at start_ms; 0: it is the system's. */
bool world_open(struct world *w, struct tap *t, const struct test_store *store,
                int64_t start_ms);
void world_close(struct world *w);

/* Closes every handle and opens the store again.  A store that lives in its handle stays
 * as it is: there is nothing to open again. */
bool world_reopen(struct world *w);

/* Another handle, on another namespace (NULL: the same).  On a store that cannot be
 * shared it is another store.  The caller closes it, with what the world opened on it. */
struct belay *world_handle(struct world *w, const char *ns);
void world_handle_close(struct world *w, struct belay *b);

/* Closes every handle. */
void world_shut(struct world *w);

/* Everything is closed, the SQL done, everything opened again. */
bool world_damage(struct world *w, const char *sql);

void world_pass(struct world *w, int64_t ms);

/* Goes on with the other handle, for which what is past due is past due, too: where the time is a
 * server's, one program's is behind another's by what an answer takes. */
void world_turn(struct world *w);

/* The same store for another thread, through `use`: it has an arena, an error and a
 * count of failures of its own.  world_leave, back in the first thread, adds that up. */
bool world_visit(struct world *visitor, struct world *host, struct belay *use);
void world_leave(struct world *visitor, struct world *host);

/* One handle on a store that is there, in real time: for another process. */
bool world_join(struct world *w, struct tap *t, const char *url);
void world_part(struct world *w);

/* Runs work(visitors[i], arg) in n threads at once, handles a and b in turn. */
void world_crowd(struct world *w, unsigned n,
                 void (*work)(struct world *w, unsigned i, void *arg), void *arg);

/* Text that lives as long as the world. */
const char *text(struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* n times the byte. */
char *bytes_of(struct world *w, char byte, size_t n);

/* --- checks --- */

bool world_rc(struct world *w, belay_rc got, belay_rc want, const char *reason,
              const char *what, const char *file, int line);

#define OK(w, held) tap_check((w)->t, (held), #held, __FILE__, __LINE__)
#define EQ(w, got, want) \
    tap_check_i64((w)->t, (int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define STR(w, got, want) tap_check_str((w)->t, (got), (want), #got, __FILE__, __LINE__)
/* The code that a call answered with; and the reason in w->err. */
#define RC(w, rc, want) world_rc((w), (rc), (want), NULL, #rc, __FILE__, __LINE__)
#define WHY(w, rc, want, reason) \
    world_rc((w), (rc), (want), (reason), #rc, __FILE__, __LINE__)

/* --- inboxes --- */

/* A draft in short.  What is left out is usual: session "s", earliest_safe_boundary,
 * join, never, at once, one payload. */
struct post {
    const char *session, *key, *payload, *group;
    int32_t delivery, slot, merge;
    int64_t at;
};

belay_rc post_try(struct world *w, struct post p);
const struct belay_batch *post(struct world *w,
                               struct post p); /* NULL when it failed */
void post_many(struct world *w, const char *session, int n);

/* A claim in short: session "s", owner "o", idle, a lease of a minute, one batch. */
#define AT_ONCE ((int64_t)-1) /* a lease of 0 */
struct ask {
    const char *session, *owner;
    int32_t boundary;
    int64_t lease, wait;
    size_t max;
    const char *const *ids;
    size_t n_ids;
    struct belay_cancel *cancel;
};

belay_rc ask_try(struct world *w, struct ask a);
/* NULL when nothing was claimed: w->claimed says why. */
const struct belay_claim *ask(struct world *w, struct ask a);
const struct belay_claim *take(struct world *w, size_t max);

belay_rc renew(struct world *w, const struct belay_claim *c, int64_t lease_ms);
int64_t renewed(struct world *w, const struct belay_claim *c, int64_t lease_ms);
size_t abandoned(struct world *w, const struct belay_claim *c);
/* The batch that was removed, or NULL. */
const struct belay_batch *cancelled(struct world *w, const char *session,
                                    const char *batch_id);

/* Sequences as text, "1 2 3": of a claim (NULL: ""), of an inbox, of what is pending. */
const char *seqs(struct world *w, const struct belay_claim *c);
const char *listed(struct world *w, const char *session);
const char *pending(struct world *w, const char *session);
/* The batch as it is now, or NULL. */
const struct belay_batch *batch_now(struct world *w, const char *session, int64_t seq);

/* SHA-256 of a text, in hex. */
const char *digest(struct world *w, const char *of);

/* --- sessions --- */

/* The session's handle, on the belay in use; the world's. */
struct belay_session *session(struct world *w, const char *id);

belay_rc commit(struct world *w, const char *id, struct belay_commit c);
/* Appends one node and completes a claim (either may be NULL). */
belay_rc say(struct world *w, const char *id, int64_t expected, const char *node_id,
             const char *parent);
belay_rc finish(struct world *w, const char *id, int64_t expected,
                const struct belay_claim *c);

/* {"kind":"event", ...} with these ids; parent may be NULL. */
const char *node(struct world *w, const char *id, const char *parent);

/* The revision; 0 when there is no session. */
int64_t revision(struct world *w, const char *id);
/* Node ids as text, "n1 n2"; leaf NULL: the head's.  Or the code's name. */
const char *path(struct world *w, const char *id, const char *leaf);
const char *nodes(struct world *w, const char *id);
/* "source/model input output cached reasoning; ..." */
const char *usage(struct world *w, const char *id);
/* Ids of attachments not committed, "a b". */
const char *uncommitted(struct world *w, const char *id, int64_t older_than_ms);

/* --- blobs --- */

belay_rc blob_try(struct world *w, const void *data, size_t len,
                  const struct belay_blob_options *options);
/* The name of a generic blob with this text in it. */
const char *blob(struct world *w, const char *content);
/* What is in it, or the code's name. */
const char *content(struct world *w, const char *sha256);
belay_rc blob_read_all(struct world *w, const char *sha256, char **out, size_t *len);
bool has_blob(struct world *w, const char *sha256);
void collect(struct world *w); /* without grace; w->gc is the report */

/* --- everything --- */

/* All that can be read of the sessions "s", "t" and "u", of the namespace's sessions and
 * pins, and how many blobs there are, as one text: what a call that was refused must not
 * have changed (L4). */
const char *everything(struct world *w);

#endif /* TESTS_NOUNS_H */
