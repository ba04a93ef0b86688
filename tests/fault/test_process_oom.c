/* X6: whatever allocation fails while a registration is prepared or an event judged, the
 * answer is no_memory, outputs are as they were, and nothing leaks. */
#include "oom.h"
#include "policy/process_event.h"
#include "policy/registration.h"
#include "tap.h"

static const char body[] =
    "{\"id\":\"p\",\"input\":{\"z\":[1.5],\"type\":\"external\",\"a\":{\"b\":null}},"
    "\"event_types\":[{\"name\":\"e\",\"payload_schema\":{\"schema\":{\"type\":"
    "\"object\","
    "\"properties\":{\"a\":{\"enum\":[\"x\",\"y\"]}}}},\"semantics\":{\"terminal\":{"
    "\"state\":"
    "\"failed\",\"await_output\":{\"template\":{\"template\":\"{a}!\",\"fields\":{"
    "\"a\":"
    "{\"pointer\":\"/a\"},\"b\":\"payload\"}}}},\"wake\":{\"input\":\"payload\"}}}],"
    "\"provenance\":{\"owner_scope\":{\"session_id\":\"s\",\"agent_frame_id\":\"f\"},"
    "\"caused_by\":{\"k\":1}}}";

struct given {
    json_t *body, *payload;
    struct registration registration;
};

static belay_rc register_it(const struct given *g, struct belay_arena *a,
                            struct belay_error *err)
{
    struct registration_ready out = { .canonical = bytes_str("untouched") };
    belay_rc rc = registration_prepare(&g->registration, a, &out, err);

    if (rc && !bytes_eq(out.canonical, bytes_str("untouched")))
        return err_set(err, BELAY_MISUSE, "the answer was touched");
    return rc;
}

static belay_rc judge_it(const struct given *g, struct belay_arena *a,
                         struct belay_error *err)
{
    struct scope target = { bytes_str("s"), bytes_str("f") };
    struct append_request r = { .process_id = bytes_str("p"),
                                .event_type = bytes_str("e"),
                                .payload = g->payload,
                                .replay_key = bytes_str("k"),
                                .target = &target };
    struct append_facts f = { .event_types = g->registration.event_types,
                              .last_sequence = 3 };
    struct append_answer out = { .sequence = 77 };
    belay_rc rc = append_judge(&r, &f, a, &out, err);

    if (rc && out.sequence != 77)
        return err_set(err, BELAY_MISUSE, "the answer was touched");
    return rc;
}

/* True while an allocation failed. */
static bool fail_at(struct tap *t, const struct given *g,
                    belay_rc (*op)(const struct given *, struct belay_arena *,
                                   struct belay_error *),
                    belay_rc otherwise, unsigned long n, bool for_ever)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct belay_error err = { .size = sizeof(err) };

    oom_arm(n, for_ever);
    belay_rc rc = op(g, &a, &err);
    bool hit = oom_disarm();
    /* OpenSSL does not say that it was memory. */
    if (!TAP_OK(t, rc == otherwise ||
                       (hit && (rc == BELAY_NO_MEMORY || rc == BELAY_UNAVAILABLE))))
        printf("# allocation %lu: %s\n", n, err.message);
    TAP_EQ(t, err.code, rc);
    return hit && t->failed == 0;
}

static void fail_everywhere(struct tap *t, const struct given *g,
                            belay_rc (*op)(const struct given *, struct belay_arena *,
                                           struct belay_error *),
                            belay_rc otherwise)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        unsigned long n = 1;
        while (fail_at(t, g, op, otherwise, n, for_ever))
            n++;
        TAP_OK(t, n > 10);
    }
}

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    return json_read(bytes_str(text), SIZE_MAX, &value, NULL) == BELAY_OK ? value
                                                                          : NULL;
}

static void with_payload(struct tap *t, const char *payload,
                         belay_rc (*op)(const struct given *, struct belay_arena *,
                                        struct belay_error *),
                         belay_rc otherwise)
{
    struct given g = { .body = parse(body), .payload = parse(payload) };

    if (TAP_OK(t, g.body && g.payload) &&
        TAP_EQ(t, registration_read(g.body, &g.registration, NULL), BELAY_OK))
        fail_everywhere(t, &g, op, otherwise);
    json_decref(g.body);
    json_decref(g.payload);
}

static void registering(struct tap *t)
{
    with_payload(t, "{}", register_it, BELAY_OK);
}

static void judging(struct tap *t)
{
    with_payload(t, "{\"a\":\"x\"}", judge_it, BELAY_OK);
}

static void refusing(struct tap *t)
{
    with_payload(t, "{\"a\":\"z\"}", judge_it, BELAY_INVALID);
}

static const struct tap_case cases[] = {
    { "a registration is prepared or there is no memory", registering },
    { "an event is judged or there is no memory", judging },
    { "a payload is refused, with or without words", refusing },
};

int main(int argc, char **argv)
{
    if (!oom_hook_libraries()) {
        printf("Bail out! a library has no hooks\n");
        return 1;
    }
    /* OpenSSL does not survive a failure while it sets itself up. */
    uint8_t digest[SHA256_LEN];
    if (sha256(bytes_str(""), digest, NULL) != BELAY_OK)
        return 1;
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
