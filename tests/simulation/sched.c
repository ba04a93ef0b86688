/* Coroutines on one thread.  Whoever yields chooses the next one itself and switches to
 * it directly, so that going on with the same actor costs nothing. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#define STACK_LEN ((size_t)512 << 10)
#else
#define WITH_ASAN 0
#define STACK_LEN ((size_t)128 << 10)
#endif

/* Steps that a schedule may take; more means that it gets nowhere. */
#define STEPS_MAX UINT64_C(400000)

bool turn_stacks(struct sim *s)
{
    for (size_t i = 0; i < COROUTINES_MAX; i++) {
        void *p = mmap(NULL, STACK_LEN, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return false;
        s->coroutines[i].stack = p;
    }
    return true;
}

/* --- switching --- */

#if WITH_ASAN
static const void *main_stack;
static size_t main_stack_len;
#endif

static void switch_to(struct sim *s, struct coroutine *to)
{
    struct coroutine *from = s->running;

    if (from == to)
        return;
    /* Which body this thread is in goes with the coroutine. */
    from->body = txn_thread_swap(to->body);
    s->running = to;
#if WITH_ASAN
    bool home = to == &s->main;
    __sanitizer_start_switch_fiber(from->finished ? NULL : &from->fake,
                                   home ? main_stack : to->stack,
                                   home ? main_stack_len : STACK_LEN);
#endif
    if (swapcontext(&from->context, &to->context))
        abort();
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}

static struct sim *entering;

static struct coroutine *choose(struct sim *s);

static void enter(void)
{
    struct sim *s = entering;
    struct coroutine *co = s->running;
    struct actor *a = co->actor;

#if WITH_ASAN
    const void *bottom = NULL;
    size_t len = 0;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &len);
    if (!main_stack) { /* the first to be entered came from there */
        main_stack = bottom;
        main_stack_len = len;
    }
#endif
    while (!co->dead && a->next_op < a->n_ops) {
        a->op = &a->program[a->next_op++];
        a->n_points = 0;
        a->unresolved = false;
        s->n_ops_run++;
        trace(s, op_name(a->op->kind), a->id, a->op->number);
        op_of(a->op->kind)(a);
    }
    co->finished = true;
    if (!co->dead)
        a->done = true;
    switch_to(s, co->dead ? &s->main : choose(s));
    abort(); /* nobody switches back to one that has finished */
}

/* On its own: getcontext() returns once, but compilers must think it may twice. */
static void prepare(struct coroutine *co)
{
    if (getcontext(&co->context))
        abort();
    co->context.uc_stack.ss_sp = co->stack;
    co->context.uc_stack.ss_size = STACK_LEN;
    makecontext(&co->context, enter, 0);
}

void turn_start(struct sim *s, struct actor *a)
{
    struct coroutine *co = NULL;

    for (size_t i = 0; i < COROUTINES_MAX && !co; i++) {
        if (!s->coroutines[i].used)
            co = &s->coroutines[i];
    }
    if (!co) { /* the dead have taken them all */
        a->done = true;
        return;
    }
    void *stack = co->stack;
    *co = (struct coroutine){ .stack = stack, .actor = a, .front = a->front };
    co->used = true;
    a->co = co;
    entering = s;
    prepare(co);
}

/* --- who is next --- */

static bool is_runnable(struct sim *s, struct actor *a)
{
    if (a->done || !a->co || a->not_before_us > s->mono_us)
        return false;
    if (s->alone && s->alone != a->co && !s->alone->dead)
        return false;
    if (!a->waiting)
        return true;
    if (!s->ending && !listener_poll(a->waiting))
        return false;
    a->waiting = NULL;
    return true;
}

/* Nobody can run: time passes until somebody can.  False: nobody ever will. */
static bool pass_time(struct sim *s)
{
    int64_t until = INT64_MAX;

    for (unsigned i = 0; i < s->n_actors; i++) {
        const struct actor *a = &s->actors[i];
        bool barred = s->alone && s->alone != a->co && !s->alone->dead;
        if (!a->done && a->co && !barred && !a->waiting && a->not_before_us < until)
            until = a->not_before_us;
    }
    /* One that waits may be frozen or asleep as well; then it is looked at again. */
    for (unsigned i = 0; i < s->n_actors && until == INT64_MAX; i++) {
        const struct actor *a = &s->actors[i];
        if (!a->done && a->co && a->not_before_us > s->mono_us)
            until = a->not_before_us;
    }
    if (until == INT64_MAX)
        return false;
    if (until > s->mono_us)
        s->mono_us = until;
    return true;
}

/* The next to run; the main context when there is nobody, or when it is over. */
static struct coroutine *choose(struct sim *s)
{
    for (;;) {
        struct actor *can[ACTORS_MAX];
        unsigned n = 0;
        uint64_t draw = mix(s->setup->seed * 31 + s->setup->salt, ++s->step);

        if (s->step > STEPS_MAX)
            violation(s, "liveness", "not finished after %llu steps",
                      (unsigned long long)STEPS_MAX);
        if (s->rule)
            return &s->main;
        if (s->step > s->swarm.fault_steps)
            s->faults_on = false;
        if (s->n_late > 0 && draw % 16 == 0)
            deliver_late(s, (unsigned)(draw >> 32) % s->n_late);
        if (s->rule)
            return &s->main;

        struct actor *same = s->running->actor;
        if (same && !s->running->dead && !s->running->finished &&
            is_runnable(s, same) && (draw >> 8) % 100 < s->swarm.sticky)
            return same->co;
        for (unsigned i = 0; i < s->n_actors; i++) {
            if (is_runnable(s, &s->actors[i]))
                can[n++] = &s->actors[i];
        }
        if (n > 0)
            return can[(draw >> 20) % n]->co;
        if (pass_time(s))
            continue;
        if (s->n_late == 0)
            return &s->main;
        deliver_late(s, (unsigned)(draw >> 32) % s->n_late);
    }
}

void turn_over(struct sim *s)
{
    if (!s->running->draining)
        switch_to(s, choose(s));
}

void turn_sleep(struct sim *s, int64_t us)
{
    struct coroutine *co = s->running;

    if (co->dead || co == &s->main)
        return;
    if (co->actor->not_before_us < s->mono_us + us)
        co->actor->not_before_us = s->mono_us + us;
    turn_over(s);
}

bool turn_wait(struct sim *s, struct listener *l)
{
    struct coroutine *co = s->running;

    if (co->dead || s->ending)
        return false;
    co->actor->waiting = l;
    turn_over(s);
    return !co->dead && !s->ending;
}

void turn_run(struct sim *s)
{
    s->running = &s->main;
    switch_to(s, choose(s));
}

void turn_kill(struct sim *s, struct actor *a)
{
    if (!a->co)
        return;
    a->co->dead = true;
    a->co = NULL;
    a->call = NULL;
    a->noun = NULL;
    a->proc = NULL;
    if (a->exec)
        execs_dead(s, a);
    a->waiting = NULL;
}

void turn_drain(struct sim *s)
{
    for (unsigned i = 0; i < s->n_actors; i++)
        turn_kill(s, &s->actors[i]);
    for (size_t i = 0; i < COROUTINES_MAX; i++) {
        struct coroutine *co = &s->coroutines[i];
        if (!co->used)
            continue;
        if (!co->finished) {
            co->dead = co->draining = true;
            s->running = &s->main;
            switch_to(s, co);
        }
        arena_release(&co->arena);
        co->used = false;
    }
}

/* --- the clock that a store sees --- */

static int64_t hook_wall_ms(void *arg)
{
    const struct front *f = arg;

    return INT64_C(1700000000000) + f->sim->mono_us / 1000 + f->wall_offset_ms;
}

static int64_t hook_mono_us(void *arg)
{
    return ((const struct front *)arg)->sim->mono_us;
}

static void hook_sleep_us(void *arg, int64_t us)
{
    turn_sleep(((const struct front *)arg)->sim, us);
}

struct belay_clock front_clock(struct front *f)
{
    return (struct belay_clock){ .wall_ms = hook_wall_ms,
                                 .mono_us = hook_mono_us,
                                 .sleep_us = hook_sleep_us,
                                 .arg = f };
}
