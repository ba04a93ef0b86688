/* What the dead held: by evidence it is ready before its time, and no more than ready.  Who
 * was said to be dead and is not holds until somebody is granted it, and never after. */
#include "nouns.h"

const char *early_fault(struct nouns *w, const struct ncall *c, const struct nbatch *o,
                        int64_t now_ms)
{
    const struct nseen *seen = seen_at(w, o->session, o->seq);

    if (!is_live(o, now_ms))
        return "L12: a batch was made ready or granted before its time";
    for (size_t i = 0; i < w->old->n_batches; i++) {
        const struct nbatch *b = &w->old->batch[i];
        if (b->session == o->session && b->due_ms <= now_ms)
            return "L12: what the dead held was taken while something was ready";
    }
    return mourning_fault(w->s, &c->mourning, o->lease.who,
                          seen ? seen->granted_no : 0);
}

void early_note(struct nouns *w, const struct nbatch *o)
{
    w->taken[w->n_taken % N_CLAIMS] = o->lease.id;
    w->n_taken++;
}

const char *early_stale(const struct nouns *w, const struct belay_claim *claim)
{
    uint64_t id = str_of(claim->lease_id);

    for (size_t i = 0; i < w->n_taken && i < N_CLAIMS; i++) {
        if (w->taken[i] == id)
            return "L4: somebody has written by a lease that another was granted";
    }
    return NULL;
}

bool is_early(const struct nouns *w, const struct nbatch *o, int64_t now_ms)
{
    const struct nbatch *n = batch_at(w->cur, o->session, o->seq);

    return n && o->due_ms > now_ms && (n->due_ms < 0 || n->lease.id != o->lease.id);
}

const char *early_half(const struct nouns *w, const struct ncall *c, int64_t now_ms)
{
    const struct nstate *st = w->old;

    for (size_t i = 0; i < st->n_batches; i++) {
        const struct nbatch *b = &st->batch[i];
        if (b->session != c->session || !is_early(w, b, now_ms))
            continue;
        for (size_t k = 0; k < st->n_batches; k++) {
            const struct nbatch *o = &st->batch[k];
            if (o->session == c->session && is_live(o, now_ms) && o->due_ms > now_ms &&
                o->lease.who.member == b->lease.who.member && !is_early(w, o, now_ms))
                return "L12: only a part of what one process held was made ready";
        }
    }
    return NULL;
}

const char *early_missed(const struct nouns *w, const struct ncall *c)
{
    const struct nstate *st = w->cur;
    const struct nbatch *held = NULL;

    for (size_t i = 0; i < st->n_batches; i++) {
        const struct nbatch *b = &st->batch[i];
        if (b->session != c->session)
            continue;
        if (b->due_ms <= c->now_ms)
            return NULL; /* something is ready, and in the way */
        if (is_live(b, c->now_ms) && mourning_now(&c->mourning, b->lease.who))
            held = b;
    }
    return held ? "L11: a holder was said to be dead, and nothing was made ready"
                : NULL;
}
