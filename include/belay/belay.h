/* belay.h - everything: opening a store, and every noun in it. */
#ifndef BELAY_BELAY_H
#define BELAY_BELAY_H

#include <belay/blob.h>
#include <belay/budget.h>
#include <belay/cache.h>
#include <belay/contest.h>
#include <belay/execution.h>
#include <belay/fleet.h>
#include <belay/flow.h>
#include <belay/open.h>
#include <belay/process.h>
#include <belay/queue.h>
#include <belay/ring.h>
#include <belay/session.h>
#include <belay/value.h>
#include <belay/waitpoint.h>

#endif /* BELAY_BELAY_H */
