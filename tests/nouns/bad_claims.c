/* Claims, renewals and the rest of the inbox's calls, asked wrongly. */
#include "nouns.h"

static struct belay_claim_request usual(void)
{
    return (struct belay_claim_request){ .size = sizeof(struct belay_claim_request),
                                         .session_id = "s",
                                         .owner_id = "o",
                                         .lease_ms = MINUTE,
                                         .max = 1 };
}

static belay_rc claim(struct world *w, const struct belay_claim_request *r)
{
    return belay_queue_claim(w->use, r, w->arena, &w->claimed, &w->err);
}

static void requests_are_checked(struct world *w)
{
    static const char *const ids[] = { "", "a\tb", "\xff" };
    const char *too_long = bytes_of(w, 'x', 256);
    struct belay_claim_request r;

    post_many(w, "s", 2);
    const char *before = everything(w);
    for (size_t i = 0; i <= COUNT_OF(ids); i++) {
        const char *id = i < COUNT_OF(ids) ? ids[i] : too_long;
        r = usual();
        r.session_id = id;
        WHY(w, claim(w, &r), BELAY_INVALID, "session_id");
        r = usual();
        r.owner_id = id;
        WHY(w, claim(w, &r), BELAY_INVALID, "owner_id");
    }
    static const int32_t boundaries[] = { -1, 2, INT32_MAX };
    for (size_t i = 0; i < COUNT_OF(boundaries); i++) {
        r = usual();
        r.boundary = boundaries[i];
        WHY(w, claim(w, &r), BELAY_INVALID, "boundary");
    }
    static const int64_t leases[] = { -1, BELAY_LEASE_MAX_MS + 1, INT64_MAX,
                                      INT64_MIN };
    for (size_t i = 0; i < COUNT_OF(leases); i++) {
        r = usual();
        r.lease_ms = leases[i];
        WHY(w, claim(w, &r), BELAY_INVALID, "lease");
    }
    r = usual();
    r.max = BELAY_CLAIM_MAX + 1;
    WHY(w, claim(w, &r), BELAY_INVALID, "max");
    r = usual();
    r.wait_ms = -1;
    WHY(w, claim(w, &r), BELAY_INVALID, "wait");
    STR(w, everything(w), before);
    r = usual();
    r.lease_ms = BELAY_LEASE_MAX_MS;
    r.max = BELAY_CLAIM_MAX;
    RC(w, claim(w, &r), BELAY_OK);
    STR(w, seqs(w, w->claimed.claim), "1 2");
}

static void renewals_are_checked(struct world *w)
{
    static const int64_t leases[] = { -1, BELAY_LEASE_MAX_MS + 1, INT64_MAX,
                                      INT64_MIN };

    post_many(w, "s", 1);
    const struct belay_claim *c = take(w, 1);
    if (!c)
        return;
    const char *before = everything(w);
    for (size_t i = 0; i < COUNT_OF(leases); i++)
        WHY(w, renew(w, c, leases[i]), BELAY_INVALID, "lease");
    RC(w, belay_queue_renew(NULL, c, MINUTE, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_queue_renew(w->use, NULL, MINUTE, NULL, &w->err), BELAY_MISUSE);
    struct belay_claim holes[4] = { *c, *c, *c, *c };
    holes[0].session_id = NULL;
    holes[1].lease_token = NULL;
    holes[2].lease_id = NULL;
    holes[3].batches = NULL;
    for (size_t i = 0; i < COUNT_OF(holes); i++) {
        RC(w, renew(w, &holes[i], MINUTE), BELAY_MISUSE);
        RC(w, belay_queue_abandon(w->use, &holes[i], NULL, &w->err), BELAY_MISUSE);
        RC(w, finish(w, "s", 0, &holes[i]), BELAY_MISUSE);
    }
    RC(w, belay_queue_abandon(NULL, c, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_queue_abandon(w->use, NULL, NULL, &w->err), BELAY_MISUSE);
    STR(w, everything(w), before);
    RC(w, belay_queue_renew(w->use, c, BELAY_LEASE_MAX_MS, NULL, NULL), BELAY_OK);
    RC(w, belay_queue_abandon(w->use, c, NULL, NULL), BELAY_OK);
}

static void looking_is_checked(struct world *w)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 1001 };
    struct belay_batches out = { .n = 77 };
    const struct belay_batch *none = NULL;

    post_many(w, "s", 1);
    const char *before = everything(w);
    WHY(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_INVALID,
        "limit");
    page.limit = 1;
    page.after_seq = -1;
    RC(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_INVALID);
    page.after_seq = 0;
    page.size = 3;
    RC(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_MISUSE);
    WHY(w, belay_queue_list(w->use, "", NULL, w->arena, &out, &w->err), BELAY_INVALID,
        "session_id");
    RC(w, belay_queue_list(w->use, NULL, NULL, w->arena, &out, &w->err), BELAY_MISUSE);
    EQ(w, out.n, 77);

    WHY(w, belay_queue_cancel(w->use, "\xff", "1", w->arena, &none, &w->err),
        BELAY_INVALID, "session_id");
    RC(w, belay_queue_cancel(w->use, "s", NULL, w->arena, &none, &w->err),
       BELAY_MISUSE);
    RC(w, belay_queue_cancel(w->use, "s", "1", w->arena, NULL, &w->err), BELAY_MISUSE);
    OK(w, !cancelled(w, "s", "qwb:nothing"));
    WHY(w, belay_queue_drop(w->use, "", "1", &w->err), BELAY_INVALID, "session_id");
    RC(w, belay_queue_drop(w->use, "s", NULL, &w->err), BELAY_MISUSE);
    static const char *const nothing[] = { "0",  "-1", "2",  "01",
                                           "1x", " 1", "+1", "99999999999999999999",
                                           "" };
    for (size_t i = 0; i < COUNT_OF(nothing); i++) {
        belay_rc rc = belay_queue_drop(w->use, "s", nothing[i], &w->err);
        if (!OK(w, rc == BELAY_NOT_FOUND || rc == BELAY_INVALID))
            printf("# in row %zu\n", i);
    }
    STR(w, everything(w), before);
}

static void requests_have_sizes(struct world *w)
{
    static const uint32_t wrong[] = { 0, 8, sizeof(struct belay_claim_request) - 8,
                                      UINT32_MAX };
    const char *none[] = { NULL };
    struct belay_claim_request r;

    post_many(w, "s", 1);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        r = usual();
        r.size = wrong[i];
        RC(w, claim(w, &r), BELAY_MISUSE);
    }
    r = usual();
    r.session_id = NULL;
    RC(w, claim(w, &r), BELAY_MISUSE);
    r = usual();
    r.owner_id = NULL;
    RC(w, claim(w, &r), BELAY_MISUSE);
    r = usual();
    r.batch_ids = none;
    r.n_batch_ids = 1;
    RC(w, claim(w, &r), BELAY_MISUSE);
    RC(w, claim(w, NULL), BELAY_MISUSE);
    r = usual();
    RC(w, belay_queue_claim(NULL, &r, w->arena, &w->claimed, &w->err), BELAY_MISUSE);
    RC(w, belay_queue_claim(w->use, &r, NULL, &w->claimed, &w->err), BELAY_MISUSE);
    RC(w, belay_queue_claim(w->use, &r, w->arena, NULL, &w->err), BELAY_MISUSE);
    STR(w, pending(w, "s"), "1");
}

static const struct noun_case cases[] = {
    { "claim requests: ids, boundary, lease and limits", requests_are_checked, 0 },
    { "renewals: leases out of range and claims with holes", renewals_are_checked, 0 },
    { "list, cancel and drop: what they refuse", looking_is_checked, 0 },
    { "claim requests: sizes and NULL", requests_have_sizes, 0 },
};

const struct topic topic_bad_claims = { cases, COUNT_OF(cases) };
