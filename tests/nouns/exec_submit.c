/* What can be submitted: payloads, keys, many at once, and what is refused. */
#include <stdlib.h>

#include "exec.h"
#include "proc.h"

/* --- payloads --- */

static void comes_back(struct world *w, const void *payload, size_t len)
{
    const char *id =
        submit(w, (struct belay_submission){ .payload = payload, .payload_len = len });
    const struct belay_work *got = work_on(w, "l");

    if (!OK(w, id && got))
        return;
    EQ(w, got->payload_len, len);
    OK(w, !got->payload_is_json);
    OK(w, got->payload_len == len && got->payload &&
              memcmp(got->payload, payload, len) == 0);
    struct belay_completion item = { .size = sizeof(item),
                                     .handle = &got->handle,
                                     .result = got->payload,
                                     .result_len = got->payload_len };
    struct belay_ended end = { 0 };
    RC(w,
       belay_execution_complete(w->use, &item, 1, NULL, w->arena, &end, NULL, &w->err),
       BELAY_OK);
    EQ(w, end.code, BELAY_OK);
    struct belay_result r = { 0 };
    RC(w, belay_execution_result(w->b, id, w->arena, &r, &w->err), BELAY_OK);
    OK(w, r.has_result && r.len == len && memcmp(r.bytes, payload, len) == 0);
}

static void payloads_come_back(struct world *w)
{
    static const size_t sizes[] = {
        1, 255, 8191, 8192, 8193, 100000, BELAY_PAYLOAD_MAX
    };

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char *bytes = bytes_of(w, 0, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++)
            bytes[j] = (char)(j * 31 + j / 256);
        unsigned failed = w->t->failed;
        comes_back(w, bytes, sizes[i]);
        if (w->t->failed > failed)
            printf("# of %zu bytes\n", sizes[i]);
    }
    collect(w); /* what they are kept in is alive */
    struct belay_execution_filter f = { .size = sizeof(f) };
    struct belay_executions all = { 0 };
    RC(w, belay_execution_list(w->use, &f, w->arena, &all, &w->err), BELAY_OK);
    for (size_t i = 0; i < all.n; i++) {
        struct belay_result r = { 0 };
        RC(w, belay_execution_result(w->use, all.items[i].id, w->arena, &r, &w->err),
           BELAY_OK);
    }
}

static void json_is_kept_in_canonical_form(struct world *w)
{
    static const char json[] = "{ \"b\": [1, 2.50], \"a\": \"\\u00e9\" }";
    static const char canonical[] = "{\"a\":\"\xc3\xa9\",\"b\":[1,2.5]}";
    struct belay_submitted out = { 0 };

    (void)submit(w, (struct belay_submission){ .payload = json,
                                               .payload_len = strlen(json),
                                               .payload_is_json = true });
    const struct belay_work *got = work_on(w, "l");
    if (OK(w, got != NULL)) {
        OK(w, got->payload_is_json);
        STR(w, text(w, "%.*s", (int)got->payload_len, (const char *)got->payload),
            canonical);
    }
    WHY(w,
        submit_try(w,
                   (struct belay_submission){
                       .payload = "{", .payload_len = 1, .payload_is_json = true },
                   &out),
        BELAY_INVALID, "payload");
}

/* Everything that was said of it reaches the worker. */
static void facts_reach_the_worker(struct world *w)
{
    static const char trace[] =
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    struct belay_tag tags[] = { { "b.x", "2" }, { "a", "1" } };
    enroll_id(w, "p");
    const char *id =
        submit(w, (struct belay_submission){ .kind = "k",
                                             .tags = tags,
                                             .n_tags = 2,
                                             .process = "p",
                                             .creator = "me",
                                             .traceparent = trace,
                                             .tracestate = "x=1",
                                             .deadline_ms = HOUR,
                                             .attempt_timeout_ms = MINUTE });
    const struct belay_work *got = work_on(w, "l");

    if (!OK(w, id && got))
        return;
    struct belay_execution e = look(w, id);
    STR(w, got->kind, "k");
    STR(w, got->process, "p");
    STR(w, got->traceparent, trace);
    STR(w, got->tracestate, "x=1");
    STR(w, e.traceparent, trace);
    STR(w, e.tracestate, "x=1");
    EQ(w, got->n_tags, 2);
    STR(w, got->tags[0].key, "a");
    STR(w, got->tags[1].value, "2");
    EQ(w, got->submitted_at_ms, e.created_at_ms);
    EQ(w, got->deadline_at_ms, e.created_at_ms + HOUR);
    EQ(w, got->timeout_at_ms, e.started_at_ms + MINUTE);
    STR(w, e.creator, "me");
    STR(w, e.worker, "w");
    STR(w, e.attempt_id ? "an attempt" : "none", "an attempt");
}

/* --- keys --- */

static belay_rc submit_key(struct world *w, const char *payload, int64_t window,
                           struct belay_submitted *out)
{
    return submit_try(w,
                      (struct belay_submission){ .key = "k",
                                                 .payload = payload,
                                                 .payload_len = strlen(payload),
                                                 .key_window_ms = window },
                      out);
}

static void one_key_one_execution(struct world *w)
{
    struct belay_submitted first = { 0 }, again = { 0 };

    RC(w, submit_key(w, "1", 4 * SHORT_MS, &first), BELAY_OK);
    OK(w, !first.duplicate);
    EQ(w, first.state, BELAY_STATE_WAITING);
    const char *before = all_work(w);
    w->use = w->b;
    RC(w, submit_key(w, "1", 4 * SHORT_MS, &again), BELAY_OK);
    OK(w, again.duplicate);
    STR(w, again.execution_id, first.execution_id);
    RC(w, submit_key(w, "2", 4 * SHORT_MS, &again), BELAY_KEY_CONFLICT);
    STR(w, all_work(w), before);

    const struct belay_work *got = work_on(w, "l");
    if (!OK(w, got != NULL))
        return;
    RC(w, complete(w, &got->handle, NULL, NULL), BELAY_OK);
    RC(w, submit_key(w, "1", 4 * SHORT_MS, &again), BELAY_OK);
    OK(w, again.duplicate); /* within the window, however it ended */
    EQ(w, again.state, BELAY_STATE_COMPLETED);
    world_pass(w, 4 * SHORT_MS + 1);
    RC(w, submit_key(w, "2", HOUR, &again), BELAY_OK);
    OK(w, !again.duplicate);
    OK(w, strcmp(again.execution_id, first.execution_id) != 0);
}

static void keys_in_one_batch(struct world *w)
{
    struct belay_submission items[3];
    struct belay_submitted out[3] = { 0 };

    for (size_t i = 0; i < 3; i++)
        items[i] = (struct belay_submission){ .size = sizeof(items[i]),
                                              .lane = "l",
                                              .key = i == 1 ? "other" : "k" };
    RC(w, belay_execution_submit(w->use, items, 3, w->arena, out, &w->err), BELAY_OK);
    OK(w, !out[0].duplicate && !out[1].duplicate && out[2].duplicate);
    STR(w, out[2].execution_id, out[0].execution_id);
    items[2].kind = "another";
    RC(w, belay_execution_submit(w->use, items, 3, w->arena, out, &w->err),
       BELAY_KEY_CONFLICT);
    EQ(w, claim(w, (struct belay_claim_policy){ .max = 9 }).n, 2);
}

/* --- many --- */

static void a_thousand_at_once(struct world *w)
{
    const char *ids[BELAY_SUBMIT_MAX];
    struct belay_completion items[BELAY_SUBMIT_MAX];
    struct belay_ended *ends = calloc(BELAY_SUBMIT_MAX, sizeof(*ends));

    if (!ends || !submit_many(w, "l", BELAY_SUBMIT_MAX, ids)) {
        free(ends);
        return;
    }
    struct belay_works got =
        claim(w, (struct belay_claim_policy){ .max = BELAY_WORK_MAX });
    EQ(w, got.n, BELAY_SUBMIT_MAX);
    for (size_t i = 0; i < got.n; i++) {
        if (strcmp(got.work[i].execution_id, ids[i]) != 0)
            STR(w, got.work[i].execution_id, ids[i]);
        items[i] = (struct belay_completion){ .size = sizeof(items[i]),
                                              .handle = &got.work[i].handle };
    }
    RC(w,
       belay_execution_complete(w->use, items, got.n, NULL, w->arena, ends, NULL,
                                &w->err),
       BELAY_OK);
    size_t done = 0;
    for (size_t i = 0; i < got.n; i++)
        done += ends[i].code == BELAY_OK;
    EQ(w, done, BELAY_SUBMIT_MAX);
    struct belay_execution_stats s = { .size = sizeof(s) };
    RC(w, belay_execution_count(w->b, &s, &w->err), BELAY_OK);
    EQ(w, s.count[BELAY_STATE_COMPLETED], BELAY_SUBMIT_MAX);
    EQ(w, s.count[BELAY_STATE_WAITING], 0);
    free(ends);
}

/* --- what is refused --- */

static const char *const comma[] = { "a,b" }, *const blank[] = { "a b" },
                         *const empty[] = { "" };
static const struct belay_tag upper[] = { { "A", "1" } };

static const struct {
    const char *reason;
    struct belay_submission s;
} bad[] = {
    { "lane", { .lane = "" } },
    { "lane", { .lane = "a\nb" } },
    { "lane",
      { .lane = "12345678901234567890123456789012345678901234567890123456789012345" } },
    { "priority", { .priority = -1 } },
    { "priority", { .priority = BELAY_PRIORITY_MAX + 1 } },
    { "too_large", { .payload = "x", .payload_len = BELAY_PAYLOAD_MAX + 1 } },
    { "deadline", { .deadline_ms = -1 } },
    { "requires", { .requires = comma, .n_requires = 1 } },
    { "requires", { .requires = blank, .n_requires = 1 } },
    { "requires", { .requires = empty, .n_requires = 1 } },
    { "tag", { .tags = upper, .n_tags = 1 } },
    { "key", { .key = "" } },
};

/* The first of two is fine: it is all or nothing. */
static void bad_ones_are_refused_with_all(struct world *w)
{
    const char *before = all_work(w);

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct belay_submission items[2] = {
            { .size = sizeof(items[0]), .lane = "fine" }, bad[i].s
        };
        struct belay_submitted out[2] = { 0 };
        items[1].size = sizeof(items[1]);
        items[1].lane = items[1].lane ? items[1].lane : "l";
        if (!WHY(w, belay_execution_submit(w->use, items, 2, w->arena, out, &w->err),
                 BELAY_INVALID, bad[i].reason))
            printf("# in row %zu\n", i);
        OK(w, !out[0].execution_id);
    }
    STR(w, all_work(w), before);
}

static void bad_retries_are_refused(struct world *w)
{
    struct belay_retry_policy rows[] = {
        retry_fixed(-1, 1),   retry_fixed(1, -2), retry_fixed(1, 1),
        retry_fixed(1, 1),    retry_fixed(1, -1), /* which is at once, where it does not have to grow */
        retry_fixed(1, 1000),
    };
    rows[2].backoff = 7;
    rows[3].backoff = BELAY_BACKOFF_EXPONENTIAL;
    rows[3].multiplier = -2;
    rows[4].backoff = rows[5].backoff = BELAY_BACKOFF_EXPONENTIAL;
    rows[5].max_delay_ms = 999;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_submitted out = { 0 };
        if (!WHY(w, submit_try(w, (struct belay_submission){ .retry = &rows[i] }, &out),
                 BELAY_INVALID, "retry"))
            printf("# in row %zu\n", i);
    }
}

static const struct noun_case cases[] = {
    { "payloads and results of any length come back byte by byte", payloads_come_back,
      0 },
    { "a payload of JSON is checked, and kept in canonical form",
      json_is_kept_in_canonical_form, 0 },
    { "what was submitted reaches the worker", facts_reach_the_worker, 0 },
    { "one key is one execution until its window is over", one_key_one_execution, 0 },
    { "a key that is twice in one call is one execution", keys_in_one_batch, 0 },
    { "a thousand are submitted, claimed and completed in a call each",
      a_thousand_at_once, 0 },
    { "a submission that cannot be is refused, with all beside it",
      bad_ones_are_refused_with_all, 0 },
    { "a retry policy that cannot be is refused", bad_retries_are_refused, 0 },
};

const struct topic topic_exec_submit = { cases, COUNT_OF(cases) };
