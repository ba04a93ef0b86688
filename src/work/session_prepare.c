/* A commit before its body: checked, put into canonical form, hashed, and what it will
 * read. */
#include <stdlib.h>

#include "work/session_impl.h"

/* --- texts --- */

belay_rc session_json(const char *text, const char *what, json_t **out,
                      struct belay_error *err)
{
    struct belay_error local = { .code = 0 };
    belay_rc rc = json_read(bytes_str(text), SESSION_JSON_MAX, out, &local);

    if (rc == BELAY_OK)
        return rc;
    const char *reason = local.reason[0] ? local.reason : what;
    return err_reason(err, rc, rc == BELAY_INVALID ? reason : "", "%s: %s", what,
                      local.message);
}

belay_rc session_keep(const struct buf *text, struct belay_arena *a, struct bytes *out,
                      struct belay_error *err)
{
    return !text->failed && arena_copy(a, buf_view(text), out)
               ? BELAY_OK
               : err_no_memory(err, "a commit");
}

belay_rc session_canonical(const json_t *value, struct belay_arena *a,
                           struct bytes *out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    belay_rc rc = json_write(value, &text, err);

    return rc ? rc : session_keep(&text, a, out, err);
}

void append_texts(struct buf *out, const struct bytes *first, size_t n, size_t stride)
{
    buf_append_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            buf_append_char(out, ',');
        json_append_string(out,
                           *(const struct bytes *)((const char *)first + i * stride));
    }
    buf_append_char(out, ']');
}

/* --- what was given --- */

static belay_rc check_counts(const struct belay_commit *in, struct belay_error *err)
{
    const struct {
        const char *what;
        const void *list;
        size_t n, max;
    } lists[] = {
        { "nodes", in->nodes, in->n_nodes, COMMIT_NODES_MAX },
        { "usage", in->usage, in->n_usage, COMMIT_USAGE_MAX },
        { "completes", in->completes, in->n_completes, COMMIT_CLAIMS_MAX },
        { "attachments", in->attachments, in->n_attachments, COMMIT_ATTACHMENTS_MAX },
    };

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        if (lists[i].n > lists[i].max)
            return err_reason(err, BELAY_INVALID, "too_large",
                              "%s: %zu in one commit, at most %zu are allowed",
                              lists[i].what, lists[i].n, lists[i].max);
        if (lists[i].n > 0 && !lists[i].list)
            return err_reason(err, BELAY_INVALID, lists[i].what,
                              "%s: the list is missing", lists[i].what);
    }
    return BELAY_OK;
}

static belay_rc check_graph(const struct belay_commit *in, struct belay_error *err)
{
    if (in->graph < BELAY_GRAPH_UNCHANGED || in->graph > BELAY_GRAPH_REPLACE)
        return err_reason(err, BELAY_INVALID, "graph", "graph: no such delta");
    if (in->graph == BELAY_GRAPH_UNCHANGED && in->n_nodes > 0)
        return err_reason(err, BELAY_INVALID, "graph",
                          "graph: nodes are given and it is to be unchanged");
    if (in->leaf && in->clear_leaf)
        return err_reason(err, BELAY_INVALID, "leaf",
                          "leaf: one is named and there is to be none");
    return BELAY_OK;
}

static belay_rc check_names(const struct belay_commit *in, struct belay_error *err)
{
    const struct {
        const char *what, *id;
    } ids[] = {
        { "turn_id", in->turn_id },
        { "current_frame", in->current_frame },
        { "leaf", in->leaf },
    };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(ids) && rc == BELAY_OK; i++) {
        if (ids[i].id)
            rc = session_check_name(ids[i].id, ids[i].what, err);
    }
    for (size_t i = 0; i < in->n_attachments && rc == BELAY_OK; i++)
        rc = session_check_name(in->attachments[i], "attachment_id", err);
    return rc;
}

static belay_rc check_claims(const struct belay_commit *in, struct belay_error *err)
{
    for (size_t i = 0; i < in->n_completes; i++) {
        const struct belay_claim *claim = in->completes[i];
        if (!claim || (claim->n_batches > 0 && !claim->batches))
            return err_reason(err, BELAY_INVALID, "completes",
                              "completes[%zu]: is no claim", i);
        if (claim->n_batches > BELAY_CLAIM_MAX)
            return err_reason(err, BELAY_INVALID, "too_large",
                              "completes[%zu]: more than %d batches", i,
                              BELAY_CLAIM_MAX);
    }
    return BELAY_OK;
}

static belay_rc check_given(const struct commit *c, struct belay_error *err)
{
    const struct belay_commit *in = c->in;
    belay_rc rc = session_check_id(c->s->id, err);

    if (rc == BELAY_OK && in->session_id && strcmp(in->session_id, c->s->id) != 0)
        rc = err_set(err, BELAY_SESSION_BINDING_MISMATCH,
                     "session %s: this handle is bound to it, the commit is for %s",
                     c->s->id, in->session_id);
    if (rc == BELAY_OK && in->expected_revision < BELAY_ANY_REVISION)
        rc = err_reason(err, BELAY_INVALID, "expected_revision",
                        "expected_revision: must not be negative");
    if (rc == BELAY_OK)
        rc = check_counts(in, err);
    if (rc == BELAY_OK)
        rc = check_graph(in, err);
    if (rc == BELAY_OK)
        rc = check_names(in, err);
    return rc ? rc : check_claims(in, err);
}

/* --- made ready --- */

static belay_rc prepare_config(struct commit *c, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *config = NULL;

    if (!c->in->config)
        return BELAY_OK;
    belay_rc rc = session_json(c->in->config, "config", &config, err);
    if (rc == BELAY_OK && !json_is_object(config))
        rc = err_reason(err, BELAY_INVALID, "config", "config: must be a JSON object");
    return rc ? rc : session_canonical(config, c->a, &c->config, err);
}

int compare_refs(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The refs of frames, in order and each once. */
belay_rc sorted_refs(struct bytes frames, struct belay_arena *a, const char ***out,
                     size_t *out_n, struct belay_error *err)
{
    const char *const *refs = NULL;
    size_t n = 0, kept = 0;
    belay_rc rc = frames_refs(frames, a, &refs, &n, err);

    if (rc)
        return rc;
    const char **sorted = arena_zalloc(a, n, sizeof(const char *));
    if (!sorted)
        return err_no_memory(err, "agent frames");
    for (size_t i = 0; i < n; i++)
        sorted[i] = refs[i];
    qsort(sorted, n, sizeof(const char *), compare_refs);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || strcmp(sorted[kept - 1], sorted[i]) != 0)
            sorted[kept++] = sorted[i];
    }
    *out = sorted;
    *out_n = kept;
    return BELAY_OK;
}

static bool is_array_of_objects(const json_t *value)
{
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
    {
        if (!json_is_object(item))
            return false;
    }
    return json_is_array(value);
}

static belay_rc prepare_frames(struct commit *c, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *frames = NULL;

    if (!c->in->agent_frames)
        return BELAY_OK;
    belay_rc rc = session_json(c->in->agent_frames, "agent_frames", &frames, err);
    if (rc == BELAY_OK && !is_array_of_objects(frames))
        rc = err_reason(err, BELAY_INVALID, "agent_frames",
                        "agent_frames: must be a JSON array of objects");
    if (rc == BELAY_OK)
        rc = session_canonical(frames, c->a, &c->frames, err);
    if (rc == BELAY_OK)
        rc = sorted_refs(c->frames, c->a, &c->frame_refs, &c->n_frame_refs, err);
    return rc != BELAY_CORRUPT ? rc
                               : err_reason(err, BELAY_INVALID, "unknown_ref",
                                            "agent_frames: an execution_state_ref is "
                                            "no blob's name");
}

/* A manifest is kept inside a log entry, one level deeper. */
static belay_rc prepare_checkpoint(struct commit *c, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf nested = { 0 };
    CLEANUP(json_decrefp) json_t *value = NULL;

    if (!c->in->checkpoint)
        return BELAY_OK;
    belay_rc rc = checkpoint_prepare(c->s->sp, c->in->checkpoint, c->s->profile, c->a,
                                     &c->checkpoint, err);
    if (rc)
        return rc;
    buf_append_char(&nested, '[');
    buf_append(&nested, c->checkpoint.manifest);
    buf_append_char(&nested, ']');
    if (nested.failed)
        return err_no_memory(err, "a checkpoint");
    rc = json_read(buf_view(&nested), COMMIT_ENTRY_MAX, &value, err);
    if (rc)
        err_context(err, "turn_state");
    return rc;
}

struct wants {
    struct commit *c;
    struct row_key *keys;
    size_t n, max;
};

static void want(struct wants *w, const struct row_type *type, struct bytes name)
{
    struct commit *c = w->c;

    w->keys[w->n] = type->n_key == 2 ? key_of_name(c->session, name)
                                     : (struct row_key){ { value_text(name) } };
    c->wants[w->n] = (struct row_want){ type, w->keys[w->n].v };
    w->n++;
}

static size_t count_wants(const struct commit *c)
{
    size_t n = 4 + PARTS + c->n_frame_refs + c->in->n_usage + c->in->n_attachments +
               2 * c->in->n_nodes + 1;

    for (size_t i = 0; i < c->in->n_completes; i++)
        n += QUEUE_WANTS(c->in->completes[i]);
    return n;
}

static void want_blobs(struct wants *w)
{
    const struct commit *c = w->c;

    for (size_t i = 0; i < PARTS && c->in->checkpoint; i++) {
        if (c->checkpoint.part[i].named)
            want(w, &row_blob, bytes_str(c->checkpoint.part[i].ref));
    }
    for (size_t i = 0; i < c->n_frame_refs; i++)
        want(w, &row_blob, bytes_str(c->frame_refs[i]));
}

/* All rows whose keys are known beforehand, for one round trip. */
static belay_rc prepare_wants(struct commit *c, struct belay_error *err)
{
    size_t max = count_wants(c);
    struct bytes *names = arena_zalloc(c->a, 2 * c->in->n_nodes + 1, sizeof(*names));
    struct wants w = { .c = c, .keys = arena_zalloc(c->a, max, sizeof(*w.keys)) };

    c->wants = arena_zalloc(c->a, max, sizeof(*c->wants));
    if (!names || !w.keys || !c->wants)
        return err_no_memory(err, "a commit");
    want(&w, &row_session, c->session);
    if (c->in->turn_id)
        want(&w, &row_turn, bytes_str(c->in->turn_id));
    if (c->config.ptr || c->frames.ptr)
        want(&w, &row_session_frames, c->session);
    if (c->in->n_usage > 0)
        want(&w, &row_session_usage, c->session);
    for (size_t i = 0; i < c->in->n_usage; i++)
        want(&w, &row_usage_seen, c->usage[i].id);
    for (size_t i = 0; i < c->in->n_attachments; i++)
        want(&w, &row_attachment, bytes_str(c->in->attachments[i]));
    want_blobs(&w);
    for (size_t i = 0, n = graph_names(c, names); i < n; i++)
        want(&w, &row_node_name, names[i]);
    for (size_t i = 0; i < c->in->n_completes; i++)
        w.n += queue_own_wants(c->in->completes[i], &c->wants[w.n], c->a);
    c->n_wants = w.n;
    return BELAY_OK;
}

/* Everything but the deciding; blobs last, since they may be written already. */
belay_rc commit_prepare(struct commit *c, struct belay_error *err)
{
    belay_rc rc = check_given(c, err);

    if (rc)
        return rc;
    c->session = bytes_str(c->s->id);
    if (c->in->leaf)
        c->leaf = bytes_str(c->in->leaf);
    rc = prepare_config(c, err);
    if (rc == BELAY_OK)
        rc = prepare_frames(c, err);
    if (rc == BELAY_OK)
        rc = graph_prepare(c, err);
    if (rc == BELAY_OK)
        rc = usage_prepare(c, err);
    if (rc == BELAY_OK)
        rc = prepare_checkpoint(c, err);
    if (rc == BELAY_OK)
        rc = turn_prepare(c, err);
    return rc ? rc : prepare_wants(c, err);
}
