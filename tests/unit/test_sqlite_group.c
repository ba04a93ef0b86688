/* Group commit: who shares a turn, who is hurt by whom, who may leave the queue. */
#include <stdlib.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/drivers/sqlite/impl.h"
#include "store/txn.h"
#include "tap.h"
#include "things.h"

/* A statfs that says what a case wants (the program is linked with --wrap=statfs64). */
static long fs_magic;
int __real_statfs64(const char *path, struct statfs *out);
int __wrap_statfs64(const char *path, struct statfs *out);
int __wrap_statfs64(const char *path, struct statfs *out)
{
    int rc = __real_statfs64(path, out);

    if (fs_magic)
        out->f_type = fs_magic;
    return rc;
}

struct place {
    char dir[128], path[192];
    struct driver *driver;
    struct store *store;
    struct space *space;
    struct belay_error err;
};

static bool place_connect(struct tap *t, struct place *p)
{
    struct driver_config config = { &schema_things, clock_system(), random_system() };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = config.random };
    belay_rc rc = sqlite_open(&p->driver, p->path, &config, &p->err);

    if (!rc)
        rc = store_open(&p->store, p->driver, &options, &p->err);
    if (!rc)
        rc = store_space(p->store, bytes_str("default"), &p->space, &p->err);
    return rc ? TAP_STR(t, p->err.message, "") : true;
}

/* A folder and a name for the file; nothing is opened yet. */
static bool place_make(struct tap *t, struct place *p)
{
    const char *base = getenv("TMPDIR");

    *p = (struct place){ .driver = NULL };
    (void)snprintf(p->dir, sizeof(p->dir), "%s/belay-XXXXXX",
                   base && *base ? base : "/tmp");
    if (!TAP_OK(t, mkdtemp(p->dir) != NULL))
        return false;
    (void)snprintf(p->path, sizeof(p->path), "%s/a.db", p->dir);
    return true;
}

static bool place_open(struct tap *t, struct place *p)
{
    return place_make(t, p) && place_connect(t, p);
}

static void place_close(struct place *p)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-belay", "-wake" };
    char path[256];

    store_close(p->store);
    driver_close(p->driver);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", p->path, ends[i]);
        (void)unlink(path);
    }
    (void)rmdir(p->dir);
}

static struct sqlite_store *inside(struct place *p)
{
    return (struct sqlite_store *)p->driver;
}

static size_t queued(struct place *p)
{
    struct group *g = &inside(p)->group;
    size_t n = 0;

    pthread_mutex_lock(&g->mutex);
    for (struct member *m = g->first; m; m = m->next)
        n++;
    pthread_mutex_unlock(&g->mutex);
    return n;
}

/* --- a crowd behind a leader that waits --- */

struct gate {
    atomic_bool entered, open;
};

/* A body that holds its turn until the gate opens. */
static belay_rc wait_at_gate(struct txn *t, void *arg)
{
    struct belay_clock clock = clock_system();
    struct gate *g = arg;

    (void)t;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open))
        clock.sleep_us(clock.arg, 200);
    return BELAY_OK;
}

struct caller {
    struct place *p;
    txn_body *body;
    void *arg;
    struct txn_options options;
    pthread_t thread;
    belay_rc rc;
};

static void *call(void *arg)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct caller *c = arg;

    c->rc = txn_run(c->p->space, c->body, c->arg, &c->options, &arena, NULL);
    return NULL;
}

static void start(struct tap *t, struct caller *c)
{
    TAP_EQ(t, pthread_create(&c->thread, NULL, call, c), 0);
}

/* Starts a leader that waits at the gate, then n callers that queue behind it. */
static void queue_up(struct tap *t, struct place *p, struct gate *g,
                     struct caller *leader, struct caller *callers, size_t n)
{
    struct belay_clock clock = clock_system();

    *leader = (struct caller){ .p = p, .body = wait_at_gate, .arg = g };
    start(t, leader);
    while (!atomic_load(&g->entered))
        clock.sleep_us(clock.arg, 200);
    for (size_t i = 0; i < n; i++) {
        callers[i].p = p;
        start(t, &callers[i]);
        while (queued(p) <
               i + 1) /* one after the other, so that their order is known */
            clock.sleep_us(clock.arg, 100);
    }
}

static void finish(struct gate *g, struct caller *leader, struct caller *callers,
                   size_t n)
{
    atomic_store(&g->open, true);
    (void)pthread_join(leader->thread, NULL);
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(callers[i].thread, NULL);
}

/* What a body does, and how often it ran. */
struct deed {
    char id[16];
    unsigned runs;
    size_t payload; /* bytes to write besides */
    bool fails;
};

static belay_rc do_deed(struct txn *t, void *arg)
{
    static const char zeroes[1 << 20];
    struct deed *d = arg;
    struct value v[THING_COLUMNS] = { [THING_ID] = value_str(d->id),
                                      [THING_BYTES] =
                                          value_bytes(bytes_of(zeroes, d->payload)) };

    d->runs++;
    belay_rc rc = txn_insert(t, &row_thing, v);
    if (!rc && d->fails)
        rc = txn_fail(t, BELAY_WRONG_STATE, "", "on purpose");
    return rc;
}

static belay_rc exists_body(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    const struct row *row = NULL;
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    return rc ? rc : row ? BELAY_OK : txn_fail(t, BELAY_NOT_FOUND, "", "no such thing");
}

static bool is_there(struct place *p, struct deed *d)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };

    return txn_run(p->space, exists_body, d->id, &read_only, &arena, NULL) == BELAY_OK;
}

static int count_commits(void *arg)
{
    ++*(unsigned *)arg;
    return 0;
}

/* --- cases --- */

#define CROWD 20

static void many_share_one_commit(struct tap *t)
{
    struct place p;
    struct gate g = { false, false };
    struct caller leader, callers[CROWD];
    struct deed deeds[CROWD];
    unsigned commits = 0;

    if (!place_open(t, &p))
        return;
    for (size_t i = 0; i < CROWD; i++) {
        deeds[i] = (struct deed){ .fails = i == 7 };
        (void)snprintf(deeds[i].id, sizeof(deeds[i].id), "d%zu", i);
        callers[i] = (struct caller){ .body = do_deed, .arg = &deeds[i] };
    }
    /* The namespace is created first, so that only the crowd's commits are counted. */
    struct deed first = { .id = "first" };
    struct caller founder = { .p = &p, .body = do_deed, .arg = &first };
    (void)call(&founder);
    (void)sqlite3_commit_hook(inside(&p)->writer->db, count_commits, &commits);
    queue_up(t, &p, &g, &leader, callers, CROWD);
    finish(&g, &leader, callers, CROWD);
    TAP_OK(t, commits <= 2); /* the leader's turn wrote nothing; theirs is one */
    for (size_t i = 0; i < CROWD; i++) {
        TAP_EQ(t, callers[i].rc, deeds[i].fails ? BELAY_WRONG_STATE : BELAY_OK);
        TAP_EQ(t, is_there(&p, &deeds[i]), !deeds[i].fails);
        TAP_EQ(t, deeds[i].runs, 1);
    }
    (void)sqlite3_commit_hook(inside(&p)->writer->db, NULL, NULL);
    place_close(&p);
}

/* A plan that lies: it inserts a row that is there, and guards nothing.  Applying it is an
 * error of the database, in the middle of a turn. */
static void *commit_a_lie(void *arg)
{
    struct caller *c = arg;
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct value v[THING_COLUMNS] = { [THING_ID] = value_str("first") };
    struct effect e = { .kind = EFFECT_INSERT, .row = { .ver = 7, .v = v } };
    struct effect_result result = { .known = false };
    struct plan plan = { .ns = bytes_str("default"), .effects = &e, .n_effects = 1 };
    struct plan_result out = { .effects = &result };
    void *attempt = arena_zalloc(&arena, 1, c->p->driver->attempt_size);

    if (attempt && !row_ref_make(&e.row.ref, &row_thing, v, &arena, NULL) &&
        !driver_begin(c->p->driver, attempt, plan.ns, NULL)) {
        c->rc = driver_commit(c->p->driver, attempt, &plan, &out, NULL);
        driver_end(c->p->driver, attempt);
    }
    return NULL;
}

static void who_cannot_be_applied_hurts_nobody(struct tap *t)
{
    struct belay_clock clock = clock_system();
    struct place p;
    struct gate g = { false, false };
    struct deed deeds[] = { { .id = "before" }, { .id = "after" } };
    struct deed first = { .id = "first" };
    struct caller leader, callers[2], liar;

    if (!place_open(t, &p))
        return;
    struct caller founder = { .p = &p, .body = do_deed, .arg = &first };
    (void)call(&founder);
    callers[0] = (struct caller){ .body = do_deed, .arg = &deeds[0] };
    callers[1] = (struct caller){ .p = &p, .body = do_deed, .arg = &deeds[1] };
    queue_up(t, &p, &g, &leader, callers, 1);
    liar = (struct caller){ .p = &p };
    TAP_EQ(t, pthread_create(&liar.thread, NULL, commit_a_lie, &liar), 0);
    while (queued(&p) < 2)
        clock.sleep_us(clock.arg, 100);
    start(t, &callers[1]);
    while (queued(&p) < 3)
        clock.sleep_us(clock.arg, 100);
    finish(&g, &leader, callers, 2);
    (void)pthread_join(liar.thread, NULL);
    TAP_OK(t, liar.rc != BELAY_OK);
    for (size_t i = 0; i < 2; i++) {
        TAP_EQ(t, callers[i].rc, BELAY_OK);
        TAP_OK(t, is_there(&p, &deeds[i]));
    }
    TAP_EQ(t, deeds[0].runs, 2); /* taken back with the group, then run alone */
    TAP_OK(t, !atomic_load(&inside(&p)->poisoned));
    place_close(&p);
}

static void a_queued_call_can_leave(struct tap *t)
{
    struct belay_clock clock = clock_system();
    struct place p;
    struct gate g = { false, false };
    struct deed deeds[] = { { .id = "late" },
                            { .id = "cancelled" },
                            { .id = "stays" } };
    struct caller leader, callers[3];
    struct belay_cancel *cancel = NULL;

    if (!place_open(t, &p) || belay_cancel_new(&cancel, NULL))
        return;
    for (size_t i = 0; i < 3; i++)
        callers[i] = (struct caller){ .body = do_deed, .arg = &deeds[i] };
    callers[0].options.deadline_us = clock.mono_us(clock.arg) + 150000;
    callers[1].options.cancel = cancel;
    queue_up(t, &p, &g, &leader, callers, 3);
    belay_cancel_trigger(cancel);
    /* Both leave while the leader still holds its turn. */
    (void)pthread_join(callers[0].thread, NULL);
    (void)pthread_join(callers[1].thread, NULL);
    TAP_EQ(t, callers[0].rc, BELAY_TIMEOUT);
    TAP_EQ(t, callers[1].rc, BELAY_CANCELLED);
    TAP_EQ(t, queued(&p), 1);
    finish(&g, &leader, &callers[2], 1);
    TAP_EQ(t, callers[2].rc, BELAY_OK);
    TAP_EQ(t, deeds[0].runs + deeds[1].runs, 0);
    TAP_OK(t, !is_there(&p, &deeds[0]) && !is_there(&p, &deeds[1]));
    TAP_OK(t, is_there(&p, &deeds[2]));
    belay_cancel_free(cancel);
    place_close(&p);
}

/* Triggers its own cancel in the middle of its run. */
static belay_rc cancel_itself(struct txn *t, void *arg)
{
    struct deed d = { .id = "itself" };

    belay_cancel_trigger(arg);
    return do_deed(t, &d);
}

static void a_running_call_is_answered(struct tap *t)
{
    struct place p;
    struct belay_cancel *cancel = NULL;
    struct deed d = { .id = "itself" };

    if (!place_open(t, &p) || belay_cancel_new(&cancel, NULL))
        return;
    struct caller c = {
        .p = &p, .body = cancel_itself, .arg = cancel, .options = { .cancel = cancel }
    };
    (void)call(&c);
    /* Cancelled before its commit, so nothing of it is there: one or the other, never a
     * commit that was called cancelled. */
    TAP_EQ(t, c.rc, BELAY_CANCELLED);
    TAP_OK(t, !is_there(&p, &d));
    belay_cancel_free(cancel);
    place_close(&p);
}

static void groups_are_bounded(struct tap *t)
{
    struct place p;
    struct gate g = { false, false };
    struct caller leader, callers[10];
    struct deed deeds[10];
    struct deed first = { .id = "first" };
    unsigned commits = 0;

    if (!place_open(t, &p))
        return;
    struct caller founder = { .p = &p, .body = do_deed, .arg = &first };
    (void)call(&founder);
    for (size_t i = 0; i < 10; i++) { /* 10 MiB together: at least three groups */
        deeds[i] = (struct deed){ .payload = 1 << 20 };
        (void)snprintf(deeds[i].id, sizeof(deeds[i].id), "d%zu", i);
        callers[i] = (struct caller){ .body = do_deed, .arg = &deeds[i] };
    }
    (void)sqlite3_commit_hook(inside(&p)->writer->db, count_commits, &commits);
    queue_up(t, &p, &g, &leader, callers, 10);
    finish(&g, &leader, callers, 10);
    TAP_OK(t, commits >= 3 && commits <= 5);
    for (size_t i = 0; i < 10; i++) {
        TAP_EQ(t, callers[i].rc, BELAY_OK);
        TAP_EQ(t, deeds[i].runs, 1);
        TAP_OK(t, is_there(&p, &deeds[i]));
    }
    (void)sqlite3_commit_hook(inside(&p)->writer->db, NULL, NULL);
    place_close(&p);
}

static void connections_are_hardened(struct tap *t)
{
    static const char *const denied[] = {
        "ATTACH ':memory:' AS other", "PRAGMA journal_mode = DELETE",
        "CREATE TABLE x (a)", "DROP TABLE belay_thing", "VACUUM INTO 'elsewhere'"
    };
    struct place p;
    struct conn *reader = NULL;
    int value = -1;

    if (!place_open(t, &p) ||
        !TAP_EQ(t, reader_take(inside(&p), &reader, NULL), BELAY_OK))
        return;
    sqlite3 *const dbs[] = { inside(&p)->writer->db, reader->db };
    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < COUNT_OF(denied); i++) {
            if (!TAP_OK(t,
                        sqlite3_exec(dbs[d], denied[i], NULL, NULL, NULL) != SQLITE_OK))
                printf("# allowed: %s\n", denied[i]);
        }
        (void)sqlite3_db_config(dbs[d], SQLITE_DBCONFIG_DEFENSIVE, -1, &value);
        TAP_EQ(t, value, 1);
        (void)sqlite3_db_config(dbs[d], SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1, &value);
        TAP_EQ(t, value, 0);
        (void)sqlite3_db_config(dbs[d], SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &value);
        TAP_EQ(t, value, 1);
        TAP_EQ(t, sqlite3_limit(dbs[d], SQLITE_LIMIT_ATTACHED, -1), 0);
    }
    reader_give_back(inside(&p), reader);
    place_close(&p);
}

static void network_file_systems_are_refused(struct tap *t)
{
    struct driver_config config = { &schema_things, clock_system(), random_system() };
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;
    struct place p;

    if (!place_open(t, &p))
        return;
    fs_magic = 0x6969; /* NFS */
    TAP_EQ(t, sqlite_open(&d, p.path, &config, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "network_file_system");
    fs_magic = 0;
    place_close(&p);
}

/* --- another process --- */

static belay_rc wake_body(struct txn *t, void *arg)
{
    struct deed d = { .id = "woken" };
    belay_rc rc = do_deed(t, &d);

    (void)arg;
    return rc ? rc : txn_wake(t, bytes_str("news"));
}

/* In a child: a store of its own on the same file, one commit that wakes. */
static int wake_from_outside(const struct place *p)
{
    struct tap t = { .name = "child" };
    struct place mine = *p;

    mine.driver = NULL;
    mine.store = NULL;
    if (!place_connect(&t, &mine))
        return 1;
    struct caller c = { .p = &mine, .body = wake_body };
    (void)call(&c);
    store_close(mine.store);
    driver_close(mine.driver);
    return (int)c.rc;
}

static void a_commit_elsewhere_wakes_who_listens_here(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_clock clock = clock_system();
    struct bytes topic = bytes_str("news");
    struct listener *l = NULL;
    struct place p;
    int go[2], status = -1;

    /* Forked before anything is opened, as it should be. */
    if (!TAP_EQ(t, pipe(go), 0) || !place_make(t, &p))
        return;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(go[0], &byte, 1) == 1 ? wake_from_outside(&p) : 1);
    }
    if (place_connect(t, &p) &&
        TAP_EQ(t, space_listen(p.space, &topic, 1, NULL, &arena, &l, NULL), BELAY_OK)) {
        TAP_EQ(t, write(go[1], "g", 1), 1);
        TAP_EQ(t, listener_wait(l, clock.mono_us(clock.arg) + 10000000, NULL),
               BELAY_OK);
        listener_close(l);
    }
    TAP_EQ(t, waitpid(child, &status, 0), child);
    TAP_EQ(t, status, 0);
    struct deed d = { .id = "woken" };
    TAP_OK(t, is_there(&p, &d));
    place_close(&p);
    (void)close(go[0]);
    (void)close(go[1]);
}

static const struct tap_case cases[] = {
    { "a commit in another process wakes who listens here",
      a_commit_elsewhere_wakes_who_listens_here },
    { "many share one commit, and one that fails hurts nobody", many_share_one_commit },
    { "a plan that cannot be applied hurts nobody else",
      who_cannot_be_applied_hurts_nobody },
    { "a deadline or a cancel takes a call that is queued", a_queued_call_can_leave },
    { "a cancel in the middle of a run leaves nothing half done",
      a_running_call_is_answered },
    { "groups are bounded by what they write", groups_are_bounded },
    { "connections are hardened", connections_are_hardened },
    { "a network file system is refused", network_file_systems_are_refused },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
