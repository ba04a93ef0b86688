/* pack.h - zlib behind a few plain functions; no other file includes it.
 *
 * Both directions work in pieces: what is taken leaves *in, what is made goes to the
 * caller's memory.  A stream of zlib carries a checksum, but whoever needs to know that
 * bytes are the right ones compares digests.
 */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include "base/arena.h"
#include "base/err.h"

struct packer;
struct unpacker;

MUST_USE belay_rc packer_open(struct packer **out, struct belay_error *err);

/* Takes from *in until it is empty or `room` bytes are made; *made tells how many. */
MUST_USE belay_rc packer_take(struct packer *p, struct bytes *in, uint8_t *out,
                              size_t room, size_t *made, struct belay_error *err);

/* Makes what is left; *done: nothing is, and only close remains. */
MUST_USE belay_rc packer_finish(struct packer *p, uint8_t *out, size_t room,
                                size_t *made, bool *done, struct belay_error *err);

void packer_close(struct packer *p); /* takes NULL */

/* `size` is what the stream has to yield. */
MUST_USE belay_rc unpacker_open(struct unpacker **out, int64_t size,
                                struct belay_error *err);

/* Takes from *in until it is empty, `room` bytes are made or the stream has ended.
 * `corrupt` for a damaged stream, one that yields more or less than was said, and
 * anything behind its end. */
MUST_USE belay_rc unpacker_take(struct unpacker *u, struct bytes *in, uint8_t *out,
                                size_t room, size_t *made, struct belay_error *err);

/* Whether the stream has ended, at exactly its size.  A stream whose input is over
 * without that was cut off. */
bool unpacker_is_done(const struct unpacker *u);

void unpacker_close(struct unpacker *u); /* takes NULL */

/* All of `in` as one stream in the arena, if that is shorter: otherwise *out is empty.
 */
MUST_USE belay_rc pack_if_shorter(struct bytes in, struct belay_arena *a,
                                  struct bytes *out, struct belay_error *err);

/* The stream `in` as `size` bytes in the arena, with a NUL behind them; `corrupt` as
 * above, also for one that was cut off. */
MUST_USE belay_rc unpack_all(struct bytes in, size_t size, struct belay_arena *a,
                             struct bytes *out, struct belay_error *err);

#endif /* STORE_PACK_H */
