/* queue.claim_complete - a claim, then a commit with one node of 200 bytes, a turn stamp
 * and that claim's completion: pairs a second of 64 callers over 64 sessions, against
 * raw SQLite that claims by an update and completes by a delete, one row and one fsync
 * each.  ratio_1: the same with one caller. */
#include "pair.h"

#define CALLERS 64
#define ROUNDS 5
#define INBOX 25 /* batches that wait in an inbox when a part of a round begins */

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
    ok = ok && raw_rate(&f, raw_pairs) > 0 &&
         bench_pair_rate(b, CALLERS, pairs, INBOX, 0) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        raw[i] = raw_rate(&f, raw_pairs);
        double one = bench_pair_rate(b, 1, pairs * 4, INBOX, 2 * i + 1);
        many[i] = bench_pair_rate(b, CALLERS, pairs, INBOX, 2 * i + 2);
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
