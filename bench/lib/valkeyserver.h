/* valkeyserver.h - the Valkey or Redis servers of a benchmark.
 *
 * Two of its own on loopback, each with its log on a real disk (keeper.h): one that syncs
 * the log at every write, and one that does so every second.  What is measured is measured
 * on both. */
#ifndef BENCH_VALKEYSERVER_H
#define BENCH_VALKEYSERVER_H

#include <hiredis/hiredis.h>

#include "inbox.h"
#include "keeper.h"

enum bench_sync { BENCH_ALWAYS, BENCH_EVERYSEC, BENCH_SYNCS };

struct bench_vk {
    enum bench_sync sync;
    struct bench_folder folder; /* on the server's disk */
    char url[128];
    int port;     /* on 127.0.0.1 */
    pid_t server; /* in the keeper alone */
    struct bench_keeper keeper;
};

/* Before any thread is started.  False, and said why, when there is no server. */
bool bench_vk_open(struct bench_vk vk[BENCH_SYNCS]);
void bench_vk_close(struct bench_vk vk[BENCH_SYNCS]); /* also when they did not open */

/* A plain connection; NULL, and said why. */
redisContext *bench_vk_connect(const struct bench_vk *vk);
/* Whether the answer is none of an error; says which.  Frees it. */
bool bench_vk_is_done(redisContext *c, redisReply *reply);

/* A function of six commands (three HGET, two HSET, one ZADD), about as many as a guarded commit
 * of one row needs: FCALL bench_six 3 ROW SLOT INDEX NUMBER NUMBER. */
bool bench_vk_load_six(const struct bench_vk *vk);

/* Stores on the server, as those of disk.h and inbox.h. */
bool bench_vk_store(struct bench_store *b, const struct bench_vk *vk,
                    const struct schema *schema);
struct belay *bench_vk_belay(const struct bench_vk *vk);

/* As bench_field; the name of what is of the server that syncs every second ends in
 * "_everysec". */
void bench_vk_field(struct buf *out, const struct bench_vk *vk, const char *name,
                    double value);

/* Requests a second of redis-benchmark, with `clients` connections and one request at a
 * time on each; 0, and said why, when it fails.  "__rand_int__" in an argument is 12 digits
 * of a number below `keys`. */
double bench_redis_benchmark(const struct bench_vk *vk, unsigned clients,
                             unsigned requests, unsigned keys,
                             const char *const *command, size_t n);

#endif /* BENCH_VALKEYSERVER_H */
