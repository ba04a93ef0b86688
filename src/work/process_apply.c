/* What appending an event does, the same for whoever appends it. */
#include "base/clock.h"
#include "work/epoch.h"
#include "work/execution_rows.h"
#include "work/process_event.h"

static const char *const authorities[] = {
    [BELAY_AUTHORITY_OWNER] = "owner",
    [BELAY_AUTHORITY_EXTERNAL] = "external",
    [BELAY_AUTHORITY_OPERATOR] = "operator",
    [BELAY_AUTHORITY_EXECUTION] = "execution",
};

const char *proc_authority_name(int authority)
{
    return authority > 0 && (size_t)authority < COUNT_OF(authorities)
               ? authorities[authority]
               : NULL;
}

/* --- before the body --- */

static struct append_request request_of(const struct proc_draft *d)
{
    return (struct append_request){ .process_id = d->process,
                                    .event_type = d->type,
                                    .payload = d->payload,
                                    .replay_key = d->key,
                                    .target = d->has_target ? &d->target : NULL };
}

/* A wake of a terminal event is refused for the state first, if that is so. */
static bool depends_on_state(const struct belay_error *why)
{
    return strcmp(why->reason, "wake_target") == 0;
}

belay_rc draft_judge(struct proc_draft *d, struct belay_arena *a,
                     struct belay_error *err)
{
    const struct append_request request = request_of(d);
    const struct append_facts facts = { .event_types = d->reg->event_types,
                                        .state = PROCESS_RUNNING };
    struct append_answer answer;
    struct belay_error why = { .code = 0 };
    belay_rc rc = append_judge(&request, &facts, a, &answer, &why);

    d->refused = BELAY_OK;
    d->plain = rc == BELAY_OK && !answer.meaning.terminal && !answer.meaning.wake;
    if (rc == BELAY_INVALID) {
        if (!depends_on_state(&why)) {
            d->refused = rc;
            d->why = why;
        }
        rc = BELAY_OK;
    }
    if (rc && err)
        *err = why;
    return rc ? rc : event_payload_hash(d->type, d->payload, d->hash, a, err);
}

/* --- reading --- */

/* Everything that is read whatever comes of it, in one round trip. */
struct loaded {
    struct proc p;
    const struct row *key;
    int64_t now_ms, epoch;
};

static belay_rc load(struct txn *t, const struct proc_draft *d, struct loaded *out)
{
    const struct value key[] = { value_text(d->process), value_text(d->key) };
    struct row_want wants[3] = { { &row_process, key } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    size_t n = 1;

    if (d->key.ptr)
        wants[n++] = (struct row_want){ &row_process_key, key };
    if (d->lease)
        wants[n++] = (struct row_want){ &row_epoch, NULL };
    belay_rc rc = txn_get_many(t, wants, n, rows);
    if (rc == BELAY_OK)
        rc = proc_found(t, d->process, rows[0], &out->p);
    if (rc == BELAY_OK && d->lease)
        rc = epoch_in(t, &out->epoch);
    if (rc)
        return rc;
    out->key = d->key.ptr ? rows[1] : NULL;
    return txn_now(t, &out->now_ms);
}

/* --- the end of a process --- */

static belay_rc end_process(struct txn *t, struct proc *p, const struct proc_event *e,
                            struct bytes output)
{
    const struct value end[PROCESS_END_COLUMNS] = { value_text(p->id),
                                                    value_json(output) };
    struct change released[LEASE_COLUMNS];
    size_t n = lease_release_changes(PROCESS_LEASE, released);
    int64_t retention = proc_i64(p, PROCESS_RETENTION_MS, BELAY_PROCESS_RETENTION_MS);

    p->status = e->terminal;
    p->v[PROCESS_STATUS] = value_str(proc_status_name(e->terminal));
    p->v[PROCESS_TERMINAL_SEQ] = value_i64(e->seq);
    p->v[PROCESS_FINISHED_AT_MS] = value_i64(e->at_ms);
    p->v[PROCESS_PURGE_AT_MS] = value_i64(time_add_ms(e->at_ms, retention));
    for (size_t i = 0; i < n; i++) /* its end ends the lease; the fence stays (L2) */
        p->v[released[i].column] = released[i].value;
    belay_rc rc = txn_insert(t, &row_process_end, end);
    if (rc == BELAY_OK && retention < EXEC_RELOOK_MS) /* timers look that often */
        rc = txn_wake(t, bytes_str(TIMERS_TOPIC));
    return rc ? rc : proc_tell(t, p, BELAY_CHANGE_ENDED, e->at_ms, bytes_of(NULL, 0));
}

static belay_rc no_authority(struct txn *t, const struct proc_draft *d, const char *why)
{
    belay_rc rc = txn_fail(t, BELAY_INVALID, "authority", "process `%.*s`: %s",
                           (int)(d->process.len < 100 ? d->process.len : 100),
                           (const char *)d->process.ptr, why);

    err_entity(txn_error(t), d->process);
    return rc;
}

/* P5: whoever ends a process holds it, or may do so without. */
static belay_rc may_end(struct txn *t, const struct proc_draft *d,
                        const struct loaded *l)
{
    struct value key = value_text(d->process);
    const struct row *ref = NULL;
    belay_rc rc = BELAY_OK;

    if (d->lease || d->authority == BELAY_AUTHORITY_OPERATOR ||
        d->authority == BELAY_AUTHORITY_EXECUTION)
        return BELAY_OK;
    if (d->authority == BELAY_AUTHORITY_NONE)
        return no_authority(t, d, "ending it without a lease takes an authority");
    if (d->authority == BELAY_AUTHORITY_EXTERNAL &&
        !bytes_eq(d->reg->kind, bytes_str("external"))) {
        rc = txn_get(t, &row_process_ref, &key, &ref);
        if (rc == BELAY_OK && !ref)
            rc = no_authority(t, d, "it is not run by an external system");
    }
    return rc ? rc : proc_unheld(t, &l->p, l->now_ms);
}

/* --- replays --- */

static belay_rc read_event(struct txn *t, struct bytes process, int64_t seq,
                           struct proc_event *out)
{
    struct log_entries entries = { .n = 0 };
    const struct row *wake;
    struct bytes stream;

    if (!event_stream(process, txn_arena(t), &stream))
        return err_no_memory(txn_error(t), "an event");
    belay_rc rc = txn_log_read(t, stream, seq - 1, 1, &entries);
    if (rc == BELAY_OK && (entries.n == 0 || entries.entry[0].seq != seq)) {
        rc = txn_fail(t, BELAY_CORRUPT, "event", "process %.*s: event %lld is missing",
                      (int)process.len, (const char *)process.ptr, (long long)seq);
        err_entity(txn_error(t), process);
    }
    if (rc == BELAY_OK)
        rc = event_decode(t, process, &entries.entry[0], out);
    return rc ? rc : event_fetch(t, process, out, 1, &wake);
}

/* The log is the truth: a process that runs although its terminal event is there has
 * ended with that. */
static belay_rc repair(struct txn *t, const struct proc_draft *d, struct loaded *l,
                       const struct proc_event *e)
{
    struct event_meaning meaning = { .terminal = false };
    struct event_type type;
    struct bytes topic;
    bool found = false;
    belay_rc rc = event_type_find(d->reg->event_types, e->type, txn_arena(t), &type,
                                  &found, txn_error(t));

    if (rc == BELAY_OK && found)
        rc = event_type_mean(&type, d->payload, d->process, e->seq, txn_arena(t),
                             &meaning, txn_error(t));
    if (rc || !found || !meaning.terminal)
        return rc;
    rc = end_process(t, &l->p, e, meaning.await_output);
    if (rc == BELAY_OK)
        rc = proc_write(t, &l->p);
    if (rc == BELAY_OK && !proc_topic(d->process, txn_arena(t), &topic))
        rc = err_no_memory(txn_error(t), "a topic");
    return rc ? rc : txn_wake(t, topic);
}

static belay_rc replay(struct txn *t, const struct proc_draft *d, struct loaded *l,
                       struct proc_applied *out)
{
    if (!bytes_eq(row_bytes(l->key, PROCESS_KEY_HASH), bytes_str(d->hash))) {
        belay_rc rc = txn_fail(
            t, BELAY_REPLAY_CONFLICT, "replay_key",
            "process `%.*s`: replay key `%.*s` conflicts with what it "
            "was used for",
            (int)(d->process.len < 80 ? d->process.len : 80),
            (const char *)d->process.ptr, (int)(d->key.len < 80 ? d->key.len : 80),
            (const char *)d->key.ptr);
        err_entity(txn_error(t), d->key);
        return rc;
    }
    belay_rc rc =
        read_event(t, d->process, row_i64(l->key, PROCESS_KEY_SEQ, 0), &out->event);
    out->replayed = true;
    if (rc == BELAY_OK && out->event.terminal && l->p.status == BELAY_PROCESS_RUNNING)
        rc = repair(t, d, l, &out->event);
    return rc;
}

/* --- a new one --- */

static belay_rc judge(struct txn *t, const struct proc_draft *d, const struct loaded *l,
                      struct append_answer *out)
{
    const struct append_request request = request_of(d);
    const struct append_facts facts = { .event_types = d->reg->event_types,
                                        .state = proc_state(l->p.status),
                                        .last_sequence = l->p.last_seq };

    return append_judge(&request, &facts, txn_arena(t), out, txn_error(t));
}

/* What the event is, and what it means: *out_output is set for one that ends the
 * process. */
static belay_rc make_event(struct txn *t, const struct proc_draft *d,
                           const struct loaded *l, struct proc_event *out,
                           struct bytes *out_output)
{
    struct append_answer answer = { .verdict = APPEND_NEW };

    *out = (struct proc_event){ .type = d->type,
                                .hash = bytes_str(d->hash),
                                .key = d->key,
                                .payload = d->payload_text,
                                .seq = l->p.last_seq + 1, /* E1 */
                                .at_ms = l->now_ms,
                                .fence = d->lease ? l->p.lease.fence : 0,
                                .apart = d->payload_text.len > EVENT_INLINE_MAX };
    if (d->plain && out->seq < RANK_MAX)
        return BELAY_OK;
    belay_rc rc = judge(t, d, l, &answer);
    if (rc)
        return rc;
    const struct event_meaning *m = &answer.meaning;
    if (m->terminal) {
        out->terminal = proc_status(m->state);
        out->authority = d->lease ? 0 : d->authority;
        *out_output = m->await_output;
    }
    out->wakes = m->wake;
    if (!m->wake)
        return BELAY_OK;
    out->wake = (struct event_wake){ .session = d->target.session,
                                     .dedupe = m->dedupe_key,
                                     .input = m->wake_input };
    if (d->target.frame.len > 0)
        out->wake.frame = d->target.frame;
    return arena_copy(txn_arena(t), bytes_str(answer.wake_id), &out->wake.id)
               ? BELAY_OK
               : err_no_memory(txn_error(t), "a wake");
}

static belay_rc write_beside(struct txn *t, const struct proc_draft *d,
                             const struct proc_event *e)
{
    struct value process = value_text(d->process), seq = value_i64(e->seq);
    const struct value key[PROCESS_KEY_COLUMNS] = { process, value_text(d->key), seq,
                                                    value_text(e->hash) };
    const struct value payload[PROCESS_PAYLOAD_COLUMNS] = { process, seq,
                                                            value_json(e->payload) };
    const struct event_facts_of of = { d->process, d->reg->owner_session,
                                       d->reg->caused_by };
    belay_rc rc = BELAY_OK;

    if (e->key.ptr)
        rc = txn_insert(t, &row_process_key, key);
    if (rc == BELAY_OK && e->apart)
        rc = txn_insert(t, &row_process_payload, payload);
    return rc || !e->wakes ? rc : wake_deliver(t, &of, e); /* P3 */
}

static belay_rc write_log(struct txn *t, const struct proc_draft *d,
                          const struct proc_event *e)
{
    CLEANUP(buf_release) struct buf entry = { 0 };
    struct bytes stream, topic;

    event_encode(e, &entry);
    if (entry.failed || !event_stream(d->process, txn_arena(t), &stream) ||
        !proc_topic(d->process, txn_arena(t), &topic))
        return err_no_memory(txn_error(t), "an event");
    belay_rc rc = txn_log_append(t, stream, e->seq, buf_view(&entry));
    return rc ? rc : txn_wake(t, topic);
}

static belay_rc append_new(struct txn *t, const struct proc_draft *d, struct loaded *l,
                           struct proc_applied *out)
{
    struct proc_event *e = &out->event;
    struct bytes output = { .ptr = NULL };
    belay_rc rc = make_event(t, d, l, e, &output);

    if (rc == BELAY_OK && e->terminal)
        rc = may_end(t, d, l);
    if (rc)
        return rc;
    l->p.v[PROCESS_LAST_SEQ] = value_i64(e->seq);
    l->p.v[PROCESS_UPDATED_AT_MS] = value_i64(l->now_ms);
    rc = write_log(t, d, e);
    if (rc == BELAY_OK)
        rc = write_beside(t, d, e);
    if (rc == BELAY_OK && e->terminal)
        rc = end_process(t, &l->p, e, output); /* P2, E3 */
    if (rc == BELAY_OK && bytes_eq(e->type, bytes_str(EVENT_CANCEL_REQUESTED)))
        rc = proc_tell(t, &l->p, BELAY_CHANGE_CANCEL_REQUESTED, l->now_ms,
                       bytes_of(NULL, 0));
    return rc ? rc : proc_write(t, &l->p); /* P1 */
}

belay_rc append_in(struct txn *t, const struct proc_draft *d, struct proc_applied *out)
{
    struct loaded l = { .key = NULL };
    belay_rc rc = load(t, d, &l);

    *out = (struct proc_applied){ .replayed = false };
    if (rc)
        return rc;
    out->stale = !bytes_eq(l.p.hash, d->reg->hash);
    if (out->stale)
        return BELAY_OK;
    if (l.key) {
        rc = replay(t, d, &l, out);
    } else {
        if (d->lease)
            rc = proc_hold(t, &l.p, d->lease, l.epoch); /* L4 */
        if (rc == BELAY_OK && d->refused) {
            *txn_error(t) = d->why;
            rc = d->refused;
        }
        if (rc == BELAY_OK)
            rc = append_new(t, d, &l, out);
    }
    out->process = l.p;
    return rc;
}
