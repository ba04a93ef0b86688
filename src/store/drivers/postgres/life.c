/* Which life of the server a connection belongs to: its timeline.  A promotion and a
 * recovery to a point in time begin a new one; a restart does not, and loses nothing. */
#include <stdio.h>

#include "store/drivers/postgres/impl.h"

/* A server that is only read has none of its own. */
static const char timeline_sql[] =
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN"
    " substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";

static void enter_life(struct pg_conn *c, struct bytes life)
{
    struct pg_store *s = c->store;

    pthread_mutex_lock(&s->life_mutex);
    if (life.len > 0 && life.len < sizeof(s->life) &&
        !bytes_eq(life, bytes_str(s->life))) {
        memcpy(s->life, life.ptr, life.len);
        s->life[life.len] = '\0';
        atomic_fetch_add(&s->generation, 1);
    }
    c->generation = atomic_load(&s->generation);
    pthread_mutex_unlock(&s->life_mutex);
}

belay_rc pg_learn_life(struct pg_conn *c, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    enum pg_reached reached;
    struct bytes life = { .ptr = NULL };
    struct pg_pipe p;

    pg_pipe_init(&p, &arena);
    buf_append_str(&text, timeline_sql);
    struct pg_call *call = pg_add(&p, pg_sql_of(c->store, &text), 0);
    belay_rc rc = pg_exchange(c, &p, &reached, err);
    if (rc == BELAY_OK && !call->ok)
        rc = pg_call_error(call, "the server's timeline", err);
    if (rc == BELAY_OK && !pg_bytes(call->result, 0, 0, &arena, &life))
        rc = err_no_memory(err, "a connection");
    if (rc == BELAY_OK)
        enter_life(c, life);
    pg_pipe_clear(&p);
    return rc;
}

belay_rc pg_life(struct driver *d, void *attempt, struct bytes known,
                 struct lineage *out, struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;

    (void)attempt;
    (void)known; /* a connection ends with its server */
    (void)err;
    pthread_mutex_lock(&s->life_mutex);
    (void)snprintf(out->life, sizeof(out->life), "%s%s", s->life[0] ? "timeline " : "",
                   s->life);
    pthread_mutex_unlock(&s->life_mutex);
    return BELAY_OK;
}

/* Where a crash may take back what was acknowledged, or nobody can say which server
 * answers, nothing is kept (R2). */
uint64_t pg_era(struct driver *d, void *attempt)
{
    const struct pg_store *s = (const struct pg_store *)d;
    const struct pg_attempt *at = attempt;

    return s->pooler || s->durability != DURABILITY_DURABLE ? 0 : at->generation + 1;
}
