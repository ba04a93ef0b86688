/* session_deeds.h - one call of the library each, noted before and after. */
#ifndef TESTS_CRASH_SESSION_DEEDS_H
#define TESTS_CRASH_SESSION_DEEDS_H

#include <belay/session.h>

#include "base/rng.h"
#include "session_ledger.h"

#define DEEDS_PINS 64
#define BODY_MAX 65536

/* A worker in one of its lives. */
struct hand {
    unsigned number, life;
    int fd;    /* its ledger */
    int64_t n; /* deeds begun, over all lives */
    struct rng rng;
    bool dawdles; /* every look at the clock may take a while */
    struct belay *b;
    struct belay_session *session[NOTE_SESSIONS];
    struct belay_arena *arena; /* reset before each deed */

    struct note claim; /* DONE of the last one; said BROKEN: there is none to use */
    struct note left;  /* one that was not used in its time, likewise */
    struct note turn;  /* the last commit that was answered for, likewise */
    struct maker pins[DEEDS_PINS];
    unsigned n_pins;
    uint8_t body[3][BODY_MAX];
};

/* Content that follows from who made it: parts of checkpoints and blobs.  What is
 * shared comes from a pool, so that blobs are garbage and named again all the time. */
#define BODY_POOL 24
enum body_part { BODY_TOOL, BODY_SHARED, BODY_EXECUTION, BODY_PUT };
size_t body_make(const struct maker *m, enum body_part part, uint8_t out[BODY_MAX]);

/* The number of a session as its id, and the name of a worker's life. */
void session_name(int session, char out[16]);

/* Each begins with the arena empty.  A retry passes the note that had no answer. */
void deed_enqueue(struct hand *h, const struct note *again);
void deed_claim(struct hand *h);
void deed_renew(struct hand *h, struct note *claim);
void deed_abandon(struct hand *h, struct note *claim);
void deed_cancel(struct hand *h);
void deed_put(struct hand *h, const struct note *again);
void deed_unpin(struct hand *h);
void deed_gc(struct hand *h);
void deed_read_pin(struct hand *h);

/* session_commits.c.  claim: what it completes, or NULL. */
void deed_commit(struct hand *h, int session, struct note *claim);
void deed_commit_again(struct hand *h, const struct note *again, uint32_t flags);
void deed_read_checkpoint(struct hand *h);

/* --- for the deeds themselves --- */

struct note deed_begin(struct hand *h, enum deed deed, int session);
void deed_note(struct hand *h, struct note *n); /* writes the BEGIN */
/* The answer; now and then the worker dies before it can tell. */
void deed_done(struct hand *h, struct note *n, belay_rc rc,
               const struct belay_error *err);
/* What must not be. */
void deed_broken(struct hand *h, const char *what, const struct belay_error *err);

/* Reads a blob and compares it; NULL: as it should be, else what is wrong. */
const char *deed_read_blob(struct hand *h, const char *ref, const uint8_t *want,
                           size_t len, struct belay_error *err);

#endif /* TESTS_CRASH_SESSION_DEEDS_H */
