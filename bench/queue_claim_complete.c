/* queue.claim_complete - a claim, then a commit with one node of 200 bytes, a turn stamp
 * and that claim's completion: pairs a second of 64 callers over 64 sessions, against
 * raw SQLite that claims by an update and completes by a delete, one row and one fsync
 * each.  ratio_1: the same with one caller. */
#include <stdio.h>

#include "inbox.h"

#define CALLERS 64
#define ROUNDS 5
#define INBOX 25 /* batches that wait in an inbox when a part of a round begins */

struct job {
    struct belay *b;
    unsigned pairs; /* of each caller */
    unsigned round; /* makes names that no round had before */
    unsigned callers;
};

static void session_name(unsigned i, char out[32])
{
    (void)snprintf(out, 32, "session-%02u", i);
}

/* One node of 200 bytes. */
static void node_text(char out[256], const char *turn, const char *parent)
{
    int n = snprintf(out, 256,
                     "{\"kind\":\"event\",\"node_id\":\"%s\",\"parent_node_id\":%s%s%s,"
                     "\"text\":\"",
                     turn, parent ? "\"" : "", parent ? parent : "null",
                     parent ? "\"" : "");
    while (n < 198)
        out[n++] = 'x';
    (void)snprintf(out + n, 256 - (size_t)n, "\"}");
}

static bool pair(struct belay *b, struct belay_session *s, struct belay_arena *arena,
                 const char *turn, const char *parent)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = belay_session_id(s),
                                           .owner_id = turn,
                                           .lease_ms = BELAY_QUEUE_LEASE_MS,
                                           .max = 1 };
    struct belay_claimed claimed;
    struct belay_committed done;
    struct belay_error err;
    char node[256];

    if (belay_queue_claim(b, &request, arena, &claimed, &err))
        return bench_failed("claim", &err);
    if (!claimed.claim) {
        (void)fprintf(stderr, "bench: %s\n", belay_no_claim_name(claimed.why));
        return false;
    }
    node_text(node, turn, parent);
    struct belay_commit commit = { .size = sizeof(commit),
                                   .graph = BELAY_GRAPH_APPEND,
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .turn_id = turn,
                                   .nodes = (const char *const[]){ node },
                                   .n_nodes = 1,
                                   .completes = &claimed.claim,
                                   .n_completes = 1 };
    if (belay_session_commit(s, &commit, arena, &done, &err))
        return bench_failed("commit", &err);
    return true;
}

static bool work(void *arg, unsigned i)
{
    const struct job *job = arg;
    struct belay_session *s = NULL;
    struct belay_arena *arena = NULL;
    char name[32], turn[64], parent[64] = "";
    bool ok;

    session_name(i, name);
    ok = !belay_arena_new(&arena, NULL) &&
         !belay_session_open(job->b, name, NULL, &s, NULL);
    for (unsigned n = 0; n < job->pairs && ok; n++) {
        (void)snprintf(turn, sizeof(turn), "turn-%07u-%06u", job->round, n);
        ok = pair(job->b, s, arena, turn, n > 0 ? parent : NULL);
        memcpy(parent, turn, sizeof(parent));
        belay_arena_reset(arena);
    }
    belay_session_close(s);
    belay_arena_free(arena);
    return ok;
}

static bool fill_one(void *arg, unsigned i)
{
    const struct job *job = arg;
    char name[32];

    session_name(i, name);
    return bench_enqueue(job->b, name, job->pairs, BELAY_EXCLUSIVE);
}

/* Pairs a second, or 0.  Inboxes are filled in between, and that is not counted. */
static double belay_rate(struct belay *b, unsigned callers, unsigned pairs,
                         unsigned round)
{
    double took = 0;

    for (unsigned done = 0; done < pairs; done += INBOX) {
        struct job job = { b, INBOX, 1000 * round + done, callers };
        double part = bench_crew(callers, fill_one, &job) > 0
                          ? bench_crew(callers, work, &job)
                          : 0;
        if (part <= 0)
            return 0;
        took += part;
    }
    return (double)callers * pairs / took;
}

/* --- the baseline --- */

static const char raw_schema[] =
    "CREATE TABLE IF NOT EXISTS batch (session TEXT NOT NULL, seq INTEGER NOT NULL,"
    " batch_id TEXT, payload TEXT, claim_id TEXT, owner TEXT, token TEXT,"
    " fence INTEGER, claimed_at INTEGER, expires_at INTEGER,"
    " PRIMARY KEY (session, seq)) STRICT, WITHOUT ROWID";

static bool raw_fill(sqlite3 *db, unsigned n)
{
    sqlite3_stmt *insert = bench_raw_prepare(
        db,
        "INSERT INTO batch VALUES ('session-01', ?1, 'qwb:' || hex(randomblob(32)),"
        " '{\"type\":\"turn_input\",\"input\":{\"items\":[]}}', NULL, NULL, NULL, 0,"
        " 0, 0)");
    bool ok = insert && !sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

    for (unsigned i = 1; i <= n && ok; i++) {
        (void)sqlite3_bind_int64(insert, 1, i);
        ok = sqlite3_step(insert) == SQLITE_DONE;
        (void)sqlite3_reset(insert);
    }
    (void)sqlite3_finalize(insert);
    return ok && !sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

static bool raw_step(sqlite3 *db, sqlite3_stmt *st, unsigned seq)
{
    (void)sqlite3_bind_int64(st, 1, seq);
    bool ok = sqlite3_step(st) == SQLITE_DONE && sqlite3_changes(db) == 1;
    (void)sqlite3_reset(st);
    return ok;
}

static double raw_rate(const struct bench_folder *f, unsigned pairs)
{
    sqlite3 *db = bench_raw_open(f, "raw.db", raw_schema);
    if (!db)
        return 0;
    sqlite3_stmt *claim = bench_raw_prepare(
        db,
        "UPDATE batch SET claim_id = 'qwc:1:1', owner = 'worker-1',"
        " token = '27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071',"
        " fence = fence + 1, claimed_at = 1750000000000,"
        " expires_at = 1750000900000"
        " WHERE session = 'session-01' AND seq = ?1 AND claim_id IS NULL");
    sqlite3_stmt *complete = bench_raw_prepare(
        db, "DELETE FROM batch WHERE session = 'session-01' AND seq = ?1"
            " AND claim_id = 'qwc:1:1'");
    bool ok = claim && complete && raw_fill(db, pairs);
    double start = bench_now();
    for (unsigned i = 1; i <= pairs && ok; i++)
        ok = raw_step(db, claim, i) && raw_step(db, complete, i);
    double took = bench_now() - start;
    (void)sqlite3_finalize(claim);
    (void)sqlite3_finalize(complete);
    (void)sqlite3_close(db);
    return ok && took > 0 ? pairs / took : 0;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS, pairs = o.smoke ? INBOX : 6 * INBOX;
    unsigned raw_pairs = o.smoke ? 20 : 2000;
    double raw[ROUNDS], many[ROUNDS], disk[ROUNDS], r1[ROUNDS], r64[ROUNDS];
    struct bench_folder f;
    bool ok = bench_folder_make(&f);

    if (!ok)
        return 1;
    struct belay *b = bench_belay_open(&f, "belay.db");
    ok = b != NULL;
    /* Past the first checkpoint, where the logs stop growing. */
    ok = ok && raw_rate(&f, raw_pairs) > 0 && belay_rate(b, CALLERS, pairs, 0) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        raw[i] = raw_rate(&f, raw_pairs);
        double one = belay_rate(b, 1, pairs * 4, 2 * i + 1);
        many[i] = belay_rate(b, CALLERS, pairs, 2 * i + 2);
        ok = disk[i] > 0 && raw[i] > 0 && one > 0 && many[i] > 0;
        r1[i] = ok ? one / raw[i] : 0;
        r64[i] = ok ? many[i] / raw[i] : 0;
    }
    belay_close(b);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(r64, rounds));
        bench_field(&fields, "ratio_1", bench_median(r1, rounds));
        bench_field(&fields, "per_s", bench_median(many, rounds));
        bench_field(&fields, "baseline_per_s", bench_median(raw, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
        ok = bench_plausible(&o, 2 * bench_median(raw, rounds),
                             bench_median(disk, rounds));
    }
    return bench_finish(&o, "queue.claim_complete", &fields, ok);
}
