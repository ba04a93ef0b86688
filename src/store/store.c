#include "store/store.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "store/txn_impl.h"

/* Enough for every caller of a crowd that meets on one row to have its turn. */
#define DEFAULT_ATTEMPTS 256
#define DEFAULT_FIRST_US 20
#define DEFAULT_LONGEST_US 5000

#define ALIVE_LEN ((size_t)1)

/* One byte that says 1 here and 0 in a child after fork: cheaper to look at than to ask
 * for the process id with every call. */
static belay_rc map_alive(const volatile unsigned char **out, struct belay_error *err)
{
    unsigned char *page = mmap(NULL, ALIVE_LEN, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return err_no_memory(err, "a page");
    if (madvise(page, ALIVE_LEN, MADV_WIPEONFORK)) {
        (void)munmap(page, ALIVE_LEN);
        return err_set(
            err, BELAY_UNAVAILABLE,
            "store: this kernel cannot wipe memory on fork (Linux 4.14 can)");
    }
    *page = 1;
    *out = page;
    return BELAY_OK;
}

static void set_defaults(struct store_retry *r)
{
    if (r->max_attempts == 0)
        r->max_attempts = DEFAULT_ATTEMPTS;
    if (r->first_us <= 0)
        r->first_us = DEFAULT_FIRST_US;
    if (r->longest_us <= 0)
        r->longest_us = DEFAULT_LONGEST_US;
}

belay_rc store_open(struct store **out, struct driver *d,
                    const struct store_options *options, struct belay_error *err)
{
    uint64_t seed = 0;
    belay_rc rc = random_bytes(&options->random, &seed, sizeof(seed), err);
    if (rc)
        return rc;
    struct store *s = calloc(1, sizeof(*s));
    if (!s)
        return err_no_memory(err, "a store");
    rc = map_alive(&s->alive, err);
    if (rc) {
        free(s);
        return rc;
    }
    s->driver = d;
    s->options = *options;
    set_defaults(&s->options.retry);
    rng_init(&s->rng, seed);
    id_mint_init(&s->mint);
    atomic_store(&s->next_plan_id, 1);
    pthread_mutex_init(&s->mutex, NULL);
    *out = s;
    return BELAY_OK;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (struct space *next, *sp = s->spaces; sp; sp = next) {
        next = sp->next;
        space_close(sp);
    }
    pthread_mutex_destroy(&s->mutex);
    id_mint_release(&s->mint);
    (void)munmap((void *)(uintptr_t)s->alive, ALIVE_LEN);
    free(s);
}

struct driver *store_driver(const struct store *s)
{
    return s->driver;
}

const struct belay_clock *store_clock_hook(const struct store *s)
{
    return &s->options.clock;
}

const struct belay_random *store_random_hook(const struct store *s)
{
    return &s->options.random;
}
