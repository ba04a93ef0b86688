/* job_socket.h - the Unix socket of one attempt, where its job finds its own verbs.
 *
 * One JSON request a line, one JSON answer a line (job_verbs.h), any number of them on a
 * connection.  Only the same user is listened to.  Nothing here blocks: a peer that is
 * slow, silent or sends no end costs its connection, never the worker.
 */
#ifndef CLI_JOB_SOCKET_H
#define CLI_JOB_SOCKET_H

#include <poll.h>
#include <sys/un.h>

#include <belay/hooks.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"

#define SOCKET_PEERS 8
#define SOCKET_FDS (1 + SOCKET_PEERS)
/* Room for a result or payload of 1 MiB, escaped as JSON usually is. */
#define SOCKET_LINE_MAX ((size_t)3 << 19)
/* How long a request may take to come, or an answer to be read. */
#define SOCKET_PATIENCE_US ((int64_t)10 * 1000 * 1000)
/* How long a peer must have been silent before its place is given to another. */
#define SOCKET_HUSH_US ((int64_t)1000 * 1000)

struct peer {
    int fd; /* -1: none */
    struct buf in, out;
    size_t sent;      /* of out */
    int64_t since_us; /* when it last did something */
    bool is_last;     /* closed when the answer is sent */
};

struct job_socket {
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": there is none */
    int listening;
    int64_t shut_until_us; /* nobody could be let in for want of a descriptor */
    struct peer peers[SOCKET_PEERS];
};

/* Appends the answer to one line, with its newline. */
typedef void socket_answer(void *arg, struct bytes line, struct buf *out);

/* A private directory, below XDG_RUNTIME_DIR, TMPDIR or the system's own. */
MUST_USE belay_rc socket_directory_new(char **out, struct belay_error *err);
/* With everything in it; takes NULL. */
void socket_directory_free(char *directory);

/* An empty one, which has nothing to give back. */
void socket_init(struct job_socket *s);
/* Makes the directory anew where somebody has removed it.  `unavailable`, reason socket. */
MUST_USE belay_rc socket_open(struct job_socket *s, const char *directory,
                              uint64_t number, struct belay_error *err);
void socket_close(struct job_socket *s);

/* What to poll for.  Who connects waits while every place is taken by a peer that has done
 * something lately: none is hung up on between its connecting and its request. */
void socket_poll(const struct job_socket *s, int64_t now_us,
                 struct pollfd fds[SOCKET_FDS]);
/* When to poll again: somebody's patience ends, or a place may be given to another. */
int64_t socket_deadline(const struct job_socket *s, int64_t now_us);
/* Does what the poll found. */
void socket_serve(struct job_socket *s, const struct pollfd fds[SOCKET_FDS],
                  const struct belay_clock *clock, socket_answer *answer, void *arg);

#endif /* CLI_JOB_SOCKET_H */
