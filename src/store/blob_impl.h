/* blob_impl.h - what the files of blobs share. */
#ifndef STORE_BLOB_IMPL_H
#define STORE_BLOB_IMPL_H

#include "store/blob.h"
#include "store/pack.h"

/* Chunks dropped in one transaction. */
#define BLOB_DROP_MAX 16

/* What a blob row says about its chunks. */
struct blob_form {
    struct bytes upload;
    int64_t size;   /* of the content */
    int64_t stored; /* of the chunks */
    int64_t chunks;
    bool packed; /* they hold a zlib stream */
};

/* `corrupt` for numbers that no writer leaves, `unsupported_format` for a compression
 * that this program does not know. */
MUST_USE belay_rc blob_form_of(const struct row *row, struct blob_form *out,
                               struct belay_error *err);

/* How long chunk `index` has to be. */
size_t blob_chunk_len(const struct blob_form *form, int64_t index);

/* A stream's digest in hex. */
MUST_USE belay_rc blob_finish_hex(struct sha256_stream *s, char out[SHA256_HEX_LEN + 1],
                                  struct belay_error *err);

#endif /* STORE_BLOB_IMPL_H */
