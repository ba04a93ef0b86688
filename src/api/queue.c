#include <belay/queue.h>

#include "api/check.h"
#include "api/handle.h"
#include "work/queue.h"

static const struct sized draft_type = { "belay_draft", sizeof(struct belay_draft),
                                         END_OF(struct belay_draft, n_payloads) };
static const struct sized request_type = { "belay_claim_request",
                                           sizeof(struct belay_claim_request),
                                           END_OF(struct belay_claim_request, cancel) };
static const struct sized page_type = { "belay_queue_page",
                                        sizeof(struct belay_queue_page),
                                        END_OF(struct belay_queue_page, limit) };

const char *belay_no_claim_name(int why)
{
    static const char *const names[] = {
        [BELAY_CLAIMED] = "claimed",
        [BELAY_NO_EMPTY] = "empty",
        [BELAY_NO_NOT_YET_AVAILABLE] = "not_yet_available",
        [BELAY_NO_BOUNDARY_BLOCKED] = "boundary_blocked",
        [BELAY_NO_HEAD_HELD] = "head_held",
        [BELAY_NO_ZERO_LIMIT] = "zero_limit",
        [BELAY_NO_OTHER_BATCHES] = "other_batches",
    };

    if (why < 0 || (size_t)why >= COUNT_OF(names))
        return "unknown";
    return names[why];
}

belay_rc belay_queue_enqueue(struct belay *b, const struct belay_draft *draft,
                             struct belay_arena *arena, struct belay_enqueued *out,
                             struct belay_error *err)
{
    struct belay_enqueued found = { 0 };
    struct belay_draft known;

    if (!b || !draft || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&draft_type, draft, &known, err);
    if (rc == BELAY_OK && !known.session_id)
        rc = null_given(err, "belay_draft.session_id");
    if (rc == BELAY_OK)
        rc = strings_given(known.payloads, known.n_payloads, "payloads", err);
    if (rc == BELAY_OK)
        rc = queue_enqueue(b->space, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_queue_claim(struct belay *b, const struct belay_claim_request *request,
                           struct belay_arena *arena, struct belay_claimed *out,
                           struct belay_error *err)
{
    struct belay_claimed found = { 0 };
    struct belay_claim_request known;

    if (!b || !request || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&request_type, request, &known, err);
    if (rc == BELAY_OK && (!known.session_id || !known.owner_id))
        rc = null_given(err, "belay_claim_request.session_id, owner_id");
    if (rc == BELAY_OK)
        rc = strings_given(known.batch_ids, known.n_batch_ids, "batch_ids", err);
    if (rc == BELAY_OK)
        rc = queue_claim(&(struct queue_site){ .space = b->space, .host = b->host },
                         &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_queue_renew(struct belay *b, const struct belay_claim *claim,
                           int64_t lease_ms, int64_t *out_expires_at_ms,
                           struct belay_error *err)
{
    int64_t expires_at_ms = 0;

    if (!b || !claim)
        return null_given(err, __func__);
    belay_rc rc = claim_given(claim, err);
    if (rc == BELAY_OK)
        rc = queue_renew(b->space, claim, lease_ms, &expires_at_ms, err);
    if (rc == BELAY_OK && out_expires_at_ms)
        *out_expires_at_ms = expires_at_ms;
    return rc;
}

belay_rc belay_queue_abandon(struct belay *b, const struct belay_claim *claim,
                             size_t *out_released, struct belay_error *err)
{
    size_t released = 0;

    if (!b || !claim)
        return null_given(err, __func__);
    belay_rc rc = claim_given(claim, err);
    if (rc == BELAY_OK)
        rc = queue_abandon(b->space, claim, &released, err);
    if (rc == BELAY_OK && out_released)
        *out_released = released;
    return rc;
}

belay_rc belay_queue_cancel(struct belay *b, const char *session_id,
                            const char *batch_id, struct belay_arena *arena,
                            const struct belay_batch **out, struct belay_error *err)
{
    const struct belay_batch *found = NULL;

    if (!b || !session_id || !batch_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = queue_cancel(b->space, session_id, batch_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_queue_drop(struct belay *b, const char *session_id, const char *which,
                          struct belay_error *err)
{
    if (!b || !session_id || !which)
        return null_given(err, __func__);
    return queue_drop(b->space, session_id, which, err);
}

belay_rc belay_queue_list(struct belay *b, const char *session_id,
                          const struct belay_queue_page *page,
                          struct belay_arena *arena, struct belay_batches *out,
                          struct belay_error *err)
{
    struct belay_queue_page known = { .size = sizeof(known) };
    struct belay_batches found = { 0 };
    belay_rc rc = BELAY_OK;

    if (!b || !session_id || !arena || !out)
        return null_given(err, __func__);
    if (page)
        rc = sized_read(&page_type, page, &known, err);
    if (rc == BELAY_OK)
        rc = queue_list(b->space, session_id, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_claim_text(const struct belay_claim *claim, struct belay_arena *arena,
                          const char **out, struct belay_error *err)
{
    const char *text = NULL;

    if (!claim || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = claim_given(claim, err);
    if (rc == BELAY_OK)
        rc = claim_text(claim, arena, &text, err);
    if (rc == BELAY_OK)
        *out = text;
    return rc;
}

belay_rc belay_claim_parse(const char *text, struct belay_arena *arena,
                           const struct belay_claim **out, struct belay_error *err)
{
    const struct belay_claim *claim = NULL;

    if (!text || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = claim_parse(text, arena, &claim, err);
    if (rc == BELAY_OK)
        *out = claim;
    return rc;
}
