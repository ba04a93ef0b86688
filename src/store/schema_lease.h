/* schema_lease.h - the columns of a lease, for the row types that have one. */
#ifndef STORE_SCHEMA_LEASE_H
#define STORE_SCHEMA_LEASE_H

#include "store/schema.h"

/* Declared once: in the row type whose first column of it is at `base`. */
/* clang-format off */
#define LEASE_AT(base) \
    [(base) + LEASE_OWNER] = { "lease_owner", VALUE_TEXT, false }, \
    [(base) + LEASE_TOKEN] = { "lease_token", VALUE_TEXT, false }, \
    [(base) + LEASE_ID] = { "lease_id", VALUE_TEXT, false }, \
    [(base) + LEASE_FENCE] = { "lease_fence", VALUE_I64, false }, \
    [(base) + LEASE_CLAIMED_AT_MS] = { "lease_claimed_at_ms", VALUE_I64, false }, \
    [(base) + LEASE_EXPIRES_AT_MS] = { "lease_expires_at_ms", VALUE_I64, false }, \
    [(base) + LEASE_PRINCIPAL] = { "lease_principal", VALUE_TEXT, false }, \
    [(base) + LEASE_HOST] = { "lease_host", VALUE_TEXT, false }, \
    [(base) + LEASE_BOOT] = { "lease_boot", VALUE_TEXT, false }, \
    [(base) + LEASE_PID] = { "lease_pid", VALUE_I64, false }, \
    [(base) + LEASE_PROCESS_START] = { "lease_process_start", VALUE_I64, false }, \
    [(base) + LEASE_FLEET_MEMBER] = { "lease_fleet_member", VALUE_TEXT, false },
/* clang-format on */

#endif /* STORE_SCHEMA_LEASE_H */
