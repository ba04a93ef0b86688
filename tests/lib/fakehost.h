/* fakehost.h - a host whose dead a test names: rightly, late, or not rightly at all. */
#ifndef TESTS_FAKEHOST_H
#define TESTS_FAKEHOST_H

#include "work/host.h"
#include "work/lease.h"

#define FAKE_DEAD_MAX 8

struct fake_host {
    struct host host; /* first */
    const char *dead[FAKE_DEAD_MAX];
    size_t n_dead;
    unsigned asked, joins;
    bool is_alone;             /* there is no fleet */
    atomic_bool seat_taken;    /* by another process */
    atomic_uint seat_asked;    /* how often somebody wanted one */
    void (*on_ask)(void *arg); /* in the middle of the question */
    void *arg;
    unsigned settles;              /* how often somebody was about to find nothing */
    belay_rc (*on_settle)(void *); /* and what happens then */
};

static inline bool fake_host_join(struct host *h)
{
    struct fake_host *f = (struct fake_host *)h;

    if (f->is_alone)
        return false;
    f->joins += !atomic_load(&h->is_joined);
    atomic_store(&h->is_joined, true);
    return true;
}

static inline bool fake_host_is_dead(struct host *h, const struct lease_holder *who)
{
    struct fake_host *f = (struct fake_host *)h;

    f->asked++;
    if (f->on_ask)
        f->on_ask(f->arg);
    for (size_t i = 0; i < f->n_dead; i++) {
        if (bytes_eq(who->member, bytes_str(f->dead[i])))
            return true;
    }
    return false;
}

static inline bool fake_host_hold(struct host *h, struct host_seat *s)
{
    struct fake_host *f = (struct fake_host *)h;

    s->is_held = !atomic_load(&f->seat_taken);
    atomic_fetch_add(&f->seat_asked, 1);
    return s->is_held;
}

static inline void fake_host_yield(struct host *h, struct host_seat *s)
{
    (void)h;
    s->is_held = false;
}

static inline belay_rc fake_host_settle(struct host *h, struct belay_error *err)
{
    struct fake_host *f = (struct fake_host *)h;
    belay_rc rc = f->on_settle ? f->on_settle(f->arg) : BELAY_OK;

    f->settles++;
    return rc ? err_set(err, rc, "it cannot be known") : BELAY_OK;
}

static const struct host_ops fake_host_ops = { .join = fake_host_join,
                                               .is_dead = fake_host_is_dead,
                                               .hold = fake_host_hold,
                                               .yield = fake_host_yield,
                                               .settle = fake_host_settle };

/* A process of host "h" in boot "b", the member of that name, whose leases are bound. */
static inline struct fake_host fake_host(const char *member)
{
    return (struct fake_host){ .host = { .ops = &fake_host_ops,
                                         .binds = true,
                                         .self = { .host = bytes_str("h"),
                                                   .boot = bytes_str("b"),
                                                   .member = bytes_str(member),
                                                   .pid = 1,
                                                   .process_start = 2 } } };
}

static inline void fake_host_kill(struct fake_host *f, const char *member)
{
    f->dead[f->n_dead++] = member;
}

#endif /* TESTS_FAKEHOST_H */
