#include "store/recall.h"

#include <stdlib.h>
#include <string.h>

/* One row, in one block: its key, values and their bytes stand behind it. */
struct recalled {
    uint64_t hash;
    struct bytes key;
    unsigned distrust; /* commits until it counts again; until then it is a hint */
    bool is_row;       /* else the place of one that is not known */
    uint64_t era;
    size_t len; /* of the bytes of all values */
    int64_t ver;
    struct value v[];
};

void recall_init(struct recall *r)
{
    *r = (struct recall){ .sets = NULL };
    pthread_mutex_init(&r->mutex, NULL);
}

static void empty(struct recall *r)
{
    for (size_t i = 0; r->sets && i < (size_t)RECALL_SETS * RECALL_WAYS; i++) {
        free(r->sets[i]);
        r->sets[i] = NULL;
    }
}

void recall_release(struct recall *r)
{
    empty(r);
    free(r->sets);
    pthread_mutex_destroy(&r->mutex);
}

void recall_clear(struct recall *r)
{
    pthread_mutex_lock(&r->mutex);
    empty(r);
    pthread_mutex_unlock(&r->mutex);
}

/* By the upper bits of a product: ids that follow each other differ in few lower ones. */
static struct recalled **set_of(struct recall *r, const struct row_ref *ref)
{
    uint64_t mixed = ref->hash * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return &r->sets[mixed % RECALL_SETS * RECALL_WAYS];
}

static struct recalled **find(struct recall *r, const struct row_ref *ref)
{
    struct recalled **set = set_of(r, ref);

    for (size_t i = 0; i < RECALL_WAYS && set[i]; i++) {
        if (set[i]->hash == ref->hash && bytes_eq(set[i]->key, ref->enc))
            return &set[i];
    }
    return NULL;
}

/* Takes one out of its set; the others move up. */
static struct recalled *take_out(struct recall *r, const struct row_ref *ref,
                                 struct recalled **at)
{
    struct recalled **end = set_of(r, ref) + RECALL_WAYS, *was = *at;

    for (; at + 1 < end; at++)
        at[0] = at[1];
    *at = NULL;
    return was;
}

/* The last of a full set makes room. */
static void put_first(struct recall *r, const struct row_ref *ref, struct recalled *e)
{
    struct recalled **set = set_of(r, ref);

    free(set[RECALL_WAYS - 1]);
    memmove(set + 1, set, (RECALL_WAYS - 1) * sizeof(struct recalled *));
    set[0] = e;
}

static bool is_borrowed(const struct value *v)
{
    return v->kind != VALUE_NULL && v->kind != VALUE_I64;
}

static size_t bytes_of_values(const struct row_type *type, const struct value *v)
{
    size_t len = 0;

    for (unsigned i = 0; i < type->n_columns; i++)
        len += is_borrowed(&v[i]) ? v[i].b.len + 1 : 0;
    return len;
}

/* Values with their bytes at `at`, each with a NUL behind it, as drivers give them. */
static void copy_values(const struct row_type *type, const struct value *from,
                        struct value *to, uint8_t *at)
{
    memcpy(to, from, type->n_columns * sizeof(*to));
    for (unsigned i = 0; i < type->n_columns; i++) {
        if (!is_borrowed(&from[i]))
            continue;
        if (from[i].b.len > 0)
            memcpy(at, from[i].b.ptr, from[i].b.len);
        at[from[i].b.len] = 0;
        to[i].b = bytes_of(at, from[i].b.len);
        at += from[i].b.len + 1;
    }
}

static const struct row *copy_row(const struct recalled *e, const struct row_type *type,
                                  struct belay_arena *a)
{
    size_t values = type->n_columns * sizeof(struct value);
    struct row *row = arena_alloc(a, sizeof(*row) + values + e->len);

    if (!row)
        return NULL;
    struct value *v = (struct value *)(row + 1);
    copy_values(type, e->v, v, (uint8_t *)v + values);
    *row = (struct row){ .type = type, .ver = e->ver, .v = v };
    return row;
}

static const struct row *get(struct recall *r, const struct row_ref *ref, uint64_t era,
                             unsigned distrust, struct belay_arena *a)
{
    const struct row *row = NULL;

    pthread_mutex_lock(&r->mutex);
    struct recalled **at = r->sets ? find(r, ref) : NULL;
    if (at && (*at)->is_row && (*at)->distrust <= distrust &&
        (*at)->era == era) /* R2 */
        row = copy_row(*at, ref->type, a);
    pthread_mutex_unlock(&r->mutex);
    return row;
}

const struct row *recall_get(struct recall *r, const struct row_ref *ref, uint64_t era,
                             struct belay_arena *a)
{
    return get(r, ref, era, 0, a);
}

const struct row *recall_hint(struct recall *r, const struct row_ref *ref, uint64_t era,
                              struct belay_arena *a)
{
    return get(r, ref, era, RECALL_DISTRUST, a);
}

/* A row, or with v NULL the place of one that is not trusted. */
static struct recalled *make(const struct row_ref *ref, const struct value *v)
{
    size_t n = v ? ref->type->n_columns : 0;
    size_t len = v ? bytes_of_values(ref->type, v) : 0;

    if (len > RECALL_ROW_MAX)
        return NULL;
    struct recalled *e =
        malloc(sizeof(*e) + n * sizeof(struct value) + len + ref->enc.len);
    if (!e)
        return NULL;
    uint8_t *at = (uint8_t *)(e->v + n);
    *e = (struct recalled){ .hash = ref->hash,
                            .is_row = v != NULL,
                            .key = bytes_of(at + len, ref->enc.len),
                            .len = len };
    memcpy(at + len, ref->enc.ptr, ref->enc.len);
    if (v)
        copy_values(ref->type, v, e->v, at);
    return e;
}

static bool has_counters(const struct row_type *type)
{
    for (unsigned i = 0; i < type->n_columns; i++) {
        if (type->columns[i].counter)
            return true; /* they change without the row's version */
    }
    return false;
}

static bool make_sets(struct recall *r)
{
    if (!r->sets)
        r->sets = calloc((size_t)RECALL_SETS * RECALL_WAYS, sizeof(struct recalled *));
    return r->sets != NULL;
}

/* With the mutex held.  Takes `e`, and gives back what is to be freed. */
static struct recalled *put(struct recall *r, const struct recall_news *n,
                            struct recalled *e, uint64_t era)
{
    struct recalled **at = find(r, &n->ref), *was = NULL;
    unsigned distrust = at && (*at)->distrust > 0 ? --(*at)->distrust : 0; /* R3 */

    /* Two commits of one row may be told here in either order: the later version stays. */
    if (at && (*at)->is_row && (*at)->era == era && (*at)->ver > n->ver)
        return e;
    if (at && (e || distrust == 0))
        was = take_out(r, &n->ref, at);
    if (e) {
        e->ver = n->ver;
        e->era = era;
        e->distrust = distrust;
        put_first(r, &n->ref, e);
    }
    return was;
}

void recall_put(struct recall *r, const struct recall_news *news, size_t n,
                uint64_t era)
{
    struct recalled *made[64];

    for (size_t first = 0; first < n; first += COUNT_OF(made)) {
        size_t some = n - first < COUNT_OF(made) ? n - first : COUNT_OF(made);
        for (size_t i = 0; i < some; i++) {
            const struct row_ref *ref = &news[first + i].ref;
            made[i] = has_counters(ref->type) ? NULL : make(ref, news[first + i].v);
        }
        pthread_mutex_lock(&r->mutex);
        for (size_t i = 0; i < some && make_sets(r); i++)
            made[i] = put(r, &news[first + i], made[i], era);
        pthread_mutex_unlock(&r->mutex);
        for (size_t i = 0; i < some; i++)
            free(made[i]);
    }
}

void recall_drop(struct recall *r, const struct row_ref *ref, bool in_vain)
{
    struct recalled *mark = in_vain ? make(ref, NULL) : NULL;

    pthread_mutex_lock(&r->mutex);
    struct recalled **at = r->sets ? find(r, ref) : NULL;
    if (at && in_vain) { /* what it was is a hint */
        (*at)->distrust = RECALL_DISTRUST;
    } else if (at && (*at)->distrust == 0) {
        free(take_out(r, ref, at));
    } else if (mark && r->sets) {
        mark->distrust = RECALL_DISTRUST;
        put_first(r, ref, mark);
        mark = NULL;
    }
    pthread_mutex_unlock(&r->mutex);
    free(mark);
}
