/* capability.h - what work requires and workers have: flat tokens, matched as sets.
 *
 * Required tokens are a subset of the worker's; nothing required fits everybody.  Tokens
 * are case-sensitive UTF-8, not empty, without comma, without bytes up to 0x20 and 0x7F; at
 * most 256 different ones, 4096 bytes with the commas.
 *
 * Pure: memory only from the arena it is handed.
 */
#ifndef POLICY_CAPABILITY_H
#define POLICY_CAPABILITY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"

#define CAPABILITY_TOKENS_MAX 256
#define CAPABILITY_BYTES_MAX 4096

/* Tokens sorted, without repetition, joined by commas, in the arena: equal sets are equal
 * bytes.  Empty for none.  `invalid`, reason `what` (NULL: requires): the message names one of
 * empty_token, comma_in_token, control_or_whitespace, not_utf8, too_many_tokens,
 * too_many_bytes. */
MUST_USE belay_rc capability_join(const char *const *tokens, size_t n, const char *what,
                                  struct belay_arena *a, struct bytes *out,
                                  struct belay_error *err);

/* Whether all of `required` are in `has`; both as capability_join made them. */
bool capability_fits(struct bytes required, struct bytes has);

/* Those of `required` that `has` lacks, joined; in the arena.  False: no memory. */
MUST_USE bool capability_missing(struct bytes required, struct bytes has,
                                 struct belay_arena *a, struct bytes *out);

/* The name of a route: "-" for nothing required, else 16 hex digits of the SHA-256 of the
 * joined set.  (Of a simpler hash where the cryptographic library refuses: a route is
 * stored with its set, and a set may have two.) */
#define ROUTE_MAX 17
void route_make(struct bytes required, char out[ROUTE_MAX]);

#endif /* POLICY_CAPABILITY_H */
