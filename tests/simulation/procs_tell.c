/* What actors append: notes, wakes, the end of a process, the wish that it ends. */
#include "procs.h"

#include <stdio.h>

/* One event on its way. */
struct drafting {
    struct belay_event_draft d;
    char payload[96], key[32];
};

static void set_key(struct drafting *d, struct pcall *c, const char *key)
{
    (void)snprintf(d->key, sizeof(d->key), "%s", key);
    d->d.replay_key = d->key;
    c->event.key = pstr(key);
}

static void set_payload(struct drafting *d, struct pcall *c, const char *payload)
{
    (void)snprintf(d->payload, sizeof(d->payload), "%s", payload);
    d->d.payload = d->payload;
    c->event.payload = pstr(d->payload);
}

/* Few keys and few contents: they meet. */
static void pick_key(struct actor *a, struct drafting *d, struct pcall *c)
{
    static const char *const keys[] = { "k0", "k1", "k2", "k3" };

    set_key(d, c, keys[pick_of(a->op, 20, COUNT_OF(keys))]);
}

static void pick_target(struct actor *a, struct drafting *d, struct pcall *c)
{
    c->has_target = pick_of(a->op, 21, 12) > 0;
    c->target = pscope_pick(a->op, 22);
    if (c->has_target)
        d->d.wake_target = pscope_public(c->target);
}

static void draft(struct actor *a, enum ptype type, struct drafting *d, struct pcall *c)
{
    unsigned n = pick_of(a->op, 23, 3);
    char text[64];

    c->type = type;
    c->event.type = pstr(ptype_name(type));
    d->d = (struct belay_event_draft){ .size = sizeof(d->d),
                                       .process_id = pname(c->proc),
                                       .event_type = ptype_name(type) };
    (void)snprintf(text, sizeof(text), "{\"n\":%u}", n);
    if (type == PT_NOTE && pick_of(a->op, 24, 8) == 0) {
        c->good = false;
        (void)snprintf(text, sizeof(text), "{\"n\":\"x\"}");
    } else if (type == PT_WAKE || type == PT_RING) {
        c->good = pick_of(a->op, 24, 8) > 0;
        (void)snprintf(text, sizeof(text), "{\"bell\":\"b%u\"%s}", n % 2,
                       c->good ? ",\"text\":\"t\"" : "");
        if (type == PT_RING)
            c->event.wake.dedupe = pstr(n % 2 ? "b1" : "b0");
        pick_target(a, d, c);
    } else if (type == PT_DONE) {
        char output[96];
        (void)snprintf(output, sizeof(output), "{\"type\":\"success\",\"value\":%s}",
                       text);
        c->output = pstr(output);
    }
    set_payload(d, c, text);
}

/* Under a lease, good or not, or by somebody's authority. */
static void pick_right(struct actor *a, struct pcall *c,
                       const struct belay_process_lease **lease, int *authority)
{
    unsigned how = pick_of(a->op, 25, 6);

    if (how < 2)
        c->lease = pheld_any(a, c->proc, 26);
    if (c->lease)
        *lease = &c->lease->lease;
    else
        *authority = how == 5 ? BELAY_AUTHORITY_NONE : (int)pick_of(a->op, 27, 3) + 1;
    c->event.authority = *authority;
}

static void send(struct actor *a, struct drafting *d, struct pcall *c,
                 const struct proc_site *site)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_appended out = { .event = NULL };
    struct belay_error err = { .code = 0 };
    belay_rc rc = proc_append(site, &d->d, &arena, &out, &err);

    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc || a->sim->rule)
        return;
    const struct pevent *e =
        pevent_at(a->sim->procs->cur, c->proc, out.event->sequence);
    if (c->changed ? out.event->sequence != c->appended : !out.replayed && c->lost == 0)
        violation(a->sim, "once", "an event is said to be %lld, and is not",
                  (long long)out.event->sequence);
    else if (e && a->sim->procs->born[c->proc] < c->run_no &&
             (e->type != c->event.type || e->payload != c->event.payload))
        violation(a->sim, "E4", "an append was answered with another event");
    else if (out.event->wake && out.event->wake->sequence != out.event->sequence)
        violation(a->sim, "answer", "a wake of another event");
}

static void append_some(struct actor *a, enum ptype type)
{
    struct proc_site site;
    struct drafting d;

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_APPEND, pproc_pick(a));
    draft(a, type, &d, c);
    if (pick_of(a->op, 2, 3) == 0 || type == PT_DONE || type == PT_CANCEL_REQUESTED)
        pick_key(a, &d, c);
    if ((type == PT_DONE || type == PT_CANCEL_REQUESTED) &&
        pick_of(a->op, 3, 10) == 0) {
        d.d.replay_key = NULL;
        c->event.key = 0;
    }
    if (type == PT_DONE)
        pick_right(a, c, &d.d.lease, &d.d.authority);
    else if (pick_of(a->op, 4, 4) == 0 && (c->lease = pheld_any(a, c->proc, 26)))
        d.d.lease = &c->lease->lease;
    send(a, &d, c, &site);
}

void op_pappend(struct actor *a)
{
    static const enum ptype types[] = { PT_NOTE, PT_NOTE,  PT_NOTE,    PT_NOTE,
                                        PT_DONE, PT_EXTRA, PT_UNKNOWN, PT_WAKE };

    append_some(a, types[pick_of(a->op, 0, COUNT_OF(types))]);
}

void op_psay(struct actor *a)
{
    append_some(a, pick_of(a->op, 0, 2) ? PT_WAKE : PT_RING);
}

/* --- the end --- */

static const struct {
    enum ptype type;
    const char *output;
} outputs[] = {
    { PT_COMPLETED, "{\"type\":\"success\",\"value\":1}" },
    { PT_COMPLETED, "{\"type\":\"success\",\"value\":2}" },
    { PT_FAILED, "{\"class\":\"execution\",\"code\":\"c\",\"message\":\"m\",\"type\":"
                 "\"failure\"}" },
    { PT_CANCELLED, "{\"message\":\"m\",\"type\":\"cancelled\"}" },
};

static void complete(struct actor *a, unsigned proc, const struct pheld *held)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    unsigned which = pick_of(a->op, 40, COUNT_OF(outputs));
    struct belay_process_end end = { .size = sizeof(end),
                                     .process_id = pname(proc),
                                     .await_output = outputs[which].output };
    struct belay_completed out = { .process = NULL };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    char text[160];

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_APPEND, proc);
    c->type = outputs[which].type;
    c->event.type = pstr(ptype_name(outputs[which].type));
    c->output = pstr(outputs[which].output);
    (void)snprintf(text, sizeof(text), "{\"await_output\":%s}", outputs[which].output);
    c->event.payload = pstr(text);
    (void)snprintf(text, sizeof(text), "process:%s:terminal:%s", pname(proc),
                   ptype_name(outputs[which].type));
    c->event.key = pstr(text);
    c->lease = held;
    if (held)
        end.lease = &held->lease;
    else
        pick_right(a, c, &end.lease, &end.authority);
    belay_rc rc = proc_complete(&site, &end, &arena, &out, &err);
    if (!pcall_end(c, rc))
        return;
    pcall_judge(c, rc, &err);
    if (rc == BELAY_OK && out.process->status == BELAY_PROCESS_RUNNING)
        violation(a->sim, "D2", "a process has ended, and is said to run");
}

void op_pcomplete(struct actor *a)
{
    complete(a, pproc_pick(a), NULL);
}

/* Holds a process, tells something, ends it: at times too late. */
void op_pworker(struct actor *a)
{
    struct proc_site site;
    struct drafting d;
    unsigned proc = pproc_pick(a);

    op_please(a);
    if (a->sim->running->dead || a->sim->rule)
        return;
    const struct pheld *held = pheld_any(a, proc, 0);
    for (unsigned i = 0; i < pick_of(a->op, 5, 3) && held; i++) {
        if (!psite(a, &site))
            return;
        struct pcall *c = pcall_begin(a, P_APPEND, proc);
        draft(a, PT_NOTE, &d, c);
        c->lease = held;
        d.d.lease = &held->lease;
        send(a, &d, c, &site);
        turn_over(a->sim);
        if (a->sim->running->dead || a->sim->rule)
            return;
    }
    if (held && pick_of(a->op, 6, 3) == 0)
        complete(a, proc, held);
}

/* --- the wish --- */

void op_pcancel(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static const char *const reasons[] = { NULL, "why", "gone" };
    const char *reason = reasons[pick_of(a->op, 2, COUNT_OF(reasons))];
    struct belay_appended out = { .event = NULL };
    struct belay_error err = { .code = 0 };
    struct proc_site site;
    char text[64];

    if (!psite(a, &site))
        return;
    struct pcall *c = pcall_begin(a, P_APPEND, pproc_pick(a));
    c->type = PT_CANCEL_REQUESTED;
    c->event.type = pstr(ptype_name(PT_CANCEL_REQUESTED));
    (void)snprintf(text, sizeof(text), "{\"reason\":%s%s%s}", reason ? "\"" : "",
                   reason ? reason : "null", reason ? "\"" : "");
    c->event.payload = pstr(text);
    c->event.key = mix(pstr("cancel"), c->event.payload) | 1U;
    belay_rc rc = proc_cancel(&site, pname(c->proc), reason, &arena, &out, &err);
    if (pcall_end(c, rc))
        pcall_judge(c, rc, &err);
}
