/* L1 to L3, L5 to L8, L12 (docs/promises.md). */
#include "nouns.h"

static void one_live_lease(struct world *w)
{
    post_many(w, "s", 3);
    const struct belay_claim *c = ask(w, (struct ask){ .owner = "x", .max = 2 });
    if (!c)
        return;
    w->use = w->b;
    const struct belay_claim *rest = ask(w, (struct ask){ .owner = "y", .max = 8 });
    STR(w, seqs(w, c), "1 2");
    STR(w, seqs(w, rest), "3");
    OK(w,
       !ask(w, (struct ask){ .owner = "x", .max = 8 })); /* not by its holder, either */
    EQ(w, w->claimed.why, BELAY_NO_HEAD_HELD);
}

/* Over every way a grant can end that leaves the batch where it is. */
static void fences_strictly_rise(struct world *w)
{
    int64_t last = 0;

    post_many(w, "s", 1);
    for (int i = 0; i < 12; i++) {
        const struct belay_claim *c =
            ask(w, (struct ask){ .owner = i % 2 ? "x" : "y",
                                 .lease = i % 3 ? 30 : AT_ONCE });
        if (!OK(w, c != NULL))
            return;
        OK(w, c->fence > last);
        EQ(w, c->batches[0].fence, c->fence);
        last = c->fence;
        if (i % 3 == 1)
            EQ(w, abandoned(w, c), 1);
        else /* past due, by the time of the other handle, too */
            world_pass(w, 40);
        if (i == 6 && !world_reopen(w))
            return;
        w->use = i % 2 ? w->b : w->a;
    }
    const struct belay_batch *b = batch_now(w, "s", 1);
    EQ(w, b ? b->fence : -1, last);
}

/* The answer is thrown away: its fence and token are nobody's from then on. */
static void lost_answers_burn_tokens(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *lost = ask(w, (struct ask){ .lease = AT_ONCE });
    const struct belay_claim *next = ask(w, (struct ask){ .lease = AT_ONCE });
    const struct belay_claim *third = ask(w, (struct ask){ 0 });
    if (!lost || !next || !third)
        return;
    EQ(w, lost->fence, 1); /* the same owner, the same millisecond */
    EQ(w, next->fence, 2);
    EQ(w, third->fence, 3);
    OK(w, strcmp(lost->lease_token, next->lease_token) != 0);
    OK(w, strcmp(lost->lease_id, next->lease_id) != 0);
    OK(w, strcmp(next->lease_id, third->lease_id) != 0);
    OK(w, strcmp(next->claim_id, third->claim_id) != 0);
}

static void late_is_not_lost(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = ask(w, (struct ask){ .lease = 20 });
    if (!c)
        return;
    world_pass(w, 500);
    const struct belay_batch *b = batch_now(w, "s", 1);
    STR(w, b ? b->claim_id : "?", c->claim_id); /* past due, and still held */
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    STR(w, listed(w, "s"), "");

    post_many(w, "s", 1);
    c = ask(w, (struct ask){ .lease = AT_ONCE });
    if (!c || !ask(w, (struct ask){ .owner = "y" }))
        return;
    WHY(w, finish(w, "s", 1, c), BELAY_LEASE_LOST, "superseded");
}

static int64_t expiry(struct world *w)
{
    const struct belay_batch *b = batch_now(w, "s", 1);

    return b ? b->expires_at_ms : -1;
}

static void renewing_only_prolongs(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = ask(w, (struct ask){ .lease = 10 * MINUTE });
    if (!c)
        return;
    static const int64_t shorter[] = { 0, 1, MINUTE, 10 * MINUTE };
    for (size_t i = 0; i < COUNT_OF(shorter); i++) {
        w->use = i % 2 ? w->b : w->a;
        OK(w, renewed(w, c, shorter[i]) >= c->expires_at_ms);
        if (shorter[i] < 10 * MINUTE)
            EQ(w, expiry(w), c->expires_at_ms);
    }
    int64_t later = renewed(w, c, 20 * MINUTE);
    OK(w, later >= c->claimed_at_ms + 20 * MINUTE);
    const struct belay_batch *b = batch_now(w, "s", 1);
    if (!b)
        return;
    EQ(w, b->expires_at_ms, later);
    EQ(w, b->fence, c->fence);
    EQ(w, b->claimed_at_ms, c->claimed_at_ms);
    STR(w, b->claim_id, c->claim_id);
    EQ(w, abandoned(w, c), 1);
    WHY(w, renew(w, c, MINUTE), BELAY_LEASE_LOST, "released"); /* never revives */
    b = batch_now(w, "s", 1);
    STR(w, b ? b->claim_id : "?", NULL);
}

/* What was due when somebody looked, and was renewed since, is not taken. */
static void takeover_sees_the_renewal(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = ask(w, (struct ask){ .lease = 20 });
    if (!c)
        return;
    world_pass(w, 40);
    w->use = w->b;
    STR(w, pending(w, "s"), "1");
    w->use = w->a;
    (void)renewed(w, c, MINUTE);
    w->use = w->b;
    OK(w, !ask(w, (struct ask){ .owner = "y" }));
    EQ(w, w->claimed.why, BELAY_NO_HEAD_HELD);
    RC(w, finish(w, "s", 0, c), BELAY_OK);
}

/* What a claim answers with is what has changed. */
static void claims_change_what_they_return(struct world *w)
{
    post_many(w, "s", 10);
    for (size_t max = 1; max <= 4; max++) {
        const struct belay_batch *before[11] = { 0 };
        for (int i = 1; i <= 10; i++)
            before[i] = batch_now(w, "s", i);
        const struct belay_claim *c = take(w, max);
        if (!OK(w, c && c->n_batches == max))
            return;
        int64_t first = c->batches[0].enqueue_seq;
        for (int i = 1; i <= 10; i++) {
            const struct belay_batch *b = batch_now(w, "s", i);
            bool mine = i >= first && i < first + (int64_t)max;
            if (!b || !before[i])
                continue;
            EQ(w, b->fence, before[i]->fence + mine);
            if (mine)
                STR(w, b->claim_id, c->claim_id);
            else
                STR(w, b->claim_id, before[i]->claim_id);
        }
    }
    OK(w, !take(w, 8));
}

static void zero_is_nothing(struct world *w)
{
    struct belay_claim_request r = { .size = sizeof(r),
                                     .session_id = "s",
                                     .owner_id = "o",
                                     .lease_ms = MINUTE,
                                     .wait_ms = 60000 };

    post_many(w, "s", 1);
    RC(w, belay_queue_claim(w->use, &r, w->arena, &w->claimed, &w->err), BELAY_OK);
    OK(w, !w->claimed.claim);
    EQ(w, w->claimed.why, BELAY_NO_ZERO_LIMIT); /* and it waits for nothing */
}

/* Of a group: each batch has its own fence, the claim the head's. */
static void fences_are_the_batches_own(struct world *w)
{
    post_many(w, "s", 2);
    (void)ask(w, (struct ask){ .lease = AT_ONCE });
    (void)ask(w, (struct ask){ .lease = AT_ONCE });
    const struct belay_claim *c = take(w, 2);
    if (!c || !OK(w, c->n_batches == 2))
        return;
    EQ(w, c->fence, 3);
    EQ(w, c->batches[0].fence, 3);
    EQ(w, c->batches[1].fence, 1);
    RC(w, finish(w, "s", 0, c), BELAY_OK);
}

/* Grants follow the order of entry among what can be had at that time. */
static void grants_are_in_order(struct world *w)
{
    const int64_t later = w->store->own_clock ? 500 : 30; /* a server's time runs on */
    int64_t at = 0;

    for (int i = 1; i <= 6; i++) {
        const struct belay_batch *b =
            post(w, (struct post){ .slot = BELAY_EXCLUSIVE, .at = i == 3 ? at : 0 });
        at = b ? b->enqueued_at_ms + later : 0;
    }
    STR(w, seqs(w, take(w, 1)), "1");
    const struct belay_claim *two = take(w, 1);
    STR(w, seqs(w, two), "2");
    w->use = w->b;
    STR(w, seqs(w, take(w, 1)), "4"); /* 3 waits for its time */
    if (two)
        EQ(w, abandoned(w, two), 1);
    STR(w, seqs(w, take(w, 1)), "2"); /* back at its place */
    world_pass(w, 2 * later);
    STR(w, seqs(w, take(w, 1)), "3");
    STR(w, seqs(w, take(w, 1)), "5");
    STR(w, seqs(w, take(w, 1)), "6");
    OK(w, !take(w, 1));
}

static const struct noun_case cases[] = {
    { "L1: a batch has one live lease at most", one_live_lease, 0 },
    { "L2: fences strictly rise over every grant of a batch", fences_strictly_rise, 0 },
    { "L3: a grant whose answer was lost is burned", lost_answers_burn_tokens, 0 },
    { "L5: late is not lost; only a takeover ends a claim", late_is_not_lost, 0 },
    { "L6: renewing never shortens, never revives, never changes the token",
      renewing_only_prolongs, 0 },
    { "L7: a takeover is decided from what is there when it is written",
      takeover_sees_the_renewal, 0 },
    { "L8: claim(n) gives n at most and changes what it gives",
      claims_change_what_they_return, 0 },
    { "L8: claim(0) gives nothing and waits for nothing", zero_is_nothing, 0 },
    { "L2: a group's batches keep their own fences", fences_are_the_batches_own, 0 },
    { "L12: grants follow the order of entry among what is eligible",
      grants_are_in_order, 0 },
};

const struct topic topic_leases = { cases, COUNT_OF(cases) };
