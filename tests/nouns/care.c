/* Looking after sessions: healing, vacuum, deletion in steps, namespaces. */
#include "nouns.h"

static void append_three(struct world *w)
{
    const char *tree[] = {
        node(w, "a", NULL), node(w, "b", "a"),
        "{\"kind\":\"plugin\",\"node_id\":\"p\",\"parent_node_id\":\"b\",\"body\":1,"
        "\"plugin_type\":\"x\"}"
    };

    RC(w,
       commit(w, "s",
              (struct belay_commit){
                  .graph = BELAY_GRAPH_APPEND, .nodes = tree, .n_nodes = 3 }),
       BELAY_OK);
}

static void bury(struct world *w, const char *id)
{
    size_t n = 0;

    RC(w, belay_session_tombstone(session(w, "s"), &id, 1, &n, &w->err), BELAY_OK);
    EQ(w, n, 1);
}

/* The leaf goes to the last conversation node in the order of commits, as a commit. */
static void heal_moves_an_orphaned_leaf(struct world *w)
{
    bool changed = true;

    append_three(w);
    RC(w, belay_session_heal(session(w, "s"), &changed, &w->err), BELAY_OK);
    OK(w, !changed);
    EQ(w, revision(w, "s"), 1);
    bury(w, "p");
    w->use = w->b;
    RC(w, belay_session_heal(session(w, "s"), &changed, &w->err), BELAY_OK);
    OK(w, changed);
    EQ(w, revision(w, "s"), 2);
    STR(w, w->head.leaf, "b");
    STR(w, path(w, "s", NULL), "a b");
    bury(w, "a");
    bury(w, "b");
    RC(w, belay_session_heal(session(w, "s"), &changed, &w->err), BELAY_OK);
    OK(w, changed);
    EQ(w, revision(w, "s"), 3);
    STR(w, w->head.leaf, NULL);
    STR(w, path(w, "s", NULL), "");
    RC(w, belay_session_heal(session(w, "s"), &changed, &w->err), BELAY_OK);
    OK(w, !changed);
}

/* More than one step's worth. */
static void vacuum_removes_for_good(struct world *w)
{
    const char *json[300], *ids[300];
    size_t n = 0;

    for (int i = 0; i < 300; i++) {
        ids[i] = text(w, "n%d", i);
        json[i] = node(w, ids[i], i ? ids[i - 1] : NULL);
    }
    RC(w,
       commit(w, "s",
              (struct belay_commit){
                  .graph = BELAY_GRAPH_APPEND, .nodes = json, .n_nodes = 300 }),
       BELAY_OK);
    RC(w, belay_session_tombstone(session(w, "s"), ids, 299, &n, &w->err), BELAY_OK);
    EQ(w, n, 299);
    RC(w, belay_session_vacuum(session(w, "s"), &n, &w->err), BELAY_OK);
    EQ(w, n, 299);
    STR(w, nodes(w, "s"), "n299");
    STR(w, path(w, "s", NULL), "...n299");
    EQ(w, revision(w, "s"), 1);
    EQ(w, w->head.node_count, 1);
    RC(w, say(w, "s", 1, "n0", "n299"), BELAY_OK); /* its id is free again */
    STR(w, path(w, "s", NULL), "...n299 n0");
}

/* Deleting takes an inbox, nodes and turns of more than one step, and nothing of the
 * neighbours. */
static void deletion_is_thorough(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = "t" };
    bool deleted = false;

    RC(w, belay_session_meta_save(session(w, "s"), &meta, false, &w->err), BELAY_OK);
    RC(w, say(w, "t", 0, "x", NULL), BELAY_OK);
    post_many(w, "t", 1);
    for (int i = 0; i < 40; i++)
        RC(w, say(w, "s", i, text(w, "n%d", i), i ? text(w, "n%d", i - 1) : NULL),
           BELAY_OK);
    post_many(w, "s", 150);
    (void)take(w, 50);
    RC(w, belay_session_delete(session(w, "s"), &deleted, &w->err), BELAY_OK);
    OK(w, deleted);

    w->use = w->b;
    struct belay_sessions all = { 0 };
    struct belay_session_meta got = { .size = sizeof(got) };
    struct belay_commit_log log = { 0 };
    STR(w, listed(w, "s"), "");
    WHY(w, belay_session_head(session(w, "s"), w->arena, &w->head, &w->err),
        BELAY_NOT_FOUND, "deleted");
    OK(w, strcmp(nodes(w, "s"), "") == 0 || strcmp(nodes(w, "s"), "not_found") == 0);
    RC(w, belay_session_meta_load(session(w, "s"), w->arena, &got, &w->err),
       BELAY_NOT_FOUND);
    belay_rc rc = belay_session_log(session(w, "s"), 0, 0, w->arena, &log, &w->err);
    OK(w, rc == BELAY_NOT_FOUND || log.n == 0);
    RC(w, belay_session_list(w->use, NULL, NULL, 0, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 1);
    RC(w, belay_session_list(w->use, "t", NULL, 0, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 0);
    EQ(w, revision(w, "t"), 1);
    STR(w, listed(w, "t"), "1");
}

/* A session that had no commit can be deleted, too: then its id is taken. */
static void deleting_an_inbox_alone(struct world *w)
{
    bool deleted = false;

    post_many(w, "s", 1);
    RC(w, belay_session_delete(session(w, "s"), &deleted, &w->err), BELAY_OK);
    OK(w, deleted);
    STR(w, listed(w, "s"), "");
    WHY(w, post_try(w, (struct post){ 0 }), BELAY_WRONG_STATE, "deleted");
}

/* On a store that cannot be shared another namespace is in a store of its own, which is
 * the same promise with less to prove. */
static void namespaces_are_apart(struct world *w)
{
    struct belay *other = world_handle(w, "other");
    if (!other)
        return;

    post_many(w, "s", 1);
    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    const char *ref = blob(w, "here");
    w->use = other;
    STR(w, belay_namespace(other), "other");
    EQ(w, revision(w, "s"), 0);
    STR(w, listed(w, "s"), "");
    OK(w, !take(w, 1));
    OK(w, !has_blob(w, ref));
    post_many(w, "s", 1);
    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
    w->use = w->a;
    EQ(w, revision(w, "s"), 1);
    STR(w, listed(w, "s"), "1");
    OK(w, has_blob(w, ref));
    world_handle_close(w, other);
}

static const struct noun_case cases[] = {
    { "heal moves an orphaned leaf to the last conversation node",
      heal_moves_an_orphaned_leaf, 0 },
    { "vacuum removes what is tombstoned for good", vacuum_removes_for_good, 0 },
    { "deleting a session takes all of it and nothing else", deletion_is_thorough, 0 },
    { "a session without a commit can be deleted", deleting_an_inbox_alone, 0 },
    { "namespaces know nothing of each other", namespaces_are_apart, 0 },
};

const struct topic topic_care = { cases, COUNT_OF(cases) };
