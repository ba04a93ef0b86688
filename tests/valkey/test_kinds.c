/* Servers that are what a store needs, and others; and what a store has on one. */
#include "doors.h"
#include "proxy.h"

/* --- what an acknowledgement is worth (X1) --- */

static void says_what_it_is_worth(struct tap *t)
{
    static const struct {
        const char *name, *value, *good;
    } weak[] = {
        { "appendfsync", "everysec", "always" },
        { "appendfsync", "no", "always" },
        { "appendonly", "no", "yes" },
        { "maxmemory-policy", "allkeys-lru", "noeviction" },
        { "maxmemory-policy", "volatile-ttl", "noeviction" },
    };

    if (!serve_plainly(t))
        return;
    for (size_t i = 0; i <= COUNT_OF(weak); i++) {
        struct belay_error err = { .code = 0 };
        struct driver *d = NULL;
        bool good = i == COUNT_OF(weak);

        vk_setup_reset(server.word[0]);
        if (!good) {
            TAP_OK(t, redis_test_run(server.word[0], "CONFIG SET %s %s", weak[i].name,
                                     weak[i].value));
            check_refused(t, "durability", weak[i].name);
        }
        vk_setup.options.relaxed = true; /* permitted, even if it is not so */
        if (TAP_EQ(t, vk_open("durability", &d, &err), BELAY_OK))
            TAP_EQ(t, driver_durability(d),
                   good ? DURABILITY_DURABLE : DURABILITY_RELAXED);
        driver_close(d);
        if (!good)
            TAP_OK(t, redis_test_run(server.word[0], "CONFIG SET %s %s", weak[i].name,
                                     weak[i].good));
    }
}

/* Who may not read the settings cannot promise anything. */
static void cannot_be_read(struct tap *t)
{
    static const char *const rules[] = { "~*", "&*", "+@all", "-config", NULL };
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    if (!serve_plainly(t) || !TAP_OK(t, set_user("t_blind", rules)))
        return;
    vk_setup.options.user = "t_blind";
    vk_setup.options.password = PASSWORD;
    check_refused(t, "durability", "");
    vk_setup.options.relaxed = true;
    if (TAP_EQ(t, vk_open("blind", &d, &err), BELAY_OK))
        TAP_EQ(t, driver_durability(d), DURABILITY_RELAXED);
    driver_close(d);
}

/* --- servers that are none for us --- */

static void refuses_replicas(struct tap *t)
{
    static const char *const replica[] = { "--replica", NULL };

    if (!serve(t, replica))
        return;
    check_works(t);
    vk_setup_reset(server.word[1]);
    check_refused(t, "replica", "replica");
}

/* A server that says it is of yesterday. */
static void refuses_old_servers(struct tap *t)
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;
    char url[REDIS_URL_MAX];

    if (!serve_plainly(t))
        return;
    struct proxy *p = proxy_open(server.word[0], url, sizeof(url));
    proxy_swap(p, "redis_version:7.", "redis_version:6.");
    vk_setup.url = url;
    TAP_EQ(t, vk_open("old", &d, &err), BELAY_UNSUPPORTED_FORMAT);
    TAP_OK(t, strstr(err.message, "6."));
    TAP_OK(t, strstr(err.message, "7.0"));
    driver_close(d);
    proxy_close(p);
}

/* --- keys --- */

static void keeps_apart(struct tap *t)
{
    CLEANUP(harness_close) struct harness a = { .t = t };
    CLEANUP(harness_close) struct harness b = { .t = t };
    CLEANUP(harness_close) struct harness c = { .t = t };

    if (!serve_plainly(t))
        return;
    bool ok = harness_open(&a, t, 0);
    ok &= harness_open(&b, t, 0);
    vk_setup.options.database = 3;
    ok &= harness_open(&c, t, 0);
    if (ok) {
        thing_set(&a, "x", 1);
        thing_set(&b, "x", 2);
        TAP_EQ(t, thing_n(&c, "x"), INT64_MIN);
        thing_set(&c, "x", 3);
        TAP_EQ(t, thing_n(&a, "x"), 1);
        TAP_EQ(t, thing_n(&b, "x"), 2);
        thing_drop(&b, "x");
        TAP_EQ(t, thing_n(&c, "x"), 3);
        TAP_EQ(t, thing_n(&a, "x"), 1);
    }
    vk_setup.options.database = 16; /* there is none */
    check_refused(t, "database", "");
}

/* Nothing of ours is anywhere else than the manual says. */
static void names_its_keys(struct tap *t)
{
    CLEANUP(harness_close) struct harness h = { .t = t };
    char prefix[REDIS_PREFIX_MAX], want[REDIS_PREFIX_MAX + 2];
    struct deed d;

    if (!serve_plainly(t) || !harness_open(&h, t, 0))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    redis_test_prefix(h.dir, prefix);
    (void)snprintf(want, sizeof(want), "%s:{", prefix);
    redisReply *keys = redis_test_ask(server.word[0], "KEYS *");
    TAP_OK(t, keys && keys->elements > 3);
    for (size_t i = 0; keys && i < keys->elements; i++) {
        if (!TAP_OK(t, strncmp(keys->element[i]->str, want, strlen(want)) == 0))
            printf("# %s\n", keys->element[i]->str);
    }
    freeReplyObject(keys);
}

static void checks_prefixes(struct tap *t)
{
    static const char *const wrong[] = {
        "",
        "a b",
        "a:b",
        "a{b",
        "a*",
        ("123456789012345678901234567890123456789012345678901234567890"
         "12345"),
    };
    struct belay_error err = { .code = 0 };

    if (!serve_plainly(t))
        return;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct driver *d = NULL;
        if (!TAP_EQ(t, vk_open(wrong[i], &d, &err), BELAY_INVALID))
            printf("# %s\n", wrong[i]);
        driver_close(d);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "kinds: a server that does not keep what it acknowledges is refused",
          says_what_it_is_worth },
        { "kinds: settings that cannot be read are not trusted", cannot_be_read },
        { "kinds: a replica is refused", refuses_replicas },
        { "kinds: a server of yesterday is refused", refuses_old_servers },
        { "kinds: prefixes and databases keep stores apart", keeps_apart },
        { "kinds: every key begins with the prefix and its namespace", names_its_keys },
        { "kinds: prefixes that are none are refused", checks_prefixes },
    };
    int status =
        tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&vk_driver, argc, argv);

    test_server_close(&server);
    return status;
}
