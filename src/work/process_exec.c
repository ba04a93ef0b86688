#include "work/process_exec.h"

#include "base/json.h"
#include "work/process_event.h"

/* --- at submission --- */

belay_rc proc_admit_execution(struct txn *t, const struct belay_submission *s)
{
    CLEANUP(proc_reg_dropp) const struct proc_reg *reg = NULL;
    const char *name = s->process_event ? s->process_event : EXECUTION_EVENT_TYPE;
    const struct row *spec;
    struct event_type type;
    bool found = false;

    if (!s->process)
        return BELAY_OK;
    struct value key = value_str(s->process);
    belay_rc rc = txn_get(t, &row_process_spec, &key, &spec);
    if (rc == BELAY_OK && !spec)
        rc = proc_unknown(t, key.b);
    if (rc == BELAY_OK)
        rc = proc_reg_of(t, spec, &reg);
    if (rc == BELAY_OK)
        rc = event_type_find(reg->event_types, bytes_str(name), txn_arena(t), &type,
                             &found, txn_error(t));
    if (rc || found)
        return rc;
    rc = txn_fail(t, BELAY_INVALID, "process_event",
                  "process `%.100s`: undeclared event type `%.100s`", s->process, name);
    err_entity(txn_error(t), bytes_str(name));
    return rc;
}

/* --- at the end --- */

static belay_rc make_payload(struct txn *t, const struct exec *e,
                             const struct exec_ending *how, struct bytes *text,
                             json_t **out)
{
    CLEANUP(buf_release) struct buf facts = { 0 };

    exec_end_facts(&facts, e, how);
    buf_append_char(&facts, '}');
    if (facts.failed)
        return err_no_memory(txn_error(t), "an event");
    belay_rc rc = json_read(buf_view(&facts), PROCESS_JSON_MAX, out, txn_error(t));
    if (rc == BELAY_OK && !arena_copy(txn_arena(t), buf_view(&facts), text))
        rc = err_no_memory(txn_error(t), "an event");
    return rc;
}

/* One for each time that it ends. */
static belay_rc make_key(struct txn *t, const struct exec *e, struct bytes *out)
{
    CLEANUP(buf_release) struct buf key = { 0 };

    buf_append_str(&key, "execution:");
    buf_append(&key, e->id);
    buf_append_char(&key, ':');
    buf_append_i64(&key, exec_i64(e, EXEC_REPLAYS, 0));
    buf_append_char(&key, ':');
    buf_append_str(&key, vector_name(BELAY_DIM_OUTCOME, e->vector.outcome));
    if (key.failed || !arena_copy(txn_arena(t), buf_view(&key), out))
        return err_no_memory(txn_error(t), "an event");
    return BELAY_OK;
}

static belay_rc append_end(struct txn *t, const struct exec *e,
                           const struct exec_ending *how, const struct row *spec)
{
    CLEANUP(proc_reg_dropp) const struct proc_reg *reg = NULL;
    CLEANUP(json_decrefp) json_t *payload = NULL;
    struct proc_draft d = { .process = exec_bytes(e, EXEC_PROCESS),
                            .type = e->v[EXEC_PROCESS_EVENT].kind == VALUE_NULL
                                        ? bytes_str(EXECUTION_EVENT_TYPE)
                                        : exec_bytes(e, EXEC_PROCESS_EVENT),
                            .authority = BELAY_AUTHORITY_EXECUTION,
                            .has_target = true };
    struct proc_applied applied;
    belay_rc rc = proc_reg_of(t, spec, &reg);

    if (rc == BELAY_OK)
        rc = make_payload(t, e, how, &d.payload_text, &payload);
    if (rc == BELAY_OK)
        rc = make_key(t, e, &d.key);
    if (rc)
        return rc;
    d.payload = payload;
    d.reg = reg;
    d.target = (struct scope){ reg->owner_session, reg->owner_frame };
    rc = draft_judge(&d, txn_arena(t), txn_error(t));
    if (rc == BELAY_OK)
        rc = append_in(t, &d, &applied);
    return rc;
}

static bool is_refusal(belay_rc rc)
{
    return rc == BELAY_INVALID || rc == BELAY_WRONG_STATE ||
           rc == BELAY_REPLAY_CONFLICT || rc == BELAY_OUT_OF_RANGE;
}

static belay_rc tell_refused(struct txn *t, const struct exec *e, struct bytes process,
                             int64_t now_ms)
{
    CLEANUP(buf_release) struct buf detail = { 0 };
    struct proc p;

    buf_append_str(&detail, "execution ");
    buf_append(&detail, e->id);
    buf_append_str(&detail, ": ");
    buf_append_str(&detail, txn_error(t)->message);
    if (detail.failed)
        return err_no_memory(txn_error(t), "a change");
    belay_rc rc = proc_get(t, process, &p);
    if (rc)
        return rc == BELAY_NOT_FOUND ? BELAY_OK : rc;
    return proc_tell(t, &p, BELAY_CHANGE_EVENT_REFUSED, now_ms, buf_view(&detail));
}

belay_rc proc_execution_ended(struct txn *t, const struct exec *e,
                              const struct exec_ending *how)
{
    struct bytes process = exec_bytes(e, EXEC_PROCESS);
    struct value key = value_text(process);
    const struct row_want wants[] = { { &row_process, &key },
                                      { &row_process_spec, &key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc || !rows[0] || !rows[1])
        return rc;
    rc = append_end(t, e, how, rows[1]);
    return is_refusal(rc) ? tell_refused(t, e, process, how->now_ms) : rc;
}
