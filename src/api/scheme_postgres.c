/* postgres://user:password@host:port/database?option=value&... */
#include <stdlib.h>

#include "api/scheme.h"
#include "store/drivers/postgres.h"

#define POOL_MAX 1000
#define RETRIES_DEFAULT 5

static belay_rc bad_option(struct belay_error *err, const char *name, const char *must)
{
    (void)err_reason(err, BELAY_INVALID, "option", "store URL: option %s: must be %s",
                     name, must);
    err_entity(err, bytes_str(name));
    return BELAY_INVALID;
}

/* Values come with a NUL behind them (url_decode). */
static const char *text_of(struct bytes value)
{
    return value.len > 0 ? (const char *)value.ptr : "";
}

static belay_rc take_schema(struct postgres_options *o, struct bytes value,
                            struct belay_error *err)
{
    (void)err; /* the driver knows what a name is */
    o->schema = text_of(value);
    return BELAY_OK;
}

static belay_rc take_pool(struct postgres_options *o, struct bytes value,
                          struct belay_error *err)
{
    int64_t n = 0;

    if (!bytes_to_i64(value, &n) || n < 1 || n > POOL_MAX)
        return bad_option(err, "pool", "a whole number from 1 to 1000");
    o->pool = (unsigned)n;
    return BELAY_OK;
}

static belay_rc take_pooler(struct postgres_options *o, struct bytes value,
                            struct belay_error *err)
{
    if (!bytes_eq(value, bytes_str("transaction")))
        return bad_option(err, "pooler", "transaction");
    o->pooler = true;
    return BELAY_OK;
}

static belay_rc take_listen(struct postgres_options *o, struct bytes value,
                            struct belay_error *err)
{
    if (value.len == 0 || !postgres_is_conninfo(text_of(value)))
        return bad_option(err, "listen", "a postgres:// URL, percent-encoded");
    o->listen = text_of(value);
    return BELAY_OK;
}

static belay_rc take_durability(struct postgres_options *o, struct bytes value,
                                struct belay_error *err)
{
    if (!bytes_eq(value, bytes_str("relaxed")))
        return bad_option(err, "durability", "relaxed");
    o->relaxed = true;
    return BELAY_OK;
}

static const struct {
    const char *name;
    belay_rc (*take)(struct postgres_options *o, struct bytes value,
                     struct belay_error *err);
} own[] = {
    { "schema", take_schema },         { "pool", take_pool },
    { "pooler", take_pooler },         { "listen", take_listen },
    { "durability", take_durability },
};

static bool knows(struct bytes name, char out[33])
{
    if (name.len > 32)
        return false;
    memcpy(out, name.ptr, name.len);
    out[name.len] = '\0';
    return postgres_knows(out);
}

bool scheme_knows_postgres(struct bytes name)
{
    char text[33];

    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (bytes_eq(name, bytes_str(own[i].name)))
            return true;
    }
    return knows(name, text);
}

/* Ours into *o; those of the client library into params. */
static belay_rc take_options(const struct url *url, struct postgres_options *o,
                             struct postgres_param *params, size_t *n,
                             struct belay_arena *a, struct belay_error *err)
{
    for (size_t i = 0; i < url->n_options; i++) {
        const struct url_option *option = &url->options[i];
        struct bytes name;
        enum setting which;
        size_t k = 0;

        if (settings_find(option->name, &which))
            continue;
        while (k < COUNT_OF(own) && !bytes_eq(option->name, bytes_str(own[k].name)))
            k++;
        if (k < COUNT_OF(own)) {
            belay_rc rc = own[k].take(o, option->value, err);
            if (rc)
                return rc;
            continue;
        }
        if (!arena_copy(a, option->name, &name))
            return err_no_memory(err, "the store URL");
        params[(*n)++] = (struct postgres_param){ .name = (const char *)name.ptr,
                                                  .value = text_of(option->value) };
    }
    return BELAY_OK;
}

/* What is unset is the driver's to choose, but for the number of retries: none is a
 * number. */
static void take_settings(const struct settings *s, struct postgres_options *o)
{
    int64_t timeout_ms = s->value[SETTING_REQUEST_TIMEOUT];
    int64_t retries = s->value[SETTING_RETRIES];
    int64_t factor = s->value[SETTING_RETRY_FACTOR];
    int64_t base = s->value[SETTING_RETRY_BASE];

    o->request_timeout_ms = timeout_ms == SETTING_UNSET ? 0 : timeout_ms;
    o->retries = retries == SETTING_UNSET ? RETRIES_DEFAULT : (unsigned)retries;
    o->retry_first_ms = factor == SETTING_UNSET ? 0 : factor;
    o->retry_base = base == SETTING_UNSET ? 0 : (unsigned)base;
    o->retry_jitter = (int)s->value[SETTING_RETRY_JITTER]; /* unset: negative */
}

static belay_rc read_url(struct postgres_options *out, const struct url *url,
                         const struct settings *settings, struct belay_arena *a,
                         struct belay_error *err)
{
    struct postgres_param params[URL_OPTIONS_MAX];
    size_t n = 0;

    *out = (struct postgres_options){ 0 };
    take_settings(settings, out);
    belay_rc rc = take_options(url, out, params, &n, a, err);
    return rc ? rc : postgres_options_from_uri(out, url->rest, params, n, a, err);
}

belay_rc scheme_open_postgres(struct driver **out, const struct url *url,
                              const struct settings *settings,
                              const struct driver_config *config,
                              struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct postgres_options options;
    belay_rc rc = read_url(&options, url, settings, &arena, err);

    return rc ? rc : postgres_open(out, &options, config, err);
}

/* --- where it is --- */

/* What libpq goes by: the parameter, or what it takes where there is none. */
static const struct {
    const char *name, *env;
} places[] = {
    { "service", "PGSERVICE" },   { "host", "PGHOST" },
    { "hostaddr", "PGHOSTADDR" }, { "port", "PGPORT" },
    { "dbname", "PGDATABASE" },   { "user", "PGUSER" },
};

static const char *value_of(const struct postgres_options *o, const char *name,
                            const char *env)
{
    const char *found = NULL;

    for (size_t i = 0; o->keywords && o->keywords[i]; i++) {
        if (strcmp(o->keywords[i], name) == 0)
            found = o->values[i]; /* the last one counts */
    }
    return found ? found : getenv(env);
}

/* The user is the database's name where that is not told; else it does not matter. */
belay_rc scheme_place_postgres(const struct url *url, const struct settings *settings,
                               struct buf *out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct postgres_options o;
    belay_rc rc = read_url(&o, url, settings, &arena, err);

    if (rc)
        return rc;
    bool has_name = value_of(&o, "dbname", "PGDATABASE") != NULL;
    buf_append_str(out, "postgres");
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const char *value = value_of(&o, places[i].name, places[i].env);
        if (has_name && strcmp(places[i].name, "user") == 0)
            continue;
        buf_printf(out, " %s=%s", places[i].name, value ? value : "");
    }
    buf_printf(out, " schema=%s", o.schema ? o.schema : "belay");
    return BELAY_OK;
}
