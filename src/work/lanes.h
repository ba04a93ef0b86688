/* lanes.h - which lanes there are, and by which routes a worker finds its work.
 *
 * A route of a lane is a set of required capabilities that some execution of it has had;
 * each has an index of ready work of its own, so that a worker looks only at what it can
 * do, and nothing stands in front of it that it cannot.  Lanes and routes are entered with
 * the first execution that needs them, in the same commit, and never removed: knowing one
 * is knowing it for ever, and a list of them is a hint that is at worst too short.
 *
 * A book keeps what was read, for all claims of a process.  A claim scans the names of its
 * lanes' routes along with its work; when they are not those of the book it reads the book
 * anew and looks again.
 */
#ifndef WORK_LANES_H
#define WORK_LANES_H

#include "policy/capability.h"
#include "store/txn.h"

#define LANE_NAME_MAX 64
#define LANES_PER_CLAIM 64
#define LANE_ACTIVE "active" /* what `state` of a lane says */

/* `invalid`, reason lane: not 1 to 64 bytes of printable ASCII. */
MUST_USE belay_rc lane_check(const char *lane, struct belay_error *err);

/* lane/<lane>/<route>, in the arena; false: no memory. */
MUST_USE bool lane_index(struct bytes lane, struct bytes route, struct belay_arena *a,
                         struct bytes *out);
/* What is posted when a lane gets something to claim. */
MUST_USE bool lane_topic(struct bytes lane, struct belay_arena *a, struct bytes *out);

/* routes/<lane>: the names of its routes. */
MUST_USE bool lane_roster(struct bytes lane, struct belay_arena *a, struct bytes *out);

/* In a body: enters the lane and the route unless they are there, both read under guard.
 * Whoever sees the route in its roster need not call it. */
MUST_USE belay_rc lane_enter(struct txn *t, struct bytes lane, struct bytes route,
                             struct bytes requires, int64_t now_ms);

/* --- the book --- */

struct lane_book;
MUST_USE belay_rc lane_book_open(struct lane_book **out, struct belay_error *err);
void lane_book_close(struct lane_book *b); /* takes NULL */

/* What one claim looks at, in the arena. */
struct lane_view {
    struct bytes *ready; /* indexes of the routes that fit, of all lanes */
    size_t n_ready;
    struct bytes
        *rosters; /* routes/<lane> of each lane: what tells whether the view is old */
    size_t n_rosters;
    uint64_t digest; /* over (index, member) of all their entries, in scan order */
    size_t n_routes; /* that they have */
};

/* Who asks. */
struct lane_query {
    const struct bytes *lanes;
    size_t n_lanes;
    struct bytes has; /* capabilities, joined */
};

/* The view of these lanes for that worker; reads the store for lanes that are not in the
 * book, or for all when `anew`. */
MUST_USE belay_rc lane_view(struct lane_book *b, struct space *sp,
                            const struct lane_query *q, bool anew,
                            struct belay_arena *a, struct lane_view *out,
                            struct belay_error *err);

/* Whether a scan of the rosters (limit ROUTES_MAX, no fetch) shows what the view was made
 * of. */
#define ROUTES_MAX 4096
bool lane_view_holds(const struct lane_view *v, const struct hits *rosters);

#endif /* WORK_LANES_H */
