/* A log that was cut off is written anew before anything is added to it.
 *
 * A server that finds the end of its append-only file torn drops what is not whole and goes
 * on (aof-load-truncated).  Where the tear is inside a transaction, 7.0 keeps the beginning
 * of that transaction, and the next start takes what was added behind it, acknowledged and
 * on disk, for the rest.  Nobody can ask whether that has happened, so the log is rewritten
 * once after every start. */
#include "store/drivers/valkey/net.h"

#define PATIENCE_US ((int64_t)2000000)
#define LOOK_AGAIN_US ((int64_t)2000)

/* INFO of the part about the log; false: no answer. */
static bool ask(struct vk_conn *c, struct belay_arena *a, int64_t deadline_us,
                struct bytes *out)
{
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;

    vk_request_init(&r, a);
    vk_command(&r, 2, "INFO");
    vk_arg_str(&r, "persistence");
    if (vk_conn_call(c, &r, &reply, deadline_us, NULL) || reply.kind != VK_STRING)
        return false;
    *out = reply.b;
    return true;
}

static bool says(struct bytes info, const char *name, const char *value)
{
    return bytes_eq(vk_info(info, name), bytes_str(value));
}

/* Whether it was never rewritten since the server was started. */
static bool is_old(struct bytes info)
{
    return says(info, "aof_enabled", "1") && says(info, "aof_rewrites", "0");
}

static bool is_under_way(struct bytes info)
{
    return says(info, "aof_rewrite_in_progress", "1") ||
           says(info, "aof_rewrite_scheduled", "1");
}

belay_rc vk_renew_log(struct vk_conn *c, struct bytes info, int64_t deadline_us,
                      struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_clock clock = clock_system();
    int64_t until_us = vk_now_us() + PATIENCE_US;
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;

    if (!is_old(info))
        return BELAY_OK;
    vk_request_init(&r, &arena);
    vk_command(&r, 1, "BGREWRITEAOF");
    belay_rc rc =
        is_under_way(info) ? BELAY_OK : vk_conn_call(c, &r, &reply, deadline_us, err);
    /* Who may not ask for it, or waits too long, goes on: doctor tells. */
    while (rc == BELAY_OK && reply.kind != VK_ERROR && vk_now_us() < until_us) {
        clock.sleep_us(clock.arg, LOOK_AGAIN_US);
        arena_reset(&arena);
        if (!ask(c, &arena, deadline_us, &info) || !is_old(info) || !is_under_way(info))
            break;
    }
    return rc;
}
