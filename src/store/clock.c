#include "store/clock.h"

#include "base/clock.h"

static int64_t distance(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

static int64_t clamp(int64_t ms)
{
    return ms < 0 ? 0 : ms > TIME_MAX_MS ? TIME_MAX_MS : ms;
}

void store_clock_init(struct store_clock *c, int64_t mark_ms)
{
    *c = (struct store_clock){ .high_ms = clamp(mark_ms),
                               .persisted_ms = clamp(mark_ms) };
}

/* Starts to doubt wall time: ours goes on from `from_ms`. */
static void doubt(struct store_clock *c, int64_t from_ms, int64_t mono_us)
{
    c->doubted = true;
    c->doubted_at_us = mono_us;
    c->base_ms = from_ms;
    c->base_us = mono_us;
}

/* Looks at how far wall time is from where it should be. */
static void judge(struct store_clock *c, int64_t wall_ms, int64_t mono_us)
{
    if (!c->started) {
        c->started = true;
        if (c->high_ms > 0 && distance(wall_ms, c->high_ms) > CLOCK_START_STEP_MS)
            doubt(c, c->high_ms, mono_us);
        return;
    }
    int64_t passed_ms = (mono_us - c->last_mono_us) / 1000;
    int64_t expected_ms = c->last_wall_ms + passed_ms;
    bool stepped = distance(wall_ms, expected_ms) > CLOCK_STEP_MS;

    /* A second step starts the wait for trust anew: "lasted" means undisturbed. */
    if (stepped && c->doubted)
        c->doubted_at_us = mono_us;
    else if (stepped)
        doubt(c, expected_ms > c->high_ms ? expected_ms : c->high_ms, mono_us);

    if (c->doubted && mono_us - c->doubted_at_us >= CLOCK_TRUST_US)
        c->doubted = false;
    /* A step that was undone is no step: back within a minute of our own time. */
    int64_t own_ms = c->base_ms + (mono_us - c->base_us) / 1000;
    if (c->doubted && distance(wall_ms, own_ms) <= CLOCK_STEP_MS)
        c->doubted = false;
}

int64_t store_clock_now(struct store_clock *c, int64_t wall_ms, int64_t mono_us)
{
    wall_ms = clamp(wall_ms);
    judge(c, wall_ms, mono_us);
    c->last_wall_ms = wall_ms;
    c->last_mono_us = mono_us;

    int64_t now = wall_ms;
    c->doubted_step_ms = 0;
    if (c->doubted) {
        now = clamp(c->base_ms + (mono_us - c->base_us) / 1000);
        c->doubted_step_ms = wall_ms - now;
    }
    if (now > c->high_ms)
        c->high_ms = now;
    return c->high_ms;
}

void store_clock_accept(struct store_clock *c)
{
    c->doubted = false;
}

bool store_clock_persist_due(const struct store_clock *c, int64_t now_ms)
{
    return now_ms - c->persisted_ms >= CLOCK_PERSIST_MS;
}
