/* err.h - filling the caller's error.
 *
 * The table itself (names, statuses, exit codes) is in err.c, one row a code; the
 * public face is <belay/error.h>.  Every function here accepts err == NULL.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <belay/error.h>

#include "base/attr.h"
#include "base/bytes.h"

/* Fills *err (reason, entity and numbers empty) and returns `code`, so that a failing
 * function ends with `return err_set(err, BELAY_X, "what: why")`.  A message that does
 * not fit is cut at a character boundary. */
belay_rc err_set(struct belay_error *err, belay_rc code, const char *fmt, ...) RARE
    PRINTF_LIKE(3, 4);

/* The same with a reason. */
belay_rc err_reason(struct belay_error *err, belay_rc code, const char *reason,
                    const char *fmt, ...) RARE PRINTF_LIKE(4, 5);

/* Add facts to an error that is already filled. */
void err_numbers(struct belay_error *err, int64_t expected, int64_t actual);
void err_entity(struct belay_error *err, struct bytes entity);

/* Puts "context: " in front of the message, for a caller that knows more. */
void err_context(struct belay_error *err, const char *context);

/* The one out-of-memory error: no_memory, with what was wanted.  Inline, so that
 * readers and analysers see that it is never BELAY_OK. */
static inline belay_rc err_no_memory(struct belay_error *err, const char *what)
{
    (void)err_set(err, BELAY_NO_MEMORY, "no memory for %s", what);
    return BELAY_NO_MEMORY;
}

#endif /* BASE_ERR_H */
