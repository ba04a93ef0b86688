/* test_store_blob.h - a memory store seen through a trace and through faults, and blobs
 * in it looked at and damaged. */
#ifndef TEST_STORE_BLOB_H
#define TEST_STORE_BLOB_H

#include <stdlib.h>

#include "base/clock.h"
#include "store/blob.h"
#include "store/drivers/memory.h"
#include "store/fault.h"
#include "store/trace.h"
#include "tap.h"

#define START_MS ((int64_t)1700000000000)

/* --- a clock that is set by hand --- */

struct hand_clock {
    int64_t us;
};

static inline int64_t hand_wall_ms(void *arg)
{
    return START_MS + ((const struct hand_clock *)arg)->us / 1000;
}

static inline int64_t hand_mono_us(void *arg)
{
    return ((const struct hand_clock *)arg)->us;
}

static inline void hand_sleep_us(void *arg, int64_t us)
{
    ((struct hand_clock *)arg)->us += us;
}

/* --- fault over trace over memory, and a store on top --- */

struct fixture {
    struct hand_clock time;
    struct belay_clock clock;
    struct driver *memory, *trace, *fault;
    struct store *store;
    struct space *sp;
    unsigned largest; /* effects in one commit */
    bool compress;    /* what put_in asks for */
    struct belay_arena arena;
    struct belay_error err;
};

/* Learns from the trace how large the plans are. */
static inline void watch(void *arg, const char *line)
{
    const char *effects = strstr(line, " effects=");
    unsigned n = effects ? (unsigned)strtoul(effects + 9, NULL, 10) : 0;

    if (n > *(unsigned *)arg)
        *(unsigned *)arg = n;
}

static inline void set_up(struct tap *t, struct fixture *f)
{
    *f = (struct fixture){ 0 };
    f->clock =
        (struct belay_clock){ hand_wall_ms, hand_mono_us, hand_sleep_us, &f->time };
    struct driver_config config = { &schema_belay, f->clock, random_system() };
    struct store_options options = { .schema = &schema_belay,
                                     .clock = f->clock,
                                     .random = random_system() };

    if (memory_open(&f->memory, &config, &f->err) ||
        trace_wrap(&f->trace, f->memory, watch, &f->largest, &f->err) ||
        fault_wrap(&f->fault, f->trace, &f->clock, &f->err) ||
        store_open(&f->store, f->fault, &options, &f->err) ||
        store_space(f->store, bytes_str("default"), &f->sp, &f->err)) {
        TAP_STR(t, f->err.message, "an open store");
        abort();
    }
}

static inline void tear_down(struct fixture *f)
{
    store_close(f->store);
    driver_close(f->fault);
    arena_release(&f->arena);
}

/* --- content --- */

/* Bytes that differ from chunk to chunk and from seed to seed. */
static inline uint8_t *content(size_t len, unsigned seed)
{
    uint8_t *data = malloc(len + 1);
    uint32_t x = seed * 2654435761U + 1;

    if (!data)
        abort();
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525U + 1013904223U;
        data[i] = (uint8_t)(x >> 24);
    }
    return data;
}

static inline void name_of(struct bytes data, char out[SHA256_HEX_LEN + 1])
{
    uint8_t digest[SHA256_LEN];

    if (sha256(data, digest, NULL))
        abort();
    hex_encode(bytes_of(digest, sizeof(digest)), out);
}

static inline belay_rc put_in(struct fixture *f, struct bytes data, size_t piece,
                              const char *descriptor, const char *expect,
                              struct blob_info *out)
{
    struct blob_writer *w;
    belay_rc rc = blob_writer_open(&w, f->sp, f->compress, NULL, &f->err);

    if (rc)
        return rc;
    for (size_t at = 0; at < data.len && !rc; at += piece) {
        size_t left = data.len - at;
        rc = blob_write(w, bytes_of(data.ptr + at, left < piece ? left : piece),
                        &f->err);
    }
    if (!rc)
        rc = blob_finish(w, bytes_str(descriptor), expect, out, &f->err);
    blob_writer_close(w);
    return rc;
}

static inline belay_rc put(struct fixture *f, struct bytes data, struct blob_info *out)
{
    return put_in(f, data, data.len > 0 ? data.len : 1, "", NULL, out);
}

/* Reads it all; `whole` when it was given to the end and is `want`. */
static inline belay_rc get(struct fixture *f, const char *name, struct bytes want,
                           bool *whole)
{
    struct blob_reader *r;
    size_t at = 0;

    *whole = false;
    belay_rc rc = blob_reader_open(&r, f->sp, name, NULL, &f->err);
    if (rc)
        return rc;
    bool same = blob_reader_size(r) == (int64_t)want.len;
    for (;;) {
        struct bytes piece;
        rc = blob_read(r, &piece, &f->err);
        if (rc || piece.len == 0)
            break;
        same = same && piece.len <= want.len - at &&
               memcmp(piece.ptr, want.ptr + at, piece.len) == 0;
        at += piece.len;
    }
    blob_reader_close(r);
    *whole = !rc && same && at == want.len;
    return rc;
}

/* --- looking at, and damaging, what is stored --- */

struct tally {
    unsigned blobs, uploads, chunks;
    unsigned ranks, blob_ranks; /* in the indexes of uploads and of blobs */
};

static inline belay_rc tally_item(void *arg, const struct item *item,
                                  struct belay_error *err)
{
    struct tally *n = arg;

    (void)err;
    n->blobs += item->kind == ITEM_ROW && item->row->type == &row_blob;
    n->uploads += item->kind == ITEM_ROW && item->row->type == &row_upload;
    n->ranks +=
        item->kind == ITEM_RANK && bytes_eq(item->name, bytes_str(UPLOAD_INDEX));
    n->blob_ranks +=
        item->kind == ITEM_RANK && bytes_eq(item->name, bytes_str(BLOB_INDEX));
    n->chunks += item->kind == ITEM_CHUNK;
    return BELAY_OK;
}

static inline void check_tally(struct tap *t, struct fixture *f, unsigned blobs,
                               unsigned uploads, unsigned chunks)
{
    struct tally n = { 0 };

    TAP_EQ(t, driver_walk(f->memory, bytes_str("default"), tally_item, &n, NULL),
           BELAY_OK);
    TAP_EQ(t, n.blobs, blobs);
    TAP_EQ(t, n.uploads, uploads);
    TAP_EQ(t, n.ranks, uploads);
    TAP_EQ(t, n.blob_ranks, blobs);
    TAP_EQ(t, n.chunks, chunks);
}

struct raw {
    const char *name;     /* of a blob */
    struct value *column; /* the blob's columns, copied out */
    int64_t ver;          /* and its version */
    const char *upload;
    int64_t index;
    struct bytes data;
    int64_t number;
    struct change change; /* of the blob's row */
};

static inline belay_rc run(struct fixture *f, txn_body *body, struct raw *raw)
{
    return txn_run(f->sp, body, raw, NULL, &f->arena, &f->err);
}

static inline belay_rc blob_row_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct value key = value_str(raw->name);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_blob, &key, &row);
    if (rc)
        return rc;
    if (!row)
        return txn_fail(t, BELAY_NOT_FOUND, "", "test: no such blob");
    memcpy(raw->column, row->v, BLOB_COLUMNS * sizeof(*row->v));
    raw->ver = row->ver;
    return BELAY_OK;
}

/* The upload that holds a blob's chunks; lives as long as the fixture's arena. */
static inline const char *upload_of(struct tap *t, struct fixture *f, const char *name)
{
    struct value column[BLOB_COLUMNS] = { 0 };
    struct bytes copy = { 0 };

    TAP_EQ(t, run(f, blob_row_body, &(struct raw){ .name = name, .column = column }),
           BELAY_OK);
    if (!arena_copy(&f->arena, column[BLOB_UPLOAD].b, &copy))
        abort();
    return (const char *)copy.ptr;
}

static inline belay_rc put_chunk_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;

    return txn_chunk_put(t, bytes_str(raw->upload), raw->index, raw->data);
}

static inline belay_rc drop_chunk_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;

    return txn_chunk_drop(t, bytes_str(raw->upload), raw->index);
}

static inline belay_rc remove_blob_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct value key = value_str(raw->name);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_blob, &key, &row);
    return rc || !row ? rc : blob_remove_in(t, row);
}

static inline belay_rc change_blob_body(struct txn *t, void *arg)
{
    struct raw *raw = arg;
    struct value key = value_str(raw->name);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_blob, &key, &row);
    return rc ? rc : txn_put(t, &row_blob, &key, &raw->change, 1);
}

/* Reads until it is found out to be damaged, after so many good pieces. */
static inline void check_corrupt(struct tap *t, struct fixture *f, const char *name,
                                 unsigned good_pieces, const char *reason)
{
    struct bytes piece = bytes_str("untouched");
    struct blob_reader *r;

    TAP_EQ(t, blob_reader_open(&r, f->sp, name, NULL, &f->err), BELAY_OK);
    for (unsigned i = 0; i < good_pieces; i++) {
        TAP_EQ(t, blob_read(r, &piece, &f->err), BELAY_OK);
        TAP_EQ(t, piece.len, CHUNK_MAX);
    }
    piece = bytes_str("untouched");
    TAP_EQ(t, blob_read(r, &piece, &f->err), BELAY_CORRUPT);
    TAP_EQ(t, f->err.code, BELAY_CORRUPT);
    TAP_STR(t, f->err.reason, reason);
    TAP_OK(t, bytes_eq(piece, bytes_str("untouched")));
    TAP_OK(t, blob_read(r, &piece, &f->err) != BELAY_OK); /* and never after */
    TAP_OK(t, bytes_eq(piece, bytes_str("untouched")));
    blob_reader_close(r);
}

#endif /* TEST_STORE_BLOB_H */
