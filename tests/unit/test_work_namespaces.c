/* The registry: creating, listing, deleting with everything in it. */
#include "base/json.h"
#include "test_work.h"
#include "work/audit.h"
#include "work/namespaces.h"

static bool create(struct work *w, const char *name)
{
    bool created = false;

    WORK_RC(w,
            namespaces_create(w->store, bytes_str(name), "cli:ada", &created, &w->err),
            BELAY_OK);
    return created;
}

/* Names behind `after`, with commas between them. */
static const char *list(struct work *w, const char *after, size_t limit)
{
    static char text[256];
    struct namespace_info *found = NULL;
    size_t n = 0;

    arena_reset(&w->arena);
    WORK_RC(w,
            namespaces_list(w->store, bytes_str(after), limit, &w->arena, &found, &n,
                            &w->err),
            BELAY_OK);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof(text) - len, "%s%.*s%s", i > 0 ? "," : "",
                       (int)found[i].name.len, (const char *)found[i].name.ptr,
                       found[i].deleting ? "!" : "");
    }
    return text;
}

static belay_rc delete_in(struct work *w, struct store *s, const char *name)
{
    return namespaces_delete(s, bytes_str(name), "cli:ada", &w->err);
}

static void created_and_listed(struct work *w)
{
    bool created = true;

    TAP_STR(w->t, list(w, "", 10), "");
    TAP_OK(w->t, create(w, "b"));
    TAP_OK(w->t, create(w, "a"));
    TAP_OK(w->t, !create(w, "b"));
    work_fill(w, w->space, 1); /* by its first use */
    TAP_OK(w->t, !create(w, "default"));
    TAP_STR(w->t, list(w, "", 10), "a,b,default");
    TAP_STR(w->t, list(w, "", 2), "a,b");
    TAP_STR(w->t, list(w, "b", 2), "default");
    TAP_STR(w->t, list(w, "default", 2), "");

    const char *const bad[] = { "", "_belay", "A", "a b", "_x" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        WORK_RC(w,
                namespaces_create(w->store, bytes_str(bad[i]), "me", &created, &w->err),
                BELAY_INVALID);
        TAP_OK(w->t, created);
        WORK_RC(w, delete_in(w, w->store, bad[i]), BELAY_INVALID);
    }
    WORK_RC(w, delete_in(w, w->store, "nowhere"), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.entity, "nowhere");
}

static void test_created(struct tap *t)
{
    work_everywhere(t, created_and_listed);
}

static size_t dumped(struct work *w, const char *ns)
{
    CLEANUP(buf_release) struct buf dump = work_dump(w, ns);

    return dump.len;
}

/* The system's audit chain as "verb step,..." */
static const char *history(struct work *w)
{
    static char text[512];
    struct space *system = NULL;
    struct log_entries entries = { .n = 0 };

    text[0] = '\0';
    WORK_RC(w, store_system_space(w->store, &system, &w->err), BELAY_OK);
    arena_reset(&w->arena);
    WORK_RC(w, audit_page(system, 0, 100, &w->arena, &entries, &w->err), BELAY_OK);
    for (size_t i = 0; i < entries.n; i++) {
        json_t *entry = NULL;
        size_t len = strlen(text);
        if (!WORK_RC(w, json_read(entries.entry[i].data, 4096, &entry, &w->err),
                     BELAY_OK))
            break;
        const char *step = json_string_value(
            json_object_get(json_object_get(entry, "detail"), "step"));
        (void)snprintf(text + len, sizeof(text) - len, "%s%s %s", i > 0 ? "," : "",
                       json_string_value(json_object_get(entry, "verb")),
                       step ? step : "-");
        json_decref(entry);
    }
    struct audit_walk chain;
    WORK_RC(w, audit_verify(system, &chain, &w->err), BELAY_OK);
    TAP_STR(w->t, chain.reason, NULL);
    return text;
}

static void deleted(struct work *w)
{
    struct space *doomed = work_space(w, w->store, "doomed");
    struct blob_info info;

    work_fill(w, w->space, 10);
    work_fill(w, doomed, 3000); /* several steps */
    work_blob(w, doomed, 2 * CHUNK_MAX + 5, 'y', &info);
    size_t kept = dumped(w, "default");
    WORK_RC(w, delete_in(w, w->store, "doomed"), BELAY_OK);
    TAP_EQ(w->t, dumped(w, "doomed"), 0);
    TAP_EQ(w->t, dumped(w, "default"), kept); /* nobody else is touched */
    TAP_STR(w->t, list(w, "", 10), "default");
    WORK_RC(w, delete_in(w, w->store, "doomed"), BELAY_NOT_FOUND);
    TAP_STR(w->t, history(w), "namespace.delete begun,namespace.delete done");

    /* The space that was open begins anew, registered before it holds anything, and
     * feeds and logs begin at their beginning. */
    work_fill(w, doomed, 2);
    TAP_STR(w->t, list(w, "", 10), "default,doomed");
    CLEANUP(buf_release) struct buf dump = work_dump(w, "doomed");
    buf_append_char(&dump, '\0');
    TAP_OK(w->t, strstr((const char *)dump.ptr, "row format"));
    TAP_OK(w->t, strstr((const char *)dump.ptr, "feed \"feed\" 2 \"e\""));
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "feed \"feed\" 3 "));
    WORK_RC(w, delete_in(w, w->store, "default"), BELAY_OK);
    TAP_STR(w->t, list(w, "", 10), "doomed");
}

static void test_deleted(struct tap *t)
{
    work_everywhere(t, deleted);
}

/* --- half-way --- */

static belay_rc mark_body(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    struct change change = { NAMESPACE_STATE, value_str(NAMESPACE_DELETING) };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_namespace, &key, &row);

    return rc ? rc : txn_put(t, &row_namespace, &key, &change, 1);
}

/* As a crash after the first step leaves it: marked, and a part of it erased.  What a
 * thing is, a row or a whole index, is the driver's to say. */
static void resumed(struct work *w)
{
    struct space *system = NULL, *sp = NULL;
    struct store *other = NULL;
    bool more = false, created = false, active = true;

    work_fill(w, w->space, 100);
    TAP_OK(w->t, create(w, "empty"));
    WORK_RC(w, store_system_space(w->store, &system, &w->err), BELAY_OK);
    char name[] = "default", empty[] = "empty";
    WORK_RC(w, work_run(w, system, mark_body, name), BELAY_OK);
    WORK_RC(w, driver_erase(w->driver, bytes_str("default"), 3, &more, &w->err),
            BELAY_OK);
    TAP_OK(w->t, more);
    TAP_OK(w->t, dumped(w, "default") > 0);

    /* Nobody opens it any more, nor makes it anew. */
    other = work_store(w);
    WORK_RC(w, store_space(other, bytes_str("default"), &sp, &w->err),
            BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "deleting");
    TAP_STR(w->t, w->err.entity, "default");
    WORK_RC(w, namespaces_create(other, bytes_str("default"), "me", &created, &w->err),
            BELAY_WRONG_STATE);
    TAP_STR(w->t, list(w, "", 10), "default!,empty");
    WORK_RC(w, namespaces_is_active(other, bytes_str("default"), &active, &w->err),
            BELAY_OK);
    TAP_OK(w->t, !active);

    /* Nor founds one that was opened before it was marked. */
    sp = work_space(w, other, "empty");
    WORK_RC(w, work_run(w, system, mark_body, empty), BELAY_OK);
    int64_t one = 1;
    WORK_RC(w, work_run(w, sp, work_fill_body, &one), BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "deleting");
    TAP_EQ(w->t, dumped(w, "empty"), 0);

    WORK_RC(w, delete_in(w, other, "default"), BELAY_OK);
    WORK_RC(w, delete_in(w, other, "empty"), BELAY_OK);
    TAP_EQ(w->t, dumped(w, "default"), 0);
    TAP_STR(w->t, list(w, "", 10), "");
    TAP_STR(w->t, history(w),
            "namespace.create -,namespace.delete resumed,namespace.delete done,"
            "namespace.delete resumed,namespace.delete done");
    WORK_RC(w, work_run(w, sp, work_fill_body, &one), BELAY_OK);
    TAP_STR(w->t, list(w, "", 10), "empty");
    store_close(other);
}

static void test_resumed(struct tap *t)
{
    work_everywhere(t, resumed);
}

/* Whatever commit of a deletion fails, the next call finishes it. */
static void test_faults(struct tap *t)
{
    bool done = false;

    for (unsigned n = 1; n < 20 && !done; n++) {
        struct driver *faulty = NULL;
        struct work w;
        if (!work_open(&w, t, ON_MEMORY))
            return;
        work_fill(&w, w.space, 10);
        store_close(w.store);
        WORK_RC(&w, fault_wrap(&faulty, w.driver, &w.config.clock, &w.err), BELAY_OK);
        w.driver = faulty;
        w.store = work_store(&w);
        struct fault f = {
            .op = FAULT_ON_COMMIT, .kind = FAULT_BEFORE, .nth = n, .sticky = true
        };
        WORK_RC(&w, fault_arm(faulty, &f, &w.err), BELAY_OK);
        done = delete_in(&w, w.store, "default") == BELAY_OK;
        if (!done)
            TAP_EQ(t, w.err.code, BELAY_UNAVAILABLE);
        fault_clear(faulty);
        if (!done)
            WORK_RC(&w, delete_in(&w, w.store, "default"), BELAY_OK);
        TAP_EQ(t, dumped(&w, "default"), 0);
        TAP_STR(t, list(&w, "", 10), "");
        (void)history(&w); /* checks the chain */
        work_close(&w);
    }
    TAP_OK(t, done);
}

/* --- drivers that cannot --- */

static void test_cannot(struct tap *t)
{
    static struct driver_ops ops = { .name = "plain", .version = DRIVER_VERSION };
    struct driver plain = { .ops = &ops };
    struct driver *traced = NULL, *faulty = NULL;
    struct belay_clock clock = { 0 };
    struct belay_error err = { 0 };
    bool more = true;

    TAP_EQ(t, fault_wrap(&faulty, &plain, &clock, &err), BELAY_OK);
    TAP_EQ(t, trace_wrap(&traced, faulty, NULL, NULL, &err), BELAY_OK);
    TAP_EQ(t, driver_erase(traced, bytes_str("a"), 1, &more, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "erase");
    TAP_OK(t, more);
    TAP_EQ(t, driver_check(traced, NULL, NULL, &err), BELAY_OK);
    TAP_EQ(t, driver_doctor(traced, NULL, NULL, &err), BELAY_OK);
    ops.close = (void (*)(struct driver *))0;
    free(traced);
    free(faulty);
}

static const struct tap_case cases[] = {
    { "namespaces are created once and listed in order, page by page", test_created },
    { "a namespace is deleted with everything in it and nothing else", test_deleted },
    { "a deletion that was interrupted goes on; meanwhile nobody gets in",
      test_resumed },
    { "whatever commit of a deletion fails, the next call finishes it", test_faults },
    { "a driver without these functions says so, under decorators too", test_cannot },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
