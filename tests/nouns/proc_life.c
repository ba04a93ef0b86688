/* Processes over their whole life: lists, changes, sessions that go, executions, retention,
 * removal. */
#include "exec.h"
#include "proc.h"

static void filters(struct world *w)
{
    (void)enroll(
        w, (struct belay_registration){ .process_id = "b", .owner = { "s", NULL } });
    int64_t from = proc_now(w, "b")->created_at_ms;
    world_pass(w, 5);
    (void)enroll(w, (struct belay_registration){ .process_id = "a",
                                                 .owner = { "s", "f" },
                                                 .input = "{\"type\":\"tool_call\"}" });
    (void)enroll(w, (struct belay_registration){ .process_id = "c",
                                                 .host_profile_id = "other" });
    finish_process(w, "c");
    int64_t to = proc_now(w, "a")->created_at_ms;
    STR(w, procs(w, (struct belay_process_page){ .limit = 1 }), "b a c");
    STR(w, procs(w, (struct belay_process_page){ .owner_session = "s", .limit = 1 }),
        "b a");
    STR(w, procs(w, (struct belay_process_page){ .kind = "tool_call" }), "a");
    STR(w, procs(w, (struct belay_process_page){ .host_profile_id = "other" }), "c");
    STR(w, procs(w, (struct belay_process_page){ .created_to_ms = from }), "b");
    STR(w,
        procs(w, (struct belay_process_page){ .created_from_ms = from + 1,
                                              .created_to_ms = to,
                                              .status = BELAY_PROCESS_RUNNING }),
        "a");
    STR(w,
        procs(w, (struct belay_process_page){ .status = BELAY_PROCESS_COMPLETED,
                                              .owner_session = "s" }),
        "");
    struct belay_process_page bad = { .size = sizeof(bad), .status = 9 };
    struct belay_processes found = { 0 };
    WHY(w, belay_process_list(w->use, &bad, w->arena, &found, &w->err), BELAY_INVALID,
        "status");
    bad = (struct belay_process_page){ .size = sizeof(bad), .cursor = "x" };
    WHY(w, belay_process_list(w->use, &bad, w->arena, &found, &w->err), BELAY_INVALID,
        "cursor");
}

static void fed(struct world *w)
{
    const struct belay_process *p = NULL;
    struct belay_appended out = { 0 };
    const char *cursor = NULL;

    enroll_id(w, "p");
    STR(w, changes(w, NULL, &cursor), "registered p");
    (void)line(w, "p", "not a change of the record");
    STR(w, changes(w, cursor, &cursor), "");
    RC(w,
       belay_process_set_external_ref(w->use, "p", "{\"backend\":\"b\",\"id\":\"i\"}",
                                      NULL, w->arena, &p, &w->err),
       BELAY_OK);
    w->use = w->b;
    RC(w, belay_process_cancel(w->use, "p", NULL, w->arena, &out, &w->err), BELAY_OK);
    RC(w, belay_process_cancel(w->use, "p", NULL, w->arena, &out, &w->err), BELAY_OK);
    finish_process(w, "p");
    finish_process(w, "p"); /* a replay is no change */
    STR(w, changes(w, cursor, &cursor), "external_ref p, cancel_requested p, ended p");
    RC(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_OK);
    STR(w, changes(w, cursor, &cursor), "deleted p");
    STR(w, changes(w, NULL, NULL),
        "registered p, external_ref p, cancel_requested p, ended p, deleted p");
    struct belay_change_request bad = { .size = sizeof(bad), .after = "nonsense" };
    struct belay_process_changes page = { 0 };
    WHY(w, belay_process_changed_since(w->use, &bad, w->arena, &page, &w->err),
        BELAY_INVALID, "cursor");
}

static void forgotten_with_cancel(struct world *w)
{
    struct belay_forget_report r = { 0 };

    enroll_id(w, "a");
    enroll_id(w, "b");
    enroll_id(w, "shared");
    give(w, "s", "f", "b");
    give(w, "s", NULL, "a");
    give(w, "s", NULL, "b"); /* twice, and told once */
    give(w, "s", NULL, "shared");
    give(w, "t", NULL, "shared");
    RC(w,
       belay_process_forget_session(w->use, "s", true, "gone", w->arena, &r, &w->err),
       BELAY_OK);
    EQ(w, r.revoked, 4);
    OK(w, r.cancel_requested);
    if (EQ(w, r.n_cancel, 2)) {
        STR(w, r.cancel_ids[0], "a");
        STR(w, r.cancel_ids[1], "b");
    }
    STR(w, log_of(w, "a", 0), "1:process.cancel_requested");
    STR(w, log_of(w, "b", 0), "1:process.cancel_requested");
    STR(w, log_of(w, "shared", 0), "");
    struct belay_process_events e =
        read_events(w, (struct belay_process_event_request){ .process_id = "a" });
    STR(w, e.items[0].payload, "{\"reason\":\"gone\"}");
    RC(w,
       belay_process_forget_session(w->use, "s", true, "gone", w->arena, &r, &w->err),
       BELAY_OK);
    EQ(w, r.revoked, 0);
    EQ(w, r.n_cancel, 0);
}

/* One that cannot be asked: nothing at all happens. */
static void forgotten_or_not(struct world *w)
{
    struct belay_forget_report r = { 0 };

    enroll_id(w, "a");
    (void)enroll(w, (struct belay_registration){
                        .process_id = "z",
                        .event_types = "[{\"name\":\"process.cancel_requested\","
                                       "\"payload_schema\":{\"schema\":{\"type\":"
                                       "\"integer\"}}}]" });
    give(w, "s", NULL, "a");
    give(w, "s", NULL, "z");
    const char *before = all_processes(w);
    WHY(w, belay_process_forget_session(w->use, "s", true, NULL, w->arena, &r, &w->err),
        BELAY_INVALID, "payload");
    STR(w, all_processes(w), before);
    STR(w, granted(w, "s", NULL, false), "a z");
}

static void deleted_session(struct world *w)
{
    enroll_id(w, "p");
    give(w, "s", NULL, "p");
    give(w, "s", "f", "p");
    give(w, "t", NULL, "p");
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
    STR(w, holders(w, "p"), "t");
    STR(w, granted(w, "s", "f", false), "");
    STR(w, log_of(w, "p", 0), "");
}

/* --- executions --- */

static void end_is_told(struct world *w)
{
    struct belay_submitted out = { 0 };

    WHY(w, submit_try(w, (struct belay_submission){ .process = "p" }, &out),
        BELAY_NOT_FOUND, "process");
    enroll_id(w, "p");
    WHY(w,
        submit_try(w,
                   (struct belay_submission){ .process = "p",
                                              .process_event = "never.declared" },
                   &out),
        BELAY_INVALID, "process_event");
    WHY(w, submit_try(w, (struct belay_submission){ .process_event = "x" }, &out),
        BELAY_INVALID, "process_event");
    const char *id = submit(w, (struct belay_submission){ .process = "p" });
    const struct belay_work *work = work_on(w, "l");
    struct belay_completion item = { .size = sizeof(item),
                                     .handle = &work->handle,
                                     .result = "{\"n\":1}",
                                     .result_len = 7,
                                     .result_is_json = true };
    struct belay_ended ended = { 0 };
    RC(w,
       belay_execution_complete(w->use, &item, 1, NULL, w->arena, &ended, NULL,
                                &w->err),
       BELAY_OK);
    struct belay_process_events e =
        read_events(w, (struct belay_process_event_request){ .after = 0 });
    if (!EQ(w, e.n, 1))
        return;
    STR(w, e.items[0].event_type, "execution.completed");
    STR(w, e.items[0].replay_key, text(w, "execution:%s:0:success", id));
    OK(w, strstr(e.items[0].payload, "\"outcome\":\"success\"") != NULL);
    OK(w, strstr(e.items[0].payload, "\"result\":{\"n\":1}") != NULL);
    (void)complete(w, &work->handle, "{\"n\":1}", NULL); /* once more: it ended once */
    STR(w, log_of(w, "p", 0), "1:execution.completed");
}

/* The end of an execution of "p", as the process is told. */
static const char *end_told(struct world *w, const char *result, bool is_json)
{
    (void)submit(w, (struct belay_submission){ .process = "p" });
    const struct belay_work *work = work_on(w, "l");
    struct belay_ended ended = { 0 };

    if (!OK(w, work != NULL))
        return "";
    struct belay_completion item = { .size = sizeof(item),
                                     .handle = &work->handle,
                                     .result = result,
                                     .result_len = result ? strlen(result) : 0,
                                     .result_is_json = is_json };
    if (result)
        RC(w,
           belay_execution_complete(w->use, &item, 1, NULL, w->arena, &ended, NULL,
                                    &w->err),
           BELAY_OK);
    else
        RC(w, fail(w, &work->handle, BELAY_FAILURE_PERMANENT, NULL), BELAY_OK);
    struct belay_process_events e =
        read_events(w, (struct belay_process_event_request){ .after = 0 });
    return OK(w, e.n > 0) ? e.items[e.n - 1].payload : "";
}

static void end_is_told_whole(struct world *w)
{
    char *deep = bytes_of(w, '[', 64);

    memset(deep + 32, ']', 32);
    enroll_id(w, "p");
    OK(w, strstr(end_told(w, "ok", false), "\"result_base64\":\"b2s=\"}"));
    OK(w, strstr(end_told(w, bytes_of(w, 'x', 4097), false), "\"result_len\":4097}"));
    OK(w, strstr(end_told(w, deep, true), "\"result_len\":64}"));
    OK(w, strstr(end_told(w, NULL, false),
                 "\"failure\":\"it did not work\",\"failure_class\":\"permanent\""));
}

static const char ending[] =
    "[{\"name\":\"execution.completed\",\"semantics\":{\"terminal\":{\"state\":"
    "\"completed\",\"await_output\":{\"pointer\":\"/outcome\"}},\"wake\":{\"input\":{"
    "\"pointer\":\"/"
    "execution\"}}}},{\"name\":\"strict\",\"payload_schema\":{\"schema\":{"
    "\"type\":\"string\"}}}]";

static void end_ends(struct world *w)
{
    (void)enroll(w, (struct belay_registration){ .event_types = ending,
                                                 .owner = { "s", NULL } });
    const char *id = submit(w, (struct belay_submission){ .process = "p" });
    const char *second = submit(w, (struct belay_submission){ .process = "p" });
    const char *strict = submit(
        w, (struct belay_submission){ .process = "p", .process_event = "strict" });
    RC(w, belay_execution_cancel(w->use, id, "r", NULL, &w->err), BELAY_OK);
    EQ(w, proc_status(w, "p"), BELAY_PROCESS_COMPLETED);
    STR(w, proc_now(w, "p")->await_output,
        "{\"type\":\"success\",\"value\":\"cancelled\"}");
    STR(w, listed(w, "s"), "1"); /* its owner is woken */
    /* Work ends even if its process does not take what came; the feed says so. */
    RC(w, belay_execution_cancel(w->use, second, "r", NULL, &w->err), BELAY_OK);
    RC(w, belay_execution_cancel(w->use, strict, "r", NULL, &w->err), BELAY_OK);
    EQ(w, state_of(w, second), BELAY_STATE_CANCELLED);
    EQ(w, state_of(w, strict), BELAY_STATE_CANCELLED);
    STR(w, log_of(w, "p", 0), "1:execution.completed");
    STR(w, changes(w, NULL, NULL),
        "registered p, ended p, event_refused p, event_refused p");
    RC(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_OK);
}

static void end_of_a_gone_one(struct world *w)
{
    enroll_id(w, "p");
    const char *id = submit(w, (struct belay_submission){ .process = "p" });
    RC(w, belay_process_delete(w->use, "p", true, &w->err), BELAY_OK);
    RC(w, belay_execution_cancel(w->use, id, "r", NULL, &w->err), BELAY_OK);
    EQ(w, state_of(w, id), BELAY_STATE_CANCELLED);
}

/* --- time --- */

static void purged(struct world *w)
{
    const struct belay_process *p = NULL;

    (void)enroll(w, (struct belay_registration){ .process_id = "short",
                                                 .retention_ms = SHORT_MS });
    enroll_id(w, "long");
    (void)enroll(w, (struct belay_registration){ .process_id = "runs",
                                                 .retention_ms = SHORT_MS });
    for (int i = 0; i < 3; i++)
        (void)line(w, "short", "x");
    (void)wake(w, "short", "s", "kept");
    give(w, "s", "f", "short");
    finish_process(w, "short");
    finish_process(w, "long");
    EQ(w, proc_now(w, "short")->purge_at_ms,
       proc_now(w, "short")->finished_at_ms + SHORT_MS);
    (void)timers(w);
    EQ(w, proc_status(w, "short"), BELAY_PROCESS_COMPLETED);
    world_pass(w, SHORT_MS + 5);
    EQ(w, timers(w).purged, 1);
    RC(w, belay_process_get(w->use, "short", w->arena, &p, &w->err), BELAY_NOT_FOUND);
    EQ(w, proc_status(w, "long"), BELAY_PROCESS_COMPLETED);
    EQ(w, proc_status(w, "runs"), BELAY_PROCESS_RUNNING);
    STR(w, granted(w, "s", "f", false), "");
    STR(w, listed(w, "s"), "1"); /* what is in an inbox stays there */
    const char *all = changes(w, NULL, NULL);
    STR(w, all + strlen(all) - strlen("deleted short"), "deleted short");
}

static void held_is_kept(struct world *w)
{
    (void)enroll(w, (struct belay_registration){ .retention_ms = 1 });
    finish_process(w, "p");
    const struct belay_process_lease *l = hold(w, "p", "one", MINUTE);
    world_pass(w, 10);
    EQ(w, timers(w).purged, 0);
    RC(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_LEASE_HELD);
    EQ(w, proc_status(w, "p"), BELAY_PROCESS_COMPLETED);
    RC(w, belay_process_release(w->use, l, NULL, &w->err), BELAY_OK);
    RC(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_OK);
}

static void removed_whole(struct world *w)
{
    enroll_id(w, "p");
    enroll_id(w, "q");
    for (int i = 0; i < 120; i++)
        (void)line(w, "p", "more than one step");
    (void)note(w, (struct belay_event_draft){ .event_type = "producer.line",
                                              .payload = "{\"line\":\"k\"}",
                                              .replay_key = "k" });
    give(w, "s", NULL, "p");
    give(w, "s", NULL, "q");
    RC(w, belay_process_delete(w->use, "p", true, &w->err), BELAY_OK);
    RC(w, belay_process_delete(w->use, "p", true, &w->err), BELAY_NOT_FOUND);
    RC(w,
       note_try(w, (struct belay_event_draft){ .event_type = "producer.line" }, NULL),
       BELAY_NOT_FOUND);
    STR(w, granted(w, "s", NULL, false), "q");
    STR(w, procs(w, (struct belay_process_page){ .limit = 10 }), "q");
    /* The next one begins at the beginning; other handles know of it. */
    w->use = w->b;
    (void)enroll(w,
                 (struct belay_registration){ .event_types = "[{\"name\":\"new\"}]" });
    EQ(w,
       note_seq(w,
                (struct belay_event_draft){ .event_type = "new", .replay_key = "k" }),
       1);
    w->use = w->a;
    WHY(w,
        note_try(w,
                 (struct belay_event_draft){ .event_type = "producer.line",
                                             .payload = "{\"line\":\"x\"}" },
                 NULL),
        BELAY_INVALID, "undeclared");
    EQ(w, note_seq(w, (struct belay_event_draft){ .event_type = "new" }), 2);
}

static const struct noun_case cases[] = {
    { "processes are listed by status, owner, kind, profile and time", filters, 0 },
    { "every change of a process is in the feed, in order, and nothing else", fed, 0 },
    { "a session that is forgotten asks what it alone had to end",
      forgotten_with_cancel, 0 },
    { "a session is forgotten with all that follows, or not at all", forgotten_or_not,
      0 },
    { "a session that is deleted has nothing granted to it any more", deleted_session,
      0 },
    { "the end of an execution is an event of its process", end_is_told, 0 },
    { "that event has a short result, and tells how long another one is",
      end_is_told_whole, 0 },
    { "the end of an execution ends its process where that says so", end_ends, 0 },
    { "work ends even if its process is gone", end_of_a_gone_one, 0 },
    { "a process that has ended goes when its time is over", purged, 0 },
    { "a process that is held is not removed", held_is_kept, 0 },
    { "a process is removed with everything, and its id begins anew", removed_whole,
      0 },
};
const struct topic topic_proc_life = { cases, COUNT_OF(cases) };
