/* net.h - what the files of the lower layer share, and nobody above them sees.
 *
 * A conn is a socket with a login, used by one thread at a time.  A link is a conn that
 * many callers share.  A node is a server and the links to it.
 */
#ifndef STORE_DRIVERS_VALKEY_NET_H
#define STORE_DRIVERS_VALKEY_NET_H

#include <sys/uio.h>

#include "base/clock.h"
#include "store/drivers/valkey/impl.h"

struct redisReader;
struct vk_tls;

/* Deadlines here are of the system's monotonic clock, whatever the store's clock is. */
static inline int64_t vk_now_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

/* --- request.c --- */

/* Where an answer goes.  Without an arena it goes nowhere. */
struct vk_sink {
    struct belay_arena *arena;
    struct vk_reply *reply;
    bool no_memory; /* the rest of the answer was dropped */
};

enum vk_parsed {
    VK_PARSE_MORE,   /* it has not all arrived */
    VK_PARSE_ANSWER, /* in sink->reply */
    VK_PARSE_BROKEN, /* that is no answer, or too large a one: the connection is lost */
};

struct redisReader *vk_reader_new(void); /* NULL: no memory */
void vk_reader_free(struct redisReader *reader);
MUST_USE bool vk_reader_feed(struct redisReader *reader, const void *bytes, size_t len);
/* The sink is the same until its answer is complete. */
MUST_USE enum vk_parsed vk_reader_next(struct redisReader *reader,
                                       struct vk_sink *sink);

bool vk_reader_is_empty(const struct redisReader *reader);

/* Whether it is an error that begins so. */
bool vk_reply_is_error(const struct vk_reply *reply, const char *begins);

/* --- tls.c --- */

/* Shakes hands over the socket (which does not block).  `unavailable`; reason tls when
 * trying again would not help. */
MUST_USE belay_rc vk_tls_open(const struct valkey_options *o, const char *host, int fd,
                              int64_t deadline_us, struct vk_tls **out,
                              struct belay_error *err);
void vk_tls_close(struct vk_tls *tls); /* takes NULL */
/* > 0: so many bytes; 0: the socket is not ready, for *wants (POLLIN or POLLOUT); < 0: the
 * connection is lost. */
ssize_t vk_tls_read(struct vk_tls *tls, void *buf, size_t n, short *wants);
ssize_t vk_tls_write(struct vk_tls *tls, const struct iovec *iov, int n, short *wants);

/* --- connect.c --- */

struct vk_conn {
    int fd;
    struct vk_tls *tls; /* NULL: none */
    struct redisReader *reader;
    short wants;  /* what the last read or write waits for, besides POLLIN */
    bool drained; /* the last read has taken all that had come */
};

/* Connects and logs in.  `unavailable`; with a reason (login, permission, tls, database):
 * somebody answers, and trying again would not help.  `invalid`: a database in a cluster. */
MUST_USE belay_rc vk_conn_open(struct vk_store *s, const char *host, unsigned port,
                               int64_t deadline_us, struct vk_conn **out,
                               struct belay_error *err);
void vk_conn_close(struct vk_conn *c); /* takes NULL */

/* As vk_tls_read and vk_tls_write. */
ssize_t vk_conn_read(struct vk_conn *c, void *buf, size_t n);
ssize_t vk_conn_write(struct vk_conn *c, const struct iovec *iov, int n);

/* Waits until the socket is ready; false: the time is up, or it is broken. */
MUST_USE bool vk_wait_fd(int fd, short events, int64_t deadline_us);

/* Sends commands on a conn of one's own and takes the answers.  `unavailable`: the conn is
 * of no more use. */
MUST_USE belay_rc vk_conn_call(struct vk_conn *c, struct vk_request *r,
                               struct vk_reply *replies, int64_t deadline_us,
                               struct belay_error *err);
/* Sends commands and takes no answer. */
MUST_USE belay_rc vk_conn_send(struct vk_conn *c, const struct vk_request *r,
                               int64_t deadline_us, struct belay_error *err);
/* The next answer, or what was published; BELAY_TIMEOUT when there is none yet.  With
 * VK_NO_WAIT as the time: when none has come, or what came last was taken to its end. */
#define VK_NO_WAIT INT64_C(0)
MUST_USE belay_rc vk_conn_take(struct vk_conn *c, struct vk_sink *sink,
                               int64_t deadline_us, struct belay_error *err);

/* An error answer to somebody who has just come: with a reason where asking again would
 * not help. */
belay_rc vk_refused(const struct vk_reply *reply, struct belay_error *err);

/* --- link.c --- */

/* Something to send and to have answered. */
struct vk_job {
    struct bytes before; /* ASKING, PING or nothing: one answer that is dropped */
    struct bytes bytes;
    size_t n_replies;
    struct bytes after;     /* WAIT, or nothing */
    struct vk_reply *reply; /* n_replies of them */
    struct vk_reply waited; /* the answer to `after` */
    struct belay_arena *arena;
    int64_t deadline_us;
    uint64_t only; /* as of the request */
    enum vk_reached reached;
};

struct vk_link;

/* The conn is the link's from then on, also when that fails. */
MUST_USE belay_rc vk_link_open(struct vk_conn *c, struct vk_link **out,
                               struct belay_error *err);
/* Waits for the answers.  `unavailable`: the connection is lost, or the time is up. */
MUST_USE belay_rc vk_link_call(struct vk_link *l, struct vk_job *job,
                               struct belay_error *err);
/* Copies the commands and sends them along with others'.  With a tag (1 to VK_TAGS), not
 * if a job with the same tag still waits to be sent. */
#define VK_TAGS 256
void vk_link_post(struct vk_link *l, const struct vk_request *r, unsigned tag);
/* No new jobs, and whoever waits is told. */
void vk_link_kill(struct vk_link *l, const char *why);
bool vk_link_is_dead(struct vk_link *l);
size_t vk_link_waiting(struct vk_link *l); /* jobs that wait for an answer */
/* Until what was posted is answered, or the time is up. */
void vk_link_drain(struct vk_link *l, int64_t deadline_us);
void vk_link_ref(struct vk_link *l);
void vk_link_unref(struct vk_link *l); /* the last one closes it; takes NULL */

/* --- node.c --- */

struct vk_node {
    struct vk_store *s;
    char host[256];
    unsigned port;

    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t cond;
    struct vk_link **links; /* options.pool of them, those that are open first */
    unsigned n_links;
    bool connecting;
    uint64_t rounds;               /* of connecting that have ended */
    struct belay_error last_error; /* of the last round; code 0: it succeeded */
    bool last_is_final;            /* nobody needs to try again at once */
    int64_t silent_until_us;       /* somebody has just waited in vain for the server */
    int64_t grow_at_us;            /* not before that is another link tried for */
    struct vk_lineage lineage;
    uint64_t generation; /* 0: it was never reached */
    bool replica;        /* in a cluster: it was one when it said so */
};

MUST_USE belay_rc vk_node_new(struct vk_store *s, const char *host, unsigned port,
                              struct vk_node **out, struct belay_error *err);
void vk_node_free(struct vk_node *n); /* takes NULL */
/* Runs the job on one of the links, connecting where there is none; again on another one
 * where that cannot harm. */
MUST_USE belay_rc vk_node_call(struct vk_node *n, struct vk_job *job,
                               enum vk_again again, struct belay_error *err);
void vk_node_post(struct vk_node *n, const struct vk_request *r, unsigned tag);
/* Its links are of no more use: it has become somebody else. */
void vk_node_drop(struct vk_node *n, const char *why);
/* Forgets links that were made when it was a replica: if it is none any more, what it said
 * of itself then is not true now. */
void vk_node_expect_master(struct vk_node *n);
/* Asks it once more who it is. */
MUST_USE belay_rc vk_node_meet(struct vk_node *n, int64_t deadline_us,
                               struct belay_error *err);
/* Commands to this node, whatever a cluster thinks. */
MUST_USE belay_rc vk_node_ask(struct vk_node *n, struct vk_request *r,
                              struct vk_reply *replies, int64_t deadline_us,
                              struct belay_error *err);

/* --- cluster.c --- */

/* The node that has the namespace; the map is read where there is none. */
MUST_USE belay_rc vk_node_of(struct vk_store *s, struct bytes ns, int64_t deadline_us,
                             struct vk_node **out, struct belay_error *err);
/* The node of that address, made where there is none. */
MUST_USE belay_rc vk_node_at(struct vk_store *s, const char *host, unsigned port,
                             struct vk_node **out, struct belay_error *err);
/* Reads the map anew, from any node that answers.  Who cannot goes on with the old one. */
belay_rc vk_map_read(struct vk_store *s, int64_t deadline_us, struct belay_error *err);
unsigned vk_slot(struct bytes ns);
/* From now on the node has the slots. */
MUST_USE belay_rc vk_set_slots(struct vk_store *s, int64_t first, int64_t last,
                               struct vk_node *n, struct belay_error *err);

/* --- call.c --- */

/* Sends it some time soon, whatever comes of it; not if one with the same tag still waits to be
 * sent. */
void vk_post_tagged(struct vk_store *s, struct bytes ns, const struct vk_request *r,
                    unsigned tag);

/* --- library.c --- */

/* Looks after the functions on a server, and loads them where they are missing or older.
 * Not being allowed to look or to load is no error: they may be there. */
MUST_USE belay_rc vk_library_check(struct vk_conn *c, int64_t deadline_us,
                                   struct belay_error *err);
/* Loads them on a node that has lost them. */
MUST_USE belay_rc vk_library_load(struct vk_node *n, int64_t deadline_us,
                                  struct belay_error *err);
/* The number of the line "-- revision N"; 0: there is none. */
int64_t vk_library_revision(struct bytes text);

/* --- open.c --- */

/* The life of a server.  Its id lives as long as its process; a promotion gives it another
 * replication id, and keeps that of the master before as the second.  (The first replica
 * that comes gives a master another one, too: that is nothing.) */
void vk_life_of(const struct vk_lineage *line, struct lineage *out);

/* What a server says when it is met. */
struct vk_greeting {
    struct vk_lineage lineage;
    bool replica; /* only in a cluster: elsewhere it is refused */
};

/* Checks the server behind a new conn: version, role, durability. */
MUST_USE belay_rc vk_check_server(struct vk_store *s, struct vk_conn *c,
                                  int64_t deadline_us, struct vk_greeting *out,
                                  struct belay_error *err);
/* aof.c: sees to it that the log has been rewritten since the server was started; info is
 * what it answers to INFO. */
MUST_USE belay_rc vk_renew_log(struct vk_conn *c, struct bytes info,
                               int64_t deadline_us, struct belay_error *err);

/* The value of a line "name:value" of INFO; empty: there is none. */
struct bytes vk_info(struct bytes info, const char *name);

#endif /* STORE_DRIVERS_VALKEY_NET_H */
