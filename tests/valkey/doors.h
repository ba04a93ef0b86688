/* doors.h - servers that are particular about whom they let in, and what comes of it. */
#ifndef TESTS_VALKEY_DOORS_H
#define TESTS_VALKEY_DOORS_H

#include "vk.h"

#define PASSWORD "xyzzy-plugh"
#define WRONG "open-sesame"

extern struct test_server server;

/* A new server takes the place of the last one, and vk_setup leads to it.  arguments: of
 * tests/lib/redisserver, ending with NULL. */
bool serve(struct tap *t, const char *const *arguments);
bool serve_plainly(struct tap *t);

/* A user with the password and these rules, ending with NULL. */
bool set_user(const char *name, const char *const *rules);

/* A store opens with vk_setup, and does something. */
bool check_works(struct tap *t);
/* `unavailable`, at once although it would be tried again, for a reason that is told. */
void check_refused(struct tap *t, const char *reason, const char *why);
/* `unavailable`, for a reason that the server does not tell. */
void check_away(struct tap *t);
/* No password is repeated. */
void check_silence(struct tap *t, const struct belay_error *err);

#endif /* TESTS_VALKEY_DOORS_H */
