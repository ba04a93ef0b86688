/* What must be true of every state of the namespace. */
#include "nouns.h"

/* --- inboxes --- */

static const char *batch_fault_of(const struct nbatch *b)
{
    const struct nlease *l = &b->lease;
    bool held = l->token != 0;

    if (b->names != 1 || b->payloads != 1 || b->sources != (b->source != 0))
        return "Q2: not one name, one payload and a source key row where it has one";
    if (b->due_ms < 0 && (b->ready != 1 || b->due != 0 || b->ready_rank != b->seq))
        return "Q2: it says that it is ready and stands elsewhere";
    if (b->due_ms >= 0 && (b->ready != 0 || b->due != 1 || b->due_rank != b->due_ms))
        return "Q2: it says when it is due and stands elsewhere";
    if (b->due_ms >= 0 && b->due_ms != (held ? l->expires_ms : b->available_ms))
        return "Q2: due at another time than its availability or its lease's end";
    if (held != (l->claim != 0) || held != (l->id != 0) || held != (l->owner != 0) ||
        held != (l->size > 0) || held != (l->expires_ms >= 0))
        return "Q5: half a lease";
    if (held && l->fence <= 0)
        return "Q5: a lease without a fence";
    return NULL;
}

/* Batches of one claim carry the same lease, and are no more than it says (Q5). */
static const char *claim_fault_of(const struct nstate *st, const struct nbatch *b)
{
    int64_t n = 0;

    for (size_t i = 0; i < st->n_batches && b->lease.id; i++) {
        const struct nbatch *o = &st->batch[i];
        if (o->lease.id != b->lease.id)
            continue;
        n++;
        if (o->session != b->session || o->lease.claim != b->lease.claim ||
            o->lease.token != b->lease.token || o->lease.owner != b->lease.owner ||
            o->lease.size != b->lease.size ||
            o->lease.who.member != b->lease.who.member ||
            o->lease.who.boot != b->lease.who.boot ||
            o->lease.claimed_ms != b->lease.claimed_ms ||
            o->lease.expires_ms != b->lease.expires_ms)
            return "Q5: batches of one claim carry different leases";
    }
    return b->lease.id && n > b->lease.size ? "Q5: more batches than the claim has"
                                            : NULL;
}

static const char *inbox_fault_of(const struct nstate *st, const struct ninbox *in)
{
    int64_t n = 0;

    if (in->ver == 0 || in->front_ver == 0 || in->closed != in->front_closed)
        return "Q1: the front and the back of an inbox are not of one";
    for (size_t i = 0; i < st->n_batches; i++) {
        const struct nbatch *b = &st->batch[i];
        if (b->session != in->session)
            continue;
        n++;
        if (b->seq > in->last_seq || b->seq < in->first_seq)
            return "Q4: a sequence outside those that its inbox gave out";
    }
    return n == in->batches ? NULL : "Q1: an inbox counts other batches than it has";
}

static const char *inboxes_fault(const struct nstate *st)
{
    const char *fault = NULL;

    for (size_t i = 0; i < st->n_batches && !fault; i++) {
        const struct nbatch *b = &st->batch[i];
        fault = batch_fault_of(b);
        if (!fault)
            fault = claim_fault_of(st, b);
        if (!fault && !inbox_at(st, b->session))
            fault = "Q1: a batch without an inbox";
    }
    for (size_t i = 0; i < st->n_inboxes && !fault; i++)
        fault = inbox_fault_of(st, &st->inbox[i]);
    return fault;
}

/* --- sessions --- */

static const char *session_fault_of(const struct nstate *st, const struct nsession *n)
{
    if (!n->there)
        return n->nodes + n->node_names + n->turns + n->logs == 0
                   ? NULL
                   : "N3: a session has something but no row";
    if (!n->active)
        return NULL;
    if (n->revision < 1 || n->logs != n->revision || n->last_log != n->revision)
        return "N1: the log is not the revisions 1 to the head's";
    if (n->node_count != n->nodes || n->nodes != n->node_names)
        return "N2: another number of nodes than the head says";
    for (size_t i = 0; i < st->n_turns; i++) {
        const struct nturn_row *t = &st->turn[i];
        if (t->session == n->id && (t->revision < 1 || t->revision > n->revision))
            return "N1: a turn of a revision that is not";
        for (size_t k = 0; k < i; k++) {
            if (st->turn[k].session == t->session &&
                st->turn[k].revision == t->revision)
                return "S2: two turns of one revision";
        }
    }
    return NULL;
}

/* --- blobs --- */

static bool is_whole(const struct nouns *w, const struct nstate *st, uint64_t sha)
{
    const struct nblob *b = blob_at(st, sha);

    return b && b->found == b->chunks && (b->sound || sha == w->spoiled);
}

static const char *refs_fault(const struct nouns *w, const struct nstate *st,
                              const struct nsession *n)
{
    if (!n->active)
        return NULL;
    for (unsigned i = 0; i < N_REFS; i++) {
        if (n->ref[i] && !is_whole(w, st, n->ref[i]))
            return "S5: a head names a blob that is not there, or not whole";
    }
    if (!n->ref[N_MANIFEST])
        return n->ref[N_TOOL] || n->ref[N_PLUGIN] || n->ref[N_EXECUTION]
                   ? "S3: parts without a manifest"
                   : NULL;
    const struct nblob *m = blob_at(st, n->ref[N_MANIFEST]);
    for (unsigned i = N_TOOL; i <= N_EXECUTION; i++) {
        if (m->sound && m->ref[i] != n->ref[i])
            return "S3: the manifest names other parts than the head";
    }
    return NULL;
}

static const char *blobs_fault(const struct nouns *w, const struct nstate *st)
{
    const char *fault = NULL;

    for (size_t i = 0; i < st->n_sessions && !fault; i++)
        fault = refs_fault(w, st, &st->session[i]);
    for (size_t i = 0; i < st->n_pins && !fault; i++) {
        if (!is_whole(w, st, st->pin[i].sha))
            fault = "S5: a pin names a blob that is not there, or not whole";
    }
    for (size_t i = 0; i < st->n_blobs && !fault; i++) {
        const struct nblob *b = &st->blob[i];
        if (b->found != b->chunks || (!b->sound && b->sha != w->spoiled))
            fault = "S4: the bytes of a blob are not its name's";
        else if (b->ranks != 1 || b->rank != b->touched_ms)
            fault = "S7: a blob does not stand where the collection looks for it";
    }
    return fault;
}

/* --- all of it --- */

void state_check(struct nouns *w, const struct nstate *st)
{
    const char *fault = st->fault ? st->fault : inboxes_fault(st);

    for (size_t i = 0; i < st->n_sessions && !fault; i++)
        fault = session_fault_of(st, &st->session[i]);
    if (!fault)
        fault = blobs_fault(w, st);
    noun_complain(w, fault);
}
