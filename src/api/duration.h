/* duration.h - lengths of time as people write them: 500ms, 30s, 15m, 2h, 7d. */
#ifndef API_DURATION_H
#define API_DURATION_H

#include "base/bytes.h"

/* A whole number and one unit, without space, sign or fraction; 0 to TIME_MAX_MS
 * milliseconds.  False leaves *out_ms untouched. */
MUST_USE bool duration_parse(struct bytes text, int64_t *out_ms);

/* Appends the shortest of those forms that says exactly `ms`, which is not negative. */
void duration_append(struct buf *out, int64_t ms);

#endif /* API_DURATION_H */
