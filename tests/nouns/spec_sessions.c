/* The seed's cases of reading a session back, by their names (5.1). */
#include "nouns.h"

static void reports_declared_durability(struct world *w)
{
    EQ(w, belay_durability(w->a), w->store->durability);
    EQ(w, belay_durability(w->b), w->store->durability);
}

static void round_trips_agent_frames(struct world *w)
{
    const char *bytes = "\x7f frame";
    const char *ref = blob(w, bytes);
    struct belay_checkpoint cp = { .execution_state = { .body = "exec\0bytes",
                                                        .len = 10 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    const char *given = text(w, "%s%s%s",
                             "[{\"b\":1,\"a\":\"\\u00e9\",\"reason\":"
                             "{\"custom\":\"why\"},\"execution_state_ref\":\"",
                             ref, "\"}]");
    struct belay_commit c = { .agent_frames = given,
                              .current_frame = "f1",
                              .config = "{\"model\":\"m\",\"provider_id\":\"p\"}",
                              .checkpoint = &cp };

    RC(w, commit(w, "s", c), BELAY_OK);
    EQ(w, w->committed.revision, 1);
    RC(w, commit(w, "s", (struct belay_commit){ .expected_revision = 1 }), BELAY_OK);
    EQ(w, w->committed.revision, 2);

    w->use = w->b;
    EQ(w, revision(w, "s"), 2);
    STR(w, w->head.session_id, "s");
    STR(w, w->head.agent_frames,
        text(w,
             "[{\"a\":\"\xc3\xa9\",\"b\":1,\"execution_state_ref\":\"%s\","
             "\"reason\":{\"custom\":\"why\"}}]",
             ref));
    STR(w, w->head.current_frame, "f1");
    STR(w, w->head.config, "{\"model\":\"m\",\"provider_id\":\"p\"}");
    STR(w, content(w, ref), bytes);

    struct belay_checkpoint_info info = { 0 };
    char *body = NULL;
    size_t len = 0;
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_OK);
    RC(w, blob_read_all(w, info.execution_state_ref, &body, &len), BELAY_OK);
    EQ(w, len, 10);
    OK(w, len == 10 && memcmp(body, "exec\0bytes", 10) == 0);
}

static void hydrates_checkpoint_and_usage(struct world *w)
{
    struct belay_checkpoint cp = {
        .turn_state = "{\"turn_index\":3,\"token_usage\":{\"total\":7}}",
        .tool_state = { .body = "{\"generation\":5}", .len = 16 },
        .plugin_snapshot = { .body = "plugin", .len = 6 },
        .plugin_snapshot_revision = 9,
    };
    struct belay_usage used[] = {
        { .source = "turn", .model = "m1", .input_tokens = 10, .output_tokens = 2 },
        { .source = "turn", .model = "m2", .cached_input_tokens = 4 },
        { .source = "tool", .model = "m1", .reasoning_tokens = 1 },
        { .source = "turn",
          .model = "m1",
          .input_tokens = 5,
          .cached_input_tokens = 3 },
    };
    struct belay_checkpoint_info info = { 0 };

    RC(w,
       commit(w, "s",
              (struct belay_commit){
                  .checkpoint = &cp, .usage = used, .n_usage = COUNT_OF(used) }),
       BELAY_OK);
    w->use = w->b;
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_OK);
    STR(w, info.ref, w->committed.checkpoint_ref);
    STR(w, info.manifest, w->committed.manifest);
    STR(w, info.turn_state, "{\"token_usage\":{\"total\":7},\"turn_index\":3}");
    STR(w, content(w, info.tool_state_ref), "{\"generation\":5}");
    STR(w, content(w, info.plugin_snapshot_ref), "plugin");
    EQ(w, info.plugin_snapshot_revision, 9);
    STR(w, info.execution_state_ref, NULL);
    STR(w, content(w, info.ref), info.manifest);
    /* In the order they were first seen; what used nothing is left out. */
    STR(w, usage(w, "s"), "turn/m1 15 2 3 0; tool/m1 0 0 0 1");
}

static void active_path_selects_ancestry(struct world *w)
{
    const char *tree[] = { node(w, "root", NULL), node(w, "a", "root"),
                           node(w, "sibling", "root"), node(w, "b", "a") };
    struct belay_nodes all = { 0 }, some = { 0 };

    RC(w,
       commit(w, "s",
              (struct belay_commit){
                  .graph = BELAY_GRAPH_APPEND, .nodes = tree, .n_nodes = 4 }),
       BELAY_OK);
    w->use = w->b;
    STR(w, nodes(w, "s"), "root a sibling b");
    STR(w, path(w, "s", NULL), "root a b");
    STR(w, path(w, "s", "sibling"), "root sibling");
    RC(w, belay_session_nodes(session(w, "s"), 0, 0, w->arena, &all, &w->err),
       BELAY_OK);
    STR(w, all.leaf, "b");
    RC(w, belay_session_path(session(w, "s"), "sibling", w->arena, &some, &w->err),
       BELAY_OK);
    STR(w, some.leaf, "sibling");
    if (OK(w, some.n == 2)) {
        STR(w, some.nodes[0].parent_node_id, NULL);
        STR(w, some.nodes[1].parent_node_id, "root");
        STR(w, some.nodes[1].json, tree[2]);
        EQ(w, some.nodes[1].json_len, strlen(tree[2]));
    }

    /* Switching branches is a commit that moves the leaf and nothing else. */
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 1, .leaf = "sibling" }),
       BELAY_OK);
    STR(w, path(w, "s", NULL), "root sibling");
    STR(w, nodes(w, "s"), "root a sibling b");
}

static void metadata_round_trips(struct world *w)
{
    struct belay_session_meta given = { .size = sizeof(given),
                                        .name = "a name",
                                        .created_at = "2026-06-10T00:00:00Z",
                                        .model = "m",
                                        .cwd = "/srv/agent",
                                        .parent = "t",
                                        .caused_by =
                                            "{\"z\":1,\"a\":{\"kind\":\"x\"}}" };
    struct belay_session_meta got = { .size = sizeof(got) };

    RC(w, belay_session_meta_load(session(w, "s"), w->arena, &got, &w->err),
       BELAY_NOT_FOUND);
    RC(w, belay_session_meta_save(session(w, "s"), &given, false, &w->err), BELAY_OK);
    w->use = w->b;
    RC(w, belay_session_meta_load(session(w, "s"), w->arena, &got, &w->err), BELAY_OK);
    STR(w, got.name, "a name");
    STR(w, got.created_at, "2026-06-10T00:00:00Z");
    STR(w, got.model, "m");
    STR(w, got.cwd, "/srv/agent");
    STR(w, got.parent, "t");
    STR(w, got.caused_by, "{\"a\":{\"kind\":\"x\"},\"z\":1}");

    struct belay_session_meta bare = { .size = sizeof(bare), .model = "m2" };
    RC(w, belay_session_meta_save(session(w, "s"), &bare, false, &w->err), BELAY_OK);
    RC(w, belay_session_meta_load(session(w, "s"), w->arena, &got, &w->err), BELAY_OK);
    STR(w, got.name, "s"); /* it was replaced, not merged */
    OK(w, got.created_at && strncmp(got.created_at, "unix:", 5) == 0);
    STR(w, got.model, "m2");
    STR(w, got.cwd, NULL);
    STR(w, got.parent, NULL);
    STR(w, got.caused_by, NULL);
}

static const struct noun_case cases[] = {
    { "runtime_persistence_reports_declared_durability", reports_declared_durability,
      0 },
    { "commit_increments_head_and_round_trips_agent_frames", round_trips_agent_frames,
      0 },
    { "load_hydrates_checkpoint_and_usage", hydrates_checkpoint_and_usage, 0 },
    { "active_path_read_scope_selects_only_requested_ancestry",
      active_path_selects_ancestry, 0 },
    { "session_metadata_round_trips", metadata_round_trips, 0 },
};

const struct topic topic_spec_sessions = { cases, COUNT_OF(cases) };
