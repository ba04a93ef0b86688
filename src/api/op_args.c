#include "api/op_args.h"

#include "api/handle.h"

static belay_rc wrong(struct belay_error *err, const char *name, const char *why)
{
    (void)err_reason(err, BELAY_INVALID, "argument", "--%s: %s", name, why);
    err_entity(err, bytes_str(name));
    return BELAY_INVALID;
}

const char *op_str(const struct op_call *call, const char *name)
{
    const struct op_value *value = op_get(call, name);

    return value ? (const char *)value->text.ptr : NULL;
}

int64_t op_number(const struct op_call *call, const char *name, int64_t usual)
{
    const struct op_value *value = op_get(call, name);

    return value ? value->number : usual;
}

belay_rc op_strs(const struct op_call *call, const char *name, struct belay_arena *a,
                 const char *const **out, size_t *n, struct belay_error *err)
{
    const char **list = arena_zalloc(a, call->n_values + 1, sizeof(*list));
    size_t found = 0;

    if (!list)
        return err_no_memory(err, "the arguments");
    for (size_t i = 0; i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, name) == 0)
            list[found++] = (const char *)call->values[i].text.ptr;
    }
    *out = list;
    *n = found;
    return BELAY_OK;
}

belay_rc op_cursor(const struct op_call *call, int64_t *out, struct belay_error *err)
{
    const struct op_value *cursor = op_get(call, "cursor");
    int64_t after = 0;

    if (cursor && (!bytes_to_i64(cursor->text, &after) || after < 0))
        return wrong(err, "cursor", "is not one that was given");
    *out = after;
    return BELAY_OK;
}

belay_rc op_expect(const struct op_call *call, int64_t *out, struct belay_error *err)
{
    const struct op_value *expect = op_get(call, "expect");

    if (expect && !op_read_revision(expect->text, out))
        return wrong(err, "expect", "must be a revision, or any");
    return BELAY_OK;
}

belay_rc op_confirm(const struct op_call *call, const char *name,
                    struct belay_error *err)
{
    if (bytes_eq(bytes_str(name), op_get(call, "confirm")->text))
        return BELAY_OK;
    (void)err_reason(err, BELAY_INVALID, "confirm",
                     "--confirm: must be the same id once more");
    err_entity(err, bytes_str(name));
    return BELAY_INVALID;
}

belay_rc op_session_of(const struct op_call *call, struct session *out,
                       struct belay_error *err)
{
    const struct op_value *profile = op_get(call, "profile");

    *out = (struct session){
        .sp = call->belay->space,
        .id = op_str(call, "session"),
        .profile = profile ? op_read_name(op_profile_names, profile->text) : 0,
    };
    return session_check_id(out->id, err);
}

static belay_rc made(const struct op_maker *m, json_t *items, int failed, json_t *next,
                     json_t **out)
{
    json_t *result = json_object();

    failed |= json_object_set_new(result, "items", items);
    failed |= json_object_set_new(result, "next_cursor", next);
    return op_made(m, result, failed, out);
}

belay_rc op_made_list(const struct op_maker *m, json_t *items, int failed, int64_t next,
                      json_t **out)
{
    json_t *cursor = next > 0 ? json_sprintf("%lld", (long long)next) : json_null();

    return made(m, items, failed, cursor, out);
}

belay_rc op_made_pages(const struct op_maker *m, json_t *items, int failed,
                       const char *next, json_t **out)
{
    return made(m, items, failed, next ? op_text(bytes_str(next)) : json_null(), out);
}
