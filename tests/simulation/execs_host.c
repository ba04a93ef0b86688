/* What is lost because its holder is said to be dead: rightly, late, or not rightly. */
#include "execs.h"

/* Why a lease may not be lost by this call's evidence; NULL: it may. */
const char *xmourning(const struct xtry *t)
{
    uint64_t member = (uint64_t)t->row.v[EXEC_LEASE + LEASE_FLEET_MEMBER];
    uint64_t boot = (uint64_t)t->row.v[EXEC_LEASE + LEASE_BOOT];
    struct sim_member who = { 1, 1 };

    while (who.member <= FRONTS_MAX && xstr(member_text(who.member)) != member)
        who.member++;
    while (who.boot <= SIM_BOOTS && xstr(boot_text(who.boot)) != boot)
        who.boot++;
    return mourning_fault(t->c->actor->sim, &t->c->mourning, who, t->seen->granted_no);
}

void xdo_mourn(struct actor *a)
{
    struct exec_site site;
    struct belay_error err;
    int64_t lost = 0;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_MOURN);
    belay_rc rc = exec_dead_sweep(&site, &lost, &err);
    if (!xcall_end(c, rc))
        return;
    if (rc)
        xcall_refuse(c, rc, &err);
    else if (lost != c->steps[XS_LOSE] + c->steps[XS_CAP])
        violation(a->sim, "once", "a sweep tells of other losses than there were");
}
