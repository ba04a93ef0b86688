#include "base/random_pool.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/mman.h>

#define POOL_LEN ((size_t)1024)
#define PORTION_MAX ((size_t)128) /* more is drawn directly */

struct random_page {
    size_t left; /* bytes that nobody has got yet: the first ones */
    uint8_t bytes[POOL_LEN];
};

void random_pool_init(struct random_pool *p)
{
    void *page = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    pthread_mutex_init(&p->mutex, NULL);
    p->page = page != MAP_FAILED ? page : NULL;
    if (p->page && madvise(page, sizeof(*p->page), MADV_WIPEONFORK)) {
        (void)munmap(page, sizeof(*p->page));
        p->page = NULL;
    }
}

void random_pool_release(struct random_pool *p)
{
    pthread_mutex_destroy(&p->mutex);
    if (!p->page)
        return;
    OPENSSL_cleanse(p->page, sizeof(*p->page));
    (void)munmap(p->page, sizeof(*p->page));
    p->page = NULL;
}

/* With the mutex held. */
static int take(struct random_page *page, void *out, size_t n)
{
    const struct belay_random source = random_system();

    if (page->left < n) {
        page->left = 0; /* until all of them are there */
        if (source.fill(source.arg, page->bytes, sizeof(page->bytes)))
            return -1;
        page->left = sizeof(page->bytes);
    }
    page->left -= n;
    memcpy(out, page->bytes + page->left, n);
    OPENSSL_cleanse(page->bytes + page->left, n);
    return 0;
}

static int fill(void *arg, void *out, size_t n)
{
    struct random_pool *p = arg;

    /* In a child of fork somebody may hold the mutex who is not there: nobody waits for it. */
    if (!p->page || n > PORTION_MAX || pthread_mutex_trylock(&p->mutex)) {
        const struct belay_random source = random_system();
        return source.fill(source.arg, out, n);
    }
    int failed = take(p->page, out, n);
    pthread_mutex_unlock(&p->mutex);
    return failed;
}

struct belay_random random_pool_hook(struct random_pool *p)
{
    return (struct belay_random){ .fill = fill, .arg = p };
}
