/* Leases that are bound to their process (BELAY_HOST_BOUND): it is killed, and another one of
 * this host has what it held.  With the real fleet, of processes of their own. */
#include <signal.h>
#include <unistd.h>

#include "children.h"
#include "exec.h"
#include "proc.h"

#define AN_HOUR (60 * MINUTE)

/* The store of the world once more, by a handle that has to do with its host. */
static struct belay *open_as(struct world *w, const char *url, int32_t host)
{
    struct belay_options options = { .size = sizeof(options), .host = host };
    struct belay *b = NULL;

    RC(w, belay_open(url, &options, &b, &w->err), BELAY_OK);
    return b;
}

static struct belay_works claim_one(struct world *w, int64_t lease_ms)
{
    static const char *const lane = "l";
    const struct belay_claim_policy p = { .size = sizeof(p),
                                          .lanes = &lane,
                                          .n_lanes = 1,
                                          .worker = "worker",
                                          .lease_ms = lease_ms };
    struct belay_works works = { .n = 0 };

    RC(w, belay_execution_claim(w->use, &p, w->arena, &works, &w->err), BELAY_OK);
    return works;
}

/* In the child: holds something of everything, says so, and stays. */
void child_holds(struct world *w)
{
    const struct belay_claim *claim = NULL;
    struct belay *b = open_as(w, w->url, BELAY_HOST_BOUND);

    if (!b)
        return;
    w->use = b;
    claim = ask(w, (struct ask){ .owner = "child", .lease = AN_HOUR });
    const struct belay_process_lease *lease = hold(w, "p", "child", AN_HOUR);
    struct belay_works works = claim_one(w, AN_HOUR);
    if (!OK(w, claim && lease && works.n == 1))
        return;
    child_tell("holds", claim->fence, lease->fence);
    for (;;)
        (void)pause();
}

static void killed_holder(struct world *w)
{
    struct child c = { 0 };
    char what[16];
    long long batch = 0, process = 0;

    post_many(w, "s", 1);
    enroll_id(w, "p");
    const char *id = submit(w, (struct belay_submission){ 0 });
    bool started = child_start(w, &c, "hold") && child_hear(&c, what, &batch, &process);
    struct belay *b = open_as(w, w->url, BELAY_HOST_WATCH);
    if (!OK(w, started && b && id)) {
        world_handle_close(w, b);
        (void)kill(c.pid, SIGKILL);
        child_end(w, &c, true);
        return;
    }
    w->use = b;
    OK(w, !ask(w, (struct ask){ .owner = "me" }));
    EQ(w, w->claimed.why, BELAY_NO_HEAD_HELD);
    RC(w, hold_try(w, "p", "me", MINUTE), BELAY_LEASE_HELD);
    EQ(w, claim_one(w, MINUTE).n, 0);

    int64_t began = mono_ms();
    (void)kill(c.pid, SIGKILL);
    /* Who waits is woken by the death; long before anything looks by itself. */
    const struct belay_claim *claim =
        ask(w, (struct ask){ .owner = "me", .wait = MINUTE });
    OK(w, mono_ms() - began < 3000);
    if (OK(w, claim != NULL))
        OK(w, claim->fence > batch);
    const struct belay_process_lease *lease = hold(w, "p", "me", MINUTE);
    if (OK(w, lease != NULL))
        OK(w, lease->fence > process);
    struct belay_works works = claim_one(w, MINUTE); /* it does not wait */
    if (EQ(w, works.n, 1))
        EQ(w, works.work[0].fence, 2);
    OK(w, mono_ms() - began < 5000);
    w->use = w->a;
    EQ(w, look(w, id).reclaims, 1);
    child_end(w, &c, true);
    world_handle_close(w, b);
}

static const struct noun_case cases[] = {
    { "C5: what a process held that was killed is had at once", killed_holder,
      CASE_SHARED | CASE_REAL_TIME },
};

const struct topic topic_hosts = { cases, COUNT_OF(cases) };
