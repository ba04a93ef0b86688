#include "api/op_handlers.h"
#include "api/scheme.h"
#include "store/schema.h"

belay_rc op_finish(json_t *result, int failed, json_t **out, struct belay_error *err)
{
    if (failed) {
        json_decref(result);
        return err_no_memory(err, "the answer");
    }
    *out = result;
    return BELAY_OK;
}

json_t *op_text(struct bytes text)
{
    struct buf shown CLEANUP(buf_release) = { 0 };

    if (text.len == 0)
        return json_string("");
    if (bytes_is_utf8(text) && !memchr(text.ptr, 0, text.len))
        return json_stringn((const char *)text.ptr, text.len);
    buf_append_escaped(&shown, text);
    return shown.failed ? NULL : json_stringn((const char *)shown.ptr, shown.len);
}

belay_rc op_list(json_t *items, json_t *cursor, int failed, json_t **out,
                 struct belay_error *err)
{
    json_t *result = json_object();

    failed |= json_object_set_new(result, "items", items);
    failed |= json_object_set_new(result, "next_cursor", cursor ? cursor : json_null());
    return op_finish(result, failed, out, err);
}

const char *op_principal(const struct op_call *call)
{
    return call->principal ? call->principal : "unknown";
}

int op_exit_of_ok(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "ok")) ? 0 : 1;
}

int op_exit_of_code(const json_t *answer)
{
    const char *name = json_string_value(json_object_get(answer, "code"));
    int code = name ? belay_error_code(name) : -1;

    return code > 0 ? belay_error_info(code)->exit_code : op_exit_of_ok(answer);
}

belay_rc op_prose(const struct buf *text, json_t **out, struct belay_error *err)
{
    json_t *result = json_object();
    int failed = text->failed;

    if (!failed)
        failed = json_object_set_new(result, "text",
                                     json_stringn((const char *)text->ptr, text->len));
    return op_finish(result, failed, out, err);
}

belay_rc op_version(const struct op_call *call, json_t **out, struct belay_error *err)
{
    json_t *result = json_object();
    json_t *drivers = json_array();
    int failed = 0;

    (void)call;
    for (size_t i = 0; i < scheme_count; i++) {
        if (scheme_table[i].open)
            failed |= json_array_append_new(drivers, json_string(scheme_table[i].name));
    }
    failed |= json_object_set_new(result, "version", json_string(belay_version()));
    failed |= json_object_set_new(result, "store_format", json_integer(SCHEMA_FORMAT));
    failed |= json_object_set_new(result, "drivers", drivers);
    return op_finish(result, failed, out, err);
}

static json_t *error_row(int code, const struct belay_error_entry *info)
{
    json_t *row = json_object();
    int failed = 0;

    failed |= json_object_set_new(row, "number", json_integer(code));
    failed |= json_object_set_new(row, "code", json_string(info->name));
    failed |= json_object_set_new(row, "http_status", json_integer(info->http_status));
    failed |= json_object_set_new(row, "exit_code", json_integer(info->exit_code));
    failed |= json_object_set_new(row, "retryable", json_boolean(info->retryable));
    failed |= json_object_set_new(row, "text", json_string(info->text));
    if (!failed)
        return row;
    json_decref(row);
    return NULL;
}

belay_rc op_errors(const struct op_call *call, json_t **out, struct belay_error *err)
{
    json_t *result = json_object();
    json_t *items = json_array();
    int failed = 0;

    (void)call;
    for (int code = 0;; code++) {
        const struct belay_error_entry *info = belay_error_info(code);
        if (belay_error_code(info->name) != code)
            break; /* beyond the table */
        failed |= json_array_append_new(items, error_row(code, info));
    }
    failed |= json_object_set_new(result, "items", items);
    failed |= json_object_set_new(result, "next_cursor", json_null());
    return op_finish(result, failed, out, err);
}
