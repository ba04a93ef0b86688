/* Wake-ups among processes: two stores on one server are as good as two processes. */
#include "base/hash.h"
#include "redisserver.h"
#include "store/drivers/valkey/net.h"
#include "store/wake.h"
#include "tap.h"

#define LONG_US ((int64_t)20000000)

static const struct schema no_rows;

struct two {
    struct driver *here, *there;
    struct belay_arena arena;
    struct listener *l;
};

/* user: NULL, or one whose password is his name. */
static struct driver *open_as(struct tap *t, const char *prefix, const char *user)
{
    struct driver_config config = { .schema = &no_rows,
                                    .clock = clock_system(),
                                    .random = random_system() };
    char host[REDIS_HOST_MAX];
    struct valkey_options o = { .relaxed = true,
                                .prefix = prefix,
                                .user = user,
                                .password = user,
                                .retries = 5,
                                .retry_jitter = -1,
                                .host = host };
    struct belay_error err = { .code = 0 };
    struct driver *d = NULL;

    o.port = (unsigned)redis_test_port(redis_test_url(), host);
    if (!TAP_EQ(t, valkey_open(&d, &o, &config, &err), BELAY_OK))
        printf("# %s\n", err.message);
    return d;
}

static struct driver *open_driver(struct tap *t, const char *prefix)
{
    return open_as(t, prefix, NULL);
}

static void listen_here(struct tap *t, struct two *two, const char *ns,
                        const char *topic)
{
    struct belay_clock clock = clock_system();
    struct bytes topics[] = { bytes_str(topic) };

    TAP_EQ(t,
           wake_listen(
               two->here->hub,
               &(struct wake_topics){ .ns = bytes_str(ns), .topic = topics, .n = 1 },
               &clock, NULL, &two->arena, &two->l, NULL),
           BELAY_OK);
}

static bool open_two(struct tap *t, struct two *two)
{
    *two = (struct two){ .here = open_driver(t, "listen"),
                         .there = open_driver(t, "listen") };
    if (two->here && two->there)
        listen_here(t, two, "ns", "topic");
    return two->l != NULL;
}

static void close_two(struct two *two)
{
    listener_close(two->l);
    driver_close(two->here);
    driver_close(two->there);
    arena_release(&two->arena);
}

static belay_rc wait_here(struct two *two, int64_t time_us)
{
    return listener_wait(two->l, vk_now_us() + time_us, NULL);
}

static void wakes(struct tap *t)
{
    struct two two;

    if (!open_two(t, &two))
        return;
    for (int i = 0; i < 20; i++) {
        driver_wake(two.there, bytes_str("ns"), bytes_str("topic"));
        TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
        TAP_OK(t, !listener_poll(two.l));
    }
    /* Another prefix is another store. */
    struct driver *other = open_driver(t, "listen2");
    if (other)
        driver_wake(other, bytes_str("ns"), bytes_str("topic"));
    driver_close(other);
    TAP_EQ(t, wait_here(&two, 100000), BELAY_TIMEOUT);
    close_two(&two);
}

/* Those who wait here know it already. */
static void not_twice(struct tap *t)
{
    struct two two;

    if (!open_two(t, &two))
        return;
    driver_wake(two.here, bytes_str("ns"), bytes_str("topic"));
    TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
    TAP_EQ(t, wait_here(&two, 100000), BELAY_TIMEOUT);
    close_two(&two);
}

/* A plan that puts a member into an index, or takes it out, with many topics. */
static belay_rc commit_there(struct two *two, enum effect_kind kind, bool *told)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const struct plan_topic first = { .next = NULL,
                                             .name = { (uint8_t *)"a", 1 } },
                                   topic = { .next = &first,
                                             .name = { (uint8_t *)"topic", 5 } },
                                   last = { .next = &topic,
                                            .name = { (uint8_t *)"topic", 5 } };
    struct effect effect = { .kind = kind,
                             .rank = { .index = bytes_str("i"),
                                       .member = bytes_str("member"),
                                       .rank = 1,
                                       .old_rank = 1 } };
    struct effect_result results[1] = { { .known = false } };
    struct plan plan = { .id = 1,
                         .ns = bytes_str("ns"),
                         .effects = &effect,
                         .n_effects = 1,
                         .topics = &last };
    struct plan_result result = { .effects = results };
    void *attempt = arena_zalloc(&arena, 1, two->there->attempt_size);

    if (!attempt || driver_begin(two->there, attempt, plan.ns, NULL))
        return BELAY_NO_MEMORY;
    belay_rc rc = driver_commit(two->there, attempt, &plan, &result, NULL);
    driver_end(two->there, attempt);
    *told = result.told;
    return rc;
}

static void commits(struct tap *t)
{
    struct two two;
    bool told = false;

    if (!open_two(t, &two))
        return;
    (void)commit_there(&two, EFFECT_RANK_REMOVE, &told); /* of an earlier run */
    (void)wait_here(&two, 100000);
    TAP_EQ(t, commit_there(&two, EFFECT_RANK_ADD, &told), BELAY_OK);
    TAP_OK(t, told);
    TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
    TAP_OK(t, commit_there(&two, EFFECT_RANK_ADD, &told) != BELAY_OK); /* it is there */
    TAP_EQ(t, wait_here(&two, 100000), BELAY_TIMEOUT);
    TAP_EQ(t, commit_there(&two, EFFECT_RANK_REMOVE, &told), BELAY_OK);
    TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
    close_two(&two);
}

static void last_words(struct tap *t)
{
    struct two two;

    if (!open_two(t, &two))
        return;
    driver_wake(two.there, bytes_str("ns"), bytes_str("topic"));
    driver_close(two.there);
    two.there = NULL;
    TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
    close_two(&two);
}

/* A user of its own, so that nobody else's connections are ended. */
static void lost_connection(struct tap *t)
{
    const char *url = redis_test_url();
    struct two two = { .l = NULL };

    TAP_OK(t, redis_test_run(url, "ACL SETUSER listener on >listener ~* &* +@all"));
    two.here = open_as(t, "listen", "listener");
    two.there = open_driver(t, "listen");
    if (two.here && two.there) {
        listen_here(t, &two, "ns", "topic");
        TAP_OK(t, redis_test_run(url, "CLIENT KILL USER listener"));
        TAP_EQ(t, wait_here(&two, LONG_US),
               BELAY_OK); /* it may have missed something */
        driver_wake(two.there, bytes_str("ns"), bytes_str("topic"));
        TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
    }
    close_two(&two);
    TAP_OK(t, redis_test_run(url, "ACL DELUSER listener"));
}

static void *wake_often(void *arg)
{
    for (int i = 0; i < 200; i++)
        driver_wake(arg, bytes_str("ns"), bytes_str("topic"));
    return NULL;
}

static void from_many(struct tap *t)
{
    pthread_t threads[8];
    struct two two;

    if (!open_two(t, &two))
        return;
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        TAP_EQ(t, pthread_create(&threads[i], NULL, wake_often, two.there), 0);
    TAP_EQ(t, wait_here(&two, LONG_US), BELAY_OK);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        (void)pthread_join(threads[i], NULL);
    close_two(&two);
}

struct seen {
    unsigned n, bad;
    bool functions, durability, memory;
};

static void see(void *arg, const struct finding *f)
{
    struct seen *seen = arg;

    seen->n++;
    seen->bad += f->level == FINDING_BAD;
    seen->functions |= strcmp(f->what, "functions") == 0;
    seen->durability |= strcmp(f->what, "durability") == 0;
    seen->memory |= strcmp(f->what, "memory") == 0;
}

static void doctor(struct tap *t)
{
    struct driver *d = open_driver(t, "listen");
    struct seen seen = { .n = 0 };

    if (!d)
        return;
    TAP_EQ(t, driver_doctor(d, see, &seen, NULL), BELAY_OK);
    TAP_OK(t, seen.n >= 6 && seen.bad == 0);
    TAP_OK(t, seen.functions && seen.durability && seen.memory);
    driver_close(d);
}

static const struct tap_case cases[] = {
    { "a wake-up reaches another process", wakes },
    { "a wake-up of one's own is not heard twice", not_twice },
    { "a commit wakes by itself, all its topics, and only if it stands", commits },
    { "who wakes others and ends at once is heard", last_words },
    { "after a lost connection everybody looks, and is heard again", lost_connection },
    { "threads: many wake-ups at once", from_many },
    { "the doctor says how the server is doing", doctor },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
