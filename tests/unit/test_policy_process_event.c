/* Scopes, keys, the order in which an event is judged, and the words of refusals. */
#include "policy/process_event.h"

#include "test_policy_event.h"

static struct belay_error last;
static char shown_text[4096];

static const char *refused(belay_rc rc)
{
    static char text[sizeof(last.message) + sizeof(last.reason) + 64];

    if ((int32_t)rc != last.code || rc == BELAY_OK)
        return "a code that is not the error's";
    (void)snprintf(text, sizeof(text), "%s %s| %s", belay_error_info((int32_t)rc)->name,
                   last.reason, last.message);
    swap_char(text, '"', '\'');
    return text;
}

/* --- scopes --- */

static void scopes(struct tap *t)
{
    static const struct {
        const char *session, *frame, *text;
    } rows[] = {
        { "root", "", "session:root" },
        { "a", "b", "session:a/frame:b" },
        { "a/frame:b", "", "session:a%2Fframe:b" },
        { "a%2Fframe:b", "", "session:a%252Fframe:b" },
        { "a/", "/b%", "session:a%2F/frame:%2Fb%25" },
        { "session:", "frame:", "session:session:/frame:frame:" },
    };
    static const char *const not_scopes[] = {
        "",
        "root",
        "session:",
        "session:a/",
        "session:/",
        "session:a/b",
        "session:a/frame:",
        "session:a/frame:b/c",
        "session:%",
        "session:a%2f",
        "session:a%41",
        "session:a/frame:b/frame:c",
        "Session:a",
        "session:a\x01b",
        "session:a/frame:%2",
        "session:a%00",
    };
    CLEANUP(arena_release) struct belay_arena a = { 0 };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct scope s = { bytes_str(rows[i].session), bytes_str(rows[i].frame) };
        struct scope back = { { 0 }, { 0 } };
        struct bytes text = { 0 };

        TAP_EQ(t, scope_check(s, "it", NULL), BELAY_OK);
        TAP_EQ(t, scope_text(s, &a, &text, NULL), BELAY_OK);
        TAP_STR(t, plain(text, shown_text, sizeof(shown_text)), rows[i].text);
        TAP_EQ(t, scope_parse(text, &a, &back, NULL), BELAY_OK);
        TAP_OK(t, scope_eq(s, back));
    }
    for (size_t i = 0; i < COUNT_OF(not_scopes); i++) {
        struct scope s;
        last = (struct belay_error){ .size = sizeof(last) };
        if (!TAP_EQ(t, scope_parse(bytes_str(not_scopes[i]), &a, &s, &last),
                    BELAY_INVALID))
            printf("# row: %s\n", not_scopes[i]);
        TAP_STR(t, last.reason, "scope");
    }
    TAP_OK(t, !scope_eq((struct scope){ bytes_str("a/frame:b"), bytes_str("") },
                        (struct scope){ bytes_str("a"), bytes_str("b") }));
}

/* --- keys --- */

static const char *payload_hash(const char *type, const char *payload)
{
    static char hash[SHA256_HEX_LEN + 1];
    CLEANUP(json_release) json_t *value = json_of(payload);
    CLEANUP(arena_release) struct belay_arena a = { 0 };

    if (event_payload_hash(bytes_str(type), value, hash, &a, NULL) != BELAY_OK)
        return "?";
    return hash;
}

static void keys(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct scope root = { bytes_str("root"), { 0 } };
    struct scope odd = { bytes_str("a/frame:b"), { 0 } };
    struct scope framed = { bytes_str("a"), bytes_str("b") };
    char id[WAKE_ID_LEN + 1], other[WAKE_ID_LEN + 1];
    struct bytes key = { 0 };

    TAP_STR(t, payload_hash("producer.line", "{'line':'one'}"),
            "7fa737b1f08a2fc7a1677d54247c4c15e17d9e7ea3509cd4f7b0c1f4571a4377");
    TAP_STR(t, payload_hash("process.cancel_requested", "{'reason':'stop'}"),
            "85a6238fa9840bc3105d1a06ca03df61803080fefa838ab687d36662275be019");
    TAP_EQ(t, wake_id_make(root, bytes_str("proc-1:1"), id, &a, NULL), BELAY_OK);
    TAP_STR(t, id,
            "wake:8e69be88e3c5fd0e4707467e95a433ebfaad03087348117300740fc8cdd0ef32");
    TAP_EQ(t, wake_id_make(odd, bytes_str("k"), id, &a, NULL), BELAY_OK);
    TAP_EQ(t, wake_id_make(framed, bytes_str("k"), other, &a, NULL), BELAY_OK);
    TAP_OK(t, strcmp(id, other) != 0);

    TAP_EQ(t, wake_source_key(bytes_str("p"), 7, &a, &key, NULL), BELAY_OK);
    TAP_STR(t, plain(key, shown_text, sizeof(shown_text)), "process:p:event:7:wake");
    TAP_EQ(t, cancel_replay_key(bytes_str("p"), "h", &a, &key, NULL), BELAY_OK);
    TAP_STR(t, plain(key, shown_text, sizeof(shown_text)),
            "process:p:cancel_requested:h");
    TAP_EQ(t, complete_replay_key(bytes_str("p"), PROCESS_FAILED, &a, &key, NULL),
           BELAY_OK);
    TAP_STR(t, plain(key, shown_text, sizeof(shown_text)),
            "process:p:terminal:process.failed");
    TAP_EQ(t, cancel_payload(bytes_str("a'b"), &a, &key, NULL), BELAY_OK);
    TAP_STR(t, plain(key, shown_text, sizeof(shown_text)), "{'reason':'a'b'}");
    TAP_EQ(t, cancel_payload(bytes_of(NULL, 0), &a, &key, NULL), BELAY_OK);
    TAP_STR(t, plain(key, shown_text, sizeof(shown_text)), "{'reason':null}");
    CLEANUP(json_release) json_t *value = json_of("{'b':1,'a':2}");
    struct await_output output = { .type = AWAIT_SUCCESS, .value = value };
    TAP_EQ(t, complete_payload(&output, &a, &key, NULL), BELAY_OK);
    TAP_STR(t, plain(key, shown_text, sizeof(shown_text)),
            "{'await_output':{'type':'success','value':{'a':2,'b':1}}}");
}

/* --- appending --- */

static const char judged_types[] =
    "[{'name':'line','payload_schema':{'schema':{'required':['line'],'properties':"
    "{'line':{'type':'string'}}}},'semantics':{}},"
    "{'name':'nudge','semantics':{'wake':{'input':{'pointer':'/text'}}}},"
    "{'name':'end','payload_schema':{'schema':{'type':'object'}},'semantics':{'"
    "terminal':"
    "{'state':'failed','await_output':{'pointer':'/why'}}}},"
    "{'name':'process.cancel_requested'}]";

/* "new SEQ", "replay", with " state" and " wake" behind; or the refusal. */
static const char *judge(const char *type, const char *payload, const char *key,
                         enum process_state state, const char *stored_hash,
                         bool targeted)
{
    static char answer[128];
    static const struct scope target = { { (const uint8_t *)"root", 4 }, { 0 } };
    CLEANUP(json_release) json_t *types = json_of(judged_types);
    CLEANUP(json_release) json_t *value = json_of(payload);
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct append_request r = { .process_id = bytes_str("p"),
                                .event_type = bytes_str(type),
                                .payload = value,
                                .target = targeted ? &target : NULL };
    struct append_facts f = { .event_types = types,
                              .state = state,
                              .last_sequence = 4 };
    struct append_answer out;

    if (key)
        r.replay_key = bytes_str(key);
    if (stored_hash)
        f.replayed_hash = bytes_str(stored_hash);
    last = (struct belay_error){ .size = sizeof(last) };
    belay_rc rc = append_check(&r, &last);
    if (rc == BELAY_OK)
        rc = append_judge(&r, &f, &a, &out, &last);
    if (rc != BELAY_OK)
        return refused(rc);
    if (out.verdict == APPEND_REPLAY)
        return "replay";
    (void)snprintf(answer, sizeof(answer), "new %d%s%s%s", (int)out.sequence,
                   out.meaning.terminal ? " " : "",
                   out.meaning.terminal ? process_state_name((int)out.meaning.state)
                                        : "",
                   out.wake_id[0] ? " wake" : "");
    return answer;
}

static void appending(struct tap *t)
{
    const enum process_state run = PROCESS_RUNNING, done = PROCESS_COMPLETED;
    const char *hash = "another hash";

    TAP_STR(t, judge("line", "{'line':'one'}", NULL, run, NULL, false), "new 5");
    TAP_STR(t, judge("line", "{'line':'one'}", "k", run, NULL, false), "new 5");
    TAP_STR(t, judge("line", "{'line':'one'}", NULL, done, NULL, false), "new 5");
    TAP_STR(t, judge("nudge", "{'text':'x'}", NULL, done, NULL, true), "new 5 wake");
    TAP_STR(t, judge("end", "{'why':'x'}", "k", run, NULL, false), "new 5 failed");
    TAP_STR(t, judge("process.cancel_requested", "{}", "k", done, NULL, false),
            "new 5");

    /* a replay before anything else: the type need not even be declared */
    static char same[SHA256_HEX_LEN + 1];
    memcpy(same, payload_hash("gone", "7"), sizeof(same));
    TAP_STR(t, judge("gone", "7", "k", done, same, false), "replay");
    TAP_STR(
        t, judge("gone", "8", "k", done, same, false),
        "replay_conflict | process `p` event replay key `k` conflicts with an event "
        "that is there");
    TAP_STR(
        t, judge("line", "{'line':'one'}", "k", run, hash, false),
        "replay_conflict | process `p` event replay key `k` conflicts with an event "
        "that is there");
    /* without a key there is no replay */
    TAP_STR(t, judge("line", "{'line':'one'}", NULL, run, hash, false), "new 5");
    TAP_STR(t, judge("line", "{'line':'one'}", "", run, hash, false), "new 5");

    TAP_STR(t, judge("other", "{}", NULL, run, NULL, false),
            "invalid undeclared| process `p`: undeclared event type `other`");
    TAP_STR(
        t, judge("end", "7", NULL, done, NULL, false),
        "invalid replay_key| process `p`: event `end` requires a deterministic replay "
        "key");
    TAP_STR(
        t, judge("process.cancel_requested", "{}", "", run, NULL, false),
        "invalid replay_key| process `p`: event `process.cancel_requested` requires a "
        "deterministic replay key");
    TAP_STR(t, judge("line", "{}", NULL, run, NULL, false),
            "invalid payload| invalid `line` payload: line: required property missing");
    TAP_STR(t, judge("line", "{'line':1}", NULL, run, NULL, false),
            "invalid payload| invalid `line` payload: line: expected string, got 1");
    TAP_STR(
        t, judge("end", "7", "k", done, NULL, false),
        "invalid payload| invalid `end` payload: arguments: expected object, got 7");
    TAP_STR(t, judge("end", "{}", "k", done, NULL, false),
            "invalid pointer| payload pointer `/why` did not match");
    TAP_STR(
        t, judge("end", "{'why':{'type':'success','value':1}}", "k", run, NULL, false),
        "invalid await_output| await output: it is of a process that completed, the "
        "event of one that failed");
    TAP_STR(t, judge("end", "{'why':1}", "k", done, NULL, false),
            "wrong_state terminal| process `p` is already terminal");
    TAP_STR(
        t, judge("nudge", "{'text':'x'}", NULL, run, NULL, false),
        "invalid wake_target| process `p`: wake event `nudge` without a wake target "
        "scope");
    TAP_STR(t, judge("a\nb", "1", NULL, run, NULL, false),
            "invalid event_type| event type: 1 to 255 bytes of UTF-8 without control "
            "characters");
    TAP_STR(t, judge("line", "1", "a\nb", run, NULL, false),
            "invalid replay_key| replay key: 1 to 1024 bytes of UTF-8 without control "
            "characters");
}

static void sequences(struct tap *t)
{
    static const struct {
        int64_t last_sequence;
        belay_rc rc;
    } rows[] = { { 0, BELAY_OK },
                 { EVENT_SEQUENCE_MAX - 1, BELAY_OK },
                 { EVENT_SEQUENCE_MAX, BELAY_OUT_OF_RANGE },
                 { INT64_MAX, BELAY_OUT_OF_RANGE },
                 { -1, BELAY_OUT_OF_RANGE } };
    CLEANUP(json_release) json_t *types = json_of("[{'name':'e'}]");
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct append_request r = { .process_id = bytes_str("p"),
                                .event_type = bytes_str("e"),
                                .payload = types };
    struct append_answer out = { .sequence = 0 };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct append_facts f = { .event_types = types,
                                  .last_sequence = rows[i].last_sequence };
        TAP_EQ(t, append_judge(&r, &f, &a, &out, NULL), rows[i].rc);
        if (rows[i].rc == BELAY_OK)
            TAP_EQ(t, out.sequence, rows[i].last_sequence + 1);
    }
    CLEANUP(json_release) json_t *damaged = json_of("[{'name':'e','semantics':7}]");
    struct append_facts f = { .event_types = damaged };
    TAP_EQ(t, append_judge(&r, &f, &a, &out, NULL), BELAY_CORRUPT);
    f.event_types = json_object_get(damaged, "no");
    TAP_EQ(t, append_judge(&r, &f, &a, &out, NULL), BELAY_CORRUPT);
}

/* --- refusals --- */

static void wordings(struct tap *t)
{
    struct bytes p = bytes_str("p-1");
    struct scope s = { bytes_str("s"), { 0 } }, f = { bytes_str("s"), bytes_str("f") };
    struct belay_error *err = &last;

    last = (struct belay_error){ .size = sizeof(last) };
    TAP_STR(t, refused(refuse_unknown_process(p, err)),
            "not_found process| unknown process `p-1`");
    TAP_STR(t, last.entity, "p-1");
    TAP_STR(
        t, refused(refuse_registration(p, bytes_str("aa"), "bb", err)),
        "registration_conflict | process `p-1` registration hash conflict: existing "
        "aa, new bb");
    TAP_STR(t, refused(refuse_grant(p, s, err)),
            "not_found grant| process handle `p-1` is not granted to session `s`");
    TAP_STR(t, refused(refuse_grant(p, f, err)),
            "not_found grant| process handle `p-1` is not granted to session `s` frame "
            "`f`");
    TAP_STR(t, refused(refuse_lease_held(p, bytes_str("o"), 5, 1234, err)),
            "lease_held | process `p-1` is already leased by `o` until 1234");
    TAP_EQ(t, last.actual, 1234);
    TAP_STR(t, refused(refuse_lease_lost(p, "superseded", err)),
            "lease_lost superseded| process lease for `p-1` is missing or expired");
}

static const struct tap_case cases[] = {
    { "a scope is a pair, and its text tells pairs apart", scopes },
    { "hashes, wake ids and keys are the known ones", keys },
    { "an event is judged in one order", appending },
    { "sequences have no gap and an end; damaged types are corrupt", sequences },
    { "refusals of the registry have their known words", wordings },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
