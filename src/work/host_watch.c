#include "work/host_watch.h"

#include <pthread.h>
#include <stdlib.h>

#include <belay/fleet.h>

#include "base/clock.h"
#include "base/thread.h"

/* Members at once; one futex_waitv watches over all of them. */
#define FLEET_SIZE 120
/* Whoever sleeps looks again after this, woken or not. */
#define RELOOK_MS 5000
#define RELOOK_US ((int64_t)RELOOK_MS * 1000)
/* A seat whose holder is stopped (SIGSTOP) is another's after this; holders renew at least
 * every RELOOK_MS. */
#define SEAT_MS 20000
/* Grants that were on their way when their claimer died have arrived after this. */
#define ARRIVED_US 1000000
#define BACKOFF_FIRST_US 100000

/* Subjects of contests. */
enum { KIND_DEATHS = 1, KIND_SEAT = 2 };
static const struct belay_contest_subject deaths = { "deaths", 6, KIND_DEATHS };

/* Words of the fleet: who is there has changed, or stops watching; something happened that
 * those who wait want to know. */
enum { WORD_MEMBERS, WORD_NEWS, WORDS };
static const char *const word_names[WORDS] = { "members", "news" };

enum state { STATE_NEW, STATE_JOINED, STATE_APART };

struct watch {
    struct host host; /* first */
    struct exec_site site;
    struct belay_clock
        clock; /* the system's: the kernel's deaths are not in anybody's time */
    char *fleet_name, *dir;

    pthread_mutex_t mutex; /* of the state */
    enum state state;

    /* Once joined. */
    struct belay_fleet *fleet;
    struct belay_identity id;
    struct belay_notify words[WORDS];
    pthread_t thread;
    atomic_bool stop;

    /* The thread's own. */
    int64_t sweep_us;   /* when to sweep, whoever died; DEADLINE_NONE */
    int64_t backoff_us; /* after a failure; 0: there was none */
};

static struct watch *watch_of(struct host *h)
{
    return (struct watch *)h;
}

static void post(struct watch *w, unsigned word)
{
    belay_rc rc = belay_notify_post(w->fleet, w->words[word], NULL);

    (void)rc; /* a hint */
}

/* --- the dead --- */

static int64_t now_us(const struct watch *w)
{
    return w->clock.mono_us(w->clock.arg);
}

static bool has_dead(const struct watch *w)
{
    struct belay_fleet_member all[FLEET_SIZE];
    size_t n = 0;

    if (belay_fleet_members(w->fleet, all, FLEET_SIZE, &n, NULL) != BELAY_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (all[i].life == BELAY_LIFE_DEAD)
            return true;
    }
    return false;
}

/* Those of this handle who wait look for themselves. */
static void wake_ours(const struct watch *w)
{
    wake_post_bucket(store_driver(space_store(w->site.space))->hub, 0, 1);
}

/* What the dead held is lost; then, and only then, the fleet forgets them. */
static belay_rc bury(struct watch *w, bool somebody_died)
{
    int64_t lost = 0;
    belay_rc rc = exec_dead_sweep(&w->site, &lost, NULL);

    if (rc == BELAY_OK)
        rc = belay_fleet_sweep(w->fleet, NULL, NULL);
    if (rc == BELAY_OK)
        w->sweep_us = somebody_died ? now_us(w) + ARRIVED_US : DEADLINE_NONE;
    return rc;
}

/* One of those who heard of it, at a time; the others wait for it and look again. */
static belay_rc see_to_dead(struct watch *w, bool somebody_died)
{
    const struct belay_contest_terms terms = { w->id.member, strlen(w->id.member),
                                               SEAT_MS };
    struct belay_contest_claim claim;
    belay_rc rc = belay_contest_try(w->fleet, &deaths, &terms, &claim, NULL);

    if (rc == BELAY_OK && !claim.is_claimed) {
        rc = belay_contest_wait(w->fleet, &deaths, SEAT_MS, NULL, NULL);
        return rc == BELAY_TIMEOUT ? BELAY_OK : rc;
    }
    belay_rc buried = bury(w, somebody_died);
    if (rc == BELAY_OK) {
        rc = belay_contest_release(&claim.guard, NULL, NULL);
        (void)rc; /* too late: somebody else did it, too */
    }
    post(w, WORD_NEWS);
    return buried;
}

/* A store that is away comes back; meanwhile the dead stay where they are. */
static void note_failure(struct watch *w)
{
    w->backoff_us = w->backoff_us ? w->backoff_us * 2 : BACKOFF_FIRST_US;
    if (w->backoff_us > RELOOK_US)
        w->backoff_us = RELOOK_US;
}

/* --- the thread --- */

static void *watch_run(void *arg)
{
    struct watch *w = arg;
    uint32_t seen[WORDS] = { 0 }, news = 0;

    /* Until the join that started this thread is through. */
    (void)pthread_mutex_lock(&w->mutex);
    (void)pthread_mutex_unlock(&w->mutex);
    while (!atomic_load_explicit(&w->stop, memory_order_acquire)) {
        for (unsigned i = 0; i < WORDS; i++)
            seen[i] = belay_notify_value(w->fleet, w->words[i]);
        bool died = has_dead(w);
        if (died || w->sweep_us <= now_us(w)) {
            if (see_to_dead(w, died) == BELAY_OK && !(died && has_dead(w)))
                w->backoff_us = 0;
            else
                note_failure(w);
        }
        if (died || seen[WORD_NEWS] != news)
            wake_ours(w);
        news = seen[WORD_NEWS];

        int64_t until = w->sweep_us - now_us(w);
        int64_t ms = until < RELOOK_US ? (until > 0 ? until / 1000 + 1 : 0) : RELOOK_MS;
        if (w->backoff_us > 0) { /* nothing to hear of that is not known */
            uint32_t members = 0;
            belay_rc rc =
                belay_notify_wait(w->fleet, w->words[WORD_MEMBERS], seen[WORD_MEMBERS],
                                  w->backoff_us / 1000, NULL, &members, NULL);
            (void)rc;
            continue;
        }
        belay_rc rc =
            belay_fleet_wait_deaths(w->fleet, w->words, seen, WORDS, ms, NULL);
        (void)rc; /* whatever it was, it is looked at */
    }
    return NULL;
}

/* --- joining --- */

/* Small, since every store and namespace in use has one: a member holds the watch over the
 * dead and a few seats. */
static struct belay_fleet_options geometry(const char *dir)
{
    return (struct belay_fleet_options){ .size = sizeof(struct belay_fleet_options),
                                         .fleet_size = FLEET_SIZE,
                                         .subjects = 64,
                                         .holds = 8,
                                         .log_capacity = 16,
                                         .words = 8,
                                         .arena_len = 16384,
                                         .dir = dir,
                                         .label = "belay" };
}

/* Whoever is the last of them leaves nothing behind. */
static void leave(struct belay_fleet *f, const char *name, const char *dir)
{
    const struct belay_fleet_options options = geometry(dir);

    belay_fleet_leave(f);
    belay_rc rc = belay_fleet_remove(name, &options, NULL);
    (void)rc; /* others are there */
}

static belay_rc enter(struct watch *w, struct belay_error *err)
{
    const struct belay_fleet_options options = geometry(w->dir);
    belay_rc rc = belay_fleet_join(w->fleet_name, &options, &w->fleet, err);

    if (rc)
        return rc;
    rc = belay_identity_get(w->fleet, &w->id, err);
    for (unsigned i = 0; i < WORDS && rc == BELAY_OK; i++)
        rc = belay_notify_open(w->fleet, word_names[i], &w->words[i], err);
    if (rc == BELAY_OK && !thread_start(&w->thread, watch_run, w))
        rc = err_no_memory(err, "a thread that watches");
    if (rc) {
        leave(w->fleet, w->fleet_name, w->dir);
        w->fleet = NULL;
    }
    return rc;
}

static bool join(struct host *h)
{
    struct watch *w = watch_of(h);

    if (atomic_load_explicit(&h->is_joined, memory_order_acquire))
        return true;
    (void)pthread_mutex_lock(&w->mutex);
    if (w->state == STATE_NEW) {
        w->state = enter(w, NULL) == BELAY_OK ? STATE_JOINED : STATE_APART;
        if (w->state == STATE_JOINED) {
            h->self = (struct host_self){ .host = bytes_str(w->id.host),
                                          .boot = bytes_str(w->id.boot),
                                          .member = bytes_str(w->id.member),
                                          .pid = w->id.pid,
                                          .process_start = w->id.process_start };
            atomic_store_explicit(&h->is_joined, true, memory_order_release);
            post(w, WORD_MEMBERS); /* they watch over us from now on */
        }
    }
    bool is_joined = w->state == STATE_JOINED;
    (void)pthread_mutex_unlock(&w->mutex);
    return is_joined;
}

/* --- asking --- */

static bool fits(struct bytes text, char *out, size_t out_len)
{
    if (text.len >= out_len)
        return false;
    memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
    return true;
}

static bool is_dead(struct host *h, const struct lease_holder *who)
{
    struct belay_identity id = { .size = sizeof(id),
                                 .process_start = who->process_start };

    if (who->pid <= 0 || who->pid > INT32_MAX ||
        !fits(who->host, id.host, sizeof(id.host)) ||
        !fits(who->boot, id.boot, sizeof(id.boot)) ||
        !fits(who->member, id.member, sizeof(id.member)))
        return false;
    id.pid = (int32_t)who->pid;
    return belay_fleet_member_is_dead(watch_of(h)->fleet, &id) == BELAY_LIFE_DEAD;
}

/* --- seats --- */

static bool hold(struct host *h, struct host_seat *s)
{
    struct watch *w = watch_of(h);
    const struct belay_contest_subject subject = { s->label, s->label_len, KIND_SEAT };
    struct belay_contest_claim claim;

    if (!join(h))
        return true;
    const struct belay_contest_terms terms = { w->id.member, strlen(w->id.member),
                                               SEAT_MS };
    if (s->is_held && belay_contest_renew(&s->guard, SEAT_MS, NULL) == BELAY_OK)
        return true;
    s->is_held = false;
    if (belay_contest_try(w->fleet, &subject, &terms, &claim, NULL) != BELAY_OK)
        return true; /* H3: no room for it, or a fleet that is damaged */
    s->is_held = claim.is_claimed;
    if (claim.is_claimed)
        s->guard = claim.guard;
    return claim.is_claimed;
}

static void yield(struct host *h, struct host_seat *s)
{
    if (!s->is_held)
        return;
    belay_rc rc = belay_contest_release(&s->guard, NULL, NULL);
    (void)rc; /* it was another's already */
    s->is_held = false;
    post(watch_of(h), WORD_NEWS);
}

/* --- beginning and end --- */

static const struct host_ops watching = {
    .join = join, .is_dead = is_dead, .hold = hold, .yield = yield
};

belay_rc host_watch_open(struct host **out, struct space *space, int64_t grace_ms,
                         const struct host_watch_options *options,
                         struct belay_error *err)
{
    struct watch *w = calloc(1, sizeof(*w));

    if (!w)
        return err_no_memory(err, "a host");
    w->fleet_name = strdup(options->fleet);
    w->dir = options->dir ? strdup(options->dir) : NULL;
    if (!w->fleet_name || (options->dir && !w->dir) ||
        pthread_mutex_init(&w->mutex, NULL)) {
        free(w->fleet_name);
        free(w->dir);
        free(w);
        return err_no_memory(err, "a host");
    }
    w->host.ops = &watching;
    w->host.binds = options->binds;
    w->site =
        (struct exec_site){ .space = space, .grace_ms = grace_ms, .host = &w->host };
    w->clock = clock_system();
    *out = &w->host;
    return BELAY_OK;
}

void host_watch_close(struct host *h)
{
    struct watch *w = watch_of(h);

    if (!h)
        return;
    if (w->fleet) {
        atomic_store_explicit(&w->stop, true, memory_order_release);
        post(w, WORD_MEMBERS);
        (void)pthread_join(w->thread, NULL);
        leave(w->fleet, w->fleet_name, w->dir);
    }
    (void)pthread_mutex_destroy(&w->mutex);
    free(w->fleet_name);
    free(w->dir);
    free(w);
}

belay_rc host_watch_examine(const struct host_watch_options *options, int *out_others,
                            struct belay_error *err)
{
    const struct belay_fleet_options o = geometry(options->dir);
    struct belay_fleet_status status = { .size = sizeof(status) };
    struct belay_fleet *f;
    belay_rc rc = belay_fleet_join(options->fleet, &o, &f, err);

    if (rc)
        return rc;
    rc = belay_fleet_status(f, &status, err);
    if (rc == BELAY_OK)
        *out_others = status.members - 1;
    leave(f, options->fleet, options->dir);
    return rc;
}
