/* Registering processes, and where they run elsewhere. */
#include "base/clock.h"
#include "base/json.h"
#include "work/epoch.h"
#include "work/process_rows.h"

struct registering {
    struct registration_ready ready;
    struct bytes kind;
    int64_t retention_ms;
    struct belay_registered out;
};

/* --- before the body --- */

/* The JSON of a registration, read. */
struct parts {
    json_t *input, *event_types, *caused_by;
};

static void parts_release(struct parts *p)
{
    json_decref(p->input);
    json_decref(p->event_types);
    json_decref(p->caused_by);
}

static belay_rc read_parts(const struct belay_registration *r, struct parts *out,
                           struct belay_error *err)
{
    const struct {
        const char *text, *reason;
        json_t **to;
    } texts[] = { { r->input, "input", &out->input },
                  { r->event_types, "event_types", &out->event_types },
                  { r->caused_by, "caused_by", &out->caused_by } };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(texts) && rc == BELAY_OK; i++) {
        if (texts[i].text)
            rc = proc_read_json(texts[i].text, texts[i].reason, texts[i].to, err);
    }
    return rc;
}

static struct bytes optional(const char *text)
{
    return text ? bytes_str(text) : bytes_of(NULL, 0);
}

static belay_rc prepare(struct registering *q, const struct belay_registration *r,
                        struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(parts_release) struct parts parts = { .input = NULL };
    belay_rc rc = read_parts(r, &parts, err);

    if (rc == BELAY_OK && (r->retention_ms < 0 || r->retention_ms > TIME_MAX_MS))
        rc = err_reason(err, BELAY_INVALID, "retention",
                        "retention: %lld ms, must be 0 to %lld",
                        (long long)r->retention_ms, (long long)TIME_MAX_MS);
    if (rc)
        return rc;
    const struct registration given = { .id = bytes_str(r->process_id),
                                        .input = parts.input,
                                        .event_types = parts.event_types,
                                        .owner = proc_scope(&r->owner),
                                        .host_profile = optional(r->host_profile_id),
                                        .caused_by = parts.caused_by };
    rc = registration_prepare(&given, a, &q->ready, err);
    if (rc)
        return rc;
    const char *kind = json_string_value(json_object_get(parts.input, "type"));
    q->retention_ms = r->retention_ms;
    return arena_copy(a, bytes_str(kind ? kind : "external"), &q->kind)
               ? BELAY_OK
               : err_no_memory(err, "a registration");
}

/* --- registering --- */

static belay_rc insert_rows(struct txn *t, const struct registering *q, int64_t now_ms)
{
    const struct registration_ready *r = &q->ready;
    struct value id = value_text(r->id), hash = value_str(r->hash),
                 now = value_i64(now_ms);
    const struct value process[PROCESS_COLUMNS] = {
        [PROCESS_ID] = id,
        [PROCESS_HASH] = hash,
        [PROCESS_STATUS] = value_str(proc_status_name(BELAY_PROCESS_RUNNING)),
        [PROCESS_FIRST_SEQ] = value_i64(1),
        [PROCESS_LAST_SEQ] = value_i64(0),
        [PROCESS_CREATED_AT_MS] = now,
        [PROCESS_UPDATED_AT_MS] = now,
        [PROCESS_RETENTION_MS] =
            q->retention_ms > 0 ? value_i64(q->retention_ms) : value_null(),
    };
    const struct value spec[PROCESS_SPEC_COLUMNS] = {
        [PROCESS_SPEC_ID] = id,
        [PROCESS_SPEC_HASH] = hash,
        [PROCESS_SPEC_KIND] = value_text(q->kind),
        [PROCESS_SPEC_INPUT] = value_json(r->input),
        [PROCESS_SPEC_EVENT_TYPES] = value_json(r->event_types),
        [PROCESS_SPEC_OWNER_SESSION] = value_text(r->owner.session),
        [PROCESS_SPEC_OWNER_FRAME] =
            r->owner.frame.len > 0 ? value_text(r->owner.frame) : value_null(),
        [PROCESS_SPEC_HOST_PROFILE] = value_text(r->host_profile),
        [PROCESS_SPEC_CAUSED_BY] =
            r->caused_by.ptr ? value_json(r->caused_by) : value_null(),
        [PROCESS_SPEC_CREATED_AT_MS] = now,
    };
    belay_rc rc = txn_insert(t, &row_process, process);

    return rc ? rc : txn_insert(t, &row_process_spec, spec);
}

static belay_rc stand(struct txn *t, const struct registering *q, int64_t now_ms)
{
    struct belay_arena *a = txn_arena(t);
    struct bytes id = q->ready.id, owner, running;

    if (!proc_name(PROCESS_OWNER_INDEX, q->ready.owner.session, a, &owner) ||
        !proc_status_index(bytes_str(proc_status_name(BELAY_PROCESS_RUNNING)), a,
                           &running))
        return err_no_memory(txn_error(t), "a process");
    belay_rc rc = txn_rank_add(t, bytes_str(PROCESS_INDEX), now_ms, id);
    if (rc == BELAY_OK)
        rc = txn_rank_add(t, owner, now_ms, id);
    return rc ? rc : txn_rank_add(t, running, 0, id);
}

static belay_rc create(struct txn *t, struct registering *q)
{
    struct proc p;
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    if (rc == BELAY_OK)
        rc = insert_rows(t, q, now_ms);
    if (rc == BELAY_OK)
        rc = stand(t, q, now_ms);
    if (rc == BELAY_OK)
        rc = proc_get(t, q->ready.id, &p);
    return rc ? rc
              : proc_tell(t, &p, BELAY_CHANGE_REGISTERED, now_ms, bytes_of(NULL, 0));
}

static belay_rc register_body(struct txn *t, void *arg)
{
    struct registering *q = arg;
    struct value key = value_text(q->ready.id);
    const struct row_want wants[] = { { &row_process, &key },
                                      { &row_process_spec, &key },
                                      { &row_process_ref, &key },
                                      { &row_process_end, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct proc p;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc)
        return rc;
    q->out.created = rows[0] == NULL;
    if (rows[0]) {
        rc = proc_of(t, rows[0], &p);
        if (rc == BELAY_OK && p.status == PROC_DELETING)
            rc = txn_fail(t, BELAY_WRONG_STATE, "deleting",
                          "process `%.*s`: the one before is being removed",
                          (int)p.id.len, (const char *)p.id.ptr);
        else if (rc == BELAY_OK && !bytes_eq(p.hash, bytes_str(q->ready.hash)))
            rc = refuse_registration(p.id, p.hash, q->ready.hash, txn_error(t));
    } else {
        rc = create(t, q);
    }
    return rc ? rc : proc_describe(t, q->ready.id, txn_arena(t), &q->out.process);
}

belay_rc proc_register(const struct proc_site *site, const struct belay_registration *r,
                       struct belay_arena *a, struct belay_registered *out,
                       struct belay_error *err)
{
    struct registering q = { .retention_ms = 0 };
    belay_rc rc = prepare(&q, r, a, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, register_body, &q, NULL, a, err);
    if (rc == BELAY_OK)
        *out = q.out;
    return rc;
}

/* --- where it runs elsewhere --- */

struct referring {
    struct bytes id, ref;
    const struct belay_process_lease *lease;
    const struct belay_process *out;
};

static belay_rc put_ref(struct txn *t, const struct referring *r,
                        const struct row *before, int64_t now_ms)
{
    const struct value v[PROCESS_REF_COLUMNS] = { value_text(r->id), value_json(r->ref),
                                                  value_i64(now_ms) };
    const struct change changes[] = { { PROCESS_REF_REF, v[PROCESS_REF_REF] },
                                      { PROCESS_REF_AT_MS, v[PROCESS_REF_AT_MS] } };

    return before ? txn_put(t, &row_process_ref, v, changes, COUNT_OF(changes))
                  : txn_insert(t, &row_process_ref, v);
}

static belay_rc ref_body(struct txn *t, void *arg)
{
    struct referring *r = arg;
    struct value key = value_text(r->id);
    const struct row_want wants[] = { { &row_process, &key },
                                      { &row_process_ref, &key },
                                      { &row_epoch, NULL } };
    const struct row *rows[COUNT_OF(wants)];
    struct proc p;
    int64_t now_ms = 0, epoch = 0;
    belay_rc rc = txn_get_many(t, wants, r->lease ? 3 : 2, rows);

    if (rc == BELAY_OK)
        rc = proc_found(t, r->id, rows[0], &p);
    if (rc == BELAY_OK && r->lease)
        rc = epoch_in(t, &epoch);
    if (rc == BELAY_OK && r->lease)
        rc = proc_hold(t, &p, r->lease, epoch); /* L4 */
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = put_ref(t, r, rows[1], now_ms);
    if (rc)
        return rc;
    p.v[PROCESS_UPDATED_AT_MS] = value_i64(now_ms);
    rc = proc_write(t, &p); /* P1 */
    if (rc == BELAY_OK)
        rc = proc_tell(t, &p, BELAY_CHANGE_EXTERNAL_REF, now_ms, bytes_of(NULL, 0));
    return rc ? rc : proc_describe(t, r->id, txn_arena(t), &r->out);
}

static belay_rc make_ref(const char *text, struct belay_arena *a, struct bytes *out,
                         struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *value = NULL;
    CLEANUP(buf_release) struct buf written = { 0 };
    struct external_ref ref;
    belay_rc rc = proc_read_json(text, "external_ref", &value, err);

    if (rc == BELAY_OK)
        rc = external_ref_read(value, &ref, err);
    if (rc == BELAY_OK)
        rc = json_write(value, &written, err);
    if (rc)
        return rc;
    return arena_copy(a, buf_view(&written), out) ? BELAY_OK
                                                  : err_no_memory(err, "a reference");
}

belay_rc proc_set_ref(const struct proc_site *site, const char *process_id,
                      const char *ref, const struct belay_process_lease *lease,
                      struct belay_arena *a, const struct belay_process **out,
                      struct belay_error *err)
{
    struct referring r = { .id = bytes_str(process_id), .lease = lease };
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = make_ref(ref, a, &r.ref, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, ref_body, &r, NULL, a, err);
    if (rc == BELAY_OK)
        *out = r.out;
    return rc;
}
