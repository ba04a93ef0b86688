#include "api/options.h"

#include <string.h>

#include "base/clock.h"

_Static_assert(sizeof(struct belay_options) >= OPTIONS_SIZE_FIRST,
               "members are only ever added");

static belay_rc misuse(struct belay_error *err, const char *why)
{
    return err_set(err, BELAY_MISUSE, "struct belay_options: %s", why);
}

/* Whether everything behind what this library knows is zero. */
static bool tail_is_zero(const struct belay_options *in)
{
    const unsigned char *bytes = (const unsigned char *)in;

    for (size_t i = sizeof(*in); i < in->size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static belay_rc copy_known(const struct belay_options *in, struct belay_options *out,
                           struct belay_error *err)
{
    if (in->size < OPTIONS_SIZE_FIRST || in->size > OPTIONS_SIZE_MAX) {
        (void)misuse(err, "size is not that of any version; set it to "
                          "sizeof(struct belay_options)");
        err_numbers(err, (int64_t)sizeof(*in), in->size);
        return BELAY_MISUSE;
    }
    if (!tail_is_zero(in)) {
        (void)misuse(err, "sets a member that this version of the library does not "
                          "know");
        err_numbers(err, (int64_t)sizeof(*in), in->size);
        return BELAY_MISUSE;
    }
    memcpy(out, in, in->size < sizeof(*out) ? in->size : sizeof(*out));
    if (out->reserved != 0 || out->reserved2 != 0)
        return misuse(err, "reserved is not 0");
    return BELAY_OK;
}

belay_rc options_read(const struct belay_options *in, struct belay_options *out,
                      struct belay_clock *clock, struct belay_random *random,
                      struct belay_error *err)
{
    struct belay_options o = { 0 };

    if (in) {
        belay_rc rc = copy_known(in, &o, err);
        if (rc != BELAY_OK)
            return rc;
    }
    if (o.clock && (!o.clock->wall_ms || !o.clock->mono_us || !o.clock->sleep_us))
        return misuse(err, "clock lacks a function");
    if (o.random && !o.random->fill)
        return misuse(err, "random lacks its function");

    o.size = sizeof(o);
    if (!o.ns)
        o.ns = "default";
    *clock = o.clock ? *o.clock : clock_system();
    if (o.random)
        *random = *o.random;
    o.clock = clock;
    o.random = random;
    *out = o;
    return BELAY_OK;
}
