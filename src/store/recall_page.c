/* Parts of rank indexes that are kept with a row (recall.h, R4). */
#include "store/recall_page.h"

#include <stdlib.h>
#include <string.h>

struct kept_hit {
    int64_t rank;
    struct bytes member; /* behind the page */
    struct recalled *row;
};

/* All members from rank `from` to rank `to`: hit[0] to hit[n - 1]. */
struct kept_page {
    struct kept_page *next;
    struct bytes index; /* behind the page */
    const struct row_type *type;
    int64_t from, to;
    size_t size; /* of all its memory */
    size_t n;
    struct kept_hit hit[];
};

void pages_free(struct kept_page *pages)
{
    while (pages) {
        struct kept_page *p = pages;
        pages = p->next;
        for (size_t i = 0; i < p->n; i++)
            free(p->hit[i].row);
        free(p);
    }
}

size_t pages_size(const struct kept_page *pages)
{
    size_t size = 0;

    for (; pages; pages = pages->next)
        size += pages->size;
    return size;
}

/* What stands at a rank is not known well enough: the page ends before it. */
static void end_before(struct kept_page *k, int64_t rank)
{
    if (rank < k->from || rank > k->to)
        return;
    k->to = rank - 1;
    while (k->n > 0 && k->hit[k->n - 1].rank > k->to)
        free(k->hit[--k->n].row);
}

/* --- making them --- */

static size_t members_size(const struct recall_page *p)
{
    size_t size = p->index.len;

    for (size_t i = 0; i < p->n; i++)
        size += p->hit[i].member.len;
    return size;
}

static struct bytes put_bytes(uint8_t **at, struct bytes b)
{
    struct bytes own = bytes_of(*at, b.len);

    if (b.len > 0)
        memcpy(*at, b.ptr, b.len);
    *at += b.len;
    return own;
}

static struct recalled *keep_row(const struct recalled_hit *hit)
{
    struct recalled *row = hit->row ? recalled_make(&hit->ref, hit->row->v) : NULL;

    if (row)
        row->ver = hit->row->ver;
    return row;
}

/* The page ends before the first row that is not there or cannot be kept. */
static void keep_hits(struct kept_page *k, const struct recall_page *p, uint8_t *at)
{
    for (size_t i = 0; i < p->n && p->hit[i].rank <= k->to; i++) {
        struct recalled *row = keep_row(&p->hit[i]);
        if (!row) {
            end_before(k, p->hit[i].rank);
            break;
        }
        k->type = p->hit[i].ref.type;
        k->size += sizeof(*row) + row->len + row->key.len +
                   k->type->n_columns * sizeof(struct value);
        k->hit[k->n++] = (struct kept_hit){ .rank = p->hit[i].rank,
                                            .member = put_bytes(&at, p->hit[i].member),
                                            .row = row };
    }
}

static struct kept_page *keep_page(const struct recall_page *p)
{
    size_t size = sizeof(struct kept_page) + p->n * sizeof(struct kept_hit);
    struct kept_page *k = malloc(size + members_size(p));

    if (!k)
        return NULL;
    uint8_t *at = (uint8_t *)k + size;
    *k = (struct kept_page){ .from = p->from,
                             .to = p->to,
                             .size = size + members_size(p) };
    k->index = put_bytes(&at, p->index);
    keep_hits(k, p, at);
    return k;
}

struct kept_page *pages_make(const struct recall_page *pages,
                             const struct row_ref *cover)
{
    struct kept_page *all = NULL;

    for (; pages; pages = pages->next) {
        struct kept_page *k =
            row_ref_eq(&pages->cover, cover) ? keep_page(pages) : NULL;
        if (!k)
            continue;
        k->next = all;
        all = k;
    }
    return all;
}

/* --- what a plan does to them --- */

static void remove_member(struct kept_page *k, struct bytes member)
{
    for (size_t i = 0; i < k->n; i++) {
        if (!bytes_eq(k->hit[i].member, member))
            continue;
        free(k->hit[i].row);
        memmove(&k->hit[i], &k->hit[i + 1], (k->n - i - 1) * sizeof(k->hit[0]));
        k->n--;
        return;
    }
}

static void apply(struct kept_page *k, const struct effect *e)
{
    bool leaves = e->kind == EFFECT_RANK_REMOVE || e->kind == EFFECT_RANK_MOVE;
    bool enters = e->kind == EFFECT_RANK_ADD || e->kind == EFFECT_RANK_MOVE;

    if ((!leaves && !enters) || !bytes_eq(e->rank.index, k->index))
        return;
    if (leaves)
        remove_member(k, e->rank.member);
    if (enters)
        end_before(k, e->rank.rank);
}

static bool has_index(const struct kept_page *pages, struct bytes index)
{
    for (; pages; pages = pages->next) {
        if (bytes_eq(pages->index, index))
            return true;
    }
    return false;
}

struct kept_page *pages_carry(struct kept_page *pages, struct kept_page *old,
                              const struct plan *plan)
{
    while (old) {
        struct kept_page *k = old;
        old = k->next;
        k->next = NULL;
        if (has_index(pages, k->index)) {
            pages_free(k);
        } else {
            k->next = pages;
            pages = k;
        }
    }
    for (struct kept_page *k = pages; k && plan; k = k->next) {
        for (size_t i = 0; i < plan->n_effects; i++)
            apply(k, &plan->effects[i]);
    }
    return pages;
}

/* --- what they answer --- */

static bool is_about(const struct kept_page *k, const struct scan *s)
{
    return bytes_eq(k->index, s->indexes[0]) && s->min_rank >= k->from &&
           s->min_rank <= k->to &&
           (k->n == 0 || (s->n_fetch == 1 && s->fetch[0].type == k->type));
}

static bool take_hit(const struct kept_page *k, const struct kept_hit *from,
                     const struct scan *s, struct belay_arena *a, struct hit *out)
{
    const struct row **rows = arena_alloc(a, sizeof(const struct row *));
    struct bytes member;

    if (!rows || !arena_copy(a, from->member, &member))
        return false;
    rows[0] = recalled_copy(from->row, k->type, a);
    *out = (struct hit){
        .index = s->indexes[0], .member = member, .rank = from->rank, .rows = rows
    };
    return rows[0] != NULL;
}

bool pages_answer(const struct kept_page *pages, const struct scan *scan,
                  struct belay_arena *a, struct hits *out)
{
    size_t n = 0, first = 0;

    while (pages && !is_about(pages, scan))
        pages = pages->next;
    if (!pages)
        return false;
    while (first < pages->n && pages->hit[first].rank < scan->min_rank)
        first++;
    while (n < scan->limit && first + n < pages->n &&
           pages->hit[first + n].rank <= scan->max_rank)
        n++;
    /* Whoever reads ahead expects something. */
    if ((n < scan->limit && scan->max_rank > pages->to) || (n == 0 && scan->ahead > 0))
        return false;
    struct hit *hit = arena_zalloc(a, n, sizeof(*hit));
    for (size_t i = 0; i < n && hit; i++) {
        if (!take_hit(pages, &pages->hit[first + i], scan, a, &hit[i]))
            return false;
    }
    *out = (struct hits){ .hit = hit, .n = n };
    return hit != NULL;
}
