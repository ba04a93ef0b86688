#include "store/schema_lease.h"

#include <stddef.h>

#include "base/attr.h"

/* clang-format off */
static const struct column namespace_columns[] = {
    [NAMESPACE_NAME]          = { "name",          VALUE_TEXT, false },
    [NAMESPACE_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
    [NAMESPACE_STATE]         = { "state",         VALUE_TEXT, false },
};
const struct row_type row_namespace = {
    "namespace", 1, 1, NAMESPACE_COLUMNS, namespace_columns, 0
};

static const struct column format_columns[] = {
    [FORMAT_FORMAT]     = { "format",     VALUE_I64, false },
    [FORMAT_MIN_READER] = { "min_reader", VALUE_I64, false },
    [FORMAT_MIN_WRITER] = { "min_writer", VALUE_I64, false },
};
const struct row_type row_format = { "format", 2, 0, FORMAT_COLUMNS, format_columns, 0 };

static const struct column epoch_columns[] = {
    [EPOCH_EPOCH]        = { "epoch",        VALUE_I64,  false },
    [EPOCH_RAISED_AT_MS] = { "raised_at_ms", VALUE_I64,  false },
    [EPOCH_REASON]       = { "reason",       VALUE_TEXT, false },
    [EPOCH_LIFE]         = { "life",         VALUE_TEXT, false },
};
const struct row_type row_epoch = { "epoch", 3, 0, EPOCH_COLUMNS, epoch_columns, 0 };

static const struct column fence_floor_columns[] = {
    [FENCE_FLOOR_FLOOR] = { "floor", VALUE_I64, true },
};
const struct row_type row_fence_floor = {
    "fence_floor", 4, 0, FENCE_FLOOR_COLUMNS, fence_floor_columns, 0
};

static const struct column clock_columns[] = {
    [CLOCK_MARK_MS] = { "mark_ms", VALUE_I64, true },
};
const struct row_type row_clock = { "clock", 5, 0, CLOCK_COLUMNS, clock_columns, ROW_INTERNAL };

static const struct column slot_columns[] = {
    [SLOT_OWNER]         = { "owner",         VALUE_TEXT, false },
    [SLOT_N]             = { "n",             VALUE_I64,  false },
    [SLOT_ABORTED]       = { "aborted",       VALUE_I64,  false },
    [SLOT_TOUCHED_AT_MS] = { "touched_at_ms", VALUE_I64,  false },
};
const struct row_type row_slot = { "slot", 6, 1, SLOT_COLUMNS, slot_columns, ROW_INTERNAL };

static const struct column upload_columns[] = {
    [UPLOAD_ID]            = { "id",            VALUE_TEXT, false },
    [UPLOAD_CHUNKS]        = { "chunks",        VALUE_I64,  false },
    [UPLOAD_STARTED_AT_MS] = { "started_at_ms", VALUE_I64,  false },
};
const struct row_type row_upload = { "upload", 7, 1, UPLOAD_COLUMNS, upload_columns, 0 };

static const struct column blob_columns[] = {
    [BLOB_SHA256]        = { "sha256",        VALUE_TEXT, false },
    [BLOB_UPLOAD]        = { "upload",        VALUE_TEXT, false },
    [BLOB_SIZE]          = { "size",          VALUE_I64,  false },
    [BLOB_CHUNKS]        = { "chunks",        VALUE_I64,  false },
    [BLOB_DESCRIPTOR]    = { "descriptor",    VALUE_JSON, false },
    [BLOB_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
    [BLOB_TOUCHED_AT_MS] = { "touched_at_ms", VALUE_I64,  false },
    [BLOB_COMPRESSION]   = { "compression",   VALUE_TEXT, false },
    [BLOB_STORED_SIZE]   = { "stored_size",   VALUE_I64,  false },
};
const struct row_type row_blob = { "blob", 8, 1, BLOB_COLUMNS, blob_columns, 0 };

static const struct column audit_head_columns[] = {
    [AUDIT_HEAD_SEQ]  = { "seq",  VALUE_I64,  false },
    [AUDIT_HEAD_HASH] = { "hash", VALUE_TEXT, false },
};
const struct row_type row_audit_head = {
    "audit_head", 9, 0, AUDIT_HEAD_COLUMNS, audit_head_columns, 0
};

static const struct column pin_columns[] = {
    [PIN_NAME]          = { "name",          VALUE_TEXT, false },
    [PIN_SHA256]        = { "sha256",        VALUE_TEXT, false },
    [PIN_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
};
const struct row_type row_pin = {
    "pin", 10, 1, PIN_COLUMNS, pin_columns, 0
};

static const struct column inbox_columns[] = {
    [INBOX_SESSION]  = { "session",  VALUE_TEXT, false },
    [INBOX_LAST_SEQ] = { "last_seq", VALUE_I64,  false },
    [INBOX_AT_VER]   = { "at_ver",   VALUE_I64,  false },
    [INBOX_STATE]    = { "state",    VALUE_TEXT, false },
};
const struct row_type row_inbox = {
    "inbox", 11, 1, INBOX_COLUMNS, inbox_columns, 0
};

static const struct column inbox_front_columns[] = {
    [INBOX_FRONT_SESSION]   = { "session",   VALUE_TEXT, false },
    [INBOX_FRONT_FIRST_SEQ] = { "first_seq", VALUE_I64,  false },
    [INBOX_FRONT_GONE]      = { "gone",      VALUE_I64,  false },
    [INBOX_FRONT_LAST_GONE] = { "last_gone", VALUE_I64,  false },
    [INBOX_FRONT_CHANGES]   = { "changes",   VALUE_I64,  false },
    [INBOX_FRONT_STATE]     = { "state",     VALUE_TEXT, false },
};
const struct row_type row_inbox_front = {
    "inbox_front", 46, 1, INBOX_FRONT_COLUMNS, inbox_front_columns, false
};

static const struct column batch_columns[] = {
    [BATCH_SESSION]         = { "session",         VALUE_TEXT, false },
    [BATCH_SEQ]             = { "seq",             VALUE_I64,  false },
    [BATCH_ID]              = { "batch_id",        VALUE_TEXT, false },
    [BATCH_SOURCE_KEY]      = { "source_key",      VALUE_TEXT, false },
    [BATCH_DELIVERY]        = { "delivery",        VALUE_TEXT, false },
    [BATCH_SLOT]            = { "slot",            VALUE_TEXT, false },
    [BATCH_MERGE_KEY]       = { "merge_key",       VALUE_JSON, false },
    [BATCH_AVAILABLE_AT_MS] = { "available_at_ms", VALUE_I64,  false },
    [BATCH_ENQUEUED_AT_MS]  = { "enqueued_at_ms",  VALUE_I64,  false },
    [BATCH_DUE_AT_MS]       = { "due_at_ms",       VALUE_I64,  false },
    [BATCH_CLAIM_ID]        = { "claim_id",        VALUE_TEXT, false },
    [BATCH_CLAIM_SIZE]      = { "claim_size",      VALUE_I64,  false },
    [BATCH_ITEMS]           = { "items",           VALUE_JSON, false },
    LEASE_AT(BATCH_LEASE)
    [BATCH_WAKE]            = { "wake",            VALUE_TEXT, false },
};
const struct row_type row_batch = {
    "batch", 12, 2, BATCH_COLUMNS, batch_columns, ROW_LEASED
};

static const struct column batch_payload_columns[] = {
    [PAYLOAD_SESSION] = { "session", VALUE_TEXT, false },
    [PAYLOAD_SEQ]     = { "seq",     VALUE_I64,  false },
    [PAYLOAD_ITEMS]   = { "items",   VALUE_JSON, false },
};
const struct row_type row_batch_payload = {
    "batch_payload", 13, 2, PAYLOAD_COLUMNS, batch_payload_columns, 0
};

static const struct column batch_name_columns[] = {
    [BATCH_NAME_SESSION] = { "session",  VALUE_TEXT, false },
    [BATCH_NAME_ID]      = { "batch_id", VALUE_TEXT, false },
    [BATCH_NAME_SEQ]     = { "seq",      VALUE_I64,  false },
};
const struct row_type row_batch_name = {
    "batch_name", 14, 2, BATCH_NAME_COLUMNS, batch_name_columns, 0
};

static const struct column batch_source_columns[] = {
    [BATCH_SOURCE_SESSION] = { "session",    VALUE_TEXT, false },
    [BATCH_SOURCE_NAME]    = { "source_key", VALUE_TEXT, false },
    [BATCH_SOURCE_SEQ]     = { "seq",        VALUE_I64,  false },
};
const struct row_type row_batch_source = {
    "batch_source", 15, 2, BATCH_SOURCE_COLUMNS, batch_source_columns, 0
};

static const struct column session_columns[] = {
    [SESSION_ID]            = { "session",       VALUE_TEXT, false },
    [SESSION_STATE]         = { "state",         VALUE_TEXT, false },
    [SESSION_REVISION]      = { "revision",      VALUE_I64,  false },
    [SESSION_LEAF]          = { "leaf",          VALUE_TEXT, false },
    [SESSION_NODE_COUNT]    = { "node_count",    VALUE_I64,  false },
    [SESSION_FIRST_SEQ]     = { "first_seq",     VALUE_I64,  false },
    [SESSION_LAST_SEQ]      = { "last_seq",      VALUE_I64,  false },
    [SESSION_FRAME]         = { "frame",         VALUE_TEXT, false },
    [SESSION_CHECKPOINT]    = { "checkpoint",    VALUE_TEXT, false },
    [SESSION_TOOL_REF]      = { "tool_ref",      VALUE_TEXT, false },
    [SESSION_PLUGIN_REF]    = { "plugin_ref",    VALUE_TEXT, false },
    [SESSION_EXECUTION_REF] = { "execution_ref", VALUE_TEXT, false },
    [SESSION_CREATED_AT_MS] = { "created_at_ms", VALUE_I64,  false },
    [SESSION_UPDATED_AT_MS] = { "updated_at_ms", VALUE_I64,  false },
};
const struct row_type row_session = {
    "session", 16, 1, SESSION_COLUMNS, session_columns, 0
};

static const struct column session_frames_columns[] = {
    [FRAMES_SESSION] = { "session", VALUE_TEXT, false },
    [FRAMES_CONFIG]  = { "config",  VALUE_JSON, false },
    [FRAMES_FRAMES]  = { "frames",  VALUE_JSON, false },
};
const struct row_type row_session_frames = {
    "session_frames", 17, 1, FRAMES_COLUMNS, session_frames_columns, 0
};

static const struct column turn_columns[] = {
    [TURN_SESSION]  = { "session",  VALUE_TEXT, false },
    [TURN_ID]       = { "turn_id",  VALUE_TEXT, false },
    [TURN_HASH]     = { "hash",     VALUE_TEXT, false },
    [TURN_REVISION] = { "revision", VALUE_I64,  false },
};
const struct row_type row_turn = {
    "turn", 18, 2, TURN_COLUMNS, turn_columns, 0
};

static const struct column node_columns[] = {
    [NODE_SESSION]          = { "session",          VALUE_TEXT, false },
    [NODE_SEQ]              = { "seq",              VALUE_I64,  false },
    [NODE_ID]               = { "node_id",          VALUE_TEXT, false },
    [NODE_PARENT_SEQ]       = { "parent_seq",       VALUE_I64,  false },
    [NODE_JSON]             = { "node",             VALUE_JSON, false },
    [NODE_TOMBSTONED_AT_MS] = { "tombstoned_at_ms", VALUE_I64,  false },
};
const struct row_type row_node = {
    "node", 19, 2, NODE_COLUMNS, node_columns, 0
};

static const struct column node_name_columns[] = {
    [NODE_NAME_SESSION] = { "session", VALUE_TEXT, false },
    [NODE_NAME_ID]      = { "node_id", VALUE_TEXT, false },
    [NODE_NAME_SEQ]     = { "seq",     VALUE_I64,  false },
    [NODE_NAME_HIDDEN]  = { "hidden",  VALUE_I64,  false },
};
const struct row_type row_node_name = {
    "node_name", 20, 2, NODE_NAME_COLUMNS, node_name_columns, 0
};

static const struct column session_usage_columns[] = {
    [USAGE_SESSION] = { "session", VALUE_TEXT, false },
    [USAGE_LEDGER]  = { "ledger",  VALUE_JSON, false },
};
const struct row_type row_session_usage = {
    "session_usage", 21, 1, USAGE_COLUMNS, session_usage_columns, 0
};

static const struct column usage_seen_columns[] = {
    [USAGE_SEEN_SESSION] = { "session",  VALUE_TEXT, false },
    [USAGE_SEEN_ID]      = { "usage_id", VALUE_TEXT, false },
    [USAGE_SEEN_HASH]    = { "hash",     VALUE_TEXT, false },
};
const struct row_type row_usage_seen = {
    "usage_seen", 22, 2, USAGE_SEEN_COLUMNS, usage_seen_columns, 0
};

static const struct column session_meta_columns[] = {
    [META_SESSION]     = { "session",     VALUE_TEXT, false },
    [META_NAME]        = { "name",        VALUE_TEXT, false },
    [META_CREATED_AT]  = { "created_at",  VALUE_TEXT, false },
    [META_MODEL]       = { "model",       VALUE_TEXT, false },
    [META_CWD]         = { "cwd",         VALUE_TEXT, false },
    [META_PARENT]      = { "parent",      VALUE_TEXT, false },
    [META_CAUSED_BY]   = { "caused_by",   VALUE_JSON, false },
    [META_SAVED_AT_MS] = { "saved_at_ms", VALUE_I64,  false },
};
const struct row_type row_session_meta = {
    "session_meta", 23, 1, META_COLUMNS, session_meta_columns, 0
};

static const struct column attachment_columns[] = {
    [ATTACHMENT_SESSION]         = { "session",         VALUE_TEXT, false },
    [ATTACHMENT_ID]              = { "attachment_id",   VALUE_TEXT, false },
    [ATTACHMENT_URI]             = { "uri",             VALUE_TEXT, false },
    [ATTACHMENT_INTENT_AT_MS]    = { "intent_at_ms",    VALUE_I64,  false },
    [ATTACHMENT_COMMITTED_AT_MS] = { "committed_at_ms", VALUE_I64,  false },
};
const struct row_type row_attachment = {
    "attachment", 24, 2, ATTACHMENT_COLUMNS, attachment_columns, 0
};
static const struct column execution_columns[] = {
    [EXEC_ID]             = { "id",                    VALUE_TEXT,  false },
    [EXEC_STATE]          = { "state",                 VALUE_TEXT,  false },
    [EXEC_PHASE]          = { "phase",                 VALUE_TEXT,  false },
    [EXEC_OWNERSHIP]      = { "ownership",             VALUE_TEXT,  false },
    [EXEC_ELIGIBILITY]    = { "eligibility",           VALUE_TEXT,  false },
    [EXEC_BLOCKING]       = { "blocking_reason",       VALUE_TEXT,  false },
    [EXEC_OUTCOME]        = { "outcome",               VALUE_TEXT,  false },
    [EXEC_ATTEMPT_STATE]  = { "attempt_state",         VALUE_TEXT,  false },
    [EXEC_RANK]           = { "rank",                  VALUE_I64,   false },
    [EXEC_UPDATED_AT_MS]  = { "updated_at_ms",         VALUE_I64,   false },
    [EXEC_FINISHED_AT_MS] = { "finished_at_ms",        VALUE_I64,   false },
    [EXEC_STARTED_AT_MS]  = { "started_at_ms",         VALUE_I64,   false },
    [EXEC_ATTEMPT_AT_MS]  = { "attempt_at_ms",         VALUE_I64,   false },
    [EXEC_ATTEMPTS]       = { "attempts",              VALUE_I64,   false },
    [EXEC_ATTEMPT_TYPE]   = { "attempt_type",          VALUE_TEXT,  false },
    LEASE_AT(EXEC_LEASE)
    [EXEC_TIMEOUT_AT_MS]  = { "timeout_at_ms",         VALUE_I64,   false },
    [EXEC_LOST_AT_MS]     = { "lost_at_ms",            VALUE_I64,   false },
    [EXEC_DELAY_UNTIL_MS] = { "delay_until_ms",        VALUE_I64,   false },
    [EXEC_RETRIES]        = { "retries",               VALUE_I64,   false },
    [EXEC_RECLAIMS]       = { "reclaims",              VALUE_I64,   false },
    [EXEC_REPLAYS]        = { "replays",               VALUE_I64,   false },
    [EXEC_GRANT_UNTIL_MS] = { "grant_until_ms",        VALUE_I64,   false },
    [EXEC_GRANT]          = { "grant_id",              VALUE_TEXT,  false },
    [EXEC_GRANT_WORKER]   = { "grant_worker",          VALUE_TEXT,  false },
    [EXEC_DETAIL]         = { "detail",                VALUE_TEXT,  false },
    [EXEC_SUSPENSION]     = { "suspension",            VALUE_TEXT,  false },
    [EXEC_WAITPOINT]      = { "waitpoint",             VALUE_TEXT,  false },
    [EXEC_PRIORITY]       = { "priority",              VALUE_I64,   false },
    [EXEC_DEADLINE_AT_MS] = { "deadline_at_ms",        VALUE_I64,   false },
    [EXEC_RETENTION_MS]   = { "retention_ms",          VALUE_I64,   false },
    [EXEC_CREATED_AT_MS]  = { "created_at_ms",         VALUE_I64,   false },
    [EXEC_LANE]           = { "lane",                  VALUE_TEXT,  false },
    [EXEC_ROUTE]          = { "route",                 VALUE_TEXT,  false },
    [EXEC_SESSION]        = { "session",               VALUE_TEXT,  false },
    [EXEC_PROCESS]        = { "process",               VALUE_TEXT,  false },
    [EXEC_PROCESS_EVENT]  = { "process_event",         VALUE_TEXT,  false },
    [EXEC_FLOW]           = { "flow",                  VALUE_TEXT,  false },
};
const struct row_type row_execution = {
    "execution", 25, 1, EXEC_COLUMNS, execution_columns, ROW_WORKED
};

static const struct column execution_spec_columns[] = {
    [SPEC_ID]           = { "id",                    VALUE_TEXT,  false },
    [SPEC_KIND]         = { "kind",                  VALUE_TEXT,  false },
    [SPEC_PAYLOAD]      = { "payload",               VALUE_BYTES, false },
    [SPEC_PAYLOAD_BLOB] = { "payload_blob",          VALUE_TEXT,  false },
    [SPEC_ENCODING]     = { "encoding",              VALUE_TEXT,  false },
    [SPEC_POLICY]       = { "policy",                VALUE_JSON,  false },
    [SPEC_REQUIRES]     = { "requires",              VALUE_TEXT,  false },
    [SPEC_TAGS]         = { "tags",                  VALUE_JSON,  false },
    [SPEC_CREATOR]      = { "creator",               VALUE_TEXT,  false },
    [SPEC_TRACE]        = { "trace",                 VALUE_JSON,  false },
    [SPEC_KEY]          = { "key",                   VALUE_TEXT,  false },
};
const struct row_type row_execution_spec = {
    "execution_spec", 26, 1, SPEC_COLUMNS, execution_spec_columns, 0
};

static const struct column execution_end_columns[] = {
    [END_ID]              = { "id",                    VALUE_TEXT,  false },
    [END_FENCE]           = { "fence",                 VALUE_I64,   false },
    [END_RESULT]          = { "result",                VALUE_BYTES, false },
    [END_RESULT_BLOB]     = { "result_blob",           VALUE_TEXT,  false },
    [END_ENCODING]        = { "encoding",              VALUE_TEXT,  false },
    [END_FAILURE_CLASS]   = { "failure_class",         VALUE_TEXT,  false },
    [END_FAILURE_MESSAGE] = { "failure_message",       VALUE_TEXT,  false },
    [END_FAILURE_DETAIL]  = { "failure_detail",        VALUE_BYTES, false },
    [END_CANCEL_REASON]   = { "cancel_reason",         VALUE_TEXT,  false },
    [END_CANCEL_SOURCE]   = { "cancel_source",         VALUE_TEXT,  false },
};
const struct row_type row_execution_end = {
    "execution_end", 27, 1, END_COLUMNS, execution_end_columns, 0
};

static const struct column execution_progress_columns[] = {
    [PROGRESS_ID]      = { "id",                    VALUE_TEXT,  false },
    [PROGRESS_FENCE]   = { "fence",                 VALUE_I64,   false },
    [PROGRESS_PERCENT] = { "percent",               VALUE_I64,   false },
    [PROGRESS_MESSAGE] = { "message",               VALUE_TEXT,  false },
    [PROGRESS_AT_MS]   = { "at_ms",                 VALUE_I64,   false },
};
const struct row_type row_execution_progress = {
    "execution_progress", 28, 1, PROGRESS_COLUMNS, execution_progress_columns, 0
};

static const struct column attempt_columns[] = {
    [ATTEMPT_EXECUTION]       = { "execution",             VALUE_TEXT,  false },
    [ATTEMPT_INDEX]           = { "attempt",               VALUE_I64,   false },
    [ATTEMPT_ID]              = { "attempt_id",            VALUE_TEXT,  false },
    [ATTEMPT_TYPE]            = { "type",                  VALUE_TEXT,  false },
    [ATTEMPT_END]             = { "ended_as",              VALUE_TEXT,  false },
    [ATTEMPT_WORKER]          = { "worker",                VALUE_TEXT,  false },
    [ATTEMPT_FENCE]           = { "fence",                 VALUE_I64,   false },
    [ATTEMPT_STARTED_AT_MS]   = { "started_at_ms",         VALUE_I64,   false },
    [ATTEMPT_ENDED_AT_MS]     = { "ended_at_ms",           VALUE_I64,   false },
    [ATTEMPT_CLOSED_REASON]   = { "closed_reason",         VALUE_TEXT,  false },
    [ATTEMPT_FAILURE_CLASS]   = { "failure_class",         VALUE_TEXT,  false },
    [ATTEMPT_FAILURE_MESSAGE] = { "failure_message",       VALUE_TEXT,  false },
};
const struct row_type row_attempt = {
    "attempt", 29, 2, ATTEMPT_COLUMNS, attempt_columns, 0
};

static const struct column frame_head_columns[] = {
    [FRAME_HEAD_EXECUTION]  = { "execution",             VALUE_TEXT,  false },
    [FRAME_HEAD_ATTEMPT]    = { "attempt",               VALUE_I64,   false },
    [FRAME_HEAD_LAST_SEQ]   = { "last_seq",              VALUE_I64,   false },
    [FRAME_HEAD_FIRST_SEQ]  = { "first_seq",             VALUE_I64,   false },
    [FRAME_HEAD_CALLER_SEQ] = { "caller_seq",            VALUE_I64,   false },
    [FRAME_HEAD_BYTES]      = { "bytes",                 VALUE_I64,   false },
    [FRAME_HEAD_LAST_AT_MS] = { "last_at_ms",            VALUE_I64,   false },
};
const struct row_type row_frame_head = {
    "frame_head", 30, 2, FRAME_HEAD_COLUMNS, frame_head_columns, 0
};

static const struct column execution_key_columns[] = {
    [EXEC_KEY_KEY]       = { "key",                   VALUE_TEXT,  false },
    [EXEC_KEY_EXECUTION] = { "execution",             VALUE_TEXT,  false },
    [EXEC_KEY_HASH]      = { "hash",                  VALUE_TEXT,  false },
    [EXEC_KEY_UNTIL_MS]  = { "until_ms",              VALUE_I64,   false },
};
const struct row_type row_execution_key = {
    "execution_key", 31, 1, EXEC_KEY_COLUMNS, execution_key_columns, 0
};

static const struct column execution_grant_columns[] = {
    [GRANT_ID]        = { "id",                    VALUE_TEXT,  false },
    [GRANT_EXECUTION] = { "execution",             VALUE_TEXT,  false },
    [GRANT_WORKER]    = { "worker",                VALUE_TEXT,  false },
    [GRANT_UNTIL_MS]  = { "until_ms",              VALUE_I64,   false },
};
const struct row_type row_execution_grant = {
    "execution_grant", 32, 1, GRANT_COLUMNS, execution_grant_columns, 0
};

static const struct column lane_columns[] = {
    [LANE_LANE]          = { "lane",                  VALUE_TEXT,  false },
    [LANE_STATE]         = { "state",                 VALUE_TEXT,  false },
    [LANE_CREATED_AT_MS] = { "created_at_ms",         VALUE_I64,   false },
    [LANE_RETENTION_MS]  = { "retention_ms",          VALUE_I64,   false },
};
const struct row_type row_lane = {
    "lane", 33, 1, LANE_COLUMNS, lane_columns, 0
};

static const struct column route_columns[] = {
    [ROUTE_LANE]     = { "lane",                  VALUE_TEXT,  false },
    [ROUTE_ROUTE]    = { "route",                 VALUE_TEXT,  false },
    [ROUTE_REQUIRES] = { "requires",              VALUE_TEXT,  false },
};
const struct row_type row_route = {
    "route", 34, 2, ROUTE_COLUMNS, route_columns, 0
};

static const struct column timer_columns[] = { LEASE_AT(TIMER_LEASE) };
const struct row_type row_timer = {
    "timer", 35, 0, TIMER_COLUMNS, timer_columns, ROW_LEASED
};
/* clang-format on */

static const struct row_type *const belay_types[] = {
    &row_namespace,
    &row_format,
    &row_epoch,
    &row_fence_floor,
    &row_clock,
    &row_slot,
    &row_upload,
    &row_blob,
    &row_audit_head,
    &row_pin,
    &row_inbox,
    &row_inbox_front,
    &row_batch,
    &row_batch_payload,
    &row_batch_name,
    &row_batch_source,
    &row_session,
    &row_session_frames,
    &row_turn,
    &row_node,
    &row_node_name,
    &row_session_usage,
    &row_usage_seen,
    &row_session_meta,
    &row_attachment,
    &row_execution,
    &row_execution_spec,
    &row_execution_end,
    &row_execution_progress,
    &row_attempt,
    &row_frame_head,
    &row_execution_key,
    &row_execution_grant,
    &row_lane,
    &row_route,
    &row_timer,
    &row_process,
    &row_process_spec,
    &row_process_ref,
    &row_process_end,
    &row_process_key,
    &row_process_payload,
    &row_process_wake,
    &row_wake_target,
    &row_handle_grant,
    &row_grant_count,
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
