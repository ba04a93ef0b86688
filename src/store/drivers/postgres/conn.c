#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/drivers/postgres/impl.h"

/* --- waiting for the socket --- */

static int64_t mono_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

/* Waits until the socket is ready; false: the time is up, or it is broken. */
static bool wait_socket(PGconn *pg, short events, int64_t deadline_us, short *ready)
{
    struct pollfd p = { .fd = PQsocket(pg), .events = events };

    if (p.fd < 0)
        return false;
    for (;;) {
        int64_t left_ms = (deadline_us - mono_us() + 999) / 1000;
        int n = left_ms > 0 ? poll(&p, 1, left_ms > 60000 ? 60000 : (int)left_ms) : 0;
        if (n > 0) {
            *ready = p.revents;
            return true;
        }
        if (n < 0 && errno != EINTR)
            return false;
        if (left_ms <= 0)
            return false;
    }
}

/* What libpq says is wrong, as one line without anything secret in it. */
static belay_rc lost(struct pg_conn *c, const char *what, struct belay_error *err)
{
    const char *why = PQerrorMessage(c->pg);

    c->bad = true;
    if (*why == '\0')
        why = "the server did not answer in time";
    return err_set(err, BELAY_UNAVAILABLE, "postgres: %s: %.*s", what,
                   (int)strcspn(why, "\n"), why);
}

/* --- connecting --- */

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
    return lost(c, "no connection", err);
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
        if (!wait_socket(c->pg, events, deadline_us, &ready))
            return lost(c, "no connection in time", err);
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
        return lost(c, "no connection", err);
    if (c->store->pooler)
        return BELAY_OK; /* the session is everybody's */
    /* A pick that nobody ends lapses with its transaction (rule 7).  Statements outside
     * of BEGIN are READ COMMITTED, too.  Compiling them takes longer than they do. */
    return pg_run(c,
                  "SET idle_in_transaction_session_timeout = '5s';"
                  " SET default_transaction_isolation = 'read committed';"
                  " SET jit = off",
                  "settings", err);
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
        int64_t now_us = mono_us();
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
    int64_t deadline_us = mono_us() + s->request_timeout_us;

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

/* --- sending --- */

static bool is_prepared(const struct pg_conn *c, const struct pg_sql *sql)
{
    return (c->prepared[sql->number / 8] >> (sql->number % 8)) & 1;
}

static void mark_prepared(struct pg_conn *c, const struct pg_sql *sql)
{
    c->prepared[sql->number / 8] |= (uint8_t)(1U << (sql->number % 8));
}

static bool was_sent_before(const struct pg_pipe *p, const struct pg_call *call)
{
    for (const struct pg_call *c = p->first; c != call; c = c->next) {
        if (c->preparing && c->sql == call->sql)
            return true;
    }
    return false;
}

static bool send_call(struct pg_conn *c, const struct pg_pipe *p, struct pg_call *call)
{
    const struct pg_sql *sql = call->sql;
    char name[16];

    if (!sql)
        return PQpipelineSync(c->pg) == 1;
    if (c->store->pooler)
        return PQsendQueryParams(c->pg, sql->text, call->n_args, NULL, call->values,
                                 call->lengths, call->formats, 1) == 1;
    (void)snprintf(name, sizeof(name), "b%u", sql->number);
    call->preparing = !is_prepared(c, sql) && !was_sent_before(p, call);
    if (call->preparing && PQsendPrepare(c->pg, name, sql->text, 0, NULL) != 1)
        return false;
    return PQsendQueryPrepared(c->pg, name, call->n_args, call->values, call->lengths,
                               call->formats, 1) == 1;
}

/* Until everything is out, taking in what comes meanwhile: a server that cannot get rid
 * of its answers does not read. */
static bool flush(struct pg_conn *c, int64_t deadline_us)
{
    int left;

    while ((left = PQflush(c->pg)) == 1) {
        short ready;
        if (!wait_socket(c->pg, POLLIN | POLLOUT, deadline_us, &ready))
            return false;
        if ((ready & POLLIN) && !PQconsumeInput(c->pg))
            return false;
    }
    return left == 0;
}

/* --- receiving --- */

static bool wait_result(struct pg_conn *c, int64_t deadline_us)
{
    short ready;

    while (PQisBusy(c->pg)) {
        if (!wait_socket(c->pg, POLLIN, deadline_us, &ready) || !PQconsumeInput(c->pg))
            return false;
    }
    return true;
}

/* The one result of a statement, and the NULL that ends it. */
static PGresult *take_result(struct pg_conn *c, int64_t deadline_us)
{
    PGresult *r = wait_result(c, deadline_us) ? PQgetResult(c->pg) : NULL;

    if (!r)
        return NULL;
    if (PQresultStatus(r) == PGRES_PIPELINE_SYNC)
        return r;
    PGresult *more = wait_result(c, deadline_us) ? PQgetResult(c->pg) : r;
    if (more) { /* an answer longer than one result, or a connection that is gone */
        PQclear(r);
        if (more != r)
            PQclear(more);
        return NULL;
    }
    return r;
}

static bool is_good(const PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ||
           status == PGRES_PIPELINE_SYNC;
}

static bool receive_call(struct pg_conn *c, struct pg_call *call, int64_t deadline_us)
{
    if (call->preparing) {
        PGresult *prepared = take_result(c, deadline_us);
        if (!prepared)
            return false;
        if (is_good(prepared))
            mark_prepared(c, call->sql);
        else if (PQresultStatus(prepared) == PGRES_FATAL_ERROR) {
            call->result = prepared; /* the statement itself is only skipped */
            prepared = NULL;
        }
        PQclear(prepared);
    }
    PGresult *r = take_result(c, deadline_us);
    if (!r)
        return false;
    if (call->result) {
        PQclear(r);
        return true;
    }
    call->result = r;
    call->ok = is_good(r);
    return true;
}

belay_rc pg_exchange(struct pg_conn *c, struct pg_pipe *p, enum pg_reached *reached,
                     struct belay_error *err)
{
    int64_t deadline_us = mono_us() + c->store->request_timeout_us;
    bool ok = true;

    *reached = PG_NOTHING_SENT;
    if (p->no_memory)
        return err_no_memory(err, "a request");
    pg_add_sync(p);
    if (p->no_memory)
        return err_no_memory(err, "a request");
    if (!PQenterPipelineMode(c->pg))
        return lost(c, "a request", err);
    for (struct pg_call *call = p->first; call && ok; call = call->next)
        ok = send_call(c, p, call);
    *reached = PG_SENT;
    ok = ok && flush(c, deadline_us);
    for (struct pg_call *call = p->first; call && ok; call = call->next)
        ok = receive_call(c, call, deadline_us);
    if (!ok || !PQexitPipelineMode(c->pg))
        return lost(c, "a request", err);
    *reached = PG_ANSWERED;
    return BELAY_OK;
}

/* --- errors --- */

struct pg_call *pg_failed(const struct pg_pipe *p)
{
    for (struct pg_call *c = p->first; c; c = c->next) {
        if (c->result && PQresultStatus(c->result) == PGRES_FATAL_ERROR)
            return c;
    }
    return NULL;
}

const char *pg_state(const struct pg_call *c)
{
    const char *state =
        c->result ? PQresultErrorField(c->result, PG_DIAG_SQLSTATE) : NULL;

    return state ? state : "";
}

/* What is nobody's fault here. */
static const struct {
    const char *state;
    belay_rc code;
    const char *reason;
} codes[] = {
    { "53200", BELAY_NO_MEMORY, "" },            /* out of memory */
    { "XX001", BELAY_CORRUPT, "" },              /* data corrupted */
    { "XX002", BELAY_CORRUPT, "" },              /* index corrupted */
    { "42501", BELAY_DENIED, "permission" },     /* insufficient privilege */
    { "25006", BELAY_UNAVAILABLE, "read_only" }, /* a replica */
    { "22021", BELAY_INVALID, "" },              /* not in the encoding */
};

belay_rc pg_call_error(const struct pg_call *c, const char *what,
                       struct belay_error *err)
{
    const char *message =
        c->result ? PQresultErrorField(c->result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *state = pg_state(c);
    const char *reason = "";
    belay_rc code = BELAY_UNAVAILABLE;

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (strcmp(state, codes[i].state) == 0) {
            code = codes[i].code;
            reason = codes[i].reason;
        }
    }
    return err_reason(err, code, reason, "postgres: %s: %s (%s)", what,
                      message ? message : "no answer", state);
}

belay_rc pg_run(struct pg_conn *c, const char *text, const char *what,
                struct belay_error *err)
{
    int64_t deadline_us = mono_us() + c->store->request_timeout_us;
    belay_rc rc = BELAY_OK;
    PGresult *r;

    if (PQsendQuery(c->pg, text) != 1 || !flush(c, deadline_us))
        return lost(c, what, err);
    for (;;) {
        if (!wait_result(c, deadline_us))
            return lost(c, what, err);
        r = PQgetResult(c->pg);
        if (!r)
            break;
        struct pg_call call = { .result = r };
        if (!is_good(r) && rc == BELAY_OK)
            rc = pg_call_error(&call, what, err);
        PQclear(r);
    }
    if (PQstatus(c->pg) != CONNECTION_OK)
        return lost(c, what, err);
    return rc;
}
