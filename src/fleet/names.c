#include "fleet/names.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "fleet/impl.h"

belay_rc fleet_names(const char *dir, fleet_name_fn *each, void *arg,
                     struct belay_error *err)
{
    char prefix[32];
    DIR *d = opendir(dir ? dir : "/dev/shm");
    const struct dirent *entry;
    belay_rc rc = BELAY_OK;

    if (!d)
        return io_error(err, "read the directory of fleets");
    /* As segment.c names them; rings of a fleet have a dot behind its name. */
    (void)snprintf(prefix, sizeof(prefix), "belay-%u-", (unsigned)geteuid());
    while (rc == BELAY_OK && (entry = readdir(d)) != NULL) {
        const char *name = entry->d_name + strlen(prefix);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            fleet_name_is_valid(name))
            rc = each(arg, name, err);
    }
    (void)closedir(d);
    return rc;
}
