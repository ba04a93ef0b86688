/* Waiting for the death of any member. */
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "test_fleet.h"

#define WATCHERS 3

static int64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A process that says one letter when it is ready, and perhaps another. */
struct child {
    pid_t pid;
    int from;
};

static struct child start(const char *name, void (*run)(struct belay_fleet *f, int to))
{
    struct child c = { .pid = -1 };
    int up[2];

    if (pipe(up))
        return c;
    (void)fflush(NULL);
    c.pid = fork();
    if (c.pid == 0) {
        struct belay_fleet_options o = small_fleet(0);
        (void)close(up[0]);
        (void)alarm(60);
        run(must_join(name, &o), up[1]);
        _exit(0);
    }
    (void)close(up[1]);
    c.from = up[0];
    return c;
}

/* What it says next; '-' when it says nothing for so long. */
static char hear(const struct child *c, int within_ms)
{
    struct pollfd p = { .fd = c->from, .events = POLLIN };
    char said = '!';

    if (poll(&p, 1, within_ms) == 0)
        return '-';
    if (read(c->from, &said, 1) != 1)
        said = '!';
    return said;
}

static void say(int fd, char what)
{
    if (write(fd, &what, 1) != 1)
        _exit(7);
}

static void finish(struct child *c, int with)
{
    (void)kill(c->pid, SIGCONT);
    if (with)
        (void)kill(c->pid, with);
    (void)waitpid(c->pid, NULL, 0);
    (void)close(c->from);
}

static struct belay_notify word_of(struct belay_fleet *f)
{
    struct belay_notify word = { 0 };

    if (belay_notify_open(f, "word", &word, NULL) != BELAY_OK)
        _exit(8);
    return word;
}

/* --- roles --- */

static void be_there(struct belay_fleet *f, int to)
{
    (void)f;
    say(to, 'r');
    for (;;)
        (void)pause();
}

static void watch(struct belay_fleet *f, int to)
{
    struct belay_notify word = word_of(f);
    uint32_t seen = belay_notify_value(f, word);

    say(to, 'r');
    belay_rc rc = belay_fleet_wait_deaths(f, &word, &seen, 1, 30000, NULL);
    say(to, rc == BELAY_OK ? 'd' : 'x');
    for (;;) /* so that nobody is woken by the end of this one */
        (void)pause();
}

/* Waits for what the victim holds. */
static void want(struct belay_fleet *f, int to)
{
    const struct belay_contest_subject subject = subject_of(1, "it");
    const struct belay_contest_terms terms = terms_of("me", 3600000);
    struct belay_contest_claim claim;

    say(to, 'r');
    belay_rc rc = belay_contest_claim(f, &subject, &terms, 30000, NULL, &claim, NULL);
    say(to, rc == BELAY_OK ? 'd' : 'x');
    for (;;)
        (void)pause();
}

static void have(struct belay_fleet *f, int to)
{
    const struct belay_contest_subject subject = subject_of(1, "it");
    const struct belay_contest_terms terms = terms_of("victim", 3600000);
    struct belay_contest_claim claim;

    if (belay_contest_try(f, &subject, &terms, &claim, NULL) || !claim.is_claimed)
        _exit(9);
    be_there(f, to);
}

/* --- cases --- */

/* The kernel wakes one waiter of a word: it wakes the others, of whatever kind. */
static void everybody_hears_of_a_death(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("deaths", &o);
    struct child victim = start("deaths", have);
    struct child others[2 * WATCHERS];

    TAP_EQ(t, hear(&victim, 10000), 'r');
    for (int i = 0; i < 2 * WATCHERS; i++) {
        others[i] = start("deaths", i < WATCHERS ? watch : want);
        TAP_EQ(t, hear(&others[i], 10000), 'r');
    }
    for (int i = 0; i < WATCHERS; i++)
        TAP_EQ(t, hear(&others[i], 30), '-'); /* nobody died */
    (void)kill(victim.pid, SIGSTOP);
    TAP_EQ(t, hear(&others[0], 100), '-'); /* nor has who is stopped */
    int64_t began = now_ms();
    (void)kill(victim.pid, SIGKILL);
    for (int i = 0; i < WATCHERS; i++)
        TAP_EQ(t, hear(&others[i], 3000), 'd');
    int heirs = 0;
    for (int i = WATCHERS; i < 2 * WATCHERS; i++)
        heirs += hear(&others[i], 200) == 'd';
    TAP_EQ(t, heirs, 1);
    TAP_OK(t, now_ms() - began < 3000);
    finish(&victim, 0);
    for (int i = 0; i < 2 * WATCHERS; i++)
        finish(&others[i], SIGKILL);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("deaths", &o, NULL), BELAY_OK);
}

/* Whoever is dead already, until it is swept. */
static void the_dead_are_seen_until_swept(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("deaths", &o);
    struct belay_notify word = word_of(f);
    uint32_t seen = belay_notify_value(f, word);
    struct child victim = start("deaths", be_there);
    size_t swept = 0;
    struct belay_error err;

    TAP_EQ(t, hear(&victim, 10000), 'r');
    TAP_EQ(t, belay_fleet_wait_deaths(f, &word, &seen, 1, 0, &err), BELAY_TIMEOUT);
    finish(&victim, SIGKILL);
    for (int i = 0; i < 2; i++)
        TAP_EQ(t, belay_fleet_wait_deaths(f, &word, &seen, 1, 5000, &err), BELAY_OK);
    TAP_EQ(t, belay_fleet_sweep(f, &swept, &err), BELAY_OK);
    TAP_EQ(t, swept, 1);
    int64_t began = now_ms();
    TAP_EQ(t, belay_fleet_wait_deaths(f, &word, &seen, 1, 50, &err), BELAY_TIMEOUT);
    TAP_OK(t, now_ms() - began >= 50);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("deaths", &o, NULL), BELAY_OK);
}

static void post_one(struct belay_fleet *f, int to)
{
    say(to, 'r');
    (void)usleep(50000);
    if (belay_notify_post(f, word_of(f), NULL) != BELAY_OK)
        _exit(9);
    belay_fleet_leave(f);
}

static void a_word_ends_it_too(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("deaths", &o);
    struct belay_notify words[2] = { word_of(f), { 0 } };
    struct belay_error err;

    TAP_EQ(t, belay_notify_open(f, "other", &words[1], &err), BELAY_OK);
    uint32_t seen[2] = { belay_notify_value(f, words[0]), 0 };
    struct child poster = start("deaths", post_one);
    TAP_EQ(t, hear(&poster, 10000), 'r');
    TAP_EQ(t, belay_fleet_wait_deaths(f, words, seen, 2, 10000, &err), BELAY_OK);
    TAP_EQ(t, belay_notify_value(f, words[0]), seen[0] + 1);
    /* One that was posted before is not waited for. */
    TAP_EQ(t, belay_fleet_wait_deaths(f, words, seen, 2, 10000, &err), BELAY_OK);
    finish(&poster, 0);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("deaths", &o, NULL), BELAY_OK);
}

static void what_cannot_be_waited_for(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("deaths", &o);
    struct belay_notify words[5] = { { 0 } }, none = { .slot = 1U << 20 };
    uint32_t seen[5] = { 0 };
    struct belay_error err;

    TAP_EQ(t, belay_fleet_wait_deaths(f, words, seen, 0, 0, &err), BELAY_INVALID);
    TAP_EQ(t, belay_fleet_wait_deaths(f, words, seen, 5, 0, &err), BELAY_INVALID);
    TAP_EQ(t, belay_fleet_wait_deaths(f, words, seen, 1, -1, &err), BELAY_INVALID);
    TAP_EQ(t, belay_fleet_wait_deaths(f, &none, seen, 1, 0, &err), BELAY_BAD_HANDLE);
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "everybody hears of a death", everybody_hears_of_a_death },
        { "the dead are seen until they are swept", the_dead_are_seen_until_swept },
        { "a word ends it, too", a_word_ends_it_too },
        { "what cannot be waited for is refused", what_cannot_be_waited_for },
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
