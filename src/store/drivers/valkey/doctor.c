/* How the servers are doing, in sentences. */
#include <stdio.h>

#include "store/drivers/valkey/net.h"

#define ASKED 6

/* What one node has said. */
struct patient {
    struct vk_store *s;
    struct vk_node *node;
    struct bytes info;
    struct bytes appendonly, appendfsync, policy;
    struct bytes cluster;
    struct vk_reply functions;
    finding_report *report;
    void *arg;
};

static void tell(const struct patient *p, enum finding_level level, const char *what,
                 const char *message)
{
    char text[400], node[320];

    (void)snprintf(node, sizeof(node), "%s:%u", p->node->host, p->node->port);
    bool named = atomic_load(&p->s->cluster); /* which of them */
    (void)snprintf(text, sizeof(text), "%s%s%s", named ? node : "", named ? ": " : "",
                   message);
    p->report(p->arg, &(struct finding){ .level = level,
                                         .what = what,
                                         .entity = bytes_str(named ? node : ""),
                                         .message = text });
}

static int64_t number(const struct patient *p, const char *name)
{
    int64_t n = 0;

    return bytes_to_i64(vk_info(p->info, name), &n) ? n : 0;
}

/* As text for a format: the length, then the bytes. */
static int len_of(struct bytes b)
{
    return (int)(b.len < 60 ? b.len : 60);
}

static const char *text_of(struct bytes b)
{
    return b.len > 0 ? (const char *)b.ptr : "";
}

static void tell_server(const struct patient *p)
{
    struct bytes valkey = vk_info(p->info, "valkey_version");
    struct bytes redis = vk_info(p->info, "redis_version");
    struct bytes role = vk_info(p->info, "role");
    struct bytes version = valkey.len > 0 ? valkey : redis;
    bool master = bytes_eq(role, bytes_str("master"));
    char text[200];

    (void)snprintf(text, sizeof(text), "%s %.*s, database %u, up for %lld s",
                   valkey.len > 0 ? "Valkey" : "Redis", len_of(version),
                   text_of(version), p->s->options.database,
                   (long long)number(p, "uptime_in_seconds"));
    tell(p, FINDING_OK, "server", text);
    tell(p, master ? FINDING_OK : FINDING_BAD, "role",
         master ? "the server is a master"
                : "the server is a replica and takes no writes");
}

static void tell_durability(const struct patient *p)
{
    bool durable = bytes_eq(p->appendonly, bytes_str("yes")) &&
                   bytes_eq(p->appendfsync, bytes_str("always"));
    char text[200];

    if (durable) {
        tell(p, FINDING_OK, "durability", "every acknowledged commit is on disk");
    } else {
        (void)snprintf(text, sizeof(text),
                       "appendonly %.*s, appendfsync %.*s: a crash of the server loses "
                       "acknowledged commits",
                       len_of(p->appendonly), text_of(p->appendonly),
                       len_of(p->appendfsync), text_of(p->appendfsync));
        tell(p, FINDING_WARN, "durability", text);
    }
    bool kept = bytes_eq(p->policy, bytes_str("noeviction"));
    (void)snprintf(text, sizeof(text),
                   kept ? "the server evicts nothing"
                        : "maxmemory-policy %.*s: the server throws data away when its "
                          "memory is full",
                   len_of(p->policy), text_of(p->policy));
    tell(p, kept ? FINDING_OK : FINDING_BAD, "eviction", text);
}

static void tell_memory(const struct patient *p)
{
    int64_t used = number(p, "used_memory"), most = number(p, "maxmemory");
    bool tight = most > 0 && used / 10 > most / 12; /* five sixths */
    char text[200];

    if (most > 0)
        (void)snprintf(text, sizeof(text), "%lld of %lld MB are used%s",
                       (long long)(used >> 20), (long long)(most >> 20),
                       tight ? ": writes are refused when all of it is" : "");
    else
        (void)snprintf(text, sizeof(text), "%lld MB are used, without a limit",
                       (long long)(used >> 20));
    tell(p, tight ? FINDING_WARN : FINDING_OK, "memory", text);
}

static void tell_replicas(const struct patient *p)
{
    int64_t n = number(p, "connected_slaves");
    bool few = n < (int64_t)p->s->options.wait_replicas;
    char text[200];

    (void)snprintf(text, sizeof(text), "%lld connected%s", (long long)n,
                   few ? ": fewer than a commit waits for" : "");
    tell(p, few ? FINDING_BAD : FINDING_OK, "replicas", text);
}

static void tell_log(const struct patient *p)
{
    struct bytes wrote = vk_info(p->info, "aof_last_write_status");
    struct bytes rewrote = vk_info(p->info, "aof_last_bgrewrite_status");

    if (number(p, "aof_enabled") == 0)
        return;
    if (!bytes_eq(wrote, bytes_str("ok")))
        tell(p, FINDING_BAD, "log", "the last write of the append-only file failed");
    else if (!bytes_eq(rewrote, bytes_str("ok")))
        tell(p, FINDING_WARN, "log",
             "the last rewrite of the append-only file failed: it grows");
    else if (number(p, "aof_rewrites") == 0)
        tell(p, FINDING_WARN, "log",
             "the append-only file was not rewritten since the server was started; if "
             "it "
             "was cut off then, later writes may be lost: BGREWRITEAOF");
    else
        tell(p, FINDING_OK, "log",
             number(p, "aof_rewrite_in_progress") ? "it is just being rewritten"
                                                  : "the append-only file is well");
}

static void tell_cluster(const struct patient *p)
{
    bool fine = bytes_eq(vk_info(p->cluster, "cluster_state"), bytes_str("ok"));

    if (atomic_load(&p->s->cluster))
        tell(p, fine ? FINDING_OK : FINDING_BAD, "cluster",
             fine ? "every slot has a node" : "some slots have no node");
}

static void tell_functions(const struct patient *p)
{
    const struct vk_reply *list = &p->functions;

    if (list->kind != VK_ARRAY)
        tell(p, FINDING_OK, "functions", "not for this user to see");
    else
        tell(p, list->n > 0 ? FINDING_OK : FINDING_WARN, "functions",
             list->n > 0 ? "the functions are loaded" : "the functions are not loaded");
}

/* The value out of what CONFIG GET says. */
static struct bytes setting(const struct vk_reply *reply)
{
    return reply->kind == VK_ARRAY && reply->n == 2 ? reply->sub[1].b
                                                    : bytes_str("(cannot be read)");
}

static void add_questions(struct vk_request *r)
{
    static const char *const settings[] = { "appendonly", "appendfsync",
                                            "maxmemory-policy" };

    vk_command(r, 1, "INFO");
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        vk_command(r, 3, "CONFIG");
        vk_arg_str(r, "GET");
        vk_arg_str(r, settings[i]);
    }
    vk_command(r, 2, "CLUSTER");
    vk_arg_str(r, "INFO");
    vk_command(r, 4, "FUNCTION");
    vk_arg_str(r, "LIST");
    vk_arg_str(r, "LIBRARYNAME");
    vk_arg_str(r, "belay6");
}

static belay_rc examine(struct patient *p, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_reply said[ASKED] = { { .kind = VK_NIL } };
    struct vk_request r;

    vk_request_init(&r, &arena);
    add_questions(&r);
    belay_rc rc =
        vk_node_ask(p->node, &r, said, vk_now_us() + p->s->request_timeout_us, err);
    if (rc == BELAY_OK && said[0].kind != VK_STRING)
        rc = vk_reply_error(&said[0], "doctor", err);
    if (rc)
        return rc;
    p->info = said[0].b;
    p->appendonly = setting(&said[1]);
    p->appendfsync = setting(&said[2]);
    p->policy = setting(&said[3]);
    p->cluster = said[4].kind == VK_STRING ? said[4].b : bytes_str("");
    p->functions = said[5];
    tell_server(p);
    tell_durability(p);
    tell_memory(p);
    tell_replicas(p);
    tell_log(p);
    tell_cluster(p);
    tell_functions(p);
    return BELAY_OK;
}

/* Whether the node has any slot; replicas and nodes that are gone have none. */
static bool has_slots(struct vk_store *s, const struct vk_node *n)
{
    bool has = false;

    pthread_mutex_lock(&s->nodes_mutex);
    for (size_t i = 0; s->slots && i < 16384 && !has; i++)
        has = s->slots[i] == n;
    pthread_mutex_unlock(&s->nodes_mutex);
    return has;
}

static belay_rc examine_cluster(struct patient *p, struct belay_error *err)
{
    belay_rc rc = vk_map_read(p->s, vk_now_us() + p->s->request_timeout_us, err);

    for (size_t i = 0; rc == BELAY_OK; i++) {
        pthread_mutex_lock(&p->s->nodes_mutex);
        p->node = i < p->s->n_nodes ? p->s->nodes[i] : NULL;
        pthread_mutex_unlock(&p->s->nodes_mutex);
        if (!p->node)
            break;
        if (has_slots(p->s, p->node) && examine(p, NULL))
            tell(p, FINDING_BAD, "server", "the node does not answer");
    }
    return rc;
}

belay_rc vk_doctor(struct driver *d, finding_report *report, void *arg,
                   struct belay_error *err)
{
    struct vk_store *s = (struct vk_store *)d;
    struct patient p = { .s = s, .report = report, .arg = arg };

    if (atomic_load(&s->cluster))
        return examine_cluster(&p, err);
    p.node = s->nodes[0];
    return examine(&p, err);
}
