/* What the feed tells: events, read out of their text. */
#include "execs.h"

#include <stdlib.h>

/* What stands between `key` and the character that ends it, from *at on. */
static struct bytes between(struct bytes text, const char *key, char end)
{
    const char *at = memmem(text.ptr, text.len, key, strlen(key));

    if (!at)
        return bytes_of(NULL, 0);
    const char *from = at + strlen(key), *to = from;
    while (to < (const char *)text.ptr + text.len && *to != end && *to != '}')
        to++;
    return bytes_of(from, (size_t)(to - from));
}

static int64_t number_in(struct bytes text, const char *key)
{
    struct bytes digits = between(text, key, ',');
    char copy[24] = { 0 };

    if (digits.len == 0 || digits.len >= sizeof(copy))
        return 0;
    memcpy(copy, digits.ptr, digits.len);
    return strtoll(copy, NULL, 10);
}

/* Events are objects without others in them, one behind the other. */
static void read_events(struct execs *w, struct bytes text)
{
    static const char begin[] = "{\"type\":\"";

    while (text.len > 0) {
        const char *at = memmem(text.ptr, text.len, begin, sizeof(begin) - 1);
        if (!at || w->n_events == X_EVENTS)
            return;
        size_t skip = (size_t)(at - (const char *)text.ptr);
        text = bytes_of(text.ptr + skip, text.len - skip);
        const char *next = memmem(text.ptr + 1, text.len - 1, begin, sizeof(begin) - 1);
        size_t len = next ? (size_t)(next - (const char *)text.ptr) : text.len;
        struct bytes one = bytes_of(text.ptr, len);
        w->event[w->n_events++] =
            (struct xevent){ .type = xtext(between(one, begin, '"')),
                             .execution = xtext(between(one, "\"execution\":\"", '"')),
                             .outcome = xtext(between(one, "\"outcome\":\"", '"')),
                             .fence = number_in(one, "\"fence\":"),
                             .at_ms = number_in(one, "\"at\":") };
        text = bytes_of(text.ptr + len, text.len - len);
    }
}

void xfeed_read(struct execs *w, struct xstate *st, const struct item *item)
{
    if (!bytes_eq(item->name, bytes_str("executions")))
        return;
    if (st->n_feed == X_FEED) {
        st->fault = "model: too many events";
        return;
    }
    st->feed[st->n_feed++] =
        (struct xentry){ item->data.len, number_in(item->data, "\"at\":") };
    if (st->n_feed > w->old->n_feed) /* no commit appends and trims */
        read_events(w, item->data);
}
