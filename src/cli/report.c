#include "cli/report.h"

#include <errno.h>
#include <unistd.h>

#include "base/json.h"

static void append_text(struct buf *out, const char *key, const char *text, bool *any)
{
    if (*text == '\0')
        return;
    buf_printf(out, "%s\"%s\":", *any ? "," : "", key);
    json_append_string(out, bytes_str(text));
    *any = true;
}

static void append_json(struct buf *out, const struct belay_error *e)
{
    bool any = false;

    buf_append_str(out, "{\"error\":{\"code\":");
    json_append_string(out, bytes_str(belay_error_info(e->code)->name));
    buf_append_str(out, ",\"message\":");
    json_append_string(out, bytes_str(e->message));
    buf_append_str(out, ",\"detail\":{");
    append_text(out, "reason", e->reason, &any);
    append_text(out, "entity", e->entity, &any);
    if (e->expected != 0 || e->actual != 0) {
        buf_append_str(out, any ? ",\"expected\":" : "\"expected\":");
        buf_append_i64(out, e->expected);
        buf_append_str(out, ",\"actual\":");
        buf_append_i64(out, e->actual);
    }
    buf_append_str(out, "}}}\n");
}

/* One line, whatever is in the message.  A backslash stays as it is: it is the
 * message's own way to show what cannot be printed. */
static void append_line(struct buf *out, struct bytes message)
{
    while (message.len > 0) {
        size_t n = bytes_utf8_len(message);
        struct bytes c = bytes_of(message.ptr, n > 0 ? n : 1);

        if (c.ptr[0] == '\\')
            buf_append(out, c);
        else
            buf_append_escaped(out, c);
        message = bytes_of(message.ptr + c.len, message.len - c.len);
    }
}

void report_append(struct buf *out, const struct belay_error *e, bool json)
{
    if (json) {
        append_json(out, e);
        return;
    }
    buf_append_str(out, "belay: ");
    append_line(out, bytes_str(e->message));
    buf_append_char(out, '\n');
}

bool report_write_all(int fd, struct bytes text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        text = bytes_of(text.ptr + n, text.len - (size_t)n);
    }
    return true;
}

belay_rc report_write(int fd, struct bytes text, struct belay_error *err)
{
    if (!report_write_all(fd, text))
        return err_reason(err, BELAY_UNAVAILABLE, "output",
                          "standard output: cannot be written: %s", strerror(errno));
    return BELAY_OK;
}

void report_say(int fd, const struct buf *text)
{
    struct bytes last_word = bytes_str("belay: no memory for a message\n");

    (void)report_write_all(fd, text->failed ? last_word : buf_view(text));
}

int report_error(int fd, const struct belay_error *e, bool json)
{
    struct buf text CLEANUP(buf_release) = { 0 };

    report_append(&text, e, json);
    report_say(fd, &text);
    return belay_error_info(e->code)->exit_code;
}
