/* Processes of the registry, and processes of the system: one waits for what the other
 * writes, and one is killed between any two steps of what it writes. */
#include <signal.h>

#include "children.h"
#include "proc.h"

/* --- the child --- */

void child_appends(struct world *w)
{
    world_pass(w, 50);
    (void)line(w, "p", "from elsewhere");
    world_pass(w, 50);
    finish_process(w, "p");
}

/* Until it is killed: a wake in, its batch claimed, a commit that completes it. */
void child_lives(struct world *w)
{
    for (;;) {
        const struct belay_process_event *e = wake(w, "p", "s", "up");
        if (!e)
            return;
        child_tell("in", e->sequence, e->wake->enqueue_seq);
        const struct belay_claim *c = ask(w, (struct ask){ .lease = AT_ONCE });
        if (!c)
            return;
        int64_t seq = c->batches[0].enqueue_seq;
        if (!RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK))
            return;
        child_tell("out", seq, w->committed.revision);
    }
}

/* --- the parent --- */

static void woken_from_elsewhere(struct world *w)
{
    const struct belay_process_event *e = NULL;
    const struct belay_process *p = NULL;
    int64_t begun = mono_ms();
    struct child c;

    enroll_id(w, "p");
    if (!child_start(w, &c, "append"))
        return;
    RC(w, wait_type(w, "p", "producer.line", 0, 20000, NULL, &e), BELAY_OK);
    EQ(w, e ? e->sequence : -1, 1);
    RC(w, belay_process_await(w->use, "p", 20000, NULL, w->arena, &p, &w->err),
       BELAY_OK);
    EQ(w, p ? p->status : -1, BELAY_PROCESS_COMPLETED);
    /* It was woken, twice, and did not just look again after a while. */
    OK(w, mono_ms() - begun < 4000);
    child_end(w, &c, false);
}

/* What was told is there; every event without a gap, every wake with its batch, or
 * consumed with the commit that completed it. */
static void judge(struct world *w, long long in)
{
    struct belay_wake_page page = {
        .size = sizeof(page), .all = true, .process_id = "p", .limit = 1000
    };
    struct belay_wakes wakes = { 0 };
    int64_t queued = 0, consumed = 0;

    EQ(w, proc_now(w, "p")->last_sequence >= in, 1);
    RC(w, belay_process_wakes(w->use, &page, w->arena, &wakes, &w->err), BELAY_OK);
    EQ(w, (int64_t)wakes.n, proc_now(w, "p")->last_sequence);
    for (size_t i = 0; i < wakes.n; i++) {
        const struct belay_wake *k = &wakes.items[i];
        bool there = batch_now(w, "s", k->enqueue_seq) != NULL;
        EQ(w, k->sequence, (int64_t)i + 1);          /* E1 */
        EQ(w, k->enqueue_seq, (int64_t)i + 1);       /* P3: one for each */
        EQ(w, there, k->state == BELAY_WAKE_QUEUED); /* P4 */
        queued += k->state == BELAY_WAKE_QUEUED;
        consumed += k->state == BELAY_WAKE_CONSUMED;
    }
    EQ(w, queued + consumed, (int64_t)wakes.n);
    EQ(w, consumed, revision(w, "s")); /* neither lost nor doubled */
}

static void killed_anywhere(struct world *w)
{
    long long in = 0, a = 0, b = 0;

    enroll_id(w, "p");
    for (int round = 0; round < 6; round++) {
        struct child c;
        char what[16];
        int heard = 0;

        if (!child_start(w, &c, "process"))
            return;
        while (child_hear(&c, what, &a, &b)) {
            if (strcmp(what, "in") == 0)
                in = a;
            if (++heard == 4 + round * 3)
                (void)kill(c.pid, SIGKILL);
        }
        child_end(w, &c, true);
        w->use = round % 2 ? w->b : w->a;
        judge(w, in);
    }
}

static const struct noun_case cases[] = {
    { "two processes: who waits for an event or an end is woken by the other",
      woken_from_elsewhere, CASE_SHARED | CASE_REAL_TIME },
    { "kill -9 anywhere: an event and its wake are there together, or neither",
      killed_anywhere, CASE_SHARED | CASE_REAL_TIME },
};
const struct topic topic_proc_children = { cases, COUNT_OF(cases) };
