/* op_args.h - what handlers read of a call, and how they answer with lists. */
#ifndef API_OP_ARGS_H
#define API_OP_ARGS_H

#include "api/op_json.h"
#include "work/session.h"

/* The text of an argument, or NULL when it is absent. */
const char *op_str(const struct op_call *call, const char *name);
/* A number, or the usual one when it was not given. */
int64_t op_number(const struct op_call *call, const char *name, int64_t usual);

/* All texts of a repeated one, in the arena. */
MUST_USE belay_rc op_strs(const struct op_call *call, const char *name,
                          struct belay_arena *a, const char *const **out, size_t *n,
                          struct belay_error *err);

/* --cursor as a number, 0 when it is absent; `invalid` for one that was not given out. */
MUST_USE belay_rc op_cursor(const struct op_call *call, int64_t *out,
                            struct belay_error *err);

/* --expect as a revision; *out stays where it is absent. */
MUST_USE belay_rc op_expect(const struct op_call *call, int64_t *out,
                            struct belay_error *err);

/* Where --confirm must repeat a name. */
MUST_USE belay_rc op_confirm(const struct op_call *call, const char *name,
                             struct belay_error *err);

/* The session that is named, with --profile where there is one; its id is a good one. */
MUST_USE belay_rc op_session_of(const struct op_call *call, struct session *out,
                                struct belay_error *err);

/* A list; next is where it goes on, 0 when there is no more, or its text. */
MUST_USE belay_rc op_made_list(const struct op_maker *m, json_t *items, int failed,
                               int64_t next, json_t **out);
MUST_USE belay_rc op_made_pages(const struct op_maker *m, json_t *items, int failed,
                                const char *next, json_t **out);

#endif /* API_OP_ARGS_H */
