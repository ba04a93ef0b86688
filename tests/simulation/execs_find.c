/* Finding something in a state; words, the state that follows, where one stands. */
#include "execs.h"

#include <stdio.h>

uint64_t xtext(struct bytes b)
{
    return b.len == 0 ? 0 : model_digest(5, b.ptr, b.len) >> 1 | 1;
}

uint64_t xstr(const char *text)
{
    return text ? xtext(bytes_str(text)) : 0;
}

const char *xlane(unsigned i)
{
    static const char *const lanes[] = { "l0", "l1", "l2", "l3" };

    return lanes[i % COUNT_OF(lanes)];
}

uint64_t xrequires(unsigned needs)
{
    static const char *const sets[] = { NULL, "a", "b", "a,b" };

    return xstr(sets[needs & 3]);
}

struct xrow *xrow_at(const struct xstate *st, uint64_t id)
{
    for (size_t i = 0; i < st->n_rows; i++) {
        if (st->row[i].id == id)
            return (struct xrow *)&st->row[i];
    }
    return NULL;
}

const struct xattempt *xattempt_at(const struct xstate *st, uint64_t execution,
                                   int64_t index)
{
    for (size_t i = 0; i < st->n_attempts; i++) {
        if (st->attempt[i].execution == execution && st->attempt[i].index == index)
            return &st->attempt[i];
    }
    return NULL;
}

struct xhead *xhead_at(const struct xstate *st, uint64_t execution, int64_t attempt)
{
    for (size_t i = 0; i < st->n_heads; i++) {
        if (st->head[i].execution == execution && st->head[i].attempt == attempt)
            return (struct xhead *)&st->head[i];
    }
    return NULL;
}

struct xkey *xkey_at(const struct xstate *st, uint64_t key)
{
    for (size_t i = 0; i < st->n_keys; i++) {
        if (st->key[i].key == key)
            return (struct xkey *)&st->key[i];
    }
    return NULL;
}

const struct xgrant *xgrant_at(const struct xstate *st, uint64_t id)
{
    for (size_t i = 0; i < st->n_grants; i++) {
        if (st->grant[i].id == id)
            return &st->grant[i];
    }
    return NULL;
}

struct xseen *xseen_at(struct execs *w, uint64_t id)
{
    for (size_t i = 0; i < w->n_seen; i++) {
        if (w->seen[i].id == id)
            return &w->seen[i];
    }
    return NULL;
}

/* --- words --- */

#define WORDS_MAX 10
struct words_of {
    unsigned column;
    const char *word[WORDS_MAX];
    int number[WORDS_MAX];
};

/* clang-format off */
static const struct words_of words[] = {
    { EXEC_PHASE, { "runnable", "active", "terminal" },
      { BELAY_PHASE_RUNNABLE, BELAY_PHASE_ACTIVE, BELAY_PHASE_TERMINAL } },
    { EXEC_OWNERSHIP, { "unowned", "leased", "lease_expired_reclaimable", "lease_revoked" },
      { BELAY_UNOWNED, BELAY_LEASED, BELAY_LEASE_EXPIRED_RECLAIMABLE, BELAY_LEASE_REVOKED } },
    { EXEC_ELIGIBILITY, { "eligible_now", "not_eligible_until_time", "not_applicable" },
      { BELAY_ELIGIBLE_NOW, BELAY_NOT_ELIGIBLE_UNTIL_TIME, BELAY_NOT_APPLICABLE } },
    { EXEC_BLOCKING, { "none", "waiting_for_worker", "waiting_for_retry_backoff", "waiting_for_delay" },
      { BELAY_BLOCKING_NONE, BELAY_WAITING_FOR_WORKER, BELAY_WAITING_FOR_RETRY_BACKOFF,
        BELAY_WAITING_FOR_DELAY } },
    { EXEC_OUTCOME, { "none", "success", "failed", "cancelled", "expired" },
      { BELAY_TERMINAL_NONE, BELAY_TERMINAL_SUCCESS, BELAY_TERMINAL_FAILED,
        BELAY_TERMINAL_CANCELLED, BELAY_TERMINAL_EXPIRED } },
    { EXEC_ATTEMPT_STATE, { "none", "pending_first_attempt", "running_attempt", "attempt_interrupted",
                            "pending_retry_attempt", "pending_replay_attempt", "attempt_terminal" },
      { BELAY_ATTEMPT_NONE, BELAY_PENDING_FIRST_ATTEMPT, BELAY_RUNNING_ATTEMPT, BELAY_ATTEMPT_INTERRUPTED,
        BELAY_PENDING_RETRY_ATTEMPT, BELAY_PENDING_REPLAY_ATTEMPT, BELAY_ATTEMPT_TERMINAL } },
    { EXEC_STATE, { "waiting", "delayed", "active", "completed", "failed", "cancelled", "expired" },
      { BELAY_STATE_WAITING, BELAY_STATE_DELAYED, BELAY_STATE_ACTIVE, BELAY_STATE_COMPLETED,
        BELAY_STATE_FAILED, BELAY_STATE_CANCELLED, BELAY_STATE_EXPIRED } },
};
/* clang-format on */

/* Columns without words are no vector's: -2. */
int64_t xword(unsigned column, struct bytes word)
{
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (words[i].column != column)
            continue;
        for (size_t k = 0; k < WORDS_MAX && words[i].word[k]; k++) {
            if (bytes_eq(word, bytes_str(words[i].word[k])))
                return words[i].number[k];
        }
        return -1;
    }
    return -2;
}

/* --- what follows from a vector --- */

int64_t xderive(const struct xrow *r)
{
    static const int64_t ended[] = {
        [BELAY_TERMINAL_NONE] = BELAY_STATE_ANY,
        [BELAY_TERMINAL_SUCCESS] = BELAY_STATE_COMPLETED,
        [BELAY_TERMINAL_FAILED] = BELAY_STATE_FAILED,
        [BELAY_TERMINAL_CANCELLED] = BELAY_STATE_CANCELLED,
        [BELAY_TERMINAL_EXPIRED] = BELAY_STATE_EXPIRED,
    };
    int64_t outcome = r->v[EXEC_OUTCOME];

    if (r->v[EXEC_PHASE] == BELAY_PHASE_TERMINAL)
        return outcome >= 0 && outcome < (int64_t)COUNT_OF(ended) ? ended[outcome]
                                                                  : BELAY_STATE_ANY;
    if (r->v[EXEC_PHASE] == BELAY_PHASE_ACTIVE)
        return BELAY_STATE_ACTIVE;
    return r->v[EXEC_ELIGIBILITY] == BELAY_ELIGIBLE_NOW ? BELAY_STATE_WAITING
                                                        : BELAY_STATE_DELAYED;
}

bool xis_terminal(const struct xrow *r)
{
    return r->v[EXEC_PHASE] == BELAY_PHASE_TERMINAL;
}

bool xis_leased(const struct xrow *r)
{
    return r->v[EXEC_OWNERSHIP] == BELAY_LEASED;
}

enum xplace xplace_of(const struct xrow *r)
{
    bool granted = r->v[EXEC_GRANT_UNTIL_MS] != XNULL;

    if (xis_terminal(r))
        return XP_DONE;
    if (xis_leased(r))
        return XP_LEASED;
    if (r->v[EXEC_PHASE] == BELAY_PHASE_RUNNABLE &&
        r->v[EXEC_ELIGIBILITY] == BELAY_NOT_ELIGIBLE_UNTIL_TIME)
        return XP_DELAYED;
    bool lost = r->v[EXEC_PHASE] == BELAY_PHASE_ACTIVE &&
                (r->v[EXEC_OWNERSHIP] == BELAY_LEASE_EXPIRED_RECLAIMABLE ||
                 r->v[EXEC_OWNERSHIP] == BELAY_LEASE_REVOKED);
    bool waits = r->v[EXEC_PHASE] == BELAY_PHASE_RUNNABLE &&
                 r->v[EXEC_ELIGIBILITY] == BELAY_ELIGIBLE_NOW;
    if (!lost && !waits)
        return XP_NOWHERE;
    return granted ? XP_GRANTED : XP_READY;
}

uint64_t xindex_of(const struct xrow *r)
{
    static const char *const done[] = { "", "done/success", "done/failed",
                                        "done/cancelled", "done/expired" };

    switch (xplace_of(r)) {
    case XP_READY:
        return r->ready;
    case XP_GRANTED:
        return xstr("granted");
    case XP_DELAYED:
        return xstr("delayed");
    case XP_LEASED:
        return xstr("leased");
    case XP_DONE:
        return r->v[EXEC_OUTCOME] > 0 && r->v[EXEC_OUTCOME] < (int64_t)COUNT_OF(done)
                   ? xstr(done[r->v[EXEC_OUTCOME]])
                   : 0;
    case XP_NOWHERE:
        break;
    }
    return 0;
}

int64_t xtime(const struct xrow *r, unsigned column)
{
    return r->v[column] == XNULL ? INT64_MAX : r->v[column];
}
