/* What can be seen of executions, as text. */
#include "exec.h"

static const char *or_none(const char *s)
{
    return s ? s : "-";
}

static const char *named(int dimension, int value)
{
    return or_none(belay_value_name(dimension, value));
}

/* --- one --- */

struct belay_execution look(struct world *w, const char *id)
{
    struct belay_execution out = { 0 };

    if (RC(w, belay_execution_describe(w->use, id, w->arena, &out, &w->err), BELAY_OK))
        EQ(w, belay_state_derive(&out.vector), out.state); /* V1 */
    return out;
}

int state_of(struct world *w, const char *id)
{
    return look(w, id).state;
}

static const char *vector_text(struct world *w, const struct belay_execution *e)
{
    const struct belay_vector *v = &e->vector;

    return text(
        w, "%s/%s/%s/%s/%s/%s/%s", named(BELAY_DIM_PHASE, v->phase),
        named(BELAY_DIM_OWNERSHIP, v->ownership),
        named(BELAY_DIM_ELIGIBILITY, v->eligibility),
        named(BELAY_DIM_BLOCKING, v->blocking), named(BELAY_DIM_OUTCOME, v->outcome),
        named(BELAY_DIM_ATTEMPT_STATE, v->attempt), named(BELAY_DIM_STATE, e->state));
}

const char *vector_of(struct world *w, const char *id)
{
    struct belay_execution e = look(w, id);

    return vector_text(w, &e);
}

static struct belay_attempts attempts(struct world *w, const char *id)
{
    struct belay_attempts all = { 0 };

    (void)RC(w, belay_execution_attempts(w->use, id, w->arena, &all, &w->err),
             BELAY_OK);
    return all;
}

const char *attempts_of(struct world *w, const char *id)
{
    struct belay_attempts all = attempts(w, id);
    const char *out = "";

    for (size_t i = 0; i < all.n; i++) {
        const struct belay_attempt *a = &all.items[i];
        EQ(w, a->index, (int64_t)i);
        out = text(w, "%s%s%s %s", out, i > 0 ? ", " : "",
                   named(BELAY_DIM_ATTEMPT_TYPE, a->type),
                   named(BELAY_DIM_ATTEMPT_END, a->end));
    }
    return out;
}

const char *lineage_of(struct world *w, const char *id)
{
    struct belay_attempts all = attempts(w, id);
    const char *out = "";

    for (size_t i = 0; i < all.n; i++) {
        const struct belay_attempt *a = &all.items[i];
        const char *before =
            text(w, "after %lld", (long long)a->previous_attempt_index);
        out = text(w, "%s%s%s", out, i > 0 ? ", " : "",
                   a->previous_attempt_index < 0 ? "first" : before);
        if (a->retry_reason)
            out = text(w, "%s (%s)", out, a->retry_reason);
    }
    return out;
}

/* --- frames and results --- */

static struct belay_frames frames(struct world *w, const char *id, int64_t attempt)
{
    struct belay_frame_request r = {
        .size = sizeof(r), .execution_id = id, .attempt = attempt, .limit = 1000
    };
    struct belay_frames out = { 0 };

    (void)RC(w, belay_execution_frames(w->use, &r, w->arena, &out, &w->err), BELAY_OK);
    return out;
}

const char *frames_of(struct world *w, const char *id, int64_t attempt)
{
    struct belay_frames all = frames(w, id, attempt);
    const char *out = "";

    for (size_t i = 0; i < all.n; i++)
        out = text(w, "%s%s%.*s", out, i > 0 ? " " : "", (int)all.items[i].len,
                   (const char *)all.items[i].bytes);
    OK(w, all.closed == (all.closed_reason != NULL));
    return text(w, "%s|%s", out, or_none(all.closed_reason));
}

const char *result_of(struct world *w, const char *id)
{
    struct belay_result r = { 0 };
    belay_rc rc = belay_execution_result(w->use, id, w->arena, &r, &w->err);

    if (rc)
        return belay_error_info((int)rc)->name;
    return r.has_result ? text(w, "%.*s", (int)r.len, (const char *)r.bytes) : "-";
}

/* --- events --- */

static const char *event_text(struct world *w, const struct belay_event *e)
{
    const char *name = named(BELAY_DIM_EVENT, e->type);

    if (e->type == BELAY_EVENT_COMPLETION)
        return text(w, "%s:%s", name, named(BELAY_DIM_OUTCOME, e->outcome));
    if (e->reason && *e->reason)
        return text(w, "%s(%s)", name, e->reason);
    return name;
}

/* All that there are after a cursor, with or without who and when. */
static const char *events_text(struct world *w, const char *id, const char *after,
                               bool whole)
{
    struct belay_event_request r = {
        .size = sizeof(r), .after = after, .execution_id = id, .limit = 1000
    };
    const char *out = "";
    struct belay_events page;

    do {
        page = (struct belay_events){ 0 };
        if (!RC(w, belay_execution_events(w->use, &r, w->arena, &page, &w->err),
                BELAY_OK))
            break;
        for (size_t i = 0; i < page.n; i++) {
            const struct belay_event *e = &page.items[i];
            out = text(w, "%s%s%s", out, *out ? " " : "", event_text(w, e));
            if (whole)
                out = text(w, "%s[%s %s %lld by %s at %lld]", out, e->cursor,
                           e->execution_id, (long long)e->fence, or_none(e->worker),
                           (long long)e->produced_at_ms);
        }
        r.after = page.cursor;
    } while (page.n > 0);
    return out;
}

const char *events_of(struct world *w, const char *id)
{
    return events_text(w, id, NULL, false);
}

const char *events_after(struct world *w, const char *id, const char *cursor)
{
    return events_text(w, id, cursor, false);
}

const char *events_now(struct world *w)
{
    struct belay_event_request r = { .size = sizeof(r), .after = "now" };
    struct belay_events page = { 0 };

    (void)RC(w, belay_execution_events(w->use, &r, w->arena, &page, &w->err), BELAY_OK);
    EQ(w, page.n, 0);
    return page.cursor;
}

size_t completions_of(struct world *w, const char *id)
{
    size_t n = 0;

    for (const char *at = events_of(w, id); (at = strstr(at, "completion:")); at++)
        n++;
    return n;
}

/* --- everything --- */

static const char *execution_text(struct world *w, const struct belay_execution *e)
{
    const char *out = text(
        w,
        "%s %s %s %s %s %d attempt %lld of %lld retries %lld reclaims %lld replays "
        "%lld fence %lld %s by %s until %lld times %lld %lld %lld %lld due %lld %lld "
        "%lld",
        e->id, e->ns, e->lane, or_none(e->kind), vector_text(w, e), e->priority,
        (long long)e->attempt, (long long)e->attempts, (long long)e->retries,
        (long long)e->reclaims, (long long)e->replays, (long long)e->fence,
        or_none(e->attempt_id), or_none(e->worker), (long long)e->lease_expires_at_ms,
        (long long)e->created_at_ms, (long long)e->started_at_ms,
        (long long)e->updated_at_ms, (long long)e->finished_at_ms,
        (long long)e->delay_until_ms, (long long)e->deadline_at_ms,
        (long long)e->timeout_at_ms);

    out = text(w, "%s progress %d %s %lld failure %d %s %zu cancel %s %s result %d %s",
               out, e->progress_percent, or_none(e->progress_message),
               (long long)e->progress_at_ms, e->failure_class,
               or_none(e->failure_message), e->failure_detail_len,
               or_none(e->cancel_reason), or_none(e->cancelled_by), e->has_result,
               or_none(e->blocking_detail));
    for (size_t i = 0; i < e->n_tags; i++)
        out = text(w, "%s %s=%s", out, e->tags[i].key, e->tags[i].value);
    return out;
}

static const char *attempt_text(struct world *w, const char *id,
                                const struct belay_attempt *a)
{
    return text(
        w, "\n  %lld %s %s %s by %s fence %lld %lld-%lld %s %s: %lld frames %s",
        (long long)a->index, a->attempt_id, named(BELAY_DIM_ATTEMPT_TYPE, a->type),
        named(BELAY_DIM_ATTEMPT_END, a->end), or_none(a->worker), (long long)a->fence,
        (long long)a->started_at_ms, (long long)a->ended_at_ms,
        or_none(a->failure_class), or_none(a->failure_message), (long long)a->frames,
        frames_of(w, id, a->index));
}

const char *all_of(struct world *w, const char *id)
{
    struct belay_error before = w->err;
    struct belay_execution e = look(w, id);
    struct belay_attempts all = attempts(w, id);
    const char *out = execution_text(w, &e);

    EQ(w, (int64_t)all.n, e.attempts); /* W3 */
    for (size_t i = 0; i < all.n; i++)
        out = text(w, "%s%s", out, attempt_text(w, id, &all.items[i]));
    out = text(w, "%s\n  result %s", out, result_of(w, id));
    w->err = before;
    return out;
}

static const char *counts_text(struct world *w, const char *out)
{
    struct belay_execution_stats s = { .size = sizeof(s) };
    struct belay_lanes lanes = { 0 };

    (void)RC(w, belay_execution_count(w->use, &s, &w->err), BELAY_OK);
    for (int i = 1; i <= BELAY_STATE_SKIPPED; i++)
        out = text(w, "%s %lld", out, (long long)s.count[i]);
    (void)RC(w, belay_lane_list(w->use, NULL, 0, w->arena, &lanes, &w->err), BELAY_OK);
    for (size_t i = 0; i < lanes.n; i++)
        out = text(w, "%s\nlane %s %lld %lld %zu", out, lanes.items[i].lane,
                   (long long)lanes.items[i].waiting,
                   (long long)lanes.items[i].oldest_at_ms, lanes.items[i].routes);
    return out;
}

const char *all_work(struct world *w)
{
    struct belay_error before = w->err;
    struct belay_execution_filter f = { .size = sizeof(f), .limit = 1000 };
    struct belay_executions page;
    const char *out = "";

    do {
        page = (struct belay_executions){ 0 };
        if (!RC(w, belay_execution_list(w->use, &f, w->arena, &page, &w->err),
                BELAY_OK))
            break;
        for (size_t i = 0; i < page.n; i++)
            out = text(w, "%s\n%s", out, all_of(w, page.items[i].id));
        f.cursor = page.next_cursor;
    } while (page.next_cursor);
    out = counts_text(w, out);
    out = text(w, "%s\nevents %s", out, events_text(w, NULL, NULL, true));
    w->err = before;
    return out;
}
