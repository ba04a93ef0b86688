#include "work/epoch.h"

#include "policy/fence.h"
#include "work/audit.h"

/* Which life it is, and what that means for the epoch that the row has. */
static belay_rc judge(struct txn *t, const struct row *row, struct lineage *now,
                      enum life_verdict *out)
{
    struct life_facts f = { .stored = row_bytes(row, EPOCH_LIFE) };
    const struct row *clock = NULL;
    belay_rc rc = txn_lineage(t, f.stored, now);

    f.now = bytes_str(now->life);
    f.restarted = now->restarted;
    f.started_at_ms = now->started_at_ms;
    if (rc == BELAY_OK && now->restarted && life_judge(&f) != LIFE_SAME)
        rc = txn_get(t, &row_clock, NULL, &clock);
    if (clock)
        f.mark_ms = row_i64(clock, CLOCK_MARK_MS, 0);
    *out = life_judge(&f);
    return rc;
}

static belay_rc show_body(struct txn *t, void *arg)
{
    static const struct row_want wants[] = { { .type = &row_epoch },
                                             { .type = &row_fence_floor } };
    struct epoch_info *out = arg;
    const struct row *rows[COUNT_OF(wants)];
    struct lineage lineage;

    *out = (struct epoch_info){ .raised_at_ms = -1 };
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK && rows[0])
        rc = judge(t, rows[0], &lineage, &out->life);
    if (rc)
        return rc;
    if (rows[0]) {
        out->epoch = row_i64(rows[0], EPOCH_EPOCH, 0);
        out->raised_at_ms = row_i64(rows[0], EPOCH_RAISED_AT_MS, -1);
        out->reason = row_bytes(rows[0], EPOCH_REASON);
    }
    if (rows[1])
        out->fence_floor = row_i64(rows[1], FENCE_FLOOR_FLOOR, 0);
    return BELAY_OK;
}

belay_rc epoch_show(struct space *sp, struct belay_arena *a, struct epoch_info *out,
                    struct belay_error *err)
{
    const struct txn_options read_only = { .read_only = true };
    struct epoch_info info;
    belay_rc rc = txn_run(sp, show_body, &info, &read_only, a, err);

    if (rc == BELAY_OK)
        *out = info;
    return rc;
}

belay_rc epoch_raise_in(struct txn *t, struct bytes reason, int64_t at_ms,
                        int64_t *out_epoch)
{
    const struct row *row;
    struct lineage lineage;
    belay_rc rc = txn_get(t, &row_epoch, NULL, &row);
    if (rc == BELAY_OK)
        rc = txn_lineage(t, row ? row_bytes(row, EPOCH_LIFE) : bytes_of(NULL, 0),
                         &lineage);
    if (rc)
        return rc;

    int64_t epoch = row ? row_i64(row, EPOCH_EPOCH, 0) : 0;
    if (epoch >= FENCE_EPOCH_MAX) {
        rc = txn_fail(t, BELAY_OUT_OF_RANGE, "epoch",
                      "epoch: %lld is the last one there is", (long long)epoch);
        err_numbers(txn_error(t), FENCE_EPOCH_MAX, epoch);
        return rc;
    }
    *out_epoch = epoch + 1;
    const struct value said = reason.len > 0 ? value_text(reason) : value_null();
    const struct value life = lineage.life[0] ? value_str(lineage.life) : value_null();
    const struct change changes[] = { { EPOCH_EPOCH, value_i64(epoch + 1) },
                                      { EPOCH_RAISED_AT_MS, value_i64(at_ms) },
                                      { EPOCH_REASON, said },
                                      { EPOCH_LIFE, life } };
    const struct value v[EPOCH_COLUMNS] = { [EPOCH_EPOCH] = value_i64(epoch + 1),
                                            [EPOCH_RAISED_AT_MS] = value_i64(at_ms),
                                            [EPOCH_REASON] = said,
                                            [EPOCH_LIFE] = life };
    return row ? txn_put(t, &row_epoch, NULL, changes, COUNT_OF(changes))
               : txn_insert(t, &row_epoch, v);
}

struct raising {
    struct bytes reason;
    const char *principal;
    struct epoch_info info;
};

static belay_rc note(struct txn *t, int64_t epoch, struct bytes reason,
                     const char *principal)
{
    CLEANUP(json_decrefp) json_t *detail = json_object();

    if (json_object_set_new(detail, "epoch", json_integer(epoch)) ||
        json_object_set_new(
            detail, "reason",
            json_stringn(reason.len > 0 ? (const char *)reason.ptr : "", reason.len)))
        return err_no_memory(txn_error(t), "an audit entry");
    return audit_append(t, &(struct audit_note){ .verb = "epoch.raise",
                                                 .principal = principal,
                                                 .detail = detail });
}

static belay_rc raise_body(struct txn *t, void *arg)
{
    struct raising *r = arg;
    int64_t now_ms = 0, epoch = 0;

    belay_rc rc = show_body(t, &r->info);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = epoch_raise_in(t, r->reason, now_ms, &epoch);
    if (rc)
        return rc;
    r->info.epoch = epoch;
    r->info.raised_at_ms = now_ms;
    r->info.reason = r->reason;
    r->info.life = LIFE_SAME;
    return note(t, epoch, r->reason, r->principal);
}

belay_rc epoch_raise(struct space *sp, struct bytes reason, const char *principal,
                     struct belay_arena *a, struct epoch_info *out,
                     struct belay_error *err)
{
    struct raising r = { .reason = reason, .principal = principal };
    belay_rc rc = txn_run(sp, raise_body, &r, NULL, a, err);

    if (rc == BELAY_OK)
        *out = r.info;
    return rc;
}

/* --- what grants and checks go by --- */

static belay_rc raise_after_restart(struct txn *t, int64_t *out)
{
    const struct bytes reason = bytes_str("the server was restarted");
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = epoch_raise_in(t, reason, now_ms, out);
    return rc ? rc : note(t, *out, reason, "belay");
}

belay_rc epoch_in(struct txn *t, int64_t *out)
{
    const struct row *row;
    struct lineage lineage;
    enum life_verdict verdict;
    belay_rc rc = txn_get(t, &row_epoch, NULL, &row);

    if (rc)
        return rc;
    *out = row ? row_i64(row, EPOCH_EPOCH, 0) : 0;
    if (*out < 0 || *out > FENCE_EPOCH_MAX)
        return txn_fail(t, BELAY_CORRUPT, "epoch", "epoch: %lld is out of bounds",
                        (long long)*out);
    if (!row)
        return BELAY_OK;
    rc = judge(t, row, &lineage, &verdict);
    if (rc)
        return rc;
    const struct change known = { EPOCH_LIFE, value_str(lineage.life) };
    switch (verdict) {
    case LIFE_SAME:
        break;
    case LIFE_FIRST:
        return txn_put(t, &row_epoch, NULL, &known, 1);
    case LIFE_RESTARTED:
        return raise_after_restart(t, out);
    case LIFE_FOREIGN:
        return txn_fail(
            t, BELAY_UNAVAILABLE, "epoch",
            "epoch: the server is not the one that granted before (a failover,"
            " or a restored copy); when it is right, belay epoch raise");
    }
    return BELAY_OK;
}
