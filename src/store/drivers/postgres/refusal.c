/* Plans that are only looked at.
 *
 * Why a plan was refused: what is stored is looked at, and refuse.h says what that means
 * (rule 3).  When there is no reason any more the plan met somebody: a conflict.
 *
 * A plan without effects (rule 4) holds when its guards hold together, at one moment: one
 * snapshot tells, without a lock, so that who may only read can have an answer confirmed. */
#include "store/drivers/postgres/impl.h"
#include "store/refuse.h"

struct look {
    struct pg_store *s;
    struct pg_conn *c;
    const struct plan *plan;
    struct plan_result *result;
    struct belay_arena *a;
};

/* One number that a statement finds, or *found = false. */
static belay_rc ask(const struct look *l, struct pg_pipe *p, struct pg_call *call,
                    bool *found, int64_t *out, struct belay_error *err)
{
    enum pg_reached reached;
    belay_rc rc = pg_exchange(l->c, p, &reached, err);

    if (rc == BELAY_OK && !call->ok)
        rc = pg_call_error(call, "looking after a refusal", err);
    if (rc == BELAY_OK) {
        *found = PQntuples(call->result) > 0;
        *out = *found ? pg_i64(call->result, 0, 0) : 0;
    }
    pg_pipe_clear(p);
    return rc;
}

static belay_rc look_guard(const struct look *l, size_t i, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct guard *g = &l->plan->guards[i];
    struct pg_pipe p;
    int64_t ver = 0;
    bool found = false;

    pg_pipe_init(&p, l->a);
    buf_append_str(&text, "SELECT ver FROM ");
    pg_table(l->s, g->ref.type->name, &text);
    buf_append_str(&text, " WHERE ");
    pg_where_key(g->ref.type, 2, &text);
    struct pg_call *c = pg_add(&p, pg_sql_of(l->s, &text), 1U + g->ref.type->n_key);
    pg_arg_key(&p, c, l->plan->ns, &g->ref);
    belay_rc rc = ask(l, &p, c, &found, &ver, err);
    if (rc == BELAY_OK && ver != g->ver) {
        l->result->conflict = true;
        l->result->failed_guard = i;
    }
    return rc;
}

static belay_rc look_rank(const struct look *l, const struct effect *e,
                          struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    struct pg_pipe p;
    int64_t rank = 0;
    bool found = false;

    pg_pipe_init(&p, l->a);
    buf_append_str(&text, "SELECT rank FROM ");
    pg_table(l->s, "rank", &text);
    buf_append_str(&text, " WHERE ");
    pg_where_index(l->s, "", "$2", &text);
    buf_append_str(&text, " AND member = $3");
    struct pg_call *c = pg_add(&p, pg_sql_of(l->s, &text), 3);
    pg_arg_bytes(&p, c, l->plan->ns);
    pg_arg_bytes(&p, c, e->rank.index);
    pg_arg_bytes(&p, c, e->rank.member);
    belay_rc rc = ask(l, &p, c, &found, &rank, err);
    return rc ? rc : refuse_rank(e, found ? &rank : NULL, err);
}

static belay_rc look_log(const struct look *l, size_t i, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct effect *e = &l->plan->effects[i];
    struct pg_pipe p;
    int64_t tail = 0;
    bool found;

    if (!log_needs_tail(l->plan, i, &tail))
        return refuse_log(e, tail, err);
    pg_pipe_init(&p, l->a);
    buf_append_str(&text, "SELECT coalesce(max(seq), 0) FROM ");
    pg_table(l->s, "log", &text);
    buf_append_str(&text, " WHERE ns = $1 AND stream = $2");
    struct pg_call *c = pg_add(&p, pg_sql_of(l->s, &text), 2);
    pg_arg_bytes(&p, c, l->plan->ns);
    pg_arg_bytes(&p, c, e->log.stream);
    belay_rc rc = ask(l, &p, c, &found, &tail, err);
    return rc ? rc : refuse_log(e, tail, err);
}

static belay_rc look_counter(const struct look *l, size_t i, bool bounds,
                             struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const struct effect *e = &l->plan->effects[i];
    const struct row_type *type = e->counter.ref.type;
    struct pg_pipe p;
    int64_t stored = 0, value = 0;
    bool found;

    pg_pipe_init(&p, l->a);
    buf_printf(&text, "SELECT coalesce(\"%s\", 0) FROM ",
               type->columns[e->counter.column].name);
    pg_table(l->s, type->name, &text);
    buf_append_str(&text, " WHERE ");
    pg_where_key(type, 2, &text);
    struct pg_call *c = pg_add(&p, pg_sql_of(l->s, &text), 1U + type->n_key);
    pg_arg_key(&p, c, l->plan->ns, &e->counter.ref);
    belay_rc rc = ask(l, &p, c, &found, &stored, err);
    if (rc == BELAY_OK)
        rc = refuse_counter(l->plan, l->result, i, found ? &stored : NULL, &value, err);
    if (rc)
        return rc;
    int64_t *out = &l->result->effects[i].value;
    *out = e->counter.amount > value ? e->counter.amount : value; /* a raise */
    if (e->kind == EFFECT_ADD) {
        rc = counter_add(e, value, out, err);
        if (rc && !bounds)
            return BELAY_OK; /* others come first */
    }
    return rc;
}

static bool is_rank_effect(const struct effect *e)
{
    return e->kind == EFFECT_RANK_ADD || e->kind == EFFECT_RANK_MOVE ||
           e->kind == EFFECT_RANK_REMOVE;
}

static belay_rc look_at_all(const struct look *l, struct belay_error *err)
{
    const struct plan *plan = l->plan;
    belay_rc rc = BELAY_OK;

    /* Whatever else is wrong (rule 3): a statement of many parts complains of any. */
    for (size_t i = 0; i < plan->n_guards; i++) {
        rc = look_guard(l, i, err);
        if (rc || l->result->conflict)
            return rc;
    }
    for (size_t i = 0; i < plan->n_effects && !rc; i++) {
        if (is_rank_effect(&plan->effects[i]))
            rc = look_rank(l, &plan->effects[i], err);
        else if (plan->effects[i].kind == EFFECT_LOG_APPEND)
            rc = look_log(l, i, err);
    }
    for (int bounds = 0; bounds < 2; bounds++) {
        for (size_t i = 0; i < plan->n_effects && !rc; i++) {
            if (is_counter_effect(&plan->effects[i]))
                rc = look_counter(l, i, bounds == 1, err);
        }
    }
    if (rc == BELAY_OK)
        l->result->conflict = true;
    return rc;
}

/* Of one snapshot: somebody may take a member between two looks, after its guard was seen to
 * hold, and that is no damage. */
belay_rc pg_why_refused(struct pg_store *s, struct pg_conn *conn,
                        const struct plan *plan, struct plan_result *result,
                        struct belay_arena *a, struct belay_error *err)
{
    static const char what[] = "looking after a refusal";
    const struct look l = { s, conn, plan, result, a };
    belay_rc rc =
        pg_run(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", what, err);

    if (rc)
        return rc;
    conn->open_txn = true;
    rc = look_at_all(&l, err);
    if (!conn->bad && pg_run(conn, "ROLLBACK", what, NULL) == BELAY_OK)
        conn->open_txn = false;
    return rc;
}

belay_rc pg_which_was_there(struct pg_store *s, struct pg_conn *conn,
                            const struct plan *plan, struct plan_result *result,
                            struct belay_arena *a, struct belay_error *err)
{
    const struct plan_result said = *result;
    const struct look l = { s, conn, plan, result, a };
    belay_rc rc = BELAY_OK;

    result->conflict = false;
    for (size_t i = 0; i < plan->n_guards && !rc && !result->conflict; i++) {
        if (plan->guards[i].ver == 0 &&
            plan->guards[i].ref.type == plan->guards[said.failed_guard].ref.type)
            rc = look_guard(&l, i, err);
    }
    if (rc || !result->conflict)
        *result = said; /* whatever it was, it is a conflict */
    return BELAY_OK;
}

belay_rc pg_confirm(struct driver *d, const struct plan *plan,
                    struct plan_result *result, struct belay_arena *a,
                    struct belay_error *err)
{
    struct pg_attempt at = { .ns = plan->ns };
    struct read *reads = arena_zalloc(a, plan->n_guards, sizeof(*reads));

    if (!reads)
        return err_no_memory(err, "a commit");
    for (size_t i = 0; i < plan->n_guards; i++)
        reads[i] =
            (struct read){ .kind = READ_ROW, .row = { .ref = plan->guards[i].ref } };
    belay_rc rc =
        plan->n_guards > 0 ? pg_read(d, &at, reads, plan->n_guards, a, err) : BELAY_OK;
    for (size_t i = 0; i < plan->n_guards && !rc && !result->conflict; i++) {
        const struct row *row = reads[i].row.out;
        if ((row ? row->ver : 0) != plan->guards[i].ver) {
            result->conflict = true;
            result->failed_guard = i;
        }
    }
    return rc;
}
