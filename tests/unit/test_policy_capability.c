/* What work requires and workers have. */
#include "policy/capability.h"
#include "tap.h"

static struct belay_arena arena;

/* The joined set of words with spaces between them, or the message. */
static const char *join(const char *words)
{
    static char copy[512], text[512];
    const char *tokens[64];
    struct belay_error err;
    struct bytes out = { 0 };
    size_t n = 0;
    char *save = NULL;

    (void)snprintf(copy, sizeof(copy), "%s", words);
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        tokens[n++] = w;
    if (capability_join(tokens, n, NULL, &arena, &out, &err))
        return "refused";
    (void)snprintf(text, sizeof(text), "%.*s", (int)out.len, (const char *)out.ptr);
    return text;
}

static void test_join(struct tap *t)
{
    TAP_STR(t, join(""), "");
    TAP_STR(t, join("gpu"), "gpu");
    TAP_STR(t, join("gpu cuda"), "cuda,gpu");
    TAP_STR(t, join("cuda gpu"), "cuda,gpu");
    TAP_STR(t, join("gpu cuda gpu cuda gpu"), "cuda,gpu");
    TAP_STR(t, join("b a c B aa"), "B,a,aa,b,c");
    TAP_STR(t, join("\xc3\xa9t\xc3\xa9 x=1"), "x=1,\xc3\xa9t\xc3\xa9");
}

static const char *refusal(const char *const *tokens, size_t n, const char *what)
{
    static struct belay_error err;
    struct bytes out = bytes_str("untouched");
    belay_rc rc = capability_join(tokens, n, what, &arena, &out, &err);

    if (rc != BELAY_INVALID || strcmp(err.reason, what ? what : "requires") != 0 ||
        !bytes_eq(out, bytes_str("untouched")))
        return "not refused as it should be";
    return err.message;
}

static void test_refused(struct tap *t)
{
    static const char *const empty[] = { "a", "" }, *const null[] = { NULL };
    static const char *const comma[] = { "a,b" }, *const space[] = { "a b" };
    static const char *const control[] = { "a\x01" }, *const del[] = { "a\x7f" };
    static const char *const latin[] = { "caf\xe9" };

    TAP_STR(t, refusal(empty, 2, NULL), "requires: token 2: empty_token");
    TAP_STR(t, refusal(null, 1, NULL), "requires: token 1: empty_token");
    TAP_STR(t, refusal(comma, 1, "capabilities"),
            "capabilities: token 1: comma_in_token");
    TAP_STR(t, refusal(space, 1, NULL), "requires: token 1: control_or_whitespace");
    TAP_STR(t, refusal(control, 1, NULL), "requires: token 1: control_or_whitespace");
    TAP_STR(t, refusal(del, 1, NULL), "requires: token 1: control_or_whitespace");
    TAP_STR(t, refusal(latin, 1, NULL), "requires: token 1: not_utf8");
}

static void test_limits(struct tap *t)
{
    enum { N = CAPABILITY_TOKENS_MAX + 1 };
    static char text[N][8], longest[CAPABILITY_BYTES_MAX + 1];
    const char *tokens[2 * N];
    struct bytes out;

    for (size_t i = 0; i < N; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "t%zu", i);
        tokens[i] = text[i];
    }
    TAP_EQ(t, capability_join(tokens, N - 1, NULL, &arena, &out, NULL), BELAY_OK);
    TAP_STR(t, refusal(tokens, N, NULL), "requires: token 257: too_many_tokens");
    for (size_t i = 0; i < N; i++)
        tokens[N - 1 + i] = text[i % (N - 1)];
    /* Repetition does not count. */
    TAP_EQ(t, capability_join(tokens, 2 * N - 1, NULL, &arena, &out, NULL), BELAY_OK);

    memset(longest, 'x', CAPABILITY_BYTES_MAX - 2);
    tokens[0] = longest;
    tokens[1] = "a";
    TAP_EQ(t, capability_join(tokens, 2, NULL, &arena, &out, NULL), BELAY_OK);
    TAP_EQ(t, out.len, CAPABILITY_BYTES_MAX);
    tokens[1] = "aa";
    TAP_STR(t, refusal(tokens, 2, NULL), "requires: token 2: too_many_bytes");
    memset(longest, 'x', CAPABILITY_BYTES_MAX);
    TAP_EQ(t, capability_join(tokens, 1, NULL, &arena, &out, NULL), BELAY_OK);
}

static const struct {
    const char *required, *has, *missing;
} matches[] = {
    { "", "", "" },
    { "", "gpu", "" },
    { "gpu", "", "gpu" },
    { "gpu", "gpu", "" },
    { "gpu", "cuda,gpu,x", "" },
    { "gpu", "GPU", "gpu" },
    { "gpu", "gpu2", "gpu" },
    { "gpu2", "gpu", "gpu2" },
    { "a,b,c", "b", "a,c" },
    { "a,b,c", "a,c", "b" },
    { "a,c", "a,b,c", "" },
    { "a,z", "b,c", "a,z" },
    { "b,c", "a,d", "b,c" },
    /* A comma sorts above some bytes of a token: the order is by token. */
    { "a,a!", "a,a!", "" },
    { "a!", "a,a!", "" },
    { "b", "a!,a,b", "" },
};

static void test_fits(struct tap *t)
{
    for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
        struct bytes required = bytes_str(matches[i].required);
        struct bytes has = bytes_str(matches[i].has), missing = { 0 };
        char text[64];

        TAP_EQ(t, capability_fits(required, has), matches[i].missing[0] == '\0');
        TAP_OK(t, capability_missing(required, has, &arena, &missing));
        (void)snprintf(text, sizeof(text), "%.*s", (int)missing.len,
                       (const char *)missing.ptr);
        TAP_STR(t, text, matches[i].missing);
    }
}

/* Against a matching without any cleverness, over all pairs of subsets of five. */
static void test_all_pairs(struct tap *t)
{
    static const char *const words[] = { "a", "a-b", "a!", "b", "aa" };
    struct bytes set[32];

    for (unsigned i = 0; i < 32; i++) {
        const char *tokens[5];
        size_t n = 0;
        for (unsigned w = 0; w < 5; w++) {
            if (i >> w & 1)
                tokens[n++] = words[w];
        }
        TAP_EQ(t, capability_join(tokens, n, NULL, &arena, &set[i], NULL), BELAY_OK);
    }
    for (unsigned a = 0; a < 32; a++) {
        for (unsigned b = 0; b < 32; b++)
            TAP_EQ(t, capability_fits(set[a], set[b]), (a & ~b) == 0);
    }
}

static void test_routes(struct tap *t)
{
    char route[ROUTE_MAX], again[ROUTE_MAX], other[ROUTE_MAX];

    route_make(bytes_of(NULL, 0), route);
    TAP_STR(t, route, "-");
    route_make(bytes_str("abc"), route);
    TAP_STR(t, route, "ba7816bf8f01cfea"); /* of SHA-256's own example */
    route_make(bytes_str(join("gpu cuda")), route);
    route_make(bytes_str(join("cuda gpu cuda")), again);
    route_make(bytes_str("gpu"), other);
    TAP_STR(t, again, route);
    TAP_OK(t, strcmp(other, route) != 0);
}

static const struct tap_case cases[] = {
    { "a set is sorted, without repetition, joined by commas", test_join },
    { "a token that cannot be is refused by name, and nothing is written",
      test_refused },
    { "256 different tokens and 4096 bytes are the most", test_limits },
    { "everything required must be there, case and all; what lacks is told",
      test_fits },
    { "matching is the subset relation, for all pairs of sets", test_all_pairs },
    { "a route is a hash of its set, and - for none", test_routes },
};

int main(int argc, char **argv)
{
    int status = tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);

    arena_release(&arena);
    return status;
}
