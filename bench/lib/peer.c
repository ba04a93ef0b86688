#include "peer.h"

#include <stdlib.h>
#include <string.h>

/* "NAME=PER_SECOND", of this peer. */
static void take(struct bench_peer *peer, const char *said)
{
    size_t length = strlen(peer->name);

    if (strncmp(said, peer->name, length) != 0 || said[length] != '=')
        return;
    double per_s = strtod(said + length + 1, NULL);
    if (per_s <= 0)
        return;
    peer->per_s = per_s;
    peer->measured = true;
}

void bench_take_peers(struct bench_peer *peers, size_t n, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        for (size_t p = 0; p < n && strcmp(argv[i], "--peer") == 0; p++)
            take(&peers[p], argv[i + 1]);
    }
}
