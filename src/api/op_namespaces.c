#include "api/handle.h"
#include "api/op_handlers.h"
#include "work/namespaces.h"

static json_t *row_of(const struct namespace_info *info)
{
    json_t *row = json_object();
    int failed = 0;

    failed |= json_object_set_new(row, "name", op_text(info->name));
    failed |= json_object_set_new(
        row, "state",
        json_string(info->deleting ? NAMESPACE_DELETING : NAMESPACE_ACTIVE));
    failed |=
        json_object_set_new(row, "created_at_ms", json_integer(info->created_at_ms));
    if (!failed)
        return row;
    json_decref(row);
    return NULL;
}

belay_rc op_namespace_ls(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_value *cursor = op_get(call, "cursor");
    size_t limit = (size_t)op_get(call, "limit")->number, n = 0;
    struct namespace_info *found = NULL;
    int failed = 0;

    belay_rc rc =
        namespaces_list(call->belay->store, cursor ? cursor->text : bytes_of(NULL, 0),
                        limit + 1, &arena, &found, &n, err);
    if (rc)
        return rc;
    json_t *items = json_array(), *next = NULL;
    for (size_t i = 0; i < n && i < limit; i++)
        failed |= json_array_append_new(items, row_of(&found[i]));
    if (n > limit) {
        next = op_text(found[limit - 1].name);
        failed |= !next;
    }
    return op_list(items, next, failed, out, err);
}

belay_rc op_namespace_create(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    struct bytes name = op_get(call, "name")->text;
    bool created = false;
    belay_rc rc =
        namespaces_create(call->belay->store, name, op_principal(call), &created, err);
    if (rc)
        return rc;

    json_t *result = json_object();
    int failed = json_object_set_new(result, "name", op_text(name));
    failed |= json_object_set_new(result, "created", json_boolean(created));
    return op_finish(result, failed, out, err);
}

belay_rc op_namespace_delete(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    struct bytes name = op_get(call, "name")->text;

    if (!bytes_eq(name, op_get(call, "confirm")->text)) {
        (void)err_reason(err, BELAY_INVALID, "confirm",
                         "--confirm: must be the name of the namespace");
        err_entity(err, name);
        return BELAY_INVALID;
    }
    belay_rc rc = namespaces_delete(call->belay->store, name, op_principal(call), err);
    if (rc)
        return rc;

    json_t *result = json_object();
    int failed = json_object_set_new(result, "name", op_text(name));
    failed |= json_object_set_new(result, "deleted", json_true());
    return op_finish(result, failed, out, err);
}
