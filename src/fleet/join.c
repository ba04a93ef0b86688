#include <stdio.h>
#include <sys/mman.h>

#include "fleet/impl.h"
#include "fleet/sigbus.h"

#define FLAGS (2U * BELAY_FLEET_ORDERED_EVENTS - 1U) /* all there are */

static belay_rc read_options(const struct belay_fleet_options *options,
                             struct belay_fleet_options *out, struct belay_error *err)
{
    struct belay_fleet_options o = { .size = sizeof(o) };

    if (options && options->size != sizeof(o))
        return err_reason(err, BELAY_MISUSE, "size", "options of another size");
    if (options)
        o = *options;
    if ((o.flags & ~FLAGS) != 0 || o.fleet_size < BELAY_NONE || o.subjects < 0 ||
        o.holds < 0 || o.words < 0 || o.log_capacity < 0 || o.arena_len < 0)
        return err_reason(err, BELAY_INVALID, "geometry", "an option is out of range");
    if ((o.flags & BELAY_FLEET_NODE) != 0 && o.node < 0)
        return err_reason(err, BELAY_INVALID, "node_range", "a node below zero");
    if (!o.clock.wall_ms && !o.clock.mono_us && !o.clock.sleep_us)
        o.clock = clock_system();
    else if (!o.clock.wall_ms || !o.clock.mono_us || !o.clock.sleep_us)
        return err_reason(err, BELAY_INVALID, "clock", "half a clock");
    *out = o;
    return BELAY_OK;
}

/* Makes a handle over the space, which is the handle's then, fd too, also on failure. */
static belay_rc new_handle(struct space *space, int fd,
                           const struct belay_fleet_options *o, fleet_step_fn step,
                           void *arg, struct belay_fleet **out, struct belay_error *err)
{
    struct belay_fleet *f;
    belay_rc rc = handle_new(space, &f, err);

    if (rc != BELAY_OK) {
        file_close(&fd);
        space_release(space);
        return rc;
    }
    f->fd = fd;
    f->step = step;
    f->step_arg = arg;
    f->clock = o->clock;
    f->is_one_thread = (o->flags & BELAY_FLEET_ONE_THREAD) != 0;
    f->orders_events = (o->flags & BELAY_FLEET_ORDERED_EVENTS) != 0;
    if (o->label)
        (void)snprintf(f->label, sizeof(f->label), "%s", o->label);
    *out = f;
    return BELAY_OK;
}

static belay_rc become_member(struct belay_fleet *f,
                              const struct belay_fleet_options *o,
                              struct belay_fleet **out, struct belay_error *err)
{
    int32_t wanted = (o->flags & BELAY_FLEET_NODE) != 0 ? o->node : -1;
    belay_rc rc = member_join(f, wanted, err);

    if (rc == BELAY_OK)
        *out = f;
    else
        handle_free(f);
    return rc;
}

static belay_rc join_once(const char *name, const struct belay_fleet_options *o,
                          fleet_step_fn step, void *arg, struct belay_fleet **out,
                          struct belay_error *err)
{
    struct belay_fleet stepper = { .step = step, .step_arg = arg };
    struct belay_fleet *f = NULL;
    struct space *space = NULL;
    int fd = -1;
    belay_rc rc = segment_open(name, o, false, &stepper, &space, &fd, err);

    if (rc != BELAY_OK)
        return rc;
    if (!space->is_shared) {
        space->fd = fd;
        rc = segment_reopen(space, &fd, err);
        if (rc != BELAY_OK) {
            space_release(space);
            return rc;
        }
    }
    rc = new_handle(space, fd, o, step, arg, &f, err);
    if (rc != BELAY_OK)
        return rc;
    if ((o->flags & BELAY_FLEET_GUARD_SIGBUS) != 0)
        rc = sigbus_guard(err);
    if (rc != BELAY_OK) {
        handle_free(f);
        return rc;
    }
    return become_member(f, o, out, err);
}

belay_rc fleet_join_stepped(const char *name, const struct belay_fleet_options *options,
                            fleet_step_fn step, void *arg, struct belay_fleet **out,
                            struct belay_error *err)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    belay_rc rc = read_options(options, &o, err);

    if (rc != BELAY_OK)
        return rc;
    if (!fleet_name_is_valid(name))
        return err_reason(err, BELAY_INVALID, "name",
                          "a fleet's name is [a-z0-9][a-z0-9_-]{0,62}");
    for (int turn = 0;; turn++) {
        rc = join_once(name, &o, step, arg, out, err);
        /* Removed between opening and joining: open again, or create. */
        if (rc != BELAY_NOT_FOUND || (o.flags & BELAY_FLEET_MUST_EXIST) != 0 ||
            turn == 100)
            return rc;
    }
}

belay_rc belay_fleet_join(const char *name, const struct belay_fleet_options *options,
                          struct belay_fleet **out, struct belay_error *err)
{
    return fleet_join_stepped(name, options, NULL, NULL, out, err);
}

belay_rc belay_fleet_join_beside(struct belay_fleet *f,
                                 const struct belay_fleet_options *options,
                                 struct belay_fleet **out, struct belay_error *err)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    struct belay_fleet *beside;
    int fd = -1;
    belay_rc rc = fleet_check_member(f, err);

    if (rc == BELAY_OK)
        rc = read_options(options, &o, err);
    if (rc == BELAY_OK)
        rc = segment_reopen(f->space, &fd, err);
    if (rc != BELAY_OK)
        return rc;
    atomic_fetch_add(&f->space->refs, 1);
    rc = new_handle(f->space, fd, &o, f->step, f->step_arg, &beside, err);
    return rc == BELAY_OK ? become_member(beside, &o, out, err) : rc;
}

belay_rc belay_fleet_observe(const char *name,
                             const struct belay_fleet_options *options,
                             struct belay_fleet **out, struct belay_error *err)
{
    struct belay_fleet_options o = { .size = sizeof(o) };
    struct belay_fleet *f = NULL;
    struct space *space = NULL;
    int fd = -1;
    belay_rc rc = read_options(options, &o, err);

    if (rc != BELAY_OK)
        return rc;
    if (!fleet_name_is_valid(name))
        return err_reason(err, BELAY_INVALID, "name",
                          "a fleet's name is [a-z0-9][a-z0-9_-]{0,62}");
    if ((o.flags & BELAY_FLEET_PRIVATE) != 0)
        return err_reason(err, BELAY_INVALID, "observer",
                          "a private fleet has no name");
    rc = segment_open(name, &o, true, NULL, &space, &fd, err);
    if (rc == BELAY_OK)
        rc = new_handle(space, fd, &o, NULL, NULL, &f, err);
    if (rc != BELAY_OK)
        return rc;
    if ((o.flags & BELAY_FLEET_GUARD_SIGBUS) != 0)
        rc = sigbus_guard(err);
    if (rc != BELAY_OK) {
        handle_free(f);
        return rc;
    }
    f->is_observer = true;
    ring_bind(&f->log, f, space->maps[BELAY_CONTEST_RING_KIND]);
    *out = f;
    return BELAY_OK;
}

void belay_fleet_leave(struct belay_fleet *f)
{
    if (!f || f->magic != FLEET_MAGIC)
        return;
    if (!f->is_observer)
        member_leave(f);
    handle_free(f);
}

void fleet_abandon(struct belay_fleet *f)
{
    keeper_stop(f->keeper, true);
    handle_free(f);
}
