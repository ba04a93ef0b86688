/* Applying a plan in three steps, so that it applies whole or not at all:
 *
 *   check    guards, then everything rule 3 of driver.h can refuse; nothing changes
 *   prepare  every allocation the plan needs; on failure all of it is freed again
 *   apply    links and unlinks what was prepared; cannot fail
 */
#include <stdlib.h>
#include <string.h>

#include "store/drivers/memory_impl.h"
#include "store/refuse.h"

/* What prepare made for one effect. */
struct prepared {
    struct mem_row *old;   /* PUT, DELETE: the row that goes */
    struct mem_row *row;   /* INSERT, PUT: the new row */
    struct mem_node *node; /* a new entry */
    struct mem_set *set;   /* the collection the effect is about, if it is there */
};

#define FEW_EFFECTS 16

static bool is_row_effect(const struct effect *e)
{
    return e->kind == EFFECT_INSERT || e->kind == EFFECT_PUT ||
           e->kind == EFFECT_DELETE;
}

static bool guards_hold(struct memory *m, const struct mem_space *space,
                        const struct plan *plan, struct plan_result *result)
{
    for (size_t i = 0; i < plan->n_guards; i++) {
        const struct mem_row *r = mem_find_row(m, space, &plan->guards[i].ref);
        int64_t ver = r ? r->row.ver : 0;
        if (ver != plan->guards[i].ver) {
            result->conflict = true;
            result->failed_guard = i;
            return false;
        }
    }
    return true;
}

/* --- check --- */

static belay_rc check_rank(struct memory *m, const struct mem_space *space,
                           const struct effect *e, struct belay_error *err)
{
    struct mem_set *set = mem_find_set(m, space, MEM_RANK, e->rank.index);
    struct mem_node *n = mem_find_member(m, set, e->rank.member);

    return refuse_rank(e, n ? &n->number : NULL, err);
}

static belay_rc check_log(struct memory *m, const struct mem_space *space,
                          const struct plan *plan, size_t i, struct belay_error *err)
{
    const struct effect *e = &plan->effects[i];
    int64_t tail = 0;

    if (log_needs_tail(plan, i, &tail)) {
        struct mem_set *set = mem_find_set(m, space, MEM_LOG, e->log.stream);
        struct mem_node *last = set ? mem_tree_last(&set->tree) : NULL;
        tail = last ? last->number : 0;
    }
    return refuse_log(e, tail, err);
}

static belay_rc check_counters(struct memory *m, const struct mem_space *space,
                               const struct plan *plan, struct plan_result *result,
                               struct belay_error *err)
{
    belay_rc range = BELAY_OK;

    /* not_found anywhere goes before out_of_range anywhere (rule 3). */
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        if (!is_counter_effect(e))
            continue;
        const struct mem_row *r = mem_find_row(m, space, &e->counter.ref);
        int64_t stored = r ? row_i64(&r->row, e->counter.column, 0) : 0, old = 0;
        belay_rc rc = refuse_counter(plan, result, i, r ? &stored : NULL, &old, err);
        if (rc)
            return rc;
        if (!range)
            range = counter_add(e, old, &result->effects[i].value, err);
    }
    return range;
}

static belay_rc check(struct memory *m, const struct mem_space *space,
                      const struct plan *plan, struct plan_result *result,
                      struct belay_error *err)
{
    bool counters = false;

    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        belay_rc rc = BELAY_OK;
        if (e->kind == EFFECT_RANK_ADD || e->kind == EFFECT_RANK_MOVE ||
            e->kind == EFFECT_RANK_REMOVE)
            rc = check_rank(m, space, e, err);
        else if (e->kind == EFFECT_LOG_APPEND)
            rc = check_log(m, space, plan, i, err);
        else
            counters |= is_counter_effect(e);
        if (rc)
            return rc;
    }
    return counters ? check_counters(m, space, plan, result, err) : BELAY_OK;
}

/* --- prepare --- */

/* The row with the changed columns, counters as they are now. */
static struct mem_row *make_changed(const struct mem_space *space,
                                    const struct effect *e, const struct mem_row *old)
{
    const struct row_type *type = e->row.ref.type;
    struct value v[SCHEMA_COLUMNS_MAX];

    for (unsigned i = 0; i < type->n_columns; i++)
        v[i] = (e->row.changed >> i) & 1 ? e->row.v[i] : old->v[i];
    return mem_make_row(space, &e->row.ref, e->row.ver, v);
}

/* Which collection an effect is about; false: none. */
static bool effect_set(const struct effect *e, enum mem_set_kind *kind,
                       struct bytes *name)
{
    switch (e->kind) {
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE:
        *kind = MEM_RANK;
        *name = e->rank.index;
        return true;
    case EFFECT_LOG_APPEND:
    case EFFECT_LOG_TRIM:
        *kind = MEM_LOG;
        *name = e->log.stream;
        return true;
    case EFFECT_FEED_APPEND:
    case EFFECT_FEED_TRIM:
        *kind = MEM_FEED;
        *name = e->feed.feed;
        return true;
    case EFFECT_CHUNK_PUT:
    case EFFECT_CHUNK_DROP:
        *kind = MEM_UPLOAD;
        *name = e->chunk.upload;
        return true;
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
    case EFFECT_ADD:
    case EFFECT_RAISE:
        return false;
    }
    return false;
}

/* The new entry of an effect that adds one; *adds tells whether it does. */
static struct mem_node *make_entry(struct memory *m, const struct effect *e, bool *adds)
{
    const struct bytes none = bytes_of(NULL, 0);

    *adds = true;
    if (e->kind == EFFECT_RANK_ADD)
        return mem_make_node(m, e->rank.rank, e->rank.member, none);
    if (e->kind == EFFECT_LOG_APPEND)
        return mem_make_node(m, e->log.seq, none, e->log.data);
    if (e->kind == EFFECT_FEED_APPEND) /* its position is given in apply */
        return mem_make_node(m, 0, none, e->feed.data);
    if (e->kind == EFFECT_CHUNK_PUT)
        return mem_make_node(m, e->chunk.index, none, e->chunk.data);
    *adds = false;
    return NULL;
}

static bool prepare_one(struct memory *m, const struct mem_space *space,
                        const struct effect *e, struct prepared *p)
{
    enum mem_set_kind kind;
    struct bytes name;
    bool adds;

    if (e->kind == EFFECT_PUT || e->kind == EFFECT_DELETE)
        p->old = mem_find_row(m, space, &e->row.ref);
    if (e->kind == EFFECT_INSERT)
        p->row = mem_make_row(space, &e->row.ref, e->row.ver, e->row.v);
    if (e->kind == EFFECT_PUT)
        p->row = make_changed(space, e, p->old);
    if (!effect_set(e, &kind, &name))
        return p->row || (e->kind != EFFECT_INSERT && e->kind != EFFECT_PUT);

    p->node = make_entry(m, e, &adds);
    if (adds && !p->node)
        return false;
    p->set =
        adds ? mem_need_set(m, space, kind, name) : mem_find_set(m, space, kind, name);
    return p->set || !adds;
}

/* --- apply --- */

static void replace_row(struct memory *m, struct mem_row *old, struct mem_row *with)
{
    if (old) {
        mem_unlink_row(m, old);
        free(old);
    }
    if (with)
        mem_link_row(m, with);
}

static void move_member(struct memory *m, struct mem_set *set, struct bytes member,
                        int64_t rank)
{
    struct mem_node *n = mem_find_member(m, set, member);

    mem_unlink_node(m, n);
    n->number = rank;
    mem_link_node(m, set, n);
}

static void remove_node(struct memory *m, struct mem_node *n)
{
    mem_unlink_node(m, n);
    free(n);
}

/* Removes the entries up to and including `upto`. */
static void trim(struct memory *m, struct mem_set *set, int64_t upto)
{
    struct mem_node *n = mem_tree_at_or_after(&set->tree, INT64_MIN, bytes_of(NULL, 0));

    while (n && n->number <= upto) {
        struct mem_node *next = mem_tree_next(n);
        remove_node(m, n);
        n = next;
    }
}

static void remove_number(struct memory *m, struct mem_set *set, int64_t number)
{
    struct mem_node *n = mem_tree_at_or_after(&set->tree, number, bytes_of(NULL, 0));

    if (n && n->number == number)
        remove_node(m, n);
}

static void apply_entry(struct memory *m, const struct effect *e, struct prepared *p,
                        struct effect_result *result)
{
    if (e->kind == EFFECT_FEED_APPEND) {
        p->node->number = ++p->set->last_pos; /* rule 5: given inside the commit */
        result->pos = (struct feed_pos){ .major = p->node->number };
        result->known = true;
    }
    if (e->kind == EFFECT_CHUNK_PUT)
        remove_number(m, p->set, e->chunk.index);
    mem_link_node(m, p->set, p->node);
}

static void apply_trim(struct memory *m, const struct effect *e, struct mem_set *set)
{
    if (!set)
        return;
    if (e->kind == EFFECT_CHUNK_DROP) {
        remove_number(m, set, e->chunk.index);
    } else if (e->kind == EFFECT_LOG_TRIM) {
        trim(m, set, e->log.seq);
    } else {
        int64_t upto = e->feed.upto.major;
        if (upto > set->last_pos)
            upto = set->last_pos;
        trim(m, set, upto);
        if (upto > set->trimmed)
            set->trimmed = upto;
    }
}

static void apply_counter(struct memory *m, const struct mem_space *space,
                          const struct effect *e, struct effect_result *result)
{
    struct mem_row *r = mem_find_row(m, space, &e->counter.ref);

    r->v[e->counter.column].kind = VALUE_I64;
    r->v[e->counter.column].i = result->value;
    result->known = true;
}

static void apply_one(struct memory *m, const struct mem_space *space,
                      const struct effect *e, struct prepared *p,
                      struct effect_result *result)
{
    if (is_row_effect(e))
        replace_row(m, p->old, p->row);
    else if (is_counter_effect(e))
        apply_counter(m, space, e, result);
    else if (e->kind == EFFECT_RANK_MOVE)
        move_member(m, p->set, e->rank.member, e->rank.rank);
    else if (e->kind == EFFECT_RANK_REMOVE)
        remove_node(m, mem_find_member(m, p->set, e->rank.member));
    else if (p->node)
        apply_entry(m, e, p, result);
    else
        apply_trim(m, e, p->set);
}

/* Row effects first: counters of a row that the plan inserts find it then. */
static void apply(struct memory *m, const struct mem_space *space,
                  const struct plan *plan, struct prepared *p,
                  struct plan_result *result)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (is_row_effect(&plan->effects[i]))
            apply_one(m, space, &plan->effects[i], &p[i], &result->effects[i]);
    }
    for (size_t i = 0; i < plan->n_effects; i++) {
        if (!is_row_effect(&plan->effects[i]))
            apply_one(m, space, &plan->effects[i], &p[i], &result->effects[i]);
    }
}

/* Collections that are empty now: made for nothing, or emptied by the plan.  Several
 * effects may name one, so it is looked up each time. */
static void drop_empty_sets(struct memory *m, const struct mem_space *space,
                            const struct plan *plan)
{
    enum mem_set_kind kind;
    struct bytes name;

    for (size_t i = 0; i < plan->n_effects; i++) {
        if (effect_set(&plan->effects[i], &kind, &name))
            mem_drop_set_if_empty(m, mem_find_set(m, space, kind, name));
    }
}

belay_rc mem_commit(struct memory *m, struct mem_attempt *a, const struct plan *plan,
                    struct plan_result *result, struct belay_error *err)
{
    const struct mem_space *space = mem_space(m, a, false);
    struct prepared few[FEW_EFFECTS];
    struct prepared *p = few;
    size_t n = 0;

    if (!guards_hold(m, space, plan, result) || !mem_scans_hold(m, a, plan, result))
        return BELAY_OK;
    if (plan->n_effects == 0)
        return BELAY_OK;
    belay_rc rc = check(m, space, plan, result, err);
    if (rc)
        return rc;

    space = mem_space(m, a, true);
    if (plan->n_effects > FEW_EFFECTS)
        p = malloc(plan->n_effects * sizeof(*p));
    bool ready = space && p && mem_tables_ready(m);
    while (ready && n < plan->n_effects) {
        p[n] = (struct prepared){ .row = NULL };
        ready = prepare_one(m, space, &plan->effects[n], &p[n]);
        n++;
    }
    if (ready)
        apply(m, space, plan, p, result);
    for (size_t i = 0; i < n && !ready; i++) {
        free(p[i].row);
        free(p[i].node);
    }
    drop_empty_sets(m, space, plan);
    if (p != few)
        free(p);
    return ready ? BELAY_OK : err_no_memory(err, "a commit");
}
