/* Claims: what is due is moved to ready, then the group at the front of ready is
 * granted. */
#include "work/queue_rows.h"

/* Batches looked at in one go: few claims take more than the first. */
#define FIRST_PAGE 8
#define NEXT_PAGE 64
/* Batches that are read along for the claims that follow, by one who is alone with the inbox. */
#define AHEAD 15
/* Batches moved to ready in one transaction. */
#define PROMOTE_PAGE 256
/* A waiter looks again after this, woken or not. */
#define RELOOK_US ((int64_t)5 * 1000000)

struct claiming {
    /* What is asked. */
    const struct belay_claim_request *request;
    struct lease_holder holder;
    struct host *host;
    size_t max;
    char lease_id[LEASE_ID_HEX + 1];
    int64_t from; /* where the first batch was when it was last looked at: a hint */

    /* Of one run of the body. */
    struct inbox in;
    int64_t now_ms;
    const struct row **rows; /* what the rules give, so far */
    size_t n;
    struct claim_candidate head;
    bool blocked; /* there is a head, and the boundary does not admit it */

    /* What came of it. */
    bool
        again; /* more was due than one transaction moves, or something has just entered */
    struct belay_claimed out;
};

static enum belay_boundary boundary_of(const struct claiming *c)
{
    return (enum belay_boundary)c->request->boundary;
}

/* --- what is there --- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static belay_rc scan_ready(struct txn *t, const struct claiming *c,
                           const struct hit *after, size_t limit, struct hits *out);

/* Who takes as many as there are, up to some number, depends on nothing having entered behind
 * them (Q1); who takes the first one does not, if there is one. */
static bool sees_end(const struct claiming *c)
{
    return c->max > 1;
}

/* Everything that a claim usually needs, in one round trip.  What was removed before the first
 * batch may still be in a store's way, so it begins there, where that is known. */
static belay_rc load(struct txn *t, struct claiming *c, struct hits *due,
                     struct hits *ready)
{
    struct value session = value_text(c->in.session);
    const struct fetch fetch = { &row_batch, &session };
    const struct row_want wants[] = { { &row_inbox_front, &session },
                                      { &row_epoch, NULL },
                                      { &row_inbox, &session } };
    const struct row *rows[COUNT_OF(wants)];
    const struct row *known;
    struct hits hits[2];
    belay_rc rc = txn_now(t, &c->now_ms);
    if (rc == BELAY_OK)
        rc = txn_hint(t, &row_inbox_front, &session, &known);
    if (rc)
        return rc;
    if (known && c->from == 0)
        c->from = row_i64(known, INBOX_FRONT_FIRST_SEQ, 0);

    /* Q1: whoever enters or leaves one of the indexes changes the front, but for what enters
     * behind all that is ready. */
    const struct scan scans[] = { { .indexes = &c->in.due,
                                    .n_indexes = 1,
                                    .max_rank = c->now_ms,
                                    .limit = PROMOTE_PAGE,
                                    .fetch = &fetch,
                                    .n_fetch = 1,
                                    .cover = &wants[0] },
                                  { .indexes = &c->in.ready,
                                    .n_indexes = 1,
                                    .min_rank = c->from,
                                    .max_rank = RANK_MAX,
                                    .limit = least(c->max, FIRST_PAGE),
                                    .fetch = &fetch,
                                    .n_fetch = 1,
                                    .cover = &wants[0],
                                    .grows = true,
                                    .ahead = AHEAD } };
    size_t n_wants = COUNT_OF(wants) - (sees_end(c) ? 0 : 1);
    rc = txn_load(t, wants, n_wants, rows, scans, COUNT_OF(scans), hits);
    if (rc)
        return rc;
    *due = hits[0];
    *ready = hits[1];
    rc = inbox_get_front(t, &c->in);
    bool missed = rc == BELAY_OK && c->in.first_seq < c->from; /* an inbox made anew */
    if (rc == BELAY_OK)
        c->from = c->in.first_seq;
    return missed ? scan_ready(t, c, NULL, least(c->max, FIRST_PAGE), ready) : rc;
}

/* Ready batches behind a place; from the beginning when `after` is NULL. */
static belay_rc scan_ready(struct txn *t, const struct claiming *c,
                           const struct hit *after, size_t limit, struct hits *out)
{
    struct value session = value_text(c->in.session);
    const struct fetch fetch = { &row_batch, &session };
    struct scan_cursor cursor = { .index = c->in.ready };
    struct scan scan = { .indexes = &c->in.ready,
                         .n_indexes = 1,
                         .min_rank = c->in.first_seq,
                         .max_rank = RANK_MAX,
                         .limit = limit,
                         .fetch = &fetch,
                         .n_fetch = 1 };

    if (after) {
        cursor.rank = after->rank;
        cursor.member = after->member;
        scan.after = &cursor;
    }
    return txn_scan(t, &scan, out);
}

/* Whoever completes these batches asks for the rows beside them. */
static belay_rc foresee(struct txn *t, const struct hits *ready)
{
    size_t n = ready->n + ready->ahead, some = 0;
    const struct row **rows = arena_zalloc(txn_arena(t), n, sizeof(const struct row *));

    if (!rows)
        return err_no_memory(txn_error(t), "a claim");
    for (size_t i = 0; i < n; i++) {
        if (ready->hit[i].rows[0])
            rows[some++] = ready->hit[i].rows[0];
    }
    return batch_foresee(t, rows, some);
}

/* Q2, Q3: what has become due can be claimed; who held it holds it until somebody does. */
static belay_rc promote(struct txn *t, struct claiming *c, const struct hits *due)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < due->n && rc == BELAY_OK; i++) {
        const struct row *row = due->hit[i].rows[0];
        if (!row)
            return batch_missing(due->hit[i].index, due->hit[i].member, txn_error(t));
        if (row_i64(row, BATCH_DUE_AT_MS, -1) != due->hit[i].rank)
            return batch_corrupt(row, BATCH_DUE_AT_MS, txn_error(t));
        rc = batch_place(t, &c->in, row, BATCH_READY, NULL, 0);
    }
    c->again = due->n == PROMOTE_PAGE;
    return rc ? rc : inbox_put_front(t, &c->in);
}

/* What the dead hold, in one transaction at most; the next claim finds the rest. */
#define DEAD_PAGE 64

/* C5, Q3: evidence that a holder is dead makes its batches ready, as their time does, and
 * no more: should it be wrong, the holder holds until somebody claims them. */
static belay_rc promote_dead(struct txn *t, struct claiming *c, bool *out_moved)
{
    struct value session = value_text(c->in.session);
    const struct fetch fetch = { &row_batch, &session };
    const struct scan scan = { .indexes = &c->in.due,
                               .n_indexes = 1,
                               .min_rank = c->now_ms,
                               .max_rank = RANK_MAX,
                               .limit = DEAD_PAGE,
                               .fetch = &fetch,
                               .n_fetch = 1 };
    struct hits held;
    belay_rc rc = txn_scan(t, &scan, &held);

    *out_moved = false;
    for (size_t i = 0; i < held.n && rc == BELAY_OK; i++) {
        const struct row *row = held.hit[i].rows[0];
        if (!row)
            return batch_missing(held.hit[i].index, held.hit[i].member, txn_error(t));
        struct lease l = lease_of(row, BATCH_LEASE);
        struct lease_holder who = lease_holder_in(row, BATCH_LEASE);
        if (!lease_is_granted(&l) ||
            !lease_may_be_taken(&l, c->now_ms, host_proves_dead(c->host, &who)))
            continue;
        rc = batch_place(t, &c->in, row, BATCH_READY, NULL, 0);
        *out_moved = true;
    }
    return rc || !*out_moved ? rc : inbox_put_front(t, &c->in);
}

/* --- what the rules give --- */

/* Whether the claim takes one more batch.  A batch that cannot belong to it, because
 * its head stands alone, is not even read. */
static belay_rc consider(struct txn *t, struct claiming *c, const struct hit *hit,
                         bool *taken)
{
    struct claim_candidate pair[2] = { c->head, c->head };
    const struct row *row = hit->rows[0];

    *taken = false;
    if (c->n > 0 && claim_prefix(pair, 2, boundary_of(c), 2) < 2)
        return BELAY_OK;
    if (!row)
        return batch_missing(hit->index, hit->member, txn_error(t));
    belay_rc rc = batch_candidate(row, &pair[1], txn_error(t));
    if (rc)
        return rc;
    if (!batch_is_ready(row))
        return batch_corrupt(row, BATCH_DUE_AT_MS, txn_error(t));
    if (c->n == 0) {
        c->head = pair[1];
        *taken = claim_prefix(&c->head, 1, boundary_of(c), c->max) == 1;
        c->blocked = !*taken;
    } else {
        *taken = claim_prefix(pair, 2, boundary_of(c), 2) == 2;
    }
    if (*taken)
        c->rows[c->n++] = row;
    return BELAY_OK;
}

static belay_rc take_prefix(struct txn *t, struct claiming *c, struct hits page)
{
    size_t limit = least(c->max, FIRST_PAGE);

    c->rows = arena_zalloc(txn_arena(t), c->max, sizeof(*c->rows));
    if (!c->rows)
        return err_no_memory(txn_error(t), "a claim");
    for (;;) {
        for (size_t i = 0; i < page.n && c->n < c->max; i++) {
            bool taken = false;
            belay_rc rc = consider(t, c, &page.hit[i], &taken);
            if (rc || !taken)
                return rc;
        }
        if (c->n == c->max || page.n < limit)
            return BELAY_OK;
        limit = least(c->max - c->n, NEXT_PAGE);
        struct hit last = page.hit[page.n - 1];
        belay_rc rc = scan_ready(t, c, &last, limit, &page);
        if (rc)
            return rc;
    }
}

/* Whether they are the batches that were asked for by name, if any were. */
static bool is_asked_for(const struct claiming *c)
{
    const struct belay_claim_request *r = c->request;

    if (!r->batch_ids)
        return true;
    if (c->n != r->n_batch_ids)
        return false;
    for (size_t i = 0; i < c->n; i++) {
        if (!bytes_eq(row_bytes(c->rows[i], BATCH_ID), bytes_str(r->batch_ids[i])))
            return false;
    }
    return true;
}

/* --- granting, or not --- */

static belay_rc grant(struct txn *t, struct claiming *c)
{
    const struct queue_grant g = {
        .in = &c->in,
        .rows = c->rows,
        .n = c->n,
        .holder = c->holder,
        .lease_id = bytes_str(c->lease_id),
        .now_ms = c->now_ms,
        .expires_at_ms = lease_expiry(c->now_ms, c->request->lease_ms),
    };
    belay_rc rc = queue_grant(t, &g, &c->out.claim);

    if (rc == BELAY_OK)
        rc = inbox_put_front(t, &c->in);
    /* Such a head may have been in the way of somebody who waits within a turn. */
    if (rc == BELAY_OK && c->head.delivery == BELAY_AFTER_CURRENT_TURN_COMMIT)
        rc = txn_wake(t, c->in.topic);
    c->out.why = BELAY_CLAIMED;
    return rc;
}

/* Why nothing is claimed, and when that changes by itself.  That nothing is there is said of a
 * back that still stands. */
static belay_rc explain(struct txn *t, struct claiming *c)
{
    struct value session = value_text(c->in.session);
    const struct fetch fetch = { &row_batch, &session };
    const struct row_want back = { &row_inbox, &session };
    const struct scan scans[] = { { .indexes = &c->in.due,
                                    .n_indexes = 1,
                                    .max_rank = RANK_MAX,
                                    .limit = 1,
                                    .fetch = &fetch,
                                    .n_fetch = 1 },
                                  { .indexes = &c->in.ready,
                                    .n_indexes = 1,
                                    .min_rank = c->in.first_seq,
                                    .max_rank = RANK_MAX,
                                    .limit = 1 } };
    bool bare = c->n == 0 && !c->blocked;
    const struct row *row;
    struct hits next[2] = { { .n = 0 } };
    belay_rc rc = txn_load(t, &back, bare ? 1 : 0, &row, scans, bare ? 2 : 1, next);
    if (rc)
        return rc;
    if (next[0].n > 0 && !next[0].hit[0].rows[0])
        return batch_missing(next[0].hit[0].index, next[0].hit[0].member, txn_error(t));
    c->again = next[1].n > 0; /* it has entered since */

    c->out.why = BELAY_NO_EMPTY;
    if (next[0].n > 0) {
        struct lease l = lease_of(next[0].hit[0].rows[0], BATCH_LEASE);
        bool held = lease_is_live(&l, c->now_ms);
        c->out.why = held ? BELAY_NO_HEAD_HELD : BELAY_NO_NOT_YET_AVAILABLE;
        c->out.next_at_ms = next[0].hit[0].rank;
    }
    if (c->n > 0)
        c->out.why = BELAY_NO_OTHER_BATCHES;
    if (c->blocked)
        c->out.why = BELAY_NO_BOUNDARY_BLOCKED;
    return BELAY_OK;
}

/* Nothing is ready: whoever holds something may be dead. */
static belay_rc take_from_dead(struct txn *t, struct claiming *c)
{
    struct hits ready;
    bool moved = false;
    belay_rc rc = promote_dead(t, c, &moved);

    if (rc || !moved)
        return rc;
    rc = scan_ready(t, c, NULL, least(c->max, FIRST_PAGE), &ready);
    return rc ? rc : take_prefix(t, c, ready);
}

static belay_rc claim_body(struct txn *t, void *arg)
{
    struct claiming *c = arg;
    struct hits due, ready;

    c->n = 0;
    c->blocked = c->again = false;
    c->out =
        (struct belay_claimed){ .why = BELAY_NO_EMPTY, .next_at_ms = BELAY_TIME_NONE };
    belay_rc rc = load(t, c, &due, &ready);
    if (rc || !c->in.exists)
        return rc;
    if (c->in.deleted)
        return inbox_gone(t, &c->in);
    if (due.n > 0)
        rc = promote(t, c, &due);
    if (rc || c->again)
        return rc;
    if (due.n > 0)
        rc = scan_ready(t, c, NULL, least(c->max, FIRST_PAGE), &ready);
    if (rc == BELAY_OK)
        rc = take_prefix(t, c, ready);
    if (rc == BELAY_OK && c->n == 0 && !c->blocked && c->host)
        rc = take_from_dead(t, c);
    if (rc)
        return rc;
    if (c->n == 0 || !is_asked_for(c))
        return explain(t, c);
    if (ready.ahead > 0)
        rc = foresee(t, &ready);
    return rc ? rc : grant(t, c);
}

/* --- waiting --- */

/* L12: a claim is decided when nothing is due any more, however many transactions that
 * takes. */
static belay_rc look(struct space *sp, struct claiming *c, struct belay_arena *a,
                     struct belay_error *err)
{
    const struct txn_options options = { .cancel = c->request->cancel };
    belay_rc rc;

    do {
        rc = txn_run(sp, claim_body, c, &options, a, err);
    } while (rc == BELAY_OK && c->again);
    return rc;
}

/* Nothing is ready, and something is held, perhaps behind what comes before the end of that
 * lease: who is dead is known to those who have joined. */
static belay_rc look_here(struct space *sp, struct claiming *c, struct belay_arena *a,
                          struct belay_error *err)
{
    struct arena_mark mark = arena_mark(a);
    belay_rc rc = look(sp, c, a, err);

    bool is_bare = c->n == 0 && !c->blocked && c->out.next_at_ms != BELAY_TIME_NONE;
    if (rc || !is_bare || !c->host ||
        atomic_load_explicit(&c->host->is_joined, memory_order_acquire) ||
        !host_join(c->host))
        return rc;
    arena_rewind(a, mark);
    return look(sp, c, a, err);
}

/* ms from now_us, in microseconds. */
static int64_t later_us(int64_t now_us, int64_t ms)
{
    int64_t us;

    if (__builtin_mul_overflow(ms, 1000, &us) ||
        __builtin_add_overflow(now_us, us, &us))
        return DEADLINE_NONE;
    return us;
}

/* Until something happens, or its time has come, or the deadline has. */
static belay_rc wait_for_change(struct space *sp, const struct claiming *c,
                                struct listener *l, int64_t deadline_us,
                                struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(sp));
    struct belay_error why = { .code = 0 };
    int64_t now_us = clock->mono_us(clock->arg), now_ms = 0, until = now_us + RELOOK_US;
    belay_rc rc = BELAY_OK;

    if (c->out.next_at_ms != BELAY_TIME_NONE) {
        rc = space_now(sp, &now_ms, err);
        int64_t due = later_us(now_us, c->out.next_at_ms - now_ms);
        until = due < until ? due : until;
    }
    if (rc)
        return rc;
    rc = listener_wait(l, until < deadline_us ? until : deadline_us, &why);
    if (rc == BELAY_TIMEOUT)
        return BELAY_OK;
    if (rc && err)
        *err = why;
    return rc;
}

static belay_rc claim_waiting(struct space *sp, struct claiming *c,
                              struct belay_arena *a, struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(sp));
    int64_t deadline_us = later_us(clock->mono_us(clock->arg), c->request->wait_ms);
    struct listener *l = NULL;
    (void)host_join(c->host); /* H3; a death wakes who waits */
    belay_rc rc = space_listen(sp, &c->in.topic, 1, c->request->cancel, a, &l, err);
    struct arena_mark mark = arena_mark(a);

    while (rc == BELAY_OK) {
        /* Taken before the look: one look is always made after the deadline. */
        bool last = clock->mono_us(clock->arg) >= deadline_us;
        rc = look(sp, c, a, err);
        if (rc || c->out.claim || last)
            break;
        arena_rewind(a, mark);
        rc = wait_for_change(sp, c, l, deadline_us, err);
    }
    listener_close(l);
    return rc;
}

static belay_rc check_request(const struct belay_claim_request *r, size_t max,
                              struct belay_error *err)
{
    belay_rc rc = queue_check_session(r->session_id, err);

    if (rc)
        return rc;
    if (!r->owner_id || !bytes_is_id(bytes_str(r->owner_id), OWNER_ID_MAX))
        return err_reason(err, BELAY_INVALID, "owner_id",
                          "owner id: must be 1 to %d bytes of UTF-8 without control "
                          "characters",
                          OWNER_ID_MAX);
    if (!boundary_name(r->boundary))
        return err_reason(err, BELAY_INVALID, "boundary",
                          "boundary: must be idle or active_turn_checkpoint");
    if (max > BELAY_CLAIM_MAX)
        return err_reason(err, BELAY_INVALID, "max",
                          "claim: %zu batches, at most %d are given at once", max,
                          BELAY_CLAIM_MAX);
    for (size_t i = 0; r->batch_ids && i < max; i++) {
        if (!r->batch_ids[i])
            return err_reason(err, BELAY_INVALID, "batch_ids", "batch id %zu: is none",
                              i);
    }
    if (r->wait_ms < 0)
        return err_reason(err, BELAY_INVALID, "wait",
                          "wait: %lld ms is less than nothing", (long long)r->wait_ms);
    return lease_check_ttl(r->lease_ms, err);
}

belay_rc queue_claim(const struct queue_site *site,
                     const struct belay_claim_request *request, struct belay_arena *a,
                     struct belay_claimed *out, struct belay_error *err)
{
    struct claiming c = { .request = request, .host = site->host };
    struct space *sp = site->space;

    c.max = request->batch_ids ? request->n_batch_ids : request->max;
    belay_rc rc = check_request(request, c.max, err);
    if (rc)
        return rc;
    c.out = (struct belay_claimed){ .why = BELAY_NO_ZERO_LIMIT,
                                    .next_at_ms = BELAY_TIME_NONE };
    if (c.max > 0) {
        c.holder =
            lease_holder_of(bytes_str(request->owner_id), site->principal, site->host);
        rc = lease_id_make(space_store(sp), c.lease_id, err);
        if (rc == BELAY_OK && !inbox_names(&c.in, bytes_str(request->session_id), a))
            rc = err_no_memory(err, "a claim");
        if (rc == BELAY_OK)
            rc = request->wait_ms > 0 ? claim_waiting(sp, &c, a, err)
                                      : look_here(sp, &c, a, err);
    }
    if (rc == BELAY_OK)
        *out = c.out;
    return rc;
}
