/* Handles: what proves that its bearer holds an attempt, as bytes and as text.
 *
 *   02 01 tag kind, str execution, u32 attempt, str attempt id, str lease id, u64 fence,
 *   u64 lease ms, str lane, str worker, str namespace
 *
 * Numbers are little endian; str is a u32 length and UTF-8.  Equal handles are equal bytes,
 * and equal text. */
#include "base/clock.h"
#include "work/execution.h"

#define WIRE_VERSION 2
#define WIRE_SHAPE 1
#define FIELD_MAX 255
#define TEXT_PREFIX "blh1_"
#define TEXT_MAX ((size_t)4096)

/* clang-format off */
/* What follows the four bytes at the beginning. */
static const struct {
    const char *name;
    size_t offset; /* in struct exec_handle */
    size_t width;  /* of a number; 0: a string */
    int64_t max;   /* of a number */
} fields[] = {
    { "execution",  offsetof(struct exec_handle, execution),  0, 0 },
    { "attempt",    offsetof(struct exec_handle, attempt),    4, UINT32_MAX },
    { "attempt id", offsetof(struct exec_handle, attempt_id), 0, 0 },
    { "lease id",   offsetof(struct exec_handle, lease_id),   0, 0 },
    { "fence",      offsetof(struct exec_handle, fence),      8, TIME_MAX_MS },
    { "lease",      offsetof(struct exec_handle, lease_ms),   8, LEASE_MS_MAX },
    { "lane",       offsetof(struct exec_handle, lane),       0, 0 },
    { "worker",     offsetof(struct exec_handle, worker),     0, 0 },
    { "namespace",  offsetof(struct exec_handle, ns),         0, 0 },
};
/* clang-format on */

static belay_rc bad(struct belay_error *err, const char *reason, const char *why)
{
    return err_reason(err, BELAY_BAD_HANDLE, reason, "handle: %s", why);
}

static bool is_tag(int32_t tag)
{
    return tag >= BELAY_BACKEND_VALKEY && tag <= BELAY_BACKEND_MEMORY;
}

static bool is_kind(int32_t kind)
{
    return kind >= BELAY_HANDLE_FRESH && kind <= BELAY_HANDLE_RECLAIMED;
}

/* --- bytes --- */

static uint8_t *put_number(uint8_t *at, uint64_t n, size_t width)
{
    for (size_t i = 0; i < width; i++)
        *at++ = (uint8_t)(n >> (8 * i));
    return at;
}

static uint64_t get_number(const uint8_t *at, size_t width)
{
    uint64_t n = 0;

    for (size_t i = 0; i < width; i++)
        n |= (uint64_t)at[i] << (8 * i);
    return n;
}

static const void *field_at(const struct exec_handle *h, size_t i)
{
    return (const char *)h + fields[i].offset;
}

static belay_rc field_fault(struct belay_error *err, size_t i)
{
    return err_reason(err, BELAY_BAD_HANDLE, "field", "handle: its %s cannot be",
                      fields[i].name);
}

static belay_rc check_field(const struct exec_handle *h, size_t i,
                            struct belay_error *err)
{
    if (fields[i].width > 0) {
        int64_t n = *(const int64_t *)field_at(h, i);
        return n >= 0 && n <= fields[i].max ? BELAY_OK : field_fault(err, i);
    }
    struct bytes text = *(const struct bytes *)field_at(h, i);
    if (bytes_is_id(text, FIELD_MAX))
        return BELAY_OK;
    if (bytes_is_utf8(text))
        return field_fault(err, i);
    return err_reason(err, BELAY_BAD_HANDLE, "utf8", "handle: its %s is not UTF-8",
                      fields[i].name);
}

static belay_rc check_head(int32_t backend, int32_t kind, struct belay_error *err)
{
    if (!is_tag(backend))
        return bad(err, "backend_tag", "no store has its tag");
    if (!is_kind(kind))
        return bad(err, "kind", "there is no such kind");
    return BELAY_OK;
}

belay_rc handle_encode(const struct exec_handle *h, struct belay_arena *a,
                       struct belay_handle *out, struct belay_error *err)
{
    size_t len = 4;
    belay_rc rc = check_head(h->backend, h->kind, err);

    for (size_t i = 0; i < COUNT_OF(fields) && rc == BELAY_OK; i++) {
        rc = check_field(h, i, err);
        len += fields[i].width > 0 ? fields[i].width
                                   : 4 + ((const struct bytes *)field_at(h, i))->len;
    }
    if (rc)
        return rc;
    uint8_t *opaque = arena_alloc(a, len);
    if (!opaque)
        return err_no_memory(err, "a handle");
    uint8_t *at = opaque;
    *at++ = WIRE_VERSION;
    *at++ = WIRE_SHAPE;
    *at++ = (uint8_t)h->backend;
    *at++ = (uint8_t)h->kind;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (fields[i].width > 0) {
            uint64_t n = (uint64_t) * (const int64_t *)field_at(h, i);
            at = put_number(at, n, fields[i].width);
            continue;
        }
        struct bytes text = *(const struct bytes *)field_at(h, i);
        at = put_number(at, text.len, 4);
        memcpy(at, text.ptr, text.len);
        at += text.len;
    }
    *out = (struct belay_handle){ h->backend, h->kind, opaque, len };
    return BELAY_OK;
}

/* The next n bytes of `rest`, or false: there are not so many. */
static bool take(struct bytes *rest, size_t n, struct bytes *out)
{
    if (n > rest->len)
        return false;
    *out = bytes_of(rest->ptr, n);
    *rest = bytes_of(rest->ptr + n, rest->len - n);
    return true;
}

static belay_rc truncated(struct belay_error *err)
{
    return bad(err, "truncated", "its end is missing");
}

static belay_rc decode_field(struct bytes *rest, size_t i, struct exec_handle *h,
                             struct belay_error *err)
{
    void *to = (char *)h + fields[i].offset;
    struct bytes part;

    if (!take(rest, fields[i].width > 0 ? fields[i].width : 4, &part))
        return truncated(err);
    uint64_t n = get_number(part.ptr, part.len);
    if (fields[i].width > 0) {
        /* Beyond what an int64_t has it is refused as negative ones are. */
        *(int64_t *)to = n > INT64_MAX ? -1 : (int64_t)n;
        return check_field(h, i, err);
    }
    if (!take(rest, (size_t)n, to))
        return truncated(err);
    return check_field(h, i, err);
}

static belay_rc decode(struct bytes rest, struct exec_handle *out,
                       struct belay_error *err)
{
    static const uint8_t begins[] = { WIRE_VERSION, WIRE_SHAPE };
    struct exec_handle h = { .backend = 0 };
    struct bytes head;

    for (size_t i = 0; i < sizeof(begins) && i < rest.len; i++) {
        if (rest.ptr[i] != begins[i])
            return bad(err, "wire_version", "another version, or no handle at all");
    }
    if (rest.len > 2 && !is_tag(rest.ptr[2]))
        return check_head(rest.ptr[2], 0, err);
    if (!take(&rest, 4, &head))
        return truncated(err);
    h.backend = head.ptr[2];
    h.kind = head.ptr[3];
    belay_rc rc = check_head(h.backend, h.kind, err);
    for (size_t i = 0; i < COUNT_OF(fields) && rc == BELAY_OK; i++)
        rc = decode_field(&rest, i, &h, err);
    if (rc)
        return rc;
    if (rest.len > 0)
        return bad(err, "trailing_bytes", "something follows its end");
    *out = h;
    return BELAY_OK;
}

belay_rc handle_decode(const struct belay_handle *h, struct exec_handle *out,
                       struct belay_error *err)
{
    struct exec_handle inside = { .backend = 0 };
    belay_rc rc =
        decode(bytes_of(h->opaque, h->opaque ? h->opaque_len : 0), &inside, err);

    if (rc)
        return rc;
    if (inside.backend != h->backend)
        return bad(err, "backend_tag", "its tag is not the one of its bytes");
    if (inside.kind != h->kind)
        return bad(err, "kind", "its kind is not the one of its bytes");
    *out = inside;
    return BELAY_OK;
}

belay_rc handle_check(const struct exec_site *site, const struct belay_handle *h,
                      struct exec_handle *out, struct belay_error *err)
{
    struct exec_handle inside = { .backend = 0 };
    belay_rc rc = handle_decode(h, &inside, err);

    if (rc)
        return rc;
    if (inside.backend != (int32_t)site->backend)
        return bad(err, "other_backend", "it is of another kind of store");
    if (!bytes_eq(inside.ns, space_name(site->space)))
        return bad(err, "other_namespace", "it is of another namespace");
    if (inside.kind == BELAY_HANDLE_SUSPENDED) {
        (void)err_reason(err, BELAY_WRONG_STATE, "handle_kind",
                         "handle: of a suspended execution; it holds nothing");
        err_entity(err, inside.execution);
        return BELAY_WRONG_STATE;
    }
    *out = inside;
    return BELAY_OK;
}

/* --- text --- */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* base64url without padding; returns how many characters. */
static size_t text_put(struct bytes in, char *out)
{
    uint32_t word = 0;
    unsigned bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        word = word << 8 | in.ptr[i];
        for (bits += 8; bits >= 6; bits -= 6)
            out[n++] = alphabet[word >> (bits - 6) & 63];
    }
    if (bits > 0)
        out[n++] = alphabet[word << (6 - bits) & 63];
    return n;
}

/* And back; false: it is none, or not the one text of its content. */
static bool text_get(struct bytes in, uint8_t *out, size_t *out_len)
{
    uint32_t word = 0;
    unsigned bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        const char *at = in.ptr[i] ? strchr(alphabet, in.ptr[i]) : NULL;
        if (!at)
            return false;
        word = word << 6 | (uint32_t)(at - alphabet);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[n++] = (uint8_t)(word >> bits);
        }
    }
    *out_len = n;
    return bits < 6 && (word & ((1U << bits) - 1)) == 0;
}

belay_rc handle_text(const struct belay_handle *h, struct belay_arena *a,
                     const char **out, struct belay_error *err)
{
    const size_t prefix = sizeof(TEXT_PREFIX) - 1;
    struct exec_handle inside = { .backend = 0 };
    belay_rc rc = handle_decode(h, &inside, err);
    if (rc)
        return rc;

    char *text = arena_alloc(a, prefix + (h->opaque_len * 4 + 2) / 3 + 1);
    if (!text)
        return err_no_memory(err, "a handle");
    memcpy(text, TEXT_PREFIX, prefix);
    size_t n =
        text_put(bytes_of(h->opaque, h->opaque ? h->opaque_len : 0), text + prefix);
    text[prefix + n] = '\0';
    *out = text;
    return BELAY_OK;
}

belay_rc handle_parse(const char *text, struct belay_arena *a, struct belay_handle *out,
                      struct belay_error *err)
{
    const size_t prefix = sizeof(TEXT_PREFIX) - 1;
    struct bytes all = bytes_of(text, strnlen(text, TEXT_MAX + 1));
    struct exec_handle inside;
    size_t len = 0;

    if (all.len > TEXT_MAX || all.len < prefix ||
        memcmp(all.ptr, TEXT_PREFIX, prefix) != 0)
        return bad(err, "text", "must begin with " TEXT_PREFIX " and be short");
    uint8_t *opaque = arena_alloc(a, all.len);
    if (!opaque)
        return err_no_memory(err, "a handle");
    if (!text_get(bytes_of(all.ptr + prefix, all.len - prefix), opaque, &len))
        return bad(err, "text", "is not base64url");
    belay_rc rc = decode(bytes_of(opaque, len), &inside, err);
    if (rc == BELAY_OK)
        *out = (struct belay_handle){ inside.backend, inside.kind, opaque, len };
    return rc;
}
