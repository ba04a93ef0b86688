/* store_postgres.h - a schema on the server of BELAY_TEST_POSTGRES for each directory.
 *
 * The functions of a struct test_store and a struct below, see stores.h. */
#ifndef TESTS_NOUNS_STORE_POSTGRES_H
#define TESTS_NOUNS_STORE_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

bool postgres_url(const char *dir, char *out, size_t size);
void postgres_forget(const char *dir);
bool postgres_damage(const char *dir, const char *sql, char *why, size_t size);
bool postgres_ask(const char *dir, const char *sql, char *out, size_t size);

#endif /* TESTS_NOUNS_STORE_POSTGRES_H */
