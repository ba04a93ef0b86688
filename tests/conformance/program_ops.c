/* The operations of random programs, and the answers they write down. */
#include "program_impl.h"

/* Names and members alike: one is a number, one the beginning of another. */

static const char *const ids[PROGRAM_IDS] = { "x", "x'; --\n", "{x}%s\"", "-7",
                                              "\xc3\xa4\x01" };

static struct bytes id_of(unsigned i)
{
    return bytes_str(ids[i]);
}

int64_t program_ordinal(const struct positions *p, struct feed_pos pos)
{
    size_t n = 0;

    while (n < p->n && feed_pos_cmp(p->pos[n], pos) <= 0)
        n++;
    return (int64_t)n;
}

/* The position before the n-th entry's successor; 0: the beginning. */
static struct feed_pos position(const struct positions *p, unsigned n)
{
    size_t i = p->n > 0 ? n % (p->n + 1) : 0;

    struct feed_pos beginning = { 0 };

    return i == 0 ? beginning : p->pos[i - 1];
}

/* --- answers --- */

static void say_bytes(struct machine *m, struct bytes b)
{
    buf_append_char(&m->line, '"');
    buf_append_escaped(&m->line, b);
    buf_append_char(&m->line, '"');
}

static void say_row(struct machine *m, const struct row *row)
{
    if (!row) {
        buf_append_str(&m->line, " -");
        return;
    }
    buf_printf(&m->line, " %s@%lld(", row->type->name, (long long)row->ver);
    for (unsigned i = 0; i < row->type->n_columns; i++) {
        const struct value *v = &row->v[i];
        if (v->kind == VALUE_NULL)
            buf_append_str(&m->line, "null");
        else if (v->kind == VALUE_I64)
            buf_append_i64(&m->line, v->i);
        else
            say_bytes(m, v->b);
        buf_append_char(&m->line, i + 1 < row->type->n_columns ? ',' : ')');
    }
}

static void say_hits(struct machine *m, const struct hits *hits, size_t n_fetch)
{
    for (size_t i = 0; i < hits->n; i++) {
        const struct hit *hit = &hits->hit[i];
        buf_printf(&m->line, " [%lld ", (long long)hit->rank);
        say_bytes(m, hit->member);
        say_bytes(m, hit->index);
        for (size_t j = 0; j < n_fetch; j++)
            say_row(m, hit->rows[j]);
        buf_append_char(&m->line, ']');
    }
}

/* --- operations --- */

static belay_rc do_rows(struct machine *m, struct txn *t, const struct op *op)
{
    struct value key = value_text(id_of(op->id)), other = value_text(id_of(op->other));
    struct value part[] = { other, value_i64((int64_t)op->number - 3) };
    struct row_want wants[] = { { &row_thing, &key },
                                { &row_head, NULL },
                                { &row_thing, &other },
                                { &row_part, part } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    size_t n = op->kind == OP_GET_MANY ? COUNT_OF(wants) : 1;
    belay_rc rc = op->kind == OP_GET    ? txn_get(t, &row_thing, &key, rows)
                  : op->kind == OP_PEEK ? txn_peek(t, &row_thing, &key, rows)
                                        : txn_get_many(t, wants, n, rows);

    for (size_t i = 0; i < n && !rc; i++)
        say_row(m, rows[i]);
    return rc;
}

static belay_rc do_insert(struct txn *t, const struct op *op)
{
    struct value v[THING_COLUMNS];
    struct value part[] = { value_text(id_of(op->other)),
                            value_i64((int64_t)op->number - 3), value_i64(op->flags) };

    if (op->kind == OP_INSERT_PART)
        return txn_insert(t, &row_part, part);
    thing_values(v, "", op->number);
    v[THING_ID] = value_text(id_of(op->id));
    if (op->flags & 1)
        v[THING_TEXT] = value_text(id_of(op->other));
    if (op->flags & 2)
        v[THING_BYTES] = value_bytes(bytes_of("\0\xff\n", op->number % 4));
    if (op->flags & 4)
        v[THING_JSON] = value_json(bytes_str("{}"));
    if (op->flags & 8)
        v[THING_COUNT] = value_null();
    return txn_insert(t, &row_thing, v);
}

static belay_rc do_put(struct txn *t, const struct op *op)
{
    struct value key = value_text(id_of(op->id));
    struct change changes[] = {
        { THING_N, value_i64(op->number) },
        { THING_TEXT, op->flags & 1 ? value_null() : value_text(id_of(op->other)) },
        { THING_BYTES, value_bytes(bytes_of("\x80\x00", op->number % 3)) },
    };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    if (rc || !row)
        return rc ? rc : txn_fail(t, BELAY_NOT_FOUND, "put", "no row");
    if (op->kind == OP_DELETE)
        return txn_delete(t, &row_thing, &key);
    return txn_put(t, &row_thing, &key, changes + op->flags % 2, 1 + op->flags % 2);
}

static belay_rc do_counter(struct machine *m, struct txn *t, const struct op *op,
                           size_t i)
{
    struct value key = value_text(id_of(op->id));
    unsigned column = op->flags & 1 ? THING_COUNT : THING_HIGH;

    if (op->kind == OP_RAISE)
        return txn_raise(t, &row_thing, &key, column, op->number);
    return txn_add(t, &row_thing, &key, column, (int64_t)op->number - 4, -5, 9,
                   &m->sums[i]);
}

/* Where a member stands, if a scan shows it. */
static bool find_rank(struct txn *t, const struct op *op, int64_t *out)
{
    struct bytes index = id_of(op->other);
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .limit = 20 };
    struct hits hits = { .n = 0 };

    if (txn_scan(t, &scan, &hits))
        return false;
    for (size_t i = 0; i < hits.n; i++) {
        if (bytes_eq(hits.hit[i].member, id_of(op->id))) {
            *out = hits.hit[i].rank;
            return true;
        }
    }
    return false;
}

/* What a body knows about a member's rank: from a scan, most of the time. */
static int64_t believed_rank(struct txn *t, const struct op *op)
{
    int64_t rank;

    return (op->flags & 7) != 0 && find_rank(t, op, &rank) ? rank : op->number;
}

static belay_rc do_rank(struct txn *t, const struct op *op)
{
    struct bytes index = id_of(op->other), member = id_of(op->id);
    int64_t rank = (int64_t)op->number / 2, old;

    if (op->kind == OP_RANK_ADD) {
        /* Where it stands already, since not all drivers see another place. */
        if (find_rank(t, op, &old))
            rank = old;
        return txn_rank_add(t, index, rank, member);
    }
    old = believed_rank(t, op);
    return op->kind == OP_RANK_MOVE ? txn_rank_move(t, index, old, rank, member)
                                    : txn_rank_remove(t, index, old, member);
}

static belay_rc do_scan(struct machine *m, struct txn *t, const struct op *op)
{
    const struct bytes indexes[] = { id_of(op->id), id_of(op->other),
                                     bytes_str("none") };
    struct value owner = value_text(id_of(op->other));
    struct fetch fetch[] = { { .type = &row_thing },
                             { .type = &row_part, .prefix = &owner } };
    struct scan_cursor after = { .rank = op->number / 3,
                                 .member = id_of(op->id),
                                 .index = id_of(op->other) };
    struct scan scan = { .indexes = op->id == op->other ? indexes + 1 : indexes,
                         .n_indexes = 2,
                         .min_rank = op->flags & 16 ? (int64_t)op->number / 4 : -100,
                         .max_rank = op->flags & 32 ? (int64_t)op->number / 2 : 100,
                         .after = op->flags & 1 ? &after : NULL,
                         .descending = op->flags & 2,
                         .limit = op->number % 5,
                         .fetch = fetch,
                         .n_fetch = op->flags & 4 ? 1 + (op->flags >> 3) % 2 : 0 };
    struct hits hits = { .n = 0 };
    belay_rc rc;

    /* Half of those without rows as one that is asked again and again. */
    scan.again = !scan.after && !scan.descending && (op->flags & 12) == 8;
    scan.ahead = scan.again ? op->number % 3 : 0;
    scan.pick = op->kind == OP_PICK;
    if (scan.again)
        rc = txn_load(t, NULL, 0, NULL, &scan, 1, &hits);
    else
        rc = scan.pick ? txn_pick(t, &scan, &hits) : txn_scan(t, &scan, &hits);
    if (!rc)
        say_hits(m, &hits, scan.n_fetch);
    return rc;
}

/* The next sequence of a stream, as its reader sees it; sometimes a wrong one. */
static belay_rc do_log(struct machine *m, struct txn *t, const struct op *op)
{
    struct bytes stream = id_of(op->id);
    struct log_entries out = { .n = 0 };
    belay_rc rc = txn_log_read(t, stream, 0, 1000, &out);

    if (rc)
        return rc;
    int64_t last = out.n > 0 ? out.entry[out.n - 1].seq : 0;
    if (op->kind == OP_LOG_APPEND)
        return txn_log_append(t, stream, last + 1 + (op->number == 0),
                              id_of(op->other));
    if (op->kind == OP_LOG_TRIM)
        /* The last entry stays: an empty stream forgets where it was. */
        return last < 2 ? BELAY_OK
                        : txn_log_trim(t, stream, (int64_t)op->number % last);
    rc = txn_log_read(t, stream, op->number, 1 + op->flags % 4, &out);
    for (size_t i = 0; i < out.n && !rc; i++) {
        buf_printf(&m->line, " %lld:", (long long)out.entry[i].seq);
        say_bytes(m, out.entry[i].data);
    }
    return rc;
}

static belay_rc do_feed(struct machine *m, struct txn *t, const struct op *op, size_t i)
{
    const struct positions *p = &m->feeds[m->in][op->id];
    struct feed_entries out = { .n = 0 };

    if (op->kind == OP_FEED_APPEND)
        return txn_feed_append(t, id_of(op->id), id_of(op->other), &m->pos[i]);
    if (op->kind == OP_FEED_TRIM)
        return txn_feed_trim(t, id_of(op->id), position(p, op->number));
    belay_rc rc =
        txn_feed_read(t, id_of(op->id), position(p, op->number), op->flags % 5, &out);
    if (!rc)
        buf_printf(&m->line, " <=%lld", (long long)program_ordinal(p, out.trimmed));
    for (size_t j = 0; j < out.n && !rc; j++) {
        buf_printf(&m->line, " %lld:", (long long)program_ordinal(p, out.entry[j].pos));
        say_bytes(m, out.entry[j].data);
    }
    return rc;
}

static belay_rc do_chunk(struct machine *m, struct txn *t, const struct op *op)
{
    /* Few places, so that they are met again. */
    struct bytes upload = id_of(op->id % 2), out;
    int64_t index = op->number % 2;
    bool found = false;

    if (op->kind == OP_CHUNK_PUT)
        return txn_chunk_put(t, upload, index, id_of(op->other));
    if (op->kind == OP_CHUNK_DROP)
        return txn_chunk_drop(t, upload, index);
    belay_rc rc = txn_chunk_get(t, upload, index, &found, &out);
    if (!rc && found)
        say_bytes(m, out);
    return rc;
}

static belay_rc do_op(struct machine *m, struct txn *t, const struct op *op, size_t i)
{
    int64_t now_ms = 0;
    belay_rc rc = BELAY_OK;

    switch (op->kind) {
    case OP_GET:
    case OP_PEEK:
    case OP_GET_MANY:
        return do_rows(m, t, op);
    case OP_INSERT:
    case OP_INSERT_PART:
        return do_insert(t, op);
    case OP_PUT:
    case OP_DELETE:
        return do_put(t, op);
    case OP_ADD:
    case OP_RAISE:
        return do_counter(m, t, op, i);
    case OP_RANK_ADD:
    case OP_RANK_MOVE:
    case OP_RANK_REMOVE:
        return do_rank(t, op);
    case OP_SCAN:
    case OP_PICK:
        return do_scan(m, t, op);
    case OP_LOG_APPEND:
    case OP_LOG_READ:
    case OP_LOG_TRIM:
        return do_log(m, t, op);
    case OP_FEED_APPEND:
    case OP_FEED_READ:
    case OP_FEED_TRIM:
        return do_feed(m, t, op, i);
    case OP_CHUNK_PUT:
    case OP_CHUNK_GET:
    case OP_CHUNK_DROP:
        return do_chunk(m, t, op);
    case OP_NOW:
        rc = txn_now(t, &now_ms);
        buf_printf(&m->line, " %lld", (long long)now_ms);
        return rc;
    case OP_FAIL:
        return txn_fail(t, BELAY_THROTTLED, "program", "says no");
    case OP_KINDS:
        break;
    }
    return BELAY_MISUSE;
}

belay_rc program_body(struct txn *t, void *arg)
{
    struct machine *m = arg;
    belay_rc rc = BELAY_OK;

    buf_reset(&m->line);
    memset(m->sums, 0, sizeof(m->sums));
    memset(m->pos, 0, sizeof(m->pos));
    for (size_t i = 0; i < m->n_ops && !rc; i++) {
        buf_printf(&m->line, " | %d", (int)m->ops[i].kind);
        rc = do_op(m, t, &m->ops[i], i);
        if (rc)
            buf_printf(&m->line, " %s", belay_error_info((int)rc)->name);
        if (m->ops[i].stubborn)
            rc = BELAY_OK;
    }
    return rc;
}
