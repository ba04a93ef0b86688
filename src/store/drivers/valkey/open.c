#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/drivers/valkey/net.h"
#include "store/wake.h"

#define PORT_DEFAULT 6379
#define POOL_DEFAULT 2
#define TIMEOUT_DEFAULT_MS 30000
#define WAIT_DEFAULT_MS 1000
#define RETRY_DEFAULT_MS 50
#define BASE_DEFAULT 2
#define JITTER_DEFAULT 50
#define VERSION_MIN 7

/* --- options --- */

static bool is_prefix(const char *prefix)
{
    size_t n = strlen(prefix);

    if (n < 1 || n > 64)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)prefix[i]) && !strchr("._-", prefix[i]))
            return false;
    }
    return true;
}

/* Copies a text into the store; false: no memory. */
static bool keep(struct vk_store *s, const char **text)
{
    struct bytes kept;

    if (!*text)
        return true;
    if (!arena_copy(&s->arena, bytes_str(*text), &kept))
        return false;
    *text = (const char *)kept.ptr;
    return true;
}

static void set_defaults(struct valkey_options *o)
{
    o->host = o->host ? o->host : "127.0.0.1";
    o->prefix = o->prefix ? o->prefix : "belay";
    o->port = o->port > 0 ? o->port : PORT_DEFAULT;
    o->pool = o->pool > 0 ? o->pool : POOL_DEFAULT;
    o->wait_ms = o->wait_ms > 0 ? o->wait_ms : WAIT_DEFAULT_MS;
    o->request_timeout_ms =
        o->request_timeout_ms > 0 ? o->request_timeout_ms : TIMEOUT_DEFAULT_MS;
    o->retry_first_ms = o->retry_first_ms > 0 ? o->retry_first_ms : RETRY_DEFAULT_MS;
    o->retry_base = o->retry_base > 0 ? o->retry_base : BASE_DEFAULT;
    o->retry_jitter = o->retry_jitter >= 0 ? o->retry_jitter : JITTER_DEFAULT;
}

static belay_rc take_options(struct vk_store *s, const struct valkey_options *options,
                             struct belay_error *err)
{
    struct valkey_options *o = &s->options;

    *o = *options;
    set_defaults(o);
    if (!is_prefix(o->prefix)) {
        belay_rc rc = err_reason(err, BELAY_INVALID, "option",
                                 "valkey: prefix: must be 1 to 64 of A-Z, a-z, 0-9 and "
                                 "._-");
        err_entity(err, bytes_str("prefix"));
        return rc;
    }
    const char **texts[] = {
        &o->host,   &o->user,     &o->password, &o->prefix,
        &o->tls_ca, &o->tls_cert, &o->tls_key,  &o->tls_server_name
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (!keep(s, texts[i]))
            return err_no_memory(err, "a store");
    }
    s->request_timeout_us = o->request_timeout_ms * 1000;
    for (size_t i = 0; i < s->config.schema->n_types; i++) {
        if (strcmp(s->config.schema->types[i]->name, "epoch") == 0)
            s->epoch = s->config.schema->types[i];
    }
    return BELAY_OK;
}

/* --- the server --- */

struct bytes vk_info(struct bytes info, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < info.len;) {
        const uint8_t *line = info.ptr + i;
        const uint8_t *end = memchr(line, '\n', info.len - i);
        size_t len = end ? (size_t)(end - line) : info.len - i;

        i += len + 1;
        if (len > n && line[n] == ':' && memcmp(line, name, n) == 0) {
            len -= line[len - 1] == '\r';
            return bytes_of(line + n + 1, len - n - 1);
        }
    }
    return bytes_of(NULL, 0);
}

static bool info_is(struct bytes info, const char *name, const char *value)
{
    return bytes_eq(vk_info(info, name), bytes_str(value));
}

static void copy_id(struct bytes info, const char *name, char out[41])
{
    struct bytes value = vk_info(info, name);
    size_t n = value.len < 40 ? value.len : 40;

    memset(out, 0, 41);
    if (n > 0)
        memcpy(out, value.ptr, n);
}

/* Valkey tells the version of Redis that it is compatible with, too. */
static belay_rc check_version(struct bytes info, struct belay_error *err)
{
    struct bytes version = vk_info(info, "redis_version");
    int64_t major = 0;
    size_t n = 0;

    while (n < version.len && version.ptr[n] != '.')
        n++;
    if (bytes_to_i64(bytes_of(version.ptr, n), &major) && major >= VERSION_MIN)
        return BELAY_OK;
    belay_rc rc = err_set(err, BELAY_UNSUPPORTED_FORMAT,
                          "valkey: server %.*s: Belay needs 7.0 or later",
                          (int)(version.len < 20 ? version.len : 20),
                          version.len > 0 ? (const char *)version.ptr : "?");
    err_numbers(err, VERSION_MIN, major);
    return rc;
}

/* What a durable store needs. */
static const struct {
    const char *name, *value;
} settings[] = {
    { "appendonly", "yes" },
    { "appendfsync", "always" },
    { "maxmemory-policy", "noeviction" },
};

/* X1: what an acknowledgement is worth is read back.  What cannot be read counts as not
 * so. */
static belay_rc check_durability(struct vk_store *s, const struct vk_reply *replies,
                                 struct belay_error *err)
{
    enum durability found = DURABILITY_DURABLE;

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        const struct vk_reply *r = &replies[i];
        bool told = r->kind == VK_ARRAY && r->n == 2 && r->sub[1].kind == VK_STRING;
        if (told && bytes_eq(r->sub[1].b, bytes_str(settings[i].value)))
            continue;
        found = DURABILITY_RELAXED;
        if (!s->options.relaxed)
            return err_reason(
                err, BELAY_UNAVAILABLE, "durability",
                "valkey: the server has %s %.*s, not %s, so commits may be "
                "lost; durability=relaxed accepts that",
                settings[i].name, told ? (int)r->sub[1].b.len : 7,
                told ? (const char *)r->sub[1].b.ptr : "unknown", settings[i].value);
    }
    pthread_mutex_lock(&s->nodes_mutex);
    s->durability = found;
    pthread_mutex_unlock(&s->nodes_mutex);
    return BELAY_OK;
}

/* By the server's clock; a second too late at most. */
static int64_t started_at_ms(struct bytes info)
{
    int64_t now_us = 0, up_s = 0;

    if (!bytes_to_i64(vk_info(info, "server_time_usec"), &now_us) ||
        !bytes_to_i64(vk_info(info, "uptime_in_seconds"), &up_s))
        return 0; /* it counts as one that has long been running */
    return now_us / 1000 - up_s * 1000;
}

void vk_life_of(const struct vk_lineage *line, struct lineage *out)
{
    *out = (struct lineage){ .started_at_ms = line->started_at_ms };
    out->restarted = strspn(line->replid2, "0") == strlen(line->replid2);
    (void)snprintf(out->life, sizeof(out->life), "%.20s%s%s", line->run_id,
                   out->restarted ? "" : "-", out->restarted ? "" : line->replid);
}

static belay_rc check_info(struct vk_store *s, struct bytes info,
                           struct vk_greeting *out, struct belay_error *err)
{
    bool cluster = info_is(info, "cluster_enabled", "1");
    belay_rc rc = check_version(info, err);

    if (rc)
        return rc;
    if (info_is(info, "loading", "1"))
        return err_set(err, BELAY_UNAVAILABLE,
                       "valkey: no connection: the server is loading its data");
    out->replica = !info_is(info, "role", "master");
    if (out->replica && !cluster)
        return err_reason(err, BELAY_UNAVAILABLE, "replica",
                          "valkey: the server is a replica and takes no writes");
    if (cluster && s->options.database > 0)
        return err_reason(err, BELAY_INVALID, "option",
                          "valkey: a cluster has no database but number 0");
    if (cluster)
        atomic_store(&s->cluster, true);
    copy_id(info, "master_replid", out->lineage.replid);
    copy_id(info, "master_replid2", out->lineage.replid2);
    copy_id(info, "run_id", out->lineage.run_id);
    out->lineage.started_at_ms = started_at_ms(info);
    return BELAY_OK;
}

belay_rc vk_check_server(struct vk_store *s, struct vk_conn *c, int64_t deadline_us,
                         struct vk_greeting *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_reply replies[1 + COUNT_OF(settings)] = { 0 };
    struct vk_request r;

    vk_request_init(&r, &arena);
    vk_command(&r, 1, "INFO");
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        vk_command(&r, 3, "CONFIG");
        vk_arg_str(&r, "GET");
        vk_arg_str(&r, settings[i].name);
    }
    belay_rc rc = vk_conn_call(c, &r, replies, deadline_us, err);
    if (rc == BELAY_OK && replies[0].kind != VK_STRING)
        rc = vk_refused(&replies[0], err);
    if (rc == BELAY_OK)
        rc = check_info(s, replies[0].b, out, err);
    if (rc == BELAY_OK)
        rc = check_durability(s, replies + 1, err);
    if (rc == BELAY_OK && !out->replica)
        rc = vk_renew_log(c, replies[0].b, deadline_us, err);
    return rc;
}

/* --- the driver --- */

static enum durability vk_durability(struct driver *d)
{
    struct vk_store *s = (struct vk_store *)d;

    pthread_mutex_lock(&s->nodes_mutex);
    enum durability durability = s->durability;
    pthread_mutex_unlock(&s->nodes_mutex);
    return durability;
}

static void vk_close(struct driver *d)
{
    struct vk_store *s = (struct vk_store *)d;

    vk_listener_close(s);
    for (size_t i = 0; i < s->n_nodes; i++)
        vk_node_free(s->nodes[i]);
    free(s->nodes);
    free(s->slots);
    if (s->d.hub)
        wake_hub_close(s->d.hub);
    (void)pthread_mutex_destroy(&s->nodes_mutex);
    server_time_release(&s->clock);
    arena_release(&s->arena);
    free(s);
}

static const struct driver_ops ops = {
    .name = "valkey",
    .version = DRIVER_VERSION,
    .caps = DRIVER_LOSES_REPLIES | DRIVER_FAR | DRIVER_SEES_TWICE | DRIVER_SCAN_GUARDS,
    .attempt_size = sizeof(struct vk_attempt),
    .begin = vk_begin,
    .read = vk_read,
    .commit = vk_commit,
    .end = vk_end,
    .notify = vk_notify,
    .now_ms = vk_now_ms,
    .lineage = vk_life,
    .era = vk_era,
    .walk = vk_walk,
    .erase = vk_erase,
    .check = vk_check,
    .doctor = vk_doctor,
    .durability = vk_durability,
    .close = vk_close,
};

/* Meets the server; in a cluster, learns where things are. */
static belay_rc open_store(struct vk_store *s, struct belay_error *err)
{
    int64_t deadline_us = vk_now_us() + s->request_timeout_us;
    struct vk_lineage line;
    struct vk_node *n = NULL;
    uint64_t generation;
    belay_rc rc = vk_node_at(s, s->options.host, s->options.port, &n, err);

    if (rc == BELAY_OK)
        rc = vk_lineage(s, bytes_of(NULL, 0), &line, &generation, err);
    if (rc == BELAY_OK && atomic_load(&s->cluster))
        rc = vk_map_read(s, deadline_us, err);
    if (rc == BELAY_OK)
        rc = wake_hub_open(&s->d.hub, err);
    return rc ? rc : vk_listener_open(s, err);
}

belay_rc valkey_open(struct driver **out, const struct valkey_options *options,
                     const struct driver_config *config, struct belay_error *err)
{
    struct vk_store *s = calloc(1, sizeof(*s));
    struct belay_error local = { .code = 0 };

    if (!err)
        err = &local;
    if (!s)
        return err_no_memory(err, "a store");
    s->d = (struct driver){ .ops = &ops,
                            .caps = ops.caps,
                            .attempt_size = ops.attempt_size };
    s->config = *config;
    (void)pthread_mutex_init(&s->nodes_mutex, NULL);
    server_time_init(&s->clock);
    belay_rc rc = take_options(s, options, err);
    if (rc == BELAY_OK)
        rc = open_store(s, err);
    if (rc) {
        vk_close(&s->d);
        return rc;
    }
    *out = &s->d;
    return BELAY_OK;
}
