/* cancel.h - telling a call in another thread to stop. */
#ifndef BELAY_CANCEL_H
#define BELAY_CANCEL_H

#include <belay/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Passed to any number of calls; once triggered, each of them that can still stop
 * returns `cancelled`, and so does every later call it is passed to.  Nothing is half
 * done then: a call whose effect is already committed answers normally. */
struct belay_cancel;

BELAY_API BELAY_MUST_USE belay_rc belay_cancel_new(struct belay_cancel **out,
                                                   struct belay_error *err);

/* May be called from any thread, any number of times. */
BELAY_API void belay_cancel_trigger(struct belay_cancel *c);

BELAY_API bool belay_cancel_triggered(const struct belay_cancel *c);

/* No call may be using it.  Takes NULL. */
BELAY_API void belay_cancel_free(struct belay_cancel *c);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_CANCEL_H */
