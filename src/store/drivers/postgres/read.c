/* Questions, in one round trip and of one snapshot (rule 1). */
#include <stdio.h>

#include "store/drivers/postgres/impl.h"

/* One statement, and the questions it answers. */
struct asked {
    struct pg_call *call;
    size_t *reads; /* of rows: the questions, by the ordinal of the answer */
    size_t n;
};

struct asking {
    struct pg_store *s;
    struct pg_pipe pipe;
    struct bytes ns;
    struct read *reads;
    size_t n_reads;
    struct asked *asked;
    size_t n_asked;
    bool *done; /* questions that are in a statement */
};

/* --- rows --- */

static const struct pg_sql *row_sql(struct pg_store *s, const struct row_type *type,
                                    bool many)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, many ? "SELECT k.i, t.ver, " : "SELECT 1::int8, t.ver, ");
    pg_columns(type, type->n_columns, "t.", &text);
    buf_append_str(&text, " FROM ");
    if (many) {
        pg_unnest_keys(type, 2, &text);
        buf_append_str(&text, ") WITH ORDINALITY AS k(");
        pg_columns(type, type->n_key, "", &text);
        buf_append_str(&text, ", i)");
        pg_find_each(s, type, "k", "x.*", "", &text);
    } else {
        pg_table(s, type->name, &text);
        buf_append_str(&text, " t WHERE ");
        pg_where_key(type, 2, &text);
    }
    return pg_sql_of(s, &text);
}

/* The keys of a group, part by part. */
static void add_keys(struct asking *q, const struct asked *group, struct pg_call *call,
                     const struct row_type *type)
{
    struct value *v = arena_zalloc(q->pipe.arena, group->n, sizeof(*v));

    if (!v) {
        q->pipe.no_memory = true;
        return;
    }
    for (unsigned part = 0; part < type->n_key; part++) {
        for (size_t i = 0; i < group->n; i++)
            v[i] = q->reads[group->reads[i]].row.ref.key[part];
        pg_arg_array(&q->pipe, call, type->columns[part].type, v, group->n);
    }
}

/* All questions for rows of the same type as question `first`. */
static void ask_rows(struct asking *q, size_t first)
{
    const struct row_type *type = q->reads[first].row.ref.type;
    struct asked *group = &q->asked[q->n_asked++];

    group->reads = arena_zalloc(q->pipe.arena, q->n_reads - first, sizeof(size_t));
    if (!group->reads) {
        q->pipe.no_memory = true;
        return;
    }
    for (size_t i = first; i < q->n_reads; i++) {
        if (q->reads[i].kind != READ_ROW || q->reads[i].row.ref.type != type)
            continue;
        q->reads[i].row.out = NULL;
        q->done[i] = true;
        group->reads[group->n++] = i;
    }
    bool many = group->n > 1 && type->n_key > 0;
    group->call = pg_add(&q->pipe, row_sql(q->s, type, many), 1U + type->n_key);
    if (!many) {
        pg_arg_key(&q->pipe, group->call, q->ns, &q->reads[first].row.ref);
        return;
    }
    pg_arg_bytes(&q->pipe, group->call, q->ns);
    add_keys(q, group, group->call, type);
}

static bool take_rows(struct asking *q, const struct asked *group,
                      struct belay_arena *a)
{
    const struct row_type *type = q->reads[group->reads[0]].row.ref.type;
    const PGresult *r = group->call->result;

    for (int i = 0; i < PQntuples(r); i++) {
        size_t at = (size_t)pg_i64(r, i, 0) - 1;
        const struct row *row = NULL;
        if (at >= group->n)
            continue;
        if (!pg_row(r, i, 1, type, a, &row))
            return false;
        q->reads[group->reads[at]].row.out = row;
    }
    /* The same row may have been asked for twice, where the type has no key. */
    for (size_t i = 1; i < group->n && type->n_key == 0; i++)
        q->reads[group->reads[i]].row.out = q->reads[group->reads[0]].row.out;
    return true;
}

/* --- ranks --- */

/* The members of each index, at most `limit`, from the cursor on.
 * $1 ns, $2 indexes, $3 min, $4 max, $5 limit, $6 rank, $7 member, $8 index. */
static void rank_source(const struct pg_store *s, const struct scan *scan,
                        const char *limit, const char *lock, struct buf *out)
{
    const char *order = scan->descending ? "DESC" : "ASC";
    const char *cmp = scan->descending ? "<" : ">";
    bool one = scan->n_indexes == 1;

    if (!one)
        buf_append_str(out, "SELECT r.idx, r.rank, r.member FROM unnest($2::text[]) AS"
                            " i(idx) CROSS JOIN LATERAL (");
    buf_append_str(out, "SELECT x.idx, x.rank, x.member FROM ");
    pg_table(s, "rank", out);
    buf_printf(out,
               " x WHERE x.ns = $1 AND x.idx = %s AND x.rank >= $3::int8"
               " AND x.rank <= $4::int8",
               one ? "$2::text" : "i.idx");
    if (scan->after)
        buf_printf(out,
                   " AND (x.rank, x.member) %s= ($6::int8, $7::text)"
                   " AND (x.rank, x.member, x.idx) %s ($6::int8, $7::text, $8::text)",
                   cmp, cmp);
    buf_printf(out, " ORDER BY x.rank %s, x.member %s LIMIT %s%s%s", order, order,
               limit, lock, one ? "" : ") r");
}

/* Members that are hidden from other holders: exactly those that are given (L8).  Of
 * one index they are locked where they are found.  Of several, more than enough are
 * looked at in each without a lock, and the first of all that nobody holds are locked. */
static void pick_source(const struct pg_store *s, const struct scan *scan,
                        const char *order, struct buf *out)
{
    if (scan->n_indexes == 1) {
        rank_source(s, scan, "$5::int8", " FOR UPDATE SKIP LOCKED", out);
        return;
    }
    buf_append_str(out, "SELECT y.idx, y.rank, y.member FROM (");
    rank_source(s, scan, "4 * $5::int8 + 64", "", out);
    buf_append_str(out, ") c JOIN ");
    pg_table(s, "rank", out);
    buf_printf(out,
               " y ON y.ns = $1 AND y.idx = c.idx AND y.member = c.member AND y.rank ="
               " c.rank ORDER BY y.rank %s, y.member %s, y.idx %s LIMIT $5::int8"
               " FOR UPDATE OF y SKIP LOCKED",
               order, order, order);
}

/* A member as a number, or NULL when it is none: check_members says so. */
static const char member_i64[] =
    "CASE WHEN p.member ~ '^(0|-?[1-9][0-9]{0,18})$' AND p.member::numeric BETWEEN"
    " -9223372036854775808 AND 9223372036854775807 THEN p.member::int8 END";

/* The rows that members name: key = prefix..., member.  The prefixes' parameters begin
 * at *next. */
static void rank_fetches(const struct pg_store *s, const struct scan *scan,
                         unsigned *next, struct buf *out)
{
    for (size_t i = 0; i < scan->n_fetch; i++) {
        const struct row_type *type = scan->fetch[i].type;
        unsigned last = type->n_key - 1U;

        buf_append_str(out, " LEFT JOIN ");
        pg_table(s, type->name, out);
        buf_printf(out, " t%zu ON t%zu.ns = $1", i, i);
        for (unsigned k = 0; k < last; k++)
            buf_printf(out, " AND t%zu.\"%s\" = $%u::%s", i, type->columns[k].name,
                       (*next)++, pg_type_name(type->columns[k].type));
        buf_printf(out, " AND t%zu.\"%s\" = %s", i, type->columns[last].name,
                   type->columns[last].type == VALUE_I64 ? member_i64 : "p.member");
    }
}

static const struct pg_sql *rank_sql(struct pg_store *s, const struct scan *scan,
                                     bool hold)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const char *order = scan->descending ? "DESC" : "ASC";
    unsigned next = scan->after ? 9 : 6;

    /* Materialised, so that the limit counts once however the rest is joined (L8).  One
     * index gives its members in order. */
    bool one = scan->n_indexes == 1;
    buf_printf(&text, "WITH %s AS MATERIALIZED (", one ? "p" : "all_members");
    if (hold)
        pick_source(s, scan, order, &text);
    else
        rank_source(s, scan, "$5::int8", "", &text);
    buf_append_char(&text, ')');
    if (!one)
        buf_printf(&text,
                   ", p AS MATERIALIZED (SELECT * FROM all_members ORDER BY rank %s,"
                   " member %s, idx %s LIMIT $5::int8)",
                   order, order, order);
    buf_append_str(&text, " SELECT p.idx, p.rank, p.member");
    for (size_t i = 0; i < scan->n_fetch; i++) {
        char prefix[32];
        (void)snprintf(prefix, sizeof(prefix), "t%zu.", i);
        buf_printf(&text, ", t%zu.ver, ", i);
        pg_columns(scan->fetch[i].type, scan->fetch[i].type->n_columns, prefix, &text);
    }
    buf_append_str(&text, " FROM p");
    rank_fetches(s, scan, &next, &text);
    buf_printf(&text, " ORDER BY p.rank %s, p.member %s, p.idx %s", order, order,
               order);
    return pg_sql_of(s, &text);
}

static void ask_rank(struct asking *q, size_t at)
{
    const struct scan *scan = q->reads[at].rank.scan;
    struct asked *one = &q->asked[q->n_asked++];
    struct pg_pipe *p = &q->pipe;
    struct value *v = arena_zalloc(p->arena, scan->n_indexes, sizeof(*v));

    if (!v) {
        p->no_memory = true;
        return;
    }
    for (size_t i = 0; i < scan->n_indexes; i++)
        v[i] = value_text(scan->indexes[i]);
    one->call = pg_add(p, rank_sql(q->s, scan, q->reads[at].rank.hold),
                       8 + SCHEMA_KEY_MAX * (unsigned)scan->n_fetch);
    pg_arg_bytes(p, one->call, q->ns);
    if (scan->n_indexes == 1)
        pg_arg_bytes(p, one->call, scan->indexes[0]);
    else
        pg_arg_array(p, one->call, VALUE_TEXT, v, scan->n_indexes);
    pg_arg_i64(p, one->call, scan->min_rank);
    pg_arg_i64(p, one->call, scan->max_rank);
    pg_arg_i64(p, one->call, (int64_t)scan->limit);
    if (scan->after) {
        pg_arg_i64(p, one->call, scan->after->rank);
        pg_arg_bytes(p, one->call, scan->after->member);
        pg_arg_bytes(p, one->call, scan->after->index);
    }
    for (size_t i = 0; i < scan->n_fetch; i++) {
        for (unsigned k = 0; k + 1U < scan->fetch[i].type->n_key; k++)
            pg_arg_value(p, one->call, &scan->fetch[i].prefix[k]);
    }
}

static bool take_hit(const struct scan *scan, const PGresult *r, int i, struct hit *hit,
                     struct belay_arena *a)
{
    int column = 3;

    hit->rank = pg_i64(r, i, 1);
    hit->rows = arena_zalloc(a, scan->n_fetch, sizeof(*hit->rows));
    if (!hit->rows || !pg_bytes(r, i, 0, a, &hit->index) ||
        !pg_bytes(r, i, 2, a, &hit->member))
        return false;
    for (size_t k = 0; k < scan->n_fetch; k++) {
        if (!pg_row(r, i, column, scan->fetch[k].type, a, &hit->rows[k]))
            return false;
        column += 1 + scan->fetch[k].type->n_columns;
    }
    return true;
}

static bool take_hits(struct read *read, const PGresult *r, struct belay_arena *a)
{
    size_t n = (size_t)PQntuples(r);

    read->rank.out = (struct hits){ .hit = arena_zalloc(a, n, sizeof(struct hit)) };
    if (!read->rank.out.hit)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!take_hit(read->rank.scan, r, (int)i, &read->rank.out.hit[i], a))
            return false;
        read->rank.out.n++;
    }
    return true;
}

/* A member that cannot be a key is damage, and not a row that is not there. */
static belay_rc check_members(const struct read *read, struct belay_arena *a,
                              struct belay_error *err)
{
    const struct scan *scan = read->rank.scan;
    struct row_ref ref;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < read->rank.out.n; i++) {
        for (size_t k = 0; k < scan->n_fetch && rc == BELAY_OK; k++) {
            const struct row_type *type = scan->fetch[k].type;
            if (type->columns[type->n_key - 1].type == VALUE_I64)
                rc = fetch_ref(&ref, &scan->fetch[k], read->rank.out.hit[i].member, a,
                               err);
        }
    }
    return rc;
}

/* --- logs, feeds, chunks --- */

static const struct pg_sql *plain_sql(struct pg_store *s, const char *before,
                                      const char *table, const char *after)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, before);
    pg_table(s, table, &text);
    buf_append_str(&text, after);
    return pg_sql_of(s, &text);
}

static void ask_log(struct asking *q, const struct read *read)
{
    struct pg_pipe *p = &q->pipe;
    struct pg_call *c = pg_add(p,
                               plain_sql(q->s, "SELECT seq, data FROM ", "log",
                                         " WHERE ns = $1 AND stream = $2 AND seq > $3"
                                         " ORDER BY seq LIMIT $4"),
                               4);

    q->asked[q->n_asked++].call = c;
    pg_arg_bytes(p, c, q->ns);
    pg_arg_bytes(p, c, read->log.stream);
    pg_arg_i64(p, c, read->log.after);
    pg_arg_i64(p, c, (int64_t)read->log.limit);
}

static bool take_log(struct read *read, const PGresult *r, struct belay_arena *a)
{
    size_t n = (size_t)PQntuples(r);
    struct log_entry *e = arena_zalloc(a, n, sizeof(*e));

    if (!e)
        return false;
    for (size_t i = 0; i < n; i++) {
        e[i].seq = pg_i64(r, (int)i, 0);
        if (!pg_bytes(r, (int)i, 1, a, &e[i].data))
            return false;
    }
    read->log.out = (struct log_entries){ .entry = e, .n = n };
    return true;
}

/* Below the oldest transaction that is still running nobody can appear any more (rule
 * 5).  A row that another transaction made than its position names came with a dump, from
 * a server that counted differently: it is settled, too.  How far the feed was trimmed
 * stands in every line, or alone in the only one. */
static void ask_feed(struct asking *q, const struct read *read)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    struct pg_pipe *p = &q->pipe;

    buf_append_str(&text, "SELECT h.epoch, h.xid, h.n, e.epoch, e.xid, e.n, e.data FROM"
                          " (SELECT 1) one LEFT JOIN ");
    pg_table(q->s, "feed_head", &text);
    buf_append_str(&text, " h ON h.ns = $1 AND h.feed = $2 LEFT JOIN LATERAL (SELECT *"
                          " FROM ");
    pg_table(q->s, "feed", &text);
    buf_append_str(&text,
                   " f WHERE f.ns = $1 AND f.feed = $2 AND (f.epoch, f.xid, f.n) >"
                   " ($3::int8, $4::int8, $5::int8) AND (f.xid <"
                   " pg_snapshot_xmin(pg_current_snapshot())::text::int8 OR"
                   " f.xmin::text::int8 <> (f.xid & 4294967295))"
                   " ORDER BY f.epoch, f.xid, f.n LIMIT $6::int8) e ON true"
                   " ORDER BY e.epoch, e.xid, e.n");
    struct pg_call *c = pg_add(p, pg_sql_of(q->s, &text), 6);
    q->asked[q->n_asked++].call = c;
    pg_arg_bytes(p, c, q->ns);
    pg_arg_bytes(p, c, read->feed.feed);
    pg_arg_i64(p, c, read->feed.after.epoch);
    pg_arg_i64(p, c, read->feed.after.major);
    pg_arg_i64(p, c, read->feed.after.minor);
    pg_arg_i64(p, c, (int64_t)read->feed.limit);
}

static struct feed_pos pos_at(const PGresult *r, int row, int column)
{
    return (struct feed_pos){ pg_i64(r, row, column), pg_i64(r, row, column + 1),
                              pg_i64(r, row, column + 2) };
}

static bool take_feed(struct read *read, const PGresult *r, struct belay_arena *a)
{
    size_t n = (size_t)PQntuples(r);
    struct feed_entry *e = arena_zalloc(a, n, sizeof(*e));

    read->feed.out = (struct feed_entries){ .entry = e };
    if (!e)
        return false;
    if (n > 0)
        read->feed.out.trimmed = pos_at(r, 0, 0);
    for (size_t i = 0; i < n && !PQgetisnull(r, (int)i, 3); i++) {
        e[i].pos = pos_at(r, (int)i, 3);
        if (!pg_bytes(r, (int)i, 6, a, &e[i].data))
            return false;
        read->feed.out.n++;
    }
    return true;
}

static void ask_chunk(struct asking *q, const struct read *read)
{
    struct pg_pipe *p = &q->pipe;
    struct pg_call *c = pg_add(p,
                               plain_sql(q->s, "SELECT data FROM ", "chunk",
                                         " WHERE ns = $1 AND upload = $2 AND no = $3"),
                               3);

    q->asked[q->n_asked++].call = c;
    pg_arg_bytes(p, c, q->ns);
    pg_arg_bytes(p, c, read->chunk.upload);
    pg_arg_i64(p, c, read->chunk.index);
}

static bool take_chunk(struct read *read, const PGresult *r, struct belay_arena *a)
{
    read->chunk.found = PQntuples(r) > 0;
    read->chunk.out = bytes_of(NULL, 0);
    return !read->chunk.found || pg_bytes(r, 0, 0, a, &read->chunk.out);
}

/* --- all of them --- */

static bool holds(const struct read *reads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (reads[i].kind == READ_RANK && reads[i].rank.hold)
            return true;
    }
    return false;
}

static void ask(struct asking *q)
{
    for (size_t i = 0; i < q->n_reads; i++) {
        struct read *read = &q->reads[i];
        if (q->done[i])
            continue;
        size_t before = q->n_asked;
        switch (read->kind) {
        case READ_ROW:
            ask_rows(q, i);
            break;
        case READ_RANK:
            ask_rank(q, i);
            break;
        case READ_LOG:
            ask_log(q, read);
            break;
        case READ_FEED:
            ask_feed(q, read);
            break;
        case READ_CHUNK:
            ask_chunk(q, read);
            break;
        }
        if (q->n_asked > before && q->asked[before].call)
            q->asked[before].call->tag = (int64_t)i;
    }
}

static bool take(struct asking *q, const struct asked *one, struct belay_arena *a)
{
    struct read *read = &q->reads[one->call->tag];
    const PGresult *r = one->call->result;

    switch (read->kind) {
    case READ_ROW:
        return take_rows(q, one, a);
    case READ_RANK:
        return take_hits(read, r, a);
    case READ_LOG:
        return take_log(read, r, a);
    case READ_FEED:
        return take_feed(read, r, a);
    case READ_CHUNK:
        return take_chunk(read, r, a);
    }
    return false;
}

static void add_text(struct asking *q, const char *words)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, words);
    (void)pg_add(&q->pipe, pg_sql_of(q->s, &text), 0);
}

/* One exchange on the attempt's connection.  A pick begins a transaction that stays. */
static belay_rc exchange(struct asking *q, struct pg_conn *c, struct belay_arena *a,
                         struct belay_error *err)
{
    bool hold = holds(q->reads, q->n_reads);
    /* What is sent together is one transaction, and those of our connections are of one
     * snapshot unless they say otherwise; a pooler's are not ours. */
    bool block = q->n_reads > 1 && !hold && !c->open_txn && q->s->pooler;
    enum pg_reached reached;
    int64_t asked_us;

    if (hold && !c->open_txn) {
        add_text(q, "BEGIN ISOLATION LEVEL READ COMMITTED");
        if (q->s->pooler)
            add_text(q, "SET LOCAL idle_in_transaction_session_timeout = '5s'");
    } else if (block) {
        add_text(q, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    }
    ask(q);
    if (block)
        add_text(q, "COMMIT");
    struct pg_call *time = pg_ask_time(q->s, &q->pipe, &asked_us);
    belay_rc rc = pg_exchange(c, &q->pipe, &reached, err);
    if (rc)
        return rc;
    c->open_txn = PQtransactionStatus(c->pg) != PQTRANS_IDLE;
    const struct pg_call *failed = pg_failed(&q->pipe);
    if (failed)
        return pg_call_error(failed, "reading", err);
    pg_take_time(q->s, time, asked_us);
    for (size_t i = 0; i < q->n_asked; i++) {
        const struct read *read = &q->reads[q->asked[i].call->tag];
        if (!take(q, &q->asked[i], a))
            return err_no_memory(err, "an answer");
        rc = read->kind == READ_RANK ? check_members(read, a, err) : BELAY_OK;
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

static belay_rc try_read(struct pg_store *s, struct pg_attempt *at, struct read *reads,
                         size_t n, struct belay_arena *a, struct belay_error *err)
{
    struct asking q = { .s = s, .ns = at->ns, .reads = reads, .n_reads = n };

    pg_pipe_init(&q.pipe, a);
    q.asked = arena_zalloc(a, n, sizeof(*q.asked));
    q.done = arena_zalloc(a, n, sizeof(*q.done));
    if (!q.asked || !q.done)
        return err_no_memory(err, "a question");
    belay_rc rc = exchange(&q, at->conn, a, err);
    pg_pipe_clear(&q.pipe);
    return rc;
}

belay_rc pg_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                 struct belay_arena *a, struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;
    struct pg_attempt *at = attempt;
    bool first = !at->conn;
    belay_rc (*take_one)(struct pg_store *, struct pg_conn **, struct belay_error *) =
        holds(reads, n) ? pg_take_for_hold : pg_take;
    belay_rc rc = first ? take_one(s, &at->conn, err) : BELAY_OK;

    if (rc)
        return rc;
    rc = try_read(s, at, reads, n, a, err);
    /* A connection from the pool may have died there: nothing was asked yet, so ask
     * again on a new one. */
    if (rc == BELAY_UNAVAILABLE && first && at->conn->bad) {
        pg_give_back(s, at->conn);
        at->conn = NULL;
        pg_drop_idle(s);
        rc = take_one(s, &at->conn, err);
        if (rc == BELAY_OK)
            rc = try_read(s, at, reads, n, a, err);
    }
    /* Only what holds picks is kept from others. */
    if (at->conn && !at->conn->open_txn) {
        pg_give_back(s, at->conn);
        at->conn = NULL;
    }
    return rc;
}
