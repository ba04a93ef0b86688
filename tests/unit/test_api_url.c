#include "api/scheme.h"
#include "api/url.h"
#include "base/clock.h"
#include "base/hash.h"
#include "tap.h"
#include "things.h"

/* What belay_open makes of a URL before it opens anything. */
static belay_rc read_url(const char *text, struct belay_arena *a, struct url *url,
                         struct settings *settings, struct belay_error *err)
{
    const struct scheme *scheme;

    belay_rc rc = url_parse(bytes_str(text), a, url, err);
    if (rc == BELAY_OK)
        rc = scheme_find(url, &scheme, err);
    if (rc == BELAY_OK)
        rc = scheme_options(scheme, url, settings, err);
    return rc;
}

/* clang-format off */
static const struct {
    const char *url, *reason, *entity, *message; /* message: part of it */
} refused[] = {
    { "", "url", "", "is empty" },
    { ":", "url", "", "does not begin with a scheme" },
    { "memory", "url", "", "does not begin with a scheme" },
    { "belay.db", "url", "", "does not begin with a scheme" },
    { "./a:b", "url", "", "does not begin with a scheme" },
    { "1memory:", "url", "", "does not begin with a scheme" },
    { "mem ory:", "url", "", "does not begin with a scheme" },
    { "a23456789012345678901234567890123:", "url", "", "does not begin with a scheme" },
    { "memory:\n", "url", "", "control characters" },
    { "memory:\x7f", "url", "", "control characters" },
    { "memory:\xc2\x85", "url", "", "control characters" },
    { "memory:\xff", "url", "", "UTF-8" },
    { "memory:\xc0\xaf", "url", "", "UTF-8" },
    { "memory:#x", "url", "", "%23" },
    { "memory:?retries=1#x", "url", "", "%23" },
    { "mysql://h/d", "scheme", "mysql", "scheme mysql is unknown; this build has memory:" },
    { "memoryx:", "scheme", "memoryx", "is unknown" },
    { "memory:?bogus=1", "option", "bogus", "option bogus: unknown to memory:" },
    { "memory:?namespace=x", "option", "namespace", "unknown" },
    { "memory:?cluster=1", "option", "cluster", "unknown" },
    { "memory:?retries", "option", "retries", "has no value" },
    { "memory:?retries=", "option", "retries", "a whole number from 0 to 1000" },
    { "memory:?retries=-1", "option", "retries", "a whole number from 0 to 1000" },
    { "memory:?retries=1001", "option", "retries", "a whole number from 0 to 1000" },
    { "memory:?retries=99999999999999999999", "option", "retries", "a whole number" },
    { "memory:?retries=1.0", "option", "retries", "a whole number" },
    { "memory:?retries=+1", "option", "retries", "a whole number" },
    { "memory:?retries=%201", "option", "retries", "a whole number" },
    { "memory:?retry_base=0", "option", "retry_base", "from 1 to 100" },
    { "memory:?retry_factor=60001", "option", "retry_factor", "from 1 to 60000" },
    { "memory:?retry_jitter=101", "option", "retry_jitter", "from 0 to 100" },
    { "memory:?request_timeout=0ms", "option", "request_timeout", "1ms to 1d" },
    { "memory:?request_timeout=25h", "option", "request_timeout", "1ms to 1d" },
    { "memory:?request_timeout=30", "option", "request_timeout", "written like 500ms" },
    { "memory:?retries=1&retries=1", "option", "retries", "is given twice" },
    { "memory:?retries=%", "option", "retries", "percent-encoded" },
    { "memory:?retries=%3", "option", "retries", "percent-encoded" },
    { "memory:?retries=%g1", "option", "retries", "percent-encoded" },
    { "memory:?retries=%00", "option", "retries", "percent-encoded" },
    { "memory:?retries=%0a", "option", "retries", "percent-encoded" },
    { "memory:?retries=%ff", "option", "retries", "percent-encoded" },
    { "memory:?retries=%C0%AF", "option", "retries", "percent-encoded" },
    { "memory:?&retries=1", "url", "", "an option is empty" },
    { "memory:?retries=1&", "url", "", "an option is empty" },
    { "memory:?=1", "url", "", "not a word" },
    { "memory:?Retries=1", "url", "", "not a word" },
    { "memory:?re%74ries=1", "url", "", "not a word" },
    { "memory:??retries=1", "url", "", "not a word" },
    { "memory:?abcdefghijklmnopqrstuvwxyz_1234567=1", "url", "", "not a word" },
    { "postgres://h/d?bogus=1", "option", "bogus", "option bogus: unknown to postgres:" },
    { "postgresql://h/d?sslmod=require", "option", "sslmod", "unknown to postgresql:" },
    { "postgres://h/d?client_encoding=LATIN1", "option", "client_encoding", "unknown" },
    { "postgres://h/d?replication=database", "option", "replication", "unknown" },
    { "postgres://h/d?retries=x", "option", "retries", "a whole number" },
    { "memory:?schema=x", "option", "schema", "unknown to memory:" },
};
/* clang-format on */

static void refuses(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct belay_arena a CLEANUP(arena_release) = { 0 };
        struct settings settings = settings_none();
        struct belay_error err = { 0 };
        struct url url;

        bool good = TAP_EQ(t, read_url(refused[i].url, &a, &url, &settings, &err),
                           BELAY_INVALID) &&
                    TAP_STR(t, err.reason, refused[i].reason) &&
                    TAP_STR(t, err.entity, refused[i].entity) &&
                    TAP_OK(t, strstr(err.message, refused[i].message)) &&
                    TAP_OK(t, strncmp(err.message, "store URL: ", 11) == 0);
        if (!good)
            printf("# in row \"%s\": %s\n", refused[i].url, err.message);
    }
}

/* clang-format off */
static const char *const with_secrets[] = {
    "postgres://user:hunter2@host/db",
    "postgres://user:hunter2@host/db?sslmode=hunter2",
    "postgres://user:hun?ter2&hunter2@host/db",
    "postgres://user:p?hunter2@host/db",
    "postgres://user:hunter2#@host/db",
    "postgres//user:hunter2@host/db",
    "postgres:user:hunter2@host",
    "user:hunter2@host",
    "hunter2@host",
    "unknown://user:hunter2@host",
    "memory:hunter2",
    "memory://user:hunter2@host",
    "memory:?hunter2@=1",
    "memory:?retries=hunter2",
    "memory:?retries=%hunter2",
    "memory:?HUNTER2hunter2=1",
    "memory:?password=hunter2",
    "valkey://:hunter2@h?request_timeout=hunter2",
};
/* clang-format on */

static void tells_no_secret(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(with_secrets); i++) {
        struct belay_arena a CLEANUP(arena_release) = { 0 };
        struct settings settings = settings_none();
        struct belay_error err = { 0 };
        struct url url;

        if (read_url(with_secrets[i], &a, &url, &settings, &err) == BELAY_OK &&
            bytes_eq(url.scheme, bytes_str("memory"))) {
            struct driver_config config = { 0 };
            struct driver *d;
            const struct scheme *scheme;
            TAP_EQ(t, scheme_find(&url, &scheme, &err), BELAY_OK);
            TAP_EQ(t, scheme->open(&d, &url, &settings, &config, &err), BELAY_INVALID);
        }
        if (!TAP_OK(t, !strstr(err.message, "hunter2")) ||
            !TAP_OK(t, !strstr(err.message, "ter2")) ||
            !TAP_OK(t, !strstr(err.entity, "hunter2")))
            printf("# %s\n", err.message);
    }
}

/* clang-format off */
static const struct {
    const char *url, *reason, *entity, *message; /* message: part of it */
} refused_by_postgres[] = {
    { "postgres:", "url", "", "needs two slashes" },
    { "postgres:/d", "url", "", "needs two slashes" },
    { "postgresql:user:hunter2@h/d", "url", "", "needs two slashes" },
    { "postgres://user:hun@hunter2@h/d", "url", "", "%40" },
    { "postgres://user:hun/hunter2@h/d", "url", "", "%2F" },
    { "postgres://user:123/hunter2@h/d", "url", "", "%2F" },
    { "postgres://user:hunter2/d", "url", "", "the port must be a number" },
    { "postgres://user:hun:hunter2/d", "url", "", "the port must be a number" },
    { "postgres://h/d?port=hunter2", "url", "", "the port must be a number" },
    { "postgres://user:hunter2%@h/d", "url", "", "percent-encoded" },
    { "postgres://user:hunter2%00@h/d", "url", "", "percent-encoded" },
    { "postgres://user:hunter2@[::1/d", "url", "", "percent-encoded" },
    { "postgres://user:hunter2@h/d?pool=0", "option", "pool", "from 1 to 1000" },
    { "postgres://user:hunter2@h/d?pool=1001", "option", "pool", "from 1 to 1000" },
    { "postgres://user:hunter2@h/d?pool=hunter2", "option", "pool", "from 1 to 1000" },
    { "postgres://user:hunter2@h/d?pooler=hunter2", "option", "pooler", "must be transaction" },
    { "postgres://user:hunter2@h/d?pooler=", "option", "pooler", "must be transaction" },
    { "postgres://user:hunter2@h/d?durability=hunter2", "option", "durability", "must be relaxed" },
    { "postgres://user:hunter2@h/d?listen=", "option", "listen", "must be a postgres:// URL" },
    { "postgres://user:hunter2@h/d?listen=hunter2", "option", "listen", "must be a postgres:// URL" },
    { "postgres://user:hunter2@h/d?schema=Hunter2", "option", "schema", "1 to 63 of a-z, 0-9 and _" },
    { "postgres://user:hunter2@h/d?schema=", "option", "schema", "1 to 63 of a-z, 0-9 and _" },
    { "postgres://user:hunter2@h/d?schema=hunter2%22", "option", "schema", "1 to 63 of a-z, 0-9 and _" },
    { "postgres://user:hunter2@127.0.0.1:1/d?sslmode=hunter2", "option", "", "invalid sslmode value" },
    { "postgres://user:hunter2@127.0.0.1:70000/d?retries=0", "option", "", "invalid port number" },
};
/* clang-format on */

/* Opening a URL that no server is needed to refuse, or that no server is at. */
static belay_rc open_url(const char *text, struct belay_error *err)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct settings settings = settings_none();
    struct driver_config config = { .schema = &schema_things,
                                    .clock = clock_system(),
                                    .random = random_system() };
    const struct scheme *scheme;
    struct driver *d = NULL;
    struct url url;

    belay_rc rc = read_url(text, &a, &url, &settings, err);
    if (rc == BELAY_OK)
        rc = scheme_find(&url, &scheme, err);
    if (rc == BELAY_OK)
        rc = scheme->open(&d, &url, &settings, &config, err);
    if (rc == BELAY_OK)
        driver_close(d);
    return rc;
}

static void postgres_refuses(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(refused_by_postgres); i++) {
        struct belay_error err = { 0 };
        belay_rc rc = open_url(refused_by_postgres[i].url, &err);
        bool good = TAP_EQ(t, rc, BELAY_INVALID) &&
                    TAP_STR(t, err.reason, refused_by_postgres[i].reason) &&
                    TAP_STR(t, err.entity, refused_by_postgres[i].entity) &&
                    TAP_OK(t, strstr(err.message, refused_by_postgres[i].message)) &&
                    TAP_OK(t, !strcasestr(err.message, "hunter2"));
        if (!good)
            printf("# in row \"%s\": %s\n", refused_by_postgres[i].url, err.message);
    }
}

/* Everything of it is understood, but nobody listens there. */
static void postgres_is_tried(struct tap *t)
{
    static const char *const urls[] = {
        "postgres://user:hunter2@127.0.0.1:1/d?retries=0",
        "postgresql://user:hunter%402@127.0.0.1:1/d?retries=0&schema=_a1&pool=3",
        "postgres:///d?host=127.0.0.1&port=1&user=u&password=hunter2&retries=0",
        "postgres://127.0.0.1:1,127.0.0.1:1/"
        "d?target_session_attrs=read-write&retries=0",
        "postgres://127.0.0.1:1?retries=1&retry_factor=1&retry_base=100&retry_jitter=0",
        "postgres://127.0.0.1:1/d?retries=0&pooler=transaction&durability=relaxed"
        "&listen=postgres%3A%2F%2Fu%3Ahunter2%40127.0.0.1%3A1%2Fd&connect_timeout=2",
    };

    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct belay_error err = { 0 };
        if (!TAP_EQ(t, open_url(urls[i], &err), BELAY_UNAVAILABLE) ||
            !TAP_OK(t, strstr(err.message, "port 1")) ||
            !TAP_OK(t, !strstr(err.message, "hunter")))
            printf("# %s: %s\n", urls[i], err.message);
    }
}

/* Every name of the product's stores is known, whether or not this build has it. */
static void knows_schemes(struct tap *t)
{
    static const char *const names[] = {
        "memory", "sqlite",  "postgres", "postgresql", "valkey",
        "redis",  "valkeys", "rediss",   "http",       "https",
    };

    TAP_EQ(t, scheme_count, COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct url url = { .scheme = bytes_str(names[i]) };
        const struct scheme *scheme = NULL;
        struct belay_error err = { 0 };

        belay_rc rc = scheme_find(&url, &scheme, &err);
        if (rc == BELAY_OK) {
            TAP_STR(t, scheme->name, names[i]);
            TAP_OK(t, scheme->open);
            continue;
        }
        TAP_EQ(t, rc, BELAY_INVALID);
        TAP_STR(t, err.reason, "scheme");
        TAP_STR(t, err.entity, names[i]);
        TAP_OK(t, strstr(err.message, " is not in this build; this build has memory:"));
    }
}

static void takes_settings(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct settings s = settings_none();
    struct belay_error err = { 0 };
    struct url url;

    TAP_EQ(t, read_url("memory:", &a, &url, &s, &err), BELAY_OK);
    for (size_t i = 0; i < SETTINGS; i++)
        TAP_EQ(t, s.value[i], SETTING_UNSET);
    TAP_EQ(t, url.rest.len, 0);
    TAP_EQ(t, read_url("memory:?", &a, &url, &s, &err), BELAY_OK);
    TAP_EQ(t, url.n_options, 0);
    TAP_EQ(t,
           read_url("MEMORY:?request_timeout=1500%6ds&retries=0&retry_base=2"
                    "&retry_factor=100&retry_jitter=0",
                    &a, &url, &s, &err),
           BELAY_OK);
    TAP_EQ(t, s.value[SETTING_REQUEST_TIMEOUT], 1500);
    TAP_EQ(t, s.value[SETTING_RETRIES], 0);
    TAP_EQ(t, s.value[SETTING_RETRY_BASE], 2);
    TAP_EQ(t, s.value[SETTING_RETRY_FACTOR], 100);
    TAP_EQ(t, s.value[SETTING_RETRY_JITTER], 0);
}

static void parts(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct belay_error err = { 0 };
    struct url url;
    struct bytes decoded = { 0 };

    TAP_EQ(t, url_parse(bytes_str("x+y.z-1:a%20b?c=d%26e+f&g="), &a, &url, &err), 0);
    TAP_OK(t, bytes_eq(url.scheme, bytes_str("x+y.z-1")));
    TAP_OK(t, bytes_eq(url.rest, bytes_str("a%20b")));
    TAP_EQ(t, url.n_options, 2);
    TAP_OK(t, bytes_eq(url.options[0].value, bytes_str("d&e+f")));
    TAP_OK(t, bytes_eq(url.options[1].name, bytes_str("g")));
    TAP_EQ(t, url.options[1].value.len, 0);
    TAP_EQ(t, url_decode(url.rest, &a, &decoded, &err), BELAY_OK);
    TAP_STR(t, (const char *)decoded.ptr, "a b");
}

static void bounds(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct buf text CLEANUP(buf_release) = { 0 };
    struct belay_error err = { 0 };
    struct url url = { .n_options = 77 };

    buf_append_str(&text, "x:");
    while (text.len < URL_MAX)
        buf_append_char(&text, 'a');
    TAP_EQ(t, url_parse(buf_view(&text), &a, &url, &err), BELAY_OK);
    buf_append_char(&text, 'a');
    url.n_options = 77;
    TAP_EQ(t, url_parse(buf_view(&text), &a, &url, &err), BELAY_INVALID);
    TAP_OK(t, strstr(err.message, "longer than 4096"));
    TAP_EQ(t, url.n_options, 77);

    buf_reset(&text);
    buf_append_str(&text, "x:?");
    for (int i = 0; i < URL_OPTIONS_MAX; i++)
        buf_printf(&text, "%sa%d=1", i > 0 ? "&" : "", i);
    TAP_EQ(t, url_parse(buf_view(&text), &a, &url, &err), BELAY_OK);
    TAP_EQ(t, url.n_options, URL_OPTIONS_MAX);
    buf_append_str(&text, "&b=1");
    TAP_EQ(t, url_parse(buf_view(&text), &a, &url, &err), BELAY_INVALID);
    TAP_OK(t, strstr(err.message, "too many options"));

    TAP_EQ(t, url_parse(bytes_of("x:\0", 3), &a, &url, &err), BELAY_INVALID);
    TAP_EQ(t, url_parse(bytes_of(NULL, 0), &a, &url, NULL), BELAY_INVALID);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a URL that cannot be used is refused with its reason and name", refuses },
        { "no message repeats a password, in whatever place it stands",
          tells_no_secret },
        { "postgres: a URL that cannot be used is refused before anything is sent",
          postgres_refuses },
        { "postgres: a server that is not there is unavailable, without a password",
          postgres_is_tried },
        { "a store that is not in this build is told from one that is not known",
          knows_schemes },
        { "settings of a URL are read, and unset where it says nothing",
          takes_settings },
        { "a URL comes apart into scheme, rest and decoded options", parts },
        { "a URL has at most 4096 bytes and 32 options", bounds },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
