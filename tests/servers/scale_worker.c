#include "scale_worker.h"

#include <belay/session.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"

#define AT_ONCE 2 /* batches of a claim */
#define WORK_US 30000
#define PAUSE_US 5000

struct process {
    const struct scale_plan *plan;
    struct belay *b;
    int notes;
    atomic_int failed;
};

struct claimer {
    struct process *p;
    int32_t number;
    struct rng rng;
    struct belay_arena *arena;
    struct belay_error err;
    pthread_t thread;
};

void scale_session_name(int32_t session, char out[16])
{
    (void)snprintf(out, 16, "s%d", (int)session);
}

void scale_node_name(int64_t seq, int64_t fence, char out[48])
{
    (void)snprintf(out, 48, "b%lld.%lld", (long long)seq, (long long)fence);
}

bool scale_node_parse(const char *name, int64_t *out_seq, int64_t *out_fence)
{
    char again[48], *end = NULL;

    if (name[0] != 'b')
        return false;
    *out_seq = strtoll(name + 1, &end, 10);
    *out_fence = *end == '.' ? strtoll(end + 1, NULL, 10) : 0;
    scale_node_name(*out_seq, *out_fence, again);
    return strcmp(name, again) == 0;
}

static int64_t mono_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

static void complain(struct claimer *c, const char *what, belay_rc rc)
{
    printf("# process %d, life %d: %s: %s: %s\n", c->p->plan->process, c->p->plan->life,
           what, belay_error_info((int)rc)->name, c->err.message);
    atomic_store(&c->p->failed, 1);
}

/* A record goes out whole or not at all. */
static void note(struct claimer *c, int32_t session, const struct belay_claim *claim,
                 int64_t begun_us)
{
    int64_t done_us = mono_us();

    for (size_t i = 0; i < claim->n_batches; i++) {
        struct scale_grant g = { .process = c->p->plan->process,
                                 .life = c->p->plan->life,
                                 .claimer = c->number,
                                 .session = session,
                                 .seq = claim->batches[i].enqueue_seq,
                                 .fence = claim->batches[i].fence,
                                 .begun_us = begun_us,
                                 .done_us = done_us };
        if (write(c->p->notes, &g, sizeof(g)) != (ssize_t)sizeof(g))
            complain(c, "a note", BELAY_OK);
    }
}

/* A commit that comes too late is refused; somebody else has the batches then. */
static void complete(struct claimer *c, const char *session,
                     const struct belay_claim *claim)
{
    char texts[AT_ONCE][160], name[48];
    const char *nodes[AT_ONCE];
    struct belay_committed out;
    struct belay_session *s = NULL;
    struct belay_commit commit = { .size = sizeof(commit),
                                   .graph = BELAY_GRAPH_APPEND,
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .nodes = nodes,
                                   .n_nodes = claim->n_batches,
                                   .completes = &claim,
                                   .n_completes = 1 };

    for (size_t i = 0; i < claim->n_batches; i++) {
        scale_node_name(claim->batches[i].enqueue_seq, claim->batches[i].fence, name);
        (void)snprintf(texts[i], sizeof(texts[i]),
                       "{\"node_id\":\"%s\",\"kind\":\"plugin\","
                       "\"plugin_type\":\"note\",\"body\":{}}",
                       name);
        nodes[i] = texts[i];
    }
    belay_rc rc = belay_session_open(c->p->b, session, NULL, &s, &c->err);
    if (rc == BELAY_OK)
        rc = belay_session_commit(s, &commit, c->arena, &out, &c->err);
    belay_session_close(s);
    if (rc && rc != BELAY_LEASE_LOST && rc != BELAY_CONTENTION)
        complain(c, "a commit", rc);
}

/* True when the inbox is empty, and stays so: nothing enters any more. */
static bool serve(struct claimer *c, int32_t session, bool *worked)
{
    struct belay_claimed out = { .claim = NULL };
    char name[16], owner[32];
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = name,
                                           .owner_id = owner,
                                           .lease_ms = SCALE_LEASE_MS,
                                           .max = AT_ONCE };

    scale_session_name(session, name);
    (void)snprintf(owner, sizeof(owner), "p%d.%d.%d", c->p->plan->process,
                   c->p->plan->life, c->number);
    belay_arena_reset(c->arena);
    int64_t begun_us = mono_us();
    belay_rc rc = belay_queue_claim(c->p->b, &request, c->arena, &out, &c->err);
    if (rc && rc != BELAY_CONTENTION)
        complain(c, "a claim", rc);
    if (rc || !out.claim)
        return !rc && out.why == BELAY_NO_EMPTY;
    note(c, session, out.claim, begun_us);
    *worked = true;
    (void)usleep((useconds_t)rng_below(&c->rng, WORK_US));
    complete(c, name, out.claim);
    return false;
}

static void *claim_all(void *arg)
{
    struct claimer *c = arg;
    bool empty = false;

    while (!empty && !atomic_load(&c->p->failed)) {
        int32_t first = (int32_t)rng_below(&c->rng, SCALE_SESSIONS);
        bool worked = false;
        empty = true;
        for (int32_t i = 0; i < SCALE_SESSIONS && !atomic_load(&c->p->failed); i++)
            empty &= serve(c, (first + i) % SCALE_SESSIONS, &worked);
        if (!worked && !empty)
            (void)usleep(PAUSE_US);
    }
    return NULL;
}

static void run(struct process *p)
{
    struct claimer claimers[SCALE_CLAIMERS] = { { .p = p } };

    for (int32_t i = 0; i < SCALE_CLAIMERS; i++) {
        struct claimer *c = &claimers[i];
        *c = (struct claimer){ .p = p, .number = i };
        rng_init(&c->rng, (uint64_t)p->plan->process * 1000 +
                              (uint64_t)p->plan->life * 10 + (uint64_t)i);
        if (belay_arena_new(&c->arena, &c->err) ||
            pthread_create(&c->thread, NULL, claim_all, c))
            abort();
    }
    for (int32_t i = 0; i < SCALE_CLAIMERS; i++) {
        (void)pthread_join(claimers[i].thread, NULL);
        belay_arena_free(claimers[i].arena);
    }
}

int scale_worker(const struct scale_plan *plan)
{
    struct belay_options options = { .size = sizeof(options) };
    struct process p = { .plan = plan };
    struct belay_error err;

    p.notes = open(plan->notes, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (p.notes < 0 || belay_open(plan->url, &options, &p.b, &err)) {
        printf("# process %d, life %d: open: %s\n", plan->process, plan->life,
               p.notes < 0 ? "no file for notes" : err.message);
        return 2;
    }
    run(&p);
    belay_close(p.b);
    (void)close(p.notes);
    return atomic_load(&p.failed) ? 3 : 0;
}
