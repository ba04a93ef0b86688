#include <belay/belay.h>

#include "api/handle.h"
#include "api/options.h"
#include "base/attr.h"
#include "fakes.h"
#include "tap.h"

/* An address that no handle has. */
static struct belay *const untouched = (struct belay *)16;

/* The code, and that the handle is untouched by a failure; one that opened is closed.
 */
static belay_rc try_open(struct tap *t, const char *url, const struct belay_options *o,
                         struct belay_error *err)
{
    struct belay *b = untouched;

    belay_rc rc = belay_open(url, o, &b, err);
    if (rc == BELAY_OK)
        belay_close(b);
    else
        TAP_OK(t, b == untouched);
    return rc;
}

static void opens(struct tap *t)
{
    struct belay_error err = { .code = 77 };
    struct belay *b = NULL, *other = NULL;

    TAP_EQ(t, belay_open("memory:", NULL, &b, &err), BELAY_OK);
    TAP_EQ(t, err.code, 77);
    TAP_STR(t, belay_namespace(b), "default");
    TAP_EQ(t, belay_durability(b), BELAY_DURABILITY_INLINE);
    TAP_EQ(t, belay_open("memory:", NULL, &other, NULL), BELAY_OK);
    TAP_OK(t, b != other);
    belay_close(b);
    belay_close(other);
    belay_close(NULL);
}

static void is_strict(struct tap *t)
{
    struct belay_error err;
    struct belay *b = untouched;

    TAP_EQ(t, belay_open(NULL, NULL, &b, &err), BELAY_MISUSE);
    TAP_STR(t, err.message, "belay_open: url is NULL");
    TAP_EQ(t, belay_open("memory:", NULL, NULL, &err), BELAY_MISUSE);
    TAP_STR(t, err.message, "belay_open: out is NULL");
    TAP_EQ(t, belay_open(NULL, NULL, NULL, NULL), BELAY_MISUSE);
    TAP_OK(t, b == untouched);
    TAP_EQ(t, try_open(t, "memory:foo", NULL, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "url");
    TAP_OK(t, strstr(err.message, "nothing may follow memory:"));
    TAP_EQ(t, try_open(t, "memory://", NULL, &err), BELAY_INVALID);
    TAP_EQ(t, try_open(t, "mysql://host/db", NULL, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "scheme");
    TAP_EQ(t, try_open(t, "", NULL, NULL), BELAY_INVALID);
}

/* Room for the options of a library that is newer than this one. */
struct future {
    struct belay_options known;
    char more[sizeof(struct belay_options)];
};

static void knows_sizes(struct tap *t)
{
    /* clang-format off */
    const struct {
        size_t size;
        size_t set; /* offset of a byte that is not zero, or 0 */
        belay_rc want;
    } rows[] = {
        { sizeof(struct belay_options), 0, BELAY_OK },
        { OPTIONS_SIZE_FIRST, 0, BELAY_OK },
        { sizeof(struct future), 0, BELAY_OK },
        { sizeof(struct future), sizeof(struct belay_options), BELAY_MISUSE },
        { sizeof(struct future), sizeof(struct future) - 1, BELAY_MISUSE },
        { sizeof(struct belay_options) + 1, sizeof(struct future) - 1, BELAY_OK },
        { 0, 0, BELAY_MISUSE },
        { 4, 0, BELAY_MISUSE },
        { OPTIONS_SIZE_FIRST - 1, 0, BELAY_MISUSE },
        { OPTIONS_SIZE_MAX + 1, 0, BELAY_MISUSE },
        { UINT32_MAX, 0, BELAY_MISUSE },
        { 0xa5a5a5a5, 0, BELAY_MISUSE },
    };
    /* clang-format on */

    TAP_EQ(t, OPTIONS_SIZE_FIRST, 56);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct future f = { .known.size = (uint32_t)rows[i].size };
        struct belay_error err = { 0 };

        if (rows[i].set > 0)
            ((char *)&f)[rows[i].set] = 1;
        if (!TAP_EQ(t, try_open(t, "memory:", &f.known, &err), rows[i].want))
            printf("# in row %zu\n", i);
        if (rows[i].want == BELAY_MISUSE)
            TAP_OK(t, strstr(err.message, "struct belay_options"));
    }
}

static void refuses_reserved(struct tap *t)
{
    struct belay_options o = { .size = sizeof(o), .reserved = 1 };
    struct belay_error err = { 0 };

    TAP_EQ(t, try_open(t, "memory:", &o, &err), BELAY_MISUSE);
    TAP_OK(t, strstr(err.message, "struct belay_options: reserved"));
}

static void checks_namespaces(struct tap *t)
{
    static const char *const good[] = {
        "a",
        "0",
        "default",
        "a-b_c",
        "9-",
        "1_",
        "a23456789012345678901234567890123456789012345678901234567890123",
    };
    static const char *const bad[] = {
        "",         "_belay",
        "-a",       "A",
        "a b",      "a/b",
        "a.b",      "a\n",
        "\xc3\xa9", "a\xff",
        "{a}",      "a234567890123456789012345678901234567890123456789012345678901234",
    };

    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct belay_options o = { .size = sizeof(o), .ns = good[i] };
        struct belay *b = NULL;
        if (TAP_EQ(t, belay_open("memory:", &o, &b, NULL), BELAY_OK))
            TAP_STR(t, belay_namespace(b), good[i]);
        belay_close(b);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct belay_options o = { .size = sizeof(o), .ns = bad[i] };
        struct belay_error err = { 0 };
        TAP_EQ(t, try_open(t, "memory:", &o, &err), BELAY_INVALID);
        TAP_STR(t, err.reason, "namespace");
        TAP_OK(t, strncmp(err.message, "namespace: ", 11) == 0);
    }
}

static void checks_hooks(struct tap *t)
{
    struct fake_clock time = { 0 };
    struct belay_clock clock = fake_clock_hook(&time);
    struct belay_clock broken[] = { clock, clock, clock };
    struct belay_random no_random = { 0 };
    struct belay_options o = { .size = sizeof(o) };
    struct belay_error err = { 0 };

    broken[0].wall_ms = NULL;
    broken[1].mono_us = NULL;
    broken[2].sleep_us = NULL;
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        o.clock = &broken[i];
        TAP_EQ(t, try_open(t, "memory:", &o, &err), BELAY_MISUSE);
        TAP_OK(t, strstr(err.message, "struct belay_options: clock"));
    }
    o.clock = &clock;
    o.random = &no_random;
    TAP_EQ(t, try_open(t, "memory:", &o, &err), BELAY_MISUSE);
    TAP_OK(t, strstr(err.message, "struct belay_options: random"));
}

static void uses_hooks(struct tap *t)
{
    struct fake_clock time = { .wall_ms = 1234567890123 };
    struct belay_clock clock = fake_clock_hook(&time);
    struct belay_options o = { .size = sizeof(o), .clock = &clock };
    struct belay *b = NULL;
    int64_t now = 0;

    if (!TAP_EQ(t, belay_open("memory:", &o, &b, NULL), BELAY_OK))
        return;
    memset(&clock, 0, sizeof(clock)); /* it was copied */
    TAP_EQ(t, space_now(b->space, &now, NULL), BELAY_OK);
    TAP_EQ(t, now, 1234567890123);
    belay_close(b);
}

static int no_luck(void *arg, void *out, size_t n)
{
    (void)arg;
    (void)out;
    (void)n;
    return -1;
}

static void survives_no_randomness(struct tap *t)
{
    struct belay_random random = { .fill = no_luck };
    struct belay_options o = { .size = sizeof(o), .random = &random };
    struct belay_error err = { 0 };

    belay_rc rc = try_open(t, "memory:", &o, &err);
    TAP_OK(t, rc == BELAY_OK || rc == BELAY_UNAVAILABLE);
}

/* clang-format off */
static const struct {
    const char *name;
    struct belay_options o;
    const char *url;
    belay_rc want;
    struct settings then;
} settings_rows[] = {
    { "nothing is set", { 0 }, "memory:", BELAY_OK, { { -1, -1, -1, -1, -1, -1 } } },
    { "the struct's values are taken",
      { .request_timeout_ms = 5, .retry = { .exponent_base = 2, .factor = 3, .number_of_retries = 4, .jitter_percent = 6 }, .reclaim_grace_ms = 7 },
      "memory:", BELAY_OK, { { 5, 4, 2, 3, 6, 7 } } },
    { "the URL has the last word",
      { .request_timeout_ms = 5, .retry = { .number_of_retries = 4, .jitter_percent = 6 }, .reclaim_grace_ms = 7 },
      "memory:?request_timeout=1s&retries=0&grace=2s", BELAY_OK, { { 1000, 0, -1, -1, 6, 2000 } } },
    { "BELAY_NONE is an explicit zero",
      { .retry = { .number_of_retries = BELAY_NONE, .jitter_percent = BELAY_NONE }, .reclaim_grace_ms = BELAY_NONE },
      "memory:", BELAY_OK, { { -1, 0, -1, -1, 0, 0 } } },
    { "the largest values are allowed",
      { .request_timeout_ms = 86400000, .retry = { .exponent_base = 100, .factor = 60000, .number_of_retries = 1000, .jitter_percent = 100 }, .reclaim_grace_ms = 86400000 },
      "memory:", BELAY_OK, { { 86400000, 1000, 100, 60000, 100, 86400000 } } },
    { "a timeout is never none", { .request_timeout_ms = BELAY_NONE }, "memory:", BELAY_INVALID, { { 0 } } },
    { "a base is never none", { .retry = { .exponent_base = BELAY_NONE } }, "memory:", BELAY_INVALID, { { 0 } } },
    { "a factor is never none", { .retry = { .factor = BELAY_NONE } }, "memory:", BELAY_INVALID, { { 0 } } },
    { "negative", { .retry = { .number_of_retries = -2 } }, "memory:", BELAY_INVALID, { { 0 } } },
    { "smallest", { .request_timeout_ms = INT64_MIN }, "memory:", BELAY_INVALID, { { 0 } } },
    { "too long", { .request_timeout_ms = 86400001 }, "memory:", BELAY_INVALID, { { 0 } } },
    { "too many", { .retry = { .number_of_retries = 1001 } }, "memory:", BELAY_INVALID, { { 0 } } },
    { "too much", { .retry = { .jitter_percent = 101 } }, "memory:", BELAY_INVALID, { { 0 } } },
    { "too patient", { .reclaim_grace_ms = 86400001 }, "memory:", BELAY_INVALID, { { 0 } } },
    { "largest", { .retry = { .factor = INT32_MAX } }, "memory:", BELAY_INVALID, { { 0 } } },
};
/* clang-format on */

static void has_a_site(struct tap *t)
{
    static const struct {
        const char *url;
        int backend;
        int64_t grace_ms;
    } urls[] = {
        { "memory:", BELAY_BACKEND_MEMORY, RECLAIM_GRACE_MS },
        { "memory:?grace=0ms", BELAY_BACKEND_MEMORY, 0 },
        { "sqlite:site.db?grace=5s", BELAY_BACKEND_SQLITE, 5000 },
    };

    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct belay *b = NULL;

        if (!TAP_EQ(t, belay_open(urls[i].url, NULL, &b, NULL), BELAY_OK))
            continue;
        TAP_EQ(t, (int)b->site.backend, urls[i].backend);
        TAP_EQ(t, b->site.grace_ms, urls[i].grace_ms);
        TAP_OK(t, b->site.space == b->space && b->site.lanes);
        belay_close(b);
    }
}

static void merges_settings(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(settings_rows); i++) {
        struct belay_options o = settings_rows[i].o;
        struct belay_error err = { 0 };
        struct belay *b = NULL;

        o.size = sizeof(o);
        belay_rc rc = belay_open(settings_rows[i].url, &o, &b, &err);
        bool good = TAP_EQ(t, rc, settings_rows[i].want);
        for (size_t k = 0; rc == BELAY_OK && k < SETTINGS; k++)
            good &= TAP_EQ(t, b->settings.value[k], settings_rows[i].then.value[k]);
        if (rc != BELAY_OK) {
            good &= TAP_STR(t, err.reason, "option");
            good &= TAP_OK(t, strstr(err.message, "struct belay_options: "));
        }
        if (!good)
            printf("# in row \"%s\": %s\n", settings_rows[i].name, err.message);
        belay_close(b);
    }
}

static void names(struct tap *t)
{
    TAP_STR(t, belay_durability_name(BELAY_DURABILITY_INLINE), "inline");
    TAP_STR(t, belay_durability_name(BELAY_DURABILITY_DURABLE), "durable");
    TAP_STR(t, belay_durability_name(BELAY_DURABILITY_RELAXED), "relaxed");
    TAP_STR(t, belay_durability_name(3), "unknown");
    TAP_STR(t, belay_durability_name(-1), "unknown");
    TAP_STR(t, belay_durability_name(INT32_MIN), "unknown");
    /* Three numbers with dots between them. */
    const char *v = belay_version();
    for (int i = 0; i < 3; i++) {
        size_t digits = strspn(v, "0123456789");
        TAP_OK(t, digits > 0);
        TAP_EQ(t, v[digits], i < 2 ? '.' : '\0');
        v += digits + (i < 2);
    }
}

static void arenas(struct tap *t)
{
    struct belay_arena *a = NULL;

    TAP_EQ(t, belay_arena_new(&a, NULL), BELAY_OK);
    for (int i = 0; i < 3; i++) {
        TAP_OK(t, arena_alloc(a, 100000));
        belay_arena_reset(a);
    }
    belay_arena_free(a);
    belay_arena_reset(NULL);
    belay_arena_free(NULL);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "memory: opens, each time a store of its own", opens },
        { "a wrong call is refused and leaves the handle as it was", is_strict },
        { "options of other versions are understood or refused by their size",
          knows_sizes },
        { "reserved members are 0", refuses_reserved },
        { "a namespace is checked before anything is opened", checks_namespaces },
        { "a hook without its functions is misuse", checks_hooks },
        { "the store runs on the clock it was given", uses_hooks },
        { "without randomness a store opens or says that it cannot",
          survives_no_randomness },
        { "settings come from the URL, then from the options", merges_settings },
        { "executions know their store and the grace", has_a_site },
        { "durabilities and the version have names", names },
        { "an arena is made, reset and freed", arenas },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
