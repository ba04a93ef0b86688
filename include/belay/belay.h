/* belay.h - everything: opening a store, and every noun in it. */
#ifndef BELAY_BELAY_H
#define BELAY_BELAY_H

#include <belay/blob.h>
#include <belay/open.h>
#include <belay/queue.h>
#include <belay/session.h>

#endif /* BELAY_BELAY_H */
