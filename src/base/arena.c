#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

/* Two arenas behind one header: the one that is fast, and the one that lets the address
 * sanitizer see every piece. */
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_OF_PIECES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_OF_PIECES 1
#endif
#endif

#ifndef ARENA_OF_PIECES

#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_GROWN ((size_t)1 << 20)
#define ALIGN alignof(max_align_t)

/* The chain runs from the oldest block to the newest; those behind `last` are spare. */
struct arena_block {
    struct arena_block *next;
    size_t cap; /* bytes of data; a multiple of ALIGN */
    alignas(max_align_t) uint8_t data[];
};

/* Block sizes are powers of two: pieces that grow a little with every use find the
 * block of the last use, and do not leave a trail of blocks that are just too small. */
static struct arena_block *block_new(const struct arena_block *before, size_t need)
{
    if (need > PTRDIFF_MAX / 2)
        return NULL;

    size_t size = before ? (before->cap + sizeof(*before)) * 2 : BLOCK_FIRST;
    if (size > BLOCK_GROWN)
        size = BLOCK_GROWN;
    while (size < need + sizeof(struct arena_block))
        size *= 2;

    struct arena_block *b = malloc(size);
    if (b)
        b->cap = size - sizeof(struct arena_block);
    return b;
}

/* Makes a block with room for `size` bytes the one in use: the first spare that is
 * large enough, or a new one.  Smaller spares stay behind it. */
static bool next_block(struct belay_arena *a, size_t size)
{
    struct arena_block **link = a->last ? &a->last->next : &a->first;
    struct arena_block **at = link;

    while (*at && (*at)->cap < size)
        at = &(*at)->next;

    struct arena_block *b = *at;
    if (b)
        *at = b->next;
    else
        b = block_new(a->last, size);
    if (!b)
        return false;

    b->next = *link;
    *link = b;
    a->last = b;
    a->used = 0;
    return true;
}

void *arena_alloc(struct belay_arena *a, size_t size)
{
    if (!a->last || size > a->last->cap - a->used) {
        if (!next_block(a, size))
            return NULL;
    }
    /* cap and used are multiples of ALIGN, so what fits also fits rounded up. */
    void *piece = a->last->data + a->used;
    a->used += (size + ALIGN - 1) & ~(ALIGN - 1);
    return piece;
}

void arena_rewind(struct belay_arena *a, struct arena_mark mark)
{
    a->last = mark.last;
    a->used = mark.used;
}

void arena_release(struct belay_arena *a)
{
    struct arena_block *b = a->first;

    while (b) {
        struct arena_block *next = b->next;
        if (b != a->room)
            free(b);
        b = next;
    }
    arena_init(a);
}

void arena_init_in(struct belay_arena *a, void *room, size_t size)
{
    struct arena_block *b = room;

    arena_init(a);
    if (size < sizeof(*b))
        return;
    b->next = NULL;
    b->cap = (size - sizeof(*b)) & ~(ALIGN - 1);
    a->first = b;
    a->room = room;
}

#else /* ARENA_OF_PIECES */

/* The chain runs from the newest piece to the oldest. */
struct arena_block {
    struct arena_block *older;
    alignas(max_align_t) uint8_t data[];
};

void *arena_alloc(struct belay_arena *a, size_t size)
{
    if (size > PTRDIFF_MAX / 2)
        return NULL;

    struct arena_block *b = malloc(sizeof(*b) + size);
    if (!b)
        return NULL;
    b->older = a->last;
    a->last = b;
    return b->data;
}

void arena_rewind(struct belay_arena *a, struct arena_mark mark)
{
    while (a->last != mark.last) {
        struct arena_block *b = a->last;
        a->last = b->older;
        free(b);
    }
}

void arena_release(struct belay_arena *a)
{
    arena_reset(a);
}

void arena_init_in(struct belay_arena *a, void *room, size_t size)
{
    (void)room;
    (void)size;
    arena_init(a);
}

#endif /* ARENA_OF_PIECES */

void arena_init(struct belay_arena *a)
{
    *a = (struct belay_arena){ 0 };
}

void *arena_zalloc(struct belay_arena *a, size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        return NULL;
    void *piece = arena_alloc(a, total);
    if (piece)
        memset(piece, 0, total);
    return piece;
}

bool arena_copy(struct belay_arena *a, struct bytes b, struct bytes *out)
{
    if (b.len == SIZE_MAX)
        return false;
    uint8_t *copy = arena_alloc(a, b.len + 1);
    if (!copy)
        return false;
    if (b.len > 0)
        memcpy(copy, b.ptr, b.len);
    copy[b.len] = '\0';
    *out = bytes_of(copy, b.len);
    return true;
}

struct arena_mark arena_mark(const struct belay_arena *a)
{
    return (struct arena_mark){ .last = a->last, .used = a->used };
}

void arena_reset(struct belay_arena *a)
{
    arena_rewind(a, (struct arena_mark){ 0 });
}
