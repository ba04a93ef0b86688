/* A plan as the arguments of belay2_commit.
 *
 *   head       u32 puts of rows that must not be there, u32 puts, u32 deletes, u32 other
 *              guards, u32 rows with columns that become NULL, u32 groups of ranks, u8 is
 *              there a rest, u32 holds, u8 is there a wake-up
 *   keys       of rows to put, those that must not be there first; to delete; only guarded
 *   versions   expected, of all of those but the first
 *   puts       each: how many arguments follow, field, value ...
 *   nulls      each: key, how many, fields
 *   indexes, and the rest, if there is one (plan_rest.c)
 *   holds      each: key, members ..., how many; read from the end
 *   wake-up    channel, message
 */
#include "store/drivers/valkey/shapes.h"

#define HEAD_LEN 30
#define NO_EFFECT SIZE_MAX

/* --- names --- */

bool vk_names_init(struct vk_names *t, size_t n, struct belay_arena *a)
{
    t->n_slots = 8;
    while (t->n_slots < 2 * n)
        t->n_slots *= 2;
    t->slots = arena_zalloc(a, t->n_slots, sizeof(*t->slots));
    return t->slots != NULL;
}

struct vk_name *vk_names_at(struct vk_names *t, struct bytes name, uint64_t hash)
{
    size_t i = (size_t)hash & (t->n_slots - 1);

    while (t->slots[i].name.ptr &&
           (t->slots[i].hash != hash || !bytes_eq(t->slots[i].name, name)))
        i = (i + 1) & (t->n_slots - 1);
    if (!t->slots[i].name.ptr)
        t->slots[i] = (struct vk_name){ .name = name, .hash = hash, .value = SIZE_MAX };
    return &t->slots[i];
}

/* --- rows --- */

static bool is_row_effect(const struct effect *e)
{
    return e->kind == EFFECT_INSERT || e->kind == EFFECT_PUT ||
           e->kind == EFFECT_DELETE;
}

/* Which guard covers each row effect. */
static belay_rc match_guards(struct vk_plan *p, struct belay_error *err)
{
    const struct plan *plan = p->plan;

    for (size_t i = 0; i < plan->n_guards; i++) {
        const struct row_ref *ref = &plan->guards[i].ref;
        struct vk_name *row = vk_names_at(&p->rows, ref->enc, ref->hash);
        p->effect_of[i] = NO_EFFECT;
        if (row->value == SIZE_MAX)
            row->value = i;
    }
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        if (!is_row_effect(e))
            continue;
        const struct row_ref *ref = &e->row.ref;
        size_t guard = vk_names_at(&p->rows, ref->enc, ref->hash)->value;
        if (guard == SIZE_MAX)
            return err_set(err, BELAY_MISUSE, "plan: a row effect without a guard");
        p->effect_of[guard] = i;
    }
    return BELAY_OK;
}

static void add_value(struct vk_args *l, const struct value *v)
{
    if (v->kind == VALUE_I64)
        vk_add_i64(l, v->i);
    else
        vk_add(l, v->b);
}

/* Columns that a put writes; counters and keys are never among them. */
static uint64_t written(const struct effect *e)
{
    return e->kind == EFFECT_INSERT ? UINT64_MAX : e->row.changed & ~e->row.same;
}

/* Columns that become NULL lose their field. */
static void add_nulls(struct vk_plan *p, struct bytes key, const struct effect *e)
{
    const struct row_type *type = e->row.ref.type;
    size_t n = 0;

    for (unsigned i = type->n_key; i < type->n_columns; i++)
        n += (written(e) >> i & 1) && e->row.v[i].kind == VALUE_NULL;
    if (n == 0)
        return;
    p->n_nulls++;
    vk_add(&p->nulls, key);
    vk_add_i64(&p->nulls, (int64_t)n);
    for (unsigned i = type->n_key; i < type->n_columns; i++) {
        if ((written(e) >> i & 1) && e->row.v[i].kind == VALUE_NULL)
            vk_add_str(&p->nulls, type->columns[i].name);
    }
}

static void add_put(struct vk_plan *p, struct bytes key, const struct effect *e)
{
    const struct row_type *type = e->row.ref.type;
    int64_t n = 2;

    for (unsigned i = type->n_key; i < type->n_columns; i++)
        n += (written(e) >> i & 1) && e->row.v[i].kind != VALUE_NULL ? 2 : 0;
    vk_add_i64(&p->puts, n);
    vk_add_str(&p->puts, "ver");
    vk_add_i64(&p->puts, e->row.ver);
    for (unsigned i = type->n_key; i < type->n_columns; i++) {
        if ((written(e) >> i & 1) && e->row.v[i].kind != VALUE_NULL) {
            vk_add_str(&p->puts, type->columns[i].name);
            add_value(&p->puts, &e->row.v[i]);
        }
    }
    if (e->kind == EFFECT_PUT)
        add_nulls(p, key, e);
}

/* What a guard goes along with, in the order in which the function has them. */
enum guard_class { OF_NEW_ROW, OF_PUT, OF_DELETE, OF_NOTHING };

static enum guard_class class_of(const struct vk_plan *p, size_t guard)
{
    size_t effect = p->effect_of[guard];

    if (effect == NO_EFFECT)
        return OF_NOTHING;
    if (p->plan->effects[effect].kind == EFFECT_DELETE)
        return OF_DELETE;
    return p->plan->guards[guard].ver == 0 ? OF_NEW_ROW : OF_PUT;
}

static void add_rows(struct vk_plan *p)
{
    const struct plan *plan = p->plan;
    size_t n = 0;

    for (int class = 0; class < VK_GUARD_CLASSES; class ++) {
        for (size_t i = 0; i < plan->n_guards; i++) {
            const struct guard *g = &plan->guards[i];
            if ((int)class_of(p, i) != class)
                continue;
            struct bytes key = vk_key_of_row(&p->keys, &g->ref);
            p->order[n++] = i;
            p->n_of[class]++;
            vk_add(&p->row_keys, key);
            if (class != OF_NEW_ROW)
                vk_add_i64(&p->row_vers, g->ver);
            if (class == OF_NEW_ROW || class == OF_PUT)
                add_put(p, key, &plan->effects[p->effect_of[i]]);
        }
    }
}

/* --- all of it --- */

static void add_head(struct vk_plan *p)
{
    uint8_t *head = arena_alloc(p->arena, HEAD_LEN);

    if (!head) {
        p->no_memory = true;
        return;
    }
    uint8_t *at = vk_put_u32(head, p->n_of[OF_NEW_ROW]);
    at = vk_put_u32(at, p->n_of[OF_NEW_ROW] + p->n_of[OF_PUT]);
    at = vk_put_u32(at, p->n_of[OF_DELETE]);
    at = vk_put_u32(at, p->n_of[OF_NOTHING]);
    at = vk_put_u32(at, p->n_nulls);
    at = vk_put_u32(at, p->n_groups);
    *at++ = p->rest_head.n > 0;
    at = vk_put_u32(at, p->n_holds);
    *at = p->wake.n > 0;
    vk_add(&p->head, bytes_of(head, HEAD_LEN));
}

static void add_holds(struct vk_plan *p, const struct vk_attempt *at)
{
    if (at->holds && vk_mono_us() >= at->held_until_us)
        return; /* perhaps somebody else's by now */
    for (const struct vk_hold *h = at->holds; h; h = h->next) {
        vk_add(&p->holds, vk_key(&p->keys, VK_HELD, h->index));
        for (size_t i = 0; i < h->n; i++)
            vk_add(&p->holds, h->members[i]);
        vk_add_i64(&p->holds, (int64_t)h->n);
        p->n_holds++;
    }
}

static void add_wake(struct vk_plan *p)
{
    struct bytes channel, message;

    if (!vk_wake_up(p->s, p->plan, p->arena, &channel, &message))
        return; /* a hint: told behind the commit */
    vk_add(&p->wake, channel);
    vk_add(&p->wake, message);
}

belay_rc vk_plan_make(struct vk_plan *p, struct belay_error *err)
{
    const struct plan *plan = p->plan;
    struct vk_args *const lists[] = { &p->head,      &p->row_keys, &p->row_vers,
                                      &p->puts,      &p->nulls,    &p->indexes,
                                      &p->rest_head, &p->streams,  &p->entries,
                                      &p->counters,  &p->feeds,    &p->chunks,
                                      &p->holds,     &p->wake };

    for (size_t i = 0; i < COUNT_OF(lists); i++)
        lists[i]->arena = p->arena;
    p->order = arena_alloc(p->arena, plan->n_guards * sizeof(size_t));
    p->effect_of = arena_alloc(p->arena, plan->n_guards * sizeof(size_t));
    if (!p->order || !p->effect_of ||
        !vk_names_init(&p->rows, plan->n_guards + plan->n_effects, p->arena))
        return err_no_memory(err, "a commit");
    vk_layout_init(&p->keys, p->s, plan->ns, p->arena);
    belay_rc rc = match_guards(p, err);
    if (rc)
        return rc;
    add_rows(p);
    vk_plan_rest(p);
    return BELAY_OK;
}

void vk_plan_send(struct vk_plan *p, const struct vk_attempt *at, struct vk_request *r)
{
    struct vk_args *const lists[] = { &p->head,      &p->row_keys, &p->row_vers,
                                      &p->puts,      &p->nulls,    &p->indexes,
                                      &p->rest_head, &p->streams,  &p->entries,
                                      &p->counters,  &p->feeds,    &p->chunks,
                                      &p->holds,     &p->wake,     &p->scans };

    add_holds(p, at);
    add_wake(p);
    add_head(p);
    vk_plan_scans(p);
    r->no_memory |= p->no_memory || p->keys.no_memory;
    vk_fcall(r, "FCALL", p->scans.n > 0 ? "belay2_commit_seen" : "belay2_commit",
             p->keys.base, lists, COUNT_OF(lists));
    r->no_memory |= p->keys.no_memory;
}
