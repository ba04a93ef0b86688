/* zlib's streams in pieces, whole, damaged and hostile. */
#include "store/pack.h"

#include <stdlib.h>

#include "base/rng.h"
#include "tap.h"

/* Content that shrinks a lot, a little, or not at all. */
enum kind { ZEROS, TEXT, NOISE, KINDS };

static uint8_t *content(size_t len, enum kind kind)
{
    static const char words[] = "a blob is named by its digest, whole or not at all; ";
    uint8_t *data = malloc(len + 1);
    struct rng rng;

    if (!data)
        abort();
    rng_init(&rng, len);
    for (size_t i = 0; i < len; i++) {
        uint64_t x = rng_next(&rng);
        data[i] = kind == ZEROS  ? 0
                  : kind == TEXT ? (uint8_t)words[(i + x % 3) % (sizeof(words) - 1)]
                                 : (uint8_t)x;
    }
    return data;
}

/* Appends what the packer makes of the part, `room` bytes at a time. */
static void pack_part(struct tap *t, struct packer *p, struct bytes part, size_t room,
                      struct buf *out)
{
    uint8_t *made_here = malloc(room);
    size_t made;

    while (part.len > 0) {
        TAP_EQ(t, packer_take(p, &part, made_here, room, &made, NULL), BELAY_OK);
        buf_append(out, bytes_of(made_here, made));
    }
    free(made_here);
}

static void pack(struct tap *t, struct bytes all, size_t cut, size_t room,
                 struct buf *out)
{
    uint8_t *made_here = malloc(room);
    struct packer *p;
    size_t made;
    bool done = false;

    TAP_EQ(t, packer_open(&p, NULL), BELAY_OK);
    for (size_t at = 0; at < all.len; at += cut) {
        size_t left = all.len - at;
        pack_part(t, p, bytes_of(all.ptr + at, left < cut ? left : cut), room, out);
    }
    while (!done) {
        if (!TAP_EQ(t, packer_finish(p, made_here, room, &made, &done, NULL), BELAY_OK))
            break;
        buf_append(out, bytes_of(made_here, made));
    }
    packer_close(p);
    free(made_here);
}

/* Takes the stream in, `cut` bytes at a time and `room` out, and compares. */
static void unpack(struct tap *t, struct bytes stream, size_t cut, size_t room,
                   struct bytes want)
{
    uint8_t *made_here = malloc(room);
    struct unpacker *u;
    size_t made, at = 0;

    TAP_EQ(t, unpacker_open(&u, (int64_t)want.len, NULL), BELAY_OK);
    while (stream.len > 0) {
        struct bytes part = bytes_of(stream.ptr, stream.len < cut ? stream.len : cut);
        stream = bytes_of(stream.ptr + part.len, stream.len - part.len);
        do {
            if (!TAP_EQ(t, unpacker_take(u, &part, made_here, room, &made, NULL),
                        BELAY_OK))
                break;
            TAP_OK(t, made <= want.len - at &&
                          (made == 0 || !memcmp(made_here, want.ptr + at, made)));
            at += made;
        } while (made > 0);
        TAP_EQ(t, part.len, 0);
        TAP_EQ(t, unpacker_is_done(u), stream.len == 0);
    }
    TAP_EQ(t, at, want.len);
    unpacker_close(u);
    free(made_here);
}

static void test_pieces(struct tap *t)
{
    static const size_t sizes[] = { 0, 1, 300, 100000 };
    static const size_t cuts[] = { 1, 7, 4096, 1 << 20 };

    for (size_t i = 0; i < COUNT_OF(sizes) * KINDS; i++) {
        size_t len = sizes[i / KINDS];
        uint8_t *data = content(len, (enum kind)(i % KINDS));
        struct bytes all = bytes_of(data, len);
        for (size_t j = 0; j < COUNT_OF(cuts) * COUNT_OF(cuts); j++) {
            size_t in = cuts[j / COUNT_OF(cuts)], room = cuts[j % COUNT_OF(cuts)];
            struct buf stream = { 0 };
            if (len > 300 && (in < 4096 || room < 4096))
                continue; /* each byte by itself: of the short ones only */
            pack(t, all, in, room, &stream);
            unpack(t, buf_view(&stream), in, room, all);
            unpack(t, buf_view(&stream), room, in, all);
            buf_release(&stream);
        }
        free(data);
    }
}

static void test_if_shorter(struct tap *t)
{
    static const struct {
        size_t len;
        enum kind kind;
        bool shorter;
    } rows[] = {
        { 0, ZEROS, false },    { 1, ZEROS, false },  { 100, ZEROS, true },
        { 100000, TEXT, true }, { 10, NOISE, false }, { 100000, NOISE, false }
    };
    static const uint8_t zeros[64];
    struct belay_arena a = { 0 };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t *data = content(rows[i].len, rows[i].kind);
        struct bytes all = bytes_of(data, rows[i].len), packed, back;

        TAP_EQ(t, pack_if_shorter(all, &a, &packed, NULL), BELAY_OK);
        TAP_EQ(t, packed.len > 0, rows[i].shorter);
        if (packed.len > 0) {
            TAP_OK(t, packed.len < all.len);
            TAP_EQ(t, unpack_all(packed, all.len, &a, &back, NULL), BELAY_OK);
            TAP_OK(t, bytes_eq(back, all));
            TAP_EQ(t, back.ptr[back.len], 0);
        }
        free(data);
    }
    /* As long as it was is not shorter. */
    for (size_t len = 0; len < 64; len++) {
        struct bytes packed;
        TAP_EQ(t, pack_if_shorter(bytes_of(zeros, len), &a, &packed, NULL), BELAY_OK);
        TAP_OK(t, packed.len < len || len == 0);
    }
    arena_release(&a);
}

/* Around every size of window, up to content that is longer than the largest. */
static void test_windows(struct tap *t)
{
    struct belay_arena a = { 0 };

    for (size_t bits = 9; bits <= 17; bits++) {
        for (size_t len = ((size_t)1 << bits) - 262; len <= (size_t)1 << bits;
             len += len % 2 ? 261 : 1) {
            uint8_t *data = content(len, TEXT);
            struct bytes packed, back;

            if (len > 128)
                memcpy(data + len - 64, data, 64); /* as far back as it goes */
            TAP_EQ(t, pack_if_shorter(bytes_of(data, len), &a, &packed, NULL),
                   BELAY_OK);
            if (packed.len > 0 || len > 200) {
                TAP_OK(t, packed.len > 0);
                TAP_EQ(t, unpack_all(packed, len, &a, &back, NULL), BELAY_OK);
                TAP_OK(t, bytes_eq(back, bytes_of(data, len)));
            }
            free(data);
            arena_reset(&a);
        }
    }
    arena_release(&a);
}

/* A stream of 2000 bytes of text. */
static struct bytes sample(struct tap *t, struct belay_arena *a, size_t *out_size)
{
    uint8_t *data = content(2000, TEXT);
    struct bytes packed = { 0 };

    TAP_EQ(t, pack_if_shorter(bytes_of(data, 2000), a, &packed, NULL), BELAY_OK);
    TAP_OK(t, packed.len > 100);
    free(data);
    *out_size = 2000;
    return packed;
}

static void test_cut_off(struct tap *t)
{
    struct belay_arena a = { 0 };
    struct belay_error err;
    struct bytes back;
    size_t size;
    struct bytes stream = sample(t, &a, &size);

    for (size_t len = 0; len < stream.len; len++) {
        err = (struct belay_error){ .code = BELAY_OK };
        TAP_EQ(t, unpack_all(bytes_of(stream.ptr, len), size, &a, &back, &err),
               BELAY_CORRUPT);
        TAP_EQ(t, err.code, BELAY_CORRUPT);
    }
    arena_release(&a);
}

static void test_damaged(struct tap *t)
{
    struct belay_arena a = { 0 };
    struct bytes back, want = { 0 };
    unsigned harmless = 0;
    size_t size;
    struct bytes stream = sample(t, &a, &size), copy = { 0 };

    if (!arena_copy(&a, stream, &copy))
        abort();
    TAP_EQ(t, unpack_all(stream, size, &a, &want, NULL), BELAY_OK);
    uint8_t *bytes = (uint8_t *)copy.ptr;
    for (size_t bit = 0; bit < 8 * stream.len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        belay_rc rc = unpack_all(copy, size, &a, &back, NULL);
        TAP_OK(t, rc == BELAY_CORRUPT || (rc == BELAY_OK && bytes_eq(back, want)));
        harmless += rc == BELAY_OK;
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    TAP_OK(t, harmless <= 7); /* the bits that fill up the last byte of the blocks */
    TAP_EQ(t, unpack_all(bytes_str("no stream of zlib's"), 9, &a, &back, NULL),
           BELAY_CORRUPT);
    arena_release(&a);
}

static void test_behind(struct tap *t)
{
    struct belay_arena a = { 0 };
    struct buf twice = { 0 };
    struct unpacker *u;
    struct bytes back;
    size_t size, made;
    struct bytes stream = sample(t, &a, &size);
    uint8_t room[4096];

    buf_append(&twice, stream);
    buf_append(&twice, stream);
    for (size_t more = 1; more <= stream.len; more++)
        TAP_EQ(
            t,
            unpack_all(bytes_of(twice.ptr, stream.len + more), size, &a, &back, NULL),
            BELAY_CORRUPT);

    /* Also when it comes later. */
    TAP_EQ(t, unpacker_open(&u, (int64_t)size, NULL), BELAY_OK);
    TAP_EQ(t, unpacker_take(u, &stream, room, sizeof(room), &made, NULL), BELAY_OK);
    TAP_OK(t, unpacker_is_done(u) && made == size);
    stream = bytes_str("");
    TAP_EQ(t, unpacker_take(u, &stream, room, sizeof(room), &made, NULL), BELAY_OK);
    TAP_EQ(t, made, 0);
    stream = bytes_str("x");
    TAP_EQ(t, unpacker_take(u, &stream, room, sizeof(room), &made, NULL),
           BELAY_CORRUPT);
    unpacker_close(u);
    buf_release(&twice);
    arena_release(&a);
}

static void test_wrong_size(struct tap *t)
{
    static const int64_t sizes[] = { INT64_MIN, -1,   0,    1,        1999,
                                     2001,      4000, 4096, INT64_MAX };
    struct belay_arena a = { 0 };
    size_t size;
    struct bytes stream = sample(t, &a, &size);

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct bytes in = stream;
        struct unpacker *u;
        uint8_t room[4096];
        size_t made;

        TAP_EQ(t, unpacker_open(&u, sizes[i], NULL), BELAY_OK);
        TAP_EQ(t, unpacker_take(u, &in, room, sizeof(room), &made, NULL),
               BELAY_CORRUPT);
        TAP_OK(t, !unpacker_is_done(u));
        unpacker_close(u);
    }
    arena_release(&a);
}

/* 64 MiB of nothing in a few bytes: no more of it comes out than was said. */
static void test_bomb(struct tap *t)
{
    size_t len = (size_t)64 << 20;
    uint8_t *data = content(len, ZEROS);
    struct belay_arena a = { 0 };
    struct unpacker *u;
    struct bytes stream;
    uint8_t room[64];
    size_t made;

    TAP_EQ(t, pack_if_shorter(bytes_of(data, len), &a, &stream, NULL), BELAY_OK);
    TAP_OK(t, stream.len > 0 && stream.len < len / 900);
    memset(room, 0xee, sizeof(room));
    TAP_EQ(t, unpacker_open(&u, 40, NULL), BELAY_OK);
    TAP_EQ(t, unpacker_take(u, &stream, room, sizeof(room), &made, NULL),
           BELAY_CORRUPT);
    TAP_EQ(t, room[39], 0);
    TAP_EQ(t, room[40], 0xee);
    unpacker_close(u);
    free(data);
    arena_release(&a);
}

static const struct tap_case cases[] = {
    { "however a stream is cut, the content comes back", test_pieces },
    { "at once it is packed only if that is shorter", test_if_shorter },
    { "at once, content of any length comes back", test_windows },
    { "a stream that is cut off anywhere is corrupt", test_cut_off },
    { "a stream with a bit changed is corrupt, or means the same", test_damaged },
    { "anything behind the end is corrupt", test_behind },
    { "more or less content than was said is corrupt", test_wrong_size },
    { "a bomb does not go off", test_bomb },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
