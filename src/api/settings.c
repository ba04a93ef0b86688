#include "api/settings.h"

#include <inttypes.h>

#include "api/duration.h"

/* clang-format off */
static const struct setting_row {
    const char *name;   /* in a URL */
    const char *member; /* of struct belay_options */
    int64_t min, max;
    bool duration;
} rows[SETTINGS] = {
    [SETTING_REQUEST_TIMEOUT] = { "request_timeout", "request_timeout_ms",      1, 86400000, true },
    [SETTING_RETRIES]         = { "retries",         "retry.number_of_retries", 0, 1000,     false },
    [SETTING_RETRY_BASE]      = { "retry_base",      "retry.exponent_base",     1, 100,      false },
    [SETTING_RETRY_FACTOR]    = { "retry_factor",    "retry.factor",            1, 60000,    false },
    [SETTING_RETRY_JITTER]    = { "retry_jitter",    "retry.jitter_percent",    0, 100,      false },
    [SETTING_RECLAIM_GRACE]   = { "grace",           "reclaim_grace_ms",        0, 86400000, true },
};
/* clang-format on */

struct settings settings_none(void)
{
    struct settings s;

    for (size_t i = 0; i < SETTINGS; i++)
        s.value[i] = SETTING_UNSET;
    return s;
}

/* 0 is unset, BELAY_NONE is an explicit zero. */
static belay_rc take_member(struct settings *s, enum setting which, int64_t member,
                            struct belay_error *err)
{
    const struct setting_row *row = &rows[which];
    int64_t value = member == BELAY_NONE ? 0 : member;

    if (member == 0)
        return BELAY_OK;
    if (value < row->min || value > row->max) {
        (void)err_reason(err, BELAY_INVALID, "option",
                         "struct belay_options: %s: must be from %" PRId64
                         " to %" PRId64 "%s",
                         row->member, row->min > 1 ? row->min : 1, row->max,
                         row->min == 0 ? ", or BELAY_NONE" : "");
        err_entity(err, bytes_str(row->member));
        return BELAY_INVALID;
    }
    s->value[which] = value;
    return BELAY_OK;
}

belay_rc settings_from_options(struct settings *s, const struct belay_options *options,
                               struct belay_error *err)
{
    const int64_t members[SETTINGS] = {
        [SETTING_REQUEST_TIMEOUT] = options->request_timeout_ms,
        [SETTING_RETRIES] = options->retry.number_of_retries,
        [SETTING_RETRY_BASE] = options->retry.exponent_base,
        [SETTING_RETRY_FACTOR] = options->retry.factor,
        [SETTING_RETRY_JITTER] = options->retry.jitter_percent,
        [SETTING_RECLAIM_GRACE] = options->reclaim_grace_ms,
    };
    struct settings taken = *s;

    for (size_t i = 0; i < SETTINGS; i++) {
        belay_rc rc = take_member(&taken, (enum setting)i, members[i], err);
        if (rc != BELAY_OK)
            return rc;
    }
    *s = taken;
    return BELAY_OK;
}

bool settings_find(struct bytes name, enum setting *out)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (bytes_eq(name, bytes_str(rows[i].name))) {
            *out = (enum setting)i;
            return true;
        }
    }
    return false;
}

belay_rc settings_from_text(struct settings *s, enum setting which, struct bytes value,
                            struct belay_error *err)
{
    const struct setting_row *row = &rows[which];
    int64_t n = SETTING_UNSET;
    bool read = row->duration ? duration_parse(value, &n) : bytes_to_i64(value, &n);

    if (read && n >= row->min && n <= row->max) {
        s->value[which] = n;
        return BELAY_OK;
    }
    struct buf bounds CLEANUP(buf_release) = { 0 };
    if (row->duration) {
        duration_append(&bounds, row->min);
        buf_append_str(&bounds, " to ");
        duration_append(&bounds, row->max);
        buf_append_str(&bounds, ", written like 500ms, 30s or 15m");
    } else {
        buf_printf(&bounds, "a whole number from %" PRId64 " to %" PRId64, row->min,
                   row->max);
    }
    (void)err_reason(err, BELAY_INVALID, "option", "store URL: option %s: must be %.*s",
                     row->name, (int)bounds.len,
                     bounds.failed ? "" : (const char *)bounds.ptr);
    err_entity(err, bytes_str(row->name));
    return BELAY_INVALID;
}
