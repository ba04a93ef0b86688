/* Commits and the rest of a session's calls, asked wrongly. */
#include "nouns.h"

static belay_rc with_node(struct world *w, const char *json)
{
    return commit(w, "s",
                  (struct belay_commit){
                      .graph = BELAY_GRAPH_APPEND, .nodes = &json, .n_nodes = 1 });
}

static void nodes_are_checked(struct world *w)
{
    const char *rows[] = {
        "",
        "{",
        "[]",
        "1",
        "null",
        "{}",
        "{\"kind\":\"event\"}",
        "{\"kind\":\"event\",\"node_id\":1}",
        "{\"kind\":\"event\",\"node_id\":\"\"}",
        "{\"kind\":\"event\",\"node_id\":\"a\\nb\"}",
        "{\"node_id\":\"a\"}",
        "{\"kind\":7,\"node_id\":\"a\"}",
        "{\"kind\":\"event\",\"node_id\":\"a\",\"parent_node_id\":3}",
        "{\"kind\":\"event\",\"node_id\":\"a\",\"node_id\":\"b\"}",
        text(w, "{\"kind\":\"event\",\"node_id\":\"%s\"}", bytes_of(w, 'x', 256)),
    };
    const char *before = everything(w);

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!RC(w, with_node(w, rows[i]), BELAY_INVALID))
            printf("# in row %zu\n", i);
    }
    STR(w, everything(w), before);
    RC(w,
       with_node(w, text(w, "{\"kind\":\"event\",\"node_id\":\"%s\"}",
                         bytes_of(w, 'x', 255))),
       BELAY_OK);
}

static void fields_are_checked(struct world *w)
{
    const char *before = everything(w);
    struct belay_checkpoint cp = { .turn_state = "{", .plugin_snapshot_revision = -1 };
    struct belay_checkpoint low = { .plugin_snapshot_revision = -2 };
    const char *bad_id[] = { "" }, *one = node(w, "n", NULL);
    const struct belay_commit rows[] = {
        { .graph = 3 },
        { .graph = -1 },
        { .graph = BELAY_GRAPH_UNCHANGED, .nodes = &one, .n_nodes = 1 },
        { .expected_revision = -2 },
        { .config = "[]" },
        { .config = "{" },
        { .agent_frames = "{}" },
        { .agent_frames = "[1]" },
        { .agent_frames = "[" },
        { .current_frame = "" },
        { .current_frame = "\xff" },
        { .turn_id = "" },
        { .turn_id = "a\x01" },
        { .turn_id = bytes_of(w, 't', 256) },
        { .leaf = "", .graph = BELAY_GRAPH_APPEND, .nodes = &one, .n_nodes = 1 },
        { .leaf = "n", .clear_leaf = true },
        { .checkpoint = &cp },
        { .checkpoint = &low },
        { .attachments = bad_id, .n_attachments = 1 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!RC(w, commit(w, "s", rows[i]), BELAY_INVALID) ||
            !OK(w, w->err.reason[0] != 0))
            printf("# in row %zu: %s\n", i, w->err.message);
    }
    STR(w, everything(w), before);
}

/* A mebibyte each. */
static void json_has_a_size(struct world *w)
{
    const char *big = bytes_of(w, 'x', (size_t)1024 * 1024), *before = everything(w);
    struct belay_checkpoint cp = { .turn_state = text(w, "{\"x\":\"%s\"}", big),
                                   .plugin_snapshot_revision = BELAY_NONE };

    WHY(w,
        with_node(w,
                  text(w, "{\"kind\":\"event\",\"node_id\":\"n\",\"x\":\"%s\"}", big)),
        BELAY_INVALID, "too_large");
    WHY(w, commit(w, "s", (struct belay_commit){ .config = cp.turn_state }),
        BELAY_INVALID, "too_large");
    WHY(w,
        commit(w, "s",
               (struct belay_commit){ .agent_frames = text(w, "[%s]", cp.turn_state) }),
        BELAY_INVALID, "too_large");
    WHY(w, commit(w, "s", (struct belay_commit){ .checkpoint = &cp }), BELAY_INVALID,
        "too_large");
    STR(w, everything(w), before);
}

static void usage_is_checked(struct world *w)
{
    const char *before = everything(w);
    struct belay_usage rows[] = {
        { .source = "\xff", .model = "m", .input_tokens = 1 },
        { .source = "x", .model = bytes_of(w, 'm', 300), .input_tokens = 1 },
        { .source = "x", .model = "m", .input_tokens = 1, .id = "" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_commit c = { .usage = &rows[i], .n_usage = 1 };
        if (!RC(w, commit(w, "s", c), BELAY_INVALID))
            printf("# in row %zu\n", i);
    }
    STR(w, everything(w), before);
}

static void commits_have_sizes(struct world *w)
{
    static const uint32_t wrong[] = { 0, 4, sizeof(struct belay_commit) - 8,
                                      UINT32_MAX };
    struct belay_session *s = session(w, "s");
    const char *none[] = { NULL };
    struct belay_usage nameless = { .source = NULL, .model = "m" };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct belay_commit c = { .size = wrong[i] };
        RC(w, belay_session_commit(s, &c, w->arena, &w->committed, &w->err),
           BELAY_MISUSE);
    }
    struct belay_commit c = { .size = sizeof(c) };
    RC(w, belay_session_commit(NULL, &c, w->arena, &w->committed, &w->err),
       BELAY_MISUSE);
    RC(w, belay_session_commit(s, NULL, w->arena, &w->committed, &w->err),
       BELAY_MISUSE);
    RC(w, belay_session_commit(s, &c, NULL, &w->committed, &w->err), BELAY_MISUSE);
    RC(w, belay_session_commit(s, &c, w->arena, NULL, &w->err), BELAY_MISUSE);
    RC(w,
       commit(w, "s",
              (struct belay_commit){
                  .graph = BELAY_GRAPH_APPEND, .nodes = none, .n_nodes = 1 }),
       BELAY_MISUSE);
    RC(w, commit(w, "s", (struct belay_commit){ .n_usage = 1 }), BELAY_MISUSE);
    RC(w, commit(w, "s", (struct belay_commit){ .usage = &nameless, .n_usage = 1 }),
       BELAY_MISUSE);
    RC(w, commit(w, "s", (struct belay_commit){ .n_completes = 1 }), BELAY_MISUSE);
    RC(w, commit(w, "s", (struct belay_commit){ .n_attachments = 1 }), BELAY_MISUSE);
    EQ(w, revision(w, "s"), 0);
    EQ(w, w->committed.revision, 0); /* outputs are as they were */
}

static void sessions_are_opened_properly(struct world *w)
{
    static const char *const ids[] = { "", "a\nb", "\xff", "\xc2\x9f" };
    struct belay_session_options o = { .size = sizeof(o), .profile = 4 };
    struct belay_session *s = NULL;

    for (size_t i = 0; i < COUNT_OF(ids); i++)
        WHY(w, belay_session_open(w->use, ids[i], NULL, &s, &w->err), BELAY_INVALID,
            "session_id");
    WHY(w, belay_session_open(w->use, bytes_of(w, 'x', 256), NULL, &s, &w->err),
        BELAY_INVALID, "session_id");
    WHY(w, belay_session_open(w->use, "s", &o, &s, &w->err), BELAY_INVALID, "profile");
    o.profile = -1;
    RC(w, belay_session_open(w->use, "s", &o, &s, &w->err), BELAY_INVALID);
    o.size = 2;
    RC(w, belay_session_open(w->use, "s", &o, &s, &w->err), BELAY_MISUSE);
    RC(w, belay_session_open(NULL, "s", NULL, &s, &w->err), BELAY_MISUSE);
    RC(w, belay_session_open(w->use, NULL, NULL, &s, &w->err), BELAY_MISUSE);
    RC(w, belay_session_open(w->use, "s", NULL, NULL, &w->err), BELAY_MISUSE);
    OK(w, s == NULL);
    belay_session_close(NULL);
}

static void meta_is_checked(struct world *w)
{
    struct belay_session *s = session(w, "s");
    const struct belay_session_meta rows[] = {
        { .size = sizeof(rows[0]), .name = "\xff" },
        { .size = sizeof(rows[0]), .parent = "" },
        { .size = sizeof(rows[0]), .parent = "a\nb" },
        { .size = sizeof(rows[0]), .parent = "s" },
        { .size = sizeof(rows[0]), .caused_by = "1" },
        { .size = sizeof(rows[0]), .parent = "p", .caused_by = "{" },
    };
    struct belay_session_meta got = { .size = sizeof(got) };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!RC(w, belay_session_meta_save(s, &rows[i], false, &w->err), BELAY_INVALID))
            printf("# in row %zu\n", i);
    }
    struct belay_session_meta sized = { .size = 7 };
    RC(w, belay_session_meta_save(s, &sized, false, &w->err), BELAY_MISUSE);
    sized = (struct belay_session_meta){ .size = sizeof(sized), .reserved = 1 };
    RC(w, belay_session_meta_save(s, &sized, false, &w->err), BELAY_MISUSE);
    RC(w, belay_session_meta_save(s, NULL, false, &w->err), BELAY_MISUSE);
    RC(w, belay_session_meta_load(s, NULL, &got, &w->err), BELAY_MISUSE);
    RC(w, belay_session_meta_load(s, w->arena, &got, &w->err), BELAY_NOT_FOUND);
}

static void the_rest_is_checked(struct world *w)
{
    struct belay_session *s = session(w, "s");
    const char *none[] = { NULL }, *before = everything(w);
    struct belay_sessions list = { 0 };
    struct belay_node found = { 0 };
    const char *ids[] = { "\xff" };

    RC(w, belay_session_tombstone(s, none, 1, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_session_tombstone(s, NULL, 1, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_session_tombstone(NULL, ids, 1, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_session_vacuum(NULL, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_session_heal(NULL, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_session_delete(NULL, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_session_node(s, NULL, w->arena, &found, &w->err), BELAY_MISUSE);
    RC(w, belay_session_list(NULL, NULL, NULL, 0, w->arena, &list, &w->err),
       BELAY_MISUSE);
    WHY(w, belay_session_list(w->use, NULL, "no cursor", 0, w->arena, &list, &w->err),
        BELAY_INVALID, "cursor");
    RC(w, belay_session_list(w->use, "", NULL, 0, w->arena, &list, &w->err),
       BELAY_INVALID);
    RC(w, belay_attachment_intent(s, "", "u", NULL, &w->err), BELAY_INVALID);
    RC(w, belay_attachment_intent(s, "a\nb", "u", NULL, &w->err), BELAY_INVALID);
    WHY(w, belay_attachment_intent(s, "a", "", NULL, &w->err), BELAY_INVALID, "uri");
    RC(w, belay_attachment_intent(s, "a", NULL, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_attachment_intent(s, NULL, "u", NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_attachment_forget(s, NULL, NULL, &w->err), BELAY_MISUSE);
    STR(w, everything(w), before);
}

static const struct noun_case cases[] = {
    { "commits: what is no node is invalid", nodes_are_checked, 0 },
    { "commits: enums, ids, revisions and JSON fields", fields_are_checked, 0 },
    { "commits: JSON of more than a mebibyte", json_has_a_size, 0 },
    { "commits: usage", usage_is_checked, 0 },
    { "commits: sizes and NULL", commits_have_sizes, 0 },
    { "session handles: ids, options, NULL", sessions_are_opened_properly, 0 },
    { "meta: ids, JSON, relations, sizes", meta_is_checked, 0 },
    { "sessions: the other calls", the_rest_is_checked, 0 },
};

const struct topic topic_bad_commits = { cases, COUNT_OF(cases) };
