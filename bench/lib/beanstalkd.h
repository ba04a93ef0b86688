/* beanstalkd.h - beanstalkd as a peer: a server of its own on loopback with its log on a
 * real disk (keeper.h), synced at every write, and clients that do nothing but their job. */
#ifndef BENCH_BEANSTALKD_H
#define BENCH_BEANSTALKD_H

#include "keeper.h"

struct bench_beanstalkd {
    struct bench_folder folder;
    int port; /* on 127.0.0.1; 0: it is not installed */
    struct bench_keeper keeper;
};

/* Before any thread is started.  False, and said why, when it does not start; that it is
 * not installed is no failure. */
bool bench_beanstalkd_open(struct bench_beanstalkd *s);
void bench_beanstalkd_close(struct bench_beanstalkd *s); /* also when it did not open */

/* Jobs of 100 bytes that are reserved and deleted a second, on some connections and `ahead`
 * at a time on each; that n of them were put before is not counted.  0, and said why, when
 * it fails. */
double bench_beanstalkd_rate(const struct bench_beanstalkd *s, unsigned n,
                             unsigned connections, unsigned ahead);

#endif /* BENCH_BEANSTALKD_H */
