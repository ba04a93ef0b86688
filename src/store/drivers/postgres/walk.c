/* Everything in a namespace, of one snapshot, a page at a time. */
#include <stdlib.h>

#include "store/drivers/postgres/impl.h"

#define PAGE "FETCH 256 FROM belay_walk"
#define CHUNK_PAGE "FETCH 4 FROM belay_walk" /* up to a mebibyte each */

struct walk {
    struct pg_store *s;
    struct pg_conn *c;
    struct bytes ns;
    item_visit *visit;
    void *arg;
    struct buf feed; /* of the last entry */
    int64_t ordinal;
};

static int by_name(const void *a, const void *b)
{
    const struct row_type *x = *(const struct row_type *const *)a;
    const struct row_type *y = *(const struct row_type *const *)b;

    return strcmp(x->name, y->name);
}

/* A statement that must succeed; its result is the caller's to clear with the pipe. */
static belay_rc one(struct walk *w, struct pg_pipe *p, struct belay_arena *a,
                    struct buf *text, const struct bytes *arg, struct pg_call **out,
                    struct belay_error *err)
{
    enum pg_reached reached;

    pg_pipe_init(p, a);
    *out = pg_add(p, pg_sql_of(w->s, text), 1);
    if (arg)
        pg_arg_bytes(p, *out, *arg);
    belay_rc rc = pg_exchange(w->c, p, &reached, err);
    if (rc == BELAY_OK && !(*out)->ok)
        rc = pg_call_error(*out, "walk", err);
    return rc;
}

static belay_rc run_words(struct walk *w, const char *words, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    struct pg_call *call;
    struct pg_pipe p;

    buf_append_str(&text, words);
    belay_rc rc = one(w, &p, &arena, &text, NULL, &call, err);
    pg_pipe_clear(&p);
    return rc;
}

/* Shows row i of a page. */
typedef belay_rc show(struct walk *w, const PGresult *r, int i, const void *what,
                      struct belay_arena *a, struct belay_error *err);

static belay_rc pages(struct walk *w, const char *fetch, show *each, const void *what,
                      struct belay_error *err)
{
    belay_rc rc = BELAY_OK;
    int n = 1;

    while (rc == BELAY_OK && n > 0) {
        CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
        CLEANUP(buf_release) struct buf text = { .ptr = NULL };
        struct pg_call *call;
        struct pg_pipe p;

        buf_append_str(&text, fetch);
        rc = one(w, &p, &arena, &text, NULL, &call, err);
        n = rc ? 0 : PQntuples(call->result);
        for (int i = 0; i < n && rc == BELAY_OK; i++)
            rc = each(w, call->result, i, what, &arena, err);
        pg_pipe_clear(&p);
    }
    return rc ? rc : run_words(w, "CLOSE belay_walk", err);
}

/* Opens the cursor for the query in `text`, whose $1 is the namespace. */
static belay_rc declare(struct walk *w, struct buf *text, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct pg_call *call;
    struct pg_pipe p;
    belay_rc rc = one(w, &p, &arena, text, &w->ns, &call, err);

    pg_pipe_clear(&p);
    return rc;
}

static belay_rc show_row(struct walk *w, const PGresult *r, int i, const void *what,
                         struct belay_arena *a, struct belay_error *err)
{
    struct item item = { .kind = ITEM_ROW };

    if (!pg_row(r, i, 0, what, NULL, a, &item.row))
        return err_no_memory(err, "a walk");
    return w->visit(w->arg, &item, err);
}

static belay_rc walk_type(struct walk *w, const struct row_type *type,
                          struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text,
                   "DECLARE belay_walk BINARY NO SCROLL CURSOR FOR SELECT ver, ");
    pg_columns(type, type->n_columns, "", &text);
    buf_append_str(&text, " FROM ");
    pg_table(w->s, type->name, &text);
    buf_append_str(&text, " WHERE ns = $1 ORDER BY ns");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(&text, ", \"%s\"", type->columns[i].name);
    belay_rc rc = declare(w, &text, err);
    return rc ? rc : pages(w, PAGE, show_row, type, err);
}

static belay_rc show_shape(struct walk *w, const PGresult *r, int i, const void *what,
                           struct belay_arena *a, struct belay_error *err)
{
    struct item item = { .kind = *(const enum item_kind *)what,
                         .number = pg_i64(r, i, 1) };
    struct bytes last;

    if (!pg_bytes(r, i, 0, a, &item.name) || !pg_bytes(r, i, 2, a, &last))
        return err_no_memory(err, "a walk");
    if (item.kind == ITEM_RANK)
        item.member = last;
    else
        item.data = last;
    if (item.kind == ITEM_FEED) { /* its place in the feed, not its position */
        w->ordinal = bytes_eq(buf_view(&w->feed), item.name) ? w->ordinal + 1 : 1;
        buf_reset(&w->feed);
        buf_append(&w->feed, item.name);
        item.number = w->ordinal;
    }
    return w->visit(w->arg, &item, err);
}

static const struct {
    enum item_kind kind;
    const char *columns, *table, *order, *fetch;
} shapes[] = {
    { ITEM_RANK, "idx, rank, member", "rank", "idx, rank, member", PAGE },
    { ITEM_LOG, "stream, seq, data", "log", "stream, seq", PAGE },
    { ITEM_FEED, "feed, n, data", "feed", "feed, epoch, xid, n", PAGE },
    { ITEM_CHUNK, "upload, no, data", "chunk", "upload, no", CHUNK_PAGE },
};

static belay_rc walk_shapes(struct walk *w, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(shapes) && rc == BELAY_OK; i++) {
        CLEANUP(buf_release) struct buf text = { .ptr = NULL };

        buf_printf(&text,
                   "DECLARE belay_walk BINARY NO SCROLL CURSOR FOR SELECT %s FROM ",
                   shapes[i].columns);
        pg_table(w->s, shapes[i].table, &text);
        buf_append_str(&text, " WHERE ");
        pg_where_ns(w->s, shapes[i].table, &text);
        buf_printf(&text, " ORDER BY %s", shapes[i].order);
        rc = declare(w, &text, err);
        if (rc == BELAY_OK)
            rc = pages(w, shapes[i].fetch, show_shape, &shapes[i].kind, err);
    }
    return rc;
}

static belay_rc walk_types(struct walk *w, struct belay_error *err)
{
    const struct schema *schema = w->s->config.schema;
    const struct row_type **types =
        calloc(schema->n_types, sizeof(const struct row_type *));
    belay_rc rc = BELAY_OK;

    if (!types)
        return err_no_memory(err, "a walk");
    for (size_t i = 0; i < schema->n_types; i++)
        types[i] = schema->types[i];
    qsort(types, schema->n_types, sizeof(const struct row_type *), by_name);
    for (size_t i = 0; i < schema->n_types && rc == BELAY_OK; i++)
        rc = walk_type(w, types[i], err);
    free(types);
    return rc;
}

belay_rc pg_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                 struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;
    struct walk w = { .s = s, .ns = ns, .visit = visit, .arg = arg };
    belay_rc rc = pg_take(s, &w.c, err);

    if (rc)
        return rc;
    w.c->open_txn = true;
    rc = run_words(&w, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
    if (rc == BELAY_OK)
        rc = walk_types(&w, err);
    if (rc == BELAY_OK)
        rc = walk_shapes(&w, err);
    if (!w.c->bad && pg_run(w.c, "ROLLBACK", "walk", NULL) == BELAY_OK)
        w.c->open_txn = false;
    pg_give_back(s, w.c);
    buf_release(&w.feed);
    return rc;
}
