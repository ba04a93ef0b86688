#include "policy/claim.h"

#include "base/clock.h"
#include "policy/fence.h"
#include "policy/lease.h"
#include "tap.h"

/* --- the prefix rule --- */

/* Candidates as text: e or a for the delivery, J or X for the slot, and a letter for the
 * merge key. */
static size_t candidates_of(const char *text, struct claim_candidate *out)
{
    size_t n = 0;

    for (; *text; text += text[3] ? 4 : 3) {
        out[n].delivery = text[0] == 'e' ? BELAY_EARLIEST_SAFE_BOUNDARY
                                         : BELAY_AFTER_CURRENT_TURN_COMMIT;
        out[n].slot = text[1] == 'J' ? BELAY_JOIN : BELAY_EXCLUSIVE;
        out[n].merge_key = bytes_of(text + 2, 1);
        n++;
    }
    return n;
}

/* clang-format off */
static const struct {
    const char *name, *candidates;
    enum belay_boundary boundary;
    size_t max, want;
} prefixes[] = {
    { "exclusive head = 1",                 "eXn eXn",         BELAY_IDLE, 8, 1 },
    { "an exclusive head before joins",     "eXn eJn eJn",     BELAY_IDLE, 8, 1 },
    { "join up to max",                     "eJp eJp eJp eJp", BELAY_IDLE, 3, 3 },
    { "join to the end",                    "eJp eJp",         BELAY_IDLE, 8, 2 },
    { "never equals never",                 "eJn eJn",         BELAY_IDLE, 8, 2 },
    { "break on merge key",                 "eJa eJb",         BELAY_IDLE, 8, 1 },
    { "break on merge key, then none more", "eJa eJa eJb eJa", BELAY_IDLE, 8, 2 },
    { "break on delivery",                  "eJa aJa eJa",     BELAY_IDLE, 8, 1 },
    { "break on an exclusive one",          "eJa eXa eJa",     BELAY_IDLE, 8, 1 },
    { "checkpoint gate = 0",                "aXn",   BELAY_ACTIVE_TURN_CHECKPOINT, 8, 0 },
    { "nobody looks past the head",         "aJn eJn", BELAY_ACTIVE_TURN_CHECKPOINT, 8, 0 },
    { "the gate admits",                    "eJn eJn", BELAY_ACTIVE_TURN_CHECKPOINT, 8, 2 },
    { "the gate looks at the head only",    "eJn aJn", BELAY_ACTIVE_TURN_CHECKPOINT, 8, 1 },
    { "idle has no gate",                   "aXn",             BELAY_IDLE, 8, 1 },
    { "at most one",                        "eJn eJn",         BELAY_IDLE, 1, 1 },
    { "none is asked for",                  "eJn",             BELAY_IDLE, 0, 0 },
    { "none is there",                      "",                BELAY_IDLE, 8, 0 },
};
/* clang-format on */

static void prefixes_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        struct claim_candidate c[8];
        size_t n = candidates_of(prefixes[i].candidates, c);
        if (!TAP_EQ(t, claim_prefix(c, n, prefixes[i].boundary, prefixes[i].max),
                    prefixes[i].want))
            printf("# row: %s\n", prefixes[i].name);
    }
}

/* --- ids --- */

static void claim_ids(struct tap *t)
{
    char id[CLAIM_ID_MAX];

    claim_id_make(7, 3, id);
    TAP_STR(t, id, "qwc:7:3");
    claim_id_make(INT64_MAX, INT64_MAX, id);
    TAP_STR(t, id, "qwc:9223372036854775807:9223372036854775807");
    TAP_OK(t, strlen(id) < CLAIM_ID_MAX);
}

static const char *token(struct tap *t, const char *session, const char *owner,
                         const char *claim_id, int64_t now_ms)
{
    static char out[2][SHA256_HEX_LEN + 1];
    static unsigned which;
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err;

    which = !which;
    TAP_EQ(t,
           claim_token_make(bytes_str(session), bytes_str(owner), claim_id, now_ms,
                            out[which], &a, &err),
           BELAY_OK);
    return out[which];
}

static void lease_derivation(struct tap *t)
{
    char id[CLAIM_ID_MAX];
    int64_t fence = 0;

    TAP_EQ(t, fence_next(2, 0, 0, &fence), BELAY_OK);
    TAP_EQ(t, fence, 3);
    claim_id_make(7, fence, id);
    TAP_STR(t, id, "qwc:7:3");
    TAP_EQ(t, lease_expiry(1000, 250), 1250);
    TAP_STR(t, token(t, "session", "owner", id, 1000),
            "27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071");
    TAP_STR(t, token(t, "session", "owner", id, 1000),
            token(t, "session", "owner", id, 1000));
    TAP_OK(t, strcmp(token(t, "session", "owner", id, 1000),
                     token(t, "session", "owner", id, 1001)) != 0);
}

/* clang-format off */
static const struct {
    const char *source_key; int64_t nonce; const char *want;
} batch_ids[] = {
    { "key", -1, "qwb:9388582ae23f26e0ca8f418a32512512a027d8697de330526f57c86918e4071f" },
    { "key",  1, "qwb:88583d19c41c3de754b50c05de42b3e64636222193ac8134a2556ecc79a8e42b" },
    { NULL,   0, "qwb:8106495acef7d68123872546c43d85f7e470957da57457922d461514a5242ba5" },
};
/* clang-format on */

static void make_batch_id(struct tap *t, struct bytes key, int64_t nonce,
                          char out[BATCH_ID_LEN + 1])
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err;

    TAP_EQ(t, batch_id_make(bytes_str("session"), key, 1000, nonce, out, &a, &err),
           BELAY_OK);
}

static void batch_ids_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(batch_ids); i++) {
        const char *key = batch_ids[i].source_key;
        char id[BATCH_ID_LEN + 1];
        make_batch_id(t, key ? bytes_str(key) : bytes_of(NULL, 0), batch_ids[i].nonce,
                      id);
        TAP_STR(t, id, batch_ids[i].want);
    }
}

/* clang-format off */
static const struct {
    struct bytes key; const char *seed; /* what is hashed */
} escaped[] = {
    { { (const uint8_t *)"", 0 },                    "session:Some(\"\"):1000" },
    { { (const uint8_t *)"a\"b\\c'd", 7 },           "session:Some(\"a\\\"b\\\\c'd\"):1000" },
    { { (const uint8_t *)"\n\t\r\0\x01\x1f\x7f", 7 }, "session:Some(\"\\n\\t\\r\\0\\u{1}\\u{1f}\\u{7f}\"):1000" },
    { { (const uint8_t *)"\xc2\x85z", 3 },           "session:Some(\"\\u{85}z\"):1000" },
    { { (const uint8_t *)"\xc3\xa9\xf0\x9f\x98\x80", 6 }, "session:Some(\"\xc3\xa9\xf0\x9f\x98\x80\"):1000" },
};
/* clang-format on */

static void source_keys_are_escaped(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(escaped); i++) {
        uint8_t digest[SHA256_LEN];
        char id[BATCH_ID_LEN + 1], want[SHA256_HEX_LEN + 1];
        make_batch_id(t, escaped[i].key, -1, id);
        TAP_EQ(t, sha256(bytes_str(escaped[i].seed), digest, NULL), BELAY_OK);
        hex_encode(bytes_of(digest, sizeof(digest)), want);
        if (!TAP_STR(t, id + 4, want))
            printf("# row: %s\n", escaped[i].seed);
    }
}

/* --- names --- */

static void names(struct tap *t)
{
    int32_t n = -7;

    TAP_STR(t, delivery_name(BELAY_EARLIEST_SAFE_BOUNDARY), "earliest_safe_boundary");
    TAP_STR(t, delivery_name(BELAY_AFTER_CURRENT_TURN_COMMIT),
            "after_current_turn_commit");
    TAP_STR(t, slot_name(BELAY_JOIN), "join");
    TAP_STR(t, slot_name(BELAY_EXCLUSIVE), "exclusive");
    TAP_STR(t, boundary_name(BELAY_IDLE), "idle");
    TAP_STR(t, boundary_name(BELAY_ACTIVE_TURN_CHECKPOINT), "active_turn_checkpoint");
    TAP_STR(t, delivery_name(BELAY_DELIVERY_UNSET), NULL);
    TAP_STR(t, delivery_name(3), NULL);
    TAP_STR(t, slot_name(0), NULL);
    TAP_STR(t, slot_name(-1), NULL);
    TAP_STR(t, boundary_name(2), NULL);

    TAP_OK(t, !delivery_parse(bytes_str("earliest"), &n) &&
                  !delivery_parse(bytes_str(""), &n) &&
                  !slot_parse(bytes_str("joins"), &n) &&
                  !boundary_parse(bytes_str("Idle"), &n));
    TAP_EQ(t, n, -7);
    TAP_OK(t, delivery_parse(bytes_str("after_current_turn_commit"), &n));
    TAP_EQ(t, n, BELAY_AFTER_CURRENT_TURN_COMMIT);
    TAP_OK(t, slot_parse(bytes_str("exclusive"), &n));
    TAP_EQ(t, n, BELAY_EXCLUSIVE);
    TAP_OK(t, boundary_parse(bytes_str("idle"), &n));
    TAP_EQ(t, n, BELAY_IDLE);
}

/* clang-format off */
static const struct {
    int32_t merge; const char *group, *want;
} merge_keys[] = {
    { BELAY_MERGE_NEVER,           "",        "\"never\"" },
    { BELAY_MERGE_PAYLOAD_DEFAULT, "",        "\"payload_default\"" },
    { BELAY_MERGE_GROUP,           "a",       "{\"group\":\"a\"}" },
    { BELAY_MERGE_GROUP,           "a\"b\\c", "{\"group\":\"a\\\"b\\\\c\"}" },
    { BELAY_MERGE_GROUP,           "\b\t\n\f\r\x01", "{\"group\":\"\\b\\t\\n\\f\\r\\u0001\"}" },
    { BELAY_MERGE_GROUP,           "\xc3\xa9", "{\"group\":\"\xc3\xa9\"}" },
};
/* clang-format on */

static void merge_keys_by_table(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err;
    struct bytes key;

    for (size_t i = 0; i < COUNT_OF(merge_keys); i++) {
        TAP_EQ(t,
               merge_key_make(merge_keys[i].merge, bytes_str(merge_keys[i].group), &key,
                              &a, &err),
               BELAY_OK);
        if (!TAP_OK(t, bytes_eq(key, bytes_str(merge_keys[i].want))))
            printf("# it is %.*s\n", (int)key.len, (const char *)key.ptr);
    }
    TAP_EQ(t, merge_key_make(3, bytes_str(""), &key, &a, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "merge");
    TAP_EQ(t, merge_key_make(-1, bytes_str(""), &key, &a, &err), BELAY_INVALID);
}

static const struct tap_case cases[] = {
    { "the prefix rule, by table", prefixes_by_table },
    { "a claim's id is its head's sequence and fence", claim_ids },
    { "lease deterministic + fence advance", lease_derivation },
    { "nonce changes the id and prefix is qwb:", batch_ids_by_table },
    { "a source key is escaped before it is hashed", source_keys_are_escaped },
    { "names, and back", names },
    { "merge keys are canonical JSON", merge_keys_by_table },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
