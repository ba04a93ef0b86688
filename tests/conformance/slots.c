/* Commit slots: as many as commits at a time, and pruned when unused. */
#include "conformance.h"
#include "store/fault.h"

#define HOUR_US ((int64_t)3600 * 1000000)
#define HOUR_MS ((int64_t)3600 * 1000)

struct slot_count {
    size_t rows, ranks;
};

static belay_rc count_item(void *arg, const struct item *item, struct belay_error *err)
{
    struct slot_count *c = arg;

    (void)err;
    c->rows += item->kind == ITEM_ROW && item->row->type == &row_slot;
    c->ranks += item->kind == ITEM_RANK && bytes_eq(item->name, bytes_str(SLOT_INDEX));
    return BELAY_OK;
}

/* Slots in the namespace; each has its row and its place in the index. */
static size_t slots(struct harness *h)
{
    struct slot_count c = { 0 };

    CHECK_RC(h, driver_walk(h->driver, bytes_str("default"), count_item, &c, NULL),
             BELAY_OK);
    TAP_EQ(h->t, c.rows, c.ranks);
    return c.rows;
}

static void one_caller_uses_one_slot(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    for (int64_t i = 0; i < 50; i++)
        thing_set(&h, "a", i);
    TAP_EQ(t, slots(&h), 1);
    struct fault f = { .op = FAULT_ON_COMMIT, .kind = FAULT_AFTER, .nth = 1 };
    for (int64_t i = 0; i < 10; i++) {
        CHECK_RC(&h, fault_arm(h.faulty, &f, NULL), BELAY_OK);
        thing_set(&h, "a", i);
    }
    f.kind = FAULT_LOST;
    for (int64_t i = 0; i < 10; i++) {
        CHECK_RC(&h, fault_arm(h.faulty, &f, NULL), BELAY_OK);
        thing_set(&h, "a", i);
    }
    TAP_EQ(t, slots(&h), 1); /* a resolved slot is used on */
}

static int64_t wall(struct harness *h)
{
    int64_t ms = 0;

    CHECK_RC(h, space_now(h->space, &ms, NULL), BELAY_OK);
    return ms;
}

static size_t prune(struct harness *h, struct space *sp, int64_t before_ms)
{
    size_t n = 0;

    CHECK_RC(h, space_prune_slots(sp, before_ms, 100, &n, &h->err), BELAY_OK);
    return n;
}

/* Another store on the same driver. */
static struct space *second_store(struct harness *h, struct store **store)
{
    struct space *sp = NULL;

    *store = NULL;
    belay_rc rc = store_open(store, h->driver, &h->options, &h->err);
    rc = rc ? rc : store_space(*store, bytes_str("default"), &sp, &h->err);
    CHECK_RC(h, rc, BELAY_OK);
    return sp;
}

static void slots_in_use_stay(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct store *other;
    if (!harness_open(&h, t, HARNESS_FAULTS | HARNESS_OWN_CLOCK))
        return;

    struct space *sp = second_store(&h, &other);
    thing_set(&h, "a", 1);
    TAP_EQ(t, prune(&h, sp, wall(&h) - HOUR_MS), 0);
    /* Used every quarter of an hour: never an hour old. */
    for (int64_t i = 0; i < 12; i++) {
        fake_advance_us(&h.clock, HOUR_US / 4);
        thing_set(&h, "a", i);
        TAP_EQ(t, prune(&h, sp, wall(&h) - HOUR_MS), 0);
    }
    TAP_EQ(t, slots(&h), 1);
    store_close(other);
}

/* The owner of a pruned slot is alive: it takes another one and nobody notices. */
static void a_pruned_slot_is_replaced(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct store *other;
    if (!harness_open(&h, t, HARNESS_FAULTS | HARNESS_OWN_CLOCK))
        return;

    struct space *sp = second_store(&h, &other);
    thing_set(&h, "a", 1);
    fake_advance_us(&h.clock, 2 * HOUR_US);
    TAP_EQ(t, prune(&h, sp, wall(&h) - HOUR_MS), 1);
    TAP_EQ(t, slots(&h), 1); /* the pruner's own */
    thing_set(&h, "a", 2);
    thing_set(&h, "a", 3);
    TAP_EQ(t, thing_n(&h, "a"), 3);
    TAP_EQ(t, slots(&h), 2);
    store_close(other);
}

/* The pruner is the one whose slot is old. */
static void a_store_prunes_its_own(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, HARNESS_FAULTS | HARNESS_OWN_CLOCK))
        return;

    thing_set(&h, "a", 1);
    fake_advance_us(&h.clock, 2 * HOUR_US);
    (void)prune(&h, h.space, wall(&h) - HOUR_MS);
    TAP_OK(t, slots(&h) <= 1);
    thing_set(&h, "a", 2);
    TAP_EQ(t, thing_n(&h, "a"), 2);
    TAP_EQ(t, slots(&h), 1);
}

static const struct tap_case cases[] = {
    { "slots: one caller uses one slot", one_caller_uses_one_slot },
    { "slots: what is in use is not pruned", slots_in_use_stay },
    { "slots: a pruned slot is replaced silently", a_pruned_slot_is_replaced },
    { "slots: a store may prune its own", a_store_prunes_its_own },
};
const struct topic topic_slots = { cases, COUNT_OF(cases) };
