/* Lists, filters, cursors, tags, reasons. */
#include "exec.h"

/* Ids of all pages of a list, as numbers of `ids`: "2 1 0". */
static const char *pages(struct world *w, struct belay_execution_filter f,
                         const char *const *ids, size_t n)
{
    const char *out = "";
    struct belay_executions page;

    f.size = sizeof(f);
    for (int i = 0; i < 100; i++) {
        page = (struct belay_executions){ 0 };
        if (!RC(w, belay_execution_list(w->use, &f, w->arena, &page, &w->err),
                BELAY_OK))
            return out;
        for (size_t k = 0; k < page.n; k++) {
            size_t at = 0;
            while (at < n && strcmp(ids[at], page.items[k].id) != 0)
                at++;
            out = text(w, "%s%s%zu", out, *out ? " " : "", at);
        }
        f.cursor = page.next_cursor;
        if (!f.cursor)
            return out;
    }
    OK(w, false); /* it has no end */
    return out;
}

static void lists_by_everything(struct world *w)
{
    struct belay_tag red = { "colour", "red" }, blue = { "colour", "blue" };
    const char *ids[6];

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = submit(w, (struct belay_submission){ .lane = i % 2 ? "b" : "a",
                                                      .priority = i == 4 ? 5 : 0,
                                                      .delay_ms = i == 5 ? HOUR : 0,
                                                      .tags = i < 3 ? &red : &blue,
                                                      .n_tags = 1 });
        if (!ids[i])
            return;
        world_pass(w, 2);
    }
    w->use = w->b;
    for (size_t limit = 1; limit <= 7; limit += 2) {
#define LISTED(...) \
    pages(w, (struct belay_execution_filter){ .limit = limit, __VA_ARGS__ }, ids, 6)
        STR(w, LISTED(.lane = NULL), "5 4 3 2 1 0"); /* newest first */
        STR(w, LISTED(.lane = "a"), "4 2 0");
        STR(w, LISTED(.tag_key = "colour", .tag_value = "red"), "2 1 0");
        STR(w, LISTED(.tag_key = "colour", .tag_value = "red", .lane = "b"), "1");
        STR(w, LISTED(.state = BELAY_STATE_DELAYED), "5");
        STR(w, LISTED(.state = BELAY_STATE_WAITING, .lane = "a"), "4 0 2");
        STR(w, LISTED(.state = BELAY_STATE_COMPLETED), "");
        STR(w,
            LISTED(.created_from_ms = look(w, ids[1]).created_at_ms,
                   .created_to_ms = look(w, ids[3]).created_at_ms + 1),
            "3 2 1");
#undef LISTED
    }
}

/* Each in turn: what is listed under a state is what has it. */
static void states_are_listed(struct world *w)
{
    struct cell cells[32] = { 0 };

    if (!OK(w, n_conditions <= COUNT_OF(cells)))
        return;
    for (size_t i = 0; i < n_conditions; i++) {
        cells[i].lane = text(w, "%zu", i);
        if (conditions[i].pass_ms == 0 && !cells_make(w, &conditions[i], &cells[i], 1))
            return;
    }
    struct belay_execution_stats stats = { .size = sizeof(stats) };
    RC(w, belay_execution_count(w->use, &stats, &w->err), BELAY_OK);
    for (int state = BELAY_STATE_WAITING; state <= BELAY_STATE_SKIPPED; state++) {
        struct belay_execution_filter f = { .size = sizeof(f), .state = state };
        struct belay_executions all = { 0 };
        size_t want = 0;
        for (size_t i = 0; i < n_conditions; i++)
            want += cells[i].id && conditions[i].state == state;
        RC(w, belay_execution_list(w->use, &f, w->arena, &all, &w->err), BELAY_OK);
        EQ(w, all.n, want);
        EQ(w, stats.count[state], want);
        for (size_t i = 0; i < all.n; i++)
            EQ(w, all.items[i].state, state);
    }
}

static void tags_are_set_and_removed(struct world *w)
{
    struct belay_tag first[] = { { "a", "1" }, { "b", "2" } };
    struct belay_tag then[] = { { "b", NULL }, { "c", "3" }, { "a", "9" } };
    const char *id = submit(w, (struct belay_submission){ .tags = first, .n_tags = 2 });
    const char *const ids[] = { id };

    if (!id)
        return;
    RC(w, belay_execution_tag(w->b, id, then, 3, &w->err), BELAY_OK);
    struct belay_execution e = look(w, id);
    if (EQ(w, e.n_tags, 2)) {
        STR(w, text(w, "%s=%s", e.tags[0].key, e.tags[0].value), "a=9");
        STR(w, text(w, "%s=%s", e.tags[1].key, e.tags[1].value), "c=3");
    }
    static const struct {
        const char *key, *value, *want;
    } rows[] = {
        { "a", "1", "" }, { "a", "9", "0" }, { "b", "2", "" }, { "c", "3", "0" }
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        STR(w,
            pages(w,
                  (struct belay_execution_filter){ .tag_key = rows[i].key,
                                                   .tag_value = rows[i].value },
                  ids, 1),
            rows[i].want);
}

static void reasons_are_told(struct world *w)
{
    static const char *const gpu[] = { "gpu" };
    const char *first = submit(w, (struct belay_submission){ 0 });
    const char *second = submit(w, (struct belay_submission){ 0 });
    const char *later = submit(w, (struct belay_submission){ .delay_ms = HOUR });
    const char *cannot =
        submit(w, (struct belay_submission){ .requires = gpu, .n_requires = 1 });
    struct belay_why why = { 0 };

    RC(w, belay_execution_why(w->use, second, w->arena, &why, &w->err), BELAY_OK);
    EQ(w, why.reason, BELAY_WAITING_FOR_WORKER);
    EQ(w, why.ahead, 1);
    EQ(w, why.next_at_ms, BELAY_TIME_NONE);
    OK(w, why.waits_for && strstr(why.waits_for, "l"));
    RC(w, belay_execution_why(w->use, first, w->arena, &why, &w->err), BELAY_OK);
    EQ(w, why.ahead, 0);
    RC(w, belay_execution_why(w->use, later, w->arena, &why, &w->err), BELAY_OK);
    EQ(w, why.reason, BELAY_WAITING_FOR_DELAY);
    EQ(w, why.next_at_ms, look(w, later).delay_until_ms);
    RC(w, belay_execution_why(w->use, cannot, w->arena, &why, &w->err), BELAY_OK);
    OK(w, why.waits_for && strstr(why.waits_for, "gpu"));
}

static void lanes_are_listed(struct world *w)
{
    static const char *const gpu[] = { "gpu" };
    struct belay_lanes all = { 0 };

    (void)submit(w, (struct belay_submission){ .lane = "a" });
    (void)submit(w, (struct belay_submission){ .lane = "b" });
    (void)submit(
        w, (struct belay_submission){ .lane = "b", .requires = gpu, .n_requires = 1 });
    (void)submit(w, (struct belay_submission){ .lane = "c", .delay_ms = HOUR });
    RC(w, belay_lane_list(w->b, NULL, 2, w->arena, &all, &w->err), BELAY_OK);
    if (!EQ(w, all.n, 2))
        return;
    STR(w, all.items[0].lane, "a");
    EQ(w, all.items[0].waiting, 1);
    EQ(w, all.items[0].routes, 1);
    EQ(w, all.items[1].waiting, 2);
    EQ(w, all.items[1].routes, 2);
    OK(w, all.items[1].oldest_at_ms >= all.items[0].oldest_at_ms);
    RC(w, belay_lane_list(w->b, all.next_after, 2, w->arena, &all, &w->err), BELAY_OK);
    if (EQ(w, all.n, 1)) {
        STR(w, all.items[0].lane, "c");
        EQ(w, all.items[0].waiting, 0);
        EQ(w, all.items[0].oldest_at_ms, BELAY_TIME_NONE);
    }
    STR(w, all.next_after, NULL);
}

/* Namespaces share nothing. */
static void namespaces_are_apart(struct world *w)
{
    struct belay *other = world_handle(w, "other");
    const char *id = submit(w, (struct belay_submission){ 0 });

    if (!other)
        return;
    w->use = other;
    struct belay_execution e = { 0 };
    RC(w, belay_execution_describe(other, id, w->arena, &e, &w->err), BELAY_NOT_FOUND);
    OK(w, !work_on(w, "l"));
    STR(w, events_of(w, NULL), "");
    w->use = w->a;
    OK(w, work_on(w, "l") != NULL);
    world_handle_close(w, other);
}

static const struct noun_case cases[] = {
    { "executions are listed by state, lane, tag and time, page by page",
      lists_by_everything, 0 },
    { "what is listed and counted under a state is what has it", states_are_listed, 0 },
    { "tags are set, removed and found", tags_are_set_and_removed, 0 },
    { "why says what it waits for and when that may change", reasons_are_told, 0 },
    { "lanes are listed with what waits on them", lanes_are_listed, 0 },
    { "executions of another namespace are not seen", namespaces_are_apart, 0 },
};

const struct topic topic_exec_looking = { cases, COUNT_OF(cases) };
