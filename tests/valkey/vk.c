#include "vk.h"

#include "base/clock.h"
#include "base/hash.h"

struct vk_setup vk_setup;

void vk_setup_reset(const char *url)
{
    vk_setup =
        (struct vk_setup){ .home = url, .url = url, .options = { .retry_jitter = -1 } };
}

static belay_rc open_setup(const struct driver_config *config, const char *dir,
                           struct driver **out, struct belay_error *err)
{
    struct valkey_options options = vk_setup.options;
    char host[REDIS_HOST_MAX], prefix[REDIS_PREFIX_MAX];

    redis_test_prefix(dir, prefix);
    options.port = (unsigned)redis_test_port(vk_setup.url, host);
    options.host = host;
    options.prefix = prefix;
    return valkey_open(out, &options, config, err);
}

static void forget(const char *dir)
{
    char prefix[REDIS_PREFIX_MAX];

    redis_test_prefix(dir, prefix);
    (void)redis_test_forget(vk_setup.home, prefix);
}

const struct test_driver vk_driver = { .name = "valkey",
                                       .open = open_setup,
                                       .durable = true,
                                       .hides = true,
                                       .forget = forget };

/* --- on a bad network --- */

static void use(const char *url, const struct limits *limits)
{
    vk_setup_reset(redis_test_url());
    vk_setup.url = url;
    vk_setup.options.request_timeout_ms = limits->request_timeout_ms;
    vk_setup.options.retries = limits->retries;
    vk_setup.options.retry_first_ms = limits->retry_first_ms;
    vk_setup.options.retry_base = limits->retry_base;
    vk_setup.options.retry_jitter = limits->retry_jitter;
}

static int connections(void)
{
    redisReply *r = redis_test_ask(redis_test_url(), "CLIENT LIST");
    int n = r ? 0 : -1;

    for (const char *at = r ? r->str : ""; (at = strchr(at, '\n')); at++)
        n++;
    freeReplyObject(r);
    return n;
}

const struct fault_target vk_target = { .driver = &vk_driver,
                                        .home = redis_test_url,
                                        .use = use,
                                        .untried = "",
                                        .connections = connections };

belay_rc vk_open(const char *prefix, struct driver **out, struct belay_error *err)
{
    const struct driver_config config = { .schema = &schema_things,
                                          .clock = clock_system(),
                                          .random = random_system() };

    *out = NULL;
    return open_setup(&config, prefix, out, err);
}

void vk_pause_ms(int64_t ms)
{
    struct belay_clock clock = clock_system();

    clock.sleep_us(clock.arg, ms * 1000);
}
