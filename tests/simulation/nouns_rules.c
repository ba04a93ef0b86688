/* What a commit of a call may do to the batches of an inbox. */
#include "nouns.h"

/* --- what the rules of a claim give, computed once more --- */

bool is_live(const struct nbatch *b, int64_t now_ms)
{
    return b->lease.token && b->lease.expires_ms > now_ms;
}

/* Its time has come.  One that was made ready stays so, even for somebody whose clock is
 * behind: only a grant or a renewal ends that. */
static bool is_eligible(const struct nbatch *b, int64_t now_ms)
{
    return b->due_ms <= now_ms;
}

/* Batches stand in the order of their sequences.  Those that are not eligible are as if
 * they were not there; the first one that does not fit ends the group.  `early`, which may
 * be NULL, knows which ones are eligible before their time. */
static size_t take_prefix(const struct nstate *st, const struct ncall *c,
                          int64_t now_ms, const struct nouns *early,
                          const struct nbatch *out[N_CLAIM_MAX])
{
    const uint64_t join = str_of("join"), soon = str_of("earliest_safe_boundary");
    size_t n = 0, max = c->is_exact ? c->n_exact : c->max;

    for (size_t i = 0; i < st->n_batches && n < max; i++) {
        const struct nbatch *b = &st->batch[i];
        if (b->session != c->session ||
            !(is_eligible(b, now_ms) || (early && is_early(early, b, now_ms))))
            continue;
        bool fits = n == 0 ? c->boundary == BELAY_IDLE || b->delivery == soon
                           : out[0]->slot == join && b->slot == join &&
                                 b->delivery == out[0]->delivery &&
                                 b->merge == out[0]->merge;
        if (!fits)
            break;
        out[n++] = b;
    }
    return n;
}

size_t expected_claim(const struct nstate *st, const struct ncall *c, int64_t now_ms,
                      const struct nouns *early, const struct nbatch *out[N_CLAIM_MAX])
{
    const struct ninbox *in = inbox_at(st, c->session);
    size_t n = take_prefix(st, c, now_ms, early, out);

    if (!in || in->closed)
        return 0;
    for (size_t i = 0; i < n && c->is_exact; i++) {
        if (out[i]->id != c->exact[i])
            return 0;
    }
    return c->is_exact && n != c->n_exact ? 0 : n;
}

/* --- what happened to one batch --- */

enum nchange {
    SAME,
    ADDED,
    REMOVED,
    GRANTED,
    RELEASED,
    RENEWED,
    PROMOTED, /* to the ready index, whoever holds it */
    OTHERWISE,
};

static bool is_lasting_same(const struct nbatch *o, const struct nbatch *n)
{
    return o->id == n->id && o->source == n->source && o->delivery == n->delivery &&
           o->slot == n->slot && o->merge == n->merge && o->payload == n->payload &&
           o->available_ms == n->available_ms && o->enqueued_ms == n->enqueued_ms;
}

static bool is_lease_same(const struct nlease *o, const struct nlease *n)
{
    return o->claim == n->claim && o->owner == n->owner && o->token == n->token &&
           o->id == n->id && o->size == n->size && o->fence == n->fence &&
           o->who.member == n->who.member && o->who.boot == n->who.boot &&
           o->claimed_ms == n->claimed_ms;
}

static enum nchange change_of(const struct nbatch *o, const struct nbatch *n)
{
    if (!o || !n)
        return o ? REMOVED : ADDED;
    if (!is_lasting_same(o, n))
        return OTHERWISE;
    if (!is_lease_same(&o->lease, &n->lease)) {
        if (n->lease.token)
            return n->lease.id != o->lease.id ? GRANTED : OTHERWISE;
        return RELEASED;
    }
    if (o->lease.expires_ms != n->lease.expires_ms)
        return RENEWED;
    if (o->due_ms == n->due_ms)
        return SAME;
    return n->due_ms < 0 ? PROMOTED : n->lease.token ? RENEWED : OTHERWISE;
}

/* What kinds of calls may do. */
#define MAY(change) (1U << (change))
static const unsigned may[N_CALL_KINDS] = {
    [N_ENQUEUE] = MAY(ADDED),  [N_CLAIM] = MAY(GRANTED) | MAY(PROMOTED),
    [N_RENEW] = MAY(RENEWED),  [N_ABANDON] = MAY(RELEASED),
    [N_CANCEL] = MAY(REMOVED), [N_DROP] = MAY(REMOVED),
    [N_COMMIT] = MAY(REMOVED), [N_DELETE] = MAY(REMOVED),
};

/* What it breaks if somebody else does. */
static const char *const not_allowed[] = {
    [ADDED] = "L9: a batch that nobody enqueued",
    [REMOVED] = "L9: a batch is gone that nobody completed, cancelled or dropped",
    [GRANTED] = "L1: a lease was granted to nobody",
    [RELEASED] = "L4: a lease was ended by somebody else",
    [RENEWED] = "L6: a lease was renewed by somebody else",
    [PROMOTED] = "Q2: a batch was made ready by somebody else",
    [OTHERWISE] = "L9: a batch changed in a way that nothing changes it",
};

/* --- by kind of call --- */

struct nseen *seen_at(struct nouns *w, uint64_t session, int64_t seq)
{
    for (size_t i = w->n_seen; i-- > 0;) {
        if (w->seen[i].session == session && w->seen[i].seq == seq)
            return &w->seen[i];
    }
    return NULL;
}

static const char *enqueued(struct nouns *w, const struct ncall *c,
                            const struct nbatch *b, int64_t now_ms)
{
    const struct nbatch *want = &c->want;

    if (b->session != want->session || b->source != want->source ||
        b->delivery != want->delivery || b->slot != want->slot ||
        b->merge != want->merge || b->payload != want->payload ||
        b->available_ms != want->available_ms || b->enqueued_ms != now_ms)
        return "L9: another batch than was enqueued";
    if (b->lease.token || b->lease.fence != 0)
        return "L2: a new batch has a lease, or had one";
    if (b->due_ms < 0 && b->available_ms > now_ms)
        return "L12: a batch is ready before its time";
    for (size_t i = 0; i < w->n_seen; i++) {
        const struct nseen *s = &w->seen[i];
        if (s->session == b->session && s->seq >= b->seq)
            return "Q4: a sequence was given out before";
        if (s->id == b->id)
            return "Q4: a batch id was given out before";
        if (s->session == b->session && b->source && s->source == b->source && !s->gone)
            return "L9: two batches of one source key";
    }
    if (w->n_seen == N_SEEN)
        return "model: too many batches";
    w->seen[w->n_seen++] = (struct nseen){ .session = b->session,
                                           .id = b->id,
                                           .source = b->source,
                                           .payload = b->payload,
                                           .seq = b->seq,
                                           .added_no = w->no };
    return NULL;
}

static const char *granted(struct nouns *w, struct ncall *c, const struct nbatch *o,
                           const struct nbatch *n, int64_t now_ms)
{
    struct nseen *seen = seen_at(w, n->session, n->seq);

    if (n->session != c->session)
        return "L8: a batch of another session was granted";
    const char *fault = is_eligible(o, now_ms) ? NULL : early_fault(w, c, o, now_ms);
    if (fault)
        return fault;
    if (n->due_ms != n->lease.expires_ms)
        return "Q2: a batch was granted and not made due at the lease's end";
    if (!seen || n->lease.fence <= seen->fence)
        return "L2: a fence that is not above those granted before";
    if (n->lease.fence >> 40 != w->cur->epoch)
        return "L2: a fence of another epoch";
    if (n->lease.claimed_ms != now_ms || n->lease.owner != c->owner ||
        n->lease.expires_ms != now_ms + c->ttl_ms)
        return "L8: the lease is not the one that was asked for";
    if (n->lease.who.member != c->mourning.self.member ||
        n->lease.who.boot != c->mourning.self.boot)
        return "L8: the lease names another process than the one that claimed";
    for (size_t i = 0; i < w->n_calls; i++) {
        if (w->call[i].lease.id == n->lease.id && &w->call[i] != c)
            return "L3: a lease id was given out before";
    }
    if (is_live(o, now_ms))
        early_note(w, o);
    seen->fence = n->lease.fence;
    seen->granted_no = w->no;
    c->lease = n->lease;
    return NULL;
}

static const char *removed(struct nouns *w, const struct ncall *c,
                           const struct nbatch *o, int64_t now_ms)
{
    static const char *const how[N_CALL_KINDS] = { [N_CANCEL] = "cancelled",
                                                   [N_DROP] = "dropped",
                                                   [N_COMMIT] = "completed",
                                                   [N_DELETE] = "deleted" };
    struct nseen *seen = seen_at(w, o->session, o->seq);
    const struct ninbox *in = inbox_at(w->cur, o->session);
    bool named = c->batch ? o->id == c->batch : o->seq == c->seq;

    if (!seen || seen->gone)
        return "L9: a batch went twice";
    seen->gone = how[c->kind];
    seen->gone_no = w->no;
    if (c->kind != N_DELETE && o->session != c->session)
        return "L9: a batch of another session is gone";
    if ((c->kind == N_CANCEL || c->kind == N_DROP) && !named)
        return "L9: another batch is gone than was named";
    if (c->kind == N_CANCEL && is_live(o, now_ms))
        return "L1: a batch was cancelled while somebody held it";
    if (c->kind == N_DELETE && !(in && in->closed))
        return "N3: a batch is gone from an inbox that is open";
    return NULL;
}

static const char *one_change(struct nouns *w, struct ncall *c, enum nchange change,
                              const struct nbatch *o, const struct nbatch *n,
                              int64_t now_ms)
{
    if (!c || !(may[c->kind] & MAY(change)))
        return not_allowed[change];
    if (change != PROMOTED && c->n_at < N_BATCHES)
        c->at[c->n_at++] = (o ? o : n)->seq;
    switch (change) {
    case ADDED:
        return enqueued(w, c, n, now_ms);
    case GRANTED:
        return granted(w, c, o, n, now_ms);
    case REMOVED:
        return removed(w, c, o, now_ms);
    case PROMOTED:
        return o->due_ms <= now_ms ? NULL : early_fault(w, c, o, now_ms);
    case RELEASED:
        return n->lease.fence == o->lease.fence ? NULL : "L2: a lease forgot its fence";
    case SAME:
    case RENEWED:
    case OTHERWISE:
        break;
    }
    return NULL;
}

/* --- by kind of call, all of its changes together --- */

/* Whether the batches that changed are among those that the claim lists. */
static bool is_listed(const struct nouns *w, const struct ncall *c,
                      const struct belay_claim *claim)
{
    for (size_t i = 0; i < c->n_at; i++) {
        if (!lists_batch(w->old, claim, c->at[i]))
            return false;
    }
    return true;
}

static const char *claim_change(struct nouns *w, const struct ncall *c, int64_t now_ms)
{
    const struct nbatch *want[N_CLAIM_MAX];
    size_t n = expected_claim(w->old, c, now_ms, w, want);
    const char *fault = early_half(w, c, now_ms);

    if (fault || c->n_at == 0)
        return fault;
    if (c->n_at > c->max && !c->is_exact)
        return "L8: more batches than were asked for";
    if (c->n_at != n)
        return "L12: another number of batches than the rules give";
    for (size_t i = 0; i < n; i++) {
        if (c->at[i] != want[i]->seq)
            return "L12: other batches than the rules give";
        if (batch_at(w->cur, c->session, c->at[i])->lease.size != (int64_t)n)
            return "Q5: a claim says another size than it has";
    }
    return NULL;
}

static const char *renew_change(struct nouns *w, struct ncall *c, int64_t now_ms)
{
    if (c->n_at == 0 || early_stale(w, c->claim))
        return c->n_at == 0 ? NULL : early_stale(w, c->claim);
    if (!holds_all(w->old, c->claim) || !is_listed(w, c, c->claim))
        return "L4: a claim that does not hold was renewed";
    for (size_t i = 0; i < c->n_at; i++) {
        const struct nbatch *o = batch_at(w->old, c->session, c->at[i]);
        const struct nbatch *n = batch_at(w->cur, c->session, c->at[i]);
        int64_t end = now_ms + c->ttl_ms;
        if (n->lease.expires_ms < o->lease.expires_ms)
            return "L6: a renewal has shortened a lease";
        if (n->lease.expires_ms !=
            (end > o->lease.expires_ms ? end : o->lease.expires_ms))
            return "L6: renewed to another time than was asked for";
        if (n->due_ms != n->lease.expires_ms)
            return "Q2: a batch was renewed and not made due at the lease's end";
        c->lease = n->lease;
    }
    return NULL;
}

static const char *abandon_change(struct nouns *w, const struct ncall *c)
{
    size_t held = 0;

    if (c->n_at == 0)
        return NULL;
    for (size_t i = 0; i < c->claim->n_batches; i++)
        held += holds_batch(w->old, c->claim, i);
    if (held != c->n_at || !is_listed(w, c, c->claim))
        return "L4: other batches were given back than the claim holds";
    return NULL;
}

static const char *commit_change(struct nouns *w, const struct ncall *c)
{
    const struct nturn *t = c->turn;
    size_t listed = 0, found = 0;

    for (size_t i = 0; i < t->n_claims; i++)
        listed += t->claim[i]->n_batches;
    for (size_t i = 0; i < t->n_claims && c->n_at > 0; i++) {
        if (!holds_all(w->old, t->claim[i]))
            return "L4: a claim that does not hold was completed";
        if (early_stale(w, t->claim[i]))
            return early_stale(w, t->claim[i]);
        for (size_t k = 0; k < c->n_at; k++)
            found += lists_batch(w->old, t->claim[i], c->at[k]);
    }
    return listed == c->n_at && found == c->n_at
               ? NULL
               : "N4: a commit removed other batches than it completes";
}

const char *call_changes(struct nouns *w, struct ncall *c, int64_t now_ms)
{
    if (c->n_at > 1 &&
        (c->kind == N_ENQUEUE || c->kind == N_CANCEL || c->kind == N_DROP))
        return "L9: more than one batch";
    if (c->kind == N_CLAIM)
        return claim_change(w, c, now_ms);
    if (c->kind == N_RENEW)
        return renew_change(w, c, now_ms);
    if (c->kind == N_ABANDON)
        return abandon_change(w, c);
    return c->kind == N_COMMIT ? commit_change(w, c) : NULL;
}

/* Who changes which batches an inbox has, or who holds them, counts that: at the back what enters,
 * at the front everything else and what enters and waits (Q1).  A producer that is in nobody's way
 * leaves the front alone. */
static const char *counted(const struct nouns *w, uint64_t session, enum nchange change,
                           const struct nbatch *b)
{
    const struct ninbox *o = inbox_at(w->old, session), *n = inbox_at(w->cur, session);

    if (n && n->closed)
        return NULL;
    if (!n)
        return "Q1: a change without an inbox";
    if (!o)
        return NULL;
    bool back = n->last_seq > o->last_seq && n->ver != o->ver;
    bool front = n->changes > o->changes && n->front_ver != o->front_ver;
    if (change == ADDED && (!back || front != (b->due_ms >= 0)))
        return "Q1: a batch enters and the inbox does not count it";
    return front || change == ADDED ? NULL
                                    : "Q1: a change that the inbox does not count";
}

bool inbox_changes(struct nouns *w, struct ncall *c, int64_t now_ms)
{
    const struct nstate *old = w->old, *cur = w->cur;
    const char *fault = NULL;
    bool changed = false;

    for (size_t i = 0, k = 0; (i < old->n_batches || k < cur->n_batches) && !fault;) {
        const struct nbatch *o = i < old->n_batches ? &old->batch[i] : NULL;
        const struct nbatch *n = k < cur->n_batches ? &cur->batch[k] : NULL;
        if (o && !batch_at(cur, o->session, o->seq))
            n = NULL;
        else if (n && !batch_at(old, n->session, n->seq))
            o = NULL;
        i += o != NULL;
        k += n != NULL;
        enum nchange change = change_of(o, n);
        if (change == SAME)
            continue;
        if (!changed && c && c->kind != N_DELETE)
            c->n_at = 0;
        changed = true;
        fault = one_change(w, c, change, o, n, now_ms);
        if (!fault && change != PROMOTED && change != RENEWED)
            fault = counted(w, (o ? o : n)->session, change, o ? o : n);
    }
    noun_complain(w, fault);
    return changed;
}
