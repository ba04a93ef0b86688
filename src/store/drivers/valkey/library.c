/* The functions of library.lua on a server: looked for, loaded, loaded again. */
#include "store/drivers/valkey/net.h"

#define NAME "belay6"

int64_t vk_library_revision(struct bytes text)
{
    static const char mark[] = "\n-- revision ";
    const size_t n = sizeof(mark) - 1;

    for (size_t i = 0; i + n < text.len; i++) {
        size_t end = i + n;
        int64_t revision = 0;

        if (memcmp(text.ptr + i, mark, n) != 0)
            continue;
        while (end < text.len && text.ptr[end] >= '0' && text.ptr[end] <= '9')
            end++;
        if (bytes_to_i64(bytes_of(text.ptr + i + n, end - i - n), &revision))
            return revision;
    }
    return 0;
}

static void add_load(struct vk_request *r)
{
    vk_command(r, 4, "FUNCTION");
    vk_arg_str(r, "LOAD");
    vk_arg_str(r, "REPLACE");
    vk_arg_str(r, vk_library_text);
}

static void add_look(struct vk_request *r)
{
    vk_command(r, 5, "FUNCTION");
    vk_arg_str(r, "LIST");
    vk_arg_str(r, "LIBRARYNAME");
    vk_arg_str(r, NAME);
    vk_arg_str(r, "WITHCODE");
}

/* The text that a server has, out of what FUNCTION LIST says: a list of libraries, each of
 * names and values. */
static struct bytes stored_text(const struct vk_reply *list)
{
    const struct vk_reply *library = list->n > 0 ? &list->sub[0] : NULL;

    if (list->kind != VK_ARRAY || !library || library->kind != VK_ARRAY)
        return bytes_of(NULL, 0);
    for (size_t i = 0; i + 1 < library->n; i += 2) {
        if (bytes_eq(library->sub[i].b, bytes_str("library_code")))
            return library->sub[i + 1].b;
    }
    return bytes_of(NULL, 0);
}

/* Whether what the server has is to be replaced by ours. */
static bool is_wanting(const struct vk_reply *list)
{
    struct bytes ours = bytes_str(vk_library_text), theirs = stored_text(list);

    if (list->kind != VK_ARRAY)
        return false; /* not for us to see */
    return !bytes_eq(ours, theirs) &&
           vk_library_revision(ours) >= vk_library_revision(theirs);
}

/* Who may not load works with what others have loaded. */
static belay_rc judge_load(const struct vk_reply *reply, struct belay_error *err)
{
    if (reply->kind != VK_ERROR || vk_reply_is_error(reply, "NOPERM") ||
        vk_reply_is_error(reply, "READONLY") || vk_reply_is_error(reply, "OOM"))
        return BELAY_OK;
    if (vk_reply_is_error(reply, "LOADING"))
        return vk_refused(reply, err);
    return vk_reply_error(reply, "loading the functions", err);
}

belay_rc vk_library_check(struct vk_conn *c, int64_t deadline_us,
                          struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;

    vk_request_init(&r, &arena);
    add_look(&r);
    belay_rc rc = vk_conn_call(c, &r, &reply, deadline_us, err);
    if (rc || !is_wanting(&reply))
        return rc;
    vk_request_init(&r, &arena);
    add_load(&r);
    reply = (struct vk_reply){ .kind = VK_NIL };
    rc = vk_conn_call(c, &r, &reply, deadline_us, err);
    return rc ? rc : judge_load(&reply, err);
}

belay_rc vk_library_load(struct vk_node *n, int64_t deadline_us,
                         struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;

    vk_request_init(&r, &arena);
    add_look(&r); /* somebody may have been faster, and newer */
    belay_rc rc = vk_node_ask(n, &r, &reply, deadline_us, err);
    if (rc || (reply.kind == VK_ARRAY && !is_wanting(&reply)))
        return rc;
    vk_request_init(&r, &arena);
    add_load(&r);
    rc = vk_node_ask(n, &r, &reply, deadline_us, err);
    if (rc || reply.kind != VK_ERROR)
        return rc;
    if (!vk_reply_is_error(&reply, "NOPERM"))
        return vk_reply_error(&reply, "loading the functions", err);
    return err_reason(
        err, BELAY_DENIED, "functions",
        "valkey: the functions are not on the server, and the user may not "
        "load them: open the store once as one who may (belay doctor)");
}
