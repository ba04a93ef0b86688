/* How long a call takes at most when others keep the connections. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "limits.h"
#include "pg.h"

#define TIMEOUT_MS 600

static const struct bytes jobs = { (const uint8_t *)"jobs", 4 };

static int64_t now_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg) / 1000;
}

static belay_rc fill(struct txn *t, void *arg)
{
    const char *const ids[] = { "a", "b", "c", "d", "e", "f" };
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (size_t i = 0; i < COUNT_OF(ids) && rc == BELAY_OK; i++) {
        rc = txn_rank_add(t, jobs, (int64_t)i, bytes_str(ids[i]));
        rc = rc ? rc : thing_insert(t, ids[i], 0);
    }
    return rc;
}

static struct scan job_scan(size_t limit, const struct fetch *fetch)
{
    return (struct scan){ .indexes = &jobs,
                          .n_indexes = 1,
                          .max_rank = RANK_MAX,
                          .limit = limit,
                          .fetch = fetch,
                          .n_fetch = fetch ? 1 : 0 };
}

static belay_rc hold_one(struct raw *r, size_t *n)
{
    struct scan scan = job_scan(1, NULL);
    struct read q = { .kind = READ_RANK, .rank = { .scan = &scan, .hold = true } };
    belay_rc rc = raw_read(r, &q);

    *n = rc ? 0 : q.rank.out.n;
    return rc;
}

/* --- the pool --- */

static bool open_with_pool(struct harness *h, struct tap *t, unsigned pool)
{
    pg_setup_reset(pg_test_url());
    pg_setup.options.pool = pool;
    pg_setup.options.request_timeout_ms = 300;
    if (!harness_open(h, t, HARNESS_REAL_TIME))
        return false;
    return CHECK_RC(h, harness_run(h, fill, NULL), BELAY_OK);
}

/* What others hold is not waited for any longer than a request may take. */
static void waits_for_its_turn(struct tap *t)
{
    for (unsigned pool = 1; pool <= 3; pool++) {
        unsigned holders = pool > 1 ? pool - 1 : 1;
        CLEANUP(harness_close) struct harness h;
        struct raw holder[2], late;
        size_t n = 0;

        if (!open_with_pool(&h, t, pool))
            return;
        for (unsigned i = 0; i < holders; i++) {
            raw_begin(&holder[i], &h);
            CHECK_RC(&h, hold_one(&holder[i], &n), BELAY_OK);
            TAP_EQ(t, n, 1);
        }
        raw_begin(&late, &h);
        int64_t began = now_ms();
        CHECK_RC(&h, hold_one(&late, &n), BELAY_UNAVAILABLE);
        TAP_STR(t, late.err.reason, "pool");
        TAP_OK(t, now_ms() - began >= 290 && now_ms() - began < 3000);
        raw_end(&late);

        thing_set(&h, "meanwhile", 1); /* one is left for those who do not hold */
        raw_end(&holder[0]);
        raw_begin(&late, &h);
        CHECK_RC(&h, hold_one(&late, &n), BELAY_OK);
        TAP_EQ(t, n, 1);
        raw_end(&late);
        for (unsigned i = 1; i < holders; i++)
            raw_end(&holder[i]);
    }
}

struct claimers {
    struct harness *h;
    atomic_uint failed, claimed;
};

static belay_rc claim_body(struct txn *t, void *arg)
{
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = job_scan(1, &fetch);
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    *(bool *)arg = !rc && hits.n == 1;
    if (rc || hits.n == 0)
        return rc;
    struct value key = value_text(hits.hit[0].member);
    struct change change = { THING_N, value_i64(1) };
    rc = txn_put(t, &row_thing, &key, &change, 1);
    return rc ? rc : txn_rank_remove(t, jobs, hits.hit[0].rank, hits.hit[0].member);
}

static void claim_one(void *arg, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err = { .code = 0 };
    struct claimers *c = arg;
    bool got = false;

    (void)i;
    belay_rc rc = txn_run(c->h->space, claim_body, &got, NULL, &arena, &err);
    if (rc)
        printf("# %s: %s\n", belay_error_info((int)rc)->name, err.message);
    c->failed += rc != BELAY_OK;
    c->claimed += got;
}

/* Everybody's first claim needs a slot, written on another connection than the one that
 * holds the pick. */
static void claims_get_on(struct tap *t)
{
    for (unsigned pool = 1; pool <= 4; pool++) {
        CLEANUP(harness_close) struct harness h;
        struct claimers c = { .h = &h };

        if (!open_with_pool(&h, t, pool))
            return;
        pg_setup.options.request_timeout_ms = 20000;
        int64_t began = now_ms();
        if (!harness_reopen(&h))
            return;
        crew_run(t, 6, claim_one, &c);
        TAP_EQ(t, c.failed, 0);
        TAP_EQ(t, c.claimed, 6);
        TAP_OK(t, now_ms() - began < 15000);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case own[] = {
        { "limits: who finds all connections held is told so in time",
          waits_for_its_turn },
        { "limits: claims of more callers than connections get on", claims_get_on },
    };
    return limits_main(&pg_target, own, COUNT_OF(own), argc, argv);
}
