/* rig.h - a store on a database file of its own, opened and closed many times. */
#ifndef TESTS_CRASH_RIG_H
#define TESTS_CRASH_RIG_H

#include "fakes.h"
#include "store/drivers/sqlite/impl.h"
#include "store/txn.h"
#include "tap.h"
#include "things.h"

struct rig {
    char dir[128], path[160];
    const struct schema *schema;
    struct belay_clock clock;
    struct fake_random random;
    struct driver *driver;
    struct store *store;
    struct space *space; /* "default" */
    struct belay_arena arena;
    struct belay_error err;
};

/* A new directory with no file in it, schema_things, the system's clock.  Ends the
 * program when there is none to be had. */
void rig_init(struct rig *r);
void rig_release(struct rig *r); /* closes, and removes the directory */

/* Another file in the same directory. */
void rig_name(struct rig *r, const char *name);

belay_rc rig_open(struct rig *r);
void rig_close(struct rig *r); /* takes one that is not open */

/* One transaction; resets the arena first. */
belay_rc rig_run(struct rig *r, txn_body *body, void *arg);

/* The driver's own state. */
struct sqlite_store *rig_sqlite(struct rig *r);

/* From within a body, so in the group's turn: a checkpoint follows this commit. */
void rig_checkpoint_soon(struct rig *r);

/* What PRAGMA integrity_check says, through a connection of SQLite's own: "ok". */
const char *rig_integrity(const struct rig *r, char out[128]);

/* The dump of "default", NUL-terminated; failed when there is none. */
struct buf rig_dump(struct rig *r);

/* --- command lines --- */

/* The number after `name` among the arguments, which are taken out; else `otherwise`.
 */
uint64_t option_u64(int *argc, char **argv, const char *name, uint64_t otherwise);

/* Microseconds of the monotonic clock; milliseconds of the machine's time. */
int64_t now_us(void);
int64_t wall_ms(void);

#define CHECK_RC(t, got, want)                             \
    tap_check_str((t), belay_error_info((int)(got))->name, \
                  belay_error_info((int)(want))->name, #got, __FILE__, __LINE__)

#endif /* TESTS_CRASH_RIG_H */
