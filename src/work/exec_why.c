/* Why an execution is not running: one reason of a closed set, in words, and when that
 * may change. */
#include "work/exec_show.h"

#define AHEAD_MAX 1000

struct asking {
    struct bytes id;

    /* Of one run of the body. */
    struct exec e;
    struct bytes requires;
    int64_t now_ms;
    struct belay_why out;
    struct buf detail, waits_for;
};

/* --- words --- */

static void say(struct buf *out, const char *before, struct bytes b, const char *after)
{
    buf_append_str(out, before);
    buf_append(out, b);
    buf_append_str(out, after);
}

static void say_moment(struct buf *out, const char *before, int64_t ms)
{
    char text[MOMENT_MAX];

    moment_text(text, ms);
    buf_append_str(out, before);
    buf_append_str(out, text);
}

static void say_worker_of_lane(struct asking *q, struct buf *out)
{
    say(out, "a worker of lane ", exec_bytes(&q->e, EXEC_LANE), "");
    if (q->requires.len > 0)
        say(out, " that has ", q->requires, "");
}

/* --- each place in turn --- */

static void why_done(struct asking *q)
{
    struct bytes detail = exec_bytes(&q->e, EXEC_DETAIL);

    buf_printf(&q->detail, "it has ended: %s",
               vector_name(BELAY_DIM_STATE, (int)q->out.state));
    if (detail.len > 0)
        say(&q->detail, " (", detail, ")");
}

/* The time of a column may be what comes first. */
static void comes_at(struct asking *q, unsigned column)
{
    int64_t at_ms = exec_i64(&q->e, column, TIME_NONE);

    if (at_ms != TIME_NONE &&
        (q->out.next_at_ms == TIME_NONE || at_ms < q->out.next_at_ms))
        q->out.next_at_ms = at_ms;
}

static void why_leased(struct asking *q)
{
    int64_t until = exec_i64(&q->e, EXEC_LEASE + LEASE_EXPIRES_AT_MS, TIME_NONE);

    q->out.next_at_ms = until;
    comes_at(q, EXEC_TIMEOUT_AT_MS);
    say(&q->detail, "it is running: worker ",
        exec_bytes(&q->e, EXEC_LEASE + LEASE_OWNER), " holds it");
    say_moment(&q->detail, until > q->now_ms ? " until " : ", past due since ", until);
    say(&q->waits_for, "worker ", exec_bytes(&q->e, EXEC_LEASE + LEASE_OWNER), "");
}

static void why_ready(struct asking *q)
{
    int64_t until = exec_i64(&q->e, EXEC_GRANT_UNTIL_MS, TIME_NONE);

    if (q->e.vector.phase == BELAY_PHASE_ACTIVE) {
        bool revoked = q->e.vector.ownership == BELAY_LEASE_REVOKED;
        say(&q->detail, "worker ", exec_bytes(&q->e, EXEC_LEASE + LEASE_OWNER),
            revoked ? " had its lease revoked; " : " did not renew its lease; ");
    }
    if (until != TIME_NONE) {
        q->out.next_at_ms = until;
        say(&q->detail, "it is granted to worker ",
            exec_bytes(&q->e, EXEC_GRANT_WORKER), "");
        say_moment(&q->detail, " until ", until);
        say(&q->waits_for, "worker ", exec_bytes(&q->e, EXEC_GRANT_WORKER), "");
        return;
    }
    buf_append_str(&q->detail, "it waits for ");
    say_worker_of_lane(q, &q->detail);
    say_worker_of_lane(q, &q->waits_for);
}

static void why_delayed(struct asking *q)
{
    int64_t until = exec_i64(&q->e, EXEC_DELAY_UNTIL_MS, TIME_NONE);
    bool retry = q->e.vector.blocking == BELAY_WAITING_FOR_RETRY_BACKOFF;

    q->out.next_at_ms = until;
    if (retry)
        buf_printf(&q->detail, "attempt %lld failed; the next one may begin at ",
                   (long long)(exec_i64(&q->e, EXEC_ATTEMPTS, 1) - 1));
    else
        buf_append_str(&q->detail, "it is delayed until ");
    say_moment(&q->detail, "", until);
    if (until <= q->now_ms) {
        buf_append_str(&q->detail, ", which has passed: it waits for ");
        say_worker_of_lane(q, &q->detail);
    }
    say_moment(&q->waits_for, "the time ", until);
}

static void why_held(struct asking *q)
{
    static const char *const things[] = {
        [BELAY_BLOCKING_NONE] = "something that is not known",
        [BELAY_WAITING_FOR_WORKER] = "a worker",
        [BELAY_WAITING_FOR_RETRY_BACKOFF] = "the time of its retry",
        [BELAY_WAITING_FOR_RESUME_DELAY] = "the time when it goes on",
        [BELAY_WAITING_FOR_DELAY] = "the end of its delay",
        [BELAY_WAITING_FOR_SIGNAL] = "a signal",
        [BELAY_WAITING_FOR_APPROVAL] = "an approval",
        [BELAY_WAITING_FOR_CALLBACK] = "a callback",
        [BELAY_WAITING_FOR_TOOL_RESULT] = "the result of a tool",
        [BELAY_WAITING_FOR_CHILDREN] = "what it depends on",
        [BELAY_WAITING_FOR_BUDGET] = "a budget",
        [BELAY_WAITING_FOR_QUOTA] = "a quota",
        [BELAY_WAITING_FOR_CAPABLE_WORKER] = "a worker that is capable of it",
        [BELAY_WAITING_FOR_LOCALITY_MATCH] = "a worker in the right place",
        [BELAY_PAUSED_BY_OPERATOR] = "an operator who resumes it",
        [BELAY_PAUSED_BY_POLICY] = "a policy that lets it go on",
        [BELAY_PAUSED_BY_FLOW_CANCEL] = "the end of its flow",
    };
    struct bytes detail = exec_bytes(&q->e, EXEC_DETAIL);
    const char *thing = things[q->e.vector.blocking];

    buf_printf(&q->detail, "it waits for %s", thing);
    if (detail.len > 0)
        say(&q->detail, " (", detail, ")");
    buf_append_str(&q->waits_for, thing);
}

/* --- how much is ahead --- */

/* The ready indexes of its lane whose work everybody can do who can do this: what such a
 * worker takes first. */
static belay_rc rival_indexes(struct txn *t, const struct asking *q, struct bytes **out,
                              size_t *out_n)
{
    CLEANUP(buf_release) struct buf name = { .ptr = NULL };
    struct bytes lane = exec_bytes(&q->e, EXEC_LANE);
    struct value prefix = value_text(lane);
    const struct fetch fetch = { &row_route, &prefix };
    struct hits routes;

    say(&name, ROUTE_INDEX, lane, "");
    const struct bytes index = buf_view(&name);
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .max_rank = RANK_MAX,
                               .limit = ROUTES_MAX,
                               .fetch = &fetch,
                               .n_fetch = 1 };
    belay_rc rc = name.failed ? err_no_memory(txn_error(t), "an index")
                              : txn_scan(t, &scan, &routes);
    if (rc)
        return rc;
    struct bytes *all = arena_zalloc(txn_arena(t), routes.n, sizeof(*all));
    if (!all)
        return err_no_memory(txn_error(t), "indexes");
    *out_n = 0;
    for (size_t i = 0; i < routes.n; i++) {
        const struct row *route = routes.hit[i].rows[0];
        if (!route || !capability_fits(row_bytes(route, ROUTE_REQUIRES), q->requires))
            continue;
        if (!lane_index(lane, routes.hit[i].member, txn_arena(t), &all[(*out_n)++]))
            return err_no_memory(txn_error(t), "indexes");
    }
    *out = all;
    return BELAY_OK;
}

static belay_rc count_ahead(struct txn *t, struct asking *q)
{
    struct scan scan = { .min_rank = -RANK_MAX, .limit = AHEAD_MAX + 1 };
    struct bytes *indexes = NULL;
    struct hits hits;
    belay_rc rc = rival_indexes(t, q, &indexes, &scan.n_indexes);

    scan.indexes = indexes;
    scan.max_rank = exec_i64(&q->e, EXEC_RANK, 0);
    if (rc == BELAY_OK)
        rc = txn_scan(t, &scan, &hits);
    if (rc)
        return rc;
    size_t n = 0;
    while (n < hits.n && n < AHEAD_MAX && !bytes_eq(hits.hit[n].member, q->id))
        n++;
    q->out.ahead = (int64_t)n;
    return BELAY_OK;
}

/* --- asking --- */

static void (*const words[])(struct asking *q) = {
    [PLACE_READY] = why_ready,   [PLACE_DELAYED] = why_delayed,
    [PLACE_LEASED] = why_leased, [PLACE_HELD] = why_held,
    [PLACE_DONE] = why_done,
};

static belay_rc explain(struct txn *t, struct asking *q)
{
    enum place place = vector_place(&q->e.vector);

    q->out = (struct belay_why){ .state = (int32_t)vector_state(&q->e.vector),
                                 .reason = q->e.vector.blocking,
                                 .next_at_ms = TIME_NONE,
                                 .ahead = -1 };
    buf_reset(&q->detail);
    buf_reset(&q->waits_for);
    words[place](q);
    if (q->detail.failed || q->waits_for.failed ||
        !show_text(txn_arena(t), buf_view(&q->detail), &q->out.detail) ||
        (q->waits_for.len > 0 &&
         !show_text(txn_arena(t), buf_view(&q->waits_for), &q->out.waits_for)))
        return err_no_memory(txn_error(t), "an explanation");
    if (place != PLACE_DONE)
        comes_at(q, EXEC_DEADLINE_AT_MS);
    bool stands_in_line =
        place == PLACE_READY && q->e.v[EXEC_GRANT_UNTIL_MS].kind == VALUE_NULL;
    return stands_in_line ? count_ahead(t, q) : BELAY_OK;
}

static belay_rc why_body(struct txn *t, void *arg)
{
    struct asking *q = arg;
    struct value key = value_text(q->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_now(t, &q->now_ms);

    if (rc == BELAY_OK)
        rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = exec_get(t, q->id, &q->e);
    if (rc)
        return rc;
    q->requires = rows[1] ? row_bytes(rows[1], SPEC_REQUIRES) : bytes_of(NULL, 0);
    return explain(t, q);
}

belay_rc exec_why(const struct exec_site *site, const char *execution_id,
                  struct belay_arena *a, struct belay_why *out, struct belay_error *err)
{
    struct asking q = { .id = bytes_str(execution_id) };
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, why_body, &q, &look_only, a, err);
    buf_release(&q.detail);
    buf_release(&q.waits_for);
    if (rc == BELAY_OK)
        *out = q.out;
    return rc;
}
