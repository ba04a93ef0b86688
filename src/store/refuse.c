#include "store/refuse.h"

belay_rc refuse_rank(const struct effect *e, const int64_t *found,
                     struct belay_error *err)
{
    bool adds = e->kind == EFFECT_RANK_ADD;

    if (adds ? !found : found && *found == e->rank.old_rank)
        return BELAY_OK;
    belay_rc rc = err_reason(err, BELAY_CORRUPT, "rank", "rank entry: %s",
                             adds     ? "the member is in the index already"
                             : !found ? "the member is not in the index"
                                      : "the member stands at another rank");
    err_entity(err, e->rank.index);
    return rc;
}

bool log_needs_tail(const struct plan *plan, size_t i, int64_t *tail)
{
    struct bytes stream = plan->effects[i].log.stream;

    while (i-- > 0) {
        const struct effect *e = &plan->effects[i];
        if (e->kind == EFFECT_LOG_APPEND && bytes_eq(e->log.stream, stream)) {
            *tail = e->log.seq;
            return false;
        }
    }
    return true;
}

belay_rc refuse_log(const struct effect *e, int64_t tail, struct belay_error *err)
{
    if (tail == 0 || e->log.seq == tail + 1)
        return BELAY_OK;
    belay_rc rc = err_reason(err, BELAY_CORRUPT, "log",
                             "log entry: not the next one of its stream");
    err_entity(err, e->log.stream);
    err_numbers(err, tail + 1, e->log.seq);
    return rc;
}

bool is_counter_effect(const struct effect *e)
{
    return e->kind == EFFECT_ADD || e->kind == EFFECT_RAISE;
}

belay_rc refuse_counter(const struct plan *plan, const struct plan_result *result,
                        size_t i, const int64_t *stored, int64_t *out,
                        struct belay_error *err)
{
    const struct effect *e = &plan->effects[i];
    bool found = stored != NULL;
    int64_t value = stored ? *stored : 0;

    for (size_t j = 0; j < i; j++) {
        const struct effect *f = &plan->effects[j];
        if (f->kind == EFFECT_INSERT && row_ref_eq(&f->row.ref, &e->counter.ref)) {
            const struct value *v = &f->row.v[e->counter.column];
            found = true;
            value = v->kind == VALUE_I64 ? v->i : 0;
        }
        if (is_counter_effect(f) && f->counter.column == e->counter.column &&
            row_ref_eq(&f->counter.ref, &e->counter.ref))
            value = result->effects[j].value;
    }
    if (!found) {
        belay_rc rc = err_set(err, BELAY_NOT_FOUND, "%s: no such row to count in",
                              e->counter.ref.type->name);
        err_entity(err, bytes_str(e->counter.ref.type->name));
        return rc;
    }
    *out = value;
    return BELAY_OK;
}
