/* What is told: completions and the history of leases, to whoever follows them; and to the
 * session that the work belongs to. */
#include <stdatomic.h>
#include <stdlib.h>

#include "exec.h"

/* --- reading --- */

static struct belay_events read_events(struct world *w, struct belay_event_request r)
{
    struct belay_events page = { 0 };

    r.size = sizeof(r);
    (void)RC(w, belay_execution_events(w->use, &r, w->arena, &page, &w->err), BELAY_OK);
    OK(w, page.cursor != NULL);
    return page;
}

static void one_of_each(struct world *w)
{
    struct belay_tag tag = { "team", "a" };

    for (int i = 0; i < 3; i++) {
        (void)submit(w, (struct belay_submission){ .tags = &tag, .n_tags = i == 1 });
        const struct belay_work *held = work_on(w, "l");
        if (OK(w, held != NULL))
            RC(w, complete(w, &held->handle, i == 2 ? "a result" : NULL, NULL),
               BELAY_OK);
    }
}

static void feeds_are_read_page_by_page(struct world *w)
{
    const char *cursor = NULL, *all = "";

    one_of_each(w);
    w->use = w->b;
    for (int i = 0; i < 20; i++) {
        struct belay_events page =
            read_events(w, (struct belay_event_request){ .after = cursor, .limit = 1 });
        OK(w, page.n <= 1 && !page.trimmed);
        for (size_t k = 0; k < page.n; k++)
            all = text(w, "%s%d", all, page.items[k].type);
        if (page.n == 0)
            break;
        STR(w, page.cursor, page.items[0].cursor);
        cursor = page.cursor;
    }
    STR(w, all, "101010"); /* acquired, completion, three times */
    STR(w, events_after(w, NULL, cursor), "");
    cursor = events_now(w);
    one_of_each(w);
    EQ(w, read_events(w, (struct belay_event_request){ .after = cursor }).n, 6);
}

static void feeds_take_filters(struct world *w)
{
    struct belay_scanner_filter tag = { .size = sizeof(tag),
                                        .tag_key = "team",
                                        .tag_value = "a" };
    struct belay_scanner_filter ours = { .size = sizeof(ours), .ns = "default" };
    struct belay_scanner_filter theirs = { .size = sizeof(theirs), .ns = "other" };

    one_of_each(w);
    struct belay_events page = read_events(
        w, (struct belay_event_request){ .types = 1u << BELAY_EVENT_COMPLETION });
    if (EQ(w, page.n, 3)) {
        const struct belay_event *e = &page.items[2];
        EQ(w, e->outcome, BELAY_TERMINAL_SUCCESS);
        EQ(w, e->payload_len, 8);
        OK(w, e->payload && memcmp(e->payload, "a result", 8) == 0);
        OK(w, e->produced_at_ms > 0);
        EQ(w, e->fence, 1);
        STR(w, e->worker, "w");
        STR(w, e->lane, "l");
        STR(w, page.items[0].payload ? "something" : NULL, NULL);
    }
    EQ(w, read_events(w, (struct belay_event_request){ .filter = &tag }).n, 2);
    EQ(w, read_events(w, (struct belay_event_request){ .filter = &ours }).n, 6);
    page = read_events(w, (struct belay_event_request){ .filter = &theirs });
    EQ(w, page.n, 0);
    STR(w, events_after(w, NULL, page.cursor), ""); /* and yet it went on */
    struct belay_events some = { 0 };
    struct belay_event_request bad = { .size = sizeof(bad), .after = "nonsense" };
    RC(w, belay_execution_events(w->use, &bad, w->arena, &some, &w->err),
       BELAY_INVALID);
}

/* The seed's filter, by itself. */
static void filters_match_exactly(struct world *w)
{
    struct belay_tag tags[] = { { "k", "v" }, { "x", "y" } };
    struct belay_scanner_filter none = { .size = sizeof(none) };
    struct belay_scanner_filter ns = { .size = sizeof(ns), .ns = "a" };
    struct belay_scanner_filter both = {
        .size = sizeof(both), .ns = "a", .tag_key = "k", .tag_value = "v"
    };

    OK(w, belay_scanner_filter_is_noop(&none));
    OK(w, !belay_scanner_filter_is_noop(&ns));
    OK(w, !belay_scanner_filter_is_noop(&both));
    OK(w, belay_scanner_filter_matches(&none, "b", NULL, 0));
    OK(w, belay_scanner_filter_matches(&ns, "a", NULL, 0));
    OK(w, !belay_scanner_filter_matches(&ns, "b", tags, 2));
    OK(w, belay_scanner_filter_matches(&both, "a", tags, 2));
    OK(w, !belay_scanner_filter_matches(&both, "a", tags + 1, 1));
    OK(w, !belay_scanner_filter_matches(&both, "a", NULL, 0));
    OK(w, !belay_scanner_filter_matches(&both, "b", tags, 2));
}

/* --- following --- */

#define FOLLOWED 80
#define FOLLOW_HANDS 5 /* one follows, the others work */

struct pursuit {
    const char *first;
    atomic_int left;
    char *heard; /* cursors, in the order in which they were told */
    size_t heard_len, completions;
};

static void note(struct pursuit *p, const char *cursor)
{
    size_t len = strlen(cursor);

    p->heard = realloc(p->heard, p->heard_len + len + 2);
    if (!p->heard)
        abort();
    memcpy(p->heard + p->heard_len, cursor, len);
    p->heard_len += len;
    p->heard[p->heard_len++] = '\n';
    p->heard[p->heard_len] = 0;
}

static void follow(struct world *w, struct pursuit *p)
{
    const char *cursor = p->first;
    int64_t began = machine_ms();

    while (p->completions < FOLLOWED && OK(w, machine_ms() - began < 20000)) {
        struct belay_events page = read_events(
            w, (struct belay_event_request){ .after = cursor, .wait_ms = 5000 });
        for (size_t i = 0; i < page.n; i++) {
            note(p, page.items[i].cursor);
            p->completions += page.items[i].type == BELAY_EVENT_COMPLETION;
        }
        cursor = page.cursor;
        if (!cursor)
            return;
    }
}

static void work_or_follow(struct world *w, unsigned i, void *arg)
{
    struct pursuit *p = arg;
    int64_t began = machine_ms();

    if (i == 0) {
        follow(w, p);
        return;
    }
    while (atomic_load(&p->left) > 0 && OK(w, machine_ms() - began < 20000)) {
        struct belay_works got =
            claim(w, (struct belay_claim_policy){ .max = i, .max_wait_ms = 20 });
        for (size_t k = 0; k < got.n; k++) {
            if (!RC(w, complete(w, &got.work[k].handle, NULL, NULL), BELAY_OK))
                return;
            atomic_fetch_sub(&p->left, 1);
        }
    }
}

/* Who followed from the beginning was told what can be read afterwards: nothing came
 * into being behind where it had been. */
static void followers_miss_nothing(struct world *w)
{
    struct pursuit p = { .left = FOLLOWED, .first = events_now(w) };
    struct pursuit after = { 0 };

    if (!submit_many(w, "l", FOLLOWED, NULL))
        return;
    world_crowd(w, FOLLOW_HANDS, work_or_follow, &p);
    EQ(w, p.completions, FOLLOWED);
    const char *cursor = p.first;
    for (;;) {
        struct belay_events page =
            read_events(w, (struct belay_event_request){ .after = cursor, .limit = 7 });
        for (size_t i = 0; i < page.n; i++)
            note(&after, page.items[i].cursor);
        cursor = page.cursor;
        if (page.n == 0)
            break;
    }
    STR(w, p.heard, after.heard);
    free(p.heard);
    free(after.heard);
}

/* --- sessions --- */

/* "key slot payload" of the inbox, without the times. */
static const char *inbox_of(struct world *w, const char *session_id)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 100 };
    struct belay_batches all = { 0 };
    const char *out = "";

    (void)RC(w, belay_queue_list(w->use, session_id, &page, w->arena, &all, &w->err),
             BELAY_OK);
    for (size_t i = 0; i < all.n; i++) {
        const struct belay_batch *b = &all.batches[i];
        EQ(w, b->delivery, BELAY_EARLIEST_SAFE_BOUNDARY);
        EQ(w, b->slot, BELAY_EXCLUSIVE);
        EQ(w, b->n_items, 1);
        OK(w, strstr(b->items[0].payload, "\"type\":\"execution_completed\"") != NULL);
        out = text(w, "%s%s%s", out, i > 0 ? " " : "", b->source_key);
    }
    return out;
}

static void end_done(struct world *w, const char *id, const struct belay_handle *h)
{
    (void)id;
    RC(w, complete(w, h, NULL, NULL), BELAY_OK);
    RC(w, complete(w, h, NULL, NULL), BELAY_OK); /* and again */
}

static void end_failed(struct world *w, const char *id, const struct belay_handle *h)
{
    (void)id;
    RC(w, fail(w, h, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
}

static void end_cancelled(struct world *w, const char *id, const struct belay_handle *h)
{
    RC(w, belay_execution_cancel(w->use, id, "r", NULL, &w->err), BELAY_OK);
    RC(w, complete(w, h, NULL, NULL), BELAY_LEASE_LOST);
}

static void end_aborted(struct world *w, const char *id, const struct belay_handle *h)
{
    (void)id;
    RC(w, belay_execution_abort(w->use, h, "r", &w->err), BELAY_OK);
}

static void sessions_hear_of_the_end(struct world *w)
{
    static const struct {
        const char *outcome;
        void (*end)(struct world *w, const char *id, const struct belay_handle *h);
    } rows[] = {
        { "success", end_done },
        { "failed", end_failed },
        { "cancelled", end_cancelled },
        { "cancelled", end_aborted },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *s = text(w, "s%zu", i), *lane = text(w, "l%zu", i);
        const char *id =
            submit(w, (struct belay_submission){ .lane = lane, .session = s });
        const struct belay_work *held = work_on(w, lane);
        if (!OK(w, id && held))
            return;
        STR(w, held->session, s);
        STR(w, inbox_of(w, s), "");
        rows[i].end(w, id, &held->handle);
        w->use = w->b;
        STR(w, inbox_of(w, s), text(w, "execution:%s:%s", id, rows[i].outcome));
        w->use = w->a;
    }
}

/* The one payload of the inbox. */
static const char *payload_in(struct world *w, const char *session_id)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 100 };
    struct belay_batches all = { 0 };

    (void)RC(w, belay_queue_list(w->use, session_id, &page, w->arena, &all, &w->err),
             BELAY_OK);
    return EQ(w, all.n, 1) ? all.batches[0].items[0].payload : "";
}

/* What a session is told of a result: "" or how the rest of its payload begins. */
static const char *result_told(struct world *w, const char *s, const char *result,
                               size_t len, bool is_json)
{
    const char *id = submit(w, (struct belay_submission){ .session = s });
    const struct belay_work *held = work_on(w, "l");

    if (!OK(w, id && held))
        return "";
    struct belay_completion item = { .size = sizeof(item),
                                     .handle = &held->handle,
                                     .result = result,
                                     .result_len = len,
                                     .result_is_json = is_json };
    struct belay_ended ended = { 0 };
    RC(w,
       belay_execution_complete(w->use, &item, 1, NULL, w->arena, &ended, NULL,
                                &w->err),
       BELAY_OK);
    const char *told = payload_in(w, s);
    const char *before =
        text(w,
             "{\"attempts\":1,\"execution\":\"%s\",\"lane\":\"l\",\"outcome\":"
             "\"success\",\"produced_at_ms\":%lld",
             id, (long long)look(w, id).finished_at_ms);
    const char *behind = ",\"type\":\"execution_completed\"}";
    size_t n = strlen(told), n_before = strlen(before), n_behind = strlen(behind);
    if (!OK(w, n >= n_before + n_behind))
        return told;
    STR(w, text(w, "%.*s", (int)n_before, told), before);
    STR(w, told + n - n_behind, behind);
    return text(w, "%.*s", (int)(n - n_before - n_behind), told + n_before);
}

/* n bytes: a text in JSON, or n / 2 lists in each other. */
static const char *json_text(struct world *w, size_t n)
{
    char *out = bytes_of(w, 'x', n);

    out[0] = out[n - 1] = '"';
    return out;
}

static const char *json_nested(struct world *w, size_t n)
{
    char *out = bytes_of(w, '[', n);

    memset(out + n / 2, ']', n / 2);
    return out;
}

static void sessions_hear_of_results(struct world *w)
{
    const char *most = json_text(w, 4096), *deep = json_nested(w, 62);

    STR(w, result_told(w, "none", NULL, 0, false), "");
    STR(w, result_told(w, "json", "{\"n\": 1}", 8, true), ",\"result\":{\"n\":1}");
    STR(w, result_told(w, "null", "null", 4, true), ",\"result\":null");
    STR(w, result_told(w, "most", most, 4096, true), text(w, ",\"result\":%s", most));
    STR(w, result_told(w, "deep", deep, 62, true), text(w, ",\"result\":%s", deep));
    STR(w, result_told(w, "bytes", "\0\377", 2, false), ",\"result_base64\":\"AP8=\"");
    STR(w, result_told(w, "empty", "", 0, false), ",\"result_base64\":\"\"");
    /* Nothing fits around 32 lists in each other: that is as deep as JSON may be. */
    STR(w, result_told(w, "deeper", json_nested(w, 64), 64, true),
        ",\"result_len\":64");
    STR(w, result_told(w, "long", json_text(w, 4097), 4097, true),
        ",\"result_len\":4097");
    STR(w, result_told(w, "bytes2", json_text(w, 4097), 4097, false),
        ",\"result_len\":4097");
    STR(w, result_told(w, "blob", json_text(w, 10000), 10000, true),
        ",\"result_len\":10000");
}

static void sessions_hear_of_failures(struct world *w)
{
    const char *id = submit(w, (struct belay_submission){ .session = "s" });
    const struct belay_work *held = work_on(w, "l");

    if (!OK(w, id && held))
        return;
    RC(w, fail(w, &held->handle, BELAY_FAILURE_PERMANENT, NULL), BELAY_OK);
    STR(w, payload_in(w, "s"),
        text(w,
             "{\"attempts\":1,\"execution\":\"%s\",\"failure\":\"it did not work\","
             "\"failure_class\":\"permanent\",\"lane\":\"l\",\"outcome\":\"failed\","
             "\"produced_at_ms\":%lld,\"type\":\"execution_completed\"}",
             id, (long long)look(w, id).finished_at_ms));
}

/* What time ends is told, too; what goes on is not. */
static void sessions_hear_of_deadlines(struct world *w)
{
    struct belay_retry_policy policy = retry_fixed(1, 1);
    const char *id =
        submit(w, (struct belay_submission){ .session = "s", .deadline_ms = SHORT_MS });
    (void)submit(
        w, (struct belay_submission){ .lane = "m", .session = "s", .retry = &policy });
    const struct belay_work *held = work_on(w, "m");

    if (!OK(w, held != NULL))
        return;
    RC(w, fail(w, &held->handle, BELAY_FAILURE_TRANSIENT, NULL), BELAY_OK);
    world_pass(w, SHORT_MS + 5);
    (void)timers(w);
    STR(w, inbox_of(w, "s"), text(w, "execution:%s:expired", id));
    /* And it is work for the session like any other. */
    const struct belay_claim *c = take(w, 1);
    if (OK(w, c != NULL))
        RC(w, finish(w, "s", 0, c), BELAY_OK);
    STR(w, inbox_of(w, "s"), "");
}

static const struct noun_case cases[] = {
    { "the feed of executions is read page by page, from anywhere",
      feeds_are_read_page_by_page, 0 },
    { "the feed of executions takes types and the filter", feeds_take_filters, 0 },
    { "a filter matches what is equal, and nothing that is missing",
      filters_match_exactly, 0 },
    { "threads: who follows the feed misses nothing and sees nothing twice",
      followers_miss_nothing, CASE_REAL_TIME },
    { "a session hears of the end of its executions, once", sessions_hear_of_the_end,
      0 },
    { "a session is given a short result, and told how long another one is",
      sessions_hear_of_results, 0 },
    { "a session hears why work failed", sessions_hear_of_failures, 0 },
    { "a session hears of what time ends, and not of what goes on",
      sessions_hear_of_deadlines, 0 },
};

const struct topic topic_exec_feeds = { cases, COUNT_OF(cases) };
