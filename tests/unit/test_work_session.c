/* Commits and what they leave to be read. */
#include <pthread.h>

#include "test_work_session.h"

/* --- the head --- */

static void head_moves(struct work *w)
{
    struct session s = session_s(w);
    struct belay_commit c = commit_of(LIST(node("a", NULL)), 1);
    struct belay_checkpoint checkpoint = { .plugin_snapshot_revision = BELAY_NONE,
                                           .execution_state = { .body = "frame bytes",
                                                                .len = 11 } };
    struct belay_committed out;
    struct belay_head head;

    WORK_RC(w, session_head(&s, &w->arena, &head, &w->err), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.reason, "");
    c.expected_revision = 0;
    c.checkpoint = &checkpoint;
    c.config = "{ \"model\":\"m\", \"a\":1.50 }";
    c.agent_frames =
        "[{\"reason\":{\"custom\":\"why\"},\"frame_id\":\"f\",\"execution_state_ref\":"
        "\"571eb0961d3480a711151b719a0fc87ecd90aeba87a80ca2add6bb3c54d7a8a7\"}]";
    c.current_frame = "f";
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_INVALID); /* not that blob */
    TAP_STR(w->t, w->err.reason, "unknown_ref");
    struct blob_piece piece;
    char frames[256];
    WORK_RC(w,
            blob_prepare(&piece, w->space, bytes_str("frame bytes"), bytes_of(NULL, 0),
                         false, &w->arena, &w->err),
            BELAY_OK);
    (void)snprintf(frames, sizeof(frames),
                   "[{\"reason\":{\"custom\":\"why\"}, \"frame_id\":\"f\","
                   "\"execution_state_ref\":\"%s\"}]",
                   piece.sha256);
    c.agent_frames = frames;
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_OK);
    TAP_EQ(w->t, out.revision, 1);
    TAP_OK(w->t, !out.replayed);
    TAP_STR(w->t, out.leaf, "a");
    TAP_EQ(w->t, out.node_count, 1);
    TAP_EQ(w->t, out.n_node_ids, 1);
    TAP_STR(w->t, out.node_ids[0], "a");
    head = head_of(w, "s");
    TAP_STR(w->t, head.session_id, "s");
    TAP_EQ(w->t, head.revision, 1);
    TAP_STR(w->t, head.config, "{\"a\":1.5,\"model\":\"m\"}");
    (void)snprintf(frames, sizeof(frames),
                   "[{\"execution_state_ref\":\"%s\",\"frame_id\":\"f\",\"reason\":{"
                   "\"custom\":\"why\"}}]",
                   piece.sha256);
    TAP_STR(w->t, head.agent_frames, frames);
    TAP_STR(w->t, head.current_frame, "f");
    TAP_STR(w->t, head.checkpoint_ref, out.checkpoint_ref);
    TAP_EQ(w->t, head.created_at_ms, START_MS);

    /* What is not given stays. */
    struct bytes body;
    WORK_RC(w, blob_load(w->space, piece.sha256, 100, &w->arena, &body, &w->err),
            BELAY_OK);
    TAP_EQ(w->t, body.len, 11);
    fake_advance_us(&w->clock, 5000);
    c = commit_nothing();
    c.expected_revision = 1;
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_OK);
    TAP_EQ(w->t, out.revision, 2);
    TAP_STR(w->t, out.leaf, "a");
    TAP_STR(w->t, out.checkpoint_ref, NULL);
    struct belay_head later = head_of(w, "s");
    TAP_STR(w->t, later.config, head.config);
    TAP_STR(w->t, later.agent_frames, head.agent_frames);
    TAP_STR(w->t, later.current_frame, "f");
    TAP_STR(w->t, later.checkpoint_ref, head.checkpoint_ref);
    TAP_STR(w->t, later.leaf, "a");
    TAP_EQ(w->t, later.created_at_ms, START_MS);
    TAP_EQ(w->t, later.updated_at_ms, START_MS + 5);
    check_all(w);
}

static void test_head_moves(struct tap *t)
{
    work_everywhere(t, head_moves);
}

static void bound(struct work *w)
{
    struct belay_commit c = commit_of(LIST(node("a", NULL)), 1);

    c.session_id = "other";
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_SESSION_BINDING_MISMATCH);
    TAP_OK(w->t,
           strstr(w->err.message, "other") && strstr(w->err.message, "session s"));
    c.session_id = "s";
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
}

static void test_bound(struct tap *t)
{
    work_everywhere(t, bound);
}

static void hydrated(struct work *w)
{
    struct session s = session_s(w);
    struct belay_checkpoint cp = { .turn_state = "{\"turn_index\":3}",
                                   .tool_state = { .body = "tools", .len = 5 },
                                   .plugin_snapshot = { .body = "plug", .len = 4 },
                                   .plugin_snapshot_revision = 7 };
    const struct belay_usage used[] = {
        { .source = "turn", .model = "m", .input_tokens = 10, .output_tokens = 2 },
        { .source = "turn", .model = "m", .input_tokens = 1, .reasoning_tokens = 4 },
        { .source = "sub", .model = "m", .cached_input_tokens = 9 },
        { .source = "sub", .model = "n", .input_tokens = 5 },
    };
    struct belay_commit c = commit_nothing();
    struct belay_checkpoint_info info;
    const struct belay_usage *usage = NULL;
    struct belay_committed out;
    size_t n = 0;

    c.checkpoint = &cp;
    c.usage = used;
    c.n_usage = COUNT_OF(used);
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_OK);
    WORK_RC(w, checkpoint_load(w->space, "s", &w->arena, &info, &w->err), BELAY_OK);
    TAP_STR(w->t, info.ref, out.checkpoint_ref);
    TAP_STR(w->t, info.manifest, out.manifest);
    TAP_STR(w->t, info.turn_state, "{\"turn_index\":3}");
    TAP_EQ(w->t, info.plugin_snapshot_revision, 7);
    TAP_OK(w->t, info.tool_state_ref && info.plugin_snapshot_ref);
    TAP_STR(w->t, info.execution_state_ref, NULL);
    WORK_RC(w, session_usage(&s, &w->arena, &usage, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 2); /* cached tokens alone do not count */
    TAP_STR(w->t, usage[0].source, "turn");
    TAP_EQ(w->t, usage[0].input_tokens, 11);
    TAP_EQ(w->t, usage[0].output_tokens, 2);
    TAP_EQ(w->t, usage[0].reasoning_tokens, 4);
    TAP_STR(w->t, usage[1].model, "n");
    check_all(w);
}

static void test_hydrated(struct tap *t)
{
    work_everywhere(t, hydrated);
}

static void cas(struct work *w)
{
    struct store *other = work_store(w);
    struct session mine = session_s(w),
                   theirs = session_in(work_space(w, other, "default"), "s");
    struct belay_commit c = commit_of(LIST(node("a", NULL)), 1);
    struct belay_committed out;

    c.expected_revision = 0;
    WORK_RC(w, session_commit(&mine, &c, &w->arena, &out, &w->err), BELAY_OK);
    WORK_RC(w, session_commit(&theirs, &c, &w->arena, &out, &w->err),
            BELAY_HEAD_REVISION_CONFLICT);
    TAP_EQ(w->t, w->err.expected, 0);
    TAP_EQ(w->t, w->err.actual, 1);
    TAP_EQ(w->t, head_of(w, "s").revision, 1);
    c = commit_nothing();
    c.expected_revision = 1;
    WORK_RC(w, session_commit(&theirs, &c, &w->arena, &out, &w->err), BELAY_OK);
    WORK_RC(w, session_commit(&mine, &c, &w->arena, &out, &w->err),
            BELAY_HEAD_REVISION_CONFLICT);
    TAP_EQ(w->t, w->err.actual, 2);
    c.expected_revision = BELAY_ANY_REVISION;
    WORK_RC(w, session_commit(&mine, &c, &w->arena, &out, &w->err), BELAY_OK);
    TAP_EQ(w->t, out.revision, 3);
    c.expected_revision = 1;
    WORK_RC(w, commit_to(w, "none", &c, &out), BELAY_HEAD_REVISION_CONFLICT);
    TAP_EQ(w->t, w->err.actual, 0);
    store_close(other);
}

static void test_cas(struct tap *t)
{
    work_everywhere(t, cas);
}

/* Several threads commit on what they saw last, until each has won so many times. */
struct racer {
    pthread_t thread;
    struct session s;
    int name, wins, wanted;
    belay_rc odd; /* anything but winning and losing */
};

static void *race(void *arg)
{
    struct racer *r = arg;
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_committed out;
    struct belay_error err;
    int64_t revision = 0;
    char text[64];

    while (r->wins < r->wanted && !r->odd) {
        const char *nodes[] = { text };
        struct belay_commit c = commit_of(nodes, 1);
        (void)snprintf(text, sizeof(text), "{\"node_id\":\"%d.%d\",\"kind\":\"k\"}",
                       r->name, r->wins);
        c.expected_revision = revision;
        arena_reset(&a);
        belay_rc rc = session_commit(&r->s, &c, &a, &out, &err);
        if (rc == BELAY_OK && out.revision != revision + 1)
            rc = BELAY_CORRUPT;
        if (rc == BELAY_OK)
            r->wins++;
        if (rc == BELAY_OK)
            revision = out.revision;
        else if (rc == BELAY_HEAD_REVISION_CONFLICT && err.actual > revision)
            revision = err.actual;
        else
            r->odd = rc;
    }
    return NULL;
}

static void races(struct work *w)
{
    struct store *other = work_store(w);
    struct space *there = work_space(w, other, "default");
    struct racer racers[4];
    int wanted = work_is_slow(w) ? 5 : 50;

    for (int i = 0; i < 4; i++) {
        racers[i] = (struct racer){ .s = session_in(i % 2 ? there : w->space, "s"),
                                    .name = i,
                                    .wanted = wanted };
        TAP_EQ(w->t, pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(racers[i].thread, NULL);
        TAP_EQ(w->t, racers[i].odd, BELAY_OK);
    }
    TAP_EQ(w->t, head_of(w, "s").revision, 4 * wanted);
    TAP_EQ(w->t, head_of(w, "s").node_count, 4 * wanted);
    for (int i = 1; i <= 4 * wanted; i++)
        TAP_OK(w->t, entry_of(w, "s", i) != NULL);
    check_all(w);
    store_close(other);
}

static void test_races(struct tap *t)
{
    work_everywhere(t, races);
}

/* --- refusals --- */

static void refused(struct work *w, const struct belay_commit *c, belay_rc code,
                    const char *reason)
{
    CLEANUP(buf_release) struct buf before = work_dump(w, "default");

    WORK_RC(w, commit_to(w, "s", c, NULL), code);
    if (!TAP_STR(w->t, w->err.reason, reason))
        printf("# %s\n", w->err.message);
    TAP_OK(w->t, dump_is(w, &before));
}

static void invalid_nodes(struct work *w)
{
    static const struct {
        const char *node, *reason;
    } bad[] = {
        { "", "node" },
        { "[]", "node" },
        { "{\"kind\":\"event\"}", "node_id" },
        { "{\"node_id\":\"x\"}", "node" },
        { "{\"node_id\":7,\"kind\":\"event\"}", "node_id" },
        { "{\"node_id\":\"\",\"kind\":\"event\"}", "node_id" },
        { "{\"node_id\":\"x\",\"kind\":7}", "node" },
        { "{\"node_id\":\"x\",\"kind\":\"k\",\"parent_node_id\":7}", "parent_node_id" },
        { "{\"node_id\":\"x\",\"node_id\":\"y\",\"kind\":\"k\"}", "node" },
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct belay_commit c = commit_of(&bad[i].node, 1);
        refused(w, &c, BELAY_INVALID, bad[i].reason);
    }
    struct belay_commit c = commit_of(LIST(NULL), 1);
    refused(w, &c, BELAY_INVALID, "node");
    c.nodes = NULL;
    refused(w, &c, BELAY_INVALID, "nodes");
}

static void invalid_words(struct work *w)
{
    char name[300];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const struct {
        struct belay_commit c;
        const char *reason;
    } bad[] = {
        { { .graph = 3 }, "graph" },
        { { .graph = -1 }, "graph" },
        { { .nodes = LIST("{}"), .n_nodes = 1 }, "graph" },
        { { .leaf = "a", .clear_leaf = true }, "leaf" },
        { { .leaf = "" }, "leaf" },
        { { .leaf = name }, "leaf" },
        { { .turn_id = "a\nb" }, "turn_id" },
        { { .current_frame = "\xff" }, "current_frame" },
        { { .config = "[]" }, "config" },
        { { .config = "{" }, "config" },
        { { .agent_frames = "{}" }, "agent_frames" },
        { { .agent_frames = "[1]" }, "agent_frames" },
        { { .agent_frames = "[{\"execution_state_ref\":\"x\"}]" }, "unknown_ref" },
        { { .attachments = LIST(""), .n_attachments = 1 }, "attachment_id" },
        { { .usage = &(struct belay_usage){ .model = "m" }, .n_usage = 1 }, "usage" },
        { { .usage = &(struct belay_usage){ .id = "", .source = "s", .model = "m" },
            .n_usage = 1 },
          "usage_id" },
        { { .completes = &(const struct belay_claim *){ NULL }, .n_completes = 1 },
          "completes" },
        { { .n_completes = 65 }, "too_large" },
        { { .n_usage = 1001 }, "too_large" },
        { { .n_attachments = 1001 }, "too_large" },
        { { .graph = BELAY_GRAPH_APPEND, .n_nodes = 10001 }, "too_large" },
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct belay_commit c = bad[i].c;
        c.expected_revision = BELAY_ANY_REVISION;
        refused(w, &c, BELAY_INVALID, bad[i].reason);
    }
    struct belay_commit c = commit_nothing();
    c.expected_revision = -2;
    refused(w, &c, BELAY_INVALID, "expected_revision");
    struct session bad_id = session_in(w->space, "");
    struct belay_committed out;
    WORK_RC(w, session_commit(&bad_id, &c, &w->arena, &out, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "session_id");
}

static void invalid_sizes(struct work *w)
{
    size_t max = (size_t)1 << 20;
    char *text = malloc(max + 2);
    const char *nodes[18] = { NULL };
    struct belay_commit c = commit_of(nodes, COUNT_OF(nodes));

    memset(text, ' ', max + 1);
    text[max + 1] = '\0';
    text[0] = '{';
    text[max] = '}';
    nodes[0] = text;
    c.n_nodes = 1;
    refused(w, &c, BELAY_INVALID, "too_large");
    c = commit_nothing();
    c.config = text;
    refused(w, &c, BELAY_INVALID, "too_large");
    text[max] = '\0'; /* exactly as long as it may be; all of them are too many */
    memcpy(text, "{\"node_id\":\"x\",\"kind\":\"k\"}", 26);
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        nodes[i] = text;
    c = commit_of(nodes, 17);
    refused(w, &c, BELAY_INVALID, "too_large");
    c.n_nodes = 16;
    refused(w, &c, BELAY_INVALID, "duplicate_node");
    c.n_nodes = 1;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    free(text);
}

static void invalid(struct work *w)
{
    invalid_nodes(w);
    invalid_words(w);
    invalid_sizes(w);
}

static void test_invalid(struct tap *t)
{
    work_everywhere(t, invalid);
}

/* A commit in which everything is wrong; one thing after the other is put right. */
static void order(struct work *w)
{
    static const char no_blob[] =
        "0000000000000000000000000000000000000000000000000000000000000000";
    struct belay_usage seen = { .id = "u", .source = "s", .model = "m" };
    struct belay_usage other = seen;
    struct belay_commit first = commit_of(LIST(node("a", NULL)), 1);
    struct belay_checkpoint cp = { .tool_state = { .ref = no_blob },
                                   .plugin_snapshot_revision = BELAY_NONE };

    enqueue_to(w, "s", NULL);
    const struct belay_claim *stale = claim_from(w, "s", 1, 0);
    const struct belay_claim *current = claim_from(w, "s", 1, 60000);
    first.turn_id = "t";
    first.usage = &seen;
    first.n_usage = 1;
    WORK_RC(w, commit_to(w, "s", &first, NULL), BELAY_OK);

    other.input_tokens = 1;
    struct belay_commit c = commit_of(LIST(node("b", "nowhere")), 1);
    c.session_id = "x";
    c.turn_id = "t";
    c.expected_revision = 7;
    c.completes = &stale;
    c.n_completes = 1;
    c.checkpoint = &cp;
    c.agent_frames = "[{\"execution_state_ref\":\"0000000000000000000000000000000000"
                     "000000000000000000000000000001\"}]";
    c.usage = &other;
    c.n_usage = 1;
    refused(w, &c, BELAY_SESSION_BINDING_MISMATCH, "");
    c.session_id = NULL;
    refused(w, &c, BELAY_TURN_CONFLICT, "");
    TAP_STR(w->t, w->err.entity, "t");
    c.turn_id = "t2";
    refused(w, &c, BELAY_HEAD_REVISION_CONFLICT, "");
    TAP_EQ(w->t, w->err.expected, 7);
    TAP_EQ(w->t, w->err.actual, 1);
    c.expected_revision = 1;
    refused(w, &c, BELAY_LEASE_LOST, "superseded");
    c.completes = &current;
    refused(w, &c, BELAY_INVALID, "unknown_ref");
    cp.tool_state.ref = NULL;
    refused(w, &c, BELAY_INVALID, "unknown_ref");
    c.agent_frames = NULL;
    refused(w, &c, BELAY_KEY_CONFLICT, "usage");
    TAP_STR(w->t, w->err.entity, "u");
    c.n_usage = 0;
    refused(w, &c, BELAY_INVALID, "dangling_parent");
    TAP_STR(w->t, w->err.entity, "nowhere");
    c.nodes = LIST(node("b", "a"));
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, batches_in(w, "s"), 0);
    check_all(w);
}

static void test_order(struct tap *t)
{
    work_everywhere(t, order);
}

/* --- the graph --- */

static void graph_refusals(struct work *w)
{
    struct session s = session_s(w);
    WORK_RC(
        w,
        append_to(w, "s", LIST(node("a", NULL), node("b", "a"), node("dead", "a")), 3),
        BELAY_OK);
    WORK_RC(w, session_tombstone(&s, LIST("dead"), 1, NULL, &w->err), BELAY_OK);

    struct belay_commit c = commit_of(LIST(node("c", "b"), node("c", "b")), 2);
    refused(w, &c, BELAY_INVALID, "duplicate_node");
    c = commit_of(LIST(node("b", "a")), 1);
    refused(w, &c, BELAY_INVALID, "duplicate_node");
    c = commit_of(LIST(node("dead", "a")), 1);
    refused(w, &c, BELAY_INVALID, "duplicate_node");
    c = commit_of(LIST(node("c", "dead")), 1);
    refused(w, &c, BELAY_INVALID, "dangling_parent");
    c = commit_of(LIST(node("c", "x")), 1);
    refused(w, &c, BELAY_INVALID, "dangling_parent");
    TAP_STR(w->t, w->err.entity, "x");
    c = commit_of(LIST(node("c", "d"), node("d", "c")), 2);
    refused(w, &c, BELAY_INVALID, "cycle");
    c = commit_of(LIST(node("c", "b")), 1);
    c.leaf = "x";
    refused(w, &c, BELAY_INVALID, "missing_leaf");
    c = commit_nothing();
    c.leaf = "dead";
    refused(w, &c, BELAY_INVALID, "missing_leaf");
    c = commit_of(LIST(node("z", "a")), 1); /* what is there goes */
    c.graph = BELAY_GRAPH_REPLACE;
    refused(w, &c, BELAY_INVALID, "dangling_parent");
    c = commit_of(LIST(node("z", NULL)), 1);
    c.graph = BELAY_GRAPH_REPLACE;
    c.leaf = "a";
    refused(w, &c, BELAY_INVALID, "missing_leaf");
}

static void test_graph_refusals(struct tap *t)
{
    work_everywhere(t, graph_refusals);
}

static void paths(struct work *w)
{
    struct session s = session_s(w);
    struct belay_nodes nodes;
    struct belay_node one;
    struct belay_commit c;

    WORK_RC(w, append_to(w, "s", LIST(node("root", NULL), node("left", "root")), 2),
            BELAY_OK);
    WORK_RC(w, append_to(w, "s", LIST(node("right", "root"), node("tip", "right")), 2),
            BELAY_OK);
    TAP_STR(w->t, all_nodes(w, "s"), "root,left,right,tip");
    TAP_STR(w->t, path_of(w, "s", NULL), "root,right,tip");
    TAP_STR(w->t, path_of(w, "s", "left"), "root,left");
    TAP_STR(w->t, head_of(w, "s").leaf, "tip");
    c = commit_nothing(); /* a branch is switched to by moving the leaf */
    c.leaf = "left";
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    WORK_RC(w, session_path(&s, NULL, &w->arena, &nodes, &w->err), BELAY_OK);
    TAP_STR(w->t, ids_of(&nodes), "root,left");
    TAP_STR(w->t, nodes.leaf, "left");
    TAP_STR(w->t, nodes.nodes[0].parent_node_id, NULL);
    TAP_STR(w->t, nodes.nodes[1].parent_node_id, "root");
    TAP_EQ(w->t, nodes.nodes[1].seq, 2);
    WORK_RC(w, session_path(&s, "tip", &w->arena, &nodes, &w->err), BELAY_OK);
    TAP_STR(w->t, nodes.leaf, "tip");
    WORK_RC(w, session_path(&s, "none", &w->arena, &nodes, &w->err), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.entity, "none");
    WORK_RC(w, session_node(&s, "tip", &w->arena, &one, &w->err), BELAY_OK);
    TAP_STR(w->t, one.parent_node_id, "right");
    TAP_EQ(w->t, one.json_len, strlen(one.json));
    TAP_OK(w->t, strstr(one.json, "\"timestamp\":\"t-tip\"") != NULL);
    WORK_RC(w, session_node(&s, "none", &w->arena, &one, &w->err), BELAY_NOT_FOUND);

    c = commit_nothing();
    c.clear_leaf = true;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_STR(w->t, head_of(w, "s").leaf, NULL);
    TAP_STR(w->t, path_of(w, "s", NULL), "");
    /* Parents may come later in the same delta. */
    c = commit_of(LIST(node("y", "x"), node("x", "tip")), 2);
    c.leaf = "y";
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_STR(w->t, path_of(w, "s", NULL), "root,right,tip,x,y");
    check_all(w);
}

static void test_paths(struct tap *t)
{
    work_everywhere(t, paths);
}

static void replaced(struct work *w)
{
    struct session s = session_s(w);
    struct belay_commit c;
    struct belay_committed out;
    struct belay_nodes nodes;

    WORK_RC(w,
            append_to(w, "s", LIST(node("a", NULL), node("b", "a"), node("c", "b")), 3),
            BELAY_OK);
    WORK_RC(w, session_tombstone(&s, LIST("b"), 1, NULL, &w->err), BELAY_OK);
    c = commit_of(LIST(node("x", NULL), node("b", "x")), 2); /* an old id, too */
    c.graph = BELAY_GRAPH_REPLACE;
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_OK);
    TAP_EQ(w->t, out.node_count, 2);
    TAP_STR(w->t, out.leaf, "b");
    WORK_RC(w, session_nodes(&s, 0, 0, &w->arena, &nodes, &w->err), BELAY_OK);
    TAP_STR(w->t, ids_of(&nodes), "x,b");
    TAP_EQ(w->t, nodes.nodes[0].seq, 4); /* sequences are never used again */
    TAP_STR(w->t, path_of(w, "s", NULL), "x,b");
    size_t removed = 9;
    WORK_RC(w, session_vacuum(&s, &removed, &w->err), BELAY_OK);
    TAP_EQ(w->t, removed, 0);
    c.nodes = NULL;
    c.n_nodes = 0;
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_OK);
    TAP_EQ(w->t, out.node_count, 0);
    TAP_STR(w->t, out.leaf, NULL);
    TAP_STR(w->t, all_nodes(w, "s"), "");
    WORK_RC(w, append_to(w, "s", LIST(node("a", NULL)), 1), BELAY_OK);
    WORK_RC(w, session_nodes(&s, 0, 0, &w->arena, &nodes, &w->err), BELAY_OK);
    TAP_EQ(w->t, nodes.nodes[0].seq, 6);
    check_all(w);
}

static void test_replaced(struct tap *t)
{
    work_everywhere(t, replaced);
}

/* --- turns --- */

static belay_rc commit_turn(struct work *w, const char *const *nodes, size_t n,
                            const char *config, struct belay_committed *out)
{
    struct belay_commit c = commit_of(nodes, n);

    c.turn_id = "turn";
    c.config = config;
    return commit_to(w, "s", &c, out);
}

#define MESSAGE(id, parent, stamp, part, content)                                 \
    "{\"node_id\":\"" id "\"," parent "\"timestamp\":\"" stamp                    \
    "\",\"kind\":\"event\",\"event\":{\"Conversation\":{\"id\":\"" id             \
    "\",\"role\":\"user\",\"parts\":[{\"id\":\"" part "\",\"content\":\"" content \
    "\"}]}}}"

static void turn_hash(struct work *w)
{
    static const struct {
        const char *first, *second, *config;
        bool same;
    } turns[] = {
        { MESSAGE("m1", "", "T1", "p1", "hi"),
          MESSAGE("m2", "\"parent_node_id\":\"m1\",", "T1", "p2", "ho"), "{}", true },
        /* ids, parts' ids and times are others */
        { MESSAGE("n1", "", "T2", "q1", "hi"),
          MESSAGE("n2", "\"parent_node_id\":\"n1\",", "T3", "q2", "ho"), "{ }", true },
        /* a parent that is not in the delta is no parent */
        { MESSAGE("n1", "\"parent_node_id\":\"elsewhere\",", "T2", "q1", "hi"),
          MESSAGE("n2", "\"parent_node_id\":\"n1\",", "T3", "q2", "ho"), "{}", true },
        { MESSAGE("m1", "", "T1", "p1", "hi"),
          MESSAGE("m2", "\"parent_node_id\":\"m1\",", "T1", "p2", "hO"), "{}", false },
        { MESSAGE("m1", "", "T1", "p1", "hi"), MESSAGE("m2", "", "T1", "p2", "ho"),
          "{}", false },
        { MESSAGE("m1", "", "T1", "p1", "hi"),
          MESSAGE("m2", "\"parent_node_id\":\"m1\",", "T1", "p2", "ho"), "{\"a\":1}",
          false },
        { MESSAGE("m1", "", "T1", "p1", "hi"),
          MESSAGE("m2", "\"parent_node_id\":\"m1\",", "T1", "p2", "ho"), NULL, false },
    };
    struct belay_committed first, again;

    WORK_RC(w, commit_turn(w, LIST(turns[0].first, turns[0].second), 2, "{}", &first),
            BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        CLEANUP(buf_release) struct buf before = work_dump(w, "default");
        belay_rc rc = commit_turn(w, LIST(turns[i].first, turns[i].second), 2,
                                  turns[i].config, &again);
        WORK_RC(w, rc, turns[i].same ? BELAY_OK : BELAY_TURN_CONFLICT);
        TAP_OK(w->t, dump_is(w, &before));
        if (rc)
            continue;
        TAP_OK(w->t, again.replayed);
        TAP_EQ(w->t, again.revision, first.revision);
        TAP_EQ(w->t, again.n_node_ids, 2);
        TAP_STR(w->t, again.node_ids[1], "m2"); /* those that were written */
        TAP_STR(w->t, again.leaf, "m2");
        TAP_EQ(w->t, again.node_count, 2);
    }
}

static void test_turn_hash(struct tap *t)
{
    work_everywhere(t, turn_hash);
}

/* Content that only looks like an id is content. */
static void turn_content(struct work *w)
{
    static const char *const plain =
        "{\"node_id\":\"x\",\"kind\":\"plugin\",\"body\":{\"id\":\"%s\",\"role\":\"r\","
        "\"parts\":[{\"id\":\"%s\"}],\"timestamp\":\"%s\",\"node_id\":\"%s\"}}";
    char a[256], b[256];
    struct belay_committed out;

    (void)snprintf(a, sizeof(a), plain, "1", "1", "1", "1");
    WORK_RC(w, commit_turn(w, LIST(a), 1, NULL, &out), BELAY_OK);
    WORK_RC(w, commit_turn(w, LIST(a), 1, NULL, &out), BELAY_OK);
    TAP_OK(w->t, out.replayed);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(b, sizeof(b), plain, i == 0 ? "2" : "1", i == 1 ? "2" : "1",
                       i == 2 ? "2" : "1", i == 3 ? "2" : "1");
        WORK_RC(w, commit_turn(w, LIST(b), 1, NULL, &out), BELAY_TURN_CONFLICT);
    }
}

static void test_turn_content(struct tap *t)
{
    work_everywhere(t, turn_content);
}

/* Everything else that counts, and what does not. */
static void turn_rest(struct work *w)
{
    struct belay_usage use = {
        .id = "u", .source = "s", .model = "m", .input_tokens = 1
    };
    struct belay_checkpoint cp = { .tool_state = { .body = "tools", .len = 5 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    struct belay_commit first = commit_of(LIST(node("a", NULL)), 1), c;
    struct belay_committed out, again;

    first.turn_id = "t";
    first.expected_revision = 0;
    first.usage = &use;
    first.n_usage = 1;
    first.checkpoint = &cp;
    first.current_frame = "f";
    first.attachments = LIST("x");
    first.n_attachments = 1;
    WORK_RC(w, commit_to(w, "s", &first, &out), BELAY_OK);
    c = commit_nothing();
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* the head has moved on */

    struct belay_usage other_id = use;
    other_id.id = "v";
    c = first;
    c.usage = &other_id;
    c.leaf = "nowhere";
    WORK_RC(w, commit_to(w, "s", &c, &again), BELAY_OK);
    TAP_OK(w->t, again.replayed);
    TAP_EQ(w->t, again.revision, 1);
    TAP_STR(w->t, again.manifest, out.manifest);
    TAP_STR(w->t, again.checkpoint_ref, out.checkpoint_ref);

    struct belay_usage more = use;
    more.input_tokens = 2;
    struct belay_checkpoint other_cp = cp;
    other_cp.tool_state = (struct belay_part){ .body = "other", .len = 5 };
    struct belay_commit others[7];
    for (size_t i = 0; i < COUNT_OF(others); i++)
        others[i] = first;
    others[0].usage = &more;
    others[1].n_usage = 0;
    others[2].checkpoint = &other_cp;
    others[3].checkpoint = NULL;
    others[4].current_frame = "g";
    others[5].n_attachments = 0;
    others[6].graph = BELAY_GRAPH_REPLACE;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        refused(w, &others[i], BELAY_TURN_CONFLICT, "");
    WORK_RC(w, commit_to(w, "s2", &first, &again), BELAY_OK); /* turns of a session */
    TAP_OK(w->t, !again.replayed);
}

static void test_turn_rest(struct tap *t)
{
    work_everywhere(t, turn_rest);
}

/* --- completion --- */

static void completion(struct work *w)
{
    struct belay_commit c = commit_of(LIST(node("a", NULL)), 1);
    struct belay_head head;
    struct belay_committed out, again;
    struct session s = session_s(w);

    enqueue_to(w, "s", "k1");
    enqueue_to(w, "s", "k2");
    const struct belay_claim *stale = claim_from(w, "s", 2, 0);
    const struct belay_claim *claim = claim_from(w, "s", 2, 60000);
    c.turn_id = "t";
    c.completes = &stale;
    c.n_completes = 1;
    refused(w, &c, BELAY_LEASE_LOST, "superseded");
    WORK_RC(w, session_head(&s, &w->arena, &head, &w->err), BELAY_NOT_FOUND);
    TAP_EQ(w->t, batches_in(w, "s"), 2);

    struct belay_claim wrong = *claim;
    wrong.lease_token = stale->lease_token;
    const struct belay_claim *pointer = &wrong;
    c.completes = &pointer;
    refused(w, &c, BELAY_LEASE_LOST, "superseded");
    wrong = *claim;
    wrong.n_batches = 1; /* missing */
    refused(w, &c, BELAY_LEASE_LOST, "incomplete");
    const struct belay_batch twice[] = { claim->batches[0], claim->batches[0] };
    wrong = *claim;
    wrong.batches = twice;
    refused(w, &c, BELAY_INVALID, "duplicate_batch");
    c.completes = (const struct belay_claim *const[]){ claim, claim };
    c.n_completes = 2;
    refused(w, &c, BELAY_INVALID, "duplicate_batch");
    struct belay_commit foreign = c;
    foreign.completes = &claim;
    foreign.n_completes = 1;
    WORK_RC(w, commit_to(w, "elsewhere", &foreign, NULL), BELAY_LEASE_LOST);

    fake_advance_us(&w->clock, 120000000); /* late, and nobody took over (L5) */
    c.completes = &claim;
    c.n_completes = 1;
    WORK_RC(w, commit_to(w, "s", &c, &out), BELAY_OK);
    TAP_EQ(w->t, batches_in(w, "s"), 0);
    const char *entry = entry_of(w, "s", 1);
    TAP_OK(w->t, entry && strstr(entry, claim->batches[0].batch_id) &&
                     strstr(entry, claim->batches[1].batch_id));

    /* The retry is answered though the batches are gone, whoever claims to hold them. */
    CLEANUP(buf_release) struct buf before = work_dump(w, "default");
    WORK_RC(w, commit_to(w, "s", &c, &again), BELAY_OK);
    TAP_OK(w->t, again.replayed);
    TAP_EQ(w->t, again.revision, out.revision);
    c.completes = &stale;
    WORK_RC(w, commit_to(w, "s", &c, &again), BELAY_OK);
    TAP_OK(w->t, again.replayed);
    TAP_OK(w->t, dump_is(w, &before));
    c.n_completes = 0;
    refused(w, &c, BELAY_TURN_CONFLICT, "");
    check_all(w);
}

static void test_completion(struct tap *t)
{
    work_everywhere(t, completion);
}

/* Claims that came back from text, and two of them in one commit. */
static void completion_of_texts(struct work *w)
{
    struct belay_commit c = commit_nothing();
    const struct belay_claim *parsed[2] = { NULL, NULL };
    const char *text = NULL;

    for (size_t i = 0; i < 2; i++) {
        enqueue_to(w, "s", NULL);
        const struct belay_claim *claim = claim_from(w, "s", 1, 60000);
        WORK_RC(w, claim_text(claim, &w->arena, &text, &w->err), BELAY_OK);
        WORK_RC(w, claim_parse(text, &w->arena, &parsed[i], &w->err), BELAY_OK);
    }
    c.turn_id = "t";
    c.completes = parsed;
    c.n_completes = 2;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, batches_in(w, "s"), 0);
    c.completes = (const struct belay_claim *const[]){ parsed[1], parsed[0] };
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* in another order */
    check_all(w);
}

static void test_completion_of_texts(struct tap *t)
{
    work_everywhere(t, completion_of_texts);
}

/* --- usage --- */

static int64_t tokens(struct work *w, const char *model)
{
    struct session s = session_s(w);
    const struct belay_usage *usage = NULL;
    size_t n = 0;

    WORK_RC(w, session_usage(&s, &w->arena, &usage, &n, &w->err), BELAY_OK);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(usage[i].model, model) == 0)
            return usage[i].input_tokens;
    }
    return 0;
}

static void usage_once(struct work *w)
{
    struct belay_usage u = {
        .id = "u1", .source = "s", .model = "m", .input_tokens = 5
    };
    struct belay_commit c = commit_nothing();

    c.usage = &u;
    c.n_usage = 1;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* a blind retry */
    TAP_EQ(w->t, tokens(w, "m"), 5);
    u.output_tokens = 1;
    refused(w, &c, BELAY_KEY_CONFLICT, "usage");
    u = (struct belay_usage){ .source = "s", .model = "m", .input_tokens = 5 };
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* new each time */
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, tokens(w, "m"), 15);
    c.turn_id = "t";
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_OK(w->t, strstr(entry_of(w, "s", 5), "\"usage_ids\":[\"turn:t:0\"]") != NULL);
    u.id = "turn:t:0";
    c.turn_id = "t2"; /* the same delta by its name */
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, tokens(w, "m"), 20);
    c.turn_id = NULL;
    const struct belay_usage twice[] = {
        { .id = "u2", .source = "s", .model = "n", .input_tokens = 1 },
        { .id = "u2", .source = "s", .model = "n", .input_tokens = 1 },
    };
    c.usage = twice;
    c.n_usage = 2;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, tokens(w, "n"), 1);
}

static void usage_bounds(struct work *w)
{
    struct belay_usage u = { .source = "s", .model = "max", .input_tokens = INT64_MAX };
    struct belay_commit c = commit_nothing();

    c.usage = &u;
    c.n_usage = 1;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    u.input_tokens = 1;
    refused(w, &c, BELAY_OUT_OF_RANGE, "input_tokens");
    u.input_tokens = -7;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, tokens(w, "max"), INT64_MAX - 7);
    /* A sum that is 0 is left out; one that only looks like it is not. */
    u = (struct belay_usage){ .source = "s", .model = "zero", .input_tokens = 3 };
    u.output_tokens = -3;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, tokens(w, "zero"), 0);
    u = (struct belay_usage){ .source = "s",
                              .model = "wraps",
                              .input_tokens = INT64_MAX,
                              .output_tokens = INT64_MAX,
                              .reasoning_tokens = 2 };
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, tokens(w, "wraps"), INT64_MAX);

    struct belay_usage *many = calloc(1000, sizeof(*many));
    char(*models)[16] = calloc(1000, sizeof(*models));
    for (size_t i = 0; i < 1000; i++) {
        (void)snprintf(models[i], sizeof(models[i]), "m%zu", i);
        many[i] = (struct belay_usage){ .source = "s", .model = models[i] };
    }
    c.usage = many;
    c.n_usage = 1000;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    for (size_t i = 0; i < 100; i++)
        many[i].source = "other";
    c.n_usage = 100;
    refused(w, &c, BELAY_INVALID, "usage");
    free(models);
    free(many);
}

static void test_usage_once(struct tap *t)
{
    work_everywhere(t, usage_once);
}

static void test_usage_bounds(struct tap *t)
{
    work_everywhere(t, usage_bounds);
}

/* --- frames --- */

static int64_t touched_at(struct work *w, const char *sha256)
{
    CLEANUP(buf_release) struct buf dump = work_dump(w, "default");
    static const char row[] = "row blob ver=";
    char *save = NULL;
    long long at = -1;

    buf_append_char(&dump, '\0');
    for (char *line = strtok_r((char *)dump.ptr, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *column = strstr(line, "touched_at_ms=");
        if (strncmp(line, row, sizeof(row) - 1) == 0 && strstr(line, sha256) && column)
            at = strtoll(column + strlen("touched_at_ms="), NULL, 10);
    }
    return at;
}

static void frames_touch(struct work *w)
{
    struct belay_commit c = commit_nothing();
    struct blob_info a, b;
    char one[200], two[400];

    work_blob(w, w->space, 3, 'a', &a);
    work_blob(w, w->space, 3, 'b', &b);
    (void)snprintf(one, sizeof(one), "[{\"execution_state_ref\":\"%s\"}]", a.sha256);
    (void)snprintf(
        two, sizeof(two),
        "[{\"execution_state_ref\":\"%s\"},{\"execution_state_ref\":\"%s\"}]", a.sha256,
        b.sha256);
    fake_advance_us(&w->clock, 1000000);
    c.agent_frames = one;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, touched_at(w, a.sha256), START_MS + 1000);
    TAP_EQ(w->t, touched_at(w, b.sha256), START_MS);
    fake_advance_us(&w->clock, 1000000);
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* the same again */
    c.agent_frames = two;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    TAP_EQ(w->t, touched_at(w, a.sha256), START_MS + 1000); /* named before */
    TAP_EQ(w->t, touched_at(w, b.sha256), START_MS + 2000);
    check_all(w);
}

static void test_frames_touch(struct tap *t)
{
    work_everywhere(t, frames_touch);
}

/* --- the log and the lists --- */

static void logs(struct work *w)
{
    struct session s = session_s(w);
    struct belay_commit_log log;
    struct belay_commit c = commit_of(LIST(node("a", NULL)), 1);

    c.turn_id = "t1";
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    fake_advance_us(&w->clock, 1000);
    c = commit_nothing();
    for (int i = 0; i < 4; i++)
        WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    WORK_RC(w, session_log(&s, 0, 2, &w->arena, &log, &w->err), BELAY_OK);
    TAP_EQ(w->t, log.n, 2);
    TAP_EQ(w->t, log.next_after, 2);
    TAP_STR(w->t, log.entries[0].turn_id, "t1");
    TAP_EQ(w->t, log.entries[0].at_ms, START_MS);
    TAP_STR(w->t, log.entries[0].json,
            "{\"at_ms\":1750000000000,\"completed\":[],\"leaf\":\"a\",\"node_count\":1,"
            "\"node_ids\":[\"a\"],\"revision\":1,\"turn_id\":\"t1\",\"usage_ids\":[]}");
    TAP_STR(w->t, log.entries[1].turn_id, NULL);
    TAP_EQ(w->t, log.entries[1].at_ms, START_MS + 1);
    WORK_RC(w, session_log(&s, 2, 100, &w->arena, &log, &w->err), BELAY_OK);
    TAP_EQ(w->t, log.n, 3);
    TAP_EQ(w->t, log.next_after, 0);
    TAP_EQ(w->t, log.entries[2].revision, 5);
    WORK_RC(w, session_log(&s, 5, 0, &w->arena, &log, &w->err), BELAY_OK);
    TAP_EQ(w->t, log.n, 0);
    TAP_EQ(w->t, log.next_after, 0);
    s.id = "none";
    WORK_RC(w, session_log(&s, 0, 0, &w->arena, &log, &w->err), BELAY_NOT_FOUND);
}

static void test_logs(struct tap *t)
{
    work_everywhere(t, logs);
}

static void node_pages(struct work *w)
{
    struct session s = session_s(w);
    const char *nodes[64];
    struct belay_nodes page;
    char id[16], parent[16];
    int64_t after = 0, seen = 0;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 64; i++) {
            (void)snprintf(id, sizeof(id), "n%d", 64 * round + i);
            (void)snprintf(parent, sizeof(parent), "n%d", 64 * round + i - 1);
            nodes[i] = node(id, round + i > 0 ? parent : NULL);
        }
        WORK_RC(w, append_to(w, "s", nodes, 64), BELAY_OK);
    }
    do {
        WORK_RC(w, session_nodes(&s, after, 130, &w->arena, &page, &w->err), BELAY_OK);
        for (size_t i = 0; i < page.n; i++)
            TAP_EQ(w->t, page.nodes[i].seq, ++seen);
        after = page.next_after_seq;
    } while (after > 0);
    TAP_EQ(w->t, seen, 320);
    WORK_RC(w, session_nodes(&s, 9999, 0, &w->arena, &page, &w->err), BELAY_OK);
    TAP_EQ(w->t, page.n, 0);
    TAP_EQ(w->t, page.next_after_seq, 0);
    WORK_RC(w, session_path(&s, NULL, &w->arena, &page, &w->err), BELAY_OK);
    TAP_EQ(w->t, page.n, 320);
    TAP_STR(w->t, page.nodes[0].node_id, "n0");
    TAP_STR(w->t, page.nodes[319].node_id, "n319");
    TAP_OK(w->t, !page.truncated);
}

static void test_node_pages(struct tap *t)
{
    work_everywhere(t, node_pages);
}

static const char *listed(struct work *w, const char *parent, const char *cursor,
                          size_t limit, const char **next)
{
    static char text[256];
    struct belay_sessions list = { .n = 0 };
    size_t len = 0;

    WORK_RC(w, session_list(w->space, parent, cursor, limit, &w->arena, &list, &w->err),
            BELAY_OK);
    text[0] = '\0';
    for (size_t i = 0; i < list.n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s@%d",
                                i > 0 ? "," : "", list.heads[i].session_id,
                                (int)list.heads[i].revision);
    if (next)
        *next = list.next_cursor;
    return text;
}

static void save_child(struct work *w, const char *id, const char *parent)
{
    struct session s = session_in(w->space, id);
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = parent };

    WORK_RC(w, session_meta_save(&s, &meta, false, &w->err), BELAY_OK);
}

static void lists(struct work *w)
{
    struct belay_commit c = commit_nothing();
    static const char *const names[] = { "b", "a:1", "c" };
    struct belay_sessions list;
    const char *next = NULL;

    TAP_STR(w->t, listed(w, NULL, NULL, 0, &next), "");
    TAP_STR(w->t, next, NULL);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        WORK_RC(w, commit_to(w, names[i], &c, NULL), BELAY_OK);
        fake_advance_us(&w->clock, 1000);
    }
    WORK_RC(w, commit_to(w, "b", &c, NULL), BELAY_OK);
    TAP_STR(w->t, listed(w, NULL, NULL, 0, &next), "b@2,a:1@1,c@1");
    TAP_STR(w->t, next, NULL);
    TAP_STR(w->t, listed(w, NULL, NULL, 2, &next), "b@2,a:1@1");
    TAP_STR(w->t, next, "1750000000001:a:1");
    TAP_STR(w->t, listed(w, NULL, next, 2, &next), "c@1");
    TAP_STR(w->t, next, NULL);
    static const char *const bad[] = { "", "x", ":a", "1:", "1x:a" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        WORK_RC(w, session_list(w->space, NULL, bad[i], 0, &w->arena, &list, &w->err),
                BELAY_INVALID);
        TAP_STR(w->t, w->err.reason, "cursor");
    }

    save_child(w, "kid", "b"); /* no commit yet */
    fake_advance_us(&w->clock, 1000);
    save_child(w, "c", "b");
    TAP_STR(w->t, listed(w, "b", NULL, 0, &next), "kid@0,c@1");
    TAP_STR(w->t, listed(w, "b", NULL, 1, &next), "kid@0");
    TAP_STR(w->t, listed(w, "b", next, 1, &next), "c@1");
    fake_advance_us(&w->clock, 1000);
    save_child(w, "kid", "b"); /* stays where it was */
    TAP_STR(w->t, listed(w, "b", NULL, 0, NULL), "kid@0,c@1");
    save_child(w, "kid", "c");
    TAP_STR(w->t, listed(w, "b", NULL, 0, NULL), "c@1");
    TAP_STR(w->t, listed(w, "c", NULL, 0, NULL), "kid@0");
    save_child(w, "kid", NULL);
    TAP_STR(w->t, listed(w, "c", NULL, 0, NULL), "");
    check_all(w);
}

static void test_lists(struct tap *t)
{
    work_everywhere(t, lists);
}

static void woken(struct work *w)
{
    struct session s = session_s(w);
    struct bytes topic = bytes_str("session/s");
    struct belay_commit c = commit_nothing();
    struct listener *l = NULL;
    bool changed;

    WORK_RC(w, space_listen(w->space, &topic, 1, NULL, &w->arena, &l, &w->err),
            BELAY_OK);
    WORK_RC(w, listener_wait(l, 1, &w->err), BELAY_TIMEOUT);
    WORK_RC(w, commit_to(w, "t", &c, NULL), BELAY_OK);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    WORK_RC(w, listener_wait(l, 1, &w->err), BELAY_TIMEOUT);
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    WORK_RC(w, listener_wait(l, 1, &w->err), BELAY_OK);
    listener_close(l);
}

static void test_woken(struct tap *t)
{
    work_everywhere(t, woken);
}

/* --- round trips --- */

static void expect_trips(struct work *w, belay_rc rc, unsigned reads, unsigned commits)
{
    WORK_RC(w, rc, BELAY_OK);
    work_expect_trips(w, reads, commits);
}

static void round_trips(struct work *w)
{
    struct session s = session_s(w);
    struct belay_usage use = { .id = "u", .source = "s", .model = "m" };
    struct belay_checkpoint cp = { .tool_state = { .body = "tools", .len = 5 },
                                   .execution_state = { .body = "frames", .len = 6 },
                                   .plugin_snapshot_revision = 1 };
    struct belay_commit c = commit_nothing();
    struct belay_head head;
    struct belay_nodes nodes;
    struct belay_committed out;

    if (!work_is_traced(w))
        return;
    WORK_RC(w, append_to(w, "s", LIST(node("a", NULL)), 1), BELAY_OK);
    WORK_RC(w, attachment_intent(&s, "x", "u", NULL, &w->err), BELAY_OK);
    enqueue_to(w, "s", NULL);
    enqueue_to(w, "s", "key");
    const struct belay_claim *claim = claim_from(w, "s", 2, 60000);
    trace_reset(w->driver);
    expect_trips(w, commit_to(w, "s", &c, &out), 1, 1);
    c = commit_of(LIST(node("b", "a"), node("c", "b")), 2);
    c.turn_id = "t";
    c.config = "{}";
    c.agent_frames = "[]";
    c.usage = &use;
    c.n_usage = 1;
    c.checkpoint = &cp;
    c.completes = &claim;
    c.n_completes = 1;
    c.attachments = LIST("x");
    c.n_attachments = 1;
    expect_trips(w, commit_to(w, "s", &c, &out), 1, 1);
    /* The log; confirmed (T4).  Where a turn is thought to be new, that was in vain. */
    expect_trips(w, commit_to(w, "s", &c, &out), 2,
                 w->driver->caps & DRIVER_FAR ? 2 : 1);
    expect_trips(w, session_head(&s, &w->arena, &head, &w->err), 1, 0);
    expect_trips(w, session_path(&s, NULL, &w->arena, &nodes, &w->err), 3, 1);
}

static void test_round_trips(struct tap *t)
{
    work_everywhere(t, round_trips);
}

/* --- opened again --- */

static void reopened(struct work *w)
{
    struct belay_commit c = commit_of(LIST(node("a", NULL)), 1);
    struct belay_checkpoint cp = { .execution_state = { .body = "x", .len = 1 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    struct belay_checkpoint_info info;
    struct belay_session_meta meta = { .size = sizeof(meta), .name = "name" };
    const struct belay_attachment *open = NULL;
    struct session s = session_s(w);
    size_t n = 0;

    c.checkpoint = &cp;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    WORK_RC(w, session_meta_save(&s, &meta, false, &w->err), BELAY_OK);
    WORK_RC(w, attachment_intent(&s, "att", "file:x", NULL, &w->err), BELAY_OK);
    enqueue_to(w, "s", NULL);
    work_reopen(w);
    s = session_s(w);
    TAP_EQ(w->t, head_of(w, "s").revision, 1);
    TAP_STR(w->t, path_of(w, "s", NULL), "a");
    WORK_RC(w, checkpoint_load(w->space, "s", &w->arena, &info, &w->err), BELAY_OK);
    WORK_RC(w, session_meta_load(&s, &w->arena, &meta, &w->err), BELAY_OK);
    TAP_STR(w->t, meta.name, "name");
    WORK_RC(w, attachment_uncommitted(&s, START_MS, 0, &w->arena, &open, &n, &w->err),
            BELAY_OK);
    TAP_EQ(w->t, n, 1);
    TAP_EQ(w->t, batches_in(w, "s"), 1);
}

static void test_reopened(struct tap *t)
{
    work_everywhere(t, reopened);
}

static const struct tap_case cases[] = {
    { "commit_increments_head_and_round_trips_agent_frames", test_head_moves },
    { "commit_rejects_a_different_session_id", test_bound },
    { "load_hydrates_checkpoint_and_usage", test_hydrated },
    { "head_revision_cas_holds_across_two_connections", test_cas },
    { "threads: of commits that race for a revision one wins (S1), and none is lost "
      "(S2)",
      test_races },
    { "what cannot be committed is refused and changes nothing", test_invalid },
    { "checks come in order, and a refusal at any of them changes nothing",
      test_order },
    { "dangling parents, cycles, missing leaves and duplicates are refused",
      test_graph_refusals },
    { "active_path_read_scope_selects_only_requested_ancestry", test_paths },
    { "a replacement takes all nodes, and sequences are never used again",
      test_replaced },
    { "final_commit_stamp_is_idempotent_and_conflicts_on_changed_hash",
      test_turn_hash },
    { "only ids of nodes, messages and parts are left out of a turn",
      test_turn_content },
    { "a turn is all that was committed, but not on what", test_turn_rest },
    { "queue_completion_and_turn_commit_stamp_are_atomic", test_completion },
    { "claims complete by their texts, in any order", test_completion_of_texts },
    { "usage counts once", test_usage_once },
    { "usage stays within its bounds", test_usage_bounds },
    { "blobs that frames newly name are touched", test_frames_touch },
    { "every revision has its entry in the log", test_logs },
    { "nodes are read in pages", test_node_pages },
    { "sessions and children are listed in the order they began", test_lists },
    { "a commit wakes those who listen to its session", test_woken },
    { "a commit of everything is one read and one write", test_round_trips },
    { "runtime_persistence_survives_reopen", test_reopened },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
