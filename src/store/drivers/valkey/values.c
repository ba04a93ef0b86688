/* Lists of arguments, values out of answers, and the server's time. */
#include "store/drivers/valkey/shapes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

/* --- arguments --- */

void vk_add(struct vk_args *l, struct bytes b)
{
    if (l->no_memory)
        return;
    if (l->n == l->size) {
        size_t size = l->size > 0 ? l->size * 2 : 16;
        struct bytes *v = arena_alloc(l->arena, size * sizeof(*v));
        if (!v) {
            l->no_memory = true;
            return;
        }
        if (l->n > 0)
            memcpy(v, l->v, l->n * sizeof(*v));
        l->v = v;
        l->size = size;
    }
    l->v[l->n++] = b;
}

void vk_add_str(struct vk_args *l, const char *text)
{
    vk_add(l, bytes_str(text));
}

static void add_copy(struct vk_args *l, const char *text, size_t len)
{
    struct bytes own = { .ptr = NULL };

    if (l->no_memory || !arena_copy(l->arena, bytes_of(text, len), &own))
        l->no_memory = true;
    else
        vk_add(l, own);
}

void vk_add_i64(struct vk_args *l, int64_t i)
{
    char text[I64_TEXT_MAX];

    add_copy(l, text, bytes_put_i64(text, i));
}

void vk_add_id(struct vk_args *l, uint64_t major, uint64_t minor)
{
    char text[48];
    int len = snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)major,
                       (unsigned long long)minor);

    add_copy(l, text, (size_t)len);
}

void vk_arg_behind(struct vk_request *r, const char *how, const struct vk_args *one)
{
    r->no_memory |= one->no_memory;
    if (r->no_memory)
        return;
    struct bytes b = one->v[0];
    uint8_t *at = vk_arg_blank(r, strlen(how) + b.len);
    if (at)
        memcpy(mempcpy(at, how, strlen(how)), b.ptr, b.len);
}

uint8_t *vk_put_u32(uint8_t *at, size_t n)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(n >> shift);
    return at;
}

uint8_t *vk_put_u16(uint8_t *at, size_t n)
{
    *at++ = (uint8_t)(n >> 8);
    *at++ = (uint8_t)n;
    return at;
}

/* --- answers --- */

bool vk_rank(struct bytes score, int64_t *out)
{
    char text[64], *end;

    if (bytes_to_i64(score, out))
        return true;
    if (score.len == 0 || score.len >= sizeof(text))
        return false;
    memcpy(text, score.ptr, score.len);
    text[score.len] = 0;
    double d = strtod(text, &end);
    if (*end || !(d >= -(double)RANK_MAX && d <= (double)RANK_MAX))
        return false;
    *out = (int64_t)d;
    return (double)*out == d;
}

/* Digits as a u64; false: something else, or too many. */
static bool to_u64(struct bytes b, uint64_t *out)
{
    uint64_t n = 0;

    for (size_t i = 0; i < b.len; i++) {
        unsigned digit = (unsigned)b.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(n, (uint64_t)10, &n) ||
            __builtin_add_overflow(n, (uint64_t)digit, &n))
            return false;
    }
    *out = n;
    return b.len > 0;
}

bool vk_id(struct bytes id, uint64_t *major, uint64_t *minor)
{
    const uint8_t *dash = id.len > 0 ? memchr(id.ptr, '-', id.len) : NULL;

    if (!dash)
        return false;
    size_t n = (size_t)(dash - id.ptr);
    return to_u64(bytes_of(id.ptr, n), major) &&
           to_u64(bytes_of(dash + 1, id.len - n - 1), minor);
}

belay_rc vk_entry(const struct vk_reply *entry, uint64_t *major, uint64_t *minor,
                  struct bytes *data, struct belay_error *err)
{
    if (entry->kind != VK_ARRAY || entry->n != 2 || entry->sub[1].kind != VK_ARRAY ||
        entry->sub[1].n != 2 || !vk_id(entry->sub[0].b, major, minor) ||
        *major > INT64_MAX || *minor > INT64_MAX)
        return err_reason(err, BELAY_CORRUPT, "entry",
                          "valkey: a stream has an entry that is none of ours");
    *data = entry->sub[1].sub[1].b;
    return BELAY_OK;
}

belay_rc vk_is_array(const struct vk_reply *reply, struct belay_error *err)
{
    if (reply->kind == VK_ARRAY || reply->kind == VK_NIL)
        return BELAY_OK;
    if (reply->kind == VK_ERROR)
        return vk_reply_error(reply, "reading", err);
    return err_reason(err, BELAY_CORRUPT, "answer", "valkey: an unexpected answer");
}

/* The column of a name, looked for from `hint` on: answers mostly come in order. */
static unsigned find_column(const struct row_type *type, struct bytes name,
                            unsigned hint)
{
    for (unsigned i = 0; i < type->n_columns; i++) {
        unsigned at = (hint + i) % type->n_columns;
        if (bytes_eq(bytes_str(type->columns[at].name), name))
            return at;
    }
    return type->n_columns;
}

static belay_rc bad_row(const struct row_type *type, const char *what,
                        struct belay_error *err)
{
    belay_rc rc = err_reason(err, BELAY_CORRUPT, "row",
                             "valkey: a row of type %s has no %s", type->name, what);
    err_entity(err, bytes_str(type->name));
    return rc;
}

/* Fields that are no column of ours are left alone: a newer program has more. */
static belay_rc take_fields(const struct row_type *type, const struct vk_reply *reply,
                            struct row *row, struct value *v, struct belay_error *err)
{
    unsigned next = type->n_key;

    for (size_t i = 0; i + 1 < reply->n; i += 2) {
        struct bytes name = reply->sub[i].b, text = reply->sub[i + 1].b;
        if (bytes_eq(name, bytes_str("ver"))) {
            if (!bytes_to_i64(text, &row->ver))
                return bad_row(type, "version that is a number", err);
            continue;
        }
        unsigned at = find_column(type, name, next);
        if (at < type->n_key || at == type->n_columns)
            continue;
        next = at + 1;
        v[at] = (struct value){ .kind = type->columns[at].type, .b = text };
        if (v[at].kind != VALUE_I64)
            continue;
        v[at].b = bytes_of(NULL, 0);
        if (!bytes_to_i64(text, &v[at].i))
            return bad_row(type, "number where one belongs", err);
    }
    return row->ver > 0 ? BELAY_OK : bad_row(type, "version", err);
}

belay_rc vk_row(const struct row_type *type, const struct value *key,
                const struct vk_reply *reply, struct belay_arena *a,
                const struct row **out, struct belay_error *err)
{
    *out = NULL;
    belay_rc rc = vk_is_array(reply, err);
    if (rc || reply->kind == VK_NIL || reply->n == 0)
        return rc;
    struct row *row =
        arena_zalloc(a, 1, sizeof(*row) + type->n_columns * sizeof(struct value));
    if (!row)
        return err_no_memory(err, "a row");
    struct value *v = (struct value *)(row + 1);
    for (unsigned i = 0; i < type->n_key; i++)
        v[i] = key[i];
    row->type = type;
    row->v = v;
    rc = take_fields(type, reply, row, v, err);
    if (rc == BELAY_OK)
        *out = row;
    return rc;
}

/* --- the server's time --- */

int64_t vk_mono_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

bool vk_time_is_due(struct vk_store *s)
{
    return server_time_is_due(&s->clock, vk_mono_us());
}

void vk_take_time(struct vk_store *s, const struct vk_reply *reply, int64_t asked_us)
{
    int64_t sec, us;

    if (reply->kind != VK_ARRAY || reply->n != 2 ||
        !bytes_to_i64(reply->sub[0].b, &sec) || !bytes_to_i64(reply->sub[1].b, &us))
        return;
    server_time_take(&s->clock, sec * 1000000 + us, asked_us, vk_mono_us());
}

/* A round trip for the time alone. */
static belay_rc sample(struct vk_store *s, struct bytes ns, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    enum vk_reached reached;
    struct vk_request r;
    struct vk_reply reply;

    vk_request_init(&r, &arena);
    vk_command(&r, 1, "TIME");
    int64_t asked_us = vk_mono_us();
    belay_rc rc = vk_call(s, ns, &r, VK_AGAIN, &reply, &reached, err);
    if (rc == BELAY_OK)
        rc = vk_is_array(&reply, err);
    if (rc == BELAY_OK)
        vk_take_time(s, &reply, asked_us);
    return rc;
}

belay_rc vk_now_ms(struct driver *d, void *attempt, int64_t *out,
                   struct belay_error *err)
{
    struct vk_store *s = (struct vk_store *)d;
    const struct vk_attempt *at = attempt;
    belay_rc rc =
        server_time_is_old(&s->clock, vk_mono_us()) ? sample(s, at->ns, err) : BELAY_OK;

    if (rc == BELAY_OK)
        *out = server_time_now_ms(&s->clock, vk_mono_us());
    return rc;
}
