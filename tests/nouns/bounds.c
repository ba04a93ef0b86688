/* The ends of time and of numbers (5.2, 11). */
#include "nouns.h"

/* Times are Unix milliseconds, 0 to 2^53 - 1; above is clamped. */
#define END_OF_TIME ((INT64_C(1) << 53) - 1)

static void far_futures(struct world *w)
{
    static const int64_t times[] = { END_OF_TIME - 1, END_OF_TIME, END_OF_TIME + 1,
                                     INT64_MAX - 1, INT64_MAX };

    for (size_t i = 0; i < COUNT_OF(times); i++) {
        const struct belay_batch *b = post(w, (struct post){ .at = times[i] });
        int64_t want = times[i] < END_OF_TIME ? times[i] : END_OF_TIME;
        EQ(w, b ? b->available_at_ms : -1, want);
    }
    OK(w, !take(w, 8));
    EQ(w, w->claimed.why, BELAY_NO_NOT_YET_AVAILABLE);
    EQ(w, w->claimed.next_at_ms, END_OF_TIME - 1);
    OK(w, !ask(w, (struct ask){ .session = "t" }));
    EQ(w, w->claimed.next_at_ms, BELAY_TIME_NONE); /* nothing happens by itself there */
    STR(w, pending(w, "s"), "1 2 3 4 5");
    post_many(w, "s", 1);
    STR(w, seqs(w, take(w, 8)), "6");
}

static void leases_saturate(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = ask(w, (struct ask){ .lease = BELAY_LEASE_MAX_MS });
    if (!c)
        return;
    EQ(w, c->expires_at_ms, c->claimed_at_ms + BELAY_LEASE_MAX_MS);
    OK(w, renewed(w, c, BELAY_LEASE_MAX_MS) <= END_OF_TIME);
}

/* A store whose clock stands just before the end.  Where the store's time is a server's
 * that cannot be had, and the case is the one above. */
static void leases_at_the_end_of_time(struct world *w)
{
    struct world late;

    leases_saturate(w);
    if (w->store->own_clock)
        return;
    if (world_open(&late, w->t, w->store, END_OF_TIME - 1000)) {
        post_many(&late, "s", 1);
        const struct belay_claim *c = ask(&late, (struct ask){ .lease = MINUTE });
        EQ(w, c ? c->expires_at_ms : -1, END_OF_TIME);
        EQ(w, c ? renewed(&late, c, BELAY_LEASE_MAX_MS) : -1, END_OF_TIME);
        if (c)
            RC(&late, finish(&late, "s", 0, c), BELAY_OK);
    }
    world_close(&late);
}

static void bounds_of_reads(struct world *w)
{
    struct belay_queue_page page = { .size = sizeof(page), .after_seq = INT64_MAX };
    struct belay_batches out = { 0 };
    struct belay_nodes found = { 0 };
    struct belay_commit_log log = { 0 };

    post_many(w, "s", 1);
    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    RC(w, belay_attachment_intent(session(w, "s"), "x", "u", NULL, &w->err), BELAY_OK);
    RC(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 0);
    RC(w,
       belay_session_nodes(session(w, "s"), INT64_MAX, 10, w->arena, &found, &w->err),
       BELAY_OK);
    EQ(w, found.n, 0);
    RC(w, belay_session_log(session(w, "s"), INT64_MAX, 10, w->arena, &log, &w->err),
       BELAY_OK);
    EQ(w, log.n, 0);
    STR(w, uncommitted(w, "s", INT64_MAX), "x");
    STR(w, uncommitted(w, "s", END_OF_TIME), "x");
    STR(w, uncommitted(w, "s", 0), "");
}

static void revisions_out_of_reach(struct world *w)
{
    static const int64_t expected[] = { 1, END_OF_TIME + 1, INT64_MAX };

    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        RC(w, say(w, "s", expected[i], "n", NULL), BELAY_HEAD_REVISION_CONFLICT);
        EQ(w, w->err.expected, expected[i]);
        EQ(w, w->err.actual, 0);
    }
}

/* At expires_at == now a lease is past due already. */
static void the_edge_of_a_lease(struct world *w)
{
    post_many(w, "s", 1);
    const struct belay_claim *c = ask(w, (struct ask){ .lease = 100 });
    if (!c)
        return;
    if (!w->store->own_clock) { /* else time cannot be held on to the edge */
        world_pass(w, 99);
        OK(w, !take(w, 1));
        EQ(w, w->claimed.next_at_ms, c->expires_at_ms);
        STR(w, pending(w, "s"), "");
        world_pass(w, 1);
    } else {
        world_pass(w, 150);
    }
    STR(w, pending(w, "s"), "1");
    STR(w, seqs(w, take(w, 1)), "1");
}

static void the_edge_of_availability(struct world *w)
{
    const struct belay_batch *b = post(w, (struct post){ .session = "t" });
    if (!b)
        return;
    int64_t at = b->enqueued_at_ms + 100;
    (void)post(w, (struct post){ .at = at });
    OK(w, !take(w, 1));
    EQ(w, w->claimed.why, BELAY_NO_NOT_YET_AVAILABLE);
    EQ(w, w->claimed.next_at_ms, at);
    world_pass(w, 100);
    STR(w, seqs(w, take(w, 1)), "1");
}

static const struct noun_case cases[] = {
    { "times at and above the end of time are clamped", far_futures, 0 },
    { "a lease saturates at the end of time", leases_at_the_end_of_time, 0 },
    { "cursors and times at the end of numbers", bounds_of_reads, 0 },
    { "revisions that will never be are conflicts", revisions_out_of_reach, 0 },
    { "at its end a lease is past due", the_edge_of_a_lease, 0 },
    { "at its time a batch is available", the_edge_of_availability, 0 },
};

const struct topic topic_bounds = { cases, COUNT_OF(cases) };
