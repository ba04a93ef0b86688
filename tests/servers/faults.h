/* faults.h - a store whose connections break: what is acknowledged happened once, what is
 * refused never happens, and nothing happens twice (X2). */
#ifndef TESTS_SERVERS_FAULTS_H
#define TESTS_SERVERS_FAULTS_H

#include "drivers.h"
#include "tap.h"

#define FAULT_OWN_MAX 16

/* Options that every driver of a server has. */
struct limits {
    unsigned retries;
    int64_t retry_first_ms;
    unsigned retry_base;
    int retry_jitter;
    int64_t request_timeout_ms;
};
/* Answers are expected within half a second, and tries made soon again. */
extern const struct limits limits_soon;

struct fault_target {
    const struct test_driver *driver; /* what harness_open finds */
    const char *(*home)(void);        /* the URL of the server itself */
    /* What is opened from now on goes there. */
    void (*use)(const char *url, const struct limits *limits);
    const char *untried;      /* behind a URL: TLS is not even tried; "": it never is */
    int (*connections)(void); /* that the server has; -1: it cannot be asked */
};

/* The cases of any server, and n <= FAULT_OWN_MAX of its own.  Arguments: [--soak] (at
 * every byte where otherwise a part of them must do) and what tap_main takes. */
int faults_main(const struct fault_target *target, const struct tap_case *own, size_t n,
                int argc, char **argv);

#endif /* TESTS_SERVERS_FAULTS_H */
