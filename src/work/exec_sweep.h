/* exec_sweep.h - everything that is due, index by index, for the timers.
 *
 * A sweep goes over some indexes in pages, one transaction each, and does to every item
 * what its time asks for.  An item that cannot be handled does not stand in the way of
 * the others, and is left alone for a while when that happens again and again.
 */
#ifndef WORK_EXEC_SWEEP_H
#define WORK_EXEC_SWEEP_H

#include "base/rng.h"
#include "policy/filter.h"
#include "work/execution_rows.h"

/* Items that failed so often in a row are left alone for so many steps. */
#define FAILURES_MAX 3
#define REST_STEPS 10
#define SICK_MAX 64

struct sick_item {
    char member[64];
    int failures;
    int rest; /* steps for which it is left alone */
};

/* What a process remembers between its steps; when it is full the oldest goes. */
struct sickbay {
    struct sick_item item[SICK_MAX];
    size_t next;
};

/* A step has begun: who has rested is tried once more. */
void sickbay_rest(struct sickbay *s);

struct sweep; /* indexes that are handled in the same way */

/* One step of the timers. */
struct timing {
    const struct exec_site *site;
    struct filter filter;
    struct sickbay *sick;
    struct lease_holder holder;
    char token[LEASE_ID_HEX + 1], lease_id[LEASE_ID_HEX + 1];
    struct rng chance; /* for jitter */

    /* Of one run of a body. */
    int64_t now_ms;
    struct event_list *events;
    struct due_count count;
    int64_t keys;
    bool left;   /* something was begun and is not finished */
    bool worked; /* something was for this timer */

    /* A page of the sweep that is being made. */
    const struct sweep *sweep;
    size_t limit;
    struct hits hits;
    size_t at; /* the item in hand; n: none, the commit failed */
    bool begun;
    int64_t rank; /* the last item that is done with: the cursor */
    uint8_t member[SCHEMA_NAME_MAX], index[SCHEMA_NAME_MAX];
    size_t member_len, index_len;

    bool due, busy, held;
    int64_t held_until_ms;
    struct belay_timer_report report;
};

/* All sweeps, one after the other; adds to the report. */
MUST_USE belay_rc sweep_all(struct timing *x, struct belay_error *err);

/* Every index that is swept. */
#define SWEPT_MAX 14
size_t sweep_indexes(struct bytes out[SWEPT_MAX]);

#endif /* WORK_EXEC_SWEEP_H */
