/* trace.h - a driver that watches another one.
 *
 * Counts calls and round trips (a read with any number of questions is one, a commit is
 * one), can print a line per call, and can hold every attempt to a budget: round trips
 * are part of the contract of the nouns, so tests assert them here.
 */
#ifndef STORE_TRACE_H
#define STORE_TRACE_H

#include "store/driver.h"

struct trace_counts {
    uint64_t attempts;  /* begin */
    uint64_t reads;     /* read */
    uint64_t questions; /* in all reads */
    uint64_t commits;   /* commit, guard-only checks included */
    uint64_t conflicts; /* commits that met one */
    uint64_t failures;  /* calls that returned anything but BELAY_OK */
};

/* One line per call, without newline, borrowed for the call.  Holds no values, only
 * names, counts and codes: `commit ns=default plan=7 guards=2 effects=3 rc=ok`. */
typedef void trace_line(void *arg, const char *line);

/* Wraps `inner`, which belongs to the wrapper from then on: closing the wrapper closes
 * it.  On failure `inner` is still the caller's.  `line` may be NULL. */
MUST_USE belay_rc trace_wrap(struct driver **out, struct driver *inner,
                             trace_line *line, void *arg, struct belay_error *err);

struct trace_counts trace_counts(const struct driver *d);
void trace_reset(struct driver *d);

/* From now on an attempt's round trip beyond the budget answers `misuse`, reason
 * round_trips, without reaching the inner driver.  0: no budget. */
void trace_budget(struct driver *d, unsigned round_trips);

#endif /* STORE_TRACE_H */
