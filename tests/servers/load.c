#include "load.h"

#include <stdatomic.h>

struct load {
    struct harness *h;
    void (*disturb)(void *arg);
    void *arg;
    struct deed deed[LOAD_DOERS];
    struct load_result *result;
    atomic_uint wrong; /* answers that are none of those */
    atomic_bool stop;
};

static void do_deeds(struct load *l, unsigned i)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct load_tally *n = &l->result->doer[i];

    while (!atomic_load(&l->stop)) {
        struct belay_error err = { .code = 0 };
        arena_reset(&arena);
        belay_rc rc =
            txn_run(l->deed[i].space, deed_body, &l->deed[i], NULL, &arena, &err);
        if (rc == BELAY_OK) {
            n->ok++;
        } else if (rc == BELAY_UNKNOWN_OUTCOME) {
            n->unknown++;
        } else if (rc == BELAY_UNAVAILABLE) {
            n->refused++;
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

/* What was said, against what is there. */
static void judge(struct harness *h, const struct deed *d, struct load_tally *n)
{
    n->times = deed_times(h, d);
    if (!TAP_OK(h->t,
                n->times >= (int64_t)n->ok && n->times <= (int64_t)n->ok + n->unknown))
        printf("# %u done, %u refused, %u unknown, %lld there\n", n->ok, n->refused,
               n->unknown, (long long)n->times);
}

void load_run_in(struct harness *h, struct space *const spaces[LOAD_DOERS],
                 void (*disturb)(void *arg), void *arg, struct load_result *out)
{
    struct load l = { .h = h, .disturb = disturb, .arg = arg, .result = out };

    *out = (struct load_result){ .ok = 0 };
    for (unsigned i = 0; i < LOAD_DOERS; i++)
        deed_found_in(h, spaces[i], &l.deed[i], i);
    crew_run(h->t, LOAD_DOERS + 1, disturb_or_do, &l);
    TAP_EQ(h->t, l.wrong, 0);
    for (unsigned i = 0; i < LOAD_DOERS; i++) {
        judge(h, &l.deed[i], &out->doer[i]);
        out->ok += out->doer[i].ok;
        out->refused += out->doer[i].refused;
        out->unknown += out->doer[i].unknown;
    }
    TAP_OK(h->t, out->ok > 0);
}

void load_run(struct harness *h, void (*disturb)(void *arg), void *arg)
{
    struct space *spaces[LOAD_DOERS];
    struct load_result result;

    for (unsigned i = 0; i < LOAD_DOERS; i++)
        spaces[i] = h->space;
    load_run_in(h, spaces, disturb, arg, &result);
}
