#include "policy/capability.h"

/* --- a joined set, token by token --- */

/* The token that `rest` begins with; rest goes on behind its comma.  False: none left. */
static bool next_token(struct bytes *rest, struct bytes *out)
{
    if (rest->len == 0)
        return false;
    const uint8_t *comma = memchr(rest->ptr, ',', rest->len);
    size_t len = comma ? (size_t)(comma - rest->ptr) : rest->len;
    size_t used = comma ? len + 1 : len;

    *out = bytes_of(rest->ptr, len);
    *rest = bytes_of(rest->ptr + used, rest->len - used);
    return true;
}

/* Goes on in `has`, which is sorted, up to `token`. */
static bool has_token(struct bytes *has, struct bytes token)
{
    struct bytes rest = *has, one;

    while (next_token(&rest, &one)) {
        int order = bytes_cmp(one, token);
        if (order > 0)
            return false;
        *has = rest;
        if (order == 0)
            return true;
    }
    return false;
}

bool capability_fits(struct bytes required, struct bytes has)
{
    struct bytes token;

    while (next_token(&required, &token)) {
        if (!has_token(&has, token))
            return false;
    }
    return true;
}

static size_t put_token(uint8_t *out, size_t len, struct bytes token)
{
    if (len > 0)
        out[len++] = ',';
    memcpy(out + len, token.ptr, token.len);
    return len + token.len;
}

bool capability_missing(struct bytes required, struct bytes has, struct belay_arena *a,
                        struct bytes *out)
{
    uint8_t *text = arena_alloc(a, required.len);
    struct bytes token;
    size_t len = 0;

    if (!text)
        return false;
    while (next_token(&required, &token)) {
        if (!has_token(&has, token))
            len = put_token(text, len, token);
    }
    *out = bytes_of(text, len);
    return true;
}

/* --- joining --- */

struct token_set {
    struct bytes token[CAPABILITY_TOKENS_MAX]; /* sorted, each once */
    size_t n;
    size_t len; /* with the commas */
};

static const char *token_fault(struct bytes token)
{
    if (token.len == 0)
        return "empty_token";
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] == ',')
            return "comma_in_token";
        if (token.ptr[i] <= 0x20 || token.ptr[i] == 0x7f)
            return "control_or_whitespace";
    }
    return bytes_is_utf8(token) ? NULL : "not_utf8";
}

static const char *set_add(struct token_set *s, struct bytes token)
{
    size_t low = 0, high = s->n;
    const char *fault = token_fault(token);

    if (fault)
        return fault;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = bytes_cmp(s->token[middle], token);
        if (order == 0)
            return NULL;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (s->n == CAPABILITY_TOKENS_MAX)
        return "too_many_tokens";
    size_t len = s->len + token.len + (s->n > 0);
    if (len > CAPABILITY_BYTES_MAX)
        return "too_many_bytes";
    memmove(&s->token[low + 1], &s->token[low], (s->n - low) * sizeof(s->token[0]));
    s->token[low] = token;
    s->n++;
    s->len = len;
    return NULL;
}

belay_rc capability_join(const char *const *tokens, size_t n, const char *what,
                         struct belay_arena *a, struct bytes *out,
                         struct belay_error *err)
{
    struct token_set set;
    size_t len = 0;

    set.n = 0;
    set.len = 0;
    what = what ? what : "requires";
    for (size_t i = 0; i < n; i++) {
        const char *fault = set_add(&set, bytes_str(tokens[i] ? tokens[i] : ""));
        if (fault)
            return err_reason(err, BELAY_INVALID, what, "%s: token %zu: %s", what,
                              i + 1, fault);
    }
    uint8_t *text = arena_alloc(a, set.len);
    if (!text)
        return err_no_memory(err, "capabilities");
    for (size_t i = 0; i < set.n; i++)
        len = put_token(text, len, set.token[i]);
    *out = bytes_of(text, len);
    return BELAY_OK;
}

/* --- routes --- */

/* FNV-1a, for when there is no SHA-256: any name will do that tells sets apart, since the
 * set itself is stored with the route. */
static void hash_plainly(struct bytes in, uint8_t out[8])
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < in.len; i++)
        h = (h ^ in.ptr[i]) * 0x100000001b3u;
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(h >> (56 - 8 * i));
}

void route_make(struct bytes required, char out[ROUTE_MAX])
{
    uint8_t digest[SHA256_LEN];

    if (required.len == 0) {
        memcpy(out, "-", 2);
        return;
    }
    if (sha256(required, digest, NULL))
        hash_plainly(required, digest);
    hex_encode(bytes_of(digest, (ROUTE_MAX - 1) / 2), out);
}
