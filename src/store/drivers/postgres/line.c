/* Callers that want the same thing at the same time, served together.
 *
 * A few of them lead: each takes those who wait with it, as far as they can be served in
 * one round trip, and answers them all.  Who comes while few enough lead leads at once,
 * so that nobody waits for company. */
#include "base/clock.h"
#include "store/drivers/postgres/impl.h"

enum { LEAD = PARKER_WOKEN, ANSWERED = PARKER_WOKEN << 1 };

void pg_line_init(struct pg_line *l, unsigned most)
{
    pthread_mutex_init(&l->mutex, NULL);
    l->first = NULL;
    l->last = &l->first;
    l->leaders = 0;
    l->most = most;
}

void pg_line_release(struct pg_line *l)
{
    pthread_mutex_destroy(&l->mutex);
}

static void append(struct pg_line *l, struct pg_waiter *w)
{
    w->next = NULL;
    *l->last = w;
    l->last = &w->next;
}

bool pg_line_enter(struct pg_line *l, struct pg_waiter *w)
{
    struct belay_clock clock = clock_system();

    atomic_init(&w->parker.woken, 0);
    pthread_mutex_lock(&l->mutex);
    bool leads = l->leaders < l->most;
    l->leaders += leads;
    w->called = leads;
    append(l, w);
    pthread_mutex_unlock(&l->mutex);
    if (leads)
        return true;
    return parker_receive(&w->parker, &clock, DEADLINE_NONE) == LEAD;
}

struct pg_waiter *pg_line_take(struct pg_line *l, struct pg_waiter *leader,
                               pg_line_fits *fits, void *arg)
{
    struct pg_waiter *taken = NULL, **end = &taken;

    pthread_mutex_lock(&l->mutex);
    for (struct pg_waiter **at = &l->first; *at;) {
        struct pg_waiter *w = *at;
        if (w != leader && (w->called || !fits(arg, w))) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        if (l->last == &w->next)
            l->last = at;
        w->next = NULL;
        *end = w;
        end = &w->next;
    }
    pthread_mutex_unlock(&l->mutex);
    return taken;
}

void pg_line_answer(struct pg_waiter *w)
{
    parker_post(&w->parker, ANSWERED);
}

void pg_line_leave(struct pg_line *l)
{
    pthread_mutex_lock(&l->mutex);
    struct pg_waiter *next = l->first;
    /* Who is called stays in the line until it takes itself out. */
    while (next && next->called)
        next = next->next;
    if (next)
        next->called = true;
    else
        l->leaders--;
    pthread_mutex_unlock(&l->mutex);
    if (next)
        parker_post(&next->parker, LEAD);
}
