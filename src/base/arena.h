/* arena.h - memory for one request, given back all at once.
 *
 * Pieces are taken one after the other from large blocks and die together: at a rewind
 * to an earlier mark, at reset, or at release.  Blocks are kept for the next use. Under
 * AddressSanitizer each piece is a malloc of its own and a rewind frees it, so that an
 * overrun or a use after rewind is caught at the first byte.
 *
 * An arena belongs to one thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/attr.h"
#include "base/bytes.h"

struct arena_block; /* private to arena.c */

struct belay_arena {
    struct arena_block *first; /* oldest block (ASan: unused) */
    struct arena_block *last;  /* block in use (ASan: newest piece) */
    size_t used;               /* bytes used in `last` (ASan: unused) */
    const void *room;          /* a block that is the caller's; NULL: there is none */
};

/* A moment in an arena's life. */
struct arena_mark {
    struct arena_block *last;
    size_t used;
};

/* All zero is a valid empty arena; init is for storage that is not zero. */
void arena_init(struct belay_arena *a);

/* An arena whose first pieces lie in the caller's memory, such as the stack: what is done often
 * and briefly does without malloc.  The room is aligned for any type, and in use until release
 * (ASan: it is not used). */
void arena_init_in(struct belay_arena *a, void *room, size_t size);

/* `size` bytes aligned for any type, uninitialised; NULL when there is no memory.
 * A size of 0 gives a valid pointer to nothing. */
MUST_USE void *arena_alloc(struct belay_arena *a, size_t size);

/* n * size bytes, zeroed; NULL also when the product overflows. */
MUST_USE void *arena_zalloc(struct belay_arena *a, size_t n, size_t size);

/* A copy of b in the arena with a NUL behind it (not counted in len).  False, and *out
 * untouched, when there is no memory. */
MUST_USE bool arena_copy(struct belay_arena *a, struct bytes b, struct bytes *out);

/* Everything allocated after the mark dies at the rewind.  Marks nest. */
struct arena_mark arena_mark(const struct belay_arena *a);
void arena_rewind(struct belay_arena *a, struct arena_mark mark);

/* Rewind to the beginning; memory is kept. */
void arena_reset(struct belay_arena *a);

/* Free everything; the arena is empty and usable again.  Fits CLEANUP. */
void arena_release(struct belay_arena *a);

#endif /* BASE_ARENA_H */
