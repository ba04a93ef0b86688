/* Many threads and many processes on one file.
 *
 *     test_sharing [--ms N] [case]
 *
 * Whoever gets an error here, busy or any other, fails the case.  The longest wait for
 * one transaction and the smallest share of the work are printed.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger.h"

#define CROWD 16
#define PROCESSES 4
#define THREADS 2
#define ROUNDS 120
#define LONGEST_US ((int64_t)5 * 1000000)

/* What one thread, or one process, did. */
struct work {
    int64_t added;
    int64_t longest_us;
    unsigned failed;
    uint8_t won[ROUNDS];
    char text[200];
};

/* --- the transactions --- */

struct call {
    const char *id;
    int64_t me;
    bool won;
};

static belay_rc insert_thing(struct txn *t, const char *id, int64_t n)
{
    struct value v[THING_COLUMNS] = { [THING_ID] = value_str(id),
                                      [THING_N] = value_i64(n),
                                      [THING_COUNT] = value_i64(0),
                                      [THING_HIGH] = value_i64(0) };

    return txn_insert(t, &row_thing, v);
}

static belay_rc get_thing(struct txn *t, const char *id, const struct row **out)
{
    struct value key = value_str(id);

    return txn_get(t, &row_thing, &key, out);
}

static belay_rc increment(struct txn *t, void *arg)
{
    const struct call *c = arg;
    struct value key = value_str(c->id);
    const struct row *row;
    belay_rc rc = get_thing(t, c->id, &row);

    if (rc || !row)
        return rc ? rc : insert_thing(t, c->id, 1);
    struct change change = { THING_N, value_i64(row_i64(row, THING_N, 0) + 1) };
    return txn_put(t, &row_thing, &key, &change, 1);
}

static belay_rc claim(struct txn *t, void *arg)
{
    struct call *c = arg;
    const struct row *row;
    belay_rc rc = get_thing(t, c->id, &row);

    c->won = !rc && !row;
    return c->won ? insert_thing(t, c->id, c->me) : rc;
}

struct found {
    const char *id;
    int64_t n;
};

static belay_rc find(struct txn *t, void *arg)
{
    struct found *f = arg;
    const struct row *row;
    belay_rc rc = get_thing(t, f->id, &row);

    f->n = !rc && row ? row_i64(row, THING_N, -1) : -1;
    return rc;
}

static bool run(struct rig *rig, txn_body *body, void *arg, struct belay_arena *arena,
                struct work *w)
{
    struct belay_error err = { .code = 0 };
    int64_t before = now_us();

    arena_reset(arena);
    belay_rc rc = txn_run(rig->space, body, arg, NULL, arena, &err);
    int64_t took = now_us() - before;
    if (took > w->longest_us)
        w->longest_us = took;
    if (rc) {
        w->failed++;
        (void)snprintf(w->text, sizeof(w->text), "%s: %.150s",
                       belay_error_info((int)rc)->name, err.message);
    }
    return !rc;
}

/* --- a crowd on one row --- */

struct crowd {
    struct rig *rig;
    int64_t until_us;
    pthread_barrier_t barrier;
};

struct hand {
    struct crowd *crowd;
    pthread_t thread;
    unsigned number;
    struct work work;
};

static void *work_of_thread(void *arg)
{
    struct hand *h = arg;
    struct crowd *c = h->crowd;
    struct belay_arena arena = { .first = NULL };
    struct call add = { .id = "sum", .me = h->number };

    (void)pthread_barrier_wait(&c->barrier);
    for (unsigned round = 0; round < ROUNDS && !h->work.failed; round++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "round%u", round);
        struct call one = { .id = id, .me = h->number };
        if (run(c->rig, claim, &one, &arena, &h->work))
            h->work.won[round] = one.won;
    }
    while (now_us() < c->until_us && !h->work.failed)
        h->work.added += run(c->rig, increment, &add, &arena, &h->work);
    arena_release(&arena);
    return NULL;
}

static void run_crowd(struct rig *rig, unsigned n, int64_t ms, struct work *out)
{
    struct crowd c = { .rig = rig, .until_us = now_us() + ms * 1000 };
    struct hand *hands = calloc(n, sizeof(*hands));

    if (!hands || pthread_barrier_init(&c.barrier, NULL, n))
        abort();
    for (unsigned i = 0; i < n; i++) {
        hands[i] = (struct hand){ .crowd = &c, .number = i };
        if (pthread_create(&hands[i].thread, NULL, work_of_thread, &hands[i]))
            abort();
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(hands[i].thread, NULL);
        out[i] = hands[i].work;
    }
    pthread_barrier_destroy(&c.barrier);
    free(hands);
}

/* One winner each round, no increment lost, nobody forgotten. */
static void judge(struct tap *t, struct rig *rig, const struct work *works, unsigned n)
{
    int64_t sum = 0, least = INT64_MAX, most = 0, longest = 0;
    unsigned wins = 0;
    struct found f = { .id = "sum" };

    for (unsigned i = 0; i < n; i++) {
        sum += works[i].added;
        least = works[i].added < least ? works[i].added : least;
        most = works[i].added > most ? works[i].added : most;
        longest = works[i].longest_us > longest ? works[i].longest_us : longest;
        if (!TAP_EQ(t, works[i].failed, 0))
            printf("# %s\n", works[i].text);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned winners = 0;
        for (unsigned i = 0; i < n; i++)
            winners += works[i].won[round];
        wins += winners == 1;
    }
    CHECK_RC(t, rig_run(rig, find, &f), BELAY_OK);
    TAP_EQ(t, wins, ROUNDS);
    TAP_EQ(t, f.n, sum);
    TAP_OK(t, least > 0);
    TAP_OK(t, longest < LONGEST_US);
    printf("# %u at once: %lld increments, shares %lld to %lld, longest wait %lld ms\n",
           n, (long long)sum, (long long)least, (long long)most,
           (long long)longest / 1000);
}

static void threads_share(struct tap *t)
{
    struct rig rig;
    struct work *works = calloc(8, sizeof(*works));

    if (!works)
        abort();
    rig_init(&rig);
    if (CHECK_RC(t, rig_open(&rig), BELAY_OK)) {
        run_crowd(&rig, 8, *(const int64_t *)t->arg, works);
        judge(t, &rig, works, 8);
    }
    rig_release(&rig);
    free(works);
}

/* --- processes --- */

static void tell(int out, const void *what, size_t len)
{
    const char *at = what;

    while (len > 0) {
        ssize_t n = write(out, at, len);
        if (n <= 0)
            _exit(3);
        at += n;
        len -= (size_t)n;
    }
}

static bool listen_to(int in, void *what, size_t len)
{
    char *at = what;

    while (len > 0) {
        ssize_t n = read(in, at, len);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static void process_main(struct rig *rig, int64_t ms, int out)
{
    struct work works[THREADS];

    memset(works, 0, sizeof(works));
    atomic_store(&rig->random.state, (uint64_t)getpid() * 7919);
    if (rig_open(rig)) {
        works[0].failed = 1;
        (void)snprintf(works[0].text, sizeof(works[0].text), "%.190s",
                       rig->err.message);
    } else {
        run_crowd(rig, THREADS, ms, works);
        rig_close(rig);
    }
    tell(out, works, sizeof(works));
    _exit(0);
}

static void processes_share(struct tap *t)
{
    struct rig rig;
    struct work *works = calloc((size_t)PROCESSES * THREADS, sizeof(*works));
    pid_t pid[PROCESSES];
    int pipes[PROCESSES][2];

    if (!works)
        abort();
    rig_init(&rig);
    fflush(stdout);
    for (unsigned i = 0; i < PROCESSES; i++) {
        TAP_EQ(t, pipe(pipes[i]), 0);
        pid[i] = fork();
        if (pid[i] == 0)
            process_main(&rig, *(const int64_t *)t->arg, pipes[i][1]);
        close(pipes[i][1]);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        TAP_OK(t, listen_to(pipes[i][0], &works[(size_t)i * THREADS],
                            THREADS * sizeof(*works)));
        close(pipes[i][0]);
        TAP_EQ(t, waitpid(pid[i], NULL, 0), pid[i]);
    }
    if (CHECK_RC(t, rig_open(&rig), BELAY_OK))
        judge(t, &rig, works, PROCESSES * THREADS);
    rig_release(&rig);
    free(works);
}

/* --- opening a new file at once --- */

/* The version a reader of SQLite's own sees the moment the store is open. */
static int64_t version_of(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t version = -1;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
        (void)sqlite3_busy_timeout(db, 5000);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
        if (!sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) &&
            sqlite3_step(st) == SQLITE_ROW)
            version = sqlite3_column_int64(st, 0);
        (void)sqlite3_finalize(st);
    }
    (void)sqlite3_close(db);
    return version;
}

/* Opens, looks, adds one, closes. */
static void open_one(struct rig *rig, struct work *w)
{
    struct call add = { .id = "sum" };

    if (rig_open(rig)) {
        w->failed = 1;
        (void)snprintf(w->text, sizeof(w->text), "open: %.150s", rig->err.message);
        return;
    }
    int64_t version = version_of(rig->path);
    if (version < 1) {
        w->failed++;
        (void)snprintf(w->text, sizeof(w->text), "version %lld", (long long)version);
    }
    w->added += run(rig, increment, &add, &rig->arena, w);
    rig_close(rig);
    arena_release(&rig->arena);
}

struct opener {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct rig rig;
    struct work work;
};

static void *open_in_thread(void *arg)
{
    struct opener *o = arg;

    (void)pthread_barrier_wait(o->barrier);
    open_one(&o->rig, &o->work);
    return NULL;
}

static void judge_openers(struct tap *t, struct rig *rig, const struct work *works)
{
    struct found f = { .id = "sum" };

    for (unsigned i = 0; i < CROWD; i++) {
        if (!TAP_EQ(t, works[i].failed, 0))
            printf("# %s\n", works[i].text);
    }
    if (CHECK_RC(t, rig_open(rig), BELAY_OK)) {
        CHECK_RC(t, rig_run(rig, find, &f), BELAY_OK);
        TAP_EQ(t, f.n, CROWD);
    }
}

static void threads_open(struct tap *t)
{
    struct rig rig;
    struct work *works = calloc(CROWD, sizeof(*works));
    struct opener *openers = calloc(CROWD, sizeof(*openers));
    pthread_barrier_t barrier;

    if (!works || !openers || pthread_barrier_init(&barrier, NULL, CROWD))
        abort();
    rig_init(&rig);
    for (unsigned i = 0; i < CROWD; i++) {
        openers[i].rig = rig;
        openers[i].barrier = &barrier;
        atomic_store(&openers[i].rig.random.state, (uint64_t)i * 7919);
        if (pthread_create(&openers[i].thread, NULL, open_in_thread, &openers[i]))
            abort();
    }
    for (unsigned i = 0; i < CROWD; i++) {
        pthread_join(openers[i].thread, NULL);
        works[i] = openers[i].work;
    }
    judge_openers(t, &rig, works);
    pthread_barrier_destroy(&barrier);
    rig_release(&rig);
    free(openers);
    free(works);
}

static void processes_open(struct tap *t)
{
    struct rig rig;
    struct work *works = calloc(CROWD, sizeof(*works));
    pid_t pid[CROWD];
    int gate[2], out[CROWD][2];

    if (!works || pipe(gate))
        abort();
    rig_init(&rig);
    fflush(stdout);
    for (unsigned i = 0; i < CROWD; i++) {
        TAP_EQ(t, pipe(out[i]), 0);
        pid[i] = fork();
        if (pid[i] == 0) {
            char c;
            close(gate[1]);
            atomic_store(&rig.random.state, (uint64_t)getpid() * 7919);
            (void)!read(gate[0], &c, 1); /* its end lets all go */
            open_one(&rig, &works[i]);
            tell(out[i][1], &works[i], sizeof(works[i]));
            _exit(0);
        }
        close(out[i][1]);
    }
    close(gate[0]);
    close(gate[1]);
    for (unsigned i = 0; i < CROWD; i++) {
        TAP_OK(t, listen_to(out[i][0], &works[i], sizeof(works[i])));
        close(out[i][0]);
        TAP_EQ(t, waitpid(pid[i], NULL, 0), pid[i]);
    }
    judge_openers(t, &rig, works);
    rig_release(&rig);
    free(works);
}

static const struct tap_case cases[] = {
    { "threads: one winner, no update lost, no busy error, nobody starves",
      threads_share },
    { "processes: one winner, no update lost, no busy error, nobody starves",
      processes_share },
    { "threads: sixteen open a new file at once", threads_open },
    { "processes: sixteen open a new file at once", processes_open },
};

int main(int argc, char **argv)
{
    int64_t ms = (int64_t)option_u64(&argc, argv, "--ms", 2000);

    return tap_main(cases, COUNT_OF(cases), &ms, argc, argv);
}
