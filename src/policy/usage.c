#include "policy/usage.h"

static belay_rc bad_usage(struct belay_error *err, size_t at, const char *why)
{
    return err_reason(err, BELAY_INVALID, "usage", "usage: custom dimension %zu: %s",
                      at + 1, why);
}

/* Where `name` belongs among n sorted ones; *out_taken: it is there. */
static size_t place_of(const struct belay_custom_usage *sorted, size_t n,
                       const char *name, bool *out_taken)
{
    size_t at = n;

    while (at > 0 && strcmp(sorted[at - 1].name, name) > 0)
        at--;
    *out_taken = at > 0 && strcmp(sorted[at - 1].name, name) == 0;
    return at;
}

static belay_rc sort_into(struct belay_custom_usage *sorted,
                          const struct belay_usage_dimensions *usage,
                          struct belay_error *err)
{
    for (size_t i = 0; i < usage->n_custom; i++) {
        const struct belay_custom_usage *one = &usage->custom[i];
        bool taken;

        if (!one->name || one->name[0] == '\0')
            return bad_usage(err, i, "it has no name");
        if (one->amount < 0)
            return bad_usage(err, i, "its amount is below 0");
        size_t at = place_of(sorted, i, one->name, &taken);
        if (taken)
            return bad_usage(err, i, "its name is there twice");
        memmove(&sorted[at + 1], &sorted[at], (i - at) * sizeof(sorted[0]));
        sorted[at] = *one;
    }
    return BELAY_OK;
}

belay_rc usage_sort(const struct belay_usage_dimensions *usage, struct belay_arena *a,
                    struct belay_usage_dimensions *out, struct belay_error *err)
{
    if (usage->input_tokens < 0 || usage->output_tokens < 0 || usage->wall_ms < 0)
        return err_reason(err, BELAY_INVALID, "usage", "usage: an amount is below 0");
    if (usage->n_custom > BELAY_USAGE_CUSTOM_MAX)
        return err_reason(err, BELAY_INVALID, "usage",
                          "usage: %zu custom dimensions, %d are the most",
                          usage->n_custom, BELAY_USAGE_CUSTOM_MAX);
    struct belay_custom_usage *sorted =
        arena_zalloc(a, usage->n_custom, sizeof(*sorted));
    if (!sorted)
        return err_no_memory(err, "usage");
    belay_rc rc = sort_into(sorted, usage, err);
    if (rc)
        return rc;
    *out = *usage;
    out->custom = usage->n_custom > 0 ? sorted : NULL;
    return BELAY_OK;
}

bool usage_eq(const struct belay_usage_dimensions *a,
              const struct belay_usage_dimensions *b)
{
    if (a->input_tokens != b->input_tokens || a->output_tokens != b->output_tokens ||
        a->has_wall_ms != b->has_wall_ms || a->n_custom != b->n_custom)
        return false;
    if (a->has_wall_ms && a->wall_ms != b->wall_ms)
        return false;
    for (size_t i = 0; i < a->n_custom; i++) {
        if (a->custom[i].amount != b->custom[i].amount ||
            strcmp(a->custom[i].name, b->custom[i].name) != 0)
            return false;
    }
    return true;
}
