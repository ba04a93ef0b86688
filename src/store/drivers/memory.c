#include "store/drivers/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/drivers/memory_impl.h"
#include "store/wake.h"

static struct memory *memory_of(struct driver *d)
{
    return (struct memory *)d;
}

static belay_rc mem_begin(struct driver *d, void *attempt, struct bytes ns,
                          struct belay_error *err)
{
    struct mem_attempt *a = attempt;

    (void)d;
    (void)err;
    a->ns = ns;
    return BELAY_OK;
}

/* A copy of a row in the caller's arena: one piece, pointers moved with it. */
static belay_rc copy_row(const struct mem_row *r, struct belay_arena *arena,
                         const struct row **out, struct belay_error *err)
{
    unsigned n = r->row.type->n_columns;
    struct row *row = arena_alloc(arena, sizeof(*row) + r->body_len);

    if (!row)
        return err_no_memory(err, "a row");
    struct value *v = (struct value *)(row + 1);
    memcpy(v, r->v, r->body_len);
    for (unsigned i = 0; i < n; i++)
        v[i].b.ptr = (const uint8_t *)v + (r->v[i].b.ptr - (const uint8_t *)r->v);
    *row = (struct row){ .type = r->row.type, .ver = r->row.ver, .v = v };
    *out = row;
    return BELAY_OK;
}

static belay_rc read_row(struct memory *m, const struct mem_space *space,
                         const struct row_ref *ref, struct belay_arena *arena,
                         const struct row **out, struct belay_error *err)
{
    const struct mem_row *r = mem_find_row(m, space, ref);

    *out = NULL;
    return r ? copy_row(r, arena, out, err) : BELAY_OK;
}

/* --- ranks --- */

/* First entry of one index for the scan, or NULL. */
static struct mem_node *scan_start(const struct mem_set *set, const struct scan *s)
{
    static const uint8_t last_byte[] = { 0xff };
    int64_t number = s->descending ? s->max_rank : s->min_rank;
    struct bytes member = s->descending ? bytes_of(last_byte, 1) : bytes_of(NULL, 0);

    if (s->after && scan_cmp(s, s->after->rank, s->after->member, s->after->index,
                             number, member, bytes_of(NULL, 0)) > 0) {
        number = s->after->rank;
        member = s->after->member;
    }
    return s->descending ? mem_tree_at_or_before(&set->tree, number, member)
                         : mem_tree_at_or_after(&set->tree, number, member);
}

static struct mem_node *scan_step(const struct scan *s, const struct mem_node *n)
{
    return s->descending ? mem_tree_previous(n) : mem_tree_next(n);
}

/* n or the first behind it that the scan may show; NULL when its index is exhausted. */
static struct mem_node *scan_settle(const struct scan *s, struct mem_node *n,
                                    const struct mem_group *mine, bool hold,
                                    int64_t now_us)
{
    for (; n; n = scan_step(s, n)) {
        if (n->number < s->min_rank || n->number > s->max_rank)
            return NULL;
        bool behind =
            !s->after || scan_cmp(s, n->number, n->member, n->set->name, s->after->rank,
                                  s->after->member, s->after->index) > 0;
        bool hidden =
            hold && n->group && n->group != mine && n->group->until_us > now_us;
        if (behind && !hidden)
            return n;
    }
    return NULL;
}

/* The attempt's group of picks, made at the first; NULL: no memory. */
static struct mem_group *need_group(struct memory *m, struct mem_attempt *a,
                                    int64_t now_us)
{
    if (a->group)
        return a->group;
    struct mem_group *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->until_us = now_us + HOLD_MAX_US;
    g->next = m->groups;
    g->at = &m->groups;
    if (g->next)
        g->next->at = &g->next;
    m->groups = g;
    a->group = g;
    return g;
}

static void free_group(struct mem_group *g)
{
    while (g->nodes)
        mem_release_hold(g->nodes);
    *g->at = g->next;
    if (g->next)
        g->next->at = g->at;
    free(g);
}

static void hold_node(struct mem_group *g, struct mem_node *n)
{
    mem_release_hold(n);
    n->group = g;
    n->group_next = g->nodes;
    n->group_at = &g->nodes;
    if (n->group_next)
        n->group_next->group_at = &n->group_next;
    g->nodes = n;
}

static belay_rc fill_hit(struct memory *m, const struct mem_space *space,
                         const struct scan *s, const struct mem_node *n,
                         struct belay_arena *arena, struct hit *out,
                         struct belay_error *err)
{
    struct hit hit = { .rank = n->number };

    hit.rows = arena_zalloc(arena, s->n_fetch, sizeof(*hit.rows));
    if (!hit.rows || !arena_copy(arena, n->member, &hit.member) ||
        !arena_copy(arena, n->set->name, &hit.index))
        return err_no_memory(err, "a scan");
    for (size_t i = 0; i < s->n_fetch; i++) {
        struct row_ref ref;
        belay_rc rc = fetch_ref(&ref, &s->fetch[i], n->member, arena, err);
        if (!rc)
            rc = read_row(m, space, &ref, arena, &hit.rows[i], err);
        if (rc)
            return rc;
    }
    *out = hit;
    return BELAY_OK;
}

/* Merges the indexes: the least of their current entries, again and again. */
static belay_rc read_rank(struct memory *m, struct mem_attempt *a, struct read *q,
                          struct belay_arena *arena, struct belay_error *err)
{
    const struct scan *s = q->rank.scan;
    int64_t now_us = m->config.clock.mono_us(m->config.clock.arg);
    struct mem_node **at = arena_zalloc(arena, s->n_indexes, sizeof(struct mem_node *));
    struct hits out = { .hit = NULL };
    size_t cap = 0;

    if (!at)
        return err_no_memory(err, "a scan");
    if (q->rank.hold && !need_group(m, a, now_us))
        return err_no_memory(err, "a pick");
    for (size_t i = 0; i < s->n_indexes; i++) {
        struct mem_set *set = mem_find_set(m, a->space, MEM_RANK, s->indexes[i]);
        if (set)
            at[i] = scan_settle(s, scan_start(set, s), a->group, q->rank.hold, now_us);
    }
    while (out.n < s->limit) {
        struct mem_node **least = NULL;
        for (size_t i = 0; i < s->n_indexes; i++) {
            if (at[i] &&
                (!least ||
                 scan_cmp(s, at[i]->number, at[i]->member, at[i]->set->name,
                          (*least)->number, (*least)->member, (*least)->set->name) < 0))
                least = &at[i];
        }
        if (!least)
            break;
        if (out.n == cap) {
            cap = cap ? cap * 2 : 16;
            struct hit *more = arena_zalloc(arena, cap, sizeof(*more));
            if (!more)
                return err_no_memory(err, "a scan");
            if (out.n > 0)
                memcpy(more, out.hit, out.n * sizeof(*more));
            out.hit = more;
        }
        belay_rc rc = fill_hit(m, a->space, s, *least, arena, &out.hit[out.n], err);
        if (rc)
            return rc;
        if (q->rank.hold)
            hold_node(a->group, *least);
        out.n++;
        *least = scan_settle(s, scan_step(s, *least), a->group, q->rank.hold, now_us);
    }
    q->rank.out = out;
    return BELAY_OK;
}

/* --- logs, feeds, chunks --- */

static size_t count_from(const struct mem_node *n, size_t limit)
{
    size_t count = 0;

    for (; n && count < limit; n = mem_tree_next(n))
        count++;
    return count;
}

static belay_rc read_log(struct memory *m, struct mem_attempt *a, struct read *q,
                         struct belay_arena *arena, struct belay_error *err)
{
    struct mem_set *set = mem_find_set(m, a->space, MEM_LOG, q->log.stream);
    struct mem_node *n = NULL;

    if (set && q->log.after < INT64_MAX)
        n = mem_tree_at_or_after(&set->tree, q->log.after + 1, bytes_of(NULL, 0));
    struct log_entries out = { .n = count_from(n, q->log.limit) };
    out.entry = arena_zalloc(arena, out.n, sizeof(*out.entry));
    if (!out.entry)
        return err_no_memory(err, "log entries");
    for (size_t i = 0; n && i < out.n; i++, n = mem_tree_next(n)) {
        out.entry[i].seq = n->number;
        if (!arena_copy(arena, n->data, &out.entry[i].data))
            return err_no_memory(err, "log entries");
    }
    q->log.out = out;
    return BELAY_OK;
}

static belay_rc read_feed(struct memory *m, struct mem_attempt *a, struct read *q,
                          struct belay_arena *arena, struct belay_error *err)
{
    struct mem_set *set = mem_find_set(m, a->space, MEM_FEED, q->feed.feed);
    struct mem_node *n = NULL;

    if (set && q->feed.after.major < INT64_MAX)
        n = mem_tree_at_or_after(&set->tree, q->feed.after.major + 1,
                                 bytes_of(NULL, 0));
    struct feed_entries out = { .n = count_from(n, q->feed.limit) };
    out.trimmed.major = set ? set->trimmed : 0;
    out.entry = arena_zalloc(arena, out.n, sizeof(*out.entry));
    if (!out.entry)
        return err_no_memory(err, "feed entries");
    for (size_t i = 0; n && i < out.n; i++, n = mem_tree_next(n)) {
        out.entry[i].pos.major = n->number;
        if (!arena_copy(arena, n->data, &out.entry[i].data))
            return err_no_memory(err, "feed entries");
    }
    q->feed.out = out;
    return BELAY_OK;
}

static belay_rc read_chunk(struct memory *m, struct mem_attempt *a, struct read *q,
                           struct belay_arena *arena, struct belay_error *err)
{
    struct mem_set *set = mem_find_set(m, a->space, MEM_UPLOAD, q->chunk.upload);
    struct mem_node *n = NULL;

    if (set)
        n = mem_tree_at_or_after(&set->tree, q->chunk.index, bytes_of(NULL, 0));
    q->chunk.found = n && n->number == q->chunk.index;
    q->chunk.out = bytes_of(NULL, 0);
    if (q->chunk.found && !arena_copy(arena, n->data, &q->chunk.out))
        return err_no_memory(err, "a chunk");
    return BELAY_OK;
}

static belay_rc answer(struct memory *m, struct mem_attempt *a, struct read *q,
                       struct belay_arena *arena, struct belay_error *err)
{
    switch (q->kind) {
    case READ_ROW:
        return read_row(m, a->space, &q->row.ref, arena, &q->row.out, err);
    case READ_RANK:
        return read_rank(m, a, q, arena, err);
    case READ_LOG:
        return read_log(m, a, q, arena, err);
    case READ_FEED:
        return read_feed(m, a, q, arena, err);
    case READ_CHUNK:
        return read_chunk(m, a, q, arena, err);
    }
    return err_set(err, BELAY_MISUSE, "read: unknown kind of question");
}

static belay_rc mem_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                         struct belay_arena *arena, struct belay_error *err)
{
    struct memory *m = memory_of(d);
    struct mem_attempt *a = attempt;
    belay_rc rc = BELAY_OK;

    pthread_mutex_lock(&m->mutex);
    (void)mem_space(m, a, false);
    for (size_t i = 0; i < n && !rc; i++)
        rc = answer(m, a, &reads[i], arena, err);
    pthread_mutex_unlock(&m->mutex);
    return rc;
}

static belay_rc mem_commit_locked(struct driver *d, void *attempt,
                                  const struct plan *plan, struct plan_result *result,
                                  struct belay_error *err)
{
    struct memory *m = memory_of(d);

    pthread_mutex_lock(&m->mutex);
    belay_rc rc = mem_commit(m, attempt, plan, result, err);
    pthread_mutex_unlock(&m->mutex);
    return rc;
}

static void mem_end(struct driver *d, void *attempt)
{
    struct memory *m = memory_of(d);
    struct mem_attempt *a = attempt;

    if (!a->group)
        return;
    pthread_mutex_lock(&m->mutex);
    free_group(a->group);
    a->group = NULL;
    pthread_mutex_unlock(&m->mutex);
}

/* --- walking --- */

static int row_order(const void *a, const void *b)
{
    const struct mem_row *x = *(const struct mem_row *const *)a;
    const struct mem_row *y = *(const struct mem_row *const *)b;
    int names = strcmp(x->row.type->name, y->row.type->name);

    return names ? names : bytes_cmp(x->enc, y->enc);
}

static int set_order(const void *a, const void *b)
{
    const struct mem_set *x = *(const struct mem_set *const *)a;
    const struct mem_set *y = *(const struct mem_set *const *)b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return bytes_cmp(x->name, y->name);
}

/* All entries of a table, in an array that the caller frees; NULL: no memory. */
static void *collect(const struct mem_table *t,
                     int (*compare)(const void *, const void *))
{
    struct mem_link **all = calloc(t->n + 1, sizeof(*all));
    size_t n = 0;

    if (!all)
        return NULL;
    for (size_t i = 0; i < t->n_buckets; i++) {
        for (struct mem_link *l = t->buckets[i]; l; l = l->next)
            all[n++] = l;
    }
    qsort(all, n, sizeof(*all), compare);
    return all;
}

static belay_rc walk_set(const struct mem_set *set, item_visit *visit, void *arg,
                         struct belay_error *err)
{
    static const enum item_kind kinds[] = { [MEM_RANK] = ITEM_RANK,
                                            [MEM_LOG] = ITEM_LOG,
                                            [MEM_FEED] = ITEM_FEED,
                                            [MEM_UPLOAD] = ITEM_CHUNK };
    struct mem_node *n = mem_tree_at_or_after(&set->tree, INT64_MIN, bytes_of(NULL, 0));
    int64_t ordinal = 0;
    belay_rc rc = BELAY_OK;

    for (; n && !rc; n = mem_tree_next(n)) {
        struct item item = { .kind = kinds[set->kind],
                             .name = set->name,
                             .member = n->member,
                             .number = set->kind == MEM_FEED ? ++ordinal : n->number,
                             .data = n->data };
        rc = visit(arg, &item, err);
    }
    return rc;
}

static belay_rc walk_locked(struct memory *m, const struct mem_space *space,
                            item_visit *visit, void *arg, struct belay_error *err)
{
    struct mem_row **rows = collect(&m->rows, row_order);
    struct mem_set **sets = collect(&m->sets, set_order);
    belay_rc rc = rows && sets ? BELAY_OK : err_no_memory(err, "a walk");

    for (size_t i = 0; !rc && i < m->rows.n; i++) {
        struct item item = { .kind = ITEM_ROW, .row = &rows[i]->row };
        if (rows[i]->space == space)
            rc = visit(arg, &item, err);
    }
    for (size_t i = 0; !rc && i < m->sets.n; i++) {
        if (sets[i]->space == space)
            rc = walk_set(sets[i], visit, arg, err);
    }
    free(rows);
    free(sets);
    return rc;
}

static belay_rc mem_walk(struct driver *d, struct bytes ns, item_visit *visit,
                         void *arg, struct belay_error *err)
{
    struct memory *m = memory_of(d);
    struct mem_attempt a = { .ns = ns };
    belay_rc rc = BELAY_OK;

    pthread_mutex_lock(&m->mutex);
    if (mem_space(m, &a, false))
        rc = walk_locked(m, a.space, visit, arg, err);
    pthread_mutex_unlock(&m->mutex);
    return rc;
}

static enum durability mem_durability(struct driver *d)
{
    (void)d;
    return DURABILITY_INLINE;
}

static void mem_close(struct driver *d)
{
    struct memory *m = memory_of(d);

    mem_free_everything(m);
    wake_hub_close(m->d.hub);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

static const struct driver_ops memory_ops = {
    .name = "memory",
    .version = DRIVER_VERSION,
    .caps = DRIVER_SEES_TWICE | DRIVER_SCAN_GUARDS,
    .attempt_size = sizeof(struct mem_attempt),
    .begin = mem_begin,
    .read = mem_read,
    .commit = mem_commit_locked,
    .end = mem_end,
    .walk = mem_walk,
    .erase = mem_erase,
    .check = mem_check,
    .doctor = mem_doctor,
    .durability = mem_durability,
    .close = mem_close,
};

belay_rc memory_open(struct driver **out, const struct driver_config *config,
                     struct belay_error *err)
{
    const char *fault = schema_fault(config->schema);
    if (fault)
        return err_reason(err, BELAY_INVALID, "schema", "data dictionary: %s", fault);

    uint64_t seed = 0;
    belay_rc rc = random_bytes(&config->random, &seed, sizeof(seed), err);
    if (rc)
        return rc;
    struct memory *m = calloc(1, sizeof(*m));
    if (!m)
        return err_no_memory(err, "a memory store");
    m->d.ops = &memory_ops;
    m->d.caps = memory_ops.caps;
    m->d.attempt_size = memory_ops.attempt_size;
    m->config = *config;
    rng_init(&m->rng, seed);
    rc = wake_hub_open(&m->d.hub, err);
    if (rc) {
        free(m);
        return rc;
    }
    pthread_mutex_init(&m->mutex, NULL);
    *out = &m->d;
    return BELAY_OK;
}
