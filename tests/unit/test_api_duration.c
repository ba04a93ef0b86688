#include "api/duration.h"
#include "base/clock.h"
#include "tap.h"

/* clang-format off */
static const struct {
    const char *text;
    int64_t ms; /* -1: refused */
} rows[] = {
    { "0ms", 0 },
    { "0s", 0 },
    { "500ms", 500 },
    { "30s", 30000 },
    { "15m", 900000 },
    { "2h", 7200000 },
    { "7d", 604800000 },
    { "9007199254740991ms", TIME_MAX_MS },
    { "104249991d", INT64_C(9007199222400000) },
    { "9007199254740992ms", -1 }, /* one above TIME_MAX_MS */
    { "104249992d", -1 },
    { "9223372036854775807d", -1 }, /* overflows i64 */
    { "9223372036854775808ms", -1 },
    { "99999999999999999999s", -1 },
    { "", -1 },
    { "s", -1 },
    { "ms", -1 },
    { "30", -1 },
    { "30 s", -1 },
    { " 30s", -1 },
    { "30s ", -1 },
    { "30S", -1 },
    { "30sec", -1 },
    { "30w", -1 },
    { "-1s", -1 },
    { "+1s", -1 },
    { "1.5h", -1 },
    { "1e3ms", -1 },
    { "01s", -1 },
    { "0x10s", -1 },
    { "1h30m", -1 },
    { "30\xc2\xb5s", -1 },
};
/* clang-format on */

static void reads(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t ms = 77;
        bool read = duration_parse(bytes_str(rows[i].text), &ms);

        if (!TAP_EQ(t, read, rows[i].ms >= 0) ||
            !TAP_EQ(t, ms, rows[i].ms >= 0 ? rows[i].ms : 77))
            printf("# in row \"%s\"\n", rows[i].text);
    }
}

static void reads_what_it_is_shown(struct tap *t)
{
    int64_t ms = 77;

    /* The unit is cut off by the length, not by a NUL. */
    TAP_OK(t, !duration_parse(bytes_of("500ms", 3), &ms));
    TAP_OK(t, duration_parse(bytes_of("500ms", 4), &ms));
    TAP_EQ(t, ms, 30000000);
    TAP_OK(t, duration_parse(bytes_of("5sxyz", 2), &ms));
    TAP_EQ(t, ms, 5000);
    TAP_OK(t, !duration_parse(bytes_of("5s\0", 3), &ms));
    TAP_OK(t, !duration_parse(bytes_of(NULL, 0), &ms));
}

static void writes(struct tap *t)
{
    static const struct {
        int64_t ms;
        const char *text;
    } written[] = {
        { 0, "0ms" },        { 1, "1ms" },
        { 1500, "1500ms" },  { 1000, "1s" },
        { 90000, "90s" },    { 60000, "1m" },
        { 7200000, "2h" },   { 86400000, "1d" },
        { 604800000, "7d" }, { 172800001, "172800001ms" },
    };

    for (size_t i = 0; i < COUNT_OF(written); i++) {
        struct buf b CLEANUP(buf_release) = { 0 };
        int64_t back = -1;

        duration_append(&b, written[i].ms);
        TAP_OK(t, duration_parse(buf_view(&b), &back));
        TAP_EQ(t, back, written[i].ms);
        buf_append_char(&b, '\0');
        TAP_STR(t, (const char *)b.ptr, written[i].text);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a duration is a whole number and one unit, within the range of time",
          reads },
        { "a duration ends where its view ends", reads_what_it_is_shown },
        { "a duration is written in its largest exact unit and reads back", writes },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
