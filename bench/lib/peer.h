/* peer.h - what other programs do, told by options: --peer NAME=PER_SECOND.
 *
 * They are measured on the same machine, at the same time of day.  Without the option a
 * figure of another day counts, and the benchmark says so.
 *
 * Where the variable BELAY_BENCH_PEERS names a folder, NAME/run.sh in it measures a program
 * in the same run: it prints a line of JSON with "drain_best" and "drain_c1", jobs a second
 * at its best and one by one. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>

#include "bench.h"

#define BENCH_PEER_RUNS 3

struct bench_peer {
    const char *name;
    double per_s;
    double found[BENCH_PEER_RUNS];
    unsigned n;
    bool measured;
};

/* A figure of this run; one that is not above 0 is none.  Of several the median counts. */
void bench_peer_found(struct bench_peer *peer, double per_s);

void bench_take_peers(struct bench_peer *peers, size_t n, int argc, char **argv);

/* Runs its script with one argument, which takes minutes, so not in a smoke run.  Either may
 * be NULL; both stay as they are where there is no script, or no figure.  A machine's pace
 * changes within minutes: who runs it between rounds of its own compares the same hour. */
void bench_run_peer(const struct bench_options *o, const char *name, const char *arg,
                    struct bench_peer *best, struct bench_peer *c1);

/* Whether a peer is run before this round of `rounds`: the first, the last, one between. */
bool bench_peer_turn(unsigned round, unsigned rounds);

#endif /* BENCH_PEER_H */
