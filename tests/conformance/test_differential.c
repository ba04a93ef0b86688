/* test_differential --driver NAME [--seeds A..B]
 *
 * Random programs on the memory driver and on another one: the same answers to every
 * transaction, the same dumps in the end.  With a driver that is made to lose one
 * effect it must notice that (the self-test). */
#include <errno.h>
#include <stdlib.h>

#include "program.h"

struct differential {
    const struct test_driver *driver;
    const struct test_driver *self; /* the self-tests' own: not one that takes long */
    bool lose_replies; /* both must use slots, or their versions are not the same */
    uint64_t first, last;
};

/* Text as comments of TAP. */
static void print_lines(struct bytes text)
{
    const char *at = (const char *)text.ptr, *end = at + text.len;

    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        next = next ? next : end;
        printf("#   %.*s\n", (int)(next - at), at);
        at = next + 1;
    }
}

/* The first transaction that differs is the news; the rest follows from it. */
static void report(uint64_t seed, const struct differential *d,
                   const struct transcript *a, const struct transcript *b)
{
    for (size_t i = 0; i < a->n_lines && i < b->n_lines; i++) {
        size_t end_a = i + 1 < a->n_lines ? a->lines[i + 1] : a->text.len;
        size_t end_b = i + 1 < b->n_lines ? b->lines[i + 1] : b->text.len;
        struct bytes x = bytes_of(a->text.ptr + a->lines[i], end_a - a->lines[i]);
        struct bytes y = bytes_of(b->text.ptr + b->lines[i], end_b - b->lines[i]);
        if (bytes_eq(x, y))
            continue;
        bool dumps = i + 1 == a->n_lines;
        printf("# seed %llu: %s %zu differs\n", (unsigned long long)seed,
               dumps ? "the dump after transaction" : "transaction", dumps ? i : i + 1);
        printf("# memory:\n");
        print_lines(x);
        printf("# %s:\n", d->driver->name);
        print_lines(y);
        break;
    }
    printf("# again: test_differential --driver '%s' --seeds %llu..%llu\n",
           d->driver->name, (unsigned long long)seed, (unsigned long long)seed);
}

/* Whether both give the same.  drop: what the second driver loses; -1: nothing. */
static bool same(uint64_t seed, const struct differential *d,
                 const struct test_driver *driver, int drop, bool loud)
{
    struct transcript a, b;
    const char *why = NULL;
    bool ran =
        program_run(seed, test_driver_find("memory"), d->lose_replies, -1, 0, &a, &why);
    bool ran_too = program_run(seed, driver, d->lose_replies, drop,
                               1 + (unsigned)(seed % 3), &b, &why);
    bool equal = ran && ran_too && bytes_eq(buf_view(&a.text), buf_view(&b.text));

    if (!ran || !ran_too)
        printf("# seed %llu: %s\n", (unsigned long long)seed, why);
    else if (!equal && loud)
        report(seed, d, &a, &b);
    transcript_release(&a);
    transcript_release(&b);
    return equal;
}

static void drivers_agree(struct tap *t)
{
    struct differential *d = t->arg;
    unsigned bad = 0;

    for (uint64_t seed = d->first; seed <= d->last && bad < 3; seed++)
        bad += !same(seed, d, d->driver, -1, true);
    TAP_EQ(t, bad, 0);
}

/* Every kind of effect, dropped once: some program must notice. */
static void a_lost_effect_is_noticed(struct tap *t)
{
    struct differential *d = t->arg;

    for (int kind = EFFECT_INSERT; kind <= EFFECT_CHUNK_DROP; kind++) {
        bool noticed = false;
        for (uint64_t seed = 1; seed <= 100 && !noticed; seed++)
            noticed = !same(seed, d, d->self, kind, false);
        if (!TAP_OK(t, noticed))
            printf("# nobody misses effects of kind %d\n", kind);
    }
}

/* A program does more than fail: most kinds of answers occur among a few. */
static void programs_do_something(struct tap *t)
{
    const char *const answers[] = { "=> ok",        "=> corrupt",     "=> not_found",
                                    "=> throttled", "=> wrong_state", "=> out_of_range",
                                    "sum=",         "pos=",           "=> misuse" };
    unsigned seen[COUNT_OF(answers)] = { 0 };
    struct differential *d = t->arg;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct transcript a;
        const char *why;
        if (!TAP_OK(t, program_run(seed, d->self, d->lose_replies, -1, 0, &a, &why)))
            printf("# %s\n", why);
        for (size_t i = 0; i < COUNT_OF(answers) && a.text.ptr; i++)
            seen[i] +=
                memmem(a.text.ptr, a.text.len, answers[i], strlen(answers[i])) != NULL;
        transcript_release(&a);
    }
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        if (!TAP_OK(t, seen[i] > 0))
            printf("# never: %s\n", answers[i]);
    }
}

static const struct tap_case cases[] = {
    { "programs give answers of many kinds", programs_do_something },
    { "a driver that loses an effect is found out", a_lost_effect_is_noticed },
    { "both drivers give the same answers and the same dumps", drivers_agree },
};

static bool parse_seeds(const char *text, struct differential *d)
{
    char *end;

    errno = 0;
    d->first = strtoull(text, &end, 10);
    if (errno || end == text || strncmp(end, "..", 2) != 0)
        return false;
    text = end + 2;
    d->last = strtoull(text, &end, 10);
    return !errno && end != text && *end == 0 && d->last != UINT64_MAX;
}

/* Whether the driver may lose replies, from the driver itself. */
static bool loses_replies(const struct test_driver *driver)
{
    struct tap t = { .name = "open", .arg = (void *)(uintptr_t)driver };
    struct harness h;
    bool loses = harness_open(&h, &t, HARNESS_UNFOUNDED) &&
                 (h.driver->caps & DRIVER_LOSES_REPLIES);

    harness_close(&h);
    return loses;
}

int main(int argc, char **argv)
{
    struct differential d = { .first = 1, .last = 1000 };
    bool usage = argc != 3 && argc != 5;

    if (!usage)
        d.driver = strcmp(argv[1], "--driver") == 0 ? test_driver_find(argv[2]) : NULL;
    if (!usage && argc == 5)
        usage = strcmp(argv[3], "--seeds") != 0 || !parse_seeds(argv[4], &d);
    if (usage || !d.driver) {
        (void)fprintf(stderr,
                      "usage: test_differential --driver NAME [--seeds A..B]\n");
        return 2;
    }
    d.lose_replies = loses_replies(d.driver);
    d.self = d.driver->forget ? test_driver_find("memory") : d.driver;
    return tap_main(cases, COUNT_OF(cases), &d, 1, argv);
}
