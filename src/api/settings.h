/* settings.h - what a URL and struct belay_options say alike: how a driver talks to its
 * server, and how long a lost lease is left alone.
 *
 * Each setting has one row: its name in a URL, its member of struct belay_options, its
 * bounds.  Drivers that talk to nobody ignore timeouts and retries.
 */
#ifndef API_SETTINGS_H
#define API_SETTINGS_H

#include <belay/options.h>

#include "base/bytes.h"
#include "base/err.h"

enum setting {
    SETTING_REQUEST_TIMEOUT, /* milliseconds */
    SETTING_RETRIES,
    SETTING_RETRY_BASE,
    SETTING_RETRY_FACTOR,
    SETTING_RETRY_JITTER,  /* percent */
    SETTING_RECLAIM_GRACE, /* milliseconds */
};
#define SETTINGS 6

/* Unset: the default of whoever uses it. */
#define SETTING_UNSET INT64_C(-1)

struct settings {
    int64_t value[SETTINGS]; /* by enum setting */
};

/* Everything unset. */
struct settings settings_none(void);

/* Takes what `options` sets.  `invalid`, reason `option`, for what is out of bounds. */
MUST_USE belay_rc settings_from_options(struct settings *s,
                                        const struct belay_options *options,
                                        struct belay_error *err);

/* Whether a URL's option of this name is a setting; which one is told in *out. */
MUST_USE bool settings_find(struct bytes name, enum setting *out);

/* Takes the value of a URL's option.  `invalid`, reason `option`: the message says what
 * is allowed and does not repeat the value. */
MUST_USE belay_rc settings_from_text(struct settings *s, enum setting which,
                                     struct bytes value, struct belay_error *err);

#endif /* API_SETTINGS_H */
