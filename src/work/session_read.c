#include <inttypes.h>

#include "work/session_impl.h"

#define NODES_LIMIT 1000      /* of a page, when none is given */
#define NODES_LIMIT_MAX 10000 /* and at most */
#define NODES_LOOKED_AT 16384 /* seqs of one page: there may be gaps */

#define PATH_WINDOW 64 /* seqs asked for at once on the way up */
#define PATH_NODES_MAX ((size_t)1000000)

/* --- the head --- */

struct head_read {
    struct bytes session;
    struct session_now now;
    const struct row *frames;
};

static belay_rc head_body(struct txn *t, void *arg)
{
    struct head_read *r = arg;
    struct value key = value_text(r->session);
    const struct row_want wants[] = { { &row_session, &key },
                                      { &row_session_frames, &key } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = session_to_read(t, r->session, &r->now);
    r->frames = rows[1];
    return rc;
}

bool session_take_head(const struct session_now *now, struct belay_arena *a,
                       struct belay_head *out)
{
    *out = (struct belay_head){ .revision = now->revision,
                                .node_count = now->node_count,
                                .created_at_ms = now->created_at_ms,
                                .updated_at_ms = now->updated_at_ms };
    return session_text(a, now->row, SESSION_ID, &out->session_id) &&
           session_text(a, now->row, SESSION_FRAME, &out->current_frame) &&
           session_text(a, now->row, SESSION_CHECKPOINT, &out->checkpoint_ref) &&
           session_text(a, now->row, SESSION_LEAF, &out->leaf);
}

/* What cannot be read is corrupt, never given out as if it were what was committed. */
static belay_rc check_frames(const struct session *s, const struct row *row,
                             struct belay_error *err)
{
    static const unsigned columns[] = { FRAMES_CONFIG, FRAMES_FRAMES };

    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        CLEANUP(json_decrefp) json_t *value = NULL;
        struct bytes text = row_bytes(row, columns[i]);

        if (row->v[columns[i]].kind == VALUE_NULL)
            continue;
        belay_rc rc = json_read(text, text.len, &value, NULL);
        if (rc == BELAY_NO_MEMORY)
            return err_no_memory(err, "a session");
        if (rc)
            return err_reason(err, BELAY_CORRUPT, "bad_value",
                              "session %s: its %s cannot be read", s->id,
                              row->type->columns[columns[i]].name);
    }
    return BELAY_OK;
}

belay_rc session_head(const struct session *s, struct belay_arena *a,
                      struct belay_head *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct head_read r = { .session = bytes_str(s->id) };
    struct belay_head head;

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, head_body, &r, &session_reads, &scratch, err);
    if (rc == BELAY_OK && r.frames)
        rc = check_frames(s, r.frames, err);
    if (rc)
        return rc;
    bool enough = session_take_head(&r.now, a, &head);
    if (enough && r.frames)
        enough = session_text(a, r.frames, FRAMES_CONFIG, &head.config) &&
                 session_text(a, r.frames, FRAMES_FRAMES, &head.agent_frames);
    if (!enough)
        return err_no_memory(err, "a session");
    if (!head.config)
        head.config = "{}";
    if (!head.agent_frames)
        head.agent_frames = "[]";
    *out = head;
    return BELAY_OK;
}

/* --- nodes as results --- */

static belay_rc bad_node(const struct row *row, struct belay_error *err)
{
    struct bytes id = row_bytes(row, NODE_ID);

    (void)err_reason(err, BELAY_CORRUPT, "bad_value",
                     "node %.*s: its JSON cannot be read", (int)id.len,
                     (const char *)id.ptr);
    err_entity(err, id);
    return BELAY_CORRUPT;
}

/* One that cannot be read is never left out. */
static belay_rc take_node(const struct row *row, struct belay_arena *a,
                          struct belay_node *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *node = NULL;
    struct bytes json = row_bytes(row, NODE_JSON), parent;
    belay_rc rc = json_read(json, json.len, &node, err);

    if (rc == BELAY_NO_MEMORY)
        return rc;
    if (rc || !json_is_object(node))
        return bad_node(row, err);
    *out =
        (struct belay_node){ .seq = row_i64(row, NODE_SEQ, 0), .json_len = json.len };
    if (!session_text(a, row, NODE_ID, &out->node_id) ||
        !session_text(a, row, NODE_JSON, &out->json))
        return err_no_memory(err, "nodes");
    const char *named = json_string_value(json_object_get(node, "parent_node_id"));
    if (!named)
        return BELAY_OK;
    if (!arena_copy(a, bytes_str(named), &parent))
        return err_no_memory(err, "nodes");
    out->parent_node_id = (const char *)parent.ptr;
    return BELAY_OK;
}

/* Rows found, in a list of blocks: how many there will be is not known. */
struct found {
    struct found_block {
        struct found_block *next;
        size_t n;
        const struct row *rows[SESSION_PAGE];
    } * first, *last;
    size_t n;
};

static belay_rc found_add(struct txn *t, struct found *f, const struct row *row)
{
    if (!f->last || f->last->n == SESSION_PAGE) {
        struct found_block *block = arena_zalloc(txn_arena(t), 1, sizeof(*block));
        if (!block)
            return err_no_memory(txn_error(t), "nodes");
        if (f->last)
            f->last->next = block;
        else
            f->first = block;
        f->last = block;
    }
    f->last->rows[f->last->n++] = row;
    f->n++;
    return BELAY_OK;
}

static belay_rc take_found(const struct found *f, bool backwards, struct belay_arena *a,
                           struct belay_nodes *out, struct belay_error *err)
{
    struct belay_node *nodes = arena_zalloc(a, f->n, sizeof(*nodes));
    size_t at = 0;

    if (!nodes)
        return err_no_memory(err, "nodes");
    for (const struct found_block *b = f->first; b; b = b->next) {
        for (size_t i = 0; i < b->n; i++, at++) {
            belay_rc rc =
                take_node(b->rows[i], a, &nodes[backwards ? f->n - 1 - at : at], err);
            if (rc)
                return rc;
        }
    }
    out->nodes = nodes;
    out->n = f->n;
    return BELAY_OK;
}

/* --- all nodes --- */

struct nodes_read {
    struct bytes session;
    int64_t after;
    size_t limit;
    struct session_now now;
    struct found found;
    int64_t next_after;
};

static belay_rc nodes_body(struct txn *t, void *arg)
{
    struct nodes_read *r = arg;
    const struct row *rows[SESSION_PAGE];
    int64_t looked_at = 0;
    belay_rc rc = session_to_read(t, r->session, &r->now);

    r->found = (struct found){ .n = 0 };
    int64_t at = r->after < r->now.first_seq - 1 ? r->now.first_seq - 1 : r->after;
    while (rc == BELAY_OK && at < r->now.last_seq && r->found.n < r->limit &&
           looked_at < NODES_LOOKED_AT) {
        int64_t left = r->now.last_seq - at;
        size_t n = left < SESSION_PAGE ? (size_t)left : SESSION_PAGE;
        rc = rows_by_seq(t, &row_node, r->session, at + 1, n, rows);
        for (size_t i = 0; i < n && rc == BELAY_OK && r->found.n < r->limit; i++) {
            at++;
            if (node_is_live(rows[i]))
                rc = found_add(t, &r->found, rows[i]);
        }
        looked_at += (int64_t)n;
    }
    r->next_after = at < r->now.last_seq ? at : 0;
    return rc;
}

belay_rc session_nodes(const struct session *s, int64_t after_seq, size_t limit,
                       struct belay_arena *a, struct belay_nodes *out,
                       struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct nodes_read r = { .session = bytes_str(s->id),
                            .after = after_seq < 0 ? 0 : after_seq,
                            .limit =
                                session_limit(limit, NODES_LIMIT, NODES_LIMIT_MAX) };
    struct belay_nodes nodes = { 0 };

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, nodes_body, &r, &session_reads, &scratch, err);
    if (rc == BELAY_OK)
        rc = take_found(&r.found, false, a, &nodes, err);
    if (rc == BELAY_OK && !session_text(a, r.now.row, SESSION_LEAF, &nodes.leaf))
        rc = err_no_memory(err, "nodes");
    nodes.next_after_seq = r.next_after;
    if (rc == BELAY_OK)
        *out = nodes;
    return rc;
}

/* --- a path --- */

struct path_read {
    struct bytes session, leaf; /* leaf with a NULL ptr: the head's */
    struct session_now now;
    const struct row *rows[PATH_WINDOW]; /* seqs from..from + n - 1 */
    int64_t from;
    size_t n;
    struct found found; /* from the leaf up */
    bool truncated;
};

/* A node, together with those before it: a path mostly goes there. */
static belay_rc path_node(struct txn *t, struct path_read *r, int64_t seq,
                          const struct row **out)
{
    belay_rc rc = BELAY_OK;

    *out = NULL;
    if (seq < r->now.first_seq || seq > r->now.last_seq)
        return BELAY_OK;
    if (seq < r->from || seq >= r->from + (int64_t)r->n) {
        int64_t from = seq - PATH_WINDOW + 1;
        r->from = from < r->now.first_seq ? r->now.first_seq : from;
        r->n = (size_t)(seq - r->from + 1);
        rc = rows_by_seq(t, &row_node, r->session, r->from, r->n, r->rows);
    }
    if (rc == BELAY_OK)
        *out = r->rows[seq - r->from];
    return rc;
}

/* A path is never longer than there are seqs: one that is has been damaged. */
static belay_rc check_length(struct txn *t, const struct path_read *r)
{
    if ((int64_t)r->found.n > r->now.last_seq - r->now.first_seq + 1)
        return txn_fail(t, BELAY_CORRUPT, "cycle",
                        "session %.*s: a node is its own ancestor", (int)r->session.len,
                        (const char *)r->session.ptr);
    if (r->found.n > PATH_NODES_MAX)
        return txn_fail(t, BELAY_INVALID, "too_large",
                        "session %.*s: a path of more than %zu nodes",
                        (int)r->session.len, (const char *)r->session.ptr,
                        PATH_NODES_MAX);
    return BELAY_OK;
}

static belay_rc bad_parent(struct txn *t, const struct row *node)
{
    struct bytes id = row_bytes(node, NODE_ID);
    belay_rc rc = txn_fail(t, BELAY_CORRUPT, "bad_value",
                           "node %.*s: its parent has no number a node can have",
                           (int)id.len, (const char *)id.ptr);

    err_entity(txn_error(t), id);
    return rc;
}

static belay_rc climb(struct txn *t, struct path_read *r, int64_t seq)
{
    const struct row *node;

    for (;;) {
        belay_rc rc = path_node(t, r, seq, &node);
        if (rc)
            return rc;
        if (!node || !node_is_live(node)) {
            r->truncated = true;
            return BELAY_OK;
        }
        rc = found_add(t, &r->found, node);
        if (rc == BELAY_OK)
            rc = check_length(t, r);
        if (rc || node->v[NODE_PARENT_SEQ].kind == VALUE_NULL)
            return rc;
        seq = row_i64(node, NODE_PARENT_SEQ, 0);
        if (seq < 1 || seq > r->now.last_seq)
            return bad_parent(t, node);
    }
}

static belay_rc no_node(struct txn *t, struct bytes id)
{
    belay_rc rc = txn_fail(t, BELAY_NOT_FOUND, "", "node %.*s: is not there",
                           (int)id.len, (const char *)id.ptr);

    err_entity(txn_error(t), id);
    return rc;
}

static belay_rc path_body(struct txn *t, void *arg)
{
    struct path_read *r = arg;
    const struct row *name;
    belay_rc rc = session_to_read(t, r->session, &r->now);

    r->found = (struct found){ .n = 0 };
    r->truncated = false;
    r->n = 0;
    if (rc)
        return rc;
    struct bytes leaf = r->leaf.ptr ? r->leaf : row_bytes(r->now.row, SESSION_LEAF);
    if (leaf.len == 0)
        return BELAY_OK;
    struct row_key key = key_of_name(r->session, leaf);
    rc = txn_get(t, &row_node_name, key.v, &name);
    if (rc)
        return rc;
    r->truncated = !name;
    if (name)
        rc = climb(t, r, row_i64(name, NODE_NAME_SEQ, 0));
    if (rc == BELAY_OK && r->leaf.ptr && r->found.n == 0)
        rc = no_node(t, leaf);
    return rc;
}

belay_rc session_path(const struct session *s, const char *leaf, struct belay_arena *a,
                      struct belay_nodes *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct path_read r = { .session = bytes_str(s->id) };
    struct belay_nodes nodes = { 0 };
    struct bytes kept = { 0 };

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK && leaf)
        rc = session_check_name(leaf, "leaf", err);
    if (leaf)
        r.leaf = bytes_str(leaf);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, path_body, &r, &session_reads, &scratch, err);
    if (rc == BELAY_OK)
        rc = take_found(&r.found, true, a, &nodes, err);
    if (rc)
        return rc;
    if (leaf ? !arena_copy(a, r.leaf, &kept)
             : !session_text(a, r.now.row, SESSION_LEAF, &nodes.leaf))
        return err_no_memory(err, "nodes");
    if (leaf)
        nodes.leaf = (const char *)kept.ptr;
    nodes.truncated = r.truncated;
    *out = nodes;
    return BELAY_OK;
}

/* --- one node --- */

struct node_read {
    struct bytes session, id;
    const struct row *node;
};

static belay_rc node_body(struct txn *t, void *arg)
{
    struct node_read *r = arg;
    struct session_now now;
    belay_rc rc = session_to_read(t, r->session, &now);

    if (rc == BELAY_OK)
        rc = node_by_name(t, r->session, r->id, &r->node);
    if (rc || node_is_live(r->node))
        return rc;
    return no_node(t, r->id);
}

belay_rc session_node(const struct session *s, const char *node_id,
                      struct belay_arena *a, struct belay_node *out,
                      struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct node_read r = { .session = bytes_str(s->id) };
    struct belay_node node;

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = session_check_name(node_id, "node_id", err);
    if (rc)
        return rc;
    r.id = bytes_str(node_id);
    rc = txn_run(s->sp, node_body, &r, &session_reads, &scratch, err);
    if (rc == BELAY_OK)
        rc = take_node(r.node, a, &node, err);
    if (rc == BELAY_OK)
        *out = node;
    return rc;
}
