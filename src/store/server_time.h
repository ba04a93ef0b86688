/* server_time.h - a server's clock, asked now and then and told by our own in between.
 *
 * What it tells is never ahead of the server's clock, as long as both go at one pace: what is
 * over here is over there, too, however long the answer was on its way and whoever was stopped
 * meanwhile (L1).  It may be behind, by no more than the answer took; so an answer that took
 * long is soon followed by the next question.
 *
 * Pure but for the mutex: mono_us is the caller's monotonic clock.
 */
#ifndef STORE_SERVER_TIME_H
#define STORE_SERVER_TIME_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Asked along with some request this often; this often while it is known no better than that. */
#define SERVER_TIME_EVERY_US ((int64_t)1000000)
#define SERVER_TIME_POOR_US ((int64_t)2000)
#define SERVER_TIME_AGAIN_US ((int64_t)20000)
/* Not trusted any more without having been asked. */
#define SERVER_TIME_OLD_US ((int64_t)10000000)

struct server_time {
    pthread_mutex_t mutex;
    int64_t sampled_us; /* by the monotonic clock; 0: never */
    int64_t offset_us;  /* server time - monotonic time, at least */
    int64_t behind_us;  /* it may be this much more */
};

void server_time_init(struct server_time *t);
void server_time_release(struct server_time *t);

/* Whether the next request should ask along; whether it must be asked before it is told. */
bool server_time_is_due(struct server_time *t, int64_t mono_us);
bool server_time_is_old(struct server_time *t, int64_t mono_us);

/* The server said `server_us` somewhere between asked_us and mono_us.  What was known stays as
 * long as the answer allows it. */
void server_time_take(struct server_time *t, int64_t server_us, int64_t asked_us,
                      int64_t mono_us);

int64_t server_time_now_ms(struct server_time *t, int64_t mono_us);

#endif /* STORE_SERVER_TIME_H */
