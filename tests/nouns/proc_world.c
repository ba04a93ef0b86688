/* Registering, appending and looking, in short. */
#include "proc.h"

const char proc_types[] =
    "[{\"name\":\"producer.line\",\"payload_schema\":{\"schema\":{\"type\":\"object\","
    "\"properties\":{\"line\":{\"type\":\"string\"}},\"required\":[\"line\"]}}},"
    "{\"name\":\"producer.wake\",\"semantics\":{\"wake\":{\"input\":{\"pointer\":"
    "\"/text\"}}}},"
    "{\"name\":\"producer.done\",\"semantics\":{\"terminal\":{\"state\":\"completed\","
    "\"await_output\":{\"pointer\":\"/result\"}}}},"
    "{\"name\":\"execution.completed\"}]";

/* --- registering --- */

belay_rc enroll_try(struct world *w, struct belay_registration r,
                    struct belay_registered *out)
{
    r.size = sizeof(r);
    r.process_id = r.process_id ? r.process_id : "p";
    return belay_process_register(w->use, &r, w->arena, out, &w->err);
}

const struct belay_process *enroll(struct world *w, struct belay_registration r)
{
    struct belay_registered out = { 0 };

    r.event_types = r.event_types ? r.event_types : proc_types;
    return RC(w, enroll_try(w, r, &out), BELAY_OK) ? out.process : NULL;
}

void enroll_id(struct world *w, const char *id)
{
    (void)enroll(w, (struct belay_registration){ .process_id = id });
}

const struct belay_process *proc_now(struct world *w, const char *id)
{
    const struct belay_process *p = NULL;

    (void)RC(w, belay_process_get(w->use, id, w->arena, &p, &w->err), BELAY_OK);
    return p;
}

int proc_status(struct world *w, const char *id)
{
    const struct belay_process *p = proc_now(w, id);

    return p ? p->status : -1;
}

/* --- events --- */

belay_rc note_try(struct world *w, struct belay_event_draft d,
                  struct belay_appended *out)
{
    struct belay_appended none = { 0 };

    d.size = sizeof(d);
    d.process_id = d.process_id ? d.process_id : "p";
    d.payload = d.payload ? d.payload : "{}";
    return belay_process_append(w->use, &d, w->arena, out ? out : &none, &w->err);
}

const struct belay_process_event *note(struct world *w, struct belay_event_draft d)
{
    struct belay_appended out = { 0 };

    return RC(w, note_try(w, d, &out), BELAY_OK) ? out.event : NULL;
}

int64_t line(struct world *w, const char *id, const char *what)
{
    const struct belay_process_event *e = note(
        w, (struct belay_event_draft){ .process_id = id,
                                       .event_type = "producer.line",
                                       .payload = text(w, "{\"line\":\"%s\"}", what) });

    return e ? e->sequence : -1;
}

const struct belay_process_event *wake(struct world *w, const char *id,
                                       const char *session, const char *what)
{
    return note(
        w, (struct belay_event_draft){ .process_id = id,
                                       .event_type = "producer.wake",
                                       .payload = text(w, "{\"text\":\"%s\"}", what),
                                       .wake_target = { .session_id = session } });
}

belay_rc finish_try(struct world *w, struct belay_process_end e,
                    struct belay_completed *out)
{
    struct belay_completed none = { 0 };

    e.size = sizeof(e);
    e.process_id = e.process_id ? e.process_id : "p";
    e.await_output = e.await_output ? e.await_output : SUCCESS;
    return belay_process_complete(w->use, &e, w->arena, out ? out : &none, &w->err);
}

void finish_process(struct world *w, const char *id)
{
    (void)RC(w,
             finish_try(w,
                        (struct belay_process_end){
                            .process_id = id, .authority = BELAY_AUTHORITY_OPERATOR },
                        NULL),
             BELAY_OK);
}

struct belay_process_events read_events(struct world *w,
                                        struct belay_process_event_request r)
{
    struct belay_process_events out = { 0 };

    r.size = sizeof(r);
    r.process_id = r.process_id ? r.process_id : "p";
    (void)RC(w, belay_process_events(w->use, &r, w->arena, &out, &w->err), BELAY_OK);
    return out;
}

belay_rc wait_type(struct world *w, const char *id, const char *type, int64_t after,
                   int64_t wait_ms, struct belay_cancel *cancel,
                   const struct belay_process_event **out)
{
    struct belay_process_event_request r = { .size = sizeof(r),
                                             .process_id = id,
                                             .event_type = type,
                                             .after = after,
                                             .wait_ms = wait_ms,
                                             .cancel = cancel };

    return belay_process_wait_event(w->use, &r, w->arena, out, &w->err);
}

const char *log_of(struct world *w, const char *id, int64_t after)
{
    const char *out = "";
    struct belay_process_events page;

    do {
        page = read_events(w, (struct belay_process_event_request){ .process_id = id,
                                                                    .after = after });
        for (size_t i = 0; i < page.n; i++)
            out = text(w, "%s%s%lld:%s", out, *out ? " " : "",
                       (long long)page.items[i].sequence, page.items[i].event_type);
        after = page.next_after;
    } while (page.n > 0);
    return out;
}

const char *wake_seqs(struct world *w, const char *id, int64_t after)
{
    const char *out = "";
    struct belay_process_events page =
        read_events(w, (struct belay_process_event_request){
                           .process_id = id, .after = after, .wakes_only = true });

    for (size_t i = 0; i < page.n; i++)
        out = text(w, "%s%s%lld", out, *out ? " " : "",
                   (long long)page.items[i].sequence);
    return out;
}

const char *wake_states(struct world *w, const char *id)
{
    struct belay_wake_page page = { .size = sizeof(page),
                                    .all = true,
                                    .process_id = id };
    struct belay_wakes found = { 0 };
    const char *out = "";

    (void)RC(w, belay_process_wakes(w->use, &page, w->arena, &found, &w->err),
             BELAY_OK);
    for (size_t i = 0; i < found.n; i++)
        out = text(w, "%s%s%lld %s", out, *out ? ", " : "",
                   (long long)found.items[i].sequence,
                   belay_wake_state_name(found.items[i].state));
    return out;
}

bool ack(struct world *w, const char *id, int64_t seq)
{
    bool settled = false;

    (void)RC(w, belay_process_ack(w->use, id, seq, &settled, &w->err), BELAY_OK);
    return settled;
}

/* --- leases --- */

belay_rc hold_try(struct world *w, const char *id, const char *owner, int64_t lease_ms)
{
    const struct belay_process_lease *out;

    return belay_process_lease(w->use, id, owner, lease_ms, NULL, w->arena, &out,
                               &w->err);
}

const struct belay_process_lease *hold(struct world *w, const char *id,
                                       const char *owner, int64_t lease_ms)
{
    const struct belay_process_lease *out = NULL;

    (void)RC(
        w,
        belay_process_lease(w->use, id, owner, lease_ms, NULL, w->arena, &out, &w->err),
        BELAY_OK);
    return out;
}

/* --- grants --- */

struct belay_scope scope(const char *session, const char *frame)
{
    return (struct belay_scope){ session, frame };
}

void give(struct world *w, const char *session, const char *frame, const char *id)
{
    struct belay_scope to = scope(session, frame);

    (void)RC(w, belay_process_grant(w->use, &to, id, NULL, NULL, &w->err), BELAY_OK);
}

bool has(struct world *w, const char *session, const char *frame, const char *id)
{
    struct belay_scope of = scope(session, frame);
    bool out = false;

    (void)RC(w, belay_process_has_grant(w->use, &of, id, &out, &w->err), BELAY_OK);
    return out;
}

static struct belay_process_grants grants(struct world *w, struct belay_grant_page page)
{
    struct belay_process_grants out = { 0 };

    page.size = sizeof(page);
    (void)RC(w, belay_process_grants(w->use, &page, w->arena, &out, &w->err), BELAY_OK);
    return out;
}

const char *granted(struct world *w, const char *session, const char *frame, bool live)
{
    struct belay_grant_page page = { .live = live, .scope = scope(session, frame) };
    const char *out = "";
    struct belay_process_grants found;

    do {
        found = grants(w, page);
        for (size_t i = 0; i < found.n; i++)
            out = text(w, "%s%s%s", out, *out ? " " : "", found.items[i].process_id);
        page.cursor = found.next_cursor;
    } while (page.cursor);
    return out;
}

const char *holders(struct world *w, const char *id)
{
    struct belay_process_grants found =
        grants(w, (struct belay_grant_page){ .process_id = id });
    const char *out = "";

    for (size_t i = 0; i < found.n; i++) {
        const struct belay_scope *s = &found.items[i].scope;
        out = text(w, "%s%s%s%s%s", out, *out ? " " : "", s->session_id,
                   s->frame_id ? "/" : "", s->frame_id ? s->frame_id : "");
    }
    return out;
}

/* --- many --- */

const char *procs(struct world *w, struct belay_process_page page)
{
    struct belay_processes found = { 0 };
    const char *out = "";

    page.size = sizeof(page);
    do {
        if (!RC(w, belay_process_list(w->use, &page, w->arena, &found, &w->err),
                BELAY_OK))
            return "refused";
        for (size_t i = 0; i < found.n; i++)
            out = text(w, "%s%s%s", out, *out ? " " : "", found.items[i].process_id);
        page.cursor = found.next_cursor;
    } while (page.cursor);
    return out;
}

const char *changes(struct world *w, const char *after, const char **next)
{
    struct belay_change_request r = { .size = sizeof(r), .after = after };
    struct belay_process_changes page = { 0 };
    const char *out = "";

    do {
        if (!RC(w, belay_process_changed_since(w->use, &r, w->arena, &page, &w->err),
                BELAY_OK))
            return "refused";
        for (size_t i = 0; i < page.n; i++)
            out = text(w, "%s%s%s %s", out, *out ? ", " : "",
                       belay_process_change_name(page.items[i].kind),
                       page.items[i].process_id);
        r.after = page.cursor;
    } while (page.n > 0);
    if (next)
        *next = page.cursor;
    return out;
}

static const char *or_none(const char *s)
{
    return s ? s : "-";
}

const char *all_of_process(struct world *w, const char *id)
{
    const struct belay_process *p = proc_now(w, id);
    const char *out;

    if (!p)
        return "none";
    out =
        text(w, "%s %s %s %s %s %s %s %lld %lld %lld %lld | %s %lld %lld %lld\n%s\n%s",
             p->process_id, p->registration_hash, p->input, p->event_types,
             or_none(p->external_ref), or_none(p->await_output),
             belay_process_status_name(p->status), (long long)p->last_sequence,
             (long long)p->updated_at_ms, (long long)p->finished_at_ms,
             (long long)p->purge_at_ms, or_none(p->lease_owner), (long long)p->fence,
             (long long)p->lease_claimed_at_ms, (long long)p->lease_expires_at_ms,
             holders(w, id), wake_states(w, id));
    struct belay_process_events e =
        read_events(w, (struct belay_process_event_request){ .process_id = id });
    for (size_t i = 0; i < e.n; i++)
        out = text(w, "%s\n  %lld %s %s %s %s %lld %d", out,
                   (long long)e.items[i].sequence, e.items[i].event_type,
                   e.items[i].payload, e.items[i].payload_hash,
                   or_none(e.items[i].replay_key), (long long)e.items[i].occurred_at_ms,
                   (int)e.items[i].terminal);
    return out;
}

const char *all_processes(struct world *w)
{
    struct belay_error before = w->err;
    struct belay_process_page page = { .size = sizeof(page), .limit = 1000 };
    struct belay_processes found = { 0 };
    const char *out = changes(w, NULL, NULL);

    (void)RC(w, belay_process_list(w->use, &page, w->arena, &found, &w->err), BELAY_OK);
    for (size_t i = 0; i < found.n; i++)
        out = text(w, "%s\n%s", out, all_of_process(w, found.items[i].process_id));
    out = text(w, "%s\n%s", out, everything(w));
    w->err = before;
    return out;
}
