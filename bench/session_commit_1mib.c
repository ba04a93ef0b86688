/* session.commit_1mib - the time of a commit with a checkpoint of 1 MiB, against hashing
 * the same bytes and writing them with raw SQLite in one transaction.  Both durable;
 * profile low_latency, so neither compresses. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "inbox.h"

#define BODY ((size_t)1 << 20)
#define ROUNDS 7

/* Other bytes each time, that no compression would make shorter. */
static void stir(uint8_t *body, uint64_t seed)
{
    for (size_t i = 0; i < BODY; i += sizeof(seed)) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(body + i, &seed, sizeof(seed));
    }
}

static double belay_time(struct belay_session *s, uint8_t *body, unsigned n,
                         uint64_t *seed, struct belay_arena *arena)
{
    double took = 0;

    for (unsigned i = 0; i < n; i++) {
        stir(body, ++*seed);
        struct belay_checkpoint checkpoint = {
            .turn_state = "{\"turn_index\":1}",
            .execution_state = { .body = body, .len = BODY },
            .plugin_snapshot_revision = BELAY_NONE,
        };
        struct belay_commit commit = { .size = sizeof(commit),
                                       .expected_revision = BELAY_ANY_REVISION,
                                       .checkpoint = &checkpoint };
        struct belay_committed done;
        struct belay_error err;
        double start = bench_now();
        if (belay_session_commit(s, &commit, arena, &done, &err)) {
            (void)bench_failed("commit", &err);
            return 0;
        }
        took += bench_now() - start;
        belay_arena_reset(arena);
    }
    return took / n;
}

static bool raw_put(sqlite3_stmt *put, const uint8_t *body)
{
    uint8_t digest[SHA256_LEN];
    char name[SHA256_HEX_LEN + 1];

    if (sha256(bytes_of(body, BODY), digest, NULL))
        return false;
    hex_encode(bytes_of(digest, sizeof(digest)), name);
    (void)sqlite3_bind_text(put, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(put, 2, body, (int)BODY, SQLITE_STATIC);
    bool ok = sqlite3_step(put) == SQLITE_DONE;
    (void)sqlite3_reset(put);
    return ok;
}

static double raw_time(sqlite3_stmt *put, uint8_t *body, unsigned n, uint64_t *seed)
{
    double took = 0;

    for (unsigned i = 0; i < n; i++) {
        stir(body, ++*seed);
        double start = bench_now();
        if (!raw_put(put, body))
            return 0;
        took += bench_now() - start;
    }
    return took / n;
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    unsigned rounds = o.smoke ? 1 : ROUNDS, n = o.smoke ? 2 : 40;
    double ratio[ROUNDS], raw[ROUNDS], disk[ROUNDS];
    struct belay_session_options options = { .size = sizeof(options),
                                             .profile = BELAY_LOW_LATENCY };
    struct belay_session *s = NULL;
    struct belay_arena *arena = NULL;
    uint8_t *body = malloc(BODY);
    struct bench_folder f;
    uint64_t seed = 1;
    bool ok = body && bench_folder_make(&f);

    if (!ok) {
        free(body);
        return 1;
    }
    struct belay *b = bench_belay_open(&f, "belay.db");
    sqlite3 *db = bench_raw_open(&f, "raw.db",
                                 "CREATE TABLE blob (name TEXT PRIMARY KEY, body BLOB)"
                                 " STRICT");
    sqlite3_stmt *put =
        db ? bench_raw_prepare(db, "INSERT INTO blob VALUES (?1, ?2)") : NULL;
    ok = b && put && !belay_arena_new(&arena, NULL) &&
         !belay_session_open(b, "session", &options, &s, NULL);
    /* Past the first checkpoint, where the logs stop growing. */
    ok = ok && belay_time(s, body, n, &seed, arena) > 0 &&
         raw_time(put, body, n, &seed) > 0;
    for (unsigned i = 0; i < rounds && ok; i++) {
        disk[i] = bench_fdatasync_rate(&f, o.smoke ? 0.05 : 0.5);
        raw[i] = raw_time(put, body, n, &seed);
        double belay = belay_time(s, body, n, &seed, arena);
        ok = disk[i] > 0 && raw[i] > 0 && belay > 0;
        ratio[i] = ok ? belay / raw[i] : 0;
    }
    (void)sqlite3_finalize(put);
    (void)sqlite3_close(db);
    belay_session_close(s);
    belay_arena_free(arena);
    belay_close(b);
    bench_folder_remove(&f);
    free(body);

    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, rounds));
        bench_field(&fields, "baseline_per_s", 1 / bench_median(raw, rounds));
        bench_field(&fields, "fdatasync_per_s", bench_median(disk, rounds));
    }
    return bench_finish(&o, "session.commit_1mib", &fields, ok);
}
