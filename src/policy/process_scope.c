#include "policy/process_scope.h"

#include "policy/members.h"

static const char session_word[] = "session:", frame_word[] = "/frame:";

bool scope_eq(struct scope a, struct scope b)
{
    return bytes_eq(a.session, b.session) && bytes_eq(a.frame, b.frame);
}

belay_rc scope_check(struct scope s, const char *what, struct belay_error *err)
{
    if (s.session.len == 0)
        return err_reason(err, BELAY_INVALID, "scope",
                          "%s: owner scope must include a session id", what);
    if (!bytes_is_id(s.session, SCOPE_PART_MAX) ||
        (s.frame.len > 0 && !bytes_is_id(s.frame, SCOPE_PART_MAX)))
        return err_reason(err, BELAY_INVALID, "scope",
                          "%s: session and frame are 1 to %d bytes of UTF-8 without "
                          "control characters",
                          what, SCOPE_PART_MAX);
    return BELAY_OK;
}

/* --- as a text --- */

static void append_part(struct buf *out, struct bytes part)
{
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == '%')
            buf_append_str(out, "%25");
        else if (part.ptr[i] == '/')
            buf_append_str(out, "%2F");
        else
            buf_append_char(out, (char)part.ptr[i]);
    }
}

belay_rc scope_text(struct scope s, struct belay_arena *a, struct bytes *out,
                    struct belay_error *err)
{
    struct buf text = buf_in(a);

    buf_append_str(&text, session_word);
    append_part(&text, s.session);
    if (s.frame.len > 0) {
        buf_append_str(&text, frame_word);
        append_part(&text, s.frame);
    }
    if (text.failed)
        return err_no_memory(err, "a scope");
    *out = buf_view(&text);
    return BELAY_OK;
}

static bool skip_word(struct bytes *text, const char *word)
{
    size_t n = strlen(word);

    if (text->len < n || memcmp(text->ptr, word, n) != 0)
        return false;
    *text = bytes_of(text->ptr + n, text->len - n);
    return true;
}

/* The part up to a slash, its escapes resolved; false for an escape that is none. */
static bool next_part(struct bytes *text, struct buf *out)
{
    struct bytes rest = *text;

    while (rest.len > 0 && rest.ptr[0] != '/') {
        if (skip_word(&rest, "%25")) {
            buf_append_char(out, '%');
        } else if (skip_word(&rest, "%2F")) {
            buf_append_char(out, '/');
        } else if (rest.ptr[0] == '%') {
            return false;
        } else {
            buf_append_char(out, (char)rest.ptr[0]);
            rest = bytes_of(rest.ptr + 1, rest.len - 1);
        }
    }
    *text = rest;
    return true;
}

belay_rc scope_parse(struct bytes text, struct belay_arena *a, struct scope *out,
                     struct belay_error *err)
{
    struct buf session = buf_in(a), frame = buf_in(a);
    bool good = skip_word(&text, session_word) && next_part(&text, &session);

    if (good && text.len > 0)
        good = skip_word(&text, frame_word) && text.len > 0 && next_part(&text, &frame);
    if (session.failed || frame.failed)
        return err_no_memory(err, "a scope");
    struct scope s = { buf_view(&session), buf_view(&frame) };
    if (!good || text.len > 0 || scope_check(s, "scope", NULL) != BELAY_OK)
        return err_reason(err, BELAY_INVALID, "scope",
                          "scope: is session:ID or session:ID/frame:ID, with %%25 for "
                          "%% and %%2F for / within ids");
    *out = s;
    return BELAY_OK;
}

/* --- as JSON --- */

belay_rc scope_read(const json_t *value, const char *what, struct scope *out,
                    struct belay_error *err)
{
    const json_t *session = NULL, *frame = NULL;
    const struct member table[] = { { "session_id", &session },
                                    { "agent_frame_id", &frame } };
    belay_rc rc = members_read(value, table, COUNT_OF(table), "scope", what, err);

    if (rc != BELAY_OK)
        return rc;
    if ((session && !json_is_string(session)) || (frame && !json_is_string(frame)))
        return err_reason(err, BELAY_INVALID, "scope",
                          "%s: session_id and agent_frame_id are strings", what);
    /* Not NULL: a scope that was given is not the one that stands in for none. */
    *out = (struct scope){ session ? json_bytes(session) : bytes_str(""),
                           json_bytes(frame) };
    return BELAY_OK;
}

void scope_write(struct scope s, struct buf *out)
{
    buf_append_str(out, "{\"session_id\":");
    json_append_string(out, s.session);
    if (s.frame.len > 0) {
        buf_append_str(out, ",\"agent_frame_id\":");
        json_append_string(out, s.frame);
    }
    buf_append_char(out, '}');
}
