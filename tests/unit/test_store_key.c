#include "store/key.h"
#include "store/read.h"
#include "tap.h"
#include "things.h"

static struct row_ref ref_of(struct tap *t, struct belay_arena *a,
                             const struct row_type *type, const struct value *key)
{
    struct row_ref ref = { .type = NULL };

    TAP_EQ(t, row_ref_make(&ref, type, key, a, NULL), BELAY_OK);
    return ref;
}

static void encodings_keep_order(struct tap *t)
{
    /* In the order the parts have, not the bytes of any one notation. */
    const struct value keys[][2] = {
        { value_str("a"), value_i64(INT64_MIN) }, { value_str("a"), value_i64(-256) },
        { value_str("a"), value_i64(-1) },        { value_str("a"), value_i64(0) },
        { value_str("a"), value_i64(1) },         { value_str("a"), value_i64(256) },
        { value_str("a"), value_i64(INT64_MAX) }, { value_str("a\x01"), value_i64(0) },
        { value_str("aa"), value_i64(-5) },       { value_str("b"), value_i64(-9) },
        { value_str("\xc3\xa9"), value_i64(0) },
    };
    struct belay_arena arena = { .first = NULL };

    for (size_t i = 0; i + 1 < COUNT_OF(keys); i++) {
        struct row_ref a = ref_of(t, &arena, &row_part, keys[i]);
        struct row_ref b = ref_of(t, &arena, &row_part, keys[i + 1]);
        TAP_OK(t, bytes_cmp(a.enc, b.enc) < 0);
        TAP_OK(t, !row_ref_eq(&a, &b));
    }
    arena_release(&arena);
}

static void a_ref_owns_its_key(struct tap *t)
{
    struct belay_arena arena = { .first = NULL };
    char text[] = "mine";
    struct value key[] = { value_str(text), value_i64(7) };
    struct row_ref ref = ref_of(t, &arena, &row_part, key);

    memset(text, 'x', 4);
    key[1].i = 8;
    TAP_OK(t, bytes_eq(ref.key[0].b, bytes_str("mine")));
    TAP_EQ(t, ref.key[1].i, 7);
    arena_release(&arena);
}

static void types_are_apart(struct tap *t)
{
    struct belay_arena arena = { .first = NULL };
    struct value key = value_str("a");
    struct row_ref thing = ref_of(t, &arena, &row_thing, &key);
    struct row_ref blob = ref_of(t, &arena, &row_blob, &key);
    struct row_ref head = ref_of(t, &arena, &row_head, NULL);

    TAP_OK(t, !row_ref_eq(&thing, &blob));
    TAP_OK(t, !row_ref_eq(&head, &blob));
    arena_release(&arena);
}

static void bad_parts_are_refused(struct tap *t)
{
    static char long_name[SCHEMA_NAME_MAX + 2];
    const struct value bad[] = { value_i64(1),        value_null(),
                                 value_str(""),       value_bytes(bytes_str("a")),
                                 value_str("\xff"),   value_text(bytes_of("a\0b", 3)),
                                 value_str(long_name) };
    struct belay_arena arena = { .first = NULL };
    const struct row_ref poison = { .hash = 77 };

    memset(long_name, 'a', SCHEMA_NAME_MAX + 1);
    struct value longest = value_text(bytes_of(long_name, SCHEMA_NAME_MAX));
    (void)ref_of(t, &arena, &row_thing, &longest);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct row_ref ref = poison;
        struct value key = bad[i];
        if (i + 1 == COUNT_OF(bad))
            key = value_str(long_name);
        TAP_EQ(t, row_ref_make(&ref, &row_thing, &key, &arena, NULL), BELAY_INVALID);
        TAP_EQ(t, ref.hash, poison.hash);
    }
    arena_release(&arena);
}

static void members_name_rows(struct tap *t)
{
    struct belay_arena arena = { .first = NULL };
    struct value owner = value_str("o");
    struct fetch part = { .type = &row_part, .prefix = &owner };
    struct row_ref ref;

    TAP_EQ(t, fetch_ref(&ref, &part, bytes_str("-42"), &arena, NULL), BELAY_OK);
    TAP_EQ(t, ref.key[1].i, -42);
    TAP_EQ(t, fetch_ref(&ref, &part, bytes_str("x"), &arena, NULL), BELAY_CORRUPT);
    TAP_EQ(t, fetch_ref(&ref, &part, bytes_str("042"), &arena, NULL), BELAY_CORRUPT);
    arena_release(&arena);
}

static void scans_turn_round(struct tap *t)
{
    struct scan up = { .descending = false }, down = { .descending = true };
    struct bytes a = bytes_str("a"), b = bytes_str("b");

    TAP_OK(t, scan_cmp(&up, 1, b, b, 2, a, a) < 0);
    TAP_OK(t, scan_cmp(&up, 1, a, b, 1, b, a) < 0);
    TAP_OK(t, scan_cmp(&up, 1, a, a, 1, a, b) < 0);
    TAP_OK(t, scan_cmp(&up, 1, a, a, 1, a, a) == 0);
    TAP_OK(t, scan_cmp(&down, 1, b, b, 2, a, a) > 0);
    TAP_OK(t, scan_cmp(&down, 1, a, a, 1, a, b) > 0);
}

static const struct tap_case cases[] = {
    { "encodings keep the order of the parts", encodings_keep_order },
    { "a ref owns its key", a_ref_owns_its_key },
    { "row types are apart", types_are_apart },
    { "bad key parts are refused", bad_parts_are_refused },
    { "members name rows", members_name_rows },
    { "a descending scan is the ascending one turned round", scans_turn_round },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
