#include "store/drivers/sqlite/rowcache.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 8192 /* in pairs: a row is in one of two, and takes the older one */
#define ROW_BYTES_MAX 2048

/* One block: this, the values, then the bytes of namespace, key and values. */
struct cached {
    size_t cap, len; /* of what follows the header */
    uint64_t used;   /* when, in puts; 0: it holds nothing */
    uint64_t hash;
    struct bytes ns, enc;
    struct row row;
};

struct rowcache {
    uint64_t puts;
    struct cached *slot[SLOTS];
};

struct rowcache *rowcache_new(void)
{
    return calloc(1, sizeof(struct rowcache));
}

void rowcache_free(struct rowcache *c)
{
    for (size_t i = 0; c && i < SLOTS; i++)
        free(c->slot[i]);
    free(c);
}

void rowcache_clear(struct rowcache *c)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (c->slot[i])
            c->slot[i]->used = 0;
    }
}

static size_t pair_of(const struct row_ref *ref)
{
    return ref->hash % (SLOTS / 2) * 2;
}

static struct cached *find(const struct rowcache *c, struct bytes ns,
                           const struct row_ref *ref)
{
    size_t pair = pair_of(ref);

    for (size_t i = pair; i < pair + 2; i++) {
        struct cached *e = c->slot[i];
        if (e && e->used && e->hash == ref->hash && bytes_eq(e->enc, ref->enc) &&
            bytes_eq(e->ns, ns))
            return e;
    }
    return NULL;
}

void rowcache_drop(struct rowcache *c, struct bytes ns, const struct row_ref *ref)
{
    struct cached *e = find(c, ns, ref);

    if (e)
        e->used = 0;
}

/* --- reading --- */

bool rowcache_get(const struct rowcache *c, struct bytes ns, const struct row_ref *ref,
                  struct belay_arena *a, const struct row **out)
{
    const struct cached *e = find(c, ns, ref);

    *out = NULL;
    if (!e)
        return true;
    struct row *row = arena_alloc(a, sizeof(*row) + e->len);
    if (!row)
        return false;
    struct value *v = (struct value *)(row + 1);
    const uint8_t *from = (const uint8_t *)(e + 1);
    memcpy(v, from, e->len);
    for (unsigned i = 0; i < ref->type->n_columns; i++) {
        if (v[i].b.ptr)
            v[i].b.ptr = (const uint8_t *)v + (v[i].b.ptr - from);
    }
    *row = (struct row){ .type = ref->type, .ver = e->row.ver, .v = v };
    *out = row;
    return true;
}

/* --- remembering --- */

static bool has_counters(const struct row_type *type)
{
    for (unsigned i = type->n_key; i < type->n_columns; i++) {
        if (type->columns[i].counter)
            return true;
    }
    return false;
}

static bool has_bytes(const struct value *v)
{
    return v->kind != VALUE_NULL && v->kind != VALUE_I64;
}

/* Bytes are kept with a 00 behind them, as those that are read have. */
static size_t size_of(struct bytes ns, const struct row_ref *ref, const struct value *v)
{
    size_t len = ref->type->n_columns * sizeof(*v) + ns.len + ref->enc.len + 2;

    for (unsigned i = 0; i < ref->type->n_columns; i++)
        len += has_bytes(&v[i]) ? v[i].b.len + 1 : 0;
    return len;
}

static struct bytes keep(uint8_t **at, struct bytes b)
{
    struct bytes kept = bytes_of(*at, b.len);

    if (b.len > 0)
        memcpy(*at, b.ptr, b.len);
    (*at)[b.len] = 0;
    *at += b.len + 1;
    return kept;
}

static void fill(struct cached *e, struct bytes ns, const struct row_ref *ref,
                 int64_t ver, const struct value *v)
{
    struct value *own = (struct value *)(e + 1);
    uint8_t *at = (uint8_t *)(own + ref->type->n_columns);

    for (unsigned i = 0; i < ref->type->n_columns; i++) {
        own[i] = v[i];
        own[i].b = has_bytes(&v[i]) ? keep(&at, v[i].b) : bytes_of(NULL, 0);
    }
    e->ns = keep(&at, ns);
    e->enc = keep(&at, ref->enc);
    e->hash = ref->hash;
    e->row = (struct row){ .type = ref->type, .ver = ver, .v = own };
}

/* Where the row is, or where it will be. */
static struct cached **slot_for(struct rowcache *c, struct bytes ns,
                                const struct row_ref *ref)
{
    struct cached **pair = &c->slot[pair_of(ref)];
    const struct cached *there = find(c, ns, ref);

    if (there)
        return pair[0] == there ? &pair[0] : &pair[1];
    if (!pair[0] || !pair[1])
        return pair[0] ? &pair[1] : &pair[0];
    return pair[0]->used <= pair[1]->used ? &pair[0] : &pair[1];
}

void rowcache_put(struct rowcache *c, struct bytes ns, const struct row_ref *ref,
                  int64_t ver, const struct value *v)
{
    struct cached **slot = slot_for(c, ns, ref);
    size_t len = size_of(ns, ref, v);

    if (len > ROW_BYTES_MAX || has_counters(ref->type)) {
        rowcache_drop(c, ns, ref);
        return;
    }
    if (!*slot || (*slot)->cap < len) {
        free(*slot);
        *slot = malloc(sizeof(**slot) + len);
        if (!*slot)
            return;
        (*slot)->cap = len;
    }
    (*slot)->len = len;
    (*slot)->used = ++c->puts;
    fill(*slot, ns, ref, ver, v);
}
