/* Epoch and clock of a namespace. */
#include "api/handle.h"
#include "api/op_handlers.h"
#include "work/epoch.h"
#include "work/store_time.h"

/* A time, or null for one that never was. */
static json_t *time_or_null(int64_t ms)
{
    return ms < 0 ? json_null() : json_integer(ms);
}

static belay_rc answer_epoch(const struct op_call *call, const struct epoch_info *info,
                             json_t **out, struct belay_error *err)
{
    json_t *result = json_object();
    int failed = 0;

    failed |= json_object_set_new(result, "namespace", json_string(call->belay->ns));
    failed |= json_object_set_new(result, "epoch", json_integer(info->epoch));
    failed |=
        json_object_set_new(result, "raised_at_ms", time_or_null(info->raised_at_ms));
    failed |= json_object_set_new(
        result, "reason", info->reason.len > 0 ? op_text(info->reason) : json_null());
    failed |=
        json_object_set_new(result, "fence_floor", json_integer(info->fence_floor));
    failed |= json_object_set_new(result, "granting",
                                  json_boolean(info->life != LIFE_FOREIGN));
    return op_finish(result, failed, out, err);
}

belay_rc op_epoch_show(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct epoch_info info;
    belay_rc rc = epoch_show(call->belay->space, &arena, &info, err);

    return rc ? rc : answer_epoch(call, &info, out, err);
}

belay_rc op_epoch_raise(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_value *reason = op_get(call, "reason");
    struct epoch_info info;
    belay_rc rc =
        epoch_raise(call->belay->space, reason ? reason->text : bytes_of(NULL, 0),
                    op_principal(call), &arena, &info, err);

    return rc ? rc : answer_epoch(call, &info, out, err);
}

static int set_time(json_t *result, const struct op_call *call,
                    const struct store_time *time)
{
    json_t *step = time->doubted ? json_integer(time->step_ms) : json_null();
    int failed = 0;

    failed |= json_object_set_new(result, "namespace", json_string(call->belay->ns));
    failed |= json_object_set_new(result, "now_ms", json_integer(time->now_ms));
    failed |= json_object_set_new(result, "wall_ms", json_integer(time->wall_ms));
    failed |= json_object_set_new(result, "mark_ms", json_integer(time->mark_ms));
    failed |= json_object_set_new(result, "doubted", json_boolean(time->doubted));
    failed |= json_object_set_new(result, "step_ms", step);
    return failed;
}

belay_rc op_clock_show(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    struct store_time time;
    belay_rc rc = store_time_show(call->belay->space, &time, err);
    if (rc)
        return rc;

    json_t *result = json_object();
    return op_finish(result, set_time(result, call, &time), out, err);
}

belay_rc op_clock_reset(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct store_time time;
    int64_t epoch = 0;
    belay_rc rc =
        store_time_reset(call->belay->space, op_principal(call), &time, &epoch, err);
    if (rc)
        return rc;

    json_t *result = json_object();
    int failed = set_time(result, call, &time);
    failed |= json_object_set_new(result, "epoch", json_integer(epoch));
    return op_finish(result, failed, out, err);
}
