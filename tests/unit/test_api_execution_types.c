/* The engine's types as the library has them; cases have the names of the tests they follow,
 * as far as those mean something in C. */
#include <stddef.h>

#include <belay/belay.h>

#include "tap.h"

/* --- handles --- */

static void backend_tag_derives(struct tap *t)
{
    TAP_EQ(t, BELAY_BACKEND_VALKEY, 1);
    TAP_EQ(t, BELAY_BACKEND_POSTGRES, 2);
    TAP_EQ(t, BELAY_BACKEND_SQLITE, 3);
    TAP_EQ(t, BELAY_BACKEND_MEMORY, 4);
}

static void handle_kind_derives(struct tap *t)
{
    static const char *const names[] = { "fresh", "resumed", "suspended", "reclaimed" };

    for (int k = BELAY_HANDLE_FRESH; k <= BELAY_HANDLE_RECLAIMED; k++) {
        int back = -1;
        TAP_STR(t, belay_value_name(BELAY_DIM_HANDLE_KIND, k), names[k]);
        TAP_OK(t, belay_value_parse(BELAY_DIM_HANDLE_KIND, names[k], &back));
        TAP_EQ(t, back, k);
    }
    TAP_STR(t, belay_value_name(BELAY_DIM_HANDLE_KIND, 4), NULL);
}

/* clang-format off */
/* A handle as the library writes it: version, shape, tag, kind, and what it says. */
static const uint8_t opaque[] = {
    2, 1, BELAY_BACKEND_SQLITE, BELAY_HANDLE_FRESH,
    5, 0, 0, 0, 'e', 'x', 'e', '_', '1',           /* execution */
    7, 0, 0, 0,                                    /* attempt */
    5, 0, 0, 0, 'a', 't', 't', '_', '1',           /* attempt id */
    3, 0, 0, 0, 'l', 'i', 'd',                     /* lease id */
    9, 0, 0, 0, 0, 0, 0, 0,                        /* fence */
    0x30, 0x75, 0, 0, 0, 0, 0, 0,                  /* lease, ms */
    4, 0, 0, 0, 'l', 'a', 'n', 'e',                /* lane */
    2, 0, 0, 0, 'w', '1',                          /* worker */
    7, 0, 0, 0, 'd', 'e', 'f', 'a', 'u', 'l', 't', /* namespace */
};
/* clang-format on */

static struct belay_handle a_handle(void)
{
    return (struct belay_handle){ .backend = BELAY_BACKEND_SQLITE,
                                  .kind = BELAY_HANDLE_FRESH,
                                  .opaque = opaque,
                                  .opaque_len = sizeof(opaque) };
}

static struct belay_arena *arena_of(struct tap *t)
{
    struct belay_arena *a = NULL;

    TAP_EQ(t, belay_arena_new(&a, NULL), BELAY_OK);
    return a;
}

/* A store of its own, whose lost leases are not left alone. */
static struct belay *open_store(struct tap *t)
{
    struct belay_options o = { .size = sizeof(o), .reclaim_grace_ms = BELAY_NONE };
    struct belay *b = NULL;

    TAP_EQ(t, belay_open("memory:", &o, &b, NULL), BELAY_OK);
    return b;
}

static void handle_opaque_roundtrips(struct tap *t)
{
    struct belay_handle h = a_handle(), back = { 0 };
    struct belay_arena *a = arena_of(t);
    const char *text = NULL, *again = NULL;

    TAP_EQ(t, belay_handle_text(&h, a, &text, NULL), BELAY_OK);
    TAP_OK(t, text && strncmp(text, "blh1_", 5) == 0);
    TAP_EQ(t, belay_handle_parse(text, a, &back, NULL), BELAY_OK);
    TAP_EQ(t, back.opaque_len, sizeof(opaque));
    TAP_OK(t, back.opaque && memcmp(back.opaque, opaque, sizeof(opaque)) == 0);
    TAP_EQ(t, belay_handle_text(&back, a, &again, NULL), BELAY_OK);
    TAP_STR(t, again, text);
    belay_arena_free(a);
}

static void handle_composes(struct tap *t)
{
    struct belay_handle h = a_handle();
    struct belay_arena *a = arena_of(t);
    struct belay_handle_info info = { 0 };
    struct belay_error err;

    TAP_EQ(t, belay_handle_read(&h, a, &info, NULL), BELAY_OK);
    TAP_STR(t, info.execution_id, "exe_1");
    TAP_STR(t, info.attempt_id, "att_1");
    TAP_STR(t, info.lease_id, "lid");
    TAP_STR(t, info.lane, "lane");
    TAP_STR(t, info.worker, "w1");
    TAP_STR(t, info.ns, "default");
    TAP_EQ(t, info.attempt, 7);
    TAP_EQ(t, info.fence, 9);
    TAP_EQ(t, info.lease_ms, 30000);
    h.opaque_len--;
    TAP_EQ(t, belay_handle_read(&h, a, &info, &err), BELAY_BAD_HANDLE);
    TAP_STR(t, err.reason, "truncated");
    belay_arena_free(a);
}

/* --- claiming, frames, failures --- */

/* The id of what was submitted. */
static const char *submit(struct tap *t, struct belay *b, struct belay_arena *a,
                          struct belay_submission item)
{
    struct belay_submitted out = { .execution_id = NULL };
    struct belay_error err = { .message = "" };

    item.size = sizeof(item);
    item.lane = "default";
    if (!TAP_EQ(t, belay_execution_submit(b, &item, 1, a, &out, &err), BELAY_OK))
        printf("# %s\n", err.message);
    return out.execution_id;
}

/* The one piece of work there is; its handle has no opaque bytes when there is none. */
static struct belay_work claim(struct tap *t, struct belay *b, struct belay_arena *a,
                               int64_t lease_ms)
{
    static const char *const lanes[] = { "default" };
    struct belay_claim_policy policy = { .size = sizeof(policy),
                                         .lanes = lanes,
                                         .n_lanes = 1,
                                         .worker = "w1",
                                         .lease_ms = lease_ms };
    struct belay_works works = { .n = 0 };

    TAP_EQ(t, belay_execution_claim(b, &policy, a, &works, NULL), BELAY_OK);
    return works.n > 0 ? works.work[0] : (struct belay_work){ .execution_id = NULL };
}

static void capability_set_derives(struct tap *t)
{
    static const char *const one[] = { "gpu", "cuda" };
    static const char *const two[] = { "cuda", "gpu", "cuda" };
    struct belay_arena *a = arena_of(t);
    struct belay *b = open_store(t);
    struct belay_execution e = { .id = NULL };
    const char *ids[] = {
        submit(t, b, a, (struct belay_submission){ .requires = one, .n_requires = 2 }),
        submit(t, b, a, (struct belay_submission){ .requires = two, .n_requires = 3 }),
    };

    for (size_t i = 0; i < 2; i++) {
        TAP_EQ(t, belay_execution_describe(b, ids[i], a, &e, NULL), BELAY_OK);
        if (TAP_EQ(t, e.n_requires, 2)) {
            TAP_STR(t, e.requires[0], "cuda");
            TAP_STR(t, e.requires[1], "gpu");
        }
    }
    /* Who has none of them is not asked to do it. */
    TAP_STR(t, claim(t, b, a, 0).execution_id, NULL);
    belay_close(b);
    belay_arena_free(a);
}

/* Zero is the usual one: at once, one piece of work, the usual lease. */
static void claim_policy_derives(struct tap *t)
{
    struct belay_arena *a = arena_of(t);
    struct belay *b = open_store(t);
    struct belay_handle_info info = { .lease_ms = 0 };

    TAP_STR(t, claim(t, b, a, 0).execution_id, NULL);
    const char *id = submit(t, b, a, (struct belay_submission){ .priority = 1 });
    (void)submit(t, b, a, (struct belay_submission){ .priority = 0 });
    struct belay_work work = claim(t, b, a, 0);
    TAP_STR(t, work.execution_id, id);
    TAP_EQ(t, belay_handle_read(&work.handle, a, &info, NULL), BELAY_OK);
    TAP_EQ(t, info.lease_ms, BELAY_EXECUTION_LEASE_MS);
    TAP_EQ(t, work.handle.backend, BELAY_BACKEND_MEMORY);
    TAP_EQ(t, work.handle.kind, BELAY_HANDLE_FRESH);
    belay_close(b);
    belay_arena_free(a);
}

static void frame_and_kind_derive(struct tap *t)
{
    static const char *const kinds[] = { "stdout", "stderr", "event", "blob" };
    struct belay_frame f = { .size = sizeof(f), .bytes = "hello", .len = 5, .seq = 3 };

    TAP_EQ(t, f.kind, BELAY_FRAME_STDOUT);
    TAP_EQ(t, f.mode, BELAY_FRAME_DURABLE);
    for (int k = BELAY_FRAME_STDOUT; k <= BELAY_FRAME_BLOB; k++)
        TAP_STR(t, belay_value_name(BELAY_DIM_FRAME_KIND, k), kinds[k]);
    TAP_STR(t, belay_value_name(BELAY_DIM_FRAME_MODE, f.mode), "durable");
}

static void failure_reason_and_class(struct tap *t)
{
    static const char *const classes[] = { NULL,          "transient", "permanent",
                                           "infra_crash", "timeout",   "cancelled" };
    struct belay_failure f = { .size = sizeof(f), .message = "boom" };
    int back = 77;

    TAP_OK(t, !f.detail && f.detail_len == 0);
    TAP_EQ(t, f.failure_class, BELAY_FAILURE_UNSET); /* which is refused */
    for (int c = BELAY_FAILURE_UNSET; c <= BELAY_FAILURE_CANCELLED; c++)
        TAP_STR(t, belay_value_name(BELAY_DIM_FAILURE_CLASS, c), classes[c]);
    TAP_OK(t, !belay_value_parse(BELAY_DIM_FAILURE_CLASS, "", &back));
    TAP_OK(t, !belay_value_parse(BELAY_DIM_FAILURE_CLASS, NULL, &back));
    TAP_EQ(t, back, 77);
}

static struct belay_ended fail(struct tap *t, struct belay *b, struct belay_arena *a,
                               enum belay_failure_class c)
{
    struct belay_work work = claim(t, b, a, 0);
    struct belay_failure f = { .size = sizeof(f),
                               .failure_class = (int32_t)c,
                               .handle = &work.handle,
                               .message = "boom" };
    struct belay_ended ended = { .outcome = 77 };

    TAP_EQ(t, belay_execution_fail(b, &f, 1, a, &ended, NULL), BELAY_OK);
    TAP_EQ(t, ended.code, BELAY_OK);
    return ended;
}

static void fail_outcome_variants(struct tap *t)
{
    struct belay_retry_policy retry = { .size = sizeof(retry), .max_retries = 1 };
    struct belay_submission item = { .retry = &retry };
    struct belay_arena *a = arena_of(t);
    struct belay *b = open_store(t);

    (void)submit(t, b, a, item);
    struct belay_ended ended = fail(t, b, a, BELAY_FAILURE_TRANSIENT);
    TAP_EQ(t, ended.outcome, BELAY_RETRY_SCHEDULED);
    TAP_OK(t, ended.delay_until_ms > 0);
    (void)submit(t, b, a, item);
    ended = fail(t, b, a, BELAY_FAILURE_PERMANENT);
    TAP_EQ(t, ended.outcome, BELAY_TERMINAL_FAILURE);
    TAP_EQ(t, ended.delay_until_ms, BELAY_TIME_NONE);
    belay_close(b);
    belay_arena_free(a);
}

static void lease_renewal_is_copy(struct tap *t)
{
    struct belay_arena *a = arena_of(t);
    struct belay *b = open_store(t);

    (void)submit(t, b, a, (struct belay_submission){ .priority = 0 });
    struct belay_work work = claim(t, b, a, 1000);
    struct belay_lease_renewal r = { .fence = 0 };
    TAP_EQ(t, belay_execution_renew(b, &work.handle, 60000, &r, NULL), BELAY_OK);
    struct belay_lease_renewal s = r;
    belay_close(b);
    TAP_EQ(t, s.fence, work.fence);
    TAP_OK(t, s.expires_at_ms > work.expires_at_ms);
    belay_arena_free(a);
}

/* Work whose lease was lost is granted as such, and claimed by the grant's id. */
static void reclaim_token_wraps_grant(struct tap *t)
{
    struct belay_arena *a = arena_of(t);
    struct belay *b = open_store(t);
    const char *id = submit(t, b, a, (struct belay_submission){ .priority = 0 });
    struct belay_work lost = claim(t, b, a, -1), work = { .fence = 0 };
    struct belay_grant g = { .grant_id = NULL };
    struct belay_timer_report report;

    TAP_EQ(t, belay_timers_step(b, NULL, &report, NULL), BELAY_OK);
    TAP_EQ(t, belay_execution_grant_one(b, id, "w2", 1000, a, &g, NULL), BELAY_OK);
    TAP_STR(t, g.execution_id, id);
    TAP_STR(t, g.partition_key, "default");
    TAP_STR(t, g.lane, "default");
    TAP_EQ(t, g.kind, BELAY_HANDLE_RECLAIMED);
    TAP_EQ(t, belay_execution_claim_grant(b, g.grant_id, "w2", 0, a, &work, NULL),
           BELAY_OK);
    TAP_EQ(t, work.handle.kind, BELAY_HANDLE_RECLAIMED);
    TAP_EQ(t, work.attempt_type, BELAY_ATTEMPT_RECLAIM);
    TAP_OK(t, work.fence > lost.fence);
    belay_close(b);
    belay_arena_free(a);
}

/* --- the state --- */

static void state_derives(struct tap *t)
{
    struct belay_vector v = { .phase = BELAY_PHASE_ACTIVE,
                              .ownership = BELAY_LEASE_REVOKED };

    TAP_EQ(t, belay_state_derive(&v), BELAY_STATE_ACTIVE);
    v.phase = BELAY_PHASE_TERMINAL;
    TAP_EQ(t, belay_state_derive(&v), BELAY_STATE_FAILED);
    TAP_STR(t, belay_value_name(BELAY_DIM_STATE, BELAY_STATE_ANY), NULL);
    TAP_STR(t, belay_value_name(-1, 0), NULL);
    TAP_STR(t, belay_value_name(BELAY_DIM_COUNT, 0), NULL);
}

/* --- waitpoints and signals --- */

static const char *redacted(const char *token)
{
    static char text[128];
    size_t len = belay_waitpoint_token_redact(token, text, sizeof(text));

    return len == strlen(text) ? text : "another length";
}

static void waitpoint_spec_derives(struct tap *t)
{
    static const char *const kinds[] = { "signal_name", "correlation_id", "external" };
    struct belay_waitpoint_spec spec = { .size = sizeof(spec),
                                         .kind = BELAY_WAITPOINT_SIGNAL_NAME,
                                         .matcher = "approved",
                                         .matcher_len = 8,
                                         .token = "kid1:deadbeef" };
    int back = 77;

    TAP_STR(t, spec.token, "kid1:deadbeef"); /* any string will do */
    for (int k = BELAY_WAITPOINT_SIGNAL_NAME; k <= BELAY_WAITPOINT_EXTERNAL; k++) {
        TAP_STR(t, belay_waitpoint_kind_name(k), kinds[k]);
        TAP_OK(t, belay_waitpoint_kind_parse(kinds[k], &back));
        TAP_EQ(t, back, k);
    }
    TAP_STR(t, belay_waitpoint_kind_name(3), NULL);
    TAP_STR(t, belay_waitpoint_kind_name(-1), NULL);
    TAP_OK(t, !belay_waitpoint_kind_parse("External", &back));
    TAP_OK(t, !belay_waitpoint_kind_parse(NULL, &back));
    TAP_EQ(t, back, BELAY_WAITPOINT_EXTERNAL);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_signal(const struct belay_resume_signal *a,
                        const struct belay_resume_signal *b)
{
    return same_text(a->signal_id, b->signal_id) &&
           same_text(a->signal_name, b->signal_name) &&
           same_text(a->signal_category, b->signal_category) &&
           same_text(a->source_type, b->source_type) &&
           same_text(a->source_identity, b->source_identity) &&
           same_text(a->correlation_id, b->correlation_id) &&
           a->accepted_at_ms == b->accepted_at_ms && a->payload_len == b->payload_len &&
           (a->payload_len == 0 || memcmp(a->payload, b->payload, a->payload_len) == 0);
}

static void resume_signal_moved_and_derives(struct tap *t)
{
    const struct belay_resume_signal s = { .signal_id = "sig_1",
                                           .signal_name = "approve",
                                           .signal_category = "decision",
                                           .source_type = "user",
                                           .source_identity = "u1",
                                           .correlation_id = "c1",
                                           .accepted_at_ms = 10 };
    struct belay_resume_signal copy = s;

    TAP_OK(t, same_signal(&copy, &s));
    TAP_OK(t, !copy.payload && copy.payload_len == 0); /* none */
    TAP_STR(t, copy.signal_name, "approve");
    TAP_STR(t, copy.source_identity, "u1");
    TAP_EQ(t, copy.accepted_at_ms, 10);
    copy.payload = "yes";
    copy.payload_len = 3;
    TAP_OK(t, !same_signal(&copy, &s));
    copy = s;
    copy.signal_name = "refuse";
    TAP_OK(t, !same_signal(&copy, &s));
}

static void tokens_are_redacted(struct tap *t)
{
    char text[96];

    TAP_STR(t, redacted("kid1:0123456789abcdef0123456789abcdef01234567"),
            "kid1:<REDACTED:len=40>");
    TAP_STR(t, redacted("kid1:deadbeef"), "kid1:<REDACTED:len=8>");
    TAP_STR(t, redacted("k:a:b"), "k:<REDACTED:len=3>");
    TAP_STR(t, redacted("secret"), "<REDACTED:malformed>");
    TAP_STR(t, redacted(":secret"), "<REDACTED:malformed>");
    TAP_STR(t, redacted("secret:"), "<REDACTED:malformed>");
    TAP_STR(t, redacted("sec ret:x"), "<REDACTED:malformed>");
    TAP_STR(t, redacted("sec\x1bret:x"), "<REDACTED:malformed>");
    TAP_STR(t, redacted(""), "<REDACTED:malformed>");
    TAP_STR(t, redacted(NULL), "<REDACTED:malformed>");
    memset(text, 'k', 65);
    memcpy(text + 65, ":x", 3);
    TAP_STR(t, redacted(text), "<REDACTED:malformed>");
    memcpy(text + 64, ":x", 3);
    TAP_EQ(t, strncmp(redacted(text), text, 65), 0);
}

static void redacting_is_cut_like_snprintf(struct tap *t)
{
    char text[8] = "1234567";

    TAP_EQ(t, belay_waitpoint_token_redact("kid1:deadbeef", NULL, 0), 21);
    TAP_EQ(t, belay_waitpoint_token_redact("kid1:deadbeef", text, 0), 21);
    TAP_STR(t, text, "1234567");
    TAP_EQ(t, belay_waitpoint_token_redact("kid1:deadbeef", text, 1), 21);
    TAP_STR(t, text, "");
    TAP_EQ(t, belay_waitpoint_token_redact("kid1:deadbeef", text, 7), 21);
    TAP_STR(t, text, "kid1:<");
}

/* --- usage --- */

static struct belay_usage_dimensions usage_with(const struct belay_custom_usage *custom,
                                                size_t n)
{
    return (struct belay_usage_dimensions){ .size =
                                                sizeof(struct belay_usage_dimensions),
                                            .has_wall_ms = true,
                                            .input_tokens = 10,
                                            .output_tokens = 20,
                                            .wall_ms = 150,
                                            .custom = custom,
                                            .n_custom = n };
}

static void usage_dimensions_default_and_eq(struct tap *t)
{
    static const struct belay_custom_usage one[] = { { "net_bytes", 42 },
                                                     { "cpu", 7 } };
    static const struct belay_custom_usage two[] = { { "cpu", 7 },
                                                     { "net_bytes", 42 } };
    struct belay_usage_dimensions u = usage_with(one, 2), v = usage_with(two, 2),
                                  none = { 0 };
    struct belay_arena *a = arena_of(t);

    TAP_EQ(t, none.input_tokens, 0);
    TAP_OK(t, !none.has_wall_ms);
    TAP_EQ(t, belay_usage_sort(&u, a, &u, NULL), BELAY_OK);
    TAP_STR(t, u.custom[0].name, "cpu");
    TAP_EQ(t, u.custom[0].amount, 7);
    TAP_STR(t, u.custom[1].name, "net_bytes");
    TAP_STR(t, one[0].name, "net_bytes");
    TAP_OK(t, belay_usage_eq(&u, &v));
    v.wall_ms = 151;
    TAP_OK(t, !belay_usage_eq(&u, &v));
    u.has_wall_ms = v.has_wall_ms = false; /* then it does not matter */
    TAP_OK(t, belay_usage_eq(&u, &v));
    v.n_custom = 1;
    TAP_OK(t, !belay_usage_eq(&u, &v));
    TAP_OK(t, !belay_usage_eq(&u, &none));
    TAP_OK(t, !belay_usage_eq(&u, NULL));
    belay_arena_free(a);
}

static const char *usage_refusal(struct belay_arena *a, struct belay_usage_dimensions u)
{
    static struct belay_error err;
    struct belay_usage_dimensions out = { .size = sizeof(out), .input_tokens = 77 };

    err = (struct belay_error){ 0 };
    if (belay_usage_sort(&u, a, &out, &err) == BELAY_OK || out.input_tokens != 77)
        return "not refused";
    return err.message;
}

static void usage_is_checked(struct tap *t)
{
    static const struct belay_custom_usage twice[] = { { "a", 1 },
                                                       { "b", 1 },
                                                       { "a", 2 } };
    static const struct belay_custom_usage unnamed[] = { { "", 1 } };
    static const struct belay_custom_usage negative[] = { { "a", -1 } };
    struct belay_custom_usage many[BELAY_USAGE_CUSTOM_MAX + 1] = { { "x", 0 } };
    struct belay_arena *a = arena_of(t);
    struct belay_usage_dimensions u = usage_with(NULL, 0);

    TAP_STR(t, usage_refusal(a, usage_with(twice, 3)),
            "usage: custom dimension 3: its name is there twice");
    TAP_STR(t, usage_refusal(a, usage_with(unnamed, 1)),
            "usage: custom dimension 1: it has no name");
    TAP_STR(t, usage_refusal(a, usage_with(negative, 1)),
            "usage: custom dimension 1: its amount is below 0");
    TAP_STR(t, usage_refusal(a, usage_with(many, BELAY_USAGE_CUSTOM_MAX + 1)),
            "usage: 65 custom dimensions, 64 are the most");
    u.output_tokens = -1;
    TAP_STR(t, usage_refusal(a, u), "usage: an amount is below 0");
    TAP_OK(t, strstr(usage_refusal(a, usage_with(NULL, 1)), "NULL") != NULL);
    u = usage_with(NULL, 0);
    u.size = 3;
    TAP_OK(t, strstr(usage_refusal(a, u), "belay_usage_dimensions") != NULL);
    belay_arena_free(a);
}

static void admission_decision_derives(struct tap *t)
{
    struct belay_admission_decision a = { .decision = BELAY_ADMISSION_ADMITTED };
    struct belay_admission_decision th = { .decision = BELAY_ADMISSION_THROTTLED,
                                           .retry_after_ms = 25 };
    struct belay_admission_decision r = { .decision = BELAY_ADMISSION_REJECTED,
                                          .reason = "quota" };

    TAP_STR(t, belay_admission_name(a.decision), "admitted");
    TAP_STR(t, belay_admission_name(th.decision), "throttled");
    TAP_STR(t, belay_admission_name(r.decision), "rejected");
    TAP_STR(t, belay_admission_name(3), NULL);
}

/* --- flows and completions --- */

static void cancel_flow_policy_and_wait(struct tap *t)
{
    static const char *const names[] = { "flow_only", "cancel_all", "cancel_pending" };
    static const char *const waits[] = { "none", "timeout", "forever" };

    for (int p = BELAY_CANCEL_FLOW_ONLY; p <= BELAY_CANCEL_FLOW_PENDING; p++) {
        int back = -1;
        TAP_STR(t, belay_cancel_flow_policy_name(p), names[p]);
        TAP_OK(t, belay_cancel_flow_policy_parse(names[p], &back));
        TAP_EQ(t, back, p);
    }
    for (int w = BELAY_FLOW_WAIT_NONE; w <= BELAY_FLOW_WAIT_FOREVER; w++)
        TAP_STR(t, belay_cancel_flow_wait_name(w), waits[w]);
    TAP_STR(t, belay_cancel_flow_policy_name(3), NULL);
    TAP_STR(t, belay_cancel_flow_wait_name(3), NULL);
}

static void completion_payload_derives(struct tap *t)
{
    struct belay_event event = { .type = BELAY_EVENT_COMPLETION,
                                 .execution_id = "exe_1",
                                 .outcome = BELAY_TERMINAL_SUCCESS,
                                 .payload = "ok",
                                 .payload_len = 2,
                                 .produced_at_ms = 1234,
                                 .flow = "flo_1" };
    struct belay_completion_payload c = { .produced_at_ms = 77 };

    event.type = BELAY_EVENT_ACQUIRED;
    TAP_OK(t, !belay_completion_of(&event, &c));
    TAP_OK(t, !belay_completion_of(NULL, &c));
    TAP_EQ(t, c.produced_at_ms, 77);
    event.type = BELAY_EVENT_COMPLETION;
    TAP_OK(t, belay_completion_of(&event, &c));
    TAP_STR(t, c.execution_id, "exe_1");
    TAP_STR(t, belay_value_name(BELAY_DIM_OUTCOME, c.outcome), "success");
    TAP_EQ(t, c.payload_len, 2);
    TAP_OK(t, c.payload == event.payload);
    TAP_EQ(t, c.produced_at_ms, 1234);
    TAP_STR(t, c.flow_id, "flo_1");
}

/* --- the filter --- */

static const struct belay_tag instance_1[] = { { "a.other", "x" },
                                               { "app.instance", "i-1" } };
static const struct belay_tag instance_2[] = { { "app.instance", "i-2" } };

static struct belay_scanner_filter filter_of(const char *ns, const char *instance)
{
    return (struct belay_scanner_filter){ .size = sizeof(struct belay_scanner_filter),
                                          .ns = ns,
                                          .tag_key = instance ? "app.instance" : NULL,
                                          .tag_value = instance };
}

static void scanner_filter_noop_and_default(struct tap *t)
{
    struct belay_scanner_filter f = filter_of(NULL, NULL);

    TAP_OK(t, belay_scanner_filter_is_noop(&f));
    TAP_OK(t, belay_scanner_filter_matches(&f, NULL, NULL, 0));
    TAP_OK(t, belay_scanner_filter_matches(&f, "t1", instance_1, 2));
}

static void scanner_filter_namespace_match(struct tap *t)
{
    struct belay_scanner_filter f = filter_of("tenant-a", NULL);

    TAP_OK(t, !belay_scanner_filter_is_noop(&f));
    TAP_OK(t, belay_scanner_filter_matches(&f, "tenant-a", NULL, 0));
    TAP_OK(t, !belay_scanner_filter_matches(&f, "tenant-b", NULL, 0));
    TAP_OK(t, !belay_scanner_filter_matches(&f, NULL, NULL, 0));
}

static void scanner_filter_instance_tag_match(struct tap *t)
{
    struct belay_scanner_filter f = filter_of(NULL, "i-1");

    TAP_OK(t, belay_scanner_filter_matches(&f, NULL, instance_1, 2));
    TAP_OK(t, !belay_scanner_filter_matches(&f, NULL, instance_2, 1));
    TAP_OK(t, !belay_scanner_filter_matches(&f, NULL, NULL, 0));
}

static void scanner_filter_both_dimensions(struct tap *t)
{
    struct belay_scanner_filter f = filter_of("tenant-a", "i-1");

    TAP_OK(t, belay_scanner_filter_matches(&f, "tenant-a", instance_1, 2));
    TAP_OK(t, !belay_scanner_filter_matches(&f, "tenant-a", instance_2, 1));
    TAP_OK(t, !belay_scanner_filter_matches(&f, "tenant-b", instance_1, 2));
    TAP_OK(t, !belay_scanner_filter_matches(&f, NULL, instance_1, 2));
}

/* What is not named is not set. */
static void scanner_filter_builder_construction(struct tap *t)
{
    const struct belay_scanner_filter empty = { .size = sizeof(empty) };
    const struct belay_scanner_filter ns_only = { .size = sizeof(ns_only),
                                                  .ns = "tenant-a" };
    const struct belay_scanner_filter tag_only = { .size = sizeof(tag_only),
                                                   .tag_key = "app.instance",
                                                   .tag_value = "i-1" };
    struct belay_scanner_filter both = ns_only;

    TAP_OK(t, belay_scanner_filter_is_noop(&empty));
    TAP_OK(t, !belay_scanner_filter_is_noop(&ns_only));
    TAP_OK(t, belay_scanner_filter_matches(&ns_only, "tenant-a", NULL, 0));
    TAP_OK(t, !belay_scanner_filter_is_noop(&tag_only));
    TAP_OK(t, belay_scanner_filter_matches(&tag_only, NULL, instance_1, 2));
    both.tag_key = tag_only.tag_key;
    both.tag_value = tag_only.tag_value;
    TAP_OK(t, belay_scanner_filter_matches(&both, "tenant-a", instance_1, 2));
    TAP_OK(t, !belay_scanner_filter_matches(&both, "tenant-b", instance_1, 2));
}

/* --- connections --- */

static void backend_config_valkey_ctor(struct tap *t)
{
    struct belay_options o = { .size = sizeof(o) };
    struct belay *b = NULL;
    struct belay_error err;

    /* Unset leaves the choice to the store; host and port are the URL's. */
    TAP_EQ(t, o.request_timeout_ms, 0);
    TAP_EQ(t, o.retry.exponent_base, 0);
    TAP_EQ(t, o.retry.factor, 0);
    TAP_EQ(t, o.retry.number_of_retries, 0);
    TAP_EQ(t, o.retry.jitter_percent, 0);
    TAP_EQ(t, belay_open("valkey://host.invalid:port", &o, &b, &err), BELAY_INVALID);
    TAP_OK(t, !b);
}

#define CASE(name)  \
    {               \
#name, name \
    }
static const struct tap_case cases[] = {
    CASE(backend_tag_derives),
    CASE(handle_kind_derives),
    CASE(handle_opaque_roundtrips),
    CASE(handle_composes),
    CASE(capability_set_derives),
    CASE(claim_policy_derives),
    CASE(frame_and_kind_derive),
    CASE(waitpoint_spec_derives),
    CASE(resume_signal_moved_and_derives),
    CASE(failure_reason_and_class),
    CASE(usage_dimensions_default_and_eq),
    CASE(admission_decision_derives),
    CASE(reclaim_token_wraps_grant),
    CASE(lease_renewal_is_copy),
    CASE(cancel_flow_policy_and_wait),
    CASE(completion_payload_derives),
    CASE(fail_outcome_variants),
    CASE(scanner_filter_noop_and_default),
    CASE(scanner_filter_namespace_match),
    CASE(scanner_filter_instance_tag_match),
    CASE(scanner_filter_both_dimensions),
    CASE(scanner_filter_builder_construction),
    CASE(backend_config_valkey_ctor),
    { "the public state is derived through the library, too", state_derives },
    { "a token is printed without its digest, whatever it is", tokens_are_redacted },
    { "a redacted token is cut like snprintf cuts, and counted in full",
      redacting_is_cut_like_snprintf },
    { "usage that cannot be is refused, and nothing is written", usage_is_checked },
};

int main(int argc, char **argv)
{
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
