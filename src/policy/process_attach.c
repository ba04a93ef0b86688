/* What hangs on a process: where it lives elsewhere, what a grant is called. */
#include "policy/members.h"
#include "policy/registration.h"

belay_rc external_ref_read(const json_t *value, struct external_ref *out,
                           struct belay_error *err)
{
    const json_t *backend = NULL, *id = NULL, *metadata = NULL;
    const struct member table[] = { { "backend", &backend },
                                    { "id", &id },
                                    { "metadata", &metadata } };
    belay_rc rc = members_read(value, table, COUNT_OF(table), "external_ref",
                               "external_ref", err);

    if (rc != BELAY_OK)
        return rc;
    if (!bytes_is_id(json_bytes(backend), EXTERNAL_TEXT_MAX) ||
        !bytes_is_id(json_bytes(id), EXTERNAL_TEXT_MAX))
        return err_reason(err, BELAY_INVALID, "external_ref",
                          "external_ref: backend and id are strings of 1 to %d bytes "
                          "without control characters",
                          EXTERNAL_TEXT_MAX);
    *out = (struct external_ref){ json_bytes(backend), json_bytes(id), metadata };
    return BELAY_OK;
}

belay_rc external_ref_write(const struct external_ref *r, struct buf *out,
                            struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    buf_append_str(out, "{\"backend\":");
    json_append_string(out, r->backend);
    buf_append_str(out, ",\"id\":");
    json_append_string(out, r->id);
    if (r->metadata) {
        buf_append_str(out, ",\"metadata\":");
        rc = json_write(r->metadata, out, err);
    }
    buf_append_char(out, '}');
    return rc == BELAY_OK && out->failed ? err_no_memory(err, "an external ref") : rc;
}

static bool is_label(const json_t *value)
{
    return !value ||
           (json_is_string(value) && json_string_length(value) <= DESCRIPTOR_TEXT_MAX);
}

belay_rc handle_descriptor_read(const json_t *value, struct handle_descriptor *out,
                                struct belay_error *err)
{
    const json_t *kind = NULL, *label = NULL;
    const struct member table[] = { { "kind", &kind }, { "label", &label } };
    belay_rc rc =
        members_read(value, table, COUNT_OF(table), "descriptor", "descriptor", err);

    if (rc != BELAY_OK)
        return rc;
    if (!is_label(kind) || !is_label(label))
        return err_reason(err, BELAY_INVALID, "descriptor",
                          "descriptor: kind and label are strings of at most %d bytes",
                          DESCRIPTOR_TEXT_MAX);
    *out = (struct handle_descriptor){ json_bytes(kind), json_bytes(label) };
    return BELAY_OK;
}

void handle_descriptor_write(const struct handle_descriptor *d, struct buf *out)
{
    buf_append_char(out, '{');
    if (d->kind.ptr) {
        buf_append_str(out, "\"kind\":");
        json_append_string(out, d->kind);
    }
    if (d->kind.ptr && d->label.ptr)
        buf_append_char(out, ',');
    if (d->label.ptr) {
        buf_append_str(out, "\"label\":");
        json_append_string(out, d->label);
    }
    buf_append_char(out, '}');
}
