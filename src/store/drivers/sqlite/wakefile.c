/* Who does what in which order, so that no post is lost:
 *
 *     a post      adds to its bucket, and if that had the sleepers' bit wakes them; then
 *                 to the futex word, then looks for watchers
 *     a listener  looks at its buckets, sets their bits, and sleeps only while they are
 *                 still what it saw with the bit
 *     a watcher   reads the futex word, then the buckets, counts itself as a sleeper
 *                 and sleeps only while the futex word is still what it read
 *
 * A post that a watcher's look at the buckets missed has its futex word still ahead of
 * it, so the watcher does not sleep, or is counted before the post looks for sleepers.
 * A listener's bit and the count are one word, so a post has either seen the bit or has
 * changed what the listener would sleep on.  A post that wakes nobody takes the bit away,
 * and wakes once more, for those who came in between: so it stays behind neither a
 * listener that was killed nor a poster that was killed before it woke anybody.
 *
 * What a process has seen of a bucket is kept once for all its listeners: whoever finds
 * it raised notes that, then wakes all of them, itself too, through the hub.
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
    UINT32_C(0x424c5702) /* "BLW", version 2 of the layout and of the hash \
                          */
#define N_BUCKETS 512    /* a multiple of the hub's, so that waking is short */
#define SLEEPERS UINT32_C(1)
#define ONE_POST UINT32_C(2)

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
    struct wake_line line;
    pid_t opener; /* a child after fork has no watcher to stop */

    pthread_mutex_t start; /* one thread starts the watcher */
    atomic_bool watching;
    atomic_bool stop;
    pthread_t watcher;
    _Atomic uint32_t naps; /* odd while the watcher is one of the page's sleepers */
    _Atomic uint32_t seen[N_BUCKETS];
};

static bool futex_wake_all(_Atomic uint32_t *word)
{
    return syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0) > 0;
}

static void wake_sleepers(_Atomic uint32_t *word)
{
    if (futex_wake_all(word))
        return;
    uint32_t is = atomic_load(word);
    if ((is & SLEEPERS) != 0 &&
        atomic_compare_exchange_strong(word, &is, is & ~SLEEPERS))
        (void)futex_wake_all(word);
}

static uint32_t posts_of(struct wakefile *w, unsigned bucket)
{
    return atomic_load(&w->page->bucket[bucket]) & ~SLEEPERS;
}

/* Whether the bucket was raised since it was last seen; then its listeners here know. */
static bool notice_one(struct wakefile *w, unsigned bucket)
{
    uint32_t now = posts_of(w, bucket);

    if (now == atomic_load(&w->seen[bucket]))
        return false;
    atomic_store(&w->seen[bucket], now);
    wake_post_bucket(w->hub, bucket, N_BUCKETS);
    return true;
}

/* --- listeners that sleep on their buckets --- */

static bool line_notice(void *arg, const unsigned *buckets, size_t n)
{
    bool was_any = false;

    for (size_t i = 0; i < n; i++)
        was_any = notice_one(arg, buckets[i]) || was_any;
    return was_any;
}

/* What was posted until now, who begins to listen will see in the store. */
static bool line_listen(void *arg, const unsigned *buckets, size_t n)
{
    if (n > PARK_WORDS_MAX)
        return false;
    (void)line_notice(arg, buckets, n);
    return true;
}

static void line_sleep(void *arg, const unsigned *buckets, size_t n, struct parker *p,
                       int64_t us)
{
    struct wakefile *w = arg;
    struct park_word on[PARK_WORDS_MAX];

    if (line_notice(w, buckets, n))
        return;
    for (size_t i = 0; i < n; i++) {
        _Atomic uint32_t *word = &w->page->bucket[buckets[i]];
        uint32_t is = atomic_fetch_or(word, SLEEPERS) | SLEEPERS;
        if ((is & ~SLEEPERS) != atomic_load(&w->seen[buckets[i]]))
            return; /* raised meanwhile */
        on[i] = (struct park_word){ word, is };
    }
    parker_nap(p, on, n, us);
}

/* --- the watcher --- */

static void look(struct wakefile *w)
{
    for (unsigned i = 0; i < N_BUCKETS; i++)
        (void)notice_one(w, i);
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
            (void)notice_one(w, i);
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
    uint32_t before = atomic_fetch_add(&page->bucket[i], ONE_POST);

    /* Our listeners were woken by the hub.  If we had seen everything before this very
     * post, we have now seen this one too; if not, it will be noticed, for the sake of
     * others' posts before it.  Only our own is ever skipped. */
    uint32_t expected = before & ~SLEEPERS;
    atomic_compare_exchange_strong(&w->seen[i], &expected, expected + ONE_POST);

    if ((before & SLEEPERS) != 0)
        wake_sleepers(&page->bucket[i]);
    atomic_fetch_add(&page->posts, 1);
    uint32_t naps = atomic_load(&w->naps);
    if (atomic_load(&page->sleepers) != 0 && !only_we_sleep(w, naps))
        (void)futex_wake_all(&page->posts);
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
                       struct wake_hub *hub, enum wake_way way, struct belay_error *err)
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
    for (unsigned i = 0; i < N_BUCKETS; i++)
        atomic_store(&w->seen[i], posts_of(w, i));
    w->line = (struct wake_line){ .n_buckets = N_BUCKETS,
                                  .arg = w,
                                  .listen = line_listen,
                                  .notice = line_notice,
                                  .sleep = line_sleep };
    wake_hub_on_listen(hub, on_listen, w);
    if (way == WAKE_ON_BUCKETS && park_words_work())
        wake_hub_set_line(hub, &w->line);
    *out = w;
    return BELAY_OK;
}

void wakefile_close(struct wakefile *w)
{
    if (!w)
        return;
    if (w->opener == getpid()) {
        wake_hub_on_listen(w->hub, NULL, NULL);
        wake_hub_set_line(w->hub, NULL);
        if (atomic_load(&w->watching)) {
            atomic_store(&w->stop, true);
            /* The others' watchers wake once more than they had to. */
            atomic_fetch_add(&w->page->posts, 1);
            (void)futex_wake_all(&w->page->posts);
            pthread_join(w->watcher, NULL);
        }
    }
    release(w);
}
