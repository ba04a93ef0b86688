/* t_sim - runs schedules and tells which seed breaks a rule.
 *
 *     t_sim [--seeds A..B | --seconds S | --replay FILE|FOLDER... | --shrink SEED
 *            | --check-determinism A..B] [--ops N] [--faults all|none|NAME,...]
 *           [--salt N] [--out FILE] [--prune N] [--driver memory|sqlite]
 *           [--nouns | --executions | --processes] [--verbose] [--progress]
 *
 * Prints TAP; exits 1 when a rule was broken.
 */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"

static struct sim sim;

enum mode { SEEDS, SECONDS, REPLAY, SHRINK, DETERMINISM };

struct options {
    enum mode mode;
    uint64_t from, to;
    double seconds;
    struct setup setup;
    const char *out;
    char **files;
    int n_files;
    bool progress; /* print each seed before it runs, for who expects a crash */
};

static double now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: t_sim [--seeds A..B | --seconds S | --replay FILE... |\n"
            "              --shrink SEED | --check-determinism A..B]\n"
            "             [--ops N] [--faults all|none|NAME,...] [--salt N]\n"
            "             [--out FILE] [--prune N] [--driver memory|sqlite]\n"
            "             [--nouns | --executions | --processes] [--verbose]\n");
    return 2;
}

static bool parse_range(const char *text, struct options *o)
{
    char *end;

    o->from = o->to = strtoull(text, &end, 10);
    if (strncmp(end, "..", 2) == 0)
        o->to = strtoull(end + 2, &end, 10);
    return *end == 0 && o->to >= o->from;
}

static bool parse_one(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--seeds") == 0)
        return o->mode = SEEDS, parse_range(value, o);
    if (strcmp(name, "--check-determinism") == 0)
        return o->mode = DETERMINISM, parse_range(value, o);
    if (strcmp(name, "--shrink") == 0)
        return o->mode = SHRINK, parse_range(value, o);
    if (strcmp(name, "--seconds") == 0)
        return o->mode = SECONDS, (o->seconds = strtod(value, NULL)) > 0;
    if (strcmp(name, "--ops") == 0)
        return (o->setup.ops = (unsigned)strtoul(value, NULL, 10)) > 0;
    if (strcmp(name, "--salt") == 0)
        return o->setup.salt = strtoull(value, NULL, 10), true;
    if (strcmp(name, "--faults") == 0)
        return replay_faults(value, &o->setup.faults);
    if (strcmp(name, "--driver") == 0)
        return (o->setup.sqlite = strcmp(value, "sqlite") == 0) ||
               strcmp(value, "memory") == 0;
    if (strcmp(name, "--prune") == 0)
        return o->setup.prune = (unsigned)strtoul(value, NULL, 10), true;
    if (strcmp(name, "--out") == 0)
        return o->out = value, true;
    return false;
}

static bool parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            o->setup.verbose = true;
        } else if (strcmp(argv[i], "--nouns") == 0) {
            o->setup.nouns = true;
        } else if (strcmp(argv[i], "--executions") == 0) {
            o->setup.execs = true;
        } else if (strcmp(argv[i], "--processes") == 0) {
            o->setup.procs = true;
        } else if (strcmp(argv[i], "--progress") == 0) {
            o->progress = true;
        } else if (strcmp(argv[i], "--replay") == 0) {
            o->mode = REPLAY;
            o->files = &argv[i + 1];
            o->n_files = argc - i - 1;
            return o->n_files > 0;
        } else if (i + 1 == argc || !parse_one(o, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    return o->setup.nouns + o->setup.execs + o->setup.procs <= 1;
}

static void tell_failure(const struct setup *setup)
{
    printf("not ok 1 - seed=%" PRIu64 " breaks %s: %s\n", setup->seed, sim.rule,
           sim.why);
    printf("# again: t_sim%s --seeds %" PRIu64 " --ops %u --salt %" PRIu64
           " --verbose\n",
           setup->nouns   ? " --nouns"
           : setup->execs ? " --executions"
           : setup->procs ? " --processes"
                          : "",
           setup->seed, setup->ops, setup->salt);
}

static int run_seeds(struct options *o)
{
    double start = now_s(), took;
    uint64_t n = 0, commits = 0;
    bool timed = o->mode == SECONDS;

    for (uint64_t seed = o->from; timed || seed <= o->to; seed++, n++) {
        if (timed && n % 16 == 0 && now_s() - start > o->seconds)
            break;
        o->setup.seed = seed;
        if (o->progress)
            printf("# at seed %" PRIu64 "\n", seed);
        if (!world_run(&sim, &o->setup)) {
            tell_failure(&o->setup);
            printf("# %" PRIu64 " seeds before it\n1..1\n", n);
            return 1;
        }
        commits += sim.n_commits;
    }
    took = now_s() - start;
    printf("ok 1 - %" PRIu64 " schedules of %u operations from seed %" PRIu64
           " on keep every rule\n",
           n, o->setup.ops, o->from);
    printf("# %.0f schedules/s, %.0f operations/s, %" PRIu64 " commits, %.1f s\n1..1\n",
           (double)n / took, (double)sim.n_ops_run / took, commits, took);
    return 0;
}

static int run_determinism(struct options *o)
{
    int bad = 0;

    for (uint64_t seed = o->from; seed <= o->to; seed++) {
        o->setup.seed = seed;
        bool first_ok = world_run(&sim, &o->setup);
        uint64_t first = sim.trace;
        bool second_ok = world_run(&sim, &o->setup);
        if (first == sim.trace && first_ok == second_ok)
            continue;
        printf("# seed=%" PRIu64 ": trace %016" PRIx64 ", then %016" PRIx64 "\n", seed,
               first, sim.trace);
        bad = 1;
    }
    printf("%sok 1 - the same seed twice gives the same trace\n1..1\n",
           bad ? "not " : "");
    return bad;
}

/* One file, a case of its own. */
static int replay_file(const char *path, unsigned number, bool verbose)
{
    struct replay r;
    const char *base = strrchr(path, '/');
    const char *fault = replay_read(&r, path);

    base = base ? base + 1 : path;
    if (fault) {
        printf("not ok %u - %s: %s\n", number, base, fault);
        return 1;
    }
    r.setup.verbose = verbose;
    bool kept = world_run(&sim, &r.setup);
    if (kept)
        printf("ok %u - %s keeps every rule\n", number, base);
    else
        printf("not ok %u - %s breaks %s: %s\n", number, base, sim.rule, sim.why);
    replay_release(&r);
    return !kept;
}

static int is_schedule(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');

    return dot && strcmp(dot, ".sim") == 0;
}

static int run_replay(struct options *o)
{
    unsigned number = 0;
    int bad = 0;

    for (int i = 0; i < o->n_files; i++) {
        struct dirent **names = NULL;
        int n = scandir(o->files[i], &names, is_schedule, alphasort);
        if (n < 0) /* no directory */
            bad |= replay_file(o->files[i], ++number, o->setup.verbose);
        for (int k = 0; k < n; k++) {
            char path[PATH_MAX];
            (void)snprintf(path, sizeof(path), "%s/%s", o->files[i], names[k]->d_name);
            bad |= replay_file(path, ++number, o->setup.verbose);
            free(names[k]);
        }
        free(names);
    }
    printf("1..%u\n", number);
    return bad;
}

static int run_shrink(struct options *o)
{
    char path[64];

    o->setup.seed = o->from;
    if (world_run(&sim, &o->setup)) {
        printf("not ok 1 - seed=%" PRIu64
               " keeps every rule: nothing to shrink\n1..1\n",
               o->from);
        return 1;
    }
    (void)snprintf(path, sizeof(path), "tests/seeds/%s-%" PRIu64 ".sim", sim.rule,
                   o->from);
    const char *fault = replay_shrink(&sim, &o->setup, o->out ? o->out : path);
    printf("%sok 1 - %s\n1..1\n", fault ? "not " : "", fault ? fault : path);
    return fault != NULL;
}

int main(int argc, char **argv)
{
    struct options o = { .mode = SEEDS,
                         .from = 1,
                         .to = 1000,
                         .setup = { .ops = 60,
                                    .faults = (1U << SIM_FAULTS) - 1,
                                    .prune = PRUNE_ANY_TIME } };

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(&o, argc, argv))
        return usage();
    if (!turn_stacks(&sim)) {
        fprintf(stderr, "t_sim: no memory for stacks\n");
        return 2;
    }
    switch (o.mode) {
    case SEEDS:
    case SECONDS:
        return run_seeds(&o);
    case REPLAY:
        return run_replay(&o);
    case SHRINK:
        return run_shrink(&o);
    case DETERMINISM:
        return run_determinism(&o);
    }
    return 2;
}
