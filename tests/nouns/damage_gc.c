/* Collections on damaged stores (5.2, 6 and 7): where it cannot be proved what is alive,
 * nothing goes. */
#include "nouns.h"

/* A session with a checkpoint of a part and a frame, a pin, and an orphan. */
static void furnish(struct world *w)
{
    struct belay_checkpoint cp = { .tool_state = { .body = "tool", .len = 4 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    const char *frame = blob(w, "frame");

    RC(w,
       commit(
           w, "s",
           (struct belay_commit){
               .checkpoint = &cp,
               .agent_frames = text(w, "[{\"execution_state_ref\":\"%s\"}]", frame) }),
       BELAY_OK);
    RC(w, belay_blob_pin(w->use, "pin", blob(w, "pinned"), &w->err), BELAY_OK);
    (void)blob(w, "orphan");
}

struct way {
    const char *sql;
    const char *reason;
    const char *entity;
};

static const struct way ways[] = {
    { "UPDATE belay_session SET checkpoint = 'no name'", "corrupt_head", "s" },
    { "UPDATE belay_session SET state = 'tired'", "corrupt_head", "s" },
    { "UPDATE belay_session SET tool_ref = 'x'", "corrupt_head", "s" },
    { "UPDATE belay_session_frames SET frames = '[{'", "corrupt_frames", "s" },
    { "UPDATE belay_session_frames SET frames = '[{\"execution_state_ref\":7}]'",
      "corrupt_frames", "s" },
    { "UPDATE belay_pin SET sha256 = 'zz'", "corrupt_pin", "pin" },
    { "DELETE FROM belay_blob WHERE sha256 = (SELECT checkpoint FROM belay_session)",
      "missing_manifest", "s" },
    { "UPDATE belay_chunk SET data = X'7b' WHERE upload = (SELECT upload FROM "
      "belay_blob"
      " WHERE sha256 = (SELECT checkpoint FROM belay_session))",
      "corrupt_manifest", "s" },
    { "DELETE FROM belay_chunk WHERE upload = (SELECT upload FROM belay_blob"
      " WHERE sha256 = (SELECT checkpoint FROM belay_session))",
      "corrupt_manifest", "s" },
};

static void refused(struct world *w, const struct way *way)
{
    furnish(w);
    if (!world_damage(w, way->sql))
        return;
    for (int i = 0; i < 2; i++) {
        collect(w);
        EQ(w, w->gc.outcome, BELAY_GC_REFUSED);
        EQ(w, w->gc.code, BELAY_CORRUPT);
        STR(w, w->gc.reason, way->reason);
        STR(w, w->gc.entity, way->entity);
        OK(w, w->gc.message[0] != 0);
        EQ(w, w->gc.deleted_blobs, 0);
        EQ(w, w->gc.deleted_uploads, 0);
        w->use = w->b;
    }
    OK(w, has_blob(w, digest(w, "orphan"))); /* everything is kept */
    OK(w, has_blob(w, digest(w, "frame")));
    OK(w, has_blob(w, digest(w, "pinned")));
    OK(w, has_blob(w, digest(w, "tool")));
}

static void unproven_is_alive(struct world *w)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        unsigned failed = w->t->failed;
        struct world v;
        if (world_open(&v, w->t, w->store, WORLD_START_MS))
            refused(&v, &ways[i]);
        world_close(&v);
        if (w->t->failed > failed)
            printf("# after: %s\n", ways[i].sql);
    }
}

/* The seed's missing case: its header names it, its file has no body. */
static void corrupt_manifest_keeps_all(struct world *w)
{
    refused(w, &ways[7]);
    struct belay_checkpoint_info info = { 0 };
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_CORRUPT);
    RC(w, say(w, "s", 1, "n", NULL), BELAY_OK); /* the session goes on */
    struct belay_checkpoint fresh = { .plugin_snapshot_revision = BELAY_NONE };
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 2, .checkpoint = &fresh }),
       BELAY_OK);
    collect(w); /* ... and with a new checkpoint so does the collection */
    EQ(w, w->gc.outcome, BELAY_GC_SWEPT);
    OK(w, !has_blob(w, digest(w, "orphan")));
    OK(w, has_blob(w, digest(w, "frame")));
}

/* 5.2, 7; S4. */
static void other_bytes_are_corrupt(struct world *w)
{
    static const char *const sql[] = {
        "UPDATE belay_chunk SET data = X'6f7468657221'", /* as many bytes, others */
        "UPDATE belay_chunk SET data = X'6f'",           /* truncated */
        "UPDATE belay_chunk SET data = X'6f747468657265787472'",
        "DELETE FROM belay_chunk",
        "UPDATE belay_blob SET size = 3",
        "UPDATE belay_blob SET size = -1",
        "UPDATE belay_blob SET chunks = 7",
        "UPDATE belay_blob SET compression = 'zlib'",
    };

    for (size_t i = 0; i < COUNT_OF(sql); i++) {
        struct world v;
        char *out = NULL;
        size_t len = 0;
        if (!world_open(&v, w->t, w->store, WORLD_START_MS))
            return;
        const char *ref = blob(&v, "truths");
        if (world_damage(&v, sql[i])) {
            belay_rc rc = blob_read_all(&v, ref, &out, &len);
            if (!RC(&v, rc, BELAY_CORRUPT))
                printf("# after: %s\n", sql[i]);
        }
        world_close(&v);
    }
}

/* A newer program's way to store it is said to be that. */
static void unknown_ways_are_unsupported(struct world *w)
{
    const char *ref = blob(w, "truths");

    if (world_damage(w, "UPDATE belay_blob SET compression = 'brotli'"))
        STR(w, content(w, ref), "unsupported_format");
}

/* A part of a checkpoint that is gone is no absent part. */
static void missing_parts(struct world *w)
{
    struct belay_checkpoint_info info = { 0 };

    furnish(w);
    if (!world_damage(w, text(w, "DELETE FROM belay_blob WHERE sha256 = '%s'",
                              digest(w, "tool"))))
        return;
    WHY(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
        BELAY_CORRUPT, "missing_blob");
    OK(w, info.ref == NULL);
    RC(w, say(w, "s", 1, "n", NULL), BELAY_OK);
}

static const struct noun_case cases[] = {
    { "corrupt_rooted_manifest_keeps_all_blobs", corrupt_manifest_keeps_all,
      CASE_DAMAGE },
    { "a head, frame, pin or manifest that cannot be read refuses the collection",
      unproven_is_alive, CASE_DAMAGE },
    { "S4: content that fails its hash is an error", other_bytes_are_corrupt,
      CASE_DAMAGE },
    { "a blob that a newer program compressed is unsupported_format",
      unknown_ways_are_unsupported, CASE_DAMAGE },
    { "a part of a checkpoint that is missing is corrupt, not absent", missing_parts,
      CASE_DAMAGE },
};

const struct topic topic_damage_gc = { cases, COUNT_OF(cases) };
