/* What a plan has beside rows and ranks, as arguments of belay6_commit.  One entry of a log:
 *
 *   entry     key, number of the entry that must be the last, id, data
 *
 * One item of a feed: what `feeds` has of it.  Anything else:
 *
 *   head      u32 streams, u8 a log is wrong within the plan, u32 entries, u32 counters,
 *             u32 feed effects, u32 chunks
 *   streams   each: key, id of the entry that must be the last (empty: any)
 *   entries   each: key, id, "", data; or, to trim: key, "", id of the first to stay, ""
 *   counters  each: key, field, u32 number of the first effect on it u8 adds, value of a
 *             row that the plan inserts or "", amount, min, max
 *   feeds     key of the row with the epoch or ""; each: "a", feed, data, ""; or "t", feed,
 *             id of the last to go, id behind it
 *   chunks    each: "p", key, data; or "d", key, ""
 */
#include "store/drivers/valkey/shapes.h"

#define HEAD_LEN 21
#define NO_TAIL (-1)

/* --- logs --- */

static struct vk_tail *tail_of(struct vk_plan *p, const struct effect *e)
{
    struct bytes key = vk_key(&p->keys, VK_LOG, e->log.stream);
    struct vk_name *name = vk_names_at(&p->names, key, key_hash(key));

    if (p->keys.no_memory)
        return NULL;
    if (name->what)
        return name->what;
    struct vk_tail *t = arena_zalloc(p->arena, 1, sizeof(*t));
    if (!t)
        return NULL;
    *t = (struct vk_tail){ .key = key, .before = NO_TAIL, .last = NO_TAIL };
    *p->tails_end = t;
    p->tails_end = &t->next;
    p->n_tails++;
    name->what = t;
    return t;
}

static void add_log(struct vk_plan *p, const struct effect *e)
{
    bool trims = e->kind == EFFECT_LOG_TRIM;

    if (trims && e->log.seq < 1)
        return;
    struct vk_tail *t = tail_of(p, e);
    if (!t) {
        p->no_memory = true;
        return;
    }
    p->n_entries++;
    vk_add(&p->entries, t->key);
    if (trims) {
        vk_add_str(&p->entries, "");
        vk_add_id(&p->entries, (uint64_t)e->log.seq + 1, 0);
        vk_add_str(&p->entries, "");
        return;
    }
    if (t->last == NO_TAIL)
        t->before = e->log.seq - 1;
    else if (t->last + 1 != e->log.seq)
        p->gap = true;
    t->last = e->log.seq;
    vk_add_id(&p->entries, (uint64_t)e->log.seq, 1);
    vk_add_str(&p->entries, "");
    vk_add(&p->entries, e->log.data);
}

static void add_tails(struct vk_plan *p)
{
    for (const struct vk_tail *t = p->tails; t; t = t->next) {
        vk_add(&p->streams, t->key);
        if (t->before == NO_TAIL)
            vk_add_str(&p->streams, "");
        else
            vk_add_id(&p->streams, (uint64_t)t->before, 1);
    }
}

/* The one entry that a plan has beside rows and ranks: what `entries` says of it, with the
 * number of the one before instead of what trims have there. */
static void make_single_entry(struct vk_plan *p)
{
    struct bytes id = p->entries.v[1], data = p->entries.v[3];

    p->entries.n = 1;
    vk_add_i64(&p->entries, p->tails->before);
    vk_add(&p->entries, id);
    vk_add(&p->entries, data);
}

/* --- counters --- */

/* The value that a counter has in a row that the plan inserts before effect i; NULL: the
 * plan does not. */
static const struct value *inserted(struct vk_plan *p, size_t i)
{
    const struct effect *e = &p->plan->effects[i];
    const struct row_ref *ref = &e->counter.ref;
    size_t guard = vk_plan_guard(p, ref);

    if (guard == SIZE_MAX || p->effect_of[guard] >= i)
        return NULL;
    const struct effect *row = &p->plan->effects[p->effect_of[guard]];
    return row->kind == EFFECT_INSERT ? &row->row.v[e->counter.column] : NULL;
}

static void add_counter(struct vk_plan *p, size_t i)
{
    const struct effect *e = &p->plan->effects[i];
    const char *column = e->counter.ref.type->columns[e->counter.column].name;
    const struct value *initial = inserted(p, i);
    struct bytes key = vk_key_of_row(&p->keys, &e->counter.ref), whole;
    uint8_t *packed = arena_alloc(p->arena, 5 + key.len + strlen(column) + 1);

    if (!packed || p->keys.no_memory) {
        p->no_memory = true;
        return;
    }
    /* Row and column together are a name that nothing else has. */
    memcpy(packed + 5, key.ptr, key.len);
    memcpy(packed + 5 + key.len, column, strlen(column) + 1);
    whole = bytes_of(packed + 5, key.len + strlen(column) + 1);
    struct vk_name *name = vk_names_at(&p->names, whole, key_hash(whole));
    if (name->value == SIZE_MAX)
        name->value = p->n_counters + 1;
    *vk_put_u32(packed, name->value) = e->kind == EFFECT_ADD;
    p->n_counters++;
    vk_add(&p->counters, key);
    vk_add_str(&p->counters, column);
    vk_add(&p->counters, bytes_of(packed, 5));
    if (!initial)
        vk_add_str(&p->counters, "");
    else
        vk_add_i64(&p->counters, initial->kind == VALUE_I64 ? initial->i : 0);
    vk_add_i64(&p->counters, e->counter.amount);
    vk_add_i64(&p->counters, e->counter.min);
    vk_add_i64(&p->counters, e->counter.max);
}

/* --- feeds, chunks --- */

/* In a feed's effects the first argument is where the epoch is. */
static void add_epoch(struct vk_plan *p)
{
    struct row_ref ref = { .type = p->s->epoch };

    vk_add(&p->feeds, ref.type ? vk_key_of_row(&p->keys, &ref) : bytes_of("", 0));
}

static void add_feed(struct vk_plan *p, const struct effect *e)
{
    struct feed_pos upto = e->feed.upto;
    bool trims = e->kind == EFFECT_FEED_TRIM;

    if (trims && upto.minor < 0)
        upto.major--;
    if (trims && upto.major < 0 && upto.epoch > 0) {
        upto.epoch--;
        upto.major = INT64_MAX;
    }
    if (trims && (upto.epoch < 0 || upto.major < 0))
        return;
    if (p->n_feeds++ == 0)
        add_epoch(p);
    vk_add_str(&p->feeds, trims ? "t" : "a");
    vk_add(&p->feeds, e->feed.feed);
    if (trims) {
        vk_add_id(&p->feeds, (uint64_t)upto.epoch, (uint64_t)upto.major);
        vk_add_id(&p->feeds, (uint64_t)upto.epoch, (uint64_t)upto.major + 1);
    } else {
        vk_add(&p->feeds, e->feed.data);
        vk_add_str(&p->feeds, "");
    }
}

static void add_chunk(struct vk_plan *p, const struct effect *e)
{
    bool puts = e->kind == EFFECT_CHUNK_PUT;

    p->n_chunks++;
    vk_add_str(&p->chunks, puts ? "p" : "d");
    vk_add(&p->chunks, vk_key_of_chunk(&p->keys, e->chunk.upload, e->chunk.index));
    vk_add(&p->chunks, puts ? e->chunk.data : bytes_of("", 0));
}

/* --- all of it --- */

static void add_effect(struct vk_plan *p, size_t i)
{
    const struct effect *e = &p->plan->effects[i];

    switch (e->kind) {
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE:
        vk_plan_add_rank(p, i);
        break;
    case EFFECT_LOG_APPEND:
    case EFFECT_LOG_TRIM:
        add_log(p, e);
        break;
    case EFFECT_ADD:
    case EFFECT_RAISE:
        add_counter(p, i);
        break;
    case EFFECT_FEED_APPEND:
    case EFFECT_FEED_TRIM:
        add_feed(p, e);
        break;
    case EFFECT_CHUNK_PUT:
    case EFFECT_CHUNK_DROP:
        add_chunk(p, e);
        break;
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
        break;
    }
}

static void add_head(struct vk_plan *p)
{
    uint8_t *head = arena_alloc(p->arena, HEAD_LEN);

    if (!head) {
        p->no_memory = true;
        return;
    }
    uint8_t *at = vk_put_u32(head, p->n_tails);
    *at++ = p->gap;
    at = vk_put_u32(at, p->n_entries);
    at = vk_put_u32(at, p->n_counters);
    at = vk_put_u32(at, p->n_feeds);
    (void)vk_put_u32(at, p->n_chunks);
    vk_add(&p->rest_head, bytes_of(head, HEAD_LEN));
}

static bool is_single_entry(const struct vk_plan *p)
{
    return p->n_entries == 1 && p->tails->before != NO_TAIL && !p->entries.no_memory &&
           p->n_counters + p->n_feeds + p->n_chunks == 0;
}

static bool is_single_item(const struct vk_plan *p)
{
    return p->n_feeds == 1 && !p->feeds.no_memory &&
           bytes_eq(p->feeds.v[1], bytes_str("a")) &&
           p->n_tails + p->n_counters + p->n_chunks == 0;
}

static bool is_of_rows(const struct effect *e)
{
    return e->kind == EFFECT_INSERT || e->kind == EFFECT_PUT ||
           e->kind == EFFECT_DELETE;
}

void vk_plan_rest(struct vk_plan *p)
{
    size_t n = 0;

    p->groups_end = &p->groups;
    p->tails_end = &p->tails;
    for (size_t i = 0; i < p->plan->n_effects; i++)
        n += !is_of_rows(&p->plan->effects[i]);
    if (n > 0 && !vk_names_init(&p->names, n, p->arena))
        p->no_memory = true;
    for (size_t i = 0; i < p->plan->n_effects && n > 0 && !p->no_memory; i++)
        add_effect(p, i);
    vk_plan_add_groups(p);
    if (is_single_entry(p)) {
        p->rest = VK_REST_ENTRY;
        make_single_entry(p);
    } else if (is_single_item(p)) {
        p->rest = VK_REST_ITEM;
    } else if (p->n_tails + p->n_counters + p->n_feeds + p->n_chunks > 0) {
        p->rest = VK_REST_ALL;
        add_tails(p);
        add_head(p);
    }
}
