/* proxy.h - a bad network between a store and its server.
 *
 * Forwards connections to a server, byte for byte, until a fault is due: so many bytes
 * in one direction after it was armed.  A fault happens once. */
#ifndef TESTS_SERVERS_PROXY_H
#define TESTS_SERVERS_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proxy;

enum proxy_way { PROXY_UP, PROXY_DOWN }; /* to the server, from it */

enum proxy_fault {
    PROXY_CUT,   /* both sides are closed */
    PROXY_HOLE,  /* nothing more arrives, either way; the connection stays */
    PROXY_DELAY, /* nothing arrives for a while */
};

/* Forwards from a port of its own to the one in the URL; ends the program when it
 * cannot.  out: the URL of the proxy. */
struct proxy *proxy_open(const char *url, char *out, size_t size);
void proxy_close(struct proxy *p); /* takes NULL */

void proxy_arm(struct proxy *p, enum proxy_fault fault, enum proxy_way way,
               uint64_t after_bytes);
/* Whether the fault has happened; it does not happen any more. */
bool proxy_disarm(struct proxy *p);

/* From now on the server says `to` where it says `from`, of the same length.  Both are
 * borrowed. */
void proxy_swap(struct proxy *p, const char *from, const char *to);

/* While it holds, nothing passes, either way, on any connection, and new ones are not
 * answered; what was sent meanwhile arrives afterwards, even if its sender is gone. */
void proxy_hold(struct proxy *p);
void proxy_let_go(struct proxy *p);
/* While it holds: bytes that wait to go to the server. */
uint64_t proxy_held_bytes(struct proxy *p);

/* Bytes so far. */
uint64_t proxy_bytes(struct proxy *p, enum proxy_way way);

/* The URL with another port. */
void proxy_url_at(const char *url, int port, char *out, size_t size);

#endif /* TESTS_SERVERS_PROXY_H */
