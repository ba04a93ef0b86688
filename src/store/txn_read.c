#include <stdlib.h>
#include <string.h>

#include "store/txn_impl.h"

/* More in one answer than anybody should hold in memory: page instead. */
#define READ_LIMIT_MAX 65536

belay_rc txn_ask(struct txn *t, struct read *reads, size_t n)
{
    if (t->failed)
        return t->failed;
    t->n_reads++;
    belay_rc rc = driver_read(t->driver, t->attempt, reads, n, t->arena, &t->err);
    return rc ? txn_broken(t, rc) : BELAY_OK;
}

belay_rc txn_get(struct txn *t, const struct row_type *type, const struct value *key,
                 const struct row **out)
{
    struct read q = { .kind = READ_ROW };
    belay_rc rc = row_ref_make(&q.row.ref, type, key, t->arena, &t->err);
    if (rc)
        return rc;

    struct txn_row *r = txn_find_row(t, &q.row.ref);
    if (!r)
        r = txn_recall(t, &q.row.ref);
    if (!r) {
        rc = txn_ask(t, &q, 1);
        if (!rc)
            rc = txn_remember(t, &q.row.ref, q.row.out, &r);
        if (rc)
            return rc;
    }
    *out = r->cur;
    return BELAY_OK;
}

belay_rc txn_get_many(struct txn *t, const struct row_want *wants, size_t n,
                      const struct row **out)
{
    return txn_load(t, wants, n, out, NULL, 0, NULL);
}

belay_rc txn_peek(struct txn *t, const struct row_type *type, const struct value *key,
                  const struct row **out)
{
    struct read q = { .kind = READ_ROW };
    belay_rc rc = row_ref_make(&q.row.ref, type, key, t->arena, &t->err);
    if (rc)
        return rc;

    struct txn_row *r = txn_find_row(t, &q.row.ref);
    if (r) {
        *out = r->cur;
        return BELAY_OK;
    }
    rc = txn_ask(t, &q, 1);
    if (rc)
        return rc;
    const struct row *row = q.row.out;
    if (row && t->n_ops > 0) {
        row = txn_with_counters(t, &q.row.ref, row);
        if (!row)
            return txn_no_memory(t);
    }
    *out = row;
    return BELAY_OK;
}

/* --- ranks --- */

belay_rc txn_check_scan(struct txn *t, const struct scan *s)
{
    if (s->limit > READ_LIMIT_MAX)
        return err_reason(&t->err, BELAY_INVALID, "too_large",
                          "scan: a limit of %zu, at most %d are given at once",
                          s->limit, READ_LIMIT_MAX);
    for (size_t i = 0; i < s->n_indexes; i++) {
        belay_rc rc = name_check(s->indexes[i], "rank index", &t->err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < s->n_fetch; i++) {
        if (s->fetch[i].type->n_key == 0)
            return txn_misuse(t, "a fetch of a row type without a key");
    }
    return BELAY_OK;
}

/* Replaces the rows of a hit by what this body makes of them, and guards them, unless they
 * are only hints. */
static belay_rc guard_hit(struct txn *t, const struct scan *s, struct hit *hit)
{
    for (size_t i = 0; i < s->n_fetch; i++) {
        struct row_ref ref;
        struct txn_row *r;
        belay_rc rc = fetch_ref(&ref, &s->fetch[i], hit->member, t->arena, &t->err);
        if (!rc && ((s->hints >> i) & 1)) {
            r = txn_find_row(t, &ref);
            hit->rows[i] = r ? r->cur : hit->rows[i];
            continue;
        }
        if (!rc)
            rc = txn_remember(t, &ref, hit->rows[i], &r);
        if (rc)
            return txn_broken(t, rc);
        hit->rows[i] = r->cur;
    }
    return BELAY_OK;
}

static bool scan_covers(const struct scan *s, const struct txn_rank *own)
{
    for (size_t i = 0; i < s->n_indexes; i++) {
        if (bytes_eq(s->indexes[i], own->index))
            return true;
    }
    return false;
}

/* Whether the scan shows an entry that the body itself put there. */
static bool scan_shows(const struct scan *s, const struct txn_rank *own)
{
    if (!own->has || own->rank < s->min_rank || own->rank > s->max_rank)
        return false;
    return !s->after || scan_cmp(s, own->rank, own->member, own->index, s->after->rank,
                                 s->after->member, s->after->index) > 0;
}

/* The rows of an entry that only this body knows. */
static belay_rc fetch_own(struct txn *t, const struct scan *s, struct hit *hit)
{
    hit->rows = arena_zalloc(t->arena, s->n_fetch, sizeof(*hit->rows));
    if (!hit->rows)
        return txn_no_memory(t);
    for (size_t i = 0; i < s->n_fetch; i++) {
        struct row_ref ref;
        belay_rc rc = fetch_ref(&ref, &s->fetch[i], hit->member, t->arena, &t->err);
        if (!rc)
            rc = txn_get(t, ref.type, ref.key, &hit->rows[i]);
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

/* Puts `hit` where it belongs among the first n, which are in order. */
static void insert_hit(const struct scan *s, struct hit *hits, size_t n, struct hit hit)
{
    while (n > 0 && scan_cmp(s, hits[n - 1].rank, hits[n - 1].member, hits[n - 1].index,
                             hit.rank, hit.member, hit.index) > 0) {
        hits[n] = hits[n - 1];
        n--;
    }
    hits[n] = hit;
}

/* T3 for scans: what the store has, less what this body moved or removed, plus what it
 * moved or added. */
static belay_rc merge_own(struct txn *t, const struct scan *s, struct hits *io)
{
    struct hit *all = arena_zalloc(t->arena, io->n + t->ranks.n, sizeof(*all));
    size_t n = 0;

    if (!all)
        return txn_no_memory(t);
    for (size_t i = 0; i < io->n; i++) {
        struct txn_rank *own;
        belay_rc rc = txn_find_rank(t, io->hit[i].index, io->hit[i].member, &own);
        if (rc)
            return rc;
        if (!own)
            all[n++] = io->hit[i];
    }
    for (struct entry *e = t->ranks.first; e; e = e->next) {
        struct txn_rank *own = (struct txn_rank *)e;
        if (!scan_covers(s, own) || !scan_shows(s, own))
            continue;
        struct hit hit = { .index = own->index,
                           .member = own->member,
                           .rank = own->rank };
        belay_rc rc = fetch_own(t, s, &hit);
        if (rc)
            return rc;
        insert_hit(s, all, n++, hit);
    }
    *io = (struct hits){ .hit = all, .n = n < s->limit ? n : s->limit };
    return BELAY_OK;
}

struct scan txn_widened(const struct txn *t, const struct scan *scan)
{
    struct scan wider = *scan;

    for (const struct entry *e = t->ranks.first; e; e = e->next) {
        const struct txn_rank *own = (const struct txn_rank *)e;
        wider.limit += own->had && scan_covers(scan, own);
    }
    return wider;
}

belay_rc txn_take_hits(struct txn *t, const struct scan *scan, struct hits *io)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < io->n && !rc; i++)
        rc = guard_hit(t, scan, &io->hit[i]);
    if (!rc && t->ranks.n > 0)
        rc = merge_own(t, scan, io);
    return rc;
}

static belay_rc scan_or_pick(struct txn *t, const struct scan *scan, bool hold,
                             struct hits *out)
{
    belay_rc rc = txn_check_scan(t, scan);
    if (rc)
        return rc;
    *out = (struct hits){ .hit = NULL };
    if (scan_shows_nothing(scan))
        return t->failed;

    struct scan wider = txn_widened(t, scan);
    struct read q = { .kind = READ_RANK, .rank = { .scan = &wider, .hold = hold } };
    rc = txn_ask(t, &q, 1);
    if (!rc)
        rc = txn_take_hits(t, scan, &q.rank.out);
    if (!rc)
        *out = q.rank.out;
    return rc;
}

belay_rc txn_scan(struct txn *t, const struct scan *scan, struct hits *out)
{
    return scan_or_pick(t, scan, false, out);
}

belay_rc txn_pick(struct txn *t, const struct scan *scan, struct hits *out)
{
    return scan_or_pick(t, scan, true, out);
}

/* --- logs, feeds, chunks --- */

static belay_rc check_limit(struct txn *t, size_t limit)
{
    if (limit <= READ_LIMIT_MAX)
        return BELAY_OK;
    return err_reason(&t->err, BELAY_INVALID, "too_large",
                      "read: a limit of %zu, at most %d are given at once", limit,
                      READ_LIMIT_MAX);
}

/* Whether the body trimmed entry `seq` of the stream after `since` (NULL: at any time). */
static bool is_trimmed(const struct txn *t, struct bytes stream, int64_t seq,
                       const struct txn_op *since)
{
    for (const struct txn_op *op = since ? since->next : t->ops; op; op = op->next) {
        if (op->effect.kind == EFFECT_LOG_TRIM && op->effect.log.seq >= seq &&
            bytes_eq(op->effect.log.stream, stream))
            return true;
    }
    return false;
}

/* T3 for logs: less what the body trimmed, then what it appended. */
static belay_rc merge_log(struct txn *t, const struct read *q, struct log_entries *out)
{
    struct log_entry *all =
        arena_zalloc(t->arena, q->log.out.n + t->n_ops, sizeof(*all));
    struct bytes stream = q->log.stream;
    size_t n = 0;

    if (!all)
        return txn_no_memory(t);
    for (size_t i = 0; i < q->log.out.n; i++) {
        if (!is_trimmed(t, stream, q->log.out.entry[i].seq, NULL))
            all[n++] = q->log.out.entry[i];
    }
    for (struct txn_op *op = t->ops; op; op = op->next) {
        const struct effect *e = &op->effect;
        if (e->kind == EFFECT_LOG_APPEND && bytes_eq(e->log.stream, stream) &&
            e->log.seq > q->log.after && !is_trimmed(t, stream, e->log.seq, op))
            all[n++] = (struct log_entry){ .seq = e->log.seq, .data = e->log.data };
    }
    *out =
        (struct log_entries){ .entry = all, .n = n < q->log.limit ? n : q->log.limit };
    return BELAY_OK;
}

/* How far the body has trimmed what is stored of a stream. */
static int64_t own_trim(const struct txn *t, struct bytes stream)
{
    int64_t upto = 0;

    for (const struct txn_op *op = t->ops; op; op = op->next) {
        if (op->effect.kind == EFFECT_LOG_TRIM &&
            bytes_eq(op->effect.log.stream, stream) && op->effect.log.seq > upto)
            upto = op->effect.log.seq;
    }
    return upto;
}

belay_rc txn_log_read(struct txn *t, struct bytes stream, int64_t after, size_t limit,
                      struct log_entries *out)
{
    int64_t trimmed = own_trim(t, stream);
    struct read q = { .kind = READ_LOG,
                      .log = { .stream = stream,
                               .after = after > trimmed ? after : trimmed,
                               .limit = limit } };
    belay_rc rc = name_check(stream, "log stream", &t->err);
    if (!rc)
        rc = check_limit(t, limit);
    if (!rc)
        rc = txn_ask(t, &q, 1);
    if (rc)
        return rc;
    q.log.after = after; /* of the store nothing trimmed was asked for */
    if (t->n_ops > 0)
        return merge_log(t, &q, out);
    *out = q.log.out;
    return BELAY_OK;
}

belay_rc txn_feed_read(struct txn *t, struct bytes feed, struct feed_pos after,
                       size_t limit, struct feed_entries *out)
{
    struct read q = { .kind = READ_FEED,
                      .feed = { .feed = feed, .after = after, .limit = limit } };
    belay_rc rc = name_check(feed, "feed", &t->err);
    if (!rc)
        rc = check_limit(t, limit);
    if (!rc)
        rc = txn_ask(t, &q, 1);
    if (!rc)
        *out = q.feed.out;
    return rc;
}

belay_rc txn_chunk_get(struct txn *t, struct bytes upload, int64_t index, bool *found,
                       struct bytes *out)
{
    struct read q = { .kind = READ_CHUNK,
                      .chunk = { .upload = upload, .index = index } };
    const struct effect *own = NULL;
    belay_rc rc = name_check(upload, "upload", &t->err);
    if (rc)
        return rc;

    for (struct txn_op *op = t->ops; op; op = op->next) {
        const struct effect *e = &op->effect;
        if ((e->kind == EFFECT_CHUNK_PUT || e->kind == EFFECT_CHUNK_DROP) &&
            e->chunk.index == index && bytes_eq(e->chunk.upload, upload))
            own = e; /* the last one counts */
    }
    if (own) {
        *found = own->kind == EFFECT_CHUNK_PUT;
        *out = own->chunk.data;
        return t->failed;
    }
    rc = txn_ask(t, &q, 1);
    if (!rc) {
        *found = q.chunk.found;
        *out = q.chunk.out;
    }
    return rc;
}
