/* Appending events: any, the one that ends a process, the one that asks it to end. */
#include "base/json.h"
#include "work/process_event.h"

/* Another registration under the same id: so often in a row, then somebody is at war. */
#define STALE_MAX 8

struct appending {
    struct proc_draft draft;
    bool describe; /* the process is asked for, too */

    /* Of one run of the body. */
    struct proc_applied applied;
    const struct belay_process_event *event;
    const struct belay_process *process;
};

static belay_rc answer(struct txn *t, struct appending *q)
{
    const struct proc_draft *d = &q->draft;
    const struct event_facts_of of = { d->process, d->reg->owner_session,
                                       d->reg->caused_by };
    const struct value key[] = { value_text(d->process),
                                 value_i64(q->applied.event.seq) };
    struct belay_process_event *out = arena_zalloc(txn_arena(t), 1, sizeof(*out));
    const struct row *wake = NULL;
    belay_rc rc = BELAY_OK;

    if (!out)
        return err_no_memory(txn_error(t), "an event");
    if (q->applied.event.wakes)
        rc = txn_get(t, &row_process_wake, key, &wake);
    if (rc == BELAY_OK)
        rc = event_show(t, &of, &q->applied.event, wake, txn_arena(t), out);
    if (rc == BELAY_OK && q->describe)
        rc = proc_describe(t, d->process, txn_arena(t), &q->process);
    q->event = out;
    return rc;
}

static belay_rc append_body(struct txn *t, void *arg)
{
    struct appending *q = arg;
    belay_rc rc = append_in(t, &q->draft, &q->applied);

    return rc || q->applied.stale ? rc : answer(t, q);
}

/* With the registration as the book has it, and anew where the process has another one. */
static belay_rc run(const struct proc_site *site, struct appending *q,
                    struct belay_arena *a, struct belay_error *err)
{
    struct proc_draft *d = &q->draft;

    for (int i = 0; i < STALE_MAX; i++) {
        CLEANUP(proc_reg_dropp) const struct proc_reg *reg = NULL;
        belay_rc rc = proc_reg_get(site, d->process, i > 0, &reg, err);
        d->reg = reg;
        if (rc == BELAY_OK)
            rc = draft_judge(d, a, err);
        if (rc == BELAY_OK)
            rc = txn_run(site->space, append_body, q, NULL, a, err);
        if (rc || !q->applied.stale)
            return rc;
    }
    return err_set(err, BELAY_CONTENTION, "process: it is registered again and again");
}

/* --- what is asked --- */

static belay_rc set_payload(struct proc_draft *d, json_t *payload,
                            struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    belay_rc rc = json_write(payload, &text, err);

    if (rc)
        return rc;
    if (text.len > PROCESS_JSON_MAX)
        return err_reason(err, BELAY_INVALID, "too_large",
                          "payload: %zu bytes, at most %zu are taken", text.len,
                          PROCESS_JSON_MAX);
    d->payload = payload;
    return arena_copy(a, buf_view(&text), &d->payload_text)
               ? BELAY_OK
               : err_no_memory(err, "a payload");
}

static belay_rc check(const struct proc_draft *d, struct belay_error *err)
{
    const struct append_request request = { .process_id = d->process,
                                            .event_type = d->type,
                                            .payload = d->payload,
                                            .replay_key = d->key,
                                            .target =
                                                d->has_target ? &d->target : NULL };

    if (d->authority < BELAY_AUTHORITY_NONE || d->authority > BELAY_AUTHORITY_OPERATOR)
        return err_reason(err, BELAY_INVALID, "authority", "authority: there is no %d",
                          d->authority);
    return append_check(&request, err);
}

static void set_target(struct proc_draft *d, const struct belay_scope *target)
{
    d->has_target = target->session_id != NULL;
    if (d->has_target)
        d->target = proc_scope(target);
}

belay_rc proc_append(const struct proc_site *site,
                     const struct belay_event_draft *draft, struct belay_arena *a,
                     struct belay_appended *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *payload = NULL;
    struct appending q = { .draft = { .process = bytes_str(draft->process_id),
                                      .type = bytes_str(draft->event_type),
                                      .lease = draft->lease,
                                      .authority = draft->authority } };
    belay_rc rc = proc_read_json(draft->payload, "payload", &payload, err);

    if (rc)
        return rc;
    if (draft->replay_key && draft->replay_key[0] != '\0')
        q.draft.key = bytes_str(draft->replay_key);
    set_target(&q.draft, &draft->wake_target);
    rc = set_payload(&q.draft, payload, a, err);
    if (rc == BELAY_OK)
        rc = check(&q.draft, err);
    if (rc == BELAY_OK)
        rc = run(site, &q, a, err);
    if (rc == BELAY_OK)
        *out = (struct belay_appended){ q.event, q.applied.replayed };
    return rc;
}

/* --- the end --- */

/* The event that an output stands for. */
static belay_rc make_end(struct proc_draft *d, const json_t *output, json_t **payload,
                         struct belay_arena *a, struct belay_error *err)
{
    struct await_output read;
    struct bytes text;
    belay_rc rc = await_output_read(output, &read, err);

    if (rc)
        return rc;
    enum process_state state = await_state(read.type);
    d->type = bytes_str(process_state_event(state));
    rc = complete_replay_key(d->process, state, a, &d->key, err);
    if (rc == BELAY_OK)
        rc = complete_payload(&read, a, &text, err);
    if (rc == BELAY_OK)
        rc = json_read(text, 2 * PROCESS_JSON_MAX, payload, err);
    return rc ? rc : set_payload(d, *payload, a, err);
}

belay_rc proc_complete(const struct proc_site *site,
                       const struct belay_process_end *end, struct belay_arena *a,
                       struct belay_completed *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *output = NULL, *payload = NULL;
    struct appending q = { .draft = { .process = bytes_str(end->process_id),
                                      .lease = end->lease,
                                      .authority = end->authority },
                           .describe = true };
    belay_rc rc = proc_check_id(end->process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = proc_read_json(end->await_output, "await_output", &output, err);
    if (rc == BELAY_OK)
        rc = make_end(&q.draft, output, &payload, a, err);
    if (rc)
        return rc;
    set_target(&q.draft, &end->wake_target);
    rc = check(&q.draft, err);
    if (rc == BELAY_OK)
        rc = run(site, &q, a, err);
    if (rc == BELAY_OK)
        *out = (struct belay_completed){ q.process, q.applied.replayed };
    return rc;
}

/* --- the wish that it ends --- */

belay_rc proc_cancel(const struct proc_site *site, const char *process_id,
                     const char *reason, struct belay_arena *a,
                     struct belay_appended *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *payload = NULL;
    struct appending q = { .draft = { .process = bytes_str(process_id) } };
    struct proc_draft *d = &q.draft;
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = cancel_draft(d, reason, &payload, a, err);
    if (rc == BELAY_OK)
        rc = run(site, &q, a, err);
    if (rc == BELAY_OK)
        *out = (struct belay_appended){ q.event, q.applied.replayed };
    return rc;
}

belay_rc cancel_draft(struct proc_draft *d, const char *reason, json_t **payload,
                      struct belay_arena *a, struct belay_error *err)
{
    struct bytes why = reason ? bytes_str(reason) : bytes_of(NULL, 0), text;
    belay_rc rc = BELAY_OK;

    if (reason && (why.len > CANCEL_REASON_MAX || !bytes_is_utf8(why)))
        return err_reason(err, BELAY_INVALID, "reason",
                          "reason: must be UTF-8 of at most %d bytes",
                          CANCEL_REASON_MAX);
    d->type = bytes_str(EVENT_CANCEL_REQUESTED);
    rc = cancel_payload(why, a, &text, err);
    if (rc == BELAY_OK)
        rc = json_read(text, PROCESS_JSON_MAX, payload, err);
    if (rc == BELAY_OK)
        rc = set_payload(d, *payload, a, err);
    if (rc == BELAY_OK)
        rc = event_payload_hash(d->type, d->payload, d->hash, a, err);
    return rc ? rc : cancel_replay_key(d->process, d->hash, a, &d->key, err);
}
