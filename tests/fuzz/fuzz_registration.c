/* A registration, or else a scope: the canonical form is a fixed point, its hash does not
 * depend on the order of keys, and every type that is declared is found. */
#include "base/hash.h"
#include "fuzz.h"
#include "policy/process_event.h"
#include "policy/registration.h"

static belay_rc prepare(const json_t *body, struct belay_arena *a,
                        struct registration_ready *out, struct belay_error *err)
{
    struct registration r;
    belay_rc rc = registration_read(body, &r, err);

    return rc ? rc : registration_prepare(&r, a, out, err);
}

static json_t *parse(struct bytes text)
{
    json_t *value = NULL;

    FUZZ_CHECK(json_read(text, SIZE_MAX, &value, NULL) == BELAY_OK);
    return value;
}

/* Any payload: whatever is declared, judging ends with a verdict or a typed error. */
static void judge(const json_t *types, struct bytes name, const json_t *payload)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct scope root = { bytes_str("root"), bytes_of(NULL, 0) };
    struct belay_error err = { .size = sizeof(err) };
    struct append_request r = { .process_id = bytes_str("p"),
                                .event_type = name,
                                .payload = payload,
                                .replay_key = bytes_str("k"),
                                .target = &root };
    struct append_facts f = { .event_types = types };
    struct append_answer answer;
    belay_rc rc = append_judge(&r, &f, &a, &answer, &err);

    FUZZ_CHECK(rc == BELAY_OK || rc == BELAY_INVALID);
    FUZZ_CHECK((int32_t)rc == err.code);
    if (rc != BELAY_OK || !answer.meaning.terminal)
        return;
    CLEANUP(fuzz_release) json_t *output = parse(answer.meaning.await_output);
    struct await_output read;
    FUZZ_CHECK(await_output_read(output, &read, NULL) == BELAY_OK);
    FUZZ_CHECK(await_state(read.type) == answer.meaning.state);
}

static void check_types(const struct registration_ready *ready, const json_t *payload)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(fuzz_release) json_t *types = parse(ready->event_types);

    FUZZ_CHECK(json_array_size(types) >= EVENT_CORE_COUNT);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const json_t *name = json_object_get(json_array_get(types, i), "name");
        struct bytes text = bytes_of(json_string_value(name), json_string_length(name));
        struct event_type type;
        bool found = false;
        FUZZ_CHECK(event_type_find(types, text, &a, &type, &found, NULL) == BELAY_OK);
        FUZZ_CHECK(found && bytes_eq(type.name, text));
        judge(types, text, payload);
    }
}

static void check_ready(const json_t *body, const struct registration_ready *ready)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(fuzz_release) json_t *other = fuzz_reversed(body);
    CLEANUP(fuzz_release) json_t *canonical = parse(ready->canonical);
    struct registration_ready again;
    uint8_t digest[SHA256_LEN];
    char hex[SHA256_HEX_LEN + 1];

    FUZZ_CHECK(sha256(ready->canonical, digest, NULL) == BELAY_OK);
    hex_encode(bytes_of(digest, sizeof(digest)), hex);
    FUZZ_CHECK(strcmp(hex, ready->hash) == 0);
    FUZZ_CHECK(prepare(other, &a, &again, NULL) == BELAY_OK);
    FUZZ_CHECK(bytes_eq(again.canonical, ready->canonical));
    FUZZ_CHECK(prepare(canonical, &a, &again, NULL) == BELAY_OK);
    FUZZ_CHECK(bytes_eq(again.canonical, ready->canonical));
    FUZZ_CHECK(bytes_eq(again.input, ready->input));
    FUZZ_CHECK(bytes_eq(again.provenance, ready->provenance));
    FUZZ_CHECK(scope_eq(again.owner, ready->owner));
    CLEANUP(fuzz_release) json_t *input = parse(ready->input);
    FUZZ_CHECK(json_equal(input, json_object_get(canonical, "input")));
    const json_t *given = json_object_get(body, "input");
    FUZZ_CHECK(!given || json_is_null(given) || json_equal(input, (json_t *)given));
}

static void check_scope(struct bytes text)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct bytes back = { 0 };
    struct scope s;

    if (scope_parse(text, &a, &s, NULL) != BELAY_OK)
        return;
    FUZZ_CHECK(scope_check(s, "it", NULL) == BELAY_OK);
    FUZZ_CHECK(scope_text(s, &a, &back, NULL) == BELAY_OK);
    FUZZ_CHECK(bytes_eq(back, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct bytes rest = bytes_of(data, size);
    struct belay_error err = { .size = sizeof(err) };
    struct registration_ready ready;

    check_scope(rest);
    CLEANUP(fuzz_release) json_t *body = fuzz_json(fuzz_line(&rest));
    CLEANUP(fuzz_release) json_t *payload = fuzz_json(rest);
    if (!body)
        return 0;
    belay_rc rc = prepare(body, &a, &ready, &err);
    FUZZ_CHECK(rc == BELAY_OK || (rc == BELAY_INVALID && err.reason[0]));
    FUZZ_CHECK((int32_t)rc == err.code);
    FUZZ_CHECK(rc == BELAY_OK || strpbrk(err.message, "\n\r\t\x1b") == NULL);
    if (rc != BELAY_OK)
        return 0;
    check_ready(body, &ready);
    check_types(&ready, payload ? payload : body);
    return 0;
}
