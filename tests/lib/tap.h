/* tap.h - test cases that print TAP.
 *
 * A test program lists its cases in a table and hands it to tap_main().  A case is a
 * function of the running test; its checks print nothing when they hold and a
 * diagnostic with both values when they do not, and the case goes on.  One TAP line per
 * case.  Arguments: none runs everything, `-l` lists, any other word selects the cases
 * whose name contains it.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct tap {
    const char *name; /* of the running case */
    unsigned failed;  /* checks of it that did not hold */
    void *arg;        /* what the program passed to tap_main */
};

struct tap_case {
    const char *name; /* a sentence of the contract */
    void (*run)(struct tap *t);
};

static inline bool tap_check(struct tap *t, bool held, const char *what,
                             const char *file, int line)
{
    if (!held) {
        t->failed++;
        printf("# %s:%d: %s: not so: %s\n", file, line, t->name, what);
    }
    return held;
}

static inline bool tap_check_i64(struct tap *t, int64_t got, int64_t want,
                                 const char *what, const char *file, int line)
{
    if (got != want) {
        t->failed++;
        printf("# %s:%d: %s: %s is %" PRId64 ", not %" PRId64 "\n", file, line, t->name,
               what, got, want);
    }
    return got == want;
}

static inline bool tap_check_str(struct tap *t, const char *got, const char *want,
                                 const char *what, const char *file, int line)
{
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    if (!same) {
        t->failed++;
        printf("# %s:%d: %s: %s is \"%s\", not \"%s\"\n", file, line, t->name, what,
               got ? got : "(null)", want ? want : "(null)");
    }
    return same;
}

/* Checks: a condition, two integers, two C strings.  Each is true when it held. */
#define TAP_OK(t, held) tap_check((t), (held), #held, __FILE__, __LINE__)
#define TAP_EQ(t, got, want) \
    tap_check_i64((t), (int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define TAP_STR(t, got, want) \
    tap_check_str((t), (got), (want), #got, __FILE__, __LINE__)

static inline int tap_main(const struct tap_case *cases, size_t n, void *arg, int argc,
                           char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    bool list = strcmp(only, "-l") == 0;
    unsigned ran = 0, bad = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < n; i++) {
        if (list) {
            printf("%s\n", cases[i].name);
            continue;
        }
        if (!strstr(cases[i].name, only))
            continue;
        struct tap t = { .name = cases[i].name, .arg = arg };
        cases[i].run(&t);
        ran++;
        bad += t.failed > 0;
        printf("%sok %u - %s\n", t.failed > 0 ? "not " : "", ran, cases[i].name);
    }
    if (!list)
        printf("1..%u\n", ran);
    return bad > 0;
}

#endif /* TESTS_TAP_H */
