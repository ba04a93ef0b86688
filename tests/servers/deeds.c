#include "deeds.h"

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

static belay_rc found_body(struct txn *t, void *arg)
{
    const struct deed *d = arg;

    return thing_insert(t, d->id, 0);
}

void deed_found_in(struct harness *h, struct space *space, struct deed *d, unsigned i)
{
    *d = (struct deed){ .space = space };
    (void)snprintf(d->id, sizeof(d->id), "deed-%u", i);
    arena_reset(&h->arena);
    CHECK_RC(h, txn_run(space, found_body, d, NULL, &h->arena, &h->err), BELAY_OK);
}

void deed_found(struct harness *h, struct deed *d, unsigned i)
{
    deed_found_in(h, h->space, d, i);
}

struct counting {
    const struct deed *d;
    int64_t n, count, entries;
};

static belay_rc count_entries(struct txn *t, struct bytes feed, int64_t *out)
{
    struct feed_pos after = { 0 };
    struct feed_entries page = { .n = 0 };

    for (*out = 0;; *out += (int64_t)page.n) {
        belay_rc rc = txn_feed_read(t, feed, after, 1000, &page);
        if (rc || page.n == 0)
            return rc;
        after = page.entry[page.n - 1].pos;
    }
}

static belay_rc count_body(struct txn *t, void *arg)
{
    struct counting *c = arg;
    const struct row *row = NULL;
    struct value key = value_str(c->d->id);
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    c->n = row ? row->v[THING_N].i : -1;
    c->count = row ? row->v[THING_COUNT].i : -1;
    return rc ? rc : count_entries(t, bytes_str(c->d->id), &c->entries);
}

/* Feeds wait for the transactions that run, such as those of connections whose end the
 * server has not noticed yet. */
int64_t deed_times(struct harness *h, const struct deed *d)
{
    struct counting c = { .d = d };

    for (int i = 0; i < 300; i++) {
        arena_reset(&h->arena);
        if (!CHECK_RC(h, txn_run(d->space, count_body, &c, NULL, &h->arena, &h->err),
                      BELAY_OK)) {
            printf("# %s\n", h->err.message);
            return -1;
        }
        if (c.entries == c.n)
            break;
        harness_pass_us(h, 10000);
    }
    TAP_EQ(h->t, c.entries, c.n);
    TAP_EQ(h->t, c.count, c.n);
    return c.n;
}
