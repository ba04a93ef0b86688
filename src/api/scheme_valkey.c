/* valkey://user:password@host:port/database?option=value&...
 * valkey:///path/to.sock?database=N, or valkey://%2Fpath%2Fto.sock */
#include "api/scheme.h"
#include "store/drivers/valkey.h"

#define RETRIES_DEFAULT 5
#define WAIT_MAX_MS INT64_C(3600000)

static belay_rc bad_option(struct belay_error *err, const char *name, const char *must)
{
    (void)err_reason(err, BELAY_INVALID, "option", "store URL: option %s: must be %s",
                     name, must);
    err_entity(err, bytes_str(name));
    return BELAY_INVALID;
}

static belay_rc bad_url(struct belay_error *err, const char *what)
{
    return err_reason(err, BELAY_INVALID, "url", "store URL: %s", what);
}

/* Values come with a NUL behind them (url_decode). */
static const char *text_of(struct bytes value)
{
    return value.len > 0 ? (const char *)value.ptr : "";
}

/* --- options --- */

enum kind { TEXT, FILE_NAME, NUMBER, YES };

/* clang-format off */
static const struct option_row {
    const char *name;
    enum kind kind;
    size_t offset;    /* in struct valkey_options */
    int64_t min, max; /* NUMBER */
    const char *must;
} own[] = {
    { "prefix",          TEXT,      offsetof(struct valkey_options, prefix),          0, 0,       "" },
    { "pool",            NUMBER,    offsetof(struct valkey_options, pool),            1, 1000,    "a whole number from 1 to 1000" },
    { "database",        NUMBER,    offsetof(struct valkey_options, database),        0, 1000000, "a whole number from 0 to 1000000" },
    { "wait",            NUMBER,    offsetof(struct valkey_options, wait_replicas),   0, 100,     "a whole number from 0 to 100" },
    { "tls_ca",          FILE_NAME, offsetof(struct valkey_options, tls_ca),          0, 0,       "a file" },
    { "tls_cert",        FILE_NAME, offsetof(struct valkey_options, tls_cert),        0, 0,       "a file" },
    { "tls_key",         FILE_NAME, offsetof(struct valkey_options, tls_key),         0, 0,       "a file" },
    { "tls_server_name", FILE_NAME, offsetof(struct valkey_options, tls_server_name), 0, 0,       "a name" },
    { "tls_insecure",    YES,       offsetof(struct valkey_options, tls_insecure),    0, 0,       "1" },
};
/* clang-format on */

static belay_rc take_durability(struct valkey_options *o, struct bytes value,
                                struct belay_error *err)
{
    if (!bytes_eq(value, bytes_str("relaxed")))
        return bad_option(err, "durability", "relaxed");
    o->relaxed = true;
    return BELAY_OK;
}

static belay_rc take_wait_ms(struct valkey_options *o, struct bytes value,
                             struct belay_error *err)
{
    int64_t ms = 0;

    if (!bytes_to_i64(value, &ms) || ms < 1 || ms > WAIT_MAX_MS)
        return bad_option(err, "wait_ms", "a whole number from 1 to 3600000");
    o->wait_ms = ms;
    return BELAY_OK;
}

static const struct {
    const char *name;
    belay_rc (*take)(struct valkey_options *o, struct bytes value,
                     struct belay_error *err);
} special[] = {
    { "durability", take_durability },
    { "wait_ms", take_wait_ms },
};

static const struct option_row *row_of(struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (bytes_eq(name, bytes_str(own[i].name)))
            return &own[i];
    }
    return NULL;
}

bool scheme_knows_valkey(struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(special); i++) {
        if (bytes_eq(name, bytes_str(special[i].name)))
            return true;
    }
    return row_of(name) != NULL;
}

static belay_rc take_row(struct valkey_options *o, const struct option_row *row,
                         struct bytes value, struct belay_error *err)
{
    void *member = (char *)o + row->offset;
    int64_t n = 0;

    switch (row->kind) {
    case TEXT: /* the driver knows what it may be */
        *(const char **)member = text_of(value);
        return BELAY_OK;
    case FILE_NAME:
        if (value.len == 0)
            return bad_option(err, row->name, row->must);
        *(const char **)member = text_of(value);
        return BELAY_OK;
    case NUMBER:
        if (!bytes_to_i64(value, &n) || n < row->min || n > row->max)
            return bad_option(err, row->name, row->must);
        *(unsigned *)member = (unsigned)n;
        return BELAY_OK;
    case YES:
        if (!bytes_eq(value, bytes_str(row->must)))
            return bad_option(err, row->name, row->must);
        *(bool *)member = true;
        return BELAY_OK;
    }
    return BELAY_OK;
}

static belay_rc take_options(const struct url *url, struct valkey_options *o,
                             struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < url->n_options && rc == BELAY_OK; i++) {
        const struct url_option *option = &url->options[i];
        const struct option_row *row = row_of(option->name);

        if (row)
            rc = take_row(o, row, option->value, err);
        for (size_t k = 0; k < COUNT_OF(special) && rc == BELAY_OK; k++) {
            if (bytes_eq(option->name, bytes_str(special[k].name)))
                rc = special[k].take(o, option->value, err);
        }
    }
    return rc;
}

/* What is unset is the driver's to choose, but for the number of retries: none is a
 * number. */
static void take_settings(const struct settings *s, struct valkey_options *o)
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

/* --- the rest of the URL --- */

/* Cuts at the first or the last c; without one, everything is before. */
static bool cut(struct bytes text, char c, bool last, struct bytes *before,
                struct bytes *behind)
{
    const uint8_t *at = text.len == 0 ? NULL
                        : last        ? memrchr(text.ptr, c, text.len)
                                      : memchr(text.ptr, c, text.len);

    *before = at ? bytes_of(text.ptr, (size_t)(at - text.ptr)) : text;
    *behind = at ? bytes_of(at + 1, text.len - before->len - 1) : bytes_of(NULL, 0);
    return at != NULL;
}

static belay_rc decode(struct bytes part, struct belay_arena *a, const char *what,
                       const char **out, struct belay_error *err)
{
    struct bytes text;

    if (url_decode(part, a, &text, err) != BELAY_OK)
        return bad_url(err, what);
    *out = text_of(text);
    return BELAY_OK;
}

/* user:password, :password or user; an empty user is none. */
static belay_rc take_login(struct valkey_options *o, struct bytes login,
                           struct belay_arena *a, struct belay_error *err)
{
    struct bytes user, password;
    bool both = cut(login, ':', false, &user, &password);
    belay_rc rc = BELAY_OK;

    if (!both)
        return bad_url(err, "a user needs a password, as in user:password@host");
    if (user.len > 0)
        rc = decode(user, a, "the user is malformed", &o->user, err);
    if (rc == BELAY_OK)
        rc = decode(password, a, "the password is malformed", &o->password, err);
    return rc;
}

/* host, host:port, [address], [address]:port or a path with %2F. */
static belay_rc take_host(struct valkey_options *o, struct bytes host,
                          struct belay_arena *a, struct belay_error *err)
{
    struct bytes name = host, rest = { .ptr = NULL }, port = { .ptr = NULL }, none;
    bool has_port = false;
    int64_t n = 0;

    if (host.len > 0 && host.ptr[0] == '[') {
        if (!cut(bytes_of(host.ptr + 1, host.len - 1), ']', false, &name, &rest) ||
            (rest.len > 0 && rest.ptr[0] != ':'))
            return bad_url(err, "the address in brackets is malformed");
        has_port = cut(rest, ':', false, &none, &port);
    } else {
        has_port = cut(host, ':', true, &name, &port);
    }
    if (has_port && (!bytes_to_i64(port, &n) || n < 1 || n > 65535))
        return bad_url(err, "the port must be a whole number from 1 to 65535");
    o->port = (unsigned)n;
    return name.len == 0 ? BELAY_OK
                         : decode(name, a, "the host is malformed", &o->host, err);
}

/* Behind the host: a database; without a host: the path of a socket. */
static belay_rc take_path(struct valkey_options *o, struct bytes path,
                          struct belay_arena *a, struct belay_error *err)
{
    int64_t n = 0;

    if (path.len == 0)
        return BELAY_OK;
    if (!o->host) {
        /* the slash that cut it off is its first */
        return decode(bytes_of(path.ptr - 1, path.len + 1), a, "the path is malformed",
                      &o->host, err);
    }
    if (!bytes_to_i64(path, &n) || n < 0 || n > 1000000)
        return bad_url(err, "the database must be a whole number, as in host/2");
    o->database = (unsigned)n;
    return BELAY_OK;
}

static belay_rc take_rest(struct valkey_options *o, struct bytes rest,
                          struct belay_arena *a, struct belay_error *err)
{
    struct bytes authority, path, login, host;

    if (rest.len < 2 || rest.ptr[0] != '/' || rest.ptr[1] != '/')
        return bad_url(err, "valkey: needs a host, as in valkey://127.0.0.1:6379");
    (void)cut(bytes_of(rest.ptr + 2, rest.len - 2), '/', false, &authority, &path);
    bool has_login = cut(authority, '@', true, &login, &host);
    belay_rc rc = has_login ? take_login(o, login, a, err) : BELAY_OK;
    if (rc == BELAY_OK)
        rc = take_host(o, has_login ? host : authority, a, err);
    return rc ? rc : take_path(o, path, a, err);
}

belay_rc scheme_read_valkey(struct valkey_options *out, const struct url *url,
                            const struct settings *settings, struct belay_arena *a,
                            struct belay_error *err)
{
    *out = (struct valkey_options){ .host = NULL };
    out->tls = url->scheme.len > 0 && url->scheme.ptr[url->scheme.len - 1] == 's' &&
               !bytes_eq(url->scheme, bytes_str("redis"));
    take_settings(settings, out);
    belay_rc rc = take_options(url, out, err);
    return rc ? rc : take_rest(out, url->rest, a, err);
}

belay_rc scheme_open_valkey(struct driver **out, const struct url *url,
                            const struct settings *settings,
                            const struct driver_config *config, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct valkey_options options;
    belay_rc rc = scheme_read_valkey(&options, url, settings, &arena, err);

    return rc ? rc : valkey_open(out, &options, config, err);
}

belay_rc scheme_place_valkey(const struct url *url, const struct settings *settings,
                             struct buf *out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct valkey_options o;
    belay_rc rc = scheme_read_valkey(&o, url, settings, &arena, err);

    if (rc == BELAY_OK)
        buf_printf(out, "valkey %s %u %u %s", o.host ? o.host : "",
                   o.port ? o.port : 6379, o.database, o.prefix ? o.prefix : "belay");
    return rc;
}
