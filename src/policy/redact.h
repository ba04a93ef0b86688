/* redact.h - a waitpoint's token as it may be printed.
 *
 * Pure: no I/O, no memory.
 */
#ifndef POLICY_REDACT_H
#define POLICY_REDACT_H

#include "base/bytes.h"

/* `kid:<REDACTED:len=40>`, or `<REDACTED:malformed>` for what is no `kid:digest`.  At most
 * cap bytes with the NUL; returns how long all of it is without. */
size_t redact_token(struct bytes token, char *out, size_t cap);

#endif /* POLICY_REDACT_H */
