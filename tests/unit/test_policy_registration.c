/* Registrations and what hangs on a process. */
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

/* --- what hangs on a process --- */

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

static const struct tap_case cases[] = {
    { "a registration of defaults has the known canonical form and hash", golden },
    { "identity is content: order of types counts, defaults and key order do not",
      identity },
    { "an input is written with its type first", inputs },
    { "bad registrations are refused by name, and leave nothing", refusals },
    { "registrations have bounds", bounds },
    { "what is put together nests no deeper than can be read back", depths },
    { "external refs and descriptors are read and written", attachments },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
