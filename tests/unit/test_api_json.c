/* Claims and commits as JSON: what is read, and what is refused by name. */
#include "api/op_args.h"
#include "base/json.h"
#include "tap.h"
#include "work/queue.h"

#define TOKEN "27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071"
#define LEASE "00112233445566778899aabbccddeeff"
#define BATCH "qwb:9388582ae23f26e0ca8f418a32512512a027d8697de330526f57c86918e4071f"
#define CLAIM                                                                   \
    "{\"session_id\":\"s/1\",\"claim_id\":\"qwc:7:3\",\"lease_token\":\"" TOKEN \
    "\",\"lease_id\":\"" LEASE "\",\"batches\":[{\"batch_id\":\"" BATCH         \
    "\",\"enqueue_seq\":7}]}"

static json_t *read_json(const char *text)
{
    struct belay_error err;
    json_t *value = NULL;

    if (json_read(bytes_str(text), 1 << 20, &value, &err) != BELAY_OK)
        printf("# %s: %s\n", text, err.message);
    return value;
}

/* --- claims --- */

static void is_the_claim(struct tap *t, const struct belay_claim *c)
{
    TAP_STR(t, c->session_id, "s/1");
    TAP_STR(t, c->claim_id, "qwc:7:3");
    TAP_STR(t, c->lease_token, TOKEN);
    TAP_STR(t, c->lease_id, LEASE);
    TAP_EQ(t, c->n_batches, 1);
}

static void reads_claims(struct tap *t)
{
    static const char *const forms[] = {
        CLAIM,
        "  " CLAIM "\n",
        "{\"claimed\":true,\"handle\":\"x\",\"claim\":" CLAIM "}",
        "{\"session_id\":\"s/1\",\"claim_id\":\"qwc:7:3\",\"lease_token\":\"" TOKEN
        "\",\"lease_id\":\"" LEASE "\",\"batch_ids\":[\"" BATCH "\"]}",
    };
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct belay_claim *claim = NULL;
    const char *handle = NULL;
    struct belay_error err;

    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        if (!TAP_EQ(t, op_read_claim(bytes_str(forms[i]), &arena, &claim, &err),
                    BELAY_OK))
            continue;
        is_the_claim(t, claim);
        TAP_STR(t, claim->batches[0].batch_id, BATCH);
        TAP_EQ(t, claim->batches[0].enqueue_seq, i < 3 ? 7 : 0);
    }
    TAP_EQ(t, op_read_claim(bytes_str(forms[0]), &arena, &claim, &err), BELAY_OK);
    if (!TAP_EQ(t, claim_text(claim, &arena, &handle, &err), BELAY_OK))
        return;
    struct buf text CLEANUP(buf_release) = { 0 };
    buf_printf(&text, " %s\n", handle);
    TAP_EQ(t, op_read_claim(buf_view(&text), &arena, &claim, &err), BELAY_OK);
    is_the_claim(t, claim);
    TAP_EQ(t, claim->batches[0].enqueue_seq, 7);
    buf_reset(&text);
    buf_printf(&text, "{\"handle\":\"%s\"}", handle);
    TAP_EQ(t, op_read_claim(buf_view(&text), &arena, &claim, &err), BELAY_OK);
    is_the_claim(t, claim);
}

static void refuses_claims(struct tap *t)
{
    /* clang-format off */
    static const char *const wrong[] = {
        "", "x", "{", "{}", "{\"claim\":null}", "{\"claim\":7}", "{\"handle\":\"x\"}", "{\"handle\":{\"handle\":{}}}",
        "{\"session_id\":\"s\",\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\",\"batch_ids\":[\"b\"]}",
        "{\"session_id\":\"s\",\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\",\"lease_id\":\"l\"}",
        "{\"session_id\":\"s\",\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\",\"lease_id\":\"l\",\"batches\":[]}",
        "{\"session_id\":\"s\",\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\",\"lease_id\":\"l\",\"batches\":[{}]}",
        "{\"session_id\":\"s\",\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\",\"lease_id\":\"l\",\"batch_ids\":[7]}",
        "{\"session_id\":1,\"claim_id\":\"qwc:1:1\",\"lease_token\":\"t\",\"lease_id\":\"l\",\"batch_ids\":[\"b\"]}",
    };
    /* clang-format on */
    struct belay_arena arena CLEANUP(arena_release) = { 0 };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const struct belay_claim *claim = NULL;
        struct belay_error err = { 0 };

        if (!TAP_EQ(t, op_read_claim(bytes_str(wrong[i]), &arena, &claim, &err),
                    BELAY_BAD_HANDLE))
            printf("# %s\n", wrong[i]);
        TAP_OK(t, !claim && err.message[0]);
    }
}

/* --- commits --- */

static void reads_nothing(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *value = read_json("{\"graph\":null,\"checkpoint\":null,\"usage\":null,"
                              "\"expected_revision\":null,\"turn_id\":null}");
    struct belay_commit c;

    TAP_EQ(t, op_read_commit(value, &arena, &c, NULL), BELAY_OK);
    TAP_EQ(t, c.size, sizeof(c));
    TAP_EQ(t, c.graph, BELAY_GRAPH_UNCHANGED);
    TAP_EQ(t, c.expected_revision, BELAY_ANY_REVISION);
    TAP_OK(t, !c.turn_id && !c.config && !c.checkpoint && !c.leaf && !c.clear_leaf);
    TAP_EQ(t, c.n_nodes + c.n_usage + c.n_completes + c.n_attachments, 0);
    json_decref(value);
}

static const char whole_commit[] =
    "{\"session_id\":\"s\",\"expected_revision\":4,\"turn_id\":\"t1\","
    "\"config\":{\"model\":\"m\"},\"agent_frames\":[{\"frame_id\":\"f\"}],"
    "\"current_agent_frame_id\":\"f\","
    "\"graph\":{\"type\":\"append\",\"nodes\":[{\"node_id\":\"a\",\"b\":1.50},"
    "{\"node_id\":\"b\"}],\"leaf_node_id\":null},"
    "\"checkpoint\":{\"turn_state\":{\"turn_index\":1},"
    "\"tool_state\":{\"json\":{\"b\":1,\"a\":2}},\"plugin_snapshot\":{\"body\":\"\"},"
    "\"plugin_snapshot_revision\":9,\"execution_state\":{\"body_base64\":\"AP8Q\"}},"
    "\"usage\":[{\"source\":\"turn\",\"model\":\"m\",\"input_tokens\":3}],"
    "\"completes\":[" CLAIM "],\"attachments\":[\"x\",\"y\"]}";

static void reads_commits(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *value = read_json(whole_commit);
    struct belay_error err = { 0 };
    struct belay_commit c = { 0 };

    if (!TAP_EQ(t, op_read_commit(value, &arena, &c, &err), BELAY_OK)) {
        printf("# %s\n", err.message);
        json_decref(value);
        return;
    }
    TAP_STR(t, c.session_id, "s");
    TAP_EQ(t, c.expected_revision, 4);
    TAP_STR(t, c.turn_id, "t1");
    TAP_STR(t, c.config, "{\"model\":\"m\"}");
    TAP_STR(t, c.agent_frames, "[{\"frame_id\":\"f\"}]");
    TAP_STR(t, c.current_frame, "f");
    TAP_EQ(t, c.graph, BELAY_GRAPH_APPEND);
    TAP_EQ(t, c.n_nodes, 2);
    TAP_STR(t, c.nodes[0], "{\"b\":1.5,\"node_id\":\"a\"}");
    TAP_OK(t, c.clear_leaf && !c.leaf);
    TAP_STR(t, c.checkpoint->turn_state, "{\"turn_index\":1}");
    TAP_EQ(t, c.checkpoint->tool_state.len, strlen("{\"a\":2,\"b\":1}"));
    TAP_OK(t, memcmp(c.checkpoint->tool_state.body, "{\"a\":2,\"b\":1}", 13) == 0);
    TAP_OK(t, c.checkpoint->plugin_snapshot.body);
    TAP_EQ(t, c.checkpoint->plugin_snapshot.len, 0);
    TAP_EQ(t, c.checkpoint->plugin_snapshot_revision, 9);
    TAP_EQ(t, c.checkpoint->execution_state.len, 3);
    TAP_OK(t, memcmp(c.checkpoint->execution_state.body, "\0\xff\x10", 3) == 0);
    TAP_EQ(t, c.n_usage, 1);
    TAP_STR(t, c.usage[0].source, "turn");
    TAP_EQ(t, c.usage[0].input_tokens, 3);
    TAP_OK(t, !c.usage[0].id);
    TAP_EQ(t, c.n_completes, 1);
    is_the_claim(t, c.completes[0]);
    TAP_EQ(t, c.n_attachments, 2);
    TAP_STR(t, c.attachments[1], "y");
    json_decref(value);
}

/* clang-format off */
static const struct { const char *text, *entity, *message; } wrong_commits[] = {
    { "[]", "", "a commit must be an object" },
    { "{\"grpah\":{}}", "grpah", "grpah: is not known" },
    { "{\"expected_revision\":-1}", "expected_revision", "expected_revision: must be a whole number from 0" },
    { "{\"expected_revision\":\"1\"}", "expected_revision", "expected_revision: must be a whole number from 0" },
    { "{\"turn_id\":7}", "turn_id", "turn_id: must be a string" },
    { "{\"config\":[]}", "config", "config: must be an object" },
    { "{\"agent_frames\":{}}", "agent_frames", "agent_frames: must be a list" },
    { "{\"graph\":[]}", "graph", "graph: must be an object" },
    { "{\"graph\":{}}", "type", "graph.type: must be a string" },
    { "{\"graph\":{\"type\":\"new\"}}", "type", "graph.type: must be one of unchanged, append, replace" },
    { "{\"graph\":{\"type\":\"append\",\"leaf\":\"x\"}}", "leaf", "graph.leaf: is not known" },
    { "{\"graph\":{\"type\":\"append\",\"nodes\":{}}}", "nodes", "graph.nodes: must be a list" },
    { "{\"graph\":{\"type\":\"append\",\"nodes\":[1]}}", "nodes", "graph.nodes: a node must be an object" },
    { "{\"graph\":{\"type\":\"unchanged\",\"nodes\":[{}]}}", "nodes", "graph.nodes: an unchanged graph has none" },
    { "{\"graph\":{\"type\":\"append\",\"leaf_node_id\":7}}", "leaf_node_id", "graph.leaf_node_id: must be a string" },
    { "{\"checkpoint\":1}", "checkpoint", "checkpoint: must be an object" },
    { "{\"checkpoint\":{\"turn\":1}}", "turn", "checkpoint.turn: is not known" },
    { "{\"checkpoint\":{\"turn_state\":1}}", "turn_state", "checkpoint.turn_state: must be an object" },
    { "{\"checkpoint\":{\"tool_state\":\"x\"}}", "tool_state", "checkpoint.tool_state: must be an object" },
    { "{\"checkpoint\":{\"tool_state\":{}}}", "tool_state", "checkpoint.tool_state: must have one of ref, body, body_base64, json" },
    { "{\"checkpoint\":{\"tool_state\":{\"ref\":\"a\",\"json\":1}}}", "tool_state", "checkpoint.tool_state: must have one of" },
    { "{\"checkpoint\":{\"tool_state\":{\"ref\":1}}}", "ref", "tool_state.ref: must be a string" },
    { "{\"checkpoint\":{\"tool_state\":{\"body\":1}}}", "body", "tool_state.body: must be a string" },
    { "{\"checkpoint\":{\"tool_state\":{\"body_base64\":1}}}", "body_base64", "tool_state.body_base64: must be a string" },
    { "{\"checkpoint\":{\"tool_state\":{\"body_base64\":\"A\"}}}", "body_base64", "tool_state.body_base64: is not base64" },
    { "{\"checkpoint\":{\"plugin_snapshot_revision\":1.5}}", "plugin_snapshot_revision", "checkpoint.plugin_snapshot_revision: must be a whole number" },
    { "{\"usage\":{}}", "usage", "usage: must be a list" },
    { "{\"usage\":[1]}", "usage", "usage: must hold objects" },
    { "{\"usage\":[{\"source\":\"a\"}]}", "model", "usage.model: must be a string" },
    { "{\"usage\":[{\"source\":\"a\",\"model\":\"b\",\"tokens\":1}]}", "tokens", "usage.tokens: is not known" },
    { "{\"usage\":[{\"source\":\"a\",\"model\":\"b\",\"input_tokens\":-1}]}", "input_tokens", "usage.input_tokens: must be a whole number" },
    { "{\"completes\":1}", "completes", "completes: must be a list" },
    { "{\"attachments\":[1]}", "attachments", "attachments: must hold strings" },
};
/* clang-format on */

static void refuses_commits(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(wrong_commits); i++) {
        struct belay_arena arena CLEANUP(arena_release) = { 0 };
        json_t *value = read_json(wrong_commits[i].text);
        struct belay_commit c = { .size = 77 };
        struct belay_error err = { 0 };
        const char *want = wrong_commits[i].message;

        bool good = TAP_EQ(t, op_read_commit(value, &arena, &c, &err), BELAY_INVALID) &&
                    TAP_STR(t, err.reason, "field") &&
                    TAP_STR(t, err.entity, wrong_commits[i].entity) &&
                    TAP_OK(t, strncmp(err.message, want, strlen(want)) == 0);
        if (!good)
            printf("# %s: %s\n", wrong_commits[i].text, err.message);
        TAP_EQ(t, c.size, 77);
        json_decref(value);
    }
}

static void refuses_bad_claims_in_commits(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *value = read_json("{\"completes\":[{}]}");
    struct belay_commit c;

    TAP_EQ(t, op_read_commit(value, &arena, &c, NULL), BELAY_BAD_HANDLE);
    json_decref(value);
}

/* --- words --- */

static void reads_words(struct tap *t)
{
    int64_t revision = 77;
    int32_t merge = 77;
    const char *group = "";

    TAP_OK(t, op_read_revision(bytes_str("any"), &revision));
    TAP_EQ(t, revision, BELAY_ANY_REVISION);
    TAP_OK(t, op_read_revision(bytes_str("0"), &revision));
    TAP_EQ(t, revision, 0);
    TAP_OK(t, !op_read_revision(bytes_str("-1"), &revision));
    TAP_OK(t, !op_read_revision(bytes_str("none"), &revision));
    TAP_OK(t, !op_read_revision(bytes_str(""), &revision));
    TAP_EQ(t, revision, 0);

    TAP_OK(t, op_read_merge(bytes_str("never"), &merge, &group));
    TAP_EQ(t, merge, BELAY_MERGE_NEVER);
    TAP_OK(t, op_read_merge(bytes_str("payload_default"), &merge, &group) && !group);
    TAP_EQ(t, merge, BELAY_MERGE_PAYLOAD_DEFAULT);
    TAP_OK(t, op_read_merge(bytes_str("group:a:b"), &merge, &group));
    TAP_EQ(t, merge, BELAY_MERGE_GROUP);
    TAP_STR(t, group, "a:b");
    TAP_OK(t, !op_read_merge(bytes_str("group:"), &merge, &group));
    TAP_OK(t, !op_read_merge(bytes_str("group"), &merge, &group));
    TAP_OK(t, !op_read_merge(bytes_str("Never"), &merge, &group));
}

static void reads_base64(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *text, *bytes; size_t len; } rows[] = { /* RFC 4648, 10 */
        { "", "", 0 }, { "Zg==", "f", 1 }, { "Zm8=", "fo", 2 }, { "Zm9v", "foo", 3 },
        { "Zm9vYg==", "foob", 4 }, { "Zm9vYmE=", "fooba", 5 }, { "Zm9vYmFy", "foobar", 6 },
        { "+/+/", "\xfb\xff\xbf", 3 },
    };
    static const char *const wrong[] = { "Z", "Zg", "Zg=", "Zg===", "====", "Zh==", "Zm9=", "Zm9v\n", "Zm-v", "Z=g=", "Zg==Zg==" };
    /* clang-format on */
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    bool no_memory = true;
    size_t len = 77;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const void *got = op_base64(bytes_str(rows[i].text), &arena, &len, &no_memory);
        TAP_OK(t, got && !no_memory);
        TAP_EQ(t, len, rows[i].len);
        TAP_OK(t, got && memcmp(got, rows[i].bytes, rows[i].len) == 0);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (!TAP_OK(t, !op_base64(bytes_str(wrong[i]), &arena, &len, &no_memory)))
            printf("# %s\n", wrong[i]);
        TAP_OK(t, !no_memory);
    }
}

/* --- out --- */

/* Stored JSON that is as deep as it may be. */
static const char *deep(char out[128])
{
    memset(out, '[', JSON_DEPTH_MAX);
    memset(out + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    out[(size_t)2 * JSON_DEPTH_MAX] = '\0';
    return out;
}

static void shows_what_is_deep(struct tap *t)
{
    struct belay_error err = { 0 };
    struct op_maker m = { .err = &err };
    struct buf text CLEANUP(buf_release) = { 0 };
    json_t *o = json_object(), *answer = NULL;
    char room[128];

    TAP_EQ(t, op_set_json(&m, o, "a", "{\"x\":[1]}"), 0);
    TAP_EQ(t, op_set_json(&m, o, "b", deep(room)), 0);
    TAP_EQ(t, op_set_json(&m, o, "c", NULL), 0);
    TAP_EQ(t, op_made(&m, o, 0, &answer), BELAY_OK);
    TAP_EQ(t, json_write(answer, &text, &err), BELAY_OK);
    TAP_OK(t, json_is_object(json_object_get(answer, "a")));
    TAP_OK(t, json_is_null(json_object_get(answer, "b")));
    TAP_STR(t, json_string_value(json_object_get(answer, "b_text")), room);
    TAP_OK(t, json_is_null(json_object_get(answer, "c")));
    json_decref(answer);
}

static void tells_what_is_corrupt(struct tap *t)
{
    struct belay_error err = { 0 };
    struct op_maker m = { .err = &err };
    json_t *o = json_object(), *answer = NULL;

    int failed = op_set_json(&m, o, "payload", "{");
    TAP_OK(t, failed);
    TAP_EQ(t, op_made(&m, o, failed, &answer), BELAY_CORRUPT);
    TAP_OK(t, !answer && strncmp(err.message, "payload: ", 9) == 0);
}

static void shows_nodes_as_committed(struct tap *t)
{
    static const char json[] = "{\"kind\":\"event\",\"node_id\":\"n\"}";
    struct op_maker m = { 0 };
    struct belay_node node = { .node_id = "n",
                               .json = json,
                               .json_len = sizeof(json) - 1 };
    struct buf text CLEANUP(buf_release) = { 0 };

    json_t *shown = op_json_node(&m, &node);
    TAP_EQ(t, json_write(shown, &text, NULL), BELAY_OK);
    buf_append_char(&text, '\0');
    TAP_STR(t, (const char *)text.ptr, json);
    json_decref(shown);
}

static void answers_have_statuses(struct tap *t)
{
    /* clang-format off */
    static const struct { op_exit *exit_of; const char *answer; int status; } rows[] = {
        { op_exit_of_gc, "{\"outcome\":\"swept\",\"code\":null}", 0 },
        { op_exit_of_gc, "{\"outcome\":\"nothing\",\"code\":null}", 0 },
        { op_exit_of_gc, "{\"outcome\":\"incomplete\",\"code\":null}", 75 },
        { op_exit_of_gc, "{\"outcome\":\"refused\",\"code\":\"corrupt\"}", 1 },
        { op_exit_of_gc, "{\"outcome\":\"refused\",\"code\":\"not_found\"}", 1 },
        { op_exit_of_gc, "{\"outcome\":\"failed\",\"code\":\"unavailable\"}", 69 },
        { op_exit_of_gc, "{\"outcome\":\"failed\",\"code\":\"no_memory\"}", 75 },
        { op_exit_of_gc, "{\"outcome\":\"failed\",\"code\":null}", 1 },
        { op_exit_of_gc, "{}", 1 },
        { op_exit_of_cancelled, "{\"cancelled\":true}", 0 },
        { op_exit_of_cancelled, "{\"cancelled\":false}", 4 },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_t *value = read_json(rows[i].answer);
        if (!TAP_EQ(t, rows[i].exit_of(value), rows[i].status))
            printf("# %s\n", rows[i].answer);
        json_decref(value);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a claim is read as handle, object, answer or list of ids", reads_claims },
        { "what is no claim is bad_handle", refuses_claims },
        { "a commit that says nothing compares nothing", reads_nothing },
        { "a commit is read whole", reads_commits },
        { "a field that is unknown or of another type is told by name",
          refuses_commits },
        { "a claim in a commit is checked", refuses_bad_claims_in_commits },
        { "revisions and merge keys have their words", reads_words },
        { "base64 is strict", reads_base64 },
        { "stored JSON that is too deep to be shown is text", shows_what_is_deep },
        { "stored JSON that is none is corrupt", tells_what_is_corrupt },
        { "a node is shown as it was committed", shows_nodes_as_committed },
        { "an answer that is no success has its exit status", answers_have_statuses },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
