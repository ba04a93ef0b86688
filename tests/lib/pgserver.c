#include "pgserver.h"

#include "testserver.h"

const char *pg_test_url(void)
{
    return test_server_url("BELAY_TEST_POSTGRES");
}

const char *pg_test_pooler_url(void)
{
    return test_server_url("BELAY_TEST_PGBOUNCER");
}

belay_rc pg_test_options(const char *url, struct postgres_options *out,
                         struct belay_arena *a, struct belay_error *err)
{
    const char *rest = strchr(url, ':');

    return postgres_options_from_uri(out, bytes_str(rest ? rest + 1 : url), NULL, 0, a,
                                     err);
}

PGconn *pg_test_connect(const char *url)
{
    PGconn *pg = PQconnectdb(url);

    if (PQstatus(pg) == CONNECTION_OK)
        return pg;
    printf("# no connection: %s", PQerrorMessage(pg));
    PQfinish(pg);
    return NULL;
}

static bool run(PGconn *pg, const char *words)
{
    PGresult *r = PQexec(pg, words);
    bool ok =
        PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;

    if (!ok)
        printf("# %s: %s", words, PQerrorMessage(pg));
    PQclear(r);
    return ok;
}

/* The chatter of cascades. */
static void no_notice(void *arg, const PGresult *r)
{
    (void)arg;
    (void)r;
}

bool pg_test_run(const char *url, const char *words)
{
    PGconn *pg = pg_test_connect(url);

    if (!pg)
        return false;
    (void)PQsetNoticeReceiver(pg, no_notice, NULL);
    bool ok = run(pg, words);
    PQfinish(pg);
    return ok;
}

bool pg_test_ask(PGconn *pg, const char *words, char *out, size_t size)
{
    PGresult *r = PQexec(pg, words);
    bool ok = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) > 0;

    if (ok)
        (void)snprintf(out, size, "%s", PQgetvalue(r, 0, 0));
    else if (PQresultStatus(r) != PGRES_TUPLES_OK)
        printf("# %s: %s", words, PQerrorMessage(pg));
    PQclear(r);
    return ok;
}
