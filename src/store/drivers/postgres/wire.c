#include <endian.h>

#include "store/drivers/postgres/impl.h"

/* Types of the server, as they are known to every client. */
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, OID_TID = 27 };

/* --- calls --- */

void pg_pipe_init(struct pg_pipe *p, struct belay_arena *a)
{
    *p = (struct pg_pipe){ .arena = a };
    p->last = &p->first;
}

struct pg_call *pg_add(struct pg_pipe *p, const struct pg_sql *sql, unsigned max_args)
{
    struct pg_call *c = sql ? arena_zalloc(p->arena, 1, sizeof(*c)) : NULL;

    if (c && max_args > 0) {
        c->values = arena_zalloc(p->arena, max_args, sizeof(*c->values));
        c->lengths = arena_zalloc(p->arena, max_args, sizeof(*c->lengths));
        c->formats = arena_zalloc(p->arena, max_args, sizeof(*c->formats));
    }
    if (!c || (max_args > 0 && (!c->values || !c->lengths || !c->formats))) {
        p->no_memory = true;
        return NULL;
    }
    c->sql = sql;
    c->max_args = (int)max_args;
    *p->last = c;
    p->last = &c->next;
    return c;
}

void pg_add_sync(struct pg_pipe *p)
{
    struct pg_call *c = arena_zalloc(p->arena, 1, sizeof(*c));

    if (!c) {
        p->no_memory = true;
        return;
    }
    *p->last = c;
    p->last = &c->next;
}

void pg_pipe_clear(struct pg_pipe *p)
{
    for (struct pg_call *c = p->first; c; c = c->next) {
        PQclear(c->result);
        c->result = NULL;
    }
}

/* --- arguments --- */

static void put_arg(struct pg_pipe *p, struct pg_call *c, const void *data, size_t len)
{
    if (!c)
        return;
    if (c->n_args >= c->max_args || len > INT32_MAX) {
        p->no_memory = true; /* of the call: it was made too small */
        return;
    }
    c->values[c->n_args] = data;
    c->lengths[c->n_args] = (int)len;
    c->formats[c->n_args] = 1;
    c->n_args++;
}

static void *arg_memory(struct pg_pipe *p, const struct pg_call *c, size_t len)
{
    void *at = c ? arena_alloc(p->arena, len) : NULL;

    if (c && !at)
        p->no_memory = true;
    return at;
}

void pg_arg_i64(struct pg_pipe *p, struct pg_call *c, int64_t i)
{
    uint64_t *at = arg_memory(p, c, sizeof(*at));

    if (!at)
        return;
    *at = htobe64((uint64_t)i);
    put_arg(p, c, at, sizeof(*at));
}

void pg_arg_i32(struct pg_pipe *p, struct pg_call *c, int32_t i)
{
    uint32_t *at = arg_memory(p, c, sizeof(*at));

    if (!at)
        return;
    *at = htobe32((uint32_t)i);
    put_arg(p, c, at, sizeof(*at));
}

void pg_arg_bytes(struct pg_pipe *p, struct pg_call *c, struct bytes b)
{
    /* A NULL pointer would be the server's NULL. */
    put_arg(p, c, b.len > 0 ? (const void *)b.ptr : "", b.len);
}

void pg_arg_value(struct pg_pipe *p, struct pg_call *c, const struct value *v)
{
    if (v->kind == VALUE_NULL)
        put_arg(p, c, NULL, 0);
    else if (v->kind == VALUE_I64)
        pg_arg_i64(p, c, v->i);
    else
        pg_arg_bytes(p, c, v->b);
}

void pg_arg_key(struct pg_pipe *p, struct pg_call *c, struct bytes ns,
                const struct row_ref *ref)
{
    pg_arg_bytes(p, c, ns);
    for (unsigned i = 0; i < ref->type->n_key; i++)
        pg_arg_value(p, c, &ref->key[i]);
}

static uint32_t element_oid(enum value_kind kind)
{
    switch (kind) {
    case VALUE_I64:
        return OID_INT8;
    case VALUE_BYTES:
        return OID_BYTEA;
    case VALUE_JSON:
    case VALUE_TEXT:
    case VALUE_NULL:
        break;
    }
    return OID_TEXT;
}

static uint8_t *put_u32(uint8_t *at, uint32_t n)
{
    n = htobe32(n);
    memcpy(at, &n, sizeof(n));
    return at + sizeof(n);
}

static uint8_t *put_element(uint8_t *at, const struct value *v)
{
    if (v->kind == VALUE_NULL)
        return put_u32(at, UINT32_MAX); /* length -1 */
    if (v->kind == VALUE_I64) {
        uint64_t n = htobe64((uint64_t)v->i);
        at = put_u32(at, sizeof(n));
        memcpy(at, &n, sizeof(n));
        return at + sizeof(n);
    }
    at = put_u32(at, (uint32_t)v->b.len);
    if (v->b.len > 0)
        memcpy(at, v->b.ptr, v->b.len);
    return at + v->b.len;
}

/* One dimension: count, flags, element type, length, lower bound, elements. */
static void arg_array(struct pg_pipe *p, struct pg_call *c, uint32_t element,
                      const struct value *v, size_t n)
{
    size_t len = 5 * sizeof(uint32_t);
    bool nulls = false;

    for (size_t i = 0; i < n; i++) {
        len += sizeof(uint32_t);
        nulls |= v[i].kind == VALUE_NULL;
        if (v[i].kind != VALUE_NULL)
            len += v[i].kind == VALUE_I64 ? sizeof(int64_t) : v[i].b.len;
    }
    uint8_t *start = arg_memory(p, c, len), *at = start;
    if (!at)
        return;
    at = put_u32(at, n > 0);
    at = put_u32(at, nulls);
    at = put_u32(at, element);
    if (n > 0) {
        at = put_u32(at, (uint32_t)n);
        at = put_u32(at, 1);
    }
    for (size_t i = 0; i < n; i++)
        at = put_element(at, &v[i]);
    put_arg(p, c, start, (size_t)(at - start));
}

void pg_arg_array(struct pg_pipe *p, struct pg_call *c, enum value_kind kind,
                  const struct value *v, size_t n)
{
    arg_array(p, c, element_oid(kind), v, n);
}

void pg_arg_places(struct pg_pipe *p, struct pg_call *c, const struct value *v,
                   size_t n)
{
    arg_array(p, c, OID_TID, v, n);
}

/* --- results --- */

int64_t pg_i64(const PGresult *r, int row, int column)
{
    int len = PQgetlength(r, row, column); /* of NULL: 0 */
    uint64_t n;
    uint32_t small;

    if (len == (int)sizeof(n)) {
        memcpy(&n, PQgetvalue(r, row, column), sizeof(n));
        return (int64_t)be64toh(n);
    }
    if (len != (int)sizeof(small))
        return 0;
    memcpy(&small, PQgetvalue(r, row, column), sizeof(small));
    return (int32_t)be32toh(small);
}

void pg_take_places(const PGresult *r, struct pg_place *out, size_t n)
{
    const int last = PQnfields(r) - 1;

    for (size_t i = 0; i < n && i < (size_t)PQntuples(r); i++) {
        out[i].known = PQgetlength(r, (int)i, last) == PG_TID_LEN;
        out[i].ours = true;
        if (out[i].known)
            memcpy(out[i].tid, PQgetvalue(r, (int)i, last), PG_TID_LEN);
    }
}

bool pg_bool(const PGresult *r, int row, int column)
{
    return PQgetlength(r, row, column) == 1 && *PQgetvalue(r, row, column) != 0;
}

bool pg_bytes(const PGresult *r, int row, int column, struct belay_arena *a,
              struct bytes *out)
{
    return arena_copy(
        a, bytes_of(PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)),
        out);
}

bool pg_value(const PGresult *r, int row, int column, enum value_kind kind,
              struct belay_arena *a, struct value *out)
{
    *out = value_null();
    if (PQgetisnull(r, row, column))
        return true;
    out->kind = kind;
    if (kind != VALUE_I64)
        return pg_bytes(r, row, column, a, &out->b);
    out->i = pg_i64(r, row, column);
    return true;
}

static struct row *row_with_key(const struct row_type *type, const struct value *key,
                                struct belay_arena *a)
{
    struct row *made =
        arena_alloc(a, sizeof(*made) + type->n_columns * sizeof(struct value));

    if (!made)
        return NULL;
    struct value *v = (struct value *)(made + 1);
    for (unsigned i = 0; key && i < type->n_key; i++)
        v[i] = key[i];
    *made = (struct row){ .type = type, .v = v };
    return made;
}

bool pg_row(const PGresult *r, int row, int column, const struct row_type *type,
            const struct value *key, struct belay_arena *a, const struct row **out)
{
    *out = NULL;
    if (PQgetisnull(r, row, column))
        return true;
    struct row *made = row_with_key(type, key, a);
    if (!made)
        return false;
    made->ver = pg_i64(r, row, column++);
    struct value *v = (struct value *)(made + 1);
    for (unsigned i = key ? type->n_key : 0; i < type->n_columns; i++) {
        if (!pg_value(r, row, column++, type->columns[i].type, a, &v[i]))
            return false;
    }
    *out = made;
    return true;
}
