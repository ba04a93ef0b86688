#include "base/arena.h"

#include <stdalign.h>

#include "base/rng.h"
#include "tap.h"

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* Lets a request for too much memory fail under AddressSanitizer as it does without. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static bool is_aligned(const void *p)
{
    return (uintptr_t)p % alignof(max_align_t) == 0;
}

static void test_alignment(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };

    for (size_t size = 0; size < 100; size++) {
        void *p = arena_alloc(&a, size);
        if (!TAP_OK(t, p && is_aligned(p)))
            return;
        memset(p, 0xa5, size);
    }
}

static void test_init(struct tap *t)
{
    struct belay_arena a;

    memset(&a, 0x5a, sizeof(a));
    arena_init(&a);
    TAP_OK(t, !a.first && !a.last && a.used == 0);
    TAP_OK(t, arena_alloc(&a, 0));
    arena_release(&a);
    TAP_OK(t, !a.first && !a.last && a.used == 0);
    arena_release(&a);
    TAP_OK(t, arena_alloc(&a, 10)); /* usable again */
    arena_release(&a);
}

/* A piece filled with a pattern of its own. */
struct piece {
    uint8_t *ptr;
    size_t len;
    uint8_t fill;
};

static bool piece_is_whole(const struct piece *p)
{
    for (size_t i = 0; i < p->len; i++) {
        if (p->ptr[i] != p->fill)
            return false;
    }
    return true;
}

static void test_pieces_do_not_overlap(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct piece pieces[500];
    struct rng r;

    rng_init(&r, 1);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        size_t len = rng_below(&r, 10) == 0 ? rng_below(&r, 20000) : rng_below(&r, 200);
        pieces[i] = (struct piece){ arena_alloc(&a, len), len, (uint8_t)i };
        if (!TAP_OK(t, pieces[i].ptr))
            return;
        memset(pieces[i].ptr, pieces[i].fill, len);
    }
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        TAP_OK(t, piece_is_whole(&pieces[i]));
}

static void test_big_pieces(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    static const size_t sizes[] = { 4080, 4081, 4096, 100000, 1 << 20, 3 << 20 };

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *small = arena_alloc(&a, 1);
        uint8_t *big = arena_alloc(&a, sizes[i]);
        if (!TAP_OK(t, small && big))
            return;
        *small = 1;
        memset(big, 2, sizes[i]);
        TAP_EQ(t, *small, 1);
        TAP_EQ(t, big[sizes[i] - 1], 2);
    }
}

static void test_no_memory(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct bytes poison = bytes_str("poison"), out = poison;
    static const size_t sizes[] = {
        SIZE_MAX,     SIZE_MAX - 15, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX,
        SIZE_MAX / 4, SIZE_MAX / 8
    };

    for (unsigned round = 0; round < 2; round++) { /* on an empty arena and after use */
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            TAP_OK(t, !arena_alloc(&a, sizes[i]));
            TAP_OK(t, !arena_zalloc(&a, 1, sizes[i]));
            TAP_OK(t, !arena_copy(&a, bytes_of("", sizes[i]), &out));
            TAP_OK(t, out.ptr == poison.ptr && out.len == poison.len);
        }
        TAP_OK(t, arena_alloc(&a, 10));
    }
}

static void test_zalloc(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };

    void *dirty = arena_alloc(&a, 4000);
    if (!TAP_OK(t, dirty))
        return;
    memset(dirty, 0xff, 4000);
    arena_reset(&a);

    struct piece p = { arena_zalloc(&a, 100, 40), 4000, 0 };
    TAP_OK(t, p.ptr && piece_is_whole(&p));
    TAP_OK(t, arena_zalloc(&a, 0, 40));
    TAP_OK(t, arena_zalloc(&a, 40, 0));
    TAP_OK(t, !arena_zalloc(&a, SIZE_MAX / 2, 3));
    TAP_OK(t, !arena_zalloc(&a, SIZE_MAX, SIZE_MAX));
    TAP_OK(t, !arena_zalloc(&a, SIZE_MAX / 2 + 1, 2)); /* the product wraps to 0 */
}

static void test_copy(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct bytes got = { 0 };

    if (!TAP_OK(t, arena_copy(&a, bytes_of("a\0b", 3), &got)))
        return;
    TAP_EQ(t, got.len, 3);
    TAP_OK(t, memcmp(got.ptr, "a\0b\0", 4) == 0);
    if (!TAP_OK(t, arena_copy(&a, bytes_of(NULL, 0), &got)))
        return;
    TAP_EQ(t, got.len, 0);
    TAP_OK(t, got.ptr && got.ptr[0] == '\0');
}

static void test_marks_nest(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };

    struct arena_mark empty = arena_mark(&a);
    char *one = arena_alloc(&a, 100);
    struct arena_mark outer = arena_mark(&a);
    char *two = arena_alloc(&a, 5000); /* a second block */
    struct arena_mark inner = arena_mark(&a);
    char *three = arena_alloc(&a, 50000); /* a third */
    if (!TAP_OK(t, one && two && three))
        return;
    memset(one, 1, 100);
    memset(two, 2, 5000);
    memset(three, 3, 50000);

    arena_rewind(&a, inner);
    char *again = arena_alloc(&a, 50000);
    if (!TAP_OK(t, again))
        return;
    memset(again, 4, 50000);
    TAP_EQ(t, two[4999], 2);

    arena_rewind(&a, outer);
    again = arena_alloc(&a, 5000);
    if (!TAP_OK(t, again))
        return;
    memset(again, 5, 5000);
    TAP_EQ(t, one[99], 1);

    arena_rewind(&a, empty);
    TAP_OK(t, arena_alloc(&a, 100));
    arena_rewind(&a, empty); /* a mark may be used again */
    arena_rewind(&a, empty);
    TAP_OK(t, arena_alloc(&a, 100));
}

/* How many pieces of each size are alive is chosen at random; what lives below a mark
 * must never be touched by what comes after it. */
static void test_random_marks(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    struct piece pieces[64];
    struct arena_mark
        marks[COUNT_OF(pieces)]; /* taken before the piece of its number */
    size_t n = 0;
    unsigned broken = 0;
    struct rng r;

    rng_init(&r, 2);
    for (unsigned step = 0; step < 20000 && broken == 0; step++) {
        if (n == COUNT_OF(pieces) || (n > 0 && rng_below(&r, 8) == 0)) {
            n = rng_below(&r, n);
            arena_rewind(&a, marks[n]);
        }
        size_t len = rng_below(&r, rng_below(&r, 20) == 0 ? 30000 : 300);
        marks[n] = arena_mark(&a);
        pieces[n] = (struct piece){ arena_alloc(&a, len), len, (uint8_t)step };
        if (!TAP_OK(t, pieces[n].ptr))
            return;
        memset(pieces[n].ptr, pieces[n].fill, len);
        n++;
        if (step % 50 == 0) {
            for (size_t i = 0; i < n; i++)
                broken += !piece_is_whole(&pieces[i]);
        }
    }
    TAP_EQ(t, broken, 0);
}

#ifdef UNDER_ASAN

static void test_sanitizer(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };

    char *kept = arena_alloc(&a, 13);
    struct arena_mark mark = arena_mark(&a);
    char *dead = arena_alloc(&a, 13);
    if (!TAP_OK(t, kept && dead))
        return;
    TAP_OK(t, !__asan_address_is_poisoned(kept + 12));
    TAP_OK(t, __asan_address_is_poisoned(kept + 13));
    TAP_OK(t, !__asan_address_is_poisoned(dead));
    arena_rewind(&a, mark);
    TAP_OK(t, __asan_address_is_poisoned(dead));
    TAP_OK(t, !__asan_address_is_poisoned(kept));
}

#else

/* The same requests after a rewind get the same memory: nothing new is taken. */
static void test_reuse(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    static const size_t sizes[] = { 10, 4000, 100, 9000, 1 << 20, 3, 70000 };
    const void *first[COUNT_OF(sizes)];

    for (unsigned round = 0; round < 10; round++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            void *p = arena_alloc(&a, sizes[i]);
            if (!TAP_OK(t, p))
                return;
            if (round == 0)
                first[i] = p;
            TAP_OK(t, p == first[i]);
        }
        arena_reset(&a);
    }
}

/* Pieces that grow a little each time must not each leave a block behind: the number of
 * different blocks a large piece ever lived in stays small. */
static void test_growing_pieces(struct tap *t)
{
    struct belay_arena a CLEANUP(arena_release) = { 0 };
    const void *last = NULL;
    unsigned moved = 0;

    for (size_t size = 2 << 20; size < 16 << 20; size += 4096) {
        void *p = arena_alloc(&a, size);
        if (!TAP_OK(t, p))
            return;
        moved += p != last;
        last = p;
        arena_reset(&a);
    }
    TAP_OK(t, moved <= 4);
}

#endif

/* The caller's room is used first, never freed, and again after a reset. */
static void test_room(struct tap *t)
{
    alignas(max_align_t) uint8_t room[512], small[8];
    struct belay_arena a;

    arena_init_in(&a, room, sizeof(room));
    uint8_t *first = arena_alloc(&a, 100);
    TAP_OK(t, first && is_aligned(first));
#ifndef UNDER_ASAN
    TAP_OK(t, first >= room && first + 100 <= room + sizeof(room));
#endif
    for (size_t size = 1; size < 2000; size *= 2) {
        uint8_t *piece = arena_alloc(&a, size);
        if (!TAP_OK(t, piece && is_aligned(piece)))
            break;
        memset(piece, 0xa5, size);
    }
    arena_reset(&a);
    uint8_t *again = arena_alloc(&a, 100);
    TAP_OK(t, again);
#ifndef UNDER_ASAN
    TAP_OK(t, again == first);
#endif
    arena_release(&a);
    TAP_OK(t, !a.first && !a.last && !a.room); /* the room is the caller's again */

    arena_init_in(&a, small, sizeof(small)); /* too small for anything */
    TAP_OK(t, arena_alloc(&a, 10));
    arena_release(&a);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "pieces are aligned for any type, also those of size 0", test_alignment },
        { "an arena is empty after init and after release", test_init },
        { "pieces do not overlap", test_pieces_do_not_overlap },
        { "a piece may be larger than a block", test_big_pieces },
        { "no memory is NULL or false, and the arena lives on", test_no_memory },
        { "zalloc zeroes used memory and sees an overflow", test_zalloc },
        { "a copy has a NUL behind it", test_copy },
        { "marks nest, and one of an empty arena holds", test_marks_nest },
        { "what is below a mark survives the rewind", test_random_marks },
        { "the first pieces may lie in the caller's memory", test_room },
#ifdef UNDER_ASAN
        { "an overrun or a use after rewind is caught", test_sanitizer },
#else
        { "memory is used again after a reset", test_reuse },
        { "pieces that grow leave no trail of blocks", test_growing_pieces },
#endif
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
