/* blob.h - content-addressed bytes, pins, and what collects the garbage.
 *
 * A blob's name is the SHA-256 of its content in lower-case hex.  Equal content is
 * stored once; the first descriptor and compression stay.  What is read has its name's
 * hash, or the call fails (S4).
 *
 * A blob lives as long as the checkpoint of a session's head, an agent frame or a pin
 * names it, and for the grace of belay_gc after it was put, or answered for as "already
 * there" (S5).
 */
#ifndef BELAY_BLOB_H
#define BELAY_BLOB_H

#include <stddef.h>

#include <belay/open.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_SHA256_HEX 65 /* 64 digits and the NUL */

/* What a blob is; decides nothing but whether compressing it is worth a try. */
enum belay_blob_kind {
    BELAY_BLOB_GENERIC = 0,    /* "generic_blob": never compressed */
    BELAY_BLOB_MANIFEST = 1,   /* "checkpoint_manifest" */
    BELAY_BLOB_TOOL_STATE = 2, /* "tool_state" */
    BELAY_BLOB_PLUGIN = 3,     /* "plugin_session_snapshot" */
    BELAY_BLOB_EXECUTION = 4,  /* "execution_state_snapshot" */
    BELAY_BLOB_MODULE = 5,     /* "module" */
};

/* From which size on a compressible blob is compressed. */
enum belay_profile {
    BELAY_PROFILE_DEFAULT = 0, /* low_latency in memory, balanced elsewhere */
    BELAY_LOW_LATENCY = 1,     /* never */
    BELAY_BALANCED = 2,        /* 4096 bytes */
    BELAY_COMPACT = 3,         /* 1024 bytes */
};

struct belay_blob_info {
    char sha256[BELAY_SHA256_HEX];
    int64_t size;        /* of the content */
    int64_t stored_size; /* of what lies in the store */
    bool existed;        /* it was there before */
};

struct belay_blob_writer;

struct belay_blob_options {
    uint32_t size;   /* sizeof(struct belay_blob_options) */
    int32_t kind;    /* enum belay_blob_kind */
    int32_t profile; /* enum belay_profile */
    int32_t reserved;
    const char *expect; /* the sha256 the content must have, in hex; NULL: any */
    const char *pin;    /* keep it under this name, set right after it is finished: a
                           collection without grace may come between (not_found).
                           NULL: no pin */
};

/* In: open, write any number of pieces, finish, close.  At most about a mebibyte is in
 * memory.  options may be NULL. */
BELAY_API BELAY_MUST_USE belay_rc
belay_blob_open(struct belay *b, const struct belay_blob_options *options,
                struct belay_blob_writer **out, struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_blob_write(struct belay_blob_writer *w,
                                                   const void *data, size_t len,
                                                   struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_blob_finish(struct belay_blob_writer *w,
                                                    struct belay_blob_info *out,
                                                    struct belay_error *err);
BELAY_API void belay_blob_close(struct belay_blob_writer *w); /* takes NULL */

struct belay_blob_reader;

/* Out: open, read until a piece of length 0, close.  The last piece is given only after
 * the digest of the whole was found to be the name: otherwise `corrupt`. */
BELAY_API BELAY_MUST_USE belay_rc belay_blob_read_open(struct belay *b,
                                                       const char *sha256,
                                                       struct belay_blob_reader **out,
                                                       struct belay_error *err);
BELAY_API int64_t belay_blob_read_size(const struct belay_blob_reader *r);
BELAY_API BELAY_MUST_USE belay_rc belay_blob_read(struct belay_blob_reader *r,
                                                  const void **data, size_t *len,
                                                  struct belay_error *err);
BELAY_API void belay_blob_read_close(struct belay_blob_reader *r); /* takes NULL */

/* --- pins --- */

struct belay_pin {
    const char *name; /* 1 to 255 bytes of UTF-8 without control characters */
    const char *sha256;
    int64_t created_at_ms;
};

struct belay_pins {
    const struct belay_pin *pins; /* oldest first */
    size_t n;
    const char *next_cursor; /* NULL: there is no more */
};

/* Keeps a blob under a name; a name that is taken moves to the new blob.  not_found
 * when there is no such blob. */
BELAY_API BELAY_MUST_USE belay_rc belay_blob_pin(struct belay *b, const char *name,
                                                 const char *sha256,
                                                 struct belay_error *err);
/* *out_removed (may be NULL): whether there was one. */
BELAY_API BELAY_MUST_USE belay_rc belay_blob_unpin(struct belay *b, const char *name,
                                                   bool *out_removed,
                                                   struct belay_error *err);
BELAY_API BELAY_MUST_USE belay_rc belay_blob_pins(struct belay *b, const char *cursor,
                                                  size_t limit,
                                                  struct belay_arena *arena,
                                                  struct belay_pins *out,
                                                  struct belay_error *err);

/* --- garbage --- */

#define BELAY_GC_GRACE_MS ((int64_t)60 * 60 * 1000)

struct belay_gc_options {
    uint32_t size;    /* sizeof(struct belay_gc_options) */
    bool dry_run;     /* tell what would go, remove nothing */
    int64_t grace_ms; /* BELAY_NONE: none at all; 0: an hour.  Blobs put or answered for
                           within it stay */
    int64_t budget_ms; /* stop after so long, `incomplete`; 0: until done */
    struct belay_cancel
        *cancel; /* ends it at the next step, `incomplete`; may be NULL */
};

enum belay_gc_outcome {
    BELAY_GC_SWEPT = 0,      /* everything that could go is gone */
    BELAY_GC_NOTHING = 1,    /* there was nothing to do */
    BELAY_GC_INCOMPLETE = 2, /* some is gone; time or patience ran out */
    BELAY_GC_REFUSED = 3,    /* it cannot be proved what is alive: nothing more goes */
    BELAY_GC_FAILED = 4,     /* the store said no; `code` and `message` say why */
};

struct belay_gc_report {
    int32_t outcome;        /* enum belay_gc_outcome */
    int32_t code;           /* enum belay_code of refused and failed, else BELAY_OK */
    int64_t roots;          /* heads, frames and pins that name blobs */
    int64_t retained_blobs; /* alive, or within the grace */
    int64_t deleted_blobs, deleted_bytes; /* or would be (dry_run) */
    int64_t deleted_uploads;              /* that nobody finished */
    int64_t spared_blobs; /* were garbage when looked at, then used again */
    int64_t steps;        /* transactions that removed something */
    char reason[32];      /* of refused: corrupt_head, corrupt_manifest,
                               missing_manifest, corrupt_frames, corrupt_pin */
    char entity[64];      /* the session or pin it was about */
    char message[256];
};

/* "swept", "nothing", "incomplete", "refused", "failed". */
BELAY_API const char *belay_gc_outcome_name(int outcome);

/* Collects blobs that nothing names (S5 to S7), in small steps beside whoever works.
 * Conservative: where a head, frame, pin or manifest cannot be read nothing is deleted,
 * and the outcome says so.  Fails only for misuse and bad options; everything else is
 * an outcome.  options may be NULL. */
BELAY_API BELAY_MUST_USE belay_rc belay_gc(struct belay *b,
                                           const struct belay_gc_options *options,
                                           struct belay_gc_report *out,
                                           struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_BLOB_H */
