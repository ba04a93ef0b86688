/* Executions on every driver: payloads in blobs that cannot be read.  Each concerns its own
 * execution, whose lease nobody has to wait for. */
#include "test_work_exec_time.h"
#include "test_work_heads.h"

#define LONG_LEN (PAYLOAD_INLINE_MAX + 1)

/* A payload that lies in a blob of its own. */
static const char *submit_long(struct lab *l, char byte)
{
    char payload[LONG_LEN];

    memset(payload, byte, sizeof(payload));
    const char *id = submit(
        l, (struct belay_submission){ .payload = payload, .payload_len = LONG_LEN });
    pass(l, 1);
    return id;
}

/* Something happens to the blob with that payload. */
static void hurt(struct lab *l, char byte, struct blob_hurt how)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    char payload[LONG_LEN], name[SHA256_HEX_LEN + 1];
    uint8_t digest[SHA256_LEN];

    memset(payload, byte, sizeof(payload));
    WORK_RC(l->w, sha256(bytes_of(payload, LONG_LEN), digest, &l->w->err), BELAY_OK);
    hex_encode(bytes_of(digest, sizeof(digest)), name);
    how.sha256 = name;
    WORK_RC(l->w, txn_run(l->w->space, blob_hurt_body, &how, NULL, &a, &l->w->err),
            BELAY_OK);
}

/* The store is not sound, on purpose. */
static void leave(struct lab *l)
{
    lane_book_close(l->site.lanes);
}

static void expect_payload(struct work *w, const struct belay_work *work, char byte)
{
    if (TAP_EQ(w->t, work->payload_len, LONG_LEN))
        TAP_EQ(w->t, ((const char *)work->payload)[LONG_LEN - 1], byte);
}

/* It has failed for good, and that was told. */
static void expect_failed(struct lab *l, const char *id)
{
    struct belay_result r = { .state = 0 };

    WORK_RC(l->w, exec_result(&l->site, id, &l->w->arena, &r, &l->w->err), BELAY_OK);
    TAP_EQ(l->w->t, r.state, BELAY_STATE_FAILED);
    TAP_EQ(l->w->t, r.failure_class, BELAY_FAILURE_PERMANENT);
    TAP_OK(l->w->t,
           r.failure_message && strstr(r.failure_message, "payload: blob") != NULL);
    TAP_EQ(l->w->t, told(l, "\"outcome\":\"failed\""), 1);
}

/* --- lost --- */

static void batch(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_works works = { .n = 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    p.max = 3;
    const char *first = submit_long(&l, 'a'), *bad = submit_long(&l, 'b'),
               *last = submit_long(&l, 'c');
    hurt(&l, 'b', (struct blob_hurt){ .row = true });
    WORK_RC(w, exec_claim(&l.site, &p, &w->arena, &works, &w->err), BELAY_OK);
    if (TAP_EQ(w->t, works.n, 2)) {
        TAP_STR(w->t, works.work[0].execution_id, first);
        expect_payload(w, &works.work[0], 'a');
        TAP_STR(w->t, works.work[1].execution_id, last);
        expect_payload(w, &works.work[1], 'c');
        WORK_RC(w, complete(&l, &works.work[1]), BELAY_OK);
    }
    expect_failed(&l, bad);
    leave(&l);
}

/* In whatever way it cannot be read: who claims one comes to the next. */
static void one(struct work *w)
{
    static const struct blob_hurt how[] = { { .row = true },
                                            { .data = "something else" },
                                            { .data = NULL } };

    for (size_t i = 0; i < COUNT_OF(how); i++) {
        char byte = (char)('a' + 2 * i), next = (char)(byte + 1);
        struct lab l;
        if (!lab_open(&l, w))
            return;
        const char *bad = submit_long(&l, byte), *good = submit_long(&l, next);
        hurt(&l, byte, how[i]);
        struct belay_work work = take(&l, "w1");
        TAP_STR(w->t, work.execution_id, good);
        expect_payload(w, &work, next);
        TAP_STR(w->t, state_of(&l, bad), "failed");
        leave(&l);
    }
}

static struct belay_works complete_and_claim(struct lab *l,
                                             const struct belay_work *work)
{
    struct belay_claim_policy p = policy_of("w1");
    const struct belay_completion c = { .size = sizeof(c), .handle = &work->handle };
    struct belay_works next = { .n = 9 };

    WORK_RC(
        l->w,
        exec_complete(&l->site, &c, 1, &p, &l->w->arena, &l->ended, &next, &l->w->err),
        BELAY_OK);
    WORK_RC(l->w, l->ended.code, BELAY_OK);
    return next;
}

static void next_one(struct work *w)
{
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *first = submit_long(&l, 'a'), *bad = submit_long(&l, 'b'),
               *last = submit_long(&l, 'c');
    hurt(&l, 'b', (struct blob_hurt){ .row = true });
    struct belay_work work = take(&l, "w1");
    struct belay_works next = complete_and_claim(&l, &work);
    TAP_STR(w->t, state_of(&l, first), "completed");
    if (TAP_EQ(w->t, next.n, 1)) {
        TAP_STR(w->t, next.work[0].execution_id, last);
        expect_payload(w, &next.work[0], 'c');
    }
    expect_failed(&l, bad);
    leave(&l);
}

static void granted(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_grant grant = { .grant_id = NULL };
    struct belay_work work;
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *bad = submit_long(&l, 'a');
    hurt(&l, 'a', (struct blob_hurt){ .row = true });
    WORK_RC(w, exec_grant(&l.site, &p, 1000, &w->arena, &grant, &w->err), BELAY_OK);
    WORK_RC(
        w,
        exec_claim_grant(&l.site, grant.grant_id, "w1", 0, &w->arena, &work, &w->err),
        BELAY_CORRUPT);
    TAP_STR(w->t, w->err.reason, "payload");
    TAP_STR(w->t, w->err.entity, bad);
    expect_failed(&l, bad);
    leave(&l);
}

/* --- away for a while --- */

/* A driver that gives no chunks, as long as `ops` are its operations. */
static struct {
    const struct driver_ops *whole;
    struct driver_ops ops;
} chunkless;

static belay_rc read_no_chunks(struct driver *d, void *attempt, struct read *reads,
                               size_t n, struct belay_arena *a, struct belay_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (reads[i].kind == READ_CHUNK)
            return err_reason(err, BELAY_UNAVAILABLE, "", "chunks: away");
    }
    return chunkless.whole->read(d, attempt, reads, n, a, err);
}

static void take_chunks(struct work *w)
{
    chunkless.whole = w->driver->ops;
    chunkless.ops = *w->driver->ops;
    chunkless.ops.read = read_no_chunks;
    w->driver->ops = &chunkless.ops;
}

static void give_chunks(struct work *w)
{
    w->driver->ops = chunkless.whole;
}

/* Nobody has to wait for its lease, and nothing is charged. */
static void expect_released(struct lab *l, const char *id)
{
    TAP_STR(l->w->t, state_of(l, id), "waiting");
    struct belay_work work = take(l, "w2");
    TAP_STR(l->w->t, work.execution_id, id);
    TAP_EQ(l->w->t, work.attempt, 0);
    TAP_EQ(l->w->t, column(l, id, EXEC_RECLAIMS), TIME_NONE);
    TAP_EQ(l->w->t, column(l, id, EXEC_RETRIES), TIME_NONE);
    WORK_RC(l->w, complete(l, &work), BELAY_OK);
}

static void away(struct work *w)
{
    struct belay_claim_policy p = policy_of("w1");
    struct belay_works works = { .n = 0 };
    struct lab l;

    if (!lab_open(&l, w))
        return;
    const char *apart = submit_long(&l, 'a');
    take_chunks(w);
    WORK_RC(w, exec_claim(&l.site, &p, &w->arena, &works, &w->err), BELAY_UNAVAILABLE);
    /* What has its payload is handed out all the same. */
    const char *beside =
        submit(&l, (struct belay_submission){ .payload = "x", .payload_len = 1 });
    p.max = 2;
    WORK_RC(w, exec_claim(&l.site, &p, &w->arena, &works, &w->err), BELAY_OK);
    if (TAP_EQ(w->t, works.n, 1)) {
        TAP_STR(w->t, works.work[0].execution_id, beside);
        struct belay_works next = complete_and_claim(&l, &works.work[0]);
        TAP_EQ(w->t, next.n, 0);
        TAP_EQ(w->t, next.next_at_ms, now(&l)); /* ask again */
        TAP_STR(w->t, state_of(&l, beside), "completed");
    }
    give_chunks(w);
    expect_released(&l, apart);
    lab_close(&l);
}

/* --- */

static void test_batch(struct tap *t)
{
    work_everywhere(t, batch);
}

static void test_one(struct tap *t)
{
    work_everywhere(t, one);
}

static void test_next(struct tap *t)
{
    work_everywhere(t, next_one);
}

static void test_granted(struct tap *t)
{
    work_everywhere(t, granted);
}

static void test_away(struct tap *t)
{
    work_everywhere(t, away);
}

static const struct tap_case cases[] = {
    { "of many that are claimed the one that cannot be read fails alone", test_batch },
    { "who claims one comes to the next that can be read", test_one },
    { "what was completed is, whatever is claimed along with it", test_next },
    { "a claim by a grant says so", test_granted },
    { "what cannot be read for a while is given back, and not charged", test_away },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
