/* What is wrong with a store, or with the machine it is on. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "api/handle.h"
#include "api/op_handlers.h"
#include "work/check.h"
#include "work/epoch.h"
#include "work/host_watch.h"

/* Findings as they come in. */
struct findings {
    json_t *list;
    bool bad; /* one of them is */
    int failed;
};

/* --- check --- */

static void add_checked(void *arg, const struct finding *f)
{
    struct findings *all = arg;
    json_t *row = json_object();

    all->failed |= json_object_set_new(row, "code", json_string(f->what));
    all->failed |= json_object_set_new(row, "namespace",
                                       f->ns.len > 0 ? op_text(f->ns) : json_null());
    all->failed |= json_object_set_new(
        row, "entity", f->entity.len > 0 ? op_text(f->entity) : json_null());
    all->failed |= json_object_set_new(row, "message", op_text(bytes_str(f->message)));
    all->failed |= json_array_append_new(all->list, row);
}

static json_t *counts_of(const struct check_counts *n)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "namespaces",
                     (json_int_t)n->namespaces, "deleting", (json_int_t)n->deleting,
                     "rows", (json_int_t)n->rows, "ranks", (json_int_t)n->ranks,
                     "log_entries", (json_int_t)n->logs, "feed_entries",
                     (json_int_t)n->feeds, "blobs", (json_int_t)n->blobs, "chunks",
                     (json_int_t)n->chunks, "audit_entries", (json_int_t)n->audits);
}

belay_rc op_check(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct findings all = { .list = json_array() };
    struct check_counts counts;
    belay_rc rc = check_store(call->belay->store, add_checked, &all, &counts, err);

    if (rc) {
        json_decref(all.list);
        return rc;
    }
    json_t *result = json_object();
    int failed = all.failed;
    failed |= json_object_set_new(result, "ok", json_boolean(counts.findings == 0));
    failed |= json_object_set_new(result, "checked", counts_of(&counts));
    failed |= json_object_set_new(result, "found", json_integer(counts.findings));
    failed |= json_object_set_new(result, "findings", all.list);
    return op_finish(result, failed, out, err);
}

/* --- doctor --- */

static void add_told(void *arg, const struct finding *f)
{
    static const char *const levels[] = {
        [FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_BAD] = "bad"
    };
    struct findings *all = arg;
    json_t *row = json_object();

    all->bad = all->bad || f->level == FINDING_BAD;
    all->failed |= json_object_set_new(row, "level", json_string(levels[f->level]));
    all->failed |= json_object_set_new(row, "what", json_string(f->what));
    all->failed |= json_object_set_new(row, "message", op_text(bytes_str(f->message)));
    all->failed |= json_array_append_new(all->list, row);
}

static void add(struct findings *all, enum finding_level level, const char *what,
                const char *message)
{
    add_told(all,
             &(struct finding){ .level = level, .what = what, .message = message });
}

/* Memory that is wiped on fork, on which every handle relies. */
#define KERNEL_MAJOR 4
#define KERNEL_MINOR 14

static void tell_kernel(struct findings *all)
{
    struct utsname name;
    char text[256], *end;

    if (uname(&name)) {
        add(all, FINDING_WARN, "kernel", "cannot be asked for its version");
        return;
    }
    long major = strtol(name.release, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    bool fine =
        major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
    (void)snprintf(text, sizeof(text), "%s %s%s", name.sysname, name.release,
                   fine ? "" : ": Belay needs Linux 4.14");
    add(all, fine ? FINDING_OK : FINDING_BAD, "kernel", text);
}

/* A process keeps up to 16 readers of a store open, with a few files each. */
#define FILES_WANTED 256

static void tell_files(struct findings *all)
{
    struct rlimit limit;
    char text[128];

    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    bool fine = limit.rlim_cur >= FILES_WANTED;
    (void)snprintf(text, sizeof(text), "a process may open %llu%s",
                   (unsigned long long)limit.rlim_cur,
                   fine ? "" : ": too few for many readers; raise ulimit -n");
    add(all, fine ? FINDING_OK : FINDING_WARN, "open_files", text);
}

static belay_rc tell_clock(struct findings *all, struct belay *b,
                           struct belay_error *err)
{
    struct space *sp = NULL;
    int64_t now_ms, step_ms = 0;
    char text[256];
    belay_rc rc = store_space(b->store, bytes_str(b->ns), &sp, err);

    if (rc == BELAY_OK)
        rc = space_now(sp, &now_ms, err);
    if (rc)
        return rc;
    if (!space_clock_doubted(sp, &step_ms)) {
        add(all, FINDING_OK, "clock", "the store's time follows the clock");
        return BELAY_OK;
    }
    (void)snprintf(text, sizeof(text),
                   "the clock is %lld ms away from the time of namespace %s and is not "
                   "followed yet; if it is right, belay clock reset accepts it",
                   (long long)step_ms, b->ns);
    add(all, FINDING_WARN, "clock", text);
    return BELAY_OK;
}

/* X10 */
static belay_rc tell_epoch(struct findings *all, struct belay *b,
                           struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct epoch_info info;
    struct space *sp = NULL;
    char text[320];
    belay_rc rc = store_space(b->store, bytes_str(b->ns), &sp, err);

    if (rc == BELAY_OK)
        rc = epoch_show(sp, &arena, &info, err);
    if (rc)
        return rc;
    if (info.life == LIFE_FOREIGN) {
        (void)snprintf(text, sizeof(text),
                       "the server is not the one that granted before in namespace %s: "
                       "a replica was "
                       "promoted, or a copy restored, and what was acknowledged last "
                       "may be missing. "
                       "Nothing is granted. When the one before is gone for good: "
                       "belay epoch raise",
                       b->ns);
        add(all, FINDING_BAD, "epoch", text);
        return BELAY_OK;
    }
    (void)snprintf(text, sizeof(text), "%lld in namespace %s%s", (long long)info.epoch,
                   b->ns,
                   info.life == LIFE_RESTARTED
                       ? "; the server was restarted, the next grant raises it"
                       : "");
    add(all, FINDING_OK, "epoch", text);
    return BELAY_OK;
}

/* H3: without it everything works, and more slowly. */
static void tell_host(struct findings *all, const struct belay *b, const char *dir)
{
    const struct host_watch_options options = { .fleet = b->fleet, .dir = dir };
    struct belay_error why = { .code = 0 };
    char text[400];
    int others = 0;

    if (b->fleet[0] == '\0')
        return;
    belay_rc rc = host_watch_examine(&options, &others, &why);
    if (rc == BELAY_OK)
        (void)snprintf(text, sizeof(text),
                       "shared memory works; what a worker that dies held is had by "
                       "others of this host at once");
    else
        (void)snprintf(text, sizeof(text),
                       "no shared memory (%s): what a worker that dies held is had by "
                       "others when its lease ends",
                       why.message);
    add(all, rc ? FINDING_WARN : FINDING_OK, "host", text);
}

static void tell_error(struct findings *all, const char *what,
                       const struct belay_error *e)
{
    add(all, FINDING_BAD, what, e->message);
}

/* Asks the store; the code it could not be opened with, or that it gave. */
static belay_rc examine(struct findings *all, struct belay *b, struct belay_error *err)
{
    belay_rc rc = driver_doctor(b->driver, add_told, all, err);

    if (rc)
        tell_error(all, "store", err);
    if (rc == BELAY_OK) {
        rc = tell_clock(all, b, err);
        if (rc == BELAY_OK)
            rc = tell_epoch(all, b, err);
        if (rc)
            tell_error(all, "namespace", err);
    }
    return rc;
}

static belay_rc answer_doctor(struct findings *all, struct belay *b, belay_rc code,
                              json_t **out, struct belay_error *err)
{
    const char *durability = b ? belay_durability_name((int)belay_durability(b)) : NULL;
    const char *failure = code ? belay_error_info((int)code)->name : NULL;
    json_t *result = json_object();
    int failed = all->failed;

    failed |= json_object_set_new(result, "ok", json_boolean(!all->bad));
    failed |= json_object_set_new(result, "version", json_string(belay_version()));
    failed |= json_object_set_new(result, "store",
                                  b ? json_string(b->driver->ops->name) : json_null());
    failed |= json_object_set_new(result, "durability",
                                  durability ? json_string(durability) : json_null());
    failed |= json_object_set_new(result, "code",
                                  failure ? json_string(failure) : json_null());
    failed |= json_object_set_new(result, "findings", all->list);
    return op_finish(result, failed, out, err);
}

belay_rc op_doctor(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const struct belay_options options = { .size = sizeof(options), .ns = call->ns };
    struct belay_error why = { .code = 0 };
    struct belay *b = NULL;
    belay_rc rc = handle_open(call->store, &options, HANDLE_CAREFUL, &b, &why);

    /* A URL that names no store is a mistake of the caller's, and no illness. */
    if (rc == BELAY_INVALID || rc == BELAY_MISUSE || rc == BELAY_NO_MEMORY) {
        if (err)
            *err = why;
        return rc;
    }
    struct findings all = { .list = json_array() };
    tell_kernel(&all);
    tell_files(&all);
    if (b)
        tell_host(&all, b, call->fleet_dir);
    if (b)
        rc = examine(&all, b, &why);
    else
        tell_error(&all, "open", &why);
    rc = answer_doctor(&all, b, rc, out, err);
    belay_close(b);
    return rc;
}
