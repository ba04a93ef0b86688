#include "store/server_time.h"

void server_time_init(struct server_time *t)
{
    (void)pthread_mutex_init(&t->mutex, NULL);
    t->sampled_us = 0;
    t->offset_us = 0;
    t->behind_us = 0;
}

void server_time_release(struct server_time *t)
{
    (void)pthread_mutex_destroy(&t->mutex);
}

bool server_time_is_due(struct server_time *t, int64_t mono_us)
{
    pthread_mutex_lock(&t->mutex);
    int64_t every_us = t->behind_us > SERVER_TIME_POOR_US ? SERVER_TIME_AGAIN_US
                                                          : SERVER_TIME_EVERY_US;
    bool due = t->sampled_us == 0 || mono_us - t->sampled_us > every_us;
    pthread_mutex_unlock(&t->mutex);
    return due;
}

bool server_time_is_old(struct server_time *t, int64_t mono_us)
{
    pthread_mutex_lock(&t->mutex);
    bool old = t->sampled_us == 0 || mono_us - t->sampled_us > SERVER_TIME_OLD_US;
    pthread_mutex_unlock(&t->mutex);
    return old;
}

void server_time_take(struct server_time *t, int64_t server_us, int64_t asked_us,
                      int64_t mono_us)
{
    int64_t least_us = server_us - mono_us, most_us = server_us - asked_us;

    pthread_mutex_lock(&t->mutex);
    /* The least: somewhere in the middle may be ahead by half of what the answer took. */
    if (t->sampled_us == 0 || t->offset_us < least_us || t->offset_us > most_us)
        t->offset_us = least_us;
    t->behind_us = most_us - t->offset_us;
    t->sampled_us = mono_us;
    pthread_mutex_unlock(&t->mutex);
}

int64_t server_time_now_ms(struct server_time *t, int64_t mono_us)
{
    pthread_mutex_lock(&t->mutex);
    int64_t offset_us = t->offset_us;
    pthread_mutex_unlock(&t->mutex);
    return (mono_us + offset_us) / 1000;
}
