/* error.h - every way a call can fail, and what the caller is told.
 *
 * One table: a code has one name, one text, one HTTP status and one exit code,
 * whatever door it leaves by.  A family has one code and a `reason` that says which
 * member of the family it was.  Numbers are given once and never used again.
 */
#ifndef BELAY_ERROR_H
#define BELAY_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include <belay/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum belay_code {
    BELAY_OK = 0,
    BELAY_LEASE_LOST = 1,
    BELAY_LEASE_HELD = 2,
    BELAY_HEAD_REVISION_CONFLICT = 3,
    BELAY_TURN_CONFLICT = 4,
    BELAY_SESSION_BINDING_MISMATCH = 5,
    BELAY_REGISTRATION_CONFLICT = 6,
    BELAY_REPLAY_CONFLICT = 7,
    BELAY_KEY_CONFLICT = 8,
    BELAY_WRONG_STATE = 9,
    BELAY_BAD_HANDLE = 10,
    BELAY_INVALID = 11,
    BELAY_UNSUPPORTED_FORMAT = 12,
    BELAY_NOT_FOUND = 13,
    BELAY_BUDGET_EXHAUSTED = 14,
    BELAY_THROTTLED = 15,
    BELAY_UNKNOWN_OUTCOME = 16,
    BELAY_TIMEOUT = 17,
    BELAY_CANCELLED = 18,
    BELAY_UNAUTHENTICATED = 19,
    BELAY_DENIED = 20,
    BELAY_MISUSE = 21,
    BELAY_NO_MEMORY = 22,
    BELAY_CONTENTION = 23,
    BELAY_OUT_OF_RANGE = 24,
    BELAY_UNAVAILABLE = 25,
    BELAY_POISONED = 26,
    BELAY_CORRUPT = 27,
};

/* What a fallible call returns: BELAY_OK or why not. */
typedef enum belay_code belay_rc;

/* Filled by the call that failed; owned by the caller, who need not initialise it.
 * A call that succeeds leaves it as it was.  Wherever a function takes a pointer to
 * one, NULL means "the code is enough". */
struct belay_error {
    uint32_t size;     /* sizeof(struct belay_error) of the library that filled it */
    int32_t code;      /* enum belay_code */
    char reason[32];   /* member of the family, e.g. "superseded"; may be empty */
    int64_t expected;  /* numbers of a comparison that failed, else 0 */
    int64_t actual;    /* (revisions, formats, counter bounds) */
    char entity[64];   /* what was not found or is in the way; may be empty */
    char message[256]; /* one line for people: what, and why */
};

/* One row of the table. */
struct belay_error_entry {
    const char *name; /* "lease_lost": the code as every interface spells it */
    const char *text; /* one sentence */
    int http_status;
    int exit_code;
    bool retryable; /* the same call, unchanged, may succeed later */
};

/* The row of `code`.  A number outside the table has the row of BELAY_CORRUPT. */
BELAY_API const struct belay_error_entry *belay_error_info(int code);

/* The code called `name`, or -1 when there is none. */
BELAY_API int belay_error_code(const char *name);

/* The HTTP status of a filled error: the table's, refined by the reason where one
 * code covers several statuses (invalid: 400, too_large 413, schema 422). */
BELAY_API int belay_error_http_status(const struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ERROR_H */
