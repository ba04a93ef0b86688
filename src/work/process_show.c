/* A process as its caller sees it. */
#include "work/exec_show.h"
#include "work/process_rows.h"

/* Optional texts of the rows, and where they go. */
struct shown {
    unsigned column;
    size_t offset;
};

static const struct shown own_texts[] = {
    { PROCESS_ID, offsetof(struct belay_process, process_id) },
    { PROCESS_HASH, offsetof(struct belay_process, registration_hash) },
    { PROCESS_LEASE + LEASE_OWNER, offsetof(struct belay_process, lease_owner) },
};

static const struct shown spec_texts[] = {
    { PROCESS_SPEC_KIND, offsetof(struct belay_process, kind) },
    { PROCESS_SPEC_OWNER_SESSION, offsetof(struct belay_process, owner) +
                                      offsetof(struct belay_scope, session_id) },
    { PROCESS_SPEC_OWNER_FRAME,
      offsetof(struct belay_process, owner) + offsetof(struct belay_scope, frame_id) },
    { PROCESS_SPEC_HOST_PROFILE, offsetof(struct belay_process, host_profile_id) },
    { PROCESS_SPEC_CAUSED_BY, offsetof(struct belay_process, caused_by) },
};

static const struct shown whole_texts[] = {
    { PROCESS_SPEC_INPUT, offsetof(struct belay_process, input) },
    { PROCESS_SPEC_EVENT_TYPES, offsetof(struct belay_process, event_types) },
};

static bool show_all(struct belay_arena *a, const struct row *row,
                     const struct shown *texts, size_t n, struct belay_process *out)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = NULL;
        if (!show_column(a, row, texts[i].column, &text))
            return false;
        memcpy((char *)out + texts[i].offset, &text, sizeof(text));
    }
    return true;
}

static void show_numbers(const struct proc *p, struct belay_process *out)
{
    out->status = p->status;
    out->last_sequence = proc_i64(p, PROCESS_LAST_SEQ, 0);
    out->created_at_ms = proc_i64(p, PROCESS_CREATED_AT_MS, 0);
    out->updated_at_ms = proc_i64(p, PROCESS_UPDATED_AT_MS, 0);
    out->finished_at_ms = proc_i64(p, PROCESS_FINISHED_AT_MS, BELAY_TIME_NONE);
    out->purge_at_ms = proc_i64(p, PROCESS_PURGE_AT_MS, BELAY_TIME_NONE);
    out->fence = p->lease.fence;
    out->lease_claimed_at_ms = p->lease.claimed_at_ms;
    out->lease_expires_at_ms = p->lease.expires_at_ms;
}

static belay_rc missing(struct txn *t, const struct proc *p, const char *what)
{
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, what, "process %.*s: its row of %s is missing",
                 (int)p->id.len, (const char *)p->id.ptr, what);

    err_entity(txn_error(t), p->id);
    return rc;
}

belay_rc proc_decode(struct txn *t, const struct proc *p,
                     const struct proc_parts *parts, bool whole, struct belay_arena *a,
                     struct belay_process *out)
{
    if (!parts->spec)
        return missing(t, p, "process_spec");
    if (p->status > BELAY_PROCESS_RUNNING && !parts->end)
        return missing(t, p, "process_end");
    *out = (struct belay_process){ .status = p->status };
    show_numbers(p, out);
    bool shown = show_all(a, p->row, own_texts, COUNT_OF(own_texts), out) &&
                 show_all(a, parts->spec, spec_texts, COUNT_OF(spec_texts), out);
    if (shown && whole)
        shown = show_all(a, parts->spec, whole_texts, COUNT_OF(whole_texts), out);
    if (shown && parts->ref)
        shown = show_column(a, parts->ref, PROCESS_REF_REF, &out->external_ref);
    if (shown && parts->end)
        shown = show_column(a, parts->end, PROCESS_END_OUTPUT, &out->await_output);
    return shown ? BELAY_OK : err_no_memory(txn_error(t), "a process");
}

belay_rc proc_describe(struct txn *t, struct bytes id, struct belay_arena *a,
                       const struct belay_process **out)
{
    struct value key = value_text(id);
    const struct row_want wants[] = { { &row_process, &key },
                                      { &row_process_spec, &key },
                                      { &row_process_ref, &key },
                                      { &row_process_end, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct proc p;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = proc_found(t, id, rows[0], &p);
    if (rc)
        return rc;
    const struct proc_parts parts = { rows[1], rows[2], rows[3] };
    struct belay_process *found = arena_zalloc(a, 1, sizeof(*found));
    if (!found)
        return err_no_memory(txn_error(t), "a process");
    *out = found;
    return proc_decode(t, &p, &parts, true, a, found);
}

struct showing {
    struct bytes id;
    const struct belay_process *out;
};

static belay_rc show_body(struct txn *t, void *arg)
{
    struct showing *s = arg;

    return proc_describe(t, s->id, txn_arena(t), &s->out);
}

belay_rc proc_show(const struct proc_site *site, const char *process_id,
                   struct belay_arena *a, const struct belay_process **out,
                   struct belay_error *err)
{
    struct showing s = { .id = bytes_str(process_id) };
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, show_body, &s, &look_only, a, err);
    if (rc == BELAY_OK)
        *out = s.out;
    return rc;
}
