/* Processes as JSON. */
#include "api/op_process.h"

static json_t *scope_json(const struct belay_scope *s)
{
    json_t *o = json_object();
    int failed = op_set_text(o, "session_id", s->session_id);

    failed |= op_set_text(o, "frame_id", s->frame_id);
    return op_whole(o, failed);
}

static json_t *lease_json(const struct belay_process *p)
{
    json_t *o;
    int failed;

    if (!p->lease_owner)
        return json_null();
    o = json_object();
    failed = op_set_text(o, "owner_id", p->lease_owner);
    failed |= op_set_i64(o, "claimed_at_ms", p->lease_claimed_at_ms);
    failed |= op_set_i64(o, "expires_at_ms", p->lease_expires_at_ms);
    return op_whole(o, failed);
}

json_t *op_json_process(struct op_maker *m, const struct belay_process *p, bool whole)
{
    json_t *o = json_object();
    int failed = op_set_text(o, "process_id", p->process_id);

    failed |= op_set_text(o, "status", proc_status_name(p->status));
    failed |= op_set_text(o, "kind", p->kind);
    failed |= op_set_text(o, "registration_hash", p->registration_hash);
    failed |= json_object_set_new(o, "owner", scope_json(&p->owner));
    failed |= op_set_text(o, "host_profile_id", p->host_profile_id);
    failed |= op_set_json(m, o, "caused_by", p->caused_by);
    failed |= op_set_i64(o, "last_sequence", p->last_sequence);
    failed |= op_set_i64(o, "created_at_ms", p->created_at_ms);
    failed |= op_set_i64(o, "updated_at_ms", p->updated_at_ms);
    failed |= op_set_time(o, "finished_at_ms", p->finished_at_ms);
    failed |= op_set_time(o, "purge_at_ms", p->purge_at_ms);
    failed |= op_set_i64(o, "fence", p->fence);
    failed |= json_object_set_new(o, "lease", lease_json(p));
    failed |= op_set_json(m, o, "external_ref", p->external_ref);
    failed |= op_set_json(m, o, "await_output", p->await_output);
    if (whole) {
        failed |= op_set_json(m, o, "input", p->input);
        failed |= op_set_json(m, o, "event_types", p->event_types);
    }
    return op_whole(o, failed);
}

json_t *op_json_wake(struct op_maker *m, const struct belay_wake *w)
{
    json_t *o = json_object();
    int failed = op_set_text(o, "wake_id", w->wake_id);

    failed |= op_set_text(o, "state", proc_wake_state_name(w->state));
    failed |= op_set_text(o, "process_id", w->process_id);
    failed |= op_set_i64(o, "sequence", w->sequence);
    failed |= op_set_text(o, "event_type", w->event_type);
    failed |= json_object_set_new(o, "target", scope_json(&w->target));
    failed |= op_set_text(o, "dedupe_key", w->dedupe_key);
    failed |= op_set_text(o, "input", w->input);
    failed |= op_set_json(m, o, "process_caused_by", w->process_caused_by);
    failed |= op_set_i64(o, "created_at_ms", w->created_at_ms);
    failed |= op_set_time(o, "enqueue_seq", w->enqueue_seq > 0 ? w->enqueue_seq : -1);
    failed |= op_set_time(o, "settled_at_ms", w->settled_at_ms);
    return op_whole(o, failed);
}

json_t *op_json_process_event(struct op_maker *m, const struct belay_process_event *e)
{
    json_t *o = json_object();
    int failed = op_set_text(o, "process_id", e->process_id);

    failed |= op_set_i64(o, "sequence", e->sequence);
    failed |= op_set_text(o, "event_type", e->event_type);
    failed |= op_set_json_bytes(m, o, "payload", bytes_of(e->payload, e->payload_len));
    failed |= op_set_text(o, "payload_hash", e->payload_hash);
    failed |= op_set_text(o, "replay_key", e->replay_key);
    failed |= op_set_text(o, "owner_session", e->owner_session);
    failed |= op_set_i64(o, "occurred_at_ms", e->occurred_at_ms);
    failed |= op_set_text(o, "terminal", proc_status_name(e->terminal));
    failed |= op_set_text(o, "authority", proc_authority_name(e->authority));
    failed |= op_set_time(o, "fence", e->fence > 0 ? e->fence : -1);
    failed |= json_object_set_new(o, "wake",
                                  e->wake ? op_json_wake(m, e->wake) : json_null());
    return op_whole(o, failed);
}

json_t *op_json_process_change(const struct belay_process_change *c)
{
    json_t *o = json_object();
    int failed = op_set_text(o, "cursor", c->cursor);

    failed |= op_set_text(o, "change", proc_change_name(c->kind));
    failed |= op_set_text(o, "process_id", c->process_id);
    failed |= op_set_text(o, "registration_hash", c->registration_hash);
    failed |= op_set_text(o, "status", proc_status_name(c->status));
    failed |= op_set_i64(o, "at_ms", c->at_ms);
    failed |= op_set_i64(o, "sequence", c->sequence);
    failed |= op_set_text(o, "detail", c->detail);
    return op_whole(o, failed);
}

json_t *op_json_process_grant(const struct belay_process_grant *g)
{
    json_t *o = json_object();
    int failed = op_set_text(o, "process_id", g->process_id);

    failed |= op_set_text(o, "status", proc_status_name(g->status));
    failed |= op_set_text(o, "session_id", g->scope.session_id);
    failed |= op_set_text(o, "frame_id", g->scope.frame_id);
    failed |= op_set_text(o, "kind", g->kind);
    failed |= op_set_text(o, "label", g->label);
    failed |= op_set_i64(o, "granted_at_ms", g->granted_at_ms);
    return op_whole(o, failed);
}

json_t *op_json_process_lease(struct op_maker *m, const struct belay_process_lease *l,
                              struct belay_arena *a)
{
    const char *handle = NULL;
    belay_rc rc = proc_lease_text(l, a, &handle, m->err);

    if (rc) {
        m->rc = rc;
        return NULL;
    }
    json_t *o = json_object();
    int failed = op_set_text(o, "process_id", l->process_id);
    failed |= op_set_text(o, "owner_id", l->owner_id);
    failed |= op_set_i64(o, "fence", l->fence);
    failed |= op_set_text(o, "lease_token", l->lease_token);
    failed |= op_set_i64(o, "claimed_at_ms", l->claimed_at_ms);
    failed |= op_set_i64(o, "expires_at_ms", l->expires_at_ms);
    failed |= op_set_text(o, "handle", handle);
    return op_whole(o, failed);
}
