/* The process registry's cases of the specification (5.1), by its names: grants, lists and
 * leases. */
#include "proc.h"

static void transfers(struct world *w)
{
    struct belay_scope from = scope("a", NULL), to = scope("b", "f");
    const char *both[] = { "p", "q" }, *with_stranger[] = { "p", "r" };

    enroll_id(w, "p");
    enroll_id(w, "q");
    enroll_id(w, "r");
    RC(w, belay_process_grant(w->use, &from, "p", "job", "the first", &w->err),
       BELAY_OK);
    give(w, "a", NULL, "q");
    const char *before = all_processes(w);
    RC(w, belay_process_transfer(w->use, &from, &to, with_stranger, 2, &w->err),
       BELAY_NOT_FOUND);
    OK(w, strstr(w->err.message, "is not granted to session") != NULL);
    STR(w, all_processes(w), before);
    RC(w, belay_process_transfer(w->use, &from, &to, both, 2, &w->err), BELAY_OK);
    STR(w, granted(w, "a", NULL, false), "");
    STR(w, granted(w, "b", "f", false), "p q");
    STR(w, granted(w, "b", NULL, false), "");
    STR(w, log_of(w, "p", 0), "");
    struct belay_grant_page page = { .size = sizeof(page), .scope = to };
    struct belay_process_grants found = { 0 };
    RC(w, belay_process_grants(w->use, &page, w->arena, &found, &w->err), BELAY_OK);
    if (EQ(w, found.n, 2)) {
        STR(w, found.items[0].kind, "job"); /* the descriptor travels */
        STR(w, found.items[0].label, "the first");
    }
    /* Onto itself, and back within one session. */
    RC(w, belay_process_transfer(w->use, &to, &to, both, 2, &w->err), BELAY_OK);
    from = scope("b", NULL);
    RC(w, belay_process_transfer(w->use, &to, &from, both, 2, &w->err), BELAY_OK);
    STR(w, granted(w, "b", NULL, false), "p q");
}

static void many_holders(struct world *w)
{
    struct belay_scope from = scope("b", NULL), to = scope("c", NULL);
    const char *ids[] = { "p" };

    enroll_id(w, "p");
    give(w, "b", "f", "p");
    give(w, "b", NULL, "p");
    give(w, "a", NULL, "p");
    STR(w, holders(w, "p"), "a b b/f");
    RC(w, belay_process_transfer(w->use, &from, &to, ids, 1, &w->err), BELAY_OK);
    STR(w, holders(w, "p"), "a b/f c");
}

static void zero(struct world *w)
{
    enroll_id(w, "p");
    STR(w, holders(w, "p"), "");
    EQ(w, line(w, "p", "works"), 1);
    finish_process(w, "p");
    struct belay_grant_page page = { .size = sizeof(page), .process_id = "nobody" };
    struct belay_process_grants found = { 0 };
    RC(w, belay_process_grants(w->use, &page, w->arena, &found, &w->err),
       BELAY_NOT_FOUND);
}

static void forget(struct world *w)
{
    struct belay_forget_report report = { 0 };

    enroll_id(w, "sole");
    enroll_id(w, "shared");
    enroll_id(w, "over");
    give(w, "s", NULL, "sole");
    give(w, "s", "f", "shared");
    give(w, "t", NULL, "shared");
    give(w, "s", NULL, "over");
    finish_process(w, "over");
    RC(w,
       belay_process_forget_session(w->use, "s", false, NULL, w->arena, &report,
                                    &w->err),
       BELAY_OK);
    EQ(w, report.revoked, 3);
    OK(w, !report.cancel_requested);
    if (EQ(w, report.n_cancel, 1))
        STR(w, report.cancel_ids[0], "sole");
    if (EQ(w, report.n_preserved, 1))
        STR(w, report.preserved_ids[0], "shared");
    STR(w, granted(w, "s", NULL, false), "");
    STR(w, granted(w, "s", "f", false), "");
    STR(w, holders(w, "shared"), "t");
    STR(w, log_of(w, "sole", 0), ""); /* nobody has asked for it */
}

static void non_terminal(struct world *w)
{
    enroll_id(w, "c");
    enroll_id(w, "a");
    enroll_id(w, "b");
    finish_process(w, "b");
    STR(w, procs(w, (struct belay_process_page){ .status = BELAY_PROCESS_RUNNING }),
        "a c");
    STR(w,
        procs(w, (struct belay_process_page){ .status = BELAY_PROCESS_RUNNING,
                                              .limit = 1 }),
        "a c");
    STR(w, procs(w, (struct belay_process_page){ .status = BELAY_PROCESS_COMPLETED }),
        "b");
}

static void live_grants(struct world *w)
{
    enroll_id(w, "a");
    enroll_id(w, "b");
    give(w, "s", NULL, "b");
    give(w, "s", NULL, "a");
    finish_process(w, "a");
    STR(w, granted(w, "s", NULL, true), "b");
    STR(w, granted(w, "s", NULL, false), "a b");
}

static void competes(struct world *w)
{
    enroll_id(w, "p");
    RC(w, hold_try(w, "nobody", "one", MINUTE), BELAY_NOT_FOUND);
    const struct belay_process_lease *first = hold(w, "p", "one", MINUTE);
    EQ(w, first->fence, 1);
    w->use = w->b;
    RC(w, hold_try(w, "p", "two", MINUTE), BELAY_LEASE_HELD);
    OK(w, strstr(w->err.message, "already leased by") != NULL);
    OK(w, strstr(w->err.message, "one") != NULL);
    const struct belay_process_lease *again = hold(w, "p", "one", MINUTE);
    EQ(w, again->fence, 2);
    OK(w, strcmp(first->lease_token, again->lease_token) != 0);
    RC(w, belay_process_renew(w->use, first, MINUTE, NULL, &w->err), BELAY_LEASE_LOST);
    RC(w, belay_process_renew(w->use, again, MINUTE, NULL, &w->err), BELAY_OK);
    STR(w, again->lease_token,
        digest(w, text(w, "p:one:%lld:2", (long long)again->claimed_at_ms)));
    STR(w, digest(w, "proc-1:owner-a:1000:1"),
        "6df8915c6ad6032420e79ad0abd39c6f1c33c46a5b04b45c214f091ece14f97c");
}

static void superseded(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", 0);
    const struct belay_process_lease *new = hold(w, "p", "two", MINUTE);
    EQ(w, new->fence, old->fence + 1);
    WHY(w, belay_process_renew(w->use, old, MINUTE, NULL, &w->err), BELAY_LEASE_LOST,
        "superseded");
    OK(w, strstr(w->err.message, "is missing or expired") != NULL);
    RC(w, belay_process_renew(w->use, new, MINUTE, NULL, &w->err), BELAY_OK);
}

static void renewed_in_time(struct world *w)
{
    int64_t until = 0;

    enroll_id(w, "p");
    const struct belay_process_lease *l = hold(w, "p", "one", 150);
    RC(w, belay_process_renew(w->use, l, MINUTE, &until, &w->err), BELAY_OK);
    OK(w, until > l->expires_at_ms);
    world_pass(w, 160);
    RC(w, hold_try(w, "p", "two", MINUTE), BELAY_LEASE_HELD);
    RC(w, belay_process_renew(w->use, l, 0, &until, &w->err), BELAY_OK);
    EQ(w, proc_now(w, "p")->lease_expires_at_ms, until); /* L6: no nearer */
}

static void reclaim(struct world *w)
{
    bool released = false;

    enroll_id(w, "p");
    const struct belay_process_lease *one = hold(w, "p", "one", MINUTE);
    RC(w, belay_process_release(w->use, one, &released, &w->err), BELAY_OK);
    OK(w, released);
    EQ(w, proc_now(w, "p")->fence, 1);
    OK(w, proc_now(w, "p")->lease_owner == NULL);
    const struct belay_process_lease *two = hold(w, "p", "two", MINUTE);
    EQ(w, two->fence, 2);
}

static void stale_release(struct world *w)
{
    bool released = true;

    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", 0);
    const struct belay_process_lease *new = hold(w, "p", "two", MINUTE);
    const char *before = all_processes(w);
    RC(w, belay_process_release(w->use, old, &released, &w->err), BELAY_OK);
    OK(w, !released);
    STR(w, all_processes(w), before);
    RC(w, belay_process_renew(w->use, new, MINUTE, NULL, &w->err), BELAY_OK);
}

static void reopened(struct world *w)
{
    struct belay_appended again = { 0 };
    struct belay_event_draft d = { .event_type = "producer.line",
                                   .payload = "{\"line\":\"kept\"}",
                                   .replay_key = "k" };

    enroll_id(w, "p");
    (void)line(w, "p", "one");
    EQ(w, note(w, d)->sequence, 2);
    give(w, "s", "f", "p");
    (void)hold(w, "p", "one", 0);
    const char *before = all_processes(w);
    OK(w, world_reopen(w));
    STR(w, all_processes(w), before);
    RC(w, note_try(w, d, &again), BELAY_OK);
    OK(w, again.replayed);
    EQ(w, again.event->sequence, 2);
    EQ(w, hold(w, "p", "two", 0)->fence, 2);
}

static const struct noun_case cases[] = {
    { "transfer_handle_grants_moves_addressability", transfers, 0 },
    { "multiple_sessions_can_hold_grants", many_holders, 0 },
    { "processes_can_exist_with_zero_grants", zero, 0 },
    { "delete_session_revokes_handles_by_session", forget, 0 },
    { "list_non_terminal_excludes_terminal_processes", non_terminal, 0 },
    { "list_live_handle_grants_excludes_terminal_history", live_grants, 0 },
    { "active_process_lease_fences_competing_owner", competes, 0 },
    { "superseded_process_lease_cannot_renew", superseded, 0 },
    { "renewed_process_lease_survives_original_expiry", renewed_in_time, 0 },
    { "completed_lease_releases_and_reclaim_bumps_fencing", reclaim, 0 },
    { "stale_lease_completion_cannot_release_live_lease", stale_release, 0 },
    { "process_registry_survives_reopen", reopened, 0 },
};
const struct topic topic_proc_spec_more = { cases, COUNT_OF(cases) };
