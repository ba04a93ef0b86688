/* S5 to S7 (docs/promises.md), pins, and what a collection answers. */
#include "nouns.h"

static void collect_with(struct world *w, struct belay_gc_options o)
{
    o.size = sizeof(o);
    RC(w, belay_gc(w->use, &o, &w->gc, &w->err), BELAY_OK);
}

static belay_rc frame(struct world *w, int64_t expected, const char *ref)
{
    return commit(w, "s",
                  (struct belay_commit){
                      .expected_revision = expected,
                      .agent_frames = ref ? text(w,
                                                 "[{\"a\":1},{\"execution_state_ref\":"
                                                 "\"%s\",\"x\":{}}]",
                                                 ref)
                                          : "[]" });
}

/* The seed does not trace frames. */
static void frames_are_roots(struct world *w)
{
    const char *ref = blob(w, "frame");

    RC(w, frame(w, 0, ref), BELAY_OK);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
    EQ(w, w->gc.retained_blobs, 1);
    STR(w, content(w, ref), "frame");
    RC(w, frame(w, 1, NULL), BELAY_OK);
    collect(w);
    EQ(w, w->gc.deleted_blobs, 1);
    OK(w, !has_blob(w, ref));
}

static void pins_are_roots(struct world *w)
{
    struct belay_blob_options o = { .size = sizeof(o), .pin = "at once" };
    bool removed = false;

    RC(w, blob_try(w, "one", 3, &o), BELAY_OK);
    const char *one = text(w, "%s", w->blob.sha256), *two = blob(w, "two");
    RC(w, belay_blob_pin(w->use, "named", two, &w->err), BELAY_OK);
    RC(w, belay_blob_pin(w->use, "named too", two, &w->err), BELAY_OK);
    RC(w, belay_blob_pin(w->use, "x", digest(w, "none"), &w->err), BELAY_NOT_FOUND);
    w->use = w->b;
    collect(w);
    EQ(w, w->gc.retained_blobs, 2);
    RC(w, belay_blob_pin(w->use, "at once", two, &w->err), BELAY_OK); /* it moves */
    collect(w);
    EQ(w, w->gc.deleted_blobs, 1);
    OK(w, !has_blob(w, one));
    RC(w, belay_blob_unpin(w->use, "named", &removed, &w->err), BELAY_OK);
    OK(w, removed);
    RC(w, belay_blob_unpin(w->use, "named", &removed, &w->err), BELAY_OK);
    OK(w, !removed);
    RC(w, belay_blob_unpin(w->use, "at once", NULL, &w->err), BELAY_OK);
    collect(w);
    OK(w, has_blob(w, two)); /* one name is left */
    RC(w, belay_blob_unpin(w->use, "named too", NULL, &w->err), BELAY_OK);
    collect(w);
    OK(w, !has_blob(w, two));
}

static void pins_are_listed(struct world *w)
{
    struct belay_pins out = { 0 };
    const char *all = "", *cursor = NULL, *ref = blob(w, "x");

    for (int i = 0; i < 5; i++) {
        RC(w, belay_blob_pin(w->use, text(w, "p%d", 4 - i), ref, &w->err), BELAY_OK);
        world_pass(w, 2);
    }
    do {
        RC(w, belay_blob_pins(w->use, cursor, 2, w->arena, &out, &w->err), BELAY_OK);
        for (size_t i = 0; i < out.n; i++) {
            all = text(w, "%s %s", all, out.pins[i].name);
            STR(w, out.pins[i].sha256, ref);
        }
        cursor = out.next_cursor;
    } while (cursor && strlen(all) < 100);
    STR(w, all, " p4 p3 p2 p1 p0"); /* oldest first */
}

/* Put outside a commit, named by the next one: within the grace that is safe. */
static void grace_keeps_what_is_new(struct world *w)
{
    struct belay_gc_options hour = { .grace_ms = 0 }, short_one = { .grace_ms = 50 };
    const char *ref = blob(w, "upload");

    collect_with(w, hour);
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
    EQ(w, w->gc.retained_blobs, 1);
    OK(w, has_blob(w, ref));
    collect_with(w, short_one);
    OK(w, has_blob(w, ref));
    world_pass(w, 100);
    collect_with(w, hour);
    OK(w, has_blob(w, ref));
    collect_with(w, short_one); /* S7 */
    EQ(w, w->gc.deleted_blobs, 1);
    OK(w, !has_blob(w, ref));
}

/* "It is there already" counts like putting it. */
static void answered_for_is_kept(struct world *w)
{
    struct belay_gc_options o = { .grace_ms = 50 };
    const char *ref = blob(w, "old"), *other = blob(w, "older");

    world_pass(w, 100);
    w->use = w->b;
    (void)blob(w, "old");
    OK(w, w->blob.existed);
    w->use = w->a;
    collect_with(w, o);
    OK(w, has_blob(w, ref));
    OK(w, !has_blob(w, other));
    world_pass(w, 100);
    collect_with(w, o);
    OK(w, !has_blob(w, ref));
}

/* Named by a commit, then let go: it has the grace from the naming on, and goes with the
 * first collection after it. */
static void unreachable_goes(struct world *w)
{
    struct belay_checkpoint one = { .tool_state = { .body = "one", .len = 3 },
                                    .plugin_snapshot_revision = BELAY_NONE };
    struct belay_checkpoint two = { .tool_state = { .body = "two", .len = 3 },
                                    .plugin_snapshot_revision = BELAY_NONE };

    RC(w, commit(w, "s", (struct belay_commit){ .checkpoint = &one }), BELAY_OK);
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 1, .checkpoint = &two }),
       BELAY_OK);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_SWEPT);
    EQ(w, w->gc.deleted_blobs, 2); /* the first manifest and its part */
    EQ(w, w->gc.retained_blobs, 2);
    OK(w, !has_blob(w, digest(w, "one")));
    STR(w, content(w, digest(w, "two")), "two");
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
    collect(w);
    EQ(w, w->gc.deleted_blobs, 2);
    EQ(w, w->gc.retained_blobs, 0);
}

static void dry_runs_delete_nothing(struct world *w)
{
    struct belay_gc_options dry = { .grace_ms = BELAY_NONE, .dry_run = true };

    (void)blob(w, "one");
    (void)blob(w, "three");
    for (int i = 0; i < 2; i++) {
        collect_with(w, dry);
        EQ(w, w->gc.deleted_blobs, 2);
        EQ(w, w->gc.deleted_bytes, 8);
    }
    OK(w, has_blob(w, digest(w, "one")));
    collect(w);
    EQ(w, w->gc.deleted_blobs, 2);
}

/* More than a step's worth, and a collection that is told to stop. */
static void many_and_cancelled(struct world *w)
{
    struct belay_cancel *cancel = NULL;

    for (int i = 0; i < 300; i++)
        (void)blob(w, text(w, "blob %d", i));
    if (!RC(w, belay_cancel_new(&cancel, &w->err), BELAY_OK))
        return;
    belay_cancel_trigger(cancel);
    collect_with(w,
                 (struct belay_gc_options){ .grace_ms = BELAY_NONE, .cancel = cancel });
    EQ(w, w->gc.outcome, BELAY_GC_INCOMPLETE);
    OK(w, w->gc.deleted_blobs < 300);
    int64_t gone = w->gc.deleted_blobs;
    belay_cancel_free(cancel);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_SWEPT);
    EQ(w, gone + w->gc.deleted_blobs, 300);
    OK(w, w->gc.steps >= 1);
    EQ(w, w->gc.spared_blobs, 0);
    RC(w, belay_gc(w->use, NULL, &w->gc, &w->err), BELAY_OK); /* the defaults */
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
}

static const struct noun_case cases[] = {
    { "S5: what a frame names is alive", frames_are_roots, 0 },
    { "S5: what a pin names is alive", pins_are_roots, 0 },
    { "pins are listed in pages, oldest first", pins_are_listed, 0 },
    { "S5, S7: a blob is kept for the grace after it was put, and no longer",
      grace_keeps_what_is_new, 0 },
    { "S6: a blob that was answered for is kept for the grace", answered_for_is_kept,
      0 },
    { "S7: what nothing names any more is removed", unreachable_goes, 0 },
    { "a dry run tells and removes nothing", dry_runs_delete_nothing, 0 },
    { "a collection that is cancelled is incomplete, and can be finished",
      many_and_cancelled, 0 },
};

const struct topic topic_garbage = { cases, COUNT_OF(cases) };
