/* Wakes: one batch for each, settled with it, neither lost nor doubled. */
#include "proc.h"

static void consumed(struct world *w)
{
    enroll_id(w, "p");
    (void)wake(w, "p", "s", "one");
    STR(w, wake_states(w, "p"), "1 queued");
    const struct belay_claim *c = take(w, 1);
    if (!OK(w, c != NULL))
        return;
    STR(w, wake_states(w, "p"), "1 queued"); /* held is not done */
    RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 consumed"); /* P4 */
    STR(w, wake_seqs(w, "p", 0), "");
    STR(w, listed(w, "s"), "");
    OK(w, !ack(w, "p", 1));
}

/* One that is dropped with its claim comes again, and is settled by who completes it. */
static void taken_over(struct world *w)
{
    enroll_id(w, "p");
    (void)wake(w, "p", "s", "one");
    const struct belay_claim *late = ask(w, (struct ask){ .lease = AT_ONCE });
    const struct belay_claim *c = take(w, 1);
    RC(w, finish(w, "s", BELAY_ANY_REVISION, late), BELAY_LEASE_LOST);
    STR(w, wake_states(w, "p"), "1 queued");
    RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 consumed");
}

static const char dedupe[] = "[{\"name\":\"same\",\"semantics\":{\"wake\":{\"input\":"
                             "\"payload\",\"dedupe_key\":{"
                             "\"selector\":{\"pointer\":\"/key\"}}}}}]";

static void same(struct world *w, const char *id, const char *session)
{
    (void)note(w, (struct belay_event_draft){ .process_id = id,
                                              .event_type = "same",
                                              .payload = "{\"key\":\"k\"}",
                                              .wake_target = { session, NULL } });
}

/* P3: also of different events and different processes. */
static void deduplicated(struct world *w)
{
    (void)enroll(w, (struct belay_registration){ .event_types = dedupe });
    (void)enroll(
        w, (struct belay_registration){ .process_id = "q", .event_types = dedupe });
    same(w, "p", "s");
    same(w, "p", "s");
    same(w, "q", "s");
    STR(w, listed(w, "s"), "1");
    STR(w, wake_states(w, "p"), "1 queued, 2 duplicate");
    STR(w, wake_states(w, "q"), "1 duplicate");
    same(w, "q", "t"); /* another target is another wake */
    STR(w, listed(w, "t"), "1");
    RC(w, finish(w, "s", BELAY_ANY_REVISION, take(w, 1)), BELAY_OK);
    same(w, "p", "s"); /* what was consumed does not come again */
    STR(w, listed(w, "s"), "");
    STR(w, wake_states(w, "p"), "1 consumed, 2 duplicate, 3 duplicate");
    /* What was taken out by hand may. */
    (void)cancelled(w, "t", batch_now(w, "t", 1)->batch_id);
    STR(w, wake_states(w, "q"), "1 duplicate, 2 cancelled");
    same(w, "q", "t");
    STR(w, listed(w, "t"), "2");
    STR(w, wake_states(w, "q"), "1 duplicate, 2 cancelled, 3 queued");
}

static void acknowledged(struct world *w)
{
    bool settled = true;

    enroll_id(w, "p");
    (void)wake(w, "p", "s", "one");
    (void)wake(w, "p", "s", "two");
    OK(w, ack(w, "p", 1));
    STR(w, listed(w, "s"), "2"); /* its batch has gone with it */
    STR(w, wake_states(w, "p"), "1 acknowledged, 2 queued");
    const struct belay_claim *c = take(w, 1);
    OK(w, ack(w, "p", 2)); /* somebody works on it: the batch stays with him */
    STR(w, wake_states(w, "p"), "1 acknowledged, 2 acknowledged");
    RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 acknowledged, 2 acknowledged");
    OK(w, !ack(w, "p", 7));
    RC(w, belay_process_ack(w->use, "nobody", 1, &settled, &w->err), BELAY_NOT_FOUND);
    WHY(w, belay_process_ack(w->use, "p", 0, &settled, &w->err), BELAY_INVALID,
        "sequence");
}

static void target_gone(struct world *w)
{
    enroll_id(w, "p");
    (void)wake(w, "p", "s", "one");
    RC(w, belay_session_delete(session(w, "s"), NULL, &w->err), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 target_gone");
    const struct belay_process_event *e = wake(w, "p", "s", "two");
    EQ(w, e->sequence, 2); /* what has happened has happened */
    EQ(w, e->wake->state, BELAY_WAKE_TARGET_GONE);
    EQ(w, e->wake->enqueue_seq, 0);
    STR(w, wake_seqs(w, "p", 0), "");
}

/* A process goes, its wake stays in the inbox; the next one of that id wakes, too. */
static void id_reused(struct world *w)
{
    enroll_id(w, "p");
    (void)wake(w, "p", "s", "first life");
    finish_process(w, "p");
    RC(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_OK);
    STR(w, listed(w, "s"), "1");
    enroll_id(w, "p");
    (void)wake(w, "p", "s", "second life");
    STR(w, listed(w, "s"), "1 2");
    const struct belay_claim *c = take(w, 1);
    OK(w, strstr(c->batches[0].items[0].payload, "first life") != NULL);
    RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 queued"); /* it was the other one's */
    RC(w, finish(w, "s", BELAY_ANY_REVISION, take(w, 1)), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 consumed");
}

/* Somebody has enqueued it by hand: it is the same one. */
static void by_hand(struct world *w)
{
    enroll_id(w, "p");
    (void)post(w, (struct post){ .key = "process:p:event:1:wake" });
    (void)wake(w, "p", "s", "one");
    STR(w, listed(w, "s"), "1");
    RC(w, finish(w, "s", BELAY_ANY_REVISION, take(w, 1)), BELAY_OK);
    STR(w, wake_states(w, "p"), "1 consumed");
}

static void many(struct world *w)
{
    const char *want = "";

    enroll_id(w, "p");
    for (int i = 1; i <= 9; i++) {
        (void)line(w, "p", "between");
        (void)wake(w, "p", "s", "x");
        want = text(w, "%s%s%d", want, *want ? " " : "", 2 * i);
    }
    STR(w, wake_seqs(w, "p", 0), want);
    struct belay_wake_page page = { .size = sizeof(page),
                                    .process_id = "p",
                                    .limit = 4 };
    struct belay_wakes found = { 0 };
    size_t n = 0;
    for (int all = 0; all < 2; all++) {
        page.all = all;
        page.after = 0;
        n = 0;
        do {
            RC(w, belay_process_wakes(w->use, &page, w->arena, &found, &w->err),
               BELAY_OK);
            for (size_t i = 0; i < found.n; i++)
                EQ(w, found.items[i].sequence, (int64_t)(2 * ++n));
            page.after = found.next_after;
        } while (page.after > 0);
        EQ(w, n, 9);
    }
}

static const struct noun_case cases[] = {
    { "P4: completing the batch of a wake settles it", consumed, 0 },
    { "P4: a wake whose claim was lost is settled by who completes it", taken_over, 0 },
    { "P3: a target is woken once for a wake id, whoever says so", deduplicated, 0 },
    { "a wake is acknowledged once, and its batch goes with it", acknowledged, 0 },
    { "a wake whose target is gone is told, and stops no event", target_gone, 0 },
    { "a process of a used id loses no wake, and settles only its own", id_reused, 0 },
    { "a wake that was enqueued by hand is not doubled", by_hand, 0 },
    { "wakes are listed in pages, queued ones and all", many, 0 },
};
const struct topic topic_proc_wakes = { cases, COUNT_OF(cases) };
