#include "cli/job_client.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/op_json.h"
#include "base/json.h"
#include "cli/report.h"

#define ANSWER_MAX ((size_t)16 << 20)
#define CHUNK ((size_t)65536)
#define FIELD_MAX 64

/* --- the request --- */

static int set_text(json_t *args, const char *name, struct bytes text)
{
    char field[FIELD_MAX];

    if (bytes_is_utf8(text) && (text.len == 0 || !memchr(text.ptr, 0, text.len)))
        return json_object_set_new(
            args, name, json_stringn(text.len ? (const char *)text.ptr : "", text.len));
    (void)snprintf(field, sizeof(field), "%s_base64", name);
    return json_object_set_new(args, field, op_to_base64(text));
}

/* JSON as a text, for what leaves no depth for the request around it. */
static int set_json_text(json_t *args, const struct op_value *v)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    char field[FIELD_MAX];

    if (json_write(v->json, &text, NULL))
        return -1;
    (void)snprintf(field, sizeof(field), "%s_text", v->arg->name);
    return json_object_set_new(args, field,
                               json_stringn((const char *)text.ptr, text.len));
}

static int set_value(json_t *args, const struct op_value *v, bool as_text)
{
    if (v->arg->type == OP_JSON && as_text)
        return set_json_text(args, v);
    if (v->arg->type == OP_JSON)
        return json_object_set(args, v->arg->name, v->json);
    if (v->arg->type == OP_BOOL)
        return json_object_set_new(args, v->arg->name, json_boolean(v->number));
    if (v->arg->type == OP_I64 || v->arg->type == OP_DURATION)
        return json_object_set_new(args, v->arg->name, json_integer(v->number));
    return set_text(args, v->arg->name, v->text);
}

static belay_rc write_with(const struct operation *op, const struct op_value *values,
                           size_t n_values, bool as_text, struct buf *out,
                           struct belay_error *err)
{
    json_t *request CLEANUP(json_decrefp) = json_object();
    json_t *args = json_object();
    int failed = json_object_set_new(request, "op", json_string(op->name));

    for (size_t i = 0; i < n_values; i++)
        failed |= set_value(args, &values[i], as_text);
    failed |= json_object_set_new(request, "args", args);
    if (failed)
        return err_no_memory(err, "the request");
    belay_rc rc = json_write(request, out, err);
    buf_append_char(out, '\n');
    return rc == BELAY_OK && out->failed ? err_no_memory(err, "the request") : rc;
}

static belay_rc write_request(const struct operation *op, const struct op_value *values,
                              size_t n_values, struct buf *out, struct belay_error *err)
{
    belay_rc rc = write_with(op, values, n_values, false, out, err);

    if (rc != BELAY_INVALID)
        return rc;
    buf_reset(out);
    return write_with(op, values, n_values, true, out, err);
}

/* --- the line --- */

static belay_rc no_socket(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_UNAVAILABLE, "socket", "BELAY_SOCKET: %s", why);
}

static void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static belay_rc dial(const char *path, int *out, struct belay_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(address.sun_path))
        return no_socket(err, "is too long for a socket's name");
    memcpy(address.sun_path, path, strlen(path) + 1);
    *out = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*out < 0 ||
        connect(*out, (const struct sockaddr *)&address, sizeof(address)) != 0)
        return no_socket(err, strerror(errno));
    return BELAY_OK;
}

static belay_rc hear(int fd, struct buf *line, struct belay_error *err)
{
    char chunk[CHUNK];

    while (line->len == 0 || line->ptr[line->len - 1] != '\n') {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return no_socket(err, n < 0 ? strerror(errno)
                                        : "the worker has closed it without an answer");
        buf_append(line, bytes_of(chunk, (size_t)n));
        if (line->failed)
            return err_no_memory(err, "the answer");
        if (line->len > ANSWER_MAX)
            return no_socket(err, "the answer is too long");
    }
    return BELAY_OK;
}

/* --- the answer --- */

static belay_rc refused(const json_t *error, struct belay_error *err)
{
    const char *name = json_string_value(json_object_get(error, "code"));
    const char *reason = json_string_value(json_object_get(error, "reason"));
    const char *message = json_string_value(json_object_get(error, "message"));
    int code = name ? belay_error_code(name) : -1;

    if (code <= 0)
        return no_socket(err, "the answer cannot be understood");
    return err_reason(err, (belay_rc)code, reason ? reason : "", "%s",
                      message ? message : name);
}

static belay_rc understand(const struct buf *line, json_t **out,
                           struct belay_error *err)
{
    json_t *answer CLEANUP(json_decrefp) = NULL;
    struct belay_error why;
    belay_rc rc = json_read(buf_view(line), ANSWER_MAX, &answer, &why);

    if (rc == BELAY_NO_MEMORY)
        return err_no_memory(err, "the answer");
    json_t *given = json_object_get(answer, "answer");
    if (json_is_false(json_object_get(answer, "ok")))
        return refused(json_object_get(answer, "error"), err);
    if (rc != BELAY_OK || !json_is_object(given))
        return no_socket(err, "the answer cannot be understood");
    *out = json_incref(given);
    return BELAY_OK;
}

belay_rc job_ask(const char *socket_path, const struct operation *op,
                 const struct op_value *values, size_t n_values, json_t **out,
                 struct belay_error *err)
{
    struct buf line CLEANUP(buf_release) = { 0 };
    int fd CLEANUP(closep) = -1;
    belay_rc rc = write_request(op, values, n_values, &line, err);

    if (rc == BELAY_OK)
        rc = dial(socket_path, &fd, err);
    if (rc == BELAY_OK && !report_write_all(fd, buf_view(&line)))
        rc = no_socket(err, strerror(errno));
    buf_reset(&line);
    if (rc == BELAY_OK)
        rc = hear(fd, &line, err);
    return rc ? rc : understand(&line, out, err);
}
