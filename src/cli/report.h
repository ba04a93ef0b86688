/* report.h - failures on standard error, and writing that notices its own. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/bytes.h"
#include "base/err.h"

/* Appends "belay: what: why" on one line, or {"error":{"code","message","detail"}}. The
 * detail is an object: reason, entity, and expected with actual, as far as they are
 * known. */
void report_append(struct buf *out, const struct belay_error *e, bool json);

/* Writes all of it; false leaves errno as the failing write did. */
bool report_write_all(int fd, struct bytes text);

/* Writes an answer.  `unavailable`, reason `output`, when that fails. */
MUST_USE belay_rc report_write(int fd, struct bytes text, struct belay_error *err);

/* Writes a message.  Nobody is left to be told that this failed. */
void report_say(int fd, const struct buf *text);

/* Says what report_append makes of the error and returns the exit status. */
int report_error(int fd, const struct belay_error *e, bool json);

#endif /* CLI_REPORT_H */
