/* The seed's cases of claiming, by their names (5.1), and its pure functions as they are
 * seen from outside. */
#include "nouns.h"

static void boundaries_renewal_and_abandon(struct world *w)
{
    struct post late = { .delivery = BELAY_AFTER_CURRENT_TURN_COMMIT,
                         .slot = BELAY_EXCLUSIVE };
    struct ask checkpoint = { .boundary = BELAY_ACTIVE_TURN_CHECKPOINT, .max = 8 };

    (void)post(w, late);
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    OK(w, !ask(w, checkpoint)); /* nobody looks past the head */
    EQ(w, w->claimed.why, BELAY_NO_BOUNDARY_BLOCKED);

    const struct belay_claim *head = take(w, 1);
    STR(w, seqs(w, head), "1");
    w->use = w->b;
    const struct belay_claim *next = ask(w, checkpoint); /* the head is held */
    STR(w, seqs(w, next), "2");
    if (!head || !next)
        return;

    EQ(w, abandoned(w, next), 1);
    const struct belay_claim *again = ask(w, checkpoint);
    if (!again)
        return;
    STR(w, seqs(w, again), "2");
    OK(w, again->fence > next->fence);
    OK(w, strcmp(again->claim_id, next->claim_id) != 0);

    int64_t expires = renewed(w, again, 5 * MINUTE);
    OK(w, expires >= again->claimed_at_ms + 5 * MINUTE);
    const struct belay_batch *b = batch_now(w, "s", 2);
    if (!OK(w, b != NULL))
        return;
    STR(w, b->claim_id, again->claim_id);
    STR(w, b->owner_id, "o");
    EQ(w, b->fence, again->fence);
    EQ(w, b->claimed_at_ms, again->claimed_at_ms);
    EQ(w, b->expires_at_ms, expires);
    RC(w, finish(w, "s", 0, again), BELAY_OK); /* with the token it had */
}

static void availability_and_exclusivity(struct world *w)
{
    (void)post(w, (struct post){ .at = INT64_MAX }); /* 1: in the far future */
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    (void)post(w, (struct post){ 0 });
    (void)post(w, (struct post){ .session = "t" });

    const struct belay_claim *alone = take(w, 8);
    STR(w, seqs(w, alone), "2");
    STR(w, seqs(w, take(w, 8)), "3");
    OK(w, !take(w, 8));
    STR(w, pending(w, "s"), "1");
    STR(w, seqs(w, ask(w, (struct ask){ .session = "t", .max = 8 })), "1");
    OK(w, !ask(w, (struct ask){ .session = "u", .max = 8 }));
    EQ(w, w->claimed.why, BELAY_NO_EMPTY);
}

static void reclaim_and_limits(struct world *w)
{
    post_many(w, "s", 5);
    const struct belay_claim *first =
        ask(w, (struct ask){ .owner = "x", .max = 2, .lease = AT_ONCE });
    world_turn(w);
    const struct belay_claim *second = ask(w, (struct ask){ .owner = "y", .max = 2 });
    if (!first || !second)
        return;
    STR(w, seqs(w, first), "1 2");
    EQ(w, first->expires_at_ms, first->claimed_at_ms);
    STR(w, seqs(w, second), "1 2"); /* a lease of 0 can be taken over at once */
    OK(w, second->fence > first->fence);
    STR(w, second->owner_id, "y");
    WHY(w, renew(w, first, MINUTE), BELAY_LEASE_LOST, "superseded");

    STR(w, seqs(w, take(w, 2)), "3 4"); /* max caps a group of three */
    STR(w, seqs(w, take(w, 2)), "5");
}

static void join_groups(struct world *w)
{
    (void)post(w, (struct post){ .group = "a" });
    (void)post(w, (struct post){ .group = "a" });
    (void)post(w, (struct post){ .group = "b" });
    (void)post(
        w, (struct post){ .group = "b", .delivery = BELAY_AFTER_CURRENT_TURN_COMMIT });
    (void)post(w, (struct post){ .merge = BELAY_MERGE_PAYLOAD_DEFAULT });
    (void)post(w, (struct post){ .merge = BELAY_MERGE_PAYLOAD_DEFAULT });
    (void)post(w, (struct post){ 0 });
    (void)post(w, (struct post){ 0 });
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });

    static const char *const groups[] = { "1 2", "3", "4", "5 6", "7 8", "9", "" };
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        w->use = i % 2 ? w->b : w->a;
        STR(w, seqs(w, take(w, 8)), groups[i]);
    }
    EQ(w, w->claimed.why, BELAY_NO_HEAD_HELD);
}

/* --- pure functions --- */

static void exclusive_head(struct world *w)
{
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    STR(w, seqs(w, take(w, 8)), "1");
}

static void join_up_to_max(struct world *w)
{
    post_many(w, "s", 5);
    STR(w, seqs(w, take(w, 3)), "1 2 3");
}

static void breaks_on_merge_key(struct world *w)
{
    (void)post(w, (struct post){ .group = "a" });
    (void)post(w, (struct post){ .group = "A" });
    (void)post(w, (struct post){ .group = "a" });
    STR(w, seqs(w, take(w, 8)), "1");
}

static void checkpoint_gate(struct world *w)
{
    (void)post(w, (struct post){ .delivery = BELAY_AFTER_CURRENT_TURN_COMMIT });
    post_many(w, "s", 1);
    OK(w, !ask(w, (struct ask){ .boundary = BELAY_ACTIVE_TURN_CHECKPOINT, .max = 8 }));
    EQ(w, w->claimed.why, BELAY_NO_BOUNDARY_BLOCKED);
    STR(w, seqs(w, take(w, 8)), "1"); /* idle: no gate */
}

/* The token is the seed's hash of public facts; the fence counts grants from 1. */
static void lease_is_derived(struct world *w)
{
    STR(w, digest(w, "session:owner:qwc:7:3:1000"),
        "27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071");
    post_many(w, "session", 7);
    for (int i = 1; i <= 3; i++) {
        const struct belay_claim *c = ask(
            w, (struct ask){ .session = "session", .owner = "owner", .lease = 250 });
        if (!c)
            return;
        EQ(w, c->fence, i);
        STR(w, c->claim_id, text(w, "qwc:1:%d", i));
        EQ(w, c->expires_at_ms, c->claimed_at_ms + 250);
        STR(w, c->lease_token,
            digest(w, text(w, "session:owner:%s:%lld", c->claim_id,
                           (long long)c->claimed_at_ms)));
        EQ(w, strlen(c->lease_id), 32);
        (void)abandoned(w, c);
    }
}

static void batch_ids_are_derived(struct world *w)
{
    STR(w, digest(w, "session:Some(\"key\"):1000:1"),
        "88583d19c41c3de754b50c05de42b3e64636222193ac8134a2556ecc79a8e42b");
    const struct belay_batch *keyed =
        post(w, (struct post){ .session = "session", .key = "a\"b\\c" });
    const struct belay_batch *plain = post(w, (struct post){ .session = "session" });
    if (!keyed || !plain)
        return;
    STR(w, keyed->batch_id,
        text(w, "qwb:%s",
             digest(w, text(w, "session:Some(\"a\\\"b\\\\c\"):%lld:1",
                            (long long)keyed->enqueued_at_ms))));
    STR(w, plain->batch_id,
        text(w, "qwb:%s",
             digest(w,
                    text(w, "session:None:%lld:2", (long long)plain->enqueued_at_ms))));
}

static const struct noun_case cases[] = {
    { "queued_work_claims_respect_boundaries_renewal_and_abandon",
      boundaries_renewal_and_abandon, 0 },
    { "queued_work_respects_availability_limits_exclusivity_reclaim_and_sessions",
      availability_and_exclusivity, 0 },
    { "queued_work_respects_availability_limits_exclusivity_reclaim_and_sessions: "
      "reclaim and limits",
      reclaim_and_limits, 0 },
    { "queued_work_join_groups_by_delivery_policy_and_merge_key", join_groups, 0 },
};

const struct topic topic_spec_claims = { cases, COUNT_OF(cases) };

static const struct noun_case pure[] = {
    { "prefix rule: an exclusive head goes alone", exclusive_head, 0 },
    { "prefix rule: join up to max", join_up_to_max, 0 },
    { "prefix rule: breaks on the merge key", breaks_on_merge_key, 0 },
    { "prefix rule: the checkpoint gate looks at the head only", checkpoint_gate, 0 },
    { "a lease is derived from its facts and its fence advances", lease_is_derived, 0 },
    { "a batch id is qwb: and a hash with the sequence in it", batch_ids_are_derived,
      0 },
};

const struct topic topic_pure = { pure, COUNT_OF(pure) };
