/* L4 for processes: whatever somebody does under a lease that he holds no more is
 * lease_lost, and nothing changes. */
#include "proc.h"

#define HOUR (60 * MINUTE)

static belay_rc by_renewing(struct world *w, const struct belay_process_lease *l)
{
    return belay_process_renew(w->use, l, HOUR, NULL, &w->err);
}

static belay_rc by_an_event(struct world *w, const struct belay_process_lease *l)
{
    return note_try(w,
                    (struct belay_event_draft){ .event_type = "producer.line",
                                                .payload = "{\"line\":\"stale\"}",
                                                .lease = l },
                    NULL);
}

static belay_rc by_a_keyed_event(struct world *w, const struct belay_process_lease *l)
{
    return note_try(w,
                    (struct belay_event_draft){ .event_type = "producer.line",
                                                .payload = "{\"line\":\"stale\"}",
                                                .replay_key = "stale",
                                                .lease = l },
                    NULL);
}

static belay_rc by_a_wake(struct world *w, const struct belay_process_lease *l)
{
    return note_try(w,
                    (struct belay_event_draft){ .event_type = "producer.wake",
                                                .payload = "{\"text\":\"stale\"}",
                                                .wake_target = { "s", NULL },
                                                .lease = l },
                    NULL);
}

static belay_rc by_a_terminal_event(struct world *w,
                                    const struct belay_process_lease *l)
{
    return note_try(w,
                    (struct belay_event_draft){ .event_type = "producer.done",
                                                .payload = "{\"result\":\"stale\"}",
                                                .replay_key = "done",
                                                .lease = l },
                    NULL);
}

static belay_rc by_completing(struct world *w, const struct belay_process_lease *l)
{
    return finish_try(w, (struct belay_process_end){ .lease = l }, NULL);
}

static belay_rc by_failing(struct world *w, const struct belay_process_lease *l)
{
    return finish_try(
        w,
        (struct belay_process_end){ .await_output =
                                        "{\"type\":\"failure\",\"class\":\"internal\","
                                        "\"code\":\"c\",\"message\":\"m\"}",
                                    .lease = l },
        NULL);
}

static belay_rc by_a_ref(struct world *w, const struct belay_process_lease *l)
{
    const struct belay_process *p = NULL;

    return belay_process_set_external_ref(
        w->use, "p", "{\"backend\":\"stale\",\"id\":\"i\"}", l, w->arena, &p, &w->err);
}

static const struct {
    const char *name;
    belay_rc (*run)(struct world *w, const struct belay_process_lease *l);
} deeds[] = {
    { "renewing", by_renewing },
    { "an event", by_an_event },
    { "a keyed event", by_a_keyed_event },
    { "a wake", by_a_wake },
    { "a terminal event", by_a_terminal_event },
    { "completing", by_completing },
    { "failing", by_failing },
    { "an external ref", by_a_ref },
};

/* Every deed by who holds `l` no more, for this reason. */
static void stale(struct world *w, const struct belay_process_lease *l,
                  const char *reason)
{
    const char *before = all_processes(w);
    bool released = true;

    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        if (!WHY(w, deeds[i].run(w, l), BELAY_LEASE_LOST, reason))
            printf("# by %s\n", deeds[i].name);
    }
    RC(w, belay_process_release(w->use, l, &released, &w->err), BELAY_OK);
    OK(w, !released);
    STR(w, all_processes(w), before);
}

static void taken_over(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", 0);
    (void)hold(w, "p", "two", MINUTE);
    stale(w, old, "superseded");
}

static void claimed_again(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", MINUTE);
    const struct belay_process_lease *new = hold(w, "p", "one", MINUTE);
    stale(w, old, "superseded");
    RC(w, by_an_event(w, new), BELAY_OK);
}

static void given_back(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", MINUTE);
    RC(w, belay_process_release(w->use, old, NULL, &w->err), BELAY_OK);
    stale(w, old, "released");
}

static void ended(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", MINUTE);
    RC(w,
       finish_try(w,
                  (struct belay_process_end){
                      .await_output = "{\"type\":\"cancelled\",\"message\":\"m\"}",
                      .authority = BELAY_AUTHORITY_OPERATOR },
                  NULL),
       BELAY_OK);
    stale(w, old, "released");
}

static void another_process(struct world *w)
{
    enroll_id(w, "p");
    enroll_id(w, "q");
    struct belay_process_lease wrong = *hold(w, "q", "one", MINUTE);
    (void)hold(w, "p", "two", MINUTE);
    wrong.process_id = "p"; /* a proof of something else */
    stale(w, &wrong, "superseded");
}

/* A process of the same id, removed and registered again. */
static void another_life(struct world *w)
{
    enroll_id(w, "p");
    const struct belay_process_lease *old = hold(w, "p", "one", MINUTE);
    RC(w, belay_process_release(w->use, old, NULL, &w->err), BELAY_OK);
    const struct belay_process_lease *last = hold(w, "p", "one", MINUTE);
    WHY(w, belay_process_delete(w->use, "p", false, &w->err), BELAY_WRONG_STATE,
        "running");
    RC(w, belay_process_delete(w->use, "p", true, &w->err), BELAY_OK);
    RC(w, by_an_event(w, last), BELAY_NOT_FOUND);
    enroll_id(w, "p");
    stale(w, last, "released");
    const struct belay_process_lease *new = hold(w, "p", "one", MINUTE);
    OK(w, new->fence > last->fence); /* P7, L2 */
    stale(w, last, "superseded");
    w->use = w->b; /* with a book of its own */
    enroll_id(w, "other");
    OK(w, hold(w, "other", "one", 0)->fence > last->fence);
}

static const struct noun_case cases[] = {
    { "L4: who was taken over changes nothing of a process", taken_over, 0 },
    { "L4: the lease before one's own next one changes nothing", claimed_again, 0 },
    { "L4: who gave a process back changes nothing", given_back, 0 },
    { "L4: who held a process that has ended changes nothing", ended, 0 },
    { "L4: the lease of another process proves nothing", another_process, 0 },
    { "L2: a process that is registered again has greater fences", another_life, 0 },
};
const struct topic topic_proc_stale = { cases, COUNT_OF(cases) };
