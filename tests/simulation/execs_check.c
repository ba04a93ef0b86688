/* What must be true of every state of the namespace. */
#include "execs.h"

#include <stdio.h>

#define ORDER_STEP ((int64_t)1000000000000)

/* --- where an execution stands --- */

static bool stands(const struct xrank *at, bool shall, int64_t rank)
{
    return shall ? at->n == 1 && at->rank == rank : at->n == 0;
}

static int64_t earliest(const struct xrow *r)
{
    int64_t lost = xlost_at(r), timeout = xtime(r, EXEC_TIMEOUT_AT_MS);

    return timeout < lost ? timeout : lost;
}

static const char *rank_fault(const struct xrow *r)
{
    int64_t rank = r->v[EXEC_RANK];

    switch (xplace_of(r)) {
    case XP_READY:
        return rank == r->v[EXEC_CREATED_AT_MS] - r->v[EXEC_PRIORITY] * ORDER_STEP
                   ? NULL
                   : "W1: ready at another rank than its priority and age give";
    case XP_GRANTED:
        return rank == r->v[EXEC_GRANT_UNTIL_MS] ? NULL : "W1: granted at another rank";
    case XP_DELAYED:
        return rank == r->v[EXEC_DELAY_UNTIL_MS] ? NULL : "W1: delayed to another time";
    case XP_LEASED:
        return rank <= earliest(r) ? NULL : "L7: it is looked at too late";
    case XP_DONE:
        return rank == r->v[EXEC_FINISHED_AT_MS] + r->v[EXEC_RETENTION_MS]
                   ? NULL
                   : "W1: kept for another time than its retention";
    case XP_NOWHERE:
        break;
    }
    return "W1: a vector that no step leads to";
}

static const char *place_fault(const struct xrow *r)
{
    bool lost = r->v[EXEC_LOST_AT_MS] != XNULL;
    bool timed = r->v[EXEC_DEADLINE_AT_MS] != XNULL && !xis_terminal(r);

    if (r->place.n != 1)
        return "W1: not in exactly one scheduling index";
    if (r->place.index != xindex_of(r))
        return "W1: in another index than its vector says";
    if (r->place.rank != r->v[EXEC_RANK])
        return "W1: at another rank than its row says";
    if (!stands(&r->lost, lost, r->v[EXEC_LOST_AT_MS]))
        return "W1: listed as lost and it is not, or the other way round";
    if (!stands(&r->deadline, timed, r->v[EXEC_DEADLINE_AT_MS]))
        return "W1: its deadline is not listed, or one that it does not have";
    if (!stands(&r->listed, true, r->v[EXEC_CREATED_AT_MS]))
        return "W1: not in the list of all";
    return rank_fault(r);
}

/* --- what it says --- */

static const char *vector_fault(const struct xrow *r)
{
    bool terminal = xis_terminal(r);

    for (unsigned i = EXEC_PHASE; i <= EXEC_ATTEMPT_STATE; i++) {
        if (r->v[i] < 0)
            return "W1: a vector that no step leads to";
    }
    if (r->v[EXEC_STATE] != xderive(r))
        return "V1: the public state is not the one that follows from its vector";
    if (terminal != (r->v[EXEC_OUTCOME] != BELAY_TERMINAL_NONE) ||
        terminal != (r->v[EXEC_FINISHED_AT_MS] != XNULL))
        return "W5: ended without an outcome and a time, or the other way round";
    if (terminal && r->v[EXEC_OWNERSHIP] != BELAY_UNOWNED)
        return "W5: ended and still owned";
    if (xis_leased(r) != (r->v[EXEC_ATTEMPT_STATE] == BELAY_RUNNING_ATTEMPT))
        return "W2: leased and not running, or the other way round";
    if (xis_leased(r) &&
        (r->v[EXEC_PHASE] != BELAY_PHASE_ACTIVE ||
         r->v[EXEC_LEASE + LEASE_TOKEN] == XNULL ||
         r->v[EXEC_LEASE + LEASE_ID] == XNULL || r->v[EXEC_LEASE + LEASE_FENCE] <= 0))
        return "W2: leased to nobody";
    bool lost = r->v[EXEC_OWNERSHIP] == BELAY_LEASE_EXPIRED_RECLAIMABLE ||
                r->v[EXEC_OWNERSHIP] == BELAY_LEASE_REVOKED;
    if (lost != (r->v[EXEC_LOST_AT_MS] != XNULL))
        return "W1: lost without a time, or the other way round";
    return NULL;
}

/* Rows 0 to attempts-1; the last one may be in the execution's own row (W3). */
static const char *attempts_fault(const struct xstate *st, const struct xrow *r)
{
    int64_t n = 0, attempts = r->v[EXEC_ATTEMPTS], fence = 0;
    bool again = r->v[EXEC_ATTEMPT_STATE] == BELAY_PENDING_RETRY_ATTEMPT ||
                 r->v[EXEC_ATTEMPT_STATE] == BELAY_PENDING_REPLAY_ATTEMPT;

    for (size_t i = 0; i < st->n_attempts; i++) {
        const struct xattempt *a = &st->attempt[i];
        if (a->execution != r->id)
            continue;
        n++;
        if (a->index < 0 || a->index >= attempts)
            return "W3: an attempt that was not counted";
        if (a->end == xstr("started"))
            return "W3: an attempt in the archive still runs";
        if (a->fence <= fence && a->index > 0)
            return "W6: fences of attempts do not rise";
        fence = a->fence;
    }
    if (n != attempts && n != attempts - 1)
        return "W3: attempts do not add up";
    if (n == attempts && xis_leased(r))
        return "W3: the attempt that runs is in the archive";
    if (n != attempts && again)
        return "W3: another attempt follows one that is not in the archive";
    return NULL;
}

static const char *counts_fault(const struct xrow *r, const struct xwant *spec)
{
    if (r->v[EXEC_RETRIES] > spec->max_retries)
        return "W5: more retries than its policy allows";
    if (r->v[EXEC_RECLAIMS] > spec->max_reclaims)
        return "W5: more reclaims than its policy allows";
    if (r->v[EXEC_REPLAYS] > BELAY_MAX_REPLAYS)
        return "W5: replayed too often";
    if (r->v[EXEC_ATTEMPTS] < r->v[EXEC_RETRIES] + r->v[EXEC_RECLAIMS])
        return "W3: more losses than attempts";
    return NULL;
}

/* --- what was submitted --- */

static uint64_t tags_of(const struct xwant *spec, unsigned *bits)
{
    char text[96], first[32] = "", second[32] = "";

    *bits = 0;
    if (spec->tag[0] > 0)
        (void)snprintf(first, sizeof(first), "\"k0\":\"v%u\"", spec->tag[0]);
    if (spec->tag[1] > 0)
        (void)snprintf(second, sizeof(second), "\"k1\":\"v%u\"", spec->tag[1]);
    for (unsigned i = 0; i < X_TAGS; i++)
        *bits |= spec->tag[i] > 0 ? 1U << (i * 4 + spec->tag[i]) : 0;
    if (*bits == 0)
        return 0;
    (void)snprintf(text, sizeof(text), "{%s%s%s}", first,
                   spec->tag[0] > 0 && spec->tag[1] > 0 ? "," : "", second);
    return xstr(text);
}

static const char *spec_fault(const struct xstate *st, const struct xrow *r,
                              const struct xwant *spec)
{
    unsigned bits;
    uint64_t tags = tags_of(spec, &bits);

    if (r->specs != 1)
        return "W1: what was submitted is missing";
    if (r->requires != spec->requires || r->key != spec->key)
        return "L9: other work than was submitted";
    if (r->tags != tags || r->tag_ranks != bits || r->tag_ranks_wrong > 0)
        return "W1: its tags and their indexes do not agree";
    for (size_t i = 0; i < st->n_routes; i++) {
        const struct xroute *o = &st->route[i];
        if (o->lane == (uint64_t)r->v[EXEC_LANE] &&
            o->route == (uint64_t)r->v[EXEC_ROUTE])
        return o->requires == r->requires && o->listed == 1
                   ? NULL
                   : "W1: its route is another one, or not listed";
    }
    return "W1: its route is not there";
}

/* --- all of them --- */

static const char *row_fault(struct execs *w, const struct xstate *st,
                             const struct xrow *r)
{
    const struct xseen *seen = xseen_at(w, r->id);
    const char *fault;

    if (!seen)
        return "L9: an execution that nobody submitted";
    if ((fault = vector_fault(r)) || (fault = place_fault(r)))
        return fault;
    if ((fault = attempts_fault(st, r)) || (fault = counts_fault(r, &seen->spec)))
        return fault;
    if (r->ends > 0 && r->v[EXEC_ATTEMPT_STATE] == BELAY_PENDING_REPLAY_ATTEMPT)
        return "W5: replayed and the end before is still told";
    return spec_fault(st, r, &seen->spec);
}

static const char *frames_fault(const struct xstate *st)
{
    for (size_t i = 0; i < st->n_heads; i++) {
        const struct xhead *h = &st->head[i];
        const struct xrow *r = xrow_at(st, h->execution);
        if (h->logs != h->last - h->first + 1 ||
            (h->logs > 0 && h->last_log != h->last))
            return "frames: other ones than their head counts";
        if (!r || h->attempt < 0 || h->attempt >= r->v[EXEC_ATTEMPTS])
            return "frames: of an attempt that never was";
    }
    return NULL;
}

static const char *grants_fault(const struct xstate *st)
{
    size_t granted = 0;

    for (size_t i = 0; i < st->n_rows; i++) {
        const struct xrow *r = &st->row[i];
        bool has = r->v[EXEC_GRANT] != XNULL;
        if (has != (r->v[EXEC_GRANT_UNTIL_MS] != XNULL) ||
            has != (r->v[EXEC_GRANT_WORKER] != XNULL))
            return "W1: half a grant";
        if (!has)
            continue;
        const struct xgrant *g = xgrant_at(st, (uint64_t)r->v[EXEC_GRANT]);
        if (!g || g->execution != r->id || g->until_ms != r->v[EXEC_GRANT_UNTIL_MS] ||
            g->worker != (uint64_t)r->v[EXEC_GRANT_WORKER])
            return "W1: a grant without its row";
        granted++;
    }
    return granted == st->n_grants ? NULL : "W1: a grant of nothing";
}

static const char *keys_fault(const struct xstate *st)
{
    for (size_t i = 0; i < st->n_keys; i++) {
        const struct xkey *k = &st->key[i];
        if (k->rank.n != 1 || k->rank.rank != k->until_ms)
            return "keys: one is not listed, or at another time";
        const struct xrow *r = xrow_at(st, k->execution);
        if (r && r->key != k->key)
            return "keys: one leads to an execution of another key";
    }
    return NULL;
}

void xstate_check(struct execs *w, const struct xstate *st)
{
    const char *fault = st->fault;

    for (size_t i = 0; i < st->n_attempts && !fault; i++) {
        if (!xrow_at(st, st->attempt[i].execution))
            fault = "W3: an attempt of an execution that is not there";
    }
    for (size_t i = 0; i < st->n_rows && !fault; i++)
        fault = row_fault(w, st, &st->row[i]);
    if (!fault)
        fault = frames_fault(st);
    if (!fault)
        fault = grants_fault(st);
    if (!fault)
        fault = keys_fault(st);
    xcomplain(w, fault);
}
