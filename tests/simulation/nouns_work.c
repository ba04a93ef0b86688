/* What actors do with claims. */
#include "nouns.h"

/* --- claiming --- */

static void check_claim(struct ncall *c, const struct belay_claim *claim)
{
    struct sim *s = c->actor->sim;
    bool same = c->grants == 1 && c->n_at == claim->n_batches &&
                str_of(claim->claim_id) == c->lease.claim &&
                str_of(claim->lease_token) == c->lease.token &&
                str_of(claim->lease_id) == c->lease.id &&
                claim->expires_at_ms == c->lease.expires_ms;

    for (size_t i = 0; i < claim->n_batches && same; i++) {
        const struct nseen *seen =
            seen_at(s->nouns, c->session, claim->batches[i].enqueue_seq);
        same = claim->batches[i].enqueue_seq == c->at[i] && seen &&
               seen->id == str_of(claim->batches[i].batch_id);
    }
    if (!same)
        violation(s, "L8", "a claim lists other batches than were granted");
}

/* When something becomes due next. */
static int64_t next_due(const struct nstate *st, const struct ncall *c)
{
    int64_t next = BELAY_TIME_NONE;

    for (size_t i = 0; i < st->n_batches; i++) {
        const struct nbatch *b = &st->batch[i];
        if (b->session == c->session && b->due_ms > c->now_ms &&
            (next == BELAY_TIME_NONE || b->due_ms < next))
            next = b->due_ms;
    }
    return next;
}

/* Nothing was claimed: there was nothing to claim, and why is right. */
static void check_no_claim(struct ncall *c, const struct belay_claimed *out)
{
    struct nouns *w = c->actor->sim->nouns;
    const struct nbatch *want[N_CLAIM_MAX];
    const struct ninbox *in = inbox_at(w->cur, c->session);

    if (c->grants > 0)
        violation(w->s, "L8", "batches were granted and not handed out");
    if (!is_calm(c) || (c->max == 0 && !c->is_exact))
        return;
    if (expected_claim(w->cur, c, c->now_ms, NULL, want) > 0)
        violation(w->s, "L12", "nothing was claimed (%d) although the rules give some",
                  out->why);
    else if (early_missed(w, c))
        noun_complain(w, early_missed(w, c));
    else if (out->next_at_ms != next_due(w->cur, c))
        violation(w->s, "answer", "something is due at %lld, not at %lld",
                  (long long)next_due(w->cur, c), (long long)out->next_at_ms);
    else if ((out->why == BELAY_NO_EMPTY) != (!in || in->batches == 0))
        violation(w->s, "answer", "why nothing was claimed is not %d", out->why);
}

const struct belay_claim *do_claim(struct actor *a, const char *session,
                                   const struct belay_claim_request *request)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    struct belay_claimed out;
    struct belay_error err;

    if (!sp)
        return NULL;
    struct ncall *c = call_begin(a, N_CLAIM, session);
    c->boundary = (enum belay_boundary)request->boundary;
    c->max = request->max;
    c->owner = str_of(request->owner_id);
    c->ttl_ms = request->lease_ms;
    c->is_exact = request->batch_ids != NULL;
    c->n_exact = request->n_batch_ids;
    for (size_t i = 0; i < c->n_exact; i++)
        c->exact[i] = str_of(request->batch_ids[i]);
    belay_rc rc = queue_claim(
        &(struct queue_site){ .space = sp,
                              .principal = bytes_str("sim"),
                              .host = hosts_of(a->sim, a->sim->running->front) },
        request, &arena, &out, &err);
    if (!call_end(c, rc))
        return NULL;
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, session);
    else if (rc)
        call_refuse(c, rc);
    if (rc)
        return NULL;
    if (!out.claim) {
        check_no_claim(c, &out);
        return NULL;
    }
    check_claim(c, out.claim);
    return claim_keep(w, out.claim);
}

static const struct belay_claim *claim_some(struct actor *a, const char *session)
{
    static const int64_t ttls_ms[] = { 0, 1, 20, 200, 2000, 30000, 900000 };
    static const char *const owners[] = { "ann", "bob" };
    struct belay_claim_request request = {
        .size = sizeof(request),
        .boundary = pick_of(a->op, 30, 3) ? BELAY_IDLE : BELAY_ACTIVE_TURN_CHECKPOINT,
        .session_id = session,
        .owner_id = owners[pick_of(a->op, 31, 2)],
        .lease_ms = ttls_ms[pick_of(a->op, 32, COUNT_OF(ttls_ms))],
        .max = pick_of(a->op, 33, 16) ? 1 + pick_of(a->op, 34, 4) : 0,
    };

    return do_claim(a, session, &request);
}

void op_claim(struct actor *a)
{
    (void)claim_some(a, session_name(a));
}

/* --- renewing, giving back --- */

belay_rc do_renew(struct actor *a, const struct belay_claim *claim, int64_t ttl_ms)
{
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    bool held = holds_all(w->cur, claim);
    struct belay_error err;
    int64_t expires_ms = 0;

    if (!sp)
        return BELAY_UNAVAILABLE;
    struct ncall *c = call_begin(a, N_RENEW, claim->session_id);
    c->claim = claim;
    c->ttl_ms = ttl_ms;
    belay_rc rc = queue_renew(sp, claim, ttl_ms, &expires_ms, &err);
    if (!call_end(c, rc))
        return BELAY_UNAVAILABLE;
    bool twice = rc == BELAY_INVALID && strcmp(err.reason, "duplicate_batch") == 0;
    if (rc == BELAY_LEASE_LOST || twice) {
        if (holds_all(w->cur, claim))
            violation(w->s, "L5", "a claim that holds was not renewed: %s", err.reason);
        else if (!twice && is_calm(c) &&
                 strcmp(err.reason, lost_reason(w->cur, claim)) != 0)
            violation(w->s, "L4", "a claim is %s, and was said to be %s",
                      lost_reason(w->cur, claim), err.reason);
    } else if (rc) {
        call_refuse(c, rc);
    } else if (!held) {
        violation(w->s, "L4", "a claim that does not hold was said to be renewed");
    } else if (c->changed ? expires_ms != c->lease.expires_ms
                          : expires_ms < c->now_ms + ttl_ms) {
        violation(w->s, "L6", "a renewal says another time than it wrote");
    }
    return rc;
}

void op_renew(struct actor *a)
{
    static const int64_t ttls_ms[] = { 0, 10, 300, 5000, 60000 };
    const struct belay_claim *claim = claim_any(a, pick_of(a->op, 3, 1U << 30));

    if (claim)
        (void)do_renew(a, claim, ttls_ms[pick_of(a->op, 4, COUNT_OF(ttls_ms))]);
}

void do_abandon(struct actor *a, const struct belay_claim *claim)
{
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    struct belay_error err;
    size_t released = 0;

    if (!sp)
        return;
    struct ncall *c = call_begin(a, N_ABANDON, claim->session_id);
    c->claim = claim;
    belay_rc rc = queue_abandon(sp, claim, &released, &err);
    if (!call_end(c, rc))
        return;
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, claim->session_id);
    else if (rc)
        call_refuse(c, rc);
    if (rc)
        return;
    if (released != c->n_at)
        violation(w->s, "L4", "%zu batches are said to be given back, %zu were",
                  released, c->n_at);
    for (size_t i = 0; i < claim->n_batches; i++) {
        if (holds_batch(w->cur, claim, i))
            violation(w->s, "L5", "a batch that was held was not given back");
    }
}

void op_abandon(struct actor *a)
{
    const struct belay_claim *claim = claim_any(a, pick_of(a->op, 3, 1U << 30));

    if (claim)
        do_abandon(a, claim);
}

/* --- completing --- */

/* A commit that completes what is claimed, at times by two claims; with the revision
 * that was read, or any. */
static belay_rc complete(struct actor *a, const struct belay_claim *claim,
                         struct nturn *turn)
{
    const struct belay_claim *other = claim_any(a, pick_of(a->op, 41, 1U << 30));
    int64_t revision = 0, actual = 0;
    char leaf[24];
    belay_rc rc = BELAY_OK;

    turn->claim[turn->n_claims++] = claim;
    if (pick_of(a->op, 42, 4) == 0 && str_of(other->session_id) == turn->session_id)
        turn->claim[turn->n_claims++] = other;
    if (pick_of(a->op, 40, 2))
        revision = BELAY_ANY_REVISION;
    else
        rc = do_head(a, turn->session, &revision, leaf);
    if (rc && rc != BELAY_NOT_FOUND)
        return rc;
    rc = do_commit(a, turn, revision, &actual);
    for (unsigned i = 0; i < 3 && rc == BELAY_HEAD_REVISION_CONFLICT; i++)
        rc = do_commit(a, turn, actual, &actual);
    return rc;
}

/* Completes something that was claimed at any time by anybody: mostly that is stale. */
void op_complete(struct actor *a)
{
    const struct belay_claim *claim = claim_any(a, pick_of(a->op, 3, 1U << 30));
    struct nturn *turn =
        claim ? turn_make(a, claim->session_id, pick_of(a->op, 4, 2)) : NULL;

    if (turn)
        (void)complete(a, claim, turn);
}

/* Calls with a claim that somebody has made up, rather out of one that has several
 * batches and holds. */
void op_forge(struct actor *a)
{
    const struct nouns *w = a->sim->nouns;
    const struct belay_claim *claim = claim_any(a, 0);
    unsigned what = pick_of(a->op, 3, 3), how = pick_of(a->op, 4, 7);

    if (!claim)
        return;
    for (size_t i = w->n_claims; i-- > 0 && i + 6 > w->n_claims;) {
        if (w->claim[i]->n_batches > 1 && holds_all(w->cur, w->claim[i]))
            claim = w->claim[i];
    }
    if (claim->n_batches > 1 && pick_of(a->op, 5, 2))
        how = 5 + pick_of(a->op, 6, 2);
    claim = claim_forged(a->sim->nouns, claim, what == 1 ? how % 3 : how);
    if (what == 0) {
        (void)do_renew(a, claim, 1000);
    } else if (what == 1) {
        do_abandon(a, claim);
    } else {
        struct nturn *turn = turn_make(a, claim->session_id, true);
        if (turn)
            (void)complete(a, claim, turn);
    }
}

/* A worker: claims, works for a while, completes or gives back; at times it is too late. */
void op_work(struct actor *a)
{
    struct coroutine *co = a->sim->running;
    const char *session = session_name(a);
    const struct belay_claim *claim = claim_some(a, session);
    int64_t longest_us = 1 + (int64_t)(1 << pick_of(a->op, 5, 22));

    if (!claim || co->dead)
        return;
    turn_sleep(a->sim, (int64_t)pick_of(a->op, 6, (unsigned)longest_us));
    if (!co->dead && pick_of(a->op, 7, 3) == 0)
        (void)do_renew(a, claim, 200);
    if (co->dead)
        return;
    if (pick_of(a->op, 8, 6) == 0) {
        do_abandon(a, claim);
        return;
    }
    struct nturn *turn = turn_make(a, session, true);
    belay_rc rc = turn ? complete(a, claim, turn) : BELAY_OK;
    if (rc && !co->dead && pick_of(a->op, 9, 3) == 0)
        do_abandon(a, claim);
}
