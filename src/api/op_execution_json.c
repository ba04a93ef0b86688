/* Executions as JSON. */
#include <stdio.h>

#include "api/op_execution.h"

#define FIELD_MAX 64

int op_set_value(json_t *object, const char *name, int dimension, int value)
{
    return op_set_text(object, name, belay_value_name(dimension, value));
}

static int set_base64(json_t *object, const char *name, struct bytes content)
{
    char field[FIELD_MAX];

    (void)snprintf(field, sizeof(field), "%s_base64", name);
    return json_object_set_new(object, field, op_to_base64(content));
}

int op_set_data(struct op_maker *m, json_t *object, const char *name,
                struct bytes content, bool is_json)
{
    if (!content.ptr)
        return json_object_set_new(object, name, json_null());
    return is_json ? op_set_json_bytes(m, object, name, content)
                   : set_base64(object, name, content);
}

int op_set_text_or_bytes(json_t *object, const char *name, struct bytes content)
{
    bool is_text = bytes_is_utf8(content) &&
                   (content.len == 0 || !memchr(content.ptr, 0, content.len));

    if (!content.ptr)
        return json_object_set_new(object, name, json_null());
    if (!is_text)
        return set_base64(object, name, content);
    return json_object_set_new(object, name,
                               json_stringn((const char *)content.ptr, content.len));
}

static json_t *tags_of(const struct belay_tag *tags, size_t n)
{
    json_t *object = json_object();
    int failed = 0;

    for (size_t i = 0; i < n; i++)
        failed |= op_set_text(object, tags[i].key, tags[i].value);
    return op_whole(object, failed);
}

static json_t *texts_of(const char *const *texts, size_t n)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < n; i++)
        failed |= json_array_append_new(list, op_text(bytes_str(texts[i])));
    return op_whole(list, failed);
}

/* --- an execution --- */

static json_t *vector_of(const struct belay_vector *v)
{
    json_t *vector = json_object();
    int failed = 0;

    failed |= op_set_value(vector, "phase", BELAY_DIM_PHASE, v->phase);
    failed |= op_set_value(vector, "ownership", BELAY_DIM_OWNERSHIP, v->ownership);
    failed |=
        op_set_value(vector, "eligibility", BELAY_DIM_ELIGIBILITY, v->eligibility);
    failed |= op_set_value(vector, "blocking_reason", BELAY_DIM_BLOCKING, v->blocking);
    failed |= op_set_value(vector, "outcome", BELAY_DIM_OUTCOME, v->outcome);
    failed |=
        op_set_value(vector, "attempt_state", BELAY_DIM_ATTEMPT_STATE, v->attempt);
    return op_whole(vector, failed);
}

static json_t *progress_of(const struct belay_execution *e)
{
    if (e->progress_percent < 0 && !e->progress_message)
        return json_null();
    json_t *progress = json_object();
    int failed = op_set_time(progress, "percent", e->progress_percent);
    failed |= op_set_text(progress, "message", e->progress_message);
    failed |= op_set_time(progress, "at_ms", e->progress_at_ms);
    return op_whole(progress, failed);
}

static json_t *failure_of(const struct belay_execution *e)
{
    if (e->failure_class == BELAY_FAILURE_UNSET)
        return json_null();
    json_t *failure = json_object();
    int failed =
        op_set_value(failure, "class", BELAY_DIM_FAILURE_CLASS, e->failure_class);
    failed |= op_set_text(failure, "message", e->failure_message);
    if (e->failure_detail)
        failed |= op_set_text_or_bytes(
            failure, "detail", bytes_of(e->failure_detail, e->failure_detail_len));
    return op_whole(failure, failed);
}

static json_t *cancel_of(const struct belay_execution *e)
{
    if (!e->cancel_reason && !e->cancelled_by)
        return json_null();
    json_t *cancel = json_object();
    int failed = op_set_text(cancel, "reason", e->cancel_reason);
    failed |= op_set_text(cancel, "source", e->cancelled_by);
    return op_whole(cancel, failed);
}

static int set_times(json_t *to, const struct belay_execution *e)
{
    int failed = op_set_time(to, "lease_expires_at_ms", e->lease_expires_at_ms);

    failed |= op_set_time(to, "created_at_ms", e->created_at_ms);
    failed |= op_set_time(to, "started_at_ms", e->started_at_ms);
    failed |= op_set_time(to, "updated_at_ms", e->updated_at_ms);
    failed |= op_set_time(to, "finished_at_ms", e->finished_at_ms);
    failed |= op_set_time(to, "delay_until_ms", e->delay_until_ms);
    failed |= op_set_time(to, "deadline_at_ms", e->deadline_at_ms);
    failed |= op_set_time(to, "timeout_at_ms", e->timeout_at_ms);
    return failed;
}

static int set_counts(json_t *to, const struct belay_execution *e)
{
    int failed = op_set_time(to, "attempt", e->attempt);

    failed |= op_set_i64(to, "attempts", e->attempts);
    failed |= op_set_i64(to, "retries", e->retries);
    failed |= op_set_i64(to, "reclaims", e->reclaims);
    failed |= op_set_i64(to, "replays", e->replays);
    failed |= op_set_i64(to, "fence", e->fence);
    return failed;
}

/* What only its own description has. */
static int set_rest(struct op_maker *m, json_t *to, const struct belay_execution *e)
{
    int failed = op_set_text(to, "attempt_id", e->attempt_id);

    failed |= json_object_set_new(to, "progress", progress_of(e));
    failed |= json_object_set_new(to, "failure", failure_of(e));
    failed |= op_set_text(to, "creator", e->creator);
    failed |= op_set_text(to, "key", e->key);
    failed |= op_set_bool(to, "has_result", e->has_result);
    failed |= json_object_set_new(to, "cancel", cancel_of(e));
    failed |= op_set_json(m, to, "policy", e->policy);
    if (e->traceparent)
        failed |= op_set_text(to, "traceparent", e->traceparent);
    if (e->tracestate)
        failed |= op_set_text(to, "tracestate", e->tracestate);
    return failed;
}

json_t *op_json_execution(struct op_maker *m, const struct belay_execution *e,
                          bool whole)
{
    json_t *to = json_object();
    int failed = op_set_text(to, "id", e->id);

    failed |= op_set_text(to, "namespace", e->ns);
    failed |= op_set_text(to, "lane", e->lane);
    failed |= op_set_text(to, "kind", e->kind);
    failed |= op_set_value(to, "state", BELAY_DIM_STATE, e->state);
    failed |= json_object_set_new(to, "vector", vector_of(&e->vector));
    failed |= op_set_text(to, "blocking_detail", e->blocking_detail);
    failed |= op_set_i64(to, "priority", e->priority);
    failed |= set_counts(to, e);
    failed |= op_set_text(to, "worker", e->worker);
    failed |= set_times(to, e);
    failed |= json_object_set_new(to, "tags", tags_of(e->tags, e->n_tags));
    failed |= json_object_set_new(to, "requires", texts_of(e->requires, e->n_requires));
    failed |= op_set_text(to, "flow", e->flow);
    failed |= op_set_text(to, "session", e->session);
    failed |= op_set_text(to, "process", e->process);
    if (whole)
        failed |= set_rest(m, to, e);
    return op_whole(to, failed);
}

/* --- work --- */

json_t *op_json_work(struct op_maker *m, const struct belay_work *w,
                     struct belay_arena *a)
{
    const char *handle = NULL;
    belay_rc rc = handle_text(&w->handle, a, &handle, m->err);

    if (rc != BELAY_OK) {
        m->rc = rc;
        return NULL;
    }
    json_t *to = json_object();
    int failed = op_set_text(to, "handle", handle);
    failed |= op_set_value(to, "kind", BELAY_DIM_HANDLE_KIND, w->handle.kind);
    failed |= op_set_i64(to, "fence", w->fence);
    failed |= op_set_time(to, "lease_expires_at_ms", w->expires_at_ms);
    failed |= op_set_text(to, "execution", w->execution_id);
    failed |= op_set_text(to, "lane", w->lane);
    failed |= op_set_text(to, "execution_kind", w->kind);
    failed |= op_set_i64(to, "attempt", w->attempt);
    failed |= op_set_value(to, "attempt_type", BELAY_DIM_ATTEMPT_TYPE, w->attempt_type);
    failed |= op_set_data(m, to, "payload", bytes_of(w->payload, w->payload_len),
                          w->payload_is_json);
    failed |= json_object_set_new(to, "tags", tags_of(w->tags, w->n_tags));
    failed |= op_set_text(to, "session", w->session);
    failed |= op_set_text(to, "process", w->process);
    failed |= op_set_text(to, "traceparent", w->traceparent);
    failed |= op_set_text(to, "tracestate", w->tracestate);
    failed |= op_set_time(to, "timeout_at_ms", w->timeout_at_ms);
    failed |= op_set_time(to, "deadline_at_ms", w->deadline_at_ms);
    failed |= op_set_time(to, "created_at_ms", w->submitted_at_ms);
    return op_whole(to, failed);
}

json_t *op_json_works(struct op_maker *m, const struct belay_works *works,
                      struct belay_arena *a)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < works->n; i++)
        failed |= json_array_append_new(list, op_json_work(m, &works->work[i], a));
    return op_whole(list, failed);
}

json_t *op_json_grant(const struct belay_grant *g)
{
    json_t *to = json_object();
    int failed = op_set_text(to, "grant", g->grant_id);

    failed |= op_set_text(to, "execution", g->execution_id);
    failed |= op_set_text(to, "partition_key", g->partition_key);
    failed |= op_set_text(to, "lane", g->lane);
    failed |= op_set_text(to, "worker", g->worker);
    failed |= op_set_text(to, "kind",
                          g->grant_id ? belay_value_name(BELAY_DIM_HANDLE_KIND, g->kind)
                                      : NULL);
    failed |= op_set_time(to, "expires_at_ms", g->grant_id ? g->expires_at_ms : -1);
    return op_whole(to, failed);
}

/* --- what happened --- */

json_t *op_json_attempt(const struct belay_attempt *a)
{
    json_t *to = json_object();
    int failed = op_set_i64(to, "attempt", a->index);

    failed |= op_set_text(to, "attempt_id", a->attempt_id);
    failed |= op_set_value(to, "type", BELAY_DIM_ATTEMPT_TYPE, a->type);
    failed |= op_set_value(to, "end", BELAY_DIM_ATTEMPT_END, a->end);
    failed |= op_set_text(to, "worker", a->worker);
    failed |= op_set_i64(to, "fence", a->fence);
    failed |= op_set_time(to, "started_at_ms", a->started_at_ms);
    failed |= op_set_time(to, "ended_at_ms", a->ended_at_ms);
    failed |= op_set_i64(to, "frames", a->frames);
    failed |= op_set_text(to, "closed_reason", a->closed_reason);
    failed |= op_set_text(to, "failure_class", a->failure_class);
    failed |= op_set_text(to, "failure_message", a->failure_message);
    failed |= op_set_time(to, "previous_attempt_index", a->previous_attempt_index);
    failed |= op_set_text(to, "retry_reason", a->retry_reason);
    return op_whole(to, failed);
}

json_t *op_json_frame(const struct belay_frame_row *f)
{
    struct bytes content = bytes_of(f->bytes ? f->bytes : "", f->len);
    json_t *to = json_object();
    int failed = op_set_i64(to, "attempt", f->attempt);

    failed |= op_set_i64(to, "seq", f->seq);
    failed |= op_set_value(to, "kind", BELAY_DIM_FRAME_KIND, f->kind);
    failed |= op_set_value(to, "mode", BELAY_DIM_FRAME_MODE, f->mode);
    failed |= op_set_time(to, "at_ms", f->at_ms);
    failed |= op_set_text_or_bytes(to, "data", content);
    failed |= op_set_text(to, "frame_type", f->frame_type);
    failed |= op_set_text(to, "correlation_id", f->correlation_id);
    if (f->caller_seq > 0)
        failed |= op_set_i64(to, "caller_seq", f->caller_seq);
    return op_whole(to, failed);
}

json_t *op_json_event(struct op_maker *m, const struct belay_event *e)
{
    bool ended = e->type == BELAY_EVENT_COMPLETION;
    json_t *to = json_object();
    int failed = op_set_text(to, "cursor", e->cursor);

    failed |= op_set_value(to, "type", BELAY_DIM_EVENT, e->type);
    failed |= op_set_text(to, "execution", e->execution_id);
    failed |= op_set_text(to, "lane", e->lane);
    failed |= op_set_text(
        to, "outcome", ended ? belay_value_name(BELAY_DIM_OUTCOME, e->outcome) : NULL);
    failed |= op_set_data(m, to, "payload", bytes_of(e->payload, e->payload_len),
                          e->payload_is_json);
    if (e->payload_gone)
        failed |= op_set_bool(to, "payload_gone", true);
    failed |= op_set_time(to, "produced_at_ms", e->produced_at_ms);
    failed |= op_set_i64(to, "fence", e->fence);
    failed |= op_set_text(to, "worker", e->worker);
    failed |= op_set_text(to, "reason", e->reason);
    failed |= op_set_text(to, "flow", e->flow);
    return op_whole(to, failed);
}

json_t *op_json_lane(const struct belay_lane *l)
{
    json_t *to = json_object();
    int failed = op_set_text(to, "lane", l->lane);

    failed |= op_set_i64(to, "waiting", l->waiting);
    failed |= op_set_time(to, "oldest_at_ms", l->oldest_at_ms);
    failed |= op_set_i64(to, "routes", (int64_t)l->routes);
    failed |= op_set_time(to, "created_at_ms", l->created_at_ms);
    return op_whole(to, failed);
}

json_t *op_json_error(const struct belay_error *err)
{
    json_t *to = json_object();
    int failed = op_set_text(to, "code", belay_error_info(err->code)->name);

    failed |= op_set_text(to, "reason", *err->reason ? err->reason : NULL);
    failed |= op_set_text(to, "message", err->message);
    return op_whole(to, failed);
}
