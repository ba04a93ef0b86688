/* Rows: guards, versions, read-your-writes. */
#include "conformance.h"

static void reads_what_was_written(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    TAP_EQ(t, thing_n(&h, "a"), INT64_MIN);
    thing_set(&h, "a", 1);
    TAP_EQ(t, thing_n(&h, "a"), 1);
    thing_set(&h, "a", 2);
    TAP_EQ(t, thing_n(&h, "a"), 2);
    TAP_EQ(t, thing_n(&h, "b"), INT64_MIN);
    thing_drop(&h, "a");
    TAP_EQ(t, thing_n(&h, "a"), INT64_MIN);
    thing_set(&h, "a", 3);
    TAP_EQ(t, thing_n(&h, "a"), 3);
}

static void versions_count_up(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    raw_begin(&r, &h);
    int64_t first = raw_ver(&r, "a");
    TAP_OK(t, first > 0);
    thing_set(&h, "a", 2);
    raw_end(&r);
    raw_begin(&r, &h);
    TAP_EQ(t, raw_ver(&r, "a"), first + 1);
    raw_end(&r);
}

static void versions_never_repeat(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw old, now;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    raw_begin(&old, &h);
    int64_t ver = raw_ver(&old, "a");
    thing_drop(&h, "a");
    thing_set(&h, "a", 1); /* the same content as before */
    raw_begin(&now, &h);
    TAP_OK(t, raw_ver(&now, "a") != ver);
    raw_end(&now);

    raw_guard(&old, "a", ver);
    raw_put(&old, "a", ver + 1, 99);
    CHECK_RC(&h, raw_commit(&old), BELAY_OK);
    TAP_OK(t, old.result.conflict);
    TAP_EQ(t, old.result.failed_guard, 0);
    raw_end(&old);
    TAP_EQ(t, thing_n(&h, "a"), 1);
}

/* --- write skew: two plans that each guard what the other writes --- */

/* Reads both things in two attempts, then commits one write in each: exactly one may
 * pass.  Presence is given by who calls. */
static void skew(struct harness *h, bool present)
{
    struct raw a, b;

    if (present) {
        thing_set(h, "x", 1);
        thing_set(h, "y", 1);
    }
    raw_begin(&a, h);
    int64_t ax = raw_ver(&a, "x"), ay = raw_ver(&a, "y");
    raw_begin(&b, h);
    int64_t bx = raw_ver(&b, "x"), by = raw_ver(&b, "y");

    raw_guard(&a, "x", ax);
    raw_guard(&a, "y", ay);
    raw_guard(&b, "x", bx);
    raw_guard(&b, "y", by);
    if (present) {
        raw_put(&a, "x", ax + 1, 0);
        raw_put(&b, "y", by + 1, 0);
    } else {
        raw_insert(&a, "x", 11, 0);
        raw_insert(&b, "y", 12, 0);
    }
    CHECK_RC(h, raw_commit(&a), BELAY_OK);
    CHECK_RC(h, raw_commit(&b), BELAY_OK);
    TAP_OK(h->t, !a.result.conflict);
    TAP_OK(h->t, b.result.conflict);
    TAP_EQ(h->t, b.result.failed_guard, 0); /* x, which a wrote */
    raw_end(&a);
    raw_end(&b);
    TAP_EQ(h->t, thing_n(h, "x"), 0);
    TAP_EQ(h->t, thing_n(h, "y"), present ? 1 : INT64_MIN);
}

static void no_skew_on_present_rows(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (harness_open(&h, t, 0))
        skew(&h, true);
}

static void no_skew_on_absent_rows(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (harness_open(&h, t, 0))
        skew(&h, false);
}

/* --- absence --- */

struct late_arrival {
    struct harness *h;
    unsigned runs;
    bool found;
};

static belay_rc decide_from_absence(struct txn *t, void *arg)
{
    struct late_arrival *c = arg;
    const struct row *row;
    belay_rc rc = thing_get(t, "guest", &row);

    c->found = row != NULL;
    if (!rc && c->runs++ == 0)
        thing_set(c->h, "guest", 5);
    return rc ? rc : thing_insert(t, "note", c->found);
}

static void absence_is_guarded(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct late_arrival c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    CHECK_RC(&h, harness_run(&h, decide_from_absence, &c), BELAY_OK);
    TAP_EQ(t, c.runs, 2);
    TAP_OK(t, c.found);
    TAP_EQ(t, thing_n(&h, "note"), 1);
}

static belay_rc decide_from_a_peek(struct txn *t, void *arg)
{
    struct late_arrival *c = arg;
    struct value key = value_str("guest");
    const struct row *row;
    belay_rc rc = txn_peek(t, &row_thing, &key, &row);

    c->found = row != NULL;
    if (!rc && c->runs++ == 0)
        thing_set(c->h, "guest", 5);
    return rc ? rc : thing_insert(t, "note", c->found);
}

static void a_peek_is_a_hint(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct late_arrival c = { .h = &h };
    if (!harness_open(&h, t, HARNESS_INTERLEAVED))
        return;

    CHECK_RC(&h, harness_run(&h, decide_from_a_peek, &c), BELAY_OK);
    TAP_EQ(t, c.runs, 1);
    TAP_OK(t, !c.found);
}

/* --- inserting --- */

static belay_rc insert_blindly(struct txn *t, void *arg)
{
    ++*(unsigned *)arg;
    return thing_insert(t, "a", 7);
}

static void insert_of_what_exists(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned runs = 0;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, insert_blindly, &runs), BELAY_OK);
    TAP_EQ(t, runs, 1);
    CHECK_RC(&h, harness_run(&h, insert_blindly, &runs), BELAY_WRONG_STATE);
    TAP_STR(t, h.err.reason, "exists");
    TAP_EQ(t, runs, 3);
    TAP_EQ(t, thing_n(&h, "a"), 7);
}

static belay_rc insert_after_get(struct txn *t, void *arg)
{
    const struct row *row;
    belay_rc rc = thing_get(t, "a", &row);

    ++*(unsigned *)arg;
    return rc ? rc : thing_insert(t, "a", 8);
}

static void insert_of_what_was_read(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned runs = 0;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, insert_after_get, &runs), BELAY_WRONG_STATE);
    TAP_STR(t, h.err.reason, "exists");
    TAP_EQ(t, runs, 1);
}

/* --- read-your-writes (T3) --- */

static belay_rc own_rows(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct value a = value_str("a"), b = value_str("b");
    struct row_want wants[] = { { &row_thing, &a }, { &row_thing, &b } };
    const struct row *row = NULL, *both[2] = { NULL };
    belay_rc rc = thing_insert(t, "a", 1);

    if (!rc)
        rc = thing_get(t, "a", &row);
    if (rc || !TAP_OK(tap, row != NULL))
        return rc;
    TAP_EQ(tap, row->v[THING_N].i, 1);
    rc = thing_put(t, "a", 2);
    if (!rc)
        rc = txn_peek(t, &row_thing, &a, &row);
    if (rc || !TAP_OK(tap, row != NULL))
        return rc;
    TAP_EQ(tap, row->v[THING_N].i, 2);
    rc = thing_put(t, "b", 20);
    if (!rc)
        rc = txn_get_many(t, wants, 2, both);
    if (rc || !TAP_OK(tap, both[0] && both[1]))
        return rc;
    TAP_EQ(tap, both[0]->v[THING_N].i, 2);
    TAP_EQ(tap, both[1]->v[THING_N].i, 20);
    TAP_OK(tap, bytes_eq(both[1]->v[THING_ID].b, bytes_str("b")));
    rc = txn_delete(t, &row_thing, &b);
    if (!rc)
        rc = thing_get(t, "b", &row);
    TAP_OK(tap, row == NULL);
    if (!rc)
        rc = txn_delete(t, &row_thing, &a); /* inserted above: nothing is left of it */
    if (!rc)
        rc = thing_get(t, "a", &row);
    TAP_OK(tap, row == NULL);
    return rc;
}

static void bodies_read_their_own_rows(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "b", 10);
    CHECK_RC(&h, harness_run(&h, own_rows, t), BELAY_OK);
    TAP_EQ(t, thing_n(&h, "a"), INT64_MIN);
    TAP_EQ(t, thing_n(&h, "b"), INT64_MIN);
}

/* A put that names an unchanged value is a write like any other. */
static void an_unchanged_put_is_a_write(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct raw r;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    raw_begin(&r, &h);
    int64_t ver = raw_ver(&r, "a");
    raw_end(&r);
    thing_set(&h, "a", 1);
    raw_begin(&r, &h);
    TAP_EQ(t, raw_ver(&r, "a"), ver + 1);
    raw_end(&r);
}

/* --- one row per namespace, keys of several parts --- */

static belay_rc odd_keys(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct value head[HEAD_COLUMNS] = { value_i64(1), value_i64(0) };
    struct value part[PART_COLUMNS] = { value_str("o"), value_i64(-1), value_i64(5) };
    struct value other[] = { value_str("o"), value_i64(1) };
    const struct row *row = NULL;
    belay_rc rc = txn_insert(t, &row_head, head);

    if (!rc)
        rc = txn_insert(t, &row_part, part);
    if (!rc)
        rc = txn_get(t, &row_part, other, &row);
    TAP_OK(tap, !rc && row == NULL);
    return rc;
}

static belay_rc see_odd_keys(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct value key[] = { value_str("o"), value_i64(-1) };
    const struct row *head = NULL, *part = NULL;
    belay_rc rc = txn_get(t, &row_head, NULL, &head);

    if (!rc)
        rc = txn_get(t, &row_part, key, &part);
    if (!rc && TAP_OK(tap, head && part)) {
        TAP_EQ(tap, head->v[HEAD_N].i, 1);
        TAP_EQ(tap, part->v[PART_NO].i, -1);
        TAP_EQ(tap, part->v[PART_N].i, 5);
    }
    return rc;
}

static void keys_of_no_part_and_of_two(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, odd_keys, t), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, see_odd_keys, t), BELAY_OK);
}

/* Results live in the caller's arena until it is reset. */
static belay_rc keep_row(struct txn *t, void *arg)
{
    return thing_get(t, "a", arg);
}

static void rows_outlive_the_transaction(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct row *row = NULL;
    if (!harness_open(&h, t, 0))
        return;

    thing_set(&h, "a", 1);
    CHECK_RC(&h, harness_run(&h, keep_row, &row), BELAY_OK);
    thing_set(&h, "a", 2);
    thing_drop(&h, "a");
    if (TAP_OK(t, row != NULL)) {
        TAP_EQ(t, row->v[THING_N].i, 1);
        TAP_OK(t, bytes_eq(row->v[THING_ID].b, bytes_str("a")));
    }
}

/* --- many rows that are written alike, in part --- */

#define ALIKE 48
#define KINDS 4 /* one after the other, ALIKE / KINDS rows each */

static struct bytes alike_name(int i, char out[16])
{
    (void)snprintf(out, 16, "alike%02d", i);
    return bytes_str(out);
}

/* What row i has after turn 0 (inserted) or 1 (put): some values are common to all rows of a
 * kind, some are their own, some go away. */
static void alike_values(int turn, int i, struct value v[THING_COLUMNS], char own[16])
{
    int kind = i * KINDS / ALIKE;

    for (unsigned c = 0; c < THING_COLUMNS; c++)
        v[c] = value_null();
    (void)snprintf(own, 16, "own%d-%02d", turn, i);
    v[THING_N] = value_i64(kind == 1 ? turn : turn * 1000 + i);
    v[THING_TEXT] = kind == 2 ? value_str(own) : value_str(turn ? "then" : "first");
    v[THING_BYTES] = value_bytes(kind == 3 ? bytes_str(own) : bytes_str("all"));
    if (turn == 1 && kind == 0)
        v[THING_TEXT] = value_null();
    v[THING_COUNT] = v[THING_HIGH] = value_i64(0);
}

static belay_rc alike_body(struct txn *t, void *arg)
{
    int turn = *(int *)arg;
    belay_rc rc = BELAY_OK;
    char name[16], own[16];

    for (int i = 0; i < ALIKE && rc == BELAY_OK; i++) {
        struct value v[THING_COLUMNS];
        const struct row *row;
        alike_values(turn, i, v, own);
        v[THING_ID] = value_text(alike_name(i, name));
        if (turn == 0) {
            rc = txn_insert(t, &row_thing, v);
            continue;
        }
        const struct change changes[] = { { THING_N, v[THING_N] },
                                          { THING_TEXT, v[THING_TEXT] },
                                          { THING_BYTES, v[THING_BYTES] } };
        rc = txn_get(t, &row_thing, v, &row);
        if (rc == BELAY_OK)
            rc = txn_put(t, &row_thing, v, changes, COUNT_OF(changes));
    }
    return rc;
}

static belay_rc alike_look(struct txn *t, void *arg)
{
    struct value key[ALIKE];
    struct row_want wants[ALIKE];
    static char names[ALIKE][16];

    for (int i = 0; i < ALIKE; i++) {
        key[i] = value_text(alike_name(i, names[i]));
        wants[i] = (struct row_want){ &row_thing, &key[i] };
    }
    return txn_get_many(t, wants, ALIKE, arg);
}

static void rows_that_are_alike(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct row *rows[ALIKE] = { NULL };
    if (!harness_open(&h, t, 0))
        return;

    for (int turn = 0; turn < 2; turn++) {
        CHECK_RC(&h, harness_run(&h, alike_body, &turn), BELAY_OK);
        CHECK_RC(&h, harness_run(&h, alike_look, rows), BELAY_OK);
        for (int i = 0; i < ALIKE; i++) {
            struct value want[THING_COLUMNS];
            char own[16];
            alike_values(turn, i, want, own);
            if (!TAP_OK(t, rows[i] != NULL))
                return;
            for (unsigned c = THING_N; c < THING_COLUMNS; c++)
                TAP_OK(t, value_eq(&rows[i]->v[c], &want[c]));
        }
    }
}

static const struct tap_case cases[] = {
    { "rows: what was written is read", reads_what_was_written },
    { "rows: a put counts the version up by one", versions_count_up },
    { "rows: deleted and made again, a row satisfies no old guard",
      versions_never_repeat },
    { "rows: of two plans that guard what the other writes one commits",
      no_skew_on_present_rows },
    { "rows: of two plans that guard what the other inserts one commits",
      no_skew_on_absent_rows },
    { "rows: absence is guarded like presence", absence_is_guarded },
    { "rows: a peek is not guarded", a_peek_is_a_hint },
    { "rows: a blind insert of what exists runs again and is wrong_state",
      insert_of_what_exists },
    { "rows: an insert of what was read is wrong_state at once",
      insert_of_what_was_read },
    { "rows: a body reads its own rows", bodies_read_their_own_rows },
    { "rows: a put of the same value is a write", an_unchanged_put_is_a_write },
    { "rows: keys may have no part or two, one of them negative",
      keys_of_no_part_and_of_two },
    { "rows: many that are written alike have their own values", rows_that_are_alike },
    { "rows: what was read lives until the arena is reset",
      rows_outlive_the_transaction },
};
const struct topic topic_rows = { cases, COUNT_OF(cases) };
