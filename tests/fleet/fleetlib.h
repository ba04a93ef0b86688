/* fleetlib.h - what the tests of the fleet share: a directory for segments, short ways to
 * join and to claim, and the contest's log replayed beside its table. */
#ifndef TESTS_FLEET_FLEETLIB_H
#define TESTS_FLEET_FLEETLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <belay/fleet.h>

#define HOUR_MS INT64_C(3600000)

/* A directory of its own, removed with what is in it. */
struct room {
    char dir[64];
};
bool room_init(struct room *r);
void room_release(struct room *r);

/* Options of a small fleet in the room. */
struct belay_fleet_options room_options(const struct room *r, uint32_t flags);
/* NULL, and why on standard output, when it cannot be. */
struct belay_fleet *room_join(const struct room *r, const char *name, uint32_t flags);
struct belay_fleet *join_with(const char *name, const struct belay_fleet_options *o);

struct belay_contest_subject subject_of(uint8_t kind, const char *label);
struct belay_contest_terms terms_of(const char *owner, int64_t ttl_ms);

/* Kind 1, one try; true when it is ours.  False with *out poisoned: the call failed, and
 * said why on standard output. */
bool try_claim(struct belay_fleet *f, const char *label, const char *owner,
               int64_t ttl_ms, struct belay_contest_claim *out);
bool try_claim_at(struct belay_fleet *f, const char *label, const char *owner,
                  int64_t ttl_ms, int64_t now_ms, struct belay_contest_claim *out);
bool release(struct belay_contest_guard *guard);

/* The log, replayed as its readers are told to: an end stays an end. */
#define REPLAY_MAX 65536
struct replayed {
    uint64_t claim_id;
    bool is_open, is_ended;
    char label[64]; /* cut */
};
struct replay {
    struct belay_ring_cursor *cursor;
    struct replayed *claims;
    size_t n;
    uint64_t lost;
    unsigned broken; /* frames that are none */
};
bool replay_open(struct replay *r, struct belay_fleet *f);
void replay_close(struct replay *r);
/* Everything that was published since. */
bool replay_read(struct replay *r);
/* Who holds the label by the log; 0: nobody; UINT64_MAX: more than one. */
uint64_t replay_holder(const struct replay *r, const char *label);
/* Whether log and table name the same holders, one by one; says where they do not. */
bool replay_equals_table(struct replay *r, struct belay_fleet *f);

/* Ends the child by that signal and waits; or waits alone with signal 0.  The status. */
int reap(pid_t child, int signal);

/* Milliseconds of the monotonic clock. */
double now_ms(void);

#endif /* TESTS_FLEET_FLEETLIB_H */
