#include <stdio.h>

#include <belay/fleet.h>

uint64_t belay_netid_make(uint8_t kind, uint16_t node, uint64_t counter)
{
    return (uint64_t)kind << 56 | (uint64_t)node << 40 |
           (counter & BELAY_NETID_COUNTER_MAX);
}

uint8_t belay_netid_kind(uint64_t id)
{
    return (uint8_t)(id >> 56);
}

uint16_t belay_netid_node(uint64_t id)
{
    return (uint16_t)(id >> 40);
}

uint64_t belay_netid_counter(uint64_t id)
{
    return id & BELAY_NETID_COUNTER_MAX;
}

void belay_netid_print(uint64_t id, char out[BELAY_NETID_TEXT_MAX])
{
    (void)snprintf(out, BELAY_NETID_TEXT_MAX, "%u:%u:%llu", belay_netid_kind(id),
                   belay_netid_node(id), (unsigned long long)belay_netid_counter(id));
}

void belay_netid_debug(uint64_t id, char out[BELAY_NETID_DEBUG_MAX])
{
    (void)snprintf(out, BELAY_NETID_DEBUG_MAX, "%u:%u:%llu 0x%016llX",
                   belay_netid_kind(id), belay_netid_node(id),
                   (unsigned long long)belay_netid_counter(id), (unsigned long long)id);
}

void belay_netid_bytes(uint64_t id, uint8_t out[8])
{
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(id >> (56 - 8 * i));
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/* A number of `base` up to `max`, at least one digit; *text is behind it then. */
static bool number(const char **text, unsigned base, uint64_t max, uint64_t *out)
{
    const char *p = *text;
    uint64_t n = 0;

    for (; (unsigned)digit_of(*p) < base; p++) {
        uint64_t digit = (uint64_t)digit_of(*p);
        if (n > (max - digit) / base)
            return false;
        n = n * base + digit;
    }
    if (p == *text)
        return false;
    *text = p;
    *out = n;
    return true;
}

bool belay_netid_parse(const char *text, uint64_t *out)
{
    uint64_t raw = 0, kind, node, counter;

    if (!text)
        return false;
    if (text[0] == '0' && text[1] == 'x') {
        text += 2;
        if (!number(&text, 16, UINT64_MAX, &raw) || *text != '\0')
            return false;
        *out = raw;
        return true;
    }
    if (!number(&text, 10, UINT8_MAX, &kind) || *text++ != ':' ||
        !number(&text, 10, UINT16_MAX, &node) || *text++ != ':' ||
        !number(&text, 10, UINT64_MAX, &counter) || *text != '\0')
        return false;
    *out = belay_netid_make((uint8_t)kind, (uint16_t)node, counter);
    return true;
}
