#include "api/check.h"

#include <string.h>

/* No version of any struct will ever be larger: what claims to be was not initialised. */
#define SIZED_MAX ((size_t)4096)

belay_rc null_given(struct belay_error *err, const char *function)
{
    return err_set(err, BELAY_MISUSE, "%s: a pointer that must be there is NULL",
                   function);
}

static belay_rc wrong_size(const struct sized *type, uint32_t size, const char *why,
                           struct belay_error *err)
{
    (void)err_set(err, BELAY_MISUSE, "struct %s: %s", type->name, why);
    err_numbers(err, (int64_t)type->known, size);
    return BELAY_MISUSE;
}

belay_rc sized_read(const struct sized *type, const void *in, void *out,
                    struct belay_error *err)
{
    const unsigned char *bytes = in;
    uint32_t size;

    memcpy(&size, in, sizeof(size));
    if (size < type->first || size > SIZED_MAX)
        return wrong_size(type, size,
                          "size is not that of any version; set it to its sizeof", err);
    for (size_t i = type->known; i < size; i++) {
        if (bytes[i] != 0)
            return wrong_size(type, size,
                              "sets a member that this version of the library does not "
                              "know",
                              err);
    }
    memset(out, 0, type->known);
    memcpy(out, in, size < type->known ? size : type->known);
    size = (uint32_t)type->known;
    memcpy(out, &size, sizeof(size));
    return BELAY_OK;
}

/* Whether every element claims to be of this size. */
static bool are_all(const unsigned char *in, size_t n, uint32_t size)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t its;

        memcpy(&its, in + i * size, sizeof(its));
        if (its != size)
            return false;
    }
    return true;
}

belay_rc sized_list(const struct sized *type, const void *in, size_t n,
                    struct belay_arena *a, const void **out, struct belay_error *err)
{
    const unsigned char *from = in;
    uint32_t size = 0;

    if (n == 0 || !in)
        return n == 0 ? BELAY_OK : null_given(err, type->name);
    memcpy(&size, in, sizeof(size));
    if (size < type->first || size > SIZED_MAX || !are_all(from, n, size))
        return wrong_size(type, size,
                          "size is not that of one version in the whole list; set it "
                          "to its sizeof",
                          err);
    *out = in;
    if (size == type->known)
        return BELAY_OK;
    unsigned char *to = arena_zalloc(a, n, type->known);
    if (!to)
        return err_no_memory(err, "a list");
    belay_rc rc = BELAY_OK;
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        rc = sized_read(type, from + i * size, to + i * type->known, err);
    if (rc == BELAY_OK)
        *out = to;
    return rc;
}

belay_rc sized_check(const struct sized *type, const void *out, struct belay_error *err)
{
    uint32_t size;

    memcpy(&size, out, sizeof(size));
    if (size < type->first || size > SIZED_MAX)
        return wrong_size(type, size,
                          "size is not that of any version; set it to its sizeof", err);
    return BELAY_OK;
}

void sized_write(const struct sized *type, const void *known, void *out)
{
    uint32_t size;

    memcpy(&size, out, sizeof(size));
    memcpy((unsigned char *)out + sizeof(size),
           (const unsigned char *)known + sizeof(size),
           (size < type->known ? size : type->known) - sizeof(size));
}

belay_rc strings_given(const char *const *list, size_t n, const char *what,
                       struct belay_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!list || !list[i])
            return err_set(err, BELAY_MISUSE, "%s: %zu of %zu is NULL", what, i + 1, n);
    }
    return BELAY_OK;
}

belay_rc claim_given(const struct belay_claim *claim, struct belay_error *err)
{
    if (!claim || !claim->session_id || !claim->claim_id || !claim->lease_token ||
        !claim->lease_id || (claim->n_batches > 0 && !claim->batches))
        return err_set(err, BELAY_MISUSE,
                       "struct belay_claim: session, claim id, token, lease id or "
                       "batches are NULL");
    for (size_t i = 0; i < claim->n_batches; i++) {
        if (claim->batches[i].enqueue_seq <= 0 && !claim->batches[i].batch_id)
            return err_set(err, BELAY_MISUSE,
                           "struct belay_claim: batch %zu has neither id nor sequence",
                           i + 1);
    }
    return BELAY_OK;
}
