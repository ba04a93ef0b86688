#include "api/duration.h"

#include "base/clock.h"

/* clang-format off */
static const struct unit {
    const char *name;
    int64_t ms;
} units[] = { /* largest first */
    { "d", INT64_C(86400000) },
    { "h", INT64_C(3600000) },
    { "m", INT64_C(60000) },
    { "s", INT64_C(1000) },
    { "ms", INT64_C(1) },
};
/* clang-format on */

static const struct unit *unit_called(struct bytes name)
{
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (bytes_eq(name, bytes_str(units[i].name)))
            return &units[i];
    }
    return NULL;
}

bool duration_parse(struct bytes text, int64_t *out_ms)
{
    size_t digits = 0;
    int64_t n, ms;

    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    if (digits == 0 || digits == text.len ||
        !bytes_to_i64(bytes_of(text.ptr, digits), &n))
        return false;

    const struct unit *unit =
        unit_called(bytes_of(text.ptr + digits, text.len - digits));
    if (!unit || __builtin_mul_overflow(n, unit->ms, &ms) || ms > TIME_MAX_MS)
        return false;
    *out_ms = ms;
    return true;
}

void duration_append(struct buf *out, int64_t ms)
{
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        bool whole = ms >= units[i].ms && ms % units[i].ms == 0;
        if (whole || units[i].ms == 1) {
            buf_append_i64(out, ms / units[i].ms);
            buf_append_str(out, units[i].name);
            return;
        }
    }
}
