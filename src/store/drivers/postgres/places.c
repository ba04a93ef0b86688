#include "store/drivers/postgres/places.h"

#include <stdlib.h>
#include <string.h>

/* Sets of a few places each, the latest first. */
#define SETS 8192
#define WAYS 4

void pg_places_init(struct pg_places *p)
{
    *p = (struct pg_places){ .sets = NULL };
    (void)pthread_mutex_init(&p->mutex, NULL);
}

void pg_places_release(struct pg_places *p)
{
    free(p->sets);
    (void)pthread_mutex_destroy(&p->mutex);
}

struct pg_place pg_place_of_row(struct bytes ns, const struct row_ref *ref, int64_t ver)
{
    return (struct pg_place){ .hash = ref->hash ^ (key_hash(ns) << 1), .ver = ver };
}

struct pg_place pg_place_of_member(struct bytes ns, struct bytes index,
                                   struct bytes member, int64_t rank)
{
    uint64_t hash = key_hash(index) * 31 + key_hash(member);

    return (struct pg_place){ .hash = hash ^ (key_hash(ns) << 1), .ver = rank };
}

/* By the upper bits of a product: names that follow each other differ in few lower ones. */
static struct pg_place *set_of(const struct pg_places *p, uint64_t hash)
{
    uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return &p->sets[mixed % SETS * WAYS];
}

static struct pg_place *find(const struct pg_places *p, const struct pg_place *like)
{
    struct pg_place *set = set_of(p, like->hash);

    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].known && set[i].hash == like->hash && set[i].ver == like->ver)
            return &set[i];
    }
    return NULL;
}

bool pg_places_find(struct pg_places *p, struct pg_place *list, size_t n)
{
    bool all = true;

    pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < n; i++) {
        const struct pg_place *at = p->sets ? find(p, &list[i]) : NULL;
        if (at)
            list[i] = *at;
        all = all && at;
    }
    pthread_mutex_unlock(&p->mutex);
    return all;
}

/* In the place of an earlier version, or of the oldest of its set. */
static void put(const struct pg_places *p, const struct pg_place *place)
{
    struct pg_place *set = set_of(p, place->hash);
    unsigned at = 0;

    while (at + 1 < WAYS && set[at].known && set[at].hash != place->hash)
        at++;
    memmove(set + 1, set, at * sizeof(*set));
    set[0] = *place;
}

void pg_places_learn(struct pg_places *p, const struct pg_place *list, size_t n)
{
    pthread_mutex_lock(&p->mutex);
    if (!p->sets)
        p->sets = calloc((size_t)SETS * WAYS, sizeof(*p->sets));
    for (size_t i = 0; p->sets && i < n; i++) {
        if (list[i].known)
            put(p, &list[i]);
    }
    pthread_mutex_unlock(&p->mutex);
}

void pg_places_forget(struct pg_places *p, const struct pg_place *list, size_t n)
{
    pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; p->sets && i < n; i++) {
        struct pg_place *at = find(p, &list[i]);
        if (at)
            at->known = false;
    }
    pthread_mutex_unlock(&p->mutex);
}
