/* How far picks have come (fronts.h), with the time given. */
#include "store/drivers/postgres/fronts.h"

#include <string.h>

#include "tap.h"

#define INDEX 7
#define BATCH 100

struct world {
    struct pg_fronts fronts;
    int64_t now_us;
    int64_t rank; /* of the last one that was given */
};

static void world_end(struct world *w)
{
    pg_fronts_release(&w->fronts);
}

static void begin(struct world *w)
{
    pg_fronts_init(&w->fronts);
    w->now_us = 1000000;
    w->rank = 0;
}

static struct pg_given given_to(int64_t rank, const char *member)
{
    return (struct pg_given){ .n = BATCH, .rank = rank, .member = bytes_str(member) };
}

/* A pick that is given the next BATCH, wherever it began; true: behind a front. */
static bool pick(struct world *w, struct pg_front *from)
{
    bool behind = pg_front_find(&w->fronts, INDEX, w->now_us, from);
    struct pg_given given = given_to(w->rank += BATCH, "m");

    pg_front_passed(&w->fronts, INDEX, behind ? from : NULL, &given, w->now_us);
    return behind;
}

/* Picks until one begins behind the one before; how many began at the beginning. */
static int warm_up(struct world *w, struct pg_front *from)
{
    for (int n = 0; n < 100; n++) {
        if (pick(w, from))
            return n;
    }
    return -1;
}

static void who_empties_goes_on(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from;

    begin(&w);
    TAP_EQ(t, warm_up(&w, &from), (PG_FRONT_GIVEN + BATCH - 1) / BATCH);
    TAP_EQ(t, from.rank, w.rank - BATCH);
    TAP_OK(t, bytes_eq(pg_front_member(&from), bytes_str("m")));
    TAP_OK(t, !pg_front_find(&w.fronts, INDEX + 1, w.now_us, &from));
}

static void one_looks_now_and_then(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from;

    begin(&w);
    (void)warm_up(&w, &from);
    w.now_us += PG_FRONT_LOOK_US - 1;
    TAP_OK(t, pick(&w, &from));
    w.now_us += 1;
    TAP_OK(t, !pick(&w, &from));
    TAP_OK(t, pick(&w, &from)); /* the others go on */
}

static void a_pause_ends_it(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from;

    begin(&w);
    (void)warm_up(&w, &from);
    w.now_us += PG_FRONT_PAUSE_US;
    TAP_OK(t, !pick(&w, &from));
    TAP_OK(t, !pick(&w, &from)); /* it counts anew */
}

static void the_end_ends_it(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from;
    struct pg_given given = given_to(1, "m");

    begin(&w);
    (void)warm_up(&w, &from);
    given.all = true;
    pg_front_passed(&w.fronts, INDEX, &from, &given, w.now_us);
    TAP_OK(t, !pick(&w, &from));
}

static void long_members_have_none(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from;
    char name[PG_FRONT_MEMBER + 2];

    begin(&w);
    (void)warm_up(&w, &from);
    memset(name, 'x', sizeof(name) - 1);
    name[PG_FRONT_MEMBER + 1] = '\0';
    struct pg_given given = given_to(w.rank + 1, name);
    pg_front_passed(&w.fronts, INDEX, &from, &given, w.now_us);
    TAP_OK(t, !pg_front_find(&w.fronts, INDEX, w.now_us, &from));
}

/* Several at a time: who comes last has not always come the furthest. */
static void nobody_moves_it_back(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from, later;
    struct pg_given near = given_to(0, "a"), far = given_to(0, "b");

    begin(&w);
    (void)warm_up(&w, &from);
    near.rank = w.rank + 1;
    far.rank = w.rank + 1;
    pg_front_passed(&w.fronts, INDEX, &from, &far, w.now_us);
    pg_front_passed(&w.fronts, INDEX, &from, &near, w.now_us);
    TAP_OK(t, pg_front_find(&w.fronts, INDEX, w.now_us, &later));
    TAP_OK(t, bytes_eq(pg_front_member(&later), bytes_str("b")));
}

/* Who looked from the beginning and found something there is right: and what another, who began
 * behind it, was given meanwhile does not count. */
static void a_look_moves_it_back(struct tap *t)
{
    CLEANUP(world_end) struct world w;
    struct pg_front from, later;
    struct pg_given found = given_to(5, "old"), other = given_to(0, "new");

    begin(&w);
    (void)warm_up(&w, &from);
    other.rank = w.rank + BATCH;
    pg_front_passed(&w.fronts, INDEX, NULL, &found, w.now_us);
    pg_front_passed(&w.fronts, INDEX, &from, &other, w.now_us);
    TAP_OK(t, pg_front_find(&w.fronts, INDEX, w.now_us, &later));
    TAP_EQ(t, later.rank, 5);
    TAP_OK(t, bytes_eq(pg_front_member(&later), bytes_str("old")));
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "fronts: who empties an index goes on where it was", who_empties_goes_on },
        { "fronts: now and then one looks from the beginning", one_looks_now_and_then },
        { "fronts: a pause ends it", a_pause_ends_it },
        { "fronts: the end of the index ends it", the_end_ends_it },
        { "fronts: long members have none", long_members_have_none },
        { "fronts: who comes late does not move it back", nobody_moves_it_back },
        { "fronts: who has looked does", a_look_moves_it_back },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
