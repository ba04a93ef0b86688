#include "work/lease.h"

#include "base/hash.h"
#include "policy/fence.h"

belay_rc lease_id_make(struct store *s, char out[LEASE_ID_HEX + 1],
                       struct belay_error *err)
{
    uint8_t bits[LEASE_ID_HEX / 2];
    belay_rc rc = random_bytes(store_random_hook(s), bits, sizeof(bits), err);

    if (rc == BELAY_OK)
        hex_encode(bytes_of(bits, sizeof(bits)), out);
    return rc;
}

struct lease_holder lease_holder_here(struct bytes owner, struct host *h)
{
    struct lease_holder out = { .owner = owner };

    if (!h || !host_join(h))
        return out;
    out.host = h->self.host;
    out.boot = h->self.boot;
    out.member = h->self.member;
    out.pid = h->self.pid;
    out.process_start = h->self.process_start;
    return out;
}

struct lease_holder lease_holder_of(struct bytes owner, struct bytes principal,
                                    struct host *h)
{
    struct lease_holder out = lease_holder_here(owner, h && h->binds ? h : NULL);

    out.principal = principal;
    return out;
}

struct lease_holder lease_holder_in(const struct row *row, unsigned base)
{
    return (struct lease_holder){
        .owner = row_bytes(row, base + LEASE_OWNER),
        .principal = row_bytes(row, base + LEASE_PRINCIPAL),
        .host = row_bytes(row, base + LEASE_HOST),
        .boot = row_bytes(row, base + LEASE_BOOT),
        .member = row_bytes(row, base + LEASE_FLEET_MEMBER),
        .pid = row_i64(row, base + LEASE_PID, 0),
        .process_start = row_i64(row, base + LEASE_PROCESS_START, 0),
    };
}

struct lease lease_of(const struct row *row, unsigned base)
{
    return (struct lease){
        .owner = row_bytes(row, base + LEASE_OWNER),
        .token = row_bytes(row, base + LEASE_TOKEN),
        .id = row_bytes(row, base + LEASE_ID),
        .fence = row_i64(row, base + LEASE_FENCE, 0),
        .claimed_at_ms = row_i64(row, base + LEASE_CLAIMED_AT_MS, 0),
        .expires_at_ms = row_i64(row, base + LEASE_EXPIRES_AT_MS, 0),
    };
}

static struct value text_or_null(struct bytes text)
{
    return text.len > 0 ? value_text(text) : value_null();
}

static struct value number_or_null(int64_t n)
{
    return n != 0 ? value_i64(n) : value_null();
}

size_t lease_grant_changes(const struct lease_grant *g, unsigned base,
                           struct change out[LEASE_COLUMNS])
{
    const struct lease_holder *h = &g->holder;
    const struct value v[LEASE_COLUMNS] = {
        [LEASE_OWNER] = value_text(h->owner),
        [LEASE_TOKEN] = value_text(g->token),
        [LEASE_ID] = value_text(g->id),
        [LEASE_FENCE] = value_i64(g->fence),
        [LEASE_CLAIMED_AT_MS] = value_i64(g->claimed_at_ms),
        [LEASE_EXPIRES_AT_MS] = value_i64(g->expires_at_ms),
        [LEASE_PRINCIPAL] = text_or_null(h->principal),
        [LEASE_HOST] = text_or_null(h->host),
        [LEASE_BOOT] = text_or_null(h->boot),
        [LEASE_PID] = number_or_null(h->pid),
        [LEASE_PROCESS_START] = number_or_null(h->process_start),
        [LEASE_FLEET_MEMBER] = text_or_null(h->member),
    };

    for (unsigned i = 0; i < LEASE_COLUMNS; i++)
        out[i] = (struct change){ .column = base + i, .value = v[i] };
    return LEASE_COLUMNS;
}

size_t lease_release_changes(unsigned base, struct change out[LEASE_COLUMNS])
{
    size_t n = 0;

    for (unsigned i = 0; i < LEASE_COLUMNS; i++) {
        if (i != LEASE_FENCE) /* L2: the next grant is above it */
            out[n++] = (struct change){ .column = base + i, .value = value_null() };
    }
    return n;
}

belay_rc lease_next_fence(struct txn *t, int64_t last, int64_t floor, int64_t epoch,
                          int64_t *out)
{
    belay_rc rc = fence_next(last, floor, epoch, out);

    if (rc == BELAY_OK)
        return BELAY_OK;
    if (rc == BELAY_OUT_OF_RANGE)
        rc = txn_fail(t, rc, "fence", "fence: %lld is the last one of its epoch",
                      (long long)last);
    else
        rc = txn_fail(t, BELAY_CORRUPT, "fence",
                      "fence: %lld cannot have been given in epoch %lld",
                      (long long)last, (long long)epoch);
    err_numbers(txn_error(t), FENCE_N_MAX, last);
    return rc;
}

static const struct {
    const char *reason, *text;
} losses[] = {
    { "superseded", "somebody else holds it" },
    { "released", "it was given back" },
    { "terminal", "it was completed, cancelled or dropped" },
    { "epoch", "the store's epoch was raised since it was granted" },
    { "expired", "its time has passed" },
    { "revoked", "it was taken away" },
    { "incomplete", "it has other batches than those listed" },
};

belay_rc lease_lost(struct txn *t, const char *reason, const char *what)
{
    const char *text = "it is not held";

    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        if (strcmp(losses[i].reason, reason) == 0)
            text = losses[i].text;
    }
    return txn_fail(t, BELAY_LEASE_LOST, reason, "%s: %s", what, text);
}
