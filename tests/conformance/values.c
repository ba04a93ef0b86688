/* Values and names: everything that is allowed comes back as it was, the rest is
 * refused before it reaches the driver. */
#include <stdlib.h>

#include "conformance.h"

/* Names that somebody will one day put into SQL, a format or a key pattern. */
static const char *const hostile[] = {
    "'",
    "\"; DROP TABLE belay_thing; --",
    "{a}{b}",
    "%s%n%%",
    "line\nbreak\r\ttab",
    "\\x00\\",
    "a:b/c*?[d]",
    " ",
    "\x7f\x01",
    "naïve 漢字 \xf0\x9f\x98\x80",
    "\xef\xbf\xbf",
    "NULL",
    "$1 ?1 :1 @a #",
};

struct name_call {
    struct tap *t;
    struct bytes name;
};

static belay_rc use_name(struct txn *t, void *arg)
{
    const struct name_call *c = arg;
    struct value v[THING_COLUMNS];
    struct value part[PART_COLUMNS] = { value_text(c->name), value_i64(1),
                                        value_i64(2) };

    thing_values(v, "", 1);
    v[THING_ID] = value_text(c->name);
    v[THING_TEXT] = value_text(c->name);
    v[THING_JSON] = value_json(c->name);
    v[THING_BYTES] = value_bytes(c->name);
    belay_rc rc = txn_insert(t, &row_thing, v);
    if (!rc)
        rc = txn_insert(t, &row_part, part);
    if (!rc)
        rc = txn_rank_add(t, c->name, 3, c->name);
    if (!rc)
        rc = txn_log_append(t, c->name, 1, c->name);
    if (!rc)
        rc = txn_feed_append(t, c->name, c->name, NULL);
    if (!rc)
        rc = txn_chunk_put(t, c->name, 0, c->name);
    return rc ? rc : txn_wake(t, c->name);
}

static belay_rc see_name(struct txn *t, void *arg)
{
    const struct name_call *c = arg;
    struct value key = value_text(c->name);
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &c->name,
                         .n_indexes = 1,
                         .min_rank = 3,
                         .max_rank = 3,
                         .limit = 10,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    const struct row *row = NULL;
    struct hits hits = { .n = 0 };
    struct log_entries log = { .n = 0 };
    struct feed_entries feed = { .n = 0 };
    struct bytes chunk;
    bool found = false;
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    if (!rc)
        rc = txn_scan(t, &scan, &hits);
    if (!rc)
        rc = txn_log_read(t, c->name, 0, 10, &log);
    if (!rc)
        rc = txn_feed_read(t, c->name, (struct feed_pos){ 0 }, 10, &feed);
    if (!rc)
        rc = txn_chunk_get(t, c->name, 0, &found, &chunk);
    if (rc || !TAP_OK(c->t, row && hits.n == 1 && log.n == 1 && feed.n == 1 && found))
        return rc;
    for (unsigned i = THING_TEXT; i <= THING_JSON; i++)
        TAP_OK(c->t, bytes_eq(row->v[i].b, c->name));
    TAP_OK(c->t, bytes_eq(row->v[THING_ID].b, c->name));
    TAP_OK(c->t, bytes_eq(hits.hit[0].member, c->name));
    TAP_OK(c->t, bytes_eq(hits.hit[0].index, c->name));
    TAP_OK(c->t, hits.hit[0].rows[0] != NULL);
    TAP_OK(c->t, bytes_eq(log.entry[0].data, c->name));
    TAP_OK(c->t, bytes_eq(feed.entry[0].data, c->name));
    TAP_OK(c->t, bytes_eq(chunk, c->name));
    return rc;
}

static void hostile_names(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    for (size_t i = 0; i < COUNT_OF(hostile); i++) {
        struct name_call c = { .t = t, .name = bytes_str(hostile[i]) };
        CHECK_RC(&h, harness_run(&h, use_name, &c), BELAY_OK);
    }
    /* Only now: a name that leaks into its neighbour's would show. */
    for (size_t i = 0; i < COUNT_OF(hostile); i++) {
        struct name_call c = { .t = t, .name = bytes_str(hostile[i]) };
        CHECK_RC(&h, harness_run(&h, see_name, &c), BELAY_OK);
    }
}

static void longest_names(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    static char longest[SCHEMA_NAME_MAX + 2];
    if (!harness_open(&h, t, 0))
        return;

    memset(longest, 'x', sizeof(longest) - 1);
    struct name_call c = { .t = t, .name = bytes_of(longest, SCHEMA_NAME_MAX) };
    CHECK_RC(&h, harness_run(&h, use_name, &c), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, see_name, &c), BELAY_OK);
}

/* --- what is refused --- */

enum { USE_KEY, USE_INDEX, USE_MEMBER, USE_LOG, USE_FEED, USE_UPLOAD, USE_TOPIC, USES };

struct refusal {
    int use;
    struct bytes name;
};

static belay_rc use_one(struct txn *t, void *arg)
{
    const struct refusal *c = arg;
    const struct bytes good = bytes_str("good");
    struct value key = value_text(c->name);
    const struct row *row;

    switch (c->use) {
    case USE_KEY:
        return txn_get(t, &row_thing, &key, &row);
    case USE_INDEX:
        return txn_rank_add(t, c->name, 0, good);
    case USE_MEMBER:
        return txn_rank_add(t, good, 0, c->name);
    case USE_LOG:
        return txn_log_append(t, c->name, 1, good);
    case USE_FEED:
        return txn_feed_append(t, c->name, good, NULL);
    case USE_UPLOAD:
        return txn_chunk_put(t, c->name, 0, good);
    default:
        return txn_wake(t, c->name);
    }
}

static void bad_names(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    static char too_long[SCHEMA_NAME_MAX + 1];
    if (!harness_open(&h, t, 0))
        return;

    memset(too_long, 'x', sizeof(too_long));
    /* clang-format off */
    const struct { struct bytes name; const char *reason; } bad[] = {
        { bytes_of("", 0),                      "empty" },
        { bytes_of(too_long, sizeof(too_long)), "too_large" },
        { bytes_of("a\0b", 3),                  "utf8" },
        { bytes_of("\xff", 1),                  "utf8" },
        { bytes_of("\xc0\x80", 2),              "utf8" },
        { bytes_of("\xed\xa0\x80", 3),          "utf8" },
        { bytes_of("abc\xe2\x82", 5),           "utf8" },
    };
    /* clang-format on */
    CLEANUP(buf_release) struct buf before = harness_dump(&h);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        for (int use = 0; use < USES; use++) {
            struct refusal c = { .use = use, .name = bad[i].name };
            CHECK_RC(&h, harness_run(&h, use_one, &c), BELAY_INVALID);
            TAP_STR(t, h.err.reason, bad[i].reason);
        }
    }
    CLEANUP(buf_release) struct buf after = harness_dump(&h);
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after)));
}

/* --- values --- */

static uint8_t every_byte[256];

static belay_rc put_extremes(struct txn *t, void *arg)
{
    struct value v[THING_COLUMNS];
    struct value low[PART_COLUMNS] = { value_str("o"), value_i64(INT64_MIN),
                                       value_i64(INT64_MAX) };
    struct value high[PART_COLUMNS] = { value_str("o"), value_i64(INT64_MAX),
                                        value_i64(INT64_MIN) };

    (void)arg;
    thing_values(v, "all", INT64_MIN);
    v[THING_TEXT] = value_str("");
    v[THING_BYTES] = value_bytes(bytes_of(every_byte, sizeof(every_byte)));
    v[THING_JSON] = value_json(bytes_str("{\"a\":[1,\"\\u0000\"]}"));
    v[THING_COUNT] = value_i64(INT64_MAX);
    v[THING_HIGH] = value_i64(INT64_MIN);
    belay_rc rc = txn_insert(t, &row_thing, v);
    memset(v, 0, sizeof(v));
    v[THING_ID] = value_str("none");
    if (!rc)
        rc = txn_insert(t, &row_thing, v);
    if (!rc)
        rc = txn_insert(t, &row_part, low);
    return rc ? rc : txn_insert(t, &row_part, high);
}

static belay_rc see_extremes(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct value low[] = { value_str("o"), value_i64(INT64_MIN) };
    struct value high[] = { value_str("o"), value_i64(INT64_MAX) };
    const struct row *all = NULL, *none = NULL, *lowest = NULL, *highest = NULL;
    belay_rc rc = thing_get(t, "all", &all);

    if (!rc)
        rc = thing_get(t, "none", &none);
    if (!rc)
        rc = txn_get(t, &row_part, low, &lowest);
    if (!rc)
        rc = txn_get(t, &row_part, high, &highest);
    if (rc || !TAP_OK(tap, all && none && lowest && highest))
        return rc;
    TAP_EQ(tap, all->v[THING_N].i, INT64_MIN);
    TAP_EQ(tap, all->v[THING_COUNT].i, INT64_MAX);
    TAP_EQ(tap, all->v[THING_HIGH].i, INT64_MIN);
    TAP_EQ(tap, all->v[THING_TEXT].kind, VALUE_TEXT); /* empty is not NULL */
    TAP_EQ(tap, all->v[THING_TEXT].b.len, 0);
    TAP_OK(tap,
           bytes_eq(all->v[THING_BYTES].b, bytes_of(every_byte, sizeof(every_byte))));
    TAP_EQ(tap, all->v[THING_BYTES].kind, VALUE_BYTES);
    TAP_OK(tap, bytes_eq(all->v[THING_JSON].b, bytes_str("{\"a\":[1,\"\\u0000\"]}")));
    TAP_EQ(tap, all->v[THING_JSON].kind, VALUE_JSON);
    for (unsigned i = THING_N; i < THING_COLUMNS; i++)
        TAP_EQ(tap, none->v[i].kind, VALUE_NULL);
    TAP_EQ(tap, lowest->v[PART_N].i, INT64_MAX);
    TAP_EQ(tap, lowest->v[PART_NO].i, INT64_MIN);
    TAP_EQ(tap, highest->v[PART_N].i, INT64_MIN);
    return rc;
}

static void extreme_values(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    for (unsigned i = 0; i < sizeof(every_byte); i++)
        every_byte[i] = (uint8_t)i;
    CHECK_RC(&h, harness_run(&h, put_extremes, NULL), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, see_extremes, t), BELAY_OK);
}

struct bad_value {
    unsigned column;
    struct value value;
};

static belay_rc insert_bad(struct txn *t, void *arg)
{
    const struct bad_value *c = arg;
    struct value v[THING_COLUMNS];

    thing_values(v, "a", 1);
    v[c->column] = c->value;
    return txn_insert(t, &row_thing, v);
}

static belay_rc put_bad(struct txn *t, void *arg)
{
    const struct bad_value *c = arg;
    struct value key = value_str("there");
    struct change change = { c->column, c->value };
    const struct row *row;
    belay_rc rc = thing_get(t, "there", &row);

    return rc ? rc : txn_put(t, &row_thing, &key, &change, 1);
}

static void bad_values(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct bad_value bad[] = {
        { THING_N, value_str("1") },
        { THING_TEXT, value_i64(1) },
        { THING_TEXT, value_bytes(bytes_str("x")) },
        { THING_BYTES, value_str("x") },
        { THING_JSON, value_str("{}") },
        { THING_TEXT, value_text(bytes_of("a\0b", 3)) },
        { THING_TEXT, value_text(bytes_of("\xff", 1)) },
        { THING_JSON, value_json(bytes_of("\"\xc3\"", 3)) },
    };
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "there", 1);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct bad_value c = bad[i];
        CHECK_RC(&h, harness_run(&h, insert_bad, &c), BELAY_INVALID);
        CHECK_RC(&h, harness_run(&h, put_bad, &c), BELAY_INVALID);
    }
    struct bad_value id = { THING_ID, value_i64(1) };
    CHECK_RC(&h, harness_run(&h, insert_bad, &id), BELAY_INVALID);
    id.value = value_null();
    CHECK_RC(&h, harness_run(&h, insert_bad, &id), BELAY_INVALID);
    TAP_EQ(t, thing_n(&h, "a"), INT64_MIN);
    TAP_EQ(t, thing_n(&h, "there"), 1);
}

/* --- limits of one plan --- */

static belay_rc many_effects(struct txn *t, void *arg)
{
    size_t n = *(size_t *)arg;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < n && !rc; i++)
        rc = txn_chunk_drop(t, bytes_str("u"), (int64_t)i);
    return rc;
}

static void effects_are_bounded(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    size_t n = PLAN_EFFECTS_MAX;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, many_effects, &n), BELAY_OK);
    n++;
    CHECK_RC(&h, harness_run(&h, many_effects, &n), BELAY_INVALID);
    TAP_STR(t, h.err.reason, "too_large");
    thing_set(&h, "next", 1);
}

struct big {
    uint8_t *data;
    size_t n;
};

static belay_rc many_bytes(struct txn *t, void *arg)
{
    const struct big *c = arg;
    struct bytes data = bytes_of(c->data, CHUNK_MAX);
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->n && !rc; i++)
        rc = txn_chunk_put(t, bytes_str("u"), (int64_t)i, data);
    return rc;
}

static void bytes_are_bounded(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct big c = { .n = PLAN_BYTES_MAX / CHUNK_MAX + 1 };
    if (!harness_open(&h, t, 0))
        return;

    c.data = calloc(1, CHUNK_MAX);
    CHECK_RC(&h, harness_run(&h, many_bytes, &c), BELAY_INVALID);
    TAP_STR(t, h.err.reason, "too_large");
    c.n = 2;
    CHECK_RC(&h, harness_run(&h, many_bytes, &c), BELAY_OK);
    free(c.data);
}

static const struct tap_case cases[] = {
    { "values: hostile names are names like any other", hostile_names },
    { "values: names of 1024 bytes are kept", longest_names },
    { "values: empty, over-long and ill-formed names are invalid", bad_names },
    { "values: NULL, empty, every byte and both ends of i64 come back",
      extreme_values },
    { "values: a wrong kind or ill-formed text is invalid", bad_values },
    { "values: a plan has at most PLAN_EFFECTS_MAX effects", effects_are_bounded },
    { "values: a plan has at most PLAN_BYTES_MAX bytes", bytes_are_bounded },
};
const struct topic topic_values = { cases, COUNT_OF(cases) };
