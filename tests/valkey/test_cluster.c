/* A cluster of three masters, each with a replica, on which namespaces are spread. */
#include <belay/session.h>

#include "load.h"
#include "nodes.h"

#define PREFIX "cluster"

static struct test_server server;

static bool open_cluster(struct harness *h, struct tap *t)
{
    vk_setup_reset(server.word[0]);
    vk_setup.options.request_timeout_ms = 15000;
    vk_setup.options.retries = 2;
    vk_setup.options.retry_first_ms = 20;
    return harness_open(h, t, HARNESS_REAL_TIME);
}

static struct space *space_named(struct harness *h, const char *name)
{
    struct space *sp = NULL;

    CHECK_RC(h, store_space(h->store, bytes_str(name), &sp, &h->err), BELAY_OK);
    return sp;
}

/* --- namespaces everywhere --- */

static void spreads(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    unsigned on[NODES + 1] = { 0 };

    if (!open_cluster(&h, t))
        return;
    for (unsigned i = 0; i < 24; i++) {
        struct deed d;
        char name[16];
        (void)snprintf(name, sizeof(name), "many-%u", i);
        deed_found_in(&h, space_named(&h, name), &d, i);
        CHECK_RC(&h, txn_run(d.space, deed_body, &d, NULL, &h.arena, &h.err), BELAY_OK);
        TAP_EQ(t, deed_times(&h, &d), 1);
        on[node_of(&server, name)]++;
    }
    for (int node = 0; node < NODES_MASTERS; node++) {
        redisReply *r = redis_test_ask(server.word[node], "DBSIZE");
        TAP_OK(t, on[node] > 0);
        TAP_OK(t, r && r->integer > on[node]);
        freeReplyObject(r);
    }
}

/* Whoever is asked first, everything is found. */
static void any_door(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct deed d;

    if (!open_cluster(&h, t))
        return;
    deed_found(&h, &d, 0);
    for (int node = 1; node < NODES; node++) {
        vk_setup.url = server.word[node];
        if (!TAP_OK(t, harness_reopen(&h)))
            return;
        d.space = h.space;
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
        TAP_EQ(t, deed_times(&h, &d), node);
    }
}

static void one_database(struct tap *t)
{
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    vk_setup_reset(server.word[0]);
    vk_setup.options.database = 1;
    TAP_EQ(t, vk_open(PREFIX, &d, &err), BELAY_INVALID);
    driver_close(d);
}

/* --- inboxes on each node, through the library --- */

static bool claim_and_complete(struct tap *t, struct belay *b,
                               struct belay_arena *arena)
{
    static const char *const nodes[] = { "{\"node_id\":\"n\",\"kind\":\"plugin\","
                                         "\"plugin_type\":\"note\",\"body\":{}}" };
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = "s",
                                           .owner_id = "o",
                                           .lease_ms = 10000,
                                           .max = 10 };
    struct belay_claimed got = { .claim = NULL };
    struct belay_committed out;
    struct belay_session *s = NULL;
    struct belay_error err = { .code = 0 };

    belay_rc rc = belay_queue_claim(b, &request, arena, &got, &err);
    if (!TAP_EQ(t, rc, BELAY_OK) || !TAP_OK(t, got.claim) ||
        !TAP_EQ(t, got.claim->n_batches, 3))
        return false;
    const struct belay_claim *claims[] = { got.claim };
    struct belay_commit commit = { .size = sizeof(commit),
                                   .graph = BELAY_GRAPH_APPEND,
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .nodes = nodes,
                                   .n_nodes = 1,
                                   .completes = claims,
                                   .n_completes = 1 };
    rc = belay_session_open(b, "s", NULL, &s, &err);
    if (rc == BELAY_OK)
        rc = belay_session_commit(s, &commit, arena, &out, &err);
    belay_session_close(s);
    if (!TAP_EQ(t, rc, BELAY_OK))
        printf("# %s\n", err.message);
    return rc == BELAY_OK;
}

static void inbox_in(struct tap *t, const char *ns)
{
    static const char *const payload[] = { "{}" };
    struct belay_options options = { .size = sizeof(options), .ns = ns };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .session_id = "s",
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .payloads = payload,
                                 .n_payloads = 1 };
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_batches left = { .n = 99 };
    struct belay_enqueued in;
    struct belay_arena *arena = NULL;
    struct belay_error err = { .code = 0 };
    struct belay *b = NULL;
    char url[REDIS_URL_MAX + 32];

    (void)snprintf(url, sizeof(url), "%s?prefix=" PREFIX, server.word[0]);
    belay_rc rc = belay_open(url, &options, &b, &err);
    if (!TAP_EQ(t, rc, BELAY_OK) ||
        !TAP_EQ(t, belay_arena_new(&arena, &err), BELAY_OK)) {
        printf("# %s\n", err.message);
        return;
    }
    for (int i = 0; i < 3; i++)
        TAP_EQ(t, belay_queue_enqueue(b, &draft, arena, &in, &err), BELAY_OK);
    (void)claim_and_complete(t, b, arena);
    TAP_EQ(t, belay_queue_list(b, "s", &page, arena, &left, &err), BELAY_OK);
    TAP_EQ(t, left.n, 0);
    belay_arena_free(arena);
    belay_close(b);
}

static void inboxes(struct tap *t)
{
    char names[2][16];

    for (int node = 0; node < NODES_MASTERS; node++) {
        if (!TAP_OK(t, node_spaces(&server, node, names, COUNT_OF(names))))
            continue;
        for (size_t i = 0; i < COUNT_OF(names); i++)
            inbox_in(t, names[i]);
    }
}

/* --- slots that move --- */

struct moving {
    int slot[LOAD_DOERS];
    bool ok;
};

/* Forth and back, all of them. */
static void move_slots(void *arg)
{
    struct moving *m = arg;

    m->ok = true;
    for (int i = 0; i < 2 * LOAD_DOERS && m->ok; i++) {
        int slot = m->slot[i % LOAD_DOERS], from = node_of_slot(&server, slot);
        m->ok = from < NODES_MASTERS &&
                node_move_slot(&server, slot, from, (from + 1 + i % 2) % NODES_MASTERS);
        vk_pause_ms(20);
    }
}

static void moves(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct space *spaces[LOAD_DOERS];
    struct moving m = { .ok = false };
    struct load_result result;
    char name[16];

    if (!open_cluster(&h, t))
        return;
    for (unsigned i = 0; i < LOAD_DOERS; i++) {
        (void)snprintf(name, sizeof(name), "moves-%u", i);
        spaces[i] = space_named(&h, name);
        m.slot[i] = node_slot(&server, name);
    }
    load_run_in(&h, spaces, move_slots, &m, &result);
    TAP_OK(t, m.ok);
    TAP_EQ(t, result.refused + result.unknown, 0); /* it is only waited for */
    for (unsigned i = 0; i < LOAD_DOERS; i++)
        TAP_OK(t, result.doer[i].ok > 0);
}

/* --- a node that dies --- */

struct dying {
    const char *ns; /* on the node */
    int node;
    bool ok;
};

/* Who has the slot, among those that are there; NODES: nobody yet. */
static int has_heir(int slot, int dead)
{
    int heir = 0;

    while (heir < NODES && (heir == dead || !node_has_slot(&server, heir, slot)))
        heir++;
    return heir;
}

/* Whether somebody copies what a node has. */
static bool has_replica(int node)
{
    redisReply *r = redis_test_ask(server.word[node], "INFO replication");
    bool has = r && strstr(r->str, "state=online");

    freeReplyObject(r);
    return has;
}

/* Until its replica has taken its place, and it has come back as a replica. */
static void kill_node(void *arg)
{
    struct dying *k = arg;
    int slot = node_slot(&server, k->ns), heir = NODES;
    char order[16];

    vk_pause_ms(200);
    (void)snprintf(order, sizeof(order), "kill %d", k->node);
    k->ok = test_server_order(&server, order);
    for (int ms = 0; ms < 20000 && heir == NODES; ms += 50) {
        vk_pause_ms(50);
        heir = has_heir(slot, k->node);
    }
    (void)snprintf(order, sizeof(order), "start %d", k->node);
    k->ok = k->ok && heir < NODES && test_server_order(&server, order);
    for (int ms = 0; k->ok && ms < 20000 && !has_replica(heir); ms += 50)
        vk_pause_ms(50);
    vk_pause_ms(500);
}

/* An acknowledgement waits for the replica: nothing that it has is lost with the master. */
static void fails_over(struct tap *t)
{
    CLEANUP(harness_close) struct harness h;
    struct space *spaces[LOAD_DOERS];
    struct dying k = { .node = 1 };
    struct load_result result;
    char names[LOAD_DOERS][16];

    vk_setup_reset(server.word[0]);
    vk_setup.options.request_timeout_ms = 1000;
    vk_setup.options.wait_replicas = 1;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    for (int i = 0; i < LOAD_DOERS; i++) { /* the last two are on the one that dies */
        int node = i < 2 ? 2 * i : k.node;
        char found[2][16];
        if (!TAP_OK(t, node_spaces(&server, node, found, 2)))
            return;
        (void)snprintf(names[i], sizeof(names[i]), "%s", found[i % 2]);
        spaces[i] = space_named(&h, names[i]);
    }
    k.ns = names[LOAD_DOERS - 1];
    load_run_in(&h, spaces, kill_node, &k, &result);
    TAP_OK(t, k.ok);
    for (int i = 0; i < LOAD_DOERS; i++)
        printf("# %s: %u done, %u refused, %u unknown\n", names[i], result.doer[i].ok,
               result.doer[i].refused, result.doer[i].unknown);
    for (int i = 0; i < 2; i++) {
        TAP_EQ(t, result.doer[i].refused + result.doer[i].unknown, 0);
        TAP_OK(t, result.doer[i].ok > 10);
    }
    for (int i = 2; i < LOAD_DOERS; i++) {
        struct deed d;
        TAP_OK(t, result.doer[i].ok > 0);
        deed_found_in(&h, spaces[i], &d, 77); /* there is somebody again */
    }
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "cluster: namespaces are spread over the nodes", spreads },
        { "cluster: any node leads to all of them", any_door },
        { "cluster: there is one database", one_database },
        { "cluster: inboxes work on every node", inboxes },
        { "cluster: slots that move are followed, and nothing happens twice", moves },
        { "cluster: a master that dies: others go on, and its replica takes over",
          fails_over },
    };
    const char *const cluster[] = { "--cluster", NULL };
    int status = 1;

    if (test_server_open(&server, "redisserver", cluster))
        status =
            tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&vk_driver, argc, argv);
    else
        printf("Bail out! no cluster\n");
    test_server_close(&server);
    return status;
}
