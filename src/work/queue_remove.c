/* Removing from an inbox: one that nobody works on, one whatever it is, all. */
#include "work/queue_rows.h"

/* Batches removed in one transaction. */
#define PURGE_PAGE 64

/* --- removing one --- */

struct removing {
    struct bytes session, which;
    const char *session_id;
    const struct belay_batch *removed;
};

/* The sequence that a batch id stands for; 0: none. */
static belay_rc seq_of_id(struct txn *t, const struct removing *r, int64_t *out)
{
    struct value key[] = { value_text(r->session), value_text(r->which) };
    const struct row_want wants[] = { { &row_batch_name, key },
                                      { &row_inbox_front, key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        *out = rows[0] ? row_i64(rows[0], BATCH_NAME_SEQ, 0) : 0;
    return rc;
}

/* Ends what takes a batch out of its inbox. */
static belay_rc remove_rows(struct txn *t, struct inbox *in, const struct row *row)
{
    belay_rc rc = batch_fetch_all(t, &row, 1);

    if (rc == BELAY_OK)
        rc = batch_delete(t, in, row, BELAY_WAKE_CANCELLED);
    if (rc == BELAY_OK)
        rc = inbox_put_front(t, in);
    return rc ? rc : txn_wake(t, in->topic);
}

static belay_rc cancel_body(struct txn *t, void *arg)
{
    struct removing *r = arg;
    const struct row *row, *payload;
    struct inbox in = { .exists = false };
    int64_t seq = 0, now_ms = 0;

    r->removed = NULL;
    belay_rc rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = seq_of_id(t, r, &seq);
    if (rc == BELAY_OK)
        rc = inbox_open(t, &in, r->session);
    if (rc || seq == 0 || in.deleted)
        return rc;
    struct batch_key key = batch_key(r->session, seq);
    rc = txn_get(t, &row_batch, key.v, &row);
    if (rc || !row)
        return rc;
    struct lease l = lease_of(row, BATCH_LEASE);
    if (lease_is_live(&l, now_ms))
        return BELAY_OK;
    struct belay_batch *batch = arena_alloc(txn_arena(t), sizeof(*batch));
    if (!batch)
        return err_no_memory(txn_error(t), "a batch");
    rc = batch_payloads(t, &row, 1, &payload);
    if (rc == BELAY_OK)
        rc = batch_decode(row, payload, r->session_id, txn_arena(t), batch,
                          txn_error(t));
    if (rc == BELAY_OK)
        rc = batch_unrank(t, &in, row);
    r->removed = batch;
    return rc ? rc : remove_rows(t, &in, row);
}

static belay_rc check_which(const char *session_id, const char *which,
                            struct belay_error *err)
{
    belay_rc rc = queue_check_session(session_id, err);

    if (rc || (which && bytes_is_id(bytes_str(which), SCHEMA_NAME_MAX)))
        return rc;
    return err_reason(err, BELAY_INVALID, "batch_id", "batch id: this is none");
}

belay_rc queue_cancel(struct space *sp, const char *session_id, const char *batch_id,
                      struct belay_arena *a, const struct belay_batch **out,
                      struct belay_error *err)
{
    struct removing r = { .session_id = session_id };
    struct bytes session;
    belay_rc rc = check_which(session_id, batch_id, err);
    if (rc)
        return rc;

    r.session = bytes_str(session_id);
    r.which = bytes_str(batch_id);
    if (!arena_copy(a, r.session, &session))
        return err_no_memory(err, "a batch");
    r.session_id = (const char *)session.ptr;
    rc = txn_run(sp, cancel_body, &r, NULL, a, err);
    if (rc == BELAY_OK)
        *out = r.removed;
    return rc;
}

/* --- dropping: nothing that is stored about the batch is trusted --- */

/* Takes a member out of an index if it stands there within the ranks. */
static belay_rc drop_entry(struct txn *t, struct bytes index, int64_t min, int64_t max,
                           struct bytes member, bool *found)
{
    struct scan_cursor cursor = { .index = index };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = min,
                         .max_rank = max,
                         .limit = 256 };
    struct hits hits;

    do {
        belay_rc rc = txn_scan(t, &scan, &hits);
        if (rc)
            return rc;
        for (size_t i = 0; i < hits.n; i++) {
            if (bytes_eq(hits.hit[i].member, member)) {
                *found = true;
                return txn_rank_remove(t, index, hits.hit[i].rank, member);
            }
        }
        if (hits.n > 0) {
            cursor.rank = hits.hit[hits.n - 1].rank;
            cursor.member = hits.hit[hits.n - 1].member;
            scan.after = &cursor;
        }
    } while (hits.n == scan.limit);
    return BELAY_OK;
}

/* Out of both indexes, wherever it stands there. */
static belay_rc drop_entries(struct txn *t, const struct inbox *in, int64_t seq,
                             const struct row *row, bool *found)
{
    int64_t due = row ? row_i64(row, BATCH_DUE_AT_MS, -1) : -1;
    char text[I64_TEXT_MAX];
    struct bytes member = bytes_of(text, bytes_put_i64(text, seq));
    belay_rc rc = drop_entry(t, in->ready, seq, seq, member, found);

    if (rc == BELAY_OK && due >= 0)
        rc = drop_entry(t, in->due, due, due, member, found);
    if (rc == BELAY_OK && !*found)
        rc = drop_entry(t, in->due, -RANK_MAX, RANK_MAX, member, found);
    return rc;
}

static belay_rc none_such(struct txn *t, const struct removing *r)
{
    belay_rc rc = txn_fail(t, BELAY_NOT_FOUND, "", "batch: there is none %.*s",
                           (int)r->which.len, (const char *)r->which.ptr);

    err_entity(txn_error(t), r->which);
    return rc;
}

static belay_rc drop_body(struct txn *t, void *arg)
{
    struct removing *r = arg;
    const struct row *row = NULL;
    struct inbox in = { .exists = false };
    int64_t seq = 0;
    bool found = false;
    belay_rc rc = BELAY_OK;

    if (!bytes_to_i64(r->which, &seq))
        rc = seq_of_id(t, r, &seq);
    if (rc == BELAY_OK && seq <= 0)
        rc = none_such(t, r);
    if (rc == BELAY_OK)
        rc = inbox_open(t, &in, r->session);
    struct batch_key key = batch_key(r->session, seq);
    if (rc == BELAY_OK)
        rc = txn_get(t, &row_batch, key.v, &row);
    if (rc == BELAY_OK)
        rc = drop_entries(t, &in, seq, row, &found);
    if (rc)
        return rc;
    if (row)
        return remove_rows(t, &in, row);
    if (!found || !in.exists)
        return none_such(t, r);
    return inbox_put_front(t,
                           &in); /* an entry without its batch was in everybody's way */
}

belay_rc queue_drop(struct space *sp, const char *session_id, const char *which,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct removing r = { .session_id = session_id };
    belay_rc rc = check_which(session_id, which, err);
    if (rc)
        return rc;

    r.session = bytes_str(session_id);
    r.which = bytes_str(which);
    return txn_run(sp, drop_body, &r, NULL, &arena, err);
}

/* --- removing all --- */

belay_rc queue_close(struct txn *t, struct bytes session)
{
    struct inbox in = { .exists = false };

    if (!inbox_names(&in, session, txn_arena(t)))
        return err_no_memory(txn_error(t), "an inbox");
    belay_rc rc = inbox_get_both(t, &in);
    if (rc || in.deleted)
        return rc;
    in.deleted = true;
    bool there = in.exists;
    rc = there ? inbox_put_back(t, &in) : inbox_make(t, &in);
    if (rc == BELAY_OK && there)
        rc = inbox_put_front(t, &in);
    return rc ? rc : txn_wake(t, in.topic); /* who waits learns of it */
}

struct purging {
    struct bytes session;
    size_t limit;
    size_t removed;
    bool left;
};

static belay_rc purge_hits(struct txn *t, struct purging *p, struct inbox *in,
                           const struct hits *hits)
{
    const struct row **rows =
        arena_zalloc(txn_arena(t), hits->n, sizeof(const struct row *));
    size_t n = 0;

    if (!rows)
        return err_no_memory(txn_error(t), "batches");
    for (size_t i = 0; i < hits->n && i < p->limit; i++) {
        if (hits->hit[i].rows[0])
            rows[n++] = hits->hit[i].rows[0];
    }
    belay_rc rc = batch_fetch_all(t, rows, n);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = batch_delete(t, in, rows[i], BELAY_WAKE_TARGET_GONE);
    for (; p->removed < p->limit && p->removed < hits->n && rc == BELAY_OK;
         p->removed++)
        rc = txn_rank_remove(t, hits->hit[p->removed].index, hits->hit[p->removed].rank,
                             hits->hit[p->removed].member);
    return rc ? rc : inbox_put_front(t, in);
}

static belay_rc purge_body(struct txn *t, void *arg)
{
    struct purging *p = arg;
    struct value session = value_text(p->session);
    const struct fetch fetch = { &row_batch, &session };
    struct hits hits;
    struct inbox in = { .exists = false };

    p->removed = 0;
    p->left = false;
    belay_rc rc = inbox_open(t, &in, p->session);
    if (rc || !in.exists)
        return rc;
    if (!in.deleted)
        return txn_fail(t, BELAY_WRONG_STATE, "active",
                        "session %.*s: its inbox is not closed", (int)p->session.len,
                        (const char *)p->session.ptr);
    const struct bytes indexes[] = { in.ready, in.due };
    const struct scan scan = { .indexes = indexes,
                               .n_indexes = COUNT_OF(indexes),
                               .min_rank = -RANK_MAX,
                               .max_rank = RANK_MAX,
                               .limit = p->limit + 1,
                               .fetch = &fetch,
                               .n_fetch = 1 };
    rc = txn_scan(t, &scan, &hits);
    if (rc)
        return rc;
    p->left = hits.n > p->limit;
    return hits.n > 0 && p->limit > 0 ? purge_hits(t, p, &in, &hits) : BELAY_OK;
}

belay_rc queue_purge(struct space *sp, struct bytes session, size_t limit,
                     bool *out_left, struct belay_error *err)
{
    struct purging p = { .session = session };
    belay_rc rc;

    do {
        CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
        p.limit = limit < PURGE_PAGE ? limit : PURGE_PAGE;
        rc = txn_run(sp, purge_body, &p, NULL, &arena, err);
        limit -= p.removed;
    } while (rc == BELAY_OK && p.left && limit > 0);
    if (rc == BELAY_OK)
        *out_left = p.left;
    return rc;
}
