/* Every answer of the driver, compared with the model at the moment it was given, and
 * the form of every plan before it gets there. */
#include "sim.h"

#define HITS_MAX WANTS_MAX
#define INDEXES_MAX 4

static void check_row(struct sim *s, struct bytes ns, const struct read *q)
{
    struct mrow got = row_of(ns, q->row.ref.type, q->row.ref.key, q->row.out);
    const struct mrow *want =
        model_row(&s->model, key_of(ns, q->row.ref.type, q->row.ref.key));

    if ((want ? want->ver : 0) != got.ver ||
        (want && !model_values_same(want->v, got.v, got.n, got.counters)))
        violation(s, "read", "%s: a read shows another row than was written", got.type);
}

struct mscan mscan_of(struct bytes ns, const struct scan *scan, struct mname *names)
{
    struct mscan m = { .ns = ns_of(ns),
                       .indexes = names,
                       .n_indexes = scan->n_indexes,
                       .min_rank = scan->min_rank,
                       .max_rank = scan->max_rank,
                       .descending = scan->descending,
                       .limit = scan->limit };

    for (size_t i = 0; i < scan->n_indexes; i++)
        names[i] = name_of(scan->indexes[i]);
    if (scan->after) {
        m.has_after = true;
        m.after_rank = scan->after->rank;
        m.after_member = name_of(scan->after->member);
        m.after_index = name_of(scan->after->index);
    }
    return m;
}

/* The scan as the body asked for it (the layer above may ask for more), with what the
 * body itself has changed. */
static void foresee(struct sim *s, struct actor *a, const struct mscan *asked)
{
    struct mname names[INDEXES_MAX];
    struct mrank own[RECORD_OPS];
    const struct record *rec = a->call->last;
    struct mscan m = mscan_of(space_bytes(op_space(a)), a->scan, names);

    a->outrun = false;
    for (size_t i = 0; i < rec->n_ops; i++) {
        if (rec->ops[i].kind != REC_RANK)
            continue;
        const struct mrank *change = &rec->ops[i].rank;
        bool first = true;
        for (size_t k = 0; k < m.n_own; k++)
            first &= !model_same(&own[k].index, &change->index) ||
                     !model_same(&own[k].member, &change->member);
        if (first && !model_stands(&s->model, rec->ns, change))
            a->outrun = true;
        own[m.n_own++] = *change;
    }
    m.ns = rec->ns;
    m.own = own;
    m.holder = asked->holder;
    m.now_us = asked->now_us;
    a->n_want = model_scan(&s->model, &m, a->want, HITS_MAX);
}

static void check_rank(struct sim *s, struct bytes ns, uint64_t holder,
                       int64_t *hold_until_us, const struct read *q)
{
    struct mname names[INDEXES_MAX];
    struct mentry want[HITS_MAX];
    struct mscan m = mscan_of(ns, q->rank.scan, names);
    struct actor *a = s->running->actor;

    m.holder = q->rank.hold ? holder : 0;
    m.now_us = s->mono_us;
    size_t n = model_scan(&s->model, &m, want, HITS_MAX);
    bool same = n == q->rank.out.n;
    for (size_t i = 0; i < n && same; i++) {
        const struct hit *hit = &q->rank.out.hit[i];
        struct mname index = name_of(hit->index), member = name_of(hit->member);
        same = hit->rank == want[i].number && model_same(&index, &want[i].name) &&
               model_same(&member, &want[i].member);
    }
    if (!same)
        violation(s, q->rank.hold ? "hold" : "read",
                  "%s of %zu members, %zu are there to be had, or in another order",
                  q->rank.hold ? "pick" : "scan", q->rank.out.n, n);
    if (a && a->scan && a->call && a->call->last)
        foresee(s, a, &m);
    if (!q->rank.hold)
        return;
    if (*hold_until_us == 0)
        *hold_until_us = s->mono_us + HOLD_MAX_US;
    for (size_t i = 0; i < n; i++)
        model_hold(&s->model, &(struct mhold){ .holder = holder,
                                               .ns = m.ns,
                                               .index = want[i].name,
                                               .member = want[i].member,
                                               .until_us = *hold_until_us });
}

static void check_log(struct sim *s, struct bytes ns, const struct read *q)
{
    struct mname name = name_of(q->log.stream);
    int64_t after = q->log.after;

    for (size_t i = 0; i <= q->log.out.n && i < q->log.limit; i++) {
        const struct mentry *e = model_next(&s->model, ns_of(ns), M_LOG, &name, after);
        const struct log_entry *got = i < q->log.out.n ? &q->log.out.entry[i] : NULL;
        if (!e && !got)
            return;
        if (!e || !got || got->seq != e->number || data_of(got->data) != e->digest) {
            violation(s, "read", "a log shows other entries than were appended");
            return;
        }
        after = e->number;
    }
}

static void check_feed(struct sim *s, struct bytes ns, const struct read *q)
{
    struct mname name = name_of(q->feed.feed);
    int64_t after = q->feed.after.major;

    if (q->feed.out.trimmed.major != model_feed_trimmed(&s->model, ns_of(ns), &name))
        violation(s, "read", "a feed says that it was trimmed elsewhere");
    for (size_t i = 0; i <= q->feed.out.n && i < q->feed.limit; i++) {
        const struct mentry *e = model_next(&s->model, ns_of(ns), M_FEED, &name, after);
        const struct feed_entry *got = i < q->feed.out.n ? &q->feed.out.entry[i] : NULL;
        if (!e && !got)
            return;
        if (!e || !got || got->pos.major != e->number ||
            data_of(got->data) != e->digest) {
            violation(s, "read", "a feed shows other entries than were appended");
            return;
        }
        after = e->number;
    }
}

static void check_chunk(struct sim *s, struct bytes ns, const struct read *q)
{
    struct mname name = name_of(q->chunk.upload);
    const struct mentry *e =
        model_next(&s->model, ns_of(ns), M_CHUNK, &name, q->chunk.index - 1);
    bool there = e && e->number == q->chunk.index;

    if (there != q->chunk.found || (there && data_of(q->chunk.out) != e->digest))
        violation(s, "read", "a chunk has other bytes than were put");
}

static bool is_same_target(const struct effect *a, const struct effect *b)
{
    if (a->kind <= EFFECT_DELETE && b->kind <= EFFECT_DELETE)
        return bytes_eq(a->row.ref.enc, b->row.ref.enc);
    bool ranks = a->kind >= EFFECT_RANK_ADD && a->kind <= EFFECT_RANK_REMOVE &&
                 b->kind >= EFFECT_RANK_ADD && b->kind <= EFFECT_RANK_REMOVE;
    return ranks && bytes_eq(a->rank.index, b->rank.index) &&
           bytes_eq(a->rank.member, b->rank.member);
}

/* The session of an inbox's index; false: it is another index. */
static bool inbox_of(struct bytes index, struct bytes *out)
{
    const struct bytes heads[] = { bytes_str(READY_INDEX), bytes_str(DUE_INDEX) };

    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        size_t n = heads[i].len;
        *out = index.len > n ? bytes_of(index.ptr + n, index.len - n) : index;
        if (index.len > n && memcmp(index.ptr, heads[i].ptr, n) == 0)
            return true;
    }
    return false;
}

/* The effect of a plan on a row of a session's; NULL: it has none. */
static const struct effect *writes(const struct plan *plan, const struct row_type *type,
                                   struct bytes session, int64_t seq)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        if (e->kind <= EFFECT_DELETE && e->row.ref.type == type &&
            bytes_eq(e->row.ref.key[0].b, session) &&
            (type->n_key == 1 || e->row.ref.key[1].i == seq))
            return e;
    }
    return NULL;
}

/* A batch that comes with the same plan, which gives out its sequence, and stands where that says:
 * behind all others. */
static bool enters_behind(const struct plan *plan, const struct effect *e,
                          struct bytes session)
{
    const struct effect *batch = writes(plan, &row_batch, session, e->rank.rank);

    return e->kind == EFFECT_RANK_ADD && e->rank.index.len > strlen(READY_INDEX) &&
           memcmp(e->rank.index.ptr, READY_INDEX, strlen(READY_INDEX)) == 0 && batch &&
           batch->kind == EFFECT_INSERT && writes(plan, &row_inbox, session, 0);
}

/* Whoever knows the front of an inbox relies on what he knows of its indexes (scan.cover). */
static bool is_covered(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        struct bytes session;
        if (e->kind >= EFFECT_RANK_ADD && e->kind <= EFFECT_RANK_REMOVE &&
            inbox_of(e->rank.index, &session) && !enters_behind(plan, e, session) &&
            !writes(plan, &row_inbox_front, session, 0))
            return false;
    }
    return true;
}

bool watch_plan(struct front *f, const struct plan *plan)
{
    if (is_work(f->sim->setup) && !is_covered(plan)) {
        violation(f->sim, "plan", "an index changes without the front that covers it");
        return false;
    }
    for (size_t i = 0; i < plan->n_effects; i++) {
        for (size_t j = 0; j < i; j++) {
            if (!is_same_target(&plan->effects[i], &plan->effects[j]))
                continue;
            violation(f->sim, "plan", "two effects on one row or one rank entry");
            return false;
        }
    }
    return true;
}

void watch_read(struct front *f, uint64_t holder, int64_t *hold_until_us,
                struct bytes ns, const struct read *q)
{
    struct sim *s = f->sim;

    if (s->rule)
        return;
    switch (q->kind) {
    case READ_ROW:
        check_row(s, ns, q);
        break;
    case READ_RANK:
        check_rank(s, ns, holder, hold_until_us, q);
        break;
    case READ_LOG:
        check_log(s, ns, q);
        break;
    case READ_FEED:
        check_feed(s, ns, q);
        break;
    case READ_CHUNK:
        check_chunk(s, ns, q);
        break;
    }
}
