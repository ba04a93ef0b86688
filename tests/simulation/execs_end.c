/* What must be true when everything is quiet: whatever lives can be claimed and ends, what
 * has ended goes when its retention is over, and nothing of it is left. */
#include "execs.h"

#include "work/check.h"

#define ROUNDS_MAX 400
#define LONGEST_MS ((int64_t)15 * 60 * 1000)

static size_t living(const struct execs *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->cur->n_rows; i++)
        n += !xis_terminal(&w->cur->row[i]);
    return n;
}

/* --- ending all that lives --- */

static void work_off(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const char *const lanes[] = { "l0", "l1", "l2", "l3" };
    static const char *const has[] = { "a", "b" };
    const struct belay_claim_policy policy = { .size = sizeof(policy),
                                               .lanes = lanes,
                                               .n_lanes = COUNT_OF(lanes),
                                               .worker = "audit",
                                               .capabilities = has,
                                               .n_capabilities = COUNT_OF(has),
                                               .max = X_ITEMS,
                                               .lease_ms = 1000 };
    struct belay_works works = { .n = 0 };
    const struct xhandle *h[X_ITEMS];
    struct exec_site site;
    struct belay_error err;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_CLAIM);
    c->lanes = 15;
    c->has = 3;
    c->max = policy.max;
    c->worker = xstr(policy.worker);
    c->ttl_ms = policy.lease_ms;
    belay_rc rc = exec_claim(&site, &policy, &arena, &works, &err);
    if (!xcall_end(c, rc))
        return;
    if (rc) {
        violation(a->sim, "liveness", "without faults a claim answered: %s",
                  err.message);
        return;
    }
    xworks_take(c, works.work, works.n);
    a->sim->execs->n_handles -= works.n; /* the others stay */
    for (size_t i = 0; i < works.n && !a->sim->rule; i++) {
        h[0] = xhandle_keep(a->sim->execs, &works.work[i].handle);
        xdo_complete(a, h, 1, false);
        a->sim->execs->n_handles--;
    }
}

/* When something happens by itself, as the rows tell. */
static int64_t next_time(const struct execs *w)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < w->cur->n_rows; i++) {
        const struct xrow *r = &w->cur->row[i];
        int64_t at = xis_terminal(r)              ? INT64_MAX
                     : xplace_of(r) == XP_LEASED  ? xlost_at(r)
                     : xplace_of(r) == XP_DELAYED ? r->v[EXEC_DELAY_UNTIL_MS]
                     : xplace_of(r) == XP_GRANTED ? r->v[EXEC_GRANT_UNTIL_MS]
                                                  : INT64_MAX;
        next = at < next ? at : next;
    }
    return next;
}

static void end_all(struct actor *a)
{
    struct sim *s = a->sim;
    struct execs *w = s->execs;
    struct belay_timer_report report;
    int64_t begun_ms = w->latest_ms;

    for (int i = 0; i < ROUNDS_MAX && living(w) > 0 && !s->rule; i++) {
        work_off(a);
        int64_t next = next_time(w);
        if (living(w) == 0 || s->rule)
            break;
        if (next != INT64_MAX && next > w->latest_ms)
            s->mono_us += (next - w->latest_ms) * 1000;
        if (i % 2 == 0)
            (void)xdo_timers(a, &report);
        if (w->latest_ms - begun_ms > LONGEST_MS)
            break;
        s->mono_us += 1000;
    }
    if (living(w) > 0)
        violation(s, "liveness", "%zu executions do not end", living(w));
}

/* --- the product's own check --- */

static void found(void *arg, const struct finding *f)
{
    struct execs *w = arg;

    /* Where nothing was ever committed there may be slots, and no rows of the namespace. */
    if (w->no == 0 && strcmp(f->what, "missing_row") == 0)
        return;
    if (f->level == FINDING_BAD)
        violation(w->s, "check", "%s %.*s: %s", f->what, (int)f->entity.len,
                  (const char *)f->entity.ptr, f->message);
}

static void check_all(struct actor *a)
{
    struct check_counts counts;
    struct belay_error err;

    if (check_store(a->sim->running->front->store, found, a->sim->execs, &counts, &err))
        violation(a->sim, "check", "check_store: %s", err.message);
}

/* --- forgetting --- */

static void forget_all(struct actor *a)
{
    struct execs *w = a->sim->execs;
    struct belay_timer_report report = { .more = true };

    a->sim->mono_us += (BELAY_RETENTION_MS + BELAY_KEY_WINDOW_MS) * 1000;
    for (int i = 0; i < 20 && report.more && !a->sim->rule; i++) {
        if (!xdo_timers(a, &report))
            return;
    }
    if (w->cur->n_rows + w->cur->n_attempts + w->cur->n_heads + w->cur->n_keys +
            w->cur->n_grants >
        0)
        violation(a->sim, "W5", "something is left when everything is over");
}

/* A process of its own, whose clock is right: it agrees with the latest time that the
 * store had, which is the mark, and goes on from there. */
void execs_audit_begin(struct actor *a)
{
    struct sim *s = a->sim;
    struct front *f = front_open(s, 0);
    struct belay_clock clock;

    a->n_ops = 1;
    if (!f)
        return;
    a->front = f;
    clock = front_clock(f);
    if (s->execs->latest_ms > 0)
        f->wall_offset_ms = s->execs->latest_ms - clock.wall_ms(clock.arg);
}

void execs_audit(struct actor *a)
{
    struct sim *s = a->sim;
    struct exec_site site;
    int64_t now_ms = 0;

    if (!xsite(a, &site) || space_now(site.space, &now_ms, NULL)) {
        if (!s->rule && s->execs->n_calls < X_CALLS)
            violation(s, "liveness", "without faults a store cannot be opened");
        return;
    }
    s->mono_us += 60000000; /* late for whatever the dead have held */
    end_all(a);
    if (!s->rule)
        check_all(a);
    if (!s->rule)
        forget_all(a);
    if (!s->rule)
        check_all(a);
}
