/* Processes through the library: reading, waiting, wakes, grants, changes. */
#include <belay/process.h>

#include "api/check.h"
#include "api/handle.h"
#include "work/process.h"

static const struct sized events_type = {
    "belay_process_event_request", sizeof(struct belay_process_event_request),
    END_OF(struct belay_process_event_request, cancel)
};
static const struct sized wakes_type = { "belay_wake_page",
                                         sizeof(struct belay_wake_page),
                                         END_OF(struct belay_wake_page, limit) };
static const struct sized grants_type = { "belay_grant_page",
                                          sizeof(struct belay_grant_page),
                                          END_OF(struct belay_grant_page, limit) };
static const struct sized changes_type = {
    "belay_change_request", sizeof(struct belay_change_request),
    END_OF(struct belay_change_request, cancel)
};

const char *belay_process_change_name(int kind)
{
    return proc_change_name(kind);
}

const char *belay_wake_state_name(int state)
{
    return proc_wake_state_name(state);
}

/* --- reading and waiting --- */

belay_rc belay_process_events(struct belay *b,
                              const struct belay_process_event_request *request,
                              struct belay_arena *arena,
                              struct belay_process_events *out, struct belay_error *err)
{
    struct belay_process_events found = { 0 };
    struct belay_process_event_request known;

    if (!b || !request || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&events_type, request, &known, err);
    if (rc == BELAY_OK && !known.process_id)
        rc = null_given(err, "belay_process_event_request.process_id");
    if (rc == BELAY_OK)
        rc = proc_events(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_wait_event(struct belay *b,
                                  const struct belay_process_event_request *request,
                                  struct belay_arena *arena,
                                  const struct belay_process_event **out,
                                  struct belay_error *err)
{
    const struct belay_process_event *found = NULL;
    struct belay_process_event_request known;

    if (!b || !request || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&events_type, request, &known, err);
    if (rc == BELAY_OK && (!known.process_id || !known.event_type))
        rc = null_given(err, "belay_process_event_request.process_id, event_type");
    known.limit = 1;
    if (rc == BELAY_OK)
        rc = proc_wait_event(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_await(struct belay *b, const char *process_id, int64_t wait_ms,
                             struct belay_cancel *cancel, struct belay_arena *arena,
                             const struct belay_process **out, struct belay_error *err)
{
    const struct belay_process *found = NULL;

    if (!b || !process_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc =
        proc_await(&b->processes, process_id, wait_ms, cancel, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

/* --- wakes --- */

belay_rc belay_process_wakes(struct belay *b, const struct belay_wake_page *page,
                             struct belay_arena *arena, struct belay_wakes *out,
                             struct belay_error *err)
{
    struct belay_wakes found = { 0 };
    struct belay_wake_page known;

    if (!b || !page || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&wakes_type, page, &known, err);
    if (rc == BELAY_OK && !known.process_id)
        rc = null_given(err, "belay_wake_page.process_id");
    if (rc == BELAY_OK)
        rc = proc_wakes(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_ack(struct belay *b, const char *process_id, int64_t sequence,
                           bool *out_settled, struct belay_error *err)
{
    bool settled = false;

    if (!b || !process_id)
        return null_given(err, __func__);
    belay_rc rc = proc_ack(&b->processes, process_id, sequence, &settled, err);
    if (rc == BELAY_OK && out_settled)
        *out_settled = settled;
    return rc;
}

/* --- grants --- */

static bool is_scope(const struct belay_scope *scope)
{
    return scope && scope->session_id;
}

belay_rc belay_process_grant(struct belay *b, const struct belay_scope *scope,
                             const char *process_id, const char *kind,
                             const char *label, struct belay_error *err)
{
    if (!b || !is_scope(scope) || !process_id)
        return null_given(err, __func__);
    return proc_grant(&b->processes, scope, process_id, kind, label, err);
}

belay_rc belay_process_revoke(struct belay *b, const struct belay_scope *scope,
                              const char *process_id, bool *out_revoked,
                              struct belay_error *err)
{
    bool revoked = false;

    if (!b || !is_scope(scope) || !process_id)
        return null_given(err, __func__);
    belay_rc rc = proc_revoke(&b->processes, scope, process_id, &revoked, err);
    if (rc == BELAY_OK && out_revoked)
        *out_revoked = revoked;
    return rc;
}

belay_rc belay_process_transfer(struct belay *b, const struct belay_scope *from,
                                const struct belay_scope *to,
                                const char *const *process_ids, size_t n,
                                struct belay_error *err)
{
    if (!b || !is_scope(from) || !is_scope(to))
        return null_given(err, __func__);
    belay_rc rc = strings_given(process_ids, n, "process_ids", err);
    return rc ? rc : proc_transfer(&b->processes, from, to, process_ids, n, err);
}

belay_rc belay_process_has_grant(struct belay *b, const struct belay_scope *scope,
                                 const char *process_id, bool *out,
                                 struct belay_error *err)
{
    bool has = false;

    if (!b || !is_scope(scope) || !process_id || !out)
        return null_given(err, __func__);
    belay_rc rc = proc_has_grant(&b->processes, scope, process_id, &has, err);
    if (rc == BELAY_OK)
        *out = has;
    return rc;
}

belay_rc belay_process_grants(struct belay *b, const struct belay_grant_page *page,
                              struct belay_arena *arena,
                              struct belay_process_grants *out, struct belay_error *err)
{
    struct belay_process_grants found = { 0 };
    struct belay_grant_page known;

    if (!b || !page || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&grants_type, page, &known, err);
    if (rc == BELAY_OK)
        rc = proc_grants(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_forget_session(struct belay *b, const char *session_id,
                                      bool cancel, const char *reason,
                                      struct belay_arena *arena,
                                      struct belay_forget_report *out,
                                      struct belay_error *err)
{
    struct belay_forget_report found = { 0 };

    if (!b || !session_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = proc_forget_session(&b->processes, session_id, cancel, reason, arena,
                                      &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

/* --- changes --- */

belay_rc belay_process_changed_since(struct belay *b,
                                     const struct belay_change_request *request,
                                     struct belay_arena *arena,
                                     struct belay_process_changes *out,
                                     struct belay_error *err)
{
    struct belay_change_request known = { .size = sizeof(known) };
    struct belay_process_changes found = { 0 };
    belay_rc rc = BELAY_OK;

    if (!b || !arena || !out)
        return null_given(err, __func__);
    if (request)
        rc = sized_read(&changes_type, request, &known, err);
    if (rc == BELAY_OK)
        rc = proc_changes(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}
