/* Connections of a PostgreSQL store that break, and backends that are killed. */
#include <stdlib.h>

#include "base/clock.h"
#include "faults.h"
#include "load.h"
#include "pg.h"

/* --- backends that end in the middle --- */

static const char kill_one[] =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
    " 'belay' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1";

/* At points that nobody chooses, all over the transactions of the others. */
static void kill_backends(void *arg)
{
    PGconn *pg = pg_test_connect(pg_test_url());
    struct belay_clock clock = clock_system();
    unsigned *kills = arg;
    char answer[16];

    for (unsigned i = 0; i < 100 && pg; i++) {
        clock.sleep_us(clock.arg, 5000 + (i * 7919) % 20000);
        *kills += pg_test_ask(pg, kill_one, answer, sizeof(answer));
    }
    PQfinish(pg);
}

static const char kill_all[] =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
    " application_name = 'belay' AND pid <> pg_backend_pid()";

static void kill_every_backend(void *arg)
{
    PGconn *pg = pg_test_connect(pg_test_url());
    struct belay_clock clock = clock_system();
    unsigned *kills = arg;
    char answer[16];

    for (unsigned i = 0; i < 30 && pg; i++) {
        clock.sleep_us(clock.arg, 20000 + (i * 7919) % 40000);
        if (pg_test_ask(pg, kill_all, answer, sizeof(answer)))
            *kills += (unsigned)strtoul(answer, NULL, 10);
    }
    PQfinish(pg);
}

static void killed_under_load(struct tap *t, void (*kill)(void *arg))
{
    CLEANUP(harness_close) struct harness h;
    unsigned kills = 0;

    pg_setup_reset(pg_test_url());
    pg_setup.options.retries = 5;
    pg_setup.options.retry_first_ms = 5;
    if (!harness_open(&h, t, HARNESS_REAL_TIME))
        return;
    load_run(&h, kill, &kills);
    TAP_OK(t, kills >= 50);
}

static void one_is_killed(struct tap *t)
{
    killed_under_load(t, kill_backends);
}

static void all_are_killed(struct tap *t)
{
    killed_under_load(t, kill_every_backend);
}

int main(int argc, char **argv)
{
    static const struct tap_case own[] = {
        { "faults: backends that are killed while they work", one_is_killed },
        { "faults: all backends are killed at once, again and again", all_are_killed },
    };
    return faults_main(&pg_target, own, COUNT_OF(own), argc, argv);
}
