/* watch.h - an answer that is shown again and again. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/request.h"

/* What is asked each time; the caller json_decref()s *result. */
struct watched {
    belay_rc (*ask)(void *arg, json_t **result, struct belay_error *err);
    void *arg;
};

/* Asks and writes, every `every` of the request, until `cancel`: that is how it ends well.  On
 * a terminal each table takes the place of the one before; elsewhere an empty line is between
 * them, and JSON is one line each time.  Fails as asking or writing does. */
MUST_USE belay_rc watch_run(const struct watched *what, const struct request *r,
                            int out, const struct belay_cancel *cancel,
                            struct belay_error *err);

#endif /* CLI_WATCH_H */
