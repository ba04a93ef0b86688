/* The laws of inboxes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <belay/error.h>

#include "session_laws.h"

/* --- L1 L2 L3 L10 --- */

static void fences_of_batch(struct matter *m, int s, int64_t seq, struct story *y,
                            uint64_t *burned)
{
    int64_t highest = y->here ? y->here->fence : 0;

    for (size_t i = 0; i < y->n_grants; i++) {
        const struct grant *g = &y->grant[i];
        if (g->fence > highest && y->here)
            law_broken(m->laws, LAW_FENCES,
                       "s%d/%lld: fence %lld was granted, the store has %lld", s,
                       (long long)seq, (long long)g->fence, (long long)highest);
        highest = g->fence > highest ? g->fence : highest;
        for (size_t j = i + 1; j < y->n_grants; j++) {
            const struct grant *later = &y->grant[j];
            if (later->fence == g->fence)
                law_broken(m->laws, LAW_FENCES,
                           "s%d/%lld: fence %lld was granted twice", s, (long long)seq,
                           (long long)g->fence);
            if (act_before(later->act, g->act))
                law_broken(
                    m->laws, LAW_FENCES, "s%d/%lld: fence %lld was granted after %lld",
                    s, (long long)seq, (long long)g->fence, (long long)later->fence);
        }
        m->laws->looked[LAW_FENCES]++;
        if (y->done && g->fence > y->done_fence)
            law_broken(m->laws, LAW_STALE,
                       "s%d/%lld: completed under fence %lld after %lld was granted", s,
                       (long long)seq, (long long)y->done_fence, (long long)g->fence);
    }
    /* Each grant takes one number (L10), so the missing ones are of lost answers (L3). */
    if (highest < (int64_t)y->n_grants)
        law_broken(m->laws, LAW_FENCES, "s%d/%lld: %zu grants up to fence %lld", s,
                   (long long)seq, y->n_grants, (long long)highest);
    else
        *burned += (uint64_t)highest - y->n_grants;
}

static void fences(struct matter *m)
{
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        uint64_t burned = 0;
        for (size_t i = 1; i <= m->n_story[s]; i++)
            fences_of_batch(m, s, (int64_t)i, &m->story[s][i], &burned);
        if (burned > m->unanswered[s])
            law_broken(m->laws, LAW_FENCES,
                       "s%d: %llu fences are missing, lost claims asked for %llu", s,
                       (unsigned long long)burned,
                       (unsigned long long)m->unanswered[s]);
        m->laws->tally[TALLY_BURNED] += burned;
    }
}

/* --- L1 L6 L7 --- */

/* Stores on a server tell a time that is never ahead of the server's clock, which is the one that
 * notes have; it may be behind, differently for each worker.  So it is not the times that claims
 * tell which are compared, but when their answers were there. */
static void leases(struct matter *m)
{
    for (size_t i = 0; i < m->n_grants; i++) {
        const struct note *told = m->grants[i].act->done;
        if (told->claimed_at_ms > told->wall_ms)
            law_broken(m->laws, LAW_TIME, "s%d/%lld: granted at %lld, told at %lld",
                       m->grants[i].session, (long long)m->grants[i].seq,
                       (long long)told->claimed_at_ms, (long long)told->wall_ms);
    }
    for (size_t i = 1; i < m->n_grants; i++) {
        const struct grant *a = &m->grants[i - 1], *b = &m->grants[i];
        if (a->session != b->session || a->seq != b->seq)
            continue;
        m->laws->looked[LAW_TIME]++;
        if (a->let_go_us && a->let_go_us < b->act->done->at_us)
            continue;
        m->laws->tally[TALLY_TAKEOVERS]++;
        if (b->act->done->wall_ms < a->expires_at_ms)
            law_broken(m->laws, LAW_TIME,
                       "s%d/%lld: fence %lld at %lld, while %lld had until %lld",
                       a->session, (long long)a->seq, (long long)b->fence,
                       (long long)b->act->done->wall_ms, (long long)a->fence,
                       (long long)a->expires_at_ms);
    }
}

/* --- L8 --- */

/* Whether this part of a claim has come to its end in a way of its own. */
static bool ended_alone(const struct story *y, int64_t fence)
{
    return y->cancel_tried || (y->here && y->here->fence > fence) ||
           (y->done && y->done_fence > fence);
}

/* While a claim holds one of its batches it holds all that nobody else has got. */
static void claim_is_whole(struct matter *m, const struct act *a)
{
    const struct note *n = a->done;
    unsigned held = 0, gone = 0;

    for (unsigned j = 0; j < n->n_batches; j++) {
        const struct story *y = story_of(m, n->session, n->batch[j].seq);
        if (!y)
            continue;
        bool mine =
            y->here && y->here->fence == n->batch[j].fence && *y->here->claim_id;
        held += mine;
        gone += !mine && !ended_alone(y, n->batch[j].fence);
        if (j > 0 && n->batch[j - 1].seq >= n->batch[j].seq)
            law_broken(m->laws, LAW_WHOLE, "s%d: a claim out of order", n->session);
    }
    m->laws->looked[LAW_WHOLE]++;
    if (n->n_batches > (uint64_t)a->begin->most)
        law_broken(m->laws, LAW_WHOLE, "s%d: %u batches, %lld asked for", n->session,
                   n->n_batches, (long long)a->begin->most);
    if (held > 0 && gone > 0)
        law_broken(m->laws, LAW_WHOLE, "s%d: %s holds %u batches, %u are gone",
                   n->session, n->text, held, gone);
}

/* --- L9 --- */

/* How often this payload was submitted to the session. */
static unsigned submitted(const struct matter *m, int session, const struct maker *item)
{
    unsigned tries = 0;

    for (size_t i = 0; i < m->acts.n; i++) {
        const struct note *n = m->acts.act[i].begin;
        tries += n->deed == DEED_ENQUEUE && n->session == session &&
                 maker_is(&n->thing, item);
    }
    return tries;
}

static void nothing_else(struct matter *m, int s)
{
    const struct truth_session *t = &m->truth->session[s];

    for (size_t i = 0; i < t->n_batches; i++) {
        unsigned there = 0;
        for (size_t j = 0; j < t->n_batches; j++)
            there += maker_is(&t->batch[i].item, &t->batch[j].item);
        if (!t->batch[i].known || there > submitted(m, s, &t->batch[i].item))
            law_broken(m->laws, LAW_ENTERED, "s%d/%lld: nobody enqueued that", s,
                       (long long)t->batch[i].seq);
    }
    for (size_t i = 0; i < m->n_grants; i++) {
        const struct grant *g = &m->grants[i];
        if (g->session != s)
            continue;
        for (unsigned j = 0; j < g->act->done->n_batches; j++) {
            const struct note_batch *b = &g->act->done->batch[j];
            if (b->seq == g->seq && submitted(m, s, &b->item) == 0)
                law_broken(m->laws, LAW_ENTERED, "s%d/%lld: granted, never enqueued", s,
                           (long long)g->seq);
        }
    }
}

static void entered(struct matter *m, int s)
{
    for (size_t i = 1; i <= m->n_story[s]; i++) {
        const struct story *y = &m->story[s][i];
        unsigned places = (y->here ? 1 : 0) + y->n_done;
        m->laws->looked[LAW_ENTERED] += y->entered != NULL;
        if (places > 1 || (y->cancelled && places > 0))
            law_broken(m->laws, LAW_ENTERED, "s%d/%zu: %u times completed%s%s", s, i,
                       y->n_done, y->here ? ", and there" : "",
                       y->cancelled ? ", and cancelled" : "");
        if (y->entered && places == 0 && !y->cancel_tried)
            law_broken(m->laws, LAW_ENTERED, "s%d/%zu: lost", s, i);
        if (y->entered && y->here &&
            !maker_is(&y->here->item, &y->entered->begin->thing))
            law_broken(m->laws, LAW_ENTERED, "s%d/%zu: has another payload", s, i);
    }
}

/* --- L12 --- */

/* Whether the batch could have been granted all the time that the claim took. */
static bool was_eligible(const struct story *y, const struct act *claim)
{
    if (!y->entered || !act_before(y->entered, claim) || y->cancel_tried ||
        y->entered->begin->flags & NOTE_LATER)
        return false;
    if (y->n_grants == 0) /* else it may have been taken by somebody who died */
        return y->here && y->here->fence == 0;
    return y->grant[0].fence == 1 && y->grant[0].act->begin->at_us > claim->done->at_us;
}

static void order_of_claim(struct matter *m, const struct act *a)
{
    const struct note *n = a->done;
    int64_t last = n->batch[n->n_batches - 1].seq;

    for (int64_t seq = 1; seq < last; seq++) {
        const struct story *y = story_of(m, n->session, seq);
        bool mine = false;
        for (unsigned j = 0; j < n->n_batches; j++)
            mine |= n->batch[j].seq == seq;
        if (!mine && y && was_eligible(y, a))
            law_broken(m->laws, LAW_ORDER, "s%d: %lld was granted before %lld",
                       n->session, (long long)last, (long long)seq);
    }
    m->laws->looked[LAW_ORDER]++;
}

/* Sequences follow the order of calls that did not overlap. */
static void order_of_numbers(struct matter *m, int s)
{
    int64_t seq = 0;
    const struct act *was = NULL;

    for (size_t i = 1; i <= m->n_story[s]; i++) {
        const struct act *a = m->story[s][i].entered;
        if (!a)
            continue;
        /* Of all with smaller numbers the one that began last says most. */
        if (was && act_before(a, was))
            law_broken(m->laws, LAW_ORDER, "s%d: %zu entered before %lld", s, i,
                       (long long)seq);
        if (!was || a->begin->at_us > was->begin->at_us) {
            was = a;
            seq = (int64_t)i;
        }
        m->laws->looked[LAW_ORDER]++;
    }
}

/* --- all --- */

static void count(struct matter *m)
{
    static const enum tally of[DEEDS] = {
        [DEED_ENQUEUE] = TALLY_ENQUEUED,
        [DEED_RENEW] = TALLY_RENEWED,
    };

    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        uint64_t *tally = m->laws->tally;
        tally[TALLY_LOST_ANSWERS] += !a->done;
        if (!act_ok(a))
            continue;
        if (of[a->begin->deed])
            tally[of[a->begin->deed]]++;
        if (a->begin->deed == DEED_ABANDON)
            tally[TALLY_ABANDONED] += (uint64_t)a->done->most;
        if (a->begin->deed == DEED_CANCEL)
            tally[TALLY_CANCELLED] += (a->done->flags & NOTE_FOUND) != 0;
    }
    m->laws->tally[TALLY_GRANTS] += m->n_grants;
}

void laws_of_inboxes(struct matter *m)
{
    count(m);
    fences(m);
    leases(m);
    laws_of_uses(m);
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        nothing_else(m, s);
        entered(m, s);
        order_of_numbers(m, s);
    }
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->begin->deed != DEED_CLAIM || !a->done || a->done->n_batches == 0)
            continue;
        claim_is_whole(m, a);
        order_of_claim(m, a);
    }
}
