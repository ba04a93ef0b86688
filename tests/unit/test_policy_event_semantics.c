/* Selectors, templates, await outputs, and what events mean. */
#include "policy/event_type.h"

#include "policy/process_event.h"
#include "test_policy_event.h"

static struct belay_error last;
static char shown_text[512];

static const char *refused(belay_rc rc)
{
    if ((int32_t)rc != last.code || rc == BELAY_OK)
        return "a code that is not the error's";
    static char text[sizeof(last.message) + sizeof(last.reason) + 2];
    (void)snprintf(text, sizeof(text), "%s| %s", last.reason, last.message);
    swap_char(text, '"', '\'');
    return text;
}

/* --- pointers --- */

static void pointers(struct tap *t)
{
    /* Examples of RFC 6901, and what is at the edges. */
    static const char document[] =
        "{'foo':['bar','baz'],'':0,'a/b':1,'c%d':2,'e^f':3,'g|h':4,'i\\\\j':5,' ':7,"
        "'m~n':8,'~1':9,'o':{'0':10,'-':11,'01':12},'n':null}";
    static const struct {
        const char *pointer, *want;
    } rows[] = {
        { "/foo", "['bar','baz']" },
        { "/foo/0", "'bar'" },
        { "/foo/1", "'baz'" },
        { "/", "0" },
        { "/a~1b", "1" },
        { "/c%d", "2" },
        { "/e^f", "3" },
        { "/g|h", "4" },
        { "/i\\j", "5" },
        { "/ ", "7" },
        { "/m~0n", "8" },
        { "/~01", "9" },
        { "/o/0", "10" },
        { "/o/-", "11" },
        { "/o/01", "12" },
        { "/n", "null" },
        { "/foo/2", NULL },
        { "/foo/-", NULL },
        { "/foo/00", NULL },
        { "/foo/01", NULL },
        { "/foo/+1", NULL },
        { "/foo/-1", NULL },
        { "/foo/1 ", NULL },
        { "/foo/18446744073709551616", NULL },
        { "/foo/9223372036854775807", NULL },
        { "/foo/0/0", NULL },
        { "/n/a", NULL },
        { "//", NULL },
        { "/a/b", NULL },
        { "/bar", NULL },
        /* no pointers */
        { "foo", NULL },
        { "/m~n", NULL },
        { "/m~", NULL },
        { "/m~2n", NULL },
    };
    CLEANUP(json_release) json_t *root = json_of(document);

    TAP_OK(t, pointer_find(root, bytes_str("")) == root);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const json_t *found = pointer_find(root, bytes_str(rows[i].pointer));
        struct buf text CLEANUP(buf_release) = { 0 };
        if (found && json_write(found, &text, NULL) != BELAY_OK)
            buf_append_str(&text, "?");
        const char *got =
            found ? plain(buf_view(&text), shown_text, sizeof(shown_text)) : NULL;
        if (!TAP_STR(t, got, rows[i].want))
            printf("# row: %s\n", rows[i].pointer);
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        TAP_EQ(t, pointer_is_valid(bytes_str(rows[i].pointer)), i < COUNT_OF(rows) - 4);

    char longest[SELECTOR_POINTER_MAX + 2];
    memset(longest, '/', sizeof(longest));
    TAP_OK(t, pointer_is_valid(bytes_of(longest, SELECTOR_POINTER_MAX)));
    TAP_OK(t, !pointer_find(root, bytes_of(longest, SELECTOR_POINTER_MAX)));
    TAP_OK(t, !pointer_is_valid(bytes_of(longest, SELECTOR_POINTER_MAX + 1)));
}

/* --- selecting --- */

/* "T text" or "F text": truth and text form; or the refusal. */
static const char *selected(const char *declared, const char *payload)
{
    CLEANUP(json_release) json_t *selector_json = json_of(declared);
    CLEANUP(json_release) json_t *value = json_of(payload);
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct buf answer CLEANUP(buf_release) = { 0 };
    struct selector s;
    struct selected out;
    struct bytes text;

    last = (struct belay_error){ .size = sizeof(last) };
    belay_rc rc = selector_read(selector_json, "it", &a, &s, &last);
    if (rc == BELAY_OK)
        rc = selector_select(&s, value, &a, &out, &last);
    if (rc == BELAY_OK)
        rc = selected_text(&out, &a, &text, &last);
    if (rc != BELAY_OK)
        return refused(rc);
    buf_append_str(&answer, selected_is_true(&out) ? "T " : "F ");
    buf_append(&answer, text);
    return plain(buf_view(&answer), shown_text, sizeof(shown_text));
}

/* clang-format off */
static const struct {
    const char *selector, *payload, *want;
} selections[] = {
    { "'payload'", "{'b':1,'a':[0.1,1e21]}", "T {'a':[0.1,1e21],'b':1}" },
    { "'payload'", "'text'", "T text" },
    { "'payload'", "''", "F " },
    { "'payload'", "null", "F null" },
    { "'payload'", "true", "T true" },
    { "'payload'", "false", "F false" },
    { "'payload'", "0", "T 0" },
    { "'payload'", "0.0", "T 0.0" },
    { "'payload'", "-1", "T -1" },
    { "'payload'", "[]", "F []" },
    { "'payload'", "[0]", "T [0]" },
    { "'payload'", "{}", "F {}" },
    { "'payload'", "{'a':null}", "T {'a':null}" },
    { "{'pointer':''}", "7", "T 7" },
    { "{'pointer':'/a/1'}", "{'a':[1,'x']}", "T x" },
    { "{'pointer':'/b'}", "{'a':1}", "pointer| payload pointer `/b` did not match" },
    { "{'const':null}", "1", "F null" },
    { "{'const':'x'}", "1", "T x" },
    { "{'const':{'z':1,'a':''}}", "1", "T {'a':'','z':1}" },
    { "{'present':'/a'}", "{'a':null}", "T true" },
    { "{'present':'/a'}", "{'b':1}", "F false" },
    { "{'present':''}", "null", "T true" },
    { "{'template':{'template':'plain {x}'}}", "1", "T plain {x}" },
    { "{'template':{'template':'','fields':{}}}", "1", "F " },
    { "{'template':{'template':'{a}-{a}-{b}','fields':{'a':{'pointer':'/a'},'b':'payload'}}}",
      "{'a':'x'}", "T x-x-{'a':'x'}" },
    /* fields go by name: what a put in is looked at for b, not the other way */
    { "{'template':{'template':'{a}{b}','fields':{'b':{'const':'{a}'},'a':{'const':'{b}'}}}}",
      "1", "T {a}{a}" },
    { "{'template':{'template':'{a}','fields':{'a':{'const':'{a}{a}'}}}}", "1", "T {a}{a}" },
    { "{'template':{'template':'{}{ a}{b','fields':{'':{'const':1},'a':{'const':2},"
      "'b':{'const':3}}}}", "1", "T 1{ a}{b" },
    { "{'template':{'template':'{{a}}','fields':{'a':{'const':'b'},'b':{'const':'c'}}}}",
      "1", "T c" },
    { "{'template':{'template':'{x}','fields':{'x':{'template':{'template':'<{y}>',"
      "'fields':{'y':{'present':'/q'}}}}}}}", "{}", "T <false>" },
    { "{'template':{'template':'{\xc3\xa4}','fields':{'\xc3\xa4':{'const':'\xe2\x82\xac'}}}}",
      "1", "T \xe2\x82\xac" },
    { "{'template':{'template':'no hole','fields':{'a':{'pointer':'/missing'}}}}", "{}",
      "pointer| payload pointer `/missing` did not match" },
    /* what is no selector */
    { "'Payload'", "1", "selector| it: a selector is 'payload' or an object with one of "
      "pointer, const, template, present" },
    { "{}", "1", "selector| it: a selector is 'payload' or an object with one of "
      "pointer, const, template, present" },
    { "null", "1", "selector| it: a selector is 'payload' or an object with one of "
      "pointer, const, template, present" },
    { "{'pointer':'/a','const':1}", "1", "selector| it: a selector is 'payload' or an object "
      "with one of pointer, const, template, present" },
    { "{'payload':1}", "1", "selector| it: 'payload' stands alone" },
    { "{'pointer':'a'}", "1", "selector| it: a pointer is '' or /a/b, with ~0 for ~ and ~1 "
      "for /, of at most 1024 bytes" },
    { "{'present':7}", "1", "selector| it: a pointer is '' or /a/b, with ~0 for ~ and ~1 "
      "for /, of at most 1024 bytes" },
    { "{'template':'x'}", "1", "selector| it: must be an object" },
    { "{'template':{'template':7}}", "1",
      "selector| it: a template is {'template':'text','fields':{...}}" },
    { "{'template':{'template':'','fields':[]}}", "1",
      "selector| it: a template is {'template':'text','fields':{...}}" },
    { "{'template':{'template':'','feilds':{}}}", "1", "selector| it: has no member `feilds`" },
    { "{'template':{'template':'','fields':{'a':7}}}", "1", "selector| it: a selector is "
      "'payload' or an object with one of pointer, const, template, present" },
};
/* clang-format on */

static void selectors(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(selections); i++) {
        if (!TAP_STR(t, selected(selections[i].selector, selections[i].payload),
                     selections[i].want))
            printf("# row: %s <- %s\n", selections[i].selector, selections[i].payload);
    }
}

static void selectors_print(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(selections); i++) {
        CLEANUP(json_release) json_t *declared = json_of(selections[i].selector);
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        struct buf once = buf_in(&a), twice = buf_in(&a);
        struct selector s, again;
        json_t *back = NULL;

        if (selector_read(declared, "it", &a, &s, NULL) != BELAY_OK)
            continue;
        TAP_EQ(t, selector_write(&s, &once, NULL), BELAY_OK);
        TAP_EQ(t, json_read(buf_view(&once), SIZE_MAX, &back, NULL), BELAY_OK);
        TAP_EQ(t, selector_read(back, "it", &a, &again, NULL), BELAY_OK);
        TAP_EQ(t, selector_write(&again, &twice, NULL), BELAY_OK);
        TAP_OK(t, bytes_eq(buf_view(&once), buf_view(&twice)));
        json_decref(back);
    }
}

/* Fields a to n, each ten times the next: 10^n bytes, were there no bound. */
static json_t *bomb(int n)
{
    json_t *fields = json_object();

    for (int i = 0; i < n; i++) {
        char name[2] = { (char)('a' + i), 0 }, text[64] = "";
        for (int k = 0; k < 10; k++) {
            char hole[4] = { '{', (char)('b' + i), '}', 0 };
            (void)strncat(text, hole, sizeof(text) - strlen(text) - 1);
        }
        (void)json_object_set_new(fields, name, json_pack("{s:s}", "const", text));
    }
    return json_pack("{s:{s:s,s:o}}", "template", "template", "{a}", "fields", fields);
}

static void template_bombs(struct tap *t)
{
    static const struct {
        int fields;
        belay_rc want;
    } rows[] = { { 5, BELAY_OK }, { 9, BELAY_INVALID }, { 20, BELAY_INVALID } };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP(json_release) json_t *declared = bomb(rows[i].fields);
        CLEANUP(arena_release) struct belay_arena a = { 0 };
        struct selector s;
        struct selected out;

        last = (struct belay_error){ .size = sizeof(last) };
        TAP_EQ(t, selector_read(declared, "it", &a, &s, &last), BELAY_OK);
        TAP_EQ(t, selector_select(&s, declared, &a, &out, &last), rows[i].want);
        TAP_STR(t, last.reason, rows[i].want == BELAY_OK ? "" : "too_large");
    }
}

static void selector_bounds(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    json_t *nested = json_string("payload"), *fields = json_object();
    struct selector s;
    char name[16];

    for (int i = 0; i < SELECTOR_DEPTH_MAX; i++)
        nested = json_pack("{s:{s:s,s:{s:o}}}", "template", "template", "{a}", "fields",
                           "a", nested);
    TAP_EQ(t, selector_read(nested, "it", &a, &s, NULL), BELAY_OK);
    nested = json_pack("{s:{s:s,s:{s:o}}}", "template", "template", "", "fields", "a",
                       nested);
    TAP_EQ(t, selector_read(nested, "it", &a, &s, NULL), BELAY_INVALID);
    json_decref(nested);

    for (int i = 0; i < SELECTOR_FIELDS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        (void)json_object_set_new(fields, name, json_string("payload"));
    }
    json_t *full =
        json_pack("{s:{s:s,s:O}}", "template", "template", "", "fields", fields);
    TAP_EQ(t, selector_read(full, "it", &a, &s, NULL), BELAY_OK);
    /* Four of those, and their outer one, are more than 256 selectors. */
    json_t *four = json_pack("{s:{s:s,s:{s:O,s:O,s:O,s:O}}}", "template", "template",
                             "", "fields", "a", full, "b", full, "c", full, "d", full);
    TAP_EQ(t, selector_read(four, "it", &a, &s, NULL), BELAY_INVALID);
    (void)json_object_set_new(fields, "one more", json_string("payload"));
    TAP_EQ(t, selector_read(full, "it", &a, &s, NULL), BELAY_INVALID);
    json_decref(four);
    json_decref(full);
    json_decref(fields);
}

/* --- await outputs --- */

/* clang-format off */
static const struct {
    const char *output, *want;
} outputs[] = {
    { "{'type':'success','value':null}", "{'type':'success','value':null}" },
    { "{'value':{'b':1,'a':2},'type':'success'}", "{'type':'success','value':{'a':2,'b':1}}" },
    { "{'type':'success','value':1,'control':{'type':'finish','x':1}}",
      "{'control':{'type':'finish','x':1},'type':'success','value':1}" },
    { "{'type':'success','value':1,'control':null,'more':1}", "{'type':'success','value':1}" },
    { "{'type':'failure','class':'timeout','code':'c','message':'m'}",
      "{'class':'timeout','code':'c','message':'m','type':'failure'}" },
    { "{'type':'failure','class':'internal','code':'c','message':'m','raw':[1],"
      "'control':{'type':'fail'}}",
      "{'class':'internal','code':'c','control':{'type':'fail'},'message':'m','raw':[1],"
      "'type':'failure'}" },
    { "{'type':'failure','class':'invalid_request','code':'','message':'','raw':null}",
      "{'class':'invalid_request','code':'','message':'','type':'failure'}" },
    { "{'type':'cancelled','message':'m'}", "{'message':'m','type':'cancelled'}" },
    { "{'type':'cancelled','message':'m','raw':false,'control':{'type':'switch_agent_frame'}}",
      "{'control':{'type':'switch_agent_frame'},'message':'m','raw':false,'type':'cancelled'}" },
    { "7", "await_output| await output: must be an object" },
    { "{}", "await_output| await output: its type is success, failure or cancelled" },
    { "{'type':'done','value':1}",
      "await_output| await output: its type is success, failure or cancelled" },
    { "{'type':'success'}", "await_output| await output: a success has a value" },
    { "{'type':'cancelled'}", "await_output| await output: failure and cancelled have a "
      "message, which is a string" },
    { "{'type':'failure','class':'timeout','code':'c'}", "await_output| await output: failure "
      "and cancelled have a message, which is a string" },
    { "{'type':'failure','class':'timeout','message':'m'}",
      "await_output| await output: a failure has a code, which is a string" },
    { "{'type':'failure','class':'bad','code':'c','message':'m'}",
      "await_output| await output: a failure has a class of invalid_request, unavailable, "
      "permission_denied, timeout, execution, external, resource_limit, internal" },
    { "{'type':'success','value':1,'control':{'type':'jump'}}",
      "await_output| await output: control has a type of switch_agent_frame, finish, fail" },
    { "{'type':'success','value':1,'control':'finish'}",
      "await_output| await output: control has a type of switch_agent_frame, finish, fail" },
};
/* clang-format on */

static void await_outputs(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(outputs); i++) {
        CLEANUP(json_release) json_t *value = json_of(outputs[i].output);
        struct buf text CLEANUP(buf_release) = { 0 };
        struct await_output o = { .type = AWAIT_CANCELLED };

        last = (struct belay_error){ .size = sizeof(last) };
        belay_rc rc = await_output_read(value, &o, &last);
        if (rc == BELAY_OK)
            rc = await_output_write(&o, &text, &last);
        TAP_STR(t,
                rc == BELAY_OK ? plain(buf_view(&text), shown_text, sizeof(shown_text))
                               : refused(rc),
                outputs[i].want);
    }
}

static void await_words(struct tap *t)
{
    static const char *const classes[] = {
        "invalid_request", "unavailable", "permission_denied", "timeout",
        "execution",       "external",    "resource_limit",    "internal",
    };
    static const char *const states[] = { "running", "completed", "failed",
                                          "cancelled" };
    int found;

    for (int i = 0; i < AWAIT_CLASSES_END; i++) {
        TAP_STR(t, await_class_name(i), classes[i]);
        TAP_OK(t, await_class_parse(bytes_str(classes[i]), &found) && found == i);
    }
    for (int i = 0; i < PROCESS_STATES_END; i++) {
        TAP_STR(t, process_state_name(i), states[i]);
        TAP_OK(t, process_state_parse(bytes_str(states[i]), &found) && found == i);
        TAP_EQ(t, process_state_is_terminal((enum process_state)i), i > 0);
    }
    for (int i = 0; i < AWAIT_TYPES_END; i++)
        TAP_EQ(t, await_type_of(await_state((enum await_type)i)), i);
    TAP_OK(t, !await_class_name(-1) && !await_class_name(AWAIT_CLASSES_END));
    TAP_OK(t, !process_state_name(PROCESS_STATES_END));
    TAP_STR(t, await_type_name(AWAIT_FAILURE), "failure");
    TAP_STR(t, process_state_event(PROCESS_COMPLETED), "process.completed");
    TAP_STR(t, process_state_event(PROCESS_FAILED), "process.failed");
    TAP_STR(t, process_state_event(PROCESS_CANCELLED), "process.cancelled");
}

/* --- what events mean --- */

/* "state output", "wake input key", both or "nothing"; or the refusal. */
static const char *meaning(const char *semantics, const char *payload)
{
    CLEANUP(json_release)
    json_t *declared =
        json_pack("{s:s,s:o}", "name", "e", "semantics", json_of(semantics));
    CLEANUP(json_release) json_t *value = json_of(payload);
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct buf answer = buf_in(&a);
    struct event_meaning m;
    struct event_type type;

    last = (struct belay_error){ .size = sizeof(last) };
    belay_rc rc = event_type_read(declared, &a, &type, &last);
    if (rc == BELAY_OK)
        rc = event_type_mean(&type, value, bytes_str("p-1"), 3, &a, &m, &last);
    if (rc != BELAY_OK)
        return refused(rc);
    if (m.terminal)
        buf_printf(&answer, "%s %.*s", process_state_name((int)m.state),
                   (int)m.await_output.len, (const char *)m.await_output.ptr);
    if (m.wake) {
        buf_append_str(&answer, m.terminal ? " wake " : "wake ");
        buf_append(&answer, m.wake_input);
        buf_append_char(&answer, ' ');
        buf_append(&answer, m.dedupe_key);
    }
    if (answer.len == 0)
        return "nothing";
    return plain(buf_view(&answer), shown_text, sizeof(shown_text));
}

/* clang-format off */
static const struct {
    const char *semantics, *payload, *want;
} meanings[] = {
    { "{}", "1", "nothing" },
    { "{'terminal':null,'wake':null}", "1", "nothing" },
    { "{'terminal':{'state':'completed'}}", "{'a':1}",
      "completed {'type':'success','value':{'a':1}}" },
    /* without a selector nothing is decoded */
    { "{'terminal':{'state':'completed'}}", "{'type':'cancelled','message':'m'}",
      "completed {'type':'success','value':{'message':'m','type':'cancelled'}}" },
    { "{'terminal':{'state':'completed','await_output':'payload'}}",
      "{'type':'success','value':7}", "completed {'type':'success','value':7}" },
    { "{'terminal':{'state':'completed','await_output':'payload'}}", "'x'",
      "completed {'type':'success','value':'x'}" },
    { "{'terminal':{'state':'failed','await_output':{'pointer':'/why'}}}", "{'why':'late'}",
      "failed {'class':'execution','code':'process_failed','message':'late','raw':'late',"
      "'type':'failure'}" },
    { "{'terminal':{'state':'failed','await_output':'payload'}}", "{'b':1,'a':2}",
      "failed {'class':'execution','code':'process_failed','message':'{\\'a\\':2,\\'b\\':1}',"
      "'raw':{'a':2,'b':1},'type':'failure'}" },
    { "{'terminal':{'state':'failed','await_output':'payload'}}",
      "{'type':'failure','class':'timeout','code':'c','message':'m'}",
      "failed {'class':'timeout','code':'c','message':'m','type':'failure'}" },
    { "{'terminal':{'state':'cancelled','await_output':{'const':null}}}", "1",
      "cancelled {'message':'null','raw':null,'type':'cancelled'}" },
    { "{'terminal':{'state':'cancelled','await_output':{'template':{'template':'by {w}',"
      "'fields':{'w':{'pointer':'/w'}}}}}}", "{'w':'me'}",
      "cancelled {'message':'by me','raw':'by me','type':'cancelled'}" },
    { "{'terminal':{'state':'completed','await_output':{'present':'/a'}}}", "{}",
      "completed {'type':'success','value':false}" },
    { "{'terminal':{'state':'completed','await_output':{'pointer':'/a'}}}", "{}",
      "pointer| payload pointer `/a` did not match" },
    /* an output and a state that disagree */
    { "{'terminal':{'state':'completed','await_output':'payload'}}",
      "{'type':'failure','class':'timeout','code':'c','message':'m'}",
      "await_output| await output: it is of a process that failed, the event of one that "
      "completed" },
    { "{'terminal':{'state':'failed','await_output':'payload'}}", "{'type':'success','value':1}",
      "await_output| await output: it is of a process that completed, the event of one that "
      "failed" },
    { "{'terminal':{'state':'failed','await_output':'payload'}}",
      "{'type':'cancelled','message':'m'}",
      "await_output| await output: it is of a process that cancelled, the event of one that "
      "failed" },
    /* declarations that are refused */
    { "{'terminal':{'state':'failed'}}", "1", "terminal| event type `e` is terminal without "
      "await output: only completed may be" },
    { "{'terminal':{'state':'cancelled','await_output':null}}", "1",
      "terminal| event type `e` is terminal without await output: only completed may be" },
    { "{'terminal':{'state':'running'}}", "1", "event_type| event type `e`: a terminal state is "
      "completed, failed or cancelled" },
    { "{'terminal':{}}", "1", "event_type| event type `e`: a terminal state is "
      "completed, failed or cancelled" },
    { "{'terminal':7}", "1", "event_type| terminal: must be an object" },
    { "{'terminal':{'state':'completed','output':1}}", "1",
      "event_type| terminal: has no member `output`" },
    { "{'wakes':{}}", "1", "event_type| semantics: has no member `wakes`" },
    /* wakes */
    { "{'wake':{'input':{'pointer':'/text'}}}", "{'text':'hi'}", "wake hi p-1:3" },
    { "{'wake':{'input':'payload','dedupe_key':'event_identity'}}", "[1]", "wake [1] p-1:3" },
    { "{'wake':{'input':{'const':'x'},'dedupe_key':{'const':'once'}}}", "1", "wake x once" },
    { "{'wake':{'input':{'const':'x'},'dedupe_key':{'const':''}}}", "1", "wake x " },
    { "{'wake':{'input':{'const':'x'},'dedupe_key':{'selector':{'pointer':'/k'}}}}", "{'k':7}",
      "wake x 7" },
    { "{'wake':{'input':{'template':{'template':'{a}!','fields':{'a':{'pointer':'/a'}}}}}}",
      "{'a':true}", "wake true! p-1:3" },
    { "{'wake':{'when':{'pointer':'/go'},'input':{'const':'x'}}}", "{'go':0}", "wake x p-1:3" },
    { "{'wake':{'when':{'pointer':'/go'},'input':{'const':'x'}}}", "{'go':''}", "nothing" },
    { "{'wake':{'when':{'present':'/go'},'input':{'pointer':'/missing'}}}", "{}", "nothing" },
    { "{'wake':{'when':{'pointer':'/go'},'input':{'const':'x'}}}", "{}",
      "pointer| payload pointer `/go` did not match" },
    { "{'wake':{'input':{'pointer':'/text'}}}", "{}",
      "pointer| payload pointer `/text` did not match" },
    { "{'terminal':{'state':'completed'},'wake':{'input':{'const':'done'}}}", "1",
      "completed {'type':'success','value':1} wake done p-1:3" },
    { "{'wake':{}}", "1", "event_type| event type `e`: a wake has an input, which is a selector" },
    { "{'wake':{'input':'payload','dedupe_key':'other'}}", "1",
      "event_type| event type `e`: a dedupe key is 'event_identity', {'selector':...} or "
      "{'const':'text'} of at most 65536 bytes" },
    { "{'wake':{'input':'payload','dedupe_key':{'const':7}}}", "1",
      "event_type| event type `e`: a dedupe key is 'event_identity', {'selector':...} or "
      "{'const':'text'} of at most 65536 bytes" },
    { "{'wake':{'input':'payload','dedupe_key':{'selector':'payload','const':'x'}}}", "1",
      "event_type| event type `e`: a dedupe key is 'event_identity', {'selector':...} or "
      "{'const':'text'} of at most 65536 bytes" },
    { "{'wake':{'input':'payload','dedupe_key':{'selector':'pay'}}}", "1",
      "selector| wake.dedupe_key: a selector is 'payload' or an object with one of pointer, "
      "const, template, present" },
};
/* clang-format on */

static void events_mean(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        if (!TAP_STR(t, meaning(meanings[i].semantics, meanings[i].payload),
                     meanings[i].want))
            printf("# row: %s <- %s\n", meanings[i].semantics, meanings[i].payload);
    }
}

static void long_keys(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(json_release)
    json_t *declared = json_of("{'name':'e','semantics':{'wake':{'input':{'const':1},"
                               "'dedupe_key':{'selector':'payload'}}}}");
    char *key = calloc(1, DEDUPE_KEY_MAX + 2);
    struct event_meaning m = { .state = PROCESS_FAILED };
    struct event_type type;

    memset(key, 'k', DEDUPE_KEY_MAX + 1);
    json_t *longest = json_stringn(key, DEDUPE_KEY_MAX);
    json_t *too_long = json_stringn(key, DEDUPE_KEY_MAX + 1);
    TAP_EQ(t, event_type_read(declared, &a, &type, NULL), BELAY_OK);
    last = (struct belay_error){ .size = sizeof(last) };
    TAP_EQ(t, event_type_mean(&type, too_long, bytes_str("p"), 1, &a, &m, &last),
           BELAY_INVALID);
    TAP_STR(t, last.reason, "too_large");
    TAP_EQ(t, last.actual, DEDUPE_KEY_MAX + 1);
    TAP_EQ(t, m.state, PROCESS_FAILED); /* untouched */
    TAP_EQ(t, event_type_mean(&type, longest, bytes_str("p"), 1, &a, &m, NULL),
           BELAY_OK);
    TAP_EQ(t, m.dedupe_key.len, DEDUPE_KEY_MAX);
    json_decref(longest);
    json_decref(too_long);
    free(key);
}

static const char *written(const struct event_type *type)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    if (event_type_write(type, &text, NULL) != BELAY_OK)
        return "?";
    return plain(buf_view(&text), shown_text, sizeof(shown_text));
}

static void core_and_presets(struct tap *t)
{
    TAP_STR(t, written(&event_core[0]),
            "{'name':'process.cancel_requested','payload_schema':{'schema':{}},"
            "'semantics':{}}");
    TAP_STR(
        t, written(&event_core[1]),
        "{'name':'process.completed','payload_schema':{'schema':{}},'semantics':"
        "{'terminal':{'state':'completed','await_output':{'pointer':'/await_output'}}"
        "}}");
    TAP_STR(
        t, written(&event_core[2]),
        "{'name':'process.failed','payload_schema':{'schema':{}},'semantics':"
        "{'terminal':{'state':'failed','await_output':{'pointer':'/await_output'}}}}");
    TAP_STR(
        t, written(&event_core[3]),
        "{'name':'process.cancelled','payload_schema':{'schema':{}},'semantics':"
        "{'terminal':{'state':'cancelled','await_output':{'pointer':'/await_output'}}"
        "}}");
    TAP_STR(t, written(&event_presets[0]),
            "{'name':'process.yield','payload_schema':{'schema':{}},'semantics':{}}");
    TAP_STR(t, written(&event_presets[1]),
            "{'name':'process.wake','payload_schema':{'schema':{}},'semantics':{'wake':"
            "{'input':{'pointer':'/text'},'dedupe_key':'event_identity'}}}");
    TAP_STR(t, written(&event_presets[2]),
            "{'name':'process.signal','payload_schema':{'schema':{}},'semantics':{}}");
}

static const struct tap_case cases[] = {
    { "pointers follow RFC 6901", pointers },
    { "selectors select, with their text form and truth", selectors },
    { "what a selector prints reads as the same", selectors_print },
    { "templates do not grow without bound", template_bombs },
    { "selectors have bounds", selector_bounds },
    { "await outputs are read and written", await_outputs },
    { "states, types and classes have names", await_words },
    { "events mean an end, a wake, both or nothing", events_mean },
    { "a dedupe key has a bound", long_keys },
    { "core types and presets are what they are", core_and_presets },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
