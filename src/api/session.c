#include <belay/session.h>

#include <stdlib.h>

#include "api/check.h"
#include "api/handle.h"
#include "work/checkpoint.h"
#include "work/session.h"

struct belay_session {
    struct session session;
    char id[]; /* session.id points here */
};

static const struct sized options_type = {
    "belay_session_options", sizeof(struct belay_session_options),
    END_OF(struct belay_session_options, profile)
};
static const struct sized commit_type = { "belay_commit", sizeof(struct belay_commit),
                                          END_OF(struct belay_commit, n_attachments) };
static const struct sized meta_type = { "belay_session_meta",
                                        sizeof(struct belay_session_meta),
                                        END_OF(struct belay_session_meta, caused_by) };

belay_rc belay_session_open(struct belay *b, const char *session_id,
                            const struct belay_session_options *options,
                            struct belay_session **out, struct belay_error *err)
{
    struct belay_session_options known = { .size = sizeof(known) };
    belay_rc rc = BELAY_OK;

    if (!b || !session_id || !out)
        return null_given(err, __func__);
    if (options)
        rc = sized_read(&options_type, options, &known, err);
    if (rc == BELAY_OK)
        rc = session_check_id(session_id, err);
    if (rc == BELAY_OK && (known.profile < 0 || known.profile > BELAY_COMPACT))
        rc = err_reason(err, BELAY_INVALID, "profile", "profile: there is no %d",
                        known.profile);
    if (rc != BELAY_OK)
        return rc;
    size_t len = strlen(session_id);
    struct belay_session *s = malloc(sizeof(*s) + len + 1);
    if (!s)
        return err_no_memory(err, "a session handle");
    memcpy(s->id, session_id, len + 1);
    s->session =
        (struct session){ .sp = b->space, .id = s->id, .profile = known.profile };
    *out = s;
    return BELAY_OK;
}

void belay_session_close(struct belay_session *s)
{
    free(s);
}

const char *belay_session_id(const struct belay_session *s)
{
    return s->id;
}

/* --- commits --- */

static belay_rc usage_given(const struct belay_commit *c, struct belay_error *err)
{
    for (size_t i = 0; i < c->n_usage; i++) {
        if (!c->usage || !c->usage[i].source || !c->usage[i].model)
            return err_set(err, BELAY_MISUSE,
                           "usage: %zu of %zu lacks its source or model", i + 1,
                           c->n_usage);
    }
    return BELAY_OK;
}

static belay_rc completes_given(const struct belay_commit *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (c->n_completes > 0 && !c->completes)
        return null_given(err, "belay_commit.completes");
    for (size_t i = 0; rc == BELAY_OK && i < c->n_completes; i++)
        rc = claim_given(c->completes[i], err);
    return rc;
}

belay_rc belay_session_commit(struct belay_session *s,
                              const struct belay_commit *commit,
                              struct belay_arena *arena, struct belay_committed *out,
                              struct belay_error *err)
{
    struct belay_committed found = { 0 };
    struct belay_commit known;

    if (!s || !commit || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&commit_type, commit, &known, err);
    if (rc == BELAY_OK)
        rc = strings_given(known.nodes, known.n_nodes, "nodes", err);
    if (rc == BELAY_OK)
        rc = strings_given(known.attachments, known.n_attachments, "attachments", err);
    if (rc == BELAY_OK)
        rc = usage_given(&known, err);
    if (rc == BELAY_OK)
        rc = completes_given(&known, err);
    if (rc == BELAY_OK)
        rc = session_commit(&s->session, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

/* --- reading --- */

belay_rc belay_session_head(struct belay_session *s, struct belay_arena *arena,
                            struct belay_head *out, struct belay_error *err)
{
    struct belay_head found = { 0 };

    if (!s || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_head(&s->session, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_session_nodes(struct belay_session *s, int64_t after_seq, size_t limit,
                             struct belay_arena *arena, struct belay_nodes *out,
                             struct belay_error *err)
{
    struct belay_nodes found = { 0 };

    if (!s || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_nodes(&s->session, after_seq, limit, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_session_path(struct belay_session *s, const char *leaf,
                            struct belay_arena *arena, struct belay_nodes *out,
                            struct belay_error *err)
{
    struct belay_nodes found = { 0 };

    if (!s || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_path(&s->session, leaf, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_session_node(struct belay_session *s, const char *node_id,
                            struct belay_arena *arena, struct belay_node *out,
                            struct belay_error *err)
{
    struct belay_node found = { 0 };

    if (!s || !node_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_node(&s->session, node_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_session_checkpoint(struct belay_session *s, struct belay_arena *arena,
                                  struct belay_checkpoint_info *out,
                                  struct belay_error *err)
{
    struct belay_checkpoint_info found = { 0 };

    if (!s || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = checkpoint_load(s->session.sp, s->id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_session_usage(struct belay_session *s, struct belay_arena *arena,
                             const struct belay_usage **out, size_t *out_n,
                             struct belay_error *err)
{
    const struct belay_usage *found = NULL;
    size_t n = 0;

    if (!s || !arena || !out || !out_n)
        return null_given(err, __func__);
    belay_rc rc = session_usage(&s->session, arena, &found, &n, err);
    if (rc != BELAY_OK)
        return rc;
    *out = found;
    *out_n = n;
    return BELAY_OK;
}

belay_rc belay_session_log(struct belay_session *s, int64_t after, size_t limit,
                           struct belay_arena *arena, struct belay_commit_log *out,
                           struct belay_error *err)
{
    struct belay_commit_log found = { 0 };

    if (!s || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_log(&s->session, after, limit, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_session_list(struct belay *b, const char *parent, const char *cursor,
                            size_t limit, struct belay_arena *arena,
                            struct belay_sessions *out, struct belay_error *err)
{
    struct belay_sessions found = { 0 };

    if (!b || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_list(b->space, parent, cursor, limit, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

/* --- meta --- */

belay_rc belay_session_meta_save(struct belay_session *s,
                                 const struct belay_session_meta *meta,
                                 bool only_if_absent, struct belay_error *err)
{
    struct belay_session_meta known;

    if (!s || !meta)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&meta_type, meta, &known, err);
    if (rc == BELAY_OK && known.reserved != 0)
        rc = err_set(err, BELAY_MISUSE, "struct belay_session_meta: reserved is not 0");
    return rc ? rc : session_meta_save(&s->session, &known, only_if_absent, err);
}

belay_rc belay_session_meta_load(struct belay_session *s, struct belay_arena *arena,
                                 struct belay_session_meta *out,
                                 struct belay_error *err)
{
    struct belay_session_meta found = { 0 };

    if (!s || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = session_meta_load(&s->session, arena, &found, err);
    if (rc != BELAY_OK)
        return rc;
    found.size = sizeof(found);
    *out = found;
    return BELAY_OK;
}

/* --- care --- */

belay_rc belay_session_tombstone(struct belay_session *s, const char *const *node_ids,
                                 size_t n, size_t *out_n, struct belay_error *err)
{
    size_t hidden = 0;

    if (!s)
        return null_given(err, __func__);
    belay_rc rc = strings_given(node_ids, n, "node_ids", err);
    if (rc == BELAY_OK)
        rc = session_tombstone(&s->session, node_ids, n, &hidden, err);
    if (rc == BELAY_OK && out_n)
        *out_n = hidden;
    return rc;
}

belay_rc belay_session_vacuum(struct belay_session *s, size_t *out_removed,
                              struct belay_error *err)
{
    size_t removed = 0;

    if (!s)
        return null_given(err, __func__);
    belay_rc rc = session_vacuum(&s->session, &removed, err);
    if (rc == BELAY_OK && out_removed)
        *out_removed = removed;
    return rc;
}

belay_rc belay_session_heal(struct belay_session *s, bool *out_changed,
                            struct belay_error *err)
{
    bool changed = false;

    if (!s)
        return null_given(err, __func__);
    belay_rc rc = session_heal(&s->session, &changed, err);
    if (rc == BELAY_OK && out_changed)
        *out_changed = changed;
    return rc;
}

belay_rc belay_session_delete(struct belay_session *s, bool *out_deleted,
                              struct belay_error *err)
{
    bool deleted = false;

    if (!s)
        return null_given(err, __func__);
    belay_rc rc = session_delete(&s->session, &deleted, err);
    if (rc == BELAY_OK && out_deleted)
        *out_deleted = deleted;
    return rc;
}

/* --- attachments --- */

belay_rc belay_attachment_intent(struct belay_session *s, const char *attachment_id,
                                 const char *uri, bool *out_new,
                                 struct belay_error *err)
{
    bool is_new = false;

    if (!s || !attachment_id || !uri)
        return null_given(err, __func__);
    belay_rc rc = attachment_intent(&s->session, attachment_id, uri, &is_new, err);
    if (rc == BELAY_OK && out_new)
        *out_new = is_new;
    return rc;
}

belay_rc belay_attachment_commit(struct belay_session *s, const char *const *ids,
                                 size_t n, size_t *out_n, struct belay_error *err)
{
    size_t stamped = 0;

    if (!s)
        return null_given(err, __func__);
    belay_rc rc = strings_given(ids, n, "ids", err);
    if (rc == BELAY_OK)
        rc = attachment_commit(&s->session, ids, n, &stamped, err);
    if (rc == BELAY_OK && out_n)
        *out_n = stamped;
    return rc;
}

belay_rc belay_attachment_uncommitted(struct belay_session *s, int64_t older_than_ms,
                                      size_t limit, struct belay_arena *arena,
                                      const struct belay_attachment **out,
                                      size_t *out_n, struct belay_error *err)
{
    const struct belay_attachment *found = NULL;
    size_t n = 0;

    if (!s || !arena || !out || !out_n)
        return null_given(err, __func__);
    belay_rc rc = attachment_uncommitted(&s->session, older_than_ms, limit, arena,
                                         &found, &n, err);
    if (rc != BELAY_OK)
        return rc;
    *out = found;
    *out_n = n;
    return BELAY_OK;
}

belay_rc belay_attachment_forget(struct belay_session *s, const char *attachment_id,
                                 bool *out_removed, struct belay_error *err)
{
    bool removed = false;

    if (!s || !attachment_id)
        return null_given(err, __func__);
    belay_rc rc = attachment_forget(&s->session, attachment_id, &removed, err);
    if (rc == BELAY_OK && out_removed)
        *out_removed = removed;
    return rc;
}
