/* C1: many members contend for a few subjects, and the history of it is judged (history.h).
 *
 * BELAY_FLEET_TRIES is how many tries there are in all, 10^6 unless said. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleetlib.h"
#include "history.h"
#include "tap.h"

#define WORKERS 4

static uint32_t tries_wanted(void)
{
    const char *text = getenv("BELAY_FLEET_TRIES");
    unsigned long n = text ? strtoul(text, NULL, 10) : 0;

    return n == 0 ? 1000000 : n > 100000000 ? 100000000 : (uint32_t)n;
}

/* Memory that children share. */
static void *shared(size_t len)
{
    void *p =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static bool workers_make(struct worker *out[WORKERS], uint32_t tries)
{
    uint64_t *witness = shared(HISTORY_SUBJECTS * sizeof(*witness));

    for (uint32_t i = 0; i < WORKERS; i++) {
        out[i] = shared(sizeof(*out[i]));
        if (!witness || !out[i])
            return false;
        *out[i] = (struct worker){
            .number = i, .tries = tries / WORKERS, .seed = i + 1, .witness = witness
        };
        out[i]->history.max = out[i]->tries;
        out[i]->history.events = shared(out[i]->tries * sizeof(struct event));
        if (!out[i]->history.events)
            return false;
    }
    return true;
}

static void workers_free(struct worker *w[WORKERS])
{
    (void)munmap(w[0]->witness, HISTORY_SUBJECTS * sizeof(uint64_t));
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)munmap(w[i]->history.events, w[i]->tries * sizeof(struct event));
        (void)munmap(w[i], sizeof(*w[i]));
    }
}

static void judge(struct tap *t, struct worker *w[WORKERS])
{
    struct verdict v;

    for (uint32_t i = 0; i < WORKERS; i++) {
        TAP_EQ(t, w[i]->overlaps, 0);
        TAP_EQ(t, w[i]->failures, 0);
        TAP_EQ(t, w[i]->history.n, w[i]->tries);
    }
    if (!TAP_OK(t, history_judge(w, WORKERS, &v)))
        return;
    if (!TAP_OK(t, v.is_good))
        printf("# %s\n", v.text);
    printf("# %llu tenures, %llu yields, %llu of them pending\n",
           (unsigned long long)v.tenures, (unsigned long long)v.yields,
           (unsigned long long)v.pending);
    TAP_OK(t, v.tenures > 100 && v.yields > 0);
}

static void test_processes(struct tap *t)
{
    const struct room *room = t->arg;
    struct worker *w[WORKERS];
    pid_t children[WORKERS];

    if (!TAP_OK(t, workers_make(w, tries_wanted())))
        return;
    for (uint32_t i = 0; i < WORKERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct belay_fleet *f = room_join(room, "processes", 0);
            if (!f)
                _exit(3);
            worker_run(w[i], f);
            belay_fleet_leave(f);
            _exit(0);
        }
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        TAP_EQ(t, reap(children[i], 0), 0);
    judge(t, w);
    workers_free(w);
}

struct thread {
    pthread_t id;
    struct worker *w;
    struct belay_fleet *f;
};

static void *thread_main(void *arg)
{
    struct thread *me = arg;

    worker_run(me->w, me->f);
    return NULL;
}

static void test_threads(struct tap *t)
{
    const struct room *room = t->arg;
    struct worker *w[WORKERS];
    struct thread threads[WORKERS];
    struct belay_fleet *f = room_join(room, "threads", 0);
    struct belay_error err;

    if (!TAP_OK(t, f && workers_make(w, tries_wanted() / 4)))
        return;
    for (uint32_t i = 0; i < WORKERS; i++) {
        threads[i].w = w[i];
        TAP_EQ(t, belay_fleet_join_beside(f, NULL, &threads[i].f, &err), BELAY_OK);
        TAP_EQ(t, pthread_create(&threads[i].id, NULL, thread_main, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        TAP_EQ(t, pthread_join(threads[i].id, NULL), 0);
        belay_fleet_leave(threads[i].f);
    }
    belay_fleet_leave(f);
    judge(t, w);
    workers_free(w);
}

/* Threads of one member: the handle's own lock is in the play. */
static void test_one_member(struct tap *t)
{
    const struct room *room = t->arg;
    struct worker *w[WORKERS];
    struct thread threads[WORKERS];
    struct belay_fleet *f = room_join(room, "one-member", 0);

    if (!TAP_OK(t, f && workers_make(w, tries_wanted() / 8)))
        return;
    for (uint32_t i = 0; i < WORKERS; i++) {
        threads[i] = (struct thread){ .w = w[i], .f = f };
        TAP_EQ(t, pthread_create(&threads[i].id, NULL, thread_main, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        TAP_EQ(t, pthread_join(threads[i].id, NULL), 0);
    belay_fleet_leave(f);
    judge(t, w);
    workers_free(w);
}

/* The judge itself: histories that are wrong, one in each way. */
static void test_judge(struct tap *t)
{
    /* clang-format off */
    static const struct event good[] = {
        { EVENT_TENURE, 0, false, 5, 10, 11, 20, 21 }, { EVENT_TENURE, 0, false, 7, 20, 22, 30, 31 },
        { EVENT_YIELD, 0, false, 5, 12, 13, 0, 0 }, { EVENT_YIELD, 0, true, 6, 12, 13, 0, 0 },
    };
    static const struct event bad[][4] = {
        { { EVENT_TENURE, 0, false, 5, 10, 11, 20, 21 }, { EVENT_TENURE, 0, false, 7, 12, 15, 30, 31 } },
        { { EVENT_TENURE, 0, false, 7, 10, 11, 20, 21 }, { EVENT_TENURE, 0, false, 5, 20, 22, 30, 31 } },
        { { EVENT_TENURE, 0, false, 5, 10, 11, 20, 21 }, { EVENT_YIELD, 0, false, 5, 25, 26, 0, 0 } },
        { { EVENT_TENURE, 0, false, 5, 10, 11, 20, 21 }, { EVENT_YIELD, 0, false, 6, 12, 13, 0, 0 } },
        { { EVENT_TENURE, 0, false, 5, 10, 11, 20, 21 }, { EVENT_YIELD, 0, true, 5, 25, 26, 0, 0 } },
        { { EVENT_TENURE, 0, false, 5, 10, 11, 20, 21 }, { EVENT_TENURE, 0, false, 5, 20, 22, 30, 31 } },
    };
    /* clang-format on */
    struct event events[4];
    struct worker one = { .history = { .events = events } };
    struct worker *const w[1] = { &one };
    struct verdict v;

    memcpy(events, good, sizeof(good));
    one.history.n = 4;
    TAP_OK(t, history_judge(w, 1, &v) && v.is_good && v.tenures == 2 && v.yields == 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(events, bad[i], sizeof(bad[i]));
        TAP_OK(t, history_judge(w, 1, &v) && !v.is_good);
    }
}

static const struct tap_case cases[] = {
    { "a history that is wrong is found to be", test_judge },
    { "processes: tenures do not overlap, tokens rise, yields name who held",
      test_processes },
    { "threads as members: the same", test_threads },
    { "threads of one member: the same", test_one_member },
};

int main(int argc, char **argv)
{
    struct room room = { .dir = "" };

    if (!room_init(&room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &room, argc, argv);
    room_release(&room);
    return code;
}
