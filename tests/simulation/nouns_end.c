/* What must be true when everything is quiet: whatever was enqueued can be claimed and
 * completed, what is named can be read, what is not named goes. */
#include "nouns.h"

#include <stdio.h>
#include <stdlib.h>

#include "work/check.h"

#define DAY_US ((int64_t)24 * 3600 * 1000000)

/* --- inboxes --- */

/* Claims and completes until nothing is left. */
static void drain(struct actor *a, const char *session)
{
    struct nouns *w = a->sim->nouns;
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = session,
                                           .owner_id = "audit",
                                           .lease_ms = 1000,
                                           .max = 4 };
    int64_t actual;

    for (;;) {
        const struct ninbox *in = inbox_at(w->cur, str_of(session));
        if (!in || in->batches == 0 || a->sim->rule)
            return;
        const struct belay_claim *claim = do_claim(a, session, &request);
        if (!claim) {
            violation(w->s, "L11", "%lld batches of %s cannot be claimed",
                      (long long)in->batches, session);
            return;
        }
        w->n_turns -= w->n_turns == N_TURNS; /* none is retried any more */
        struct nturn *turn = turn_make(a, session, false);
        turn->has_checkpoint = false;
        turn->frame[0] = 0;
        turn->claim[turn->n_claims++] = claim;
        if (do_commit(a, turn, BELAY_ANY_REVISION, &actual))
            violation(w->s, "L11", "what was claimed cannot be completed");
    }
}

/* --- sessions --- */

static void visit_session(struct actor *a, const char *session)
{
    struct nouns *w = a->sim->nouns;
    const struct ninbox *in = inbox_at(w->cur, str_of(session));
    const struct nsession *n = session_at(w->cur, str_of(session));
    int64_t revision;
    char leaf[24];

    if ((n && n->there && !n->active) || (in && in->closed)) {
        do_delete(a, session); /* goes on where it stopped */
        n = session_at(w->cur, str_of(session));
        in = inbox_at(w->cur, str_of(session));
        if (n && n->nodes + n->node_names + n->turns + n->logs > 0)
            violation(w->s, "N3", "a session is deleted and has something left");
        return;
    }
    drain(a, session);
    n = session_at(w->cur, str_of(session));
    if (!n || !n->there || a->sim->rule)
        return;
    if (do_head(a, session, &revision, leaf) || revision != n->revision)
        violation(w->s, "S2", "the head of %s is not the last revision", session);
    do_load(a, session);
}

/* --- blobs --- */

static void collect_all(struct actor *a)
{
    struct nouns *w = a->sim->nouns;
    struct belay_gc_report report = { .outcome = BELAY_GC_FAILED };

    if (do_collect(a, BELAY_NONE, &report) || a->sim->rule)
        return;
    if (report.outcome == BELAY_GC_REFUSED)
        return; /* a manifest is damaged: nothing goes */
    for (size_t i = 0; i < w->cur->n_blobs; i++) {
        if (!is_named(w->cur, w->cur->blob[i].sha))
            violation(w->s, "S7", "a blob that nothing names is left");
    }
    if (w->cur->n_uploads > 0 || w->cur->strays > 0)
        violation(w->s, "S7", "%zu uploads and %zu chunks of nothing are left",
                  w->cur->n_uploads, w->cur->strays);
}

/* --- the product's own check --- */

static void found(void *arg, const struct finding *f)
{
    struct nouns *w = arg;

    /* Where nothing was ever committed there may be slots, and no rows of the namespace. */
    if (w->no == 0 && strcmp(f->what, "missing_row") == 0)
        return;
    if (f->level == FINDING_BAD && !w->spoiled)
        violation(w->s, "check", "%s %.*s: %s", f->what, (int)f->entity.len,
                  (const char *)f->entity.ptr, f->message);
}

static void check_all(struct actor *a)
{
    struct check_counts counts;
    struct belay_error err;
    belay_rc rc =
        check_store(a->sim->running->front->store, found, a->sim->nouns, &counts, &err);

    if (rc)
        violation(a->sim, "check", "check_store: %s", err.message);
}

/* A process of its own, whose clock is right: it agrees with the latest time that the
 * store had, which is the mark, and goes on from there. */
void nouns_audit_begin(struct actor *a)
{
    struct sim *s = a->sim;
    struct front *f = front_open(s, 0);
    struct belay_clock clock;

    a->n_ops = 1;
    if (!f)
        return;
    a->front = f;
    clock = front_clock(f);
    if (s->nouns->latest_ms > 0)
        f->wall_offset_ms = s->nouns->latest_ms - clock.wall_ms(clock.arg);
}

void nouns_audit(struct actor *a)
{
    struct sim *s = a->sim;
    struct nouns *w = s->nouns;
    struct space *sp = noun_space(a);
    int64_t now_ms = 0;

    if (!sp || space_now(sp, &now_ms, NULL))
        violation(s, "liveness", "without faults a store cannot be opened");
    s->mono_us += DAY_US + DAY_US / 12; /* late for everything */
    for (unsigned k = 0; k < COUNT_OF(w->generation); k++) {
        for (unsigned g = 0; g <= w->generation[k] && !s->rule; g++) {
            char name[16];
            (void)snprintf(name, sizeof(name), "s%u-%u", k, g);
            visit_session(a, name);
        }
    }
    if (!s->rule)
        collect_all(a);
    if (!s->rule)
        check_all(a);
}
