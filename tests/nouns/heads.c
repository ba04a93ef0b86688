/* S1 to S4 (docs/promises.md). */
#include "nouns.h"

static void one_commit_wins(struct world *w)
{
    for (int i = 0; i < 10; i++) {
        w->use = i % 2 ? w->a : w->b;
        RC(w, say(w, "s", i, text(w, "win%d", i), NULL), BELAY_OK);
        EQ(w, w->committed.revision, i + 1);
        w->use = i % 2 ? w->b : w->a;
        for (int j = 0; j <= i; j++) {
            RC(w, say(w, "s", j, "lose", NULL), BELAY_HEAD_REVISION_CONFLICT);
            EQ(w, w->err.expected, j);
            EQ(w, w->err.actual, i + 1);
        }
    }
    RC(w, belay_session_head(session(w, "s"), w->arena, &w->head, &w->err), BELAY_OK);
    EQ(w, w->head.node_count, 10);
}

/* Every refused commit, too, leaves the chain as it was. */
static void chain_has_no_gap(struct world *w)
{
    struct belay_commit_log log = { 0 };
    const char *dead[] = { "n0" };

    for (int i = 0; i < 12; i++) {
        RC(w, say(w, "s", i, text(w, "n%d", i), NULL), BELAY_OK);
        WHY(w, say(w, "s", i + 1, "n0", NULL), BELAY_INVALID, "duplicate_node");
        RC(w, say(w, "s", i, "x", NULL), BELAY_HEAD_REVISION_CONFLICT);
        if (i == 6 && !world_reopen(w))
            return;
        w->use = i % 2 ? w->b : w->a;
        EQ(w, revision(w, "s"), i + 1);
    }
    RC(w, belay_session_tombstone(session(w, "s"), dead, 1, NULL, &w->err), BELAY_OK);
    EQ(w, revision(w, "s"), 12); /* hiding is no commit */
    RC(w, belay_session_log(session(w, "s"), 0, 0, w->arena, &log, &w->err), BELAY_OK);
    EQ(w, log.n, 12);
    for (size_t i = 0; i < log.n; i++)
        EQ(w, log.entries[i].revision, (int64_t)i + 1);
}

/* A commit whose parts are not all there moves nothing; what it brought is named by
 * nobody. */
static void heads_name_what_is_there(struct world *w)
{
    struct belay_checkpoint cp = { .tool_state = { .body = "brought", .len = 7 },
                                   .plugin_snapshot = { .ref = digest(w, "missing") },
                                   .plugin_snapshot_revision = BELAY_NONE };
    const char *frames = text(w, "[{\"execution_state_ref\":\"%s\"}]", digest(w, "no"));

    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    const char *before = everything(w);
    WHY(w,
        commit(w, "s",
               (struct belay_commit){ .expected_revision = 1, .checkpoint = &cp }),
        BELAY_INVALID, "unknown_ref");
    WHY(w,
        commit(w, "s",
               (struct belay_commit){ .expected_revision = 1, .agent_frames = frames }),
        BELAY_INVALID, "unknown_ref");
    STR(w, everything(w), before);
    const char *ref = blob(w, "missing");
    STR(w, ref, cp.plugin_snapshot.ref);
    w->use = w->b;
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 1, .checkpoint = &cp }),
       BELAY_OK);
    STR(w, content(w, ref), "missing");
    STR(w, content(w, digest(w, "brought")), "brought");
}

static void reads_have_the_name(struct world *w)
{
    static const char *const names[] = {
        "",
        "abc",
        "ZZZZ",
        "b583d80c8c759a700ef320d324671438cd94fac62502795b11069d7dc9369ac",
        "B583D80C8C759A700EF320D324671438CD94FAC62502795B11069D7DC9369AC2",
        "b583d80c8c759a700ef320d324671438cd94fac62502795b11069d7dc9369ac2x",
    };
    struct belay_blob_reader *r = NULL;

    (void)blob(w, "orphan-blob");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        belay_rc rc = belay_blob_read_open(w->use, names[i], &r, &w->err);
        OK(w, rc == BELAY_NOT_FOUND || rc == BELAY_INVALID);
        OK(w, r == NULL);
    }
    STR(w, content(w, digest(w, "orphan-blob")), "orphan-blob");
    STR(w, content(w, digest(w, "other")), "not_found");
}

/* What is being read while it is collected ends well or as an error, never with other
 * bytes. */
static void collected_under_a_reader(struct world *w)
{
    size_t size = (size_t)2 * 1024 * 1024, got = 0, n = 0;
    char *body = bytes_of(w, 'r', size);
    struct belay_blob_reader *r = NULL;
    const void *piece = NULL;

    RC(w, blob_try(w, body, size, NULL), BELAY_OK);
    RC(w, belay_blob_read_open(w->use, w->blob.sha256, &r, &w->err), BELAY_OK);
    RC(w, belay_blob_read(r, &piece, &n, &w->err), BELAY_OK);
    w->use = w->b;
    collect(w);
    EQ(w, w->gc.deleted_blobs, 1);
    belay_rc rc = BELAY_OK;
    for (got = n; !rc && n > 0; got += n) {
        rc = belay_blob_read(r, &piece, &n, &w->err);
        if (rc)
            n = 0;
    }
    OK(w, rc == BELAY_CORRUPT || rc == BELAY_NOT_FOUND || got == size);
    belay_blob_read_close(r);
}

static const struct noun_case cases[] = {
    { "S1: of all commits that name a revision one wins, and losers learn which",
      one_commit_wins, 0 },
    { "S2: the chain of revisions has no gap, fork or rollback", chain_has_no_gap, 0 },
    { "S3: a head moves only when everything it names is there",
      heads_name_what_is_there, 0 },
    { "S4: what is read has the name's hash, or is an error", reads_have_the_name, 0 },
    { "S4: a blob that is collected under its reader never gives other bytes",
      collected_under_a_reader, 0 },
};

const struct topic topic_heads = { cases, COUNT_OF(cases) };
