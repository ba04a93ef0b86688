/* What operators do to executions, on every driver. */
#include "test_work_exec_time.h"

static const struct belay_retry_policy retries = { .size = sizeof(retries),
                                                   .backoff = BELAY_BACKOFF_FIXED,
                                                   .max_retries = 2,
                                                   .delay_ms = 50 };

/* --- cancelling --- */

static void cancelled(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *held = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    const char *waiting = submit(&l, (struct belay_submission){ .priority = 0 });
    const char *delayed = submit(&l, (struct belay_submission){ .delay_ms = 1000 });
    const char *all[] = { held, waiting, delayed };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        WORK_RC(w, exec_cancel(&l.site, all[i], "enough", NULL, &w->err), BELAY_OK);
        TAP_STR(w->t, state_of(&l, all[i]), "cancelled");
        WORK_RC(w, exec_cancel(&l.site, all[i], "again", NULL, &w->err), BELAY_OK);
    }
    TAP_EQ(w->t, told(&l, "\"type\":\"completion\""), 3);
    WORK_RC(w, complete(&l, &work), BELAY_LEASE_LOST);
    TAP_STR(w->t, take(&l, "w1").execution_id, "");

    const char *done = submit(&l, (struct belay_submission){ .priority = 0 });
    work = take(&l, "w1");
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    WORK_RC(w, exec_cancel(&l.site, done, NULL, NULL, &w->err), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "terminal");
    WORK_RC(w, exec_cancel(&l.site, "exe_none", NULL, NULL, &w->err), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.entity, "exe_none");
    WORK_RC(w, exec_cancel(&l.site, "", NULL, NULL, &w->err), BELAY_INVALID);
    WORK_RC(w, exec_cancel(&l.site, done, "\xff", NULL, &w->err), BELAY_INVALID);
    lab_close(&l);
}

/* What a holder says is told as what an operator says. */
static void aborted(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    struct belay_work work = take(&l, "w1");
    WORK_RC(w, exec_abort(&l.site, &work.handle, "no use", &w->err), BELAY_OK);
    TAP_STR(w->t, state_of(&l, id), "cancelled");
    TAP_EQ(w->t, told(&l, "\"reason\":\"no use\""), 1);
    struct lab_look k = look(&l, id);
    TAP_OK(w->t, bytes_eq(exec_bytes(&k.e, EXEC_DETAIL), bytes_str("no use")));
    WORK_RC(w, exec_abort(&l.site, &work.handle, "no use", &w->err), BELAY_OK);
    TAP_EQ(w->t, told(&l, "\"reason\":\"no use\""), 1);
    lab_close(&l);
}

/* --- replaying --- */

struct end_look {
    const char *id;
    bool there;
};

static belay_rc end_body(struct txn *t, void *arg)
{
    struct end_look *k = arg;
    struct value key = value_str(k->id);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_execution_end, &key, &row);

    k->there = row != NULL;
    return rc;
}

static bool has_end(struct lab *l, const char *id)
{
    struct end_look k = { .id = id };

    WORK_RC(l->w, txn_run(l->w->space, end_body, &k, NULL, &l->w->arena, &l->w->err),
            BELAY_OK);
    return k.there;
}

static void replayed(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(
        &l, (struct belay_submission){ .deadline_ms = 100000, .retry = &retries });
    WORK_RC(w, exec_replay(&l.site, id, NULL, &w->err), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "not_terminal");
    struct belay_work last = { 0 };
    for (int i = 0; i < 3; i++) {
        last = take(&l, "w1");
        WORK_RC(w, fail(&l, &last), BELAY_OK);
        pass(&l, 50);
    }
    TAP_STR(w->t, state_of(&l, id), "failed");
    TAP_OK(w->t, has_end(&l, id));
    pass(&l, 1000);
    WORK_RC(w, exec_replay(&l.site, id, "once more", &w->err), BELAY_OK);
    TAP_STR(w->t, state_of(&l, id), "waiting");
    TAP_OK(w->t, !has_end(&l, id));
    TAP_EQ(w->t, column(&l, id, EXEC_RETRIES), TIME_NONE); /* 0 is not stored */
    TAP_EQ(w->t, column(&l, id, EXEC_RECLAIMS), TIME_NONE);
    TAP_EQ(w->t, column(&l, id, EXEC_REPLAYS), 1);
    TAP_EQ(w->t, column(&l, id, EXEC_FINISHED_AT_MS), TIME_NONE);
    TAP_EQ(w->t, column(&l, id, EXEC_STARTED_AT_MS), TIME_NONE);
    TAP_EQ(w->t, column(&l, id, EXEC_DEADLINE_AT_MS), now(&l) + 100000);
    TAP_EQ(w->t, told(&l, "\"type\":\"replay_initiated\""), 1);
    struct belay_work work = take(&l, "w2");
    TAP_EQ(w->t, work.attempt, 3);
    TAP_EQ(w->t, work.attempt_type, BELAY_ATTEMPT_REPLAY);
    TAP_OK(w->t, work.fence > last.fence);
    WORK_RC(w, fail(&l, &last), BELAY_LEASE_LOST);
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    lab_close(&l);
}

/* Ended before the first attempt, and between two: nothing, or everything, of what there
 * was has its row already. */
static void replayed_between(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .retry = &retries });
    WORK_RC(w, exec_cancel(&l.site, id, NULL, NULL, &w->err), BELAY_OK);
    WORK_RC(w, exec_replay(&l.site, id, NULL, &w->err), BELAY_OK);
    struct belay_work work = take(&l, "w1");
    TAP_EQ(w->t, work.attempt, 0);
    WORK_RC(w, fail(&l, &work), BELAY_OK);
    WORK_RC(w, exec_cancel(&l.site, id, NULL, NULL, &w->err), BELAY_OK);
    WORK_RC(w, exec_replay(&l.site, id, NULL, &w->err), BELAY_OK);
    TAP_EQ(w->t, take(&l, "w1").attempt, 1);
    lab_close(&l);
}

static void replays_end(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .priority = 0 });
    for (int i = 0; i <= BELAY_MAX_REPLAYS; i++) {
        WORK_RC(w, exec_cancel(&l.site, id, NULL, NULL, &w->err), BELAY_OK);
        WORK_RC(w, exec_replay(&l.site, id, NULL, &w->err),
                i < BELAY_MAX_REPLAYS ? BELAY_OK : BELAY_WRONG_STATE);
    }
    TAP_STR(w->t, w->err.reason, "replays");
    TAP_EQ(w->t, column(&l, id, EXEC_REPLAYS), BELAY_MAX_REPLAYS);
    lab_close(&l);
}

/* --- priority --- */

static void prioritised(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *first = submit(&l, (struct belay_submission){ .priority = 1 });
    const char *second = submit(&l, (struct belay_submission){ .priority = 1 });
    WORK_RC(w, exec_set_priority(&l.site, second, 9000, &w->err), BELAY_OK);
    WORK_RC(w, exec_set_priority(&l.site, second, 9001, &w->err), BELAY_INVALID);
    WORK_RC(w, exec_set_priority(&l.site, second, -1, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "priority");
    TAP_STR(w->t, take(&l, "w1").execution_id, second);
    WORK_RC(w, exec_set_priority(&l.site, second, 5, &w->err), BELAY_OK); /* held */
    TAP_EQ(w->t, column(&l, second, EXEC_PRIORITY), 5);
    WORK_RC(w, exec_set_priority(&l.site, second, 0, &w->err), BELAY_OK);
    TAP_EQ(w->t, column(&l, second, EXEC_PRIORITY), TIME_NONE); /* 0 is not stored */
    struct belay_work work = take(&l, "w1");
    TAP_STR(w->t, work.execution_id, first);
    WORK_RC(w, complete(&l, &work), BELAY_OK);
    WORK_RC(w, exec_set_priority(&l.site, first, 5, &w->err), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "terminal");
    lab_close(&l);
}

/* --- revoking --- */

static void revoked(struct work *w)
{
    bool done = true;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id = submit(&l, (struct belay_submission){ .max_reclaims = 1 });
    WORK_RC(w, exec_revoke(&l.site, id, NULL, NULL, &done, &w->err), BELAY_OK);
    TAP_OK(w->t, !done);
    struct belay_work work = take(&l, "w1");
    WORK_RC(w, exec_revoke(&l.site, id, "other", NULL, &done, &w->err),
            BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "superseded");
    TAP_STR(w->t, w->err.entity, id);
    struct bytes lease = bytes_of(NULL, 0);
    struct lab_look k = look(&l, id);
    TAP_OK(w->t,
           arena_copy(&w->arena, exec_bytes(&k.e, EXEC_LEASE + LEASE_ID), &lease));
    WORK_RC(w,
            exec_revoke(&l.site, id, (const char *)lease.ptr, "stuck", &done, &w->err),
            BELAY_OK);
    TAP_OK(w->t, done);
    TAP_EQ(w->t, look(&l, id).e.vector.ownership, BELAY_LEASE_REVOKED);
    TAP_EQ(w->t, column(&l, id, EXEC_LOST_AT_MS), now(&l));
    TAP_EQ(w->t, told(&l, "\"type\":\"revoked\""), 1);
    WORK_RC(w, exec_renew(&l.site, &work.handle, 0, NULL, &w->err), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "revoked");
    WORK_RC(w, exec_revoke(&l.site, id, NULL, NULL, &done, &w->err), BELAY_OK);
    TAP_OK(w->t, !done);
    work = take(&l, "w2"); /* at once */
    TAP_EQ(w->t, work.attempt_type, BELAY_ATTEMPT_RECLAIM);
    /* Its last one: there is no other reclaim. */
    WORK_RC(w, exec_revoke(&l.site, id, NULL, NULL, &done, &w->err), BELAY_OK);
    TAP_OK(w->t, done);
    TAP_STR(w->t, state_of(&l, id), "failed");
    TAP_EQ(w->t, told(&l, "\"type\":\"completion\""), 1);
    lab_close(&l);
}

/* --- tags --- */

struct tag_look {
    const char *index;
    size_t n;
};

static belay_rc tag_body(struct txn *t, void *arg)
{
    struct tag_look *k = arg;
    struct bytes index = bytes_str(k->index);
    const struct scan scan = {
        .indexes = &index, .n_indexes = 1, .max_rank = RANK_MAX, .limit = 10
    };
    struct hits hits = { .n = 0 };
    belay_rc rc = txn_scan(t, &scan, &hits);

    k->n = hits.n;
    return rc;
}

static size_t tagged(struct lab *l, const char *index)
{
    struct tag_look k = { .index = index };

    WORK_RC(l->w, txn_run(l->w->space, tag_body, &k, NULL, &l->w->arena, &l->w->err),
            BELAY_OK);
    return k.n;
}

static void tags(struct work *w)
{
    const struct belay_tag first[] = { { "team", "a" }, { "kind", "x" } };
    const struct belay_tag change[] = { { "team", "b" },
                                        { "kind", NULL },
                                        { "z", "" } };
    const struct belay_tag bad_key[] = { { "Team", "a" } };
    struct belay_tag many[65];
    char names[65][8];
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *id =
        submit(&l, (struct belay_submission){ .tags = first, .n_tags = 2 });
    pass(&l, 1000); /* listed under the time of the execution all the same */
    WORK_RC(w, exec_tag(&l.site, id, change, 3, &w->err), BELAY_OK);
    TAP_EQ(w->t, tagged(&l, "tag/team=a"), 0);
    TAP_EQ(w->t, tagged(&l, "tag/team=b"), 1);
    TAP_EQ(w->t, tagged(&l, "tag/kind=x"), 0);
    TAP_EQ(w->t, tagged(&l, "tag/z="), 1);
    WORK_RC(w, exec_tag(&l.site, id, change, 3, &w->err), BELAY_OK); /* repeated */
    WORK_RC(w, exec_tag(&l.site, id, bad_key, 1, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "tag");
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "t%zu", i);
        many[i] = (struct belay_tag){ names[i], "v" };
    }
    WORK_RC(w, exec_tag(&l.site, id, many, 65, &w->err), BELAY_INVALID);
    WORK_RC(w, exec_tag(&l.site, id, many, 63, &w->err), BELAY_INVALID); /* 2 + 63 */
    WORK_RC(w, exec_tag(&l.site, id, many, 62, &w->err), BELAY_OK);
    WORK_RC(w, exec_tag(&l.site, "exe_none", change, 3, &w->err), BELAY_NOT_FOUND);
    lab_close(&l);
}

static void test_cancelled(struct tap *t)
{
    work_everywhere(t, cancelled);
}

static void test_aborted(struct tap *t)
{
    work_everywhere(t, aborted);
}

static void test_replayed(struct tap *t)
{
    work_everywhere(t, replayed);
}

static void test_replayed_between(struct tap *t)
{
    work_everywhere(t, replayed_between);
}

static void test_replays_end(struct tap *t)
{
    work_everywhere(t, replays_end);
}

static void test_prioritised(struct tap *t)
{
    work_everywhere(t, prioritised);
}

static void test_revoked(struct tap *t)
{
    work_everywhere(t, revoked);
}

static void test_tags(struct tap *t)
{
    work_everywhere(t, tags);
}

static const struct tap_case cases[] = {
    { "whatever has not ended can be cancelled, again and again", test_cancelled },
    { "a holder that aborts is heard, why, too", test_aborted },
    { "a replay begins anew: counters, deadline, failure", test_replayed },
    { "a replay of what ended between attempts adds up", test_replayed_between },
    { "there are ten replays", test_replays_end },
    { "priority decides the order, until the end", test_prioritised },
    { "a revoked lease is lost at once, and counts", test_revoked },
    { "tags are set, changed and removed, with their indexes", test_tags },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
