#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "work/host_watch_impl.h"

/* Kind of the value that says how far sweeps are. */
#define KIND_SWEPT 7

static const char *const word_names[WORDS] = { "members", "news" };

static struct watch *watch_of(struct host *h)
{
    return (struct watch *)h;
}

void host_post(struct watch *w, unsigned word)
{
    belay_rc rc = belay_notify_post(w->fleet, w->words[word], NULL);

    (void)rc; /* a hint */
}

/* --- joining --- */

/* Small, since every store and namespace in use has one: a member holds the watch over the
 * dead and a few seats. */
static struct belay_fleet_options geometry(const char *dir, const char *label)
{
    return (struct belay_fleet_options){ .size = sizeof(struct belay_fleet_options),
                                         .fleet_size = FLEET_SIZE,
                                         .subjects = 64,
                                         .holds = 8,
                                         .log_capacity = 16,
                                         .words = 8,
                                         .arena_len = 16384,
                                         .dir = dir,
                                         .label = label };
}

/* Whoever is the last of them leaves nothing behind. */
static void leave(struct belay_fleet *f, const char *name, const char *dir)
{
    const struct belay_fleet_options options = geometry(dir, NULL);

    belay_fleet_leave(f);
    belay_rc rc = belay_fleet_remove(name, &options, NULL);
    (void)rc; /* others are there */
}

static belay_rc enter(struct watch *w, struct belay_error *err)
{
    const struct belay_fleet_options options =
        geometry(w->dir, w->host.binds ? LABEL_BOUND : LABEL_WATCH);
    belay_rc rc = belay_fleet_join(w->fleet_name, &options, &w->fleet, err);

    if (rc)
        return rc;
    rc = belay_identity_get(w->fleet, &w->id, err);
    for (unsigned i = 0; i < WORDS && rc == BELAY_OK; i++)
        rc = belay_notify_open(w->fleet, word_names[i], &w->words[i], err);
    if (rc == BELAY_OK)
        rc = belay_value_open(w->fleet, KIND_SWEPT, "swept", sizeof(int64_t), 1,
                              &w->swept, err);
    if (rc == BELAY_OK && !thread_start(&w->thread, host_watch_run, w))
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
            host_post(w, WORD_MEMBERS); /* they watch over us from now on */
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
    /* Who takes a seat from the dead sweeps them from the fleet, and nobody of another pid
     * namespace can tell any more that they died: what they held goes first. */
    belay_rc rc = host_watch_settle(h, NULL);
    (void)rc; /* it costs time, and no more */
    if (belay_contest_try(w->fleet, &subject, &terms, &claim, NULL) != BELAY_OK)
        return true; /* H3: no room for it, or a fleet that is damaged */
    s->is_held = claim.is_claimed;
    if (claim.is_claimed) {
        s->guard = claim.guard;
        host_post(w, WORD_MEMBERS); /* who was between look and sleep looks again */
    }
    return claim.is_claimed;
}

static void yield(struct host *h, struct host_seat *s)
{
    if (!s->is_held)
        return;
    belay_rc rc = belay_contest_release(&s->guard, NULL, NULL);
    (void)rc; /* it was another's already */
    s->is_held = false;
    host_post(watch_of(h), WORD_NEWS);
}

/* --- beginning and end --- */

static const struct host_ops watching = {
    .join = join,
    .is_dead = is_dead,
    .hold = hold,
    .yield = yield,
    .settle = host_watch_settle,
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
    /* The attributes are the default ones: that cannot fail. */
    (void)pthread_mutex_init(&w->mutex, NULL);
    (void)pthread_mutex_init(&w->settling, NULL);
    if (!w->fleet_name || (options->dir && !w->dir)) {
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
        host_post(w, WORD_MEMBERS);
        (void)pthread_join(w->thread, NULL);
        leave(w->fleet, w->fleet_name, w->dir);
    }
    (void)pthread_mutex_destroy(&w->settling);
    (void)pthread_mutex_destroy(&w->mutex);
    free(w->fleet_name);
    free(w->dir);
    free(w);
}

belay_rc host_watch_examine(const struct host_watch_options *options, int *out_others,
                            struct belay_error *err)
{
    const struct belay_fleet_options o = geometry(options->dir, LABEL_WATCH);
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
