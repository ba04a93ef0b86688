/* key.h - one byte string for a row's identity.
 *
 * The encoding keeps order: comparing two encodings with memcmp orders them by row
 * type, then by key parts.  A part is either eight bytes big-endian with the sign bit
 * flipped, or text, which never holds a 00, with a closing 00.
 */
#ifndef STORE_KEY_H
#define STORE_KEY_H

#include "base/arena.h"
#include "base/err.h"
#include "store/schema.h"

/* Which row: its type and key parts, with their encoding and its hash.  Borrowed. */
struct row_ref {
    const struct row_type *type;
    const struct value *key; /* type->n_key values */
    struct bytes enc;
    uint64_t hash;
};

/* Checks the parts against the type (`invalid` for a wrong kind, an over-long or empty
 * text, text that is not UTF-8 or holds U+0000) and encodes them in the arena.  The key
 * values point into that copy. */
MUST_USE belay_rc row_ref_make(struct row_ref *out, const struct row_type *type,
                               const struct value *key, struct belay_arena *a,
                               struct belay_error *err);

static inline bool row_ref_eq(const struct row_ref *a, const struct row_ref *b)
{
    return a->hash == b->hash && bytes_eq(a->enc, b->enc);
}

/* The same encoding, for those who build other keys out of parts.  Each appends to `at`
 * (8 bytes; text.len + 1 bytes) and returns the new end. */
uint8_t *key_put_i64(uint8_t *at, int64_t i);
uint8_t *key_put_text(uint8_t *at, struct bytes text);

uint64_t key_hash(struct bytes b);

/* A name of a rank index, member, stream, feed, upload or topic: 1..SCHEMA_NAME_MAX
 * bytes of UTF-8 without U+0000.  `invalid` otherwise; `what` is for the message. */
MUST_USE belay_rc name_check(struct bytes name, const char *what,
                             struct belay_error *err);

#endif /* STORE_KEY_H */
