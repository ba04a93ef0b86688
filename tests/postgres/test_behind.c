/* Who empties an index begins where it left off (fronts.h): nothing is left behind, what is far
 * before the rest comes at once, and what is near it soon. */
#include <unistd.h>

#include "pg.h"
#include "store/drivers/postgres/fronts.h"

#define MEMBERS 3000
#define BATCH 100
#define NEAR 10000
#define FIRST 1000000 /* the rank of the first one */
#define TRIES 12

static struct bytes name_of(int i, char out[16])
{
    (void)snprintf(out, 16, "m%05d", i);
    return bytes_str(out);
}

/* Members from *arg on, ten of a rank. */
static belay_rc fill(struct txn *t, void *arg)
{
    int first = *(int *)arg;
    belay_rc rc = BELAY_OK;
    char name[16];

    for (int i = first; i < first + MEMBERS && rc == BELAY_OK; i++)
        rc = txn_rank_add(t, bytes_str("lane"), FIRST + i / 10, name_of(i, name));
    return rc;
}

struct taken {
    size_t n;
    char first[32], last[32];
};

static void copy_name(char out[32], struct bytes member)
{
    (void)snprintf(out, 32, "%.*s", (int)member.len, (const char *)member.ptr);
}

static belay_rc take(struct txn *t, void *arg)
{
    const struct bytes lane = bytes_str("lane");
    struct scan scan = { .indexes = &lane,
                         .n_indexes = 1,
                         .max_rank = RANK_MAX,
                         .limit = BATCH,
                         .near = NEAR };
    struct taken *taken = arg;
    struct hits hits;
    belay_rc rc = txn_pick(t, &scan, &hits);

    *taken = (struct taken){ .n = rc ? 0 : hits.n };
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++) {
        rc = txn_rank_remove(t, lane, hits.hit[i].rank, hits.hit[i].member);
        copy_name(i == 0 ? taken->first : taken->last, hits.hit[i].member);
    }
    return rc;
}

/* Somebody else's, of another program. */
static void add(const struct harness *h, const char *member, int rank)
{
    char words[256], schema[PG_SCHEMA_MAX];

    pg_schema_of(h->dir, schema);
    (void)snprintf(words, sizeof(words),
                   "INSERT INTO %s.belay_rank (ns, idx, rank, member) VALUES"
                   " ('default', 'lane', %d, '%s')",
                   schema, rank, member);
    TAP_OK(h->t, pg_test_run(pg_test_url(), words));
}

static bool open_filled(struct harness *h, struct tap *t)
{
    int first = 0;

    pg_setup_reset(pg_test_url());
    if (!harness_open(h, t, 0))
        return false;
    CHECK_RC(h, harness_run(h, fill, &first), BELAY_OK);
    return true;
}

/* So many picks, each the next BATCH of them. */
static void take_some(struct harness *h, int picks, int *io_next)
{
    struct taken taken;
    char want[16];

    for (int i = 0; i < picks; i++) {
        CHECK_RC(h, harness_run(h, take, &taken), BELAY_OK);
        TAP_EQ(h->t, taken.n, BATCH);
        (void)name_of(*io_next, want);
        TAP_STR(h->t, taken.first, want);
        *io_next += BATCH;
        (void)name_of(*io_next - 1, want);
        TAP_STR(h->t, taken.last, want);
    }
}

/* One that has been emptied long enough to have a front. */
static bool open_emptied(struct harness *h, struct tap *t)
{
    int next = 0;

    if (!open_filled(h, t))
        return false;
    take_some(h, 1 + PG_FRONT_GIVEN / BATCH, &next);
    return true;
}

/* All of them in their order, across ranks that many share. */
static void in_order(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct taken taken;
    int next = 0;

    if (!open_filled(&h, t))
        return;
    take_some(&h, MEMBERS / BATCH, &next);
    CHECK_RC(&h, harness_run(&h, take, &taken), BELAY_OK);
    TAP_EQ(t, taken.n, 0);
}

/* What is further than NEAR before the rest is given by the very next pick, each time. */
static void far_comes_at_once(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct taken taken;

    if (!open_emptied(&h, t))
        return;
    for (int i = 0; i < TRIES; i++) {
        add(&h, "urgent", FIRST - NEAR - 1);
        CHECK_RC(&h, harness_run(&h, take, &taken), BELAY_OK);
        TAP_EQ(t, taken.n, BATCH);
        TAP_STR(t, taken.first, "urgent");
    }
}

/* What is near it is given at the next look. */
static void near_comes_soon(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct taken taken;

    if (!open_emptied(&h, t))
        return;
    add(&h, "late", FIRST);
    (void)usleep(PG_FRONT_LOOK_US + 1000);
    CHECK_RC(&h, harness_run(&h, take, &taken), BELAY_OK);
    TAP_STR(t, taken.first, "late");
}

/* And at once where the rest is less than was asked for. */
static void nothing_is_left_behind(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct taken taken;

    if (!open_filled(&h, t))
        return;
    for (int i = 0; i < 3; i++) {
        int next = i * MEMBERS, first = next + MEMBERS;
        take_some(&h, MEMBERS / BATCH - 1, &next);
        CHECK_RC(&h, harness_run(&h, take, &taken), BELAY_OK); /* the last ones */
        TAP_EQ(t, taken.n, BATCH);
        add(&h, "late", FIRST);
        CHECK_RC(&h, harness_run(&h, take, &taken), BELAY_OK);
        TAP_EQ(t, taken.n, 1);
        TAP_STR(t, taken.first, "late");
        CHECK_RC(&h, harness_run(&h, fill, &first), BELAY_OK);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "behind: everything comes, in order", in_order },
        { "behind: what is far before the rest comes at once", far_comes_at_once },
        { "behind: what is near the rest comes soon", near_comes_soon },
        { "behind: nothing is left behind", nothing_is_left_behind },
    };
    return tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&pg_driver, argc, argv);
}
