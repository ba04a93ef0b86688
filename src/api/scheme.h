/* scheme.h - which URL opens which driver.
 *
 * One table.  A scheme that Belay knows and this build lacks has a row without `open`,
 * so that it can be told from a misspelt one.
 */
#ifndef API_SCHEME_H
#define API_SCHEME_H

#include "api/settings.h"
#include "api/url.h"
#include "store/driver.h"
#include "work/execution.h"

/* Opens the driver.  url->rest is the opener's to judge; options of the URL that are
 * settings are in *settings already.  config is borrowed until the driver is closed. */
typedef belay_rc scheme_open_fn(struct driver **out, const struct url *url,
                                const struct settings *settings,
                                const struct driver_config *config,
                                struct belay_error *err);

/* Whether opening would wait for somebody who may never be done: `unavailable` then. */
typedef belay_rc scheme_look_fn(const struct url *url,
                                const struct driver_config *config,
                                struct belay_error *err);

/* Whether it has an option of that name, besides the settings. */
typedef bool scheme_knows_fn(struct bytes name);

/* Where the store is, as text: two that are not the same store have not the same text.  (Two
 * ways to write one store may have two: then their processes do not know of each other,
 * which costs time and nothing else.)  Nothing: it is of this process alone.  Called after
 * the driver was opened. */
typedef belay_rc scheme_place_fn(const struct url *url, const struct settings *settings,
                                 struct buf *out, struct belay_error *err);

struct scheme {
    const char *name;
    scheme_open_fn *open;           /* NULL: not in this build */
    scheme_look_fn *look;           /* NULL: it never does */
    scheme_knows_fn *knows;         /* NULL: it has no options of its own */
    enum belay_backend_tag backend; /* in the handles of executions */
    scheme_place_fn *place;         /* NULL: of this process alone */
};

/* scheme_postgres.c */
scheme_open_fn scheme_open_postgres;
scheme_knows_fn scheme_knows_postgres;
scheme_place_fn scheme_place_postgres;

/* scheme_valkey.c */
scheme_open_fn scheme_open_valkey;
scheme_knows_fn scheme_knows_valkey;
scheme_place_fn scheme_place_valkey;
/* What the URL says, without connecting.  The texts live in the URL and the arena. */
struct valkey_options;
MUST_USE belay_rc scheme_read_valkey(struct valkey_options *out, const struct url *url,
                                     const struct settings *settings,
                                     struct belay_arena *a, struct belay_error *err);

extern const struct scheme scheme_table[];
extern const size_t scheme_count;

/* The row of url->scheme.  `invalid`, reason `scheme`, when there is none or it is not
 * in this build; the message lists what is. */
MUST_USE belay_rc scheme_find(const struct url *url, const struct scheme **out,
                              struct belay_error *err);

/* Takes the URL's settings and checks that its other options are the scheme's own.
 * `invalid`, reason `option`. */
MUST_USE belay_rc scheme_options(const struct scheme *scheme, const struct url *url,
                                 struct settings *settings, struct belay_error *err);

#endif /* API_SCHEME_H */
