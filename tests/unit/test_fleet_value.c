/* Values: the latest one, whole, whoever stored it and wherever that one was killed. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include <belay/value.h>

#include "fleet/step.h"
#include "test_fleet.h"

#define KIND 7
#define WORDS 24

struct thing {
    uint64_t word[WORDS];
};

static struct thing thing_of(uint64_t n)
{
    struct thing x;

    for (unsigned i = 0; i < WORDS; i++)
        x.word[i] = n * WORDS + i;
    return x;
}

/* Which it is; UINT64_MAX when it is torn. */
static uint64_t which(const struct thing *x)
{
    uint64_t n = x->word[0] / WORDS;
    struct thing whole = thing_of(n);

    return memcmp(x, &whole, sizeof(whole)) == 0 ? n : UINT64_MAX;
}

static struct belay_value must_open(struct belay_fleet *f)
{
    struct belay_value v = { 0 };
    struct belay_error err;

    if (belay_value_open(f, KIND, "thing", sizeof(struct thing), 5, &v, &err) !=
        BELAY_OK) {
        printf("Bail out! open: %s\n", err.message);
        exit(1);
    }
    return v;
}

static uint64_t store(struct tap *t, const struct belay_value *v, uint64_t n)
{
    struct thing x = thing_of(n);
    uint64_t id = 0;

    TAP_EQ(t, belay_value_store(v, &x, &id, NULL), BELAY_OK);
    return id;
}

/* What is loaded, or -1 for none. */
static int64_t load(struct tap *t, const struct belay_value *v)
{
    struct thing x;
    belay_rc rc = belay_value_load(v, &x, NULL, NULL);

    TAP_OK(t, rc == BELAY_OK || rc == BELAY_NOT_FOUND);
    return rc == BELAY_OK ? (int64_t)which(&x) : -1;
}

static void the_latest_is_loaded_whoever_stored_it(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("value", &o), *g = must_join_beside(f);
    struct belay_value a = must_open(f), b = must_open(g);

    TAP_EQ(t, load(t, &a), -1);
    for (uint64_t n = 0; n < 20; n++) {
        store(t, n % 3 == 0 ? &a : &b, n);
        TAP_EQ(t, load(t, &a), (int64_t)n);
        TAP_EQ(t, load(t, &b), (int64_t)n);
    }
    TAP_EQ(t, belay_fleet_reset(f, NULL), BELAY_OK);
    TAP_EQ(t, load(t, &b), -1); /* forgotten */
    store(t, &b, 21);
    TAP_EQ(t, load(t, &a), 21);
    belay_fleet_leave(g);
    TAP_EQ(t, load(t, &a), 21); /* it stays when its member goes */
    belay_fleet_leave(f);
}

static void one_is_found_by_its_id_for_two_stores(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("value", &o);
    struct belay_value v = must_open(f);
    struct thing x = thing_of(99);
    uint64_t first = store(t, &v, 1), second = store(t, &v, 2), id = 0;

    TAP_EQ(t, belay_netid_kind(first), KIND);
    TAP_EQ(t, belay_value_load(&v, &x, &id, NULL), BELAY_OK);
    TAP_EQ(t, id, second);
    TAP_EQ(t, belay_value_load_id(&v, first, &x, NULL), BELAY_OK);
    TAP_EQ(t, which(&x), 1);
    store(t, &v, 3);
    TAP_EQ(t, belay_value_load_id(&v, first, &x, NULL), BELAY_NOT_FOUND);
    TAP_EQ(t, which(&x), 1); /* as it was */
    TAP_EQ(t, belay_value_load_id(&v, belay_netid_make(KIND, 1023, 1), &x, NULL),
           BELAY_NOT_FOUND);
    TAP_EQ(t, belay_value_load_id(&v, belay_netid_make(KIND + 1, 0, 2), &x, NULL),
           BELAY_NOT_FOUND);
    belay_fleet_leave(f);
}

static void refuse(struct tap *t, struct belay_fleet *f, uint8_t kind, size_t len,
                   uint64_t schema, const char *reason)
{
    struct belay_value v = { .len = 77 };
    struct belay_error err;

    TAP_EQ(t, belay_value_open(f, kind, "thing", len, schema, &v, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, reason);
    TAP_EQ(t, v.len, 77);
}

static void what_a_kind_is_is_said_once(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("value-kinds", &o), *seen = NULL;
    const struct belay_ring_spec spec = { .size = sizeof(spec),
                                          .kind = 8,
                                          .capacity = 2,
                                          .payload_max = 8,
                                          .name = "thing" };
    struct belay_value v = must_open(f), w;
    struct belay_ring *ring;
    struct belay_error err;
    struct thing x = thing_of(1);

    refuse(t, f, KIND, sizeof(struct thing) - 1, 5, "schema");
    refuse(t, f, KIND, sizeof(struct thing), 6, "schema");
    refuse(t, f, 9, 0, 5, "too_large");
    refuse(t, f, 9, BELAY_VALUE_LEN_MAX + 1, 5, "too_large");
    static const uint8_t reserved[] = { 200, 201, 220, 221, 222 };
    for (size_t i = 0; i < sizeof(reserved); i++)
        refuse(t, f, reserved[i], 8, 5, "kind");
    TAP_EQ(t, belay_ring_open(f, &spec, &ring, NULL), BELAY_OK);
    refuse(t, f, 8, 8, 0, "schema"); /* a ring */

    store(t, &v, 4);
    TAP_EQ(t, belay_fleet_observe("value-kinds", &o, &seen, &err), BELAY_OK);
    w = must_open(seen);
    TAP_EQ(t, load(t, &w), 4);
    TAP_EQ(t, belay_value_store(&w, &x, NULL, &err), BELAY_MISUSE);
    TAP_STR(t, err.reason, "observer");
    refuse(t, seen, KIND, 8, 5, "schema");
    TAP_EQ(t, belay_value_open(seen, 10, "thing", 8, 0, &w, NULL), BELAY_NOT_FOUND);
    belay_fleet_leave(seen);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("value-kinds", &o, NULL), BELAY_OK);
}

/* --- kills --- */

/* Everybody has the same node, after the one before. */
static struct belay_fleet_options one_node(void)
{
    struct belay_fleet_options o = small_fleet(0);

    o.fleet_size = 1;
    return o;
}

struct fatal {
    unsigned at, n;
};

static void die_at(void *arg, enum fleet_step step)
{
    struct fatal *fatal = arg;

    (void)step;
    if (fatal->n++ == fatal->at)
        (void)raise(SIGKILL);
}

/* Stores n and is killed at a step of that; exits with 0 when it came to the end. */
static void doomed(uint64_t n, unsigned at)
{
    struct belay_fleet_options o = one_node();
    struct fatal fatal = { .at = at };
    struct belay_fleet *f = must_join("value-kill", &o);
    struct belay_value v = must_open(f);
    struct thing x = thing_of(n);

    fleet_set_step(f, die_at, &fatal);
    _exit(belay_value_store(&v, &x, NULL, NULL) == BELAY_OK ? 0 : 3);
}

/* A store that is killed at that step; true when it was. */
static bool kill_store(uint64_t n, unsigned at)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        doomed(n, at);
    (void)waitpid(pid, &status, 0);
    return WIFSIGNALED(status);
}

/* And one that lives. */
static void store_there(struct tap *t, uint64_t n)
{
    struct belay_fleet_options o = one_node();
    struct belay_fleet *f = must_join("value-kill", &o);
    struct belay_value v = must_open(f);

    store(t, &v, n);
    belay_fleet_leave(f);
}

/* Steps that a store passes. */
#define STORE_STEPS 6

static void a_killed_store_leaves_the_value_that_was_or_its_own(struct tap *t)
{
    struct belay_fleet_options o = one_node();
    struct belay_fleet *seen = NULL;
    uint64_t n = 1;

    store_there(t, 0);
    TAP_EQ(t, belay_fleet_observe("value-kill", &o, &seen, NULL), BELAY_OK);
    struct belay_value v = must_open(seen);
    TAP_OK(t, kill_store(n, STORE_STEPS - 1));
    TAP_OK(t, !kill_store(n, STORE_STEPS));
    /* Two after each other, everywhere: the second one finds what the first left. */
    for (unsigned at = 0; at < STORE_STEPS * STORE_STEPS; at++, n += 3) {
        int64_t before = load(t, &v);
        TAP_OK(t, kill_store(n, at / STORE_STEPS));
        int64_t then = load(t, &v);
        TAP_OK(t, then == before || then == (int64_t)n);
        TAP_OK(t, kill_store(n + 1, at % STORE_STEPS));
        int64_t now = load(t, &v);
        TAP_OK(t, now == then || now == (int64_t)n || now == (int64_t)n + 1);
        store_there(t, n + 2);
        TAP_EQ(t, load(t, &v), (int64_t)n + 2);
    }
    belay_fleet_leave(seen);
    TAP_EQ(t, belay_fleet_remove("value-kill", &o, NULL), BELAY_OK);
}

/* --- threads --- */

struct storer {
    struct belay_fleet *f;
    uint64_t from;
    atomic_bool *is_over;
};

#define STORES 3000
#define RANGE 1000000

static void *keep_storing(void *arg)
{
    struct storer *s = arg;
    struct belay_value v = must_open(s->f);

    for (uint64_t n = 0; n < STORES; n++) {
        struct thing x = thing_of(s->from + n);
        if (belay_value_store(&v, &x, NULL, NULL) != BELAY_OK)
            return s;
    }
    atomic_store(s->is_over, true);
    return NULL;
}

static void loads_are_whole_and_never_go_back(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("value", &o);
    struct belay_value v = must_open(f);
    atomic_bool over[2] = { false, false };
    struct storer storers[2];
    pthread_t threads[2];
    uint64_t last[2] = { 0, 0 };
    bool is_good = true;
    void *failed;

    for (uint64_t i = 0; i < 2; i++) {
        storers[i] = (struct storer){ must_join_beside(f), i * RANGE, &over[i] };
        TAP_EQ(t, pthread_create(&threads[i], NULL, keep_storing, &storers[i]), 0);
    }
    while (!atomic_load(&over[0]) || !atomic_load(&over[1])) {
        struct thing x;
        belay_rc rc = belay_value_load(&v, &x, NULL, NULL);
        uint64_t n = rc == BELAY_OK ? which(&x) : 0;
        if (rc != BELAY_OK) {
            is_good = is_good && rc == BELAY_NOT_FOUND;
            continue;
        }
        unsigned who = n >= RANGE;
        is_good = is_good && n != UINT64_MAX && n >= last[who];
        last[who] = n;
    }
    for (int i = 0; i < 2; i++) {
        TAP_EQ(t, pthread_join(threads[i], &failed), 0);
        TAP_OK(t, failed == NULL);
        belay_fleet_leave(storers[i].f);
    }
    TAP_OK(t, is_good);
    int64_t end = load(t, &v);
    TAP_OK(t, end == STORES - 1 || end == RANGE + STORES - 1);
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "the latest is loaded, whoever stored it",
          the_latest_is_loaded_whoever_stored_it },
        { "one is found by its id for two stores",
          one_is_found_by_its_id_for_two_stores },
        { "what a kind is is said once", what_a_kind_is_is_said_once },
        { "a killed store leaves the value that was or its own",
          a_killed_store_leaves_the_value_that_was_or_its_own },
        { "loads are whole and never go back", loads_are_whole_and_never_go_back },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
