/* A new execution: its rows, its payload, the indexes it stands in. */
#include "base/clock.h"
#include "work/exec_submit.h"
#include "work/process_exec.h"

static struct value text_or_null(const char *text)
{
    return text ? value_str(text) : value_null();
}

static struct value json_or_null(struct bytes text)
{
    return text.len > 0 ? value_json(text) : value_null();
}

static belay_rc write_execution(struct txn *t, const struct submit_item *item,
                                int64_t now_ms, int32_t *out_state)
{
    const struct belay_submission *s = item->s;
    int64_t delayed_ms = time_add_ms(now_ms, s->delay_ms);
    int64_t run_at_ms = time_add_ms(s->run_at_ms, 0);
    int64_t until_ms = delayed_ms > run_at_ms ? delayed_ms : run_at_ms;
    bool waits = until_ms > now_ms;
    struct exec e = { .id = bytes_str(item->id), .due_ms = TIME_NONE };

    e.v[EXEC_ID] = value_text(e.id);
    e.v[EXEC_LANE] = value_text(item->lane);
    e.v[EXEC_ROUTE] = value_str(item->route);
    if (s->priority > 0) /* counters and the fence likewise: what is 0 is not stored */
        e.v[EXEC_PRIORITY] = value_i64(s->priority);
    e.v[EXEC_CREATED_AT_MS] = value_i64(now_ms);
    if (waits)
        e.v[EXEC_DELAY_UNTIL_MS] = value_i64(until_ms);
    if (s->deadline_ms > 0)
        e.v[EXEC_DEADLINE_AT_MS] = value_i64(time_add_ms(now_ms, s->deadline_ms));
    e.v[EXEC_RETENTION_MS] = value_i64(exec_policy_retention(s));
    e.v[EXEC_SESSION] = text_or_null(s->session);
    e.v[EXEC_PROCESS] = text_or_null(s->process);
    e.v[EXEC_PROCESS_EVENT] = text_or_null(s->process_event);
    belay_rc rc = exec_step(t, &e, waits ? STEP_CREATE_DELAYED : STEP_CREATE);
    if (rc)
        return rc;
    *out_state = (int32_t)vector_state(&e.vector);
    return exec_write(t, &e, now_ms);
}

static belay_rc write_spec(struct txn *t, const struct submit_item *item)
{
    const struct belay_submission *s = item->s;
    bool brings = item->payload.ptr != NULL, apart = item->piece != NULL;
    const struct value v[SPEC_COLUMNS] = {
        [SPEC_ID] = value_str(item->id),
        [SPEC_KIND] = value_str(s->kind ? s->kind : ""),
        [SPEC_PAYLOAD] = brings && !apart ? value_bytes(item->payload) : value_null(),
        [SPEC_PAYLOAD_BLOB] = apart ? value_str(item->piece->sha256) : value_null(),
        [SPEC_ENCODING] =
            brings ? value_str(s->payload_is_json ? PAYLOAD_JSON : PAYLOAD_BYTES)
                   : value_null(),
        [SPEC_POLICY] = value_json(item->policy),
        [SPEC_REQUIRES] =
            item->requires.len > 0 ? value_text(item->requires) : value_null(),
        [SPEC_TAGS] = json_or_null(item->tags_json),
        [SPEC_CREATOR] = text_or_null(s->creator),
        [SPEC_TRACE] = json_or_null(item->trace),
        [SPEC_KEY] = text_or_null(s->key),
    };

    return txn_insert(t, &row_execution_spec, v);
}

/* S6: what was stored ahead is touched, so that no sweep takes it; one that was quicker
 * costs only that it is written again. */
static belay_rc write_blob(struct txn *t, const struct submit_item *item)
{
    bool found = false;
    belay_rc rc = BELAY_OK;

    if (item->piece && item->stored)
        rc = blob_touch(t, item->piece->sha256, &found);
    if (rc == BELAY_OK && item->piece && !found)
        rc = blob_put_in(t, item->piece, NULL);
    return rc;
}

static belay_rc write_indexes(struct txn *t, const struct submit_item *item,
                              int64_t now_ms)
{
    struct bytes id = bytes_str(item->id), index;
    belay_rc rc = txn_rank_add(t, bytes_str(EXECUTION_INDEX), now_ms, id);

    for (size_t i = 0; i < item->s->n_tags && rc == BELAY_OK; i++) {
        if (!exec_tag_index(&item->tags[i], txn_arena(t), &index))
            return err_no_memory(txn_error(t), "a tag");
        rc = txn_rank_add(t, index, now_ms, id);
    }
    return rc;
}

belay_rc submit_create(struct txn *t, const struct submit_item *item, int64_t now_ms,
                       int32_t *out_state)
{
    belay_rc rc = proc_admit_execution(t, item->s);

    if (rc == BELAY_OK)
        rc = write_execution(t, item, now_ms, out_state);
    if (rc == BELAY_OK)
        rc = write_blob(t, item);
    if (rc == BELAY_OK)
        rc = write_spec(t, item);
    return rc ? rc : write_indexes(t, item, now_ms);
}
