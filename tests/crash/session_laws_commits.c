/* The laws of commits, and which answers calls may give at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <belay/session.h>

#include "session_laws.h"

static const struct truth_commit *commit_of(const struct matter *m, int session,
                                            const struct maker *turn)
{
    const struct truth_session *t = &m->truth->session[session];

    for (size_t i = 0; i < t->n_commits; i++) {
        if (t->commit[i].known && maker_is(&t->commit[i].turn, turn))
            return &t->commit[i];
    }
    return NULL;
}

/* --- answers --- */

/* Whether a collection ran beside the call: an upload that takes longer than its grace
 * may be taken for garbage. */
static bool beside_gc(const struct matter *m, const struct act *a)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *gc = &m->acts.act[i];
        if (gc->begin->deed == DEED_GC && gc->begin->at_us < a->done->at_us &&
            (!gc->done || gc->done->at_us > a->begin->at_us))
            return true;
    }
    return false;
}

static bool may_answer(const struct matter *m, const struct act *a)
{
    const struct note *n = a->done;

    switch ((enum deed)n->deed) {
    case DEED_MORTAL: /* session_mortals.c asks when */
        return n->rc == BELAY_WRONG_STATE && strcmp(n->reason, "deleted") == 0;
    case DEED_PUT:
        return n->rc == BELAY_NOT_FOUND && beside_gc(m, a);
    case DEED_RENEW:
        return n->rc == BELAY_LEASE_LOST;
    case DEED_COMMIT:
        return n->rc == BELAY_LEASE_LOST || n->rc == BELAY_HEAD_REVISION_CONFLICT ||
               (n->rc == BELAY_TURN_CONFLICT && n->flags & NOTE_OTHER);
    case DEED_ENQUEUE:
    case DEED_CLAIM:
    case DEED_ABANDON:
    case DEED_CANCEL:
    case DEED_HEAD:
    case DEED_UNPIN:
    case DEED_GC:
    case DEED_READ:
    case DEEDS:
        break;
    }
    return false;
}

static void answers(struct matter *m)
{
    static const char *const names[DEEDS] = { "enqueue", "claim",  "renew", "abandon",
                                              "cancel",  "commit", "head",  "put",
                                              "unpin",   "gc",     "read",  "mortal" };

    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].done;
        m->laws->looked[LAW_SOUND]++;
        if (n && n->rc && !may_answer(m, &m->acts.act[i]))
            law_broken(m->laws, LAW_SOUND, "w%u: %s: %s (%s): %s", n->worker,
                       names[n->deed], belay_error_info(n->rc)->name, n->reason,
                       n->text);
    }
}

/* --- S1 S2 --- */

static void chain(struct matter *m, int s)
{
    const struct truth_session *t = &m->truth->session[s];

    for (size_t i = 0; i < t->n_commits; i++) {
        m->laws->looked[LAW_CHAIN]++;
        if (t->commit[i].revision != (int64_t)i + 1)
            law_broken(m->laws, LAW_CHAIN, "s%d: entry %zu is revision %lld", s, i + 1,
                       (long long)t->commit[i].revision);
    }
    if (t->revision != (int64_t)t->n_commits)
        law_broken(m->laws, LAW_CHAIN, "s%d: revision %lld after %zu commits", s,
                   (long long)t->revision, t->n_commits);
}

/* What a call says about the head's revision, at some moment while it ran. */
static bool tells_revision(const struct note *n, int s)
{
    if (n->session != s)
        return false;
    if (n->deed == DEED_COMMIT)
        return (n->rc == BELAY_OK && !(n->flags & NOTE_REPLAYED)) ||
               n->rc == BELAY_HEAD_REVISION_CONFLICT;
    return n->deed == DEED_HEAD && n->rc == BELAY_OK;
}

static int by_done(const void *a, const void *b)
{
    const struct act *x = *(const struct act *const *)a;
    const struct act *y = *(const struct act *const *)b;

    return x->done->at_us < y->done->at_us ? -1 : x->done->at_us > y->done->at_us;
}

/* No head goes back: who asks after an answer hears the same or more. */
static void heads(struct matter *m, int s)
{
    const struct act **asked = calloc(m->acts.n + 1, sizeof(const struct act *));
    const struct act **told = calloc(m->acts.n + 1, sizeof(const struct act *));
    size_t n = 0, done = 0;
    int64_t known = 0;

    if (!asked || !told)
        abort();
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->done && tells_revision(a->done, s))
            asked[n++] = a; /* in the order they began */
    }
    memcpy(told, asked, n * sizeof(const struct act *));
    qsort(told, n, sizeof(const struct act *), by_done);
    for (size_t i = 0; i < n; i++) {
        const struct note *now = asked[i]->done;
        for (; done < n && told[done]->done->at_us < asked[i]->begin->at_us; done++) {
            if (told[done]->done->revision > known)
                known = told[done]->done->revision;
        }
        bool wrote = now->deed == DEED_COMMIT && now->rc == BELAY_OK;
        m->laws->looked[LAW_CHAIN]++;
        if (now->revision < known + wrote ||
            now->revision > (int64_t)m->truth->session[s].n_commits)
            law_broken(m->laws, LAW_CHAIN, "s%d: revision %lld after %lld, of %zu", s,
                       (long long)now->revision, (long long)known,
                       m->truth->session[s].n_commits);
    }
    free(asked);
    free(told);
}

/* The winner of a comparison has the next revision; a loser is told of a later one. */
static void comparisons(struct matter *m)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].done;
        if (!n || n->deed != DEED_COMMIT)
            continue;
        bool fresh = n->rc == BELAY_OK && !(n->flags & NOTE_REPLAYED);
        if (fresh && n->expected != BELAY_ANY_REVISION &&
            n->revision != n->expected + 1)
            law_broken(m->laws, LAW_CHAIN, "s%d: expected %lld, became %lld",
                       n->session, (long long)n->expected, (long long)n->revision);
        if (n->rc != BELAY_HEAD_REVISION_CONFLICT)
            continue;
        m->laws->tally[TALLY_CONFLICTS]++;
        if (n->expected == BELAY_ANY_REVISION || n->revision <= n->expected)
            law_broken(m->laws, LAW_CHAIN, "s%d: expected %lld, in conflict with %lld",
                       n->session, (long long)n->expected, (long long)n->revision);
    }
}

/* --- X2 --- */

/* Every entry of the log is some worker's turn, and no turn is there twice. */
static void entries(struct matter *m, int s)
{
    const struct truth_session *t = &m->truth->session[s];

    for (size_t i = 0; i < t->n_commits; i++) {
        const struct truth_commit *c = &t->commit[i];
        bool tried = false;
        for (size_t j = 0; j < m->acts.n && !tried; j++) {
            const struct note *n = m->acts.act[j].begin;
            tried = n->deed == DEED_COMMIT && n->session == s && c->known &&
                    maker_is(&n->thing, &c->turn);
        }
        if (!tried || commit_of(m, s, &c->turn) != c)
            law_broken(m->laws, LAW_TURNS, "s%d: revision %lld is %s", s,
                       (long long)c->revision,
                       tried ? "of a turn that was committed before" : "nobody's");
    }
}

/* Whether the same turn was begun once more afterwards. */
static bool tried_later(const struct matter *m, size_t at)
{
    const struct note *n = m->acts.act[at].begin;

    for (size_t i = at + 1; i < m->acts.n; i++) {
        const struct note *later = m->acts.act[i].begin;
        if (later->deed == DEED_COMMIT && maker_is(&later->thing, &n->thing))
            return true;
    }
    return false;
}

static void turns(struct matter *m)
{
    uint64_t *tally = m->laws->tally;

    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].done;
        if (!n || n->deed != DEED_COMMIT)
            continue;
        const struct truth_commit *c = commit_of(m, n->session, &n->thing);
        m->laws->looked[LAW_TURNS]++;
        if (n->rc == BELAY_OK && (!c || c->revision != n->revision))
            law_broken(m->laws, LAW_TURNS,
                       "s%d: revision %lld was acknowledged, it is %lld", n->session,
                       (long long)n->revision, c ? (long long)c->revision : 0LL);
        if (n->flags & NOTE_OTHER && n->rc == BELAY_OK)
            law_broken(m->laws, LAW_TURNS, "s%d: other content was accepted",
                       n->session);
        bool refused = n->rc && n->rc != BELAY_TURN_CONFLICT;
        if (refused && c && !tried_later(m, i))
            law_broken(m->laws, LAW_TURNS,
                       "s%d: revision %lld is of a turn that was refused", n->session,
                       (long long)c->revision);
        tally[TALLY_RETRIED] += (n->flags & NOTE_RETRY) != 0;
        tally[TALLY_REPLAYED] += n->rc == BELAY_OK && n->flags & NOTE_REPLAYED;
        tally[TALLY_OTHER_CONTENT] += n->rc == BELAY_TURN_CONFLICT;
        bool fresh = n->rc == BELAY_OK && !(n->flags & NOTE_REPLAYED);
        tally[TALLY_CHECKPOINTS] += fresh && n->flags & NOTE_CHECKPOINT;
    }
}

/* --- what a commit brings --- */

static void nodes(struct matter *m, int s)
{
    const struct truth_session *t = &m->truth->session[s];
    size_t n = t->n_commits;

    if (t->n_nodes != n || t->node_count != (int64_t)n || t->input_tokens != (int64_t)n)
        law_broken(m->laws, LAW_ATONCE,
                   "s%d: %zu commits, %zu nodes, %lld counted, %lld tokens", s, n,
                   t->n_nodes, (long long)t->node_count, (long long)t->input_tokens);
    for (size_t i = 0; i < n && i < t->n_nodes; i++) {
        m->laws->looked[LAW_ATONCE]++;
        if (!maker_is(&t->node[i], &t->commit[i].turn))
            law_broken(m->laws, LAW_ATONCE, "s%d: node %zu is another turn's", s,
                       i + 1);
    }
}

/* The log says that exactly those batches were completed which the commit named. */
static void completions(struct matter *m)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].begin;
        if (n->deed != DEED_COMMIT)
            continue;
        const struct truth_commit *c = commit_of(m, n->session, &n->thing);
        if (!c)
            continue;
        unsigned found = 0;
        for (unsigned j = 0; j < n->n_batches; j++) {
            for (size_t k = 0; k < c->n_done; k++)
                found += c->done[k] == n->batch[j].id;
        }
        m->laws->looked[LAW_ATONCE]++;
        if (found != n->n_batches || found != c->n_done)
            law_broken(m->laws, LAW_ATONCE,
                       "s%d: revision %lld completed %zu batches, %u were named",
                       n->session, (long long)c->revision, c->n_done, n->n_batches);
    }
}

void laws_of_commits(struct matter *m)
{
    answers(m);
    comparisons(m);
    turns(m);
    completions(m);
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        const struct truth_session *t = &m->truth->session[s];
        chain(m, s);
        heads(m, s);
        entries(m, s);
        nodes(m, s);
        m->laws->tally[TALLY_COMMITS] += t->n_commits;
        for (size_t i = 0; i < t->n_commits; i++)
            m->laws->tally[TALLY_COMPLETED] += t->commit[i].n_done;
    }
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (act_ok(a) && a->begin->deed == DEED_GC) {
            m->laws->tally[TALLY_COLLECTED] += (uint64_t)a->done->most;
            m->laws->tally[TALLY_SPARED] += (uint64_t)a->done->revision;
        }
        m->laws->tally[TALLY_PINS] += act_ok(a) && a->begin->deed == DEED_PUT;
    }
}
