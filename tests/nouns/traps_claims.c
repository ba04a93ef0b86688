/* Where the seed's claims were wrong (5.2 and the "Do:" of section 1). */
#include "nouns.h"

/* 5.2, 5: what cannot be had neither heads nor parts a group. */
static void filtered_adjacency(struct world *w)
{
    post_many(w, "s", 1);
    (void)post(w, (struct post){ .at = INT64_MAX });         /* 2: not yet */
    (void)post(w, (struct post){ .session = "t" });          /* somebody else's */
    post_many(w, "s", 1);                                    /* 3 */
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE }); /* 4 */
    post_many(w, "s", 1);                                    /* 5 */
    STR(w, seqs(w, take(w, 8)), "1 3");
    STR(w, seqs(w, take(w, 8)), "4");
    const struct belay_claim *five = take(w, 8);
    STR(w, seqs(w, five), "5");
    if (!five || abandoned(w, five) != 1)
        return;
    post_many(w, "s", 1); /* 6 */
    w->use = w->b;
    STR(w, seqs(w, take(w, 8)), "5 6"); /* 1, 3 and 4 are held */
}

static void held_rows_do_not_part(struct world *w)
{
    post_many(w, "s", 4);
    const struct belay_claim *one = ask(w, (struct ask){ .lease = AT_ONCE });
    const struct belay_claim *both = ask(w, (struct ask){ .max = 2 });
    if (!one || !both)
        return;
    STR(w, seqs(w, both), "1 2");
    EQ(w, abandoned(w, one), 0); /* it was taken over */
    STR(w, seqs(w, take(w, 8)), "3 4");
    EQ(w, abandoned(w, both), 2);
    STR(w, seqs(w, take(w, 8)), "1 2");
}

/* The seed's exact claim claims, looks, and abandons: that burns fences. */
static void exact_claim_leaves_no_trace(struct world *w)
{
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    post_many(w, "s", 3);
    const char *id[4];
    for (int i = 0; i < 4; i++) {
        const struct belay_batch *b = batch_now(w, "s", i + 1);
        id[i] = b ? b->batch_id : "?";
    }
    const char *before = everything(w);
    const struct {
        const char *ids[3];
        size_t n;
    } wrong[] = {
        { { id[1] }, 1 },        /* jumps the queue */
        { { id[0], id[1] }, 2 }, /* more than the rules give */
        { { id[1], id[0] }, 2 }, /* another order */
        { { id[0], id[0] }, 2 }, /* twice */
        { { "qwb:none" }, 1 },   /* none such */
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        w->use = i % 2 ? w->b : w->a;
        OK(w, !ask(w, (struct ask){ .ids = wrong[i].ids, .n_ids = wrong[i].n }));
        EQ(w, w->claimed.why, BELAY_NO_OTHER_BATCHES);
        STR(w, everything(w), before);
    }
    const struct belay_claim *c = ask(w, (struct ask){ .ids = id, .n_ids = 1 });
    if (!c)
        return;
    EQ(w, c->fence, 1);
    c = ask(w, (struct ask){ .ids = id + 1, .n_ids = 3 });
    STR(w, seqs(w, c), "2 3 4");
    EQ(w, c ? c->fence : -1, 1);
}

/* 5.2, 3: late is not lost. */
static void late_holders_hold(struct world *w)
{
    post_many(w, "s", 2);
    const struct belay_claim *c = ask(w, (struct ask){ .max = 2, .lease = AT_ONCE });
    if (!c)
        return;
    world_pass(w, 50);
    STR(w, pending(w, "s"), "1 2");
    int64_t expires = renewed(w, c, MINUTE);
    OK(w, expires >= c->claimed_at_ms + MINUTE);
    STR(w, pending(w, "s"), "");

    post_many(w, "t", 1);
    c = ask(w, (struct ask){ .session = "t", .lease = AT_ONCE });
    world_pass(w, 50);
    if (c)
        RC(w, finish(w, "t", 0, c), BELAY_OK);
    STR(w, listed(w, "t"), "");
}

/* Half of what it holds is taken over: then none of it is renewed. */
static void renewing_is_all_or_nothing(struct world *w)
{
    post_many(w, "s", 2);
    const struct belay_claim *old = ask(w, (struct ask){ .max = 2, .lease = AT_ONCE });
    world_turn(w);
    const struct belay_claim *now = ask(w, (struct ask){ .owner = "y", .max = 1 });
    if (!old || !now)
        return;
    STR(w, seqs(w, now), "1");
    const char *before = everything(w);
    WHY(w, renew(w, old, MINUTE), BELAY_LEASE_LOST, "superseded");
    STR(w, everything(w), before); /* the second one's end is where it was */
    RC(w, finish(w, "s", 0, old), BELAY_LEASE_LOST);
    STR(w, everything(w), before);
    EQ(w, abandoned(w, old), 1); /* what it still holds it can give back */
    RC(w, finish(w, "s", 0, now), BELAY_OK);
    STR(w, listed(w, "s"), "2");
}

/* 5.2, 4: the listed set is the owned set, exactly. */
static void listed_is_owned(struct world *w)
{
    post_many(w, "s", 3);
    const struct belay_claim *c = take(w, 2);
    const struct belay_claim *other = take(w, 1);
    if (!c || !other || !OK(w, c->n_batches == 2))
        return;
    const char *before = everything(w);
    const struct belay_batch *b = c->batches;
    const struct {
        struct belay_batch batches[3];
        size_t n;
        belay_rc want;
    } rows[] = {
        { { b[0] }, 1, BELAY_LEASE_LOST },                          /* one is missing */
        { { b[0], b[1], other->batches[0] }, 3, BELAY_LEASE_LOST }, /* one too many */
        { { b[0], other->batches[0] }, 2, BELAY_LEASE_LOST },       /* a foreign one */
        { { b[0], b[0] }, 2, BELAY_INVALID },                       /* twice the same */
        { { b[0], b[1], b[1] }, 3, BELAY_INVALID },
        { { b[0] }, 0, BELAY_INVALID }, /* nothing at all */
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_claim forged = *c;
        forged.batches = rows[i].batches;
        forged.n_batches = rows[i].n;
        w->use = i % 2 ? w->b : w->a;
        if (!RC(w, finish(w, "s", 0, &forged), rows[i].want))
            printf("# in row %zu\n", i);
        STR(w, everything(w), before);
    }
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    STR(w, listed(w, "s"), "3");
}

/* A commit with a good and a bad completion does neither; nor the same one twice. */
static void completions_stand_together(struct world *w)
{
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    (void)post(w, (struct post){ .session = "t" });
    const struct belay_claim *one = take(w, 1), *two = take(w, 1);
    const struct belay_claim *there = ask(w, (struct ask){ .session = "t" });
    if (!one || !two || !there)
        return;
    struct belay_claim stale = *two;
    stale.lease_id = "00000000000000000000000000000000";
    const struct belay_claim *sets[][2] = { { one, &stale },
                                            { one, there },
                                            { one, one } };
    const char *before = everything(w);

    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        belay_rc rc = commit(
            w, "s", (struct belay_commit){ .completes = sets[i], .n_completes = 2 });
        OK(w, rc == BELAY_LEASE_LOST || (i == 2 && rc == BELAY_INVALID));
        STR(w, everything(w), before);
    }
    const struct belay_claim *good[] = { two, one };
    RC(w, commit(w, "s", (struct belay_commit){ .completes = good, .n_completes = 2 }),
       BELAY_OK);
    STR(w, listed(w, "s"), "");
    STR(w, listed(w, "t"), "1");
}

/* Cancelling what is past due ends the holder's right to it. */
static void cancelling_the_late(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = ask(w, (struct ask){ .lease = AT_ONCE });
    world_turn(w);
    if (!c || !OK(w, cancelled(w, "s", c->batches[0].batch_id) != NULL))
        return;
    WHY(w, renew(w, c, MINUTE), BELAY_LEASE_LOST, "terminal");
    RC(w, finish(w, "s", 0, c), BELAY_LEASE_LOST);
    EQ(w, abandoned(w, c), 0);
    EQ(w, revision(w, "s"), 0);
}

static const struct noun_case cases[] = {
    { "join rows parted by held, future and other sessions' rows are adjacent",
      filtered_adjacency, 0 },
    { "rows that are held and let go are adjacent again", held_rows_do_not_part, 0 },
    { "an exact claim that is refused changes nothing, fences neither",
      exact_claim_leaves_no_trace, 0 },
    { "renew and complete of a past-due claim that nobody took: both are accepted",
      late_holders_hold, 0 },
    { "renewing is all or nothing", renewing_is_all_or_nothing, 0 },
    { "completion with missing, extra, foreign or double ids is refused",
      listed_is_owned, 0 },
    { "completions of one commit stand and fall together", completions_stand_together,
      0 },
    { "cancelling a past-due batch ends its holder's claim", cancelling_the_late, 0 },
};

const struct topic topic_traps_claims = { cases, COUNT_OF(cases) };
