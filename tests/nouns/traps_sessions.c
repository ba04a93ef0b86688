/* Where the seed's sessions were wrong (5.2 and the "Do:" of section 2): turns, usage,
 * deletion, attachments. */
#include "nouns.h"

static belay_rc turn(struct world *w, const char *turn_id, const char *json)
{
    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                         .turn_id = turn_id,
                                         .graph = BELAY_GRAPH_APPEND,
                                         .nodes = &json,
                                         .n_nodes = 1 });
}

/* A host that plays a turn again has new random ids and times.  It is answered with the
 * ids that were written, not with its own. */
static void replay_answers_with_written_ids(struct world *w)
{
    RC(w,
       turn(w, "t1",
            "{\"kind\":\"event\",\"node_id\":\"first\",\"timestamp\":\"1\","
            "\"event\":{\"text\":\"hello\"}}"),
       BELAY_OK);
    w->use = w->b;
    RC(w,
       turn(w, "t1",
            "{\"kind\":\"event\",\"node_id\":\"again\",\"timestamp\":\"2\","
            "\"event\":{\"text\":\"hello\"}}"),
       BELAY_OK);
    OK(w, w->committed.replayed);
    EQ(w, w->committed.n_node_ids, 1);
    STR(w, w->committed.node_ids[0], "first");
    STR(w, w->committed.leaf, "first");
    STR(w, nodes(w, "s"), "first");
}

/* Scrubbing by field names would lose these: they are the caller's data. */
static void turn_hash_sees_user_data(struct world *w)
{
    static const char *const changed[] = {
        "{\"kind\":\"event\",\"node_id\":\"n\",\"event\":{\"timestamp\":2}}",
        "{\"kind\":\"event\",\"node_id\":\"n\",\"event\":{\"timestamp\":1,\"x\":1}}",
        "{\"kind\":\"plugin\",\"node_id\":\"n\",\"event\":{\"timestamp\":1}}",
    };

    RC(w,
       turn(w, "t1",
            "{\"kind\":\"event\",\"node_id\":\"n\",\"event\":"
            "{\"timestamp\":1}}"),
       BELAY_OK);
    const char *before = everything(w);
    for (size_t i = 0; i < COUNT_OF(changed); i++) {
        if (!RC(w, turn(w, "t1", changed[i]), BELAY_TURN_CONFLICT))
            printf("# in row %zu\n", i);
    }
    STR(w, everything(w), before);
}

/* The order of the checks: binding, turn, revision, claims, refs, usage, graph. */
static void checks_are_in_order(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = take(w, 1);
    if (!c)
        return;
    struct belay_claim stale = *c;
    stale.lease_token = digest(w, "no");
    const struct belay_claim *completes = &stale;
    struct belay_checkpoint cp = { .plugin_snapshot_revision = BELAY_NONE,
                                   .tool_state = { .ref = digest(w, "nowhere") } };
    const char *dangling = node(w, "n2", "missing");
    RC(w, say(w, "s", 0, "n1", NULL), BELAY_OK);
    RC(w, turn(w, "done", node(w, "n3", NULL)), BELAY_OK);
    const char *before = everything(w);
    struct belay_commit all = { .session_id = "t",
                                .turn_id = "done",
                                .expected_revision = 9,
                                .completes = &completes,
                                .n_completes = 1,
                                .checkpoint = &cp,
                                .graph = BELAY_GRAPH_APPEND,
                                .nodes = &dangling,
                                .n_nodes = 1 };

    RC(w, commit(w, "s", all), BELAY_SESSION_BINDING_MISMATCH);
    all.session_id = "s";
    RC(w, commit(w, "s", all), BELAY_TURN_CONFLICT);
    all.turn_id = "new";
    RC(w, commit(w, "s", all), BELAY_HEAD_REVISION_CONFLICT);
    EQ(w, w->err.expected, 9);
    EQ(w, w->err.actual, 2);
    all.expected_revision = 2;
    RC(w, commit(w, "s", all), BELAY_LEASE_LOST);
    completes = c;
    WHY(w, commit(w, "s", all), BELAY_INVALID, "unknown_ref");
    cp.tool_state = (struct belay_part){ .body = "x", .len = 1 };
    WHY(w, commit(w, "s", all), BELAY_INVALID, "dangling_parent");
    STR(w, everything(w), before);
    dangling = node(w, "n2", "n1");
    RC(w, commit(w, "s", all), BELAY_OK);
}

static belay_rc use_tokens(struct world *w, const char *turn_id, const char *id,
                           int64_t input)
{
    struct belay_usage u = {
        .id = id, .source = "x", .model = "m", .input_tokens = input
    };

    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                         .turn_id = turn_id,
                                         .usage = &u,
                                         .n_usage = 1 });
}

static void usage_counts_once(struct world *w)
{
    RC(w, use_tokens(w, NULL, "u1", 5), BELAY_OK);
    RC(w, use_tokens(w, NULL, "u1", 5), BELAY_OK); /* a blind retry */
    STR(w, usage(w, "s"), "x/m 5 0 0 0");
    const char *before = everything(w);
    RC(w, use_tokens(w, NULL, "u1", 6), BELAY_KEY_CONFLICT);
    STR(w, everything(w), before);
    RC(w, use_tokens(w, NULL, NULL, 1), BELAY_OK); /* new each time without a turn */
    RC(w, use_tokens(w, NULL, NULL, 1), BELAY_OK);
    STR(w, usage(w, "s"), "x/m 7 0 0 0");
    RC(w, use_tokens(w, "t1", NULL, 10), BELAY_OK); /* derived from the turn */
    w->use = w->b;
    RC(w, use_tokens(w, "t1", NULL, 10), BELAY_OK);
    STR(w, usage(w, "s"), "x/m 17 0 0 0");
    RC(w, use_tokens(w, NULL, NULL, -7), BELAY_OK); /* a correction */
    STR(w, usage(w, "s"), "x/m 10 0 0 0");
    struct belay_usage twins[] = { { .source = "x", .model = "m", .input_tokens = 1 },
                                   { .source = "x", .model = "m", .input_tokens = 1 } };
    struct belay_commit c = { .expected_revision = BELAY_ANY_REVISION,
                              .turn_id = "t2",
                              .usage = twins,
                              .n_usage = 2 };
    RC(w, commit(w, "s", c), BELAY_OK);
    RC(w, commit(w, "s", c), BELAY_OK);
    STR(w, usage(w, "s"), "x/m 12 0 0 0"); /* two of one turn are two */
    struct belay_usage mixed[] = {
        { .id = "u1", .source = "x", .model = "m", .input_tokens = 5 },
        { .id = "u2", .source = "x", .model = "m", .input_tokens = 1 },
    };
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                     .usage = mixed,
                                     .n_usage = 2 }),
       BELAY_OK);
    STR(w, usage(w, "s"), "x/m 13 0 0 0"); /* one of them is known */
}

/* Sums are checked: nothing wraps, nothing is lost. */
static void usage_does_not_wrap(struct world *w)
{
    RC(w, use_tokens(w, NULL, "u1", INT64_MAX - 1), BELAY_OK);
    RC(w, use_tokens(w, NULL, "u2", 1), BELAY_OK);
    const char *before = everything(w);
    belay_rc rc = use_tokens(w, NULL, "u3", 1);
    OK(w, rc == BELAY_OUT_OF_RANGE || rc == BELAY_INVALID);
    STR(w, everything(w), before);
}

/* A handle that was open before the deletion revives nothing. */
static void stale_handles_revive_nothing(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta) };
    const char *ids[] = { "n" };
    size_t n = 0;
    bool changed = false;

    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    struct belay_session *early = session(w, "s");
    w->use = w->b;
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
    w->use = w->a;
    const char *before = everything(w);
    WHY(w, say(w, "s", 1, "n2", "n"), BELAY_WRONG_STATE, "deleted");
    WHY(w, belay_session_meta_save(early, &meta, false, &w->err), BELAY_WRONG_STATE,
        "deleted");
    WHY(w, belay_attachment_intent(early, "a", "u", NULL, &w->err), BELAY_WRONG_STATE,
        "deleted");
    belay_rc rc = belay_session_tombstone(early, ids, 1, &n, &w->err);
    OK(w, rc != BELAY_OK || n == 0);
    rc = belay_session_heal(early, &changed, &w->err);
    OK(w, rc != BELAY_OK || !changed);
    WHY(w, belay_session_head(early, w->arena, &w->head, &w->err), BELAY_NOT_FOUND,
        "deleted");
    STR(w, everything(w), before);
    if (world_reopen(w))
        WHY(w, say(w, "s", 0, "n", NULL), BELAY_WRONG_STATE, "deleted");
}

/* The seed's key is the id alone: the first session owns it. */
static void attachments_belong_to_sessions(struct world *w)
{
    const char *ids[] = { "same" };
    bool is_new = false;
    size_t n = 0;

    RC(w, belay_attachment_intent(session(w, "s"), "same", "u1", &is_new, &w->err),
       BELAY_OK);
    OK(w, is_new);
    RC(w, belay_attachment_intent(session(w, "t"), "same", "u2", &is_new, &w->err),
       BELAY_OK);
    OK(w, is_new);
    RC(w, belay_attachment_commit(session(w, "t"), ids, 1, &n, &w->err), BELAY_OK);
    EQ(w, n, 1);
    STR(w, uncommitted(w, "s", INT64_MAX), "same");
    STR(w, uncommitted(w, "t", INT64_MAX), "");
}

/* Blind writes are allowed, and say so. */
static void any_revision_replaces(struct world *w)
{
    RC(w, say(w, "s", BELAY_ANY_REVISION, "n1", NULL), BELAY_OK);
    RC(w, say(w, "s", BELAY_ANY_REVISION, "n2", NULL), BELAY_OK);
    EQ(w, revision(w, "s"), 2);
    RC(w, say(w, "s", 0, "n3", NULL), BELAY_HEAD_REVISION_CONFLICT);
    RC(w, say(w, "s", 3, "n3", NULL), BELAY_HEAD_REVISION_CONFLICT);
    EQ(w, w->err.actual, 2);
}

static const struct noun_case cases[] = {
    { "a turn played again is answered with the node ids that were written",
      replay_answers_with_written_ids, 0 },
    { "a turn's hash is computed by the store and sees the caller's data",
      turn_hash_sees_user_data, 0 },
    { "a commit's checks: binding, turn, revision, claims, refs, usage, graph",
      checks_are_in_order, 0 },
    { "usage with an id counts once; other content is a conflict", usage_counts_once,
      0 },
    { "usage sums do not wrap", usage_does_not_wrap, 0 },
    { "a handle from before a deletion revives nothing", stale_handles_revive_nothing,
      0 },
    { "attachments are keyed by session and id", attachments_belong_to_sessions, 0 },
    { "any revision is a blind write; a number is compared", any_revision_replaces, 0 },
};

const struct topic topic_traps_sessions = { cases, COUNT_OF(cases) };
