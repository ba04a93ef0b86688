/* Lost replies: an effect happens exactly once, or nobody claims to know. */
#include "conformance.h"
#include "store/fault.h"

/* Not idempotent in any of its shapes. */
struct deed {
    unsigned runs;
    struct txn_sum sum;
    struct txn_pos pos;
};

static belay_rc deed_body(struct txn *t, void *arg)
{
    struct deed *c = arg;
    struct value key = value_str("a");
    belay_rc rc = txn_add(t, &row_thing, &key, THING_COUNT, 1, 0, 1000, &c->sum);

    c->runs++;
    return rc ? rc : txn_feed_append(t, bytes_str("deeds"), bytes_str("done"), &c->pos);
}

static belay_rc feed_count_body(struct txn *t, void *arg)
{
    struct feed_entries out = { .n = 0 };
    belay_rc rc =
        txn_feed_read(t, bytes_str("deeds"), (struct feed_pos){ 0 }, 1000, &out);

    *(int64_t *)arg = (int64_t)out.n;
    return rc;
}

/* How often it happened; both shapes must agree. */
static int64_t times_done(struct harness *h)
{
    int64_t in_feed = -1, counted = thing_count(h, "a");

    CHECK_RC(h, harness_run(h, feed_count_body, &in_feed), BELAY_OK);
    TAP_EQ(h->t, in_feed, counted);
    return counted;
}

static void arm(struct harness *h, enum fault_kind kind, unsigned nth, unsigned late)
{
    struct fault f = {
        .op = FAULT_ON_COMMIT, .kind = kind, .nth = nth, .late_calls = late
    };

    CHECK_RC(h, fault_arm(h->faulty, &f, NULL), BELAY_OK);
}

/* A store whose slots nobody has used yet, or h's own. */
static bool open_for(struct harness *h, struct tap *t, bool first_use,
                     struct store **store, struct space **space)
{
    *store = NULL;
    if (!harness_open(h, t, HARNESS_FAULTS))
        return false;
    thing_set(h, "a", 0);
    *space = h->space;
    if (!first_use)
        return true;
    belay_rc rc = store_open(store, h->driver, &h->options, &h->err);
    if (!rc)
        rc = store_space(*store, bytes_str("default"), space, &h->err);
    return CHECK_RC(h, rc, BELAY_OK);
}

static belay_rc do_deed(struct harness *h, struct space *sp, struct deed *c)
{
    arena_reset(&h->arena);
    *c = (struct deed){ .runs = 0 };
    return txn_run(sp, deed_body, c, NULL, &h->arena, &h->err);
}

/* Everything that is still under way arrives, and nothing more happens by it. */
static void settle(struct harness *h, int64_t done)
{
    TAP_EQ(h->t, times_done(h), done);
    fault_clear(h->faulty);
    TAP_EQ(h->t, fault_under_way(h->faulty), 0);
    TAP_EQ(h->t, times_done(h), done);
}

/* Which commit is hit: that of a slot's own row, the first one under a slot, or one under a
 * slot that was used before. */
enum hit_commit { HIT_SLOT_ROW, HIT_FIRST_USE, HIT_LATER_USE };

static void one_loss(struct tap *t, enum fault_kind kind, unsigned late,
                     enum hit_commit hit)
{
    bool first_use = hit != HIT_LATER_USE;
    CLEANUP(harness_close) struct harness h;
    struct store *store;
    struct space *sp;
    struct deed c;
    if (open_for(&h, t, first_use, &store, &sp)) {
        arm(&h, kind, hit == HIT_FIRST_USE ? 2 : 1, late);
        CHECK_RC(&h, do_deed(&h, sp, &c), BELAY_OK);
        TAP_EQ(t, fault_count(h.faulty), 1);
        TAP_OK(t, c.runs == 1 || c.sum.known); /* applied, or run again and known */
        if (hit ==
            HIT_SLOT_ROW) /* another slot is made; the work knows nothing of it */
            TAP_OK(t, c.runs == 1 && c.sum.known && c.pos.known);
        else if (kind == FAULT_AFTER)
            TAP_OK(t, c.runs == 1 && !c.sum.known && !c.pos.known);
        else if (kind == FAULT_LOST)
            TAP_OK(t, c.runs == 2 && c.sum.known && c.pos.known);
        TAP_EQ(t, times_done(&h), 1);
        /* The caller goes on; what is late arrives between its commits. */
        for (int64_t i = 2; i <= 5; i++) {
            CHECK_RC(&h, do_deed(&h, sp, &c), BELAY_OK);
            TAP_OK(t, c.sum.known);
            TAP_EQ(t, c.sum.value, i);
        }
        settle(&h, 5);
    }
    store_close(store);
}

static void never_arrives(struct tap *t)
{
    for (int hit = HIT_SLOT_ROW; hit <= HIT_LATER_USE; hit++)
        one_loss(t, FAULT_LOST, 0, (enum hit_commit)hit);
}

static void arrives_unheard(struct tap *t)
{
    for (int hit = HIT_SLOT_ROW; hit <= HIT_LATER_USE; hit++)
        one_loss(t, FAULT_AFTER, 0, (enum hit_commit)hit);
}

/* From "before the resolver looks" over "between its look and its write" to "after the
 * caller has gone on". */
static void arrives_late(struct tap *t)
{
    for (int hit = HIT_SLOT_ROW; hit <= HIT_LATER_USE; hit++) {
        for (unsigned late = 0; late <= 24; late++)
            one_loss(t, FAULT_LATE, late, (enum hit_commit)hit);
        one_loss(t, FAULT_LATE, 1000, (enum hit_commit)hit);
    }
}

/* --- the resolver's own reply is lost, too --- */

static void two_losses(struct tap *t, const enum fault_kind kinds[2],
                       const unsigned late[2], bool first_use)
{
    CLEANUP(harness_close) struct harness h;
    struct store *store;
    struct space *sp;
    struct deed c;
    if (open_for(&h, t, first_use, &store, &sp)) {
        arm(&h, kinds[0], 1, late[0]);
        arm(&h, kinds[1], 2, late[1]);
        belay_rc rc = do_deed(&h, sp, &c);
        int64_t done = 1;
        if (rc != BELAY_OK) { /* not known: nobody may say it was not done, or twice */
            CHECK_RC(&h, rc, BELAY_UNKNOWN_OUTCOME);
            fault_clear(h.faulty);
            done = times_done(&h);
            TAP_OK(t, done == 0 || done == 1);
        }
        settle(&h, done);
        CHECK_RC(&h, do_deed(&h, sp, &c), BELAY_OK);
        settle(&h, done + 1);
    }
    store_close(store);
}

static void the_resolver_is_unheard(struct tap *t)
{
    const enum fault_kind all[] = { FAULT_LOST, FAULT_AFTER, FAULT_LATE };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        for (size_t j = 0; j < COUNT_OF(all); j++) {
            for (unsigned late = 0; late < 36; late++) {
                const enum fault_kind kinds[] = { all[i], all[j] };
                const unsigned lates[] = { late / 6, late % 6 };
                bool uses = (all[i] == FAULT_LATE || late < 6) &&
                            (all[j] == FAULT_LATE || late % 6 == 0);
                if (uses)
                    two_losses(t, kinds, lates, late & 1);
            }
        }
    }
}

/* --- what cannot be found out --- */

static void unresolved(struct tap *t, enum fault_kind kind, enum fault_op then,
                       enum fault_kind then_kind, int64_t done)
{
    CLEANUP(harness_close) struct harness h;
    struct deed c;
    struct fault first = { .op = FAULT_ON_COMMIT, .kind = kind, .nth = 1 };
    struct fault rest = { .op = then, .kind = then_kind, .nth = 1, .sticky = true };
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    thing_set(&h, "a", 0);
    CHECK_RC(&h, fault_arm(h.faulty, &first, NULL), BELAY_OK);
    CHECK_RC(&h, fault_arm(h.faulty, &rest, NULL), BELAY_OK);
    CHECK_RC(&h, do_deed(&h, h.space, &c), BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, h.err.code, BELAY_UNKNOWN_OUTCOME);
    TAP_EQ(t, c.runs, 1); /* a body whose outcome is not known is not run again */
    TAP_OK(t, !c.sum.known);
    fault_clear(h.faulty);
    TAP_EQ(t, times_done(&h), done);
    CHECK_RC(&h, do_deed(&h, h.space, &c), BELAY_OK);
    settle(&h, done + 1);
}

static void what_cannot_be_resolved(struct tap *t)
{
    unresolved(t, FAULT_LOST, FAULT_ON_COMMIT, FAULT_LOST, 0);
    unresolved(t, FAULT_LOST, FAULT_ON_READ, FAULT_BEFORE, 0);
    unresolved(t, FAULT_AFTER, FAULT_ON_READ, FAULT_BEFORE, 1);
    unresolved(t, FAULT_LATE, FAULT_ON_READ, FAULT_BEFORE, 1);
}

/* --- answers that are no commit --- */

static belay_rc deed_beyond(struct txn *t, void *arg)
{
    struct value key = value_str("a");

    ++*(unsigned *)arg;
    return txn_add(t, &row_thing, &key, THING_COUNT, 2000, 0, 1000, NULL);
}

static belay_rc guarded_deed(struct txn *t, void *arg)
{
    struct deed *c = arg;
    belay_rc rc = thing_put(t, "b", 1);

    return rc ? rc : deed_body(t, c);
}

static void a_lost_refusal(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned runs = 0;
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    thing_set(&h, "a", 0);
    arm(&h, FAULT_AFTER, 1, 0);
    CHECK_RC(&h, harness_run(&h, deed_beyond, &runs), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, runs, 2);
    settle(&h, 0);
}

static void a_lost_conflict(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct deed c = { .runs = 0 };
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    thing_set(&h, "a", 0);
    thing_set(&h, "b", 0);
    arm(&h, FAULT_CONFLICT, 1, 0);
    arm(&h, FAULT_LATE, 2, 2);
    CHECK_RC(&h, harness_run(&h, guarded_deed, &c), BELAY_OK);
    settle(&h, 1);
    TAP_EQ(t, thing_n(&h, "b"), 1);
}

static belay_rc read_two(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    ++*(unsigned *)arg;
    return rc ? rc : thing_get(t, "b", &row);
}

/* A check has no outcome that could be unknown: it is done again, or refused. */
static void a_lost_check(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned runs = 0;
    if (!harness_open(&h, t, HARNESS_FAULTS))
        return;

    arm(&h, FAULT_LOST, 1, 0);
    belay_rc rc = harness_run(&h, read_two, &runs);
    TAP_OK(t, rc == BELAY_OK || rc == BELAY_UNAVAILABLE);
}

static void lost_while_founding(struct tap *t)
{
    const enum fault_kind kinds[] = { FAULT_LOST, FAULT_AFTER, FAULT_LATE };

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        for (unsigned nth = 1; nth <= 5; nth++) {
            CLEANUP(harness_close) struct harness h;
            struct deed c;
            if (!harness_open(&h, t, HARNESS_FAULTS | HARNESS_UNFOUNDED))
                return;
            arm(&h, kinds[i], nth, 3);
            thing_set(&h, "a", 0);
            fault_clear(h.faulty);
            CHECK_RC(&h, do_deed(&h, h.space, &c), BELAY_OK);
            settle(&h, 1);
        }
    }
}

static const struct tap_case cases[] = {
    { "lost replies: a commit that never arrives is done again", never_arrives },
    { "lost replies: a commit that arrived is not", arrives_unheard },
    { "lost replies: a commit that arrives late does so once or never", arrives_late },
    { "lost replies: the resolver's own reply may be lost", the_resolver_is_unheard },
    { "lost replies: what cannot be found out is unknown_outcome",
      what_cannot_be_resolved },
    { "lost replies: a refusal that got lost is given again", a_lost_refusal },
    { "lost replies: a conflict, then a late commit", a_lost_conflict },
    { "lost replies: a check that got lost is no unknown outcome", a_lost_check },
    { "lost replies: while the namespace is founded", lost_while_founding },
};
const struct topic topic_lost_replies = { cases, COUNT_OF(cases) };
