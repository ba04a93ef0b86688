/* Looking at executions. */
#include "api/op_execution.h"
#include "api/op_follow.h"
#include "base/clock.h"

/* --- one --- */

belay_rc op_show(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_execution e;
    belay_rc rc =
        exec_describe(&call->belay->site, op_str(call, "id"), &arena, &e, err);

    if (rc)
        return rc;
    json_t *result = op_json_execution(&m, &e, true);
    return op_made(&m, result, !result, out);
}

belay_rc op_why(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *id = op_str(call, "id");
    struct belay_why why;
    belay_rc rc = exec_why(&call->belay->site, id, &arena, &why, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "id", id);
    failed |= op_set_value(result, "state", BELAY_DIM_STATE, why.state);
    failed |= op_set_value(result, "reason", BELAY_DIM_BLOCKING, why.reason);
    failed |= op_set_text(result, "detail", why.detail);
    failed |= op_set_text(result, "waits_for", why.waits_for);
    failed |= op_set_time(result, "next_at_ms", why.next_at_ms);
    failed |= op_set_time(result, "ahead", why.ahead);
    return op_finish(result, failed, out, err);
}

static json_t *failure_of(const struct belay_result *r)
{
    json_t *failure = json_object();
    int failed =
        op_set_value(failure, "class", BELAY_DIM_FAILURE_CLASS, r->failure_class);

    failed |= op_set_text(failure, "message", r->failure_message);
    return op_whole(failure, failed);
}

belay_rc op_result(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *id = op_str(call, "id");
    struct op_maker m = { .err = err };
    struct belay_result r;
    belay_rc rc = exec_result(&call->belay->site, id, &arena, &r, err);

    if (rc)
        return rc;
    struct bytes content = bytes_of(r.bytes ? r.bytes : "", r.len);
    json_t *result = json_object();
    int failed = op_set_text(result, "id", id);
    failed |= op_set_value(result, "state", BELAY_DIM_STATE, r.state);
    if (r.has_result)
        failed |= op_set_data(&m, result, "result", content, r.is_json);
    if (r.failure_class != BELAY_FAILURE_UNSET)
        failed |= json_object_set_new(result, "failure", failure_of(&r));
    return op_made(&m, result, failed, out);
}

static bool is_completed(const json_t *item)
{
    const char *state = json_string_value(json_object_get(item, "state"));

    return state && strcmp(state, "completed") == 0;
}

int op_exit_of_result(const json_t *answer)
{
    return is_completed(answer) ? 0 : 1;
}

belay_rc op_attempts(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_attempts found = { 0 };
    belay_rc rc =
        exec_attempts(&call->belay->site, op_str(call, "id"), &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_attempt(&found.items[i]));
    return op_made_pages(&m, items, failed, NULL, out);
}

/* --- many --- */

static belay_rc read_filter(const struct op_call *call, struct belay_arena *a,
                            struct belay_execution_filter *out, struct belay_error *err)
{
    const struct op_value *state = op_get(call, "state");
    const struct belay_tag *tags = NULL;
    size_t n = 0;

    *out = (struct belay_execution_filter){
        .size = sizeof(*out),
        .state = state ? 1 + op_read_name(op_state_names, state->text) : 0,
        .lane = op_str(call, "lane"),
        .created_from_ms = op_number(call, "created_from", 0),
        .created_to_ms = op_number(call, "created_to", 0),
        .limit = (size_t)op_get(call, "limit")->number,
        .cursor = op_str(call, "cursor"),
    };
    belay_rc rc = op_tags(call, "tag", a, &tags, &n, err);
    if (rc == BELAY_OK && n > 0) {
        out->tag_key = tags[0].key;
        out->tag_value = tags[0].value;
    }
    return rc;
}

/* One page behind the others.  The cursor of where it ended is in the filter, NULL at the
 * end of the list. */
static belay_rc add_page(const struct op_call *call,
                         struct belay_execution_filter *filter, struct buf *cursor,
                         json_t *items, struct op_maker *m)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_executions found = { 0 };
    belay_rc rc = exec_list(&call->belay->site, filter, &arena, &found, m->err);

    if (rc)
        return rc;
    for (size_t i = 0; i < found.n; i++) {
        if (json_array_append_new(items, op_json_execution(m, &found.items[i], false)))
            return m->rc ? m->rc : err_no_memory(m->err, "the list");
    }
    filter->limit -= found.n;
    filter->cursor = NULL;
    return op_keep_cursor(cursor, found.next_cursor, &filter->cursor, m->err);
}

/* Where few match, a page looks at so many and is short.  A program goes on by the cursor;
 * people and scripts would take it for the whole list. */
belay_rc op_ls(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct buf cursor CLEANUP(buf_release) = { 0 };
    json_t *items CLEANUP(json_decrefp) = json_array();
    struct op_maker m = { .err = err };
    struct belay_execution_filter filter;
    belay_rc rc = read_filter(call, &arena, &filter, err);

    if (rc == BELAY_OK && !items)
        rc = err_no_memory(err, "the list");
    while (rc == BELAY_OK) {
        rc = add_page(call, &filter, &cursor, items, &m);
        if (!call->fills_pages || filter.limit == 0 || !filter.cursor)
            break;
    }
    if (rc)
        return rc;
    return op_made_pages(&m, json_incref(items), 0, filter.cursor, out);
}

belay_rc op_lane_ls(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_lanes found = { 0 };
    belay_rc rc =
        exec_lanes(&call->belay->site, op_str(call, "cursor"),
                   (size_t)op_get(call, "limit")->number, &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_lane(&found.items[i]));
    return op_made_pages(&m, items, failed, found.next_after, out);
}

belay_rc op_stats(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_execution_stats stats = { .size = sizeof(stats) };
    const char *durability = belay_durability_name((int)belay_durability(call->belay));
    belay_rc rc = exec_count(&call->belay->site, &stats, err);

    if (rc)
        return rc;
    json_t *result = json_object(), *states = json_object();
    int failed = op_set_text(result, "namespace", call->belay->ns);
    failed |= op_set_text(result, "durability", durability);
    for (int i = BELAY_STATE_WAITING; i <= BELAY_STATE_SKIPPED; i++)
        failed |=
            op_set_i64(states, belay_value_name(BELAY_DIM_STATE, i), stats.count[i]);
    failed |= json_object_set_new(result, "executions", states);
    failed |= op_set_i64(result, "lanes", stats.lanes);
    failed |= op_set_time(result, "next_due_at_ms", stats.next_due_at_ms);
    return op_finish(result, failed, out, err);
}

/* --- waiting --- */

/* Longest single wait; who has more patience waits again. */
#define WAIT_STEP_MS BELAY_LEASE_MAX_MS

/* Until it has ended or the time is over, which is no error: *state says. */
static belay_rc wait_for_one(const struct op_call *call, const char *id,
                             int64_t deadline_us, int *state, struct belay_error *err)
{
    const struct belay_clock *clock = &call->belay->config.clock;
    belay_rc rc;

    do {
        int64_t left_us = deadline_us - clock->mono_us(clock->arg);
        int64_t left_ms = left_us > 0 ? (left_us + 999) / 1000 : 0;

        rc = exec_wait(&call->belay->site, id,
                       left_ms < WAIT_STEP_MS ? left_ms : WAIT_STEP_MS, call->cancel,
                       state, err);
    } while (rc == BELAY_TIMEOUT && clock->mono_us(clock->arg) < deadline_us);
    return rc == BELAY_TIMEOUT ? BELAY_OK : rc;
}

static bool has_ended(int state)
{
    return state >= (int)BELAY_STATE_COMPLETED;
}

/* An id that is none is told now, and not when those before it have ended. */
static belay_rc look_at_all(const struct op_call *call, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;
    int state;

    for (size_t i = 0; rc == BELAY_OK && i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, "id") == 0)
            rc = wait_for_one(call, (const char *)call->values[i].text.ptr, 0, &state,
                              err);
    }
    return rc;
}

belay_rc op_wait(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const struct belay_clock *clock = &call->belay->config.clock;
    const struct op_value *timeout = op_get(call, "timeout");
    int64_t now_us = clock->mono_us(clock->arg), deadline_us = INT64_MAX, length_us;
    struct op_maker m = { .err = err };
    json_t *items = json_array();
    belay_rc rc = BELAY_OK;
    int failed = 0;

    rc = look_at_all(call, err);
    if (timeout && !__builtin_mul_overflow(timeout->number, 1000, &length_us) &&
        length_us < INT64_MAX - now_us)
        deadline_us = now_us + length_us;
    for (size_t i = 0; rc == BELAY_OK && i < call->n_values; i++) {
        const char *id = (const char *)call->values[i].text.ptr;
        int state = 0;

        if (strcmp(call->values[i].arg->name, "id") != 0)
            continue;
        rc = wait_for_one(call, id, deadline_us, &state, err);
        json_t *item = json_object();
        failed |= op_set_text(item, "id", id);
        failed |= op_set_value(item, "state", BELAY_DIM_STATE, state);
        failed |= op_set_bool(item, "timed_out", !has_ended(state));
        failed |= json_array_append_new(items, item);
    }
    if (rc != BELAY_OK) {
        json_decref(items);
        return rc;
    }
    return op_made_pages(&m, items, failed, NULL, out);
}

int op_exit_of_wait(const json_t *answer)
{
    const json_t *items = json_object_get(answer, "items");
    int status = 0;

    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        if (json_is_true(json_object_get(item, "timed_out")))
            return belay_error_info(BELAY_TIMEOUT)->exit_code;
        if (!is_completed(item))
            status = 1;
    }
    return status;
}
