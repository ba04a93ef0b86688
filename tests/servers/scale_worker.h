/* scale_worker.h - the program that test_scale_out kills: claimers on shared inboxes.
 *
 * Each claimer takes what is there, whichever inbox it is in, works a moment on it and
 * commits it with a node per batch.  What a claim was granted is noted in a file before
 * anything is done with it.  The program ends when it has found every inbox empty. */
#ifndef TESTS_SERVERS_SCALE_WORKER_H
#define TESTS_SERVERS_SCALE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#define SCALE_PROCESSES 4
#define SCALE_CLAIMERS 4
#define SCALE_SESSIONS 64
#define SCALE_PER_SESSION 32
#define SCALE_LEASE_MS ((int64_t)400)

/* One batch of a claim, as it is in the file. */
struct scale_grant {
    int32_t process, life, claimer, session;
    int64_t seq, fence;
    int64_t begun_us, done_us; /* of the call, by the monotonic clock */
};

struct scale_plan {
    const char *url;
    const char *notes; /* the file */
    int32_t process, life;
};

/* What the program answers with: 0 when all is done, else a line was printed. */
int scale_worker(const struct scale_plan *plan);

void scale_session_name(int32_t session, char out[16]);

/* Of a batch that was completed under a fence, and back; false when it is no such name. */
void scale_node_name(int64_t seq, int64_t fence, char out[48]);
bool scale_node_parse(const char *name, int64_t *out_seq, int64_t *out_fence);

#endif /* TESTS_SERVERS_SCALE_WORKER_H */
