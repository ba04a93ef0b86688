/* server_time.h - a server's clock, asked now and then and told by our own in between. */
#ifndef STORE_SERVER_TIME_H
#define STORE_SERVER_TIME_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct server_time {
    pthread_mutex_t mutex;
    int64_t sampled_us; /* by the monotonic clock; 0: never */
    int64_t offset_us;  /* server time - monotonic time */
};

void server_time_init(struct server_time *t);
void server_time_release(struct server_time *t);

/* Whether the last answer is so old, or there was none. */
bool server_time_is_older(struct server_time *t, int64_t us);

/* The server said `server_us`, after it was asked at asked_us of the monotonic clock.  What
 * was known stays as long as the answer allows it: an answer is only as good as its way was
 * short, and time that trembles would go back and forth. */
void server_time_take(struct server_time *t, int64_t server_us, int64_t asked_us);

int64_t server_time_now_ms(struct server_time *t);

#endif /* STORE_SERVER_TIME_H */
