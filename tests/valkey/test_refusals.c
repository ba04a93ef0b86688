/* Plans that the server itself refuses in the middle: what it did of them before is taken
 * back. */
#include <stdlib.h>

#include "vk.h"

struct place {
    struct harness h;
    struct raw r;
    char base[REDIS_PREFIX_MAX + 16]; /* of the namespace's keys */
    int64_t a, b;                     /* versions of two rows */
};

static bool open_place(struct place *p, struct tap *t)
{
    char prefix[REDIS_PREFIX_MAX];

    vk_setup_reset(redis_test_url());
    if (!harness_open(&p->h, t, 0))
        return false;
    redis_test_prefix(p->h.dir, prefix);
    (void)snprintf(p->base, sizeof(p->base), "%s:{default}", prefix);
    thing_set(&p->h, "a", 1);
    thing_set(&p->h, "b", 2);
    if (!raw_begin(&p->r, &p->h))
        return false;
    p->a = raw_ver(&p->r, "a");
    p->b = raw_ver(&p->r, "b");
    return TAP_OK(t, p->a > 0 && p->b > 0);
}

static void close_place(struct place *p)
{
    raw_end(&p->r);
    harness_close(&p->h);
}

static void raise_row(struct raw *r, const char *id, int64_t ver)
{
    raw_guard(r, id, ver);
    raw_put(r, id, ver + 1, 0);
    r->effects[r->plan.n_effects - 1].row.changed = 0;
}

/* What the server says of a key of the namespace: a version, a number of entries ... */
static int64_t number(redisReply *r)
{
    int64_t n = -1;

    if (r && r->type == REDIS_REPLY_STRING)
        n = strtoll(r->str, NULL, 10);
    else if (r && r->type == REDIS_REPLY_INTEGER)
        n = r->integer;
    freeReplyObject(r);
    return n;
}

static int64_t version(const struct place *p, const char *id)
{
    return number(
        redis_test_ask(redis_test_url(), "HGET %s:r:thing:%s ver", p->base, id));
}

static int64_t ask(const struct place *p, const char *command, const char *key)
{
    return number(redis_test_ask(redis_test_url(), "%s %s:%s", command, p->base, key));
}

/* A plan that raises both rows and lets a member enter two indexes, then an entry. */
static void commit_refused(struct place *p, int64_t seq)
{
    raise_row(&p->r, "a", p->a);
    raise_row(&p->r, "b", p->b);
    raw_rank(&p->r, EFFECT_RANK_ADD, "first", "m", 0, 1);
    raw_rank(&p->r, EFFECT_RANK_ADD, "second", "m", 0, 1);
    raw_log(&p->r, "stream", seq);
    CHECK_RC(&p->h, raw_commit(&p->r), BELAY_CORRUPT);
    TAP_EQ(p->h.t, version(p, "a"), p->a);
    TAP_EQ(p->h.t, ask(p, "EXISTS", "z:first"), 0);
}

static void an_index_of_another_type(struct tap *t)
{
    struct place p = { .a = 0 };

    if (open_place(&p, t)) {
        TAP_OK(t, redis_test_run(redis_test_url(), "SET %s:z:second x", p.base));
        commit_refused(&p, 1);
        TAP_EQ(t, version(&p, "b"), p.b);
        TAP_EQ(t, ask(&p, "EXISTS", "l:stream"), 0);
        TAP_OK(t, redis_test_run(redis_test_url(), "DEL %s:z:second", p.base));
    }
    close_place(&p);
}

static void a_version_that_is_no_number(struct tap *t)
{
    struct place p = { .a = 0 };

    if (open_place(&p, t)) {
        TAP_OK(t, redis_test_run(redis_test_url(), "HSET %s:r:thing:b ver x", p.base));
        commit_refused(&p, 1);
        TAP_EQ(t, ask(&p, "EXISTS", "l:stream"), 0);
    }
    close_place(&p);
}

/* As many entries as the number before, and the last one is not it. */
static void a_log_with_an_entry_of_nobody(struct tap *t)
{
    struct place p = { .a = 0 };

    if (open_place(&p, t)) {
        TAP_OK(t, redis_test_run(redis_test_url(), "XADD %s:l:stream 9-1 d x", p.base));
        commit_refused(&p, 2);
        TAP_EQ(t, version(&p, "b"), p.b);
        TAP_EQ(t, ask(&p, "EXISTS", "z:second"), 0);
        TAP_EQ(t, ask(&p, "XLEN", "l:stream"), 1);
    }
    close_place(&p);
}

/* The one item of a plan goes into a feed that is none: a new one, or one that had items. */
static void a_feed_of_another_type(struct tap *t)
{
    struct place p = { .a = 0 };

    if (open_place(&p, t)) {
        raw_feed(&p.r, "other", "1");
        CHECK_RC(&p.h, raw_commit(&p.r), BELAY_OK);
        TAP_OK(t, redis_test_run(redis_test_url(), "SET %s:f:new x", p.base));
        TAP_OK(t, redis_test_run(redis_test_url(), "SET %s:f:other x", p.base));
        static const char *const feeds[] = { "new", "other" };
        for (size_t i = 0; i < COUNT_OF(feeds); i++) {
            raise_row(&p.r, "a", p.a);
            raw_rank(&p.r, EFFECT_RANK_ADD, "first", "m", 0, 1);
            raw_feed(&p.r, feeds[i], "2");
            CHECK_RC(&p.h, raw_commit(&p.r), BELAY_CORRUPT);
            TAP_EQ(t, version(&p, "a"), p.a);
            TAP_EQ(t, ask(&p, "EXISTS", "z:first"), 0);
        }
        TAP_EQ(t, ask(&p, "HLEN", "feeds"), 1);
        TAP_EQ(t,
               number(redis_test_ask(redis_test_url(), "HGET %s:feeds other", p.base)),
               1);
        TAP_OK(t, redis_test_run(redis_test_url(), "DEL %s:f:new", p.base));
        raw_feed(&p.r, "new", "2");
        CHECK_RC(&p.h, raw_commit(&p.r), BELAY_OK); /* it was only that */
        TAP_EQ(t, ask(&p, "XLEN", "f:new"), 1);
    }
    close_place(&p);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "refusals: an index that is none", an_index_of_another_type },
        { "refusals: a version that is no number", a_version_that_is_no_number },
        { "refusals: a log with an entry of nobody", a_log_with_an_entry_of_nobody },
        { "refusals: a feed that is none", a_feed_of_another_type },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&vk_driver, argc, argv);
}
