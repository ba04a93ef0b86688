/* Processes below the door: what the log repairs, how often the store is asked, and what a
 * check finds of planted damage. */
#include "base/clock.h"
#include "test_work.h"
#include "work/check.h"
#include "work/epoch.h"
#include "work/process_rows.h"

static const char types[] =
    "[{\"name\":\"line\",\"payload_schema\":{\"schema\":{\"type\":\"object\"}}},"
    "{\"name\":\"wakes\",\"semantics\":{\"wake\":{\"input\":\"payload\"}}}]";

/* One process "p" with two events, a wake that is queued, and a grant. */
struct scene {
    struct work *w;
    struct proc_site site;
};

static belay_rc append(struct scene *s, const char *type, const char *key,
                       const char *session)
{
    const struct belay_event_draft d = { .size = sizeof(d),
                                         .process_id = "p",
                                         .event_type = type,
                                         .payload = "{\"a\":1}",
                                         .replay_key = key,
                                         .wake_target = { session, NULL } };
    struct belay_appended out;

    return proc_append(&s->site, &d, &s->w->arena, &out, &s->w->err);
}

static belay_rc complete(struct scene *s, bool *replayed)
{
    const struct belay_process_end e = { .size = sizeof(e),
                                         .process_id = "p",
                                         .authority = BELAY_AUTHORITY_OWNER,
                                         .await_output =
                                             "{\"type\":\"success\",\"value\":1}" };
    struct belay_completed out = { .replayed = false };
    belay_rc rc = proc_complete(&s->site, &e, &s->w->arena, &out, &s->w->err);

    *replayed = out.replayed;
    return rc;
}

static bool begin(struct scene *s, struct work *w)
{
    static const struct belay_scope scope = { "s", "f" };
    const struct belay_registration r = { .size = sizeof(r),
                                          .process_id = "p",
                                          .event_types = types };
    struct belay_registered out;

    *s = (struct scene){ .w = w, .site = { .space = w->space } };
    return WORK_RC(w, proc_book_open(&s->site.book, &w->err), BELAY_OK) &&
           WORK_RC(w, proc_register(&s->site, &r, &w->arena, &out, &w->err),
                   BELAY_OK) &&
           WORK_RC(w, append(s, "line", "k", NULL), BELAY_OK) &&
           WORK_RC(w, append(s, "wakes", NULL, "s"), BELAY_OK) &&
           WORK_RC(w, proc_grant(&s->site, &scope, "p", NULL, NULL, &w->err), BELAY_OK);
}

static void end(struct scene *s)
{
    proc_book_close(s->site.book);
}

/* --- what a check finds --- */

static void note(void *arg, const struct finding *f)
{
    struct buf *text = arg;

    buf_printf(text, "%s %.*s;", f->what, (int)f->entity.len,
               f->entity.ptr ? (const char *)f->entity.ptr : "");
}

/* Valid until the next call. */
static const char *findings(struct work *w)
{
    static char out[512];
    CLEANUP(buf_release) struct buf text = { 0 };
    struct check_counts counts;

    WORK_RC(w, check_store(w->store, note, &text, &counts, &w->err), BELAY_OK);
    (void)snprintf(out, sizeof(out), "%.*s", (int)text.len,
                   text.ptr ? (const char *)text.ptr : "");
    return out;
}

static belay_rc put(struct txn *t, const struct row_type *type, const struct value *key,
                    unsigned column, struct value value)
{
    const struct change change = { column, value };
    const struct row *row;
    belay_rc rc = txn_get(t, type, key, &row);

    return rc ? rc : txn_put(t, type, key, &change, 1);
}

static belay_rc drop(struct txn *t, const struct row_type *type,
                     const struct value *key)
{
    const struct row *row;
    belay_rc rc = txn_get(t, type, key, &row);

    return rc ? rc : txn_delete(t, type, key);
}

static belay_rc shorter(struct txn *t, void *arg)
{
    const struct value key = value_str("p");

    (void)arg;
    return put(t, &row_process, &key, PROCESS_LAST_SEQ, value_i64(1));
}

static belay_rc ended(struct txn *t, void *arg)
{
    const struct value key = value_str("p");

    (void)arg;
    return put(t, &row_process, &key, PROCESS_TERMINAL_SEQ, value_i64(1));
}

static belay_rc half_a_lease(struct txn *t, void *arg)
{
    const struct value key = value_str("p");

    (void)arg;
    return put(t, &row_process, &key, PROCESS_LEASE + LEASE_OWNER, value_str("o"));
}

static belay_rc no_spec(struct txn *t, void *arg)
{
    const struct value key = value_str("p");

    (void)arg;
    return drop(t, &row_process_spec, &key);
}

static belay_rc no_key(struct txn *t, void *arg)
{
    const struct value key[] = { value_str("p"), value_str("k") };

    (void)arg;
    return drop(t, &row_process_key, key);
}

static belay_rc no_wake(struct txn *t, void *arg)
{
    const struct value key[] = { value_str("p"), value_i64(2) };

    (void)arg;
    return drop(t, &row_process_wake, key);
}

static belay_rc no_grant(struct txn *t, void *arg)
{
    const struct value key[] = { value_str("s"), value_str("/f"), value_str("p") };

    (void)arg;
    return drop(t, &row_handle_grant, key);
}

static belay_rc wrong_count(struct txn *t, void *arg)
{
    const struct value key[] = { value_str(GRANTS_OF_SESSION), value_str("s") };

    (void)arg;
    return put(t, &row_grant_count, key, GRANT_COUNT_N, value_i64(7));
}

static const struct {
    const char *name;
    txn_body *body;
    const char *want; /* among the findings */
} damage[] = {
    { "a head before the end of the log", shorter, "wrong_count p;" },
    { "an end that no event brought", ended, "wrong_status p;" },
    { "half a lease", half_a_lease, "bad_value p;" },
    { "no registration", no_spec, "missing_row p;" },
    { "no replay key", no_key, "wrong_count p;" },
    { "no wake", no_wake, "wrong_count p;" },
    { "no grant", no_grant, "wrong_count p;" },
    { "a wrong number of grants", wrong_count, "wrong_count s;" },
};

static void planted(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(damage); i++) {
        struct scene s;
        struct work w;
        if (work_open(&w, t, ON_MEMORY) && begin(&s, &w)) {
            TAP_STR(t, findings(&w), "");
            WORK_RC(&w, work_run(&w, w.space, damage[i].body, NULL), BELAY_OK);
            if (!TAP_OK(t, strstr(findings(&w), damage[i].want) != NULL))
                printf("# %s: %s\n", damage[i].name, findings(&w));
            end(&s);
        }
        work_close(&w);
    }
}

/* --- the log is the truth --- */

/* As a store would be that had written the event, and not the status. */
static belay_rc forget_end(struct txn *t, void *arg)
{
    const struct value key = value_str("p");
    const struct row *row;
    struct proc p;
    belay_rc rc = txn_get(t, &row_process, &key, &row);

    (void)arg;
    if (rc == BELAY_OK)
        rc = proc_of(t, row, &p);
    if (rc)
        return rc;
    p.v[PROCESS_STATUS] = value_str("running");
    p.v[PROCESS_TERMINAL_SEQ] = p.v[PROCESS_FINISHED_AT_MS] = p.v[PROCESS_PURGE_AT_MS] =
        value_null();
    rc = drop(t, &row_process_end, &key);
    return rc ? rc : proc_write(t, &p);
}

static void on_repair(struct work *w)
{
    const struct belay_process *p = NULL;
    struct scene s;
    bool replayed = false;

    if (begin(&s, w)) {
        WORK_RC(w, complete(&s, &replayed), BELAY_OK);
        TAP_OK(w->t, !replayed);
        WORK_RC(w, work_run(w, w->space, forget_end, NULL), BELAY_OK);
        TAP_STR(w->t, findings(w), "wrong_status p;");
        WORK_RC(w, complete(&s, &replayed), BELAY_OK);
        TAP_OK(w->t, replayed);
        TAP_STR(w->t, findings(w), "");
        WORK_RC(w, proc_show(&s.site, "p", &w->arena, &p, &w->err), BELAY_OK);
        TAP_EQ(w->t, p->status, BELAY_PROCESS_COMPLETED);
        TAP_STR(w->t, p->await_output, "{\"type\":\"success\",\"value\":1}");
        TAP_EQ(w->t, p->last_sequence, 3);
    }
    end(&s);
}

static void repaired(struct tap *t)
{
    work_everywhere(t, on_repair);
}

/* --- round trips --- */

static uint64_t trips(struct work *w)
{
    struct trace_counts c = trace_counts(w->driver);

    TAP_EQ(w->t, c.failures, 0);
    return c.reads + c.commits;
}

static void on_trips(struct work *w)
{
    const struct belay_process_lease *lease = NULL;
    struct scene s;
    /* A read and a commit; where rows are kept and a key is taken for new, a commit. */
    uint64_t most = w->driver->caps & DRIVER_FAR ? 1 : 2;

    if (!work_is_traced(w) || !begin(&s, w))
        return;
    trace_reset(w->driver);
    WORK_RC(w, append(&s, "line", NULL, NULL), BELAY_OK);
    TAP_EQ(w->t, trips(w), most);
    trace_reset(w->driver);
    WORK_RC(w, append(&s, "line", "another", NULL), BELAY_OK);
    TAP_EQ(w->t, trips(w), most);
    WORK_RC(w, proc_lease(&s.site, "p", "o", 60000, NULL, &w->arena, &lease, &w->err),
            BELAY_OK);
    trace_reset(w->driver);
    WORK_RC(w, proc_renew(&s.site, lease, 120000, NULL, &w->err), BELAY_OK);
    TAP_OK(w->t, trips(w) <= 2);
    /* A key that is not new costs what it saves. */
    trace_reset(w->driver);
    WORK_RC(w, append(&s, "line", "another", NULL), BELAY_OK);
    TAP_OK(w->t, trips(w) <= 4);
    end(&s);
}

static void asks_little(struct tap *t)
{
    work_everywhere(t, on_trips);
}

/* --- epochs --- */

static void on_former_epoch(struct work *w)
{
    const struct belay_process_lease *lease = NULL;
    struct epoch_info info;
    struct scene s;
    bool replayed = false;

    if (!begin(&s, w))
        return;
    WORK_RC(w, proc_lease(&s.site, "p", "o", 60000, NULL, &w->arena, &lease, &w->err),
            BELAY_OK);
    WORK_RC(w, complete(&s, &replayed), BELAY_LEASE_HELD);
    WORK_RC(w,
            epoch_raise(w->space, bytes_str("test"), "it", &w->arena, &info, &w->err),
            BELAY_OK);
    WORK_RC(w, proc_renew(&s.site, lease, 60000, NULL, &w->err), BELAY_LEASE_LOST);
    WORK_RC(w, complete(&s, &replayed), BELAY_OK);
    end(&s);
}

static void former_epoch(struct tap *t)
{
    work_everywhere(t, on_former_epoch);
}

/* --- who holds --- */

static belay_rc holder_body(struct txn *t, void *arg)
{
    const struct value key = value_str("p");

    return txn_get(t, &row_process, &key, arg);
}

static void on_holder(struct work *w)
{
    const struct belay_incarnation who = { .size = sizeof(who),
                                           .host_id = "host",
                                           .boot_id = "boot",
                                           .fleet_member = "3/17",
                                           .pid = 4711,
                                           .process_start = 12345 };
    const struct belay_process_lease *lease;
    const struct row *row = NULL;
    struct scene s;

    if (begin(&s, w) &&
        WORK_RC(w,
                proc_lease(&s.site, "p", "me", 60000, &who, &w->arena, &lease, &w->err),
                BELAY_OK) &&
        WORK_RC(w, work_run(w, w->space, holder_body, &row), BELAY_OK) &&
        TAP_OK(w->t, row != NULL)) {
        const unsigned at = PROCESS_LEASE;
        TAP_OK(w->t, bytes_eq(row_bytes(row, at + LEASE_HOST), bytes_str("host")));
        TAP_OK(w->t, bytes_eq(row_bytes(row, at + LEASE_BOOT), bytes_str("boot")));
        TAP_OK(w->t,
               bytes_eq(row_bytes(row, at + LEASE_FLEET_MEMBER), bytes_str("3/17")));
        TAP_EQ(w->t, row_i64(row, at + LEASE_PID, 0), 4711);
        TAP_EQ(w->t, row_i64(row, at + LEASE_PROCESS_START, 0), 12345);
    }
    end(&s);
}

static void holder_is_kept(struct tap *t)
{
    work_everywhere(t, on_holder);
}

static const struct tap_case cases[] = {
    { "damage of processes is found", planted },
    { "a lease keeps who holds it: host, boot, process, member", holder_is_kept },
    { "a replay of its end repairs a process that runs on", repaired },
    { "L1: a lease of a former epoch keeps nobody away", former_epoch },
    { "an event, keyed or not, takes a read and a commit, on servers the commit alone",
      asks_little },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
