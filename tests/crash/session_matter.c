/* Ledgers and store, put in order for the laws. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <belay/error.h>

#include "session_laws.h"

/* clang-format off */
const char *const law_names[LAWS] = {
    [LAW_SOUND]   = "sessions: check finds nothing, nor did a worker while it lived",
    [LAW_FENCES]  = "sessions: L1 L2 L3 L10: fences of a batch rise by one with each grant, and none is granted twice",
    [LAW_TIME]    = "sessions: L1 L6 L7: nobody is granted what another one's lease still covers",
    [LAW_STALE]   = "sessions: L4: whoever is too late changes nothing",
    [LAW_HOLDS]   = "sessions: L5: whoever is not superseded holds, however late",
    [LAW_WHOLE]   = "sessions: L8: a claim holds all it was given, and no more than it asked for",
    [LAW_ENTERED] = "sessions: L9: what was enqueued is there until it is completed or cancelled, once, and nothing else is",
    [LAW_DRAINS]  = "sessions: L11: one worker that lives empties every inbox",
    [LAW_ORDER]   = "sessions: L12: batches are numbered and granted in the order they came",
    [LAW_CHAIN]   = "sessions: S1 S2: revisions have no gap and no fork, and no head goes back",
    [LAW_TURNS]   = "sessions: X2: a turn that is tried again is committed once",
    [LAW_ATONCE]  = "sessions: S3: what a commit completes, appends and counts is there with it",
    [LAW_BLOBS]   = "sessions: S3 S4 S5: checkpoints of heads and pinned blobs can be read",
    [LAW_GARBAGE] = "sessions: S7: what nothing names goes, all else stays",
    [LAW_DELETED] = "sessions: what was deleted is gone for good, and refuses who comes later",
};

const char *const tally_names[TALLIES] = {
    [TALLY_KILLS]         = "kills",
    [TALLY_STOPS]         = "stopped for longer than their lease",
    [TALLY_LOST_ANSWERS]  = "calls without an answer",
    [TALLY_ENQUEUED]      = "enqueued",
    [TALLY_GRANTS]        = "grants",
    [TALLY_TAKEOVERS]     = "takeovers",
    [TALLY_BURNED]        = "grants that nobody was told of",
    [TALLY_RENEWED]       = "renewed",
    [TALLY_ABANDONED]     = "abandoned",
    [TALLY_CANCELLED]     = "cancelled",
    [TALLY_COMMITS]       = "commits",
    [TALLY_COMPLETED]     = "completed",
    [TALLY_CONFLICTS]     = "head revision conflicts",
    [TALLY_STALE]         = "stale tries that were refused",
    [TALLY_LATE]          = "late and accepted",
    [TALLY_RETRIED]       = "turns tried again, their outcome not known",
    [TALLY_REPLAYED]      = "turns replayed",
    [TALLY_OTHER_CONTENT] = "turns refused for other content",
    [TALLY_CHECKPOINTS]   = "checkpoints",
    [TALLY_PINS]          = "pins",
    [TALLY_COLLECTED]     = "blobs collected beside the work",
    [TALLY_SPARED]        = "blobs spared by a collection, since somebody named them again",
    [TALLY_DELETED]       = "sessions deleted beside their users",
    [TALLY_REFUSED]       = "calls refused by deleted sessions",
    [TALLY_DRAINED]       = "drained at the end",
};
/* clang-format on */

void law_broken(struct laws *l, enum law law, const char *fmt, ...)
{
    va_list args;

    if (l->wrong[law]++ >= 6)
        return;
    printf("# %s: ", l->where ? l->where : "");
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

bool act_before(const struct act *a, const struct act *b)
{
    return a->done && a->done->at_us < b->begin->at_us;
}

bool act_ok(const struct act *a)
{
    return a->done && a->done->rc == BELAY_OK;
}

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    if (!p)
        abort();
    return p;
}

/* --- grants --- */

static int by_fence(const void *a, const void *b)
{
    const struct grant *x = a, *y = b;

    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->fence != y->fence)
        return x->fence < y->fence ? -1 : 1;
    return 0;
}

static void collect_grants(struct matter *m)
{
    m->grants = zeroed(m->acts.n * NOTE_BATCHES, sizeof(*m->grants));
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->begin->deed != DEED_CLAIM)
            continue;
        if (!a->done)
            m->unanswered[a->begin->session] += (uint64_t)a->begin->most;
        for (unsigned j = 0; a->done && j < a->done->n_batches; j++)
            m->grants[m->n_grants++] =
                (struct grant){ .session = a->begin->session,
                                .seq = a->done->batch[j].seq,
                                .fence = a->done->batch[j].fence,
                                .act = a,
                                .expires_at_ms = a->done->expires_at_ms };
    }
    qsort(m->grants, m->n_grants, sizeof(*m->grants), by_fence);
}

/* --- stories --- */

struct story *story_of(const struct matter *m, int session, int64_t seq)
{
    if (session < 0 || session >= NOTE_SESSIONS || seq < 1 ||
        (size_t)seq > m->n_story[session])
        return NULL;
    return &m->story[session][seq];
}

static void at_least(size_t *max, int64_t seq)
{
    if (seq > 0 && (size_t)seq > *max)
        *max = (size_t)seq;
}

/* The sequence of a batch that some worker was told of. */
static int64_t seq_of(const struct matter *m, int session, uint64_t id)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].done;
        if (!n || n->session != session)
            continue;
        for (unsigned j = 0; j < n->n_batches; j++) {
            if (n->batch[j].id == id)
                return n->batch[j].seq;
        }
    }
    return 0;
}

static void resolve(struct matter *m)
{
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        const struct truth_session *t = &m->truth->session[s];
        for (size_t i = 0; i < t->n_commits; i++) {
            for (size_t j = 0; j < t->commit[i].n_done; j++) {
                t->commit[i].done_seq[j] = seq_of(m, s, t->commit[i].done[j]);
                if (!t->commit[i].done_seq[j])
                    law_broken(m->laws, LAW_ENTERED,
                               "s%d: revision %lld completed what nobody was given", s,
                               (long long)t->commit[i].revision);
            }
        }
    }
}

static void measure(struct matter *m)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].done;
        for (unsigned j = 0; n && n->session >= 0 && j < n->n_batches; j++)
            at_least(&m->n_story[n->session], n->batch[j].seq);
    }
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        const struct truth_session *t = &m->truth->session[s];
        for (size_t i = 0; i < t->n_batches; i++)
            at_least(&m->n_story[s], t->batch[i].seq);
        for (size_t i = 0; i < t->n_commits; i++) {
            for (size_t j = 0; j < t->commit[i].n_done; j++)
                at_least(&m->n_story[s], t->commit[i].done_seq[j]);
        }
        m->story[s] = zeroed(m->n_story[s] + 1, sizeof(*m->story[s]));
    }
}

static void tell_from_store(struct matter *m)
{
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        const struct truth_session *t = &m->truth->session[s];
        for (size_t i = 0; i < t->n_batches; i++)
            story_of(m, s, t->batch[i].seq)->here = &t->batch[i];
        for (size_t i = 0; i < t->n_commits; i++) {
            for (size_t j = 0; j < t->commit[i].n_done; j++) {
                struct story *y = story_of(m, s, t->commit[i].done_seq[j]);
                if (!y)
                    continue;
                y->done = &t->commit[i];
                y->n_done++;
            }
        }
    }
}

static void tell_cancel(struct matter *m, const struct act *a)
{
    struct story *y = story_of(m, a->begin->session, a->begin->batch[0].seq);

    if (!y)
        return;
    y->cancel_tried = true;
    if (a->done && !a->done->rc && a->done->flags & NOTE_FOUND) {
        y->cancelled = true;
        y->cancelled_us = a->done->at_us;
    }
}

/* Renewing and abandoning are about a claim's grants. */
static void tell_use(struct matter *m, const struct act *a)
{
    for (unsigned j = 0; j < a->begin->n_batches; j++) {
        struct story *y = story_of(m, a->begin->session, a->begin->batch[j].seq);
        for (size_t i = 0; y && i < y->n_grants; i++) {
            struct grant *g = &y->grant[i];
            if (g->fence != a->begin->batch[j].fence)
                continue;
            if (a->begin->deed == DEED_ABANDON && !g->let_go_us)
                g->let_go_us = a->begin->at_us;
            else if (a->begin->deed == DEED_RENEW && a->done && !a->done->rc &&
                     a->done->expires_at_ms > g->expires_at_ms)
                g->expires_at_ms = a->done->expires_at_ms;
        }
    }
}

/* Under which grant a batch was completed. */
static void tell_commit(struct matter *m, const struct act *a)
{
    for (unsigned j = 0; j < a->begin->n_batches; j++) {
        struct story *y = story_of(m, a->begin->session, a->begin->batch[j].seq);
        if (y && y->done && maker_is(&y->done->turn, &a->begin->thing))
            y->done_fence = a->begin->batch[j].fence;
    }
}

static void tell_entry(struct matter *m, const struct act *a)
{
    struct story *y = story_of(m, a->begin->session, a->done->batch[0].seq);

    if (!y)
        return;
    if (y->entered)
        law_broken(m->laws, LAW_ENTERED, "s%d: sequence %lld was given out twice",
                   a->begin->session, (long long)a->done->batch[0].seq);
    y->entered = a;
}

static void tell(struct matter *m)
{
    for (size_t i = 0; i < m->n_grants; i++) {
        struct story *y = story_of(m, m->grants[i].session, m->grants[i].seq);
        if (!y)
            continue;
        if (!y->grant)
            y->grant = &m->grants[i];
        y->n_grants++;
    }
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->begin->deed == DEED_CANCEL)
            tell_cancel(m, a);
        else if (a->begin->deed == DEED_RENEW || a->begin->deed == DEED_ABANDON)
            tell_use(m, a);
        else if (a->begin->deed == DEED_COMMIT)
            tell_commit(m, a);
        else if (a->begin->deed == DEED_ENQUEUE && a->done && !a->done->rc &&
                 !(a->done->flags & NOTE_REPLAYED))
            tell_entry(m, a);
    }
}

void matter_make(struct matter *m, struct laws *laws, const struct notes *notes,
                 struct truth *truth)
{
    *m = (struct matter){ .laws = laws, .truth = truth };
    acts_of(notes, &m->acts);
    collect_grants(m);
    resolve(m);
    measure(m);
    tell_from_store(m);
    tell(m);
    for (size_t i = 0; i < notes->n; i++) {
        const struct note *n = &notes->note[i];
        if (n->said == SAID_BROKEN)
            law_broken(laws, LAW_SOUND, "w%u, life %u: %s", n->worker, n->life,
                       n->text);
    }
}

void matter_release(struct matter *m)
{
    for (int s = 0; s < NOTE_SESSIONS; s++)
        free(m->story[s]);
    free(m->grants);
    acts_release(&m->acts);
}
