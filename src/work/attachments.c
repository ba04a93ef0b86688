#include "work/session_impl.h"

#define URI_MAX 4096
#define UNCOMMITTED_LIMIT 100 /* of a page, when none is given */
#define UNCOMMITTED_LIMIT_MAX 1000

static bool is_committed(const struct row *row)
{
    return row->v[ATTACHMENT_COMMITTED_AT_MS].kind != VALUE_NULL;
}

/* --- announcing --- */

struct intent {
    struct bytes session, id, uri;
    bool is_new;
};

static belay_rc intent_body(struct txn *t, void *arg)
{
    struct intent *in = arg;
    struct value v[ATTACHMENT_COLUMNS] = { [ATTACHMENT_SESSION] =
                                               value_text(in->session),
                                           [ATTACHMENT_ID] = value_text(in->id),
                                           [ATTACHMENT_URI] = value_text(in->uri) };
    const struct row *row;
    struct session_now now;
    struct bytes index;
    int64_t now_ms = 0;

    belay_rc rc = session_to_write(t, in->session, &now); /* N3 */
    if (rc == BELAY_OK)
        rc = txn_get(t, &row_attachment, v, &row);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    in->is_new = !row;
    if (row)
        return BELAY_OK;
    v[ATTACHMENT_INTENT_AT_MS] = value_i64(now_ms);
    rc = txn_insert(t, &row_attachment, v);
    if (rc == BELAY_OK)
        rc = session_index_in(t, INTENT_INDEX, in->session, &index);
    return rc ? rc : txn_rank_add(t, index, now_ms, in->id);
}

static belay_rc check_uri(const char *uri, struct belay_error *err)
{
    if (uri && *uri)
        return session_check_text(uri, URI_MAX, "uri", err);
    return err_reason(err, BELAY_INVALID, "uri", "uri: must not be empty");
}

belay_rc attachment_intent(const struct session *s, const char *attachment_id,
                           const char *uri, bool *out_new, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    belay_rc rc = session_check_id(s->id, err);

    if (rc == BELAY_OK)
        rc = session_check_name(attachment_id, "attachment_id", err);
    if (rc == BELAY_OK)
        rc = check_uri(uri, err);
    if (rc)
        return rc;
    struct intent in = { .session = bytes_str(s->id),
                         .id = bytes_str(attachment_id),
                         .uri = bytes_str(uri) };
    rc = txn_run(s->sp, intent_body, &in, NULL, &scratch, err);
    if (rc == BELAY_OK && out_new)
        *out_new = in.is_new;
    return rc;
}

/* --- fulfilling --- */

static belay_rc stamp(struct txn *t, struct bytes session, const struct row *row,
                      int64_t now_ms)
{
    struct change change = { ATTACHMENT_COMMITTED_AT_MS, value_i64(now_ms) };
    struct bytes id = row_bytes(row, ATTACHMENT_ID);
    struct bytes intents = { 0 }, attached = { 0 };
    struct row_key key = key_of_name(session, id);
    belay_rc rc = txn_put(t, &row_attachment, key.v, &change, 1);

    if (rc == BELAY_OK)
        rc = session_index_in(t, INTENT_INDEX, session, &intents);
    if (rc == BELAY_OK)
        rc = session_index_in(t, ATTACHED_INDEX, session, &attached);
    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, intents, row_i64(row, ATTACHMENT_INTENT_AT_MS, 0), id);
    return rc ? rc : txn_rank_add(t, attached, now_ms, id);
}

belay_rc attachments_stamp(struct txn *t, struct bytes session, const char *const *ids,
                           size_t n, size_t *out_n)
{
    struct bytes *names = arena_zalloc(txn_arena(t), n, sizeof(*names));
    const struct row **rows = arena_zalloc(txn_arena(t), n, sizeof(const void *));
    int64_t now_ms = 0;

    *out_n = 0;
    if (!names || !rows)
        return err_no_memory(txn_error(t), "attachments");
    for (size_t i = 0; i < n; i++)
        names[i] = bytes_str(ids[i]);
    belay_rc rc = rows_by_name(t, &row_attachment, session, names, n, rows);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        struct row_key key = key_of_name(session, names[i]);
        rc = txn_get(t, &row_attachment, key.v, &rows[i]); /* may be listed twice */
        if (rc || !rows[i] || is_committed(rows[i]))
            continue;
        rc = stamp(t, session, rows[i], now_ms);
        *out_n += 1;
    }
    return rc;
}

struct stamping {
    struct bytes session;
    const char *const *ids;
    size_t n, n_stamped;
};

static belay_rc stamp_body(struct txn *t, void *arg)
{
    struct stamping *s = arg;
    struct session_now now;
    belay_rc rc = session_to_write(t, s->session, &now); /* N3 */

    return rc ? rc : attachments_stamp(t, s->session, s->ids, s->n, &s->n_stamped);
}

belay_rc attachment_commit(const struct session *s, const char *const *ids, size_t n,
                           size_t *out_n, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    belay_rc rc = session_check_id(s->id, err);
    size_t stamped = 0;

    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = session_check_name(ids ? ids[i] : NULL, "attachment_id", err);
    for (size_t i = 0; i < n && rc == BELAY_OK; i += SESSION_IDS_MAX) {
        struct stamping part = { .session = bytes_str(s->id), .ids = ids + i };
        part.n = n - i < SESSION_IDS_MAX ? n - i : SESSION_IDS_MAX;
        arena_reset(&scratch);
        rc = txn_run(s->sp, stamp_body, &part, NULL, &scratch, err);
        stamped += part.n_stamped;
    }
    if (rc == BELAY_OK && out_n)
        *out_n = stamped;
    return rc;
}

/* --- what is still open --- */

struct open_list {
    struct bytes session;
    int64_t older_than_ms;
    size_t limit;
    struct hits hits;
};

static belay_rc open_body(struct txn *t, void *arg)
{
    struct open_list *l = arg;
    struct value prefix = value_text(l->session);
    struct fetch fetch = { .type = &row_attachment, .prefix = &prefix };
    struct bytes index;
    belay_rc rc = session_not_gone(t, l->session);

    if (rc == BELAY_OK)
        rc = session_index_in(t, INTENT_INDEX, l->session, &index);
    if (rc)
        return rc;
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = l->older_than_ms,
                         .limit = l->limit,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    rc = txn_scan(t, &scan, &l->hits);
    for (size_t i = 0; i < l->hits.n && rc == BELAY_OK; i++) {
        if (!l->hits.hit[i].rows[0])
            rc = txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                          "attachment %.*s: is listed and has no row",
                          (int)l->hits.hit[i].member.len,
                          (const char *)l->hits.hit[i].member.ptr);
    }
    return rc;
}

static bool take_attachment(const struct row *row, struct belay_arena *a,
                            struct belay_attachment *out)
{
    out->intent_at_ms = row_i64(row, ATTACHMENT_INTENT_AT_MS, 0);
    out->committed_at_ms = row_i64(row, ATTACHMENT_COMMITTED_AT_MS, BELAY_TIME_NONE);
    return session_text(a, row, ATTACHMENT_ID, &out->attachment_id) &&
           session_text(a, row, ATTACHMENT_SESSION, &out->session_id) &&
           session_text(a, row, ATTACHMENT_URI, &out->uri);
}

static int64_t rank_of(int64_t time_ms)
{
    if (time_ms > RANK_MAX)
        return RANK_MAX;
    return time_ms < -RANK_MAX ? -RANK_MAX : time_ms;
}

belay_rc attachment_uncommitted(const struct session *s, int64_t older_than_ms,
                                size_t limit, struct belay_arena *a,
                                const struct belay_attachment **out, size_t *out_n,
                                struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct open_list l = { .session = bytes_str(s->id),
                           .older_than_ms = rank_of(older_than_ms),
                           .limit = session_limit(limit, UNCOMMITTED_LIMIT,
                                                  UNCOMMITTED_LIMIT_MAX) };

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, open_body, &l, &session_reads, &scratch, err);
    if (rc)
        return rc;
    struct belay_attachment *list = arena_zalloc(a, l.hits.n, sizeof(*list));
    if (!list)
        return err_no_memory(err, "attachments");
    for (size_t i = 0; i < l.hits.n; i++) {
        if (!take_attachment(l.hits.hit[i].rows[0], a, &list[i]))
            return err_no_memory(err, "attachments");
    }
    *out = list;
    *out_n = l.hits.n;
    return BELAY_OK;
}

/* --- forgetting --- */

belay_rc attachment_remove(struct txn *t, struct bytes session, const struct row *row)
{
    bool committed = is_committed(row);
    struct bytes id = row_bytes(row, ATTACHMENT_ID), index;
    struct row_key key = key_of_name(session, id);
    unsigned column = committed ? ATTACHMENT_COMMITTED_AT_MS : ATTACHMENT_INTENT_AT_MS;
    belay_rc rc =
        session_index_in(t, committed ? ATTACHED_INDEX : INTENT_INDEX, session, &index);

    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, index, row_i64(row, column, 0), id);
    return rc ? rc : txn_delete(t, &row_attachment, key.v);
}

struct forgetting {
    struct bytes session, id;
    bool removed;
};

static belay_rc forget_body(struct txn *t, void *arg)
{
    struct forgetting *f = arg;
    struct row_key key = key_of_name(f->session, f->id);
    const struct row *row = NULL;
    struct session_now now;
    belay_rc rc = session_to_write(t, f->session, &now); /* N3 */

    if (rc == BELAY_OK)
        rc = txn_get(t, &row_attachment, key.v, &row);
    f->removed = rc == BELAY_OK && row;
    return f->removed ? attachment_remove(t, f->session, row) : rc;
}

belay_rc attachment_forget(const struct session *s, const char *attachment_id,
                           bool *out_removed, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    belay_rc rc = session_check_id(s->id, err);

    if (rc == BELAY_OK)
        rc = session_check_name(attachment_id, "attachment_id", err);
    if (rc)
        return rc;
    struct forgetting f = { .session = bytes_str(s->id),
                            .id = bytes_str(attachment_id) };
    rc = txn_run(s->sp, forget_body, &f, NULL, &scratch, err);
    if (rc == BELAY_OK && out_removed)
        *out_removed = f.removed;
    return rc;
}
