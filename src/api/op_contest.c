/* Contests of a fleet: claiming one for as long as the command runs, and looking at them. */
#include "api/op_fleet.h"
#include "api/op_follow.h"
#include "base/clock.h"

static struct belay_contest_subject subject_of(const struct op_call *call)
{
    const struct op_value *subject = op_get(call, "subject");

    return (struct belay_contest_subject){
        .label = (const char *)subject->text.ptr,
        .label_len = subject->text.len,
        .kind = (uint8_t)op_get(call, "kind")->number,
    };
}

/* --- as JSON --- */

static int set_tenure(json_t *row, const struct belay_contest_holder *h)
{
    bool is_forever = h->expires_at_ms == INT64_MAX;
    int failed = 0;

    failed |= json_object_set_new(row, "owner", op_text(bytes_str(h->owner)));
    failed |= op_set_i64(row, "node", h->node);
    failed |= op_set_u64(row, "token", h->token);
    failed |= op_set_netid(row, "claim_id", h->claim_id);
    failed |= op_set_time(row, "claimed_at_ms", h->claimed_at_ms);
    failed |= op_set_time(row, "expires_at_ms", is_forever ? -1 : h->expires_at_ms);
    return failed;
}

json_t *op_json_contest(const struct belay_contest_entry *entry)
{
    const size_t max = sizeof(entry->label) - 1;
    json_t *row = json_object();
    size_t len = entry->label_len < max ? entry->label_len : max;
    int failed = 0;

    failed |= json_object_set_new(row, "subject", op_text(bytes_of(entry->label, len)));
    failed |= op_set_i64(row, "kind", entry->holder.subject_kind);
    failed |= op_set_bool(row, "held", entry->is_held);
    if (entry->is_held)
        failed |= set_tenure(row, &entry->holder);
    return op_whole(row, failed);
}

/* --- claim --- */

static json_t *json_told(const struct op_call *call, const char *event,
                         const struct belay_contest_guard *guard)
{
    json_t *row = json_object();
    int failed = 0;

    failed |= op_set_text(row, "event", event);
    failed |=
        json_object_set_new(row, "subject", op_text(op_get(call, "subject")->text));
    failed |= op_set_i64(row, "kind", guard->subject_kind);
    failed |= op_set_netid(row, "claim_id", guard->claim_id);
    return op_whole(row, failed);
}

static json_t *json_claimed(const struct op_call *call,
                            const struct belay_contest_guard *guard)
{
    json_t *row = json_told(call, "claimed", guard);
    bool is_forever = guard->expires_at_ms == INT64_MAX;
    int failed = 0;

    failed |= json_object_set_new(row, "owner", op_text(op_get(call, "owner")->text));
    failed |= op_set_u64(row, "token", guard->token);
    failed |= op_set_time(row, "claimed_at_ms", guard->claimed_at_ms);
    failed |= op_set_time(row, "expires_at_ms", is_forever ? -1 : guard->expires_at_ms);
    return op_whole(row, failed);
}

static belay_rc yielded(const struct belay_contest_holder *h, struct belay_error *err)
{
    struct buf owner CLEANUP(buf_release) = { 0 };

    buf_append_escaped(&owner, bytes_str(h->owner));
    (void)err_reason(err, BELAY_LEASE_HELD, "contest", "%.*s has it, at node %d",
                     (int)owner.len, owner.len ? (const char *)owner.ptr : "", h->node);
    err_entity(err, bytes_str(h->owner));
    return BELAY_LEASE_HELD;
}

static belay_rc claim(const struct op_call *call, struct belay_fleet *f, int64_t ttl_ms,
                      struct belay_contest_guard *out, struct belay_error *err)
{
    const struct op_value *owner = op_get(call, "owner"), *wait = op_get(call, "wait");
    const struct belay_contest_subject subject = subject_of(call);
    const struct belay_contest_terms terms = {
        .owner = (const char *)owner->text.ptr,
        .owner_len = owner->text.len,
        .ttl_ms = ttl_ms,
    };
    struct belay_contest_claim c;
    belay_rc rc = wait ? belay_contest_claim(f, &subject, &terms, wait->number,
                                             call->cancel, &c, err)
                       : belay_contest_try(f, &subject, &terms, &c, err);

    if (rc == BELAY_OK && !c.is_claimed)
        return yielded(&c.holder, err);
    if (rc == BELAY_OK)
        *out = c.guard;
    return rc;
}

/* Until told to stop, or for as long as was asked for; `lease_lost` when it is taken. */
static belay_rc keep(const struct op_call *call, struct belay_contest_guard *guard,
                     int64_t ttl_ms, struct belay_error *err)
{
    const struct op_value *limit = op_get(call, "for");
    int64_t began = clock_coarse_us(), renewed = began;
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK) {
        int64_t now = clock_coarse_us();
        if (limit && now - began >= limit->number * 1000)
            return BELAY_OK;
        if (!belay_contest_is_held(guard))
            return err_reason(err, BELAY_LEASE_LOST, "revoked", "it was taken away");
        if (ttl_ms != BELAY_CONTEST_FOREVER && now - renewed >= ttl_ms * 1000 / 3) {
            rc = belay_contest_renew(guard, ttl_ms, err);
            renewed = now;
        }
        if (rc == BELAY_OK)
            rc = op_fleet_pause(call, err);
    }
    return rc == BELAY_CANCELLED ? BELAY_OK : rc;
}

belay_rc op_contest_claim(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    const struct op_value *ttl = op_get(call, "ttl");
    int64_t ttl_ms = ttl ? ttl->number : BELAY_CONTEST_FOREVER;
    struct belay_contest_guard guard = { 0 };
    struct op_maker m = { .err = err };

    if (!call->follow)
        return err_reason(err, BELAY_MISUSE, "follow",
                          "a claim lasts only as long as somebody listens");
    belay_rc rc = op_fleet_join(call, "fleet", 0, &f, err);
    if (rc == BELAY_OK)
        rc = claim(call, f, ttl_ms, &guard, err);
    if (rc == BELAY_OK)
        rc = op_emit(call, &m, json_claimed(call, &guard));
    if (rc == BELAY_OK)
        rc = keep(call, &guard, ttl_ms, err);
    if (rc == BELAY_OK)
        rc = belay_contest_release(&guard, NULL, err);
    if (rc == BELAY_OK)
        rc = op_emit(call, &m, json_told(call, "released", &guard));
    /* Being told to stop before it was claimed is no success. */
    return rc == BELAY_OK ? op_followed(rc, NULL, out, err) : rc;
}

/* --- release --- */

belay_rc op_contest_release(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    const struct belay_contest_subject subject = subject_of(call);
    const struct op_value *token = op_get(call, "token");
    struct belay_contest_holder holder;
    belay_rc rc = op_fleet_join(call, "fleet", BELAY_FLEET_MUST_EXIST, &f, err);

    if (rc == BELAY_OK)
        rc = belay_contest_holder(f, &subject, &holder, err);
    if (rc == BELAY_OK && token && (uint64_t)token->number != holder.token)
        rc = err_reason(err, BELAY_LEASE_LOST, "superseded",
                        "that tenure has ended; token %llu has it now",
                        (unsigned long long)holder.token);
    if (rc == BELAY_OK)
        rc = belay_contest_force_release(f, &holder, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed =
        json_object_set_new(answer, "subject", op_text(op_get(call, "subject")->text));
    failed |= op_set_i64(answer, "kind", subject.kind);
    failed |= op_set_bool(answer, "released", true);
    failed |= set_tenure(answer, &holder);
    return op_finish(answer, failed, out, err);
}

/* --- ls --- */

belay_rc op_contest_ls(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    size_t limit = (size_t)op_get(call, "limit")->number, found = 0;
    bool is_all = op_get(call, "all") != NULL;
    struct op_maker m = { .err = err };
    int64_t from = 0;
    belay_rc rc = op_cursor(call, &from, err);

    if (rc == BELAY_OK)
        rc = op_fleet_observe(call, "fleet", &f, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *items = json_array();
    uint64_t cursor = (uint64_t)from;
    int failed = 0;
    do {
        struct belay_contest_entry entry;
        size_t n = 0;
        rc = belay_contest_list(f, &cursor, &entry, 1, &n, err);
        if (rc == BELAY_OK && n > 0 && (is_all || entry.is_held)) {
            failed |= json_array_append_new(items, op_json_contest(&entry));
            found++;
        }
    } while (rc == BELAY_OK && !failed && cursor != 0 && found < limit);
    if (rc == BELAY_OK)
        return op_made_list(&m, items, failed, (int64_t)cursor, out);
    json_decref(items);
    return rc;
}
