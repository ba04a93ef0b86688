/* Timers: everything that happens by itself, in bounded steps.
 *
 * One process at a time works, by a lease of the namespace itself, so that many do not
 * do the same in vain.  Nothing depends on it: every item is decided and written under
 * guard of its own row (exec_due), so one who was paused past its lease and goes on finds
 * either what is still due, or nothing to do. */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "work/epoch.h"
#include "work/exec_sweep.h"

#define TIMER_LEASE_MS ((int64_t)10000)
#define TIMER_OWNER "timers"
#define FEED_PAGE 64
#define FEED_ENTRY_MAX ((size_t)1 << 20)

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
static belay_rc trim_feed(struct txn *t, struct timing *x, struct bytes feed)
{
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
    x->left = x->left || (last && i == FEED_PAGE);
    return last ? txn_feed_trim(t, feed, last->pos) : BELAY_OK;
}

/* --- who works --- */

static belay_rc first_rank(struct txn *t, int64_t min_rank, int64_t *out_ms)
{
    struct bytes names[SWEPT_MAX];
    const struct scan scan = { .indexes = names,
                               .n_indexes = sweep_indexes(names),
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
    struct lease_grant grant = { .holder = x->holder,
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
        struct lease_holder who = lease_holder_in(row, TIMER_LEASE);
        x->busy =
            !lease_may_be_taken(&l, x->now_ms, host_proves_dead(x->site->host, &who));
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
        rc = trim_feed(t, x, bytes_str(EXECUTION_FEED));
    if (rc == BELAY_OK)
        rc = trim_feed(t, x, bytes_str(PROCESS_FEED));
    /* What is due still and not for this timer is no reason to wake it. */
    if (rc == BELAY_OK)
        rc = first_rank(t, time_add_ms(x->now_ms, 1), &x->report.next_due_at_ms);
    return rc ? rc : release_lease(t, x);
}

/* --- steps --- */

static belay_rc work(struct timing *x, struct belay_arena *a, struct belay_error *err)
{
    belay_rc rc = sweep_all(x, err);

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
    uint64_t seed = 0;
    belay_rc rc = lease_id_make(s, x->token, err);

    x->holder = lease_holder_here(bytes_str(TIMER_OWNER), x->site->host);
    if (rc == BELAY_OK)
        rc = lease_id_make(s, x->lease_id, err);
    if (rc == BELAY_OK)
        rc = random_bytes(store_random_hook(s), &seed, sizeof(seed), err);
    rng_init(&x->chance, seed);
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
    sickbay_rest(sick);
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

/* Timers with another filter are about something else. */
struct host_seat timers_seat(const struct belay_scanner_filter *f)
{
    struct host_seat s = { .label_len = 0 };
    bool has_ns = f && f->ns, has_tag = f && f->tag_key;
    int n = snprintf(s.label, sizeof(s.label), "timers%s%s%s%s%s%s",
                     has_ns ? " of " : "", has_ns ? f->ns : "", has_tag ? " with " : "",
                     has_tag ? f->tag_key : "", has_tag ? "=" : "",
                     has_tag && f->tag_value ? f->tag_value : "");

    s.label_len = n < (int)sizeof(s.label) ? (size_t)n : sizeof(s.label) - 1;
    return s;
}

/* A store that is away for a while comes back; anything else is the caller's. */
static bool passes(belay_rc rc)
{
    return rc == BELAY_UNAVAILABLE || rc == BELAY_CONTENTION || rc == BELAY_TIMEOUT ||
           rc == BELAY_UNKNOWN_OUTCOME;
}

belay_rc exec_timers_run(const struct exec_site *site,
                         const struct belay_scanner_filter *filter,
                         struct belay_cancel *cancel, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct bytes topic = bytes_str(TIMERS_TOPIC);
    struct host_seat seat = timers_seat(filter);
    struct sickbay sick = { .next = 0 };
    struct listener *l = NULL;
    belay_rc rc = space_listen(site->space, &topic, 1, cancel, &arena, &l, err);

    while (rc == BELAY_OK) {
        struct belay_timer_report report = { .next_due_at_ms = TIME_NONE };
        /* Another process of this host does it: nothing is asked of the store. */
        bool is_ours = host_hold(site->host, &seat);
        if (is_ours)
            rc = step(site, filter, &sick, &report, err);
        if (rc && !passes(rc))
            break;
        if (rc) { /* another one may reach the store */
            report.next_due_at_ms = TIME_NONE;
            host_yield(site->host, &seat);
        }
        rc = exec_rest(site->space, l, report.next_due_at_ms, NO_DEADLINE_US, err);
    }
    host_yield(site->host, &seat);
    listener_close(l);
    return rc;
}
