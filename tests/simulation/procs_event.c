/* What appending an event makes of a state, after sections 3.6 to 3.9 of the specification
 * and the decisions about processes. */
#include "procs.h"

#include <stdio.h>

/* --- types --- */

#define NOTE                                                                  \
    "{\"name\":\"note\",\"payload_schema\":{\"schema\":{\"type\":\"object\"," \
    "\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}}}"
#define WAKES                                                                        \
    "{\"name\":\"wake\",\"semantics\":{\"wake\":{\"input\":{\"pointer\":\"/"         \
    "text\"}}}},"                                                                    \
    "{\"name\":\"ring\",\"semantics\":{\"wake\":{\"input\":{\"pointer\":\"/text\"}," \
    "\"dedupe_key\":{\"selector\":{\"pointer\":\"/bell\"}}}}}"
#define DONE \
    "{\"name\":\"done\",\"semantics\":{\"terminal\":{\"state\":\"completed\"}}}"

const char *pvariant_types(unsigned variant)
{
    static const char *const types[] = {
        "[" NOTE "," WAKES "," DONE ",{\"name\":\"execution.completed\"}]",
        "[" NOTE "," WAKES "," DONE ",{\"name\":\"extra\"},"
        "{\"name\":\"execution.completed\","
        "\"semantics\":{\"terminal\":{\"state\":\"completed\"}}}]",
    };

    return types[variant];
}

const char *ptype_name(enum ptype t)
{
    static const char *const names[PT_TYPES] = {
        [PT_NOTE] = "note",
        [PT_WAKE] = "wake",
        [PT_RING] = "ring",
        [PT_DONE] = "done",
        [PT_CANCEL_REQUESTED] = "process.cancel_requested",
        [PT_COMPLETED] = "process.completed",
        [PT_FAILED] = "process.failed",
        [PT_CANCELLED] = "process.cancelled",
        [PT_EXECUTION] = "execution.completed",
        [PT_EXTRA] = "extra",
        [PT_UNKNOWN] = "unknown",
    };

    return names[t];
}

static bool is_second(const struct procs *w, const struct pstate *st, unsigned proc)
{
    return st->proc[proc].hash == w->hash[proc][1];
}

/* The status an event gives; 0: none. */
static int ends_as(const struct procs *w, const struct pstate *st,
                   const struct pcall *c)
{
    static const int ends[PT_TYPES] = { [PT_DONE] = BELAY_PROCESS_COMPLETED,
                                        [PT_COMPLETED] = BELAY_PROCESS_COMPLETED,
                                        [PT_FAILED] = BELAY_PROCESS_FAILED,
                                        [PT_CANCELLED] = BELAY_PROCESS_CANCELLED };

    if (c->type == PT_EXECUTION)
        return is_second(w, st, c->proc) ? BELAY_PROCESS_COMPLETED : 0;
    return ends[c->type];
}

/* --- what comes with it --- */

void pchange_tell(struct pstate *st, unsigned proc, int kind, int64_t at_ms)
{
    const struct pproc *p = &st->proc[proc];

    if (st->n_changes < P_CHANGES)
        st->change[st->n_changes++] =
            (struct pchange){ proc, kind, p->status, p->last, at_ms };
}

bool pis_live(const struct please *l, int64_t now_ms)
{
    return l->owner != 0 && now_ms < l->expires_ms;
}

/* Somebody holds it: by a grant of this epoch, which is not past due. */
bool pis_held(const struct pstate *st, unsigned proc, int64_t now_ms)
{
    const struct please *l = &st->proc[proc].lease;

    return pis_live(l, now_ms) && l->fence >> 40 == st->epoch;
}

bool pholds(const struct pstate *st, const struct pheld *h)
{
    const struct please *l = &st->proc[h->proc].lease;

    return l->owner != 0 && l->id == h->id && l->token == h->token &&
           l->fence >> 40 == st->epoch;
}

static void release(struct please *l)
{
    *l = (struct please){ .fence = l->fence, .claimed_ms = -1, .expires_ms = -1 };
}

static void end_it(struct pstate *st, const struct pevent *e, uint64_t output)
{
    struct pproc *p = &st->proc[e->proc];
    int64_t usual = BELAY_PROCESS_RETENTION_MS;

    p->status = e->terminal;
    p->terminal_seq = e->seq;
    p->has_end = true;
    p->output = output;
    p->finished_ms = e->at_ms;
    p->purge_ms = e->at_ms + (p->retention_ms >= 0 ? p->retention_ms : usual);
    release(&p->lease);
    pchange_tell(st, e->proc, BELAY_CHANGE_ENDED, e->at_ms);
}

/* Into the inbox, unless the same wake was there (P3). */
static void deliver(struct pstate *st, struct pevent *e)
{
    struct pwake *k = &e->wake;

    k->created_ms = e->at_ms;
    k->settled_ms = -1;
    for (size_t i = 0; i < st->n_events; i++) {
        const struct pevent *o = &st->event[i];
        if (o->marked && o->wake.dedupe == k->dedupe && o->wake.session == k->session &&
            o->wake.frame == k->frame) {
            k->state = BELAY_WAKE_DUPLICATE;
            k->settled_ms = e->at_ms;
            return;
        }
    }
    k->state = BELAY_WAKE_QUEUED;
    k->batch = ++st->last_batch[k->session];
    e->marked = true;
    if (st->n_batches < P_BATCHES)
        st->batch[st->n_batches++] = (struct pbatch){ .session = k->session,
                                                      .seq = k->batch,
                                                      .proc = e->proc,
                                                      .wake_seq = e->seq,
                                                      .sources = 1,
                                                      .expires_ms = -1 };
}

void pwake_settle(struct pstate *st, struct pevent *e, int state, int64_t now_ms)
{
    (void)st;
    e->wake.state = state;
    e->wake.settled_ms = now_ms;
    if (state == BELAY_WAKE_CANCELLED)
        e->marked = false;
}

/* --- whether it may be --- */

#define REFUSE(rc, reason) ((struct pverdict){ rc, reason })

static struct pverdict judge_end(const struct pcall *c, const struct pstate *st,
                                 bool external, int64_t now_ms)
{
    const struct pproc *p = &st->proc[c->proc];
    int authority = c->event.authority;

    if (p->status != BELAY_PROCESS_RUNNING)
        return REFUSE(BELAY_WRONG_STATE, "terminal");
    if (c->lease || authority == BELAY_AUTHORITY_OPERATOR ||
        authority == BELAY_AUTHORITY_EXECUTION)
        return REFUSE(BELAY_OK, NULL);
    if (authority == BELAY_AUTHORITY_NONE ||
        (authority == BELAY_AUTHORITY_EXTERNAL && !external && !p->ref))
        return REFUSE(BELAY_INVALID, "authority");
    return pis_held(st, c->proc, now_ms) ? REFUSE(BELAY_LEASE_HELD, NULL)
                                         : REFUSE(BELAY_OK, NULL);
}

static struct pverdict judge(const struct procs *w, const struct pcall *c,
                             const struct pstate *st, int64_t now_ms)
{
    bool second = is_second(w, st, c->proc);
    bool ends = ends_as(w, st, c) != 0;
    bool wakes = c->type == PT_WAKE || c->type == PT_RING;

    if (c->lease && !(c->lease->proc == c->proc && pholds(st, c->lease)))
        return REFUSE(BELAY_LEASE_LOST, NULL);
    if (c->type == PT_UNKNOWN || (c->type == PT_EXTRA && !second))
        return REFUSE(BELAY_INVALID, "undeclared");
    if ((ends || c->type == PT_CANCEL_REQUESTED) && !c->event.key)
        return REFUSE(BELAY_INVALID, "replay_key");
    if (!c->good)
        return REFUSE(BELAY_INVALID, c->type == PT_NOTE ? "payload" : "pointer");
    if (ends)
        return judge_end(c, st, !second, now_ms);
    return wakes && !c->has_target ? REFUSE(BELAY_INVALID, "wake_target")
                                   : REFUSE(BELAY_OK, NULL);
}

static struct pverdict replay(const struct pcall *c, struct pstate *st,
                              const struct pevent *e)
{
    if (e->type != c->event.type || e->payload != c->event.payload)
        return REFUSE(BELAY_REPLAY_CONFLICT, NULL);
    /* The log is the truth. */
    if (e->terminal && st->proc[e->proc].status == BELAY_PROCESS_RUNNING)
        end_it(st, e, c->output);
    return REFUSE(BELAY_OK, NULL);
}

struct pverdict pdo_append(struct procs *w, struct pcall *c, struct pstate *st,
                           int64_t now_ms)
{
    struct pproc *p = &st->proc[c->proc];
    const struct pevent *before = pevent_by_key(st, c->proc, c->event.key);

    if (!p->there || p->deleting)
        return REFUSE(BELAY_NOT_FOUND, NULL);
    c->replayed = before != NULL;
    c->appended = before ? before->seq : p->last + 1;
    if (before)
        return replay(c, st, before);
    struct pverdict v = judge(w, c, st, now_ms);
    if (v.rc || st->n_events == P_EVENTS)
        return v;
    struct pevent *e = &st->event[st->n_events];
    *e = c->event;
    e->proc = c->proc;
    e->seq = ++p->last;
    e->at_ms = p->updated_ms = now_ms;
    e->fence = c->lease ? p->lease.fence : 0;
    e->terminal = ends_as(w, st, c);
    e->authority = e->terminal && !c->lease ? c->event.authority : 0;
    e->wake.session = c->target.session;
    e->wake.frame = c->target.frame;
    if (c->type == PT_WAKE) {
        char dedupe[64];
        (void)snprintf(dedupe, sizeof(dedupe), "%s:%lld", pname(c->proc),
                       (long long)e->seq);
        e->wake.dedupe = pstr(dedupe);
    }
    if (c->type == PT_WAKE || c->type == PT_RING)
        deliver(st, e);
    st->n_events++;
    if (e->terminal)
        end_it(st, e, c->output);
    if (c->type == PT_CANCEL_REQUESTED)
        pchange_tell(st, c->proc, BELAY_CHANGE_CANCEL_REQUESTED, now_ms);
    return v;
}
