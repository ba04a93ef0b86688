/* redisserver.h - Valkey or Redis servers for tests.
 *
 * The one that a test may use is in its environment (tests/run starts it).  A case that
 * stops or breaks its server starts one of its own: testserver.h. */
#ifndef TESTS_REDISSERVER_H
#define TESTS_REDISSERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define REDIS_URL_MAX 256
#define REDIS_HOST_MAX 128
#define REDIS_PREFIX_MAX 128

/* The server of this run; ends the program with a message when there is none. */
const char *redis_test_url(void);

/* The port of a URL without user and query, and its host; -1: it has none. */
int redis_test_port(const char *url, char host[REDIS_HOST_MAX]);

/* A plain connection, NULL with a line on standard output when there is none. */
redisContext *redis_test_connect(const char *url);

/* A command with %s and %d as in redisCommand, on a connection of its own; NULL, with a
 * line on standard output, when there is no answer or it is an error. */
redisReply *redis_test_ask(const char *url, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for its effect: false when it fails. */
bool redis_test_run(const char *url, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The prefix that a directory's keys have: the last part of its name. */
void redis_test_prefix(const char *dir, char out[REDIS_PREFIX_MAX]);

/* Takes all keys with a prefix away. */
bool redis_test_forget(const char *url, const char *prefix);

/* Waits until the server has noticed the end of every connection that has ended: what
 * the dead have sent is being done still.  False when that takes too long. */
bool redis_test_settle(const char *url);

#endif /* TESTS_REDISSERVER_H */
