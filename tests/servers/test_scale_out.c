/* Stateless scale-out: four processes with four claimers each work a few thousand batches
 * off, in 64 inboxes of one store, and any of them may be killed at any time.
 *
 *     test_scale_out STORE [case]
 *
 * Everything is done before the first case says what came of it. */
#include <stdlib.h>

#include "api/handle.h"
#include "scale_run.h"
#include "work/check.h"

static struct scale_run *ran(struct tap *t)
{
    struct scale_run *r = t->arg;

    if (!r->ran)
        scale_run(r, t);
    return r;
}

static void all_is_done(struct tap *t)
{
    struct scale_run *r = ran(t);
    int64_t left = 0, ignored = 0;

    for (int32_t s = 0; s < SCALE_SESSIONS; s++)
        left += scale_listed(r, s, false, &ignored);
    TAP_EQ(t, left, 0);
    TAP_EQ(t, r->wrong_ends, 0);
    TAP_OK(t, r->kills >= SCALE_PROCESSES);
}

static void the_dead_hold_nothing(struct tap *t)
{
    struct scale_run *r = ran(t);

    TAP_OK(t, r->orphans > 0); /* else this was about nothing */
    TAP_EQ(t, r->held, 0);
}

static unsigned times_in(const char *text, const char *id)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, id)) != NULL; at++)
        n += at[strlen(id)] == '"';
    return n;
}

/* Each batch is in the log once, and revisions have no gap. */
static void log_of(struct tap *t, struct scale_run *r, int32_t session,
                   struct belay_session *s)
{
    unsigned times[SCALE_PER_SESSION + 1] = { 0 };
    struct belay_commit_log log = { .n = 0 };

    if (!TAP_EQ(t, belay_session_log(s, 0, 1000, r->arena, &log, &r->err), BELAY_OK))
        return;
    TAP_EQ(t, log.next_after, 0);
    for (size_t i = 0; i < log.n; i++) {
        TAP_EQ(t, log.entries[i].revision, i + 1);
        for (int seq = 1; seq <= SCALE_PER_SESSION; seq++)
            times[seq] += times_in(log.entries[i].json, r->id[session][seq]);
    }
    for (int seq = 1; seq <= SCALE_PER_SESSION; seq++)
        TAP_EQ(t, times[seq], 1);
}

/* And it has one node, of the highest fence that anybody was granted. */
static void nodes_of(struct tap *t, struct scale_run *r, int32_t session,
                     struct belay_session *s)
{
    int64_t fence[SCALE_PER_SESSION + 1] = { 0 }, seq = 0, of = 0, granted = 0;
    struct belay_nodes nodes = { .n = 0 };

    if (!TAP_EQ(t, belay_session_nodes(s, 0, 0, r->arena, &nodes, &r->err), BELAY_OK))
        return;
    TAP_EQ(t, nodes.n, SCALE_PER_SESSION);
    for (size_t i = 0; i < nodes.n; i++) {
        if (!TAP_OK(t, scale_node_parse(nodes.nodes[i].node_id, &seq, &of)) ||
            !TAP_OK(t, seq >= 1 && seq <= SCALE_PER_SESSION))
            continue;
        TAP_EQ(t, fence[seq], 0);
        fence[seq] = of;
    }
    for (size_t i = 0; i < r->n_grants; i++) {
        const struct scale_grant *g = &r->grant[i];
        if (g->session != session)
            continue;
        TAP_OK(t, g->fence <= fence[g->seq]);
        granted += g->fence == fence[g->seq];
    }
    TAP_EQ(t, granted, SCALE_PER_SESSION); /* who completed it had noted it */
}

static void once_each(struct tap *t)
{
    struct scale_run *r = ran(t);
    char name[16];

    for (int32_t i = 0; i < SCALE_SESSIONS; i++) {
        struct belay_session *s = NULL;
        scale_session_name(i, name);
        belay_arena_reset(r->arena);
        if (TAP_EQ(t, belay_session_open(r->b, name, NULL, &s, &r->err), BELAY_OK)) {
            log_of(t, r, i, s);
            nodes_of(t, r, i, s);
        }
        belay_session_close(s);
    }
}

/* By batch, then by fence. */
static int by_fence(const void *a, const void *b)
{
    const struct scale_grant *x = a, *y = b;

    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->fence > y->fence) - (x->fence < y->fence);
}

static void fences_grow(struct tap *t)
{
    struct scale_run *r = ran(t);
    size_t again = 0;

    qsort(r->grant, r->n_grants, sizeof(*r->grant), by_fence);
    for (size_t i = 1; i < r->n_grants; i++) {
        const struct scale_grant *a = &r->grant[i - 1], *b = &r->grant[i];
        if (a->session != b->session || a->seq != b->seq)
            continue;
        again++;
        TAP_OK(t, a->fence < b->fence);
        /* The later grant cannot have been answered before the earlier one was asked
         * for. */
        TAP_OK(t, a->begun_us < b->done_us);
    }
    TAP_OK(t, again > 0); /* some had been taken by the dead */
}

static void found(void *arg, const struct finding *f)
{
    (void)arg;
    printf("# %s %.*s: %s\n", f->what, (int)f->entity.len,
           f->entity.ptr ? (const char *)f->entity.ptr : "", f->message);
}

static void all_is_sound(struct tap *t)
{
    struct scale_run *r = ran(t);
    struct check_counts counts = { .findings = -1 };

    TAP_EQ(t, check_store(r->b->store, found, NULL, &counts, &r->err), BELAY_OK);
    TAP_EQ(t, counts.findings, 0);
    TAP_OK(t, counts.rows > (int64_t)SCALE_BATCHES);
}

static const struct tap_case cases[] = {
    { "processes that may be killed at any time empty every inbox", all_is_done },
    { "nothing is held by the dead when their leases have ended",
      the_dead_hold_nothing },
    { "every batch is completed once: in the log, and as a node", once_each },
    { "fences only grow, and none is granted twice", fences_grow },
    { "check finds nothing", all_is_sound },
};

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--worker") == 0) {
        struct scale_plan plan = { .url = argv[2],
                                   .notes = argv[3],
                                   .process = (int32_t)strtol(argv[4], NULL, 10),
                                   .life = (int32_t)strtol(argv[5], NULL, 10) };
        return scale_worker(&plan);
    }
    struct scale_run *r = calloc(1, sizeof(*r));
    if (r && argc > 1)
        r->kind = url_kind_find(argv[1]);
    if (!r || !r->kind) {
        printf("Bail out! which store?\n");
        return 2;
    }
    int result = tap_main(cases, COUNT_OF(cases), r, argc - 1, argv + 1);
    if (r->ran)
        scale_run_release(r);
    free(r);
    return result;
}
