#include "cli/request.h"

/* What the reading needs everywhere. */
struct reader {
    struct request *request;
    const struct args *args;
    env_fn *env;
    struct input *input;
    bool wants_json;
    struct belay_arena *arena;
    struct belay_error *err;
};

/* The path that a value is read from; NULL: the text is the value. */
static const char *path_of(const struct op_arg *arg, struct bytes text)
{
    const char *path = (const char *)text.ptr;
    bool may_be_text =
        arg->type == OP_JSON || arg->type == OP_CLAIM || arg->type == OP_DATA;

    if (!may_be_text || bytes_eq(text, bytes_str("-")))
        return path;
    return text.len > 0 && text.ptr[0] == '@' ? path + 1 : NULL;
}

/* The text behind @FILE, FILE or -; other texts are what they are. */
static belay_rc load(struct reader *r, const struct op_arg *arg, struct bytes text,
                     struct bytes *out)
{
    const char *path = op_takes_path(arg->type) ? path_of(arg, text) : NULL;

    *out = text;
    if (!path)
        return BELAY_OK;
    if (arg->type == OP_STREAM)
        return input_open(r->input, path, r->arena, &r->request->source, r->err);
    if (arg->type == OP_TARGET) {
        r->request->target = strcmp(path, "-") == 0 ? NULL : path;
        return BELAY_OK;
    }
    return input_read(r->input, path, op_value_max(arg), r->arena, out, r->err);
}

/* "command: argument: why", where all that is known so far is why. */
static belay_rc in_context(struct reader *r, belay_rc rc, const struct op_arg *arg,
                           const char *env)
{
    struct buf name CLEANUP(buf_release) = { 0 };

    if (env)
        buf_append_str(&name, env);
    else
        args_append_name(&name, arg);
    buf_append_char(&name, '\0');
    if (!name.failed)
        err_context(r->err, (const char *)name.ptr);
    err_context(r->err, r->request->op->words);
    return rc;
}

/* env: the variable that the text comes from, or NULL. */
static belay_rc read_value(struct reader *r, const struct op_arg *arg,
                           struct bytes text, const char *env, struct op_value *out)
{
    struct bytes loaded;

    if (arg->kind == OP_FLAG) {
        *out = (struct op_value){ .arg = arg, .text = text, .number = 1 };
        return BELAY_OK;
    }
    belay_rc rc = load(r, arg, text, &loaded);
    if (rc == BELAY_OK)
        rc = op_value_parse(arg, loaded, out, r->err);
    return rc == BELAY_OK ? rc : in_context(r, rc, arg, env);
}

/* What an argument that is not given has: NULL when nothing. */
static const char *absent(struct reader *r, const struct op_arg *arg, const char **env)
{
    const char *text = arg->env ? r->env(arg->env) : NULL;

    *env = text && *text ? arg->env : NULL;
    return *env ? text : arg->fallback;
}

/* All values of one argument, in the order given. */
static belay_rc read_arg(struct reader *r, const struct op_arg *arg,
                         struct op_value *values, size_t *n)
{
    const char *env = NULL;

    if (args_count(r->args, arg) == 0) {
        const char *text = absent(r, arg, &env);
        if (!text && !arg->required)
            return BELAY_OK;
        if (!text) {
            (void)err_reason(r->err, BELAY_INVALID, "usage", "is missing");
            return in_context(r, BELAY_INVALID, arg, NULL);
        }
        belay_rc rc = read_value(r, arg, bytes_str(text), env, &values[*n]);
        *n += rc == BELAY_OK;
        return rc;
    }
    for (size_t i = 0; i < r->args->n_given; i++) {
        if (r->args->given[i].arg != arg)
            continue;
        belay_rc rc = read_value(r, arg, r->args->given[i].text, NULL, &values[*n]);
        if (rc != BELAY_OK)
            return rc;
        (*n)++;
    }
    return BELAY_OK;
}

static belay_rc read_operation(struct reader *r)
{
    struct request *request = r->request;
    const struct operation *op = request->op;

    request->values =
        arena_zalloc(r->arena, r->args->n_given + op->n_args, sizeof(*request->values));
    if (!request->values)
        return err_no_memory(r->err, "the arguments");
    for (size_t i = 0; i < op->n_args; i++) {
        belay_rc rc = read_arg(r, &op->args[i], request->values, &request->n_values);
        if (rc != BELAY_OK)
            return rc;
    }
    return BELAY_OK;
}

static belay_rc take_global(struct reader *r, const struct op_value *value)
{
    struct request *request = r->request;
    const char *name = value->arg->name;

    if (strcmp(name, "store") == 0)
        request->store = (const char *)value->text.ptr;
    else if (strcmp(name, "namespace") == 0)
        request->ns = (const char *)value->text.ptr;
    else if (strcmp(name, "quiet") == 0)
        request->quiet = true;
    else if (strcmp(name, "json") == 0)
        r->wants_json = true;
    else if (strcmp(name, "output") == 0 &&
             !output_format_called(value->text, &request->output))
        return err_set(r->err, BELAY_MISUSE, "an output format has no meaning");
    return BELAY_OK;
}

static const struct op_arg *global_called(const struct op_table *t, const char *name)
{
    for (size_t i = 0; i < t->n_globals; i++) {
        if (strcmp(t->globals[i].name, name) == 0)
            return &t->globals[i];
    }
    return NULL;
}

/* --json and --output say the same thing in two ways. */
static belay_rc check_output(struct reader *r, const struct op_table *t)
{
    const struct op_arg *json = global_called(t, "json");
    const struct op_arg *output = global_called(t, "output");

    if (!json || !output || args_count(r->args, json) == 0 ||
        args_count(r->args, output) == 0)
        return BELAY_OK;
    (void)err_reason(r->err, BELAY_INVALID, "usage",
                     "is short for --output json; give one of them");
    return in_context(r, BELAY_INVALID, json, NULL);
}

static belay_rc read_globals(struct reader *r, const struct op_table *t)
{
    belay_rc rc = check_output(r, t);

    for (size_t i = 0; rc == BELAY_OK && i < t->n_globals; i++) {
        const struct op_arg *arg = &t->globals[i];
        struct op_value value;
        size_t n = 0;

        if (arg->env && !r->request->op->needs_store && args_count(r->args, arg) == 0)
            continue;
        rc = read_arg(r, arg, &value, &n);
        if (rc == BELAY_OK && n > 0)
            rc = take_global(r, &value);
    }
    if (r->wants_json)
        r->request->output = OUTPUT_JSON;
    return rc;
}

/* Inside of a job its own verbs go to its worker, which knows the store. */
static void find_socket(struct reader *r, const struct op_table *t)
{
    const struct op_arg *store = global_called(t, "store");
    const char *path = r->env("BELAY_SOCKET");

    if (r->request->op->by_handle && path && *path &&
        (!store || args_count(r->args, store) == 0))
        r->request->socket = path;
}

static bool is_store_named(const struct reader *r, const struct op_table *t)
{
    const struct op_arg *store = global_called(t, "store");
    const char *text = store && store->env ? r->env(store->env) : NULL;

    return (store && args_count(r->args, store) > 0) || (text && *text);
}

/* A job does not know its worker's store, and the usual one is hardly that: what is done
 * there nobody would see. */
static belay_rc check_store(struct reader *r, const struct op_table *t)
{
    const char *path = r->env("BELAY_SOCKET");
    const struct request *request = r->request;

    for (size_t i = 0; i < request->n_values; i++) {
        if (strcmp(request->values[i].arg->name, "url") == 0)
            return BELAY_OK;
    }
    if (!request->op->needs_store || request->socket || !path || !*path ||
        is_store_named(r, t))
        return BELAY_OK;
    (void)err_reason(r->err, BELAY_INVALID, "store",
                     "inside a job the store must be named (--store or BELAY_STORE)");
    err_context(r->err, request->op->words);
    return BELAY_INVALID;
}

belay_rc request_read(struct request *r, const struct op_table *t,
                      const struct args *args, env_fn *env, struct input *in,
                      struct belay_arena *a, struct belay_error *err)
{
    struct reader reader = {
        .request = r,
        .args = args,
        .env = env,
        .input = in,
        .arena = a,
        .err = err,
    };

    *r = (struct request){ .op = args->op };
    belay_rc rc = read_globals(&reader, t);
    find_socket(&reader, t);
    if (rc == BELAY_OK)
        rc = read_operation(&reader);
    if (rc == BELAY_OK)
        rc = check_store(&reader, t);
    for (size_t i = 0; i < r->n_values && r->op->needs_store; i++) {
        if (strcmp(r->values[i].arg->name, "url") == 0)
            r->store = (const char *)r->values[i].text.ptr;
    }
    return rc;
}

void request_release(struct request *r)
{
    for (size_t i = 0; i < r->n_values; i++)
        json_decref(r->values[i].json);
    r->n_values = 0;
    stream_in_release(&r->source);
}
