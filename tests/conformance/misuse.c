/* Misuse: what a body must not do (T2, T5), and a store after fork(). */
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"

/* --- calls from a body --- */

struct inner {
    struct harness *h;
    int call;
    belay_rc got;
    char reason[32];
};

enum {
    CALL_RUN,
    CALL_SPACE,
    CALL_SYSTEM,
    CALL_NOW,
    CALL_MINT,
    CALL_LISTEN,
    CALL_PRUNE,
    CALLS
};

static belay_rc nothing(struct txn *t, void *arg)
{
    (void)t;
    (void)arg;
    return BELAY_OK;
}

static belay_rc call(struct inner *c, struct belay_arena *a, struct belay_error *err)
{
    struct harness *h = c->h;
    struct bytes topic = bytes_str("topic");
    struct space *space;
    struct listener *listener;
    char id[ID_MAX];
    int64_t now;
    size_t n;

    switch (c->call) {
    case CALL_RUN:
        return txn_run(h->space, nothing, NULL, NULL, a, err);
    case CALL_SPACE:
        return store_space(h->store, bytes_str("other"), &space, err);
    case CALL_SYSTEM:
        return store_system_space(h->store, &space, err);
    case CALL_NOW:
        return space_now(h->space, &now, err);
    case CALL_MINT:
        return space_mint(h->space, "x_", id, err);
    case CALL_LISTEN:
        return space_listen(h->space, &topic, 1, NULL, a, &listener, err);
    default:
        return space_prune_slots(h->space, 0, 1, &n, err);
    }
}

static belay_rc call_from_body(struct txn *t, void *arg)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct inner *c = arg;
    struct belay_error err = { .code = BELAY_OK };

    (void)t;
    c->got = call(c, &arena, &err);
    memcpy(c->reason, err.reason, sizeof(c->reason));
    return BELAY_OK;
}

static void no_api_in_bodies(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    for (int i = 0; i < CALLS; i++) {
        struct inner c = { .h = &h, .call = i };
        CHECK_RC(&h, harness_run(&h, call_from_body, &c), BELAY_OK);
        CHECK_RC(&h, c.got, BELAY_MISUSE);
        TAP_STR(t, c.reason, "in_body");
        /* Outside it is allowed, right after. */
        if (i != CALL_LISTEN)
            CHECK_RC(&h, call(&c, &h.arena, &h.err), BELAY_OK);
    }
}

/* --- misuse of the transaction itself --- */

static belay_rc put_unread(struct txn *t)
{
    struct value key = value_str("a");
    struct change change = { THING_N, value_i64(9) };

    return txn_put(t, &row_thing, &key, &change, 1);
}

static belay_rc put_peeked(struct txn *t)
{
    struct value key = value_str("a");
    const struct row *row;
    belay_rc rc = txn_peek(t, &row_thing, &key, &row);

    return rc ? rc : put_unread(t);
}

static belay_rc put_column(struct txn *t, unsigned column, struct value value)
{
    struct value key = value_str("a");
    struct change change = { column, value };
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    return rc ? rc : txn_put(t, &row_thing, &key, &change, 1);
}

static belay_rc put_key(struct txn *t)
{
    return put_column(t, THING_ID, value_str("b"));
}

static belay_rc put_counter(struct txn *t)
{
    return put_column(t, THING_COUNT, value_i64(1));
}

static belay_rc put_no_column(struct txn *t)
{
    return put_column(t, THING_COLUMNS, value_i64(1));
}

static belay_rc put_absent(struct txn *t)
{
    return thing_put(t, "nobody", 1);
}

static belay_rc delete_unread(struct txn *t)
{
    struct value key = value_str("a");

    return txn_delete(t, &row_thing, &key);
}

static belay_rc delete_absent(struct txn *t)
{
    struct value key = value_str("nobody");
    const struct row *row;
    belay_rc rc = thing_get(t, "nobody", &row);

    return rc ? rc : txn_delete(t, &row_thing, &key);
}

static belay_rc delete_read(struct txn *t)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    return rc ? rc : delete_unread(t);
}

static belay_rc insert_deleted(struct txn *t)
{
    belay_rc rc = delete_read(t);

    return rc ? rc : thing_insert(t, "a", 5);
}

static belay_rc put_deleted(struct txn *t)
{
    belay_rc rc = delete_read(t);

    return rc ? rc : put_unread(t);
}

static belay_rc add_deleted(struct txn *t)
{
    belay_rc rc = delete_read(t);

    return rc ? rc : thing_add(t, "a", 1);
}

static belay_rc delete_added(struct txn *t)
{
    belay_rc rc = thing_add(t, "a", 1);

    return rc ? rc : delete_read(t);
}

static belay_rc add_no_counter(struct txn *t)
{
    struct value key = value_str("a");

    return txn_add(t, &row_thing, &key, THING_N, 1, 0, 9, NULL);
}

static belay_rc raise_no_counter(struct txn *t)
{
    struct value key = value_str("a");

    return txn_raise(t, &row_thing, &key, THING_TEXT, 1);
}

static belay_rc add_between_nothing(struct txn *t)
{
    struct value key = value_str("a");

    return txn_add(t, &row_thing, &key, THING_COUNT, 1, 9, 0, NULL);
}

static belay_rc log_below_one(struct txn *t)
{
    return txn_log_append(t, bytes_str("s"), 0, bytes_str("x"));
}

static belay_rc fetch_without_key(struct txn *t)
{
    struct bytes index = bytes_str("i");
    struct fetch fetch = { .type = &row_head };
    struct scan scan = {
        .indexes = &index, .n_indexes = 1, .limit = 1, .fetch = &fetch, .n_fetch = 1
    };
    struct hits hits;

    return txn_scan(t, &scan, &hits);
}

/* clang-format off */
static const struct { const char *what; belay_rc (*run)(struct txn *t); } misuses[] = {
    { "put of a row that was not read",      put_unread },
    { "put of a row that was peeked at",     put_peeked },
    { "put of a key column",                 put_key },
    { "put of a counter",                    put_counter },
    { "put of no column",                    put_no_column },
    { "put of an absent row",                put_absent },
    { "delete of a row that was not read",   delete_unread },
    { "delete of an absent row",             delete_absent },
    { "insert of a row that was deleted",    insert_deleted },
    { "put of a row that was deleted",       put_deleted },
    { "add to a row that was deleted",       add_deleted },
    { "delete of a row that was added to",   delete_added },
    { "add to a column that is no counter",  add_no_counter },
    { "raise of a column that is no counter", raise_no_counter },
    { "add with min above max",              add_between_nothing },
    { "a log sequence below 1",              log_below_one },
    { "a fetch of rows without a key",       fetch_without_key },
};
/* clang-format on */

struct stubborn {
    size_t i;
    belay_rc got;
};

/* Goes on as if nothing had happened (T5). */
static belay_rc ignore_misuse(struct txn *t, void *arg)
{
    struct stubborn *c = arg;
    belay_rc rc = thing_insert(t, "before", 1);

    c->got = rc ? rc : misuses[c->i].run(t);
    (void)!thing_insert(t, "after", 1);
    return BELAY_OK;
}

static void misuse_fails_the_transaction(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    for (size_t i = 0; i < COUNT_OF(misuses); i++) {
        struct stubborn c = { .i = i };
        bool held = CHECK_RC(&h, harness_run(&h, ignore_misuse, &c), BELAY_MISUSE);
        held &= CHECK_RC(&h, c.got, BELAY_MISUSE);
        if (!held)
            printf("# in row: %s\n", misuses[i].what);
    }
    CLEANUP(buf_release) struct buf after = harness_dump(&h);
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after)));
    thing_set(&h, "next", 1);
}

/* A wrong argument is an answer, not misuse: a body may go on after it. */
static belay_rc go_on_after_invalid(struct txn *t, void *arg)
{
    const struct row *row;

    if (thing_get(t, "", &row) != BELAY_INVALID)
        return BELAY_CORRUPT;
    return thing_insert(t, arg, 1);
}

static void invalid_is_an_answer(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, go_on_after_invalid, (void *)(uintptr_t) "a"),
             BELAY_OK);
    TAP_EQ(t, thing_n(&h, "a"), 1);
}

/* --- read-only --- */

static belay_rc only_read(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    *(int64_t *)arg = !rc && row ? row->v[THING_N].i : INT64_MIN;
    return rc;
}

static belay_rc write_all_the_same(struct txn *t, void *arg)
{
    (void)arg;
    return thing_insert(t, "b", 1);
}

static belay_rc add_all_the_same(struct txn *t, void *arg)
{
    (void)arg;
    return thing_add(t, "a", 1);
}

static void read_only_bodies_write_nothing(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct txn_options options = { .read_only = true };
    int64_t n = 0;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 4);
    arena_reset(&h.arena);
    CHECK_RC(&h, txn_run(h.space, only_read, &n, &options, &h.arena, &h.err), BELAY_OK);
    TAP_EQ(t, n, 4);
    CHECK_RC(&h, txn_run(h.space, write_all_the_same, NULL, &options, &h.arena, &h.err),
             BELAY_MISUSE);
    CHECK_RC(&h, txn_run(h.space, add_all_the_same, NULL, &options, &h.arena, &h.err),
             BELAY_MISUSE);
    TAP_EQ(t, thing_n(&h, "b"), INT64_MIN);
    TAP_EQ(t, thing_count(&h, "a"), 0);
}

/* --- fork --- */

/* The number of calls that are not misuse in a child. */
static int child(struct harness *h)
{
    int wrong = 0;

    for (int i = 0; i < CALLS; i++) {
        struct belay_arena arena = { .first = NULL };
        struct belay_error err = { .code = BELAY_OK };
        struct inner c = { .h = h, .call = i };
        wrong +=
            call(&c, &arena, &err) != BELAY_MISUSE || strcmp(err.reason, "forked") != 0;
        arena_release(&arena);
    }
    return wrong;
}

static void no_use_after_fork(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int status = -1;
    if (!harness_open(&h, t, 0))
        return;

    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(&h));
    TAP_OK(t, pid > 0 && waitpid(pid, &status, 0) == pid);
    TAP_OK(t, WIFEXITED(status));
    TAP_EQ(t, WEXITSTATUS(status), 0);
    thing_set(&h, "parent", 1); /* which goes on undisturbed */
    TAP_EQ(t, thing_n(&h, "parent"), 1);
}

static const struct tap_case cases[] = {
    { "misuse: a body calls nothing that takes a store or a space", no_api_in_bodies },
    { "misuse: fails the transaction even if the body goes on",
      misuse_fails_the_transaction },
    { "misuse: an invalid argument is no misuse", invalid_is_an_answer },
    { "misuse: a read-only body writes nothing", read_only_bodies_write_nothing },
    { "misuse: a store is of no use after fork", no_use_after_fork },
};
const struct topic topic_misuse = { cases, COUNT_OF(cases) };
