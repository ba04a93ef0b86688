/* The calls of test_session_boundaries, and the store that they start from. */
#include "session_lab.h"

/* --- what is done --- */

static belay_rc enqueue(struct lab *l, const char *session, const char *key)
{
    const char *payloads[] = { "{\"text\":\"hello\"}", "[1,2,3]" };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_EXCLUSIVE,
                                 .session_id = session,
                                 .source_key = key,
                                 .payloads = payloads,
                                 .n_payloads = COUNT_OF(payloads) };
    struct belay_enqueued out;

    belay_arena_reset(l->a);
    belay_rc rc = belay_queue_enqueue(l->b, &draft, l->a, &out, &l->err);
    if (!rc && key && strcmp(key, "second") == 0)
        (void)snprintf(l->batch_id, sizeof(l->batch_id), "%s", out.batch->batch_id);
    return rc;
}

static belay_rc run_enqueue(struct lab *l)
{
    return enqueue(l, "s", "new");
}

/* The batch behind the one that is held, and nothing when that was done. */
static belay_rc run_claim(struct lab *l)
{
    const char *ids[] = { l->batch_id };
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = "s",
                                           .owner_id = "second",
                                           .lease_ms = 3600000,
                                           .batch_ids = ids,
                                           .n_batch_ids = 1 };
    struct belay_claimed out;

    belay_arena_reset(l->a);
    return belay_queue_claim(l->b, &request, l->a, &out, &l->err);
}

static belay_rc run_renew(struct lab *l)
{
    const struct belay_claim *claim;
    int64_t expires;

    belay_arena_reset(l->a);
    belay_rc rc = belay_claim_parse(l->claim, l->a, &claim, &l->err);
    return rc ? rc : belay_queue_renew(l->b, claim, 7200000, &expires, &l->err);
}

struct body {
    char text[6000];
};

static struct body body_of(char c)
{
    struct body b;

    for (size_t i = 0; i < sizeof(b.text); i++)
        b.text[i] = (char)(c + (char)(i * i % 11));
    return b;
}

/* The n-th turn: a node, a checkpoint, usage; the third completes the claim. */
static belay_rc commit(struct lab *l, struct belay_session *s, int n)
{
    char turn[16], node[96];
    const char *nodes[] = { node };
    const struct belay_claim *claim = NULL;
    struct body tool = body_of((char)('a' + n));
    struct belay_checkpoint checkpoint = {
        .tool_state = { .body = tool.text, .len = sizeof(tool.text) },
        .plugin_snapshot = { .body = n < 3 ? "plugin" : NULL,
                             .len = n < 3 ? 6 : 0,
                             .ref = n < 3 ? NULL : l->ref },
        .plugin_snapshot_revision = BELAY_NONE,
    };
    struct belay_usage usage = { .source = "turn", .model = "m", .input_tokens = n };
    struct belay_committed out;
    belay_rc rc = BELAY_OK;

    (void)snprintf(turn, sizeof(turn), "t%d", n);
    (void)snprintf(node, sizeof(node), "{\"node_id\":\"n%d\",\"kind\":\"plugin\"%s}", n,
                   n == 1   ? ""
                   : n == 2 ? ",\"parent_node_id\":\"n1\""
                            : ",\"parent_node_id\":\"n2\"");
    belay_arena_reset(l->a);
    if (n == 3)
        rc = belay_claim_parse(l->claim, l->a, &claim, &l->err);
    struct belay_commit c = { .size = sizeof(c),
                              .graph = BELAY_GRAPH_APPEND,
                              .expected_revision = n - 1,
                              .turn_id = turn,
                              .nodes = nodes,
                              .n_nodes = 1,
                              .checkpoint = &checkpoint,
                              .usage = &usage,
                              .n_usage = 1,
                              .completes = &claim,
                              .n_completes = n == 3 };
    return rc ? rc : belay_session_commit(s, &c, l->a, &out, &l->err);
}

static belay_rc run_commit(struct lab *l)
{
    return commit(l, l->s, 3);
}

static belay_rc run_gc(struct lab *l)
{
    struct belay_gc_options options = { .size = sizeof(options),
                                        .grace_ms = BELAY_NONE };
    struct belay_gc_report report;
    belay_rc rc = belay_gc(l->b, &options, &report, &l->err);

    if (rc || report.outcome <= BELAY_GC_NOTHING)
        return rc;
    if (report.outcome != BELAY_GC_FAILED)
        lab_complain(l, "gc", belay_gc_outcome_name(report.outcome));
    l->err.code = report.code;
    (void)snprintf(l->err.message, sizeof(l->err.message), "%s", report.message);
    return (belay_rc)report.code;
}

static belay_rc run_delete(struct lab *l)
{
    bool deleted;

    return belay_session_delete(l->s, &deleted, &l->err);
}

/* --- the store that all of it starts from --- */

static belay_rc put(struct lab *l, const char *pin, char c)
{
    struct belay_blob_options options = { .size = sizeof(options), .pin = pin };
    struct body content = body_of(c);
    struct belay_blob_writer *w = NULL;
    struct belay_blob_info info;
    belay_rc rc = belay_blob_open(l->b, &options, &w, &l->err);

    if (!rc)
        rc = belay_blob_write(w, content.text, sizeof(content.text), &l->err);
    if (!rc)
        rc = belay_blob_finish(w, &info, &l->err);
    belay_blob_close(w);
    return rc;
}

/* The first of three batches is held. */
static belay_rc fill_inbox(struct lab *l)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = "s",
                                           .owner_id = "first",
                                           .lease_ms = 3600000,
                                           .max = 1 };
    struct belay_claimed out;
    const char *text = "";
    belay_rc rc = enqueue(l, "s", NULL);

    if (!rc)
        rc = belay_queue_claim(l->b, &request, l->a, &out, &l->err);
    if (!rc)
        rc = belay_claim_text(out.claim, l->a, &text, &l->err);
    (void)snprintf(l->claim, sizeof(l->claim), "%s", text);
    rc = rc ? rc : enqueue(l, "s", "second"); /* whose id is kept */
    rc = rc ? rc : enqueue(l, "other", "one");
    return rc ? rc : enqueue(l, "s", NULL);
}

belay_rc lab_fill(struct lab *l)
{
    struct belay_checkpoint_info info;
    struct belay_session *other = NULL;
    belay_rc rc = fill_inbox(l);

    rc = rc ? rc : commit(l, l->s, 1);
    rc = rc ? rc : commit(l, l->s, 2);
    rc = rc ? rc : put(l, "kept", 'K');
    rc = rc ? rc : put(l, NULL, 'G');
    rc = rc ? rc : belay_session_open(l->b, "other", NULL, &other, &l->err);
    rc = rc ? rc : commit(l, other, 1);
    belay_session_close(other);
    rc = rc ? rc : belay_session_checkpoint(l->s, l->a, &info, &l->err);
    if (!rc)
        (void)snprintf(l->ref, sizeof(l->ref), "%s", info.plugin_snapshot_ref);
    return rc ? rc : lab_fill_processes(l);
}

const struct op lab_ops[] = {
    [OP_ENQUEUE] = { "enqueue", run_enqueue, false },
    [OP_CLAIM] = { "claim", run_claim, false },
    [OP_RENEW] = { "renew", run_renew, false },
    [OP_COMMIT] = { "commit", run_commit, false },
    [OP_GC] = { "gc", run_gc, true },
    [OP_DELETE] = { "delete", run_delete, true },
    [OP_APPEND] = { "append", lab_run_append, false },
    [OP_SETTLE] = { "settle", lab_run_settle, false },
    [OP_FORGET] = { "forget", lab_run_forget, false },
    [OP_REMOVE] = { "remove", lab_run_remove, true },
};
