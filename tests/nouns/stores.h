/* stores.h - the stores that the nouns are tested on, by name.
 *
 * A new store is one line in stores.c; no case knows which one it runs on.
 */
#ifndef TESTS_NOUNS_STORES_H
#define TESTS_NOUNS_STORES_H

#include <stdbool.h>
#include <stddef.h>

#include <belay/belay.h>

struct test_store {
    const char *name;
    /* The URL of a store with nothing in it.  dir is a directory of its own; a store on
     * a server takes its last part for a name that nobody else uses. */
    bool (*url)(const char *dir, char *out, size_t size);
    enum belay_durability durability;
    bool shared;    /* any number of handles and processes open it by its URL, and what
                       was acknowledged is there when it is opened again */
    bool own_clock; /* its time is a server's: a case cannot move it, only wait */
    /* Runs SQL on the store below the library, while no handle is open; false: *why
     * says what is wrong.  NULL: there is no way to reach it. */
    bool (*damage)(const char *dir, const char *sql, char *why, size_t size);
};

extern const struct test_store test_stores[];
extern const size_t n_test_stores;

/* NULL when there is none of that name. */
const struct test_store *test_store_find(const char *name);

/* The first column of the first row that a query gives, as text, through a connection
 * of SQLite's own; false when there is none. */
bool sqlite_ask(const char *dir, const char *sql, char *out, size_t size);

/* A new directory for one store; removed with everything in it. */
bool directory_make(char *out, size_t size);
void directory_remove(const char *dir);

#endif /* TESTS_NOUNS_STORES_H */
