/* The lock of a handle, which leans to the first thread that takes it. */
#include <pthread.h>
#include <stdatomic.h>

#include "fleet/impl.h"
#include "test_fleet.h"

#define ROUNDS 300
#define TURNS 400

static struct belay_fleet *join(void)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);

    return must_join("lock", &o);
}

static bool leans_to(struct belay_fleet *f, uintptr_t thread)
{
    return atomic_load(&f->leans_to) == thread;
}

/* --- one thread --- */

static void a_thread_alone_never_takes_the_word(struct tap *t)
{
    struct belay_fleet *f = join();

    fleet_lock(f);
    TAP_OK(t, leans_to(f, (uintptr_t)pthread_self()));
    TAP_EQ(t, atomic_load(&f->lock), 0);
    TAP_EQ(t, atomic_load(&f->is_inside), 1);
    fleet_unlock(f);
    TAP_EQ(t, atomic_load(&f->is_inside), 0);
    belay_fleet_leave(f);
}

/* --- another comes --- */

static void *take_once(void *handle)
{
    struct belay_fleet *f = handle;

    fleet_lock(f);
    bool has_word = atomic_load(&f->lock) == 1;
    fleet_unlock(f);
    return has_word ? f : NULL;
}

static void the_second_thread_makes_it_everybodys(struct tap *t)
{
    struct belay_fleet *f = join();
    pthread_t thread;
    void *had_word = NULL;

    fleet_lock(f);
    fleet_unlock(f);
    TAP_EQ(t, pthread_create(&thread, NULL, take_once, f), 0);
    TAP_EQ(t, pthread_join(thread, &had_word), 0);
    TAP_OK(t, had_word == f);
    TAP_OK(t, leans_to(f, LEANS_TO_NOBODY));
    fleet_lock(f); /* the first one, too */
    TAP_EQ(t, atomic_load(&f->lock), 1);
    TAP_EQ(t, atomic_load(&f->is_inside), 0);
    fleet_unlock(f);
    TAP_EQ(t, atomic_load(&f->lock), 0);
    belay_fleet_leave(f);
}

struct visit {
    struct belay_fleet *f;
    atomic_bool has_begun, is_in;
};

static void *visit(void *arg)
{
    struct visit *v = arg;

    atomic_store(&v->has_begun, true);
    fleet_lock(v->f);
    atomic_store(&v->is_in, true);
    fleet_unlock(v->f);
    return NULL;
}

static void who_comes_waits_for_who_is_inside(struct tap *t)
{
    struct visit v = { .f = join() };
    pthread_t thread;

    fleet_lock(v.f);
    TAP_EQ(t, pthread_create(&thread, NULL, visit, &v), 0);
    while (!leans_to(v.f, LEANS_TO_NOBODY))
        (void)usleep(100);
    (void)usleep(20000);
    TAP_OK(t, atomic_load(&v.has_begun) && !atomic_load(&v.is_in));
    fleet_unlock(v.f);
    TAP_EQ(t, pthread_join(thread, NULL), 0);
    TAP_OK(t, atomic_load(&v.is_in));
    belay_fleet_leave(v.f);
}

/* --- many --- */

/* Plain memory: two inside at once lose a count, and are a race for the sanitizer. */
struct counted {
    struct belay_fleet *f;
    uint64_t n;
    atomic_bool may_begin;
};

static void *count(void *arg)
{
    struct counted *c = arg;

    while (!atomic_load(&c->may_begin))
        continue;
    for (int i = 0; i < TURNS; i++) {
        fleet_lock(c->f);
        c->n++;
        fleet_unlock(c->f);
    }
    return NULL;
}

/* Each round has a lock that leans to one thread when the others come. */
static void two_are_never_inside(struct tap *t)
{
    struct belay_fleet *f = join();

    for (int round = 0; round < ROUNDS; round++) {
        struct counted c = { .f = must_join_beside(f) };
        pthread_t threads[3];

        for (size_t i = 0; i < 3; i++)
            TAP_EQ(t, pthread_create(&threads[i], NULL, count, &c), 0);
        atomic_store(&c.may_begin, true);
        for (size_t i = 0; i < 3; i++)
            TAP_EQ(t, pthread_join(threads[i], NULL), 0);
        TAP_EQ(t, c.n, 3 * TURNS);
        belay_fleet_leave(c.f);
    }
    belay_fleet_leave(f);
}

/* A thread that ends leaves the lock leaning to it; the next may have its address. */
static void threads_come_and_go(struct tap *t)
{
    struct counted c = { .f = join(), .may_begin = true };

    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        TAP_EQ(t, pthread_create(&thread, NULL, count, &c), 0);
        TAP_EQ(t, pthread_join(thread, NULL), 0);
    }
    TAP_EQ(t, c.n, 50 * TURNS);
    (void)count(&c);
    TAP_EQ(t, c.n, 51 * TURNS);
    TAP_OK(t, leans_to(c.f, LEANS_TO_NOBODY));
    belay_fleet_leave(c.f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "lock: a thread alone never takes the word",
          a_thread_alone_never_takes_the_word },
        { "lock: the second thread makes it everybody's",
          the_second_thread_makes_it_everybodys },
        { "lock: who comes waits for who is inside",
          who_comes_waits_for_who_is_inside },
        { "lock: two are never inside", two_are_never_inside },
        { "lock: threads come and go", threads_come_and_go },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
