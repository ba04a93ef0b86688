/* Tags and the trace context, as the row of what was submitted has them: objects of
 * texts. */
#include "base/json.h"
#include "work/execution_rows.h"

#define TAGS_MAX ((size_t)65536)
#define TRACE_MAX ((size_t)65536)

static belay_rc corrupt(struct txn *t, const struct row *spec, const char *what)
{
    struct bytes id = row_bytes(spec, SPEC_ID);
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, what, "execution %.*s: its %s cannot be read",
                 (int)id.len, (const char *)id.ptr, what);

    err_entity(txn_error(t), id);
    return rc;
}

belay_rc exec_tags_of(struct txn *t, const struct row *spec,
                      const struct belay_tag **out, size_t *out_n)
{
    CLEANUP(json_decrefp) json_t *tags = NULL;
    struct belay_arena *a = txn_arena(t);
    const char *key;
    json_t *value;
    size_t n = 0;

    *out = NULL;
    *out_n = 0;
    if (spec->v[SPEC_TAGS].kind == VALUE_NULL)
        return BELAY_OK;
    belay_rc rc = json_read(row_bytes(spec, SPEC_TAGS), TAGS_MAX, &tags, txn_error(t));
    if (rc == BELAY_INVALID || (rc == BELAY_OK && !json_is_object(tags)))
        return corrupt(t, spec, "tags");
    if (rc)
        return rc;
    struct belay_tag *all = arena_zalloc(a, json_object_size(tags), sizeof(*all));
    if (!all)
        return err_no_memory(txn_error(t), "tags");
    json_object_foreach(tags, key, value)
    {
        struct bytes k, v;
        if (!json_is_string(value))
            return corrupt(t, spec, "tags");
        if (!arena_copy(a, bytes_str(key), &k) ||
            !arena_copy(a, bytes_str(json_string_value(value)), &v))
            return err_no_memory(txn_error(t), "tags");
        all[n++] = (struct belay_tag){ (const char *)k.ptr, (const char *)v.ptr };
    }
    /* Jansson keeps the order of the text, which is canonical: sorted. */
    *out = all;
    *out_n = n;
    return BELAY_OK;
}

static bool copy_member(const json_t *object, const char *name, struct belay_arena *a,
                        const char **out)
{
    const char *text = json_string_value(json_object_get(object, name));
    struct bytes copy;

    *out = NULL;
    if (!text)
        return true;
    if (!arena_copy(a, bytes_str(text), &copy))
        return false;
    *out = (const char *)copy.ptr;
    return true;
}

belay_rc exec_trace_of(struct txn *t, const struct row *spec, struct belay_arena *a,
                       const char **out_parent, const char **out_state)
{
    CLEANUP(json_decrefp) json_t *trace = NULL;

    *out_parent = *out_state = NULL;
    if (spec->v[SPEC_TRACE].kind == VALUE_NULL)
        return BELAY_OK;
    belay_rc rc =
        json_read(row_bytes(spec, SPEC_TRACE), TRACE_MAX, &trace, txn_error(t));
    if (rc)
        return rc == BELAY_INVALID ? corrupt(t, spec, "trace") : rc;
    if (!copy_member(trace, "traceparent", a, out_parent) ||
        !copy_member(trace, "tracestate", a, out_state))
        return err_no_memory(txn_error(t), "a trace");
    return BELAY_OK;
}
