#include "valkeyserver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "program.h"
#include "store/drivers/valkey.h"

#define HOST "127.0.0.1"
#define ARGS_MAX 32
#define PORTS 5 /* that are tried */

static const struct {
    const char *fsync, *suffix;
    bool relaxed;
} syncs[BENCH_SYNCS] = {
    [BENCH_ALWAYS] = { "always", "", false },
    [BENCH_EVERYSEC] = { "everysec", "_everysec", true },
};

/* --- programs --- */

/* Either of two names. */
static bool find_program(const char *name, const char *other, char out[512])
{
    const char *path = getenv("PATH");

    if (bench_program_in(path, name, out) || bench_program_in(path, other, out))
        return true;
    (void)fprintf(stderr, "bench: %s is not installed\n", other);
    return false;
}

/* --- what the keeper does --- */

static pid_t start_server(void *arg)
{
    struct bench_vk *vk = arg;
    char program[512], port[16];
    const char *const argv[] = { "valkey",
                                 "--bind",
                                 HOST,
                                 "--port",
                                 port,
                                 "--appendonly",
                                 "yes",
                                 "--appendfsync",
                                 syncs[vk->sync].fsync,
                                 "--save",
                                 "",
                                 "--maxmemory-policy",
                                 "noeviction",
                                 "--hash-max-listpack-value",
                                 "512", /* as the manual has it */
                                 "--auto-aof-rewrite-percentage",
                                 "0", /* not in the middle of a round */
                                 NULL };

    (void)snprintf(port, sizeof(port), "%d", vk->port);
    vk->server = find_program("valkey-server", "redis-server", program)
                     ? bench_keeper_spawn(vk->folder.path, program, argv, NULL)
                     : -1;
    return vk->server;
}

/* It, and not somebody who was faster to take the port. */
static bool answers(void *arg)
{
    const struct bench_vk *vk = arg;
    redisContext *c = redisConnect(HOST, vk->port);
    redisReply *r = c && !c->err ? redisCommand(c, "INFO server") : NULL;
    char line[32];

    (void)snprintf(line, sizeof(line), "process_id:%d\r", (int)vk->server);
    bool ok = r && r->str && strstr(r->str, line) != NULL;

    if (r)
        freeReplyObject(r);
    if (c)
        redisFree(c);
    return ok;
}

/* --- servers --- */

/* On a port that nobody has now. */
static bool try_port(struct bench_vk *vk)
{
    const struct bench_kept kept = { .what = "Valkey or Redis",
                                     .stop = SIGTERM,
                                     .start = start_server,
                                     .answers = answers,
                                     .arg = vk,
                                     .folder = &vk->folder };

    vk->port = bench_free_port();
    (void)snprintf(vk->url, sizeof(vk->url), "valkey://" HOST ":%d%s", vk->port,
                   syncs[vk->sync].relaxed ? "?durability=relaxed" : "");
    return vk->port > 0 && bench_keeper_folder(&vk->folder) &&
           bench_keeper_start(&vk->keeper, &kept);
}

static bool open_one(struct bench_vk *vk)
{
    for (int i = 0; i < PORTS; i++) {
        if (try_port(vk))
            return true;
        bench_keeper_end(&vk->keeper);
    }
    return false;
}

bool bench_vk_open(struct bench_vk vk[BENCH_SYNCS])
{
    bool ok = true;

    for (int i = 0; i < (int)BENCH_SYNCS; i++)
        vk[i] = (struct bench_vk){ .sync = (enum bench_sync)i, .keeper.leash = -1 };
    for (int i = 0; i < (int)BENCH_SYNCS && ok; i++)
        ok = open_one(&vk[i]);
    return ok;
}

void bench_vk_close(struct bench_vk vk[BENCH_SYNCS])
{
    for (int i = (int)BENCH_SYNCS; i > 0; i--)
        bench_keeper_end(&vk[i - 1].keeper);
}

/* --- connections and stores --- */

redisContext *bench_vk_connect(const struct bench_vk *vk)
{
    redisContext *c = redisConnect(HOST, vk->port);

    if (c && !c->err)
        return c;
    (void)fprintf(stderr, "bench: no connection: %s\n", c ? c->errstr : "no memory");
    if (c)
        redisFree(c);
    return NULL;
}

bool bench_vk_is_done(redisContext *c, redisReply *reply)
{
    bool ok = reply && reply->type != REDIS_REPLY_ERROR;

    if (!ok)
        (void)fprintf(stderr, "bench: %s\n", reply ? reply->str : c->errstr);
    if (reply)
        freeReplyObject(reply);
    return ok;
}

static const char six[] = "#!lua name=bench\n"
                          "redis.register_function('bench_six', function(keys, args)\n"
                          "  local k, slot = keys[1], keys[2]\n"
                          "  redis.call('HGET', k, 'ver')\n"
                          "  redis.call('HGET', k, 'n')\n"
                          "  redis.call('HGET', slot, 'ver')\n"
                          "  redis.call('HSET', k, 'ver', args[1], 'n', args[2])\n"
                          "  redis.call('HSET', slot, 'ver', args[1], 'n', args[2])\n"
                          "  redis.call('ZADD', keys[3], args[1], k)\n"
                          "  return 0\n"
                          "end)";

bool bench_vk_load_six(const struct bench_vk *vk)
{
    redisContext *c = bench_vk_connect(vk);
    bool ok = c && bench_vk_is_done(c, redisCommand(c, "FUNCTION LOAD %s", six));

    if (c)
        redisFree(c);
    return ok;
}

bool bench_vk_store(struct bench_store *b, const struct bench_vk *vk,
                    const struct schema *schema)
{
    struct driver_config config = { schema, clock_system(), random_system() };
    struct store_options options = { .schema = schema,
                                     .clock = config.clock,
                                     .random = config.random };
    struct valkey_options server = { .host = HOST,
                                     .port = (unsigned)vk->port,
                                     .relaxed = syncs[vk->sync].relaxed,
                                     .retry_jitter = -1 };
    struct belay_error err;

    *b = (struct bench_store){ .driver = NULL };
    if (valkey_open(&b->driver, &server, &config, &err) ||
        store_open(&b->store, b->driver, &options, &err) ||
        store_space(b->store, bytes_str("default"), &b->space, &err))
        return bench_failed("open", &err);
    return true;
}

struct belay *bench_vk_belay(const struct bench_vk *vk)
{
    struct belay_error err;
    struct belay *b = NULL;

    if (belay_open(vk->url, NULL, &b, &err))
        (void)bench_failed("open", &err);
    return b;
}

void bench_vk_field(struct buf *out, const struct bench_vk *vk, const char *name,
                    double value)
{
    char full[64];

    (void)snprintf(full, sizeof(full), "%s%s", name, syncs[vk->sync].suffix);
    bench_field(out, full, value);
}

/* --- redis-benchmark --- */

/* The second field of the last line: "FCALL ...","27980.12",... */
static double rate_in(FILE *f)
{
    char line[4096];
    double rate = 0;

    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "\",\"");
        if (at)
            rate = strtod(at + 3, NULL);
    }
    return rate;
}

double bench_redis_benchmark(const struct bench_vk *vk, unsigned clients,
                             unsigned requests, unsigned keys,
                             const char *const *command, size_t n)
{
    char path[512], port[16], c[16], count[16], range[16];
    const char *argv[ARGS_MAX] = { "redis-benchmark",
                                   "-h",
                                   HOST,
                                   "-p",
                                   port,
                                   "-c",
                                   c,
                                   "-n",
                                   count,
                                   "-r",
                                   range,
                                   "--csv" };
    const size_t own = 12;
    const struct bench_program program = { .path = path, .argv = argv };

    if (own + n >= ARGS_MAX ||
        !find_program("valkey-benchmark", "redis-benchmark", path))
        return 0;
    (void)snprintf(port, sizeof(port), "%d", vk->port);
    (void)snprintf(c, sizeof(c), "%u", clients);
    (void)snprintf(count, sizeof(count), "%u", requests);
    (void)snprintf(range, sizeof(range), "%u", keys);
    memcpy(argv + own, command, n * sizeof(*command));
    return bench_program_figure(&program, rate_in);
}
