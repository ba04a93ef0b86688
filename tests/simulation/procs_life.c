/* What actors do to processes from their beginning to their end. */
#include "procs.h"

#include <stdio.h>

#include "work/epoch.h"

void op_pregister(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const int64_t retentions_ms[] = { 0, 1, 100, 5000 };
    struct procs *w = a->sim->procs;
    struct belay_registered out = { .process = NULL };
    struct belay_error err = { .code = 0 };
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_REGISTER, pproc_pick(a));
    c->variant = pick_of(a->op, 2, 3) == 0;
    c->retention_ms = retentions_ms[pick_of(a->op, 3, COUNT_OF(retentions_ms))];
    const struct belay_registration r = {
        .size = sizeof(r),
        .process_id = pname(c->proc),
        .input = c->variant ? "{\"type\":\"job\"}" : NULL,
        .event_types = pvariant_types(c->variant),
        .owner = { psession(0), NULL },
        .retention_ms = c->retention_ms,
    };
    belay_rc rc = proc_register(&site, &r, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc == BELAY_OK && c->lost == 0 && out.created != (c->changed > 0))
        violation(a->sim, "once", "a process is said to be new, or not, wrongly");
    if (rc == BELAY_OK &&
        pstr(out.process->registration_hash) != w->hash[c->proc][c->variant])
        violation(a->sim, "D1", "another registration was answered");
}

void op_pref(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const char *ref = pick_of(a->op, 2, 2) ? "{\"backend\":\"x\",\"id\":\"1\"}"
                                           : "{\"backend\":\"y\",\"id\":\"2\"}";
    const struct belay_process *out = NULL;
    struct belay_error err = { .code = 0 };
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_REF, pproc_pick(a));
    c->ref = pstr(ref);
    c->lease = pick_of(a->op, 3, 2) ? pheld_any(a, c->proc, 26) : NULL;
    belay_rc rc = proc_set_ref(&site, pname(c->proc), ref,
                               c->lease ? &c->lease->lease : NULL, &arena, &out, &err);
    if (pcall_end(c, rc))
        pcall_judge(c, rc, &err);
}

/* --- removing --- */

void pdo_delete(struct actor *a, unsigned proc, bool force)
{
    struct belay_error err = { .code = 0 };
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_DELETE, proc);
    c->force = force;
    belay_rc rc = proc_delete(&site, pname(proc), force, &err);
    if (!pcall_end(c, rc))
        return;
    if (rc)
        pcall_judge(c, rc, &err);
    else if (pis_calm(c) && a->sim->procs->cur->proc[proc].deleting)
        violation(a->sim, "D1", "a process was removed, and something of it is there");
}

void op_pdelete(struct actor *a)
{
    pdo_delete(a, pproc_pick(a), pick_of(a->op, 2, 3) > 0);
}

static const struct exec_site *exec_site_of(struct actor *a, struct exec_site *out)
{
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    struct front *f = a->sim->running->front;

    if (!psite(a, &site) || (!f->lanes && lane_book_open(&f->lanes, &err)))
        return NULL;
    *out = (struct exec_site){ .space = site.space,
                               .lanes = f->lanes,
                               .backend = BELAY_BACKEND_MEMORY,
                               .grace_ms = 1000 };
    return out;
}

bool pdo_timers(struct actor *a)
{
    struct belay_timer_report out;
    struct belay_error err = { .code = 0 };
    struct exec_site site;

    if (!exec_site_of(a, &site))
        return false;
    struct pcall *c = pcall_begin(a, P_TIMERS, 0);
    belay_rc rc = exec_timers_step(&site, NULL, &out, &err);
    if (!pcall_end(c, rc))
        return false;
    if (rc)
        pcall_judge(c, rc, &err);
    return rc == BELAY_OK;
}

void op_ptimers(struct actor *a)
{
    (void)pdo_timers(a);
}

/* --- executions of a process --- */

static void submit(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_submission s = { .size = sizeof(s),
                                  .lane = pname(pproc_pick(a)),
                                  .kind = "k",
                                  .payload = "{}",
                                  .payload_len = 2,
                                  .payload_is_json = true,
                                  .process = pname(pproc_pick(a)),
                                  .max_reclaims = 1000 };
    struct belay_submitted out;
    struct belay_error err = { .code = 0 };
    struct exec_site site;

    if (!exec_site_of(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_SUBMIT, pproc_pick(a));
    belay_rc rc = exec_submit(&site, &s, 1, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return;
    const struct pproc *p = &a->sim->procs->cur->proc[c->proc];
    if (rc == BELAY_NOT_FOUND && pis_calm(c) && p->there && !p->deleting)
        violation(a->sim, "answer",
                  "an execution of a process that is there was refused");
    else if (rc != BELAY_NOT_FOUND)
        pcall_judge(c, rc, &err);
}

static void work(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const char *lanes[] = { pname(pproc_pick(a)) }; /* one for each */
    const struct belay_claim_policy policy = { .size = sizeof(policy),
                                               .lanes = lanes,
                                               .n_lanes = 1,
                                               .worker = "w",
                                               .max = 1,
                                               .lease_ms = 3600000 };
    struct procs *w = a->sim->procs;
    struct belay_works works = { .n = 0 };
    struct belay_error err = { .code = 0 };
    struct exec_site site;

    if (w->n_works == P_WORKS || !exec_site_of(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_WORK, 0);
    belay_rc rc = exec_claim(&site, &policy, &arena, &works, &err);
    if (!pcall_end(c, rc))
        return;
    if (rc)
        pcall_judge(c, rc, &err);
    struct bytes opaque;
    if (rc || works.n == 0 ||
        !arena_copy(
            &w->arena,
            bytes_of(works.work[0].handle.opaque, works.work[0].handle.opaque_len),
            &opaque))
        return;
    w->work_proc[w->n_works] = pproc_pick(a);
    w->work[w->n_works] = works.work[0].handle;
    w->work[w->n_works++].opaque = opaque.ptr;
}

static void end_work(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct procs *w = a->sim->procs;
    struct belay_completion item = { .size = sizeof(item) };
    struct belay_ended out = { .code = BELAY_OK };
    struct belay_error err = { .code = 0 };
    struct exec_handle h;
    struct exec_site site;
    char key[96];

    if (w->n_works == 0 || !exec_site_of(a, &site))
        return;
    size_t at = w->n_works - 1 - pick_of(a->op, 5, 3) % w->n_works;
    struct pcall *c = pcall_begin(a, P_EXEC_END, w->work_proc[at]);
    item.handle = &w->work[at];
    if (handle_decode(&w->work[at], &h, &err)) {
        violation(a->sim, "answer", "a handle cannot be read");
        return;
    }
    (void)snprintf(key, sizeof(key), "execution:%.*s:0:success", (int)h.execution.len,
                   (const char *)h.execution.ptr);
    c->type = PT_EXECUTION;
    c->event.type = pstr(ptype_name(PT_EXECUTION));
    c->event.key = pstr(key);
    c->event.authority = BELAY_AUTHORITY_EXECUTION;
    belay_rc rc = exec_complete(&site, &item, 1, NULL, &arena, &out, NULL, &err);
    if (pcall_end(c, rc) && rc && rc != BELAY_LEASE_LOST && rc != BELAY_WRONG_STATE &&
        rc != BELAY_NOT_FOUND)
        pcall_judge(c, rc, &err);
}

void op_pexec(struct actor *a)
{
    unsigned how = pick_of(a->op, 0, 4);

    if (how < 2)
        submit(a);
    if (how < 3 && !a->sim->running->dead && !a->sim->rule)
        work(a);
    if (how != 1 && !a->sim->running->dead && !a->sim->rule)
        end_work(a);
}

/* --- what should not happen, and what rarely does --- */

static belay_rc spoil_body(struct txn *t, void *arg)
{
    const struct value key = value_str(arg);
    const struct change changes[] = {
        { PROCESS_STATUS, value_str("running") },
        { PROCESS_TERMINAL_SEQ, value_null() },
        { PROCESS_FINISHED_AT_MS, value_null() },
        { PROCESS_PURGE_AT_MS, value_null() },
    };
    char index[32];
    const struct row *row, *end = NULL;
    int64_t now_ms;
    belay_rc rc = txn_get(t, &row_process, &key, &row);

    if (rc == BELAY_OK)
        rc = txn_get(t, &row_process_end, &key, &end);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc || !row || !end)
        return rc;
    struct bytes status = row_bytes(row, PROCESS_STATUS);
    (void)snprintf(index, sizeof(index), "processes/%.*s", (int)status.len,
                   (const char *)status.ptr);
    rc = txn_rank_remove(t, bytes_str(index), row_i64(row, PROCESS_PURGE_AT_MS, 0),
                         key.b);
    if (rc == BELAY_OK)
        rc = txn_rank_add(t, bytes_str("processes/running"), 0, key.b);
    if (rc == BELAY_OK)
        rc = txn_put(t, &row_process, &key, changes, COUNT_OF(changes));
    return rc ? rc : txn_delete(t, &row_process_end, &key);
}

/* The event of its end is there and its end is not, as after half a restore. */
void op_pspoil(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    unsigned proc = pproc_pick(a);
    const struct pproc *p = &a->sim->procs->cur->proc[proc];
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    char name[8];

    if (!p->there || p->status < BELAY_PROCESS_COMPLETED || !psite(a, &site))
        return;
    (void)snprintf(name, sizeof(name), "%s", pname(proc));
    struct pcall *c = pcall_begin(a, P_SPOIL, proc);
    belay_rc rc = txn_run(site.space, spoil_body, name, NULL, &arena, &err);
    (void)pcall_end(c, rc);
}

void op_pepoch(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err = { .code = 0 };
    struct epoch_info info;
    struct proc_site site;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_RAISE, 0);
    belay_rc rc =
        epoch_raise(site.space, bytes_str("simulated"), "sim", &arena, &info, &err);
    (void)pcall_end(c, rc);
}
