#include "load.h"

#include <stdatomic.h>

struct load {
    struct harness *h;
    void (*disturb)(void *arg);
    void *arg;
    struct deed deed[LOAD_DOERS];
    struct load_tally n[LOAD_DOERS];
    atomic_uint wrong; /* answers that are none of those */
    atomic_bool stop;
};

static void do_deeds(struct load *l, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };

    while (!atomic_load(&l->stop)) {
        struct belay_error err = { .code = 0 };
        arena_reset(&arena);
        belay_rc rc = txn_run(l->h->space, deed_body, &l->deed[i], NULL, &arena, &err);
        if (rc == BELAY_OK) {
            l->n[i].ok++;
        } else if (rc == BELAY_UNKNOWN_OUTCOME) {
            l->n[i].unknown++;
        } else if (rc == BELAY_UNAVAILABLE) {
            l->n[i].refused++;
        } else {
            printf("# %s: %s\n", belay_error_info((int)rc)->name, err.message);
            atomic_fetch_add(&l->wrong, 1);
            return;
        }
    }
}

static void disturb_or_do(void *arg, unsigned i)
{
    struct load *l = arg;

    if (i < LOAD_DOERS) {
        do_deeds(l, i);
        return;
    }
    l->disturb(l->arg);
    atomic_store(&l->stop, true);
}

void load_run(struct harness *h, void (*disturb)(void *arg), void *arg)
{
    struct load l = { .h = h, .disturb = disturb, .arg = arg };
    unsigned done = 0;

    for (unsigned i = 0; i < LOAD_DOERS; i++)
        deed_found(h, &l.deed[i], i);
    crew_run(h->t, LOAD_DOERS + 1, disturb_or_do, &l);
    TAP_EQ(h->t, l.wrong, 0);
    for (unsigned i = 0; i < LOAD_DOERS; i++) {
        int64_t times = deed_times(h, &l.deed[i]);
        done += l.n[i].ok;
        if (!TAP_OK(h->t, times >= (int64_t)l.n[i].ok &&
                              times <= (int64_t)l.n[i].ok + l.n[i].unknown))
            printf("# %u done, %u refused, %u unknown, %lld there\n", l.n[i].ok,
                   l.n[i].refused, l.n[i].unknown, (long long)times);
    }
    TAP_OK(h->t, done > 0);
}
