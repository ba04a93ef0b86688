#include "nodes.h"

#include <stdlib.h>

#define AT_ONCE 5
#define NAMES_MAX 200

int node_slot(struct test_server *s, const char *ns)
{
    redisReply *r = redis_test_ask(s->word[0], "CLUSTER KEYSLOT %s", ns);
    int slot = r && r->type == REDIS_REPLY_INTEGER ? (int)r->integer : -1;

    freeReplyObject(r);
    return slot;
}

/* --- who has a slot --- */

/* "ID ADDRESS flags ... FIRST-LAST FIRST [SLOT->-ID]": behind the eighth word. */
static bool line_has_slot(const char *line, int slot)
{
    char words[1024], *rest = NULL;
    int number = 0;

    (void)snprintf(words, sizeof(words), "%.*s", (int)strcspn(line, "\n"), line);
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        if (number++ < 8 || *w == '[')
            continue;
        int first = (int)strtol(w, &w, 10);
        int last = *w == '-' ? (int)strtol(w + 1, NULL, 10) : first;
        if (slot >= first && slot <= last)
            return true;
    }
    return false;
}

/* By the line about itself. */
bool node_has_slot(struct test_server *s, int node, int slot)
{
    redisContext *c = redis_test_connect(s->word[node]);
    redisReply *r = c ? redisCommand(c, "CLUSTER NODES") : NULL;
    const char *at =
        r && r->type == REDIS_REPLY_STRING ? strstr(r->str, "myself") : NULL;

    while (at && at > r->str && at[-1] != '\n')
        at--;
    bool has = at && line_has_slot(at, slot);
    freeReplyObject(r);
    redisFree(c);
    return has;
}

int node_of_slot(struct test_server *s, int slot)
{
    int node = 0;

    while (node < NODES && !node_has_slot(s, node, slot))
        node++;
    return node;
}

int node_of(struct test_server *s, const char *ns)
{
    return node_of_slot(s, node_slot(s, ns));
}

bool node_spaces(struct test_server *s, int node, char (*out)[16], size_t n)
{
    size_t found = 0;

    for (int i = 0; i < NAMES_MAX && found < n; i++) {
        (void)snprintf(out[found], sizeof(out[found]), "ns-%d", i);
        found += node_of(s, out[found]) == node;
    }
    return found == n;
}

/* --- moving one --- */

static bool node_id(const char *url, char out[64])
{
    redisReply *r = redis_test_ask(url, "CLUSTER MYID");

    (void)snprintf(out, 64, "%s", r ? r->str : "");
    freeReplyObject(r);
    return *out != '\0';
}

/* A few keys; *left: there may be more. */
static bool move_keys(const char *from, const char *to, int slot, bool *left)
{
    redisReply *keys =
        redis_test_ask(from, "CLUSTER GETKEYSINSLOT %d %d", slot, AT_ONCE);
    char host[REDIS_HOST_MAX];
    int port = redis_test_port(to, host);
    bool ok = keys && keys->type == REDIS_REPLY_ARRAY;

    *left = ok && keys->elements > 0;
    for (size_t i = 0; ok && i < keys->elements; i++)
        ok = redis_test_run(from, "MIGRATE %s %d %s 0 5000", host, port,
                            keys->element[i]->str);
    freeReplyObject(keys);
    return ok;
}

bool node_move_slot(struct test_server *s, int slot, int from, int to)
{
    char from_id[64], to_id[64];
    bool left = true;

    bool ok =
        node_id(s->word[from], from_id) && node_id(s->word[to], to_id) &&
        redis_test_run(s->word[to], "CLUSTER SETSLOT %d IMPORTING %s", slot, from_id) &&
        redis_test_run(s->word[from], "CLUSTER SETSLOT %d MIGRATING %s", slot, to_id);
    while (ok && left) {
        vk_pause_ms(10);
        ok = move_keys(s->word[from], s->word[to], slot, &left);
    }
    return ok &&
           redis_test_run(s->word[to], "CLUSTER SETSLOT %d NODE %s", slot, to_id) &&
           redis_test_run(s->word[from], "CLUSTER SETSLOT %d NODE %s", slot, to_id);
}
