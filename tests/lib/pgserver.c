#include "pgserver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *url_in(const char *variable)
{
    const char *url = getenv(variable);

    if (url && *url)
        return url;
    printf("Bail out! %s is not set; tests/run sets it\n", variable);
    exit(1);
}

const char *pg_test_url(void)
{
    return url_in("BELAY_TEST_POSTGRES");
}

const char *pg_test_pooler_url(void)
{
    return url_in("BELAY_TEST_PGBOUNCER");
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

/* --- a server of one's own --- */

#define ARGUMENTS_MAX 16

static void run_script(const char *const *arguments, int in, int out)
{
    const char *root = getenv("BELAY_SOURCE_ROOT");
    const char *argv[ARGUMENTS_MAX + 2] = { "pgserver" };
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/tests/lib/pgserver", root ? root : ".");
    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
        argv[i + 1] = arguments[i];
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    (void)execv(path, (char *const *)argv);
    _exit(127);
}

/* Takes an answer; false, and told, when it is none or "failed". */
static bool take_answer(struct pgserver *s, const char *want, char *rest, size_t size)
{
    char line[2048] = "failed no answer\n";
    size_t n = strlen(want);

    if (fgets(line, sizeof(line), s->answers) && strncmp(line, want, n) == 0) {
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(rest, size, "%s", line[n] == ' ' ? line + n + 1 : "");
        return true;
    }
    printf("# pgserver: %s", line);
    return false;
}

bool pgserver_open(struct pgserver *s, const char *const *arguments)
{
    int orders[2] = { -1, -1 }, answers[2] = { -1, -1 };
    char urls[2 * PG_URL_MAX], *second;

    *s = (struct pgserver){ .pid = -1 };
    if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
        return false;
    (void)fflush(stdout);
    s->pid = fork();
    if (s->pid == 0)
        run_script(arguments, orders[0], answers[1]);
    (void)close(orders[0]);
    (void)close(answers[1]);
    s->orders = fdopen(orders[1], "w");
    s->answers = fdopen(answers[0], "r");
    if (s->pid < 0 || !s->orders || !s->answers ||
        !take_answer(s, "ready", urls, sizeof(urls)))
        return false;
    second = strchr(urls, ' ');
    if (second) { /* the pooler stands before the server */
        *second++ = '\0';
        (void)snprintf(s->pooler_url, sizeof(s->pooler_url), "%.255s", urls);
    }
    (void)snprintf(s->url, sizeof(s->url), "%.255s", second ? second : urls);
    return true;
}

bool pgserver_order(struct pgserver *s, const char *order)
{
    char rest[8];

    return s->orders && fprintf(s->orders, "%s\n", order) > 0 &&
           fflush(s->orders) == 0 && take_answer(s, "done", rest, sizeof(rest));
}

void pgserver_close(struct pgserver *s)
{
    if (s->orders)
        (void)fclose(s->orders);
    if (s->pid > 0)
        (void)waitpid(s->pid, NULL, 0);
    if (s->answers)
        (void)fclose(s->answers);
    *s = (struct pgserver){ .pid = -1 };
}
