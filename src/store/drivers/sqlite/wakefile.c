/* Who does what in which order, so that no post is lost:
 *
 *     a post      adds to its bucket, then to the futex word, then looks for sleepers
 *     a watcher   reads the futex word, then the buckets, counts itself as a sleeper
 * and sleeps only while the futex word is still what it read
 *
 * A post that a watcher's look at the buckets missed has its futex word still ahead of
 * it, so the watcher does not sleep, or is counted before the post looks for sleepers.
 *
 * Every process holds a shared lock on the file as long as it has it open.  Who gets it
 * exclusively while opening is alone and clears the page: sleepers that were killed are
 * forgotten, and whatever somebody else wrote there.  Next to others only the magic
 * word is set right: counters may stand anywhere.
 *
 * The blocks are allocated at open, so that a full disk does not turn the first post
 * into a SIGBUS.  Whoever may write the file can still cause one by making it shorter
 * while it is mapped; he could as well overwrite the database.  Nothing of Belay ever
 * shortens or removes it.
 */
#include "store/drivers/sqlite/wakefile.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/drivers/sqlite/beside.h"

#define PAGE 4096
#define MAGIC \
    UINT32_C(0x424c5701) /* "BLW", version 1 of the layout and of the hash \
                          */
#define N_BUCKETS 512    /* a multiple of the hub's, so that waking is short */

struct page {
    _Atomic uint32_t magic;
    _Atomic uint32_t posts; /* the futex */
    _Atomic uint32_t sleepers;
    uint32_t unused;
    struct sync_marks marks;
    uint32_t unused_too[8];
    _Atomic uint32_t bucket[N_BUCKETS];
};
static_assert(sizeof(struct page) <= PAGE, "the page holds all buckets");
static_assert(offsetof(struct page, marks) == 16 && offsetof(struct page, bucket) == 64,
              "as wakefile.h says");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "counters work between processes");

struct wakefile {
    int fd;
    struct page *page;
    struct wake_hub *hub;
    pid_t opener; /* a child after fork has no watcher to stop */

    pthread_mutex_t start; /* one thread starts the watcher */
    atomic_bool watching;
    atomic_bool stop;
    pthread_t watcher;
    _Atomic uint32_t naps; /* odd while the watcher is one of the page's sleepers */
    _Atomic uint32_t seen[N_BUCKETS];
};

static void futex_wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- the watcher --- */

static void look(struct wakefile *w)
{
    for (unsigned i = 0; i < N_BUCKETS; i++) {
        uint32_t now = atomic_load(&w->page->bucket[i]);
        if (now == atomic_load(&w->seen[i]))
            continue;
        atomic_store(&w->seen[i], now);
        wake_post_bucket(w->hub, i, N_BUCKETS);
    }
}

static void *watch(void *arg)
{
    struct wakefile *w = arg;
    struct page *page = w->page;

    for (;;) {
        uint32_t posts = atomic_load(&page->posts);
        if (atomic_load(&w->stop))
            return NULL;
        look(w);
        atomic_fetch_add(&page->sleepers, 1);
        atomic_fetch_add(&w->naps, 1);
        (void)syscall(SYS_futex, &page->posts, FUTEX_WAIT, posts, NULL, NULL, 0);
        atomic_fetch_add(&w->naps, 1);
        atomic_fetch_sub(&page->sleepers, 1);
    }
}

/* Called for each listener.  What the buckets hold now, its caller will see in the
 * store; what comes later, the watcher notices, however late it begins to run.  When
 * there is no thread to be had, the safety timer does, and the next listener tries
 * again. */
static void on_listen(void *arg)
{
    struct wakefile *w = arg;

    if (atomic_load_explicit(&w->watching, memory_order_acquire))
        return;
    pthread_mutex_lock(&w->start);
    if (!atomic_load(&w->watching)) {
        for (unsigned i = 0; i < N_BUCKETS; i++)
            atomic_store(&w->seen[i], atomic_load(&w->page->bucket[i]));
        atomic_store(&w->watching, thread_start(&w->watcher, watch, w));
    }
    pthread_mutex_unlock(&w->start);
}

/* --- posting --- */

/* Whether our own watcher is asleep and nobody else: it stayed so while we looked. */
static bool only_we_sleep(struct wakefile *w, uint32_t naps)
{
    return naps % 2 == 1 && atomic_load(&w->page->sleepers) == 1 &&
           atomic_load(&w->naps) == naps;
}

void wakefile_post(struct wakefile *w, struct bytes ns, struct bytes topic)
{
    struct page *page = w->page;
    unsigned i = wake_bucket(ns, topic, N_BUCKETS);
    uint32_t before = atomic_fetch_add(&page->bucket[i], 1);

    /* Our listeners were woken by the hub.  If the watcher has seen everything before
     * this very post, it has now seen this one too; if not, it will look, for the sake
     * of others' posts before it.  Only our own is ever skipped. */
    uint32_t expected = before;
    atomic_compare_exchange_strong(&w->seen[i], &expected, before + 1);

    atomic_fetch_add(&page->posts, 1);
    uint32_t naps = atomic_load(&w->naps);
    if (atomic_load(&page->sleepers) != 0 && !only_we_sleep(w, naps))
        futex_wake_all(&page->posts);
}

struct sync_marks *wakefile_marks(struct wakefile *w)
{
    return &w->page->marks;
}

/* --- opening and closing --- */

static bool set_lock(int fd, int cmd, short type)
{
    struct flock whole = { .l_type = type, .l_whence = SEEK_SET };
    int rc;

    do
        rc = fcntl(fd, cmd, &whole);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* 0 or an errno.  The lock is exclusive for as long as the page is being cleared, and
 * then shared until the file is closed. */
static int prepare(struct wakefile *w)
{
    bool alone = set_lock(w->fd, F_OFD_SETLK, F_WRLCK);

    if (!alone && !set_lock(w->fd, F_OFD_SETLKW, F_RDLCK))
        return errno;
    int rc;
    do
        rc = posix_fallocate(w->fd, 0, PAGE);
    while (rc == EINTR);
    if (rc)
        return rc;
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    if (at == MAP_FAILED)
        return errno;
    w->page = at;
    if (alone)
        memset(at, 0, PAGE);
    atomic_store(&w->page->magic, MAGIC);
    return alone && !set_lock(w->fd, F_OFD_SETLK, F_RDLCK) ? errno : 0;
}

static void release(struct wakefile *w)
{
    if (w->page)
        munmap(w->page, PAGE);
    close(w->fd);
    pthread_mutex_destroy(&w->start);
    free(w);
}

belay_rc wakefile_open(struct wakefile **out, const char *database_path,
                       struct wake_hub *hub, struct belay_error *err)
{
    int fd;
    belay_rc rc = beside_open(&fd, database_path, "-wake", "wake-up file", err);
    if (rc)
        return rc;
    struct wakefile *w = calloc(1, sizeof(*w));
    if (!w) {
        close(fd);
        return err_no_memory(err, "the wake-up file");
    }
    w->fd = fd;
    w->hub = hub;
    w->opener = getpid();
    pthread_mutex_init(&w->start, NULL);
    int why = prepare(w);
    if (why) {
        const char *text = strerrordesc_np(why);
        release(w);
        return err_set(err, BELAY_UNAVAILABLE, "wake-up file %s-wake: %s",
                       database_path, text ? text : "unknown error");
    }
    wake_hub_on_listen(hub, on_listen, w);
    *out = w;
    return BELAY_OK;
}

void wakefile_close(struct wakefile *w)
{
    if (!w)
        return;
    if (w->opener == getpid()) {
        wake_hub_on_listen(w->hub, NULL, NULL);
        if (atomic_load(&w->watching)) {
            atomic_store(&w->stop, true);
            /* The others' watchers wake once more than they had to. */
            atomic_fetch_add(&w->page->posts, 1);
            futex_wake_all(&w->page->posts);
            pthread_join(w->watcher, NULL);
        }
    }
    release(w);
}
