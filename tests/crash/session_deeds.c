#include "session_deeds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "rig.h"

size_t body_make(const struct maker *m, enum body_part part, uint8_t out[BODY_MAX])
{
    bool shared = part == BODY_SHARED || (part == BODY_PUT && m->n % 8 == 0);
    uint64_t seed = shared ? (uint64_t)m->n % BODY_POOL
                           : (uint64_t)m->worker << 40 | (uint64_t)m->n << 4 | part;
    struct rng rng;

    rng_init(&rng, seed);
    size_t len = shared ? 6000 + seed : 100 + rng_below(&rng, 9000);
    if (!shared && part == BODY_PUT && rng_below(&rng, 8) == 0)
        len = BODY_MAX;
    /* Every other run of 32 bytes can be compressed. */
    for (size_t i = 0; i < len; i++)
        out[i] = i / 32 % 2 ? (uint8_t)'x' : (uint8_t)rng_next(&rng);
    return len;
}

void session_name(int session, char out[16])
{
    (void)snprintf(out, 16, "s%d", session);
}

/* --- notes --- */

struct note deed_begin(struct hand *h, enum deed deed, int session)
{
    struct note n = { .said = SAID_BEGIN,
                      .deed = (int32_t)deed,
                      .worker = h->number,
                      .life = h->life,
                      .n = ++h->n,
                      .session = session };

    n.thing = (struct maker){ .worker = h->number, .n = n.n };
    belay_arena_reset(h->arena);
    return n;
}

void deed_note(struct hand *h, struct note *n)
{
    n->said = SAID_BEGIN;
    notes_append(h->fd, n);
}

void deed_done(struct hand *h, struct note *n, belay_rc rc,
               const struct belay_error *err)
{
    if (rng_below(&h->rng, 80) == 0)
        (void)raise(SIGKILL);
    n->said = SAID_DONE;
    n->rc = (int32_t)rc;
    if (rc)
        (void)snprintf(n->reason, sizeof(n->reason), "%s", err->reason);
    if (rc && rc != BELAY_LEASE_LOST && rc != BELAY_HEAD_REVISION_CONFLICT)
        (void)snprintf(n->text, sizeof(n->text), "%s", err->message);
    notes_append(h->fd, n);
}

void deed_broken(struct hand *h, const char *what, const struct belay_error *err)
{
    struct note n = { .said = SAID_BROKEN,
                      .worker = h->number,
                      .life = h->life,
                      .n = h->n,
                      .session = -1 };

    (void)snprintf(n.text, sizeof(n.text), "%s%s%s", what, err ? ": " : "",
                   err ? err->message : "");
    notes_append(h->fd, &n);
}

/* --- the inbox --- */

static bool item_of(const struct belay_batch *b, struct maker *out)
{
    char name[40] = "";

    return b->n_items == 1 &&
           sscanf(b->items[0].payload, "{\"item\":\"%38[^\"]\"}", name) == 1 &&
           maker_parse(name, out);
}

static void note_batch(struct hand *h, struct note *n, const struct belay_batch *b)
{
    struct note_batch *to = &n->batch[n->n_batches++];

    to->seq = b->enqueue_seq;
    to->fence = b->fence;
    to->id = batch_number(b->batch_id);
    if (!item_of(b, &to->item))
        deed_broken(h, "a payload that nobody made", NULL);
}

static void choose_draft(struct hand *h, struct note *n)
{
    n->flags |= rng_below(&h->rng, 3) == 0 ? NOTE_KEYED : 0;
    if (rng_below(&h->rng, 8) == 0) {
        n->flags |= NOTE_LATER;
        n->expires_at_ms = wall_ms() + (int64_t)rng_below(&h->rng, 60);
    }
    n->most = (int64_t)rng_below(&h->rng, 4); /* its policies */
}

void deed_enqueue(struct hand *h, const struct note *again)
{
    int session = again ? again->session : (int)rng_below(&h->rng, NOTE_SESSIONS);
    struct note n = deed_begin(h, DEED_ENQUEUE, session);
    char id[16], item[40], key[48], payload[64];
    const char *payloads[] = { payload };
    struct belay_enqueued out;
    struct belay_error err;

    if (!again) {
        choose_draft(h, &n);
    } else {
        n.thing = again->thing;
        n.flags = again->flags | NOTE_RETRY;
        n.most = again->most;
        n.expires_at_ms = again->expires_at_ms;
    }
    session_name(session, id);
    maker_name(&n.thing, item);
    (void)snprintf(key, sizeof(key), "key-%s", item);
    (void)snprintf(payload, sizeof(payload), "{\"item\":\"%s\"}", item);
    struct belay_draft draft = {
        .size = sizeof(draft),
        .delivery =
            n.most & 1 ? BELAY_EARLIEST_SAFE_BOUNDARY : BELAY_AFTER_CURRENT_TURN_COMMIT,
        .slot = n.most & 2 ? BELAY_JOIN : BELAY_EXCLUSIVE,
        .session_id = id,
        .source_key = n.flags & NOTE_KEYED ? key : NULL,
        .available_at_ms = n.flags & NOTE_LATER ? n.expires_at_ms : 0,
        .payloads = payloads,
        .n_payloads = 1,
    };
    deed_note(h, &n);
    belay_rc rc = belay_queue_enqueue(h->b, &draft, h->arena, &out, &err);
    if (!rc) {
        note_batch(h, &n, out.batch);
        n.flags |= out.replayed ? NOTE_REPLAYED : 0;
        if (out.payload_mismatch)
            deed_broken(h, "a source key of its own has another payload", NULL);
    }
    deed_done(h, &n, rc, &err);
}

void deed_claim(struct hand *h)
{
    int session = (int)rng_below(&h->rng, NOTE_SESSIONS);
    struct note n = deed_begin(h, DEED_CLAIM, session);
    char id[16], owner[24];
    struct belay_claimed out;
    struct belay_error err;
    const char *text;

    n.most = 1 + (int64_t)rng_below(&h->rng, 4);
    session_name(session, id);
    (void)snprintf(owner, sizeof(owner), "w%u.%u", h->number, h->life);
    struct belay_claim_request request = {
        .size = sizeof(request),
        .boundary =
            rng_below(&h->rng, 6) == 0 ? BELAY_ACTIVE_TURN_CHECKPOINT : BELAY_IDLE,
        .session_id = id,
        .owner_id = owner,
        .lease_ms =
            rng_below(&h->rng, 20) == 0 ? 0 : 20 + (int64_t)rng_below(&h->rng, 130),
        .max = (size_t)n.most,
        .wait_ms = rng_below(&h->rng, 8) == 0 ? 10 : 0,
    };
    deed_note(h, &n);
    belay_rc rc = belay_queue_claim(h->b, &request, h->arena, &out, &err);
    if (!rc && out.claim) {
        for (size_t i = 0; i < out.claim->n_batches && i < NOTE_BATCHES; i++)
            note_batch(h, &n, &out.claim->batches[i]);
        if (out.claim->n_batches > request.max || out.claim->n_batches == 0)
            deed_broken(h, "a claim of a number that was not asked for", NULL); /* L8 */
        n.claimed_at_ms = out.claim->claimed_at_ms;
        n.expires_at_ms = out.claim->expires_at_ms;
        if (belay_claim_text(out.claim, h->arena, &text, &err))
            deed_broken(h, "claim text", &err);
        else
            (void)snprintf(n.text, sizeof(n.text), "%s", text);
    }
    deed_done(h, &n, rc, &err);
    if (!rc && n.n_batches > 0) {
        if (h->claim.said == SAID_DONE)
            h->left = h->claim;
        h->claim = n;
    }
}

/* The note of a deed that uses a claim: which, and what it is about. */
static struct note use_claim(struct hand *h, enum deed deed, const struct note *claim,
                             const struct belay_claim **out)
{
    struct note n = deed_begin(h, deed, claim->session);
    struct belay_error err;

    n.n_batches = claim->n_batches;
    memcpy(n.batch, claim->batch, sizeof(n.batch));
    (void)snprintf(n.text, sizeof(n.text), "%s", claim->text);
    n.flags = wall_ms() >= claim->expires_at_ms ? NOTE_STALE_TRY : 0;
    deed_note(h, &n);
    if (belay_claim_parse(n.text, h->arena, out, &err)) {
        deed_broken(h, "claim text", &err);
        *out = NULL;
    }
    return n;
}

void deed_renew(struct hand *h, struct note *claim)
{
    const struct belay_claim *c;
    struct note n = use_claim(h, DEED_RENEW, claim, &c);
    struct belay_error err;

    if (!c)
        return;
    belay_rc rc = belay_queue_renew(h->b, c, (int64_t)rng_below(&h->rng, 100),
                                    &n.expires_at_ms, &err);
    deed_done(h, &n, rc, &err);
    if (!rc && n.expires_at_ms < claim->expires_at_ms)
        deed_broken(h, "renewing has shortened a lease", NULL); /* L6 */
    if (!rc)
        claim->expires_at_ms = n.expires_at_ms;
    else
        claim->said = SAID_BROKEN;
}

void deed_abandon(struct hand *h, struct note *claim)
{
    const struct belay_claim *c;
    struct note n = use_claim(h, DEED_ABANDON, claim, &c);
    struct belay_error err;
    size_t released = 0;

    claim->said = SAID_BROKEN;
    if (!c)
        return;
    belay_rc rc = belay_queue_abandon(h->b, c, &released, &err);
    n.most = (int64_t)released;
    deed_done(h, &n, rc, &err);
}

void deed_cancel(struct hand *h)
{
    int session = (int)rng_below(&h->rng, NOTE_SESSIONS);
    struct note n = deed_begin(h, DEED_CANCEL, session);
    struct belay_queue_page page = { .size = sizeof(page),
                                     .pending = true,
                                     .limit = 20 };
    const struct belay_batch *gone = NULL;
    struct belay_batches list;
    struct belay_error err;
    char id[16];

    session_name(session, id);
    belay_rc rc = belay_queue_list(h->b, id, &page, h->arena, &list, &err);
    if (rc)
        deed_broken(h, "list", &err);
    if (rc || list.n == 0)
        return;
    const struct belay_batch *victim = &list.batches[rng_below(&h->rng, list.n)];
    note_batch(h, &n, victim);
    deed_note(h, &n);
    rc = belay_queue_cancel(h->b, id, victim->batch_id, h->arena, &gone, &err);
    n.flags |= !rc && gone ? NOTE_FOUND : 0;
    if (!rc && gone && gone->enqueue_seq != victim->enqueue_seq)
        deed_broken(h, "another batch was cancelled", NULL);
    deed_done(h, &n, rc, &err);
}
