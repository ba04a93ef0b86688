/* The doors of inboxes, sessions and blobs in C: what they refuse before anything is
 * touched, and a life that goes through all of them. */
#include <belay/belay.h>

#include "base/attr.h"
#include "base/hash.h"
#include "fakes.h"
#include "tap.h"

struct fixture {
    struct fake_clock clock;
    struct belay *b;
    struct belay_arena *arena;
    struct belay_session *s;
    struct belay_error err;
};

static bool open_fixture(struct tap *t, struct fixture *f)
{
    struct belay_clock hook = fake_clock_hook(&f->clock);
    struct belay_options options = { .size = sizeof(options), .clock = &hook };

    atomic_store(&f->clock.wall_ms, 1000000);
    return TAP_EQ(t, belay_open("memory:", &options, &f->b, &f->err), BELAY_OK) &&
           TAP_EQ(t, belay_arena_new(&f->arena, &f->err), BELAY_OK) &&
           TAP_EQ(t, belay_session_open(f->b, "s", NULL, &f->s, &f->err), BELAY_OK);
}

static void close_fixture(struct fixture *f)
{
    belay_session_close(f->s);
    belay_arena_free(f->arena);
    belay_close(f->b);
}

static const char *const one_payload[] = { "{\"n\":1}" };

static struct belay_draft a_draft(void)
{
    return (struct belay_draft){ .size = sizeof(struct belay_draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_EXCLUSIVE,
                                 .session_id = "s",
                                 .payloads = one_payload,
                                 .n_payloads = 1 };
}

static struct belay_claim_request a_request(void)
{
    return (struct belay_claim_request){ .size = sizeof(struct belay_claim_request),
                                         .session_id = "s",
                                         .owner_id = "o",
                                         .lease_ms = 1000,
                                         .max = 1 };
}

/* --- misuse --- */

static void queue_takes_no_null(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct belay_draft draft = a_draft();
    struct belay_claim_request request = a_request();
    struct belay_enqueued enqueued;
    struct belay_claimed claimed;
    struct belay_batches batches;
    const struct belay_batch *batch;
    const struct belay_claim *claim;
    struct belay_claim none = { 0 };
    const char *text;
    struct belay_error *e = &f.err;

    if (!open_fixture(t, &f))
        return;
    TAP_EQ(t, belay_queue_enqueue(NULL, &draft, f.arena, &enqueued, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_enqueue(f.b, NULL, f.arena, &enqueued, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_enqueue(f.b, &draft, NULL, &enqueued, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_enqueue(f.b, &draft, f.arena, NULL, e), BELAY_MISUSE);
    TAP_STR(t, f.err.message,
            "belay_queue_enqueue: a pointer that must be there is NULL");
    TAP_EQ(t, belay_queue_claim(f.b, NULL, f.arena, &claimed, NULL), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_claim(f.b, &request, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_renew(f.b, NULL, 1, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_renew(f.b, &none, 1, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_abandon(f.b, &none, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_cancel(f.b, "s", NULL, f.arena, &batch, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_drop(f.b, "s", NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_queue_list(f.b, NULL, NULL, f.arena, &batches, e), BELAY_MISUSE);
    TAP_EQ(t, belay_claim_text(&none, f.arena, &text, e), BELAY_MISUSE);
    TAP_EQ(t, belay_claim_parse(NULL, f.arena, &claim, e), BELAY_MISUSE);

    draft.session_id = NULL;
    TAP_EQ(t, belay_queue_enqueue(f.b, &draft, f.arena, &enqueued, e), BELAY_MISUSE);
    draft = a_draft();
    draft.payloads = NULL;
    TAP_EQ(t, belay_queue_enqueue(f.b, &draft, f.arena, &enqueued, e), BELAY_MISUSE);
    TAP_STR(t, f.err.message, "payloads: 1 of 1 is NULL");
    request.owner_id = NULL;
    TAP_EQ(t, belay_queue_claim(f.b, &request, f.arena, &claimed, e), BELAY_MISUSE);
    request = a_request();
    request.n_batch_ids = 1;
    TAP_EQ(t, belay_queue_claim(f.b, &request, f.arena, &claimed, e), BELAY_MISUSE);
}

static void session_takes_no_null(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct belay_session *s = (struct belay_session *)16;
    struct belay_commit commit = { .size = sizeof(commit) };
    struct belay_committed done;
    struct belay_error *e = &f.err;
    const char *no_node[] = { NULL };
    const struct belay_claim *no_claim[] = { NULL };
    struct belay_usage no_model = { .source = "x" };

    if (!open_fixture(t, &f))
        return;
    TAP_EQ(t, belay_session_open(NULL, "s", NULL, &s, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_open(f.b, NULL, NULL, &s, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_open(f.b, "s", NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_open(f.b, "", NULL, &s, e), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "session_id");
    struct belay_session_options options = { .size = sizeof(options), .profile = 4 };
    TAP_EQ(t, belay_session_open(f.b, "s", &options, &s, e), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "profile");
    TAP_OK(t, s == (struct belay_session *)16);
    belay_session_close(NULL);

    TAP_EQ(t, belay_session_commit(f.s, NULL, f.arena, &done, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, NULL, e), BELAY_MISUSE);
    commit.nodes = no_node;
    commit.n_nodes = 1;
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, e), BELAY_MISUSE);
    commit = (struct belay_commit){ .size = sizeof(commit),
                                    .completes = no_claim,
                                    .n_completes = 1 };
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, e), BELAY_MISUSE);
    commit = (struct belay_commit){ .size = sizeof(commit), .n_completes = 1 };
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, e), BELAY_MISUSE);
    commit = (struct belay_commit){ .size = sizeof(commit),
                                    .usage = &no_model,
                                    .n_usage = 1 };
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, e), BELAY_MISUSE);
    commit = (struct belay_commit){ .size = sizeof(commit), .n_attachments = 1 };
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, e), BELAY_MISUSE);

    TAP_EQ(t, belay_session_head(f.s, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_nodes(NULL, 0, 0, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_path(f.s, NULL, NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_node(f.s, NULL, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_checkpoint(f.s, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_usage(f.s, f.arena, NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_log(f.s, 0, 0, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_list(f.b, NULL, NULL, 0, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_meta_save(f.s, NULL, false, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_meta_load(f.s, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_tombstone(f.s, NULL, 1, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_vacuum(NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_heal(NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_session_delete(NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_attachment_intent(f.s, "a", NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_attachment_commit(f.s, NULL, 1, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_attachment_uncommitted(f.s, 0, 0, f.arena, NULL, NULL, e),
           BELAY_MISUSE);
    TAP_EQ(t, belay_attachment_forget(f.s, NULL, NULL, e), BELAY_MISUSE);
}

static void blob_takes_no_null(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct belay_blob_writer *w = (struct belay_blob_writer *)16;
    struct belay_blob_reader *r = (struct belay_blob_reader *)16;
    struct belay_blob_options o = { .size = sizeof(o), .kind = 6 };
    struct belay_error *e = &f.err;

    if (!open_fixture(t, &f))
        return;
    TAP_EQ(t, belay_blob_open(NULL, NULL, &w, e), BELAY_MISUSE);
    TAP_EQ(t, belay_blob_open(f.b, NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_blob_open(f.b, &o, &w, e), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "kind");
    o = (struct belay_blob_options){ .size = sizeof(o), .profile = -1 };
    TAP_EQ(t, belay_blob_open(f.b, &o, &w, e), BELAY_INVALID);
    o = (struct belay_blob_options){ .size = sizeof(o), .reserved = 1 };
    TAP_EQ(t, belay_blob_open(f.b, &o, &w, e), BELAY_MISUSE);
    o = (struct belay_blob_options){ .size = sizeof(o), .expect = "abc" };
    TAP_EQ(t, belay_blob_open(f.b, &o, &w, e), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "sha256");
    o = (struct belay_blob_options){ .size = sizeof(o), .pin = "a\nb" };
    TAP_EQ(t, belay_blob_open(f.b, &o, &w, e), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "pin");
    TAP_EQ(t, belay_blob_read_open(f.b, NULL, &r, e), BELAY_MISUSE);
    TAP_EQ(t, belay_blob_read_open(f.b, "abc", &r, e), BELAY_NOT_FOUND);
    TAP_OK(t, w == (struct belay_blob_writer *)16);
    TAP_OK(t, r == (struct belay_blob_reader *)16);
    TAP_EQ(t, belay_blob_pin(f.b, NULL, "", e), BELAY_MISUSE);
    TAP_EQ(t, belay_blob_unpin(f.b, NULL, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_blob_pins(f.b, NULL, 0, f.arena, NULL, e), BELAY_MISUSE);
    TAP_EQ(t, belay_gc(f.b, NULL, NULL, e), BELAY_MISUSE);
    belay_blob_close(NULL);
    belay_blob_read_close(NULL);
}

/* --- versions --- */

/* A struct of a later version, which this library knows the beginning of. */
struct later_draft {
    struct belay_draft known;
    int64_t more[4];
};

static void sizes_are_checked(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct later_draft later = { .known = a_draft() };
    struct belay_enqueued got = { .replayed = true };

    if (!open_fixture(t, &f))
        return;
    later.known.size = 0;
    TAP_EQ(t, belay_queue_enqueue(f.b, &later.known, f.arena, &got, &f.err),
           BELAY_MISUSE);
    later.known.size = sizeof(later.known) - 8;
    TAP_EQ(t, belay_queue_enqueue(f.b, &later.known, f.arena, &got, &f.err),
           BELAY_MISUSE);
    TAP_OK(t, strstr(f.err.message, "belay_draft"));
    TAP_EQ(t, f.err.expected, sizeof(later.known));
    TAP_EQ(t, f.err.actual, sizeof(later.known) - 8);
    later.known.size = 5000;
    TAP_EQ(t, belay_queue_enqueue(f.b, &later.known, f.arena, &got, &f.err),
           BELAY_MISUSE);
    later.known.size = sizeof(later);
    later.more[3] = 1;
    TAP_EQ(t, belay_queue_enqueue(f.b, &later.known, f.arena, &got, &f.err),
           BELAY_MISUSE);
    TAP_OK(t, !got.batch && got.replayed);
    later.more[3] = 0;
    TAP_EQ(t, belay_queue_enqueue(f.b, &later.known, f.arena, &got, &f.err), BELAY_OK);
    TAP_EQ(t, got.batch->enqueue_seq, 1);

    struct belay_gc_report report = { .steps = 77 };
    struct belay_gc_options gc = { .size = 3 };
    TAP_EQ(t, belay_gc(f.b, &gc, &report, &f.err), BELAY_MISUSE);
    struct belay_session_meta meta = { .size = sizeof(meta), .reserved = 1 };
    TAP_EQ(t, belay_session_meta_save(f.s, &meta, false, &f.err), BELAY_MISUSE);
    TAP_EQ(t, report.steps, 77);
}

/* --- a life --- */

static const struct belay_claim *claim_one(struct tap *t, struct fixture *f)
{
    struct belay_claim_request request = a_request();
    struct belay_claimed claimed = { 0 };

    TAP_EQ(t, belay_queue_claim(f->b, &request, f->arena, &claimed, &f->err), BELAY_OK);
    TAP_STR(t, belay_no_claim_name(claimed.why), "claimed");
    return claimed.claim;
}

static void inbox_lives(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct belay_draft draft = a_draft();
    struct belay_enqueued enqueued;
    const struct belay_claim *again = NULL;
    const char *text = NULL;
    int64_t expires = 77;
    size_t released = 77;

    if (!open_fixture(t, &f))
        return;
    TAP_EQ(t, belay_queue_enqueue(f.b, &draft, f.arena, &enqueued, &f.err), BELAY_OK);
    const struct belay_claim *first = claim_one(t, &f);
    if (!TAP_OK(t, first))
        return;
    TAP_EQ(t, belay_claim_text(first, f.arena, &text, &f.err), BELAY_OK);
    TAP_EQ(t, belay_claim_parse(text, f.arena, &again, &f.err), BELAY_OK);
    TAP_EQ(t, belay_queue_renew(f.b, again, 5000, &expires, &f.err), BELAY_OK);
    TAP_EQ(t, expires, 1005000);

    fake_advance_us(&f.clock, (int64_t)5001 * 1000);
    const struct belay_claim *second = claim_one(t, &f);
    if (!TAP_OK(t, second))
        return;
    TAP_EQ(t, second->fence, 2);
    expires = 77;
    TAP_EQ(t, belay_queue_renew(f.b, first, 5000, &expires, &f.err), BELAY_LEASE_LOST);
    TAP_STR(t, f.err.reason, "superseded");
    TAP_EQ(t, expires, 77);
    TAP_EQ(t, belay_queue_abandon(f.b, first, &released, &f.err), BELAY_OK);
    TAP_EQ(t, released, 0);

    struct belay_commit commit = { .size = sizeof(commit),
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .completes = &first,
                                   .n_completes = 1 };
    struct belay_committed done = { .revision = 77 };
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, &f.err),
           BELAY_LEASE_LOST);
    TAP_EQ(t, done.revision, 77);
    commit.completes = &second;
    TAP_EQ(t, belay_session_commit(f.s, &commit, f.arena, &done, &f.err), BELAY_OK);
    TAP_EQ(t, done.revision, 1);

    struct belay_batches left;
    TAP_EQ(t, belay_queue_list(f.b, "s", NULL, f.arena, &left, &f.err), BELAY_OK);
    TAP_EQ(t, left.n, 0);
    TAP_EQ(t, belay_queue_drop(f.b, "s", "1", &f.err), BELAY_NOT_FOUND);
    const struct belay_batch *none = enqueued.batch;
    TAP_EQ(
        t,
        belay_queue_cancel(f.b, "s", enqueued.batch->batch_id, f.arena, &none, &f.err),
        BELAY_OK);
    TAP_OK(t, !none);
}

static const char *const two_nodes[] = {
    "{\"node_id\":\"a\",\"kind\":\"plugin\"}",
    "{\"node_id\":\"b\",\"parent_node_id\":\"a\",\"kind\":\"plugin\"}",
};

static void commit_two(struct tap *t, struct fixture *f)
{
    const struct belay_checkpoint checkpoint = {
        .tool_state = { .body = "tools", .len = 5 },
        .plugin_snapshot_revision = BELAY_NONE
    };
    const struct belay_usage usage = { .source = "turn",
                                       .model = "m",
                                       .input_tokens = 3 };
    const struct belay_commit commit = { .size = sizeof(commit),
                                         .graph = BELAY_GRAPH_APPEND,
                                         .turn_id = "t1",
                                         .nodes = two_nodes,
                                         .n_nodes = 2,
                                         .checkpoint = &checkpoint,
                                         .usage = &usage,
                                         .n_usage = 1 };
    struct belay_committed done;

    TAP_EQ(t, belay_session_commit(f->s, &commit, f->arena, &done, &f->err), BELAY_OK);
    TAP_EQ(t, done.revision, 1);
    TAP_EQ(t, done.n_node_ids, 2);
    TAP_EQ(t, belay_session_commit(f->s, &commit, f->arena, &done, &f->err), BELAY_OK);
    TAP_OK(t, done.replayed);
}

static void reads_all(struct tap *t, struct fixture *f)
{
    struct belay_head head;
    struct belay_nodes nodes;
    struct belay_node node;
    struct belay_checkpoint_info info;
    const struct belay_usage *usage;
    struct belay_commit_log log;
    struct belay_sessions list;
    size_t n = 0;

    TAP_EQ(t, belay_session_head(f->s, f->arena, &head, &f->err), BELAY_OK);
    TAP_STR(t, head.leaf, "b");
    TAP_EQ(t, belay_session_nodes(f->s, 0, 0, f->arena, &nodes, &f->err), BELAY_OK);
    TAP_EQ(t, nodes.n, 2);
    TAP_EQ(t, belay_session_path(f->s, "a", f->arena, &nodes, &f->err), BELAY_OK);
    TAP_EQ(t, nodes.n, 1);
    TAP_EQ(t, belay_session_node(f->s, "b", f->arena, &node, &f->err), BELAY_OK);
    TAP_STR(t, node.parent_node_id, "a");
    TAP_EQ(t, belay_session_node(f->s, "c", f->arena, &node, &f->err), BELAY_NOT_FOUND);
    TAP_STR(t, node.node_id, "b");
    TAP_EQ(t, belay_session_checkpoint(f->s, f->arena, &info, &f->err), BELAY_OK);
    TAP_OK(t, info.tool_state_ref && !info.execution_state_ref);
    TAP_EQ(t, belay_session_usage(f->s, f->arena, &usage, &n, &f->err), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_EQ(t, belay_session_log(f->s, 0, 0, f->arena, &log, &f->err), BELAY_OK);
    TAP_EQ(t, log.n, 1);
    TAP_STR(t, log.entries[0].turn_id, "t1");
    TAP_EQ(t, belay_session_list(f->b, NULL, NULL, 0, f->arena, &list, &f->err),
           BELAY_OK);
    TAP_EQ(t, list.n, 1);
}

static void session_lives(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    static const char *const hidden[] = { "b", "unknown" };
    bool changed = false, deleted = false;
    size_t n = 0;

    if (!open_fixture(t, &f))
        return;
    TAP_STR(t, belay_session_id(f.s), "s");
    commit_two(t, &f);
    reads_all(t, &f);
    TAP_EQ(t, belay_session_tombstone(f.s, hidden, 2, &n, &f.err), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_EQ(t, belay_session_vacuum(f.s, &n, &f.err), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_EQ(t, belay_session_heal(f.s, &changed, &f.err), BELAY_OK);
    TAP_OK(t, changed);
    TAP_EQ(t, belay_session_delete(f.s, &deleted, &f.err), BELAY_OK);
    TAP_OK(t, deleted);

    struct belay_head head = { .revision = 77 };
    TAP_EQ(t, belay_session_head(f.s, f.arena, &head, &f.err), BELAY_NOT_FOUND);
    TAP_STR(t, f.err.reason, "deleted");
    TAP_EQ(t, head.revision, 77);
}

static void meta_and_attachments_live(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct belay_session_meta meta = { .size = sizeof(meta), .model = "m" }, got;
    const struct belay_attachment *left = NULL;
    static const char *const ids[] = { "x", "nobody's" };
    bool is_new = false, removed = false;
    size_t n = 0;

    if (!open_fixture(t, &f))
        return;
    TAP_EQ(t, belay_session_meta_load(f.s, f.arena, &got, &f.err), BELAY_NOT_FOUND);
    TAP_EQ(t, belay_session_meta_save(f.s, &meta, false, &f.err), BELAY_OK);
    TAP_EQ(t, belay_session_meta_load(f.s, f.arena, &got, &f.err), BELAY_OK);
    TAP_EQ(t, got.size, sizeof(got));
    TAP_STR(t, got.name, "s");
    TAP_STR(t, got.model, "m");

    TAP_EQ(t, belay_attachment_intent(f.s, "x", "file:x", &is_new, &f.err), BELAY_OK);
    TAP_OK(t, is_new);
    TAP_EQ(t, belay_attachment_intent(f.s, "y", "file:y", NULL, &f.err), BELAY_OK);
    TAP_EQ(t, belay_attachment_commit(f.s, ids, 2, &n, &f.err), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_EQ(t,
           belay_attachment_uncommitted(f.s, INT64_MAX, 0, f.arena, &left, &n, &f.err),
           BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_STR(t, left[0].attachment_id, "y");
    TAP_EQ(t, belay_attachment_forget(f.s, "y", &removed, &f.err), BELAY_OK);
    TAP_OK(t, removed);
}

/* --- blobs --- */

/* Puts `size` times the letter a, in pieces. */
static belay_rc put(struct fixture *f, const struct belay_blob_options *o, size_t size,
                    size_t piece, struct belay_blob_info *info)
{
    struct belay_blob_writer *w = NULL;
    char bytes[8192];
    belay_rc rc = belay_blob_open(f->b, o, &w, &f->err);

    memset(bytes, 'a', sizeof(bytes));
    while (rc == BELAY_OK && size > 0) {
        size_t n = size < piece ? size : piece;
        rc = belay_blob_write(w, bytes, n, &f->err);
        size -= n;
    }
    if (rc == BELAY_OK)
        rc = belay_blob_finish(w, info, &f->err);
    belay_blob_close(w);
    return rc;
}

static void compresses_from_a_size_on(struct tap *t)
{
    /* clang-format off */
    static const struct { int32_t kind, profile; size_t size, piece; bool smaller; } rows[] = {
        { BELAY_BLOB_GENERIC, BELAY_COMPACT, 8000, 8000, false },
        { BELAY_BLOB_TOOL_STATE, BELAY_COMPACT, 1023, 1, false },
        { BELAY_BLOB_TOOL_STATE, BELAY_COMPACT, 1024, 1, true },
        { BELAY_BLOB_TOOL_STATE, BELAY_BALANCED, 4095, 100, false },
        { BELAY_BLOB_TOOL_STATE, BELAY_BALANCED, 4096, 100, true },
        { BELAY_BLOB_MODULE, BELAY_BALANCED, 4097, 4097, true },
        { BELAY_BLOB_MODULE, BELAY_BALANCED, 20000, 7, true },
        { BELAY_BLOB_MODULE, BELAY_LOW_LATENCY, 20001, 8192, false },
        { BELAY_BLOB_MODULE, BELAY_PROFILE_DEFAULT, 20002, 8192, false }, /* in memory */
        { BELAY_BLOB_MODULE, BELAY_BALANCED, 0, 1, false },
    };
    /* clang-format on */
    struct fixture f CLEANUP(close_fixture) = { 0 };

    if (!open_fixture(t, &f))
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_blob_options o = { .size = sizeof(o),
                                        .kind = rows[i].kind,
                                        .profile = rows[i].profile };
        struct belay_blob_info info = { .size = -1 };

        bool good =
            TAP_EQ(t, put(&f, &o, rows[i].size, rows[i].piece, &info), BELAY_OK);
        good &= TAP_EQ(t, info.size, rows[i].size);
        good &= TAP_EQ(t, info.stored_size < info.size, rows[i].smaller);
        good &= TAP_OK(t, !info.existed);
        if (!good)
            printf("# in row %zu\n", i);
    }
}

static void blobs_live(struct tap *t)
{
    struct fixture f CLEANUP(close_fixture) = { 0 };
    struct belay_blob_options o = { .size = sizeof(o), .pin = "kept" };
    struct belay_blob_info info = { 0 }, again = { .size = -1 };
    struct belay_blob_reader *r = NULL;
    struct belay_pins pins;
    struct belay_gc_options gc = { .size = sizeof(gc), .grace_ms = BELAY_NONE };
    struct belay_gc_report report;
    const void *data = NULL;
    bool removed = false;
    size_t len = 0;

    if (!open_fixture(t, &f))
        return;
    TAP_EQ(t, put(&f, &o, 10, 3, &info), BELAY_OK);
    o = (struct belay_blob_options){ .size = sizeof(o), .expect = info.sha256 };
    TAP_EQ(t, put(&f, &o, 11, 3, &again), BELAY_INVALID);
    TAP_STR(t, f.err.reason, "hash_mismatch");
    TAP_EQ(t, again.size, -1);
    TAP_EQ(t, put(&f, &o, 10, 10, &again), BELAY_OK);
    TAP_OK(t, again.existed);
    TAP_STR(t, again.sha256, info.sha256);

    TAP_EQ(t, belay_blob_read_open(f.b, info.sha256, &r, &f.err), BELAY_OK);
    TAP_EQ(t, belay_blob_read_size(r), 10);
    TAP_EQ(t, belay_blob_read(r, &data, &len, &f.err), BELAY_OK);
    TAP_OK(t, len == 10 && memcmp(data, "aaaaaaaaaa", 10) == 0);
    TAP_EQ(t, belay_blob_read(r, &data, &len, &f.err), BELAY_OK);
    TAP_EQ(t, len, 0);
    belay_blob_read_close(r);

    TAP_EQ(t, belay_blob_pins(f.b, NULL, 0, f.arena, &pins, &f.err), BELAY_OK);
    TAP_EQ(t, pins.n, 1);
    TAP_STR(t, pins.pins[0].name, "kept");
    fake_advance_us(&f.clock, 1000);
    TAP_EQ(t, belay_gc(f.b, &gc, &report, &f.err), BELAY_OK);
    TAP_EQ(t, report.deleted_blobs, 0);
    TAP_EQ(t, belay_blob_unpin(f.b, "kept", &removed, &f.err), BELAY_OK);
    TAP_OK(t, removed);
    TAP_EQ(t, belay_gc(f.b, &gc, &report, &f.err), BELAY_OK);
    TAP_STR(t, belay_gc_outcome_name(report.outcome), "swept");
    TAP_EQ(t, report.deleted_blobs, 1);
    TAP_EQ(t, belay_blob_pin(f.b, "kept", info.sha256, &f.err), BELAY_NOT_FOUND);
}

static void names_are_total(struct tap *t)
{
    TAP_STR(t, belay_no_claim_name(BELAY_NO_OTHER_BATCHES), "other_batches");
    TAP_STR(t, belay_no_claim_name(7), "unknown");
    TAP_STR(t, belay_no_claim_name(-1), "unknown");
    TAP_STR(t, belay_gc_outcome_name(BELAY_GC_FAILED), "failed");
    TAP_STR(t, belay_gc_outcome_name(5), "unknown");
    TAP_STR(t, belay_gc_outcome_name(-1), "unknown");
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "inboxes: a NULL that must not be is misuse", queue_takes_no_null },
        { "sessions: a NULL that must not be is misuse", session_takes_no_null },
        { "blobs: a NULL that must not be is misuse", blob_takes_no_null },
        { "a struct of another version is understood or refused", sizes_are_checked },
        { "a batch is enqueued, claimed, taken over and completed", inbox_lives },
        { "a session is committed, read, cared for and deleted", session_lives },
        { "meta and attachments need no commit", meta_and_attachments_live },
        { "a blob is compressed from its profile's size on, whatever its pieces",
          compresses_from_a_size_on },
        { "a blob is put, expected, read, pinned and collected", blobs_live },
        { "every number has a name", names_are_total },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
