#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/drivers/postgres/impl.h"

/* --- waiting for the socket --- */

int64_t pg_mono_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

bool pg_wait_socket(PGconn *pg, short events, int64_t deadline_us, short *ready)
{
    struct pollfd p = { .fd = PQsocket(pg), .events = events };

    if (p.fd < 0)
        return false;
    for (;;) {
        int64_t left_ms = (deadline_us - pg_mono_us() + 999) / 1000;
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

belay_rc pg_lost(struct pg_conn *c, const char *what, struct belay_error *err)
{
    const char *why = PQerrorMessage(c->pg);

    c->bad = true;
    if (*why == '\0')
        why = "the server did not answer in time";
    return err_set(err, BELAY_UNAVAILABLE, "postgres: %s: %.*s", what,
                   (int)strcspn(why, "\n"), why);
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
        if (!pg_wait_socket(c->pg, POLLIN | POLLOUT, deadline_us, &ready))
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
        if (!pg_wait_socket(c->pg, POLLIN, deadline_us, &ready) ||
            !PQconsumeInput(c->pg))
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
    int64_t deadline_us = pg_mono_us() + c->store->request_timeout_us;
    bool ok = true;

    *reached = PG_NOTHING_SENT;
    if (p->no_memory)
        return err_no_memory(err, "a request");
    pg_add_sync(p);
    if (p->no_memory)
        return err_no_memory(err, "a request");
    if (!PQenterPipelineMode(c->pg))
        return pg_lost(c, "a request", err);
    for (struct pg_call *call = p->first; call && ok; call = call->next)
        ok = send_call(c, p, call);
    *reached = PG_SENT;
    ok = ok && flush(c, deadline_us);
    for (struct pg_call *call = p->first; call && ok; call = call->next)
        ok = receive_call(c, call, deadline_us);
    if (!ok || !PQexitPipelineMode(c->pg))
        return pg_lost(c, "a request", err);
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
    int64_t deadline_us = pg_mono_us() + c->store->request_timeout_us;
    belay_rc rc = BELAY_OK;
    PGresult *r;

    if (PQsendQuery(c->pg, text) != 1 || !flush(c, deadline_us))
        return pg_lost(c, what, err);
    for (;;) {
        if (!wait_result(c, deadline_us))
            return pg_lost(c, what, err);
        r = PQgetResult(c->pg);
        if (!r)
            break;
        struct pg_call call = { .result = r };
        if (!is_good(r) && rc == BELAY_OK)
            rc = pg_call_error(&call, what, err);
        PQclear(r);
    }
    if (PQstatus(c->pg) != CONNECTION_OK)
        return pg_lost(c, what, err);
    return rc;
}
