#include "store/pack.h"

#include <stdlib.h>

#define ZLIB_CONST /* zlib does not write to its input, and says so only if asked */
#include <zlib.h>

/* zlib counts in unsigned int. */
#define STEP_MAX ((size_t)1 << 30)

/* Of a window that much is not looked back at. */
#define WINDOW_LOST 262

struct packer {
    z_stream z;
};

struct unpacker {
    z_stream z;
    int64_t left; /* that the stream still has to yield */
    bool done;
};

/* zlib's memory comes from where ours does. */
static void *give_memory(void *opaque, uInt n, uInt size)
{
    (void)opaque;
    return calloc(n, size);
}

static void take_memory(void *opaque, void *memory)
{
    (void)opaque;
    free(memory);
}

static const z_stream fresh = { .zalloc = give_memory, .zfree = take_memory };

/* A step of zlib's: *in moves on, *made is set. */
static int step(z_stream *z, int (*fn)(z_stream *z, int flush), int flush,
                struct bytes *in, uint8_t *out, size_t room, size_t *made)
{
    size_t len = in->len < STEP_MAX ? in->len : STEP_MAX;

    if (room > STEP_MAX)
        room = STEP_MAX;
    z->next_in = in->ptr;
    z->avail_in = (uInt)len;
    z->next_out = out;
    z->avail_out = (uInt)room;
    int rc = fn(z, flush);
    size_t taken = len - z->avail_in;
    if (taken > 0)
        *in = bytes_of(in->ptr + taken, in->len - taken);
    *made = room - z->avail_out;
    return rc;
}

/* --- packing --- */

/* zlib's tables, which it clears first, are made for long streams: what is known to be
 * short gets small ones. */
static int window_bits(size_t len)
{
    int bits = 9;

    while (bits < MAX_WBITS && ((size_t)1 << bits) < len + WINDOW_LOST)
        bits++;
    return bits;
}

static belay_rc open_packer(struct packer **out, int bits, struct belay_error *err)
{
    struct packer *p = malloc(sizeof(*p));
    int level = bits > 14 ? 8 : bits - 6; /* 8 is what zlib takes by itself */

    if (!p)
        return err_no_memory(err, "compressing");
    p->z = fresh;
    if (deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, level,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(p);
        return err_no_memory(err, "compressing");
    }
    *out = p;
    return BELAY_OK;
}

belay_rc packer_open(struct packer **out, struct belay_error *err)
{
    return open_packer(out, MAX_WBITS, err);
}

belay_rc packer_take(struct packer *p, struct bytes *in, uint8_t *out, size_t room,
                     size_t *made, struct belay_error *err)
{
    *made = 0;
    while (in->len > 0 && *made < room) {
        size_t n;
        int rc = step(&p->z, deflate, Z_NO_FLUSH, in, out + *made, room - *made, &n);
        *made += n;
        if (rc != Z_OK && rc != Z_BUF_ERROR)
            return err_set(err, BELAY_MISUSE, "compressing: this stream has ended");
    }
    return BELAY_OK;
}

belay_rc packer_finish(struct packer *p, uint8_t *out, size_t room, size_t *made,
                       bool *done, struct belay_error *err)
{
    struct bytes nothing = bytes_of(NULL, 0);
    int rc = step(&p->z, deflate, Z_FINISH, &nothing, out, room, made);

    *done = rc == Z_STREAM_END;
    if (rc != Z_STREAM_END && rc != Z_OK && rc != Z_BUF_ERROR)
        return err_set(err, BELAY_MISUSE, "compressing: this stream has ended");
    return BELAY_OK;
}

void packer_close(struct packer *p)
{
    if (!p)
        return;
    (void)deflateEnd(&p->z);
    free(p);
}

/* --- unpacking --- */

belay_rc unpacker_open(struct unpacker **out, int64_t size, struct belay_error *err)
{
    struct unpacker *u = malloc(sizeof(*u));

    if (!u)
        return err_no_memory(err, "uncompressing");
    *u = (struct unpacker){ .z = fresh, .left = size };
    if (inflateInit(&u->z) != Z_OK) {
        free(u);
        return err_no_memory(err, "uncompressing");
    }
    *out = u;
    return BELAY_OK;
}

static belay_rc damaged(const char *why, struct belay_error *err)
{
    return err_set(err, BELAY_CORRUPT, "compressed bytes: %s", why);
}

/* One call of inflate, with at most what is left to be made and one byte more: that
 * byte gives away a stream which yields too much, however much that would be. */
static belay_rc unpack_step(struct unpacker *u, struct bytes *in, uint8_t *out,
                            size_t room, size_t *made, struct belay_error *err)
{
    uint8_t spare;
    bool full = u->left <= 0;
    size_t most = full ? 1 : (uint64_t)u->left < room ? (size_t)u->left : room;
    int rc = step(&u->z, inflate, Z_NO_FLUSH, in, full ? &spare : out, most, made);

    if (full && *made > 0)
        return damaged("yield more than was stored", err);
    u->left -= (int64_t)*made;
    if (rc == Z_MEM_ERROR)
        return err_no_memory(err, "uncompressing");
    if (rc == Z_STREAM_END && u->left != 0)
        return damaged("yield less than was stored", err);
    u->done = rc == Z_STREAM_END;
    if (rc != Z_OK && rc != Z_BUF_ERROR && !u->done)
        return damaged("no stream of zlib, or a damaged one", err);
    return BELAY_OK;
}

belay_rc unpacker_take(struct unpacker *u, struct bytes *in, uint8_t *out, size_t room,
                       size_t *made, struct belay_error *err)
{
    *made = 0;
    /* With all of the content out there is still the stream's end to take in; with all
     * of the input in there may still be something to come out. */
    while (!u->done && (*made < room || u->left == 0)) {
        size_t before = in->len, n;
        belay_rc rc = unpack_step(u, in, out + *made, room - *made, &n, err);
        if (rc)
            return rc;
        *made += n;
        if (n == 0 && in->len == before)
            break;
    }
    return u->done && in->len > 0 ? damaged("something stands behind their end", err)
                                  : BELAY_OK;
}

bool unpacker_is_done(const struct unpacker *u)
{
    return u->done;
}

void unpacker_close(struct unpacker *u)
{
    if (!u)
        return;
    (void)inflateEnd(&u->z);
    free(u);
}

/* --- all at once --- */

static belay_rc pack_into(struct packer *p, struct bytes in, uint8_t *out, size_t room,
                          size_t *made, bool *done, struct belay_error *err)
{
    size_t rest = 0;

    *done = false;
    belay_rc rc = packer_take(p, &in, out, room, made, err);
    if (rc || in.len > 0)
        return rc;
    if (*made < room)
        rc = packer_finish(p, out + *made, room - *made, &rest, done, err);
    *made += rest;
    return rc;
}

belay_rc pack_if_shorter(struct bytes in, struct belay_arena *a, struct bytes *out,
                         struct belay_error *err)
{
    struct arena_mark mark = arena_mark(a);
    struct packer *p;
    size_t made;
    bool done;

    *out = bytes_of(NULL, 0);
    if (in.len == 0)
        return BELAY_OK;
    uint8_t *room = arena_alloc(a, in.len);
    if (!room)
        return err_no_memory(err, "compressing");
    belay_rc rc = open_packer(&p, window_bits(in.len), err);
    if (rc)
        return rc;
    rc = pack_into(p, in, room, in.len - 1, &made, &done, err);
    packer_close(p);
    if (rc == BELAY_OK && done)
        *out = bytes_of(room, made);
    else
        arena_rewind(a, mark);
    return rc;
}

belay_rc unpack_all(struct bytes in, size_t size, struct belay_arena *a,
                    struct bytes *out, struct belay_error *err)
{
    uint8_t *room = arena_alloc(a, size + 1);
    struct unpacker *u;
    size_t made;

    if (!room)
        return err_no_memory(err, "uncompressing");
    belay_rc rc = unpacker_open(&u, (int64_t)size, err);
    if (rc)
        return rc;
    rc = unpacker_take(u, &in, room, size, &made, err);
    if (rc == BELAY_OK && !unpacker_is_done(u))
        rc = damaged("cut off", err);
    unpacker_close(u);
    if (rc)
        return rc;
    room[size] = 0;
    *out = bytes_of(room, size);
    return BELAY_OK;
}
