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

/* --- who is there --- */

#define IS_BOUND UINT64_C(1)
#define IS_DEAD UINT64_C(2)

static bool take_roll(struct watch *w, struct roll *out)
{
    struct belay_fleet_member all[FLEET_SIZE];
    size_t n = 0;

    *out = (struct roll){ .taken_us = now_us(w) };
    if (belay_fleet_members(w->fleet, all, FLEET_SIZE, &n, NULL) != BELAY_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool is_bound = strcmp(all[i].label, LABEL_BOUND) == 0;
        bool is_dead = all[i].life == BELAY_LIFE_DEAD;
        if (all[i].node < FLEET_SIZE)
            out->at[all[i].node] = all[i].incarnation << 2 | (is_dead ? IS_DEAD : 0) |
                                   (is_bound ? IS_BOUND : 0);
    }
    return true;
}

/* What has changed between two looks. */
struct loss {
    bool is_one_dead;  /* and not swept yet */
    bool is_one_gone;  /* dead, swept since, or left */
    bool is_bound_one; /* who is gone may have held leases */
};

/* Whoever takes a seat from the dead sweeps them from the fleet: that somebody is not there any
 * more is all that can be seen then. */
static struct loss compare(const struct roll *was, const struct roll *is)
{
    struct loss l = { .is_one_dead = false };

    for (size_t i = 0; i < FLEET_SIZE; i++) {
        uint64_t before = was->at[i], after = is->at[i];
        if (before == after)
            continue;
        bool is_lost = before != 0 && (before & IS_DEAD) == 0; /* it lived */
        bool is_found = (after & IS_DEAD) != 0;
        l.is_one_dead = l.is_one_dead || is_found;
        l.is_one_gone = l.is_one_gone || is_lost || is_found;
        l.is_bound_one = l.is_bound_one || (is_lost && (before & IS_BOUND) != 0) ||
                         (is_found && (after & IS_BOUND) != 0);
    }
    return l;
}

/* The dead are found again and again until they are swept. */
static void remember(struct watch *w, const struct roll *r)
{
    w->alive = *r;
    for (size_t i = 0; i < FLEET_SIZE; i++) {
        if ((r->at[i] & IS_DEAD) != 0)
            w->alive.at[i] = 0;
    }
}

/* What those held who were gone by that roll is lost. */
static void note_settled(struct watch *w, const struct roll *r)
{
    (void)pthread_mutex_lock(&w->mutex);
    if (!w->is_settled || r->taken_us >= w->settled.taken_us)
        w->settled = *r;
    w->is_settled = true;
    (void)pthread_mutex_unlock(&w->mutex);
}

static bool is_settled(struct watch *w, const struct roll *r)
{
    (void)pthread_mutex_lock(&w->mutex);
    bool is = w->is_settled && !compare(&w->settled, r).is_bound_one;
    (void)pthread_mutex_unlock(&w->mutex);
    return is;
}

/* Beside the thread, which may be doing the same, and leaves the dead to it: they stay in the
 * fleet until it, or another's, is through. */
static belay_rc settle(struct watch *w, struct belay_error *err)
{
    int64_t lost = 0;
    struct roll r;

    if (!take_roll(w, &r))
        return BELAY_OK; /* H3 */
    if (!is_settled(w, &r)) {
        belay_rc rc = exec_dead_sweep(&w->site, &lost, err);
        if (rc != BELAY_OK && rc != BELAY_CORRUPT) /* `check` tells of that */
            return rc;
        (void)atomic_fetch_add(&w->host.sweeps, 1);
    }
    note_settled(w, &r);
    return BELAY_OK;
}

/* One of those who call it sweeps; the others find it done. */
belay_rc host_watch_settle(struct host *h, struct belay_error *err)
{
    struct watch *w = (struct watch *)h;

    (void)pthread_mutex_lock(&w->settling);
    belay_rc rc = settle(w, err);
    (void)pthread_mutex_unlock(&w->settling);
    return rc;
}

/* --- what follows from a death --- */

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

/* Whether those who are gone were seen to, by anybody. */
static bool sweep_in_time(struct watch *w)
{
    if (w->sweep_us > now_us(w))
        return !w->is_pending;
    if (!see_to_dead(w)) {
        note_failure(w);
        return false;
    }
    (void)atomic_fetch_add(&w->host.sweeps, 1);
    w->is_pending = false;
    w->backoff_us = 0;
    w->sweep_us = DEADLINE_NONE;
    if (w->is_twice) {
        w->sweep_us = now_us(w) + ARRIVED_US;
        w->due_us = w->sweep_us - ARRIVED_US / 2;
        w->is_twice = false;
    }
    wake_ours(w);
    return true;
}

static void step(struct watch *w)
{
    struct roll r;

    if (!take_roll(w, &r))
        r = w->alive; /* H3: nothing is known to have changed */
    struct loss l = compare(&w->alive, &r);
    remember(w, &r);
    if (l.is_bound_one) {
        w->due_us = now_us(w);
        w->is_twice = w->is_pending = true;
        if (w->backoff_us == 0)
            w->sweep_us = w->due_us;
    } else if (l.is_one_dead) { /* it held nothing but seats */
        size_t n = 0;
        belay_rc rc = belay_fleet_sweep(w->fleet, &n, NULL);
        if (rc == BELAY_OK && n > 0)
            host_post(w, WORD_NEWS); /* others may not have seen them; seats are free */
    }
    if (sweep_in_time(w))
        note_settled(w, &r);
    if (l.is_one_gone) /* after the sweep, which is for as long as the dead are there */
        wake_ours(w);  /* a seat may be free */
}

void *host_watch_run(void *watch)
{
    struct watch *w = watch;
    uint32_t seen[WORDS] = { 0 }, news = 0;

    /* Until the join that started this thread is through. */
    (void)pthread_mutex_lock(&w->mutex);
    (void)pthread_mutex_unlock(&w->mutex);
    w->due_us = now_us(w); /* for those who died while nobody watched */
    w->is_pending = true;
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
