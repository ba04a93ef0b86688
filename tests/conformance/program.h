/* program.h - random programs of transactions, and what a store answers to them.
 *
 * A program is a function of its seed.  Running it gives a transcript: one line per
 * transaction with the answer of every operation in it.  Nothing in it depends on the
 * driver: feed positions appear as ordinals.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include "harness.h"

#define PROGRAM_SPACES 3
#define PROGRAM_CALLS_MAX 80

/* Where a program ran. */
struct transcript {
    struct buf text; /* all transactions, then the dumps */
    size_t *lines;   /* where each transaction's line begins in the text */
    size_t n_lines;
};

/* Runs the program on a driver that it opens and closes itself.  lose_replies: the
 * driver is said to lose replies, so that commit slots are used as on another one that
 * does.  drop as in shim_options.  False, with a reason in *why, when it could not even
 * begin. */
bool program_run(uint64_t seed, const struct test_driver *driver, bool lose_replies,
                 int drop, unsigned drop_nth, struct transcript *out, const char **why);
void transcript_release(struct transcript *t);

#endif /* TESTS_PROGRAM_H */
