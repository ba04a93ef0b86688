/* store_valkey.h - keys of their own on the server of BELAY_TEST_VALKEY for each directory.
 *
 * The functions of a struct test_store and a struct below, see stores.h. */
#ifndef TESTS_NOUNS_STORE_VALKEY_H
#define TESTS_NOUNS_STORE_VALKEY_H

#include <stdbool.h>
#include <stddef.h>

bool valkey_url(const char *dir, char *out, size_t size);
void valkey_forget(const char *dir);
bool valkey_damage(const char *dir, const char *sql, char *why, size_t size);
bool valkey_ask(const char *dir, const char *sql, char *out, size_t size);

#endif /* TESTS_NOUNS_STORE_VALKEY_H */
