/* options.h - reading a struct belay_options of any version. */
#ifndef API_OPTIONS_H
#define API_OPTIONS_H

#include <stddef.h>

#include <belay/options.h>

#include "base/attr.h"
#include "base/err.h"

/* The first version of the struct ended with this member. */
#define OPTIONS_SIZE_FIRST \
    (offsetof(struct belay_options, retry) + sizeof(struct belay_retry))

/* No version will ever be larger: what claims to be was not initialised. */
#define OPTIONS_SIZE_MAX ((size_t)4096)

/* Fills *out, with out->size as this library knows it and every default in place: ns,
 * clock and random are not NULL afterwards.  The hooks in use are copied into *clock
 * and *random; *random has the one to use unless the caller brings one.  `in` may be NULL.
 * `misuse`, naming the struct, for a size that cannot be right, a member from the future
 * that is set, or a hook without its functions. */
MUST_USE belay_rc options_read(const struct belay_options *in,
                               struct belay_options *out, struct belay_clock *clock,
                               struct belay_random *random, struct belay_error *err);

#endif /* API_OPTIONS_H */
