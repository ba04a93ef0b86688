/* A plan is one call of one function: it is checked there before it is written.  What the
 * function checks by writing it comes last among the checks, and is taken back by itself
 * when it is refused; whatever is written behind that stays.  A server that is out of
 * memory, a replica, or cannot write its log refuses the call or its first write.  The one
 * thing that nobody can ask before is whether the user may use each command: whoever may
 * write rows must also have the rights of the other writing commands. */
#include "store/drivers/valkey/shapes.h"
#include "store/refuse.h"

#include <stdalign.h>

#define ROOM 8192 /* for most plans of one thing */

/* --- refusals: what is stored, and refuse.h says what that means (rule 3) --- */

static const struct vk_reply no_reply = { .kind = VK_NIL };

static const struct vk_reply *sub_of(const struct vk_reply *r, size_t i)
{
    return r->kind == VK_ARRAY && i < r->n ? &r->sub[i] : &no_reply;
}

static bool is_rank_effect(const struct effect *e)
{
    return e->kind == EFFECT_RANK_ADD || e->kind == EFFECT_RANK_MOVE ||
           e->kind == EFFECT_RANK_REMOVE;
}

/* Where the member of a rank effect stands, as the function found it. */
static const struct vk_reply *stored_rank(const struct vk_plan *p, size_t i,
                                          const struct vk_reply *scores)
{
    const struct vk_group *g = p->spots[i].group;
    enum effect_kind kind = p->plan->effects[i].kind;
    size_t at = p->spots[i].at;

    if (kind != EFFECT_RANK_ADD)
        at += g->adds.n / 2;
    if (kind == EFFECT_RANK_REMOVE)
        at += g->moves.n / 2;
    return sub_of(sub_of(scores, g->number), at);
}

static belay_rc refuse_one_rank(const struct vk_plan *p, size_t i,
                                const struct vk_reply *scores, struct belay_error *err)
{
    const struct vk_reply *score = stored_rank(p, i, scores);
    int64_t rank = 0;
    bool found = score->kind == VK_STRING && vk_rank(score->b, &rank);

    return refuse_rank(&p->plan->effects[i], found ? &rank : NULL, err);
}

static belay_rc refuse_one_log(struct vk_plan *p, size_t i,
                               const struct vk_reply *tails, struct belay_error *err)
{
    const struct effect *e = &p->plan->effects[i];
    struct bytes key = vk_key(&p->keys, VK_LOG, e->log.stream);
    uint64_t major = 0, minor = 0;
    int64_t tail = 0;
    size_t at = 0;

    if (p->keys.no_memory)
        return err_no_memory(err, "a commit");
    if (log_needs_tail(p->plan, i, &tail)) {
        for (const struct vk_tail *t = p->tails; t && !bytes_eq(t->key, key);
             t = t->next)
            at++;
        if (vk_id(sub_of(tails, at)->b, &major, &minor))
            tail = (int64_t)major;
    }
    return refuse_log(e, tail, err);
}

static belay_rc refuse_shapes(struct vk_plan *p, const struct vk_reply *reply,
                              struct belay_error *err)
{
    const struct vk_reply *scores = sub_of(reply, 1), *tails = sub_of(reply, 2);
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < p->plan->n_effects && rc == BELAY_OK; i++) {
        if (is_rank_effect(&p->plan->effects[i]))
            rc = refuse_one_rank(p, i, scores, err);
        else if (p->plan->effects[i].kind == EFFECT_LOG_APPEND)
            rc = refuse_one_log(p, i, tails, err);
    }
    return rc ? rc
              : err_reason(err, BELAY_CORRUPT, "answer",
                           "valkey: a plan was refused without a reason");
}

/* not_found anywhere goes before out_of_range anywhere. */
static belay_rc refuse_counters(struct vk_plan *p, const struct vk_reply *reply,
                                struct plan_result *result, struct belay_error *err)
{
    const struct vk_reply *found = sub_of(reply, 1);
    belay_rc range = BELAY_OK;
    size_t n = 0;

    for (size_t i = 0; i < p->plan->n_effects; i++) {
        const struct effect *e = &p->plan->effects[i];
        int64_t stored = 0, old = 0;
        if (!is_counter_effect(e))
            continue;
        const struct vk_reply *text = sub_of(found, n++);
        bool there = text->kind == VK_STRING && bytes_to_i64(text->b, &stored);
        belay_rc rc =
            refuse_counter(p->plan, result, i, there ? &stored : NULL, &old, err);
        if (rc)
            return rc;
        if (!range)
            range = counter_add(e, old, &result->effects[i].value, err);
    }
    return range ? range
                 : err_reason(err, BELAY_CORRUPT, "answer",
                              "valkey: a plan was refused without a reason");
}

/* --- answers --- */

static belay_rc bad_answer(struct belay_error *err)
{
    return err_set(err, BELAY_UNKNOWN_OUTCOME,
                   "valkey: a commit had an answer that nobody understands");
}

/* The values of counters, then the positions in feeds. */
static belay_rc take_results(const struct vk_plan *p, const struct vk_reply *values,
                             struct plan_result *result, struct belay_error *err)
{
    size_t n = 0;

    for (size_t i = 0; i < p->plan->n_effects; i++) {
        struct effect_result *out = &result->effects[i];
        if (!is_counter_effect(&p->plan->effects[i]))
            continue;
        if (!bytes_to_i64(sub_of(values, n++)->b, &out->value))
            return bad_answer(err);
        out->known = true;
    }
    for (size_t i = 0; i < p->plan->n_effects; i++) {
        uint64_t epoch = 0, at = 0;
        if (p->plan->effects[i].kind != EFFECT_FEED_APPEND)
            continue;
        if (!vk_id(sub_of(values, n++)->b, &epoch, &at))
            return bad_answer(err);
        result->effects[i].pos = (struct feed_pos){ (int64_t)epoch, (int64_t)at, 0 };
        result->effects[i].known = true;
    }
    return BELAY_OK;
}

static belay_rc conclude(struct vk_plan *p, const struct vk_reply *reply,
                         struct plan_result *result, struct belay_error *err)
{
    struct bytes word = sub_of(reply, 0)->b;

    if (reply->kind == VK_ERROR)
        return vk_reply_error(reply, "commit", err);
    result->told = p->wake.n > 0;
    if (reply->kind == VK_INTEGER && reply->i == 0)
        return BELAY_OK;
    if (reply->kind == VK_INTEGER && reply->i > 0 &&
        (size_t)reply->i <= p->plan->n_guards) {
        result->conflict = true;
        result->failed_guard = p->order[reply->i - 1];
        return BELAY_OK;
    }
    if (reply->kind == VK_INTEGER && reply->i < 0 &&
        (uint64_t)-reply->i <= p->plan->n_scans) {
        result->conflict = true;
        result->failed_guard = GUARD_NONE;
        result->failed_scan = (size_t)-reply->i - 1;
        return BELAY_OK;
    }
    if (bytes_eq(word, bytes_str("done")))
        return take_results(p, sub_of(reply, 1), result, err);
    if (bytes_eq(word, bytes_str("shapes")))
        return refuse_shapes(p, reply, err);
    if (bytes_eq(word, bytes_str("counters")))
        return refuse_counters(p, reply, result, err);
    return bad_answer(err);
}

/* --- plans without effects are only checked (rule 4) --- */

static void ask_versions(struct vk_plan *p, struct vk_request *r)
{
    size_t n = p->plan->n_guards;

    if (n > 1)
        vk_command(r, 1, "MULTI");
    for (size_t i = 0; i < n; i++) {
        vk_command(r, 3, "HGET");
        vk_arg(r, vk_key_of_row(&p->keys, &p->plan->guards[i].ref));
        vk_arg_str(r, "ver");
    }
    if (n > 1)
        vk_command(r, 1, "EXEC");
    r->no_memory |= p->keys.no_memory;
}

static belay_rc check_version(const struct vk_plan *p, size_t i,
                              const struct vk_reply *reply, struct plan_result *result,
                              struct belay_error *err)
{
    int64_t ver = 0;

    if (reply->kind == VK_ERROR)
        return vk_reply_error(reply, "commit", err);
    if (reply->kind == VK_STRING && !bytes_to_i64(reply->b, &ver))
        return err_reason(err, BELAY_CORRUPT, "row", "valkey: a version is no number");
    if (ver != p->plan->guards[i].ver && !result->conflict) {
        result->conflict = true;
        result->failed_guard = i;
    }
    return BELAY_OK;
}

static belay_rc confirm(struct vk_plan *p, struct plan_result *result,
                        struct belay_error *err)
{
    size_t n = p->plan->n_guards;
    enum vk_reached reached;
    struct vk_request r;

    vk_layout_init(&p->keys, p->s, p->plan->ns, p->arena);
    vk_request_init(&r, p->arena);
    ask_versions(p, &r);
    struct vk_reply *replies = arena_zalloc(p->arena, r.n_commands, sizeof(*replies));
    if (!replies || r.no_memory)
        return err_no_memory(err, "a commit");
    belay_rc rc = vk_call(p->s, p->plan->ns, &r, VK_AGAIN, replies, &reached, err);
    const struct vk_reply *last = replies + r.n_commands - 1;
    if (rc == BELAY_OK && last->kind == VK_ERROR)
        return vk_reply_error(last, "commit", err);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = check_version(p, i, n > 1 ? sub_of(last, i) : last, result, err);
    return rc;
}

/* --- all of it --- */

static belay_rc run(struct vk_plan *p, struct vk_attempt *at,
                    struct plan_result *result, struct belay_error *err)
{
    enum vk_reached reached = VK_NOTHING_SENT;
    struct vk_reply reply = { .kind = VK_NIL };
    struct vk_request r;
    belay_rc rc = vk_plan_make(p, err);

    if (rc)
        return rc;
    vk_request_init(&r, p->arena);
    vk_plan_send(p, at, &r);
    if (r.no_memory)
        return err_no_memory(err, "a commit");
    struct belay_error why = { .code = 0 };
    r.only = at->generation;
    r.publishes = p->wake.n > 0;
    rc = vk_call(p->s, p->plan->ns, &r, VK_ONCE, &reply, &reached, &why);
    if (rc && reached == VK_NOTHING_SENT && strcmp(why.reason, "life") == 0) {
        result->conflict = true; /* what was read is of another life */
        return BELAY_OK;
    }
    if (rc && err)
        *err = why;
    if (rc && reached == VK_NOTHING_SENT)
        return rc;
    if (rc)
        return err_reason(err, BELAY_UNKNOWN_OUTCOME, why.reason, "%s", why.message);
    if (reply.kind != VK_ERROR && reply.i >= 0)
        at->holds =
            NULL; /* given back, whatever the answer is, but for a scan's sake */
    return conclude(p, &reply, result, err);
}

belay_rc vk_commit(struct driver *d, void *attempt, const struct plan *plan,
                   struct plan_result *result, struct belay_error *err)
{
    alignas(max_align_t) uint8_t room[ROOM];
    CLEANUP(arena_release) struct belay_arena arena;
    struct vk_plan p = { .s = (struct vk_store *)d, .plan = plan, .arena = &arena };

    arena_init_in(&arena, room, sizeof(room));
    if (plan->n_effects == 0)
        return confirm(&p, result, err);
    return run(&p, attempt, result, err);
}
