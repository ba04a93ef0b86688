/* namespaces.h - the registry of namespaces, and how one of them ends.
 *
 * Deleting is done in bounded steps and may be stopped at any of them:
 *
 *     active -> deleting        the namespace can no longer be opened
 *     deleting: erase, erase .. until nothing is left
 *     deleting -> (no row)      the name is free again
 *
 * Calling it again goes on where it stopped.  Limit: a store that has the namespace
 * open, in this process or another, is not told.  What it writes before the last step
 * is erased; what it writes after that is in no namespace of the registry, and `check`
 * reports it.  Stop the users of a namespace before deleting it.
 */
#ifndef WORK_NAMESPACES_H
#define WORK_NAMESPACES_H

#include "store/txn.h"

struct namespace_info {
    struct bytes name;
    int64_t created_at_ms;
    bool deleting;
};

/* Those behind `after` in the order of their names (empty: from the first), at most
 * `limit`, in the arena. */
MUST_USE belay_rc namespaces_list(struct store *s, struct bytes after, size_t limit,
                                  struct belay_arena *a, struct namespace_info **out,
                                  size_t *out_n, struct belay_error *err);

/* Whether it is in the registry, and not about to leave it. */
MUST_USE belay_rc namespaces_is_active(struct store *s, struct bytes name, bool *out,
                                       struct belay_error *err);

/* Enters it in the registry, unless it is there.
 *
 *   BELAY_INVALID      no name for a namespace
 *   BELAY_WRONG_STATE  reason deleting */
MUST_USE belay_rc namespaces_create(struct store *s, struct bytes name,
                                    const char *principal, bool *out_created,
                                    struct belay_error *err);

/* Removes it with everything in it.
 *
 *   BELAY_INVALID    no name for a namespace; the system's own is none
 *   BELAY_NOT_FOUND  it is not in the registry */
MUST_USE belay_rc namespaces_delete(struct store *s, struct bytes name,
                                    const char *principal, struct belay_error *err);

#endif /* WORK_NAMESPACES_H */
