/* Processes in rows: reading one, writing the difference and where it stands, telling. */
#include "work/process_rows.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"

/* --- names --- */

belay_rc proc_check_id(const char *id, const char *reason, struct belay_error *err)
{
    if (id && bytes_is_id(bytes_str(id), PROCESS_ID_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, reason,
                      "%s: must be 1 to %d bytes of UTF-8 without control characters",
                      reason, PROCESS_ID_MAX);
}

belay_rc proc_check_scope(const struct belay_scope *scope, const char *reason,
                          struct belay_error *err)
{
    belay_rc rc = proc_check_id(scope->session_id, reason, err);

    return rc || !scope->frame_id ? rc : proc_check_id(scope->frame_id, reason, err);
}

bool proc_name(const char *prefix, struct bytes name, struct belay_arena *a,
               struct bytes *out)
{
    struct bytes head = bytes_str(prefix);
    uint8_t *text = arena_alloc(a, head.len + name.len);

    if (!text)
        return false;
    memcpy(text, head.ptr, head.len);
    if (name.len > 0)
        memcpy(text + head.len, name.ptr, name.len);
    *out = bytes_of(text, head.len + name.len);
    return true;
}

struct scope proc_scope(const struct belay_scope *scope)
{
    return (struct scope){
        scope->session_id ? bytes_str(scope->session_id) : bytes_of(NULL, 0),
        scope->frame_id ? bytes_str(scope->frame_id) : bytes_of(NULL, 0)
    };
}

belay_rc proc_read_json(const char *text, const char *reason, json_t **out,
                        struct belay_error *err)
{
    struct belay_error why = { .code = 0 };
    belay_rc rc = json_read(bytes_str(text), PROCESS_JSON_MAX, out, &why);

    if (rc == BELAY_INVALID)
        rc = err_reason(err, rc,
                        strcmp(why.reason, "too_large") == 0 ? why.reason : reason,
                        "%s: %s", reason, why.message);
    else if (rc && err)
        *err = why;
    if (rc == BELAY_INVALID)
        err_numbers(err, why.expected, why.actual);
    return rc;
}

bool proc_topic(struct bytes id, struct belay_arena *a, struct bytes *out)
{
    return proc_name("process/", id, a, out);
}

/* --- statuses --- */

static const char *const statuses[] = {
    [PROC_DELETING] = PROCESS_DELETING,      [BELAY_PROCESS_RUNNING] = "running",
    [BELAY_PROCESS_COMPLETED] = "completed", [BELAY_PROCESS_FAILED] = "failed",
    [BELAY_PROCESS_CANCELLED] = "cancelled",
};

int proc_status_of(struct bytes word)
{
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        if (bytes_eq(word, bytes_str(statuses[i])))
            return (int)i;
    }
    return -1;
}

bool proc_status_index(struct bytes status, struct belay_arena *a, struct bytes *out)
{
    return proc_name(PROCESS_STATUS_INDEX, status, a, out);
}

/* --- reading --- */

belay_rc proc_unknown(struct txn *t, struct bytes id)
{
    return refuse_unknown_process(id, txn_error(t));
}

belay_rc proc_corrupt(struct txn *t, const struct row *row, unsigned column)
{
    struct bytes id = row->v[0].b;
    const char *name = row->type->columns[column].name;
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, name, "process %.*s: %s is not what it can be",
                 (int)id.len, (const char *)id.ptr, name);

    err_entity(txn_error(t), id);
    return rc;
}

/* Numbers of a process, and whether they may be missing. */
static const struct {
    unsigned column;
    bool optional;
} numbers[] = {
    { PROCESS_FIRST_SEQ, false },          { PROCESS_LAST_SEQ, false },
    { PROCESS_TERMINAL_SEQ, true },        { PROCESS_CREATED_AT_MS, false },
    { PROCESS_UPDATED_AT_MS, false },      { PROCESS_FINISHED_AT_MS, true },
    { PROCESS_RETENTION_MS, true },        { PROCESS_PURGE_AT_MS, true },
    { PROCESS_LEASE + LEASE_FENCE, true },
};

static unsigned fault_of(const struct row *row)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        const struct value *v = &row->v[numbers[i].column];
        bool absent = v->kind == VALUE_NULL;
        if (absent ? !numbers[i].optional
                   : v->kind != VALUE_I64 || v->i < 0 || v->i > TIME_MAX_MS)
            return numbers[i].column;
    }
    if (row_bytes(row, PROCESS_HASH).len == 0)
        return PROCESS_HASH;
    int64_t last = row_i64(row, PROCESS_LAST_SEQ, 0);
    if (row_i64(row, PROCESS_FIRST_SEQ, 0) < 1 ||
        row_i64(row, PROCESS_FIRST_SEQ, 0) > last + 1)
        return PROCESS_FIRST_SEQ;
    if (row_i64(row, PROCESS_TERMINAL_SEQ, 0) > last)
        return PROCESS_TERMINAL_SEQ;
    return proc_status_of(row_bytes(row, PROCESS_STATUS)) < 0 ? PROCESS_STATUS
                                                              : PROCESS_COLUMNS;
}

belay_rc proc_of(struct txn *t, const struct row *row, struct proc *out)
{
    unsigned column = fault_of(row);

    if (column < PROCESS_COLUMNS)
        return proc_corrupt(t, row, column);
    *out = (struct proc){
        .row = row,
        .id = row_bytes(row, PROCESS_ID),
        .hash = row_bytes(row, PROCESS_HASH),
        .status = proc_status_of(row_bytes(row, PROCESS_STATUS)),
        .last_seq = row_i64(row, PROCESS_LAST_SEQ, 0),
        .lease = lease_of(row, PROCESS_LEASE),
    };
    memcpy(out->v, row->v, sizeof(out->v));
    return BELAY_OK;
}

belay_rc proc_found(struct txn *t, struct bytes id, const struct row *row,
                    struct proc *out)
{
    if (!row)
        return proc_unknown(t, id);
    belay_rc rc = proc_of(t, row, out);
    return rc == BELAY_OK && out->status == PROC_DELETING ? proc_unknown(t, id) : rc;
}

belay_rc proc_get(struct txn *t, struct bytes id, struct proc *out)
{
    struct value key = value_text(id);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_process, &key, &row);

    return rc ? rc : proc_found(t, id, row, out);
}

/* --- writing --- */

/* The rank it has among those of its status. */
static int64_t status_rank(const struct value *v)
{
    return v[PROCESS_PURGE_AT_MS].kind == VALUE_I64 ? v[PROCESS_PURGE_AT_MS].i : 0;
}

static belay_rc restand(struct txn *t, const struct proc *p)
{
    const struct value *was = p->row->v;
    struct bytes from, to;

    if (value_eq(&was[PROCESS_STATUS], &p->v[PROCESS_STATUS]) &&
        status_rank(was) == status_rank(p->v))
        return BELAY_OK;
    if (!proc_status_index(was[PROCESS_STATUS].b, txn_arena(t), &from) ||
        !proc_status_index(p->v[PROCESS_STATUS].b, txn_arena(t), &to))
        return err_no_memory(txn_error(t), "an index");
    if (bytes_eq(from, to))
        return txn_rank_move(t, to, status_rank(was), status_rank(p->v), p->id);
    belay_rc rc = txn_rank_remove(t, from, status_rank(was), p->id);
    return rc ? rc : txn_rank_add(t, to, status_rank(p->v), p->id);
}

belay_rc proc_write(struct txn *t, struct proc *p)
{
    struct change changes[PROCESS_COLUMNS];
    struct value key = value_text(p->id);
    size_t n = 0;

    for (unsigned i = 1; i < PROCESS_COLUMNS; i++) {
        if (!value_eq(&p->v[i], &p->row->v[i]))
            changes[n++] = (struct change){ i, p->v[i] };
    }
    belay_rc rc = n > 0 ? txn_put(t, &row_process, &key, changes, n) : BELAY_OK;
    return rc ? rc : restand(t, p);
}

/* --- holding --- */

belay_rc proc_lease_lost(struct txn *t, struct bytes id, const char *reason)
{
    return refuse_lease_lost(id, reason, txn_error(t));
}

belay_rc proc_hold(struct txn *t, const struct proc *p,
                   const struct belay_process_lease *lease, int64_t epoch)
{
    const struct lease_proof proof = { bytes_str(lease->lease_token),
                                       bytes_str(lease->lease_id) };
    const char *reason = bytes_eq(p->id, bytes_str(lease->process_id))
                             ? lease_lost_reason(&p->lease, &proof, epoch)
                             : "superseded";

    return reason ? proc_lease_lost(t, p->id, reason) : BELAY_OK;
}

belay_rc proc_unheld(struct txn *t, const struct proc *p, int64_t now_ms)
{
    if (!lease_is_live(&p->lease, now_ms))
        return BELAY_OK;
    return refuse_lease_held(p->id, p->lease.owner, now_ms, p->lease.expires_at_ms,
                             txn_error(t));
}

/* --- telling --- */

static const char *const change_names[] = {
    [BELAY_CHANGE_REGISTERED] = "registered",
    [BELAY_CHANGE_EXTERNAL_REF] = "external_ref",
    [BELAY_CHANGE_CANCEL_REQUESTED] = "cancel_requested",
    [BELAY_CHANGE_ENDED] = "ended",
    [BELAY_CHANGE_DELETED] = "deleted",
    [BELAY_CHANGE_EVENT_REFUSED] = "event_refused",
};

const char *proc_change_name(int kind)
{
    return kind > 0 && (size_t)kind < COUNT_OF(change_names) ? change_names[kind]
                                                             : NULL;
}

const char *proc_status_name(int status)
{
    return status > PROC_DELETING && (size_t)status < COUNT_OF(statuses)
               ? statuses[status]
               : NULL;
}

belay_rc proc_tell(struct txn *t, const struct proc *p, int kind, int64_t now_ms,
                   struct bytes detail)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    buf_append_str(&text, "[{\"at\":");
    buf_append_i64(&text, now_ms);
    buf_append_str(&text, ",\"change\":\"");
    buf_append_str(&text, proc_change_name(kind));
    buf_append_str(&text, "\",\"process\":");
    json_append_string(&text, p->id);
    buf_append_str(&text, ",\"hash\":");
    json_append_string(&text, p->hash);
    buf_append_str(&text, ",\"status\":");
    json_append_string(&text, p->v[PROCESS_STATUS].b);
    buf_append_str(&text, ",\"seq\":");
    buf_append_i64(&text, proc_i64(p, PROCESS_LAST_SEQ, 0));
    if (detail.len > 0) {
        buf_append_str(&text, ",\"detail\":");
        json_append_string(&text, detail);
    }
    buf_append_str(&text, "}]");
    if (text.failed)
        return err_no_memory(txn_error(t), "a change");
    belay_rc rc = txn_feed_append(t, bytes_str(PROCESS_FEED), buf_view(&text), NULL);
    return rc ? rc : txn_wake(t, bytes_str(CHANGES_TOPIC));
}
