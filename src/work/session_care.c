#include "work/session_impl.h"

#define HEAL_ATTEMPTS 16

/* --- tombstones --- */

struct tombstoning {
    struct bytes session;
    const char *const *ids;
    size_t n, n_hidden;
};

/* Asks for all nodes of these ids, in two round trips. */
static belay_rc fetch_nodes(struct txn *t, struct bytes session,
                            const struct bytes *ids, size_t n)
{
    const struct row **rows = arena_zalloc(txn_arena(t), n, sizeof(const void *));
    struct row_want *wants = arena_zalloc(txn_arena(t), n, sizeof(*wants));
    struct row_key *keys = arena_zalloc(txn_arena(t), n, sizeof(*keys));
    size_t n_wants = 0;

    if (!rows || !wants || !keys)
        return err_no_memory(txn_error(t), "nodes");
    belay_rc rc = rows_by_name(t, &row_node_name, session, ids, n, rows);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        if (!rows[i])
            continue;
        keys[n_wants] = key_of_seq(session, row_i64(rows[i], NODE_NAME_SEQ, 0));
        wants[n_wants] = (struct row_want){ &row_node, keys[n_wants].v };
        n_wants++;
    }
    return rc ? rc : txn_get_many(t, wants, n_wants, rows);
}

static belay_rc hide(struct txn *t, struct bytes session, const struct row *node,
                     struct bytes tombstones, int64_t now_ms)
{
    struct change change = { NODE_TOMBSTONED_AT_MS, value_i64(now_ms) };
    struct change hidden = { NODE_NAME_HIDDEN, value_i64(1) };
    int64_t seq = row_i64(node, NODE_SEQ, 0);
    struct row_key key = key_of_seq(session, seq);
    struct row_key name = key_of_name(session, row_bytes(node, NODE_ID));
    char text[I64_TEXT_MAX];
    belay_rc rc = txn_put(t, &row_node, key.v, &change, 1);

    if (rc == BELAY_OK)
        rc = txn_put(t, &row_node_name, name.v, &hidden, 1);
    return rc ? rc : txn_rank_add(t, tombstones, seq, seq_member(seq, text));
}

static belay_rc hide_all(struct txn *t, struct tombstoning *h, const struct bytes *ids,
                         int64_t now_ms)
{
    const struct row *node;
    struct bytes tombstones;
    belay_rc rc = session_index_in(t, TOMBSTONE_INDEX, h->session, &tombstones);

    for (size_t i = 0; i < h->n && rc == BELAY_OK; i++) {
        rc = node_by_name(t, h->session, ids[i], &node);
        if (rc || !node_is_live(node))
            continue;
        rc = hide(t, h->session, node, tombstones, now_ms);
        h->n_hidden++;
    }
    return rc;
}

/* The session's row changes with it: who has looked at the nodes under its guard looks
 * again. */
static belay_rc tombstone_body(struct txn *t, void *arg)
{
    struct tombstoning *h = arg;
    struct value key = value_text(h->session);
    struct bytes *ids = arena_zalloc(txn_arena(t), h->n, sizeof(*ids));
    struct session_now now;
    int64_t now_ms = 0;

    if (!ids)
        return err_no_memory(txn_error(t), "nodes");
    for (size_t i = 0; i < h->n; i++)
        ids[i] = bytes_str(h->ids[i]);
    h->n_hidden = 0;
    belay_rc rc = session_to_write(t, h->session, &now); /* N3 */
    if (rc || !now.row)
        return rc;
    rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = fetch_nodes(t, h->session, ids, h->n);
    if (rc == BELAY_OK)
        rc = hide_all(t, h, ids, now_ms);
    if (rc || h->n_hidden == 0)
        return rc;
    if (now.node_count < (int64_t)h->n_hidden)
        return txn_fail(t, BELAY_CORRUPT, "bad_value",
                        "session %.*s: it counts fewer nodes than it has",
                        (int)h->session.len, (const char *)h->session.ptr);
    const struct change changes[] = {
        { SESSION_NODE_COUNT, value_i64(now.node_count - (int64_t)h->n_hidden) },
        { SESSION_UPDATED_AT_MS, value_i64(now_ms) },
    };
    return txn_put(t, &row_session, &key, changes, COUNT_OF(changes)); /* N2 */
}

belay_rc session_tombstone(const struct session *s, const char *const *node_ids,
                           size_t n, size_t *out_n, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    belay_rc rc = session_check_id(s->id, err);
    size_t hidden = 0;

    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = session_check_name(node_ids ? node_ids[i] : NULL, "node_id", err);
    for (size_t i = 0; i < n && rc == BELAY_OK; i += SESSION_IDS_MAX) {
        struct tombstoning h = { .session = bytes_str(s->id), .ids = node_ids + i };
        h.n = n - i < SESSION_IDS_MAX ? n - i : SESSION_IDS_MAX;
        arena_reset(&scratch);
        rc = txn_run(s->sp, tombstone_body, &h, NULL, &scratch, err);
        hidden += h.n_hidden;
    }
    if (rc == BELAY_OK && out_n)
        *out_n = hidden;
    return rc;
}

/* --- vacuum --- */

struct vacuuming {
    struct bytes session;
    size_t removed, looked_at; /* by one step */
};

static belay_rc scan_tombstones(struct txn *t, struct bytes session, struct hits *out)
{
    struct value prefix = value_text(session);
    struct fetch fetch = { .type = &row_node, .prefix = &prefix };
    struct bytes index;
    belay_rc rc = session_index_in(t, TOMBSTONE_INDEX, session, &index);

    if (rc)
        return rc;
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .limit = SESSION_STEP,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    return txn_scan(t, &scan, out);
}

static belay_rc vacuum_body(struct txn *t, void *arg)
{
    struct vacuuming *v = arg;
    const struct row *nodes[SESSION_STEP];
    struct session_now now;
    struct hits hits = { .n = 0 };
    belay_rc rc = session_to_write(t, v->session, &now); /* N3 */

    v->removed = 0;
    if (rc == BELAY_OK && now.row)
        rc = scan_tombstones(t, v->session, &hits);
    v->looked_at = hits.n;
    for (size_t i = 0; i < hits.n && rc == BELAY_OK; i++) {
        nodes[i] = hits.hit[i].rows[0];
        if (!nodes[i] || node_is_live(nodes[i]))
            rc = txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                          "session %.*s: tombstone %.*s is of no such node",
                          (int)v->session.len, (const char *)v->session.ptr,
                          (int)hits.hit[i].member.len,
                          (const char *)hits.hit[i].member.ptr);
    }
    return rc ? rc : nodes_remove(t, v->session, nodes, hits.n, NULL, &v->removed);
}

/* Moves the beginning over nodes that are gone, so that nobody looks for them. */
static belay_rc trim_body(struct txn *t, void *arg)
{
    struct vacuuming *v = arg;
    struct value key = value_text(v->session);
    const struct row *rows[SESSION_STEP];
    struct session_now now;
    size_t gone = 0;
    belay_rc rc = session_to_write(t, v->session, &now); /* N3 */

    v->looked_at = 0;
    if (rc || now.first_seq > now.last_seq)
        return rc;
    int64_t left = now.last_seq - now.first_seq + 1;
    size_t n = left < SESSION_STEP ? (size_t)left : SESSION_STEP;
    rc = rows_by_seq(t, &row_node, v->session, now.first_seq, n, rows);
    while (rc == BELAY_OK && gone < n && !rows[gone])
        gone++;
    if (gone == SESSION_STEP)
        v->looked_at = gone; /* there may be more */
    if (rc || gone == 0)
        return rc;
    struct change change = { SESSION_FIRST_SEQ,
                             value_i64(now.first_seq + (int64_t)gone) };
    return txn_put(t, &row_session, &key, &change, 1);
}

belay_rc session_vacuum(const struct session *s, size_t *out_removed,
                        struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct vacuuming v = { .session = bytes_str(s->id) };
    belay_rc rc = session_check_id(s->id, err);
    size_t removed = 0;

    for (bool more = true; more && rc == BELAY_OK; more = v.looked_at > 0) {
        arena_reset(&scratch);
        rc = txn_run(s->sp, vacuum_body, &v, NULL, &scratch, err);
        removed += v.removed;
    }
    for (bool more = true; more && rc == BELAY_OK; more = v.looked_at > 0) {
        arena_reset(&scratch);
        rc = txn_run(s->sp, trim_body, &v, NULL, &scratch, err);
    }
    if (rc == BELAY_OK && out_removed)
        *out_removed = removed;
    return rc;
}

/* --- healing a leaf --- */

/* The search is done in steps that read, the move in one that writes.  In between the
 * version of the session's row says whether anything has changed: whatever makes or
 * hides a node changes that row, too. */
struct healing {
    struct bytes session;
    int64_t ver;                     /* of the session's row; 0: not looked at yet */
    int64_t below;                   /* nodes from here on were looked at */
    char leaf[SESSION_NAME_MAX + 1]; /* the new one; empty: none */

    /* of one look, or of the move */
    int64_t seen_ver;
    bool needed; /* there is a leaf and its node is not */
    bool moved;  /* something has changed since the last look */
    int64_t from;
    size_t n;
    const struct row *rows[SESSION_PAGE]; /* from..below - 1 */
};

static belay_rc leaf_is_missing(struct txn *t, const struct session_now *now,
                                struct bytes session, bool *out)
{
    struct bytes leaf = row_bytes(now->row, SESSION_LEAF);
    const struct row *node = NULL;
    belay_rc rc = BELAY_OK;

    if (leaf.len > 0)
        rc = node_by_name(t, session, leaf, &node);
    *out = leaf.len > 0 && !node_is_live(node);
    return rc;
}

/* The page of nodes below what was looked at. */
static belay_rc look_body(struct txn *t, void *arg)
{
    struct healing *h = arg;
    struct session_now now;
    belay_rc rc = session_to_write(t, h->session, &now); /* N3 */

    h->n = 0;
    h->needed = h->moved = false;
    if (rc || !now.row)
        return rc;
    h->seen_ver = now.row->ver;
    h->moved = h->ver != 0 && h->ver != now.row->ver;
    if (h->moved)
        return BELAY_OK;
    rc = leaf_is_missing(t, &now, h->session, &h->needed);
    int64_t below = h->ver != 0 ? h->below : now.last_seq + 1;
    h->from =
        below - SESSION_PAGE < now.first_seq ? now.first_seq : below - SESSION_PAGE;
    if (rc || !h->needed || below <= now.first_seq)
        return rc;
    h->n = (size_t)(below - h->from);
    return rows_by_seq(t, &row_node, h->session, h->from, h->n, h->rows);
}

/* Whether it is a live message. */
static belay_rc is_message(const struct row *row, bool *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *node = NULL;

    *out = false;
    if (!node_is_live(row))
        return BELAY_OK;
    struct bytes json = row_bytes(row, NODE_JSON), id = row_bytes(row, NODE_ID);
    belay_rc rc = json_read(json, json.len, &node, err);
    if (rc == BELAY_INVALID || id.len > SESSION_NAME_MAX)
        return err_reason(err, BELAY_CORRUPT, "bad_value",
                          "node %.*s: its JSON cannot be read", (int)id.len,
                          (const char *)id.ptr);
    *out = rc == BELAY_OK && node_is_conversation(node);
    return rc;
}

/* The last message in storage order. */
static belay_rc search(const struct session *s, struct healing *h,
                       struct belay_arena *scratch, struct belay_error *err)
{
    bool found = false;

    do {
        arena_reset(scratch);
        belay_rc rc = txn_run(s->sp, look_body, h, &session_reads, scratch, err);
        for (size_t i = h->n; i-- > 0 && rc == BELAY_OK && !found;) {
            const struct row *row = h->rows[i];
            rc = is_message(row, &found, err);
            if (rc == BELAY_OK && found && row)
                memcpy(h->leaf, row_bytes(row, NODE_ID).ptr,
                       row_bytes(row, NODE_ID).len);
        }
        if (rc)
            return rc;
        h->ver = h->seen_ver;
        h->below = h->from;
    } while (h->n > 0 && !found && !h->moved);
    return BELAY_OK;
}

static belay_rc move_body(struct txn *t, void *arg)
{
    struct healing *h = arg;
    struct value key = value_text(h->session);
    struct bytes leaf = bytes_str(h->leaf);
    struct session_now now;
    int64_t now_ms = 0;
    belay_rc rc = session_to_write(t, h->session, &now); /* N3 */

    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    h->moved = !now.row || now.row->ver != h->ver;
    if (h->moved)
        return BELAY_OK;
    const struct change changes[] = {
        { SESSION_REVISION, value_i64(now.revision + 1) },
        { SESSION_LEAF, leaf.len > 0 ? value_text(leaf) : value_null() },
        { SESSION_UPDATED_AT_MS, value_i64(now_ms) },
    };
    rc = txn_put(t, &row_session, &key, changes, COUNT_OF(changes));
    if (rc)
        return rc;
    return session_note(t, h->session,
                        &(struct commit_note){
                            .revision = now.revision + 1, /* N1 */
                            .at_ms = now_ms,
                            .node_count = now.node_count,
                            .heal = true,
                            .leaf = leaf.len > 0 ? leaf : bytes_of(NULL, 0),
                            .node_ids = bytes_str("[]"),
                            .completed = bytes_str("[]"),
                            .usage_ids = bytes_str("[]"),
                        });
}

belay_rc session_heal(const struct session *s, bool *out_changed,
                      struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    belay_rc rc = session_check_id(s->id, err);

    for (int i = 0; i < HEAL_ATTEMPTS && rc == BELAY_OK; i++) {
        struct healing h = { .session = bytes_str(s->id) };
        rc = search(s, &h, &scratch, err);
        bool needed = h.needed;
        if (rc == BELAY_OK && needed && !h.moved) {
            arena_reset(&scratch);
            rc = txn_run(s->sp, move_body, &h, NULL, &scratch, err);
        }
        if (rc == BELAY_OK && !h.moved) {
            if (out_changed)
                *out_changed = needed;
            return BELAY_OK;
        }
    }
    return rc ? rc
              : err_set(err, BELAY_CONTENTION,
                        "session %s: it changed %d times while it was to be healed",
                        s->id, HEAL_ATTEMPTS);
}
