#include <string.h>

#include "store/drivers/sqlite/impl.h"

/* A statement that is reset when the function that uses it returns: rows point into
 * memory of the statement, and a statement in the middle of its rows holds a lock. */
static void stmt_resetp(sqlite3_stmt **st)
{
    (void)sqlite3_reset(*st);
}

/* The code behind a statement that could not be prepared. */
static belay_rc unprepared(const struct belay_error *err)
{
    return err->code ? (belay_rc)err->code : BELAY_NO_MEMORY;
}

belay_rc row_from(sqlite3_stmt *st, const struct row_type *type, struct belay_arena *a,
                  const struct row **out, struct belay_error *err)
{
    struct row *row =
        arena_alloc(a, sizeof(*row) + type->n_columns * sizeof(struct value));

    if (!row)
        return err_no_memory(err, "a row");
    struct value *v = (struct value *)(row + 1);
    for (unsigned i = 0; i < type->n_columns; i++) {
        if (!column_value(st, (int)i + 1, type->columns[i].type, a, &v[i]))
            return err_no_memory(err, "a row");
    }
    *row = (struct row){ .type = type, .ver = sqlite3_column_int64(st, 0), .v = v };
    *out = row;
    return BELAY_OK;
}

static belay_rc read_row(struct conn *c, struct bytes ns, const struct row_ref *ref,
                         struct belay_arena *a, const struct row **out,
                         struct belay_error *err)
{
    *out = NULL;
    if (c->rows && !rowcache_get(c->rows, ns, ref, a, out))
        return err_no_memory(err, "a row");
    if (*out)
        return BELAY_OK;
    CLEANUP(stmt_resetp) sqlite3_stmt *st = conn_type(c, ref->type, TYPE_GET, err);
    if (!st)
        return unprepared(err);
    (void)bind_key(st, 1, ns, ref);
    int step = sqlite3_step(st);
    if (step != SQLITE_ROW)
        return step == SQLITE_DONE ? BELAY_OK : conn_error(c, "read a row", err);
    belay_rc rc = row_from(st, ref->type, a, out, err);
    if (rc == BELAY_OK && c->rows)
        rowcache_put(c->rows, ns, ref, (*out)->ver, (*out)->v);
    return rc;
}

/* --- ranks --- */

/* Hits of one index, in an array that grows in the arena. */
struct hit_list {
    struct hit *hit;
    size_t n, cap;
};

static bool add_hit(struct hit_list *l, struct hit hit, struct belay_arena *a)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        struct hit *more = arena_alloc(a, cap * sizeof(*more));
        if (!more)
            return false;
        if (l->n > 0)
            memcpy(more, l->hit, l->n * sizeof(*more));
        l->hit = more;
        l->cap = cap;
    }
    l->hit[l->n++] = hit;
    return true;
}

/* Binds the range of a scan in one index.  The statement starts at or after a place;
 * that the cursor itself is left out, and ties by index, is decided by scan_cmp. */
static void bind_scan(sqlite3_stmt *st, struct bytes ns, const struct scan *s,
                      struct bytes index)
{
    /* Above every text: no UTF-8 begins with this byte. */
    static const uint8_t top[] = { 0xff };
    int64_t start = s->descending ? s->max_rank : s->min_rank;
    struct bytes member = s->descending ? bytes_of(top, 1) : bytes_of(NULL, 0);

    if (s->after &&
        (s->descending ? s->after->rank <= start : s->after->rank >= start)) {
        start = s->after->rank;
        member = s->after->member;
    }
    bind_text(st, 1, ns);
    bind_text(st, 2, index);
    (void)sqlite3_bind_int64(st, 3, s->descending ? s->min_rank : s->max_rank);
    (void)sqlite3_bind_int64(st, 4, start);
    bind_text(st, 5, member);
    (void)sqlite3_bind_int64(st, 6, (int64_t)s->limit + 1); /* one may be the cursor */
}

static belay_rc scan_index(struct conn *c, struct bytes ns, const struct scan *s,
                           struct bytes index, struct hit_list *out,
                           struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(stmt_resetp)
    sqlite3_stmt *st =
        conn_plain(c, s->descending ? SQL_RANK_SCAN_DOWN : SQL_RANK_SCAN, err);
    struct bytes own_index;
    size_t n = 0;
    int step;

    if (!st)
        return unprepared(err);
    if (!arena_copy(a, index, &own_index))
        return err_no_memory(err, "a scan");
    bind_scan(st, ns, s, index);
    while ((step = sqlite3_step(st)) == SQLITE_ROW && n < s->limit) {
        struct hit hit = { .index = own_index, .rank = sqlite3_column_int64(st, 0) };
        if (!column_bytes(st, 1, a, &hit.member))
            return err_no_memory(err, "a scan");
        if (s->after && scan_cmp(s, hit.rank, hit.member, hit.index, s->after->rank,
                                 s->after->member, s->after->index) <= 0)
            continue;
        if (!add_hit(out, hit, a))
            return err_no_memory(err, "a scan");
        n++;
    }
    return step == SQLITE_ROW || step == SQLITE_DONE ? BELAY_OK
                                                     : conn_error(c, "scan", err);
}

/* Sorts by merging from below: each index's hits are in order already. */
static belay_rc sort_hits(const struct scan *s, struct hit_list *l,
                          struct belay_arena *a, struct belay_error *err)
{
    struct hit *from = l->hit, *to = arena_alloc(a, l->n * sizeof(*to));

    if (!to)
        return err_no_memory(err, "a scan");
    for (size_t width = 1; width < l->n; width *= 2) {
        for (size_t low = 0; low < l->n; low += 2 * width) {
            size_t mid = low + width < l->n ? low + width : l->n;
            size_t high = low + 2 * width < l->n ? low + 2 * width : l->n;
            size_t i = low, j = mid;
            for (size_t k = low; k < high; k++) {
                bool left = i < mid &&
                            (j >= high || scan_cmp(s, from[i].rank, from[i].member,
                                                   from[i].index, from[j].rank,
                                                   from[j].member, from[j].index) <= 0);
                to[k] = left ? from[i++] : from[j++];
            }
        }
        struct hit *done = to;
        to = from;
        from = done;
    }
    l->hit = from;
    return BELAY_OK;
}

static belay_rc fetch_rows(struct conn *c, struct bytes ns, const struct scan *s,
                           struct hit *hit, struct belay_arena *a,
                           struct belay_error *err)
{
    hit->rows = arena_zalloc(a, s->n_fetch, sizeof(*hit->rows));
    if (!hit->rows)
        return err_no_memory(err, "a scan");
    for (size_t i = 0; i < s->n_fetch; i++) {
        struct row_ref ref;
        belay_rc rc = fetch_ref(&ref, &s->fetch[i], hit->member, a, err);
        if (!rc)
            rc = read_row(c, ns, &ref, a, &hit->rows[i], err);
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

static belay_rc read_rank(struct conn *c, struct bytes ns, struct read *q,
                          struct belay_arena *a, struct belay_error *err)
{
    const struct scan *s = q->rank.scan;
    struct hit_list all = { .hit = NULL };
    belay_rc rc = BELAY_OK;

    /* An empty range or a turned-round cursor asks for nothing. */
    for (size_t i = 0; i < s->n_indexes && !rc; i++)
        rc = scan_index(c, ns, s, s->indexes[i], &all, a, err);
    if (!rc && s->n_indexes > 1)
        rc = sort_hits(s, &all, a, err);
    if (all.n > s->limit)
        all.n = s->limit;
    for (size_t i = 0; i < all.n && !rc; i++)
        rc = fetch_rows(c, ns, s, &all.hit[i], a, err);
    q->rank.out = (struct hits){ .hit = all.hit, .n = rc ? 0 : all.n };
    return rc;
}

/* --- logs, feeds, chunks --- */

static belay_rc read_log(struct conn *c, struct bytes ns, struct read *q,
                         struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(stmt_resetp) sqlite3_stmt *st = conn_plain(c, SQL_LOG_READ, err);
    struct log_entries out = { .n = 0 };
    size_t cap = 0;
    int step;

    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, q->log.stream);
    (void)sqlite3_bind_int64(st, 3, q->log.after);
    (void)sqlite3_bind_int64(st, 4, (int64_t)q->log.limit);
    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        if (out.n == cap) {
            cap = cap ? 2 * cap : 16;
            struct log_entry *more = arena_alloc(a, cap * sizeof(*more));
            if (!more)
                return err_no_memory(err, "log entries");
            if (out.n > 0)
                memcpy(more, out.entry, out.n * sizeof(*more));
            out.entry = more;
        }
        out.entry[out.n].seq = sqlite3_column_int64(st, 0);
        if (!column_bytes(st, 1, a, &out.entry[out.n].data))
            return err_no_memory(err, "log entries");
        out.n++;
    }
    q->log.out = out;
    return step == SQLITE_DONE ? BELAY_OK : conn_error(c, "read a log", err);
}

static belay_rc read_trimmed(struct conn *c, struct bytes ns, struct bytes feed,
                             int64_t *out, struct belay_error *err)
{
    CLEANUP(stmt_resetp) sqlite3_stmt *st = conn_plain(c, SQL_FEED_HEAD, err);

    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, feed);
    int step = sqlite3_step(st);
    *out = step == SQLITE_ROW ? sqlite3_column_int64(st, 1) : 0;
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? BELAY_OK
               : conn_error(c, "read a feed", err);
}

static belay_rc read_feed(struct conn *c, struct bytes ns, struct read *q,
                          struct belay_arena *a, struct belay_error *err)
{
    struct feed_entries out = { .n = 0 };
    belay_rc rc = read_trimmed(c, ns, q->feed.feed, &out.trimmed.major, err);
    if (rc)
        return rc;

    CLEANUP(stmt_resetp) sqlite3_stmt *st = conn_plain(c, SQL_FEED_READ, err);
    size_t cap = 0;
    int step;
    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, q->feed.feed);
    (void)sqlite3_bind_int64(st, 3, q->feed.after.major);
    (void)sqlite3_bind_int64(st, 4, (int64_t)q->feed.limit);
    while ((step = sqlite3_step(st)) == SQLITE_ROW) {
        if (out.n == cap) {
            cap = cap ? 2 * cap : 16;
            struct feed_entry *more = arena_alloc(a, cap * sizeof(*more));
            if (!more)
                return err_no_memory(err, "feed entries");
            if (out.n > 0)
                memcpy(more, out.entry, out.n * sizeof(*more));
            out.entry = more;
        }
        out.entry[out.n].pos =
            (struct feed_pos){ .major = sqlite3_column_int64(st, 0) };
        if (!column_bytes(st, 1, a, &out.entry[out.n].data))
            return err_no_memory(err, "feed entries");
        out.n++;
    }
    q->feed.out = out;
    return step == SQLITE_DONE ? BELAY_OK : conn_error(c, "read a feed", err);
}

static belay_rc read_chunk(struct conn *c, struct bytes ns, struct read *q,
                           struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(stmt_resetp) sqlite3_stmt *st = conn_plain(c, SQL_CHUNK_GET, err);

    if (!st)
        return unprepared(err);
    bind_text(st, 1, ns);
    bind_text(st, 2, q->chunk.upload);
    (void)sqlite3_bind_int64(st, 3, q->chunk.index);
    int step = sqlite3_step(st);
    q->chunk.found = step == SQLITE_ROW;
    q->chunk.out = bytes_of(NULL, 0);
    if (q->chunk.found && !column_bytes(st, 0, a, &q->chunk.out))
        return err_no_memory(err, "a chunk");
    return step == SQLITE_ROW || step == SQLITE_DONE
               ? BELAY_OK
               : conn_error(c, "read a chunk", err);
}

belay_rc conn_read(struct conn *c, struct bytes ns, struct read *reads, size_t n,
                   struct belay_arena *a, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        switch (reads[i].kind) {
        case READ_ROW:
            rc = read_row(c, ns, &reads[i].row.ref, a, &reads[i].row.out, err);
            break;
        case READ_RANK:
            rc = read_rank(c, ns, &reads[i], a, err);
            break;
        case READ_LOG:
            rc = read_log(c, ns, &reads[i], a, err);
            break;
        case READ_FEED:
            rc = read_feed(c, ns, &reads[i], a, err);
            break;
        case READ_CHUNK:
            rc = read_chunk(c, ns, &reads[i], a, err);
            break;
        }
    }
    return rc;
}
