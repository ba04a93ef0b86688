/* Sessions: what is committed, read and cared for. */
#include "api/handle.h"
#include "api/op_args.h"
#include "base/json.h"
#include "work/checkpoint.h"

/* --- commits --- */

/* The commit's own claims, and those of --complete behind them. */
static belay_rc add_completes(const struct op_call *call, struct belay_arena *a,
                              struct belay_commit *commit, struct belay_error *err)
{
    size_t n = commit->n_completes;
    const struct belay_claim **claims =
        arena_zalloc(a, n + call->n_values, sizeof(*claims));
    belay_rc rc = BELAY_OK;

    if (!claims)
        return err_no_memory(err, "a commit");
    for (size_t i = 0; i < n; i++)
        claims[i] = commit->completes[i];
    for (size_t i = 0; rc == BELAY_OK && i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, "complete") == 0)
            rc = op_read_claim(call->values[i].text, a, &claims[n++], err);
    }
    commit->completes = claims;
    commit->n_completes = n;
    return rc;
}

/* What the file says, and what the options say over it.  *file holds strings of it. */
static belay_rc read_commit(const struct op_call *call, struct belay_arena *a,
                            json_t **file, struct belay_commit *out,
                            struct belay_error *err)
{
    const struct op_value *given = op_get(call, "file");
    belay_rc rc = BELAY_OK;

    *out = (struct belay_commit){ .size = sizeof(*out),
                                  .expected_revision = BELAY_ANY_REVISION };
    if (!given && !op_get(call, "complete"))
        return err_reason(err, BELAY_INVALID, "usage",
                          "--file: is missing, and there is no --complete either");
    if (given)
        rc = json_read(given->text, given->text.len, file, err);
    if (rc != BELAY_OK)
        err_context(err, "--file");
    if (rc == BELAY_OK && given)
        rc = op_read_commit(*file, a, out, err);
    if (rc == BELAY_OK)
        rc = op_expect(call, &out->expected_revision, err);
    if (rc == BELAY_OK && op_get(call, "turn"))
        out->turn_id = op_str(call, "turn");
    return rc ? rc : add_completes(call, a, out, err);
}

belay_rc op_session_commit(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *file CLEANUP(json_decrefp) = NULL;
    struct op_maker m = { .err = err };
    struct belay_committed done = { 0 };
    struct belay_commit commit;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = read_commit(call, &arena, &file, &commit, err);
    if (rc == BELAY_OK)
        rc = session_commit(&s, &commit, &arena, &done, err);
    if (rc)
        return rc;
    json_t *result = op_json_committed(&m, &done);
    return op_made(&m, result, !result, out);
}

/* --- reading --- */

static int set_usage(json_t *result, const struct belay_usage *usage, size_t n)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < n; i++)
        failed |= json_array_append_new(list, op_json_usage(&usage[i]));
    return failed | json_object_set_new(result, "usage", list);
}

/* A session may have no meta. */
static belay_rc load_meta(const struct session *s, struct belay_arena *a,
                          struct belay_session_meta *out, bool *found,
                          struct belay_error *err)
{
    belay_rc rc = session_meta_load(s, a, out, err);

    *found = rc == BELAY_OK;
    return rc == BELAY_NOT_FOUND ? BELAY_OK : rc;
}

belay_rc op_session_show(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    const struct belay_usage *usage = NULL;
    struct belay_session_meta meta = { 0 };
    struct belay_head head = { 0 };
    struct session s;
    bool has_meta = false;
    size_t n = 0;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = session_head(&s, &arena, &head, err);
    if (rc == BELAY_OK)
        rc = session_usage(&s, &arena, &usage, &n, err);
    if (rc == BELAY_OK)
        rc = load_meta(&s, &arena, &meta, &has_meta, err);
    if (rc)
        return rc;
    json_t *result = op_json_head(&m, &head);
    int failed = !result;
    failed |= set_usage(result, usage, n);
    failed |= json_object_set_new(
        result, "meta", has_meta ? op_json_meta(&m, s.id, &meta) : json_null());
    return op_made(&m, result, failed, out);
}

belay_rc op_session_ls(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_sessions found = { 0 };
    belay_rc rc =
        session_list(call->belay->space, op_str(call, "parent"), op_str(call, "cursor"),
                     (size_t)op_get(call, "limit")->number, &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_head(&m, &found.heads[i]));
    return op_made_pages(&m, items, failed, found.next_cursor, out);
}

belay_rc op_session_log(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_commit_log found = { 0 };
    struct session s;
    int64_t after = 0;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = op_cursor(call, &after, err);
    if (rc == BELAY_OK)
        rc = session_log(&s, after, (size_t)op_get(call, "limit")->number, &arena,
                         &found, err);
    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_entry(&m, &found.entries[i]));
    return op_made_list(&m, items, failed, found.next_after, out);
}

static json_t *list_nodes(struct op_maker *m, const struct belay_nodes *found)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < found->n; i++)
        failed |= json_array_append_new(list, op_json_node(m, &found->nodes[i]));
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

belay_rc op_session_nodes(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_nodes found = { 0 };
    struct session s;
    int64_t after = 0;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = op_cursor(call, &after, err);
    if (rc == BELAY_OK)
        rc = session_nodes(&s, after, (size_t)op_get(call, "limit")->number, &arena,
                           &found, err);
    if (rc)
        return rc;
    return op_made_list(&m, list_nodes(&m, &found), 0, found.next_after_seq, out);
}

belay_rc op_session_path(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_nodes found = { 0 };
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = session_path(&s, op_str(call, "leaf"), &arena, &found, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "leaf_node_id", found.leaf);
    failed |= op_set_bool(result, "truncated", found.truncated);
    failed |= json_object_set_new(result, "nodes", list_nodes(&m, &found));
    return op_made(&m, result, failed, out);
}

belay_rc op_session_node(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_node node = { 0 };
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = session_node(&s, op_str(call, "node"), &arena, &node, err);
    if (rc)
        return rc;
    json_t *result = op_json_node(&m, &node);
    return op_made(&m, result, !result, out);
}

belay_rc op_session_checkpoint(const struct op_call *call, json_t **out,
                               struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_checkpoint_info info = { 0 };
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = checkpoint_load(s.sp, s.id, &arena, &info, err);
    if (rc)
        return rc;
    json_t *result = op_json_checkpoint(&m, &info);
    return op_made(&m, result, !result, out);
}

/* --- meta --- */

/* The meta as it is now. */
static belay_rc answer_meta(const struct session *s, json_t **out,
                            struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_session_meta meta = { 0 };
    belay_rc rc = session_meta_load(s, &arena, &meta, err);

    if (rc)
        return rc;
    json_t *result = op_json_meta(&m, s->id, &meta);
    return op_made(&m, result, !result, out);
}

belay_rc op_session_meta_show(const struct op_call *call, json_t **out,
                              struct belay_error *err)
{
    struct session s;
    belay_rc rc = op_session_of(call, &s, err);

    return rc ? rc : answer_meta(&s, out, err);
}

belay_rc op_session_meta_set(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    const struct belay_session_meta meta = {
        .size = sizeof(meta),
        .name = op_str(call, "name"),
        .created_at = op_str(call, "created_at"),
        .model = op_str(call, "model"),
        .cwd = op_str(call, "cwd"),
        .parent = op_str(call, "parent"),
        .caused_by = op_str(call, "caused_by"),
    };
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = session_meta_save(&s, &meta, op_get(call, "if_absent") != NULL, err);
    return rc ? rc : answer_meta(&s, out, err);
}

/* --- care --- */

/* {"session_id", name: number or bool} */
static belay_rc answer_done(const struct session *s, const char *name, json_t *value,
                            json_t **out, struct belay_error *err)
{
    json_t *result = json_object();
    int failed = op_set_text(result, "session_id", s->id);

    failed |= json_object_set_new(result, name, value);
    return op_finish(result, failed, out, err);
}

belay_rc op_session_tombstone(const struct op_call *call, json_t **out,
                              struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *const *ids = NULL;
    size_t n = 0, hidden = 0;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = op_strs(call, "node", &arena, &ids, &n, err);
    if (rc == BELAY_OK)
        rc = session_tombstone(&s, ids, n, &hidden, err);
    if (rc)
        return rc;
    return answer_done(&s, "tombstoned", json_integer((json_int_t)hidden), out, err);
}

belay_rc op_session_vacuum(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    size_t removed = 0;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = session_vacuum(&s, &removed, err);
    if (rc)
        return rc;
    return answer_done(&s, "removed", json_integer((json_int_t)removed), out, err);
}

belay_rc op_session_heal(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    bool changed = false;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = session_heal(&s, &changed, err);
    return rc ? rc : answer_done(&s, "changed", json_boolean(changed), out, err);
}

belay_rc op_session_delete(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    bool deleted = false;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = op_confirm(call, s.id, err);
    if (rc == BELAY_OK)
        rc = session_delete(&s, &deleted, err);
    return rc ? rc : answer_done(&s, "deleted", json_boolean(deleted), out, err);
}
