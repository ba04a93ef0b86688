/* wire.h - one process wakes another without anything else: by PATH-wake, and by a word of a
 * fleet. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>

#include "disk.h"

enum bench_wire { WIRE_PAGE, WIRE_WATCHER, WIRE_FLEET };

/* Microseconds from a post to the waiter's running, one after the other, n of them; while
 * `others` more processes wait for something else. */
bool bench_wire_samples(enum bench_wire wire, const struct bench_folder *f,
                        unsigned others, double *out, unsigned n);

#endif /* BENCH_WIRE_H */
