/* test_fleet.h - what the tests of fleets share. */
#ifndef TESTS_UNIT_TEST_FLEET_H
#define TESTS_UNIT_TEST_FLEET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <belay/fleet.h>

#include "tap.h"

/* A small fleet: everything happens sooner. */
static inline struct belay_fleet_options small_fleet(uint32_t flags)
{
    return (struct belay_fleet_options){
        .size = sizeof(struct belay_fleet_options),
        .flags = flags,
        .fleet_size = 8,
        .subjects = 64,
        .holds = 16,
        .log_capacity = 64,
        .dir = (flags & BELAY_FLEET_PRIVATE) != 0 ? NULL : ".",
    };
}

/* Joins, or says why not and ends the program. */
static inline struct belay_fleet *must_join(const char *name,
                                            const struct belay_fleet_options *options)
{
    struct belay_fleet *f = NULL;
    struct belay_error err;

    if (belay_fleet_join(name, options, &f, &err) != BELAY_OK) {
        printf("Bail out! join %s: %s\n", name, err.message);
        exit(1);
    }
    return f;
}

static inline struct belay_fleet *must_join_beside(struct belay_fleet *f)
{
    struct belay_fleet *g = NULL;
    struct belay_error err;

    if (belay_fleet_join_beside(f, NULL, &g, &err) != BELAY_OK) {
        printf("Bail out! join beside: %s\n", err.message);
        exit(1);
    }
    return g;
}

static inline struct belay_contest_subject subject_of(uint8_t kind, const char *label)
{
    return (struct belay_contest_subject){ .label = label,
                                           .label_len = strlen(label),
                                           .kind = kind };
}

static inline struct belay_contest_terms terms_of(const char *owner, int64_t ttl_ms)
{
    return (struct belay_contest_terms){ .owner = owner,
                                         .owner_len = strlen(owner),
                                         .ttl_ms = ttl_ms };
}

static inline struct belay_contest_claim try_at(struct tap *t, struct belay_fleet *f,
                                                uint8_t kind, const char *label,
                                                const char *owner, int64_t ttl_ms,
                                                int64_t now_ms)
{
    struct belay_contest_claim claim = { 0 };
    struct belay_contest_subject subject = subject_of(kind, label);
    struct belay_contest_terms terms = terms_of(owner, ttl_ms);
    struct belay_error err;

    if (!TAP_EQ(t, belay_contest_try_at(f, &subject, &terms, now_ms, &claim, &err),
                BELAY_OK))
        printf("# %s\n", err.message);
    return claim;
}

static inline struct belay_contest_claim try_now(struct tap *t, struct belay_fleet *f,
                                                 const char *label, const char *owner,
                                                 int64_t ttl_ms)
{
    struct belay_contest_claim claim = { 0 };
    struct belay_contest_subject subject = subject_of(1, label);
    struct belay_contest_terms terms = terms_of(owner, ttl_ms);
    struct belay_error err;

    if (!TAP_EQ(t, belay_contest_try(f, &subject, &terms, &claim, &err), BELAY_OK))
        printf("# %s\n", err.message);
    return claim;
}

#endif /* TESTS_UNIT_TEST_FLEET_H */
