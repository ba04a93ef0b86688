/* hosts.h - the hosts of simulated processes, and who they say is dead.
 *
 * Processes are fronts; one that was restarted is dead.  Some of them are of another boot,
 * about which nobody can know.  What a host says is right, late, or a lie, as the seed
 * chooses: nothing that is promised may depend on which (C5).
 */
#ifndef SIMULATION_HOSTS_H
#define SIMULATION_HOSTS_H

#include "sim.h"
#include "work/lease.h"

#define SIM_BOOTS 2

/* A process as leases name it: 1 + the number of its front, and of its boot; 0: none. */
struct sim_member {
    unsigned member, boot;
};

/* What a call was told, by the number of the front that is said to be dead. */
struct mourning {
    struct sim_member self;  /* who asked; no member: this seed has no hosts */
    unsigned run;            /* of its body, the last one */
    uint64_t no[FRONTS_MAX]; /* 1 + commits of before it was last told so; 0: never */
    unsigned in[FRONTS_MAX]; /* the run that was */
};

/* The host of a front; NULL: this seed has none. */
struct host *hosts_of(struct sim *s, const struct front *f);
/* The beginning of a call of the running actor, and of a run of its body. */
struct mourning mourning_begin(struct sim *s);
void mourning_run(struct actor *a);

/* Who is named by a row's lease. */
struct sim_member member_in(const struct row *r, unsigned base);
const char *member_text(unsigned member);
const char *boot_text(unsigned boot);

/* Why a lease of that holder, granted by commit `granted_no`, may not be lost before its end
 * by what this call was told; NULL: it may.  What is said rightly is never of the living. */
const char *mourning_fault(const struct sim *s, const struct mourning *m,
                           struct sim_member who, uint64_t granted_no);
/* Whether the last run of the body was told so. */
bool mourning_now(const struct mourning *m, struct sim_member who);

#endif /* SIMULATION_HOSTS_H */
