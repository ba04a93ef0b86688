#include "work/session_rows.h"

#include "base/clock.h"

const struct txn_options session_reads = { .read_only = true };

belay_rc session_check_name(const char *id, const char *what, struct belay_error *err)
{
    if (id && bytes_is_id(bytes_str(id), SESSION_NAME_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, what,
                      "%s: must be 1 to %d bytes of UTF-8 without control characters",
                      what, SESSION_NAME_MAX);
}

belay_rc session_check_text(const char *text, size_t max, const char *what,
                            struct belay_error *err)
{
    if (!text)
        return BELAY_OK;
    struct bytes b = bytes_str(text);
    if (b.len <= max && bytes_is_utf8(b))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, what,
                      "%s: must be UTF-8 text of at most %zu bytes", what, max);
}

belay_rc session_check_id(const char *id, struct belay_error *err)
{
    return session_check_name(id, "session_id", err);
}

size_t session_limit(size_t limit, size_t otherwise, size_t max)
{
    if (limit == 0)
        return otherwise;
    return limit < max ? limit : max;
}

/* --- keys and names --- */

bool session_index(struct belay_arena *a, const char *prefix, struct bytes session,
                   struct bytes *out)
{
    size_t len = strlen(prefix);
    uint8_t *name = arena_alloc(a, len + 1 + session.len);

    if (!name)
        return false;
    memcpy(name, prefix, len + 1);
    memcpy(name + len, session.ptr, session.len);
    *out = bytes_of(name, len + session.len);
    return true;
}

belay_rc session_index_in(struct txn *t, const char *prefix, struct bytes session,
                          struct bytes *out)
{
    return session_index(txn_arena(t), prefix, session, out)
               ? BELAY_OK
               : err_no_memory(txn_error(t), "an index");
}

struct bytes seq_member(int64_t seq, char buffer[I64_TEXT_MAX])
{
    return bytes_of(buffer, bytes_put_i64(buffer, seq));
}

bool session_text(struct belay_arena *a, const struct row *row, unsigned column,
                  const char **out)
{
    struct bytes copy;

    *out = NULL;
    if (row->v[column].kind == VALUE_NULL)
        return true;
    if (!arena_copy(a, row_bytes(row, column), &copy))
        return false;
    *out = (const char *)copy.ptr;
    return true;
}

/* --- the session's own row --- */

/* Which number it is, where it goes, and what it is when the column is NULL. */
static const struct {
    unsigned column;
    size_t offset;
    int64_t otherwise;
} numbers[] = {
    { SESSION_REVISION, offsetof(struct session_now, revision), 0 },
    { SESSION_NODE_COUNT, offsetof(struct session_now, node_count), 0 },
    { SESSION_FIRST_SEQ, offsetof(struct session_now, first_seq), 1 },
    { SESSION_LAST_SEQ, offsetof(struct session_now, last_seq), 0 },
    { SESSION_CREATED_AT_MS, offsetof(struct session_now, created_at_ms), 0 },
    { SESSION_UPDATED_AT_MS, offsetof(struct session_now, updated_at_ms), 0 },
};

static belay_rc corrupt(struct txn *t, struct bytes session, const char *column)
{
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, "bad_value", "session %.*s: %s cannot be what it is",
                 (int)session.len, (const char *)session.ptr, column);

    err_entity(txn_error(t), session);
    return rc;
}

static belay_rc judge(struct txn *t, struct bytes session, struct session_now *s)
{
    struct bytes state = row_bytes(s->row, SESSION_STATE);

    s->gone = bytes_eq(state, bytes_str(SESSION_DELETING)) ||
              bytes_eq(state, bytes_str(SESSION_DELETED));
    if (!s->gone && !bytes_eq(state, bytes_str(SESSION_ACTIVE)))
        return corrupt(t, session, "state");
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int64_t n = row_i64(s->row, numbers[i].column, numbers[i].otherwise);
        if (n < 0 || n > TIME_MAX_MS)
            return corrupt(t, session, row_session.columns[numbers[i].column].name);
        memcpy((char *)s + numbers[i].offset, &n, sizeof(n));
    }
    if (row_bytes(s->row, SESSION_LEAF).len > SESSION_NAME_MAX)
        return corrupt(t, session, "leaf");
    if (s->first_seq < 1 || s->first_seq > s->last_seq + 1)
        return corrupt(t, session, "first_seq");
    if (s->node_count > s->last_seq - s->first_seq + 1)
        return corrupt(t, session, "node_count");
    return BELAY_OK;
}

belay_rc session_load(struct txn *t, struct bytes session, struct session_now *out)
{
    struct value key = value_text(session);

    *out = (struct session_now){ .first_seq = 1 };
    belay_rc rc = txn_get(t, &row_session, &key, &out->row);
    return rc || !out->row ? rc : judge(t, session, out);
}

static belay_rc refuse(struct txn *t, struct bytes session, belay_rc code,
                       const char *reason, const char *why)
{
    belay_rc rc = txn_fail(t, code, reason, "session %.*s: %s", (int)session.len,
                           (const char *)session.ptr, why);

    err_entity(txn_error(t), session);
    return rc;
}

belay_rc session_to_write(struct txn *t, struct bytes session, struct session_now *out)
{
    belay_rc rc = session_load(t, session, out);

    if (rc || !out->gone)
        return rc;
    return refuse(t, session, BELAY_WRONG_STATE, "deleted", "it was deleted");
}

belay_rc session_to_read(struct txn *t, struct bytes session, struct session_now *out)
{
    belay_rc rc = session_load(t, session, out);

    if (rc || (out->row && !out->gone))
        return rc;
    return out->gone
               ? refuse(t, session, BELAY_NOT_FOUND, "deleted", "it was deleted")
               : refuse(t, session, BELAY_NOT_FOUND, "", "there is none of that id");
}

belay_rc session_not_gone(struct txn *t, struct bytes session)
{
    struct session_now now;
    belay_rc rc = session_load(t, session, &now);

    if (rc || !now.gone)
        return rc;
    return refuse(t, session, BELAY_NOT_FOUND, "deleted", "it was deleted");
}

/* --- rows of it --- */

/* Room for n questions with keys of two parts. */
static belay_rc make_wants(struct txn *t, size_t n, struct row_want **wants,
                           struct row_key **keys)
{
    *wants = arena_zalloc(txn_arena(t), n, sizeof(**wants));
    *keys = arena_zalloc(txn_arena(t), n, sizeof(**keys));
    return *wants && *keys ? BELAY_OK : err_no_memory(txn_error(t), "a session");
}

belay_rc rows_by_seq(struct txn *t, const struct row_type *type, struct bytes session,
                     int64_t from, size_t n, const struct row **out)
{
    struct row_want *wants;
    struct row_key *keys;
    belay_rc rc = make_wants(t, n, &wants, &keys);

    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        keys[i] = key_of_seq(session, from + (int64_t)i);
        wants[i] = (struct row_want){ type, keys[i].v };
    }
    return txn_get_many(t, wants, n, out);
}

belay_rc rows_by_name(struct txn *t, const struct row_type *type, struct bytes session,
                      const struct bytes *names, size_t n, const struct row **out)
{
    struct row_want *wants;
    struct row_key *keys;
    belay_rc rc = make_wants(t, n, &wants, &keys);

    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        keys[i] = key_of_name(session, names[i]);
        wants[i] = (struct row_want){ type, keys[i].v };
    }
    return txn_get_many(t, wants, n, out);
}

belay_rc node_by_name(struct txn *t, struct bytes session, struct bytes id,
                      const struct row **out)
{
    struct row_key key = key_of_name(session, id);
    const struct row *name;
    belay_rc rc = txn_get(t, &row_node_name, key.v, &name);

    *out = NULL;
    if (rc || !name)
        return rc;
    key = key_of_seq(session, row_i64(name, NODE_NAME_SEQ, 0));
    return txn_get(t, &row_node, key.v, out);
}

bool name_is_live(const struct row *name)
{
    return name && name->v[NODE_NAME_HIDDEN].kind == VALUE_NULL;
}

bool node_is_live(const struct row *node)
{
    return node && node->v[NODE_TOMBSTONED_AT_MS].kind == VALUE_NULL;
}

/* One node; its name goes only if it is still its own. */
static belay_rc node_remove(struct txn *t, struct bytes session, const struct row *node,
                            const struct row *name, struct bytes tombstones)
{
    int64_t seq = row_i64(node, NODE_SEQ, 0);
    struct row_key key = key_of_seq(session, seq);
    char text[I64_TEXT_MAX];
    belay_rc rc = txn_delete(t, &row_node, key.v);

    if (rc == BELAY_OK && !node_is_live(node))
        rc = txn_rank_remove(t, tombstones, seq, seq_member(seq, text));
    if (rc || !name || row_i64(name, NODE_NAME_SEQ, 0) != seq)
        return rc;
    key = key_of_name(session, row_bytes(node, NODE_ID));
    return txn_delete(t, &row_node_name, key.v);
}

belay_rc nodes_remove(struct txn *t, struct bytes session,
                      const struct row *const *nodes, size_t n,
                      const struct graph *keep, size_t *out_removed)
{
    struct bytes *ids = arena_zalloc(txn_arena(t), n, sizeof(*ids));
    const struct row **found = arena_zalloc(txn_arena(t), n, sizeof(const void *));
    const struct row **names = arena_zalloc(txn_arena(t), n, sizeof(const void *));
    struct bytes tombstones;
    size_t n_found = 0;

    if (!ids || !found || !names)
        return err_no_memory(txn_error(t), "nodes");
    for (size_t i = 0; i < n; i++) {
        if (!nodes[i])
            continue;
        found[n_found] = nodes[i];
        ids[n_found++] = row_bytes(nodes[i], NODE_ID);
    }
    belay_rc rc = session_index_in(t, TOMBSTONE_INDEX, session, &tombstones);
    if (rc == BELAY_OK)
        rc = rows_by_name(t, &row_node_name, session, ids, n_found, names);
    for (size_t i = 0; i < n_found && rc == BELAY_OK; i++) {
        bool stays = keep && graph_find(keep, ids[i]) >= 0;
        rc = node_remove(t, session, found[i], stays ? NULL : names[i], tombstones);
    }
    *out_removed = n_found;
    return rc;
}
