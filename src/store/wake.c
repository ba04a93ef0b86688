#include "store/wake.h"

#include <stdlib.h>

#include "store/key.h"

#define BUCKETS 64

/* A listener's place in the bucket of one topic. */
struct wake_link {
    struct wake_link *next, **at;
    struct listener *listener;
    uint64_t hash;
    struct bytes ns, topic;
};

struct bucket {
    pthread_mutex_t mutex;
    struct wake_link *links;
};

struct wake_hub {
    struct bucket buckets[BUCKETS];
    void (*on_listen)(void *arg);
    void *on_listen_arg;
    const struct wake_line *line;
    _Atomic uint64_t posted, delivered, waits;
    _Atomic uint64_t listening;
};

struct listener {
    struct wake_hub *hub;
    struct parker parker;
    struct belay_clock clock;
    struct belay_cancel *cancel;
    struct cancel_link cancel_link;
    struct wake_link *links;
    size_t n_links;
    unsigned *buckets; /* of the hub's line; NULL: others pass its wake-ups on */
};

static uint64_t topic_hash(struct bytes ns, struct bytes topic)
{
    return key_hash(ns) * 31 + key_hash(topic);
}

static unsigned hash_bucket(uint64_t hash, unsigned n_buckets)
{
    return (unsigned)((hash >> 32) % n_buckets);
}

static struct bucket *bucket_of(struct wake_hub *hub, uint64_t hash)
{
    return &hub->buckets[hash_bucket(hash, BUCKETS)];
}

belay_rc wake_hub_open(struct wake_hub **out, struct belay_error *err)
{
    struct wake_hub *hub = calloc(1, sizeof(*hub));
    if (!hub)
        return err_no_memory(err, "wake-ups");
    for (size_t i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&hub->buckets[i].mutex, NULL);
    *out = hub;
    return BELAY_OK;
}

void wake_hub_close(struct wake_hub *hub)
{
    if (!hub)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        pthread_mutex_destroy(&hub->buckets[i].mutex);
    free(hub);
}

/* With its bucket's mutex held. */
static void wake_one(struct wake_hub *hub, struct wake_link *l)
{
    atomic_fetch_add_explicit(&hub->delivered, 1, memory_order_relaxed);
    parker_ring(&l->listener->parker);
}

void wake_post(struct wake_hub *hub, struct bytes ns, struct bytes topic)
{
    uint64_t hash = topic_hash(ns, topic);
    struct bucket *b = bucket_of(hub, hash);

    atomic_fetch_add_explicit(&hub->posted, 1, memory_order_relaxed);
    pthread_mutex_lock(&b->mutex);
    for (struct wake_link *l = b->links; l; l = l->next) {
        if (l->hash == hash && bytes_eq(l->topic, topic) && bytes_eq(l->ns, ns))
            wake_one(hub, l);
    }
    pthread_mutex_unlock(&b->mutex);
}

unsigned wake_bucket(struct bytes ns, struct bytes topic, unsigned n_buckets)
{
    return hash_bucket(topic_hash(ns, topic), n_buckets);
}

void wake_post_bucket(struct wake_hub *hub, unsigned bucket, unsigned n_buckets)
{
    /* A finer division of the same hashes has the group within one of our buckets. */
    bool finer = n_buckets % BUCKETS == 0;
    unsigned first = finer ? bucket % BUCKETS : 0;
    unsigned end = finer ? first + 1 : BUCKETS;

    for (struct bucket *b = &hub->buckets[first]; b < &hub->buckets[end]; b++) {
        pthread_mutex_lock(&b->mutex);
        for (struct wake_link *l = b->links; l; l = l->next) {
            if (hash_bucket(l->hash, n_buckets) == bucket)
                wake_one(hub, l);
        }
        pthread_mutex_unlock(&b->mutex);
    }
}

void wake_hub_on_listen(struct wake_hub *hub, void (*fn)(void *arg), void *arg)
{
    hub->on_listen = fn;
    hub->on_listen_arg = arg;
}

void wake_hub_set_line(struct wake_hub *hub, const struct wake_line *line)
{
    hub->line = line;
}

struct wake_counts wake_hub_counts(struct wake_hub *hub)
{
    return (struct wake_counts){
        .posted = atomic_load(&hub->posted),
        .delivered = atomic_load(&hub->delivered),
        .waits = atomic_load(&hub->waits),
    };
}

bool wake_hub_listens(struct wake_hub *hub)
{
    return atomic_load(&hub->listening) > 0;
}

static void link_topic(struct listener *l, struct wake_link *link)
{
    struct bucket *b = bucket_of(l->hub, link->hash);

    link->listener = l;
    pthread_mutex_lock(&b->mutex);
    link->next = b->links;
    link->at = &b->links;
    if (link->next)
        link->next->at = &link->next;
    b->links = link;
    pthread_mutex_unlock(&b->mutex);
}

belay_rc wake_listen(struct wake_hub *hub, const struct wake_topics *topics,
                     const struct belay_clock *clock, struct belay_cancel *cancel,
                     struct belay_arena *a, struct listener **out,
                     struct belay_error *err)
{
    struct listener *l = arena_zalloc(a, 1, sizeof(*l));
    struct wake_link *links = arena_zalloc(a, topics->n, sizeof(*links));
    unsigned *buckets = hub->line ? arena_zalloc(a, topics->n, sizeof(*buckets)) : NULL;
    struct bytes own_ns;

    if (!l || !links || (hub->line && !buckets) || !arena_copy(a, topics->ns, &own_ns))
        return err_no_memory(err, "a listener");
    for (size_t i = 0; i < topics->n; i++) {
        belay_rc rc = name_check(topics->topic[i], "topic", err);
        if (rc)
            return rc;
        links[i].ns = own_ns;
        links[i].hash = topic_hash(own_ns, topics->topic[i]);
        if (buckets)
            buckets[i] = hash_bucket(links[i].hash, hub->line->n_buckets);
        if (!arena_copy(a, topics->topic[i], &links[i].topic))
            return err_no_memory(err, "a listener");
    }

    /* From here on nothing can fail, so nothing has to be unlinked again. */
    *l = (struct listener){ .hub = hub,
                            .clock = *clock,
                            .cancel = cancel,
                            .links = links,
                            .n_links = topics->n };
    atomic_fetch_add(&hub->listening, 1);
    if (buckets && hub->line->listen(hub->line->arg, buckets, topics->n))
        l->buckets = buckets;
    else if (hub->on_listen)
        hub->on_listen(hub->on_listen_arg);
    cancel_attach(cancel, &l->cancel_link, &l->parker);
    for (size_t i = 0; i < topics->n; i++)
        link_topic(l, &links[i]);
    *out = l;
    return BELAY_OK;
}

static bool wait_on_line(struct listener *l, int64_t deadline_us)
{
    const struct wake_line *line = l->hub->line;

    while (!parker_take(&l->parker)) {
        int64_t left = deadline_us == DEADLINE_NONE
                           ? INT64_MAX
                           : deadline_us - l->clock.mono_us(l->clock.arg);
        if (left <= 0)
            return false;
        line->sleep(line->arg, l->buckets, l->n_links, &l->parker, left);
    }
    return true;
}

belay_rc listener_wait(struct listener *l, int64_t deadline_us, struct belay_error *err)
{
    bool woken = false;

    if (!cancel_is_set(l->cancel))
        woken = l->buckets ? wait_on_line(l, deadline_us)
                           : parker_wait(&l->parker, &l->clock, deadline_us);

    atomic_fetch_add_explicit(&l->hub->waits, 1, memory_order_relaxed);
    if (cancel_is_set(l->cancel))
        return err_set(err, BELAY_CANCELLED, "wait: cancelled by the caller");
    if (!woken)
        return err_set(err, BELAY_TIMEOUT,
                       "wait: nothing happened before the deadline");
    return BELAY_OK;
}

bool listener_poll(struct listener *l)
{
    const struct wake_line *line = l->hub->line;

    if (l->buckets && line->notice)
        (void)line->notice(line->arg, l->buckets, l->n_links);
    return parker_take(&l->parker);
}

void listener_close(struct listener *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n_links; i++) {
        struct bucket *b = bucket_of(l->hub, l->links[i].hash);
        pthread_mutex_lock(&b->mutex);
        *l->links[i].at = l->links[i].next;
        if (l->links[i].next)
            l->links[i].next->at = l->links[i].at;
        pthread_mutex_unlock(&b->mutex);
    }
    cancel_detach(l->cancel, &l->cancel_link);
    atomic_fetch_sub(&l->hub->listening, 1);
}
