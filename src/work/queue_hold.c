/* Holding batches: granting them, proving it, renewing, giving back, completing. */
#include <stdio.h>

#include "work/epoch.h"
#include "work/queue_rows.h"

/* --- granting --- */

/* A claim while it is granted. */
struct granting {
    char claim_id[CLAIM_ID_MAX];
    char token[SHA256_HEX_LEN + 1];
    int64_t epoch, fence; /* fence: of the head */
};

static belay_rc begin_grant(struct txn *t, const struct queue_grant *g,
                            struct granting *out)
{
    struct lease head = lease_of(g->rows[0], BATCH_LEASE);
    belay_rc rc = epoch_in(t, &out->epoch);

    if (rc == BELAY_OK)
        rc = lease_next_fence(t, head.fence, 0, out->epoch, &out->fence);
    if (rc)
        return rc;
    claim_id_make(batch_seq(g->rows[0]), out->fence, out->claim_id);
    return claim_token_make(g->in->session, g->holder.owner, out->claim_id, g->now_ms,
                            out->token, txn_arena(t), txn_error(t));
}

/* Q5 */
static belay_rc grant_batch(struct txn *t, const struct queue_grant *g,
                            const struct granting *claim, const struct row *row)
{
    struct change changes[LEASE_COLUMNS + 2] = {
        { BATCH_CLAIM_ID, value_str(claim->claim_id) },
        { BATCH_CLAIM_SIZE, value_i64((int64_t)g->n) },
    };
    struct lease_grant grant = {
        .holder = g->holder,
        .token = bytes_str(claim->token),
        .id = g->lease_id,
        .claimed_at_ms = g->now_ms,
        .expires_at_ms = g->expires_at_ms,
    };
    struct lease last = lease_of(row, BATCH_LEASE);
    belay_rc rc =
        lease_next_fence(t, last.fence, 0, claim->epoch, &grant.fence); /* L2 */
    if (rc)
        return rc;

    size_t n = 2 + lease_grant_changes(&grant, BATCH_LEASE, changes + 2);
    return batch_place(t, g->in, row, g->expires_at_ms, changes, n);
}

/* The batches as they are now. */
static belay_rc decode_batches(struct txn *t, const struct queue_grant *g,
                               const char *session_id, struct belay_batch *out)
{
    struct belay_arena *a = txn_arena(t);
    const struct row **payloads = arena_zalloc(a, g->n, sizeof(*payloads));

    if (!payloads)
        return err_no_memory(txn_error(t), "a claim");
    belay_rc rc = batch_payloads(t, g->rows, g->n, payloads);
    for (size_t i = 0; i < g->n && rc == BELAY_OK; i++) {
        struct batch_key key = batch_key(g->in->session, batch_seq(g->rows[i]));
        const struct row *row;
        rc = txn_get(t, &row_batch, key.v, &row);
        if (rc == BELAY_OK)
            rc = batch_decode(row, payloads[i], session_id, a, &out[i], txn_error(t));
    }
    return rc;
}

/* What the claimer is told; it is made before the commit, so that a claim nobody hears
 * of for want of memory is none. */
static belay_rc make_claim(struct txn *t, const struct queue_grant *g,
                           const struct granting *of, const struct belay_claim **out)
{
    struct belay_arena *a = txn_arena(t);
    struct belay_claim *claim = arena_zalloc(a, 1, sizeof(*claim));
    struct belay_batch *batches = arena_zalloc(a, g->n, sizeof(*batches));
    struct bytes session, id, owner, token, lease_id;

    if (!claim || !batches || !arena_copy(a, g->in->session, &session) ||
        !arena_copy(a, bytes_str(of->claim_id), &id) ||
        !arena_copy(a, g->holder.owner, &owner) ||
        !arena_copy(a, bytes_str(of->token), &token) ||
        !arena_copy(a, g->lease_id, &lease_id))
        return err_no_memory(txn_error(t), "a claim");
    *claim = (struct belay_claim){
        .session_id = (const char *)session.ptr,
        .claim_id = (const char *)id.ptr,
        .owner_id = (const char *)owner.ptr,
        .lease_token = (const char *)token.ptr,
        .lease_id = (const char *)lease_id.ptr,
        .fence = of->fence,
        .claimed_at_ms = g->now_ms,
        .expires_at_ms = g->expires_at_ms,
        .batches = batches,
        .n_batches = g->n,
    };
    *out = claim;
    return decode_batches(t, g, claim->session_id, batches);
}

belay_rc queue_grant(struct txn *t, const struct queue_grant *g,
                     const struct belay_claim **out)
{
    struct granting claim;
    belay_rc rc = begin_grant(t, g, &claim);

    for (size_t i = 0; i < g->n && rc == BELAY_OK; i++)
        rc = grant_batch(t, g, &claim, g->rows[i]);
    return rc ? rc : make_claim(t, g, &claim, out);
}

/* --- proving --- */

static struct bytes text_of(const char *text)
{
    return text ? bytes_str(text) : bytes_of(NULL, 0);
}

static belay_rc check_claim(const struct belay_claim *claim, struct belay_error *err)
{
    belay_rc rc = queue_check_session(claim->session_id, err);

    if (rc)
        return rc;
    if (claim->n_batches == 0 || claim->n_batches > BELAY_CLAIM_MAX)
        return err_reason(err, BELAY_INVALID, "claim",
                          "claim: it lists %zu batches, must be 1 to %d",
                          claim->n_batches, BELAY_CLAIM_MAX);
    for (size_t i = 0; i < claim->n_batches; i++) {
        if (claim->batches[i].enqueue_seq == 0 &&
            text_of(claim->batches[i].batch_id).len == 0)
            return err_reason(err, BELAY_INVALID, "claim",
                              "claim: batch %zu has neither a sequence nor an id", i);
    }
    return BELAY_OK;
}

/* What a batch of a claim is found by: as many rows as are known beforehand, with those
 * that removing it takes when `removing`. */
static size_t batch_wants(struct bytes session, const struct belay_batch *b,
                          bool removing, struct row_want *out, struct belay_arena *a)
{
    struct value(*key)[2] = arena_zalloc(a, 3, sizeof(*key));
    size_t n = 0;

    if (!key)
        return 0;
    key[0][0] = key[1][0] = key[2][0] = value_text(session);
    key[0][1] = value_i64(b->enqueue_seq);
    key[1][1] = value_text(text_of(b->batch_id));
    key[2][1] = value_text(text_of(b->source_key));
    if (b->enqueue_seq != 0)
        out[n++] = (struct row_want){ &row_batch, key[0] };
    if (key[1][1].b.len > 0 && (removing || b->enqueue_seq == 0))
        out[n++] = (struct row_want){ &row_batch_name, key[1] };
    if (key[2][1].b.len > 0 && removing)
        out[n++] = (struct row_want){ &row_batch_source, key[2] };
    return n;
}

static size_t claim_wants(const struct belay_claim *claim, bool removing,
                          struct row_want *out, struct belay_arena *a)
{
    struct value *session = arena_alloc(a, sizeof(*session));
    size_t n = 0;

    if (!session)
        return 0;
    *session = value_text(text_of(claim->session_id));
    out[n++] = (struct row_want){ .type = &row_epoch };
    out[n++] = (struct row_want){ &row_inbox_front, session };
    for (size_t i = 0; i < claim->n_batches; i++) {
        size_t more = batch_wants(session->b, &claim->batches[i], removing, out + n, a);
        if (more == 0)
            return 0;
        n += more;
    }
    return n;
}

size_t queue_own_wants(const struct belay_claim *claim, struct row_want *out,
                       struct belay_arena *a)
{
    return claim_wants(claim, true, out, a);
}

static belay_rc fetch_claim(struct txn *t, const struct belay_claim *claim)
{
    struct belay_arena *a = txn_arena(t);
    size_t most = QUEUE_WANTS(claim);
    struct row_want *wants = arena_zalloc(a, most, sizeof(*wants));
    const struct row **rows = arena_zalloc(a, most, sizeof(*rows));
    size_t n = wants ? claim_wants(claim, false, wants, a) : 0;

    if (n == 0 || !rows)
        return err_no_memory(txn_error(t), "a claim");
    return txn_get_many(t, wants, n, rows);
}

/* The row of a batch that a claim lists; *out NULL: there is none. */
static belay_rc find_batch(struct txn *t, struct bytes session,
                           const struct belay_batch *b, const struct row **out)
{
    int64_t seq = b->enqueue_seq;
    belay_rc rc = BELAY_OK;

    *out = NULL;
    if (seq == 0) {
        struct value key[] = { value_text(session), value_text(text_of(b->batch_id)) };
        const struct row *name;
        rc = txn_get(t, &row_batch_name, key, &name);
        if (rc || !name)
            return rc;
        seq = row_i64(name, BATCH_NAME_SEQ, 0);
    }
    struct batch_key key = batch_key(session, seq);
    return txn_get(t, &row_batch, key.v, out);
}

/* Why the claim does not hold this batch, or NULL. */
static const char *lost_batch(const struct belay_claim *claim,
                              const struct belay_batch *b, const struct row *row,
                              int64_t epoch)
{
    struct lease_proof proof = { text_of(claim->lease_token),
                                 text_of(claim->lease_id) };

    if (!row ||
        (b->batch_id && !bytes_eq(row_bytes(row, BATCH_ID), bytes_str(b->batch_id))))
        return "terminal";
    struct lease l = lease_of(row, BATCH_LEASE);
    const char *reason = lease_lost_reason(&l, &proof, epoch);
    bool same = bytes_eq(row_bytes(row, BATCH_CLAIM_ID), text_of(claim->claim_id));
    return reason || same ? reason : "superseded";
}

static belay_rc lost(struct txn *t, const struct belay_claim *claim, const char *reason)
{
    char what[CLAIM_ID_MAX + 8];

    (void)snprintf(what, sizeof(what), "claim %.*s", CLAIM_ID_MAX,
                   claim->claim_id ? claim->claim_id : "");
    belay_rc rc = lease_lost(t, reason, what);
    err_entity(txn_error(t), text_of(claim->claim_id));
    return rc;
}

static bool is_listed_before(const struct row *const *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (batch_seq(rows[i]) == batch_seq(rows[n]))
            return true;
    }
    return false;
}

static belay_rc own_batches(struct txn *t, struct bytes session,
                            const struct belay_claim *claim, const struct row **rows)
{
    int64_t epoch = 0;
    belay_rc rc = epoch_in(t, &epoch);

    for (size_t i = 0; i < claim->n_batches && rc == BELAY_OK; i++) {
        rc = find_batch(t, session, &claim->batches[i], &rows[i]);
        if (rc)
            return rc;
        const char *reason = lost_batch(claim, &claim->batches[i], rows[i], epoch);
        if (reason)
            return lost(t, claim, reason);
        if (is_listed_before(rows, i))
            return txn_fail(t, BELAY_INVALID, "duplicate_batch",
                            "claim: it lists batch %lld twice",
                            (long long)batch_seq(rows[i]));
    }
    /* Q5: the whole of the claim, or it is another one. */
    for (size_t i = 0; i < claim->n_batches && rc == BELAY_OK; i++) {
        if (row_i64(rows[i], BATCH_CLAIM_SIZE, 0) != (int64_t)claim->n_batches)
            rc = lost(t, claim, "incomplete");
    }
    return rc;
}

belay_rc queue_own(struct txn *t, struct bytes session, const struct belay_claim *claim,
                   struct queue_owned *out)
{
    belay_rc rc = check_claim(claim, txn_error(t));
    if (rc)
        return rc;
    if (!bytes_eq(session, bytes_str(claim->session_id)))
        return lost(t, claim, "superseded");
    out->n = claim->n_batches;
    out->batches = arena_zalloc(txn_arena(t), out->n, sizeof(*out->batches));
    if (!out->batches)
        return err_no_memory(txn_error(t), "a claim");
    rc = fetch_claim(t, claim);
    return rc ? rc : own_batches(t, session, claim, out->batches);
}

belay_rc queue_remove(struct txn *t, struct bytes session,
                      const struct queue_owned *owned)
{
    struct inbox in = { .exists = false };
    bool was_ready = false;
    belay_rc rc = batch_fetch_all(t, owned->batches, owned->n);

    if (rc == BELAY_OK)
        rc = inbox_open(t, &in, session);
    for (size_t i = 0; i < owned->n && rc == BELAY_OK; i++) {
        was_ready |= batch_is_ready(owned->batches[i]);
        rc = batch_unrank(t, &in, owned->batches[i]);
        if (rc == BELAY_OK)
            rc = batch_delete(t, &in, owned->batches[i], BELAY_WAKE_CONSUMED);
    }
    if (rc == BELAY_OK)
        rc = inbox_put_front(t, &in);
    /* One that was past due may have been in somebody's way. */
    return rc || !was_ready ? rc : txn_wake(t, in.topic);
}

/* --- renewing --- */

struct holding {
    const struct belay_claim *claim;
    int64_t lease_ms;
    int64_t expires_at_ms; /* the earliest */
    size_t released;
};

static belay_rc renew_batch(struct txn *t, const struct inbox *in,
                            const struct row *row, struct holding *h, int64_t now_ms)
{
    struct lease l = lease_of(row, BATCH_LEASE);
    int64_t expires_at_ms = l.expires_at_ms;
    const char *reason =
        lease_renew(&l, LEASE_RENEW_LATE, now_ms, h->lease_ms, &expires_at_ms);
    struct change change = { BATCH_LEASE + LEASE_EXPIRES_AT_MS,
                             value_i64(expires_at_ms) };

    if (reason)
        return lost(t, h->claim, reason);
    if (expires_at_ms < h->expires_at_ms)
        h->expires_at_ms = expires_at_ms;
    return batch_place(t, in, row, expires_at_ms, &change, 1);
}

static belay_rc renew_body(struct txn *t, void *arg)
{
    struct holding *h = arg;
    struct bytes session = bytes_str(h->claim->session_id);
    struct queue_owned owned = { .n = 0 };
    struct inbox in = { .exists = false };
    int64_t now_ms = 0;

    h->expires_at_ms = INT64_MAX;
    belay_rc rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = queue_own(t, session, h->claim, &owned);
    if (rc == BELAY_OK)
        rc = inbox_open(t, &in, session);
    for (size_t i = 0; i < owned.n && rc == BELAY_OK; i++) /* L6: all or none */
        rc = renew_batch(t, &in, owned.batches[i], h, now_ms);
    return rc ? rc : inbox_put_front(t, &in);
}

belay_rc queue_renew(struct space *sp, const struct belay_claim *claim,
                     int64_t lease_ms, int64_t *out_expires_at_ms,
                     struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct holding h = { .claim = claim, .lease_ms = lease_ms };
    belay_rc rc = check_claim(claim, err);

    if (rc == BELAY_OK)
        rc = lease_check_ttl(lease_ms, err);
    if (rc == BELAY_OK)
        rc = txn_run(sp, renew_body, &h, NULL, &arena, err);
    if (rc == BELAY_OK && out_expires_at_ms)
        *out_expires_at_ms = h.expires_at_ms;
    return rc;
}

/* --- giving back --- */

static belay_rc release_batch(struct txn *t, const struct inbox *in,
                              const struct row *row, int64_t now_ms)
{
    struct change changes[LEASE_COLUMNS + 2] = { { BATCH_CLAIM_ID, value_null() },
                                                 { BATCH_CLAIM_SIZE, value_null() } };
    int64_t available_at_ms = row_i64(row, BATCH_AVAILABLE_AT_MS, 0);
    size_t n = 2 + lease_release_changes(BATCH_LEASE, changes + 2);

    return batch_place(t, in, row,
                       available_at_ms > now_ms ? available_at_ms : BATCH_READY,
                       changes, n);
}

/* L4: what the proof does not own stays as it is. */
static belay_rc abandon_body(struct txn *t, void *arg)
{
    struct holding *h = arg;
    const struct belay_claim *claim = h->claim;
    struct bytes session = bytes_str(claim->session_id);
    const struct row *row;
    struct inbox in = { .exists = false };
    int64_t now_ms = 0, epoch = 0;

    h->released = 0;
    belay_rc rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = fetch_claim(t, claim);
    if (rc == BELAY_OK)
        rc = epoch_in(t, &epoch);
    if (rc == BELAY_OK)
        rc = inbox_open(t, &in, session);
    for (size_t i = 0; i < claim->n_batches && rc == BELAY_OK; i++) {
        rc = find_batch(t, session, &claim->batches[i], &row);
        if (rc || lost_batch(claim, &claim->batches[i], row, epoch))
            continue;
        rc = release_batch(t, &in, row, now_ms);
        h->released++;
    }
    if (rc == BELAY_OK && h->released > 0)
        rc = inbox_put_front(t, &in);
    return rc || h->released == 0 ? rc : txn_wake(t, in.topic);
}

belay_rc queue_abandon(struct space *sp, const struct belay_claim *claim,
                       size_t *out_released, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct holding h = { .claim = claim };
    belay_rc rc = check_claim(claim, err);

    if (rc == BELAY_OK)
        rc = txn_run(sp, abandon_body, &h, NULL, &arena, err);
    if (rc == BELAY_OK && out_released)
        *out_released = h.released;
    return rc;
}
