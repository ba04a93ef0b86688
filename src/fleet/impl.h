/* impl.h - handles, and what the files of this folder share.
 *
 * A space is a mapped segment; handles that joined beside each other share one.  A handle is
 * one member (or an observer) and lies in memory that fork() wipes, so that a child sees no
 * handle but zeros (F5).
 */
#ifndef FLEET_IMPL_H
#define FLEET_IMPL_H

#include <pthread.h>
#include <string.h>

#include <belay/fleet.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "fleet/layout.h"
#include "fleet/step.h"
#include "fleet/words.h"

struct ring_geometry {
    uint32_t kind, topology, notify, reliable, capacity, payload_max, lanes,
        order_capacity, stride;
    uint64_t large_len;
    uint64_t consumer_len; /* of a row of consumers; 0 where there are none */
    /* From the beginning of the ring. */
    uint64_t lanes_at, order_at, consumers_at, slots_at, large_at, total_len;
};

struct geometry {
    uint32_t fleet_size, subjects, holds, words, log_capacity;
    bool is_virtual;
    uint64_t arena_len; /* multiple of BLOCK_LEN */
    uint64_t token_at, epoch_at, words_at, members_at, buckets_at, entries_at,
        records_at, blocks_at, arena_at, log_at, total_len;
    struct ring_geometry log;
};

/* A ring's memory, in a file of its own or at the end of the fleet's. */
struct ring_map {
    struct ring_geometry geo;
    uint64_t schema;
    char name[64];
    uint8_t *base;
    bool is_mapped; /* by itself */
};

struct space {
    _Atomic uint32_t refs;
    bool is_shared, is_read_only;
    int fd; /* of private memory, to be opened again; else -1 */
    uint8_t *base;
    struct geometry geo;
    struct segment_header header; /* as it was when it was checked */
    char name[64];
    char dir[192];
    pthread_mutex_t mutex; /* of maps */
    struct ring_map *maps[256];
    struct cache_map *cache;
};

/* A handle's view of a ring. */
struct belay_ring {
    struct belay_fleet *f;
    struct ring_map *map;
    struct lane *lanes;
    au64 *order;
    struct ring_shared *shared;
    uint8_t *slots;
    uint8_t *large;
    uint64_t capacity_mask, order_mask;
    uint64_t order_shift; /* log2 of order_capacity */
    uint64_t large_mask;
    uint64_t lane_len; /* bytes of a lane's slots */
    uint32_t stride, payload_max;
    uint32_t lane;    /* of this member */
    uint64_t id_base; /* of ids of this lane */
    uint64_t next;    /* frames of this lane so far */
    uint64_t large_next;
    struct belay_notify word; /* of rings with notify */
    uint8_t *consumers;       /* of reliable rings; else NULL */
    uint64_t gate;            /* no consumer wants a frame of ours below this */
    struct belay_notify room; /* posted by consumers */
    bool is_consumed;         /* by this member */
};

struct keeper;

/* A claim under way that a handle has seen: hole (a) of the design wants 10 ms of it. */
struct seen {
    uint64_t o;
    uint32_t entry;
    int64_t since_us;
};
#define SEEN_COUNT 8
#define STALLED_US 10000

#define FLEET_MAGIC UINT64_C(0x6265656c6179f1ee)

struct belay_fleet {
    uint64_t magic; /* zero after fork() */
    bool is_one_thread, is_observer;
    bool orders_events; /* if nobody has used them yet */
    fleet_step_fn step;
    void *step_arg;

    /* The segment. */
    struct space *space;
    au64 *token, *epoch;
    struct notify_word *words;
    struct member *members;
    au64 *buckets;
    struct entry *entries;
    struct record *records;
    au64 *blocks;
    uint8_t *arena;
    uint32_t fleet_size, subjects, holds, n_words;
    uint64_t key[2];
    int64_t clock_base_us;
    bool is_virtual;

    /* The lock of everything that changes (lock.c), away from what others only look at. */
    _Atomic uint32_t lock;
    _Atomic uint32_t lock_waiters;
    _Atomic uintptr_t leans_to; /* a thread; 0: none yet; LEANS_TO_NOBODY: no more */
    _Atomic uint32_t is_inside; /* that thread, without having taken the word */
    bool is_leaning;            /* how who is inside came there */

    /* The member. */
    uint32_t node;
    uint64_t incarnation;
    struct member *me;
    int fd; /* has the node's byte locked */
    struct keeper *keeper;
    char label[32];
    struct belay_ring log;
    struct belay_ring *rings[256];
    struct belay_cache *caches;

    /* Records: which are free, and whose the others are. */
    uint16_t *free_recs;
    uint32_t n_free_recs;
    uint64_t *rec_words; /* O of the tenure */
    uint32_t *rec_entries;

    struct seen seen[SEEN_COUNT];
    uint32_t hand;               /* where to look for an entry to retire */
    _Atomic uint32_t last_yield; /* entry of the last yield; any other is as good */

    struct belay_clock clock;
    int64_t wall_offset_ms;  /* wall clock - monotonic, as of ... */
    int64_t wall_checked_us; /* ... this */
    int64_t virtual_now_ms;  /* the latest that was said */
    int64_t beat_framed_us;  /* the last beat that was a frame, too */
};

/* What a failed try runs through begins on a line of its own: it is so short that where the
 * linker happens to put it would make a twentieth of it. */
#define ON_A_LINE __attribute__((aligned(64)))

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline void fleet_step(const struct belay_fleet *f, enum fleet_step step)
{
    if (UNLIKELY(f->step != NULL))
        f->step(f->step_arg, step);
}

/* --- handle.c --- */

/* `misuse` unless f is a live handle (and, for the last, a member); why it is none. */
void fleet_refuse(const struct belay_fleet *f, struct belay_error *err);

static inline MUST_USE belay_rc fleet_check(const struct belay_fleet *f,
                                            struct belay_error *err)
{
    if (UNLIKELY(!f || f->magic != FLEET_MAGIC)) {
        fleet_refuse(f, err);
        return BELAY_MISUSE;
    }
    return BELAY_OK;
}
void fleet_refuse_observer(struct belay_error *err);

static inline MUST_USE belay_rc fleet_check_member(const struct belay_fleet *f,
                                                   struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK && UNLIKELY(f->is_observer)) {
        fleet_refuse_observer(err);
        rc = BELAY_MISUSE;
    }
    return rc;
}

/* --- lock.c --- */

#define LEANS_TO_NOBODY ((uintptr_t)1)

/* Whether a lock may lean to a thread: the kernel must be able to make all threads of this
 * process pass a barrier. */
bool lock_can_lean(void);
void fleet_lock_slow(struct belay_fleet *f);
void fleet_unlock_slow(struct belay_fleet *f);

/* The thread that the lock leans to pays for no exchange: it says that it is inside and looks
 * whether the lock still leans to it.  Who else wants it takes that away first, once and for
 * good, and pays for the barrier of both. */
static inline void fleet_lock(struct belay_fleet *f)
{
    if (f->is_one_thread)
        return;
    uintptr_t self = (uintptr_t)pthread_self();
    if (atomic_load_explicit(&f->leans_to, memory_order_relaxed) == self) {
        /* Acquires what a thread left that had this address before us. */
        (void)atomic_load_explicit(&f->is_inside, memory_order_acquire);
        atomic_store_explicit(&f->is_inside, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        if (__builtin_expect(
                atomic_load_explicit(&f->leans_to, memory_order_relaxed) == self, 1)) {
            f->is_leaning = true;
            return;
        }
        atomic_store_explicit(&f->is_inside, 0, memory_order_release);
    }
    uint32_t free = 0;
    if (UNLIKELY(atomic_load_explicit(&f->leans_to, memory_order_relaxed) !=
                 LEANS_TO_NOBODY) ||
        !atomic_compare_exchange_strong_explicit(
            &f->lock, &free, 1, memory_order_acquire, memory_order_relaxed))
        fleet_lock_slow(f);
}

static inline void fleet_unlock(struct belay_fleet *f)
{
    if (f->is_one_thread)
        return;
    if (f->is_leaning) {
        f->is_leaning = false;
        atomic_store_explicit(&f->is_inside, 0, memory_order_release);
        return;
    }
    atomic_store_explicit(&f->lock, 0, memory_order_release);
    if (UNLIKELY(atomic_load_explicit(&f->lock_waiters, memory_order_relaxed) != 0))
        fleet_unlock_slow(f);
}

/* Memory that fork() wipes, and what the handle needs for a space of that geometry. */
MUST_USE belay_rc handle_new(struct space *space, struct belay_fleet **out,
                             struct belay_error *err);
void handle_free(struct belay_fleet *f);

/* Raises a word to `to`, never back. */
static inline void word_raise(au64 *word, uint64_t to)
{
    uint64_t is = atomic_load_explicit(word, memory_order_relaxed);

    while (is < to && !atomic_compare_exchange_weak_explicit(
                          word, &is, to, memory_order_acq_rel, memory_order_relaxed))
        continue;
}

/* --- geometry.c --- */

/* Everything that follows from the first members; false: out of bounds. */
MUST_USE bool geometry_fill(struct geometry *g);
MUST_USE bool ring_geometry_fill(struct ring_geometry *g);
uint64_t abi_hash(void);

/* --- segment.c --- */

bool fleet_name_is_valid(const char *name);

/* Opens, or creates, and maps.  *out_fd is an open file description of its own. */
MUST_USE belay_rc segment_open(const char *name,
                               const struct belay_fleet_options *options,
                               bool is_read_only, struct belay_fleet *stepper,
                               struct space **out, int *out_fd,
                               struct belay_error *err);
/* Another description of the file behind a space. */
MUST_USE belay_rc segment_reopen(const struct space *space, int *out_fd,
                                 struct belay_error *err);
void space_release(struct space *space);
/* Takes a segment of an earlier boot away, whose members cannot live; *token_floor is raised to
 * the last token it gave.  True: look again; false: it is none that may go. */
MUST_USE bool segment_discard_old(const char *dir, const char *name,
                                  uint64_t *token_floor);
/* Removes the files of rings and cache. */
void segment_unlink_kinds(const char *dir, const char *name, uint64_t fleet_id);
uint64_t segment_boot(void);
bool segment_header_is_whole(const struct segment_header *h, struct geometry *out);
/* Whether the file is still there under its name, at its size. */
MUST_USE belay_rc segment_check_size(int fd, uint64_t len, struct belay_error *err);

/* file.c: files of a whole. */
MUST_USE belay_rc file_make(const char *dir, uint64_t len, bool is_private, int *out_fd,
                            uint8_t **out_base, struct belay_error *err);
/* BELAY_OK, or `registration_conflict` when the name is taken. */
MUST_USE belay_rc file_link(int fd, const char *path, struct belay_error *err);
MUST_USE belay_rc file_open(const char *path, bool is_read_only, int *out_fd,
                            uint64_t *out_len, struct belay_error *err);
MUST_USE belay_rc file_map(int fd, uint64_t len, bool is_read_only, uint8_t **out,
                           struct belay_error *err);
void file_close(int *fd);
belay_rc io_error(struct belay_error *err, const char *what);

/* --- hash.c --- */

uint64_t fleet_hash(const uint64_t key[2], uint8_t kind, const void *data, size_t len);

/* --- member.c --- */

MUST_USE belay_rc member_join(struct belay_fleet *f, int32_t wanted,
                              struct belay_error *err);
void member_leave(struct belay_fleet *f);

/* keeper.c: a thread that dies when the process does, and not before. */
MUST_USE belay_rc keeper_start(au32 *life, struct keeper **out,
                               struct belay_error *err);
/* is_dead: leaves the word as a killed process would. */
void keeper_stop(struct keeper *k, bool is_dead);

/* life.c */
#define LIFE_DIED 0x40000000U /* FUTEX_OWNER_DIED */
#define LIFE_WAITERS 0x80000000U
#define GATE_BYTE (INT64_C(1) << 30)

/* Byte lock of a node: 1 taken, 0 another has it, -1 failed. */
int node_lock(int fd, int64_t byte, bool is_shared);
void node_unlock(int fd, int64_t byte);

/* Whether the member whose M is `m` is dead: hint, then kernel (F2).  `m` of a node that is
 * FREE is not asked about. */
bool member_is_dead(const struct belay_fleet *f, uint32_t node, uint64_t m);

/* The same without the hint: the kernel cannot leave it where a process has made its mapping
 * read-only before it died.  Then lock and process must both be gone. */
bool member_is_gone(const struct belay_fleet *f, uint32_t node, uint64_t m);

/* The hint alone, without a system call: false is surely alive. */
static inline bool member_may_be_dead(const struct belay_fleet *f, uint32_t node)
{
    const struct member *m = &f->members[node];

    return (atomic_load_explicit(&m->life, memory_order_relaxed) & LIFE_DIED) != 0 ||
           m_state(atomic_load_explicit(&m->m, memory_order_relaxed)) != MEMBER_LIVE;
}

/* 1 gone, 0 there, -1 cannot tell. */
int process_is_gone(int64_t pid, int64_t start, uint64_t pid_space);
int64_t process_start_of(int64_t pid); /* -1: no such process */
uint64_t namespace_of_self(const char *which);
bool boot_id_read(char out[40]);

/* --- sweep.c --- */

/* Frees whatever names the node, as long as its M is `m`. */
void fleet_sweep_entries(struct belay_fleet *f, uint32_t node, uint64_t m);

/* Makes the node FREE if its member is dead; true when it is FREE then by our doing. */
bool fleet_sweep_node(struct belay_fleet *f, uint32_t node);
size_t fleet_sweep_all(struct belay_fleet *f);

/* --- table.c --- */

/* A subject with what its lookup needs. */
struct key {
    const char *label;
    size_t len;
    uint8_t kind;
    uint64_t hash;
};

/* The subject's entry and its O, loaded before the label was compared: whoever then changes
 * O by CAS from *out_o changes this subject.  `not_found` without message. */
MUST_USE belay_rc table_find(struct belay_fleet *f, const struct key *key,
                             uint32_t *out_entry, uint64_t *out_o,
                             struct belay_error *err);
/* The same, made when there is none. */
MUST_USE belay_rc table_intern(struct belay_fleet *f, const struct key *key,
                               uint32_t *out_entry, uint64_t *out_o,
                               struct belay_error *err);
bool entry_has_key(const struct belay_fleet *f, const struct entry *e,
                   const struct key *key);
/* Up to max bytes of the label; false: its place is out of bounds. */
bool entry_label(const struct belay_fleet *f, const struct entry *e, char *out,
                 size_t max, size_t *out_len);
/* chain.c: in and out of the buckets' chains. */
bool chain_has(struct belay_fleet *f, uint64_t bucket, uint32_t entry,
               bool *out_linked);
bool chain_unlink(struct belay_fleet *f, uint64_t bucket, uint32_t entry);
bool chain_help(struct belay_fleet *f, uint64_t bucket, uint64_t h);
/* FRESH or RETIRING entries of the dead: finished or undone. */
void chain_settle(struct belay_fleet *f, uint32_t entry, uint64_t o);
/* Makes the entry under the hand GONE, to be used for something else; false: there is none,
 * because all are held or because others were faster. */
bool chain_retire_one(struct belay_fleet *f, bool *out_all_held);

/* --- arena.c: labels over TEXT_INLINE --- */

uint64_t block_of_entry(uint32_t entry, uint64_t birth);
uint64_t block_of_record(const struct belay_fleet *f, uint32_t rec);
MUST_USE bool arena_put(struct belay_fleet *f, uint64_t owner, const void *data,
                        size_t len, uint64_t *out_ref);
void arena_free(struct belay_fleet *f, uint64_t ref, size_t len);
/* Where it is, or NULL. */
const au64 *arena_at(const struct belay_fleet *f, uint64_t ref, size_t len);

/* --- ring.c, lane.c --- */

void ring_bind(struct belay_ring *r, struct belay_fleet *f, struct ring_map *map);
/* The lane is this member's from now on: what its last one left half done is settled. */
void ring_adopt(struct belay_ring *r);

/* What is published; id 0: made of lane and counter. */
struct frame_in {
    uint64_t id, ver, sig;
    uint8_t kind, flags;
    const void *data;
    size_t len;
};
/* The lane's counter of the frame.  len is at most payload_max, or large_len. */
uint64_t lane_publish(struct belay_ring *r, const struct frame_in *in);
/* As many frames, all of them visible at once; the counter of the first. */
uint64_t lane_publish_batch(struct belay_ring *r, const struct frame_in *in, size_t n);
/* What the node's last member left of a batch is nobody's frames. */
void lane_forget_batch(struct belay_ring *r);

/* consumer.c: whether n frames more push nothing out that a living consumer wants; *out_node is
 * who is behind otherwise.  Under the handle's lock. */
bool ring_has_room(struct belay_ring *r, uint64_t n, uint32_t *out_node,
                   uint64_t *out_lag);
void consumer_begin(struct belay_ring *r);
void consumer_end(struct belay_ring *r);
void consumer_want(struct belay_ring *r, uint32_t lane, uint64_t seq);

/* Frames published: the lane's head, or one more that its writer has yet to count. */
uint64_t lane_head(const struct belay_ring *r, uint32_t lane);

/* belay_ring_poll that passes over frames of another sig without a look at the rest of them
 * (cursor.c); NULL: none. */
MUST_USE belay_rc ring_poll_sig(struct belay_ring_cursor *c, const uint64_t *sig,
                                struct belay_ring_frame *frames, size_t max, void *buf,
                                size_t buf_len, struct belay_ring_poll *out,
                                struct belay_error *err);
const struct belay_fleet *cursor_fleet(const struct belay_ring_cursor *c);

enum read_result { READ_OK, READ_LOST, READ_NOT_YET, READ_TOO_SMALL };
enum read_result lane_read(const struct belay_ring *r, uint32_t lane, uint64_t seq,
                           void *buf, size_t buf_len, struct belay_ring_frame *out);

/* --- contest --- */

/* log.c: frames of the contest.  `who` is whose tenure it was. */
struct tenure {
    uint64_t token;
    uint32_t node, entry;
    uint32_t owner_len;
};
static inline uint64_t claim_id_of(uint32_t node, uint64_t token)
{
    return (uint64_t)BELAY_CONTEST_RING_KIND << 56 | (uint64_t)node << 40 |
           (token & BELAY_NETID_COUNTER_MAX);
}
uint64_t log_claim(struct belay_fleet *f, const struct key *key,
                   const struct belay_contest_terms *terms, const struct tenure *who,
                   uint64_t now_ms, uint64_t expires_ms);
uint64_t log_release(struct belay_fleet *f, const struct tenure *who, uint64_t now_ms);
/* Wakes who follows the log, if somebody does. */
void log_tell(struct belay_fleet *f);
void log_revoked(struct belay_fleet *f, const struct tenure *who, uint64_t now_ms,
                 enum belay_contest_reason reason);

/* Now in the units of D: microseconds since the segment was made, or the caller's
 * milliseconds; and as it is written into frames. */
static inline uint64_t fleet_now(const struct belay_fleet *f)
{
    int64_t now =
        f->is_virtual ? f->virtual_now_ms : clock_coarse_us() - f->clock_base_us;

    return now > 0 ? (uint64_t)now : 0;
}
uint64_t fleet_log_ms(struct belay_fleet *f, uint64_t now);

/* tenure.c */
/* The tenure that o says is held; false: o is no longer current. */
bool tenure_read(struct belay_fleet *f, uint32_t entry, uint64_t o, struct tenure *out);
bool holder_read(struct belay_fleet *f, uint32_t entry, uint64_t o,
                 struct belay_contest_holder *out);
/* FREE from exactly o (the waiters' bit apart), and wakes; false: it is no longer o. */
bool tenure_end(struct belay_fleet *f, uint32_t entry, uint64_t o);
/* Gives a record back if it is still this tenure's. */
void record_put(struct belay_fleet *f, uint32_t entry, uint64_t o);
bool record_take(struct belay_fleet *f, uint32_t *out);
static inline bool o_same(uint64_t a, uint64_t b)
{
    return ((a ^ b) & ~O_WAITERS) == 0;
}

/* examine.c: what stands in the way of a claim. */
enum verdict { VERDICT_TAKE, VERDICT_YIELD, VERDICT_AGAIN };
struct finding {
    enum verdict verdict;
    int reason; /* enum belay_contest_reason when a tenure was revoked, else 0 */
    uint64_t d; /* D as it was left */
};
struct finding examine(struct belay_fleet *f, uint32_t entry, uint64_t o, uint64_t now,
                       bool is_dry);

/* claim.c */
uint64_t contest_deadline(const struct belay_fleet *f, uint64_t now, int64_t ttl_ms);
MUST_USE belay_rc contest_check_ttl(int64_t ttl_ms, struct belay_error *err);
belay_rc contest_refuse_clock(struct belay_error *err);
/* The time as the caller says it, within bounds; the handle remembers it. */
uint64_t contest_tell_time(struct belay_fleet *f, int64_t now_ms);

/* --- notify.c --- */

/* A word: whether anybody may sleep on it, and above that how often it was posted. */
#define WORD_SLEEPERS 1U
#define WORD_POST 2U

/* Says that somebody is about to sleep on the word; what is to be slept on. */
static inline uint32_t word_mark(au32 *word)
{
    return atomic_fetch_or_explicit(word, WORD_SLEEPERS, memory_order_seq_cst) |
           WORD_SLEEPERS;
}

/* The name of the word that a ring of notify posts. */
#define RING_WORD_MAX 32
void ring_word_name(uint32_t kind, char out[RING_WORD_MAX]);

/* Counts a post and wakes who sleeps. */
void word_post(au32 *word);

/* --- futex.c --- */

/* How many were woken. */
long futex_wake(au32 *word, int n);
/* Waits at most timeout_us; may return early. */
void futex_wait(au32 *word, uint32_t value, int64_t timeout_us);
/* The same for two words. */
void futex_wait_two(au32 *a, uint32_t a_value, au32 *b, uint32_t b_value,
                    int64_t timeout_us);
#define WAIT_SLICE_US 50000

/* A wait that is cut into slices. */
struct patience {
    int64_t until_us; /* of the precise clock; INT64_MAX: for ever */
    struct belay_cancel *cancel;
};
MUST_USE belay_rc patience_init(struct patience *p, int64_t timeout_ms,
                                struct belay_cancel *cancel, struct belay_error *err);
/* BELAY_OK and how long to sleep now, or why not. */
MUST_USE belay_rc patience_slice(const struct patience *p, int64_t *out_us,
                                 struct belay_error *err);

#endif /* FLEET_IMPL_H */
