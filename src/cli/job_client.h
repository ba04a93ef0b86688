/* job_client.h - the verbs of a job that `belay work` runs, from within.
 *
 * A job does not know its store.  It has a socket, which takes the verbs of its own attempt:
 * one line {"op":NAME,"args":{...}}, answered by one line {"ok":true,"answer":{...}} or
 * {"ok":false,"error":{"code","reason","message"}}.  Arguments have the names of the
 * operations table; lengths of time are milliseconds, bytes that are no text are
 * `<name>_base64`, JSON that is nested too deeply to stand in a request is `<name>_text`.
 */
#ifndef CLI_JOB_CLIENT_H
#define CLI_JOB_CLIENT_H

#include "api/ops.h"

/* Asks; the caller json_decref()s *out.  What the other side refuses is an error as if it
 * had happened here; `unavailable`, reason socket, when there is no other side. */
MUST_USE belay_rc job_ask(const char *socket_path, const struct operation *op,
                          const struct op_value *values, size_t n_values, json_t **out,
                          struct belay_error *err);

#endif /* CLI_JOB_CLIENT_H */
