/* peer.h - what other programs do, told by options: --peer NAME=PER_SECOND.
 *
 * They are measured on the same machine, at the same time of day.  Without the option a
 * figure of another day counts, and the benchmark says so. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>

struct bench_peer {
    const char *name;
    double per_s;
    bool measured;
};

void bench_take_peers(struct bench_peer *peers, size_t n, int argc, char **argv);

#endif /* BENCH_PEER_H */
