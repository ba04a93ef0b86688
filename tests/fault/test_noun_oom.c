/* X6 for sessions, inboxes, blobs and processes: whatever allocation fails, a call answers
 * no_memory or succeeds, nothing is half done, nothing leaks (the address sanitizer
 * watches), and the next call works. */
#include <belay/process.h>
#include <belay/session.h>

#include <jansson.h>
#include <stdlib.h>

#include "api/handle.h"
#include "fakes.h"
#include "oom.h"
#include "store/dump.h"
#include "tap.h"

/* A store in memory with a session in the middle of its life. */
struct bench {
    struct fake_clock clock;
    struct fake_random random;
    struct belay *b;
    struct belay_session *s;
    struct belay_arena *a;   /* of the fixture: the claim is in it */
    struct belay_arena *own; /* of the call that is tried */
    const struct belay_claim *claim;
    const struct belay_process_lease *lease;
    char ref[BELAY_SHA256_HEX];
};

/* --- calls --- */

static belay_rc enqueue(struct bench *b, const char *key, struct belay_arena *a,
                        struct belay_error *err)
{
    const char *payloads[] = { "{\"b\":[1,2.5],\"a\":\"text\"}", "null" };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .merge = BELAY_MERGE_GROUP,
                                 .session_id = "s",
                                 .source_key = key,
                                 .merge_group = "group",
                                 .payloads = payloads,
                                 .n_payloads = COUNT_OF(payloads) };
    struct belay_enqueued out;

    return belay_queue_enqueue(b->b, &draft, a, &out, err);
}

static belay_rc claim(struct bench *b, size_t max, struct belay_arena *a,
                      struct belay_claimed *out, struct belay_error *err)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = "s",
                                           .owner_id = "worker",
                                           .lease_ms = 60000,
                                           .max = max };

    return belay_queue_claim(b->b, &request, a, out, err);
}

/* The n-th turn; the second completes the claim. */
static belay_rc commit(struct bench *b, int n, struct belay_arena *a,
                       struct belay_error *err)
{
    static const char *const nodes[][2] = {
        { "{\"node_id\":\"n1\",\"kind\":\"plugin\",\"body\":{\"x\":1}}",
          "{\"node_id\":\"n2\",\"parent_node_id\":\"n1\",\"kind\":\"plugin\"}" },
        { "{\"node_id\":\"n3\",\"parent_node_id\":\"n2\",\"kind\":\"event\","
          "\"timestamp\":\"now\",\"event\":{\"Conversation\":{\"id\":\"m\","
          "\"role\":\"user\",\"parts\":[{\"id\":\"p\",\"kind\":\"text\","
          "\"content\":\"hello\",\"prune_state\":\"intact\"}]}}}",
          "{\"node_id\":\"n4\",\"parent_node_id\":\"n3\",\"kind\":\"plugin\"}" },
    };
    static const char body[5000] = "some state";
    struct belay_checkpoint checkpoint = {
        .turn_state = "{\"turn\":[1,2,3]}",
        .tool_state = { .body = body, .len = sizeof(body) - (size_t)n },
        .plugin_snapshot = { .body = n == 1 ? "plugin" : NULL,
                             .len = n == 1 ? 6 : 0,
                             .ref = n == 1 ? NULL : b->ref },
        .plugin_snapshot_revision = BELAY_NONE,
    };
    struct belay_usage usage[] = {
        { .source = "turn", .model = "m", .input_tokens = 3 },
        { .id = n == 1 ? "u1" : "u2",
          .source = "tool",
          .model = "m",
          .output_tokens = 1 },
    };
    struct belay_commit c = { .size = sizeof(c),
                              .graph = BELAY_GRAPH_APPEND,
                              .expected_revision = n - 1,
                              .turn_id = n == 1 ? "t1" : "t2",
                              .config = "{\"model\":\"m\"}",
                              .agent_frames = "[{\"frame_id\":\"f\"}]",
                              .current_frame = "f",
                              .nodes = nodes[n - 1],
                              .n_nodes = 2,
                              .checkpoint = &checkpoint,
                              .usage = usage,
                              .n_usage = COUNT_OF(usage),
                              .completes = &b->claim,
                              .n_completes = n == 2 };
    struct belay_committed out;

    return belay_session_commit(b->s, &c, a, &out, err);
}

static belay_rc try_enqueue(struct bench *b, struct belay_error *err)
{
    return enqueue(b, "new", b->own, err);
}

static belay_rc try_claim(struct bench *b, struct belay_error *err)
{
    struct belay_claimed out;

    return claim(b, 4, b->own, &out, err);
}

static belay_rc try_claim_text(struct bench *b, struct belay_error *err)
{
    const struct belay_claim *back;
    const char *text;
    belay_rc rc = belay_claim_text(b->claim, b->own, &text, err);

    return rc ? rc : belay_claim_parse(text, b->own, &back, err);
}

static belay_rc try_renew(struct bench *b, struct belay_error *err)
{
    int64_t expires;

    return belay_queue_renew(b->b, b->claim, 120000, &expires, err);
}

static belay_rc try_abandon(struct bench *b, struct belay_error *err)
{
    return belay_queue_abandon(b->b, b->claim, NULL, err);
}

static belay_rc try_list(struct bench *b, struct belay_error *err)
{
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_batches out;

    return belay_queue_list(b->b, "s", &page, b->own, &out, err);
}

static belay_rc try_commit(struct bench *b, struct belay_error *err)
{
    return commit(b, 2, b->own, err);
}

/* What the first turn answered comes out of the log. */
static belay_rc try_replay(struct bench *b, struct belay_error *err)
{
    return commit(b, 1, b->own, err);
}

static belay_rc try_path(struct bench *b, struct belay_error *err)
{
    struct belay_nodes out;

    return belay_session_path(b->s, NULL, b->own, &out, err);
}

static belay_rc try_reading(struct bench *b, struct belay_error *err)
{
    struct belay_head head;
    struct belay_nodes nodes;
    struct belay_checkpoint_info info;
    struct belay_commit_log log;
    const struct belay_usage *usage;
    size_t n;
    belay_rc rc = belay_session_head(b->s, b->own, &head, err);

    rc = rc ? rc : belay_session_nodes(b->s, 0, 0, b->own, &nodes, err);
    rc = rc ? rc : belay_session_checkpoint(b->s, b->own, &info, err);
    rc = rc ? rc : belay_session_log(b->s, 0, 0, b->own, &log, err);
    return rc ? rc : belay_session_usage(b->s, b->own, &usage, &n, err);
}

static belay_rc try_gc(struct bench *b, struct belay_error *err)
{
    struct belay_gc_options options = { .size = sizeof(options),
                                        .grace_ms = BELAY_NONE };
    struct belay_gc_report report;
    belay_rc rc = belay_gc(b->b, &options, &report, err);

    if (rc || report.outcome <= BELAY_GC_NOTHING)
        return rc;
    (void)snprintf(err->message, sizeof(err->message), "%s: %.200s",
                   belay_gc_outcome_name(report.outcome), report.message);
    return (belay_rc)report.code;
}

static belay_rc try_pin(struct bench *b, struct belay_error *err)
{
    struct belay_pins pins;
    belay_rc rc = belay_blob_pin(b->b, "name", b->ref, err);

    rc = rc ? rc : belay_blob_pins(b->b, NULL, 0, b->own, &pins, err);
    return rc;
}

static belay_rc try_delete(struct bench *b, struct belay_error *err)
{
    return belay_session_delete(b->s, NULL, err);
}

/* --- processes --- */

static belay_rc enroll(struct bench *b, const char *id, struct belay_arena *a,
                       struct belay_error *err)
{
    static const char types[] =
        "[{\"name\":\"line\",\"payload_schema\":{\"schema\":{\"type\":\"object\","
        "\"properties\":{\"line\":{\"type\":\"string\"}}}}},{\"name\":\"wakes\","
        "\"semantics\":{\"wake\":{\"input\":{\"pointer\":\"/text\"}}}}]";
    struct belay_registration r = { .size = sizeof(r),
                                    .process_id = id,
                                    .input = "{\"type\":\"tool_call\",\"call\":[1]}",
                                    .event_types = types,
                                    .owner = { "s", "f" },
                                    .caused_by = "{\"by\":1}" };
    struct belay_registered out;

    return belay_process_register(b->b, &r, a, &out, err);
}

static belay_rc event(struct bench *b, const char *type, const char *payload,
                      const char *key, struct belay_error *err)
{
    struct belay_event_draft d = { .size = sizeof(d),
                                   .process_id = "p",
                                   .event_type = type,
                                   .payload = payload,
                                   .replay_key = key,
                                   .wake_target = { "s", "f" },
                                   .lease = b->lease };
    struct belay_appended out;

    return belay_process_append(b->b, &d, b->own, &out, err);
}

static belay_rc try_register(struct bench *b, struct belay_error *err)
{
    return enroll(b, "new", b->own, err);
}

static belay_rc try_append(struct bench *b, struct belay_error *err)
{
    return event(b, "wakes", "{\"text\":\"up\",\"b\":[1,2.5]}", "key", err);
}

static belay_rc try_lease(struct bench *b, struct belay_error *err)
{
    const struct belay_process_lease *lease, *back;
    const char *text;
    belay_rc rc =
        belay_process_lease(b->b, "q", "worker", 60000, NULL, b->own, &lease, err);

    rc = rc ? rc : belay_process_lease_text(lease, b->own, &text, err);
    return rc ? rc : belay_process_lease_parse(text, b->own, &back, err);
}

static belay_rc try_complete(struct bench *b, struct belay_error *err)
{
    struct belay_process_end end = { .size = sizeof(end),
                                     .process_id = "p",
                                     .await_output = "{\"type\":\"success\","
                                                     "\"value\":{\"n\":[1]}}",
                                     .lease = b->lease };
    struct belay_completed out;

    return belay_process_complete(b->b, &end, b->own, &out, err);
}

static belay_rc try_looking(struct bench *b, struct belay_error *err)
{
    struct belay_process_event_request r = { .size = sizeof(r), .process_id = "p" };
    struct belay_wake_page wakes = { .size = sizeof(wakes), .process_id = "p" };
    struct belay_grant_page grants = { .size = sizeof(grants), .scope = { "s", NULL } };
    struct belay_process_events events;
    struct belay_processes all;
    struct belay_wakes found;
    struct belay_process_grants granted;
    struct belay_process_changes changes;
    belay_rc rc = belay_process_events(b->b, &r, b->own, &events, err);

    rc = rc ? rc : belay_process_list(b->b, NULL, b->own, &all, err);
    rc = rc ? rc : belay_process_wakes(b->b, &wakes, b->own, &found, err);
    rc = rc ? rc : belay_process_grants(b->b, &grants, b->own, &granted, err);
    return rc ? rc : belay_process_changed_since(b->b, NULL, b->own, &changes, err);
}

static belay_rc try_forget(struct bench *b, struct belay_error *err)
{
    struct belay_forget_report out;

    return belay_process_forget_session(b->b, "s", true, "gone", b->own, &out, err);
}

static belay_rc try_ack(struct bench *b, struct belay_error *err)
{
    return belay_process_ack(b->b, "p", 1, NULL, err);
}

/* Gone is gone, by this call or one before. */
static belay_rc try_remove(struct bench *b, struct belay_error *err)
{
    belay_rc rc = belay_process_delete(b->b, "p", true, err);

    return rc == BELAY_NOT_FOUND ? BELAY_OK : rc;
}

static belay_rc fill_processes(struct bench *b, struct belay_error *err)
{
    static const struct belay_scope scope = { "s", NULL };
    belay_rc rc = enroll(b, "p", b->a, err);

    rc = rc ? rc : enroll(b, "q", b->a, err);
    rc = rc ? rc
            : belay_process_lease(b->b, "p", "worker", 60000, NULL, b->a, &b->lease,
                                  err);
    rc = rc ? rc : event(b, "wakes", "{\"text\":\"first\"}", NULL, err);
    rc = rc ? rc : event(b, "line", "{\"line\":\"two\"}", "two", err);
    rc = rc ? rc : belay_process_grant(b->b, &scope, "p", "kind", "label", err);
    return rc ? rc : belay_process_grant(b->b, &scope, "q", NULL, NULL, err);
}

/* --- the bench --- */

static belay_rc put_garbage(struct bench *b, struct belay_error *err)
{
    struct belay_blob_writer *w = NULL;
    struct belay_blob_info info;
    belay_rc rc = belay_blob_open(b->b, NULL, &w, err);

    rc = rc ? rc : belay_blob_write(w, "garbage", 7, err);
    rc = rc ? rc : belay_blob_finish(w, &info, err);
    belay_blob_close(w);
    return rc;
}

static belay_rc fill(struct bench *b, struct belay_error *err)
{
    struct belay_checkpoint_info info;
    struct belay_claimed claimed = { .claim = NULL };
    belay_rc rc = enqueue(b, "one", b->a, err);

    rc = rc ? rc : enqueue(b, NULL, b->a, err);
    rc = rc ? rc : claim(b, 2, b->a, &claimed, err);
    b->claim = claimed.claim;
    rc = rc ? rc : enqueue(b, NULL, b->a, err);
    rc = rc ? rc : enqueue(b, NULL, b->a, err);
    rc = rc ? rc : commit(b, 1, b->a, err);
    rc = rc ? rc : put_garbage(b, err);
    rc = rc ? rc : belay_session_checkpoint(b->s, b->a, &info, err);
    if (!rc)
        (void)snprintf(b->ref, sizeof(b->ref), "%s", info.plugin_snapshot_ref);
    return rc ? rc : fill_processes(b, err);
}

static bool prepare(struct tap *t, struct bench *b)
{
    struct belay_clock clock = fake_clock_hook(&b->clock);
    struct belay_random random = fake_random_hook(&b->random);
    struct belay_options options = { .size = sizeof(options),
                                     .clock = &clock,
                                     .random = &random };
    struct belay_error err = { .message = "" };

    atomic_store(&b->clock.wall_ms, 1750000000000);
    belay_rc rc = belay_open("memory:", &options, &b->b, &err);
    rc = rc ? rc : belay_arena_new(&b->a, &err);
    rc = rc ? rc : belay_arena_new(&b->own, &err);
    rc = rc ? rc : belay_session_open(b->b, "s", NULL, &b->s, &err);
    rc = rc ? rc : fill(b, &err);
    return TAP_EQ(t, rc, BELAY_OK) && TAP_STR(t, err.message, "");
}

static void bench_close(struct bench *b)
{
    belay_session_close(b->s);
    belay_arena_free(b->own);
    belay_arena_free(b->a);
    belay_close(b->b);
}

/* --- the loop --- */

struct trial {
    belay_rc (*op)(struct bench *b, struct belay_error *err);
    bool steps; /* in several transactions: it may stop between them */
};

static bool dump(struct bench *b, struct buf *out)
{
    buf_reset(out);
    return !dump_namespace(b->b->driver, bytes_str("default"), out, NULL) &&
           !out->failed;
}

/* The call with its n-th allocation failing; false when it was not hit. */
static bool fail_at(struct tap *t, const struct trial *trial, unsigned long n,
                    bool for_ever)
{
    CLEANUP(buf_release) struct buf before = { .ptr = NULL };
    CLEANUP(buf_release) struct buf after = { .ptr = NULL };
    struct belay_error err = { .code = 0 };
    struct bench b = { .b = NULL };
    bool hit = false;

    if (prepare(t, &b) && TAP_OK(t, dump(&b, &before))) {
        oom_arm(n, for_ever);
        belay_rc rc = trial->op(&b, &err);
        hit = oom_disarm();
        /* OpenSSL without memory is a digest that cannot be made. */
        if (!TAP_OK(t,
                    rc == BELAY_OK || rc == BELAY_NO_MEMORY || rc == BELAY_UNAVAILABLE))
            printf("# allocation %lu: %s: %s\n", n, belay_error_info((int)rc)->name,
                   err.message);
        TAP_OK(t, dump(&b, &after));
        if (rc && !trial->steps &&
            !TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after))))
            printf("# allocation %lu: %s, and yet something changed\n", n, err.message);
        if (rc && !TAP_EQ(t, trial->op(&b, &err), BELAY_OK))
            printf("# allocation %lu, again: %s\n", n, err.message);
    }
    bench_close(&b);
    return hit && t->failed == 0;
}

static void fail_everywhere(struct tap *t, const struct trial *trial)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        unsigned long n = 1;
        while (fail_at(t, trial, n, for_ever))
            n++;
        printf("# %lu allocations, %s\n", n - 1, for_ever ? "for ever" : "once");
        TAP_OK(t, n > 1);
    }
}

/* clang-format off */
static void t_enqueue(struct tap *t) { fail_everywhere(t, &(struct trial){ .op = try_enqueue }); }
static void t_claim(struct tap *t)   { fail_everywhere(t, &(struct trial){ .op = try_claim }); }
static void t_text(struct tap *t)    { fail_everywhere(t, &(struct trial){ .op = try_claim_text }); }
static void t_renew(struct tap *t)   { fail_everywhere(t, &(struct trial){ .op = try_renew }); }
static void t_abandon(struct tap *t) { fail_everywhere(t, &(struct trial){ .op = try_abandon }); }
static void t_list(struct tap *t)    { fail_everywhere(t, &(struct trial){ .op = try_list }); }
static void t_commit(struct tap *t)  { fail_everywhere(t, &(struct trial){ .op = try_commit }); }
static void t_replay(struct tap *t)  { fail_everywhere(t, &(struct trial){ .op = try_replay }); }
static void t_path(struct tap *t)    { fail_everywhere(t, &(struct trial){ .op = try_path }); }
static void t_reading(struct tap *t) { fail_everywhere(t, &(struct trial){ .op = try_reading }); }
static void t_pin(struct tap *t)     { fail_everywhere(t, &(struct trial){ .op = try_pin, .steps = true }); }
static void t_gc(struct tap *t)      { fail_everywhere(t, &(struct trial){ .op = try_gc, .steps = true }); }
static void t_delete(struct tap *t)  { fail_everywhere(t, &(struct trial){ .op = try_delete, .steps = true }); }
static void t_register(struct tap *t) { fail_everywhere(t, &(struct trial){ .op = try_register }); }
static void t_append(struct tap *t)   { fail_everywhere(t, &(struct trial){ .op = try_append }); }
static void t_lease(struct tap *t)    { fail_everywhere(t, &(struct trial){ .op = try_lease, .steps = true }); }
static void t_complete(struct tap *t) { fail_everywhere(t, &(struct trial){ .op = try_complete }); }
static void t_looking(struct tap *t)  { fail_everywhere(t, &(struct trial){ .op = try_looking }); }
static void t_forget(struct tap *t)   { fail_everywhere(t, &(struct trial){ .op = try_forget }); }
static void t_ack(struct tap *t)      { fail_everywhere(t, &(struct trial){ .op = try_ack }); }
static void t_remove(struct tap *t)   { fail_everywhere(t, &(struct trial){ .op = try_remove, .steps = true }); }
/* clang-format on */

static const struct tap_case cases[] = {
    { "an enqueue survives any failing allocation", t_enqueue },
    { "so does a claim", t_claim },
    { "so does a claim as text, and back", t_text },
    { "so does a renewal", t_renew },
    { "so does giving a claim back", t_abandon },
    { "so does listing an inbox", t_list },
    { "so does a commit of nodes, a checkpoint, usage and a completion", t_commit },
    { "so does the same turn again", t_replay },
    { "so does reading a path", t_path },
    { "so does reading all else of a session", t_reading },
    { "so does pinning", t_pin },
    { "so does a collection", t_gc },
    { "so does deleting a session", t_delete },
    { "so does registering a process", t_register },
    { "so does an event that wakes", t_append },
    { "so does a lease of a process, as text and back", t_lease },
    { "so does completing a process", t_complete },
    { "so does looking at processes", t_looking },
    { "so does forgetting a session's processes", t_forget },
    { "so does acknowledging a wake", t_ack },
    { "so does removing a process", t_remove },
};

int main(int argc, char **argv)
{
    if (!oom_hook_libraries())
        return 1;
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
