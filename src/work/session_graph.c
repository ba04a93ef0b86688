#include <stdio.h>

#include "base/clock.h"
#include "work/session_impl.h"

/* --- before the body --- */

bool node_is_conversation(const json_t *node)
{
    const char *kind = json_string_value(json_object_get(node, "kind"));
    const json_t *event = json_object_get(node, "event");

    return kind && strcmp(kind, "event") == 0 &&
           json_is_object(json_object_get(event, "Conversation"));
}

/* A copy of an object that shares the values of all members but some; NULL: no memory.
 * (json_copy leaves members out when it has none.) */
static json_t *copy_without(const json_t *object, const char *const *keys, size_t n)
{
    json_t *from = (json_t *)object; /* iterators are not declared const */
    json_t *copy = json_object();
    int failed = !copy;

    for (void *at = json_object_iter(from); at; at = json_object_iter_next(from, at)) {
        const char *key = json_object_iter_key(at);
        bool left_out = false;
        for (size_t i = 0; i < n; i++)
            left_out |= strcmp(key, keys[i]) == 0;
        if (!left_out)
            failed |= json_object_set(copy, key, json_object_iter_value(at));
    }
    if (failed) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

static const char *const message_ids[] = { "id" };
static const char *const node_ids[] = { "node_id", "parent_node_id", "timestamp" };

/* Parts of a message without their ids. */
static json_t *anonymous_parts(const json_t *parts)
{
    json_t *copy = json_array();
    int failed = !copy;

    for (size_t i = 0; i < json_array_size(parts); i++) {
        json_t *part = json_array_get(parts, i);
        if (json_is_object(part))
            failed |= json_array_append_new(
                copy, copy_without(part, message_ids, COUNT_OF(message_ids)));
        else
            failed |= json_array_append(copy, part);
    }
    if (failed) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

/* An event without the ids of its message. */
static json_t *anonymous_event(const json_t *event)
{
    const json_t *message = json_object_get(event, "Conversation");
    const json_t *parts = json_object_get(message, "parts");
    json_t *copy = copy_without(event, NULL, 0);
    json_t *anonymous = copy_without(message, message_ids, COUNT_OF(message_ids));
    int failed = 0;

    if (json_is_array(parts))
        failed |= json_object_set_new(anonymous, "parts", anonymous_parts(parts));
    failed |= json_object_set_new(copy, "Conversation", anonymous);
    if (failed) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

/* What a turn says with a node: everything but ids and time, which differ when a host
 * makes the same turn again.  A typed projection: fields that happen to have such names
 * deeper inside are content. */
static json_t *anonymous_node(const json_t *node)
{
    json_t *copy = copy_without(node, node_ids, COUNT_OF(node_ids));

    if (!copy || !node_is_conversation(node))
        return copy;
    if (json_object_set_new(copy, "event",
                            anonymous_event(json_object_get(node, "event")))) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

static belay_rc hash_node(const json_t *node, char out[SHA256_HEX_LEN + 1],
                          struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *anonymous = anonymous_node(node);
    uint8_t digest[SHA256_LEN];

    if (!anonymous)
        return err_no_memory(err, "a node");
    belay_rc rc = json_hash(anonymous, digest, err);
    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

static belay_rc bad_node(size_t i, const char *reason, const char *why,
                         struct belay_error *err)
{
    return err_reason(err, BELAY_INVALID, reason, "nodes[%zu]: %s", i, why);
}

/* An id of a node, in the arena; none when it may be absent and is. */
static belay_rc take_id(struct commit *c, size_t i, const json_t *value,
                        const char *what, struct bytes *out, struct belay_error *err)
{
    struct bytes id = bytes_of(json_string_value(value), json_string_length(value));

    if (!id.ptr || !bytes_is_id(id, SESSION_NAME_MAX))
        return bad_node(i, what,
                        "an id must be 1 to 255 bytes of UTF-8 without "
                        "control characters",
                        err);
    return arena_copy(c->a, id, out) ? BELAY_OK : err_no_memory(err, "a node");
}

static belay_rc take_node(struct commit *c, size_t i, const json_t *node,
                          struct belay_error *err)
{
    const json_t *parent = json_object_get(node, "parent_node_id");
    struct graph_node *ids = &c->nodes[i];

    if (!json_is_object(node))
        return bad_node(i, "node", "must be a JSON object", err);
    if (!json_is_string(json_object_get(node, "kind")))
        return bad_node(i, "node", "must have a string `kind`", err);
    belay_rc rc =
        take_id(c, i, json_object_get(node, "node_id"), "node_id", &ids->id, err);
    if (rc == BELAY_OK && parent && !json_is_null(parent))
        rc = take_id(c, i, parent, "parent_node_id", &ids->parent, err);
    if (rc == BELAY_OK)
        rc = session_canonical(node, c->a, &c->bodies[i].json, err);
    return rc || !c->in->turn_id ? rc : hash_node(node, c->bodies[i].hash, err);
}

static belay_rc read_node(struct commit *c, size_t i, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *node = NULL;
    char what[40];

    (void)snprintf(what, sizeof(what), "nodes[%zu]", i);
    belay_rc rc = session_json(c->in->nodes[i], "node", &node, err);
    if (rc)
        err_context(err, what);
    return rc ? rc : take_node(c, i, node, err);
}

belay_rc graph_prepare(struct commit *c, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf ids = { 0 };
    size_t n = c->in->n_nodes, total = 0;

    c->nodes = arena_zalloc(c->a, n, sizeof(*c->nodes));
    c->bodies = arena_zalloc(c->a, n, sizeof(*c->bodies));
    if (!c->nodes || !c->bodies)
        return err_no_memory(err, "nodes");
    for (size_t i = 0; i < n; i++) {
        if (!c->in->nodes[i])
            return bad_node(i, "node", "is NULL", err);
        total += strlen(c->in->nodes[i]);
        if (total > COMMIT_NODES_BYTES)
            return err_reason(err, BELAY_INVALID, "too_large",
                              "nodes: more than %zu bytes in one commit",
                              COMMIT_NODES_BYTES);
        belay_rc rc = read_node(c, i, err);
        if (rc)
            return rc;
    }
    append_texts(&ids, n > 0 ? &c->nodes[0].id : NULL, n, sizeof(*c->nodes));
    belay_rc rc = session_keep(&ids, c->a, &c->node_ids, err);
    return rc ? rc : graph_make(&c->graph, c->nodes, n, c->a, err);
}

/* --- what the store says --- */

size_t graph_names(const struct commit *c, struct bytes *out)
{
    size_t n = 0;

    for (size_t i = 0; i < c->in->n_nodes; i++) {
        struct bytes parent = c->nodes[i].parent;
        out[n++] = c->nodes[i].id;
        if (parent.ptr && graph_find(c->graph, parent) < 0)
            out[n++] = parent;
    }
    if (c->leaf.ptr && graph_find(c->graph, c->leaf) < 0)
        out[n++] = c->leaf;
    return n;
}

/* Which of the names are taken, and which of those outside the delta are live. */
static belay_rc ask_store(struct txn *t, const struct commit *c,
                          struct graph_known **out, size_t *out_n)
{
    size_t max = 2 * c->in->n_nodes + 1;
    struct bytes *names = arena_zalloc(txn_arena(t), max, sizeof(*names));
    const struct row **rows = arena_zalloc(txn_arena(t), max, sizeof(const void *));
    struct graph_known *known = arena_zalloc(txn_arena(t), max, sizeof(*known));
    if (!names || !rows || !known)
        return err_no_memory(txn_error(t), "nodes");

    size_t n = graph_names(c, names);
    belay_rc rc = rows_by_name(t, &row_node_name, c->session, names, n, rows);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        known[i] = (struct graph_known){ .id = names[i],
                                         .taken = rows[i] != NULL,
                                         .live = name_is_live(rows[i]) };
    *out = known;
    *out_n = n;
    return rc;
}

static belay_rc check_delta(struct txn *t, const struct commit *c)
{
    static const char *const why[] = {
        [GRAPH_OK] = "",
        [GRAPH_DUPLICATE_NODE] = "is there already",
        [GRAPH_DANGLING_PARENT] = "is named as a parent and is not there",
        [GRAPH_CYCLE] = "is its own ancestor",
        [GRAPH_MISSING_LEAF] = "is named as the leaf and is not there",
    };
    enum graph_verdict verdict = GRAPH_OK;
    struct graph_known *known = NULL;
    struct bytes id = { 0 };
    size_t n = 0;
    belay_rc rc = BELAY_OK;

    /* Nothing of what is there outlives a replacement. */
    if (c->in->graph != BELAY_GRAPH_REPLACE)
        rc = ask_store(t, c, &known, &n);
    if (rc == BELAY_OK)
        rc = graph_check(c->graph, known, n, c->leaf, txn_arena(t), &verdict, &id,
                         txn_error(t));
    if (rc || verdict == GRAPH_OK)
        return rc;
    rc = txn_fail(t, BELAY_INVALID, graph_verdict_name(verdict), "node %.*s: %s",
                  (int)id.len, (const char *)id.ptr, why[verdict]);
    err_entity(txn_error(t), id);
    return rc;
}

/* --- writing --- */

static belay_rc remove_all(struct txn *t, struct commit *c)
{
    int64_t last = c->now.last_seq, left = last - c->now.first_seq + 1;
    const struct row *nodes[SESSION_STEP];
    belay_rc rc = BELAY_OK;
    size_t removed;

    if (left > COMMIT_REPLACE_MAX)
        return txn_fail(t, BELAY_INVALID, "too_large",
                        "session %s: %lld nodes are too many to replace at once; "
                        "tombstone them and vacuum before",
                        c->s->id, (long long)left);
    for (; left > 0 && rc == BELAY_OK; left -= SESSION_STEP) {
        size_t n = left < SESSION_STEP ? (size_t)left : SESSION_STEP;
        rc = rows_by_seq(t, &row_node, c->session, last - left + 1, n, nodes);
        if (rc == BELAY_OK)
            rc = nodes_remove(t, c->session, nodes, n, c->graph, &removed);
    }
    c->now.first_seq = last + 1;
    c->now.node_count = 0;
    return rc;
}

/* Parents inside the delta may come later in it. */
static belay_rc parent_seq(struct txn *t, const struct commit *c, struct bytes parent,
                           struct value *out)
{
    const struct row *name;
    int64_t place = graph_find(c->graph, parent);

    if (place >= 0) {
        *out = value_i64(c->now.last_seq + 1 + place);
        return BELAY_OK;
    }
    struct row_key key = key_of_name(c->session, parent);
    belay_rc rc = txn_get(t, &row_node_name, key.v, &name);
    if (rc == BELAY_OK)
        *out = value_i64(row_i64(name, NODE_NAME_SEQ, 0));
    return rc;
}

/* A name that a replacement brings again has its row already. */
static belay_rc write_name(struct txn *t, struct bytes session, struct bytes id,
                           int64_t seq)
{
    const struct change changes[] = { { NODE_NAME_SEQ, value_i64(seq) },
                                      { NODE_NAME_HIDDEN, value_null() } };
    struct value v[NODE_NAME_COLUMNS] = { [NODE_NAME_SESSION] = value_text(session),
                                          [NODE_NAME_ID] = value_text(id),
                                          [NODE_NAME_SEQ] = value_i64(seq) };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_node_name, v, &row);

    if (rc)
        return rc;
    return row ? txn_put(t, &row_node_name, v, changes, COUNT_OF(changes))
               : txn_insert(t, &row_node_name, v);
}

static belay_rc write_node(struct txn *t, const struct commit *c, size_t i)
{
    int64_t seq = c->now.last_seq + 1 + (int64_t)i;
    const struct graph_node *node = &c->nodes[i];
    struct value v[NODE_COLUMNS] = { [NODE_SESSION] = value_text(c->session),
                                     [NODE_SEQ] = value_i64(seq),
                                     [NODE_ID] = value_text(node->id),
                                     [NODE_JSON] = value_json(c->bodies[i].json) };
    belay_rc rc = BELAY_OK;

    if (node->parent.ptr)
        rc = parent_seq(t, c, node->parent, &v[NODE_PARENT_SEQ]);
    if (rc == BELAY_OK)
        rc = txn_insert(t, &row_node, v);
    return rc ? rc : write_name(t, c->session, node->id, seq);
}

static struct bytes leaf_after(const struct commit *c)
{
    size_t n = c->in->n_nodes;

    if (c->in->clear_leaf)
        return bytes_of(NULL, 0);
    if (c->leaf.ptr)
        return c->leaf;
    if (n > 0)
        return c->nodes[n - 1].id;
    if (c->in->graph == BELAY_GRAPH_REPLACE || !c->now.row)
        return bytes_of(NULL, 0);
    return row_bytes(c->now.row, SESSION_LEAF);
}

belay_rc graph_apply(struct txn *t, struct commit *c)
{
    int64_t n = (int64_t)c->in->n_nodes;
    belay_rc rc = check_delta(t, c);

    if (rc == BELAY_OK && c->now.last_seq > TIME_MAX_MS - n)
        rc = txn_fail(t, BELAY_OUT_OF_RANGE, "last_seq",
                      "session %s: it has had as many nodes as it can", c->s->id);
    if (rc == BELAY_OK && c->in->graph == BELAY_GRAPH_REPLACE)
        rc = remove_all(t, c);
    for (size_t i = 0; i < c->in->n_nodes && rc == BELAY_OK; i++)
        rc = write_node(t, c, i);
    if (rc)
        return rc;
    c->new_leaf = leaf_after(c);
    c->now.last_seq += n;
    c->now.node_count += n; /* N2 */
    return BELAY_OK;
}
