/* session_laws.h - whether what survived agrees with what was said (docs/promises.md).
 *
 * Ledgers (session_ledger.h) and the store (session_truth.h) are compared after all
 * workers are dead.  "Before" means: the one call had been answered when the other
 * began, by the machine's monotonic clock; calls that overlap have no order.
 */
#ifndef TESTS_CRASH_SESSION_LAWS_H
#define TESTS_CRASH_SESSION_LAWS_H

#include "session_ledger.h"
#include "session_truth.h"

enum law {
    LAW_SOUND,   /* check finds nothing; workers saw nothing that must not be */
    LAW_FENCES,  /* L1 L2 L3 L10 */
    LAW_TIME,    /* L1 L6 L7 */
    LAW_STALE,   /* L4 */
    LAW_HOLDS,   /* L5 */
    LAW_WHOLE,   /* L8 */
    LAW_ENTERED, /* L9 */
    LAW_DRAINS,  /* L11 */
    LAW_ORDER,   /* L12 */
    LAW_CHAIN,   /* S1 S2 */
    LAW_TURNS,   /* X2 */
    LAW_ATONCE,  /* what a commit brings is there with it */
    LAW_BLOBS,   /* S3 S4 S5 */
    LAW_GARBAGE, /* S7 */
    LAW_DELETED, /* a session that was deleted stays so */
    LAWS
};

/* How often something happened; a run in which some of it did not proves too little. */
enum tally {
    TALLY_KILLS,
    TALLY_STOPS,
    TALLY_LOST_ANSWERS,
    TALLY_ENQUEUED,
    TALLY_GRANTS,
    TALLY_TAKEOVERS,
    TALLY_BURNED, /* fences that nobody was told of */
    TALLY_RENEWED,
    TALLY_ABANDONED,
    TALLY_CANCELLED,
    TALLY_COMMITS,
    TALLY_COMPLETED,
    TALLY_CONFLICTS,
    TALLY_STALE,   /* tries with a token that could not be current, refused */
    TALLY_LATE,    /* past due, and yet accepted */
    TALLY_RETRIED, /* turns whose outcome was not known */
    TALLY_REPLAYED,
    TALLY_OTHER_CONTENT,
    TALLY_CHECKPOINTS, /* commits with one that were answered for */
    TALLY_PINS,
    TALLY_COLLECTED, /* blobs, while others worked */
    TALLY_SPARED,    /* ... that were named again in the meantime (S6) */
    TALLY_DELETED,   /* sessions, while others used them */
    TALLY_REFUSED,   /* calls on one that was deleted */
    TALLY_DRAINED,
    TALLIES
};

struct laws {
    unsigned wrong[LAWS];
    uint64_t looked[LAWS]; /* things that were compared */
    uint64_t tally[TALLIES];
    const char *where; /* for diagnostics */
};

extern const char *const law_names[LAWS];
extern const char *const tally_names[TALLIES];

void law_broken(struct laws *l, enum law law, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* One grant of one batch. */
struct grant {
    int session;
    int64_t seq, fence;
    const struct act *act;
    int64_t expires_at_ms; /* as far as it was acknowledged */
    int64_t let_go_us;     /* when an abandon was begun first; 0: never */
};

/* What is known of one batch. */
struct story {
    const struct act *entered;       /* that was answered for; NULL: none */
    const struct truth_batch *here;  /* in the inbox at the end */
    const struct truth_commit *done; /* completed by */
    int64_t done_fence;              /* ... under this grant; 0: not known */
    unsigned n_done;
    bool cancel_tried, cancelled;
    int64_t cancelled_us; /* ... since then */
    struct grant *grant;  /* acknowledged ones, by fence */
    size_t n_grants;
};

/* Everything that is compared. */
struct matter {
    struct laws *laws;
    struct acts acts;
    struct truth *truth;
    struct grant *grants; /* by session, sequence, fence */
    size_t n_grants;
    struct story *story[NOTE_SESSIONS]; /* [seq]; 0 is not used */
    size_t n_story[NOTE_SESSIONS];      /* the greatest sequence */
    uint64_t unanswered[NOTE_SESSIONS]; /* batches that lost claims had asked for */
};

void matter_make(struct matter *m, struct laws *laws, const struct notes *notes,
                 struct truth *truth);
void matter_release(struct matter *m);

struct story *story_of(const struct matter *m, int session, int64_t seq);

/* Whether a had been answered when b began. */
bool act_before(const struct act *a, const struct act *b);
bool act_ok(const struct act *a); /* it was answered with BELAY_OK */

/* session_laws.c, session_laws_uses.c, session_laws_commits.c. */
void laws_of_inboxes(struct matter *m);
void laws_of_uses(struct matter *m); /* part of those of inboxes */
void laws_of_commits(struct matter *m);

#endif /* TESTS_CRASH_SESSION_LAWS_H */
