/* op_read.h - fields of a JSON object that a caller gave, with errors that name them.
 *
 * `where` is the object's own place, "" at the top.  What is wrong is `invalid`, reason
 * `field`, entity the field's name.
 */
#ifndef API_OP_READ_H
#define API_OP_READ_H

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"

/* What the reading needs everywhere. */
struct op_reader {
    struct belay_arena *arena;
    struct belay_error *err;
};

/* "where.field: why" */
belay_rc op_field_wrong(struct op_reader *r, const char *where, const char *field,
                        const char *why);

/* Nothing but these fields; the list ends with NULL. */
MUST_USE belay_rc op_field_only(struct op_reader *r, const char *where,
                                const json_t *object, const char *const *fields);

/* A string; NULL where it is absent or null, unless it is required. */
MUST_USE belay_rc op_field_text(struct op_reader *r, const char *where,
                                const json_t *object, const char *field, bool required,
                                const char **out);

/* A whole number from 0; *out stays where it is absent or null. */
MUST_USE belay_rc op_field_number(struct op_reader *r, const char *where,
                                  const json_t *object, const char *field,
                                  int64_t *out);

/* A list, or NULL where it is absent or null. */
MUST_USE belay_rc op_field_list(struct op_reader *r, const char *where,
                                const json_t *object, const char *field,
                                const json_t **out, size_t *n);

/* A list of strings, in the arena; NULL where it is absent or null. */
MUST_USE belay_rc op_field_texts(struct op_reader *r, const char *where,
                                 const json_t *object, const char *field,
                                 const char *const **out, size_t *n);

/* An object, or NULL where it is absent or null. */
MUST_USE belay_rc op_field_object(struct op_reader *r, const char *where,
                                  const json_t *object, const char *field,
                                  const json_t **out);

/* Any JSON as `field` (canonical, *is_json), or bytes as `<field>_base64`; ptr NULL where
 * both are absent. */
MUST_USE belay_rc op_field_data(struct op_reader *r, const char *where,
                                const json_t *object, const char *field,
                                struct bytes *out, bool *is_json);

/* The canonical form, in the arena. */
MUST_USE belay_rc op_field_canonical(struct op_reader *r, const json_t *value,
                                     struct bytes *out);

#endif /* API_OP_READ_H */
