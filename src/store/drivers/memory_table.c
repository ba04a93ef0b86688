#include <stdlib.h>
#include <string.h>

#include "store/drivers/memory_impl.h"

#define FIRST_BUCKETS 64

static void table_grow(struct mem_table *t)
{
    size_t n_buckets = t->n_buckets ? t->n_buckets * 2 : FIRST_BUCKETS;
    struct mem_link **buckets = calloc(n_buckets, sizeof(*buckets));

    if (!buckets)
        return;
    for (size_t i = 0; i < t->n_buckets; i++) {
        struct mem_link *next;
        for (struct mem_link *l = t->buckets[i]; l; l = next) {
            next = l->next;
            struct mem_link **head = &buckets[l->hash & (n_buckets - 1)];
            l->next = *head;
            *head = l;
        }
    }
    free(t->buckets);
    t->buckets = buckets;
    t->n_buckets = n_buckets;
}

/* Room for one more; false only when there is no table at all and no memory for one. */
static bool table_ready(struct mem_table *t)
{
    if (t->n >= t->n_buckets)
        table_grow(t);
    return t->n_buckets > 0;
}

static void table_link(struct mem_table *t, struct mem_link *l)
{
    struct mem_link **head = &t->buckets[l->hash & (t->n_buckets - 1)];

    l->next = *head;
    *head = l;
    t->n++;
    if (t->n > t->n_buckets)
        table_grow(t);
}

static void table_unlink(struct mem_table *t, struct mem_link *l)
{
    struct mem_link **at = &t->buckets[l->hash & (t->n_buckets - 1)];

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    t->n--;
}

static struct mem_link *table_chain(const struct mem_table *t, uint64_t hash)
{
    return t->n_buckets ? t->buckets[hash & (t->n_buckets - 1)] : NULL;
}

const struct mem_space *mem_space(struct memory *m, struct mem_attempt *a, bool create)
{
    if (a->space)
        return a->space;
    for (struct mem_space *s = m->spaces; s && !a->space; s = s->next) {
        if (bytes_eq(s->name, a->ns))
            a->space = s;
    }
    if (a->space || !create)
        return a->space;

    struct mem_space *s = malloc(sizeof(*s) + a->ns.len);
    if (!s)
        return NULL;
    memcpy(s + 1, a->ns.ptr, a->ns.len);
    *s = (struct mem_space){ .next = m->spaces, .name = bytes_of(s + 1, a->ns.len) };
    m->spaces = s;
    a->space = s;
    return s;
}

/* Rows of several namespaces share chains, so the namespace is part of the place. */
static uint64_t place(const struct mem_space *space, uint64_t hash)
{
    return hash ^ ((uint64_t)(uintptr_t)space >> 4);
}

struct mem_row *mem_find_row(const struct memory *m, const struct mem_space *space,
                             const struct row_ref *ref)
{
    if (!space)
        return NULL;
    uint64_t hash = place(space, ref->hash);
    for (struct mem_link *l = table_chain(&m->rows, hash); l; l = l->next) {
        struct mem_row *r = (struct mem_row *)l;
        if (l->hash == hash && r->space == space && bytes_eq(r->enc, ref->enc))
            return r;
    }
    return NULL;
}

static uint64_t set_place(const struct mem_space *space, enum mem_set_kind kind,
                          struct bytes name)
{
    return place(space, key_hash(name)) * 4 + (uint64_t)kind;
}

struct mem_set *mem_find_set(const struct memory *m, const struct mem_space *space,
                             enum mem_set_kind kind, struct bytes name)
{
    if (!space)
        return NULL;
    uint64_t hash = set_place(space, kind, name);
    for (struct mem_link *l = table_chain(&m->sets, hash); l; l = l->next) {
        struct mem_set *s = (struct mem_set *)l;
        if (l->hash == hash && s->space == space && s->kind == kind &&
            bytes_eq(s->name, name))
            return s;
    }
    return NULL;
}

static uint64_t member_place(const struct mem_set *set, struct bytes member)
{
    return key_hash(member) ^ set->link.hash;
}

struct mem_node *mem_find_member(const struct memory *m, const struct mem_set *set,
                                 struct bytes member)
{
    if (!set)
        return NULL;
    uint64_t hash = member_place(set, member);
    for (struct mem_link *l = table_chain(&m->members, hash); l; l = l->next) {
        struct mem_node *n = (struct mem_node *)l;
        if (l->hash == hash && n->set == set && bytes_eq(n->member, member))
            return n;
    }
    return NULL;
}

struct mem_set *mem_need_set(struct memory *m, const struct mem_space *space,
                             enum mem_set_kind kind, struct bytes name)
{
    struct mem_set *s = mem_find_set(m, space, kind, name);

    if (s)
        return s;
    if (!table_ready(&m->sets))
        return NULL;
    s = malloc(sizeof(*s) + name.len);
    if (!s)
        return NULL;
    memcpy(s + 1, name.ptr, name.len);
    *s = (struct mem_set){ .link.hash = set_place(space, kind, name),
                           .space = space,
                           .kind = kind,
                           .name = bytes_of(s + 1, name.len) };
    table_link(&m->sets, &s->link);
    return s;
}

void mem_drop_set_if_empty(struct memory *m, struct mem_set *set)
{
    if (!set || set->tree.n > 0 || set->last_pos > 0)
        return;
    table_unlink(&m->sets, &set->link);
    free(set);
}

struct mem_row *mem_make_row(const struct mem_space *space, const struct row_ref *ref,
                             int64_t ver, const struct value *v)
{
    size_t n = ref->type->n_columns;
    size_t body_len = n * sizeof(struct value) + ref->enc.len;

    for (size_t i = 0; i < n; i++)
        body_len += v[i].b.len;
    struct mem_row *r = malloc(sizeof(*r) + body_len);
    if (!r)
        return NULL;
    uint8_t *at = (uint8_t *)(r->v + n);
    *r = (struct mem_row){
        .link.hash = place(space, ref->hash),
        .space = space,
        .row = { .type = ref->type, .ver = ver, .v = r->v },
        .enc = bytes_of(at, ref->enc.len),
        .body_len = body_len,
    };
    memcpy(at, ref->enc.ptr, ref->enc.len);
    at += ref->enc.len;
    for (size_t i = 0; i < n; i++) {
        r->v[i] = v[i];
        if (v[i].b.len > 0)
            memcpy(at, v[i].b.ptr, v[i].b.len);
        r->v[i].b.ptr = at;
        at += v[i].b.len;
    }
    return r;
}

void mem_link_row(struct memory *m, struct mem_row *r)
{
    table_link(&m->rows, &r->link);
}

void mem_unlink_row(struct memory *m, struct mem_row *r)
{
    table_unlink(&m->rows, &r->link);
}

bool mem_tables_ready(struct memory *m)
{
    return table_ready(&m->rows) && table_ready(&m->members);
}

struct mem_node *mem_make_node(struct memory *m, int64_t number, struct bytes member,
                               struct bytes data)
{
    struct mem_node *n = calloc(1, sizeof(*n) + member.len + data.len);

    if (!n)
        return NULL;
    uint8_t *at = (uint8_t *)(n + 1);
    if (member.len > 0)
        memcpy(at, member.ptr, member.len);
    if (data.len > 0)
        memcpy(at + member.len, data.ptr, data.len);
    n->number = number;
    n->member = bytes_of(at, member.len);
    n->data = bytes_of(at + member.len, data.len);
    n->priority = rng_next(&m->rng);
    return n;
}

void mem_link_node(struct memory *m, struct mem_set *set, struct mem_node *n)
{
    n->set = set;
    mem_tree_insert(&set->tree, n);
    if (set->kind != MEM_RANK)
        return;
    n->link.hash = member_place(set, n->member);
    table_link(&m->members, &n->link);
}

void mem_unlink_node(struct memory *m, struct mem_node *n)
{
    mem_release_hold(n);
    mem_tree_remove(&n->set->tree, n);
    if (n->set->kind == MEM_RANK)
        table_unlink(&m->members, &n->link);
}

void mem_release_hold(struct mem_node *n)
{
    if (!n->group)
        return;
    *n->group_at = n->group_next;
    if (n->group_next)
        n->group_next->group_at = n->group_at;
    n->group = NULL;
}

static void free_set(struct mem_set *s)
{
    while (s->tree.root) {
        struct mem_node *n = s->tree.root;
        mem_tree_remove(&s->tree, n);
        free(n);
    }
    free(s);
}

void mem_free_everything(struct memory *m)
{
    struct mem_link *next;

    for (size_t i = 0; i < m->rows.n_buckets; i++) {
        for (struct mem_link *l = m->rows.buckets[i]; l; l = next) {
            next = l->next;
            free(l);
        }
    }
    for (size_t i = 0; i < m->sets.n_buckets; i++) {
        for (struct mem_link *l = m->sets.buckets[i]; l; l = next) {
            next = l->next;
            free_set((struct mem_set *)l);
        }
    }
    for (struct mem_group *after, *g = m->groups; g; g = after) {
        after = g->next;
        free(g);
    }
    for (struct mem_space *after, *s = m->spaces; s; s = after) {
        after = s->next;
        free(s);
    }
    free(m->rows.buckets);
    free(m->sets.buckets);
    free(m->members.buckets);
}
