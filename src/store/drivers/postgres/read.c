/* Questions, in one round trip and of one snapshot (rule 1). */
#include "store/drivers/postgres/read.h"

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

static bool take_row(struct asking *q, const PGresult *r, int i, size_t at)
{
    struct read *read = &q->reads[at];

    return pg_row(r, i, 1, read->row.ref.type, NULL, q->arenas[at], &read->row.out);
}

static bool take_rows(struct asking *q, const struct asked *group)
{
    const struct row_type *type = q->reads[group->reads[0]].row.ref.type;
    const PGresult *r = group->call->result;
    bool ok = true;

    /* There is one row of a type without a key, whoever asks for it. */
    for (size_t i = 0; i < group->n && type->n_key == 0 && PQntuples(r) > 0; i++)
        ok = ok && take_row(q, r, 0, group->reads[i]);
    for (int i = 0; i < PQntuples(r) && type->n_key > 0; i++) {
        size_t at = (size_t)pg_i64(r, i, 0) - 1;
        ok = ok && at < group->n && take_row(q, r, i, group->reads[at]);
    }
    return ok;
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
            pg_ask_ranks(q, i);
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

static bool take(struct asking *q, const struct asked *one)
{
    struct read *read = &q->reads[one->call->tag];
    struct belay_arena *a = q->arenas[one->call->tag];
    const PGresult *r = one->call->result;

    switch (read->kind) {
    case READ_ROW:
        return take_rows(q, one);
    case READ_RANK:
        return pg_take_hits(q, one);
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
static belay_rc exchange(struct asking *q, struct pg_conn *c, struct belay_error *err)
{
    bool hold = holds(q->reads, q->n_reads);
    /* What is sent together is one transaction, and those of our connections are of one
     * snapshot unless they say otherwise; a pooler's are not ours. */
    bool block = q->n_reads > 1 && !hold && !c->open_txn && q->s->pooler;
    enum pg_reached reached;
    int64_t asked_us;

    if (hold && !c->open_txn) {
        add_text(q, "BEGIN ISOLATION LEVEL READ COMMITTED");
        add_text(q, "SET LOCAL lock_timeout = " PG_HOLDER_WAIT);
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
        size_t at;
        if (!take(q, &q->asked[i]))
            return err_no_memory(err, "an answer");
        for (size_t k = 0; k < q->asked[i].n && rc == BELAY_OK; k++) {
            at = q->asked[i].reads[k];
            if (q->reads[at].kind == READ_RANK)
                rc = pg_check_members(&q->reads[at], q->arenas[at], err);
        }
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

static belay_rc try_read(struct pg_store *s, struct pg_attempt *at, struct read *reads,
                         size_t n, struct belay_arena *const *arenas,
                         struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena own = { .first = NULL };
    struct asking q = { .s = s, .at = at, .ns = at->ns, .reads = reads, .n_reads = n };

    pg_pipe_init(&q.pipe, &own);
    q.arenas = arenas;
    q.asked = arena_zalloc(&own, n, sizeof(*q.asked));
    q.done = arena_zalloc(&own, n, sizeof(*q.done));
    if (!q.asked || !q.done)
        return err_no_memory(err, "a question");
    belay_rc rc = exchange(&q, at->conn, err);
    pg_pipe_clear(&q.pipe);
    return rc;
}

belay_rc pg_read_alone(struct pg_store *s, struct pg_attempt *at, struct read *reads,
                       size_t n, struct belay_arena *const *arenas,
                       struct belay_error *err)
{
    bool first = !at->conn;
    belay_rc (*take_one)(struct pg_store *, struct pg_conn **, struct belay_error *) =
        holds(reads, n) ? pg_take_for_hold : pg_take;
    belay_rc rc = first ? take_one(s, &at->conn, err) : BELAY_OK;

    at->lost = rc != BELAY_OK;
    if (rc)
        return rc;
    rc = try_read(s, at, reads, n, arenas, err);
    /* A connection from the pool may have died there: nothing was asked yet, so ask
     * again on a new one. */
    if (rc == BELAY_UNAVAILABLE && first && at->conn->bad) {
        pg_give_back(s, at->conn);
        at->conn = NULL;
        pg_drop_idle(s);
        rc = take_one(s, &at->conn, err);
        if (rc == BELAY_OK)
            rc = try_read(s, at, reads, n, arenas, err);
    }
    at->lost = rc && (!at->conn || at->conn->bad);
    /* Only what holds picks is kept from others. */
    if (at->conn && !at->conn->open_txn) {
        pg_give_back(s, at->conn);
        at->conn = NULL;
    }
    return rc;
}
