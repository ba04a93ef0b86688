/* Timers of a whole store: every namespace in turn. */
#include "work/execution_rows.h"
#include "work/namespaces.h"

#define PAGE 64

struct pass {
    struct store *store;
    int64_t grace_ms;
    struct host *host;
    const struct belay_scanner_filter *filter;
    struct belay_timer_report report;
    belay_rc failed; /* of the first namespace that could not be served */
    struct belay_error why;
};

void timer_report_add(struct belay_timer_report *to, const struct belay_timer_report *r)
{
    to->promoted += r->promoted;
    to->expired_leases += r->expired_leases;
    to->timed_out += r->timed_out;
    to->expired += r->expired;
    to->purged += r->purged;
    to->keys += r->keys;
    to->capped += r->capped;
    to->busy = to->busy || r->busy;
    to->more = to->more || r->more;
    if (r->next_due_at_ms != TIME_NONE &&
        (to->next_due_at_ms == TIME_NONE || r->next_due_at_ms < to->next_due_at_ms))
        to->next_due_at_ms = r->next_due_at_ms;
}

/* One that cannot be served does not stand in the way of the others. */
static void serve_one(struct pass *p, struct bytes ns)
{
    struct exec_site site = { .grace_ms = p->grace_ms, .host = p->host };
    struct belay_timer_report report = { .next_due_at_ms = TIME_NONE };
    struct belay_error err;
    belay_rc rc = store_space(p->store, ns, &site.space, &err);

    if (rc == BELAY_OK)
        rc = exec_timers_step(&site, p->filter, &report, &err);
    if (rc == BELAY_OK) {
        timer_report_add(&p->report, &report);
    } else if (p->failed == BELAY_OK) {
        p->failed = rc;
        p->why = err;
    }
}

static bool is_meant(const struct pass *p, const struct namespace_info *ns)
{
    const char *only = p->filter ? p->filter->ns : NULL;

    return !ns->deleting && (!only || bytes_eq(ns->name, bytes_str(only)));
}

static belay_rc pass(struct pass *p, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes after = bytes_of(NULL, 0);
    struct namespace_info *found;
    size_t n = 0;

    p->report = (struct belay_timer_report){ .next_due_at_ms = TIME_NONE };
    p->failed = BELAY_OK;
    do {
        belay_rc rc = namespaces_list(p->store, after, PAGE, &arena, &found, &n, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < n; i++) {
            if (is_meant(p, &found[i]))
                serve_one(p, found[i].name);
        }
        if (n > 0)
            after = found[n - 1].name;
    } while (n == PAGE);
    return BELAY_OK;
}

belay_rc exec_timers_pass(struct store *s, int64_t grace_ms,
                          const struct belay_scanner_filter *filter,
                          struct belay_timer_report *out, struct belay_error *err)
{
    struct pass p = { .store = s, .grace_ms = grace_ms, .filter = filter };
    belay_rc rc = pass(&p, err);

    if (rc)
        return rc;
    *out = p.report;
    if (p.failed && err)
        *err = p.why;
    return p.failed;
}

belay_rc exec_timers_serve(const struct exec_site *site,
                           const struct belay_scanner_filter *filter,
                           struct belay_cancel *cancel, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct store *s = space_store(site->space);
    struct pass p = {
        .store = s, .grace_ms = site->grace_ms, .host = site->host, .filter = filter
    };
    struct host_seat seat = timers_seat(filter);
    const struct bytes topic = bytes_str(TIMERS_TOPIC);
    struct space *system = NULL;
    struct listener *l = NULL;
    belay_rc rc = store_system_space(s, &system, err);

    if (rc == BELAY_OK) /* nobody posts there: it is what can be cancelled */
        rc = space_listen(system, &topic, 1, cancel, &arena, &l, err);
    while (rc == BELAY_OK) {
        bool is_ours = host_hold(site->host, &seat);
        p.report.next_due_at_ms = TIME_NONE;
        /* What goes wrong with the store or one of its namespaces may pass. */
        if (is_ours && pass(&p, NULL)) {
            p.report.next_due_at_ms = TIME_NONE;
            host_yield(site->host, &seat);
        }
        rc = exec_rest(system, l, p.report.next_due_at_ms, NO_DEADLINE_US, err);
    }
    host_yield(site->host, &seat);
    listener_close(l);
    return rc;
}
