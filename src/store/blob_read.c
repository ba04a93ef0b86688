/* Blobs read in pieces, or whole: S4. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/blob_impl.h"

struct blob_reader {
    struct space *sp;
    const struct txn_options *options;
    struct belay_arena arena; /* the upload's name, then the chunk got last */
    struct arena_mark chunk;
    struct sha256_stream *hash;
    char sha256[SHA256_HEX_LEN + 1];
    struct blob_form form;
    int64_t next;  /* chunk to get */
    int64_t taken; /* bytes of content given out, or about to be */
    bool checked;  /* all of it is here and has the right digest */
    bool broken;   /* it is not, or that cannot be told any more */

    /* Of a compressed one. */
    struct unpacker *unpacker;
    struct bytes packed; /* not taken in yet, of the chunk got last */
    uint8_t *piece;      /* at most CHUNK_MAX bytes */
    size_t used;         /* of them */
};

/* --- what the row says --- */

/* A stream of what cannot be compressed is a little longer than its content. */
static bool is_possible(const struct blob_form *f)
{
    int64_t chunk = (int64_t)CHUNK_MAX, most = f->size;

    if (f->size < 0 || f->size > BLOB_SIZE_MAX)
        return false;
    if (f->packed)
        most += f->size / 8 + 64;
    int64_t least = f->packed ? 1 : f->size;
    if (f->stored < least || f->stored > most)
        return false;
    return f->chunks == (f->stored + chunk - 1) / chunk;
}

belay_rc blob_form_of(const struct row *row, struct blob_form *out,
                      struct belay_error *err)
{
    struct bytes sha256 = row_bytes(row, BLOB_SHA256);
    struct bytes compression = row_bytes(row, BLOB_COMPRESSION);

    *out = (struct blob_form){
        .upload = row_bytes(row, BLOB_UPLOAD),
        .size = row_i64(row, BLOB_SIZE, -1),
        .chunks = row_i64(row, BLOB_CHUNKS, -1),
        .packed = row->v[BLOB_COMPRESSION].kind != VALUE_NULL,
    };
    out->stored = row_i64(row, BLOB_STORED_SIZE, out->size);
    if (!is_possible(out))
        return err_set(err, BELAY_CORRUPT,
                       "blob %.*s: %" PRId64 " bytes, %" PRId64 " of them stored, in "
                       "%" PRId64 " chunks",
                       (int)sha256.len, (const char *)sha256.ptr, out->size,
                       out->stored, out->chunks);
    if (out->packed && !bytes_eq(compression, bytes_str(BLOB_ZLIB)))
        return err_reason(err, BELAY_UNSUPPORTED_FORMAT, "compression",
                          "blob %.*s: compressed by %.*s, which this program does not "
                          "know",
                          (int)sha256.len, (const char *)sha256.ptr,
                          (int)compression.len, (const char *)compression.ptr);
    return BELAY_OK;
}

size_t blob_chunk_len(const struct blob_form *form, int64_t index)
{
    int64_t left = form->stored - index * (int64_t)CHUNK_MAX;

    return left < (int64_t)CHUNK_MAX ? (size_t)left : CHUNK_MAX;
}

bool blob_is_name(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool digit = text.ptr[i] >= '0' && text.ptr[i] <= '9';
        bool letter = text.ptr[i] >= 'a' && text.ptr[i] <= 'f';
        if (!digit && !letter)
            return false;
    }
    return text.len == SHA256_HEX_LEN;
}

/* --- opening --- */

static belay_rc no_blob(struct txn *t, const char *sha256_hex, const char *why)
{
    belay_rc rc = txn_fail(t, BELAY_NOT_FOUND, "", "blob %s: %s", sha256_hex, why);

    err_entity(txn_error(t), bytes_str(sha256_hex));
    return rc;
}

static belay_rc open_body(struct txn *t, void *arg)
{
    struct blob_reader *r = arg;
    struct value key = value_str(r->sha256);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_blob, &key, &row);
    if (rc)
        return rc;
    if (!row)
        return no_blob(t, r->sha256, "there is none");
    return blob_form_of(row, &r->form, txn_error(t));
}

static belay_rc open_unpacker(struct blob_reader *r, struct belay_error *err)
{
    size_t size = (size_t)r->form.size;

    r->piece = malloc(size > 0 && size < CHUNK_MAX ? size : CHUNK_MAX);
    if (!r->piece)
        return err_no_memory(err, "a blob reader");
    return unpacker_open(&r->unpacker, r->form.size, err);
}

belay_rc blob_reader_open(struct blob_reader **out, struct space *sp,
                          const char *sha256_hex, const struct txn_options *options,
                          struct belay_error *err)
{
    if (!blob_is_name(bytes_str(sha256_hex))) {
        err_set(err, BELAY_NOT_FOUND, "blob: no sha256 in lower-case hex, so no name");
        err_entity(err, bytes_str(sha256_hex));
        return BELAY_NOT_FOUND;
    }
    struct blob_reader *r = calloc(1, sizeof(*r));
    if (!r)
        return err_no_memory(err, "a blob reader");
    r->sp = sp;
    r->options = options;
    memcpy(r->sha256, sha256_hex, sizeof(r->sha256));
    belay_rc rc = sha256_open(&r->hash, err);
    if (rc == BELAY_OK)
        rc = txn_run(sp, open_body, r, options, &r->arena, err);
    if (rc == BELAY_OK && r->form.packed)
        rc = open_unpacker(r, err);
    if (rc) {
        blob_reader_close(r);
        return rc;
    }
    r->chunk = arena_mark(&r->arena);
    *out = r;
    return BELAY_OK;
}

int64_t blob_reader_size(const struct blob_reader *r)
{
    return r->form.size;
}

/* --- chunks --- */

struct chunk_read {
    const struct blob_reader *r;
    struct bytes data;
};

/* A chunk belongs to its blob: who misses one asks whether the blob is still the one
 * that was opened, before calling it damaged. */
static belay_rc chunk_body(struct txn *t, void *arg)
{
    struct chunk_read *c = arg;
    const struct blob_reader *r = c->r;
    struct value key = value_str(r->sha256);
    const struct row *row;
    bool found;

    belay_rc rc = txn_chunk_get(t, r->form.upload, r->next, &found, &c->data);
    if (rc || found)
        return rc;
    rc = txn_get(t, &row_blob, &key, &row);
    if (rc)
        return rc;
    if (!row || !bytes_eq(row_bytes(row, BLOB_UPLOAD), r->form.upload))
        return no_blob(t, r->sha256, "removed while it was read");
    return txn_fail(t, BELAY_CORRUPT, "missing_chunk", "blob %s: chunk %lld is missing",
                    r->sha256, (long long)r->next);
}

static belay_rc other_bytes(struct blob_reader *r, const char *why,
                            struct belay_error *err)
{
    r->broken = true;
    return err_reason(err, BELAY_CORRUPT, "hash_mismatch", "blob %s: %s", r->sha256,
                      why);
}

/* The next chunk as it is stored.  Until it is here nothing is counted in, so after a
 * failure of the store the same one may be asked for again. */
static belay_rc get_chunk(struct blob_reader *r, struct bytes *out,
                          struct belay_error *err)
{
    struct chunk_read c = { .r = r };

    arena_rewind(&r->arena, r->chunk);
    belay_rc rc = txn_run(r->sp, chunk_body, &c, r->options, &r->arena, err);
    if (rc)
        return rc;
    if (c.data.len != blob_chunk_len(&r->form, r->next))
        return other_bytes(r, "a chunk of the wrong length", err);
    r->next++;
    *out = c.data;
    return BELAY_OK;
}

/* --- pieces --- */

static belay_rc unpack_more(struct blob_reader *r, size_t room, struct belay_error *err)
{
    struct belay_error local = { .code = BELAY_OK };
    size_t made = 0;
    belay_rc rc = unpacker_take(r->unpacker, &r->packed, r->piece + r->used,
                                room - r->used, &made, &local);

    r->used += made;
    if (rc == BELAY_CORRUPT)
        return other_bytes(r, local.message, err);
    if (rc) {
        r->broken = true;
        if (err)
            *err = local;
    }
    return rc;
}

/* Fills the piece from as many chunks as it takes.  The last one is full only with the
 * stream's end. */
static belay_rc unpack_piece(struct blob_reader *r, struct bytes *out,
                             struct belay_error *err)
{
    int64_t left = r->form.size - r->taken;
    bool last = left <= (int64_t)CHUNK_MAX;
    size_t room = last ? (size_t)left : CHUNK_MAX;

    for (;;) {
        belay_rc rc = unpack_more(r, room, err);
        if (rc)
            return rc;
        if (last ? unpacker_is_done(r->unpacker) : r->used == room)
            break;
        if (r->next == r->form.chunks)
            return other_bytes(r, "its compressed bytes are cut off", err);
        rc = get_chunk(r, &r->packed, err);
        if (rc)
            return rc;
    }
    if (last && r->next < r->form.chunks)
        return other_bytes(r, "its compressed bytes end before their last chunk", err);
    *out = bytes_of(r->piece, room);
    r->used = 0;
    return BELAY_OK;
}

/* Counts the piece in, and checks the digest once the last one is in. */
static belay_rc check_piece(struct blob_reader *r, struct bytes piece,
                            struct belay_error *err)
{
    char hex[SHA256_HEX_LEN + 1];
    belay_rc rc = sha256_update(r->hash, piece, err);

    if (rc)
        return rc;
    r->taken += (int64_t)piece.len;
    if (r->taken < r->form.size)
        return BELAY_OK;
    rc = blob_finish_hex(r->hash, hex, err);
    if (rc)
        return rc;
    if (strcmp(hex, r->sha256) != 0)
        return other_bytes(r, "the content has another digest", err);
    r->checked = true;
    return BELAY_OK;
}

belay_rc blob_read(struct blob_reader *r, struct bytes *out, struct belay_error *err)
{
    struct bytes piece = bytes_of(NULL, 0);
    belay_rc rc = BELAY_OK;

    if (r->broken)
        return err_set(err, BELAY_MISUSE, "blob: reading it has failed before");
    if (!r->checked) {
        if (r->form.packed)
            rc = unpack_piece(r, &piece, err);
        else if (r->form.chunks > 0)
            rc = get_chunk(r, &piece, err);
        if (rc)
            return rc;
        rc = check_piece(r, piece, err);
    }
    if (rc) {
        r->broken = true;
        return rc;
    }
    *out = piece;
    return BELAY_OK;
}

void blob_reader_close(struct blob_reader *r)
{
    if (!r)
        return;
    sha256_close(r->hash);
    unpacker_close(r->unpacker);
    arena_release(&r->arena);
    free(r->piece);
    free(r);
}

/* --- all of it --- */

static belay_rc read_all(struct blob_reader *r, size_t max, struct belay_arena *a,
                         struct bytes *out, struct belay_error *err)
{
    struct bytes piece = { .ptr = NULL };
    size_t size = (size_t)r->form.size, at = 0;

    if (size > max) {
        belay_rc rc = err_reason(err, BELAY_INVALID, "too_large",
                                 "blob %s: has %zu bytes, at most %zu are wanted",
                                 r->sha256, size, max);
        err_numbers(err, (int64_t)max, r->form.size);
        return rc;
    }
    uint8_t *all = arena_alloc(a, size + 1);
    if (!all)
        return err_no_memory(err, "a blob");
    do {
        belay_rc rc = blob_read(r, &piece, err);
        if (rc)
            return rc;
        if (piece.len > 0)
            memcpy(all + at, piece.ptr, piece.len);
        at += piece.len;
    } while (piece.len > 0);
    all[size] = 0;
    *out = bytes_of(all, size);
    return BELAY_OK;
}

belay_rc blob_load(struct space *sp, const char *sha256_hex, size_t max,
                   struct belay_arena *a, struct bytes *out, struct belay_error *err)
{
    const struct txn_options read_only = { .read_only = true };
    struct blob_reader *r;

    belay_rc rc = blob_reader_open(&r, sp, sha256_hex, &read_only, err);
    if (rc)
        return rc;
    rc = read_all(r, max, a, out, err);
    blob_reader_close(r);
    return rc;
}
