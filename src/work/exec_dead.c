/* Executions whose holders died: what is leased is looked at without guards, the host is
 * asked about those who hold it, outside of any transaction, and what the dead hold is lost
 * in transactions that read it again. */
#include "base/rng.h"
#include "work/execution_rows.h"

#define PAGE 64

/* A lease, as it was seen. */
struct held {
    struct bytes id, lease_id;
    struct lease_holder who;
    bool is_dead;
};

struct looking {
    const struct exec_site *site;
    struct rng chance; /* for jitter */

    /* A page: what may be the dead's; in the arena. */
    struct held held[PAGE];
    size_t n, seen;
    struct hit last;

    /* What has been looked at: the cursor. */
    bool begun;
    int64_t rank;
    uint8_t member[SCHEMA_NAME_MAX];
    size_t member_len;

    /* Of one transaction: which of the page. */
    size_t first, count;
    int64_t lost;
};

/* --- looking --- */

static void note(struct looking *x, const struct hit *hit)
{
    const struct row *row = hit->rows[0];

    x->last = *hit;
    if (!row)
        return; /* `check` tells of it */
    struct held h = { .id = hit->member,
                      .lease_id = row_bytes(row, EXEC_LEASE + LEASE_ID),
                      .who = lease_holder_in(row, EXEC_LEASE) };
    if (h.who.member.len > 0 && h.lease_id.len > 0)
        x->held[x->n++] = h;
}

static belay_rc look_body(struct txn *t, void *arg)
{
    struct looking *x = arg;
    const struct bytes index = bytes_str(LEASED_INDEX);
    const struct fetch fetch = { .type = &row_execution };
    const struct scan_cursor after = { .rank = x->rank,
                                       .member = bytes_of(x->member, x->member_len),
                                       .index = index };
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .max_rank = RANK_MAX,
                               .after = x->begun ? &after : NULL,
                               .limit = PAGE,
                               .fetch = &fetch,
                               .n_fetch = 1,
                               .hints = 1 };
    struct hits hits;
    belay_rc rc = txn_scan(t, &scan, &hits);

    if (rc)
        return rc;
    x->n = 0;
    x->seen = hits.n;
    for (size_t i = 0; i < hits.n; i++)
        note(x, &hits.hit[i]);
    return BELAY_OK;
}

/* After the body, which may have run more than once. */
static void move_cursor(struct looking *x)
{
    x->begun = x->seen > 0;
    x->rank = x->last.rank;
    x->member_len = x->seen > 0 ? x->last.member.len : 0;
    if (x->seen > 0)
        memcpy(x->member, x->last.member.ptr, x->member_len);
}

/* --- asking --- */

static bool is_same(const struct lease_holder *a, const struct lease_holder *b)
{
    return bytes_eq(a->member, b->member) && a->pid == b->pid &&
           a->process_start == b->process_start && bytes_eq(a->boot, b->boot) &&
           bytes_eq(a->host, b->host);
}

/* Members hold many: each is asked about once a page. */
static bool is_dead(struct looking *x, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (is_same(&x->held[k].who, &x->held[i].who))
            return x->held[k].is_dead;
    }
    return host_proves_dead(x->site->host, &x->held[i].who);
}

/* Those that remain are the dead's. */
static void ask(struct looking *x)
{
    size_t n = 0;

    for (size_t i = 0; i < x->n; i++)
        x->held[i].is_dead = is_dead(x, i);
    for (size_t i = 0; i < x->n; i++) {
        if (x->held[i].is_dead)
            x->held[n++] = x->held[i];
    }
    x->n = n;
}

/* --- losing --- */

static belay_rc lose_body(struct txn *t, void *arg)
{
    struct looking *x = arg;
    CLEANUP(event_list_release) struct event_list events;
    struct value keys[PAGE];
    struct row_want wants[2 * PAGE];
    const struct row *rows[2 * PAGE];
    struct due_count count = { .promoted = 0 };
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    event_list_init(&events, t);
    for (size_t i = 0; i < x->count; i++) {
        keys[i] = value_text(x->held[x->first + i].id);
        wants[2 * i] = (struct row_want){ &row_execution, &keys[i] };
        wants[2 * i + 1] = (struct row_want){ &row_execution_spec, &keys[i] };
    }
    if (rc == BELAY_OK)
        rc = txn_get_many(t, wants, 2 * x->count, rows);
    for (size_t i = 0; i < x->count && rc == BELAY_OK; i++) {
        const struct exec_bereaved b = { .row = rows[2 * i],
                                         .spec = rows[2 * i + 1],
                                         .lease_id = x->held[x->first + i].lease_id };
        rc =
            exec_bereave(t, x->site, &b, now_ms, rng_next(&x->chance), &events, &count);
    }
    x->lost = count.expired_leases + count.capped;
    return rc ? rc : event_flush(&events);
}

/* One that cannot be read does not stand in the way of the others: then they are lost one by
 * one. */
static belay_rc lose(struct looking *x, int64_t *io_lost, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    belay_rc rc = BELAY_OK;

    x->first = 0;
    x->count = x->n;
    if (x->n == 0)
        return BELAY_OK;
    rc = txn_run(x->site->space, lose_body, x, NULL, &arena, err);
    if (rc == BELAY_OK)
        *io_lost += x->lost;
    if (rc != BELAY_CORRUPT)
        return rc;
    x->count = 1;
    for (; x->first < x->n; x->first++) {
        arena_reset(&arena);
        rc = txn_run(x->site->space, lose_body, x, NULL, &arena, err);
        if (rc == BELAY_OK)
            *io_lost += x->lost;
        else if (rc != BELAY_CORRUPT)
            return rc;
    }
    return BELAY_OK;
}

belay_rc exec_dead_sweep(const struct exec_site *site, int64_t *out_lost,
                         struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    struct looking x = { .site = site };
    uint64_t seed = 0;
    int64_t lost = 0;
    belay_rc rc = random_bytes(store_random_hook(space_store(site->space)), &seed,
                               sizeof(seed), err);

    rng_init(&x.chance, seed);
    do {
        arena_reset(&arena);
        if (rc == BELAY_OK)
            rc = txn_run(site->space, look_body, &x, &read_only, &arena, err);
        if (rc)
            return rc;
        move_cursor(&x);
        ask(&x);
        rc = lose(&x, &lost, err);
    } while (rc == BELAY_OK && x.seen == PAGE);
    if (rc == BELAY_OK)
        *out_lost = lost;
    return rc;
}
