/* waitpoint.h - what suspended work waits for, and what woke it: types.
 *
 * A waitpoint is where a signal is delivered.  Whoever delivers one shows the waitpoint's
 * token, `kid:40hex`, which is a credential: it is printed redacted.
 */
#ifndef BELAY_WAITPOINT_H
#define BELAY_WAITPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <belay/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By what a waitpoint knows its signal. */
enum belay_waitpoint_kind {
    BELAY_WAITPOINT_SIGNAL_NAME = 0,
    BELAY_WAITPOINT_CORRELATION_ID,
    BELAY_WAITPOINT_EXTERNAL,
};

/* "signal_name", "correlation_id", "external"; NULL for a number that is none.  And back:
 * false, and *out as it was. */
BELAY_API const char *belay_waitpoint_kind_name(int kind);
BELAY_API bool belay_waitpoint_kind_parse(const char *name, int *out);

/* One waitpoint of a suspension. */
struct belay_waitpoint_spec {
    uint32_t size;
    int32_t kind; /* enum belay_waitpoint_kind */
    const char *key;
    const void *matcher; /* what the signal must have; NULL: anything */
    size_t matcher_len;
    const char *token; /* any string: delivery is what checks it; NULL: none yet */
};

/* A token as it may be printed: `kid:<REDACTED:len=40>`, or `<REDACTED:malformed>` for
 * what is no `kid:digest` (kid: 1 to 64 bytes of printable ASCII without space).  Like
 * snprintf: at most cap bytes with the NUL, and how long all of it is without. */
BELAY_API size_t belay_waitpoint_token_redact(const char *token, char *out, size_t cap);

/* A signal that is part of why an execution goes on. */
struct belay_resume_signal {
    const char *signal_id, *signal_name, *signal_category;
    const char *source_type, *source_identity, *correlation_id;
    int64_t accepted_at_ms;
    const void *payload; /* NULL: none */
    size_t payload_len;
};

#ifdef __cplusplus
}
#endif

#endif /* BELAY_WAITPOINT_H */
