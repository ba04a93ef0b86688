/* The host of a simulated process.  What it says of others is right, late, or a lie: nothing
 * that is promised may depend on which (C5).  Processes are fronts; one that was restarted is
 * dead.  Some of them are of another boot, about which nobody can know. */
#include "execs.h"

#include <stdio.h>
#include <stdlib.h>

static struct xhost *xhost_of(struct host *h)
{
    return (struct xhost *)h;
}

static bool join(struct host *h)
{
    (void)h;
    return true;
}

static bool is_gone(const struct sim *s, unsigned uid)
{
    for (unsigned i = 0; i < s->swarm.n_fronts; i++) {
        if (s->current_front[i] == uid)
            return false;
    }
    return true;
}

static bool says_dead(const struct sim *s, unsigned uid)
{
    uint64_t chance =
        mix(mix(s->setup->seed, 77), (uint64_t)uid * 1000003U + s->step / 32);

    switch (s->swarm.oracle) {
    case ORACLE_RIGHT:
        return is_gone(s, uid);
    case ORACLE_LATE:
        return is_gone(s, uid) && chance % 4 == 0;
    case ORACLE_LYING:
        return chance % 2 == 0;
    default:
        return false;
    }
}

static bool is_dead(struct host *h, const struct lease_holder *who)
{
    struct sim *s = xhost_of(h)->sim;
    struct actor *a = s->running->actor;
    char text[24] = "";

    memcpy(text, who->member.ptr,
           who->member.len < sizeof(text) ? who->member.len : sizeof(text) - 1);
    bool dead = text[0] == 'm' && says_dead(s, (unsigned)strtoul(text + 1, NULL, 10));
    struct xcall *c = a ? a->exec : NULL;
    if (dead && c && c->n_mourned < X_MOURNED) {
        c->mourned[c->n_mourned] = xtext(who->member);
        c->mourned_no[c->n_mourned++] = s->execs->no;
    }
    return dead;
}

static bool hold(struct host *h, struct host_seat *seat)
{
    (void)h;
    (void)seat;
    return true;
}

static void yield(struct host *h, struct host_seat *seat)
{
    (void)h;
    (void)seat;
}

struct host *xhost(struct sim *s, const struct front *f)
{
    static const struct host_ops ops = {
        .join = join, .is_dead = is_dead, .hold = hold, .yield = yield
    };
    struct xhost *x = &s->execs->host[f->uid];

    if (s->swarm.oracle == ORACLE_NONE)
        return NULL;
    (void)snprintf(x->member, sizeof(x->member), "m%u", f->uid);
    x->sim = s;
    x->host.ops = &ops;
    x->host.binds = true;
    x->host.self = (struct host_self){ .host = bytes_str("host"),
                                       .boot = bytes_str(f->uid % 4 == 3 ? "b1" : "b0"),
                                       .member = bytes_str(x->member),
                                       .pid = 1 + f->uid,
                                       .process_start = 1 };
    atomic_store(&x->host.is_joined, true);
    return &x->host;
}

/* Why a lease may not be lost by this call's evidence; NULL: it may. */
const char *xmourning(const struct xtry *t)
{
    const struct xcall *c = t->c;
    const struct xhost *x = xhost_of(c->host);
    int64_t member = t->row.v[EXEC_LEASE + LEASE_FLEET_MEMBER];

    if (t->row.v[EXEC_LEASE + LEASE_BOOT] != (int64_t)xtext(x->host.self.boot))
        return "H2: a lease was lost by evidence of another boot";
    const char *complaint = "L1: a lease was lost whose holder nobody said to be dead";
    for (size_t i = 0; i < c->n_mourned; i++) {
        if ((int64_t)c->mourned[i] != member)
            continue;
        if (t->seen->granted_no <= c->mourned_no[i])
            return NULL;
        complaint = "L7: a lease was lost by evidence that is older than its grant";
    }
    return complaint;
}

void xdo_mourn(struct actor *a)
{
    struct exec_site site;
    struct belay_error err;
    int64_t lost = 0;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_MOURN);
    c->host = site.host;
    belay_rc rc = exec_dead_sweep(&site, &lost, &err);
    if (!xcall_end(c, rc))
        return;
    if (rc)
        xcall_refuse(c, rc, &err);
    else if (lost != c->steps[XS_LOSE] + c->steps[XS_CAP])
        violation(a->sim, "once", "a sweep tells of other losses than there were");
}
