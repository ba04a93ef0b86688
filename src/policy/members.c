#include "policy/members.h"

static const struct member *find(const struct member *table, size_t n, struct bytes key)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes_eq(bytes_str(table[i].name), key))
            return &table[i];
    }
    return NULL;
}

belay_rc members_read(const json_t *value, const struct member *table, size_t n,
                      const char *reason, const char *what, struct belay_error *err)
{
    json_t *o = json_walked(value);

    if (!json_is_object(value))
        return err_reason(err, BELAY_INVALID, reason, "%s: must be an object", what);
    for (size_t i = 0; i < n; i++)
        *table[i].out = NULL;
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        struct bytes key =
            bytes_of(json_object_iter_key(at), json_object_iter_key_len(at));
        const struct member *m = find(table, n, key);
        if (!m)
            return err_reason(err, BELAY_INVALID, reason, "%s: has no member `%.*s`",
                              what, shown_len(key), shown(key));
        const json_t *given = json_object_iter_value(at);
        *m->out = json_is_null(given) ? NULL : given;
    }
    return BELAY_OK;
}
