/* Blobs and checkpoints: what is stored, what is named, what comes back (2.5). */
#include "nouns.h"

#define BIG ((size_t)3 * 1024 * 1024 + 17)

static void equal_content_is_stored_once(struct world *w)
{
    const char *first = blob(w, "same");
    OK(w, !w->blob.existed);
    EQ(w, w->blob.size, 4);
    w->use = w->b;
    const char *second = blob(w, "same");
    OK(w, w->blob.existed);
    STR(w, second, first);
    STR(w, first, digest(w, "same"));
    STR(w, content(w, first), "same");
    collect(w);
    EQ(w, w->gc.deleted_blobs, 1);
}

static belay_rc put_compressible(struct world *w, const char *body, size_t len,
                                 int profile)
{
    struct belay_blob_options o = { .size = sizeof(o),
                                    .kind = BELAY_BLOB_TOOL_STATE,
                                    .profile = profile };

    return blob_try(w, body, len, &o);
}

/* From the profile's size on, and only for kinds that are worth it; the name is the
 * content's in any case, and so is what is read. */
static void profiles_compress(struct world *w)
{
    static const struct {
        size_t len;
        int profile;
        bool smaller;
    } rows[] = {
        { 100000, BELAY_LOW_LATENCY, false }, { 4095, BELAY_BALANCED, false },
        { 4096, BELAY_BALANCED, true },       { 1023, BELAY_COMPACT, false },
        { 1024, BELAY_COMPACT, true },        { 2000000, BELAY_COMPACT, true },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *body = bytes_of(w, (char)('a' + i), rows[i].len), *out = NULL;
        size_t len = 0;
        RC(w, put_compressible(w, body, rows[i].len, rows[i].profile), BELAY_OK);
        EQ(w, w->blob.size, rows[i].len);
        EQ(w, w->blob.stored_size < w->blob.size, rows[i].smaller);
        STR(w, w->blob.sha256, digest(w, body));
        RC(w, blob_read_all(w, w->blob.sha256, &out, &len), BELAY_OK);
        OK(w, len == rows[i].len && memcmp(out, body, len) == 0);
    }
    struct belay_blob_options plain = { .size = sizeof(plain),
                                        .profile = BELAY_COMPACT };
    char *body = bytes_of(w, 'z', 5000);
    RC(w, blob_try(w, body, 5000, &plain), BELAY_OK);
    EQ(w, w->blob.stored_size, 5000); /* generic: never */
    RC(w, put_compressible(w, body, 5000, BELAY_COMPACT), BELAY_OK);
    OK(w, w->blob.existed);
    EQ(w, w->blob.stored_size, 5000); /* the first one's way stays */
}

/* Bytes that do not compress, in pieces of odd sizes, through several chunks. */
static void blobs_are_streamed(struct world *w)
{
    struct belay_blob_writer *writer = NULL;
    char *body = bytes_of(w, 0, BIG), *out = NULL;
    size_t len = 0;
    struct fake_random noise = { 7 };

    (void)fake_fill(&noise, body, BIG);
    RC(w, belay_blob_open(w->use, NULL, &writer, &w->err), BELAY_OK);
    for (size_t at = 0; at < BIG;) {
        size_t n = at % 100003 + 1 < BIG - at ? at % 100003 + 1 : BIG - at;
        if (!RC(w, belay_blob_write(writer, body + at, n, &w->err), BELAY_OK))
            break;
        at += n;
    }
    RC(w, belay_blob_write(writer, NULL, 0, &w->err), BELAY_OK);
    RC(w, belay_blob_finish(writer, &w->blob, &w->err), BELAY_OK);
    belay_blob_close(writer);
    belay_blob_close(NULL);
    EQ(w, w->blob.size, BIG);
    w->use = w->b;
    RC(w, blob_read_all(w, w->blob.sha256, &out, &len), BELAY_OK);
    OK(w, len == BIG && memcmp(out, body, BIG) == 0);
    collect(w);
    EQ(w, w->gc.deleted_bytes, BIG);
}

static void empty_blobs(struct world *w)
{
    char *out = NULL;
    size_t len = 9;

    RC(w, blob_try(w, "", 0, NULL), BELAY_OK);
    STR(w, w->blob.sha256, digest(w, ""));
    RC(w, blob_read_all(w, w->blob.sha256, &out, &len), BELAY_OK);
    EQ(w, len, 0);
}

static void expected_names(struct world *w)
{
    struct belay_blob_options o = { .size = sizeof(o), .expect = digest(w, "other") };

    WHY(w, blob_try(w, "content", 7, &o), BELAY_INVALID, "hash_mismatch");
    OK(w, !has_blob(w, digest(w, "content")));
    OK(w, !has_blob(w, digest(w, "other")));
    o.expect = digest(w, "content");
    RC(w, blob_try(w, "content", 7, &o), BELAY_OK);
    STR(w, content(w, o.expect), "content");
}

/* An upload that nobody finishes is no blob, and is collected. */
static void unfinished_uploads(struct world *w)
{
    struct belay_blob_writer *writer = NULL;
    char *body = bytes_of(w, 'x', BIG);

    RC(w, belay_blob_open(w->use, NULL, &writer, &w->err), BELAY_OK);
    RC(w, belay_blob_write(writer, body, BIG, &w->err), BELAY_OK);
    belay_blob_close(writer);
    OK(w, !has_blob(w, digest(w, body)));
    world_pass(w, 5);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_SWEPT);
    EQ(w, w->gc.deleted_uploads, 1);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
}

static belay_rc keep(struct world *w, int64_t expected, struct belay_part tool,
                     struct belay_part plugin)
{
    struct belay_checkpoint cp = { .tool_state = tool,
                                   .plugin_snapshot = plugin,
                                   .plugin_snapshot_revision = BELAY_NONE };

    return commit(
        w, "s",
        (struct belay_commit){ .expected_revision = expected, .checkpoint = &cp });
}

/* A body gets a ref; a ref stays; neither is nothing; unknown is refused. */
static void parts_of_a_checkpoint(struct world *w)
{
    struct belay_part none = { 0 }, body = { .body = "tool", .len = 4 };
    struct belay_part empty = { .body = "", .len = 0 };
    struct belay_checkpoint_info info = { 0 };
    struct belay_session *s = session(w, "s");

    RC(w, belay_session_checkpoint(s, w->arena, &info, &w->err), BELAY_NOT_FOUND);
    RC(w, keep(w, 0, body, none), BELAY_OK);
    RC(w, belay_session_checkpoint(s, w->arena, &info, &w->err), BELAY_OK);
    STR(w, info.tool_state_ref, digest(w, "tool"));
    STR(w, info.plugin_snapshot_ref, NULL);
    STR(w, info.turn_state, "{}");
    EQ(w, info.plugin_snapshot_revision, BELAY_NONE);

    struct belay_part same = { .ref = info.tool_state_ref };
    RC(w, keep(w, 1, same, empty), BELAY_OK);
    RC(w, belay_session_checkpoint(s, w->arena, &info, &w->err), BELAY_OK);
    STR(w, info.tool_state_ref, digest(w, "tool"));
    STR(w, info.plugin_snapshot_ref, digest(w, ""));
    RC(w, commit(w, "s", (struct belay_commit){ .expected_revision = 2 }), BELAY_OK);
    EQ(w, revision(w, "s"), 3);
    STR(w, w->head.checkpoint_ref, info.ref); /* as it is */

    const char *before = everything(w);
    static const char *const wrong[] = { "", "tool", "../x" };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct belay_part bad = { .ref = wrong[i] };
        WHY(w, keep(w, 3, bad, none), BELAY_INVALID, "unknown_ref");
    }
    struct belay_part unknown = { .ref = digest(w, "never put") };
    WHY(w, keep(w, 3, unknown, none), BELAY_INVALID, "unknown_ref");
    STR(w, everything(w), before);
    RC(w, keep(w, 3, none, none), BELAY_OK);
    RC(w, belay_session_checkpoint(s, w->arena, &info, &w->err), BELAY_OK);
    STR(w, info.tool_state_ref, NULL);
}

/* The same bytes, or the same ref, in several places of one commit. */
static void equal_parts(struct world *w)
{
    struct belay_part body = { .body = "same", .len = 4 };
    struct belay_part ref = { .ref = digest(w, "same") };
    struct belay_part large = { .body = bytes_of(w, 'L', BIG), .len = BIG };
    struct belay_checkpoint cp = { .tool_state = body,
                                   .plugin_snapshot = body,
                                   .execution_state = ref, /* brought by the others */
                                   .plugin_snapshot_revision = BELAY_NONE };
    struct belay_commit c = { .checkpoint = &cp,
                              .agent_frames = text(w,
                                                   "[{\"execution_state_ref\":\"%s\"},"
                                                   "{\"execution_state_ref\":\"%s\"}]",
                                                   ref.ref, ref.ref) };
    struct belay_checkpoint_info info = { 0 };

    RC(w, commit(w, "s", c), BELAY_OK);
    c.expected_revision = 1;
    cp.tool_state = cp.plugin_snapshot = cp.execution_state = ref;
    RC(w, commit(w, "s", c), BELAY_OK);
    c.expected_revision = 2;
    cp.tool_state = cp.plugin_snapshot = cp.execution_state = large;
    RC(w, commit(w, "s", c), BELAY_OK);
    w->use = w->b;
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_OK);
    STR(w, info.tool_state_ref, info.execution_state_ref);
    collect(w);
    EQ(w, w->gc.retained_blobs, 3); /* a manifest, the large one, the frames' */
    STR(w, content(w, ref.ref), "same");
}

/* Bodies larger than a chunk are written before the commit, small ones with it. */
static void large_parts(struct world *w)
{
    struct belay_part large = { .body = bytes_of(w, 'L', BIG), .len = BIG };
    struct belay_checkpoint_info info = { 0 };
    char *out = NULL;
    size_t len = 0;

    RC(w, keep(w, 0, large, (struct belay_part){ 0 }), BELAY_OK);
    RC(w, keep(w, 0, large, (struct belay_part){ 0 }), BELAY_HEAD_REVISION_CONFLICT);
    w->use = w->b;
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_OK);
    RC(w, blob_read_all(w, info.tool_state_ref, &out, &len), BELAY_OK);
    OK(w, len == BIG && memcmp(out, large.body, BIG) == 0);
    collect(w);
    EQ(w, w->gc.retained_blobs, 2);
}

/* A session's handle decides for its checkpoints. */
static void sessions_have_profiles(struct world *w)
{
    struct belay_session_options o = { .size = sizeof(o), .profile = BELAY_COMPACT };
    struct belay_checkpoint cp = { .tool_state = { .body = bytes_of(w, 'c', 3000),
                                                   .len = 3000 },
                                   .plugin_snapshot_revision = BELAY_NONE };
    struct belay_commit c = { .size = sizeof(c), .checkpoint = &cp };
    struct belay_session *s = NULL;

    RC(w, belay_session_open(w->use, "s", &o, &s, &w->err), BELAY_OK);
    RC(w, belay_session_commit(s, &c, w->arena, &w->committed, &w->err), BELAY_OK);
    belay_session_close(s);
    RC(w, blob_try(w, cp.tool_state.body, 3000, NULL), BELAY_OK);
    OK(w, w->blob.existed);
    OK(w, w->blob.stored_size < 1000);
    STR(w, content(w, w->blob.sha256), cp.tool_state.body);
}

static const struct noun_case cases[] = {
    { "equal content is stored once", equal_content_is_stored_once, 0 },
    { "profiles decide what is compressed, never what is read", profiles_compress, 0 },
    { "blobs go in and out in pieces", blobs_are_streamed, 0 },
    { "a blob may be empty", empty_blobs, 0 },
    { "an expected name is checked before there is a blob", expected_names, 0 },
    { "an upload that nobody finished is collected", unfinished_uploads, 0 },
    { "a part of a checkpoint is a body, a ref, or nothing; an unknown ref is refused",
      parts_of_a_checkpoint, 0 },
    { "a part of a checkpoint may be large", large_parts, 0 },
    { "parts of one commit may be equal", equal_parts, 0 },
    { "a session's profile compresses its checkpoints", sessions_have_profiles, 0 },
};

const struct topic topic_traps_blobs = { cases, COUNT_OF(cases) };
