/* Pins, and which blobs a collection takes: never one that is named, or within its
 * grace (S5, S6); everything else, in the end (S7). */
#include <pthread.h>

#include "test_work_exec_time.h"
#include "test_work_heads.h"
#include "work/gc_impl.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct belay_gc_options at_once = { .size = sizeof(at_once),
                                                 .grace_ms = BELAY_NONE };

static struct belay_part body(const char *text)
{
    return (struct belay_part){ .body = text, .len = strlen(text) };
}

/* A checkpoint whose bodies begin with `name`. */
static belay_rc commit(struct work *w, const char *session, const char *name,
                       struct checkpoint_plan *out)
{
    char text[3][64];
    struct belay_checkpoint in = { .turn_state = "{\"turn_index\":1}",
                                   .plugin_snapshot_revision = BELAY_NONE };

    for (int i = 0; i < 3; i++)
        (void)snprintf(text[i], sizeof(text[i]), "%s %d", name, i);
    in.tool_state = body(text[0]);
    in.plugin_snapshot = body(text[1]);
    in.execution_state = body(text[2]);
    return head_commit(w, session, &in, 0, out);
}

static struct belay_gc_report collect(struct work *w, const struct belay_gc_options *o)
{
    struct belay_gc_report r = { .outcome = -1 };

    if (!WORK_RC(w, gc_run(w->space, o, &r, &w->err), BELAY_OK))
        printf("# %s\n", r.message);
    return r;
}

/* One collection, with what it must say. */
static void collects(struct work *w, int outcome, int64_t deleted)
{
    struct belay_gc_report r = collect(w, &at_once);

    if (!TAP_EQ(w->t, r.outcome, outcome) || !TAP_EQ(w->t, r.deleted_blobs, deleted))
        printf("# %s\n", r.message);
}

static void loads(struct work *w, const char *session)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_checkpoint_info info;

    WORK_RC(w, checkpoint_load(w->space, session, &a, &info, &w->err), BELAY_OK);
}

/* --- roots --- */

static void live_checkpoint(struct work *w)
{
    struct checkpoint_plan plan;
    struct blob_info orphan;

    WORK_RC(w, commit(w, "s", "first", &plan), BELAY_OK);
    work_blob(w, w->space, 11, 'o', &orphan);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.outcome, BELAY_GC_SWEPT);
    TAP_EQ(w->t, r.code, BELAY_OK);
    TAP_EQ(w->t, r.roots, 1);
    TAP_EQ(w->t, r.deleted_blobs, 1);
    TAP_EQ(w->t, r.deleted_bytes, 11);
    TAP_EQ(w->t, r.retained_blobs, PARTS);
    TAP_EQ(w->t, r.steps, 1);
    TAP_EQ(w->t, r.spared_blobs, 0);
    TAP_OK(w->t, !blob_is_there(w, orphan.sha256));
    for (size_t i = 0; i < PARTS; i++)
        TAP_OK(w->t, blob_is_there(w, plan.part[i].ref));
    loads(w, "s");
    collects(w, BELAY_GC_NOTHING, 0);
}

static void test_live_checkpoint(struct tap *t)
{
    work_everywhere(t, live_checkpoint);
}

static void rooted(struct work *w)
{
    struct blob_info orphan;

    WORK_RC(w, commit(w, "a", "same", NULL), BELAY_OK);
    WORK_RC(w, commit(w, "b", "same", NULL), BELAY_OK);
    WORK_RC(w, commit(w, "c", "other", NULL), BELAY_OK);
    work_blob(w, w->space, 5, 'o', &orphan);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.deleted_blobs, 1);
    TAP_EQ(w->t, r.roots, 3);
    TAP_EQ(w->t, r.retained_blobs, 2 * PARTS);
    /* What a head named before, and nobody else names, is garbage. */
    WORK_RC(w, commit(w, "a", "newer", NULL), BELAY_OK);
    collects(w, BELAY_GC_NOTHING, 0);
    WORK_RC(w, commit(w, "b", "newer", NULL), BELAY_OK);
    collects(w, BELAY_GC_SWEPT, PARTS);
    loads(w, "a");
    loads(w, "b");
    loads(w, "c");
    /* A session that is deleted names nothing any more. */
    head_change(w, "c", SESSION_STATE, value_str(SESSION_DELETING));
    collects(w, BELAY_GC_SWEPT, PARTS);
    head_change(w, "b", SESSION_STATE, value_str(SESSION_DELETED));
    collects(w, BELAY_GC_NOTHING, 0);
    loads(w, "a");
}

static void test_rooted(struct tap *t)
{
    work_everywhere(t, rooted);
}

static void many_sessions(struct work *w)
{
    char id[16];
    struct blob_info orphan;

    for (int i = 0; i < 150; i++) { /* more than two pages of them */
        (void)snprintf(id, sizeof(id), "s%03d", i);
        WORK_RC(w, commit(w, id, id, NULL), BELAY_OK);
        if (i % 10 == 0)
            fake_advance_us(&w->clock, 1000);
    }
    work_blob(w, w->space, 5, 'o', &orphan);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.deleted_blobs, 1);
    TAP_EQ(w->t, r.roots, 150);
    TAP_EQ(w->t, r.retained_blobs, 150 * PARTS);
    loads(w, "s000");
    loads(w, "s149");
}

static void test_many_sessions(struct tap *t)
{
    work_everywhere(t, many_sessions);
}

/* --- refusals --- */

struct frames_of {
    const char *session, *frames;
};

static belay_rc frames_body(struct txn *t, void *arg)
{
    const struct frames_of *f = arg;

    return head_frames(
        t, &(struct head_commit){ .session = f->session, .frames = f->frames });
}

static void set_frames(struct work *w, const char *session, const char *frames)
{
    struct frames_of f = { session, frames };

    WORK_RC(w, work_run(w, w->space, frames_body, &f), BELAY_OK);
}

static belay_rc listed_body(struct txn *t, void *arg)
{
    const char *const *entry = arg;

    return txn_rank_add(t, bytes_str(entry[0]), 5, bytes_str(entry[1]));
}

static void only_listed(struct work *w, const char *index, const char *member)
{
    const char *entry[] = { index, member };

    WORK_RC(w, work_run(w, w->space, listed_body, entry), BELAY_OK);
}

static belay_rc pin_body(struct txn *t, void *arg)
{
    const struct value v[PIN_COLUMNS] = { value_str("p"), value_str(arg),
                                          value_i64(9) };
    belay_rc rc = txn_insert(t, &row_pin, v);

    return rc ? rc : txn_rank_add(t, bytes_str(PIN_INDEX), 9, v[PIN_NAME].b);
}

enum damage {
    STATE_UNKNOWN,
    STATE_NONE,
    REVISION_NEGATIVE,
    REVISION_NONE,
    CHECKPOINT_NO_NAME,
    REF_NO_NAME,
    HEAD_LISTED_ONLY,
    MANIFEST_OTHER_BYTES,
    MANIFEST_TRUNCATED,
    MANIFEST_CHUNK_GONE,
    MANIFEST_NO_MANIFEST,
    MANIFEST_MISSING,
    FRAMES_NO_ARRAY,
    FRAMES_BAD_REF,
    PIN_LISTED_ONLY,
    PIN_NO_NAME,
    DAMAGES
};

/* clang-format off */
static const struct {
    const char *reason, *entity;
} refusals[DAMAGES] = {
    [STATE_UNKNOWN]        = { "corrupt_head",     "s" },
    [STATE_NONE]           = { "corrupt_head",     "s" },
    [REVISION_NEGATIVE]    = { "corrupt_head",     "s" },
    [REVISION_NONE]        = { "corrupt_head",     "s" },
    [CHECKPOINT_NO_NAME]   = { "corrupt_head",     "s" },
    [REF_NO_NAME]          = { "corrupt_head",     "s" },
    [HEAD_LISTED_ONLY]     = { "corrupt_head",     "ghost" },
    [MANIFEST_OTHER_BYTES] = { "corrupt_manifest", "s" },
    [MANIFEST_TRUNCATED]   = { "corrupt_manifest", "s" },
    [MANIFEST_CHUNK_GONE]  = { "corrupt_manifest", "s" },
    [MANIFEST_NO_MANIFEST] = { "corrupt_manifest", "s" },
    [MANIFEST_MISSING]     = { "missing_manifest", "s" },
    [FRAMES_NO_ARRAY]      = { "corrupt_frames",   "s" },
    [FRAMES_BAD_REF]       = { "corrupt_frames",   "s" },
    [PIN_LISTED_ONLY]      = { "corrupt_pin",      "ghost" },
    [PIN_NO_NAME]          = { "corrupt_pin",      "p" },
};
/* clang-format on */

static void hurt(struct work *w, enum damage d, const char *manifest,
                 const char *no_manifest)
{
    switch (d) {
    case STATE_UNKNOWN:
        head_change(w, "s", SESSION_STATE, value_str("sleeping"));
        break;
    case STATE_NONE:
        head_change(w, "s", SESSION_STATE, value_null());
        break;
    case REVISION_NEGATIVE:
        head_change(w, "s", SESSION_REVISION, value_i64(-1));
        break;
    case REVISION_NONE:
        head_change(w, "s", SESSION_REVISION, value_null());
        break;
    case CHECKPOINT_NO_NAME:
        head_change(w, "s", SESSION_CHECKPOINT, value_str("checkpoint"));
        break;
    case REF_NO_NAME:
        head_change(w, "s", SESSION_PLUGIN_REF, value_str(""));
        break;
    case HEAD_LISTED_ONLY:
        only_listed(w, SESSION_INDEX, "ghost");
        break;
    case MANIFEST_OTHER_BYTES:
    case MANIFEST_TRUNCATED:
        blob_hurt(w, manifest, d == MANIFEST_TRUNCATED ? "{" : "{\"turn_state\":{}}");
        break;
    case MANIFEST_CHUNK_GONE:
        blob_hurt(w, manifest, NULL);
        break;
    case MANIFEST_NO_MANIFEST:
        head_change(w, "s", SESSION_CHECKPOINT, value_str(no_manifest));
        break;
    case MANIFEST_MISSING:
        blob_lose(w, manifest);
        break;
    case FRAMES_NO_ARRAY:
        set_frames(w, "s", "{\"execution_state_ref\":\"" SHA_A "\"}");
        break;
    case FRAMES_BAD_REF:
        set_frames(w, "s", "[{\"execution_state_ref\":\"x\"}]");
        break;
    case PIN_LISTED_ONLY:
        only_listed(w, PIN_INDEX, "ghost");
        break;
    case PIN_NO_NAME:
        WORK_RC(w, work_run(w, w->space, pin_body, (char[]){ "blob" }), BELAY_OK);
        break;
    case DAMAGES:
        break;
    }
}

static void refused(struct work *w, enum damage d)
{
    CLEANUP(buf_release) struct buf before = { 0 }, after = { 0 };
    struct checkpoint_plan plan;
    struct blob_info orphan;

    WORK_RC(w, commit(w, "a", "sound", NULL), BELAY_OK);
    WORK_RC(w, commit(w, "s", "text", &plan), BELAY_OK);
    work_blob(w, w->space, 21, 'o', &orphan);
    hurt(w, d, plan.part[PART_MANIFEST].ref, orphan.sha256);
    before = work_dump(w, "default");
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.outcome, BELAY_GC_REFUSED);
    TAP_EQ(w->t, r.code, BELAY_CORRUPT);
    TAP_STR(w->t, r.reason, refusals[d].reason);
    TAP_STR(w->t, r.entity, refusals[d].entity);
    TAP_EQ(w->t, r.deleted_blobs, 0);
    TAP_OK(w->t, strstr(r.message, refusals[d].entity) != NULL);
    after = work_dump(w, "default");
    TAP_OK(w->t, bytes_eq(buf_view(&before), buf_view(&after)));
}

static void refuses(struct tap *t, enum damage from, enum damage to)
{
    for (int d = (int)from; d <= (int)to; d++) {
        for (int on = 0; on < ON_DRIVERS; on++) {
            unsigned failed = t->failed;
            struct work w;
            if (!work_chosen(t, (enum work_driver)on))
                continue;
            if (work_open(&w, t, (enum work_driver)on))
                refused(&w, (enum damage)d);
            work_close(&w);
            if (t->failed > failed)
                printf("# damage %d on driver %d\n", d, on);
        }
    }
}

static void test_corrupt_head(struct tap *t)
{
    refuses(t, STATE_UNKNOWN, HEAD_LISTED_ONLY);
}

static void test_other_bytes(struct tap *t)
{
    refuses(t, MANIFEST_OTHER_BYTES, MANIFEST_OTHER_BYTES);
}

static void test_truncated(struct tap *t)
{
    refuses(t, MANIFEST_TRUNCATED, MANIFEST_CHUNK_GONE);
}

static void test_corrupt_manifest(struct tap *t)
{
    refuses(t, MANIFEST_NO_MANIFEST, MANIFEST_NO_MANIFEST);
}

static void test_missing_manifest(struct tap *t)
{
    refuses(t, MANIFEST_MISSING, MANIFEST_MISSING);
}

static void test_corrupt_frames(struct tap *t)
{
    refuses(t, FRAMES_NO_ARRAY, FRAMES_BAD_REF);
}

static void test_corrupt_pin(struct tap *t)
{
    refuses(t, PIN_LISTED_ONLY, PIN_NO_NAME);
}

/* A manifest says what it names even where the head does not. */
static void named_by_manifest(struct work *w)
{
    static const unsigned columns[] = { SESSION_TOOL_REF, SESSION_PLUGIN_REF,
                                        SESSION_EXECUTION_REF };

    WORK_RC(w, commit(w, "s", "text", NULL), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        head_change(w, "s", columns[i], value_null());
    collects(w, BELAY_GC_NOTHING, 0);
    loads(w, "s");
}

static void test_named_by_manifest(struct tap *t)
{
    work_everywhere(t, named_by_manifest);
}

/* A part that is missing is no reason to keep anything else. */
static void missing_part(struct work *w)
{
    struct checkpoint_plan plan;
    struct blob_info orphan;

    WORK_RC(w, commit(w, "s", "text", &plan), BELAY_OK);
    work_blob(w, w->space, 5, 'o', &orphan);
    blob_lose(w, plan.part[PART_TOOL].ref);
    collects(w, BELAY_GC_SWEPT, 1);
    TAP_OK(w->t, blob_is_there(w, plan.part[PART_PLUGIN].ref));
}

static void test_missing_part(struct tap *t)
{
    work_everywhere(t, missing_part);
}

static belay_rc displaced_body(struct txn *t, void *arg)
{
    const struct blob_look *l = arg;

    return txn_rank_move(t, bytes_str(BLOB_INDEX), l->touched_ms, 7,
                         bytes_str(l->sha256));
}

/* A blob that is not listed as its row says stays for a check to find. */
static void odd_blobs(struct work *w)
{
    struct blob_info displaced, orphan;

    work_blob(w, w->space, 5, 'd', &displaced);
    work_blob(w, w->space, 5, 'o', &orphan);
    struct blob_look l = blob_look(w, displaced.sha256);
    WORK_RC(w, work_run(w, w->space, displaced_body, &l), BELAY_OK);
    only_listed(w, BLOB_INDEX, SHA_A);
    only_listed(w, BLOB_INDEX, "no name");
    collects(w, BELAY_GC_SWEPT, 1);
    TAP_OK(w->t, !blob_is_there(w, orphan.sha256));
    TAP_OK(w->t, blob_is_there(w, displaced.sha256));
    collects(w, BELAY_GC_NOTHING, 0);
}

static void test_odd_blobs(struct tap *t)
{
    work_everywhere(t, odd_blobs);
}

/* --- frames and pins --- */

static void traced_frames(struct work *w)
{
    struct blob_info framed, orphan;
    char text[256];

    work_blob(w, w->space, 5, 'f', &framed);
    work_blob(w, w->space, 5, 'o', &orphan);
    (void)snprintf(text, sizeof(text),
                   "[{\"id\":\"x\"},{\"execution_state_ref\":\"%s\"}]", framed.sha256);
    WORK_RC(w, commit(w, "s", "text", NULL), BELAY_OK);
    set_frames(w, "s", text);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.deleted_blobs, 1);
    TAP_EQ(w->t, r.roots, 2);
    TAP_OK(w->t, blob_is_there(w, framed.sha256));
    set_frames(w, "s", "[]");
    collects(w, BELAY_GC_SWEPT, 1);
}

static void test_traced_frames(struct tap *t)
{
    work_everywhere(t, traced_frames);
}

static void pinned(struct work *w)
{
    struct blob_info a, b;
    bool removed = true;

    work_blob(w, w->space, 5, 'a', &a);
    work_blob(w, w->space, 5, 'b', &b);
    int64_t ver = blob_look(w, a.sha256).ver;
    WORK_RC(w, pin_put(w->space, "release", a.sha256, &w->err), BELAY_OK);
    TAP_OK(w->t, blob_look(w, a.sha256).ver != ver); /* S6 */
    collects(w, BELAY_GC_SWEPT, 1);
    TAP_OK(w->t, blob_is_there(w, a.sha256));
    WORK_RC(w, pin_put(w->space, "release", b.sha256, &w->err), BELAY_NOT_FOUND);
    WORK_RC(w, pin_put(w->space, "other", "no name", &w->err), BELAY_NOT_FOUND);
    collects(w, BELAY_GC_NOTHING, 0);
    /* A name that is taken moves. */
    work_blob(w, w->space, 5, 'b', &b);
    WORK_RC(w, pin_put(w->space, "release", b.sha256, &w->err), BELAY_OK);
    collects(w, BELAY_GC_SWEPT, 1);
    TAP_OK(w->t, blob_is_there(w, b.sha256) && !blob_is_there(w, a.sha256));
    WORK_RC(w, pin_remove(w->space, "other", &removed, &w->err), BELAY_OK);
    TAP_OK(w->t, !removed);
    WORK_RC(w, pin_remove(w->space, "release", &removed, &w->err), BELAY_OK);
    TAP_OK(w->t, removed);
    WORK_RC(w, pin_remove(w->space, "release", NULL, &w->err), BELAY_OK);
    collects(w, BELAY_GC_SWEPT, 1);
}

static void test_pinned(struct tap *t)
{
    work_everywhere(t, pinned);
}

/* "name@milliseconds " for each pin of a page; valid until the next call. */
static const char *listed(struct work *w, const char *cursor, size_t limit,
                          struct belay_pins *pins)
{
    static char text[256];
    size_t used = 0;

    text[0] = 0;
    if (!WORK_RC(w, pin_list(w->space, cursor, limit, &w->arena, pins, &w->err),
                 BELAY_OK))
        return "";
    for (size_t i = 0; i < pins->n; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s@%lld ",
                                 pins->pins[i].name,
                                 (long long)(pins->pins[i].created_at_ms - START_MS));
    return text;
}

static void pin_pages(struct work *w)
{
    static const char *const names[] = { "b", "a", "\xc3\xa9:x", "d" };
    struct belay_pins pins;
    struct blob_info a;
    char long_name[257];

    TAP_STR(w->t, listed(w, NULL, 0, &pins), "");
    TAP_STR(w->t, pins.next_cursor, NULL);
    work_blob(w, w->space, 5, 'a', &a);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        WORK_RC(w, pin_put(w->space, names[i], a.sha256, &w->err), BELAY_OK);
        if (i > 0)
            fake_advance_us(&w->clock, 1000);
    }
    TAP_STR(w->t, listed(w, NULL, 0, &pins), "a@0 b@0 \xc3\xa9:x@1 d@2 ");
    TAP_STR(w->t, pins.pins[0].sha256, a.sha256);
    TAP_STR(w->t, listed(w, NULL, 3, &pins), "a@0 b@0 \xc3\xa9:x@1 ");
    TAP_STR(w->t, pins.next_cursor, "1750000000001:\xc3\xa9:x");
    TAP_STR(w->t, listed(w, pins.next_cursor, 3, &pins), "d@2 ");
    TAP_STR(w->t, pins.next_cursor, NULL);
    WORK_RC(w, pin_put(w->space, "a", a.sha256, &w->err), BELAY_OK);
    TAP_STR(w->t, listed(w, NULL, 4, &pins), "b@0 \xc3\xa9:x@1 d@2 a@3 ");
    TAP_STR(w->t, pins.next_cursor, NULL);

    memset(long_name, 'x', 256);
    long_name[256] = 0;
    WORK_RC(w, pin_put(w->space, long_name, a.sha256, &w->err), BELAY_INVALID);
    WORK_RC(w, pin_put(w->space, long_name + 1, a.sha256, &w->err), BELAY_OK);
    WORK_RC(w, pin_put(w->space, "", a.sha256, &w->err), BELAY_INVALID);
    WORK_RC(w, pin_put(w->space, "a\nb", a.sha256, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "pin_name");
    WORK_RC(w, pin_remove(w->space, "", NULL, &w->err), BELAY_INVALID);
    static const char *const cursors[] = { "", "5", "x:a", "5:", ":a" };
    for (size_t i = 0; i < COUNT_OF(cursors); i++)
        WORK_RC(w, pin_list(w->space, cursors[i], 0, &w->arena, &pins, &w->err),
                BELAY_INVALID);
}

static void test_pin_pages(struct tap *t)
{
    work_everywhere(t, pin_pages);
}

/* --- grace --- */

static void grace(struct work *w)
{
    struct blob_info info;
    struct belay_gc_report r;

    work_blob(w, w->space, 5, 'a', &info);
    fake_advance_us(&w->clock, (BELAY_GC_GRACE_MS - 1) * 1000);
    r = collect(w, NULL);
    TAP_EQ(w->t, r.outcome, BELAY_GC_NOTHING);
    TAP_EQ(w->t, r.retained_blobs, 1);
    fake_advance_us(&w->clock, 1000);
    struct belay_gc_options longer = { .size = sizeof(longer),
                                       .grace_ms = BELAY_GC_GRACE_MS + 1 };
    TAP_EQ(w->t, collect(w, &longer).outcome, BELAY_GC_NOTHING);
    TAP_EQ(w->t, collect(w, NULL).deleted_blobs, 1);
}

static void test_grace(struct tap *t)
{
    work_everywhere(t, grace);
}

static void dedup(struct work *w)
{
    struct blob_info info;

    work_blob(w, w->space, 5, 'a', &info);
    fake_advance_us(&w->clock, BELAY_GC_GRACE_MS * 1000 - 1000);
    work_blob(w, w->space, 5, 'a', &info);
    TAP_OK(w->t, info.existed);
    fake_advance_us(&w->clock, BELAY_GC_GRACE_MS * 1000 - 1000);
    TAP_EQ(w->t, collect(w, NULL).outcome, BELAY_GC_NOTHING);
    fake_advance_us(&w->clock, 1000);
    TAP_EQ(w->t, collect(w, NULL).deleted_blobs, 1);
}

static void test_dedup(struct tap *t)
{
    work_everywhere(t, dedup);
}

static void test_options(struct tap *t)
{
    static const struct belay_gc_options bad[] = {
        { .grace_ms = -2 },
        { .grace_ms = 366 * DAY_MS },
        { .budget_ms = -1 },
        { .budget_ms = INT64_MAX },
    };
    struct belay_gc_report r;
    struct work w;

    if (!work_open(&w, t, ON_MEMORY))
        return;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        WORK_RC(&w, gc_run(w.space, &bad[i], &r, &w.err), BELAY_INVALID);
        TAP_STR(t, w.err.reason, "option");
    }
    struct belay_gc_options year = { .grace_ms = 365 * DAY_MS };
    TAP_EQ(t, collect(&w, &year).outcome, BELAY_GC_NOTHING);
    work_close(&w);
}

/* --- beside others --- */

/* A collection that has traced and not swept yet. */
static void traced(struct work *w, struct gc *g, struct belay_gc_report *r)
{
    WORK_RC(w, gc_open(g, w->space, &at_once, 16, r, &w->err), BELAY_OK);
    WORK_RC(w, gc_collect(g, &w->err), BELAY_OK);
    WORK_RC(w, gc_trace(g, &w->err), BELAY_OK);
}

static void spared(struct work *w)
{
    struct belay_checkpoint in = { .plugin_snapshot_revision = BELAY_NONE };
    struct blob_info named, pin, again, garbage;
    struct belay_gc_report r;
    struct gc g;

    work_blob(w, w->space, 5, 'n', &named);
    work_blob(w, w->space, 5, 'p', &pin);
    work_blob(w, w->space, 5, 'a', &again);
    work_blob(w, w->space, 5, 'g', &garbage);
    traced(w, &g, &r);
    in.tool_state.ref = named.sha256;
    WORK_RC(w, head_commit(w, "s", &in, 0, NULL), BELAY_OK);
    WORK_RC(w, pin_put(w->space, "p", pin.sha256, &w->err), BELAY_OK);
    work_blob(w, w->space, 5, 'a', &again);
    TAP_OK(w->t, again.existed);
    WORK_RC(w, gc_sweep(&g, &w->err), BELAY_OK);
    gc_close(&g);
    TAP_EQ(w->t, r.deleted_blobs, 1);
    TAP_EQ(w->t, r.spared_blobs, 3);
    TAP_EQ(w->t, r.steps, 1);
    TAP_OK(w->t, !blob_is_there(w, garbage.sha256));
    TAP_OK(w->t, blob_is_there(w, again.sha256));
    loads(w, "s");
    /* What nobody took up goes with the next one (S7). */
    collects(w, BELAY_GC_SWEPT, 1);
    loads(w, "s");
}

static void test_spared(struct tap *t)
{
    work_everywhere(t, spared);
}

/* Two collections that have seen the same: the second finds nothing left. */
static void twice(struct work *w)
{
    struct belay_gc_report r[2];
    struct blob_info info;
    struct gc g[2];

    work_blob(w, w->space, 5, 'a', &info);
    traced(w, &g[0], &r[0]);
    traced(w, &g[1], &r[1]);
    for (int i = 0; i < 2; i++) {
        WORK_RC(w, gc_sweep(&g[i], &w->err), BELAY_OK);
        gc_close(&g[i]);
        TAP_EQ(w->t, r[i].deleted_blobs, i == 0);
        TAP_EQ(w->t, r[i].spared_blobs, 0);
    }
    /* Nor does it take one of the same name that came since. */
    work_blob(w, w->space, 5, 'a', &info);
    traced(w, &g[0], &r[0]);
    collects(w, BELAY_GC_SWEPT, 1);
    work_blob(w, w->space, 5, 'a', &info);
    WORK_RC(w, gc_sweep(&g[0], &w->err), BELAY_OK);
    gc_close(&g[0]);
    TAP_OK(w->t, blob_is_there(w, info.sha256));
}

static void test_twice(struct tap *t)
{
    work_everywhere(t, twice);
}

/* Between any two calls that a collection makes to its driver, somebody else does
 * something. */
struct meddler {
    struct work *w; /* on the same driver, past the trace */
    void (*act)(struct work *w);
    unsigned at, calls;
};

static void meddle(void *arg, const char *line)
{
    struct meddler *m = arg;

    (void)line;
    if (!m->act || ++m->calls != m->at)
        return;
    struct txn *was = txn_thread_swap(NULL);
    m->act(m->w);
    (void)txn_thread_swap(was);
}

#define SHA_YYY "f2afd1cacb5441a5e65a7a460a5f9898b7b98b08aa6323a2e53c8b9a9686cd86"

static struct belay_checkpoint only_tool(const char *ref)
{
    return (struct belay_checkpoint){ .plugin_snapshot_revision = BELAY_NONE,
                                      .tool_state.ref = ref };
}

/* Takes up garbage, unless it is gone by now. */
static void act_name(struct work *w)
{
    struct belay_checkpoint in = only_tool(SHA_YYY);
    belay_rc rc = head_commit(w, "t", &in, 0, NULL);

    TAP_OK(w->t, rc == BELAY_OK || rc == BELAY_INVALID);
}

static void act_pin(struct work *w)
{
    belay_rc rc = pin_put(w->space, "p", SHA_YYY, &w->err);

    TAP_OK(w->t, rc == BELAY_OK || rc == BELAY_NOT_FOUND);
}

static void act_put(struct work *w)
{
    struct blob_info info;

    work_blob(w, w->space, 3, 'y', &info);
    TAP_STR(w->t, info.sha256, SHA_YYY);
    act_pin(w);
}

static void act_move(struct work *w)
{
    WORK_RC(w, commit(w, "s", "newer", NULL), BELAY_OK);
}

static void act_delete(struct work *w)
{
    head_change(w, "s", SESSION_STATE, value_str(SESSION_DELETING));
}

/* Hands a blob over from a head that is looked at late to one that was looked at
 * early. */
static void act_hand_over(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_checkpoint_info info;

    if (!WORK_RC(w, checkpoint_load(w->space, "s", &a, &info, &w->err), BELAY_OK))
        return;
    struct belay_checkpoint in = only_tool(info.tool_state_ref);
    WORK_RC(w, head_commit(w, "a", &in, 0, NULL), BELAY_OK);
    act_move(w);
}

static void act_collect(struct work *w)
{
    struct belay_gc_report r;

    act_hand_over(w);
    WORK_RC(w, gc_run(w->space, &at_once, &r, &w->err), BELAY_OK);
}

static void act_delete_and_collect(struct work *w)
{
    struct belay_gc_report r;

    act_delete(w);
    WORK_RC(w, gc_run(w->space, &at_once, &r, &w->err), BELAY_OK);
}

/* Whatever is named is there. */
static void nothing_lost(struct work *w)
{
    static const char *const sessions[] = { "a", "s", "t" };
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_checkpoint_info info;
    struct belay_pins pins;

    for (size_t i = 0; i < COUNT_OF(sessions); i++) {
        belay_rc rc = checkpoint_load(w->space, sessions[i], &a, &info, &w->err);
        if (!TAP_OK(w->t, rc == BELAY_OK || rc == BELAY_NOT_FOUND))
            printf("# %s\n", w->err.message);
    }
    WORK_RC(w, pin_list(w->space, NULL, 0, &a, &pins, &w->err), BELAY_OK);
    for (size_t i = 0; i < pins.n; i++)
        TAP_OK(w->t, blob_is_there(w, pins.pins[i].sha256));
}

/* One collection with somebody else at its `at`-th call; false: it has fewer. */
static bool meddled(struct tap *t, const struct belay_gc_options *o,
                    void (*act)(struct work *w), unsigned at)
{
    struct work w;
    struct driver *traced_driver = NULL;
    struct store *watched = NULL;
    struct belay_gc_report r = { .outcome = -1 };
    struct meddler m = { .w = &w, .at = at };
    struct blob_info info;

    if (!work_open(&w, t, ON_MEMORY))
        return false;
    struct driver *memory = w.driver;
    WORK_RC(&w, trace_wrap(&traced_driver, memory, meddle, &m, &w.err), BELAY_OK);
    w.driver = traced_driver; /* which closes the other one */
    watched = work_store(&w);
    struct space *sp = work_space(&w, watched, "default");
    WORK_RC(&w, commit(&w, "a", "first", NULL), BELAY_OK);
    fake_advance_us(&w.clock, 1000);
    WORK_RC(&w, commit(&w, "s", "second", NULL), BELAY_OK);
    work_blob(&w, w.space, 3, 'y', &info);
    work_blob(&w, w.space, 3, 'z', &info);
    fake_advance_us(&w.clock, 2 * BELAY_GC_GRACE_MS * 1000);
    m.act = act;
    WORK_RC(&w, gc_run(sp, o, &r, &w.err), BELAY_OK);
    m.act = NULL;
    if (!TAP_OK(t, r.outcome == BELAY_GC_SWEPT || r.outcome == BELAY_GC_NOTHING))
        printf("# %s: %s\n", r.reason, r.message);
    nothing_lost(&w);
    (void)collect(&w, &at_once);
    collects(&w, BELAY_GC_NOTHING, 0);
    nothing_lost(&w);
    store_close(watched);
    work_close(&w);
    return m.calls >= at;
}

static void test_meddled(struct tap *t)
{
    static const struct {
        const char *name;
        void (*act)(struct work *w);
    } acts[] = {
        { "name", act_name },       { "pin", act_pin },
        { "put", act_put },         { "move", act_move },
        { "delete", act_delete },   { "hand over", act_hand_over },
        { "collect", act_collect }, { "delete, collect", act_delete_and_collect },
    };

    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        for (int none = 0; none < 2; none++) {
            unsigned at = 1, failed = t->failed;
            while (at < 1000 && meddled(t, none ? &at_once : NULL, acts[i].act, at))
                at++;
            TAP_OK(t, at > 20);
            if (t->failed > failed)
                printf("# %s, at up to %u\n", acts[i].name, at);
        }
    }
}

/* --- threads --- */

#define WRITERS 3
#define COMMITS 60

struct writer {
    struct work w; /* its own arena and error on a shared store */
    char session[16];
    atomic_int *left;
    int failed;
};

/* Alternates bodies that others bring as well, and refs of what it has. */
static void *writing(void *arg)
{
    struct writer *wr = arg;
    struct checkpoint_plan plan;
    char text[32];

    for (int i = 0; i < COMMITS && !wr->failed; i++) {
        struct belay_checkpoint in = { .plugin_snapshot_revision = i };
        (void)snprintf(text, sizeof(text), "shared %d", i % 7);
        in.tool_state = body(text);
        in.plugin_snapshot = body(wr->session);
        if (i > 0)
            in.execution_state.ref = plan.part[PART_TOOL].ref;
        wr->failed = head_commit(&wr->w, wr->session, &in, 0, &plan) != BELAY_OK;
    }
    atomic_fetch_sub(wr->left, 1);
    return NULL;
}

static void beside_writers(struct work *w)
{
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    atomic_int left = WRITERS;
    int64_t deleted = 0;

    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .w = *w, .left = &left };
        writers[i].w.arena = (struct belay_arena){ 0 };
        (void)snprintf(writers[i].session, sizeof(writers[i].session), "s%d", i);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writing, &writers[i]);
    while (atomic_load(&left) > 0) {
        struct belay_gc_report r = collect(w, &at_once);
        if (!TAP_OK(w->t, r.outcome <= BELAY_GC_INCOMPLETE))
            printf("# %s\n", r.message);
        deleted += r.deleted_blobs;
        fake_advance_us(&w->clock, 1000);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        if (!TAP_EQ(w->t, writers[i].failed, 0))
            printf("# %s: %s\n", writers[i].session, writers[i].w.err.message);
        arena_release(&writers[i].w.arena);
        loads(w, writers[i].session);
    }
    deleted += collect(w, &at_once).deleted_blobs;
    TAP_OK(w->t, deleted > 0);
    for (int i = 0; i < WRITERS; i++)
        loads(w, writers[i].session);
    /* A manifest and two or three parts each, of which some are shared. */
    TAP_OK(w->t, collect(w, &at_once).retained_blobs <= (int64_t)WRITERS * PARTS);
}

static void test_beside_writers(struct tap *t)
{
    work_everywhere(t, beside_writers);
}

/* --- bounds --- */

static void paging(struct work *w)
{
    struct belay_gc_report r;
    struct blob_info info;
    struct gc g;
    int pages = 0;

    for (int i = 0; i < 12; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "s%d", i);
        if (i % 4 == 0)
            WORK_RC(w, commit(w, id, id, NULL), BELAY_OK);
        work_blob(w, w->space, 5, (uint8_t)('a' + i), &info);
        if (i % 3 == 0)
            fake_advance_us(&w->clock, 1000);
    }
    WORK_RC(w, gc_open(&g, w->space, &at_once, 4, &r, &w->err), BELAY_OK);
    for (; !g.blobs.done && pages < 100; pages++) {
        WORK_RC(w, gc_collect(&g, &w->err), BELAY_OK);
        TAP_OK(w->t, g.n_candidates <= 4);
        WORK_RC(w, gc_trace(&g, &w->err), BELAY_OK);
        WORK_RC(w, gc_sweep(&g, &w->err), BELAY_OK);
    }
    gc_count(&g);
    gc_close(&g);
    TAP_OK(w->t, pages >= 6);
    TAP_EQ(w->t, r.deleted_blobs, 12);
    TAP_EQ(w->t, r.retained_blobs, 3 * PARTS);
    TAP_EQ(w->t, r.roots, 3);
    loads(w, "s0");
    loads(w, "s4");
    loads(w, "s8");
}

static void test_paging(struct tap *t)
{
    work_everywhere(t, paging);
}

static void dry_run(struct work *w)
{
    CLEANUP(buf_release) struct buf before = { 0 }, after = { 0 };
    struct belay_gc_options dry = { .grace_ms = BELAY_NONE, .dry_run = true };
    struct belay_gc_report r, real;
    struct blob_writer *unfinished = NULL;
    struct blob_info info;
    static uint8_t zeros[CHUNK_MAX];

    WORK_RC(w, commit(w, "s", "text", NULL), BELAY_OK);
    work_blob(w, w->space, 5, 'a', &info);
    work_blob(w, w->space, 2 * CHUNK_MAX + 7, 'b', &info);
    WORK_RC(w, blob_writer_open(&unfinished, w->space, false, NULL, &w->err), BELAY_OK);
    WORK_RC(w, blob_write(unfinished, bytes_of(zeros, sizeof(zeros)), &w->err),
            BELAY_OK);
    blob_writer_close(unfinished);
    before = work_dump(w, "default");
    r = collect(w, &dry);
    after = work_dump(w, "default");
    TAP_OK(w->t, bytes_eq(buf_view(&before), buf_view(&after)));
    TAP_EQ(w->t, r.outcome, BELAY_GC_SWEPT);
    TAP_EQ(w->t, r.deleted_blobs, 2);
    TAP_EQ(w->t, r.deleted_bytes, 2 * CHUNK_MAX + 12);
    TAP_EQ(w->t, r.retained_blobs, PARTS);
    TAP_EQ(w->t, r.steps, 0);
    real = collect(w, &at_once);
    TAP_EQ(w->t, real.deleted_blobs, r.deleted_blobs);
    TAP_EQ(w->t, real.deleted_bytes, r.deleted_bytes);
    TAP_EQ(w->t, real.retained_blobs, r.retained_blobs);
    TAP_EQ(w->t, real.deleted_uploads, 1);
    TAP_EQ(w->t, collect(w, &dry).outcome, BELAY_GC_NOTHING);
}

static void test_dry_run(struct tap *t)
{
    work_everywhere(t, dry_run);
}

/* A clock of which every look costs a millisecond. */
static int64_t ticking_us(void *arg)
{
    fake_advance_us(arg, 1000);
    return fake_mono_us(arg);
}

static void budget(struct work *w)
{
    struct belay_gc_options o = { .grace_ms = BELAY_NONE };
    struct blob_info info;
    struct belay_gc_report r = { .outcome = BELAY_GC_INCOMPLETE };
    int64_t deleted = 0, incomplete = 0;

    for (int i = 0; i < 100; i++)
        work_blob(w, w->space, (size_t)i + 1, 'b', &info);
    store_close(w->store);
    w->config.clock.mono_us = ticking_us;
    w->store = work_store(w);
    w->space = work_space(w, w->store, "default");
    for (o.budget_ms = 1; o.budget_ms < 200 && r.outcome == BELAY_GC_INCOMPLETE;
         o.budget_ms++) {
        r = collect(w, &o);
        deleted += r.deleted_blobs;
        incomplete += r.outcome == BELAY_GC_INCOMPLETE;
        if (r.outcome == BELAY_GC_INCOMPLETE)
            TAP_OK(w->t, r.code == BELAY_OK && r.message[0]);
    }
    TAP_OK(w->t, incomplete > 3);
    TAP_OK(w->t, r.outcome == BELAY_GC_SWEPT || r.outcome == BELAY_GC_NOTHING);
    TAP_EQ(w->t, deleted, 100);
}

static void test_budget(struct tap *t)
{
    work_everywhere(t, budget);
}

static void cancelled(struct work *w)
{
    struct belay_gc_options o = { .grace_ms = BELAY_NONE };
    struct blob_info info;

    work_blob(w, w->space, 5, 'b', &info);
    WORK_RC(w, belay_cancel_new(&o.cancel, &w->err), BELAY_OK);
    belay_cancel_trigger(o.cancel);
    struct belay_gc_report r = collect(w, &o);
    TAP_EQ(w->t, r.outcome, BELAY_GC_INCOMPLETE);
    TAP_EQ(w->t, r.deleted_blobs, 0);
    TAP_OK(w->t, blob_is_there(w, info.sha256));
    belay_cancel_free(o.cancel);
}

static void test_cancelled(struct tap *t)
{
    work_everywhere(t, cancelled);
}

static void uploads(struct work *w)
{
    struct blob_writer *begun = NULL;
    static uint8_t zeros[CHUNK_MAX];

    WORK_RC(w, blob_writer_open(&begun, w->space, false, NULL, &w->err), BELAY_OK);
    WORK_RC(w, blob_write(begun, bytes_of(zeros, sizeof(zeros)), &w->err), BELAY_OK);
    blob_writer_close(begun);
    fake_advance_us(&w->clock, (BELAY_GC_GRACE_MS - 1) * 1000);
    TAP_EQ(w->t, collect(w, NULL).outcome, BELAY_GC_NOTHING);
    fake_advance_us(&w->clock, 1000);
    struct belay_gc_report r = collect(w, NULL);
    TAP_EQ(w->t, r.outcome, BELAY_GC_SWEPT);
    TAP_EQ(w->t, r.deleted_uploads, 1);
    TAP_EQ(w->t, r.deleted_blobs, 0);
}

static void test_uploads(struct tap *t)
{
    work_everywhere(t, uploads);
}

static void large(struct work *w)
{
    CLEANUP(buf_release) struct buf dump = { 0 };
    struct blob_info info;

    work_blob(w, w->space, 18 * CHUNK_MAX + 1, 'l', &info);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.outcome, BELAY_GC_SWEPT);
    TAP_EQ(w->t, r.deleted_blobs, 1);
    TAP_EQ(w->t, r.deleted_bytes, 18 * CHUNK_MAX + 1);
    TAP_EQ(w->t, r.deleted_uploads, 0); /* what was left of it counts with it */
    dump = work_dump(w, "default");
    buf_append_char(&dump, '\0');
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "chunk "));
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "upl_"));
}

static void test_large(struct tap *t)
{
    work_everywhere(t, large);
}

/* More than a step takes, by number and by bytes. */
static void steps(struct work *w)
{
    struct blob_info info;

    for (int i = 0; i < 70; i++)
        work_blob(w, w->space, (size_t)i + 1, 'b', &info);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.deleted_blobs, 70);
    TAP_EQ(w->t, r.steps, 3);
    for (int i = 0; i < 6; i++)
        work_blob(w, w->space, 2 * CHUNK_MAX - (size_t)i, 'b', &info);
    TAP_EQ(w->t, collect(w, &at_once).steps, 2);
}

static void test_steps(struct tap *t)
{
    work_everywhere(t, steps);
}

/* --- a store that fails --- */

static belay_rc from_body(struct txn *t, void *arg)
{
    struct work *w = arg;
    struct belay_gc_report r;

    (void)t;
    return gc_run(w->space, &at_once, &r, &w->err);
}

static void test_failing(struct tap *t)
{
    static const struct {
        struct fault fault;
        int outcome;
        belay_rc code;
    } rows[] = {
        { { .op = FAULT_ON_READ, .kind = FAULT_BEFORE, .nth = 1 },
          BELAY_GC_FAILED,
          BELAY_UNAVAILABLE },
        { { .op = FAULT_ON_READ, .kind = FAULT_BEFORE, .nth = 3 },
          BELAY_GC_FAILED,
          BELAY_UNAVAILABLE },
        { { .op = FAULT_ON_COMMIT, .kind = FAULT_BEFORE, .nth = 1 },
          BELAY_GC_FAILED,
          BELAY_UNAVAILABLE },
        { { .op = FAULT_ON_COMMIT, .kind = FAULT_CONFLICT, .nth = 1 },
          BELAY_GC_SWEPT,
          BELAY_OK },
        { { .op = FAULT_ON_COMMIT, .kind = FAULT_CONFLICT, .nth = 1, .sticky = true },
          BELAY_GC_INCOMPLETE,
          BELAY_OK },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct driver *faulty = NULL;
        struct blob_info orphan;
        struct work w;
        if (!work_open(&w, t, ON_MEMORY))
            return;
        WORK_RC(&w, fault_wrap(&faulty, w.driver, &w.config.clock, &w.err), BELAY_OK);
        w.driver = faulty;
        work_reopen(&w);
        WORK_RC(&w, commit(&w, "s", "text", NULL), BELAY_OK);
        work_blob(&w, w.space, 5, 'o', &orphan);
        WORK_RC(&w, fault_arm(faulty, &rows[i].fault, &w.err), BELAY_OK);
        struct belay_gc_report r = collect(&w, &at_once);
        if (!TAP_EQ(t, r.outcome, rows[i].outcome) || !TAP_EQ(t, r.code, rows[i].code))
            printf("# in row %zu: %s\n", i, r.message);
        fault_clear(faulty);
        TAP_EQ(t, blob_is_there(&w, orphan.sha256), rows[i].outcome != BELAY_GC_SWEPT);
        loads(&w, "s");
        WORK_RC(&w, work_run(&w, w.space, from_body, &w), BELAY_MISUSE);
        work_close(&w);
    }
}

/* --- executions --- */

struct hurt_spec {
    const char *id;
};

static belay_rc hurt_spec_body(struct txn *t, void *arg)
{
    const struct hurt_spec *h = arg;
    const struct change change = { SPEC_PAYLOAD_BLOB, value_str("no sha256") };
    struct value key = value_str(h->id);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution_spec, &key, &row);

    return rc ? rc : txn_put(t, &row_execution_spec, &key, &change, 1);
}

/* The payload of one and the result of another are kept until they are purged. */
static void executions(struct work *w)
{
    static char payload[PAYLOAD_INLINE_MAX + 1], result[RESULT_INLINE_MAX + 1];
    struct lab l;

    memset(payload, 'p', sizeof(payload));
    memset(result, 'r', sizeof(result));
    if (!lab_open(&l, w))
        return;
    const char *long_one =
        submit(&l, (struct belay_submission){ .payload = payload,
                                              .payload_len = sizeof(payload),
                                              .retention_ms = 1000 });
    struct belay_work work = take(&l, "w1");
    struct belay_completion c = { .size = sizeof(c),
                                  .handle = &work.handle,
                                  .result = result,
                                  .result_len = sizeof(result) };
    TAP_EQ(w->t, work.payload_len, sizeof(payload));
    collects(w, BELAY_GC_NOTHING, 0);
    WORK_RC(w, exec_complete(&l.site, &c, 1, NULL, &w->arena, &l.ended, NULL, &w->err),
            BELAY_OK);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.deleted_blobs, 0);
    TAP_EQ(w->t, r.roots, 2);
    pass(&l, 1000);
    TAP_EQ(w->t, tick(&l).purged, 1);
    TAP_STR(w->t, state_of(&l, long_one), "");
    collects(w, BELAY_GC_SWEPT, 2);
    lab_close(&l);
}

static void test_executions(struct tap *t)
{
    work_everywhere(t, executions);
}

static void corrupt_execution(struct work *w)
{
    struct hurt_spec h;
    struct blob_info orphan;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    h.id = submit(&l, (struct belay_submission){ .priority = 0 });
    work_blob(w, w->space, 5, 'o', &orphan);
    WORK_RC(w, txn_run(w->space, hurt_spec_body, &h, NULL, &w->arena, &w->err),
            BELAY_OK);
    struct belay_gc_report r = collect(w, &at_once);
    TAP_EQ(w->t, r.outcome, BELAY_GC_REFUSED);
    TAP_OK(w->t, blob_is_there(w, orphan.sha256));
    lane_book_close(l.site.lanes);
}

static void test_corrupt_execution(struct tap *t)
{
    work_everywhere(t, corrupt_execution);
}

static const struct tap_case cases[] = {
    { "gc_keeps_live_committed_checkpoint_blobs", test_live_checkpoint },
    { "gc_unreachable_keeps_rooted_checkpoint_blobs", test_rooted },
    { "every session of many is a root", test_many_sessions },
    { "what only a manifest names is kept", test_named_by_manifest },
    { "a corrupt head: nothing is deleted, and it is said", test_corrupt_head },
    { "a corrupt manifest: nothing is deleted", test_corrupt_manifest },
    { "a missing manifest: nothing is deleted", test_missing_manifest },
    { "a truncated blob for a manifest: nothing is deleted", test_truncated },
    { "a manifest whose bytes do not match its name: nothing is deleted",
      test_other_bytes },
    { "corrupt frames: nothing is deleted", test_corrupt_frames },
    { "a corrupt pin: nothing is deleted", test_corrupt_pin },
    { "a part that is missing keeps nothing else", test_missing_part },
    { "a blob that is not listed as its row says is left alone", test_odd_blobs },
    { "the refs of frames are traced", test_traced_frames },
    { "a pin keeps its blob, and moves with its name", test_pinned },
    { "pins are listed in pages, oldest first", test_pin_pages },
    { "the grace keeps a blob that was put ahead of its commit", test_grace },
    { "a dedup answer begins the grace anew", test_dedup },
    { "options out of their bounds are refused", test_options },
    { "a blob named between trace and sweep is spared", test_spared },
    { "two collections at once take each blob once", test_twice },
    { "whatever comes between two calls of a collection, nothing named is lost",
      test_meddled },
    { "threads: writers beside a collection lose nothing", test_beside_writers },
    { "more candidates than a page holds", test_paging },
    { "a dry run changes nothing and tells the same", test_dry_run },
    { "a budget ends it, and the next one goes on", test_budget },
    { "a cancel ends it", test_cancelled },
    { "uploads that nobody finished go after the grace", test_uploads },
    { "a blob of many chunks goes whole", test_large },
    { "a sweep goes in small steps", test_steps },
    { "a store that fails is an outcome, and misuse is an error", test_failing },
    { "payloads and results of executions are kept until they are purged",
      test_executions },
    { "a corrupt execution: nothing is deleted", test_corrupt_execution },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
