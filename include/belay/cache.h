/* cache.h - values by key, for every member of a fleet, until they expire or their room is needed.
 *
 *     struct belay_cache *c;
 *     struct belay_cache_options options = { .size = sizeof(options) };
 *     if (belay_cache_open(f, &options, &c, &err) == BELAY_OK)
 *         rc = belay_cache_put(c, "user:7", 6, text, len, 60000, NULL, &err);
 *     ...
 *     rc = belay_cache_get(c, "user:7", 6, buf, sizeof(buf), &got, &err);
 *     if (rc == BELAY_OK && got.is_hit)
 *         use(buf, got.len);
 *
 * A fleet has one cache, of a fixed number of entries and bytes, made by whoever opens it first.
 *
 *   H1  A value is got whole or not at all; nothing torn is returned.
 *   H2  Puts and deletes of a key happen each at one moment between call and return, in one
 *       order; a get finds the latest, or nothing.  What is evicted is gone for all.
 *   H3  A member killed while it puts or deletes leaves the value that was, or its own, or
 *       none.  What its put had taken is free for others as soon as the kernel says that it is dead.
 *       A put that was cut short may still come to be seen later.
 *   H4  A get takes the same time however much is in the cache, and writes nothing but a mark
 *       that the value was used, at most once between two visits of the eviction.
 *   H5  Room is made by evicting what has expired and what was not used of late (CLOCK).  A
 *       key may be held in one of 8 places: one of its neighbours there may go before the cache is full.
 *       When no room can be made the put fails and changes nothing.
 *   H6  Times to live are of the monotonic clock: setting the wall clock changes nothing.  A
 *       value is gone at its deadline exactly.
 *
 * A reset of the fleet empties the cache.  Where a call fails its outputs are as they were;
 * only buf may then hold anything.
 */
#ifndef BELAY_CACHE_H
#define BELAY_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <belay/error.h>
#include <belay/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay_fleet;
struct belay_cache;

#define BELAY_CACHE_KEY_MAX 4096 /* bytes, the prefix included */
#define BELAY_CACHE_VALUE_MAX (INT64_C(64) << 20)

/* Zero it, set size.  What is 0 has its default.  Entries and arena_len count for whoever
 * opens the cache of a fleet first; others find them there. */
struct belay_cache_options {
    uint32_t size;
    int32_t entries; /* power of two, 8 to 2^20; default 4096 */
    int64_t
        arena_len; /* bytes for what does not fit into an entry (192 bytes of key and
                           value), to 2^32; default 4 MiB */
    const char *prefix; /* put in front of all keys of this handle; NULL: none */
};

/* An observer opens what is there; `not_found` otherwise.  Lives until it is closed or the
 * fleet's handle leaves. */
BELAY_API BELAY_MUST_USE belay_rc
belay_cache_open(struct belay_fleet *f, const struct belay_cache_options *options,
                 struct belay_cache **out, struct belay_error *err);
BELAY_API void belay_cache_close(struct belay_cache *c); /* takes NULL */

/* Keys are any bytes, 1 to BELAY_CACHE_KEY_MAX.  ttl_ms: 0 never expires, otherwise at least 1.
 * *out_epoch (may be NULL) is the number of this change; later ones have higher ones.
 *   invalid    key, ttl; too_large: over BELAY_CACHE_VALUE_MAX or half the arena (expected: what fits)
 *   no_memory  the room is taken by puts under way (arena, table_full) */
BELAY_API BELAY_MUST_USE belay_rc belay_cache_put(struct belay_cache *c,
                                                  const void *key, size_t key_len,
                                                  const void *value, size_t len,
                                                  int64_t ttl_ms, uint64_t *out_epoch,
                                                  struct belay_error *err);

/* What a copy of a value is compared with, in an L1 of the caller's: belay_cache_is_current. */
struct belay_cache_stamp {
    uint64_t words;    /* read-only, as the next two */
    uint64_t deadline; /* 0: never */
    uint32_t set;
};

struct belay_cache_got {
    bool is_hit;
    uint64_t
        epoch; /* of the value; of a miss: no lower than the change that took the key
                           away, 0 when none of its places ever lost one that way */
    int64_t ttl_ms; /* left, at least 1; 0: never expires */
    size_t len;
    struct belay_cache_stamp stamp;
};

/* The value into buf.  A miss is BELAY_OK, too.
 *   out_of_range  buf is too short (expected: its length)
 *   contention    the key's places change faster than they can be read */
BELAY_API BELAY_MUST_USE belay_rc belay_cache_get(struct belay_cache *c,
                                                  const void *key, size_t key_len,
                                                  void *buf, size_t buf_len,
                                                  struct belay_cache_got *out,
                                                  struct belay_error *err);

/* Whether what was got then, hit or miss, is still so: one line of memory is read.  It may say no when only
 * a neighbour has changed; it never says yes when the key has. */
BELAY_API bool belay_cache_is_current(const struct belay_cache *c,
                                      const struct belay_cache_stamp *stamp);

/* *out_was (may be NULL): there was one. */
BELAY_API BELAY_MUST_USE belay_rc belay_cache_delete(struct belay_cache *c,
                                                     const void *key, size_t key_len,
                                                     bool *out_was,
                                                     struct belay_error *err);

/* Deletes every key that begins with the handle's prefix and then `prefix`, one after the other; *out_n (may be
 * NULL) is how many.  What is put meanwhile may stay. */
BELAY_API BELAY_MUST_USE belay_rc belay_cache_reset(struct belay_cache *c,
                                                    const void *prefix,
                                                    size_t prefix_len, size_t *out_n,
                                                    struct belay_error *err);

/* Keys of this handle's prefix, without it, in no order, up to `max` from *cursor on (0 at first; 0 again when
 * all are told). */
struct belay_cache_entry {
    uint32_t key_len; /* may be over what is in key */
    char key[256];    /* cut, a zero behind it */
    size_t len;
    uint64_t epoch;
    int64_t ttl_ms; /* left; 0: never expires */
};
BELAY_API BELAY_MUST_USE belay_rc belay_cache_list(struct belay_cache *c,
                                                   uint64_t *cursor,
                                                   struct belay_cache_entry *out,
                                                   size_t max, size_t *out_n,
                                                   struct belay_error *err);

struct belay_cache_status {
    uint32_t size; /* set by the caller */
    int32_t entries, entries_used;
    int64_t arena_len, arena_used;
    uint64_t epoch;   /* changes so far */
    uint64_t evicted; /* values that went for room, expired ones not counted */
};
BELAY_API BELAY_MUST_USE belay_rc belay_cache_status(struct belay_cache *c,
                                                     struct belay_cache_status *out,
                                                     struct belay_error *err);

/* The log of changes, a ring of kind 200 with `notify`, for those who keep copies and want to be told.  Frames
 * of kind 1, little-endian:
 *     op u8 (1 put, 2 delete, 3 prefix reset) | key_len u16 | value_len u16 |
 *     expires_at_ms u64 (wall clock, 0 never) | key | value
 * A frame of kind 2 is the same without the value, when both are over 243 bytes; a key that alone is longer is
 * told as the reset of its first 243 bytes.  ver is the change's epoch.  A frame comes after
 * its change; one of a member that was killed in between is missing, and evictions are not
 * told.  Who must not be wrong asks belay_cache_is_current. */
#define BELAY_CACHE_RING_KIND 200
#define BELAY_CACHE_FRAME_MAX 243 /* bytes of key and value together */
BELAY_API BELAY_MUST_USE belay_rc belay_cache_log(struct belay_cache *c,
                                                  struct belay_ring **out,
                                                  struct belay_error *err);

/* In a fleet of a virtual clock: the time from now on. */
BELAY_API BELAY_MUST_USE belay_rc belay_cache_tell_time(struct belay_cache *c,
                                                        int64_t now_ms,
                                                        struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CACHE_H */
