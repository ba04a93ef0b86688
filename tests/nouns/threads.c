/* Eight at once on one session: claims. */
#include <stdatomic.h>

#include "nouns.h"

#define HANDS 8
#define BATCHES 96
#define STOLEN 12

/* What each batch went through, seen from outside. */
struct ledger {
    atomic_int holders[BATCHES + 1]; /* who believes to hold it, right now */
    atomic_int done[BATCHES + 1];
    atomic_int left;
};

/* Claims, looks that it is alone, completes; until everything is done. */
static void work_off(struct world *w, unsigned i, void *arg)
{
    struct ledger *l = arg;
    const char *owner = text(w, "o%u", i);

    while (atomic_load(&l->left) > 0) {
        const struct belay_claim *c =
            ask(w, (struct ask){ .owner = owner, .max = 1 + i % 3, .wait = 20 });
        if (!c)
            continue;
        for (size_t k = 0; k < c->n_batches; k++)
            EQ(w, atomic_fetch_add(&l->holders[c->batches[k].enqueue_seq], 1), 0);
        if (i % 4 == 3 && c->fence == 1) { /* every now and then, not yet */
            for (size_t k = 0; k < c->n_batches; k++)
                atomic_fetch_sub(&l->holders[c->batches[k].enqueue_seq], 1);
            EQ(w, abandoned(w, c), c->n_batches);
            continue;
        }
        for (size_t k = 0; k < c->n_batches; k++) {
            atomic_fetch_add(&l->done[c->batches[k].enqueue_seq], 1);
            atomic_fetch_sub(&l->holders[c->batches[k].enqueue_seq], 1);
        }
        if (!RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK))
            break;
        atomic_fetch_sub(&l->left, (int)c->n_batches);
    }
}

static void eight_work_one_inbox(struct world *w)
{
    struct ledger l = { .left = BATCHES };

    post_many(w, "s", BATCHES);
    world_crowd(w, HANDS, work_off, &l);
    for (int i = 1; i <= BATCHES; i++)
        EQ(w, atomic_load(&l.done[i]), 1);
    EQ(w, atomic_load(&l.left), 0);
    STR(w, listed(w, "s"), "");
}

/* L12: exclusive batches, each claimed and completed; who claims later has what entered
 * later.  Each thread sees its own grants rise; all together they are everything. */
static void in_order(struct world *w, unsigned i, void *arg)
{
    struct ledger *l = arg;
    int64_t last = 0;

    (void)i;
    while (atomic_load(&l->left) > 0) {
        const struct belay_claim *c = take(w, 8);
        if (!c) {
            OK(w, w->claimed.why == BELAY_NO_HEAD_HELD ||
                      w->claimed.why == BELAY_NO_EMPTY);
            continue;
        }
        EQ(w, c->n_batches, 1);
        OK(w, c->batches[0].enqueue_seq > last);
        EQ(w, c->fence, 1);
        last = c->batches[0].enqueue_seq;
        atomic_fetch_add(&l->done[last], 1);
        atomic_fetch_sub(&l->left, 1);
        if (!RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK))
            break;
    }
}

static void order_is_kept(struct world *w)
{
    struct ledger l = { .left = BATCHES };

    for (int i = 0; i < BATCHES; i++)
        (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    world_crowd(w, HANDS, in_order, &l);
    for (int i = 1; i <= BATCHES; i++)
        EQ(w, atomic_load(&l.done[i]), 1);
    EQ(w, revision(w, "s"), BATCHES);
}

/* Leases of no time at all: everybody takes over from everybody, and yet each batch is
 * completed once, by the one whose claim is current. */
static void steal(struct world *w, unsigned i, void *arg)
{
    struct ledger *l = arg;

    while (atomic_load(&l->left) > 0) {
        const struct belay_claim *c =
            ask(w, (struct ask){ .owner = text(w, "o%u", i), .lease = AT_ONCE });
        if (!c)
            continue;
        belay_rc rc = finish(w, "s", BELAY_ANY_REVISION, c);
        if (rc == BELAY_OK) {
            atomic_fetch_add(&l->done[c->batches[0].enqueue_seq], 1);
            atomic_fetch_sub(&l->left, 1);
        } else {
            RC(w, rc, BELAY_LEASE_LOST);
        }
    }
}

static void takeovers_complete_once(struct world *w)
{
    struct ledger l = { .left = STOLEN };

    for (int i = 0; i < STOLEN; i++)
        (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    world_crowd(w, 3, steal, &l);
    for (int i = 1; i <= STOLEN; i++)
        EQ(w, atomic_load(&l.done[i]), 1);
    EQ(w, revision(w, "s"), STOLEN);
}

/* L7: a holder renews a past-due lease while somebody takes it over.  One of both is
 * told no. */
struct duel {
    const struct belay_claim *claim;
    belay_rc renewed;
    bool taken;
};

static void renew_or_take(struct world *w, unsigned i, void *arg)
{
    struct duel *d = arg;

    if (i == 0)
        d->renewed = renew(w, d->claim, MINUTE);
    else
        d->taken = ask(w, (struct ask){ .owner = "y" }) != NULL;
}

static void renewal_against_takeover(struct world *w)
{
    for (int i = 0; i < 30; i++) {
        (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
        struct duel d = { .claim = ask(w, (struct ask){ .lease = AT_ONCE }) };
        if (!d.claim)
            return;
        world_crowd(w, 2, renew_or_take, &d);
        EQ(w, d.renewed, d.taken ? BELAY_LEASE_LOST : BELAY_OK);
    }
}

/* Enqueues of one key: one batch, one that is not replayed. */
static void same_key(struct world *w, unsigned i, void *arg)
{
    atomic_int *fresh = arg;

    if (post(w, (struct post){ .key = "k", .payload = text(w, "%u", i) }) &&
        !w->enqueued.replayed)
        atomic_fetch_add(fresh, 1);
    post_many(w, "s", 5);
}

static void one_key_one_batch(struct world *w)
{
    atomic_int fresh = 0;

    world_crowd(w, HANDS, same_key, &fresh);
    EQ(w, atomic_load(&fresh), 1);
    const char *all = "1";
    for (int i = 2; i <= 5 * HANDS + 1; i++)
        all = text(w, "%s %d", all, i);
    STR(w, listed(w, "s"), all);
}

static const struct noun_case cases[] = {
    { "threads: L1: eight work one inbox off, each batch once", eight_work_one_inbox,
      CASE_REAL_TIME },
    { "threads: L12: eight claim exclusive batches in order", order_is_kept, 0 },
    { "threads: L4: leases without end in time are completed once",
      takeovers_complete_once, 0 },
    { "threads: L7: a renewal against a takeover", renewal_against_takeover, 0 },
    { "threads: one source key is one batch, sequences have no gap", one_key_one_batch,
      0 },
};

const struct topic topic_threads = { cases, COUNT_OF(cases) };
