/* Which node has a namespace, and what to do when it does not any more.
 *
 * A namespace is a hash tag, and so one slot (docs of the server: "keys distribution
 * model").  Without a cluster all of them are on the only node. */
#include <stdio.h>
#include <stdlib.h>

#include "store/drivers/valkey/net.h"

#define SLOTS 16384
#define NODES_MAX 4096

/* CRC-16/XMODEM. */
unsigned vk_slot(struct bytes ns)
{
    unsigned crc = 0;

    for (size_t i = 0; i < ns.len; i++) {
        crc ^= (unsigned)ns.ptr[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
        crc &= 0xffff;
    }
    return crc % SLOTS;
}

/* --- nodes --- */

/* With the mutex of the nodes held. */
static struct vk_node *node_at(const struct vk_store *s, const char *host,
                               unsigned port)
{
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (s->nodes[i]->port == port && strcmp(s->nodes[i]->host, host) == 0)
            return s->nodes[i];
    }
    return NULL;
}

static belay_rc add_node(struct vk_store *s, const char *host, unsigned port,
                         struct vk_node **out, struct belay_error *err)
{
    struct vk_node **nodes =
        s->n_nodes < NODES_MAX
            ? realloc(s->nodes, (s->n_nodes + 1) * sizeof(struct vk_node *))
            : NULL;

    if (!nodes)
        return err_no_memory(err, "a server");
    s->nodes = nodes;
    belay_rc rc = vk_node_new(s, host, port, out, err);
    if (rc == BELAY_OK)
        s->nodes[s->n_nodes++] = *out;
    return rc;
}

belay_rc vk_node_at(struct vk_store *s, const char *host, unsigned port,
                    struct vk_node **out, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    pthread_mutex_lock(&s->nodes_mutex);
    *out = node_at(s, host, port);
    if (!*out)
        rc = add_node(s, host, port, out, err);
    pthread_mutex_unlock(&s->nodes_mutex);
    return rc;
}

static struct vk_node *nth_node(struct vk_store *s, size_t i)
{
    pthread_mutex_lock(&s->nodes_mutex);
    struct vk_node *n = i < s->n_nodes ? s->nodes[i] : NULL;
    pthread_mutex_unlock(&s->nodes_mutex);
    return n;
}

/* --- the map --- */

belay_rc vk_set_slots(struct vk_store *s, int64_t first, int64_t last,
                      struct vk_node *n, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    pthread_mutex_lock(&s->nodes_mutex);
    if (!s->slots)
        s->slots = calloc(SLOTS, sizeof(struct vk_node *));
    if (!s->slots)
        rc = err_no_memory(err, "the map of a cluster");
    for (int64_t i = first; rc == BELAY_OK && i <= last; i++)
        s->slots[i] = n;
    pthread_mutex_unlock(&s->nodes_mutex);
    return rc;
}

/* One line of CLUSTER SLOTS: first, last, [host, port, ...] of the master.  A node that
 * does not know its own name leaves it out. */
static belay_rc take_range(struct vk_store *s, const struct vk_node *told_by,
                           const struct vk_reply *range, struct belay_error *err)
{
    const struct vk_reply *sub = range->sub;
    char host[256];
    struct vk_node *n = NULL;

    if (range->kind != VK_ARRAY || range->n < 3 || sub[0].kind != VK_INTEGER ||
        sub[1].kind != VK_INTEGER || sub[0].i < 0 || sub[1].i >= SLOTS ||
        sub[2].kind != VK_ARRAY || sub[2].n < 2 || sub[2].sub[1].kind != VK_INTEGER ||
        sub[2].sub[1].i < 0 || sub[2].sub[1].i > 65535)
        return err_set(err, BELAY_UNAVAILABLE, "valkey: CLUSTER SLOTS: not understood");
    const struct vk_reply *name = &sub[2].sub[0];
    bool named = name->kind == VK_STRING && name->b.len > 0 &&
                 name->b.len < sizeof(host) && name->b.ptr[0] != '?';
    (void)snprintf(host, sizeof(host), "%.*s",
                   named ? (int)name->b.len : (int)strlen(told_by->host),
                   named ? (const char *)name->b.ptr : told_by->host);
    belay_rc rc = vk_node_at(s, host, (unsigned)sub[2].sub[1].i, &n, err);
    return rc ? rc : vk_set_slots(s, sub[0].i, sub[1].i, n, err);
}

static belay_rc ask_map(struct vk_store *s, struct vk_node *n, int64_t deadline_us,
                        struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;

    vk_request_init(&r, &arena);
    vk_command(&r, 2, "CLUSTER");
    vk_arg_str(&r, "SLOTS");
    belay_rc rc = vk_node_ask(n, &r, &reply, deadline_us, err);
    if (rc == BELAY_OK && reply.kind != VK_ARRAY)
        rc = reply.kind == VK_ERROR ? vk_reply_error(&reply, "CLUSTER SLOTS", err)
                                    : err_set(err, BELAY_UNAVAILABLE,
                                              "valkey: CLUSTER SLOTS: not understood");
    for (size_t i = 0; rc == BELAY_OK && i < reply.n; i++)
        rc = take_range(s, n, &reply.sub[i], err);
    return rc;
}

/* Each node has its share of the time: one that does not answer is not the last. */
belay_rc vk_map_read(struct vk_store *s, int64_t deadline_us, struct belay_error *err)
{
    belay_rc rc = err_set(err, BELAY_UNAVAILABLE, "valkey: no node of the cluster");

    pthread_mutex_lock(&s->nodes_mutex);
    size_t left = s->n_nodes;
    pthread_mutex_unlock(&s->nodes_mutex);
    for (size_t i = 0; rc && left > 0; i++, left--) {
        struct vk_node *n = nth_node(s, i);
        int64_t now_us = vk_now_us();
        if (!n || now_us >= deadline_us)
            break;
        rc = ask_map(s, n, now_us + (deadline_us - now_us) / (int64_t)left, err);
    }
    return rc;
}

belay_rc vk_node_of(struct vk_store *s, struct bytes ns, int64_t deadline_us,
                    struct vk_node **out, struct belay_error *err)
{
    if (!atomic_load(&s->cluster)) {
        *out = s->nodes[0];
        return BELAY_OK;
    }
    unsigned slot = vk_slot(ns);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&s->nodes_mutex);
        *out = s->slots ? s->slots[slot] : NULL;
        pthread_mutex_unlock(&s->nodes_mutex);
        if (*out)
            return BELAY_OK;
        belay_rc rc = i == 0 ? vk_map_read(s, deadline_us, err) : BELAY_OK;
        if (rc)
            return rc;
    }
    (void)err_reason(err, BELAY_UNAVAILABLE, "cluster",
                     "valkey: no node of the cluster has slot %u", slot);
    return BELAY_UNAVAILABLE;
}

uint64_t vk_generation(struct vk_store *s, struct bytes ns)
{
    uint64_t generation = 0;

    pthread_mutex_lock(&s->nodes_mutex);
    struct vk_node *n = !atomic_load(&s->cluster) ? s->nodes[0]
                        : s->slots                ? s->slots[vk_slot(ns)]
                                                  : NULL;
    pthread_mutex_unlock(&s->nodes_mutex);
    if (!n)
        return 0;
    pthread_mutex_lock(&n->mutex);
    generation = n->generation;
    pthread_mutex_unlock(&n->mutex);
    return generation;
}

/* A server that loses what it acknowledged has a new life then, and says so. */
uint64_t vk_era(struct driver *d, void *attempt)
{
    const struct vk_attempt *at = attempt;

    (void)d;
    return at->generation;
}

/* Asks the node of the namespace once more who it is. */
static belay_rc meet_again(struct vk_store *s, struct bytes ns, struct belay_error *err)
{
    int64_t deadline_us = vk_now_us() + s->request_timeout_us;
    struct vk_node *n = NULL;
    belay_rc rc = vk_node_of(s, ns, deadline_us, &n, err);

    return rc ? rc : vk_node_meet(n, deadline_us, err);
}

/* X10.  A server may have been somebody else's replica while nobody asked it: before it is
 * taken for another one it is met again. */
belay_rc vk_life(struct driver *d, void *attempt, struct bytes known,
                 struct lineage *out, struct belay_error *err)
{
    struct vk_store *s = (struct vk_store *)d;
    struct vk_attempt *at = attempt;
    struct vk_lineage line;
    uint64_t generation = 0;
    belay_rc rc = vk_lineage(s, at->ns, &line, &generation, err);

    if (rc)
        return rc;
    vk_life_of(&line, out);
    if (known.len > 0 && !bytes_eq(known, bytes_str(out->life))) {
        rc = meet_again(s, at->ns, err);
        if (rc == BELAY_OK)
            rc = vk_lineage(s, at->ns, &line, &generation, err);
        vk_life_of(&line, out);
    }
    if (at->generation == 0)
        at->generation = generation;
    return rc;
}

belay_rc vk_lineage(struct vk_store *s, struct bytes ns, struct vk_lineage *out,
                    uint64_t *generation, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    int64_t deadline_us = vk_now_us() + s->request_timeout_us;
    struct belay_error local = { .code = 0 };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_node *n = NULL;
    struct vk_request r;

    if (!err)
        err = &local;
    belay_rc rc = vk_node_of(s, ns, deadline_us, &n, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&n->mutex);
    bool never = n->generation == 0;
    pthread_mutex_unlock(&n->mutex);
    if (never) {
        vk_request_init(&r, &arena);
        vk_command(&r, 1, "PING");
        rc = vk_node_ask(n, &r, &reply, deadline_us, err);
        if (rc)
            return rc;
    }
    pthread_mutex_lock(&n->mutex);
    *out = n->lineage;
    *generation = n->generation;
    pthread_mutex_unlock(&n->mutex);
    return BELAY_OK;
}
