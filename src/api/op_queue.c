/* The inbox of a session. */
#include "api/handle.h"
#include "api/op_args.h"
#include "work/queue.h"
#include "work/session.h"

/* --- enqueue --- */

static belay_rc read_draft(const struct op_call *call, struct belay_arena *a,
                           struct belay_draft *out, struct belay_error *err)
{
    const struct op_value *available = op_get(call, "available_at");

    *out = (struct belay_draft){
        .size = sizeof(*out),
        .session_id = op_str(call, "session"),
        .source_key = op_str(call, "source_key"),
        .delivery = 1 + op_read_name(op_delivery_names, op_get(call, "delivery")->text),
        .slot = 1 + op_read_name(op_slot_names, op_get(call, "slot")->text),
        .available_at_ms = available ? available->number : 0,
    };
    if (!op_read_merge(op_get(call, "merge")->text, &out->merge, &out->merge_group)) {
        (void)err_reason(err, BELAY_INVALID, "merge",
                         "--merge: must be never, payload_default or group:NAME");
        err_entity(err, bytes_str("merge"));
        return BELAY_INVALID;
    }
    return op_strs(call, "payload", a, &out->payloads, &out->n_payloads, err);
}

belay_rc op_queue_enqueue(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_enqueued done;
    struct belay_draft draft;

    belay_rc rc = read_draft(call, &arena, &draft, err);
    if (rc == BELAY_OK)
        rc = queue_enqueue(call->belay->space, &draft, &arena, &done, err);
    if (rc)
        return rc;
    json_t *result = op_json_batch(&m, done.batch);
    int failed = !result;
    failed |= op_set_bool(result, "replayed", done.replayed);
    failed |= op_set_bool(result, "payload_mismatch", done.payload_mismatch);
    return op_made(&m, result, failed, out);
}

/* --- claims --- */

static belay_rc answer_claimed(const struct belay_claimed *claimed,
                               struct belay_arena *a, json_t **out,
                               struct belay_error *err)
{
    const struct belay_claim *claim = claimed->claim;
    struct op_maker m = { .err = err };
    const char *handle = NULL;
    belay_rc rc = claim ? claim_text(claim, a, &handle, err) : BELAY_OK;

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_bool(result, "claimed", claim != NULL);
    failed |=
        op_set_text(result, "reason", claim ? NULL : belay_no_claim_name(claimed->why));
    failed |= op_set_time(result, "next_at_ms", claim ? -1 : claimed->next_at_ms);
    failed |= op_set_text(result, "handle", handle);
    failed |= json_object_set_new(
        result, "claim", claim ? op_json_claim(&m, claim, handle) : json_null());
    return op_made(&m, result, failed, out);
}

belay_rc op_queue_claim(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_value *wait = op_get(call, "wait");
    struct belay_claimed claimed = { 0 };
    struct belay_claim_request request = {
        .size = sizeof(request),
        .session_id = op_str(call, "session"),
        .owner_id = op_str(call, "owner"),
        .boundary = op_read_name(op_boundary_names, op_get(call, "boundary")->text),
        .lease_ms = op_get(call, "lease")->number,
        .max = (size_t)op_get(call, "max")->number,
        .wait_ms = wait ? wait->number : 0,
    };

    belay_rc rc =
        op_strs(call, "batch", &arena, &request.batch_ids, &request.n_batch_ids, err);
    if (rc)
        return rc;
    if (request.n_batch_ids == 0)
        request.batch_ids = NULL;
    else
        request.max = request.n_batch_ids;
    rc = queue_claim(&(struct queue_site){ .space = call->belay->space,
                                           .host = call->belay->host,
                                           .principal = bytes_str(op_principal(call)) },
                     &request, &arena, &claimed, err);
    return rc ? rc : answer_claimed(&claimed, &arena, out, err);
}

/* The claim that is named, which --session may say more about. */
static belay_rc claim_of(const struct op_call *call, struct belay_arena *a,
                         const struct belay_claim **out, struct belay_error *err)
{
    const char *session = op_str(call, "session");
    belay_rc rc = op_read_claim(op_get(call, "claim")->text, a, out, err);

    if (rc == BELAY_OK && session && strcmp(session, (*out)->session_id) != 0) {
        (void)err_reason(err, BELAY_SESSION_BINDING_MISMATCH, "",
                         "the claim is on another session's inbox");
        err_entity(err, bytes_str((*out)->session_id));
        return BELAY_SESSION_BINDING_MISMATCH;
    }
    return rc;
}

belay_rc op_queue_renew(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct belay_claim *claim = NULL;
    int64_t expires_at_ms = 0;

    belay_rc rc = claim_of(call, &arena, &claim, err);
    if (rc == BELAY_OK)
        rc = queue_renew(call->belay->space, claim, op_get(call, "lease")->number,
                         &expires_at_ms, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "claim_id", claim->claim_id);
    failed |= op_set_i64(result, "expires_at_ms", expires_at_ms);
    return op_finish(result, failed, out, err);
}

belay_rc op_queue_abandon(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct belay_claim *claim = NULL;
    size_t released = 0;

    belay_rc rc = claim_of(call, &arena, &claim, err);
    if (rc == BELAY_OK)
        rc = queue_abandon(call->belay->space, claim, &released, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "claim_id", claim->claim_id);
    failed |= op_set_i64(result, "released", (int64_t)released);
    return op_finish(result, failed, out, err);
}

/* There is no completing but in a commit: this one changes nothing else. */
belay_rc op_queue_complete(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    const struct belay_claim *claim = NULL;
    struct belay_committed done;
    struct belay_commit commit = { .size = sizeof(commit),
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .turn_id = op_str(call, "turn"),
                                   .completes = &claim,
                                   .n_completes = 1 };

    belay_rc rc = op_expect(call, &commit.expected_revision, err);
    if (rc == BELAY_OK)
        rc = claim_of(call, &arena, &claim, err);
    if (rc)
        return rc;
    const struct session s = { .sp = call->belay->space, .id = claim->session_id };
    rc = session_check_id(s.id, err);
    if (rc == BELAY_OK)
        rc = session_commit(&s, &commit, &arena, &done, err);
    if (rc)
        return rc;
    json_t *result = op_json_committed(&m, &done);
    return op_made(&m, result, !result, out);
}

/* --- looking and removing --- */

belay_rc op_queue_cancel(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    const struct belay_batch *batch = NULL;
    belay_rc rc = queue_cancel(call->belay->space, op_str(call, "session"),
                               op_str(call, "batch"), &arena, &batch, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_bool(result, "cancelled", batch != NULL);
    failed |= json_object_set_new(result, "batch",
                                  batch ? op_json_batch(&m, batch) : json_null());
    return op_made(&m, result, failed, out);
}

int op_exit_of_cancelled(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "cancelled"))
               ? 0
               : belay_error_info(BELAY_WRONG_STATE)->exit_code;
}

belay_rc op_queue_drop(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    belay_rc rc = queue_drop(call->belay->space, op_str(call, "session"),
                             op_str(call, "batch"), err);
    if (rc)
        return rc;

    json_t *result = json_object();
    return op_finish(result, op_set_bool(result, "dropped", true), out, err);
}

belay_rc op_queue_ls(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_queue_page page = { .size = sizeof(page),
                                     .pending = op_get(call, "pending") != NULL,
                                     .limit = (size_t)op_get(call, "limit")->number };
    struct op_maker m = { .err = err };
    struct belay_batches found = { 0 };

    belay_rc rc = op_cursor(call, &page.after_seq, err);
    if (rc == BELAY_OK)
        rc = queue_list(call->belay->space, op_str(call, "session"), &page, &arena,
                        &found, err);
    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_batch(&m, &found.batches[i]));
    return op_made_list(&m, items, failed, found.next_after_seq, out);
}
