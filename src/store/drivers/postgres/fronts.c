#include "store/drivers/postgres/fronts.h"

#include <string.h>

#include "store/key.h"

void pg_fronts_init(struct pg_fronts *f)
{
    memset(f, 0, sizeof(*f));
    (void)pthread_mutex_init(&f->mutex, NULL);
}

void pg_fronts_release(struct pg_fronts *f)
{
    (void)pthread_mutex_destroy(&f->mutex);
}

uint64_t pg_front_of(struct bytes ns, struct bytes index)
{
    return key_hash(index) * 31 + key_hash(ns);
}

static struct pg_front *at(struct pg_fronts *f, uint64_t index)
{
    return &f->front[(index * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PG_FRONTS];
}

static bool is_of(const struct pg_front *front, uint64_t index, int64_t now_us)
{
    return front->given > 0 && front->index == index &&
           now_us - front->used_us < PG_FRONT_PAUSE_US;
}

bool pg_front_find(struct pg_fronts *f, uint64_t index, int64_t now_us,
                   struct pg_front *out)
{
    struct pg_front *front = at(f, index);
    bool found = false;

    pthread_mutex_lock(&f->mutex);
    if (is_of(front, index, now_us) && front->given >= PG_FRONT_GIVEN) {
        found = now_us - front->looked_us < PG_FRONT_LOOK_US;
        if (!found)
            front->looked_us = now_us; /* one looks, and the others go on */
        *out = *front;
    }
    pthread_mutex_unlock(&f->mutex);
    return found;
}

static int position_cmp(const struct pg_front *front, int64_t rank, struct bytes member)
{
    if (front->rank != rank)
        return front->rank < rank ? -1 : 1;
    return bytes_cmp(pg_front_member(front), member);
}

static void move(struct pg_front *front, const struct pg_given *given)
{
    front->rank = given->rank;
    front->member_len = given->member.len;
    memcpy(front->member, given->member.ptr, given->member.len);
}

void pg_front_passed(struct pg_fronts *f, uint64_t index, const struct pg_front *from,
                     const struct pg_given *given, int64_t now_us)
{
    struct pg_front *front = at(f, index);

    pthread_mutex_lock(&f->mutex);
    bool known = is_of(front, index, now_us);
    if (given->all || given->n == 0 || given->member.len > PG_FRONT_MEMBER) {
        if (known)
            front->given = 0;
        pthread_mutex_unlock(&f->mutex);
        return;
    }
    if (!known)
        *front = (struct pg_front){ .index = index, .looked_us = now_us };
    front->given += given->n;
    front->used_us = now_us;
    /* Who looked from the beginning knows best.  Who began behind a front moves it on, unless it
     * was moved back since. */
    if (!known || !from ||
        (position_cmp(front, from->rank, pg_front_member(from)) >= 0 &&
         position_cmp(front, given->rank, given->member) < 0))
        move(front, given);
    pthread_mutex_unlock(&f->mutex);
}
