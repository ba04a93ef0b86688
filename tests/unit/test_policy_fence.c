#include "policy/fence.h"
#include "tap.h"

#define AT(epoch, n) (((int64_t)(epoch) << FENCE_N_BITS) + (n))

/* clang-format off */
static const struct {
    const char *name; int64_t last, floor, epoch; belay_rc want; int64_t then;
} rows[] = {
    { "the first grant is fence 1",                 0,  0, 0, BELAY_OK, 1 },
    { "the third grant is fence 3",                 2,  0, 0, BELAY_OK, 3 },
    { "a new lease starts above the floor",         0, 41, 0, BELAY_OK, 42 },
    { "a floor below the last grant changes nothing", 50, 41, 0, BELAY_OK, 51 },
    { "a new epoch starts at its own 1",            7,  0, 1, BELAY_OK, AT(1, 1) },
    { "it counts on in the same epoch",       AT(1, 1), 0, 1, BELAY_OK, AT(1, 2) },
    { "a floor of an earlier epoch is below",       0, 99, 2, BELAY_OK, AT(2, 1) },
    { "the last number of an epoch is given",
      AT(0, FENCE_N_MAX - 1), 0, 0, BELAY_OK, FENCE_N_MAX },
    { "a fence at its maximum is refused, not wrapped",
      FENCE_N_MAX, 0, 0, BELAY_OUT_OF_RANGE, 0 },
    { "a floor at its maximum is refused, too",
      0, FENCE_N_MAX, 0, BELAY_OUT_OF_RANGE, 0 },
    { "raising the epoch makes room again",
      FENCE_N_MAX, 0, 1, BELAY_OK, AT(1, 1) },
    { "the last epoch is usable",
      0, 0, FENCE_EPOCH_MAX, BELAY_OK, AT(FENCE_EPOCH_MAX, 1) },
    { "an epoch beyond the last is invalid",        0,  0, FENCE_EPOCH_MAX + 1, BELAY_INVALID, 0 },
    { "a negative epoch is invalid",                0,  0, -1, BELAY_INVALID, 0 },
    { "a negative fence is invalid",               -1,  0, 0, BELAY_INVALID, 0 },
    { "a negative floor is invalid",                0, -1, 0, BELAY_INVALID, 0 },
    { "a grant of a later epoch than the store's is corrupt",
      AT(2, 1), 0, 1, BELAY_CORRUPT, 0 },
    { "a floor of a later epoch is corrupt",
      0, AT(2, 1), 1, BELAY_CORRUPT, 0 },
};
/* clang-format on */

static void next_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int64_t poison = -77;
        int64_t got = poison;

        belay_rc rc = fence_next(rows[i].last, rows[i].floor, rows[i].epoch, &got);
        if (!TAP_EQ(t, rc, rows[i].want) || !TAP_EQ(t, got, rc ? poison : rows[i].then))
            printf("# row: %s\n", rows[i].name);
    }
}

static void every_fence_fits_a_json_number(struct tap *t)
{
    TAP_OK(t, AT(FENCE_EPOCH_MAX, FENCE_N_MAX) < ((int64_t)1 << 53));
    TAP_EQ(t, fence_epoch(AT(5, 9)), 5);
    TAP_EQ(t, fence_n(AT(5, 9)), 9);
}

/* clang-format off */
static const struct {
    const char *name, *stored, *now; bool restarted; enum life_verdict want;
    int64_t mark_ms; /* it was started at 5000 */
} lives[] = {
    { "a store that has only one life",                  "",  "",  false, LIFE_SAME, 0 },
    { "one that had another before it was moved there",  "a", "",  false, LIFE_SAME, 0 },
    { "the life that is known",                          "a", "a", false, LIFE_SAME, 0 },
    { "the life that is known, of a restarted server",   "a", "a", true,  LIFE_SAME, 0 },
    { "none is known yet",                               "",  "a", false, LIFE_FIRST, 0 },
    { "none is known yet, and it was restarted",         "",  "a", true,  LIFE_FIRST, 0 },
    { "another life, after a restart",                   "a", "b", true,  LIFE_RESTARTED, 4000 },
    { "a restart while the clock was set back a little",  "a", "b", true,  LIFE_RESTARTED, 6000 },
    { "one that already ran when the last one worked",    "a", "b", true,  LIFE_FOREIGN, 6001 },
    { "another life, after a failover",                  "a", "b", false, LIFE_FOREIGN, 0 },
    { "a life that begins like the known one",           "a", "ab", false, LIFE_FOREIGN, 0 },
    { "a life that the known one begins with",           "ab", "a", false, LIFE_FOREIGN, 0 },
};
/* clang-format on */

static void lives_by_table(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(lives); i++) {
        const struct life_facts f = { .stored = bytes_str(lives[i].stored),
                                      .now = bytes_str(lives[i].now),
                                      .restarted = lives[i].restarted,
                                      .started_at_ms = 5000,
                                      .mark_ms = lives[i].mark_ms };
        enum life_verdict got = life_judge(&f);
        if (!TAP_EQ(t, got, lives[i].want))
            printf("# row: %s\n", lives[i].name);
    }
}

static const struct tap_case cases[] = {
    { "the next fence, by table", next_by_table },
    { "every fence fits a JSON number", every_fence_fits_a_json_number },
    { "what another life of the server means, by table", lives_by_table },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
