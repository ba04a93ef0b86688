#include "base/attr.h"
#include "store/schema.h"
#include "tap.h"
#include "things.h"

static void the_dictionaries_are_sound(struct tap *t)
{
    TAP_OK(t, !schema_fault(&schema_belay));
    TAP_OK(t, !schema_fault(&schema_things));
}

/* clang-format off */
static const struct column plain[] = { { "id", VALUE_TEXT, false }, { "n", VALUE_I64, false } };
static const struct column twice[] = { { "id", VALUE_TEXT, false }, { "id", VALUE_I64, false } };
static const struct column text_counter[] = { { "id", VALUE_TEXT, false }, { "n", VALUE_TEXT, true } };
static const struct column key_counter[] = { { "id", VALUE_I64, true }, { "n", VALUE_I64, false } };
static const struct column bytes_key[] = { { "id", VALUE_BYTES, false }, { "n", VALUE_I64, false } };
static const struct column no_type[] = { { "id", VALUE_NULL, false }, { "n", VALUE_I64, false } };

static const struct row_type good = { "good", 300, 1, 2, plain, 0 };
static const struct { const char *name; struct row_type type; } faulty[] = {
    { "two columns of one name",       { "bad", 301, 1, 2, twice, 0 } },
    { "a counter of text",             { "bad", 301, 1, 2, text_counter, 0 } },
    { "a counter in the key",          { "bad", 301, 1, 2, key_counter, 0 } },
    { "a key of bytes",                { "bad", 301, 1, 2, bytes_key, 0 } },
    { "a column without a type",       { "bad", 301, 1, 2, no_type, 0 } },
    { "more key parts than columns",   { "bad", 301, 3, 2, plain, 0 } },
    { "too many key parts",            { "bad", 301, SCHEMA_KEY_MAX + 1, 2, plain, 0 } },
    { "no columns",                    { "bad", 301, 0, 0, plain, 0 } },
    { "too many columns",              { "bad", 301, 1, SCHEMA_COLUMNS_MAX + 1, plain, 0 } },
    { "the id of another type",        { "bad", 300, 1, 2, plain, 0 } },
    { "the name of another type",      { "good", 301, 1, 2, plain, 0 } },
};

static const struct { const char *name; bool user, system; } names[] = {
    { "a", true, true },
    { "0", true, true },
    { "default", true, true },
    { "a-b_c9", true, true },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true, true },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, false },
    { "_belay", false, true },
    { "_other", false, false },
    { "-a", false, false },
    { "", false, false },
    { "A", false, false },
    { "a b", false, false },
    { "a\n", false, false },
    { "\xc3\xa9", false, false },
    { "a{b}", false, false },
};
/* clang-format on */

static void faults_are_named(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(faulty); i++) {
        const struct row_type *const types[] = { &good, &faulty[i].type };
        const struct schema s = { .types = types, .n_types = 2 };
        if (!TAP_OK(t, schema_fault(&s) != NULL))
            printf("# row: %s\n", faulty[i].name);
    }
}

static void namespace_names(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bytes name = bytes_str(names[i].name);
        if (!TAP_EQ(t, namespace_is_valid(name, false), names[i].user) ||
            !TAP_EQ(t, namespace_is_valid(name, true), names[i].system))
            printf("# name: %s\n", names[i].name);
    }
}

static const struct tap_case cases[] = {
    { "the dictionaries are sound", the_dictionaries_are_sound },
    { "a fault of a dictionary is found", faults_are_named },
    { "names of namespaces", namespace_names },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
