/* What a checkpoint is made of, what a commit does about it, and how it is read. */
#include "test_work_heads.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct belay_part body(const char *text)
{
    return (struct belay_part){ .body = text, .len = strlen(text) };
}

static struct belay_part named(const char *ref)
{
    return (struct belay_part){ .ref = ref };
}

static struct belay_checkpoint empty(void)
{
    return (struct belay_checkpoint){ .plugin_snapshot_revision = BELAY_NONE };
}

/* --- kinds and profiles --- */

static void test_kinds(struct tap *t)
{
    static const char *const names[] = {
        "generic_blob",
        "checkpoint_manifest",
        "tool_state",
        "plugin_session_snapshot",
        "execution_state_snapshot",
        "module",
    };
    int32_t kind = 99;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bytes d = blob_kind_descriptor((int32_t)i);
        TAP_STR(t, blob_kind_name((int32_t)i), names[i]);
        TAP_OK(t, blob_kind_parse(bytes_str(names[i]), &kind) && kind == (int32_t)i);
        TAP_OK(t, memmem(d.ptr, d.len, names[i], strlen(names[i])) != NULL);
    }
    kind = 99;
    TAP_OK(t, !blob_kind_parse(bytes_str("tool"), &kind) && kind == 99);
    TAP_STR(t, blob_kind_name(6), "generic_blob");
    TAP_STR(t, blob_kind_name(-1), "generic_blob");
}

/* clang-format off */
static const struct {
    int32_t profile, kind;
    size_t len;
    bool want;
} compressing[] = {
    { BELAY_LOW_LATENCY, BELAY_BLOB_TOOL_STATE, 1 << 20, false },
    { BELAY_BALANCED,    BELAY_BLOB_TOOL_STATE, 4095,    false },
    { BELAY_BALANCED,    BELAY_BLOB_TOOL_STATE, 4096,    true },
    { BELAY_COMPACT,     BELAY_BLOB_TOOL_STATE, 1023,    false },
    { BELAY_COMPACT,     BELAY_BLOB_TOOL_STATE, 1024,    true },
    { BELAY_COMPACT,     BELAY_BLOB_MANIFEST,   1024,    true },
    { BELAY_COMPACT,     BELAY_BLOB_MODULE,     1024,    true },
    { BELAY_COMPACT,     BELAY_BLOB_GENERIC,    1 << 20, false },
    { 7,                 BELAY_BLOB_MODULE,     1 << 20, false },
};
/* clang-format on */

static void test_compressing(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(compressing); i++) {
        if (!TAP_EQ(t,
                    profile_compresses(compressing[i].profile, compressing[i].kind,
                                       compressing[i].len),
                    compressing[i].want))
            printf("# in row %zu\n", i);
    }
}

static void profiles(struct work *w)
{
    static uint8_t zeros[8192];
    struct belay_checkpoint in = empty();
    struct checkpoint_plan plan;
    bool durable = driver_durability(w->driver) == DURABILITY_DURABLE;

    TAP_EQ(w->t, profile_resolve(w->space, BELAY_PROFILE_DEFAULT),
           durable ? BELAY_BALANCED : BELAY_LOW_LATENCY);
    TAP_EQ(w->t, profile_resolve(w->space, BELAY_COMPACT), BELAY_COMPACT);
    in.tool_state = (struct belay_part){ .body = zeros, .len = sizeof(zeros) };
    WORK_RC(w, head_commit(w, "s", &in, BELAY_PROFILE_DEFAULT, &plan), BELAY_OK);
    TAP_EQ(w->t, blob_look(w, plan.part[PART_TOOL].ref).compressed, durable);
    in.tool_state.len--;
    WORK_RC(w, head_commit(w, "s", &in, BELAY_COMPACT, &plan), BELAY_OK);
    struct blob_look l = blob_look(w, plan.part[PART_TOOL].ref);
    TAP_OK(w->t, l.compressed && l.size == 8191 && l.stored < 100);
    /* The first one's stays. */
    WORK_RC(w, head_commit(w, "s", &in, BELAY_LOW_LATENCY, &plan), BELAY_OK);
    TAP_OK(w->t, blob_look(w, plan.part[PART_TOOL].ref).compressed);
    WORK_RC(w, head_commit(w, "s", &in, 4, NULL), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "option");
}

static void test_profiles(struct tap *t)
{
    work_everywhere(t, profiles);
}

/* --- preparing --- */

static void manifest_text(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_checkpoint in = empty();
    struct checkpoint_plan plan;

    WORK_RC(w, checkpoint_prepare(w->space, &in, 0, &a, &plan, &w->err), BELAY_OK);
    TAP_STR(w->t, (const char *)plan.manifest.ptr, "{\"turn_state\":{}}");
    TAP_STR(w->t, plan.part[PART_MANIFEST].ref,
            "18e83e87b5472e0ea830463b4c888c38c37d50544cdf2e96a93541a3e3d182eb");
    TAP_OK(w->t, !plan.part[PART_TOOL].named && plan.part[PART_MANIFEST].brought);

    in.turn_state = " {\"turn_index\": 3, \"a\":[1.0, \"\\u00e9\"]} ";
    in.tool_state = body("orphan-blob");
    in.plugin_snapshot = named(SHA_A);
    in.plugin_snapshot_revision = 7;
    in.execution_state = named(SHA_B);
    WORK_RC(w, checkpoint_prepare(w->space, &in, 0, &a, &plan, &w->err), BELAY_OK);
    TAP_STR(w->t, (const char *)plan.manifest.ptr,
            "{\"execution_state_ref\":\"" SHA_B "\",\"plugin_snapshot_ref\":\"" SHA_A
            "\",\"plugin_snapshot_revision\":7,\"tool_state_ref\":"
            "\"b583d80c8c759a700ef320d324671438cd94fac62502795b11069d7dc9369ac2\","
            "\"turn_state\":{\"a\":[1.0,\"\xc3\xa9\"],\"turn_index\":3}}");
    TAP_OK(w->t, plan.part[PART_TOOL].brought && !plan.part[PART_PLUGIN].brought);
    TAP_STR(w->t, plan.part[PART_PLUGIN].ref, SHA_A);
}

static void test_manifest_text(struct tap *t)
{
    work_everywhere(t, manifest_text);
}

static void test_refused_input(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(buf_release) struct buf large = { 0 }, deep = { 0 };
    struct belay_checkpoint in = empty();
    struct checkpoint_plan plan = { .manifest = bytes_str("untouched") };
    struct work w;

    buf_append_char(&large, '"');
    for (size_t i = 0; i < CHUNK_MAX - 10; i++)
        buf_append_char(&large, 'x');
    buf_append(&large, bytes_of("\"", 2));
    for (int i = 0; i < 32; i++)
        buf_append_char(&deep, '[');
    for (int i = 0; i < 32; i++)
        buf_append_char(&deep, ']');
    buf_append(&deep, bytes_of("", 1));
    const struct {
        const char *turn_state, *ref, *reason;
        int64_t revision;
    } rows[] = {
        { "{", NULL, "turn_state", BELAY_NONE },
        { (const char *)large.ptr, NULL, "too_large", BELAY_NONE },
        { (const char *)deep.ptr, NULL, "", BELAY_NONE }, /* one deeper in a manifest */
        { "{}", "abc", "unknown_ref", BELAY_NONE },
        { "{}", "", "unknown_ref", BELAY_NONE },
        { "{}", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
          "unknown_ref", BELAY_NONE },
        { "{}", NULL, "plugin_snapshot_revision", -2 },
    };

    if (!work_open(&w, t, ON_MEMORY))
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        in.turn_state = rows[i].turn_state;
        in.execution_state.ref = rows[i].ref;
        in.plugin_snapshot_revision = rows[i].revision;
        if (!WORK_RC(&w, checkpoint_prepare(w.space, &in, 0, &a, &plan, &w.err),
                     BELAY_INVALID) ||
            !TAP_STR(t, w.err.reason, rows[i].reason))
            printf("# in row %zu\n", i);
    }
    TAP_OK(t, bytes_eq(plan.manifest, bytes_str("untouched")));
    work_close(&w);
}

static void sizes(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct checkpoint_plan plan;
    struct belay_checkpoint in = empty();
    size_t len = 2 * CHUNK_MAX + 1;
    uint8_t *data = calloc(1, len);

    in.tool_state = (struct belay_part){ .body = data, .len = CHUNK_MAX };
    in.plugin_snapshot = (struct belay_part){ .body = data, .len = len };
    in.execution_state = (struct belay_part){ .body = data, .len = 0 };
    WORK_RC(w, checkpoint_prepare(w->space, &in, 0, &a, &plan, &w->err), BELAY_OK);
    TAP_OK(w->t, plan.part[PART_TOOL].brought && !plan.part[PART_PLUGIN].brought);
    TAP_OK(w->t, !blob_is_there(w, plan.part[PART_TOOL].ref));
    TAP_OK(w->t, blob_is_there(w, plan.part[PART_PLUGIN].ref));
    struct head_commit c = { .session = "s", .plan = &plan };
    WORK_RC(w, work_run(w, w->space, head_body, &c), BELAY_OK);
    TAP_EQ(w->t, blob_look(w, plan.part[PART_TOOL].ref).size, CHUNK_MAX);
    TAP_EQ(w->t, blob_look(w, plan.part[PART_PLUGIN].ref).size, len);
    TAP_EQ(w->t, blob_look(w, plan.part[PART_EXECUTION].ref).size, 0);
    TAP_OK(w->t, blob_is_there(w, plan.part[PART_MANIFEST].ref));

    struct belay_checkpoint_info info;
    struct bytes got;
    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_OK);
    WORK_RC(w, blob_load(w->space, info.plugin_snapshot_ref, len, &a, &got, &w->err),
            BELAY_OK);
    TAP_OK(w->t, bytes_eq(got, bytes_of(data, len)));
    free(data);
}

static void test_sizes(struct tap *t)
{
    work_everywhere(t, sizes);
}

/* --- in the commit --- */

static void unknown_refs(struct work *w)
{
    CLEANUP(buf_release) struct buf before = { 0 }, after = { 0 };
    struct belay_checkpoint in = empty();

    in.tool_state = body("tools");
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_OK);
    before = work_dump(w, "default");
    in.tool_state = body("other tools");
    in.execution_state = named(SHA_A);
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "unknown_ref");
    TAP_OK(w->t, strncmp(w->err.entity, SHA_A, sizeof(w->err.entity) - 1) == 0);
    TAP_OK(w->t, strstr(w->err.message, "execution_state") != NULL);
    after = work_dump(w, "default");
    TAP_OK(w->t, bytes_eq(buf_view(&before), buf_view(&after)));
    /* Even one that the head names already. */
    struct checkpoint_plan plan;
    in = empty();
    in.tool_state = body("tools");
    WORK_RC(w, head_commit(w, "s", &in, 0, &plan), BELAY_OK);
    blob_lose(w, plan.part[PART_TOOL].ref);
    in.tool_state = named(plan.part[PART_TOOL].ref);
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "unknown_ref");
}

static void test_unknown_refs(struct tap *t)
{
    work_everywhere(t, unknown_refs);
}

/* S6: what a head names already stays as it is; what it names anew is touched. */
static void touches(struct work *w)
{
    struct belay_checkpoint in = empty();
    struct blob_info other;
    struct checkpoint_plan plan;

    work_blob(w, w->space, 100, 'o', &other);
    in.tool_state = body("tools");
    in.plugin_snapshot = body("plugins");
    WORK_RC(w, head_commit(w, "s", &in, 0, &plan), BELAY_OK);
    struct blob_look tool = blob_look(w, plan.part[PART_TOOL].ref);
    struct blob_look plugin = blob_look(w, plan.part[PART_PLUGIN].ref);
    struct blob_look before = blob_look(w, other.sha256);

    fake_advance_us(&w->clock, 5000);
    in.tool_state = named(plan.part[PART_TOOL].ref); /* as it is */
    in.plugin_snapshot = body("plugins");            /* brought again */
    in.execution_state = named(other.sha256);        /* named anew */
    struct checkpoint_plan next;
    WORK_RC(w, head_commit(w, "s", &in, 0, &next), BELAY_OK);
    TAP_EQ(w->t, blob_look(w, tool.sha256).ver, tool.ver);
    TAP_EQ(w->t, blob_look(w, tool.sha256).touched_ms, START_MS);
    TAP_OK(w->t, blob_look(w, plugin.sha256).ver != plugin.ver);
    TAP_EQ(w->t, blob_look(w, plugin.sha256).touched_ms, START_MS + 5);
    TAP_OK(w->t, blob_look(w, other.sha256).ver != before.ver);
    TAP_EQ(w->t, blob_look(w, other.sha256).touched_ms, START_MS + 5);

    /* In another column, or of another session, it is new. */
    int64_t ver = blob_look(w, tool.sha256).ver;
    in = empty();
    in.execution_state = named(tool.sha256);
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_OK);
    TAP_OK(w->t, blob_look(w, tool.sha256).ver != ver);
    ver = blob_look(w, tool.sha256).ver;
    WORK_RC(w, head_commit(w, "other", &in, 0, NULL), BELAY_OK);
    TAP_OK(w->t, blob_look(w, tool.sha256).ver != ver);
}

static void test_touches(struct tap *t)
{
    work_everywhere(t, touches);
}

static void equal_parts(struct work *w)
{
    struct belay_checkpoint in = empty();
    struct checkpoint_plan plan;
    struct blob_look l;

    in.tool_state = in.plugin_snapshot = body("same");
    WORK_RC(w, head_commit(w, "s", &in, 0, &plan), BELAY_OK);
    TAP_STR(w->t, plan.part[PART_TOOL].ref, plan.part[PART_PLUGIN].ref);
    l = blob_look(w, plan.part[PART_TOOL].ref);
    TAP_EQ(w->t, l.size, 4);
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_OK);
    /* A ref to what the same commit brings is there by then. */
    in.plugin_snapshot = body("news");
    in.tool_state = body("news");
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    WORK_RC(w, checkpoint_prepare(w->space, &in, 0, &a, &plan, &w->err), BELAY_OK);
    in.tool_state = named(plan.part[PART_TOOL].ref);
    in.execution_state = in.tool_state;
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_OK);
    TAP_EQ(w->t, blob_look(w, plan.part[PART_TOOL].ref).size, 4);
    /* Two refs to one blob. */
    in.plugin_snapshot = in.tool_state;
    WORK_RC(w, head_commit(w, "new", &in, 0, NULL), BELAY_OK);
}

static void test_equal_parts(struct tap *t)
{
    work_everywhere(t, equal_parts);
}

static void test_columns(struct tap *t)
{
    struct checkpoint_plan plan = { 0 };
    struct change changes[PARTS];

    memcpy(plan.part[PART_TOOL].ref, SHA_A, sizeof(SHA_A));
    plan.part[PART_TOOL].named = true;
    memcpy(plan.part[PART_MANIFEST].ref, SHA_B, sizeof(SHA_B));
    plan.part[PART_MANIFEST].named = true;
    TAP_EQ(t, checkpoint_changes(&plan, changes), PARTS);
    for (size_t i = 0; i < PARTS; i++) {
        const struct value *v = &changes[i].value;
        const char *want = changes[i].column == SESSION_TOOL_REF     ? SHA_A
                           : changes[i].column == SESSION_CHECKPOINT ? SHA_B
                                                                     : NULL;
        TAP_OK(t, want ? v->kind == VALUE_TEXT && bytes_eq(v->b, bytes_str(want))
                       : v->kind == VALUE_NULL);
    }
}

/* --- reading --- */

/* clang-format off */
static const struct {
    const char *text;
    bool ok;
} manifests[] = {
    { "{}", true },
    { "{\"turn_state\":[1,2]}", true },
    { "{\"turn_state\":{},\"later\":{\"x\":1}}", true },
    { "{\"tool_state_ref\":\"" SHA_A "\"}", true },
    { "{\"tool_state_ref\":null}", true },
    { "{\"plugin_snapshot_revision\":0}", true },
    { "", false },
    { "{", false },
    { "[]", false },
    { "null", false },
    { "{} {}", false },
    { "{\"tool_state_ref\":\"" SHA_A "a\"}", false },
    { "{\"tool_state_ref\":7}", false },
    { "{\"plugin_snapshot_ref\":\"x\"}", false },
    { "{\"execution_state_ref\":{}}", false },
    { "{\"plugin_snapshot_revision\":-1}", false },
    { "{\"plugin_snapshot_revision\":\"1\"}", false },
    { "{\"plugin_snapshot_revision\":1.5}", false },
}, frames[] = {
    { "[]", true },
    { "[{}]", true },
    { "[{\"execution_state_ref\":\"" SHA_A "\"},{\"x\":1},{\"execution_state_ref\":null}]", true },
    { "{}", false },
    { "", false },
    { "[", false },
    { "[1]", false },
    { "[{\"execution_state_ref\":\"\"}]", false },
    { "[{\"execution_state_ref\":\"" SHA_A " \"}]", false },
    { "[{\"execution_state_ref\":5}]", false },
};
/* clang-format on */

static void test_manifests(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err = { .code = 0 };
    struct manifest m;

    for (size_t i = 0; i < COUNT_OF(manifests); i++) {
        struct bytes text = bytes_str(manifests[i].text);
        belay_rc rc = manifest_parse(text, &a, &m, &err);
        if (!TAP_EQ(t, rc, manifests[i].ok ? BELAY_OK : BELAY_CORRUPT))
            printf("# %s\n", manifests[i].text);
        if (manifests[i].ok)
            TAP_OK(t, bytes_eq(m.text, text));
        else
            TAP_STR(t, err.reason, "corrupt_manifest");
    }
    struct bytes text = bytes_str("{\"execution_state_ref\":\"" SHA_B
                                  "\",\"plugin_snapshot_revision\":9,"
                                  "\"turn_state\":{\"b\":1,\"a\":2}}");
    TAP_EQ(t, manifest_parse(text, &a, &m, &err), BELAY_OK);
    TAP_STR(t, (const char *)m.ref[PART_EXECUTION].ptr, SHA_B);
    TAP_EQ(t, m.ref[PART_TOOL].len, 0);
    TAP_EQ(t, m.plugin_revision, 9);
    TAP_STR(t, (const char *)m.turn_state.ptr, "{\"a\":2,\"b\":1}");
    TAP_EQ(t, manifest_parse(bytes_str("{}"), &a, &m, &err), BELAY_OK);
    TAP_EQ(t, m.plugin_revision, BELAY_NONE);
    TAP_STR(t, (const char *)m.turn_state.ptr, "{}");
}

static void test_frames(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err = { .code = 0 };
    const char *const *refs = NULL;
    size_t n = 99;

    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        belay_rc rc = frames_refs(bytes_str(frames[i].text), &a, &refs, &n, &err);
        if (!TAP_EQ(t, rc, frames[i].ok ? BELAY_OK : BELAY_CORRUPT))
            printf("# %s\n", frames[i].text);
        if (!frames[i].ok)
            TAP_STR(t, err.reason, "corrupt_frames");
    }
    TAP_EQ(t, frames_refs(bytes_str(frames[2].text), &a, &refs, &n, &err), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_STR(t, refs[0], SHA_A);
}

static void loading(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_checkpoint in = empty();
    struct belay_checkpoint_info info;
    struct checkpoint_plan plan;
    struct head_commit bare = { .session = "bare" };

    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.entity, "s");
    WORK_RC(w, work_run(w, w->space, head_body, &bare), BELAY_OK);
    WORK_RC(w, checkpoint_load(w->space, "bare", &a, &info, &w->err), BELAY_NOT_FOUND);
    in.turn_state = "{\"turn_index\":1}";
    in.tool_state = body("tools");
    in.plugin_snapshot = body("plugins");
    in.plugin_snapshot_revision = 3;
    WORK_RC(w, head_commit(w, "s", &in, BELAY_COMPACT, &plan), BELAY_OK);
    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_OK);
    TAP_STR(w->t, info.ref, plan.part[PART_MANIFEST].ref);
    TAP_STR(w->t, info.turn_state, "{\"turn_index\":1}");
    TAP_STR(w->t, info.tool_state_ref, plan.part[PART_TOOL].ref);
    TAP_STR(w->t, info.plugin_snapshot_ref, plan.part[PART_PLUGIN].ref);
    TAP_STR(w->t, info.execution_state_ref, NULL);
    TAP_EQ(w->t, info.plugin_snapshot_revision, 3);
    TAP_OK(w->t, strstr(info.manifest, "\"turn_state\":{\"turn_index\":1}}") != NULL);

    blob_lose(w, plan.part[PART_PLUGIN].ref);
    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "missing_blob");
    TAP_OK(w->t, strstr(w->err.message, "plugin_snapshot") != NULL);
    blob_hurt(w, plan.part[PART_MANIFEST].ref, "{}");
    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_CORRUPT);
    blob_lose(w, plan.part[PART_MANIFEST].ref);
    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "missing_blob");
    head_change(w, "s", SESSION_STATE, value_str(SESSION_DELETED));
    WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.reason, "deleted");
}

static void test_loading(struct tap *t)
{
    work_everywhere(t, loading);
}

/* A manifest that has the right name and other bytes, or is none, is an error. */
static void damaged(struct work *w)
{
    static const char long_text[] = "a text that is as long as no manifest is";
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_checkpoint in = empty();
    struct checkpoint_plan plan;
    struct blob_info info;
    struct manifest m;

    WORK_RC(w, manifest_load(w->space, SHA_A, &a, &m, &w->err), BELAY_NOT_FOUND);
    WORK_RC(w, head_commit(w, "s", &in, 0, &plan), BELAY_OK);
    const char *ref = plan.part[PART_MANIFEST].ref;
    WORK_RC(w, manifest_load(w->space, ref, &a, &m, &w->err), BELAY_OK);
    blob_hurt(w, ref, "{\"turn_state\":[]}"); /* of the same length */
    WORK_RC(w, manifest_load(w->space, ref, &a, &m, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "hash_mismatch");
    blob_hurt(w, ref, "{\"turn_state\"");
    WORK_RC(w, manifest_load(w->space, ref, &a, &m, &w->err), BELAY_CORRUPT);
    blob_hurt(w, ref, long_text);
    WORK_RC(w, manifest_load(w->space, ref, &a, &m, &w->err), BELAY_CORRUPT);
    blob_hurt(w, ref, NULL);
    WORK_RC(w, manifest_load(w->space, ref, &a, &m, &w->err), BELAY_CORRUPT);
    work_blob(w, w->space, 20, 'x', &info);
    WORK_RC(w, manifest_load(w->space, info.sha256, &a, &m, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "corrupt_manifest");
    work_blob(w, w->space, CHUNK_MAX + 1, 'x', &info);
    WORK_RC(w, manifest_load(w->space, info.sha256, &a, &m, &w->err), BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "corrupt_manifest");
}

static void test_damaged(struct tap *t)
{
    work_everywhere(t, damaged);
}

static const struct tap_case cases[] = {
    { "a kind has one name, and a descriptor that says it", test_kinds },
    { "a profile says from which size on what is compressed", test_compressing },
    { "without a profile the store's durability decides", test_profiles },
    { "a manifest is canonical JSON without absent parts", test_manifest_text },
    { "what cannot be a checkpoint is refused before anything is stored",
      test_refused_input },
    { "bodies of up to a chunk come with the commit, larger ones before it",
      test_sizes },
    { "an unknown ref is refused at commit and nothing changes", test_unknown_refs },
    { "a blob that is newly named is touched, one that was named before is not",
      test_touches },
    { "equal parts are one blob", test_equal_parts },
    { "the head's columns say what the checkpoint names", test_columns },
    { "a manifest is read strictly, and unknown members are left alone",
      test_manifests },
    { "every execution_state_ref of the frames is found", test_frames },
    { "a checkpoint is loaded whole, or it is said what is missing", test_loading },
    { "a blob whose bytes do not match its name is an error", test_damaged },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
