/* Group commit: bodies of many callers in one write transaction, one fsync, then all
 * are answered.
 *
 * Who finds nobody leading leads: it takes the queue as it stands, runs every body in
 * one transaction and commits.  One of the group waits for the disk and answers it; the
 * next group runs meanwhile, and is answered after a later sync, so that nobody is told
 * what rests on something that may yet be lost.  While a group runs the queue grows, so
 * groups are as large as the load and a lone caller waits for nobody.  After some turns
 * the leader hands over to the oldest in the queue.
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
    belay_rc rc = conn_run_plain(s->writer, SQL_ROLLBACK, "roll back", err);
    conn_rows_end(s->writer, false);
    return rc;
}

static belay_rc turn_begin(struct sqlite_store *s, struct belay_error *err)
{
    struct turn *t = &s->turn;

    t->wrote = t->broken = t->alone = false;
    t->bytes = 0;
    /* One that could not be taken back for want of memory is taken back now. */
    belay_rc rc = group_roll_back(s, err);
    if (!rc)
        rc = conn_run_plain(s->writer, SQL_BEGIN_WRITE, "begin", err);
    if (!rc)
        conn_rows_begin(s->writer);
    return rc;
}

static void turn_roll_back(struct sqlite_store *s)
{
    struct belay_error ignored = { .code = 0 };
    belay_rc rc = group_roll_back(s, &ignored);

    conn_rows_end(s->writer, false); /* also when SQLite did it by itself */
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
    belay_rc rc = wal_commit(s, wrote, err);

    conn_rows_end(s->writer, rc == BELAY_OK);
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
        if (rc)
            m->err = *err;
    }
}

/* Runs one member in a transaction of its own. */
static void run_alone(struct sqlite_store *s, struct member *m)
{
    m->rc = turn_begin(s, &m->err);
    if (m->rc)
        return;
    s->turn.alone = true;
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
    m->queued = true;
    *g->last = m;
    g->last = &m->next;
}

/* Takes the oldest members out of the queue. */
static struct member *take_members(struct group *g)
{
    struct member *first = g->first;
    struct member **end = &g->first;

    for (unsigned n = 0; *end && n < GROUP_BODIES_MAX; n++) {
        (*end)->queued = false;
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
        (*end)->queued = true;
    *end = g->first;
    if (!g->first)
        g->last = end;
    g->first = rest;
}

/* Tells the members.  They live on their callers' stacks and are gone once they know. */
static void answer_members(struct member *first, const struct member *self)
{
    for (struct member *next, *m = first; m; m = next) {
        next = m->next;
        if (m != self)
            parker_post(&m->parker, MEMBER_ANSWERED);
    }
}

/* Lets the oldest in the queue lead. */
static void hand_over(struct group *g)
{
    pthread_mutex_lock(&g->mutex);
    struct member *next = g->first;
    g->led = next != NULL;
    if (next)
        next->queued = false; /* it stays in the queue, but cannot leave any more */
    pthread_mutex_unlock(&g->mutex);
    if (next)
        parker_post(&next->parker, MEMBER_LEADS);
}

/* Waits for the disk, then tells the members; also those that only looked, since they may
 * have seen what was not on it yet. */
static void answer_durably(struct sqlite_store *s, struct member *first,
                           const struct member *self, struct wal_point seen)
{
    struct belay_error err = { .code = 0 };

    if (wal_sync(s, seen, &err)) {
        (void)err_reason(&err, BELAY_UNKNOWN_OUTCOME, "poisoned",
                         "commit: the disk failed; open the store again to see what it "
                         "holds");
        answer_all(first, BELAY_UNKNOWN_OUTCOME, &err);
    }
    answer_members(first, self);
}

/* What a turn leaves behind. */
enum answer { OPEN, DELEGATED, ANSWERED };
struct turn_end {
    enum answer answer;
    struct member *first;  /* who was run */
    struct wal_point seen; /* up to which commit that must be on the disk */
    bool more;             /* others have come */
};

/* Leaves the group to one of its members, not the leader; false: it has no other. */
static bool delegate(const struct turn_end *end, const struct member *self)
{
    struct member *m = end->first != self ? end->first : end->first->next;

    if (!m)
        return false;
    m->group = end->first;
    m->seen = end->seen;
    parker_post(&m->parker, MEMBER_SYNCS);
    return true;
}

/* Under the file lock, after a turn.  A checkpoint takes longer than they should wait. */
static void end_turn(struct sqlite_store *s, const struct member *self,
                     struct turn_end *end)
{
    bool due = !atomic_load(&s->poisoned) && wal_is_due(s);

    end->seen = wal_seen(s);
    if ((end->more || due) && delegate(end, self))
        end->answer = DELEGATED;
    if (!due)
        return;
    if (end->answer == OPEN) {
        answer_durably(s, end->first, self, end->seen);
        end->answer = ANSWERED;
    }
    wal_after_commit(s);
}

/* Runs one turn.  The members are taken when the lock between the processes is held, not
 * before: whoever comes while it is waited for goes along. */
static void take_turn(struct sqlite_store *s, const struct member *self,
                      struct turn_end *end)
{
    struct group *g = &s->group;
    struct belay_error err = { .code = 0 };
    struct member *rest = NULL;
    belay_rc rc = atomic_load(&s->poisoned) ? store_poisoned(&err)
                                            : file_lock_take(&s->lock, &err);

    *end = (struct turn_end){ .answer = OPEN };
    pthread_mutex_lock(&g->mutex);
    end->first = take_members(g);
    pthread_mutex_unlock(&g->mutex);
    if (rc) {
        answer_all(end->first, rc, &err);
        return;
    }
    run_turn(s, end->first, &rest);
    pthread_mutex_lock(&g->mutex);
    put_back(g, rest);
    end->more = g->first != NULL;
    pthread_mutex_unlock(&g->mutex);
    end_turn(s, self, end);
    file_lock_release(&s->lock);
}

/* Leads while there is something to do, but not for ever.  The store's pages are in this
 * processor's cache, and waking another leader takes as long as some bodies: so one of the
 * group waits for the disk, and the leader goes on. */
static void lead(struct sqlite_store *s, struct member *self)
{
    struct turn_end end;
    bool awaited = false; /* another one answers us */

    for (unsigned turns = 1;; turns++) {
        take_turn(s, self, &end);
        if (turns == 1)
            awaited = end.answer == DELEGATED;
        if (end.answer == OPEN || !end.more || turns == LEADER_TURNS)
            break;
    }
    hand_over(&s->group);
    if (end.answer == OPEN)
        answer_durably(s, end.first, self, end.seen);
    while (awaited)
        awaited = !(parker_receive(&self->parker, &s->config.clock, DEADLINE_NONE) &
                    MEMBER_ANSWERED);
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

/* Takes a member that is still queued out of the queue; false: it is too late. */
static bool leave(struct group *g, struct member *m)
{
    pthread_mutex_lock(&g->mutex);
    bool queued = m->queued;
    if (queued)
        unlink_member(g, m);
    pthread_mutex_unlock(&g->mutex);
    return queued;
}

/* Waits until the member leads (*leads) or is answered, or leaves the queue: a deadline or
 * a cancel takes it only while it is queued. */
static belay_rc wait_for_turn(struct sqlite_store *s, struct member *m, bool *leads,
                              struct belay_error *err)
{
    int64_t deadline_us = m->job->deadline_us;

    for (;;) {
        uint32_t told = parker_receive(&m->parker, &s->config.clock, deadline_us);
        *leads = told & MEMBER_LEADS;
        if (told & MEMBER_SYNCS)
            answer_durably(s, m->group, m, m->seen);
        if (told & (MEMBER_LEADS | MEMBER_ANSWERED | MEMBER_SYNCS))
            return BELAY_OK;
        bool cancelled = cancel_is_set(m->job->cancel);
        if (told && !cancelled)
            continue;
        if (leave(&s->group, m))
            return cancelled
                       ? err_set(err, BELAY_CANCELLED, "write: cancelled by the caller")
                       : err_set(err, BELAY_TIMEOUT, "write: its deadline has passed");
        deadline_us = DEADLINE_NONE; /* it is being run: its answer will come */
    }
}

belay_rc group_submit(struct driver *d, struct driver_job *job, struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct group *g = &s->group;
    struct member m; /* its error is filled only if there is one */
    struct cancel_link link;
    belay_rc rc = BELAY_OK;

    m.job = job;
    m.parker = (struct parker){ 0 };
    m.rc = BELAY_OK;
    m.err.code = BELAY_OK;
    cancel_attach(job->cancel, &link, &m.parker);
    pthread_mutex_lock(&g->mutex);
    enqueue(g, &m);
    bool leads = !g->led;
    if (leads) {
        g->led = true;
        m.queued = false;
    }
    pthread_mutex_unlock(&g->mutex);

    if (!leads)
        rc = wait_for_turn(s, &m, &leads, err);
    if (!rc && leads)
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
                               enum trust trust, struct plan_result *result,
                               struct belay_error *err)
{
    if (turn_is_lost(s))
        return atomic_load(&s->poisoned)
                   ? store_poisoned(err)
                   : err_set(err, BELAY_UNAVAILABLE, "commit: rolled back by SQLite");
    belay_rc rc = plan_check(s->writer, plan, trust, result, err);

    if (rc || result->conflict || plan->n_effects == 0)
        return rc;
    s->turn.wrote = true;
    s->turn.applied++;
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
    p->rc = commit_in_turn(p->s, p->plan, TRUST_NOTHING, p->result, &p->err);
}

belay_rc group_commit(struct driver *d, void *attempt, const struct plan *plan,
                      struct plan_result *result, struct belay_error *err)
{
    struct sqlite_store *s = (struct sqlite_store *)d;
    struct belay_error local = { .code = 0 };
    const struct sqlite_attempt *a = attempt;

    if (!err)
        err = &local;
    bool fresh = a->writes && a->read_at == s->turn.applied + 1;
    if (group_in_turn(s))
        return commit_in_turn(s, plan,
                              !fresh          ? TRUST_NOTHING
                              : s->turn.alone ? TRUST_READS
                                              : TRUST_EFFECTS,
                              result, err);
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
