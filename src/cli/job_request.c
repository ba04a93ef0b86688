#include "cli/job_request.h"

#include "api/op_json.h"
#include "base/json.h"

#define ENCODED "_base64"
#define AS_TEXT "_text" /* JSON that is nested too deeply for a request */

/* clang-format off */
static const struct verb verbs[] = {
    { "renew",    TALLY_COUNT,     NULL,        { "handle", "lease" } },
    { "progress", TALLY_COUNT,     NULL,        { "handle", "percent", "message" } },
    { "frame",    TALLY_COUNT,     NULL,        { "handle", "kind", "mode", "data", "seq",
                                                  "frame_type", "correlation" } },
    { "complete", TALLY_COMPLETED, "completed", { "handle", "result" } },
    { "fail",     TALLY_FAILED,    "failed",    { "handle", "class", "message", "detail" } },
    { "abort",    TALLY_FAILED,    "aborted",   { "handle", "reason" } },
    { "delay",    TALLY_RELEASED,  "delayed",   { "handle", "for", "until" } },
    { "release",  TALLY_RELEASED,  "released",  { "handle" } },
};
/* clang-format on */

static const struct verb *verb_called(const char *name)
{
    for (size_t i = 0; name && i < COUNT_OF(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

static belay_rc refuse(struct job_request *q, const char *name, const char *why)
{
    (void)err_reason(q->err, BELAY_INVALID, "argument", "%s: %s", name, why);
    err_entity(q->err, bytes_str(name));
    return BELAY_INVALID;
}

/* --- arguments --- */

static belay_rc copy_text(struct job_request *q, struct bytes text, struct bytes *out)
{
    return arena_copy(&q->arena, text, out) ? BELAY_OK
                                            : err_no_memory(q->err, "an argument");
}

static belay_rc copy_json(struct job_request *q, const json_t *value, struct bytes *out)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    belay_rc rc = json_write(value, &text, q->err);
    return rc == BELAY_OK ? copy_text(q, buf_view(&text), out) : rc;
}

/* The text that a command line would have for the value. */
static belay_rc text_of(struct job_request *q, const struct op_arg *arg,
                        const json_t *value, struct bytes *out)
{
    struct buf number CLEANUP(buf_release) = { 0 };

    if (arg->type == OP_JSON)
        return copy_json(q, value, out);
    if (json_is_string(value))
        return copy_text(
            q, bytes_of(json_string_value(value), json_string_length(value)), out);
    if (json_is_boolean(value) && arg->type == OP_BOOL)
        return copy_text(q, bytes_str(json_is_true(value) ? "true" : "false"), out);
    if (!json_is_integer(value))
        return refuse(q, arg->name, "must be a string or a whole number");
    buf_append_i64(&number, json_integer_value(value));
    if (arg->type == OP_DURATION) /* plain numbers are milliseconds */
        buf_append_str(&number, "ms");
    if (number.failed)
        return err_no_memory(q->err, "an argument");
    return copy_text(q, buf_view(&number), out);
}

static belay_rc add_text(struct job_request *q, const struct op_arg *arg,
                         struct bytes text)
{
    belay_rc rc = op_value_parse(arg, text, &q->values[q->n_values], q->err);

    if (rc == BELAY_OK)
        q->n_values++;
    else
        err_context(q->err, arg->name);
    return rc;
}

static belay_rc add_value(struct job_request *q, const struct op_arg *arg,
                          const json_t *value)
{
    struct bytes text;
    belay_rc rc = text_of(q, arg, value, &text);

    return rc == BELAY_OK ? add_text(q, arg, text) : rc;
}

/* Bytes that are no text, as `<name>_base64`. */
static belay_rc add_base64(struct job_request *q, const struct op_arg *arg,
                           const json_t *value)
{
    const char *text = json_string_value(value);
    bool no_memory = false;
    size_t len;
    const void *bytes =
        text ? op_base64(bytes_str(text), &q->arena, &len, &no_memory) : NULL;
    struct bytes copy;

    if (no_memory)
        return err_no_memory(q->err, "an argument");
    if (!bytes)
        return refuse(q, arg->name, "is not base64");
    belay_rc rc = copy_text(q, bytes_of(bytes, len), &copy);
    return rc == BELAY_OK ? add_text(q, arg, copy) : rc;
}

/* The value of `<name><ending>`. */
static const json_t *value_beside(const struct job_request *q, const struct op_arg *arg,
                                  const char *ending)
{
    struct buf name CLEANUP(buf_release) = { 0 };

    buf_append_str(&name, arg->name);
    buf_append(&name, bytes_of(ending, strlen(ending) + 1));
    return name.failed ? NULL : json_object_get(q->args, (const char *)name.ptr);
}

static belay_rc add_json_text(struct job_request *q, const struct op_arg *arg,
                              const json_t *value)
{
    struct bytes copy;

    if (!json_is_string(value))
        return refuse(q, arg->name, "is not JSON in a string");
    belay_rc rc = copy_text(
        q, bytes_of(json_string_value(value), json_string_length(value)), &copy);
    return rc == BELAY_OK ? add_text(q, arg, copy) : rc;
}

/* One argument of the command: as given, else its fallback. */
static belay_rc read_arg(struct job_request *q, const struct op_arg *arg)
{
    const json_t *value = json_object_get(q->args, arg->name);
    const json_t *encoded = value ? NULL : value_beside(q, arg, ENCODED);
    const json_t *text = arg->type == OP_JSON ? value_beside(q, arg, AS_TEXT) : NULL;

    if (strcmp(arg->name, "handle") == 0) {
        const char *given = json_string_value(value);
        if (value && (!given || strcmp(given, q->run->handle) != 0))
            return err_reason(q->err, BELAY_BAD_HANDLE, "other_attempt",
                              "the handle is not that of this attempt");
        return add_text(q, arg, bytes_str(q->run->handle));
    }
    if (text)
        return add_json_text(q, arg, text);
    if (encoded)
        return add_base64(q, arg, encoded);
    if (json_is_array(value) && arg->repeated) {
        belay_rc rc = BELAY_OK;
        for (size_t i = 0; rc == BELAY_OK && i < json_array_size(value); i++)
            rc = add_value(q, arg, json_array_get(value, i));
        return rc;
    }
    if (value && (!json_is_null(value) || arg->type == OP_JSON))
        return add_value(q, arg, value);
    if (arg->fallback)
        return add_text(q, arg, bytes_str(arg->fallback));
    return arg->required ? refuse(q, arg->name, "is missing") : BELAY_OK;
}

static bool is_json(const struct operation *op, const char *name)
{
    for (size_t i = 0; i < op->n_args; i++) {
        if (strcmp(op->args[i].name, name) == 0)
            return op->args[i].type == OP_JSON;
    }
    return false;
}

/* Whether the verb takes an argument of this name, plain or encoded. */
static bool is_taken(const struct job_request *q, const char *name)
{
    const struct verb *verb = q->verb;

    for (size_t i = 0; i < COUNT_OF(verb->args) && verb->args[i]; i++) {
        size_t len = strlen(verb->args[i]);
        if (strncmp(name, verb->args[i], len) != 0)
            continue;
        if (name[len] == '\0' || strcmp(name + len, ENCODED) == 0 ||
            (strcmp(name + len, AS_TEXT) == 0 && is_json(q->op, verb->args[i])))
            return true;
    }
    return false;
}

static belay_rc read_args(struct job_request *q)
{
    size_t most = q->op->n_args + 1;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)q->args, name, value)
    {
        if (!is_taken(q, name))
            return refuse(q, name, "is no argument of this verb");
        most += json_array_size(value);
    }
    q->values = arena_zalloc(&q->arena, most, sizeof(*q->values));
    if (!q->values)
        return err_no_memory(q->err, "the arguments");
    for (size_t i = 0; i < q->op->n_args; i++) {
        belay_rc rc = read_arg(q, &q->op->args[i]);
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

belay_rc job_request_read(struct job_request *q, const json_t *line)
{
    const char *name = json_string_value(json_object_get(line, "op"));
    const json_t *args = json_object_get(line, "args");

    q->verb = verb_called(name);
    q->op = q->verb ? op_find(q->run->worker->call->table, bytes_str(name)) : NULL;
    q->args = args;
    if (!q->op)
        return err_reason(q->err, BELAY_INVALID, "op",
                          "op: must be renew, progress, frame, complete, fail, abort, "
                          "delay or release");
    if (args && !json_is_object(args))
        return refuse(q, "args", "must be an object");
    return read_args(q);
}

void job_request_release(struct job_request *q)
{
    for (size_t i = 0; i < q->n_values; i++)
        json_decref(q->values[i].json);
    arena_release(&q->arena);
}

struct op_value *job_request_value(const struct job_request *q, const char *name)
{
    for (size_t i = 0; i < q->n_values; i++) {
        if (strcmp(q->values[i].arg->name, name) == 0)
            return &q->values[i];
    }
    return NULL;
}
