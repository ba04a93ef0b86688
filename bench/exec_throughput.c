/* exec.throughput - an execution is claimed, then completed, one by one: pairs a second of
 * 64 callers, against raw SQLite that claims by an update and completes by a delete, one
 * row and one fsync each.  ratio_1: the same with one caller; ratio_batch: by 64 in 4
 * callers, each completing together with its next claim, against the same.
 *
 * ratio_plainjob, ratio_beanstalkd: the 64 callers against what others drain at their best
 * with the same durability.  beanstalkd is measured in the same rounds where it is
 * installed (with -f0, so that it syncs its log at every write), plainjob by a script
 * (peer.h); or
 *
 *     --peer plainjob=JOBS_PER_S --peer beanstalkd=JOBS_PER_S
 *
 * Otherwise these figures count: plainjob 0.0.14 with synchronous=FULL, 2201/s, and
 * beanstalkd 1.12, 5674/s, two virtual cores, fdatasync 0.12 to 0.25 ms. */
#include <stdio.h>

#include "beanstalkd.h"
#include "exec.h"
#include "peer.h"

#define CALLERS 64
#define BATCH 64
#define BATCH_CALLERS 4
#define ROUNDS 5

/* --- raw SQLite --- */

static const char raw_schema[] =
    "CREATE TABLE IF NOT EXISTS job (id TEXT NOT NULL PRIMARY KEY, lane TEXT NOT NULL,"
    " state INTEGER NOT NULL, priority INTEGER NOT NULL, run_at INTEGER NOT NULL,"
    " kind TEXT, payload TEXT, lease_id TEXT, worker TEXT, fence INTEGER,"
    " claimed_at INTEGER, expires_at INTEGER) STRICT, WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS ready ON job (lane, state, priority, run_at)";

static bool raw_fill(sqlite3 *db, unsigned n)
{
    sqlite3_stmt *insert = bench_raw_prepare(
        db,
        "INSERT INTO job VALUES ('exe_' || lower(hex(randomblob(13))), 'mail', 0, 0,"
        " 1750000000000 + ?1, 'mail', '{\"to\":\"user@example.com\",\"subject\":"
        "\"hello\",\"body\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}',"
        " NULL, NULL, 0, 0, 0)");
    bool ok = insert && !sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

    for (unsigned i = 0; i < n && ok; i++) {
        (void)sqlite3_bind_int64(insert, 1, i);
        ok = sqlite3_step(insert) == SQLITE_DONE;
        (void)sqlite3_reset(insert);
    }
    (void)sqlite3_finalize(insert);
    return ok && !sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

static bool raw_pair(sqlite3 *db, sqlite3_stmt *claim, sqlite3_stmt *complete)
{
    char id[64];

    if (sqlite3_step(claim) != SQLITE_ROW)
        return false;
    (void)snprintf(id, sizeof(id), "%s", (const char *)sqlite3_column_text(claim, 0));
    bool ok = sqlite3_step(claim) == SQLITE_DONE && !sqlite3_reset(claim);
    (void)sqlite3_bind_text(complete, 1, id, -1, SQLITE_STATIC);
    ok = ok && sqlite3_step(complete) == SQLITE_DONE && sqlite3_changes(db) == 1;
    return !sqlite3_reset(complete) && ok;
}

static double raw_rate(const struct bench_folder *f, unsigned pairs)
{
    sqlite3 *db = bench_raw_open(f, "raw.db", raw_schema);
    if (!db)
        return 0;
    sqlite3_stmt *claim = bench_raw_prepare(
        db, "UPDATE job SET state = 1, lease_id = 'lea_01jd4k8m2q7r9s5t6v8w0x2y4z',"
            " worker = 'worker-01', fence = fence + 1, claimed_at = 1750000000000,"
            " expires_at = 1750000030000 WHERE id = (SELECT id FROM job"
            " WHERE lane = 'mail' AND state = 0 ORDER BY priority, run_at LIMIT 1)"
            " RETURNING id, payload");
    sqlite3_stmt *complete =
        bench_raw_prepare(db, "DELETE FROM job WHERE id = ?1 AND state = 1"
                              " AND lease_id = 'lea_01jd4k8m2q7r9s5t6v8w0x2y4z'");
    bool ok = claim && complete && raw_fill(db, pairs);
    double start = bench_now();
    for (unsigned i = 0; i < pairs && ok; i++)
        ok = raw_pair(db, claim, complete);
    double took = bench_now() - start;
    if (!ok)
        (void)fprintf(stderr, "bench: %s\n", sqlite3_errmsg(db));
    (void)sqlite3_finalize(claim);
    (void)sqlite3_finalize(complete);
    (void)sqlite3_close(db);
    return ok && took > 0 ? pairs / took : 0;
}

/* --- rounds --- */

/* At their best, as several connections with several requests at once find it. */
static double beanstalkd_rate(const struct bench_beanstalkd *s, bool smoke)
{
    unsigned n = smoke ? 200 : 6000;
    double few = bench_beanstalkd_rate(s, n, 4, 50);
    double many = bench_beanstalkd_rate(s, n, 16, 50);

    return few > many ? few : many;
}

struct rates {
    double beanstalkd[ROUNDS];
    double disk[ROUNDS], raw[ROUNDS], one[ROUNDS], many[ROUNDS], batch[ROUNDS];
    double r1[ROUNDS], r64[ROUNDS], r_batch[ROUNDS];
};

/* What is measured. */
struct site {
    const struct bench_folder *folder;
    struct belay *b;
    struct bench_beanstalkd beanstalkd;
};

static bool measure(struct rates *r, unsigned i, const struct site *s, bool smoke)
{
    const struct bench_drain one = {
        .b = s->b, .lane = "mail", .callers = 1, .batch = 1
    };
    const struct bench_drain many = {
        .b = s->b, .lane = "mail", .callers = CALLERS, .batch = 1
    };
    const struct bench_drain batch = { .b = s->b,
                                       .lane = "mail",
                                       .callers = BATCH_CALLERS,
                                       .batch = BATCH,
                                       .next = true };

    r->disk[i] = bench_fdatasync_rate(s->folder, smoke ? 0.05 : 0.5);
    r->raw[i] = raw_rate(s->folder, smoke ? 20 : 3000);
    r->many[i] = bench_exec_rate(&many, smoke ? 200 : 12000);
    r->batch[i] = bench_exec_rate(&batch, smoke ? 500 : 30000);
    r->one[i] = bench_exec_rate(&one, smoke ? 20 : 2000);
    r->beanstalkd[i] = s->beanstalkd.port ? beanstalkd_rate(&s->beanstalkd, smoke) : 0;
    bool ok = r->disk[i] > 0 && r->raw[i] > 0 && r->many[i] > 0 && r->batch[i] > 0 &&
              r->one[i] > 0;
    r->r1[i] = ok ? r->one[i] / r->raw[i] : 0;
    r->r64[i] = ok ? r->many[i] / r->raw[i] : 0;
    r->r_batch[i] = ok ? r->batch[i] / r->raw[i] : 0;
    return ok;
}

static void report_peer(struct buf *fields, const struct bench_peer *peer, double per_s)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "ratio_%s", peer->name);
    bench_field(fields, name, per_s / peer->per_s);
    (void)snprintf(name, sizeof(name), "peer_%s_per_s", peer->name);
    bench_field(fields, name, peer->per_s);
    (void)snprintf(name, sizeof(name), "peer_%s_measured", peer->name);
    bench_field(fields, name, peer->measured);
}

static void report(struct buf *fields, struct rates *r, unsigned rounds,
                   const struct bench_peer *peers, size_t n)
{
    double per_s = bench_median(r->many, rounds);

    bench_field(fields, "ratio", bench_median(r->r64, rounds));
    bench_field(fields, "ratio_batch", bench_median(r->r_batch, rounds));
    bench_field(fields, "ratio_1", bench_median(r->r1, rounds));
    for (size_t i = 0; i < n; i++)
        report_peer(fields, &peers[i], per_s);
    bench_field(fields, "per_s", per_s);
    bench_field(fields, "per_s_batch", bench_median(r->batch, rounds));
    bench_field(fields, "per_s_1", bench_median(r->one, rounds));
    bench_field(fields, "baseline_per_s", bench_median(r->raw, rounds));
    bench_field(fields, "fdatasync_per_s", bench_median(r->disk, rounds));
}

static bool run(struct rates *r, unsigned rounds, const struct site *s, bool smoke)
{
    /* Past the first checkpoint, where the logs stop growing. */
    bool ok = s->b && measure(r, 0, s, smoke);

    for (unsigned i = 0; i < rounds && ok; i++)
        ok = measure(r, i, s, smoke);
    return ok;
}

int main(int argc, char **argv)
{
    struct bench_peer peers[] = { { .name = "plainjob", .per_s = 2201 },
                                  { .name = "beanstalkd", .per_s = 5674 } };
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS;
    struct site site = { .b = NULL };
    struct rates r;
    struct bench_folder f;

    if (!bench_folder_make(&f))
        return 1;
    bench_run_peer(&o, "plainjob", "FULL", &peers[0], NULL);
    bool ok = bench_beanstalkd_open(&site.beanstalkd);
    site.folder = &f;
    site.b = ok ? bench_belay_open(&f, "belay.db") : NULL;
    ok = run(&r, rounds, &site, o.smoke);
    belay_close(site.b);
    bench_beanstalkd_close(&site.beanstalkd);
    bench_folder_remove(&f);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_peer_found(&peers[1], bench_median(r.beanstalkd, rounds));
        bench_take_peers(peers, COUNT_OF(peers), argc, argv);
        report(&fields, &r, rounds, peers, COUNT_OF(peers));
        ok = bench_plausible(&o, 2 * bench_median(r.raw, rounds),
                             bench_median(r.disk, rounds));
    }
    return bench_finish(&o, "exec.throughput", &fields, ok);
}
