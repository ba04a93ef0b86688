#include "store/blob.h"

#include <stdlib.h>
#include <strings.h>

/* Bounds of one transaction of the sweep: what it drops, and what it looks at. */
#define SWEEP_CHUNKS 16
#define SWEEP_PAGE 64

struct blob_writer {
    struct space *sp;
    const struct txn_options *options;
    struct belay_arena arena; /* of one transaction at a time */
    struct sha256_stream *hash;
    uint8_t *chunk; /* CHUNK_MAX bytes */
    size_t used;    /* of them, not committed yet */
    int64_t chunks; /* committed */
    int64_t size;   /* taken so far */
    char upload[ID_MAX];
    bool over; /* only close is left */
};

struct blob_reader {
    struct space *sp;
    const struct txn_options *options;
    struct belay_arena arena; /* the upload's name, then the piece given last */
    struct arena_mark piece;
    struct sha256_stream *hash;
    char sha256[SHA256_HEX_LEN + 1];
    struct bytes upload;
    int64_t size, chunks; /* as the blob row says */
    int64_t next, taken;  /* chunks and bytes read so far */
    bool checked;         /* all of it is here and has the right digest */
    bool broken;          /* it is not, or that cannot be told any more */
};

static belay_rc finish_hex(struct sha256_stream *s, char out[SHA256_HEX_LEN + 1],
                           struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];
    belay_rc rc = sha256_finish(s, digest, err);

    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

/* --- writing --- */

belay_rc blob_writer_open(struct blob_writer **out, struct space *sp,
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
    if (rc) {
        blob_writer_close(w);
        return rc;
    }
    *out = w;
    return BELAY_OK;
}

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
    w->used = 0;
    return BELAY_OK;
}

static belay_rc take(struct blob_writer *w, struct bytes data, struct belay_error *err)
{
    while (data.len > 0) {
        size_t room = CHUNK_MAX - w->used;
        struct bytes part = bytes_of(data.ptr, data.len < room ? data.len : room);

        belay_rc rc = sha256_update(w->hash, part, err);
        if (rc)
            return rc;
        memcpy(w->chunk + w->used, part.ptr, part.len);
        w->used += part.len;
        w->size += (int64_t)part.len;
        data = bytes_of(data.ptr + part.len, data.len - part.len);
        if (w->used == CHUNK_MAX)
            rc = flush(w, err);
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

belay_rc blob_write(struct blob_writer *w, struct bytes data, struct belay_error *err)
{
    belay_rc rc;

    if (w->over)
        return err_set(err, BELAY_MISUSE, "blob: this writer has finished or failed");
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
    int64_t now_ms;

    /* Nothing was uploaded for a blob of nothing. */
    belay_rc rc = txn_get_many(t, wants, w->chunks > 0 ? 2 : 1, rows);
    if (rc)
        return rc;
    f->info.existed = rows[0] != NULL;
    if (f->info.existed)
        return BELAY_OK;
    if (w->chunks > 0)
        rc = close_upload(t, w, rows[1]);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    bool described = f->descriptor.len > 0;
    return txn_insert(
        t, &row_blob,
        (const struct value[BLOB_COLUMNS]){
            [BLOB_SHA256] = sha,
            [BLOB_UPLOAD] = upload,
            [BLOB_SIZE] = value_i64(w->size),
            [BLOB_CHUNKS] = value_i64(w->chunks),
            [BLOB_DESCRIPTOR] = described ? value_json(f->descriptor) : value_null(),
            [BLOB_CREATED_AT_MS] = value_i64(now_ms),
        });
}

belay_rc blob_finish(struct blob_writer *w, struct bytes descriptor, const char *expect,
                     struct blob_info *out, struct belay_error *err)
{
    struct finish f = { .w = w, .descriptor = descriptor, .info.size = w->size };

    if (w->over)
        return err_set(err, BELAY_MISUSE, "blob: this writer has finished or failed");
    w->over = true;
    belay_rc rc = finish_hex(w->hash, f.info.sha256, err);
    if (rc)
        return rc;
    if (expect && strcasecmp(expect, f.info.sha256) != 0)
        return err_reason(err, BELAY_INVALID, "hash_mismatch",
                          "blob: sha256 is %s, not the one expected", f.info.sha256);
    if (w->used > 0)
        rc = flush(w, err);
    if (rc == BELAY_OK)
        rc = txn_run(w->sp, finish_body, &f, w->options, &w->arena, err);
    if (rc)
        return rc;
    *out = f.info;
    return BELAY_OK;
}

void blob_writer_close(struct blob_writer *w)
{
    if (!w)
        return;
    sha256_close(w->hash);
    arena_release(&w->arena);
    free(w->chunk);
    free(w);
}

/* --- reading --- */

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
    r->upload = row_bytes(row, BLOB_UPLOAD);
    r->size = row_i64(row, BLOB_SIZE, -1);
    r->chunks = row_i64(row, BLOB_CHUNKS, -1);

    int64_t chunk = (int64_t)CHUNK_MAX;
    bool possible = r->size >= 0 && r->size <= BLOB_SIZE_MAX &&
                    r->chunks == (r->size + chunk - 1) / chunk;
    if (!possible)
        return txn_fail(t, BELAY_CORRUPT, "", "blob %s: %lld bytes in %lld chunks",
                        r->sha256, (long long)r->size, (long long)r->chunks);
    return BELAY_OK;
}

static bool is_name(const char *text)
{
    return strlen(text) == SHA256_HEX_LEN &&
           strspn(text, "0123456789abcdef") == SHA256_HEX_LEN;
}

belay_rc blob_reader_open(struct blob_reader **out, struct space *sp,
                          const char *sha256_hex, const struct txn_options *options,
                          struct belay_error *err)
{
    if (!is_name(sha256_hex)) {
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
    if (rc) {
        blob_reader_close(r);
        return rc;
    }
    r->piece = arena_mark(&r->arena);
    *out = r;
    return BELAY_OK;
}

int64_t blob_reader_size(const struct blob_reader *r)
{
    return r->size;
}

struct piece {
    const struct blob_reader *r;
    struct bytes data;
};

/* A chunk belongs to its blob: who misses one asks whether the blob is still the one
 * that was opened, before calling it damaged. */
static belay_rc piece_body(struct txn *t, void *arg)
{
    struct piece *p = arg;
    const struct blob_reader *r = p->r;
    struct value key = value_str(r->sha256);
    const struct row *row;
    bool found;

    belay_rc rc = txn_chunk_get(t, r->upload, r->next, &found, &p->data);
    if (rc || found)
        return rc;
    rc = txn_get(t, &row_blob, &key, &row);
    if (rc)
        return rc;
    if (!row || !bytes_eq(row_bytes(row, BLOB_UPLOAD), r->upload))
        return no_blob(t, r->sha256, "removed while it was read");
    return txn_fail(t, BELAY_CORRUPT, "missing_chunk", "blob %s: chunk %lld is missing",
                    r->sha256, (long long)r->next);
}

static belay_rc other_bytes(const struct blob_reader *r, const char *why,
                            struct belay_error *err)
{
    return err_reason(err, BELAY_CORRUPT, "hash_mismatch", "blob %s: %s", r->sha256,
                      why);
}

/* Counts the piece in, and checks the digest once the last one is in. */
static belay_rc check_piece(struct blob_reader *r, struct bytes piece,
                            struct belay_error *err)
{
    char hex[SHA256_HEX_LEN + 1];

    if (r->chunks > 0) {
        int64_t left = r->size - r->taken, chunk = (int64_t)CHUNK_MAX;
        if (piece.len != (uint64_t)(left < chunk ? left : chunk))
            return other_bytes(r, "a chunk of the wrong length", err);
        belay_rc rc = sha256_update(r->hash, piece, err);
        if (rc)
            return rc;
        r->taken += (int64_t)piece.len;
        r->next++;
    }
    if (r->next < r->chunks)
        return BELAY_OK;
    belay_rc rc = finish_hex(r->hash, hex, err);
    if (rc)
        return rc;
    if (strcmp(hex, r->sha256) != 0)
        return other_bytes(r, "the content has another digest", err);
    r->checked = true;
    return BELAY_OK;
}

belay_rc blob_read(struct blob_reader *r, struct bytes *out, struct belay_error *err)
{
    struct piece p = { .r = r };
    belay_rc rc = BELAY_OK;

    if (r->broken)
        return err_set(err, BELAY_MISUSE, "blob: reading it has failed before");
    arena_rewind(&r->arena, r->piece);
    if (r->checked) {
        *out = bytes_of(NULL, 0);
        return BELAY_OK;
    }
    if (r->chunks > 0)
        rc = txn_run(r->sp, piece_body, &p, r->options, &r->arena, err);
    if (rc)
        return rc; /* nothing was counted in: the same piece may be asked for again */
    rc = check_piece(r, p.data, err);
    if (rc) {
        r->broken = true;
        return rc;
    }
    *out = p.data;
    return BELAY_OK;
}

void blob_reader_close(struct blob_reader *r)
{
    if (!r)
        return;
    sha256_close(r->hash);
    arena_release(&r->arena);
    free(r);
}

/* --- the sweep --- */

struct page {
    struct scan scan;
    struct hits hits;
};

static belay_rc page_body(struct txn *t, void *arg)
{
    struct page *p = arg;

    return txn_scan(t, &p->scan, &p->hits);
}

struct removal {
    struct bytes upload;
    int64_t before_ms;
    bool more; /* chunks are left */
    bool gone; /* this run removed the last of it */
};

/* Chunks go from the top and the row says how many are left, so that a sweep which
 * stops half-way is taken up by the next one, and the writer finds out. */
static belay_rc removal_body(struct txn *t, void *arg)
{
    struct removal *m = arg;
    struct value key = value_text(m->upload);
    const struct row *row;

    m->more = m->gone = false;
    belay_rc rc = txn_get(t, &row_upload, &key, &row);
    if (rc || !row)
        return rc; /* finished, or swept by somebody else */
    int64_t started_ms = row_i64(row, UPLOAD_STARTED_AT_MS, 0);
    if (started_ms >= m->before_ms)
        return BELAY_OK;

    int64_t chunks = row_i64(row, UPLOAD_CHUNKS, 0), left = chunks - SWEEP_CHUNKS;
    if (left < 0)
        left = 0;
    for (int64_t i = left; i < chunks; i++) {
        rc = txn_chunk_drop(t, m->upload, i);
        if (rc)
            return rc;
    }
    if (left > 0) {
        struct change change = { UPLOAD_CHUNKS, value_i64(left) };
        m->more = true;
        return txn_put(t, &row_upload, &key, &change, 1);
    }
    m->gone = true;
    rc = txn_delete(t, &row_upload, &key);
    if (rc)
        return rc;
    return txn_rank_remove(t, bytes_str(UPLOAD_INDEX), started_ms, m->upload);
}

static belay_rc sweep_page(struct space *sp, const struct hits *hits, int64_t before_ms,
                           size_t *swept, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };

    for (size_t i = 0; i < hits->n; i++) {
        struct removal m = { .upload = hits->hit[i].member, .before_ms = before_ms };
        do {
            belay_rc rc = txn_run(sp, removal_body, &m, NULL, &a, err);
            if (rc)
                return rc;
            arena_reset(&a);
        } while (m.more);
        *swept += m.gone;
    }
    return BELAY_OK;
}

belay_rc blob_sweep_uploads(struct space *sp, int64_t before_ms, size_t limit,
                            size_t *out_swept, struct belay_error *err)
{
    struct bytes index = bytes_str(UPLOAD_INDEX);
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    struct scan_cursor after = { .index = index };
    uint8_t member[SCHEMA_NAME_MAX]; /* of the cursor: it outlives its page */
    struct page p = { 0 };
    size_t swept = 0;

    if (before_ms <= 0) { /* time begins at 0 */
        *out_swept = 0;
        return BELAY_OK;
    }
    p.scan = (struct scan){
        .indexes = &index,
        .n_indexes = 1,
        .max_rank = before_ms > RANK_MAX ? RANK_MAX : before_ms - 1,
    };
    while (swept < limit) {
        size_t wanted = limit - swept;
        p.scan.limit = wanted < SWEEP_PAGE ? wanted : SWEEP_PAGE;
        belay_rc rc = txn_run(sp, page_body, &p, NULL, &a, err);
        if (rc == BELAY_OK)
            rc = sweep_page(sp, &p.hits, before_ms, &swept, err);
        if (rc)
            return rc;
        if (p.hits.n < p.scan.limit)
            break;
        /* Behind what was seen, not from the start again: an upload that could not be
         * removed must not be met for ever. */
        const struct hit *last = &p.hits.hit[p.hits.n - 1];
        memcpy(member, last->member.ptr, last->member.len);
        after.rank = last->rank;
        after.member = bytes_of(member, last->member.len);
        p.scan.after = &after;
        arena_reset(&a);
    }
    *out_swept = swept;
    return BELAY_OK;
}
