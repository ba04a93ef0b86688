/* Who may come in, and how: TLS, passwords, names that are not there, hosts that do not
 * answer.  What is refused is refused at once, with the reason, and no password is ever
 * repeated. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "pgserver.h"
#include "tap.h"
#include "testserver.h"

#define PASSWORD "xyzzy%2Fplugh"
#define SPELT "xyzzy/plugh"
#define WRONG "open-sesame"

/* So long are the pauses between tries that one of them shows. */
#define SLOW_RETRIES "retries=3&retry_factor=20000&retry_jitter=0"
#define AT_ONCE_MS 8000

static struct test_server server;
static char port[16];
static char here[256]; /* where the certificates and password files are */

/* --- a server that is particular --- */

static bool make_certificates(void)
{
    return shell_run(
        "K='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';"
        " for ca in ca other; do openssl req -x509 $K -keyout $ca.key -out $ca.crt"
        "  -days 2 -subj /CN=$ca 2>&1 || exit 1; done;"
        " openssl req $K -keyout server.key -out server.csr -subj /CN=localhost 2>&1 &&"
        " echo subjectAltName=DNS:localhost > names &&"
        " openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial"
        "  -out server.crt -days 2 -extfile names 2>&1");
}

/* The server reads what its own user owns. */
static bool give_to_server(const char *data, const char *name)
{
    char words[1024];
    struct stat st;

    if (stat(data, &st))
        return false;
    (void)snprintf(
        words, sizeof(words), "cp %s '%s/' && chown %u:%u '%s/%s' && chmod 600 '%s/%s'",
        name, data, (unsigned)st.st_uid, (unsigned)st.st_gid, data, name, data, name);
    return shell_run(words);
}

static bool write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    bool ok = f && fputs(text, f) >= 0;

    ok = f && fclose(f) == 0 && ok;
    return ok && chmod(name, 0600) == 0;
}

/* One role that must come by TLS, one that must have a password. */
static bool set_up(void)
{
    static const char hba[] = "host all postgres 127.0.0.1/32 trust\n"
                              "hostssl all t_tls 127.0.0.1/32 trust\n"
                              "host all t_password 127.0.0.1/32 scram-sha-256\n";
    static const char *const files[] = { "server.key", "server.crt", "pg_hba.conf" };
    char data[256];

    if (!make_certificates() || !write_file("pg_hba.conf", hba))
        return false;
    PGconn *pg = pg_test_connect(server.word[0]);
    bool ok = pg && pg_test_ask(pg, "SHOW data_directory", data, sizeof(data));
    PQfinish(pg);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && ok; i++)
        ok = give_to_server(data, files[i]);
    return ok &&
           pg_test_run(server.word[0],
                       "SET password_encryption = 'scram-sha-256';"
                       " CREATE ROLE t_tls LOGIN; CREATE ROLE t_password"
                       "  LOGIN PASSWORD '" SPELT "';"
                       " GRANT CREATE ON DATABASE postgres TO t_tls,"
                       "  t_password") &&
           pg_test_run(server.word[0], "ALTER SYSTEM SET ssl = on") &&
           test_server_order(&server, "stop fast") &&
           test_server_order(&server, "start");
}

/* postgres://USER@HOST:PORT/DATABASE?hostaddr=127.0.0.1&schema=USER&... */
static const char *url_of(char out[1024], const char *user, const char *host,
                          const char *database, const char *more)
{
    (void)snprintf(out, 1024, "postgres://%s@%s:%s/%s?schema=s_%.5s&" SLOW_RETRIES "%s",
                   user, host, port, database, user, more);
    return out;
}

/* --- what comes of a command --- */

static void check_silence(struct tap *t, const struct cli *c)
{
    static const char *const secrets[] = { SPELT, PASSWORD, "xyzzy", WRONG };

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        TAP_OK(t, !strstr(c->text, secrets[i]));
}

static void check_works(struct tap *t, const char *env, const char *url)
{
    struct cli c;

    cli_run(&c, env, url, "namespace ls");
    if (!TAP_EQ(t, c.status, 0))
        printf("# %s\n", c.text);
    check_silence(t, &c);
    cli_run(&c, env, url, "doctor");
    TAP_EQ(t, c.status, 0);
    check_silence(t, &c);
}

/* `unavailable`, at once, for a reason that is told. */
static void check_refused(struct tap *t, const char *env, const char *url,
                          const char *why)
{
    struct cli c;

    cli_run(&c, env, url, "--json namespace ls");
    TAP_EQ(t, c.status, 69);
    TAP_OK(t, strstr(c.text, "\"unavailable\""));
    if (!TAP_OK(t, strstr(c.text, why)))
        printf("# not \"%s\": %s\n", why, c.text);
    TAP_OK(t, c.ms < AT_ONCE_MS);
    check_silence(t, &c);
    cli_run(&c, env, url, "doctor");
    TAP_OK(t, c.status != 0);
    TAP_OK(t, strstr(c.text, why));
    check_silence(t, &c);
}

/* --- TLS --- */

static void encrypts(struct tap *t)
{
    char url[1024], root[512];

    check_works(t, "",
                url_of(url, "t_tls", "127.0.0.1", "postgres", "&sslmode=require"));
    (void)snprintf(root, sizeof(root),
                   "&hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=%s/ca.crt",
                   here);
    check_works(t, "", url_of(url, "t_tls", "localhost", "postgres", root));
    check_works(t, "PGSSLMODE=require",
                url_of(url, "t_tls", "127.0.0.1", "postgres", ""));
}

static void trusts_nobody_else(struct tap *t)
{
    char url[1024], more[512];

    (void)snprintf(more, sizeof(more),
                   "&hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=%s/other.crt",
                   here);
    check_refused(t, "", url_of(url, "t_tls", "localhost", "postgres", more),
                  "certificate verify failed");
    (void)snprintf(more, sizeof(more), "&sslmode=verify-full&sslrootcert=%s/ca.crt",
                   here);
    check_refused(t, "", url_of(url, "t_tls", "127.0.0.1", "postgres", more),
                  "does not match host name");
    (void)snprintf(more, sizeof(more), "&sslmode=verify-ca&sslrootcert=%s/none.crt",
                   here);
    check_refused(t, "", url_of(url, "t_tls", "127.0.0.1", "postgres", more),
                  "does not exist");
    check_refused(t, "",
                  url_of(url, "t_tls", "127.0.0.1", "postgres", "&sslmode=disable"),
                  "no encryption");
}

/* --- passwords --- */

static void takes_passwords(struct tap *t)
{
    char url[1024], more[512], line[512];

    check_works(t, "",
                url_of(url, "t_password:" PASSWORD, "127.0.0.1", "postgres", ""));
    url_of(url, "t_password", "127.0.0.1", "postgres", "");
    check_works(t, "PGPASSWORD='" SPELT "'", url);
    (void)snprintf(line, sizeof(line), "127.0.0.1:%s:*:t_password:" SPELT "\n", port);
    TAP_OK(t, write_file("passwords", line) && write_file(".pgpass", line));
    (void)snprintf(line, sizeof(line), "PGPASSFILE='%s/passwords'", here);
    check_works(t, line, url);
    (void)snprintf(line, sizeof(line), "HOME='%s'", here);
    check_works(t, line, url);
    (void)snprintf(more, sizeof(more), "&passfile=%s/passwords", here);
    check_works(t, "HOME=/", url_of(url, "t_password", "127.0.0.1", "postgres", more));
}

static void refuses_logins(struct tap *t)
{
    char url[1024];

    check_refused(t, "HOME=/",
                  url_of(url, "t_password:" WRONG, "127.0.0.1", "postgres", ""),
                  "password authentication failed");
    url_of(url, "t_password", "127.0.0.1", "postgres", "");
    check_refused(t, "HOME=/ PGPASSWORD='" WRONG "'", url,
                  "password authentication failed");
    check_refused(t, "HOME=/", url, "no password supplied");
    check_refused(t, "", url_of(url, "t_nobody:" PASSWORD, "127.0.0.1", "postgres", ""),
                  "no pg_hba.conf entry");
    check_refused(t, "", url_of(url, "postgres", "127.0.0.1", "no_such_database", ""),
                  "does not exist");
}

/* --- options --- */

static void check_invalid(struct tap *t, const char *url, const char *why)
{
    struct cli c;

    cli_run(&c, "", url, "namespace ls");
    TAP_EQ(t, c.status, 2);
    if (!TAP_OK(t, strstr(c.text, why)))
        printf("# not \"%s\": %s\n", why, c.text);
    check_silence(t, &c);
}

static void checks_options(struct tap *t)
{
    char url[1024];

    check_invalid(t, url_of(url, "postgres", "127.0.0.1", "postgres", "&colour=red"),
                  "colour");
    check_invalid(t, url_of(url, "postgres", "127.0.0.1", "postgres", "&replication=1"),
                  "replication");
    check_invalid(t,
                  url_of(url, "postgres", "127.0.0.1", "postgres", "&sslmode=" WRONG),
                  "sslmode");
    check_invalid(
        t, url_of(url, "postgres", "127.0.0.1", "postgres", "&connect_timeout=" WRONG),
        "connect_timeout");
    check_works(t, "",
                url_of(url, "postgres", "127.0.0.1", "postgres",
                       "&connect_timeout=5&keepalives_idle=30&application_name=b"));
    check_refused(t, "",
                  url_of(url, "postgres", "127.0.0.1", "postgres",
                         "&options=-c%20no_such_setting%3D1"),
                  "no_such_setting");
}

/* --- hosts that do not answer --- */

/* A port that takes connections and says nothing, or one that takes none. */
static int open_port(bool listens, int *out_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) ||
        (listens && listen(fd, 16)) || getsockname(fd, (struct sockaddr *)&at, &len)) {
        printf("Bail out! no port\n");
        exit(1);
    }
    *out_port = ntohs(at.sin_port);
    return fd;
}

static void check_away(struct tap *t, const char *url, int64_t min_ms, int64_t max_ms,
                       const char *why)
{
    struct cli c;

    cli_run(&c, "", url, "--json namespace ls");
    TAP_EQ(t, c.status, 69);
    if (!TAP_OK(t, strstr(c.text, why)))
        printf("# not \"%s\": %s\n", why, c.text);
    TAP_OK(t, c.ms >= min_ms);
    if (!TAP_OK(t, c.ms < max_ms))
        printf("# %s: %lld ms\n", url, (long long)c.ms);
    check_silence(t, &c);
}

static void gives_up_in_time(struct tap *t)
{
    int silent, closed, fd[2];
    char url[512];

    fd[0] = open_port(true, &silent);
    fd[1] = open_port(false, &closed);
    (void)snprintf(url, sizeof(url),
                   "postgres://postgres:xyzzy@127.0.0.1:%d/postgres?retries=2"
                   "&retry_factor=10&request_timeout=700ms",
                   silent);
    check_away(t, url, 700, 5000, "in time");
    (void)snprintf(url, sizeof(url),
                   "postgres://postgres:xyzzy@127.0.0.1:%d/postgres?retries=0"
                   "&connect_timeout=1",
                   silent);
    check_away(t, url, 1000, 5000, "in time");
    (void)snprintf(url, sizeof(url),
                   "postgres://postgres:xyzzy@127.0.0.1:%d/postgres?retries=2"
                   "&retry_factor=100&retry_base=2&retry_jitter=0",
                   closed);
    check_away(t, url, 300, 5000, "Connection refused");
    (void)snprintf(url, sizeof(url),
                   "postgres://postgres:xyzzy@no-such-host.invalid/postgres"
                   "?retries=0");
    check_away(t, url, 0, 10000, "no-such-host.invalid");

    /* Others are asked when one is silent, or is not there. */
    (void)snprintf(url, sizeof(url),
                   "postgres://postgres@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%s/postgres"
                   "?request_timeout=20s&connect_timeout=1&retries=0&schema=s_hosts",
                   silent, closed, port);
    check_works(t, "", url);
    (void)close(fd[0]);
    (void)close(fd[1]);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "access: TLS is used and checked where it is asked for", encrypts },
        { "access: a server that is not the one asked for is refused at once",
          trusts_nobody_else },
        { "access: passwords come from the URL, the environment and files",
          takes_passwords },
        { "access: a login that is refused is not tried again", refuses_logins },
        { "access: parameters are libpq's, and others are refused", checks_options },
        { "access: a host that does not answer is given up in time", gives_up_in_time },
    };
    const char *const none[] = { NULL };
    int status = 1;

    if (getcwd(here, sizeof(here)) && test_server_open(&server, "pgserver", none)) {
        const char *at = strrchr(server.word[0], ':');
        (void)snprintf(port, sizeof(port), "%ld", at ? strtol(at + 1, NULL, 10) : 0);
    }
    if (port[0] && set_up())
        status = tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
    else
        printf("Bail out! no server\n");
    test_server_close(&server);
    return status;
}
