/* valkey_fake.h - a server on loopback that answers as a test wants.
 *
 * It knows what is said when a connection is made: AUTH, SELECT, CLIENT, INFO, CONFIG,
 * FUNCTION, PING.  Everything else is the test's.
 */
#ifndef TESTS_UNIT_VALKEY_FAKE_H
#define TESTS_UNIT_VALKEY_FAKE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"

#define FAKE_CONNS 64
#define FAKE_ARGS 16

/* What an answer may be besides text. */
#define FAKE_CUT "cut"    /* the connection ends */
#define FAKE_SILENCE ""   /* no answer */
#define FAKE_UNKNOWN NULL /* -ERR */

struct fake;
/* The answer to a command, as bytes of the protocol. */
typedef const char *fake_answer(struct fake *f, const struct bytes *args, size_t n);

struct fake {
    unsigned port;
    fake_answer *answer;
    void *arg;

    pthread_mutex_t mutex; /* for what follows */
    const char *version, *role, *replid, *replid2, *run_id;
    const char *appendonly, *appendfsync, *policy;
    const char *password; /* NULL: none is wanted */
    const char *info;     /* more lines */
    bool loading;
    bool may_load; /* functions */
    char *library; /* its text; NULL: none */

    _Atomic unsigned n_conns;  /* so far */
    _Atomic unsigned n_logins; /* AUTH seen */
    _Atomic unsigned n_loads;  /* FUNCTION LOAD seen */
    _Atomic unsigned n_pings;
    _Atomic(const char *) pong; /* what they are answered; NULL: as usual */
    _Atomic unsigned n_answers; /* asked of the test */

    int listening;
    pthread_t acceptor;
    pthread_t threads[FAKE_CONNS];
    int conns[FAKE_CONNS];
    bool stopping;
};

/* A master that is durable, on a port of its own. */
bool fake_start(struct fake *f, fake_answer *answer, void *arg);
void fake_stop(struct fake *f);
/* Ends all connections there are. */
void fake_cut(struct fake *f);
/* Changes a text under the mutex. */
void fake_set(struct fake *f, const char **what, const char *text);

#endif /* TESTS_UNIT_VALKEY_FAKE_H */
