/* open.h - an open store.
 *
 *     struct belay *b;
 *     struct belay_error err;
 *     struct belay_options options = { .size = sizeof(options), .ns = "default" };
 *     if (belay_open("memory:", &options, &b, &err) != BELAY_OK)
 *         die(err.message);
 *     ...
 *     belay_close(b);
 *
 * A handle may be used by many threads at once.  Nothing is global: any number of
 * handles may be open in one process.  After fork() the child must not use handles of
 * its parent.
 *
 * Where a call fails its outputs are as they were before.
 */
#ifndef BELAY_OPEN_H
#define BELAY_OPEN_H

#include <belay/arena.h>
#include <belay/cancel.h>
#include <belay/error.h>
#include <belay/hooks.h>
#include <belay/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One namespace of one store. */
struct belay;

/* Opens the store that the URL names; belay(3) lists the schemes and their options.
 *
 *   invalid  the URL or an option cannot be used.  Reason `scheme`: there is no such
 *            store, or not in this build; `option`: an option of the URL, or a member
 *            of *options; `namespace`; `url`: anything else.  The entity names the
 *            scheme or the option.  No message repeats anything else of the URL, since
 *            it may carry a password.
 *   misuse   url or out is NULL, options->size cannot be right, a hook lacks a function
 *   unavailable, unsupported_format, and whatever else the store says
 *
 * options may be NULL: all defaults. */
BELAY_API BELAY_MUST_USE belay_rc belay_open(const char *url,
                                             const struct belay_options *options,
                                             struct belay **out,
                                             struct belay_error *err);

/* No call may be using the handle.  Takes NULL. */
BELAY_API void belay_close(struct belay *b);

/* The namespace of the handle; valid until it is closed. */
BELAY_API const char *belay_namespace(const struct belay *b);

/* What an answer of the store is worth, as read back from the store itself. */
enum belay_durability {
    BELAY_DURABILITY_INLINE = 0,  /* lives and dies with this process */
    BELAY_DURABILITY_DURABLE = 1, /* on disk before the call returns */
    BELAY_DURABILITY_RELAXED = 2, /* the last moments may be lost in a crash */
};

BELAY_API enum belay_durability belay_durability(struct belay *b);

/* "inline", "durable" or "relaxed"; "unknown" for any other number. */
BELAY_API const char *belay_durability_name(int durability);

/* Of the library that runs, as in "0.1.0". */
BELAY_API const char *belay_version(void);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_OPEN_H */
