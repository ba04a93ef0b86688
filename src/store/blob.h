/* blob.h - content-addressed bytes, in and out in pieces.
 *
 * A writer cuts what it is given into chunks of CHUNK_MAX and commits each in a
 * transaction of its own, under a minted upload id.  Finishing commits the blob row
 * (sha256 -> upload, size, descriptor); a blob exists from then on, whole.  A second
 * upload of known content keeps the first, and touches it: whoever was told that a blob
 * is there has the whole grace to name it (S6).  An upload that was never finished, or
 * lost against an earlier one, is garbage: blob_sweep_uploads removes it after the grace.
 * Every blob stands in BLOB_INDEX at the time it was touched last.
 *
 * Never is more than a chunk or two of a blob in memory here.
 */
#ifndef STORE_BLOB_H
#define STORE_BLOB_H

#include "base/hash.h"
#include "store/txn.h"

#define BLOB_SIZE_MAX ((int64_t)1 << 30)

struct blob_writer;
struct blob_reader;

struct blob_info {
    char sha256[SHA256_HEX_LEN + 1];
    int64_t size;        /* of the content */
    int64_t stored_size; /* of the chunks */
    bool existed; /* the content was there before; its descriptor is the first one's */
};

/* A writer belongs to one thread at a time.  options (may be NULL) are borrowed.  With
 * `compress` the chunks hold a zlib stream of the content; the name is the content's. */
MUST_USE belay_rc blob_writer_open(struct blob_writer **out, struct space *sp,
                                   bool compress, const struct txn_options *options,
                                   struct belay_error *err);

/* Any number of bytes.  `invalid`, reason too_large, beyond BLOB_SIZE_MAX. */
MUST_USE belay_rc blob_write(struct blob_writer *w, struct bytes data,
                             struct belay_error *err);

/* Commits the blob.  descriptor is canonical JSON, or empty for none.  If `expect` is
 * not NULL it is the sha256 in hex that the content must have: `invalid`, reason
 * hash_mismatch, otherwise.  After any return only close is left. */
MUST_USE belay_rc blob_finish(struct blob_writer *w, struct bytes descriptor,
                              const char *expect, struct blob_info *out,
                              struct belay_error *err);

/* Takes NULL.  What was not finished stays as garbage for the sweep. */
void blob_writer_close(struct blob_writer *w);

/* Opens a blob by its name; not_found (entity: the name, as far as it fits) when there
 * is none. */
MUST_USE belay_rc blob_reader_open(struct blob_reader **out, struct space *sp,
                                   const char *sha256_hex,
                                   const struct txn_options *options,
                                   struct belay_error *err);

int64_t blob_reader_size(const struct blob_reader *r);

/* The next piece, borrowed until the next call; empty at the end.  The last piece is
 * given only after the digest of the whole was found to be the name (S4): otherwise
 * `corrupt`, reason hash_mismatch; a chunk that is not there is `corrupt`, reason
 * missing_chunk. */
MUST_USE belay_rc blob_read(struct blob_reader *r, struct bytes *out,
                            struct belay_error *err);

void blob_reader_close(struct blob_reader *r); /* takes NULL */

/* --- within other bodies --- */

/* A blob of at most CHUNK_MAX bytes, stored and uncompressed alike, ready to be written
 * by somebody's commit. */
struct blob_piece {
    char sha256[SHA256_HEX_LEN + 1];
    char upload[ID_MAX]; /* minted */
    int64_t size;
    struct bytes stored; /* borrows the content, or is compressed in the arena */
    bool compressed;
    struct bytes descriptor; /* canonical JSON, or empty */
};

/* Hashes, compresses (unless that makes it longer) and mints. */
MUST_USE belay_rc blob_prepare(struct blob_piece *out, struct space *sp,
                               struct bytes content, struct bytes descriptor,
                               bool compress, struct belay_arena *a,
                               struct belay_error *err);

/* Writes the piece, or touches the blob of that name; *out_existed (may be NULL) tells
 * which.  piece->stored must stay as it is until txn_run returns. */
MUST_USE belay_rc blob_put_in(struct txn *t, const struct blob_piece *piece,
                              bool *out_existed);

/* Touches a blob: its version and place in BLOB_INDEX change, so that no sweep that has
 * looked at it before removes it.  *out_found: false when there is none. */
MUST_USE belay_rc blob_touch(struct txn *t, const char *sha256_hex, bool *out_found);

/* Removes a blob whose row this body has read.  Chunks beyond a bound become an
 * unfinished upload of the beginning of time, for blob_sweep_uploads. */
MUST_USE belay_rc blob_remove_in(struct txn *t, const struct row *blob);

/* All of a blob in the arena, verified (S4); not_found, corrupt as blob_read, `invalid`
 * (reason too_large) when it has more than max bytes. */
MUST_USE belay_rc blob_load(struct space *sp, const char *sha256_hex, size_t max,
                            struct belay_arena *a, struct bytes *out,
                            struct belay_error *err);

/* Whether the text can be a blob's name: 64 lower-case hex digits. */
bool blob_is_name(struct bytes text);

/* --- the sweep of uploads --- */

/* Removes uploads that began before before_ms and belong to no blob, at most `limit`
 * uploads, in bounded transactions; tells how many are gone. */
MUST_USE belay_rc blob_sweep_uploads(struct space *sp, int64_t before_ms, size_t limit,
                                     size_t *out_swept, struct belay_error *err);

#endif /* STORE_BLOB_H */
