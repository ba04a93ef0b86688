/* Stores that were damaged below the library: what is there and cannot be read is
 * `corrupt`, never "absent", and never trusted. */
#include "nouns.h"

#define FENCE_N_MAX ((INT64_C(1) << 40) - 1)

/* Closed, damaged, and not to be opened again: *err says why. */
static bool refused(struct world *w, const char *sql)
{
    struct belay_options options = { .size = sizeof(options) };
    struct belay *b = NULL;
    char why[200] = "";

    world_shut(w);
    OK(w, w->store->below->damage(w->dir, sql, why, sizeof(why)));
    belay_rc rc = belay_open(w->url, &options, &b, &w->err);
    OK(w, b == NULL);
    belay_close(b);
    return RC(w, rc, BELAY_UNSUPPORTED_FORMAT);
}

static void real_versions(struct world *w)
{
    const struct below *below = w->store->below;
    char found[32] = "", after[32] = "";

    if (!below->layout)
        return;
    post_many(w, "s", 1);
    OK(w, below->ask(w->dir, below->layout, found, sizeof(found)));
    if (!refused(w, below->layout_99))
        return;
    EQ(w, w->err.actual, 99);
    STR(w, text(w, "%lld", (long long)w->err.expected), found);
    OK(w, strstr(w->err.message, "99") != NULL);
    OK(w, strstr(w->err.message, found) != NULL);
    OK(w, below->ask(w->dir, below->layout, after, sizeof(after)));
    STR(w, after, "99"); /* nothing was touched */
}

static void real_format(struct world *w)
{
    post_many(w, "s", 1);
    if (!refused(w, "UPDATE belay_format SET format = 99, min_reader = 99"))
        return;
    EQ(w, w->err.actual, 99);
    EQ(w, w->err.expected, 4);
    OK(w, strstr(w->err.message, "99") != NULL);
}

/* The seed keeps replays of effects elsewhere. */
static void no_replay_tables(struct world *w)
{
    const struct below *below = w->store->below;
    char n[32] = "";

    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    OK(w, below->ask(w->dir, below->foreign, n, sizeof(n)));
    STR(w, n, "0");
}

/* 5.2, 16. */
static void fences_do_not_overflow(struct world *w)
{
    post_many(w, "s", 2);
    (void)ask(w, (struct ask){ .max = 2, .lease = AT_ONCE });
    if (!world_damage(w,
                      text(w, "UPDATE belay_batch SET lease_fence = %lld WHERE seq = 2",
                           (long long)FENCE_N_MAX)))
        return;
    const char *before = everything(w);
    WHY(w, ask_try(w, (struct ask){ .max = 2 }), BELAY_OUT_OF_RANGE, "fence");
    STR(w, everything(w), before); /* not even the one that could */
    STR(w, seqs(w, take(w, 1)), "1");
    WHY(w, ask_try(w, (struct ask){ 0 }), BELAY_OUT_OF_RANGE, "fence");
    RC(w, belay_queue_drop(w->use, "s", "2", &w->err), BELAY_OK); /* the way out */
}

/* X10: an epoch that was raised ends every lease from before. */
static void epochs_end_leases(struct world *w)
{
    post_many(w, "s", 2);
    const struct belay_claim *c = ask(w, (struct ask){ .max = 2, .lease = AT_ONCE });
    const char *proof = NULL;
    if (!c || !RC(w, belay_claim_text(c, w->arena, &proof, &w->err), BELAY_OK) ||
        !world_damage(w, "UPDATE belay_epoch SET epoch = 1, ver = ver + 1"))
        return;
    RC(w, belay_claim_parse(proof, w->arena, &c, &w->err), BELAY_OK);
    const char *before = everything(w);
    WHY(w, renew(w, c, MINUTE), BELAY_LEASE_LOST, "epoch");
    WHY(w, finish(w, "s", 0, c), BELAY_LEASE_LOST, "epoch");
    STR(w, everything(w), before);
    const struct belay_claim *next = take(w, 2);
    if (OK(w, next != NULL))
        OK(w, next->fence > FENCE_N_MAX);
}

/* One damaged batch, what it answers with, and that it can be got rid of. */
static void poisoned_batches(struct world *w)
{
    static const char *const ways[] = {
        "UPDATE belay_batch SET delivery = 'whenever' WHERE seq = 2",
        "UPDATE belay_batch SET slot = 'maybe' WHERE seq = 2",
        "UPDATE belay_batch SET merge_key = '{\"group\":' WHERE seq = 2",
        "UPDATE belay_batch SET lease_fence = -5 WHERE seq = 2",
        "UPDATE belay_batch SET items = '[{' WHERE seq = 2",
        "UPDATE belay_batch SET items = '{}' WHERE seq = 2",
        "UPDATE belay_batch SET items = NULL WHERE seq = 2",
    };
    struct belay_batches out = { 0 };

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct world v;
        unsigned failed = w->t->failed;
        if (!world_open(&v, w->t, w->store, WORLD_START_MS))
            return;
        post_many(&v, "s", 3);
        post_many(&v, "t", 1);
        if (world_damage(&v, ways[i])) {
            RC(&v, belay_queue_list(v.use, "s", NULL, v.arena, &out, &v.err),
               BELAY_CORRUPT);
            OK(&v, v.err.entity[0] != 0 || strstr(v.err.message, "2") != NULL);
            RC(&v, ask_try(&v, (struct ask){ .max = 3 }), BELAY_CORRUPT);
            STR(&v, listed(&v, "t"), "1"); /* others do not mind */
            RC(&v, belay_queue_drop(v.use, "s", "2", &v.err), BELAY_OK);
            STR(&v, listed(&v, "s"), "1 3");
            STR(&v, seqs(&v, take(&v, 3)), "1 3");
        }
        world_close(&v);
        if (w->t->failed > failed)
            printf("# after: %s\n", ways[i]);
    }
}

/* A node, a head, a log entry, a ledger that cannot be read: said, not skipped. */
static void poisoned_sessions(struct world *w)
{
    static const struct {
        const char *sql;
        const char *call;
    } ways[] = {
        { "UPDATE belay_node SET node = '{\"node_id\":' WHERE seq = 2", "nodes" },
        { "UPDATE belay_node SET node = '[]' WHERE seq = 2", "nodes" },
        { "UPDATE belay_node SET parent_seq = 2 WHERE seq = 2", "path" },
        { "UPDATE belay_node SET parent_seq = 2 WHERE seq = 1", "path" },
        { "UPDATE belay_node SET parent_seq = -7 WHERE seq = 2", "path" },
        { "UPDATE belay_session SET revision = -1", "head" },
        { "UPDATE belay_session SET node_count = -1", "head" },
        { "UPDATE belay_session SET state = 'tired'", "head" },
        { "UPDATE belay_session_frames SET frames = '['", "head" },
        { "UPDATE belay_session_usage SET ledger = '{'", "usage" },
    };

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct belay_usage used = { .source = "x", .model = "m", .input_tokens = 1 };
        const char *tree[2] = { 0 }, *got = "?";
        struct world v;
        if (!world_open(&v, w->t, w->store, WORLD_START_MS))
            return;
        tree[0] = node(&v, "a", NULL);
        tree[1] = node(&v, "b", "a");
        RC(&v,
           commit(&v, "s",
                  (struct belay_commit){ .graph = BELAY_GRAPH_APPEND,
                                         .agent_frames = "[{}]",
                                         .nodes = tree,
                                         .n_nodes = 2,
                                         .usage = &used,
                                         .n_usage = 1 }),
           BELAY_OK);
        if (world_damage(&v, ways[i].sql)) {
            belay_rc rc =
                belay_session_head(session(&v, "s"), v.arena, &v.head, &v.err);
            if (strcmp(ways[i].call, "nodes") == 0)
                got = nodes(&v, "s");
            else if (strcmp(ways[i].call, "path") == 0)
                got = path(&v, "s", NULL);
            else if (strcmp(ways[i].call, "usage") == 0)
                got = usage(&v, "s");
            else
                got = belay_error_info((int)rc)->name;
        }
        if (!STR(&v, got, "corrupt"))
            printf("# after: %s\n", ways[i].sql);
        world_close(&v);
    }
}

static const struct noun_case cases[] = {
    { "unsupported_schema_error_reports_real_versions", real_versions, CASE_DAMAGE },
    { "unsupported_schema_error_reports_real_versions: of a namespace", real_format,
      CASE_DAMAGE },
    { "sqlite_store_schema_excludes_embedded_turn_replay_tables", no_replay_tables,
      CASE_DAMAGE },
    { "a fence at its maximum is refused, not wrapped", fences_do_not_overflow,
      CASE_DAMAGE },
    { "L4: a claim from before the epoch was raised changes nothing", epochs_end_leases,
      CASE_DAMAGE },
    { "a batch that cannot be read is corrupt, and can be dropped unread",
      poisoned_batches, CASE_DAMAGE },
    { "what a session has and cannot be read is corrupt, never absent",
      poisoned_sessions, CASE_DAMAGE },
};

const struct topic topic_damage = { cases, COUNT_OF(cases) };
