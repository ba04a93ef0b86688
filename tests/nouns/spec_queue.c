/* The seed's cases of the inbox, by their names (5.1, runtime_persistence). */
#include "nouns.h"

static void source_keys_are_idempotent(struct world *w)
{
    const struct belay_batch *first =
        post(w, (struct post){ .key = "k", .payload = "{\"text\":\"one\"}" });
    (void)post(w, (struct post){ .session = "t", .key = "k" });
    const struct belay_batch *second = post(w, (struct post){ .payload = "2" });
    if (!first || !second)
        return;
    OK(w, !w->enqueued.replayed);
    STR(w, first->source_key, "k");
    STR(w, second->source_key, NULL);

    w->use = w->b;
    const struct belay_batch *again =
        post(w, (struct post){ .key = "k",
                               .payload = "{\"text\":\"two\"}",
                               .slot = BELAY_EXCLUSIVE,
                               .at = WORLD_START_MS * 2 });
    if (!again)
        return;
    OK(w, w->enqueued.replayed);
    STR(w, again->batch_id, first->batch_id);
    EQ(w, again->enqueue_seq, first->enqueue_seq);
    EQ(w, again->slot, BELAY_JOIN);
    EQ(w, again->available_at_ms, first->available_at_ms);
    EQ(w, again->n_items, 1);
    STR(w, again->items[0].item_id, text(w, "%s:item:0", first->batch_id));
    STR(w, again->items[0].payload, "{\"text\":\"one\"}");
    STR(w, listed(w, "s"), "1 2");
    STR(w, listed(w, "t"), "1");
}

static void cancel_removes_only_unclaimed(struct world *w)
{
    const struct belay_batch *free_one = post(w, (struct post){ 0 });
    const struct belay_batch *held = post(w, (struct post){ 0 });
    if (!free_one || !held)
        return;

    const struct belay_batch *gone = cancelled(w, "s", free_one->batch_id);
    if (OK(w, gone != NULL)) {
        STR(w, gone->batch_id, free_one->batch_id);
        STR(w, gone->items[0].payload, "{\"n\":1}");
    }
    OK(w, !cancelled(w, "s", free_one->batch_id)); /* it is gone */

    const struct belay_claim *c = take(w, 1);
    STR(w, seqs(w, c), "2");
    w->use = w->b;
    OK(w, !cancelled(w, "s", held->batch_id)); /* somebody works on it */
    STR(w, listed(w, "s"), "2");
    STR(w, pending(w, "s"), "");
    EQ(w, abandoned(w, c), 1);
    STR(w, pending(w, "s"), "2");
    OK(w, cancelled(w, "s", held->batch_id) != NULL);
    STR(w, listed(w, "s"), "");
}

static void exact_claim_uses_selected_ids(struct world *w)
{
    const struct belay_batch *one =
        post(w, (struct post){ .slot = BELAY_EXCLUSIVE, .payload = "1" });
    const struct belay_batch *two =
        post(w, (struct post){ .slot = BELAY_EXCLUSIVE, .payload = "2" });
    if (!one || !two)
        return;
    const char *first[] = { one->batch_id }, *second[] = { two->batch_id };
    const char *both[] = { one->batch_id, two->batch_id };

    OK(w, !ask(w, (struct ask){ .ids = second, .n_ids = 1 }));
    EQ(w, w->claimed.why, BELAY_NO_OTHER_BATCHES);
    OK(w, !ask(w, (struct ask){ .ids = both, .n_ids = 2 }));
    EQ(w, w->claimed.why, BELAY_NO_OTHER_BATCHES);
    OK(w, !ask(w, (struct ask){ .ids = both, .n_ids = 0 }));
    EQ(w, w->claimed.why, BELAY_NO_ZERO_LIMIT);
    STR(w, pending(w, "s"), "1 2");

    STR(w, seqs(w, ask(w, (struct ask){ .ids = first, .n_ids = 1 })), "1");
    STR(w, seqs(w, ask(w, (struct ask){ .ids = second, .n_ids = 1 })), "2");
}

/* A claim with one thing changed. */
static struct belay_claim with_token(const struct belay_claim *c, const char *token)
{
    struct belay_claim out = *c;

    out.lease_token = token;
    return out;
}

static void completion_is_lease_guarded(struct world *w)
{
    post_many(w, "s", 2);
    const struct belay_claim *c = take(w, 2);
    if (!OK(w, c && c->n_batches == 2))
        return;
    struct belay_claim forged = with_token(c, digest(w, "other"));

    RC(w, finish(w, "s", 0, &forged), BELAY_LEASE_LOST);
    STR(w, listed(w, "s"), "1 2");
    EQ(w, revision(w, "s"), 0);
    w->use = w->b;
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    STR(w, listed(w, "s"), "");
    EQ(w, revision(w, "s"), 1);
}

/* As a wake of a process is enqueued: its source key, alone in its slot. */
static void wake_is_claimed_once(struct world *w)
{
    struct post wake = {
        .key = "process:p:event:1:wake",
        .slot = BELAY_EXCLUSIVE,
        .payload = "{\"type\":\"process_wake\",\"wake\":{\"input\":\"x\"}}",
    };

    const struct belay_batch *one = post(w, wake);
    w->use = w->b;
    const struct belay_batch *two = post(w, wake);
    if (!one || !two)
        return;
    OK(w, w->enqueued.replayed);
    OK(w, !w->enqueued.payload_mismatch);
    STR(w, two->batch_id, one->batch_id);
    STR(w, listed(w, "s"), "1");
    const struct belay_claim *c = take(w, 8);
    STR(w, seqs(w, c), "1");
    OK(w, !take(w, 8));
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    RC(w, finish(w, "s", 1, c), BELAY_LEASE_LOST);
    STR(w, listed(w, "s"), "");
}

static belay_rc stamped(struct world *w, int64_t expected, const struct belay_claim *c)
{
    const char *json = node(w, "n1", NULL);

    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = expected,
                                         .turn_id = "turn-1",
                                         .graph = BELAY_GRAPH_APPEND,
                                         .nodes = &json,
                                         .n_nodes = 1,
                                         .completes = &c,
                                         .n_completes = 1 });
}

static void completion_and_stamp_are_atomic(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = take(w, 1);
    if (!c)
        return;
    struct belay_claim stale = with_token(c, digest(w, "other"));

    RC(w, stamped(w, 0, &stale), BELAY_LEASE_LOST);
    EQ(w, revision(w, "s"), 0); /* no session at all */
    STR(w, listed(w, "s"), "1");

    RC(w, stamped(w, 0, c), BELAY_OK);
    OK(w, !w->committed.replayed);
    EQ(w, w->committed.revision, 1);
    STR(w, listed(w, "s"), "");
    w->use = w->b;
    const char *before = everything(w);
    RC(w, stamped(w, 0, c), BELAY_OK); /* the rows are gone, the answer is not */
    OK(w, w->committed.replayed);
    EQ(w, w->committed.revision, 1);
    STR(w, w->committed.leaf, "n1");
    EQ(w, w->committed.n_node_ids, 1);
    STR(w, w->committed.node_ids[0], "n1");
    STR(w, everything(w), before);
}

static const struct noun_case cases[] = {
    { "queued_work_source_keys_are_idempotent_and_list_ordered",
      source_keys_are_idempotent, 0 },
    { "queued_work_cancel_removes_only_unclaimed_batches",
      cancel_removes_only_unclaimed, 0 },
    { "queued_work_exact_claim_uses_selected_batch_ids", exact_claim_uses_selected_ids,
      0 },
    { "queued_work_completion_is_lease_guarded", completion_is_lease_guarded, 0 },
    { "queued_wake_delivery_is_source_key_idempotent_and_claimed_once",
      wake_is_claimed_once, 0 },
    { "queue_completion_and_turn_commit_stamp_are_atomic",
      completion_and_stamp_are_atomic, 0 },
};

const struct topic topic_spec_queue = { cases, COUNT_OF(cases) };
