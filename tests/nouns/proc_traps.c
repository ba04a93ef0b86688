/* What the specification warns of (5.2 and its traps), for processes. */
#include "proc.h"

/* 9, and the order in which an event is refused. */
static void disagreement(struct world *w)
{
    struct belay_event_draft d = {
        .event_type = "process.completed",
        .payload =
            "{\"await_output\":{\"type\":\"failure\",\"class\":\"timeout\",\"code\":"
            "\"c\",\"message\":\"m\"}}",
        .replay_key = "k",
        .authority = BELAY_AUTHORITY_OWNER
    };

    enroll_id(w, "p");
    const char *before = all_processes(w);
    WHY(w, note_try(w, d, NULL), BELAY_INVALID, "await_output");
    STR(w, all_processes(w), before);
    d.event_type = "process.failed";
    (void)note(w, d);
    EQ(w, proc_status(w, "p"), BELAY_PROCESS_FAILED);
    OK(w, strstr(proc_now(w, "p")->await_output, "\"class\":\"timeout\"") != NULL);
}

static void order(struct world *w)
{
    struct belay_event_draft d = { .process_id = "nobody",
                                   .event_type = "never.declared",
                                   .authority = BELAY_AUTHORITY_OWNER };

    RC(w, note_try(w, d, NULL), BELAY_NOT_FOUND);
    enroll_id(w, "p");
    d.process_id = "p";
    WHY(w, note_try(w, d, NULL), BELAY_INVALID, "undeclared");
    OK(w, strstr(w->err.message, "undeclared event type") != NULL);
    d.event_type = "producer.done";
    d.payload = "{}";
    WHY(w, note_try(w, d, NULL), BELAY_INVALID, "replay_key");
    d.replay_key = "k";
    WHY(w, note_try(w, d, NULL), BELAY_INVALID, "pointer");
    OK(w, strstr(w->err.message, "payload pointer") != NULL);
    OK(w, strstr(w->err.message, "did not match") != NULL);
    d.payload = "{\"result\":1}";
    d.authority = BELAY_AUTHORITY_NONE;
    WHY(w, note_try(w, d, NULL), BELAY_INVALID, "authority");
    STR(w, log_of(w, "p", 0), "");
    d.authority = BELAY_AUTHORITY_OWNER;
    EQ(w, note(w, d)->sequence, 1);
    d.replay_key = "another";
    WHY(w, note_try(w, d, NULL), BELAY_WRONG_STATE, "terminal");
    OK(w, strstr(w->err.message, "is already terminal") != NULL);
    d.payload = "nonsense";
    RC(w, note_try(w, d, NULL), BELAY_INVALID);
}

/* P5: every way to end a process, and who may. */
static void authority(struct world *w)
{
    struct belay_process_end e = { .process_id = "tool" };
    const struct belay_process *p = NULL;

    (void)enroll(
        w, (struct belay_registration){
               .process_id = "tool", .input = "{\"type\":\"tool_call\",\"call\":{}}" });
    WHY(w, finish_try(w, e, NULL), BELAY_INVALID, "authority");
    e.authority = BELAY_AUTHORITY_EXTERNAL;
    WHY(w, finish_try(w, e, NULL), BELAY_INVALID, "authority");
    e.authority = BELAY_AUTHORITY_EXECUTION; /* nobody may say so */
    WHY(w, finish_try(w, e, NULL), BELAY_INVALID, "authority");
    (void)hold(w, "tool", "one", MINUTE);
    e.authority = BELAY_AUTHORITY_OWNER;
    RC(w, finish_try(w, e, NULL), BELAY_LEASE_HELD);
    RC(w,
       belay_process_set_external_ref(w->use, "tool",
                                      "{\"backend\":\"b\",\"id\":\"i\"}", NULL,
                                      w->arena, &p, &w->err),
       BELAY_OK);
    e.authority = BELAY_AUTHORITY_EXTERNAL;
    RC(w, finish_try(w, e, NULL), BELAY_LEASE_HELD);
    EQ(w, proc_status(w, "tool"), BELAY_PROCESS_RUNNING);
    e.authority = BELAY_AUTHORITY_OPERATOR;
    RC(w, finish_try(w, e, NULL), BELAY_OK);
    OK(w, proc_now(w, "tool")->lease_owner == NULL); /* its end has ended the lease */
    EQ(w, proc_now(w, "tool")->fence, 1);
}

static void completing(struct world *w)
{
    struct belay_completed out = { 0 };
    struct belay_process_end e = { .authority = BELAY_AUTHORITY_OWNER };

    enroll_id(w, "p");
    RC(w, finish_try(w, e, &out), BELAY_OK);
    OK(w, !out.replayed);
    STR(w, out.process->await_output, SUCCESS);
    const char *before = all_processes(w);
    RC(w, finish_try(w, e, &out), BELAY_OK);
    OK(w, out.replayed);
    e.await_output = "{\"type\":\"success\",\"value\":2}";
    RC(w, finish_try(w, e, &out), BELAY_REPLAY_CONFLICT);
    e.await_output = "{\"type\":\"cancelled\",\"message\":\"m\"}";
    WHY(w, finish_try(w, e, &out), BELAY_WRONG_STATE, "terminal");
    e.await_output = "{\"type\":\"nonsense\"}";
    WHY(w, finish_try(w, e, &out), BELAY_INVALID, "await_output");
    STR(w, all_processes(w), before);
    STR(w, log_of(w, "p", 0), "1:process.completed");
}

/* L5: a holder holds, however late; only renewing is refused. */
static void late_holder(struct world *w)
{
    struct belay_completed out = { 0 };

    enroll_id(w, "p");
    const struct belay_process_lease *l = hold(w, "p", "one", 0);
    WHY(w, belay_process_renew(w->use, l, MINUTE, NULL, &w->err), BELAY_LEASE_LOST,
        "expired");
    struct belay_event_draft d = { .event_type = "producer.line",
                                   .payload = "{\"line\":\"late\"}",
                                   .lease = l };
    EQ(w, note(w, d)->fence, l->fence);
    RC(w, finish_try(w, (struct belay_process_end){ .lease = l }, &out), BELAY_OK);
    /* The same once more is answered: the lease it shows has ended with the process. */
    RC(w, finish_try(w, (struct belay_process_end){ .lease = l }, &out), BELAY_OK);
    OK(w, out.replayed);
}

/* 13 */
static void pairs(struct world *w)
{
    struct belay_registered one = { 0 }, two = { 0 };
    const struct belay_process_event *e[2];

    enroll_id(w, "p");
    give(w, "a/frame:b", NULL, "p");
    OK(w, has(w, "a/frame:b", NULL, "p"));
    OK(w, !has(w, "a", "b", "p"));
    STR(w, granted(w, "a", "b", false), "");
    for (int i = 0; i < 2; i++)
        e[i] =
            note(w, (struct belay_event_draft){
                        .event_type = "producer.wake",
                        .payload = "{\"text\":\"x\"}",
                        .wake_target = i ? (struct belay_scope){ "a", "b" }
                                         : (struct belay_scope){ "a/frame:b", NULL } });
    OK(w, strcmp(e[0]->wake->wake_id, e[1]->wake->wake_id) != 0);
    RC(w,
       enroll_try(w,
                  (struct belay_registration){ .process_id = "q",
                                               .owner = { "a/frame:b", NULL } },
                  &one),
       BELAY_OK);
    RC(w,
       enroll_try(
           w, (struct belay_registration){ .process_id = "q", .owner = { "a", "b" } },
           &two),
       BELAY_REGISTRATION_CONFLICT);
    STR(w, procs(w, (struct belay_process_page){ .owner_session = "a/frame:b" }), "q");
    STR(w, procs(w, (struct belay_process_page){ .owner_session = "a" }), "");
}

static void big(struct world *w)
{
    struct belay_appended out = { 0 };
    char *much = bytes_of(w, 'x', 100000);

    enroll_id(w, "p");
    (void)note(w, (struct belay_event_draft){ .event_type = "execution.completed",
                                              .payload = text(w, "\"%s\"", much),
                                              .replay_key = "k" });
    struct belay_process_events e =
        read_events(w, (struct belay_process_event_request){ .after = 0 });
    if (EQ(w, e.n, 1)) {
        EQ(w, e.items[0].payload_len, 100002);
        STR(w, e.items[0].payload, text(w, "\"%s\"", much));
    }
    RC(w,
       note_try(w,
                (struct belay_event_draft){ .event_type = "execution.completed",
                                            .payload = text(w, "\"%s\"", much),
                                            .replay_key = "k" },
                &out),
       BELAY_OK);
    EQ(w, out.event->payload_len, 100002);
    much = bytes_of(w, 'x', 1 << 20);
    WHY(w,
        note_try(w,
                 (struct belay_event_draft){ .event_type = "execution.completed",
                                             .payload = text(w, "\"%s\"", much) },
                 NULL),
        BELAY_INVALID, "too_large");
    finish_process(w, "p");
    RC(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_OK);
}

static void tail(struct world *w)
{
    enroll_id(w, "p");
    for (int i = 0; i < 150; i++)
        (void)line(w, "p", "x");
    struct belay_process_events e =
        read_events(w, (struct belay_process_event_request){ .tail = 10 });
    EQ(w, e.n, 10);
    EQ(w, e.items[0].sequence, 141);
    EQ(w, e.next_after, 150);
    EQ(w, e.last_sequence, 150);
    e = read_events(w, (struct belay_process_event_request){ .tail = 1000 });
    EQ(w, e.n, 100);
    EQ(w, e.items[0].sequence, 1);
    EQ(w, e.next_after, 100);
    for (int64_t i = 0, at = 0; i < 4; i++) { /* pages of any size miss nothing */
        e = read_events(w,
                        (struct belay_process_event_request){
                            .after = at, .limit = 40, .event_type = "producer.line" });
        for (size_t k = 0; k < e.n; k++)
            EQ(w, e.items[k].sequence, ++at);
        EQ(w, e.next_after, at);
    }
}

static void refused_input(struct world *w)
{
    static const struct {
        struct belay_registration r;
        const char *reason;
    } bad[] = {
        { { .process_id = "" }, "process_id" },
        { { .process_id = "  " }, "process_id" },
        { { .process_id = "a\nb" }, "process_id" },
        { { .input = "[]" }, "input" },
        { { .input = "nonsense" }, "input" },
        { { .event_types = "{}" }, "event_types" },
        { { .event_types = "[{\"name\":\" \"}]" }, "event_types" },
        { { .event_types = "[{\"name\":\"a\"},{\"name\":\"a\"}]" }, "event_types" },
        { { .event_types = "[{\"name\":\"a\",\"semantics\":{\"terminal\":{\"state\":"
                           "\"failed\"}}}]" },
          "terminal" },
        { { .event_types =
                "[{\"name\":\"a\",\"payload_schema\":{\"schema\":{\"type\":1}}"
                "}]" },
          "schema" },
        { { .host_profile_id = " " }, "host_profile" },
        { { .owner = { "", NULL } }, "scope" },
        { { .owner = { "s", "a\tb" } }, "scope" },
        { { .caused_by = "{" }, "caused_by" },
        { { .retention_ms = -1 }, "retention" },
    };
    struct belay_registered out = { 0 };
    const struct belay_process *p = NULL;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (!WHY(w, enroll_try(w, bad[i].r, &out), BELAY_INVALID, bad[i].reason))
            printf("# registration %zu\n", i);
    }
    STR(w, procs(w, (struct belay_process_page){ .limit = 10 }), "");
    enroll_id(w, "p");
    WHY(w,
        belay_process_set_external_ref(w->use, "p", "{\"backend\":1}", NULL, w->arena,
                                       &p, &w->err),
        BELAY_INVALID, "external_ref");
    WHY(w, hold_try(w, "p", "o", -1), BELAY_INVALID, "lease");
    WHY(w, hold_try(w, "p", "o", BELAY_LEASE_MAX_MS + 1), BELAY_INVALID, "lease");
    WHY(w, hold_try(w, "p", "", 1), BELAY_INVALID, "owner_id");
    const struct belay_process_lease *l = NULL;
    WHY(w, belay_process_lease_parse("prl:1/x", w->arena, &l, &w->err),
        BELAY_BAD_HANDLE, "lease");
}

static void lease_as_text(struct world *w)
{
    const struct belay_process_lease *l, *back = NULL;
    const char *handle = NULL;

    enroll_id(w, "a/b %c\xc3\xa4");
    l = hold(w, "a/b %c\xc3\xa4", "one", MINUTE);
    RC(w, belay_process_lease_text(l, w->arena, &handle, &w->err), BELAY_OK);
    for (const char *c = handle; *c; c++)
        OK(w, *c > ' ' && *c <= '~');
    RC(w, belay_process_lease_parse(handle, w->arena, &back, &w->err), BELAY_OK);
    STR(w, back->process_id, l->process_id);
    RC(w, belay_process_renew(w->use, back, MINUTE, NULL, &w->err), BELAY_OK);
}

static const struct noun_case cases[] = {
    { "a terminal event whose output disagrees with its state is refused", disagreement,
      0 },
    { "events are refused in the order that is written down", order, 0 },
    { "P5: what ends a process without a lease names an authority that fits", authority,
      0 },
    { "completing once more with the same is the same answer", completing, 0 },
    { "L5: the holder of a process holds however late, and renews in time", late_holder,
      0 },
    { "a session and a frame of another one are never the same scope", pairs, 0 },
    { "a long payload is kept beside the log, and comes back whole", big, 0 },
    { "the tail of a log is read from its end, and pages miss nothing", tail, 0 },
    { "registrations that cannot be are refused by name", refused_input, 0 },
    { "a lease of a process is one printable text, and back", lease_as_text, 0 },
};
const struct topic topic_proc_traps = { cases, COUNT_OF(cases) };
