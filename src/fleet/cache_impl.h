/* cache_impl.h - the cache's segment, and what its files share.
 *
 *     header | shared | sets | entries | chunks' words | chunks
 *
 * A key has 8 places, those of its set.  Words with fields, highest bits first:
 *
 *     W  entry  gen:40 | node:10 | incarnation:11 | state:3
 *     C  chunk  entry + 1:24 | gen:40
 *
 * An entry is
 *     EMPTY    nobody's; what is in it means nothing
 *     WRITING  of the member named, which fills it; others leave it alone while that one lives
 *     LIVE     a value, which does not change until W does
 *
 * gen rises when an entry becomes WRITING, and only then: what was written under one gen is
 * never another's.  A chunk is in use as long as the entry its word names is WRITING or LIVE
 * with that gen, so nothing has to be given back by those who die, or for them.
 *
 * A put fills a place that is not the old value's and makes it LIVE, which is the moment it
 * happens; then the old one goes.  In between the key is there twice and the higher epoch
 * counts, whoever reads; and whoever takes the higher one away takes the lower one first.
 */
#ifndef FLEET_CACHE_IMPL_H
#define FLEET_CACHE_IMPL_H

#include <belay/cache.h>

#include "fleet/impl.h"

#define CACHE_MAGIC UINT64_C(0x4843414359414c42) /* "BLAYCACH" */
#define CACHE_WAYS 8
#define CACHE_ENTRIES_MAX (1 << 20)
#define CACHE_ARENA_MAX (INT64_C(1) << 32)
#define CHUNK_LEN 1024
#define CACHE_INLINE 192 /* bytes of key and value in the entry itself */
#define NO_CHUNK UINT32_MAX

struct cache_header {
    uint64_t magic;
    uint32_t abi, header_len;
    uint64_t abi_hash;
    uint64_t total_len;
    uint64_t fleet_id;
    uint32_t entries, chunks;
    uint64_t sum; /* of this header */
    uint64_t reserved[4];
};
static_assert(sizeof(struct cache_header) == 88, "no padding");

struct cache_shared {
    au64 epoch; /* changes so far */
    au64 pad0[15];
    au64 hand, chunk_hand; /* where to look for room next */
    au64 evicted;
    au64 pad1[13];
};

struct cache_set {
    au64 w[CACHE_WAYS];    /* one line: what a get, and a stamp, compares */
    au64 hash[CACHE_WAYS]; /* another */
    au64 ended;            /* the last delete or reset of one of its keys */
    au64 hand;
    au64 pad[14];
};
static_assert(sizeof(struct cache_set) == 256, "four lines");

/* Its bytes are the key and, at the next multiple of 8, the value: so many in text, the
 * others in chunks. */
struct cache_entry {
    au64 epoch;
    au64 deadline; /* in the units of D; 0: never */
    au64 lens;     /* key_len:32 | value_len:32 */
    au64 chunk;    /* the first one; NO_CHUNK: all is in text */
    au64 used;     /* since the hand came by */
    au64 pad[3];
    au64 text[CACHE_INLINE / 8];
};
static_assert(sizeof(struct cache_entry) == 256, "four lines");

struct cache_chunk {
    au64 owner; /* C */
    au64 next;  /* of the same value */
};

enum cache_state { CACHE_EMPTY = 0, CACHE_WRITING, CACHE_LIVE };

static inline enum cache_state w_state(uint64_t w)
{
    return (enum cache_state)(w & 7);
}
static inline uint64_t w_gen(uint64_t w)
{
    return w >> 24;
}
static inline uint32_t w_node(uint64_t w)
{
    return (uint32_t)(w >> 14 & 0x3ff);
}
static inline uint64_t w_as(uint64_t w, enum cache_state state)
{
    return (w & ~UINT64_C(7)) | (uint64_t)state;
}

/* The mapped segment; one for all handles of a space. */
struct cache_map {
    uint8_t *base;
    uint64_t total_len;
    uint32_t entries, sets, chunks;
    uint64_t shared_at, sets_at, entries_at, words_at, chunks_at;
};

struct belay_cache {
    struct belay_fleet *f;
    struct belay_cache *next, **at; /* of the handle's */
    struct cache_shared *shared;
    struct cache_set *sets;
    struct cache_entry *entries;
    struct cache_chunk *words;
    uint8_t *chunks;
    uint32_t n_sets, n_chunks;
    struct belay_ring *log;
    size_t prefix_len;
    uint8_t prefix[BELAY_CACHE_KEY_MAX];
};

/* A key with its prefix, and where it is. */
struct cache_key {
    const uint8_t *ptr;
    size_t len;
    uint64_t hash;
    struct cache_set *set;
    uint32_t first; /* entry of its set */
    uint8_t own[BELAY_CACHE_KEY_MAX];
};

/* --- cache_segment.c --- */

/* The cache's memory, made when there is none and options are given. */
MUST_USE belay_rc cache_map_get(struct belay_fleet *f,
                                const struct belay_cache_options *options,
                                struct cache_map **out, struct belay_error *err);
/* The one that is there; NULL: none, or it cannot be opened. */
struct cache_map *cache_map_find(struct belay_fleet *f);
void cache_map_free(struct cache_map *map);
void cache_bind(struct belay_cache *c, struct belay_fleet *f,
                const struct cache_map *map);

/* --- cache_bytes.c: keys and values in entries and chunks --- */

/* Room for so many bytes in all, for the entry while its W is `w`; *out_first NO_CHUNK: none
 * is needed.  false: there is none. */
MUST_USE bool chunks_take(struct belay_cache *c, uint32_t entry, uint64_t w, size_t len,
                          uint64_t *out_first);
static inline uint32_t chunks_for(size_t len)
{
    return len <= CACHE_INLINE
               ? 0
               : (uint32_t)((len - CACHE_INLINE + CHUNK_LEN - 1) / CHUNK_LEN);
}
/* Where the value begins behind a key of that length. */
static inline size_t value_at(size_t len_of_key)
{
    return (len_of_key + 7) / 8 * 8;
}
/* `at` is a multiple of 8. */
void bytes_write(struct belay_cache *c, uint32_t entry, size_t at, const void *data,
                 size_t len);
/* False: the entry makes no sense, which is so when it has changed meanwhile. */
MUST_USE bool bytes_read(const struct belay_cache *c, uint32_t entry, size_t at,
                         void *out, size_t len);
/* Key and value together; 0 of what makes no sense. */
size_t bytes_len(const struct belay_cache *c, uint32_t entry, size_t *out_key,
                 size_t *out_value);

/* --- cache_set.c: places --- */

/* LIVE -> EMPTY, what is lower of the same key first; false: it is no longer w. */
bool entry_end(struct belay_cache *c, uint32_t entry, uint64_t w);
/* Takes an entry of the set for writing; *out_w is its W then.  false: all are being
 * written. */
MUST_USE bool set_take(struct belay_cache *c, const struct cache_key *k,
                       uint32_t *out_entry, uint64_t *out_w);
/* Evicts something that has chunks; how many those are, 0 when there is nothing. */
uint32_t evict_for_chunks(struct belay_cache *c, uint32_t but);
/* EMPTY, if it was being written by somebody who is dead. */
void entry_settle(struct belay_cache *c, uint32_t entry);
/* All of the set with that hash up to an epoch, the lowest first; how many went. */
unsigned set_end(struct belay_cache *c, uint32_t set, uint64_t hash, uint64_t upto);
/* The highest of that hash; false: there is none. */
bool set_find(const struct belay_cache *c, uint32_t set, uint64_t hash,
              const uint64_t w[CACHE_WAYS], uint32_t *out_way, uint64_t *out_epoch);

static inline au64 *word_of(const struct belay_cache *c, uint32_t entry)
{
    return &c->sets[entry / CACHE_WAYS].w[entry % CACHE_WAYS];
}
static inline bool has_expired(const struct belay_cache *c, uint32_t entry,
                               uint64_t now)
{
    uint64_t deadline =
        atomic_load_explicit(&c->entries[entry].deadline, memory_order_relaxed);

    return deadline != 0 && deadline <= now;
}

/* --- cache_log.c --- */

enum cache_op { CACHE_OP_PUT = 1, CACHE_OP_DELETE, CACHE_OP_RESET };
MUST_USE belay_rc cache_log_open(struct belay_cache *c, struct belay_error *err);
MUST_USE belay_rc cache_log_write(struct belay_cache *c, enum cache_op op,
                                  const struct cache_key *k, const void *value,
                                  size_t len, uint64_t deadline, uint64_t epoch,
                                  struct belay_error *err);

/* Empties it, for a reset of the fleet. */
void cache_empty(struct belay_fleet *f);

#endif /* FLEET_CACHE_IMPL_H */
