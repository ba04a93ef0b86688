/* vk.h - stores on a Valkey or Redis server, opened as a case wants them. */
#ifndef TESTS_VALKEY_VK_H
#define TESTS_VALKEY_VK_H

#include "deeds.h"
#include "faults.h"
#include "harness.h"
#include "redisserver.h"
#include "store/drivers/valkey.h"
#include "testserver.h"

/* What harness_open opens with; set by a case before that.  vk_setup_reset gives a server
 * and the driver's defaults. */
struct vk_setup {
    const char *home;              /* of the server itself: keys are taken away there */
    const char *url;               /* scheme, host and port only */
    struct valkey_options options; /* but for host, port and prefix */
};
extern struct vk_setup vk_setup;
void vk_setup_reset(const char *url);

/* For tap_main: the driver that harness_open finds. */
extern const struct test_driver vk_driver;
/* The same for faults_main and killed_main. */
extern const struct fault_target vk_target;

/* Opens with vk_setup, with the prefix that the word is, the system's clock and chance. */
belay_rc vk_open(const char *prefix, struct driver **out, struct belay_error *err);

/* A pause of the real time. */
void vk_pause_ms(int64_t ms);

#endif /* TESTS_VALKEY_VK_H */
