#include "store/server_time.h"

#include "base/clock.h"

static int64_t mono_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

void server_time_init(struct server_time *t)
{
    (void)pthread_mutex_init(&t->mutex, NULL);
    t->sampled_us = 0;
    t->offset_us = 0;
}

void server_time_release(struct server_time *t)
{
    (void)pthread_mutex_destroy(&t->mutex);
}

bool server_time_is_older(struct server_time *t, int64_t us)
{
    int64_t now_us = mono_us();

    pthread_mutex_lock(&t->mutex);
    bool older = t->sampled_us == 0 || now_us - t->sampled_us > us;
    pthread_mutex_unlock(&t->mutex);
    return older;
}

void server_time_take(struct server_time *t, int64_t server_us, int64_t asked_us)
{
    int64_t now_us = mono_us();
    /* It looked at its clock somewhere between the two. */
    int64_t least = server_us - now_us, most = server_us - asked_us;

    pthread_mutex_lock(&t->mutex);
    if (t->sampled_us == 0)
        t->offset_us = least + (most - least) / 2;
    else if (t->offset_us < least)
        t->offset_us = least;
    else if (t->offset_us > most)
        t->offset_us = most;
    t->sampled_us = now_us;
    pthread_mutex_unlock(&t->mutex);
}

int64_t server_time_now_ms(struct server_time *t)
{
    pthread_mutex_lock(&t->mutex);
    int64_t offset_us = t->offset_us;
    pthread_mutex_unlock(&t->mutex);
    return (mono_us() + offset_us) / 1000;
}
