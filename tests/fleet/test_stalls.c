/* A claim takes two words, O and then D; whoever is stopped between them must neither block
 * the others nor hurt them when it goes on.  The schedules that the model (contest.pml)
 * found to matter, in the product: a member that is stopped is one whose step function does
 * what the others do meanwhile. */
#include <unistd.h>

#include "fleet/impl.h"
#include "fleet/step.h"
#include "fleetlib.h"
#include "tap.h"

#define GRACE_US 12000 /* a claim that has stood still for 10 ms may be revoked */

struct scene {
    struct tap *t;
    struct room room;
    struct belay_fleet *a, *b, *c;
    struct belay_contest_claim by_a, by_b, by_c;
    bool is_b, is_done;
    unsigned n;
};

static bool join_three(struct scene *s, struct tap *t)
{
    char name[32];
    struct belay_error err;

    s->t = t;
    s->is_b = s->is_done = false;
    (void)snprintf(name, sizeof(name), "stall-%u", s->n++);
    s->a = room_join(&s->room, name, 0);
    return TAP_OK(t, s->a && belay_fleet_join_beside(s->a, NULL, &s->b, &err) == 0 &&
                         belay_fleet_join_beside(s->a, NULL, &s->c, &err) == 0);
}

static void leave_three(struct scene *s)
{
    belay_fleet_leave(s->c);
    belay_fleet_leave(s->b);
    belay_fleet_leave(s->a);
}

static bool claim_b(struct scene *s)
{
    return try_claim(s->b, "subject", "b", HOUR_MS, &s->by_b);
}

/* While a has O and no D: b yields to a claim under way, and has it after the grace. */
static void b_takes_over(void *arg, enum fleet_step step)
{
    struct scene *s = arg;

    if (step != STEP_CLAIM_TAKEN || s->is_done)
        return;
    s->is_done = true;
    TAP_OK(s->t, !claim_b(s) && s->by_b.holder.is_pending);
    TAP_OK(s->t, !claim_b(s)); /* not at once */
    (void)usleep(GRACE_US);
    s->is_b = claim_b(s);
    TAP_OK(s->t, s->is_b);
}

/* The same, and a goes on: b's deadline is b's. */
static void test_late_claimer(struct tap *t)
{
    struct scene *s = t->arg;
    struct belay_error err;

    if (!join_three(s, t))
        return;
    fleet_set_step(s->a, b_takes_over, s);
    TAP_OK(t, !try_claim(s->a, "subject", "a", HOUR_MS, &s->by_a));
    fleet_set_step(s->a, NULL, NULL);
    TAP_STR(t, s->by_a.holder.owner, "b");
    TAP_OK(t, belay_contest_is_held(&s->by_b.guard));
    TAP_OK(t, !try_claim(s->c, "subject", "c", HOUR_MS, &s->by_c));
    TAP_OK(t, !s->by_c.holder.is_pending);
    (void)usleep(GRACE_US);
    TAP_OK(t, !try_claim(s->c, "subject", "c", HOUR_MS, &s->by_c)); /* C1 */
    TAP_STR(t, s->by_c.holder.owner, "b");
    TAP_EQ(t, belay_contest_renew(&s->by_b.guard, HOUR_MS, &err), BELAY_OK);
    TAP_OK(t, release(&s->by_b.guard));
    leave_three(s);
}

/* The same, and b has had the subject so often that D's tag has gone half round. */
static void b_takes_over_often(void *arg, enum fleet_step step)
{
    struct scene *s = arg;

    if (step != STEP_CLAIM_TAKEN || s->is_done)
        return;
    b_takes_over(arg, step);
    for (int i = 0; i < 20000 && s->is_b; i++)
        s->is_b = release(&s->by_b.guard) && claim_b(s);
    TAP_OK(s->t, s->is_b);
}

static void test_very_late_claimer(struct tap *t)
{
    struct scene *s = t->arg;
    struct belay_error err;

    if (!join_three(s, t))
        return;
    fleet_set_step(s->a, b_takes_over_often, s);
    TAP_OK(t, !try_claim(s->a, "subject", "a", HOUR_MS, &s->by_a));
    fleet_set_step(s->a, NULL, NULL);
    TAP_OK(t, belay_contest_is_held(&s->by_b.guard));
    TAP_EQ(t, belay_contest_renew(&s->by_b.guard, HOUR_MS, &err), BELAY_OK);
    leave_three(s);
}

/* c has found O as it was under a, and is stopped before it looks at D; b takes over; c then
 * finds b's D and must not take it for a's. */
static void b_takes_over_from_a(void *arg, enum fleet_step step)
{
    struct scene *s = arg;

    if (step != STEP_CLAIM_FOUND || s->is_b)
        return;
    s->is_b = claim_b(s);
    TAP_OK(s->t, s->is_b);
}

static void c_looks(void *arg, enum fleet_step step)
{
    struct scene *s = arg;

    if (step != STEP_CLAIM_TAKEN || s->is_done)
        return;
    s->is_done = true;
    TAP_OK(s->t, !claim_b(s)); /* both have seen a under way, */
    TAP_OK(s->t, !try_claim(s->c, "subject", "c", HOUR_MS, &s->by_c));
    (void)usleep(GRACE_US); /* long enough ago */
    fleet_set_step(s->c, b_takes_over_from_a, s);
    TAP_OK(s->t, !try_claim(s->c, "subject", "c", HOUR_MS, &s->by_c));
    fleet_set_step(s->c, NULL, NULL);
    TAP_STR(s->t, s->by_c.holder.owner, "b");
}

static void test_late_observer(struct tap *t)
{
    struct scene *s = t->arg;
    struct belay_error err;

    if (!join_three(s, t))
        return;
    fleet_set_step(s->a, c_looks, s);
    TAP_OK(t, !try_claim(s->a, "subject", "a", HOUR_MS, &s->by_a));
    fleet_set_step(s->a, NULL, NULL);
    TAP_OK(t, belay_contest_is_held(&s->by_b.guard));
    TAP_EQ(t, belay_contest_renew(&s->by_b.guard, HOUR_MS, &err), BELAY_OK);
    leave_three(s);
}

/* In each step of a's claim: whatever b is told, at most one holds, and the log agrees. */
struct anywhere {
    struct scene *s;
    unsigned at, n;
};

static void b_tries_twice(void *arg, enum fleet_step step)
{
    struct anywhere *w = arg;

    (void)step;
    if (w->n++ != w->at)
        return;
    w->s->is_b = claim_b(w->s);
    if (w->s->is_b)
        return;
    (void)usleep(GRACE_US);
    w->s->is_b = claim_b(w->s);
}

static void test_anywhere(struct tap *t)
{
    struct scene *s = t->arg;
    bool passed = false;

    for (unsigned at = 0; at < 100 && !passed && t->failed == 0; at++) {
        struct anywhere w = { .s = s, .at = at };
        struct replay replay;
        if (!join_three(s, t))
            return;
        TAP_OK(t, replay_open(&replay, s->c));
        fleet_set_step(s->a, b_tries_twice, &w);
        bool is_a = try_claim(s->a, "subject", "a", HOUR_MS, &s->by_a);
        fleet_set_step(s->a, NULL, NULL);
        passed = w.n <= at;
        TAP_EQ(t, is_a + s->is_b, 1); /* C1 */
        TAP_OK(t, replay_equals_table(&replay, s->c));
        replay_close(&replay);
        leave_three(s);
    }
    TAP_OK(t, passed);
}

static const struct tap_case cases[] = {
    { "who was stopped while claiming leaves the next holder's deadline alone",
      test_late_claimer },
    { "also when it was stopped for tens of thousands of tenures",
      test_very_late_claimer },
    { "who was stopped while looking leaves the next holder's deadline alone",
      test_late_observer },
    { "stopped in any step of a claim, there is one holder and the log names it",
      test_anywhere },
};

int main(int argc, char **argv)
{
    struct scene s = { .n = 0 };

    if (!room_init(&s.room))
        return 1;
    int code = tap_main(cases, sizeof(cases) / sizeof(cases[0]), &s, argc, argv);
    room_release(&s.room);
    return code;
}
