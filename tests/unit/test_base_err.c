#include "base/err.h"

#include "tap.h"

/* The table of the decision record, written down a second time: name, HTTP status and
 * exit code are promises to programs that are not ours. */
/* clang-format off */
static const struct {
    int code;
    int number;
    const char *name;
    int http, exit;
    bool retryable;
} rows[] = {
    { BELAY_OK,                        0, "ok",                       200,  0, false },
    { BELAY_LEASE_LOST,                1, "lease_lost",               409,  4, false },
    { BELAY_LEASE_HELD,                2, "lease_held",               409,  4, true },
    { BELAY_HEAD_REVISION_CONFLICT,    3, "head_revision_conflict",   412,  4, false },
    { BELAY_TURN_CONFLICT,             4, "turn_conflict",            409,  4, false },
    { BELAY_SESSION_BINDING_MISMATCH,  5, "session_binding_mismatch", 409,  4, false },
    { BELAY_REGISTRATION_CONFLICT,     6, "registration_conflict",    409,  4, false },
    { BELAY_REPLAY_CONFLICT,           7, "replay_conflict",          409,  4, false },
    { BELAY_KEY_CONFLICT,              8, "key_conflict",             409,  4, false },
    { BELAY_WRONG_STATE,               9, "wrong_state",              409,  4, false },
    { BELAY_BAD_HANDLE,               10, "bad_handle",               400,  2, false },
    { BELAY_INVALID,                  11, "invalid",                  400,  2, false },
    { BELAY_UNSUPPORTED_FORMAT,       12, "unsupported_format",       500, 78, false },
    { BELAY_NOT_FOUND,                13, "not_found",                404,  3, false },
    { BELAY_BUDGET_EXHAUSTED,         14, "budget_exhausted",         409, 75, true },
    { BELAY_THROTTLED,                15, "throttled",                429, 75, true },
    { BELAY_UNKNOWN_OUTCOME,          16, "unknown_outcome",          504, 75, true },
    { BELAY_TIMEOUT,                  17, "timeout",                  504,  5, true },
    { BELAY_CANCELLED,                18, "cancelled",                499,  1, false },
    { BELAY_UNAUTHENTICATED,          19, "unauthenticated",          401, 77, false },
    { BELAY_DENIED,                   20, "denied",                   403, 77, false },
    { BELAY_MISUSE,                   21, "misuse",                   500,  1, false },
    { BELAY_NO_MEMORY,                22, "no_memory",                503, 75, true },
    { BELAY_CONTENTION,               23, "contention",               503, 75, true },
    { BELAY_OUT_OF_RANGE,             24, "out_of_range",             409,  4, false },
    { BELAY_UNAVAILABLE,              25, "unavailable",              503, 69, true },
    { BELAY_POISONED,                 26, "poisoned",                 503, 69, false },
    { BELAY_CORRUPT,                  27, "corrupt",                  500,  1, false },
};
/* clang-format on */

static void test_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct belay_error_entry *info = belay_error_info(rows[i].code);
        TAP_EQ(t, rows[i].code, rows[i].number);
        TAP_STR(t, info->name, rows[i].name);
        TAP_OK(t, info->text && info->text[0] != '\0');
        TAP_EQ(t, info->http_status, rows[i].http);
        TAP_EQ(t, info->exit_code, rows[i].exit);
        TAP_EQ(t, info->retryable, rows[i].retryable);
        TAP_EQ(t, belay_error_code(rows[i].name), rows[i].code);
    }
}

static void test_outside(struct tap *t)
{
    static const int codes[] = { -1, INT32_MIN, COUNT_OF(rows), 1000, INT32_MAX };
    static const char *const names[] = { "", "OK", "lease", "lease_lost ",
                                         "lease_los" };

    for (size_t i = 0; i < COUNT_OF(codes); i++)
        TAP_OK(t, belay_error_info(codes[i]) == belay_error_info(BELAY_CORRUPT));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        TAP_EQ(t, belay_error_code(names[i]), -1);
    TAP_EQ(t, belay_error_code(NULL), -1);
}

static void test_http_status(struct tap *t)
{
    struct belay_error e;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        (void)err_set(&e, (belay_rc)rows[i].code, "x");
        TAP_EQ(t, belay_error_http_status(&e), rows[i].http);
    }
    (void)err_reason(&e, BELAY_INVALID, "too_large", "x");
    TAP_EQ(t, belay_error_http_status(&e), 413);
    (void)err_reason(&e, BELAY_INVALID, "schema", "x");
    TAP_EQ(t, belay_error_http_status(&e), 422);
    (void)err_reason(&e, BELAY_INVALID, "another", "x");
    TAP_EQ(t, belay_error_http_status(&e), 400);
    (void)err_reason(&e, BELAY_WRONG_STATE, "schema", "x");
    TAP_EQ(t, belay_error_http_status(&e), 409);
    e.code = 12345;
    TAP_EQ(t, belay_error_http_status(&e), 500);
}

static void test_set_fills(struct tap *t)
{
    struct belay_error e;

    memset(&e, 0x5a, sizeof(e)); /* the caller need not initialise it */
    TAP_EQ(t, err_set(&e, BELAY_NOT_FOUND, "execution %s: %d", "exe_1", 7),
           BELAY_NOT_FOUND);
    TAP_EQ(t, e.size, sizeof(e));
    TAP_EQ(t, e.code, BELAY_NOT_FOUND);
    TAP_STR(t, e.message, "execution exe_1: 7");
    TAP_STR(t, e.reason, "");
    TAP_STR(t, e.entity, "");
    TAP_EQ(t, e.expected, 0);
    TAP_EQ(t, e.actual, 0);
}

static void test_facts(struct tap *t)
{
    struct belay_error e;

    TAP_EQ(t, err_reason(&e, BELAY_LEASE_LOST, "superseded", "lease: %s", "taken over"),
           BELAY_LEASE_LOST);
    TAP_STR(t, e.reason, "superseded");
    TAP_STR(t, e.message, "lease: taken over");
    err_numbers(&e, INT64_MIN, INT64_MAX);
    err_entity(&e, bytes_of("exe_01xxx", 6));
    TAP_EQ(t, e.expected, INT64_MIN);
    TAP_EQ(t, e.actual, INT64_MAX);
    TAP_STR(t, e.entity, "exe_01");
    TAP_EQ(t, e.code, BELAY_LEASE_LOST);
    TAP_STR(t, e.reason, "superseded");
    err_context(&e, "worker 3");
    TAP_STR(t, e.message, "worker 3: lease: taken over");
    TAP_EQ(t, e.actual, INT64_MAX);
    err_entity(&e, bytes_of(NULL, 0));
    TAP_STR(t, e.entity, "");

    TAP_EQ(t, err_set(&e, BELAY_INVALID, "again"), BELAY_INVALID);
    TAP_STR(t, e.reason, "");
    TAP_EQ(t, e.expected, 0);
}

static void test_null(struct tap *t)
{
    TAP_EQ(t, err_set(NULL, BELAY_TIMEOUT, "x %d", 1), BELAY_TIMEOUT);
    TAP_EQ(t, err_reason(NULL, BELAY_TIMEOUT, "r", "x %d", 1), BELAY_TIMEOUT);
    TAP_EQ(t, err_no_memory(NULL, "x"), BELAY_NO_MEMORY);
    err_numbers(NULL, 1, 2);
    err_entity(NULL, bytes_str("x"));
    err_context(NULL, "x");
}

static void test_no_memory(struct tap *t)
{
    struct belay_error e;

    TAP_EQ(t, err_no_memory(&e, "a row"), BELAY_NO_MEMORY);
    TAP_EQ(t, e.code, BELAY_NO_MEMORY);
    TAP_OK(t, strstr(e.message, "a row"));
}

/* clang-format off */
static const struct {
    const char *character; /* put so that the cut falls into it */
} characters[] = {
    { "x" }, { "\xc3\xa9" }, { "\xe2\x82\xac" }, { "\xf0\x9f\x98\x80" },
};
/* clang-format on */

static void test_cut(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(characters); i++) {
        size_t len = strlen(characters[i].character);
        for (size_t before = 248; before <= 256; before++) {
            char text[300];
            struct belay_error e;
            size_t whole = before + len <= 255 ? before + len : before;

            memset(text, 'a', before);
            memcpy(text + before, characters[i].character, len + 1);
            (void)err_set(&e, BELAY_INVALID, "%s", text);
            TAP_EQ(t, strlen(e.message), whole > 255 ? 255 : whole);
            TAP_OK(t, bytes_is_utf8(bytes_str(e.message)));

            (void)err_set(&e, BELAY_INVALID, "%s", text + 3);
            err_context(&e, "b"); /* three bytes longer: the same cut */
            TAP_EQ(t, strlen(e.message), whole > 255 ? 255 : whole);
            TAP_OK(t, bytes_is_utf8(bytes_str(e.message)));
        }
        for (size_t before = 56; before <= 64; before++) {
            char text[100];
            struct belay_error e;
            size_t whole = before + len <= 63 ? before + len : before;

            memset(text, 'a', before);
            memcpy(text + before, characters[i].character, len + 1);
            (void)err_reason(&e, BELAY_INVALID, text + 32, "x");
            err_entity(&e, bytes_str(text));
            TAP_EQ(t, strlen(e.entity), whole > 63 ? 63 : whole);
            TAP_OK(t, bytes_is_utf8(bytes_str(e.entity)));
            TAP_EQ(t, strlen(e.reason), (whole > 63 ? 63 : whole) - 32);
        }
    }
}

static void test_own_text(struct tap *t)
{
    struct belay_error e;

    (void)err_reason(&e, BELAY_INVALID, "schema", "first");
    (void)err_set(&e, BELAY_CORRUPT, "%s, %s", e.message, e.reason);
    TAP_STR(t, e.message, "first, schema");
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "every code has its name, status and exit code", test_table },
        { "what is outside the table is corrupt or unknown", test_outside },
        { "the HTTP status is refined by the reason", test_http_status },
        { "set fills everything", test_set_fills },
        { "facts are added and leave the rest", test_facts },
        { "NULL is accepted everywhere", test_null },
        { "no_memory says what was wanted", test_no_memory },
        { "what does not fit is cut at a character boundary", test_cut },
        { "arguments may point into the error", test_own_text },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
