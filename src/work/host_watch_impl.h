/* host_watch_impl.h - a handle that watches its host, for the files of it.
 *
 *   host_watch.c   joining and leaving, asking about the dead, seats
 *   host_deaths.c  the thread that hears of deaths
 */
#ifndef WORK_HOST_WATCH_IMPL_H
#define WORK_HOST_WATCH_IMPL_H

#include <pthread.h>

#include <belay/fleet.h>
#include <belay/value.h>

#include "work/host_watch.h"

/* Members at once; one futex_waitv watches over all of them. */
#define FLEET_SIZE 120
/* Whoever sleeps looks again after this, woken or not. */
#define RELOOK_MS 5000
#define RELOOK_US ((int64_t)RELOOK_MS * 1000)
/* A seat whose holder is stopped (SIGSTOP) is another's after this; holders renew at least
 * every RELOOK_MS. */
#define SEAT_MS 20000

/* Subjects of contests. */
enum { KIND_DEATHS = 1, KIND_SEAT = 2 };

/* Words of the fleet: who is there has changed, or stops watching; something happened that
 * those who wait want to know. */
enum { WORD_MEMBERS, WORD_NEWS, WORDS };

/* What members tell others of themselves. */
#define LABEL_BOUND "bound"
#define LABEL_WATCH "watch"

enum state { STATE_NEW, STATE_JOINED, STATE_APART };

/* Who is there, by node: incarnation, and whether it is dead and whether its leases are bound;
 * 0: nobody. */
struct roll {
    uint64_t at[FLEET_SIZE];
    int64_t taken_us;
};

struct watch {
    struct host host; /* first */
    struct exec_site site;
    struct belay_clock
        clock; /* the system's: the kernel's deaths are not in anybody's time */
    char *fleet_name, *dir;

    pthread_mutex_t settling; /* taken before the other */
    pthread_mutex_t mutex;    /* of the state, and of what is settled */
    enum state state;

    /* Who was there when what everybody held who was gone by then had been lost. */
    bool is_settled; /* at all */
    struct roll settled;

    /* Once joined. */
    struct belay_fleet *fleet;
    struct belay_identity id;
    struct belay_notify words[WORDS];
    pthread_t thread;
    atomic_bool stop;

    /* The thread's own. */
    bool is_pending;          /* somebody died who was not seen to yet */
    bool is_twice;            /* sweep, and then once more, for what was on its way */
    struct belay_value swept; /* when the last sweep of anybody began that is through */
    struct roll alive;        /* at the last look; the dead are not in it */
    int64_t sweep_us;         /* when to sweep, or to try again; DEADLINE_NONE */
    int64_t due_us;           /* since when one is due: who began later has done it */
    int64_t backoff_us;       /* after a failure; 0: there was none */
};

/* The thread; ends when `stop` is set and WORD_MEMBERS was posted. */
void *host_watch_run(void *watch);

/* host_ops.settle, by whoever calls. */
MUST_USE belay_rc host_watch_settle(struct host *h, struct belay_error *err);

/* Wakes all who watch. */
void host_post(struct watch *w, unsigned word);

#endif /* WORK_HOST_WATCH_IMPL_H */
