/* ledger.h - a workload whose every step touches everything a store can keep, and the
 * check that what is stored could only have come from whole steps.
 *
 * Slots work independently; each takes the steps 1, 2, 3 ... of its own.  One step of a
 * slot, in one transaction:
 *
 *     thing "w<slot>"   n = step; its counter + 1
 *     part              ("w<slot>", step) enters, the one LEDGER_KEPT before it leaves
 *     rank "steps"      the same with member "w<slot>.<step>"
 *     rank "last"       member "w<slot>" moves to rank = step
 *     head, log "all"   the next entry says "w<slot>.<step>"; old entries are trimmed
 *     feed "done"       likewise
 *     things "a<i>"     an amount goes from one account to another
 *     chunk             of more than a page, every fourth step
 */
#ifndef TESTS_CRASH_LEDGER_H
#define TESTS_CRASH_LEDGER_H

#include "rig.h"

#define LEDGER_SLOTS 64
#define LEDGER_KEPT 12
#define LEDGER_LOG_KEPT 40
#define LEDGER_ACCOUNTS 5
#define LEDGER_OPENING 1000

struct ledger_step {
    unsigned slot;
    int64_t step;                 /* set by the body */
    bool checkpoint;              /* a checkpoint follows the commit */
    struct rig *rig;              /* for that; else may be NULL */
    uint8_t chunk[5000];          /* must stay until the transaction is over */
    char id[24], was[48], at[48]; /* names, likewise */
    char from[8], to[8];
};

/* The body; arg is a struct ledger_step. */
belay_rc ledger_body(struct txn *t, void *arg);

/* How many steps each slot has taken. */
struct ledger {
    int64_t steps[LEDGER_SLOTS];
    int64_t total;
};

/* Reads everything, and says what is wrong in `why` (empty: nothing). */
bool ledger_check(struct rig *r, struct ledger *out, char why[200]);

/* The step slot has taken last; reads only. */
belay_rc ledger_last(struct rig *r, unsigned slot, int64_t *out);

#endif /* TESTS_CRASH_LEDGER_H */
