#include "policy/claim.h"

/* --- the prefix rule --- */

static bool joins(const struct claim_candidate *head, const struct claim_candidate *c)
{
    return c->slot == BELAY_JOIN && c->delivery == head->delivery &&
           bytes_eq(c->merge_key, head->merge_key);
}

size_t claim_prefix(const struct claim_candidate *candidates, size_t n,
                    enum belay_boundary boundary, size_t max)
{
    const struct claim_candidate *head = candidates;
    size_t taken = 1;

    if (max == 0 || n == 0)
        return 0;
    if (boundary == BELAY_ACTIVE_TURN_CHECKPOINT &&
        head->delivery != BELAY_EARLIEST_SAFE_BOUNDARY)
        return 0;
    if (head->slot != BELAY_JOIN)
        return 1;
    while (taken < max && taken < n && joins(head, &candidates[taken]))
        taken++;
    return taken;
}

/* --- text in an arena, within a length that is known before --- */

struct text {
    char *at;
    size_t len;
};

static void add(struct text *to, struct bytes more)
{
    if (more.len > 0)
        memcpy(to->at + to->len, more.ptr, more.len);
    to->len += more.len;
}

static void add_str(struct text *to, const char *more)
{
    add(to, bytes_str(more));
}

static void add_i64(struct text *to, int64_t n)
{
    char digits[I64_TEXT_MAX];

    add(to, bytes_of(digits, bytes_put_i64(digits, n)));
}

static void add_hex_digits(struct text *to, uint32_t n, unsigned least)
{
    unsigned shift = 28;

    while (shift > 4 * (least - 1) && n >> shift == 0)
        shift -= 4;
    for (;; shift -= 4) {
        to->at[to->len++] = "0123456789abcdef"[(n >> shift) & 0xf];
        if (shift == 0)
            return;
    }
}

/* --- ids --- */

void claim_id_make(int64_t head_seq, int64_t fence, char out[CLAIM_ID_MAX])
{
    struct text id = { .at = out };

    add_str(&id, "qwc:");
    add_i64(&id, head_seq);
    add_str(&id, ":");
    add_i64(&id, fence);
    out[id.len] = '\0';
}

static belay_rc hash_text(const struct text *in, char out[SHA256_HEX_LEN + 1],
                          struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];
    belay_rc rc = sha256(bytes_of(in->at, in->len), digest, err);

    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

belay_rc claim_token_make(struct bytes session, struct bytes owner,
                          const char *claim_id, int64_t now_ms,
                          char out[SHA256_HEX_LEN + 1], struct belay_arena *a,
                          struct belay_error *err)
{
    size_t most = session.len + owner.len + strlen(claim_id) + I64_TEXT_MAX + 3;
    struct text seed = { .at = arena_alloc(a, most) };

    if (!seed.at)
        return err_no_memory(err, "a lease token");
    add(&seed, session);
    add_str(&seed, ":");
    add(&seed, owner);
    add_str(&seed, ":");
    add_str(&seed, claim_id);
    add_str(&seed, ":");
    add_i64(&seed, now_ms);
    return hash_text(&seed, out, err);
}

/* How a control character is called in \x form, or NULL. */
static const char *short_escape(uint32_t c)
{
    switch (c) {
    case '\0':
        return "\\0";
    case '\t':
        return "\\t";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    default:
        return NULL;
    }
}

/* The text as the seed's language prints a string for debugging: quote, backslash and
 * control characters escaped.  (It escapes more of Unicode, by tables that change from
 * version to version; ids stay distinct without.) */
static void add_debug(struct text *to, struct bytes in)
{
    size_t n;

    for (size_t i = 0; i < in.len; i += n) {
        struct bytes rest = bytes_of(in.ptr + i, in.len - i);
        bool c1 = rest.ptr[0] == 0xc2 && rest.len > 1 && rest.ptr[1] < 0xa0;
        uint32_t c = c1 ? rest.ptr[1] : rest.ptr[0];
        const char *name = c1 ? NULL : short_escape(c);

        n = bytes_utf8_len(rest);
        n = n > 0 ? n : 1;
        if (name) {
            add_str(to, name);
        } else if (c1 || c < 0x20 || c == 0x7f) {
            add_str(to, "\\u{");
            add_hex_digits(to, c, 1);
            add_str(to, "}");
        } else {
            add(to, bytes_of(rest.ptr, n));
        }
    }
}

#define DEBUG_GROWTH 6 /* a control character, at most: \u{7f} */

belay_rc batch_id_make(struct bytes session, struct bytes source_key, int64_t now_ms,
                       int64_t nonce, char out[BATCH_ID_LEN + 1], struct belay_arena *a,
                       struct belay_error *err)
{
    size_t most = session.len + DEBUG_GROWTH * source_key.len +
                  sizeof("Some(\"\"):::") + (size_t)2 * I64_TEXT_MAX;
    struct text seed = { .at = arena_alloc(a, most) };

    if (!seed.at)
        return err_no_memory(err, "a batch id");
    add(&seed, session);
    if (source_key.ptr) {
        add_str(&seed, ":Some(\"");
        add_debug(&seed, source_key);
        add_str(&seed, "\"):");
    } else {
        add_str(&seed, ":None:");
    }
    add_i64(&seed, now_ms);
    if (nonce >= 0) {
        add_str(&seed, ":");
        add_i64(&seed, nonce);
    }
    struct text id = { .at = out };
    add_str(&id, "qwb:");
    return hash_text(&seed, out + id.len, err);
}

/* --- names --- */

static const char *const delivery_names[] = {
    [BELAY_EARLIEST_SAFE_BOUNDARY] = "earliest_safe_boundary",
    [BELAY_AFTER_CURRENT_TURN_COMMIT] = "after_current_turn_commit",
};
static const char *const slot_names[] = {
    [BELAY_JOIN] = "join",
    [BELAY_EXCLUSIVE] = "exclusive",
};
static const char *const boundary_names[] = {
    [BELAY_IDLE] = "idle",
    [BELAY_ACTIVE_TURN_CHECKPOINT] = "active_turn_checkpoint",
};

static const char *name_of(const char *const *names, size_t n, int32_t value)
{
    return value >= 0 && (size_t)value < n ? names[value] : NULL;
}

static bool value_of(const char *const *names, size_t n, struct bytes name,
                     int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i] && bytes_eq(name, bytes_str(names[i]))) {
            *out = (int32_t)i;
            return true;
        }
    }
    return false;
}

const char *delivery_name(int32_t delivery)
{
    return name_of(delivery_names, COUNT_OF(delivery_names), delivery);
}

const char *slot_name(int32_t slot)
{
    return name_of(slot_names, COUNT_OF(slot_names), slot);
}

const char *boundary_name(int32_t boundary)
{
    return name_of(boundary_names, COUNT_OF(boundary_names), boundary);
}

bool delivery_parse(struct bytes name, int32_t *out)
{
    return value_of(delivery_names, COUNT_OF(delivery_names), name, out);
}

bool slot_parse(struct bytes name, int32_t *out)
{
    return value_of(slot_names, COUNT_OF(slot_names), name, out);
}

bool boundary_parse(struct bytes name, int32_t *out)
{
    return value_of(boundary_names, COUNT_OF(boundary_names), name, out);
}

/* --- merge keys --- */

/* As a canonical JSON string would have it, without the quotes. */
static void add_json(struct text *to, struct bytes in)
{
    static const char *const escapes[128] = {
        ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
        ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"
    };

    for (size_t i = 0; i < in.len; i++) {
        uint8_t c = in.ptr[i];
        if (c < COUNT_OF(escapes) && escapes[c]) {
            add_str(to, escapes[c]);
        } else if (c < 0x20) {
            add_str(to, "\\u");
            add_hex_digits(to, c, 4);
        } else {
            add(to, bytes_of(&c, 1));
        }
    }
}

#define JSON_GROWTH 6 /* \u001f */

static belay_rc group_key(struct bytes group, struct bytes *out, struct belay_arena *a,
                          struct belay_error *err)
{
    size_t most = sizeof("{\"group\":\"\"}") + JSON_GROWTH * group.len;
    struct text key = { .at = arena_alloc(a, most) };

    if (!key.at)
        return err_no_memory(err, "a merge key");
    add_str(&key, "{\"group\":\"");
    add_json(&key, group);
    add_str(&key, "\"}");
    *out = bytes_of(key.at, key.len);
    return BELAY_OK;
}

belay_rc merge_key_make(int32_t merge, struct bytes group, struct bytes *out,
                        struct belay_arena *a, struct belay_error *err)
{
    switch (merge) {
    case BELAY_MERGE_NEVER:
        *out = bytes_str("\"never\"");
        return BELAY_OK;
    case BELAY_MERGE_PAYLOAD_DEFAULT:
        *out = bytes_str("\"payload_default\"");
        return BELAY_OK;
    case BELAY_MERGE_GROUP:
        return group_key(group, out, a, err);
    default:
        return err_reason(err, BELAY_INVALID, "merge", "merge: there is no kind %d",
                          (int)merge);
    }
}
