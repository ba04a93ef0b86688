/* Handles of executions: bytes, text, and whatever is no handle; the policy as JSON. */
#include "work/execution_rows.h"

#include "test_work.h"

/* --- hands --- */

static const struct exec_handle sample = {
    .backend = BELAY_BACKEND_MEMORY,
    .kind = BELAY_HANDLE_RESUMED,
    .ns = { (const uint8_t *)"default", 7 },
    .execution = { (const uint8_t *)"exe_1", 5 },
    .attempt_id = { (const uint8_t *)"att_1", 5 },
    .lease_id = { (const uint8_t *)"00112233445566778899aabbccddeeff", 32 },
    .lane = { (const uint8_t *)"builds", 6 },
    .worker = { (const uint8_t *)"w-\xc3\xa4", 4 },
    .attempt = 3,
    .fence = 0x0102030405,
    .lease_ms = 30000,
};

struct hand {
    struct tap *t;
    struct belay_arena arena;
    struct belay_error err;
};

static bool is_bad(struct hand *h, belay_rc rc, const char *reason)
{
    return TAP_EQ(h->t, rc, BELAY_BAD_HANDLE) && TAP_STR(h->t, h->err.reason, reason);
}

static struct belay_handle encoded(struct hand *h, const struct exec_handle *in)
{
    struct belay_handle out = { .backend = 0 };

    TAP_EQ(h->t, handle_encode(in, &h->arena, &out, &h->err), BELAY_OK);
    return out;
}

static void check_same(struct hand *h, const struct exec_handle *a,
                       const struct exec_handle *b)
{
    TAP_EQ(h->t, a->backend, b->backend);
    TAP_EQ(h->t, a->kind, b->kind);
    TAP_OK(h->t, bytes_eq(a->ns, b->ns) && bytes_eq(a->execution, b->execution));
    TAP_OK(h->t, bytes_eq(a->attempt_id, b->attempt_id));
    TAP_OK(h->t, bytes_eq(a->lease_id, b->lease_id));
    TAP_OK(h->t, bytes_eq(a->lane, b->lane) && bytes_eq(a->worker, b->worker));
    TAP_EQ(h->t, a->attempt, b->attempt);
    TAP_EQ(h->t, a->fence, b->fence);
    TAP_EQ(h->t, a->lease_ms, b->lease_ms);
}

/* A handle of these bytes, which says of itself what they say. */
static struct belay_handle of_bytes(const uint8_t *bytes, size_t len)
{
    return (struct belay_handle){ .backend = len > 2 ? bytes[2] : 0,
                                  .kind = len > 3 ? bytes[3] : 0,
                                  .opaque = bytes,
                                  .opaque_len = len };
}

/* --- bytes --- */

static void decodes_what_was_encoded(struct tap *t)
{
    struct hand h = { .t = t };
    struct exec_handle out;

    for (int32_t tag = BELAY_BACKEND_VALKEY; tag <= BELAY_BACKEND_MEMORY; tag++) {
        for (int32_t kind = BELAY_HANDLE_FRESH; kind <= BELAY_HANDLE_RECLAIMED;
             kind++) {
            struct exec_handle in = sample;
            in.backend = tag;
            in.kind = kind;
            struct belay_handle made = encoded(&h, &in);
            TAP_EQ(t, made.backend, tag);
            TAP_EQ(t, made.kind, kind);
            TAP_EQ(t, handle_decode(&made, &out, &h.err), BELAY_OK);
            check_same(&h, &out, &in);
        }
    }
    arena_release(&h.arena);
}

static void has_the_documented_layout(struct tap *t)
{
    static const uint8_t want[] = "\x02\x01\x04\x01"
                                  "\x05\0\0\0exe_1\x03\0\0\0\x05\0\0\0att_1"
                                  "\x20\0\0\0"
                                  "00112233445566778899aabbccddeeff"
                                  "\x05\x04\x03\x02\x01\0\0\0\x30\x75\0\0\0\0\0\0"
                                  "\x06\0\0\0builds\x04\0\0\0w-\xc3\xa4"
                                  "\x07\0\0\0default";
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample);

    TAP_OK(t, bytes_eq(bytes_of(made.opaque, made.opaque_len),
                       bytes_of(want, sizeof(want) - 1)));
    arena_release(&h.arena);
}

static void takes_numbers_to_their_ends(struct tap *t)
{
    struct hand h = { .t = t };
    struct exec_handle in = sample, out;
    struct belay_handle made = { .backend = 0 };

    in.attempt = UINT32_MAX;
    in.fence = ((int64_t)1 << 53) - 1;
    in.lease_ms = LEASE_MS_MAX;
    made = encoded(&h, &in);
    TAP_EQ(t, handle_decode(&made, &out, &h.err), BELAY_OK);
    check_same(&h, &out, &in);
    in.attempt++;
    is_bad(&h, handle_encode(&in, &h.arena, &made, &h.err), "field");
    in = sample;
    in.fence = -1;
    is_bad(&h, handle_encode(&in, &h.arena, &made, &h.err), "field");
    in = sample;
    in.lease_ms = LEASE_MS_MAX + 1;
    is_bad(&h, handle_encode(&in, &h.arena, &made, &h.err), "field");
    in = sample;
    in.worker = bytes_of(NULL, 0);
    is_bad(&h, handle_encode(&in, &h.arena, &made, &h.err), "field");
    in = sample;
    in.kind = BELAY_HANDLE_RECLAIMED + 1;
    is_bad(&h, handle_encode(&in, &h.arena, &made, &h.err), "kind");
    arena_release(&h.arena);
}

static void knows_a_handle_that_was_cut_anywhere(struct tap *t)
{
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample);
    struct exec_handle out;

    for (size_t len = 0; len < made.opaque_len; len++) {
        /* A piece of its own, so that a reader beyond the end is caught. */
        uint8_t *cut = malloc(len ? len : 1);
        memcpy(cut, made.opaque, len);
        struct belay_handle short_one = { made.backend, made.kind, cut, len };
        is_bad(&h, handle_decode(&short_one, &out, &h.err), "truncated");
        free(cut);
    }
    is_bad(&h, handle_decode(&(struct belay_handle){ 4, 1, NULL, 99 }, &out, &h.err),
           "truncated");
    arena_release(&h.arena);
}

static void refuses_what_follows_the_end(struct tap *t)
{
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample);
    uint8_t *longer = arena_zalloc(&h.arena, 1, made.opaque_len + 1);
    struct exec_handle out;

    memcpy(longer, made.opaque, made.opaque_len);
    made.opaque = longer;
    made.opaque_len++;
    is_bad(&h, handle_decode(&made, &out, &h.err), "trailing_bytes");
    arena_release(&h.arena);
}

/* One byte of the sample replaced. */
struct damaged {
    size_t at;
    uint8_t with;
    const char *reason;
};

static void names_what_is_wrong_with_each_part(struct tap *t)
{
    static const struct damaged cases[] = {
        { 0, 1, "wire_version" },  { 0, 3, "wire_version" },  { 1, 2, "wire_version" },
        { 2, 0, "backend_tag" },   { 2, 5, "backend_tag" },   { 3, 4, "kind" },
        { 3, 0xff, "kind" },       { 4, 0, "field" },        /* an empty id */
        { 4, 0xff, "truncated" },  { 7, 0xff, "truncated" }, /* almost 4 GiB */
        { 8, 0xff, "utf8" },       { 8, '\n', "field" },      { 8, 0, "field" },
        { 62 + 7, 0xff, "field" },                            /* fence over 2^63 */
        { 62 + 6, 0xff, "field" }, { 70 + 7, 0x80, "field" }, /* lease */
        { 70 + 4, 1, "field" },
    };
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample);
    struct exec_handle out;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint8_t *bytes = malloc(made.opaque_len);
        memcpy(bytes, made.opaque, made.opaque_len);
        bytes[cases[i].at] = cases[i].with;
        struct belay_handle d = of_bytes(bytes, made.opaque_len);
        if (!is_bad(&h, handle_decode(&d, &out, &h.err), cases[i].reason))
            printf("# byte %zu\n", cases[i].at);
        free(bytes);
    }
    arena_release(&h.arena);
}

/* Whatever a byte becomes: another handle, which encodes to just those bytes, or none. */
static void stands_every_byte_turned(struct tap *t)
{
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample);

    for (size_t at = 0; at < made.opaque_len; at++) {
        for (unsigned with = 0; with < 256; with++) {
            uint8_t *bytes = malloc(made.opaque_len);
            struct exec_handle out;
            memcpy(bytes, made.opaque, made.opaque_len);
            bytes[at] = (uint8_t)with;
            struct belay_handle d = of_bytes(bytes, made.opaque_len);
            struct arena_mark mark = arena_mark(&h.arena);
            belay_rc rc = handle_decode(&d, &out, &h.err);
            if (rc) {
                TAP_EQ(t, rc, BELAY_BAD_HANDLE);
                TAP_OK(t, h.err.reason[0] != '\0');
            } else {
                struct belay_handle again = encoded(&h, &out);
                TAP_OK(t, bytes_eq(bytes_of(again.opaque, again.opaque_len),
                                   bytes_of(bytes, made.opaque_len)));
            }
            arena_rewind(&h.arena, mark);
            free(bytes);
        }
    }
    arena_release(&h.arena);
}

static void must_be_what_it_says_of_itself(struct tap *t)
{
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample), other = made;
    struct exec_handle out;
    const char *text;

    other.backend = BELAY_BACKEND_SQLITE;
    is_bad(&h, handle_decode(&other, &out, &h.err), "backend_tag");
    other = made;
    other.kind = BELAY_HANDLE_FRESH;
    is_bad(&h, handle_decode(&other, &out, &h.err), "kind");
    is_bad(&h, handle_text(&other, &h.arena, &text, &h.err), "kind");
    arena_release(&h.arena);
}

/* --- whose it is --- */

static void is_checked_against_store_and_namespace(struct tap *t)
{
    struct hand h = { .t = t };
    struct work w;
    struct exec_handle in = sample, out;

    if (work_open(&w, t, ON_MEMORY)) {
        struct exec_site site = { .space = w.space, .backend = BELAY_BACKEND_MEMORY };
        struct belay_handle made = encoded(&h, &in);
        TAP_EQ(t, handle_check(&site, &made, &out, &h.err), BELAY_OK);
        check_same(&h, &out, &in);
        site.backend = BELAY_BACKEND_POSTGRES;
        is_bad(&h, handle_check(&site, &made, &out, &h.err), "other_backend");
        site.backend = BELAY_BACKEND_MEMORY;
        in.ns = bytes_str("elsewhere");
        made = encoded(&h, &in);
        is_bad(&h, handle_check(&site, &made, &out, &h.err), "other_namespace");
        in = sample;
        in.kind = BELAY_HANDLE_SUSPENDED;
        made = encoded(&h, &in);
        TAP_EQ(t, handle_check(&site, &made, &out, &h.err), BELAY_WRONG_STATE);
        TAP_STR(t, h.err.reason, "handle_kind");
        made.opaque_len--;
        is_bad(&h, handle_check(&site, &made, &out, &h.err), "truncated");
    }
    work_close(&w);
    arena_release(&h.arena);
}

/* --- text --- */

static void is_one_printable_string(struct tap *t)
{
    struct hand h = { .t = t };

    /* Of every length modulo three. */
    for (size_t more = 0; more < 3; more++) {
        struct exec_handle in = sample, out;
        struct belay_handle made, back = { .backend = 0 };
        const char *text = NULL;
        in.worker = bytes_of("workers", 4 + more);
        made = encoded(&h, &in);
        TAP_EQ(t, handle_text(&made, &h.arena, &text, &h.err), BELAY_OK);
        TAP_OK(t, strncmp(text, "blh1_", 5) == 0);
        TAP_EQ(t,
               strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789-_"),
               strlen(text));
        TAP_EQ(t, handle_parse(text, &h.arena, &back, &h.err), BELAY_OK);
        TAP_EQ(t, handle_decode(&back, &out, &h.err), BELAY_OK);
        check_same(&h, &out, &in);
    }
    arena_release(&h.arena);
}

static void refuses_text_that_is_none(struct tap *t)
{
    static const char *const texts[] = { "",
                                         "b",
                                         "blh1",
                                         "blh2_AgEEAQ",
                                         "BLH1_AgEEAQ",
                                         "blh1_AgEEAQ=",
                                         "blh1_Ag EE",
                                         "blh1_Ag+E",
                                         "blh1_Ag/E",
                                         "blh1_A",
                                         "blh1_\xc3\xa4",
                                         "blh1_AgEEAR" /* bits left over */ };
    struct hand h = { .t = t };
    struct belay_handle out;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (!is_bad(&h, handle_parse(texts[i], &h.arena, &out, &h.err), "text"))
            printf("# %s\n", texts[i]);
    }
    is_bad(&h, handle_parse("blh1_", &h.arena, &out, &h.err), "truncated");
    is_bad(&h, handle_parse("blh1_AgEEAQ", &h.arena, &out, &h.err), "truncated");
    is_bad(&h, handle_parse("blh1_AwEEAQ", &h.arena, &out, &h.err), "wire_version");
    char *endless = arena_alloc(&h.arena, 100001);
    memset(endless, 'A', 100000);
    memcpy(endless, "blh1_", 5);
    endless[100000] = '\0';
    is_bad(&h, handle_parse(endless, &h.arena, &out, &h.err), "text");
    arena_release(&h.arena);
}

/* Every character replaced or cut: never anything but a handle with that very text. */
static void has_one_text(struct tap *t)
{
    struct hand h = { .t = t };
    struct belay_handle made = encoded(&h, &sample);
    const char *text = NULL;

    TAP_EQ(t, handle_text(&made, &h.arena, &text, &h.err), BELAY_OK);
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at++) {
        static const char others[] = "\x01 A9z-_=\xff";
        for (size_t i = 0; i < sizeof(others); i++) { /* the last one cuts it */
            struct belay_handle back;
            const char *again = NULL;
            char *changed = strdup(text);
            changed[at] = others[i];
            struct arena_mark mark = arena_mark(&h.arena);
            belay_rc rc = handle_parse(changed, &h.arena, &back, &h.err);
            if (rc == BELAY_OK)
                rc = handle_text(&back, &h.arena, &again, &h.err);
            TAP_OK(t, rc == BELAY_BAD_HANDLE ||
                          (rc == BELAY_OK && strcmp(again, changed) == 0));
            arena_rewind(&h.arena, mark);
            free(changed);
        }
    }
    arena_release(&h.arena);
}

/* --- the policy --- */

struct policy_run {
    const struct belay_submission *s;
    struct bytes text; /* instead of s */
    struct exec_policy out;
};

static belay_rc policy_body(struct txn *t, void *arg)
{
    struct policy_run *p = arg;
    struct value v[SPEC_COLUMNS] = {
        [SPEC_ID] = value_str("exe_1"), [SPEC_POLICY] = value_json(p->text)
    };
    struct row row = { .type = &row_execution_spec, .ver = 1, .v = v };

    return exec_policy_read(t, &row, &p->out);
}

static belay_rc read_policy(struct work *w, struct bytes text, struct exec_policy *out)
{
    struct policy_run p = { .text = text };
    belay_rc rc = txn_run(w->space, policy_body, &p, NULL, &w->arena, &w->err);

    *out = p.out;
    return rc;
}

static const char *written(struct work *w, const struct belay_submission *s)
{
    struct bytes text = { 0 }, copy = { 0 };

    WORK_RC(w, exec_policy_write(s, &w->arena, &text, &w->err), BELAY_OK);
    TAP_OK(w->t, arena_copy(&w->arena, text, &copy));
    return (const char *)copy.ptr;
}

static const struct belay_retry_policy three = { .size = sizeof(three),
                                                 .max_retries = 3 };

static void the_usual_policy_is_empty(struct tap *t)
{
    struct belay_retry_policy none = { .delay_ms = 5, .no_jitter = true };
    struct belay_submission s = { .retry = &none,
                                  .max_reclaims = BELAY_MAX_RECLAIMS,
                                  .delay_ms = 99,
                                  .priority = 5 };
    struct exec_policy p;
    struct work w;

    if (work_open(&w, t, ON_MEMORY)) {
        TAP_STR(t, written(&w, &s), "{}");
        WORK_RC(&w, read_policy(&w, bytes_str("{}"), &p), BELAY_OK);
        TAP_EQ(t, p.max_reclaims, BELAY_MAX_RECLAIMS);
        TAP_EQ(t, p.retry.max_retries, 0);
        TAP_EQ(t, p.retry.delay_ms, 1000);
        TAP_EQ(t, p.retry.max_delay_ms, 60000);
        TAP_OK(t, p.retry.multiplier == 2 && p.retry.jitter);
        TAP_EQ(t, p.retry.backoff, BELAY_BACKOFF_EXPONENTIAL);
        TAP_EQ(t, p.retry.retryable.len, 0);
        TAP_EQ(t, p.attempt_timeout_ms, 0);
        TAP_EQ(t, p.deadline_ms, 0);
    }
    work_close(&w);
}

static void a_policy_leaves_out_what_is_usual(struct tap *t)
{
    static const char *const list[] = { "timeout", "over \"quota\"" };
    struct belay_retry_policy r = three;
    struct belay_submission s = { .retry = &three };
    struct work w;

    if (work_open(&w, t, ON_MEMORY)) {
        TAP_STR(t, written(&w, &s), "{\"retry\":{\"max_retries\":3}}");
        s.retry = &r;
        r.delay_ms = 1000;
        r.max_delay_ms = 60000;
        r.multiplier = 2;
        TAP_STR(t, written(&w, &s), "{\"retry\":{\"max_retries\":3}}");
        r.backoff = BELAY_BACKOFF_FIXED;
        TAP_STR(t, written(&w, &s),
                "{\"retry\":{\"backoff\":{\"type\":\"fixed\"},\"max_retries\":3}}");
        r.delay_ms = 5;
        TAP_STR(t, written(&w, &s),
                "{\"retry\":{\"backoff\":{\"delay_ms\":5,\"type\":\"fixed\"},"
                "\"max_retries\":3}}");
        r.delay_ms = -1;
        s.retention_ms = -1;
        TAP_STR(t, written(&w, &s),
                "{\"retention_ms\":0,\"retry\":{\"backoff\":{\"delay_ms\":0,"
                "\"type\":\"fixed\"},\"max_retries\":3}}");
        r = (struct belay_retry_policy){ .max_retries = 7,
                                         .delay_ms = 10,
                                         .max_delay_ms = 20,
                                         .multiplier = 1.5,
                                         .no_jitter = true,
                                         .retryable = list,
                                         .n_retryable = 2 };
        s = (struct belay_submission){ .retry = &r,
                                       .attempt_timeout_ms = 1,
                                       .deadline_ms = 2,
                                       .max_reclaims = -1,
                                       .retention_ms = 3 };
        TAP_STR(t, written(&w, &s),
                "{\"attempt_timeout_ms\":1,\"deadline_ms\":2,\"max_reclaims\":0,"
                "\"retention_ms\":3,\"retry\":{\"backoff\":{\"initial_delay_ms\":10,"
                "\"jitter\":false,\"max_delay_ms\":20,\"multiplier\":1.5,"
                "\"type\":\"exponential\"},\"max_retries\":7,"
                "\"retryable\":[\"timeout\",\"over \\\"quota\\\"\"]}}");
    }
    work_close(&w);
}

static void a_policy_reads_as_it_was_written(struct tap *t)
{
    static const char *const list[] = { "timeout", "over \"quota\"" };
    struct belay_retry_policy r = { .max_retries = 7,
                                    .delay_ms = 10,
                                    .max_delay_ms = 20,
                                    .multiplier = 3,
                                    .no_jitter = true,
                                    .retryable = list,
                                    .n_retryable = 2 };
    struct belay_submission s = {
        .retry = &r, .attempt_timeout_ms = 1, .deadline_ms = 2, .max_reclaims = -1
    };
    struct exec_policy p = { .max_reclaims = 9 };
    struct work w;

    if (work_open(&w, t, ON_MEMORY)) {
        WORK_RC(&w, read_policy(&w, bytes_str(written(&w, &s)), &p), BELAY_OK);
        TAP_EQ(t, p.attempt_timeout_ms, 1);
        TAP_EQ(t, p.deadline_ms, 2);
        TAP_EQ(t, p.max_reclaims, 0);
        TAP_EQ(t, p.retry.max_retries, 7);
        TAP_EQ(t, p.retry.delay_ms, 10);
        TAP_EQ(t, p.retry.max_delay_ms, 20);
        TAP_OK(t, p.retry.multiplier == 3 && !p.retry.jitter);
        TAP_OK(t, bytes_eq(p.retry.retryable,
                           bytes_str("[\"timeout\",\"over \\\"quota\\\"\"]")));
        r.backoff = BELAY_BACKOFF_FIXED;
        s.max_reclaims = 5;
        WORK_RC(&w, read_policy(&w, bytes_str(written(&w, &s)), &p), BELAY_OK);
        TAP_EQ(t, p.retry.backoff, BELAY_BACKOFF_FIXED);
        TAP_EQ(t, p.retry.delay_ms, 10);
        TAP_EQ(t, p.max_reclaims, 5);
    }
    work_close(&w);
}

static void a_policy_that_cannot_be_is_corrupt(struct tap *t)
{
    static const char *const texts[] = {
        "[]",
        "{",
        "{\"deadline_ms\":-1}",
        "{\"attempt_timeout_ms\":\"1\"}",
        "{\"max_reclaims\":1.5}",
        "{\"retry\":[]}",
        "{\"retry\":{\"max_retries\":-1}}",
        "{\"retry\":{\"backoff\":{\"type\":\"never\"}}}",
        "{\"retry\":{\"backoff\":{\"delay_ms\":1}}}",
        "{\"retry\":{\"backoff\":{\"multiplier\":\"2\",\"type\":\"exponential\"}}}",
        "{\"retry\":{\"backoff\":{\"multiplier\":0.5,\"type\":\"exponential\"}}}",
        "{\"retry\":{\"backoff\":{\"jitter\":1,\"type\":\"exponential\"}}}",
        "{\"retry\":{\"retryable\":{}}}",
        "{\"retry\":{\"retryable\":[1]}}",
    };
    struct exec_policy p;
    struct work w;

    if (work_open(&w, t, ON_MEMORY)) {
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            if (!WORK_RC(&w, read_policy(&w, bytes_str(texts[i]), &p), BELAY_CORRUPT))
                printf("# %s\n", texts[i]);
            TAP_STR(t, w.err.reason, "policy");
            TAP_STR(t, w.err.entity, "exe_1");
        }
        WORK_RC(&w, read_policy(&w, bytes_str("{\"later\":1,\"deadline_ms\":4}"), &p),
                BELAY_OK);
        TAP_EQ(t, p.deadline_ms, 4);
    }
    work_close(&w);
}

static const struct tap_case cases[] = {
    { "a handle decodes to what was encoded, of every store and kind",
      decodes_what_was_encoded },
    { "its bytes have the documented layout", has_the_documented_layout },
    { "its numbers reach to their ends and not beyond", takes_numbers_to_their_ends },
    { "cut at any byte it is truncated", knows_a_handle_that_was_cut_anywhere },
    { "a byte behind its end is refused", refuses_what_follows_the_end },
    { "each part that is wrong has its reason", names_what_is_wrong_with_each_part },
    { "with any byte turned it is another handle or a bad one",
      stands_every_byte_turned },
    { "tag and kind beside the bytes are those in them",
      must_be_what_it_says_of_itself },
    { "another store's, another namespace's and a suspended one are told apart",
      is_checked_against_store_and_namespace },
    { "its text is printable and reads back", is_one_printable_string },
    { "text that is none is refused", refuses_text_that_is_none },
    { "a handle has one text", has_one_text },
    { "the usual policy is {}", the_usual_policy_is_empty },
    { "a policy leaves out what is usual", a_policy_leaves_out_what_is_usual },
    { "a policy reads as it was written", a_policy_reads_as_it_was_written },
    { "a stored policy that cannot be is corrupt", a_policy_that_cannot_be_is_corrupt },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
