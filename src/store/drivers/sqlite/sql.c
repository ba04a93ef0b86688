#include "store/drivers/sqlite/impl.h"

static const char *column_type(enum value_kind kind)
{
    switch (kind) {
    case VALUE_I64:
        return "INTEGER";
    case VALUE_TEXT:
    case VALUE_JSON:
        return "TEXT";
    case VALUE_BYTES:
    case VALUE_NULL:
        return "BLOB";
    }
    return "BLOB";
}

/* ns, k1, k2 ... */
static void key_list(const struct row_type *type, struct buf *out)
{
    buf_append_str(out, "ns");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(out, ", \"%s\"", type->columns[i].name);
}

/* WHERE ns = ?n AND k1 = ?n+1 ... */
static void where_key(const struct row_type *type, unsigned first, struct buf *out)
{
    buf_printf(out, " WHERE ns = ?%u", first);
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(out, " AND \"%s\" = ?%u", type->columns[i].name, first + 1 + i);
}

static void column_list(const struct row_type *type, struct buf *out)
{
    buf_append_str(out, "ver");
    for (unsigned i = 0; i < type->n_columns; i++)
        buf_printf(out, ", \"%s\"", type->columns[i].name);
}

void sql_table(const struct row_type *type, struct buf *out)
{
    buf_printf(out, "CREATE TABLE belay_%s (ns TEXT NOT NULL", type->name);
    for (unsigned i = 0; i < type->n_columns; i++)
        buf_printf(out, ", \"%s\" %s%s", type->columns[i].name,
                   column_type(type->columns[i].type),
                   i < type->n_key ? " NOT NULL" : "");
    buf_append_str(out, ", ver INTEGER NOT NULL, PRIMARY KEY (");
    key_list(type, out);
    buf_append_str(out, ")) STRICT, WITHOUT ROWID;\n");
}

void sql_add_column(const struct row_type *type, unsigned column, struct buf *out)
{
    buf_printf(out, "ALTER TABLE belay_%s ADD COLUMN \"%s\" %s", type->name,
               type->columns[column].name, column_type(type->columns[column].type));
}

/* The shapes that are no rows.  Chunks are large, so their table has row ids and the
 * key beside; the others are one tree each. */
static const char shapes[] =
    "CREATE TABLE belay_rank (ns TEXT NOT NULL, idx TEXT NOT NULL, rank INTEGER NOT "
    "NULL,"
    " member TEXT NOT NULL, PRIMARY KEY (ns, idx, rank, member)) STRICT, WITHOUT "
    "ROWID;\n"
    "CREATE UNIQUE INDEX belay_rank_member ON belay_rank (ns, idx, member);\n"
    "CREATE TABLE belay_log (ns TEXT NOT NULL, stream TEXT NOT NULL, seq INTEGER NOT "
    "NULL,"
    " data BLOB NOT NULL, PRIMARY KEY (ns, stream, seq)) STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE belay_feed (ns TEXT NOT NULL, feed TEXT NOT NULL, pos INTEGER NOT "
    "NULL,"
    " data BLOB NOT NULL, PRIMARY KEY (ns, feed, pos)) STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE belay_feed_head (ns TEXT NOT NULL, feed TEXT NOT NULL,"
    " last INTEGER NOT NULL, trimmed INTEGER NOT NULL, PRIMARY KEY (ns, feed))"
    " STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE belay_chunk (ns TEXT NOT NULL, upload TEXT NOT NULL, no INTEGER NOT "
    "NULL,"
    " data BLOB NOT NULL, PRIMARY KEY (ns, upload, no)) STRICT;\n";

belay_rc sql_schema(const struct schema *s, struct buf *out, struct belay_error *err)
{
    for (size_t i = 0; i < s->n_types; i++)
        sql_table(s->types[i], out);
    buf_append_str(out, shapes);
    buf_append_char(out, '\0');
    return out->failed ? err_no_memory(err, "the schema") : BELAY_OK;
}

static void insert_type(const struct row_type *type, struct buf *out)
{
    buf_printf(out, "INSERT INTO belay_%s (ns, ", type->name);
    column_list(type, out);
    buf_append_str(out, ") VALUES (?1, ?2");
    for (unsigned i = 0; i < type->n_columns; i++)
        buf_printf(out, ", ?%u", i + 3);
    buf_append_char(out, ')');
}

void sql_of_type(const struct row_type *type, enum type_sql which, struct buf *out)
{
    switch (which) {
    case TYPE_GET:
        buf_append_str(out, "SELECT ");
        column_list(type, out);
        buf_printf(out, " FROM belay_%s", type->name);
        where_key(type, 1, out);
        break;
    case TYPE_VER:
        buf_printf(out, "SELECT ver FROM belay_%s", type->name);
        where_key(type, 1, out);
        break;
    case TYPE_INSERT:
        insert_type(type, out);
        break;
    case TYPE_DELETE:
        buf_printf(out, "DELETE FROM belay_%s", type->name);
        where_key(type, 1, out);
        break;
    case TYPE_ALL:
        buf_append_str(out, "SELECT ");
        column_list(type, out);
        buf_printf(out, " FROM belay_%s WHERE ns = ?1 ORDER BY ", type->name);
        key_list(type, out);
        break;
    case TYPE_SQLS:
        break;
    }
}

/* ?1 is the version, then the changed columns in order, then ns and the key. */
void sql_put(const struct row_type *type, uint64_t changed, struct buf *out)
{
    unsigned at = 2;

    buf_printf(out, "UPDATE belay_%s SET ver = ?1", type->name);
    for (unsigned i = 0; i < type->n_columns; i++) {
        if ((changed >> i) & 1)
            buf_printf(out, ", \"%s\" = ?%u", type->columns[i].name, at++);
    }
    where_key(type, at, out);
}

void sql_count(const struct row_type *type, unsigned column, struct buf *out)
{
    buf_printf(out, "UPDATE belay_%s SET \"%s\" = ?1", type->name,
               type->columns[column].name);
    where_key(type, 2, out);
}

/* clang-format off */
static const char *const plain[PLAIN_SQLS] = {
    [SQL_BEGIN_READ]     = "BEGIN",
    [SQL_BEGIN_WRITE]    = "BEGIN IMMEDIATE",
    [SQL_COMMIT]         = "COMMIT",
    [SQL_ROLLBACK]       = "ROLLBACK",
    [SQL_RANK_ADD]       = "INSERT INTO belay_rank (ns, idx, member, rank) VALUES (?1, ?2, ?3, ?4)",
    [SQL_RANK_REMOVE]    = "DELETE FROM belay_rank WHERE ns = ?1 AND idx = ?2 AND rank = ?4 AND member = ?3",
    [SQL_RANK_AT]        = "SELECT rank FROM belay_rank INDEXED BY belay_rank_member"
                           " WHERE ns = ?1 AND idx = ?2 AND member = ?3",
    [SQL_RANK_SCAN]      = "SELECT rank, member FROM belay_rank WHERE ns = ?1 AND idx = ?2 AND rank <= ?3"
                           " AND (rank, member) >= (?4, ?5) ORDER BY rank, member LIMIT ?6",
    [SQL_RANK_SCAN_DOWN] = "SELECT rank, member FROM belay_rank WHERE ns = ?1 AND idx = ?2 AND rank >= ?3"
                           " AND (rank, member) <= (?4, ?5) ORDER BY rank DESC, member DESC LIMIT ?6",
    [SQL_LOG_APPEND]     = "INSERT INTO belay_log (ns, stream, seq, data) VALUES (?1, ?2,"
                           " CASE WHEN coalesce((SELECT max(seq) FROM belay_log WHERE ns = ?1"
                           " AND stream = ?2), ?3 - 1) = ?3 - 1 THEN ?3 END, ?4)",
    [SQL_LOG_LAST]       = "SELECT seq FROM belay_log WHERE ns = ?1 AND stream = ?2 ORDER BY seq DESC LIMIT 1",
    [SQL_LOG_TRIM]       = "DELETE FROM belay_log WHERE ns = ?1 AND stream = ?2 AND seq <= ?3",
    [SQL_LOG_READ]       = "SELECT seq, data FROM belay_log WHERE ns = ?1 AND stream = ?2 AND seq > ?3"
                           " ORDER BY seq LIMIT ?4",
    [SQL_FEED_NEXT]      = "INSERT INTO belay_feed_head (ns, feed, last, trimmed) VALUES (?1, ?2, 1, 0)"
                           " ON CONFLICT (ns, feed) DO UPDATE SET last = last + 1 RETURNING last",
    [SQL_FEED_HEAD]      = "SELECT last, trimmed FROM belay_feed_head WHERE ns = ?1 AND feed = ?2",
    [SQL_FEED_APPEND]    = "INSERT INTO belay_feed (ns, feed, pos, data) VALUES (?1, ?2, ?3, ?4)",
    [SQL_FEED_TRIM]      = "DELETE FROM belay_feed WHERE ns = ?1 AND feed = ?2 AND pos <= ?3",
    [SQL_FEED_TRIMMED]   = "UPDATE belay_feed_head SET trimmed = max(trimmed, min(last, ?3))"
                           " WHERE ns = ?1 AND feed = ?2",
    [SQL_FEED_READ]      = "SELECT pos, data FROM belay_feed WHERE ns = ?1 AND feed = ?2 AND pos > ?3"
                           " ORDER BY pos LIMIT ?4",
    [SQL_CHUNK_PUT]      = "INSERT INTO belay_chunk (ns, upload, no, data) VALUES (?1, ?2, ?3, ?4)"
                           " ON CONFLICT (ns, upload, no) DO UPDATE SET data = excluded.data",
    [SQL_CHUNK_DROP]     = "DELETE FROM belay_chunk WHERE ns = ?1 AND upload = ?2 AND no = ?3",
    [SQL_CHUNK_GET]      = "SELECT data FROM belay_chunk WHERE ns = ?1 AND upload = ?2 AND no = ?3",
    [SQL_ALL_RANKS]      = "SELECT idx, rank, member FROM belay_rank WHERE ns = ?1 ORDER BY idx, rank, member",
    [SQL_ALL_LOGS]       = "SELECT stream, seq, data FROM belay_log WHERE ns = ?1 ORDER BY stream, seq",
    [SQL_ALL_FEEDS]      = "SELECT feed, pos, data FROM belay_feed WHERE ns = ?1 ORDER BY feed, pos",
    [SQL_ALL_CHUNKS]     = "SELECT upload, no, data FROM belay_chunk WHERE ns = ?1 ORDER BY upload, no",
};
/* clang-format on */

const char *sql_plain(enum plain_sql which)
{
    return plain[which];
}
