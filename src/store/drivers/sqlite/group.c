/* Group commit: bodies of many callers in one write transaction, one fsync, then all
 * are answered.
 *
 * Who finds nobody leading leads: it takes the queue as it stands, runs every body in
 * one transaction and commits.  While it waits for the disk the queue grows, so groups
 * are as large as the load and a lone caller waits for nobody.  A leader leads one turn
 * and hands over to the oldest in the queue.
 */
#include <string.h>

#include "store/drivers/sqlite/impl.h"

bool group_in_turn(const struct sqlite_store *s)
{
    return atomic_load(&s->turn.leader) == (uintptr_t)pthread_self();
}

/* --- one write transaction --- */

belay_rc group_roll_back(struct sqlite_store *s, struct belay_error *err)
{
    /* SQLite may have rolled back by itself already. */
    if (sqlite3_get_autocommit(s->writer->db))
        return BELAY_OK;
    return conn_run_plain(s->writer, SQL_ROLLBACK, "roll back", err);
}

static belay_rc turn_begin(struct sqlite_store *s, struct belay_error *err)
{
    struct turn *t = &s->turn;

    t->wrote = t->broken = false;
    t->bytes = 0;
    /* One that could not be taken back for want of memory is taken back now. */
    belay_rc rc = group_roll_back(s, err);
    return rc ? rc : conn_run_plain(s->writer, SQL_BEGIN_WRITE, "begin", err);
}

static void turn_roll_back(struct sqlite_store *s)
{
    struct belay_error ignored = { .code = 0 };
    belay_rc rc = group_roll_back(s, &ignored);

    if (rc && rc != BELAY_NO_MEMORY)
        atomic_store(&s->poisoned, true);
}

/* Whether nothing may be added to the transaction any more.  After some errors, of
 * reading too, SQLite takes it back by itself; what came then would be committed
 * statement by statement.  After a failure of the disk nothing is tried again (X5). */
static bool turn_is_lost(struct sqlite_store *s)
{
    if (atomic_load(&s->poisoned) || sqlite3_get_autocommit(s->writer->db))
        s->turn.broken = true;
    return s->turn.broken;
}

/* A COMMIT that fails may or may not be on the disk (X5): nobody is told that it is,
 * and nothing of it is tried again. */
static belay_rc turn_commit(struct sqlite_store *s, struct belay_error *err)
{
    bool wrote = s->turn.wrote;
    belay_rc rc = conn_run_plain(s->writer, SQL_COMMIT, "commit", err);

    if (!rc)
        return BELAY_OK;
    turn_roll_back(s);
    if (!wrote)
        return rc;
    atomic_store(&s->poisoned, true);
    struct belay_error why = *err;
    return err_reason(err, BELAY_UNKNOWN_OUTCOME, "poisoned",
                      "commit: open the store again to see what it holds: %.150s",
                      why.message);
}

/* --- a turn --- */

static void answer_all(struct member *first, belay_rc rc, const struct belay_error *err)
{
    for (struct member *m = first; m; m = m->next) {
        m->rc = rc;
        m->err = *err;
    }
}

/* Runs one member in a transaction of its own. */
static void run_alone(struct sqlite_store *s, struct member *m)
{
    m->alone = true;
    m->rc = turn_begin(s, &m->err);
    if (m->rc)
        return;
    m->job->run(m->job);
    if (!turn_is_lost(s)) {
        m->rc = turn_commit(s, &m->err);
        return;
    }
    turn_roll_back(s); /* and its own read or commit has told it why */
    if (atomic_load(&s->poisoned))
        m->rc = store_poisoned(&m->err);
}

/* Runs members until the group is large enough; *rest are those it did not come to. */
static void run_together(struct sqlite_store *s, struct member *first,
                         struct member **rest)
{
    struct belay_error err = { .code = 0 };
    struct member *m = first;
    struct member *last = NULL;
    belay_rc rc = turn_begin(s, &err);

    *rest = NULL;
    while (!rc && m && !turn_is_lost(s) && s->turn.bytes < GROUP_BYTES_MAX) {
        m->job->run(m->job);
        last = m;
        m = m->next;
    }
    if (!rc && turn_is_lost(s)) {
        /* Somebody's plan could not be applied.  All of it is taken back, and everybody
         * has another run alone, so that who is at fault hurts nobody else; unless it
         * is the disk. */
        turn_roll_back(s);
        for (m = first; m && !atomic_load(&s->poisoned); m = m->next)
            run_alone(s, m);
        if (m)
            answer_all(m, store_poisoned(&err), &err);
        return;
    }
    if (last) {
        last->next = NULL;
        *rest = m;
        rc = turn_commit(s, &err);
    }
    answer_all(first, rc, &err);
}

/* Under the file lock.  *rest are those it did not come to. */
static void run_turn(struct sqlite_store *s, struct member *first, struct member **rest)
{
    if (!s->path)
        pthread_mutex_lock(&s->readers_mutex); /* readers share the one connection */
    atomic_store(&s->turn.leader, (uintptr_t)pthread_self());
    run_together(s, first, rest);
    atomic_store(&s->turn.leader, 0);
    if (!s->path)
        pthread_mutex_unlock(&s->readers_mutex);
}

/* --- the queue --- */

static void enqueue(struct group *g, struct member *m)
{
    m->next = NULL;
    *g->last = m;
    g->last = &m->next;
}

/* Takes the oldest members out of the queue. */
static struct member *take_members(struct group *g)
{
    struct member *first = g->first;
    struct member **end = &g->first;

    for (unsigned n = 0; *end && n < GROUP_BODIES_MAX; n++) {
        (*end)->state = MEMBER_RUNNING;
        end = &(*end)->next;
    }
    g->first = *end;
    if (!g->first)
        g->last = &g->first;
    *end = NULL;
    return first;
}

/* Puts those that had no turn back, ahead of everybody who came later. */
static void put_back(struct group *g, struct member *rest)
{
    struct member **end = &rest;

    if (!rest)
        return;
    for (; *end; end = &(*end)->next)
        (*end)->state = MEMBER_QUEUED;
    *end = g->first;
    if (!g->first)
        g->last = end;
    g->first = rest;
}

/* Tells the members, and puts those that had no turn back.  Others' members live on their
 * stacks: once one is answered under the mutex it is not touched again. */
static void answer_members(struct group *g, struct member *first, struct member *rest,
                           const struct member *self)
{
    pthread_mutex_lock(&g->mutex);
    for (struct member *next, *m = first; m; m = next) {
        next = m->next;
        m->state = MEMBER_ANSWERED;
        if (m != self)
            parker_wake(&m->parker);
    }
    put_back(g, rest);
    pthread_mutex_unlock(&g->mutex);
}

static void hand_over(struct group *g)
{
    pthread_mutex_lock(&g->mutex);
    g->led = g->first != NULL;
    if (g->led) {
        g->first->state = MEMBER_LEADS;
        parker_wake(&g->first->parker);
    }
    pthread_mutex_unlock(&g->mutex);
}

/* Leads one turn.  The members are taken when the lock between the processes is held, not
 * before: whoever comes while it is waited for goes along.  They are answered before the
 * log is looked after: what they wrote is on the disk. */
static void lead(struct sqlite_store *s, struct member *self)
{
    struct group *g = &s->group;
    struct belay_error err = { .code = 0 };
    struct member *rest = NULL;
    belay_rc rc = atomic_load(&s->poisoned) ? store_poisoned(&err)
                                            : file_lock_take(&s->lock, &err);

    pthread_mutex_lock(&g->mutex);
    struct member *first = take_members(g);
    pthread_mutex_unlock(&g->mutex);
    if (rc)
        answer_all(first, rc, &err);
    else
        run_turn(s, first, &rest);
    answer_members(g, first, rest, self);
    if (!rc) {
        if (!atomic_load(&s->poisoned))
            wal_after_commit(s);
        file_lock_release(&s->lock);
    }
    hand_over(g);
}

static void unlink_member(struct group *g, struct member *m)
{
    struct member **at = &g->first;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (!m->next)
        g->last = at;
}

/* Waits until the member leads or is answered, or leaves the queue: a deadline or a
 * cancel takes it only while it is queued. */
static belay_rc wait_for_turn(struct sqlite_store *s, struct member *m,
                              struct belay_error *err)
{
    struct group *g = &s->group;
    int64_t deadline_us = m->job->deadline_us;
    belay_rc rc = BELAY_OK;
    bool waiting = true;

    while (waiting) {
        bool woken = parker_wait(&m->parker, &s->config.clock, deadline_us);
        pthread_mutex_lock(&g->mutex);
        bool cancelled = cancel_is_set(m->job->cancel);
        if (m->state == MEMBER_QUEUED && (cancelled || !woken)) {
            unlink_member(g, m);
            rc = cancelled
                     ? err_set(err, BELAY_CANCELLED, "write: cancelled by the caller")
                     : err_set(err, BELAY_TIMEOUT, "write: its deadline has passed");
        }
        waiting = !rc && (m->state == MEMBER_QUEUED || m->state == MEMBER_RUNNING);
        if (m->state == MEMBER_RUNNING)
            deadline_us = DEADLINE_NONE;
        pthread_mutex_unlock(&g->mutex);
    }
    return rc;
}

belay_rc group_submit(struct driver *d, struct driver_job *job, struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct group *g = &s->group;
    struct member m = { .job = job };
    struct cancel_link link;

    m.err.code = BELAY_OK;
    cancel_attach(job->cancel, &link, &m.parker);
    pthread_mutex_lock(&g->mutex);
    enqueue(g, &m);
    if (!g->led) {
        g->led = true;
        m.state = MEMBER_LEADS;
    }
    bool leads = m.state == MEMBER_LEADS;
    pthread_mutex_unlock(&g->mutex);

    belay_rc rc = leads ? BELAY_OK : wait_for_turn(s, &m, err);
    while (!rc && m.state == MEMBER_LEADS)
        lead(s, &m);
    cancel_detach(job->cancel, &link);
    if (!rc && m.rc) {
        rc = m.rc;
        if (err)
            *err = m.err;
    }
    return rc;
}

/* --- commits --- */

static belay_rc commit_in_turn(struct sqlite_store *s, const struct plan *plan,
                               struct plan_result *result, struct belay_error *err)
{
    if (turn_is_lost(s))
        return atomic_load(&s->poisoned)
                   ? store_poisoned(err)
                   : err_set(err, BELAY_UNAVAILABLE, "commit: rolled back by SQLite");
    belay_rc rc = plan_check(s->writer, plan, result, err);

    if (rc || result->conflict || plan->n_effects == 0)
        return rc;
    s->turn.wrote = true;
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        s->turn.bytes += sizeof(*e);
        if (e->kind == EFFECT_CHUNK_PUT)
            s->turn.bytes += e->chunk.data.len;
        if (e->kind == EFFECT_LOG_APPEND)
            s->turn.bytes += e->log.data.len;
        if (e->kind == EFFECT_FEED_APPEND)
            s->turn.bytes += e->feed.data.len;
        if (e->kind == EFFECT_INSERT || e->kind == EFFECT_PUT) {
            for (unsigned c = 0; c < e->row.ref.type->n_columns; c++)
                s->turn.bytes += e->row.v[c].b.len;
        }
    }
    rc = plan_apply(s->writer, plan, result, err);
    if (rc)
        s->turn.broken = true;
    return rc;
}

/* A commit outside a turn, as a turn of its own. */
struct plan_job {
    struct driver_job job;
    struct sqlite_store *s;
    const struct plan *plan;
    struct plan_result *result;
    belay_rc rc;
    struct belay_error err;
};

static void run_plan(struct driver_job *job)
{
    struct plan_job *p = (struct plan_job *)job;

    p->result->conflict = false;
    p->rc = commit_in_turn(p->s, p->plan, p->result, &p->err);
}

belay_rc group_commit(struct driver *d, void *attempt, const struct plan *plan,
                      struct plan_result *result, struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct belay_error local = { .code = 0 };

    (void)attempt;
    if (!err)
        err = &local;
    if (group_in_turn(s))
        return commit_in_turn(s, plan, result, err);
    struct plan_job p = { .job = { .run = run_plan, .deadline_us = DEADLINE_NONE },
                          .s = s,
                          .plan = plan,
                          .result = result };
    belay_rc rc = group_submit(d, &p.job, err);
    if (!rc && p.rc) {
        rc = p.rc;
        *err = p.err;
    }
    return rc;
}
