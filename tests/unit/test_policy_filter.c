/* Which executions a subscriber or a timer is about. */
#include "policy/filter.h"
#include "tap.h"

static struct bytes text(const char *s)
{
    return s ? bytes_str(s) : bytes_of(NULL, 0);
}

static bool matches(const char *want_ns, const char *want_tag, const char *ns,
                    const char *tag)
{
    struct filter f = { .ns = text(want_ns),
                        .tag_key = text(want_tag ? "app.instance" : NULL),
                        .tag_value = text(want_tag) };

    return filter_matches(&f, text(ns), text(tag));
}

static void test_noop(struct tap *t)
{
    struct filter none = { .ns = { 0 } };

    TAP_OK(t, filter_is_noop(&none));
    TAP_OK(t, !filter_needs_tags(&none));
    TAP_OK(t, matches(NULL, NULL, NULL, NULL));
    TAP_OK(t, matches(NULL, NULL, "t1", "v"));
}

static void test_namespace(struct tap *t)
{
    struct filter f = { .ns = bytes_str("tenant-a") };

    TAP_OK(t, !filter_is_noop(&f));
    TAP_OK(t, !filter_needs_tags(&f));
    TAP_OK(t, matches("tenant-a", NULL, "tenant-a", NULL));
    TAP_OK(t, matches("tenant-a", NULL, "tenant-a", "whatever"));
    TAP_OK(t, !matches("tenant-a", NULL, "tenant-b", NULL));
    TAP_OK(t, !matches("tenant-a", NULL, "tenant-aa", NULL));
    TAP_OK(t, !matches("tenant-a", NULL, NULL, NULL));
}

static void test_tag(struct tap *t)
{
    struct filter f = { .tag_key = bytes_str("app.instance"),
                        .tag_value = bytes_str("i-1") };

    TAP_OK(t, !filter_is_noop(&f));
    TAP_OK(t, filter_needs_tags(&f));
    TAP_OK(t, matches(NULL, "i-1", NULL, "i-1"));
    TAP_OK(t, !matches(NULL, "i-1", NULL, "i-2"));
    TAP_OK(t, !matches(NULL, "i-1", NULL, NULL));
}

static void test_both(struct tap *t)
{
    TAP_OK(t, matches("tenant-a", "i-1", "tenant-a", "i-1"));
    TAP_OK(t, !matches("tenant-a", "i-1", "tenant-a", "i-2"));
    TAP_OK(t, !matches("tenant-a", "i-1", "tenant-b", "i-1"));
    TAP_OK(t, !matches("tenant-a", "i-1", NULL, "i-1"));
}

/* An empty value is a value. */
static void test_empty(struct tap *t)
{
    TAP_OK(t, matches(NULL, "", NULL, ""));
    TAP_OK(t, !matches(NULL, "", NULL, NULL));
    TAP_OK(t, !matches(NULL, "", NULL, "i-1"));
}

static const struct tap_case cases[] = {
    { "nothing set matches everything", test_noop },
    { "a namespace must be equal, and be there", test_namespace },
    { "a tag must be equal, and be there", test_tag },
    { "both must match", test_both },
    { "an empty tag matches an empty tag and not a missing one", test_empty },
};

int main(int argc, char **argv)
{
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
