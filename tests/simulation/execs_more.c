/* What operators, schedulers and timers do. */
#include "execs.h"

#include <stdio.h>
#include <stdlib.h>

#include "work/epoch.h"

const char *xany(struct actor *a, unsigned draw)
{
    struct execs *w = a->sim->execs;
    struct bytes copy;

    if (w->cur->n_rows == 0)
        return NULL;
    if (!arena_copy(&w->arena, bytes_str(w->cur->row[draw % w->cur->n_rows].name),
                    &copy))
        abort();
    return (const char *)copy.ptr;
}

/* --- operators --- */

/* A lease that is named and not the current one is lost. */
static bool is_refused(const struct xcall *c, belay_rc rc)
{
    return rc == (c->kind == X_REVOKE ? BELAY_LEASE_LOST : BELAY_WRONG_STATE);
}

/* A refusal must be true, and so must not_found. */
static void check_control(struct xcall *c, belay_rc rc, const struct belay_error *err)
{
    struct execs *w = c->actor->sim->execs;
    const struct xrow *r = xrow_at(w->cur, c->id);
    bool ended = r && xis_terminal(r);
    bool calm = xis_calm(c);

    if (rc == BELAY_NOT_FOUND) {
        if (r)
            violation(w->s, "answer", "an execution is said to be gone and is not");
    } else if (is_refused(c, rc)) {
        if (!calm || !r)
            return;
        bool other_lease = c->lease && xis_leased(r) &&
                           c->lease != (uint64_t)r->v[EXEC_LEASE + LEASE_ID];
        bool may = c->kind == X_REPLAY ? ended && r->v[EXEC_REPLAYS] < BELAY_MAX_REPLAYS
                   : c->kind == X_REVOKE ? !other_lease
                                         : !ended;
        if (may)
            violation(w->s, "answer", "refused (%s) although nothing is in its way",
                      err->reason);
    } else if (rc) {
        xcall_refuse(c, rc, err);
    } else if (c->kind == X_CANCEL && c->changed == 0 && calm &&
               !(r && r->v[EXEC_OUTCOME] == BELAY_TERMINAL_CANCELLED)) {
        violation(w->s, "L9", "said to be cancelled, and it is not");
    } else if (c->kind == X_REPLAY && c->changed != 1) {
        violation(w->s, "L9", "said to be replayed, and it is not");
    }
}

/* One that stands there, if there is one, mostly; else any. */
static const char *any_in(struct actor *a, enum xplace place)
{
    struct execs *w = a->sim->execs;
    size_t from = pick_of(a->op, 2, X_ROWS);

    for (size_t i = 0; i < w->cur->n_rows && pick_of(a->op, 6, 8) > 0; i++) {
        size_t k = (from + i) % w->cur->n_rows;
        if (xplace_of(&w->cur->row[k]) == place)
            return xany(a, (unsigned)k);
    }
    return xany(a, pick_of(a->op, 2, 1U << 20));
}

static void control(struct actor *a, enum xcall_kind kind)
{
    static const int priorities[] = { 0, 3, 700, BELAY_PRIORITY_MAX };
    const char *id = kind == X_REPLAY   ? any_in(a, XP_DONE)
                     : kind == X_REVOKE ? any_in(a, XP_LEASED)
                                        : xany(a, pick_of(a->op, 2, 1U << 20));
    const struct xhandle *h = xhandle_any(a, pick_of(a->op, 3, 1U << 30));
    struct exec_handle said = { .backend = 0 };
    struct exec_site site;
    struct belay_error err;
    bool revoked = false;
    char lease[64] = "";
    belay_rc rc;

    if (!id || !xsite(a, &site))
        return;
    if (h && pick_of(a->op, 4, 3) == 0 && handle_decode(&h->h, &said, &err) == BELAY_OK)
        (void)snprintf(lease, sizeof(lease), "%.*s", (int)said.lease_id.len,
                       (const char *)said.lease_id.ptr);
    struct xcall *c = xcall_begin(a, kind);
    c->id = xstr(id);
    if (kind == X_CANCEL) {
        c->reason = xstr("not wanted");
        rc = exec_cancel(&site, id, "not wanted", NULL, &err);
    } else if (kind == X_REPLAY) {
        rc = exec_replay(&site, id, "once more", &err);
    } else if (kind == X_PRIORITY) {
        c->priority = priorities[pick_of(a->op, 5, COUNT_OF(priorities))];
        rc = exec_set_priority(&site, id, (int)c->priority, &err);
    } else {
        c->reason = xstr("too slow");
        c->lease = lease[0] ? xstr(lease) : 0;
        rc =
            exec_revoke(&site, id, lease[0] ? lease : NULL, "too slow", &revoked, &err);
    }
    if (!xcall_end(c, rc))
        return;
    check_control(c, rc, &err);
    if (kind == X_REVOKE && rc == BELAY_OK && revoked != (c->changed == 1))
        violation(a->sim, "L4", "revoke is wrong about what it did");
}

void op_xcancel(struct actor *a)
{
    control(a, X_CANCEL);
}

void op_xreplay(struct actor *a)
{
    control(a, X_REPLAY);
}

void op_xpriority(struct actor *a)
{
    control(a, X_PRIORITY);
}

void op_xrevoke(struct actor *a)
{
    control(a, X_REVOKE);
}

void op_xtag(struct actor *a)
{
    static const char *const keys[X_TAGS] = { "k0", "k1" };
    static const char *const values[] = { "v0", "v1", "v2", "v3" };
    const char *id = xany(a, pick_of(a->op, 2, 1U << 20));
    struct belay_tag tags[X_TAGS];
    struct exec_site site;
    struct belay_error err;
    size_t n = 0;

    if (!id || !xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_TAG);
    c->id = xstr(id);
    for (unsigned k = 0; k < X_TAGS; k++) {
        unsigned value = pick_of(a->op, 5 + k, 5);
        if (value == 0 && n + 1 < X_TAGS - k + n)
            continue; /* as it is */
        c->tag[k] = value == 4 || value == 0 ? 9 : value;
        tags[n++] =
            (struct belay_tag){ keys[k], c->tag[k] == 9 ? NULL : values[value] };
    }
    belay_rc rc = exec_tag(&site, id, tags, n, &err);
    if (xcall_end(c, rc))
        check_control(c, rc, &err);
}

void op_xepoch(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct epoch_info info;
    struct exec_site site;
    struct belay_error err;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_RAISE);
    belay_rc rc =
        epoch_raise(site.space, bytes_str("simulated"), "sim", &arena, &info, &err);
    if (!xcall_end(c, rc))
        return;
    if (rc)
        xcall_refuse(c, rc, &err);
    else if (c->changed != 1)
        violation(a->sim, "L2", "the epoch is said to be raised and is not");
}

/* --- schedulers --- */

static const char *const workers[] = { "ann", "bob" };

/* A grant that was heard of; the oldest goes. */
static void keep_grant(struct execs *w, const struct belay_grant *g)
{
    size_t at = w->n_grants++ % COUNT_OF(w->grant);

    (void)snprintf(w->grant[at], sizeof(w->grant[at]), "%s", g->grant_id);
    w->grant_worker[at] = strcmp(g->worker, workers[0]) != 0;
}

static void check_grant(struct xcall *c, const struct belay_grant *g)
{
    struct execs *w = c->actor->sim->execs;
    const struct xrow *want[X_ROWS];

    if (!g->grant_id) {
        if (c->steps[XS_SET_ASIDE] > 0)
            violation(w->s, "L8", "something was set aside and not handed out");
        else if (xis_calm(c) && xis_alone(c) &&
                 xexpected(w, w->cur, c, c->now_ms, want) > 0)
            violation(w->s, "L12",
                      "nothing was set aside although it was the turn of %s",
                      want[0]->name);
        return;
    }
    if (c->steps[XS_SET_ASIDE] != 1 || c->grant != xstr(g->grant_id))
        violation(w->s, "L8", "another grant was handed out than was given");
    keep_grant(w, g);
}

void op_xgrant(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const int64_t times_ms[] = { 1, 50, 2000, 60000 };
    const char *id = pick_of(a->op, 1, 3) == 0 ? any_in(a, XP_READY) : NULL;
    struct belay_grant grant = { .grant_id = NULL };
    struct xpolicy p;
    struct exec_site site;
    struct belay_error err;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, id ? X_GRANT_ONE : X_GRANT);
    int64_t ms = times_ms[pick_of(a->op, 3, COUNT_OF(times_ms))];
    xpolicy_make(a, 30, &p, c);
    c->claims = false;
    c->max = 1;
    c->ttl_ms = ms;
    c->id = xstr(id);
    belay_rc rc = id ? exec_grant_one(&site, id, p.p.worker, ms, &arena, &grant, &err)
                     : exec_grant(&site, &p.p, ms, &arena, &grant, &err);
    if (!xcall_end(c, rc))
        return;
    const struct xrow *r = xrow_at(a->sim->execs->cur, c->id);
    bool refused = id && (rc == BELAY_WRONG_STATE || (rc == BELAY_NOT_FOUND && !r));
    if (refused && rc == BELAY_WRONG_STATE && xis_calm(c) && r &&
        xplace_of(r) == XP_READY && xtime(r, EXEC_DEADLINE_AT_MS) > c->now_ms)
        violation(a->sim, "answer", "not set aside (%s) although it can be claimed",
                  err.reason);
    if (refused)
        return;
    if (rc)
        xcall_refuse(c, rc, &err);
    else
        check_grant(c, &grant);
}

/* A refusal is true. */
static void check_redeem(struct xcall *c, belay_rc rc, const struct belay_error *err)
{
    struct execs *w = c->actor->sim->execs;
    const struct xgrant *g = xgrant_at(w->cur, c->grant);
    const struct xrow *r = g ? xrow_at(w->cur, g->execution) : NULL;

    if (rc != BELAY_NOT_FOUND && rc != BELAY_WRONG_STATE)
        xcall_refuse(c, rc, err);
    else if (xis_calm(c) && r && g->worker == c->worker && g->until_ms > c->now_ms &&
             xtime(r, EXEC_DEADLINE_AT_MS) > c->now_ms)
        violation(w->s, "L5", "a grant that holds was refused: %s", err->reason);
    else if (xis_calm(c) && (rc == BELAY_NOT_FOUND) != (g == NULL))
        violation(w->s, "answer", "a grant is said to be there, or not, wrongly");
}

void op_xredeem(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const int64_t leases_ms[] = { -1, 20, 3000, 0 };
    struct execs *w = a->sim->execs;
    struct belay_work work;
    struct exec_site site;
    struct belay_error err;

    if (w->n_grants == 0 || !xsite(a, &site))
        return;
    size_t back = pick_of(a->op, 1, 2) ? 0 : pick_of(a->op, 2, 6);
    size_t at = w->n_grants - 1 - (back < w->n_grants ? back : 0);
    const char *id = w->grant[at % COUNT_OF(w->grant)];
    unsigned worker =
        w->grant_worker[at % COUNT_OF(w->grant)] ^ (pick_of(a->op, 3, 5) == 0);
    int64_t ms = leases_ms[pick_of(a->op, 4, COUNT_OF(leases_ms))];
    char copy[48];
    (void)snprintf(copy, sizeof(copy), "%s", id);
    struct xcall *c = xcall_begin(a, X_REDEEM);
    c->grant = xstr(copy);
    c->worker = xstr(workers[worker]);
    c->ttl_ms = ms < 0 ? 0 : ms == 0 ? BELAY_EXECUTION_LEASE_MS : ms;
    belay_rc rc =
        exec_claim_grant(&site, copy, workers[worker], ms, &arena, &work, &err);
    if (!xcall_end(c, rc))
        return;
    if (rc)
        check_redeem(c, rc, &err);
    else
        xworks_take(c, &work, 1);
}

/* --- timers --- */

bool xdo_timers(struct actor *a, struct belay_timer_report *out)
{
    struct exec_site site;
    struct belay_error err;

    if (!xsite(a, &site))
        return false;
    struct xcall *c = xcall_begin(a, X_TIMERS);
    belay_rc rc = exec_timers_step(&site, NULL, out, &err);
    if (!xcall_end(c, rc))
        return false;
    if (rc) {
        xcall_refuse(c, rc, &err);
        return false;
    }
    if (out->promoted != c->steps[XS_PROMOTE] ||
        out->expired_leases != c->steps[XS_LOSE] ||
        out->timed_out != c->steps[XS_TIMEOUT_RETRY] + c->steps[XS_TIMEOUT_FAIL] ||
        out->expired != c->steps[XS_EXPIRE] || out->purged != c->steps[XS_PURGE] ||
        out->capped != c->steps[XS_CAP] || out->keys != c->keys)
        violation(a->sim, "once", "timers tell of other things than they did");
    return true;
}

void op_xtimers(struct actor *a)
{
    struct belay_timer_report report;

    if (a->sim->swarm.oracle != ORACLE_NONE && (a->op->r >> 9) % 4 != 0)
        xdo_mourn(a);
    else
        (void)xdo_timers(a, &report);
}
