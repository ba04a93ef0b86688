/* Sessions and what belongs to them, and pins: that they stand where their rows say, and
 * that the rows can be true. */
#include "base/clock.h"
#include "base/json.h"
#include "store/blob.h"
#include "work/check_impl.h"
#include "work/session_rows.h"

static belay_rc bad_value(struct check *c, const struct row *row, struct bytes entity,
                          unsigned column, struct belay_error *err)
{
    return check_found(c, "bad_value", entity, err, "%s: %s cannot be what it is",
                       row->type->name, row->type->columns[column].name);
}

/* The index of a family that ends with what a column says. */
static belay_rc expect_in(struct check *c, const char *family, struct bytes of,
                          struct bytes member, int64_t rank, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf index = { 0 };

    buf_append_str(&index, family);
    buf_append(&index, of);
    if (index.failed)
        return err_no_memory(err, "a check");
    return check_expect_rank(c, buf_view(&index), member, rank, err);
}

static bool is_count(const struct value *v, int64_t min)
{
    return v->kind == VALUE_I64 && v->i >= min && v->i <= TIME_MAX_MS;
}

/* --- sessions --- */

static bool session_number_is_good(const struct row *row, unsigned column)
{
    return is_count(&row->v[column], column == SESSION_FIRST_SEQ ? 1 : 0);
}

static belay_rc check_head(struct check *c, const struct row *row,
                           struct belay_error *err)
{
    static const unsigned numbers[] = { SESSION_REVISION, SESSION_NODE_COUNT,
                                        SESSION_FIRST_SEQ, SESSION_LAST_SEQ };
    static const unsigned refs[] = { SESSION_CHECKPOINT, SESSION_TOOL_REF,
                                     SESSION_PLUGIN_REF, SESSION_EXECUTION_REF };
    struct bytes id = row_bytes(row, SESSION_ID);
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(numbers) && rc == BELAY_OK; i++) {
        if (!session_number_is_good(row, numbers[i]))
            rc = bad_value(c, row, id, numbers[i], err);
    }
    for (size_t i = 0; i < COUNT_OF(refs) && rc == BELAY_OK; i++) {
        struct bytes ref = row_bytes(row, refs[i]);
        if (row->v[refs[i]].kind == VALUE_NULL)
            continue;
        rc = blob_is_name(ref) ? check_told(c, TALLY_BLOB, ref, 1, err) /* S3 */
                               : bad_value(c, row, id, refs[i], err);
    }
    if (rc == BELAY_OK) /* N2 */
        rc = check_told(c, TALLY_NODES, id, row_i64(row, SESSION_NODE_COUNT, 0), err);
    if (rc == BELAY_OK)
        rc = check_told(c, TALLY_NAMES, id, row_i64(row, SESSION_NODE_COUNT, 0), err);
    if (rc == BELAY_OK) /* N1, S2 */
        rc = check_told(c, TALLY_COMMITS, id, row_i64(row, SESSION_REVISION, 0), err);
    return rc;
}

belay_rc check_session_row(struct check *c, const struct row *row,
                           struct belay_error *err)
{
    struct bytes id = row_bytes(row, SESSION_ID), state = row_bytes(row, SESSION_STATE);
    int64_t rank = row_i64(row, SESSION_CREATED_AT_MS, 0);

    if (bytes_eq(state, bytes_str(SESSION_DELETED))) /* empty, and in no index */
        return BELAY_OK;
    if (bytes_eq(state, bytes_str(SESSION_DELETING))) /* on its way there */
        return check_expect_rank(c, bytes_str(SESSION_DELETING_INDEX), id, rank, err);
    if (!bytes_eq(state, bytes_str(SESSION_ACTIVE)))
        return bad_value(c, row, id, SESSION_STATE, err);
    belay_rc rc = check_expect_rank(c, bytes_str(SESSION_INDEX), id, rank, err);
    return rc ? rc : check_head(c, row, err);
}

/* --- nodes --- */

static belay_rc check_node_json(struct check *c, const struct row *row,
                                struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *node = NULL;
    struct bytes json = row_bytes(row, NODE_JSON), id = row_bytes(row, NODE_ID);
    belay_rc rc = json_read(json, json.len, &node, err);

    if (rc == BELAY_NO_MEMORY)
        return rc;
    const json_t *named = json_object_get(node, "node_id");
    if (rc == BELAY_OK && json_is_string(named) &&
        bytes_eq(bytes_str(json_string_value(named)), id))
        return BELAY_OK;
    return bad_value(c, row, id, NODE_JSON, err);
}

belay_rc check_node_row(struct check *c, const struct row *row, struct belay_error *err)
{
    const struct value *parent = &row->v[NODE_PARENT_SEQ];
    struct bytes id = row_bytes(row, NODE_ID);
    int64_t seq = row_i64(row, NODE_SEQ, 0);
    char text[I64_TEXT_MAX];
    belay_rc rc = BELAY_OK;

    if (row->v[NODE_TOMBSTONED_AT_MS].kind != VALUE_NULL)
        rc = expect_in(c, TOMBSTONE_INDEX, row_bytes(row, NODE_SESSION),
                       bytes_of(text, bytes_put_i64(text, seq)), seq, err);
    else
        rc = check_seen(c, TALLY_NODES, row_bytes(row, NODE_SESSION), 0, err);
    if (rc == BELAY_OK && !is_count(&row->v[NODE_SEQ], 1))
        rc = bad_value(c, row, id, NODE_SEQ, err);
    if (rc == BELAY_OK && parent->kind != VALUE_NULL && !is_count(parent, 1))
        rc = bad_value(c, row, id, NODE_PARENT_SEQ, err);
    return rc ? rc : check_node_json(c, row, err);
}

belay_rc check_node_name_row(struct check *c, const struct row *row,
                             struct belay_error *err)
{
    return name_is_live(row)
               ? check_seen(c, TALLY_NAMES, row_bytes(row, NODE_NAME_SESSION), 0, err)
               : BELAY_OK;
}

/* --- the rest --- */

belay_rc check_attachment_row(struct check *c, const struct row *row,
                              struct belay_error *err)
{
    bool committed = row->v[ATTACHMENT_COMMITTED_AT_MS].kind != VALUE_NULL;
    unsigned column = committed ? ATTACHMENT_COMMITTED_AT_MS : ATTACHMENT_INTENT_AT_MS;
    struct bytes id = row_bytes(row, ATTACHMENT_ID);
    belay_rc rc =
        expect_in(c, committed ? ATTACHED_INDEX : INTENT_INDEX,
                  row_bytes(row, ATTACHMENT_SESSION), id, row_i64(row, column, 0), err);

    return rc || is_count(&row->v[column], 0) ? rc : bad_value(c, row, id, column, err);
}

belay_rc check_meta_row(struct check *c, const struct row *row, struct belay_error *err)
{
    struct bytes id = row_bytes(row, META_SESSION);

    if (!is_count(&row->v[META_SAVED_AT_MS], 0))
        return bad_value(c, row, id, META_SAVED_AT_MS, err);
    if (row->v[META_PARENT].kind == VALUE_NULL)
        return BELAY_OK;
    return expect_in(c, CHILD_INDEX, row_bytes(row, META_PARENT), id,
                     row_i64(row, META_SAVED_AT_MS, 0), err);
}

belay_rc check_pin_row(struct check *c, const struct row *row, struct belay_error *err)
{
    struct bytes name = row_bytes(row, PIN_NAME);
    belay_rc rc = check_expect_rank(c, bytes_str(PIN_INDEX), name,
                                    row_i64(row, PIN_CREATED_AT_MS, 0), err);

    if (rc == BELAY_OK && blob_is_name(row_bytes(row, PIN_SHA256)))
        return check_told(c, TALLY_BLOB, row_bytes(row, PIN_SHA256), 1, err);
    if (rc)
        return rc;
    return bad_value(c, row, name, PIN_SHA256, err);
}
