/* store.memory - guarded one-row read-modify-write transactions of one thread on the
 * memory driver, against SHA-256 digests of 64 bytes in the same run.
 *
 * The baseline is the fastest way OpenSSL offers: fetched once, one context reused.
 */
#include <openssl/evp.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/hash.h"
#include "bench.h"
#include "store/drivers/memory.h"
#include "store/txn.h"
#include "things.h"

#define ROWS 1000
#define ROUNDS 9

/* Written before the clock starts: what is measured is the transaction. */
struct keys {
    char key[ROWS][ID_MAX];
};

static void keys_init(struct keys *k)
{
    for (unsigned i = 0; i < ROWS; i++)
        (void)snprintf(k->key[i], ID_MAX, "exe_01jd4k8m2q7r9s%012u", i);
}

static belay_rc bump(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_thing, &key, &row);

    if (rc)
        return rc;
    if (!row) {
        struct value v[THING_COLUMNS] = { [THING_ID] = key,
                                          [THING_N] = value_i64(0),
                                          [THING_TEXT] = value_str("waiting") };
        return txn_insert(t, &row_thing, v);
    }
    struct change change = { THING_N, value_i64(row_i64(row, THING_N, 0) + 1) };
    return txn_put(t, &row_thing, &key, &change, 1);
}

/* n transactions on pseudo-random rows; transactions a second, or 0 on failure. */
static double run_store(struct space *sp, struct keys *keys, unsigned n)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    uint32_t at = 1;
    double start = bench_now();

    for (unsigned i = 0; i < n; i++) {
        at = at * 1664525 + 1013904223;
        if (txn_run(sp, bump, keys->key[(at >> 8) % ROWS], NULL, &arena, NULL))
            return 0;
        arena_reset(&arena);
    }
    return n / (bench_now() - start);
}

static double run_sha(EVP_MD_CTX *ctx, const EVP_MD *md, unsigned n)
{
    uint8_t block[64] = { 1 };
    double start = bench_now();

    for (unsigned i = 0; i < n; i++) {
        if (!EVP_DigestInit_ex(ctx, md, NULL) || !EVP_DigestUpdate(ctx, block, 64) ||
            !EVP_DigestFinal_ex(ctx, block, NULL))
            return 0;
    }
    return n / (bench_now() - start);
}

static int measure(struct space *sp, const struct bench_options *o)
{
    EVP_MD *md = EVP_MD_fetch(NULL, "SHA256", NULL);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    struct keys keys;
    unsigned n = o->smoke ? 2000 : 400000;
    double store[ROUNDS], sha[ROUNDS], ratio[ROUNDS];

    keys_init(&keys);
    bool ok = md && ctx && run_store(sp, &keys, n) > 0;

    for (unsigned i = 0; i < ROUNDS && ok; i++) {
        sha[i] = run_sha(ctx, md, n);
        store[i] = run_store(sp, &keys, n);
        ok = sha[i] > 0 && store[i] > 0;
        ratio[i] = ok ? store[i] / sha[i] : 0;
    }
    struct buf fields = { .ptr = NULL };
    if (ok) {
        bench_field(&fields, "ratio", bench_median(ratio, ROUNDS));
        bench_field(&fields, "per_s", bench_median(store, ROUNDS));
        bench_field(&fields, "baseline_per_s", bench_median(sha, ROUNDS));
    }
    EVP_MD_CTX_free(ctx);
    EVP_MD_free(md);
    return bench_finish(o, "store.memory", &fields, ok);
}

int main(int argc, char **argv)
{
    struct bench_options o = bench_parse(argc, argv);
    struct driver_config config = { &schema_things, clock_system(), random_system() };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = config.random };
    struct belay_error err;
    struct driver *d = NULL;
    struct store *s = NULL;
    struct space *sp = NULL;

    if (memory_open(&d, &config, &err) || store_open(&s, d, &options, &err) ||
        store_space(s, bytes_str("default"), &sp, &err)) {
        (void)fprintf(stderr, "store.memory: %s\n", err.message);
        return 1;
    }
    int code = measure(sp, &o);
    store_close(s);
    driver_close(d);
    return code;
}
