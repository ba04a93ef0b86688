/* json.h - JSON in, canonical JSON out.
 *
 * Canonical form: compact, object keys sorted bytewise at every depth, UTF-8 raw,
 * escapes only for the quote, the backslash and control characters (\b \t \n \f \r,
 * else \u00xx in lower case), integers in decimal, reals in the shortest form that
 * reads back to the same double, written as 0.1, 12.5, 1.0, 1e21, 1.5e-7.  Equal values
 * have equal bytes, so a hash of them is an identity.  The integer 1 and the real 1.0
 * are different values.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"

#define JSON_DEPTH_MAX 32

/* Parses one JSON value of any kind.  The caller json_decref()s *out.
 *
 * `invalid` for more than max_len bytes (reason too_large, expected and actual are the
 * lengths) and, with a message that names line and column and repeats nothing of the text,
 * for: anything malformed
 * or trailing, duplicate keys, U+0000 in a string or key, integers outside i64, reals
 * that overflow, bytes that are not UTF-8, nesting over JSON_DEPTH_MAX. */
MUST_USE belay_rc json_read(struct bytes text, size_t max_len, json_t **out,
                            struct belay_error *err);

/* Appends the canonical form of `value`, or nothing.  `invalid` for what json_read
 * would refuse: nesting over JSON_DEPTH_MAX, which also bounds the recursion, and
 * strings or keys that are not UTF-8 or hold U+0000.  The buffer's sticky failure is
 * reported as no_memory. */
MUST_USE belay_rc json_write(const json_t *value, struct buf *out,
                             struct belay_error *err);

/* Appends the canonical form of a text: json_read, then json_write.  What is in that form
 * already, as most programs write it, is found to be so and costs no values. */
MUST_USE belay_rc json_canonical(struct bytes text, size_t max_len, struct buf *out,
                                 struct belay_error *err);

/* SHA-256 of the canonical form. */
MUST_USE belay_rc json_hash(const json_t *value, uint8_t out[32],
                            struct belay_error *err);

/* Appends `text` as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD.
 * For writers that print an answer without building a json_t. */
void json_append_string(struct buf *out, struct bytes text);

#endif /* BASE_JSON_H */
