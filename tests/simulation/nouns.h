/* nouns.h - inboxes, sessions and blobs simulated (t_sim --nouns).
 *
 * The same actors, fronts, faults and schedules, but the actors call what src/work
 * offers, and what is watched is what is promised about it (docs/promises.md).
 *
 *   nouns_state.c    what a walk of the namespace shows, as plain arrays
 *   nouns_find.c     finding something in them
 *   nouns_check.c    what must be true of every such state
 *   nouns_rules.c    what a commit of a call may do to an inbox
 *   nouns_change.c   and to sessions, blobs and pins
 *   nouns_call.c     beginning and end of a call, and its answer
 *   nouns_dead.c     what the dead held, as far as somebody says that they are
 *   nouns_claims.c   claims: whether they are current, forged ones, a memory of them
 *   nouns_inbox.c, nouns_work.c, nouns_session.c, nouns_blob.c   what actors do
 *   nouns_end.c      what must be true when everything is quiet
 *
 * After every commit the namespace is walked and compared with the state before: the
 * difference must be one that the call may make in that state, at the time that its body
 * was told.  Nothing of src/ decides what may be: which batches a claim gets, who holds,
 * which revision comes next is computed here once more, from the arrays.
 *
 * Texts are kept as digests; 0 is none.
 */
#ifndef SIMULATION_NOUNS_H
#define SIMULATION_NOUNS_H

#include "hosts.h"
#include "sim.h"
#include "work/checkpoint.h"
#include "work/gc.h"
#include "work/queue.h"
#include "work/session.h"

#define N_BATCHES 160
#define N_SESSIONS 40
#define N_TURNS 512
#define N_BLOBS 160
#define N_PINS 8
#define N_UPLOADS 256
#define N_CALLS 4096
#define N_SEEN 1024
#define N_CLAIMS 512
#define N_CLAIM_MAX 8 /* batches in one */

/* --- a state --- */

struct nlease {
    uint64_t claim, owner, token, id;
    struct sim_member who; /* the process that claimed it */
    int64_t size, fence, claimed_ms, expires_ms;
};

struct nbatch {
    uint64_t session;
    int64_t seq, ver;
    /* What never changes. */
    uint64_t id, source, delivery, slot, merge, payload;
    int64_t available_ms, enqueued_ms;
    /* What does. */
    int64_t due_ms; /* -1: none */
    struct nlease lease;
    /* What else there is of it. */
    unsigned names, payloads, sources, ready, due;
    int64_t ready_rank, due_rank;
};

struct ninbox {
    uint64_t session;
    int64_t ver, front_ver; /* of its back and its front */
    int64_t first_seq, last_seq, batches, changes;
    bool closed, front_closed;
};

enum nref { N_MANIFEST, N_TOOL, N_PLUGIN, N_EXECUTION, N_FRAME, N_REFS };

struct nsession {
    uint64_t id;
    bool there, active;
    int64_t ver, revision, node_count;
    uint64_t leaf, ref[N_REFS];
    unsigned nodes, node_names, turns, logs;
    int64_t last_log;
};

struct nturn_row {
    uint64_t session, turn, hash;
    int64_t revision;
};

struct nblob {
    uint64_t sha, upload;
    int64_t ver, touched_ms, chunks, rank;
    unsigned ranks, found; /* entries in the index, chunks */
    bool packed, sound;    /* the bytes have that name */
    uint64_t ref[N_REFS];  /* what they name, as a manifest */
};

struct npin {
    uint64_t name, sha;
};

struct nstate {
    int64_t epoch;
    struct nbatch batch[N_BATCHES];
    size_t n_batches;
    struct ninbox inbox[N_SESSIONS];
    size_t n_inboxes;
    struct nsession session[N_SESSIONS];
    size_t n_sessions;
    struct nturn_row turn[N_TURNS];
    size_t n_turns;
    struct nblob blob[N_BLOBS];
    size_t n_blobs;
    struct npin pin[N_PINS];
    size_t n_pins;
    uint64_t upload[N_UPLOADS];
    size_t n_uploads, strays; /* chunks of no blob and no upload */
    const char *fault;        /* what a walk alone shows to be wrong */
};

/* --- calls --- */

enum ncall_kind {
    N_ENQUEUE,
    N_CLAIM,
    N_RENEW,
    N_ABANDON,
    N_CANCEL,
    N_DROP,
    N_LOOK, /* whatever only reads */
    N_COMMIT,
    N_DELETE,
    N_PUT,
    N_PIN,
    N_UNPIN,
    N_COLLECT,
    N_SPOIL,
    N_RAISE,
    N_CALL_KINDS
};

/* A commit that somebody wants, as often as it takes. */
struct nturn {
    char session[16], turn[24], node[24], parent[24], config[24];
    uint64_t session_id, turn_id; /* turn_id 0: no stamp */
    bool append;
    bool has_checkpoint;
    unsigned part[3]; /* 0: none, else 1 + number of a content */
    bool named[3];    /* by its ref alone */
    char
        frame[SHA256_HEX_LEN + 1]; /* a blob that its agent frame names; may be empty */
    const struct belay_claim *claim[2];
    size_t n_claims;
    /* What became of it. */
    bool tried, applied;
    uint64_t applied_no;
    int64_t revision, node_count;
    uint64_t leaf, manifest;
};

struct ncall {
    enum ncall_kind kind;
    struct actor *actor;
    uint64_t session;
    const struct belay_claim *claim; /* renew, abandon */
    struct nturn *turn;              /* commit */
    int64_t expected;
    struct nbatch want; /* enqueue: what is to be added */
    /* claim */
    enum belay_boundary boundary;
    size_t max;
    uint64_t exact[N_CLAIM_MAX], owner;
    size_t n_exact;
    bool is_exact;
    int64_t ttl_ms;
    uint64_t batch; /* cancel, drop: its id; by sequence when 0 */
    int64_t seq;
    int64_t grace_ms;
    uint64_t sha, pin;

    /* How it went. */
    uint64_t first_no,
        run_no; /* changes of the world when it, and its last run, began */
    int64_t begun_ms, now_ms; /* what its bodies were told first, last; 0: nothing */
    unsigned lost;
    unsigned changed; /* commits that changed something */
    unsigned grants;
    struct mourning mourning; /* who was said to be dead */
    int64_t collected;        /* blobs */
    bool returned;
    belay_rc rc;
    /* What its commit did: batches in order, and a lease they got or kept. */
    int64_t at[N_BATCHES];
    size_t n_at;
    struct nlease lease;
};

/* A batch that was once there. */
struct nseen {
    uint64_t session, id, source, payload;
    int64_t seq, fence; /* of its last grant */
    const char *gone;   /* how it went; NULL: it is there */
    uint64_t added_no, gone_no, granted_no;
};

/* Bytes that were looked at: whether they have that name, and what they name. */
struct nbytes {
    uint64_t sha, data;
    bool sound;
    uint64_t ref[N_REFS];
};

struct nouns {
    struct sim *s;
    struct nstate states[2];
    struct nstate *old, *cur; /* before and after the last commit */
    uint64_t no;              /* commits that changed something */
    int64_t latest_ms;        /* time told to anybody */
    struct ncall call[N_CALLS];
    size_t n_calls;
    struct nseen seen[N_SEEN];
    size_t n_seen;
    const struct belay_claim *claim[N_CLAIMS];
    size_t n_claims;
    uint64_t taken[N_CLAIMS]; /* leases somebody else was granted before their end */
    size_t n_taken;
    struct nturn turn[N_TURNS];
    size_t n_turns;
    struct nbytes bytes[N_BLOBS * 2];
    size_t n_bytes;
    unsigned generation[4];               /* of sessions that were deleted */
    uint64_t spoiled;                     /* a manifest that cannot be read; 0: none */
    uint64_t spoiled_session, spoiled_no; /* a head that names it, since then */
    uint64_t blob_since[N_BLOBS], blob_sha[N_BLOBS]; /* there since that change */
    size_t n_since;
    struct belay_arena arena; /* of the whole schedule */
};

/* --- nouns_state.c --- */

void state_clear(struct nstate *st);
void state_read(struct nouns *w, struct nstate *st);

/* --- nouns_find.c --- */

uint64_t text_of(struct bytes b);  /* 0 for none */
uint64_t str_of(const char *text); /* likewise for NULL */
const struct nbatch *batch_at(const struct nstate *st, uint64_t session, int64_t seq);
const struct nbatch *batch_by_id(const struct nstate *st, uint64_t session,
                                 uint64_t id);
const struct ninbox *inbox_at(const struct nstate *st, uint64_t session);
const struct nsession *session_at(const struct nstate *st, uint64_t id);
const struct nturn_row *turn_at(const struct nstate *st, uint64_t session,
                                uint64_t turn);
const struct nblob *blob_at(const struct nstate *st, uint64_t sha);
/* Whether a head, a frame or a pin names the blob. */
bool is_named(const struct nstate *st, uint64_t sha);
/* Whether the blob is there and was all the time since that change of the world. */
bool is_there_since(const struct nouns *w, uint64_t sha, uint64_t no);

/* --- nouns_check.c --- */

void state_check(struct nouns *w, const struct nstate *st);

/* --- nouns_rules.c, nouns_change.c --- */

/* Whether the differences between w->old and w->cur are those the call may make; c may
 * be NULL: none. */
bool inbox_changes(struct nouns *w, struct ncall *c, int64_t now_ms);
bool other_changes(struct nouns *w, struct ncall *c);
/* And whether the batches it changed are those it is about, all of them. */
const char *call_changes(struct nouns *w, struct ncall *c, int64_t now_ms);
/* Which batches a claim gets in that state, in order; returns how many.  Where `early` is
 * given, with those that the commit in hand has made ready before their time. */
size_t expected_claim(const struct nstate *st, const struct ncall *c, int64_t now_ms,
                      const struct nouns *early, const struct nbatch *out[N_CLAIM_MAX]);
bool is_live(const struct nbatch *b, int64_t now_ms);
struct nseen *seen_at(struct nouns *w, uint64_t session, int64_t seq);

/* --- nouns_dead.c --- */

/* Why a batch whose time has not come may not be made ready, or granted, by the call; NULL:
 * it may, since somebody said that its holder is dead. */
const char *early_fault(struct nouns *w, const struct ncall *c, const struct nbatch *o,
                        int64_t now_ms);
/* Notes that its lease was granted to somebody else before it ended. */
void early_note(struct nouns *w, const struct nbatch *o);
/* Why a change by that claim is none that may be: others have a part of it. */
const char *early_stale(const struct nouns *w, const struct belay_claim *claim);
/* Whether the commit has made it ready, or granted it, before its time. */
bool is_early(const struct nouns *w, const struct nbatch *o, int64_t now_ms);
/* Who holds batches of the session and was said to be dead in vain. */
const char *early_missed(const struct nouns *w, const struct ncall *c);
/* All or nothing of what one process holds. */
const char *early_half(const struct nouns *w, const struct ncall *c, int64_t now_ms);

/* --- nouns_claims.c --- */

/* The batch if the claim holds it by itself; the whole claim if it holds all it lists
 * and lists all it holds. */
bool holds_batch(const struct nstate *st, const struct belay_claim *claim, size_t i);
bool holds_all(const struct nstate *st, const struct belay_claim *claim);
/* Why it does not. */
const char *lost_reason(const struct nstate *st, const struct belay_claim *claim);
bool lists_batch(const struct nstate *st, const struct belay_claim *claim, int64_t seq);
/* A copy that lives as long as the schedule; remembered. */
const struct belay_claim *claim_keep(struct nouns *w, const struct belay_claim *claim);
/* One of those that were ever granted, rather a late one; NULL: there is none. */
const struct belay_claim *claim_any(struct actor *a, unsigned draw);
/* The same with something wrong about it. */
const struct belay_claim *claim_forged(struct nouns *w, const struct belay_claim *claim,
                                       unsigned how);

/* --- nouns_call.c --- */

/* Notes a complaint, "rule: what", unless it is NULL. */
void noun_complain(struct nouns *w, const char *complaint);

void nouns_open(struct sim *s);
void nouns_close(struct sim *s);
/* After every applied commit. */
void nouns_commit(struct sim *s, struct bytes ns, struct ncall *c, int64_t now_ms);
/* A body of the running actor was told the time. */
void nouns_time(struct sim *s, int64_t now_ms);

struct bytes nouns_space(void);
struct space *noun_space(struct actor *a);
struct ncall *call_begin(struct actor *a, enum ncall_kind kind, const char *session);
/* Whether the call is over for the one who made it (and not dead, or at its end). */
bool call_end(struct ncall *c, belay_rc rc);
/* Whether a code is one that faults of this schedule explain. */
bool is_trouble(const struct ncall *c, belay_rc rc);
/* Notes an answer that nothing explains. */
void call_refuse(struct ncall *c, belay_rc rc);
/* Nothing has changed since the last run of its body began. */
bool is_calm(const struct ncall *c);

/* --- what actors do --- */

const char *session_name(struct actor *a);
/* A session turned out to be gone: the next one takes its place. */
void session_gone(struct ncall *c, const char *session);
/* One of a few contents of blobs, and its name. */
#define CONTENTS 5
struct bytes content_of(unsigned which, char name[SHA256_HEX_LEN + 1]);
/* Reads a blob, which must have the bytes of its name. */
belay_rc do_read(struct actor *a, const char *sha256);

const struct belay_claim *do_claim(struct actor *a, const char *session,
                                   const struct belay_claim_request *request);
belay_rc do_renew(struct actor *a, const struct belay_claim *claim, int64_t ttl_ms);
void do_abandon(struct actor *a, const struct belay_claim *claim);
/* expected: a revision, or BELAY_ANY_REVISION; *actual as a conflict tells it. */
belay_rc do_commit(struct actor *a, struct nturn *turn, int64_t expected,
                   int64_t *actual);
struct nturn *turn_make(struct actor *a, const char *session, bool stamped);
belay_rc do_head(struct actor *a, const char *session, int64_t *revision,
                 char leaf[24]);
belay_rc do_collect(struct actor *a, int64_t grace_ms, struct belay_gc_report *report);
void do_load(struct actor *a, const char *session);
void do_delete(struct actor *a, const char *session);

/* --- nouns_end.c --- */

void nouns_audit_begin(struct actor *a);
void nouns_audit(struct actor *a);

#endif /* SIMULATION_NOUNS_H */
