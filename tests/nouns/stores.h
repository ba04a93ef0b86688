/* stores.h - the stores that the nouns are tested on, by name.
 *
 * A new store is one line in stores.c; no case knows which one it runs on.
 */
#ifndef TESTS_NOUNS_STORES_H
#define TESTS_NOUNS_STORES_H

#include <stdbool.h>
#include <stddef.h>

#include <belay/belay.h>

/* A way to a store's tables below the library, while no handle is open. */
struct below {
    /* Runs SQL; false: *why says what is wrong. */
    bool (*damage)(const char *dir, const char *sql, char *why, size_t size);
    /* The first column of the first row that a query gives, as text; false when there
     * is none. */
    bool (*ask)(const char *dir, const char *sql, char *out, size_t size);

    const char *layout;    /* asks for the number of the layout; NULL: it has none */
    const char *layout_99; /* and sets it */
    const char *foreign;   /* counts tables that are not the library's, or of replays */
};

struct test_store {
    const char *name;
    /* The URL of a store with nothing in it.  dir is a directory of its own; a store on
     * a server takes its last part for a name that nobody else uses. */
    bool (*url)(const char *dir, char *out, size_t size);
    enum belay_durability durability;
    bool shared;    /* any number of handles and processes open it by its URL, and what
                       was acknowledged is there when it is opened again */
    bool own_clock; /* its time is a server's: a case cannot move it, only wait */
    const struct below *below; /* NULL: there is no way to reach it */
    /* Takes away what is kept elsewhere than in dir, when every handle is closed.
     * NULL: nothing. */
    void (*forget)(const char *dir);
};

extern const struct test_store test_stores[];
extern const size_t n_test_stores;

/* NULL when there is none of that name. */
const struct test_store *test_store_find(const char *name);

/* A new directory for one store; removed with everything in it. */
bool directory_make(char *out, size_t size);
void directory_remove(const char *dir);

/* The directory, and what the store has elsewhere. */
void test_store_remove(const struct test_store *store, const char *dir);

#endif /* TESTS_NOUNS_STORES_H */
