/* Operators and onlookers of executions, and what happens by itself, through the library. */
#include <belay/execution.h>

#include "api/check_execution.h"
#include "api/handle.h"
#include "work/execution.h"

static const struct sized filter_type = {
    "belay_execution_filter", sizeof(struct belay_execution_filter),
    END_OF(struct belay_execution_filter, cursor)
};
static const struct sized frames_type = { "belay_frame_request",
                                          sizeof(struct belay_frame_request),
                                          END_OF(struct belay_frame_request, cancel) };
static const struct sized scanner_type = {
    "belay_scanner_filter", sizeof(struct belay_scanner_filter),
    END_OF(struct belay_scanner_filter, tag_value)
};
static const struct sized events_type = { "belay_event_request",
                                          sizeof(struct belay_event_request),
                                          END_OF(struct belay_event_request, cancel) };
static const struct sized stats_type = {
    "belay_execution_stats", sizeof(struct belay_execution_stats),
    END_OF(struct belay_execution_stats, next_due_at_ms)
};

/* --- control --- */

belay_rc belay_execution_cancel(struct belay *b, const char *execution_id,
                                const char *reason, const char *source,
                                struct belay_error *err)
{
    if (!b || !execution_id)
        return null_given(err, __func__);
    return exec_cancel(&b->site, execution_id, reason, source, err);
}

belay_rc belay_execution_replay(struct belay *b, const char *execution_id,
                                const char *reason, struct belay_error *err)
{
    if (!b || !execution_id)
        return null_given(err, __func__);
    return exec_replay(&b->site, execution_id, reason, err);
}

belay_rc belay_execution_set_priority(struct belay *b, const char *execution_id,
                                      int priority, struct belay_error *err)
{
    if (!b || !execution_id)
        return null_given(err, __func__);
    return exec_set_priority(&b->site, execution_id, priority, err);
}

belay_rc belay_execution_revoke(struct belay *b, const char *execution_id,
                                const char *expected_lease_id, const char *reason,
                                bool *out_revoked, struct belay_error *err)
{
    bool revoked = false;

    if (!b || !execution_id)
        return null_given(err, __func__);
    belay_rc rc =
        exec_revoke(&b->site, execution_id, expected_lease_id, reason, &revoked, err);
    if (rc == BELAY_OK && out_revoked)
        *out_revoked = revoked;
    return rc;
}

belay_rc belay_execution_tag(struct belay *b, const char *execution_id,
                             const struct belay_tag *tags, size_t n,
                             struct belay_error *err)
{
    if (!b || !execution_id || (!tags && n > 0))
        return null_given(err, __func__);
    for (size_t i = 0; i < n; i++) {
        if (!tags[i].key)
            return null_given(err, "belay_tag.key");
    }
    return exec_tag(&b->site, execution_id, tags, n, err);
}

/* --- looking --- */

belay_rc belay_execution_describe(struct belay *b, const char *execution_id,
                                  struct belay_arena *arena,
                                  struct belay_execution *out, struct belay_error *err)
{
    struct belay_execution found;

    if (!b || !execution_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = exec_describe(&b->site, execution_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_list(struct belay *b,
                              const struct belay_execution_filter *filter,
                              struct belay_arena *arena, struct belay_executions *out,
                              struct belay_error *err)
{
    struct belay_execution_filter known = { .size = sizeof(known) };
    struct belay_executions found = { 0 };
    belay_rc rc = BELAY_OK;

    if (!b || !arena || !out)
        return null_given(err, __func__);
    if (filter)
        rc = sized_read(&filter_type, filter, &known, err);
    if (rc == BELAY_OK)
        rc = exec_list(&b->site, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_result(struct belay *b, const char *execution_id,
                                struct belay_arena *arena, struct belay_result *out,
                                struct belay_error *err)
{
    struct belay_result found;

    if (!b || !execution_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = exec_result(&b->site, execution_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_attempts(struct belay *b, const char *execution_id,
                                  struct belay_arena *arena, struct belay_attempts *out,
                                  struct belay_error *err)
{
    struct belay_attempts found = { 0 };

    if (!b || !execution_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = exec_attempts(&b->site, execution_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_why(struct belay *b, const char *execution_id,
                             struct belay_arena *arena, struct belay_why *out,
                             struct belay_error *err)
{
    struct belay_why found;

    if (!b || !execution_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = exec_why(&b->site, execution_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_frames(struct belay *b,
                                const struct belay_frame_request *request,
                                struct belay_arena *arena, struct belay_frames *out,
                                struct belay_error *err)
{
    struct belay_frame_request known;
    struct belay_frames found = { 0 };

    if (!b || !request || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&frames_type, request, &known, err);
    if (rc == BELAY_OK && !known.execution_id)
        rc = null_given(err, "belay_frame_request.execution_id");
    if (rc == BELAY_OK)
        rc = exec_frames(&b->site, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_wait(struct belay *b, const char *execution_id,
                              int64_t wait_ms, struct belay_cancel *cancel,
                              int *out_state, struct belay_error *err)
{
    int state = 0;

    if (!b || !execution_id)
        return null_given(err, __func__);
    belay_rc rc = exec_wait(&b->site, execution_id, wait_ms, cancel, &state, err);
    if ((rc == BELAY_OK || rc == BELAY_TIMEOUT) && out_state)
        *out_state = state;
    return rc;
}

belay_rc belay_lane_list(struct belay *b, const char *after, size_t limit,
                         struct belay_arena *arena, struct belay_lanes *out,
                         struct belay_error *err)
{
    struct belay_lanes found = { 0 };

    if (!b || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = exec_lanes(&b->site, after, limit, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_execution_count(struct belay *b, struct belay_execution_stats *out,
                               struct belay_error *err)
{
    struct belay_execution_stats found = { .size = sizeof(found) };

    if (!b || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_check(&stats_type, out, err);
    if (rc == BELAY_OK)
        rc = exec_count(&b->site, &found, err);
    if (rc == BELAY_OK)
        sized_write(&stats_type, &found, out);
    return rc;
}

/* --- what happens --- */

/* NULL stays NULL. */
static belay_rc scanner_read(const struct belay_scanner_filter *in,
                             struct belay_scanner_filter *known,
                             const struct belay_scanner_filter **out,
                             struct belay_error *err)
{
    *out = in ? known : NULL;
    return in ? sized_read(&scanner_type, in, known, err) : BELAY_OK;
}

belay_rc belay_execution_events(struct belay *b,
                                const struct belay_event_request *request,
                                struct belay_arena *arena, struct belay_events *out,
                                struct belay_error *err)
{
    struct belay_scanner_filter filter;
    struct belay_event_request known;
    struct belay_events found = { 0 };

    if (!b || !request || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&events_type, request, &known, err);
    if (rc == BELAY_OK)
        rc = scanner_read(known.filter, &filter, &known.filter, err);
    if (rc == BELAY_OK)
        rc = exec_events(&b->site, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_timers_step(struct belay *b, const struct belay_scanner_filter *filter,
                           struct belay_timer_report *out, struct belay_error *err)
{
    struct belay_scanner_filter known;
    struct belay_timer_report found = { 0 };

    if (!b || !out)
        return null_given(err, __func__);
    belay_rc rc = scanner_read(filter, &known, &filter, err);
    if (rc == BELAY_OK)
        rc = exec_timers_step(&b->site, filter, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_timers_run(struct belay *b, const struct belay_scanner_filter *filter,
                          struct belay_cancel *cancel, struct belay_error *err)
{
    struct belay_scanner_filter known;

    if (!b || !cancel)
        return null_given(err, __func__);
    belay_rc rc = scanner_read(filter, &known, &filter, err);
    return rc ? rc : exec_timers_run(&b->site, filter, cancel, err);
}
