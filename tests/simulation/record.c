/* The calls of a body, each passed on and written down, and the check of how a
 * transaction ended. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

struct bytes space_bytes(unsigned space)
{
    static const char *const names[SPACES_MAX] = { "alpha", "beta",  "new-0",
                                                   "new-1", "new-2", "new-3" };

    return bytes_str(names[space]);
}

unsigned op_space(const struct actor *a)
{
    return (unsigned)(mix(a->op->r, 1000) % a->sim->swarm.n_spaces);
}

/* --- a whole transaction --- */

static bool has_effects(const struct record *rec)
{
    for (size_t i = 0; i < rec->n_rows; i++) {
        const struct record_row *r = &rec->rows[i];
        if ((r->inserted != r->deleted) || (r->changed && !r->inserted))
            return true;
    }
    return rec->n_ops > 0;
}

/* An answer that changed nothing must have been true at one moment of its run. */
static void check_torn(struct sim *s, const struct record *rec)
{
    for (uint64_t seq = s->model.seq + 1; seq-- > rec->first_seq;) {
        bool all = true;
        for (size_t i = 0; i < rec->n_rows && all; i++) {
            const struct record_row *r = &rec->rows[i];
            all =
                !r->observed || model_version_at(&s->model, r->key, seq) == r->base.ver;
        }
        if (all)
            return;
    }
    violation(s, "torn-read", "%s: answered %s from rows that never stood together",
              op_name(rec->call->op), belay_error_info((int)rec->answer)->name);
}

/* Sums and positions that were handed out are those of the commit. */
static void check_outputs(struct sim *s, const struct call *c)
{
    const struct record *rec = c->last;

    for (size_t i = 0; i < rec->n_ops; i++) {
        const struct record_op *o = &rec->ops[i];
        bool known = true, same = true;
        if (o->sum) {
            known = o->sum->known;
            same = !known || o->sum->value == o->result;
        } else if (o->pos) {
            known = o->pos->known;
            same = !known || o->pos->pos.major == o->result;
        }
        if (!same)
            violation(s, "output", "%s: was told %s than was committed", op_name(c->op),
                      o->sum ? "another sum" : "another position");
        if (!known && c->lost == 0)
            violation(s, "output", "%s: was told nothing although no reply was lost",
                      op_name(c->op));
    }
}

static bool is_allowed(const struct sim *s, const struct call *c, belay_rc rc)
{
    const struct record *rec = c->last;

    if (rec && rec->answered && rc == rec->answer)
        return true;
    /* Also when the replies to a new slot's row are lost again and again: nothing else
     * was sent then. */
    if (rc == BELAY_UNAVAILABLE)
        return s->swarm.rate[SIM_UNAVAILABLE] > 0 || s->swarm.rate[SIM_OUTAGE] > 0 ||
               s->swarm.loses_replies;
    if (rc == BELAY_UNKNOWN_OUTCOME)
        return c->lost > 0;
    if (rc == BELAY_TIMEOUT || rc == BELAY_CANCELLED)
        return c->limited;
    return rc == BELAY_CONTENTION || (c->commit_rc && rc == c->commit_rc);
}

static void check_return(struct sim *s, struct call *c, belay_rc rc)
{
    const struct record *rec = c->last;
    const char *name = belay_error_info((int)rc)->name;
    bool answered = rec && rec->answered && rc == rec->answer;

    /* Each further run has a cause: a commit of somebody, a fault, the founding of the
     * namespace, an absence that was assumed and is not so, a slot that was pruned. */
    if (c->runs > 3 + c->injected + c->lost + s->model.seq - c->first_seq + s->n_pruned)
        violation(s, "liveness", "%s: ran %u times without cause", op_name(c->op),
                  c->runs);
    if (!is_allowed(s, c, rc))
        violation(s, "answer", "%s: answered %s", op_name(c->op), name);
    if (rc == BELAY_OK && answered && has_effects(rec)) {
        if (c->n_applied != 1 || c->applied != rec)
            violation(s, "once", "%s: answered ok and its last run was %s applied",
                      op_name(c->op), c->n_applied ? "not the one" : "not");
        else
            check_outputs(s, c);
        return;
    }
    if (c->n_applied > 0 && rc != BELAY_UNKNOWN_OUTCOME)
        violation(s, "once", "%s: answered %s but was applied", op_name(c->op), name);
    if (answered && rc != BELAY_UNAVAILABLE) /* which is no answer of the body */
        check_torn(s, rec);
}

struct shim {
    struct run run;
    run_body *body;
};

static belay_rc shim_body(struct txn *t, void *arg)
{
    struct shim *h = arg;
    struct sim *s = h->run.s;
    struct call *c = h->run.a->call;

    if (s->running->dead || s->n_records == RECORDS_MAX)
        return txn_fail(t, BELAY_UNAVAILABLE, "", "simulated: over");
    struct record *rec = &s->records[s->n_records++];
    rec->front = s->running->front->uid;
    rec->id = txn_id(t);
    rec->call = c;
    rec->ns = ns_of(h->run.ns);
    rec->first_seq = s->model.seq;
    rec->answered = rec->asked_time = false;
    rec->topic = 0;
    rec->n_rows = rec->n_ops = 0;
    c->last = rec;
    c->commit_rc = BELAY_OK;
    c->runs++;
    h->run.t = t;
    h->run.rec = rec;
    belay_rc rc = h->body(&h->run);
    rec->answer = rc;
    rec->answered = true;
    return rc;
}

belay_rc run_call(struct actor *a, unsigned space, run_body *body, void *arg,
                  const struct txn_options *options)
{
    struct sim *s = a->sim;
    struct coroutine *co = s->running;
    struct shim h = {
        .run = { .s = s, .a = a, .ns = space_bytes(space), .op = a->op, .arg = arg },
        .body = body
    };
    struct space *sp = NULL;
    struct belay_error err = { .code = 0 };

    if (co->dead || s->rule || s->n_calls == CALLS_MAX)
        return BELAY_UNAVAILABLE;
    belay_rc rc = store_space(co->front->store, h.run.ns, &sp, &err);
    if (rc || co->dead) {
        if (!co->dead && rc != BELAY_UNAVAILABLE)
            violation(s, "answer", "opening a space: %s", err.message);
        return BELAY_UNAVAILABLE;
    }
    struct call *c = &s->calls[s->n_calls++];
    *c = (struct call){ .actor = a,
                        .front = co->front,
                        .op = a->op->kind,
                        .limited = options != NULL,
                        .first_seq = s->model.seq };
    a->call = c;
    rc = txn_run(sp, shim_body, &h, options, &co->arena, &err);
    if (co->dead)
        return BELAY_UNAVAILABLE;
    a->call = NULL;
    c->rc = rc;
    c->returned = true;
    trace(s, "returned", a->id, (uint64_t)rc);
    if (!s->rule)
        check_return(s, c, rc);
    arena_reset(&co->arena);
    return rc;
}

/* --- rows --- */

static struct record_row *find_row(struct run *r, uint64_t key)
{
    for (size_t i = 0; i < r->rec->n_rows; i++) {
        if (r->rec->rows[i].key == key)
            return &r->rec->rows[i];
    }
    return NULL;
}

static struct record_row *new_row(struct run *r, uint64_t key,
                                  const struct row_type *type)
{
    if (r->rec->n_rows == RECORD_ROWS) {
        violation(r->s, "model", "%s reads too many rows", op_name(r->op->kind));
        return &r->rec->rows[0];
    }
    struct record_row *row = &r->rec->rows[r->rec->n_rows++];
    row->key = key;
    row->type = type;
    row->observed = row->inserted = row->changed = row->deleted = false;
    return row;
}

/* What the body was shown: new, or what it knows already (T3). */
static void observe(struct run *r, const struct row_type *type, const struct value *key,
                    const struct row *row)
{
    struct mrow got = row_of(r->ns, type, key, row);
    struct record_row *known = find_row(r, got.key);

    if (!known) {
        known = new_row(r, got.key, type);
        known->observed = true;
        known->base = known->cur = got;
        return;
    }
    if (!known->observed && !known->inserted && !known->deleted) {
        known->observed = true;
        known->base = known->cur = got;
    }
    if ((known->cur.ver != 0) != (row != NULL))
        violation(r->s, "own-writes", "%s: a row the body %s", type->name,
                  row ? "deleted is shown" : "inserted is not shown");
    else if (row && !model_values_same(known->cur.v, got.v, got.n, 0))
        violation(r->s, "own-writes", "%s: not what the body read or wrote before",
                  type->name);
}

belay_rc r_get(struct run *r, const struct row_type *type, const struct value *key,
               const struct row **out)
{
    belay_rc rc = txn_get(r->t, type, key, out);

    if (!rc)
        observe(r, type, key, *out);
    return rc;
}

belay_rc r_get_many(struct run *r, const struct row_want *wants, size_t n,
                    const struct row **out)
{
    belay_rc rc = txn_get_many(r->t, wants, n, out);

    for (size_t i = 0; i < n && !rc; i++)
        observe(r, wants[i].type, wants[i].key, out[i]);
    return rc;
}

belay_rc r_peek(struct run *r, const struct row_type *type, const struct value *key,
                const struct row **out)
{
    belay_rc rc = txn_peek(r->t, type, key, out);
    struct record_row *known = find_row(r, key_of(r->ns, type, key));

    if (!rc && known)
        observe(r, type, key, *out);
    return rc; /* what it reads from the store the driver's answer was compared with */
}

belay_rc r_insert(struct run *r, const struct row_type *type, const struct value *v)
{
    belay_rc rc = txn_insert(r->t, type, v);
    const struct row as_row = { .type = type, .ver = 1, .v = v };

    if (rc == BELAY_WRONG_STATE) { /* it saw one: that is an answer, too */
        const struct row *row = NULL;
        if (!r_get(r, type, v, &row) && !row)
            violation(r->s, "own-writes", "%s: exists, but is not there", type->name);
        return rc;
    }
    if (rc)
        return rc;
    struct mrow made = row_of(r->ns, type, v, &as_row);
    struct record_row *row = find_row(r, made.key);
    if (!row) {
        row = new_row(r, made.key, type);
        row->base = made;
    }
    memcpy(row->base.v, made.v, sizeof(made.v));
    row->base.ver = 0;
    row->cur = made;
    row->inserted = true;
    return BELAY_OK;
}

belay_rc r_put(struct run *r, const struct row_type *type, const struct value *key,
               const struct change *changes, size_t n)
{
    belay_rc rc = txn_put(r->t, type, key, changes, n);
    struct record_row *row = find_row(r, key_of(r->ns, type, key));

    for (size_t i = 0; row && i < n && !rc; i++)
        row->cur.v[changes[i].column] = mvalue_of(&changes[i].value);
    if (row && !rc)
        row->changed = true;
    return rc;
}

belay_rc r_delete(struct run *r, const struct row_type *type, const struct value *key)
{
    belay_rc rc = txn_delete(r->t, type, key);
    struct record_row *row = find_row(r, key_of(r->ns, type, key));

    if (row && !rc) {
        row->deleted = true;
        row->cur.ver = 0;
    }
    return rc;
}

/* --- everything else is written down in order --- */

struct record_op *record_note(struct run *r, enum record_op_kind kind)
{
    if (r->rec->n_ops == RECORD_OPS) {
        violation(r->s, "model", "%s writes too much", op_name(r->op->kind));
        r->rec->n_ops--;
    }
    struct record_op *o = &r->rec->ops[r->rec->n_ops++];
    o->kind = kind;
    o->sum = NULL;
    o->pos = NULL;
    o->result = 0;
    return o;
}

/* The counter effect, and what the body sees of it from now on. */
static struct record_op *count(struct run *r, enum record_op_kind kind, uint64_t key,
                               unsigned column, int64_t amount)
{
    struct record_op *o = record_note(r, kind);
    struct record_row *row = find_row(r, key);

    o->key = key;
    o->column = column;
    o->number = amount;
    if (row && row->cur.ver != 0) {
        struct mvalue *v = &row->cur.v[column];
        int64_t old = v->kind ? v->i : 0;
        v->kind = VALUE_I64;
        v->i = kind == REC_ADD ? old + amount : old > amount ? old : amount;
    }
    return o;
}

belay_rc r_add(struct run *r, const struct row_type *type, const struct value *key,
               unsigned column, int64_t delta, int64_t min, int64_t max,
               struct txn_sum *out)
{
    belay_rc rc = txn_add(r->t, type, key, column, delta, min, max, out);

    if (rc)
        return rc;
    struct record_op *o = count(r, REC_ADD, key_of(r->ns, type, key), column, delta);
    o->min = min;
    o->max = max;
    o->sum = out;
    return BELAY_OK;
}

belay_rc r_raise(struct run *r, const struct row_type *type, const struct value *key,
                 unsigned column, int64_t value)
{
    belay_rc rc = txn_raise(r->t, type, key, column, value);

    if (!rc)
        count(r, REC_RAISE, key_of(r->ns, type, key), column, value);
    return rc;
}

belay_rc r_rank(struct run *r, const char *index, struct bytes member, bool had,
                int64_t old_rank, bool has, int64_t rank)
{
    struct bytes i = bytes_str(index);
    belay_rc rc = !had  ? txn_rank_add(r->t, i, rank, member)
                  : has ? txn_rank_move(r->t, i, old_rank, rank, member)
                        : txn_rank_remove(r->t, i, old_rank, member);

    if (!rc)
        record_note(r, REC_RANK)->rank = (struct mrank){ .index = name_of(i),
                                                         .member = name_of(member),
                                                         .had = had,
                                                         .has = has,
                                                         .old_rank = old_rank,
                                                         .rank = rank };
    return rc;
}

static void check_hits(struct run *r, const struct hits *hits)
{
    const struct actor *a = r->a;
    bool same = hits->n == a->n_want;

    if (a->outrun)
        return;

    for (size_t i = 0; i < hits->n && same; i++) {
        struct mname index = name_of(hits->hit[i].index);
        struct mname member = name_of(hits->hit[i].member);
        same = hits->hit[i].rank == a->want[i].number &&
               model_same(&index, &a->want[i].name) &&
               model_same(&member, &a->want[i].member);
    }
    if (!same)
        violation(r->s, "own-writes",
                  "a scan does not show the store's entries with "
                  "what the body changed");
}

belay_rc r_scan(struct run *r, const struct scan *scan, bool hold, struct hits *out)
{
    r->a->scan = scan;
    r->a->n_want = 0;
    belay_rc rc = hold ? txn_pick(r->t, scan, out) : txn_scan(r->t, scan, out);
    if (r->s->running->dead)
        return BELAY_UNAVAILABLE;
    r->a->scan = NULL;
    if (rc)
        return rc;
    check_hits(r, out);
    for (size_t i = 0; i < out->n; i++) {
        for (size_t f = 0; f < scan->n_fetch; f++) {
            struct value key = value_text(out->hit[i].member);
            observe(r, scan->fetch[f].type, &key, out->hit[i].rows[f]);
        }
    }
    return BELAY_OK;
}
