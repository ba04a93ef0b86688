/* Where the seed's inbox was wrong (5.2 and the "Do:" of section 1): entering, and what
 * is never given out twice. */
#include "nouns.h"

#define MANY 100

static bool all_differ(const char *const *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(ids[i], ids[j]) == 0)
                return false;
        }
    }
    return true;
}

/* 5.2, 1: time stands still meanwhile. */
static void keyless_in_one_millisecond(struct world *w)
{
    const char *ids[2 * MANY];
    size_t n = 0;

    for (int i = 0; i < MANY; i++) {
        w->use = i % 2 ? w->b : w->a;
        const struct belay_batch *b = post(w, (struct post){ 0 });
        ids[n++] = b ? b->batch_id : "?";
        b = post(w, (struct post){ .session = "t" });
        ids[n++] = b ? b->batch_id : "?";
        EQ(w, b ? b->enqueue_seq : -1, i + 1);
    }
    OK(w, all_differ(ids, n));
}

static void same_key_is_flagged(struct world *w)
{
    struct post one = { .key = "k", .payload = "{\"a\":1,\"b\":[1,2]}" };
    struct post same = { .key = "k", .payload = " { \"b\" : [1, 2], \"a\" : 1 } " };
    struct post drift = { .key = "k", .payload = "{\"a\":2,\"b\":[1,2]}" };

    (void)post(w, one);
    OK(w, !w->enqueued.replayed);
    OK(w, !w->enqueued.payload_mismatch);
    w->use = w->b;
    (void)post(w, same);
    OK(w, w->enqueued.replayed);
    OK(w, !w->enqueued.payload_mismatch);
    (void)post(w, drift);
    OK(w, w->enqueued.replayed);
    OK(w, w->enqueued.payload_mismatch);
    STR(w, w->enqueued.batch->items[0].payload, "{\"a\":1,\"b\":[1,2]}");
    STR(w, listed(w, "s"), "1");

    /* While a claim holds it, too. */
    OK(w, take(w, 1) != NULL);
    (void)post(w, same);
    OK(w, w->enqueued.replayed);
    STR(w, w->enqueued.batch->claim_id, "qwc:1:1");
}

/* The key is free again when its batch is gone. */
static void keys_live_as_long_as_batches(struct world *w)
{
    const struct belay_batch *b = post(w, (struct post){ .key = "k" });
    if (!b)
        return;

    OK(w, cancelled(w, "s", b->batch_id) != NULL);
    b = post(w, (struct post){ .key = "k", .payload = "2" });
    OK(w, !w->enqueued.replayed);
    EQ(w, b ? b->enqueue_seq : -1, 2);
    RC(w, finish(w, "s", 0, take(w, 1)), BELAY_OK);
    b = post(w, (struct post){ .key = "k" });
    OK(w, !w->enqueued.replayed);
    EQ(w, b ? b->enqueue_seq : -1, 3);
    RC(w, belay_queue_drop(w->use, "s", "3", &w->err), BELAY_OK);
    b = post(w, (struct post){ .key = "k" });
    OK(w, !w->enqueued.replayed);
    EQ(w, b ? b->enqueue_seq : -1, 4);
}

/* 5.2, 2: the batch with the highest sequence goes each time. */
static void sequences_are_never_reused(struct world *w)
{
    const char *claims[12], *batches[12];
    size_t n = 0;

    for (int i = 0; i < 12; i++) {
        const struct belay_batch *b = post(w, (struct post){ 0 });
        const struct belay_claim *c = take(w, 8);
        if (!b || !OK(w, c != NULL))
            return;
        EQ(w, b->enqueue_seq, i + 1);
        batches[n] = b->batch_id;
        claims[n++] = c->claim_id;
        if (i % 3 == 0)
            RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK);
        else if (i % 3 == 1)
            RC(w, belay_queue_drop(w->use, "s", b->batch_id, &w->err), BELAY_OK);
        else if (abandoned(w, c) == 1)
            OK(w, cancelled(w, "s", b->batch_id) != NULL);
        STR(w, listed(w, "s"), "");
        if (i == 5 && !world_reopen(w))
            return;
        w->use = i % 2 ? w->b : w->a;
    }
    OK(w, all_differ(claims, n));
    OK(w, all_differ(batches, n));
}

static void drop_by_either_name(struct world *w)
{
    const struct belay_batch *one = post(w, (struct post){ .key = "k" });
    post_many(w, "s", 2);
    const struct belay_claim *c = take(w, 3);
    if (!one || !c)
        return;

    w->use = w->b;
    RC(w, belay_queue_drop(w->use, "s", one->batch_id, &w->err), BELAY_OK);
    RC(w, belay_queue_drop(w->use, "s", one->batch_id, &w->err), BELAY_NOT_FOUND);
    RC(w, belay_queue_drop(w->use, "s", "1", &w->err), BELAY_NOT_FOUND);
    RC(w, belay_queue_drop(w->use, "s", "3", &w->err), BELAY_OK); /* held or not */
    RC(w, belay_queue_drop(w->use, "s", "4", &w->err), BELAY_NOT_FOUND);
    RC(w, belay_queue_drop(w->use, "t", "2", &w->err), BELAY_NOT_FOUND);
    STR(w, listed(w, "s"), "2");
    WHY(w, renew(w, c, MINUTE), BELAY_LEASE_LOST, "terminal");
    RC(w, finish(w, "s", 0, c), BELAY_LEASE_LOST);
    STR(w, listed(w, "s"), "2");
}

static void batches_without_items(struct world *w)
{
    struct belay_draft d = { .size = sizeof(d),
                             .session_id = "s",
                             .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                             .slot = BELAY_EXCLUSIVE };
    static const char *const three[] = { "[]", "\"\xc3\xa9\\u00e9\\n\"", "1.50" };

    RC(w, belay_queue_enqueue(w->use, &d, w->arena, &w->enqueued, &w->err), BELAY_OK);
    EQ(w, w->enqueued.batch->n_items, 0);
    d.payloads = three;
    d.n_payloads = 3;
    RC(w, belay_queue_enqueue(w->use, &d, w->arena, &w->enqueued, &w->err), BELAY_OK);

    w->use = w->b;
    STR(w, seqs(w, take(w, 1)), "1");
    const struct belay_claim *c = take(w, 1);
    if (!c || !OK(w, c->batches[0].n_items == 3))
        return;
    static const char *const canonical[] = { "[]", "\"\xc3\xa9\xc3\xa9\\n\"", "1.5" };
    for (size_t i = 0; i < 3; i++) {
        const struct belay_item *item = &c->batches[0].items[i];
        STR(w, item->payload, canonical[i]);
        EQ(w, item->payload_len, strlen(canonical[i]));
        STR(w, item->item_id, text(w, "%s:item:%zu", c->batches[0].batch_id, i));
    }
}

/* What a deleted session had is gone for good, and so is its id. */
static void deleted_inboxes_take_nothing(struct world *w)
{
    bool deleted = false;

    post_many(w, "s", 2);
    const struct belay_claim *c = take(w, 1);
    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    RC(w, belay_session_delete(session(w, "s"), &deleted, &w->err), BELAY_OK);
    OK(w, deleted);
    w->use = w->b;
    WHY(w, post_try(w, (struct post){ 0 }), BELAY_WRONG_STATE, "deleted");
    STR(w, listed(w, "s"), "");
    WHY(w, say(w, "s", 0, "n", NULL), BELAY_WRONG_STATE, "deleted");
    WHY(w, say(w, "s", BELAY_ANY_REVISION, "n", NULL), BELAY_WRONG_STATE, "deleted");
    if (c)
        RC(w, renew(w, c, MINUTE), BELAY_LEASE_LOST);
    post_many(w, "t", 1); /* others are not touched */
    STR(w, listed(w, "t"), "1");
}

static const struct noun_case cases[] = {
    { "two handles, many keyless enqueues in one millisecond: ids are unique",
      keyless_in_one_millisecond, 0 },
    { "a source key that is there is answered with replayed, and payload_mismatch",
      same_key_is_flagged, 0 },
    { "a source key lives as long as its batch", keys_live_as_long_as_batches, 0 },
    { "sequence, batch ids and claim ids are never reused after a delete",
      sequences_are_never_reused, 0 },
    { "drop removes a batch by id or sequence, held or not", drop_by_either_name, 0 },
    { "a batch has any number of items, in canonical form", batches_without_items, 0 },
    { "a deleted session's inbox takes nothing any more", deleted_inboxes_take_nothing,
      0 },
};

const struct topic topic_traps_queue = { cases, COUNT_OF(cases) };
