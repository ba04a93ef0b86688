#include "harness.h"

#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/dump.h"
#include "store/fault.h"
#include "store/trace.h"

#define START_WALL_MS ((int64_t)1750000000000)
#define START_MONO_US ((int64_t)1000000)

/* --- directories --- */

bool temp_dir_make(char *out, size_t size)
{
    const char *base = getenv("TMPDIR");
    int len = snprintf(out, size, "%s/belay-XXXXXX", base && *base ? base : "/tmp");

    if (len < 0 || (size_t)len >= size || !mkdtemp(out)) {
        *out = 0;
        return false;
    }
    return true;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void temp_dir_remove(const char *dir)
{
    if (*dir)
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- opening and closing --- */

/* An effect that changes nothing, so that the namespace is founded and empty. */
static belay_rc found_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_chunk_drop(t, bytes_str("none"), 0);
}

static belay_rc wrap(struct harness *h, unsigned flags)
{
    struct driver *outer;
    belay_rc rc = BELAY_OK;

    bool own_clock = (flags & HARNESS_OWN_CLOCK) && h->driver->ops->now_ms;
    bool own_threads = (flags & HARNESS_INTERLEAVED) && driver_runs_bodies(h->driver);
    if (own_clock || own_threads) {
        struct shim_options options = { .clock = own_clock ? &h->clock : NULL,
                                        .drop = -1,
                                        .bodies = own_threads ? BODIES_FREE
                                                              : BODIES_AS_BELOW };
        rc = shim_wrap(&outer, h->driver, &options, &h->err);
        h->driver = rc ? h->driver : outer;
    }
    if (!rc && (flags & HARNESS_FAULTS)) {
        rc = fault_wrap(&outer, h->driver, &h->options.clock, &h->err);
        h->driver = h->faulty = rc ? h->driver : outer;
    }
    if (!rc && (flags & HARNESS_TRACE)) {
        rc = trace_wrap(&outer, h->driver, NULL, NULL, &h->err);
        h->driver = h->trace = rc ? h->driver : outer;
    }
    return rc;
}

/* Driver, decorators, store and space, on whatever is in h->dir. */
static belay_rc open_all(struct harness *h)
{
    const struct test_driver *entry = h->t->arg;
    struct driver_config config = { .schema = &schema_things,
                                    .clock = h->options.clock,
                                    .random = fake_random_hook(&h->driver_random) };
    belay_rc rc = entry->open(&config, h->dir, &h->driver, &h->err);

    if (!rc)
        rc = wrap(h, h->flags);
    if (!rc)
        rc = store_open(&h->store, h->driver, &h->options, &h->err);
    if (!rc)
        rc = store_space(h->store, bytes_str("default"), &h->space, &h->err);
    if (rc)
        printf("# %s\n", h->err.message);
    return rc;
}

bool harness_open(struct harness *h, struct tap *t, unsigned flags)
{
    memset(h, 0, sizeof(*h));
    h->t = t;
    h->flags = flags;
    atomic_store(&h->clock.wall_ms, START_WALL_MS);
    atomic_store(&h->clock.mono_us, START_MONO_US);
    atomic_store(&h->random.state, 42);
    atomic_store(&h->driver_random.state, 43);
    h->options = (struct store_options){
        .schema = &schema_things,
        .clock =
            flags & HARNESS_REAL_TIME ? clock_system() : fake_clock_hook(&h->clock),
        .random = fake_random_hook(&h->random),
    };
    if (!TAP_OK(t, temp_dir_make(h->dir, sizeof(h->dir))))
        return false;
    belay_rc rc = open_all(h);
    if (!rc && !(flags & HARNESS_UNFOUNDED))
        rc = txn_run(h->space, found_body, NULL, NULL, &h->arena, &h->err);
    return CHECK_RC(h, rc, BELAY_OK);
}

static void close_all(struct harness *h)
{
    store_close(h->store);
    driver_close(h->driver);
    h->store = NULL;
    h->space = NULL;
    h->driver = h->faulty = h->trace = NULL;
}

bool harness_reopen(struct harness *h)
{
    close_all(h);
    return CHECK_RC(h, open_all(h), BELAY_OK);
}

void harness_close(struct harness *h)
{
    const struct test_driver *entry = h->t->arg;

    close_all(h);
    arena_release(&h->arena);
    if (entry->forget && *h->dir)
        entry->forget(h->dir);
    temp_dir_remove(h->dir);
}

belay_rc harness_run(struct harness *h, txn_body *body, void *arg)
{
    arena_reset(&h->arena);
    memset(&h->err, 0, sizeof(h->err));
    return txn_run(h->space, body, arg, NULL, &h->arena, &h->err);
}

belay_rc harness_run_aside(struct harness *h, txn_body *body, void *arg)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct txn *outer = txn_thread_swap(NULL);
    /* Behind the body that waits for it, it would never have its turn. */
    bool stuck = outer && driver_runs_bodies(h->driver);
    TAP_OK(h->t, !stuck);
    belay_rc rc =
        stuck ? BELAY_MISUSE : txn_run(h->space, body, arg, NULL, &arena, NULL);

    (void)txn_thread_swap(outer);
    return rc;
}

struct buf harness_dump(struct harness *h)
{
    struct buf out = { .ptr = NULL };

    CHECK_RC(h, dump_namespace(h->driver, bytes_str("default"), &out, NULL), BELAY_OK);
    return out;
}

void harness_pass_us(struct harness *h, int64_t us)
{
    bool fake = h->options.clock.arg == &h->clock;
    struct belay_clock real = clock_system();

    if (fake)
        fake_advance_us(&h->clock, us);
    if (!fake || h->driver->ops->now_ms)
        real.sleep_us(real.arg, us);
}

/* --- things --- */

void thing_values(struct value v[THING_COLUMNS], const char *id, int64_t n)
{
    memset(v, 0, THING_COLUMNS * sizeof(*v));
    v[THING_ID] = value_str(id);
    v[THING_N] = value_i64(n);
    v[THING_COUNT] = value_i64(0);
    v[THING_HIGH] = value_i64(0);
}

belay_rc thing_get(struct txn *t, const char *id, const struct row **out)
{
    struct value key = value_str(id);

    return txn_get(t, &row_thing, &key, out);
}

belay_rc thing_insert(struct txn *t, const char *id, int64_t n)
{
    struct value v[THING_COLUMNS];

    thing_values(v, id, n);
    return txn_insert(t, &row_thing, v);
}

belay_rc thing_put(struct txn *t, const char *id, int64_t n)
{
    struct value key = value_str(id);
    struct change change = { THING_N, value_i64(n) };
    const struct row *row;
    belay_rc rc = thing_get(t, id, &row);

    return rc ? rc : txn_put(t, &row_thing, &key, &change, 1);
}

belay_rc thing_add(struct txn *t, const char *id, int64_t delta)
{
    struct value key = value_str(id);

    return txn_add(t, &row_thing, &key, THING_COUNT, delta, INT64_MIN, INT64_MAX, NULL);
}

struct thing_call {
    const char *id;
    int64_t n, count;
};

static belay_rc set_body(struct txn *t, void *arg)
{
    const struct thing_call *c = arg;
    const struct row *row;
    belay_rc rc = thing_get(t, c->id, &row);

    if (rc)
        return rc;
    return row ? thing_put(t, c->id, c->n) : thing_insert(t, c->id, c->n);
}

static belay_rc drop_body(struct txn *t, void *arg)
{
    const struct thing_call *c = arg;
    struct value key = value_str(c->id);
    const struct row *row;
    belay_rc rc = thing_get(t, c->id, &row);

    return rc ? rc : txn_delete(t, &row_thing, &key);
}

static belay_rc look_body(struct txn *t, void *arg)
{
    struct thing_call *c = arg;
    const struct row *row;
    belay_rc rc = thing_get(t, c->id, &row);

    c->n = !rc && row ? row_i64(row, THING_N, INT64_MIN) : INT64_MIN;
    c->count = !rc && row ? row_i64(row, THING_COUNT, INT64_MIN) : INT64_MIN;
    return rc;
}

/* From inside a body, too. */
static struct thing_call thing_call(struct harness *h, txn_body *body, const char *id,
                                    int64_t n)
{
    struct thing_call c = { .id = id, .n = n };

    CHECK_RC(h, harness_run_aside(h, body, &c), BELAY_OK);
    return c;
}

void thing_set(struct harness *h, const char *id, int64_t n)
{
    (void)thing_call(h, set_body, id, n);
}

void thing_drop(struct harness *h, const char *id)
{
    (void)thing_call(h, drop_body, id, 0);
}

int64_t thing_n(struct harness *h, const char *id)
{
    return thing_call(h, look_body, id, 0).n;
}

int64_t thing_count(struct harness *h, const char *id)
{
    return thing_call(h, look_body, id, 0).count;
}

/* --- threads --- */

struct hand {
    pthread_t thread;
    pthread_barrier_t *start;
    void (*work)(void *arg, unsigned i);
    void *arg;
    unsigned i;
};

static void *hand_main(void *arg)
{
    struct hand *hand = arg;

    (void)pthread_barrier_wait(hand->start);
    hand->work(hand->arg, hand->i);
    return NULL;
}

void crew_run(struct tap *t, unsigned n, void (*work)(void *arg, unsigned i), void *arg)
{
    struct hand *hands = calloc(n, sizeof(*hands));
    pthread_barrier_t start;
    unsigned made = 0;

    if (!hands || pthread_barrier_init(&start, NULL, n))
        abort();
    for (; made < n; made++) {
        hands[made] =
            (struct hand){ .start = &start, .work = work, .arg = arg, .i = made };
        /* The others wait at the barrier for ever: a case cannot go on from here. */
        if (pthread_create(&hands[made].thread, NULL, hand_main, &hands[made]))
            abort();
    }
    for (unsigned i = 0; i < n; i++)
        TAP_EQ(t, pthread_join(hands[i].thread, NULL), 0);
    pthread_barrier_destroy(&start);
    free(hands);
}
