/* Executions at the door: what callers may say, what is refused, and how structs of
 * callers that know more or less are read. */
#include "api/op_execution.h"
#include "base/json.h"
#include "tap.h"

/* --- JSON --- */

static json_t *parsed(const char *text)
{
    json_t *value = NULL;

    return json_read(bytes_str(text), 65536, &value, NULL) == BELAY_OK ? value : NULL;
}

static void reads_submissions(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_submission s;
    struct belay_error err = { 0 };
    json_t *value CLEANUP(json_decrefp) = parsed(
        "{\"lane\":\"l\",\"kind\":\"k\",\"payload\":{\"b\":1,\"a\":[1.50]},"
        "\"priority\":7,"
        "\"run_at_ms\":2,\"deadline_ms\":3,\"attempt_timeout_ms\":4,"
        "\"retry\":{\"backoff\":{\"type\":\"exponential\",\"initial_delay_ms\":5,"
        "\"max_delay_ms\":6,\"multiplier\":1.5,\"jitter\":false},"
        "\"retryable\":[\"timeout\"]},\"requires\":[\"gpu\",\"eu\"],\"tags\":{\"a\":"
        "\"b\"},"
        "\"session\":\"s\",\"process\":\"p\",\"key\":\"key\",\"key_window_ms\":8,"
        "\"max_reclaims\":0,\"retention_ms\":9,\"creator\":\"me\","
        "\"traceparent\":\"tp\",\"tracestate\":\"ts\"}");

    if (!TAP_EQ(t, op_read_submission(value, &arena, &s, &err), BELAY_OK))
        return;
    TAP_EQ(t, s.size, sizeof(s));
    TAP_STR(t, s.lane, "l");
    TAP_STR(t, s.kind, "k");
    TAP_STR(t, s.payload, "{\"a\":[1.5],\"b\":1}");
    TAP_OK(t, s.payload_is_json);
    TAP_EQ(t, s.priority, 7);
    TAP_EQ(t, s.delay_ms, 0);
    TAP_EQ(t, s.run_at_ms, 2);
    TAP_EQ(t, s.deadline_ms, 3);
    TAP_EQ(t, s.attempt_timeout_ms, 4);
    TAP_EQ(t, s.retry->max_retries, BELAY_MAX_RETRIES);
    TAP_EQ(t, s.retry->backoff, BELAY_BACKOFF_EXPONENTIAL);
    TAP_EQ(t, s.retry->delay_ms, 5);
    TAP_EQ(t, s.retry->max_delay_ms, 6);
    TAP_OK(t, s.retry->multiplier == 1.5 && s.retry->no_jitter);
    TAP_EQ(t, s.retry->n_retryable, 1);
    TAP_STR(t, s.retry->retryable[0], "timeout");
    TAP_EQ(t, s.n_requires, 2);
    TAP_STR(t, s.requires[1], "eu");
    TAP_EQ(t, s.n_tags, 1);
    TAP_STR(t, s.tags[0].value, "b");
    TAP_STR(t, s.session, "s");
    TAP_STR(t, s.process, "p");
    TAP_STR(t, s.key, "key");
    TAP_EQ(t, s.key_window_ms, 8);
    TAP_EQ(t, s.max_reclaims, -1); /* none, which 0 does not mean in the struct */
    TAP_EQ(t, s.retention_ms, 9);
    TAP_STR(t, s.creator, "me");
    TAP_STR(t, s.traceparent, "tp");
    TAP_STR(t, s.tracestate, "ts");
}

static void reads_little(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *bytes CLEANUP(json_decrefp) =
        parsed("{\"lane\":\"l\",\"payload_base64\":\"AP8=\",\"kind\":null}");
    json_t *none CLEANUP(json_decrefp) = parsed("{\"lane\":\"l\",\"payload\":null}");
    struct belay_submission s;

    if (!TAP_EQ(t, op_read_submission(bytes, &arena, &s, NULL), BELAY_OK))
        return;
    TAP_OK(t, !s.payload_is_json && !s.kind && !s.retry && s.n_tags == 0);
    TAP_OK(t, bytes_eq(bytes_of(s.payload, s.payload_len), bytes_of("\0\xff", 2)));
    TAP_EQ(t, s.max_reclaims, BELAY_MAX_RECLAIMS);
    TAP_EQ(t, op_read_submission(none, &arena, &s, NULL), BELAY_OK);
    TAP_STR(t, s.payload, "null"); /* which is JSON, and not nothing */
}

/* A 0 that is given is not what a struct means by it. */
static void reads_zeros(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *value CLEANUP(json_decrefp) =
        parsed("{\"lane\":\"l\",\"retention_ms\":0,\"max_reclaims\":0,\"retry\":{"
               "\"backoff\":{\"type\":\"fixed\",\"delay_ms\":0}}}");
    struct belay_submission s;

    if (!TAP_EQ(t, op_read_submission(value, &arena, &s, NULL), BELAY_OK))
        return;
    TAP_EQ(t, s.retention_ms, -1);
    TAP_EQ(t, s.max_reclaims, -1);
    TAP_EQ(t, s.retry->delay_ms, -1);
    json_t *absent CLEANUP(json_decrefp) =
        parsed("{\"lane\":\"l\",\"retention_ms\":null,\"deadline_ms\":null,\"retry\":{"
               "\"backoff\":{\"type\":\"fixed\"}}}");
    TAP_EQ(t, op_read_submission(absent, &arena, &s, NULL), BELAY_OK);
    TAP_OK(t, s.retention_ms == 0 && s.deadline_ms == 0 && s.retry->delay_ms == 0);
}

/* clang-format off */
static const struct { const char *text, *entity; } refused[] = {
    { "[]", "" },
    { "{}", "lane" },
    { "{\"lane\":7}", "lane" },
    { "{\"lane\":\"l\",\"lanes\":[]}", "lanes" },
    { "{\"lane\":\"l\",\"priority\":9001}", "priority" },
    { "{\"lane\":\"l\",\"priority\":-1}", "priority" },
    { "{\"lane\":\"l\",\"priority\":\"7\"}", "priority" },
    { "{\"lane\":\"l\",\"delay_ms\":1.5}", "delay_ms" },
    { "{\"lane\":\"l\",\"deadline_ms\":0}", "deadline_ms" },
    { "{\"lane\":\"l\",\"attempt_timeout_ms\":0}", "attempt_timeout_ms" },
    { "{\"lane\":\"l\",\"key\":\"k\",\"key_window_ms\":0}", "key_window_ms" },
    { "{\"lane\":\"l\",\"retention_ms\":-1}", "retention_ms" },
    { "{\"lane\":\"l\",\"tags\":[]}", "tags" },
    { "{\"lane\":\"l\",\"tags\":{\"a\":1}}", "a" },
    { "{\"lane\":\"l\",\"requires\":\"gpu\"}", "requires" },
    { "{\"lane\":\"l\",\"requires\":[1]}", "requires" },
    { "{\"lane\":\"l\",\"payload\":1,\"payload_base64\":\"\"}", "payload_base64" },
    { "{\"lane\":\"l\",\"payload_base64\":\"!\"}", "payload_base64" },
    { "{\"lane\":\"l\",\"payload_base64\":1}", "payload_base64" },
    { "{\"lane\":\"l\",\"retry\":3}", "retry" },
    { "{\"lane\":\"l\",\"retry\":{\"max\":3}}", "max" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{}}}", "type" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"linear\"}}}", "type" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"fixed\",\"max_delay_ms\":1}}}", "max_delay_ms" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"exponential\",\"jitter\":1}}}", "jitter" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"exponential\",\"multiplier\":\"2\"}}}", "multiplier" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"exponential\",\"multiplier\":0}}}", "multiplier" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"exponential\",\"initial_delay_ms\":0}}}", "initial_delay_ms" },
    { "{\"lane\":\"l\",\"retry\":{\"backoff\":{\"type\":\"exponential\",\"max_delay_ms\":0}}}", "max_delay_ms" },
};
/* clang-format on */

static void refuses_submissions(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct belay_arena arena CLEANUP(arena_release) = { 0 };
        json_t *value CLEANUP(json_decrefp) = parsed(refused[i].text);
        struct belay_submission s = { .priority = 77 };
        struct belay_error err = { 0 };
        bool good =
            TAP_EQ(t, op_read_submission(value, &arena, &s, &err), BELAY_INVALID);

        good &= TAP_STR(t, err.reason, "field");
        good &= TAP_STR(t, err.entity, refused[i].entity);
        good &= TAP_EQ(t, s.priority, 77);
        if (!good)
            printf("# %s: %s\n", refused[i].text, err.message);
    }
}

static void reads_many(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *text; size_t n; } many[] = {
        { "[1,2]", 2 }, { "{\"items\":[1,2,3]}", 3 }, { "1\n2\r\n\n \n3", 3 }, { "{\n\"a\":1\n}\n", 1 },
        { "{\"a\":1}\n{\"a\":2}\n", 2 }, { "", 0 }, { "\n", 0 }, { "[]", 0 }, { "1\n{\n", 0 }, { "[1,2,3,4]", 0 },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(many); i++) {
        json_t *list = NULL;
        struct belay_error err = { 0 };
        belay_rc rc = op_read_many(bytes_str(many[i].text), 3, &list, &err);

        TAP_EQ(t, rc, many[i].n > 0 ? BELAY_OK : BELAY_INVALID);
        TAP_EQ(t, json_array_size(list), many[i].n);
        json_decref(list);
    }
    struct belay_error err = { 0 };
    json_t *list = NULL;
    TAP_EQ(t, op_read_many(bytes_str("1\n2\n{"), 9, &list, &err), BELAY_INVALID);
    TAP_OK(t, strncmp(err.message, "line 3: ", 8) == 0 && !list);
}

static void reads_backoffs(struct tap *t)
{
    /* clang-format off */
    static const struct { const char *text; int backoff; int64_t first, longest; } backoffs[] = {
        { "fixed:5s", BELAY_BACKOFF_FIXED, 5000, 0 }, { "fixed:0ms", BELAY_BACKOFF_FIXED, -1, 0 },
        { "exp:1s..2m", BELAY_BACKOFF_EXPONENTIAL, 1000, 120000 },
        { "exp:1s..1s", BELAY_BACKOFF_EXPONENTIAL, 1000, 1000 },
        { "exp:0ms..0ms", -1, 0, 0 }, { "exp:0ms..1s", -1, 0, 0 }, { "exp:1s..0ms", -1, 0, 0 }, { "exp:10s..1s", -1, 0, 0 },
        { "", -1, 0, 0 }, { "fixed:", -1, 0, 0 }, { "fixed:5", -1, 0, 0 }, { "exp:", -1, 0, 0 }, { "exp:1s", -1, 0, 0 },
        { "exp:1s..", -1, 0, 0 }, { "exp:..1s", -1, 0, 0 }, { "exp:1s..2s..3s", -1, 0, 0 }, { "linear:1s", -1, 0, 0 },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(backoffs); i++) {
        struct belay_retry_policy p = { 0 };
        bool good = op_read_backoff(bytes_str(backoffs[i].text), &p);

        if (!TAP_EQ(t, good, backoffs[i].backoff >= 0))
            printf("# %s\n", backoffs[i].text);
        if (!good)
            continue;
        TAP_EQ(t, p.backoff, backoffs[i].backoff);
        TAP_EQ(t, p.delay_ms, backoffs[i].first);
        TAP_EQ(t, p.max_delay_ms, backoffs[i].longest);
    }
}

static void reads_policies(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *value CLEANUP(json_decrefp) =
        parsed("{\"lanes\":[\"a\",\"b\"],\"worker\":\"w\",\"capabilities\":[\"gpu\"],"
               "\"max\":5,\"lease_ms\":0,\"wait_ms\":7}");
    json_t *least CLEANUP(json_decrefp) = parsed("{\"worker\":\"w\"}");
    json_t *wrong CLEANUP(json_decrefp) = parsed("{\"worker\":\"w\",\"max\":0}");
    struct belay_claim_policy p;

    TAP_EQ(t, op_read_policy(value, &arena, &p, NULL), BELAY_OK);
    TAP_OK(t, p.n_lanes == 2 && p.n_capabilities == 1 && p.max == 5);
    TAP_EQ(t, p.lease_ms, -1);
    TAP_EQ(t, p.max_wait_ms, 7);
    TAP_EQ(t, op_read_policy(least, &arena, &p, NULL), BELAY_OK);
    TAP_OK(t, p.max == 1 && p.lease_ms == BELAY_EXECUTION_LEASE_MS && !p.lanes);
    TAP_EQ(t, op_read_policy(wrong, &arena, &p, NULL), BELAY_INVALID);
}

static void base64_comes_back(struct tap *t)
{
    uint8_t content[70];

    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(i * 37);
    for (size_t len = 0; len <= sizeof(content); len++) {
        struct belay_arena arena CLEANUP(arena_release) = { 0 };
        json_t *text CLEANUP(json_decrefp) = op_to_base64(bytes_of(content, len));
        bool no_memory = false;
        size_t back_len = 99;
        const void *back =
            op_base64(bytes_of(json_string_value(text), json_string_length(text)),
                      &arena, &back_len, &no_memory);
        TAP_OK(t, bytes_eq(bytes_of(back, back_len), bytes_of(content, len)));
    }
}

/* --- structs --- */

struct future_submission {
    struct belay_submission known;
    int64_t more;
};

static void reads_lists_of_any_version(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_submitted out[2] = { { .state = 77 }, { .state = 77 } };
    struct future_submission items[2] = {
        { .known = { .size = sizeof(items[0]), .lane = "a" } },
        { .known = { .size = sizeof(items[0]), .lane = "b" } },
    };
    struct belay_error err = { 0 };
    struct belay *b = NULL;

    if (!TAP_EQ(t, belay_open("memory:", NULL, &b, &err), BELAY_OK))
        return;
    items[1].more = 1;
    TAP_EQ(t, belay_execution_submit(b, &items[0].known, 2, &arena, out, &err),
           BELAY_MISUSE);
    TAP_EQ(t, out[0].state, 77);
    items[1].more = 0;
    TAP_EQ(t, belay_execution_submit(b, &items[0].known, 2, &arena, out, &err),
           BELAY_OK);
    TAP_EQ(t, out[1].state, BELAY_STATE_WAITING);
    struct belay_execution e;
    TAP_EQ(t, belay_execution_describe(b, out[1].execution_id, &arena, &e, &err),
           BELAY_OK);
    TAP_STR(t, e.lane, "b");
    items[1].known.size = sizeof(struct belay_submission);
    TAP_EQ(t, belay_execution_submit(b, &items[0].known, 2, &arena, out, &err),
           BELAY_MISUSE); /* all of one version */
    belay_close(b);
}

static void reads_policies_of_any_version(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct {
        struct belay_retry_policy known;
        int64_t more;
    } retry = { .known = { .size = sizeof(retry), .max_retries = 2 } };
    struct belay_submission item = { .size = sizeof(item),
                                     .lane = "l",
                                     .retry = &retry.known };
    struct belay_submitted out;
    struct belay_execution e;
    struct belay *b = NULL;

    if (!TAP_EQ(t, belay_open("memory:", NULL, &b, NULL), BELAY_OK))
        return;
    TAP_EQ(t, belay_execution_submit(b, &item, 1, &arena, &out, NULL), BELAY_OK);
    TAP_EQ(t, belay_execution_describe(b, out.execution_id, &arena, &e, NULL),
           BELAY_OK);
    TAP_STR(t, e.policy, "{\"retry\":{\"max_retries\":2}}");
    retry.known.size = 7;
    TAP_EQ(t, belay_execution_submit(b, &item, 1, &arena, &out, NULL), BELAY_MISUSE);
    belay_close(b);
}

/* The caller's struct may be shorter than ours, or longer. */
static void counts_into_any_version(struct tap *t)
{
    struct {
        struct belay_execution_stats known;
        int64_t more;
    } stats = { .known = { .size = sizeof(stats) }, .more = 77 };
    struct belay *b = NULL;

    if (!TAP_EQ(t, belay_open("memory:", NULL, &b, NULL), BELAY_OK))
        return;
    TAP_EQ(t, belay_execution_count(b, &stats.known, NULL), BELAY_OK);
    TAP_EQ(t, stats.known.size, sizeof(stats));
    TAP_EQ(t, stats.known.next_due_at_ms, BELAY_TIME_NONE);
    TAP_EQ(t, stats.more, 77);
    stats.known.size = 8;
    TAP_EQ(t, belay_execution_count(b, &stats.known, NULL), BELAY_MISUSE);
    belay_close(b);
}

static void refuses_nothing(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *none[] = { NULL };
    const struct belay_tag no_tag = { .key = NULL };
    const struct belay_handle hollow = { .opaque_len = 3 };
    struct belay_submission item = { .size = sizeof(item), .lane = "l" };
    struct belay_claim_policy policy = { .size = sizeof(policy), .worker = "w" };
    struct belay_frame frame = { .size = sizeof(frame), .len = 1 };
    struct belay_completion done = { .size = sizeof(done) };
    struct belay_frame_request request = { .size = sizeof(request) };
    struct belay_submitted submitted;
    struct belay_works works;
    struct belay_ended ended;
    struct belay_frames frames;
    struct belay_error err = { 0 };
    struct belay *b = NULL;

    if (!TAP_EQ(t, belay_open("memory:", NULL, &b, NULL), BELAY_OK))
        return;
    TAP_EQ(t, belay_execution_submit(b, NULL, 1, &arena, &submitted, &err),
           BELAY_MISUSE);
    TAP_EQ(t, belay_execution_submit(b, &item, 0, &arena, &submitted, &err),
           BELAY_INVALID);
    TAP_STR(t, err.reason, "count");
    item.lane = NULL;
    TAP_EQ(t, belay_execution_submit(b, &item, 1, &arena, &submitted, &err),
           BELAY_MISUSE);
    item = (struct belay_submission){
        .size = sizeof(item), .lane = "l", .requires = none, .n_requires = 1
    };
    TAP_EQ(t, belay_execution_submit(b, &item, 1, &arena, &submitted, &err),
           BELAY_MISUSE);
    item.n_requires = 0;
    item.payload_len = 1;
    TAP_EQ(t, belay_execution_submit(b, &item, 1, &arena, &submitted, &err),
           BELAY_MISUSE);
    policy.lanes = none;
    policy.n_lanes = 1;
    TAP_EQ(t, belay_execution_claim(b, &policy, &arena, &works, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_execution_renew(b, &hollow, 0, NULL, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_execution_append_frames(b, &hollow, &frame, 1, NULL, &err),
           BELAY_MISUSE);
    TAP_EQ(t, belay_execution_complete(b, &done, 1, NULL, &arena, &ended, NULL, &err),
           BELAY_MISUSE);
    TAP_EQ(t, belay_execution_tag(b, "e", &no_tag, 1, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_execution_frames(b, &request, &arena, &frames, &err), BELAY_MISUSE);
    TAP_OK(t, !belay_value_name(-1, 0) && !belay_value_name(BELAY_DIM_COUNT, 0));
    TAP_OK(t, !belay_value_parse(BELAY_DIM_STATE, NULL, &(int){ 0 }));
    TAP_EQ(t, belay_state_derive(NULL), BELAY_STATE_ANY);
    belay_close(b);
}

static void reads_handles(struct tap *t)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    const char *lanes[] = { "l" };
    struct belay_submission item = { .size = sizeof(item), .lane = "l" };
    struct belay_claim_policy policy = {
        .size = sizeof(policy), .lanes = lanes, .n_lanes = 1, .worker = "w"
    };
    struct belay_handle_info info;
    struct belay_submitted submitted;
    struct belay_works works;
    struct belay_handle back;
    const char *text = NULL;
    struct belay *b = NULL;

    if (!TAP_EQ(t, belay_open("memory:", NULL, &b, NULL), BELAY_OK))
        return;
    TAP_EQ(t, belay_execution_submit(b, &item, 1, &arena, &submitted, NULL), BELAY_OK);
    TAP_EQ(t, belay_execution_claim(b, &policy, &arena, &works, NULL), BELAY_OK);
    if (!TAP_EQ(t, works.n, 1))
        return;
    TAP_EQ(t, belay_handle_text(&works.work[0].handle, &arena, &text, NULL), BELAY_OK);
    TAP_EQ(t, belay_handle_parse(text, &arena, &back, NULL), BELAY_OK);
    TAP_EQ(t, belay_handle_read(&back, &arena, &info, NULL), BELAY_OK);
    TAP_STR(t, info.execution_id, submitted.execution_id);
    TAP_STR(t, info.ns, "default");
    TAP_STR(t, info.lane, "l");
    TAP_STR(t, info.worker, "w");
    TAP_OK(t, info.attempt == 0 && info.fence == 1 &&
                  info.lease_ms == BELAY_EXECUTION_LEASE_MS && *info.attempt_id);
    TAP_EQ(t, back.backend, BELAY_BACKEND_MEMORY);
    belay_close(b);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a submission in JSON says everything that the struct can",
          reads_submissions },
        { "a payload is JSON, bytes, or none", reads_little },
        { "a 0 that is given is not taken for one that is not", reads_zeros },
        { "a submission that is wrong names its field", refuses_submissions },
        { "many values are a list, its items, or one a line", reads_many },
        { "a backoff is fixed or grows", reads_backoffs },
        { "who asks for work says so in JSON", reads_policies },
        { "base64 comes back as it was", base64_comes_back },
        { "lists of structs are read by the size that they say",
          reads_lists_of_any_version },
        { "a struct in a struct is read by its own size",
          reads_policies_of_any_version },
        { "a caller's struct is filled as far as he knows it",
          counts_into_any_version },
        { "a pointer that must be there is", refuses_nothing },
        { "a handle can be written, read and looked into", reads_handles },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
