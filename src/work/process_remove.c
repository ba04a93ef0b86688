/* Removing processes, by hand or when their time is over.
 *
 * The first step says so: from then on nobody finds the process, nothing is added to it,
 * and the feed has told.  Further steps take away events with what is beside them, and
 * grants, in bounded pieces; the last one the row itself.  Each step can be done twice, by
 * whoever comes by; an interrupted removal is gone on with. */
#include "work/process_remove.h"
#include "base/clock.h"
#include "work/process_event.h"
#include "work/process_grants.h"

#define STEP_EVENTS 100
#define STEP_GRANTS 100

/* --- the mark --- */

static belay_rc delete_row(struct txn *t, const struct row_type *type,
                           const struct value *key)
{
    const struct row *row;
    belay_rc rc = txn_get(t, type, key, &row);

    return rc || !row ? rc : txn_delete(t, type, key);
}

/* Out of the lists, and what it was is gone. */
static belay_rc unlist(struct txn *t, const struct proc *p)
{
    struct value key = value_text(p->id);
    const struct row_want wants[] = { { &row_process_spec, &key },
                                      { &row_process_ref, &key },
                                      { &row_process_end, &key } };
    const struct row *rows[COUNT_OF(wants)];
    int64_t created = proc_i64(p, PROCESS_CREATED_AT_MS, 0);
    struct bytes owner;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, bytes_str(PROCESS_INDEX), created, p->id);
    if (rc == BELAY_OK && rows[0]) {
        if (!proc_name(PROCESS_OWNER_INDEX,
                       row_bytes(rows[0], PROCESS_SPEC_OWNER_SESSION), txn_arena(t),
                       &owner))
            return err_no_memory(txn_error(t), "an index");
        rc = txn_rank_remove(t, owner, created, p->id);
    }
    for (size_t i = 0; i < COUNT_OF(wants) && rc == BELAY_OK; i++) {
        if (rows[i])
            rc = txn_delete(t, wants[i].type, &key);
    }
    return rc;
}

belay_rc proc_mark_removed(struct txn *t, struct proc *p, int64_t now_ms)
{
    struct change released[LEASE_COLUMNS];
    size_t n = lease_release_changes(PROCESS_LEASE, released);
    struct bytes topic;
    belay_rc rc = proc_tell(t, p, BELAY_CHANGE_DELETED, now_ms, bytes_of(NULL, 0));

    if (rc == BELAY_OK)
        rc = unlist(t, p);
    if (rc == BELAY_OK && p->lease.fence > 0) /* P7 */
        rc = txn_raise(t, &row_fence_floor, NULL, FENCE_FLOOR_FLOOR, p->lease.fence);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        p->v[released[i].column] = released[i].value;
    p->v[PROCESS_STATUS] = value_str(PROCESS_DELETING);
    p->v[PROCESS_PURGE_AT_MS] = value_i64(now_ms);
    rc = proc_write(t, p);
    if (rc == BELAY_OK && !proc_topic(p->id, txn_arena(t), &topic))
        rc = err_no_memory(txn_error(t), "a topic");
    return rc ? rc : txn_wake(t, topic); /* who waits for it learns of it */
}

/* --- events --- */

/* What is beside the events of a page, in one round trip. */
static belay_rc load_page(struct txn *t, const struct proc *p,
                          const struct proc_event *events, size_t n)
{
    struct belay_arena *a = txn_arena(t);
    struct row_want *wants = arena_zalloc(a, 3 * n, sizeof(*wants));
    const struct row **rows = arena_zalloc(a, 3 * n, sizeof(*rows));
    struct value *keys = arena_zalloc(a, 4 * n, sizeof(*keys));
    size_t k = 0;

    if (!wants || !rows || !keys)
        return err_no_memory(txn_error(t), "a removal");
    for (size_t i = 0; i < n; i++) {
        struct value *key = keys + 4 * i;
        key[0] = key[2] = value_text(p->id);
        key[1] = value_i64(events[i].seq);
        key[3] = value_text(events[i].key);
        if (events[i].apart)
            wants[k++] = (struct row_want){ &row_process_payload, key };
        if (events[i].wakes)
            wants[k++] = (struct row_want){ &row_process_wake, key };
        if (events[i].key.ptr)
            wants[k++] = (struct row_want){ &row_process_key, key + 2 };
    }
    return k > 0 ? txn_get_many(t, wants, k, rows) : BELAY_OK;
}

static belay_rc remove_beside(struct txn *t, const struct proc *p,
                              const struct proc_event *e)
{
    const struct value by_seq[] = { value_text(p->id), value_i64(e->seq) };
    const struct value by_key[] = { value_text(p->id), value_text(e->key) };
    belay_rc rc = BELAY_OK;

    if (e->apart)
        rc = delete_row(t, &row_process_payload, by_seq);
    if (rc == BELAY_OK && e->key.ptr)
        rc = delete_row(t, &row_process_key, by_key);
    return rc || !e->wakes ? rc : wake_forget(t, p->id, e->seq);
}

/* *out_n: how many it found. */
static belay_rc remove_events(struct txn *t, struct proc *p, size_t *out_n)
{
    struct proc_event *events =
        arena_zalloc(txn_arena(t), STEP_EVENTS, sizeof(*events));
    struct log_entries page = { .n = 0 };
    struct bytes stream;

    if (!events || !event_stream(p->id, txn_arena(t), &stream))
        return err_no_memory(txn_error(t), "a removal");
    belay_rc rc = txn_log_read(t, stream, proc_i64(p, PROCESS_FIRST_SEQ, 1) - 1,
                               STEP_EVENTS, &page);
    for (size_t i = 0; i < page.n && rc == BELAY_OK; i++)
        rc = event_decode(t, p->id, &page.entry[i], &events[i]);
    if (rc == BELAY_OK)
        rc = load_page(t, p, events, page.n);
    for (size_t i = 0; i < page.n && rc == BELAY_OK; i++)
        rc = remove_beside(t, p, &events[i]);
    *out_n = page.n;
    if (rc || page.n == 0)
        return rc;
    int64_t last = page.entry[page.n - 1].seq;
    p->v[PROCESS_FIRST_SEQ] = value_i64(last + 1);
    return txn_log_trim(t, stream, last);
}

/* --- grants --- */

static belay_rc remove_grants(struct txn *t, const struct proc *p, size_t *out_n)
{
    struct belay_arena *a = txn_arena(t);
    struct bytes index;
    struct hits hits;

    if (!proc_name(GRANTED_TO_INDEX, p->id, a, &index))
        return err_no_memory(txn_error(t), "grants");
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .limit = STEP_GRANTS };
    belay_rc rc = txn_scan(t, &scan, &hits);
    for (size_t i = 0; rc == BELAY_OK && i < hits.n; i++) {
        struct bytes session, key, frame;
        struct belay_scope scope = { .session_id = NULL };
        struct grant_scope made;
        if (!grant_member_split(hits.hit[i].member, &session, &key))
            return txn_fail(t, BELAY_CORRUPT, "grants",
                            "process %.*s: an entry of its grants is none",
                            (int)p->id.len, (const char *)p->id.ptr);
        frame = grant_frame(key);
        if (!arena_copy(a, session, &session) || !arena_copy(a, frame, &frame))
            return err_no_memory(txn_error(t), "grants");
        scope.session_id = (const char *)session.ptr;
        scope.frame_id = frame.len > 0 ? (const char *)frame.ptr : NULL;
        if (!grant_scope_make(&made, &scope, a))
            return err_no_memory(txn_error(t), "grants");
        rc = grant_remove(t, &made, p->id);
    }
    *out_n = rc == BELAY_OK ? hits.n : 0;
    return rc;
}

/* --- a step --- */

static belay_rc remove_row(struct txn *t, const struct proc *p)
{
    struct value key = value_text(p->id);
    struct bytes index;

    if (!proc_status_index(bytes_str(PROCESS_DELETING), txn_arena(t), &index))
        return err_no_memory(txn_error(t), "an index");
    belay_rc rc = txn_rank_remove(t, index, proc_i64(p, PROCESS_PURGE_AT_MS, 0), p->id);
    return rc ? rc : txn_delete(t, &row_process, &key);
}

belay_rc proc_remove_step(struct txn *t, struct proc *p, bool *out_left)
{
    size_t n = 0;
    belay_rc rc = remove_events(t, p, &n);

    *out_left = true;
    if (rc == BELAY_OK && n > 0)
        return proc_write(t, p);
    if (rc == BELAY_OK)
        rc = remove_grants(t, p, &n);
    if (rc || n > 0)
        return rc;
    *out_left = false;
    return remove_row(t, p);
}

/* --- by hand --- */

struct removing {
    struct bytes id;
    bool force, left;
};

static belay_rc still_runs(struct txn *t, const struct proc *p)
{
    belay_rc rc =
        txn_fail(t, BELAY_WRONG_STATE, "running", "process `%.*s`: it has not ended",
                 (int)p->id.len, (const char *)p->id.ptr);

    err_entity(txn_error(t), p->id);
    return rc;
}

static belay_rc mark_body(struct txn *t, void *arg)
{
    const struct removing *r = arg;
    struct value key = value_text(r->id);
    const struct row *row;
    struct proc p = { .row = NULL };
    int64_t now_ms = 0;
    belay_rc rc = txn_get(t, &row_process, &key, &row);

    if (rc == BELAY_OK)
        rc = row ? proc_of(t, row, &p) : proc_unknown(t, r->id);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc || p.status == PROC_DELETING) /* somebody has begun: it is gone on with */
        return rc;
    if (!r->force && p.status == BELAY_PROCESS_RUNNING)
        return still_runs(t, &p);
    if (!r->force)
        rc = proc_unheld(t, &p, now_ms);
    return rc ? rc : proc_mark_removed(t, &p, now_ms);
}

static belay_rc step_body(struct txn *t, void *arg)
{
    struct removing *r = arg;
    struct value key = value_text(r->id);
    const struct row *row;
    struct proc p = { .row = NULL };
    belay_rc rc = txn_get(t, &row_process, &key, &row);

    r->left = false;
    if (rc || !row)
        return rc;
    rc = proc_of(t, row, &p);
    if (rc || p.status != PROC_DELETING) /* it is another one by now */
        return rc;
    return proc_remove_step(t, &p, &r->left);
}

belay_rc proc_delete(const struct proc_site *site, const char *process_id, bool force,
                     struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct removing r = { .id = bytes_str(process_id), .force = force, .left = true };
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, mark_body, &r, NULL, &arena, err);
    while (rc == BELAY_OK && r.left) {
        arena_reset(&arena);
        rc = txn_run(site->space, step_body, &r, NULL, &arena, err);
    }
    return rc;
}

/* --- by time --- */

belay_rc proc_due(struct txn *t, const struct row *row, int64_t now_ms, bool *out_left,
                  bool *out_purged)
{
    struct proc p = { .row = NULL };
    belay_rc rc = proc_of(t, row, &p);

    *out_left = *out_purged = false;
    if (rc || proc_i64(&p, PROCESS_PURGE_AT_MS, INT64_MAX) > now_ms)
        return rc;
    if (p.status != PROC_DELETING && lease_is_live(&p.lease, now_ms)) {
        p.v[PROCESS_PURGE_AT_MS] = value_i64(p.lease.expires_at_ms);
        return proc_write(t, &p);
    }
    *out_left = true;
    if (p.status != PROC_DELETING)
        return proc_mark_removed(t, &p, now_ms);
    rc = proc_remove_step(t, &p, out_left);
    *out_purged = rc == BELAY_OK && !*out_left;
    return rc;
}
