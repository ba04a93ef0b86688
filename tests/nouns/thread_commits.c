/* Eight at once on one session: commits, blobs, garbage. */
#include <stdatomic.h>

#include "nouns.h"

#define HANDS 8
#define ROUNDS 20

struct race {
    atomic_int winners[ROUNDS];
    atomic_int done;
};

static void race_for_revision(struct world *w, unsigned i, void *arg)
{
    struct race *r = arg;

    for (int round = 0; round < ROUNDS; round++) {
        belay_rc rc = say(w, "s", round, text(w, "n%d.%u", round, i), NULL);
        if (rc == BELAY_OK) {
            EQ(w, w->committed.revision, round + 1);
            atomic_fetch_add(&r->winners[round], 1);
            continue;
        }
        RC(w, rc, BELAY_HEAD_REVISION_CONFLICT);
        EQ(w, w->err.expected, round);
        OK(w, w->err.actual > round);
    }
}

static void one_winner_a_round(struct world *w)
{
    struct race r = { .done = 0 };

    world_crowd(w, HANDS, race_for_revision, &r);
    for (int i = 0; i < ROUNDS; i++)
        EQ(w, atomic_load(&r.winners[i]), 1);
    EQ(w, revision(w, "s"), ROUNDS);
    EQ(w, w->head.node_count, ROUNDS);
}

/* S2: six commit, two read; nobody sees the head go back. */
static void commit_or_read(struct world *w, unsigned i, void *arg)
{
    struct race *r = arg;
    int64_t last = 0;

    if (i < HANDS - 2) {
        for (int n = 0; n < ROUNDS; n++)
            RC(w, say(w, "s", BELAY_ANY_REVISION, text(w, "n%d.%u", n, i), NULL),
               BELAY_OK);
        atomic_fetch_add(&r->done, 1);
        return;
    }
    while (atomic_load(&r->done) < HANDS - 2) {
        int64_t now = revision(w, "s");
        OK(w, now >= last);
        if (now > 0)
            EQ(w, w->head.node_count,
               now); /* each commit has one node: no half of it */
        last = now;
    }
}

static void heads_never_go_back(struct world *w)
{
    struct race r = { .done = 0 };
    struct belay_commit_log log = { 0 };

    world_crowd(w, HANDS, commit_or_read, &r);
    int64_t all = (int64_t)(HANDS - 2) * ROUNDS;
    EQ(w, revision(w, "s"), all);
    RC(w, belay_session_log(session(w, "s"), 0, 1000, w->arena, &log, &w->err),
       BELAY_OK);
    EQ(w, log.n, all);
    for (size_t i = 0; i < log.n; i++)
        EQ(w, log.entries[i].revision, (int64_t)i + 1);
}

/* The same turn from everybody: one commits, the others are told what it said. */
static void same_turn(struct world *w, unsigned i, void *arg)
{
    struct race *r = arg;
    const char *json = node(w, "n", NULL);
    struct belay_usage used = { .source = "x", .model = "m", .input_tokens = 1 };

    (void)i;
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .turn_id = "turn",
                                     .graph = BELAY_GRAPH_APPEND,
                                     .nodes = &json,
                                     .n_nodes = 1,
                                     .usage = &used,
                                     .n_usage = 1 }),
       BELAY_OK);
    EQ(w, w->committed.revision, 1);
    if (!w->committed.replayed)
        atomic_fetch_add(&r->done, 1);
}

static void one_turn_once(struct world *w)
{
    struct race r = { .done = 0 };

    world_crowd(w, HANDS, same_turn, &r);
    EQ(w, atomic_load(&r.done), 1);
    EQ(w, revision(w, "s"), 1);
    STR(w, usage(w, "s"), "x/m 1 0 0 0");
}

static belay_rc name_in_checkpoint(struct world *w, const char *id, int64_t expected,
                                   const char *ref)
{
    struct belay_checkpoint cp = { .tool_state = { .ref = ref },
                                   .plugin_snapshot_revision = BELAY_NONE };

    return commit(
        w, id,
        (struct belay_commit){ .expected_revision = expected, .checkpoint = &cp });
}

static belay_rc name_in_frames(struct world *w, const char *id, int64_t expected,
                               const char *ref)
{
    const char *frames = text(w, "[{\"execution_state_ref\":\"%s\"}]", ref);

    return commit(
        w, id,
        (struct belay_commit){ .expected_revision = expected, .agent_frames = frames });
}

/* Under a name that only this thread uses. */
static belay_rc name_by_pin(struct world *w, const char *id, const char *ref)
{
    return belay_blob_pin(w->use, id, ref, &w->err);
}

/* One of the three ways in which a blob is kept; *expected is the revision. */
static belay_rc name_it(struct world *w, unsigned i, int64_t *expected, const char *ref)
{
    const char *id = text(w, "s%u", i);

    if (i % 3 == 0)
        return name_by_pin(w, id, ref);
    belay_rc rc = i % 3 == 1 ? name_in_checkpoint(w, id, *expected, ref)
                             : name_in_frames(w, id, *expected, ref);
    *expected += rc == BELAY_OK;
    return rc;
}

/* S5, S6: uploads and commits that name them, beside collections with no more grace than
 * an upload takes to be named: who was told "it is there" can name it. */
static void put_and_name(struct world *w, unsigned i, void *arg)
{
    struct race *r = arg;
    int64_t expected = 0;

    if (i == 0) {
        struct belay_gc_options o = { .size = sizeof(o), .grace_ms = MINUTE };
        while (atomic_load(&r->done) < HANDS - 1) {
            RC(w, belay_gc(w->use, &o, &w->gc, &w->err), BELAY_OK);
            OK(w, w->gc.outcome == BELAY_GC_SWEPT || w->gc.outcome == BELAY_GC_NOTHING);
        }
        return;
    }
    for (int n = 0; n < ROUNDS; n++) {
        const char *ref = blob(w, text(w, "shared %d", n % 3));
        RC(w, name_it(w, i, &expected, ref), BELAY_OK);
        STR(w, content(w, ref), text(w, "shared %d", n % 3));
    }
    atomic_fetch_add(&r->done, 1);
}

/* What the heads name is there, in the end. */
static void look_at_heads(struct world *w)
{
    for (unsigned i = 1; i < HANDS; i++) {
        struct belay_checkpoint_info info = { 0 };
        const char *id = text(w, "s%u", i), *ref;
        if (revision(w, id) == 0)
            continue; /* a pin, or nothing of it came through */
        const char *at = strstr(w->head.agent_frames, "_ref\":\"");
        if (i % 3 == 1) {
            RC(w, belay_session_checkpoint(session(w, id), w->arena, &info, &w->err),
               BELAY_OK);
            ref = info.tool_state_ref;
        } else {
            ref = at ? text(w, "%.64s", at + 7) : NULL;
        }
        OK(w, ref && strncmp(content(w, ref), "shared ", 7) == 0);
    }
}

static void blobs_beside_collections(struct world *w)
{
    struct race r = { .done = 0 };

    world_crowd(w, HANDS, put_and_name, &r);
    collect(w);
    OK(w, w->gc.outcome == BELAY_GC_SWEPT || w->gc.outcome == BELAY_GC_NOTHING);
    look_at_heads(w);
}

/* The same without any grace: an upload may be swept before it is finished, a ref may be
 * gone before it is named, and both are told; a head never names what is not there. */
static void name_without_grace(struct world *w, unsigned i, void *arg)
{
    struct race *r = arg;
    int64_t expected = 0;

    if (i == 0) {
        while (atomic_load(&r->done) < HANDS - 1)
            collect(w);
        return;
    }
    for (int n = 0; n < ROUNDS; n++) {
        const char *bytes = text(w, "shared %d by %u", n % 3, i);
        belay_rc rc = blob_try(w, bytes, strlen(bytes), NULL);
        if (rc) {
            RC(w, rc, BELAY_NOT_FOUND);
            continue;
        }
        const char *ref = text(w, "%s", w->blob.sha256);
        rc = name_it(w, i, &expected, ref);
        if (rc == BELAY_OK)
            STR(w, content(w, ref), bytes);
        else
            OK(w, rc == (i % 3 ? BELAY_INVALID : BELAY_NOT_FOUND));
    }
    atomic_fetch_add(&r->done, 1);
}

static void heads_beside_collections(struct world *w)
{
    struct race r = { .done = 0 };

    world_crowd(w, HANDS, name_without_grace, &r);
    look_at_heads(w);
}

static const struct noun_case cases[] = {
    { "threads: S1: eight race for each revision, one wins", one_winner_a_round, 0 },
    { "threads: S2: readers never see a head go back, or half a commit",
      heads_never_go_back, 0 },
    { "threads: one turn from everybody is committed once", one_turn_once, 0 },
    { "threads: S5, S6: uploads and the commits that name them, beside collections",
      blobs_beside_collections, 0 },
    { "threads: S3: a head names only what is there, beside collections without grace",
      heads_beside_collections, 0 },
};

const struct topic topic_thread_commits = { cases, COUNT_OF(cases) };
