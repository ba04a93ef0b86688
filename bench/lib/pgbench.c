#include "pgbench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

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
    char path[512], n[16], threads[16], how_long[16], options[128];
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
    const struct bench_program program = { .path = path,
                                           .argv = argv,
                                           .input = script,
                                           .env = "PGOPTIONS",
                                           .value = options };

    (void)snprintf(n, sizeof(n), "%u", clients);
    (void)snprintf(threads, sizeof(threads), "%u", clients < 2 ? clients : 2);
    (void)snprintf(how_long, sizeof(how_long), "%d", seconds < 1 ? 10 : (int)seconds);
    (void)snprintf(options, sizeof(options), "-c search_path=%s_raw", pg->schema);
    return bench_pg_program("pgbench", path) ? bench_program_figure(&program, tps_in)
                                             : 0;
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
