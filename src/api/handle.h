/* handle.h - what is behind a struct belay. */
#ifndef API_HANDLE_H
#define API_HANDLE_H

#include <belay/belay.h>

#include "api/settings.h"
#include "base/random_pool.h"
#include "store/store.h"
#include "work/execution.h"
#include "work/process.h"

#define NAMESPACE_MAX 63
#define FLEET_NAME_MAX 63

/* How much of a store a handle is about. */
enum handle_reach {
    HANDLE_NAMESPACE, /* options->ns, as belay_open */
    HANDLE_STORE,     /* all of it: its space is the system's */
    HANDLE_CAREFUL,   /* likewise, and `unavailable` rather than waiting for ever */
};

struct belay {
    struct driver_config config; /* the driver borrows it */
    struct random_pool chance;   /* what it draws from unless the caller has a source */
    struct settings settings;    /* the URL's over the caller's options */
    struct driver *driver;
    struct store *store;
    struct space *space;        /* the store's own */
    struct exec_site site;      /* of executions; its book of lanes is the handle's */
    struct proc_site processes; /* likewise, with a book of registrations */
    char ns[NAMESPACE_MAX + 1];
    char fleet[FLEET_NAME_MAX +
               1];     /* of this host's handles; empty: there can be none */
    struct host *host; /* NULL: the handle keeps apart */
};

/* belay_open with a choice. */
MUST_USE belay_rc handle_open(const char *url, const struct belay_options *options,
                              enum handle_reach reach, struct belay **out,
                              struct belay_error *err);

#endif /* API_HANDLE_H */
