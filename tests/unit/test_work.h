/* test_work.h - a store for one case of the work functions, on every kind of driver.
 *
 * A program runs its cases on the drivers that need nothing else, or with `--driver
 * NAME` on that one.  Time is the case's everywhere: a server's is hidden. */
#ifndef TESTS_WORK_H
#define TESTS_WORK_H

#include <stdlib.h>
#include <unistd.h>

#include "drivers.h"
#include "fakes.h"
#include "store/blob.h"
#include "store/drivers/memory.h"
#include "store/drivers/sqlite.h"
#include "store/dump.h"
#include "store/fault.h"
#include "store/trace.h"
#include "tap.h"
#include "work/process.h"

#define START_MS ((int64_t)1750000000000)
#define DAY_MS ((int64_t)24 * 3600 * 1000)

enum work_driver {
    ON_MEMORY,
    ON_DECORATED,
    ON_SQLITE_MEMORY,
    ON_SQLITE_FILE,
    ON_POSTGRES, /* servers: under a trace */
    ON_VALKEY,
    ON_DRIVERS
};

static const char *const work_names[] = {
    [ON_MEMORY] = "memory",
    [ON_DECORATED] = "memory+fault+trace",
    [ON_SQLITE_MEMORY] = "sqlite::memory:",
    [ON_SQLITE_FILE] = "sqlite:work.db",
    [ON_POSTGRES] = "postgres",
    [ON_VALKEY] = "valkey",
};

static inline bool work_on_server(enum work_driver on)
{
    return on == ON_POSTGRES || on == ON_VALKEY;
}

struct work {
    struct tap *t;
    enum work_driver on;
    struct fake_clock clock;
    struct fake_random random;
    struct driver_config config;
    struct driver *driver;
    char dir[256];              /* what a server's store is named by */
    struct driver_ops timeless; /* of a driver that has a clock of its own */
    struct store *store;
    struct space *space; /* "default" */
    struct belay_arena arena;
    struct belay_error err;
};

#define WORK_RC(w, got, want)                                                        \
    (tap_check_str((w)->t, belay_error_info((int)(got))->name,                       \
                   belay_error_info((int)(want))->name, #got, __FILE__, __LINE__) || \
     (printf("# %s\n", (w)->err.message), false))

static inline belay_rc work_open_server(struct work *w)
{
    struct driver *server = NULL;

    if (!getcwd(w->dir, sizeof(w->dir)))
        return BELAY_UNAVAILABLE;
    belay_rc rc =
        test_driver_find(work_names[w->on])->open(&w->config, w->dir, &server, &w->err);
    if (rc)
        return rc;
    w->timeless = *server->ops;
    w->timeless.now_ms = NULL;
    server->ops = &w->timeless;
    return trace_wrap(&w->driver, server, NULL, NULL, &w->err);
}

static inline belay_rc work_open_driver(struct work *w)
{
    struct driver *memory = NULL, *faulty = NULL;
    belay_rc rc;

    switch (w->on) {
    case ON_POSTGRES:
    case ON_VALKEY:
        return work_open_server(w);
    case ON_SQLITE_MEMORY:
        return sqlite_open(&w->driver, ":memory:", &w->config, &w->err);
    case ON_SQLITE_FILE:
        return sqlite_open(&w->driver, "work.db", &w->config, &w->err);
    case ON_DECORATED:
        rc = memory_open(&memory, &w->config, &w->err);
        if (!rc)
            rc = fault_wrap(&faulty, memory, &w->config.clock, &w->err);
        return rc ? rc : trace_wrap(&w->driver, faulty, NULL, NULL, &w->err);
    case ON_MEMORY:
    case ON_DRIVERS:
        break;
    }
    return memory_open(&w->driver, &w->config, &w->err);
}

/* A second store on the same driver, as another process would have it. */
static inline struct store *work_store(struct work *w)
{
    struct store_options options = { .schema = &schema_belay,
                                     .clock = w->config.clock,
                                     .random = w->config.random };
    struct store *s = NULL;

    WORK_RC(w, store_open(&s, w->driver, &options, &w->err), BELAY_OK);
    return s;
}

static inline struct space *work_space(struct work *w, struct store *s,
                                       const char *name)
{
    struct space *sp = NULL;

    WORK_RC(w, store_space(s, bytes_str(name), &sp, &w->err), BELAY_OK);
    return sp;
}

static inline void work_remove_files(void)
{
    static const char *const names[] = { "work.db", "work.db-wal", "work.db-shm",
                                         "work.db-belay", "work.db-wake" };

    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)unlink(names[i]);
}

static inline bool work_open(struct work *w, struct tap *t, enum work_driver on)
{
    *w = (struct work){ .t = t, .on = on };
    atomic_store(&w->clock.wall_ms, START_MS);
    atomic_store(&w->clock.mono_us, 1000000);
    atomic_store(&w->random.state, 42);
    w->config = (struct driver_config){ .schema = &schema_belay,
                                        .clock = fake_clock_hook(&w->clock),
                                        .random = fake_random_hook(&w->random) };
    work_remove_files();
    if (!WORK_RC(w, work_open_driver(w), BELAY_OK))
        return false;
    w->store = work_store(w);
    w->space = w->store ? work_space(w, w->store, "default") : NULL;
    return w->space != NULL;
}

static inline void work_close(struct work *w)
{
    store_close(w->store);
    driver_close(w->driver);
    arena_release(&w->arena);
    work_remove_files();
    if (work_on_server(w->on))
        test_driver_find(work_names[w->on])->forget(w->dir);
}

/* Where a commit takes its time: cases that need many can do with fewer. */
static inline bool work_is_slow(const struct work *w)
{
    return w->on == ON_SQLITE_FILE || work_on_server(w->on);
}

/* Where every question is a round trip that is counted: no snapshot is at hand. */
static inline bool work_is_traced(const struct work *w)
{
    return w->on == ON_DECORATED || work_on_server(w->on);
}

/* What the calls since the last time took.  Where rows are kept (recall.h) it may be less:
 * those who ask in vain for what they kept pay one more commit. */
static inline void work_expect_trips(struct work *w, unsigned reads, unsigned commits)
{
    struct trace_counts n = trace_counts(w->driver);

    if (w->driver->caps & DRIVER_FAR) {
        TAP_OK(w->t, n.reads + n.commits <= reads + commits);
    } else {
        TAP_EQ(w->t, n.reads, reads);
        TAP_EQ(w->t, n.commits, commits);
    }
    trace_reset(w->driver);
}

/* Closes the store and opens it again on the same driver. */
static inline void work_reopen(struct work *w)
{
    store_close(w->store);
    w->store = work_store(w);
    w->space = work_space(w, w->store, "default");
}

/* One transaction. */
static inline belay_rc work_run(struct work *w, struct space *sp, txn_body *body,
                                void *arg)
{
    arena_reset(&w->arena);
    return txn_run(sp, body, arg, NULL, &w->arena, &w->err);
}

/* Stores `len` bytes as a blob. */
static inline void work_blob(struct work *w, struct space *sp, size_t len, uint8_t byte,
                             struct blob_info *out)
{
    struct blob_writer *writer = NULL;
    uint8_t *data = malloc(len ? len : 1);

    memset(data, byte, len);
    WORK_RC(w, blob_writer_open(&writer, sp, false, NULL, &w->err), BELAY_OK);
    WORK_RC(w, blob_write(writer, bytes_of(data, len), &w->err), BELAY_OK);
    WORK_RC(w, blob_finish(writer, bytes_of(NULL, 0), NULL, out, &w->err), BELAY_OK);
    blob_writer_close(writer);
    free(data);
}

/* Something of every shape. */
static inline belay_rc work_fill_body(struct txn *t, void *arg)
{
    int64_t n = *(const int64_t *)arg;
    char member[32];
    belay_rc rc = BELAY_OK;

    for (int64_t i = 0; i < n && !rc; i++) {
        (void)snprintf(member, sizeof(member), "m%lld", (long long)i);
        rc = txn_rank_add(t, bytes_str("things"), i, bytes_str(member));
        if (!rc)
            rc = txn_log_append(t, bytes_str("log"), i + 1, bytes_str("e"));
        if (!rc)
            rc = txn_feed_append(t, bytes_str("feed"), bytes_str("e"), NULL);
    }
    return rc;
}

static inline void work_fill(struct work *w, struct space *sp, int64_t n)
{
    struct blob_info info;

    WORK_RC(w, work_run(w, sp, work_fill_body, &n), BELAY_OK);
    work_blob(w, sp, 3, 'x', &info);
}

/* Everything in a namespace, as text; the caller releases it. */
static inline struct buf work_dump(struct work *w, const char *ns)
{
    struct buf out = { 0 };

    WORK_RC(w, dump_namespace(w->driver, bytes_str(ns), &out, &w->err), BELAY_OK);
    return out;
}

/* Whether this run is about the driver. */
static inline bool work_chosen(const struct tap *t, enum work_driver on)
{
    return t->arg ? strcmp(work_names[on], t->arg) == 0 : !work_on_server(on);
}

/* Runs one case's work on every driver. */
static inline void work_everywhere(struct tap *t, void (*run)(struct work *w))
{
    for (int on = 0; on < ON_DRIVERS; on++) {
        unsigned failed = t->failed;
        struct work w;
        if (!work_chosen(t, (enum work_driver)on))
            continue;
        if (work_open(&w, t, (enum work_driver)on))
            run(&w);
        work_close(&w);
        if (t->failed > failed)
            printf("# on %s\n", work_names[on]);
    }
}

/* [--driver NAME] and what tap_main takes. */
static inline int work_main(const struct tap_case *cases, size_t n, int argc,
                            char **argv)
{
    bool named = argc > 2 && strcmp(argv[1], "--driver") == 0;

    return tap_main(cases, n, named ? argv[2] : NULL, argc - (named ? 2 : 0),
                    argv + (named ? 2 : 0));
}

/* A process that declares what an execution of it ends with. */
static inline void work_process(struct work *w, const char *id)
{
    const struct belay_registration r = { .size = sizeof(r),
                                          .process_id = id,
                                          .event_types =
                                              "[{\"name\":\"execution.completed\"}]" };
    struct proc_site site = { .space = w->space };
    struct belay_registered out;

    WORK_RC(w, proc_register(&site, &r, &w->arena, &out, &w->err), BELAY_OK);
}

#endif /* TESTS_WORK_H */
