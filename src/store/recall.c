#include "store/recall.h"

#include <stdlib.h>
#include <string.h>

#include "store/recall_page.h"

/* --- its pages --- */

static void take_pages(struct recall *r, struct recalled *e, struct kept_page **out)
{
    *out = e->pages;
    e->pages = NULL;
    r->page_bytes -= pages_size(*out);
}

static void drop_pages(struct recall *r, struct recalled *e)
{
    struct kept_page *pages;

    take_pages(r, e, &pages);
    pages_free(pages);
}

void recalled_free(struct recall *r, struct recalled *e)
{
    if (e)
        drop_pages(r, e);
    free(e);
}

/* Lets go of pages until there is room. */
static void make_room(struct recall *r, const struct recalled *but)
{
    size_t all = (size_t)RECALL_SETS * RECALL_WAYS;

    for (size_t i = 0; i < all && r->page_bytes > RECALL_PAGES_MAX; i++) {
        struct recalled *e = r->sets[r->hand];
        r->hand = (r->hand + 1) % all;
        if (e && e != but)
            drop_pages(r, e);
    }
}

static void give_pages(struct recall *r, struct recalled *e, struct kept_page *pages)
{
    e->pages = pages;
    r->page_bytes += pages_size(pages);
    if (r->page_bytes > RECALL_PAGES_MAX)
        make_room(r, e);
}

/* --- rows --- */

void recall_init(struct recall *r)
{
    *r = (struct recall){ .sets = NULL };
    pthread_mutex_init(&r->mutex, NULL);
}

static void empty(struct recall *r)
{
    for (size_t i = 0; r->sets && i < (size_t)RECALL_SETS * RECALL_WAYS; i++) {
        recalled_free(r, r->sets[i]);
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

    recalled_free(r, set[RECALL_WAYS - 1]);
    memmove(set + 1, set, (RECALL_WAYS - 1) * sizeof(struct recalled *));
    set[0] = e;
}

static bool is_borrowed(const struct value *v)
{
    return v->kind != VALUE_NULL && v->kind != VALUE_I64;
}

size_t recall_row_size(const struct row_type *type, const struct value *v)
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

static const struct row *copy_row(const struct row_type *type, int64_t ver,
                                  const struct value *from, size_t len,
                                  struct belay_arena *a)
{
    size_t values = type->n_columns * sizeof(struct value);
    struct row *row = arena_alloc(a, sizeof(*row) + values + len);

    if (!row)
        return NULL;
    struct value *v = (struct value *)(row + 1);
    copy_values(type, from, v, (uint8_t *)v + values);
    *row = (struct row){ .type = type, .ver = ver, .v = v };
    return row;
}

const struct row *recall_copy_row(const struct row_type *type, int64_t ver,
                                  const struct value *v, struct belay_arena *a)
{
    return copy_row(type, ver, v, recall_row_size(type, v), a);
}

const struct row *recalled_copy(const struct recalled *e, const struct row_type *type,
                                struct belay_arena *a)
{
    return copy_row(type, e->ver, e->v, e->len, a);
}

static const struct row *get(struct recall *r, const struct row_ref *ref, uint64_t era,
                             unsigned distrust, struct belay_arena *a)
{
    const struct row *row = NULL;

    pthread_mutex_lock(&r->mutex);
    struct recalled **at = r->sets ? find(r, ref) : NULL;
    if (at && (*at)->is_row && (*at)->distrust <= distrust &&
        (*at)->era == era) /* R2 */
        row = recalled_copy(*at, ref->type, a);
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

bool recall_scan(struct recall *r, const struct row_ref *cover, int64_t ver,
                 uint64_t era, const struct scan *scan, struct belay_arena *a,
                 struct hits *out)
{
    bool answered = false;

    pthread_mutex_lock(&r->mutex);
    struct recalled **at = r->sets ? find(r, cover) : NULL;
    if (at && (*at)->is_row && (*at)->ver == ver && (*at)->era == era) /* R2, R4 */
        answered = pages_answer((*at)->pages, scan, a, out);
    pthread_mutex_unlock(&r->mutex);
    return answered;
}

struct recalled *recalled_make(const struct row_ref *ref, const struct value *v)
{
    size_t n = v ? ref->type->n_columns : 0;
    size_t len = v ? recall_row_size(ref->type, v) : 0;

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

bool recall_keeps(const struct row_type *type)
{
    for (unsigned i = 0; i < type->n_columns; i++) {
        if (type->columns[i].counter)
            return false; /* they change without the row's version */
    }
    return true;
}

static bool make_sets(struct recall *r)
{
    if (!r->sets)
        r->sets = calloc((size_t)RECALL_SETS * RECALL_WAYS, sizeof(struct recalled *));
    return r->sets != NULL;
}

/* With the mutex held.  What is known of the indexes that the row covers (R4). */
static void put_pages(struct recall *r, struct recalled *e, struct recalled *was,
                      struct kept_page *made, const struct recall_lesson *lesson)
{
    struct kept_page *old = NULL;

    if (e->distrust > 0) {
        pages_free(made);
        return;
    }
    if (was && was->is_row && was->era == e->era && was->ver + 1 == e->ver)
        take_pages(r, was, &old);
    if (made || old)
        give_pages(r, e, pages_carry(made, old, lesson->plan));
}

/* A row that is to be kept. */
struct made {
    struct recalled *e;
    struct kept_page *pages;
};

/* With the mutex held. */
static void put(struct recall *r, const struct recall_news *n, struct made made,
                const struct recall_lesson *lesson)
{
    struct recalled **at = find(r, &n->ref), *was = NULL, *e = made.e;
    unsigned distrust = at && (*at)->distrust > 0 ? --(*at)->distrust : 0; /* R3 */

    /* Two commits of one row may be told here in either order: the later version stays. */
    if (at && (*at)->is_row && (*at)->era == lesson->era && (*at)->ver > n->ver) {
        pages_free(made.pages);
        free(e);
        return;
    }
    if (at && (e || distrust == 0))
        was = take_out(r, &n->ref, at);
    if (e) {
        e->ver = n->ver;
        e->era = lesson->era;
        e->distrust = distrust;
        if (n->own)
            put_pages(r, e, was, made.pages, lesson);
        put_first(r, &n->ref, e);
    } else {
        pages_free(made.pages);
    }
    recalled_free(r, was);
}

void recall_put(struct recall *r, const struct recall_news *news, size_t n,
                const struct recall_lesson *lesson)
{
    struct made made[64];

    for (size_t first = 0; first < n; first += COUNT_OF(made)) {
        size_t some = n - first < COUNT_OF(made) ? n - first : COUNT_OF(made);
        for (size_t i = 0; i < some; i++) {
            const struct row_ref *ref = &news[first + i].ref;
            made[i] = (struct made){ .e = NULL };
            if (!recall_keeps(ref->type))
                continue;
            made[i].e = recalled_make(ref, news[first + i].v);
            if (news[first + i].own)
                made[i].pages = pages_make(lesson->pages, ref);
        }
        pthread_mutex_lock(&r->mutex);
        bool room = make_sets(r);
        for (size_t i = 0; i < some; i++) {
            if (room) {
                put(r, &news[first + i], made[i], lesson);
                continue;
            }
            pages_free(made[i].pages);
            free(made[i].e);
        }
        pthread_mutex_unlock(&r->mutex);
    }
}

void recall_drop(struct recall *r, const struct row_ref *ref, bool in_vain)
{
    struct recalled *mark = in_vain ? recalled_make(ref, NULL) : NULL;

    pthread_mutex_lock(&r->mutex);
    struct recalled **at = r->sets ? find(r, ref) : NULL;
    if (at && in_vain) { /* what it was is a hint */
        (*at)->distrust = RECALL_DISTRUST;
        drop_pages(r, *at);
    } else if (at && (*at)->distrust == 0) {
        recalled_free(r, take_out(r, ref, at));
    } else if (mark && r->sets) {
        mark->distrust = RECALL_DISTRUST;
        put_first(r, ref, mark);
        mark = NULL;
    }
    pthread_mutex_unlock(&r->mutex);
    free(mark);
}
