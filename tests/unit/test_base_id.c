#include "base/id.h"

#include <stdlib.h>

#include "base/hash.h"
#include "tap.h"

#define MS_MAX (((int64_t)1 << 48) - 1)

/* A random source that gives the same byte, or fails. */
struct source {
    uint8_t byte;
    bool fails;
    unsigned calls;
};

static int fill_from_source(void *arg, void *out, size_t n)
{
    struct source *s = arg;

    s->calls++;
    if (s->fails)
        return -1;
    memset(out, s->byte, n);
    return 0;
}

static struct belay_random random_of(struct source *s)
{
    return (struct belay_random){ .fill = fill_from_source, .arg = s };
}

/* clang-format off */
static const struct {
    const char *name;
    int64_t ms;
    uint8_t byte;
    const char *want;
} rows[] = {
    { "all bits zero",       0,             0x00, "t_00000000000000000000000000" },
    { "all bits one",        MS_MAX,        0xff, "t_7zzzzzzzzzzzzzzzzzzzzzzzzz" },
    { "time alone",          1,             0x00, "t_00000000010000000000000000" },
    { "chance alone",        0,             0xff, "t_0000000000zzzzzzzzzzzzzzzz" },
    { "topmost bit of time", (int64_t)1 << 47, 0x00, "t_40000000000000000000000000" },
    { "a day of 2016",       1469922850259, 0x00, "t_01arz3ndek0000000000000000" },
    { "below zero",          -1,            0x00, "t_00000000000000000000000000" },
    { "far below zero",      INT64_MIN,     0x00, "t_00000000000000000000000000" },
    { "beyond 48 bits",      MS_MAX + 1,    0x00, "t_7zzzzzzzzz0000000000000000" },
    { "far beyond",          INT64_MAX,     0x00, "t_7zzzzzzzzz0000000000000000" },
};
/* clang-format on */

static void test_format(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct source s = { .byte = rows[i].byte };
        struct belay_random random = random_of(&s);
        struct id_mint m;
        char id[ID_MAX] = "";

        id_mint_init(&m);
        TAP_EQ(t, id_mint_next(&m, "t_", rows[i].ms, &random, id, NULL), BELAY_OK);
        if (!TAP_STR(t, id, rows[i].want))
            printf("# %s\n", rows[i].name);
        id_mint_release(&m);
    }
}

static void test_prefix(struct tap *t)
{
    struct source s = { .byte = 0 };
    struct belay_random random = random_of(&s);
    struct belay_error e = { 0 };
    struct id_mint m;
    char id[ID_MAX];

    id_mint_init(&m);
    TAP_EQ(t, id_mint_next(&m, "", 0, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "00000000000000000000000000");
    TAP_EQ(t, id_mint_next(&m, "five_", 0, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "five_00000000000000000000000001");
    TAP_EQ(t, id_mint_next(&m, "sixsix", 0, &random, id, &e), BELAY_MISUSE);
    TAP_EQ(t, e.code, BELAY_MISUSE);
    TAP_STR(t, id, "five_00000000000000000000000001");
    id_mint_release(&m);
}

static void test_carry(struct tap *t)
{
    struct source s = { .byte = 0x00 };
    struct belay_random random = random_of(&s);
    struct id_mint m;
    char id[ID_MAX];

    id_mint_init(&m);
    TAP_EQ(t, id_mint_next(&m, "", 5, &random, id, NULL), BELAY_OK);
    for (unsigned i = 0; i < 65536; i++) {
        if (id_mint_next(&m, "", 5, &random, id, NULL) != BELAY_OK)
            break;
    }
    TAP_STR(t, id, "00000000050000000000002000"); /* 65536 in base 32 */
    TAP_EQ(t, s.calls, 1); /* chance is asked once a millisecond */
    id_mint_release(&m);
}

static void test_overflow(struct tap *t)
{
    struct source s = { .byte = 0xff };
    struct belay_random random = random_of(&s);
    struct belay_error e = { 0 };
    struct id_mint m;
    char id[ID_MAX], poison[ID_MAX];

    id_mint_init(&m);
    TAP_EQ(t, id_mint_next(&m, "", 5, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "0000000005zzzzzzzzzzzzzzzz");
    TAP_EQ(t, id_mint_next(&m, "", 5, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "0000000006zzzzzzzzzzzzzzzz");
    TAP_EQ(t, id_mint_next(&m, "", 3, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "0000000007zzzzzzzzzzzzzzzz");

    TAP_EQ(t, id_mint_next(&m, "", MS_MAX, &random, id, NULL), BELAY_OK);
    memset(poison, '!', sizeof(poison));
    memcpy(id, poison, sizeof(id));
    TAP_EQ(t, id_mint_next(&m, "", 5, &random, id, &e), BELAY_OUT_OF_RANGE);
    TAP_EQ(t, e.code, BELAY_OUT_OF_RANGE);
    TAP_OK(t, memcmp(id, poison, sizeof(id)) == 0);
    id_mint_release(&m);
}

static void test_random_fails(struct tap *t)
{
    struct source s = { .fails = true };
    struct belay_random random = random_of(&s);
    struct belay_error e = { 0 };
    struct id_mint m;
    char id[ID_MAX], poison[ID_MAX];

    id_mint_init(&m);
    memset(poison, '!', sizeof(poison));
    memcpy(id, poison, sizeof(id));
    TAP_EQ(t, id_mint_next(&m, "", 5, &random, id, &e), BELAY_UNAVAILABLE);
    TAP_EQ(t, e.code, BELAY_UNAVAILABLE);
    TAP_OK(t, memcmp(id, poison, sizeof(id)) == 0);

    s.fails = false; /* the mint is as it was */
    TAP_EQ(t, id_mint_next(&m, "", 3, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "00000000030000000000000000");
    s.fails = true;
    TAP_EQ(t, id_mint_next(&m, "", 4, &random, id, NULL), BELAY_UNAVAILABLE);
    TAP_EQ(t, id_mint_next(&m, "", 3, &random, id, NULL), BELAY_OK);
    TAP_STR(t, id, "00000000030000000000000001");
    id_mint_release(&m);
}

static bool body_is_well_formed(const char *body)
{
    return strspn(body, "0123456789abcdefghjkmnpqrstvwxyz") == ID_BODY_LEN &&
           strlen(body) == ID_BODY_LEN && body[0] <= '7';
}

/* The time given here jumps in both directions. */
static void test_order(struct tap *t)
{
    struct belay_random random = random_system();
    struct id_mint m;
    char last[ID_MAX] = "", id[ID_MAX] = "";
    unsigned bad = 0;

    id_mint_init(&m);
    for (int64_t i = 0; i < 100000; i++) {
        int64_t now = 1700000000000 + i / 50 - (i % 7 == 0 ? 1000 : 0);
        bad += id_mint_next(&m, "exe_", now, &random, id, NULL) != BELAY_OK;
        bad += strcmp(id, last) <= 0;
        bad += !body_is_well_formed(id + 4);
        memcpy(last, id, sizeof(last));
    }
    TAP_EQ(t, bad, 0);
    id_mint_release(&m);
}

#define THREADS 4
#define MINTED 25000

struct worker {
    struct id_mint *mint;
    unsigned bad;
    char ids[MINTED][ID_MAX];
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct belay_random random = random_system();

    for (size_t i = 0; i < MINTED; i++) {
        int64_t now = 1700000000000 + (int64_t)i / 1000;
        belay_rc rc = id_mint_next(w->mint, "exe_", now, &random, w->ids[i], NULL);
        w->bad += rc != BELAY_OK;
        w->bad += i > 0 && strcmp(w->ids[i], w->ids[i - 1]) <= 0;
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void test_threads(struct tap *t)
{
    struct id_mint m;
    struct worker *w = calloc(THREADS, sizeof(*w));
    char(*all)[ID_MAX] = calloc((size_t)THREADS * MINTED, sizeof(*all));
    pthread_t threads[THREADS];
    unsigned repeated = 0;

    id_mint_init(&m);
    if (!TAP_OK(t, w && all))
        goto out;
    for (size_t i = 0; i < THREADS; i++) {
        w[i].mint = &m;
        TAP_EQ(t, pthread_create(&threads[i], NULL, work, &w[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        TAP_EQ(t, w[i].bad, 0);
        memcpy(all[i * MINTED], w[i].ids, sizeof(w[i].ids));
    }
    qsort(all, (size_t)THREADS * MINTED, sizeof(*all), compare);
    for (size_t i = 1; i < (size_t)THREADS * MINTED; i++)
        repeated += strcmp(all[i], all[i - 1]) == 0;
    TAP_EQ(t, repeated, 0);
out:
    id_mint_release(&m);
    free(all);
    free(w);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "an id holds time and chance, most significant first", test_format },
        { "a prefix has up to five characters", test_prefix },
        { "a further id of a millisecond is one larger", test_carry },
        { "a full millisecond borrows from the next", test_overflow },
        { "a failing random source leaves id and mint untouched", test_random_fails },
        { "ids sort by creation even when time goes back", test_order },
        { "threads never get the same id", test_threads },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
