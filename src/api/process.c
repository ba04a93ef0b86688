/* Processes through the library: registering, events, leases. */
#include <belay/process.h>

#include "api/check.h"
#include "api/check_process.h"
#include "api/handle.h"
#include "work/process.h"

static const struct sized registration_type = {
    "belay_registration", sizeof(struct belay_registration),
    END_OF(struct belay_registration, retention_ms)
};
static const struct sized page_type = { "belay_process_page",
                                        sizeof(struct belay_process_page),
                                        END_OF(struct belay_process_page, limit) };
static const struct sized draft_type = { "belay_event_draft",
                                         sizeof(struct belay_event_draft),
                                         END_OF(struct belay_event_draft, lease) };
static const struct sized end_type = { "belay_process_end",
                                       sizeof(struct belay_process_end),
                                       END_OF(struct belay_process_end, wake_target) };
static const struct sized incarnation_type = {
    "belay_incarnation", sizeof(struct belay_incarnation),
    END_OF(struct belay_incarnation, process_start)
};

const char *belay_process_status_name(int status)
{
    return proc_status_name(status);
}

const char *belay_authority_name(int authority)
{
    return proc_authority_name(authority);
}

/* --- registering --- */

belay_rc belay_process_register(struct belay *b,
                                const struct belay_registration *registration,
                                struct belay_arena *arena, struct belay_registered *out,
                                struct belay_error *err)
{
    struct belay_registered found = { 0 };
    struct belay_registration known;

    if (!b || !registration || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&registration_type, registration, &known, err);
    if (rc == BELAY_OK && !known.process_id)
        rc = null_given(err, "belay_registration.process_id");
    if (rc == BELAY_OK && !known.owner.session_id && known.owner.frame_id)
        rc = null_given(err, "belay_registration.owner.session_id");
    if (rc == BELAY_OK)
        rc = proc_register(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_get(struct belay *b, const char *process_id,
                           struct belay_arena *arena, const struct belay_process **out,
                           struct belay_error *err)
{
    const struct belay_process *found = NULL;

    if (!b || !process_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = proc_show(&b->processes, process_id, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_list(struct belay *b, const struct belay_process_page *page,
                            struct belay_arena *arena, struct belay_processes *out,
                            struct belay_error *err)
{
    struct belay_process_page known = { .size = sizeof(known) };
    struct belay_processes found = { 0 };
    belay_rc rc = BELAY_OK;

    if (!b || !arena || !out)
        return null_given(err, __func__);
    if (page)
        rc = sized_read(&page_type, page, &known, err);
    if (rc == BELAY_OK)
        rc = proc_list(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_set_external_ref(struct belay *b, const char *process_id,
                                        const char *external_ref,
                                        const struct belay_process_lease *lease,
                                        struct belay_arena *arena,
                                        const struct belay_process **out,
                                        struct belay_error *err)
{
    const struct belay_process *found = NULL;

    if (!b || !process_id || !external_ref || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = lease ? lease_given(lease, err) : BELAY_OK;
    if (rc == BELAY_OK)
        rc = proc_set_ref(&b->processes, process_id, external_ref, lease, arena, &found,
                          err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_delete(struct belay *b, const char *process_id, bool force,
                              struct belay_error *err)
{
    if (!b || !process_id)
        return null_given(err, __func__);
    return proc_delete(&b->processes, process_id, force, err);
}

/* --- leases --- */

belay_rc lease_given(const struct belay_process_lease *lease, struct belay_error *err)
{
    if (lease->process_id && lease->lease_token && lease->lease_id)
        return BELAY_OK;
    return err_set(err, BELAY_MISUSE,
                   "lease: lacks its process id, lease token or lease id");
}

belay_rc belay_process_lease(struct belay *b, const char *process_id,
                             const char *owner_id, int64_t lease_ms,
                             const struct belay_incarnation *incarnation,
                             struct belay_arena *arena,
                             const struct belay_process_lease **out,
                             struct belay_error *err)
{
    const struct belay_process_lease *found = NULL;
    struct belay_incarnation known = { .size = sizeof(known) };
    belay_rc rc = BELAY_OK;

    if (!b || !process_id || !owner_id || !arena || !out)
        return null_given(err, __func__);
    if (incarnation)
        rc = sized_read(&incarnation_type, incarnation, &known, err);
    if (rc == BELAY_OK)
        rc = proc_lease(&b->processes, process_id, owner_id, lease_ms,
                        incarnation ? &known : NULL, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_renew(struct belay *b, const struct belay_process_lease *lease,
                             int64_t lease_ms, int64_t *out_expires_at_ms,
                             struct belay_error *err)
{
    int64_t expires_at_ms = 0;

    if (!b || !lease)
        return null_given(err, __func__);
    belay_rc rc = lease_given(lease, err);
    if (rc == BELAY_OK)
        rc = proc_renew(&b->processes, lease, lease_ms, &expires_at_ms, err);
    if (rc == BELAY_OK && out_expires_at_ms)
        *out_expires_at_ms = expires_at_ms;
    return rc;
}

belay_rc belay_process_release(struct belay *b, const struct belay_process_lease *lease,
                               bool *out_released, struct belay_error *err)
{
    bool released = false;

    if (!b || !lease)
        return null_given(err, __func__);
    belay_rc rc = lease_given(lease, err);
    if (rc == BELAY_OK)
        rc = proc_release(&b->processes, lease, &released, err);
    if (rc == BELAY_OK && out_released)
        *out_released = released;
    return rc;
}

belay_rc belay_process_lease_text(const struct belay_process_lease *lease,
                                  struct belay_arena *arena, const char **out,
                                  struct belay_error *err)
{
    const char *text = NULL;

    if (!lease || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = lease_given(lease, err);
    if (rc == BELAY_OK)
        rc = proc_lease_text(lease, arena, &text, err);
    if (rc == BELAY_OK)
        *out = text;
    return rc;
}

belay_rc belay_process_lease_parse(const char *text, struct belay_arena *arena,
                                   const struct belay_process_lease **out,
                                   struct belay_error *err)
{
    const struct belay_process_lease *lease = NULL;

    if (!text || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = proc_lease_parse(text, arena, &lease, err);
    if (rc == BELAY_OK)
        *out = lease;
    return rc;
}

/* --- events --- */

belay_rc belay_process_append(struct belay *b, const struct belay_event_draft *draft,
                              struct belay_arena *arena, struct belay_appended *out,
                              struct belay_error *err)
{
    struct belay_appended found = { 0 };
    struct belay_event_draft known;

    if (!b || !draft || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&draft_type, draft, &known, err);
    if (rc == BELAY_OK && (!known.process_id || !known.event_type || !known.payload))
        rc = null_given(err, "belay_event_draft.process_id, event_type, payload");
    if (rc == BELAY_OK && known.lease)
        rc = lease_given(known.lease, err);
    if (rc == BELAY_OK)
        rc = proc_append(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_complete(struct belay *b, const struct belay_process_end *end,
                                struct belay_arena *arena, struct belay_completed *out,
                                struct belay_error *err)
{
    struct belay_completed found = { 0 };
    struct belay_process_end known;

    if (!b || !end || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = sized_read(&end_type, end, &known, err);
    if (rc == BELAY_OK && (!known.process_id || !known.await_output))
        rc = null_given(err, "belay_process_end.process_id, await_output");
    if (rc == BELAY_OK && known.lease)
        rc = lease_given(known.lease, err);
    if (rc == BELAY_OK)
        rc = proc_complete(&b->processes, &known, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

belay_rc belay_process_cancel(struct belay *b, const char *process_id,
                              const char *reason, struct belay_arena *arena,
                              struct belay_appended *out, struct belay_error *err)
{
    struct belay_appended found = { 0 };

    if (!b || !process_id || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = proc_cancel(&b->processes, process_id, reason, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}
