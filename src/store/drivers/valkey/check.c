/* Looking for damage: keys that are not ours, things that are not what their keys say. */
#include <stdio.h>

#include "store/drivers/valkey/shapes.h"

#define BATCH ((size_t)64)
#define COMMANDS_MAX 4

struct checking {
    struct vk_store *s;
    struct bytes ns; /* whose node is asked */
    finding_report *report;
    void *arg;
};

/* A key that is looked at. */
struct looked {
    struct bytes key, ns;
    struct vk_place place;
    struct vk_reply *replies;
};

static void report(const struct checking *c, const struct looked *k, const char *what,
                   const char *message)
{
    c->report(c->arg, &(struct finding){ .level = FINDING_BAD,
                                         .what = what,
                                         .ns = k->ns,
                                         .entity = k->key,
                                         .message = message });
}

/* --- questions --- */

static void ask(struct vk_request *r, size_t n, const char *command, struct bytes key)
{
    vk_command(r, n, command);
    vk_arg(r, key);
}

static void ask_end(struct vk_request *r, const char *command, struct bytes key,
                    const char *from, const char *to)
{
    ask(r, 6, command, key);
    vk_arg_str(r, from);
    vk_arg_str(r, to);
    vk_arg_str(r, "COUNT");
    vk_arg_str(r, "1");
}

static void ask_rank(struct vk_request *r, struct bytes key, const char *at)
{
    ask(r, 5, "ZRANGE", key);
    vk_arg_str(r, at);
    vk_arg_str(r, at);
    vk_arg_str(r, "WITHSCORES");
}

static void ask_beside(struct vk_request *r, struct vk_layout *keys, const char *name,
                       struct bytes feed)
{
    ask(r, 3, "HGET", vk_key_beside(keys, name));
    vk_arg(r, feed);
}

/* Returns how many commands it asked. */
static size_t ask_key(const struct checking *c, struct vk_request *r,
                      const struct looked *k)
{
    struct vk_layout keys;
    size_t before = r->n_commands;

    switch (k->place.shape) {
    case VK_ROW:
        ask(r, 2, "HGETALL", k->key);
        break;
    case VK_INDEX:
        ask_rank(r, k->key, "0");
        ask_rank(r, k->key, "-1");
        break;
    case VK_LOG:
        ask_end(r, "XRANGE", k->key, "-", "+");
        ask_end(r, "XREVRANGE", k->key, "+", "-");
        ask(r, 2, "XLEN", k->key);
        break;
    case VK_FEED:
        vk_layout_init(&keys, c->s, k->ns, r->arena);
        ask_end(r, "XRANGE", k->key, "-", "+");
        ask_end(r, "XREVRANGE", k->key, "+", "-");
        ask_beside(r, &keys, ":feeds", k->place.name);
        ask_beside(r, &keys, ":trimmed", k->place.name);
        r->no_memory |= keys.no_memory;
        break;
    case VK_CHUNK:
        ask(r, 2, "STRLEN", k->key);
        break;
    case VK_HELD:
        ask(r, 2, "ZCARD", k->key);
        break;
    case VK_FEEDS:
    case VK_TRIMMED:
        ask(r, 2, "HLEN", k->key);
        break;
    case VK_FOREIGN:
        ask(r, 2, "EXISTS", k->key);
        break;
    }
    return r->n_commands - before;
}

/* --- answers --- */

static void check_row(const struct checking *c, const struct looked *k,
                      struct belay_arena *a)
{
    struct belay_error why = { .code = 0 };
    const struct row *row;

    if (!k->place.ref.type)
        return; /* a newer program's */
    if (vk_row(k->place.ref.type, k->place.ref.key, k->replies, a, &row, &why) ==
        BELAY_CORRUPT)
        report(c, k, "row", why.message);
}

static void check_index(const struct checking *c, const struct looked *k)
{
    int64_t rank;

    for (size_t i = 0; i < 2; i++) {
        const struct vk_reply *r = &k->replies[i];
        if (r->n != 2 || vk_rank(r->sub[1].b, &rank))
            continue;
        report(c, k, "rank", "rank index: a member stands at no rank");
        return;
    }
}

/* The ids of the first and the last entry; false: there are none, or they are not ours. */
static bool ends(const struct looked *k, uint64_t first[2], uint64_t last[2])
{
    const struct vk_reply *a = &k->replies[0], *b = &k->replies[1];
    struct bytes data;

    return a->n == 1 && b->n == 1 &&
           !vk_entry(&a->sub[0], &first[0], &first[1], &data, NULL) &&
           !vk_entry(&b->sub[0], &last[0], &last[1], &data, NULL);
}

static void check_log(const struct checking *c, const struct looked *k)
{
    uint64_t first[2], last[2];

    if (k->replies[0].n == 0)
        return; /* gone since it was listed */
    if (!ends(k, first, last) || first[1] != 1 || last[1] != 1 ||
        last[0] - first[0] + 1 != (uint64_t)k->replies[2].i)
        report(c, k, "log", "log: an entry is missing or is none of ours");
}

static void check_feed(const struct checking *c, const struct looked *k)
{
    const struct vk_reply *given = &k->replies[2], *trimmed = &k->replies[3];
    uint64_t first[2], last[2], epoch = 0, n = 0;
    int64_t most = 0;
    bool good = true;

    if (k->replies[0].n == 0)
        return;
    good = ends(k, first, last) && given->kind == VK_STRING &&
           bytes_to_i64(given->b, &most) && last[1] <= (uint64_t)most;
    if (good && trimmed->kind == VK_STRING)
        good = vk_id(trimmed->b, &epoch, &n) &&
               (first[0] > epoch || (first[0] == epoch && first[1] > n));
    if (!good)
        report(c, k, "feed_position",
               "feed: an entry stands outside the positions that were given");
}

static void check_key(const struct checking *c, const struct looked *k, size_t n,
                      struct belay_arena *a)
{
    for (size_t i = 0; i < n; i++) {
        if (k->replies[i].kind == VK_ERROR) {
            report(c, k, "wrong_type", "key: what it holds is of another kind");
            return;
        }
    }
    if (k->place.shape == VK_FOREIGN && k->replies[0].i == 1)
        report(c, k, "foreign_key", "key: none of ours, under our prefix");
    if (k->place.shape == VK_ROW)
        check_row(c, k, a);
    if (k->place.shape == VK_INDEX)
        check_index(c, k);
    if (k->place.shape == VK_LOG)
        check_log(c, k);
    if (k->place.shape == VK_FEED)
        check_feed(c, k);
}

/* --- keys --- */

/* The namespace in a key: what stands in the braces behind the prefix. */
static struct bytes ns_of(const struct checking *c, struct bytes key)
{
    size_t before = strlen(c->s->options.prefix) + 2;
    const uint8_t *close = NULL;

    if (key.len > before && key.ptr[before - 1] == '{')
        close = memchr(key.ptr + before, '}', key.len - before);
    if (!close)
        return bytes_of(NULL, 0);
    struct bytes ns = bytes_of(key.ptr + before, (size_t)(close - key.ptr) - before);
    return namespace_is_valid(ns, true) ? ns : bytes_of(NULL, 0);
}

static belay_rc look_up(const struct checking *c, struct bytes key, struct looked *out,
                        struct belay_arena *a, struct belay_error *err)
{
    struct vk_layout keys;

    *out = (struct looked){ .key = key, .ns = ns_of(c, key) };
    out->place.shape = VK_FOREIGN;
    if (out->ns.len == 0)
        return BELAY_OK;
    vk_layout_init(&keys, c->s, out->ns, a);
    if (keys.no_memory)
        return err_no_memory(err, "a check");
    return vk_place(c->s, keys.base, key, a, &out->place, err);
}

/* A few keys at one moment: they are asked in one MULTI ... EXEC. */
static belay_rc check_batch(const struct checking *c, const struct vk_reply *keys,
                            size_t n, struct belay_arena *a, struct belay_error *err)
{
    struct vk_reply replies[BATCH * COMMANDS_MAX + 2];
    size_t counts[BATCH], at = 0;
    struct looked looked[BATCH];
    enum vk_reached reached;
    struct vk_request r;
    belay_rc rc = BELAY_OK;

    vk_request_init(&r, a);
    vk_command(&r, 1, "MULTI");
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        rc = look_up(c, keys[i].b, &looked[i], a, err);
        counts[i] = rc ? 0 : ask_key(c, &r, &looked[i]);
    }
    vk_command(&r, 1, "EXEC");
    if (rc == BELAY_OK && r.no_memory)
        rc = err_no_memory(err, "a check");
    if (rc == BELAY_OK)
        rc = vk_call(c->s, c->ns, &r, VK_AGAIN, replies, &reached, err);
    if (rc)
        return rc;
    const struct vk_reply *exec = &replies[r.n_commands - 1];
    if (exec->kind == VK_ERROR)
        return vk_reply_error(exec, "check", err);
    if (exec->kind != VK_ARRAY || exec->n != r.n_commands - 2)
        return err_reason(err, BELAY_CORRUPT, "answer", "valkey: an unexpected answer");
    for (size_t i = 0; i < n; i++) {
        looked[i].replies = &exec->sub[at];
        check_key(c, &looked[i], counts[i], a);
        at += counts[i];
    }
    return BELAY_OK;
}

static belay_rc check_page(void *arg, const struct vk_reply *keys, bool *stop,
                           struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    belay_rc rc = BELAY_OK;

    (void)stop;
    for (size_t i = 0; i < keys->n && rc == BELAY_OK; i += BATCH) {
        size_t left = keys->n - i;
        arena_reset(&arena);
        rc = check_batch(arg, &keys->sub[i], left < BATCH ? left : BATCH, &arena, err);
    }
    return rc;
}

/* --- all of it --- */

/* In a cluster: one namespace after the other, each on its node. */
static belay_rc check_namespace(struct checking *c, struct bytes ns,
                                struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_layout keys;
    bool all;

    vk_layout_init(&keys, c->s, ns, &arena);
    struct bytes beginning = vk_key_beside(&keys, ":");
    if (keys.no_memory)
        return err_no_memory(err, "a check");
    c->ns = ns;
    return vk_each_key(c->s, ns, beginning, check_page, c, &all, err);
}

static belay_rc check_namespaces(struct checking *c, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes system = bytes_str(SYSTEM_NAMESPACE);
    enum vk_reached reached;
    struct vk_layout keys;
    struct vk_request r;
    struct vk_reply names;

    vk_layout_init(&keys, c->s, system, &arena);
    vk_request_init(&r, &arena);
    ask(&r, 4, "ZRANGE", vk_key(&keys, VK_INDEX, bytes_str(NAMESPACE_INDEX)));
    vk_arg_str(&r, "0");
    vk_arg_str(&r, "-1");
    if (r.no_memory || keys.no_memory)
        return err_no_memory(err, "a check");
    belay_rc rc = vk_call(c->s, system, &r, VK_AGAIN, &names, &reached, err);
    if (rc == BELAY_OK)
        rc = check_namespace(c, system, err);
    for (size_t i = 0; rc == BELAY_OK && names.kind == VK_ARRAY && i < names.n; i++) {
        if (namespace_is_valid(names.sub[i].b, false))
            rc = check_namespace(c, names.sub[i].b, err);
    }
    return rc;
}

belay_rc vk_check(struct driver *d, finding_report *found, void *arg,
                  struct belay_error *err)
{
    struct checking c = { .s = (struct vk_store *)d,
                          .ns = bytes_str(SYSTEM_NAMESPACE),
                          .report = found,
                          .arg = arg };
    char beginning[80];
    bool all;

    if (c.s->cluster)
        return check_namespaces(&c, err);
    (void)snprintf(beginning, sizeof(beginning), "%s:", c.s->options.prefix);
    return vk_each_key(c.s, c.ns, bytes_str(beginning), check_page, &c, &all, err);
}
