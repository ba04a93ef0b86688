/* A commit: the order of its checks, its writes, the head. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "work/session_impl.h"

/* --- the checks of the body --- */

/* S1: with the guard on the head's row, of all that expect a revision one wins. */
static belay_rc check_revision(struct txn *t, const struct commit *c)
{
    int64_t expected = c->in->expected_revision, actual = c->now.revision;

    if (actual >= TIME_MAX_MS)
        return txn_fail(t, BELAY_OUT_OF_RANGE, "revision",
                        "session %s: there is no revision left", c->s->id);
    if (expected == BELAY_ANY_REVISION || expected == actual)
        return BELAY_OK;
    belay_rc rc = txn_fail(t, BELAY_HEAD_REVISION_CONFLICT, "",
                           "session %s: revision %" PRId64 " was expected, it is at "
                           "%" PRId64,
                           c->s->id, expected, actual);
    err_numbers(txn_error(t), expected, actual);
    err_entity(txn_error(t), c->session);
    return rc;
}

static int compare_seqs(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* No batch is completed twice in one commit. */
static belay_rc check_distinct(struct txn *t, const struct commit *c)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < c->in->n_completes; i++)
        n += c->owned[i].n;
    int64_t *seqs = arena_zalloc(txn_arena(t), n, sizeof(*seqs));
    if (!seqs)
        return err_no_memory(txn_error(t), "claims");
    for (size_t i = 0; i < c->in->n_completes; i++) {
        for (size_t j = 0; j < c->owned[i].n; j++)
            seqs[at++] = row_i64(c->owned[i].batches[j], BATCH_SEQ, 0);
    }
    qsort(seqs, n, sizeof(*seqs), compare_seqs);
    for (size_t i = 1; i < n; i++) {
        if (seqs[i] == seqs[i - 1])
            return txn_fail(t, BELAY_INVALID, "duplicate_batch",
                            "completes: batch %" PRId64 " is there twice", seqs[i]);
    }
    return BELAY_OK;
}

static belay_rc check_claimed(struct txn *t, struct commit *c)
{
    size_t n = c->in->n_completes;
    belay_rc rc = BELAY_OK;

    c->owned = arena_zalloc(txn_arena(t), n, sizeof(*c->owned));
    if (!c->owned)
        return err_no_memory(txn_error(t), "claims");
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = queue_own(t, c->session, c->in->completes[i], &c->owned[i]);
    return rc ? rc : check_distinct(t, c);
}

/* Whether the commit itself brings the blob. */
static bool is_brought(const struct commit *c, const char *ref)
{
    for (size_t i = 0; i < PARTS && c->in->checkpoint; i++) {
        const struct checkpoint_part *part = &c->checkpoint.part[i];
        if (part->brought && strcmp(part->ref, ref) == 0)
            return true;
    }
    return false;
}

/* S3: every blob that will be named is there. */
static belay_rc check_refs(struct txn *t, const struct commit *c)
{
    belay_rc rc = c->in->checkpoint ? checkpoint_check(t, &c->checkpoint) : BELAY_OK;
    const struct row *blob;

    for (size_t i = 0; i < c->n_frame_refs && rc == BELAY_OK; i++) {
        struct value key = value_str(c->frame_refs[i]);
        rc = txn_get(t, &row_blob, &key, &blob);
        if (rc || blob || is_brought(c, c->frame_refs[i]))
            continue;
        rc = txn_fail(t, BELAY_INVALID, "unknown_ref",
                      "agent_frames: there is no blob %s", c->frame_refs[i]);
        err_entity(txn_error(t), bytes_str(c->frame_refs[i]));
    }
    return rc;
}

/* --- its writes --- */

/* S6: what the frames name and did not name before.  Old frames that cannot be read
 * named nothing for sure. */
static belay_rc touch_refs(struct txn *t, const struct commit *c, const struct row *old)
{
    const char **before = NULL;
    size_t n = 0;
    bool found;
    belay_rc rc = BELAY_OK;

    if (c->n_frame_refs > 0 && old && old->v[FRAMES_FRAMES].kind != VALUE_NULL)
        rc = sorted_refs(row_bytes(old, FRAMES_FRAMES), txn_arena(t), &before, &n,
                         txn_error(t));
    if (rc == BELAY_CORRUPT)
        rc = BELAY_OK;
    for (size_t i = 0; i < c->n_frame_refs && rc == BELAY_OK; i++) {
        const char *ref = c->frame_refs[i];
        bool named =
            n > 0 && bsearch(&ref, before, n, sizeof(const char *), compare_refs);
        if (!named && !is_brought(c, ref))
            rc = blob_touch(t, ref, &found);
    }
    return rc;
}

static belay_rc write_frames(struct txn *t, const struct commit *c)
{
    struct value v[FRAMES_COLUMNS] = { [FRAMES_SESSION] = value_text(c->session) };
    const struct row *old;
    struct change changes[2];
    size_t n = 0;

    if (c->config.ptr)
        changes[n++] = (struct change){ FRAMES_CONFIG, value_json(c->config) };
    if (c->frames.ptr)
        changes[n++] = (struct change){ FRAMES_FRAMES, value_json(c->frames) };
    if (n == 0)
        return BELAY_OK;
    belay_rc rc = txn_get(t, &row_session_frames, v, &old);
    bool same = rc == BELAY_OK && old;
    for (size_t i = 0; i < n; i++) {
        v[changes[i].column] = changes[i].value;
        same = same && value_eq(&old->v[changes[i].column], &changes[i].value);
    }
    if (rc || same)
        return rc;
    rc = touch_refs(t, c, old);
    if (rc)
        return rc;
    return old ? txn_put(t, &row_session_frames, v, changes, n)
               : txn_insert(t, &row_session_frames, v);
}

static struct value text_or_null(struct bytes text)
{
    return text.ptr ? value_text(text) : value_null();
}

/* What the commit makes of the session's row. */
#define HEAD_CHANGES (7 + PARTS)
static size_t head_changes(const struct commit *c, struct change out[HEAD_CHANGES])
{
    size_t n = 0;

    out[n++] = (struct change){ SESSION_REVISION, value_i64(c->now.revision) };
    out[n++] = (struct change){ SESSION_LEAF, text_or_null(c->new_leaf) };
    out[n++] = (struct change){ SESSION_NODE_COUNT, value_i64(c->now.node_count) };
    out[n++] = (struct change){ SESSION_FIRST_SEQ, value_i64(c->now.first_seq) };
    out[n++] = (struct change){ SESSION_LAST_SEQ, value_i64(c->now.last_seq) };
    out[n++] = (struct change){ SESSION_UPDATED_AT_MS, value_i64(c->now_ms) };
    if (c->in->current_frame)
        out[n++] = (struct change){ SESSION_FRAME, value_str(c->in->current_frame) };
    if (c->in->checkpoint)
        n += checkpoint_changes(&c->checkpoint, out + n);
    return n;
}

/* S2: the revision goes up by one. */
static belay_rc write_head(struct txn *t, struct commit *c)
{
    struct value v[SESSION_COLUMNS] = { [SESSION_ID] = value_text(c->session),
                                        [SESSION_STATE] = value_str(SESSION_ACTIVE),
                                        [SESSION_CREATED_AT_MS] =
                                            value_i64(c->now_ms) };
    struct change changes[HEAD_CHANGES];

    c->now.revision++;
    size_t n = head_changes(c, changes);
    if (c->now.row)
        return txn_put(t, &row_session, v, changes, n);
    for (size_t i = 0; i < n; i++)
        v[changes[i].column] = changes[i].value;
    belay_rc rc = txn_insert(t, &row_session, v);
    return rc ? rc : txn_rank_add(t, bytes_str(SESSION_INDEX), c->now_ms, c->session);
}

static belay_rc remove_completed(struct txn *t, const struct commit *c,
                                 struct buf *out_ids)
{
    belay_rc rc = BELAY_OK;
    bool first = true;

    buf_append_char(out_ids, '[');
    for (size_t i = 0; i < c->in->n_completes && rc == BELAY_OK; i++) {
        for (size_t j = 0; j < c->owned[i].n; j++, first = false) {
            if (!first)
                buf_append_char(out_ids, ',');
            json_append_string(out_ids, row_bytes(c->owned[i].batches[j], BATCH_ID));
        }
        rc = queue_remove(t, c->session, &c->owned[i]);
    }
    buf_append_char(out_ids, ']');
    if (rc == BELAY_OK && out_ids->failed)
        rc = err_no_memory(txn_error(t), "claims");
    return rc;
}

static belay_rc write_note(struct txn *t, const struct commit *c,
                           const struct buf *completed)
{
    struct commit_note note = { .revision = c->now.revision,
                                .at_ms = c->now_ms,
                                .node_count = c->now.node_count,
                                .leaf = c->new_leaf,
                                .node_ids = c->node_ids,
                                .completed = buf_view(completed),
                                .usage_ids = c->usage_ids };

    if (c->in->turn_id)
        note.turn_id = bytes_str(c->in->turn_id);
    if (c->in->checkpoint) {
        note.checkpoint_ref = bytes_str(c->checkpoint.part[PART_MANIFEST].ref);
        note.manifest = c->checkpoint.manifest;
    }
    return session_note(t, c->session, &note);
}

static belay_rc write_rest(struct txn *t, struct commit *c)
{
    CLEANUP(buf_release) struct buf completed = { 0 };
    size_t stamped;
    belay_rc rc = BELAY_OK;

    if (c->in->checkpoint)
        rc = checkpoint_apply(t, &c->checkpoint, c->now.row);
    if (rc == BELAY_OK)
        rc = write_frames(t, c);
    if (rc == BELAY_OK)
        rc = write_head(t, c);
    if (rc == BELAY_OK)
        rc = remove_completed(t, c, &completed);
    if (rc == BELAY_OK)
        rc = attachments_stamp(t, c->session, c->in->attachments, c->in->n_attachments,
                               &stamped);
    if (rc == BELAY_OK)
        rc = turn_stamp(t, c);
    return rc ? rc : write_note(t, c, &completed);
}

/* --- the body --- */

/* A turn is most often committed for the first time, and its nodes are new. */
static belay_rc expect_new(struct txn *t, const struct commit *c)
{
    belay_rc rc = BELAY_OK;

    if (c->in->turn_id) {
        struct row_key key = key_of_name(c->session, bytes_str(c->in->turn_id));
        rc = txn_expect_none(t, &row_turn, key.v);
    }
    for (size_t i = 0; i < c->in->n_nodes && rc == BELAY_OK; i++) {
        struct row_key key = key_of_name(c->session, c->nodes[i].id);
        rc = txn_expect_none(t, &row_node_name, key.v);
    }
    return rc;
}

/* N4: nothing of it happens unless all of it does.  The order of the checks is part of
 * the contract: a turn that was committed is answered before anything that it removed is
 * looked for. */
static belay_rc commit_body(struct txn *t, void *arg)
{
    struct commit *c = arg;
    const struct row **rows =
        arena_zalloc(txn_arena(t), c->n_wants, sizeof(const void *));

    if (!rows)
        return err_no_memory(txn_error(t), "a commit");
    belay_rc rc = expect_new(t, c);
    if (rc == BELAY_OK)
        rc = txn_get_many(t, c->wants, c->n_wants, rows);
    if (rc == BELAY_OK)
        rc = txn_now(t, &c->now_ms);
    if (rc == BELAY_OK)
        rc = session_to_write(t, c->session, &c->now); /* N3 */
    if (rc == BELAY_OK)
        rc = turn_find(t, c);
    if (rc || c->replayed)
        return rc;
    rc = check_revision(t, c);
    if (rc == BELAY_OK)
        rc = check_claimed(t, c);
    if (rc == BELAY_OK)
        rc = check_refs(t, c);
    if (rc == BELAY_OK)
        rc = usage_apply(t, c);
    if (rc == BELAY_OK)
        rc = graph_apply(t, c);
    return rc ? rc : write_rest(t, c);
}

static const char *keep_text(struct belay_arena *a, struct bytes text, bool *failed)
{
    struct bytes copy = { 0 };

    *failed |= !arena_copy(a, text, &copy);
    return (const char *)copy.ptr;
}

/* The answer with everything that is known before, and room for the leaf: once it is
 * committed, nothing can fail any more. */
static belay_rc prepare_answer(const struct commit *c, struct belay_arena *a,
                               struct belay_committed *out, char **leaf,
                               struct belay_error *err)
{
    size_t n = c->in->n_nodes;
    const char **ids = arena_zalloc(a, n, sizeof(const char *));
    bool failed = !ids;

    *leaf = arena_alloc(a, SESSION_NAME_MAX + 1);
    failed |= !*leaf;
    for (size_t i = 0; i < n && !failed; i++)
        ids[i] = keep_text(a, c->nodes[i].id, &failed);
    *out = (struct belay_committed){ .node_ids = ids, .n_node_ids = n };
    if (c->in->checkpoint) {
        out->checkpoint_ref =
            keep_text(a, bytes_str(c->checkpoint.part[PART_MANIFEST].ref), &failed);
        out->manifest = keep_text(a, c->checkpoint.manifest, &failed);
    }
    return failed ? err_no_memory(err, "an answer") : BELAY_OK;
}

static void finish_answer(const struct commit *c, char *leaf,
                          struct belay_committed *out)
{
    size_t len = c->new_leaf.len;

    out->revision = c->now.revision;
    out->node_count = c->now.node_count;
    if (!c->new_leaf.ptr)
        return;
    memcpy(leaf, c->new_leaf.ptr, len);
    leaf[len] = '\0';
    out->leaf = leaf;
}

belay_rc session_commit(const struct session *s, const struct belay_commit *commit,
                        struct belay_arena *a, struct belay_committed *out,
                        struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct commit c = { .s = s, .in = commit, .a = &scratch };
    struct belay_committed answer;
    char *leaf = NULL;

    belay_rc rc = commit_prepare(&c, err);
    if (rc == BELAY_OK)
        rc = prepare_answer(&c, a, &answer, &leaf, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, commit_body, &c, NULL, &scratch, err);
    if (rc)
        return rc;
    if (c.replayed)
        rc = turn_answer(c.entry, a, &answer, err);
    else
        finish_answer(&c, leaf, &answer);
    if (rc == BELAY_OK)
        *out = answer;
    return rc;
}
