/* Room for versions (drivers/postgres/schema.c): an execution that comes, is claimed and ends stays
 * on its page, though a transaction runs that might see all that it was. */
#include <belay/belay.h>
#include <belay/execution.h>
#include <stdio.h>
#include <unistd.h>

#include "base/attr.h"
#include "pgserver.h"
#include "tap.h"

#define EXECUTIONS 200
#define BATCH 100

static bool submit(struct belay *b, struct belay_arena *a)
{
    struct belay_submission items[EXECUTIONS];
    struct belay_submitted done[EXECUTIONS];

    for (size_t i = 0; i < EXECUTIONS; i++)
        items[i] = (struct belay_submission){ .size = sizeof(items[i]),
                                              .lane = "room",
                                              .kind = "mail",
                                              .payload = "{}",
                                              .payload_len = 2 };
    return belay_execution_submit(b, items, EXECUTIONS, a, done, NULL) == BELAY_OK;
}

/* A batch, from its claim to its end. */
static bool work(struct belay *b, struct belay_arena *a)
{
    const char *lane = "room";
    struct belay_claim_policy policy = { .size = sizeof(policy),
                                         .lanes = &lane,
                                         .n_lanes = 1,
                                         .worker = "worker",
                                         .max = BATCH };
    struct belay_completion items[BATCH];
    struct belay_ended ended[BATCH];
    struct belay_works works;

    if (belay_execution_claim(b, &policy, a, &works, NULL) || works.n != BATCH)
        return false;
    for (size_t i = 0; i < BATCH; i++)
        items[i] = (struct belay_completion){ .size = sizeof(items[i]),
                                              .handle = &works.work[i].handle };
    return belay_execution_complete(b, items, BATCH, NULL, a, ended, NULL, NULL) ==
           BELAY_OK;
}

/* What the server has counted once the connections are gone. */
static void expect_counts(struct tap *t, PGconn *pg, const char *schema,
                          const char *counts)
{
    char words[256], out[64] = "";

    (void)snprintf(words, sizeof(words),
                   "SELECT n_tup_upd || ' written again, ' || n_tup_hot_upd ||"
                   " ' where they were' FROM pg_stat_user_tables"
                   " WHERE schemaname = '%s' AND relname = 'belay_execution'",
                   schema);
    for (int i = 0; i < 500 && strcmp(out, counts) != 0; i++) {
        (void)usleep(20000);
        if (!TAP_OK(t, pg_test_ask(pg, words, out, sizeof(out))))
            return;
    }
    TAP_STR(t, out, counts);
}

static void stays(struct tap *t)
{
    struct belay *b = NULL;
    struct belay_arena *a = NULL;
    PGconn *pg = pg_test_connect(pg_test_url()), *seer = pg_test_connect(pg_test_url());
    char url[512], schema[32], words[64], one[8];

    (void)snprintf(schema, sizeof(schema), "room_%d", (int)getpid());
    (void)snprintf(url, sizeof(url), "%s?schema=%s", pg_test_url(), schema);
    if (TAP_OK(t, !belay_open(url, NULL, &b, NULL)) &&
        TAP_OK(t, !belay_arena_new(&a, NULL)) && TAP_OK(t, submit(b, a))) {
        PQclear(PQexec(seer, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
        TAP_OK(t, pg_test_ask(seer, "SELECT 1", one, sizeof(one)));
        for (int i = 0; i < EXECUTIONS / BATCH; i++)
            TAP_OK(t, work(b, a));
    }
    belay_arena_free(a);
    belay_close(b);
    expect_counts(t, pg, schema, "400 written again, 400 where they were");
    PQfinish(seer);
    (void)snprintf(words, sizeof(words), "DROP SCHEMA %s CASCADE", schema);
    TAP_OK(t, pg_test_run(pg_test_url(), words));
    PQfinish(pg);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "room: an execution's versions lie side by side", stays },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
