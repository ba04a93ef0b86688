/* Dumps: of a walk made up here, and of a memory store with something of each shape. */
#include "store/dump.h"

#include "base/clock.h"
#include "base/hash.h"
#include "store/drivers/memory.h"
#include "tap.h"

/* --- a driver that can only be walked --- */

struct walker {
    struct driver d;
    const struct item *items;
    size_t n;
    size_t visited;
    belay_rc fails; /* after the last item */
};

static belay_rc walker_walk(struct driver *d, struct bytes ns, item_visit *visit,
                            void *arg, struct belay_error *err)
{
    struct walker *w = (struct walker *)d;

    (void)ns;
    for (size_t i = 0; i < w->n; i++) {
        w->visited++;
        belay_rc rc = visit(arg, &w->items[i], err);
        if (rc)
            return rc;
    }
    return w->fails ? err_set(err, w->fails, "walk: as told") : BELAY_OK;
}

static const struct driver_ops walker_ops = { .name = "walker",
                                              .version = DRIVER_VERSION,
                                              .walk = walker_walk };

static const char *text(struct buf *b)
{
    buf_append_char(b, '\0');
    b->len--;
    return (const char *)b->ptr;
}

static void check_dump(struct tap *t, const struct item *items, size_t n,
                       const char *want)
{
    struct walker w = { .d.ops = &walker_ops, .items = items, .n = n };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct belay_error err;

    TAP_EQ(t, dump_namespace(&w.d, bytes_str("default"), &out, &err), BELAY_OK);
    TAP_EQ(t, w.visited, n);
    TAP_STR(t, text(&out), want);
}

/* A row type with a column of each kind. */
static const struct column thing_columns[] = {
    { "id", VALUE_TEXT, false },   { "n", VALUE_I64, false },
    { "raw", VALUE_BYTES, false }, { "doc", VALUE_JSON, false },
    { "hits", VALUE_I64, true },
};
static const struct row_type row_thing = { "thing", 90, 1, 5, thing_columns, 0 };
static const struct row_type row_hidden = { "hidden",      91,          1, 5,
                                            thing_columns, ROW_INTERNAL };

/* --- cases --- */

static void test_rows(struct tap *t)
{
    struct value v[] = { value_str("a"), value_i64(INT64_MIN),
                         value_bytes(bytes_of("\0\xff", 2)),
                         value_json(bytes_str("{\"k\":[1,\"\\n\"]}")), value_i64(3) };
    struct value nulls[] = { value_str(""), value_null(), value_null(), value_null(),
                             value_null() };
    struct row rows[] = { { &row_thing, 17, v }, { &row_thing, INT64_MAX, nulls } };
    struct item items[] = { { .kind = ITEM_ROW, .row = &rows[0] },
                            { .kind = ITEM_ROW, .row = &rows[1] } };

    check_dump(t, items, COUNT_OF(items),
               "row thing ver=17 id=\"a\" n=-9223372036854775808 raw=\"\\x00\\xff\""
               " doc=\"{\\\"k\\\":[1,\\\"\\\\n\\\"]}\" hits=3\n"
               "row thing ver=9223372036854775807 id=\"\" n=null raw=null doc=null"
               " hits=null\n");
}

static void test_collections(struct tap *t)
{
    struct item items[] = {
        { .kind = ITEM_RANK,
          .name = bytes_str("ready:a"),
          .member = bytes_str("exe_01"),
          .number = 1000 },
        { .kind = ITEM_RANK,
          .name = bytes_str("ready:a"),
          .member = bytes_str("exe_00"),
          .number = -5 },
        { .kind = ITEM_LOG,
          .name = bytes_str("process:p"),
          .data = bytes_str("bytes"),
          .number = 1 },
        { .kind = ITEM_FEED,
          .name = bytes_str("events"),
          .data = bytes_str(""),
          .number = 1 },
        { .kind = ITEM_CHUNK,
          .name = bytes_str("upl_01"),
          .data = bytes_str("abc"),
          .number = 0 },
        { .kind = ITEM_CHUNK, .name = bytes_str("upl_01"), .number = 1 },
    };

    check_dump(
        t, items, COUNT_OF(items),
        "rank \"ready:a\" 1000 \"exe_01\"\n"
        "rank \"ready:a\" -5 \"exe_00\"\n"
        "log \"process:p\" 1 \"bytes\"\n"
        "feed \"events\" 1 \"\"\n"
        "chunk \"upl_01\" 0 sha256="
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad len=3\n"
        "chunk \"upl_01\" 1 sha256="
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 len=0\n");
}

static void test_hostile(struct tap *t)
{
    struct item items[] = {
        { .kind = ITEM_RANK,
          .name = bytes_str("\" 1 \"forged\"\nrank \"x"),
          .member = bytes_str("\\\""),
          .number = 1 },
        { .kind = ITEM_LOG,
          .name = bytes_str("\x1b[2J\t\r"),
          .data = bytes_str("\"\"\"\xe2\x82\"\xe2\x82\xac\""),
          .number = 2 },
        { .kind = ITEM_CHUNK,
          .name = bytes_str("gr\xc3\xbc\xc3\x9f\x7f"),
          .number = INT64_MAX },
    };

    check_dump(
        t, items, COUNT_OF(items),
        "rank \"\\\" 1 \\\"forged\\\"\\nrank \\\"x\" 1 \"\\\\\\\"\"\n"
        "log \"\\x1b[2J\\t\\r\" 2"
        " \"\\\"\\\"\\\"\\xe2\\x82\\\"\xe2\x82\xac\\\"\"\n"
        "chunk \"gr\xc3\xbc\xc3\x9f\\x7f\" 9223372036854775807 sha256="
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 len=0\n");
}

static void test_internal(struct tap *t)
{
    struct value v[] = { value_str("a"), value_null(), value_null(), value_null(),
                         value_null() };
    struct row hidden = { &row_hidden, 1, v }, shown = { &row_thing, 1, v };
    struct item items[] = {
        { .kind = ITEM_ROW, .row = &hidden },
        { .kind = ITEM_ROW, .row = &shown },
        { .kind = ITEM_RANK, .name = bytes_str(SLOT_INDEX), .member = bytes_str("o") },
        { .kind = ITEM_RANK, .name = bytes_str("slots2"), .member = bytes_str("o") },
        { .kind = ITEM_LOG, .name = bytes_str(SLOT_INDEX) },
    };

    check_dump(t, items, COUNT_OF(items),
               "row thing ver=1 id=\"a\" n=null raw=null doc=null hits=null\n"
               "rank \"slots2\" 0 \"o\"\n"
               "log \"slots\" 0 \"\"\n");
    check_dump(t, items, 0, "");
}

static void test_failures(struct tap *t)
{
    struct item items[] = { { .kind = ITEM_LOG, .name = bytes_str("a") },
                            { .kind = ITEM_LOG, .name = bytes_str("b") } };
    struct walker w = {
        .d.ops = &walker_ops, .items = items, .n = 2, .fails = BELAY_UNAVAILABLE
    };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct belay_error err = { 0 };

    buf_append_str(&out, "before\n");
    TAP_EQ(t, dump_namespace(&w.d, bytes_str("default"), &out, &err),
           BELAY_UNAVAILABLE);
    TAP_STR(t, err.message, "walk: as told");
    TAP_STR(t, text(&out), "before\n");

    w.fails = BELAY_OK;
    TAP_EQ(t, dump_namespace(&w.d, bytes_str("default"), &out, &err), BELAY_OK);
    TAP_STR(t, text(&out), "before\nlog \"a\" 0 \"\"\nlog \"b\" 0 \"\"\n");

    /* A buffer that has failed before stays failed, and is not walked for. */
    w.visited = 0;
    out.failed = true;
    TAP_EQ(t, dump_namespace(&w.d, bytes_str("default"), &out, &err), BELAY_NO_MEMORY);
    TAP_EQ(t, err.code, BELAY_NO_MEMORY);
    TAP_EQ(t, w.visited, 0);
}

/* --- the memory driver --- */

static void apply(struct tap *t, struct driver *d, struct bytes ns,
                  struct effect *effects, size_t n)
{
    _Alignas(16) unsigned char attempt[512] = { 0 };
    struct guard guards[8];
    struct effect_result results[16];
    struct plan_result result = { .effects = results };
    struct plan plan = {
        .id = 1, .ns = ns, .guards = guards, .effects = effects, .n_effects = n
    };
    struct belay_error err = { 0 };

    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == EFFECT_INSERT)
            guards[plan.n_guards++] = (struct guard){ .ref = effects[i].row.ref };
    }
    TAP_OK(t, d->attempt_size <= sizeof(attempt));
    TAP_EQ(t, driver_begin(d, attempt, ns, &err), BELAY_OK);
    TAP_EQ(t, driver_commit(d, attempt, &plan, &result, &err), BELAY_OK);
    TAP_OK(t, !result.conflict);
    driver_end(d, attempt);
}

static struct effect insert(struct tap *t, struct belay_arena *a,
                            const struct row_type *type, const struct value *v)
{
    struct effect e = { .kind = EFFECT_INSERT };

    TAP_EQ(t, row_ref_make(&e.row.ref, type, v, a, NULL), BELAY_OK);
    e.row.ver = 9;
    e.row.v = v;
    return e;
}

static struct effect rank(const char *index, int64_t at, const char *member)
{
    struct effect e = { .kind = EFFECT_RANK_ADD };

    e.rank.index = bytes_str(index);
    e.rank.member = bytes_str(member);
    e.rank.rank = at;
    return e;
}

static struct effect feed(const char *data)
{
    struct effect e = { .kind = EFFECT_FEED_APPEND };

    e.feed.feed = bytes_str("events");
    e.feed.data = bytes_str(data);
    return e;
}

static void test_memory(struct tap *t)
{
    struct driver_config config = { .schema = &schema_belay,
                                    .clock = clock_system(),
                                    .random = random_system() };
    struct value upload[] = { value_str("u\"1"), value_i64(1), value_i64(5) };
    struct value slot[] = { value_str("o"), value_i64(1), value_i64(0), value_i64(5) };
    struct value mark[] = { value_i64(1234) };
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct belay_error err = { 0 };
    struct driver *d = NULL;

    TAP_EQ(t, memory_open(&d, &config, &err), BELAY_OK);
    struct effect log = { .kind = EFFECT_LOG_APPEND };
    log.log.stream = bytes_str("process:p");
    log.log.seq = 1;
    log.log.data = bytes_str("one\n");
    struct effect chunk = { .kind = EFFECT_CHUNK_PUT };
    chunk.chunk.upload = bytes_str("u\"1");
    chunk.chunk.data = bytes_str("abc");
    struct effect effects[] = {
        chunk,
        feed("first"),
        log,
        rank("ready", 7, "b"),
        rank("ready", 7, "a"),
        rank("ready", -1, "c"),
        rank(SLOT_INDEX, 5, "o"),
        insert(t, &a, &row_upload, upload),
        insert(t, &a, &row_slot, slot),
        insert(t, &a, &row_clock, mark),
    };
    apply(t, d, bytes_str("default"), effects, COUNT_OF(effects));
    struct effect again = feed("second");
    apply(t, d, bytes_str("default"), &again, 1);
    struct effect other = rank("elsewhere", 1, "x");
    apply(t, d, bytes_str("other"), &other, 1);

    TAP_EQ(t, dump_namespace(d, bytes_str("default"), &out, &err), BELAY_OK);
    TAP_STR(t, text(&out),
            "row upload ver=9 id=\"u\\\"1\" chunks=1 started_at_ms=5\n"
            "rank \"ready\" -1 \"c\"\n"
            "rank \"ready\" 7 \"a\"\n"
            "rank \"ready\" 7 \"b\"\n"
            "log \"process:p\" 1 \"one\\n\"\n"
            "feed \"events\" 1 \"first\"\n"
            "feed \"events\" 2 \"second\"\n"
            "chunk \"u\\\"1\" 0 sha256="
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad len=3\n");
    buf_reset(&out);
    TAP_EQ(t, dump_namespace(d, bytes_str("nowhere"), &out, &err), BELAY_OK);
    TAP_EQ(t, out.len, 0);
    driver_close(d);
}

static const struct tap_case cases[] = {
    { "a row shows its type, version and every column", test_rows },
    { "ranks, logs, feeds and chunks are a line each", test_collections },
    { "no name and no value can forge a line or end its quotes", test_hostile },
    { "the store's own rows and their ranks are left out", test_internal },
    { "a walk that fails leaves the buffer as it was", test_failures },
    { "a memory store is dumped in the order of the walk", test_memory },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
