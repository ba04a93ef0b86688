/* Blobs written: in pieces, or as part of somebody's commit. */
#include "store/blob.h"

#include <stdlib.h>
#include <strings.h>

#include "store/blob_impl.h"

struct blob_writer {
    struct space *sp;
    const struct txn_options *options;
    struct belay_arena arena; /* of one transaction at a time */
    struct sha256_stream *hash;
    struct packer *packer; /* NULL: chunks hold the content as it is */
    uint8_t *chunk;        /* CHUNK_MAX bytes */
    size_t used;           /* of them, not committed yet */
    int64_t chunks;        /* committed */
    int64_t stored;        /* bytes in them */
    int64_t size;          /* taken so far */
    char upload[ID_MAX];
    bool over; /* only close is left */
};

belay_rc blob_finish_hex(struct sha256_stream *s, char out[SHA256_HEX_LEN + 1],
                         struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];
    belay_rc rc = sha256_finish(s, digest, err);

    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

/* --- rows --- */

struct new_blob {
    const char *sha256, *upload;
    int64_t size, stored, chunks;
    bool packed;
    struct bytes descriptor;
};

static belay_rc insert_blob(struct txn *t, const struct new_blob *b)
{
    struct value sha256 = value_str(b->sha256);
    bool described = b->descriptor.len > 0;
    int64_t now_ms;

    belay_rc rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    rc = txn_insert(
        t, &row_blob,
        (const struct value[BLOB_COLUMNS]){
            [BLOB_SHA256] = sha256,
            [BLOB_UPLOAD] = value_str(b->upload),
            [BLOB_SIZE] = value_i64(b->size),
            [BLOB_CHUNKS] = value_i64(b->chunks),
            [BLOB_DESCRIPTOR] = described ? value_json(b->descriptor) : value_null(),
            [BLOB_CREATED_AT_MS] = value_i64(now_ms),
            [BLOB_TOUCHED_AT_MS] = value_i64(now_ms),
            [BLOB_COMPRESSION] = b->packed ? value_str(BLOB_ZLIB) : value_null(),
            [BLOB_STORED_SIZE] = value_i64(b->stored),
        });
    return rc ? rc : txn_rank_add(t, bytes_str(BLOB_INDEX), now_ms, sha256.b);
}

/* S6: the row's version changes even within one millisecond, so that no sweep which has
 * read it before can remove it. */
static belay_rc touch_row(struct txn *t, const struct row *row)
{
    struct value key = row->v[BLOB_SHA256], before = row->v[BLOB_TOUCHED_AT_MS];
    int64_t now_ms;

    belay_rc rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    struct change change = { BLOB_TOUCHED_AT_MS, value_i64(now_ms) };
    rc = txn_put(t, &row_blob, &key, &change, 1);
    if (rc)
        return rc;
    if (before.kind == VALUE_NULL) /* older than the index, so not in it */
        return txn_rank_add(t, bytes_str(BLOB_INDEX), now_ms, key.b);
    if (before.i == now_ms)
        return BELAY_OK;
    return txn_rank_move(t, bytes_str(BLOB_INDEX), before.i, now_ms, key.b);
}

/* --- opening --- */

belay_rc blob_writer_open(struct blob_writer **out, struct space *sp, bool compress,
                          const struct txn_options *options, struct belay_error *err)
{
    struct blob_writer *w = calloc(1, sizeof(*w));

    if (!w)
        return err_no_memory(err, "a blob writer");
    w->sp = sp;
    w->options = options;
    w->chunk = malloc(CHUNK_MAX);
    belay_rc rc =
        w->chunk ? sha256_open(&w->hash, err) : err_no_memory(err, "a blob writer");
    if (rc == BELAY_OK && compress)
        rc = packer_open(&w->packer, err);
    if (rc) {
        blob_writer_close(w);
        return rc;
    }
    *out = w;
    return BELAY_OK;
}

void blob_writer_close(struct blob_writer *w)
{
    if (!w)
        return;
    sha256_close(w->hash);
    packer_close(w->packer);
    arena_release(&w->arena);
    free(w->chunk);
    free(w);
}

/* --- chunks --- */

/* The upload row as this writer left it, or not_found: a sweep that has begun to drop
 * chunks says so in the row before it deletes it. */
static belay_rc check_upload(struct txn *t, const struct blob_writer *w,
                             const struct row *row)
{
    if (row && row_i64(row, UPLOAD_CHUNKS, 0) == w->chunks)
        return BELAY_OK;
    belay_rc rc = txn_fail(t, BELAY_NOT_FOUND, "",
                           "upload %s: swept before it was finished", w->upload);
    err_entity(txn_error(t), bytes_str(w->upload));
    return rc;
}

static belay_rc start_upload(struct txn *t, const struct blob_writer *w)
{
    int64_t now_ms;
    belay_rc rc = txn_now(t, &now_ms);

    if (rc)
        return rc;
    rc = txn_insert(t, &row_upload,
                    (const struct value[UPLOAD_COLUMNS]){
                        [UPLOAD_ID] = value_str(w->upload),
                        [UPLOAD_CHUNKS] = value_i64(1),
                        [UPLOAD_STARTED_AT_MS] = value_i64(now_ms),
                    });
    if (rc)
        return rc;
    return txn_rank_add(t, bytes_str(UPLOAD_INDEX), now_ms, bytes_str(w->upload));
}

static belay_rc continue_upload(struct txn *t, const struct blob_writer *w)
{
    struct value key = value_str(w->upload);
    struct change change = { UPLOAD_CHUNKS, value_i64(w->chunks + 1) };
    const struct row *row;

    belay_rc rc = txn_get(t, &row_upload, &key, &row);
    if (rc == BELAY_OK)
        rc = check_upload(t, w, row);
    return rc ? rc : txn_put(t, &row_upload, &key, &change, 1);
}

static belay_rc chunk_body(struct txn *t, void *arg)
{
    const struct blob_writer *w = arg;
    belay_rc rc = w->chunks == 0 ? start_upload(t, w) : continue_upload(t, w);

    if (rc)
        return rc;
    return txn_chunk_put(t, bytes_str(w->upload), w->chunks,
                         bytes_of(w->chunk, w->used));
}

/* Commits what the buffer holds as the next chunk. */
static belay_rc flush(struct blob_writer *w, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (w->chunks == 0)
        rc = space_mint(w->sp, "upl_", w->upload, err);
    if (rc == BELAY_OK)
        rc = txn_run(w->sp, chunk_body, w, w->options, &w->arena, err);
    arena_reset(&w->arena);
    if (rc)
        return rc;
    w->chunks++;
    w->stored += (int64_t)w->used;
    w->used = 0;
    return BELAY_OK;
}

/* --- content --- */

/* Moves what fits of `data` to the buffer, as it will be stored. */
static belay_rc store_some(struct blob_writer *w, struct bytes *data,
                           struct belay_error *err)
{
    size_t room = CHUNK_MAX - w->used, made = data->len < room ? data->len : room;
    uint8_t *to = w->chunk + w->used;
    belay_rc rc = BELAY_OK;

    if (w->packer) {
        rc = packer_take(w->packer, data, to, room, &made, err);
    } else {
        memcpy(to, data->ptr, made);
        *data = bytes_of(data->ptr + made, data->len - made);
    }
    w->used += made;
    return rc;
}

static belay_rc take(struct blob_writer *w, struct bytes data, struct belay_error *err)
{
    while (data.len > 0) {
        /* In parts of a chunk, so that they are in the cache for what comes next. */
        struct bytes part =
            bytes_of(data.ptr, data.len < CHUNK_MAX ? data.len : CHUNK_MAX);

        data = bytes_of(data.ptr + part.len, data.len - part.len);
        belay_rc rc = sha256_update(w->hash, part, err);
        w->size += (int64_t)part.len;
        while (part.len > 0 && rc == BELAY_OK) {
            rc = store_some(w, &part, err);
            if (rc == BELAY_OK && w->used == CHUNK_MAX)
                rc = flush(w, err);
        }
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

static belay_rc is_over(struct belay_error *err)
{
    return err_set(err, BELAY_MISUSE, "blob: this writer has finished or failed");
}

belay_rc blob_write(struct blob_writer *w, struct bytes data, struct belay_error *err)
{
    belay_rc rc;

    if (w->over)
        return is_over(err);
    if (data.len > (uint64_t)(BLOB_SIZE_MAX - w->size)) {
        rc = err_reason(err, BELAY_INVALID, "too_large", "blob: larger than %lld bytes",
                        (long long)BLOB_SIZE_MAX);
    } else {
        rc = take(w, data, err);
    }
    /* Nobody can tell how much of it was taken, so nobody may go on. */
    if (rc)
        w->over = true;
    return rc;
}

/* --- finishing --- */

struct finish {
    const struct blob_writer *w;
    struct bytes descriptor;
    struct blob_info info;
};

/* The upload stops being one: from here on its chunks are the blob's. */
static belay_rc close_upload(struct txn *t, const struct blob_writer *w,
                             const struct row *row)
{
    struct value key = value_str(w->upload);

    belay_rc rc = check_upload(t, w, row);
    if (rc == BELAY_OK)
        rc = txn_delete(t, &row_upload, &key);
    if (rc)
        return rc;
    return txn_rank_remove(t, bytes_str(UPLOAD_INDEX),
                           row_i64(row, UPLOAD_STARTED_AT_MS, 0), bytes_str(w->upload));
}

static belay_rc finish_body(struct txn *t, void *arg)
{
    struct finish *f = arg;
    const struct blob_writer *w = f->w;
    struct value sha = value_str(f->info.sha256), upload = value_str(w->upload);
    struct row_want wants[] = { { &row_blob, &sha }, { &row_upload, &upload } };
    const struct row *rows[COUNT_OF(wants)] = { 0 };
    struct new_blob b = {
        .sha256 = f->info.sha256,
        .upload = w->upload,
        .size = w->size,
        .stored = w->stored,
        .chunks = w->chunks,
        .packed = w->packer && w->chunks > 0,
        .descriptor = f->descriptor,
    };

    /* Nothing was uploaded for a blob of nothing. */
    belay_rc rc = txn_get_many(t, wants, w->chunks > 0 ? 2 : 1, rows);
    if (rc)
        return rc;
    f->info.existed = rows[0] != NULL;
    f->info.stored_size = w->stored;
    if (f->info.existed) {
        f->info.stored_size = row_i64(rows[0], BLOB_STORED_SIZE, w->size);
        return touch_row(t, rows[0]);
    }
    if (w->chunks > 0)
        rc = close_upload(t, w, rows[1]);
    return rc ? rc : insert_blob(t, &b);
}

/* What has not been committed yet.  A blob of nothing is not compressed. */
static belay_rc flush_rest(struct blob_writer *w, struct belay_error *err)
{
    bool done = !w->packer || w->size == 0;

    while (!done) {
        size_t made;
        belay_rc rc = packer_finish(w->packer, w->chunk + w->used, CHUNK_MAX - w->used,
                                    &made, &done, err);
        if (rc)
            return rc;
        w->used += made;
        if (!done)
            rc = flush(w, err);
        if (rc)
            return rc;
    }
    return w->used > 0 ? flush(w, err) : BELAY_OK;
}

belay_rc blob_finish(struct blob_writer *w, struct bytes descriptor, const char *expect,
                     struct blob_info *out, struct belay_error *err)
{
    struct finish f = { .w = w, .descriptor = descriptor, .info.size = w->size };

    if (w->over)
        return is_over(err);
    w->over = true;
    belay_rc rc = blob_finish_hex(w->hash, f.info.sha256, err);
    if (rc)
        return rc;
    if (expect && strcasecmp(expect, f.info.sha256) != 0)
        return err_reason(err, BELAY_INVALID, "hash_mismatch",
                          "blob: sha256 is %s, not the one expected", f.info.sha256);
    rc = flush_rest(w, err);
    if (rc == BELAY_OK)
        rc = txn_run(w->sp, finish_body, &f, w->options, &w->arena, err);
    if (rc)
        return rc;
    *out = f.info;
    return BELAY_OK;
}

/* --- within other bodies --- */

belay_rc blob_prepare(struct blob_piece *out, struct space *sp, struct bytes content,
                      struct bytes descriptor, bool compress, struct belay_arena *a,
                      struct belay_error *err)
{
    struct blob_piece p = { .size = (int64_t)content.len,
                            .stored = content,
                            .descriptor = descriptor };
    struct bytes packed = bytes_of(NULL, 0);
    uint8_t digest[SHA256_LEN];

    if (content.len > CHUNK_MAX)
        return err_set(err, BELAY_MISUSE,
                       "blob: %zu bytes in one piece, at most %zu are taken",
                       content.len, CHUNK_MAX);
    belay_rc rc = sha256(content, digest, err);
    if (rc == BELAY_OK && compress)
        rc = pack_if_shorter(content, a, &packed, err);
    if (rc == BELAY_OK && content.len > 0)
        rc = space_mint(sp, "upl_", p.upload, err);
    if (rc)
        return rc;
    hex_encode(bytes_of(digest, sizeof(digest)), p.sha256);
    p.compressed = packed.len > 0;
    if (p.compressed)
        p.stored = packed;
    *out = p;
    return BELAY_OK;
}

belay_rc blob_put_in(struct txn *t, const struct blob_piece *piece, bool *out_existed)
{
    struct value key = value_str(piece->sha256);
    struct new_blob b = {
        .sha256 = piece->sha256,
        .upload = piece->upload,
        .size = piece->size,
        .stored = (int64_t)piece->stored.len,
        .chunks = piece->stored.len > 0,
        .packed = piece->compressed,
        .descriptor = piece->descriptor,
    };
    const struct row *row;

    belay_rc rc = txn_get(t, &row_blob, &key, &row);
    if (rc)
        return rc;
    if (out_existed)
        *out_existed = row != NULL;
    if (row)
        return touch_row(t, row);
    if (b.chunks > 0)
        rc = txn_chunk_put(t, bytes_str(piece->upload), 0, piece->stored);
    return rc ? rc : insert_blob(t, &b);
}

belay_rc blob_touch(struct txn *t, const char *sha256_hex, bool *out_found)
{
    struct value key = value_str(sha256_hex);
    const struct row *row = NULL;
    belay_rc rc = BELAY_OK;

    if (blob_is_name(key.b))
        rc = txn_get(t, &row_blob, &key, &row);
    if (rc)
        return rc;
    *out_found = row != NULL;
    return row ? touch_row(t, row) : BELAY_OK;
}
