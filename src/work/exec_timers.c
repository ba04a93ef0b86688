/* Timers: everything that happens by itself, in bounded steps.
 *
 * One process at a time works, by a lease of the namespace itself, so that many do not
 * do the same in vain.  Nothing depends on it: every item is decided and written under
 * guard of its own row (exec_due), so one who was paused past its lease and goes on finds
 * either what is still due, or nothing to do. */
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "policy/filter.h"
#include "work/epoch.h"
#include "work/execution_rows.h"

#define TIMER_LEASE_MS ((int64_t)10000)
#define TIMER_OWNER "timers"
#define RUNS_MAX 8 /* transactions of one sweep in a step */
/* A sleeper looks again after this, woken or not. */
#define RELOOK_US ((int64_t)5 * 1000000)
#define FEED_PAGE 64
#define FEED_ENTRY_MAX ((size_t)1 << 20)
/* Items that failed so often in a row are left alone for so many steps. */
#define FAILURES_MAX 3
#define REST_STEPS 10
#define SICK_MAX 64

/* --- what failed before --- */

struct sick_item {
    char member[64];
    int failures;
    int rest; /* steps for which it is left alone */
};

/* What a process remembers between its steps; when it is full the oldest goes. */
struct sickbay {
    struct sick_item item[SICK_MAX];
    size_t next;
};

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

/* A step has begun: who has rested is tried once more. */
static void rest_on(struct sickbay *s)
{
    for (size_t i = 0; i < SICK_MAX; i++) {
        struct sick_item *item = &s->item[i];
        if (item->rest > 0 && --item->rest == 0)
            item->failures = 0;
    }
}

/* --- a step --- */

struct timing;

/* Indexes that are handled in the same way. */
struct sweep {
    const char *const *indexes;
    size_t n_indexes, page;
    const struct row_type *const *fetch;
    size_t n_fetch;
    belay_rc (*handle)(struct txn *t, struct timing *x, const struct hit *hit);
};

struct timing {
    const struct exec_site *site;
    struct filter filter;
    struct sickbay *sick;
    char token[LEASE_ID_HEX + 1], lease_id[LEASE_ID_HEX + 1];
    uint64_t random;

    /* Of one run of a body. */
    int64_t now_ms;
    struct event_list *events;
    struct due_count count;
    int64_t keys;
    bool left;   /* something was begun and is not finished */
    bool worked; /* something was for this timer */

    /* A page of the sweep that is being made. */
    const struct sweep *sweep;
    size_t limit;
    struct hits hits;
    size_t at; /* the item in hand; n: none, the commit failed */
    bool begun;
    int64_t rank; /* the last item that is done with: the cursor */
    uint8_t member[SCHEMA_NAME_MAX], index[SCHEMA_NAME_MAX];
    size_t member_len, index_len;

    bool due, busy, held;
    int64_t held_until_ms;
    struct belay_timer_report report;
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
    return exec_due(t, x->site, row, hit->rows[1], x->now_ms, x->random + x->at,
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

/* --- the sweeps --- */

static const char *const timed[] = { DELAYED_INDEX, LEASED_INDEX, GRANTED_INDEX,
                                     DEADLINE_INDEX };
static const char *const done[] = { DONE_INDEX "success", DONE_INDEX "failed",
                                    DONE_INDEX "cancelled", DONE_INDEX "expired",
                                    DONE_INDEX "skipped" };
static const char *const keys[] = { EXECUTION_KEY_INDEX };
static const struct row_type *const with_end[] = { &row_execution, &row_execution_spec,
                                                   &row_execution_end };
static const struct row_type *const with_spec[] = { &row_execution,
                                                    &row_execution_spec };
static const struct row_type *const key_rows[] = { &row_execution_key };

static const struct sweep sweeps[] = {
    { timed, COUNT_OF(timed), 50, with_end, COUNT_OF(with_end), handle_execution },
    { done, COUNT_OF(done), 20, with_spec, COUNT_OF(with_spec), handle_done },
    { keys, COUNT_OF(keys), 100, key_rows, COUNT_OF(key_rows), handle_key },
};

#define INDEXES_MAX (COUNT_OF(timed) + COUNT_OF(done) + COUNT_OF(keys))

static size_t names_of(const struct sweep *s, struct bytes *out)
{
    for (size_t i = 0; i < s->n_indexes; i++)
        out[i] = bytes_str(s->indexes[i]);
    return s->n_indexes;
}

static size_t all_names(struct bytes out[INDEXES_MAX])
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
    struct bytes names[INDEXES_MAX];
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

/* --- the feed --- */

/* When the first event of an entry was; false: it does not tell. */
static bool entry_time(struct bytes data, int64_t *out)
{
    CLEANUP(json_decrefp) json_t *entry = NULL;

    if (json_read(data, FEED_ENTRY_MAX, &entry, NULL))
        return false;
    const json_t *at = json_object_get(json_array_get(entry, 0), "at");
    *out = (int64_t)json_integer_value(at);
    return json_is_integer(at);
}

/* What is older than the retention goes.  An entry that tells no time goes with the next
 * one that is old. */
static belay_rc trim_feed(struct txn *t, struct timing *x)
{
    struct bytes feed = bytes_str(EXECUTION_FEED);
    struct feed_entries page;
    const struct feed_entry *last = NULL;
    size_t i = 0;
    belay_rc rc = txn_feed_read(t, feed, (struct feed_pos){ 0 }, FEED_PAGE, &page);

    if (rc)
        return rc;
    for (; i < page.n; i++) {
        int64_t at_ms = 0;
        bool told = entry_time(page.entry[i].data, &at_ms);
        if (told && at_ms > x->now_ms - BELAY_RETENTION_MS)
            break;
        if (told)
            last = &page.entry[i];
    }
    x->left = last && i == FEED_PAGE;
    return last ? txn_feed_trim(t, feed, last->pos) : BELAY_OK;
}

/* --- who works --- */

static belay_rc first_rank(struct txn *t, int64_t min_rank, int64_t *out_ms)
{
    struct bytes names[INDEXES_MAX];
    const struct scan scan = { .indexes = names,
                               .n_indexes = all_names(names),
                               .min_rank = min_rank,
                               .max_rank = RANK_MAX,
                               .limit = 1 };
    struct hits hits;
    belay_rc rc = txn_scan(t, &scan, &hits);

    if (rc == BELAY_OK)
        *out_ms = hits.n > 0 ? hits.hit[0].rank : TIME_NONE;
    return rc;
}

static belay_rc put_lease(struct txn *t, const struct row *row,
                          const struct change *changes, size_t n)
{
    struct value v[TIMER_COLUMNS] = { { .kind = VALUE_NULL } };

    if (row)
        return txn_put(t, &row_timer, NULL, changes, n);
    for (size_t i = 0; i < n; i++)
        v[changes[i].column] = changes[i].value;
    return txn_insert(t, &row_timer, v);
}

static belay_rc take_body(struct txn *t, void *arg)
{
    struct timing *x = arg;
    struct change changes[LEASE_COLUMNS];
    struct lease_grant grant = { .holder = { .owner = bytes_str(TIMER_OWNER) },
                                 .token = bytes_str(x->token),
                                 .id = bytes_str(x->lease_id) };
    const struct row *row = NULL;
    int64_t epoch = 0, fence = 0;
    belay_rc rc = txn_now(t, &x->now_ms);

    x->busy = x->held = false;
    if (rc == BELAY_OK)
        rc = txn_get(t, &row_timer, NULL, &row);
    if (rc)
        return rc;
    grant.claimed_at_ms = x->now_ms;
    grant.expires_at_ms = lease_expiry(x->now_ms, TIMER_LEASE_MS);
    if (row) {
        struct lease l = lease_of(row, TIMER_LEASE);
        x->busy = lease_is_live(&l, x->now_ms);
        x->held_until_ms = l.expires_at_ms;
        fence = l.fence;
    }
    if (x->busy)
        return BELAY_OK;
    rc = epoch_in(t, &epoch);
    if (rc == BELAY_OK)
        rc = lease_next_fence(t, fence, 0, epoch, &grant.fence);
    if (rc)
        return rc;
    x->held = true;
    return put_lease(t, row, changes,
                     lease_grant_changes(&grant, TIMER_LEASE, changes));
}

/* Where nothing is due this is one small read, and nothing else happens. */
static belay_rc look_body(struct txn *t, void *arg)
{
    struct timing *x = arg;
    int64_t first_ms = TIME_NONE;
    belay_rc rc = txn_now(t, &x->now_ms);

    if (rc == BELAY_OK)
        rc = first_rank(t, 0, &first_ms);
    if (rc)
        return rc;
    x->due = first_ms != TIME_NONE && first_ms <= x->now_ms;
    x->report.next_due_at_ms = first_ms;
    return BELAY_OK;
}

static belay_rc release_lease(struct txn *t, const struct timing *x)
{
    struct change changes[LEASE_COLUMNS];
    const struct row *row;
    belay_rc rc = txn_get(t, &row_timer, NULL, &row);

    if (rc || !row)
        return rc;
    struct lease l = lease_of(row, TIMER_LEASE);
    if (!bytes_eq(l.id, bytes_str(x->lease_id))) /* L4: it is another one's */
        return BELAY_OK;
    return txn_put(t, &row_timer, NULL, changes,
                   lease_release_changes(TIMER_LEASE, changes));
}

static belay_rc close_body(struct txn *t, void *arg)
{
    struct timing *x = arg;
    belay_rc rc = txn_now(t, &x->now_ms);

    x->left = false;
    if (rc == BELAY_OK)
        rc = trim_feed(t, x);
    /* What is due still and not for this timer is no reason to wake it. */
    if (rc == BELAY_OK)
        rc = first_rank(t, time_add_ms(x->now_ms, 1), &x->report.next_due_at_ms);
    return rc ? rc : release_lease(t, x);
}

/* --- steps --- */

static belay_rc work(struct timing *x, struct belay_arena *a, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < COUNT_OF(sweeps) && rc == BELAY_OK; i++)
        rc = make_sweep(x, &sweeps[i], err);
    /* Also after a failure: nobody has to wait for the lease to end. */
    belay_rc closed = txn_run(x->site->space, close_body, x, NULL, a, rc ? NULL : err);
    if (rc || closed)
        return rc ? rc : closed;
    x->report.more = x->report.more || x->left;
    if (x->report.more)
        x->report.next_due_at_ms = x->now_ms;
    return BELAY_OK;
}

static struct filter filter_of(const struct belay_scanner_filter *f)
{
    struct filter out = { .ns = bytes_of(NULL, 0) };

    if (f && f->ns)
        out.ns = bytes_str(f->ns);
    if (f && f->tag_key) {
        out.tag_key = bytes_str(f->tag_key);
        out.tag_value = bytes_str(f->tag_value ? f->tag_value : "");
    }
    return out;
}

static belay_rc prepare(struct timing *x, struct belay_error *err)
{
    struct store *s = space_store(x->site->space);
    belay_rc rc = lease_id_make(s, x->token, err);

    if (rc == BELAY_OK)
        rc = lease_id_make(s, x->lease_id, err);
    if (rc == BELAY_OK)
        rc = random_bytes(store_random_hook(s), &x->random, sizeof(x->random), err);
    return rc;
}

static belay_rc step(const struct exec_site *site,
                     const struct belay_scanner_filter *filter, struct sickbay *sick,
                     struct belay_timer_report *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    struct timing x = { .site = site,
                        .filter = filter_of(filter),
                        .sick = sick,
                        .report = { .next_due_at_ms = TIME_NONE } };
    struct filter ns_only = { .ns = x.filter.ns };

    *out = x.report;
    if (!filter_matches(&ns_only, space_name(site->space), bytes_of(NULL, 0)))
        return BELAY_OK;
    rest_on(sick);
    belay_rc rc = prepare(&x, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, look_body, &x, &read_only, &arena, err);
    if (rc == BELAY_OK && x.due)
        rc = txn_run(site->space, take_body, &x, NULL, &arena, err);
    if (rc == BELAY_OK && x.held)
        rc = work(&x, &arena, err);
    if (x.busy) {
        x.report.busy = true;
        x.report.next_due_at_ms = x.held_until_ms;
    }
    if (rc == BELAY_OK)
        *out = x.report;
    return rc;
}

belay_rc exec_timers_step(const struct exec_site *site,
                          const struct belay_scanner_filter *filter,
                          struct belay_timer_report *out, struct belay_error *err)
{
    struct sickbay sick = { .next = 0 };

    return step(site, filter, &sick, out, err);
}

/* --- running --- */

/* A store that is away for a while comes back; anything else is the caller's. */
static bool passes(belay_rc rc)
{
    return rc == BELAY_UNAVAILABLE || rc == BELAY_CONTENTION || rc == BELAY_TIMEOUT ||
           rc == BELAY_UNKNOWN_OUTCOME;
}

static belay_rc sleep_until(const struct exec_site *site, struct listener *l,
                            int64_t next_ms, struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(site->space));
    int64_t now_us = clock->mono_us(clock->arg), now_ms = 0;
    int64_t until_us = now_us + RELOOK_US;

    if (next_ms != TIME_NONE && space_now(site->space, &now_ms, NULL) == BELAY_OK) {
        int64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 0;
        if (wait_ms < RELOOK_US / 1000)
            until_us = now_us + wait_ms * 1000;
    }
    belay_rc rc = listener_wait(l, until_us, err);
    return rc == BELAY_TIMEOUT ? BELAY_OK : rc;
}

belay_rc exec_timers_run(const struct exec_site *site,
                         const struct belay_scanner_filter *filter,
                         struct belay_cancel *cancel, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct bytes topic = bytes_str(TIMERS_TOPIC);
    struct sickbay sick = { .next = 0 };
    struct listener *l = NULL;
    belay_rc rc = space_listen(site->space, &topic, 1, cancel, &arena, &l, err);

    while (rc == BELAY_OK) {
        struct belay_timer_report report;
        rc = step(site, filter, &sick, &report, err);
        if (rc && !passes(rc))
            break;
        if (rc)
            report.next_due_at_ms = TIME_NONE;
        rc = sleep_until(site, l, report.next_due_at_ms, err);
    }
    listener_close(l);
    return rc;
}
