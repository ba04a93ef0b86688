/* Whether there is another attempt, when, and what time does. */
#include "base/clock.h"
#include "policy/retry.h"
#include "tap.h"

#define NONE BELAY_TIME_NONE

static void test_classes(struct tap *t)
{
    TAP_OK(t, retry_class_allows(BELAY_FAILURE_TRANSIENT));
    TAP_OK(t, retry_class_allows(BELAY_FAILURE_INFRA_CRASH));
    TAP_OK(t, retry_class_allows(BELAY_FAILURE_TIMEOUT));
    TAP_OK(t, !retry_class_allows(BELAY_FAILURE_PERMANENT));
    TAP_OK(t, !retry_class_allows(BELAY_FAILURE_CANCELLED));
    TAP_OK(t, !retry_class_allows(BELAY_FAILURE_UNSET));
    TAP_OK(t, !retry_class_allows((enum belay_failure_class)99));
}

static const struct {
    const char *list, *category;
    bool want;
} lists[] = {
    { "", "anything", true },
    { "[]", "anything", true },
    { "", NULL, true },
    { "[\"transient\"]", NULL, true },
    { "[\"transient\"]", "other", true },
    { "[\"timeout\"]", NULL, false },
    { "[\"timeout\",\"transient\"]", NULL, true },
    { "[\"rate_limit\"]", "rate_limit", true },
    { "[\"a\",\"b\",\"c\"]", "c", true },
    { "[\"a\",\"b\",\"c\"]", "d", false },
    { "[\"a\",\"b\",\"c\"]", "a\",\"b", false },
    { "[\"rate_limit\"]", "rate", false },
    { "[\"rate\"]", "rate_limit", false },
    { "[\"\"]", "", false },
    { "[\"a\\\"b\"]", "a\"b", true },
    { "[\"a\\\\\",\"b\"]", "b", true },
    { "[\"a\\\\\",\"b\"]", "a\\", true },
    { "[\"l\\n\\t\\r\\b\\f\"]", "l\n\t\r\b\f", true },
    { "[\"\\u001f\",\"x\"]", "\x1f", true },
    { "[\"\\u001f\",\"x\"]", "x", true },
    { "[\"\xc3\xa9\"]", "\xc3\xa9", true },
    /* Text that no writer of lists made has nothing, and is not read past its end. */
    { "[\"a", "b", false },
    { "[\"a\\", "b", false },
    { "[\"\\u00", "b", false },
    { "[\"\\x\",\"b\"]", "b", false },
    { "[", "b", false },
    { "x", "b", false },
};

static void test_lists(struct tap *t)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const char *category = lists[i].category;
        /* In memory of just this length, for the sanitizers. */
        CLEANUP(buf_release) struct buf list = { 0 };
        buf_append_str(&list, lists[i].list);
        bool got =
            retry_list_allows(buf_view(&list), BELAY_FAILURE_TRANSIENT,
                              category ? bytes_str(category) : bytes_of(NULL, 0));
        if (!TAP_EQ(t, got, lists[i].want))
            printf("# list %s, category %s\n", lists[i].list,
                   category ? category : "none");
    }
}

static void test_allowed(struct tap *t)
{
    struct retry_policy p = { .max_retries = 2 };
    struct bytes none = { 0 };

    TAP_OK(t, retry_allowed(&p, 0, BELAY_FAILURE_TRANSIENT, none));
    TAP_OK(t, retry_allowed(&p, 1, BELAY_FAILURE_TRANSIENT, none));
    TAP_OK(t, !retry_allowed(&p, 2, BELAY_FAILURE_TRANSIENT, none));
    TAP_OK(t, !retry_allowed(&p, 0, BELAY_FAILURE_PERMANENT, none));
    p.retryable = bytes_str("[\"permanent\",\"timeout\"]");
    TAP_OK(t, !retry_allowed(&p, 0, BELAY_FAILURE_TRANSIENT, none));
    TAP_OK(t, retry_allowed(&p, 0, BELAY_FAILURE_TIMEOUT, none));
    /* A list narrows; it does not widen. */
    TAP_OK(t, !retry_allowed(&p, 0, BELAY_FAILURE_PERMANENT, none));
    p = (struct retry_policy){ .max_retries = 0 };
    TAP_OK(t, !retry_allowed(&p, 0, BELAY_FAILURE_TRANSIENT, none));
}

static struct retry_policy exponential(double multiplier, bool jitter)
{
    return (struct retry_policy){
        .backoff = BELAY_BACKOFF_EXPONENTIAL,
        .max_retries = 10,
        .delay_ms = RETRY_FIRST_MS,
        .max_delay_ms = RETRY_LONGEST_MS,
        .multiplier = multiplier,
        .jitter = jitter,
    };
}

static void test_growth(struct tap *t)
{
    static const int64_t want[] = {
        1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000
    };
    struct retry_policy p = exponential(RETRY_MULTIPLIER, false);

    for (int64_t i = 0; i < 8; i++)
        TAP_EQ(t, retry_delay_ms(&p, i, 12345), want[i]);
    p = exponential(1.5, false);
    TAP_EQ(t, retry_delay_ms(&p, 3, 0), 3375);
    p = exponential(1, false);
    TAP_EQ(t, retry_delay_ms(&p, INT64_MAX, 0), 1000);
    p = exponential(0.5, false);
    TAP_EQ(t, retry_delay_ms(&p, 1, 0), 500);
    TAP_EQ(t, retry_delay_ms(&p, INT64_MAX, 0), 0);
    p.delay_ms = 100000;
    p.multiplier = 2;
    TAP_EQ(t, retry_delay_ms(&p, 0, 0), RETRY_LONGEST_MS);
}

static void test_fixed(struct tap *t)
{
    struct retry_policy p = exponential(2, true);

    p.backoff = BELAY_BACKOFF_FIXED;
    p.delay_ms = 70000;
    TAP_EQ(t, retry_delay_ms(&p, 0, UINT64_MAX), 70000);
    TAP_EQ(t, retry_delay_ms(&p, 9, 0), 70000);
    p.delay_ms = 0;
    TAP_EQ(t, retry_delay_ms(&p, 9, 0), 0);
}

static void test_extremes(struct tap *t)
{
    static const double multipliers[] = { 0,      -1,      1e-300, 1e300, 0.999,
                                          1.0001, 2.0e-16, 1e9,    1 };
    static const int64_t numbers[] = { INT64_MIN, -1, 0, 1, 2, 1000, INT64_MAX };
    static const uint64_t randoms[] = { 0, 1, UINT64_MAX / 2, UINT64_MAX };
    const size_t n = sizeof(numbers) / sizeof(numbers[0]);

    for (size_t i = 0; i < n * n * n * 9 * 4; i++) {
        struct retry_policy p = exponential(multipliers[i % 9], true);
        size_t rest = i / 9;
        p.delay_ms = numbers[rest % n];
        p.max_delay_ms = numbers[rest / n % n];
        int64_t retries = numbers[rest / n / n % n];
        int64_t got = retry_delay_ms(&p, retries, randoms[rest / n / n / n]);
        if (!TAP_OK(t, got >= 0) ||
            !TAP_OK(t, got <= (p.max_delay_ms > 0 ? p.max_delay_ms : 0)))
            return;
    }
}

/* Infinity and what is no number. */
static void test_not_finite(struct tap *t)
{
    struct retry_policy p = exponential(__builtin_inf(), false);

    TAP_EQ(t, retry_delay_ms(&p, 0, 0), 1000);
    TAP_EQ(t, retry_delay_ms(&p, 1, 0), RETRY_LONGEST_MS);
    p = exponential(__builtin_nan(""), false);
    TAP_EQ(t, retry_delay_ms(&p, 1, 0), 2000);
}

static void test_jitter(struct tap *t)
{
    struct retry_policy p = exponential(2, true);
    int64_t least = INT64_MAX, most = 0;

    TAP_EQ(t, retry_delay_ms(&p, 0, 0), 500);
    TAP_EQ(t, retry_delay_ms(&p, 0, UINT64_MAX), 1000);
    TAP_EQ(t, retry_delay_ms(&p, 0, UINT64_MAX / 2), 750);
    for (uint64_t i = 0; i < 1000; i++) {
        int64_t got = retry_delay_ms(&p, 0, i * (UINT64_MAX / 999));
        least = got < least ? got : least;
        most = got > most ? got : most;
        TAP_OK(t, got >= 500 && got <= 1000);
    }
    TAP_EQ(t, least, 500);
    TAP_EQ(t, most, 1000);
    p.delay_ms = 1;
    TAP_EQ(t, retry_delay_ms(&p, 0, 0), 0);
    TAP_EQ(t, retry_delay_ms(&p, 0, UINT64_MAX), 1);
    p = exponential(2, true);
    p.delay_ms = p.max_delay_ms = INT64_MAX;
    TAP_EQ(t, retry_delay_ms(&p, 0, UINT64_MAX), INT64_MAX);
    TAP_EQ(t, retry_delay_ms(&p, 0, 0), INT64_MAX / 2);
}

/* --- what time does --- */

static const struct belay_vector ready = { .phase = BELAY_PHASE_RUNNABLE };
static const struct belay_vector delayed = { .phase = BELAY_PHASE_RUNNABLE,
                                             .eligibility =
                                                 BELAY_NOT_ELIGIBLE_UNTIL_TIME };
static const struct belay_vector leased = { .phase = BELAY_PHASE_ACTIVE,
                                            .ownership = BELAY_LEASED };
static const struct belay_vector lost = { .phase = BELAY_PHASE_ACTIVE,
                                          .ownership =
                                              BELAY_LEASE_EXPIRED_RECLAIMABLE };
static const struct belay_vector held = { .phase = BELAY_PHASE_SUSPENDED };
static const struct belay_vector done = { .phase = BELAY_PHASE_TERMINAL,
                                          .outcome = BELAY_TERMINAL_SUCCESS };

/* At 1000: vector; delay, deadline, timeout, lease, grant, purge; reclaims of at most 2;
 * grace 10. */
static const struct {
    const struct belay_vector *vector;
    int64_t delay, deadline, timeout, lease, grant, purge, reclaims;
    enum due_action want;
    int64_t next;
} dues[] = {
    { &ready, NONE, NONE, NONE, NONE, NONE, NONE, 0, DUE_NOTHING, NONE },
    { &ready, 900, NONE, 900, 900, NONE, 900, 0, DUE_NOTHING, NONE },
    { &ready, NONE, 1001, NONE, NONE, NONE, NONE, 0, DUE_NOTHING, 1001 },
    { &ready, NONE, 1000, NONE, NONE, NONE, NONE, 0, DUE_EXPIRE, NONE },
    { &ready, NONE, 1500, NONE, NONE, 1200, NONE, 0, DUE_NOTHING, 1200 },
    { &ready, NONE, 1100, NONE, NONE, 1200, NONE, 0, DUE_NOTHING, 1100 },
    { &ready, NONE, 1500, NONE, NONE, 1000, NONE, 0, DUE_UNGRANT, NONE },
    { &ready, NONE, 900, NONE, NONE, 900, NONE, 0, DUE_EXPIRE, NONE },
    { &lost, NONE, NONE, 900, 900, NONE, NONE, 9, DUE_NOTHING, NONE },
    { &lost, NONE, NONE, NONE, NONE, 999, NONE, 0, DUE_UNGRANT, NONE },
    { &lost, NONE, 999, NONE, NONE, NONE, NONE, 0, DUE_EXPIRE, NONE },
    { &delayed, 1001, NONE, NONE, NONE, NONE, NONE, 0, DUE_NOTHING, 1001 },
    { &delayed, 1000, NONE, NONE, NONE, NONE, NONE, 0, DUE_PROMOTE, NONE },
    { &delayed, 1000, 1000, NONE, NONE, NONE, NONE, 0, DUE_EXPIRE, NONE },
    { &delayed, 2000, 1500, NONE, NONE, NONE, NONE, 0, DUE_NOTHING, 1500 },
    { &delayed, NONE, NONE, NONE, NONE, NONE, NONE, 0, DUE_PROMOTE, NONE },
    { &delayed, 2000, NONE, NONE, NONE, 900, NONE, 0, DUE_NOTHING, 2000 },
    { &leased, NONE, NONE, NONE, 1000, NONE, NONE, 0, DUE_NOTHING, 1010 },
    { &leased, NONE, NONE, NONE, 991, NONE, NONE, 0, DUE_NOTHING, 1001 },
    { &leased, NONE, NONE, NONE, 990, NONE, NONE, 0, DUE_LOST, NONE },
    { &leased, NONE, NONE, NONE, 990, NONE, NONE, 1, DUE_LOST, NONE },
    { &leased, NONE, NONE, NONE, 990, NONE, NONE, 2, DUE_CAPPED, NONE },
    { &leased, NONE, NONE, NONE, 991, NONE, NONE, 2, DUE_NOTHING, 1001 },
    { &leased, NONE, NONE, 1000, 900, NONE, NONE, 2, DUE_TIMEOUT, NONE },
    { &leased, NONE, NONE, 1005, 1000, NONE, NONE, 0, DUE_NOTHING, 1005 },
    { &leased, NONE, 1003, 1005, 1000, NONE, NONE, 0, DUE_NOTHING, 1003 },
    { &leased, NONE, 1000, 1000, 900, NONE, NONE, 0, DUE_EXPIRE, NONE },
    { &leased, 900, NONE, NONE, 5000, 900, 900, 0, DUE_NOTHING, 5010 },
    { &leased, NONE, NONE, NONE, TIME_MAX_MS, NONE, NONE, 0, DUE_NOTHING, TIME_MAX_MS },
    { &leased, NONE, NONE, NONE, NONE, NONE, NONE, 0, DUE_NOTHING, NONE },
    { &held, 900, NONE, 900, 900, 900, 900, 0, DUE_NOTHING, NONE },
    { &held, NONE, 1000, NONE, NONE, NONE, NONE, 0, DUE_EXPIRE, NONE },
    { &held, NONE, 1700, NONE, NONE, NONE, NONE, 0, DUE_NOTHING, 1700 },
    { &done, 900, 900, 900, 900, 900, 1001, 9, DUE_NOTHING, 1001 },
    { &done, NONE, NONE, NONE, NONE, NONE, 1000, 0, DUE_PURGE, NONE },
    { &done, 900, 900, 900, 900, 900, NONE, 9, DUE_NOTHING, NONE },
};

static struct due_facts facts_of(size_t i)
{
    return (struct due_facts){
        .vector = *dues[i].vector,
        .delay_until_ms = dues[i].delay,
        .deadline_at_ms = dues[i].deadline,
        .timeout_at_ms = dues[i].timeout,
        .lease_expires_at_ms = dues[i].lease,
        .grant_until_ms = dues[i].grant,
        .purge_at_ms = dues[i].purge,
        .reclaims = dues[i].reclaims,
        .max_reclaims = 2,
        .grace_ms = 10,
    };
}

static void test_due(struct tap *t)
{
    for (size_t i = 0; i < sizeof(dues) / sizeof(dues[0]); i++) {
        struct due_facts f = facts_of(i);
        int64_t next = 77;
        bool right = TAP_EQ(t, due_judge(&f, 1000, &next), dues[i].want);
        right = TAP_EQ(t, next, dues[i].next) && right;
        if (!right)
            printf("# row %zu\n", i);
    }
}

/* Looking again when it says so finds something to do. */
static void test_due_next(struct tap *t)
{
    for (size_t i = 0; i < sizeof(dues) / sizeof(dues[0]); i++) {
        struct due_facts f = facts_of(i);
        int64_t next = NONE, unused = NONE;
        if (due_judge(&f, 1000, &next) != DUE_NOTHING || next == NONE)
            continue;
        TAP_OK(t, next > 1000);
        TAP_EQ(t, due_judge(&f, next - 1, &unused), DUE_NOTHING);
        TAP_OK(t, due_judge(&f, next, &unused) != DUE_NOTHING);
    }
}

/* A holder that is dead loses its lease now; everything else is as it was. */
static void test_holder_dead(struct tap *t)
{
    for (size_t i = 0; i < sizeof(dues) / sizeof(dues[0]); i++) {
        struct due_facts f = facts_of(i);
        int64_t next = 77, before = 77;
        enum due_action alive = due_judge(&f, 1000, &before), want = alive;
        f.holder_dead = true;
        if (dues[i].vector == &leased && alive != DUE_EXPIRE && alive != DUE_TIMEOUT)
            want = dues[i].reclaims >= 2 ? DUE_CAPPED : DUE_LOST;
        bool right = TAP_EQ(t, due_judge(&f, 1000, &next), want);
        right = TAP_EQ(t, next, want == alive ? before : NONE) && right;
        if (!right)
            printf("# row %zu\n", i);
    }
}

static void test_no_reclaims(struct tap *t)
{
    struct due_facts f = { .vector = leased,
                           .delay_until_ms = NONE,
                           .deadline_at_ms = NONE,
                           .timeout_at_ms = NONE,
                           .lease_expires_at_ms = 0,
                           .max_reclaims = 0 };
    int64_t next;

    TAP_EQ(t, due_judge(&f, 0, &next), DUE_CAPPED);
}

static const struct tap_case cases[] = {
    { "transient, infra_crash and timeout may be tried again; nothing else is",
      test_classes },
    { "a stored list is read where it lies; an empty one has everything", test_lists },
    { "there is another attempt while class, count and list allow it", test_allowed },
    { "exponential: the first, times the multiplier each time, up to the longest",
      test_growth },
    { "fixed: always the same, not spread", test_fixed },
    { "no policy and no number of retries gives a delay below 0 or above the longest",
      test_extremes },
    { "multipliers that are not finite do no harm", test_not_finite },
    { "jitter spreads over half to all of the delay, both ends included", test_jitter },
    { "what is due: deadline first, then what its place asks for", test_due },
    { "the next time is the first at which something is due", test_due_next },
    { "a dead holder loses its lease now", test_holder_dead },
    { "with no reclaims allowed the first loss ends it", test_no_reclaims },
};

int main(int argc, char **argv)
{
    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
