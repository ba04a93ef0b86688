/* An execution as its caller sees it, and what came of it. */
#include "work/exec_show.h"

#include "store/blob.h"

const struct txn_options look_only = { .read_only = true };

belay_rc look_limit(size_t limit, size_t *out, struct belay_error *err)
{
    if (limit > LOOK_MAX)
        return err_reason(err, BELAY_INVALID, "limit",
                          "limit: %zu, at most %d are listed at once", limit, LOOK_MAX);
    *out = limit > 0 ? limit : LOOK_USUAL;
    return BELAY_OK;
}

bool show_text(struct belay_arena *a, struct bytes b, const char **out)
{
    struct bytes copy;

    *out = NULL;
    if (!b.ptr)
        return true;
    if (!arena_copy(a, b, &copy))
        return false;
    *out = (const char *)copy.ptr;
    return true;
}

bool show_column(struct belay_arena *a, const struct row *row, unsigned column,
                 const char **out)
{
    *out = NULL;
    return row->v[column].kind == VALUE_NULL ||
           show_text(a, row_bytes(row, column), out);
}

/* --- decoding --- */

static const struct {
    unsigned column;
    size_t offset;
    int64_t otherwise;
} numbers[] = {
    { EXEC_ATTEMPTS, offsetof(struct belay_execution, attempts), 0 },
    { EXEC_RETRIES, offsetof(struct belay_execution, retries), 0 },
    { EXEC_RECLAIMS, offsetof(struct belay_execution, reclaims), 0 },
    { EXEC_REPLAYS, offsetof(struct belay_execution, replays), 0 },
    { EXEC_LEASE + LEASE_FENCE, offsetof(struct belay_execution, fence), 0 },
    { EXEC_CREATED_AT_MS, offsetof(struct belay_execution, created_at_ms), TIME_NONE },
    { EXEC_STARTED_AT_MS, offsetof(struct belay_execution, started_at_ms), TIME_NONE },
    { EXEC_UPDATED_AT_MS, offsetof(struct belay_execution, updated_at_ms), TIME_NONE },
    { EXEC_FINISHED_AT_MS, offsetof(struct belay_execution, finished_at_ms),
      TIME_NONE },
    { EXEC_DELAY_UNTIL_MS, offsetof(struct belay_execution, delay_until_ms),
      TIME_NONE },
    { EXEC_DEADLINE_AT_MS, offsetof(struct belay_execution, deadline_at_ms),
      TIME_NONE },
    { EXEC_TIMEOUT_AT_MS, offsetof(struct belay_execution, timeout_at_ms), TIME_NONE },
};

static const struct {
    unsigned column;
    size_t offset;
} texts[] = {
    { EXEC_ID, offsetof(struct belay_execution, id) },
    { EXEC_LANE, offsetof(struct belay_execution, lane) },
    { EXEC_DETAIL, offsetof(struct belay_execution, blocking_detail) },
    { EXEC_LEASE + LEASE_TOKEN, offsetof(struct belay_execution, attempt_id) },
    { EXEC_LEASE + LEASE_OWNER, offsetof(struct belay_execution, worker) },
    { EXEC_FLOW, offsetof(struct belay_execution, flow) },
    { EXEC_SESSION, offsetof(struct belay_execution, session) },
    { EXEC_PROCESS, offsetof(struct belay_execution, process) },
};

static const char **text_at(struct belay_execution *e, size_t offset)
{
    return (const char **)(void *)((char *)e + offset);
}

static bool decode_row(const struct exec *e, struct belay_arena *a,
                       struct belay_execution *out)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        *(int64_t *)(void *)((char *)out + numbers[i].offset) =
            exec_i64(e, numbers[i].column, numbers[i].otherwise);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (!show_text(a, exec_bytes(e, texts[i].column),
                       text_at(out, texts[i].offset)))
            return false;
    }
    out->vector = e->vector;
    out->state = (int32_t)vector_state(&e->vector);
    out->priority = (int32_t)exec_i64(e, EXEC_PRIORITY, 0);
    out->attempt = out->attempts - 1;
    out->lease_expires_at_ms =
        e->vector.ownership == BELAY_LEASED
            ? exec_i64(e, EXEC_LEASE + LEASE_EXPIRES_AT_MS, TIME_NONE)
            : TIME_NONE;
    return true;
}

/* "a,b" as two texts; false: no memory. */
static bool split_requires(struct bytes joined, struct belay_arena *a,
                           struct belay_execution *out)
{
    size_t n = joined.len > 0, i = 0;

    for (size_t k = 0; k < joined.len; k++)
        n += joined.ptr[k] == ',';
    const char **all = arena_zalloc(a, n, sizeof(*all));
    if (!all)
        return false;
    for (struct bytes rest = joined; i < n; i++) {
        const uint8_t *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        if (!show_text(a, bytes_of(rest.ptr, len), &all[i]))
            return false;
        if (comma)
            rest = bytes_of(comma + 1, rest.len - len - 1);
    }
    out->requires = n > 0 ? all : NULL;
    out->n_requires = n;
    return true;
}

/* Out of the body's arena into another. */
static bool copy_tags(const struct belay_tag *tags, size_t n, struct belay_arena *a,
                      struct belay_execution *out)
{
    struct belay_tag *all = arena_zalloc(a, n, sizeof(*all));

    if (!all)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!show_text(a, bytes_str(tags[i].key), &all[i].key) ||
            !show_text(a, bytes_str(tags[i].value), &all[i].value))
            return false;
    }
    out->tags = n > 0 ? all : NULL;
    out->n_tags = n;
    return true;
}

static belay_rc decode_spec(struct txn *t, const struct exec *e, const struct row *spec,
                            struct belay_arena *a, struct belay_execution *out)
{
    const struct belay_tag *tags;
    size_t n_tags;

    if (!spec) {
        belay_rc rc = txn_fail(t, BELAY_CORRUPT, "spec",
                               "execution %.*s: what was submitted is missing",
                               (int)e->id.len, (const char *)e->id.ptr);
        err_entity(txn_error(t), e->id);
        return rc;
    }
    belay_rc rc = exec_tags_of(t, spec, &tags, &n_tags);
    if (rc)
        return rc;
    if (!copy_tags(tags, n_tags, a, out) ||
        !show_column(a, spec, SPEC_KIND, &out->kind) ||
        !show_column(a, spec, SPEC_CREATOR, &out->creator) ||
        !show_column(a, spec, SPEC_KEY, &out->key) ||
        !show_column(a, spec, SPEC_POLICY, &out->policy) ||
        !split_requires(row_bytes(spec, SPEC_REQUIRES), a, out))
        return err_no_memory(txn_error(t), "an execution");
    if (!out->kind)
        out->kind = "";
    return exec_trace_of(t, spec, a, &out->traceparent, &out->tracestate);
}

belay_rc exec_class_of(struct txn *t, struct bytes id, const struct row *row,
                       unsigned column, int32_t *out)
{
    int value = 0;

    *out = 0;
    if (row->v[column].kind == VALUE_NULL)
        return BELAY_OK;
    if (!vector_parse(BELAY_DIM_FAILURE_CLASS, row_bytes(row, column), &value)) {
        belay_rc rc = txn_fail(t, BELAY_CORRUPT, "failure_class",
                               "execution %.*s: how it failed cannot be read",
                               (int)id.len, (const char *)id.ptr);
        err_entity(txn_error(t), id);
        return rc;
    }
    *out = value;
    return BELAY_OK;
}

bool end_is_current(const struct exec *e, const struct row *end)
{
    return end &&
           row_i64(end, END_FENCE, 0) == exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0);
}

bool exec_has_failed(const struct exec *e, const struct row *end)
{
    return end_is_current(e, end) && (e->vector.outcome == BELAY_TERMINAL_FAILED ||
                                      e->vector.outcome == BELAY_TERMINAL_EXPIRED ||
                                      e->vector.attempt == BELAY_PENDING_RETRY_ATTEMPT);
}

bool exec_has_result(const struct exec *e, const struct row *end)
{
    return end_is_current(e, end) && e->vector.outcome == BELAY_TERMINAL_SUCCESS &&
           (end->v[END_RESULT].kind != VALUE_NULL ||
            end->v[END_RESULT_BLOB].kind != VALUE_NULL);
}

static belay_rc decode_end(struct txn *t, const struct exec *e, const struct row *end,
                           struct belay_arena *a, struct belay_execution *out)
{
    struct bytes detail = bytes_of(NULL, 0);
    bool cancelled =
        end_is_current(e, end) && e->vector.outcome == BELAY_TERMINAL_CANCELLED;
    belay_rc rc = BELAY_OK;

    out->has_result = exec_has_result(e, end);
    if (cancelled && (!show_column(a, end, END_CANCEL_REASON, &out->cancel_reason) ||
                      !show_column(a, end, END_CANCEL_SOURCE, &out->cancelled_by)))
        return err_no_memory(txn_error(t), "an execution");
    if (!exec_has_failed(e, end))
        return BELAY_OK;
    rc = exec_class_of(t, e->id, end, END_FAILURE_CLASS, &out->failure_class);
    if (rc)
        return rc;
    if (!show_column(a, end, END_FAILURE_MESSAGE, &out->failure_message) ||
        (end->v[END_FAILURE_DETAIL].kind != VALUE_NULL &&
         !arena_copy(a, row_bytes(end, END_FAILURE_DETAIL), &detail)))
        return err_no_memory(txn_error(t), "an execution");
    out->failure_detail = detail.ptr;
    out->failure_detail_len = detail.len;
    return BELAY_OK;
}

static bool decode_progress(const struct exec *e, const struct row *progress,
                            struct belay_arena *a, struct belay_execution *out)
{
    out->progress_percent = -1;
    out->progress_at_ms = TIME_NONE;
    if (!progress || row_i64(progress, PROGRESS_FENCE, 0) !=
                         exec_i64(e, EXEC_LEASE + LEASE_FENCE, 0))
        return true;
    out->progress_percent = (int)row_i64(progress, PROGRESS_PERCENT, -1);
    out->progress_at_ms = row_i64(progress, PROGRESS_AT_MS, TIME_NONE);
    return show_column(a, progress, PROGRESS_MESSAGE, &out->progress_message);
}

belay_rc exec_decode(struct txn *t, const struct exec *e,
                     const struct exec_parts *parts, const char *ns,
                     struct belay_arena *a, struct belay_execution *out)
{
    *out = (struct belay_execution){ .ns = ns };
    if (!decode_row(e, a, out) || !decode_progress(e, parts->progress, a, out))
        return err_no_memory(txn_error(t), "an execution");
    belay_rc rc = decode_spec(t, e, parts->spec, a, out);
    return rc ? rc : decode_end(t, e, parts->end, a, out);
}

/* --- describing --- */

struct describing {
    struct bytes id;
    const char *ns;
    struct belay_execution out;
};

static belay_rc describe_body(struct txn *t, void *arg)
{
    struct describing *d = arg;
    struct value key = value_text(d->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key },
                                      { &row_execution_end, &key },
                                      { &row_execution_progress, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct exec e;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = exec_get(t, d->id, &e);
    if (rc)
        return rc;
    const struct exec_parts parts = { rows[1], rows[2], rows[3] };
    return exec_decode(t, &e, &parts, d->ns, txn_arena(t), &d->out);
}

belay_rc exec_describe(const struct exec_site *site, const char *execution_id,
                       struct belay_arena *a, struct belay_execution *out,
                       struct belay_error *err)
{
    struct describing d = { .id = bytes_str(execution_id) };
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc)
        return rc;
    if (!show_text(a, space_name(site->space), &d.ns))
        return err_no_memory(err, "an execution");
    rc = txn_run(site->space, describe_body, &d, &look_only, a, err);
    if (rc == BELAY_OK)
        *out = d.out;
    return rc;
}

/* --- the result --- */

struct resulting {
    struct bytes id;
    struct belay_result out;
    const char *blob; /* NULL: it is in the row */
};

static belay_rc not_terminal(struct txn *t, const struct exec *e)
{
    belay_rc rc = txn_fail(t, BELAY_WRONG_STATE, "not_terminal",
                           "execution %.*s: is %s, and has not ended", (int)e->id.len,
                           (const char *)e->id.ptr,
                           vector_name(BELAY_DIM_STATE, (int)vector_state(&e->vector)));

    err_entity(txn_error(t), e->id);
    return rc;
}

static belay_rc result_body(struct txn *t, void *arg)
{
    struct resulting *r = arg;
    struct value key = value_text(r->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_end, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct bytes content;
    struct exec e;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = exec_get(t, r->id, &e);
    if (rc)
        return rc;
    if (!vector_is_terminal(&e.vector))
        return not_terminal(t, &e);
    r->out = (struct belay_result){ .state = (int32_t)vector_state(&e.vector),
                                    .has_result = exec_has_result(&e, rows[1]) };
    r->blob = NULL;
    if (exec_has_failed(&e, rows[1])) {
        rc = exec_class_of(t, e.id, rows[1], END_FAILURE_CLASS, &r->out.failure_class);
        if (rc == BELAY_OK && !show_column(txn_arena(t), rows[1], END_FAILURE_MESSAGE,
                                           &r->out.failure_message))
            rc = err_no_memory(txn_error(t), "a result");
    }
    if (rc || !r->out.has_result)
        return rc;
    r->out.is_json =
        bytes_eq(row_bytes(rows[1], END_ENCODING), bytes_str(PAYLOAD_JSON));
    if (!show_column(txn_arena(t), rows[1], END_RESULT_BLOB, &r->blob) ||
        !arena_copy(txn_arena(t), row_bytes(rows[1], END_RESULT), &content))
        return err_no_memory(txn_error(t), "a result");
    r->out.bytes = content.ptr;
    r->out.len = content.len;
    return BELAY_OK;
}

belay_rc exec_result(const struct exec_site *site, const char *execution_id,
                     struct belay_arena *a, struct belay_result *out,
                     struct belay_error *err)
{
    struct resulting r = { .id = bytes_str(execution_id) };
    struct bytes content;
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, result_body, &r, &look_only, a, err);
    if (rc == BELAY_OK && r.blob) {
        rc = blob_load(site->space, r.blob, (size_t)BLOB_SIZE_MAX, a, &content, err);
        if (rc == BELAY_OK) {
            r.out.bytes = content.ptr;
            r.out.len = content.len;
        }
    }
    if (rc == BELAY_OK)
        *out = r.out;
    return rc;
}
