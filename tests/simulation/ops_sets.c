/* What actors do with ranks, logs, feeds, chunks and wake-ups. */
#include <stdio.h>

#include "execs.h"
#include "nouns.h"
#include "ops.h"
#include "procs.h"

/* --- jobs: a row that says where in which index it stands --- */

#define JOBS 5
static const char *const ready[] = { "ready:a", "ready:b" };
#define OWNED "owned"

static bool stands_there(const struct row *row, const struct hit *hit)
{
    return row && bytes_eq(row_bytes(row, THING_TEXT), hit->index) &&
           row_i64(row, THING_N, -1) == hit->rank;
}

/* Moves a job from where it stands (hit) to another index, or to another rank. */
static belay_rc move_job(struct run *r, const struct hit *hit, const char *to,
                         int64_t rank)
{
    struct value id = value_text(hit->member);
    struct change changes[] = { { THING_TEXT, value_str(to) },
                                { THING_N, value_i64(rank) } };
    char from[16];

    (void)snprintf(from, sizeof(from), "%.*s", (int)hit->index.len,
                   (const char *)hit->index.ptr);
    belay_rc rc = r_put(r, &row_thing, &id, changes, 2);
    if (!rc && bytes_eq(hit->index, bytes_str(to)))
        return r_rank(r, to, hit->member, true, hit->rank, true, rank);
    if (!rc)
        rc = r_rank(r, from, hit->member, true, hit->rank, false, 0);
    return rc ? rc : r_rank(r, to, hit->member, false, 0, true, rank);
}

static belay_rc produce_body(struct run *r)
{
    struct value id = thing_id('j', pick_of(r->op, 1, JOBS));
    const char *index = ready[pick_of(r->op, 2, 2)];
    int64_t rank = pick_of(r->op, 3, 3);
    const struct row *row = NULL;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (rc || row)
        return rc ? rc : txn_fail(r->t, BELAY_WRONG_STATE, "", "there already");
    const struct value v[THING_COLUMNS] = {
        [THING_ID] = id, [THING_N] = value_i64(rank), [THING_TEXT] = value_str(index)
    };
    rc = r_insert(r, &row_thing, v);
    if (!rc)
        rc = r_rank(r, index, id.b, false, 0, true, rank);
    if (!rc && pick_of(r->op, 4, 4) == 0) {
        struct change change = { THING_N, value_i64(rank + 1) };
        rc = r_rank(r, index, id.b, true, rank, true, rank + 1);
        if (!rc)
            rc = r_put(r, &row_thing, &id, &change, 1);
    }
    return rc;
}

void op_produce(struct actor *a)
{
    (void)run_call(a, op_space(a), produce_body, NULL, NULL);
}

/* Takes jobs: each hit is re-read under guard before it is owned. */
static belay_rc claim(struct run *r, bool hold)
{
    struct bytes indexes[] = { bytes_str(ready[pick_of(r->op, 1, 2)]),
                               bytes_str(ready[pick_of(r->op, 1, 2) ^ 1U]) };
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = indexes,
                         .n_indexes = 1 + pick_of(r->op, 2, 2),
                         .min_rank = pick_of(r->op, 3, 5) == 0,
                         .max_rank = 10,
                         .descending = pick_of(r->op, 4, 4) == 0,
                         .limit = 1 + pick_of(r->op, 5, 3),
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;
    belay_rc rc = r_scan(r, &scan, hold, &hits);
    size_t taken = 0;

    for (size_t i = 0; i < hits.n && !rc; i++) {
        if (!stands_there(hits.hit[i].rows[0], &hits.hit[i])) {
            violation(r->s, "read", "a scan and the row fetched with it disagree");
            return BELAY_OK;
        }
        rc = move_job(r, &hits.hit[i], OWNED, (int64_t)(r->op->r >> 60));
        taken++;
    }
    if (!rc && taken == 0)
        return txn_fail(r->t, BELAY_NOT_FOUND, "", "nothing is ready");
    if (rc || pick_of(r->op, 6, 3) > 0)
        return rc;

    /* The same once more, with the index where they are now (T3). */
    struct bytes both[] = { indexes[0], bytes_str(OWNED) };
    struct scan again = { .indexes = both,
                          .n_indexes = 2,
                          .max_rank = 100,
                          .limit = 1 + pick_of(r->op, 7, 4),
                          .fetch = &fetch,
                          .n_fetch = pick_of(r->op, 8, 2) };
    struct scan_cursor after = { hits.hit[0].rank, hits.hit[0].member,
                                 hits.hit[0].index };
    if (pick_of(r->op, 9, 3) == 0)
        again.after = &after;
    return r_scan(r, &again, false, &hits);
}

static belay_rc claim_pick_body(struct run *r)
{
    return claim(r, true);
}

static belay_rc claim_scan_body(struct run *r)
{
    return claim(r, false);
}

void op_claim_pick(struct actor *a)
{
    (void)run_call(a, op_space(a), claim_pick_body, NULL, NULL);
}

void op_claim_scan(struct actor *a)
{
    (void)run_call(a, op_space(a), claim_scan_body, NULL, NULL);
}

static belay_rc finish_body(struct run *r)
{
    struct bytes index = bytes_str(OWNED);
    struct fetch fetch = { .type = &row_thing };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .max_rank = 100,
                         .limit = 1,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;
    belay_rc rc = r_scan(r, &scan, false, &hits);

    if (rc || hits.n == 0)
        return rc;
    struct hit hit = hits.hit[0];
    if (pick_of(r->op, 1, 2))
        return move_job(r, &hit, ready[pick_of(r->op, 2, 2)], pick_of(r->op, 3, 3));
    struct value id = value_text(hit.member);
    rc = r_rank(r, OWNED, hit.member, true, hit.rank, false, 0);
    return rc ? rc : r_delete(r, &row_thing, &id);
}

void op_finish(struct actor *a)
{
    (void)run_call(a, op_space(a), finish_body, NULL, NULL);
}

/* Pages through both indexes by a cursor, and moves the last one seen. */
static belay_rc rerank_body(struct run *r)
{
    struct bytes indexes[] = { bytes_str(ready[0]), bytes_str(ready[1]) };
    struct scan_cursor after;
    struct scan scan = { .indexes = indexes,
                         .n_indexes = 2,
                         .max_rank = 10,
                         .descending = pick_of(r->op, 1, 2),
                         .limit = 1 };
    struct hits hits;
    struct hit hit;
    belay_rc rc = r_scan(r, &scan, false, &hits);

    if (rc || hits.n == 0)
        return rc;
    for (unsigned page = 0; page < 2 && !rc && hits.n > 0; page++) {
        hit = hits.hit[hits.n - 1];
        after = (struct scan_cursor){ hit.rank, hit.member, hit.index };
        scan.after = &after;
        scan.limit = 2;
        rc = r_scan(r, &scan, false, &hits);
    }
    struct value id = value_text(hit.member);
    const struct row *row = NULL;
    if (!rc)
        rc = r_get(r, &row_thing, &id, &row);
    if (rc || !stands_there(row, &hit)) /* a hint, and gone stale */
        return rc;
    char index[16];
    (void)snprintf(index, sizeof(index), "%.*s", (int)hit.index.len,
                   (const char *)hit.index.ptr);
    return move_job(r, &hit, index, pick_of(r->op, 2, 3));
}

void op_rerank(struct actor *a)
{
    (void)run_call(a, op_space(a), rerank_body, NULL, NULL);
}

/* At the very end: whatever is ready can be claimed, whoever held it. */
static belay_rc audit_body(struct run *r)
{
    struct bytes indexes[] = { bytes_str(ready[0]), bytes_str(ready[1]) };
    struct scan scan = {
        .indexes = indexes, .n_indexes = 2, .max_rank = 1000, .limit = WANTS_MAX
    };
    size_t want = 0;
    struct hits hits;

    for (size_t i = 0; i < r->s->model.n_entries; i++) {
        const struct mentry *e = &r->s->model.entries[i];
        want += e->kind == M_RANK && e->ns == r->rec->ns && e->name.len > 5 &&
                e->name.text[0] == 'r';
    }
    belay_rc rc = r_scan(r, &scan, true, &hits);
    if (!rc && hits.n != want)
        violation(r->s, "liveness", "%zu of %zu ready members can be claimed", hits.n,
                  want);
    return rc;
}

void op_audit(struct actor *a)
{
    if (a->sim->nouns)
        nouns_audit(a);
    if (a->sim->execs)
        execs_audit(a);
    if (a->sim->procs)
        procs_audit(a);
    if (is_work(a->sim->setup))
        return;
    belay_rc rc = run_call(a, a->op->number, audit_body, NULL, NULL);

    if (rc)
        violation(a->sim, "liveness", "without faults the audit answered %s",
                  belay_error_info((int)rc)->name);
}

/* --- logs: the head is a row's number --- */

static const char *const streams[] = { "log0", "log1" };

/* Without a head: refused as `corrupt` unless it happens to be the next entry. */
static belay_rc blind_append_body(struct run *r)
{
    struct bytes stream = bytes_str("blind");
    int64_t seq = 1 + pick_of(r->op, 6, 4);
    belay_rc rc = r_log_append(r, stream, seq, bytes_str("blind"));

    if (!rc && pick_of(r->op, 7, 2))
        rc = r_log_append(r, stream, seq + 1, bytes_str("next"));
    return rc;
}

static belay_rc log_append_body(struct run *r)
{
    unsigned which = pick_of(r->op, 1, 2);
    struct value id = thing_id('l', which);
    struct bytes stream = bytes_str(streams[which]);
    const struct row *row = NULL;
    struct log_entries entries;
    belay_rc rc = r_get(r, &row_thing, &id, &row);
    int64_t head = row ? row_i64(row, THING_N, 0) : 0;
    unsigned n = 1 + pick_of(r->op, 2, 3);
    bool look_first = pick_of(r->op, 3, 4) == 0;

    if (!rc && look_first)
        rc = r_log_read(r, stream, 0, 4, &entries);
    for (unsigned i = 0; i < n && !rc; i++)
        rc = r_log_append(r, stream, ++head, bytes_of(&r->op->r, 1 + i));
    if (!rc)
        rc = set_thing(r, id, row, head);
    if (!rc && pick_of(r->op, 4, 3) == 0)
        rc = r_log_read(r, stream, head - 2, 5, &entries);
    return rc;
}

void op_log_append(struct actor *a)
{
    run_body *body = pick_of(a->op, 5, 5) ? log_append_body : blind_append_body;

    (void)run_call(a, op_space(a), body, NULL, NULL);
}

static belay_rc log_trim_body(struct run *r)
{
    unsigned which = pick_of(r->op, 1, 2);
    struct value id = thing_id('l', which);
    struct bytes stream = bytes_str(streams[which]);
    const struct row *row = NULL;
    struct log_entries entries;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (rc || !row)
        return rc;
    int64_t head = row_i64(row, THING_N, 0);
    rc = r_log_trim(r, stream, head - pick_of(r->op, 2, 3));
    if (!rc && pick_of(r->op, 3, 2)) {
        rc = r_log_append(r, stream, head + 1, bytes_str("after"));
        if (!rc)
            rc = set_thing(r, id, row, head + 1);
    }
    if (!rc && pick_of(r->op, 4, 2))
        rc = r_log_read(r, stream, 0, 6, &entries);
    return rc;
}

void op_log_trim(struct actor *a)
{
    (void)run_call(a, op_space(a), log_trim_body, NULL, NULL);
}

/* --- feeds --- */

static const char *const feeds[] = { "f0", "f1" };

struct fed {
    struct txn_pos first, second;
};

static belay_rc feed_append_body(struct run *r)
{
    struct fed *out = r->arg;
    struct bytes feed = bytes_str(feeds[pick_of(r->op, 1, 2)]);
    struct bytes other = bytes_str(feeds[pick_of(r->op, 2, 2)]);
    struct value id = thing_id('t', 0);
    const struct row *row = NULL;
    belay_rc rc = BELAY_OK;

    *out = (struct fed){ .first.known = false };
    if (pick_of(r->op, 3, 2))
        rc = r_get(r, &row_thing, &id, &row);
    if (!rc)
        rc = r_feed_append(r, feed, bytes_of(&r->op->r, 8), &out->first);
    if (!rc && pick_of(r->op, 4, 2))
        rc = r_feed_append(r, other, bytes_of(&r->op->r, 5), &out->second);
    return rc;
}

void op_feed_append(struct actor *a)
{
    struct fed out;
    bool both = pick_of(a->op, 1, 2) == pick_of(a->op, 2, 2) && pick_of(a->op, 4, 2);
    belay_rc rc = run_call(a, op_space(a), feed_append_body, &out, NULL);

    if (!rc && both && out.first.known &&
        feed_pos_cmp(out.first.pos, out.second.pos) >= 0)
        violation(a->sim, "feed", "two entries of one commit are out of order");
}

struct tail {
    unsigned feed;
    struct feed_pos after, last;
};

static belay_rc feed_tail_body(struct run *r)
{
    struct tail *t = r->arg;
    struct feed_entries entries = { .n = 0 };
    belay_rc rc = r_feed_read(r, bytes_str(feeds[t->feed]), t->after,
                              1 + pick_of(r->op, 2, 3), &entries);

    t->last = !rc && entries.n > 0 ? entries.entry[entries.n - 1].pos : t->after;
    return rc;
}

void op_feed_tail(struct actor *a)
{
    unsigned space = op_space(a);
    struct tail t = { .feed = pick_of(a->op, 1, 2) };

    t.after = a->cursor[t.feed][space];
    if (!run_call(a, space, feed_tail_body, &t, NULL))
        a->cursor[t.feed][space] = t.last;
}

static belay_rc feed_trim_body(struct run *r)
{
    struct bytes feed = bytes_str(feeds[pick_of(r->op, 1, 2)]);
    struct feed_entries entries = { .n = 0 };
    belay_rc rc = r_feed_read(r, feed, (struct feed_pos){ .major = 0 },
                              1 + pick_of(r->op, 2, 4), &entries);

    if (rc || entries.n == 0)
        return rc;
    struct feed_pos upto = entries.entry[entries.n - 1].pos;
    upto.major += pick_of(r->op, 3, 4) == 0 ? 100 : 0; /* beyond the end, too */
    return r_feed_trim(r, feed, upto);
}

void op_feed_trim(struct actor *a)
{
    (void)run_call(a, op_space(a), feed_trim_body, NULL, NULL);
}
