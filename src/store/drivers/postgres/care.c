/* Erasing a namespace, and looking for damage. */
#include "store/drivers/postgres/impl.h"

/* A chunk counts for what it weighs beside other things. */
static const struct {
    const char *table;
    int64_t weight;
} shapes[] = {
    { "chunk", 64 }, { "rank", 1 }, { "log", 1 }, { "feed", 1 }, { "feed_head", 1 }
};

static void add_erase(struct pg_store *s, struct pg_pipe *p, const char *table,
                      struct bytes ns, int64_t most)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, "WITH d AS (DELETE FROM ");
    pg_table(s, table, &text);
    buf_append_str(&text, " WHERE ctid = ANY (ARRAY(SELECT ctid FROM ");
    pg_table(s, table, &text);
    buf_append_str(&text, " WHERE ");
    pg_where_ns(s, table, &text);
    /* No index fits what is compared once more: a planner that believed the table to be
     * small read all that it has of the namespace at every step. */
    buf_append_str(&text, " LIMIT $2)) AND ns IS NOT DISTINCT FROM $1 RETURNING 1)"
                          " SELECT count(*) FROM d");
    struct pg_call *c = pg_add(p, pg_sql_of(s, &text), 2);
    if (c)
        c->tag = 1;
    pg_arg_bytes(p, c, ns);
    pg_arg_i64(p, c, most);
}

static void add_words(struct pg_store *s, struct pg_pipe *p, const char *words)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, words);
    (void)pg_add(p, pg_sql_of(s, &text), 0);
}

belay_rc pg_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                  struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct pg_store *s = (struct pg_store *)d;
    const struct schema *schema = s->config.schema;
    int64_t most = limit > INT32_MAX ? INT32_MAX : (int64_t)limit, gone = 0;
    enum pg_reached reached;
    struct pg_conn *c = NULL;
    struct pg_pipe p;

    belay_rc rc = pg_take(s, &c, err);
    if (rc)
        return rc;
    /* Each table gives up to the limit: a step takes a bounded multiple of it. */
    pg_pipe_init(&p, &arena);
    add_words(s, &p, "BEGIN ISOLATION LEVEL READ COMMITTED");
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        add_erase(s, &p, shapes[i].table, ns,
                  most / shapes[i].weight > 0 ? most / shapes[i].weight : 1);
    for (size_t i = 0; i < schema->n_types; i++)
        add_erase(s, &p, schema->types[i]->name, ns, most);
    pg_add_sync(&p);
    add_words(s, &p, "COMMIT");
    rc = pg_exchange(c, &p, &reached, err);
    const struct pg_call *failed = rc ? NULL : pg_failed(&p);
    if (failed)
        rc = pg_call_error(failed, "erase", err);
    for (const struct pg_call *k = p.first; k && rc == BELAY_OK; k = k->next)
        gone += k->tag == 1 ? pg_i64(k->result, 0, 0) : 0;
    *more = gone > 0;
    pg_pipe_clear(&p);
    pg_give_back(s, c);
    return rc;
}

/* Below the shapes there is the server, which looks after its own files; what can be
 * wrong from here is a table or column that is missing. */
belay_rc pg_check(struct driver *d, finding_report *report, void *arg,
                  struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;
    struct belay_error why = { .code = 0 };
    struct pg_conn *c = NULL;
    belay_rc rc = pg_take(s, &c, err);

    if (rc)
        return rc;
    rc = pg_make_schema(s, c, &why);
    if (rc == BELAY_UNSUPPORTED_FORMAT) {
        report(arg, &(struct finding){ .level = FINDING_BAD,
                                       .what = "schema",
                                       .message = why.message });
        rc = BELAY_OK;
    } else if (rc && err) {
        *err = why;
    }
    pg_give_back(s, c);
    return rc;
}
