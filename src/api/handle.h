/* handle.h - what is behind a struct belay. */
#ifndef API_HANDLE_H
#define API_HANDLE_H

#include <belay/belay.h>

#include "api/settings.h"
#include "store/store.h"

#define NAMESPACE_MAX 63

struct belay {
    struct driver_config config; /* the driver borrows it */
    struct settings settings;    /* the URL's over the caller's options */
    struct driver *driver;
    struct store *store;
    struct space *space; /* the store's own */
    char ns[NAMESPACE_MAX + 1];
};

#endif /* API_HANDLE_H */
