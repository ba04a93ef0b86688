#include "policy/lease.h"

#include "base/clock.h"
#include "base/hash.h"
#include "policy/fence.h"

int64_t lease_expiry(int64_t now_ms, int64_t ttl_ms)
{
    return time_add_ms(now_ms, ttl_ms);
}

belay_rc lease_check_ttl(int64_t ttl_ms, struct belay_error *err)
{
    if (ttl_ms >= 0 && ttl_ms <= LEASE_MS_MAX)
        return BELAY_OK;
    belay_rc rc =
        err_reason(err, BELAY_INVALID, "lease", "lease: %lld ms, must be 0 to %lld",
                   (long long)ttl_ms, (long long)LEASE_MS_MAX);
    err_numbers(err, LEASE_MS_MAX, ttl_ms);
    return rc;
}

bool lease_is_granted(const struct lease *l)
{
    return l->token.len > 0;
}

bool lease_is_live(const struct lease *l, int64_t now_ms)
{
    return lease_is_granted(l) && l->expires_at_ms > now_ms;
}

bool lease_may_be_taken(const struct lease *l, int64_t now_ms, bool holder_dead)
{
    return holder_dead || !lease_is_live(l, now_ms);
}

const char *lease_lost_reason(const struct lease *l, const struct lease_proof *proof,
                              int64_t epoch)
{
    if (!lease_is_granted(l))
        return "released";
    if (!bytes_eq_secret(l->token, proof->token) || !bytes_eq_secret(l->id, proof->id))
        return "superseded";
    return fence_epoch(l->fence) == epoch ? NULL : "epoch";
}

const char *lease_renew(const struct lease *l, enum lease_renewal renewal,
                        int64_t now_ms, int64_t ttl_ms, int64_t *out_expires_at_ms)
{
    if (renewal == LEASE_RENEW_IN_TIME && !lease_is_live(l, now_ms))
        return "expired";
    int64_t expires_at_ms = lease_expiry(now_ms, ttl_ms);
    /* L6: never nearer. */
    *out_expires_at_ms =
        expires_at_ms > l->expires_at_ms ? expires_at_ms : l->expires_at_ms;
    return NULL;
}
