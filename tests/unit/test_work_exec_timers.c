/* What time does to executions, and who runs the timers, on every driver. */
#include <pthread.h>

#include "test_work_exec_time.h"

static const struct belay_retry_policy two_retries = {
    .size = sizeof(two_retries),
    .backoff = BELAY_BACKOFF_FIXED,
    .max_retries = 2,
    .delay_ms = 50,
};

/* --- single times --- */

static void promoted(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .delay_ms = 5000 });
    struct belay_timer_report r = tick(&l);
    TAP_EQ(w->t, r.promoted, 0);
    TAP_EQ(w->t, r.next_due_at_ms, now(&l) + 5000);
    TAP_STR(w->t, state_of(&l, id), "delayed");
    pass(&l, 5000);
    TAP_EQ(w->t, tick(&l).promoted, 1);
    TAP_STR(w->t, state_of(&l, id), "waiting");
    TAP_EQ(w->t, column(&l, id, EXEC_DELAY_UNTIL_MS), TIME_NONE);
    TAP_EQ(w->t, tick(&l).promoted, 0);
    lab_close(&l);
}

static void lost(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id =
        submit(&l, (struct belay_submission){ .attempt_timeout_ms = DAY_MS });
    struct belay_attempts attempts = { .n = 0 };
    struct belay_work first = take(&l, "w1");
    pass(&l, LAB_LEASE_MS);
    TAP_EQ(w->t, tick(&l).expired_leases, 0); /* the grace */
    pass(&l, LAB_GRACE_MS);
    TAP_EQ(w->t, tick(&l).expired_leases, 1);
    TAP_EQ(w->t, look(&l, id).e.vector.ownership, BELAY_LEASE_EXPIRED_RECLAIMABLE);
    int64_t lost_at = now(&l);
    TAP_EQ(w->t, column(&l, id, EXEC_LOST_AT_MS), lost_at);
    TAP_EQ(w->t, column(&l, id, EXEC_TIMEOUT_AT_MS), TIME_NONE); /* nothing runs */
    TAP_EQ(w->t, told(&l, "\"type\":\"expired\""), 1);
    WORK_RC(w, exec_renew(&l.site, &first.handle, 0, NULL, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "expired");
    pass(&l, 5000); /* an attempt ends when it is lost, whenever it is taken over */
    struct belay_work second = take(&l, "w2");
    TAP_EQ(w->t, second.attempt, 1);
    TAP_EQ(w->t, second.attempt_type, BELAY_ATTEMPT_RECLAIM);
    TAP_OK(w->t, second.fence > first.fence);
    TAP_EQ(w->t, column(&l, id, EXEC_RECLAIMS), 1);
    WORK_RC(w, exec_attempts(&l.site, id, &w->arena, &attempts, &w->err), BELAY_OK);
    if (TAP_EQ(w->t, attempts.n, 2))
        TAP_EQ(w->t, attempts.items[0].ended_at_ms, lost_at);
    lab_close(&l);
}

static void renewed(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    int64_t rank = column(&l, id, EXEC_RANK);
    pass(&l, 20000);
    WORK_RC(w, exec_renew(&l.site, &work.handle, 0, NULL, &w->err), BELAY_OK);
    TAP_EQ(w->t, column(&l, id, EXEC_RANK), rank); /* a lower bound: it stays */
    pass(&l, 11000);
    struct belay_timer_report r = tick(&l);
    TAP_EQ(w->t, r.expired_leases, 0);
    TAP_EQ(w->t, r.next_due_at_ms, START_MS + 20000 + LAB_LEASE_MS + LAB_GRACE_MS);
    TAP_EQ(w->t, column(&l, id, EXEC_RANK), r.next_due_at_ms);
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    lab_close(&l);
}

static void timed_out(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .attempt_timeout_ms = 2000,
                                                           .retry = &two_retries });
    for (int i = 0; i < 3; i++) {
        struct belay_work work = take(&l, "w1");
        TAP_EQ(w->t, work.attempt, i);
        pass(&l, 2000);
        TAP_EQ(w->t, tick(&l).timed_out, 1);
        WORK_RC(w, complete(&l, &work), BELAY_LEASE_LOST);
        pass(&l, 50);
        (void)tick(&l);
    }
    TAP_STR(w->t, state_of(&l, id), "failed");
    TAP_EQ(w->t, told(&l, "\"type\":\"completion\""), 1);
    lab_close(&l);
}

/* Attempts that time out in one step are not all tried again at the same time. */
static void spread(struct work *w, bool by_claim)
{
    enum { N = 12 };
    const struct belay_retry_policy retry = { .size = sizeof(retry),
                                              .max_retries = 3,
                                              .backoff = BELAY_BACKOFF_EXPONENTIAL,
                                              .delay_ms = 60000,
                                              .max_delay_ms = 60000 };
    const struct belay_submission s = { .attempt_timeout_ms = 1000, .retry = &retry };
    int64_t until[N];
    const char *id[N];
    size_t same = 0;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    for (size_t i = 0; i < N; i++) {
        id[i] = submit(&l, s);
        (void)take(&l, "w1");
    }
    pass(&l, 1000);
    if (by_claim)
        TAP_STR(w->t, take(&l, "w2").execution_id, "");
    else
        TAP_EQ(w->t, tick(&l).timed_out, N);
    for (size_t i = 0; i < N; i++) {
        until[i] = column(&l, id[i], EXEC_DELAY_UNTIL_MS);
        TAP_OK(w->t, until[i] >= now(&l) + 30000 && until[i] <= now(&l) + 60000);
        for (size_t k = 0; k < i; k++)
            same += until[k] == until[i];
    }
    TAP_OK(w->t, same <= 1);
    lab_close(&l);
}

static void spread_by_timers(struct work *w)
{
    spread(w, false);
}

static void spread_by_claims(struct work *w)
{
    spread(w, true);
}

static void deadlines(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    /* Waiting, delayed, held and granted ones alike. */
    const char *held = submit(&l, (struct belay_submission){ .deadline_ms = 3000 });
    struct belay_work work = take(&l, "w1");
    const char *granted = submit(&l, (struct belay_submission){ .deadline_ms = 3000 });
    const char *waiting = submit(&l, (struct belay_submission){ .deadline_ms = 3000 });
    const char *delayed =
        submit(&l, (struct belay_submission){ .deadline_ms = 3000, .delay_ms = 3000 });
    struct belay_grant grant;
    WORK_RC(w,
            exec_grant_one(&l.site, granted, "w2", 60000, &w->arena, &grant, &w->err),
            BELAY_OK);
    pass(&l, 3000);
    TAP_EQ(w->t, tick(&l).expired, 4);
    TAP_STR(w->t, state_of(&l, held), "expired");
    TAP_STR(w->t, state_of(&l, granted), "expired");
    TAP_STR(w->t, state_of(&l, waiting), "expired");
    TAP_STR(w->t, state_of(&l, delayed), "expired");
    WORK_RC(w, complete(&l, &work), BELAY_LEASE_LOST);
    TAP_EQ(w->t, tick(&l).expired, 0);
    lab_close(&l);
}

static void capped(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .max_reclaims = 1 });
    for (int i = 0; i < 2; i++) {
        TAP_EQ(w->t, take(&l, "w1").attempt, i);
        pass(&l, LAB_LEASE_MS + LAB_GRACE_MS);
        struct belay_timer_report r = tick(&l);
        TAP_EQ(w->t, r.expired_leases, i == 0);
        TAP_EQ(w->t, r.capped, i == 1);
    }
    TAP_STR(w->t, state_of(&l, id), "failed");
    TAP_EQ(w->t, told(&l, "\"type\":\"completion\""), 1);
    TAP_EQ(w->t, told(&l, "max_reclaims_exceeded"), 1);
    lab_close(&l);
}

/* --- retention --- */

static void purged(struct work *w)
{
    const struct belay_tag tags[] = { { "team", "a" } };
    const struct belay_retry_policy many = { .size = sizeof(many),
                                             .backoff = BELAY_BACKOFF_FIXED,
                                             .max_retries = 80,
                                             .delay_ms = 1 };
    struct lab l;
    int steps = 0;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .retention_ms = 5000,
                                                           .tags = tags,
                                                           .n_tags = 1,
                                                           .key = "k",
                                                           .key_window_ms = 1000000,
                                                           .retry = &many });
    for (int i = 0; i < 81; i++) {
        struct belay_work work = take(&l, "w1");
        struct belay_frame frame = { .size = sizeof(frame), .bytes = "x", .len = 1 };
        struct belay_frame_appended appended;
        WORK_RC(w, exec_progress(&l.site, &work.handle, 1, "m", &w->err), BELAY_OK);
        if (i % 20 == 0)
            WORK_RC(w,
                    exec_append_frames(&l.site, &work.handle, &frame, 1, &appended,
                                       &w->err),
                    BELAY_OK);
        WORK_RC(w, fail(&l, &work), BELAY_OK);
        pass(&l, 1);
    }
    TAP_STR(w->t, state_of(&l, id), "failed");
    TAP_EQ(w->t, column(&l, id, EXEC_ATTEMPTS), 81);
    TAP_EQ(w->t, tick(&l).purged, 0);
    pass(&l, 5000);
    /* More attempts than one step removes: it is there until the last of them. */
    for (; steps < 5 && tick(&l).purged == 0; steps++) {
        struct check_counts counts;
        TAP_OK(w->t, l.report.more);
        TAP_STR(w->t, state_of(&l, id), "failed");
        WORK_RC(w, check_store(w->store, lab_note, w, &counts, &w->err), BELAY_OK);
    }
    TAP_EQ(w->t, steps, 1);
    TAP_STR(w->t, state_of(&l, id), "");
    CLEANUP(buf_release) struct buf dump = work_dump(w, "default");
    buf_append_char(&dump, '\0');
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "frame_head"));
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "tag/"));
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "execution_progress"));
    lab_close(&l);
}

static void purged_at_once(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .retention_ms = -1 });
    TAP_EQ(w->t, tick(&l).purged, 0);
    struct belay_work work = take(&l, "w1");
    TAP_EQ(w->t, tick(&l).purged, 0);
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    TAP_STR(w->t, state_of(&l, id), "completed");
    TAP_EQ(w->t, tick(&l).purged, 1);
    TAP_STR(w->t, state_of(&l, id), "");
    lab_close(&l);
}

/* --- retries --- */

static void retried_at_once(struct work *w)
{
    const struct belay_retry_policy soon = { .size = sizeof(soon),
                                             .backoff = BELAY_BACKOFF_FIXED,
                                             .max_retries = 2,
                                             .delay_ms = -1 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .retry = &soon });
    for (int i = 0; i < 3; i++) {
        struct belay_work work = take(&l, "w1");
        TAP_STR(w->t, work.execution_id, id);
        WORK_RC(w, fail(&l, &work), BELAY_OK);
    }
    TAP_STR(w->t, state_of(&l, id), "failed");
    lab_close(&l);
}

static void keys_end(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *first =
        submit(&l, (struct belay_submission){ .key = "k", .key_window_ms = 1000 });
    TAP_EQ(w->t, tick(&l).keys, 0);
    pass(&l, 1000);
    TAP_EQ(w->t, tick(&l).keys, 1);
    TAP_EQ(w->t, tick(&l).keys, 0);
    const char *second =
        submit(&l, (struct belay_submission){ .key = "k", .key_window_ms = 1000 });
    TAP_OK(w->t, strcmp(first, second) != 0);
    lab_close(&l);
}

static void feed_trimmed(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    (void)submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    TAP_EQ(w->t, told(&l, "\"execution\""), 2);
    pass(&l, BELAY_RETENTION_MS - 1000);
    const char *young = submit(&l, (struct belay_submission){ .priority = 0 });
    WORK_RC(w, exec_cancel(&l.site, young, NULL, NULL, &w->err), BELAY_OK);
    pass(&l, 1000);
    TAP_EQ(w->t, tick(&l).purged, 1);
    TAP_EQ(w->t, told(&l, "\"execution\""), 1);
    TAP_EQ(w->t, told(&l, young), 1);
    lab_close(&l);
}

/* --- grants --- */

static void ungranted(struct work *w)
{
    struct belay_grant grant;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    WORK_RC(w, exec_grant_one(&l.site, id, "w1", 1000, &w->arena, &grant, &w->err),
            BELAY_OK);
    TAP_STR(w->t, take(&l, "w2").execution_id, ""); /* it is set aside */
    pass(&l, 1000);
    (void)tick(&l);
    TAP_EQ(w->t, column(&l, id, EXEC_GRANT_UNTIL_MS), TIME_NONE);
    TAP_STR(w->t, take(&l, "w2").execution_id, id);
    lab_close(&l);
}

/* --- many, and in the way --- */

static void many(struct work *w)
{
    struct lab l;
    int64_t promoted = 0;
    int steps = 0, n = work_is_slow(w) ? 120 : 1000;

    if (!lab_open(&l, w))
        return;
    for (int i = 0; i < n; i++)
        (void)submit(&l, (struct belay_submission){ .delay_ms = 1000 });
    pass(&l, 1000);
    do {
        promoted += tick(&l).promoted;
        TAP_OK(w->t, l.report.promoted <= 400); /* bounded */
    } while (l.report.more && ++steps < 100);
    TAP_EQ(w->t, promoted, n);
    TAP_EQ(w->t, l.report.next_due_at_ms, TIME_NONE);
    lab_close(&l);
}

static belay_rc hurt_body(struct txn *t, void *arg)
{
    struct value key = value_str((const char *)arg);
    const struct change change = { EXEC_ELIGIBILITY, value_str("hurt") };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution, &key, &row);

    return rc ? rc : txn_put(t, &row_execution, &key, &change, 1);
}

static void corrupt(struct work *w)
{
    struct lab l;
    const char *id[9];

    if (!lab_open(&l, w))
        return;
    for (size_t i = 0; i < COUNT_OF(id); i++)
        id[i] = submit(&l, (struct belay_submission){ .delay_ms = 1000 + (int64_t)i });
    for (size_t i = 0; i < COUNT_OF(id); i += 4)
        WORK_RC(w,
                txn_run(w->space, hurt_body, (void *)(uintptr_t)id[i], NULL, &w->arena,
                        &w->err),
                BELAY_OK);
    pass(&l, 2000);
    TAP_EQ(w->t, tick(&l).promoted, 6);
    TAP_OK(w->t, !l.report.more);
    TAP_EQ(w->t, l.report.next_due_at_ms, TIME_NONE);
    lane_book_close(l.site.lanes); /* the store is not sound, on purpose */
}

/* --- whose it is --- */

static void filtered(struct work *w)
{
    const struct belay_tag mine[] = { { "team", "a" } }, other[] = { { "team", "b" } };
    struct belay_scanner_filter f = { .size = sizeof(f),
                                      .tag_key = "team",
                                      .tag_value = "a" };
    struct lab l;
    int n = work_is_slow(w) ? 60 : 500;

    if (!lab_open(&l, w))
        return;
    for (int i = 0; i < n; i++) /* in front, and not for this timer */
        (void)submit(&l, (struct belay_submission){ .delay_ms = 1000,
                                                    .tags = i % 2 ? other : NULL,
                                                    .n_tags = i % 2 ? 1 : 0 });
    const char *id = submit(
        &l, (struct belay_submission){ .delay_ms = 1001, .tags = mine, .n_tags = 1 });
    pass(&l, 2000);
    WORK_RC(w, exec_timers_step(&l.site, &f, &l.report, &w->err), BELAY_OK);
    TAP_EQ(w->t, l.report.promoted, 1);
    TAP_OK(w->t, !l.report.more);
    TAP_STR(w->t, state_of(&l, id), "waiting");
    f = (struct belay_scanner_filter){ .size = sizeof(f), .ns = "elsewhere" };
    WORK_RC(w, exec_timers_step(&l.site, &f, &l.report, &w->err), BELAY_OK);
    TAP_EQ(w->t, l.report.promoted, 0);
    f.ns = "default";
    do {
        WORK_RC(w, exec_timers_step(&l.site, &f, &l.report, &w->err), BELAY_OK);
        n -= (int)l.report.promoted;
    } while (l.report.more);
    TAP_EQ(w->t, n, 0);
    lab_close(&l);
}

static belay_rc lease_body(struct txn *t, void *arg)
{
    struct value v[TIMER_COLUMNS] = { { .kind = VALUE_NULL } };

    v[TIMER_LEASE + LEASE_OWNER] = value_str("other");
    v[TIMER_LEASE + LEASE_TOKEN] = value_str("t");
    v[TIMER_LEASE + LEASE_ID] = value_str("i");
    v[TIMER_LEASE + LEASE_FENCE] = value_i64(7);
    v[TIMER_LEASE + LEASE_EXPIRES_AT_MS] = value_i64(*(int64_t *)arg);
    return txn_insert(t, &row_timer, v);
}

static void busy(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .delay_ms = 1000 });
    int64_t until = now(&l) + 8000;
    WORK_RC(w, txn_run(w->space, lease_body, &until, NULL, &w->arena, &w->err),
            BELAY_OK);
    TAP_OK(w->t, !tick(&l).busy); /* nothing is due: nobody asks */
    pass(&l, 1000);
    TAP_OK(w->t, tick(&l).busy);
    TAP_EQ(w->t, l.report.next_due_at_ms, until);
    TAP_STR(w->t, state_of(&l, id), "delayed");
    pass(&l, 7000); /* it was killed, say: its time takes it away */
    TAP_EQ(w->t, tick(&l).promoted, 1);
    TAP_OK(w->t, !l.report.busy);
    lab_close(&l);
}

/* --- threads --- */

struct runner {
    struct lab l;
    int64_t promoted;
    belay_rc rc;
};

static void *run_steps(void *arg)
{
    struct runner *r = arg;
    struct belay_error err;

    for (int i = 0; i < 1000 && !r->rc; i++) {
        r->rc = exec_timers_step(&r->l.site, NULL, &r->l.report, &err);
        r->promoted += r->l.report.promoted;
        if (!r->rc && !r->l.report.more && !r->l.report.busy)
            break;
    }
    return NULL;
}

static void beside(struct work *w)
{
    struct runner r[4];
    pthread_t threads[COUNT_OF(r)];
    struct lab l;
    int64_t sum = 0;
    int n = work_is_slow(w) ? 60 : 300;

    if (!lab_open(&l, w))
        return;
    for (int i = 0; i < n; i++)
        (void)submit(&l, (struct belay_submission){ .delay_ms = 1000 });
    pass(&l, 1000);
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        r[i] = (struct runner){ .l = l };
        (void)pthread_create(&threads[i], NULL, run_steps, &r[i]);
    }
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        (void)pthread_join(threads[i], NULL);
        TAP_EQ(w->t, r[i].rc, BELAY_OK);
        sum += r[i].promoted;
    }
    TAP_EQ(w->t, sum, n); /* each of them once */
    lab_close(&l);
}

/* --- running --- */

struct running {
    struct lab *l;
    struct belay_cancel *cancel;
    belay_rc rc;
};

static void *run_timers(void *arg)
{
    struct running *r = arg;
    struct belay_error err;

    r->rc = exec_timers_run(&r->l->site, NULL, r->cancel, &err);
    return NULL;
}

static void running(struct work *w)
{
    struct running r = { .rc = BELAY_OK };
    struct lab l;
    pthread_t thread;

    if (!lab_open(&l, w))
        return;
    r.l = &l;
    WORK_RC(w, belay_cancel_new(&r.cancel, &w->err), BELAY_OK);
    const char *id = submit(&l, (struct belay_submission){ .delay_ms = 1000 });
    pass(&l, 1000);
    (void)pthread_create(&thread, NULL, run_timers, &r);
    for (int i = 0; i < 5000 && strcmp(state_of(&l, id), "waiting") != 0; i++)
        (void)usleep(1000);
    TAP_STR(w->t, state_of(&l, id), "waiting");
    belay_cancel_trigger(r.cancel);
    (void)pthread_join(thread, NULL);
    TAP_EQ(w->t, r.rc, BELAY_CANCELLED);
    belay_cancel_free(r.cancel);
    lab_close(&l);
}

static void test_promoted(struct tap *t)
{
    work_everywhere(t, promoted);
}

static void test_lost(struct tap *t)
{
    work_everywhere(t, lost);
}

static void test_renewed(struct tap *t)
{
    work_everywhere(t, renewed);
}

static void test_timed_out(struct tap *t)
{
    work_everywhere(t, timed_out);
}

static void test_spread(struct tap *t)
{
    work_everywhere(t, spread_by_timers);
    work_everywhere(t, spread_by_claims);
}

static void test_deadlines(struct tap *t)
{
    work_everywhere(t, deadlines);
}

static void test_capped(struct tap *t)
{
    work_everywhere(t, capped);
}

static void test_purged(struct tap *t)
{
    work_everywhere(t, purged);
}

static void test_purged_at_once(struct tap *t)
{
    work_everywhere(t, purged_at_once);
}

static void test_retried_at_once(struct tap *t)
{
    work_everywhere(t, retried_at_once);
}

static void test_keys_end(struct tap *t)
{
    work_everywhere(t, keys_end);
}

static void test_feed_trimmed(struct tap *t)
{
    work_everywhere(t, feed_trimmed);
}

static void test_ungranted(struct tap *t)
{
    work_everywhere(t, ungranted);
}

static void test_many(struct tap *t)
{
    work_everywhere(t, many);
}

static void test_corrupt(struct tap *t)
{
    work_everywhere(t, corrupt);
}

static void test_filtered(struct tap *t)
{
    work_everywhere(t, filtered);
}

static void test_busy(struct tap *t)
{
    work_everywhere(t, busy);
}

static void test_beside(struct tap *t)
{
    work_everywhere(t, beside);
}

static void test_running(struct tap *t)
{
    work_everywhere(t, running);
}

static const struct tap_case cases[] = {
    { "a delay that is over is promoted, once", test_promoted },
    { "a lease past its end and the grace is lost, and reclaimed", test_lost },
    { "renewing leaves the rank; the timer moves it when it comes by", test_renewed },
    { "an attempt that takes too long fails with timeout", test_timed_out },
    { "attempts that time out together are not tried again together", test_spread },
    { "a deadline ends whatever has not ended", test_deadlines },
    { "lost too often is terminal, with one completion", test_capped },
    { "after its retention nothing of it is left, in bounded steps", test_purged },
    { "with a retention of none it goes as soon as it has ended", test_purged_at_once },
    { "with a delay of none a failure is tried again at once", test_retried_at_once },
    { "a key can be used anew when its window is over", test_keys_end },
    { "events older than the retention go", test_feed_trimmed },
    { "a grant that was not used is taken back", test_ungranted },
    { "many due ones are handled in bounded steps", test_many },
    { "corrupt ones do not stand in the way of the others", test_corrupt },
    { "a filter leaves what does not match, however much it is", test_filtered },
    { "a live lease of another one is busy, a dead one is taken over", test_busy },
    { "threads: each due item is handled once", test_beside },
    { "running goes on until it is cancelled", test_running },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
