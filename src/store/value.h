/* value.h - what a column holds, and rows of them. */
#ifndef STORE_VALUE_H
#define STORE_VALUE_H

#include "base/bytes.h"

/* Also the type of a column; a column of any type may be VALUE_NULL. */
enum value_kind {
    VALUE_NULL,
    VALUE_I64,
    VALUE_TEXT,  /* UTF-8 without U+0000 */
    VALUE_BYTES, /* anything */
    VALUE_JSON, /* canonical JSON text; stores may index it, Belay compares its bytes */
};

struct value {
    enum value_kind kind;
    int64_t i;      /* VALUE_I64 */
    struct bytes b; /* the others; borrowed */
};

static inline struct value value_null(void)
{
    return (struct value){ .kind = VALUE_NULL };
}

static inline struct value value_i64(int64_t i)
{
    return (struct value){ .kind = VALUE_I64, .i = i };
}

static inline struct value value_text(struct bytes b)
{
    return (struct value){ .kind = VALUE_TEXT, .b = b };
}

static inline struct value value_str(const char *text)
{
    return value_text(bytes_str(text));
}

static inline struct value value_bytes(struct bytes b)
{
    return (struct value){ .kind = VALUE_BYTES, .b = b };
}

static inline struct value value_json(struct bytes b)
{
    return (struct value){ .kind = VALUE_JSON, .b = b };
}

static inline bool value_eq(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == VALUE_NULL)
        return true;
    return a->kind == VALUE_I64 ? a->i == b->i : bytes_eq(a->b, b->b);
}

/* A row as read.  ver is positive.  v has one entry per column of its type, key columns
 * first. */
struct row_type;
struct row {
    const struct row_type *type;
    int64_t ver;
    const struct value *v;
};

/* A value, or `otherwise` when the column is NULL. */
static inline int64_t row_i64(const struct row *r, unsigned column, int64_t otherwise)
{
    return r->v[column].kind == VALUE_I64 ? r->v[column].i : otherwise;
}

/* The bytes of a column; empty when it is NULL. */
static inline struct bytes row_bytes(const struct row *r, unsigned column)
{
    return r->v[column].b;
}

#endif /* STORE_VALUE_H */
