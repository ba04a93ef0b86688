/* Making the tables, once, whoever comes first. */
#include <stdlib.h>

#include "store/drivers/postgres/impl.h"

/* How busy tables are kept: room for updates in place, and a vacuum before a fifth of
 * the table is dead. */
#define TABLE_OPTIONS(fill)                                                \
    " WITH (fillfactor = " fill ", autovacuum_vacuum_scale_factor = 0.02," \
    " autovacuum_vacuum_threshold = 500)"
#define FILL "85"

/* Versions that follow one another within moments lie side by side: the older ones cannot be
 * cleared away while a transaction runs that might see them, and a version that finds no room
 * on its page goes to another one, with a new entry in the index. */
static const char *table_options(const struct row_type *type)
{
    if (row_type_is(type, ROW_WORKED))
        return TABLE_OPTIONS("25"); /* of three, and the later ones are longer */
    return row_type_is(type, ROW_LEASED) ? TABLE_OPTIONS("50") : TABLE_OPTIONS(FILL);
}

#define VERSION ", ver bigint NOT NULL"

static const char *collation(enum value_kind kind)
{
    return kind == VALUE_TEXT || kind == VALUE_JSON ? " COLLATE \"C\"" : "";
}

static void type_table(const struct pg_store *s, const struct row_type *type,
                       struct buf *out)
{
    buf_append_str(out, "CREATE TABLE IF NOT EXISTS ");
    pg_table(s, type->name, out);
    buf_append_str(out, " (ns text COLLATE \"C\" NOT NULL");
    for (unsigned i = 0; i < type->n_columns; i++) {
        const struct column *c = &type->columns[i];
        if (i == type->n_key) /* beside what changes with it: see EXEC_ID ... */
            buf_append_str(out, VERSION);
        buf_printf(out, ", \"%s\" %s%s%s", c->name, pg_type_name(c->type),
                   collation(c->type), i < type->n_key ? " NOT NULL" : "");
    }
    if (type->n_key == type->n_columns)
        buf_append_str(out, VERSION);
    buf_append_str(out, ", PRIMARY KEY (ns");
    for (unsigned i = 0; i < type->n_key; i++)
        buf_printf(out, ", \"%s\"", type->columns[i].name);
    buf_append_str(out, "))");
    buf_append_str(out, table_options(type));
    buf_append_str(out, ";\n");
}

/* Columns that a later dictionary has and the table lacks. */
static void type_columns(const struct pg_store *s, const struct row_type *type,
                         struct buf *out)
{
    for (unsigned i = type->n_key; i < type->n_columns; i++) {
        const struct column *c = &type->columns[i];
        buf_append_str(out, "ALTER TABLE ");
        pg_table(s, type->name, out);
        buf_printf(out, " ADD COLUMN IF NOT EXISTS \"%s\" %s%s;\n", c->name,
                   pg_type_name(c->type), collation(c->type));
    }
}

/* The shapes that are no rows; %s is the schema.
 *
 * An entry of a rank index is found by a number that its namespace (16 bits) and its index (48)
 * make: comparing two texts instead at every step takes the server a fifth of what an entry
 * costs it.  Who looks for entries compares the names of what is found (pg_where_index).  Two
 * given indexes of a namespace have the same number once in 2^48; of a million indexes some two
 * have it with a probability of 1/560.  Such two are kept apart, but for one thing: a member
 * cannot stand in both at the same rank.  Adding it a second time is a conflict, again and
 * again.
 *
 * The function is one expression of the server's own functions, named in full, so that it is
 * put in place of its calls wherever it stands, and whatever the search path is.
 *
 * Up to layout 1 there was a primary key of that name, (ns, idx, rank, member).  Logical
 * replication needs something in its place, and the whole row is what that was. */
static const char *const shapes[] = {
    "CREATE OR REPLACE FUNCTION \"%s\".belay2_place(ns text, idx text) RETURNS int8"
    " LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $f$ SELECT"
    " (pg_catalog.hashtext(ns)::pg_catalog.int8 OPERATOR(pg_catalog.<<) 48)"
    " OPERATOR(pg_catalog.#) (pg_catalog.hashtextextended(idx, 0)"
    " OPERATOR(pg_catalog.&) " PG_INDEX_BITS ") $f$",
    "CREATE TABLE IF NOT EXISTS \"%s\".belay_rank (ns text COLLATE \"C\" NOT NULL,"
    " idx text COLLATE \"C\" NOT NULL, rank bigint NOT NULL,"
    " member text COLLATE \"C\" NOT NULL)" TABLE_OPTIONS(FILL),
    "ALTER TABLE \"%s\".belay_rank DROP CONSTRAINT IF EXISTS belay_rank_place,"
    " REPLICA IDENTITY FULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS belay_rank_place ON \"%s\".belay_rank"
    " (\"%s\".belay2_place(ns, idx), rank, member, ns)",
    "CREATE TABLE IF NOT EXISTS \"%s\".belay_log (ns text COLLATE \"C\" NOT NULL,"
    " stream text COLLATE \"C\" NOT NULL, seq bigint NOT NULL, data bytea NOT NULL,"
    " CONSTRAINT belay_log_seq PRIMARY KEY (ns, stream, seq))",
    "CREATE TABLE IF NOT EXISTS \"%s\".belay_feed (ns text COLLATE \"C\" NOT NULL,"
    " feed text COLLATE \"C\" NOT NULL, epoch bigint NOT NULL, xid bigint NOT NULL,"
    " n bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (ns, feed, epoch, xid, n))",
    "CREATE TABLE IF NOT EXISTS \"%s\".belay_feed_head (ns text COLLATE \"C\" NOT NULL,"
    " feed text COLLATE \"C\" NOT NULL, epoch bigint NOT NULL, xid bigint NOT NULL,"
    " n bigint NOT NULL, PRIMARY KEY (ns, feed))",
    "CREATE TABLE IF NOT EXISTS \"%s\".belay_chunk (ns text COLLATE \"C\" NOT NULL,"
    " upload text COLLATE \"C\" NOT NULL, no bigint NOT NULL, data bytea NOT NULL,"
    " PRIMARY KEY (ns, upload, no))",
    "CREATE UNLOGGED TABLE IF NOT EXISTS \"%s\".belay_waiter (process text COLLATE "
    "\"C\""
    " PRIMARY KEY, until timestamptz NOT NULL)",
    "CREATE OR REPLACE FUNCTION \"%s\".belay1_guard(failed bigint) RETURNS void"
    " LANGUAGE plpgsql AS $f$ BEGIN IF failed IS NOT NULL THEN"
    " RAISE EXCEPTION '%%', failed USING ERRCODE = '" PG_STATE_GUARD "'; END IF;"
    " END $f$",
    "CREATE OR REPLACE FUNCTION \"%s\".belay1_refuse(refused boolean) RETURNS void"
    " LANGUAGE plpgsql AS $f$ BEGIN IF refused THEN"
    " RAISE EXCEPTION 'refused' USING ERRCODE = '" PG_STATE_REFUSED "'; END IF;"
    " END $f$",
};

static void add_shape(const struct pg_store *s, const char *shape, struct buf *out)
{
    /* The names of functions and tables are constants; the schema is checked. */
    for (const char *at = shape; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            buf_append_str(out, s->schema);
            at++;
            continue;
        }
        if (at[0] == '%' && at[1] == '%')
            at++;
        buf_append_char(out, *at);
    }
    buf_append_str(out, ";\n");
}

/* Everything in one transaction, under a lock of its own, so that many may come first. */
static belay_rc create(struct pg_store *s, struct pg_conn *c, bool columns,
                       struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, "BEGIN ISOLATION LEVEL READ COMMITTED;"
                          " SET LOCAL client_min_messages = warning;\n");
    buf_printf(&text, "SELECT pg_advisory_xact_lock(1112293721, hashtext('%s'));\n",
               s->schema);
    buf_printf(&text, "CREATE SCHEMA IF NOT EXISTS \"%s\";\n", s->schema);
    buf_printf(&text,
               "CREATE TABLE IF NOT EXISTS \"%s\".belay_layout (layout bigint NOT NULL"
               ");\nINSERT INTO \"%s\".belay_layout SELECT %d WHERE NOT EXISTS"
               " (SELECT FROM \"%s\".belay_layout);\n",
               s->schema, s->schema, PG_LAYOUT, s->schema);
    for (size_t i = 0; i < s->config.schema->n_types; i++) {
        type_table(s, s->config.schema->types[i], &text);
        if (columns)
            type_columns(s, s->config.schema->types[i], &text);
    }
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        add_shape(s, shapes[i], &text);
    buf_printf(&text, "UPDATE \"%s\".belay_layout SET layout = %d WHERE layout < %d;\n",
               s->schema, PG_LAYOUT, PG_LAYOUT);
    buf_append_str(&text, "COMMIT");
    buf_append_char(&text, '\0');
    if (text.failed)
        return err_no_memory(err, "the schema");
    return pg_run(c, (const char *)text.ptr, "making the schema", err);
}

/* What is there: the number of tables of ours, of others', and the layout. */
struct found {
    int64_t ours, others, columns, layout;
};

static belay_rc look(struct pg_store *s, struct pg_conn *c, struct found *out,
                     struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    enum pg_reached reached;
    struct pg_pipe p;

    pg_pipe_init(&p, &arena);
    buf_append_str(
        &text,
        "SELECT count(*) FILTER (WHERE c.relname LIKE 'belay\\_%'),"
        " count(*) FILTER (WHERE c.relname NOT LIKE 'belay\\_%'),"
        " (SELECT count(*) FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class t ON"
        "  t.oid = a.attrelid WHERE t.relnamespace = to_regnamespace($1) AND"
        "  t.relkind IN ('r', 'p') AND t.relname LIKE 'belay\\_%' AND a.attnum > 0 AND"
        "  NOT a.attisdropped),"
        " count(*) FILTER (WHERE c.relname = 'belay_layout')"
        " FROM pg_catalog.pg_class c WHERE c.relnamespace = to_regnamespace($1) AND"
        " c.relkind IN ('r', 'p')");
    struct pg_call *call = pg_add(&p, pg_sql_of(s, &text), 1);
    pg_arg_bytes(&p, call, bytes_str(s->schema));
    belay_rc rc = pg_exchange(c, &p, &reached, err);
    if (rc == BELAY_OK && !call->ok)
        rc = pg_call_error(call, "looking at the schema", err);
    if (rc == BELAY_OK)
        *out = (struct found){ pg_i64(call->result, 0, 0), pg_i64(call->result, 0, 1),
                               pg_i64(call->result, 0, 2), pg_i64(call->result, 0, 3) };
    pg_pipe_clear(&p);
    if (rc || out->layout == 0)
        return rc;

    pg_pipe_init(&p, &arena);
    buf_append_str(&text, "SELECT max(layout) FROM ");
    pg_table(s, "layout", &text);
    call = pg_add(&p, pg_sql_of(s, &text), 0);
    rc = pg_exchange(c, &p, &reached, err);
    if (rc == BELAY_OK && !call->ok)
        rc = pg_call_error(call, "looking at the schema", err);
    if (rc == BELAY_OK)
        out->layout = pg_i64(call->result, 0, 0);
    pg_pipe_clear(&p);
    return rc;
}

static belay_rc refuse_format(const char *what, int64_t expected, int64_t found,
                              struct belay_error *err)
{
    belay_rc rc = err_set(err, BELAY_UNSUPPORTED_FORMAT,
                          "postgres: schema: %s (found %lld, expected %lld)", what,
                          (long long)found, (long long)expected);

    err_numbers(err, expected, found);
    return rc;
}

/* Tables, columns and shapes that this dictionary has. */
static int64_t columns_wanted(const struct schema *schema)
{
    int64_t n = 0;

    for (size_t i = 0; i < schema->n_types; i++)
        n += 2 + schema->types[i]->n_columns; /* ns and ver */
    return n + 1 + 4 + 4 + 6 + 5 + 4 + 2;     /* layout and the shapes */
}

/* A role that may not create anything can use what is complete. */
static bool is_complete(const struct pg_store *s, const struct found *found)
{
    return found->layout == PG_LAYOUT &&
           found->columns >= columns_wanted(s->config.schema);
}

/* What is there is looked at before anything is made, and again afterwards: somebody
 * with another dictionary may have been first. */
belay_rc pg_make_schema(struct pg_store *s, struct pg_conn *c, struct belay_error *err)
{
    for (unsigned i = 0;; i++) {
        struct found found = { 0 };
        belay_rc rc = look(s, c, &found, err);

        if (rc)
            return rc;
        if (found.ours == 0 && found.others > 0)
            return refuse_format("it has tables of another program", 0, found.others,
                                 err);
        if (found.layout > PG_LAYOUT)
            return refuse_format("its layout is newer than this program", PG_LAYOUT,
                                 found.layout, err);
        if (is_complete(s, &found) || i == 2)
            return BELAY_OK;
        rc = create(s, c, found.ours > 0, err);
        if (rc)
            return rc;
    }
}
