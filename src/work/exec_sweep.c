/* Sweeps: what is due, page by page. */
#include "work/exec_sweep.h"

#include <assert.h>

#include "base/json.h"
#include "work/process_remove.h"

#define RUNS_MAX 8 /* transactions of one sweep in a step */

/* --- what failed before --- */

static struct sick_item *find_sick(struct sickbay *s, struct bytes member)
{
    for (size_t i = 0; i < SICK_MAX; i++) {
        if (s->item[i].failures > 0 && bytes_eq(bytes_str(s->item[i].member), member))
            return &s->item[i];
    }
    return NULL;
}

static void note_failure(struct sickbay *s, struct bytes member)
{
    struct sick_item *item = find_sick(s, member);

    if (member.len >= sizeof(item->member))
        return;
    if (!item) {
        item = &s->item[s->next];
        s->next = (s->next + 1) % SICK_MAX;
        *item = (struct sick_item){ .failures = 0 };
        memcpy(item->member, member.ptr, member.len);
    }
    if (++item->failures >= FAILURES_MAX)
        item->rest = REST_STEPS;
}

static bool is_resting(struct sickbay *s, struct bytes member)
{
    const struct sick_item *item = find_sick(s, member);

    return item && item->rest > 0;
}

void sickbay_rest(struct sickbay *s)
{
    for (size_t i = 0; i < SICK_MAX; i++) {
        struct sick_item *item = &s->item[i];
        if (item->rest > 0 && --item->rest == 0)
            item->failures = 0;
    }
}

/* Indexes that are handled in the same way. */
struct sweep {
    const char *const *indexes;
    size_t n_indexes, page;
    const struct row_type *const *fetch;
    size_t n_fetch;
    belay_rc (*handle)(struct txn *t, struct timing *x, const struct hit *hit);
};

/* --- handling one item --- */

static belay_rc tag_value(struct txn *t, const struct timing *x, const struct row *spec,
                          struct bytes *out)
{
    const struct belay_tag *tags;
    size_t n = 0;
    belay_rc rc = exec_tags_of(t, spec, &tags, &n);

    *out = bytes_of(NULL, 0);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        if (bytes_eq(bytes_str(tags[i].key), x->filter.tag_key))
            *out = bytes_str(tags[i].value);
    }
    return rc;
}

/* Whether it is one of those that this timer is about; asked before anything is done. */
static belay_rc is_meant(struct txn *t, const struct timing *x, const struct row *spec,
                         bool *out)
{
    struct bytes tag = bytes_of(NULL, 0);
    belay_rc rc = BELAY_OK;

    if (filter_needs_tags(&x->filter) && spec)
        rc = tag_value(t, x, spec, &tag);
    *out = filter_matches(&x->filter, space_name(x->site->space), tag);
    return rc;
}

/* The row is read again: another entry of the page may have changed it in this run. */
static belay_rc handle_execution(struct txn *t, struct timing *x, const struct hit *hit)
{
    struct value key = value_text(hit->member);
    const struct row *row;
    bool meant = false;

    if (!hit->rows[0])
        return exec_missing(t, hit->index, hit->member);
    belay_rc rc = is_meant(t, x, hit->rows[1], &meant);
    if (rc || !meant)
        return rc;
    x->worked = true;
    rc = txn_get(t, &row_execution, &key, &row);
    if (rc || !row)
        return rc;
    return exec_due(t, x->site, row, hit->rows[1], x->now_ms, rng_next(&x->chance),
                    x->events, &x->count);
}

static belay_rc handle_done(struct txn *t, struct timing *x, const struct hit *hit)
{
    int64_t purged = x->count.purged;
    bool meant = false;
    belay_rc rc = handle_execution(t, x, hit);

    if (rc == BELAY_OK)
        rc = is_meant(t, x, hit->rows[1], &meant);
    x->left = x->left || (meant && x->count.purged == purged);
    return rc;
}

static belay_rc handle_key(struct txn *t, struct timing *x, const struct hit *hit)
{
    struct value key = value_text(hit->member);
    const struct row *row = hit->rows[0];

    if (!row)
        return exec_missing(t, hit->index, hit->member);
    belay_rc rc = txn_rank_remove(t, hit->index, hit->rank, hit->member);
    x->keys++;
    x->worked = true;
    return rc ? rc : txn_delete(t, &row_execution_key, &key);
}

/* Processes have no tags: a timer that is about some is not about them. */
static belay_rc handle_process(struct txn *t, struct timing *x, const struct hit *hit)
{
    struct value key = value_text(hit->member);
    const struct row *row;
    bool left = false, purged = false;

    if (filter_needs_tags(&x->filter))
        return BELAY_OK;
    if (!hit->rows[0])
        return exec_missing(t, hit->index, hit->member);
    x->worked = true;
    belay_rc rc = txn_get(t, &row_process, &key, &row);
    if (rc == BELAY_OK && row)
        rc = proc_due(t, row, x->now_ms, &left, &purged);
    x->left = x->left || left;
    x->count.purged += purged;
    return rc;
}

/* --- the sweeps --- */

static const char *const timed[] = { DELAYED_INDEX, LEASED_INDEX, GRANTED_INDEX,
                                     DEADLINE_INDEX };
static const char *const done[] = { DONE_INDEX "success", DONE_INDEX "failed",
                                    DONE_INDEX "cancelled", DONE_INDEX "expired",
                                    DONE_INDEX "skipped" };
static const char *const keys[] = { EXECUTION_KEY_INDEX };
static const char *const processes[] = { PROCESS_STATUS_INDEX PROCESS_DELETING,
                                         PROCESS_STATUS_INDEX "completed",
                                         PROCESS_STATUS_INDEX "failed",
                                         PROCESS_STATUS_INDEX "cancelled" };
static const struct row_type *const with_end[] = { &row_execution, &row_execution_spec,
                                                   &row_execution_end };
static const struct row_type *const with_spec[] = { &row_execution,
                                                    &row_execution_spec };
static const struct row_type *const key_rows[] = { &row_execution_key };
static const struct row_type *const process_rows[] = { &row_process };

static const struct sweep sweeps[] = {
    { timed, COUNT_OF(timed), 50, with_end, COUNT_OF(with_end), handle_execution },
    { done, COUNT_OF(done), 20, with_spec, COUNT_OF(with_spec), handle_done },
    { keys, COUNT_OF(keys), 100, key_rows, COUNT_OF(key_rows), handle_key },
    { processes, COUNT_OF(processes), 10, process_rows, COUNT_OF(process_rows),
      handle_process },
};

static_assert(COUNT_OF(timed) + COUNT_OF(done) + COUNT_OF(keys) + COUNT_OF(processes) ==
                  SWEPT_MAX,
              "as many as there are");

static size_t names_of(const struct sweep *s, struct bytes *out)
{
    for (size_t i = 0; i < s->n_indexes; i++)
        out[i] = bytes_str(s->indexes[i]);
    return s->n_indexes;
}

size_t sweep_indexes(struct bytes out[SWEPT_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT_OF(sweeps); i++)
        n += names_of(&sweeps[i], out + n);
    return n;
}

static belay_rc page_body(struct txn *t, void *arg)
{
    struct timing *x = arg;
    CLEANUP(event_list_release) struct event_list events;
    struct bytes names[SWEPT_MAX];
    struct fetch fetch[COUNT_OF(with_end)] = { { .type = NULL } };
    const struct scan_cursor after = { .rank = x->rank,
                                       .member = bytes_of(x->member, x->member_len),
                                       .index = bytes_of(x->index, x->index_len) };
    belay_rc rc = txn_now(t, &x->now_ms);

    for (size_t i = 0; i < x->sweep->n_fetch; i++)
        fetch[i].type = x->sweep->fetch[i];
    const struct scan scan = { .indexes = names,
                               .n_indexes = names_of(x->sweep, names),
                               .max_rank = x->now_ms,
                               .after = x->begun ? &after : NULL,
                               .limit = x->limit,
                               .fetch = fetch,
                               .n_fetch = x->sweep->n_fetch };
    event_list_init(&events, t);
    x->events = &events;
    x->count = (struct due_count){ 0 };
    x->keys = 0;
    x->left = x->worked = false;
    x->hits = (struct hits){ .hit = NULL };
    x->at = 0;
    if (rc == BELAY_OK)
        rc = txn_scan(t, &scan, &x->hits);
    for (; x->at < x->hits.n && rc == BELAY_OK; x->at++) {
        if (!is_resting(x->sick, x->hits.hit[x->at].member))
            rc = x->sweep->handle(t, x, &x->hits.hit[x->at]);
        if (rc)
            return rc;
    }
    return rc ? rc : event_flush(&events);
}

static void move_cursor(struct timing *x, const struct hit *hit)
{
    x->begun = true;
    x->rank = hit->rank;
    memcpy(x->member, hit->member.ptr, hit->member.len);
    x->member_len = hit->member.len;
    memcpy(x->index, hit->index.ptr, hit->index.len);
    x->index_len = hit->index.len;
}

static void add_counts(struct timing *x)
{
    struct belay_timer_report *r = &x->report;

    r->promoted += x->count.promoted;
    r->expired_leases += x->count.expired_leases;
    r->timed_out += x->count.timed_out;
    r->expired += x->count.expired;
    r->purged += x->count.purged;
    r->capped += x->count.capped;
    r->keys += x->keys;
    r->more = r->more || x->left;
}

/* An item that cannot be handled does not stand in the way of the others: the page is
 * made up to it, then the scan goes on behind it.  Which one it was is not known when
 * only the commit failed; then pages become smaller until it stands alone. */
static bool work_around(struct timing *x, belay_rc rc)
{
    if ((rc != BELAY_CORRUPT && rc != BELAY_CONTENTION) || x->hits.n == 0)
        return false;
    if (x->at < x->hits.n && x->at > 0) {
        x->limit = x->at;
        return true;
    }
    if (x->at == x->hits.n && x->hits.n > 1) {
        x->limit = x->hits.n / 2;
        return true;
    }
    if (rc == BELAY_CORRUPT)
        note_failure(x->sick, x->hits.hit[0].member);
    move_cursor(x, &x->hits.hit[0]);
    x->limit = x->sweep->page;
    return true;
}

static belay_rc make_sweep(struct timing *x, const struct sweep *s,
                           struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };

    x->sweep = s;
    x->limit = s->page;
    x->begun = false;
    for (int runs = 0; runs < RUNS_MAX;) {
        size_t limit = x->limit;
        arena_reset(&arena);
        belay_rc rc = txn_run(x->site->space, page_body, x, NULL, &arena, err);
        if (rc && !work_around(x, rc))
            return rc;
        /* What is somebody else's is passed over, however much it is. */
        runs += rc || x->worked;
        if (rc)
            continue;
        add_counts(x);
        if (x->hits.n < limit)
            return BELAY_OK;
        move_cursor(x, &x->hits.hit[x->hits.n - 1]);
        x->limit = s->page;
    }
    x->report.more = true;
    return BELAY_OK;
}

belay_rc sweep_all(struct timing *x, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(sweeps) && rc == BELAY_OK; i++)
        rc = make_sweep(x, &sweeps[i], err);
    return rc;
}
