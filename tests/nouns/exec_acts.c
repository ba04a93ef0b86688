/* Every operation on an execution, and what it does in every state. */
#include "exec.h"

/* --- the operations --- */

static belay_rc try_claim(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_works got = { 0 };
    belay_rc rc = claim_try(
        w, (struct belay_claim_policy){ .lanes = &c->lane, .n_lanes = 1, .max = 8 },
        &got);

    *did = got.n == 0 ? DID_NOTHING : DID_IT;
    if (got.n > 0) {
        EQ(w, got.n, 1);
        STR(w, got.work[0].execution_id, c->id);
        OK(w, !c->held || got.work[0].fence > c->held->fence); /* L2 */
    }
    return rc;
}

static belay_rc try_claim_grant(struct world *w, const struct cell *c, enum deed *did)
{
    const char *id = c->grant_id ? c->grant_id : "gra_00000000000000000000000000";
    struct belay_work got = { 0 };

    (void)did;
    return belay_execution_claim_grant(w->use, id, "w", MINUTE, w->arena, &got,
                                       &w->err);
}

static belay_rc try_grant_one(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_grant got = { 0 };

    (void)did;
    return belay_execution_grant_one(w->use, c->id, "w", 60000, w->arena, &got,
                                     &w->err);
}

static belay_rc try_renew(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_lease_renewal r = { 0 };
    belay_rc rc =
        belay_execution_renew(w->use, &c->held->handle, 2 * MINUTE, &r, &w->err);

    (void)did;
    if (rc == BELAY_OK)
        EQ(w, r.fence, c->held->fence);
    return rc;
}

static belay_rc try_progress(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return belay_execution_progress(w->use, &c->held->handle, 50, "half", &w->err);
}

static belay_rc try_frame(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return frame(w, &c->held->handle, "more");
}

static belay_rc try_complete(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_ended end = { 0 };
    belay_rc rc = complete(w, &c->held->handle, "done", &end);

    *did = end.replayed ? DID_BEFORE : DID_IT;
    return rc;
}

static belay_rc fail_as(struct world *w, const struct cell *c, int as, enum deed *did)
{
    struct belay_ended end = { 0 };
    belay_rc rc = fail(w, &c->held->handle, as, &end);

    *did = end.replayed ? DID_BEFORE : DID_IT;
    return rc;
}

static belay_rc try_fail(struct world *w, const struct cell *c, enum deed *did)
{
    return fail_as(w, c, BELAY_FAILURE_TRANSIENT, did);
}

static belay_rc try_fail_for_good(struct world *w, const struct cell *c, enum deed *did)
{
    return fail_as(w, c, BELAY_FAILURE_PERMANENT, did);
}

static belay_rc try_delay(struct world *w, const struct cell *c, enum deed *did)
{
    int64_t until = c->until_ms ? c->until_ms : c->held->expires_at_ms + HOUR;

    (void)did;
    return belay_execution_delay(w->use, &c->held->handle, until, &w->err);
}

static belay_rc try_release(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return belay_execution_release(w->use, &c->held->handle, &w->err);
}

static belay_rc try_abort(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return belay_execution_abort(w->use, &c->held->handle, "r", &w->err);
}

static belay_rc try_cancel(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return belay_execution_cancel(w->use, c->id, "r", NULL, &w->err);
}

static belay_rc try_replay(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return belay_execution_replay(w->use, c->id, "r", &w->err);
}

static belay_rc try_priority(struct world *w, const struct cell *c, enum deed *did)
{
    (void)did;
    return belay_execution_set_priority(w->use, c->id, 7, &w->err);
}

static belay_rc try_revoke(struct world *w, const struct cell *c, enum deed *did)
{
    bool revoked = false;
    belay_rc rc = belay_execution_revoke(w->use, c->id, NULL, "r", &revoked, &w->err);

    *did = revoked ? DID_IT : DID_NOTHING;
    return rc;
}

static belay_rc try_tag(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_tag tag = { .key = "k", .value = "v" };

    (void)did;
    return belay_execution_tag(w->use, c->id, &tag, 1, &w->err);
}

static belay_rc try_describe(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_execution e = { 0 };

    *did = DID_NOTHING;
    return belay_execution_describe(w->use, c->id, w->arena, &e, &w->err);
}

static belay_rc try_why(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_why why = { 0 };
    belay_rc rc = belay_execution_why(w->use, c->id, w->arena, &why, &w->err);

    *did = DID_NOTHING;
    if (rc == BELAY_OK) {
        struct belay_execution e = look(w, c->id);
        EQ(w, why.state, e.state);
        EQ(w, why.reason, e.vector.blocking);
        OK(w, why.detail && *why.detail);
    }
    return rc;
}

static belay_rc try_attempts(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_attempts all = { 0 };

    *did = DID_NOTHING;
    return belay_execution_attempts(w->use, c->id, w->arena, &all, &w->err);
}

static belay_rc try_frames(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_frame_request r = { .size = sizeof(r),
                                     .execution_id = c->id,
                                     .attempt = -1 };
    struct belay_frames all = { 0 };

    *did = DID_NOTHING;
    return belay_execution_frames(w->use, &r, w->arena, &all, &w->err);
}

static belay_rc try_result(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_result r = { 0 };

    *did = DID_NOTHING;
    return belay_execution_result(w->use, c->id, w->arena, &r, &w->err);
}

static belay_rc try_list(struct world *w, const struct cell *c, enum deed *did)
{
    struct belay_execution_filter f = { .size = sizeof(f), .lane = c->lane };
    struct belay_executions all = { 0 };
    belay_rc rc = belay_execution_list(w->use, &f, w->arena, &all, &w->err);

    *did = DID_NOTHING;
    if (rc == BELAY_OK && EQ(w, all.n, 1))
        STR(w, all.items[0].id, c->id);
    return rc;
}

static belay_rc try_wait(struct world *w, const struct cell *c, enum deed *did)
{
    int state = 0;
    belay_rc rc = belay_execution_wait(w->use, c->id, 0, NULL, &state, &w->err);

    *did = DID_NOTHING;
    EQ(w, state, state_of(w, c->id));
    return rc;
}

/* --- the table --- */

const struct operation operations[] = {
    /*                                  wdbpgaulovCFXYEry, by condition.code */
    { "claim", try_claim, "A--------AA-----AA", false },
    { "claim_grant", try_claim_grant, "0000A0000000000000", false },
    { "grant_one", try_grant_one, "+ssssssss++sssss++", true },
    { "renew", try_renew, "  rr ++++evtttttrr", false },
    { "progress", try_progress, "  rr ++++evtttttrr", false },
    { "frame", try_frame, "  rr ++++evtttttrr", false },
    { "complete", try_complete, "  rr CCCCevRttttrr", false },
    { "fail", try_fail, "  Rr FFFFevtRtttrr", false },
    { "fail for good", try_fail_for_good, "  Rr FFFFevtRtttrr", false },
    { "delay", try_delay, "  r- DDDDevtttttrr", false },
    { "release", try_release, "  rr WWWWevttttt-r", false },
    { "abort", try_abort, "  rr XXXXevtt--trr", false },
    { "cancel", try_cancel, "XXXXXXXXXXXTT--TXX", true },
    { "replay", try_replay, "NNNNNNNNNNNWWWWWNN", true },
    { "priority", try_priority, "+++++++++++TTTTT++", true },
    { "revoke", try_revoke, "-----++++---------", true },
    { "tag", try_tag, "++++++++++++++++++", true },
    { "describe", try_describe, "------------------", true },
    { "why", try_why, "------------------", true },
    { "attempts", try_attempts, "------------------", true },
    { "frames", try_frames, "------------------", true },
    { "result", try_result, "NNNNNNNNNNN-----NN", true },
    { "list", try_list, "------------------", false },
    { "wait", try_wait, "ooooooooooo-----oo", false },
};
const size_t n_operations = COUNT_OF(operations);
