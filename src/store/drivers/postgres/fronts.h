/* fronts.h - how far the picks of this process have come in rank indexes.
 *
 * Entries that were taken lie dead at the beginning of an index until the server clears them away,
 * and those that others are taking lie there locked.  Every pick that looks from the beginning
 * passes them by, and the more the longer the last vacuum is ago.  So a pick of an index that
 * this process is emptying begins behind what the one before it was given, and looks at the
 * rest only when it does not find enough: see read_behind.c for what that does to the order.
 *
 * Every PG_FRONT_LOOK_US one looks from the beginning all the same.
 */
#ifndef STORE_DRIVERS_POSTGRES_FRONTS_H
#define STORE_DRIVERS_POSTGRES_FRONTS_H

#include <pthread.h>

#include "base/bytes.h"

/* What comes in before a front is seen after so long.  Who has not picked for the length of a
 * pause, or was given fewer, is not emptying the index. */
#define PG_FRONT_LOOK_US 50000
#define PG_FRONT_PAUSE_US 1000000
#define PG_FRONT_GIVEN 1024
/* Of longer members (bytes) there are no fronts; of so many indexes at most. */
#define PG_FRONT_MEMBER 64
#define PG_FRONTS 64

struct pg_front {
    uint64_t index; /* pg_front_of */
    int64_t rank;   /* the last one that was given */
    size_t member_len;
    uint8_t member[PG_FRONT_MEMBER];
    size_t given; /* without a pause; 0: there is no front */
    int64_t used_us, looked_us;
};

struct pg_fronts {
    pthread_mutex_t mutex;
    struct pg_front front[PG_FRONTS];
};

/* What a pick was given. */
struct pg_given {
    size_t n;
    bool all; /* there was no more */
    int64_t rank;
    struct bytes member; /* the last one */
};

void pg_fronts_init(struct pg_fronts *f);
void pg_fronts_release(struct pg_fronts *f);

uint64_t pg_front_of(struct bytes ns, struct bytes index);
/* Where a pick that is about to be made begins; false: at the beginning. */
bool pg_front_find(struct pg_fronts *f, uint64_t index, int64_t now_us,
                   struct pg_front *out);
/* It was made at that time, and began behind `from`; NULL: at the beginning. */
void pg_front_passed(struct pg_fronts *f, uint64_t index, const struct pg_front *from,
                     const struct pg_given *given, int64_t now_us);

static inline struct bytes pg_front_member(const struct pg_front *f)
{
    return bytes_of(f->member, f->member_len);
}

#endif /* STORE_DRIVERS_POSTGRES_FRONTS_H */
