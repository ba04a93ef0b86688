/* The keys of a namespace and what is in them, at one moment.
 *
 * The server shows no snapshot of many keys.  Everything is read twice: when both times are
 * the same, that is what was there between them.  Of the first time only a hash is kept. */
#include <stdlib.h>

#include "store/drivers/valkey/shapes.h"

#define SCAN_COUNT "1000"
#define BATCH ((size_t)64)      /* keys in one round trip */
#define CHUNK_BATCH ((size_t)4) /* up to a mebibyte each */
#define PAGE_MEMBERS 1000       /* of one index */
#define PAGE_ENTRIES 250        /* of one stream */
#define TRIES 8

/* --- keys --- */

/* The beginning as a pattern: glob characters stand for themselves. */
static bool make_pattern(struct bytes beginning, struct buf *out)
{
    for (size_t i = 0; i < beginning.len; i++) {
        if (beginning.ptr[i] && strchr("*?[]\\^", beginning.ptr[i]))
            buf_append_char(out, '\\');
        buf_append_char(out, (char)beginning.ptr[i]);
    }
    buf_append_char(out, '*');
    return !out->failed;
}

static belay_rc scan_page(struct vk_store *s, struct bytes ns, struct bytes pattern,
                          struct buf *cursor, struct belay_arena *a,
                          struct vk_reply *reply, struct belay_error *err)
{
    enum vk_reached reached;
    struct vk_request r;

    vk_request_init(&r, a);
    vk_command(&r, 6, "SCAN");
    vk_arg(&r, buf_view(cursor));
    vk_arg_str(&r, "MATCH");
    vk_arg(&r, pattern);
    vk_arg_str(&r, "COUNT");
    vk_arg_str(&r, SCAN_COUNT);
    belay_rc rc = vk_call(s, ns, &r, VK_AGAIN, reply, &reached, err);
    if (rc)
        return rc;
    if (reply->kind == VK_ERROR)
        return vk_reply_error(reply, "looking for keys", err);
    if (reply->kind != VK_ARRAY || reply->n != 2 || reply->sub[1].kind != VK_ARRAY)
        return err_reason(err, BELAY_CORRUPT, "answer", "valkey: an unexpected answer");
    buf_reset(cursor);
    buf_append(cursor, reply->sub[0].b);
    return cursor->failed ? err_no_memory(err, "a walk") : BELAY_OK;
}

belay_rc vk_each_key(struct vk_store *s, struct bytes ns, struct bytes beginning,
                     vk_key_visit *visit, void *arg, bool *all, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf pattern = { .ptr = NULL };
    CLEANUP(buf_release) struct buf cursor = { .ptr = NULL };
    struct vk_reply reply;
    bool stop = false;

    *all = false;
    buf_append_char(&cursor, '0');
    if (!make_pattern(beginning, &pattern) || cursor.failed)
        return err_no_memory(err, "a walk");
    while (!*all && !stop) {
        arena_reset(&arena);
        belay_rc rc =
            scan_page(s, ns, buf_view(&pattern), &cursor, &arena, &reply, err);
        if (rc == BELAY_OK)
            rc = visit(arg, &reply.sub[1], &stop, err);
        if (rc)
            return rc;
        *all = bytes_eq(buf_view(&cursor), bytes_str("0"));
    }
    return BELAY_OK;
}

struct listing {
    struct vk_store *s;
    struct bytes base;
    struct vk_cells *cells;
    size_t size;
};

/* Room for one more; false: no memory. */
static bool grow(struct listing *l)
{
    struct vk_cells *c = l->cells;

    if (c->n < l->size)
        return true;
    size_t size = l->size > 0 ? l->size * 2 : 256;
    struct vk_cell *cell = arena_alloc(&c->arena, size * sizeof(*cell));
    if (!cell)
        return false;
    if (c->n > 0)
        memcpy(cell, c->cell, c->n * sizeof(*cell));
    c->cell = cell;
    l->size = size;
    return true;
}

static bool is_shown(const struct vk_place *p)
{
    switch (p->shape) {
    case VK_ROW:
        return p->ref.type != NULL;
    case VK_INDEX:
    case VK_LOG:
    case VK_FEED:
    case VK_CHUNK:
        return true;
    case VK_HELD:
    case VK_FEEDS:
    case VK_TRIMMED:
    case VK_FOREIGN:
        break;
    }
    return false;
}

static belay_rc list_keys(void *arg, const struct vk_reply *keys, bool *stop,
                          struct belay_error *err)
{
    struct listing *l = arg;
    struct belay_arena *a = &l->cells->arena;

    (void)stop;
    for (size_t i = 0; i < keys->n; i++) {
        struct vk_cell cell = { .hash = 0 };
        if (!grow(l) || !arena_copy(a, keys->sub[i].b, &cell.key))
            return err_no_memory(err, "a walk");
        belay_rc rc = vk_place(l->s, l->base, cell.key, a, &cell.place, err);
        if (rc)
            return rc;
        if (is_shown(&cell.place))
            l->cells->cell[l->cells->n++] = cell;
    }
    return BELAY_OK;
}

static int rank_of_shape(enum vk_shape shape)
{
    const char order[] = { VK_ROW, VK_INDEX, VK_LOG, VK_FEED, VK_CHUNK };
    const char *at = memchr(order, (int)shape, sizeof(order));

    return (int)(at - order);
}

static int by_place(const void *a, const void *b)
{
    const struct vk_place *x = &((const struct vk_cell *)a)->place;
    const struct vk_place *y = &((const struct vk_cell *)b)->place;

    if (x->shape != y->shape)
        return rank_of_shape(x->shape) - rank_of_shape(y->shape);
    if (x->shape == VK_ROW) {
        int names = strcmp(x->ref.type->name, y->ref.type->name);
        return names ? names : bytes_cmp(x->ref.enc, y->ref.enc);
    }
    int names = bytes_cmp(x->name, y->name);
    if (names)
        return names;
    return x->index < y->index ? -1 : x->index > y->index;
}

static belay_rc list(struct vk_store *s, struct bytes ns, struct vk_cells *out,
                     struct belay_error *err)
{
    struct listing l = { .s = s, .cells = out };
    struct vk_layout keys;
    size_t n = 0;
    bool all;

    vk_layout_init(&keys, s, ns, &out->arena);
    l.base = keys.base;
    struct bytes beginning = vk_key_beside(&keys, ":");
    if (keys.no_memory)
        return err_no_memory(err, "a walk");
    belay_rc rc = vk_each_key(s, ns, beginning, list_keys, &l, &all, err);
    if (rc || out->n == 0)
        return rc;
    qsort(out->cell, out->n, sizeof(*out->cell), by_place);
    for (size_t i = 1; i < out->n; i++) { /* the same key may have come twice */
        if (!bytes_eq(out->cell[i].key, out->cell[n].key))
            out->cell[++n] = out->cell[i];
    }
    out->n = n + 1;
    return BELAY_OK;
}

/* --- what is in them --- */

static void ask_stream(struct vk_request *r, const struct vk_cell *c)
{
    struct vk_args id = { .arena = r->arena };

    vk_add_id(&id, c->at_major, c->at_minor);
    vk_command(r, 6, "XRANGE");
    vk_arg(r, c->key);
    vk_arg_behind(r, "(", &id);
    vk_arg_str(r, "+");
    vk_arg_str(r, "COUNT");
    vk_arg_i64(r, PAGE_ENTRIES);
}

static void ask_cell(struct vk_request *r, const struct vk_cell *c)
{
    enum vk_shape shape = c->place.shape;

    if (shape == VK_LOG || shape == VK_FEED) {
        ask_stream(r, c);
    } else if (shape == VK_INDEX) {
        vk_command(r, 5, "ZRANGE");
        vk_arg(r, c->key);
        vk_arg_i64(r, (int64_t)c->at_major);
        vk_arg_i64(r, (int64_t)c->at_major + PAGE_MEMBERS - 1);
        vk_arg_str(r, "WITHSCORES");
    } else {
        vk_command(r, 2, shape == VK_ROW ? "HGETALL" : "GET");
        vk_arg(r, c->key);
    }
}

static uint64_t hash_reply(uint64_t hash, const struct vk_reply *r)
{
    hash = (hash ^ ((uint64_t)r->kind + r->n * 16)) * UINT64_C(0x9fb21c651e98df25);
    hash = (hash ^ key_hash(r->b)) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)r->i;
    for (size_t i = 0; i < r->n; i++)
        hash = hash_reply(hash, &r->sub[i]);
    return hash ^ (hash >> 29);
}

/* Where the next page begins, or that there is none. */
static belay_rc step(struct vk_cell *c, const struct vk_reply *r,
                     struct belay_error *err)
{
    struct bytes data;

    c->done = true;
    if (c->place.shape == VK_INDEX) {
        c->done = r->n < (size_t)PAGE_MEMBERS * 2;
        c->at_major += PAGE_MEMBERS;
    }
    if (c->place.shape != VK_LOG && c->place.shape != VK_FEED)
        return BELAY_OK;
    c->done = r->n < PAGE_ENTRIES;
    return c->done
               ? BELAY_OK
               : vk_entry(&r->sub[r->n - 1], &c->at_major, &c->at_minor, &data, err);
}

static belay_rc take_cell(struct vk_cell *c, const struct vk_reply *r,
                          struct belay_arena *keep, struct belay_error *err)
{
    if (r->kind == VK_ERROR)
        return vk_reply_error(r, "walk", err);
    bool some = r->kind == VK_STRING || r->n > 0;
    if (some)
        c->hash = hash_reply(c->hash, r) | 1; /* 0: there was nothing */
    if (some && keep) {
        struct vk_page *page = arena_zalloc(keep, 1, sizeof(*page));
        if (!page)
            return err_no_memory(err, "a walk");
        page->reply = *r;
        if (!c->end)
            c->end = &c->pages;
        *c->end = page;
        c->end = &page->next;
    }
    return step(c, r, err);
}

/* One round trip: the next pages of a few cells from `first` on that are not done. */
static belay_rc read_batch(struct vk_store *s, struct bytes ns, struct vk_cells *cells,
                           size_t first, struct belay_arena *a, bool keep,
                           struct belay_error *err)
{
    size_t most = cells->cell[first].place.shape == VK_CHUNK ? CHUNK_BATCH : BATCH;
    struct vk_reply replies[BATCH];
    size_t asked[BATCH], n = 0;
    enum vk_reached reached;
    struct vk_request r;

    vk_request_init(&r, a);
    for (size_t i = first; i < cells->n && i < first + most; i++) {
        if (cells->cell[i].done)
            continue;
        asked[n++] = i;
        ask_cell(&r, &cells->cell[i]);
    }
    if (r.no_memory)
        return err_no_memory(err, "a walk");
    belay_rc rc = vk_call(s, ns, &r, VK_AGAIN, replies, &reached, err);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = take_cell(&cells->cell[asked[i]], &replies[i], keep ? a : NULL, err);
    return rc;
}

static belay_rc read_all(struct vk_store *s, struct bytes ns, struct vk_cells *cells,
                         bool keep, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    size_t first = 0, n = 0;

    while (first < cells->n) {
        if (cells->cell[first].done) {
            first++;
            continue;
        }
        arena_reset(&arena);
        belay_rc rc =
            read_batch(s, ns, cells, first, keep ? &cells->arena : &arena, keep, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < cells->n; i++) { /* gone since it was listed */
        if (cells->cell[i].hash != 0)
            cells->cell[n++] = cells->cell[i];
    }
    cells->n = n;
    return BELAY_OK;
}

static bool is_same(const struct vk_cells *a, const struct vk_cells *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (a->cell[i].hash != b->cell[i].hash ||
            !bytes_eq(a->cell[i].key, b->cell[i].key))
            return false;
    }
    return true;
}

void vk_cells_release(struct vk_cells *c)
{
    arena_release(&c->arena);
    *c = (struct vk_cells){ .n = 0 };
}

belay_rc vk_collect(struct vk_store *s, struct bytes ns, struct vk_cells *out,
                    struct belay_error *err)
{
    CLEANUP(vk_cells_release) struct vk_cells before = { .n = 0 };
    belay_rc rc = list(s, ns, &before, err);

    if (rc == BELAY_OK)
        rc = read_all(s, ns, &before, false, err);
    for (int i = 0; i < TRIES && rc == BELAY_OK; i++) {
        *out = (struct vk_cells){ .n = 0 };
        rc = list(s, ns, out, err);
        if (rc == BELAY_OK)
            rc = read_all(s, ns, out, true, err);
        if (rc == BELAY_OK && is_same(&before, out))
            return BELAY_OK;
        vk_cells_release(&before);
        before = *out; /* what has changed is what the next time is compared with */
        *out = (struct vk_cells){ .n = 0 };
    }
    return rc ? rc
              : err_set(err, BELAY_CONTENTION,
                        "valkey: the namespace changed whenever it was looked at");
}
