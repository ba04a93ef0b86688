/* op_follow.h - what lists that can be followed share (op_follow.c). */
#ifndef API_OP_FOLLOW_H
#define API_OP_FOLLOW_H

#include "api/op_json.h"

#define FOLLOW_PAGE 500
/* Of a page, where no limit was given. */
#define PAGE_USUAL 100
/* How long one call waits for something new; then it is made again. */
#define FOLLOW_WAIT_MS ((int64_t)60 * 1000)

/* Hands one item over, which is the function's then. */
MUST_USE belay_rc op_emit(const struct op_call *call, struct op_maker *m, json_t *item);

/* Being told to stop is how following ends. */
MUST_USE belay_rc op_followed(belay_rc rc, const char *cursor, json_t **out,
                              struct belay_error *err);

/* Copies the cursor to where the next page does not end it; NULL: it stays. */
MUST_USE belay_rc op_keep_cursor(struct buf *to, const char *cursor, const char **after,
                                 struct belay_error *err);

#endif /* API_OP_FOLLOW_H */
