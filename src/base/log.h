/* log.h - one line per event, for people or for machines.
 *
 * Only the edges (server, command line, worker) log; a library that fails returns an
 * error and says nothing.  There is no global logger: who logs holds a sink.
 *
 *     2026-01-02T03:04:05.678Z level=warn event=lease_lost execution=exe_01 fence=3
 *     {"time":"2026-01-02T03:04:05.678Z","level":"warn","event":"lease_lost",...}
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <pthread.h>
#include <stdint.h>

#include <belay/hooks.h>

#include "base/bytes.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_KEY_VALUE, LOG_JSON };

struct log_sink {
    int fd;
    enum log_format format;
    enum log_level least; /* events below are not told */
    struct belay_clock clock;
    pthread_mutex_t mutex; /* PTHREAD_MUTEX_INITIALIZER; guards what follows */
    int64_t n_dropped;     /* lines since the last that could be written; 0 */
};

enum log_kind { LOG_TEXT, LOG_NUMBER, LOG_BOOL, LOG_SECRET };

struct log_field {
    const char *key; /* [a-z_]+, fixed in the code */
    enum log_kind kind;
    struct bytes text; /* LOG_TEXT: any bytes, escaped; LOG_SECRET: printed as *** */
    int64_t number;    /* LOG_NUMBER; LOG_BOOL: 0 or 1 */
};

static inline struct log_field log_text(const char *key, struct bytes text)
{
    return (struct log_field){ .key = key, .kind = LOG_TEXT, .text = text };
}

static inline struct log_field log_number(const char *key, int64_t number)
{
    return (struct log_field){ .key = key, .kind = LOG_NUMBER, .number = number };
}

/* Writes one line with a single write(2), so that lines of several threads and
 * processes do not mix.  A key-value text is quoted when it is empty or holds a space,
 * a quote or an equals sign; control characters and non-UTF-8 are escaped, so that no
 * value can forge a line.  Failures to write are ignored: logging must not stop work.
 *
 * Nor does it wait: while the descriptor takes nothing, a pipe that nobody reads for one,
 * lines are dropped, and the next that can be written says how many (dropped=N).  Of two
 * processes that share a pipe one may still wait for the last free page of it, unless the
 * descriptor itself does not block; and so may who writes more than PIPE_BUF at once. */
void log_event(struct log_sink *sink, enum log_level level, const char *event,
               const struct log_field *fields, size_t n_fields);

#endif /* BASE_LOG_H */
