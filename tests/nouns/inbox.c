#include <openssl/evp.h>

#include "nouns.h"

static const char *or_s(const char *session)
{
    return session ? session : "s";
}

belay_rc post_try(struct world *w, struct post p)
{
    const char *payload = p.payload ? p.payload : "{\"n\":1}";
    struct belay_draft d = {
        .size = sizeof(d),
        .session_id = or_s(p.session),
        .source_key = p.key,
        .delivery = p.delivery ? p.delivery : (int32_t)BELAY_EARLIEST_SAFE_BOUNDARY,
        .slot = p.slot ? p.slot : (int32_t)BELAY_JOIN,
        .merge = p.group ? (int32_t)BELAY_MERGE_GROUP : p.merge,
        .merge_group = p.group,
        .available_at_ms = p.at,
        .payloads = &payload,
        .n_payloads = 1,
    };

    return belay_queue_enqueue(w->use, &d, w->arena, &w->enqueued, &w->err);
}

const struct belay_batch *post(struct world *w, struct post p)
{
    return RC(w, post_try(w, p), BELAY_OK) ? w->enqueued.batch : NULL;
}

void post_many(struct world *w, const char *session, int n)
{
    for (int i = 0; i < n; i++)
        (void)post(w, (struct post){ .session = session });
}

belay_rc ask_try(struct world *w, struct ask a)
{
    struct belay_claim_request r = {
        .size = sizeof(r),
        .boundary = a.boundary,
        .session_id = or_s(a.session),
        .owner_id = a.owner ? a.owner : "o",
        .lease_ms = a.lease == AT_ONCE ? 0
                    : a.lease          ? a.lease
                                       : MINUTE,
        .max = a.ids   ? a.n_ids
               : a.max ? a.max
                       : 1,
        .batch_ids = a.ids,
        .n_batch_ids = a.n_ids,
        .wait_ms = a.wait,
        .cancel = a.cancel,
    };

    return belay_queue_claim(w->use, &r, w->arena, &w->claimed, &w->err);
}

const struct belay_claim *ask(struct world *w, struct ask a)
{
    if (!RC(w, ask_try(w, a), BELAY_OK))
        return NULL;
    EQ(w, w->claimed.claim == NULL, w->claimed.why != BELAY_CLAIMED);
    return w->claimed.claim;
}

const struct belay_claim *take(struct world *w, size_t max)
{
    return ask(w, (struct ask){ .max = max });
}

belay_rc renew(struct world *w, const struct belay_claim *c, int64_t lease_ms)
{
    int64_t expires = 0;

    return belay_queue_renew(w->use, c, lease_ms, &expires, &w->err);
}

int64_t renewed(struct world *w, const struct belay_claim *c, int64_t lease_ms)
{
    int64_t expires = -2;

    (void)RC(w, belay_queue_renew(w->use, c, lease_ms, &expires, &w->err), BELAY_OK);
    return expires;
}

size_t abandoned(struct world *w, const struct belay_claim *c)
{
    size_t n = 99;

    (void)RC(w, belay_queue_abandon(w->use, c, &n, &w->err), BELAY_OK);
    return n;
}

const struct belay_batch *cancelled(struct world *w, const char *id,
                                    const char *batch_id)
{
    const struct belay_batch *out = NULL;

    (void)RC(w, belay_queue_cancel(w->use, id, batch_id, w->arena, &out, &w->err),
             BELAY_OK);
    return out;
}

/* --- as text --- */

static const char *seqs_of(struct world *w, const struct belay_batch *batches, size_t n)
{
    const char *out = "";

    for (size_t i = 0; i < n; i++)
        out = text(w, "%s%s%lld", out, i ? " " : "", (long long)batches[i].enqueue_seq);
    return out;
}

const char *seqs(struct world *w, const struct belay_claim *c)
{
    return c ? seqs_of(w, c->batches, c->n_batches) : "";
}

static const char *inbox_of(struct world *w, const char *id, bool only_pending)
{
    struct belay_queue_page page = { .size = sizeof(page),
                                     .pending = only_pending,
                                     .limit = 1000 };
    struct belay_batches out = { 0 };

    if (!RC(w, belay_queue_list(w->use, id, &page, w->arena, &out, &w->err), BELAY_OK))
        return "?";
    return seqs_of(w, out.batches, out.n);
}

const char *listed(struct world *w, const char *id)
{
    return inbox_of(w, id, false);
}

const char *pending(struct world *w, const char *id)
{
    return inbox_of(w, id, true);
}

const struct belay_batch *batch_now(struct world *w, const char *id, int64_t seq)
{
    struct belay_queue_page page = { .size = sizeof(page),
                                     .after_seq = seq - 1,
                                     .limit = 1 };
    struct belay_batches out = { 0 };

    if (!RC(w, belay_queue_list(w->use, id, &page, w->arena, &out, &w->err), BELAY_OK))
        return NULL;
    return out.n == 1 && out.batches[0].enqueue_seq == seq ? out.batches : NULL;
}

const char *digest(struct world *w, const char *of)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    const char *out = "";

    if (!EVP_Digest(of, strlen(of), sum, &len, EVP_sha256(), NULL))
        return "?";
    for (unsigned i = 0; i < len; i++)
        out = text(w, "%s%02x", out, sum[i]);
    return out;
}
