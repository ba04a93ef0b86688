/* The process registry's cases of the specification (5.1), by its names: registering,
 * events and wakes. */
#include "proc.h"

static void tier(struct world *w)
{
    const char *name = belay_durability_name(belay_durability(w->use));

    OK(w, strcmp(name, "inline") == 0 || strcmp(name, "durable") == 0 ||
              strcmp(name, "relaxed") == 0);
    EQ(w, strcmp(name, "inline") == 0, !w->store->shared);
}

static void idempotent(struct world *w)
{
    struct belay_registered first = { 0 }, again = { 0 };
    struct belay_registration plain = { .process_id = "proc-idempotent" };
    struct belay_registration more = plain;

    more.event_types = "[{\"name\":\"extra\"}]";
    RC(w, enroll_try(w, plain, &first), BELAY_OK);
    OK(w, first.created);
    STR(w, first.process->registration_hash,
        "ebe6678046ad84685b7c30136ba951d5b8d59a8579033343cc28eea029a9b4f0");
    EQ(w, first.process->status, BELAY_PROCESS_RUNNING);
    STR(w, first.process->owner.session_id, "root");
    STR(w, first.process->host_profile_id, "default");
    w->use = w->b;
    RC(w, enroll_try(w, plain, &again), BELAY_OK);
    OK(w, !again.created);
    STR(w, again.process->registration_hash, first.process->registration_hash);
    EQ(w, again.process->created_at_ms, first.process->created_at_ms);
    const char *before = all_processes(w);
    RC(w, enroll_try(w, more, &again), BELAY_REGISTRATION_CONFLICT);
    OK(w, strstr(w->err.message, "registration hash conflict") != NULL);
    OK(w, strstr(w->err.message, "ebe6678046ad8468") != NULL);
    STR(w, all_processes(w), before);
    /* As it is now: also when it has ended. */
    finish_process(w, "proc-idempotent");
    RC(w, enroll_try(w, plain, &again), BELAY_OK);
    EQ(w, again.process->status, BELAY_PROCESS_COMPLETED);
}

static void refs(struct world *w)
{
    const char *ref = "{\"backend\":\"k8s\",\"id\":\"job-1\",\"metadata\":{\"a\":1}}";
    const struct belay_process *p = NULL;
    struct belay_scope s = scope("s", NULL);
    bool revoked = false;

    RC(w,
       belay_process_set_external_ref(w->use, "nobody", ref, NULL, w->arena, &p,
                                      &w->err),
       BELAY_NOT_FOUND);
    OK(w, strstr(w->err.message, "unknown process `nobody`") != NULL);
    STR(w, w->err.entity, "nobody");
    enroll_id(w, "p");
    RC(w, belay_process_set_external_ref(w->use, "p", ref, NULL, w->arena, &p, &w->err),
       BELAY_OK);
    OK(w, world_reopen(w));
    p = proc_now(w, "p");
    STR(w, p->external_ref, ref);
    give(w, "s", NULL, "p");
    OK(w, has(w, "s", NULL, "p"));
    OK(w, !has(w, "s", "f", "p"));
    STR(w, granted(w, "s", NULL, false), "p");
    RC(w, belay_process_revoke(w->use, &s, "p", &revoked, &w->err), BELAY_OK);
    OK(w, revoked);
    OK(w, !has(w, "s", NULL, "p"));
    STR(w, granted(w, "s", NULL, false), "");
    RC(w, belay_process_revoke(w->use, &s, "nobody", &revoked, &w->err), BELAY_OK);
    OK(w, !revoked);
}

static void custom_events(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_event *e = wake(w, "p", "s", "hello");
    EQ(w, e->sequence, 1);
    STR(w, e->wake->input, "hello");
    STR(w, e->wake->dedupe_key, "p:1");
    STR(w, wake_seqs(w, "p", 0), "1");
    OK(w, ack(w, "p", 1));
    STR(w, wake_seqs(w, "p", 0), "");
    OK(w, !ack(w, "p", 1));
    WHY(w,
        note_try(w, (struct belay_event_draft){ .event_type = "producer.line" }, NULL),
        BELAY_INVALID, "payload");
    OK(w, strstr(w->err.message, "invalid `producer.line` payload: ") != NULL);
    OK(w, strstr(w->err.message, "line: required property missing") != NULL);
    STR(w, log_of(w, "p", 0), "1:producer.wake");
}

static void provenance(struct world *w)
{
    struct belay_appended first = { 0 }, again = { 0 };
    struct belay_event_draft d = { .event_type = "producer.wake",
                                   .payload = "{\"text\":\"x\"}",
                                   .replay_key = "k",
                                   .wake_target = { "s", "f" } };

    (void)enroll(
        w, (struct belay_registration){ .owner = { "boss", NULL },
                                        .caused_by = "{\"type\":\"turn\",\"id\":7}" });
    RC(w, note_try(w, d, &first), BELAY_OK);
    OK(w, !first.replayed);
    STR(w, first.event->owner_session, "boss");
    STR(w, first.event->replay_key, "k");
    STR(w, first.event->wake->target.session_id, "s");
    STR(w, first.event->wake->target.frame_id, "f");
    STR(w, first.event->wake->process_caused_by, "{\"id\":7,\"type\":\"turn\"}");
    EQ(w, first.event->wake->created_at_ms, first.event->occurred_at_ms);
    const struct belay_batch *b = batch_now(w, "s", 1);
    STR(w, b->source_key, "process:p:event:1:wake");
    EQ(w, b->slot, BELAY_EXCLUSIVE);
    EQ(w, b->delivery, BELAY_EARLIEST_SAFE_BOUNDARY);
    STR(w, b->items[0].payload,
        text(w,
             "{\"type\":\"process_wake\",\"wake\":{\"created_at_ms\":%lld,"
             "\"dedupe_key\":\"p:1\",\"event_invocation\":{\"caused_by\":{\"process_"
             "id\":"
             "\"p\",\"type\":\"process\"},\"replay\":{\"key\":\"k\"},\"scope\":{"
             "\"session_id\":\"boss\"},\"subject\":{\"event_type\":\"producer.wake\","
             "\"process_id\":\"p\",\"sequence\":1,\"type\":\"process_event\"}},"
             "\"event_type\":\"producer.wake\",\"input\":\"x\",\"process_caused_by\":{"
             "\"id\":7,\"type\":\"turn\"},\"process_id\":\"p\",\"sequence\":1,"
             "\"target_frame_id\":\"f\",\"target_session_id\":\"s\",\"wake_id\":\"%s\"}"
             "}",
             (long long)first.event->occurred_at_ms, first.event->wake->wake_id));
    w->use = w->b;
    RC(w, note_try(w, d, &again), BELAY_OK);
    OK(w, again.replayed);
    EQ(w, again.event->sequence, 1);
    STR(w, again.event->wake->wake_id, first.event->wake->wake_id);
    STR(w, listed(w, "s"), "1");
    /* A replay needs no target: the stored event has it. */
    d.wake_target = (struct belay_scope){ NULL, NULL };
    RC(w, note_try(w, d, &again), BELAY_OK);
    STR(w, again.event->wake->target.session_id, "s");
}

static void streams(struct world *w)
{
    const struct belay_process_event *e = NULL;

    enroll_id(w, "p");
    (void)line(w, "p", "one");
    (void)wake(w, "p", "s", "two");
    (void)line(w, "p", "three");
    STR(w, log_of(w, "p", 0), "1:producer.line 2:producer.wake 3:producer.line");
    STR(w, log_of(w, "p", 1), "2:producer.wake 3:producer.line");
    STR(w, log_of(w, "p", 3), "");
    STR(w, wake_seqs(w, "p", 0), "2");
    STR(w, wake_seqs(w, "p", 2), "");
    RC(w, wait_type(w, "p", "producer.line", 0, 1000, NULL, &e), BELAY_OK);
    EQ(w, e->sequence, 1);
    RC(w, wait_type(w, "p", "producer.line", 1, 1000, NULL, &e), BELAY_OK);
    EQ(w, e->sequence, 3);
    /* None of the old ones leaks in. */
    RC(w, wait_type(w, "p", "producer.line", 3, 0, NULL, &e), BELAY_TIMEOUT);
    RC(w, wait_type(w, "q", "producer.line", 3, 0, NULL, &e), BELAY_NOT_FOUND);
}

#define WAKE(rest) "\"semantics\":{\"wake\":{" rest "}}"

/* clang-format off */
static const char matrix_types[] =
    "[{\"name\":\"when\"," WAKE("\"when\":{\"pointer\":\"/go\"},\"input\":\"payload\"") "},"
    "{\"name\":\"whole\"," WAKE("\"input\":\"payload\"") "},"
    "{\"name\":\"const\"," WAKE("\"input\":{\"const\":\"fixed\"}") "},"
    "{\"name\":\"template\"," WAKE("\"input\":{\"template\":{\"template\":\"hi {who}\","
                                     "\"fields\":{\"who\":{\"pointer\":\"/who\"}}}}") "},"
    "{\"name\":\"selected\"," WAKE("\"input\":\"payload\",\"dedupe_key\":"
                                     "{\"selector\":{\"pointer\":\"/key\"}}") "},"
    "{\"name\":\"once\"," WAKE("\"input\":\"payload\",\"dedupe_key\":{\"const\":\"only\"}") "}]";
/* clang-format on */

static const struct {
    const char *type, *payload, *input, *dedupe; /* input NULL: no wake */
} matrix[] = {
    { "when", "{\"go\":false}", NULL, NULL },
    { "when", "{\"go\":1}", "{\"go\":1}", "p:2" },
    { "whole", "\"text\"", "text", "p:3" },
    { "const", "{}", "fixed", "p:4" },
    { "template", "{\"who\":\"you\"}", "hi you", "p:5" },
    { "selected", "{\"key\":\"a\"}", "{\"key\":\"a\"}", "a" },
    { "selected", "{\"key\":\"b\"}", "{\"key\":\"b\"}", "b" },
    { "once", "[1]", "[1]", "only" },
};

static void wake_matrix(struct world *w)
{
    (void)enroll(w, (struct belay_registration){ .event_types = matrix_types });
    for (size_t i = 0; i < COUNT_OF(matrix); i++) {
        const struct belay_process_event *e =
            note(w, (struct belay_event_draft){ .event_type = matrix[i].type,
                                                .payload = matrix[i].payload,
                                                .wake_target = { "s", NULL } });
        if (!e || !EQ(w, e->wake != NULL, matrix[i].input != NULL) || !e->wake)
            continue;
        STR(w, e->wake->input, matrix[i].input);
        STR(w, e->wake->dedupe_key, matrix[i].dedupe);
    }
    STR(w, wake_seqs(w, "p", 0), "2 3 4 5 6 7 8");
    STR(w, listed(w, "s"), "1 2 3 4 5 6 7");
}

static void keyed(struct world *w)
{
    struct belay_appended first = { 0 }, again = { 0 };
    struct belay_event_draft d = { .event_type = "producer.wake",
                                   .payload = "{\"text\":\"x\"}",
                                   .replay_key = "k",
                                   .wake_target = { "s", NULL } };

    enroll_id(w, "p");
    RC(w, note_try(w, d, &first), BELAY_OK);
    RC(w, note_try(w, d, &again), BELAY_OK);
    STR(w, again.event->wake->wake_id, first.event->wake->wake_id);
    STR(w, again.event->wake->input, "x");
    EQ(w, again.event->wake->enqueue_seq, first.event->wake->enqueue_seq);
    const char *before = all_processes(w);
    d.payload = "{\"text\":\"y\"}";
    RC(w, note_try(w, d, &again), BELAY_REPLAY_CONFLICT);
    OK(w, strstr(w->err.message, "replay key") && strstr(w->err.message, "conflicts"));
    d.payload = "{\"text\":\"x\"}";
    d.event_type = "execution.completed"; /* the hash covers the type */
    RC(w, note_try(w, d, &again), BELAY_REPLAY_CONFLICT);
    d.event_type = "never.declared"; /* asked before the type */
    RC(w, note_try(w, d, &again), BELAY_REPLAY_CONFLICT);
    STR(w, all_processes(w), before);
    STR(w, log_of(w, "p", 0), "1:producer.wake");
}

static void no_target(struct world *w)
{
    struct belay_event_draft d = { .event_type = "producer.wake",
                                   .payload = "{\"text\":\"x\"}" };

    enroll_id(w, "p");
    const char *before = all_processes(w);
    WHY(w, note_try(w, d, NULL), BELAY_INVALID, "wake_target");
    OK(w, strstr(w->err.message, "without a wake target scope") != NULL);
    STR(w, log_of(w, "p", 0), "");
    STR(w, all_processes(w), before);
    EQ(w, line(w, "p", "next"), 1); /* a refused one takes no number */
}

static void need_keys(struct world *w)
{
    struct belay_appended out = { 0 }, again = { 0 };
    struct belay_event_draft cancel = { .event_type = "process.cancel_requested",
                                        .payload = "{\"reason\":null}" };

    enroll_id(w, "p");
    WHY(w, note_try(w, cancel, NULL), BELAY_INVALID, "replay_key");
    OK(w, strstr(w->err.message, "requires a deterministic replay key") != NULL);
    cancel.replay_key = "";
    WHY(w, note_try(w, cancel, NULL), BELAY_INVALID, "replay_key");
    RC(w, belay_process_cancel(w->use, "p", "stop", w->arena, &out, &w->err), BELAY_OK);
    STR(w, out.event->replay_key,
        "process:p:cancel_requested:"
        "85a6238fa9840bc3105d1a06ca03df61803080fefa838ab687d36662275be019");
    RC(w, belay_process_cancel(w->use, "p", "stop", w->arena, &again, &w->err),
       BELAY_OK);
    OK(w, again.replayed);
    RC(w, belay_process_cancel(w->use, "p", NULL, w->arena, &again, &w->err), BELAY_OK);
    EQ(w, again.event->sequence, 2);
    STR(w, again.event->payload, "{\"reason\":null}");
    EQ(w, proc_status(w, "p"), BELAY_PROCESS_RUNNING);
    RC(w,
       finish_try(
           w,
           (struct belay_process_end){
               .await_output = "{\"type\":\"cancelled\",\"message\":\"stopped\"}",
               .authority = BELAY_AUTHORITY_OWNER },
           NULL),
       BELAY_OK);
    EQ(w, proc_status(w, "p"), BELAY_PROCESS_CANCELLED);
    WHY(w,
        note_try(w,
                 (struct belay_event_draft){ .event_type = "producer.done",
                                             .payload = "{\"result\":1}" },
                 NULL),
        BELAY_INVALID, "replay_key");
}

static void awaits(struct world *w)
{
    const struct belay_process *p = NULL;

    enroll_id(w, "p");
    RC(w, belay_process_await(w->use, "p", 0, NULL, w->arena, &p, &w->err),
       BELAY_TIMEOUT);
    RC(w, belay_process_await(w->use, "q", 0, NULL, w->arena, &p, &w->err),
       BELAY_NOT_FOUND);
    (void)note(w, (struct belay_event_draft){ .event_type = "producer.done",
                                              .payload = "{\"result\":{\"n\":42}}",
                                              .replay_key = "end",
                                              .authority = BELAY_AUTHORITY_OWNER });
    RC(w, belay_process_await(w->use, "p", 0, NULL, w->arena, &p, &w->err), BELAY_OK);
    EQ(w, p->status, BELAY_PROCESS_COMPLETED);
    STR(w, p->await_output, "{\"type\":\"success\",\"value\":{\"n\":42}}");
    /* What has ended may still have something to say. */
    EQ(w, line(w, "p", "late"), 2);
    EQ(w, proc_status(w, "p"), BELAY_PROCESS_COMPLETED);
}

static const struct noun_case cases[] = {
    { "process_registry_reports_declared_durability", tier, 0 },
    { "registration_is_idempotent_and_hash_conflicts_fail", idempotent, 0 },
    { "external_refs_and_handle_grant_membership_round_trip", refs, 0 },
    { "validates_custom_events_and_materializes_wakes", custom_events, 0 },
    { "custom_wake_events_preserve_typed_provenance_and_replay", provenance, 0 },
    { "event_streams_filter_order_and_wait_without_leaking_old_events", streams, 0 },
    { "wake_semantics_matrix_materializes_declared_wakes", wake_matrix, 0 },
    { "keyed_events_materialize_idempotent_wakes", keyed, 0 },
    { "wake_semantic_events_without_target_fail_without_persisting", no_target, 0 },
    { "terminal_and_cancel_events_require_keys", need_keys, 0 },
    { "await_reads_terminal_materialized_output", awaits, 0 },
};
const struct topic topic_proc_spec = { cases, COUNT_OF(cases) };
