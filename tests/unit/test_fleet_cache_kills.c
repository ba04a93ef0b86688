/* The cache and processes: killed anywhere, stopped, over a damaged segment. */
#include <fcntl.h>
#include <signal.h>

#include "test_fleet_cache.h"

/* --- killed --- */

struct doom {
    unsigned at, n;
    int only; /* counts steps of this kind; -1: all */
};

static void die_in_step(void *arg, enum fleet_step step)
{
    struct doom *d = arg;

    if ((d->only < 0 || d->only == (int)step) && d->n++ == d->at)
        (void)raise(SIGKILL);
}

enum deed { DEED_PUT, DEED_PUT_BIG, DEED_DELETE, DEED_RESET, DEED_OPEN };

/* In a child; true: it was killed. */
static bool dies_doing(enum deed deed, int only, unsigned at)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct belay_fleet_options o = small_fleet(0);
        struct belay_fleet *f = must_join("kills", &o);
        struct doom doom = { .at = at, .only = only };
        static char big[9000];
        belay_rc rc = BELAY_OK;
        memset(big, 'n', sizeof(big));
        struct belay_cache *c = deed == DEED_OPEN ? NULL : must_open(f, 8, 16384, NULL);
        fleet_set_step(f, die_in_step, &doom);
        if (deed == DEED_OPEN)
            c = must_open(f, 8, 16384, NULL);
        else if (deed == DEED_PUT)
            rc = put(c, "k", "new", 0);
        else if (deed == DEED_PUT_BIG)
            rc = belay_cache_put(c, "k", 1, big, 7900, 0, NULL, NULL);
        else if (deed == DEED_DELETE)
            rc = belay_cache_delete(c, "k", 1, NULL, NULL);
        else
            rc = belay_cache_reset(c, NULL, 0, NULL, NULL);
        fleet_set_step(f, NULL, NULL);
        _exit(rc == BELAY_OK ? 0 : 3);
    }
    (void)waitpid(pid, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void killed_anywhere_it_leaves_the_old_or_the_new_or_none(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("kills", &o);
    struct belay_cache *c = must_open(f, 8, 16384, NULL);
    static char value[8192], old[7000], buf[16384];
    struct belay_cache_got got;
    unsigned kept = 0, is_new = 0, none = 0;

    memset(old, 'o', sizeof(old));
    memset(value, 'n', sizeof(value));
    for (enum deed deed = DEED_PUT; deed <= DEED_RESET; deed++) {
        for (unsigned at = 0; at < 100; at++) {
            TAP_EQ(t, belay_cache_put(c, "k", 1, old, sizeof(old), 0, NULL, NULL),
                   BELAY_OK);
            bool was_killed = dies_doing(deed, -1, at);
            TAP_EQ(t, belay_cache_get(c, "k", 1, buf, sizeof(buf), &got, NULL),
                   BELAY_OK);
            bool is_old = got.is_hit && got.len == sizeof(old) &&
                          memcmp(buf, old, sizeof(old)) == 0;
            bool is_whole = (got.len == 3 && memcmp(buf, "new", 3) == 0) ||
                            (got.len == 7900 && memcmp(buf, value, 7900) == 0);
            TAP_OK(t, is_old || !got.is_hit || is_whole);
            kept += is_old;
            is_new += got.is_hit && is_whole;
            none += !got.is_hit;
            /* Everything it had taken can be had at once. */
            for (int i = 0; i < 8; i++) {
                char key[2] = { (char)('a' + i), 0 };
                TAP_EQ(t, belay_cache_put(c, key, 1, value, 1300, 0, NULL, NULL),
                       BELAY_OK);
            }
            TAP_EQ(t, belay_cache_put(c, "whole", 5, value, 8192, 0, NULL, NULL),
                   BELAY_OK);
            TAP_EQ(t, belay_cache_put(c, "whole2", 6, value, 8192, 0, NULL, NULL),
                   BELAY_OK);
            TAP_EQ(t, belay_fleet_sweep(f, NULL, NULL), BELAY_OK);
            if (!was_killed) {
                TAP_OK(t, at >= 2);
                break;
            }
        }
    }
    TAP_OK(t, kept > 4 && is_new > 4 && none > 4);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("kills", &o, NULL), BELAY_OK);
    for (unsigned at = 0; at < 10; at++) {
        bool was_killed = dies_doing(DEED_OPEN, -1, at);
        f = must_join("kills", &o);
        c = must_open(f, 8, 16384, NULL);
        TAP_EQ(t, put(c, "k", "v", 0), BELAY_OK);
        IS(t, get(c, "k"), "v");
        belay_fleet_leave(f);
        TAP_EQ(t, belay_fleet_remove("kills", &o, NULL), BELAY_OK);
        if (!was_killed)
            break;
    }
}

/* A key that is there twice: whatever goes, the newer goes last. */
static void what_was_overwritten_does_not_come_back(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("kills", &o);
    struct belay_cache *c = must_open(f, 8, 16384, NULL);
    struct belay_cache_status s = { .size = sizeof(s) };
    char key[16];

    for (int round = 0; round < 16; round++) {
        TAP_EQ(t, put(c, "k", "old", 0), BELAY_OK);
        TAP_OK(t, dies_doing(DEED_PUT, STEP_CACHE_LIVE, 0));
        TAP_EQ(t, belay_cache_status(c, &s, NULL), BELAY_OK);
        TAP_EQ(t, s.entries_used, 2 + (round % 2 == 0 ? round % 6 : 0));
        IS(t, get(c, "k"), "new");
        if (round % 2 == 0) {
            TAP_OK(t, dies_doing(DEED_DELETE, STEP_CACHE_ENDED, 0));
            IS(t, get(c, "k"), "new");
        } else {
            for (int i = 0; i < 40; i++) {
                (void)snprintf(key, sizeof(key), "%d", i);
                TAP_EQ(t, put(c, key, "v", 0), BELAY_OK);
                TAP_OK(t, strcmp(get(c, "k"), "old") != 0);
            }
        }
        TAP_EQ(t, belay_cache_reset(c, NULL, 0, NULL, NULL), BELAY_OK);
        /* So that the pair lies elsewhere in its set the next time. */
        for (int i = 0; i < (round + 1) % 6 && round % 2 == 1; i++) {
            (void)snprintf(key, sizeof(key), "%d", i);
            TAP_EQ(t, put(c, key, "v", 0), BELAY_OK);
        }
    }
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("kills", &o, NULL), BELAY_OK);
}

#define PROCESSES 8

static pid_t start_user(unsigned seed)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct belay_fleet_options o = small_fleet(0);
        o.fleet_size = 16;
        struct belay_fleet *f = must_join("torture", &o);
        struct belay_cache *c = must_open(f, 16, 32768, NULL);
        (void)alarm(60);
        while (use_at_random(c, &seed, 1000))
            continue;
        _exit(3);
    }
    return pid;
}

static void processes_that_are_killed_spoil_nothing(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    o.fleet_size = 16;
    struct belay_fleet *f = must_join("torture", &o);
    struct belay_cache *c = must_open(f, 16, 32768, NULL);
    const char *ms = getenv("BELAY_FLEET_TORTURE_MS");
    int64_t left_us = (ms ? strtoll(ms, NULL, 10) : 1500) * 1000;
    unsigned seed = 4711, kills = 0;
    pid_t pids[PROCESSES];
    int status;

    for (unsigned i = 0; i < PROCESSES; i++)
        pids[i] = start_user(i + 1);
    for (; left_us > 0; kills++) {
        unsigned i = (unsigned)rand_r(&seed) % PROCESSES;
        unsigned nap = (unsigned)rand_r(&seed) % 8000;
        (void)usleep(nap);
        left_us -= nap + 1000;
        bool is_stopped = rand_r(&seed) % 4 == 0;
        if (is_stopped) {
            (void)kill(pids[i], SIGSTOP);
            (void)usleep(2000);
            TAP_OK(t, use_at_random(c, &seed, 50));
            (void)kill(pids[i], SIGCONT);
            continue;
        }
        (void)kill(pids[i], SIGKILL);
        TAP_EQ(t, waitpid(pids[i], &status, 0), pids[i]);
        TAP_OK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        TAP_OK(t, use_at_random(c, &seed, 50));
        pids[i] = start_user(kills + 100);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        (void)kill(pids[i], SIGKILL);
        TAP_EQ(t, waitpid(pids[i], &status, 0), pids[i]);
        TAP_OK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    /* All of it can be had, whatever they were doing. */
    TAP_EQ(t, belay_cache_reset(c, NULL, 0, NULL, NULL), BELAY_OK);
    static char half[16384], buf[16384];
    struct belay_cache_got got = { 0 };
    TAP_EQ(t, belay_cache_put(c, "half", 4, half, sizeof(half), 0, NULL, NULL),
           BELAY_OK);
    TAP_EQ(t, belay_cache_put(c, "other", 5, half, sizeof(half) - 2000, 0, NULL, NULL),
           BELAY_OK);
    TAP_EQ(t, belay_cache_get(c, "half", 4, buf, sizeof(buf), &got, NULL), BELAY_OK);
    TAP_OK(t, got.is_hit);
    TAP_OK(t, kills > 50 || ms);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("torture", &o, NULL), BELAY_OK);
}

/* --- damaged --- */

static uint64_t next_chance(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool survives(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct belay_fleet_options o = small_fleet(0);
        struct belay_cache_options co = { .size = sizeof(co) };
        struct belay_cache_status s = { .size = sizeof(s) };
        struct belay_cache_entry list[8];
        struct belay_fleet *f = must_join("damage", &o);
        struct belay_cache *c;
        uint64_t cursor = 0;
        unsigned seed = 1;
        size_t n;
        (void)alarm(20);
        if (belay_cache_open(f, &co, &c, NULL) == BELAY_OK) {
            static char big[8192];
            belay_rc rc = belay_cache_status(c, &s, NULL);
            rc = belay_cache_list(c, &cursor, list, 8, &n, NULL);
            rc = belay_cache_put(c, "big", 3, big, sizeof(big), 0, NULL, NULL);
            (void)!use_at_random(c, &seed, 200);
            rc = belay_cache_reset(c, "k", 1, NULL, NULL);
            (void)rc; /* answers do not matter, coming back does */
        }
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    return status == 0;
}

static void damage_never_ends_the_process(struct tap *t)
{
    static const uint64_t bad[] = { 0, UINT64_MAX, UINT64_C(1) << 63, 1 };
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("damage", &o);
    struct belay_fleet_status fs = { .size = sizeof(fs) };
    struct belay_cache *c = must_open(f, 16, 16384, NULL);
    uint64_t chance = 7;
    unsigned seed = 3;
    char path[320];
    struct stat st = { 0 };

    TAP_EQ(t, belay_fleet_status(f, &fs, NULL), BELAY_OK);
    (void)snprintf(path, sizeof(path), "./belay-%u-damage.%016llx.cache",
                   (unsigned)geteuid(), (unsigned long long)fs.fleet_id);
    TAP_EQ(t, stat(path, &st), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    for (int round = 0; round < 150; round++) {
        uint64_t was[32];
        off_t at[32];
        int n = 1 + round % 32;
        (void)!use_at_random(c, &seed, 30); /* finds what was damaged before */
        for (int i = 0; i < n; i++) {
            uint64_t r = next_chance(&chance);
            /* Half of them where the words are dense, an eighth in the header. */
            uint64_t span = r % 8 == 0 ? 96 : r % 2 == 0 ? 6000 : (uint64_t)st.st_size;
            uint64_t value = r % 3 == 0 ? next_chance(&chance) : bad[(r >> 3) % 4];
            at[i] = (off_t)((r >> 8) % (span / 8) * 8);
            TAP_EQ(t, pread(fd, &was[i], 8, at[i]), 8);
            TAP_EQ(t, pwrite(fd, &value, 8, at[i]), 8);
        }
        if (!TAP_OK(t, survives())) {
            printf("# round %d\n", round);
            break;
        }
        for (int i = n - 1; i >= 0; i--) {
            if (at[i] < 256) /* the next one opens it again */
                TAP_EQ(t, pwrite(fd, &was[i], 8, at[i]), 8);
        }
    }
    /* Cut, it is refused. */
    TAP_EQ(t, ftruncate(fd, st.st_size + 4096), 0);
    struct belay_fleet *g = must_join("damage", &o);
    struct belay_cache *d;
    struct belay_error err;
    TAP_EQ(t, belay_cache_open(g, NULL, &d, &err), BELAY_CORRUPT);
    IS(t, err.reason, "truncated");
    (void)close(fd);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("damage", &o, NULL), BELAY_OK);
    TAP_OK(t, stat(path, &st) != 0);
}

static void an_observer_reads_and_writes_nothing(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join("watched", &o), *g;
    struct belay_cache_options co = { .size = sizeof(co) };
    struct belay_cache *c, *d;
    struct belay_error err;

    TAP_EQ(t, belay_fleet_observe("watched", &o, &g, NULL), BELAY_OK);
    TAP_EQ(t, belay_cache_open(g, &co, &d, NULL), BELAY_NOT_FOUND);
    c = must_open(f, 16, 16384, NULL);
    TAP_EQ(t, put(c, "k", "v", 0), BELAY_OK);
    TAP_EQ(t, belay_cache_open(g, &co, &d, NULL), BELAY_OK);
    atomic_store(&c->entries[0].used, 0);
    for (uint32_t i = 0; i < 16; i++)
        atomic_store(&c->entries[i].used, 0);
    IS(t, get(d, "k"), "v");
    TAP_EQ(t, belay_cache_put(d, "k", 1, "w", 1, 0, NULL, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_cache_delete(d, "k", 1, NULL, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_cache_reset(d, "k", 1, NULL, &err), BELAY_MISUSE);
    pid_t pid = fork();
    if (pid == 0) {
        struct belay_cache_got got;
        char buf[8];
        belay_rc rc = belay_cache_get(c, "k", 1, buf, sizeof(buf), &got, &err);
        belay_cache_close(c);
        _exit(rc == BELAY_MISUSE && strcmp(err.reason, "forked") == 0 ? 0 : 1);
    }
    int status = -1;
    TAP_EQ(t, waitpid(pid, &status, 0), pid);
    TAP_EQ(t, status, 0);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("watched", &o, NULL), BELAY_OK);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "killed anywhere it leaves the old or the new or none",
          killed_anywhere_it_leaves_the_old_or_the_new_or_none },
        { "what was overwritten does not come back",
          what_was_overwritten_does_not_come_back },
        { "processes that are killed spoil nothing",
          processes_that_are_killed_spoil_nothing },
        { "damage never ends the process", damage_never_ends_the_process },
        { "an observer reads and writes nothing",
          an_observer_reads_and_writes_nothing },
    };

    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
