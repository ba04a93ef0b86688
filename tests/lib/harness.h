/* harness.h - an empty store for one test case, and hands to work on it with.
 *
 * The case's driver comes from tap.arg (a struct test_driver) and lives in a directory
 * of its own until harness_close.  Time stands still unless the case asks for the real
 * one.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include "drivers.h"
#include "fakes.h"
#include "store/txn.h"
#include "tap.h"
#include "things.h"

#define TEMP_DIR_MAX 256

enum harness_flags {
    HARNESS_FAULTS = 1 << 0, /* the driver under fault_wrap: h->faulty */
    HARNESS_TRACE = 1 << 1,  /* the driver, or the faults, under trace_wrap: h->trace */
    HARNESS_REAL_TIME = 1 << 2, /* the system's clock, for threads that wait */
    HARNESS_UNFOUNDED = 1 << 3, /* nothing was ever committed */
    HARNESS_OWN_CLOCK = 1 << 4, /* time is h->clock even if the driver has its own */
    /* Bodies run on their own threads even if the driver would queue them: for cases
     * in which one body runs while another one is being run. */
    HARNESS_INTERLEAVED = 1 << 5,
};

struct harness {
    struct tap *t;
    unsigned flags;
    struct fake_clock clock;
    struct fake_random random, driver_random;
    struct store_options options; /* what h->store was opened with */
    struct driver *driver;        /* the outermost */
    struct driver *faulty, *trace;
    struct store *store;
    struct space *space; /* "default" */
    struct belay_arena arena;
    struct belay_error err; /* of the last harness_run */
    char dir[TEMP_DIR_MAX];
};

/* False, and a failed check, when there is no store; close it all the same. */
bool harness_open(struct harness *h, struct tap *t, unsigned flags);
void harness_close(struct harness *h);

/* Closes store and driver and opens them again where they were. */
bool harness_reopen(struct harness *h);

/* One transaction in h->space.  Resets the arena first. */
belay_rc harness_run(struct harness *h, txn_body *body, void *arg);

/* The same with an arena of its own, and from inside a body, too, as if somebody else
 * did it (HARNESS_INTERLEAVED). */
belay_rc harness_run_aside(struct harness *h, txn_body *body, void *arg);

/* The dump of the namespace "default"; a failed check when there is none. */
struct buf harness_dump(struct harness *h);

/* Lets time pass for the store and for the driver, whatever clock that has. */
void harness_pass_us(struct harness *h, int64_t us);

#define CHECK_RC(h, got, want)                                \
    tap_check_str((h)->t, belay_error_info((int)(got))->name, \
                  belay_error_info((int)(want))->name, #got, __FILE__, __LINE__)

/* --- things, by name and number --- */

/* All columns of a new thing: counters 0, the rest NULL. */
void thing_values(struct value v[THING_COLUMNS], const char *id, int64_t n);

/* In a body. */
belay_rc thing_get(struct txn *t, const char *id, const struct row **out);
belay_rc thing_insert(struct txn *t, const char *id, int64_t n);
belay_rc thing_put(struct txn *t, const char *id, int64_t n); /* gets it first */
belay_rc thing_add(struct txn *t, const char *id, int64_t delta);

/* Whole transactions, which must succeed.  thing_n is INT64_MIN when there is none. */
void thing_set(struct harness *h, const char *id, int64_t n);
void thing_drop(struct harness *h, const char *id);
int64_t thing_n(struct harness *h, const char *id);
int64_t thing_count(struct harness *h, const char *id);

/* --- one attempt at the driver's own door --- */

#define RAW_MAX 8

struct raw {
    struct harness *h;
    void *attempt;
    struct belay_arena arena;
    struct guard guards[RAW_MAX];
    struct effect effects[RAW_MAX];
    struct effect_result results[RAW_MAX];
    struct plan plan;
    struct plan_result result;
    struct belay_error err;
};

bool raw_begin(struct raw *r, struct harness *h);
void raw_end(struct raw *r); /* the plan and what was read are gone, too */

/* Asks one question; the answers are in q. */
belay_rc raw_read(struct raw *r, struct read *q);
const struct row *raw_row(struct raw *r, const char *id);
int64_t raw_ver(struct raw *r, const char *id); /* 0: absent */

void raw_guard(struct raw *r, const char *id, int64_t ver);
void raw_insert(struct raw *r, const char *id, int64_t ver, int64_t n);
void raw_put(struct raw *r, const char *id, int64_t ver, int64_t n);
void raw_delete(struct raw *r, const char *id);
void raw_add(struct raw *r, const char *id, int64_t delta, int64_t min, int64_t max);
void raw_rank(struct raw *r, enum effect_kind kind, const char *index,
              const char *member, int64_t old_rank, int64_t rank);
void raw_log(struct raw *r, const char *stream, int64_t seq);
void raw_feed(struct raw *r, const char *feed, const char *data);

/* Commits the plan and empties it.  An attempt commits once: the next one begins. */
belay_rc raw_commit(struct raw *r);

/* --- threads --- */

/* Calls work(arg, i) in n threads that start together, and waits for all of them. */
void crew_run(struct tap *t, unsigned n, void (*work)(void *arg, unsigned i),
              void *arg);

/* --- a driver that is not quite the one below it --- */

enum shim_bodies {
    BODIES_AS_BELOW, /* where the inner driver wants them to run */
    BODIES_FREE,     /* on their own threads, whatever it says */
    BODIES_QUEUED,   /* one after the other, whatever it says */
};

struct shim_options {
    struct fake_clock *clock; /* NULL: the inner driver's time */
    int drop;                 /* enum effect_kind that loses one effect; -1: none */
    unsigned drop_nth;        /* which one, from 1 */
    enum shim_bodies bodies;
};

/* Owns `inner` as trace_wrap does. */
MUST_USE belay_rc shim_wrap(struct driver **out, struct driver *inner,
                            const struct shim_options *options,
                            struct belay_error *err);

/* --- directories --- */

bool temp_dir_make(char *out, size_t size);
void temp_dir_remove(const char *dir);

#endif /* TESTS_HARNESS_H */
