/* testserver.h - a server of a test's own: a child process that runs a script of
 * tests/lib, which ends the server when this program ends, however it does. */
#ifndef TESTS_TESTSERVER_H
#define TESTS_TESTSERVER_H

#include <stdbool.h>
#include <stdio.h>

#define TEST_SERVER_WORDS 8
#define TEST_SERVER_WORD_MAX 256

struct test_server {
    FILE *orders, *answers;
    int pid;
    const char *script;
    /* What it said when it was ready, URLs as a rule; empty behind the last one. */
    char word[TEST_SERVER_WORDS][TEST_SERVER_WORD_MAX];
};

/* arguments: of tests/lib/SCRIPT, ending with NULL.  False, with a line on standard
 * output, when it does not start. */
bool test_server_open(struct test_server *s, const char *script,
                      const char *const *arguments);
/* One of those that the script takes; returns when it is done. */
bool test_server_order(struct test_server *s, const char *order);
void test_server_close(struct test_server *s); /* also when it did not open */

/* The URL that a variable of the environment has; ends the program with a message when
 * there is none. */
const char *test_server_url(const char *variable);

#endif /* TESTS_TESTSERVER_H */
