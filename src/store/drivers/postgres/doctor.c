/* How the server is doing, in sentences. */
#include <stdio.h>

#include "store/drivers/postgres/impl.h"

struct telling {
    struct pg_store *s;
    struct pg_conn *c;
    finding_report *report;
    void *arg;
};

static void tell(const struct telling *t, enum finding_level level, const char *what,
                 const char *message)
{
    t->report(t->arg,
              &(struct finding){ .level = level, .what = what, .message = message });
}

/* The first field of the first row of a query whose $1, if it has one, is the schema;
 * empty when there is none. */
static belay_rc ask(const struct telling *t, const char *query, bool schema,
                    char out[200], struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    enum pg_reached reached;
    struct pg_pipe p;

    out[0] = '\0';
    pg_pipe_init(&p, &arena);
    buf_append_str(&text, query);
    struct pg_call *call = pg_add(&p, pg_sql_of(t->s, &text), 1);
    if (schema)
        pg_arg_bytes(&p, call, bytes_str(t->s->schema));
    belay_rc rc = pg_exchange(t->c, &p, &reached, err);
    if (rc == BELAY_OK && !call->ok)
        rc = pg_call_error(call, "doctor", err);
    if (rc == BELAY_OK && PQntuples(call->result) > 0)
        (void)snprintf(out, 200, "%.*s", PQgetlength(call->result, 0, 0),
                       PQgetvalue(call->result, 0, 0));
    pg_pipe_clear(&p);
    return rc;
}

/* What is looked at: a query that says something when there is something to say. */
static const struct {
    const char *what;
    enum finding_level level; /* when the query answers */
    bool schema;
    const char *query;
    const char *fine; /* NULL: nothing to say then */
} questions[] = {
    { "server", FINDING_OK, false,
      "SELECT 'PostgreSQL ' || current_setting('server_version') || ', database ' ||"
      " current_database()",
      NULL },
    { "durability", FINDING_WARN, false,
      "SELECT string_agg(name || ' = ' || setting, ', ') FROM pg_settings WHERE name IN"
      " ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' HAVING"
      " count(*) > 0",
      "every acknowledged commit is on disk" },
    { "long_transactions", FINDING_WARN, false,
      "SELECT 'pid ' || pid || ' (' || coalesce(usename, '?') || ', ' ||"
      " coalesce(nullif(application_name, ''), 'no name') || ') has had a transaction"
      " open for ' || extract(epoch FROM now() - xact_start)::bigint || ' s: feeds wait"
      " for it, and nothing it might see can be vacuumed' FROM pg_stat_activity WHERE"
      " backend_xid IS NOT NULL AND now() - xact_start > interval '5 s' AND pid <>"
      " pg_backend_pid() ORDER BY xact_start LIMIT 1",
      "no transaction has been writing for long" },
    { "bloat", FINDING_WARN, true,
      "SELECT relname || ' has ' || n_dead_tup || ' dead rows beside ' || n_live_tup ||"
      " ' live ones: is autovacuum on?' FROM pg_stat_user_tables WHERE schemaname = $1"
      " AND n_dead_tup > 10000 AND n_dead_tup > 2 * n_live_tup ORDER BY n_dead_tup DESC"
      " LIMIT 1",
      "dead rows are vacuumed" },
    { "connections", FINDING_OK, false,
      "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client"
      " backend') || ' of ' || current_setting('max_connections') || ' are used'",
      NULL },
    { "recovery", FINDING_BAD, false,
      "SELECT 'the server is a replica and takes no writes' WHERE pg_is_in_recovery()",
      NULL },
};

belay_rc pg_doctor(struct driver *d, finding_report *report, void *arg,
                   struct belay_error *err)
{
    struct telling t = { .s = (struct pg_store *)d, .report = report, .arg = arg };
    belay_rc rc = pg_take(t.s, &t.c, err);
    char answer[200];

    for (size_t i = 0; i < COUNT_OF(questions) && rc == BELAY_OK; i++) {
        rc = ask(&t, questions[i].query, questions[i].schema, answer, err);
        if (rc == BELAY_OK && answer[0])
            tell(&t, questions[i].level, questions[i].what, answer);
        else if (rc == BELAY_OK && questions[i].fine)
            tell(&t, FINDING_OK, questions[i].what, questions[i].fine);
    }
    if (t.c)
        pg_give_back(t.s, t.c);
    return rc;
}
