#include "base/arena.h"

#include <stdlib.h>

#include <belay/arena.h>

#include "base/err.h"

belay_rc belay_arena_new(struct belay_arena **out, struct belay_error *err)
{
    struct belay_arena *a = malloc(sizeof(*a));

    if (!a)
        return err_no_memory(err, "an arena");
    arena_init(a);
    *out = a;
    return BELAY_OK;
}

void belay_arena_reset(struct belay_arena *a)
{
    if (a)
        arena_reset(a);
}

void belay_arena_free(struct belay_arena *a)
{
    if (!a)
        return;
    arena_release(a);
    free(a);
}
