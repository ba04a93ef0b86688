#include "store/drivers/sqlite/forked.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct watched {
    struct watched *next;
    int fd;
};

static struct {
    pthread_mutex_t mutex;
    pthread_once_t once;
    int failed; /* of pthread_atfork */
    struct watched *first;
} list = { .mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void before_fork(void)
{
    (void)pthread_mutex_lock(&list.mutex);
}

static void in_parent(void)
{
    (void)pthread_mutex_unlock(&list.mutex);
}

static void in_child(void)
{
    struct watched *next;

    for (struct watched *w = list.first; w; w = next) {
        next = w->next;
        (void)close(w->fd);
        free(w);
    }
    list.first = NULL;
    (void)pthread_mutex_unlock(&list.mutex);
}

static void register_handlers(void)
{
    list.failed = pthread_atfork(before_fork, in_parent, in_child);
}

belay_rc forked_watch(int fd, struct belay_error *err)
{
    struct watched *w = malloc(sizeof(*w));

    (void)pthread_once(&list.once, register_handlers);
    if (!w || list.failed) {
        free(w);
        return err_no_memory(err, "a fork handler");
    }
    w->fd = fd;
    (void)pthread_mutex_lock(&list.mutex);
    w->next = list.first;
    list.first = w;
    (void)pthread_mutex_unlock(&list.mutex);
    return BELAY_OK;
}

void forked_close(int fd)
{
    (void)pthread_mutex_lock(&list.mutex);
    struct watched **at = &list.first;
    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    struct watched *w = *at;
    if (w) {
        *at = w->next;
        (void)close(fd);
        free(w);
    }
    (void)pthread_mutex_unlock(&list.mutex);
}
