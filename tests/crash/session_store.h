/* session_store.h - where the store of one round is. */
#ifndef TESTS_CRASH_SESSION_STORE_H
#define TESTS_CRASH_SESSION_STORE_H

#include <stdbool.h>

struct session_store {
    char url[400];
    char schema[64]; /* on the server of BELAY_TEST_POSTGRES; empty: a file */
};

/* A file in the directory, or a new schema on the server. */
void session_store_name(struct session_store *s, bool postgres, const char *dir);

/* Waits until nobody is there any more: what the dead have sent is being done still.
 * False when somebody stays. */
bool session_store_settle(const struct session_store *s);

/* Removes what is not in the directory. */
void session_store_drop(const struct session_store *s);

#endif /* TESTS_CRASH_SESSION_STORE_H */
