#include "url_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "pgserver.h"
#include "redisserver.h"

#define PATIENCE_US ((int64_t)20 * 1000000)

static int64_t now_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

struct url_kind {
    const char *name;
    void (*url)(struct url_store *s, const char *dir);
    bool (*settle)(const struct url_store *s); /* NULL: the dead are dead */
    void (*drop)(const struct url_store *s);   /* NULL: it is in the directory */
};

static void sqlite_url(struct url_store *s, const char *dir)
{
    (void)snprintf(s->url, sizeof(s->url), "sqlite:%.200s/store.db", dir);
}

/* --- postgres: a schema --- */

/* The name of the program tells who is there. */
static void postgres_url(struct url_store *s, const char *dir)
{
    (void)dir;
    (void)snprintf(s->url, sizeof(s->url), "%.200s?schema=%s", pg_test_url(), s->name);
    (void)snprintf(s->watched_url, sizeof(s->watched_url), "%s&application_name=%s",
                   s->url, s->name);
}

static bool postgres_settle(const struct url_store *s)
{
    int64_t end = now_us() + PATIENCE_US;
    char words[256], n[16] = "";

    PGconn *pg = pg_test_connect(pg_test_url());
    (void)snprintf(
        words, sizeof(words),
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s'", s->name);
    while (pg && pg_test_ask(pg, words, n, sizeof(n)) && strcmp(n, "0") != 0 &&
           now_us() < end)
        (void)usleep(2000);
    PQfinish(pg);
    return strcmp(n, "0") == 0;
}

static void postgres_drop(const struct url_store *s)
{
    char words[128];

    (void)snprintf(words, sizeof(words), "DROP SCHEMA IF EXISTS %s CASCADE", s->name);
    (void)pg_test_run(pg_test_url(), words);
}

/* --- valkey: a prefix --- */

static void valkey_url(struct url_store *s, const char *dir)
{
    (void)dir;
    (void)snprintf(s->url, sizeof(s->url), "%.200s?prefix=%s", redis_test_url(),
                   s->name);
}

static bool valkey_settle(const struct url_store *s)
{
    (void)s;
    return redis_test_settle(redis_test_url());
}

static void valkey_drop(const struct url_store *s)
{
    (void)redis_test_forget(redis_test_url(), s->name);
}

static const struct url_kind kinds[] = {
    { "sqlite", sqlite_url, NULL, NULL },
    { "postgres", postgres_url, postgres_settle, postgres_drop },
    { "valkey", valkey_url, valkey_settle, valkey_drop },
};

const struct url_kind *url_kind_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

void url_store_name(struct url_store *s, const struct url_kind *kind, const char *dir)
{
    *s = (struct url_store){ .kind = kind };
    /* Directories may have the same name, one after the other. */
    (void)snprintf(s->name, sizeof(s->name), "test_%016llx_%llx",
                   (unsigned long long)key_hash(bytes_str(dir)),
                   (unsigned long long)now_us());
    kind->url(s, dir);
    if (!*s->watched_url)
        (void)snprintf(s->watched_url, sizeof(s->watched_url), "%s", s->url);
}

bool url_store_settle(const struct url_store *s)
{
    return !s->kind->settle || s->kind->settle(s);
}

void url_store_drop(const struct url_store *s)
{
    if (s->kind->drop && url_store_settle(s))
        s->kind->drop(s);
}
