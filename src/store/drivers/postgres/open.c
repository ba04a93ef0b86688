#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#include "store/drivers/postgres/impl.h"
#include "store/wake.h"

#define POOL_DEFAULT 16
#define TIMEOUT_DEFAULT_MS 30000
#define RETRY_DEFAULT_MS 50
#define BASE_DEFAULT 2
#define JITTER_DEFAULT 50

static bool is_schema_name(const char *name)
{
    size_t n = strlen(name);

    if (n < 1 || n > 63 || !(islower((unsigned char)name[0]) || name[0] == '_'))
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!islower(c) && !isdigit(c) && c != '_')
            return false;
    }
    return true;
}

static const char *keep(struct pg_store *s, const char *text)
{
    struct bytes kept;

    return text && arena_copy(&s->arena, bytes_str(text), &kept)
               ? (const char *)kept.ptr
               : NULL;
}

/* --- parameters --- */

static bool is_list(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
           strcmp(keyword, "port") == 0;
}

static unsigned list_length(const char *list)
{
    unsigned n = 1;

    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* Element i of a list with commas; a list of one counts for all. */
static const char *keep_nth(struct pg_store *s, const char *list, unsigned i)
{
    struct bytes kept;

    for (unsigned skip = list_length(list) > 1 ? i : 0; skip > 0; skip--)
        list += strcspn(list, ",") + (strchr(list, ',') != NULL);
    return arena_copy(&s->arena, bytes_of(list, strcspn(list, ",")), &kept)
               ? (const char *)kept.ptr
               : NULL;
}

/* libpq, when it does not block, stays with a host that does not answer.  So hosts are
 * tried one by one, each with parameters of its own. */
static bool keep_host(struct pg_store *s, const struct postgres_options *o, size_t n,
                      unsigned host)
{
    const char **values = arena_zalloc(&s->arena, n + 3, sizeof(*values));

    if (!values)
        return false;
    s->values[host] = values;
    for (size_t i = 0; i < n; i++) {
        values[i] = is_list(o->keywords[i]) ? keep_nth(s, o->values[i], host)
                                            : keep(s, o->values[i]);
        if (!values[i])
            return false;
    }
    values[n] = "UTF8";
    values[n + 1] = "belay";
    return true;
}

/* connect_timeout, in seconds: libpq leaves it to those who do not block. */
static belay_rc take_connect_timeout(struct pg_store *s,
                                     const struct postgres_options *o,
                                     struct belay_error *err)
{
    int64_t seconds = 0;

    s->connect_timeout_us = s->request_timeout_us;
    for (size_t i = 0; o->keywords[i]; i++) {
        if (strcmp(o->keywords[i], "connect_timeout") != 0)
            continue;
        if (!bytes_to_i64(bytes_str(o->values[i]), &seconds) || seconds > INT32_MAX) {
            belay_rc rc = err_reason(err, BELAY_INVALID, "option",
                                     "postgres: connect_timeout: must be a whole "
                                     "number of seconds");
            err_entity(err, bytes_str("connect_timeout"));
            return rc;
        }
        if (seconds > 0)
            s->connect_timeout_us = seconds * 1000000;
    }
    return BELAY_OK;
}

/* The caller's parameters, and those that are ours. */
static bool keep_params(struct pg_store *s, const struct postgres_options *o)
{
    size_t n = 0;

    s->n_hosts = 1;
    for (; o->keywords[n]; n++) {
        if (strcmp(o->keywords[n], "host") == 0 ||
            strcmp(o->keywords[n], "hostaddr") == 0)
            s->n_hosts = list_length(o->values[n]);
        s->own_options |= strcmp(o->keywords[n], "options") == 0;
    }
    s->keywords = arena_zalloc(&s->arena, n + 3, sizeof(*s->keywords));
    s->values = arena_zalloc(&s->arena, s->n_hosts, sizeof(*s->values));
    if (!s->keywords || !s->values)
        return false;
    for (size_t i = 0; i < n; i++) {
        s->keywords[i] = keep(s, o->keywords[i]);
        if (!s->keywords[i])
            return false;
    }
    s->keywords[n] = "client_encoding";
    s->keywords[n + 1] = "fallback_application_name";
    for (unsigned host = 0; host < s->n_hosts; host++) {
        if (!keep_host(s, o, n, host))
            return false;
    }
    return true;
}

static belay_rc take_options(struct pg_store *s, const struct postgres_options *o,
                             struct belay_error *err)
{
    const char *schema = o->schema ? o->schema : "belay";

    if (!is_schema_name(schema)) {
        belay_rc rc = err_reason(err, BELAY_INVALID, "option",
                                 "postgres: schema: must be 1 to 63 of a-z, 0-9 and _, "
                                 "beginning with a letter or _");
        err_entity(err, bytes_str("schema"));
        return rc;
    }
    s->schema = keep(s, schema);
    s->listen = keep(s, o->listen);
    s->pooler = o->pooler;
    s->relaxed = o->relaxed;
    s->pool_max = o->pool > 0 ? o->pool : POOL_DEFAULT;
    s->retries = o->retries;
    s->request_timeout_us =
        1000 * (o->request_timeout_ms > 0 ? o->request_timeout_ms : TIMEOUT_DEFAULT_MS);
    s->retry_first_us =
        1000 * (o->retry_first_ms > 0 ? o->retry_first_ms : RETRY_DEFAULT_MS);
    s->retry_base = o->retry_base > 0 ? o->retry_base : BASE_DEFAULT;
    s->retry_jitter = o->retry_jitter >= 0 ? (unsigned)o->retry_jitter : JITTER_DEFAULT;
    for (size_t i = 0; i < s->config.schema->n_types; i++) {
        if (strcmp(s->config.schema->types[i]->name, "epoch") == 0)
            s->epoch = s->config.schema->types[i];
    }
    if (!s->schema || (o->listen && !s->listen) || !keep_params(s, o))
        return err_no_memory(err, "a store");
    return take_connect_timeout(s, o, err);
}

/* --- the server --- */

/* One setting, as the server tells it; empty when it cannot be told. */
static belay_rc setting(struct pg_store *s, struct pg_conn *c, const char *name,
                        char out[64], struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    enum pg_reached reached;
    struct pg_pipe p;

    out[0] = '\0';
    pg_pipe_init(&p, &arena);
    buf_append_str(&text, "SELECT current_setting($1, true)");
    struct pg_call *call = pg_add(&p, pg_sql_of(s, &text), 1);
    pg_arg_bytes(&p, call, bytes_str(name));
    belay_rc rc = pg_exchange(c, &p, &reached, err);
    if (rc == BELAY_OK && call->ok && PQgetlength(call->result, 0, 0) < 64)
        memcpy(out, PQgetvalue(call->result, 0, 0),
               (size_t)PQgetlength(call->result, 0, 0) + 1);
    pg_pipe_clear(&p);
    return rc;
}

/* X1: what an acknowledgement is worth is read back. */
static belay_rc check_durability(struct pg_store *s, struct pg_conn *c,
                                 struct belay_error *err)
{
    static const char *const names[] = { "fsync", "full_page_writes",
                                         "synchronous_commit" };
    char value[64];

    s->durability = DURABILITY_DURABLE;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        belay_rc rc = setting(s, c, names[i], value, err);
        if (rc)
            return rc;
        if (strcmp(value, "off") != 0 && value[0] != '\0')
            continue;
        s->durability = DURABILITY_RELAXED;
        if (!s->relaxed)
            return err_reason(
                err, BELAY_UNAVAILABLE, "durability",
                "postgres: the server has %s off, so commits may be lost; "
                "durability=relaxed accepts that",
                names[i]);
    }
    return BELAY_OK;
}

static belay_rc check_server(struct pg_conn *c, struct belay_error *err)
{
    const char *encoding = PQparameterStatus(c->pg, "server_encoding");
    int version = PQserverVersion(c->pg);

    if (version < 130000) {
        belay_rc rc =
            err_set(err, BELAY_UNSUPPORTED_FORMAT,
                    "postgres: server %d: Belay needs 13 or later", version / 10000);
        err_numbers(err, 13, version / 10000);
        return rc;
    }
    if (encoding && strcmp(encoding, "UTF8") != 0)
        return err_set(err, BELAY_UNSUPPORTED_FORMAT,
                       "postgres: the database is in %s, not in UTF8", encoding);
    return BELAY_OK;
}

/* Only the owner can make what is missing, and does so by opening the store. */
static belay_rc make_schema(struct pg_store *s, struct pg_conn *c,
                            struct belay_error *err)
{
    belay_rc rc = pg_make_schema(s, c, err);

    if (rc != BELAY_DENIED)
        return rc;
    return err_reason(
        err, BELAY_DENIED, "schema",
        "postgres: role %s may not use the schema %s, or not make what it "
        "lacks: open the store once as its owner (belay doctor), then "
        "grant the role what docs/postgres.md says",
        PQuser(c->pg), s->schema);
}

static belay_rc open_store(struct pg_store *s, struct belay_error *err)
{
    struct pg_conn *c = NULL;
    belay_rc rc = pg_take(s, &c, err);

    if (rc)
        return rc;
    rc = check_server(c, err);
    if (rc == BELAY_OK)
        rc = check_durability(s, c, err);
    if (rc == BELAY_OK)
        rc = make_schema(s, c, err);
    pg_give_back(s, c);
    if (rc == BELAY_OK)
        rc = wake_hub_open(&s->d.hub, err);
    return rc ? rc : pg_listener_open(s, err);
}

/* --- the driver --- */

static belay_rc pg_begin(struct driver *d, void *attempt, struct bytes ns,
                         struct belay_error *err)
{
    (void)err;
    *(struct pg_attempt *)attempt = (struct pg_attempt){
        .ns = ns, .generation = atomic_load(&((struct pg_store *)d)->generation)
    };
    return BELAY_OK;
}

/* What holds picks is rolled back (rule 7). */
static void pg_end(struct driver *d, void *attempt)
{
    struct pg_attempt *at = attempt;

    if (!at->conn)
        return;
    if (at->conn->open_txn && !at->conn->bad &&
        pg_run(at->conn, "ROLLBACK", "letting go", NULL) == BELAY_OK)
        at->conn->open_txn = false;
    pg_give_back((struct pg_store *)d, at->conn);
    at->conn = NULL;
}

static enum durability pg_durability(struct driver *d)
{
    return ((struct pg_store *)d)->durability;
}

static void pg_close(struct driver *d)
{
    struct pg_store *s = (struct pg_store *)d;

    pg_listener_close(s);
    pg_drop_idle(s);
    if (s->d.hub)
        wake_hub_close(s->d.hub);
    pg_texts_release(&s->texts);
    pg_places_release(&s->places);
    pg_fronts_release(&s->fronts);
    (void)pthread_mutex_destroy(&s->pool_mutex);
    (void)pthread_cond_destroy(&s->pool_cond);
    server_time_release(&s->clock);
    (void)pthread_mutex_destroy(&s->life_mutex);
    pg_line_release(&s->readers);
    pg_line_release(&s->committers);
    arena_release(&s->arena);
    free(s);
}

static const struct driver_ops ops = {
    .name = "postgres",
    .version = DRIVER_VERSION,
    .caps = DRIVER_LOSES_REPLIES | DRIVER_FAR,
    .attempt_size = sizeof(struct pg_attempt),
    .begin = pg_begin,
    .read = pg_read,
    .commit = pg_commit,
    .end = pg_end,
    .notify = pg_notify,
    .now_ms = pg_now_ms,
    .lineage = pg_life,
    .era = pg_era,
    .walk = pg_walk,
    .erase = pg_erase,
    .check = pg_check,
    .doctor = pg_doctor,
    .durability = pg_durability,
    .close = pg_close,
};

/* Those who wait do so until a time of the monotonic clock. */
static void init_pool_cond(struct pg_store *s)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->pool_cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

/* Few are faster than many: what goes together costs the server less.  One alone would
 * always be a step ahead of those that it made wait. */
static unsigned leaders_of(unsigned pool)
{
    return pool / 8 > 2 ? pool / 8 : 2;
}

belay_rc postgres_open(struct driver **out, const struct postgres_options *options,
                       const struct driver_config *config, struct belay_error *err)
{
    struct pg_store *s = calloc(1, sizeof(*s));

    if (!s)
        return err_no_memory(err, "a store");
    s->d = (struct driver){ .ops = &ops,
                            .caps = ops.caps,
                            .attempt_size = ops.attempt_size };
    s->config = *config;
    pg_places_init(&s->places);
    pg_fronts_init(&s->fronts);
    (void)pthread_mutex_init(&s->texts.mutex, NULL);
    (void)pthread_mutex_init(&s->pool_mutex, NULL);
    init_pool_cond(s);
    server_time_init(&s->clock);
    (void)pthread_mutex_init(&s->life_mutex, NULL);
    belay_rc rc = take_options(s, options, err);
    pg_line_init(&s->readers, leaders_of(s->pool_max));
    pg_line_init(&s->committers, leaders_of(s->pool_max));
    if (rc == BELAY_OK)
        rc = open_store(s, err);
    if (rc) {
        pg_close(&s->d);
        return rc;
    }
    *out = &s->d;
    return BELAY_OK;
}
