/* budget.h - what work has used, and whether it may use more: types. */
#ifndef BELAY_BUDGET_H
#define BELAY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <belay/arena.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A dimension of the caller's own. */
struct belay_custom_usage {
    const char *name;
    int64_t amount;
};

#define BELAY_USAGE_CUSTOM_MAX 64

/* What is reported; zero is none. */
struct belay_usage_dimensions {
    uint32_t size;
    bool has_wall_ms; /* a report of tokens alone has no time */
    int64_t input_tokens, output_tokens, wall_ms;
    const struct belay_custom_usage *custom;
    size_t n_custom; /* at most BELAY_USAGE_CUSTOM_MAX */
};

/* The same with its custom dimensions sorted by name, in the arena (their names are the
 * caller's).  `invalid`, reason usage: too many, a name that is empty or there twice, an
 * amount below 0; `misuse`: NULL, or a size that cannot be. */
BELAY_API BELAY_MUST_USE belay_rc
belay_usage_sort(const struct belay_usage_dimensions *usage, struct belay_arena *arena,
                 struct belay_usage_dimensions *out, struct belay_error *err);
/* Whether two reports say the same; both sorted.  False for NULL. */
BELAY_API bool belay_usage_eq(const struct belay_usage_dimensions *a,
                              const struct belay_usage_dimensions *b);

/* What is answered. */
enum belay_admission {
    BELAY_ADMISSION_ADMITTED = 0,
    BELAY_ADMISSION_THROTTLED, /* later: after retry_after_ms */
    BELAY_ADMISSION_REJECTED,  /* not at all: reason says why */
};

struct belay_admission_decision {
    int32_t decision; /* enum belay_admission */
    int64_t retry_after_ms;
    const char *reason;
};

/* "admitted", "throttled", "rejected"; NULL for a number that is none. */
BELAY_API const char *belay_admission_name(int decision);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_BUDGET_H */
