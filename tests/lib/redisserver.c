#include "redisserver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testserver.h"

#define PATIENCE_MS 20000
#define KEYS_AT_ONCE "1000"

const char *redis_test_url(void)
{
    return test_server_url("BELAY_TEST_VALKEY");
}

/* --- connections --- */

int redis_test_port(const char *url, char host[REDIS_HOST_MAX])
{
    const char *begin = strstr(url, "://");
    const char *colon = begin ? strchr(begin + 3, ':') : NULL;

    host[0] = '\0';
    if (!colon)
        return -1;
    (void)snprintf(host, REDIS_HOST_MAX, "%.*s", (int)(colon - begin - 3), begin + 3);
    return (int)strtol(colon + 1, NULL, 10);
}

redisContext *redis_test_connect(const char *url)
{
    char host[REDIS_HOST_MAX];
    int port = redis_test_port(url, host);
    redisContext *c = redisConnect(host, port);

    if (c && !c->err)
        return c;
    printf("# no connection to %s: %s\n", url, c ? c->errstr : "no memory");
    redisFree(c);
    return NULL;
}

static redisReply *ask(const char *url, const char *format, va_list args)
{
    redisContext *c = redis_test_connect(url);
    redisReply *r = c ? redisvCommand(c, format, args) : NULL;

    if (c && (!r || r->type == REDIS_REPLY_ERROR)) {
        printf("# %s: %s\n", format, r ? r->str : c->errstr);
        freeReplyObject(r);
        r = NULL;
    }
    redisFree(c);
    return r;
}

redisReply *redis_test_ask(const char *url, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *r = ask(url, format, args);
    va_end(args);
    return r;
}

bool redis_test_run(const char *url, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *r = ask(url, format, args);
    va_end(args);
    freeReplyObject(r);
    return r != NULL;
}

/* --- keys --- */

void redis_test_prefix(const char *dir, char out[REDIS_PREFIX_MAX])
{
    const char *last = strrchr(dir, '/');

    (void)snprintf(out, REDIS_PREFIX_MAX, "%s", last ? last + 1 : dir);
}

static bool unlink_all(redisContext *c, const redisReply *keys)
{
    const char **argv = calloc(keys->elements + 1, sizeof(*argv));
    size_t *len = calloc(keys->elements + 1, sizeof(*len));
    redisReply *r = NULL;

    if (argv && len && keys->elements > 0) {
        argv[0] = "UNLINK";
        len[0] = strlen(argv[0]);
        for (size_t i = 0; i < keys->elements; i++) {
            argv[i + 1] = keys->element[i]->str;
            len[i + 1] = keys->element[i]->len;
        }
        r = redisCommandArgv(c, (int)keys->elements + 1, argv, len);
    }
    bool ok = keys->elements == 0 || (r && r->type == REDIS_REPLY_INTEGER);
    freeReplyObject(r);
    free(argv);
    free(len);
    return ok;
}

bool redis_test_forget(const char *url, const char *prefix)
{
    redisContext *c = redis_test_connect(url);
    char cursor[32] = "0";
    bool ok = c != NULL;

    while (ok) {
        redisReply *r =
            redisCommand(c, "SCAN %s MATCH %s:* COUNT " KEYS_AT_ONCE, cursor, prefix);
        ok = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 &&
             unlink_all(c, r->element[1]);
        if (ok)
            (void)snprintf(cursor, sizeof(cursor), "%s", r->element[0]->str);
        freeReplyObject(r);
        if (strcmp(cursor, "0") == 0)
            break;
    }
    redisFree(c);
    return ok;
}

/* --- connections whose other end is gone --- */

/* Whether the kernel has an established connection from that port to the server's. */
static bool is_alive(const char *table, unsigned server, unsigned client)
{
    char words[64];

    /* " 0100007F:PORT 0100007F:PORT 01 ": from the server's side. */
    (void)snprintf(words, sizeof(words), ":%04X 0100007F:%04X 01 ", server, client);
    return strstr(table, words) != NULL;
}

static char *read_table(void)
{
    FILE *f = fopen("/proc/net/tcp", "r");
    size_t size = 1u << 20, n = 0;
    char *text = malloc(size);

    while (f && text && !feof(f) && !ferror(f) && n < size - 1)
        n += fread(text + n, 1, size - 1 - n, f);
    if (text)
        text[n] = '\0';
    if (f)
        (void)fclose(f);
    return text;
}

/* Every client that the server has, against what the kernel has. */
static bool all_alive(const char *clients, unsigned server)
{
    char *table = read_table();
    bool alive = table != NULL;

    for (const char *at = clients; alive && (at = strstr(at, " addr=")); at++) {
        const char *colon = strchr(at, ':');
        alive =
            colon && is_alive(table, server, (unsigned)strtoul(colon + 1, NULL, 10));
    }
    free(table);
    return alive;
}

bool redis_test_settle(const char *url)
{
    redisContext *c = redis_test_connect(url);
    char host[REDIS_HOST_MAX];
    unsigned port = (unsigned)redis_test_port(url, host);
    bool settled = false;

    for (int ms = 0; c && !settled && ms < PATIENCE_MS; ms++) {
        redisReply *r = redisCommand(c, "CLIENT LIST");
        settled = r && r->type == REDIS_REPLY_STRING && all_alive(r->str, port);
        freeReplyObject(r);
        if (!settled)
            (void)usleep(1000);
    }
    redisFree(c);
    return settled;
}
