/* session.gc - what a collection costs those who work beside it: the p99 of four
 * writers' commits while 10^5 blobs, half of them garbage, are collected, against
 * their p99 without.  Rounds alternate; the garbage is made anew for each.  Not one
 * blob that is alive may be lost. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "inbox.h"
#include "store/drivers/sqlite.h"
#include "work/checkpoint.h"
#include "work/gc.h"
#include "work/session.h"

#define ROUNDS 5
#define WRITERS 4
#define FILLERS 32
#define COMMITS_MAX 65536 /* of one writer in one phase */
#define GARBAGE_STEP 250

struct run {
    struct bench_store b;
    unsigned sessions; /* that live, each with four blobs */
    unsigned garbage;
    double seconds;         /* of a phase without a collection */
    atomic_bool collecting; /* a phase with one lasts as long as this */
    bool beside;            /* this is such a phase */
    atomic_uint serial;     /* makes every body another one */
    double *took[WRITERS];
    unsigned n[WRITERS];
    struct belay_gc_report report;
    int64_t deleted;
};

static bool open_store(struct bench_store *b, const struct bench_folder *f)
{
    struct driver_config config = { &schema_belay, clock_system(), random_system() };
    struct store_options options = { .schema = &schema_belay,
                                     .clock = config.clock,
                                     .random = config.random };
    struct belay_error err;
    char path[512];

    *b = (struct bench_store){ .driver = NULL };
    (void)snprintf(path, sizeof(path), "%s/gc.db", f->path);
    if (sqlite_open(&b->driver, path, &config, &err) ||
        store_open(&b->store, b->driver, &options, &err) ||
        store_space(b->store, bytes_str("default"), &b->space, &err))
        return bench_failed("open", &err);
    return true;
}

/* --- commits --- */

/* A checkpoint of up to three small bodies that nobody else has. */
static bool commit(struct run *r, const char *id, size_t bodies,
                   struct belay_arena *arena)
{
    struct session s = { .sp = r->b.space, .id = id, .profile = BELAY_LOW_LATENCY };
    char body[3][512];
    struct belay_checkpoint checkpoint = { .turn_state = "{\"turn_index\":1}",
                                           .plugin_snapshot_revision = BELAY_NONE };
    struct belay_part *parts[] = { &checkpoint.tool_state, &checkpoint.plugin_snapshot,
                                   &checkpoint.execution_state };
    struct belay_commit in = { .size = sizeof(in),
                               .expected_revision = BELAY_ANY_REVISION,
                               .checkpoint = &checkpoint };
    struct belay_committed out;
    struct belay_error err;

    for (size_t i = 0; i < bodies; i++) {
        memset(body[i], 'x', sizeof(body[i]));
        (void)snprintf(body[i], sizeof(body[i]), "%u", atomic_fetch_add(&r->serial, 1));
        *parts[i] = (struct belay_part){ .body = body[i], .len = sizeof(body[i]) };
    }
    bool ok = session_commit(&s, &in, arena, &out, &err) == BELAY_OK;
    arena_reset(arena);
    return ok ? true : bench_failed("commit", &err);
}

static void session_name(unsigned i, char out[32])
{
    (void)snprintf(out, 32, "session-%06u", i);
}

static bool fill_live(void *arg, unsigned caller)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct run *r = arg;
    char id[32];
    bool ok = true;

    for (unsigned i = caller; i < r->sessions && ok; i += FILLERS) {
        session_name(i, id);
        ok = commit(r, id, 3, &arena);
    }
    return ok;
}

/* One of the crew of a phase: writers, and the collector behind them. */
static bool write_on(struct run *r, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    double start = bench_now(), now = start;
    bool ok = true;
    char id[32];

    session_name(i, id);
    r->n[i] = 0;
    while (ok && r->n[i] < COMMITS_MAX &&
           (r->beside ? atomic_load(&r->collecting) : now - start < r->seconds)) {
        ok = commit(r, id, 1, &arena);
        r->took[i][r->n[i]++] = bench_now() - now;
        now = bench_now();
    }
    return ok;
}

static bool collect(struct run *r)
{
    struct belay_gc_options options = { .size = sizeof(options),
                                        .grace_ms = BELAY_NONE };
    struct belay_error err;
    belay_rc rc = gc_run(r->b.space, &options, &r->report, &err);

    atomic_store(&r->collecting, false);
    if (rc)
        return bench_failed("gc", &err);
    r->deleted += r->report.deleted_blobs;
    if (r->report.outcome == BELAY_GC_SWEPT)
        return true;
    (void)fprintf(stderr, "bench: gc: outcome %d: %s\n", (int)r->report.outcome,
                  r->report.message);
    return false;
}

static bool phase_member(void *arg, unsigned i)
{
    return i < WRITERS ? write_on(arg, i) : collect(arg);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds below which 99 of 100 commits of a phase stay; 0 when it failed. */
static double phase_p99(struct run *r, bool beside)
{
    size_t n = 0;

    r->beside = beside;
    atomic_store(&r->collecting, beside);
    if (bench_crew(WRITERS + beside, phase_member, r) <= 0)
        return 0;
    for (unsigned i = 0; i < WRITERS; i++)
        n += r->n[i];
    double *all = malloc((n ? n : 1) * sizeof(*all)), p99 = 0;
    if (all && n > 0) {
        size_t at = 0;
        for (unsigned i = 0; i < WRITERS; i++) {
            memcpy(all + at, r->took[i], r->n[i] * sizeof(*all));
            at += r->n[i];
        }
        qsort(all, n, sizeof(*all), by_size);
        p99 = all[n * 99 / 100];
    }
    free(all);
    return p99;
}

/* --- garbage --- */

struct garbage {
    struct blob_piece piece[GARBAGE_STEP];
    char body[GARBAGE_STEP][512];
};

static belay_rc garbage_body(struct txn *t, void *arg)
{
    const struct garbage *g = arg;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < GARBAGE_STEP && !rc; i++)
        rc = blob_put_in(t, &g->piece[i], NULL);
    return rc;
}

/* What the writers have left behind in the round before is garbage, too. */
static unsigned garbage_left(const struct run *r)
{
    int64_t left = r->report.retained_blobs - (int64_t)PARTS * r->sessions;

    return left > 0 ? (unsigned)left : 0;
}

static bool fill_garbage(struct run *r)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct garbage *g = calloc(1, sizeof(*g));
    struct belay_error err = { .size = sizeof(err) };
    belay_rc rc = g ? BELAY_OK : err_no_memory(&err, "garbage");

    for (unsigned made = garbage_left(r); made < r->garbage && !rc;
         made += GARBAGE_STEP) {
        for (size_t i = 0; i < GARBAGE_STEP && !rc; i++) {
            (void)snprintf(g->body[i], sizeof(g->body[i]), "%u",
                           atomic_fetch_add(&r->serial, 1));
            rc = blob_prepare(&g->piece[i], r->b.space,
                              bytes_of(g->body[i], sizeof(g->body[i])),
                              bytes_of(NULL, 0), false, &arena, &err);
        }
        if (!rc)
            rc = txn_run(r->b.space, garbage_body, g, NULL, &arena, &err);
        arena_reset(&arena);
    }
    free(g);
    return rc ? bench_failed("garbage", &err) : true;
}

/* --- what is alive --- */

/* Blobs of the sessions' checkpoints that cannot be read. */
static int64_t count_lost(struct run *r)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    int64_t lost = 0;
    char id[32];

    for (unsigned i = 0; i < r->sessions; i++) {
        struct belay_checkpoint_info info;
        struct belay_error err;
        struct bytes body;
        session_name(i, id);
        if (checkpoint_load(r->b.space, id, &arena, &info, &err)) {
            (void)bench_failed(id, &err);
            lost += PARTS;
            continue;
        }
        const char *refs[] = { info.tool_state_ref, info.plugin_snapshot_ref,
                               info.execution_state_ref };
        for (size_t k = 0; k < COUNT_OF(refs); k++)
            lost += refs[k] && blob_load(r->b.space, refs[k], CHUNK_MAX, &arena, &body,
                                         &err) != BELAY_OK;
        arena_reset(&arena);
    }
    return lost;
}

static bool prepare(struct run *r)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        r->took[i] = malloc(COMMITS_MAX * sizeof(*r->took[i]));
        if (!r->took[i])
            return false;
    }
    return bench_crew(FILLERS, fill_live, r) > 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    double ratio[ROUNDS], p99[ROUNDS], alone[ROUNDS], disk[ROUNDS];
    struct run r = { .sessions = o.smoke ? 50 : 12500,
                     .garbage = o.smoke ? 500 : 50000,
                     .seconds = o.smoke ? 0.1 : 2.5 };
    struct bench_folder f;
    int64_t lost = 0;

    if (!bench_folder_make(&f))
        return 1;
    bool ok = open_store(&r.b, &f) && prepare(&r);
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        ok = fill_garbage(&r);
        alone[i] = ok ? phase_p99(&r, false) : 0;
        p99[i] = alone[i] > 0 ? phase_p99(&r, true) : 0;
        ok = disk[i] > 0 && alone[i] > 0 && p99[i] > 0;
        ratio[i] = ok ? p99[i] / alone[i] : 0;
    }
    if (ok)
        lost = count_lost(&r);
    bench_store_close(&r.b);
    bench_folder_remove(&f);
    for (unsigned i = 0; i < WRITERS; i++)
        free(r.took[i]);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "p99_ms", bench_median(p99, rounds) * 1000);
        bench_field(&fields, "baseline_p99_ms", bench_median(alone, rounds) * 1000);
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
        bench_field(&fields, "deleted", (double)r.deleted);
        bench_field(&fields, "lost", (double)lost);
    }
    return bench_finish(&o, "session.gc", &fields, ok && lost == 0);
}
