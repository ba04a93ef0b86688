/* arena.h - where the results of calls live.
 *
 * A call that answers with records puts them into the arena it was passed; they live
 * until that arena is reset or freed, and nothing else has to be given back.  An arena
 * belongs to one thread at a time.
 */
#ifndef BELAY_ARENA_H
#define BELAY_ARENA_H

#include <belay/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay_arena;

/* An empty arena, or no_memory. */
BELAY_API BELAY_MUST_USE belay_rc belay_arena_new(struct belay_arena **out,
                                                  struct belay_error *err);

/* Everything in it dies; its memory is kept for the next call.  Takes NULL. */
BELAY_API void belay_arena_reset(struct belay_arena *a);

/* Takes NULL. */
BELAY_API void belay_arena_free(struct belay_arena *a);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_ARENA_H */
