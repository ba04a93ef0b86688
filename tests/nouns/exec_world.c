/* Submitting, claiming and ending work, in short. */
#include <time.h>

#include "exec.h"

static const char *const usual_lane[] = { "l" };

bool quick(struct world *w)
{
    size_t len = strlen(w->url);
    const char *mark = strchr(w->url, '?') ? "&" : "?";

    world_shut(w);
    (void)snprintf(w->url + len, sizeof(w->url) - len, "%sgrace=%lldms", mark,
                   (long long)GRACE_MS);
    w->a = w->b = w->use = world_handle(w, NULL);
    if (w->a && w->store->shared)
        w->b = world_handle(w, NULL);
    return w->a && w->b;
}

/* --- submitting --- */

belay_rc submit_try(struct world *w, struct belay_submission s,
                    struct belay_submitted *out)
{
    s.size = sizeof(s);
    s.lane = s.lane ? s.lane : usual_lane[0];
    return belay_execution_submit(w->use, &s, 1, w->arena, out, &w->err);
}

const char *submit(struct world *w, struct belay_submission s)
{
    struct belay_submitted out = { 0 };

    return RC(w, submit_try(w, s, &out), BELAY_OK) ? out.execution_id : NULL;
}

bool submit_many(struct world *w, const char *lane, size_t n, const char **ids)
{
    struct belay_submission items[BELAY_SUBMIT_MAX];
    struct belay_submitted out[BELAY_SUBMIT_MAX];

    if (!OK(w, n >= 1 && n <= BELAY_SUBMIT_MAX))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *payload = text(w, "%zu", i);
        items[i] = (struct belay_submission){ .size = sizeof(items[i]),
                                              .lane = lane,
                                              .payload = payload,
                                              .payload_len = strlen(payload) };
    }
    if (!RC(w, belay_execution_submit(w->use, items, n, w->arena, out, &w->err),
            BELAY_OK))
        return false;
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = out[i].execution_id;
    return true;
}

struct belay_retry_policy retry_fixed(int64_t max_retries, int64_t delay_ms)
{
    return (struct belay_retry_policy){ .size = sizeof(struct belay_retry_policy),
                                        .backoff = BELAY_BACKOFF_FIXED,
                                        .max_retries = max_retries,
                                        .delay_ms = delay_ms };
}

/* --- claiming --- */

belay_rc claim_try(struct world *w, struct belay_claim_policy p,
                   struct belay_works *out)
{
    p.size = sizeof(p);
    if (!p.lanes) {
        p.lanes = usual_lane;
        p.n_lanes = 1;
    }
    p.worker = p.worker ? p.worker : "w";
    p.lease_ms = p.lease_ms ? p.lease_ms : MINUTE;
    *out = (struct belay_works){ 0 };
    return belay_execution_claim(w->use, &p, w->arena, out, &w->err);
}

struct belay_works claim(struct world *w, struct belay_claim_policy p)
{
    struct belay_works out = { 0 };

    (void)RC(w, claim_try(w, p, &out), BELAY_OK);
    return out;
}

const struct belay_work *work_on(struct world *w, const char *lane)
{
    struct belay_works got =
        claim(w, (struct belay_claim_policy){ .lanes = &lane, .n_lanes = 1 });

    return got.n > 0 ? &got.work[0] : NULL;
}

const struct belay_work *work_late(struct world *w, const char *lane)
{
    struct belay_works got = claim(
        w, (struct belay_claim_policy){ .lanes = &lane, .n_lanes = 1, .lease_ms = -1 });

    return got.n > 0 ? &got.work[0] : NULL;
}

/* --- what a holder does --- */

static belay_rc one(struct world *w, belay_rc rc, const struct belay_ended *got,
                    struct belay_ended *out)
{
    if (rc == BELAY_OK && out)
        *out = *got;
    if (rc == BELAY_OK && got->code != BELAY_OK)
        w->err = got->err;
    return rc ? rc : got->code;
}

belay_rc complete(struct world *w, const struct belay_handle *h, const char *result,
                  struct belay_ended *out)
{
    struct belay_completion item = { .size = sizeof(item),
                                     .handle = h,
                                     .result = result,
                                     .result_len = result ? strlen(result) : 0 };
    struct belay_ended got = { 0 };
    belay_rc rc =
        belay_execution_complete(w->use, &item, 1, NULL, w->arena, &got, NULL, &w->err);

    return one(w, rc, &got, out);
}

belay_rc fail(struct world *w, const struct belay_handle *h, int failure_class,
              struct belay_ended *out)
{
    struct belay_failure item = { .size = sizeof(item),
                                  .failure_class = failure_class,
                                  .handle = h,
                                  .message = "it did not work" };
    struct belay_ended got = { 0 };
    belay_rc rc = belay_execution_fail(w->use, &item, 1, w->arena, &got, &w->err);

    return one(w, rc, &got, out);
}

belay_rc frame(struct world *w, const struct belay_handle *h, const char *bytes)
{
    struct belay_frame f = { .size = sizeof(f), .bytes = bytes, .len = strlen(bytes) };
    struct belay_frame_appended out = { 0 };

    return belay_execution_append_frames(w->use, h, &f, 1, &out, &w->err);
}

/* --- time --- */

static void add_report(struct belay_timer_report *sum,
                       const struct belay_timer_report *r)
{
    sum->promoted += r->promoted;
    sum->expired_leases += r->expired_leases;
    sum->timed_out += r->timed_out;
    sum->expired += r->expired;
    sum->purged += r->purged;
    sum->keys += r->keys;
    sum->capped += r->capped;
    sum->next_due_at_ms = r->next_due_at_ms;
    sum->busy = r->busy;
    sum->more = r->more;
}

struct belay_timer_report timers(struct world *w)
{
    struct belay_timer_report sum = { 0 };

    for (int i = 0; i < 1000; i++) {
        struct belay_timer_report r = { 0 };
        if (!RC(w, belay_timers_step(w->use, NULL, &r, &w->err), BELAY_OK))
            break;
        add_report(&sum, &r);
        if (!r.more && !r.busy)
            return sum;
    }
    OK(w, !sum.more);
    return sum;
}

int64_t machine_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
