/* op_fleet.h - what the operations on fleets share. */
#ifndef API_OP_FLEET_H
#define API_OP_FLEET_H

#include <belay/fleet.h>

#include "api/op_args.h"

/* fits CLEANUP */
void op_fleet_leavep(struct belay_fleet **f);

/* Looks at the fleet that the argument `arg` names; nothing in it changes by that. */
MUST_USE belay_rc op_fleet_observe(const struct op_call *call, const char *arg,
                                   struct belay_fleet **out, struct belay_error *err);

/* Becomes a member of it.  flags: enum belay_fleet_flag. */
MUST_USE belay_rc op_fleet_join(const struct op_call *call, const char *arg,
                                uint32_t flags, struct belay_fleet **out,
                                struct belay_error *err);

/* Numbers of 64 bits are texts: readers of JSON cut them at 53. */
int op_set_u64(json_t *object, const char *name, uint64_t n);
int op_set_netid(json_t *object, const char *name, uint64_t id);

/* A subject as it stands in the table of contests. */
json_t *op_json_contest(const struct belay_contest_entry *entry);

/* Pauses between two looks, FLEET_LOOK_US at most; `cancelled` when told to stop. */
#define FLEET_LOOK_US 50000
MUST_USE belay_rc op_fleet_pause(const struct op_call *call, struct belay_error *err);

#endif /* API_OP_FLEET_H */
