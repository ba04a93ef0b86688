/* test_conformance --driver NAME [-l | part of a case's name] */
#include <stdlib.h>

#include "conformance.h"

static const struct topic *const topics[] = {
    &topic_rows,    &topic_values,   &topic_commits,      &topic_counters,
    &topic_ranks,   &topic_scans,    &topic_picks,        &topic_logs,
    &topic_chunks,  &topic_attempts, &topic_round_trips,  &topic_misuse,
    &topic_spaces,  &topic_clock,    &topic_lost_replies, &topic_slots,
    &topic_waiting, &topic_threads,  &topic_thread_feeds, &topic_walks,
    &topic_loads,   &topic_lanes,    &topic_lane_threads, &topic_raises,
    &topic_seen,
};

static int usage(void)
{
    (void)fprintf(stderr, "usage: test_conformance --driver NAME [-l | PATTERN]\n"
                          "drivers:");
    for (size_t i = 0; i < n_test_drivers; i++)
        (void)fprintf(stderr, " %s", test_drivers[i].name);
    (void)fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    size_t n = 0;

    if (argc < 3 || strcmp(argv[1], "--driver") != 0)
        return usage();
    const struct test_driver *driver = test_driver_find(argv[2]);
    if (!driver)
        return usage();

    for (size_t i = 0; i < COUNT_OF(topics); i++)
        n += topics[i]->n;
    struct tap_case *all = calloc(n, sizeof(*all));
    if (!all)
        return 2;
    n = 0;
    for (size_t i = 0; i < COUNT_OF(topics); i++) {
        memcpy(all + n, topics[i]->cases, topics[i]->n * sizeof(*all));
        n += topics[i]->n;
    }
    int result = tap_main(all, n, (void *)(uintptr_t)driver, argc - 2, argv + 2);
    free(all);
    return result;
}
