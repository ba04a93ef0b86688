/* A plan as the arguments of belay6_commit.
 *
 *   head       fifteen numbers: is there a wake-up; holds; puts of rows that must not be
 *              there; puts; deletes; other guards; raises; rows with columns that become
 *              NULL; where those begin; where the indexes do (the head is 1); single adds;
 *              single removes; single moves; groups of ranks; rest (0: none, 1: an entry,
 *              2: anything, 3: an item).  A byte each; or 255, then u32 each.  Then two
 *              bytes for each put: how many arguments it has, and how many more that those
 *              behind it have as well (255: it has those of the one before)
 *   keys       of rows to put, those that must not be there first; to delete; only guarded;
 *              to raise: they get the next version and no other change
 *   versions   expected, of all of those but the first
 *   puts       each: version, field, value ...
 *   nulls      each: key, how many, fields
 *   indexes (plan_ranks.c), and the rest, if there is one (plan_rest.c)
 *   holds      each: key, members ..., how many; read from the end
 *   wake-up    channel, message
 */
#include "store/drivers/valkey/shapes.h"

#define HEAD 15
#define WIDE 255
#define AS_BEFORE 255
#define NO_EFFECT SIZE_MAX
#define NO_GUARD SIZE_MAX /* as vk_names_init has it */

/* Versions below this are numbers that a function can count with. */
#define COUNTABLE ((int64_t)1 << 52)

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

size_t vk_plan_guard(struct vk_plan *p, const struct row_ref *ref)
{
    const struct plan *plan = p->plan;

    if (!p->rows.slots &&
        !vk_names_init(&p->rows, plan->n_guards + plan->n_effects, p->arena)) {
        p->no_memory = true;
        return NO_GUARD;
    }
    for (; p->n_rows < plan->n_guards; p->n_rows++) {
        const struct row_ref *own = &plan->guards[p->n_rows].ref;
        struct vk_name *row = vk_names_at(&p->rows, own->enc, own->hash);
        if (row->value == NO_GUARD)
            row->value = p->n_rows;
    }
    return vk_names_at(&p->rows, ref->enc, ref->hash)->value;
}

/* Which guard covers each row effect.  A transaction has both in the same order, and of the same
 * names; in any other plan they are looked up. */
static belay_rc match_guards(struct vk_plan *p, struct belay_error *err)
{
    const struct plan *plan = p->plan;
    size_t at = 0;

    for (size_t i = 0; i < plan->n_guards; i++)
        p->effect_of[i] = NO_EFFECT;
    for (size_t i = 0; i < plan->n_effects; i++) {
        const struct effect *e = &plan->effects[i];
        if (!is_row_effect(e))
            continue;
        while (at < plan->n_guards &&
               plan->guards[at].ref.enc.ptr != e->row.ref.enc.ptr)
            at++;
        size_t guard = at < plan->n_guards ? at : vk_plan_guard(p, &e->row.ref);
        if (p->no_memory)
            return err_no_memory(err, "a commit");
        if (guard == NO_GUARD)
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

/* The columns that a put gives a value. */
static uint64_t fields_of(const struct effect *e)
{
    const struct row_type *type = e->row.ref.type;
    uint64_t fields = 0;

    for (unsigned i = type->n_key; i < type->n_columns; i++) {
        if ((written(e) >> i & 1) && e->row.v[i].kind != VALUE_NULL)
            fields |= UINT64_C(1) << i;
    }
    return fields;
}

/* Adds them; how many arguments that makes. */
static uint8_t add_fields(struct vk_plan *p, const struct effect *e, uint64_t fields)
{
    size_t before = p->puts.n;

    for (unsigned i = 0; i < e->row.ref.type->n_columns; i++) {
        if (fields >> i & 1) {
            vk_add_str(&p->puts, e->row.ref.type->columns[i].name);
            add_value(&p->puts, &e->row.v[i]);
        }
    }
    return (uint8_t)(p->puts.n - before);
}

/* Puts one behind the other that write the same columns; `common` have the same value in all. */
struct alike {
    size_t n;
    uint64_t fields, common;
};

/* So many are worth it. */
#define ALIKE_MIN 4

static struct alike alike_of(const struct effect *const *puts, size_t n)
{
    struct alike a = { 1, fields_of(puts[0]), 0 };

    while (a.n < n && puts[a.n]->row.ref.type == puts[0]->row.ref.type &&
           puts[a.n]->kind == puts[0]->kind && fields_of(puts[a.n]) == a.fields)
        a.n++;
    a.common = a.n < ALIKE_MIN ? 0 : a.fields;
    for (unsigned c = 0; c < puts[0]->row.ref.type->n_columns; c++) {
        for (size_t i = 1; i < a.n && (a.common >> c & 1); i++) {
            if (!value_eq(&puts[0]->row.v[c], &puts[i]->row.v[c]))
                a.common &= ~(UINT64_C(1) << c);
        }
    }
    return a;
}

/* What all of them have is said once, with the first. */
static void add_alike(struct vk_plan *p, const struct effect *const *puts,
                      const struct alike *a)
{
    for (size_t i = 0; i < a->n; i++) {
        uint8_t *size = &p->put_sizes[2 * p->n_puts++];
        vk_add_i64(&p->puts, puts[i]->row.ver);
        size[0] = (uint8_t)(1 + add_fields(p, puts[i], a->fields & ~a->common));
        size[1] = i > 0 && a->common ? AS_BEFORE : add_fields(p, puts[i], a->common);
    }
}

/* Whether a put changes nothing but the version, to the next one. */
static bool is_raise(const struct guard *g, const struct effect *e)
{
    const struct row_type *type = e->row.ref.type;
    uint64_t columns =
        type->n_columns < 64 ? (UINT64_C(1) << type->n_columns) - 1 : UINT64_MAX;
    uint64_t keys = (UINT64_C(1) << type->n_key) - 1;

    return e->kind == EFFECT_PUT && g->ver > 0 && g->ver < COUNTABLE &&
           e->row.ver == g->ver + 1 && (written(e) & columns & ~keys) == 0;
}

/* What a guard goes along with, in the order in which the function has them. */
enum guard_class { OF_NEW_ROW, OF_PUT, OF_DELETE, OF_NOTHING, OF_RAISE };

static enum guard_class class_of(const struct vk_plan *p, size_t guard)
{
    size_t effect = p->effect_of[guard];

    if (effect == NO_EFFECT)
        return OF_NOTHING;
    if (p->plan->effects[effect].kind == EFFECT_DELETE)
        return OF_DELETE;
    if (is_raise(&p->plan->guards[guard], &p->plan->effects[effect]))
        return OF_RAISE;
    return p->plan->guards[guard].ver == 0 ? OF_NEW_ROW : OF_PUT;
}

static void add_puts(struct vk_plan *p, const struct effect *const *puts, size_t n)
{
    struct alike a;

    for (size_t i = 0; i < n; i += a.n) {
        a = alike_of(puts + i, n - i);
        add_alike(p, puts + i, &a);
    }
}

static void add_rows(struct vk_plan *p)
{
    const struct plan *plan = p->plan;
    const struct effect **puts =
        arena_alloc(p->arena, plan->n_guards * sizeof(const struct effect *));
    size_t n = 0, n_puts = 0;

    if (!puts) {
        p->no_memory = true;
        return;
    }

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
                puts[n_puts++] = &plan->effects[p->effect_of[i]];
            if (class == OF_PUT)
                add_nulls(p, key, puts[n_puts - 1]);
        }
    }
    add_puts(p, puts, n_puts);
}

/* --- all of it --- */

static void add_head(struct vk_plan *p)
{
    size_t nulls_at = 2 + p->row_keys.n + p->row_vers.n + p->puts.n;
    const size_t numbers[HEAD] = {
        p->wake.n > 0,
        p->n_holds,
        p->n_of[OF_NEW_ROW],
        p->n_puts,
        p->n_of[OF_DELETE],
        p->n_of[OF_NOTHING],
        p->n_of[OF_RAISE],
        p->n_nulls,
        nulls_at,
        nulls_at + p->nulls.n,
        p->n_groups_of[VK_ONE_ADD],
        p->n_groups_of[VK_ONE_REMOVE],
        p->n_groups_of[VK_ONE_MOVE],
        p->n_groups_of[VK_GROUP],
        p->rest,
    };
    uint8_t *head = arena_alloc(p->arena, 1 + 4 * HEAD + 2 * p->n_puts), *at = head;

    if (!head) {
        p->no_memory = true;
        return;
    }
    for (size_t i = 0; i < HEAD; i++)
        p->wide |= numbers[i] >= WIDE;
    if (p->wide)
        *at++ = WIDE;
    for (size_t i = 0; i < HEAD; i++) {
        if (p->wide)
            at = vk_put_u32(at, numbers[i]);
        else
            *at++ = (uint8_t)numbers[i];
    }
    memcpy(at, p->put_sizes, 2 * p->n_puts);
    vk_add(&p->head, bytes_of(head, (size_t)(at - head) + 2 * p->n_puts));
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
    p->put_sizes = arena_alloc(p->arena, 2 * plan->n_guards);
    if (!p->order || !p->effect_of || !p->put_sizes)
        return err_no_memory(err, "a commit");
    vk_layout_init(&p->keys, p->s, plan->ns, p->arena);
    belay_rc rc = match_guards(p, err);
    if (rc)
        return rc;
    add_rows(p);
    vk_plan_rest(p);
    return BELAY_OK;
}

/* Whether there is nothing to it but new rows, raised ones, and members that enter indexes one by
 * one. */
static bool is_short(const struct vk_plan *p)
{
    size_t n_old = p->n_of[OF_PUT] + p->n_of[OF_DELETE] + p->n_of[OF_NOTHING];
    size_t n_ranks = p->n_groups_of[VK_ONE_REMOVE] + p->n_groups_of[VK_ONE_MOVE] +
                     p->n_groups_of[VK_GROUP];

    return n_old + n_ranks + p->n_holds == 0 && p->n_puts < ALIKE_MIN &&
           p->rest == VK_NO_REST && !p->wide;
}

static const char *function_of(const struct vk_plan *p)
{
    if (p->scans.n > 0)
        return "belay6_commit_seen";
    return is_short(p) ? "belay6_enter" : "belay6_commit";
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
    vk_fcall(r, "FCALL", function_of(p), p->keys.base, lists, COUNT_OF(lists));
    r->no_memory |= p->keys.no_memory;
}
