/* Looking at executions, on every driver. */
#include "test_work_exec_hands.h"

/* --- one --- */

static void described(struct hands *h)
{
    static const char *const requires[] = { "linux", "gpu", "linux" };
    static const struct belay_tag tags[] = { { "team", "blue" }, { "app.x", "1" } };
    int64_t at = now_of(h);
    const char *id = submit(h, (struct belay_submission){ .lane = "build",
                                                          .kind = "compile",
                                                          .priority = 7,
                                                          .payload = "x",
                                                          .payload_len = 1,
                                                          .requires = requires,
                                                          .n_requires = 3,
                                                          .tags = tags,
                                                          .n_tags = 2,
                                                          .session = "s1",
                                                          .process = "p1",
                                                          .creator = "ada",
                                                          .key = "k1",
                                                          .deadline_ms = 60000 });
    struct belay_execution e = describe(h, id);
    struct tap *t = h->w->t;

    TAP_STR(t, e.id, id);
    TAP_STR(t, e.ns, "default");
    TAP_STR(t, e.lane, "build");
    TAP_STR(t, e.kind, "compile");
    TAP_EQ(t, e.state, BELAY_STATE_WAITING);
    TAP_EQ(t, e.vector.blocking, BELAY_WAITING_FOR_WORKER);
    TAP_EQ(t, e.priority, 7);
    TAP_EQ(t, e.attempt, -1);
    TAP_EQ(t, e.attempts, 0);
    TAP_EQ(t, e.fence, 0);
    TAP_OK(t, !e.attempt_id && !e.worker && !e.blocking_detail && !e.flow);
    TAP_EQ(t, e.lease_expires_at_ms, BELAY_TIME_NONE);
    TAP_EQ(t, e.created_at_ms, at);
    TAP_EQ(t, e.started_at_ms, BELAY_TIME_NONE);
    TAP_EQ(t, e.finished_at_ms, BELAY_TIME_NONE);
    TAP_OK(t, e.deadline_at_ms > at);
    TAP_EQ(t, e.n_tags, 2);
    TAP_STR(t, e.tags[0].key, "app.x");
    TAP_STR(t, e.tags[1].value, "blue");
    TAP_EQ(t, e.n_requires, 2);
    TAP_STR(t, e.requires[0], "gpu");
    TAP_STR(t, e.requires[1], "linux");
    TAP_STR(t, e.session, "s1");
    TAP_STR(t, e.process, "p1");
    TAP_STR(t, e.creator, "ada");
    TAP_STR(t, e.key, "k1");
    TAP_EQ(t, e.progress_percent, -1);
    TAP_EQ(t, e.failure_class, 0);
    TAP_OK(t, !e.has_result && !e.failure_message && !e.cancel_reason);
    TAP_OK(t, e.policy != NULL);
}

static void test_described(struct tap *t)
{
    with_hands(t, described);
}

static void described_held(struct hands *h)
{
    const char *id = submit_plain(h);
    struct belay_work first = take(h, "w1");
    struct tap *t = h->w->t;

    WORK_RC(h->w, exec_progress(&h->site, &first.handle, 40, "half", &h->w->err),
            BELAY_OK);
    struct belay_execution e = describe(h, id);
    TAP_EQ(t, e.state, BELAY_STATE_ACTIVE);
    TAP_STR(t, e.worker, "w1");
    TAP_EQ(t, e.attempt, 0);
    TAP_EQ(t, e.fence, 1);
    TAP_EQ(t, e.lease_expires_at_ms, now_of(h) + LEASE_MS);
    TAP_EQ(t, e.progress_percent, 40);
    TAP_STR(t, e.progress_message, "half");

    lose(h);
    e = describe(h, id);
    TAP_EQ(t, e.state, BELAY_STATE_ACTIVE);
    TAP_EQ(t, e.lease_expires_at_ms, BELAY_TIME_NONE);
    TAP_STR(t, e.worker, "w1");
    /* What the first one said of its progress is not the second one's. */
    (void)take(h, "w2");
    e = describe(h, id);
    TAP_STR(t, e.worker, "w2");
    TAP_EQ(t, e.attempt, 1);
    TAP_EQ(t, e.reclaims, 1);
    TAP_EQ(t, e.progress_percent, -1);
    TAP_OK(t, !e.progress_message);
}

static void test_described_held(struct tap *t)
{
    with_hands(t, described_held);
}

static const struct belay_retry_policy once = { .size = sizeof(once),
                                                .backoff = BELAY_BACKOFF_FIXED,
                                                .max_retries = 1,
                                                .delay_ms = 50 };

static void described_failed(struct hands *h)
{
    const char *id = submit(h, (struct belay_submission){ .retry = &once });
    struct belay_work work = take(h, "w1");
    struct tap *t = h->w->t;

    fail(h, &work, BELAY_FAILURE_TRANSIENT, "no luck");
    struct belay_execution e = describe(h, id);
    TAP_EQ(t, e.state, BELAY_STATE_DELAYED);
    TAP_EQ(t, e.failure_class, BELAY_FAILURE_TRANSIENT);
    TAP_STR(t, e.failure_message, "no luck");
    TAP_EQ(t, e.delay_until_ms, now_of(h) + 50);
    pass(h, 50);
    work = take(h, "w2");
    e = describe(h, id);
    TAP_EQ(t, e.failure_class, 0);
    TAP_OK(t, !e.failure_message);
    fail(h, &work, BELAY_FAILURE_PERMANENT, "never");
    e = describe(h, id);
    TAP_EQ(t, e.state, BELAY_STATE_FAILED);
    TAP_EQ(t, e.failure_class, BELAY_FAILURE_PERMANENT);
    TAP_STR(t, e.failure_message, "never");
    TAP_EQ(t, e.finished_at_ms, now_of(h));

    /* It expires in its second attempt: how the first one failed is history. */
    id = submit(h, (struct belay_submission){ .retry = &once, .deadline_ms = 1000 });
    work = take(h, "w1");
    fail(h, &work, BELAY_FAILURE_TRANSIENT, "no luck");
    pass(h, 50);
    (void)take(h, "w2");
    lose(h);
    e = describe(h, id);
    TAP_EQ(t, e.state, BELAY_STATE_EXPIRED);
    TAP_OK(t, !e.failure_message || strcmp(e.failure_message, "no luck") != 0);

    id = submit_plain(h);
    WORK_RC(h->w, exec_cancel(&h->site, id, "not needed", "ada", &h->w->err), BELAY_OK);
    e = describe(h, id);
    TAP_OK(t, !e.creator && !e.key && !e.session && !e.tags && !e.requires);
    TAP_STR(t, e.kind, "");
    TAP_EQ(t, e.state, BELAY_STATE_CANCELLED);
    TAP_STR(t, e.cancel_reason, "not needed");
    TAP_STR(t, e.cancelled_by, "ada");
    TAP_EQ(t, e.failure_class, 0);
    WORK_RC(h->w, exec_describe(&h->site, "exe_none", &h->w->arena, &e, &h->w->err),
            BELAY_NOT_FOUND);
    TAP_STR(t, h->w->err.entity, "exe_none");
    WORK_RC(h->w, exec_describe(&h->site, "", &h->w->arena, &e, &h->w->err),
            BELAY_INVALID);
}

static void test_described_failed(struct tap *t)
{
    with_hands(t, described_failed);
}

/* --- results --- */

static struct belay_result result_of(struct hands *h, const char *id)
{
    struct belay_result r = { .state = -1 };

    WORK_RC(h->w, exec_result(&h->site, id, &h->w->arena, &r, &h->w->err), BELAY_OK);
    return r;
}

static void check_result(struct hands *h, struct bytes content, bool is_json)
{
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    struct belay_result r;

    complete_with(h, &work, content, is_json);
    r = result_of(h, id);
    TAP_EQ(h->w->t, r.state, BELAY_STATE_COMPLETED);
    TAP_EQ(h->w->t, r.has_result, content.ptr != NULL);
    TAP_OK(h->w->t, bytes_eq(bytes_of(r.bytes, r.len), content));
    TAP_EQ(h->w->t, r.is_json, is_json);
    TAP_EQ(h->w->t, describe(h, id).has_result, content.ptr != NULL);
}

static void results(struct hands *h)
{
    size_t len = RESULT_INLINE_MAX * 3;
    uint8_t *longer = arena_alloc(&h->w->arena, len);
    const char *id = submit_plain(h);
    struct belay_result r;

    WORK_RC(h->w, exec_result(&h->site, id, &h->w->arena, &r, &h->w->err),
            BELAY_WRONG_STATE);
    TAP_STR(h->w->t, h->w->err.reason, "not_terminal");
    struct belay_work work = take(h, "w");
    fail(h, &work, BELAY_FAILURE_PERMANENT, "broken");
    r = result_of(h, id);
    TAP_EQ(h->w->t, r.state, BELAY_STATE_FAILED);
    TAP_OK(h->w->t, !r.has_result && !r.bytes);
    TAP_EQ(h->w->t, r.failure_class, BELAY_FAILURE_PERMANENT);
    TAP_STR(h->w->t, r.failure_message, "broken");

    memset(longer, 0xee, len);
    check_result(h, bytes_str("{\"a\":1}"), true);
    check_result(h, bytes_of("\0\1\xff", 3), false);
    check_result(h, bytes_of(longer, len), false);
    check_result(h, bytes_of(NULL, 0), false);
}

static void test_results(struct tap *t)
{
    with_hands(t, results);
}

/* --- attempts --- */

static struct belay_attempts attempts_of(struct hands *h, const char *id)
{
    struct belay_attempts all = { .n = 0 };

    WORK_RC(h->w, exec_attempts(&h->site, id, &h->w->arena, &all, &h->w->err),
            BELAY_OK);
    return all;
}

static void check_attempt(struct hands *h, const struct belay_attempt *a, int type,
                          int end, const char *closed, int64_t frames)
{
    TAP_EQ(h->w->t, a->type, type);
    TAP_EQ(h->w->t, a->end, end);
    TAP_STR(h->w->t, a->closed_reason, closed);
    TAP_EQ(h->w->t, a->frames, frames);
}

static void attempts(struct hands *h)
{
    const char *id = submit(h, (struct belay_submission){ .retry = &once });
    struct tap *t = h->w->t;

    TAP_EQ(t, attempts_of(h, id).n, 0);
    struct belay_work work = take(h, "w1");
    append(h, &work, "one");
    append(h, &work, "two");
    struct belay_attempts all = attempts_of(h, id);
    TAP_EQ(t, all.n, 1);
    check_attempt(h, &all.items[0], BELAY_ATTEMPT_INITIAL, BELAY_END_STARTED, NULL, 2);
    TAP_EQ(t, all.items[0].ended_at_ms, BELAY_TIME_NONE);
    TAP_STR(t, all.items[0].worker, "w1");
    fail(h, &work, BELAY_FAILURE_TRANSIENT, "no luck");
    int64_t failed_at = now_of(h);
    all = attempts_of(h, id);
    TAP_EQ(t, all.n, 1);
    check_attempt(h, &all.items[0], BELAY_ATTEMPT_INITIAL, BELAY_END_FAILURE,
                  "attempt_failure", 2);
    pass(h, 50);
    work = take(h, "w2");
    lose(h);
    all = attempts_of(h, id);
    TAP_EQ(t, all.n, 2);
    check_attempt(h, &all.items[1], BELAY_ATTEMPT_RETRY,
                  BELAY_END_INTERRUPTED_RECLAIMED, "lease_expired", 0);
    work = take(h, "w3");
    append(h, &work, "three");
    complete(h, &work);
    all = attempts_of(h, id);
    if (!TAP_EQ(t, all.n, 3))
        return;
    check_attempt(h, &all.items[0], BELAY_ATTEMPT_INITIAL, BELAY_END_FAILURE,
                  "attempt_failure", 2);
    TAP_STR(t, all.items[0].failure_class, "transient");
    TAP_STR(t, all.items[0].failure_message, "no luck");
    TAP_EQ(t, all.items[0].ended_at_ms, failed_at);
    TAP_EQ(t, all.items[0].fence, 1);
    check_attempt(h, &all.items[1], BELAY_ATTEMPT_RETRY,
                  BELAY_END_INTERRUPTED_RECLAIMED, "reclaimed", 0);
    check_attempt(h, &all.items[2], BELAY_ATTEMPT_RECLAIM, BELAY_END_SUCCESS,
                  "attempt_success", 1);
    TAP_EQ(t, all.items[2].index, 2);
    TAP_EQ(t, all.items[2].fence, 3);
    TAP_OK(t, !all.items[2].failure_class);
}

static void test_attempts(struct tap *t)
{
    with_hands(t, attempts);
}

/* --- lists --- */

/* The first letters of all that match, in order, page by page. */
static const char *listed(struct hands *h, struct belay_execution_filter f)
{
    static char text[256];
    size_t n = 0;

    f.size = sizeof(f);
    for (int pages = 0; pages < 100; pages++) {
        struct belay_executions page = { .n = 0 };
        WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
                BELAY_OK);
        for (size_t i = 0; i < page.n && n + 2 < sizeof(text); i++)
            text[n++] = page.items[i].kind[0];
        f.cursor = page.next_cursor;
        if (!f.cursor)
            break;
    }
    text[n] = 0;
    return text;
}

static const char *put(struct hands *h, const char *kind, const char *lane)
{
    static const struct belay_tag tag = { "team", "blue" };

    pass(h, 1);
    return submit(
        h, (struct belay_submission){ .kind = kind,
                                      .lane = lane,
                                      .tags = &tag,
                                      .n_tags = strchr("aeg", kind[0]) != NULL });
}

/* clang-format off */
static const struct {
    const char *name;
    struct belay_execution_filter filter;
    const char *want;
} lists[] = {
    { "all, newest first",  { .state = BELAY_STATE_ANY }, "ihgfedcba" },
    { "waiting, of all lanes", { .state = BELAY_STATE_WAITING }, "hg" },
    { "waiting, of a lane", { .state = BELAY_STATE_WAITING, .lane = "l" }, "h" },
    { "active, lost or not", { .state = BELAY_STATE_ACTIVE }, "ef" },
    { "delayed",            { .state = BELAY_STATE_DELAYED }, "i" },
    { "completed",          { .state = BELAY_STATE_COMPLETED }, "ab" },
    { "failed",             { .state = BELAY_STATE_FAILED }, "c" },
    { "cancelled",          { .state = BELAY_STATE_CANCELLED }, "d" },
    { "expired",            { .state = BELAY_STATE_EXPIRED }, "" },
    { "skipped",            { .state = BELAY_STATE_SKIPPED }, "" },
    { "suspended",          { .state = BELAY_STATE_SUSPENDED }, "" },
    { "of a lane",          { .lane = "other" }, "g" },
    { "of no lane",         { .lane = "none" }, "" },
    { "of a flow",          { .flow = "f" }, "" },
    { "tagged",             { .tag_key = "team", .tag_value = "blue" }, "gea" },
    { "tagged otherwise",   { .tag_key = "team", .tag_value = "red" }, "" },
    { "tagged, of a state", { .state = BELAY_STATE_COMPLETED, .tag_key = "team", .tag_value = "blue" }, "a" },
    { "since",              { .created_from_ms = START_MS + 7 }, "ihg" },
    { "until",              { .created_to_ms = START_MS + 3 }, "cba" },
    { "between, of a state", { .state = BELAY_STATE_COMPLETED, .created_from_ms = START_MS + 2, .created_to_ms = START_MS + 5 }, "b" },
};
/* clang-format on */

/* a, b: completed, c: failed, d: cancelled, e: its lease is lost, f: held, g, h: waiting,
 * g on a lane of its own, i: delayed. */
static void populate(struct hands *h)
{
    const char *ids[7];
    struct belay_work work;

    for (int i = 0; i < 6; i++)
        ids[i] = put(h, (const char *[]){ "a", "b", "c", "d", "e", "f" }[i], "l");
    (void)put(h, "g", "other");
    for (int i = 0; i < 3; i++) {
        work = take(h, "w");
        TAP_STR(h->w->t, work.execution_id, ids[i]);
        pass(h, 1);
        if (i < 2)
            complete(h, &work);
        else
            fail(h, &work, BELAY_FAILURE_PERMANENT, "no");
    }
    WORK_RC(h->w, exec_cancel(&h->site, ids[3], "no", NULL, &h->w->err), BELAY_OK);
    TAP_STR(h->w->t, take(h, "w").execution_id, ids[4]);
    lose(h);
    struct belay_work lost = take(h, "w2");
    TAP_STR(h->w->t, lost.execution_id, ids[4]);
    lose(h);
}

static void list_all(struct hands *h)
{
    populate(h);
    /* e stands in the lane, too: f is taken by its grant. */
    struct belay_executions all = { .n = 0 };
    struct belay_execution_filter waiting = { .size = sizeof(waiting),
                                              .state = BELAY_STATE_WAITING,
                                              .lane = "l" };
    WORK_RC(h->w, exec_list(&h->site, &waiting, &h->w->arena, &all, &h->w->err),
            BELAY_OK);
    if (!TAP_EQ(h->w->t, all.n, 1))
        return;
    struct belay_grant grant;
    struct belay_work work;
    WORK_RC(h->w,
            exec_grant_one(&h->site, all.items[0].id, "w3", 1000, &h->w->arena, &grant,
                           &h->w->err),
            BELAY_OK);
    TAP_STR(h->w->t, listed(h, waiting), "f");
    WORK_RC(h->w,
            exec_claim_grant(&h->site, grant.grant_id, "w3", LEASE_MS, &h->w->arena,
                             &work, &h->w->err),
            BELAY_OK);
    int64_t later = now_of(h);
    (void)submit(h, (struct belay_submission){ .kind = "h", .priority = 1 });
    pass(h, 1);
    (void)submit(h, (struct belay_submission){ .kind = "i", .delay_ms = 1000 });
    TAP_OK(h->w->t, later > START_MS + 7);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        static const size_t limits[] = { 0, 1, 2, 3, 1000 };
        for (size_t k = 0; k < COUNT_OF(limits); k++) {
            struct belay_execution_filter f = lists[i].filter;
            f.limit = limits[k];
            if (!TAP_STR(h->w->t, listed(h, f), lists[i].want))
                printf("# row: %s, limit %zu\n", lists[i].name, limits[k]);
        }
    }
}

static void test_list(struct tap *t)
{
    with_hands(t, list_all);
}

static void list_refusals(struct hands *h)
{
    struct belay_execution_filter f = { .size = sizeof(f), .limit = 1 };
    struct belay_executions page = { .n = 0 };
    struct tap *t = h->w->t;
    char damaged[512];

    for (int i = 0; i < 3; i++)
        (void)submit_plain(h);
    WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err), BELAY_OK);
    if (!TAP_OK(t, page.next_cursor && strlen(page.next_cursor) < sizeof(damaged)))
        return;
    const char *good = page.next_cursor;
    for (size_t i = 0; i < strlen(good); i++) {
        (void)snprintf(damaged, sizeof(damaged), "%s", good);
        damaged[i] = damaged[i] == '1' ? '2' : '1';
        f.cursor = damaged;
        WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
                BELAY_INVALID);
        TAP_STR(t, h->w->err.reason, "cursor");
        damaged[i] = 0;
        WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
                BELAY_INVALID);
    }
    f.cursor = good;
    f.state = BELAY_STATE_COMPLETED;
    WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
            BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "cursor");
    f = (struct belay_execution_filter){ .size = sizeof(f), .state = 99 };
    WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
            BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "state");
    f = (struct belay_execution_filter){ .size = sizeof(f), .limit = 1001 };
    WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
            BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "limit");
    f = (struct belay_execution_filter){ .size = sizeof(f), .tag_key = "a" };
    WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
            BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "tag");
}

static void test_list_refusals(struct tap *t)
{
    with_hands(t, list_refusals);
}

static belay_rc stray_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_rank_add(t, bytes_str(EXECUTION_INDEX), 1, bytes_str("exe_stray"));
}

static void list_stray(struct hands *h)
{
    struct belay_execution_filter f = { .size = sizeof(f) };
    struct belay_executions page = { .n = 7 };

    (void)submit_plain(h);
    write_aside(h, stray_body, NULL);
    WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
            BELAY_CORRUPT);
    TAP_STR(h->w->t, h->w->err.entity, "exe_stray");
    TAP_EQ(h->w->t, page.n, 7);
}

static void test_list_stray(struct tap *t)
{
    with_hands(t, list_stray);
}

/* Work of one page is bounded: where one in hundreds matches, pages are short. */
static void list_sparse(struct hands *h)
{
    enum { MANY = 1500 };
    struct belay_submission *items = arena_zalloc(&h->w->arena, MANY, sizeof(*items));
    struct belay_submitted *out = arena_zalloc(&h->w->arena, MANY, sizeof(*out));
    struct belay_execution_filter f = { .size = sizeof(f), .lane = "b" };
    size_t found = 0, pages = 0;

    if (h->w->on != ON_MEMORY)
        return;
    for (size_t i = 0; i < MANY; i++)
        items[i] = (struct belay_submission){ .size = sizeof(*items),
                                              .lane = i % 700 == 3 ? "b" : "a" };
    WORK_RC(h->w, exec_submit(&h->site, items, 1000, &h->w->arena, out, &h->w->err),
            BELAY_OK);
    WORK_RC(
        h->w,
        exec_submit(&h->site, items + 1000, MANY - 1000, &h->w->arena, out, &h->w->err),
        BELAY_OK);
    do {
        struct belay_executions page = { .n = 0 };
        WORK_RC(h->w, exec_list(&h->site, &f, &h->w->arena, &page, &h->w->err),
                BELAY_OK);
        found += page.n;
        f.cursor = page.next_cursor;
        pages++;
    } while (f.cursor && pages < 100);
    TAP_EQ(h->w->t, found, 3);
    TAP_EQ(h->w->t, pages, 2);
}

static void test_list_sparse(struct tap *t)
{
    with_hands(t, list_sparse);
}

/* --- why --- */

static struct belay_why ask(struct hands *h, const char *id)
{
    struct belay_why why = { .state = -1 };

    WORK_RC(h->w, exec_why(&h->site, id, &h->w->arena, &why, &h->w->err), BELAY_OK);
    return why;
}

static void check_why(struct hands *h, const char *id, int reason, int64_t next,
                      int64_t ahead, const char *detail, const char *waits_for)
{
    struct belay_why why = ask(h, id);

    TAP_EQ(h->w->t, why.reason, reason);
    TAP_EQ(h->w->t, why.next_at_ms, next);
    TAP_EQ(h->w->t, why.ahead, ahead);
    TAP_STR(h->w->t, why.detail, detail);
    TAP_STR(h->w->t, why.waits_for, waits_for);
}

static void why_waiting(struct hands *h)
{
    static const char *const gpu[] = { "gpu" };
    const char *first = submit_plain(h);
    pass(h, 1);
    const char *special =
        submit(h, (struct belay_submission){ .requires = gpu, .n_requires = 1 });
    pass(h, 1);
    const char *last = submit_plain(h);
    const char *urgent = submit(h, (struct belay_submission){ .priority = 1 });
    struct belay_grant grant;

    /* Work that needs a capability is not in the way of what needs none. */
    check_why(h, urgent, BELAY_WAITING_FOR_WORKER, BELAY_TIME_NONE, 0,
              "it waits for a worker of lane l", "a worker of lane l");
    check_why(h, first, BELAY_WAITING_FOR_WORKER, BELAY_TIME_NONE, 1,
              "it waits for a worker of lane l", "a worker of lane l");
    check_why(h, special, BELAY_WAITING_FOR_WORKER, BELAY_TIME_NONE, 2,
              "it waits for a worker of lane l that has gpu",
              "a worker of lane l that has gpu");
    check_why(h, last, BELAY_WAITING_FOR_WORKER, BELAY_TIME_NONE, 2,
              "it waits for a worker of lane l", "a worker of lane l");
    WORK_RC(
        h->w,
        exec_grant_one(&h->site, last, "w9", 1000, &h->w->arena, &grant, &h->w->err),
        BELAY_OK);
    check_why(h, last, BELAY_WAITING_FOR_WORKER, grant.expires_at_ms, -1,
              "it is granted to worker w9 until 2025-06-15T15:06:41.002Z", "worker w9");
}

static void test_why_waiting(struct tap *t)
{
    with_hands(t, why_waiting);
}

static void why_others(struct hands *h)
{
    struct belay_work work;
    const char *id = submit(h, (struct belay_submission){ .retry = &once });

    work = take(h, "w1");
    check_why(h, id, BELAY_BLOCKING_NONE, START_MS + LEASE_MS, -1,
              "it is running: worker w1 holds it until 2025-06-15T15:07:10.000Z",
              "worker w1");
    fail(h, &work, BELAY_FAILURE_TIMEOUT, "slow");
    check_why(h, id, BELAY_WAITING_FOR_RETRY_BACKOFF, START_MS + 50, -1,
              "attempt 0 failed; the next one may begin at 2025-06-15T15:06:40.050Z",
              "the time 2025-06-15T15:06:40.050Z");
    pass(h, 50);
    check_why(h, id, BELAY_WAITING_FOR_RETRY_BACKOFF, START_MS + 50, -1,
              "attempt 0 failed; the next one may begin at 2025-06-15T15:06:40.050Z, "
              "which has passed: it waits for a worker of lane l",
              "the time 2025-06-15T15:06:40.050Z");
    work = take(h, "w2");
    lose(h);
    check_why(h, id, BELAY_WAITING_FOR_WORKER, BELAY_TIME_NONE, 0,
              "worker w2 did not renew its lease; it waits for a worker of lane l",
              "a worker of lane l");
    work = take(h, "w3");
    bool revoked = false;
    WORK_RC(h->w, exec_revoke(&h->site, id, NULL, "no", &revoked, &h->w->err),
            BELAY_OK);
    TAP_OK(h->w->t, revoked);
    check_why(h, id, BELAY_WAITING_FOR_WORKER, BELAY_TIME_NONE, 0,
              "worker w3 had its lease revoked; it waits for a worker of lane l",
              "a worker of lane l");
    work = take(h, "w4");
    complete(h, &work);
    check_why(h, id, BELAY_BLOCKING_NONE, BELAY_TIME_NONE, -1,
              "it has ended: completed", NULL);
    id = submit(h, (struct belay_submission){ .run_at_ms = START_MS + DAY_MS,
                                              .deadline_ms = 1000 });
    struct belay_why why = ask(h, id);
    TAP_EQ(h->w->t, why.reason, BELAY_WAITING_FOR_DELAY);
    TAP_STR(h->w->t, why.detail, "it is delayed until 2025-06-16T15:06:40.000Z");
    /* Its deadline comes first. */
    TAP_EQ(h->w->t, why.next_at_ms, describe(h, id).deadline_at_ms);
    TAP_EQ(h->w->t, why.state, BELAY_STATE_DELAYED);
    WORK_RC(h->w, exec_why(&h->site, "exe_none", &h->w->arena, &why, &h->w->err),
            BELAY_NOT_FOUND);
}

static void test_why_others(struct tap *t)
{
    with_hands(t, why_others);
}

/* What may end a running attempt: its lease, its timeout, the deadline. */
static void why_next(struct hands *h)
{
    static const struct {
        int64_t timeout_ms, deadline_ms, next_ms;
    } rows[] = {
        { 0, 0, LEASE_MS },
        { 2 * LEASE_MS, 0, LEASE_MS },
        { 500, 0, 500 },
        { 500, 700, 500 },
        { 500, 300, 300 },
        { 0, 300, 300 },
        { 0, 2 * LEASE_MS, LEASE_MS },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *id = submit(
            h, (struct belay_submission){ .attempt_timeout_ms = rows[i].timeout_ms,
                                          .deadline_ms = rows[i].deadline_ms });
        struct belay_work work = take(h, "w");
        TAP_EQ(h->w->t, ask(h, id).next_at_ms, now_of(h) + rows[i].next_ms);
        complete(h, &work);
        TAP_EQ(h->w->t, ask(h, id).next_at_ms, BELAY_TIME_NONE);
    }
    /* One that was given back runs no more. */
    const char *id = submit(h, (struct belay_submission){ .attempt_timeout_ms = 500 });
    struct belay_work work = take(h, "w");
    WORK_RC(h->w, exec_release(&h->site, &work.handle, &h->w->err), BELAY_OK);
    TAP_EQ(h->w->t, ask(h, id).next_at_ms, BELAY_TIME_NONE);
}

static void test_why_next(struct tap *t)
{
    with_hands(t, why_next);
}

/* --- waiting --- */

static void wait_at_once(struct hands *h)
{
    const char *id = submit_plain(h);
    struct tap *t = h->w->t;
    int state = -1;

    WORK_RC(h->w, exec_wait(&h->site, id, 0, NULL, &state, &h->w->err), BELAY_TIMEOUT);
    TAP_EQ(t, state, BELAY_STATE_WAITING);
    struct belay_work work = take(h, "w");
    complete(h, &work);
    WORK_RC(h->w, exec_wait(&h->site, id, 1000, NULL, &state, &h->w->err), BELAY_OK);
    TAP_EQ(t, state, BELAY_STATE_COMPLETED);
    state = -1;
    WORK_RC(h->w, exec_wait(&h->site, "exe_none", 0, NULL, &state, &h->w->err),
            BELAY_NOT_FOUND);
    TAP_EQ(t, state, -1);
    WORK_RC(h->w, exec_wait(&h->site, id, -1, NULL, &state, &h->w->err), BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "wait");
    WORK_RC(h->w, exec_wait(&h->site, id, DAY_MS + 1, NULL, &state, &h->w->err),
            BELAY_INVALID);
}

static void test_wait_at_once(struct tap *t)
{
    with_hands(t, wait_at_once);
}

struct waiter {
    const struct exec_site *site;
    const char *id;
    int64_t wait_ms;
    struct belay_cancel *cancel;
    int state;
    belay_rc rc;
    struct belay_error err;
};

static void *wait_thread(void *arg)
{
    struct waiter *v = arg;

    v->rc = exec_wait(v->site, v->id, v->wait_ms, v->cancel, &v->state, &v->err);
    return NULL;
}

static void act_complete(struct hands *h, struct waiter *v, struct belay_work *work)
{
    (void)v;
    complete(h, work);
}

static void act_cancel(struct hands *h, struct waiter *v, struct belay_work *work)
{
    (void)work;
    WORK_RC(h->w, exec_cancel(&h->site, v->id, "no", NULL, &h->w->err), BELAY_OK);
}

static void act_trigger(struct hands *h, struct waiter *v, struct belay_work *work)
{
    (void)h;
    (void)work;
    belay_cancel_trigger(v->cancel);
}

static void act_pass(struct hands *h, struct waiter *v, struct belay_work *work)
{
    (void)work;
    pass(h, v->wait_ms);
    /* By a clock that jumps nobody is woken: a change that is no end does that. */
    WORK_RC(h->w, exec_release(&h->site, &work->handle, &h->w->err), BELAY_OK);
}

static const struct {
    const char *name;
    void (*act)(struct hands *h, struct waiter *v, struct belay_work *work);
    belay_rc rc;
    int state;
} waits[] = {
    { "completion", act_complete, BELAY_OK, BELAY_STATE_COMPLETED },
    { "cancellation", act_cancel, BELAY_OK, BELAY_STATE_CANCELLED },
    { "the caller", act_trigger, BELAY_CANCELLED, -1 },
    { "time", act_pass, BELAY_TIMEOUT, BELAY_STATE_WAITING },
};

static void wait_woken(struct hands *h)
{
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct waiter v = {
            .site = &h->site, .id = submit_plain(h), .wait_ms = 600000, .state = -1
        };
        struct belay_work work = take(h, "w");
        int64_t begun = real_ms();
        pthread_t thread;

        if (h->w->on == ON_DECORATED || h->w->on == ON_SQLITE_MEMORY)
            return;
        WORK_RC(h->w, belay_cancel_new(&v.cancel, &h->w->err), BELAY_OK);
        pthread_create(&thread, NULL, wait_thread, &v);
        real_pause();
        waits[i].act(h, &v, &work);
        pthread_join(thread, NULL);
        /* One that begins to wait only when its time is over has it as it was before. */
        bool before = waits[i].act == act_pass && v.state == BELAY_STATE_ACTIVE;
        if (!TAP_EQ(h->w->t, v.rc, waits[i].rc) ||
            !(before || TAP_EQ(h->w->t, v.state, waits[i].state)) ||
            !TAP_OK(h->w->t, real_ms() - begun < 4000))
            printf("# row: %s\n", waits[i].name);
        if (waits[i].act == act_pass) /* out of the way of the next one */
            complete(h, &(struct belay_work[]){ take(h, "w") }[0]);
        belay_cancel_free(v.cancel);
    }
}

static void test_wait_woken(struct tap *t)
{
    with_hands(t, wait_woken);
}

/* --- counting --- */

static void counting(struct hands *h)
{
    struct belay_execution_stats stats = { .size = sizeof(stats) };
    struct belay_lanes lanes = { .n = 0 };
    struct tap *t = h->w->t;

    WORK_RC(h->w, exec_count(&h->site, &stats, &h->w->err), BELAY_OK);
    TAP_EQ(t, stats.count[BELAY_STATE_WAITING], 0);
    TAP_EQ(t, stats.next_due_at_ms, BELAY_TIME_NONE);
    populate(h); /* a to g; e is lost, f and g wait */
    (void)submit(h, (struct belay_submission){ .kind = "i", .delay_ms = 5000 });
    (void)submit(h, (struct belay_submission){ .kind = "j", .priority = 2 });
    WORK_RC(h->w, exec_count(&h->site, &stats, &h->w->err), BELAY_OK);
    TAP_EQ(t, stats.size, sizeof(stats));
    TAP_EQ(t, stats.count[BELAY_STATE_WAITING], 3);
    TAP_EQ(t, stats.count[BELAY_STATE_ACTIVE], 1);
    TAP_EQ(t, stats.count[BELAY_STATE_DELAYED], 1);
    TAP_EQ(t, stats.count[BELAY_STATE_COMPLETED], 2);
    TAP_EQ(t, stats.count[BELAY_STATE_FAILED], 1);
    TAP_EQ(t, stats.count[BELAY_STATE_CANCELLED], 1);
    TAP_EQ(t, stats.count[BELAY_STATE_EXPIRED], 0);
    TAP_EQ(t, stats.lanes, 2);
    TAP_EQ(t, stats.next_due_at_ms, now_of(h) + 5000);

    WORK_RC(h->w, exec_lanes(&h->site, NULL, 0, &h->w->arena, &lanes, &h->w->err),
            BELAY_OK);
    if (!TAP_EQ(t, lanes.n, 2))
        return;
    TAP_STR(t, lanes.items[0].lane, "l");
    TAP_EQ(t, lanes.items[0].waiting, 2);
    TAP_EQ(t, lanes.items[0].oldest_at_ms, START_MS + 6);
    TAP_EQ(t, lanes.items[0].routes, 1);
    TAP_STR(t, lanes.items[1].lane, "other");
    TAP_EQ(t, lanes.items[1].waiting, 1);
    TAP_OK(t, !lanes.next_after);
    WORK_RC(h->w, exec_lanes(&h->site, NULL, 1, &h->w->arena, &lanes, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, lanes.n, 1);
    TAP_STR(t, lanes.next_after, "l");
    WORK_RC(h->w, exec_lanes(&h->site, "l", 1, &h->w->arena, &lanes, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, lanes.n, 1);
    TAP_STR(t, lanes.items[0].lane, "other");
    TAP_OK(t, !lanes.next_after);
}

static void test_counting(struct tap *t)
{
    with_hands(t, counting);
}

static const struct tap_case cases[] = {
    { "describe shows what was submitted", test_described },
    { "describe shows who holds it, and no former holder's progress",
      test_described_held },
    { "describe shows the failure of the last attempt, and who cancelled",
      test_described_failed },
    { "a result is there once it has ended, short or long", test_results },
    { "attempts are those with a row and the last one", test_attempts },
    { "a list shows what matches, once each, whatever the pages", test_list },
    { "a list refuses a damaged cursor, and one of another list", test_list_refusals },
    { "a list names an entry that has no row", test_list_stray },
    { "a list looks at a bounded number of entries a page", test_list_sparse },
    { "why: waiting work, what is ahead of it, and grants", test_why_waiting },
    { "why: running, failed, lost, revoked, delayed, ended", test_why_others },
    { "why: a lease, a timeout or a deadline, whichever comes first", test_why_next },
    { "wait tells the state in time and out of time", test_wait_at_once },
    { "threads: a wait ends with the execution, the caller or the time",
      test_wait_woken },
    { "counts and lanes agree with what is there", test_counting },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
