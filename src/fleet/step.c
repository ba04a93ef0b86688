#include "fleet/step.h"

static const char *const names[FLEET_STEPS] = {
    [STEP_CREATE_MADE] = "create_made",       [STEP_CREATE_FILLED] = "create_filled",
    [STEP_CREATE_LINKED] = "create_linked",   [STEP_JOIN_TAKEN] = "join_taken",
    [STEP_JOIN_LOCKED] = "join_locked",       [STEP_JOIN_FILLED] = "join_filled",
    [STEP_JOIN_KEPT] = "join_kept",           [STEP_JOIN_LIVE] = "join_live",
    [STEP_LEAVE_MARKED] = "leave_marked",     [STEP_LEAVE_SWEPT] = "leave_swept",
    [STEP_LEAVE_FREED] = "leave_freed",       [STEP_INTERN_TAKEN] = "intern_taken",
    [STEP_INTERN_FILLED] = "intern_filled",   [STEP_INTERN_LINKED] = "intern_linked",
    [STEP_INTERN_ONLINE] = "intern_online",   [STEP_RETIRE_FROZEN] = "retire_frozen",
    [STEP_RETIRE_MARKED] = "retire_marked",   [STEP_RETIRE_CUT] = "retire_cut",
    [STEP_RETIRE_CLEARED] = "retire_cleared", [STEP_RETIRE_FREED] = "retire_freed",
    [STEP_CLAIM_FOUND] = "claim_found",       [STEP_CLAIM_REVOKED] = "claim_revoked",
    [STEP_CLAIM_NOTED] = "claim_noted",       [STEP_CLAIM_RECORD] = "claim_record",
    [STEP_CLAIM_TAKEN] = "claim_taken",       [STEP_CLAIM_TOKEN] = "claim_token",
    [STEP_CLAIM_DEADLINE] = "claim_deadline", [STEP_CLAIM_LOGGED] = "claim_logged",
    [STEP_CLAIM_CHECKED] = "claim_checked",   [STEP_RENEW_READ] = "renew_read",
    [STEP_RENEW_SET] = "renew_set",           [STEP_RELEASE_LOGGED] = "release_logged",
    [STEP_RELEASE_FREED] = "release_freed",   [STEP_RELEASE_WOKEN] = "release_woken",
    [STEP_FORCE_REVOKED] = "force_revoked",   [STEP_FORCE_NOTED] = "force_noted",
    [STEP_FORCE_FREED] = "force_freed",       [STEP_WAIT_MARKED] = "wait_marked",
    [STEP_LANE_MARKED] = "lane_marked",       [STEP_LANE_WRITTEN] = "lane_written",
    [STEP_LANE_COMMITTED] = "lane_committed", [STEP_LANE_ADVANCED] = "lane_advanced",
    [STEP_LARGE_MARKED] = "large_marked",     [STEP_LARGE_WRITTEN] = "large_written",
    [STEP_ORDER_SET] = "order_set",           [STEP_ORDER_ADVANCED] = "order_advanced",
    [STEP_SWEEP_DEAD] = "sweep_dead",         [STEP_SWEEP_BEGUN] = "sweep_begun",
    [STEP_SWEEP_ENTRY] = "sweep_entry",       [STEP_SWEEP_FREED] = "sweep_freed",
    [STEP_RESET_EPOCH] = "reset_epoch",       [STEP_RESET_ENTRY] = "reset_entry",
    [STEP_RESET_RING] = "reset_ring",         [STEP_NOTIFY_RAISED] = "notify_raised",
    [STEP_NOTIFY_MARKED] = "notify_marked",   [STEP_ARENA_TAKEN] = "arena_taken",
    [STEP_ARENA_WRITTEN] = "arena_written",   [STEP_KIND_LINKED] = "kind_linked",
    [STEP_BATCH_MARKED] = "batch_marked",     [STEP_CACHE_TAKEN] = "cache_taken",
    [STEP_CACHE_CHUNK] = "cache_chunk",       [STEP_CACHE_WRITTEN] = "cache_written",
    [STEP_CACHE_LIVE] = "cache_live",         [STEP_CACHE_ENDED] = "cache_ended",
    [STEP_CACHE_LOGGED] = "cache_logged",
};

const char *fleet_step_name(unsigned step)
{
    return step < FLEET_STEPS ? names[step] : NULL;
}
