/* schema.h - the data dictionary: every row type, declared once.
 *
 * Drivers derive tables, statements and key layouts from these declarations; a new
 * column is one line in schema.c.  The namespace is the first part of every key and is
 * not declared.
 *
 * A column is a put column or a counter, for ever.  Counters change by txn_add and
 * txn_raise, which neither need a guard nor bump the row's version; put never writes
 * them.  Columns that change often and payloads never share a row type.
 */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "store/value.h"

/* A row type has at most this many columns, and keys of at most this many parts. */
#define SCHEMA_COLUMNS_MAX 64
#define SCHEMA_KEY_MAX 4

/* Bytes in one key part, one rank index, one member, one stream name, one topic. */
#define SCHEMA_NAME_MAX 1024

/* The stored format, and the oldest programs that may read and write it. */
#define SCHEMA_FORMAT 4
#define SCHEMA_MIN_READER 4
#define SCHEMA_MIN_WRITER 4
/* The oldest format that this program still reads.  1: an inbox had one row.  2: a batch had a
 * time, 0, where it has none.  3: the back of an inbox had its last sequence and no more. */
#define SCHEMA_OLDEST 4

struct column {
    const char *name;
    enum value_kind type; /* never VALUE_NULL; key columns: I64 or TEXT */
    bool counter;         /* type VALUE_I64, NULL counts as 0 */
};

/* What a store may know of rows besides their columns. */
enum row_trait {
    ROW_INTERNAL = 1, /* the store's own bookkeeping: not part of a dump */
    ROW_LEASED = 2,   /* written again soon after it came, when it is claimed */
    ROW_WORKED = 4,   /* twice: it is claimed, and when that has ended it stays */
};

struct row_type {
    const char *name; /* table belay_<name> */
    uint16_t id;      /* unique in its schema; memory layout only, never stored */
    uint16_t n_key;   /* leading columns that are the key; 0 = one row per namespace */
    uint16_t n_columns;
    const struct column *columns;
    uint8_t traits; /* enum row_trait */
};

struct schema {
    const struct row_type *const *types;
    size_t n_types;
};

static inline bool row_type_is(const struct row_type *type, enum row_trait trait)
{
    return (type->traits & trait) != 0;
}

/* The product's dictionary. */
extern const struct schema schema_belay;

/* The registry of namespaces; lives in the namespace SYSTEM_NAMESPACE only. */
#define SYSTEM_NAMESPACE "_belay"
#define NAMESPACE_INDEX "namespaces" /* rank 0, member = name */
#define NAMESPACE_ACTIVE "active"    /* what `state` says; NULL counts as active */
#define NAMESPACE_DELETING "deleting"
enum { NAMESPACE_NAME, NAMESPACE_CREATED_AT_MS, NAMESPACE_STATE, NAMESPACE_COLUMNS };
extern const struct row_type row_namespace;

/* One row of each of these in every namespace. */
enum { FORMAT_FORMAT, FORMAT_MIN_READER, FORMAT_MIN_WRITER, FORMAT_COLUMNS };
extern const struct row_type row_format;
enum {
    EPOCH_EPOCH,
    EPOCH_RAISED_AT_MS,
    EPOCH_REASON,
    EPOCH_LIFE, /* of the server, as it was known then; NULL: it has one */
    EPOCH_COLUMNS
};
extern const struct row_type row_epoch;
enum { FENCE_FLOOR_FLOOR, FENCE_FLOOR_COLUMNS }; /* a counter: it is only raised */
extern const struct row_type row_fence_floor;
enum { CLOCK_MARK_MS, CLOCK_COLUMNS }; /* a counter: it is only raised */
extern const struct row_type row_clock;

/* Commit slots: how a lost reply is resolved (slot.c).  `n` is 0: versions count. */
#define SLOT_INDEX "slots" /* rank = touched_at_ms, member = owner */
enum { SLOT_OWNER, SLOT_N, SLOT_ABORTED, SLOT_TOUCHED_AT_MS, SLOT_COLUMNS };
extern const struct row_type row_slot;

/* Blobs: an upload collects chunks, finishing it commits the blob row (blob.h). */
#define UPLOAD_INDEX "uploads" /* rank = started_at_ms, member = id */
enum { UPLOAD_ID, UPLOAD_CHUNKS, UPLOAD_STARTED_AT_MS, UPLOAD_COLUMNS };
extern const struct row_type row_upload;
#define BLOB_INDEX "blobs" /* rank = touched_at_ms, member = sha256 */
#define BLOB_ZLIB "zlib"
enum {
    BLOB_SHA256, /* lower-case hex */
    BLOB_UPLOAD,
    BLOB_SIZE,
    BLOB_CHUNKS,
    BLOB_DESCRIPTOR,
    BLOB_CREATED_AT_MS,
    BLOB_TOUCHED_AT_MS, /* put, answered for, or newly referred to */
    BLOB_COMPRESSION,   /* of the chunks: NULL, or BLOB_ZLIB */
    BLOB_STORED_SIZE,   /* bytes in the chunks */
    BLOB_COLUMNS
};
extern const struct row_type row_blob;

/* A name that keeps a blob. */
#define PIN_INDEX "pins" /* rank = created_at_ms, member = name */
enum { PIN_NAME, PIN_SHA256, PIN_CREATED_AT_MS, PIN_COLUMNS };
extern const struct row_type row_pin;

/* --- leases: columns that every leased noun has, from its own first one on --- */

enum {
    LEASE_OWNER, /* all NULL but the fence: nobody holds it */
    LEASE_TOKEN,
    LEASE_ID,    /* 128 random bits, in hex */
    LEASE_FENCE, /* of the last grant; 0: never granted */
    LEASE_CLAIMED_AT_MS,
    LEASE_EXPIRES_AT_MS,
    LEASE_PRINCIPAL, /* who was granted it */
    LEASE_HOST,      /* the holder's incarnation; may be NULL */
    LEASE_BOOT,
    LEASE_PID,
    LEASE_PROCESS_START,
    LEASE_FLEET_MEMBER,
    LEASE_COLUMNS
};

/* --- inboxes --- */

/* The back, where batches enter: everybody guards and bumps it who lets one in. */
enum {
    INBOX_SESSION,
    /* Sequences are given out one after the other, and never again.  The last one was this when
     * the row had version AT_VER, and is one more with each version since: a batch that enters
     * changes the version and nothing else (inbox_last_seq).  AT_VER NULL: it is this. */
    INBOX_LAST_SEQ,
    INBOX_AT_VER,
    INBOX_STATE, /* NULL, or SESSION_DELETED: nothing enters any more */
    INBOX_COLUMNS
};
extern const struct row_type row_inbox;

/* The front, where they are taken: everybody guards and bumps it who changes anything else about
 * which batches an inbox has or who holds them.  It is made along with the back. */
enum {
    INBOX_FRONT_SESSION,
    INBOX_FRONT_FIRST_SEQ, /* no batch is below: where a walk begins */
    INBOX_FRONT_GONE,      /* batches that were removed: the others are in it */
    INBOX_FRONT_LAST_GONE, /* the highest sequence of them */
    INBOX_FRONT_CHANGES,   /* counts them */
    INBOX_FRONT_STATE,     /* as INBOX_STATE */
    INBOX_FRONT_COLUMNS
};
extern const struct row_type row_inbox_front;

/* A batch stands in one of two indexes of its inbox: `ready/<session>` (rank = seq)
 * when it can be claimed, `due/<session>` (rank = due_at_ms) when that begins only with
 * a time: that of its availability, or the end of its lease. */
#define READY_INDEX "ready/"
#define DUE_INDEX "due/"
enum {
    BATCH_SESSION,
    BATCH_SEQ,
    BATCH_ID,
    BATCH_SOURCE_KEY,
    BATCH_DELIVERY,
    BATCH_SLOT,
    BATCH_MERGE_KEY,
    BATCH_AVAILABLE_AT_MS,
    BATCH_ENQUEUED_AT_MS,
    BATCH_DUE_AT_MS, /* NULL: it is in the ready index */
    BATCH_CLAIM_ID,
    BATCH_CLAIM_SIZE, /* batches in that claim */
    BATCH_ITEMS, /* a JSON array, when it is short; NULL: beside, in batch_payload */
    BATCH_LEASE,
    BATCH_WAKE = BATCH_LEASE + LEASE_COLUMNS, /* <sequence>:<process>; NULL: no wake */
    BATCH_COLUMNS
};
extern const struct row_type row_batch;
enum { PAYLOAD_SESSION, PAYLOAD_SEQ, PAYLOAD_ITEMS, PAYLOAD_COLUMNS };
extern const struct row_type row_batch_payload; /* items that are not short */
enum { BATCH_NAME_SESSION, BATCH_NAME_ID, BATCH_NAME_SEQ, BATCH_NAME_COLUMNS };
extern const struct row_type row_batch_name; /* batch id -> seq */
enum {
    BATCH_SOURCE_SESSION,
    BATCH_SOURCE_NAME,
    BATCH_SOURCE_SEQ,
    BATCH_SOURCE_COLUMNS
};
extern const struct row_type row_batch_source; /* source key -> seq */

/* --- sessions --- */

#define SESSION_INDEX "sessions"          /* rank = created_at_ms, member = session */
#define SESSION_DELETING_INDEX "deleting" /* likewise; rows are left to remove */
#define SESSION_ACTIVE "active"
#define SESSION_DELETING "deleting" /* a tombstone; what it had is being removed */
#define SESSION_DELETED "deleted"   /* a tombstone, and nothing else */
enum {
    SESSION_ID,
    SESSION_STATE,
    SESSION_REVISION,
    SESSION_LEAF,       /* node id; NULL: none */
    SESSION_NODE_COUNT, /* not tombstoned */
    SESSION_FIRST_SEQ,  /* nodes are first_seq..last_seq, with gaps after a vacuum */
    SESSION_LAST_SEQ,   /* never goes back */
    SESSION_FRAME,      /* the current agent frame */
    SESSION_CHECKPOINT, /* the manifest's blob */
    SESSION_TOOL_REF,   /* what the manifest names */
    SESSION_PLUGIN_REF,
    SESSION_EXECUTION_REF,
    SESSION_CREATED_AT_MS,
    SESSION_UPDATED_AT_MS,
    SESSION_COLUMNS
};
extern const struct row_type row_session;
enum { FRAMES_SESSION, FRAMES_CONFIG, FRAMES_FRAMES, FRAMES_COLUMNS };
extern const struct row_type row_session_frames;

/* What happened at each revision: log `commits/<session>`, entry number = revision. */
#define COMMIT_STREAM "commits/"
enum { TURN_SESSION, TURN_ID, TURN_HASH, TURN_REVISION, TURN_COLUMNS };
extern const struct row_type row_turn;

enum {
    NODE_SESSION,
    NODE_SEQ,
    NODE_ID,
    NODE_PARENT_SEQ, /* NULL: a root */
    NODE_JSON,
    NODE_TOMBSTONED_AT_MS,
    NODE_COLUMNS
};
#define TOMBSTONE_INDEX "tombstones/" /* + session; rank = seq, member = seq */
extern const struct row_type row_node;
enum {
    NODE_NAME_SESSION,
    NODE_NAME_ID,
    NODE_NAME_SEQ,
    NODE_NAME_HIDDEN, /* 1: the node is tombstoned; NULL: it is not */
    NODE_NAME_COLUMNS
};
extern const struct row_type row_node_name; /* node id -> seq */

enum { USAGE_SESSION, USAGE_LEDGER, USAGE_COLUMNS }; /* sums, a JSON array */
extern const struct row_type row_session_usage;
enum { USAGE_SEEN_SESSION, USAGE_SEEN_ID, USAGE_SEEN_HASH, USAGE_SEEN_COLUMNS };
extern const struct row_type row_usage_seen;

#define CHILD_INDEX "children/" /* + parent; rank = saved_at_ms, member = session */
enum {
    META_SESSION,
    META_NAME,
    META_CREATED_AT,
    META_MODEL,
    META_CWD,
    META_PARENT,
    META_CAUSED_BY,
    META_SAVED_AT_MS,
    META_COLUMNS
};
extern const struct row_type row_session_meta;

/* In one of two indexes of its session: not committed (rank = intent_at_ms), committed
 * (rank = committed_at_ms). */
#define INTENT_INDEX "intents/"
#define ATTACHED_INDEX "attached/"
enum {
    ATTACHMENT_SESSION,
    ATTACHMENT_ID,
    ATTACHMENT_URI,
    ATTACHMENT_INTENT_AT_MS,
    ATTACHMENT_COMMITTED_AT_MS,
    ATTACHMENT_COLUMNS
};
extern const struct row_type row_attachment;

/* --- executions --- */

/* Every execution stands in exactly one of these: where, its vector says (policy/vector.h),
 * and at which rank, its row.
 *
 *   lane/<lane>/<route>   to be claimed; rank = created_at_ms - priority * 10^12
 *   delayed               rank = delay_until_ms
 *   leased                rank: not after the time when something may have to be done
 *   granted               to be claimed by one worker; rank = grant_until_ms
 *   held/<state>          waits for something else; rank = updated_at_ms
 *   done/<outcome>        rank = when it is purged
 *
 * and, for lists and times, in some of these: executions (all; rank = created_at_ms), lost
 * (lease lost, not taken over yet; rank = when), deadlines (rank = deadline_at_ms, until
 * terminal), tag/<key>=<value> (rank = created_at_ms). */
#define LANE_READY_INDEX "lane/"
#define DELAYED_INDEX "delayed"
#define LEASED_INDEX "leased"
#define GRANTED_INDEX "granted"
#define HELD_INDEX "held/"
#define DONE_INDEX "done/"
#define EXECUTION_INDEX "executions"
#define LOST_INDEX "lost"
#define DEADLINE_INDEX "deadlines"
#define TAG_INDEX "tag/"
/* What the end of an attempt changes, what its beginning changes as well, what changes seldom, and
 * what does not: a store that logs a changed row from the first to the last byte that differs
 * logs the less.  Of counters, the priority and the fence NULL is 0. */
enum {
    EXEC_ID,
    EXEC_STATE, /* public, derived */
    EXEC_PHASE,
    EXEC_OWNERSHIP,
    EXEC_ELIGIBILITY,
    EXEC_BLOCKING,
    EXEC_OUTCOME,
    EXEC_ATTEMPT_STATE,
    EXEC_RANK, /* where it stands */
    EXEC_UPDATED_AT_MS,
    EXEC_FINISHED_AT_MS,
    EXEC_STARTED_AT_MS, /* first claim */
    EXEC_ATTEMPT_AT_MS, /* when the current or last attempt began */
    EXEC_ATTEMPTS,      /* grants minus resumes */
    EXEC_ATTEMPT_TYPE,  /* of the current or last one: number attempts - 1 */
    EXEC_LEASE, /* token: the current attempt's id.  The last grant's stay when it ends */
    EXEC_TIMEOUT_AT_MS = EXEC_LEASE + LEASE_COLUMNS, /* of the current attempt */
    EXEC_LOST_AT_MS, /* its rank in `lost`; NULL: it is not there */
    EXEC_DELAY_UNTIL_MS,
    EXEC_RETRIES,  /* failures charged */
    EXEC_RECLAIMS, /* leases lost */
    EXEC_REPLAYS,
    EXEC_GRANT_UNTIL_MS, /* NULL: not granted */
    EXEC_GRANT,          /* id of the grant */
    EXEC_GRANT_WORKER,
    EXEC_DETAIL, /* about what blocks it, or why it ended */
    EXEC_SUSPENSION,
    EXEC_WAITPOINT,
    EXEC_PRIORITY,
    EXEC_DEADLINE_AT_MS,
    EXEC_RETENTION_MS,
    EXEC_CREATED_AT_MS,
    EXEC_LANE,
    EXEC_ROUTE, /* of the lane: which capabilities it requires */
    EXEC_SESSION,
    EXEC_PROCESS,
    EXEC_PROCESS_EVENT, /* its process is told so; NULL: EXECUTION_EVENT_TYPE */
    EXEC_FLOW,
    EXEC_COLUMNS
};
extern const struct row_type row_execution;

/* What was submitted: does not change but for the tags. */
#define PAYLOAD_JSON "json"
#define PAYLOAD_BYTES "bytes"
enum {
    SPEC_ID,
    SPEC_KIND,
    SPEC_PAYLOAD,      /* NULL: none, or in a blob */
    SPEC_PAYLOAD_BLOB, /* sha256 */
    SPEC_ENCODING,     /* NULL: there is no payload */
    SPEC_POLICY,       /* retry, timeouts, caps (work/execution_rows.h) */
    SPEC_REQUIRES,     /* joined (policy/capability.h); NULL: nothing */
    SPEC_TAGS,         /* an object; NULL: none */
    SPEC_CREATOR,
    SPEC_TRACE, /* {"traceparent":...,"tracestate":...} */
    SPEC_KEY,
    SPEC_COLUMNS
};
extern const struct row_type row_execution_spec;

/* How the attempt of that fence ended; of a former one it is only history. */
enum {
    END_ID,
    END_FENCE,
    END_RESULT,
    END_RESULT_BLOB,
    END_ENCODING,
    END_FAILURE_CLASS,
    END_FAILURE_MESSAGE,
    END_FAILURE_DETAIL,
    END_CANCEL_REASON,
    END_CANCEL_SOURCE,
    END_COLUMNS
};
extern const struct row_type row_execution_end;

enum {
    PROGRESS_ID,
    PROGRESS_FENCE,
    PROGRESS_PERCENT,
    PROGRESS_MESSAGE,
    PROGRESS_AT_MS,
    PROGRESS_COLUMNS
};
extern const struct row_type row_execution_progress;

/* An attempt that another one followed; the last one is in the execution's own row. */
enum {
    ATTEMPT_EXECUTION,
    ATTEMPT_INDEX,
    ATTEMPT_ID,
    ATTEMPT_TYPE,
    ATTEMPT_END,
    ATTEMPT_WORKER,
    ATTEMPT_FENCE,
    ATTEMPT_STARTED_AT_MS,
    ATTEMPT_ENDED_AT_MS,
    ATTEMPT_CLOSED_REASON,
    ATTEMPT_FAILURE_CLASS,
    ATTEMPT_FAILURE_MESSAGE,
    ATTEMPT_COLUMNS
};
extern const struct row_type row_attempt;

/* Frames of an attempt: log frames/<execution>/<attempt>, entries from 1. */
#define FRAME_STREAM "frames/"
enum {
    FRAME_HEAD_EXECUTION,
    FRAME_HEAD_ATTEMPT,
    FRAME_HEAD_LAST_SEQ,   /* also how many there were in all */
    FRAME_HEAD_FIRST_SEQ,  /* kept */
    FRAME_HEAD_CALLER_SEQ, /* the last one a caller numbered; 0: none */
    FRAME_HEAD_BYTES,
    FRAME_HEAD_LAST_AT_MS,
    FRAME_HEAD_COLUMNS
};
extern const struct row_type row_frame_head;

/* One execution for a key, until its window is over. */
#define EXECUTION_KEY_INDEX "execution_keys" /* rank = until_ms, member = key */
enum {
    EXEC_KEY_KEY,
    EXEC_KEY_EXECUTION,
    EXEC_KEY_HASH,
    EXEC_KEY_UNTIL_MS,
    EXEC_KEY_COLUMNS
};
extern const struct row_type row_execution_key;

/* Grants, found by their id. */
enum { GRANT_ID, GRANT_EXECUTION, GRANT_WORKER, GRANT_UNTIL_MS, GRANT_COLUMNS };
extern const struct row_type row_execution_grant;

/* Lanes and their routes are entered once and stay. */
#define LANE_INDEX "lanes"    /* rank 0, member = lane */
#define ROUTE_INDEX "routes/" /* + lane; rank 0, member = route */
enum { LANE_LANE, LANE_STATE, LANE_CREATED_AT_MS, LANE_RETENTION_MS, LANE_COLUMNS };
extern const struct row_type row_lane;
enum { ROUTE_LANE, ROUTE_ROUTE, ROUTE_REQUIRES, ROUTE_COLUMNS };
extern const struct row_type row_route;

/* What happened to executions; an entry is a JSON array of events of one commit. */
#define EXECUTION_FEED "executions"

/* Who runs the timers of the namespace just now. */
enum { TIMER_LEASE, TIMER_COLUMNS = TIMER_LEASE + LEASE_COLUMNS };
extern const struct row_type row_timer;

/* --- processes --- */

/* A process stands in
 *
 *   processes             all; rank = created_at_ms
 *   processes/<status>    running: rank 0; ended: rank = purge_at_ms; deleting: likewise
 *   processes_of/<owner>  of one session; rank = created_at_ms
 *
 * Its own row is what every event, lease and change of it guards and writes, and is small;
 * what was registered does not change.  Events: log process/<id>, entry number = sequence,
 * the head is last_seq. */
#define PROCESS_INDEX "processes"
#define PROCESS_STATUS_INDEX "processes/"
#define PROCESS_OWNER_INDEX "processes_of/"
#define PROCESS_STREAM "process/"
#define PROCESS_FEED "processes"
#define PROCESS_DELETING "deleting" /* status of one whose rows are being removed */
enum {
    PROCESS_ID,
    PROCESS_HASH,   /* of its registration */
    PROCESS_STATUS, /* running, completed, failed, cancelled, deleting */
    PROCESS_FIRST_SEQ,
    PROCESS_LAST_SEQ,
    PROCESS_TERMINAL_SEQ, /* of the event that ended it; NULL: it runs */
    PROCESS_CREATED_AT_MS,
    PROCESS_UPDATED_AT_MS,
    PROCESS_FINISHED_AT_MS,
    PROCESS_RETENTION_MS, /* NULL: the usual */
    PROCESS_PURGE_AT_MS,  /* its rank once it has ended */
    PROCESS_LEASE,
    PROCESS_COLUMNS = PROCESS_LEASE + LEASE_COLUMNS
};
extern const struct row_type row_process;
enum {
    PROCESS_SPEC_ID,
    PROCESS_SPEC_HASH,
    PROCESS_SPEC_KIND,  /* of the input */
    PROCESS_SPEC_INPUT, /* canonical, as all JSON here */
    PROCESS_SPEC_EVENT_TYPES,
    PROCESS_SPEC_OWNER_SESSION,
    PROCESS_SPEC_OWNER_FRAME, /* NULL: the session itself */
    PROCESS_SPEC_HOST_PROFILE,
    PROCESS_SPEC_CAUSED_BY,
    PROCESS_SPEC_CREATED_AT_MS,
    PROCESS_SPEC_COLUMNS
};
extern const struct row_type row_process_spec;
enum { PROCESS_REF_ID, PROCESS_REF_REF, PROCESS_REF_AT_MS, PROCESS_REF_COLUMNS };
extern const struct row_type row_process_ref; /* where it runs elsewhere */
enum { PROCESS_END_ID, PROCESS_END_OUTPUT, PROCESS_END_COLUMNS };
extern const struct row_type row_process_end; /* what is awaited, once it has ended */
enum {
    PROCESS_KEY_PROCESS,
    PROCESS_KEY_KEY,
    PROCESS_KEY_SEQ,
    PROCESS_KEY_HASH,
    PROCESS_KEY_COLUMNS
};
extern const struct row_type row_process_key; /* replay key -> event */
enum {
    PROCESS_PAYLOAD_PROCESS,
    PROCESS_PAYLOAD_SEQ,
    PROCESS_PAYLOAD_PAYLOAD,
    PROCESS_PAYLOAD_COLUMNS
};
extern const struct row_type row_process_payload; /* of events that are not short */

/* A wake of an event, by process and sequence, in `wakes/<process>` (rank = sequence)
 * while it is queued; and which of them is the one of its target and wake id. */
#define WAKE_INDEX "wakes/"
enum {
    WAKE_PROCESS,
    WAKE_SEQ,
    WAKE_ID,
    WAKE_STATE,
    WAKE_SESSION,
    WAKE_FRAME,
    WAKE_ENQUEUE_SEQ, /* of its batch; NULL: it has none */
    WAKE_CREATED_AT_MS,
    WAKE_SETTLED_AT_MS,
    WAKE_COLUMNS
};
extern const struct row_type row_process_wake;
enum {
    WAKE_TARGET_SESSION,
    WAKE_TARGET_WAKE,
    WAKE_TARGET_PROCESS,
    WAKE_TARGET_SEQ,
    WAKE_TARGET_COLUMNS
};
extern const struct row_type row_wake_target;

/* Grants.  Scopes are pairs; in the name of an index, or a member, 1f stands between their
 * parts, which contain no control characters.
 *
 *   grants/<session> 1f <frame>   rank 0, member = process
 *   granted/<process>             rank 0, member = session 1f frame
 *   session_grants/<session>      rank 0, member = frame 1f process
 *
 * How many there are of a process, and of a session, is in rows that every change of them
 * guards and writes. */
#define GRANT_INDEX "grants/"
#define GRANTED_TO_INDEX "granted/"
#define SESSION_GRANT_INDEX "session_grants/"
#define GRANT_TO_SESSION "."
#define GRANT_TO_FRAME "/"
enum {
    HANDLE_GRANT_SESSION,
    HANDLE_GRANT_FRAME, /* GRANT_TO_SESSION, or GRANT_TO_FRAME and the frame */
    HANDLE_GRANT_PROCESS,
    HANDLE_GRANT_KIND,
    HANDLE_GRANT_LABEL,
    HANDLE_GRANT_AT_MS,
    HANDLE_GRANT_COLUMNS
};
extern const struct row_type row_handle_grant;
enum {
    GRANT_COUNT_NOUN, /* "process" or "session" */
    GRANT_COUNT_ID,
    GRANT_COUNT_N,
    GRANT_COUNT_CHANGES,
    GRANT_COUNT_COLUMNS
};
#define GRANTS_OF_PROCESS "process"
#define GRANTS_OF_SESSION "session"
extern const struct row_type row_grant_count;

/* The last entry of a namespace's audit log, a chain of hashes: the row that every
 * append guards. */
#define AUDIT_STREAM "audit"
enum { AUDIT_HEAD_SEQ, AUDIT_HEAD_HASH, AUDIT_HEAD_COLUMNS };
extern const struct row_type row_audit_head;

/* What is wrong with a dictionary, in one line, or NULL: duplicate ids or names, too
 * many columns, a counter that is no i64 or is part of a key, a key of bytes or JSON.
 */
const char *schema_fault(const struct schema *s);

/* [a-z0-9][a-z0-9_-]{0,62}, or the system namespace when `system` is set. */
bool namespace_is_valid(struct bytes ns, bool system);

#endif /* STORE_SCHEMA_H */
