/* Processes that commit and are killed (promises L9, X1, X2, X3).
 *
 *     test_kills [--kills N] [--seed S] [--workers N] [case]
 *
 * Workers take steps of the ledger on one file, each from two threads, and report each
 * answer through a pipe.  One after the other is ended by SIGKILL: at a random moment,
 * or by itself at a chosen call of SQLite's to the disk or the shared memory, so while
 * it opens, inside a transaction, during a checkpoint, holding the lock, between commit
 * and answer; the others go on and a new one takes its place.  Now and then all are
 * killed at once and the file is looked at.  `--kills 100000` is the long run.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "ledger.h"
#include "testvfs.h"

#define WORKERS_MAX 16
#define THREADS 2
#define KILLS_PER_FILE 12
#define PATIENCE_US ((int64_t)10 * 1000000)

struct plan_of_run {
    uint64_t kills, seed, workers;
};

/* Where a worker ends itself: at the n-th such call. */
enum place_kind { PLACE_CALL, PLACE_ANSWER, PLACE_RANDOM };
/* clang-format off */
static const struct place {
    const char *name; enum place_kind kind; enum vfs_op op; enum vfs_part part; unsigned most;
} places[] = {
    { "at a random moment",             PLACE_RANDOM, VFS_OPS,      VFS_OTHER,   0 },
    { "writing the WAL",                PLACE_CALL,   VFS_WRITE,    VFS_WAL,     300 },
    { "syncing the WAL",                PLACE_CALL,   VFS_SYNC,     VFS_WAL,     15 },
    { "copying into the file",          PLACE_CALL,   VFS_WRITE,    VFS_DB,      40 },
    { "syncing the file",               PLACE_CALL,   VFS_SYNC,     VFS_DB,      3 },
    { "before a lock in shared memory", PLACE_CALL,   VFS_SHM_LOCK, VFS_DB,      120 },
    { "while it opens the file",        PLACE_CALL,   VFS_READ,     VFS_DB,      4 },
    { "while it recovers the WAL",      PLACE_CALL,   VFS_READ,     VFS_WAL,     30 },
    { "mapping shared memory",          PLACE_CALL,   VFS_SHM_MAP,  VFS_DB,      3 },
    { "creating: in its journal",       PLACE_CALL,   VFS_WRITE,    VFS_JOURNAL, 4 },
    { "between commit and answer",      PLACE_ANSWER, VFS_OPS,      VFS_OTHER,   20 },
};
/* clang-format on */

/* What a worker says.  The n of START is the step it found done. */
enum said { SAID_START, SAID_ANSWER, SAID_FAILED };
struct message {
    enum said said;
    unsigned slot;
    int64_t step;
    char text[200];
};

/* --- a worker --- */

struct worker_state {
    struct rig rig;
    int out;
    unsigned number;
    const struct place *place;
    atomic_uint left; /* until it ends */
    uint64_t seed;
};

static void end_here(struct worker_state *w)
{
    if (atomic_fetch_sub(&w->left, 1) == 1)
        (void)raise(SIGKILL);
}

static int watch_calls(void *arg, struct vfs_call *call)
{
    struct worker_state *w = arg;

    if (w->place->kind == PLACE_CALL && call->op == w->place->op &&
        call->part == w->place->part)
        end_here(w);
    return SQLITE_OK;
}

static void say(struct worker_state *w, struct message *m)
{
    if (write(w->out, m, sizeof(*m)) != sizeof(*m))
        _exit(3);
}

struct hand {
    struct worker_state *w;
    pthread_t thread;
    unsigned slot;
};

static void *take_steps(void *arg)
{
    struct hand *hand = arg;
    struct worker_state *w = hand->w;
    struct belay_arena arena = { .first = NULL };
    struct belay_error err;
    struct message m = { .said = SAID_START, .slot = hand->slot };
    struct ledger_step s;
    struct rng rng;

    rng_init(&rng, w->seed + hand->slot);
    belay_rc rc = ledger_last(&w->rig, hand->slot, &m.step);
    if (!rc)
        say(w, &m);
    while (!rc) {
        s = (struct ledger_step){ .slot = hand->slot,
                                  .checkpoint = rng_below(&rng, 8) == 0,
                                  .rig = &w->rig };
        arena_reset(&arena);
        rc = txn_run(w->rig.space, ledger_body, &s, NULL, &arena, &err);
        if (rc)
            break;
        if (w->place->kind == PLACE_ANSWER)
            end_here(w);
        m.said = SAID_ANSWER;
        m.step = s.step;
        say(w, &m);
    }
    m.said = SAID_FAILED;
    (void)snprintf(m.text, sizeof(m.text), "%s: %.150s",
                   belay_error_info((int)rc)->name, err.message);
    say(w, &m);
    return NULL;
}

static void worker_main(struct worker_state *w)
{
    struct hand hands[THREADS];
    struct testvfs vfs;

    testvfs_install(&vfs, NULL, watch_calls, w);
    if (rig_open(&w->rig)) {
        struct message m = { .said = SAID_FAILED };
        (void)snprintf(m.text, sizeof(m.text), "open: %.180s", w->rig.err.message);
        say(w, &m);
        _exit(2);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        hands[i] = (struct hand){ .w = w, .slot = w->number * THREADS + i };
        if (pthread_create(&hands[i].thread, NULL, take_steps, &hands[i]))
            _exit(4);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(hands[i].thread, NULL);
    _exit(0);
}

/* --- the pool --- */

struct worker {
    pid_t pid;
    int in;
    const struct place *place;
};

struct pool {
    struct tap *t;
    struct rig rig;
    struct rng rng;
    unsigned n_workers;
    struct worker workers[WORKERS_MAX];
    int64_t acked[LEDGER_SLOTS];
    bool in_flight[LEDGER_SLOTS]; /* it died with a step that may or may not be done */
    unsigned kills, missed, wrong, files;
    unsigned at[COUNT_OF(places)];
    uint64_t answers;
    int64_t longest_gap_us, last_answer_us;
};

static void complain(struct pool *p, const char *what)
{
    if (p->wrong++ < 8)
        printf("# file %u, kill %u: %s\n", p->files, p->kills, what);
}

/* A slot's next number: one more than its last answer, no other. */
static void hear(struct pool *p, const struct message *m)
{
    char text[300];

    if (m->said == SAID_FAILED) {
        (void)snprintf(text, sizeof(text), "a worker failed: %.200s", m->text);
        complain(p, text);
        return;
    }
    int64_t low = p->acked[m->slot], high = low;
    if (m->said == SAID_ANSWER)
        low = high = low + 1;
    else if (p->in_flight[m->slot])
        high = low + 1;
    if (m->step < low || m->step > high) {
        (void)snprintf(text, sizeof(text), "slot %u %s %lld, expected %lld to %lld",
                       m->slot, m->said == SAID_START ? "found" : "did",
                       (long long)m->step, (long long)low, (long long)high);
        complain(p, text);
    }
    p->acked[m->slot] = m->step;
    p->in_flight[m->slot] = true;
    if (m->said == SAID_ANSWER) {
        int64_t now = now_us();
        if (p->last_answer_us && now - p->last_answer_us > p->longest_gap_us)
            p->longest_gap_us = now - p->last_answer_us;
        p->last_answer_us = now;
        p->answers++;
    }
}

/* Everything that is in the pipe; false at its end. */
static bool drain(struct pool *p, struct worker *w, int timeout_ms)
{
    struct pollfd fd = { .fd = w->in, .events = POLLIN };
    struct message m;

    while (poll(&fd, 1, timeout_ms) == 1) {
        if (read(w->in, &m, sizeof(m)) != sizeof(m))
            return false;
        hear(p, &m);
        timeout_ms = 0;
    }
    return true;
}

static void start(struct pool *p, unsigned i, const struct place *place)
{
    struct worker *w = &p->workers[i];
    int pipes[2];

    if (pipe(pipes))
        abort();
    fflush(stdout);
    w->place = place;
    w->in = pipes[0];
    uint64_t seed = rng_next(&p->rng);
    unsigned left = place->most ? 1 + (unsigned)rng_below(&p->rng, place->most) : 0;
    w->pid = fork();
    if (w->pid == 0) {
        struct worker_state *state = calloc(1, sizeof(*state));
        if (!state)
            _exit(1);
        *state = (struct worker_state){
            .rig = p->rig, .out = pipes[1], .number = i, .place = place, .seed = seed
        };
        atomic_store(&state->left, left);
        atomic_store(&state->rig.random.state, seed);
        worker_main(state);
    }
    close(pipes[1]);
    if (w->pid < 0)
        abort();
}

/* Takes leave of a worker that has ended or will. */
static void bury(struct pool *p, unsigned i)
{
    struct worker *w = &p->workers[i];
    int status = 0;

    while (drain(p, w, -1))
        ;
    if (waitpid(w->pid, &status, 0) != w->pid || !WIFSIGNALED(status) ||
        WTERMSIG(status) != SIGKILL)
        complain(p, "a worker ended by itself");
    close(w->in);
    w->pid = 0;
    p->kills++;
    p->at[w->place - places]++;
}

/* Hears all others while it waits for one to end. */
static void listen_to_all(struct pool *p, int64_t for_us)
{
    int64_t end = now_us() + for_us;

    do {
        for (unsigned i = 0; i < p->n_workers; i++)
            (void)drain(p, &p->workers[i], 0);
        usleep(200);
    } while (now_us() < end);
}

/* A worker ends at its place, or, if it does not come there, at our hand. */
static void kill_one(struct pool *p, unsigned i)
{
    struct worker *w = &p->workers[i];
    int64_t end = now_us() + PATIENCE_US / 100;
    siginfo_t info = { .si_pid = 0 };

    if (w->place->kind != PLACE_RANDOM) {
        do {
            listen_to_all(p, 500);
            info.si_pid = 0;
        } while (waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                 info.si_pid == 0 && now_us() < end);
        p->missed += info.si_pid == 0;
        if (info.si_pid == 0)
            w->place = &places[0];
    } else {
        listen_to_all(p, (int64_t)rng_below(&p->rng, 40000));
    }
    (void)kill(w->pid, SIGKILL);
    bury(p, i);
}

/* --- afterwards --- */

static void look(struct pool *p)
{
    struct ledger sums;
    char why[200], text[128];

    if (rig_open(&p->rig)) {
        complain(p, p->rig.err.message);
        return;
    }
    if (!ledger_check(&p->rig, &sums, why))
        complain(p, why);
    for (unsigned i = 0; i < LEDGER_SLOTS; i++) {
        int64_t more = sums.steps[i] - p->acked[i];
        if (more < 0)
            complain(p, "an answer was given for what is not there");
        if (more > (p->in_flight[i] ? 1 : 0))
            complain(p, "something is there that nobody asked for");
        p->acked[i] = sums.steps[i];
        p->in_flight[i] = false;
    }
    const char *intact = rig_integrity(&p->rig, text);
    if (strcmp(intact, "ok") != 0)
        complain(p, intact);
    rig_close(&p->rig);
}

static const struct place *next_place(struct pool *p)
{
    return &places[rng_below(&p->rng, COUNT_OF(places))];
}

/* The first one creates the file: half of them die of that. */
static const struct place *first_place(struct pool *p)
{
    static const unsigned creating[] = { 1, 2, 3, 4, 9 };

    return rng_below(&p->rng, 2)
               ? &places[creating[rng_below(&p->rng, COUNT_OF(creating))]]
               : next_place(p);
}

static void one_file(struct pool *p, uint64_t kills)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "file%u.db", p->files++);
    rig_name(&p->rig, name);
    memset(p->acked, 0, sizeof(p->acked));
    memset(p->in_flight, 0, sizeof(p->in_flight));
    for (unsigned i = 0; i < LEDGER_SLOTS; i++)
        p->in_flight[i] = true; /* who is killed before it says anything has begun */
    for (unsigned i = 0; i < p->n_workers; i++)
        start(p, i, i == 0 ? first_place(p) : next_place(p));
    kill_one(p, 0);
    start(p, 0, next_place(p));
    for (unsigned n = 1; p->kills < kills && n < KILLS_PER_FILE; n++) {
        p->last_answer_us = 0;
        unsigned i = (unsigned)rng_below(&p->rng, p->n_workers);
        kill_one(p, i);
        start(p, i, next_place(p));
    }
    listen_to_all(p, 20000);
    for (unsigned i = 0; i < p->n_workers; i++)
        (void)kill(p->workers[i].pid, SIGKILL);
    for (unsigned i = 0; i < p->n_workers; i++) {
        p->workers[i].place = &places[0];
        bury(p, i);
    }
    look(p);
    look(p); /* X3 */
}

static void nothing_acknowledged_is_lost(struct tap *t)
{
    const struct plan_of_run *plan = t->arg;
    struct pool *p = calloc(1, sizeof(*p));

    if (!p)
        abort();
    p->t = t;
    p->n_workers = (unsigned)plan->workers;
    rng_init(&p->rng, plan->seed);
    rig_init(&p->rig);
    while (p->kills < plan->kills) {
        one_file(p, plan->kills);
        if (p->files % 40 == 0) { /* the directory does not grow with the run */
            rig_release(&p->rig);
            rig_init(&p->rig);
        }
    }
    printf("# %u kills on %u files, %llu answers, longest silence %lld ms\n", p->kills,
           p->files, (unsigned long long)p->answers,
           (long long)p->longest_gap_us / 1000);
    for (size_t i = 0; i < COUNT_OF(places); i++)
        printf("# %5u killed %s\n", p->at[i], places[i].name);
    TAP_EQ(t, p->wrong, 0);
    TAP_OK(t, p->answers > p->kills / 4);
    rig_release(&p->rig);
    free(p);
}

static const struct tap_case cases[] = {
    { "kills: every answer stands, nothing else is there, all adds up",
      nothing_acknowledged_is_lost },
};

int main(int argc, char **argv)
{
    struct plan_of_run plan = {
        .kills = option_u64(&argc, argv, "--kills", 300),
        .seed = option_u64(&argc, argv, "--seed", 1),
        .workers = option_u64(&argc, argv, "--workers", 3),
    };

    if (plan.workers < 1 || plan.workers > WORKERS_MAX)
        plan.workers = 3;
    printf("# seed %llu, %llu workers\n", (unsigned long long)plan.seed,
           (unsigned long long)plan.workers);
    return tap_main(cases, COUNT_OF(cases), &plan, argc, argv);
}
