/* url.h - the URL that names a store, taken apart.
 *
 *     scheme:rest[?name=value[&name=value]...]
 *
 * Invariants
 *   U1  A message about a URL repeats nothing of it but its scheme and the names of its
 *       options: the rest, and the values, may be secret.
 *   U2  An @ in the query is refused, because what looks like a query is then a
 *       password with a question mark in it.
 *   U3  Values come out percent-decoded, as UTF-8 without control characters.  Names
 *       are plain words.  A plus is a plus.
 */
#ifndef API_URL_H
#define API_URL_H

#include "base/arena.h"
#include "base/err.h"

#define URL_MAX ((size_t)4096)
#define URL_OPTIONS_MAX 32

struct url_option {
    struct bytes name; /* [a-z][a-z0-9_]* */
    struct bytes value;
};

/* Lives in the arena of url_parse. */
struct url {
    struct bytes scheme; /* lower case, without the colon */
    struct bytes rest;   /* up to the query, as written: still percent-encoded */
    struct url_option options[URL_OPTIONS_MAX]; /* no name twice */
    size_t n_options;
};

/* `invalid`, reason `url` or `option`, for anything malformed. */
MUST_USE belay_rc url_parse(struct bytes text, struct belay_arena *a, struct url *out,
                            struct belay_error *err);

/* Percent-decodes; a NUL stands behind the result.  `invalid` when an escape is
 * malformed or the result breaks U3: what was decoded, the caller knows and says. */
MUST_USE belay_rc url_decode(struct bytes text, struct belay_arena *a,
                             struct bytes *out, struct belay_error *err);

#endif /* API_URL_H */
