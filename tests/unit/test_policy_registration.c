/* Registrations, scopes, keys, and the order in which an event is judged. */
#include "policy/registration.h"

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

/* --- registrations --- */

static belay_rc prepare(const char *body, struct belay_arena *a,
                        struct registration_ready *out)
{
    CLEANUP(json_release) json_t *value = json_of(body);
    struct registration r;

    last = (struct belay_error){ .size = sizeof(last) };
    belay_rc rc = registration_read(value, &r, &last);
    return rc ? rc : registration_prepare(&r, a, out, &last);
}

static const char *hash_of(const char *body)
{
    static char hashes[4][SHA256_HEX_LEN + 1];
    static unsigned next;
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct registration_ready ready;
    belay_rc rc = prepare(body, &a, &ready);

    if (rc != BELAY_OK)
        return refused(rc);
    char *hash = hashes[next++ % COUNT_OF(hashes)];
    memcpy(hash, ready.hash, sizeof(ready.hash));
    return hash;
}

static void golden(struct tap *t)
{
    static const char want[] =
        "ebe6678046ad84685b7c30136ba951d5b8d59a8579033343cc28eea029a9b4f0";
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct registration_ready r;

    if (!TAP_EQ(t, prepare("{'id':'proc-idempotent'}", &a, &r), BELAY_OK))
        return;
    TAP_STR(t, r.hash, want);
    TAP_STR(
        t, plain(r.canonical, shown_text, sizeof(shown_text)),
        "{'id':'proc-idempotent','input':{'type':'external','metadata':null},"
        "'event_types':[{'name':'process.cancel_requested','payload_schema':"
        "{'schema':{}},'semantics':{}},{'name':'process.completed','payload_schema':"
        "{'schema':{}},'semantics':{'terminal':{'state':'completed','await_output':"
        "{'pointer':'/await_output'}}}},{'name':'process.failed','payload_schema':"
        "{'schema':{}},'semantics':{'terminal':{'state':'failed','await_output':"
        "{'pointer':'/await_output'}}}},{'name':'process.cancelled','payload_schema':"
        "{'schema':{}},'semantics':{'terminal':{'state':'cancelled','await_output':"
        "{'pointer':'/await_output'}}}}],'provenance':{'owner_scope':{'session_id':"
        "'root'},'host_profile_id':'default'}}");
    TAP_STR(t, plain(r.input, shown_text, sizeof(shown_text)),
            "{'type':'external','metadata':null}");
    TAP_STR(t, plain(r.provenance, shown_text, sizeof(shown_text)),
            "{'owner_scope':{'session_id':'root'},'host_profile_id':'default'}");
    TAP_OK(t, r.event_types.len > 2 && r.event_types.ptr[0] == '[' && !r.caused_by.ptr);
    TAP_OK(t, bytes_eq(r.id, bytes_str("proc-idempotent")));
    TAP_OK(t, bytes_eq(r.owner.session, bytes_str("root")) && r.owner.frame.len == 0);
    TAP_OK(t, bytes_eq(r.host_profile, bytes_str("default")));
}

static void identity(struct tap *t)
{
    static const char base[] = "{'id':'proc-idempotent'}";
    /* clang-format off */
    static const struct {
        const char *body;
        bool same;
    } rows[] = {
        { "{'input':{'metadata':null,'type':'external'},'id':'proc-idempotent'}", true },
        { "{'id':'proc-idempotent','input':null,'event_types':[],'provenance':{}}", true },
        { "{'id':'proc-idempotent','provenance':{'host_profile_id':'default','caused_by':null,"
          "'owner_scope':{'agent_frame_id':'','session_id':'root'}}}", true },
        { "{'id':'proc-idempotent','event_types':[{'name':'process.cancel_requested'}]}", true },
        { "{'id':'proc-idempotent','event_types':[{'semantics':{'wake':null},"
          "'name':'process.cancel_requested','payload_schema':{'schema':{}}}]}", true },
        { "{'id':'proc-idempotent','event_types':[{'name':'process.completed'}]}", false },
        { "{'id':'proc-idempotent','event_types':[{'name':'x'}]}", false },
        { "{'id':'other'}", false },
        { "{'id':'proc-idempotent','input':{'type':'external','metadata':{}}}", false },
        { "{'id':'proc-idempotent','input':{'type':'external'}}", false },
        { "{'id':'proc-idempotent','provenance':{'host_profile_id':'other'}}", false },
        { "{'id':'proc-idempotent','provenance':{'caused_by':{}}}", false },
        { "{'id':'proc-idempotent','provenance':{'owner_scope':{'session_id':'root',"
          "'agent_frame_id':'f'}}}", false },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!TAP_EQ(t, strcmp(hash_of(rows[i].body), hash_of(base)) == 0, rows[i].same))
            printf("# row: %s: %s\n", rows[i].body, hash_of(rows[i].body));
    }
    /* The order of types counts, that of keys does not. */
    TAP_OK(t, strcmp(hash_of("{'id':'p','event_types':[{'name':'a'},{'name':'b'}]}"),
                     hash_of("{'id':'p','event_types':[{'name':'b'},{'name':'a'}]}")));
    TAP_STR(t,
            hash_of("{'id':'p','event_types':[{'name':'a','payload_schema':{'schema':"
                    "{'type':'object','required':['x','y']}}}]}"),
            hash_of("{'id':'p','event_types':[{'payload_schema':{'schema':"
                    "{'required':['x','y'],'type':'object'}},'name':'a'}]}"));
}

static void inputs(struct tap *t)
{
    static const struct {
        const char *input, *want;
    } rows[] = {
        { "{'type':'x'}", "{'type':'x'}" },
        { "{'z':1,'type':'x','a':2}", "{'type':'x','a':2,'z':1}" },
        { "{'type':'x','a':{'type':'y'}}", "{'type':'x','a':{'type':'y'}}" },
        { "{'zz':[{'type':1}],'type':'x'}", "{'type':'x','zz':[{'type':1}]}" },
        { "{'a':'\\\\\\'type\\':,{[','type':'x}'}",
          "{'type':'x}','a':'\\\\\\'type\\':,{['}" },
        { "{'types':1,'typ':2,'type':'t'}", "{'type':'t','typ':2,'types':1}" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        struct registration_ready r;
        char body[256];

        (void)snprintf(body, sizeof(body), "{'id':'p','input':%s}", rows[i].input);
        /* A quote within a string is written \' in the row. */
        if (TAP_EQ(t, prepare(body, &a, &r), BELAY_OK))
            TAP_STR(t, plain(r.input, shown_text, sizeof(shown_text)), rows[i].want);
    }
}

/* clang-format off */
static const struct {
    const char *body, *want;
} bad_registrations[] = {
    { "7", "invalid registration| registration: must be an object" },
    { "{'id':7}", "invalid registration| registration: id must be a string" },
    { "{'id':'p','inputs':1}", "invalid registration| registration: has no member `inputs`" },
    { "{'id':'p','provenance':{'owner':1}}", "invalid registration| provenance: has no member "
      "`owner`" },
    { "{'id':'p','provenance':{'host_profile_id':1}}",
      "invalid registration| host_profile_id: must be a string" },
    { "{}", "invalid process_id| process id is blank" },
    { "{'id':''}", "invalid process_id| process id is blank" },
    { "{'id':' \\t\\u2003\\u3000'}", "invalid process_id| process id is blank" },
    { "{'id':'a\\nb'}", "invalid process_id| process id must be 1 to 255 bytes of UTF-8 without "
      "control characters" },
    { "{'id':'p','provenance':{'owner_scope':{'session_id':''}}}",
      "invalid scope| process: owner scope must include a session id" },
    { "{'id':'p','provenance':{'owner_scope':{}}}",
      "invalid scope| process: owner scope must include a session id" },
    { "{'id':'p','provenance':{'owner_scope':{'session_id':7}}}",
      "invalid scope| owner_scope: session_id and agent_frame_id are strings" },
    { "{'id':'p','provenance':{'owner_scope':{'session':'a'}}}",
      "invalid scope| owner_scope: has no member `session`" },
    { "{'id':'p','provenance':{'owner_scope':{'session_id':'a\\u0001'}}}",
      "invalid scope| process: session and frame are 1 to 255 bytes of UTF-8 without control "
      "characters" },
    { "{'id':'p','provenance':{'host_profile_id':'  '}}",
      "invalid host_profile| host profile id is blank" },
    { "{'id':'p','input':[]}", "invalid input| input: must be an object with a type, which is a "
      "name" },
    { "{'id':'p','input':{'type':7}}", "invalid input| input: must be an object with a type, "
      "which is a name" },
    { "{'id':'p','input':{'type':''}}", "invalid input| input: must be an object with a type, "
      "which is a name" },
    { "{'id':'p','event_types':{}}", "invalid event_types| event types: must be an array" },
    { "{'id':'p','event_types':[7]}", "invalid event_type| event type: must be an object" },
    { "{'id':'p','event_types':[{}]}", "invalid event_type| event type ``: a name is a string of "
      "at most 255 bytes without control characters" },
    { "{'id':'p','event_types':[{'name':'a\\n'}]}", "invalid event_type| event type `a\\x0a`: a name "
      "is a string of at most 255 bytes without control characters" },
    { "{'id':'p','event_types':[{'name':''}]}",
      "invalid event_types| process declares an empty event type" },
    { "{'id':'p','event_types':[{'name':' '}]}",
      "invalid event_types| process declares an empty event type" },
    { "{'id':'p','event_types':[{'name':'a'},{'name':'b'},{'name':'a'}]}",
      "invalid event_types| process declares duplicate event type `a`" },
    { "{'id':'p','event_types':[{'name':'process.failed'},{'name':'process.failed'}]}",
      "invalid event_types| process declares duplicate event type `process.failed`" },
    { "{'id':'p','event_types':[{'name':'a','semantics':{'terminal':{'state':'failed'}}}]}",
      "invalid terminal| event type `a` is terminal without await output: only completed may "
      "be" },
    { "{'id':'p','event_types':[{'name':'a','payload_schema':{'schema':{'minLength':-1}}}]}",
      "invalid schema| schema.minLength: must be an integer from 0" },
    { "{'id':'p','event_types':[{'name':'a','payload_schema':{}}]}", NULL },
    { "{'id':'p','event_types':[{'name':'a','payload_schema':{'schema':null}}]}", NULL },
    { "{'id':'p','event_types':[{'name':'a','payload_schema':{'type':'object'}}]}",
      "invalid event_type| payload_schema: has no member `type`" },
};
/* clang-format on */

static void refusals(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(bad_registrations); i++) {
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        struct registration_ready r = { .canonical = bytes_str("untouched") };
        belay_rc rc = prepare(bad_registrations[i].body, &a, &r);
        if (!TAP_STR(t, rc ? refused(rc) : NULL, bad_registrations[i].want))
            printf("# row: %s\n", bad_registrations[i].body);
        if (rc)
            TAP_OK(t, bytes_eq(r.canonical, bytes_str("untouched")));
    }
}

static json_t *nested(int depth)
{
    json_t *value = json_null();

    while (depth-- > 0)
        value = json_pack("[o]", value);
    return value;
}

/* {"id":..,"provenance":{"caused_by":V}}: two levels around V. */
static void depths(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(json_release) json_t *most = nested(JSON_DEPTH_MAX - 2);
    CLEANUP(json_release) json_t *more = nested(JSON_DEPTH_MAX - 1);
    CLEANUP(json_release)
    json_t *types =
        json_of("[{'name':'e','semantics':{'terminal':{'state':'completed'}}}]");
    struct registration r = { .id = bytes_str("p"), .caused_by = most };
    struct registration_ready ready;
    struct append_request request = { .process_id = bytes_str("p"),
                                      .event_type = bytes_str("e"),
                                      .replay_key = bytes_str("k") };
    struct append_facts facts = { .event_types = types };
    struct append_answer answer;

    last = (struct belay_error){ .size = sizeof(last) };
    TAP_EQ(t, registration_prepare(&r, &a, &ready, NULL), BELAY_OK);
    r.caused_by = more;
    TAP_STR(t, refused(registration_prepare(&r, &a, &ready, &last)),
            "invalid too_deep| registration: nested deeper than 32");
    /* {"type":"success","value":V}: one */
    request.payload = more;
    TAP_EQ(t, append_judge(&request, &facts, &a, &answer, NULL), BELAY_OK);
    CLEANUP(json_release) json_t *deepest = nested(JSON_DEPTH_MAX);
    request.payload = deepest;
    TAP_STR(t, refused(append_judge(&request, &facts, &a, &answer, &last)),
            "invalid too_deep| await output: nested deeper than 32");
}

static void bounds(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(json_release) json_t *types = json_array();
    struct registration r = { .id = bytes_str("p"), .event_types = types };
    struct registration_ready ready;
    char name[32];

    for (int i = 0; i < EVENT_TYPES_MAX - EVENT_CORE_COUNT; i++) {
        (void)snprintf(name, sizeof(name), "type %d", i);
        (void)json_array_append_new(types, json_pack("{s:s}", "name", name));
    }
    TAP_EQ(t, registration_prepare(&r, &a, &ready, NULL), BELAY_OK);
    (void)json_array_append_new(types, json_pack("{s:s}", "name", "one more"));
    last = (struct belay_error){ .size = sizeof(last) };
    TAP_STR(t, refused(registration_prepare(&r, &a, &ready, &last)),
            "invalid event_types| event types: more than 256, the core types included");

    char *text = calloc(1, REGISTRATION_MAX + 1);
    memset(text, 'x', REGISTRATION_MAX);
    json_t *large = json_pack("{s:s,s:s}", "type", "external", "metadata", text);
    r = (struct registration){ .id = bytes_str("p"), .input = large };
    TAP_EQ(t, registration_prepare(&r, &a, &ready, &last), BELAY_INVALID);
    TAP_STR(t, last.reason, "too_large");
    TAP_EQ(t, last.expected, REGISTRATION_MAX);
    TAP_OK(t, last.actual > REGISTRATION_MAX);
    json_decref(large);
    free(text);
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

/* --- what hangs on a process, and refusals --- */

static void attachments(struct tap *t)
{
    /* clang-format off */
    static const struct {
        bool ref;
        const char *given, *want;
    } rows[] = {
        { true, "{'metadata':{'b':1,'a':2},'id':'i','backend':'k8s'}",
          "{'backend':'k8s','id':'i','metadata':{'a':2,'b':1}}" },
        { true, "{'backend':'b','id':'i','metadata':null}", "{'backend':'b','id':'i'}" },
        { true, "{'backend':'','id':'i'}", "invalid external_ref| external_ref: backend and id "
          "are strings of 1 to 255 bytes without control characters" },
        { true, "{'backend':'b'}", "invalid external_ref| external_ref: backend and id "
          "are strings of 1 to 255 bytes without control characters" },
        { true, "{'backend':'b','id':'i','url':1}",
          "invalid external_ref| external_ref: has no member `url`" },
        { false, "{}", "{}" },
        { false, "{'label':'l'}", "{'label':'l'}" },
        { false, "{'label':'l','kind':'k'}", "{'kind':'k','label':'l'}" },
        { false, "{'kind':''}", "{'kind':''}" },
        { false, "{'kind':7}",
          "invalid descriptor| descriptor: kind and label are strings of at most 255 bytes" },
        { false, "{'name':7}", "invalid descriptor| descriptor: has no member `name`" },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(json_release) json_t *value = json_of(rows[i].given);
        struct buf text CLEANUP(buf_release) = { 0 };
        struct external_ref ref;
        struct handle_descriptor descriptor;
        belay_rc rc;

        last = (struct belay_error){ .size = sizeof(last) };
        if (rows[i].ref) {
            rc = external_ref_read(value, &ref, &last);
            if (rc == BELAY_OK)
                rc = external_ref_write(&ref, &text, &last);
        } else {
            rc = handle_descriptor_read(value, &descriptor, &last);
            if (rc == BELAY_OK)
                handle_descriptor_write(&descriptor, &text);
        }
        TAP_STR(t,
                rc ? refused(rc)
                   : plain(buf_view(&text), shown_text, sizeof(shown_text)),
                rows[i].want);
    }
}

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
    { "a registration of defaults has the known canonical form and hash", golden },
    { "identity is content: order of types counts, defaults and key order do not",
      identity },
    { "an input is written with its type first", inputs },
    { "bad registrations are refused by name, and leave nothing", refusals },
    { "registrations have bounds", bounds },
    { "what is put together nests no deeper than can be read back", depths },
    { "a scope is a pair, and its text tells pairs apart", scopes },
    { "hashes, wake ids and keys are the known ones", keys },
    { "an event is judged in one order", appending },
    { "sequences have no gap and an end; damaged types are corrupt", sequences },
    { "external refs and descriptors are read and written", attachments },
    { "refusals of the registry have their known words", wordings },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
