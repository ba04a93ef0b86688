#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/park.h"
#include "fakes.h"
#include "tap.h"

static void a_wake_before_the_wait_is_kept(struct tap *t)
{
    struct belay_clock clock = clock_system();
    struct parker p = { 0 };

    parker_wake(&p);
    parker_wake(&p);
    TAP_OK(t, parker_wait(&p, &clock, DEADLINE_NONE));
    TAP_OK(t, !parker_take(&p)); /* several wake-ups are one, and it is consumed */
}

static void a_deadline_ends_the_wait(struct tap *t)
{
    struct belay_clock clock = clock_system();
    struct parker p = { 0 };
    int64_t start = clock.mono_us(clock.arg);

    TAP_OK(t, !parker_wait(&p, &clock, start + 20000));
    TAP_OK(t, clock.mono_us(clock.arg) >= start + 20000);
    TAP_OK(t, !parker_wait(&p, &clock, start)); /* one that has passed: at once */
}

static void a_replaced_clock_decides_about_deadlines(struct tap *t)
{
    struct fake_clock fake = { .mono_us = 1000 };
    struct belay_clock clock = fake_clock_hook(&fake);
    struct parker p = { 0 };

    TAP_OK(t, !parker_wait(&p, &clock, 1000));
    fake_advance_us(&fake, 500);
    TAP_OK(t, !parker_wait(&p, &clock, 1500));
}

struct sleeper {
    struct parker parker;
    struct belay_cancel *cancel;
    atomic_bool attached;
    bool woken;
};

static void *sleep_until_woken(void *arg)
{
    struct sleeper *s = arg;
    struct belay_clock clock = clock_system();
    struct cancel_link link;

    cancel_attach(s->cancel, &link, &s->parker);
    atomic_store(&s->attached, true);
    s->woken = parker_wait(&s->parker, &clock, DEADLINE_NONE);
    cancel_detach(s->cancel, &link);
    return NULL;
}

static void another_thread_wakes(struct tap *t)
{
    for (int i = 0; i < 200; i++) {
        struct sleeper s = { .cancel = NULL };
        pthread_t thread;
        if (!TAP_EQ(t, pthread_create(&thread, NULL, sleep_until_woken, &s), 0))
            return;
        parker_wake(&s.parker); /* sometimes before, sometimes after it sleeps */
        pthread_join(thread, NULL);
        TAP_OK(t, s.woken);
    }
}

static void a_cancel_wakes_everybody_attached(struct tap *t)
{
    struct sleeper s[4] = { { .cancel = NULL } };
    pthread_t threads[4];
    struct belay_cancel *cancel = NULL;

    if (!TAP_EQ(t, belay_cancel_new(&cancel, NULL), BELAY_OK))
        return;
    TAP_OK(t, !belay_cancel_triggered(cancel));
    for (int i = 0; i < 4; i++) {
        s[i].cancel = cancel;
        TAP_EQ(t, pthread_create(&threads[i], NULL, sleep_until_woken, &s[i]), 0);
    }
    belay_cancel_trigger(cancel);
    belay_cancel_trigger(cancel); /* any number of times */
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        TAP_OK(t, s[i].woken);
    }
    TAP_OK(t, belay_cancel_triggered(cancel));

    /* Who attaches later is woken at once. */
    struct sleeper late = { .cancel = cancel };
    (void)sleep_until_woken(&late);
    TAP_OK(t, late.woken);
    belay_cancel_free(cancel);
}

static void detaching_leaves_the_others_attached(struct tap *t)
{
    struct belay_cancel *cancel = NULL;
    struct parker parkers[3] = { { 0 } };
    struct cancel_link links[3];

    if (!TAP_EQ(t, belay_cancel_new(&cancel, NULL), BELAY_OK))
        return;
    for (int i = 0; i < 3; i++)
        cancel_attach(cancel, &links[i], &parkers[i]);
    cancel_detach(cancel, &links[1]);
    cancel_detach(cancel, &links[1]); /* twice is harmless */
    belay_cancel_trigger(cancel);
    TAP_OK(t, parker_take(&parkers[0]));
    TAP_OK(t, !parker_take(&parkers[1]));
    TAP_OK(t, parker_take(&parkers[2]));
    cancel_detach(cancel, &links[0]);
    cancel_detach(cancel, &links[2]);
    TAP_OK(t, !cancel->links);
    belay_cancel_free(cancel);
    belay_cancel_free(NULL);
}

/* Who has found something to read looks at its bits before it sleeps again. */
static void one_who_is_awake_is_not_woken(struct tap *t)
{
    int fd = eventfd(1, EFD_NONBLOCK), bell = eventfd(0, EFD_NONBLOCK);
    struct belay_clock clock = clock_system();
    struct parker p = { 0 };
    uint64_t rung;

    TAP_OK(t, parker_poll(&p, fd, bell, 1000000));
    parker_ring(&p);
    TAP_OK(t, read(bell, &rung, sizeof(rung)) < 0); /* the kernel was not asked */
    parker_rest(&p);
    TAP_OK(t, parker_wait(&p, &clock, DEADLINE_NONE)); /* and nothing is lost */

    TAP_OK(t, read(fd, &rung, sizeof(rung)) == (ssize_t)sizeof(rung));
    parker_ring(&p);
    TAP_OK(t, !parker_poll(&p, fd, bell, DEADLINE_NONE)); /* it does not even sleep */
    TAP_OK(t, parker_take(&p));
    (void)close(fd);
    (void)close(bell);
}

static const struct tap_case cases[] = {
    { "a wake before the wait is kept", a_wake_before_the_wait_is_kept },
    { "a deadline ends the wait", a_deadline_ends_the_wait },
    { "a replaced clock decides about deadlines",
      a_replaced_clock_decides_about_deadlines },
    { "another thread wakes", another_thread_wakes },
    { "a cancel wakes everybody attached", a_cancel_wakes_everybody_attached },
    { "detaching leaves the others attached", detaching_leaves_the_others_attached },
    { "one who is awake is not woken", one_who_is_awake_is_not_woken },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
