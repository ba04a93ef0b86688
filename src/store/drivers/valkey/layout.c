/* Where things are: keys of things, and things of keys. */
#include "store/drivers/valkey/shapes.h"

/* --- making keys --- */

static uint8_t *put(uint8_t *at, struct bytes b)
{
    if (b.len > 0)
        memcpy(at, b.ptr, b.len);
    return at + b.len;
}

/* What stands before the first '%' or ':'. */
static struct bytes plain_part(struct bytes text)
{
    static const char special[] = { ':', '%' };

    for (size_t i = 0; i < sizeof(special) && text.len > 0; i++) {
        const uint8_t *at = memchr(text.ptr, special[i], text.len);
        if (at)
            text.len = (size_t)(at - text.ptr);
    }
    return text;
}

/* At most. */
static size_t escaped_len(struct bytes text)
{
    size_t plain = plain_part(text).len;

    return plain + 3 * (text.len - plain);
}

static uint8_t *put_escaped(uint8_t *at, struct bytes text)
{
    for (;;) {
        struct bytes plain = plain_part(text);
        at = put(at, plain);
        if (plain.len == text.len)
            return at;
        at = put(at, bytes_str(text.ptr[plain.len] == '%' ? "%25" : "%3a"));
        text = bytes_of(text.ptr + plain.len + 1, text.len - plain.len - 1);
    }
}

void vk_layout_init(struct vk_layout *l, const struct vk_store *s, struct bytes ns,
                    struct belay_arena *a)
{
    struct bytes prefix = bytes_str(s->options.prefix);
    size_t len = prefix.len + 3 + ns.len;
    uint8_t *key = arena_alloc(a, len);

    *l = (struct vk_layout){ .arena = a, .no_memory = !key };
    if (!key)
        return;
    uint8_t *at = put(key, prefix);
    at = put(at, bytes_str(":{"));
    at = put(at, ns);
    *at = '}';
    l->base = bytes_of(key, len);
}

/* Room for a key; NULL: no memory. */
static uint8_t *begin(struct vk_layout *l, size_t more, uint8_t **at)
{
    uint8_t *key = l->no_memory ? NULL : arena_alloc(l->arena, l->base.len + more);

    if (!key)
        l->no_memory = true;
    else
        *at = put(key, l->base);
    return key;
}

struct bytes vk_key(struct vk_layout *l, enum vk_shape shape, struct bytes name)
{
    uint8_t *at, *key = begin(l, 3 + name.len, &at);

    if (!key)
        return bytes_of(NULL, 0);
    *at++ = ':';
    *at++ = (uint8_t)shape;
    *at++ = ':';
    at = put(at, name);
    return bytes_of(key, (size_t)(at - key));
}

struct bytes vk_key_beside(struct vk_layout *l, const char *name)
{
    uint8_t *at, *key = begin(l, strlen(name), &at);

    if (!key)
        return bytes_of(NULL, 0);
    at = put(at, bytes_str(name));
    return bytes_of(key, (size_t)(at - key));
}

struct bytes vk_key_of_chunk(struct vk_layout *l, struct bytes upload, int64_t index)
{
    char text[I64_TEXT_MAX];
    size_t len = bytes_put_i64(text, index);
    uint8_t *at, *key = begin(l, 4 + upload.len + len, &at);

    if (!key)
        return bytes_of(NULL, 0);
    at = put(at, bytes_str(":c:"));
    at = put(at, upload);
    *at++ = ':';
    at = put(at, bytes_of(text, len));
    return bytes_of(key, (size_t)(at - key));
}

static struct bytes key_of_parts(struct vk_layout *l, const struct row_type *type,
                                 const struct value *v, unsigned n, bool open)
{
    struct bytes name = bytes_str(type->name);
    size_t more = 3 + name.len + open;

    for (unsigned i = 0; i < n; i++)
        more += 1 + (v[i].kind == VALUE_I64 ? I64_TEXT_MAX : escaped_len(v[i].b));
    uint8_t *at, *key = begin(l, more, &at);
    if (!key)
        return bytes_of(NULL, 0);
    at = put(at, bytes_str(":r:"));
    at = put(at, name);
    for (unsigned i = 0; i < n; i++) {
        *at++ = ':';
        if (v[i].kind == VALUE_I64) {
            char text[I64_TEXT_MAX];
            at = put(at, bytes_of(text, bytes_put_i64(text, v[i].i)));
        } else {
            at = put_escaped(at, v[i].b);
        }
    }
    if (open)
        *at++ = ':';
    return bytes_of(key, (size_t)(at - key));
}

struct bytes vk_key_of_row(struct vk_layout *l, const struct row_ref *ref)
{
    return key_of_parts(l, ref->type, ref->key, ref->type->n_key, false);
}

struct bytes vk_key_before(struct vk_layout *l, const struct row_type *type,
                           const struct value *prefix)
{
    return key_of_parts(l, type, prefix, type->n_key - 1U, true);
}

/* --- taking them apart --- */

/* The text up to the next ':' or the end; *rest begins behind it. */
static struct bytes next_part(struct bytes *rest, bool *more)
{
    const uint8_t *colon = rest->len > 0 ? memchr(rest->ptr, ':', rest->len) : NULL;
    struct bytes part = *rest;

    *more = colon != NULL;
    if (colon) {
        part.len = (size_t)(colon - rest->ptr);
        *rest = bytes_of(colon + 1, rest->len - part.len - 1);
    } else {
        rest->len = 0;
    }
    return part;
}

/* Text with %25 and %3a as what they stand for; false: it is none. */
static bool unescape(struct bytes text, uint8_t *out, struct bytes *back)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        struct bytes three = bytes_of(text.ptr + i, text.len - i < 3 ? 0 : 3);
        if (text.ptr[i] != '%') {
            out[n++] = text.ptr[i];
            continue;
        }
        if (bytes_eq(three, bytes_str("%25")))
            out[n++] = '%';
        else if (bytes_eq(three, bytes_str("%3a")))
            out[n++] = ':';
        else
            return false;
        i += 2;
    }
    *back = bytes_of(out, n);
    return true;
}

static const struct row_type *find_type(const struct vk_store *s, struct bytes name)
{
    const struct schema *schema = s->config.schema;

    for (size_t i = 0; i < schema->n_types; i++) {
        if (bytes_eq(bytes_str(schema->types[i]->name), name))
            return schema->types[i];
    }
    return NULL;
}

/* A row's key behind ":r:".  A type that we do not know is somebody's, too: a newer
 * program's. */
static belay_rc place_row(const struct vk_store *s, struct bytes rest,
                          struct belay_arena *a, struct vk_place *out,
                          struct belay_error *err)
{
    struct value key[SCHEMA_KEY_MAX];
    uint8_t *text = arena_alloc(a, rest.len);
    bool more, good = true;
    const struct row_type *type = find_type(s, next_part(&rest, &more));

    if (!text)
        return err_no_memory(err, "a key");
    out->ref = (struct row_ref){ .type = type };
    for (unsigned i = 0; type && i < type->n_key && good; i++) {
        good = more;
        struct bytes part = next_part(&rest, &more);
        if (type->columns[i].type == VALUE_I64) {
            key[i] = value_i64(0);
            good = good && bytes_to_i64(part, &key[i].i);
        } else {
            key[i] = value_text(bytes_of(NULL, 0));
            good = good && unescape(part, text, &key[i].b);
            text += key[i].b.len;
        }
    }
    if (!type)
        return BELAY_OK;
    belay_rc rc = BELAY_INVALID;
    if (good && !more)
        rc = row_ref_make(&out->ref, type, key, a, err);
    if (rc == BELAY_INVALID)
        out->shape = VK_FOREIGN;
    return rc == BELAY_INVALID ? BELAY_OK : rc;
}

/* A chunk's key behind ":c:": the index is what stands behind the last ':'. */
static bool place_chunk(struct bytes rest, struct vk_place *out)
{
    const uint8_t *colon = rest.len > 0 ? memrchr(rest.ptr, ':', rest.len) : NULL;

    if (!colon || colon == rest.ptr)
        return false;
    out->name = bytes_of(rest.ptr, (size_t)(colon - rest.ptr));
    return bytes_to_i64(bytes_of(colon + 1, rest.len - out->name.len - 1), &out->index);
}

belay_rc vk_place(const struct vk_store *s, struct bytes base, struct bytes key,
                  struct belay_arena *a, struct vk_place *out, struct belay_error *err)
{
    *out = (struct vk_place){ .shape = VK_FOREIGN };
    if (key.len <= base.len || !bytes_eq(bytes_of(key.ptr, base.len), base))
        return BELAY_OK;
    struct bytes rest = bytes_of(key.ptr + base.len, key.len - base.len);
    if (bytes_eq(rest, bytes_str(":feeds")))
        out->shape = VK_FEEDS;
    else if (bytes_eq(rest, bytes_str(":trimmed")))
        out->shape = VK_TRIMMED;
    if (out->shape != VK_FOREIGN || rest.len < 4 || rest.ptr[0] != ':' ||
        rest.ptr[2] != ':')
        return BELAY_OK;
    enum vk_shape shape = (enum vk_shape)rest.ptr[1];
    rest = bytes_of(rest.ptr + 3, rest.len - 3);
    out->name = rest;
    if (shape == VK_INDEX || shape == VK_HELD || shape == VK_LOG || shape == VK_FEED)
        out->shape = shape;
    if (shape == VK_CHUNK && place_chunk(rest, out))
        out->shape = shape;
    if (shape != VK_ROW)
        return BELAY_OK;
    out->shape = VK_ROW;
    return place_row(s, rest, a, out, err);
}
