/* valkey.h - Valkey or Redis: a store in a server's memory, written to its log.
 *
 * Callers of one process share a few connections: what they ask goes out together and
 * comes back together.  A namespace lives on one node of a cluster. */
#ifndef STORE_DRIVERS_VALKEY_H
#define STORE_DRIVERS_VALKEY_H

#include "store/driver.h"

/* How to reach the server, and how to treat it.  Borrowed during the call. */
struct valkey_options {
    const char *host; /* name or address; or a path that begins with '/', its socket */
    const char *user, *password; /* NULL: none */
    const char *prefix;          /* of every key: [A-Za-z0-9._-]{1,64}; NULL: "belay" */
    const char *tls_ca, *tls_cert, *tls_key; /* files; NULL: the system's, none */
    const char *tls_server_name;             /* NULL: the host */
    int64_t wait_ms;                         /* for replicas; 0: 1 s */
    int64_t request_timeout_ms;              /* 0: 30 s */
    int64_t retry_first_ms;                  /* the first pause; 0: 50 ms */
    unsigned retry_base;    /* the next one is so many times as long; 0: 2 */
    int retry_jitter;       /* percent left to chance; < 0: 50 */
    unsigned retries;       /* connecting: after the first failure */
    unsigned port;          /* 0: 6379 */
    unsigned database;      /* 0 in a cluster */
    unsigned pool;          /* connections to a node at most; 0: 2 */
    unsigned wait_replicas; /* an acknowledgement waits for so many; 0: for none */
    bool relaxed;           /* weaker durability than asked for is accepted */
    bool tls;
    bool tls_insecure; /* any certificate is accepted */
};

/* Connects, checks the server and loads the functions.
 *
 *   unavailable         no connection (never with a password in the message); reason
 *                       login, permission, tls, database: the server does not want us,
 *                       and is not asked again; reason durability: appendonly,
 *                       appendfsync or maxmemory-policy is weaker than a durable store
 *                       needs (or cannot be read); reason replica: it is a replica
 *   unsupported_format  a server before 7.0: found and expected
 *   invalid             the prefix, or a database other than 0 in a cluster */
MUST_USE belay_rc valkey_open(struct driver **out, const struct valkey_options *options,
                              const struct driver_config *config,
                              struct belay_error *err);

#endif /* STORE_DRIVERS_VALKEY_H */
