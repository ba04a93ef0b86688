/* Plans of several callers in one transaction.
 *
 * Plans that touch different things are one plan, with one wait for the disk.  What a
 * plan decides is not changed by its company: if a guard does not hold, its owner has a
 * conflict and the others are tried again without it; if anything else is wrong, each is
 * tried alone; if the reply is lost, each finds out by its own slot. */
#include "store/drivers/postgres/impl.h"

/* One plan, and all of them together, at most. */
#define PLAN_PARTS 48
#define PLAN_BYTES 32768
#define ALL_KEYS 512
#define ALL_BYTES 262144
#define TABLE ((size_t)2 * ALL_KEYS)

struct committer {
    struct pg_waiter w;
    const struct plan *plan;
    struct plan_result *result;
    struct belay_error *err;
    belay_rc rc;
    size_t bytes;
    uint64_t generation; /* of the attempt */
};

/* --- who goes together --- */

/* A thing that a plan of the company touches.  guard: it is only looked at, by that
 * guard; NULL: it is written, and of a row this is the new version. */
struct touched {
    uint64_t hash; /* 0: none */
    const struct guard *guard;
    int64_t ver;
};

struct company {
    struct bytes ns;
    uint64_t generation;
    struct touched table[TABLE];
    size_t n_keys, bytes;
};

static struct touched *find(struct company *c, uint64_t hash)
{
    size_t at = hash % TABLE;

    while (c->table[at].hash && c->table[at].hash != hash)
        at = (at + 1) % TABLE;
    return &c->table[at];
}

static bool is_row(const struct effect *e)
{
    return e->kind <= EFFECT_DELETE;
}

/* What an effect must have for itself; 0: nothing.  Two that look alike are taken for
 * one, which costs no more than a turn. */
static uint64_t effect_hash(const struct effect *e)
{
    switch (e->kind) {
    case EFFECT_INSERT:
    case EFFECT_PUT:
    case EFFECT_DELETE:
        return e->row.ref.hash | 1;
    case EFFECT_RANK_ADD:
    case EFFECT_RANK_MOVE:
    case EFFECT_RANK_REMOVE:
        return (key_hash(e->rank.index) * 31 + key_hash(e->rank.member)) | 1;
    case EFFECT_LOG_APPEND:
    case EFFECT_LOG_TRIM:
        return (key_hash(e->log.stream) * 37) | 1;
    case EFFECT_CHUNK_PUT:
    case EFFECT_CHUNK_DROP:
        return (key_hash(e->chunk.upload) * 41) | 1;
    case EFFECT_ADD:
    case EFFECT_RAISE:
    case EFFECT_FEED_APPEND:
    case EFFECT_FEED_TRIM:
        break;
    }
    return 0;
}

static size_t effect_bytes(const struct effect *e)
{
    size_t n = 0;

    if (e->kind == EFFECT_LOG_APPEND)
        return e->log.data.len;
    if (e->kind == EFFECT_FEED_APPEND)
        return e->feed.data.len;
    if (e->kind == EFFECT_CHUNK_PUT)
        return e->chunk.data.len;
    for (unsigned i = 0; is_row(e) && e->row.v && i < e->row.ref.type->n_columns; i++)
        n += e->row.v[i].b.len;
    return n;
}

static size_t plan_bytes(const struct plan *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_effects; i++)
        n += effect_bytes(&p->effects[i]);
    return n;
}

static bool clashes(struct company *c, const struct plan *p)
{
    for (size_t i = 0; i < p->n_effects; i++) {
        uint64_t hash = effect_hash(&p->effects[i]);
        if (hash && find(c, hash)->hash)
            return true;
    }
    for (size_t i = 0; i < p->n_guards; i++) {
        const struct guard *g = &p->guards[i];
        const struct touched *t = find(c, g->ref.hash | 1);
        if (t->hash && (!t->guard || t->guard->ver != g->ver ||
                        !row_ref_eq(&t->guard->ref, &g->ref)))
            return true;
    }
    return false;
}

static void join(struct company *c, const struct plan *p)
{
    for (size_t i = 0; i < p->n_effects; i++) {
        const struct effect *e = &p->effects[i];
        uint64_t hash = effect_hash(e);
        int64_t ver = is_row(e) && e->kind != EFFECT_DELETE ? e->row.ver : 0;
        if (hash)
            *find(c, hash) = (struct touched){ .hash = hash, .ver = ver };
    }
    for (size_t i = 0; i < p->n_guards; i++) {
        uint64_t hash = p->guards[i].ref.hash | 1;
        struct touched *t = find(c, hash);
        if (!t->hash)
            *t = (struct touched){ .hash = hash, .guard = &p->guards[i] };
    }
    c->n_keys += p->n_effects + p->n_guards;
}

static bool fits(void *arg, struct pg_waiter *w)
{
    const struct committer *m = (struct committer *)w;
    struct company *c = arg;

    if (c->generation != m->generation || !bytes_eq(c->ns, m->plan->ns) ||
        c->bytes + m->bytes > ALL_BYTES ||
        c->n_keys + m->plan->n_effects + m->plan->n_guards > ALL_KEYS ||
        clashes(c, m->plan))
        return false;
    join(c, m->plan);
    c->bytes += m->bytes;
    return true;
}

/* --- one plan of many --- */

struct merged {
    struct plan plan;
    struct plan_result result;
    struct place {
        struct committer *owner;
        size_t index; /* in its plan */
    } * place;        /* by guard */
};

static bool make_room(struct merged *all, struct committer *const *m, size_t n,
                      struct belay_arena *a)
{
    size_t guards = 0, effects = 0;

    for (size_t i = 0; i < n; i++) {
        guards += m[i]->plan->n_guards;
        effects += m[i]->plan->n_effects;
    }
    all->plan.guards = arena_zalloc(a, guards, sizeof(struct guard));
    all->plan.effects = arena_zalloc(a, effects, sizeof(struct effect));
    all->result.effects = arena_zalloc(a, effects, sizeof(struct effect_result));
    all->place = arena_zalloc(a, guards, sizeof(struct place));
    return all->plan.guards && all->plan.effects && all->result.effects && all->place;
}

/* A row that several only look at is guarded once. */
static bool is_guarded_by(struct company *c, const struct guard *g)
{
    const struct touched *t = find(c, g->ref.hash | 1);

    return !t->guard || t->guard == g;
}

static void add_plan(struct merged *all, struct company *c, struct committer *m)
{
    const struct plan *p = m->plan;

    for (size_t i = 0; i < p->n_guards; i++) {
        if (!is_guarded_by(c, &p->guards[i]))
            continue;
        all->place[all->plan.n_guards] = (struct place){ .owner = m, .index = i };
        all->plan.guards[all->plan.n_guards++] = p->guards[i];
    }
    for (size_t i = 0; i < p->n_effects; i++)
        all->plan.effects[all->plan.n_effects++] = p->effects[i];
}

static bool merge(struct merged *all, struct committer *const *m, size_t n,
                  struct belay_arena *a)
{
    struct company *c = arena_zalloc(a, 1, sizeof(*c));

    *all = (struct merged){ .plan = { .id = m[0]->plan->id, .ns = m[0]->plan->ns } };
    if (!c || !make_room(all, m, n, a))
        return false;
    for (size_t i = 0; i < n; i++)
        join(c, m[i]->plan);
    for (size_t i = 0; i < n; i++)
        add_plan(all, c, m[i]);
    return true;
}

static void take_results(const struct merged *all, struct committer *const *m, size_t n)
{
    const struct effect_result *from = all->result.effects;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < m[i]->plan->n_effects; k++)
            m[i]->result->effects[k] = *from++;
        m[i]->rc = BELAY_OK;
    }
}

static void tell_all(struct committer *const *m, size_t n, belay_rc rc,
                     const struct belay_error *why)
{
    for (size_t i = 0; i < n; i++) {
        m[i]->rc = rc;
        if (m[i]->err)
            *m[i]->err = *why;
    }
}

/* Whose guard it was has a conflict; the others are left. */
static size_t without_loser(struct committer **m, size_t n, const struct place *place)
{
    size_t left = 0;

    place->owner->rc = BELAY_OK;
    place->owner->result->conflict = true;
    place->owner->result->failed_guard = place->index;
    for (size_t i = 0; i < n; i++) {
        if (m[i] != place->owner)
            m[left++] = m[i];
    }
    return left;
}

static void commit_each(struct pg_store *s, struct committer *const *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct pg_attempt at = { .ns = m[i]->plan->ns, .generation = m[i]->generation };
        m[i]->rc = pg_commit_alone(s, &at, m[i]->plan, m[i]->result, m[i]->err);
    }
}

static void commit_all(struct pg_store *s, struct committer **m, size_t n)
{
    while (n > 1) {
        CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
        struct merged all;
        struct pg_attempt at = { .ns = m[0]->plan->ns, .generation = m[0]->generation };
        struct belay_error why = { .code = 0 };
        belay_rc rc = merge(&all, m, n, &arena)
                          ? pg_commit_alone(s, &at, &all.plan, &all.result, &why)
                          : BELAY_NO_MEMORY;

        if (rc == BELAY_OK && !all.result.conflict) {
            take_results(&all, m, n);
            return;
        }
        /* None may run again; or there is no server, for none of them. */
        if (rc == BELAY_UNKNOWN_OUTCOME || at.lost) {
            tell_all(m, n, rc, &why);
            return;
        }
        if (rc)
            break;
        n = without_loser(m, n, &all.place[all.result.failed_guard]);
    }
    commit_each(s, m, n);
}

/* --- a caller --- */

/* Who waits with a guard that the company has just made untrue has a conflict: it need
 * not ask, and is not behind the one who was faster the next time, too. */
static bool is_too_late(void *arg, struct pg_waiter *w)
{
    struct committer *m = (struct committer *)w;
    struct company *c = arg;

    for (size_t i = 0; i < m->plan->n_guards && bytes_eq(c->ns, m->plan->ns); i++) {
        const struct guard *g = &m->plan->guards[i];
        const struct touched *t = find(c, g->ref.hash | 1);
        if (!t->hash || t->guard || t->ver == g->ver)
            continue;
        m->rc = BELAY_OK;
        m->result->conflict = true;
        m->result->failed_guard = i;
        return true;
    }
    return false;
}

/* All but who leads: it was never asleep. */
static void answer(struct pg_waiter *all)
{
    for (struct pg_waiter *w = all, *next; w; w = next) {
        next = w->next;
        if (!w->called)
            pg_line_answer(w);
    }
}

static void lead(struct pg_store *s, struct committer *self)
{
    struct company c = { .ns = self->plan->ns,
                         .generation = self->generation,
                         .bytes = self->bytes };
    struct committer *m[ALL_KEYS];
    size_t n = 0;

    join(&c, self->plan);
    struct pg_waiter *all = pg_line_take(&s->committers, &self->w, fits, &c);
    for (struct pg_waiter *w = all; w; w = w->next)
        m[n++] = (struct committer *)w;
    commit_all(s, m, n);
    c = (struct company){ .ns = self->plan->ns };
    for (struct pg_waiter *w = all; w; w = w->next) {
        const struct committer *done = (struct committer *)w;
        if (done->rc == BELAY_OK && !done->result->conflict)
            join(&c, done->plan);
    }
    struct pg_waiter *late = pg_line_take(&s->committers, NULL, is_too_late, &c);
    pg_line_leave(&s->committers);
    answer(late);
    answer(all);
}

belay_rc pg_commit_together(struct pg_store *s, struct pg_attempt *at,
                            const struct plan *plan, struct plan_result *result,
                            struct belay_error *err)
{
    struct committer self = {
        .plan = plan, .result = result, .err = err, .generation = at->generation
    };

    self.bytes = plan_bytes(plan);
    if (plan->n_effects + plan->n_guards > PLAN_PARTS || self.bytes > PLAN_BYTES)
        return pg_commit_alone(s, at, plan, result, err);
    if (pg_line_enter(&s->committers, &self.w))
        lead(s, &self);
    return self.rc;
}
