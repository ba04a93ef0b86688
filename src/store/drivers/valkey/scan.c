/* Questions about rank indexes, and what an attempt holds.
 *
 * One index, from one end of a range: the server's own command.  Everything else is asked
 * of a function, in one call if there are several.  Its arguments are, for each
 *
 *   head     u32 indexes, u32 limit, u8 descending, u8 cursor, u8 fetches, u32 ms to hold
 *            (0: nothing), u32 groups of own holds
 *   min, max
 *   cursor:  rank, member, key of its index
 *   fetches: what stands before the member in the row's key; "t" (text) or "i"
 *   indexes: their keys
 *   own holds: number of the index (from 1), how many, members
 *
 * and its answer is, for each, a list of hits: number of the index, member, rank, a row for
 * each fetch; all in one text (packed.c). */
#include "store/drivers/valkey/shapes.h"

#define HEAD_LEN 19

bool vk_scan_is_empty(const struct read *q)
{
    const struct scan *s = q->rank.scan;

    return s->limit == 0 || s->n_indexes == 0;
}

bool vk_scan_is_plain(const struct read *q)
{
    const struct scan *s = q->rank.scan;

    return s->n_indexes == 1 && s->n_fetch == 0 && !s->after && !q->rank.hold;
}

void vk_add_rank(struct vk_args *l, int64_t rank)
{
    if (rank <= -RANK_MAX)
        vk_add_str(l, "-inf");
    else if (rank >= RANK_MAX)
        vk_add_str(l, "+inf");
    else
        vk_add_i64(l, rank);
}

void vk_ask_plain_scan(struct vk_layout *l, struct vk_request *r, const struct read *q)
{
    const struct scan *s = q->rank.scan;

    vk_command(r, s->descending ? 10 : 9, "ZRANGE");
    vk_arg(r, vk_key(l, VK_INDEX, s->indexes[0]));
    vk_arg_i64(r, s->descending ? s->max_rank : s->min_rank);
    vk_arg_i64(r, s->descending ? s->min_rank : s->max_rank);
    vk_arg_str(r, "BYSCORE");
    if (s->descending)
        vk_arg_str(r, "REV");
    vk_arg_str(r, "LIMIT");
    vk_arg_str(r, "0");
    vk_arg_i64(r, (int64_t)s->limit);
    vk_arg_str(r, "WITHSCORES");
}

/* What the attempt holds of these indexes is not hidden from itself.  Returns how many
 * groups. */
static size_t add_own(struct vk_args *l, const struct scan *s,
                      const struct vk_attempt *at)
{
    size_t n = 0;

    if (at->holds && vk_mono_us() >= at->held_until_us)
        return 0; /* perhaps somebody else's by now */
    for (const struct vk_hold *h = at->holds; h; h = h->next) {
        for (size_t i = 0; i < s->n_indexes; i++) {
            if (!bytes_eq(h->index, s->indexes[i]))
                continue;
            vk_add_i64(l, (int64_t)i + 1);
            vk_add_i64(l, (int64_t)h->n);
            for (size_t k = 0; k < h->n; k++)
                vk_add(l, h->members[k]);
            n++;
        }
    }
    return n;
}

static void add_scan(struct vk_layout *keys, struct vk_args *l, const struct scan *s)
{
    vk_add_rank(l, s->min_rank);
    vk_add_rank(l, s->max_rank);
    if (s->after) {
        vk_add_i64(l, s->after->rank);
        vk_add(l, s->after->member);
        vk_add(l, vk_key(keys, VK_INDEX, s->after->index));
    }
    for (size_t i = 0; i < s->n_fetch; i++) {
        const struct row_type *type = s->fetch[i].type;
        vk_add(l, vk_key_before(keys, type, s->fetch[i].prefix));
        vk_add_str(l, type->columns[type->n_key - 1].type == VALUE_I64 ? "i" : "t");
    }
    for (size_t i = 0; i < s->n_indexes; i++)
        vk_add(l, vk_key(keys, VK_INDEX, s->indexes[i]));
}

/* One scan among the arguments of the function. */
static void add_all(struct vk_layout *keys, struct vk_args *l, const struct read *q,
                    const struct vk_attempt *at)
{
    const struct scan *s = q->rank.scan;
    uint8_t *packed = arena_alloc(l->arena, HEAD_LEN);

    if (!packed) {
        l->no_memory = true;
        return;
    }
    uint8_t *end = vk_put_u32(packed, s->n_indexes);
    end = vk_put_u32(end, s->limit);
    *end++ = s->descending;
    *end++ = s->after != NULL;
    *end++ = (uint8_t)s->n_fetch;
    end = vk_put_u32(end, q->rank.hold ? HOLD_MAX_US / 1000 : 0);
    vk_add(l, bytes_of(packed, HEAD_LEN));
    add_scan(keys, l, s);
    (void)vk_put_u32(end, q->rank.hold ? add_own(l, s, at) : 0);
}

void vk_ask_scans(struct vk_layout *keys, struct vk_request *r,
                  const struct read *reads, size_t n, const struct vk_attempt *at)
{
    struct vk_args args = { .arena = r->arena }, *const lists[] = { &args };
    bool holds = false;

    for (size_t i = 0; i < n; i++) {
        if (reads[i].kind != READ_RANK || vk_scan_is_empty(&reads[i]))
            continue;
        holds |= reads[i].rank.hold;
        add_all(keys, &args, &reads[i], at);
    }
    vk_fcall(r, holds ? "FCALL" : "FCALL_RO", holds ? "belay6_pick" : "belay6_scan",
             keys->base, lists, COUNT_OF(lists));
}

/* --- answers --- */

static belay_rc bad_answer(struct belay_error *err)
{
    return err_reason(err, BELAY_CORRUPT, "rank",
                      "valkey: a rank index holds something that is no rank");
}

static belay_rc take_rows(const struct scan *s, const struct vk_reply *rows,
                          struct hit *hit, struct belay_arena *a,
                          struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    hit->rows = arena_zalloc(a, s->n_fetch, sizeof(*hit->rows));
    if (!hit->rows)
        return err_no_memory(err, "a scan");
    for (size_t i = 0; i < s->n_fetch && rc == BELAY_OK; i++) {
        struct row_ref ref;
        rc = fetch_ref(&ref, &s->fetch[i], hit->member, a, err);
        if (rc == BELAY_OK)
            rc = vk_row(s->fetch[i].type, ref.key, &rows[i], a, &hit->rows[i], err);
    }
    return rc;
}

/* One hit: an index's number (not in the answer of a plain command), member, rank. */
static belay_rc take_hit(const struct scan *s, const struct vk_reply *at, bool plain,
                         struct bytes *indexes, struct hit *hit,
                         struct belay_error *err)
{
    size_t index = plain ? 1 : (size_t)at->i;

    at += plain ? 0 : 1;
    if (index < 1 || index > s->n_indexes || at[0].kind != VK_STRING ||
        !vk_rank(at[1].b, &hit->rank))
        return bad_answer(err);
    hit->index = indexes[index - 1];
    hit->member = at[0].b;
    return BELAY_OK;
}

/* The names of the indexes, in the arena of the answer; NULL: no memory. */
static struct bytes *copy_names(const struct scan *s, struct belay_arena *a)
{
    struct bytes *names = arena_zalloc(a, s->n_indexes, sizeof(*names));

    for (size_t i = 0; i < s->n_indexes && names; i++) {
        if (!arena_copy(a, s->indexes[i], &names[i]))
            return NULL;
    }
    return names;
}

/* Remembers what was picked of one index, in groups that one command can release. */
static bool remember(struct vk_attempt *at, const struct hits *hits, struct bytes index)
{
    struct vk_hold *h = NULL;

    for (size_t i = 0; i < hits->n; i++) {
        if (!bytes_eq(hits->hit[i].index, index))
            continue;
        if (!h || h->n == VK_GROUP_MAX) {
            h = arena_zalloc(&at->arena, 1, sizeof(*h));
            if (!h || !arena_copy(&at->arena, index, &h->index))
                return false;
            h->members = arena_zalloc(&at->arena,
                                      hits->n < VK_GROUP_MAX ? hits->n : VK_GROUP_MAX,
                                      sizeof(*h->members));
            if (!h->members)
                return false;
            h->next = at->holds;
            at->holds = h;
        }
        if (!arena_copy(&at->arena, hits->hit[i].member, &h->members[h->n]))
            return false;
        h->n++;
    }
    return true;
}

static belay_rc keep_holds(struct read *q, struct vk_attempt *at, int64_t asked_us,
                           struct belay_error *err)
{
    const struct scan *s = q->rank.scan;

    if (!q->rank.hold || q->rank.out.n == 0)
        return BELAY_OK;
    if (!at->holds)
        at->held_until_us = asked_us + HOLD_MAX_US;
    for (size_t i = 0; i < s->n_indexes; i++) {
        if (!remember(at, &q->rank.out, s->indexes[i]))
            return err_no_memory(err, "a pick");
    }
    return BELAY_OK;
}

belay_rc vk_take_scan(struct read *q, const struct vk_reply *reply, bool plain,
                      struct vk_attempt *at, int64_t asked_us, struct belay_arena *a,
                      struct belay_error *err)
{
    const struct scan *s = q->rank.scan;
    size_t stride = plain ? 2 : 3 + s->n_fetch;

    q->rank.out = (struct hits){ .hit = NULL };
    if (vk_scan_is_empty(q))
        return BELAY_OK;
    belay_rc rc = vk_is_array(reply, err);
    if (rc)
        return rc;
    size_t n = reply->n / stride;
    struct hit *hit = arena_zalloc(a, n, sizeof(*hit));
    struct bytes *names = copy_names(s, a);
    if (!hit || !names)
        return err_no_memory(err, "a scan");
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = take_hit(s, &reply->sub[i * stride], plain, names, &hit[i], err);
    if (rc)
        return rc;
    q->rank.out = (struct hits){ .hit = hit, .n = n };
    rc = keep_holds(q, at, asked_us, err); /* also of what is damaged */
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = take_rows(s, &reply->sub[(i + 1) * stride - s->n_fetch], &hit[i], a, err);
    return rc;
}
