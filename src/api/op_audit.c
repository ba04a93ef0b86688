#include "api/handle.h"
#include "api/op_handlers.h"
#include "base/json.h"
#include "work/audit.h"

#define ENTRY_MAX ((size_t)1 << 20)

/* The namespace's chain, or with --system that of what was done to namespaces. */
static belay_rc chain_of(const struct op_call *call, struct space **out,
                         struct belay_error *err)
{
    if (op_get(call, "system"))
        return store_system_space(call->belay->store, out, err);
    *out = call->belay->space;
    return BELAY_OK;
}

/* An entry as it was written; one that cannot be read has its number only. */
static json_t *row_of(const struct log_entry *entry)
{
    json_t *row = NULL;

    if (json_read(entry->data, ENTRY_MAX, &row, NULL) == BELAY_OK &&
        json_is_object(row))
        return row;
    json_decref(row);
    row = json_object();
    if (!json_object_set_new(row, "seq", json_integer(entry->seq)))
        return row;
    json_decref(row);
    return NULL;
}

belay_rc op_audit_ls(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const struct op_value *cursor = op_get(call, "cursor");
    size_t limit = (size_t)op_get(call, "limit")->number;
    struct log_entries found;
    struct space *sp = NULL;
    int64_t after = 0;
    int failed = 0;

    if (cursor && (!bytes_to_i64(cursor->text, &after) || after < 0)) {
        (void)err_reason(err, BELAY_INVALID, "argument",
                         "--cursor: is not one that was given");
        err_entity(err, bytes_str("cursor"));
        return BELAY_INVALID;
    }
    belay_rc rc = chain_of(call, &sp, err);
    if (rc == BELAY_OK)
        rc = audit_page(sp, after, limit + 1, &arena, &found, err);
    if (rc)
        return rc;
    json_t *items = json_array(), *next = NULL;
    for (size_t i = 0; i < found.n && i < limit; i++)
        failed |= json_array_append_new(items, row_of(&found.entry[i]));
    if (found.n > limit) {
        next = json_sprintf("%lld", (long long)found.entry[limit - 1].seq);
        failed |= !next;
    }
    return op_list(items, next, failed, out, err);
}

belay_rc op_audit_verify(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct audit_walk w;
    struct space *sp = NULL;
    belay_rc rc = chain_of(call, &sp, err);

    if (rc == BELAY_OK)
        rc = audit_verify(sp, &w, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    struct bytes ns = space_name(sp);
    int failed = json_object_set_new(result, "namespace", op_text(ns));
    failed |= json_object_set_new(result, "ok", json_boolean(!w.reason));
    failed |= json_object_set_new(result, "entries", json_integer(w.seq));
    failed |= json_object_set_new(result, "hash",
                                  w.seq > 0 ? json_string(w.hash) : json_null());
    if (w.reason) {
        failed |= json_object_set_new(result, "broken_at", json_integer(w.broken_at));
        failed |= json_object_set_new(result, "reason", json_string(w.reason));
    }
    return op_finish(result, failed, out, err);
}
