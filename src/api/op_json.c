#include "api/op_json.h"

#include <stdio.h>

#include "base/json.h"

/* What an answer may put around stored JSON. */
#define DEPTH_AROUND 8
#define FIELD_MAX 64

const char *const op_delivery_names[] = { "earliest_safe_boundary",
                                          "after_current_turn_commit", NULL };
const char *const op_slot_names[] = { "join", "exclusive", NULL };
const char *const op_boundary_names[] = { "idle", "active_turn_checkpoint", NULL };
const char *const op_profile_names[] = { "default", "low_latency", "balanced",
                                         "compact", NULL };
const char *const op_kind_names[] = { "generic_blob",
                                      "checkpoint_manifest",
                                      "tool_state",
                                      "plugin_session_snapshot",
                                      "execution_state_snapshot",
                                      "module",
                                      NULL };

belay_rc op_made(const struct op_maker *m, json_t *result, int failed, json_t **out)
{
    if (m->rc != BELAY_OK) {
        json_decref(result);
        return m->rc;
    }
    return op_finish(result, failed, out, m->err);
}

json_t *op_whole(json_t *object, int failed)
{
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

int op_set_text(json_t *object, const char *name, const char *text)
{
    return json_object_set_new(object, name,
                               text ? op_text(bytes_str(text)) : json_null());
}

int op_set_i64(json_t *object, const char *name, int64_t n)
{
    return json_object_set_new(object, name, json_integer(n));
}

int op_set_time(json_t *object, const char *name, int64_t ms)
{
    return json_object_set_new(object, name, ms < 0 ? json_null() : json_integer(ms));
}

int op_set_bool(json_t *object, const char *name, bool yes)
{
    return json_object_set_new(object, name, json_boolean(yes));
}

/* --- stored JSON --- */

static size_t depth_of(const json_t *value)
{
    size_t deepest = 0, depth, i;
    const char *key;
    json_t *child;

    if (json_is_array(value)) {
        json_array_foreach(value, i, child)
        {
            depth = depth_of(child);
            deepest = depth > deepest ? depth : deepest;
        }
        return deepest + 1;
    }
    json_object_foreach((json_t *)value, key, child)
    {
        depth = depth_of(child);
        deepest = depth > deepest ? depth : deepest;
    }
    return json_is_object(value) ? deepest + 1 : 0;
}

/* NULL: it is none, or there is no memory. */
static json_t *parse(struct op_maker *m, const char *name, struct bytes text)
{
    struct belay_error why;
    json_t *value = NULL;
    belay_rc rc = json_read(text, text.len, &value, &why);

    if (rc == BELAY_INVALID && m->rc == BELAY_OK)
        m->rc = err_reason(m->err, BELAY_CORRUPT, "json", "%s: the store has: %s", name,
                           why.message);
    return rc == BELAY_OK ? value : NULL;
}

static bool is_too_deep(const json_t *value)
{
    return depth_of(value) + DEPTH_AROUND > JSON_DEPTH_MAX;
}

static int set_deep(json_t *object, const char *name, struct bytes text)
{
    char field[FIELD_MAX];

    (void)snprintf(field, sizeof(field), "%s_text", name);
    return json_object_set_new(object, name, json_null()) |
           json_object_set_new(object, field, op_text(text));
}

int op_set_json_bytes(struct op_maker *m, json_t *object, const char *name,
                      struct bytes text)
{
    json_t *value = parse(m, name, text);

    if (!value || !is_too_deep(value))
        return json_object_set_new(object, name, value);
    json_decref(value);
    return set_deep(object, name, text);
}

int op_set_json(struct op_maker *m, json_t *object, const char *name, const char *text)
{
    if (!text)
        return json_object_set_new(object, name, json_null());
    return op_set_json_bytes(m, object, name, bytes_str(text));
}

/* --- inboxes --- */

static int set_name(json_t *object, const char *name, const char *const *names,
                    int32_t number)
{
    for (int32_t i = 0; names[i]; i++) {
        if (i == number)
            return json_object_set_new(object, name, json_string(names[i]));
    }
    return json_object_set_new(object, name, json_null());
}

static json_t *merge_key(const struct belay_batch *b)
{
    if (b->merge != BELAY_MERGE_GROUP)
        return json_string(b->merge == BELAY_MERGE_PAYLOAD_DEFAULT ? "payload_default"
                                                                   : "never");
    json_t *key = json_object();
    return op_whole(key,
                    op_set_text(key, "group", b->merge_group ? b->merge_group : ""));
}

static json_t *items_of(struct op_maker *m, const struct belay_batch *b)
{
    json_t *items = json_array();
    int failed = 0;

    for (size_t i = 0; i < b->n_items; i++) {
        json_t *item = json_object();
        failed |= op_set_text(item, "item_id", b->items[i].item_id);
        failed |= op_set_json(m, item, "payload", b->items[i].payload);
        failed |= json_array_append_new(items, item);
    }
    return op_whole(items, failed);
}

json_t *op_json_batch(struct op_maker *m, const struct belay_batch *b)
{
    json_t *batch = json_object();
    bool held = b->claim_id != NULL;
    int failed = 0;

    failed |= op_set_text(batch, "session_id", b->session_id);
    failed |= op_set_text(batch, "batch_id", b->batch_id);
    failed |= op_set_i64(batch, "enqueue_seq", b->enqueue_seq);
    failed |= op_set_text(batch, "source_key", b->source_key);
    failed |= set_name(batch, "delivery_policy", op_delivery_names, b->delivery - 1);
    failed |= set_name(batch, "slot_policy", op_slot_names, b->slot - 1);
    failed |= json_object_set_new(batch, "merge_key", merge_key(b));
    failed |= op_set_i64(batch, "available_at_ms", b->available_at_ms);
    failed |= op_set_i64(batch, "enqueued_at_ms", b->enqueued_at_ms);
    failed |= json_object_set_new(batch, "items", items_of(m, b));
    failed |= op_set_text(batch, "claim_id", b->claim_id);
    failed |= op_set_text(batch, "owner_id", held ? b->owner_id : NULL);
    failed |= op_set_i64(batch, "fence", b->fence);
    failed |= op_set_time(batch, "claimed_at_ms", held ? b->claimed_at_ms : -1);
    failed |= op_set_time(batch, "expires_at_ms", held ? b->expires_at_ms : -1);
    return op_whole(batch, failed);
}

json_t *op_json_claim(struct op_maker *m, const struct belay_claim *c,
                      const char *handle)
{
    json_t *claim = json_object(), *batches = json_array();
    int failed = 0;

    for (size_t i = 0; i < c->n_batches; i++)
        failed |= json_array_append_new(batches, op_json_batch(m, &c->batches[i]));
    failed |= op_set_text(claim, "session_id", c->session_id);
    failed |= op_set_text(claim, "claim_id", c->claim_id);
    failed |= op_set_text(claim, "owner_id", c->owner_id);
    failed |= op_set_text(claim, "lease_token", c->lease_token);
    failed |= op_set_text(claim, "lease_id", c->lease_id);
    failed |= op_set_i64(claim, "fence", c->fence);
    failed |= op_set_i64(claim, "claimed_at_ms", c->claimed_at_ms);
    failed |= op_set_i64(claim, "expires_at_ms", c->expires_at_ms);
    failed |= op_set_text(claim, "handle", handle);
    failed |= json_object_set_new(claim, "batches", batches);
    return op_whole(claim, failed);
}

/* --- sessions --- */

json_t *op_json_committed(struct op_maker *m, const struct belay_committed *c)
{
    json_t *done = json_object(), *ids = json_array();
    int failed = 0;

    for (size_t i = 0; i < c->n_node_ids; i++)
        failed |= json_array_append_new(ids, op_text(bytes_str(c->node_ids[i])));
    failed |= op_set_i64(done, "revision", c->revision);
    failed |= op_set_i64(done, "head_revision", c->revision);
    failed |= op_set_bool(done, "replayed", c->replayed);
    failed |= op_set_text(done, "checkpoint_ref", c->checkpoint_ref);
    failed |= op_set_json(m, done, "manifest", c->manifest);
    failed |= op_set_text(done, "leaf_node_id", c->leaf);
    failed |= op_set_i64(done, "node_count", c->node_count);
    failed |= json_object_set_new(done, "node_ids", ids);
    return op_whole(done, failed);
}

json_t *op_json_head(struct op_maker *m, const struct belay_head *h)
{
    json_t *head = json_object();
    int failed = 0;

    failed |= op_set_text(head, "session_id", h->session_id);
    failed |= op_set_i64(head, "revision", h->revision);
    failed |= op_set_i64(head, "head_revision", h->revision);
    failed |= op_set_text(head, "current_agent_frame_id", h->current_frame);
    failed |= op_set_text(head, "checkpoint_ref", h->checkpoint_ref);
    failed |= op_set_text(head, "leaf_node_id", h->leaf);
    failed |= op_set_i64(head, "node_count", h->node_count);
    failed |= op_set_time(head, "created_at_ms", h->created_at_ms);
    failed |= op_set_time(head, "updated_at_ms", h->updated_at_ms);
    if (h->config)
        failed |= op_set_json(m, head, "config", h->config);
    if (h->agent_frames)
        failed |= op_set_json(m, head, "agent_frames", h->agent_frames);
    return op_whole(head, failed);
}

json_t *op_json_node(struct op_maker *m, const struct belay_node *n)
{
    struct bytes text = bytes_of(n->json, n->json_len);
    json_t *node = parse(m, "node", text);

    if (!node || !is_too_deep(node))
        return node;
    json_decref(node);
    node = json_object();
    int failed = op_set_text(node, "node_id", n->node_id);
    failed |= op_set_text(node, "parent_node_id", n->parent_node_id);
    failed |= set_deep(node, "node", text);
    return op_whole(node, failed);
}

json_t *op_json_usage(const struct belay_usage *u)
{
    json_t *usage = json_object();
    int failed = 0;

    failed |= op_set_text(usage, "source", u->source);
    failed |= op_set_text(usage, "model", u->model);
    failed |= op_set_i64(usage, "input_tokens", u->input_tokens);
    failed |= op_set_i64(usage, "output_tokens", u->output_tokens);
    failed |= op_set_i64(usage, "cached_input_tokens", u->cached_input_tokens);
    failed |= op_set_i64(usage, "reasoning_tokens", u->reasoning_tokens);
    return op_whole(usage, failed);
}

json_t *op_json_meta(struct op_maker *m, const char *session_id,
                     const struct belay_session_meta *s)
{
    json_t *meta = json_object();
    int failed = 0;

    failed |= op_set_text(meta, "session_id", session_id);
    failed |= op_set_text(meta, "name", s->name);
    failed |= op_set_text(meta, "created_at", s->created_at);
    failed |= op_set_text(meta, "model", s->model);
    failed |= op_set_text(meta, "cwd", s->cwd);
    failed |= op_set_text(meta, "parent", s->parent);
    failed |= op_set_json(m, meta, "caused_by", s->caused_by);
    return op_whole(meta, failed);
}

json_t *op_json_entry(struct op_maker *m, const struct belay_commit_entry *e)
{
    json_t *entry = json_object();
    int failed = 0;

    failed |= op_set_i64(entry, "revision", e->revision);
    failed |= op_set_time(entry, "at_ms", e->at_ms);
    failed |= op_set_text(entry, "turn_id", e->turn_id);
    failed |= op_set_json(m, entry, "commit", e->json);
    return op_whole(entry, failed);
}

json_t *op_json_checkpoint(struct op_maker *m, const struct belay_checkpoint_info *i)
{
    json_t *info = json_object();
    int64_t revision = i->plugin_snapshot_revision;
    int failed = 0;

    failed |= op_set_text(info, "checkpoint_ref", i->ref);
    failed |= op_set_json(m, info, "manifest", i->manifest);
    failed |= op_set_json(m, info, "turn_state", i->turn_state);
    failed |= op_set_text(info, "tool_state_ref", i->tool_state_ref);
    failed |= op_set_text(info, "plugin_snapshot_ref", i->plugin_snapshot_ref);
    failed |= op_set_time(info, "plugin_snapshot_revision", revision);
    failed |= op_set_text(info, "execution_state_ref", i->execution_state_ref);
    return op_whole(info, failed);
}

json_t *op_json_attachment(const struct belay_attachment *a)
{
    json_t *attachment = json_object();
    int failed = 0;

    failed |= op_set_text(attachment, "attachment_id", a->attachment_id);
    failed |= op_set_text(attachment, "session_id", a->session_id);
    failed |= op_set_text(attachment, "uri", a->uri);
    failed |= op_set_time(attachment, "intent_at_ms", a->intent_at_ms);
    failed |= op_set_time(attachment, "committed_at_ms", a->committed_at_ms);
    return op_whole(attachment, failed);
}

/* --- blobs --- */

json_t *op_json_pin(const struct belay_pin *p)
{
    json_t *pin = json_object();
    int failed = 0;

    failed |= op_set_text(pin, "name", p->name);
    failed |= op_set_text(pin, "sha256", p->sha256);
    failed |= op_set_time(pin, "created_at_ms", p->created_at_ms);
    return op_whole(pin, failed);
}

json_t *op_json_gc(const struct belay_gc_report *r, bool dry_run)
{
    json_t *report = json_object();
    const char *code = r->code ? belay_error_info(r->code)->name : NULL;
    int failed = 0;

    failed |= op_set_text(report, "outcome", belay_gc_outcome_name(r->outcome));
    failed |= op_set_bool(report, "dry_run", dry_run);
    failed |= op_set_i64(report, "roots", r->roots);
    failed |= op_set_i64(report, "retained_blobs", r->retained_blobs);
    failed |= op_set_i64(report, "deleted_blobs", r->deleted_blobs);
    failed |= op_set_i64(report, "deleted_bytes", r->deleted_bytes);
    failed |= op_set_i64(report, "deleted_uploads", r->deleted_uploads);
    failed |= op_set_i64(report, "spared_blobs", r->spared_blobs);
    failed |= op_set_i64(report, "steps", r->steps);
    failed |= op_set_text(report, "code", code);
    failed |= op_set_text(report, "reason", *r->reason ? r->reason : NULL);
    failed |= op_set_text(report, "entity", *r->entity ? r->entity : NULL);
    failed |= op_set_text(report, "message", *r->message ? r->message : NULL);
    return op_whole(report, failed);
}
