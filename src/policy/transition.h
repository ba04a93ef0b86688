/* transition.h - how the state of an execution may change: one table.
 *
 * Rows carry the numbers of the specification's master table (T1 to T23; T24 is release).
 * A step that has no row for a vector is refused; nothing else in Belay decides what may
 * follow what.
 *
 * Pure: no I/O, no clock, no randomness, no memory.
 */
#ifndef POLICY_TRANSITION_H
#define POLICY_TRANSITION_H

#include "policy/vector.h"

enum step {
    STEP_CREATE,          /* T1 */
    STEP_CREATE_DELAYED,  /* T2 */
    STEP_PROMOTE,         /* T3: its time has come */
    STEP_APPLY_EDGE,      /* T4 */
    STEP_DEPS_SATISFIED,  /* T5 */
    STEP_DEPS_IMPOSSIBLE, /* T6 */
    STEP_BLOCK_BUDGET,    /* T7, by what blocks it */
    STEP_BLOCK_QUOTA,
    STEP_BLOCK_ROUTE,
    STEP_BLOCK_LANE_STATE,
    STEP_BLOCK_OPERATOR,
    STEP_UNBLOCK,           /* T8 */
    STEP_CLAIM,             /* T9: a fresh attempt, first, retry or replay */
    STEP_CLAIM_RESUMED,     /* T9: the attempt that was interrupted goes on */
    STEP_RECLAIM,           /* T9: a new attempt after a lease was lost */
    STEP_COMPLETE,          /* T10 */
    STEP_RETRY,             /* T11 */
    STEP_DELAY,             /* T12 */
    STEP_WAIT_CHILDREN,     /* T13 */
    STEP_FAIL,              /* T14 */
    STEP_SUSPEND,           /* T15; the blocking reason is the caller's */
    STEP_RESUME,            /* T16 */
    STEP_RESUME_DELAYED,    /* T16 with a delay */
    STEP_SUSPENSION_FAIL,   /* T17 */
    STEP_SUSPENSION_CANCEL, /* T17 */
    STEP_SUSPENSION_EXPIRE, /* T17 */
    STEP_LEASE_EXPIRE,      /* T18 */
    STEP_REVOKE,            /* T19 */
    STEP_RECLAIM_CAPPED,    /* T20 */
    STEP_CANCEL,            /* T21 */
    STEP_EXPIRE,            /* T22 */
    STEP_REPLAY,            /* T23 */
    STEP_REPLAY_BLOCKED,    /* T23 of a skipped member of a flow */
    STEP_RELEASE,           /* T24: given back, the same attempt, eligible now */
    STEP_COUNT
};

const char *step_name(enum step s);   /* "complete" */
const char *step_number(enum step s); /* "T10" */

/* The vector after a step; `from` is NULL for the two that create, and may be `out`.  False,
 * and *out untouched: this step does not follow that vector.  After STEP_SUSPEND the caller
 * may put another of the row's blocking reasons; waiting_for_signal is the usual one. */
MUST_USE bool step_apply(enum step s, const struct belay_vector *from,
                         struct belay_vector *out);

/* Why a step is refused, as the reason of wrong_state, by the first dimension that does not
 * fit: terminal, not_active, not_leased, leased, not_terminal, not_suspended, active,
 * suspended, not_eligible, not_delayed, not_blocked, interrupted, not_interrupted,
 * not_skipped, exists, nothing.  NULL: it is not refused. */
const char *step_refusal(enum step s, const struct belay_vector *from);

/* What is wrong with the table, in one line, or NULL: a value that is none, a step without
 * a row, two rows of a step that fit one vector, a row that no vector comes to, a result that
 * cannot be or whose place or state is another than it should be (vector.h), a vector that
 * can only end, without success, a terminal vector that is left for one that is no new
 * beginning.  Walks every vector that can be reached.  For start-up and tests. */
const char *step_table_fault(void);

/* The table row by row, for the documentation: false when i is past the end.  `from` has
 * the dimensions that matter, with " / " between them, or "nothing".  Cells of a dimension
 * that is kept are "kept", several values are joined by ", ".  The public state is derived
 * from the others, and shown where it is the same whatever is kept. */
#define STEP_CELL_MAX 192
struct step_row {
    const char *number, *step;
    char from[STEP_CELL_MAX * 2];
    char to[7][STEP_CELL_MAX]; /* six dimensions, then the public state */
};
MUST_USE bool step_row_at(size_t i, struct step_row *out);

/* Every vector that can be reached from the two that create, at most max; returns how
 * many there are. */
size_t step_reachable(struct belay_vector *out, size_t max);

#endif /* POLICY_TRANSITION_H */
