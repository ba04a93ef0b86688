/* The verbs of a job's own attempt, as requests of its socket:
 *
 *     {"op":"progress","args":{"percent":40,"message":"almost"}}
 *     {"answer":{...},"ok":true}
 *     {"error":{"code":"lease_lost","message":"...","reason":"superseded"},"ok":false}
 *
 * Arguments are those of the command of the same name, and the command's handler does it:
 * the answer is what it prints with --json.  The handle is the attempt's own. */
#include "api/op_json.h"
#include "base/json.h"
#include "cli/job_request.h"

/* --- doing it --- */

/* frame_seq: of a frame, else 0. */
static belay_rc call(struct job_request *q, int64_t frame_seq, json_t **out)
{
    const struct op_call *worker = q->run->worker->call;
    const struct op_call verb = {
        .table = worker->table,
        .op = q->op,
        .values = q->values,
        .n_values = q->n_values,
        .belay = q->run->worker->belay,
        .store = worker->store,
        .ns = worker->ns,
        .principal = worker->principal,
        .frame_seq = frame_seq,
    };

    return q->op->handler(&verb, out, q->err);
}

static belay_rc answer_repeated(struct job_request *q, json_t **out)
{
    struct op_maker m = { .err = q->err };
    json_t *result = json_object();
    int failed = op_set_i64(result, "seq", q->run->output.n_frames);

    failed |= op_set_i64(result, "frame_count", q->run->output.n_frames);
    failed |= op_set_bool(result, "duplicate", true);
    return op_made(&m, result, failed, out);
}

/* Frames of a job go between those of its output, which the worker numbers: it gives this
 * one the next number, once and for all unless it is refused.  The job's own tell whether it
 * was appended before, and are what readers see. */
static belay_rc append_frame(struct job_request *q, json_t **out)
{
    struct output *o = &q->run->output;
    const struct op_value *given = job_request_value(q, "seq");
    int64_t job_seq = given && given->number > 0 ? given->number : 0;
    int64_t backoff_us = 0;

    if (job_seq > 0 && job_seq <= o->job_seq)
        return answer_repeated(q, out);
    int64_t number = OUTPUT_BASE + o->n_frames + 1;
    belay_rc rc = call(q, number, out);
    while (rc != BELAY_OK && worker_may_retry(rc) && job_pause(q->run, &backoff_us))
        rc = call(q, number, out);
    if (rc)
        return rc;
    o->n_frames = json_integer_value(json_object_get(*out, "frame_count"));
    if (job_seq > 0)
        o->job_seq = job_seq;
    return BELAY_OK;
}

/* Moves from one state to another, if it is in that. */
static bool move(struct run *r, enum hold from, enum hold to)
{
    worker_lock(r->worker);
    bool moved = r->job->hold == from;
    if (moved)
        r->job->hold = to;
    worker_unlock(r->worker);
    return moved;
}

/* A verb that ends the attempt: after it nothing is written. */
static belay_rc end_attempt(struct job_request *q, json_t **out)
{
    struct run *r = q->run;

    if (!move(r, HOLD_HELD, HOLD_ENDING))
        return call(q, 0, out); /* over already: the store knows whether it repeats */
    belay_rc rc = call(q, 0, out);
    if (rc == BELAY_OK) {
        if (move(r, HOLD_ENDING, HOLD_OVER)) {
            r->by_verb = q->verb->end;
            r->said = q->verb->said;
        }
    } else if (job_is_lost_by(rc)) {
        job_lose(r, q->err);
    } else {
        (void)move(r, HOLD_ENDING, HOLD_HELD);
    }
    return rc;
}

/* The lease may be longer now than the worker knows. */
static void note_renewal(struct job_request *q, int64_t from_us)
{
    const struct op_value *lease = job_request_value(q, "lease");
    struct job *j = q->run->job;
    int64_t us = lease && lease->number > 0 ? lease->number * 1000 : 0;

    worker_lock(q->run->worker);
    if (j->due_us < from_us + us)
        j->due_us = from_us + us;
    worker_unlock(q->run->worker);
}

static belay_rc perform(struct job_request *q, json_t **out)
{
    struct run *r = q->run;
    int64_t now = worker_now(r->worker);

    if (job_look(r).hold == HOLD_LOST)
        return err_reason(q->err, BELAY_LEASE_LOST, "superseded",
                          "the attempt is not this worker's any more");
    job_catch_up(r); /* what was printed before comes before */
    if (q->verb->end != TALLY_COUNT)
        return end_attempt(q, out);
    belay_rc rc =
        strcmp(q->verb->name, "frame") == 0 ? append_frame(q, out) : call(q, 0, out);
    if (rc == BELAY_OK && strcmp(q->verb->name, "renew") == 0)
        note_renewal(q, now);
    if (job_is_lost_by(rc))
        job_lose(r, q->err);
    return rc;
}

/* --- the answer --- */

static json_t *answer_of(belay_rc rc, json_t *answer, const struct belay_error *err)
{
    if (rc == BELAY_OK)
        return json_pack("{s:b,s:O}", "ok", 1, "answer", answer);
    return json_pack("{s:b,s:{s:s,s:s,s:s}}", "ok", 0, "error", "code",
                     belay_error_info((int)rc)->name, "reason", err->reason, "message",
                     err->message);
}

void job_answer(void *run, struct bytes line, struct buf *out)
{
    struct belay_error err;
    struct job_request q CLEANUP(job_request_release) = { .run = run, .err = &err };
    json_t *request = NULL, *answer = NULL;

    belay_rc rc = json_read(line, SOCKET_LINE_MAX, &request, &err);
    if (rc == BELAY_OK)
        rc = job_request_read(&q, request);
    if (rc == BELAY_OK)
        rc = perform(&q, &answer);
    json_t *whole = answer_of(rc, answer, &err);
    if (!whole || json_write(whole, out, NULL))
        out->failed = true; /* no answer but the end of the connection */
    buf_append_char(out, '\n');
    json_decref(whole);
    json_decref(answer);
    json_decref(request);
}
