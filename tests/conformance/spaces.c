/* Namespaces: apart from each other, registered, and marked with a format. */
#include "conformance.h"
#include "store/dump.h"
#include "store/fault.h"

static belay_rc set_body(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    if (rc)
        return rc;
    rc = row ? thing_put(t, "a", *(int64_t *)arg)
             : thing_insert(t, "a", *(int64_t *)arg);
    if (!rc && !row)
        rc = txn_rank_add(t, bytes_str("i"), *(int64_t *)arg, bytes_str("m"));
    if (!rc && !row)
        rc = txn_log_append(t, bytes_str("s"), 1, bytes_str("e"));
    return rc ? rc : txn_feed_append(t, bytes_str("f"), bytes_str("e"), NULL);
}

static belay_rc get_body(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    *(int64_t *)arg = !rc && row ? row_i64(row, THING_N, 0) : INT64_MIN;
    return rc;
}

static int64_t n_in(struct harness *h, struct space *sp)
{
    int64_t n = 0;

    arena_reset(&h->arena);
    CHECK_RC(h, txn_run(sp, get_body, &n, NULL, &h->arena, NULL), BELAY_OK);
    return n;
}

static void set_in(struct harness *h, struct space *sp, int64_t n)
{
    arena_reset(&h->arena);
    CHECK_RC(h, txn_run(sp, set_body, &n, NULL, &h->arena, NULL), BELAY_OK);
}

static struct space *space_in(struct harness *h, struct store *s, const char *name)
{
    struct space *sp = NULL;

    CHECK_RC(h, store_space(s, bytes_str(name), &sp, &h->err), BELAY_OK);
    return sp;
}

static void spaces_are_apart(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    /* One name is the beginning of the next. */
    struct space *one = space_in(&h, h.store, "a"), *two = space_in(&h, h.store, "aa");
    struct space *three = space_in(&h, h.store, "a-_0");
    set_in(&h, one, 1);
    TAP_EQ(t, n_in(&h, two), INT64_MIN);
    set_in(&h, two, 2);
    set_in(&h, three, 3);
    set_in(&h, three, 4);
    TAP_EQ(t, n_in(&h, one), 1);
    TAP_EQ(t, n_in(&h, two), 2);
    TAP_EQ(t, n_in(&h, three), 4);
    TAP_EQ(t, n_in(&h, h.space), INT64_MIN);
    TAP_OK(t, space_in(&h, h.store, "aa") == two); /* one space a name */
    TAP_OK(t, bytes_eq(space_name(two), bytes_str("aa")));
    TAP_OK(t, space_store(two) == h.store);
    CLEANUP(buf_release) struct buf dump = harness_dump(&h);
    TAP_OK(t, !dump.ptr || !memmem(dump.ptr, dump.len, "thing", 5));
}

#define TEN "0123456789"
#define LONGEST TEN TEN TEN TEN TEN TEN "012"

static void names(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const char *const good[] = { "a", "0", "a-b_c", "z--", LONGEST };
    const char *const bad[] = { "",  "_a",  "-a",     "A",    "a.b", "a/b",      "a b",
                                "ä", "{a}", "_belay", "a\nb", "a:b", "a" LONGEST };
    if (!harness_open(&h, t, 0))
        return;

    for (size_t i = 0; i < COUNT_OF(good); i++)
        TAP_OK(t, space_in(&h, h.store, good[i]) != NULL);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct space *sp = NULL;
        CHECK_RC(&h, store_space(h.store, bytes_str(bad[i]), &sp, &h.err),
                 BELAY_INVALID);
        TAP_STR(t, h.err.reason, "namespace");
        TAP_OK(t, sp == NULL);
    }
    struct space *sp = NULL;
    CHECK_RC(&h, store_space(h.store, bytes_of("a\0b", 3), &sp, NULL), BELAY_INVALID);
}

/* --- founding --- */

struct registered {
    struct bytes name;
    bool row, rank;
};

static belay_rc registry_body(struct txn *t, void *arg)
{
    struct registered *c = arg;
    struct value key = value_text(c->name);
    struct bytes index = bytes_str(NAMESPACE_INDEX);
    struct scan scan = { .indexes = &index, .n_indexes = 1, .limit = 100 };
    const struct row *row = NULL;
    struct hits hits = { .n = 0 };
    belay_rc rc = txn_get(t, &row_namespace, &key, &row);

    rc = rc ? rc : txn_scan(t, &scan, &hits);
    c->row = row != NULL;
    c->rank = false;
    for (size_t i = 0; i < hits.n; i++)
        c->rank |= bytes_eq(hits.hit[i].member, c->name);
    return rc;
}

static bool is_registered(struct harness *h, const char *name)
{
    struct registered c = { .name = bytes_str(name) };
    struct space *system = NULL;

    CHECK_RC(h, store_system_space(h->store, &system, NULL), BELAY_OK);
    arena_reset(&h->arena);
    CHECK_RC(h, txn_run(system, registry_body, &c, NULL, &h->arena, NULL), BELAY_OK);
    TAP_EQ(h->t, c.row, c.rank);
    return c.row;
}

static belay_rc space_rows_body(struct txn *t, void *arg)
{
    struct row_want wants[] = { { &row_format, NULL },
                                { &row_epoch, NULL },
                                { &row_fence_floor, NULL },
                                { &row_clock, NULL } };

    return txn_get_many(t, wants, COUNT_OF(wants), arg);
}

static void founded_by_the_first_commit(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct row *rows[4] = { NULL };
    if (!harness_open(&h, t, HARNESS_UNFOUNDED))
        return;

    TAP_EQ(t, n_in(&h, h.space), INT64_MIN); /* reading founds nothing */
    TAP_OK(t, !is_registered(&h, "default"));
    CHECK_RC(&h, harness_run(&h, space_rows_body, rows), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        TAP_OK(t, rows[i] == NULL);

    set_in(&h, h.space, 1);
    TAP_OK(t, is_registered(&h, "default"));
    CHECK_RC(&h, harness_run(&h, space_rows_body, rows), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!TAP_OK(t, rows[i] != NULL))
            return;
    }
    TAP_EQ(t, rows[0]->v[FORMAT_FORMAT].i, SCHEMA_FORMAT);
    TAP_EQ(t, rows[0]->v[FORMAT_MIN_READER].i, SCHEMA_MIN_READER);
    TAP_EQ(t, rows[0]->v[FORMAT_MIN_WRITER].i, SCHEMA_MIN_WRITER);
    TAP_EQ(t, rows[1]->v[EPOCH_EPOCH].i, 0);
    TAP_EQ(t, rows[2]->v[FENCE_FLOOR_FLOOR].i, 0);
    TAP_OK(t, rows[3]->v[CLOCK_MARK_MS].i > 0);
    TAP_EQ(t, n_in(&h, h.space), 1);
}

static bool holds_anything(struct harness *h)
{
    CLEANUP(buf_release) struct buf dump = harness_dump(h);

    return dump.len > 0;
}

/* The store fails from its n-th commit on: whatever n, a namespace that holds anything
 * is in the registry, and the next try finishes what was begun. */
static void registered_before_it_holds_anything(struct tap *t)
{
    int64_t one = 1;
    bool done = false;

    for (unsigned n = 1; n < 20 && !done; n++) {
        CLEANUP(harness_close) struct harness h;
        struct fault f = {
            .op = FAULT_ON_COMMIT, .kind = FAULT_BEFORE, .nth = n, .sticky = true
        };
        if (!harness_open(&h, t, HARNESS_UNFOUNDED | HARNESS_FAULTS))
            return;
        CHECK_RC(&h, fault_arm(h.faulty, &f, NULL), BELAY_OK);
        belay_rc rc = harness_run(&h, set_body, &one);
        done = rc == BELAY_OK;
        if (!done)
            CHECK_RC(&h, rc, BELAY_UNAVAILABLE);
        fault_clear(h.faulty);
        TAP_OK(t, !holds_anything(&h) || is_registered(&h, "default"));
        set_in(&h, h.space, 2);
        TAP_OK(t, is_registered(&h, "default"));
        TAP_EQ(t, n_in(&h, h.space), 2);
    }
    TAP_OK(t, done);
}

/* --- formats --- */

struct format {
    int64_t format, min_reader, min_writer;
};

static belay_rc format_body(struct txn *t, void *arg)
{
    const struct format *f = arg;
    const struct row *row;
    struct change changes[] = { { FORMAT_FORMAT, value_i64(f->format) },
                                { FORMAT_MIN_READER, value_i64(f->min_reader) },
                                { FORMAT_MIN_WRITER, value_i64(f->min_writer) } };
    belay_rc rc = txn_get(t, &row_format, NULL, &row);

    return rc ? rc : txn_put(t, &row_format, NULL, changes, 3);
}

static void formats_of_the_future(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const int64_t now = SCHEMA_FORMAT, next = now + 1;
    struct format f = { next, next, next };
    struct store *old = NULL;
    struct space *sp = NULL;
    int64_t n = 7;
    if (!harness_open(&h, t, 0))
        return;

    set_in(&h, h.space, 1);
    CHECK_RC(&h, harness_run(&h, format_body, &f), BELAY_OK);
    CHECK_RC(&h, store_open(&old, h.driver, &h.options, NULL), BELAY_OK);
    CHECK_RC(&h, store_space(old, bytes_str("default"), &sp, &h.err),
             BELAY_UNSUPPORTED_FORMAT);
    TAP_EQ(t, h.err.expected, SCHEMA_FORMAT);
    TAP_EQ(t, h.err.actual, next);
    TAP_OK(t, sp == NULL);

    f = (struct format){ next + 1, now, next }; /* may be read, not written */
    CHECK_RC(&h, harness_run(&h, format_body, &f), BELAY_OK);
    CHECK_RC(&h, store_space(old, bytes_str("default"), &sp, &h.err), BELAY_OK);
    TAP_EQ(t, n_in(&h, sp), 1);
    arena_reset(&h.arena);
    CHECK_RC(&h, txn_run(sp, set_body, &n, NULL, &h.arena, &h.err),
             BELAY_UNSUPPORTED_FORMAT);
    TAP_EQ(t, h.err.expected, SCHEMA_FORMAT);
    TAP_EQ(t, h.err.actual, next + 1);
    TAP_EQ(t, n_in(&h, sp), 1);

    f = (struct format){ next + 1, now, now }; /* both */
    CHECK_RC(&h, harness_run(&h, format_body, &f), BELAY_OK);
    set_in(&h, sp, 8);
    TAP_EQ(t, n_in(&h, h.space), 8);
    store_close(old);
}

static void formats_of_the_past(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct format f = { SCHEMA_OLDEST - 1, 1, 1 };
    struct store *new = NULL;
    struct space *sp = NULL;
    if (!harness_open(&h, t, 0))
        return;

    set_in(&h, h.space, 1);
    CHECK_RC(&h, harness_run(&h, format_body, &f), BELAY_OK);
    CHECK_RC(&h, store_open(&new, h.driver, &h.options, NULL), BELAY_OK);
    CHECK_RC(&h, store_space(new, bytes_str("default"), &sp, &h.err),
             BELAY_UNSUPPORTED_FORMAT);
    TAP_EQ(t, h.err.expected, SCHEMA_FORMAT);
    TAP_EQ(t, h.err.actual, SCHEMA_OLDEST - 1);
    TAP_OK(t, sp == NULL);
    store_close(new);
}

static void two_stores_on_one_driver(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct store *other = NULL;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, store_open(&other, h.driver, &h.options, NULL), BELAY_OK);
    struct space *sp = space_in(&h, other, "default");
    set_in(&h, h.space, 1);
    TAP_EQ(t, n_in(&h, sp), 1);
    set_in(&h, sp, 2);
    TAP_EQ(t, n_in(&h, h.space), 2);
    store_close(other);
    TAP_EQ(t, n_in(&h, h.space), 2);
}

static void minted_ids_differ(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    char last[ID_MAX] = "", id[ID_MAX] = "";
    if (!harness_open(&h, t, 0))
        return;

    for (int i = 0; i < 100; i++) {
        CHECK_RC(&h, space_mint(h.space, "job_", id, &h.err), BELAY_OK);
        TAP_EQ(t, strncmp(id, "job_", 4), 0);
        TAP_OK(t, strcmp(id, last) > 0);
        memcpy(last, id, sizeof(last));
    }
}

static const struct tap_case cases[] = {
    { "spaces: equal keys in two namespaces are two things", spaces_are_apart },
    { "spaces: names outside [a-z0-9][a-z0-9_-]{0,62} are invalid", names },
    { "spaces: the first commit founds the namespace, no read does",
      founded_by_the_first_commit },
    { "spaces: registered before it holds anything",
      registered_before_it_holds_anything },
    { "spaces: a format of the future is refused with both numbers",
      formats_of_the_future },
    { "spaces: a format that is too old is refused with both numbers",
      formats_of_the_past },
    { "spaces: two stores on one driver see each other's commits",
      two_stores_on_one_driver },
    { "spaces: minted ids go up", minted_ids_differ },
};
const struct topic topic_spaces = { cases, COUNT_OF(cases) };
