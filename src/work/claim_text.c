/* What is text: the payloads of a batch, and a claim as one string. */

#include "base/json.h"
#include "base/json_text.h"
#include "work/queue_rows.h"

/* --- items --- */

bool items_count(struct bytes array, size_t *out)
{
    struct json_text in = json_text_of(array);
    size_t n = 0;

    if (array.len < 2 || !json_take(&in, '['))
        return false;
    if (!json_take(&in, ']')) {
        do {
            if (!json_skip(&in, JSON_DEPTH_MAX))
                return false;
            n++;
        } while (json_take(&in, ','));
        if (!json_take(&in, ']'))
            return false;
    }
    *out = n;
    return in.at == in.end;
}

/* <batch>:item:<number> */
static void put_item_id(char *out, struct bytes batch_id, size_t number)
{
    static const char word[] = ":item:";

    memcpy(out, batch_id.ptr, batch_id.len);
    out += batch_id.len;
    memcpy(out, word, sizeof(word) - 1);
    out += sizeof(word) - 1;
    out[bytes_put_i64(out, (int64_t)number)] = '\0';
}

bool items_cut(struct bytes array, const char *batch_id, struct belay_arena *a,
               struct belay_item *out, size_t n)
{
    struct bytes id = bytes_str(batch_id);
    size_t id_len = id.len + sizeof(":item:") + I64_TEXT_MAX;
    char *ids = arena_alloc(a, n * id_len);
    struct bytes copy;

    if (!ids || !arena_copy(a, array, &copy))
        return false;
    struct json_text in = json_text_of(bytes_of(copy.ptr + 1, copy.len - 1));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = in.at;
        if (!json_skip(&in, JSON_DEPTH_MAX))
            return false;
        out[i].payload = (const char *)from;
        out[i].payload_len = (size_t)(in.at - from);
        out[i].item_id = ids + i * id_len;
        put_item_id(ids + i * id_len, id, i);
        ((uint8_t *)copy.ptr)[in.at - copy.ptr] = '\0';
        in.at++;
    }
    return true;
}
/* --- claims --- */

static bool is_unreserved(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

static void append_encoded(struct buf *out, struct bytes in)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < in.len; i++) {
        uint8_t c = in.ptr[i];
        if (!is_unreserved(c)) {
            buf_append_char(out, '%');
            buf_append_char(out, digits[c >> 4]);
            c = (uint8_t)digits[c & 0xf];
        }
        buf_append_char(out, (char)c);
    }
}

belay_rc claim_text(const struct belay_claim *claim, struct belay_arena *a,
                    const char **out, struct belay_error *err)
{
    const char *const parts[] = { claim->claim_id, claim->lease_token,
                                  claim->lease_id };
    CLEANUP(buf_release) struct buf text = { 0 };
    struct bytes copy;
    belay_rc rc = queue_check_session(claim->session_id, err);
    if (rc)
        return rc;

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (!parts[i])
            return err_reason(err, BELAY_INVALID, "claim",
                              "claim: its id, token or lease id is missing");
        buf_append_str(&text, parts[i]);
        buf_append_char(&text, '/');
    }
    append_encoded(&text, bytes_str(claim->session_id));
    for (size_t i = 0; i < claim->n_batches; i++) {
        buf_append_char(&text, i == 0 ? '/' : ',');
        buf_append_i64(&text, claim->batches[i].enqueue_seq);
    }
    if (text.failed || !arena_copy(a, buf_view(&text), &copy))
        return err_no_memory(err, "a claim");
    *out = (const char *)copy.ptr;
    return BELAY_OK;
}

/* --- and back --- */

static belay_rc malformed(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_BAD_HANDLE, "malformed", "claim: %s", why);
}

/* What is before the separator, or before the end when there is none; *rest is what is
 * behind. */
static struct bytes cut(struct bytes *rest, char separator)
{
    const uint8_t *at = rest->len > 0 ? memchr(rest->ptr, separator, rest->len) : NULL;
    size_t n = at ? (size_t)(at - rest->ptr) : rest->len;
    struct bytes part = bytes_of(rest->ptr, n);

    n += at != NULL;
    *rest = bytes_of(rest->ptr + n, rest->len - n);
    return part;
}

/* Of a hex digit, ten being `ten`; -1: it is none. */
static int hex_value(uint8_t c, uint8_t ten)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= ten && c < ten + 6 ? c - ten + 10 : -1;
}

static bool is_hex(struct bytes b, size_t len)
{
    if (b.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (hex_value(b.ptr[i], 'a') < 0)
            return false;
    }
    return true;
}

/* A number that a store gives out: 1 and up. */
static bool to_number(struct bytes b, int64_t *out)
{
    return bytes_to_i64(b, out) && *out > 0 && *out < RANK_MAX;
}

static bool parse_claim_id(struct bytes id, int64_t *out_head)
{
    int64_t fence;
    struct bytes prefix = cut(&id, ':'), head = cut(&id, ':');

    return bytes_eq(prefix, bytes_str("qwc")) && to_number(head, out_head) &&
           to_number(id, &fence);
}

/* One character as append_encoded writes it, and nothing else, so that a claim has one
 * text. */
static bool decode_char(struct bytes *in, uint8_t *out)
{
    uint8_t c = in->ptr[0];
    bool coded = c == '%';
    size_t n = coded ? 3 : 1;

    if (in->len < n)
        return false;
    if (coded) {
        int high = hex_value(in->ptr[1], 'A'), low = hex_value(in->ptr[2], 'A');
        if (high < 0 || low < 0)
            return false;
        c = (uint8_t)(high * 16 + low);
    }
    *in = bytes_of(in->ptr + n, in->len - n);
    *out = c;
    return is_unreserved(c) == !coded;
}

static bool decode_session(struct bytes in, uint8_t out[SESSION_ID_MAX], size_t *out_n)
{
    size_t n = 0;

    while (in.len > 0) {
        if (n == SESSION_ID_MAX || !decode_char(&in, &out[n++]))
            return false;
    }
    *out_n = n;
    return bytes_is_id(bytes_of(out, n), SESSION_ID_MAX);
}

/* n ascending sequences, of which the first is the head's. */
static bool parse_seqs(struct bytes in, int64_t head, struct belay_batch *out, size_t n)
{
    int64_t last = 0;

    for (size_t i = 0; i < n; i++) {
        int64_t *seq = &out[i].enqueue_seq;
        if (!to_number(cut(&in, ','), seq) || *seq <= last)
            return false;
        last = *seq;
    }
    return out[0].enqueue_seq == head;
}

static size_t count_seqs(struct bytes in)
{
    size_t n = 1;

    for (size_t i = 0; i < in.len; i++)
        n += in.ptr[i] == ',';
    return n;
}

static bool copy_str(struct belay_arena *a, struct bytes b, const char **out)
{
    struct bytes copy = { .ptr = NULL };
    bool done = arena_copy(a, b, &copy);

    *out = (const char *)copy.ptr;
    return done;
}

belay_rc claim_parse(const char *text, struct belay_arena *a,
                     const struct belay_claim **out, struct belay_error *err)
{
    struct bytes rest = text ? bytes_str(text) : bytes_of(NULL, 0);
    struct bytes id = cut(&rest, '/'), token = cut(&rest, '/'), lease = cut(&rest, '/');
    struct bytes coded = cut(&rest, '/');
    size_t n = count_seqs(rest), session_len = 0;
    uint8_t session[SESSION_ID_MAX];
    int64_t head = 0;

    if (!parse_claim_id(id, &head))
        return malformed(err, "does not begin with qwc:<sequence>:<fence>/");
    if (!is_hex(token, SHA256_HEX_LEN) || !is_hex(lease, LEASE_ID_HEX))
        return malformed(err, "its token or its lease id is none");
    if (!decode_session(coded, session, &session_len))
        return malformed(err, "its session is none");
    if (n > BELAY_CLAIM_MAX)
        return malformed(err, "it lists too many batches");
    struct belay_claim *claim = arena_zalloc(a, 1, sizeof(*claim));
    struct belay_batch *batches = arena_zalloc(a, n, sizeof(*batches));
    if (!claim || !batches || !copy_str(a, id, &claim->claim_id) ||
        !copy_str(a, token, &claim->lease_token) ||
        !copy_str(a, lease, &claim->lease_id) ||
        !copy_str(a, bytes_of(session, session_len), &claim->session_id))
        return err_no_memory(err, "a claim");
    if (!parse_seqs(rest, head, batches, n))
        return malformed(err, "its batches are none");
    claim->batches = batches;
    claim->n_batches = n;
    *out = claim;
    return BELAY_OK;
}
