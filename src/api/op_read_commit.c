/* A commit as JSON: everything in it is looked at before anything is done. */
#include "api/op_json.h"
#include "api/op_read.h"

/* JSON of a type, as text; NULL where it is absent or null. */
static belay_rc json_of(struct op_reader *r, const char *where, const json_t *object,
                        const char *field, json_type type, const char **out)
{
    const json_t *value = json_object_get(object, field);
    struct bytes text;

    *out = NULL;
    if (!value || json_is_null(value))
        return BELAY_OK;
    if (json_typeof(value) != type)
        return op_field_wrong(r, where, field,
                              type == JSON_ARRAY ? "must be a list"
                                                 : "must be an object");
    belay_rc rc = op_field_canonical(r, value, &text);
    if (rc == BELAY_OK)
        *out = (const char *)text.ptr;
    return rc;
}

/* --- the graph --- */

static belay_rc read_nodes(struct op_reader *r, const json_t *graph,
                           struct belay_commit *out)
{
    const json_t *list;
    belay_rc rc = op_field_list(r, "graph", graph, "nodes", &list, &out->n_nodes);

    if (rc != BELAY_OK || out->n_nodes == 0)
        return rc;
    if (out->graph == BELAY_GRAPH_UNCHANGED)
        return op_field_wrong(r, "graph", "nodes", "an unchanged graph has none");
    const char **nodes = arena_zalloc(r->arena, out->n_nodes, sizeof(*nodes));
    if (!nodes)
        return err_no_memory(r->err, "a commit");
    out->nodes = nodes;
    for (size_t i = 0; rc == BELAY_OK && i < out->n_nodes; i++) {
        const json_t *node = json_array_get(list, i);
        struct bytes text = { 0 };

        if (!json_is_object(node))
            return op_field_wrong(r, "graph", "nodes", "a node must be an object");
        rc = op_field_canonical(r, node, &text);
        nodes[i] = (const char *)text.ptr;
    }
    return rc;
}

static belay_rc read_graph(struct op_reader *r, const json_t *commit,
                           struct belay_commit *out)
{
    static const char *const fields[] = { "type", "nodes", "leaf_node_id", NULL };
    static const char *const types[] = { "unchanged", "append", "replace", NULL };
    const json_t *graph = json_object_get(commit, "graph");
    const char *type = NULL;

    if (!graph || json_is_null(graph))
        return BELAY_OK;
    if (!json_is_object(graph))
        return op_field_wrong(r, "", "graph", "must be an object");
    belay_rc rc = op_field_only(r, "graph", graph, fields);
    if (rc == BELAY_OK)
        rc = op_field_text(r, "graph", graph, "type", true, &type);
    if (rc != BELAY_OK)
        return rc;
    out->graph = op_read_name(types, bytes_str(type));
    if (out->graph < 0)
        return op_field_wrong(r, "graph", "type",
                              "must be one of unchanged, append, replace");
    out->clear_leaf = json_is_null(json_object_get(graph, "leaf_node_id"));
    rc = op_field_text(r, "graph", graph, "leaf_node_id", false, &out->leaf);
    return rc ? rc : read_nodes(r, graph, out);
}

/* --- the checkpoint --- */

static belay_rc read_body(struct op_reader *r, const char *where, const json_t *part,
                          struct belay_part *out)
{
    const json_t *json = json_object_get(part, "json");
    const json_t *body = json_object_get(part, "body");
    const json_t *base64 = json_object_get(part, "body_base64");
    struct bytes text = { 0 };
    bool no_memory = false;
    belay_rc rc = BELAY_OK;

    if (json) {
        rc = op_field_canonical(r, json, &text);
    } else if (json_is_string(body)) {
        text = bytes_of(json_string_value(body), json_string_length(body));
    } else if (body) {
        rc = op_field_wrong(r, where, "body", "must be a string");
    } else if (json_is_string(base64)) {
        text.ptr =
            op_base64(bytes_of(json_string_value(base64), json_string_length(base64)),
                      r->arena, &text.len, &no_memory);
        if (no_memory)
            rc = err_no_memory(r->err, "a commit");
        else if (!text.ptr)
            rc = op_field_wrong(r, where, "body_base64", "is not base64");
    } else {
        rc = op_field_wrong(r, where, "body_base64", "must be a string");
    }
    out->body = text.ptr;
    out->len = text.len;
    return rc;
}

static belay_rc read_part(struct op_reader *r, const json_t *checkpoint,
                          const char *field, struct belay_part *out)
{
    static const char *const fields[] = { "ref", "body", "body_base64", "json", NULL };
    const json_t *part = json_object_get(checkpoint, field);

    if (!part || json_is_null(part))
        return BELAY_OK;
    if (!json_is_object(part))
        return op_field_wrong(r, "checkpoint", field, "must be an object");
    belay_rc rc = op_field_only(r, field, part, fields);
    if (rc == BELAY_OK && json_object_size(part) != 1)
        rc = op_field_wrong(r, "checkpoint", field,
                            "must have one of ref, body, body_base64, json");
    if (rc == BELAY_OK && json_object_get(part, "ref"))
        return op_field_text(r, field, part, "ref", true, &out->ref);
    return rc ? rc : read_body(r, field, part, out);
}

static belay_rc read_checkpoint(struct op_reader *r, const json_t *commit,
                                struct belay_commit *out)
{
    static const char *const fields[] = { "turn_state",      "tool_state",
                                          "plugin_snapshot", "plugin_snapshot_revision",
                                          "execution_state", NULL };
    const json_t *checkpoint = json_object_get(commit, "checkpoint");
    struct belay_checkpoint *c;

    if (!checkpoint || json_is_null(checkpoint))
        return BELAY_OK;
    if (!json_is_object(checkpoint))
        return op_field_wrong(r, "", "checkpoint", "must be an object");
    c = arena_zalloc(r->arena, 1, sizeof(*c));
    if (!c)
        return err_no_memory(r->err, "a commit");
    c->plugin_snapshot_revision = BELAY_NONE;
    out->checkpoint = c;
    belay_rc rc = op_field_only(r, "checkpoint", checkpoint, fields);
    if (rc == BELAY_OK)
        rc = json_of(r, "checkpoint", checkpoint, "turn_state", JSON_OBJECT,
                     &c->turn_state);
    if (rc == BELAY_OK)
        rc = read_part(r, checkpoint, "tool_state", &c->tool_state);
    if (rc == BELAY_OK)
        rc = read_part(r, checkpoint, "plugin_snapshot", &c->plugin_snapshot);
    if (rc == BELAY_OK)
        rc = read_part(r, checkpoint, "execution_state", &c->execution_state);
    if (rc == BELAY_OK)
        rc = op_field_number(r, "checkpoint", checkpoint, "plugin_snapshot_revision",
                             &c->plugin_snapshot_revision);
    return rc;
}

/* --- lists --- */

static belay_rc read_delta(struct op_reader *r, const json_t *item,
                           struct belay_usage *out)
{
    static const char *const fields[] = { "id",
                                          "source",
                                          "model",
                                          "input_tokens",
                                          "output_tokens",
                                          "cached_input_tokens",
                                          "reasoning_tokens",
                                          NULL };
    static const char where[] = "usage";

    if (!json_is_object(item))
        return op_field_wrong(r, "", where, "must hold objects");
    belay_rc rc = op_field_only(r, where, item, fields);
    if (rc == BELAY_OK)
        rc = op_field_text(r, where, item, "id", false, &out->id);
    if (rc == BELAY_OK)
        rc = op_field_text(r, where, item, "source", true, &out->source);
    if (rc == BELAY_OK)
        rc = op_field_text(r, where, item, "model", true, &out->model);
    if (rc == BELAY_OK)
        rc = op_field_number(r, where, item, "input_tokens", &out->input_tokens);
    if (rc == BELAY_OK)
        rc = op_field_number(r, where, item, "output_tokens", &out->output_tokens);
    if (rc == BELAY_OK)
        rc = op_field_number(r, where, item, "cached_input_tokens",
                             &out->cached_input_tokens);
    if (rc == BELAY_OK)
        rc =
            op_field_number(r, where, item, "reasoning_tokens", &out->reasoning_tokens);
    return rc;
}

static belay_rc read_usage(struct op_reader *r, const json_t *commit,
                           struct belay_commit *out)
{
    const json_t *list;
    size_t n;
    belay_rc rc = op_field_list(r, "", commit, "usage", &list, &n);

    if (rc != BELAY_OK || n == 0)
        return rc;
    struct belay_usage *usage = arena_zalloc(r->arena, n, sizeof(*usage));
    if (!usage)
        return err_no_memory(r->err, "a commit");
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        rc = read_delta(r, json_array_get(list, i), &usage[i]);
    out->usage = usage;
    out->n_usage = n;
    return rc;
}

static belay_rc read_completes(struct op_reader *r, const json_t *commit,
                               struct belay_commit *out)
{
    const json_t *list;
    size_t n;
    belay_rc rc = op_field_list(r, "", commit, "completes", &list, &n);

    if (rc != BELAY_OK || n == 0)
        return rc;
    const struct belay_claim **claims = arena_zalloc(r->arena, n, sizeof(*claims));
    if (!claims)
        return err_no_memory(r->err, "a commit");
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        rc = op_read_claim_json(json_array_get(list, i), r->arena, &claims[i], r->err);
    out->completes = claims;
    out->n_completes = n;
    return rc;
}

static belay_rc read_attachments(struct op_reader *r, const json_t *commit,
                                 struct belay_commit *out)
{
    const json_t *list;
    size_t n;
    belay_rc rc = op_field_list(r, "", commit, "attachments", &list, &n);

    if (rc != BELAY_OK || n == 0)
        return rc;
    const char **ids = arena_zalloc(r->arena, n, sizeof(*ids));
    if (!ids)
        return err_no_memory(r->err, "a commit");
    for (size_t i = 0; i < n; i++) {
        ids[i] = json_string_value(json_array_get(list, i));
        if (!ids[i])
            return op_field_wrong(r, "", "attachments", "must hold strings");
    }
    out->attachments = ids;
    out->n_attachments = n;
    return BELAY_OK;
}

/* --- all of it --- */

static belay_rc read_plain(struct op_reader *r, const json_t *commit,
                           struct belay_commit *out)
{
    belay_rc rc = op_field_text(r, "", commit, "session_id", false, &out->session_id);

    if (rc == BELAY_OK)
        rc = op_field_number(r, "", commit, "expected_revision",
                             &out->expected_revision);
    if (rc == BELAY_OK)
        rc = op_field_text(r, "", commit, "turn_id", false, &out->turn_id);
    if (rc == BELAY_OK)
        rc = json_of(r, "", commit, "config", JSON_OBJECT, &out->config);
    if (rc == BELAY_OK)
        rc = json_of(r, "", commit, "agent_frames", JSON_ARRAY, &out->agent_frames);
    if (rc == BELAY_OK)
        rc = op_field_text(r, "", commit, "current_agent_frame_id", false,
                           &out->current_frame);
    return rc;
}

belay_rc op_read_commit(const json_t *value, struct belay_arena *a,
                        struct belay_commit *out, struct belay_error *err)
{
    static const char *const fields[] = { "session_id",   "expected_revision",
                                          "turn_id",      "config",
                                          "agent_frames", "current_agent_frame_id",
                                          "graph",        "checkpoint",
                                          "usage",        "completes",
                                          "attachments",  NULL };
    struct belay_commit commit = { .size = sizeof(commit),
                                   .expected_revision = BELAY_ANY_REVISION };
    struct op_reader r = { .arena = a, .err = err };

    if (!json_is_object(value))
        return err_reason(err, BELAY_INVALID, "field", "a commit must be an object");
    belay_rc rc = op_field_only(&r, "", value, fields);
    if (rc == BELAY_OK)
        rc = read_plain(&r, value, &commit);
    if (rc == BELAY_OK)
        rc = read_graph(&r, value, &commit);
    if (rc == BELAY_OK)
        rc = read_checkpoint(&r, value, &commit);
    if (rc == BELAY_OK)
        rc = read_usage(&r, value, &commit);
    if (rc == BELAY_OK)
        rc = read_completes(&r, value, &commit);
    if (rc == BELAY_OK)
        rc = read_attachments(&r, value, &commit);
    if (rc == BELAY_OK)
        *out = commit;
    return rc;
}
