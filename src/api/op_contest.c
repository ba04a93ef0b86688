/* Contests of a fleet: claiming one for as long as the command runs, and looking at them. */
#include <stdio.h>

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

/* A tenure that is kept. */
struct hold {
    struct belay_contest_guard guard;
    int64_t ttl_ms;
    int64_t began_us, renewed_us;
};

/* In turns, no further apart than *out_us: `lease_lost` when it is taken. */
static belay_rc keep_once(void *arg, int64_t *out_us, struct belay_error *err)
{
    struct hold *h = arg;
    int64_t now = clock_coarse_us();

    *out_us = FLEET_LOOK_US;
    if (!belay_contest_is_held(&h->guard))
        return err_reason(err, BELAY_LEASE_LOST, "revoked", "it was taken away");
    if (h->ttl_ms == BELAY_CONTEST_FOREVER ||
        now - h->renewed_us < h->ttl_ms * 1000 / 3)
        return BELAY_OK;
    h->renewed_us = now;
    return belay_contest_renew(&h->guard, h->ttl_ms, err);
}

/* Until told to stop, or for as long as was asked for. */
static belay_rc keep(const struct op_call *call, struct hold *h,
                     struct belay_error *err)
{
    const struct op_value *limit = op_get(call, "for");
    belay_rc rc = BELAY_OK;
    int64_t us;

    while (rc == BELAY_OK) {
        if (limit && clock_coarse_us() - h->began_us >= limit->number * 1000)
            return BELAY_OK;
        rc = keep_once(h, &us, err);
        if (rc == BELAY_OK)
            rc = op_fleet_pause(call, err);
    }
    return rc == BELAY_CANCELLED ? BELAY_OK : rc;
}

static belay_rc hold_and_tell(const struct op_call *call, struct hold *h, json_t **out,
                              struct belay_error *err)
{
    struct op_maker m = { .err = err };
    belay_rc rc = op_emit(call, &m, json_claimed(call, &h->guard));

    if (rc == BELAY_OK)
        rc = keep(call, h, err);
    if (rc == BELAY_OK)
        rc = belay_contest_release(&h->guard, NULL, err);
    if (rc == BELAY_OK)
        rc = op_emit(call, &m, json_told(call, "released", &h->guard));
    /* Being told to stop before it was claimed is no success. */
    return rc == BELAY_OK ? op_followed(rc, NULL, out, err) : rc;
}

/* --- with a command --- */

#define TOKEN_TEXT_MAX 24

static belay_rc read_command(const struct op_call *call, struct belay_arena *a,
                             char ***out, struct belay_error *err)
{
    char **argv = arena_zalloc(a, call->n_values + 1, sizeof(*argv));
    size_t n = 0;

    if (!argv)
        return err_no_memory(err, "the command");
    for (size_t i = 0; i < call->n_values; i++) {
        struct bytes copy;
        if (strcmp(call->values[i].arg->name, "command") != 0)
            continue;
        if (!arena_copy(a, call->values[i].text, &copy))
            return err_no_memory(err, "the command");
        argv[n++] = (char *)(uintptr_t)copy.ptr;
    }
    *out = argv;
    return BELAY_OK;
}

static belay_rc check_command(const struct op_call *call, struct belay_error *err)
{
    if (!call->runner)
        return err_reason(err, BELAY_MISUSE, "command",
                          "commands are run by the command line alone");
    if (op_get(call, "for")) {
        (void)err_reason(err, BELAY_INVALID, "argument",
                         "--for: a command is held for as long as it runs");
        err_entity(err, bytes_str("for"));
        return BELAY_INVALID;
    }
    return BELAY_OK;
}

/* What it prints is all that is printed. */
static belay_rc hold_for_command(const struct op_call *call, struct hold *h,
                                 json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    char token[TOKEN_TEXT_MAX];
    struct op_command command = { .name = "BELAY_FLEET_TOKEN",
                                  .value = token,
                                  .grace_ms = op_get(call, "grace")->number,
                                  .keep = keep_once,
                                  .arg = h };
    char **argv = NULL;
    int status = 0;
    belay_rc rc = read_command(call, &arena, &argv, err);

    if (rc == BELAY_OK && call->cancel && belay_cancel_triggered(call->cancel))
        rc = err_set(err, BELAY_CANCELLED, "told to stop");
    (void)snprintf(token, sizeof(token), "%llu", (unsigned long long)h->guard.token);
    command.argv = argv;
    if (rc == BELAY_OK)
        rc = call->runner->run(call->runner->arg, &command, &status, err);
    struct belay_error why;
    belay_rc released = belay_contest_release(&h->guard, NULL, &why);
    if (rc == BELAY_OK && released != BELAY_OK) {
        *err = why; /* somebody else had it before the command had ended */
        rc = released;
    }
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    return op_finish(answer, op_set_i64(answer, "exit_status", status), out, err);
}

int op_exit_of_command(const json_t *answer)
{
    return (int)json_integer_value(json_object_get(answer, "exit_status"));
}

belay_rc op_contest_claim(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    const struct op_value *ttl = op_get(call, "ttl");
    bool is_run = op_get(call, "command") != NULL;
    struct hold h = { .ttl_ms = ttl ? ttl->number : BELAY_CONTEST_FOREVER };

    if (!call->follow)
        return err_reason(err, BELAY_MISUSE, "follow",
                          "a claim lasts only as long as somebody listens");
    belay_rc rc = is_run ? check_command(call, err) : BELAY_OK;
    if (rc == BELAY_OK)
        rc = op_fleet_join(call, "fleet", 0, &f, err);
    if (rc == BELAY_OK)
        rc = claim(call, f, h.ttl_ms, &h.guard, err);
    if (rc != BELAY_OK)
        return rc;
    h.began_us = h.renewed_us = clock_coarse_us();
    return is_run ? hold_for_command(call, &h, out, err)
                  : hold_and_tell(call, &h, out, err);
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
