#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

/* clang-format off */
static const struct belay_error_entry table[] = {
    [BELAY_OK]                       = { "ok", "done", 200, 0, false },
    [BELAY_LEASE_LOST]               = { "lease_lost", "the lease is no longer the caller's", 409, 4, false },
    [BELAY_LEASE_HELD]               = { "lease_held", "the lease is held by another owner", 409, 4, true },
    [BELAY_HEAD_REVISION_CONFLICT]   = { "head_revision_conflict", "the session's head is at another revision", 412, 4, false },
    [BELAY_TURN_CONFLICT]            = { "turn_conflict", "the turn was already committed with another content", 409, 4, false },
    [BELAY_SESSION_BINDING_MISMATCH] = { "session_binding_mismatch", "the session is bound to another identity", 409, 4, false },
    [BELAY_REGISTRATION_CONFLICT]    = { "registration_conflict", "the process is registered with another content", 409, 4, false },
    [BELAY_REPLAY_CONFLICT]          = { "replay_conflict", "the replay key was used with another content", 409, 4, false },
    [BELAY_KEY_CONFLICT]             = { "key_conflict", "the idempotency key was used with another body", 409, 4, false },
    [BELAY_WRONG_STATE]              = { "wrong_state", "the record's state does not allow this", 409, 4, false },
    [BELAY_BAD_HANDLE]               = { "bad_handle", "the handle is damaged or belongs elsewhere", 400, 2, false },
    [BELAY_INVALID]                  = { "invalid", "the request breaks a rule of its format", 400, 2, false },
    [BELAY_UNSUPPORTED_FORMAT]       = { "unsupported_format", "the stored format is not one this program reads", 500, 78, false },
    [BELAY_NOT_FOUND]                = { "not_found", "there is no such record", 404, 3, false },
    [BELAY_BUDGET_EXHAUSTED]         = { "budget_exhausted", "the budget or quota is used up", 409, 75, true },
    [BELAY_THROTTLED]                = { "throttled", "too many requests; wait before the next", 429, 75, true },
    [BELAY_UNKNOWN_OUTCOME]          = { "unknown_outcome", "the commit was sent and its reply was lost", 504, 75, true },
    [BELAY_TIMEOUT]                  = { "timeout", "the deadline passed", 504, 5, true },
    [BELAY_CANCELLED]                = { "cancelled", "the caller cancelled the call", 499, 1, false },
    [BELAY_UNAUTHENTICATED]          = { "unauthenticated", "the credential is missing or wrong", 401, 77, false },
    [BELAY_DENIED]                   = { "denied", "the credential does not allow this", 403, 77, false },
    [BELAY_MISUSE]                   = { "misuse", "the call is not allowed here", 500, 1, false },
    [BELAY_NO_MEMORY]                = { "no_memory", "there is not enough memory", 503, 75, true },
    [BELAY_CONTENTION]               = { "contention", "too many conflicting writers; nothing was changed", 503, 75, true },
    [BELAY_OUT_OF_RANGE]             = { "out_of_range", "a counter would leave its bounds", 409, 4, false },
    [BELAY_UNAVAILABLE]              = { "unavailable", "the store or a service it needs is away", 503, 69, true },
    [BELAY_POISONED]                 = { "poisoned", "an earlier failure made this handle unusable", 503, 69, false },
    [BELAY_CORRUPT]                  = { "corrupt", "stored data breaks an invariant", 500, 1, false },
};
/* clang-format on */

const struct belay_error_entry *belay_error_info(int code)
{
    if (code < 0 || (size_t)code >= COUNT_OF(table))
        return &table[BELAY_CORRUPT];
    return &table[code];
}

int belay_error_code(const char *name)
{
    for (size_t i = 0; name && i < COUNT_OF(table); i++) {
        if (strcmp(table[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

int belay_error_http_status(const struct belay_error *err)
{
    if (err->code == BELAY_INVALID && strcmp(err->reason, "too_large") == 0)
        return 413;
    if (err->code == BELAY_INVALID && strcmp(err->reason, "schema") == 0)
        return 422;
    return belay_error_info(err->code)->http_status;
}

/* Takes away a character that a cut left unfinished at the end of `text`. */
static void drop_partial(char *text)
{
    size_t len = strlen(text);

    for (size_t back = 1; back < 4 && back <= len; back++) {
        struct bytes tail = bytes_of(text + len - back, back);
        if ((tail.ptr[0] & 0xc0) == 0x80)
            continue; /* inside a character: its first byte is further left */
        if (tail.ptr[0] >= 0x80 && bytes_utf8_len(tail) == 0)
            text[len - back] = '\0';
        return;
    }
}

/* A copy that fits, cut at a character boundary. */
static void copy_cut(char *out, size_t out_size, struct bytes text)
{
    size_t n = text.len < out_size ? text.len : out_size - 1;

    if (n > 0)
        memcpy(out, text.ptr, n);
    out[n] = '\0';
    if (n < text.len)
        drop_partial(out);
}

static void PRINTF_LIKE(4, 0) fill(struct belay_error *err, belay_rc code,
                                   const char *reason, const char *fmt, va_list args)
{
    /* Formatted before *err is written, so that arguments may point into it. */
    struct belay_error filled = { .size = sizeof(filled), .code = (int32_t)code };

    int n = vsnprintf(filled.message, sizeof(filled.message), fmt, args);
    if (n < 0)
        filled.message[0] = '\0';
    else if ((size_t)n >= sizeof(filled.message))
        drop_partial(filled.message);
    copy_cut(filled.reason, sizeof(filled.reason), bytes_str(reason));
    *err = filled;
}

belay_rc err_set(struct belay_error *err, belay_rc code, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return code;
    va_start(args, fmt);
    fill(err, code, "", fmt, args);
    va_end(args);
    return code;
}

belay_rc err_reason(struct belay_error *err, belay_rc code, const char *reason,
                    const char *fmt, ...)
{
    va_list args;

    if (!err)
        return code;
    va_start(args, fmt);
    fill(err, code, reason, fmt, args);
    va_end(args);
    return code;
}

void err_numbers(struct belay_error *err, int64_t expected, int64_t actual)
{
    if (!err)
        return;
    err->expected = expected;
    err->actual = actual;
}

void err_entity(struct belay_error *err, struct bytes entity)
{
    if (err)
        copy_cut(err->entity, sizeof(err->entity), entity);
}

void err_context(struct belay_error *err, const char *context)
{
    if (!err)
        return;
    const struct belay_error old = *err;
    int n =
        snprintf(err->message, sizeof(err->message), "%s: %s", context, old.message);
    if (n < 0)
        *err = old;
    else if ((size_t)n >= sizeof(err->message))
        drop_partial(err->message);
}
