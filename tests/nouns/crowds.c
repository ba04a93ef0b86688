/* As much as there may be at once: pages and bounded steps must not show. */
#include "nouns.h"

#define DUE 480

/* Eight at a time, so that a store that groups commits can. */
static void post_share(struct world *w, unsigned i, void *arg)
{
    const int *n = arg;

    (void)i;
    post_many(w, "s", *n / 8);
}

static void fill(struct world *w, int n)
{
    world_crowd(w, 8, post_share, &n);
}

/* first, first + 1, ... */
static bool in_a_row(const struct belay_claim *c, int64_t first, size_t n)
{
    if (!c || c->n_batches != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (c->batches[i].enqueue_seq != first + (int64_t)i)
            return false;
    }
    return true;
}

static void the_largest_claim(struct world *w)
{
    fill(w, BELAY_CLAIM_MAX + 8);
    const struct belay_claim *c = take(w, BELAY_CLAIM_MAX);
    if (!OK(w, in_a_row(c, 1, BELAY_CLAIM_MAX)))
        return;
    const struct belay_claim *rest = take(w, BELAY_CLAIM_MAX);
    OK(w, in_a_row(rest, BELAY_CLAIM_MAX + 1, 8));
    OK(w, renewed(w, c, 2 * MINUTE) > c->expires_at_ms);
    const char *proof = NULL;
    RC(w, belay_claim_text(c, w->arena, &proof, &w->err), BELAY_OK);
    RC(w, belay_claim_parse(proof, w->arena, &c, &w->err), BELAY_OK);
    w->use = w->b;
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    EQ(w, abandoned(w, rest), 8);
    OK(w, in_a_row(take(w, 8), BELAY_CLAIM_MAX + 1, 8));
}

#define TRIED 20

/* More time than it takes to post n batches: where time is a server's it runs on
 * meanwhile.  Some are posted to "t" to find out. */
static int64_t longer_than_posting(struct world *w, int n)
{
    const struct belay_batch *b = post(w, (struct post){ .session = "t" });

    if (!b || !w->store->own_clock)
        return MINUTE;
    int64_t begun = b->enqueued_at_ms;
    for (int i = 0; i < TRIED && b; i++)
        b = post(w, (struct post){ .session = "t" });
    int64_t took = b ? b->enqueued_at_ms - begun : 0;
    return 2000 + 2 * took * n / TRIED;
}

/* The last one in is the first one due: order is still that of entry (L12). */
static void due_at_once(struct world *w)
{
    int64_t wait = longer_than_posting(w, DUE);
    const struct belay_batch *b = post(w, (struct post){ .session = "t" });
    if (!b)
        return;
    int64_t base = b->enqueued_at_ms + wait;
    for (int i = 0; i < DUE && b; i++)
        b = post(w, (struct post){ .at = base + DUE - i });
    OK(w, !take(w, 1));
    EQ(w, w->claimed.next_at_ms, base + 1);
    world_pass(w, b ? base + DUE - b->enqueued_at_ms : 0);
    const struct belay_claim *one = take(w, 1);
    OK(w, in_a_row(one, 1, 1));
    w->use = w->b;
    OK(w, in_a_row(take(w, DUE), 2, DUE - 1));
}

/* The same with leases: each was granted by itself, all have ended. */
static void lapsed_at_once(struct world *w)
{
    fill(w, DUE);
    int64_t lease = longer_than_posting(w, DUE / 2); /* and than asking 20 times */
    for (int i = 0; i < 20; i++)
        (void)ask(w, (struct ask){ .max = DUE / 20, .lease = lease - i * lease / 100 });
    OK(w, !take(w, 1));
    EQ(w, w->claimed.why, BELAY_NO_HEAD_HELD);
    world_pass(w, lease + 100);
    const struct belay_claim *c = take(w, DUE);
    if (!OK(w, in_a_row(c, 1, DUE)))
        return;
    EQ(w, c->fence, 2);
    RC(w, finish(w, "s", 0, c), BELAY_OK);
    STR(w, listed(w, "s"), "");
}

/* Cancelled in the middle and at the front: the front is what is left. */
static void holes(struct world *w)
{
    fill(w, DUE);
    for (int i = 1; i < DUE; i++) {
        const struct belay_batch *b = i % 3 ? batch_now(w, "s", i) : NULL;
        if (b)
            OK(w, cancelled(w, "s", b->batch_id) != NULL);
    }
    const struct belay_claim *c = take(w, DUE);
    if (!c)
        return;
    EQ(w, c->n_batches, DUE / 3);
    EQ(w, c->batches[0].enqueue_seq, 3);
    EQ(w, c->batches[c->n_batches - 1].enqueue_seq, DUE);
}

#define HEAVY 20
#define MIB ((size_t)1024 * 1024)

/* Twenty mebibytes: more than one page's worth of bytes, whatever the limit says. */
static void heavy_batches(struct world *w)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 1000 };
    struct belay_batches out = { 0 };
    char *body = bytes_of(w, 'x', MIB);
    int64_t next = 1;

    body[0] = body[MIB - 1] = '"';
    for (int i = 0; i < HEAVY; i++)
        (void)post(w, (struct post){ .payload = body });
    do {
        RC(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_OK);
        for (size_t i = 0; i < out.n; i++) {
            EQ(w, out.batches[i].enqueue_seq, next++);
            EQ(w, out.batches[i].items[0].payload_len, MIB);
        }
        page.after_seq = out.next_after_seq;
    } while (out.next_after_seq > 0 && out.n > 0);
    EQ(w, next, HEAVY + 1);

    const struct belay_claim *c = take(w, HEAVY);
    if (!c)
        return;
    for (size_t i = 0; i < c->n_batches; i++)
        EQ(w, c->batches[i].items[0].payload_len, MIB);
    RC(w, finish(w, "s", 0, c), BELAY_OK); /* as many as it said, and no more */
    const struct belay_claim *rest = take(w, HEAVY);
    EQ(w, c->n_batches + (rest ? rest->n_batches : 0), HEAVY);
}

static const struct noun_case cases[] = {
    { "a claim of as many batches as there may be", the_largest_claim, 0 },
    { "L12: batches that are all due are granted in the order of entry", due_at_once,
      0 },
    { "L12: leases that have all ended are taken over in the order of entry",
      lapsed_at_once, 0 },
    { "an inbox with many holes", holes, 0 },
    { "batches of a mebibyte each are listed and claimed whole", heavy_batches, 0 },
};

const struct topic topic_crowds = { cases, COUNT_OF(cases) };
