/* Logs and feeds. */
#include "conformance.h"

static const struct bytes stream = { (const uint8_t *)"s", 1 };
static const struct bytes feed = { (const uint8_t *)"f", 1 };

/* --- logs --- */

struct append {
    int64_t first, n;
};

static belay_rc append_body(struct txn *t, void *arg)
{
    const struct append *c = arg;
    belay_rc rc = BELAY_OK;

    for (int64_t i = 0; i < c->n && !rc; i++) {
        char data[24];
        int len = snprintf(data, sizeof(data), "e%lld", (long long)c->first + i);
        rc = txn_log_append(t, stream, c->first + i, bytes_of(data, (size_t)len));
    }
    return rc;
}

static belay_rc append(struct harness *h, int64_t first, int64_t n)
{
    struct append c = { first, n };

    return harness_run(h, append_body, &c);
}

struct look {
    int64_t after;
    size_t limit;
    struct log_entries out;
};

static belay_rc look_body(struct txn *t, void *arg)
{
    struct look *c = arg;

    return txn_log_read(t, stream, c->after, c->limit, &c->out);
}

/* The entries behind `after` are first..last with their own data. */
static void check_entries(struct tap *t, const struct log_entries *out, int64_t first,
                          int64_t last)
{
    if (!TAP_EQ(t, out->n, last - first + 1))
        return;
    for (size_t i = 0; i < out->n; i++) {
        char want[24];
        (void)snprintf(want, sizeof(want), "e%lld", (long long)first + (long long)i);
        TAP_EQ(t, out->entry[i].seq, first + (int64_t)i);
        TAP_OK(t, bytes_eq(out->entry[i].data, bytes_str(want)));
    }
}

static void check_log(struct harness *h, int64_t after, size_t limit, int64_t first,
                      int64_t last)
{
    struct look c = { .after = after, .limit = limit };

    CHECK_RC(h, harness_run(h, look_body, &c), BELAY_OK);
    check_entries(h->t, &c.out, first, last);
}

static void logs_are_read_in_order(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    check_log(&h, 0, 10, 1, 0);
    CHECK_RC(&h, append(&h, 1, 3), BELAY_OK);
    CHECK_RC(&h, append(&h, 4, 9), BELAY_OK);
    check_log(&h, 0, 100, 1, 12);
    check_log(&h, 3, 4, 4, 7);
    check_log(&h, 11, 4, 12, 12);
    check_log(&h, 12, 4, 13, 12);
    check_log(&h, INT64_MAX, 4, 1, 0);
    check_log(&h, INT64_MIN, 2, 1, 2);
    check_log(&h, 0, 0, 1, 0);
}

static void logs_are_gapless(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, append(&h, 1, 2), BELAY_OK);
    CHECK_RC(&h, append(&h, 4, 1), BELAY_CORRUPT);
    CHECK_RC(&h, append(&h, 2, 1), BELAY_CORRUPT);
    CHECK_RC(&h, append(&h, 1, 1), BELAY_CORRUPT);
    CHECK_RC(&h, append(&h, 2, 2), BELAY_CORRUPT);
    check_log(&h, 0, 10, 1, 2);
    CHECK_RC(&h, append(&h, 3, 1), BELAY_OK);
    check_log(&h, 0, 10, 1, 3);
}

static belay_rc append_with_a_gap(struct txn *t, void *arg)
{
    belay_rc rc = txn_log_append(t, stream, 1, bytes_str("e1"));

    return rc ? rc : txn_log_append(t, stream, *(int64_t *)arg, bytes_str("e3"));
}

static void gaps_within_a_plan(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t seq = 3;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, append_with_a_gap, &seq), BELAY_CORRUPT);
    seq = 1;
    CHECK_RC(&h, harness_run(&h, append_with_a_gap, &seq), BELAY_CORRUPT);
    check_log(&h, 0, 10, 1, 0);
}

static belay_rc trim_body(struct txn *t, void *arg)
{
    return txn_log_trim(t, stream, *(int64_t *)arg);
}

static void logs_are_trimmed(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    int64_t upto = 2;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, trim_body, &upto), BELAY_OK); /* nothing there */
    CHECK_RC(&h, append(&h, 1, 5), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, trim_body, &upto), BELAY_OK);
    check_log(&h, 0, 10, 3, 5);
    upto = 1; /* behind what is trimmed already */
    CHECK_RC(&h, harness_run(&h, trim_body, &upto), BELAY_OK);
    check_log(&h, 0, 10, 3, 5);
    CHECK_RC(&h, append(&h, 2, 1), BELAY_CORRUPT);
    CHECK_RC(&h, append(&h, 6, 1), BELAY_OK);
    upto = 6;
    CHECK_RC(&h, harness_run(&h, trim_body, &upto), BELAY_OK);
    check_log(&h, 0, 10, 1, 0);
    CHECK_RC(&h, append(&h, 7, 1), BELAY_OK);
    check_log(&h, 0, 10, 7, 7);
}

static belay_rc own_log(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct append more = { 6, 3 };
    struct log_entries out = { .n = 0 };
    belay_rc rc = append_body(t, &more);

    rc = rc ? rc : txn_log_read(t, stream, 0, 100, &out);
    check_entries(tap, &out, 1, 8);
    rc = rc ? rc : txn_log_read(t, stream, 4, 2, &out);
    check_entries(tap, &out, 5, 6);
    rc = rc ? rc : txn_log_read(t, stream, 7, 2, &out);
    check_entries(tap, &out, 8, 8);
    rc = rc ? rc : txn_log_trim(t, stream, 3);
    rc = rc ? rc : txn_log_read(t, stream, 0, 4, &out);
    check_entries(tap, &out, 4, 7);
    rc = rc ? rc : txn_log_trim(t, stream, 6);
    rc = rc ? rc : txn_log_read(t, stream, 0, 4, &out);
    check_entries(tap, &out, 7, 8);
    rc = rc ? rc : txn_log_read(t, bytes_str("other"), 0, 4, &out);
    TAP_EQ(tap, out.n, 0);
    return rc;
}

static void own_entries_in_logs(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, append(&h, 1, 5), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, own_log, t), BELAY_OK);
    check_log(&h, 0, 10, 7, 8);
}

/* What is appended behind a trim stays, whatever the trim named. */
static belay_rc trim_then_append(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct append next = { 6, 1 };
    struct log_entries out = { .n = 0 };
    belay_rc rc = txn_log_trim(t, stream, 10);

    rc = rc ? rc : append_body(t, &next);
    rc = rc ? rc : txn_log_read(t, stream, 0, 10, &out);
    check_entries(tap, &out, 6, 6);
    return rc;
}

static void an_append_behind_a_trim(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, append(&h, 1, 5), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, trim_then_append, t), BELAY_OK);
    check_log(&h, 0, 10, 6, 6);
}

/* --- feeds --- */

struct publish {
    const char *data[3];
    size_t n;
    bool looks; /* publish_in_epoch */
    struct txn_pos pos[3];
};

static belay_rc publish_body(struct txn *t, void *arg)
{
    struct publish *c = arg;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->n && !rc; i++)
        rc = txn_feed_append(t, feed, bytes_str(c->data[i]), &c->pos[i]);
    return rc;
}

struct follow {
    struct feed_pos after;
    size_t limit;
    struct feed_entries out;
};

static belay_rc follow_body(struct txn *t, void *arg)
{
    struct follow *c = arg;

    return txn_feed_read(t, feed, c->after, c->limit, &c->out);
}

/* The data of all entries behind `after`, as one word. */
static struct feed_pos check_feed(struct harness *h, struct feed_pos after,
                                  size_t limit, const char *want)
{
    struct follow c = { .after = after, .limit = limit };
    char got[32] = "";

    CHECK_RC(h, harness_run(h, follow_body, &c), BELAY_OK);
    for (size_t i = 0; i < c.out.n && i < sizeof(got) - 1; i++) {
        got[i] = (char)c.out.entry[i].data.ptr[0];
        TAP_OK(h->t, feed_pos_cmp(c.out.entry[i].pos, after) > 0);
        after = c.out.entry[i].pos;
    }
    TAP_STR(h->t, got, want);
    return after;
}

static void feeds_are_read_in_order(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct feed_pos start = { 0 };
    struct publish one = { .data = { "a", "b", "c" }, .n = 3 };
    struct publish two = { .data = { "d" }, .n = 1 };
    if (!harness_open(&h, t, 0))
        return;

    check_feed(&h, start, 10, "");
    CHECK_RC(&h, harness_run(&h, publish_body, &one), BELAY_OK);
    struct feed_pos read = check_feed(&h, start, 2, "ab");
    CHECK_RC(&h, harness_run(&h, publish_body, &two), BELAY_OK);
    read = check_feed(&h, read, 10, "cd");
    check_feed(&h, read, 10, "");
    check_feed(&h, start, 0, "");
    /* Positions follow the plan within a commit, and commits one another. */
    for (size_t i = 0; i < 3; i++)
        TAP_OK(t, one.pos[i].known);
    TAP_OK(t, feed_pos_cmp(start, one.pos[0].pos) < 0);
    TAP_OK(t, feed_pos_cmp(one.pos[0].pos, one.pos[1].pos) < 0);
    TAP_OK(t, feed_pos_cmp(one.pos[1].pos, one.pos[2].pos) < 0);
    TAP_OK(t, feed_pos_cmp(one.pos[2].pos, two.pos[0].pos) < 0);
    TAP_OK(t, feed_pos_cmp(two.pos[0].pos, read) == 0);
    check_feed(&h, one.pos[0].pos, 10, "bcd");
}

static belay_rc own_feed(struct txn *t, void *arg)
{
    struct tap *tap = arg;
    struct feed_entries out = { .n = 9 };
    belay_rc rc = txn_feed_append(t, feed, bytes_str("x"), NULL);

    rc = rc ? rc : txn_feed_read(t, feed, (struct feed_pos){ 0 }, 10, &out);
    TAP_EQ(tap, out.n, 0);
    return rc;
}

static void own_appends_have_no_position(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, own_feed, t), BELAY_OK);
    check_feed(&h, (struct feed_pos){ 0 }, 10, "x");
}

static belay_rc feed_trim_body(struct txn *t, void *arg)
{
    return txn_feed_trim(t, feed, *(struct feed_pos *)arg);
}

static struct feed_pos trimmed(struct harness *h)
{
    struct follow c = { .limit = 1 };

    CHECK_RC(h, harness_run(h, follow_body, &c), BELAY_OK);
    return c.out.trimmed;
}

static void feeds_are_trimmed(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct feed_pos start = { 0 };
    struct publish one = { .data = { "a", "b", "c" }, .n = 3 };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, publish_body, &one), BELAY_OK);
    TAP_EQ(t, feed_pos_cmp(trimmed(&h), start), 0);
    CHECK_RC(&h, harness_run(&h, feed_trim_body, &one.pos[1].pos), BELAY_OK);
    check_feed(&h, start, 10, "c");
    TAP_EQ(t, feed_pos_cmp(trimmed(&h), one.pos[1].pos), 0);
    CHECK_RC(&h, harness_run(&h, feed_trim_body, &one.pos[0].pos), BELAY_OK);
    TAP_EQ(t, feed_pos_cmp(trimmed(&h), one.pos[1].pos), 0); /* it never goes back */
    CHECK_RC(&h, harness_run(&h, feed_trim_body, &one.pos[2].pos), BELAY_OK);
    check_feed(&h, start, 10, "");
    TAP_EQ(t, feed_pos_cmp(trimmed(&h), one.pos[2].pos), 0);
    /* Empty, but positions go on behind what was there. */
    struct publish two = { .data = { "d" }, .n = 1 };
    CHECK_RC(&h, harness_run(&h, publish_body, &two), BELAY_OK);
    TAP_OK(t, feed_pos_cmp(two.pos[0].pos, one.pos[2].pos) > 0);
    check_feed(&h, one.pos[2].pos, 10, "d");
}

static void a_trim_beyond_the_end(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    const struct feed_pos start = { 0 };
    struct publish one = { .data = { "a", "b" }, .n = 2 };
    struct publish two = { .data = { "c", "d" }, .n = 2 };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, publish_body, &one), BELAY_OK);
    struct feed_pos far = one.pos[1].pos;
    far.major += 1000;
    CHECK_RC(&h, harness_run(&h, feed_trim_body, &far), BELAY_OK);
    check_feed(&h, start, 10, "");
    CHECK_RC(&h, harness_run(&h, publish_body, &two), BELAY_OK);
    check_feed(&h, start, 10, "cd"); /* what comes later was not trimmed */
    TAP_OK(t, feed_pos_cmp(trimmed(&h), two.pos[0].pos) < 0);
}

#define EPOCH 9

static belay_rc raise_epoch(struct txn *t, void *arg)
{
    const struct change to = { EPOCH_EPOCH, value_i64(EPOCH) };
    const struct row *epoch;
    belay_rc rc = txn_get(t, &row_epoch, NULL, &epoch);

    (void)arg;
    return rc ? rc : txn_put(t, &row_epoch, NULL, &to, 1);
}

/* One item, by a body that has looked at the epoch, or has not. */
static belay_rc publish_in_epoch(struct txn *t, void *arg)
{
    struct publish *c = arg;
    const struct row *epoch;
    belay_rc rc = c->looks ? txn_get(t, &row_epoch, NULL, &epoch) : BELAY_OK;

    return rc ? rc : publish_body(t, c);
}

static void positions_have_the_epoch(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct publish before = { .data = { "a" }, .n = 1 };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, publish_body, &before), BELAY_OK);
    CHECK_RC(&h, harness_run(&h, raise_epoch, NULL), BELAY_OK);
    for (unsigned i = 0; i < 4; i++) {
        struct publish c = { .data = { "b", "c" }, .n = 1 + i / 2, .looks = i % 2 };
        CHECK_RC(&h, harness_run(&h, publish_in_epoch, &c), BELAY_OK);
        if (i == 0) /* a store of one file needs none */
            TAP_OK(t, c.pos[0].pos.epoch == EPOCH || c.pos[0].pos.epoch == 0);
        else
            TAP_EQ(t, c.pos[0].pos.epoch, before.pos[0].pos.epoch);
        TAP_OK(t, feed_pos_cmp(c.pos[0].pos, before.pos[0].pos) > 0);
        before = c;
    }
    check_feed(&h, (struct feed_pos){ 0 }, 10, "abbbcbc");
}

static belay_rc fail_after_append(struct txn *t, void *arg)
{
    belay_rc rc = txn_feed_append(t, feed, bytes_str("lost"), arg);

    return rc ? rc : txn_fail(t, BELAY_WRONG_STATE, "", "no");
}

static void nothing_is_published_by_a_failure(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct txn_pos pos = { .known = false };
    if (!harness_open(&h, t, 0))
        return;

    CHECK_RC(&h, harness_run(&h, fail_after_append, &pos), BELAY_WRONG_STATE);
    TAP_OK(t, !pos.known);
    check_feed(&h, (struct feed_pos){ 0 }, 10, "");
}

static const struct tap_case cases[] = {
    { "logs: entries are read in order, from a place, up to a limit",
      logs_are_read_in_order },
    { "logs: a gap or a duplicate is corrupt", logs_are_gapless },
    { "logs: a gap or a duplicate within one plan is corrupt", gaps_within_a_plan },
    { "logs: trim drops entries up to and including one", logs_are_trimmed },
    { "logs: a body reads its own appends and trims", own_entries_in_logs },
    { "logs: a body that trims and then appends reads what it appended",
      an_append_behind_a_trim },
    { "feeds: entries are read in the order of plans and commits",
      feeds_are_read_in_order },
    { "feeds: a body does not see its own appends", own_appends_have_no_position },
    { "feeds: trim drops entries and says up to where", feeds_are_trimmed },
    { "feeds: a trim beyond the end does not touch what comes later",
      a_trim_beyond_the_end },
    { "feeds: positions have one epoch, whether the body has looked at it or not",
      positions_have_the_epoch },
    { "feeds: a body that fails publishes nothing", nothing_is_published_by_a_failure },
};
const struct topic topic_logs = { cases, COUNT_OF(cases) };
