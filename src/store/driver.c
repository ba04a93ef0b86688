#include "store/driver.h"

#include <assert.h>

#include "store/wake.h"

belay_rc driver_begin(struct driver *d, void *attempt, struct bytes ns,
                      struct belay_error *err)
{
    return d->ops->begin(d, attempt, ns, err);
}

belay_rc driver_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                     struct belay_arena *a, struct belay_error *err)
{
    assert(n > 0);
    return d->ops->read(d, attempt, reads, n, a, err);
}

belay_rc driver_commit(struct driver *d, void *attempt, const struct plan *plan,
                       struct plan_result *result, struct belay_error *err)
{
    assert(plan->n_guards + plan->n_effects > 0);
    assert(plan->n_scans == 0 ||
           ((d->caps & DRIVER_SCAN_GUARDS) && plan->n_effects > 0));
    result->conflict = false;
    result->failed_guard = 0;
    result->failed_scan = 0;
    return d->ops->commit(d, attempt, plan, result, err);
}

void driver_end(struct driver *d, void *attempt)
{
    d->ops->end(d, attempt);
}

bool driver_runs_bodies(const struct driver *d)
{
    return d->ops->submit != NULL;
}

belay_rc driver_submit(struct driver *d, struct driver_job *job,
                       struct belay_error *err)
{
    assert(driver_runs_bodies(d));
    return d->ops->submit(d, job, err);
}

void driver_wake(struct driver *d, struct bytes ns, struct bytes topic)
{
    wake_post(d->hub, ns, topic);
    if (d->ops->notify)
        d->ops->notify(d, ns, topic);
}

belay_rc driver_now_ms(struct driver *d, void *attempt, const struct belay_clock *clock,
                       int64_t *out, struct belay_error *err)
{
    if (d->ops->now_ms)
        return d->ops->now_ms(d, attempt, out, err);
    *out = clock->wall_ms(clock->arg);
    return BELAY_OK;
}

belay_rc driver_lineage(struct driver *d, void *attempt, struct bytes known,
                        struct lineage *out, struct belay_error *err)
{
    *out = (struct lineage){ .restarted = false };
    return d->ops->lineage ? d->ops->lineage(d, attempt, known, out, err) : BELAY_OK;
}

uint64_t driver_era(struct driver *d, void *attempt)
{
    return d->ops->era ? d->ops->era(d, attempt) : 1;
}

belay_rc driver_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                     struct belay_error *err)
{
    return d->ops->walk(d, ns, visit, arg, err);
}

belay_rc driver_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                      struct belay_error *err)
{
    assert(limit > 0);
    if (!d->ops->erase)
        return err_reason(err, BELAY_UNAVAILABLE, "erase",
                          "%s: this store cannot erase a namespace", d->ops->name);
    return d->ops->erase(d, ns, limit, more, err);
}

belay_rc driver_check(struct driver *d, finding_report *report, void *arg,
                      struct belay_error *err)
{
    return d->ops->check ? d->ops->check(d, report, arg, err) : BELAY_OK;
}

belay_rc driver_doctor(struct driver *d, finding_report *report, void *arg,
                       struct belay_error *err)
{
    return d->ops->doctor ? d->ops->doctor(d, report, arg, err) : BELAY_OK;
}

enum durability driver_durability(struct driver *d)
{
    return d->ops->durability(d);
}

void driver_close(struct driver *d)
{
    if (d)
        d->ops->close(d);
}

belay_rc counter_add(const struct effect *e, int64_t old, int64_t *out,
                     struct belay_error *err)
{
    const struct column *column = &e->counter.ref.type->columns[e->counter.column];
    int64_t sum = 0;

    if (e->kind == EFFECT_RAISE) {
        *out = old > e->counter.amount ? old : e->counter.amount;
        return BELAY_OK;
    }
    bool overflow = __builtin_add_overflow(old, e->counter.amount, &sum);
    if (!overflow && sum >= e->counter.min && sum <= e->counter.max) {
        *out = sum;
        return BELAY_OK;
    }
    bool above = overflow ? e->counter.amount > 0 : sum > e->counter.max;
    belay_rc rc = err_reason(err, BELAY_OUT_OF_RANGE, column->name,
                             "%s.%s: would leave its bounds", e->counter.ref.type->name,
                             column->name);
    err_entity(err, bytes_str(e->counter.ref.type->name));
    err_numbers(err, above ? e->counter.max : e->counter.min, old);
    return rc;
}
