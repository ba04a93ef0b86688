/* The fault decorator: over a driver that writes down what arrives, and over the memory
 * driver, which applies it. */
#include "store/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/drivers/memory.h"
#include "tap.h"

static const struct bytes ns = { (const uint8_t *)"default", 7 };

/* --- the inner driver --- */

struct fake {
    struct driver d;
    struct driver_ops ops;
    pthread_mutex_t mutex;
    struct buf heard; /* one line per call that arrived */
    bool print_plans;
    size_t *closed; /* set at close: how much was heard since the last look */
    belay_rc answer;
};

struct fake_attempt {
    _Alignas(16) unsigned char stamp[33];
};

static struct fake *fake_of(struct driver *d)
{
    return (struct fake *)d;
}

static belay_rc answer(struct fake *f, struct belay_error *err)
{
    return f->answer ? err_set(err, f->answer, "fake: as told") : BELAY_OK;
}

static void hear(struct fake *f, const char *what)
{
    pthread_mutex_lock(&f->mutex);
    buf_append_str(&f->heard, what);
    pthread_mutex_unlock(&f->mutex);
}

static belay_rc fake_begin(struct driver *d, void *attempt, struct bytes name,
                           struct belay_error *err)
{
    struct fake_attempt *own = attempt;

    for (size_t i = 0; i < sizeof(own->stamp); i++) {
        if (own->stamp[i] != 0)
            hear(fake_of(d), "ATTEMPT NOT ZERO ");
    }
    memset(own->stamp, 0x5a, sizeof(own->stamp));
    hear(fake_of(d), bytes_eq(name, ns) ? "begin " : "WRONG NAMESPACE ");
    return answer(fake_of(d), err);
}

static belay_rc fake_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                          struct belay_arena *a, struct belay_error *err)
{
    struct fake_attempt *own = attempt;

    (void)reads;
    (void)n;
    (void)a;
    hear(fake_of(d), own->stamp[32] == 0x5a ? "read " : "NOT BEGUN ");
    return answer(fake_of(d), err);
}

static void print_ref(struct buf *b, const struct row_ref *ref)
{
    buf_printf(b, "%s hash=%llx enc=", ref->type->name, (unsigned long long)ref->hash);
    buf_append_escaped(b, ref->enc);
    for (unsigned i = 0; i < ref->type->n_key; i++) {
        buf_printf(b, " key kind=%d i=%lld b=", (int)ref->key[i].kind,
                   (long long)ref->key[i].i);
        buf_append_escaped(b, ref->key[i].b);
    }
}

static void print_pair(struct buf *b, struct bytes one, struct bytes two)
{
    buf_append_escaped(b, one);
    buf_append_char(b, '/');
    buf_append_escaped(b, two);
}

static void print_row(struct buf *b, const struct effect *e)
{
    print_ref(b, &e->row.ref);
    buf_printf(b, " ver=%lld changed=%llx", (long long)e->row.ver,
               (unsigned long long)e->row.changed);
    for (unsigned i = 0; e->row.v && i < e->row.ref.type->n_columns; i++) {
        const struct value *v = &e->row.v[i];
        buf_printf(b, " %d:%lld:", (int)v->kind, (long long)v->i);
        buf_append_escaped(b, v->b);
    }
}

static void print_effect(struct buf *b, const struct effect *e)
{
    buf_printf(b, "\neffect %d ", (int)e->kind);
    switch (e->kind) {
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
        print_row(b, e);
        break;
    case EFFECT_ADD:
    case EFFECT_RAISE:
        print_ref(b, &e->counter.ref);
        buf_printf(b, " %u %lld %lld %lld", e->counter.column,
                   (long long)e->counter.amount, (long long)e->counter.min,
                   (long long)e->counter.max);
        break;
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE:
        print_pair(b, e->rank.index, e->rank.member);
        buf_printf(b, " %lld %lld", (long long)e->rank.old_rank,
                   (long long)e->rank.rank);
        break;
    case EFFECT_LOG_APPEND:
    case EFFECT_LOG_TRIM:
        print_pair(b, e->log.stream, e->log.data);
        buf_printf(b, " %lld", (long long)e->log.seq);
        break;
    case EFFECT_FEED_APPEND:
    case EFFECT_FEED_TRIM:
        print_pair(b, e->feed.feed, e->feed.data);
        buf_printf(b, " %lld %lld %lld", (long long)e->feed.upto.epoch,
                   (long long)e->feed.upto.major, (long long)e->feed.upto.minor);
        break;
    case EFFECT_CHUNK_PUT:
    case EFFECT_CHUNK_DROP:
        print_pair(b, e->chunk.upload, e->chunk.data);
        buf_printf(b, " %lld", (long long)e->chunk.index);
        break;
    }
}

static void print_plan(struct buf *b, const struct plan *plan)
{
    buf_printf(b, "plan %llu ns=", (unsigned long long)plan->id);
    buf_append_escaped(b, plan->ns);
    for (size_t i = 0; i < plan->n_guards; i++) {
        buf_printf(b, "\nguard ver=%lld ", (long long)plan->guards[i].ver);
        print_ref(b, &plan->guards[i].ref);
    }
    for (size_t i = 0; i < plan->n_effects; i++)
        print_effect(b, &plan->effects[i]);
    buf_append_char(b, '\n');
}

static belay_rc fake_commit(struct driver *d, void *attempt, const struct plan *plan,
                            struct plan_result *result, struct belay_error *err)
{
    struct fake *f = fake_of(d);
    struct fake_attempt *own = attempt;

    if (own->stamp[32] != 0x5a)
        hear(f, "NOT BEGUN ");
    pthread_mutex_lock(&f->mutex);
    if (f->print_plans)
        print_plan(&f->heard, plan);
    else
        buf_printf(&f->heard, "commit%llu ", (unsigned long long)plan->id);
    pthread_mutex_unlock(&f->mutex);
    for (size_t i = 0; i < plan->n_effects; i++)
        result->effects[i] = (struct effect_result){ .known = true, .value = 99 };
    return answer(f, err);
}

static void fake_end(struct driver *d, void *attempt)
{
    (void)attempt;
    hear(fake_of(d), "end ");
}

static belay_rc fake_now_ms(struct driver *d, void *attempt, int64_t *out,
                            struct belay_error *err)
{
    (void)attempt;
    hear(fake_of(d), "now ");
    *out = 4711;
    return answer(fake_of(d), err);
}

static belay_rc fake_walk(struct driver *d, struct bytes name, item_visit *visit,
                          void *arg, struct belay_error *err)
{
    (void)name;
    hear(fake_of(d), "walk ");
    return visit(arg, &(struct item){ .number = 5 }, err);
}

static enum durability fake_durability(struct driver *d)
{
    (void)d;
    return DURABILITY_DURABLE;
}

static void fake_close(struct driver *d)
{
    struct fake *f = fake_of(d);

    if (f->closed)
        *f->closed = f->heard.len;
    pthread_mutex_destroy(&f->mutex);
    buf_release(&f->heard);
    free(f);
}

static struct fake *fake_open(void)
{
    struct fake *f = calloc(1, sizeof(*f));

    if (!f)
        abort();
    pthread_mutex_init(&f->mutex, NULL);
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

/* --- a clock that only counts how long it slept --- */

static int64_t zero(void *arg)
{
    (void)arg;
    return 0;
}

static void sleep_us(void *arg, int64_t us)
{
    atomic_fetch_add((_Atomic int64_t *)arg, us);
}

/* --- a faulty driver over one of them --- */

struct fixture {
    struct fake *fake; /* NULL: over memory */
    struct driver *d;
    void *attempt;
    _Atomic int64_t slept_us;
    struct plan_result result;
    struct effect_result results[16];
    struct belay_error err;
};

static void wrap(struct tap *t, struct fixture *f, struct driver *inner)
{
    struct belay_clock clock = {
        .wall_ms = zero, .mono_us = zero, .sleep_us = sleep_us, .arg = &f->slept_us
    };

    TAP_EQ(t, fault_wrap(&f->d, inner, &clock, &f->err), BELAY_OK);
    memset(&clock, 0, sizeof(clock)); /* it is copied */
    f->attempt = calloc(1, f->d->attempt_size);
    if (!f->attempt)
        abort();
}

static void set_up(struct tap *t, struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->fake = fake_open();
    wrap(t, f, &f->fake->d);
}

static void set_up_memory(struct tap *t, struct fixture *f)
{
    struct driver_config config = { .schema = &schema_belay,
                                    .clock = clock_system(),
                                    .random = random_system() };
    struct driver *inner = NULL;

    memset(f, 0, sizeof(*f));
    TAP_EQ(t, memory_open(&inner, &config, &f->err), BELAY_OK);
    wrap(t, f, inner);
}

static void tear_down(struct fixture *f)
{
    driver_close(f->d);
    free(f->attempt);
}

/* What arrived since the last call. */
static const char *heard(struct fixture *f)
{
    static char text[1024];
    struct buf *b = &f->fake->heard;
    size_t len = b->len < sizeof(text) - 1 ? b->len : sizeof(text) - 1;

    if (len > 0)
        memcpy(text, b->ptr, len);
    text[len] = '\0';
    buf_reset(b);
    return text;
}

static void arm(struct tap *t, struct fixture *f, struct fault fault)
{
    TAP_EQ(t, fault_arm(f->d, &fault, &f->err), BELAY_OK);
}

static belay_rc begin(struct fixture *f)
{
    memset(f->attempt, 0, f->d->attempt_size);
    return driver_begin(f->d, f->attempt, ns, &f->err);
}

static belay_rc read_one(struct fixture *f)
{
    struct read read = { .kind = READ_CHUNK };
    struct belay_arena a = { 0 };

    return driver_read(f->d, f->attempt, &read, 1, &a, &f->err);
}

static belay_rc commit_plan(struct fixture *f, const struct plan *plan)
{
    f->result = (struct plan_result){ .effects = f->results };
    return driver_commit(f->d, f->attempt, plan, &f->result, &f->err);
}

/* A plan that is only told apart by its number. */
static belay_rc commit(struct fixture *f, uint64_t id)
{
    struct effect effect = { .kind = EFFECT_FEED_APPEND,
                             .feed = { .feed = bytes_str("f"),
                                       .data = bytes_str("d") } };
    struct plan plan = { .id = id, .ns = ns, .effects = &effect, .n_effects = 1 };

    return commit_plan(f, &plan);
}

static void end(struct fixture *f)
{
    driver_end(f->d, f->attempt);
}

/* --- cases: the wrapper --- */

static void test_looks_like_inner(struct tap *t)
{
    struct fixture f;
    size_t closed = 1;

    set_up(t, &f);
    f.fake->closed = &closed;
    TAP_EQ(t, f.d->caps, DRIVER_SNAPSHOT | DRIVER_LOSES_REPLIES);
    TAP_EQ(t, f.d->ops->caps, f.d->caps);
    TAP_OK(t, f.d->hub == f.fake->d.hub);
    TAP_EQ(t, f.d->attempt_size, f.d->ops->attempt_size);
    TAP_OK(t, f.d->attempt_size > sizeof(struct fake_attempt));
    TAP_EQ(t, driver_durability(f.d), DURABILITY_DURABLE);
    TAP_EQ(t, fault_count(f.d), 0);
    TAP_EQ(t, fault_under_way(f.d), 0);
    tear_down(&f);
    TAP_EQ(t, closed, 0);
}

static belay_rc see_item(void *arg, const struct item *item, struct belay_error *err)
{
    (void)err;
    *(int64_t *)arg = item->number;
    return BELAY_OK;
}

static int64_t wall_ms(void *arg)
{
    (void)arg;
    return 12;
}

static void test_passes_everything(struct tap *t)
{
    struct belay_clock clock = { .wall_ms = wall_ms };
    struct fixture f;
    int64_t seen = 0, now = 0;

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_OK);
    TAP_EQ(t, f.results[0].value, 99);
    end(&f);
    TAP_EQ(t, driver_walk(f.d, ns, see_item, &seen, &f.err), BELAY_OK);
    TAP_EQ(t, seen, 5);
    TAP_STR(t, heard(&f), "begin read commit1 end walk ");
    TAP_EQ(t, driver_now_ms(f.d, f.attempt, &clock, &now, &f.err), BELAY_OK);
    TAP_EQ(t, now, 12);
    f.fake->answer = BELAY_POISONED;
    TAP_EQ(t, begin(&f), BELAY_POISONED);
    TAP_STR(t, f.err.message, "fake: as told");
    TAP_EQ(t, fault_count(f.d), 0);
    tear_down(&f);

    struct fake *fake = fake_open();
    fake->ops.now_ms = fake_now_ms;
    memset(&f, 0, sizeof(f));
    f.fake = fake;
    wrap(t, &f, &fake->d);
    TAP_EQ(t, driver_now_ms(f.d, f.attempt, &clock, &now, &f.err), BELAY_OK);
    TAP_EQ(t, now, 4711);
    TAP_STR(t, heard(&f), "now ");
    tear_down(&f);
}

static void test_invalid(struct tap *t)
{
    static const enum fault_kind of_commit[] = { FAULT_CONFLICT, FAULT_LOST,
                                                 FAULT_AFTER, FAULT_LATE };
    struct fixture f;

    set_up(t, &f);
    for (size_t i = 0; i < COUNT_OF(of_commit); i++) {
        struct fault fault = { .op = FAULT_ON_BEGIN, .kind = of_commit[i], .nth = 1 };
        TAP_EQ(t, fault_arm(f.d, &fault, &f.err), BELAY_INVALID);
        TAP_EQ(t, f.err.code, BELAY_INVALID);
        fault.op = FAULT_ON_READ;
        TAP_EQ(t, fault_arm(f.d, &fault, NULL), BELAY_INVALID);
    }
    struct fault fault = { .op = FAULT_ON_COMMIT, .kind = FAULT_BEFORE };
    TAP_EQ(t, fault_arm(f.d, &fault, &f.err), BELAY_INVALID); /* the 0th call */
    fault = (struct fault){ .kind = FAULT_DELAY, .nth = 1, .delay_us = -1 };
    TAP_EQ(t, fault_arm(f.d, &fault, &f.err), BELAY_INVALID);
    fault = (struct fault){ .kind = FAULT_BEFORE, .nth = 1 };
    memset(&fault.op, 0x7f, sizeof(fault.op));
    TAP_EQ(t, fault_arm(f.d, &fault, &f.err), BELAY_INVALID);
    fault = (struct fault){ .op = FAULT_ON_READ, .nth = 1 };
    memset(&fault.kind, 0x7f, sizeof(fault.kind));
    TAP_EQ(t, fault_arm(f.d, &fault, &f.err), BELAY_INVALID);

    TAP_EQ(t, begin(&f), BELAY_OK); /* none of them is armed */
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_OK);
    TAP_EQ(t, fault_count(f.d), 0);
    tear_down(&f);
}

/* --- cases: what each kind does --- */

static void test_before(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_BEGIN, FAULT_BEFORE, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_UNAVAILABLE);
    TAP_EQ(t, f.err.code, BELAY_UNAVAILABLE);
    TAP_OK(t, f.err.message[0] && !strchr(f.err.message, '\n'));
    end(&f); /* of an attempt that the inner driver never saw */
    TAP_STR(t, heard(&f), "");

    TAP_EQ(t, begin(&f), BELAY_OK);
    arm(t, &f, (struct fault){ FAULT_ON_READ, FAULT_BEFORE, 1, false, 0, 0 });
    TAP_EQ(t, read_one(&f), BELAY_UNAVAILABLE);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_BEFORE, 1, false, 0, 0 });
    TAP_EQ(t, commit(&f, 1), BELAY_UNAVAILABLE);
    TAP_OK(t, !f.result.conflict);
    end(&f);
    TAP_STR(t, heard(&f), "begin end ");
    TAP_EQ(t, fault_count(f.d), 3);
    tear_down(&f);
}

static void test_conflict(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_CONFLICT, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    f.results[0].value = -1;
    TAP_EQ(t, commit(&f, 1), BELAY_OK);
    TAP_OK(t, f.result.conflict);
    TAP_EQ(t, f.result.failed_guard, 0);
    TAP_EQ(t, f.results[0].value, -1);
    TAP_STR(t, heard(&f), "begin ");
    TAP_EQ(t, commit(&f, 2), BELAY_OK);
    TAP_OK(t, !f.result.conflict);
    TAP_STR(t, heard(&f), "commit2 ");
    tear_down(&f);
}

static void test_delay(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_BEGIN, FAULT_DELAY, 1, false, 100, 0 });
    arm(t, &f, (struct fault){ FAULT_ON_READ, FAULT_DELAY, 1, false, 20, 0 });
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_DELAY, 1, false, 3, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, f.slept_us, 100);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_EQ(t, f.slept_us, 120);
    TAP_EQ(t, commit(&f, 1), BELAY_OK);
    TAP_EQ(t, f.slept_us, 123);
    TAP_EQ(t, f.results[0].value, 99);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_EQ(t, f.slept_us, 123);
    TAP_STR(t, heard(&f), "begin read commit1 read ");
    TAP_EQ(t, fault_count(f.d), 3);
    tear_down(&f);
}

static void test_lost(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LOST, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, f.err.code, BELAY_UNKNOWN_OUTCOME);
    end(&f);
    TAP_EQ(t, fault_under_way(f.d), 0);
    fault_clear(f.d);
    TAP_STR(t, heard(&f), "begin end ");
    tear_down(&f);
}

static void test_after(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_AFTER, 1, true, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, f.err.code, BELAY_UNKNOWN_OUTCOME);
    TAP_OK(t, !f.results[0].known); /* the reply did not come through */
    TAP_EQ(t, f.results[0].value, 0);
    TAP_STR(t, heard(&f), "begin commit1 ");

    f.fake->answer = BELAY_CORRUPT; /* nor does its failure */
    TAP_EQ(t, commit(&f, 2), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, f.err.code, BELAY_UNKNOWN_OUTCOME);
    TAP_STR(t, heard(&f), "commit2 ");
    tear_down(&f);
}

static void test_late(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    for (unsigned late_calls = 0; late_calls < 4; late_calls++) {
        arm(t, &f,
            (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, late_calls });
        TAP_EQ(t, begin(&f), BELAY_OK);
        TAP_EQ(t, commit(&f, 8), BELAY_UNKNOWN_OUTCOME);
        TAP_EQ(t, f.err.code, BELAY_UNKNOWN_OUTCOME);
        TAP_EQ(t, fault_under_way(f.d), 1);
        end(&f);
        TAP_STR(t, heard(&f), "begin end ");

        TAP_EQ(t, begin(&f), BELAY_OK);
        TAP_STR(t, heard(&f), late_calls == 0 ? "begin commit8 end begin " : "begin ");
        TAP_EQ(t, read_one(&f), BELAY_OK);
        TAP_STR(t, heard(&f), late_calls == 1 ? "begin commit8 end read " : "read ");
        TAP_EQ(t, commit(&f, 9), BELAY_OK);
        TAP_STR(t, heard(&f),
                late_calls == 2 ? "begin commit8 end commit9 " : "commit9 ");
        end(&f);
        TAP_EQ(t, fault_under_way(f.d), late_calls == 3);
        int64_t seen;
        TAP_EQ(t, driver_walk(f.d, ns, see_item, &seen, &f.err), BELAY_OK);
        TAP_STR(t, heard(&f),
                late_calls == 3 ? "end begin commit8 end walk " : "end walk ");
        TAP_EQ(t, fault_under_way(f.d), 0);
    }
    TAP_EQ(t, fault_count(f.d), 4);
    tear_down(&f);
}

static void test_late_time(struct tap *t)
{
    struct fixture f = { .fake = fake_open() };
    struct belay_clock clock = { .wall_ms = wall_ms };
    int64_t now;

    f.fake->ops.now_ms = fake_now_ms;
    wrap(t, &f, &f.fake->d);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 8), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, driver_now_ms(f.d, f.attempt, &clock, &now, &f.err), BELAY_OK);
    TAP_STR(t, heard(&f), "begin begin commit8 end now ");
    tear_down(&f);
}

static void test_late_order(struct tap *t)
{
    struct fixture f;
    size_t closed = 1;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, true, 0, 3 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, commit(&f, 2), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, commit(&f, 3), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, fault_under_way(f.d), 3);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_STR(t, heard(&f), "begin read ");
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_STR(t, heard(&f), "begin commit1 end read ");

    /* Clearing lets the others arrive, in their order, and stops the fault. */
    fault_clear(f.d);
    TAP_STR(t, heard(&f), "begin commit2 end begin commit3 end ");
    TAP_EQ(t, fault_under_way(f.d), 0);
    TAP_EQ(t, commit(&f, 4), BELAY_OK);
    TAP_EQ(t, fault_count(f.d), 3);

    /* Closing does not. */
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 0 });
    TAP_EQ(t, commit(&f, 5), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, fault_under_way(f.d), 1);
    TAP_STR(t, heard(&f), "commit4 ");
    f.fake->closed = &closed;
    tear_down(&f);
    TAP_EQ(t, closed, 0);
}

/* --- cases: a late commit is a copy --- */

/* One effect of each kind, every pointer into the arena. */
static struct plan *full_plan(struct tap *t, struct belay_arena *a)
{
    struct value *key = arena_zalloc(a, 1, sizeof(*key));
    struct value *v = arena_zalloc(a, BLOB_COLUMNS, sizeof(*v));
    struct guard *guards = arena_zalloc(a, 2, sizeof(*guards));
    struct effect *effects = arena_zalloc(a, 16, sizeof(*effects));
    struct plan *plan = arena_zalloc(a, 1, sizeof(*plan));
    struct row_ref ref, clock;
    struct bytes name, data;

    if (!key || !v || !guards || !effects || !plan ||
        !arena_copy(a, bytes_str("some name"), &name) ||
        !arena_copy(a, bytes_of("a\0b\xff", 4), &data))
        abort();
    key[0] = value_text(name);
    TAP_EQ(t, row_ref_make(&ref, &row_blob, key, a, NULL), BELAY_OK);
    TAP_EQ(t, row_ref_make(&clock, &row_clock, NULL, a, NULL), BELAY_OK);
    v[BLOB_SHA256] = key[0];
    v[BLOB_UPLOAD] = value_bytes(data);
    v[BLOB_SIZE] = value_i64(-7);
    v[BLOB_DESCRIPTOR] = value_json(name);
    guards[0] = (struct guard){ .ref = ref, .ver = 17 };
    guards[1] = (struct guard){ .ref = clock };
    *plan = (struct plan){
        .id = 31, .guards = guards, .n_guards = 2, .effects = effects, .n_effects = 14
    };
    if (!arena_copy(a, ns, &plan->ns))
        abort();
    for (unsigned kind = EFFECT_INSERT; kind <= EFFECT_CHUNK_DROP; kind++) {
        struct effect *e = &effects[kind];
        e->kind = (enum effect_kind)kind;
        if (kind <= EFFECT_DELETE) {
            e->row.ref = ref;
            e->row.ver = 18;
            e->row.v = kind == EFFECT_DELETE ? NULL : v;
            e->row.changed = 6;
        } else if (kind <= EFFECT_RAISE) {
            e->counter.ref = kind == EFFECT_ADD ? clock : ref;
            e->counter.column = 1;
            e->counter.amount = 2;
            e->counter.min = -3;
            e->counter.max = 4;
        } else if (kind <= EFFECT_RANK_REMOVE) {
            e->rank.index = name;
            e->rank.member = data;
            e->rank.old_rank = 5;
            e->rank.rank = 6;
        } else if (kind <= EFFECT_LOG_TRIM) {
            e->log.stream = name;
            e->log.seq = 8;
            e->log.data = kind == EFFECT_LOG_APPEND ? data : bytes_of(NULL, 0);
        } else if (kind <= EFFECT_FEED_TRIM) {
            e->feed.feed = name;
            e->feed.data = data;
            e->feed.upto = (struct feed_pos){ 1, 2, 3 };
        } else {
            e->chunk.upload = name;
            e->chunk.index = 9;
            e->chunk.data = data;
        }
    }
    return plan;
}

static void test_late_copy(struct tap *t)
{
    CLEANUP(buf_release) struct buf want = { 0 };
    struct belay_arena a = { 0 };
    struct fixture f;

    set_up(t, &f);
    const struct plan *plan = full_plan(t, &a);
    buf_append_str(&want, "begin end begin ");
    print_plan(&want, plan);
    buf_append_str(&want, "end ");

    f.fake->print_plans = true;
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit_plan(&f, plan), BELAY_UNKNOWN_OUTCOME);
    end(&f);
    arena_release(&a); /* the caller and all it had is gone */
    memset(f.attempt, 0xff, f.d->attempt_size);
    fault_clear(f.d);
    TAP_OK(t, bytes_eq(buf_view(&f.fake->heard), buf_view(&want)));
    TAP_OK(t, !want.failed && want.len > 1000);
    tear_down(&f);
}

static void test_late_no_memory(struct tap *t)
{
    struct effect effect = { .kind = EFFECT_CHUNK_PUT };
    struct plan plan = { .id = 1, .ns = ns, .effects = &effect, .n_effects = 1 };
    struct fixture f;

    set_up(t, &f);
    effect.chunk.upload = bytes_str("u");
    effect.chunk.data = bytes_of("", SIZE_MAX); /* nothing can hold a copy of this */
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit_plan(&f, &plan), BELAY_NO_MEMORY);
    TAP_EQ(t, f.err.code, BELAY_NO_MEMORY);
    TAP_EQ(t, fault_under_way(f.d), 0);
    fault_clear(f.d);
    TAP_STR(t, heard(&f), "begin ");
    tear_down(&f);
}

/* The late commit's begin may fail as well; then nothing of it arrives. */
static void test_late_refused(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 0 });
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_UNKNOWN_OUTCOME);
    f.fake->answer = BELAY_UNAVAILABLE;
    fault_clear(f.d);
    TAP_STR(t, heard(&f), "begin begin ");
    TAP_EQ(t, fault_under_way(f.d), 0);
    tear_down(&f);
}

/* --- cases: which call --- */

static void test_nth(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    for (unsigned nth = 1; nth <= 3; nth++) {
        arm(t, &f, (struct fault){ FAULT_ON_READ, FAULT_BEFORE, nth, false, 0, 0 });
        for (unsigned i = 1; i <= 5; i++) {
            TAP_EQ(t, read_one(&f), i == nth ? BELAY_UNAVAILABLE : BELAY_OK);
            TAP_EQ(t, commit(&f, i), BELAY_OK); /* other calls do not count */
        }
        arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_CONFLICT, nth, false, 0, 0 });
        for (unsigned i = 1; i <= 5; i++) {
            TAP_EQ(t, commit(&f, i), BELAY_OK);
            TAP_EQ(t, f.result.conflict, i == nth);
        }
        arm(t, &f, (struct fault){ FAULT_ON_BEGIN, FAULT_BEFORE, nth, false, 0, 0 });
        for (unsigned i = 1; i <= 5; i++)
            TAP_EQ(t, begin(&f), i == nth ? BELAY_UNAVAILABLE : BELAY_OK);
    }
    TAP_EQ(t, fault_count(f.d), 9);
    tear_down(&f);
}

static void test_sticky(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    arm(t, &f, (struct fault){ FAULT_ON_READ, FAULT_BEFORE, 3, true, 0, 0 });
    for (unsigned i = 1; i <= 10; i++)
        TAP_EQ(t, read_one(&f), i >= 3 ? BELAY_UNAVAILABLE : BELAY_OK);
    TAP_EQ(t, commit(&f, 1), BELAY_OK);
    TAP_EQ(t, fault_count(f.d), 8);
    fault_clear(f.d);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    TAP_EQ(t, fault_count(f.d), 8);
    tear_down(&f);
}

static void test_first_armed(struct tap *t)
{
    struct fixture f;

    set_up(t, &f);
    TAP_EQ(t, begin(&f), BELAY_OK);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_CONFLICT, 2, false, 0, 0 });
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LOST, 2, false, 0, 0 });
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_BEFORE, 2, true, 0, 0 });
    TAP_EQ(t, commit(&f, 1), BELAY_OK);
    TAP_OK(t, !f.result.conflict);
    TAP_EQ(t, commit(&f, 2), BELAY_OK);
    TAP_OK(t, f.result.conflict);
    TAP_EQ(t, commit(&f, 3), BELAY_UNAVAILABLE); /* the lost one has missed its call */
    TAP_EQ(t, commit(&f, 4), BELAY_UNAVAILABLE);
    TAP_EQ(t, fault_count(f.d), 3);

    /* A call that a fault takes is still a call for the others. */
    fault_clear(f.d);
    arm(t, &f, (struct fault){ FAULT_ON_READ, FAULT_BEFORE, 1, false, 0, 0 });
    arm(t, &f, (struct fault){ FAULT_ON_READ, FAULT_BEFORE, 2, false, 0, 0 });
    TAP_EQ(t, read_one(&f), BELAY_UNAVAILABLE);
    TAP_EQ(t, read_one(&f), BELAY_UNAVAILABLE);
    TAP_EQ(t, read_one(&f), BELAY_OK);
    tear_down(&f);
}

/* --- cases: over a driver that applies --- */

static belay_rc insert_upload(struct fixture *f, const char *id)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct value v[UPLOAD_COLUMNS] = { value_str(id), value_i64(0), value_i64(1) };
    struct guard guard = { .ver = 0 };
    struct effect effect = { .kind = EFFECT_INSERT };
    struct plan plan = { 1, ns, &guard, 1, NULL, 0, &effect, 1, NULL };

    if (row_ref_make(&guard.ref, &row_upload, v, &a, NULL))
        abort();
    effect.row.ref = guard.ref;
    effect.row.ver = 5;
    effect.row.v = v;
    if (begin(f))
        abort();
    belay_rc rc = commit_plan(f, &plan);
    end(f);
    return rc;
}

static belay_rc count_row(void *arg, const struct item *item, struct belay_error *err)
{
    (void)err;
    *(unsigned *)arg += item->kind == ITEM_ROW;
    return BELAY_OK;
}

/* Asked behind the decorator's back, so that it is no call. */
static unsigned rows(struct tap *t, struct driver *inner)
{
    unsigned n = 0;

    TAP_EQ(t, driver_walk(inner, ns, count_row, &n, NULL), BELAY_OK);
    return n;
}

static void test_on_memory(struct tap *t)
{
    struct driver_config config = { .schema = &schema_belay,
                                    .clock = clock_system(),
                                    .random = random_system() };
    struct driver *inner = NULL;
    struct fixture f;

    memset(&f, 0, sizeof(f));
    TAP_EQ(t, memory_open(&inner, &config, &f.err), BELAY_OK);
    wrap(t, &f, inner);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LOST, 1, false, 0, 0 });
    TAP_EQ(t, insert_upload(&f, "lost"), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, rows(t, inner), 0);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_AFTER, 1, false, 0, 0 });
    TAP_EQ(t, insert_upload(&f, "after"), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, rows(t, inner), 1);
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_CONFLICT, 1, false, 0, 0 });
    TAP_EQ(t, insert_upload(&f, "conflict"), BELAY_OK);
    TAP_OK(t, f.result.conflict);
    TAP_EQ(t, rows(t, inner), 1);

    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 9 });
    TAP_EQ(t, insert_upload(&f, "late"), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, rows(t, inner), 1);
    fault_clear(f.d);
    TAP_EQ(t, rows(t, inner), 2);

    /* What comes too late for its guards does nothing. */
    arm(t, &f, (struct fault){ FAULT_ON_COMMIT, FAULT_LATE, 1, false, 0, 9 });
    TAP_EQ(t, insert_upload(&f, "raced"), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, insert_upload(&f, "raced"), BELAY_OK);
    TAP_OK(t, !f.result.conflict);
    TAP_EQ(t, rows(t, inner), 3);
    fault_clear(f.d);
    TAP_EQ(t, rows(t, inner), 3);
    tear_down(&f);
}

/* --- many threads --- */

#define THREADS 4
#define ROUNDS 500

static void *hammer(void *arg)
{
    struct driver *d = arg;
    struct effect effect = { .kind = EFFECT_FEED_APPEND,
                             .feed = { .feed = bytes_str("f"),
                                       .data = bytes_str("d") } };
    struct plan plan = { .id = 1, .ns = ns, .effects = &effect, .n_effects = 1 };
    struct fault late = { FAULT_ON_COMMIT, FAULT_LATE, 2, false, 0, 5 };

    for (unsigned i = 0; i < ROUNDS; i++) {
        _Alignas(16) unsigned char attempt[512] = { 0 };
        struct effect_result results[1];
        struct plan_result result = { .effects = results };
        belay_rc rc = driver_begin(d, attempt, ns, NULL);
        if (rc == BELAY_OK)
            rc = driver_commit(d, attempt, &plan, &result, NULL);
        driver_end(d, attempt);
        if (i % 8 == 0 && fault_arm(d, &late, NULL))
            abort();
        if (rc != BELAY_OK && rc != BELAY_UNKNOWN_OUTCOME)
            abort();
    }
    return NULL;
}

static belay_rc count_feed(void *arg, const struct item *item, struct belay_error *err)
{
    (void)err;
    *(unsigned *)arg += item->kind == ITEM_FEED;
    return BELAY_OK;
}

static void test_threads(struct tap *t)
{
    pthread_t threads[THREADS];
    struct fixture f;
    unsigned n = 0;

    set_up_memory(t, &f);
    TAP_OK(t, f.d->attempt_size <= 512);
    for (unsigned i = 0; i < THREADS; i++)
        TAP_EQ(t, pthread_create(&threads[i], NULL, hammer, f.d), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fault_clear(f.d);
    TAP_EQ(t, fault_under_way(f.d), 0);
    TAP_OK(t, fault_count(f.d) > 0);
    TAP_EQ(t, driver_walk(f.d, ns, count_feed, &n, &f.err), BELAY_OK);
    TAP_EQ(t, n, THREADS * ROUNDS); /* each arrived, once */
    tear_down(&f);
}

static const struct tap_case cases[] = {
    { "it looks like what it wraps, says that it loses replies, and closes it",
      test_looks_like_inner },
    { "without faults everything passes", test_passes_everything },
    { "a kind that the operation cannot have is invalid", test_invalid },
    { "before: unavailable, and the inner driver is not called", test_before },
    { "conflict: on guard 0, and the inner driver is not called", test_conflict },
    { "delay: the clock's sleep, then the call as usual", test_delay },
    { "lost: unknown outcome, and the commit never arrives", test_lost },
    { "after: unknown outcome, and the commit has arrived", test_after },
    { "late: the commit arrives before the n+1-th following call", test_late },
    { "late: asking for the time is a following call", test_late_time },
    { "late commits arrive in order, at clear at the latest, and not at close",
      test_late_order },
    { "a late commit is a copy of the whole plan", test_late_copy },
    { "a late commit that cannot be copied is not sent", test_late_no_memory },
    { "a late commit that is refused is dropped", test_late_refused },
    { "a fault acts once, on the n-th call of its operation from arming", test_nth },
    { "a sticky fault acts on every call from the n-th on", test_sticky },
    { "of faults on the same call the one armed first acts", test_first_armed },
    { "what a fault says about the store is true of the store", test_on_memory },
    { "many threads: late commits arrive exactly once", test_threads },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
