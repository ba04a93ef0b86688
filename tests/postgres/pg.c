#include "pg.h"

struct pg_setup pg_setup;

void pg_setup_reset(const char *url)
{
    pg_setup =
        (struct pg_setup){ .home = url, .url = url, .options = { .retry_jitter = -1 } };
}

void pg_schema_of(const char *dir, char out[PG_SCHEMA_MAX])
{
    (void)snprintf(out, PG_SCHEMA_MAX, "t_%016llx",
                   (unsigned long long)key_hash(bytes_str(dir)));
}

static belay_rc open_setup(const struct driver_config *config, const char *dir,
                           struct driver **out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct postgres_param settings = { "options", pg_setup.settings };
    struct postgres_options options = pg_setup.options;
    char schema[PG_SCHEMA_MAX];

    pg_schema_of(dir, schema);
    options.schema = schema;
    belay_rc rc =
        postgres_options_from_uri(&options, bytes_str(strchr(pg_setup.url, ':') + 1),
                                  &settings, pg_setup.settings ? 1 : 0, &arena, err);
    return rc ? rc : postgres_open(out, &options, config, err);
}

static void forget(const char *dir)
{
    char words[128], schema[PG_SCHEMA_MAX];

    pg_schema_of(dir, schema);
    (void)snprintf(words, sizeof(words), "DROP SCHEMA IF EXISTS %s CASCADE", schema);
    (void)pg_test_run(pg_setup.home, words);
}

const struct test_driver pg_driver = { .name = "postgres",
                                       .open = open_setup,
                                       .durable = true,
                                       .hides = true,
                                       .waits = true,
                                       .forget = forget };

/* --- deeds --- */

belay_rc deed_body(struct txn *t, void *arg)
{
    struct deed *d = arg;
    const struct row *row;
    struct value key = value_str(d->id);
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    d->runs++;
    if (rc || !row)
        return rc ? rc : txn_fail(t, BELAY_NOT_FOUND, "", "no thing %s", d->id);
    struct change change = { THING_N, value_i64(row->v[THING_N].i + 1) };
    rc = txn_put(t, &row_thing, &key, &change, 1);
    if (rc == BELAY_OK)
        rc = txn_add(t, &row_thing, &key, THING_COUNT, 1, 0, 1000000, NULL);
    return rc ? rc : txn_feed_append(t, bytes_str(d->id), bytes_str("done"), NULL);
}

void deed_found(struct harness *h, struct deed *d, unsigned i)
{
    *d = (struct deed){ .runs = 0 };
    (void)snprintf(d->id, sizeof(d->id), "deed-%u", i);
    thing_set(h, d->id, 0);
}

struct counting {
    const struct deed *d;
    int64_t n, count, entries;
};

static belay_rc count_body(struct txn *t, void *arg)
{
    struct counting *c = arg;
    struct feed_entries feed = { .n = 0 };
    const struct row *row = NULL;
    struct value key = value_str(c->d->id);
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    c->n = row ? row->v[THING_N].i : -1;
    c->count = row ? row->v[THING_COUNT].i : -1;
    if (rc == BELAY_OK)
        rc =
            txn_feed_read(t, bytes_str(c->d->id), (struct feed_pos){ 0 }, 10000, &feed);
    c->entries = (int64_t)feed.n;
    return rc;
}

/* Feeds wait for the transactions that run, such as those of connections whose end the
 * server has not noticed yet. */
int64_t deed_times(struct harness *h, const struct deed *d)
{
    struct counting c = { .d = d };

    for (int i = 0; i < 300; i++) {
        if (!CHECK_RC(h, harness_run(h, count_body, &c), BELAY_OK))
            return -1;
        if (c.entries == c.n)
            break;
        harness_pass_us(h, 10000);
    }
    TAP_EQ(h->t, c.entries, c.n);
    TAP_EQ(h->t, c.count, c.n);
    return c.n;
}
