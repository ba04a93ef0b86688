#include "store/sight.h"

#include <stdlib.h>
#include <string.h>

#include "store/recall.h"

struct kept {
    int64_t rank;
    struct bytes member;
    size_t index;            /* which one of the scan's */
    const struct row **rows; /* one per fetch */
};

/* What a scan finds, in its order: hit[0] to hit[n - 1], then nothing up to rank `to`, and then
 * nobody knows. */
struct sight {
    struct sight *next;
    struct bytes *indexes; /* which scan it is: these, min_rank, pick, types */
    size_t n_indexes;
    int64_t min_rank;
    bool pick;
    const struct row_type *types[SCAN_FETCH_KEPT];
    size_t n_fetch;

    bool is_known; /* else only whether it may be trusted */
    uint64_t era;
    struct belay_arena arena; /* of the hits */
    struct kept *hit;
    size_t first, n; /* hits before `first` are gone */
    int64_t to;

    unsigned users; /* bodies that pick of it just now (S4) */
    bool is_being_read;
    unsigned distrust, level; /* S3 */
    struct belay_arena own;   /* of the names */
};

static void forget(struct sight *e)
{
    e->is_known = false;
    e->hit = NULL;
    e->first = e->n = 0;
    arena_reset(&e->arena);
}

static void sight_free(struct sight *e)
{
    arena_release(&e->arena);
    arena_release(&e->own);
    free(e);
}

void sights_init(struct sights *s)
{
    *s = (struct sights){ .first = NULL };
    pthread_mutex_init(&s->mutex, NULL);
}

static void empty(struct sights *s)
{
    while (s->first) {
        struct sight *e = s->first;
        s->first = e->next;
        sight_free(e);
    }
    s->n = 0;
}

void sights_release(struct sights *s)
{
    empty(s);
    pthread_mutex_destroy(&s->mutex);
}

void sights_clear(struct sights *s)
{
    pthread_mutex_lock(&s->mutex);
    empty(s);
    pthread_mutex_unlock(&s->mutex);
}

/* --- which one --- */

static bool is_of(const struct sight *e, const struct scan *scan)
{
    if (e->n_indexes != scan->n_indexes || e->min_rank != scan->min_rank ||
        e->pick != scan->pick || e->n_fetch != scan->n_fetch)
        return false;
    for (size_t i = 0; i < e->n_fetch; i++) {
        if (e->types[i] != scan->fetch[i].type)
            return false;
    }
    for (size_t i = 0; i < e->n_indexes; i++) {
        if (!bytes_eq(e->indexes[i], scan->indexes[i]))
            return false;
    }
    return true;
}

/* With the mutex held.  The one that is found becomes the first. */
static struct sight *find(struct sights *s, const struct scan *scan)
{
    for (struct sight **at = &s->first; *at; at = &(*at)->next) {
        struct sight *e = *at;
        if (!is_of(e, scan))
            continue;
        *at = e->next;
        e->next = s->first;
        s->first = e;
        return e;
    }
    return NULL;
}

static struct sight *make(const struct scan *scan)
{
    struct sight *e = calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->n_indexes = scan->n_indexes;
    e->min_rank = scan->min_rank;
    e->pick = scan->pick;
    e->n_fetch = scan->n_fetch;
    for (size_t i = 0; i < e->n_fetch; i++)
        e->types[i] = scan->fetch[i].type;
    e->indexes = arena_zalloc(&e->own, e->n_indexes, sizeof(*e->indexes));
    for (size_t i = 0; e->indexes && i < e->n_indexes; i++) {
        if (!arena_copy(&e->own, scan->indexes[i], &e->indexes[i]))
            e->indexes = NULL;
    }
    if (e->indexes)
        return e;
    sight_free(e);
    return NULL;
}

/* With the mutex held. */
static void drop_last(struct sights *s)
{
    struct sight **at = &s->first;

    while (*at && (*at)->next)
        at = &(*at)->next;
    if (!*at)
        return;
    sight_free(*at);
    *at = NULL;
    s->n--;
}

/* With the mutex held; NULL: no memory. */
static struct sight *need(struct sights *s, const struct scan *scan)
{
    struct sight *e = find(s, scan);

    if (e)
        return e;
    e = make(scan);
    if (!e)
        return NULL;
    if (s->n == SIGHTS_MAX)
        drop_last(s);
    e->next = s->first;
    s->first = e;
    s->n++;
    return e;
}

/* --- recalling --- */

/* How many of the hits the scan shows; false: that is not known. */
static bool count_shown(const struct sight *e, const struct scan *scan, size_t *out)
{
    size_t at = e->first;

    while (at < e->n && at - e->first < scan->limit &&
           e->hit[at].rank <= scan->max_rank)
        at++;
    *out = at - e->first;
    return *out == scan->limit || at < e->n || scan->max_rank <= e->to;
}

static bool take_hit(const struct kept *k, const struct scan *scan,
                     struct belay_arena *a, struct hit *out)
{
    *out = (struct hit){ .rank = k->rank };
    out->rows = arena_zalloc(a, scan->n_fetch, sizeof(*out->rows));
    if (!out->rows || !arena_copy(a, k->member, &out->member) ||
        !arena_copy(a, scan->indexes[k->index], &out->index))
        return false;
    for (size_t i = 0; i < scan->n_fetch; i++) {
        out->rows[i] =
            recall_copy_row(k->rows[i]->type, k->rows[i]->ver, k->rows[i]->v, a);
        if (!out->rows[i])
            return false;
    }
    return true;
}

/* With the mutex held. */
static bool answer(const struct sight *e, const struct scan *scan,
                   struct belay_arena *a, struct hits *out)
{
    size_t n = 0;

    /* Who picks hopes to find something: an empty index is asked. */
    if (!count_shown(e, scan, &n) || (scan->pick && n == 0))
        return false;
    struct hit *hit = arena_zalloc(a, n, sizeof(*hit));
    for (size_t i = 0; hit && i < n; i++) {
        if (!take_hit(&e->hit[e->first + i], scan, a, &hit[i]))
            return false;
    }
    *out = (struct hits){ .hit = hit, .n = n };
    return hit != NULL;
}

/* S3 */
static void distrust(struct sight *e)
{
    e->level = e->level == 0 ? SIGHT_DISTRUST : e->level * 4;
    if (e->level > SIGHT_DISTRUST_MAX)
        e->level = SIGHT_DISTRUST_MAX;
    e->distrust = e->level;
    e->is_being_read = false;
    forget(e);
}

/* Another body picks of it (S4); whether it is the only one. */
static bool join(struct sight *e)
{
    if (!e->pick)
        return true;
    if (e->users++ == 0)
        return true;
    distrust(e);
    return false;
}

bool sight_recall(struct sights *s, const struct scan *scan, uint64_t era,
                  struct belay_arena *a, struct hits *out)
{
    bool answered = false;

    pthread_mutex_lock(&s->mutex);
    struct sight *e = find(s, scan);
    if (e && e->is_known && e->era == era && e->users == 0) { /* S1 */
        answered = answer(e, scan, a, out);
        if (answered)
            (void)join(e);
    }
    pthread_mutex_unlock(&s->mutex);
    return answered;
}

bool sight_ask(struct sights *s, const struct scan *scan)
{
    bool worth = false;

    pthread_mutex_lock(&s->mutex);
    struct sight *e = need(s, scan);
    if (e && join(e)) {
        worth = e->distrust == 0 && !e->is_being_read;
        e->distrust -= e->distrust > 0;
        e->is_being_read |= worth;
    }
    pthread_mutex_unlock(&s->mutex);
    return worth;
}

void sight_end(struct sights *s, const struct scan *scan, enum sight_end how)
{
    pthread_mutex_lock(&s->mutex);
    struct sight *e = find(s, scan);
    if (e) {
        if (how == SIGHT_FALSE)
            distrust(e);
        else if (how == SIGHT_GONE)
            forget(e);
        else if (how == SIGHT_STOOD)
            e->level /= 2;
        else if (how == SIGHT_ASKED)
            e->is_being_read = false;
        e->users -= e->users > 0; /* it may have made room in between */
    }
    pthread_mutex_unlock(&s->mutex);
}

/* --- keeping --- */

static size_t index_of(const struct sight *e, struct bytes index)
{
    size_t i = 0;

    while (i < e->n_indexes && !bytes_eq(e->indexes[i], index))
        i++;
    return i;
}

/* False: it cannot be kept. */
static bool keep_hit(struct sight *e, const struct hit *from, size_t *io_bytes)
{
    struct kept *k = &e->hit[e->n];

    *k = (struct kept){ .rank = from->rank, .index = index_of(e, from->index) };
    k->rows = arena_zalloc(&e->arena, e->n_fetch, sizeof(*k->rows));
    if (!k->rows || k->index == e->n_indexes ||
        !arena_copy(&e->arena, from->member, &k->member))
        return false;
    for (size_t i = 0; i < e->n_fetch; i++) {
        const struct row *row = from->rows[i];
        *io_bytes += row ? recall_row_size(row->type, row->v) : 0;
        if (!row || *io_bytes > SIGHT_BYTES_MAX)
            return false;
        k->rows[i] = recall_copy_row(row->type, row->ver, row->v, &e->arena);
        if (!k->rows[i])
            return false;
    }
    e->n++;
    return true;
}

static void keep(struct sight *e, const struct hits *found, size_t most)
{
    size_t bytes = 0, i = 0;

    forget(e);
    e->hit = arena_zalloc(&e->arena, found->n, sizeof(*e->hit));
    while (e->hit && i < found->n && keep_hit(e, &found->hit[i], &bytes))
        i++;
    /* Others may stand at the rank of the last one. */
    e->to = i < found->n      ? found->hit[i].rank - 1
            : found->n < most ? RANK_MAX
            : found->n > 0    ? found->hit[found->n - 1].rank - 1
                              : e->min_rank - 1;
    e->is_known = e->hit != NULL;
}

void sight_put(struct sights *s, const struct scan *scan, uint64_t era,
               const struct hits *found, size_t most)
{
    pthread_mutex_lock(&s->mutex);
    struct sight *e = need(s, scan);
    if (e && e->distrust == 0) {
        keep(e, found, most);
        e->era = era;
    }
    pthread_mutex_unlock(&s->mutex);
}

static void leave(struct sight *e, const struct effect *x)
{
    for (size_t i = e->first; i < e->n; i++) {
        if (e->hit[i].rank != x->rank.old_rank ||
            !bytes_eq(e->hit[i].member, x->rank.member) ||
            !bytes_eq(e->indexes[e->hit[i].index], x->rank.index))
            continue;
        /* Most often it is the first. */
        memmove(&e->hit[e->first + 1], &e->hit[e->first],
                (i - e->first) * sizeof(e->hit[0]));
        e->first++;
        return;
    }
}

/* What stands behind a new member is not known: its own rows are not. */
static void enter(struct sight *e, int64_t rank)
{
    if (rank < e->min_rank)
        return;
    while (e->n > e->first && e->hit[e->n - 1].rank >= rank)
        e->n--;
    if (e->to >= rank)
        e->to = rank - 1;
}

static void apply(struct sight *e, const struct effect *x)
{
    bool leaves = x->kind == EFFECT_RANK_REMOVE || x->kind == EFFECT_RANK_MOVE;
    bool enters = x->kind == EFFECT_RANK_ADD || x->kind == EFFECT_RANK_MOVE;

    if ((!leaves && !enters) || index_of(e, x->rank.index) == e->n_indexes)
        return;
    if (leaves)
        leave(e, x);
    if (enters)
        enter(e, x->rank.rank);
}

void sights_apply(struct sights *s, const struct plan *plan)
{
    pthread_mutex_lock(&s->mutex);
    for (struct sight *e = s->first; e; e = e->next) {
        for (size_t i = 0; i < plan->n_effects && e->is_known; i++)
            apply(e, &plan->effects[i]);
    }
    pthread_mutex_unlock(&s->mutex);
}
