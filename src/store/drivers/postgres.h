/* postgres.h - a database server, shared by many machines.
 *
 * One round trip reads, one more commits.  Many processes may use one database; each has
 * a small pool of connections. */
#ifndef STORE_DRIVERS_POSTGRES_H
#define STORE_DRIVERS_POSTGRES_H

#include "store/driver.h"

/* How to reach the server, and how to treat it.  Borrowed during the call. */
struct postgres_options {
    const char *const *keywords; /* libpq's, ending with NULL */
    const char *const *values;   /* theirs */
    const char *schema;          /* [a-z_][a-z0-9_]{0,62}; NULL: "belay" */
    const char *listen;         /* a conninfo of its own for wake-ups; NULL: the same */
    unsigned pool;              /* connections at most; 0: 16 */
    bool pooler;                /* behind a transaction pooler */
    bool relaxed;               /* weaker durability than asked for is accepted */
    int64_t request_timeout_ms; /* 0: 30 s */
    unsigned retries;           /* connecting: after the first failure */
    int64_t retry_first_ms;     /* the first pause; 0: 50 ms */
    unsigned retry_base;        /* the next one is so many times as long; 0: 2 */
    int retry_jitter;           /* percent left to chance; < 0: 50 */
};

/* A parameter of libpq. */
struct postgres_param {
    const char *name, *value;
};

/* Whether a URL may set the parameter: libpq has it, and the driver does not set it
 * itself. */
bool postgres_knows(const char *name);

/* keywords and values of a URL: `rest` is what stands between its scheme and its query,
 * as written; `params` are those of the query, decoded.  They live in the arena.
 * `invalid`, reason url or option, without any of it in the message. */
MUST_USE belay_rc postgres_options_from_uri(struct postgres_options *out,
                                            struct bytes rest,
                                            const struct postgres_param *params,
                                            size_t n, struct belay_arena *a,
                                            struct belay_error *err);

/* Whether this is a conninfo or a URL that libpq can read. */
bool postgres_is_conninfo(const char *text);

/* Connects, checks the server and makes the schema if it is not there.
 *
 *   unavailable         no connection (never with a password in the message); reason
 *                       login, database, permission, tls or option: the server does not
 *                       want us, and is not asked again; reason durability: fsync,
 *                       full_page_writes or synchronous_commit is off
 *   denied              reason schema: the role may not use the schema, or not make what
 *                       it lacks
 *   unsupported_format  the schema is another program's, or of a format this program is
 *                       too old for: found and expected; a server before 13; a database
 *                       that is not in UTF-8
 *   invalid             the schema's name, or connect_timeout */
MUST_USE belay_rc postgres_open(struct driver **out,
                                const struct postgres_options *options,
                                const struct driver_config *config,
                                struct belay_error *err);

#endif /* STORE_DRIVERS_POSTGRES_H */
