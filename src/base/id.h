/* id.h - minted ids that sort by creation.
 *
 * prefix + 26 characters of lower-case Crockford base32 (0-9 a-z without i l o u)
 * holding 128 bits, most significant first:
 *
 *     48 bits  store milliseconds
 *     80 bits  random at each new millisecond, plus one for each further id in it
 *
 * One mint never repeats an id and never goes back, even when the time it is given
 * does: an earlier millisecond is treated as the latest one seen.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <pthread.h>

#include <belay/hooks.h>

#include "base/attr.h"
#include "base/err.h"

#define ID_BODY_LEN 26
#define ID_PREFIX_MAX 5
#define ID_MAX (ID_PREFIX_MAX + ID_BODY_LEN + 1) /* with the NUL */

struct id_mint {
    pthread_mutex_t mutex;
    int64_t last_ms;
    uint8_t tail[10];
};

void id_mint_init(struct id_mint *m);
void id_mint_release(struct id_mint *m);

/* Writes a NUL-terminated id.  now_ms is clamped to 0..2^48-1.  Thread-safe.  On
 * failure out and the mint are untouched:
 *
 *   unavailable   the random source failed
 *   out_of_range  the last id of the last millisecond was minted
 *   misuse        prefix is longer than ID_PREFIX_MAX */
MUST_USE belay_rc id_mint_next(struct id_mint *m, const char *prefix, int64_t now_ms,
                               const struct belay_random *random, char out[ID_MAX],
                               struct belay_error *err);

#endif /* BASE_ID_H */
