#include "session_worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "session_deeds.h"
#include "session_mortals.h"

/* --- what the last life left --- */

/* Whether the claim is of no use any more. */
static bool spends(const struct note *n)
{
    bool settled = n->rc == BELAY_OK || n->rc == BELAY_LEASE_LOST;

    return n->said == SAID_DONE &&
           (n->deed == DEED_ABANDON || (n->deed == DEED_COMMIT && settled));
}

static void remember(struct hand *h, const struct note *n)
{
    if (n->n > h->n)
        h->n = n->n;
    if (spends(n) && h->claim.said == SAID_DONE && strcmp(h->claim.text, n->text) == 0)
        h->claim.said = SAID_BROKEN;
    if (n->said == SAID_BEGIN && n->deed == DEED_UNPIN) {
        for (unsigned i = 0; i < h->n_pins; i++) {
            if (maker_is(&h->pins[i], &n->thing))
                h->pins[i--] = h->pins[--h->n_pins];
        }
    }
    if (n->said != SAID_DONE || n->rc)
        return;
    if (n->deed == DEED_CLAIM && n->n_batches > 0)
        h->claim = *n;
    if (n->deed == DEED_COMMIT)
        h->turn = *n;
    if (n->deed == DEED_PUT && h->n_pins < DEEDS_PINS)
        h->pins[h->n_pins++] = n->thing;
}

static void finish_last_life(struct hand *h, const struct note *last)
{
    if (last->said != SAID_BEGIN)
        return;
    if (last->deed == DEED_COMMIT && !(last->flags & NOTE_OTHER))
        deed_commit_again(h, last, NOTE_RETRY);
    else if (last->deed == DEED_ENQUEUE && last->flags & NOTE_KEYED)
        deed_enqueue(h, last);
    else if (last->deed == DEED_PUT)
        deed_put(h, last);
}

/* --- what this one does --- */

static void use(struct hand *h, struct note *claim)
{
    uint64_t dice = rng_below(&h->rng, 100);

    if (dice < 20) {
        deed_renew(h, claim);
    } else if (dice < 35) {
        deed_abandon(h, claim);
    } else if (dice < 90) {
        deed_commit(h, claim->session, claim);
    } /* else it is left to run out */
}

/* A turn that was answered for: the same again, or with other content. */
static void again(struct hand *h)
{
    struct note turn = h->turn;

    if (turn.said == SAID_DONE)
        deed_commit_again(h, &turn, rng_below(&h->rng, 2) ? NOTE_OTHER : 0);
}

static void one_deed(struct hand *h)
{
    uint64_t dice = rng_below(&h->rng, 105);

    if (h->claim.said == SAID_DONE && dice < 60) {
        if (rng_below(&h->rng, 8) == 0)
            (void)usleep((useconds_t)rng_below(&h->rng, 120000));
        use(h, &h->claim);
    } else if (h->left.said == SAID_DONE && dice < 66)
        use(h, &h->left);
    else if (dice < 25)
        deed_enqueue(h, NULL);
    else if (dice < 70)
        deed_claim(h);
    else if (dice < 80)
        deed_commit(h, (int)rng_below(&h->rng, NOTE_SESSIONS), NULL);
    else if (dice < 85)
        deed_put(h, NULL);
    else if (dice < 88)
        deed_unpin(h);
    else if (dice < 92)
        deed_gc(h);
    else if (dice < 94)
        deed_read_pin(h);
    else if (dice < 96)
        deed_read_checkpoint(h);
    else if (dice < 98)
        deed_cancel(h);
    else if (dice < 100)
        again(h);
    else
        deed_mortal(h);
}

/* --- a clock that takes its time --- */

static void dawdle(struct hand *h)
{
    if (h->dawdles && rng_below(&h->rng, 6) == 0)
        (void)usleep((useconds_t)rng_below(&h->rng, 20000));
}

static int64_t slow_wall_ms(void *arg)
{
    struct belay_clock clock = clock_system();

    dawdle(arg);
    return clock.wall_ms(clock.arg);
}

static int64_t slow_mono_us(void *arg)
{
    struct belay_clock clock = clock_system();

    dawdle(arg);
    return clock.mono_us(clock.arg);
}

static void slow_sleep_us(void *arg, int64_t us)
{
    struct belay_clock clock = clock_system();

    (void)arg;
    clock.sleep_us(clock.arg, us);
}

/* --- a life --- */

static void give_up(struct hand *h, const char *what, const struct belay_error *err)
{
    deed_broken(h, what, err);
    _exit(2);
}

static void begin(struct hand *h, const struct worker_plan *plan)
{
    struct belay_clock clock = { slow_wall_ms, slow_mono_us, slow_sleep_us, h };
    struct belay_options options = { .size = sizeof(options),
                                     .ns = "default",
                                     .clock = &clock };
    struct belay_error err;
    char id[16];

    if (belay_arena_new(&h->arena, &err) ||
        belay_open(plan->url, &options, &h->b, &err))
        give_up(h, "open", &err);
    for (int i = 0; i < NOTE_SESSIONS; i++) {
        session_name(i, id);
        if (belay_session_open(h->b, id, NULL, &h->session[i], &err))
            give_up(h, "session", &err);
    }
}

void session_worker(const struct worker_plan *plan)
{
    struct hand *h = calloc(1, sizeof(*h));
    struct note last = { .said = SAID_DONE };
    struct notes notes;

    if (!h || prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != plan->parent)
        _exit(1);
    h->number = plan->number;
    h->life = plan->life;
    h->claim.said = h->left.said = h->turn.said = SAID_BROKEN;
    rng_init(&h->rng, plan->seed);
    notes_read(plan->dir, plan->number, &notes);
    for (size_t i = 0; i < notes.n; i++) {
        remember(h, &notes.note[i]);
        last = notes.note[i];
    }
    notes_release(&notes);
    h->fd = notes_open(plan->dir, plan->number);
    if (h->fd < 0)
        _exit(1);
    begin(h, plan);
    finish_last_life(h, &last);
    for (;;)
        one_deed(h);
}
