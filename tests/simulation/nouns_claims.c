/* Claims: whether they are current, a memory of all that were granted, forged ones. */
#include "nouns.h"

#include <stdlib.h>

/* --- holding --- */

static const struct nbatch *listed(const struct nstate *st,
                                   const struct belay_claim *claim, size_t i)
{
    uint64_t session = str_of(claim->session_id);
    const struct belay_batch *b = &claim->batches[i];

    return b->enqueue_seq > 0 ? batch_at(st, session, b->enqueue_seq)
                              : batch_by_id(st, session, str_of(b->batch_id));
}

bool holds_batch(const struct nstate *st, const struct belay_claim *claim, size_t i)
{
    const struct nbatch *b = listed(st, claim, i);

    return b && b->lease.claim == str_of(claim->claim_id) &&
           b->lease.token == str_of(claim->lease_token) &&
           b->lease.id == str_of(claim->lease_id) && b->lease.fence >> 40 == st->epoch;
}

bool holds_all(const struct nstate *st, const struct belay_claim *claim)
{
    for (size_t i = 0; i < claim->n_batches; i++) {
        if (!holds_batch(st, claim, i))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (listed(st, claim, i) == listed(st, claim, k))
                return false;
        }
    }
    return claim->n_batches > 0 &&
           listed(st, claim, 0)->lease.size == (int64_t)claim->n_batches;
}

const char *lost_reason(const struct nstate *st, const struct belay_claim *claim)
{
    for (size_t i = 0; i < claim->n_batches; i++) {
        const struct nbatch *b = listed(st, claim, i);
        if (!b ||
            (claim->batches[i].batch_id && b->id != str_of(claim->batches[i].batch_id)))
            return "terminal";
        if (!b->lease.token)
            return "released";
        if (b->lease.token != str_of(claim->lease_token) ||
            b->lease.id != str_of(claim->lease_id))
            return "superseded";
        if (b->lease.fence >> 40 != st->epoch)
            return "epoch";
        if (b->lease.claim != str_of(claim->claim_id))
            return "superseded";
    }
    return "incomplete";
}

bool lists_batch(const struct nstate *st, const struct belay_claim *claim, int64_t seq)
{
    for (size_t i = 0; i < claim->n_batches; i++) {
        const struct nbatch *b = listed(st, claim, i);
        if (b && b->seq == seq)
            return true;
    }
    return false;
}

/* --- remembering --- */

static const char *keep_text(struct nouns *w, const char *text)
{
    struct bytes b = { .ptr = NULL };

    if (!text)
        return NULL;
    if (!arena_copy(&w->arena, bytes_str(text), &b))
        abort();
    return (const char *)b.ptr;
}

/* A copy of what proves the holding, with room for one batch more. */
static struct belay_claim *copy(struct nouns *w, const struct belay_claim *from)
{
    struct belay_claim *c = arena_zalloc(&w->arena, 1, sizeof(*c));
    struct belay_batch *b = arena_zalloc(&w->arena, from->n_batches + 1, sizeof(*b));

    if (!c || !b)
        abort();
    *c = *from;
    c->session_id = keep_text(w, from->session_id);
    c->claim_id = keep_text(w, from->claim_id);
    c->owner_id = keep_text(w, from->owner_id);
    c->lease_token = keep_text(w, from->lease_token);
    c->lease_id = keep_text(w, from->lease_id);
    for (size_t i = 0; i < from->n_batches; i++) {
        b[i].session_id = c->session_id;
        b[i].batch_id = keep_text(w, from->batches[i].batch_id);
        b[i].enqueue_seq = from->batches[i].enqueue_seq;
    }
    c->batches = b;
    return c;
}

const struct belay_claim *claim_keep(struct nouns *w, const struct belay_claim *claim)
{
    struct belay_claim *c = copy(w, claim);

    if (w->n_claims < N_CLAIMS)
        w->claim[w->n_claims++] = c;
    return c;
}

/* As it comes back from its text, or with its batches named by id alone. */
static const struct belay_claim *
disguise(struct nouns *w, const struct belay_claim *claim, unsigned draw)
{
    const struct belay_claim *parsed = claim;
    const char *text = NULL;

    if (draw % 4 == 1 && (claim_text(claim, &w->arena, &text, NULL) ||
                          claim_parse(text, &w->arena, &parsed, NULL)))
        violation(w->s, "answer", "a claim and its text are not the same");
    if (draw % 8 == 2) {
        struct belay_claim *c = copy(w, claim);
        for (size_t i = 0; i < c->n_batches; i++)
            ((struct belay_batch *)c->batches)[i].enqueue_seq = 0;
        parsed = c;
    }
    return parsed;
}

const struct belay_claim *claim_any(struct actor *a, unsigned draw)
{
    struct nouns *w = a->sim->nouns;
    size_t back = draw % 3 ? (draw >> 2) % 3 : (draw >> 2) % (w->n_claims + 1);

    if (w->n_claims == 0)
        return NULL;
    back = back < w->n_claims ? back : w->n_claims - 1;
    return disguise(w, w->claim[w->n_claims - 1 - back], draw >> 16);
}

/* --- forging --- */

static const char *other_text(struct nouns *w, const char *text)
{
    char *t = (char *)keep_text(w, text);
    char *last = t + strlen(t) - 1;

    *last = *last == '1' ? '2' : '1';
    return t;
}

const struct belay_claim *claim_forged(struct nouns *w, const struct belay_claim *claim,
                                       unsigned how)
{
    struct belay_claim *c = copy(w, claim);
    struct belay_batch *b = (struct belay_batch *)c->batches;

    switch (how) {
    case 0:
        c->lease_id = other_text(w, c->lease_id);
        break;
    case 1:
        c->lease_token = other_text(w, c->lease_token);
        break;
    case 2:
        c->claim_id = other_text(w, c->claim_id);
        break;
    case 3: /* one of them twice */
        b[c->n_batches++] = b[0];
        break;
    case 4: /* one that is not there */
        b[c->n_batches] = b[0];
        b[c->n_batches++].enqueue_seq += 1000;
        break;
    case 5: /* all but the last */
        b[0].enqueue_seq += c->n_batches == 1 ? 1000 : 0;
        c->n_batches -= c->n_batches > 1;
        break;
    default: /* the first one instead of the last */
        b[c->n_batches - 1] = b[0];
        b[0].enqueue_seq += c->n_batches == 1 ? 1000 : 0;
        break;
    }
    return c;
}
