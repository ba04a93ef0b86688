#include "work/store_time.h"

#include "base/clock.h"
#include "work/audit.h"
#include "work/epoch.h"

static belay_rc show_body(struct txn *t, void *arg)
{
    struct store_time *out = arg;
    const struct row *clock;
    belay_rc rc = txn_get(t, &row_clock, NULL, &clock);

    *out = (struct store_time){ 0 };
    if (rc == BELAY_OK)
        rc = txn_now(t, &out->now_ms);
    if (rc == BELAY_OK)
        rc = txn_wall(t, &out->wall_ms);
    if (rc == BELAY_OK && clock)
        out->mark_ms = row_i64(clock, CLOCK_MARK_MS, 0);
    return rc;
}

belay_rc store_time_show(struct space *sp, struct store_time *out,
                         struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    const struct txn_options read_only = { .read_only = true };
    struct store_time shown;
    belay_rc rc = txn_run(sp, show_body, &shown, &read_only, &arena, err);

    if (rc)
        return rc;
    shown.doubted = space_clock_doubted(sp, &shown.step_ms);
    *out = shown;
    return BELAY_OK;
}

struct resetting {
    const char *principal;
    struct store_time before;
    int64_t wall_ms, mark_ms; /* mark_ms: as read, then as stored */
    int64_t epoch;
    struct txn_sum stored;
};

static belay_rc note(struct txn *t, const struct resetting *r)
{
    CLEANUP(json_decrefp) json_t *detail = json_object();
    int failed = 0;

    failed |= json_object_set_new(detail, "from_ms", json_integer(r->mark_ms));
    failed |= json_object_set_new(detail, "to_ms", json_integer(r->wall_ms));
    failed |= json_object_set_new(detail, "epoch", json_integer(r->epoch));
    failed |= json_object_set_new(detail, "doubted", json_boolean(r->before.doubted));
    failed |= json_object_set_new(detail, "step_ms", json_integer(r->before.step_ms));
    if (failed)
        return err_no_memory(txn_error(t), "an audit entry");
    return audit_append(t, &(struct audit_note){ .verb = "clock.reset",
                                                 .principal = r->principal,
                                                 .detail = detail,
                                                 .at_ms = r->wall_ms });
}

/* The mark is a counter, so it is moved by the difference: all of it happens in one
 * commit, and somebody who raises the mark meanwhile only adds to it.  The store's time
 * is not asked for here, since that would take the old mark along. */
static belay_rc reset_body(struct txn *t, void *arg)
{
    struct resetting *r = arg;
    const struct row *clock;

    belay_rc rc = txn_get(t, &row_clock, NULL, &clock);
    if (rc == BELAY_OK)
        rc = txn_wall(t, &r->wall_ms);
    if (rc)
        return rc;
    r->wall_ms = time_add_ms(r->wall_ms, 0);
    r->mark_ms = clock ? row_i64(clock, CLOCK_MARK_MS, 0) : 0;
    if (clock)
        rc = txn_add(t, &row_clock, NULL, CLOCK_MARK_MS, r->wall_ms - r->mark_ms, 0,
                     TIME_MAX_MS, &r->stored);
    else
        rc = txn_insert(t, &row_clock,
                        (const struct value[CLOCK_COLUMNS]){
                            [CLOCK_MARK_MS] = value_i64(r->wall_ms) });
    if (rc == BELAY_OK)
        rc = epoch_raise_in(t, bytes_str("clock reset"), r->wall_ms, &r->epoch);
    return rc ? rc : note(t, r);
}

belay_rc store_time_reset(struct space *sp, const char *principal,
                          struct store_time *out, int64_t *out_epoch,
                          struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct resetting r = { .principal = principal };
    belay_rc rc = store_time_show(sp, &r.before, err);

    if (rc == BELAY_OK)
        rc = txn_run(sp, reset_body, &r, NULL, &arena, err);
    if (rc)
        return rc;
    space_clock_restart(sp, r.stored.known ? r.stored.value : r.wall_ms);
    *out_epoch = r.epoch;
    return store_time_show(sp, out, err);
}
