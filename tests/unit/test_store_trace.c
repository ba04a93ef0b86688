/* The trace decorator over a driver that only remembers what it was asked. */
#include "store/trace.h"

#include <pthread.h>
#include <stdlib.h>

#include "tap.h"

/* --- the inner driver --- */

struct fake {
    struct driver d;
    struct driver_ops ops;
    unsigned begins, reads, commits, ends, walks;
    bool *closed;
    void *last_attempt;
    belay_rc answer; /* of everything that can fail */
    bool conflict;
};

/* Large and odd, so that a wrong offset or size shows. */
struct fake_attempt {
    _Alignas(16) unsigned char stamp[77];
    unsigned calls;
};

static struct fake *fake_of(struct driver *d)
{
    return (struct fake *)d;
}

static belay_rc answer(struct fake *f, struct belay_error *err)
{
    return f->answer ? err_set(err, f->answer, "fake: as told") : BELAY_OK;
}

static belay_rc fake_begin(struct driver *d, void *attempt, struct bytes ns,
                           struct belay_error *err)
{
    struct fake_attempt *own = attempt;

    (void)ns;
    fake_of(d)->begins++;
    fake_of(d)->last_attempt = attempt;
    for (size_t i = 0; i < sizeof(own->stamp); i++) {
        if (own->stamp[i] != 0)
            return err_set(err, BELAY_MISUSE, "fake: attempt memory is not zero");
    }
    memset(own->stamp, 0xa5, sizeof(own->stamp));
    return answer(fake_of(d), err);
}

static belay_rc check_attempt(struct fake *f, void *attempt, struct belay_error *err)
{
    struct fake_attempt *own = attempt;

    own->calls++;
    for (size_t i = 0; i < sizeof(own->stamp); i++) {
        if (own->stamp[i] != 0xa5)
            return err_set(err, BELAY_MISUSE, "fake: attempt memory was changed");
    }
    return answer(f, err);
}

static belay_rc fake_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                          struct belay_arena *a, struct belay_error *err)
{
    (void)n;
    (void)a;
    fake_of(d)->reads++;
    reads[0].chunk.found = true;
    return check_attempt(fake_of(d), attempt, err);
}

static belay_rc fake_commit(struct driver *d, void *attempt, const struct plan *plan,
                            struct plan_result *result, struct belay_error *err)
{
    fake_of(d)->commits++;
    result->conflict = fake_of(d)->conflict;
    result->failed_guard = plan->n_guards > 0 ? plan->n_guards - 1 : 0;
    return check_attempt(fake_of(d), attempt, err);
}

static void fake_end(struct driver *d, void *attempt)
{
    fake_of(d)->ends++;
    fake_of(d)->last_attempt = attempt;
}

static belay_rc fake_now_ms(struct driver *d, void *attempt, int64_t *out,
                            struct belay_error *err)
{
    *out = 4711;
    return check_attempt(fake_of(d), attempt, err);
}

static belay_rc fake_walk(struct driver *d, struct bytes ns, item_visit *visit,
                          void *arg, struct belay_error *err)
{
    struct item item = { .kind = ITEM_RANK, .name = ns, .number = 5 };

    fake_of(d)->walks++;
    return fake_of(d)->answer ? answer(fake_of(d), err) : visit(arg, &item, err);
}

static enum durability fake_durability(struct driver *d)
{
    (void)d;
    return DURABILITY_RELAXED;
}

static void fake_close(struct driver *d)
{
    if (fake_of(d)->closed)
        *fake_of(d)->closed = true;
    free(d);
}

static struct fake *fake_open(void)
{
    struct fake *f = calloc(1, sizeof(*f));

    if (!f)
        abort();
    f->ops = (struct driver_ops){
        .name = "fake",
        .version = DRIVER_VERSION,
        .begin = fake_begin,
        .read = fake_read,
        .commit = fake_commit,
        .end = fake_end,
        .walk = fake_walk,
        .durability = fake_durability,
        .close = fake_close,
    };
    f->d.ops = &f->ops;
    f->d.caps = DRIVER_SNAPSHOT;
    f->d.attempt_size = sizeof(struct fake_attempt);
    f->d.hub = (struct wake_hub *)(void *)f; /* only compared */
    return f;
}

/* --- a trace over it, and one attempt --- */

struct fixture {
    struct fake *fake;
    struct driver *d;
    void *attempt;
    struct buf lines; /* each line with a newline */
    struct belay_error err;
};

static void collect(void *arg, const char *line)
{
    buf_append_str(arg, line);
    buf_append_char(arg, '\n');
}

static void set_up(struct tap *t, struct fixture *f)
{
    *f = (struct fixture){ .fake = fake_open() };
    TAP_EQ(t, trace_wrap(&f->d, &f->fake->d, collect, &f->lines, &f->err), BELAY_OK);
    f->attempt = calloc(1, f->d->attempt_size);
    if (!f->attempt)
        abort();
}

static void tear_down(struct fixture *f)
{
    driver_close(f->d);
    free(f->attempt);
    buf_release(&f->lines);
}

static const char *lines(struct fixture *f)
{
    buf_append_char(&f->lines, '\0');
    f->lines.len--;
    return (const char *)f->lines.ptr;
}

static belay_rc begin(struct fixture *f)
{
    memset(f->attempt, 0, f->d->attempt_size);
    return driver_begin(f->d, f->attempt, bytes_str("default"), &f->err);
}

static belay_rc read_n(struct fixture *f, size_t n)
{
    struct read reads[4] = { 0 };
    struct belay_arena a = { 0 };

    return driver_read(f->d, f->attempt, reads, n, &a, &f->err);
}

static belay_rc commit(struct fixture *f, size_t n_guards, size_t n_effects)
{
    struct guard guards[4] = { 0 };
    struct effect effects[4] = { 0 };
    struct effect_result results[4];
    struct plan plan = { .id = 7,
                         .ns = bytes_str("default"),
                         .guards = guards,
                         .n_guards = n_guards,
                         .effects = effects,
                         .n_effects = n_effects };
    struct plan_result result = { .effects = results };

    effects[0] = (struct effect){ .kind = EFFECT_LOG_APPEND,
                                  .log = { .stream = bytes_str("SECRET"),
                                           .data = bytes_str("SECRET") } };
    return driver_commit(f->d, f->attempt, &plan, &result, &f->err);
}

/* --- cases --- */

static void test_looks_like_inner(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, f.d->caps, DRIVER_SNAPSHOT);
    TAP_EQ(t, f.d->ops->caps, DRIVER_SNAPSHOT);
    TAP_OK(t, f.d->hub == f.fake->d.hub);
    TAP_OK(t, f.d->attempt_size > sizeof(struct fake_attempt));
    TAP_EQ(t, f.d->attempt_size, f.d->ops->attempt_size);
    TAP_EQ(t, driver_durability(f.d), DURABILITY_RELAXED);
    TAP_EQ(t, f.d->ops->version, DRIVER_VERSION);
    tear_down(&f);
}

static void test_forwards(struct tap *t)
{
    struct fixture f;
    struct read read = { .kind = READ_CHUNK };
    struct belay_arena a = { 0 };

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, (uintptr_t)f.fake->last_attempt % 16, 0);
    TAP_OK(t, (uint8_t *)f.fake->last_attempt + sizeof(struct fake_attempt) <=
                  (uint8_t *)f.attempt + f.d->attempt_size);
    TAP_EQ(t, driver_read(f.d, f.attempt, &read, 1, &a, &f.err), BELAY_OK);
    TAP_OK(t, read.chunk.found);
    TAP_EQ(t, commit(&f, 1, 1), BELAY_OK);
    TAP_EQ(t, ((struct fake_attempt *)f.fake->last_attempt)->calls, 2);
    void *inner = f.fake->last_attempt;
    driver_end(f.d, f.attempt);
    TAP_OK(t, f.fake->last_attempt == inner);
    TAP_EQ(t, f.fake->begins + f.fake->reads + f.fake->commits + f.fake->ends, 4);
    tear_down(&f);
}

static belay_rc see_item(void *arg, const struct item *item, struct belay_error *err)
{
    *(int64_t *)arg = item->number;
    return err_set(err, BELAY_CANCELLED, "visit: stop");
}

static void test_walk(struct tap *t)
{
    struct fixture f;
    int64_t seen = 0;

    set_up(t, &f);
    TAP_EQ(t, driver_walk(f.d, bytes_str("a"), see_item, &seen, &f.err),
           BELAY_CANCELLED);
    TAP_EQ(t, seen, 5);
    TAP_STR(t, f.err.message, "visit: stop");
    TAP_EQ(t, trace_counts(f.d).failures, 1);
    TAP_STR(t, lines(&f), "walk ns=a rc=cancelled\n");
    tear_down(&f);
}

static int64_t wall_ms(void *arg)
{
    (void)arg;
    return 12;
}

static void test_time(struct tap *t)
{
    struct belay_clock clock = { .wall_ms = wall_ms };
    struct fixture f;
    int64_t now = 0;

    set_up(t, &f);
    TAP_OK(t, f.d->ops->now_ms == NULL);
    TAP_EQ(t, driver_now_ms(f.d, f.attempt, &clock, &now, &f.err), BELAY_OK);
    TAP_EQ(t, now, 12);
    tear_down(&f);

    struct fake *fake = fake_open();
    fake->ops.now_ms = fake_now_ms;
    f = (struct fixture){ .fake = fake };
    TAP_EQ(t, trace_wrap(&f.d, &fake->d, collect, &f.lines, &f.err), BELAY_OK);
    f.attempt = calloc(1, f.d->attempt_size);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, driver_now_ms(f.d, f.attempt, &clock, &now, &f.err), BELAY_OK);
    TAP_EQ(t, now, 4711);
    fake->answer = BELAY_UNAVAILABLE;
    TAP_EQ(t, driver_now_ms(f.d, f.attempt, &clock, &now, &f.err), BELAY_UNAVAILABLE);
    TAP_STR(t, lines(&f),
            "begin ns=default rc=ok\nnow ns=default rc=ok\n"
            "now ns=default rc=unavailable\n");
    TAP_EQ(t, trace_counts(f.d).failures, 1);
    tear_down(&f);
}

static void test_counts(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_n(&f, 3), BELAY_OK);
    TAP_EQ(t, read_n(&f, 1), BELAY_OK);
    TAP_EQ(t, commit(&f, 2, 0), BELAY_OK); /* a check of guards is a commit */
    driver_end(f.d, f.attempt);
    TAP_EQ(t, begin(&f), BELAY_OK);
    f.fake->conflict = true;
    TAP_EQ(t, commit(&f, 2, 1), BELAY_OK);
    f.fake->answer = BELAY_UNAVAILABLE;
    TAP_EQ(t, commit(&f, 1, 1), BELAY_UNAVAILABLE);
    TAP_EQ(t, read_n(&f, 2), BELAY_UNAVAILABLE);
    TAP_EQ(t, begin(&f), BELAY_UNAVAILABLE);

    struct trace_counts n = trace_counts(f.d);
    TAP_EQ(t, n.attempts, 3);
    TAP_EQ(t, n.reads, 3);
    TAP_EQ(t, n.questions, 6);
    TAP_EQ(t, n.commits, 3);
    TAP_EQ(t, n.conflicts, 1);
    TAP_EQ(t, n.failures, 3);

    trace_reset(f.d);
    n = trace_counts(f.d);
    TAP_EQ(t, n.attempts + n.reads + n.questions + n.commits + n.conflicts + n.failures,
           0);
    tear_down(&f);
}

static void test_lines(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_n(&f, 3), BELAY_OK);
    TAP_EQ(t, commit(&f, 2, 3), BELAY_OK);
    f.fake->conflict = true;
    TAP_EQ(t, commit(&f, 2, 3), BELAY_OK);
    f.fake->answer = BELAY_UNKNOWN_OUTCOME;
    TAP_EQ(t, commit(&f, 2, 3), BELAY_UNKNOWN_OUTCOME);
    driver_end(f.d, f.attempt);
    TAP_STR(t, lines(&f),
            "begin ns=default rc=ok\n"
            "read ns=default questions=3 rc=ok\n"
            "commit ns=default plan=7 guards=2 effects=3 rc=ok\n"
            "commit ns=default plan=7 guards=2 effects=3 conflict=1 rc=ok\n"
            "commit ns=default plan=7 guards=2 effects=3 rc=unknown_outcome\n"
            "end ns=default round_trips=4\n");
    TAP_OK(t, strstr(lines(&f), "SECRET") == NULL);
    tear_down(&f);
}

static void test_lines_escape(struct tap *t)
{
    struct fixture f;
    char hostile[300];

    set_up(t, &f);
    TAP_EQ(t, driver_begin(f.d, f.attempt, bytes_str("a\nend ns=b\x1b"), &f.err),
           BELAY_OK);
    TAP_STR(t, lines(&f), "begin ns=a\\nend ns=b\\x1b rc=ok\n");

    /* Longer than a namespace can be: cut, not overrun. */
    memset(hostile, 'x', sizeof(hostile));
    memset(f.attempt, 0, f.d->attempt_size);
    TAP_EQ(t, driver_begin(f.d, f.attempt, bytes_of(hostile, sizeof(hostile)), &f.err),
           BELAY_OK);
    TAP_EQ(t, read_n(&f, 1), BELAY_OK);
    tear_down(&f);
}

static void test_no_lines(struct tap *t)
{
    struct fixture f = { .fake = fake_open() };

    f.fake->ops.now_ms = fake_now_ms;
    TAP_EQ(t, trace_wrap(&f.d, &f.fake->d, NULL, NULL, &f.err), BELAY_OK);
    f.attempt = calloc(1, f.d->attempt_size);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_n(&f, 1), BELAY_OK);
    TAP_EQ(t, commit(&f, 1, 1), BELAY_OK);
    int64_t now = 0;
    TAP_EQ(t, f.d->ops->now_ms(f.d, f.attempt, &now, &f.err), BELAY_OK);
    driver_end(f.d, f.attempt);
    TAP_EQ(t, driver_walk(f.d, bytes_str("a"), see_item, &now, &f.err),
           BELAY_CANCELLED);
    tear_down(&f);
}

static void test_budget(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    trace_budget(f.d, 2);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_n(&f, 4), BELAY_OK); /* many questions, one round trip */
    TAP_EQ(t, commit(&f, 1, 1), BELAY_OK);
    TAP_EQ(t, commit(&f, 1, 1), BELAY_MISUSE);
    TAP_EQ(t, f.err.code, BELAY_MISUSE);
    TAP_STR(t, f.err.reason, "round_trips");
    TAP_EQ(t, f.err.expected, 2);
    TAP_EQ(t, f.err.actual, 3);
    TAP_EQ(t, read_n(&f, 1), BELAY_MISUSE);
    TAP_STR(t, f.err.reason, "round_trips");
    TAP_EQ(t, f.fake->reads, 1);
    TAP_EQ(t, f.fake->commits, 1);
    TAP_EQ(t, trace_counts(f.d).failures, 2);
    driver_end(f.d, f.attempt);

    /* The budget is each attempt's own. */
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_n(&f, 1), BELAY_OK);
    TAP_EQ(t, read_n(&f, 1), BELAY_OK);
    TAP_EQ(t, read_n(&f, 1), BELAY_MISUSE);

    trace_budget(f.d, 0);
    TAP_EQ(t, read_n(&f, 1), BELAY_OK);
    TAP_EQ(t, driver_read(f.d, f.attempt, &(struct read){ 0 }, 1, NULL, NULL),
           BELAY_OK);
    trace_budget(f.d, 1); /* from now on: what this attempt has used counts */
    TAP_EQ(t, read_n(&f, 1), BELAY_MISUSE);
    TAP_EQ(t, driver_read(f.d, f.attempt, &(struct read){ 0 }, 1, NULL, NULL),
           BELAY_MISUSE);
    driver_end(f.d, f.attempt);
    tear_down(&f);
}

static void test_close(struct tap *t)
{
    struct fixture f;
    bool closed = false;

    set_up(t, &f);
    f.fake->closed = &closed;
    tear_down(&f);
    TAP_OK(t, closed);
}

static void test_nests(struct tap *t)
{
    struct fixture f;
    struct driver *outer;

    set_up(t, &f);
    TAP_EQ(t, trace_wrap(&outer, f.d, NULL, NULL, &f.err), BELAY_OK);
    trace_budget(outer, 1);
    f.d = outer;
    free(f.attempt);
    f.attempt = calloc(1, outer->attempt_size);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_n(&f, 2), BELAY_OK);
    TAP_EQ(t, read_n(&f, 2), BELAY_MISUSE);
    driver_end(f.d, f.attempt);
    TAP_STR(t, lines(&f),
            "begin ns=default rc=ok\nread ns=default questions=2 rc=ok\n"
            "end ns=default round_trips=1\n");
    tear_down(&f);
}

/* --- many threads --- */

#define THREADS 4
#define ROUNDS 2000

static belay_rc quiet_begin(struct driver *d, void *attempt, struct bytes ns,
                            struct belay_error *err)
{
    (void)d;
    (void)attempt;
    (void)ns;
    (void)err;
    return BELAY_OK;
}

static belay_rc quiet_read(struct driver *d, void *attempt, struct read *reads,
                           size_t n, struct belay_arena *a, struct belay_error *err)
{
    (void)d;
    (void)attempt;
    (void)reads;
    (void)a;
    return n == 2 ? BELAY_OK : err_set(err, BELAY_UNAVAILABLE, "fake: as told");
}

static void quiet_end(struct driver *d, void *attempt)
{
    (void)d;
    (void)attempt;
}

static void *hammer(void *arg)
{
    struct driver *d = arg;
    struct read reads[2] = { 0 };
    struct belay_arena a = { 0 };
    uintptr_t failed = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        _Alignas(16) unsigned char attempt[512] = { 0 };
        failed += driver_begin(d, attempt, bytes_str("x"), NULL) != BELAY_OK;
        failed += driver_read(d, attempt, reads, 2, &a, NULL) != BELAY_OK;
        failed += driver_read(d, attempt, reads, 1, &a, NULL) != BELAY_OK;
        driver_end(d, attempt);
    }
    return (void *)failed;
}

static void test_threads(struct tap *t)
{
    struct fake *fake = fake_open();
    pthread_t threads[THREADS];
    struct belay_error err;
    struct driver *d;

    fake->ops.begin = quiet_begin;
    fake->ops.read = quiet_read;
    fake->ops.end = quiet_end;
    TAP_EQ(t, trace_wrap(&d, &fake->d, NULL, NULL, &err), BELAY_OK);
    TAP_OK(t, d->attempt_size <= 512);
    for (unsigned i = 0; i < THREADS; i++)
        TAP_EQ(t, pthread_create(&threads[i], NULL, hammer, d), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        TAP_EQ(t, (uintptr_t)failed, ROUNDS);
    }
    struct trace_counts n = trace_counts(d);
    TAP_EQ(t, n.attempts, THREADS * ROUNDS);
    TAP_EQ(t, n.reads, 2 * THREADS * ROUNDS);
    TAP_EQ(t, n.questions, 3 * THREADS * ROUNDS);
    TAP_EQ(t, n.failures, THREADS * ROUNDS);
    driver_close(d);
}

static const struct tap_case cases[] = {
    { "a trace has the caps, hub and durability of what it wraps",
      test_looks_like_inner },
    { "calls reach the inner driver with its own part of the attempt", test_forwards },
    { "a walk passes through, with the visitor's answer", test_walk },
    { "the time is the inner driver's, or the clock's when it has none", test_time },
    { "calls, questions, conflicts and failures are counted, and reset", test_counts },
    { "a line per call tells names, counts and codes, and no values", test_lines },
    { "a namespace cannot forge a line", test_lines_escape },
    { "without a line function nothing is printed", test_no_lines },
    { "a round trip beyond the budget is misuse and stays here", test_budget },
    { "closing the wrapper closes the inner driver", test_close },
    { "traces nest", test_nests },
    { "counts of many threads add up", test_threads },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
