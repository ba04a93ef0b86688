/* url_store.h - a new store that processes share by its URL, and that they may leave
 * anyhow. */
#ifndef TESTS_SERVERS_URL_STORE_H
#define TESTS_SERVERS_URL_STORE_H

#include <stdbool.h>

/* Stores of a kind: sqlite, postgres, valkey. */
struct url_kind;

struct url_store {
    const struct url_kind *kind;
    char url[300];
    char watched_url[400]; /* the same store; the one for those who may be killed */
    char name[64]; /* of a schema, or of keys, on the server of the environment */
};

/* NULL when there is none of that name. */
const struct url_kind *url_kind_find(const char *name);

/* A file in the directory, or something new on the server. */
void url_store_name(struct url_store *s, const struct url_kind *kind, const char *dir);

/* Waits until nobody is there any more who came by the watched URL: what the dead have
 * sent is being done still.  False when somebody stays. */
bool url_store_settle(const struct url_store *s);

/* Removes what is not in the directory. */
void url_store_drop(const struct url_store *s);

#endif /* TESTS_SERVERS_URL_STORE_H */
