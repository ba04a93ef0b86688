/* From a word to a descriptor: a thread sleeps on the word and writes into an eventfd of this
 * process.  It uses the segment alone, and nothing of the handle that others change. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/park.h"
#include "base/thread.h"
#include "fleet/impl.h"

struct belay_notify_bridge {
    au32 *word;
    int fd;
    pthread_t thread;
    struct parker stop;
    uint32_t seen; /* when it was opened */
    bool can_nap;  /* on the word and on the parker at once */
};

static void *carry(void *arg)
{
    struct belay_notify_bridge *b = arg;
    const struct belay_clock clock = clock_system();
    uint32_t seen = b->seen;

    while (!parker_take(&b->stop)) {
        uint32_t now = word_mark(b->word);
        if ((now & ~WORD_SLEEPERS) != seen) {
            const uint64_t one = 1;
            seen = now & ~WORD_SLEEPERS;
            /* Only a descriptor that nobody drains for 2^64 posts is full. */
            if (write(b->fd, &one, sizeof(one)) < 0)
                break;
            continue;
        }
        struct park_word on = { b->word, now };
        if (b->can_nap)
            parker_nap(&b->stop, &on, 1, INT64_MAX);
        else if (!parker_wait(&b->stop, &clock, clock.mono_us(clock.arg)))
            futex_wait(b->word, now, WAIT_SLICE_US);
        else
            break;
    }
    return NULL;
}

belay_rc belay_notify_bridge_open(struct belay_fleet *f, struct belay_notify word,
                                  struct belay_notify_bridge **out,
                                  struct belay_error *err)
{
    belay_rc rc = fleet_check_member(f, err);

    if (rc != BELAY_OK)
        return rc;
    if (word.slot >= f->n_words)
        return err_reason(err, BELAY_BAD_HANDLE, "word", "that is no word");
    struct belay_notify_bridge *b = calloc(1, sizeof(*b));
    if (!b)
        return err_no_memory(err, "a bridge");
    b->word = &f->words[word.slot].value;
    b->seen = atomic_load_explicit(b->word, memory_order_seq_cst) & ~WORD_SLEEPERS;
    b->can_nap = park_words_work();
    b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->fd < 0) {
        rc = io_error(err, "eventfd");
    } else if (!thread_start(&b->thread, carry, b)) {
        file_close(&b->fd);
        rc = err_no_memory(err, "a bridge's thread");
    }
    if (rc != BELAY_OK) {
        free(b);
        return rc;
    }
    *out = b;
    return BELAY_OK;
}

int belay_notify_bridge_fd(const struct belay_notify_bridge *b)
{
    return b->fd;
}

bool belay_notify_bridge_drain(struct belay_notify_bridge *b)
{
    uint64_t n;

    return read(b->fd, &n, sizeof(n)) == (ssize_t)sizeof(n);
}

void belay_notify_bridge_close(struct belay_notify_bridge *b)
{
    if (!b)
        return;
    parker_wake(&b->stop);
    (void)pthread_join(b->thread, NULL);
    file_close(&b->fd);
    free(b);
}
