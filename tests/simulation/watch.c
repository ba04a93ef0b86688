/* Between driver and model: every applied commit is told to the model, every answer of
 * the driver is compared with it. */
#include <string.h>

#include "sim.h"

/* --- the model's words for things of the store --- */

uint64_t ns_of(struct bytes ns)
{
    return model_digest(1, ns.ptr, ns.len);
}

struct mname name_of(struct bytes b)
{
    return model_name(b.ptr, b.len);
}

uint64_t data_of(struct bytes b)
{
    return model_digest(3, b.ptr, b.len);
}

struct mvalue mvalue_of(const struct value *v)
{
    struct mvalue m = { .kind = (unsigned)v->kind };

    if (v->kind == VALUE_I64)
        m.i = v->i;
    else if (v->kind != VALUE_NULL)
        m.i = (int64_t)model_digest(4, v->b.ptr, v->b.len);
    return m;
}

uint64_t key_of(struct bytes ns, const struct row_type *type, const struct value *key)
{
    uint64_t h = model_digest(ns_of(ns), type->name, strlen(type->name));

    for (unsigned i = 0; i < type->n_key; i++) {
        if (key[i].kind == VALUE_I64)
            h = model_digest(h, &key[i].i, sizeof(key[i].i));
        else
            h = model_digest(h, key[i].b.ptr, key[i].b.len);
    }
    return h;
}

static unsigned counters_of(const struct row_type *type)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < type->n_columns; i++)
        mask |= type->columns[i].counter ? 1U << i : 0;
    return mask;
}

struct mrow row_of(struct bytes ns, const struct row_type *type,
                   const struct value *key, const struct row *row)
{
    struct mrow m = { .ns = ns_of(ns),
                      .key = key_of(ns, type, row ? row->v : key),
                      .ver = row ? row->ver : 0,
                      .type = type->name,
                      .n = type->n_columns,
                      .counters = counters_of(type) };

    for (unsigned i = 0; row && i < m.n; i++)
        m.v[i] = mvalue_of(&row->v[i]);
    return m;
}

/* --- effects that the model takes from the plan --- */

static bool is_internal(const struct effect *e)
{
    if (e->kind <= EFFECT_DELETE)
        return row_type_is(e->row.ref.type, ROW_INTERNAL);
    if (e->kind <= EFFECT_RAISE)
        return row_type_is(e->counter.ref.type, ROW_INTERNAL);
    return e->kind <= EFFECT_RANK_REMOVE &&
           bytes_eq(e->rank.index, bytes_str(SLOT_INDEX));
}

static const char *apply_row(struct sim *s, struct bytes ns, const struct effect *e)
{
    const struct row_type *type = e->row.ref.type;
    uint64_t key = key_of(ns, type, e->row.ref.key);
    const struct mrow *old = model_row(&s->model, key);

    if (e->kind == EFFECT_DELETE) {
        s->n_pruned += row_type_is(type, ROW_INTERNAL);
        return model_delete(&s->model, key);
    }
    struct mrow m = row_of(ns, type, e->row.ref.key, NULL);
    m.ver = e->row.ver;
    for (unsigned i = 0; i < m.n; i++) {
        bool keep = e->kind == EFFECT_PUT && !((e->row.changed >> i) & 1);
        m.v[i] = keep && old ? old->v[i] : mvalue_of(&e->row.v[i]);
    }
    return model_write(&s->model, &m);
}

static const char *apply_effect(struct sim *s, struct bytes ns, const struct effect *e,
                                const struct effect_result *result)
{
    struct model *m = &s->model;
    uint64_t n = ns_of(ns);
    struct mname name;
    int64_t out;

    switch (e->kind) {
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
        return apply_row(s, ns, e);
    case EFFECT_ADD:
    case EFFECT_RAISE:
        return model_count(m, key_of(ns, e->counter.ref.type, e->counter.ref.key),
                           e->kind == EFFECT_ADD ? M_ADD : M_RAISE, e->counter.column,
                           e->counter.amount, e->counter.min, e->counter.max, &out);
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE: {
        struct mrank change = { .index = name_of(e->rank.index),
                                .member = name_of(e->rank.member),
                                .had = e->kind != EFFECT_RANK_ADD,
                                .has = e->kind != EFFECT_RANK_REMOVE,
                                .old_rank = e->rank.old_rank,
                                .rank = e->rank.rank };
        return model_rank(m, n, &change);
    }
    case EFFECT_LOG_APPEND:
        name = name_of(e->log.stream);
        return model_log_append(m, n, &name, e->log.seq, data_of(e->log.data));
    case EFFECT_LOG_TRIM:
        name = name_of(e->log.stream);
        model_trim(m, n, M_LOG, &name, e->log.seq);
        return NULL;
    case EFFECT_FEED_APPEND:
        name = name_of(e->feed.feed);
        return model_feed_append(m, n, &name, result->pos.major, data_of(e->feed.data));
    case EFFECT_FEED_TRIM:
        name = name_of(e->feed.feed);
        model_trim(m, n, M_FEED, &name, e->feed.upto.major);
        return NULL;
    case EFFECT_CHUNK_PUT:
        name = name_of(e->chunk.upload);
        return model_chunk_put(m, n, &name, e->chunk.index, data_of(e->chunk.data));
    case EFFECT_CHUNK_DROP:
        name = name_of(e->chunk.upload);
        model_chunk_drop(m, n, &name, e->chunk.index);
        return NULL;
    }
    return "model: unknown effect";
}

/* --- effects that the model takes from what the body did --- */

static struct record *find_record(struct sim *s, unsigned front, uint64_t id)
{
    for (size_t i = s->n_records; i-- > 0;) {
        if (s->records[i].front == front && s->records[i].id == id)
            return &s->records[i];
    }
    return NULL;
}

static void check_base(struct sim *s, const struct record_row *r)
{
    const struct mrow *now = model_row(&s->model, r->key);

    if ((now ? now->ver : 0) != r->base.ver)
        violation(s, "stale-read",
                  "%s: applied, but a row the body read has changed since",
                  r->type->name);
    else if (now && !model_values_same(now->v, r->base.v, now->n, now->counters))
        violation(s, "stale-read", "%s: the body saw other values under that version",
                  r->type->name);
}

/* The version that the plan gives the row; 0: it does not write it. */
static int64_t planned_version(const struct plan *plan, uint64_t key)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        if (e->kind <= EFFECT_DELETE &&
            key_of(plan->ns, e->row.ref.type, e->row.ref.key) == key)
            return e->kind == EFFECT_DELETE ? -1 : e->row.ver;
    }
    return 0;
}

static void apply_record_row(struct sim *s, const struct plan *plan,
                             const struct record_row *r)
{
    int64_t ver = planned_version(plan, r->key);
    const struct mrow *old = model_row(&s->model, r->key);

    if (r->deleted && r->inserted)
        return;
    if (r->deleted) {
        complain(s, model_delete(&s->model, r->key), r->type->name);
        return;
    }
    if (!r->inserted && !r->changed)
        return;
    if (ver <= 0) {
        violation(s, "lost-write", "%s: the body wrote a row and the plan does not",
                  r->type->name);
        return;
    }
    struct mrow row = r->cur;
    row.ver = ver;
    for (unsigned i = 0; i < row.n; i++) {
        if (!((row.counters >> i) & 1))
            continue;
        row.v[i] = r->inserted ? r->base.v[i] : old ? old->v[i] : row.v[i];
    }
    complain(s, model_write(&s->model, &row), r->type->name);
}

/* The position that the driver gave to the n-th feed entry of a plan. */
static int64_t feed_position(const struct plan *plan, const struct plan_result *result,
                             unsigned n)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (plan->effects[i].kind == EFFECT_FEED_APPEND && n-- == 0)
            return result->effects[i].pos.major;
    }
    return 0;
}

static const char *apply_record_op(struct sim *s, uint64_t ns, struct record_op *o)
{
    struct model *m = &s->model;

    switch (o->kind) {
    case REC_ADD:
    case REC_RAISE:
        return model_count(m, o->key, o->kind == REC_ADD ? M_ADD : M_RAISE, o->column,
                           o->number, o->min, o->max, &o->result);
    case REC_RANK:
        return model_rank(m, ns, &o->rank);
    case REC_LOG_APPEND:
        return model_log_append(m, ns, &o->name, o->number, o->digest);
    case REC_LOG_TRIM:
        model_trim(m, ns, M_LOG, &o->name, o->number);
        return NULL;
    case REC_FEED_APPEND:
        return model_feed_append(m, ns, &o->name, o->result, o->digest);
    case REC_FEED_TRIM:
        model_trim(m, ns, M_FEED, &o->name, o->number);
        return NULL;
    case REC_CHUNK_PUT:
        return model_chunk_put(m, ns, &o->name, o->number, o->digest);
    case REC_CHUNK_DROP:
        model_chunk_drop(m, ns, &o->name, o->number);
        return NULL;
    }
    return "model: unknown record";
}

static void apply_record(struct sim *s, const struct plan *plan,
                         const struct plan_result *result, struct record *rec)
{
    struct call *c = rec->call;
    unsigned n_feed = 0;

    if (!rec->answered || rec->answer != BELAY_OK)
        violation(s, "failing-body", "%s: what a failing body wrote was applied",
                  op_name(c->op));
    if (c->n_applied++ > 0)
        violation(s, "once", "%s: applied %u times", op_name(c->op), c->n_applied);
    if (c->returned && c->rc != BELAY_OK && c->rc != BELAY_UNKNOWN_OUTCOME)
        violation(s, "once", "%s: applied after it was answered %s", op_name(c->op),
                  belay_error_info((int)c->rc)->name);
    c->applied = rec;
    c->applied_seq = s->model.seq;
    for (size_t i = 0; i < rec->n_rows && !s->rule; i++)
        check_base(s, &rec->rows[i]);
    for (size_t i = 0; i < rec->n_rows && !s->rule; i++)
        apply_record_row(s, plan, &rec->rows[i]);
    for (size_t i = 0; i < rec->n_ops && !s->rule; i++) {
        struct record_op *o = &rec->ops[i];
        if (o->kind == REC_FEED_APPEND)
            o->result = feed_position(plan, result, n_feed++);
        complain(s, apply_record_op(s, rec->ns, o), op_name(c->op));
    }
}

/* --- a commit --- */

static bool guards_hold(struct sim *s, const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_guards; i++) {
        const struct guard *g = &plan->guards[i];
        const struct mrow *row =
            model_row(&s->model, key_of(plan->ns, g->ref.type, g->ref.key));
        if ((row ? row->ver : 0) != g->ver)
            return false;
    }
    return true;
}

/* Whether the plan of a body must be refused so: a dry run on the model, which is put
 * back afterwards. */
static bool has_reason(struct sim *s, struct record *rec, belay_rc rc)
{
    static const char *const words[] = { "counter: of", "counter: beyond", "log:" };
    const char *word = rc == BELAY_NOT_FOUND      ? words[0]
                       : rc == BELAY_OUT_OF_RANGE ? words[1]
                                                  : words[2];
    static struct model kept;
    bool found = false;

    model_copy(&kept, &s->model);
    for (size_t i = 0; i < rec->n_rows; i++) {
        struct record_row *r = &rec->rows[i];
        struct mrow row = r->cur;
        row.ver = INT64_MAX;
        if (r->inserted && !r->deleted) {
            memcpy(row.v, r->base.v, sizeof(row.v));
            (void)model_write(&s->model, &row);
        }
    }
    for (size_t i = 0; i < rec->n_ops && !found; i++) {
        const char *complaint = apply_record_op(s, rec->ns, &rec->ops[i]);
        found = complaint && strncmp(complaint, word, strlen(word)) == 0;
    }
    model_copy(&s->model, &kept);
    return found;
}

static void check_refusal(struct front *f, const struct plan *plan, belay_rc rc)
{
    struct sim *s = f->sim;
    const char *name = belay_error_info((int)rc)->name;
    struct record *rec = find_record(s, f->uid, plan->id);

    if (!guards_hold(s, plan))
        violation(s, "guard", "a failed guard is a conflict, not %s", name);
    bool possible = rc == BELAY_OUT_OF_RANGE || rc == BELAY_NOT_FOUND ||
                    (rc == BELAY_CORRUPT && rec && rec->call->op == OP_LOG_APPEND);
    if (!possible || !rec || !has_reason(s, rec, rc))
        violation(s, "answer", "commit answered %s without a reason", name);
    if (rec && !rec->call->returned)
        rec->call->commit_rc = rc;
}

static bool only_internal(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (!is_internal(&plan->effects[i]))
            return false;
    }
    return true;
}

void watch_commit(struct front *f, const struct plan *plan,
                  const struct plan_result *result, belay_rc rc)
{
    struct sim *s = f->sim;

    if (s->rule)
        return;
    if (rc) {
        check_refusal(f, plan, rc);
        return;
    }
    if (result->conflict) {
        if (guards_hold(s, plan))
            violation(s, "guard", "a conflict although every guard holds");
        return;
    }
    if (!guards_hold(s, plan)) {
        violation(s, "guard", "plan %llu of front %u applied although a guard failed",
                  (unsigned long long)plan->id, f->uid);
        return;
    }
    if (plan->n_effects == 0)
        return;
    s->n_commits++;
    s->model.seq++;
    struct record *rec = only_internal(plan) ? NULL : find_record(s, f->uid, plan->id);
    if (rec)
        apply_record(s, plan, result, rec);
    for (size_t i = 0; i < plan->n_effects && !s->rule; i++) {
        if (!rec || is_internal(&plan->effects[i]))
            complain(s,
                     apply_effect(s, plan->ns, &plan->effects[i], &result->effects[i]),
                     "plan");
    }
    if (!s->rule)
        check_invariants(s, plan->ns);
    if (!s->rule && s->n_commits % s->swarm.walk_every == 0)
        watch_space(s, plan->ns);
}

/* --- comparing everything --- */

struct comparison {
    struct sim *s;
    struct bytes ns;
};

static belay_rc compare_item(void *arg, const struct item *item,
                             struct belay_error *err)
{
    struct comparison *c = arg;
    static const enum mkind kinds[] = { [ITEM_RANK] = M_RANK,
                                        [ITEM_LOG] = M_LOG,
                                        [ITEM_FEED] = M_FEED,
                                        [ITEM_CHUNK] = M_CHUNK };

    (void)err;
    if (item->kind == ITEM_ROW) {
        struct mrow row = row_of(c->ns, item->row->type, NULL, item->row);
        complain(c->s, model_compare_row(&c->s->model, &row), item->row->type->name);
        return BELAY_OK;
    }
    struct mentry e = { .kind = kinds[item->kind],
                        .ns = ns_of(c->ns),
                        .name = name_of(item->name),
                        .number = item->number };
    if (item->kind == ITEM_RANK)
        e.member = name_of(item->member);
    else
        e.digest = data_of(item->data);
    complain(c->s, model_compare_entry(&c->s->model, &e), e.name.text);
    return BELAY_OK;
}

void watch_space(struct sim *s, struct bytes ns)
{
    struct comparison c = { s, ns };
    struct belay_error err;

    model_compare_begin(&s->model);
    if (driver_walk(s->memory, ns, compare_item, &c, &err))
        violation(s, "answer", "walk: %s", err.message);
    if (!s->rule)
        complain(s, model_compare_end(&s->model, ns_of(ns)), "walk");
}
