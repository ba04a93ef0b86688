/* The laws of claims that are used: by whom they can be, and by whom not any more. */
#include <belay/error.h>

#include "session_laws.h"

/* Why the claim's part in this batch had ended before the call; NULL: it had not, as
 * far as anybody knows. */
static const char *ended_before(const struct matter *m, const struct act *use,
                                const struct note_batch *b)
{
    const struct story *y = story_of(m, use->begin->session, b->seq);

    if (!y)
        return "unknown batch";
    for (size_t i = 0; i < y->n_grants; i++) {
        const struct grant *g = &y->grant[i];
        if (g->fence > b->fence && act_before(g->act, use))
            return "superseded";
    }
    if (y->cancelled && y->cancelled_us < use->begin->at_us)
        return "cancelled";
    return NULL;
}

/* Commits that completed the batch, and abandons of this very claim, before. */
static const char *used_up_before(const struct matter *m, size_t at,
                                  const struct note_batch *b)
{
    const struct act *use = &m->acts.act[at];

    for (size_t i = 0; i < at; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->begin->session != use->begin->session || !act_ok(a) ||
            !act_before(a, use))
            continue;
        bool commit = a->begin->deed == DEED_COMMIT &&
                      !maker_is(&a->begin->thing, &use->begin->thing);
        bool abandon = a->begin->deed == DEED_ABANDON && a->done->most > 0;
        if (!commit && !abandon)
            continue;
        for (unsigned j = 0; j < a->begin->n_batches; j++) {
            if (a->begin->batch[j].seq == b->seq &&
                (commit || a->begin->batch[j].fence == b->fence))
                return commit ? "completed" : "abandoned";
        }
    }
    return NULL;
}

/* How many of the claim's batches it had lost for sure when the call began, and why. */
static unsigned stale(const struct matter *m, size_t at, const char **out_why)
{
    const struct note *n = m->acts.act[at].begin;
    unsigned lost = 0;

    for (unsigned j = 0; j < n->n_batches; j++) {
        const char *why = ended_before(m, &m->acts.act[at], &n->batch[j]);
        why = why ? why : used_up_before(m, at, &n->batch[j]);
        lost += why != NULL;
        *out_why = why ? why : *out_why;
    }
    return lost;
}

/* Whether anything can have ended the claim's part in a batch by the time that it was
 * refused. */
static bool may_be_lost(const struct matter *m, const struct act *use,
                        const struct note_batch *b)
{
    const struct story *y = story_of(m, use->begin->session, b->seq);
    int64_t highest = y && y->here ? y->here->fence : y ? y->done_fence : 0;
    bool next_known = false;

    if (!y || y->cancel_tried)
        return true;
    for (size_t i = 0; i < y->n_grants; i++) {
        const struct grant *g = &y->grant[i];
        if (g->fence == b->fence && g->let_go_us && g->let_go_us < use->done->at_us)
            return true;
        if (g->fence > b->fence && g->act->begin->at_us < use->done->at_us)
            return true;
        next_known |= g->fence == b->fence + 1;
        highest = g->fence > highest ? g->fence : highest;
    }
    if (y->done && y->done_fence == b->fence)
        return true;                          /* by an earlier try of its own */
    return highest > b->fence && !next_known; /* by somebody who died */
}

static bool uses_claim(const struct note *n)
{
    return n->n_batches > 0 && (n->deed == DEED_RENEW || n->deed == DEED_ABANDON ||
                                (n->deed == DEED_COMMIT && !(n->flags & NOTE_OTHER)));
}

/* On how many of its batches the call had an effect. */
static unsigned effect(const struct act *a)
{
    if (!act_ok(a) || a->done->flags & NOTE_REPLAYED)
        return 0;
    /* Giving back is about each batch, all else about the whole claim. */
    return a->begin->deed == DEED_ABANDON ? (unsigned)a->done->most
                                          : a->begin->n_batches;
}

static void one_use(struct matter *m, size_t i)
{
    const struct act *a = &m->acts.act[i];
    const char *why = NULL;
    unsigned lost = stale(m, i, &why);

    m->laws->looked[LAW_STALE]++;
    if (effect(a) > a->begin->n_batches - lost)
        law_broken(m->laws, LAW_STALE, "s%d: %s of %s went through, though %s",
                   a->begin->session,
                   a->begin->deed == DEED_COMMIT ? "a commit" : "the use",
                   a->begin->text, why);
    m->laws->tally[TALLY_STALE] += lost > 0 && a->done->rc == BELAY_LEASE_LOST;
    bool late = a->begin->flags & NOTE_STALE_TRY;
    m->laws->tally[TALLY_LATE] += late && effect(a) > 0;
    if (a->done->rc != BELAY_LEASE_LOST)
        return;
    m->laws->looked[LAW_HOLDS]++;
    bool may_be = false;
    for (unsigned j = 0; j < a->begin->n_batches; j++)
        may_be |= may_be_lost(m, a, &a->begin->batch[j]);
    if (!may_be)
        law_broken(m->laws, LAW_HOLDS, "s%d: %s was lost (%s) to nobody",
                   a->begin->session, a->begin->text, a->done->reason);
}

void laws_of_uses(struct matter *m)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->done && uses_claim(a->begin))
            one_use(m, i);
    }
}
