/* X6: the failure of any single allocation, once or from then on, gives an error code,
 * no durable change, no leak (the address sanitizer watches) and no crash. */
#include "base/json.h"
#include "fakes.h"
#include "oom.h"
#include "store/blob.h"
#include "store/drivers/memory.h"
#include "store/drivers/sqlite.h"
#include "store/dump.h"
#include "store/fault.h"
#include "store/trace.h"
#include "tap.h"
#include "things.h"

/* A store under test: in memory, the same with decorators (so that commit slots are used,
 * too), or SQLite. */
enum kind { MEMORY, WRAPPED, SQLITE };

struct bench {
    enum kind kind;
    struct fake_clock clock;
    struct fake_random random;
    struct driver *driver;
    struct store *store;
    struct space *space;
};

static belay_rc wrap(struct bench *b, struct belay_error *err)
{
    struct belay_clock clock = fake_clock_hook(&b->clock);
    struct driver *faulty = NULL;
    belay_rc rc = fault_wrap(&faulty, b->driver, &clock, err);

    if (rc)
        return rc;
    b->driver = faulty;
    struct driver *traced = NULL;
    rc = trace_wrap(&traced, b->driver, NULL, NULL, err);
    if (!rc)
        b->driver = traced;
    return rc;
}

static belay_rc bench_open(struct bench *b, struct belay_error *err)
{
    struct driver_config config = { &schema_things, fake_clock_hook(&b->clock),
                                    fake_random_hook(&b->random) };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = config.random };
    belay_rc rc = b->kind == SQLITE ? sqlite_open(&b->driver, ":memory:", &config, err)
                                    : memory_open(&b->driver, &config, err);

    if (!rc && b->kind == WRAPPED)
        rc = wrap(b, err);
    if (!rc)
        rc = store_open(&b->store, b->driver, &options, err);
    if (!rc)
        rc = store_space(b->store, bytes_str("default"), &b->space, err);
    return rc;
}

static void bench_close(struct bench *b)
{
    store_close(b->store);
    driver_close(b->driver);
    b->store = NULL;
    b->driver = NULL;
    b->space = NULL;
}

/* --- the transaction whose every allocation fails in turn --- */

static const struct bytes ready = { (const uint8_t *)"ready", 5 };
static const struct bytes member = { (const uint8_t *)"a", 1 };

static belay_rc seed_body(struct txn *t, void *arg)
{
    const struct value v[THING_COLUMNS] = { [THING_ID] = value_str("a"),
                                            [THING_N] = value_i64(1),
                                            [THING_TEXT] = value_str("text") };
    (void)arg;
    belay_rc rc = txn_insert(t, &row_thing, v);
    if (!rc)
        rc = txn_rank_add(t, ready, 10, member);
    if (!rc)
        rc = txn_log_append(t, bytes_str("log"), 1, bytes_str("one"));
    return rc ? rc : txn_feed_append(t, bytes_str("feed"), bytes_str("one"), NULL);
}

/* Reads and writes every shape, with enough rows to outgrow every inline array. */
static belay_rc all_shapes(struct txn *t, void *arg)
{
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &ready,
                         .n_indexes = 1,
                         .min_rank = 0,
                         .max_rank = 100,
                         .limit = 10,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct value key = value_str("a");
    struct change change = { THING_TEXT, value_str("changed") };
    struct hits hits;
    struct log_entries entries;
    int64_t now_ms;
    struct txn_sum *sum = arg;
    belay_rc rc = txn_pick(t, &scan, &hits);

    if (!rc)
        rc = txn_now(t, &now_ms);
    if (!rc)
        rc = txn_put(t, &row_thing, &key, &change, 1);
    if (!rc)
        rc = txn_add(t, &row_thing, &key, THING_COUNT, 2, 0, 100, sum);
    if (!rc)
        rc = txn_rank_move(t, ready, 10, 20, member);
    for (unsigned i = 0; i < 20 && !rc; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "n%u", i);
        const struct value v[PART_COLUMNS] = { value_str(name), value_i64(i),
                                               value_i64(1) };
        rc = txn_insert(t, &row_part, v);
        if (!rc)
            rc = txn_rank_add(t, bytes_str("parts"), i, bytes_str(name));
    }
    if (!rc)
        rc = txn_log_append(t, bytes_str("log"), 2, bytes_str("two"));
    if (!rc)
        rc = txn_log_read(t, bytes_str("log"), 0, 10, &entries);
    if (!rc)
        rc = txn_scan(t, &scan, &hits);
    if (!rc)
        rc = txn_feed_append(t, bytes_str("feed"), bytes_str("two"), NULL);
    if (!rc)
        rc = txn_chunk_put(t, bytes_str("upl"), 0, bytes_str("chunk"));
    return rc ? rc : txn_wake(t, bytes_str("topic"));
}

static belay_rc run_all_shapes(struct bench *b, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct txn_sum sum = { .known = false };

    return txn_run(b->space, all_shapes, &sum, NULL, &arena, err);
}

static belay_rc run_blob(struct bench *b, struct belay_error *err)
{
    struct blob_writer *w = NULL;
    struct blob_info info;
    belay_rc rc = blob_writer_open(&w, b->space, false, NULL, err);

    if (!rc)
        rc = blob_write(w, bytes_str("some content"), err);
    if (!rc)
        rc = blob_finish(w, bytes_of(NULL, 0), NULL, &info, err);
    blob_writer_close(w);
    return rc;
}

static belay_rc put_piece(struct txn *t, void *arg)
{
    return blob_put_in(t, arg, NULL);
}

/* Compressed, as a part of somebody's commit and in a stream, and read again. */
static belay_rc run_packed_blob(struct bench *b, struct belay_error *err)
{
    static const uint8_t zeros[5000];
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct blob_writer *w = NULL;
    struct blob_piece piece;
    struct blob_info info;
    struct bytes all;
    belay_rc rc = blob_prepare(&piece, b->space, bytes_of(zeros, 4000),
                               bytes_of(NULL, 0), true, &arena, err);

    if (!rc)
        rc = txn_run(b->space, put_piece, &piece, NULL, &arena, err);
    if (!rc)
        rc = blob_writer_open(&w, b->space, true, NULL, err);
    if (!rc)
        rc = blob_write(w, bytes_of(zeros, 5000), err);
    if (!rc)
        rc = blob_finish(w, bytes_of(NULL, 0), NULL, &info, err);
    blob_writer_close(w);
    if (!rc)
        rc = blob_load(b->space, piece.sha256, 4000, &arena, &all, err);
    if (!rc)
        rc = blob_load(b->space, info.sha256, 5000, &arena, &all, err);
    return rc;
}

static belay_rc run_json(struct bench *b, struct belay_error *err)
{
    static const char text[] = "{\"b\":[1,2.5,\"x\"],\"a\":{\"c\":null,\"d\":true}}";
    CLEANUP(buf_release) struct buf out = { .ptr = NULL };
    json_t *value = NULL;
    belay_rc rc = json_read(bytes_str(text), sizeof(text), &value, err);

    (void)b;
    if (!rc)
        rc = json_write(value, &out, err);
    json_decref(value);
    return rc;
}

static belay_rc run_listen(struct bench *b, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes topic = bytes_str("topic");
    struct listener *l = NULL;
    struct belay_cancel *cancel = NULL;
    belay_rc rc = belay_cancel_new(&cancel, err);

    if (!rc)
        rc = space_listen(b->space, &topic, 1, cancel, &arena, &l, err);
    listener_close(l);
    belay_cancel_free(cancel);
    return rc;
}

/* --- the loop --- */

static bool dump(struct bench *b, struct buf *out)
{
    buf_reset(out);
    return !dump_namespace(b->driver, bytes_str("default"), out, NULL) && !out->failed;
}

static bool prepare(struct tap *t, struct bench *b)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err;

    atomic_store(&b->clock.wall_ms, 1000000);
    if (bench_open(b, &err) || txn_run(b->space, seed_body, NULL, NULL, &arena, &err))
        return TAP_STR(t, err.message, "");
    return true;
}

/* What is tried. */
struct trial {
    belay_rc (*op)(struct bench *b, struct belay_error *err);
    enum kind kind;
    bool leaves_garbage; /* a failure may leave something that nobody can see as a blob
                          */
    belay_rc also;       /* a code that is as good as no_memory */
};

/* One run of the trial with its n-th allocation failing.  False when the run was not
 * hit: all its allocations have been tried. */
static bool fail_at(struct tap *t, const struct trial *trial, unsigned long n,
                    bool for_ever)
{
    struct bench b = { .kind = trial->kind };
    CLEANUP(buf_release) struct buf before = { .ptr = NULL };
    CLEANUP(buf_release) struct buf after = { .ptr = NULL };
    struct belay_error err = { .code = 0 };
    bool hit = false;

    if (prepare(t, &b) && TAP_OK(t, dump(&b, &before))) {
        oom_arm(n, for_ever);
        belay_rc rc = trial->op(&b, &err);
        hit = oom_disarm();
        if (!TAP_OK(t, rc == BELAY_OK || rc == BELAY_NO_MEMORY || rc == trial->also))
            printf("# allocation %lu: %s: %s\n", n, belay_error_info((int)rc)->name,
                   err.message);
        TAP_OK(t, dump(&b, &after));
        if (rc && !trial->leaves_garbage &&
            !TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after))))
            printf("# allocation %lu: %s, and yet something changed\n", n, err.message);
        /* Whatever failed, the next caller finds a store that works. */
        if (rc)
            TAP_EQ(t, trial->op(&b, &err), BELAY_OK);
    }
    bench_close(&b);
    return hit && t->failed == 0;
}

static void fail_everywhere(struct tap *t, const struct trial *trial)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        unsigned long n = 1;
        while (fail_at(t, trial, n, for_ever))
            n++;
        printf("# %lu allocations, %s\n", n - 1, for_ever ? "for ever" : "once");
        TAP_OK(t, n > 1);
    }
}

static void transaction(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_all_shapes });
}

static void transaction_with_slot(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_all_shapes, .kind = WRAPPED });
}

static void transaction_on_sqlite(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_all_shapes, .kind = SQLITE });
}

/* An upload that was cut short stays as an unfinished upload, for the sweep.  OpenSSL
 * that cannot get memory is a digest that cannot be made: unavailable. */
static void blob(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_blob,
                                        .leaves_garbage = true,
                                        .also = BELAY_UNAVAILABLE });
}

static void packed_blob(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_packed_blob,
                                        .leaves_garbage = true,
                                        .also = BELAY_UNAVAILABLE });
}

/* Jansson reports some of its failing allocations as text it cannot parse. */
static void json(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_json, .also = BELAY_INVALID });
}

static void listening(struct tap *t)
{
    fail_everywhere(t, &(struct trial){ .op = run_listen });
}

/* Opening a store and its first commit, which creates the namespace. */
static void opening(struct tap *t)
{
    for (int mode = 0; mode < 4; mode++) {
        bool for_ever = mode & 1, hit = true;
        unsigned long n = 1;
        for (; hit && t->failed == 0; n++) {
            CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
            struct bench b = { .kind = mode & 2 ? WRAPPED : MEMORY };
            struct belay_error err = { .code = 0 };
            oom_arm(n, for_ever);
            belay_rc rc = bench_open(&b, &err);
            if (!rc)
                rc = txn_run(b.space, seed_body, NULL, NULL, &arena, &err);
            hit = oom_disarm();
            if (!TAP_OK(t, rc == BELAY_NO_MEMORY || rc == BELAY_OK))
                printf("# allocation %lu: %s\n", n, err.message);
            bench_close(&b);
        }
        printf("# %lu allocations\n", n - 2);
        TAP_OK(t, n > 2);
    }
}

static const struct tap_case cases[] = {
    { "a transaction over every shape survives any failing allocation", transaction },
    { "so does one that commits under a slot", transaction_with_slot },
    { "so does one on SQLite", transaction_on_sqlite },
    { "so does a blob upload", blob },
    { "so does a compressed blob, written and read", packed_blob },
    { "so does reading and writing JSON", json },
    { "so does listening", listening },
    { "so does opening a store and creating a namespace", opening },
};

int main(int argc, char **argv)
{
    if (!oom_hook_libraries())
        return 1;
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
