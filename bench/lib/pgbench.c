#include "pgbench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_program(const struct bench_pg *pg, unsigned clients, double seconds,
                        int in, int out)
{
    char program[512], n[16], threads[16], how_long[16], options[128];
    const char *const argv[] = { "pgbench",
                                 "-n",
                                 "-M",
                                 "prepared",
                                 "-f",
                                 "-",
                                 "-c",
                                 n,
                                 "-j",
                                 threads,
                                 seconds < 1 ? "-t" : "-T",
                                 how_long,
                                 pg->url,
                                 NULL };

    (void)snprintf(n, sizeof(n), "%u", clients);
    (void)snprintf(threads, sizeof(threads), "%u", clients < 2 ? clients : 2);
    (void)snprintf(how_long, sizeof(how_long), "%d", seconds < 1 ? 10 : (int)seconds);
    (void)snprintf(options, sizeof(options), "-c search_path=%s_raw", pg->schema);
    if (!bench_pg_program("pgbench", program) || setenv("PGOPTIONS", options, 1) ||
        dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    (void)execv(program, (char *const *)argv);
    _exit(127);
}

/* "tps = 1234.5 (without initial connection time)" */
static double tps_in(FILE *f)
{
    char line[512];
    double tps = 0;

    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "tps = ", 6) == 0)
            tps = strtod(line + 6, NULL);
    }
    return tps;
}

double bench_pgbench(const struct bench_pg *pg, const char *script, unsigned clients,
                     double seconds)
{
    int in[2], out[2], status = 1;
    double tps = 0;

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return 0;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_program(pg, clients, seconds, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    size_t length = strlen(script);
    bool ok = pid > 0 && write(in[1], script, length) == (ssize_t)length;
    (void)close(in[1]);
    FILE *f = fdopen(out[0], "r");
    if (f) {
        tps = tps_in(f);
        (void)fclose(f);
    }
    ok = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && ok;
    if (!ok || tps <= 0)
        (void)fprintf(stderr, "bench: pgbench failed\n");
    return ok ? tps : 0;
}

/* --- the table of things --- */

#define THING_KEY "'exe_01jd4k8m2q7r9s' || lpad(%s::text, 12, '0')"

bool bench_raw_things(const struct bench_pg *pg, unsigned n)
{
    char words[1024];

    (void)snprintf(words, sizeof(words),
                   "CREATE TABLE thing (ns text COLLATE \"C\", id text COLLATE \"C\","
                   " ver bigint NOT NULL, n bigint, text text, bytes bytea, json json,"
                   " count bigint, high bigint, PRIMARY KEY (ns, id))"
                   " WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);"
                   "INSERT INTO thing SELECT 'default', " THING_KEY
                   ", 1, 0, 'waiting' FROM generate_series(0, %u) AS i;"
                   "ANALYZE thing",
                   "i", n - 1);
    return bench_pg_do(pg, words);
}

void bench_raw_update(unsigned n, char out[256])
{
    (void)snprintf(out, 256,
                   "\\set i random(0, %u)\n"
                   "UPDATE thing SET ver = ver + 1, n = n + 1"
                   " WHERE ns = 'default' AND id = " THING_KEY ";\n",
                   n - 1, ":i");
}
