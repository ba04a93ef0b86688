/* Attachments of a session. */
#include "api/op_args.h"

static belay_rc answer_one(const struct op_call *call, const char *name, bool yes,
                           json_t **out, struct belay_error *err)
{
    json_t *result = json_object();
    int failed = op_set_text(result, "attachment_id", op_str(call, "attachment"));

    failed |= op_set_bool(result, name, yes);
    return op_finish(result, failed, out, err);
}

belay_rc op_attachment_intent(const struct op_call *call, json_t **out,
                              struct belay_error *err)
{
    bool is_new = false;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = attachment_intent(&s, op_str(call, "attachment"), op_str(call, "uri"),
                               &is_new, err);
    return rc ? rc : answer_one(call, "new", is_new, out, err);
}

belay_rc op_attachment_commit(const struct op_call *call, json_t **out,
                              struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *const *ids = NULL;
    size_t n = 0, stamped = 0;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = op_strs(call, "attachment", &arena, &ids, &n, err);
    if (rc == BELAY_OK)
        rc = attachment_commit(&s, ids, n, &stamped, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "session_id", s.id);
    failed |= op_set_i64(result, "committed", (int64_t)stamped);
    return op_finish(result, failed, out, err);
}

belay_rc op_attachment_ls(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct belay_attachment *found = NULL;
    struct op_maker m = { .err = err };
    struct session s;
    size_t n = 0;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = attachment_uncommitted(&s, op_get(call, "older_than")->number,
                                    (size_t)op_get(call, "limit")->number, &arena,
                                    &found, &n, err);
    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < n; i++)
        failed |= json_array_append_new(items, op_json_attachment(&found[i]));
    return op_made_list(&m, items, failed, 0, out);
}

belay_rc op_attachment_forget(const struct op_call *call, json_t **out,
                              struct belay_error *err)
{
    bool removed = false;
    struct session s;

    belay_rc rc = op_session_of(call, &s, err);
    if (rc == BELAY_OK)
        rc = attachment_forget(&s, op_str(call, "attachment"), &removed, err);
    return rc ? rc : answer_one(call, "removed", removed, out, err);
}
