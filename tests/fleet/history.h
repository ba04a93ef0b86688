/* history.h - what several members did to a few subjects, written down and judged.
 *
 * Each worker writes its calls with the time before and after them (one clock for all
 * processes of the host) into memory of its own.  Afterwards, per subject:
 *
 *   H1  tenures, from the answer that granted to the call that ended them, do not overlap
 *   H2  tokens rise with real time: sorted by token they are sorted by time
 *   H3  a yield names a tenure that was, or was about to be, current during the call; one
 *       that is said to be pending may never come to be: a claimer that is stopped before it
 *       has its deadline loses what it took after 10 ms
 *
 * Tokens give the order, so that judging takes no search.
 */
#ifndef TESTS_FLEET_HISTORY_H
#define TESTS_FLEET_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include <belay/fleet.h>

enum event_type { EVENT_NONE, EVENT_TENURE, EVENT_YIELD };

struct event {
    uint8_t type;
    uint8_t subject;
    bool is_pending;          /* of a yield: the claim it names was under way */
    uint64_t token;           /* of the tenure, or of the one yielded to; 0: none yet */
    uint64_t called, granted; /* ns: before and after the try */
    uint64_t ending, ended;   /* of a tenure: before and after its release; 0: never */
};

struct history {
    struct event *events; /* shared by all processes */
    uint32_t max, n;
};

#define HISTORY_SUBJECTS 3

/* One worker: tries until `tries` are done, and releases what it gets. */
struct worker {
    uint32_t number;
    uint32_t tries;
    uint64_t seed;
    struct history history;
    uint64_t *witness; /* one for each subject: token of who is inside */
    uint32_t overlaps; /* times the witness was not as it should be */
    uint32_t failures; /* calls that failed */
};
void worker_run(struct worker *w, struct belay_fleet *f);

/* What was found, in numbers and, for the first thing that is wrong, in words. */
struct verdict {
    uint64_t tenures, yields, pending;
    bool is_good;
    char text[200];
};
/* false: no memory. */
bool history_judge(struct worker *const *workers, uint32_t n, struct verdict *out);

#endif /* TESTS_FLEET_HISTORY_H */
