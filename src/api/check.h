/* check.h - what every public function looks at before it works. */
#ifndef API_CHECK_H
#define API_CHECK_H

#include <stddef.h>

#include <belay/queue.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"

/* A pointer that must be there is NULL: `misuse`, naming the function. */
belay_rc null_given(struct belay_error *err, const char *function);

/* A struct that begins with its size (uint32_t). */
struct sized {
    const char *name;
    size_t known; /* sizeof here */
    size_t first; /* where its first version ended */
};

/* The end of a member, for `first`. */
#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Copies a caller's struct of any version into one as this library knows it: members that
 * the caller's lacks are 0, size is `known`.  `misuse`, naming the struct, for a size
 * that cannot be right and for a member from the future that is set. */
MUST_USE belay_rc sized_read(const struct sized *type, const void *in, void *out,
                             struct belay_error *err);

/* A caller's list of such structs, all of one version, as this library knows them: the
 * list itself where that is the same, else a copy in the arena.  `misuse` when it is NULL
 * and n is not 0. */
MUST_USE belay_rc sized_list(const struct sized *type, const void *in, size_t n,
                             struct belay_arena *a, const void **out,
                             struct belay_error *err);

/* The other way, for a struct that the caller gets: what its version has. */
MUST_USE belay_rc sized_check(const struct sized *type, const void *out,
                              struct belay_error *err);
void sized_write(const struct sized *type, const void *known, void *out);

/* Strings of a list: `misuse` when one is NULL, or the list is and n is not 0. */
MUST_USE belay_rc strings_given(const char *const *list, size_t n, const char *what,
                                struct belay_error *err);

/* A claim as somebody may have put it together: `misuse` when it lacks something that
 * proves holding. */
MUST_USE belay_rc claim_given(const struct belay_claim *claim, struct belay_error *err);

#endif /* API_CHECK_H */
