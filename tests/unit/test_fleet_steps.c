/* A member is killed at every step of its life, one after the other. */
#include <signal.h>

#include "fleet/step.h"
#include "test_fleet.h"

/* Kills a child at one step of its life in the fleet. */
struct fatal {
    unsigned at, n;
};

static void die_at(void *arg, enum fleet_step step)
{
    struct fatal *fatal = arg;

    (void)step;
    if (fatal->n++ == fatal->at)
        (void)raise(SIGKILL);
}

/* Everything a member does, once. */
static void live(unsigned at)
{
    struct belay_fleet_options o = small_fleet(0);
    struct fatal fatal = { .at = at };
    struct belay_fleet *f;
    struct belay_contest_claim c;
    struct belay_contest_terms terms = terms_of("the doomed", 3600000);
    char label[400];

    o.subjects = 8;
    if (fleet_join_stepped("steps", &o, die_at, &fatal, &f, NULL) != BELAY_OK)
        _exit(3);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(label, sizeof(label), "%0*d", i == 5 ? 300 : 8, i);
        struct belay_contest_subject s = subject_of(1, label);
        if (belay_contest_try(f, &s, &terms, &c, NULL) != BELAY_OK || !c.is_claimed ||
            belay_contest_renew(&c.guard, 3600000, NULL) != BELAY_OK ||
            (i != 3 && belay_contest_release(&c.guard, NULL, NULL) != BELAY_OK))
            _exit(4);
    }
    belay_fleet_leave(f);
    _exit(0);
}

/* What the child was killed at must not be in anybody's way. */
static bool is_usable(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f;
    bool good = true;
    char label[400];

    o.subjects = 8;
    f = must_join("steps", &o);
    for (int i = 0; good && i < 10; i++) {
        (void)snprintf(label, sizeof(label), "%0*d", i == 5 ? 300 : 8, i);
        struct belay_contest_subject s = subject_of(1, label);
        struct belay_contest_terms terms = terms_of("the living", 1000);
        struct belay_contest_claim c;
        good = TAP_EQ(t, belay_contest_claim(f, &s, &terms, 2000, NULL, &c, NULL),
                      BELAY_OK) &&
               TAP_EQ(t, belay_contest_release(&c.guard, NULL, NULL), BELAY_OK);
    }
    struct belay_fleet_status status = { .size = sizeof(status) };
    TAP_EQ(t, belay_fleet_sweep(f, NULL, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_status(f, &status, NULL), BELAY_OK);
    good = good && TAP_EQ(t, status.members, 1);
    belay_fleet_leave(f);
    return good;
}

static void being_killed_at_any_step_is_in_nobodys_way(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    unsigned at = 0;
    int status = -1;

    for (; at < 2000; at++) {
        pid_t pid = fork();
        if (pid == 0)
            live(at);
        (void)waitpid(pid, &status, 0);
        if (WIFEXITED(status))
            break;
        if (!is_usable(t)) {
            printf("# killed at step %u\n", at);
            break;
        }
    }
    TAP_EQ(t, status, 0); /* the last one came to its end */
    TAP_OK(t, at > 200);
    TAP_EQ(t, belay_fleet_remove("steps", &o, NULL), BELAY_OK);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "being killed at any step is in nobody's way",
          being_killed_at_any_step_is_in_nobodys_way },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
