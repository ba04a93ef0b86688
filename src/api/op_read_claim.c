/* Claims, and the small words of arguments. */
#include "api/op_json.h"
#include "base/json.h"
#include "work/queue.h"

int32_t op_read_name(const char *const *names, struct bytes text)
{
    for (int32_t i = 0; names[i]; i++) {
        if (bytes_eq(text, bytes_str(names[i])))
            return i;
    }
    return -1;
}

bool op_read_revision(struct bytes text, int64_t *out)
{
    int64_t n = BELAY_ANY_REVISION;

    if (!bytes_eq(text, bytes_str("any")) && (!bytes_to_i64(text, &n) || n < 0))
        return false;
    *out = n;
    return true;
}

bool op_read_merge(struct bytes text, int32_t *out, const char **group)
{
    static const char *const names[] = { "never", "payload_default", NULL };
    static const char prefix[] = "group:";
    size_t len = sizeof(prefix) - 1;
    int32_t n = op_read_name(names, text);

    *group = NULL;
    if (n < 0 && text.len > len && memcmp(text.ptr, prefix, len) == 0) {
        *group = (const char *)text.ptr + len;
        n = BELAY_MERGE_GROUP;
    }
    *out = n;
    return n >= 0;
}

/* --- claims --- */

static belay_rc no_claim(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_BAD_HANDLE, "claim", "claim: %s", why);
}

static struct bytes trim(struct bytes text)
{
    static const char blanks[] = " \t\r\n";

    while (text.len > 0 && memchr(blanks, text.ptr[0], sizeof(blanks) - 1))
        text = bytes_of(text.ptr + 1, text.len - 1);
    while (text.len > 0 && memchr(blanks, text.ptr[text.len - 1], sizeof(blanks) - 1))
        text.len--;
    return text;
}

/* Strings are copied, since the JSON they are in may go. */
struct copier {
    struct belay_arena *arena;
    bool failed; /* there was no memory for one */
};

/* NULL when it is no string, or cannot be copied. */
static const char *copy_text(struct copier *c, const json_t *value)
{
    struct bytes copy;

    if (!json_is_string(value))
        return NULL;
    if (arena_copy(c->arena,
                   bytes_of(json_string_value(value), json_string_length(value)),
                   &copy))
        return (const char *)copy.ptr;
    c->failed = true;
    return NULL;
}

/* Batches as they are printed, or just their ids. */
static belay_rc read_batches(struct copier *c, const json_t *object,
                             struct belay_claim *claim, struct belay_error *err)
{
    const json_t *whole = json_object_get(object, "batches");
    const json_t *list = whole ? whole : json_object_get(object, "batch_ids");
    size_t n = json_array_size(list);

    if (n == 0)
        return no_claim(err, "has no batches");
    struct belay_batch *batches = arena_zalloc(c->arena, n, sizeof(*batches));
    if (!batches)
        return err_no_memory(err, "a claim");
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *id = whole ? json_object_get(item, "batch_id") : item;

        batches[i].session_id = claim->session_id;
        batches[i].batch_id = copy_text(c, id);
        batches[i].enqueue_seq =
            json_integer_value(json_object_get(item, "enqueue_seq"));
        if (!c->failed && !batches[i].batch_id && batches[i].enqueue_seq <= 0)
            return no_claim(err, "a batch has neither id nor sequence");
    }
    claim->batches = batches;
    claim->n_batches = n;
    return c->failed ? err_no_memory(err, "a claim") : BELAY_OK;
}

static belay_rc read_members(const json_t *object, struct belay_arena *a,
                             const struct belay_claim **out, struct belay_error *err)
{
    struct copier c = { .arena = a };
    struct belay_claim *claim = arena_zalloc(a, 1, sizeof(*claim));

    if (!claim)
        return err_no_memory(err, "a claim");
    claim->session_id = copy_text(&c, json_object_get(object, "session_id"));
    claim->claim_id = copy_text(&c, json_object_get(object, "claim_id"));
    claim->owner_id = copy_text(&c, json_object_get(object, "owner_id"));
    claim->lease_token = copy_text(&c, json_object_get(object, "lease_token"));
    claim->lease_id = copy_text(&c, json_object_get(object, "lease_id"));
    if (c.failed)
        return err_no_memory(err, "a claim");
    if (!claim->session_id || !claim->claim_id || !claim->lease_token ||
        !claim->lease_id)
        return no_claim(err, "lacks session_id, claim_id, lease_token or lease_id");
    belay_rc rc = read_batches(&c, object, claim, err);
    if (rc == BELAY_OK)
        *out = claim;
    return rc;
}

belay_rc op_read_claim_json(const json_t *value, struct belay_arena *a,
                            const struct belay_claim **out, struct belay_error *err)
{
    const json_t *inner = json_object_get(value, "claim");

    value = inner ? inner : value;
    if (!json_object_get(value, "claim_id") && json_object_get(value, "handle"))
        value = json_object_get(value, "handle");
    if (json_is_object(value))
        return read_members(value, a, out, err);
    if (json_is_null(value))
        return no_claim(err, "nothing was claimed");
    if (!json_is_string(value))
        return no_claim(err, "is neither a handle nor an object");
    return op_read_claim(bytes_of(json_string_value(value), json_string_length(value)),
                         a, out, err);
}

belay_rc op_read_claim(struct bytes text, struct belay_arena *a,
                       const struct belay_claim **out, struct belay_error *err)
{
    json_t *value CLEANUP(json_decrefp) = NULL;
    struct belay_error why;
    struct bytes copy;

    text = trim(text);
    if (text.len == 0 || text.ptr[0] != '{') {
        if (!arena_copy(a, text, &copy))
            return err_no_memory(err, "a claim");
        return claim_parse((const char *)copy.ptr, a, out, err);
    }
    belay_rc rc = json_read(text, text.len, &value, &why);
    if (rc == BELAY_INVALID)
        return no_claim(err, why.message);
    return rc ? err_no_memory(err, "a claim") : op_read_claim_json(value, a, out, err);
}
