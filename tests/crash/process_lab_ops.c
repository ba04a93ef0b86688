/* Processes among the calls of test_session_boundaries: an event that wakes, the commit
 * that settles a wake, a session that is forgotten, a removal. */
#include <belay/process.h>

#include "session_lab.h"

static const char types[] =
    "[{\"name\":\"wakes\",\"semantics\":{\"wake\":{\"input\":\"payload\"}}}]";

static belay_rc enroll(struct lab *l, const char *id)
{
    struct belay_registration r = { .size = sizeof(r),
                                    .process_id = id,
                                    .event_types = types };
    struct belay_registered out;

    return belay_process_register(l->b, &r, l->a, &out, &l->err);
}

static belay_rc wake(struct lab *l, const char *session, const char *key)
{
    struct belay_event_draft d = { .size = sizeof(d),
                                   .process_id = "p",
                                   .event_type = "wakes",
                                   .payload = "{\"text\":\"up\"}",
                                   .replay_key = key,
                                   .wake_target = { session, NULL } };
    struct belay_appended out;

    belay_arena_reset(l->a);
    return belay_process_append(l->b, &d, l->a, &out, &l->err);
}

belay_rc lab_run_append(struct lab *l)
{
    return wake(l, "woken", "new");
}

/* The claim on the wake's batch is the lab's other one. */
belay_rc lab_run_settle(struct lab *l)
{
    const struct belay_claim *claim = NULL;
    struct belay_session *s = NULL;
    struct belay_committed out;

    belay_arena_reset(l->a);
    belay_rc rc = belay_claim_parse(l->wake_claim, l->a, &claim, &l->err);
    rc = rc ? rc : belay_session_open(l->b, "woken", NULL, &s, &l->err);
    struct belay_commit c = { .size = sizeof(c),
                              .expected_revision = BELAY_ANY_REVISION,
                              .turn_id = "settles",
                              .completes = &claim,
                              .n_completes = 1 };
    rc = rc ? rc : belay_session_commit(s, &c, l->a, &out, &l->err);
    belay_session_close(s);
    return rc;
}

belay_rc lab_run_forget(struct lab *l)
{
    struct belay_forget_report out;

    belay_arena_reset(l->a);
    return belay_process_forget_session(l->b, "holder", true, "gone", l->a, &out,
                                        &l->err);
}

/* Gone is gone, by this call or one before. */
belay_rc lab_run_remove(struct lab *l)
{
    belay_rc rc = belay_process_delete(l->b, "p", true, &l->err);

    return rc == BELAY_NOT_FOUND ? BELAY_OK : rc;
}

/* --- the store that all of it starts from --- */

static belay_rc claim_wake(struct lab *l)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = "woken",
                                           .owner_id = "first",
                                           .lease_ms = 3600000,
                                           .max = 1 };
    struct belay_claimed out;
    const char *text = "";
    belay_rc rc = belay_queue_claim(l->b, &request, l->a, &out, &l->err);

    if (!rc)
        rc = belay_claim_text(out.claim, l->a, &text, &l->err);
    (void)snprintf(l->wake_claim, sizeof(l->wake_claim), "%s", text);
    return rc;
}

belay_rc lab_fill_processes(struct lab *l)
{
    static const struct belay_scope scope = { "holder", NULL };
    belay_rc rc = enroll(l, "p");

    rc = rc ? rc : enroll(l, "q");
    rc = rc ? rc : wake(l, "woken", "first");
    rc = rc ? rc : claim_wake(l);
    rc = rc ? rc : belay_process_grant(l->b, &scope, "p", NULL, NULL, &l->err);
    rc = rc ? rc : belay_process_grant(l->b, &scope, "q", NULL, NULL, &l->err);
    return rc;
}
