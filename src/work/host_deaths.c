/* Hearing of deaths, and what follows from one. */
#include "base/park.h"
#include "work/host_watch_impl.h"

/* Grants that were on their way when their claimer died have arrived after this. */
#define ARRIVED_US 1000000
#define BACKOFF_FIRST_US 100000
#define TURNS_MAX 3

static const struct belay_contest_subject deaths = { "deaths", 6, KIND_DEATHS };

static int64_t now_us(const struct watch *w)
{
    return w->clock.mono_us(w->clock.arg);
}

/* What has changed since the last look. */
struct roll {
    bool is_one_dead;  /* and not swept yet */
    bool is_one_gone;  /* dead, swept since, or left */
    bool is_bound_one; /* who is gone may have held leases */
};

/* Whoever takes a seat from the dead sweeps them from the fleet: that somebody is not there any
 * more is all that can be seen then. */
static struct roll call_roll(struct watch *w)
{
    struct belay_fleet_member all[FLEET_SIZE];
    struct roll r = { .is_one_dead = false };
    uint64_t alive[FLEET_SIZE] = { 0 };
    size_t n = 0;

    if (belay_fleet_members(w->fleet, all, FLEET_SIZE, &n, NULL) != BELAY_OK)
        return r;
    for (size_t i = 0; i < n; i++) {
        uint64_t is_bound = strcmp(all[i].label, LABEL_BOUND) == 0;
        if (all[i].life == BELAY_LIFE_DEAD) {
            r.is_one_dead = r.is_one_gone = true;
            r.is_bound_one = r.is_bound_one || is_bound;
        } else if (all[i].node < FLEET_SIZE) {
            alive[all[i].node] = all[i].incarnation << 1 | is_bound;
        }
    }
    for (size_t i = 0; i < FLEET_SIZE; i++) {
        if (w->alive[i] == 0 || w->alive[i] == alive[i])
            continue;
        r.is_one_gone = true;
        r.is_bound_one = r.is_bound_one || (w->alive[i] & 1) != 0;
    }
    memcpy(w->alive, alive, sizeof(alive));
    return r;
}

/* Those of this handle who wait look for themselves. */
static void wake_ours(const struct watch *w)
{
    wake_post_bucket(store_driver(space_store(w->site.space))->hub, 0, 1);
}

/* Somebody has done it since this one was due. */
static bool is_done(struct watch *w)
{
    int64_t began_us = 0;

    return belay_value_load(&w->swept, &began_us, NULL, NULL) == BELAY_OK &&
           began_us > w->due_us;
}

/* What the dead held is lost; then, and only then, the fleet forgets them. */
static belay_rc bury(struct watch *w)
{
    int64_t lost = 0, began_us = now_us(w);
    belay_rc rc = exec_dead_sweep(&w->site, &lost, NULL);

    if (rc == BELAY_OK)
        rc = belay_fleet_sweep(w->fleet, NULL, NULL);
    if (rc)
        return rc;
    belay_rc told = belay_value_store(&w->swept, &began_us, NULL, NULL);
    (void)told; /* the next one does it once more */
    return BELAY_OK;
}

/* As the one who does it, or not at all. */
static bool do_it(struct watch *w)
{
    if (is_done(w))
        return true;
    if (bury(w) != BELAY_OK)
        return false;
    host_post(w, WORD_NEWS);
    return true;
}

/* One of those who heard of it, at a time; the others wait for it, and find it done or do it
 * themselves.  False: it is to be tried again. */
static bool see_to_dead(struct watch *w)
{
    const struct belay_contest_terms terms = { w->id.member, strlen(w->id.member),
                                               SEAT_MS };
    struct belay_contest_claim claim;

    for (int turn = 0; turn < TURNS_MAX; turn++) {
        belay_rc rc = belay_contest_try(w->fleet, &deaths, &terms, &claim, NULL);
        if (rc) /* H3: a fleet that is damaged does not keep anybody from it */
            return do_it(w);
        if (claim.is_claimed) {
            bool is_over = do_it(w);
            rc = belay_contest_release(&claim.guard, NULL, NULL);
            (void)rc; /* too late: somebody else does it, too */
            return is_over;
        }
        rc = belay_contest_wait(w->fleet, &deaths, SEAT_MS, NULL, NULL);
        (void)rc;
        if (is_done(w))
            return true;
    }
    return false;
}

/* A store that is away comes back; meanwhile the dead stay where they are. */
static void note_failure(struct watch *w)
{
    w->backoff_us = w->backoff_us ? w->backoff_us * 2 : BACKOFF_FIRST_US;
    if (w->backoff_us > RELOOK_US)
        w->backoff_us = RELOOK_US;
    w->sweep_us = now_us(w) + w->backoff_us;
}

/* --- the thread --- */

/* Sweeps if it is time to. */
static void step(struct watch *w)
{
    struct roll r = call_roll(w);

    if (r.is_bound_one) {
        w->due_us = now_us(w);
        w->is_twice = true;
        if (w->backoff_us == 0)
            w->sweep_us = w->due_us;
    } else if (r.is_one_dead) { /* it held nothing but seats */
        belay_rc rc = belay_fleet_sweep(w->fleet, NULL, NULL);
        (void)rc;
    }
    if (r.is_one_gone)
        wake_ours(w); /* a seat may be free */
    if (w->sweep_us > now_us(w))
        return;
    if (!see_to_dead(w)) {
        note_failure(w);
        return;
    }
    w->backoff_us = 0;
    w->sweep_us = DEADLINE_NONE;
    if (w->is_twice) {
        w->sweep_us = now_us(w) + ARRIVED_US;
        w->due_us = w->sweep_us - ARRIVED_US / 2;
        w->is_twice = false;
    }
    wake_ours(w);
}

void *host_watch_run(void *watch)
{
    struct watch *w = watch;
    uint32_t seen[WORDS] = { 0 }, news = 0;

    /* Until the join that started this thread is through. */
    (void)pthread_mutex_lock(&w->mutex);
    (void)pthread_mutex_unlock(&w->mutex);
    w->due_us = now_us(w); /* for those who died while nobody watched */
    while (!atomic_load_explicit(&w->stop, memory_order_acquire)) {
        for (unsigned i = 0; i < WORDS; i++)
            seen[i] = belay_notify_value(w->fleet, w->words[i]);
        if (seen[WORD_NEWS] != news)
            wake_ours(w);
        news = seen[WORD_NEWS];
        step(w);

        int64_t us = w->sweep_us - now_us(w);
        int64_t ms = us < 0 ? 0 : us < RELOOK_US ? us / 1000 + 1 : RELOOK_MS;
        if (w->backoff_us == 0) {
            belay_rc rc =
                belay_fleet_wait_deaths(w->fleet, w->words, seen, WORDS, ms, NULL);
            (void)rc; /* whatever it was, it is looked at */
        } else {      /* the dead are known, and stay */
            uint32_t members = 0;
            belay_rc rc =
                belay_notify_wait(w->fleet, w->words[WORD_MEMBERS], seen[WORD_MEMBERS],
                                  ms, NULL, &members, NULL);
            (void)rc;
        }
    }
    return NULL;
}
