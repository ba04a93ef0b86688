/* drivers.h - the drivers that tests run on, by name.
 *
 * A new driver is one line in drivers.c; every test that takes `--driver` then runs on
 * it, and none of them knows which one it is.
 */
#ifndef TESTS_DRIVERS_H
#define TESTS_DRIVERS_H

#include "store/driver.h"

struct test_driver {
    const char *name;
    /* A store with nothing in it.  dir is a directory of its own; a driver of a server
     * takes its last part for a name that nobody else uses. */
    belay_rc (*open)(const struct driver_config *config, const char *dir,
                     struct driver **out, struct belay_error *err);
    bool durable; /* what is acknowledged is there after it is opened again in dir */
    bool hides;   /* picks hide (rule 6: not needed where bodies cannot meet) */
    bool waits;   /* a commit that touches what is picked waits for the hold's end */
    /* Takes away what the driver keeps elsewhere than in dir; NULL: nothing. */
    void (*forget)(const char *dir);
};

extern const struct test_driver test_drivers[];
extern const size_t n_test_drivers;

/* NULL when there is none of that name. */
const struct test_driver *test_driver_find(const char *name);

#endif /* TESTS_DRIVERS_H */
