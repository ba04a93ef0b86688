/* What actors do with inboxes. */
#include "nouns.h"

#include <stdio.h>
#include <stdlib.h>

/* A session that is not deleted as far as is known, and at times one that is. */
const char *session_name(struct actor *a)
{
    static char names[4][64][8];
    struct nouns *w = a->sim->nouns;
    unsigned k = pick_of(a->op, 1, a->sim->swarm.n_keys) & 3;
    unsigned g = w->generation[k] & 63;

    if (g > 0 && pick_of(a->op, 2, 12) == 0)
        g--;
    (void)snprintf(names[k][g], sizeof(names[k][g]), "s%u-%u", k, g);
    return names[k][g];
}

/* A session turned out to be gone: the next one takes its place. */
void session_gone(struct ncall *c, const char *session)
{
    struct nouns *w = c->actor->sim->nouns;
    const struct ninbox *in = inbox_at(w->cur, c->session);
    const struct nsession *n = session_at(w->cur, c->session);
    unsigned k = (unsigned)(session[1] - '0') & 3;

    if (!(in && in->closed) && !(n && n->there && !n->active))
        violation(w->s, "N3", "a session is said to be deleted and is not");
    if (strtoul(session + 3, NULL, 10) == w->generation[k])
        w->generation[k]++;
}

/* --- enqueue --- */

/* clang-format off */
#define X100 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
/* clang-format on */

/* The last one is too long for the batch's own row. */
static const char *const payloads[] = { "{\"n\":1}", "{\"n\":2}", "[3]",
                                        "\"" X100 X100 X100 X100 "\"" };

struct drafting {
    struct belay_draft draft;
    const char *payload[2];
    char source[8], group[8], items[1024], merge[24];
};

static void draft_make(struct actor *a, const char *session, struct drafting *d)
{
    static const int64_t later_ms[] = { 0, 0, 0, 0, 1, 20, 500, 5000, 60000 };
    const struct op *op = a->op;
    int64_t later = later_ms[pick_of(op, 10, COUNT_OF(later_ms))];
    unsigned merge = pick_of(op, 11, 6), n = pick_of(op, 12, 3);

    for (unsigned i = 0; i < n; i++)
        d->payload[i] = payloads[pick_of(op, 13 + i, COUNT_OF(payloads))];
    (void)snprintf(d->source, sizeof(d->source), "k%u", pick_of(op, 16, 3));
    (void)snprintf(d->group, sizeof(d->group), "g%u", pick_of(op, 17, 2));
    (void)snprintf(d->items, sizeof(d->items), "[%s%s%s]", n > 0 ? d->payload[0] : "",
                   n > 1 ? "," : "", n > 1 ? d->payload[1] : "");
    (void)snprintf(d->merge, sizeof(d->merge), "{\"group\":\"%s\"}", d->group);
    d->draft = (struct belay_draft){
        .size = sizeof(d->draft),
        .delivery = pick_of(op, 18, 3) ? BELAY_EARLIEST_SAFE_BOUNDARY
                                       : BELAY_AFTER_CURRENT_TURN_COMMIT,
        .slot = pick_of(op, 19, 4) ? BELAY_JOIN : BELAY_EXCLUSIVE,
        .merge = merge > 2 ? BELAY_MERGE_NEVER : (int32_t)merge,
        .session_id = session,
        .source_key = pick_of(op, 20, 2) ? d->source : NULL,
        .merge_group = merge == BELAY_MERGE_GROUP ? d->group : NULL,
        .available_at_ms = later ? a->sim->nouns->latest_ms + later : 0,
        .payloads = d->payload,
        .n_payloads = n,
    };
}

static struct nbatch wanted(const struct drafting *d)
{
    static const char *const merges[] = { "\"never\"", "\"payload_default\"" };
    const struct belay_draft *f = &d->draft;
    bool early = f->delivery == BELAY_EARLIEST_SAFE_BOUNDARY;

    return (struct nbatch){
        .session = str_of(f->session_id),
        .source = str_of(f->source_key),
        .delivery =
            str_of(early ? "earliest_safe_boundary" : "after_current_turn_commit"),
        .slot = str_of(f->slot == BELAY_JOIN ? "join" : "exclusive"),
        .merge = str_of(f->merge == BELAY_MERGE_GROUP ? d->merge : merges[f->merge]),
        .payload = str_of(d->items),
        .available_ms = f->available_at_ms,
    };
}

static void check_enqueued(struct ncall *c, const struct belay_enqueued *out)
{
    struct nouns *w = c->actor->sim->nouns;
    const struct nseen *s = seen_at(w, c->session, out->batch->enqueue_seq);

    if (!s || s->id != str_of(out->batch->batch_id) || s->source != c->want.source)
        violation(w->s, "L9", "enqueue answered with a batch that never was");
    else if (!out->replayed && (c->changed != 1 || c->at[0] != s->seq))
        violation(w->s, "L9", "enqueue was acknowledged and is not there");
    else if (out->replayed &&
             (c->changed > 0 || !s->source || (s->gone && s->gone_no <= c->first_no)))
        violation(w->s, "L9", "enqueue answered with a batch that was gone before");
    else if (out->payload_mismatch != (out->replayed && s->payload != c->want.payload))
        violation(w->s, "answer", "enqueue is wrong about the payloads");
}

void op_enqueue(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const char *session = session_name(a);
    struct space *sp = noun_space(a);
    struct drafting d = { .payload = { NULL } };
    struct belay_enqueued out;
    struct belay_error err;

    if (!sp)
        return;
    draft_make(a, session, &d);
    struct ncall *c = call_begin(a, N_ENQUEUE, session);
    c->want = wanted(&d);
    belay_rc rc = queue_enqueue(sp, &d.draft, &arena, &out, &err);
    if (!call_end(c, rc))
        return;
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, session);
    else if (rc)
        call_refuse(c, rc);
    else
        check_enqueued(c, &out);
}

/* --- looking --- */

struct listed {
    char id[8][72];
    int64_t seq[8];
    size_t n;
};

static void check_list(struct ncall *c, const struct belay_batches *got, bool pending)
{
    const struct nstate *st = c->actor->sim->nouns->cur;
    const struct ninbox *in = inbox_at(st, c->session);
    size_t n = 0;

    for (size_t i = 0; in && !in->closed && i < st->n_batches; i++) {
        const struct nbatch *b = &st->batch[i];
        if (b->session != c->session || (pending && is_live(b, c->now_ms)))
            continue;
        if (n < got->n && (got->batches[n].enqueue_seq != b->seq ||
                           str_of(got->batches[n].claim_id) != b->lease.claim ||
                           got->batches[n].fence != b->lease.fence ||
                           str_of(got->batches[n].source_key) != b->source))
            violation(c->actor->sim, "answer",
                      "list shows other batches than there are");
        n++;
    }
    if (got->n != (n < 8 ? n : 8))
        violation(c->actor->sim, "answer", "list shows %zu of %zu batches", got->n, n);
}

static bool do_list(struct actor *a, const char *session, bool pending,
                    struct listed *out)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_queue_page page = { .size = sizeof(page),
                                     .pending = pending,
                                     .limit = 8 };
    struct space *sp = noun_space(a);
    struct belay_batches got;
    struct belay_error err;

    if (!sp)
        return false;
    struct ncall *c = call_begin(a, N_LOOK, session);
    belay_rc rc = queue_list(sp, session, &page, &arena, &got, &err);
    if (!call_end(c, rc))
        return false;
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, session);
    else if (rc)
        call_refuse(c, rc);
    if (rc)
        return false;
    if (c->first_no == a->sim->nouns->no)
        check_list(c, &got, pending);
    out->n = got.n < 8 ? got.n : 8;
    for (size_t i = 0; i < out->n; i++) {
        (void)snprintf(out->id[i], sizeof(out->id[i]), "%s", got.batches[i].batch_id);
        out->seq[i] = got.batches[i].enqueue_seq;
    }
    return true;
}

void op_list(struct actor *a)
{
    struct listed list;

    (void)do_list(a, session_name(a), pick_of(a->op, 3, 2), &list);
}

/* --- cancel, drop --- */

void op_cancel(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const char *session = session_name(a);
    const struct belay_batch *out = NULL;
    struct space *sp;
    struct listed list;
    struct belay_error err;

    if (!do_list(a, session, false, &list) || list.n == 0 || !(sp = noun_space(a)))
        return;
    struct nouns *w = a->sim->nouns;
    const char *id = list.id[pick_of(a->op, 3, (unsigned)list.n)];
    struct ncall *c = call_begin(a, N_CANCEL, session);
    c->batch = str_of(id);
    belay_rc rc = queue_cancel(sp, session, id, &arena, &out, &err);
    if (!call_end(c, rc))
        return;
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, session);
    else if (rc)
        call_refuse(c, rc);
    if (rc)
        return;
    const struct nbatch *b = batch_by_id(w->cur, c->session, c->batch);
    bool closed = inbox_at(w->cur, c->session)->closed;
    if (out && (c->n_at != 1 || c->at[0] != out->enqueue_seq))
        violation(w->s, "L9", "cancel answered with a batch that it did not remove");
    else if (!out && c->n_at > 0)
        violation(w->s, "once", "cancel removed a batch and does not say so");
    else if (!out && b && !closed && is_calm(c) && !is_live(b, c->now_ms))
        violation(w->s, "answer", "cancel left a batch that nobody holds");
}

void op_drop(struct actor *a)
{
    const char *session = session_name(a);
    struct space *sp;
    struct listed list;
    struct belay_error err;
    char seq[24];

    if (!do_list(a, session, false, &list) || list.n == 0 || !(sp = noun_space(a)))
        return;
    unsigned which = pick_of(a->op, 3, (unsigned)list.n);
    bool by_seq = pick_of(a->op, 4, 2);
    struct ncall *c = call_begin(a, N_DROP, session);
    c->batch = by_seq ? 0 : str_of(list.id[which]);
    c->seq = list.seq[which];
    (void)snprintf(seq, sizeof(seq), "%lld", (long long)c->seq);
    belay_rc rc = queue_drop(sp, session, by_seq ? seq : list.id[which], &err);
    if (!call_end(c, rc))
        return;
    const struct nbatch *b = batch_at(a->sim->nouns->cur, c->session, c->seq);
    bool closed = inbox_at(a->sim->nouns->cur, c->session)->closed;
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, session);
    else if (rc && rc != BELAY_NOT_FOUND)
        call_refuse(c, rc);
    else if (b && !closed)
        violation(a->sim, "answer", "drop left the batch");
}

/* --- claims by name --- */

void op_claim_exact(struct actor *a)
{
    const char *session = session_name(a);
    const char *ids[3];
    struct listed list;

    if (!do_list(a, session, true, &list) || list.n == 0)
        return;
    unsigned from = pick_of(a->op, 3, 4) ? 0 : pick_of(a->op, 4, (unsigned)list.n);
    size_t n = 1 + pick_of(a->op, 5, 3);
    n = n < list.n - from ? n : list.n - from;
    for (size_t i = 0; i < n; i++)
        ids[i] = list.id[from + i];
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = session,
                                           .owner_id = "exact",
                                           .lease_ms = 20 << pick_of(a->op, 6, 8),
                                           .batch_ids = ids,
                                           .n_batch_ids = n };
    (void)do_claim(a, session, &request);
}
