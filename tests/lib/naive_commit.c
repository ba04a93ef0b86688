/* Committing: changes are made beside what is there, then kept or thrown away. */
#include <stdlib.h>
#include <string.h>

#include "naive_impl.h"

static struct bytes put(uint8_t **at, struct bytes b)
{
    struct bytes copy = bytes_of(*at, b.len);

    if (b.len > 0)
        memcpy(*at, b.ptr, b.len);
    *at += b.len;
    return copy;
}

/* A copy of everything in `from`, whose values are in row.v; NULL: no memory. */
static struct record *make(const struct record *from)
{
    unsigned n = from->kind == ITEM_ROW ? from->row.type->n_columns : 0;
    size_t len = from->ns.len + from->name.len + from->member.len + from->data.len;

    for (unsigned i = 0; i < n; i++)
        len += naive_has_bytes(&from->row.v[i]) ? from->row.v[i].b.len : 0;
    struct record *r = malloc(sizeof(*r) + n * sizeof(struct value) + len);
    if (!r)
        return NULL;
    uint8_t *at = (uint8_t *)(r->v + n);
    *r = *from;
    r->ns = put(&at, from->ns);
    r->name = put(&at, from->name);
    r->member = put(&at, from->member);
    r->data = put(&at, from->data);
    for (unsigned i = 0; i < n; i++) {
        r->v[i] = from->row.v[i];
        r->v[i].b =
            naive_has_bytes(&r->v[i]) ? put(&at, from->row.v[i].b) : bytes_of(NULL, 0);
    }
    r->row.v = r->v;
    r->fresh = true;
    r->dropped = false;
    r->holder = 0;
    return r;
}

/* Room for it was made before. */
static bool add(struct naive *s, const struct record *from)
{
    struct record *r = make(from);

    if (r)
        s->records[s->n++] = r;
    return r;
}

static struct record *find_member(struct naive *s, struct bytes ns, struct bytes index,
                                  struct bytes member)
{
    for (size_t i = 0; i < s->n; i++) {
        if (naive_is_in(s->records[i], ITEM_RANK, ns, index) &&
            bytes_eq(s->records[i]->member, member))
            return s->records[i];
    }
    return NULL;
}

static belay_rc no_memory(struct belay_error *err)
{
    return err_no_memory(err, "a commit");
}

/* Replaces r by a copy of itself with another number and other values. */
static belay_rc replace(struct naive *s, struct record *r, const struct record *with,
                        struct belay_error *err)
{
    if (!add(s, with))
        return no_memory(err);
    r->dropped = true;
    return BELAY_OK;
}

static belay_rc apply_row(struct naive *s, struct bytes ns, const struct effect *e,
                          struct belay_error *err)
{
    struct record *old = naive_find_row(s, ns, &e->row.ref);
    struct value v[SCHEMA_COLUMNS_MAX];
    const struct row_type *type = e->row.ref.type;
    struct record with = { .kind = ITEM_ROW, .ns = ns, .name = e->row.ref.enc };

    if (old)
        old->dropped = true;
    if (e->kind == EFFECT_DELETE)
        return BELAY_OK;
    for (unsigned i = 0; i < type->n_columns; i++) {
        bool kept = e->kind == EFFECT_PUT && !((e->row.changed >> i) & 1);
        v[i] = kept && old ? old->v[i] : e->row.v[i];
    }
    with.row = (struct row){ .type = type, .ver = e->row.ver, .v = v };
    return add(s, &with) ? BELAY_OK : no_memory(err);
}

static belay_rc apply_counter(struct naive *s, struct bytes ns, const struct effect *e,
                              struct effect_result *result, struct belay_error *err)
{
    struct record *old = naive_find_row(s, ns, &e->counter.ref);
    struct value v[SCHEMA_COLUMNS_MAX];

    if (!old) {
        belay_rc rc = err_set(err, BELAY_NOT_FOUND, "counter: no such row");
        err_entity(err, bytes_str(e->counter.ref.type->name));
        return rc;
    }
    struct record with = *old;
    memcpy(v, old->v, old->row.type->n_columns * sizeof(*v));
    int64_t was = v[e->counter.column].kind == VALUE_I64 ? v[e->counter.column].i : 0;
    belay_rc rc = counter_add(e, was, &result->value, err);
    if (rc)
        return rc;
    result->known = true;
    v[e->counter.column] = value_i64(result->value);
    with.row.v = v;
    return replace(s, old, &with, err);
}

static belay_rc corrupt(struct bytes entity, const char *reason,
                        struct belay_error *err)
{
    belay_rc rc = err_reason(err, BELAY_CORRUPT, reason, "not as the plan expects it");

    err_entity(err, entity);
    return rc;
}

static belay_rc apply_rank(struct naive *s, struct bytes ns, const struct effect *e,
                           struct belay_error *err)
{
    struct record *old = find_member(s, ns, e->rank.index, e->rank.member);
    struct record with = { .kind = ITEM_RANK,
                           .ns = ns,
                           .name = e->rank.index,
                           .member = e->rank.member,
                           .number = e->rank.rank };

    if (e->kind == EFFECT_RANK_ADD ? old != NULL
                                   : !old || old->number != e->rank.old_rank)
        return corrupt(e->rank.index, "rank", err);
    if (old)
        old->dropped = true;
    if (e->kind == EFFECT_RANK_REMOVE)
        return BELAY_OK;
    return add(s, &with) ? BELAY_OK : no_memory(err);
}

static void drop_upto(struct naive *s, int kind, struct bytes ns, struct bytes name,
                      int64_t upto, int64_t *highest)
{
    for (size_t i = 0; i < s->n; i++) {
        struct record *r = s->records[i];
        if (!naive_is_in(r, kind, ns, name) || r->number > upto)
            continue;
        r->dropped = true;
        if (highest && r->number > *highest)
            *highest = r->number;
    }
}

static belay_rc apply_log(struct naive *s, struct bytes ns, const struct effect *e,
                          struct belay_error *err)
{
    struct bytes stream = e->log.stream;
    struct record with = { .kind = ITEM_LOG,
                           .ns = ns,
                           .name = stream,
                           .number = e->log.seq,
                           .data = e->log.data };

    if (e->kind == EFFECT_LOG_TRIM) {
        drop_upto(s, ITEM_LOG, ns, stream, e->log.seq, NULL);
        return BELAY_OK;
    }
    bool there = naive_find_number(s, ITEM_LOG, ns, stream, e->log.seq);
    bool next = !naive_find_any(s, ITEM_LOG, ns, stream) ||
                naive_find_number(s, ITEM_LOG, ns, stream, e->log.seq - 1);
    if (there || !next)
        return corrupt(stream, "log", err);
    return add(s, &with) ? BELAY_OK : no_memory(err);
}

static belay_rc apply_feed(struct naive *s, struct bytes ns, const struct effect *e,
                           struct effect_result *result, struct belay_error *err)
{
    struct bytes feed = e->feed.feed;
    struct record with = { .kind = ITEM_FEED, .ns = ns, .name = feed };

    if (e->kind == EFFECT_FEED_APPEND) {
        with.data = e->feed.data;
        with.number = ++s->last_pos;
        *result = (struct effect_result){ .known = true, .pos.major = s->last_pos };
        return add(s, &with) ? BELAY_OK : no_memory(err);
    }
    struct record *old = naive_find_any(s, KIND_TRIM, ns, feed);
    with.kind = KIND_TRIM;
    with.number = old ? old->number : 0;
    drop_upto(s, ITEM_FEED, ns, feed, e->feed.upto.major, &with.number);
    if (old)
        old->dropped = true;
    return with.number == 0 || add(s, &with) ? BELAY_OK : no_memory(err);
}

static belay_rc apply_chunk(struct naive *s, struct bytes ns, const struct effect *e,
                            struct belay_error *err)
{
    struct record *old =
        naive_find_number(s, ITEM_CHUNK, ns, e->chunk.upload, e->chunk.index);
    struct record with = { .kind = ITEM_CHUNK,
                           .ns = ns,
                           .name = e->chunk.upload,
                           .number = e->chunk.index,
                           .data = e->chunk.data };

    if (old)
        old->dropped = true;
    if (e->kind == EFFECT_CHUNK_DROP)
        return BELAY_OK;
    return add(s, &with) ? BELAY_OK : no_memory(err);
}

static bool is_row(const struct effect *e)
{
    return e->kind <= EFFECT_DELETE;
}

static bool is_counter(const struct effect *e)
{
    return e->kind == EFFECT_ADD || e->kind == EFFECT_RAISE;
}

static belay_rc apply_other(struct naive *s, struct bytes ns, const struct effect *e,
                            struct effect_result *result, struct belay_error *err)
{
    if (e->kind <= EFFECT_RANK_REMOVE)
        return apply_rank(s, ns, e, err);
    if (e->kind <= EFFECT_LOG_TRIM)
        return apply_log(s, ns, e, err);
    if (e->kind <= EFFECT_FEED_TRIM)
        return apply_feed(s, ns, e, result, err);
    return apply_chunk(s, ns, e, err);
}

/* Rows, then what can be corrupt, then counters: the order of rule 3. */
static belay_rc apply(struct naive *s, const struct plan *plan,
                      struct plan_result *result, struct belay_error *err)
{
    belay_rc rc = BELAY_OK, range = BELAY_OK;
    struct belay_error counter_err = { .code = BELAY_OK };

    for (size_t i = 0; i < plan->n_effects && !rc; i++) {
        if (is_row(&plan->effects[i]))
            rc = apply_row(s, plan->ns, &plan->effects[i], err);
    }
    for (size_t i = 0; i < plan->n_effects && !rc; i++) {
        const struct effect *e = &plan->effects[i];
        if (!is_row(e) && !is_counter(e))
            rc = apply_other(s, plan->ns, e, &result->effects[i], err);
    }
    for (size_t i = 0; i < plan->n_effects && !rc; i++) {
        if (!is_counter(&plan->effects[i]))
            continue;
        belay_rc one = apply_counter(s, plan->ns, &plan->effects[i],
                                     &result->effects[i], &counter_err);
        bool first = one && (one != BELAY_OUT_OF_RANGE || !range);
        if (first && err)
            *err = counter_err;
        if (one != BELAY_OUT_OF_RANGE)
            rc = one;
        else if (first)
            range = one;
    }
    return rc ? rc : range;
}

/* Keeps what the plan made, or what was there before it. */
static void settle(struct naive *s, bool keep)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct record *r = s->records[i];
        if (keep ? r->dropped : r->fresh) {
            free(r);
            continue;
        }
        r->fresh = false;
        r->dropped = false;
        s->records[n++] = r;
    }
    s->n = n;
}

static bool make_room(struct naive *s, size_t more)
{
    if (s->cap - s->n >= more)
        return true;
    struct record **records =
        realloc(s->records, (s->n + more) * 2 * sizeof(struct record *));
    if (!records)
        return false;
    s->records = records;
    s->cap = (s->n + more) * 2;
    return true;
}

belay_rc naive_commit(struct naive *s, const struct plan *plan,
                      struct plan_result *result, struct belay_error *err)
{
    for (size_t i = 0; i < plan->n_guards; i++) {
        const struct record *r = naive_find_row(s, plan->ns, &plan->guards[i].ref);
        if ((r ? r->row.ver : 0) != plan->guards[i].ver) {
            result->conflict = true;
            result->failed_guard = i;
            return BELAY_OK;
        }
    }
    if (!make_room(s, plan->n_effects))
        return no_memory(err);
    int64_t last_pos = s->last_pos;
    belay_rc rc = apply(s, plan, result, err);
    if (rc)
        s->last_pos = last_pos;
    settle(s, !rc);
    return rc;
}
