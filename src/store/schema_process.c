/* Processes, their wakes and who may see them: see schema.h. */
#include "store/schema_lease.h"

/* clang-format off */
static const struct column process_columns[] = {
    [PROCESS_ID]             = { "id",                VALUE_TEXT, false },
    [PROCESS_HASH]           = { "registration_hash", VALUE_TEXT, false },
    [PROCESS_STATUS]         = { "status",            VALUE_TEXT, false },
    [PROCESS_FIRST_SEQ]      = { "first_seq",         VALUE_I64,  false },
    [PROCESS_LAST_SEQ]       = { "last_seq",          VALUE_I64,  false },
    [PROCESS_TERMINAL_SEQ]   = { "terminal_seq",      VALUE_I64,  false },
    [PROCESS_CREATED_AT_MS]  = { "created_at_ms",     VALUE_I64,  false },
    [PROCESS_UPDATED_AT_MS]  = { "updated_at_ms",     VALUE_I64,  false },
    [PROCESS_FINISHED_AT_MS] = { "finished_at_ms",    VALUE_I64,  false },
    [PROCESS_RETENTION_MS]   = { "retention_ms",      VALUE_I64,  false },
    [PROCESS_PURGE_AT_MS]    = { "purge_at_ms",       VALUE_I64,  false },
    LEASE_AT(PROCESS_LEASE)
};
const struct row_type row_process = {
    "process", 36, 1, PROCESS_COLUMNS, process_columns, ROW_LEASED
};

static const struct column process_spec_columns[] = {
    [PROCESS_SPEC_ID]            = { "id",                VALUE_TEXT, false },
    [PROCESS_SPEC_HASH]          = { "registration_hash", VALUE_TEXT, false },
    [PROCESS_SPEC_KIND]          = { "kind",              VALUE_TEXT, false },
    [PROCESS_SPEC_INPUT]         = { "input",             VALUE_JSON, false },
    [PROCESS_SPEC_EVENT_TYPES]   = { "event_types",       VALUE_JSON, false },
    [PROCESS_SPEC_OWNER_SESSION] = { "owner_session",     VALUE_TEXT, false },
    [PROCESS_SPEC_OWNER_FRAME]   = { "owner_frame",       VALUE_TEXT, false },
    [PROCESS_SPEC_HOST_PROFILE]  = { "host_profile_id",   VALUE_TEXT, false },
    [PROCESS_SPEC_CAUSED_BY]     = { "caused_by",         VALUE_JSON, false },
    [PROCESS_SPEC_CREATED_AT_MS] = { "created_at_ms",     VALUE_I64,  false },
};
const struct row_type row_process_spec = {
    "process_spec", 37, 1, PROCESS_SPEC_COLUMNS, process_spec_columns, 0
};

static const struct column process_ref_columns[] = {
    [PROCESS_REF_ID]    = { "id",           VALUE_TEXT, false },
    [PROCESS_REF_REF]   = { "external_ref", VALUE_JSON, false },
    [PROCESS_REF_AT_MS] = { "at_ms",        VALUE_I64,  false },
};
const struct row_type row_process_ref = {
    "process_ref", 38, 1, PROCESS_REF_COLUMNS, process_ref_columns, 0
};

static const struct column process_end_columns[] = {
    [PROCESS_END_ID]     = { "id",           VALUE_TEXT, false },
    [PROCESS_END_OUTPUT] = { "await_output", VALUE_JSON, false },
};
const struct row_type row_process_end = {
    "process_end", 39, 1, PROCESS_END_COLUMNS, process_end_columns, 0
};

static const struct column process_key_columns[] = {
    [PROCESS_KEY_PROCESS] = { "process",      VALUE_TEXT, false },
    [PROCESS_KEY_KEY]     = { "key",          VALUE_TEXT, false },
    [PROCESS_KEY_SEQ]     = { "seq",          VALUE_I64,  false },
    [PROCESS_KEY_HASH]    = { "payload_hash", VALUE_TEXT, false },
};
const struct row_type row_process_key = {
    "process_key", 40, 2, PROCESS_KEY_COLUMNS, process_key_columns, 0
};

static const struct column process_payload_columns[] = {
    [PROCESS_PAYLOAD_PROCESS] = { "process", VALUE_TEXT, false },
    [PROCESS_PAYLOAD_SEQ]     = { "seq",     VALUE_I64,  false },
    [PROCESS_PAYLOAD_PAYLOAD] = { "payload", VALUE_JSON, false },
};
const struct row_type row_process_payload = {
    "process_payload", 41, 2, PROCESS_PAYLOAD_COLUMNS, process_payload_columns, 0
};

static const struct column process_wake_columns[] = {
    [WAKE_PROCESS]       = { "process",       VALUE_TEXT, false },
    [WAKE_SEQ]           = { "seq",           VALUE_I64,  false },
    [WAKE_ID]            = { "wake_id",       VALUE_TEXT, false },
    [WAKE_STATE]         = { "state",         VALUE_TEXT, false },
    [WAKE_SESSION]       = { "session",       VALUE_TEXT, false },
    [WAKE_FRAME]         = { "frame",         VALUE_TEXT, false },
    [WAKE_ENQUEUE_SEQ]   = { "enqueue_seq",   VALUE_I64,  false },
    [WAKE_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
    [WAKE_SETTLED_AT_MS] = { "settled_at_ms", VALUE_I64,  false },
};
const struct row_type row_process_wake = {
    "process_wake", 42, 2, WAKE_COLUMNS, process_wake_columns, 0
};

static const struct column wake_target_columns[] = {
    [WAKE_TARGET_SESSION] = { "session", VALUE_TEXT, false },
    [WAKE_TARGET_WAKE]    = { "wake_id", VALUE_TEXT, false },
    [WAKE_TARGET_PROCESS] = { "process", VALUE_TEXT, false },
    [WAKE_TARGET_SEQ]     = { "seq",     VALUE_I64,  false },
};
const struct row_type row_wake_target = {
    "wake_target", 43, 2, WAKE_TARGET_COLUMNS, wake_target_columns, 0
};

static const struct column handle_grant_columns[] = {
    [HANDLE_GRANT_SESSION] = { "session", VALUE_TEXT, false },
    [HANDLE_GRANT_FRAME]   = { "frame",   VALUE_TEXT, false },
    [HANDLE_GRANT_PROCESS] = { "process", VALUE_TEXT, false },
    [HANDLE_GRANT_KIND]    = { "kind",    VALUE_TEXT, false },
    [HANDLE_GRANT_LABEL]   = { "label",   VALUE_TEXT, false },
    [HANDLE_GRANT_AT_MS]   = { "at_ms",   VALUE_I64,  false },
};
const struct row_type row_handle_grant = {
    "handle_grant", 44, 3, HANDLE_GRANT_COLUMNS, handle_grant_columns, 0
};

static const struct column grant_count_columns[] = {
    [GRANT_COUNT_NOUN]      = { "noun",      VALUE_TEXT, false },
    [GRANT_COUNT_ID]      = { "id",      VALUE_TEXT, false },
    [GRANT_COUNT_N]       = { "n",       VALUE_I64,  false },
    [GRANT_COUNT_CHANGES] = { "changes", VALUE_I64,  false },
};
const struct row_type row_grant_count = {
    "grant_count", 45, 2, GRANT_COUNT_COLUMNS, grant_count_columns, 0
};
/* clang-format on */
