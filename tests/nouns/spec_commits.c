/* The seed's cases of committing, by their names (5.1). */
#include "nouns.h"

static void rejects_a_different_session(struct world *w)
{
    RC(w, say(w, "s", 0, "n1", NULL), BELAY_OK);
    const char *before = everything(w);
    const char *json = node(w, "n2", "n1");
    struct belay_commit other = { .session_id = "t",
                                  .expected_revision = 1,
                                  .graph = BELAY_GRAPH_APPEND,
                                  .nodes = &json,
                                  .n_nodes = 1 };

    RC(w, commit(w, "s", other), BELAY_SESSION_BINDING_MISMATCH);
    STR(w, everything(w), before);
    other.session_id = "s";
    RC(w, commit(w, "s", other), BELAY_OK);
    STR(w, belay_session_id(session(w, "s")), "s");
}

static belay_rc intent(struct world *w, const char *id)
{
    return belay_attachment_intent(session(w, "s"), id, text(w, "file:%s", id), NULL,
                                   &w->err);
}

static void attachments_record_and_stamp(struct world *w)
{
    const char *by_hand[] = { "hand", "never-heard-of" }, *in_commit[] = { "turn" };
    const struct belay_attachment *left = NULL;
    size_t n = 0;
    bool is_new = false, removed = false;

    RC(w, intent(w, "hand"), BELAY_OK);
    world_pass(w, 2);
    RC(w, intent(w, "turn"), BELAY_OK);
    world_pass(w, 2);
    RC(w, intent(w, "orphan"), BELAY_OK);
    RC(w,
       belay_attachment_intent(session(w, "s"), "orphan", "file:other", &is_new,
                               &w->err),
       BELAY_OK);
    OK(w, !is_new);
    w->use = w->b;
    STR(w, uncommitted(w, "s", INT64_MAX), "hand turn orphan");

    RC(w, belay_attachment_commit(session(w, "s"), by_hand, 2, &n, &w->err), BELAY_OK);
    EQ(w, n, 1);
    RC(w, belay_attachment_commit(session(w, "s"), by_hand, 2, &n, &w->err), BELAY_OK);
    EQ(w, n, 0); /* once each */
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .attachments = in_commit, .n_attachments = 1 }),
       BELAY_OK);
    RC(w,
       belay_attachment_uncommitted(session(w, "s"), INT64_MAX, 0, w->arena, &left, &n,
                                    &w->err),
       BELAY_OK);
    if (OK(w, n == 1)) {
        STR(w, left[0].attachment_id, "orphan");
        STR(w, left[0].session_id, "s");
        STR(w, left[0].uri, "file:orphan"); /* the first one's */
        EQ(w, left[0].committed_at_ms, BELAY_TIME_NONE);
        STR(w, uncommitted(w, "s", left[0].intent_at_ms), "orphan"); /* at the cut */
        STR(w, uncommitted(w, "s", left[0].intent_at_ms - 1), "");
    }
    RC(w, belay_attachment_forget(session(w, "s"), "orphan", &removed, &w->err),
       BELAY_OK);
    OK(w, removed);
    RC(w, belay_attachment_forget(session(w, "s"), "orphan", &removed, &w->err),
       BELAY_OK);
    OK(w, !removed);
    STR(w, uncommitted(w, "s", INT64_MAX), "");
}

/* The seed has a variant that records nothing.  Here: nothing was recorded, and every
 * call is answered with that, not with an error. */
static void no_attachments(struct world *w)
{
    const char *ids[] = { "x" };
    size_t n = 9;
    bool removed = true;

    STR(w, uncommitted(w, "s", INT64_MAX), "");
    RC(w, belay_attachment_commit(session(w, "s"), ids, 1, &n, &w->err), BELAY_OK);
    EQ(w, n, 0);
    RC(w, belay_attachment_commit(session(w, "s"), NULL, 0, &n, &w->err), BELAY_OK);
    RC(w, belay_attachment_forget(session(w, "s"), "x", &removed, &w->err), BELAY_OK);
    OK(w, !removed);
    STR(w, uncommitted(w, "s", INT64_MAX), "");
    EQ(w, revision(w, "s"), 0);
}

static void tombstone_vacuum_and_gc(struct world *w)
{
    const char *tree[] = { node(w, "a", NULL), node(w, "b", "a") };
    const char *dead[] = { "a", "unknown" };
    struct belay_node found = { 0 };
    size_t n = 0;

    RC(w,
       commit(w, "s",
              (struct belay_commit){
                  .graph = BELAY_GRAPH_APPEND, .nodes = tree, .n_nodes = 2 }),
       BELAY_OK);
    RC(w, belay_session_node(session(w, "s"), "a", w->arena, &found, &w->err),
       BELAY_OK);
    STR(w, found.json, tree[0]);
    RC(w, belay_session_tombstone(session(w, "s"), dead, 2, &n, &w->err), BELAY_OK);
    EQ(w, n, 1);
    RC(w, belay_session_tombstone(session(w, "s"), dead, 2, &n, &w->err), BELAY_OK);
    EQ(w, n, 0);
    RC(w, belay_session_tombstone(session(w, "s"), NULL, 0, &n, &w->err), BELAY_OK);
    EQ(w, n, 0);

    w->use = w->b;
    RC(w, belay_session_node(session(w, "s"), "a", w->arena, &found, &w->err),
       BELAY_NOT_FOUND);
    STR(w, nodes(w, "s"), "b");
    STR(w, path(w, "s", NULL), "...b"); /* truncated, and it says so */
    (void)revision(w, "s");
    EQ(w, w->head.node_count, 1);
    RC(w, belay_session_vacuum(session(w, "s"), &n, &w->err), BELAY_OK);
    EQ(w, n, 1);
    RC(w, belay_session_vacuum(session(w, "s"), &n, &w->err), BELAY_OK);
    EQ(w, n, 0);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
}

static belay_rc final_commit(struct world *w, int64_t expected, const char *config)
{
    const char *json = node(w, "n1", NULL);
    struct belay_usage used = { .source = "turn", .model = "m", .input_tokens = 3 };

    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = expected,
                                         .turn_id = "turn",
                                         .config = config,
                                         .graph = BELAY_GRAPH_APPEND,
                                         .nodes = &json,
                                         .n_nodes = 1,
                                         .usage = &used,
                                         .n_usage = 1 });
}

static void final_stamp_is_idempotent(struct world *w)
{
    RC(w, final_commit(w, 0, "{\"a\":1}"), BELAY_OK);
    struct belay_committed first = w->committed;
    RC(w, say(w, "s", 1, "n2", "n1"), BELAY_OK); /* the head has moved on */
    const char *before = everything(w);

    w->use = w->b;
    static const int64_t expected[] = { 0, 2, 77, BELAY_ANY_REVISION };
    for (size_t i = 0; i < COUNT_OF(expected); i++) { /* the hash ignores it */
        RC(w, final_commit(w, expected[i], "{ \"a\" : 1 }"), BELAY_OK);
        OK(w, w->committed.replayed);
        EQ(w, w->committed.revision, first.revision);
        STR(w, w->committed.leaf, first.leaf);
        EQ(w, w->committed.node_count, first.node_count);
    }
    WHY(w, final_commit(w, 0, "{\"a\":2}"), BELAY_TURN_CONFLICT, NULL);
    WHY(w, final_commit(w, 2, "{\"a\":2}"), BELAY_TURN_CONFLICT, NULL);
    STR(w, everything(w), before);
    STR(w, usage(w, "s"), "turn/m 3 0 0 0");
}

static void survives_reopen(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta), .name = "kept" };
    struct belay_checkpoint cp = { .tool_state = { .body = "tools", .len = 5 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    struct belay_usage used = { .source = "turn", .model = "m", .input_tokens = 3 };
    const char *json = node(w, "n1", NULL);

    RC(w, belay_session_meta_save(session(w, "s"), &meta, false, &w->err), BELAY_OK);
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .turn_id = "turn",
                                     .graph = BELAY_GRAPH_APPEND,
                                     .nodes = &json,
                                     .n_nodes = 1,
                                     .checkpoint = &cp,
                                     .usage = &used,
                                     .n_usage = 1 }),
       BELAY_OK);
    (void)post(w, (struct post){ .key = "k" });
    post_many(w, "s", 1);
    const struct belay_claim *c = take(w, 1);
    RC(w, intent(w, "x"), BELAY_OK);
    RC(w, belay_blob_pin(w->use, "pin", blob(w, "pinned"), &w->err), BELAY_OK);
    const char *proof = NULL, *before = everything(w);
    if (!c || !RC(w, belay_claim_text(c, w->arena, &proof, &w->err), BELAY_OK))
        return;

    if (!world_reopen(w))
        return;
    STR(w, everything(w), before);
    w->use = w->b;
    STR(w, everything(w), before);
    RC(w, belay_claim_parse(proof, w->arena, &c, &w->err), BELAY_OK);
    RC(w, finish(w, "s", 1, c), BELAY_OK);
    STR(w, listed(w, "s"), "2");
}

static const struct noun_case cases[] = {
    { "commit_rejects_a_different_session_id", rejects_a_different_session, 0 },
    { "attachment_manifest_records_intent_and_commit_stamps",
      attachments_record_and_stamp, 0 },
    { "noop_attachment_manifest_is_explicit_and_empty", no_attachments, 0 },
    { "tombstone_vacuum_and_gc_are_minimally_consistent", tombstone_vacuum_and_gc, 0 },
    { "final_commit_stamp_is_idempotent_and_conflicts_on_changed_hash",
      final_stamp_is_idempotent, 0 },
    { "runtime_persistence_survives_reopen", survives_reopen, 0 },
};

const struct topic topic_spec_commits = { cases, COUNT_OF(cases) };
