/* The seed's cases of storage_fixes and store_gc, by their names (5.1).
 *
 * The seed keeps a file per session; here sessions are keys of one store.  Its cases of
 * file names, sidecars and factories prove the same of ids. */
#include "nouns.h"

static void cas_across_two_connections(struct world *w)
{
    w->use = w->a;
    RC(w, say(w, "s", 0, "a1", NULL), BELAY_OK);
    w->use = w->b;
    RC(w, say(w, "s", 0, "b1", NULL), BELAY_HEAD_REVISION_CONFLICT);
    EQ(w, w->err.expected, 0);
    EQ(w, w->err.actual, 1);
    EQ(w, revision(w, "s"), 1);
    STR(w, nodes(w, "s"), "a1");
}

/* Commits a checkpoint with three parts. */
static void keep_three(struct world *w, const char *id)
{
    struct belay_checkpoint cp = {
        .tool_state = { .body = "tool", .len = 4 },
        .plugin_snapshot = { .body = "plugin", .len = 6 },
        .plugin_snapshot_revision = BELAY_NONE,
        .execution_state = { .body = "execution", .len = 9 },
    };

    RC(w, commit(w, id, (struct belay_commit){ .checkpoint = &cp }), BELAY_OK);
}

static void gc_keeps_live_blobs(struct world *w)
{
    struct belay_checkpoint_info info = { 0 };

    keep_three(w, "s");
    const char *orphan = blob(w, "orphan-blob");
    STR(w, orphan, "b583d80c8c759a700ef320d324671438cd94fac62502795b11069d7dc9369ac2");
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_SWEPT);
    EQ(w, w->gc.deleted_blobs, 1);
    EQ(w, w->gc.retained_blobs, 4);
    w->use = w->b;
    OK(w, !has_blob(w, orphan));
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_OK);
    STR(w, content(w, info.ref), info.manifest);
    STR(w, content(w, info.tool_state_ref), "tool");
    STR(w, content(w, info.plugin_snapshot_ref), "plugin");
    STR(w, content(w, info.execution_state_ref), "execution");
}

static void gc_deletes_exactly_one(struct world *w)
{
    keep_three(w, "s");
    keep_three(w, "t"); /* the same blobs, once */
    (void)blob(w, "orphan");
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_SWEPT);
    EQ(w, w->gc.deleted_blobs, 1);
    EQ(w, w->gc.deleted_bytes, 6);
    EQ(w, w->gc.retained_blobs, 4);
    collect(w);
    EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
    EQ(w, w->gc.deleted_blobs, 0);
    EQ(w, w->gc.code, BELAY_OK);
    STR(w, w->gc.reason, "");
}

/* Collecting is no part of a commit here; it runs beside commits, in any thread. */
static void commit_and_collect(struct world *w, unsigned i, void *arg)
{
    (void)arg;
    if (i == 0) {
        for (int n = 0; n < 20; n++)
            RC(w, say(w, "s", n + 1, text(w, "n%d", n), NULL), BELAY_OK);
        return;
    }
    for (int n = 0; n < 5; n++) {
        collect(w);
        OK(w, w->gc.outcome == BELAY_GC_SWEPT || w->gc.outcome == BELAY_GC_NOTHING);
    }
}

static void gc_beside_commits(struct world *w)
{
    const char *orphan = blob(w, "orphan");

    keep_three(w, "s");
    world_crowd(w, 2, commit_and_collect, NULL);
    OK(w, !has_blob(w, orphan));
    EQ(w, revision(w, "s"), 21);
    OK(w, has_blob(w, w->head.checkpoint_ref));
}

static void second_claim_is_not_won(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *first = ask(w, (struct ask){ .owner = "x" });
    w->use = w->b;
    OK(w, !ask(w, (struct ask){ .owner = "y" }));
    EQ(w, w->claimed.why, BELAY_NO_HEAD_HELD);
    if (OK(w, first != NULL)) {
        EQ(w, w->claimed.next_at_ms, first->expires_at_ms);
        OK(w, renewed(w, first, 2 * MINUTE) > first->expires_at_ms);
    }
}

struct claims {
    const struct belay_claim *got[8];
    char proof[8][512];
};

static void claim_one(struct world *w, unsigned i, void *arg)
{
    struct claims *all = arg;
    const struct belay_claim *c = ask(w, (struct ask){ .owner = text(w, "o%u", i) });
    const char *proof = NULL;

    all->got[i] = c;
    if (c && RC(w, belay_claim_text(c, w->arena, &proof, &w->err), BELAY_OK))
        (void)snprintf(all->proof[i], sizeof(all->proof[i]), "%s", proof);
}

static void never_double_own(struct world *w)
{
    for (int round = 0; round < 10; round++) {
        struct claims all = { 0 };
        const struct belay_claim *winner = NULL;
        unsigned winners = 0;

        post_many(w, "s", 1);
        world_crowd(w, 8, claim_one, &all);
        for (unsigned i = 0; i < 8; i++) {
            if (!all.got[i])
                continue;
            winners++;
            RC(w, belay_claim_parse(all.proof[i], w->arena, &winner, &w->err),
               BELAY_OK);
        }
        EQ(w, winners, 1);
        if (winner)
            RC(w, renew(w, winner, MINUTE), BELAY_OK);
    }
}

static void open_one(struct world *w, unsigned i, void *arg)
{
    struct world *host = arg;
    struct belay_options options = { .size = sizeof(options) };
    struct belay *b = NULL;

    if (!RC(w, belay_open(host->url, &options, &b, &w->err), BELAY_OK))
        return;
    w->use = b;
    post_many(w, text(w, "s%u", i), 1);
    STR(w, listed(w, text(w, "s%u", i)), "1");
    belay_close(b);
}

/* In directories of their own, so that the store is really new. */
static void concurrent_first_open(struct world *w)
{
    for (int round = 0; round < 4; round++) {
        char dir[160];
        struct world fresh = *w;

        if (!OK(w, directory_make(dir, sizeof(dir))) ||
            !OK(w, w->store->url(dir, fresh.url, sizeof(fresh.url))))
            return;
        world_crowd(w, 16, open_one, &fresh);
        test_store_remove(w->store, dir);
    }
}

/* A call that fails, or is cancelled, leaves nothing behind that harms the next. */
static void failures_harm_nobody(struct world *w)
{
    struct belay_cancel *cancel = NULL;

    post_many(w, "s", 2);
    const struct belay_claim *c = take(w, 1);
    if (!c || !RC(w, belay_cancel_new(&cancel, &w->err), BELAY_OK))
        return;
    belay_cancel_trigger(cancel);
    for (int i = 0; i < 50; i++) {
        struct belay_claim wrong = *c;
        wrong.lease_token = "no";
        RC(w, finish(w, "s", 0, &wrong), BELAY_LEASE_LOST);
        RC(w, say(w, "s", 5, "n", NULL), BELAY_HEAD_REVISION_CONFLICT);
        WHY(w, say(w, "s", 0, "n", "missing"), BELAY_INVALID, "dangling_parent");
        RC(w, ask_try(w, (struct ask){ .session = "t", .wait = 5, .cancel = cancel }),
           BELAY_CANCELLED);
    }
    belay_cancel_free(cancel);
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    w->use = w->b;
    RC(w, say(w, "s", 1, "n", NULL), BELAY_OK);
    STR(w, seqs(w, take(w, 1)), "2");
}

static void session_ids_are_safe_keys(struct world *w)
{
    static const char *const ids[] = {
        "../weird/session",
        "///",
        "a b",
        "%2e%2e",
        "a:b",
        "\xc3\xa9",
        "A",
        "a",
        "'; DROP TABLE belay_session; --",
    };

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        RC(w, say(w, ids[i], 0, ids[i], NULL), BELAY_OK);
        post_many(w, ids[i], 1);
    }
    if (!world_reopen(w))
        return;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        EQ(w, revision(w, ids[i]), 1);
        STR(w, w->head.session_id, ids[i]);
        STR(w, nodes(w, ids[i]), ids[i]);
        STR(w, listed(w, ids[i]), "1");
    }
}

static void metadata_is_written_once(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta), .model = "first" };
    struct belay_session_meta other = { .size = sizeof(other), .model = "second" };
    struct belay_session_meta got = { .size = sizeof(got) };

    RC(w, belay_session_meta_save(session(w, "s"), &meta, true, &w->err), BELAY_OK);
    if (!world_reopen(w))
        return;
    RC(w, belay_session_meta_save(session(w, "s"), &other, true, &w->err), BELAY_OK);
    w->use = w->b;
    RC(w, belay_session_meta_load(session(w, "s"), w->arena, &got, &w->err), BELAY_OK);
    STR(w, got.model, "first");
    STR(w, got.name, "s");
}

static void metadata_is_seeded(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta) };
    struct belay_session_meta got = { .size = sizeof(got) };

    RC(w, belay_session_meta_save(session(w, "s"), &meta, true, &w->err), BELAY_OK);
    RC(w, belay_session_meta_load(session(w, "s"), w->arena, &got, &w->err), BELAY_OK);
    STR(w, got.name, "s");
    STR(w, got.model, "");
    OK(w, strncmp(got.created_at, "unix:", 5) == 0);
    EQ(w, strspn(got.created_at + 5, "0123456789"), strlen(got.created_at + 5));
    EQ(w, revision(w, "s"), 0); /* it needs no commit */
}

static void delete_is_idempotent(struct world *w)
{
    bool deleted = false;

    keep_three(w, "s");
    RC(w, say(w, "s", 1, "n", NULL), BELAY_OK);
    post_many(w, "s", 3);
    (void)take(w, 1);
    RC(w, belay_session_delete(session(w, "s"), &deleted, &w->err), BELAY_OK);
    OK(w, deleted);
    w->use = w->b;
    RC(w, belay_session_delete(session(w, "s"), &deleted, &w->err), BELAY_OK);
    OK(w, !deleted);
    WHY(w, belay_session_head(session(w, "s"), w->arena, &w->head, &w->err),
        BELAY_NOT_FOUND, "deleted");
    collect(w);
    EQ(w, w->gc.retained_blobs, 0); /* what it had goes with it */
    RC(w, belay_session_delete(session(w, "never"), &deleted, &w->err), BELAY_OK);
    OK(w, !deleted);
}

static const struct noun_case cases[] = {
    { "head_revision_cas_holds_across_two_connections", cas_across_two_connections, 0 },
    { "gc_keeps_live_committed_checkpoint_blobs", gc_keeps_live_blobs, 0 },
    { "gc_unreachable_keeps_rooted_checkpoint_blobs", gc_deletes_exactly_one, 0 },
    { "auto_gc_runs_after_commit_without_reentrant_locking", gc_beside_commits, 0 },
    { "second_claim_on_held_batch_is_not_won", second_claim_is_not_won, 0 },
    { "threads: concurrent_claims_never_double_own_a_batch", never_double_own, 0 },
    { "threads: concurrent_first_open_never_observes_version_zero_schema",
      concurrent_first_open, CASE_REAL_TIME },
    { "poisoned_connection_recovers", failures_harm_nobody, 0 },
    { "sqlite_factory_uses_deterministic_safe_session_paths", session_ids_are_safe_keys,
      0 },
    { "sqlite_factory_creates_metadata_once_and_preserves_on_reopen",
      metadata_is_written_once, 0 },
    { "sqlite_factory_is_explicitly_usable_as_session_store_factory",
      metadata_is_seeded, 0 },
    { "sqlite_factory_delete_session_removes_database_and_sidecars_idempotently",
      delete_is_idempotent, 0 },
};

const struct topic topic_spec_storage = { cases, COUNT_OF(cases) };
