/* Removing: blobs in somebody's body, uploads that nobody finished. */
#include "store/blob_impl.h"

#define SWEEP_PAGE 64

/* --- blobs --- */

/* The chunks become an upload that began before everything: the sweep drops them, a
 * bounded number at a time. */
static belay_rc leave_to_sweep(struct txn *t, const struct blob_form *form)
{
    belay_rc rc = txn_insert(t, &row_upload,
                             (const struct value[UPLOAD_COLUMNS]){
                                 [UPLOAD_ID] = value_text(form->upload),
                                 [UPLOAD_CHUNKS] = value_i64(form->chunks),
                                 [UPLOAD_STARTED_AT_MS] = value_i64(0),
                             });

    return rc ? rc : txn_rank_add(t, bytes_str(UPLOAD_INDEX), 0, form->upload);
}

static belay_rc drop_chunks(struct txn *t, struct bytes upload, int64_t from,
                            int64_t to)
{
    belay_rc rc = BELAY_OK;

    for (int64_t i = from; i < to && rc == BELAY_OK; i++)
        rc = txn_chunk_drop(t, upload, i);
    return rc;
}

belay_rc blob_remove_in(struct txn *t, const struct row *blob)
{
    struct value key = blob->v[BLOB_SHA256];
    struct value touched = blob->v[BLOB_TOUCHED_AT_MS];
    struct blob_form form;

    belay_rc rc = blob_form_of(blob, &form, txn_error(t));
    /* What it is compressed by does not matter any more. */
    if (rc == BELAY_UNSUPPORTED_FORMAT)
        rc = BELAY_OK;
    if (rc == BELAY_OK)
        rc = form.chunks > BLOB_DROP_MAX ? leave_to_sweep(t, &form)
                                         : drop_chunks(t, form.upload, 0, form.chunks);
    if (rc == BELAY_OK)
        rc = txn_delete(t, &row_blob, &key);
    if (rc || touched.kind == VALUE_NULL) /* older than the index, so not in it */
        return rc;
    return txn_rank_remove(t, bytes_str(BLOB_INDEX), touched.i, key.b);
}

/* --- uploads --- */

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

    int64_t chunks = row_i64(row, UPLOAD_CHUNKS, 0), left = chunks - BLOB_DROP_MAX;
    if (left < 0)
        left = 0;
    rc = drop_chunks(t, m->upload, left, chunks);
    if (rc)
        return rc;
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
