#include "store/schema.h"

#include <stddef.h>

#include "base/attr.h"

/* clang-format off */
static const struct column namespace_columns[] = {
    [NAMESPACE_NAME]          = { "name",          VALUE_TEXT, false },
    [NAMESPACE_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
    [NAMESPACE_STATE]         = { "state",         VALUE_TEXT, false },
};
const struct row_type row_namespace = {
    "namespace", 1, 1, NAMESPACE_COLUMNS, namespace_columns, false
};

static const struct column format_columns[] = {
    [FORMAT_FORMAT]     = { "format",     VALUE_I64, false },
    [FORMAT_MIN_READER] = { "min_reader", VALUE_I64, false },
    [FORMAT_MIN_WRITER] = { "min_writer", VALUE_I64, false },
};
const struct row_type row_format = { "format", 2, 0, FORMAT_COLUMNS, format_columns, false };

static const struct column epoch_columns[] = {
    [EPOCH_EPOCH]        = { "epoch",        VALUE_I64,  false },
    [EPOCH_RAISED_AT_MS] = { "raised_at_ms", VALUE_I64,  false },
    [EPOCH_REASON]       = { "reason",       VALUE_TEXT, false },
};
const struct row_type row_epoch = { "epoch", 3, 0, EPOCH_COLUMNS, epoch_columns, false };

static const struct column fence_floor_columns[] = {
    [FENCE_FLOOR_FLOOR] = { "floor", VALUE_I64, true },
};
const struct row_type row_fence_floor = {
    "fence_floor", 4, 0, FENCE_FLOOR_COLUMNS, fence_floor_columns, false
};

static const struct column clock_columns[] = {
    [CLOCK_MARK_MS] = { "mark_ms", VALUE_I64, true },
};
const struct row_type row_clock = { "clock", 5, 0, CLOCK_COLUMNS, clock_columns, true };

static const struct column slot_columns[] = {
    [SLOT_OWNER]         = { "owner",         VALUE_TEXT, false },
    [SLOT_N]             = { "n",             VALUE_I64,  false },
    [SLOT_ABORTED]       = { "aborted",       VALUE_I64,  false },
    [SLOT_TOUCHED_AT_MS] = { "touched_at_ms", VALUE_I64,  false },
};
const struct row_type row_slot = { "slot", 6, 1, SLOT_COLUMNS, slot_columns, true };

static const struct column upload_columns[] = {
    [UPLOAD_ID]            = { "id",            VALUE_TEXT, false },
    [UPLOAD_CHUNKS]        = { "chunks",        VALUE_I64,  false },
    [UPLOAD_STARTED_AT_MS] = { "started_at_ms", VALUE_I64,  false },
};
const struct row_type row_upload = { "upload", 7, 1, UPLOAD_COLUMNS, upload_columns, false };

static const struct column blob_columns[] = {
    [BLOB_SHA256]        = { "sha256",        VALUE_TEXT, false },
    [BLOB_UPLOAD]        = { "upload",        VALUE_TEXT, false },
    [BLOB_SIZE]          = { "size",          VALUE_I64,  false },
    [BLOB_CHUNKS]        = { "chunks",        VALUE_I64,  false },
    [BLOB_DESCRIPTOR]    = { "descriptor",    VALUE_JSON, false },
    [BLOB_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
};
const struct row_type row_blob = { "blob", 8, 1, BLOB_COLUMNS, blob_columns, false };

static const struct column audit_head_columns[] = {
    [AUDIT_HEAD_SEQ]  = { "seq",  VALUE_I64,  false },
    [AUDIT_HEAD_HASH] = { "hash", VALUE_TEXT, false },
};
const struct row_type row_audit_head = {
    "audit_head", 9, 0, AUDIT_HEAD_COLUMNS, audit_head_columns, false
};
/* clang-format on */

static const struct row_type *const belay_types[] = {
    &row_namespace, &row_format, &row_epoch, &row_fence_floor, &row_clock,
    &row_slot,      &row_upload, &row_blob,  &row_audit_head,
};

const struct schema schema_belay = {
    .types = belay_types,
    .n_types = COUNT_OF(belay_types),
};

static const char *column_fault(const struct row_type *type, unsigned i)
{
    const struct column *c = &type->columns[i];
    bool in_key = i < type->n_key;

    if (!c->name || c->type == VALUE_NULL)
        return "a column without a name or a type";
    if (c->counter && (in_key || c->type != VALUE_I64))
        return "a counter that is part of a key or no i64";
    if (in_key && c->type != VALUE_I64 && c->type != VALUE_TEXT)
        return "a key part that is neither i64 nor text";
    for (unsigned j = 0; j < i; j++) {
        if (strcmp(type->columns[j].name, c->name) == 0)
            return "two columns of one name";
    }
    return NULL;
}

static const char *type_fault(const struct row_type *type)
{
    if (type->n_columns == 0 || type->n_columns > SCHEMA_COLUMNS_MAX)
        return "a row type without columns, or with too many";
    if (type->n_key > SCHEMA_KEY_MAX || type->n_key > type->n_columns)
        return "a row type with too many key parts";
    for (unsigned i = 0; i < type->n_columns; i++) {
        const char *fault = column_fault(type, i);
        if (fault)
            return fault;
    }
    return NULL;
}

const char *schema_fault(const struct schema *s)
{
    for (size_t i = 0; i < s->n_types; i++) {
        const char *fault = type_fault(s->types[i]);
        if (fault)
            return fault;
        for (size_t j = 0; j < i; j++) {
            if (s->types[j]->id == s->types[i]->id)
                return "two row types of one id";
            if (strcmp(s->types[j]->name, s->types[i]->name) == 0)
                return "two row types of one name";
        }
    }
    return NULL;
}

static bool is_name_char(uint8_t c, bool first)
{
    bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    return alphanumeric || (!first && (c == '_' || c == '-'));
}

bool namespace_is_valid(struct bytes ns, bool system)
{
    if (system && bytes_eq(ns, bytes_str(SYSTEM_NAMESPACE)))
        return true;
    if (ns.len < 1 || ns.len > 63)
        return false;
    for (size_t i = 0; i < ns.len; i++) {
        if (!is_name_char(ns.ptr[i], i == 0))
            return false;
    }
    return true;
}
