/* Blobs, pins and what collects the garbage. */
#include <belay/blob.h>

#include "api/handle.h"
#include "api/op_args.h"
#include "work/gc.h"

/* --- bytes --- */

static void writer_closep(struct belay_blob_writer **w)
{
    belay_blob_close(*w);
}

static void reader_closep(struct belay_blob_reader **r)
{
    belay_blob_read_close(*r);
}

/* Everything that comes from the source. */
static belay_rc pour(struct belay_blob_writer *w, const struct op_source *from,
                     struct belay_error *err)
{
    struct bytes piece;

    for (;;) {
        belay_rc rc = from->read(from->arg, &piece, err);
        if (rc != BELAY_OK)
            err_context(err, "the content");
        if (rc == BELAY_OK && piece.len > 0)
            rc = belay_blob_write(w, piece.ptr, piece.len, err);
        if (rc != BELAY_OK || piece.len == 0)
            return rc;
    }
}

belay_rc op_blob_put(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_blob_writer *w CLEANUP(writer_closep) = NULL;
    const struct belay_blob_options options = {
        .size = sizeof(options),
        .kind = op_read_name(op_kind_names, op_get(call, "kind")->text),
        .profile = op_read_name(op_profile_names, op_get(call, "profile")->text),
        .expect = op_str(call, "expect"),
        .pin = op_str(call, "pin"),
    };
    struct belay_blob_info info;

    belay_rc rc = belay_blob_open(call->belay, &options, &w, err);
    if (rc == BELAY_OK)
        rc = pour(w, call->source, err);
    if (rc == BELAY_OK)
        rc = belay_blob_finish(w, &info, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "sha256", info.sha256);
    failed |= op_set_i64(result, "size", info.size);
    failed |= op_set_i64(result, "stored_size", info.stored_size);
    failed |= op_set_bool(result, "existed", info.existed);
    if (options.pin)
        failed |= op_set_text(result, "pin", options.pin);
    return op_finish(result, failed, out, err);
}

/* All of the blob, into the sink.  The last piece comes only when the digest of the whole
 * is right (S4). */
static belay_rc drain(struct belay_blob_reader *r, const struct op_sink *to,
                      struct belay_error *err)
{
    const void *data;
    size_t len;

    for (;;) {
        belay_rc rc = belay_blob_read(r, &data, &len, err);
        if (rc == BELAY_OK && len > 0)
            rc = to->write(to->arg, bytes_of(data, len), err);
        if (rc != BELAY_OK || len == 0)
            return rc;
    }
}

belay_rc op_blob_get(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_blob_reader *r CLEANUP(reader_closep) = NULL;
    const char *sha256 = op_str(call, "sha256");

    belay_rc rc = belay_blob_read_open(call->belay, sha256, &r, err);
    if (rc == BELAY_OK)
        rc = drain(r, call->sink, err);
    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "sha256", sha256);
    failed |= op_set_i64(result, "size", belay_blob_read_size(r));
    return op_finish(result, failed, out, err);
}

/* --- pins --- */

belay_rc op_blob_pin(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const char *name = op_str(call, "name"), *sha256 = op_str(call, "sha256");
    belay_rc rc = pin_put(call->belay->space, name, sha256, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "name", name);
    failed |= op_set_text(result, "sha256", sha256);
    return op_finish(result, failed, out, err);
}

belay_rc op_blob_unpin(const struct op_call *call, json_t **out,
                       struct belay_error *err)
{
    const char *name = op_str(call, "name");
    bool removed = false;
    belay_rc rc = pin_remove(call->belay->space, name, &removed, err);

    if (rc)
        return rc;
    json_t *result = json_object();
    int failed = op_set_text(result, "name", name);
    failed |= op_set_bool(result, "removed", removed);
    return op_finish(result, failed, out, err);
}

belay_rc op_blob_pins(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_pins found = { 0 };
    belay_rc rc = pin_list(call->belay->space, op_str(call, "cursor"),
                           (size_t)op_get(call, "limit")->number, &arena, &found, err);

    if (rc)
        return rc;
    json_t *items = json_array();
    int failed = 0;
    for (size_t i = 0; i < found.n; i++)
        failed |= json_array_append_new(items, op_json_pin(&found.pins[i]));
    return op_made_pages(&m, items, failed, found.next_cursor, out);
}

/* --- garbage --- */

belay_rc op_gc(const struct op_call *call, json_t **out, struct belay_error *err)
{
    int64_t grace_ms = op_get(call, "grace")->number;
    const struct op_value *budget = op_get(call, "budget");
    const struct belay_gc_options options = {
        .size = sizeof(options),
        .dry_run = op_get(call, "dry_run") != NULL,
        .grace_ms = grace_ms == 0 ? BELAY_NONE : grace_ms,
        .budget_ms = budget ? budget->number : 0,
    };
    struct belay_gc_report report = { 0 };
    belay_rc rc = gc_run(call->belay->space, &options, &report, err);

    if (rc)
        return rc;
    json_t *result = op_json_gc(&report, options.dry_run);
    return op_finish(result, !result, out, err);
}

int op_exit_of_gc(const json_t *answer)
{
    static const struct {
        int outcome, status;
    } statuses[] = {
        { BELAY_GC_SWEPT, 0 },
        { BELAY_GC_NOTHING, 0 },
        { BELAY_GC_INCOMPLETE, 75 },
        { BELAY_GC_REFUSED, 1 },
    };
    const char *outcome = json_string_value(json_object_get(answer, "outcome"));

    for (size_t i = 0; outcome && i < COUNT_OF(statuses); i++) {
        if (strcmp(outcome, belay_gc_outcome_name(statuses[i].outcome)) == 0)
            return statuses[i].status;
    }
    return op_exit_of_code(answer);
}
