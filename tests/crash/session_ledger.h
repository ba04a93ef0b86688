/* session_ledger.h - what a worker says before and after each call.
 *
 * A worker appends one note before it calls the library and one when the call has
 * returned, to a file of its own that its next lives go on with.  Notes are whole or
 * not there at all: they never cross a page, and a SIGKILL does not take back what was
 * written.  A begun deed without an answer may have happened or not.
 */
#ifndef TESTS_CRASH_SESSION_LEDGER_H
#define TESTS_CRASH_SESSION_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTE_BATCHES 8
#define NOTE_SESSIONS 6
#define NOTE_WORKERS 8

enum deed {
    DEED_ENQUEUE,
    DEED_CLAIM,
    DEED_RENEW,
    DEED_ABANDON,
    DEED_CANCEL,
    DEED_COMMIT,
    DEED_HEAD, /* reads the head's revision */
    DEED_PUT,  /* a blob, with a pin */
    DEED_UNPIN,
    DEED_GC,
    DEED_READ,   /* the checkpoint of a head, or a pinned blob */
    DEED_MORTAL, /* something with a session that is deleted soon (session_mortals.h) */
    DEEDS
};

/* BROKEN: the worker itself saw what must not be; `text` says what. */
enum said { SAID_BEGIN, SAID_DONE, SAID_BROKEN };

/* Something that one worker made: the payload of a batch, a turn, a pin. */
struct maker {
    uint32_t worker;
    int32_t life; /* unused where only the number counts */
    int64_t n;
};

struct note_batch {
    int64_t seq, fence;
    uint64_t id; /* batch_number */
    struct maker item;
};

enum note_flags {
    NOTE_KEYED = 1 << 0,      /* enqueue: with a source key */
    NOTE_LATER = 1 << 1,      /* ... available only after a while */
    NOTE_REPLAYED = 1 << 2,   /* enqueue, commit: it had been done before */
    NOTE_CHECKPOINT = 1 << 3, /* commit */
    NOTE_KEEPS_REF = 1 << 4,  /* commit: a part by reference */
    NOTE_PARENT = 1 << 5,     /* commit: the node has a parent */
    NOTE_OTHER = 1 << 6,      /* commit: again, with other content */
    NOTE_RETRY = 1 << 7,      /* the outcome of the first try is not known */
    NOTE_FOUND = 1 << 8,      /* cancel, unpin, delete: there was one */
    NOTE_NO_GRACE = 1 << 9,   /* gc */
    NOTE_STALE_TRY = 1 << 10, /* the claim was past due when it was used */
};

struct note {
    int32_t said; /* enum said */
    int32_t deed; /* enum deed */
    uint32_t worker, life;
    int64_t n;          /* the worker's n-th deed, over all its lives */
    int64_t at_us;      /* of the machine's monotonic clock */
    int64_t wall_ms;    /* of its clock, which stores ask, too */
    struct maker thing; /* what it is about; the same for a retry */
    int32_t rc;         /* enum belay_code, of DONE */
    int32_t session;    /* its number; -1: none */
    uint32_t flags;
    uint32_t n_batches;
    struct note_batch batch[NOTE_BATCHES]; /* of the claim, the batch that was enqueued,
                                              or that is to be cancelled */
    int64_t most; /* claim: asked for so many; abandon: given back; gc: deleted */
    int64_t expected, revision; /* commit, head; actual of a conflict; gc: spared;
                                   mortal: what is done, and to which */
    int64_t claimed_at_ms, expires_at_ms;
    struct maker parent;
    char reason[32];
    char ref[72];   /* commit: the part that is kept; put: the blob */
    char text[384]; /* claim, and who uses it: the claim as text */
};

/* "w<worker>-<n>": turns, nodes, pins and source keys are called so. */
void maker_name(const struct maker *m, char out[40]);
bool maker_parse(const char *text, struct maker *out);
bool maker_is(const struct maker *a, const struct maker *b);

/* The first 16 digits of a batch id: enough to know it again; 0: it is none. */
uint64_t batch_number(const char *batch_id);

/* One worker's file, for appending. */
int notes_open(const char *dir, unsigned worker);
void notes_append(int fd, struct note *n); /* stamps the times; ends the program when it
                                                cannot */

/* All notes of one worker, or (read_all) of all in the order of their times. */
struct notes {
    struct note *note;
    size_t n;
};
void notes_read(const char *dir, unsigned worker, struct notes *out);
void notes_read_all(const char *dir, struct notes *out);
void notes_release(struct notes *notes);

/* A deed: what was begun, and its answer (NULL: none came). */
struct act {
    const struct note *begin, *done;
};
struct acts {
    struct act *act; /* in the order they were begun */
    size_t n;
    size_t broken; /* notes of SAID_BROKEN */
};
void acts_of(const struct notes *notes, struct acts *out);
void acts_release(struct acts *acts);

#endif /* TESTS_CRASH_SESSION_LEDGER_H */
