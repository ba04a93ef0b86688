#include <inttypes.h>

#include "api/duration.h"
#include "api/ops.h"
#include "base/json.h"

static belay_rc refuse(const struct op_arg *arg, struct belay_error *err,
                       const struct buf *why)
{
    if (why->failed)
        return err_no_memory(err, "an error message");
    (void)err_reason(err, BELAY_INVALID, "argument", "%.*s", (int)why->len,
                     (const char *)why->ptr);
    err_entity(err, bytes_str(arg->name));
    return BELAY_INVALID;
}

static belay_rc refuse_str(const struct op_arg *arg, struct belay_error *err,
                           const char *why)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    buf_append_str(&text, why);
    return refuse(arg, err, &text);
}

bool op_takes_path(enum op_type type)
{
    return type == OP_JSON || type == OP_FILE || type == OP_CLAIM ||
           type == OP_STREAM || type == OP_TARGET || type == OP_DATA;
}

size_t op_value_max(const struct op_arg *arg)
{
    bool large = arg->type == OP_JSON || arg->type == OP_FILE ||
                 arg->type == OP_CLAIM || arg->type == OP_DATA;

    if (arg->max > 0 && arg->type != OP_I64 && arg->type != OP_DURATION)
        return (size_t)arg->max;
    return large ? OP_JSON_MAX : OP_TEXT_MAX;
}

static belay_rc check_length(const struct op_arg *arg, struct bytes text,
                             struct belay_error *err)
{
    struct buf why CLEANUP(buf_release) = { 0 };
    size_t max = op_value_max(arg);
    size_t min = arg->min > 0 ? (size_t)arg->min : 0;

    if (text.len > max) {
        (void)err_reason(err, BELAY_INVALID, "too_large", "is longer than %zu bytes",
                         max);
        err_entity(err, bytes_str(arg->name));
        err_numbers(err, (int64_t)max, (int64_t)text.len);
        return BELAY_INVALID;
    }
    if (text.len >= min)
        return BELAY_OK;
    if (text.len == 0)
        buf_append_str(&why, "is empty");
    else
        buf_printf(&why, "is shorter than %zu bytes", min);
    return refuse(arg, err, &why);
}

static bool is_choice(const struct op_arg *arg, struct bytes text)
{
    for (const char *const *c = arg->choices; *c; c++) {
        if (bytes_eq(text, bytes_str(*c)))
            return true;
    }
    return false;
}

static belay_rc read_text(const struct op_arg *arg, struct bytes text,
                          struct belay_error *err)
{
    struct buf why CLEANUP(buf_release) = { 0 };

    belay_rc rc = check_length(arg, text, err);
    if (rc != BELAY_OK)
        return rc;
    if (!bytes_is_utf8(text) || (text.len > 0 && memchr(text.ptr, 0, text.len)))
        return refuse_str(arg, err, "is not UTF-8 text");
    if (!arg->choices || is_choice(arg, text))
        return BELAY_OK;
    buf_append_str(&why, "must be one of");
    for (const char *const *c = arg->choices; *c; c++)
        buf_printf(&why, "%s %s", c == arg->choices ? "" : ",", *c);
    return refuse(arg, err, &why);
}

static belay_rc read_number(const struct op_arg *arg, struct bytes text, int64_t *out,
                            struct belay_error *err)
{
    struct buf why CLEANUP(buf_release) = { 0 };
    bool duration = arg->type == OP_DURATION;
    int64_t n;

    if (!(duration ? duration_parse(text, &n) : bytes_to_i64(text, &n)))
        return refuse_str(arg, err,
                          duration ? "must be a duration like 500ms, 30s, 15m, 2h or 7d"
                                   : "must be a whole number");
    if (n >= arg->min && n <= arg->max) {
        *out = n;
        return BELAY_OK;
    }
    buf_append_str(&why, "must be from ");
    if (duration) {
        duration_append(&why, arg->min);
        buf_append_str(&why, " to ");
        duration_append(&why, arg->max);
    } else {
        buf_printf(&why, "%" PRId64 " to %" PRId64, arg->min, arg->max);
    }
    return refuse(arg, err, &why);
}

static belay_rc read_bool(const struct op_arg *arg, struct bytes text, int64_t *out,
                          struct belay_error *err)
{
    bool yes = bytes_eq(text, bytes_str("true"));

    if (!yes && !bytes_eq(text, bytes_str("false")))
        return refuse_str(arg, err, "must be true or false");
    *out = yes;
    return BELAY_OK;
}

belay_rc op_value_parse(const struct op_arg *arg, struct bytes text,
                        struct op_value *out, struct belay_error *err)
{
    struct op_value value = { .arg = arg, .text = text };
    belay_rc rc = BELAY_OK;

    switch (arg->type) {
    case OP_TEXT:
    case OP_CLAIM:
    case OP_STREAM:
    case OP_TARGET:
        rc = read_text(arg, text, err);
        break;
    case OP_I64:
    case OP_DURATION:
        rc = read_number(arg, text, &value.number, err);
        break;
    case OP_BOOL:
        rc = read_bool(arg, text, &value.number, err);
        break;
    case OP_FILE:
    case OP_DATA:
        rc = check_length(arg, text, err);
        break;
    case OP_JSON:
        rc = json_read(text, op_value_max(arg), &value.json, err);
        if (rc == BELAY_INVALID)
            err_entity(err, bytes_str(arg->name));
        break;
    }
    if (rc == BELAY_OK)
        *out = value;
    return rc;
}
