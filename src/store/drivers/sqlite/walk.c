#include <stdlib.h>
#include <string.h>

#include "store/drivers/sqlite/impl.h"

static int by_name(const void *a, const void *b)
{
    const struct row_type *x = *(const struct row_type *const *)a;
    const struct row_type *y = *(const struct row_type *const *)b;

    return strcmp(x->name, y->name);
}

static belay_rc walk_type(struct conn *c, struct bytes ns, const struct row_type *type,
                          item_visit *visit, void *arg, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    sqlite3_stmt *st = conn_type(c, type, TYPE_ALL, err);
    belay_rc rc = BELAY_OK;
    int step = SQLITE_ROW;

    if (!st)
        return (belay_rc)err->code;
    bind_text(st, 1, ns);
    while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
        struct item item = { .kind = ITEM_ROW };
        rc = row_from(st, type, &arena, &item.row, err);
        if (!rc)
            rc = visit(arg, &item, err);
        arena_reset(&arena);
    }
    if (!rc && step != SQLITE_DONE)
        rc = conn_error(c, "walk", err);
    (void)sqlite3_reset(st);
    return rc;
}

/* The other shapes: a name, a number and bytes, or a member instead of these. */
static belay_rc walk_shape(struct conn *c, struct bytes ns, enum plain_sql which,
                           enum item_kind kind, item_visit *visit, void *arg,
                           struct belay_error *err)
{
    CLEANUP(buf_release) struct buf feed = { .ptr = NULL };
    sqlite3_stmt *st = conn_plain(c, which, err);
    int64_t ordinal = 0;
    belay_rc rc = BELAY_OK;
    int step = SQLITE_ROW;

    if (!st)
        return (belay_rc)err->code;
    bind_text(st, 1, ns);
    while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
        struct item item = { .kind = kind, .number = sqlite3_column_int64(st, 1) };
        struct bytes last =
            bytes_of(sqlite3_column_blob(st, 2), (size_t)sqlite3_column_bytes(st, 2));
        item.name =
            bytes_of(sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
        if (kind == ITEM_RANK)
            item.member = last;
        else
            item.data = last;
        if (kind == ITEM_FEED) { /* its place in the feed, not its position */
            ordinal = bytes_eq(buf_view(&feed), item.name) ? ordinal + 1 : 1;
            buf_reset(&feed);
            buf_append(&feed, item.name);
            item.number = ordinal;
        }
        rc = visit(arg, &item, err);
    }
    if (!rc && step != SQLITE_DONE)
        rc = conn_error(c, "walk", err);
    (void)sqlite3_reset(st);
    return rc;
}

static belay_rc walk_all(struct conn *c, struct bytes ns, item_visit *visit, void *arg,
                         struct belay_error *err)
{
    static const struct {
        enum plain_sql sql;
        enum item_kind kind;
    } shapes[] = {
        { SQL_ALL_RANKS, ITEM_RANK },
        { SQL_ALL_LOGS, ITEM_LOG },
        { SQL_ALL_FEEDS, ITEM_FEED },
        { SQL_ALL_CHUNKS, ITEM_CHUNK },
    };
    const struct schema *s = c->store->config.schema;
    const struct row_type **types = malloc(s->n_types * sizeof(*types));
    belay_rc rc = BELAY_OK;

    if (!types)
        return err_no_memory(err, "a walk");
    memcpy(types, s->types, s->n_types * sizeof(*types));
    qsort(types, s->n_types, sizeof(*types), by_name);
    for (size_t i = 0; i < s->n_types && !rc; i++)
        rc = walk_type(c, ns, types[i], visit, arg, err);
    for (size_t i = 0; i < COUNT_OF(shapes) && !rc; i++)
        rc = walk_shape(c, ns, shapes[i].sql, shapes[i].kind, visit, arg, err);
    free(types);
    return rc;
}

belay_rc sqlite_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                     struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct belay_error local = { .code = 0 };
    struct conn *c = NULL;

    if (!err)
        err = &local;
    if (!s->path) {
        pthread_mutex_lock(&s->readers_mutex);
        belay_rc rc = group_roll_back(s, err);
        if (!rc)
            rc = walk_all(s->writer, ns, visit, arg, err);
        pthread_mutex_unlock(&s->readers_mutex);
        return rc;
    }
    belay_rc rc = reader_take(s, &c, err);
    if (rc)
        return rc;
    rc = conn_run_plain(c, SQL_BEGIN_READ, "begin", err);
    if (!rc)
        rc = walk_all(c, ns, visit, arg, err);
    reader_give_back(s, c);
    return rc ? rc : wal_sync(s, wal_seen(s), err);
}
