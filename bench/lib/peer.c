#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

void bench_peer_found(struct bench_peer *peer, double per_s)
{
    if (!peer || per_s <= 0 || peer->n == BENCH_PEER_RUNS)
        return;
    peer->found[peer->n++] = per_s;
    peer->per_s = bench_median(peer->found, peer->n);
    peer->measured = true;
}

bool bench_peer_turn(unsigned round, unsigned rounds)
{
    return round == 0 || round == rounds / 2 || round == rounds - 1;
}

/* "NAME=PER_SECOND", of this peer. */
static void take(struct bench_peer *peer, const char *said)
{
    size_t length = strlen(peer->name);

    if (strncmp(said, peer->name, length) != 0 || said[length] != '=')
        return;
    bench_peer_found(peer, strtod(said + length + 1, NULL));
}

void bench_take_peers(struct bench_peer *peers, size_t n, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        for (size_t p = 0; p < n && strcmp(argv[i], "--peer") == 0; p++)
            take(&peers[p], argv[i + 1]);
    }
}

/* --- scripts --- */

struct figures {
    double best, c1;
};

static void find(const char *line, const char *name, double *out)
{
    const char *at = strstr(line, name);
    double value = at ? strtod(at + strlen(name), NULL) : 0;

    if (value > 0)
        *out = value;
}

static bool read_figures(FILE *f, void *arg)
{
    struct figures *found = arg;
    char line[8192];

    while (fgets(line, sizeof(line), f)) {
        find(line, "\"drain_best\":", &found->best);
        find(line, "\"drain_c1\":", &found->c1);
    }
    return found->best > 0;
}

void bench_run_peer(const struct bench_options *o, const char *name, const char *arg,
                    struct bench_peer *best, struct bench_peer *c1)
{
    const char *folder = getenv("BELAY_BENCH_PEERS");
    char scripts[256], path[512];
    const char *const argv[] = { path, arg, NULL };
    const struct bench_program program = { .path = path, .argv = argv };
    struct figures found = { 0, 0 };

    (void)snprintf(scripts, sizeof(scripts), "%s/%s", folder ? folder : "", name);
    if (o->smoke || !folder || !bench_program_in(scripts, "run.sh", path) ||
        !bench_program_read(&program, read_figures, &found))
        return;
    bench_peer_found(best, found.best);
    bench_peer_found(c1, found.c1);
}
