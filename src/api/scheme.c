#include "api/scheme.h"

#include <sys/stat.h>

#include "store/drivers/memory.h"
#include "store/drivers/sqlite.h"

static belay_rc open_memory(struct driver **out, const struct url *url,
                            const struct settings *settings,
                            const struct driver_config *config, struct belay_error *err)
{
    (void)settings;
    if (url->rest.len > 0)
        return err_reason(err, BELAY_INVALID, "url",
                          "store URL: nothing may follow memory: since a memory store "
                          "has no name; each one is new and its own");
    return memory_open(out, config, err);
}

/* sqlite:PATH, sqlite:///ABSOLUTE or sqlite::memory: */
static belay_rc sqlite_path(const struct url *url, struct belay_arena *a,
                            const char **out, struct belay_error *err)
{
    struct bytes path = url->rest;

    if (path.len > 2 && path.ptr[0] == '/' && path.ptr[1] == '/')
        path = bytes_of(path.ptr + 2, path.len - 2);
    belay_rc rc = url_decode(path, a, &path, err);
    if (rc)
        return rc;
    if (path.len == 0)
        return err_reason(err, BELAY_INVALID, "url",
                          "store URL: sqlite: needs a path, as in sqlite:app.db");
    *out = (const char *)path.ptr;
    return BELAY_OK;
}

static belay_rc open_sqlite(struct driver **out, const struct url *url,
                            const struct settings *settings,
                            const struct driver_config *config, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *path = NULL;
    belay_rc rc = sqlite_path(url, &arena, &path, err);

    (void)settings;
    return rc ? rc : sqlite_open(out, path, config, err);
}

static belay_rc look_sqlite(const struct url *url, const struct driver_config *config,
                            struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *path = NULL;
    belay_rc rc = sqlite_path(url, &arena, &path, err);

    return rc ? rc : sqlite_look(path, &config->clock, err);
}

/* The file itself, whatever its path. */
static belay_rc place_sqlite(const struct url *url, const struct settings *settings,
                             struct buf *out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *path = NULL;
    struct stat st;
    belay_rc rc = sqlite_path(url, &arena, &path, err);

    (void)settings;
    if (rc || !path || strcmp(path, ":memory:") == 0 || stat(path, &st))
        return rc;
    buf_printf(out, "sqlite %llx %llx", (unsigned long long)st.st_dev,
               (unsigned long long)st.st_ino);
    return rc;
}

/* clang-format off */
const struct scheme scheme_table[] = {
    { "memory",     open_memory,          NULL,        NULL,                   BELAY_BACKEND_MEMORY,   NULL },
    { "sqlite",     open_sqlite,          look_sqlite, NULL,                   BELAY_BACKEND_SQLITE,   place_sqlite },
    { "postgres",   scheme_open_postgres, NULL,        scheme_knows_postgres,  BELAY_BACKEND_POSTGRES, scheme_place_postgres },
    { "postgresql", scheme_open_postgres, NULL,        scheme_knows_postgres,  BELAY_BACKEND_POSTGRES, scheme_place_postgres },
    { "valkey",     scheme_open_valkey,   NULL,        scheme_knows_valkey,    BELAY_BACKEND_VALKEY,   scheme_place_valkey },
    { "valkeys",    scheme_open_valkey,   NULL,        scheme_knows_valkey,    BELAY_BACKEND_VALKEY,   scheme_place_valkey },
    { "redis",      scheme_open_valkey,   NULL,        scheme_knows_valkey,    BELAY_BACKEND_VALKEY,   scheme_place_valkey },
    { "rediss",     scheme_open_valkey,   NULL,        scheme_knows_valkey,    BELAY_BACKEND_VALKEY,   scheme_place_valkey },
    { "http",       NULL,                 NULL,        NULL,                   0,                      NULL },
    { "https",      NULL,                 NULL,        NULL,                   0,                      NULL },
};
/* clang-format on */
const size_t scheme_count = COUNT_OF(scheme_table);

static belay_rc not_here(const struct url *url, bool known, struct belay_error *err)
{
    struct buf list CLEANUP(buf_release) = { 0 };

    for (size_t i = 0; i < scheme_count; i++) {
        if (scheme_table[i].open)
            buf_printf(&list, " %s:", scheme_table[i].name);
    }
    (void)err_reason(err, BELAY_INVALID, "scheme",
                     "store URL: scheme %.*s %s; this build has%.*s",
                     (int)url->scheme.len, (const char *)url->scheme.ptr,
                     known ? "is not in this build" : "is unknown", (int)list.len,
                     list.ptr ? (const char *)list.ptr : "");
    err_entity(err, url->scheme);
    return BELAY_INVALID;
}

belay_rc scheme_find(const struct url *url, const struct scheme **out,
                     struct belay_error *err)
{
    for (size_t i = 0; i < scheme_count; i++) {
        if (!bytes_eq(url->scheme, bytes_str(scheme_table[i].name)))
            continue;
        if (!scheme_table[i].open)
            return not_here(url, true, err);
        *out = &scheme_table[i];
        return BELAY_OK;
    }
    return not_here(url, false, err);
}

belay_rc scheme_options(const struct scheme *scheme, const struct url *url,
                        struct settings *settings, struct belay_error *err)
{
    for (size_t i = 0; i < url->n_options; i++) {
        const struct url_option *option = &url->options[i];
        enum setting which;

        if (settings_find(option->name, &which)) {
            belay_rc rc = settings_from_text(settings, which, option->value, err);
            if (rc != BELAY_OK)
                return rc;
        } else if (!scheme->knows || !scheme->knows(option->name)) {
            (void)err_reason(
                err, BELAY_INVALID, "option",
                "store URL: option %.*s: unknown to %s:", (int)option->name.len,
                (const char *)option->name.ptr, scheme->name);
            err_entity(err, option->name);
            return BELAY_INVALID;
        }
    }
    return BELAY_OK;
}
