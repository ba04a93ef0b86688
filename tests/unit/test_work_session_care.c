/* Meta, attachments, tombstones, vacuum, healing, deleting. */
#include "test_work_session.h"

/* --- meta --- */

static void meta_round_trips(struct work *w)
{
    struct session s = session_s(w);
    struct belay_session_meta meta = { .size = sizeof(meta),
                                       .name = "Name",
                                       .created_at = "yesterday",
                                       .model = "m",
                                       .cwd = "/tmp",
                                       .parent = "p",
                                       .caused_by = "{ \"b\":1, \"a\":2 }" };
    struct belay_session_meta got;

    WORK_RC(w, session_meta_load(&s, &w->arena, &got, &w->err), BELAY_NOT_FOUND);
    WORK_RC(w, session_meta_save(&s, &meta, true, &w->err), BELAY_OK);
    WORK_RC(w, session_meta_load(&s, &w->arena, &got, &w->err), BELAY_OK);
    TAP_EQ(w->t, got.size, sizeof(got));
    TAP_STR(w->t, got.name, "Name");
    TAP_STR(w->t, got.created_at, "yesterday");
    TAP_STR(w->t, got.model, "m");
    TAP_STR(w->t, got.cwd, "/tmp");
    TAP_STR(w->t, got.parent, "p");
    TAP_STR(w->t, got.caused_by, "{\"a\":2,\"b\":1}");
    meta = (struct belay_session_meta){ .size = sizeof(meta) };
    WORK_RC(w, session_meta_save(&s, &meta, true, &w->err), BELAY_OK);
    WORK_RC(w, session_meta_load(&s, &w->arena, &got, &w->err), BELAY_OK);
    TAP_STR(w->t, got.name, "Name"); /* was there */
    WORK_RC(w, session_meta_save(&s, &meta, false, &w->err), BELAY_OK);
    WORK_RC(w, session_meta_load(&s, &w->arena, &got, &w->err), BELAY_OK);
    TAP_STR(w->t, got.name, "s");
    TAP_STR(w->t, got.created_at, "unix:1750000000");
    TAP_STR(w->t, got.model, "");
    TAP_STR(w->t, got.cwd, NULL);
    TAP_STR(w->t, got.parent, NULL);
    TAP_STR(w->t, got.caused_by, NULL);
    check_all(w);
}

static void meta_refused(struct work *w)
{
    struct session s = session_s(w);
    const struct {
        struct belay_session_meta meta;
        const char *reason;
    } bad[] = {
        { { .parent = "s" }, "parent" },
        { { .parent = "" }, "parent" },
        { { .caused_by = "{}" }, "caused_by" },
        { { .parent = "p", .caused_by = "{" }, "caused_by" },
        { { .name = "\xff" }, "name" },
        { { .cwd = "\xff" }, "cwd" },
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        WORK_RC(w, session_meta_save(&s, &bad[i].meta, false, &w->err), BELAY_INVALID);
        TAP_STR(w->t, w->err.reason, bad[i].reason);
    }
}

static void test_meta(struct tap *t)
{
    work_everywhere(t, meta_round_trips);
    work_everywhere(t, meta_refused);
}

/* --- attachments --- */

static const char *uncommitted(struct work *w, int64_t older_than_ms)
{
    static char text[256];
    struct session s = session_s(w);
    const struct belay_attachment *list = NULL;
    size_t n = 0, len = 0;

    WORK_RC(w,
            attachment_uncommitted(&s, older_than_ms, 0, &w->arena, &list, &n, &w->err),
            BELAY_OK);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        TAP_EQ(w->t, list[i].committed_at_ms, BELAY_TIME_NONE);
        TAP_STR(w->t, list[i].session_id, "s");
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s=%s",
                                i > 0 ? "," : "", list[i].attachment_id, list[i].uri);
    }
    return text;
}

static void attachments(struct work *w)
{
    struct session s = session_s(w), other = session_in(w->space, "other");
    static const char *const ids[] = { "c", "b", "a" };
    struct belay_commit c = commit_nothing();
    bool is_new = false, removed = false;
    size_t n = 9;

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        WORK_RC(w, attachment_intent(&s, ids[i], "u:1", &is_new, &w->err), BELAY_OK);
        TAP_OK(w->t, is_new);
        fake_advance_us(&w->clock, 1000);
    }
    WORK_RC(w, attachment_intent(&s, "a", "u:2", &is_new, &w->err), BELAY_OK);
    TAP_OK(w->t, !is_new);
    WORK_RC(w, attachment_intent(&other, "a", "u:3", &is_new, &w->err), BELAY_OK);
    TAP_OK(w->t, is_new); /* ids are a session's own */
    TAP_STR(w->t, uncommitted(w, INT64_MAX), "c=u:1,b=u:1,a=u:1");
    TAP_STR(w->t, uncommitted(w, START_MS + 1), "c=u:1,b=u:1"); /* at or before */
    TAP_STR(w->t, uncommitted(w, START_MS), "c=u:1");
    TAP_STR(w->t, uncommitted(w, INT64_MIN), "");
    WORK_RC(w, attachment_commit(&s, LIST("c", "c", "x"), 3, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 1); /* out of band */
    WORK_RC(w, attachment_commit(&s, LIST("c"), 1, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 0);
    c.attachments = LIST("b", "c", "nowhere");
    c.n_attachments = 3;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* within a commit */
    TAP_STR(w->t, uncommitted(w, INT64_MAX), "a=u:1");
    check_all(w);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        WORK_RC(w, attachment_forget(&s, ids[i], &removed, &w->err), BELAY_OK);
        TAP_OK(w->t, removed);
        WORK_RC(w, attachment_forget(&s, ids[i], &removed, &w->err), BELAY_OK);
        TAP_OK(w->t, !removed);
    }
    TAP_STR(w->t, uncommitted(w, INT64_MAX), "");
    WORK_RC(w, attachment_intent(&s, "a", "", &is_new, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "uri");
    WORK_RC(w, attachment_intent(&s, "", "u", &is_new, &w->err), BELAY_INVALID);
    check_all(w);
}

static void test_attachments(struct tap *t)
{
    work_everywhere(t, attachments);
}

/* --- tombstones and vacuum --- */

static void tombstones(struct work *w)
{
    struct session s = session_s(w);
    struct belay_node one;
    struct belay_nodes nodes;
    size_t n = 9;

    WORK_RC(w, session_tombstone(&s, LIST("a"), 1, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 0); /* there is no session */
    WORK_RC(
        w,
        append_to(w, "s",
                  LIST(node("a", NULL), node("b", "a"), node("c", "b"), node("d", "c")),
                  4),
        BELAY_OK);
    WORK_RC(w, session_tombstone(&s, LIST("b", "b", "x"), 3, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 1);
    WORK_RC(w, session_tombstone(&s, LIST("b"), 1, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 0);
    TAP_STR(w->t, all_nodes(w, "s"), "a,c,d");
    TAP_STR(w->t, path_of(w, "s", NULL), "...c,d");
    TAP_EQ(w->t, head_of(w, "s").node_count, 3);
    TAP_EQ(w->t, head_of(w, "s").revision, 1); /* no commit */
    WORK_RC(w, session_node(&s, "b", &w->arena, &one, &w->err), BELAY_NOT_FOUND);
    WORK_RC(w, session_path(&s, "b", &w->arena, &nodes, &w->err), BELAY_NOT_FOUND);
    check_all(w);
    WORK_RC(w, session_vacuum(&s, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 1);
    WORK_RC(w, session_vacuum(&s, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 0);
    TAP_STR(w->t, path_of(w, "s", NULL), "...c,d"); /* now it is missing */
    WORK_RC(w, append_to(w, "s", LIST(node("b", "a")), 1), BELAY_OK); /* free again */
    TAP_STR(w->t, path_of(w, "s", NULL), "a,b");
    TAP_EQ(w->t, head_of(w, "s").node_count, 4);
    WORK_RC(w, session_tombstone(&s, LIST(""), 1, &n, &w->err), BELAY_INVALID);
    check_all(w);
}

static void test_tombstones(struct tap *t)
{
    work_everywhere(t, tombstones);
}

/* Appends a chain of n nodes "<prefix><i>" to a session, 1000 at a time. */
static void append_many(struct work *w, const char *id, const char *prefix, int n)
{
    enum { STEP = 1000, LEN = 96 };
    char(*texts)[LEN] = malloc((size_t)STEP * LEN);
    const char *nodes[STEP];

    for (int from = 0; from < n; from += STEP) {
        int step = n - from < STEP ? n - from : STEP;
        for (int i = 0; i < step; i++) {
            (void)snprintf(texts[i], LEN, "{\"node_id\":\"%s%d\",\"kind\":\"k\"}",
                           prefix, from + i);
            nodes[i] = texts[i];
        }
        arena_reset(&w->arena);
        WORK_RC(w, append_to(w, id, nodes, (size_t)step), BELAY_OK);
    }
    free(texts);
}

static size_t tombstone_many(struct work *w, const char *prefix, int n)
{
    struct session s = session_s(w);
    char(*ids)[16] = malloc((size_t)n * sizeof(*ids));
    const char **list = malloc((size_t)n * sizeof(*list));
    size_t hidden = 0;

    for (int i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%s%d", prefix, i);
        list[i] = ids[i];
    }
    WORK_RC(w, session_tombstone(&s, list, (size_t)n, &hidden, &w->err), BELAY_OK);
    free(list);
    free(ids);
    return hidden;
}

static void many_tombstones(struct work *w)
{
    struct session s = session_s(w);
    struct belay_nodes nodes;
    size_t n = 0;

    append_many(w, "s", "n", 2500);
    WORK_RC(w, append_to(w, "s", LIST(node("last", NULL)), 1), BELAY_OK);
    TAP_EQ(w->t, tombstone_many(w, "n", 2500), 2500);
    TAP_STR(w->t, all_nodes(w, "s"), "last");
    WORK_RC(w, session_vacuum(&s, &n, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 2500);
    WORK_RC(w, session_nodes(&s, 0, 1, &w->arena, &nodes, &w->err), BELAY_OK);
    TAP_EQ(w->t, nodes.nodes[0].seq, 2501);
    check_all(w);
}

static void test_many_tombstones(struct tap *t)
{
    work_everywhere(t, many_tombstones);
}

/* More nodes than a commit replaces. */
static void too_many_to_replace(struct work *w)
{
    struct session s = session_s(w);
    struct belay_commit c = commit_of(LIST(node("x", NULL)), 1);
    size_t n = 0;

    if (w->on != ON_MEMORY)
        return;
    append_many(w, "s", "n", 20001);
    c.graph = BELAY_GRAPH_REPLACE;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "too_large");
    WORK_RC(w, session_tombstone(&s, LIST("n0"), 1, &n, &w->err), BELAY_OK);
    WORK_RC(w, session_vacuum(&s, &n, &w->err), BELAY_OK);
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK); /* 20000 go */
    TAP_STR(w->t, all_nodes(w, "s"), "x");
    check_all(w);
}

static void test_too_many_to_replace(struct tap *t)
{
    work_everywhere(t, too_many_to_replace);
}

/* --- healing --- */

static void healed(struct work *w)
{
    struct session s = session_s(w);
    bool changed = true;

    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_OK(w->t, !changed); /* there is no session */
    WORK_RC(w,
            append_to(w, "s",
                      LIST(node("a", NULL), node("b", "a"), plugin_node("p", "b"),
                           node("c", "p")),
                      4),
            BELAY_OK);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_OK(w->t, !changed);
    TAP_EQ(w->t, head_of(w, "s").revision, 1);
    WORK_RC(w, session_tombstone(&s, LIST("c"), 1, NULL, &w->err), BELAY_OK);
    TAP_STR(w->t, path_of(w, "s", NULL), "...");
    fake_advance_us(&w->clock, 1000);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_OK(w->t, changed);
    TAP_STR(w->t, head_of(w, "s").leaf, "b"); /* p is no message */
    TAP_EQ(w->t, head_of(w, "s").revision, 2);
    TAP_STR(w->t, entry_of(w, "s", 2),
            "{\"at_ms\":1750000000001,\"completed\":[],\"heal\":true,\"leaf\":\"b\","
            "\"node_count\":3,\"node_ids\":[],\"revision\":2,\"usage_ids\":[]}");
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_OK(w->t, !changed);
    WORK_RC(w, session_tombstone(&s, LIST("a", "b"), 2, NULL, &w->err), BELAY_OK);
    WORK_RC(w, session_vacuum(&s, NULL, &w->err), BELAY_OK);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_OK(w->t, changed);
    TAP_STR(w->t, head_of(w, "s").leaf, NULL); /* no message is left */
    struct belay_commit c = commit_nothing();
    c.expected_revision = 3;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    check_all(w);
}

/* The message lies pages away from the end. */
static void healed_far_away(struct work *w)
{
    struct session s = session_s(w);
    bool changed = false;

    WORK_RC(w, append_to(w, "s", LIST(node("first", NULL)), 1), BELAY_OK);
    append_many(w, "s", "n", 700);
    WORK_RC(w, session_tombstone(&s, LIST("n699"), 1, NULL, &w->err), BELAY_OK);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_OK(w->t, changed);
    TAP_STR(w->t, head_of(w, "s").leaf, "first");
}

static void test_healed(struct tap *t)
{
    work_everywhere(t, healed);
    work_everywhere(t, healed_far_away);
}

/* --- deleting --- */

/* Enough of each for several steps, where that is cheap. */
static int n_of(const struct work *w, int many)
{
    return work_is_slow(w) ? many / 10 : many;
}

/* Everything a session can have. */
static void fill(struct work *w, const char *id)
{
    struct session s = session_in(w->space, id);
    struct belay_usage use[] = { { .source = "s", .model = "m", .input_tokens = 1 },
                                 { .id = "u", .source = "s", .model = "m" } };
    struct belay_checkpoint cp = { .tool_state = { .body = "tools", .len = 5 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = "parent" };
    struct belay_commit c = commit_nothing();
    char turn[16];

    append_many(w, id, "n", 600);
    for (int i = 0; i < n_of(w, 40); i++) {
        (void)snprintf(turn, sizeof(turn), "t%d", i);
        c.turn_id = turn;
        c.usage = use;
        c.n_usage = COUNT_OF(use);
        c.checkpoint = &cp;
        c.config = "{}";
        c.agent_frames = "[]";
        WORK_RC(w, commit_to(w, id, &c, NULL), BELAY_OK);
    }
    WORK_RC(w, session_tombstone(&s, LIST("n3", "n500"), 2, NULL, &w->err), BELAY_OK);
    for (int i = 0; i < n_of(w, 260); i++) {
        (void)snprintf(turn, sizeof(turn), "a%d", i);
        WORK_RC(w, attachment_intent(&s, turn, "u", NULL, &w->err), BELAY_OK);
        enqueue_to(w, id, turn);
    }
    WORK_RC(w, attachment_commit(&s, LIST("a0", "a7", "a12"), 3, NULL, &w->err),
            BELAY_OK);
    (void)claim_from(w, id, 3, 60000);
    WORK_RC(w, session_meta_save(&s, &meta, false, &w->err), BELAY_OK);
}

/* Lines of the dump that speak of a session, but for the rows that say it is gone. */
static size_t traces(struct work *w, const char *id)
{
    CLEANUP(buf_release) struct buf dump = work_dump(w, "default");
    char *save = NULL, quoted[64], family[64];
    size_t n = 0;

    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", id);
    (void)snprintf(family, sizeof(family), "/%s\"", id);
    buf_append_char(&dump, '\0');
    for (char *line = strtok_r((char *)dump.ptr, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        bool tombstone =
            strncmp(line, "row session ver=", 16) == 0 && strstr(line, "\"deleted\"");
        bool inbox = strncmp(line, "row inbox ver=", 14) == 0 ||
                     strncmp(line, "row inbox_front ver=", 20) == 0;
        if (!tombstone && !inbox && (strstr(line, quoted) || strstr(line, family))) {
            n++;
            if (n < 5)
                printf("# left: %s\n", line);
        }
    }
    return n;
}

static void all_refuse(struct work *w, const char *id)
{
    struct session s = session_in(w->space, id);
    struct belay_session_meta meta = { .size = sizeof(meta) };
    struct belay_commit c = commit_of(LIST(node("x", NULL)), 1);
    struct belay_committed committed;
    const struct belay_attachment *list;
    const struct belay_usage *usage;
    struct belay_commit_log log;
    struct belay_nodes nodes;
    struct belay_node one;
    struct belay_head head;
    bool flag;
    size_t n;
    const struct {
        belay_rc got, want;
        const char *what;
    } tries[] = {
#define TRY(call, code) { call, code, #call }
        TRY(session_commit(&s, &c, &w->arena, &committed, &w->err), BELAY_WRONG_STATE),
        TRY(session_meta_save(&s, &meta, false, &w->err), BELAY_WRONG_STATE),
        TRY(session_meta_save(&s, &meta, true, &w->err), BELAY_WRONG_STATE),
        TRY(session_tombstone(&s, LIST("n1"), 1, &n, &w->err), BELAY_WRONG_STATE),
        TRY(session_vacuum(&s, &n, &w->err), BELAY_WRONG_STATE),
        TRY(session_heal(&s, &flag, &w->err), BELAY_WRONG_STATE),
        TRY(attachment_intent(&s, "x", "u", &flag, &w->err), BELAY_WRONG_STATE),
        TRY(attachment_commit(&s, LIST("x"), 1, &n, &w->err), BELAY_WRONG_STATE),
        TRY(attachment_forget(&s, "x", &flag, &w->err), BELAY_WRONG_STATE),
        TRY(session_head(&s, &w->arena, &head, &w->err), BELAY_NOT_FOUND),
        TRY(session_nodes(&s, 0, 0, &w->arena, &nodes, &w->err), BELAY_NOT_FOUND),
        TRY(session_path(&s, NULL, &w->arena, &nodes, &w->err), BELAY_NOT_FOUND),
        TRY(session_node(&s, "n1", &w->arena, &one, &w->err), BELAY_NOT_FOUND),
        TRY(session_usage(&s, &w->arena, &usage, &n, &w->err), BELAY_NOT_FOUND),
        TRY(session_log(&s, 0, 0, &w->arena, &log, &w->err), BELAY_NOT_FOUND),
        TRY(session_meta_load(&s, &w->arena, &meta, &w->err), BELAY_NOT_FOUND),
        TRY(attachment_uncommitted(&s, 0, 0, &w->arena, &list, &n, &w->err),
            BELAY_NOT_FOUND),
#undef TRY
    };

    for (size_t i = 0; i < COUNT_OF(tries); i++)
        tap_check_str(w->t, belay_error_info((int)tries[i].got)->name,
                      belay_error_info((int)tries[i].want)->name, tries[i].what,
                      __FILE__, __LINE__);
    TAP_STR(w->t, w->err.reason, "deleted");
}

static size_t n_listed(struct work *w, const char *parent)
{
    struct belay_sessions list = { .n = 0 };

    WORK_RC(w, session_list(w->space, parent, NULL, 0, &w->arena, &list, &w->err),
            BELAY_OK);
    return list.n;
}

static void deleted(struct work *w)
{
    struct session s = session_s(w), none = session_in(w->space, "none");
    bool was = true;

    WORK_RC(w, session_delete(&none, &was, &w->err), BELAY_OK);
    TAP_OK(w->t, !was);
    fill(w, "s");
    fill(w, "t");
    check_all(w);
    TAP_EQ(w->t, n_listed(w, NULL), 2);
    WORK_RC(w, session_delete(&s, &was, &w->err), BELAY_OK);
    TAP_OK(w->t, was);
    TAP_EQ(w->t, traces(w, "s"), 0);
    TAP_EQ(w->t, n_listed(w, NULL), 1);
    TAP_EQ(w->t, n_listed(w, "parent"), 1);
    all_refuse(w, "s");
    WORK_RC(w, session_delete(&s, &was, &w->err), BELAY_OK);
    TAP_OK(w->t, !was);
    /* The neighbour is untouched. */
    TAP_EQ(w->t, head_of(w, "t").revision, 1 + n_of(w, 40));
    TAP_OK(w->t, batches_in(w, "t") >= 26);
    WORK_RC(w, session_delete(&none, &was, &w->err), BELAY_OK);
    check_all(w);
    struct belay_draft draft = { .size = sizeof(draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .session_id = "s" };
    struct belay_enqueued out;
    WORK_RC(w, queue_enqueue(w->space, &draft, &w->arena, &out, &w->err),
            BELAY_WRONG_STATE);
}

static void test_deleted(struct tap *t)
{
    work_everywhere(t, deleted);
}

/* A session that is only announced by one thing. */
static void deleted_without_head(struct work *w)
{
    static const char *const ids[] = { "inbox", "meta", "attachment" };
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = "p" };
    bool was = false;

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct session s = session_in(w->space, ids[i]);
        if (i == 0)
            enqueue_to(w, ids[i], NULL);
        else if (i == 1)
            WORK_RC(w, session_meta_save(&s, &meta, false, &w->err), BELAY_OK);
        else
            WORK_RC(w, attachment_intent(&s, "a", "u", NULL, &w->err), BELAY_OK);
        WORK_RC(w, session_delete(&s, &was, &w->err), BELAY_OK);
        TAP_OK(w->t, was);
        TAP_EQ(w->t, traces(w, ids[i]), 0);
        all_refuse(w, ids[i]);
    }
    check_all(w);
}

static void test_deleted_without_head(struct tap *t)
{
    work_everywhere(t, deleted_without_head);
}

/* The n-th commit of a deletion fails, whichever it is: what was begun refuses
 * everything, and repeating it comes to the end. */
static bool delete_failing(struct work *w, struct driver *faulty, unsigned nth)
{
    struct session s = session_s(w);
    bool was = false;

    fill(w, "s");
    WORK_RC(w,
            fault_arm(faulty,
                      &(struct fault){
                          .op = FAULT_ON_COMMIT, .kind = FAULT_BEFORE, .nth = nth },
                      &w->err),
            BELAY_OK);
    belay_rc rc = session_delete(&s, &was, &w->err);
    fault_clear(faulty);
    if (rc == BELAY_OK)
        return true;
    WORK_RC(w, rc, BELAY_UNAVAILABLE);
    check_all(w);
    if (nth > 1)
        all_refuse(w, "s");
    else
        TAP_EQ(w->t, head_of(w, "s").revision, 1 + n_of(w, 40));
    WORK_RC(w, session_delete(&s, &was, &w->err), BELAY_OK);
    TAP_OK(w->t, was);
    TAP_EQ(w->t, traces(w, "s"), 0);
    all_refuse(w, "s");
    check_all(w);
    return false;
}

static void test_resumed(struct tap *t)
{
    bool over = false;
    unsigned nth = 0;

    while (!over && ++nth < 100) {
        struct work w = { .t = t };
        struct driver *memory = NULL;
        atomic_store(&w.clock.wall_ms, START_MS);
        atomic_store(&w.clock.mono_us, 1000000);
        w.config = (struct driver_config){ .schema = &schema_belay,
                                           .clock = fake_clock_hook(&w.clock),
                                           .random = fake_random_hook(&w.random) };
        WORK_RC(&w, memory_open(&memory, &w.config, &w.err), BELAY_OK);
        WORK_RC(&w, fault_wrap(&w.driver, memory, &w.config.clock, &w.err), BELAY_OK);
        w.store = work_store(&w);
        w.space = work_space(&w, w.store, "default");
        over = delete_failing(&w, w.driver, nth);
        work_close(&w);
    }
    TAP_OK(t, nth > 8 && nth < 100);
}

/* Two delete one session, turn by turn. */
static void deleted_by_two(struct work *w)
{
    struct store *other = work_store(w);
    struct session mine = session_s(w),
                   theirs = session_in(work_space(w, other, "default"), "s");
    bool was = false;

    fill(w, "s");
    WORK_RC(w, session_delete(&theirs, &was, &w->err), BELAY_OK);
    TAP_OK(w->t, was);
    WORK_RC(w, session_delete(&mine, &was, &w->err), BELAY_OK);
    TAP_OK(w->t, !was);
    all_refuse(w, "s"); /* through a handle that had it open */
    store_close(other);
}

static void test_deleted_by_two(struct tap *t)
{
    work_everywhere(t, deleted_by_two);
}

/* --- damage --- */

struct damage {
    const struct row_type *type;
    struct value key[2];
    struct change change;
};

static belay_rc damage_body(struct txn *t, void *arg)
{
    const struct damage *d = arg;
    const struct row *row;
    belay_rc rc = txn_get(t, d->type, d->key, &row);

    return rc ? rc : txn_put(t, d->type, d->key, &d->change, 1);
}

static void damage(struct work *w, struct damage d)
{
    WORK_RC(w, work_run(w, w->space, damage_body, &d), BELAY_OK);
}

static void damage_session(struct work *w, unsigned column, struct value value)
{
    damage(w, (struct damage){ &row_session, { value_str("s") }, { column, value } });
}

static void damage_node(struct work *w, int64_t seq, unsigned column,
                        struct value value)
{
    damage(w, (struct damage){
                  &row_node, { value_str("s"), value_i64(seq) }, { column, value } });
}

static void note_finding(void *arg, const struct finding *f)
{
    char *said = arg;

    if (!said[0])
        (void)snprintf(said, 128, "%s %.*s", f->what, (int)f->entity.len,
                       (const char *)f->entity.ptr);
}

/* "what entity" of the first finding. */
static const char *first_finding(struct work *w)
{
    static char said[128];
    struct check_counts counts;

    said[0] = '\0';
    WORK_RC(w, check_store(w->store, note_finding, said, &counts, &w->err), BELAY_OK);
    return said;
}

/* Numbers and states that cannot be; each is put right again. */
static void damaged_heads(struct work *w)
{
    static const struct {
        unsigned column;
        struct value value;
        const char *finding;
    } damages[] = {
        { SESSION_REVISION, { .kind = VALUE_I64, .i = -1 }, "bad_value s" },
        { SESSION_NODE_COUNT, { .kind = VALUE_I64, .i = -1 }, "bad_value s" },
        { SESSION_NODE_COUNT, { .kind = VALUE_I64, .i = 3 }, "" },
        { SESSION_FIRST_SEQ, { .kind = VALUE_I64, .i = 0 }, "bad_value s" },
        { SESSION_FIRST_SEQ, { .kind = VALUE_I64, .i = 4 }, "" },
        { SESSION_LAST_SEQ, { .kind = VALUE_I64, .i = INT64_MAX }, "bad_value s" },
        { SESSION_STATE,
          { .kind = VALUE_TEXT, .b = { (const uint8_t *)"odd", 3 } },
          "bad_value s" },
    };
    struct session s = session_s(w);
    struct belay_commit c = commit_nothing();
    struct belay_head head;
    bool flag;

    WORK_RC(w, append_to(w, "s", LIST(node("a", NULL), node("b", "a")), 2), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        unsigned column = damages[i].column;
        struct value good = column == SESSION_STATE ? value_str(SESSION_ACTIVE)
                            : column == SESSION_REVISION || column == SESSION_FIRST_SEQ
                                ? value_i64(1)
                                : value_i64(2);
        damage_session(w, column, damages[i].value);
        WORK_RC(w, session_head(&s, &w->arena, &head, &w->err), BELAY_CORRUPT);
        TAP_STR(w->t, w->err.reason, "bad_value");
        WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_CORRUPT);
        WORK_RC(w, session_delete(&s, &flag, &w->err), BELAY_CORRUPT);
        if (damages[i].finding[0])
            TAP_STR(w->t, first_finding(w), damages[i].finding);
        damage_session(w, column, good);
    }
    damage_session(w, SESSION_TOOL_REF, value_str("x"));
    TAP_STR(w->t, first_finding(w), "bad_value s");
    damage_session(w, SESSION_TOOL_REF, value_null());
    check_all(w);
}

static void test_damaged_heads(struct tap *t)
{
    work_everywhere(t, damaged_heads);
}

static void damaged_nodes(struct work *w)
{
    struct session s = session_s(w);
    struct belay_nodes nodes;
    struct belay_node one;
    bool changed;

    WORK_RC(w,
            append_to(w, "s", LIST(node("a", NULL), node("b", "a"), node("c", "b")), 3),
            BELAY_OK);
    damage_node(w, 1, NODE_PARENT_SEQ, value_i64(3));
    WORK_RC(w, session_path(&s, NULL, &w->arena, &nodes, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "cycle");
    damage_node(w, 1, NODE_PARENT_SEQ, value_i64(INT64_MIN));
    WORK_RC(w, session_path(&s, NULL, &w->arena, &nodes, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, first_finding(w), "bad_value a");
    damage_node(w, 1, NODE_PARENT_SEQ, value_null());
    damage_node(w, 2, NODE_JSON, value_json(bytes_str("{\"node_id\":")));
    WORK_RC(w, session_nodes(&s, 0, 0, &w->arena, &nodes, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.entity, "b");
    WORK_RC(w, session_path(&s, NULL, &w->arena, &nodes, &w->err), BELAY_CORRUPT);
    WORK_RC(w, session_node(&s, "b", &w->arena, &one, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, first_finding(w), "bad_value b");
    WORK_RC(w, session_tombstone(&s, LIST("c"), 1, NULL, &w->err), BELAY_OK);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_CORRUPT);
    WORK_RC(w, session_tombstone(&s, LIST("b"), 1, NULL, &w->err), BELAY_OK);
    WORK_RC(w, session_heal(&s, &changed, &w->err), BELAY_OK);
    TAP_STR(w->t, path_of(w, "s", NULL), "a");
    WORK_RC(w, session_vacuum(&s, NULL, &w->err), BELAY_OK);
    check_all(w);
}

static void test_damaged_nodes(struct tap *t)
{
    work_everywhere(t, damaged_nodes);
}

static belay_rc trim_body(struct txn *t, void *arg)
{
    (void)arg;
    return txn_log_trim(t, bytes_str("commits/s"), 1);
}

static void damaged_rest(struct work *w)
{
    static const char *const ledgers[] = { "{}", "[1]",
                                           "[{\"source\":\"s\",\"model\":\"m\"}]",
                                           "[" };
    struct session s = session_s(w);
    struct belay_usage use = { .source = "s", .model = "m", .input_tokens = 1 };
    struct belay_commit c = commit_nothing(), first;
    const struct belay_usage *usage = NULL;
    size_t n = 0;

    c.usage = &use;
    c.n_usage = 1;
    c.turn_id = "t";
    first = c;
    WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_OK);
    c.turn_id = NULL;
    for (size_t i = 0; i < COUNT_OF(ledgers); i++) {
        damage(w,
               (struct damage){ &row_session_usage,
                                { value_str("s") },
                                { USAGE_LEDGER, value_json(bytes_str(ledgers[i])) } });
        WORK_RC(w, session_usage(&s, &w->arena, &usage, &n, &w->err), BELAY_CORRUPT);
        WORK_RC(w, commit_to(w, "s", &c, NULL), BELAY_CORRUPT);
    }
    WORK_RC(w, commit_to(w, "s", &first, NULL), BELAY_OK); /* is in the log */
    WORK_RC(w, work_run(w, w->space, trim_body, NULL), BELAY_OK);
    WORK_RC(w, commit_to(w, "s", &first, NULL), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "log_gap");
}

static void test_damaged_rest(struct tap *t)
{
    work_everywhere(t, damaged_rest);
}

static const struct tap_case cases[] = {
    { "session_metadata_round_trips", test_meta },
    { "attachment_manifest_records_intent_and_commit_stamps", test_attachments },
    { "tombstone_vacuum_and_gc_are_minimally_consistent", test_tombstones },
    { "tombstones and vacuum work in bounded steps", test_many_tombstones },
    { "more nodes than a commit can replace are refused by name",
      test_too_many_to_replace },
    { "heal_orphaned_leaf moves it to the last message", test_healed },
    { "a session that is deleted leaves nothing but that it was", test_deleted },
    { "what was never committed can be deleted, too", test_deleted_without_head },
    { "a deletion that was interrupted anywhere is gone on with", test_resumed },
    { "a deleted session is not revived by those who had it open",
      test_deleted_by_two },
    { "a head that cannot be is corrupt", test_damaged_heads },
    { "a node that cannot be is corrupt, and no walk is endless", test_damaged_nodes },
    { "a ledger or log that cannot be is corrupt", test_damaged_rest },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
