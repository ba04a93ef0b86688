#include "policy/lease.h"

#include "base/clock.h"
#include "policy/fence.h"
#include "tap.h"

#define T(text)                                   \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }
#define AT(epoch, n) (((int64_t)(epoch) << FENCE_N_BITS) + (n))

/* --- times --- */

/* clang-format off */
static const struct {
    const char *name; int64_t now, ttl, then;
} ends[] = {
    { "now + ttl",                            1000, 250, 1250 },
    { "a ttl of 0 ends at once",              1000, 0, 1000 },
    { "a day",                                1000, LEASE_MS_MAX, 1000 + LEASE_MS_MAX },
    { "saturates at the end of time",         TIME_MAX_MS - 1, 250, TIME_MAX_MS },
    { "at the end of time it stays there",    TIME_MAX_MS, LEASE_MS_MAX, TIME_MAX_MS },
    { "a clock beyond the end of time, too",  INT64_MAX, LEASE_MS_MAX, TIME_MAX_MS },
};

static const struct {
    int64_t ttl; bool fine;
} ttls[] = {
    { 0, true }, { 1, true }, { LEASE_MS_MAX, true },
    { -1, false }, { LEASE_MS_MAX + 1, false }, { INT64_MIN, false }, { INT64_MAX, false },
};
/* clang-format on */

static void ends_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (!TAP_EQ(t, lease_expiry(ends[i].now, ends[i].ttl), ends[i].then))
            printf("# row: %s\n", ends[i].name);
    }
}

static void ttls_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(ttls); i++) {
        struct belay_error err = { .code = 0 };
        belay_rc rc = lease_check_ttl(ttls[i].ttl, &err);
        TAP_EQ(t, rc, ttls[i].fine ? BELAY_OK : BELAY_INVALID);
        TAP_STR(t, err.reason, ttls[i].fine ? "" : "lease");
    }
    TAP_EQ(t, lease_check_ttl(-1, NULL), BELAY_INVALID);
}

static void live_until_its_end(struct tap *t)
{
    struct lease l = { .token = T("token"), .fence = 1, .expires_at_ms = 1000 };

    TAP_OK(t, lease_is_granted(&l));
    TAP_OK(t, lease_is_live(&l, 999));
    TAP_OK(t, !lease_is_live(&l, 1000));
    TAP_OK(t, !lease_is_live(&l, 1001));
    TAP_OK(t, !lease_may_be_taken(&l, 999, false));
    TAP_OK(t, lease_may_be_taken(&l, 1000, false));
    TAP_OK(t, lease_may_be_taken(&l, 0, true)); /* long before its end */
    TAP_OK(t, lease_may_be_taken(&l, 1000, true));
    l.token = bytes_of(NULL, 0);
    TAP_OK(t, lease_may_be_taken(&l, 0, false));
    TAP_OK(t, !lease_is_granted(&l));
    TAP_OK(t, !lease_is_live(&l, 0));
}

/* --- who holds --- */

/* clang-format off */
static const struct {
    const char *name;
    struct bytes token, id, shown_token, shown_id;
    int64_t fence, epoch;
    const char *want;
} proofs[] = {
    { "the holder",         T("tok"), T("id"), T("tok"), T("id"), 3, 0, NULL },
    { "nobody holds it",    T(""),    T(""),   T("tok"), T("id"), 3, 0, "released" },
    { "nothing is no proof of what nobody holds",
                            T(""),    T(""),   T(""),    T(""),   3, 0, "released" },
    { "another token",      T("new"), T("id"), T("tok"), T("id"), 3, 0, "superseded" },
    { "another lease id",   T("tok"), T("i2"), T("tok"), T("id"), 3, 0, "superseded" },
    { "no lease id",        T("tok"), T("id"), T("tok"), T(""),   3, 0, "superseded" },
    { "no token",           T("tok"), T("id"), T(""),    T("id"), 3, 0, "superseded" },
    { "a part of the token", T("tok"), T("id"), T("to"), T("id"), 3, 0, "superseded" },
    { "the epoch was raised",
                            T("tok"), T("id"), T("tok"), T("id"), 3, 1, "epoch" },
    { "granted in this epoch",
                            T("tok"), T("id"), T("tok"), T("id"), AT(1, 1), 1, NULL },
    { "superseded says more than epoch",
                            T("new"), T("i2"), T("tok"), T("id"), 3, 1, "superseded" },
};
/* clang-format on */

static void proofs_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(proofs); i++) {
        struct lease l = { .token = proofs[i].token,
                           .id = proofs[i].id,
                           .fence = proofs[i].fence,
                           .expires_at_ms = 1 }; /* long past: it says nothing */
        struct lease_proof p = { proofs[i].shown_token, proofs[i].shown_id };
        if (!TAP_STR(t, lease_lost_reason(&l, &p, proofs[i].epoch), proofs[i].want))
            printf("# row: %s\n", proofs[i].name);
    }
}

/* --- renewing --- */

/* clang-format off */
static const struct {
    const char *name;
    enum lease_renewal renewal;
    int64_t expires, now, ttl;
    const char *want; int64_t then;
} renewals[] = {
    { "moves the end",          LEASE_RENEW_LATE,    1000, 900, 500, NULL, 1400 },
    { "never nearer",           LEASE_RENEW_LATE,    1000, 900, 50,  NULL, 1000 },
    { "a ttl of 0 changes nothing", LEASE_RENEW_LATE, 1000, 900, 0,  NULL, 1000 },
    { "past due, late",         LEASE_RENEW_LATE,    1000, 5000, 10, NULL, 5010 },
    { "past due, by 0",         LEASE_RENEW_LATE,    1000, 5000, 0,  NULL, 5000 },
    { "in time",                LEASE_RENEW_IN_TIME, 1000, 999, 500, NULL, 1499 },
    { "at its end is too late", LEASE_RENEW_IN_TIME, 1000, 1000, 500, "expired", -7 },
    { "past due, in time",      LEASE_RENEW_IN_TIME, 1000, 5000, 500, "expired", -7 },
    { "saturates",              LEASE_RENEW_LATE,    1000, TIME_MAX_MS - 1, 500, NULL, TIME_MAX_MS },
};
/* clang-format on */

static void renewals_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(renewals); i++) {
        struct lease l = { .token = T("tok"),
                           .fence = 1,
                           .expires_at_ms = renewals[i].expires };
        int64_t then = -7;
        const char *reason = lease_renew(&l, renewals[i].renewal, renewals[i].now,
                                         renewals[i].ttl, &then);
        if (!TAP_STR(t, reason, renewals[i].want) || !TAP_EQ(t, then, renewals[i].then))
            printf("# row: %s\n", renewals[i].name);
    }
}

static const struct tap_case cases[] = {
    { "when a lease ends, by table", ends_by_table },
    { "a ttl outside 0 to 24 hours is invalid", ttls_by_table },
    { "a lease is live until its end, which does not belong to it",
      live_until_its_end },
    { "who holds, and why not, by table", proofs_by_table },
    { "L6: renewing, by table", renewals_by_table },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
