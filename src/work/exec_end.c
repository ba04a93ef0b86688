/* What a holder does to end an attempt: complete, fail, abort; many of them in one
 * transaction, each judged by itself. */
#include "base/hash.h"
#include "base/json.h"
#include "store/blob.h"
#include "work/epoch.h"
#include "work/exec_claim.h"

#define MESSAGE_MAX 4096
#define DETAIL_MAX ((size_t)65536)
#define REASON_MAX 1024

/* One item, made ready before the body. */
struct ending {
    belay_rc refused; /* it is not even asked: its handle is none */
    struct exec_handle handle;
    struct exec_ending how;
    struct blob_piece piece; /* of a long result */
    bool apart;
    uint64_t random;
};

struct endings {
    const struct exec_site *site;
    struct ending *item;
    size_t n;
    bool failures;         /* their spec rows are needed */
    struct claiming *next; /* NULL: nothing is claimed along with it */
    struct belay_ended *out;
};

/* --- in the body --- */

/* The rows that all items need, in one round trip with what the claim needs. */
static belay_rc load(struct txn *t, struct endings *x, struct hits hits[CLAIM_SCANS])
{
    size_t n = 0, room = 1 + 2 * x->n;
    struct row_want *wants = arena_zalloc(txn_arena(t), room, sizeof(*wants));
    const struct row **rows =
        arena_zalloc(txn_arena(t), room, sizeof(const struct row *));
    struct value *keys = arena_zalloc(txn_arena(t), x->n, sizeof(*keys));
    struct scan scans[CLAIM_SCANS];
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    if (!wants || !rows || !keys)
        return err_no_memory(txn_error(t), "completions");
    wants[n++] = (struct row_want){ &row_epoch, NULL };
    for (size_t i = 0; i < x->n; i++) {
        const struct ending *e = &x->item[i];
        if (e->refused)
            continue;
        keys[i] = value_text(e->handle.execution);
        wants[n++] = (struct row_want){ &row_execution, &keys[i] };
        if (x->failures)
            wants[n++] = (struct row_want){ &row_execution_spec, &keys[i] };
        else if (e->how.result.ptr || e->apart)
            wants[n++] = (struct row_want){ &row_execution_end, &keys[i] };
    }
    for (size_t i = 0; i < x->n; i++)
        x->item[i].how.now_ms = now_ms;
    if (rc == BELAY_OK && x->next)
        claim_scans(x->next, now_ms, scans);
    if (rc == BELAY_OK)
        rc = txn_load(t, wants, n, rows, scans, x->next ? CLAIM_SCANS : 0, hits);
    return rc;
}

/* Whether this very thing was done by this very holder before. */
static bool is_repeated(const struct exec *e, const struct ending *x, bool failure,
                        struct belay_ended *out)
{
    if (!exec_was_last(e, &x->handle))
        return false;
    if (!failure)
        return e->vector.outcome == (x->how.step == STEP_COMPLETE
                                         ? BELAY_TERMINAL_SUCCESS
                                         : BELAY_TERMINAL_CANCELLED);
    out->outcome = (int32_t)BELAY_TERMINAL_FAILURE;
    if (e->vector.outcome == BELAY_TERMINAL_FAILED)
        return true;
    out->outcome = (int32_t)BELAY_RETRY_SCHEDULED;
    out->delay_until_ms = exec_i64(e, EXEC_DELAY_UNTIL_MS, TIME_NONE);
    return e->vector.attempt == BELAY_PENDING_RETRY_ATTEMPT;
}

static belay_rc judge(struct txn *t, const struct exec *e, struct ending *x)
{
    struct value key = value_text(e->id);
    const struct row *spec;
    belay_rc rc = txn_get(t, &row_execution_spec, &key, &spec);

    if (rc == BELAY_OK && !spec)
        return exec_missing(t, bytes_str("execution_spec"), e->id);
    return rc ? rc : exec_judge_failure(t, e, spec, x->random, &x->how);
}

/* Done, or *out says why not; an error of its own ends them all. */
static belay_rc end_one(struct txn *t, struct endings *x, size_t i, int64_t epoch,
                        struct event_list *events)
{
    struct ending *one = &x->item[i];
    struct belay_ended *out = &x->out[i];
    struct exec e;
    belay_rc rc = exec_get(t, one->handle.execution, &e);

    if (rc == BELAY_OK)
        rc = exec_hold(t, &e, &one->handle, epoch);
    if (rc == BELAY_LEASE_LOST && is_repeated(&e, one, x->failures, out)) {
        out->replayed = true;
        return BELAY_OK;
    }
    if (rc == BELAY_LEASE_LOST || rc == BELAY_NOT_FOUND || rc == BELAY_CORRUPT) {
        out->code = rc; /* L4: it has changed nothing */
        out->err = *txn_error(t);
        return BELAY_OK;
    }
    if (rc == BELAY_OK && x->failures)
        rc = judge(t, &e, one);
    if (rc == BELAY_OK && one->apart)
        rc = blob_put_in(t, &one->piece, NULL);
    if (rc == BELAY_OK)
        rc = exec_finish(t, &e, &one->how, events);
    if (rc)
        return rc;
    bool retried = one->how.step == STEP_RETRY;
    out->outcome = (int32_t)(retried ? BELAY_RETRY_SCHEDULED : BELAY_TERMINAL_FAILURE);
    out->delay_until_ms = retried ? one->how.delay_until_ms : TIME_NONE;
    return BELAY_OK;
}

static belay_rc end_body(struct txn *t, void *arg)
{
    struct endings *x = arg;
    CLEANUP(event_list_release) struct event_list events;
    struct hits hits[CLAIM_SCANS];
    int64_t epoch = 0;

    event_list_init(&events, t);
    belay_rc rc = load(t, x, hits);
    if (rc == BELAY_OK)
        rc = epoch_in(t, &epoch);
    for (size_t i = 0; i < x->n && rc == BELAY_OK; i++) {
        if (x->item[i].refused)
            continue;
        x->out[i] = (struct belay_ended){ .delay_until_ms = TIME_NONE };
        rc = end_one(t, x, i, epoch, &events);
    }
    if (rc == BELAY_OK && x->next)
        rc = claim_take(t, x->next, hits, &events);
    return rc ? rc : event_flush(&events);
}

/* --- before it --- */

static belay_rc check_count(size_t n, struct belay_error *err)
{
    if (n >= 1 && n <= BELAY_WORK_MAX)
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "too_many", "items: %zu, must be 1 to %d", n,
                      BELAY_WORK_MAX);
}

static belay_rc make_room(struct endings *x, const struct exec_site *site, size_t n,
                          struct belay_arena *a, struct belay_error *err)
{
    *x = (struct endings){ .site = site, .n = n };
    belay_rc rc = check_count(n, err);
    if (rc)
        return rc;
    x->item = arena_zalloc(a, n, sizeof(*x->item));
    x->out = arena_zalloc(a, n, sizeof(*x->out));
    return x->item && x->out ? BELAY_OK : err_no_memory(err, "completions");
}

/* A handle that is none concerns its own item only. */
static void take_handle(struct endings *x, size_t i, const struct belay_handle *h)
{
    struct belay_ended *out = &x->out[i];

    *out = (struct belay_ended){ .delay_until_ms = TIME_NONE };
    out->code = handle_check(x->site, h, &x->item[i].handle, &out->err);
    x->item[i].refused = out->code;
}

static belay_rc check_result_len(size_t len, struct belay_error *err)
{
    if (len <= BELAY_PAYLOAD_MAX)
        return BELAY_OK;
    belay_rc rc = err_reason(err, BELAY_INVALID, "too_large",
                             "result: %zu bytes, at most %zu", len, BELAY_PAYLOAD_MAX);
    err_numbers(err, (int64_t)BELAY_PAYLOAD_MAX, (int64_t)len);
    return rc;
}

/* In canonical form, which may be longer than what was given. */
static belay_rc read_result(struct bytes given, struct belay_arena *a,
                            struct bytes *out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf canonical = { 0 };
    belay_rc rc = json_canonical(given, BELAY_PAYLOAD_MAX, &canonical, err);

    if (rc) {
        err_context(err, "result");
        return rc;
    }
    rc = check_result_len(canonical.len, err);
    if (rc == BELAY_OK && !arena_copy(a, buf_view(&canonical), out))
        rc = err_no_memory(err, "a result");
    return rc;
}

static belay_rc take_result(struct endings *x, size_t i,
                            const struct belay_completion *c, struct belay_arena *a,
                            struct belay_error *err)
{
    struct ending *one = &x->item[i];
    struct bytes text = bytes_of(c->result, c->result_len);

    one->how.result_is_json = c->result_is_json;
    if (!c->result)
        return BELAY_OK;
    belay_rc rc = check_result_len(c->result_len, err);
    if (rc == BELAY_OK && c->result_is_json)
        rc = read_result(text, a, &text, err);
    if (rc)
        return rc;
    one->how.result = text;
    if (text.len <= RESULT_INLINE_MAX)
        return BELAY_OK;
    one->apart = true;
    rc = blob_prepare(&one->piece, x->site->space, text, bytes_of(NULL, 0), true, a,
                      err);
    one->how.result_blob = bytes_str(one->piece.sha256);
    return rc;
}

static bool all_refused(const struct endings *x)
{
    for (size_t i = 0; i < x->n; i++) {
        if (!x->item[i].refused)
            return false;
    }
    return true;
}

/* Runs it, and hands out what came of each.  The error of a single one is the call's. */
static belay_rc run(struct endings *x, struct belay_arena *a, struct belay_ended *out,
                    struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (x->next || !all_refused(x))
        rc = txn_run(x->site->space, end_body, x, NULL, a, err);
    if (x->next &&
        claim_leaves_due(x->next, rc)) /* it does not keep this from ending */
        rc = txn_run(x->site->space, end_body, x, NULL, a, err);
    if (rc)
        return rc;
    memcpy(out, x->out, x->n * sizeof(*out));
    if (x->n > 1 || x->next || out[0].code == BELAY_OK)
        return BELAY_OK;
    if (err)
        *err = out[0].err;
    return out[0].code;
}

/* What was claimed along with it.  Where nothing was, since the view was too short, a page of
 * what is due was not all of it, or what was claimed could not be read, that costs a claim of its
 * own.  What was completed is completed, whatever comes of this: an error is an empty answer,
 * and who claims by himself is told. */
static void hand_next(struct claiming *c, const struct exec_site *site,
                      struct belay_arena *a, struct belay_works *out)
{
    struct belay_claim_policy policy = *c->policy;
    bool again = c->stale || (c->n == 0 && c->more);
    size_t failed = 0;
    belay_rc rc = again ? BELAY_OK : claim_payloads(c, a, &failed, NULL);

    *out = (struct belay_works){ .next_at_ms = c->now_ms };
    policy.max_wait_ms = 0;
    if (rc == BELAY_OK && (again || (c->n == 0 && failed > 0))) {
        rc = exec_claim(site, &policy, a, out, NULL);
        (void)rc; /* then it is as empty as it was */
    } else if (rc == BELAY_OK)
        *out = (struct belay_works){ c->work, c->n, c->next_at_ms };
}

belay_rc exec_complete(const struct exec_site *site,
                       const struct belay_completion *items, size_t n,
                       const struct belay_claim_policy *next, struct belay_arena *a,
                       struct belay_ended *out, struct belay_works *next_out,
                       struct belay_error *err)
{
    struct endings x;
    struct claiming c;
    belay_rc rc = make_room(&x, site, n, a, err);

    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        take_handle(&x, i, items[i].handle);
        x.item[i].how.step = STEP_COMPLETE;
        rc = take_result(&x, i, &items[i], a, err);
    }
    if (rc == BELAY_OK && next) {
        rc = claim_prepare(&c, site, next, a, err);
        x.next = &c;
    }
    if (rc == BELAY_OK)
        rc = run(&x, a, out, err);
    if (rc == BELAY_OK && next)
        hand_next(&c, site, a, next_out);
    return rc;
}

static belay_rc take_failure(struct ending *one, const struct belay_failure *f,
                             struct belay_error *err)
{
    struct bytes message = bytes_str(f->message ? f->message : "");

    if (!vector_name(BELAY_DIM_FAILURE_CLASS, f->failure_class))
        return err_reason(err, BELAY_INVALID, "class",
                          "failure class: must be transient, permanent, infra_crash, "
                          "timeout or cancelled");
    if (message.len > MESSAGE_MAX || !bytes_is_utf8(message) ||
        memchr(message.ptr, 0, message.len))
        return err_reason(err, BELAY_INVALID, "message",
                          "failure message: must be up to %d bytes of UTF-8",
                          MESSAGE_MAX);
    if (f->detail_len > DETAIL_MAX)
        return err_reason(err, BELAY_INVALID, "detail",
                          "failure detail: %zu bytes, at most %zu", f->detail_len,
                          DETAIL_MAX);
    one->how.failure_class = f->failure_class;
    one->how.message = message;
    one->how.detail = bytes_of(f->detail, f->detail_len);
    return BELAY_OK;
}

belay_rc exec_fail(const struct exec_site *site, const struct belay_failure *items,
                   size_t n, struct belay_arena *a, struct belay_ended *out,
                   struct belay_error *err)
{
    struct endings x;
    belay_rc rc = make_room(&x, site, n, a, err);

    x.failures = true;
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        take_handle(&x, i, items[i].handle);
        rc = take_failure(&x.item[i], &items[i], err);
        if (rc == BELAY_OK)
            rc = random_bytes(store_random_hook(space_store(site->space)),
                              (uint8_t *)&x.item[i].random, sizeof(x.item[i].random),
                              err);
    }
    return rc ? rc : run(&x, a, out, err);
}

belay_rc exec_abort(const struct exec_site *site, const struct belay_handle *h,
                    const char *reason, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct bytes why = bytes_str(reason ? reason : "");
    struct belay_ended out;
    struct endings x;

    if (why.len > REASON_MAX || !bytes_is_utf8(why))
        return err_reason(err, BELAY_INVALID, "reason",
                          "reason: must be up to %d bytes of UTF-8", REASON_MAX);
    belay_rc rc = make_room(&x, site, 1, &arena, err);
    if (rc)
        return rc;
    take_handle(&x, 0, h);
    x.item[0].how.step = STEP_CANCEL;
    x.item[0].how.reason = why;
    x.item[0].how.cancel_reason = why;
    x.item[0].how.cancel_source = bytes_str("lease_holder");
    return run(&x, &arena, &out, err);
}
