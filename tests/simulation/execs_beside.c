/* What changes along with the rows of executions: attempts, ends, events, batches; and
 * what has nothing to do with steps: frames, progress, tags, keys. */
#include "execs.h"

#include <stdio.h>

/* --- what comes with the steps of one execution --- */

static const char *events_of(const struct execs *w, const struct xtry *t)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_events; i++) {
        const struct xevent *e = &w->event[i];
        if (e->execution != t->row.id)
            continue;
        if (n == t->n_events)
            return "events: more than happened were told";
        const struct xevent *want = &t->event[n++];
        if (e->type != want->type || e->outcome != want->outcome ||
            e->fence != want->fence || e->at_ms != want->at_ms)
            return "events: something else was told than happened";
    }
    return n == t->n_events ? NULL : "events: something happened and was not told";
}

static const char *attempts_of(const struct execs *w, const struct xtry *t)
{
    bool found = false;

    for (size_t i = 0; i < w->cur->n_attempts; i++) {
        const struct xattempt *a = &w->cur->attempt[i], *want = &t->archived;
        if (a->execution != t->row.id || xattempt_at(w->old, a->execution, a->index))
            continue;
        if (!t->archives || found)
            return "W3: an attempt came to the archive that is not over";
        found = true;
        if (a->index != want->index || a->id != want->id || a->type != want->type ||
            a->end != want->end || a->worker != want->worker ||
            a->fence != want->fence || a->started_ms != want->started_ms ||
            a->ended_ms != want->ended_ms)
            return "W3: the archive tells of another attempt";
    }
    return found == t->archives ? NULL : "W3: an attempt was lost";
}

static bool has_batch(const struct xstate *st, uint64_t session, uint64_t source)
{
    for (size_t i = 0; i < st->n_batches; i++) {
        if (st->batch[i].session == session && st->batch[i].source == source)
            return true;
    }
    return false;
}

static uint64_t source_of(const struct xrow *r)
{
    static const char *const outcomes[] = { "", "success", "failed", "cancelled",
                                            "expired" };
    char text[96];

    (void)snprintf(text, sizeof(text), "execution:%s:%s", r->name,
                   outcomes[r->v[EXEC_OUTCOME]]);
    return xstr(text);
}

/* One of that source that still waits stands for the next one as well: source keys. */
static const char *batch_of(const struct execs *w, const struct xtry *t)
{
    if (!t->batch)
        return NULL;
    return has_batch(w->cur, (uint64_t)t->row.v[EXEC_SESSION], source_of(&t->row))
               ? NULL
               : "W4: it ended and its session was not told";
}

static const char *end_of(const struct execs *w, const struct xtry *t)
{
    const struct xrow *o = xrow_at(w->old, t->row.id), *n = t->to;

    if (!n)
        return NULL;
    bool changed = n->ends != (o ? o->ends : 0) || n->end_ver != (o ? o->end_ver : 0);
    if (t->end_class && (n->ends != 1 || n->end_class != t->end_class || !changed))
        return "W4: how it failed is not told";
    if (changed && n->ends == 1 && n->end_fence != n->v[EXEC_LEASE + LEASE_FENCE])
        return "W4: the end that is told is another grant's";
    return NULL;
}

const char *xbeside_row(struct execs *w, const struct xtry *t)
{
    const char *fault;

    if ((fault = events_of(w, t)) || (fault = batch_of(w, t)) || (fault = end_of(w, t)))
        return fault;
    return t->to ? attempts_of(w, t) : NULL;
}

/* --- what nobody may change --- */

static const char *history(const struct execs *w, bool *changed)
{
    const struct xstate *o = w->old, *n = w->cur;

    for (size_t i = 0; i < o->n_attempts; i++) {
        const struct xattempt *a = &o->attempt[i];
        const struct xattempt *b = xattempt_at(n, a->execution, a->index);
        if (!b && xrow_at(n, a->execution))
            return "W3: an attempt is gone";
        if (b && b->whole != a->whole)
            return "W3: the archive has changed";
    }
    for (size_t i = 0; i < o->n_batches; i++) {
        if (!has_batch(n, o->batch[i].session, o->batch[i].source))
            return "W4: a batch is gone";
    }
    for (size_t i = 0; i < o->n_routes; i++) {
        if (i >= n->n_routes)
            return "W1: a route is gone";
    }
    for (size_t i = 0; i < w->n_events; i++) {
        const struct xrow *a = xrow_at(o, w->event[i].execution);
        const struct xrow *b = xrow_at(n, w->event[i].execution);
        if (a && b && a->ver == b->ver)
            return "events: something was told that did not happen";
    }
    *changed |= n->n_batches != o->n_batches || w->n_events > 0;
    return NULL;
}

/* A batch tells of an end that this commit has made. */
static const char *batches(const struct execs *w)
{
    const struct xstate *o = w->old, *n = w->cur;

    for (size_t i = 0; i < n->n_batches; i++) {
        const struct xbatch *b = &n->batch[i];
        bool known = false;
        if (has_batch(o, b->session, b->source))
            continue;
        for (size_t k = 0; k < n->n_rows && !known; k++) {
            const struct xrow *r = &n->row[k], *before = xrow_at(o, r->id);
            known = xis_terminal(r) && before && !xis_terminal(before) &&
                    (uint64_t)r->v[EXEC_SESSION] == b->session &&
                    source_of(r) == b->source;
        }
        if (!known)
            return "W4: a session was told of an end that was none";
    }
    return NULL;
}

/* --- frames, progress, tags --- */

static const char *frames(const struct execs *w, const struct xcall *c, bool *changed)
{
    for (size_t i = 0; i < w->cur->n_heads; i++) {
        const struct xhead *n = &w->cur->head[i];
        const struct xhead *o = xhead_at(w->old, n->execution, n->attempt);
        int64_t last = o ? o->last : 0, caller = o ? o->caller : 0;
        if (o && o->last == n->last && o->caller == n->caller && o->first == n->first)
            continue;
        *changed = true;
        const struct xhandle *h = c && c->kind == X_FRAMES ? c->handle[0] : NULL;
        if (!h || h->execution != n->execution || !xholds(w->old, h))
            return "L4: frames of who does not hold it";
        if (xrow_at(w->cur, n->execution)->v[EXEC_ATTEMPTS] - 1 != n->attempt)
            return "frames: of another attempt than the one that runs";
        for (unsigned k = 0; k < c->frames; k++) {
            int64_t seq = c->first_seq > 0 ? (int64_t)(c->first_seq + k) : 0;
            last += seq == 0 || seq > caller;
            caller = seq > caller ? seq : caller;
        }
        if (n->last != last || n->caller != caller)
            return "frames: other ones than were appended";
    }
    return NULL;
}

static const char *progress(const struct execs *w, const struct xcall *c, bool *changed)
{
    for (size_t i = 0; i < w->cur->n_rows; i++) {
        const struct xrow *n = &w->cur->row[i], *o = xrow_at(w->old, n->id);
        if (n->progress_ver == (o ? o->progress_ver : 0))
            continue;
        *changed = true;
        const struct xhandle *h = c && c->kind == X_PROGRESS ? c->handle[0] : NULL;
        if (!h || h->execution != n->id || !xholds(w->old, h))
            return "L4: progress of who does not hold it";
        if (n->progress_fence != h->fence)
            return "W2: progress of another grant";
    }
    return NULL;
}

static const char *tags(struct execs *w, const struct xcall *c, bool *changed)
{
    for (size_t i = 0; i < w->cur->n_rows; i++) {
        const struct xrow *n = &w->cur->row[i], *o = xrow_at(w->old, n->id);
        if (!o || n->spec_ver == o->spec_ver)
            continue;
        *changed = true;
        struct xseen *seen = xseen_at(w, n->id);
        if (!c || c->kind != X_TAG || c->id != n->id)
            return "L4: tags were changed by somebody else";
        for (unsigned k = 0; k < X_TAGS; k++) { /* the state's check compares them */
            if (c->tag[k] > 0)
                seen->spec.tag[k] = c->tag[k] == 9 ? 0 : c->tag[k];
        }
    }
    return NULL;
}

/* --- keys, the feed, the epoch --- */

static const char *key_change(struct xcall *c, const struct xkey *o,
                              const struct xkey *n, int64_t now_ms)
{
    if (!n) {
        if (c->kind != X_TIMERS || o->until_ms > now_ms)
            return "keys: one was forgotten before its time";
        c->keys++;
        return NULL;
    }
    if (c->kind != X_SUBMIT)
        return "keys: one was changed by somebody else";
    if (o && o->until_ms > now_ms)
        return "keys: used for another execution within its window";
    for (size_t i = 0; i < c->n_want; i++) {
        if (c->want[i].key == n->key && c->created[i] == n->execution)
            return n->until_ms == now_ms + c->want[i].window_ms
                       ? NULL
                       : "keys: kept for another time than its window";
    }
    return "keys: one leads to an execution that was not created";
}

static const char *keys(const struct execs *w, struct xcall *c, int64_t now_ms,
                        bool *changed)
{
    const char *fault = NULL;

    for (size_t i = 0; i < w->old->n_keys + w->cur->n_keys && !fault; i++) {
        bool past = i >= w->old->n_keys;
        uint64_t key = past ? w->cur->key[i - w->old->n_keys].key : w->old->key[i].key;
        const struct xkey *o = xkey_at(w->old, key), *n = xkey_at(w->cur, key);
        if ((past && o) || (o && n && o->until_ms == n->until_ms &&
                            o->execution == n->execution && o->hash == n->hash))
            continue;
        *changed = true;
        fault = c ? key_change(c, o, n, now_ms) : "keys: one was changed by nobody";
    }
    return fault;
}

/* What is older than the retention may go; the newest entries never. */
static const char *trimmed(const struct execs *w, const struct xcall *c, int64_t now_ms)
{
    const struct xstate *o = w->old, *n = w->cur;
    size_t gone = o->n_feed > n->n_feed ? o->n_feed - n->n_feed : 0;

    for (size_t i = 0; i < gone; i++) {
        if (!c || c->kind != X_TIMERS || o->feed[i].at_ms > now_ms - BELAY_RETENTION_MS)
            return "events: forgotten before their time";
    }
    for (size_t i = gone; i < o->n_feed; i++) {
        if (o->feed[i].len != n->feed[i - gone].len ||
            o->feed[i].at_ms != n->feed[i - gone].at_ms)
            return "events: what was told has changed";
    }
    return NULL;
}

bool xbeside_changes(struct execs *w, struct xcall *c, int64_t now_ms)
{
    bool changed = w->cur->epoch != w->old->epoch;
    const char *fault = NULL;

    if (changed && (!c || c->kind != X_RAISE || w->cur->epoch != w->old->epoch + 1))
        fault = "L2: the epoch was raised by nobody, or by more than one";
    if (!fault)
        fault = history(w, &changed);
    if (!fault)
        fault = batches(w);
    if (!fault)
        fault = frames(w, c, &changed);
    if (!fault)
        fault = progress(w, c, &changed);
    if (!fault)
        fault = tags(w, c, &changed);
    if (!fault)
        fault = keys(w, c, now_ms, &changed);
    if (!fault)
        fault = trimmed(w, c, now_ms);
    xcomplain(w, fault);
    return changed;
}
