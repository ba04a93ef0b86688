/* Sessions and their inboxes under workers that are killed, stopped and started again
 * (promises L1 to L12, S1 to S7, X2, X3).
 *
 *     test_sessions [--seconds N] [--seed S] [--round MS] [--pause MS]
 *                   [--store NAME] [case]
 *
 * Eight workers (session_worker.h) share one file, or one store of a server.  Every
 * few milliseconds one of them is ended by SIGKILL and a new life takes its place; now and then one is stopped for
 * longer than its leases and goes on with what it holds.  Workers keep ledgers.  At the
 * end of a round all are killed, and what survived is compared with what was said
 * (session_laws.h).  Every other round is in memory (/dev/shm): a SIGKILL takes nothing
 * from there, and more happens.
 *
 * A run in which something did not happen that the promises are about has failed, since
 * it would prove nothing; it takes up to five times as long before it gives up.
 * --pause is the longest time between two kills; BELAY_CRASH_SECONDS is --seconds, too.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "rig.h"
#include "session_after.h"
#include "session_worker.h"
#include "url_store.h"

extern char **environ;

struct plan_of_run {
    uint64_t seconds, seed, round_ms, pause_ms;
    const struct url_kind *kind;
    struct laws laws;
    bool ran;
    unsigned rounds;
    int64_t took_us; /* by the looking */
};

struct worker {
    pid_t pid;
    unsigned life;
    int64_t stopped_until_us; /* 0: it runs */
};

struct pool {
    struct laws *laws;
    struct rng rng;
    uint64_t pause_us;
    char *dir, *url;
    struct worker workers[NOTE_WORKERS];
};

/* --- one worker --- */

static void start(struct pool *p, unsigned i)
{
    char name[] = "test_sessions", word[] = "--worker";
    char number[16], life[16], seed[32], parent[16];
    struct worker *w = &p->workers[i];
    char *argv[] = { name, word, p->dir, number, life, seed, parent, p->url, NULL };

    w->life++;
    w->stopped_until_us = 0;
    (void)snprintf(number, sizeof(number), "%u", i);
    (void)snprintf(life, sizeof(life), "%u", w->life);
    (void)snprintf(seed, sizeof(seed), "%llu", (unsigned long long)rng_next(&p->rng));
    (void)snprintf(parent, sizeof(parent), "%d", (int)getpid());
    if (posix_spawn(&w->pid, "/proc/self/exe", NULL, NULL, argv, environ)) {
        printf("Bail out! no process can be started\n");
        exit(1);
    }
}

/* A worker has ended: by our hand or its own, but by no other way. */
static void bury(struct pool *p, unsigned i, int status)
{
    struct worker *w = &p->workers[i];

    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        law_broken(p->laws, LAW_SOUND, "worker %u, life %u ended by itself: %d", i,
                   w->life, status);
    p->laws->tally[TALLY_KILLS]++;
    w->pid = 0;
}

static void kill_one(struct pool *p, unsigned i)
{
    int status = 0;

    (void)kill(p->workers[i].pid, SIGKILL);
    if (waitpid(p->workers[i].pid, &status, 0) == p->workers[i].pid)
        bury(p, i, status);
}

/* --- one round --- */

/* Buries who died before it could tell, and lets go on who has been stopped for long. */
static void tend(struct pool *p)
{
    int64_t now = now_us();
    int status;

    for (unsigned i = 0; i < NOTE_WORKERS; i++) {
        struct worker *w = &p->workers[i];
        if (waitpid(w->pid, &status, WNOHANG) == w->pid) {
            bury(p, i, status);
            start(p, i);
        }
        if (w->stopped_until_us && now >= w->stopped_until_us) {
            (void)kill(w->pid, SIGCONT);
            w->stopped_until_us = 0;
            p->laws->tally[TALLY_STOPS]++;
        }
    }
}

/* Leases here last 150 ms at most. */
static void stop_one(struct pool *p, unsigned i)
{
    for (unsigned j = 0; j < NOTE_WORKERS; j++) {
        if (p->workers[j].stopped_until_us)
            return;
    }
    (void)kill(p->workers[i].pid, SIGSTOP);
    p->workers[i].stopped_until_us =
        now_us() + 60000 + (int64_t)rng_below(&p->rng, 140000);
}

static void torture(struct pool *p, int64_t until_us)
{
    while (now_us() < until_us) {
        (void)usleep((useconds_t)(2000 + rng_below(&p->rng, p->pause_us)));
        tend(p);
        unsigned i = (unsigned)rng_below(&p->rng, NOTE_WORKERS);
        if (p->workers[i].stopped_until_us) {
            if (rng_below(&p->rng, 4) > 0) /* else it is killed as it stands */
                continue;
        } else if (rng_below(&p->rng, 4) == 0) {
            stop_one(p, i);
            continue;
        }
        kill_one(p, i);
        start(p, i);
    }
}

static void one_round(struct plan_of_run *plan, struct rng *rng, struct rig *rig)
{
    struct url_store store;
    struct pool p = { .laws = &plan->laws,
                      .dir = rig->dir,
                      .url = store.watched_url,
                      .pause_us = 1 + plan->pause_ms * 1000 };
    char where[64];

    (void)snprintf(where, sizeof(where), "seed %llu, round %u",
                   (unsigned long long)plan->seed, ++plan->rounds);
    plan->laws.where = where;
    url_store_name(&store, plan->kind, rig->dir);
    rng_init(&p.rng, rng_next(rng));
    for (unsigned i = 0; i < NOTE_WORKERS; i++)
        start(&p, i);
    torture(&p, now_us() + (int64_t)plan->round_ms * 1000);
    for (unsigned i = 0; i < NOTE_WORKERS; i++)
        kill_one(&p, i);
    if (!url_store_settle(&store))
        law_broken(p.laws, LAW_SOUND, "somebody is still there");
    int64_t begun = now_us();
    look_after(&plan->laws, rig->dir, store.watched_url);
    plan->took_us += now_us() - begun;
    url_store_drop(&store);
    plan->laws.where = NULL;
}

/* A directory; every other one in memory, where there is such. */
static void make_dir(struct rig *rig, unsigned round)
{
    const char *env = getenv("TMPDIR");
    char was[200];

    (void)snprintf(was, sizeof(was), "%s", env ? env : "");
    if (round % 2 == 0 && access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 1);
    rig_init(rig);
    (void)setenv("TMPDIR", was, 1);
}

static bool everything(const struct laws *laws)
{
    for (int i = 0; i < TALLIES; i++) {
        if (laws->tally[i] == 0)
            return false;
    }
    return true;
}

/* All rounds, before the first case says what came of them. */
static void run(struct plan_of_run *plan)
{
    int64_t begun = now_us(), us = (int64_t)plan->seconds * 1000000;
    struct rng rng;

    plan->ran = true;
    rng_init(&rng, plan->seed);
    do {
        struct rig rig;
        make_dir(&rig, plan->rounds);
        one_round(plan, &rng, &rig);
        rig_release(&rig);
    } while (now_us() < begun + us ||
             (!everything(&plan->laws) && now_us() < begun + 5 * us));
    printf("# %u rounds, %lld ms of them looking\n", plan->rounds,
           (long long)plan->took_us / 1000);
    for (int i = 0; i < TALLIES; i++)
        printf("# %8llu %s\n", (unsigned long long)plan->laws.tally[i], tally_names[i]);
}

/* --- cases --- */

static void law(struct tap *t, enum law which)
{
    struct plan_of_run *plan = t->arg;

    if (!plan->ran)
        run(plan);
    printf("# %llu looked at\n", (unsigned long long)plan->laws.looked[which]);
    TAP_EQ(t, plan->laws.wrong[which], 0);
    TAP_OK(t, plan->laws.looked[which] > 0);
}

static void everything_happened(struct tap *t)
{
    struct plan_of_run *plan = t->arg;

    if (!plan->ran)
        run(plan);
    for (int i = 0; i < TALLIES; i++) {
        if (!TAP_OK(t, plan->laws.tally[i] > 0))
            printf("# none: %s\n", tally_names[i]);
    }
}

/* clang-format off */
static void law_0(struct tap *t) { law(t, (enum law)0); }
static void law_1(struct tap *t) { law(t, (enum law)1); }
static void law_2(struct tap *t) { law(t, (enum law)2); }
static void law_3(struct tap *t) { law(t, (enum law)3); }
static void law_4(struct tap *t) { law(t, (enum law)4); }
static void law_5(struct tap *t) { law(t, (enum law)5); }
static void law_6(struct tap *t) { law(t, (enum law)6); }
static void law_7(struct tap *t) { law(t, (enum law)7); }
static void law_8(struct tap *t) { law(t, (enum law)8); }
static void law_9(struct tap *t) { law(t, (enum law)9); }
static void law_10(struct tap *t) { law(t, (enum law)10); }
static void law_11(struct tap *t) { law(t, (enum law)11); }
static void law_12(struct tap *t) { law(t, (enum law)12); }
static void law_13(struct tap *t) { law(t, (enum law)13); }
static void law_14(struct tap *t) { law(t, (enum law)14); }
/* clang-format on */

static int run_cases(struct plan_of_run *plan, int argc, char **argv)
{
    static void (*const of[LAWS])(
        struct tap *) = { law_0, law_1, law_2,  law_3,  law_4,  law_5,  law_6, law_7,
                          law_8, law_9, law_10, law_11, law_12, law_13, law_14 };
    struct tap_case cases[LAWS + 1];

    for (int i = 0; i < LAWS; i++)
        cases[i] = (struct tap_case){ law_names[i], of[i] };
    cases[LAWS] = (struct tap_case){ "sessions: everything happened that this is about",
                                     everything_happened };
    return tap_main(cases, COUNT_OF(cases), plan, argc, argv);
}

/* --store NAME, which is taken out. */
static const struct url_kind *option_store(int *argc, char **argv)
{
    const char *name = "sqlite";

    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], "--store") != 0)
            continue;
        name = argv[i + 1];
        memmove(&argv[i], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof(*argv));
        *argc -= 2;
        break;
    }
    return url_kind_find(name);
}

int main(int argc, char **argv)
{
    const char *env = getenv("BELAY_CRASH_SECONDS");

    if (argc == 8 && strcmp(argv[1], "--worker") == 0) {
        struct worker_plan worker = { .dir = argv[2],
                                      .number = (unsigned)strtoul(argv[3], NULL, 10),
                                      .life = (unsigned)strtoul(argv[4], NULL, 10),
                                      .seed = strtoull(argv[5], NULL, 10),
                                      .parent = (pid_t)strtol(argv[6], NULL, 10),
                                      .url = argv[7] };
        session_worker(&worker);
    }
    struct plan_of_run plan = {
        .seconds =
            option_u64(&argc, argv, "--seconds", env ? strtoull(env, NULL, 10) : 8),
        .seed = option_u64(&argc, argv, "--seed", 1),
        .round_ms = option_u64(&argc, argv, "--round", 2000),
        .pause_ms = option_u64(&argc, argv, "--pause", 30),
        .kind = option_store(&argc, argv),
    };

    if (!plan.kind) {
        printf("Bail out! there is no such store\n");
        return 2;
    }
    printf("# seed %llu\n", (unsigned long long)plan.seed);
    return run_cases(&plan, argc, argv);
}
