/* Blobs and uploads against their chunks, which come last in a walk, by upload. */
#include <inttypes.h>

#include "store/blob_impl.h"
#include "work/check_impl.h"

/* Content of a compressed blob that is looked at at a time. */
#define UNPACKED ((size_t)64 << 10)

/* --- rows --- */

/* form: what its row says, or of an upload just the chunks; NULL: nothing that is of
 * use. */
static belay_rc add_upload(struct check *c, struct bytes id, struct bytes sha256,
                           const struct blob_form *form, struct belay_error *err)
{
    if (check_find(&c->uploads, id))
        return check_found(c, "bad_blob", id, err,
                           "upload: two blobs, or a blob and an upload, share it");
    struct check_blob *b = arena_zalloc(&c->arena, 1, sizeof(*b));
    if (!b || !arena_copy(&c->arena, id, &b->entry.key) ||
        !arena_copy(&c->arena, sha256, &b->sha256))
        return err_no_memory(err, "a check");
    b->opaque = !form;
    if (form) {
        b->size = form->size;
        b->stored = form->stored;
        b->chunks = form->chunks;
        b->packed = form->packed;
    }
    return check_add(&c->uploads, &b->entry, &c->arena) ? BELAY_OK
                                                        : err_no_memory(err, "a check");
}

static belay_rc check_empty(struct check *c, struct bytes sha256,
                            struct belay_error *err)
{
    static const char empty[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    if (bytes_eq(sha256, bytes_str(empty)))
        return BELAY_OK;
    return check_found(c, "hash_mismatch", sha256, err,
                       "blob: is empty, and that has another digest");
}

/* A row that cannot be read. */
static belay_rc bad_row(struct check *c, const struct row *row, belay_rc why,
                        const char *message, struct belay_error *err)
{
    struct bytes upload = row_bytes(row, BLOB_UPLOAD);
    belay_rc rc =
        check_found(c, why == BELAY_CORRUPT ? "bad_blob" : "unsupported_format",
                    row_bytes(row, BLOB_SHA256), err, "%s", message);

    return rc || upload.len == 0
               ? rc
               : add_upload(c, upload, row_bytes(row, BLOB_SHA256), NULL, err);
}

belay_rc check_blob_row(struct check *c, const struct row *row, struct belay_error *err)
{
    struct bytes sha256 = row_bytes(row, BLOB_SHA256);
    struct belay_error local = { .code = BELAY_OK };
    struct blob_form form;

    c->counts->blobs++;
    belay_rc rc = check_seen(c, TALLY_BLOB, sha256, 0, err);
    if (rc)
        return rc;
    rc = blob_form_of(row, &form, &local);
    if (rc)
        return bad_row(c, row, rc, local.message, err);
    return form.chunks == 0 ? check_empty(c, sha256, err)
                            : add_upload(c, form.upload, sha256, &form, err);
}

belay_rc check_upload_row(struct check *c, const struct row *row,
                          struct belay_error *err)
{
    struct blob_form form = { .chunks = row_i64(row, UPLOAD_CHUNKS, 0) };

    return add_upload(c, row_bytes(row, UPLOAD_ID), bytes_of(NULL, 0), &form, err);
}

/* --- chunks --- */

static struct bytes name_of(const struct check_blob *b)
{
    return b->sha256.len > 0 ? b->sha256 : b->entry.key;
}

/* Said once: there is nothing to compare any more. */
static void forget_content(struct check *c)
{
    sha256_close(c->hash);
    unpacker_close(c->unpacker);
    c->hash = NULL;
    c->unpacker = NULL;
}

static belay_rc finish_hash(struct check *c, const struct check_blob *b,
                            struct belay_error *err)
{
    char hex[SHA256_HEX_LEN + 1];
    belay_rc rc = blob_finish_hex(c->hash, hex, err);

    if (rc)
        return rc;
    if (c->taken != b->stored)
        return check_found(c, "wrong_size", b->sha256, err,
                           "blob: has %" PRId64 " bytes instead of %" PRId64, c->taken,
                           b->stored);
    if (c->unpacker && !unpacker_is_done(c->unpacker))
        return check_found(c, "hash_mismatch", b->sha256, err,
                           "blob: its compressed bytes are cut off");
    if (!bytes_eq(b->sha256, bytes_str(hex)))
        return check_found(c, "hash_mismatch", b->sha256, err,
                           "blob: the content has the digest %s", hex);
    return BELAY_OK;
}

/* The last chunk of the upload was seen. */
static belay_rc leave_blob(struct check *c, struct belay_error *err)
{
    const struct check_blob *b = c->blob;
    belay_rc rc = BELAY_OK;

    c->blob = NULL;
    if (!b)
        return BELAY_OK;
    if (c->next < b->chunks)
        rc = check_found(c, "missing_chunk", name_of(b), err,
                         "chunk %" PRId64 " of %" PRId64 " is missing", c->next,
                         b->chunks);
    else if (c->hash)
        rc = finish_hash(c, b, err);
    forget_content(c);
    return rc;
}

static belay_rc enter_blob(struct check *c, struct check_blob *b,
                           struct belay_error *err)
{
    c->blob = b;
    c->next = c->taken = 0;
    b->seen = true;
    if (b->sha256.len == 0 || b->opaque)
        return BELAY_OK;
    belay_rc rc = sha256_open(&c->hash, err);
    if (rc || !b->packed)
        return rc;
    if (!c->unpacked)
        c->unpacked = arena_alloc(&c->arena, UNPACKED);
    return c->unpacked ? unpacker_open(&c->unpacker, b->size, err)
                       : err_no_memory(err, "a check");
}

/* Once for each upload that nobody has. */
static belay_rc orphan(struct check *c, struct bytes upload, struct belay_error *err)
{
    if (c->orphan.len > 0 && bytes_eq(buf_view(&c->orphan), upload))
        return BELAY_OK;
    buf_reset(&c->orphan);
    buf_append(&c->orphan, upload);
    if (c->orphan.failed)
        return err_no_memory(err, "a check");
    return check_found(c, "orphan_chunk", upload, err,
                       "upload: has chunks and belongs to no blob or upload");
}

static belay_rc hash_packed(struct check *c, struct bytes data, struct belay_error *err)
{
    struct belay_error local = { .code = BELAY_OK };
    size_t made;

    do {
        belay_rc rc =
            unpacker_take(c->unpacker, &data, c->unpacked, UNPACKED, &made, &local);
        if (rc == BELAY_CORRUPT) {
            forget_content(c);
            return check_found(c, "hash_mismatch", c->blob->sha256, err, "blob: %s",
                               local.message);
        }
        if (rc && err)
            *err = local;
        if (rc == BELAY_OK)
            rc = sha256_update(c->hash, bytes_of(c->unpacked, made), err);
        if (rc)
            return rc;
    } while (made > 0);
    return BELAY_OK;
}

/* A chunk of the upload that is being seen. */
static belay_rc count_chunk(struct check *c, const struct item *item,
                            struct belay_error *err)
{
    struct check_blob *b = c->blob;

    if (b->opaque)
        return BELAY_OK;
    if (item->number >= b->chunks || item->number < 0)
        return check_found(c, "orphan_chunk", name_of(b), err,
                           "chunk %" PRId64 ": there should be %" PRId64, item->number,
                           b->chunks);
    if (item->number != c->next && c->next < b->chunks) {
        belay_rc rc = check_found(c, "missing_chunk", name_of(b), err,
                                  "chunk %" PRId64 " of %" PRId64 " is missing",
                                  c->next, b->chunks);
        c->next = b->chunks;
        forget_content(c);
        return rc;
    }
    c->next = item->number + 1 > c->next ? item->number + 1 : c->next;
    c->taken += (int64_t)item->data.len;
    if (!c->hash)
        return BELAY_OK;
    if (c->next < b->chunks && item->data.len != CHUNK_MAX)
        return check_found(c, "wrong_size", b->sha256, err,
                           "chunk %" PRId64 " has %zu bytes", item->number,
                           item->data.len);
    return c->unpacker ? hash_packed(c, item->data, err)
                       : sha256_update(c->hash, item->data, err);
}

belay_rc check_chunk(struct check *c, const struct item *item, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    c->counts->chunks++;
    if (c->blob && !bytes_eq(c->blob->entry.key, item->name))
        rc = leave_blob(c, err);
    if (rc)
        return rc;
    if (!c->blob) {
        struct check_blob *b = (struct check_blob *)check_find(&c->uploads, item->name);
        if (!b)
            return orphan(c, item->name, err);
        rc = enter_blob(c, b, err);
    }
    return rc ? rc : count_chunk(c, item, err);
}

belay_rc check_blobs_end(struct check *c, struct belay_error *err)
{
    belay_rc rc = leave_blob(c, err);

    for (size_t i = 0; i < c->uploads.n_buckets && rc == BELAY_OK; i++) {
        for (struct check_entry *e = c->uploads.buckets[i]; e && rc == BELAY_OK;
             e = e->next) {
            const struct check_blob *b = (const struct check_blob *)e;
            if (!b->seen && b->chunks > 0)
                rc = check_found(c, "missing_chunk", name_of(b), err,
                                 "none of %" PRId64 " chunks is there", b->chunks);
        }
    }
    return rc;
}

void check_blobs_release(struct check *c)
{
    forget_content(c);
}
