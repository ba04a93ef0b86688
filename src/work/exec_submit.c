/* Submitting: many executions in one commit, each once for its key.
 *
 * Everything is read in one round trip: lanes and keys as rows, routes by a look into their
 * rosters, which nobody has to guard since a route that is there stays.  The first use of
 * a route takes one more. */
#include "work/exec_submit.h"
#include <stdio.h>

#include "base/clock.h"

/* A route of a lane, once for all items that have it. */
struct submit_route {
    const struct submit_item *item; /* the first one */
    struct bytes roster,
        before; /* in the roster: whatever sorts just before its name */
    bool known, used;
};

struct submitting {
    struct submit_item *items;
    struct submit_route *routes;
    size_t *route_of; /* of each item */
    size_t n, n_routes;
    int runs;
    struct belay_submitted *out;
    size_t duplicates;
};

/* --- before the body --- */

static bool same_route(const struct submit_item *a, const struct submit_item *b)
{
    return strcmp(a->route, b->route) == 0 && bytes_eq(a->lane, b->lane);
}

/* Routes have equally long names, or are "-": nothing stands between a name and the one
 * whose last byte is smaller by one. */
static bool name_route(struct submit_route *r, struct belay_arena *a)
{
    struct bytes route = bytes_str(r->item->route);
    uint8_t *before = arena_alloc(a, route.len);

    if (!before)
        return false;
    memcpy(before, route.ptr, route.len);
    before[route.len - 1]--;
    r->before = bytes_of(before, route.len);
    return lane_roster(r->item->lane, a, &r->roster);
}

static belay_rc collect_routes(struct submitting *q, struct belay_arena *a,
                               struct belay_error *err)
{
    size_t at = 0;

    q->routes = arena_zalloc(a, q->n, sizeof(*q->routes));
    q->route_of = arena_zalloc(a, q->n, sizeof(*q->route_of));
    if (!q->routes || !q->route_of)
        return err_no_memory(err, "a submission");
    for (size_t i = 0; i < q->n; i++) {
        if (at >= q->n_routes || !same_route(q->routes[at].item, &q->items[i])) {
            for (at = 0; at < q->n_routes; at++) {
                if (same_route(q->routes[at].item, &q->items[i]))
                    break;
            }
        }
        if (at == q->n_routes) {
            q->routes[at].item = &q->items[i];
            if (!name_route(&q->routes[at], a))
                return err_no_memory(err, "a submission");
            q->n_routes++;
        }
        q->route_of[i] = at;
    }
    return BELAY_OK;
}

static belay_rc store_blob(struct space *sp, struct submit_item *item,
                           struct belay_error *err)
{
    struct blob_writer *w = NULL;
    struct blob_info info;
    belay_rc rc = blob_writer_open(&w, sp, false, NULL, err);

    if (rc == BELAY_OK)
        rc = blob_write(w, item->payload, err);
    if (rc == BELAY_OK)
        rc = blob_finish(w, bytes_of(NULL, 0), item->piece->sha256, &info, err);
    blob_writer_close(w);
    item->stored = rc == BELAY_OK;
    return rc;
}

/* Checks everything before anything is stored. */
static belay_rc prepare(struct submitting *q, const struct exec_site *site,
                        const struct belay_submission *items, struct belay_arena *a,
                        struct belay_error *err)
{
    int64_t in_body = 0;
    belay_rc rc = BELAY_OK;

    q->items = arena_zalloc(a, q->n, sizeof(*q->items));
    q->out = arena_zalloc(a, q->n, sizeof(*q->out));
    if (!q->items || !q->out)
        return err_no_memory(err, "a submission");
    for (size_t i = 0; i < q->n && rc == BELAY_OK; i++) {
        rc = submit_prepare(&items[i], site->space, a, &q->items[i], err);
        if (rc && q->n > 1) {
            char which[I64_TEXT_MAX + 8];
            (void)snprintf(which, sizeof(which), "item %zu", i + 1);
            err_context(err, which);
        }
    }
    if (rc == BELAY_OK)
        rc = collect_routes(q, a, err);
    for (size_t i = 0; i < q->n && rc == BELAY_OK; i++) {
        const struct blob_piece *piece = q->items[i].piece;
        if (piece && piece->size > SUBMIT_BLOBS_MAX - in_body)
            rc = store_blob(site->space, &q->items[i], err);
        else if (piece)
            in_body += piece->size;
    }
    return rc;
}

/* --- reading --- */

/* What one round trip asks for. */
struct submit_load {
    struct row_want *wants;
    struct value *keys;
    size_t n;
};

static void want(struct submit_load *l, const struct row_type *type, struct value key)
{
    l->keys[l->n] = key;
    l->wants[l->n] = (struct row_want){ type, &l->keys[l->n] };
    l->n++;
}

static void want_rows(const struct submitting *q, struct submit_load *l)
{
    for (size_t i = 0; i < q->n; i++) {
        const struct submit_item *item = &q->items[i];
        if (item->key.len > 0)
            want(l, &row_execution_key, value_text(item->key));
        if (item->piece)
            want(l, &row_blob, value_str(item->piece->sha256));
        if (item->s->process)
            want(l, &row_process_spec, value_str(item->s->process));
        /* Run again, an insert reads its row first: better all of them at once. */
        if (q->runs > 1) {
            want(l, &row_execution, value_str(item->id));
            want(l, &row_execution_spec, value_str(item->id));
        }
    }
}

static belay_rc load(struct txn *t, struct submitting *q)
{
    struct belay_arena *a = txn_arena(t);
    size_t most = 5 * q->n;
    struct submit_load l = { .wants = arena_zalloc(a, most, sizeof(*l.wants)),
                             .keys = arena_zalloc(a, most, sizeof(*l.keys)) };
    const struct row **rows = arena_zalloc(a, most, sizeof(struct row *));
    struct scan *scans = arena_zalloc(a, q->n_routes, sizeof(*scans));
    struct scan_cursor *after = arena_zalloc(a, q->n_routes, sizeof(*after));
    struct hits *hits = arena_zalloc(a, q->n_routes, sizeof(*hits));

    if (!l.wants || !l.keys || !rows || !scans || !after || !hits)
        return err_no_memory(txn_error(t), "a submission");
    want_rows(q, &l);
    for (size_t i = 0; i < q->n_routes; i++) {
        const struct submit_route *r = &q->routes[i];
        after[i] = (struct scan_cursor){ .member = r->before, .index = r->roster };
        scans[i] = (struct scan){
            .indexes = &r->roster, .n_indexes = 1, .after = &after[i], .limit = 1
        };
    }
    belay_rc rc = txn_load(t, l.wants, l.n, rows, scans, q->n_routes, hits);
    for (size_t i = 0; i < q->n_routes && rc == BELAY_OK; i++) {
        struct submit_route *r = &q->routes[i];
        r->used = false;
        r->known = hits[i].n == 1 &&
                   bytes_eq(hits[i].hit[0].member, bytes_str(r->item->route));
    }
    return rc;
}

/* --- keys --- */

static belay_rc key_conflict(struct txn *t, const struct submit_item *item)
{
    belay_rc rc =
        txn_fail(t, BELAY_KEY_CONFLICT, "key", "key: was used for another submission");

    err_entity(txn_error(t), item->key);
    return rc;
}

static belay_rc write_key(struct txn *t, const struct submit_item *item,
                          const struct row *old, int64_t now_ms)
{
    int64_t window_ms = item->s->key_window_ms, until_ms;
    struct bytes index = bytes_str(EXECUTION_KEY_INDEX);

    until_ms = time_add_ms(now_ms, window_ms > 0 ? window_ms : BELAY_KEY_WINDOW_MS);
    const struct value v[EXEC_KEY_COLUMNS] = {
        [EXEC_KEY_KEY] = value_text(item->key),
        [EXEC_KEY_EXECUTION] = value_str(item->id),
        [EXEC_KEY_HASH] = value_str(item->hash),
        [EXEC_KEY_UNTIL_MS] = value_i64(until_ms),
    };
    const struct change changes[] = {
        { EXEC_KEY_EXECUTION, v[EXEC_KEY_EXECUTION] },
        { EXEC_KEY_HASH, v[EXEC_KEY_HASH] },
        { EXEC_KEY_UNTIL_MS, v[EXEC_KEY_UNTIL_MS] },
    };
    if (!old) {
        belay_rc rc = txn_insert(t, &row_execution_key, v);
        return rc ? rc : txn_rank_add(t, index, until_ms, item->key);
    }
    int64_t was_ms = row_i64(old, EXEC_KEY_UNTIL_MS, 0);
    belay_rc rc = txn_put(t, &row_execution_key, v, changes, COUNT_OF(changes));
    return rc || was_ms == until_ms
               ? rc
               : txn_rank_move(t, index, was_ms, until_ms, item->key);
}

/* Whether the item is an execution that exists; takes its key if not.  Of two items with one
 * key the second sees what the first has written. */
static belay_rc judge_key(struct txn *t, const struct submit_item *item, int64_t now_ms,
                          struct belay_submitted *out)
{
    struct value key = value_text(item->key);
    const struct row *row;
    struct bytes id;

    *out = (struct belay_submitted){ .execution_id = item->id };
    if (item->key.len == 0)
        return BELAY_OK;
    belay_rc rc = txn_get(t, &row_execution_key, &key, &row);
    if (rc)
        return rc;
    if (!row || row_i64(row, EXEC_KEY_UNTIL_MS, 0) <= now_ms)
        return write_key(t, item, row, now_ms);
    if (!bytes_eq(row_bytes(row, EXEC_KEY_HASH), bytes_str(item->hash)))
        return key_conflict(t, item);
    if (!arena_copy(txn_arena(t), row_bytes(row, EXEC_KEY_EXECUTION), &id))
        return err_no_memory(txn_error(t), "an id");
    *out = (struct belay_submitted){ .execution_id = (const char *)id.ptr,
                                     .duplicate = true };
    return BELAY_OK;
}

/* --- creating --- */

/* Routes that the rosters did not show: read together, under guard, then entered. */
static belay_rc enter_routes(struct txn *t, const struct submitting *q, int64_t now_ms)
{
    struct belay_arena *a = txn_arena(t);
    struct row_want *wants = arena_zalloc(a, 2 * q->n_routes, sizeof(*wants));
    struct value(*keys)[2] = arena_zalloc(a, q->n_routes, sizeof(*keys));
    const struct row **rows = arena_zalloc(a, 2 * q->n_routes, sizeof(struct row *));
    size_t n = 0;

    if (!wants || !keys || !rows)
        return err_no_memory(txn_error(t), "a submission");
    for (size_t i = 0; i < q->n_routes; i++) {
        const struct submit_route *r = &q->routes[i];
        if (!r->used || r->known)
            continue;
        keys[i][0] = value_text(r->item->lane);
        keys[i][1] = value_str(r->item->route);
        wants[n++] = (struct row_want){ &row_lane, keys[i] };
        wants[n++] = (struct row_want){ &row_route, keys[i] };
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    for (size_t i = 0; i < q->n_routes && rc == BELAY_OK; i++) {
        const struct submit_route *r = &q->routes[i];
        if (r->used && !r->known)
            rc = lane_enter(t, r->item->lane, bytes_str(r->item->route),
                            r->item->requires, now_ms);
    }
    return rc;
}

static belay_rc submit_body(struct txn *t, void *arg)
{
    struct submitting *q = arg;
    int64_t now_ms = 0;

    q->runs++;
    q->duplicates = 0;
    belay_rc rc = txn_now(t, &now_ms);
    if (rc == BELAY_OK)
        rc = load(t, q);
    for (size_t i = 0; i < q->n && rc == BELAY_OK; i++) {
        rc = judge_key(t, &q->items[i], now_ms, &q->out[i]);
        q->duplicates += q->out[i].duplicate;
        q->routes[q->route_of[i]].used |= !q->out[i].duplicate;
    }
    if (rc == BELAY_OK)
        rc = enter_routes(t, q, now_ms);
    for (size_t i = 0; i < q->n && rc == BELAY_OK; i++) {
        if (!q->out[i].duplicate)
            rc = submit_create(t, &q->items[i], now_ms, &q->out[i].state);
    }
    return rc;
}

/* --- duplicates --- */

/* As they are now; one that was purged has none. */
static belay_rc states_body(struct txn *t, void *arg)
{
    struct submitting *q = arg;
    struct belay_arena *a = txn_arena(t);
    struct row_want *wants = arena_zalloc(a, q->duplicates, sizeof(*wants));
    struct value *keys = arena_zalloc(a, q->duplicates, sizeof(*keys));
    const struct row **rows = arena_zalloc(a, q->duplicates, sizeof(struct row *));
    size_t n = 0;

    if (!wants || !keys || !rows)
        return err_no_memory(txn_error(t), "a submission");
    for (size_t i = 0; i < q->n; i++) {
        if (!q->out[i].duplicate)
            continue;
        keys[n] = value_str(q->out[i].execution_id);
        wants[n] = (struct row_want){ &row_execution, &keys[n] };
        n++;
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    n = 0;
    for (size_t i = 0; i < q->n && rc == BELAY_OK; i++) {
        const struct row *row = q->out[i].duplicate ? rows[n++] : NULL;
        int state = BELAY_STATE_ANY;
        if (row && !vector_parse(BELAY_DIM_STATE, row_bytes(row, EXEC_STATE), &state))
            state = BELAY_STATE_ANY;
        if (q->out[i].duplicate)
            q->out[i].state = state;
    }
    return rc;
}

/* Apart from the commit, so that workers who change them do not disturb it.  What was
 * submitted is stored by now: that a state cannot be read is no reason to hide that. */
static void read_states(const struct exec_site *site, struct submitting *q,
                        struct belay_arena *a)
{
    const struct txn_options read_only = { .read_only = true };
    struct belay_error why;
    belay_rc rc = txn_run(site->space, states_body, q, &read_only, a, &why);

    for (size_t i = 0; i < q->n && rc; i++) {
        if (q->out[i].duplicate)
            q->out[i].state = BELAY_STATE_ANY;
    }
}

belay_rc exec_submit(const struct exec_site *site, const struct belay_submission *items,
                     size_t n, struct belay_arena *a, struct belay_submitted *out,
                     struct belay_error *err)
{
    struct submitting q = { .n = n };

    if (n == 0 || n > BELAY_SUBMIT_MAX)
        return err_reason(err, BELAY_INVALID, "count",
                          "submit: %zu at once, must be 1 to %d", n, BELAY_SUBMIT_MAX);
    belay_rc rc = prepare(&q, site, items, a, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, submit_body, &q, NULL, a, err);
    if (rc)
        return rc;
    if (q.duplicates > 0)
        read_states(site, &q, a);
    memcpy(out, q.out, n * sizeof(*out));
    return BELAY_OK;
}
