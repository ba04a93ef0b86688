/* What actors do about who may see a process, and with what it puts into inboxes. */
#include "procs.h"

#include <stdio.h>

struct pscope pscope_pick(const struct op *op, unsigned n)
{
    return (struct pscope){ pick_of(op, n, P_SESSIONS), pick_of(op, n + 1, 3) == 0 };
}

struct belay_scope pscope_public(struct pscope s)
{
    return (struct belay_scope){ psession(s.session), pframe(s.frame) };
}

/* Few of them in many schedules: then much happens to each. */
unsigned pproc_pick(const struct actor *a)
{
    return pick_of(a->op, 1, a->sim->swarm.n_keys);
}

/* --- grants --- */

void op_pgrant(struct actor *a)
{
    static const char *const kinds[] = { NULL, "tool", "agent" };
    const char *kind = kinds[pick_of(a->op, 4, COUNT_OF(kinds))];
    const char *label = kinds[pick_of(a->op, 5, COUNT_OF(kinds))];
    struct belay_error err = { .code = 0 };
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_GRANT, pproc_pick(a));
    c->scope = pscope_pick(a->op, 2);
    c->kind_text = pstr(kind);
    c->label = pstr(label);
    struct belay_scope scope = pscope_public(c->scope);
    belay_rc rc = proc_grant(&site, &scope, pname(c->proc), kind, label, &err);
    if (pcall_end(c, rc))
        pcall_judge(c, rc, &err);
}

void op_prevoke(struct actor *a)
{
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    bool revoked = false;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_REVOKE, pproc_pick(a));
    c->scope = pscope_pick(a->op, 2);
    struct belay_scope scope = pscope_public(c->scope);
    belay_rc rc = proc_revoke(&site, &scope, pname(c->proc), &revoked, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc == BELAY_OK && c->lost == 0 && revoked != (c->changed > 0))
        violation(a->sim, "answer", "a grant is said to be revoked, and is not");
}

void op_ptransfer(struct actor *a)
{
    struct belay_error err = { .code = 0 };
    const char *ids[P_PROCS];
    struct proc_site site;
    size_t n = 0;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_TRANSFER, 0);
    c->scope = pscope_pick(a->op, 2);
    c->to = pscope_pick(a->op, 6);
    for (unsigned i = 0; i < P_PROCS; i++) {
        /* Rather what is granted there: else it is always refused. */
        bool there = pgrant_at(a->sim->procs->cur, c->scope, i) != NULL;
        if (pick_of(a->op, 10 + i, 8) == 0 ? !there : there) {
            c->many |= 1U << i;
            ids[n++] = pname(i);
        }
    }
    if (n == 0) {
        c->many = 1;
        ids[n++] = pname(0);
    }
    struct belay_scope from = pscope_public(c->scope), to = pscope_public(c->to);
    belay_rc rc = proc_transfer(&site, &from, &to, ids, n, &err);
    if (pcall_end(c, rc))
        pcall_judge(c, rc, &err);
}

static unsigned bits_of(const char *const *ids, size_t n, bool *sorted)
{
    unsigned bits = 0;

    for (size_t i = 0; i < n; i++) {
        bits |= 1U << pname_of(bytes_str(ids[i]));
        *sorted &= i == 0 || strcmp(ids[i - 1], ids[i]) < 0;
    }
    return bits;
}

void pdo_forget(struct actor *a, unsigned session, bool cancel)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_forget_report out = { .revoked = 0 };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    bool sorted = true;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_FORGET, 0);
    c->scope.session = session;
    c->cancel = cancel;
    c->type = PT_CANCEL_REQUESTED;
    c->event.type = pstr(ptype_name(PT_CANCEL_REQUESTED));
    c->event.payload = pstr("{\"reason\":\"gone\"}");
    c->event.key = mix(pstr("cancel"), c->event.payload) | 1U;
    belay_rc rc = proc_forget_session(&site, psession(session), cancel, "gone", &arena,
                                      &out, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc || c->lost > 0 || a->sim->rule || (!c->changed && !pis_calm(c)))
        return;
    if (out.revoked != c->revoked ||
        bits_of(out.cancel_ids, out.n_cancel, &sorted) != c->cancelled ||
        bits_of(out.preserved_ids, out.n_preserved, &sorted) != c->preserved || !sorted)
        violation(a->sim, "P6", "a session was forgotten, and the report is wrong");
}

void op_pforget(struct actor *a)
{
    pdo_forget(a, pick_of(a->op, 2, P_SESSIONS), pick_of(a->op, 3, 2));
}

/* --- wakes --- */

/* A late event of the process, and not always one that wakes. */
void op_pack(struct actor *a)
{
    struct procs *w = a->sim->procs;
    unsigned proc = pproc_pick(a);
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    bool settled = false;
    int64_t seq = 1 + pick_of(a->op, 2, 4);

    for (size_t i = 0; i < w->cur->n_events && pick_of(a->op, 3, 4); i++) {
        const struct pevent *e = &w->cur->event[i];
        if (e->proc == proc && e->wake.state == BELAY_WAKE_QUEUED)
            seq = e->seq;
    }
    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_ACK, proc);
    c->seq = seq;
    belay_rc rc = proc_ack(&site, pname(proc), seq, &settled, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc == BELAY_OK && c->lost == 0 && settled != (c->changed > 0))
        violation(a->sim, "answer", "a wake is said to be settled, and is not");
}

static const struct belay_claim *keep_claim(struct procs *w,
                                            const struct belay_claim *claim)
{
    const char *text;
    const struct belay_claim *copy = NULL;
    struct belay_error err;

    if (w->n_claims == P_CLAIMS || claim_text(claim, &w->arena, &text, &err) ||
        claim_parse(text, &w->arena, &copy, &err))
        return NULL;
    w->claim[w->n_claims++] = copy;
    return copy;
}

static const struct belay_claim *take(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const int64_t ttls_ms[] = { 0, 20, 2000, 900000, 900000 };
    unsigned session = pick_of(a->op, 2, P_SESSIONS);
    struct belay_claim_request request = {
        .size = sizeof(request),
        .boundary = BELAY_IDLE,
        .session_id = psession(session),
        .owner_id = pick_of(a->op, 3, 2) ? "ann" : "bob",
        .lease_ms = ttls_ms[pick_of(a->op, 4, COUNT_OF(ttls_ms))],
        .max = 1 + pick_of(a->op, 5, 3),
    };
    struct belay_claimed out = { .claim = NULL };
    struct belay_error err = { .code = 0 };
    struct proc_site site;

    if (!psite(a, &site))
        return NULL;
    struct pcall *c = pcall_begin(a, P_CLAIM, 0);
    c->scope.session = session;
    belay_rc rc = queue_claim(&(struct queue_site){ .space = site.space,
                                                    .principal = bytes_str("sim"),
                                                    .host = site.host },
                              &request, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return NULL;
    pcall_judge(c, rc, &err);
    return rc || !out.claim ? NULL : keep_claim(a->sim->procs, out.claim);
}

/* Completes what was claimed with a turn of the session: its wakes are done for good. */
static void finish(struct actor *a, const struct belay_claim *claim)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct procs *w = a->sim->procs;
    struct belay_commit commit = { .size = sizeof(commit),
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .completes = &claim,
                                   .n_completes = 1 };
    struct belay_committed out;
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    char config[32], turn[32];

    if (!psite(a, &site))
        return;
    struct session s = { site.space, claim->session_id, BELAY_PROFILE_DEFAULT };
    (void)snprintf(config, sizeof(config), "{\"v\":%u}", w->n_turns);
    (void)snprintf(turn, sizeof(turn), "t%u", w->n_turns++);
    commit.config = config;
    commit.turn_id = turn;
    struct pcall *c = pcall_begin(a, P_COMMIT, 0);
    c->claim = claim;
    belay_rc rc = session_commit(&s, &commit, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return;
    if (rc == BELAY_OK && c->changed == 0 && c->lost == 0)
        violation(a->sim, "P4", "a claim was completed, and its batches are there");
    if (rc != BELAY_LEASE_LOST && rc != BELAY_HEAD_REVISION_CONFLICT)
        pcall_judge(c, rc, &err);
}

static void give_back(struct actor *a, const struct belay_claim *claim)
{
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    size_t n = 0;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_ABANDON, 0);
    c->claim = claim;
    belay_rc rc = queue_abandon(site.space, claim, &n, &err);
    if (pcall_end(c, rc) && rc != BELAY_LEASE_LOST)
        pcall_judge(c, rc, &err);
}

void op_pinbox(struct actor *a)
{
    struct procs *w = a->sim->procs;
    const struct belay_claim *claim = NULL;
    unsigned how = pick_of(a->op, 1, 10);

    if (how > 1 || w->n_claims == 0)
        claim = take(a);
    else
        claim = w->claim[w->n_claims - 1 - pick_of(a->op, 6, 3) % w->n_claims];
    if (!claim || a->sim->running->dead || a->sim->rule)
        return;
    if (how == 2)
        give_back(a, claim);
    else if (how < 2 || how > 5) /* else it is held, and somebody may end it later */
        finish(a, claim);
}

/* Takes a batch out by hand: its wake may come again. */
void op_pdrop(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct procs *w = a->sim->procs;
    const struct belay_batch *out = NULL;
    struct belay_batches list = { .n = 0 };
    struct belay_queue_page page = { .size = sizeof(page), .limit = 100 };
    struct belay_error err = { .code = 0 };
    unsigned session = pick_of(a->op, 1, P_SESSIONS);
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_LOOK, 0);
    belay_rc rc = queue_list(site.space, psession(session), &page, &arena, &list, &err);
    if (!pcall_end(c, rc) || rc || list.n == 0 || !psite(a, &site) ||
        w->n_calls == P_CALLS)
        return;
    const struct belay_batch *b = &list.batches[pick_of(a->op, 2, 8) % list.n];
    c = pcall_begin(a, P_CANCEL_BATCH, 0);
    c->scope.session = session;
    c->seq = b->enqueue_seq;
    c->batch = pstr(b->batch_id);
    rc = queue_cancel(site.space, psession(session), b->batch_id, &arena, &out, &err);
    if (pcall_end(c, rc) && rc == BELAY_OK)
        pcall_judge(c, rc, &err);
}
