/* layout.h - what a segment looks like.
 *
 *     header | token | epoch | words | members | buckets | entries | records | arena | log
 *
 * Every part begins at a multiple of 128 bytes; offsets follow from the geometry in the
 * header, which is read once, by pread, checked, and then used from private memory: what a
 * stranger writes there later moves nothing.  All words that change are 64-bit atomics (two
 * 32-bit ones are futexes).  Numbers are of the machine's order: a segment never leaves it.
 *
 * Words with fields, highest bits first:
 *
 *     M  member  incarnation:40 | state:8 | 0:16
 *     O  entry   gen:40 | node:10 | rec:10 | waiters:1 | state:3
 *     D  entry   gen:16 | deadline:48, 0 = REVOKED
 *     N  entry   tag:44 | next entry + 1:20
 *     H  bucket  ver:24 | victim + 1:20 | first + 1:20
 *
 * gen of O rises with each change of its state; a state is left only by CAS.  An entry is
 *     GONE      in no chain; its label means nothing
 *     FRESH     being made by `node`; perhaps linked already
 *     FREE      linked; may be claimed
 *     HELD      linked; record `rec` of `node` tells more.  D is the tenure's when its gen
 *               matches; until then the claim is under way
 *     RETIRING  linked or just unlinked; can no longer be claimed, will be GONE
 */
#ifndef FLEET_LAYOUT_H
#define FLEET_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef _Atomic uint64_t au64;
typedef _Atomic uint32_t au32;

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(au64) == 8,
              "words of shared memory");
static_assert(ATOMIC_INT_LOCK_FREE == 2 && sizeof(au32) == 4, "futexes");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the futex of O is its first half, and frames are copied as they lie"
#endif

/* The thread sanitizer knows no fences; every access beside them is atomic, so it has nothing
 * to find there, and the machines it runs on keep the order anyway. */
#if defined(__SANITIZE_THREAD__)
#define fence_release() atomic_signal_fence(memory_order_seq_cst)
#define fence_acquire() atomic_signal_fence(memory_order_seq_cst)
#define fence_full() atomic_signal_fence(memory_order_seq_cst)
#else
#define fence_release() atomic_thread_fence(memory_order_release)
#define fence_acquire() atomic_thread_fence(memory_order_acquire)
#define fence_full() atomic_thread_fence(memory_order_seq_cst)
#endif

#define SEGMENT_MAGIC UINT64_C(0x54454c4659414c42) /* "BLAYFLET" */
#define RING_MAGIC UINT64_C(0x474e495259414c42)    /* "BLAYRING" */
#define SEGMENT_ABI 1U

#define FLEET_SIZE_MAX 1024
#define HOLDS_MAX 1023
#define SUBJECTS_MAX (1 << 18)
#define WORDS_MAX 1024
#define LOG_CAPACITY_MAX (1 << 16)
#define ARENA_LEN_MAX (INT64_C(1) << 28)
#define TEXT_INLINE 192
#define BLOCK_LEN 1024

/* The header of a fleet's segment, written before the segment has a name. */
struct segment_header {
    uint64_t magic;
    uint32_t abi, header_len;
    uint64_t abi_hash;  /* of the sizes below */
    uint64_t total_len; /* of the file */
    uint64_t fleet_id;
    uint64_t boot;         /* hash of the boot id */
    uint64_t time_space;   /* inode of the time namespace */
    int64_t clock_base_us; /* where deadlines begin */
    uint64_t key[2];       /* of the hash of labels */
    uint32_t fleet_size, subjects, holds, words, log_capacity, is_virtual;
    uint64_t arena_len;
    char name[64];
    uint64_t sum; /* of this header */
    uint64_t reserved[5];
};
static_assert(sizeof(struct segment_header) == 224, "no padding");

struct member {
    au64 m;
    au64 pid, process_start, pid_space;
    au64 label[4];
    au32 life; /* the keeper's thread id; FUTEX_OWNER_DIED once it has ended */
    au32 pad0;
    au64 pad1[7];
    au64 beat_us; /* 0: never */
    au64 pad2[15];
};
static_assert(sizeof(struct member) == 256, "two pairs of lines");

/* A word of notify. */
struct notify_word {
    au64 name;  /* hash; 0: nobody's */
    au32 value; /* posts:31 | somebody sleeps:1 */
    au32 pad0;
    au64 pad1[6];
};
static_assert(sizeof(struct notify_word) == 64, "a line");

struct entry {
    au64 hash;
    au64 o, d, n;
    au64 lens;   /* kind:8 << 16 | label_len:16 */
    au64 birth;  /* gen of O when it became FRESH */
    au64 ref;    /* offset in the arena of a label over TEXT_INLINE */
    au64 digest; /* of the label, as frames carry it when it does not fit */
    au64 text[TEXT_INLINE / 8];
};
static_assert(sizeof(struct entry) == 256, "four lines");

/* What a member says about a tenure; written by that member alone. */
struct record {
    au64 token;   /* 0: not drawn yet */
    au64 claimed; /* in the units of D */
    au64 wall_ms;
    au64 owner_len;
    au64 ref;
    au64 pad[3];
    au64 text[TEXT_INLINE / 8];
};
static_assert(sizeof(struct record) == 256, "four lines");

/* --- rings --- */

struct ring_header {
    uint64_t magic;
    uint32_t abi, header_len;
    uint64_t abi_hash;
    uint64_t total_len;
    uint64_t fleet_id;
    uint64_t schema;
    uint32_t kind, topology, notify, capacity;
    uint32_t payload_max, lanes, order_capacity, stride;
    uint64_t large_len;
    char name[64];
    uint32_t reliable, pad;
    uint64_t reserved[3];
};
static_assert(sizeof(struct ring_header) == 184, "no padding");

/* Follows the header at RING_SHARED_AT. */
struct ring_shared {
    au64 order_head, order_floor;
    au64 latest; /* of a value (value.c) */
    au32
        followers; /* of the contest's log: a word of notify that is posted for sleepers
                       alone */
    au32 pad0;
    au64 pad1[12];
};
static_assert(sizeof(struct ring_shared) == 128, "a pair of lines");

struct lane {
    au64 head;  /* frames published */
    au64 floor; /* head at the last reset */
    au64 large; /* bytes of the large area taken so far */
    au64 batch; /* where the batch ends that is, or was, written */
    au64 pad[12];
};
static_assert(sizeof(struct lane) == 128, "a pair of lines");

/* Of a reliable ring, for each member: whether it consumes, and behind it, for each lane, the
 * first frame that it still wants.  Written by that member; others end it when it is dead. */
struct consumer {
    au64 owner; /* incarnation:63 | 1; 0: nobody */
    au64 pad[15];
    au64 wants[];
};

/* A slot is this and payload_max bytes, in 64s. */
struct slot {
    au64 seq; /* 2c + 1 while frame c is written, 2c + 2 when it is there */
    au64 id, ver, sig;
    au64 meta; /* len:32 | flags:8 | kind:8 | 0:16 */
    au64 data[];
};
static_assert(sizeof(struct slot) == 40, "header of a slot");

#define HEADER_ROOM 256

/* --- fields --- */

enum member_state {
    MEMBER_FREE = 0,
    MEMBER_JOINING,
    MEMBER_LIVE,
    MEMBER_LEAVING,
    MEMBER_DEAD,
    MEMBER_SWEEPING,
};

static inline uint64_t m_make(uint64_t incarnation, enum member_state state)
{
    return incarnation << 24 | (uint64_t)state << 16;
}
static inline uint64_t m_incarnation(uint64_t m)
{
    return m >> 24;
}
static inline unsigned m_state(uint64_t m)
{
    return (unsigned)(m >> 16 & 0xff);
}

enum o_state { O_GONE = 0, O_FRESH, O_FREE, O_HELD, O_RETIRING };

#define O_WAITERS UINT64_C(8)
#define GEN_MASK ((UINT64_C(1) << 40) - 1)

static inline uint64_t o_make(uint64_t gen, uint32_t node, uint32_t rec,
                              enum o_state state)
{
    return gen << 24 | (uint64_t)node << 14 | (uint64_t)rec << 4 | (uint64_t)state;
}
static inline uint64_t o_gen(uint64_t o)
{
    return o >> 24;
}
static inline uint32_t o_node(uint64_t o)
{
    return (uint32_t)(o >> 14 & 0x3ff);
}
static inline uint32_t o_rec(uint64_t o)
{
    return (uint32_t)(o >> 4 & 0x3ff);
}
static inline enum o_state o_state(uint64_t o)
{
    return (enum o_state)(o & 7);
}
/* The next generation; 2^40 of them are a day of nothing but claims of one subject. */
static inline uint64_t o_next(uint64_t o)
{
    return (o_gen(o) + 1) & GEN_MASK;
}

#define D_TIME_MASK ((UINT64_C(1) << 48) - 1)
#define D_NEVER D_TIME_MASK

static inline uint64_t d_make(uint64_t gen, uint64_t deadline)
{
    return gen << 48 | deadline;
}
static inline bool d_is_of(uint64_t d, uint64_t o)
{
    return d >> 48 == (o_gen(o) & 0xffff);
}
static inline uint64_t d_time(uint64_t d)
{
    return d & D_TIME_MASK;
}

#define INDEX_MASK UINT64_C(0xfffff)

static inline uint64_t n_make(uint64_t old, uint64_t next)
{
    return ((old >> 20) + 1) << 20 | next;
}

static inline uint64_t h_make(uint64_t old, uint64_t victim, uint64_t first)
{
    return ((old >> 40) + 1) << 40 | victim << 20 | first;
}
static inline uint64_t h_victim(uint64_t h)
{
    return h >> 20 & INDEX_MASK;
}
static inline uint64_t h_first(uint64_t h)
{
    return h & INDEX_MASK;
}

#endif /* FLEET_LAYOUT_H */
