/* Looking until there is something to see, without looking again and again. */
#include "work/exec_show.h"

/* Who waits looks again after this, woken or not. */
#define RELOOK_US ((int64_t)5 * 1000000)
/* Where what was posted is seen late: the first look after a wake-up that showed nothing,
 * then twice as long, up to the longest; this many times. */
#define SOON_US ((int64_t)5000)
#define SOON_LONGEST_US ((int64_t)200000)
#define SOON_TIMES 10

/* ms from now_us, in microseconds. */
static int64_t later_us(int64_t now_us, int64_t ms)
{
    int64_t us;

    if (__builtin_mul_overflow(ms, 1000, &us) ||
        __builtin_add_overflow(now_us, us, &us))
        return DEADLINE_NONE;
    return us;
}

struct patience {
    const struct exec_watch *w;
    const struct belay_clock *clock;
    struct listener *l;
    int64_t deadline_us;
    unsigned soon; /* looks that are left after the last wake-up */
    int64_t soon_us;
};

/* Until it is worth looking again. */
static belay_rc linger(struct patience *p, enum look seen, struct belay_error *err)
{
    struct belay_error why = { .code = 0 };
    int64_t until = p->clock->mono_us(p->clock->arg) + RELOOK_US;

    if (seen == LOOK_NEWS)
        p->soon = 0;
    if (p->soon > 0) {
        p->soon--;
        until = p->clock->mono_us(p->clock->arg) + p->soon_us;
        p->soon_us =
            p->soon_us * 2 < SOON_LONGEST_US ? p->soon_us * 2 : SOON_LONGEST_US;
    }
    belay_rc rc =
        listener_wait(p->l, until < p->deadline_us ? until : p->deadline_us, &why);
    if (rc == BELAY_OK && p->w->late) {
        p->soon = SOON_TIMES;
        p->soon_us = SOON_US;
    }
    if (rc == BELAY_TIMEOUT)
        return BELAY_OK;
    if (rc && err)
        *err = why;
    return rc;
}

static belay_rc watch(struct patience *p, bool *out_done, struct belay_error *err)
{
    for (;;) {
        /* Taken before the look: one look is always made after the deadline. */
        bool last = p->clock->mono_us(p->clock->arg) >= p->deadline_us;
        enum look seen = LOOK_NOTHING;
        belay_rc rc = p->w->look(p->w->arg, &seen, err);
        *out_done = seen == LOOK_DONE;
        if (rc || *out_done || last)
            return rc;
        rc = linger(p, seen, err);
        if (rc)
            return rc;
    }
}

belay_rc exec_watch(const struct exec_watch *w, bool *out_done, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct patience p = { .w = w, .clock = store_clock_hook(space_store(w->space)) };
    enum look seen = LOOK_NOTHING;
    belay_rc rc;

    *out_done = false;
    if (w->wait_ms < 0 || w->wait_ms > WAIT_MS_MAX)
        return err_reason(err, BELAY_INVALID, "wait",
                          "wait: %lld ms, must be 0 to %lld (24 hours)",
                          (long long)w->wait_ms, (long long)WAIT_MS_MAX);
    if (w->wait_ms == 0) {
        rc = w->look(w->arg, &seen, err);
        *out_done = rc == BELAY_OK && seen == LOOK_DONE;
        return rc;
    }
    p.deadline_us = later_us(p.clock->mono_us(p.clock->arg), w->wait_ms);
    rc = space_listen(w->space, &w->topic, 1, w->cancel, &arena, &p.l, err);
    if (rc == BELAY_OK)
        rc = watch(&p, out_done, err);
    listener_close(p.l);
    return rc;
}

/* --- until it has ended --- */

struct waiting {
    const struct exec_site *site;
    struct bytes id;
    struct belay_cancel *cancel;
    enum belay_state state;
    bool terminal;
};

static belay_rc state_body(struct txn *t, void *arg)
{
    struct waiting *w = arg;
    struct exec e;
    belay_rc rc = exec_get(t, w->id, &e);

    if (rc)
        return rc;
    w->state = vector_state(&e.vector);
    w->terminal = vector_is_terminal(&e.vector);
    return BELAY_OK;
}

static belay_rc look_at_state(void *arg, enum look *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct waiting *w = arg;
    const struct txn_options options = { .cancel = w->cancel, .read_only = true };
    belay_rc rc = txn_run(w->site->space, state_body, w, &options, &arena, err);

    *out = w->terminal ? LOOK_DONE : LOOK_NOTHING;
    return rc;
}

belay_rc exec_wait(const struct exec_site *site, const char *execution_id,
                   int64_t wait_ms, struct belay_cancel *cancel, int *out_state,
                   struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct waiting w = { .site = site,
                         .id = bytes_str(execution_id),
                         .cancel = cancel };
    struct exec_watch watching = { .space = site->space,
                                   .wait_ms = wait_ms,
                                   .cancel = cancel,
                                   .look = look_at_state,
                                   .arg = &w };
    bool done = false;
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc)
        return rc;
    if (!exec_topic(w.id, &arena, &watching.topic))
        return err_no_memory(err, "a topic");
    rc = exec_watch(&watching, &done, err);
    if (rc)
        return rc;
    *out_state = (int)w.state;
    if (done)
        return BELAY_OK;
    rc = err_set(err, BELAY_TIMEOUT, "execution %s: is %s after %lld ms", execution_id,
                 vector_name(BELAY_DIM_STATE, (int)w.state), (long long)wait_ms);
    err_entity(err, w.id);
    return rc;
}
