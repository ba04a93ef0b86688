#include "inbox.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "api/handle.h"
#include "work/queue.h"

#define BULK 1000

bool bench_failed(const char *what, const struct belay_error *err)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, err->message);
    return false;
}

struct belay *bench_belay_open(const struct bench_folder *f, const char *name)
{
    struct belay_error err;
    struct belay *b = NULL;
    char url[512];

    (void)snprintf(url, sizeof(url), "sqlite:%s/%s", f->path, name);
    if (belay_open(url, NULL, &b, &err))
        (void)bench_failed("open", &err);
    return b;
}

/* --- filling --- */

struct fill {
    const struct queue_entry *entry;
    unsigned n;
};

static belay_rc fill_body(struct txn *t, void *arg)
{
    const struct fill *f = arg;
    const struct row *existing;
    belay_rc rc = BELAY_OK;
    int64_t seq;

    for (unsigned i = 0; i < f->n && !rc; i++)
        rc = queue_enqueue_in(t, f->entry, &seq, &existing);
    return rc;
}

bool bench_enqueue(struct belay *b, const char *session, unsigned n, int32_t slot)
{
    static const char *const payloads[] = {
        "{\"type\":\"turn_input\",\"input\":{\"items\":[{\"type\":\"text\",\"text\":"
        "\"please look at the failing build\"}]}}"
    };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .session_id = session,
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = slot,
                                 .payloads = payloads,
                                 .n_payloads = 1 };
    CLEANUP(arena_release) struct belay_arena kept = { .first = NULL };
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct queue_entry entry;
    struct belay_error err;

    if (queue_prepare(&draft, &kept, &entry, &err))
        return bench_failed("enqueue", &err);
    for (unsigned done = 0; done < n; done += BULK) {
        struct fill fill = { &entry, n - done < BULK ? n - done : BULK };
        if (txn_run(b->space, fill_body, &fill, NULL, &arena, &err))
            return bench_failed("enqueue", &err);
        arena_reset(&arena);
    }
    return true;
}

/* --- callers --- */

#define CALLERS_MAX 256

struct crew {
    pthread_barrier_t start;
    bool (*work)(void *arg, unsigned i);
    void *arg;
};

struct crew_member {
    struct crew *crew;
    unsigned i;
    bool ok;
};

static void *crew_thread(void *arg)
{
    struct crew_member *m = arg;

    (void)pthread_barrier_wait(&m->crew->start);
    m->ok = m->crew->work(m->crew->arg, m->i);
    return NULL;
}

double bench_crew(unsigned callers, bool (*work)(void *arg, unsigned i), void *arg)
{
    struct crew crew = { .work = work, .arg = arg };
    struct crew_member members[CALLERS_MAX];
    pthread_t threads[CALLERS_MAX];
    bool ok = true;

    if (callers > CALLERS_MAX || pthread_barrier_init(&crew.start, NULL, callers + 1))
        return 0;
    for (unsigned i = 0; i < callers; i++) {
        members[i] = (struct crew_member){ &crew, i, false };
        if (pthread_create(&threads[i], NULL, crew_thread, &members[i])) {
            perror("bench: a thread");
            _exit(1); /* the others wait for it */
        }
    }
    /* Nobody begins before this one is there, and who begins may end before it goes on. */
    double start = bench_now();
    (void)pthread_barrier_wait(&crew.start);
    for (unsigned i = 0; i < callers; i++) {
        (void)pthread_join(threads[i], NULL);
        ok = ok && members[i].ok;
    }
    double took = bench_now() - start;
    (void)pthread_barrier_destroy(&crew.start);
    return ok ? took : 0;
}

/* --- raw SQLite --- */

sqlite3 *bench_raw_open(const struct bench_folder *f, const char *name,
                        const char *schema)
{
    sqlite3 *db = NULL;
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    bool ok = !sqlite3_open_v2(path, &db, flags, NULL) &&
              !sqlite3_exec(db,
                            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                            "PRAGMA cache_size = -16384",
                            NULL, NULL, NULL) &&
              !sqlite3_exec(db, schema, NULL, NULL, NULL);
    if (ok)
        return db;
    (void)fprintf(stderr, "bench: %s\n", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    return NULL;
}

sqlite3_stmt *bench_raw_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL))
        (void)fprintf(stderr, "bench: %s\n", sqlite3_errmsg(db));
    return st;
}
