/* What each call makes of a state of processes, or why it is refused. */
#include "procs.h"

#define REFUSE(rc, reason) ((struct pverdict){ rc, reason })
#define FEED_MS ((int64_t)7 * 24 * 60 * 60 * 1000) /* changes are kept so long */
#define FINE REFUSE(BELAY_OK, NULL)

static bool is_known(const struct pstate *st, unsigned proc)
{
    return st->proc[proc].there && !st->proc[proc].deleting;
}

/* --- registering --- */

static struct pverdict do_register(struct procs *w, const struct pcall *c,
                                   struct pstate *st, const struct pstate *to,
                                   int64_t now_ms)
{
    struct pproc *p = &st->proc[c->proc];

    if (p->there && p->deleting)
        return REFUSE(BELAY_WRONG_STATE, "deleting");
    if (p->there)
        return p->hash == w->hash[c->proc][c->variant]
                   ? FINE
                   : REFUSE(BELAY_REGISTRATION_CONFLICT, NULL);
    uint64_t *hash = &w->hash[c->proc][c->variant];
    if (*hash == 0 && to) /* both are different, and always the same */
        *hash = to->proc[c->proc].hash;
    *p =
        (struct pproc){ .there = true,
                        .hash = hash[0] == w->hash[c->proc][1 - c->variant] ? 0 : *hash,
                        .first = 1,
                        .created_ms = now_ms,
                        .updated_ms = now_ms,
                        .finished_ms = -1,
                        .retention_ms = c->retention_ms > 0 ? c->retention_ms : -1,
                        .purge_ms = -1,
                        .status = BELAY_PROCESS_RUNNING,
                        .specs = true,
                        .lease = { .claimed_ms = -1, .expires_ms = -1 } };
    pchange_tell(st, c->proc, BELAY_CHANGE_REGISTERED, now_ms);
    return FINE;
}

static struct pverdict do_ref(struct pcall *c, struct pstate *st, int64_t now_ms)
{
    if (!is_known(st, c->proc))
        return REFUSE(BELAY_NOT_FOUND, NULL);
    if (c->lease && !(c->lease->proc == c->proc && pholds(st, c->lease)))
        return REFUSE(BELAY_LEASE_LOST, NULL);
    st->proc[c->proc].ref = c->ref;
    st->proc[c->proc].updated_ms = now_ms;
    pchange_tell(st, c->proc, BELAY_CHANGE_EXTERNAL_REF, now_ms);
    return FINE;
}

/* --- leases --- */

/* Who holds it is in the way, unless it was said to be dead: by a commit, that may have been
 * in any run of its body; by a refusal, in the last one. */
static bool is_in_the_way(struct procs *w, const struct pcall *c, struct pstate *st,
                          const struct pstate *to, int64_t now_ms)
{
    const struct please *l = &st->proc[c->proc].lease;

    if (l->owner == c->owner || !pis_held(st, c->proc, now_ms))
        return false;
    if (!to)
        return !mourning_now(&c->mourning, l->who);
    st->fault = mourning_fault(w->s, &c->mourning, l->who, w->granted_no[c->proc]);
    return false;
}

/* What is drawn is taken over, and must be new (L2, L3). */
static struct pverdict do_lease(struct procs *w, struct pcall *c, struct pstate *st,
                                const struct pstate *to, int64_t now_ms)
{
    struct please *l = &st->proc[c->proc].lease;

    if (!is_known(st, c->proc))
        return REFUSE(BELAY_NOT_FOUND, NULL);
    if (is_in_the_way(w, c, st, to, now_ms))
        return REFUSE(BELAY_LEASE_HELD, NULL);
    if (!to)
        return FINE;
    const struct please *got = &to->proc[c->proc].lease;
    *l = *got;
    l->owner = c->owner;
    l->who = c->mourning.self;
    l->claimed_ms = now_ms;
    l->expires_ms = now_ms + c->lease_ms;
    if (got->fence <= w->fence[c->proc])
        l->fence = w->fence[c->proc] + 1; /* differs from what was found */
    if (got->fence >> 40 != st->epoch)
        l->fence = -1;
    for (size_t i = 0; i < w->n_lease_ids; i++) {
        if (w->lease_id[i] == got->id)
            l->id = 0;
    }
    return FINE;
}

static struct pverdict do_renew(struct pcall *c, struct pstate *st, int64_t now_ms)
{
    struct please *l = &st->proc[c->proc].lease;

    if (!is_known(st, c->proc))
        return REFUSE(BELAY_NOT_FOUND, NULL);
    if (!pholds(st, c->lease))
        return REFUSE(BELAY_LEASE_LOST, NULL);
    if (!pis_live(l, now_ms))
        return REFUSE(BELAY_LEASE_LOST, "expired");
    if (now_ms + c->lease_ms > l->expires_ms) /* L6 */
        l->expires_ms = now_ms + c->lease_ms;
    return FINE;
}

static struct pverdict do_release(struct pcall *c, struct pstate *st)
{
    struct please *l = &st->proc[c->proc].lease;

    if (!is_known(st, c->proc))
        return REFUSE(BELAY_NOT_FOUND, NULL);
    if (pholds(st, c->lease))
        *l = (struct please){ .fence = l->fence, .claimed_ms = -1, .expires_ms = -1 };
    return FINE;
}

/* --- wakes and inboxes --- */

static void remove_batch(struct pstate *st, struct pbatch *b, int state, int64_t now_ms)
{
    struct pevent *e = pevent_at(st, b->proc, b->wake_seq);

    if (e && e->wake.state == BELAY_WAKE_QUEUED && e->wake.session == b->session &&
        e->wake.batch == b->seq)
        pwake_settle(st, e, state, now_ms);
    *b = st->batch[--st->n_batches];
}

static struct pverdict do_ack(struct pcall *c, struct pstate *st, int64_t now_ms)
{
    struct pevent *e = pevent_at(st, c->proc, c->seq);

    if (!is_known(st, c->proc))
        return REFUSE(BELAY_NOT_FOUND, NULL);
    if (!e || e->wake.state != BELAY_WAKE_QUEUED)
        return FINE;
    struct pbatch *b = pbatch_at(st, e->wake.session, e->wake.batch);
    pwake_settle(st, e, BELAY_WAKE_ACKNOWLEDGED, now_ms);
    if (b && !(b->lease && now_ms < b->expires_ms))
        remove_batch(st, b, BELAY_WAKE_ACKNOWLEDGED, now_ms);
    return FINE;
}

/* Who claims gets batches that nobody has, or one who is said to be dead; the rest, as when
 * that was said, is --nouns' business. */
static struct pverdict do_claim(struct procs *w, struct pcall *c, struct pstate *st,
                                const struct pstate *to, int64_t now_ms)
{
    for (size_t i = 0; to && i < st->n_batches; i++) {
        struct pbatch *b = &st->batch[i];
        const struct pbatch *got = pbatch_at(to, b->session, b->seq);
        bool free_now = !b->lease || b->expires_ms <= now_ms ||
                        b->fence >> 40 != st->epoch || b->ready;
        if (b->session != c->scope.session || !got)
            continue;
        if (!free_now && !got->ready && got->lease == b->lease)
            continue;
        if (!free_now && !st->fault)
            st->fault = mourning_fault(w->s, &c->mourning, b->who, 0);
        b->lease = got->lease;
        b->expires_ms = got->expires_ms;
    }
    return FINE;
}

static struct pverdict do_abandon(struct pcall *c, struct pstate *st)
{
    uint64_t id = pstr(c->claim->lease_id);

    for (size_t i = 0; i < st->n_batches; i++) {
        struct pbatch *b = &st->batch[i];
        if (b->lease == id && b->fence >> 40 == st->epoch) {
            b->lease = 0;
            b->expires_ms = -1;
        }
    }
    return FINE;
}

static struct pverdict do_commit(struct pcall *c, struct pstate *st, int64_t now_ms)
{
    uint64_t id = pstr(c->claim->lease_id);
    unsigned session = psession_of(bytes_str(c->claim->session_id));

    for (size_t i = 0; i < c->claim->n_batches; i++) {
        struct pbatch *b = pbatch_at(st, session, c->claim->batches[i].enqueue_seq);
        if (!b || b->lease != id || b->fence >> 40 != st->epoch)
            return REFUSE(BELAY_LEASE_LOST, NULL);
        remove_batch(st, b, BELAY_WAKE_CONSUMED, now_ms);
    }
    return FINE;
}

static struct pverdict do_cancel_batch(struct pcall *c, struct pstate *st,
                                       int64_t now_ms)
{
    struct pbatch *b = pbatch_at(st, c->scope.session, c->seq);

    if (b && b->id == c->batch && !(b->lease && now_ms < b->expires_ms))
        remove_batch(st, b, BELAY_WAKE_CANCELLED, now_ms);
    return FINE;
}

/* --- grants --- */

static void set_grant(struct pstate *st, struct pscope s, unsigned proc, uint64_t kind,
                      uint64_t label, int64_t now_ms)
{
    struct pgrant *g = pgrant_at(st, s, proc);

    if (!g && st->n_grants == P_GRANTS)
        return;
    if (!g) {
        g = &st->grant[st->n_grants++];
        *g = (struct pgrant){
            .session = s.session, .frame = s.frame, .proc = proc, .at_ms = now_ms
        };
    }
    g->kind = kind;
    g->label = label;
}

static void drop_grant(struct pstate *st, struct pgrant *g)
{
    if (g)
        *g = st->grant[--st->n_grants];
}

static struct pverdict do_transfer(struct pcall *c, struct pstate *st, int64_t now_ms)
{
    for (unsigned i = 0; i < P_PROCS; i++) {
        if ((c->many >> i & 1U) != 0 && !pgrant_at(st, c->scope, i))
            return REFUSE(BELAY_NOT_FOUND, NULL);
    }
    for (unsigned i = 0; i < P_PROCS; i++) {
        struct pgrant *g = pgrant_at(st, c->scope, i);
        if ((c->many >> i & 1U) == 0 ||
            (c->scope.session == c->to.session && c->scope.frame == c->to.frame))
            continue;
        struct pgrant moved = *g;
        drop_grant(st, g);
        set_grant(st, c->to, i, moved.kind, moved.label, now_ms);
    }
    return FINE;
}

static bool has_any(const struct pstate *st, unsigned proc)
{
    for (size_t i = 0; i < st->n_grants; i++) {
        if (st->grant[i].proc == proc)
            return true;
    }
    return false;
}

static struct pverdict do_forget(struct procs *w, struct pcall *c, struct pstate *st,
                                 int64_t now_ms)
{
    unsigned touched = 0;

    c->revoked = 0;
    c->cancelled = c->preserved = 0;
    for (size_t i = 0; i < st->n_grants;) {
        struct pgrant *g = &st->grant[i];
        if (g->session != c->scope.session) {
            i++;
            continue;
        }
        touched |= 1U << g->proc;
        c->revoked++;
        drop_grant(st, g);
    }
    for (unsigned i = 0; i < P_PROCS; i++) {
        struct pcall wish = *c;
        if ((touched >> i & 1U) == 0 || !is_known(st, i) ||
            st->proc[i].status != BELAY_PROCESS_RUNNING)
            continue;
        if (has_any(st, i)) {
            c->preserved |= 1U << i;
            continue;
        }
        c->cancelled |= 1U << i;
        wish.proc = i;
        if (c->cancel && pdo_append(w, &wish, st, now_ms).rc)
            st->fault = "model: a wish was refused";
    }
    return FINE;
}

/* --- removing --- */

static void mark(struct pstate *st, unsigned proc, int64_t now_ms)
{
    struct pproc *p = &st->proc[proc];

    pchange_tell(st, proc, BELAY_CHANGE_DELETED, now_ms);
    p->deleting = true;
    p->status = 0;
    p->specs = p->has_end = false;
    p->ref = p->output = 0;
    p->purge_ms = now_ms;
    p->lease =
        (struct please){ .fence = p->lease.fence, .claimed_ms = -1, .expires_ms = -1 };
}

/* Events first, with what is beside them; then grants; then the process. */
static void remove_step(struct pstate *st, unsigned proc)
{
    bool removed = false;

    for (size_t i = 0; i < st->n_events;) {
        struct pevent *e = &st->event[i];
        if (e->proc != proc) {
            i++;
            continue;
        }
        struct pbatch *b = pbatch_at(st, e->wake.session, e->wake.batch);
        if (b && b->proc == proc && b->wake_seq == e->seq)
            b->sources = 0; /* also when it was acknowledged while somebody had it */
        *e = st->event[--st->n_events];
        removed = true;
    }
    st->proc[proc].first = st->proc[proc].last + 1;
    for (size_t i = 0; i < st->n_grants && !removed;) {
        if (st->grant[i].proc != proc) {
            i++;
            continue;
        }
        drop_grant(st, &st->grant[i]);
        i = 0;
        if (!has_any(st, proc))
            return;
    }
    if (!removed)
        st->proc[proc] = (struct pproc){ .there = false };
}

static struct pverdict do_delete(struct pcall *c, struct pstate *st, int64_t now_ms)
{
    const struct pproc *p = &st->proc[c->proc];

    if (!p->there) /* of a removal under way: somebody else has finished it */
        return c->changed > 0 ? FINE : REFUSE(BELAY_NOT_FOUND, NULL);
    if (p->deleting) {
        remove_step(st, c->proc);
        return FINE;
    }
    if (!c->force && p->status == BELAY_PROCESS_RUNNING)
        return REFUSE(BELAY_WRONG_STATE, "running");
    if (!c->force && pis_held(st, c->proc, now_ms))
        return REFUSE(BELAY_LEASE_HELD, NULL);
    mark(st, c->proc, now_ms);
    return FINE;
}

/* What timers did to a process that is due, if they did anything to it. */
static void due(struct pstate *st, const struct pstate *to, unsigned i, int64_t now_ms)
{
    struct pproc *p = &st->proc[i];
    const struct pproc *q = &to->proc[i];
    bool shrunk = q->first != p->first || st->of_proc[i] != to->of_proc[i];

    if (!p->there || p->purge_ms < 0 || p->purge_ms > now_ms)
        return;
    if (p->deleting && (shrunk || !q->there))
        remove_step(st, i);
    else if (!p->deleting && pis_live(&p->lease, now_ms) && q->purge_ms != p->purge_ms)
        p->purge_ms = p->lease.expires_ms;
}

static bool is_same(const struct pchange *a, const struct pchange *b)
{
    return a->proc == b->proc && a->kind == b->kind && a->status == b->status &&
           a->seq == b->seq && a->at_ms == b->at_ms;
}

/* How many of the first n changes are not in the feed any more, and may go: those that are
 * old, from the first one on. */
static size_t n_dropped(const struct pstate *st, const struct pstate *to, size_t n,
                        int64_t now_ms)
{
    size_t dropped = 0;

    while (dropped < n && now_ms - st->change[dropped].at_ms >= FEED_MS &&
           !(to->n_changes > 0 && is_same(&st->change[dropped], &to->change[0])))
        dropped++;
    return dropped;
}

static struct pverdict do_timers(struct procs *w, struct pstate *st,
                                 const struct pstate *to, int64_t now_ms)
{
    size_t n = st->n_changes, dropped;

    if (!to)
        return FINE;
    for (unsigned i = 0; i < P_PROCS; i++)
        due(st, to, i, now_ms);
    dropped = n_dropped(st, to, n, now_ms);
    memmove(st->change, st->change + dropped, (n - dropped) * sizeof(st->change[0]));
    st->n_changes = n -= dropped;
    w->trimmed = dropped;
    for (size_t i = n; i < to->n_changes; i++) {
        unsigned at = to->change[i].proc;
        const struct pproc *p = &st->proc[at];
        if (at < P_PROCS && p->there && !p->deleting && p->purge_ms >= 0 &&
            p->purge_ms <= now_ms && !pis_live(&p->lease, now_ms))
            mark(st, at, now_ms);
    }
    return FINE;
}

/* --- others --- */

/* The end of an execution is told to its process; what that refuses is told, too. */
static struct pverdict do_exec_end(struct procs *w, struct pcall *c, struct pstate *st,
                                   const struct pstate *to, int64_t now_ms)
{
    const struct pevent *got = to ? pevent_by_key(to, c->proc, c->event.key) : NULL;

    if (!is_known(st, c->proc) || !to)
        return FINE;
    if (pevent_by_key(st, c->proc, c->event.key))
        return FINE;
    if (got)
        c->event.payload = got->payload;
    c->output = to->proc[c->proc].output;
    if (pdo_append(w, c, st, now_ms).rc)
        pchange_tell(st, c->proc, BELAY_CHANGE_EVENT_REFUSED, now_ms);
    return FINE;
}

/* Somebody has lost the end of a process, but not the event that tells of it. */
static struct pverdict do_spoil(struct procs *w, struct pcall *c, struct pstate *st)
{
    struct pproc *p = &st->proc[c->proc];

    p->status = BELAY_PROCESS_RUNNING;
    p->has_end = false;
    p->output = 0;
    p->terminal_seq = 0;
    p->finished_ms = p->purge_ms = -1;
    w->spoiled[c->proc] = true;
    return FINE;
}

struct pverdict pcall_apply(struct procs *w, struct pcall *c, struct pstate *st,
                            const struct pstate *to, int64_t now_ms)
{
    switch (c->kind) {
    case P_REGISTER:
        return do_register(w, c, st, to, now_ms);
    case P_APPEND:
        return pdo_append(w, c, st, now_ms);
    case P_REF:
        return do_ref(c, st, now_ms);
    case P_LEASE:
        return do_lease(w, c, st, to, now_ms);
    case P_RENEW:
        return do_renew(c, st, now_ms);
    case P_RELEASE:
        return do_release(c, st);
    case P_ACK:
        return do_ack(c, st, now_ms);
    case P_GRANT:
        if (!is_known(st, c->proc))
            return REFUSE(BELAY_NOT_FOUND, NULL);
        return set_grant(st, c->scope, c->proc, c->kind_text, c->label, now_ms), FINE;
    case P_REVOKE:
        return drop_grant(st, pgrant_at(st, c->scope, c->proc)), FINE;
    case P_TRANSFER:
        return do_transfer(c, st, now_ms);
    case P_FORGET:
        return do_forget(w, c, st, now_ms);
    case P_DELETE:
        return do_delete(c, st, now_ms);
    case P_TIMERS:
        return do_timers(w, st, to, now_ms);
    case P_CLAIM:
        return do_claim(w, c, st, to, now_ms);
    case P_ABANDON:
        return do_abandon(c, st);
    case P_COMMIT:
        return do_commit(c, st, now_ms);
    case P_CANCEL_BATCH:
        return do_cancel_batch(c, st, now_ms);
    case P_EXEC_END:
        return do_exec_end(w, c, st, to, now_ms);
    case P_SPOIL:
        return do_spoil(w, c, st);
    case P_LOOK:
    case P_SUBMIT:
    case P_WORK:
    case P_RAISE:
    case P_CALL_KINDS:
        break;
    }
    return FINE; /* changes nothing that is watched */
}
