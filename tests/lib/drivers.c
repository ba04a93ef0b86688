#include "drivers.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "naive.h"
#include "store/drivers/memory.h"
#include "store/drivers/sqlite.h"
#include "store/fault.h"
#include "store/trace.h"

static belay_rc open_memory(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    (void)dir;
    return memory_open(out, config, err);
}

/* Both decorators with nothing armed: nobody may notice them. */
static belay_rc open_decorated(const struct driver_config *config, const char *dir,
                               struct driver **out, struct belay_error *err)
{
    struct driver *memory = NULL, *faulty = NULL;
    belay_rc rc = open_memory(config, dir, &memory, err);

    if (!rc)
        rc = fault_wrap(&faulty, memory, &config->clock, err);
    if (!rc)
        rc = trace_wrap(out, faulty, NULL, NULL, err);
    if (rc)
        driver_close(faulty ? faulty : memory);
    return rc;
}

static belay_rc open_naive(const struct driver_config *config, const char *dir,
                           struct driver **out, struct belay_error *err)
{
    (void)dir;
    return naive_open(out, config, err);
}

/* A driver that runs bodies one after the other. */
static belay_rc open_queued(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    const struct shim_options options = { .drop = -1, .bodies = BODIES_QUEUED };
    struct driver *naive = NULL;
    belay_rc rc = open_naive(config, dir, &naive, err);

    if (!rc)
        rc = shim_wrap(out, naive, &options, err);
    if (rc)
        driver_close(naive);
    return rc;
}

static belay_rc open_sqlite(const struct driver_config *config, const char *dir,
                            struct driver **out, struct belay_error *err)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/store.db", dir);
    return sqlite_open(out, path, config, err);
}

static belay_rc open_sqlite_memory(const struct driver_config *config, const char *dir,
                                   struct driver **out, struct belay_error *err)
{
    (void)dir;
    return sqlite_open(out, ":memory:", config, err);
}

/* clang-format off */
const struct test_driver test_drivers[] = {
    { "memory",             open_memory,    false, true },
    { "memory+trace+fault", open_decorated, false, true },
    { "sqlite",             open_sqlite,    true, false },
    { "sqlite:memory",      open_sqlite_memory, false, false },
    { "naive",              open_naive,     false, true },
    { "naive+queue",        open_queued,    false, true },
};
/* clang-format on */
const size_t n_test_drivers = COUNT_OF(test_drivers);

const struct test_driver *test_driver_find(const char *name)
{
    for (size_t i = 0; i < n_test_drivers; i++) {
        if (strcmp(test_drivers[i].name, name) == 0)
            return &test_drivers[i];
    }
    return NULL;
}
