/* A plan in one round trip: everything, then a sync, then COMMIT.  What fails before the
 * sync makes the COMMIT a rollback.  A small one is a statement that commits by itself. */
#include <stdlib.h>

#include "store/drivers/postgres/impl.h"

struct commit {
    struct pg_store *s;
    struct pg_pipe pipe;
    const struct plan *plan;
    const struct pg_picks *picks;
    struct plan_result *result;
    struct pg_call **calls; /* by effect: the statement whose answer is the effect's */
    struct pg_call *end;    /* COMMIT; NULL: there is none */
};

static struct pg_call *add_text(struct commit *c, const char *words)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, words);
    return pg_add(&c->pipe, pg_sql_of(c->s, &text), 0);
}

static belay_rc fill(struct commit *c, bool in_txn, struct belay_error *err)
{
    enum pg_added added = PG_ADDED_ROWS;
    belay_rc rc = BELAY_OK;

    if (!in_txn)
        (void)add_text(c, "BEGIN ISOLATION LEVEL READ COMMITTED");
    rc = pg_add_rows(c->s, &c->pipe, c->plan, in_txn, &added, err);
    if (rc == BELAY_OK && added == PG_ADDED_ROWS) {
        pg_add_ranks(c->s, &c->pipe, c->plan, in_txn ? c->picks : NULL);
        rc = pg_add_rest(c->s, &c->pipe, c->plan, c->calls, err);
    }
    if (rc)
        return rc;
    c->result->told = pg_add_notice(c->s, &c->pipe, c->plan);
    if (added == PG_ADDED_WHOLE && !c->pipe.no_memory) {
        c->pipe.first = c->pipe.first->next; /* what BEGIN says is not needed */
        return BELAY_OK;
    }
    pg_add_sync(&c->pipe);
    c->end = add_text(c, "COMMIT");
    return c->pipe.no_memory ? err_no_memory(err, "a commit") : BELAY_OK;
}

#define UNIQUE_VIOLATION "23505"

/* What a statement complains about, sorted. */
enum complaint { CONFLICT, REFUSED, OTHER };

static enum complaint complaint_of(const struct pg_call *c)
{
    static const char *const conflicts[] = { PG_STATE_GUARD, "40001", "40P01",
                                             "55P03" };
    const char *state = pg_state(c);

    for (size_t i = 0; i < COUNT_OF(conflicts); i++) {
        if (strcmp(state, conflicts[i]) == 0)
            return CONFLICT;
    }
    if (strcmp(state, PG_STATE_REFUSED) == 0)
        return REFUSED;
    if (strcmp(state, UNIQUE_VIOLATION) != 0)
        return OTHER;
    const char *name = PQresultErrorField(c->result, PG_DIAG_CONSTRAINT_NAME);
    bool shape = name && (strcmp(name, "belay_rank_place") == 0 ||
                          strcmp(name, "belay_log_seq") == 0);
    return shape ? REFUSED : CONFLICT;
}

/* The guard a conflict is about: the number in the message, or the statement's own. */
static size_t failed_guard(const struct commit *c, const struct pg_call *call)
{
    const char *message = PQresultErrorField(call->result, PG_DIAG_MESSAGE_PRIMARY);
    size_t guard = (size_t)call->tag;

    if (message && strcmp(pg_state(call), PG_STATE_GUARD) == 0)
        guard = (size_t)strtoull(message, NULL, 10);
    return guard < c->plan->n_guards ? guard : 0;
}

static void take_answers(struct commit *c)
{
    for (size_t i = 0; i < c->plan->n_effects; i++) {
        struct effect_result *out = &c->result->effects[i];
        const struct pg_call *call = c->calls[i];
        if (!call)
            continue;
        out->known = true;
        if (c->plan->effects[i].kind == EFFECT_FEED_APPEND)
            out->pos = (struct feed_pos){ pg_i64(call->result, 0, 0),
                                          pg_i64(call->result, 0, 1),
                                          pg_i64(call->result, 0, 2) };
        else
            out->value = pg_i64(call->result, 0, 0);
    }
}

/* Where things lie now, or that they do not lie where they were thought to. */
static void keep_places(struct commit *c, bool stands)
{
    for (struct pg_call *call = c->pipe.first; call; call = call->next) {
        if (call->met && !stands)
            pg_places_forget(&c->s->places, call->met, call->n_places);
        if (!call->made || !stands)
            continue;
        pg_take_places(call->result, call->made, call->n_places);
        pg_places_learn(&c->s->places, call->made, call->n_places);
    }
}

/* COMMIT, or the sync that stands for it. */
static bool is_end(const struct commit *c, const struct pg_call *call)
{
    return call == c->end || !call->sql;
}

/* The commit was answered, in one way or another. */
static belay_rc conclude(struct commit *c, struct pg_conn *conn,
                         struct belay_error *err)
{
    struct pg_call *failed = pg_failed(&c->pipe);

    keep_places(c, !failed);
    if (!failed) {
        take_answers(c);
        return BELAY_OK;
    }
    if (is_end(c, failed)) /* nobody knows how far it came */
        return err_set(err, BELAY_UNKNOWN_OUTCOME, "postgres: COMMIT failed: %s",
                       pg_state(failed));
    switch (complaint_of(failed)) {
    case CONFLICT:
        c->result->conflict = true;
        c->result->failed_guard = failed_guard(c, failed);
        return strcmp(pg_state(failed), UNIQUE_VIOLATION) == 0
                   ? pg_which_was_there(c->s, conn, c->plan, c->result, c->pipe.arena,
                                        err)
                   : BELAY_OK;
    case REFUSED:
        return pg_why_refused(c->s, conn, c->plan, c->result, c->pipe.arena, err);
    case OTHER:
        break;
    }
    return pg_call_error(failed, "commit", err);
}

static belay_rc run(struct commit *c, struct pg_conn *conn, struct belay_error *err)
{
    enum pg_reached reached = PG_NOTHING_SENT;
    belay_rc rc = fill(c, conn->open_txn, err);

    if (rc)
        return rc;
    rc = pg_exchange(conn, &c->pipe, &reached, err);
    if (rc == BELAY_OK) {
        conn->open_txn = false;
        return conclude(c, conn, err);
    }
    if (reached == PG_NOTHING_SENT)
        return rc;
    /* Lost on the way.  What was refused before can never apply; of the rest nobody
     * knows (X2). */
    struct pg_call *failed = pg_failed(&c->pipe);
    if (failed && !is_end(c, failed) && complaint_of(failed) == CONFLICT) {
        c->result->conflict = true;
        c->result->failed_guard = failed_guard(c, failed);
        return BELAY_OK;
    }
    return err_set(err, BELAY_UNKNOWN_OUTCOME,
                   "postgres: the connection was lost during the commit");
}

belay_rc pg_commit_alone(struct pg_store *s, struct pg_attempt *at,
                         const struct plan *plan, struct plan_result *result,
                         struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct commit c = {
        .s = s, .plan = plan, .picks = at->conn ? at->picks : NULL, .result = result
    };
    belay_rc rc = at->conn ? BELAY_OK : pg_take(s, &at->conn, err);

    at->lost = rc != BELAY_OK;
    if (rc)
        return rc;
    pg_pipe_init(&c.pipe, &arena);
    c.calls = arena_zalloc(&arena, plan->n_effects, sizeof(struct pg_call *));
    if (at->conn->generation != at->generation)
        result->conflict = true; /* what was read is of another life */
    else
        rc = c.calls ? run(&c, at->conn, err) : err_no_memory(err, "a commit");
    pg_pipe_clear(&c.pipe);
    at->lost = rc && at->conn->bad;
    if (at->conn->bad)
        pg_drop_idle(s); /* they are of the same server */
    if (!at->conn->open_txn || at->conn->bad) {
        pg_give_back(s, at->conn);
        at->conn = NULL;
    }
    return rc;
}

belay_rc pg_commit(struct driver *d, void *attempt, const struct plan *plan,
                   struct plan_result *result, struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;
    struct pg_attempt *at = attempt;

    if (at->conn) /* it holds picks */
        return pg_commit_alone(s, at, plan, result, err);
    if (plan->n_effects > 0)
        return pg_commit_together(s, at, plan, result, err);
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    return pg_confirm(d, plan, result, &arena, err);
}
