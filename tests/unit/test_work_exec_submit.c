/* Submitting executions, on every driver: what is stored, what is refused, keys, lanes. */
#include "work/exec_submit.h"

#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "test_work.h"

/* --- hands --- */

static struct exec_site site_of(struct work *w)
{
    return (struct exec_site){ .space = w->space, .backend = BELAY_BACKEND_MEMORY };
}

static belay_rc submit(struct work *w, const struct belay_submission *items, size_t n,
                       struct belay_submitted *out)
{
    struct exec_site site = site_of(w);

    return exec_submit(&site, items, n, &w->arena, out, &w->err);
}

static struct belay_submitted submit_one(struct work *w,
                                         const struct belay_submission *s)
{
    struct belay_submitted out = { .state = -1 };

    if (s->process)
        work_process(w, s->process);
    WORK_RC(w, submit(w, s, 1, &out), BELAY_OK);
    return out;
}

static const struct belay_submission plain = { .size = sizeof(plain), .lane = "l" };

static void pass_ms(struct work *w, int64_t ms)
{
    fake_advance_us(&w->clock, ms * 1000);
}

static int64_t now_ms(struct work *w)
{
    return atomic_load(&w->clock.wall_ms);
}

/* Whether the namespace is as it was; forgets `before`. */
static bool is_unchanged(struct work *w, struct buf *before)
{
    CLEANUP(buf_release) struct buf after = work_dump(w, "default");
    bool same = bytes_eq(buf_view(before), buf_view(&after));

    if (!same)
        printf("# before: %.*s\n# after: %.*s\n", (int)before->len,
               (const char *)before->ptr, (int)after.len, (const char *)after.ptr);
    buf_release(before);
    return same;
}

/* A row, in the case's arena; NULL: there is none. */
struct looking {
    const struct row_type *type;
    struct value key[2];
    const struct row *row;
};

static belay_rc look_body(struct txn *t, void *arg)
{
    struct looking *l = arg;

    return txn_get(t, l->type, l->key, &l->row);
}

static const struct row *look2(struct work *w, const struct row_type *type,
                               const char *a, const char *b)
{
    struct looking l = { type, { value_str(a), value_str(b) }, NULL };

    WORK_RC(w, txn_run(w->space, look_body, &l, NULL, &w->arena, &w->err), BELAY_OK);
    return l.row;
}

static const struct row *look(struct work *w, const struct row_type *type,
                              const char *key)
{
    return look2(w, type, key, "");
}

static const char *text_at(struct work *w, const struct row *row, unsigned column)
{
    struct bytes copy = { 0 };

    if (!TAP_OK(w->t, row != NULL) || row->v[column].kind == VALUE_NULL)
        return NULL;
    TAP_OK(w->t, arena_copy(&w->arena, row->v[column].b, &copy));
    return (const char *)copy.ptr;
}

/* The members of an index as "rank=member ..." with ranks from START_MS on. */
struct listing {
    const char *index;
    struct hits hits;
};

static belay_rc list_body(struct txn *t, void *arg)
{
    struct listing *l = arg;
    struct bytes index = bytes_str(l->index);
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .limit = 10000 };

    return txn_scan(t, &scan, &l->hits);
}

static struct hits listed(struct work *w, const char *index)
{
    struct listing l = { .index = index };

    WORK_RC(w, txn_run(w->space, list_body, &l, NULL, &w->arena, &w->err), BELAY_OK);
    return l.hits;
}

/* Whether the index has exactly this one. */
static bool stands(struct work *w, const char *index, int64_t rank, const char *member)
{
    struct hits hits = listed(w, index);

    if (!TAP_EQ(w->t, hits.n, 1)) {
        printf("# %s\n", index);
        return false;
    }
    return TAP_EQ(w->t, hits.hit[0].rank, rank) &&
           TAP_OK(w->t, bytes_eq(hits.hit[0].member, bytes_str(member)));
}

/* --- what is stored --- */

static void on_usual(struct work *w)
{
    struct belay_submitted out = submit_one(w, &plain);
    const struct row *e = look(w, &row_execution, out.execution_id);
    const struct row *spec = look(w, &row_execution_spec, out.execution_id);

    TAP_OK(w->t, strncmp(out.execution_id, "exe_", 4) == 0);
    TAP_EQ(w->t, out.state, BELAY_STATE_WAITING);
    TAP_OK(w->t, !out.duplicate);
    TAP_STR(w->t, text_at(w, e, EXEC_LANE), "l");
    TAP_STR(w->t, text_at(w, e, EXEC_ROUTE), "-");
    TAP_STR(w->t, text_at(w, e, EXEC_STATE), "waiting");
    TAP_STR(w->t, text_at(w, e, EXEC_PHASE), "runnable");
    TAP_STR(w->t, text_at(w, e, EXEC_ELIGIBILITY), "eligible_now");
    TAP_EQ(w->t, row_i64(e, EXEC_PRIORITY, -1), -1); /* what is 0 is not stored */
    TAP_EQ(w->t, row_i64(e, EXEC_ATTEMPTS, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_RETRIES, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_RECLAIMS, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_REPLAYS, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_LEASE + LEASE_FENCE, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_CREATED_AT_MS, -1), START_MS);
    TAP_EQ(w->t, row_i64(e, EXEC_DELAY_UNTIL_MS, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_DEADLINE_AT_MS, -1), -1);
    TAP_EQ(w->t, row_i64(e, EXEC_RETENTION_MS, -1), BELAY_RETENTION_MS);
    TAP_STR(w->t, text_at(w, e, EXEC_SESSION), NULL);
    TAP_STR(w->t, text_at(w, spec, SPEC_KIND), "");
    TAP_STR(w->t, text_at(w, spec, SPEC_POLICY), "{}");
    TAP_STR(w->t, text_at(w, spec, SPEC_ENCODING), NULL);
    TAP_STR(w->t, text_at(w, spec, SPEC_PAYLOAD), NULL);
    TAP_STR(w->t, text_at(w, spec, SPEC_TAGS), NULL);
    TAP_STR(w->t, text_at(w, spec, SPEC_TRACE), NULL);
    TAP_STR(w->t, text_at(w, spec, SPEC_KEY), NULL);
    stands(w, "lane/l/-", START_MS, out.execution_id);
    stands(w, "executions", START_MS, out.execution_id);
    TAP_EQ(w->t, listed(w, "deadlines").n, 0);
}

static void stores_the_usual_one(struct tap *t)
{
    work_everywhere(t, on_usual);
}

static const char *const needs[] = { "gpu", "arch=arm", "gpu" };
static const struct belay_tag two_tags[] = { { "team.name", "a \"b\"" },
                                             { "env", "" } };
static const char *const classes[] = { "timeout" };
static const struct belay_retry_policy retries = { .size = sizeof(retries),
                                                   .max_retries = 5,
                                                   .backoff = BELAY_BACKOFF_FIXED,
                                                   .delay_ms = 10,
                                                   .retryable = classes,
                                                   .n_retryable = 1 };
static const struct belay_submission full = {
    .size = sizeof(full),
    .priority = 7,
    .lane = "a lane/x",
    .kind = "build",
    .payload = " {\"b\" : 1, \"a\": [ ]} ",
    .payload_len = 21,
    .payload_is_json = true,
    .deadline_ms = 5000,
    .attempt_timeout_ms = 100,
    .retry = &retries,
    .requires = needs,
    .n_requires = 3,
    .tags = two_tags,
    .n_tags = 2,
    .session = "s1",
    .process = "p1",
    .traceparent = "00-1-2-01",
    .tracestate = "k=v",
    .creator = "cli:ada",
    .key = "the key",
    .key_window_ms = 60000,
    .max_reclaims = 3,
    .retention_ms = 1234,
};

static void on_full(struct work *w)
{
    struct belay_submitted out = submit_one(w, &full);
    const struct row *e = look(w, &row_execution, out.execution_id);
    const struct row *spec = look(w, &row_execution_spec, out.execution_id);
    const struct row *key = look(w, &row_execution_key, "the key");
    char route[ROUTE_MAX], index[64];

    route_make(bytes_str("arch=arm,gpu"), route);
    TAP_EQ(w->t, row_i64(e, EXEC_PRIORITY, -1), 7);
    TAP_STR(w->t, text_at(w, e, EXEC_ROUTE), route);
    TAP_EQ(w->t, row_i64(e, EXEC_DEADLINE_AT_MS, -1), START_MS + 5000);
    TAP_EQ(w->t, row_i64(e, EXEC_RETENTION_MS, -1), 1234);
    TAP_STR(w->t, text_at(w, e, EXEC_SESSION), "s1");
    TAP_STR(w->t, text_at(w, e, EXEC_PROCESS), "p1");
    TAP_STR(w->t, text_at(w, spec, SPEC_KIND), "build");
    TAP_STR(w->t, text_at(w, spec, SPEC_PAYLOAD), "{\"a\":[],\"b\":1}");
    TAP_STR(w->t, text_at(w, spec, SPEC_PAYLOAD_BLOB), NULL);
    TAP_STR(w->t, text_at(w, spec, SPEC_ENCODING), "json");
    TAP_STR(w->t, text_at(w, spec, SPEC_POLICY),
            "{\"attempt_timeout_ms\":100,\"deadline_ms\":5000,\"max_reclaims\":3,"
            "\"retention_ms\":1234,\"retry\":{\"backoff\":{\"delay_ms\":10,"
            "\"type\":\"fixed\"},\"max_retries\":5,\"retryable\":[\"timeout\"]}}");
    TAP_STR(w->t, text_at(w, spec, SPEC_REQUIRES), "arch=arm,gpu");
    TAP_STR(w->t, text_at(w, spec, SPEC_TAGS),
            "{\"env\":\"\",\"team.name\":\"a \\\"b\\\"\"}");
    TAP_STR(w->t, text_at(w, spec, SPEC_CREATOR), "cli:ada");
    TAP_STR(w->t, text_at(w, spec, SPEC_TRACE),
            "{\"traceparent\":\"00-1-2-01\",\"tracestate\":\"k=v\"}");
    TAP_STR(w->t, text_at(w, spec, SPEC_KEY), "the key");
    TAP_STR(w->t, text_at(w, key, EXEC_KEY_EXECUTION), out.execution_id);
    TAP_EQ(w->t, row_i64(key, EXEC_KEY_UNTIL_MS, -1), START_MS + 60000);
    (void)snprintf(index, sizeof(index), "lane/a lane/x/%s", route);
    stands(w, index, START_MS - 7 * (int64_t)1000000000000, out.execution_id);
    stands(w, "deadlines", START_MS + 5000, out.execution_id);
    stands(w, "tag/env=", START_MS, out.execution_id);
    stands(w, "tag/team.name=a \"b\"", START_MS, out.execution_id);
    stands(w, "execution_keys", START_MS + 60000, "the key");
}

static void stores_everything_that_was_given(struct tap *t)
{
    work_everywhere(t, on_full);
}

static void on_delays(struct work *w)
{
    static const struct {
        int64_t delay_ms, run_at_ms, until_ms;
    } cases[] = {
        { 1, 0, START_MS + 1 },
        { 0, START_MS + 9, START_MS + 9 },
        { 10, START_MS + 9, START_MS + 10 },
        { 0, START_MS, -1 },
        { 0, START_MS - 1, -1 },
        { TIME_MAX_MS, 0, TIME_MAX_MS },
        { 0, INT64_MAX, TIME_MAX_MS },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool waits = cases[i].until_ms >= 0;
        struct belay_submission s = plain;
        s.delay_ms = cases[i].delay_ms;
        s.run_at_ms = cases[i].run_at_ms;
        s.deadline_ms = TIME_MAX_MS;
        struct belay_submitted out = submit_one(w, &s);
        const struct row *e = look(w, &row_execution, out.execution_id);
        TAP_EQ(w->t, out.state, waits ? BELAY_STATE_DELAYED : BELAY_STATE_WAITING);
        TAP_EQ(w->t, row_i64(e, EXEC_DELAY_UNTIL_MS, -1), cases[i].until_ms);
        TAP_EQ(w->t, row_i64(e, EXEC_DEADLINE_AT_MS, -1), TIME_MAX_MS);
        TAP_STR(w->t, text_at(w, e, EXEC_STATE), waits ? "delayed" : "waiting");
        if (waits)
            TAP_EQ(w->t, row_i64(e, EXEC_RANK, -1), cases[i].until_ms);
    }
    TAP_EQ(w->t, listed(w, "delayed").n, 5);
    TAP_EQ(w->t, listed(w, "lane/l/-").n, 2);
    TAP_EQ(w->t, listed(w, "executions").n, 7);
}

static void waits_until_the_later_time(struct tap *t)
{
    work_everywhere(t, on_delays);
}

/* --- payloads --- */

static struct belay_submission with_payload(const void *payload, size_t len, bool json)
{
    struct belay_submission s = plain;

    s.payload = payload;
    s.payload_len = len;
    s.payload_is_json = json;
    return s;
}

static uint8_t *filled(struct work *w, size_t len, uint8_t byte)
{
    uint8_t *data = arena_alloc(&w->arena, len);

    memset(data, byte, len);
    return data;
}

static void on_payloads(struct work *w)
{
    static const uint8_t raw[] = { 0, 0xff, '\n', 0 };
    struct belay_submission s = with_payload(raw, sizeof(raw), false);
    struct belay_submitted out = submit_one(w, &s);
    const struct row *spec = look(w, &row_execution_spec, out.execution_id);

    TAP_OK(w->t, bytes_eq(row_bytes(spec, SPEC_PAYLOAD), bytes_of(raw, sizeof(raw))));
    TAP_STR(w->t, text_at(w, spec, SPEC_ENCODING), "bytes");
    s = with_payload(raw, 0, false);
    out = submit_one(w, &s);
    spec = look(w, &row_execution_spec, out.execution_id);
    TAP_EQ(w->t, spec->v[SPEC_PAYLOAD].kind, VALUE_BYTES);
    TAP_EQ(w->t, spec->v[SPEC_PAYLOAD].b.len, 0);
    TAP_STR(w->t, text_at(w, spec, SPEC_ENCODING), "bytes");
    s = with_payload(filled(w, PAYLOAD_INLINE_MAX, 7), PAYLOAD_INLINE_MAX, false);
    out = submit_one(w, &s);
    spec = look(w, &row_execution_spec, out.execution_id);
    TAP_EQ(w->t, row_bytes(spec, SPEC_PAYLOAD).len, PAYLOAD_INLINE_MAX);
    TAP_EQ(w->t, listed(w, "blobs").n, 0);
}

static void keeps_short_payloads_in_the_row(struct tap *t)
{
    work_everywhere(t, on_payloads);
}

/* What a submission's blob holds. */
static void check_blob(struct work *w, const char *id, const void *data, size_t len)
{
    const struct row *spec = look(w, &row_execution_spec, id);
    const char *name = text_at(w, spec, SPEC_PAYLOAD_BLOB);
    struct bytes loaded = { 0 };

    TAP_STR(w->t, text_at(w, spec, SPEC_PAYLOAD), NULL);
    if (!TAP_OK(w->t, name != NULL))
        return;
    WORK_RC(w,
            blob_load(w->space, name, BELAY_PAYLOAD_MAX, &w->arena, &loaded, &w->err),
            BELAY_OK);
    TAP_OK(w->t, bytes_eq(loaded, bytes_of(data, len)));
}

static void on_blobs(struct work *w)
{
    const size_t lens[] = { PAYLOAD_INLINE_MAX + 1, BELAY_PAYLOAD_MAX };

    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        uint8_t *data = filled(w, lens[i], (uint8_t)i);
        struct belay_submission s = with_payload(data, lens[i], false);
        struct belay_submitted out = submit_one(w, &s);
        check_blob(w, out.execution_id, data, lens[i]);
        /* Again: the same blob, touched (S6). */
        pass_ms(w, 1000);
        out = submit_one(w, &s);
        check_blob(w, out.execution_id, data, lens[i]);
        const struct row *spec = look(w, &row_execution_spec, out.execution_id);
        const struct row *blob =
            look(w, &row_blob, text_at(w, spec, SPEC_PAYLOAD_BLOB));
        TAP_EQ(w->t, row_i64(blob, BLOB_TOUCHED_AT_MS, -1), now_ms(w));
        TAP_EQ(w->t, listed(w, "blobs").n, i + 1);
    }
    TAP_EQ(w->t, listed(w, "uploads").n, 0);
}

static void puts_long_payloads_into_blobs(struct tap *t)
{
    work_everywhere(t, on_blobs);
}

/* More than one commit should carry. */
static void on_many_blobs(struct work *w)
{
    enum { N = 10 };
    struct belay_submission items[N];
    struct belay_submitted out[N];

    for (size_t i = 0; i < N; i++) {
        size_t len = BELAY_PAYLOAD_MAX - 2;
        items[i] = with_payload(filled(w, len, (uint8_t)('a' + i % 9)), len, false);
    }
    WORK_RC(w, submit(w, items, N, out), BELAY_OK);
    for (size_t i = 0; i < N; i++)
        check_blob(w, out[i].execution_id, items[i].payload, items[i].payload_len);
    TAP_EQ(w->t, listed(w, "blobs").n, 9);
    TAP_EQ(w->t, listed(w, "uploads").n, 0);
}

static void stores_many_long_payloads_ahead(struct tap *t)
{
    work_everywhere(t, on_many_blobs);
}

static void on_no_blob_of_a_refused_one(struct work *w)
{
    size_t len = PAYLOAD_INLINE_MAX + 1;
    struct belay_submission s = full, items[2];
    struct belay_submitted out[2];

    (void)submit_one(w, &s);
    items[0] = with_payload(filled(w, len, 1), len, false);
    items[1] = full;
    items[1].kind = "other";
    struct buf before = work_dump(w, "default");
    WORK_RC(w, submit(w, items, 2, out), BELAY_KEY_CONFLICT);
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void stores_no_blob_of_what_is_refused(struct tap *t)
{
    work_everywhere(t, on_no_blob_of_a_refused_one);
}

/* --- what is refused --- */

#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONG_256 LONG_64 LONG_64 LONG_64 LONG_64

struct refusal {
    const char *reason;
    const char *words; /* in the message; NULL: any */
    struct belay_submission s;
};

#define RETRY_OF(...)                           \
    .retry = &(const struct belay_retry_policy) \
    {                                           \
        __VA_ARGS__                             \
    }
#define TAG_OF(k, v) .tags = (const struct belay_tag[]){ { k, v } }, .n_tags = 1
#define NEEDS(...)                                    \
    .requires = (const char *const[]){ __VA_ARGS__ }, \
    .n_requires = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)

/* clang-format off */
static const struct refusal refusals[] = {
    { "lane", NULL, { .lane = NULL } },
    { "lane", NULL, { .lane = "" } },
    { "lane", "1 to 64", { .lane = LONG_64 "x" } },
    { "lane", NULL, { .lane = "a\tb" } },
    { "lane", NULL, { .lane = "\xc3\xa4" } },
    { "lane", NULL, { .lane = "a\x7f" } },
    { "priority", "-1", { .lane = "l", .priority = -1 } },
    { "priority", "9001", { .lane = "l", .priority = 9001 } },
    { "kind", NULL, { .lane = "l", .kind = LONG_256 } },
    { "kind", NULL, { .lane = "l", .kind = "a\nb" } },
    { "kind", NULL, { .lane = "l", .kind = "\xff" } },
    { "payload", NULL, { .lane = "l", .payload_len = 1 } },
    { "payload", "line 1", { .lane = "l", .payload = "{", .payload_len = 1, .payload_is_json = true } },
    { "payload", NULL, { .lane = "l", .payload = "", .payload_len = 0, .payload_is_json = true } },
    { "payload", NULL, { .lane = "l", .payload = "1 2", .payload_len = 3, .payload_is_json = true } },
    { "delay", "-1", { .lane = "l", .delay_ms = -1 } },
    { "delay", NULL, { .lane = "l", .delay_ms = TIME_MAX_MS + 1 } },
    { "run_at", NULL, { .lane = "l", .run_at_ms = -1 } },
    { "deadline", NULL, { .lane = "l", .deadline_ms = -1 } },
    { "deadline", NULL, { .lane = "l", .deadline_ms = INT64_MAX } },
    { "attempt_timeout", NULL, { .lane = "l", .attempt_timeout_ms = -1 } },
    { "attempt_timeout", NULL, { .lane = "l", .attempt_timeout_ms = TIME_MAX_MS + 1 } },
    { "retry", "max_retries", { .lane = "l", RETRY_OF(.max_retries = -1) } },
    { "retry", "max_retries", { .lane = "l", RETRY_OF(.max_retries = 1000001) } },
    { "retry", "delay", { .lane = "l", RETRY_OF(.delay_ms = -2, .backoff = BELAY_BACKOFF_FIXED) } },
    { "retry", "above 0", { .lane = "l", RETRY_OF(.delay_ms = -1) } },
    { "retry", "below the first", { .lane = "l", RETRY_OF(.delay_ms = 10000, .max_delay_ms = 1000) } },
    { "retry", "below the first", { .lane = "l", RETRY_OF(.max_delay_ms = 999) } },
    { "retry", "below the first", { .lane = "l", RETRY_OF(.delay_ms = 60001) } },
    { "retry", "delay", { .lane = "l", RETRY_OF(.delay_ms = 30 * DAY_MS + 1) } },
    { "retry", "max_delay", { .lane = "l", RETRY_OF(.max_delay_ms = -1) } },
    { "retry", "max_delay", { .lane = "l", RETRY_OF(.max_delay_ms = 30 * DAY_MS + 1) } },
    { "retry", "backoff", { .lane = "l", RETRY_OF(.backoff = 2) } },
    { "retry", "backoff", { .lane = "l", RETRY_OF(.backoff = -1) } },
    { "retry", "multiplier", { .lane = "l", RETRY_OF(.multiplier = 0.99) } },
    { "retry", "multiplier", { .lane = "l", RETRY_OF(.multiplier = 1000.5) } },
    { "retry", "multiplier", { .lane = "l", RETRY_OF(.multiplier = -1) } },
    { "retry", "multiplier", { .lane = "l", RETRY_OF(.multiplier = (double)INFINITY) } },
    { "retry", "multiplier", { .lane = "l", RETRY_OF(.multiplier = (double)NAN) } },
    { "retry", "retryable", { .lane = "l", RETRY_OF(.n_retryable = 1) } },
    { "retry", "permanent failures are never", { .lane = "l", RETRY_OF(.retryable = (const char *const[]){ "timeout", "permanent" }, .n_retryable = 2) } },
    { "retry", "cancelled failures are never", { .lane = "l", RETRY_OF(.retryable = (const char *const[]){ "cancelled" }, .n_retryable = 1) } },
    { "retry", "retryable", { .lane = "l", RETRY_OF(.retryable = classes, .n_retryable = 65) } },
    { "retry", "retryable", { .lane = "l", RETRY_OF(.retryable = (const char *const[]){ "" }, .n_retryable = 1) } },
    { "retry", "retryable", { .lane = "l", RETRY_OF(.retryable = (const char *const[]){ NULL }, .n_retryable = 1) } },
    { "retry", "retryable", { .lane = "l", RETRY_OF(.retryable = (const char *const[]){ (LONG_64 LONG_64 "x") }, .n_retryable = 1) } },
    { "requires", "empty_token", { .lane = "l", NEEDS("a", "") } },
    { "requires", "empty_token", { .lane = "l", NEEDS(NULL) } },
    { "requires", "empty_token", { .lane = "l", .n_requires = 1 } },
    { "requires", "comma_in_token", { .lane = "l", NEEDS("a,b") } },
    { "requires", "control_or_whitespace", { .lane = "l", NEEDS("a b") } },
    { "requires", "control_or_whitespace", { .lane = "l", NEEDS("a\x7f") } },
    { "tag", NULL, { .lane = "l", TAG_OF("", "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF(NULL, "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF("1a", "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF("A", "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF("a-b", "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF("a=b", "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF("x" LONG_64, "v") } },
    { "tag", NULL, { .lane = "l", TAG_OF("a", NULL) } },
    { "tag", NULL, { .lane = "l", TAG_OF("a", LONG_256 "x") } },
    { "tag", NULL, { .lane = "l", TAG_OF("a", "b\nc") } },
    { "tag", NULL, { .lane = "l", TAG_OF("a", "\xc3") } },
    { "tag", NULL, { .lane = "l", .n_tags = 1 } },
    { "tag", "64", { .lane = "l", .tags = two_tags, .n_tags = 65 } },
    { "tag", "twice", { .lane = "l", .tags = (const struct belay_tag[]){ { "a", "1" }, { "b", "2" }, { "a", "3" } }, .n_tags = 3 } },
    { "session", NULL, { .lane = "l", .session = "" } },
    { "session", NULL, { .lane = "l", .session = LONG_256 } },
    { "session", NULL, { .lane = "l", .session = "\x01" } },
    { "process", NULL, { .lane = "l", .process = "" } },
    { "process", NULL, { .lane = "l", .process = LONG_256 } },
    { "creator", NULL, { .lane = "l", .creator = LONG_256 } },
    { "traceparent", NULL, { .lane = "l", .traceparent = "" } },
    { "traceparent", NULL, { .lane = "l", .traceparent = LONG_64 LONG_64 "x" } },
    { "tracestate", NULL, { .lane = "l", .tracestate = LONG_256 LONG_256 "x" } },
    { "key", NULL, { .lane = "l", .key = "" } },
    { "key", NULL, { .lane = "l", .key = LONG_256 LONG_256 "x" } },
    { "key", NULL, { .lane = "l", .key = "a\rb" } },
    { "key_window", NULL, { .lane = "l", .key = "k", .key_window_ms = -1 } },
    { "key_window", "no key", { .lane = "l", .key_window_ms = 1 } },
    { "max_reclaims", NULL, { .lane = "l", .max_reclaims = -2 } },
    { "max_reclaims", NULL, { .lane = "l", .max_reclaims = 1000001 } },
    { "retention", NULL, { .lane = "l", .retention_ms = -2 } },
    { "retention", NULL, { .lane = "l", .retention_ms = TIME_MAX_MS + 1 } },
};
/* clang-format on */

static void on_refusals(struct work *w)
{
    struct buf before;

    (void)submit_one(w, &plain);
    before = work_dump(w, "default");
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const struct refusal *r = &refusals[i];
        struct belay_submission items[] = { plain, r->s };
        struct belay_submitted out[2] = { { .state = -1 }, { .state = -1 } };
        bool refused = WORK_RC(w, submit(w, &r->s, 1, out), BELAY_INVALID) &&
                       TAP_STR(w->t, w->err.reason, r->reason) &&
                       TAP_OK(w->t, !r->words || strstr(w->err.message, r->words));
        /* And with a sound one before it. */
        refused &= WORK_RC(w, submit(w, items, 2, out), BELAY_INVALID) &&
                   TAP_STR(w->t, w->err.reason, r->reason) &&
                   TAP_OK(w->t, strncmp(w->err.message, "item 2: ", 8) == 0);
        TAP_EQ(w->t, out[0].state, -1);
        if (!refused)
            printf("# case %zu, %s: %s\n", i, r->reason, w->err.message);
    }
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void refuses_each_field_with_its_reason(struct tap *t)
{
    work_everywhere(t, on_refusals);
}

static void on_large(struct work *w)
{
    size_t len = BELAY_PAYLOAD_MAX + 1;
    struct belay_submission s = with_payload(filled(w, len, 'x'), len, false);
    struct belay_submitted out;
    struct buf before = work_dump(w, "default");

    WORK_RC(w, submit(w, &s, 1, &out), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "too_large");
    TAP_EQ(w->t, w->err.expected, BELAY_PAYLOAD_MAX);
    TAP_EQ(w->t, w->err.actual, len);
    /* Canonical, it is longer than it was. */
    char *text = arena_alloc(&w->arena, BELAY_PAYLOAD_MAX);
    size_t n = 0;
    text[n++] = '[';
    for (size_t i = 0; n + 5 < BELAY_PAYLOAD_MAX || i % 4 != 0; i++)
        text[n++] = "1e9,"[i % 4];
    text[n++] = '1';
    text[n++] = ']';
    s = with_payload(text, n, true);
    WORK_RC(w, submit(w, &s, 1, &out), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "too_large");
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void refuses_a_payload_that_is_too_large(struct tap *t)
{
    work_everywhere(t, on_large);
}

static void on_limits(struct work *w)
{
    struct belay_tag tags[TAGS_PER_EXECUTION];
    const char *tokens[CAPABILITY_TOKENS_MAX + 1];
    char names[CAPABILITY_TOKENS_MAX + 1][8], keys[TAGS_PER_EXECUTION][8];
    const char *entries[64];
    struct belay_retry_policy most = { .max_retries = 1000000,
                                       .delay_ms = 30 * DAY_MS,
                                       .max_delay_ms = 30 * DAY_MS,
                                       .multiplier = 1000,
                                       .retryable = entries,
                                       .n_retryable = 64 };
    struct belay_submission s = { .lane = LONG_64,
                                  .priority = BELAY_PRIORITY_MAX,
                                  .kind = LONG_256,
                                  .delay_ms = TIME_MAX_MS,
                                  .deadline_ms = TIME_MAX_MS,
                                  .attempt_timeout_ms = TIME_MAX_MS,
                                  .key_window_ms = TIME_MAX_MS,
                                  .retention_ms = TIME_MAX_MS,
                                  .max_reclaims = 1000000,
                                  .key = LONG_256 LONG_256,
                                  .tracestate = LONG_256 LONG_256,
                                  .traceparent = LONG_64 LONG_64,
                                  .retry = &most,
                                  .requires = tokens,
                                  .n_requires = CAPABILITY_TOKENS_MAX,
                                  .tags = tags,
                                  .n_tags = TAGS_PER_EXECUTION };
    char kind[] = LONG_256;

    kind[255] = '\0';
    s.kind = s.session = s.process = s.creator = kind;
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        entries[i] = LONG_64 LONG_64;
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "c%zu", i);
        tokens[i] = names[i];
    }
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        tags[i] = (struct belay_tag){ keys[i], LONG_256 };
    }
    TAP_EQ(w->t, submit_one(w, &s).state, BELAY_STATE_DELAYED);
    TAP_EQ(w->t, listed(w, "tag/k63=" LONG_256).n, 1);
    struct buf before = work_dump(w, "default");
    s.n_requires++;
    struct belay_submitted out;
    WORK_RC(w, submit(w, &s, 1, &out), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "requires");
    TAP_OK(w->t, strstr(w->err.message, "too_many_tokens") != NULL);
    for (size_t i = 0; i < 17; i++)
        tokens[i] = i % 2 ? LONG_256 "a" : LONG_256 "b";
    char longer[17][300];
    for (size_t i = 0; i < 17; i++) {
        (void)snprintf(longer[i], sizeof(longer[i]), "%s%zu", LONG_256, i);
        tokens[i] = longer[i];
    }
    s.n_requires = 17;
    WORK_RC(w, submit(w, &s, 1, &out), BELAY_INVALID);
    TAP_OK(w->t, strstr(w->err.message, "too_many_bytes") != NULL);
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void takes_every_field_to_its_limit(struct tap *t)
{
    work_everywhere(t, on_limits);
}

/* --- keys --- */

static void on_duplicates(struct work *w)
{
    struct belay_submitted first = submit_one(w, &full), again;
    struct belay_submission s = full;
    const char *const same_needs[] = { "arch=arm", "gpu" };
    const struct belay_tag same_tags[] = { two_tags[1], two_tags[0] };
    struct buf before = work_dump(w, "default");

    pass_ms(w, 59999);
    again = submit_one(w, &full);
    TAP_OK(w->t, again.duplicate && !first.duplicate);
    TAP_STR(w->t, again.execution_id, first.execution_id);
    TAP_EQ(w->t, again.state, BELAY_STATE_WAITING);
    /* The same in other words, and with another window. */
    s.requires = same_needs;
    s.n_requires = 2;
    s.tags = same_tags;
    s.payload = "{\"a\":[],\"b\":1}";
    s.payload_len = 14;
    s.key_window_ms = 5;
    again = submit_one(w, &s);
    TAP_STR(w->t, again.execution_id, first.execution_id);
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void answers_a_repeated_key_with_its_execution(struct tap *t)
{
    work_everywhere(t, on_duplicates);
}

/* A submission that differs from `full` in one respect. */
static struct belay_submission other_one(size_t which)
{
    static const struct belay_retry_policy fewer = { .max_retries = 4,
                                                     .backoff = BELAY_BACKOFF_FIXED,
                                                     .delay_ms = 10,
                                                     .retryable = classes,
                                                     .n_retryable = 1 };
    struct belay_submission s = full;

    /* clang-format off */
    switch (which) {
    case 0: s.priority = 8; break;
    case 1: s.lane = "b"; break;
    case 2: s.kind = "builds"; break;
    case 3: s.payload_is_json = false; break;
    case 4: s.payload = NULL; s.payload_len = 0; break;
    case 5: s.payload = "{}"; s.payload_len = 2; break;
    case 6: s.delay_ms = 1; break;
    case 7: s.run_at_ms = 1; break;
    case 8: s.deadline_ms = 5001; break;
    case 9: s.attempt_timeout_ms = 101; break;
    case 10: s.retry = NULL; break;
    case 11: s.retry = &fewer; break;
    case 12: s.n_requires = 1; break;
    case 13: s.n_tags = 1; break;
    case 14: s.session = NULL; break;
    case 15: s.process = "s1"; s.session = "p1"; break;
    case 16: s.creator = "x"; break;
    case 17: s.creator = NULL; break;
    case 18: s.max_reclaims = 4; break;
    case 19: s.retention_ms = 1235; break;
    default: s.lane = NULL; break;
    }
    /* clang-format on */
    return s;
}

static void on_conflicts(struct work *w)
{
    struct belay_submitted out = submit_one(w, &full);
    struct buf before = work_dump(w, "default");

    for (size_t i = 0; i < 20; i++) {
        struct belay_submission items[] = { plain, other_one(i) };
        struct belay_submitted outs[2];
        if (!WORK_RC(w, submit(w, &items[1], 1, &out), BELAY_KEY_CONFLICT))
            printf("# case %zu\n", i);
        TAP_STR(w->t, w->err.entity, "the key");
        WORK_RC(w, submit(w, items, 2, outs), BELAY_KEY_CONFLICT);
    }
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void refuses_a_key_that_stands_for_something_else(struct tap *t)
{
    work_everywhere(t, on_conflicts);
}

/* Pairs that differ only in where something ends, or in its being there. */
static void on_alike(struct work *w)
{
    struct belay_submission pairs[][2] = { { plain, plain }, { plain, plain } };
    struct belay_submitted out;

    pairs[0][0].session = "a2:b";
    pairs[0][0].process = "c";
    pairs[0][1].session = "a";
    pairs[0][1].process = "b2:c";
    pairs[1][1].payload = "";
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        pairs[i][0].key = pairs[i][1].key = i ? "k1" : "k0";
        (void)submit_one(w, &pairs[i][0]);
        WORK_RC(w, submit(w, &pairs[i][1], 1, &out), BELAY_KEY_CONFLICT);
    }
    pairs[0][0].session = "a0:b";
    pairs[0][1].process = "b0:c";
    pairs[0][0].key = pairs[0][1].key = "k2";
    (void)submit_one(w, &pairs[0][0]);
    WORK_RC(w, submit(w, &pairs[0][1], 1, &out), BELAY_KEY_CONFLICT);
}

static void tells_what_is_almost_the_same_apart(struct tap *t)
{
    work_everywhere(t, on_alike);
}

static void on_window(struct work *w)
{
    struct belay_submission s = full;
    struct belay_submitted first = submit_one(w, &full), second;

    pass_ms(w, 60000);
    s.kind = "another";
    s.key_window_ms = 0;
    second = submit_one(w, &s);
    TAP_OK(w->t,
           !second.duplicate && strcmp(first.execution_id, second.execution_id) != 0);
    const struct row *key = look(w, &row_execution_key, "the key");
    TAP_STR(w->t, text_at(w, key, EXEC_KEY_EXECUTION), second.execution_id);
    TAP_EQ(w->t, row_i64(key, EXEC_KEY_UNTIL_MS, -1), now_ms(w) + DAY_MS);
    stands(w, "execution_keys", now_ms(w) + DAY_MS, "the key");
    TAP_OK(w->t, submit_one(w, &s).duplicate);
    WORK_RC(w, submit(w, &full, 1, &first), BELAY_KEY_CONFLICT);
    TAP_EQ(w->t, listed(w, "executions").n, 2);
}

static void forgets_a_key_with_its_window(struct tap *t)
{
    work_everywhere(t, on_window);
}

static belay_rc forget_body(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution, &key, &row);

    return rc ? rc : txn_delete(t, &row_execution, &key);
}

static void on_purged(struct work *w)
{
    struct belay_submitted first = submit_one(w, &full), again;

    WORK_RC(w,
            txn_run(w->space, forget_body, (void *)(uintptr_t)first.execution_id, NULL,
                    &w->arena, &w->err),
            BELAY_OK);
    again = submit_one(w, &full);
    TAP_OK(w->t, again.duplicate);
    TAP_STR(w->t, again.execution_id, first.execution_id);
    TAP_EQ(w->t, again.state, BELAY_STATE_ANY);
}

static void knows_the_key_of_a_purged_one(struct tap *t)
{
    work_everywhere(t, on_purged);
}

static void on_batch_keys(struct work *w)
{
    struct belay_submission items[5] = { full, plain, full, plain, full };
    struct belay_submitted out[5];

    items[1].key = "k2";
    items[3].key = "k2";
    work_process(w, full.process);
    WORK_RC(w, submit(w, items, 5, out), BELAY_OK);
    TAP_OK(w->t, !out[0].duplicate && !out[1].duplicate && out[2].duplicate &&
                     out[3].duplicate && out[4].duplicate);
    TAP_STR(w->t, out[2].execution_id, out[0].execution_id);
    TAP_STR(w->t, out[4].execution_id, out[0].execution_id);
    TAP_STR(w->t, out[3].execution_id, out[1].execution_id);
    for (size_t i = 0; i < 5; i++)
        TAP_EQ(w->t, out[i].state, BELAY_STATE_WAITING);
    TAP_EQ(w->t, listed(w, "executions").n, 2);
    struct buf before = work_dump(w, "default");
    items[1].key = items[3].key = "k3";
    items[3].priority = 1;
    WORK_RC(w, submit(w, items, 5, out), BELAY_KEY_CONFLICT);
    TAP_STR(w->t, w->err.entity, "k3");
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void one_batch_may_repeat_itself(struct tap *t)
{
    work_everywhere(t, on_batch_keys);
}

/* --- batches --- */

static void on_thousand(struct work *w)
{
    static struct belay_submission items[BELAY_SUBMIT_MAX + 1];
    static struct belay_submitted out[BELAY_SUBMIT_MAX];
    static char keys[BELAY_SUBMIT_MAX][16], lanes[10][8];

    for (size_t i = 0; i < COUNT_OF(items); i++)
        items[i] = plain;
    for (size_t i = 0; i < BELAY_SUBMIT_MAX; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "key%zu", i);
        (void)snprintf(lanes[i % 10], sizeof(lanes[0]), "lane%zu", i % 10);
        items[i].key = keys[i];
        items[i].lane = lanes[i % 10];
    }
    struct buf before = work_dump(w, "default");
    WORK_RC(w, submit(w, items, BELAY_SUBMIT_MAX + 1, out), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "count");
    WORK_RC(w, submit(w, items, 0, out), BELAY_INVALID);
    items[999].priority = -1;
    WORK_RC(w, submit(w, items, BELAY_SUBMIT_MAX, out), BELAY_INVALID);
    TAP_OK(w->t, strncmp(w->err.message, "item 1000: ", 11) == 0);
    TAP_OK(w->t, is_unchanged(w, &before));
    items[999].priority = 0;
    WORK_RC(w, submit(w, items, BELAY_SUBMIT_MAX, out), BELAY_OK);
    TAP_EQ(w->t, listed(w, "executions").n, BELAY_SUBMIT_MAX);
    TAP_EQ(w->t, listed(w, "lanes").n, 10);
    struct hits hits = listed(w, "lane/lane3/-");
    TAP_EQ(w->t, hits.n, 100);
    for (size_t i = 0; i < hits.n; i++) /* in the order in which they were given */
        TAP_OK(w->t,
               bytes_eq(hits.hit[i].member, bytes_str(out[10 * i + 3].execution_id)));
    WORK_RC(w, submit(w, items, BELAY_SUBMIT_MAX, out), BELAY_OK);
    for (size_t i = 0; i < BELAY_SUBMIT_MAX; i++)
        TAP_OK(w->t, out[i].duplicate && out[i].state == BELAY_STATE_WAITING);
    TAP_EQ(w->t, listed(w, "executions").n, BELAY_SUBMIT_MAX);
}

static void a_thousand_are_one_commit(struct tap *t)
{
    work_everywhere(t, on_thousand);
}

/* --- round trips --- */

/* Reads and commits of one submission: so many; where rows are kept it may be fewer, or one
 * to confirm what was not asked for. */
static void trips(struct work *w, const struct belay_submission *items, size_t n,
                  struct belay_submitted *out, unsigned want)
{
    trace_reset(w->driver);
    WORK_RC(w, submit(w, items, n, out), BELAY_OK);
    struct trace_counts c = trace_counts(w->driver);
    uint64_t took = c.reads + c.commits;
    TAP_EQ(w->t, c.failures, 0);
    if (w->driver->caps & DRIVER_FAR)
        TAP_OK(w->t, took <= want + 1);
    else
        TAP_EQ(w->t, took, want);
}

/* A route whose name is next to that of `full` in the roster, in arg's direction. */
static belay_rc neighbour_body(struct txn *t, void *arg)
{
    char route[ROUTE_MAX];

    route_make(bytes_str("arch=arm,gpu"), route);
    route[ROUTE_MAX - 2] = (char)(route[ROUTE_MAX - 2] + *(const int *)arg);
    return lane_enter(t, bytes_str(full.lane), bytes_str(route), bytes_str("x"), 0);
}

static void on_trips(struct work *w)
{
    enum { N = 300 };
    static struct belay_submission items[N];
    static struct belay_submitted out[N];
    static char keys[N][16];

    if (!work_is_traced(w))
        return;
    (void)submit_one(w, &plain); /* the namespace is founded */
    for (int way = -1; way <= 1; way += 2)
        WORK_RC(w, work_run(w, w->space, neighbour_body, &way), BELAY_OK);
    work_process(w, full.process);
    trips(w, &full, 1, out, 3); /* a new route */
    struct belay_submission known = full;
    known.key = NULL;
    known.key_window_ms = 0;
    trips(w, &known, 1, out, 2);
    trips(w, &plain, 1, out, 2);
    trips(w, &full, 1, out, 2); /* a duplicate */
    size_t len = PAYLOAD_INLINE_MAX + 1;
    struct belay_submission s = with_payload(filled(w, len, 1), len, false);
    trips(w, &s, 1, out, 2);
    trips(w, &s, 1, out, 2); /* its blob is there */
    for (size_t i = 0; i < N; i++) {
        items[i] = i % 2 ? full : s;
        (void)snprintf(keys[i], sizeof(keys[i]), "key%zu", i);
        items[i].key = keys[i];
    }
    trips(w, items, N, out, 2);
    trips(w, items, N, out, 2);
}

static void takes_two_round_trips(struct tap *t)
{
    work_everywhere(t, on_trips);
}

/* --- lanes --- */

static void on_lanes(struct work *w)
{
    struct belay_submission s = plain;
    char route[ROUTE_MAX];

    (void)submit_one(w, &s);
    const struct row *lane = look(w, &row_lane, "l");
    TAP_STR(w->t, text_at(w, lane, LANE_STATE), "active");
    TAP_EQ(w->t, row_i64(lane, LANE_CREATED_AT_MS, -1), START_MS);
    TAP_STR(w->t, text_at(w, look2(w, &row_route, "l", "-"), ROUTE_REQUIRES), NULL);
    stands(w, "lanes", 0, "l");
    stands(w, "routes/l", 0, "-");
    pass_ms(w, 1000);
    s.requires = needs;
    s.n_requires = 2;
    struct belay_submitted out = submit_one(w, &s);
    TAP_EQ(w->t,
           row_i64(look(w, &row_execution, out.execution_id), EXEC_RETENTION_MS, -1),
           BELAY_RETENTION_MS);
    s.retention_ms = 5;
    out = submit_one(w, &s);
    TAP_EQ(w->t,
           row_i64(look(w, &row_execution, out.execution_id), EXEC_RETENTION_MS, -1),
           5);
    TAP_EQ(w->t, row_i64(look(w, &row_lane, "l"), LANE_CREATED_AT_MS, -1), START_MS);
    stands(w, "lanes", 0, "l");
    TAP_EQ(w->t, listed(w, "routes/l").n, 2);
    route_make(bytes_str("arch=arm,gpu"), route);
    TAP_STR(w->t, text_at(w, look2(w, &row_route, "l", route), ROUTE_REQUIRES),
            "arch=arm,gpu");
    /* Neighbours in the roster are not mistaken for one another. */
    for (int i = 0; i < 40; i++) {
        char name[16];
        const char *one[] = { name };
        (void)snprintf(name, sizeof(name), "c%d", i);
        s.requires = one;
        s.n_requires = 1;
        (void)submit_one(w, &s);
        (void)submit_one(w, &s);
        TAP_EQ(w->t, listed(w, "routes/l").n, 3 + i);
    }
}

static void enters_lanes_and_routes_once(struct tap *t)
{
    work_everywhere(t, on_lanes);
}

/* --- the book --- */

struct booking {
    struct work *w;
    struct lane_book *book;
};

static struct lane_view view(struct booking *b, const char *const *lanes, size_t n,
                             const char *has, bool anew)
{
    struct lane_view v = { .n_ready = 99 };
    struct bytes names[8];

    for (size_t i = 0; i < n; i++)
        names[i] = bytes_str(lanes[i]);
    WORK_RC(b->w,
            lane_view(b->book, b->w->space,
                      &(struct lane_query){ names, n, bytes_str(has) }, anew,
                      &b->w->arena, &v, &b->w->err),
            BELAY_OK);
    return v;
}

struct roster_scan {
    const struct lane_view *v;
    struct hits hits;
};

static belay_rc roster_body(struct txn *t, void *arg)
{
    struct roster_scan *r = arg;
    struct scan scan = { .indexes = r->v->rosters,
                         .n_indexes = r->v->n_rosters,
                         .limit = ROUTES_MAX };

    return txn_scan(t, &scan, &r->hits);
}

static bool holds(struct work *w, const struct lane_view *v)
{
    struct roster_scan r = { .v = v };

    WORK_RC(w, txn_run(w->space, roster_body, &r, NULL, &w->arena, &w->err), BELAY_OK);
    return lane_view_holds(v, &r.hits);
}

static void need(struct work *w, const char *lane, const char *token)
{
    struct belay_submission s = { .lane = lane, .requires = &token, .n_requires = 1 };

    if (!token)
        s.n_requires = 0;
    (void)submit_one(w, &s);
}

static void on_book(struct work *w)
{
    static const char *const both[] = { "a", "b", "a", "nowhere" };
    struct booking b = { .w = w };
    struct lane_view v;

    WORK_RC(w, lane_book_open(&b.book, &w->err), BELAY_OK);
    v = view(&b, both, 4, "", false);
    TAP_EQ(w->t, v.n_ready, 0);
    TAP_EQ(w->t, v.n_rosters, 3);
    TAP_OK(w->t, holds(w, &v));
    need(w, "a", NULL);
    TAP_OK(w->t, !holds(w, &v));
    v = view(&b, both, 4, "", false); /* from the book */
    TAP_EQ(w->t, v.n_ready, 0);
    TAP_OK(w->t, !holds(w, &v));
    v = view(&b, both, 4, "", true);
    TAP_EQ(w->t, v.n_ready, 1);
    TAP_OK(w->t, bytes_eq(v.ready[0], bytes_str("lane/a/-")));
    TAP_OK(w->t, holds(w, &v));
    need(w, "b", NULL);
    need(w, "a", "gpu");
    need(w, "b", "gpu");
    need(w, "b", "tpu");
    v = view(&b, both, 4, "", true);
    TAP_EQ(w->t, v.n_ready, 2);
    TAP_EQ(w->t, v.n_routes, 5);
    TAP_OK(w->t, holds(w, &v));
    v = view(&b, both, 4, "cpu,gpu", false);
    TAP_EQ(w->t, v.n_ready, 4);
    TAP_OK(w->t, holds(w, &v));
    v = view(&b, both, 4, "cpu,gpu,tpu", false);
    TAP_EQ(w->t, v.n_ready, 5);
    v = view(&b, both + 1, 1, "gpu", false);
    TAP_EQ(w->t, v.n_ready, 2);
    TAP_OK(w->t, holds(w, &v));
    /* As many as before, but others. */
    struct lane_view other = view(&b, both, 1, "", false);
    need(w, "c", NULL);
    need(w, "c", "x");
    other.rosters[0] = bytes_str("routes/c");
    TAP_OK(w->t, !holds(w, &other));
    lane_book_close(b.book);
    lane_book_close(NULL);
}

static void a_view_has_the_routes_that_fit(struct tap *t)
{
    work_everywhere(t, on_book);
}

static void on_book_trips(struct work *w)
{
    static const char *const lanes[] = { "a", "b", "nowhere" };
    struct booking b = { .w = w };

    if (!work_is_traced(w))
        return;
    need(w, "a", NULL);
    need(w, "b", "gpu");
    WORK_RC(w, lane_book_open(&b.book, &w->err), BELAY_OK);
    trace_reset(w->driver);
    (void)view(&b, lanes, 3, "", false);
    TAP_EQ(w->t, trace_counts(w->driver).reads, 1);
    TAP_EQ(w->t, trace_counts(w->driver).commits, 0);
    (void)view(&b, lanes, 3, "", false);
    TAP_EQ(w->t, trace_counts(w->driver).reads, 1);
    (void)view(&b, lanes, 3, "", true);
    TAP_EQ(w->t, trace_counts(w->driver).reads, 2);
    lane_book_close(b.book);
}

static void a_book_is_read_once(struct tap *t)
{
    work_everywhere(t, on_book_trips);
}

/* More routes than a scan shows. */
static belay_rc routes_body(struct txn *t, void *arg)
{
    size_t *next = arg, first = *next;
    belay_rc rc = BELAY_OK;

    for (size_t i = first; i < first + 1000 && rc == BELAY_OK; i++) {
        char token[24], route[ROUTE_MAX];
        (void)snprintf(token, sizeof(token), "c%zu", i);
        route_make(bytes_str(token), route);
        rc = lane_enter(t, bytes_str("a"), bytes_str(route), bytes_str(token), 0);
    }
    return rc;
}

static void a_view_of_very_many_routes_is_whole(struct tap *t)
{
    static const char *const lanes[] = { "a" };
    struct work w;
    struct booking b = { .w = &w };

    if (work_open(&w, t, ON_MEMORY)) {
        WORK_RC(&w, lane_book_open(&b.book, &w.err), BELAY_OK);
        for (size_t next = 0; next < 5000; next += 1000)
            WORK_RC(&w, work_run(&w, w.space, routes_body, &next), BELAY_OK);
        struct lane_view v = view(&b, lanes, 1, "c17,c4999", false);
        TAP_EQ(t, v.n_routes, 5000);
        TAP_EQ(t, v.n_ready, 2);
        TAP_OK(t, holds(&w, &v));
        need(&w, "a", "c6000");
        v = view(&b, lanes, 1, "c17,c6000", false);
        TAP_EQ(t, v.n_routes, 5001);
        TAP_EQ(t, v.n_ready, 2);
        TAP_OK(t, holds(&w, &v));
        lane_book_close(b.book);
    }
    work_close(&w);
}

/* Two sets of one name: nothing is entered, nothing is mixed up. */
static belay_rc mixed_body(struct txn *t, void *arg)
{
    (void)arg;
    return lane_enter(t, bytes_str("l"), bytes_str("-"), bytes_str("gpu"), 0);
}

static void on_mixed(struct work *w)
{
    (void)submit_one(w, &plain);
    WORK_RC(w, work_run(w, w->space, mixed_body, NULL), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "route");
}

static void a_route_has_one_set_of_capabilities(struct tap *t)
{
    work_everywhere(t, on_mixed);
}

/* --- faults --- */

/* Memory below faults below a trace; the faults are armed at *out. */
static bool open_faulty(struct work *w, struct tap *t, struct driver **out)
{
    if (!work_open(w, t, ON_MEMORY))
        return false;
    store_close(w->store);
    w->store = NULL;
    if (!WORK_RC(w, fault_wrap(out, w->driver, &w->config.clock, &w->err), BELAY_OK))
        return false;
    w->driver = *out;
    if (!WORK_RC(w, trace_wrap(&w->driver, *out, NULL, NULL, &w->err), BELAY_OK))
        return false;
    w->store = work_store(w);
    w->space = work_space(w, w->store, "default");
    return w->space != NULL;
}

static void reads_everything_at_once_when_run_again(struct tap *t)
{
    enum { N = 50 };
    static const struct fault conflict = { FAULT_ON_COMMIT, FAULT_CONFLICT, .nth = 1 };
    struct belay_submission items[N];
    struct belay_submitted out[N];
    struct driver *faulty = NULL;
    struct work w;

    if (open_faulty(&w, t, &faulty)) {
        for (size_t i = 0; i < N; i++)
            items[i] = plain;
        (void)submit_one(&w, &plain);
        WORK_RC(&w, fault_arm(faulty, &conflict, &w.err), BELAY_OK);
        trace_reset(w.driver);
        WORK_RC(&w, submit(&w, items, N, out), BELAY_OK);
        TAP_EQ(t, trace_counts(w.driver).reads, 2);
        TAP_EQ(t, trace_counts(w.driver).commits, 2);
        TAP_EQ(t, listed(&w, "executions").n, N + 1);
    }
    work_close(&w);
}

static void stores_all_or_nothing_when_the_store_fails(struct tap *t)
{
    static const struct fault faults[] = {
        { FAULT_ON_READ, FAULT_BEFORE, .nth = 1 },
        { FAULT_ON_READ, FAULT_BEFORE, .nth = 2 },
        { FAULT_ON_COMMIT, FAULT_BEFORE, .nth = 1, .sticky = true },
    };
    struct driver *faulty = NULL;
    struct belay_submitted out[2];
    struct work w;

    if (open_faulty(&w, t, &faulty)) {
        struct belay_submission items[] = { plain, full };
        (void)submit_one(&w, &plain);
        work_process(&w, full.process);
        for (size_t i = 0; i < COUNT_OF(faults); i++) {
            struct buf before = work_dump(&w, "default");
            WORK_RC(&w, fault_arm(faulty, &faults[i], &w.err), BELAY_OK);
            WORK_RC(&w, submit(&w, items, 2, out), BELAY_UNAVAILABLE);
            fault_clear(faulty);
            TAP_OK(t, is_unchanged(&w, &before));
        }
        /* A reply that is lost: once, and known. */
        WORK_RC(&w,
                fault_arm(faulty,
                          &(struct fault){ FAULT_ON_COMMIT, FAULT_AFTER, .nth = 1 },
                          &w.err),
                BELAY_OK);
        WORK_RC(&w, submit(&w, items, 2, out), BELAY_OK);
        TAP_OK(t, !out[0].duplicate && !out[1].duplicate);
        TAP_EQ(t, listed(&w, "executions").n, 3);
        /* The state of a duplicate that cannot be read: the answer stands. */
        WORK_RC(&w,
                fault_arm(faulty,
                          &(struct fault){ FAULT_ON_READ, FAULT_BEFORE, .nth = 2 },
                          &w.err),
                BELAY_OK);
        items[0] = full;
        items[1] = plain;
        const char *id = out[1].execution_id;
        WORK_RC(&w, submit(&w, items, 2, out), BELAY_OK);
        TAP_OK(t, out[0].duplicate && out[0].state == BELAY_STATE_ANY);
        TAP_STR(t, out[0].execution_id, id);
        TAP_EQ(t, out[1].state, BELAY_STATE_WAITING);
        TAP_EQ(t, listed(&w, "executions").n, 4);
    }
    work_close(&w);
}

/* --- what was stored ahead and swept --- */

struct creating {
    const struct submit_item *item;
    int32_t state;
};

static belay_rc create_body(struct txn *t, void *arg)
{
    struct creating *c = arg;

    return submit_create(t, c->item, START_MS, &c->state);
}

static void on_swept(struct work *w)
{
    size_t len = PAYLOAD_INLINE_MAX + 5;
    struct belay_submission s = with_payload(filled(w, len, 9), len, false);
    struct submit_item item;
    struct creating c = { .item = &item };

    WORK_RC(w, submit_prepare(&s, w->space, &w->arena, &item, &w->err), BELAY_OK);
    item.stored = true; /* and nothing is there */
    WORK_RC(w, txn_run(w->space, create_body, &c, NULL, &w->arena, &w->err), BELAY_OK);
    TAP_EQ(w->t, c.state, BELAY_STATE_WAITING);
    check_blob(w, item.id, s.payload, len);
}

static void writes_a_blob_again_that_was_swept(struct tap *t)
{
    work_everywhere(t, on_swept);
}

/* --- at the same time --- */

enum { THREADS = 4, EACH = 25 };

struct racer {
    struct work *w;
    pthread_t thread;
    char ids[EACH][ID_MAX];
    int created;
    belay_rc rc;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    struct exec_site site = site_of(r->w);
    CLEANUP(arena_release) struct belay_arena arena = { 0 };

    for (int i = 0; i < EACH && !r->rc; i++) {
        struct belay_submission items[2] = { plain, plain };
        struct belay_submitted out[2];
        struct belay_error err;
        char key[16], lane[16];
        (void)snprintf(key, sizeof(key), "k%d", i);
        (void)snprintf(lane, sizeof(lane), "lane%d", i);
        items[0].key = key;
        items[0].lane = items[1].lane = lane;
        r->rc = exec_submit(&site, items, 2, &arena, out, &err);
        if (r->rc)
            break;
        r->created += !out[0].duplicate;
        memcpy(r->ids[i], out[0].execution_id, strlen(out[0].execution_id) + 1);
        arena_reset(&arena);
    }
    return NULL;
}

static void on_race(struct work *w)
{
    struct racer racers[THREADS] = { 0 };
    int created = 0;

    for (size_t i = 0; i < THREADS; i++) {
        racers[i].w = w;
        TAP_EQ(w->t, pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(racers[i].thread, NULL);
        TAP_EQ(w->t, racers[i].rc, BELAY_OK);
        created += racers[i].created;
    }
    TAP_EQ(w->t, created, EACH);
    for (size_t i = 1; i < THREADS; i++) {
        for (int k = 0; k < EACH; k++)
            TAP_STR(w->t, racers[i].ids[k], racers[0].ids[k]);
    }
    TAP_EQ(w->t, listed(w, "executions").n, EACH + THREADS * EACH);
    TAP_EQ(w->t, listed(w, "lanes").n, EACH);
}

static void many_submit_one_key_at_once(struct tap *t)
{
    work_everywhere(t, on_race);
}

/* Each asks for its own lanes while routes are added. */
struct reader {
    struct booking b;
    pthread_t thread;
    struct belay_arena arena;
    bool bad;
};

static void *read_book(void *arg)
{
    struct reader *r = arg;
    const struct bytes lanes[] = { bytes_str("a"), bytes_str("b") };

    for (int i = 0; i < 200; i++) {
        struct lane_view v;
        struct belay_error err;
        r->bad |= lane_view(r->b.book, r->b.w->space,
                            &(struct lane_query){ lanes, 2, bytes_str("gpu") },
                            i % 3 == 0, &r->arena, &v, &err) != BELAY_OK ||
                  v.n_rosters != 2 || v.n_ready > v.n_routes;
        arena_reset(&r->arena);
    }
    return NULL;
}

static void many_read_one_book(struct tap *t)
{
    struct reader readers[THREADS] = { 0 };
    struct booking b;
    struct work w;

    b.w = &w;
    if (work_open(&w, t, ON_MEMORY)) {
        WORK_RC(&w, lane_book_open(&b.book, &w.err), BELAY_OK);
        for (size_t i = 0; i < THREADS; i++) {
            readers[i].b = b;
            TAP_EQ(t, pthread_create(&readers[i].thread, NULL, read_book, &readers[i]),
                   0);
        }
        for (int i = 0; i < 50; i++) {
            char token[16];
            (void)snprintf(token, sizeof(token), "c%d", i);
            need(&w, i % 2 ? "a" : "b", token);
        }
        for (size_t i = 0; i < THREADS; i++) {
            (void)pthread_join(readers[i].thread, NULL);
            TAP_OK(t, !readers[i].bad);
            arena_release(&readers[i].arena);
        }
        lane_book_close(b.book);
    }
    work_close(&w);
}

static const struct tap_case cases[] = {
    { "a submission with a lane alone has the usual of everything",
      stores_the_usual_one },
    { "everything that is given is stored, and indexed",
      stores_everything_that_was_given },
    { "it waits until the later of delay and time, and no later than the end of time",
      waits_until_the_later_time },
    { "short payloads stay in the row, byte by byte", keeps_short_payloads_in_the_row },
    { "long payloads go to blobs, touched when they are there",
      puts_long_payloads_into_blobs },
    { "more long payloads than a commit should carry are stored ahead",
      stores_many_long_payloads_ahead },
    { "of a batch that is refused no blob is stored",
      stores_no_blob_of_what_is_refused },
    { "each field is refused with its reason, and nothing is stored",
      refuses_each_field_with_its_reason },
    { "a payload that is too large, or becomes it, is refused",
      refuses_a_payload_that_is_too_large },
    { "each field reaches to its limit", takes_every_field_to_its_limit },
    { "a repeated key is a duplicate, however the same thing is said",
      answers_a_repeated_key_with_its_execution },
    { "a key for anything else is a conflict, and nothing is stored",
      refuses_a_key_that_stands_for_something_else },
    { "what is almost the same is not the same", tells_what_is_almost_the_same_apart },
    { "a key is free when its window is over", forgets_a_key_with_its_window },
    { "a key outlives its purged execution", knows_the_key_of_a_purged_one },
    { "a batch may say the same twice, and not two things by one key",
      one_batch_may_repeat_itself },
    { "a thousand are one commit, or none", a_thousand_are_one_commit },
    { "submitting takes two round trips", takes_two_round_trips },
    { "lanes and routes are entered once, with their first execution",
      enters_lanes_and_routes_once },
    { "a view has the routes that fit, and knows when it is old",
      a_view_has_the_routes_that_fit },
    { "a book is read in one round trip, once", a_book_is_read_once },
    { "a view of more routes than a scan shows is whole",
      a_view_of_very_many_routes_is_whole },
    { "a route has one set of capabilities", a_route_has_one_set_of_capabilities },
    { "run again, a batch reads all its rows at once",
      reads_everything_at_once_when_run_again },
    { "a store that fails has all of a batch or nothing",
      stores_all_or_nothing_when_the_store_fails },
    { "a blob that was stored ahead and swept is written again",
      writes_a_blob_again_that_was_swept },
    { "threads: of many who submit one key at once one creates",
      many_submit_one_key_at_once },
    { "threads: a book serves many at once", many_read_one_book },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
