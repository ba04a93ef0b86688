#include "store/key.h"

#include <string.h>

uint8_t *key_put_i64(uint8_t *at, int64_t i)
{
    /* Flipping the sign bit makes unsigned byte order the order of the numbers. */
    uint64_t u = (uint64_t)i ^ ((uint64_t)1 << 63);

    for (int shift = 56; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(u >> shift);
    return at;
}

uint8_t *key_put_text(uint8_t *at, struct bytes text)
{
    memcpy(at, text.ptr, text.len);
    at[text.len] = 0;
    return at + text.len + 1;
}

uint64_t key_hash(struct bytes b)
{
    const uint64_t k = UINT64_C(0x9fb21c651e98df25);
    uint64_t h = b.len * UINT64_C(0x9e3779b97f4a7c15);
    const uint8_t *p = b.ptr;
    size_t left = b.len;

    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * k;
        h ^= h >> 32;
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < left; i++)
        tail |= (uint64_t)p[i] << (8 * i);
    h = (h ^ tail) * k;
    return h ^ (h >> 29);
}

belay_rc name_check(struct bytes name, const char *what, struct belay_error *err)
{
    if (name.len == 0)
        return err_reason(err, BELAY_INVALID, "empty", "%s: must not be empty", what);
    if (name.len > SCHEMA_NAME_MAX)
        return err_reason(err, BELAY_INVALID, "too_large",
                          "%s: %zu bytes, at most %d are allowed", what, name.len,
                          SCHEMA_NAME_MAX);
    if (memchr(name.ptr, 0, name.len) || !bytes_is_utf8(name))
        return err_reason(err, BELAY_INVALID, "utf8",
                          "%s: must be UTF-8 text without U+0000", what);
    return BELAY_OK;
}

/* Checks one part and adds the length of its encoding. */
static belay_rc part_len(const struct column *column, const struct value *part,
                         size_t *len, struct belay_error *err)
{
    if (part->kind != column->type)
        return err_reason(err, BELAY_INVALID, "key",
                          "key column %s: wrong kind of value", column->name);
    if (part->kind == VALUE_I64) {
        *len += 8;
        return BELAY_OK;
    }
    *len += part->b.len + 1;
    return name_check(part->b, column->name, err);
}

belay_rc row_ref_make(struct row_ref *out, const struct row_type *type,
                      const struct value *key, struct belay_arena *a,
                      struct belay_error *err)
{
    size_t len = 2;
    for (unsigned i = 0; i < type->n_key; i++) {
        belay_rc rc = part_len(&type->columns[i], &key[i], &len, err);
        if (rc)
            return rc;
    }

    size_t values_len = type->n_key * sizeof(struct value);
    struct value *own = arena_alloc(a, values_len + len);
    if (!own)
        return err_no_memory(err, "a row key");

    uint8_t *enc = (uint8_t *)own + values_len;
    uint8_t *at = enc;
    *at++ = (uint8_t)(type->id >> 8);
    *at++ = (uint8_t)type->id;
    for (unsigned i = 0; i < type->n_key; i++) {
        own[i] = key[i];
        if (key[i].kind == VALUE_I64) {
            at = key_put_i64(at, key[i].i);
        } else {
            own[i].b.ptr = at;
            at = key_put_text(at, key[i].b);
        }
    }
    *out = (struct row_ref){ .type = type, .key = own, .enc = bytes_of(enc, len) };
    out->hash = key_hash(out->enc);
    return BELAY_OK;
}
