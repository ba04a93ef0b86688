/* execs_steps.h - what the files of the steps share.
 *
 *   execs_steps.c  what all steps do; creating, granting
 *   execs_hold.c   what the holder does
 *   execs_time.c   what time, operators and schedulers do; the table of all
 *
 * A step edits the row of its try, notes what comes with it, and why it may not be taken.
 */
#ifndef SIMULATION_EXECS_STEPS_H
#define SIMULATION_EXECS_STEPS_H

#include "execs.h"

#define XKEPT (-1)

/* The first complaint stays. */
void xobject(struct xtry *t, bool when, const char *complaint);
void xvector(struct xtry *t, int64_t phase, int64_t ownership, int64_t eligibility,
             int64_t blocking, int64_t outcome, int64_t attempt);
void xready(struct xtry *t, int64_t attempt);
void xlater(struct xtry *t, int64_t blocking, int64_t attempt);
void xwrite(struct xtry *t);
void xtell(struct xtry *t, const char *type);
void xdrop_grant(struct xrow *r);
void xarchive(struct xtry *t, const char *end, int64_t ended_ms);
void xend(struct xtry *t, int64_t outcome, uint64_t detail, const char *class_name);

typedef void xstep_run(struct xtry *t);
xstep_run xdo_create, xdo_take;
xstep_run xhold_complete, xhold_retry, xhold_fail, xhold_delay, xhold_release,
    xhold_abort, xhold_renew;
bool xmay_retry(const struct xtry *t, int class_no);
void xretry(struct xtry *t, int class_no);

#endif /* SIMULATION_EXECS_STEPS_H */
