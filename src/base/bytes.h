/* bytes.h - borrowed views and owned, growing buffers.
 *
 * A view never owns what it shows; a buffer always does.  They are two types, so that
 * who frees what can be read off a declaration.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"

/* Borrowed bytes.  ptr may be NULL only when len is 0.  Not NUL-terminated. */
struct bytes {
    const uint8_t *ptr;
    size_t len;
};

static inline struct bytes bytes_of(const void *ptr, size_t len)
{
    return (struct bytes){ .ptr = ptr, .len = len };
}

/* A view of a C string, without its NUL. */
static inline struct bytes bytes_str(const char *text)
{
    return bytes_of(text, strlen(text));
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Bytewise order; a prefix sorts first.  Negative, zero or positive. */
int bytes_cmp(struct bytes a, struct bytes b);

/* Well-formed UTF-8 as Unicode defines it: no overlong form, no surrogate, nothing
 * above U+10FFFF.  U+0000 is well-formed. */
bool bytes_is_utf8(struct bytes b);

/* Length of the character b begins with, 1 to 4; 0 when b is empty or does not begin
 * with well-formed UTF-8. */
size_t bytes_utf8_len(struct bytes b);

/* A caller's id: 1 to max bytes of UTF-8 without control characters (U+0000..U+001F,
 * U+007F, U+0080..U+009F). */
bool bytes_is_id(struct bytes b, size_t max);

/* Decimal text as an i64: optional minus, no plus, no space, no leading zero except
 * "0" itself, "-0" refused, nothing out of range.  False leaves *out untouched. */
MUST_USE bool bytes_to_i64(struct bytes b, int64_t *out);

/* And back: decimal text with a NUL behind it; returns its length without. */
#define I64_TEXT_MAX 21
size_t bytes_put_i64(char out[I64_TEXT_MAX], int64_t n);

struct belay_arena;

/* Owned bytes that grow.  Zero-initialise, append, release.  Failure is sticky: after
 * an append could not get memory, `failed` is set, further appends do nothing, and the
 * caller checks once at the end.
 *
 * With an arena (buf_in) its memory is the arena's: it lives as long as that, need not
 * be released, and what it outgrew stays behind until the arena goes. */
struct buf {
    uint8_t *ptr;
    size_t len;
    size_t cap;
    bool failed;
    struct belay_arena *arena; /* NULL: the heap */
};

static inline struct buf buf_in(struct belay_arena *arena)
{
    return (struct buf){ .arena = arena };
}

/* Room for so many bytes behind what is there, at once. */
void buf_expect(struct buf *b, size_t more);
void buf_append(struct buf *b, struct bytes more);
void buf_append_str(struct buf *b, const char *text);
void buf_append_char(struct buf *b, char c);
void buf_append_i64(struct buf *b, int64_t n);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Appends `text` with everything that could disturb a terminal or a log line made
 * visible: control characters, those that end a line or turn its direction (U+2028 to
 * U+202E, U+2066 to U+2069), backslash and bytes that are not UTF-8 become \n, \t, \r, \\
 * or \xNN. */
void buf_append_escaped(struct buf *b, struct bytes text);

static inline struct bytes buf_view(const struct buf *b)
{
    return bytes_of(b->ptr, b->len);
}

/* Empty it, keep the memory, forget a failure. */
void buf_reset(struct buf *b);

/* Free the memory unless it is an arena's; the buffer is zero again.  Fits CLEANUP. */
void buf_release(struct buf *b);

#endif /* BASE_BYTES_H */
