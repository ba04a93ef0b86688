/* pg.wakeup - a batch is put into an inbox by one process while another waits for it, on
 * PostgreSQL: from the start of the enqueue until the waiter wakes, p50, against a bare
 * commit (a one-row UPDATE by libpq), p50.  ratio_claimed: until it has claimed it. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/handle.h"
#include "base/clock.h"
#include "pgbench.h"

#define SESSION "inbox"
#define SAMPLES 400
#define ROWS 1000
#define PATIENCE_US ((int64_t)10000000)

/* What the waiter tells, by the monotonic clock; 0: it failed. */
struct woken {
    double at, claimed_at;
};

/* --- the process that waits --- */

static bool claim(struct belay *b, struct belay_arena *arena, bool *got)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = SESSION,
                                           .owner_id = "waiter",
                                           .lease_ms = BELAY_LEASE_MAX_MS,
                                           .max = 1 };
    struct belay_claimed claimed;
    struct belay_error err;

    if (belay_queue_claim(b, &request, arena, &claimed, &err))
        return bench_failed("claim", &err);
    *got = claimed.claim != NULL;
    return true;
}

/* Wake-ups may be for nothing: the one that counts finds something. */
static struct woken wait_once(struct belay *b, struct listener *l)
{
    struct belay_clock clock = clock_system();
    struct woken w = { 0, 0 };
    struct belay_arena *arena = NULL;
    struct belay_error err;
    bool got = false;

    if (belay_arena_new(&arena, &err))
        return w;
    while (!got) {
        if (listener_wait(l, clock.mono_us(clock.arg) + PATIENCE_US, &err)) {
            (void)bench_failed("wait", &err);
            break;
        }
        w.at = bench_now();
        if (!claim(b, arena, &got))
            break;
    }
    w.claimed_at = got ? bench_now() : 0;
    belay_arena_free(arena);
    return w;
}

static void waiter(const struct bench_pg *pg, int out)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay *b = bench_pg_belay(pg, 2);
    struct bytes topic = bytes_str("inbox/" SESSION);
    struct listener *l = NULL;
    struct woken w = { 1, 1 }; /* the first one says that it listens */
    struct belay_error err;
    bool got;

    if (!b || !claim(b, &arena, &got) ||
        space_listen(b->space, &topic, 1, NULL, &arena, &l, &err))
        w.claimed_at = 0;
    while (write(out, &w, sizeof(w)) == (ssize_t)sizeof(w) && w.claimed_at > 0)
        w = wait_once(b, l);
    listener_close(l);
    belay_close(b);
    _exit(0);
}

/* --- the process that enqueues --- */

static bool enqueue(struct belay *b)
{
    static const char *const payloads[] = { "{\"type\":\"turn_input\"}" };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .session_id = SESSION,
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_EXCLUSIVE,
                                 .payloads = payloads,
                                 .n_payloads = 1 };
    struct belay_arena *arena = NULL;
    struct belay_enqueued done;
    struct belay_error err;
    bool ok = !belay_arena_new(&arena, &err) &&
              !belay_queue_enqueue(b, &draft, arena, &done, &err);

    belay_arena_free(arena);
    return ok || bench_failed("enqueue", &err);
}

/* Seconds of a one-row UPDATE, or 0. */
static double bare_commit(PGconn *raw, unsigned i)
{
    char key[ID_MAX];
    const char *const values[] = { key };

    bench_key(i % ROWS, key);
    double start = bench_now();
    PGresult *r = PQexecPrepared(raw, "u", 1, values, NULL, NULL, 1);
    double took = bench_now() - start;
    bool ok = strcmp(PQcmdTuples(r), "1") == 0;
    PQclear(r);
    return ok ? took : 0;
}

struct samples {
    double woken[SAMPLES], claimed[SAMPLES], enqueued[SAMPLES], bare[SAMPLES];
};

static bool sample(struct samples *s, unsigned i, struct belay *b, PGconn *raw, int in)
{
    struct woken w;

    (void)poll(NULL, 0, 3); /* the waiter has gone to sleep again */
    double start = bench_now();
    if (!enqueue(b))
        return false;
    s->enqueued[i] = bench_now() - start;
    if (read(in, &w, sizeof(w)) != (ssize_t)sizeof(w) || w.claimed_at <= 0)
        return false;
    s->woken[i] = w.at - start;
    s->claimed[i] = w.claimed_at - start;
    (void)poll(NULL, 0, 3);
    s->bare[i] = bare_commit(raw, i);
    return s->bare[i] > 0;
}

static PGconn *raw_open(const struct bench_pg *pg)
{
    PGconn *raw = bench_raw_things(pg, ROWS) ? bench_pg_connect(pg) : NULL;
    PGresult *r = raw ? PQprepare(raw, "u",
                                  "UPDATE thing SET ver = ver + 1, n = n + 1"
                                  " WHERE ns = 'default' AND id = $1",
                                  0, NULL)
                      : NULL;
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK;

    PQclear(r);
    if (ok)
        return raw;
    PQfinish(raw);
    return NULL;
}

static bool measure(struct samples *s, unsigned n, const struct bench_pg *pg, int in)
{
    struct belay *b = bench_pg_belay(pg, 2);
    PGconn *raw = raw_open(pg);
    struct woken ready;
    bool ok = b && raw && read(in, &ready, sizeof(ready)) == (ssize_t)sizeof(ready) &&
              ready.claimed_at > 0;

    for (unsigned i = 0; i < 5 && ok; i++) /* connections and statements */
        ok = sample(s, 0, b, raw, in);
    for (unsigned i = 0; i < n && ok; i++)
        ok = sample(s, i, b, raw, in);
    PQfinish(raw);
    belay_close(b);
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned n = o.smoke ? 10 : SAMPLES;
    struct samples s;
    struct bench_pg pg;
    int pipes[2] = { -1, -1 };
    bool ok = bench_pg_open(&pg, &o) && pipe(pipes) == 0;
    pid_t pid = ok ? fork() : -1;

    if (pid == 0) {
        (void)close(pipes[0]);
        waiter(&pg, pipes[1]);
    }
    (void)close(pipes[1]);
    ok = pid > 0 && measure(&s, n, &pg, pipes[0]);
    (void)close(pipes[0]);
    if (pid > 0 && kill(pid, SIGKILL) == 0) /* it still waits */
        (void)waitpid(pid, NULL, 0);
    bench_pg_close(&pg);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        double bare = bench_median(s.bare, n), woken = bench_median(s.woken, n);
        bench_field(&fields, "ratio", woken / bare);
        bench_field(&fields, "ratio_claimed", bench_median(s.claimed, n) / bare);
        bench_field(&fields, "ratio_enqueue", bench_median(s.enqueued, n) / bare);
        bench_field(&fields, "woken_ms", woken * 1e3);
        bench_field(&fields, "baseline_ms", bare * 1e3);
    }
    return bench_finish(&o, "pg.wakeup", &fields, ok);
}
