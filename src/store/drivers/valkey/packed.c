/* MessagePack: the arguments of a function as one, and its answer as one text. */
#include "store/drivers/valkey/shapes.h"

/* Short texts and arrays have their length in the first byte, small numbers are it. */
enum {
    FIXARRAY = 0x90,
    FIXSTR = 0xa0,
    FIXSTR_END = 0xc0,
    UINT8 = 0xcc,
    UINT16 = 0xcd,
    UINT32 = 0xce,
    STR8 = 0xd9,
    STR16 = 0xda,
    STR32 = 0xdb,
    ARRAY16 = 0xdc,
    ARRAY32 = 0xdd,
};

/* --- arguments --- */

#define FIXSTR_MAX ((size_t)31)
#define ARRAY_HEAD_LEN ((size_t)3)
#define PACKED_MAX ((size_t)128) /* texts */

/* About what a call has beside its arguments, and an argument beside its text. */
#define FCALL_LEN ((size_t)192)
#define HEAD_LEN ((size_t)8)

static size_t packed_len(size_t len)
{
    return len + (len <= FIXSTR_MAX   ? 1
                  : len <= UINT8_MAX  ? 2
                  : len <= UINT16_MAX ? 3
                                      : 5);
}

static uint8_t *pack_head(uint8_t *at, size_t len)
{
    if (len <= FIXSTR_MAX) {
        *at++ = (uint8_t)(FIXSTR | len);
        return at;
    }
    *at++ = len <= UINT8_MAX ? STR8 : len <= UINT16_MAX ? STR16 : STR32;
    if (len > UINT16_MAX)
        return vk_put_u32(at, len);
    if (len > UINT8_MAX)
        return vk_put_u16(at, len);
    *at++ = (uint8_t)len;
    return at;
}

static uint8_t *pack(uint8_t *at, const struct vk_args *l)
{
    for (size_t i = 0; i < l->n; i++) {
        at = pack_head(at, l->v[i].len);
        if (l->v[i].len > 0)
            at = mempcpy(at, l->v[i].ptr, l->v[i].len);
    }
    return at;
}

/* All of them in one argument. */
static void arg_packed(struct vk_request *r, struct vk_args *const *lists, size_t n,
                       size_t n_texts, size_t len)
{
    uint8_t *at = vk_arg_blank(r, ARRAY_HEAD_LEN + len);

    if (!at)
        return;
    *at++ = ARRAY16;
    at = vk_put_u16(at, n_texts);
    for (size_t i = 0; i < n; i++)
        at = pack(at, lists[i]);
}

static void arg_each(struct vk_request *r, const struct vk_args *l)
{
    for (size_t i = 0; i < l->n; i++)
        vk_arg(r, l->v[i]);
}

void vk_fcall(struct vk_request *r, const char *command, const char *function,
              struct bytes base, struct vk_args *const *lists, size_t n)
{
    size_t n_texts = 0, len = 0;

    for (size_t i = 0; i < n; i++) {
        n_texts += lists[i]->n;
        r->no_memory |= lists[i]->no_memory;
        for (size_t k = 0; k < lists[i]->n; k++)
            len += packed_len(lists[i]->v[k].len);
    }
    bool packs = n_texts <= PACKED_MAX;
    vk_request_expect(r, FCALL_LEN + base.len + len + (packs ? 0 : n_texts * HEAD_LEN));
    vk_command(r, packs ? 5 : 4 + n_texts, command);
    vk_arg_str(r, function);
    vk_arg_str(r, "1");
    vk_arg(r, base);
    if (packs)
        arg_packed(r, lists, n, n_texts, len);
    for (size_t i = 0; i < n && !packs; i++)
        arg_each(r, lists[i]);
}

/* --- answers --- */

#define DEPTH_MAX 4 /* scans, hits, rows, columns */

struct unpacking {
    const uint8_t *at, *end;
    struct belay_arena *arena;
    bool no_memory;
};

/* A number of n bytes, big-endian. */
static bool take_number(struct unpacking *u, size_t n, size_t *out)
{
    if ((size_t)(u->end - u->at) < n)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out = *out << 8 | *u->at++;
    return true;
}

static bool take_text(struct unpacking *u, size_t len, struct vk_reply *out)
{
    if ((size_t)(u->end - u->at) < len)
        return false;
    *out = (struct vk_reply){ .kind = VK_STRING, .b = bytes_of(u->at, len) };
    u->at += len;
    return true;
}

static bool take_any(struct unpacking *u, unsigned depth, struct vk_reply *out);

static bool take_array(struct unpacking *u, size_t n, unsigned depth,
                       struct vk_reply *out)
{
    /* Each takes a byte at least: who says more has not said them. */
    if (depth == 0 || (size_t)(u->end - u->at) < n)
        return false;
    *out = (struct vk_reply){ .kind = VK_ARRAY, .n = n };
    out->sub = arena_zalloc(u->arena, n, sizeof(*out->sub));
    u->no_memory = !out->sub;
    for (size_t i = 0; i < n && !u->no_memory; i++) {
        if (!take_any(u, depth - 1, &out->sub[i]))
            return false;
    }
    return !u->no_memory;
}

static bool take_any(struct unpacking *u, unsigned depth, struct vk_reply *out)
{
    static const struct {
        uint8_t mark, number_len;
        enum vk_kind kind;
    } marks[] = {
        { UINT8, 1, VK_INTEGER }, { UINT16, 2, VK_INTEGER }, { UINT32, 4, VK_INTEGER },
        { STR8, 1, VK_STRING },   { STR16, 2, VK_STRING },   { STR32, 4, VK_STRING },
        { ARRAY16, 2, VK_ARRAY }, { ARRAY32, 4, VK_ARRAY },
    };
    size_t mark, n;

    if (!take_number(u, 1, &mark))
        return false;
    if (mark >= FIXSTR && mark < FIXSTR_END) /* most of them */
        return take_text(u, mark - FIXSTR, out);
    if (mark >= FIXARRAY && mark < FIXSTR)
        return take_array(u, mark - FIXARRAY, depth, out);
    *out = (struct vk_reply){ .kind = VK_INTEGER, .i = (int64_t)mark };
    if (mark < FIXARRAY)
        return mark < 0x80;
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        if (marks[i].mark != mark)
            continue;
        if (!take_number(u, marks[i].number_len, &n))
            return false;
        out->i = (int64_t)n;
        return marks[i].kind == VK_INTEGER  ? true
               : marks[i].kind == VK_STRING ? take_text(u, n, out)
                                            : take_array(u, n, depth, out);
    }
    return false;
}

belay_rc vk_unpack(struct bytes packed, struct belay_arena *a, struct vk_reply *out,
                   struct belay_error *err)
{
    struct unpacking u = { .at = packed.ptr,
                           .end = packed.ptr + packed.len,
                           .arena = a };
    struct vk_reply got;

    bool whole = take_any(&u, DEPTH_MAX, &got) && u.at == u.end;
    if (u.no_memory)
        return err_no_memory(err, "an answer");
    if (!whole)
        return err_reason(err, BELAY_CORRUPT, "answer",
                          "valkey: an answer that nobody understands");
    *out = got;
    return BELAY_OK;
}
