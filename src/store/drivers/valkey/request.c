/* Commands as bytes, and answers as values in an arena. */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "store/drivers/valkey/net.h"

#define REQUEST_FIRST ((size_t)512)
#define READER_KEEPS ((size_t)256 << 10) /* of its buffer between answers */
#define LINE_MAX_LEN ((size_t)64 << 10)  /* of an answer that is one line */
#define HEAD_MAX_LEN ((size_t)32)        /* "$" and a number */
#define STRING_MAX_LEN ((int64_t)512 << 20)
#define ELEMENTS_FIRST ((size_t)64)

/* --- commands --- */

void vk_request_init(struct vk_request *r, struct belay_arena *a)
{
    *r = (struct vk_request){ .arena = a };
}

/* Room for so many bytes at the end; NULL: no memory. */
static uint8_t *room(struct vk_request *r, size_t need)
{
    if (r->no_memory)
        return NULL;
    if (need <= r->size - r->len)
        return r->bytes + r->len;
    size_t size = r->size > 0 ? r->size * 2 : REQUEST_FIRST;
    if (size < r->len + need + REQUEST_FIRST / 4)
        size = r->len + need + REQUEST_FIRST / 4;
    uint8_t *bytes = arena_alloc(r->arena, size);
    if (!bytes) {
        r->no_memory = true;
        return NULL;
    }
    if (r->len > 0)
        memcpy(bytes, r->bytes, r->len);
    r->bytes = bytes;
    r->size = size;
    return bytes + r->len;
}

/* <mark><number>\r\n; returns its end. */
static uint8_t *put_head(uint8_t *at, char mark, size_t number)
{
    char text[I64_TEXT_MAX];

    *at++ = (uint8_t)mark;
    if (number < 100) { /* most lengths */
        if (number >= 10)
            *at++ = (uint8_t)('0' + number / 10);
        *at++ = (uint8_t)('0' + number % 10);
    } else {
        size_t n = bytes_put_i64(text, (int64_t)number);
        memcpy(at, text, n);
        at += n;
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

void vk_request_expect(struct vk_request *r, size_t len)
{
    (void)room(r, len);
}

void vk_command(struct vk_request *r, size_t n_args, const char *name)
{
    uint8_t *at = room(r, HEAD_MAX_LEN);

    if (!at)
        return;
    r->len += (size_t)(put_head(at, '*', n_args) - at);
    r->n_commands++;
    vk_arg_str(r, name);
}

uint8_t *vk_arg_blank(struct vk_request *r, size_t len)
{
    uint8_t *begin = room(r, HEAD_MAX_LEN + len + 2);

    if (!begin)
        return NULL;
    uint8_t *at = put_head(begin, '$', len), *end = at + len;
    *end++ = '\r';
    *end++ = '\n';
    r->len += (size_t)(end - begin);
    return at;
}

void vk_arg(struct vk_request *r, struct bytes b)
{
    uint8_t *at = vk_arg_blank(r, b.len);

    if (at && b.len > 0)
        memcpy(at, b.ptr, b.len);
}

void vk_arg_str(struct vk_request *r, const char *text)
{
    vk_arg(r, bytes_str(text));
}

void vk_arg_i64(struct vk_request *r, int64_t i)
{
    char text[I64_TEXT_MAX];

    vk_arg(r, bytes_of(text, bytes_put_i64(text, i)));
}

/* --- answers --- */

/* Where the answer to a task belongs; NULL: nowhere, it is not wanted.  An array grows as
 * its elements arrive, since a number of elements is easily said. */
static struct vk_reply *place_of(const redisReadTask *task)
{
    struct vk_sink *sink = task->privdata;

    if (!sink->arena || sink->no_memory)
        return NULL;
    if (!task->parent)
        return sink->reply;
    struct vk_reply *array = task->parent->obj;
    size_t i = (size_t)task->idx;
    if (i >= ELEMENTS_FIRST && (i & (i - 1)) == 0) {
        size_t grown = array->n < 2 * i ? array->n : 2 * i;
        struct vk_reply *sub = arena_zalloc(sink->arena, grown, sizeof(*sub));
        if (!sub) {
            sink->no_memory = true;
            return NULL;
        }
        memcpy(sub, array->sub, i * sizeof(*sub));
        array->sub = sub;
    }
    return &array->sub[i];
}

static void *put_string(const redisReadTask *task, char *text, size_t len)
{
    struct vk_sink *sink = task->privdata;
    struct vk_reply *reply = place_of(task);

    if (!reply)
        return sink; /* something that is not NULL */
    reply->kind = task->type == REDIS_REPLY_STATUS  ? VK_STATUS
                  : task->type == REDIS_REPLY_ERROR ? VK_ERROR
                                                    : VK_STRING;
    if (!arena_copy(sink->arena, bytes_of(text, len), &reply->b))
        sink->no_memory = true;
    return reply;
}

#if HIREDIS_MAJOR >= 1
static void *put_array(const redisReadTask *task, size_t n)
#else
static void *put_array(const redisReadTask *task, int n)
#endif
{
    struct vk_sink *sink = task->privdata;
    struct vk_reply *reply = place_of(task);

    if (!reply)
        return sink;
    reply->kind = VK_ARRAY;
    reply->n = (size_t)n;
    size_t first = reply->n < ELEMENTS_FIRST ? reply->n : ELEMENTS_FIRST;
    reply->sub = arena_zalloc(sink->arena, first, sizeof(*reply->sub));
    if (!reply->sub)
        sink->no_memory = true;
    return reply;
}

static void *put_integer(const redisReadTask *task, long long i)
{
    struct vk_reply *reply = place_of(task);

    if (!reply)
        return task->privdata;
    reply->kind = VK_INTEGER;
    reply->i = i;
    return reply;
}

static void *put_nil(const redisReadTask *task)
{
    struct vk_reply *reply = place_of(task);

    if (!reply)
        return task->privdata;
    reply->kind = VK_NIL;
    return reply;
}

static redisReplyObjectFunctions putters = {
    .createString = put_string,
    .createArray = put_array,
    .createInteger = put_integer,
    .createNil = put_nil,
    .freeObject = NULL, /* the arena's */
};

struct redisReader *vk_reader_new(void)
{
    redisReader *reader = redisReaderCreateWithFunctions(&putters);

    if (reader)
        reader->maxbuf = READER_KEEPS;
    return reader;
}

void vk_reader_free(struct redisReader *reader)
{
    if (reader)
        redisReaderFree(reader);
}

bool vk_reader_feed(struct redisReader *reader, const void *bytes, size_t len)
{
    return redisReaderFeed(reader, bytes, len) == REDIS_OK;
}

/* Whether a string is what the reader is at: its mark has been read then. */
static bool is_at_string(const redisReader *reader)
{
#if HIREDIS_MAJOR >= 1
    return reader->ridx >= 0 && reader->task[reader->ridx]->type == REDIS_REPLY_STRING;
#else
    return reader->ridx >= 0 && reader->rstack[reader->ridx].type == REDIS_REPLY_STRING;
#endif
}

/* Whether what has not all arrived yet may still become an answer.  A length that nobody
 * sends, or a line without an end, would be waited for while memory lasts. */
static bool is_plausible(const redisReader *reader)
{
    size_t len = reader->len - reader->pos;
    const char *at = reader->buf + reader->pos;
    int64_t n = 0;

    if (!is_at_string(reader))
        return len <= LINE_MAX_LEN;
    const char *end = memchr(at, '\r', len < HEAD_MAX_LEN ? len : HEAD_MAX_LEN);
    if (!end)
        return len < HEAD_MAX_LEN;
    return bytes_to_i64(bytes_of(at, (size_t)(end - at)), &n) && n <= STRING_MAX_LEN;
}

enum vk_parsed vk_reader_next(struct redisReader *reader, struct vk_sink *sink)
{
    void *got = NULL;

    reader->privdata = sink;
    if (redisReaderGetReply(reader, &got) != REDIS_OK)
        return VK_PARSE_BROKEN;
    if (got)
        return VK_PARSE_ANSWER;
    return is_plausible(reader) ? VK_PARSE_MORE : VK_PARSE_BROKEN;
}

bool vk_reader_is_empty(const struct redisReader *reader)
{
    return reader->pos == reader->len;
}

/* --- errors --- */

bool vk_reply_is_error(const struct vk_reply *reply, const char *begins)
{
    size_t n = strlen(begins);

    return reply->kind == VK_ERROR && reply->b.len >= n &&
           memcmp(reply->b.ptr, begins, n) == 0;
}

static const struct {
    const char *begins;
    belay_rc code;
    const char *reason;
    const char *means;
} refusals[] = {
    { "OOM ", BELAY_UNAVAILABLE, "memory",
      "the server has no memory left (maxmemory)" },
    { "NOAUTH ", BELAY_DENIED, "login", "the server wants a login" },
    { "NOPERM ", BELAY_DENIED, "permission", "the user may not do that" },
    { "READONLY ", BELAY_UNAVAILABLE, "replica", "the server is a replica" },
    { "MISCONF ", BELAY_UNAVAILABLE, "disk", "the server cannot write its disk" },
    { "BUSY ", BELAY_UNAVAILABLE, "busy", "the server is busy with a script" },
    { "NOREPLICAS ", BELAY_UNAVAILABLE, "replicas", "the server has too few replicas" },
    { "LOADING ", BELAY_UNAVAILABLE, "loading", "the server is loading its data" },
    { "CLUSTERDOWN ", BELAY_UNAVAILABLE, "cluster", "the cluster is down" },
    { "TRYAGAIN ", BELAY_UNAVAILABLE, "cluster", "the slot is on its way" },
    { "MASTERDOWN ", BELAY_UNAVAILABLE, "replica", "the server has lost its master" },
};

belay_rc vk_reply_error(const struct vk_reply *reply, const char *what,
                        struct belay_error *err)
{
    CLEANUP(buf_release) struct buf words = { .ptr = NULL };

    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        if (vk_reply_is_error(reply, refusals[i].begins))
            return err_reason(err, refusals[i].code, refusals[i].reason,
                              "valkey: %s: %s", what, refusals[i].means);
    }
    if (reply->kind != VK_ERROR)
        return err_set(err, BELAY_CORRUPT, "valkey: %s: an answer of another kind",
                       what);
    buf_append_escaped(&words, reply->b);
    return err_set(err, BELAY_CORRUPT, "valkey: %s: %.*s", what,
                   (int)(words.len < 200 ? words.len : 200),
                   words.len > 0 ? (const char *)words.ptr : "");
}
