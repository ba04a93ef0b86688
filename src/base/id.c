#include "base/id.h"

#include <string.h>

#include "base/hash.h"

#define MS_MAX (((int64_t)1 << 48) - 1)

void id_mint_init(struct id_mint *m)
{
    *m = (struct id_mint){ .last_ms = -1 }; /* before any time: the first id is new */
    pthread_mutex_init(&m->mutex, NULL);
}

void id_mint_release(struct id_mint *m)
{
    pthread_mutex_destroy(&m->mutex);
}

/* Adds one; false, and all bytes zero, when it was the largest. */
static bool increment(uint8_t tail[10])
{
    for (int i = 9; i >= 0; i--) {
        if (++tail[i] != 0)
            return true;
    }
    return false;
}

/* Moves the mint to its next value, or leaves it as it was. */
static belay_rc advance(struct id_mint *m, int64_t now_ms,
                        const struct belay_random *random, struct belay_error *err)
{
    int64_t ms = now_ms;
    uint8_t tail[sizeof(m->tail)];

    if (now_ms <= m->last_ms) {
        memcpy(tail, m->tail, sizeof(tail));
        if (increment(tail)) {
            memcpy(m->tail, tail, sizeof(tail));
            return BELAY_OK;
        }
        ms = m->last_ms + 1;
        if (ms > MS_MAX)
            return err_set(err, BELAY_OUT_OF_RANGE, "id: no larger one exists");
    }
    belay_rc rc = random_bytes(random, tail, sizeof(tail), err);
    if (rc != BELAY_OK)
        return rc;
    m->last_ms = ms;
    memcpy(m->tail, tail, sizeof(tail));
    return BELAY_OK;
}

/* 26 digits hold 130 bits: the first one carries the topmost three of the 128. */
static void encode(const uint8_t bits[16], char out[ID_BODY_LEN])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint32_t held = 0;
    unsigned n_held = 2; /* the two zero bits in front */

    for (size_t i = 0, at = 0; at < ID_BODY_LEN; at++) {
        if (n_held < 5) {
            held = (held << 8 | bits[i++]) & 0xffff;
            n_held += 8;
        }
        n_held -= 5;
        out[at] = digits[held >> n_held & 31];
    }
}

belay_rc id_mint_next(struct id_mint *m, const char *prefix, int64_t now_ms,
                      const struct belay_random *random, char out[ID_MAX],
                      struct belay_error *err)
{
    uint8_t bits[16];
    size_t prefix_len = strlen(prefix);

    if (prefix_len > ID_PREFIX_MAX)
        return err_set(err, BELAY_MISUSE, "id: prefix \"%s\" is too long", prefix);
    now_ms = now_ms < 0 ? 0 : now_ms > MS_MAX ? MS_MAX : now_ms;

    pthread_mutex_lock(&m->mutex);
    belay_rc rc = advance(m, now_ms, random, err);
    for (int i = 0; i < 6; i++)
        bits[i] = (uint8_t)((uint64_t)m->last_ms >> (40 - 8 * i));
    memcpy(bits + 6, m->tail, sizeof(m->tail));
    pthread_mutex_unlock(&m->mutex);

    if (rc != BELAY_OK)
        return rc;
    memcpy(out, prefix, prefix_len);
    encode(bits, out + prefix_len);
    out[prefix_len + ID_BODY_LEN] = '\0';
    return BELAY_OK;
}
