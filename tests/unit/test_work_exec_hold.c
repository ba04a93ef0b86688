/* What a holder does and goes on, and grants, on every driver. */
#include "test_work_exec_time.h"
#include "work/epoch.h"

/* --- renewing --- */

static void renewed(struct work *w)
{
    struct belay_lease_renewal out = { 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    pass(&l, 10000);
    WORK_RC(w, exec_renew(&l.site, &work.handle, 0, &out, &w->err), BELAY_OK);
    TAP_EQ(w->t, out.expires_at_ms, now(&l) + LAB_LEASE_MS);
    TAP_EQ(w->t, out.fence, work.fence);
    WORK_RC(w, exec_renew(&l.site, &work.handle, 1, &out, &w->err), BELAY_OK);
    TAP_EQ(w->t, out.expires_at_ms, now(&l) + LAB_LEASE_MS); /* L6: never shorter */
    WORK_RC(w, exec_renew(&l.site, &work.handle, -1, &out, &w->err), BELAY_INVALID);
    pass(&l, 10 * LAB_LEASE_MS); /* past due, and nobody took it: L5 */
    WORK_RC(w, exec_renew(&l.site, &work.handle, 0, &out, &w->err), BELAY_OK);
    TAP_EQ(w->t, out.expires_at_ms, now(&l) + LAB_LEASE_MS);
    TAP_EQ(w->t, column(&l, id, EXEC_LEASE + LEASE_EXPIRES_AT_MS), out.expires_at_ms);
    lab_close(&l);
}

/* --- the epoch --- */

/* A lease of before is nobody's; its work is free when it ends, or is revoked. */
static void epoch_rose(struct work *w)
{
    struct epoch_info info;
    bool done = false;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *waits = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    const char *freed = submit(&l, (struct belay_submission){ .priority = 0 });
    (void)take(&l, "w1");
    WORK_RC(w,
            epoch_raise(w->space, bytes_of(NULL, 0), "me", &w->arena, &info, &w->err),
            BELAY_OK);
    WORK_RC(w, exec_renew(&l.site, &work.handle, 0, NULL, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "epoch");
    TAP_STR(w->t, take(&l, "w2").execution_id, "");
    WORK_RC(w, exec_revoke(&l.site, freed, NULL, NULL, &done, &w->err), BELAY_OK);
    TAP_STR(w->t, take(&l, "w2").execution_id, freed);
    pass(&l, LAB_LEASE_MS + LAB_GRACE_MS);
    TAP_STR(w->t, take(&l, "w2").execution_id, waits);
    lab_close(&l);
}

/* --- results --- */

/* What is short as it is given and long as it is kept: refused by its length, like any other,
 * before anything is done. */
static void result_grows(struct work *w)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    buf_append_char(&text, '[');
    while (text.len < BELAY_PAYLOAD_MAX - 8)
        buf_append_str(&text, "1e15,");
    buf_append_str(&text, "1]");
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    const struct belay_completion c = { .size = sizeof(c),
                                        .handle = &work.handle,
                                        .result = text.ptr,
                                        .result_len = text.len,
                                        .result_is_json = true };
    WORK_RC(w, exec_complete(&l.site, &c, 1, NULL, &w->arena, &l.ended, NULL, &w->err),
            BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "too_large");
    TAP_EQ(w->t, w->err.expected, (int64_t)BELAY_PAYLOAD_MAX);
    TAP_OK(w->t, w->err.actual > (int64_t)BELAY_PAYLOAD_MAX);
    TAP_STR(w->t, state_of(&l, id), "active");
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    lab_close(&l);
}

/* --- progress --- */

struct progress_look {
    const char *id;
    int64_t percent;
    char message[64];
};

static belay_rc progress_body(struct txn *t, void *arg)
{
    struct progress_look *p = arg;
    struct value key = value_str(p->id);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution_progress, &key, &row);

    if (rc || !row)
        return rc;
    struct bytes message = row_bytes(row, PROGRESS_MESSAGE);
    p->percent = row_i64(row, PROGRESS_PERCENT, -1);
    (void)snprintf(p->message, sizeof(p->message), "%.*s", (int)message.len,
                   message.len > 0 ? (const char *)message.ptr : "");
    return BELAY_OK;
}

static struct progress_look progress_of(struct lab *l, const char *id)
{
    struct progress_look p = { .id = id, .percent = -2 };

    WORK_RC(l->w,
            txn_run(l->w->space, progress_body, &p, NULL, &l->w->arena, &l->w->err),
            BELAY_OK);
    return p;
}

static void progressed(struct work *w)
{
    char text[1026];
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    WORK_RC(w, exec_progress(&l.site, &work.handle, -1, NULL, &w->err), BELAY_OK);
    TAP_EQ(w->t, progress_of(&l, id).percent, -2); /* nothing was said */
    WORK_RC(w, exec_progress(&l.site, &work.handle, 40, "on", &w->err), BELAY_OK);
    WORK_RC(w, exec_progress(&l.site, &work.handle, -1, "its way", &w->err), BELAY_OK);
    TAP_EQ(w->t, progress_of(&l, id).percent, 40);
    TAP_STR(w->t, progress_of(&l, id).message, "its way");
    WORK_RC(w, exec_progress(&l.site, &work.handle, 100, NULL, &w->err), BELAY_OK);
    TAP_EQ(w->t, progress_of(&l, id).percent, 100);
    TAP_STR(w->t, progress_of(&l, id).message, "its way");
    WORK_RC(w, exec_progress(&l.site, &work.handle, 101, NULL, &w->err), BELAY_INVALID);
    WORK_RC(w, exec_progress(&l.site, &work.handle, -2, NULL, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "percent");
    WORK_RC(w, exec_progress(&l.site, &work.handle, 1, "\xff", &w->err), BELAY_INVALID);
    memset(text, 'x', sizeof(text));
    text[1025] = '\0';
    WORK_RC(w, exec_progress(&l.site, &work.handle, 1, text, &w->err), BELAY_INVALID);
    text[1024] = '\0';
    WORK_RC(w, exec_progress(&l.site, &work.handle, 1, text, &w->err), BELAY_OK);
    /* The next holder begins with nothing. */
    WORK_RC(w, exec_release(&l.site, &work.handle, &w->err), BELAY_OK);
    work = take(&l, "w2");
    WORK_RC(w, exec_progress(&l.site, &work.handle, 2, NULL, &w->err), BELAY_OK);
    TAP_STR(w->t, progress_of(&l, id).message, "");
    lab_close(&l);
}

/* --- going on later --- */

static void delayed(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id =
        submit(&l, (struct belay_submission){ .attempt_timeout_ms = 60000 });
    struct belay_work work = take(&l, "w1");
    int64_t until = now(&l) + 5000;
    WORK_RC(w, exec_delay(&l.site, &work.handle, until, &w->err), BELAY_OK);
    TAP_STR(w->t, state_of(&l, id), "delayed");
    TAP_EQ(w->t, column(&l, id, EXEC_TIMEOUT_AT_MS), TIME_NONE);
    TAP_EQ(w->t, told(&l, "\"reason\":\"delay\""), 1);
    /* Repeating what was done is no error; something else is. */
    WORK_RC(w, exec_delay(&l.site, &work.handle, until, &w->err), BELAY_OK);
    TAP_EQ(w->t, told(&l, "\"reason\":\"delay\""), 1);
    WORK_RC(w, exec_delay(&l.site, &work.handle, until + 1, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "released");
    WORK_RC(w, exec_release(&l.site, &work.handle, &w->err), BELAY_LEASE_LOST);
    pass(&l, 5000);
    (void)tick(&l);
    WORK_RC(w, exec_delay(&l.site, &work.handle, until, &w->err), BELAY_OK);
    struct belay_work again = take(&l, "w2");
    TAP_EQ(w->t, again.attempt, 0);
    TAP_EQ(w->t, again.handle.kind, BELAY_HANDLE_RESUMED);
    TAP_OK(w->t, again.fence > work.fence);
    TAP_EQ(w->t, column(&l, id, EXEC_ATTEMPTS), 1);
    WORK_RC(w, exec_delay(&l.site, &work.handle, until, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "superseded");
    lab_close(&l);
}

static void released(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    WORK_RC(w, exec_release(&l.site, &work.handle, &w->err), BELAY_OK);
    TAP_STR(w->t, state_of(&l, id), "waiting");
    WORK_RC(w, exec_release(&l.site, &work.handle, &w->err), BELAY_OK);
    TAP_EQ(w->t, told(&l, "\"reason\":\"release\""), 1);
    struct belay_work again = take(&l, "w2");
    TAP_EQ(w->t, again.attempt, 0);
    TAP_EQ(w->t, again.handle.kind, BELAY_HANDLE_RESUMED);
    TAP_EQ(w->t, column(&l, id, EXEC_RETRIES), -1); /* a 0 is not stored */
    WORK_RC(w, exec_release(&l.site, &work.handle, &w->err), BELAY_LEASE_LOST);
    WORK_RC(w, complete(&l, &again), BELAY_OK);
    WORK_RC(w, exec_release(&l.site, &again.handle, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "terminal");
    lab_close(&l);
}

/* --- stale holders --- */

/* L4: whoever was replaced is refused, and nothing changes. */
static void stale(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    (void)submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work old = take(&l, "w1");
    pass(&l, LAB_LEASE_MS + LAB_GRACE_MS);
    struct belay_work new = take(&l, "w2");
    TAP_EQ(w->t, new.attempt, 1);
    CLEANUP(buf_release) struct buf before = work_dump(w, "default");
    WORK_RC(w, exec_renew(&l.site, &old.handle, 0, NULL, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "superseded");
    WORK_RC(w, exec_progress(&l.site, &old.handle, 1, "m", &w->err), BELAY_LEASE_LOST);
    WORK_RC(w, exec_delay(&l.site, &old.handle, now(&l), &w->err), BELAY_LEASE_LOST);
    WORK_RC(w, exec_release(&l.site, &old.handle, &w->err), BELAY_LEASE_LOST);
    CLEANUP(buf_release) struct buf after = work_dump(w, "default");
    TAP_OK(w->t, bytes_eq(buf_view(&before), buf_view(&after)));
    lab_close(&l);
}

/* --- grants --- */

static belay_rc grant_one(struct lab *l, const char *id, const char *worker,
                          int64_t grant_ms, struct belay_grant *out)
{
    return exec_grant_one(&l->site, id, worker, grant_ms, &l->w->arena, out,
                          &l->w->err);
}

static belay_rc redeem(struct lab *l, const char *grant, const char *worker,
                       struct belay_work *out)
{
    return exec_claim_grant(&l->site, grant, worker, 0, &l->w->arena, out, &l->w->err);
}

static void granted(struct work *w)
{
    struct belay_grant g = { 0 }, other = { 0 };
    struct belay_work work = { 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){
                                    .payload = "{}", .payload_len = 2, .priority = 3 });
    struct belay_vector before = look(&l, id).e.vector;
    WORK_RC(w, grant_one(&l, id, "w1", 1000, &g), BELAY_OK);
    struct belay_vector after = look(&l, id).e.vector;
    TAP_OK(w->t, vector_eq(&before, &after));
    TAP_OK(w->t, strncmp(g.grant_id, GRANT_PREFIX, 4) == 0);
    TAP_STR(w->t, g.partition_key, "default");
    TAP_EQ(w->t, g.kind, BELAY_HANDLE_FRESH);
    TAP_EQ(w->t, g.expires_at_ms, now(&l) + 1000);
    WORK_RC(w, grant_one(&l, id, "w2", 1000, &other), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "grant_exists");
    WORK_RC(w, redeem(&l, g.grant_id, "w2", &work), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "worker");
    WORK_RC(w, redeem(&l, "gra_none", "w1", &work), BELAY_NOT_FOUND);
    WORK_RC(w, exec_set_priority(&l.site, id, 5, &w->err), BELAY_OK);
    WORK_RC(w, redeem(&l, g.grant_id, "w1", &work), BELAY_OK);
    TAP_STR(w->t, work.execution_id, id);
    TAP_EQ(w->t, work.payload_len, 2);
    TAP_EQ(w->t, told(&l, "\"type\":\"acquired\""), 1);
    WORK_RC(w, redeem(&l, g.grant_id, "w1", &work), BELAY_NOT_FOUND);
    WORK_RC(w, grant_one(&l, id, "w1", 1000, &g), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "not_eligible");
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    lab_close(&l);
}

static void grant_ends(struct work *w)
{
    struct belay_grant g = { 0 };
    struct belay_work work = { 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .delay_ms = 500 });
    WORK_RC(w, grant_one(&l, id, "w1", 1000, &g), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "not_eligible");
    pass(&l, 500); /* its delay is over, though no timer has come by */
    WORK_RC(w, grant_one(&l, id, "w1", 1000, &g), BELAY_OK);
    pass(&l, 1000);
    WORK_RC(w, redeem(&l, g.grant_id, "w1", &work), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "expired");
    WORK_RC(w, grant_one(&l, id, "w2", 1000, &g), BELAY_OK); /* in its place */
    WORK_RC(w, redeem(&l, g.grant_id, "w2", &work), BELAY_OK);
    pass(&l, LAB_LEASE_MS + LAB_GRACE_MS);
    WORK_RC(w, grant_one(&l, id, "w3", 1000, &g), BELAY_OK); /* lost by its holder */
    TAP_EQ(w->t, g.kind, BELAY_HANDLE_RECLAIMED);
    WORK_RC(w, redeem(&l, g.grant_id, "w3", &work), BELAY_OK);
    TAP_EQ(w->t, work.handle.kind, BELAY_HANDLE_RECLAIMED);
    TAP_EQ(w->t, told(&l, "\"type\":\"reclaimed\""), 1);
    WORK_RC(w, exec_release(&l.site, &work.handle, &w->err), BELAY_OK);
    WORK_RC(w, grant_one(&l, id, "w3", 1000, &g), BELAY_OK);
    TAP_EQ(w->t, g.kind, BELAY_HANDLE_RESUMED);
    WORK_RC(w, exec_cancel(&l.site, id, NULL, NULL, &w->err), BELAY_OK);
    WORK_RC(w, redeem(&l, g.grant_id, "w3", &work), BELAY_NOT_FOUND);
    lab_close(&l);
}

static void granted_by_policy(struct work *w)
{
    static const char *const gpu[] = { "gpu" };
    struct belay_claim_policy p = policy_of("w1");
    struct belay_grant g = { 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &g, &w->err), BELAY_OK);
    TAP_OK(w->t, !g.grant_id);
    (void)submit(&l, (struct belay_submission){
                         .requires = gpu, .n_requires = 1, .priority = 9 });
    const char *low = submit(&l, (struct belay_submission){ .priority = 1 });
    const char *high = submit(&l, (struct belay_submission){ .priority = 2 });
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &g, &w->err), BELAY_OK);
    TAP_STR(w->t, g.execution_id, high);
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &g, &w->err), BELAY_OK);
    TAP_STR(w->t, g.execution_id, low);
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &g, &w->err), BELAY_OK);
    TAP_OK(w->t, !g.grant_id);
    WORK_RC(w, exec_grant(&l.site, &p, 0, &w->arena, &g, &w->err), BELAY_INVALID);
    WORK_RC(w, exec_grant(&l.site, &p, 60001, &w->arena, &g, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "grant");
    lab_close(&l);
}

static void test_renewed(struct tap *t)
{
    work_everywhere(t, renewed);
}

static void test_progressed(struct tap *t)
{
    work_everywhere(t, progressed);
}

static void test_delayed(struct tap *t)
{
    work_everywhere(t, delayed);
}

static void test_released(struct tap *t)
{
    work_everywhere(t, released);
}

static void test_stale(struct tap *t)
{
    work_everywhere(t, stale);
}

static void test_granted(struct tap *t)
{
    work_everywhere(t, granted);
}

static void test_grant_ends(struct tap *t)
{
    work_everywhere(t, grant_ends);
}

static void test_granted_by_policy(struct tap *t)
{
    work_everywhere(t, granted_by_policy);
}

static void test_epoch_rose(struct tap *t)
{
    work_everywhere(t, epoch_rose);
}

static void test_result_grows(struct tap *t)
{
    work_everywhere(t, result_grows);
}

static const struct tap_case cases[] = {
    { "a lease of an earlier epoch is nobody's until it ends or is revoked",
      test_epoch_rose },
    { "a result is as long as it is kept, not as it is given", test_result_grows },
    { "renewing lengthens, never shortens, also past due", test_renewed },
    { "progress keeps what is not said, within one grant", test_progressed },
    { "a delayed attempt goes on later, and repeating it is no error", test_delayed },
    { "released work is the same attempt for the next one", test_released },
    { "a holder that was replaced changes nothing", test_stale },
    { "a grant is claimed once, by its worker", test_granted },
    { "a grant ends, and another one takes its place", test_grant_ends },
    { "a grant by policy is what a claim would get", test_granted_by_policy },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
