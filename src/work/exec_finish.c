/* What ends an attempt or an execution, the same for everybody who does it: the holder,
 * an operator, time. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_text.h"
#include "work/exec_grant.h"
#include "work/exec_show.h"
#include "work/process_exec.h"
#include "work/queue.h"

/* --- attempts that are over --- */

static struct value text_or_null(struct bytes b)
{
    return b.len > 0 ? value_text(b) : value_null();
}

belay_rc exec_archive(struct txn *t, const struct exec *e, enum belay_attempt_end end,
                      int64_t now_ms, const char *closed_reason, int32_t failure_class,
                      struct bytes message)
{
    const char *class_name = vector_name(BELAY_DIM_FAILURE_CLASS, failure_class);
    const struct value v[ATTEMPT_COLUMNS] = {
        [ATTEMPT_EXECUTION] = value_text(e->id),
        [ATTEMPT_INDEX] = value_i64(exec_i64(e, EXEC_ATTEMPTS, 1) - 1),
        [ATTEMPT_ID] = e->v[EXEC_LEASE + LEASE_TOKEN],
        [ATTEMPT_TYPE] = e->v[EXEC_ATTEMPT_TYPE],
        [ATTEMPT_END] = value_str(vector_name(BELAY_DIM_ATTEMPT_END, (int)end)),
        [ATTEMPT_WORKER] = e->v[EXEC_LEASE + LEASE_OWNER],
        [ATTEMPT_FENCE] = e->v[EXEC_LEASE + LEASE_FENCE],
        [ATTEMPT_STARTED_AT_MS] = e->v[EXEC_ATTEMPT_AT_MS],
        [ATTEMPT_ENDED_AT_MS] = value_i64(now_ms),
        [ATTEMPT_CLOSED_REASON] = value_str(closed_reason),
        [ATTEMPT_FAILURE_CLASS] = class_name ? value_str(class_name) : value_null(),
        [ATTEMPT_FAILURE_MESSAGE] = text_or_null(message),
    };

    const struct row *before;
    belay_rc rc = txn_get(t, &row_attempt, v, &before);

    /* One that failed, and was cancelled before its retry, has its row already. */
    return rc || before ? rc : txn_insert(t, &row_attempt, v);
}

const char *exec_closed_reason(const struct exec *e)
{
    static const char *const by_outcome[] = {
        [BELAY_TERMINAL_NONE] = NULL,
        [BELAY_TERMINAL_SUCCESS] = "attempt_success",
        [BELAY_TERMINAL_FAILED] = "attempt_failure",
        [BELAY_TERMINAL_CANCELLED] = "attempt_cancelled",
        [BELAY_TERMINAL_EXPIRED] = "expired",
        [BELAY_TERMINAL_SKIPPED] = "dependency_impossible",
    };

    if (e->vector.phase == BELAY_PHASE_TERMINAL)
        return by_outcome[e->vector.outcome];
    if (e->vector.attempt == BELAY_PENDING_RETRY_ATTEMPT ||
        e->vector.attempt == BELAY_PENDING_REPLAY_ATTEMPT)
        return "attempt_failure";
    if (e->vector.ownership == BELAY_LEASE_EXPIRED_RECLAIMABLE ||
        e->vector.ownership == BELAY_LEASE_REVOKED)
        return "lease_expired";
    return NULL;
}

/* --- the end row --- */

static bool says_something(const struct exec_ending *how)
{
    return how->result.ptr || how->result_blob.len > 0 || how->failure_class != 0 ||
           how->cancel_reason.len > 0 || how->cancel_source.len > 0;
}

static belay_rc write_end(struct txn *t, const struct exec *e,
                          const struct exec_ending *how)
{
    const char *class_name = vector_name(BELAY_DIM_FAILURE_CLASS, how->failure_class);
    bool has_result = how->result.ptr || how->result_blob.len > 0;
    struct value key = value_text(e->id);
    const struct value v[END_COLUMNS] = {
        [END_ID] = key,
        [END_FENCE] = value_i64(exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0)),
        [END_RESULT] = how->result.ptr && how->result_blob.len == 0
                           ? value_bytes(how->result)
                           : value_null(),
        [END_RESULT_BLOB] = text_or_null(how->result_blob),
        [END_ENCODING] =
            has_result ? value_str(how->result_is_json ? PAYLOAD_JSON : PAYLOAD_BYTES)
                       : value_null(),
        [END_FAILURE_CLASS] = class_name ? value_str(class_name) : value_null(),
        [END_FAILURE_MESSAGE] = text_or_null(how->message),
        [END_FAILURE_DETAIL] =
            how->detail.len > 0 ? value_bytes(how->detail) : value_null(),
        [END_CANCEL_REASON] = text_or_null(how->cancel_reason),
        [END_CANCEL_SOURCE] = text_or_null(how->cancel_source),
    };
    struct change changes[END_COLUMNS];
    const struct row *before;
    belay_rc rc = txn_get(t, &row_execution_end, &key, &before);

    if (rc)
        return rc;
    if (!before)
        return txn_insert(t, &row_execution_end, v);
    for (unsigned i = 1; i < END_COLUMNS; i++)
        changes[i - 1] = (struct change){ i, v[i] };
    return txn_put(t, &row_execution_end, &key, changes, END_COLUMNS - 1);
}

/* --- telling the session (W4) --- */

/* Whether an object can be around it. */
static bool can_stand_inside(struct bytes json)
{
    struct json_text in = json_text_of(json);

    return json_skip(&in, JSON_DEPTH_MAX - 1);
}

static void add_result(struct buf *out, const struct exec_ending *how)
{
    bool is_short = how->result.len <= EVENT_PAYLOAD_MAX;

    if (is_short && !how->result_is_json) {
        buf_append_str(out, ",\"result_base64\":\"");
        base64_append(out, how->result);
        buf_append_char(out, '"');
    } else if (is_short && can_stand_inside(how->result)) {
        buf_append_str(out, ",\"result\":");
        buf_append(out, how->result);
    } else {
        buf_append_str(out, ",\"result_len\":");
        buf_append_i64(out, (int64_t)how->result.len);
    }
}

void exec_end_facts(struct buf *out, const struct exec *e,
                    const struct exec_ending *how)
{
    buf_append_str(out, "{\"attempts\":");
    buf_append_i64(out, exec_i64(e, EXEC_ATTEMPTS, 0));
    buf_append_str(out, ",\"execution\":");
    json_append_string(out, e->id);
    if (how->message.len > 0) {
        buf_append_str(out, ",\"failure\":");
        json_append_string(out, how->message);
    }
    if (how->failure_class != BELAY_FAILURE_UNSET) {
        buf_append_str(out, ",\"failure_class\":");
        json_append_string(
            out, bytes_str(vector_name(BELAY_DIM_FAILURE_CLASS, how->failure_class)));
    }
    buf_append_str(out, ",\"lane\":");
    json_append_string(out, e->v[EXEC_LANE].b);
    buf_append_str(out, ",\"outcome\":");
    json_append_string(out,
                       bytes_str(vector_name(BELAY_DIM_OUTCOME, e->vector.outcome)));
    buf_append_str(out, ",\"produced_at_ms\":");
    buf_append_i64(out, how->now_ms);
    if (how->result.ptr)
        add_result(out, how);
}

static belay_rc tell_session(struct txn *t, const struct exec *e,
                             const struct exec_ending *how)
{
    CLEANUP(buf_release) struct buf items = { 0 }, source = { 0 };
    const char *outcome = vector_name(BELAY_DIM_OUTCOME, e->vector.outcome);
    struct queue_entry entry = { .session = exec_bytes(e, EXEC_SESSION),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_EXCLUSIVE,
                                 .merge = BELAY_MERGE_NEVER,
                                 .merge_key = bytes_str("\"never\"") };
    const struct row *existing;
    int64_t seq;

    buf_append_char(&items, '[');
    exec_end_facts(&items, e, how);
    buf_append_str(&items, ",\"type\":\"execution_completed\"}]");
    buf_printf(&source, "execution:%.*s:%s", (int)e->id.len, (const char *)e->id.ptr,
               outcome);
    if (items.failed || source.failed ||
        !arena_copy(txn_arena(t), buf_view(&items), &entry.items) ||
        !arena_copy(txn_arena(t), buf_view(&source), &entry.source_key))
        return err_no_memory(txn_error(t), "a batch for the session");
    belay_rc rc = queue_enqueue_in(t, &entry, &seq, &existing);
    /* Work ends even if whom it was for is gone. */
    return rc == BELAY_WRONG_STATE ? BELAY_OK : rc;
}

/* --- finishing --- */

static belay_rc tell(struct exec *e, const struct exec_ending *how, bool held,
                     struct event_list *events)
{
    bool ends = vector_is_terminal(&e->vector);
    struct event_facts f = {
        .type = ends ? BELAY_EVENT_COMPLETION : BELAY_EVENT_RELEASED,
        .at_ms = how->now_ms,
        .fence = exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0),
        .outcome = (enum belay_terminal)e->vector.outcome,
        .worker = held ? exec_bytes(e, EXEC_LEASE + LEASE_OWNER) : bytes_of(NULL, 0),
        .reason = ends ? how->reason : bytes_str("retry"),
        .result = how->result,
        .result_is_json = how->result_is_json,
    };

    return event_add(events, e, &f);
}

static void set_columns(struct exec *e, const struct exec_ending *how)
{
    bool ends = vector_is_terminal(&e->vector);

    e->v[EXEC_TIMEOUT_AT_MS] = value_null();
    e->v[EXEC_LOST_AT_MS] = value_null();
    e->v[EXEC_DETAIL] = text_or_null(how->reason);
    e->v[EXEC_DELAY_UNTIL_MS] = ends ? value_null() : value_i64(how->delay_until_ms);
    if (ends)
        e->v[EXEC_FINISHED_AT_MS] = value_i64(how->now_ms);
    else
        e->v[EXEC_RETRIES] = value_i64(exec_i64(e, EXEC_RETRIES, 0) + 1);
}

belay_rc exec_finish(struct txn *t, struct exec *e, const struct exec_ending *how,
                     struct event_list *events)
{
    bool held = e->vector.ownership == BELAY_LEASED;
    belay_rc rc = exec_ungrant(t, e); /* one that nobody used goes with it */

    if (rc == BELAY_OK)
        rc = exec_step(t, e, how->step);
    if (rc)
        return rc;
    set_columns(e, how);
    if (!vector_is_terminal(&e->vector)) /* a retry: another attempt follows (W3) */
        rc = exec_archive(t, e, BELAY_END_FAILURE, how->now_ms, "attempt_failure",
                          how->failure_class, how->message);
    if (rc == BELAY_OK)
        rc = exec_write(t, e, how->now_ms);
    if (rc == BELAY_OK && vector_is_terminal(&e->vector)) {
        const struct value key = value_text(e->id);
        txn_spent(t, &row_execution, &key);
    }
    if (rc == BELAY_OK && says_something(how))
        rc = write_end(t, e, how);
    if (rc == BELAY_OK)
        rc = tell(e, how, held, events);
    if (rc == BELAY_OK && vector_is_terminal(&e->vector) &&
        e->v[EXEC_SESSION].kind != VALUE_NULL)
        rc = tell_session(t, e, how);
    if (rc == BELAY_OK && vector_is_terminal(&e->vector) &&
        e->v[EXEC_PROCESS].kind != VALUE_NULL)
        rc = proc_execution_ended(t, e, how);
    return rc;
}

/* A short text in the detail names a category of its own. */
static struct bytes category_of(const struct exec_ending *how)
{
    if (how->detail.len > 0 && how->detail.len <= 128 && bytes_is_utf8(how->detail))
        return how->detail;
    return bytes_str(vector_name(BELAY_DIM_FAILURE_CLASS, how->failure_class));
}

belay_rc exec_judge_failure(struct txn *t, const struct exec *e, const struct row *spec,
                            uint64_t random, struct exec_ending *io)
{
    int64_t retries = exec_i64(e, EXEC_RETRIES, 0);
    struct exec_policy policy;
    belay_rc rc = exec_policy_read(t, spec, &policy);
    if (rc)
        return rc;

    io->step = STEP_FAIL;
    if (!retry_allowed(&policy.retry, retries,
                       (enum belay_failure_class)io->failure_class, category_of(io)))
        return BELAY_OK;
    io->step = STEP_RETRY;
    io->delay_until_ms =
        time_add_ms(io->now_ms, retry_delay_ms(&policy.retry, retries, random));
    return BELAY_OK;
}
