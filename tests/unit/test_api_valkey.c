#include "api/scheme.h"
#include "store/drivers/valkey.h"
#include "tap.h"

static belay_rc read_url(const char *text, struct belay_arena *a,
                         struct valkey_options *out, struct belay_error *err)
{
    struct settings settings = settings_none();
    const struct scheme *scheme = NULL;
    struct url url;
    belay_rc rc = url_parse(bytes_str(text), a, &url, err);

    if (rc == BELAY_OK)
        rc = scheme_find(&url, &scheme, err);
    if (rc == BELAY_OK)
        rc = scheme_options(scheme, &url, &settings, err);
    return rc ? rc : scheme_read_valkey(out, &url, &settings, a, err);
}

/* clang-format off */
static const struct {
    const char *url;
    const char *host;
    unsigned port;
    const char *user, *password;
    unsigned database;
    bool tls;
} rows[] = {
    { "valkey://",                             NULL,             0,    NULL,  NULL,      0, false },
    { "valkey://h",                            "h",              0,    NULL,  NULL,      0, false },
    { "valkey://h/",                           "h",              0,    NULL,  NULL,      0, false },
    { "redis://10.0.0.1:6380/2",               "10.0.0.1",       6380, NULL,  NULL,      2, false },
    { "rediss://h:1",                          "h",              1,    NULL,  NULL,      0, true },
    { "valkeys://h",                           "h",              0,    NULL,  NULL,      0, true },
    { "valkey://alice:s%40e:c%2Fret@h:7/1",    "h",              7,    "alice", "s@e:c/ret", 1, false },
    { "valkey://:secret@h",                    "h",              0,    NULL,  "secret",  0, false },
    { "valkey://[::1]:6390/3",                 "::1",            6390, NULL,  NULL,      3, false },
    { "valkey://[fe80::1]",                    "fe80::1",        0,    NULL,  NULL,      0, false },
    { "valkey:///run/valkey.sock",             "/run/valkey.sock", 0,  NULL,  NULL,      0, false },
    { "valkey:///run/valkey.sock?database=4",  "/run/valkey.sock", 0,  NULL,  NULL,      4, false },
    { "valkey://%2Frun%2Fvalkey.sock/5",       "/run/valkey.sock", 0,  NULL,  NULL,      5, false },
    { "valkey://u:p@/run/my%20valkey.sock",    "/run/my valkey.sock", 0, "u", "p",       0, false },
};
/* clang-format on */

static void addresses(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_arena a CLEANUP(arena_release) = { 0 };
        struct belay_error err = { 0 };
        struct valkey_options o;

        if (!TAP_EQ(t, read_url(rows[i].url, &a, &o, &err), BELAY_OK)) {
            printf("# %s: %s\n", rows[i].url, err.message);
            continue;
        }
        bool same = TAP_STR(t, o.host, rows[i].host);
        same &= TAP_EQ(t, o.port, rows[i].port);
        same &= TAP_STR(t, o.user, rows[i].user);
        same &= TAP_STR(t, o.password, rows[i].password);
        same &= TAP_EQ(t, o.database, rows[i].database);
        same &= TAP_EQ(t, o.tls, rows[i].tls);
        if (!same)
            printf("# %s\n", rows[i].url);
    }
}

static void options(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct belay_error err = { 0 };
    struct valkey_options o;

    TAP_EQ(t,
           read_url("valkeys://h?prefix=app.1&pool=3&durability=relaxed&wait=2"
                    "&wait_ms=250&tls_ca=%2Fa%2Fca.pem&tls_cert=c.pem&tls_key=k.pem"
                    "&tls_server_name=db.example&tls_insecure=1&request_timeout=2s"
                    "&retries=7&retry_base=3&retry_factor=20&retry_jitter=0",
                    &a, &o, &err),
           BELAY_OK);
    TAP_STR(t, o.prefix, "app.1");
    TAP_EQ(t, o.pool, 3);
    TAP_OK(t, o.relaxed);
    TAP_EQ(t, o.wait_replicas, 2);
    TAP_EQ(t, o.wait_ms, 250);
    TAP_STR(t, o.tls_ca, "/a/ca.pem");
    TAP_STR(t, o.tls_cert, "c.pem");
    TAP_STR(t, o.tls_key, "k.pem");
    TAP_STR(t, o.tls_server_name, "db.example");
    TAP_OK(t, o.tls_insecure);
    TAP_EQ(t, o.request_timeout_ms, 2000);
    TAP_EQ(t, o.retries, 7);
    TAP_EQ(t, o.retry_base, 3);
    TAP_EQ(t, o.retry_first_ms, 20);
    TAP_EQ(t, o.retry_jitter, 0);
    TAP_EQ(t, read_url("valkey://h", &a, &o, &err), BELAY_OK);
    TAP_OK(t, !o.relaxed && !o.tls_insecure && o.pool == 0 && o.wait_replicas == 0);
    TAP_EQ(t, o.retry_jitter, -1);
}

static const struct {
    const char *url, *reason, *entity;
} bad[] = {
    { "valkey:", "url", "" },
    { "valkey:h", "url", "" },
    { "valkey:/h", "url", "" },
    { "valkey://hunter2@h", "url", "" },
    { "valkey://u:hunter2%zz@h", "url", "" },
    { "valkey://h:hunter2", "url", "" },
    { "valkey://h:0", "url", "" },
    { "valkey://h:65536", "url", "" },
    { "valkey://h:", "url", "" },
    { "valkey://[::1", "url", "" },
    { "valkey://[::1]x", "url", "" },
    { "valkey://h/hunter2", "url", "" },
    { "valkey://h/1/hunter2", "url", "" },
    { "valkey://h/-1", "url", "" },
    { "valkey://h?pool=0", "option", "pool" },
    { "valkey://h?pool=hunter2", "option", "pool" },
    { "valkey://h?durability=hunter2", "option", "durability" },
    { "valkey://h?wait=-1", "option", "wait" },
    { "valkey://h?wait_ms=0", "option", "wait_ms" },
    { "valkey://h?database=hunter2", "option", "database" },
    { "valkey://h?tls_ca=", "option", "tls_ca" },
    { "valkey://h?tls_insecure=hunter2", "option", "tls_insecure" },
    { "valkey://h?schema=hunter2", "option", "schema" },
};

static void mistakes(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct belay_arena a CLEANUP(arena_release) = { 0 };
        struct belay_error err = { 0 };
        struct valkey_options o;

        bool told = TAP_EQ(t, read_url(bad[i].url, &a, &o, &err), BELAY_INVALID);
        told &= TAP_STR(t, err.reason, bad[i].reason);
        told &= TAP_STR(t, err.entity, bad[i].entity);
        told &= TAP_OK(t, !strstr(err.message, "hunter2"));
        if (!told)
            printf("# %s: %s\n", bad[i].url, err.message);
    }
}

static const struct tap_case cases[] = {
    { "a URL says where the server is, and who comes", addresses },
    { "a URL says how to treat it", options },
    { "a mistake is named, and nothing else repeated", mistakes },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
