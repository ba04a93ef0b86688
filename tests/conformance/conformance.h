/* conformance.h - the contract of the store layer, topic by topic.
 *
 * Every case opens a fresh store on the driver that the program was started with and
 * knows nothing about it but driver.h and txn.h.  Cases of threads begin with
 * "threads:", so that the thread sanitizer can run them alone.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include "harness.h"

struct topic {
    const struct tap_case *cases;
    size_t n;
};

extern const struct topic topic_rows, topic_values, topic_commits, topic_counters,
    topic_ranks, topic_scans, topic_loads, topic_picks, topic_logs, topic_chunks,
    topic_attempts, topic_round_trips, topic_misuse, topic_spaces, topic_clock,
    topic_lost_replies, topic_slots, topic_waiting, topic_threads, topic_thread_feeds,
    topic_walks, topic_lanes, topic_lane_threads, topic_raises, topic_seen;

#endif /* TESTS_CONFORMANCE_H */
