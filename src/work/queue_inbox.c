/* The two rows of an inbox: its back, where batches enter, and its front, where they are taken.
 * Producers change the one and consumers the other, so that neither is in the other's way. */
#include "work/queue_rows.h"

static bool name_make(struct bytes *out, const char *prefix, struct bytes session,
                      struct belay_arena *a)
{
    struct bytes head = bytes_str(prefix);
    uint8_t *name = arena_alloc(a, head.len + session.len);

    if (!name)
        return false;
    memcpy(name, head.ptr, head.len);
    memcpy(name + head.len, session.ptr, session.len);
    *out = bytes_of(name, head.len + session.len);
    return true;
}

bool inbox_names(struct inbox *out, struct bytes session, struct belay_arena *a)
{
    *out = (struct inbox){ .session = session };
    return name_make(&out->ready, READY_INDEX, session, a) &&
           name_make(&out->due, DUE_INDEX, session, a) &&
           name_make(&out->topic, "inbox/", session, a);
}

/* --- reading --- */

static bool is_deleted(const struct row *row, unsigned column)
{
    return row && bytes_eq(row_bytes(row, column), bytes_str(SESSION_DELETED));
}

static belay_rc unsound(struct txn *t, const struct inbox *in)
{
    return txn_fail(t, BELAY_CORRUPT, "inbox",
                    "inbox %.*s: it says %lld batches are gone, from %lld to %lld",
                    (int)in->session.len, (const char *)in->session.ptr,
                    (long long)in->gone, (long long)in->first_seq,
                    (long long)in->last_gone);
}

int64_t inbox_last_seq(const struct row *back)
{
    int64_t written = row_i64(back, INBOX_LAST_SEQ, 0);
    int64_t at = row_i64(back, INBOX_AT_VER, 0);

    if (at <= 0)
        return written;
    bool sound = written >= 0 && written < RANK_MAX && at <= back->ver &&
                 back->ver - at < RANK_MAX;
    return sound ? written + (back->ver - at) : -1;
}

belay_rc inbox_get_back(struct txn *t, struct inbox *in)
{
    struct value key = value_text(in->session);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_inbox, &key, &row);
    if (rc)
        return rc;

    in->exists = row != NULL;
    in->deleted = is_deleted(row, INBOX_STATE);
    in->last_seq = row ? inbox_last_seq(row) : 0;
    if (!row)
        in->first_seq = 1;
    if (in->last_seq >= 0 && in->last_seq < RANK_MAX)
        return BELAY_OK;
    return txn_fail(t, BELAY_CORRUPT, "inbox", "inbox %.*s: its last sequence is %lld",
                    (int)in->session.len, (const char *)in->session.ptr,
                    (long long)in->last_seq);
}

belay_rc inbox_get_front(struct txn *t, struct inbox *in)
{
    struct value key = value_text(in->session);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_inbox_front, &key, &row);
    if (rc)
        return rc;

    in->exists = row != NULL;
    in->deleted = is_deleted(row, INBOX_FRONT_STATE);
    in->first_seq = row ? row_i64(row, INBOX_FRONT_FIRST_SEQ, 1) : 1;
    in->gone = row ? row_i64(row, INBOX_FRONT_GONE, 0) : 0;
    in->last_gone = row ? row_i64(row, INBOX_FRONT_LAST_GONE, 0) : 0;
    in->changes = row ? row_i64(row, INBOX_FRONT_CHANGES, 0) : 0;
    bool sound = in->first_seq >= 1 && in->first_seq <= in->gone + 1 &&
                 in->gone <= in->last_gone && in->last_gone < RANK_MAX &&
                 in->changes >= 0 && in->changes < INT64_MAX;
    return sound ? BELAY_OK : unsound(t, in);
}

belay_rc inbox_get_both(struct txn *t, struct inbox *in)
{
    struct value key = value_text(in->session);
    const struct row_want wants[] = { { &row_inbox, &key },
                                      { &row_inbox_front, &key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK && (rows[0] == NULL) != (rows[1] == NULL))
        rc = txn_fail(t, BELAY_CORRUPT, "inbox",
                      "inbox %.*s: one of its rows is missing", (int)in->session.len,
                      (const char *)in->session.ptr);
    if (rc == BELAY_OK)
        rc = inbox_get_front(t, in);
    if (rc == BELAY_OK)
        rc = inbox_get_back(t, in);
    return rc || in->last_gone <= in->last_seq ? rc : unsound(t, in);
}

belay_rc inbox_open(struct txn *t, struct inbox *out, struct bytes session)
{
    if (!inbox_names(out, session, txn_arena(t)))
        return err_no_memory(txn_error(t), "an inbox");
    return inbox_get_front(t, out);
}

/* --- writing --- */

static struct value state_of(const struct inbox *in)
{
    return in->deleted ? value_str(SESSION_DELETED) : value_null();
}

belay_rc inbox_make(struct txn *t, struct inbox *in)
{
    const struct value back[INBOX_COLUMNS] = {
        [INBOX_SESSION] = value_text(in->session),
        [INBOX_LAST_SEQ] = value_i64(in->last_seq),
        [INBOX_STATE] = state_of(in),
    };
    belay_rc rc = txn_insert(t, &row_inbox, back);

    return rc ? rc : inbox_put_front(t, in);
}

belay_rc inbox_put_back(struct txn *t, const struct inbox *in)
{
    struct value key = value_text(in->session);
    const struct change state = { INBOX_STATE, state_of(in) };
    const struct row *row;
    belay_rc rc = txn_put(t, &row_inbox, &key, &state, 1);

    if (rc == BELAY_OK)
        rc = txn_get(t, &row_inbox, &key, &row);
    if (rc || inbox_last_seq(row) == in->last_seq) /* the version has said it */
        return rc;
    const struct change count[] = {
        { INBOX_LAST_SEQ, value_i64(in->last_seq) },
        { INBOX_AT_VER, row->ver > 0 ? value_i64(row->ver) : value_null() },
    };
    return txn_put(t, &row_inbox, &key, count, COUNT_OF(count));
}

belay_rc inbox_put_front(struct txn *t, struct inbox *in)
{
    const struct value v[INBOX_FRONT_COLUMNS] = {
        [INBOX_FRONT_SESSION] = value_text(in->session),
        [INBOX_FRONT_FIRST_SEQ] = value_i64(in->first_seq),
        [INBOX_FRONT_GONE] = value_i64(in->gone),
        [INBOX_FRONT_LAST_GONE] = value_i64(in->last_gone),
        [INBOX_FRONT_CHANGES] = value_i64(++in->changes),
        [INBOX_FRONT_STATE] = state_of(in),
    };
    struct change changes[INBOX_FRONT_COLUMNS - 1];

    for (unsigned i = 1; i < INBOX_FRONT_COLUMNS; i++)
        changes[i - 1] = (struct change){ i, v[i] };
    if (in->exists)
        return txn_put(t, &row_inbox_front, v, changes, COUNT_OF(changes));
    in->exists = true;
    return txn_insert(t, &row_inbox_front, v);
}

belay_rc inbox_gone(struct txn *t, const struct inbox *in)
{
    belay_rc rc =
        txn_fail(t, BELAY_WRONG_STATE, "deleted", "session %.*s: it was deleted",
                 (int)in->session.len, (const char *)in->session.ptr);

    err_entity(txn_error(t), in->session);
    return rc;
}
