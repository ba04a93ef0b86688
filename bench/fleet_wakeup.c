/* fleet.wakeup - a batch is put into an inbox by one process while another waits for it, on one
 * SQLite file: from the start of the enqueue until the waiter wakes, p50, against a bare
 * durable commit (a one-row UPDATE by SQLite, WAL, FULL), p50.  ratio_claimed: until it has
 * claimed it.  `crowd`: the same while 16 more processes wait for other inboxes;
 * crowd_woken is how many of them wake for each enqueue.  Beside it, in microseconds, the
 * wake-up alone: by PATH-wake, by PATH-wake with watchers (as before Linux 5.16), by a word
 * of a fleet; each alone and in such a crowd. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/handle.h"
#include "base/clock.h"
#include "waiter.h"
#include "wire.h"

#define ROWS 1000
#define CROWD 16
#define HOUR_US ((int64_t)3600000000)

static struct belay *open_store(const void *folder)
{
    return bench_belay_open(folder, "belay.db");
}

/* --- the bare commit --- */

struct raw {
    sqlite3 *db;
    sqlite3_stmt *update;
};

static double bare_commit(void *arg, unsigned i)
{
    struct raw *raw = arg;

    (void)sqlite3_bind_int(raw->update, 1, (int)(i % ROWS));
    double start = bench_now();
    bool ok = sqlite3_step(raw->update) == SQLITE_DONE;
    double took = bench_now() - start;
    (void)sqlite3_reset(raw->update);
    return ok ? took : 0;
}

static bool raw_open(struct raw *raw, const struct bench_folder *f)
{
    raw->db =
        bench_raw_open(f, "raw.db",
                       "CREATE TABLE thing (id INTEGER PRIMARY KEY, n INTEGER);"
                       "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 "
                       "FROM c WHERE i < 999) INSERT INTO thing SELECT i, 0 FROM c");
    raw->update =
        raw->db ? bench_raw_prepare(raw->db, "UPDATE thing SET n = n + 1 WHERE id = ?1")
                : NULL;
    return raw->update != NULL;
}

static void raw_close(struct raw *raw)
{
    (void)sqlite3_finalize(raw->update);
    (void)sqlite3_close(raw->db);
}

/* --- who waits for something else --- */

/* How often each has slept and woken, by what the kernel says. */
struct crowd {
    pid_t pid[CROWD];
    unsigned n;
    _Atomic uint32_t *listening;
};

static void listen_elsewhere(const struct bench_folder *f, unsigned i,
                             _Atomic uint32_t *listening)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_clock clock = clock_system();
    struct belay *b = open_store(f);
    struct listener *l = NULL;
    struct belay_error err;
    char name[32];

    (void)snprintf(name, sizeof(name), "inbox/other-%u", i);
    struct bytes topic = bytes_str(name);
    if (!b || space_listen(b->space, &topic, 1, NULL, &arena, &l, &err))
        return;
    atomic_fetch_add(listening, 1);
    for (;;)
        (void)!listener_wait(l, clock.mono_us(clock.arg) + HOUR_US, &err);
}

static bool crowd_start(struct crowd *c, const struct bench_folder *f, unsigned n)
{
    c->listening =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->listening == MAP_FAILED)
        return false;
    for (c->n = 0; c->n < n; c->n++) {
        c->pid[c->n] = fork();
        if (c->pid[c->n] == 0) {
            listen_elsewhere(f, c->n, c->listening);
            _exit(1);
        }
    }
    for (int i = 0; i < 5000 && atomic_load(c->listening) < n; i++)
        (void)usleep(2000);
    return atomic_load(c->listening) == n;
}

/* Times that all of them together gave up the processor by themselves: each wake-up is one. */
static double crowd_naps(const struct crowd *c)
{
    double sum = 0;

    for (unsigned i = 0; i < c->n; i++) {
        char command[96], line[32];
        (void)snprintf(
            command, sizeof(command),
            "cat /proc/%d/task/*/status | awk '/^volun/ {n+=$2} END {print n}'",
            (int)c->pid[i]);
        FILE *p = popen(command, "r");
        if (p && fgets(line, sizeof(line), p))
            sum += strtod(line, NULL);
        if (p)
            (void)pclose(p);
    }
    return sum;
}

static void crowd_end(struct crowd *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        (void)kill(c->pid[i], SIGKILL);
        (void)waitpid(c->pid[i], NULL, 0);
    }
}

/* --- the two measurements --- */

static bool measure(struct bench_wakeups *s, unsigned n, const struct bench_folder *f,
                    unsigned others, double *naps)
{
    struct bench_waiter w = { .pid = -1, .in = -1 };
    struct crowd crowd = { .n = 0 };
    struct raw raw = { 0 };
    bool ok = bench_waiter_start(&w, open_store, f) && crowd_start(&crowd, f, others);
    struct belay *b = ok ? open_store(f) : NULL;

    ok = b && raw_open(&raw, f);
    double before = ok ? crowd_naps(&crowd) : 0;
    ok = ok && bench_wakeups(s, n, &w, b, bare_commit, &raw);
    *naps = ok ? (crowd_naps(&crowd) - before) / n : 0;
    raw_close(&raw);
    belay_close(b);
    crowd_end(&crowd);
    bench_waiter_end(&w);
    return ok;
}

static void report(struct buf *fields, const char *prefix, struct bench_wakeups *s,
                   unsigned n)
{
    static const char *const names[] = { "ratio",    "ratio_claimed", "ratio_enqueue",
                                         "woken_ms", "wake_ms",       "baseline_ms" };
    double bare = bench_median(s->bare, n), after[BENCH_WAKEUPS_MAX];

    for (unsigned i = 0; i < n; i++) /* before the others are sorted */
        after[i] = s->woken[i] - s->enqueued[i];
    double values[] = {
        bench_median(s->woken, n) / bare,    bench_median(s->claimed, n) / bare,
        bench_median(s->enqueued, n) / bare, bench_median(s->woken, n) * 1e3,
        bench_median(after, n) * 1e3,        bare * 1e3
    };
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "%s%s", prefix, names[i]);
        bench_field(fields, name, values[i]);
    }
}

/* The wake-up without anything around it. */
static bool wires(struct buf *fields, const struct bench_folder *f, unsigned n)
{
    static const char *const names[] = { "page_us", "watcher_us", "fleet_us" };
    static double samples[BENCH_WAKEUPS_MAX];
    bool ok = true;

    for (unsigned wire = WIRE_PAGE; wire <= WIRE_FLEET; wire++) {
        for (unsigned others = 0; others <= CROWD && ok; others += CROWD) {
            char name[64];
            ok = bench_wire_samples(wire, f, others, samples, n);
            (void)snprintf(name, sizeof(name), "%s%s", others > 0 ? "crowd_" : "",
                           names[wire]);
            bench_field(fields, name, bench_median(samples, n));
        }
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned n = o.smoke ? 10 : BENCH_WAKEUPS_MAX;
    static struct bench_wakeups alone, among;
    double none, naps;
    struct bench_folder f;
    bool ok = bench_folder_make(&f) && measure(&alone, n, &f, 0, &none);
    struct bench_folder g;

    bench_folder_remove(&f);
    struct buf fields = { .ptr = NULL };
    ok = ok && bench_folder_make(&g) && measure(&among, n, &g, CROWD, &naps);
    if (ok) {
        report(&fields, "", &alone, n);
        report(&fields, "crowd_", &among, n);
        bench_field(&fields, "crowd_woken", naps);
        ok = wires(&fields, &g, n);
        bench_folder_remove(&g);
    }
    return bench_finish(&o, "fleet.wakeup", &fields, ok);
}
