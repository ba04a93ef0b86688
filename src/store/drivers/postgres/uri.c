/* From a URL to libpq's parameters.
 *
 * libpq's own messages about a URL repeat it, and a password that is not encoded ends up
 * in the host, the port or the database, which later messages name.  So what cannot be
 * told apart for certain is refused, in words of our own. */
#include "store/drivers/postgres/impl.h"

static belay_rc bad_url(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_INVALID, "url", "store URL: %s", why);
}

bool postgres_knows(const char *name)
{
    static const char *const ours[] = { "client_encoding", "fallback_application_name",
                                        "replication" };
    bool found = false;

    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (strcmp(name, ours[i]) == 0)
            return false;
    }
    PQconninfoOption *all = PQconninfoParse("", NULL);
    for (const PQconninfoOption *o = all; o && o->keyword && !found; o++)
        found = strcmp(name, o->keyword) == 0;
    PQconninfoFree(all);
    return found;
}

bool postgres_is_conninfo(const char *text)
{
    PQconninfoOption *all = PQconninfoParse(text, NULL);

    PQconninfoFree(all);
    return all != NULL;
}

/* One @, before the first slash: otherwise part of a password is taken for a host or a
 * database. */
static bool has_stray_at(struct bytes authority)
{
    bool slash = false;
    unsigned n = 0;

    for (size_t i = 0; i < authority.len; i++) {
        slash |= authority.ptr[i] == '/';
        if (authority.ptr[i] == '@' && (slash || n++ > 0))
            return true;
    }
    return false;
}

/* Numbers with commas between them; libpq repeats one that is none. */
static bool is_ports(const char *text)
{
    return strspn(text, "0123456789,") == strlen(text);
}

struct params {
    const char **keywords, **values;
    size_t n;
    struct belay_arena *a;
};

static belay_rc add(struct params *p, const char *name, const char *value,
                    struct belay_error *err)
{
    struct bytes kept_name, kept_value;

    if (strcmp(name, "port") == 0 && !is_ports(value)) {
        (void)err_reason(err, BELAY_INVALID, "url",
                         "store URL: the port must be a number; a : or / in a user "
                         "name or password must be written %%3A or %%2F");
        return BELAY_INVALID;
    }
    if (!arena_copy(p->a, bytes_str(name), &kept_name) ||
        !arena_copy(p->a, bytes_str(value), &kept_value))
        return err_no_memory(err, "the store URL");
    p->keywords[p->n] = (const char *)kept_name.ptr;
    p->values[p->n++] = (const char *)kept_value.ptr;
    return BELAY_OK;
}

static belay_rc fill(struct params *p, const PQconninfoOption *all,
                     const struct postgres_param *more, size_t n_more,
                     struct belay_error *err)
{
    size_t most = n_more + 1;
    belay_rc rc = BELAY_OK;

    for (const PQconninfoOption *o = all; o->keyword; o++)
        most += o->val != NULL;
    p->keywords = arena_zalloc(p->a, most, sizeof(*p->keywords));
    p->values = arena_zalloc(p->a, most, sizeof(*p->values));
    if (!p->keywords || !p->values)
        return err_no_memory(err, "the store URL");
    for (const PQconninfoOption *o = all; o->keyword && rc == BELAY_OK; o++) {
        if (o->val)
            rc = add(p, o->keyword, o->val, err);
    }
    for (size_t i = 0; i < n_more && rc == BELAY_OK; i++)
        rc = add(p, more[i].name, more[i].value, err);
    return rc;
}

belay_rc postgres_options_from_uri(struct postgres_options *out, struct bytes rest,
                                   const struct postgres_param *params, size_t n,
                                   struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    struct params p = { .a = a };

    if (rest.len < 2 || rest.ptr[0] != '/' || rest.ptr[1] != '/')
        return bad_url(err, "postgres: needs two slashes, as in "
                            "postgres://user:password@host:5432/database");
    if (has_stray_at(bytes_of(rest.ptr + 2, rest.len - 2)))
        return bad_url(err, "an @ or / in a user name, password or database must be "
                            "written %40 or %2F");
    buf_append_str(&text, "postgresql:");
    buf_append(&text, rest);
    buf_append_char(&text, '\0');
    if (text.failed)
        return err_no_memory(err, "the store URL");
    PQconninfoOption *all = PQconninfoParse((const char *)text.ptr, NULL);
    if (!all)
        return bad_url(err, "is not as in postgres://user:password@host:5432/database, "
                            "percent-encoded");
    belay_rc rc = fill(&p, all, params, n, err);
    PQconninfoFree(all);
    if (rc)
        return rc;
    out->keywords = p.keywords;
    out->values = p.values;
    return BELAY_OK;
}
