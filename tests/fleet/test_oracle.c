/* The contest beside the model of what it replaces (seedmodel.h): random scripts of one
 * thread and one clock on both.  Wherever the ring of the model has not gone round, both
 * give the same answers: who is granted, whom the others yield to, from when until when, and
 * what a release, an expiry or a zero ttl leaves behind.
 *
 * What differs on purpose, and is therefore not in the scripts (test_defects.c has it):
 * clocks that go back, claims after the ring has gone round, releases by others than the
 * holder, renewals, deaths.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "fleetlib.h"
#include "seedmodel.h"
#include "tap.h"

#define LABELS 3
#define KINDS 2
#define GUARDS 24

static const char *const label_of[LABELS] = { "origin:tcp_1", "origin:tcp_2", "" };
static const char *const owner_of[] = { "worker:1", "worker:2", "w", "" };
static const int64_t ttl_of[] = { 0, 1, 2, 5, 30, 1000, 30000 };

struct guard {
    bool is_used;
    struct seed_holder seed;
    struct belay_contest_claim belay;
};

struct script {
    struct rng rng;
    uint64_t seed;
    int64_t now;
    struct seed_ring *ring;
    struct belay_fleet *f;
    struct guard guards[GUARDS];
    unsigned claims, yields, selves, releases; /* that the script came to */
};

/* How both answered; empty when they agree. */
struct dispute {
    char text[400];
};

static void disagree(struct dispute *d, const struct script *s, const char *what,
                     long long seed, long long belay)
{
    (void)snprintf(d->text, sizeof(d->text),
                   "seed %llu, now %lld: %s is %lld there, %lld here",
                   (unsigned long long)s->seed, (long long)s->now, what, seed, belay);
}

static void compare(const struct script *s, enum seed_answer a,
                    const struct seed_holder *there,
                    const struct belay_contest_claim *here, struct dispute *d)
{
    if ((a == SEED_CLAIMED) != here->is_claimed) {
        disagree(d, s, "claimed", a == SEED_CLAIMED, here->is_claimed);
        return;
    }
    int64_t claimed =
        here->is_claimed ? here->guard.claimed_at_ms : here->holder.claimed_at_ms;
    int64_t expires =
        here->is_claimed ? here->guard.expires_at_ms : here->holder.expires_at_ms;
    if ((int64_t)there->claimed_at_ms != claimed)
        disagree(d, s, "claimed_at", (long long)there->claimed_at_ms, claimed);
    else if ((int64_t)there->expires_at_ms != expires)
        disagree(d, s, "expires_at", (long long)there->expires_at_ms, expires);
    else if (!here->is_claimed && strcmp(there->owner, here->holder.owner) != 0)
        disagree(d, s, "owner", there->owner[0], here->holder.owner[0]);
}

static struct guard *free_guard(struct script *s)
{
    for (size_t i = 0; i < GUARDS; i++) {
        if (!s->guards[i].is_used)
            return &s->guards[i];
    }
    return &s->guards[rng_below(&s->rng, GUARDS)]; /* forgotten: it expires */
}

static void step_claim(struct script *s, struct dispute *d)
{
    struct guard *g = free_guard(s);
    const char *label = label_of[rng_below(&s->rng, LABELS)];
    const char *owner = owner_of[rng_below(&s->rng, 4)];
    uint8_t kind = (uint8_t)(1 + rng_below(&s->rng, KINDS));
    int64_t ttl = ttl_of[rng_below(&s->rng, sizeof(ttl_of) / sizeof(ttl_of[0]))];
    struct belay_contest_subject subject = subject_of(kind, label);
    struct belay_contest_terms terms = terms_of(owner, ttl);
    struct belay_error err;

    enum seed_answer a = seed_claim(s->ring, (struct seed_subject){ kind, label },
                                    owner, (uint64_t)ttl, (uint64_t)s->now, &g->seed);
    belay_rc rc = belay_contest_try_at(s->f, &subject, &terms, s->now, &g->belay, &err);
    if (rc != BELAY_OK) {
        disagree(d, s, err.message, 0, rc);
        return;
    }
    compare(s, a, &g->seed, &g->belay, d);
    g->is_used = g->belay.is_claimed;
    s->claims += g->belay.is_claimed;
    s->yields += !g->belay.is_claimed && !g->belay.holder.is_self;
    s->selves += !g->belay.is_claimed && g->belay.holder.is_self;
}

/* Also of tenures that are over: neither side may notice. */
static void step_release(struct script *s)
{
    struct guard *g = &s->guards[rng_below(&s->rng, GUARDS)];

    if (!g->is_used)
        return;
    (void)seed_release_holder(s->ring, &g->seed, (uint64_t)s->now);
    s->releases += release(&g->belay.guard);
    g->is_used = rng_below(&s->rng, 8) == 0; /* and sometimes twice */
}

static void step_look(struct script *s, struct dispute *d)
{
    const char *label = label_of[rng_below(&s->rng, LABELS)];
    uint8_t kind = (uint8_t)(1 + rng_below(&s->rng, KINDS));
    struct belay_contest_subject subject = subject_of(kind, label);
    struct belay_contest_holder here;
    struct seed_holder there;
    struct belay_error err;
    bool is_there = seed_active_holder(s->ring, (struct seed_subject){ kind, label },
                                       (uint64_t)s->now, &there);
    belay_rc rc = belay_contest_holder_at(s->f, &subject, s->now, &here, &err);

    if (is_there != (rc == BELAY_OK))
        disagree(d, s, "held", is_there, rc == BELAY_OK);
    else if (is_there && strcmp(there.owner, here.owner) != 0)
        disagree(d, s, "holder", there.owner[0], here.owner[0]);
}

/* One script; where the answers differ for the first time, or empty. */
static struct dispute run(struct script *s, struct seed_ring *ring, uint64_t seed,
                          unsigned steps)
{
    struct dispute d = { "" };

    s->ring = ring;
    s->seed = seed;
    s->now = 1000;
    memset(s->guards, 0, sizeof(s->guards));
    rng_init(&s->rng, seed);
    seed_reset(ring);
    for (unsigned i = 0; i < steps && !d.text[0]; i++) {
        switch (rng_below(&s->rng, 8)) {
        case 0:
            s->now += (int64_t)rng_below(&s->rng, 8);
            break;
        case 1:
            step_look(s, &d);
            break;
        case 2:
        case 3:
            step_release(s);
            break;
        default:
            step_claim(s, &d);
            break;
        }
    }
    return d;
}

/* Each script on a fleet of its own, for the clock begins anew. */
static bool fresh(struct script *s, const struct room *room, unsigned i)
{
    struct belay_fleet_options o =
        room_options(room, BELAY_FLEET_VIRTUAL_CLOCK | BELAY_FLEET_PRIVATE);
    char name[32];

    o.holds = 64;
    belay_fleet_leave(s->f);
    (void)snprintf(name, sizeof(name), "script-%u", i);
    s->f = join_with(name, &o);
    return s->f != NULL;
}

static void test_equal(struct tap *t)
{
    const struct room *room = t->arg;
    struct script s = { .f = NULL };
    struct seed_ring ring;

    if (!TAP_OK(t, seed_open(&ring, 4096)))
        return;
    for (unsigned i = 0; i < 250 && t->failed == 0; i++) {
        if (!TAP_OK(t, fresh(&s, room, i)))
            break;
        struct dispute d = run(&s, &ring, 7000 + i, 400);
        if (!TAP_OK(t, d.text[0] == '\0'))
            printf("# %s\n", d.text);
        TAP_OK(t, ring.head <= ring.capacity);
    }
    printf("# %u grants, %u yields, %u to oneself, %u releases\n", s.claims, s.yields,
           s.selves, s.releases);
    TAP_OK(t, s.claims > 1000 && s.yields > 1000 && s.selves > 100 && s.releases > 500);
    belay_fleet_leave(s.f);
    seed_close(&ring);
}

static void test_lapped(struct tap *t)
{
    const struct room *room = t->arg;
    struct script s = { .f = NULL };
    struct seed_ring ring;
    unsigned differ = 0;

    if (!TAP_OK(t, seed_open(&ring, 32)))
        return;
    for (unsigned i = 0; i < 60; i++) {
        if (!TAP_OK(t, fresh(&s, room, 1000 + i)))
            break;
        struct dispute d = run(&s, &ring, 9000 + i, 400);
        differ += d.text[0] != '\0';
        if (d.text[0] && !TAP_OK(t, ring.head > ring.capacity))
            printf("# %s\n", d.text);
    }
    TAP_OK(t, differ > 20);
    belay_fleet_leave(s.f);
    seed_close(&ring);
}

static const struct tap_case cases[] = {
    { "every answer is that of the ring contest while its ring has not gone round",
      test_equal },
    { "answers differ only after the ring has gone round", test_lapped },
};

int main(int argc, char **argv)
{
    struct room room = { .dir = "" };

    if (!room_init(&room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &room, argc, argv);
    room_release(&room);
    return code;
}
