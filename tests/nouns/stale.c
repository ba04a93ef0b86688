/* L4: whatever a stale claim is used for, nothing changes. */
#include "nouns.h"

/* Makes a claim on two batches of "s" stale, one way or another. */
struct staleness {
    const char *how;
    const char *reason; /* of lease_lost, where it is said */
    void (*make)(struct world *w, const struct belay_claim *c);
};

static void superseded(struct world *w, const struct belay_claim *c)
{
    (void)c;
    STR(w, seqs(w, ask(w, (struct ask){ .owner = "y", .max = 8 })), "1 2");
}

static void half_superseded(struct world *w, const struct belay_claim *c)
{
    (void)c;
    STR(w, seqs(w, ask(w, (struct ask){ .owner = "y", .max = 1 })), "1");
}

/* By the same owner: it does not own what it owned before. */
static void superseded_by_itself(struct world *w, const struct belay_claim *c)
{
    STR(w, seqs(w, ask(w, (struct ask){ .owner = c->owner_id, .max = 8 })), "1 2");
}

static void released(struct world *w, const struct belay_claim *c)
{
    EQ(w, abandoned(w, c), 2);
}

static void completed(struct world *w, const struct belay_claim *c)
{
    RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK);
}

static void was_cancelled(struct world *w, const struct belay_claim *c)
{
    for (size_t i = 0; i < c->n_batches; i++)
        OK(w, cancelled(w, "s", c->batches[i].batch_id) != NULL);
}

static void dropped(struct world *w, const struct belay_claim *c)
{
    RC(w, belay_queue_drop(w->use, "s", c->batches[1].batch_id, &w->err), BELAY_OK);
}

static void session_deleted(struct world *w, const struct belay_claim *c)
{
    (void)c;
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
}

static const struct staleness ways[] = {
    { "superseded", "superseded", superseded },
    { "half of it superseded", "superseded", half_superseded },
    { "superseded by its own owner", "superseded", superseded_by_itself },
    { "released", "released", released },
    { "completed", "terminal", completed },
    { "cancelled", "terminal", was_cancelled },
    { "one of it dropped", "terminal", dropped },
    { "session deleted", NULL, session_deleted },
};

/* A commit that changes all there is to change, if it is let. */
static belay_rc commit_everything(struct world *w, const struct belay_claim *c)
{
    struct belay_checkpoint cp = { .tool_state = { .body = "stale", .len = 5 },
                                   .plugin_snapshot_revision = 4 };
    struct belay_usage used = { .source = "x", .model = "m", .input_tokens = 1 };
    const char *json = node(w, "stale", NULL), *attachment = "att";

    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                         .turn_id = "stale",
                                         .config = "{\"stale\":true}",
                                         .agent_frames = "[{\"stale\":true}]",
                                         .current_frame = "stale",
                                         .graph = BELAY_GRAPH_APPEND,
                                         .nodes = &json,
                                         .n_nodes = 1,
                                         .checkpoint = &cp,
                                         .usage = &used,
                                         .n_usage = 1,
                                         .completes = &c,
                                         .n_completes = 1,
                                         .attachments = &attachment,
                                         .n_attachments = 1 });
}

/* Every call that takes a claim. */
static void try_everything(struct world *w, const struct belay_claim *c,
                           const struct staleness *way)
{
    bool gone = way->make == session_deleted;
    size_t left = way->make == half_superseded || way->make == dropped ? 1 : 0;
    const char *before = everything(w);

    WHY(w, renew(w, c, MINUTE), BELAY_LEASE_LOST, way->reason);
    STR(w, everything(w), before);
    if (gone)
        WHY(w, commit_everything(w, c), BELAY_WRONG_STATE, "deleted");
    else
        WHY(w, commit_everything(w, c), BELAY_LEASE_LOST, way->reason);
    STR(w, everything(w), before);
    if (left == 0) { /* else it has something to give back, and may */
        EQ(w, abandoned(w, c), 0);
        STR(w, everything(w), before);
    }
}

static void stale_claims_change_nothing(struct world *w)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct tap *t = w->t;
        struct world fresh;
        unsigned failed = t->failed;

        if (!world_open(&fresh, t, w->store, WORLD_START_MS))
            return;
        post_many(&fresh, "s", 2);
        RC(&fresh, say(&fresh, "s", 0, "n", NULL), BELAY_OK);
        RC(&fresh,
           belay_attachment_intent(session(&fresh, "s"), "att", "u", NULL, &fresh.err),
           BELAY_OK);
        const struct belay_claim *c =
            ask(&fresh, (struct ask){ .max = 2, .lease = AT_ONCE });
        fresh.use = fresh.b;
        world_pass(&fresh, 5); /* its watch may be a little behind that of the other */
        if (OK(&fresh, c != NULL)) {
            ways[i].make(&fresh, c);
            fresh.use = fresh.a;
            try_everything(&fresh, c, &ways[i]);
        }
        if (t->failed > failed)
            printf("# where the claim was: %s\n", ways[i].how);
        world_close(&fresh);
    }
}

/* A claim that was never granted: one fact of a live one is changed. */
static void forged_claims_change_nothing(struct world *w)
{
    post_many(w, "s", 2);
    (void)post(w, (struct post){ .session = "t" });
    const struct belay_claim *c = take(w, 2);
    if (!c || !ask(w, (struct ask){ .session = "t" }))
        return;
    struct belay_claim forged[6];
    for (size_t i = 0; i < COUNT_OF(forged); i++)
        forged[i] = *c;
    forged[0].lease_token = digest(w, "guess");
    forged[1].lease_id = "00000000000000000000000000000000";
    forged[2].claim_id = "qwc:1:2";
    forged[3].session_id = "t";
    forged[4].lease_token = "";
    forged[5].lease_id = "";
    const char *before = everything(w);

    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        unsigned failed = w->t->failed;
        RC(w, renew(w, &forged[i], MINUTE), BELAY_LEASE_LOST);
        RC(w, commit_everything(w, &forged[i]), BELAY_LEASE_LOST);
        EQ(w, abandoned(w, &forged[i]), 0);
        STR(w, everything(w), before);
        if (w->t->failed > failed)
            printf("# in row %zu\n", i);
    }
    RC(w, commit_everything(w, c), BELAY_OK);
}

static const struct noun_case cases[] = {
    { "L4: every call with a stale claim changes nothing", stale_claims_change_nothing,
      0 },
    { "L4: a claim that was never granted changes nothing",
      forged_claims_change_nothing, 0 },
};

const struct topic topic_stale = { cases, COUNT_OF(cases) };
