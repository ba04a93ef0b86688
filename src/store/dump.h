/* dump.h - a namespace as text, the same on every driver.
 *
 * One line per stored thing, in the order of driver_walk, values escaped:
 *
 *     row blob ver=17 sha256="ab.." upload="up.." size=3 descriptor=null ...
 *     rank "ready:a" 1000 "exe_01"
 *     log "process:p" 1 "bytes"
 *     feed "events" 1 "bytes"            (number = place in the feed, not its position)
 *     chunk "upl_01" 0 sha256=.. len=..
 *
 * Rows that are internal to the store (slots, clock mark) and the ranks and feeds of
 * such rows are left out, so that equal histories give equal dumps.
 */
#ifndef STORE_DUMP_H
#define STORE_DUMP_H

#include "store/driver.h"

/* Appends the dump.  The caller reads it only when nobody commits, or gets one
 * consistent state of it: a walk is one snapshot. */
MUST_USE belay_rc dump_namespace(struct driver *d, struct bytes ns, struct buf *out,
                                 struct belay_error *err);

#endif /* STORE_DUMP_H */
