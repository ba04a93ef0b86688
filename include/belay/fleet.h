/* fleet.h - processes of one host that know of each other through shared memory.
 *
 *     struct belay_fleet *f;
 *     struct belay_fleet_options options = { .size = sizeof(options) };
 *     if (belay_fleet_join("workers", &options, &f, &err) != BELAY_OK)
 *         die(err.message);
 *     ...
 *     belay_fleet_leave(f);
 *
 * A fleet is a file in /dev/shm, belay-<euid>-<name>, of mode 0600, that every member maps.
 * It appears complete or not at all and is never resized.  The same calls work on memory of
 * the process alone (BELAY_FLEET_PRIVATE).
 *
 * What holds
 *   F1  A member is one joined handle.  Its node (0 to size - 1) is given by the fleet, with
 *       an incarnation that never repeats for that node.
 *   F2  Who died is asked of the kernel, never guessed from time: a member that is stopped
 *       (SIGSTOP, debugger) is alive.
 *   F3  A member may be killed between any two instructions; whatever it leaves behind is
 *       finished or undone by others without waiting for time.
 *   F4  What is read from shared memory is bounded before it is used: a segment that is
 *       damaged, foreign, truncated or older is an error.  A segment that somebody of the
 *       same user truncates *while it is mapped* raises SIGBUS on access, as any mapped file
 *       does; with BELAY_FLEET_GUARD_SIGBUS zeros are found there instead, and
 *       belay_fleet_status says `corrupt`, reason "truncated".
 *   F5  After fork() the child's copy of a handle answers `misuse`, reason "forked"; the
 *       child joins for itself.
 *   F6  Shared memory is a hint: an irreversible step is confirmed with a token by whoever
 *       keeps the data (contest.h tells how).
 *
 * A handle may be used by many threads at once, unless it was joined with
 * BELAY_FLEET_ONE_THREAD.  Where a call fails its outputs are as they were before.
 * Durations are milliseconds; a timeout of BELAY_NONE waits for ever.
 *
 * Reasons of errors: `invalid` (name, fleet_size, empty_fleet, node_range, ttl, label,
 * too_large, contest_frame_too_large, schema, geometry, clock, time_namespace), `misuse`
 * (forked, observer, virtual_clock, size, thread), `unavailable` (fleet_full, io),
 * `no_memory` (shm_full, table_full, holds, arena), `unsupported_format` (magic, abi),
 * `corrupt` (geometry, owner, truncated), `denied` (owner, mode), `not_found`,
 * `lease_lost` (superseded, expired, revoked, released), `lease_held` (not_owner).
 */
#ifndef BELAY_FLEET_H
#define BELAY_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <belay/cancel.h>
#include <belay/contest.h>
#include <belay/error.h>
#include <belay/options.h>
#include <belay/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- joining --------------------------------------------------------------------- */

enum belay_fleet_flag {
    BELAY_FLEET_PRIVATE = 1,       /* memory of this process; others join beside it */
    BELAY_FLEET_VIRTUAL_CLOCK = 2, /* contests take `now` from the caller; for tests */
    BELAY_FLEET_ONE_THREAD = 4, /* the caller never uses the handle from two at once */
    BELAY_FLEET_MUST_EXIST = 8, /* not_found instead of creating */
    BELAY_FLEET_NODE = 16,      /* `node` is wanted, if it is free */
    BELAY_FLEET_GUARD_SIGBUS = 32,   /* see F4; installs a handler for SIGBUS once */
    BELAY_FLEET_ORDERED_EVENTS = 64, /* events in one order for all, see there */
};

/* Zero it, set size.  What is 0 has its default.  The geometry counts for whoever creates
 * the segment; others find it there. */
struct belay_fleet_options {
    uint32_t size;  /* sizeof(struct belay_fleet_options) */
    uint32_t flags; /* enum belay_fleet_flag */
    int32_t
        fleet_size;   /* members at once, 1 to 1024; default 64; BELAY_NONE: an error */
    int32_t subjects; /* of contests at once, power of two to 2^18; default 4096 */
    int32_t holds;    /* subjects held by a member at once, 1 to 1023; default 128 */
    int32_t log_capacity; /* frames of the contest log a member keeps; default 256 */
    int32_t words;        /* of notify, 1 to 1024; default 64 */
    int32_t node;         /* with BELAY_FLEET_NODE */
    int64_t arena_len;    /* bytes for labels too long for a frame; default 256 KiB */
    uint64_t token_floor; /* tokens of a new segment are above this, too */
    const char *dir;      /* NULL: /dev/shm */
    const char *label;    /* of this member, for observers; cut at 31 bytes */
    struct belay_clock clock; /* wall_ms for display; all NULL: the system's */
};

struct belay_fleet;

/* Joins the fleet, creating its segment when there is none.
 *
 *   invalid             name is not [a-z0-9][a-z0-9_-]{0,62}, or an option is out of range
 *   not_found           BELAY_FLEET_MUST_EXIST and there is none
 *   unavailable         every node is taken by a living member (fleet_full), or the system
 *                       refused (io)
 *   no_memory           no room in dir (shm_full)
 *   unsupported_format  the segment is no fleet (magic) or of another version (abi)
 *   corrupt             the segment breaks its own rules
 *   denied              it belongs to somebody else, or others may open it */
BELAY_API BELAY_MUST_USE belay_rc
belay_fleet_join(const char *name, const struct belay_fleet_options *options,
                 struct belay_fleet **out, struct belay_error *err);

/* Another member over the same segment, whatever `f` is: how threads become members of
 * their own, and the only way to a second member of a private fleet.  Of the options only
 * flags ONE_THREAD and NODE, node, label and clock count; NULL is none of them. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_join_beside(
    struct belay_fleet *f, const struct belay_fleet_options *options,
    struct belay_fleet **out, struct belay_error *err);

/* Maps an existing fleet read-only.  Calls that would write answer `misuse`, "observer". */
BELAY_API BELAY_MUST_USE belay_rc
belay_fleet_observe(const char *name, const struct belay_fleet_options *options,
                    struct belay_fleet **out, struct belay_error *err);

/* Gives up what the member still holds and frees the handle with its rings and cursors.
 * No call may be using it.  Takes NULL.  In a forked child it frees nothing. */
BELAY_API void belay_fleet_leave(struct belay_fleet *f);

/* Takes every contest from its holder, empties every ring and raises the fleet's epoch;
 * cursors are told.  Tokens and generations go on from where they were.  For
 * administrators. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_reset(struct belay_fleet *f,
                                                    struct belay_error *err);

/* Removes the segments of a fleet whose members are all gone; `lease_held` while one lives.
 * options: dir alone counts; may be NULL. */
BELAY_API BELAY_MUST_USE belay_rc
belay_fleet_remove(const char *name, const struct belay_fleet_options *options,
                   struct belay_error *err);

struct belay_fleet_status {
    uint32_t size;      /* set by the caller */
    uint32_t epoch;     /* raised by reset, from 1 */
    uint64_t fleet_id;  /* of this segment; another one has another */
    uint64_t token;     /* the last one given */
    int32_t fleet_size; /* nodes */
    int32_t members;    /* of them taken by living members */
    int32_t subjects, subjects_used;
    int32_t node; /* of this handle; -1 for an observer */
    bool is_shared, is_virtual_clock;
    uint64_t incarnation;
    uint64_t segment_len;
};
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_status(struct belay_fleet *f,
                                                     struct belay_fleet_status *out,
                                                     struct belay_error *err);

/* --- members --------------------------------------------------------------------- */

enum belay_life {
    BELAY_LIFE_UNKNOWN = 0, /* nothing on this host can tell */
    BELAY_LIFE_ALIVE,       /* running or stopped */
    BELAY_LIFE_DEAD,        /* the kernel says so; it will never run again */
};

/* Who a process is, so that others can ask whether it is still there; all of it is plain
 * text and numbers to be kept with a lease. */
struct belay_identity {
    uint32_t size;
    int32_t pid;
    int64_t process_start; /* clock ticks after boot, /proc/PID/stat field 22 */
    char host[40];         /* machine id; may be empty */
    char boot[40];         /* boot id */
    char member[72];       /* fleet id, node, incarnation, pid namespace: opaque */
};

/* Of this process as member of f; f may be NULL. */
BELAY_API BELAY_MUST_USE belay_rc belay_identity_get(struct belay_fleet *f,
                                                     struct belay_identity *out,
                                                     struct belay_error *err);

/* Alive or dead, as the kernel says at the time of the call.  `f` may be NULL or another
 * fleet; then only pid and process_start can tell, within one boot and pid namespace.
 * Another boot is `unknown`: machine ids are copied too often to prove anything. */
BELAY_API enum belay_life belay_fleet_member_is_dead(struct belay_fleet *f,
                                                     const struct belay_identity *who);

/* Waits until `who` is dead: BELAY_OK, or `timeout`, or `cancelled` (within 50 ms), or
 * `invalid` when nothing here can tell. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_wait_death(
    struct belay_fleet *f, const struct belay_identity *who, int64_t timeout_ms,
    struct belay_cancel *cancel, struct belay_error *err);

/* A descriptor of the caller's (close it) that becomes readable when the process ends, for
 * a poll or epoll of their own.  `not_found`: it has ended; `invalid`: of another boot or
 * pid namespace. */
BELAY_API BELAY_MUST_USE belay_rc belay_identity_pidfd(const struct belay_identity *who,
                                                       int *out_fd,
                                                       struct belay_error *err);

struct belay_fleet_member {
    int32_t node;
    int32_t life; /* enum belay_life, confirmed */
    uint64_t incarnation;
    int32_t pid;
    int64_t process_start;
    int64_t heartbeat_age_ms; /* -1: it never beat */
    uint64_t holds;           /* contests it holds now */
    char label[32];
};

/* Up to `max` members that joined and did not leave, dead ones included while nobody has
 * swept them; *out_n is how many. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_members(struct belay_fleet *f,
                                                      struct belay_fleet_member *out,
                                                      size_t max, size_t *out_n,
                                                      struct belay_error *err);

/* Frees what dead members left: contests they held, nodes.  Others do it too when they need
 * it; calling it is never wrong.  *out_swept (may be NULL): members freed. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_sweep(struct belay_fleet *f,
                                                    size_t *out_swept,
                                                    struct belay_error *err);

/* Who gave a sign of life within max_age_ms.  The four add up to the fleet's size. */
struct belay_fleet_beats {
    uint32_t size;   /* set by the caller */
    int32_t fresh;   /* alive, and beat within max_age_ms */
    int32_t stale;   /* alive, and did not, or never */
    int32_t dead;    /* as the kernel says, and not swept yet */
    int32_t missing; /* nodes that nobody has */
};
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_beats(struct belay_fleet *f,
                                                    int64_t max_age_ms,
                                                    struct belay_fleet_beats *out,
                                                    struct belay_error *err);

/* One node of them. */
enum belay_beat {
    BELAY_BEAT_MISSING = 0, /* nobody has it */
    BELAY_BEAT_FRESH,
    BELAY_BEAT_STALE,
    BELAY_BEAT_DEAD,
};
struct belay_fleet_node {
    int32_t node;
    int32_t beat;         /* enum belay_beat */
    int64_t age_ms;       /* of the last sign; -1: none */
    uint64_t incarnation; /* of who has it, or had it last; 0: nobody ever */
};
/* The first `max` nodes, in order; *out_n is how many. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_nodes(struct belay_fleet *f,
                                                    int64_t max_age_ms,
                                                    struct belay_fleet_node *out,
                                                    size_t max, size_t *out_n,
                                                    struct belay_error *err);

/* Marks this member as of now; and, once a second at most, for those who read rings alone, publishes an empty frame of kind 1 with
 * ver the wall clock in ms in the ring of kind 221, where each member has a lane of its own. */
#define BELAY_FLEET_BEAT_KIND 221
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_beat(struct belay_fleet *f,
                                                   struct belay_error *err);

/* --- wake-ups -------------------------------------------------------------------- */

/* A named word of the fleet: whoever waits on it is woken when somebody notifies.  Names are
 * 1 to 255 bytes; words are never given back. */
struct belay_notify {
    uint32_t slot; /* read-only */
};
BELAY_API BELAY_MUST_USE belay_rc belay_notify_open(struct belay_fleet *f,
                                                    const char *name,
                                                    struct belay_notify *out,
                                                    struct belay_error *err);

/* Raises the word; a system call only when somebody waits. */
BELAY_API BELAY_MUST_USE belay_rc belay_notify_post(struct belay_fleet *f,
                                                    struct belay_notify word,
                                                    struct belay_error *err);

/* The word's value now: read it, look at what is being waited for, then wait with it. */
BELAY_API uint32_t belay_notify_value(struct belay_fleet *f, struct belay_notify word);

/* Waits until the word differs from `seen`; *out is its value then.  A post between the
 * reading of `seen` and the wait is not lost.  `timeout`, `cancelled` (within 50 ms). */
BELAY_API BELAY_MUST_USE belay_rc belay_notify_wait(
    struct belay_fleet *f, struct belay_notify word, uint32_t seen, int64_t timeout_ms,
    struct belay_cancel *cancel, uint32_t *out, struct belay_error *err);

/* Sleeps until a member other than this one dies, or one of n (1 to 4) words differs from
 * what was seen of it: BELAY_OK; or `timeout`, of 0 to a day.  Nothing runs meanwhile (before
 * Linux 5.16 it looks every 20 ms).  A member that is dead and was not swept yet ends it at
 * once.  Wake-ups may be spurious: compare belay_fleet_members with those of before, since
 * whoever takes over from the dead sweeps them.  A member that joins meanwhile is not watched:
 * let it post one of the words. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_wait_deaths(
    struct belay_fleet *f, const struct belay_notify *words, const uint32_t *seen,
    size_t n, int64_t timeout_ms, struct belay_error *err);

/* A descriptor for a poll or epoll of the caller's that becomes readable when the word is posted.  Posts
 * since the last drain are one.  Costs a thread of this process, which sleeps; nobody else pays for it. */
struct belay_notify_bridge;
BELAY_API BELAY_MUST_USE belay_rc
belay_notify_bridge_open(struct belay_fleet *f, struct belay_notify word,
                         struct belay_notify_bridge **out, struct belay_error *err);
BELAY_API int belay_notify_bridge_fd(const struct belay_notify_bridge *b);
/* Takes what was posted; whether there was anything.  Look at what is waited for after it. */
BELAY_API bool belay_notify_bridge_drain(struct belay_notify_bridge *b);
/* Before the handle leaves; takes NULL. */
BELAY_API void belay_notify_bridge_close(struct belay_notify_bridge *b);

/* --- events ---------------------------------------------------------------------- */

/* Small messages with a topic, for whoever listens: the ring of kind 220, whose frames (kind 1)
 * are topic_len u16 | data_len u16 | wall clock in ms u64 | topic | data, little-endian.
 *
 * Those of one member are in its order; those of different members are seen by each in an order
 * of its own.  Where the first handle that uses the fleet's events was joined with
 * BELAY_FLEET_ORDERED_EVENTS they are in one order for all; others find it so. */
#define BELAY_FLEET_EVENT_KIND 220
#define BELAY_FLEET_EVENT_MAX 244 /* bytes of topic and data together */

struct belay_fleet_event {
    uint64_t id; /* NetId64 */
    int64_t timestamp_ms;
    int32_t node; /* who published it */
    uint32_t len; /* of data */
    char topic[BELAY_FLEET_EVENT_MAX + 1];
    uint8_t data[BELAY_FLEET_EVENT_MAX];
};

/* *out_id may be NULL.  `invalid`, too_large: over BELAY_FLEET_EVENT_MAX. */
BELAY_API BELAY_MUST_USE belay_rc
belay_fleet_event_publish(struct belay_fleet *f, const char *topic, const void *data,
                          size_t len, uint64_t *out_id, struct belay_error *err);

/* A cursor for belay_fleet_event_poll and belay_ring_wait. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_event_open(struct belay_fleet *f,
                                                         enum belay_ring_from from,
                                                         struct belay_ring_cursor **out,
                                                         struct belay_error *err);

/* Up to `max` events from the cursor on, those of one topic when it is not NULL; the cursor
 * passes over the others.  In *out, n_frames counts events, and lost what was lost of all
 * topics. */
BELAY_API BELAY_MUST_USE belay_rc belay_fleet_event_poll(
    struct belay_ring_cursor *c, const char *topic, struct belay_fleet_event *events,
    size_t max, struct belay_ring_poll *out, struct belay_error *err);

/* --- ids ------------------------------------------------------------------------- */

/* A NetId64: kind 8 bits, node 16 bits, counter 40 bits, from the top; ordered as a number. */
#define BELAY_NETID_COUNTER_MAX ((UINT64_C(1) << 40) - 1)

/* The counter is cut to 40 bits. */
BELAY_API uint64_t belay_netid_make(uint8_t kind, uint16_t node, uint64_t counter);
BELAY_API uint8_t belay_netid_kind(uint64_t id);
BELAY_API uint16_t belay_netid_node(uint64_t id);
BELAY_API uint64_t belay_netid_counter(uint64_t id);

/* "kind:node:counter" in decimal, and the same with " 0x" and 16 upper-case hex digits. */
#define BELAY_NETID_TEXT_MAX 24
#define BELAY_NETID_DEBUG_MAX 44
BELAY_API void belay_netid_print(uint64_t id, char out[BELAY_NETID_TEXT_MAX]);
BELAY_API void belay_netid_debug(uint64_t id, char out[BELAY_NETID_DEBUG_MAX]);

/* "0x" and hex digits, or three decimals with colons, the counter cut to 40 bits;
 * anything else is false and leaves *out alone. */
BELAY_API bool belay_netid_parse(const char *text, uint64_t *out);

/* Big-endian, as ids travel outside of contest frames. */
BELAY_API void belay_netid_bytes(uint64_t id, uint8_t out[8]);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_FLEET_H */
