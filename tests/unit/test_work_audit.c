/* Audit chains, epochs and clocks. */
#include "base/json.h"
#include "policy/fence.h"
#include "test_work.h"
#include "work/audit.h"
#include "work/epoch.h"
#include "work/store_time.h"

/* --- epochs --- */

static void epoch_rises(struct work *w)
{
    struct epoch_info info = { 0 };

    WORK_RC(w, epoch_show(w->space, &w->arena, &info, &w->err), BELAY_OK);
    TAP_EQ(w->t, info.epoch, 0);
    TAP_EQ(w->t, info.raised_at_ms, -1);
    WORK_RC(w,
            epoch_raise(w->space, bytes_str("restored"), "cli:ada", &w->arena, &info,
                        &w->err),
            BELAY_OK);
    TAP_EQ(w->t, info.epoch, 1);
    TAP_EQ(w->t, info.raised_at_ms, START_MS);
    WORK_RC(
        w,
        epoch_raise(w->space, bytes_of(NULL, 0), "cli:ada", &w->arena, &info, &w->err),
        BELAY_OK);
    work_reopen(w);
    WORK_RC(w, epoch_show(w->space, &w->arena, &info, &w->err), BELAY_OK);
    TAP_EQ(w->t, info.epoch, 2);
    TAP_EQ(w->t, info.reason.len, 0);
    TAP_EQ(w->t, info.fence_floor, 0);

    /* Another namespace has an epoch of its own. */
    struct space *other = work_space(w, w->store, "other");
    WORK_RC(w, epoch_show(other, &w->arena, &info, &w->err), BELAY_OK);
    TAP_EQ(w->t, info.epoch, 0);
}

static void test_epoch(struct tap *t)
{
    work_everywhere(t, epoch_rises);
}

static belay_rc last_epoch_body(struct txn *t, void *arg)
{
    struct change change = { EPOCH_EPOCH, value_i64(FENCE_EPOCH_MAX) };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_epoch, NULL, &row);

    (void)arg;
    return rc ? rc : txn_put(t, &row_epoch, NULL, &change, 1);
}

static void epoch_ends(struct work *w)
{
    struct epoch_info info = { .epoch = 77 };
    struct store_time time = { .now_ms = 77 };
    int64_t epoch = 77;
    struct audit_walk chain;

    work_fill(w, w->space, 1);
    WORK_RC(w, work_run(w, w->space, last_epoch_body, NULL), BELAY_OK);
    WORK_RC(w,
            epoch_raise(w->space, bytes_of(NULL, 0), "me", &w->arena, &info, &w->err),
            BELAY_OUT_OF_RANGE);
    TAP_EQ(w->t, w->err.expected, FENCE_EPOCH_MAX);
    TAP_EQ(w->t, info.epoch, 77);
    WORK_RC(w, store_time_reset(w->space, "me", &time, &epoch, &w->err),
            BELAY_OUT_OF_RANGE);
    TAP_EQ(w->t, time.now_ms, 77);
    TAP_EQ(w->t, epoch, 77);
    /* What was refused left no trace. */
    WORK_RC(w, audit_verify(w->space, &chain, &w->err), BELAY_OK);
    TAP_EQ(w->t, chain.seq, 0);
}

static void test_epoch_ends(struct tap *t)
{
    work_everywhere(t, epoch_ends);
}

/* --- chains --- */

#define RAISED 300

static void raise_often(struct work *w, int n)
{
    struct epoch_info info;

    for (int i = 0; i < n; i++) {
        arena_reset(&w->arena);
        WORK_RC(w,
                epoch_raise(w->space, bytes_str("again"), "cli:ada", &w->arena, &info,
                            &w->err),
                BELAY_OK);
    }
}

static void chain_holds(struct work *w)
{
    struct audit_walk chain;
    struct log_entries entries;
    json_t *entry = NULL;

    WORK_RC(w, audit_verify(w->space, &chain, &w->err), BELAY_OK);
    TAP_OK(w->t, !chain.reason);
    TAP_EQ(w->t, chain.seq, 0);
    raise_often(w, RAISED); /* more than a page */
    WORK_RC(w, audit_verify(w->space, &chain, &w->err), BELAY_OK);
    TAP_STR(w->t, chain.reason, NULL);
    TAP_EQ(w->t, chain.seq, RAISED);

    arena_reset(&w->arena);
    WORK_RC(w, audit_page(w->space, 1, 2, &w->arena, &entries, &w->err), BELAY_OK);
    if (!TAP_EQ(w->t, entries.n, 2) ||
        !WORK_RC(w, json_read(entries.entry[0].data, 4096, &entry, &w->err), BELAY_OK))
        return;
    TAP_EQ(w->t, json_integer_value(json_object_get(entry, "seq")), 2);
    TAP_EQ(w->t, json_integer_value(json_object_get(entry, "at_ms")), START_MS);
    TAP_STR(w->t, json_string_value(json_object_get(entry, "verb")), "epoch.raise");
    TAP_STR(w->t, json_string_value(json_object_get(entry, "principal")), "cli:ada");
    json_t *detail = json_object_get(entry, "detail");
    TAP_EQ(w->t, json_integer_value(json_object_get(detail, "epoch")), 2);
    TAP_STR(w->t, json_string_value(json_object_get(detail, "reason")), "again");
    json_decref(entry);
}

static void test_chain(struct tap *t)
{
    work_everywhere(t, chain_holds);
}

/* The entries of a chain of three, to be given in any order and form. */
struct copied {
    char text[4][1024];
};

static void copy_chain(struct work *w, struct copied *c)
{
    struct log_entries entries = { .n = 0 };

    raise_often(w, 3);
    arena_reset(&w->arena);
    WORK_RC(w, audit_page(w->space, 0, 10, &w->arena, &entries, &w->err), BELAY_OK);
    for (size_t i = 0; i < entries.n && i < 3; i++)
        (void)snprintf(c->text[i + 1], sizeof(c->text[0]), "%.*s",
                       (int)entries.entry[i].data.len,
                       (const char *)entries.entry[i].data.ptr);
}

static void give(struct tap *t, struct audit_walk *chain, int64_t seq, const char *text)
{
    TAP_EQ(t, audit_walk_entry(chain, seq, bytes_str(text), NULL), BELAY_OK);
}

static void test_damage(struct tap *t)
{
    struct copied c = { 0 };
    struct work w;

    if (!work_open(&w, t, ON_MEMORY))
        return;
    copy_chain(&w, &c);
    char changed[1024];
    (void)snprintf(changed, sizeof(changed), "%s", c.text[2]);
    *strstr(changed, "cli:ada") = 'C';

    /* clang-format off */
    const struct {
        const char *name, *second, *third;
        int64_t third_seq;
        const char *reason;
        int64_t at;
    } rows[] = {
        { "untouched",        c.text[2],   c.text[3], 3, NULL,            0 },
        { "changed",          changed,     c.text[3], 3, "hash_mismatch", 2 },
        { "no JSON",          "{",         c.text[3], 3, "malformed",     2 },
        { "no object",        "[]",        c.text[3], 3, "malformed",     2 },
        { "another number",   c.text[3],   c.text[3], 3, "malformed",     2 },
        { "one left out",     NULL,        c.text[3], 3, "gap",           2 },
        { "twice",            c.text[2],   c.text[2], 2, "gap",           3 },
        { "not from the end", c.text[2],   NULL,      3, "head_mismatch", 2 },
    };
    /* clang-format on */
    struct value v[AUDIT_HEAD_COLUMNS] = { value_i64(3),
                                           value_text(bytes_of(NULL, 0)) };
    struct row head = { .type = &row_audit_head, .ver = 1, .v = v };
    struct audit_walk whole = { 0 };
    for (int64_t i = 1; i <= 3; i++)
        give(t, &whole, i, c.text[i]);
    v[AUDIT_HEAD_HASH] = value_str(whole.hash);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct audit_walk chain = { 0 };
        give(t, &chain, 1, c.text[1]);
        if (rows[i].second)
            give(t, &chain, 2, rows[i].second);
        if (rows[i].third)
            give(t, &chain, rows[i].third_seq, rows[i].third);
        audit_walk_end(&chain, &head);
        bool good = TAP_STR(t, chain.reason, rows[i].reason);
        good &= TAP_EQ(t, chain.broken_at, rows[i].at);
        if (!good)
            printf("# in row %s\n", rows[i].name);
    }
    struct audit_walk chain = { 0 };
    audit_walk_end(&chain, &head); /* a head without entries */
    TAP_STR(t, chain.reason, "head_mismatch");
    chain = whole;
    audit_walk_end(&chain, NULL); /* entries without a head */
    TAP_STR(t, chain.reason, "head_mismatch");
    chain = whole;
    v[AUDIT_HEAD_HASH] = value_str("0");
    audit_walk_end(&chain, &head);
    TAP_STR(t, chain.reason, "head_mismatch");
    work_close(&w);
}

/* An entry whose own hash is right and whose predecessor is not the one before. */
static void test_chain_break(struct tap *t)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct copied c = { 0 };
    struct audit_walk chain = { 0 };
    uint8_t digest[SHA256_LEN];
    char hex[SHA256_HEX_LEN + 1];
    json_t *entry = NULL;
    struct work w;

    if (!work_open(&w, t, ON_MEMORY))
        return;
    copy_chain(&w, &c);
    TAP_EQ(t, json_read(bytes_str(c.text[2]), 4096, &entry, NULL), BELAY_OK);
    json_object_set_new(entry, "previous", json_string("0000"));
    json_object_del(entry, "hash");
    TAP_EQ(t, json_hash(entry, digest, NULL), BELAY_OK);
    hex_encode(bytes_of(digest, sizeof(digest)), hex);
    json_object_set_new(entry, "hash", json_string(hex));
    TAP_EQ(t, json_write(entry, &text, NULL), BELAY_OK);
    buf_append_char(&text, '\0');
    give(t, &chain, 1, c.text[1]);
    give(t, &chain, 2, (const char *)text.ptr);
    TAP_STR(t, chain.reason, "chain_break");
    TAP_EQ(t, chain.broken_at, 2);
    json_decref(entry);
    work_close(&w);
}

/* --- clocks --- */

static void clock_shown(struct work *w)
{
    struct store_time time;

    WORK_RC(w, store_time_show(w->space, &time, &w->err), BELAY_OK);
    TAP_EQ(w->t, time.now_ms, START_MS);
    TAP_EQ(w->t, time.mark_ms, 0);
    TAP_OK(w->t, !time.doubted);
    work_fill(w, w->space, 1);
    fake_advance_us(&w->clock, 500000);
    WORK_RC(w, store_time_show(w->space, &time, &w->err), BELAY_OK);
    TAP_EQ(w->t, time.now_ms, START_MS + 500);
    TAP_EQ(w->t, time.wall_ms, START_MS + 500);
    TAP_EQ(w->t, time.mark_ms, START_MS);
}

static void test_clock_shown(struct tap *t)
{
    work_everywhere(t, clock_shown);
}

/* The clock was a year ahead, long enough to be believed, and is right again. */
static void clock_goes_back(struct work *w)
{
    const int64_t year_ms = 365 * DAY_MS;
    struct store_time time;
    int64_t epoch = 0, now_ms = 0;

    work_fill(w, w->space, 1);
    atomic_fetch_add(&w->clock.wall_ms, year_ms);
    work_reopen(w);
    WORK_RC(w, store_time_show(w->space, &time, &w->err), BELAY_OK);
    TAP_OK(w->t, time.doubted);
    TAP_EQ(w->t, time.step_ms, year_ms);
    TAP_EQ(w->t, time.now_ms, START_MS);
    WORK_RC(w, store_time_reset(w->space, "me", &time, &epoch, &w->err), BELAY_OK);
    TAP_EQ(w->t, epoch, 1);
    TAP_EQ(w->t, time.now_ms, START_MS + year_ms);
    TAP_EQ(w->t, time.mark_ms, START_MS + year_ms);
    TAP_OK(w->t, !time.doubted);

    atomic_fetch_sub(&w->clock.wall_ms, year_ms);
    WORK_RC(w, store_time_reset(w->space, "me", &time, &epoch, &w->err), BELAY_OK);
    TAP_EQ(w->t, epoch, 2);
    TAP_EQ(w->t, time.now_ms, START_MS); /* the handle that is open follows */
    TAP_EQ(w->t, time.mark_ms, START_MS);
    TAP_OK(w->t, !time.doubted);
    work_reopen(w); /* and so does the next one */
    WORK_RC(w, space_now(w->space, &now_ms, &w->err), BELAY_OK);
    TAP_EQ(w->t, now_ms, START_MS);

    /* Later commits raise the mark as ever. */
    struct epoch_info info;
    fake_advance_us(&w->clock, 2000000);
    WORK_RC(w,
            epoch_raise(w->space, bytes_of(NULL, 0), "me", &w->arena, &info, &w->err),
            BELAY_OK);
    TAP_EQ(w->t, info.epoch, 3);
    WORK_RC(w, store_time_show(w->space, &time, &w->err), BELAY_OK);
    TAP_EQ(w->t, time.mark_ms, START_MS + 2000);
    struct audit_walk chain;
    WORK_RC(w, audit_verify(w->space, &chain, &w->err), BELAY_OK);
    TAP_EQ(w->t, chain.seq, 3);
    TAP_STR(w->t, chain.reason, NULL);
}

static void test_clock_goes_back(struct tap *t)
{
    work_everywhere(t, clock_goes_back);
}

static const struct tap_case cases[] = {
    { "an epoch rises by one, with time and reason, in its namespace", test_epoch },
    { "the last epoch is refused with its number, and leaves no trace",
      test_epoch_ends },
    { "an audit chain of many pages holds, and says who did what", test_chain },
    { "every kind of damage to a chain is told, and where", test_damage },
    { "an entry that is right by itself breaks a chain it is not of",
      test_chain_break },
    { "the store's time, the clock and the mark are shown", test_clock_shown },
    { "a reset follows the clock, also back, and raises the epoch",
      test_clock_goes_back },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
