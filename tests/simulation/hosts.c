/* Who is dead, as the hosts of simulated processes say. */
#include "hosts.h"

#include <stdio.h>
#include <stdlib.h>

#include "execs.h"
#include "nouns.h"
#include "procs.h"

/* A process as its host knows it. */
struct sim_host {
    struct host host; /* first */
    struct sim *sim;
};

static const char boots[SIM_BOOTS][4] = { "b0", "b1" };

const char *member_text(unsigned member)
{
    static char names[FRONTS_MAX + 1][8];

    (void)snprintf(names[member], sizeof(names[member]), "m%u", member - 1);
    return names[member];
}

const char *boot_text(unsigned boot)
{
    return boots[boot - 1];
}

static struct sim_member member_of(const struct front *f)
{
    return (struct sim_member){ 1 + f->uid, f->uid % 4 == 3 ? 2 : 1 };
}

/* Made up ones have a number of their own. */
static unsigned number_of(struct bytes text, const char *(*name)(unsigned), unsigned n)
{
    unsigned i = 1;

    if (text.len == 0)
        return 0;
    while (i <= n && !bytes_eq(text, bytes_str(name(i))))
        i++;
    return i;
}

struct sim_member member_in(const struct row *r, unsigned base)
{
    struct lease_holder who = lease_holder_in(r, base);

    return (struct sim_member){ number_of(who.member, member_text, FRONTS_MAX),
                                number_of(who.boot, boot_text, SIM_BOOTS) };
}

/* --- what is said --- */

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

/* What the running call is told, and the number of commits so far; NULL: there is none. */
static struct mourning *mourning_of(struct actor *a, uint64_t *out_no)
{
    const struct sim *s = a->sim;

    *out_no = a->noun ? s->nouns->no : a->exec ? s->execs->no : 0;
    if (a->noun)
        return &a->noun->mourning;
    if (a->exec)
        return &a->exec->mourning;
    if (!a->proc)
        return NULL;
    *out_no = s->procs->no;
    return &a->proc->mourning;
}

static bool is_dead(struct host *h, const struct lease_holder *who)
{
    struct sim *s = ((struct sim_host *)h)->sim;
    struct actor *a = s->running->actor;
    unsigned uid = number_of(who->member, member_text, FRONTS_MAX) - 1;
    bool dead = uid < FRONTS_MAX && says_dead(s, uid);
    uint64_t no = 0;
    struct mourning *m = a ? mourning_of(a, &no) : NULL;

    if (dead && m) {
        m->no[uid] = 1 + no;
        m->in[uid] = m->run;
    }
    return dead;
}

static bool join(struct host *h)
{
    (void)h;
    return true;
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

struct host *hosts_of(struct sim *s, const struct front *f)
{
    static const struct host_ops ops = {
        .join = join, .is_dead = is_dead, .hold = hold, .yield = yield
    };
    static struct sim_host hosts[FRONTS_MAX];
    struct sim_host *x = &hosts[f->uid];
    struct sim_member who = member_of(f);

    if (s->swarm.oracle == ORACLE_NONE)
        return NULL;
    x->sim = s;
    x->host.ops = &ops;
    x->host.binds = true;
    x->host.self = (struct host_self){ .host = bytes_str("host"),
                                       .boot = bytes_str(boot_text(who.boot)),
                                       .member = bytes_str(member_text(who.member)),
                                       .pid = 1 + f->uid,
                                       .process_start = 1 };
    atomic_store(&x->host.is_joined, true);
    return &x->host;
}

/* --- what a call was told --- */

struct mourning mourning_begin(struct sim *s)
{
    struct mourning m = { .run = 0 };

    if (s->swarm.oracle != ORACLE_NONE)
        m.self = member_of(s->running->front);
    return m;
}

void mourning_run(struct actor *a)
{
    uint64_t no;
    struct mourning *m = mourning_of(a, &no);

    if (m)
        m->run++;
}

bool mourning_now(const struct mourning *m, struct sim_member who)
{
    unsigned uid = who.member - 1;

    return uid < FRONTS_MAX && who.boot == m->self.boot && m->no[uid] > 0 &&
           m->in[uid] == m->run;
}

const char *mourning_fault(const struct sim *s, const struct mourning *m,
                           struct sim_member who, uint64_t granted_no)
{
    unsigned uid = who.member - 1;

    if (m->self.member == 0 || uid >= FRONTS_MAX)
        return "L1: a lease was lost before its end, and nobody can know why";
    if (who.boot != m->self.boot)
        return "H2: a lease was lost by evidence of another boot";
    if (m->no[uid] == 0)
        return "L1: a lease was lost whose holder nobody said to be dead";
    if (granted_no >= m->no[uid])
        return "L7: a lease was lost by evidence that is older than its grant";
    if (s->swarm.oracle != ORACLE_LYING && !is_gone(s, uid))
        return "H1: a lease of the living was lost before its end";
    return NULL;
}
