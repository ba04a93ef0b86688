#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/drivers/postgres/impl.h"

#define PAUSE_MAX_US ((int64_t)60000000)
#define PATIENCE_MIN_US ((int64_t)200000)

/* --- connections --- */

/* A pause of which a part is left to chance. */
static int64_t jittered(struct pg_store *s, int64_t pause_us)
{
    uint8_t chance = 128;

    if (random_bytes(&s->config.random, &chance, 1, NULL))
        chance = 128;
    return pause_us - pause_us * s->retry_jitter / 100 * chance / 255;
}

/* Again and again, unless somebody answers and does not want us, or there is no time for
 * another pause. */
static belay_rc connect_again(struct pg_store *s, int64_t deadline_us,
                              struct pg_conn **out, struct belay_error *err)
{
    struct belay_clock clock = clock_system();
    struct belay_error why = { .code = 0 };
    int64_t pause_us = s->retry_first_us;
    belay_rc rc = pg_connect_by(s, deadline_us, out, &why);

    for (unsigned i = 0;
         i < s->retries && rc == BELAY_UNAVAILABLE && why.reason[0] == '\0'; i++) {
        int64_t wait_us = jittered(s, pause_us);
        if (pg_mono_us() + wait_us >= deadline_us)
            break;
        clock.sleep_us(clock.arg, wait_us);
        pause_us *= s->retry_base;
        if (pause_us > PAUSE_MAX_US)
            pause_us = PAUSE_MAX_US;
        rc = pg_connect_by(s, deadline_us, out, &why);
    }
    if (rc && err)
        *err = why;
    return rc;
}

/* With the mutex held: whether one is idle or may be opened. */
static bool has_turn(const struct pg_store *s, bool hold)
{
    unsigned most_holders = s->pool_max > 1 ? s->pool_max - 1 : 1;
    unsigned most = s->n_holders < s->pool_max ? s->pool_max : s->pool_max + 1;

    return (!hold || s->n_holders < most_holders) && (s->idle || s->n_open < most);
}

/* A turn to use a connection: an idle one, or NULL to be opened; false: not in time. */
static bool wait_for_turn(struct pg_store *s, bool hold, int64_t deadline_us,
                          struct pg_conn **out)
{
    struct timespec until = { .tv_sec = deadline_us / 1000000,
                              .tv_nsec = deadline_us % 1000000 * 1000 };
    bool in_time = true;

    pthread_mutex_lock(&s->pool_mutex);
    s->n_hold_waiters += hold;
    while (!has_turn(s, hold) && in_time)
        in_time = pthread_cond_timedwait(&s->pool_cond, &s->pool_mutex, &until) == 0;
    s->n_hold_waiters -= hold;
    bool turn = has_turn(s, hold);
    *out = turn ? s->idle : NULL;
    if (*out)
        s->idle = (*out)->next;
    else
        s->n_open += turn;
    s->n_holders += turn && hold;
    pthread_mutex_unlock(&s->pool_mutex);
    return turn;
}

/* After a connection, or a turn to open one, was given up. */
static void end_turn(struct pg_store *s, struct pg_conn *c, bool hold)
{
    pthread_mutex_lock(&s->pool_mutex);
    s->n_holders -= hold;
    if (c) {
        c->next = s->idle;
        s->idle = c;
    } else {
        s->n_open--;
    }
    /* Those who want to hold and those who do not wait for different things. */
    if (s->n_hold_waiters > 0)
        pthread_cond_broadcast(&s->pool_cond);
    else
        pthread_cond_signal(&s->pool_cond);
    pthread_mutex_unlock(&s->pool_mutex);
}

/* Who comes soon after somebody who has waited in vain for the server does not wait as
 * long again: a call that has to find out what became of its commit tries ten times. */
static belay_rc connect_patiently(struct pg_store *s, int64_t deadline_us,
                                  struct pg_conn **out, struct belay_error *err)
{
    int64_t now_us = pg_mono_us(), patience_us = s->request_timeout_us / 10;

    if (patience_us < PATIENCE_MIN_US)
        patience_us = PATIENCE_MIN_US;
    pthread_mutex_lock(&s->pool_mutex);
    bool silent = now_us < s->silent_until_us;
    pthread_mutex_unlock(&s->pool_mutex);
    if (silent && now_us + patience_us < deadline_us)
        deadline_us = now_us + patience_us;
    belay_rc rc = connect_again(s, deadline_us, out, err);
    now_us = pg_mono_us();
    if (rc != BELAY_UNAVAILABLE || silent || now_us < deadline_us)
        return rc;
    pthread_mutex_lock(&s->pool_mutex);
    s->silent_until_us = now_us + s->request_timeout_us;
    pthread_mutex_unlock(&s->pool_mutex);
    return rc;
}

static belay_rc take(struct pg_store *s, bool hold, struct pg_conn **out,
                     struct belay_error *err)
{
    int64_t deadline_us = pg_mono_us() + s->request_timeout_us;
    struct pg_conn *c = NULL;

    if (!wait_for_turn(s, hold, deadline_us, &c))
        return err_reason(err, BELAY_UNAVAILABLE, "pool",
                          "postgres: all connections (pool=%u) were in use for %lld ms",
                          s->pool_max, (long long)(s->request_timeout_us / 1000));
    belay_rc rc = c ? BELAY_OK : connect_patiently(s, deadline_us, &c, err);
    if (rc) {
        end_turn(s, NULL, hold);
        return rc;
    }
    c->holder = hold;
    *out = c;
    return BELAY_OK;
}

belay_rc pg_take(struct pg_store *s, struct pg_conn **out, struct belay_error *err)
{
    return take(s, false, out, err);
}

belay_rc pg_take_for_hold(struct pg_store *s, struct pg_conn **out,
                          struct belay_error *err)
{
    return take(s, true, out, err);
}

/* One that is in the middle of something is nobody else's. */
void pg_give_back(struct pg_store *s, struct pg_conn *c)
{
    if (!c)
        return;
    bool bad = c->bad || c->open_txn || PQstatus(c->pg) != CONNECTION_OK ||
               PQtransactionStatus(c->pg) != PQTRANS_IDLE;
    bool holder = c->holder;

    if (bad)
        pg_disconnect(c);
    end_turn(s, bad ? NULL : c, holder);
}

void pg_drop_idle(struct pg_store *s)
{
    pthread_mutex_lock(&s->pool_mutex);
    struct pg_conn *idle = s->idle;
    s->idle = NULL;
    for (const struct pg_conn *c = idle; c; c = c->next)
        s->n_open--;
    pthread_cond_broadcast(&s->pool_cond);
    pthread_mutex_unlock(&s->pool_mutex);
    while (idle) {
        struct pg_conn *next = idle->next;
        pg_disconnect(idle);
        idle = next;
    }
}

/* --- the server's time --- */

static const struct pg_sql *time_sql(struct pg_store *s)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text,
                   "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8");
    return pg_sql_of(s, &text);
}

struct pg_call *pg_ask_time(struct pg_store *s, struct pg_pipe *p,
                            int64_t *out_asked_us)
{
    *out_asked_us = pg_mono_us();
    return server_time_is_due(&s->clock, *out_asked_us) ? pg_add(p, time_sql(s), 0)
                                                        : NULL;
}

void pg_take_time(struct pg_store *s, const struct pg_call *c, int64_t asked_us)
{
    if (!c || !c->ok || PQntuples(c->result) != 1)
        return;
    server_time_take(&s->clock, pg_i64(c->result, 0, 0), asked_us, pg_mono_us());
}

/* A round trip for the time alone. */
static belay_rc sample(struct pg_store *s, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    enum pg_reached reached;
    struct pg_conn *c = NULL;
    struct pg_pipe p;

    belay_rc rc = pg_take(s, &c, err);
    if (rc)
        return rc;
    pg_pipe_init(&p, &arena);
    int64_t asked_us = pg_mono_us();
    struct pg_call *call = pg_add(&p, time_sql(s), 0);
    rc = pg_exchange(c, &p, &reached, err);
    if (rc == BELAY_OK && !call->ok)
        rc = pg_call_error(call, "the time", err);
    if (rc == BELAY_OK)
        pg_take_time(s, call, asked_us);
    pg_pipe_clear(&p);
    pg_give_back(s, c);
    return rc;
}

belay_rc pg_now_ms(struct driver *d, void *attempt, int64_t *out,
                   struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;
    belay_rc rc =
        server_time_is_old(&s->clock, pg_mono_us()) ? sample(s, err) : BELAY_OK;

    (void)attempt;
    if (rc == BELAY_OK)
        *out = server_time_now_ms(&s->clock, pg_mono_us());
    return rc;
}
