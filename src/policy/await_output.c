#include "policy/await_output.h"

#include "policy/members.h"
#include "policy/words.h"

static const char *const state_names[] = {
    [PROCESS_RUNNING] = "running",
    [PROCESS_COMPLETED] = "completed",
    [PROCESS_FAILED] = "failed",
    [PROCESS_CANCELLED] = "cancelled",
};
static const char *const type_names[] = {
    [AWAIT_SUCCESS] = "success",
    [AWAIT_FAILURE] = "failure",
    [AWAIT_CANCELLED] = "cancelled",
};
static const char *const class_names[] = {
    [AWAIT_INVALID_REQUEST] = "invalid_request",
    [AWAIT_UNAVAILABLE] = "unavailable",
    [AWAIT_PERMISSION_DENIED] = "permission_denied",
    [AWAIT_TIMEOUT] = "timeout",
    [AWAIT_EXECUTION] = "execution",
    [AWAIT_EXTERNAL] = "external",
    [AWAIT_RESOURCE_LIMIT] = "resource_limit",
    [AWAIT_INTERNAL] = "internal",
};
static const char *const control_names[] = { "switch_agent_frame", "finish", "fail" };

static const struct words states = { state_names, PROCESS_STATES_END };
static const struct words types = { type_names, AWAIT_TYPES_END };
static const struct words classes = { class_names, AWAIT_CLASSES_END };
static const struct words controls = { control_names, (int)COUNT_OF(control_names) };

const char *process_state_name(int state)
{
    return words_name(states, state);
}

const char *await_type_name(int type)
{
    return words_name(types, type);
}

const char *await_class_name(int class_)
{
    return words_name(classes, class_);
}

bool process_state_parse(struct bytes name, int *out)
{
    return words_parse(states, name, out);
}

bool await_class_parse(struct bytes name, int *out)
{
    return words_parse(classes, name, out);
}

bool process_state_is_terminal(enum process_state state)
{
    return state != PROCESS_RUNNING;
}

enum process_state await_state(enum await_type type)
{
    static const enum process_state of[] = {
        [AWAIT_SUCCESS] = PROCESS_COMPLETED,
        [AWAIT_FAILURE] = PROCESS_FAILED,
        [AWAIT_CANCELLED] = PROCESS_CANCELLED,
    };
    return of[type];
}

enum await_type await_type_of(enum process_state state)
{
    static const enum await_type of[] = {
        [PROCESS_COMPLETED] = AWAIT_SUCCESS,
        [PROCESS_FAILED] = AWAIT_FAILURE,
        [PROCESS_CANCELLED] = AWAIT_CANCELLED,
    };
    return of[state];
}

const char *process_state_event(enum process_state state)
{
    static const char *const of[] = {
        [PROCESS_COMPLETED] = "process.completed",
        [PROCESS_FAILED] = "process.failed",
        [PROCESS_CANCELLED] = "process.cancelled",
    };
    return of[state];
}

/* --- reading --- */

static belay_rc bad(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_INVALID, "await_output", "await output: %s", why);
}

static const json_t *member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_null(value) ? NULL : value;
}

static bool is_control(const json_t *control)
{
    int ignored;

    return words_parse(controls, json_bytes(json_object_get(control, "type")),
                       &ignored);
}

static belay_rc read_failure(const json_t *value, struct await_output *o,
                             struct belay_error *err)
{
    const json_t *code = json_object_get(value, "code");
    int class_ = 0;

    if (!await_class_parse(json_bytes(json_object_get(value, "class")), &class_))
        return bad(err, "a failure has a class of invalid_request, unavailable, "
                        "permission_denied, timeout, execution, external, "
                        "resource_limit, internal");
    if (!json_is_string(code))
        return bad(err, "a failure has a code, which is a string");
    o->class_ = (enum await_class)class_;
    o->code = json_bytes(code);
    return BELAY_OK;
}

static belay_rc read_type(const json_t *value, struct await_output *o,
                          struct belay_error *err)
{
    const json_t *message = json_object_get(value, "message");

    if (o->type == AWAIT_SUCCESS) {
        o->value = json_object_get(value, "value"); /* null is a value */
        return o->value ? BELAY_OK : bad(err, "a success has a value");
    }
    if (!json_is_string(message))
        return bad(err, "failure and cancelled have a message, which is a string");
    o->message = json_bytes(message);
    o->value = member(value, "raw");
    return o->type == AWAIT_FAILURE ? read_failure(value, o, err) : BELAY_OK;
}

belay_rc await_output_read(const json_t *value, struct await_output *out,
                           struct belay_error *err)
{
    struct await_output o = { .control = member(value, "control") };
    int type = 0;

    if (!json_is_object(value))
        return bad(err, "must be an object");
    if (!words_parse(types, json_bytes(json_object_get(value, "type")), &type))
        return bad(err, "its type is success, failure or cancelled");
    o.type = (enum await_type)type;
    if (o.control && !is_control(o.control))
        return bad(err, "control has a type of switch_agent_frame, finish, fail");
    belay_rc rc = read_type(value, &o, err);
    if (rc == BELAY_OK)
        *out = o;
    return rc;
}

/* --- writing --- */

static void append_member(struct buf *out, const char *name, struct bytes json)
{
    if (!json.ptr)
        return;
    if (out->ptr[out->len - 1] != '{')
        buf_append_char(out, ',');
    json_append_string(out, bytes_str(name));
    buf_append_char(out, ':');
    buf_append(out, json);
}

static void append_text(struct buf *out, const char *name, struct bytes text)
{
    append_member(out, name, bytes_of("", 0));
    json_append_string(out, text);
}

belay_rc await_parts_write(const struct await_parts *p, struct buf *out,
                           struct belay_error *err)
{
    bool failure = p->type == AWAIT_FAILURE, success = p->type == AWAIT_SUCCESS;

    buf_append_char(out, '{');
    if (out->failed)
        return err_no_memory(err, "an await output");
    if (failure) {
        append_text(out, "class", bytes_str(class_names[p->class_]));
        append_text(out, "code", p->code);
    }
    append_member(out, "control", p->control);
    if (!success) {
        append_text(out, "message", p->message);
        append_member(out, "raw", p->value);
    }
    append_text(out, "type", bytes_str(type_names[p->type]));
    if (success)
        append_member(out, "value", p->value);
    buf_append_char(out, '}');
    return out->failed ? err_no_memory(err, "an await output") : BELAY_OK;
}

static belay_rc write_part(const json_t *value, struct buf *scratch, struct bytes *out,
                           struct belay_error *err)
{
    belay_rc rc = value ? json_write(value, scratch, err) : BELAY_OK;

    *out = buf_view(scratch);
    return rc;
}

belay_rc await_output_write(const struct await_output *o, struct buf *out,
                            struct belay_error *err)
{
    CLEANUP(buf_release) struct buf value = buf_in(out->arena);
    CLEANUP(buf_release) struct buf control = buf_in(out->arena);
    struct await_parts p = {
        .type = o->type, .class_ = o->class_, .code = o->code, .message = o->message
    };
    belay_rc rc = write_part(o->value, &value, &p.value, err);

    if (rc == BELAY_OK)
        rc = write_part(o->control, &control, &p.control, err);
    return rc ? rc : await_parts_write(&p, out, err);
}
