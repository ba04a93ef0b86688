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
#define SCHEMA_FORMAT 1
#define SCHEMA_MIN_READER 1
#define SCHEMA_MIN_WRITER 1

struct column {
    const char *name;
    enum value_kind type; /* never VALUE_NULL; key columns: I64 or TEXT */
    bool counter;         /* type VALUE_I64, NULL counts as 0 */
};

struct row_type {
    const char *name; /* table belay_<name> */
    uint16_t id;      /* unique in its schema; memory layout only, never stored */
    uint16_t n_key;   /* leading columns that are the key; 0 = one row per namespace */
    uint16_t n_columns;
    const struct column *columns;
    bool internal; /* the store's own bookkeeping: not part of a dump */
};

struct schema {
    const struct row_type *const *types;
    size_t n_types;
};

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
enum { EPOCH_EPOCH, EPOCH_RAISED_AT_MS, EPOCH_REASON, EPOCH_COLUMNS };
extern const struct row_type row_epoch;
enum { FENCE_FLOOR_FLOOR, FENCE_FLOOR_COLUMNS }; /* a counter: it is only raised */
extern const struct row_type row_fence_floor;
enum { CLOCK_MARK_MS, CLOCK_COLUMNS }; /* a counter: it is only raised */
extern const struct row_type row_clock;

/* Commit slots: how a lost reply is resolved (slot.h). */
#define SLOT_INDEX "slots" /* rank = touched_at_ms, member = owner */
enum { SLOT_OWNER, SLOT_N, SLOT_ABORTED, SLOT_TOUCHED_AT_MS, SLOT_COLUMNS };
extern const struct row_type row_slot;

/* Blobs: an upload collects chunks, finishing it commits the blob row (blob.h). */
#define UPLOAD_INDEX "uploads" /* rank = started_at_ms, member = id */
enum { UPLOAD_ID, UPLOAD_CHUNKS, UPLOAD_STARTED_AT_MS, UPLOAD_COLUMNS };
extern const struct row_type row_upload;
enum {
    BLOB_SHA256, /* lower-case hex */
    BLOB_UPLOAD,
    BLOB_SIZE,
    BLOB_CHUNKS,
    BLOB_DESCRIPTOR,
    BLOB_CREATED_AT_MS,
    BLOB_COLUMNS
};
extern const struct row_type row_blob;

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
