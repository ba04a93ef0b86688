/* Connecting: host by host, in time, and why not. */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/drivers/postgres/impl.h"

/* What a server answers to somebody it does not want, and would answer again. */
static const struct {
    const char *begins; /* SQLSTATE */
    const char *reason;
} refusals[] = {
    { "28", "login" },         /* password, role, pg_hba.conf */
    { "3D000", "database" },   /* there is none of that name */
    { "42501", "permission" }, /* may not connect */
    { "42704", "option" },     /* no such setting */
    { "22023", "option" },     /* no such value of it */
};

/* What libpq finds wrong with a server's certificate, or a server with ours; a connection
 * that breaks during the handshake is none of it. */
static const char *const tls_refusals[] = { "certificate", "does not support SSL",
                                            " alert " };

/* The SQLSTATE in a verbose message, as in "FATAL:  28P01: ..."; NULL: there is none. */
static const char *state_in(const char *why)
{
    for (const char *at = why; (at = strstr(at, ":  ")) != NULL; at++) {
        if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && at[8] == ':')
            return at + 3;
    }
    return NULL;
}

/* Why trying again would not help; NULL: it may. */
static const char *refusal_of(PGconn *pg, const char *why)
{
    const char *state = state_in(why);

    if (PQconnectionNeedsPassword(pg))
        return "login";
    for (size_t i = 0; state && i < COUNT_OF(refusals); i++) {
        if (strncmp(state, refusals[i].begins, strlen(refusals[i].begins)) == 0)
            return refusals[i].reason;
    }
    for (size_t i = 0; !state && i < COUNT_OF(tls_refusals); i++) {
        if (strstr(why, tls_refusals[i]))
            return "tls";
    }
    return NULL;
}

/* No connection, and why.  A parameter that libpq cannot use is the caller's mistake, and
 * its value stays unsaid (it may be a password that went astray). */
static belay_rc not_connected(struct pg_conn *c, struct belay_error *err)
{
    const char *why = PQerrorMessage(c->pg);
    const char *reason = refusal_of(c->pg, why);

    c->bad = true;
    if (strncmp(why, "invalid ", 8) == 0)
        return err_reason(err, BELAY_INVALID, "option", "postgres: a parameter: %.*s",
                          (int)strcspn(why, ":\"\n"), why);
    if (reason)
        return err_reason(err, BELAY_UNAVAILABLE, reason, "postgres: refused: %.*s",
                          (int)strcspn(why, "\n"), why);
    return pg_lost(c, "no connection", err);
}

static belay_rc poll_connect(struct pg_conn *c, int64_t deadline_us,
                             struct belay_error *err)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    short ready;

    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED)
            return not_connected(c, err);
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!pg_wait_socket(c->pg, events, deadline_us, &ready)) {
            c->bad = true;
            return err_set(
                err, BELAY_UNAVAILABLE,
                "postgres: no connection: \"%s\", port %s, did not answer in "
                "time",
                PQhost(c->pg), PQport(c->pg));
        }
        state = PQconnectPoll(c->pg);
    }
    return BELAY_OK;
}

/* Notices go nowhere: they are the server's chat. */
static void no_notice(void *arg, const PGresult *r)
{
    (void)arg;
    (void)r;
}

static belay_rc prepare_conn(struct pg_conn *c, struct belay_error *err)
{
    if (PQsetnonblocking(c->pg, 1))
        return pg_lost(c, "no connection", err);
    if (c->store->pooler)
        return BELAY_OK; /* the session is everybody's */
    /* A pick that nobody ends lapses with its transaction (rule 7).  Questions that are
     * sent together are of one snapshot without a word (rule 1).  Compiling statements
     * takes longer than they do. */
    belay_rc rc = pg_run(c,
                         "SET idle_in_transaction_session_timeout = '5s';"
                         " SET default_transaction_isolation = 'repeatable read';"
                         " SET jit = off",
                         "settings", err);
    /* Every statement finds its rows by their keys, however many there are.  Planning one
     * anew takes longer than running it, and what the server guesses of tables that fill
     * and empty all day is wrong at the worst time.  Who gives options of his own keeps
     * them. */
    if (rc == BELAY_OK && !c->store->own_options)
        rc = pg_run(c,
                    "SET plan_cache_mode = force_generic_plan;"
                    " SET enable_seqscan = off; SET enable_bitmapscan = off;"
                    " SET enable_hashjoin = off; SET enable_mergejoin = off",
                    "settings", err);
    /* What many callers did in one commit is one entry of a feed, long enough to be packed. */
    if (rc == BELAY_OK && !c->store->own_options && PQserverVersion(c->pg) >= 140000)
        rc = pg_run(c,
                    "SET enable_memoize = off; SELECT set_config(name, 'lz4', false)"
                    " FROM pg_settings WHERE name = 'default_toast_compression' AND"
                    " 'lz4' = ANY (enumvals)",
                    "settings", err);
    return rc ? rc : pg_learn_life(c, err);
}

/* Begins to connect and sees it through; the parameters are libpq's. */
static belay_rc connect_with(struct pg_store *s, const char *const *keywords,
                             const char *const *values, int64_t deadline_us,
                             struct pg_conn **out, struct belay_error *err)
{
    struct pg_conn *c = calloc(1, sizeof(*c));

    if (!c)
        return err_no_memory(err, "a connection");
    c->store = s;
    c->pg = PQconnectStartParams(keywords, values, keywords != s->keywords);
    if (c->pg) {
        (void)PQsetNoticeReceiver(c->pg, no_notice, NULL);
        (void)PQsetErrorVerbosity(c->pg, PQERRORS_VERBOSE); /* with the SQLSTATE */
    }
    belay_rc rc = !c->pg ? err_no_memory(err, "a connection")
                  : PQstatus(c->pg) == CONNECTION_BAD
                      ? not_connected(c, err)
                      : poll_connect(c, deadline_us, err);
    if (rc == BELAY_OK) {
        (void)PQsetErrorVerbosity(c->pg, PQERRORS_DEFAULT);
        rc = prepare_conn(c, err);
    }
    if (rc) {
        pg_disconnect(c);
        return rc;
    }
    *out = c;
    return BELAY_OK;
}

/* As with libpq, who is answered and refused by one host does not ask the next. */
belay_rc pg_connect_by(struct pg_store *s, int64_t deadline_us, struct pg_conn **out,
                       struct belay_error *err)
{
    struct belay_error why = { .code = 0 };
    belay_rc rc = BELAY_UNAVAILABLE;

    for (unsigned i = 0; i < s->n_hosts && rc && why.reason[0] == '\0'; i++) {
        int64_t now_us = pg_mono_us();
        int64_t share_us = (deadline_us - now_us) / (s->n_hosts - i);
        if (share_us > s->connect_timeout_us)
            share_us = s->connect_timeout_us;
        rc = connect_with(s, s->keywords, s->values[i], now_us + share_us, out, &why);
    }
    if (rc && err)
        *err = why;
    return rc;
}

belay_rc pg_connect(struct pg_store *s, const char *conninfo, struct pg_conn **out,
                    struct belay_error *err)
{
    const char *const keywords[] = { "dbname", NULL };
    const char *const values[] = { conninfo, NULL };
    int64_t deadline_us = pg_mono_us() + s->request_timeout_us;

    return conninfo ? connect_with(s, keywords, values, deadline_us, out, err)
                    : pg_connect_by(s, deadline_us, out, err);
}

void pg_disconnect(struct pg_conn *c)
{
    if (!c)
        return;
    PQfinish(c->pg);
    free(c);
}
