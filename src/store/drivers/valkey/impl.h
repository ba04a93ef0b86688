/* impl.h - what the files of the Valkey driver share.
 *
 *   open.c      options, server checks, close
 *   request.c   commands as bytes; answers as values in an arena
 *   connect.c   connecting, TLS, login;  tls.c  OpenSSL below it
 *   link.c      one connection that many callers share;  lead.c  who does its I/O
 *   node.c      the connections of a node: which one, again after a failure
 *   cluster.c   which node has a namespace;  call.c  asking it
 *   library.c   the functions of library.lua: loading, checking
 *   layout.c    where things are: keys of rows, indexes, logs, feeds, chunks
 *   read.c      questions;  commit.c  plans;  walk.c  everything in a namespace
 *   aof.c       the log after a start
 *   care.c      erasing;  check.c  looking for damage  (and what shapes.h names)
 *   doctor.c    how the server is doing
 *   listen.c    wake-ups among processes
 *
 * Two layers.  Above: shapes (layout, read, commit, walk, care), which build requests and
 * take answers apart, and know nothing of sockets.  Below: everything that brings a
 * request to the node of its namespace and back, and knows nothing of shapes.
 */
#ifndef STORE_DRIVERS_VALKEY_IMPL_H
#define STORE_DRIVERS_VALKEY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/drivers/valkey.h"
#include "store/server_time.h"

/* --- request.c: commands and answers --- */

/* Commands that go out one behind the other, with nothing of anybody else in between.
 * Made with vk_request_init, filled with vk_command and then exactly so many vk_arg*.
 * The bytes are RESP2.  Out of memory is remembered and found by vk_call. */
struct vk_request {
    struct belay_arena *arena;
    uint8_t *bytes;
    size_t len, size;
    size_t n_commands;
    uint64_t only;  /* sent in that life of the server (vk_lineage), or not at all:
                      `unavailable`, reason life; 0: in any */
    bool publishes; /* others are to hear of it before its own answer is sent */
    bool no_memory;
};

void vk_request_init(struct vk_request *r, struct belay_arena *a);
/* About so many bytes will come: room for them is made once. */
void vk_request_expect(struct vk_request *r, size_t len);
void vk_command(struct vk_request *r, size_t n_args,
                const char *name); /* name counts */
void vk_arg(struct vk_request *r, struct bytes b);
void vk_arg_str(struct vk_request *r, const char *text);
void vk_arg_i64(struct vk_request *r, int64_t i);
/* An argument of so many bytes, which the caller puts there; NULL: no memory. */
uint8_t *vk_arg_blank(struct vk_request *r, size_t len);

enum vk_kind { VK_NIL, VK_INTEGER, VK_STRING, VK_STATUS, VK_ERROR, VK_ARRAY };

/* An answer, in the arena of the call. */
struct vk_reply {
    enum vk_kind kind;
    int64_t i;            /* VK_INTEGER */
    struct bytes b;       /* VK_STRING, VK_STATUS, VK_ERROR */
    struct vk_reply *sub; /* VK_ARRAY */
    size_t n;
};

/* --- the lower layer: link.c, node.c, cluster.c, connect.c --- */

struct vk_store;

enum vk_reached {
    VK_NOTHING_SENT, /* no server knows of it */
    VK_SENT,         /* one may have done everything */
    VK_ANSWERED,     /* every command has its answer */
};

/* How a call may be treated. */
enum vk_again {
    VK_ONCE,  /* a write: what may have arrived is not sent again */
    VK_AGAIN, /* a read: sent again after a lost connection, within the request's time */
};

/* Sends the commands to the node of the namespace and waits for an answer to each, for
 * as long as a request may take.  replies has n_commands entries.
 *
 * MOVED, ASK, CLUSTERDOWN, TRYAGAIN, LOADING and, where the functions are gone, "Function
 * not found" are handled here (the functions are loaded and the request is sent again):
 * the server has done nothing then.  They concern the whole request, which is therefore a
 * single command, or a single MULTI ... EXEC, or commands of which any may be done twice.
 * Other errors are answers; what they are is the caller's to say (vk_reply_error).
 *
 *   unavailable  no answer; *reached tells whether it may have been done
 *   no_memory */
MUST_USE belay_rc vk_call(struct vk_store *s, struct bytes ns, struct vk_request *r,
                          enum vk_again again, struct vk_reply *replies,
                          enum vk_reached *reached, struct belay_error *err);

/* An error answer as one of Belay's: OOM -> unavailable reason memory, NOAUTH, NOPERM ->
 * denied, READONLY -> unavailable reason replica, MISCONF -> unavailable reason disk,
 * BUSY -> unavailable reason busy; anything else -> corrupt with the server's words.  None
 * of these has changed anything. */
belay_rc vk_reply_error(const struct vk_reply *reply, const char *what,
                        struct belay_error *err);

/* A server's life, as it tells it: a restart changes run_id, a promotion makes the old
 * replid the second. */
struct vk_lineage {
    char replid[41], replid2[41], run_id[41];
    int64_t started_at_ms;
};

/* What the node of the namespace said when its present connections were made (one is made
 * where there never was any).  *generation is another one whenever that has changed, and
 * on every node; no request goes out between the change and the new number. */
MUST_USE belay_rc vk_lineage(struct vk_store *s, struct bytes ns,
                             struct vk_lineage *out, uint64_t *generation,
                             struct belay_error *err);
uint64_t vk_generation(struct vk_store *s, struct bytes ns); /* 0: not known yet */

/* --- library.c --- */

/* library.lua, made at build time.  It begins with "#!lua name=belay6"; a line of its
 * own, "-- revision N", has the number that grows with every change of the text: an older
 * program leaves a newer library alone. */
extern const char vk_library_text[];

/* --- layout.c: where things are ---
 *
 *   <prefix>:{<ns>}:r:<type>:<part>:<part>   HASH    a row: ver and its columns but the
 *                                            key's; an absent field is NULL.  Text parts
 *                                            have '%' and ':' as %25 and %3a
 *   <prefix>:{<ns>}:z:<index>                ZSET    a rank index
 *   <prefix>:{<ns>}:h:<index>                ZSET    members that are held; score = the
 *                                            end of the hold, ms of the server.  They
 *                                            stay in the index, too; the key expires
 *                                            with the last of them
 *   <prefix>:{<ns>}:l:<stream>               STREAM  a log: id <seq>-1, field d
 *   <prefix>:{<ns>}:f:<feed>                 STREAM  a feed: id <epoch>-<n>, field d
 *   <prefix>:{<ns>}:feeds                    HASH    <feed>: its last n
 *   <prefix>:{<ns>}:trimmed                  HASH    <feed>: the last position trimmed
 *   <prefix>:{<ns>}:c:<upload>:<index>       STRING  a chunk
 */

/* --- the store --- */

struct vk_node;
struct vk_listener;

struct vk_store {
    struct driver d;
    struct driver_config config;
    struct belay_arena arena;      /* the options' copies */
    struct valkey_options options; /* with defaults filled in */
    int64_t request_timeout_us;
    enum durability durability;
    const struct row_type *epoch; /* row type `epoch` of the dictionary; NULL: none */

    pthread_mutex_t nodes_mutex; /* for nodes, slots and durability */
    struct vk_node **nodes;      /* one, or those of a cluster; they live as long */
    size_t n_nodes;
    atomic_bool cluster;
    struct vk_node **slots; /* cluster: the node of each of 16384 slots, or NULL */
    _Atomic uint64_t generations;

    struct server_time clock;
    struct vk_listener *listener;
};

/* Members that an attempt holds. */
struct vk_hold {
    struct vk_hold *next;
    struct bytes index;
    size_t n;
    struct bytes *members;
};

struct vk_attempt {
    struct bytes ns;
    uint64_t generation; /* of the node, when it began; 0: it was not known */
    struct vk_hold *holds;
    int64_t held_until_us;    /* by the monotonic clock: they have lapsed then */
    struct belay_arena arena; /* the holds */
};

/* --- the operations --- */

belay_rc vk_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                 struct belay_arena *a, struct belay_error *err);
belay_rc vk_commit(struct driver *d, void *attempt, const struct plan *plan,
                   struct plan_result *result, struct belay_error *err);
belay_rc vk_begin(struct driver *d, void *attempt, struct bytes ns,
                  struct belay_error *err);
void vk_end(struct driver *d, void *attempt);
/* The server's time: sampled along with reads where the last sample is old (one second),
 * told by the monotonic clock in between. */
belay_rc vk_now_ms(struct driver *d, void *attempt, int64_t *out,
                   struct belay_error *err);
uint64_t vk_era(struct driver *d, void *attempt);
belay_rc vk_life(struct driver *d, void *attempt, struct bytes known,
                 struct lineage *out, struct belay_error *err);
belay_rc vk_walk(struct driver *d, struct bytes ns, item_visit *visit, void *arg,
                 struct belay_error *err);
belay_rc vk_erase(struct driver *d, struct bytes ns, size_t limit, bool *more,
                  struct belay_error *err);
belay_rc vk_check(struct driver *d, finding_report *report, void *arg,
                  struct belay_error *err);
belay_rc vk_doctor(struct driver *d, finding_report *report, void *arg,
                   struct belay_error *err);
void vk_notify(struct driver *d, struct bytes ns, struct bytes topic);
/* What tells other processes of a plan's topics, in the arena; false: nothing does. */
MUST_USE bool vk_wake_up(const struct vk_store *s, const struct plan *plan,
                         struct belay_arena *a, struct bytes *channel,
                         struct bytes *message);

MUST_USE belay_rc vk_listener_open(struct vk_store *s, struct belay_error *err);
void vk_listener_close(struct vk_store *s);

#endif /* STORE_DRIVERS_VALKEY_IMPL_H */
