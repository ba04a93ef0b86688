#include "policy/retry.h"

#include "base/clock.h"
#include "policy/vector.h"

bool retry_class_allows(enum belay_failure_class c)
{
    switch (c) {
    case BELAY_FAILURE_TRANSIENT:
    case BELAY_FAILURE_INFRA_CRASH:
    case BELAY_FAILURE_TIMEOUT:
        return true;
    case BELAY_FAILURE_UNSET:
    case BELAY_FAILURE_PERMANENT:
    case BELAY_FAILURE_CANCELLED:
        return false;
    }
    return false;
}

/* --- a stored list: canonical JSON, read where it lies --- */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What \u00xx at `at` stands for, or -1. */
static int unicode_escape(struct bytes text, size_t at)
{
    if (text.len - at < 6 || text.ptr[at + 2] != '0' || text.ptr[at + 3] != '0')
        return -1;
    int high = hex_digit(text.ptr[at + 4]), low = hex_digit(text.ptr[at + 5]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* The byte of a string's content at *at, which goes on behind it; -1 at its end. */
static int string_byte(struct bytes text, size_t *at)
{
    static const char from[] = "\"\\bfnrt", to[] = "\"\\\b\f\n\r\t";
    size_t i = *at;

    if (i >= text.len || text.ptr[i] == '"')
        return -1;
    if (text.ptr[i] != '\\') {
        *at = i + 1;
        return text.ptr[i];
    }
    if (i + 1 >= text.len)
        return -1;
    if (text.ptr[i + 1] == 'u') {
        int c = unicode_escape(text, i);
        *at = c < 0 ? i : i + 6;
        return c;
    }
    const char *escape = memchr(from, text.ptr[i + 1], sizeof(from) - 1);
    *at = escape ? i + 2 : i;
    return escape ? (uint8_t)to[escape - from] : -1;
}

/* Whether the string whose content begins at *at is `want`; *at goes to its end. */
static bool string_is(struct bytes text, size_t *at, struct bytes want)
{
    bool same = true;
    size_t n = 0;
    int c;

    while ((c = string_byte(text, at)) >= 0) {
        same = same && n < want.len && want.ptr[n] == c;
        n++;
    }
    return same && n == want.len;
}

static bool list_has(struct bytes list, struct bytes want)
{
    size_t at = 1; /* behind the bracket, or the comma */

    while (at < list.len && list.ptr[at] == '"') {
        at++;
        if (string_is(list, &at, want))
            return true;
        at += 2; /* the quote and what is behind it */
    }
    return false;
}

bool retry_list_allows(struct bytes list, enum belay_failure_class c,
                       struct bytes category)
{
    const char *name = vector_name(BELAY_DIM_FAILURE_CLASS, (int)c);

    if (list.len == 0 || bytes_eq(list, bytes_str("[]")))
        return true;
    return (name && list_has(list, bytes_str(name))) ||
           (category.len > 0 && list_has(list, category));
}

bool retry_allowed(const struct retry_policy *p, int64_t retries,
                   enum belay_failure_class c, struct bytes category)
{
    return retry_class_allows(c) && retries < p->max_retries &&
           retry_list_allows(p->retryable, c, category);
}

/* --- how long --- */

/* first * multiplier^retries, at most longest.  Infinity and zero are where a product
 * ends that leaves the doubles; the two never meet. */
static int64_t grown(int64_t first, double multiplier, int64_t retries, int64_t longest)
{
    double square = multiplier > 0 ? multiplier : RETRY_MULTIPLIER;
    double delay = (double)first;

    for (int64_t n = retries; n > 0; n /= 2) {
        if (n % 2 == 1)
            delay *= square;
        square *= square;
    }
    return delay >= (double)longest ? longest : (int64_t)delay;
}

/* Half to all of it: `random` as a fraction of 2^64 says where. */
static int64_t spread(int64_t delay, uint64_t random)
{
    uint64_t half = (uint64_t)delay / 2;
    uint64_t choices = (uint64_t)delay - half + 1;
    /* choices * random / 2^64, in two halves. */
    uint64_t low = (choices & 0xffffffffu) * (random >> 32) +
                   (((choices & 0xffffffffu) * (random & 0xffffffffu)) >> 32);
    uint64_t middle = (choices >> 32) * (random & 0xffffffffu) + (low & 0xffffffffu);
    uint64_t high = (choices >> 32) * (random >> 32) + (low >> 32) + (middle >> 32);

    return (int64_t)(half + high);
}

int64_t retry_delay_ms(const struct retry_policy *p, int64_t retries, uint64_t random)
{
    if (p->delay_ms <= 0)
        return 0;
    if (p->backoff == BELAY_BACKOFF_FIXED)
        return p->delay_ms;
    int64_t longest = p->max_delay_ms > 0 ? p->max_delay_ms : 0;
    int64_t delay = grown(p->delay_ms, p->multiplier, retries, longest);
    return p->jitter ? spread(delay, random) : delay;
}

/* --- what time does --- */

/* What is asked about one time, in order. */
struct due_time {
    int64_t at_ms; /* BELAY_TIME_NONE: not asked */
    enum due_action action;
};

#define DUE_TIMES_MAX 3

static int64_t lost_at(const struct due_facts *f)
{
    if (f->holder_dead) /* nobody is there to use the rest of it */
        return 0;
    return f->lease_expires_at_ms == BELAY_TIME_NONE
               ? BELAY_TIME_NONE
               : time_add_ms(f->lease_expires_at_ms, f->grace_ms);
}

static size_t due_times(const struct due_facts *f, struct due_time out[DUE_TIMES_MAX])
{
    size_t n = 0;

    if (!vector_is_terminal(&f->vector))
        out[n++] = (struct due_time){ f->deadline_at_ms, DUE_EXPIRE };
    switch (vector_place(&f->vector)) {
    case PLACE_DELAYED: /* without a time there is nothing to wait for */
        out[n++] = (struct due_time){
            f->delay_until_ms == BELAY_TIME_NONE ? 0 : f->delay_until_ms, DUE_PROMOTE
        };
        break;
    case PLACE_READY:
        out[n++] = (struct due_time){ f->grant_until_ms, DUE_UNGRANT };
        break;
    case PLACE_LEASED:
        out[n++] = (struct due_time){ f->timeout_at_ms, DUE_TIMEOUT };
        out[n++] =
            (struct due_time){ lost_at(f),
                               f->reclaims >= f->max_reclaims ? DUE_CAPPED : DUE_LOST };
        break;
    case PLACE_DONE:
        out[n++] = (struct due_time){ f->purge_at_ms, DUE_PURGE };
        break;
    case PLACE_HELD:
        break;
    }
    return n;
}

enum due_action due_judge(const struct due_facts *f, int64_t now_ms,
                          int64_t *out_next_ms)
{
    struct due_time times[DUE_TIMES_MAX];
    size_t n = due_times(f, times);
    int64_t next_ms = BELAY_TIME_NONE;

    *out_next_ms = BELAY_TIME_NONE;
    for (size_t i = 0; i < n; i++) {
        if (times[i].at_ms == BELAY_TIME_NONE)
            continue;
        if (times[i].at_ms <= now_ms)
            return times[i].action;
        if (next_ms == BELAY_TIME_NONE || times[i].at_ms < next_ms)
            next_ms = times[i].at_ms;
    }
    *out_next_ms = next_ms;
    return DUE_NOTHING;
}
