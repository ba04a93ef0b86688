/* What a holder of an execution does, through the library. */
#include <belay/execution.h>

#include "api/check_execution.h"
#include "api/handle.h"
#include "work/execution.h"

static const struct sized frame_type = { "belay_frame", sizeof(struct belay_frame),
                                         END_OF(struct belay_frame, correlation_id) };
static const struct sized completion_type = {
    "belay_completion", sizeof(struct belay_completion),
    END_OF(struct belay_completion, result_is_json)
};
static const struct sized failure_type = { "belay_failure",
                                           sizeof(struct belay_failure),
                                           END_OF(struct belay_failure, detail_len) };

belay_rc belay_execution_renew(struct belay *b, const struct belay_handle *h,
                               int64_t lease_ms, struct belay_lease_renewal *out,
                               struct belay_error *err)
{
    struct belay_lease_renewal found = { 0 };

    if (!b || !h)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    if (rc == BELAY_OK)
        rc = exec_renew(&b->site, h, lease_ms, &found, err);
    if (rc == BELAY_OK && out)
        *out = found;
    return rc;
}

belay_rc belay_execution_progress(struct belay *b, const struct belay_handle *h,
                                  int percent, const char *message,
                                  struct belay_error *err)
{
    if (!b || !h)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    return rc ? rc : exec_progress(&b->site, h, percent, message, err);
}

belay_rc belay_execution_delay(struct belay *b, const struct belay_handle *h,
                               int64_t until_ms, struct belay_error *err)
{
    if (!b || !h)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    return rc ? rc : exec_delay(&b->site, h, until_ms, err);
}

belay_rc belay_execution_release(struct belay *b, const struct belay_handle *h,
                                 struct belay_error *err)
{
    if (!b || !h)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    return rc ? rc : exec_release(&b->site, h, err);
}

belay_rc belay_execution_abort(struct belay *b, const struct belay_handle *h,
                               const char *reason, struct belay_error *err)
{
    if (!b || !h)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    return rc ? rc : exec_abort(&b->site, h, reason, err);
}

/* --- frames --- */

belay_rc belay_execution_append_frames(struct belay *b, const struct belay_handle *h,
                                       const struct belay_frame *frames, size_t n,
                                       struct belay_frame_appended *out,
                                       struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_frame_appended found = { 0 };
    const void *list = NULL;

    if (!b || !h || !frames)
        return null_given(err, __func__);
    belay_rc rc = handle_given(h, err);
    if (rc == BELAY_OK)
        rc = count_given(n, BELAY_WORK_MAX, "frames", err);
    if (rc == BELAY_OK)
        rc = sized_list(&frame_type, frames, n, &arena, &list, err);
    const struct belay_frame *known = list;
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        rc = bytes_given(known[i].bytes, known[i].len, "belay_frame.bytes", err);
    if (rc == BELAY_OK)
        rc = exec_append_frames(&b->site, h, known, n, &found, err);
    if (rc == BELAY_OK && out)
        *out = found;
    return rc;
}

/* --- ends --- */

static belay_rc completions_read(const struct belay_completion *in, size_t n,
                                 struct belay_arena *a,
                                 const struct belay_completion **out,
                                 struct belay_error *err)
{
    const void *list = NULL;
    belay_rc rc = sized_list(&completion_type, in, n, a, &list, err);
    const struct belay_completion *known = list;

    for (size_t i = 0; rc == BELAY_OK && i < n; i++) {
        rc = handle_given(known[i].handle, err);
        if (rc == BELAY_OK)
            rc = bytes_given(known[i].result, known[i].result_len,
                             "belay_completion.result", err);
    }
    *out = known;
    return rc;
}

static belay_rc failures_read(const struct belay_failure *in, size_t n,
                              struct belay_arena *a, const struct belay_failure **out,
                              struct belay_error *err)
{
    const void *list = NULL;
    belay_rc rc = sized_list(&failure_type, in, n, a, &list, err);
    const struct belay_failure *known = list;

    for (size_t i = 0; rc == BELAY_OK && i < n; i++) {
        rc = handle_given(known[i].handle, err);
        if (rc == BELAY_OK)
            rc = bytes_given(known[i].detail, known[i].detail_len,
                             "belay_failure.detail", err);
    }
    *out = known;
    return rc;
}

belay_rc belay_execution_complete(struct belay *b, const struct belay_completion *items,
                                  size_t n, const struct belay_claim_policy *next,
                                  struct belay_arena *arena, struct belay_ended *out,
                                  struct belay_works *next_out, struct belay_error *err)
{
    const struct belay_completion *known = NULL;
    struct belay_claim_policy policy;
    struct belay_works found = { 0 };

    if (!b || !items || !arena || !out || (next && !next_out))
        return null_given(err, __func__);
    belay_rc rc = count_given(n, BELAY_WORK_MAX, "completions", err);
    if (rc == BELAY_OK && next)
        rc = claim_policy_read(next, &policy, err);
    if (rc == BELAY_OK)
        rc = completions_read(items, n, arena, &known, err);
    if (rc)
        return rc;
    struct belay_ended *ended = arena_zalloc(arena, n, sizeof(*ended));
    if (!ended)
        return err_no_memory(err, "the answer");
    rc = exec_complete(&b->site, known, n, next ? &policy : NULL, arena, ended, &found,
                       err);
    if (rc)
        return rc;
    memcpy(out, ended, n * sizeof(*ended));
    if (next)
        *next_out = found;
    return BELAY_OK;
}

belay_rc belay_execution_fail(struct belay *b, const struct belay_failure *items,
                              size_t n, struct belay_arena *arena,
                              struct belay_ended *out, struct belay_error *err)
{
    const struct belay_failure *known = NULL;

    if (!b || !items || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = count_given(n, BELAY_WORK_MAX, "failures", err);
    if (rc == BELAY_OK)
        rc = failures_read(items, n, arena, &known, err);
    if (rc)
        return rc;
    struct belay_ended *ended = arena_zalloc(arena, n, sizeof(*ended));
    if (!ended)
        return err_no_memory(err, "the answer");
    rc = exec_fail(&b->site, known, n, arena, ended, err);
    if (rc == BELAY_OK)
        memcpy(out, ended, n * sizeof(*ended));
    return rc;
}
