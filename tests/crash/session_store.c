#include "session_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "pgserver.h"
#include "rig.h"

#define PATIENCE_US ((int64_t)20 * 1000000)

void session_store_name(struct session_store *s, bool postgres, const char *dir)
{
    *s = (struct session_store){ .schema = "" };
    if (!postgres) {
        (void)snprintf(s->url, sizeof(s->url), "sqlite:%.200s/store.db", dir);
        return;
    }
    /* Directories may have the same name, one after the other. */
    (void)snprintf(s->schema, sizeof(s->schema), "crash_%016llx_%llx",
                   (unsigned long long)key_hash(bytes_str(dir)),
                   (unsigned long long)now_us());
    /* The name of the program tells who is there. */
    (void)snprintf(s->url, sizeof(s->url), "%.150s?schema=%s&application_name=%s",
                   pg_test_url(), s->schema, s->schema);
}

bool session_store_settle(const struct session_store *s)
{
    int64_t end = now_us() + PATIENCE_US;
    char words[256], n[16] = "";

    if (!*s->schema)
        return true;
    PGconn *pg = pg_test_connect(pg_test_url());
    (void)snprintf(
        words, sizeof(words),
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s'",
        s->schema);
    while (pg && pg_test_ask(pg, words, n, sizeof(n)) && strcmp(n, "0") != 0 &&
           now_us() < end)
        (void)usleep(2000);
    PQfinish(pg);
    return strcmp(n, "0") == 0;
}

void session_store_drop(const struct session_store *s)
{
    char words[128];

    if (!*s->schema || !session_store_settle(s))
        return;
    (void)snprintf(words, sizeof(words), "DROP SCHEMA IF EXISTS %s CASCADE", s->schema);
    (void)pg_test_run(pg_test_url(), words);
}
