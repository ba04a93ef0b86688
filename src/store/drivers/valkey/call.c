/* Calls: to the node that has the namespace, and again when it has not, or not yet. */
#include <stdio.h>

#include "store/drivers/valkey/net.h"

#define REDIRECTS_MAX 8 /* in a row; then a pause comes first */
#define PAUSE_FIRST_US ((int64_t)5000)
#define PAUSE_MAX_US ((int64_t)500000)

struct call {
    struct vk_store *s;
    struct bytes ns;
    struct vk_request *r;
    enum vk_again again;
    struct vk_reply *replies;
    struct vk_job job;
    struct vk_node *node;   /* who is asked */
    struct vk_node *asking; /* whom an ASK has named; NULL: nobody */
    unsigned redirects;
    int64_t pause_us;
    char after[96]; /* WAIT */
};

/* What an answer means for the whole request: the server has done nothing. */
enum verdict { STANDS, MOVED, ASK, MAP_IS_OLD, LATER, NO_FUNCTION };
static const struct {
    const char *begins;
    enum verdict verdict;
} verdicts[] = {
    { "MOVED ", MOVED },
    { "ASK ", ASK },
    { "CLUSTERDOWN ", MAP_IS_OLD },
    { "TRYAGAIN ", LATER },
    { "LOADING ", LATER },
    { "ERR Function not found", NO_FUNCTION },
};

static enum verdict judge(const struct call *c, const struct vk_reply **which)
{
    for (size_t i = 0; i < c->r->n_commands; i++) {
        if (c->replies[i].kind != VK_ERROR)
            continue;
        *which = &c->replies[i];
        for (size_t k = 0; k < COUNT_OF(verdicts); k++) {
            if (vk_reply_is_error(&c->replies[i], verdicts[k].begins))
                return verdicts[k].verdict;
        }
        if (vk_reply_is_error(&c->replies[i], "READONLY "))
            vk_node_drop(c->node, "the server has become a replica");
    }
    return STANDS;
}

/* A pause before the next attempt; false: there is no time for one. */
static bool pause_call(struct call *c)
{
    struct belay_clock clock = clock_system();

    if (vk_now_us() + c->pause_us >= c->job.deadline_us)
        return false;
    clock.sleep_us(clock.arg, c->pause_us);
    c->pause_us = c->pause_us * 2 < PAUSE_MAX_US ? c->pause_us * 2 : PAUSE_MAX_US;
    c->redirects = 0;
    return true;
}

/* "MOVED 3999 127.0.0.1:6381": the node named there.  The host may be missing. */
static belay_rc named_node(const struct call *c, const struct vk_reply *reply,
                           struct vk_node **out, struct belay_error *err)
{
    char text[320], *space = NULL, *colon = NULL;
    int64_t port = 0;

    (void)snprintf(text, sizeof(text), "%.*s",
                   (int)(reply->b.len < 300 ? reply->b.len : 300),
                   (const char *)reply->b.ptr);
    space = strrchr(text, ' ');
    colon = strrchr(text, ':');
    if (!space || !colon || colon < space ||
        !bytes_to_i64(bytes_str(colon + 1), &port) || port < 1 || port > 65535)
        return err_set(err, BELAY_UNAVAILABLE, "valkey: a redirection: not understood");
    *colon = '\0';
    return vk_node_at(c->s, space[1] ? space + 1 : c->node->host, (unsigned)port, out,
                      err);
}

/* It names one key and uses many. */
static bool is_function(const struct vk_request *r)
{
    return memmem(r->bytes, r->len < 24 ? r->len : 24, "\r\nFCALL", 7) != NULL;
}

static belay_rc follow(struct call *c, enum verdict verdict,
                       const struct vk_reply *reply, struct belay_error *err)
{
    struct vk_node *to = NULL;
    belay_rc rc = named_node(c, reply, &to, err);

    if (rc)
        return rc;
    if (verdict == MOVED) {
        int64_t slot = vk_slot(c->ns);
        return vk_set_slots(c->s, slot, slot, to, err);
    }
    /* Between MULTI and EXEC nothing can be asked for, and a function would find only
     * what has arrived there: the slot will have moved soon. */
    if (c->r->n_commands == 1 && !is_function(c->r))
        c->asking = to;
    else if (!pause_call(c))
        return err_reason(err, BELAY_UNAVAILABLE, "cluster",
                          "valkey: the slot was on its way for too long");
    return BELAY_OK;
}

/* Gets ready for another attempt. */
static belay_rc make_up(struct call *c, enum verdict verdict,
                        const struct vk_reply *reply, struct belay_error *err)
{
    if (verdict == NO_FUNCTION)
        return c->redirects++ < REDIRECTS_MAX
                   ? vk_library_load(c->node, c->job.deadline_us, err)
                   : vk_reply_error(reply, "calling a function", err);
    if ((verdict == MOVED || verdict == ASK) && c->redirects++ < REDIRECTS_MAX)
        return follow(c, verdict, reply, err);
    if (!pause_call(c)) {
        belay_rc rc = vk_reply_error(reply, "no answer in time", err);
        return rc == BELAY_UNAVAILABLE
                   ? rc
                   : err_reason(err, BELAY_UNAVAILABLE, "cluster",
                                "valkey: the namespace was not to be found in time");
    }
    if (verdict == MAP_IS_OLD || verdict == MOVED)
        (void)vk_map_read(c->s, c->job.deadline_us, NULL);
    return BELAY_OK;
}

static belay_rc attempt(struct call *c, struct belay_error *err)
{
    /* A server writes to those first to whom it last had something to say.  Answered once
     * before, the one who publishes is behind those who wait to hear of it. */
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n",
                      ping[] = "*1\r\n$4\r\nPING\r\n";
    belay_rc rc = BELAY_OK;

    c->job.before = c->asking         ? bytes_str(asking)
                    : c->r->publishes ? bytes_str(ping)
                                      : bytes_of(NULL, 0);
    c->job.reached = VK_NOTHING_SENT;
    c->node = c->asking;
    c->asking = NULL;
    if (!c->node)
        rc = vk_node_of(c->s, c->ns, c->job.deadline_us, &c->node, err);
    if (rc)
        return rc;
    vk_node_expect_master(c->node);
    return vk_node_call(c->node, &c->job, c->again, err);
}

static bool is_other_life(const struct belay_error *err)
{
    return err->code == BELAY_UNAVAILABLE && strcmp(err->reason, "life") == 0;
}

/* The node is gone.  Somebody else may have the slot already, or soon. */
static bool look_elsewhere(struct call *c, const struct belay_error *err)
{
    if (!atomic_load(&c->s->cluster) || err->code != BELAY_UNAVAILABLE ||
        is_other_life(err) || (c->job.reached == VK_SENT && c->again == VK_ONCE) ||
        !pause_call(c))
        return false;
    (void)vk_map_read(c->s, c->job.deadline_us, NULL);
    return true;
}

/* X1: an acknowledgement waits for the replicas that were asked for. */
static belay_rc check_waited(struct call *c, struct belay_error *err)
{
    const struct vk_reply *waited = &c->job.waited;

    if (c->job.after.len == 0 || (waited->kind == VK_INTEGER &&
                                  waited->i >= (int64_t)c->s->options.wait_replicas))
        return BELAY_OK;
    c->job.reached = VK_SENT;
    return err_reason(err, BELAY_UNAVAILABLE, "replicas",
                      "valkey: fewer than %u replicas have it after %lld ms",
                      c->s->options.wait_replicas, (long long)c->s->options.wait_ms);
}

static void add_wait(struct call *c)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_request r;

    vk_request_init(&r, &arena);
    vk_command(&r, 3, "WAIT");
    vk_arg_i64(&r, c->s->options.wait_replicas);
    vk_arg_i64(&r, c->s->options.wait_ms);
    if (r.no_memory || r.len > sizeof(c->after)) {
        c->r->no_memory = true;
        return;
    }
    memcpy(c->after, r.bytes, r.len);
    c->job.after = bytes_of(c->after, r.len);
}

static belay_rc run(struct call *c, struct belay_error *err)
{
    struct arena_mark mark = arena_mark(c->r->arena);

    for (;;) {
        const struct vk_reply *which = NULL;
        belay_rc rc = attempt(c, err);
        if (rc && look_elsewhere(c, err))
            continue;
        if (rc)
            return rc;
        enum verdict verdict = judge(c, &which);
        if (verdict == STANDS)
            return check_waited(c, err);
        c->job.reached = VK_NOTHING_SENT;
        rc = make_up(c, verdict, which, err);
        if (rc)
            return rc;
        arena_rewind(c->r->arena, mark);
    }
}

belay_rc vk_call(struct vk_store *s, struct bytes ns, struct vk_request *r,
                 enum vk_again again, struct vk_reply *replies,
                 enum vk_reached *reached, struct belay_error *err)
{
    struct belay_error local = { .code = 0 };
    struct call c = { .s = s,
                      .ns = ns,
                      .r = r,
                      .again = again,
                      .replies = replies,
                      .pause_us = PAUSE_FIRST_US };

    *reached = VK_NOTHING_SENT;
    if (!err)
        err = &local;
    c.job = (struct vk_job){ .bytes = bytes_of(r->bytes, r->len),
                             .n_replies = r->n_commands,
                             .reply = replies,
                             .arena = r->arena,
                             .only = r->only,
                             .deadline_us = vk_now_us() + s->request_timeout_us };
    if (again == VK_ONCE && s->options.wait_replicas > 0)
        add_wait(&c);
    if (r->no_memory)
        return err_no_memory(err, "a request");
    belay_rc rc = run(&c, err);
    *reached = c.job.reached;
    return rc;
}

void vk_post_tagged(struct vk_store *s, struct bytes ns, const struct vk_request *r,
                    unsigned tag)
{
    unsigned slot = vk_slot(ns);

    pthread_mutex_lock(&s->nodes_mutex);
    struct vk_node *n = !atomic_load(&s->cluster) ? s->nodes[0]
                        : s->slots                ? s->slots[slot]
                                                  : NULL;
    pthread_mutex_unlock(&s->nodes_mutex);
    if (n)
        vk_node_post(n, r, tag);
}
