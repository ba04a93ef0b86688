/* The inbox of a session, on every driver: entering, claiming, holding, removing. */
#include "work/queue_rows.h"

#include <pthread.h>

#include "base/clock.h"
#include "policy/claim.h"
#include "policy/fence.h"
#include "test_work.h"
#include "work/check.h"
#include "work/epoch.h"

#define LEASE_MS ((int64_t)60000)

/* --- hands --- */

/* A draft as text: e or a for the delivery, J or X for the slot; then n, p, or a letter
 * that is the merge group. */
static struct belay_draft draft_of(const char *session, const char *policy)
{
    static const char *const payload[] = { "{\"n\":1}" };
    static char groups['z' + 1][2];
    struct belay_draft d = { .size = sizeof(d), .session_id = session };

    d.delivery = policy[0] == 'e' ? BELAY_EARLIEST_SAFE_BOUNDARY
                                  : BELAY_AFTER_CURRENT_TURN_COMMIT;
    d.slot = policy[1] == 'J' ? BELAY_JOIN : BELAY_EXCLUSIVE;
    d.merge = policy[2] == 'n'   ? BELAY_MERGE_NEVER
              : policy[2] == 'p' ? BELAY_MERGE_PAYLOAD_DEFAULT
                                 : BELAY_MERGE_GROUP;
    if (d.merge == BELAY_MERGE_GROUP) {
        groups[(int)policy[2]][0] = policy[2];
        d.merge_group = groups[(int)policy[2]];
    }
    d.payloads = payload;
    d.n_payloads = 1;
    return d;
}

static const struct belay_batch *enter(struct work *w, const struct belay_draft *d)
{
    struct belay_enqueued out = { .batch = NULL };

    WORK_RC(w, queue_enqueue(w->space, d, &w->arena, &out, &w->err), BELAY_OK);
    return out.batch;
}

static const struct belay_batch *put(struct work *w, const char *session,
                                     const char *policy)
{
    struct belay_draft d = draft_of(session, policy);

    return enter(w, &d);
}

/* A JSON string of n bytes. */
static const char *long_text(struct work *w, size_t n)
{
    char *text = arena_alloc(&w->arena, n + 1);

    memset(text, 'x', n);
    text[0] = text[n - 1] = '"';
    text[n] = 0;
    return text;
}

/* With payloads that have a row of their own, a little longer with `more`. */
static const struct belay_batch *put_long(struct work *w, const char *session,
                                          const char *policy, size_t more)
{
    struct belay_draft d = draft_of(session, policy);
    const char *payloads[] = { long_text(w, BATCH_ITEMS_MAX + more), "2" };

    d.payloads = payloads;
    d.n_payloads = COUNT_OF(payloads);
    return enter(w, &d);
}

static const struct belay_batch *put_at(struct work *w, const char *session,
                                        const char *policy, int64_t available_at_ms)
{
    struct belay_draft d = draft_of(session, policy);

    d.available_at_ms = available_at_ms;
    return enter(w, &d);
}

/* Many in one transaction, at once, or each a millisecond earlier than the one before. */
struct entering {
    struct queue_entry entry;
    int64_t from_ms;
    int n;
};

static belay_rc enter_body(struct txn *t, void *arg)
{
    const struct entering *e = arg;
    struct queue_entry entry = e->entry;
    belay_rc rc = BELAY_OK;

    for (int i = 0; i < e->n && rc == BELAY_OK; i++) {
        const struct row *existing;
        int64_t seq;
        entry.available_at_ms = e->from_ms > 0 ? e->from_ms - i : 0;
        rc = queue_enqueue_in(t, &entry, &seq, &existing);
    }
    return rc;
}

static void put_many(struct work *w, const char *policy, int n, int64_t from_ms)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct belay_draft d = draft_of("s", policy);
    struct entering e = { .from_ms = from_ms, .n = n };

    WORK_RC(w, queue_prepare(&d, &arena, &e.entry, &w->err), BELAY_OK);
    WORK_RC(w, txn_run(w->space, enter_body, &e, NULL, &arena, &w->err), BELAY_OK);
}

static struct belay_claim_request request_of(const char *session, const char *owner,
                                             size_t max)
{
    return (struct belay_claim_request){ .size = sizeof(struct belay_claim_request),
                                         .session_id = session,
                                         .owner_id = owner,
                                         .lease_ms = LEASE_MS,
                                         .max = max };
}

static struct belay_claimed ask(struct work *w, const struct belay_claim_request *r)
{
    struct belay_claimed out = { .why = -1 };

    WORK_RC(w,
            queue_claim(&(struct queue_site){ .space = w->space,
                                              .principal = bytes_str("cli:ada") },
                        r, &w->arena, &out, &w->err),
            BELAY_OK);
    return out;
}

static const struct belay_claim *take(struct work *w, const char *session,
                                      const char *owner, size_t max)
{
    struct belay_claim_request r = request_of(session, owner, max);

    return ask(w, &r).claim;
}

static const struct belay_claim *take_for(struct work *w, const char *session,
                                          const char *owner, size_t max,
                                          int64_t lease_ms)
{
    struct belay_claim_request r = request_of(session, owner, max);

    r.lease_ms = lease_ms;
    return ask(w, &r).claim;
}

/* What a claim has, as "1,2,3"; "-" for none. */
static const char *seqs(const struct belay_claim *claim)
{
    static char text[8192];
    size_t len = 0;

    text[0] = '\0';
    if (!claim)
        return "-";
    for (size_t i = 0; i < claim->n_batches; i++)
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%lld", i > 0 ? "," : "",
                             (long long)claim->batches[i].enqueue_seq);
    return text;
}

static belay_rc renew(struct work *w, const struct belay_claim *claim, int64_t ms,
                      int64_t *out)
{
    return queue_renew(w->space, claim, ms, out, &w->err);
}

static size_t abandon(struct work *w, const struct belay_claim *claim)
{
    size_t released = 99;

    WORK_RC(w, queue_abandon(w->space, claim, &released, &w->err), BELAY_OK);
    return released;
}

struct completing {
    struct bytes session;
    const struct belay_claim *claim;
};

static belay_rc complete_body(struct txn *t, void *arg)
{
    const struct completing *c = arg;
    struct queue_owned owned = { .n = 0 };
    belay_rc rc = queue_own(t, c->session, c->claim, &owned);

    return rc ? rc : queue_remove(t, c->session, &owned);
}

static belay_rc complete_in(struct work *w, const char *session,
                            const struct belay_claim *claim)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct completing c = { bytes_str(session), claim };

    return txn_run(w->space, complete_body, &c, NULL, &arena, &w->err);
}

static belay_rc complete(struct work *w, const struct belay_claim *claim)
{
    return complete_in(w, claim->session_id, claim);
}

/* What is listed, as "1,2,3". */
static const char *listed(struct work *w, const char *session, bool pending)
{
    static char text[8192];
    struct belay_queue_page page = { .size = sizeof(page),
                                     .pending = pending,
                                     .limit = 1000 };
    struct belay_batches out = { .n = 0 };
    size_t len = 0;

    text[0] = '\0';
    WORK_RC(w, queue_list(w->space, session, &page, &w->arena, &out, &w->err),
            BELAY_OK);
    TAP_EQ(w->t, out.next_after_seq, 0);
    for (size_t i = 0; i < out.n; i++)
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%lld", i > 0 ? "," : "",
                             (long long)out.batches[i].enqueue_seq);
    return text;
}

static void pass_ms(struct work *w, int64_t ms)
{
    fake_advance_us(&w->clock, ms * 1000);
}

static int64_t now_ms(struct work *w)
{
    return atomic_load(&w->clock.wall_ms);
}

/* Whether the namespace is as it was; forgets `before`. */
static bool is_unchanged(struct work *w, struct buf *before)
{
    CLEANUP(buf_release) struct buf after = work_dump(w, "default");
    bool same = bytes_eq(buf_view(before), buf_view(&after));

    if (!same)
        printf("# before: %.*s\n# after: %.*s\n", (int)before->len,
               (const char *)before->ptr, (int)after.len, (const char *)after.ptr);
    buf_release(before);
    return same;
}

/* One column of a batch's row, written as nobody would. */
struct damage {
    const char *session;
    const struct row_type *type;
    int64_t seq;
    struct change change;
};

static belay_rc damage_body(struct txn *t, void *arg)
{
    const struct damage *d = arg;
    struct value key[] = { value_str(d->session), value_i64(d->seq) };
    const struct row *row;
    belay_rc rc = txn_get(t, d->type, key, &row);

    return rc ? rc : txn_put(t, d->type, key, &d->change, 1);
}

static void damage(struct work *w, const struct row_type *type, int64_t seq,
                   unsigned column, struct value value)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct damage d = { "s", type, seq, { column, value } };

    WORK_RC(w, txn_run(w->space, damage_body, &d, NULL, &arena, &w->err), BELAY_OK);
}

/* --- entering --- */

/* How many of the columns that a batch has only sometimes are there. */
static belay_rc count_body(struct txn *t, void *arg)
{
    static const unsigned sometimes[] = { BATCH_AVAILABLE_AT_MS, BATCH_DUE_AT_MS,
                                          BATCH_SOURCE_KEY, BATCH_WAKE,
                                          BATCH_LEASE + LEASE_FENCE };
    struct value key[] = { value_str("s"), value_i64(1) };
    const struct row *row = NULL;
    unsigned *n = arg;
    belay_rc rc = txn_get(t, &row_batch, key, &row);

    *n = 0;
    for (size_t i = 0; i < COUNT_OF(sometimes) && row; i++)
        *n += row->v[sometimes[i]].kind != VALUE_NULL;
    return rc;
}

static void nothing_is_stored_as_nothing(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct belay_draft d = draft_of("s", "aJg");
    unsigned n = 99;

    TAP_OK(w->t, enter(w, &d) != NULL);
    WORK_RC(w, txn_run(w->space, count_body, &n, NULL, &arena, &w->err), BELAY_OK);
    TAP_EQ(w->t, n, 0);
}

/* The back of the inbox as it is stored. */
struct back {
    int64_t last_seq, at_ver, ver, counts;
};

static belay_rc back_body(struct txn *t, void *arg)
{
    struct value key = value_str("s");
    struct back *out = arg;
    const struct row *row;
    belay_rc rc = txn_get(t, &row_inbox, &key, &row);

    if (rc == BELAY_OK && row)
        *out = (struct back){ row_i64(row, INBOX_LAST_SEQ, -1),
                              row_i64(row, INBOX_AT_VER, -1), row->ver,
                              inbox_last_seq(row) };
    return rc;
}

static struct back stored_back(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct back back = { 0 };

    WORK_RC(w, txn_run(w->space, back_body, &back, NULL, &arena, &w->err), BELAY_OK);
    return back;
}

/* Several at once, in one body. */
static belay_rc three_body(struct txn *t, void *arg)
{
    struct belay_draft d = draft_of("s", "aJg");
    const struct row *existing;
    struct queue_entry entry;
    int64_t *seqs = arg;
    belay_rc rc = queue_prepare(&d, txn_arena(t), &entry, txn_error(t));

    for (unsigned i = 0; i < 3 && rc == BELAY_OK; i++)
        rc = queue_enqueue_in(t, &entry, &seqs[i], &existing);
    return rc;
}

/* A batch that enters alone changes nothing of the back but its version, which counts; several
 * at once are written down, and it counts from there. */
static void the_back_counts_by_its_version(struct work *w)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct belay_draft d = draft_of("s", "aJg");
    int64_t seqs[3] = { 0 };

    TAP_OK(w->t, enter(w, &d) && enter(w, &d));
    struct back second = stored_back(w);
    TAP_EQ(w->t, second.counts, 2);
    TAP_EQ(w->t, second.at_ver, second.ver);
    TAP_EQ(w->t, enter(w, &d)->enqueue_seq, 3);
    struct back third = stored_back(w);
    TAP_EQ(w->t, third.counts, 3);
    TAP_EQ(w->t, third.last_seq, second.last_seq);
    TAP_EQ(w->t, third.at_ver, second.at_ver);
    TAP_EQ(w->t, third.ver, second.ver + 1);

    WORK_RC(w, txn_run(w->space, three_body, seqs, NULL, &arena, &w->err), BELAY_OK);
    TAP_EQ(w->t, seqs[0], 4);
    TAP_EQ(w->t, seqs[2], 6);
    TAP_EQ(w->t, stored_back(w).counts, 6);
    TAP_EQ(w->t, stored_back(w).ver, third.ver + 1);
    TAP_EQ(w->t, enter(w, &d)->enqueue_seq, 7);
}

/* A back that counts from a version that it has not reached, or to more than there can be. */
static void a_back_that_cannot_be(struct work *w)
{
    const struct value value[] = { value_i64(INT64_MAX), value_i64(1) };
    struct belay_draft d = draft_of("s", "aJg");
    struct belay_enqueued out;

    TAP_OK(w->t, enter(w, &d) && enter(w, &d));
    for (size_t i = 0; i < COUNT_OF(value); i++) {
        damage(w, &row_inbox, 0, INBOX_AT_VER, value[i]);
        damage(w, &row_inbox, 0, INBOX_LAST_SEQ, value_i64(RANK_MAX - 1));
        WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &out, &w->err),
                BELAY_CORRUPT);
        TAP_STR(w->t, w->err.reason, "inbox");
    }
}

static void a_batch_enters(struct work *w)
{
    const char *const payloads[] = { "{ \"b\" : 1, \"a\" : [ 1.50, \"x,]\\\"\" ] }",
                                     "null", "\"\\u00e9\"" };
    struct belay_draft d = draft_of("s", "aJg");
    const struct belay_batch *b;

    d.source_key = "key";
    d.payloads = payloads;
    d.n_payloads = COUNT_OF(payloads);
    d.available_at_ms = now_ms(w) + 5;
    b = enter(w, &d);
    if (!TAP_OK(w->t, b != NULL))
        return;
    TAP_STR(w->t, b->session_id, "s");
    TAP_EQ(w->t, b->enqueue_seq, 1);
    TAP_EQ(w->t, strlen(b->batch_id), BATCH_ID_LEN);
    TAP_STR(w->t, b->source_key, "key");
    TAP_EQ(w->t, b->delivery, BELAY_AFTER_CURRENT_TURN_COMMIT);
    TAP_EQ(w->t, b->slot, BELAY_JOIN);
    TAP_EQ(w->t, b->merge, BELAY_MERGE_GROUP);
    TAP_STR(w->t, b->merge_group, "g");
    TAP_EQ(w->t, b->available_at_ms, now_ms(w) + 5);
    TAP_EQ(w->t, b->enqueued_at_ms, now_ms(w));
    TAP_STR(w->t, b->claim_id, NULL);
    TAP_STR(w->t, b->owner_id, NULL);
    TAP_EQ(w->t, b->fence, 0);
    TAP_EQ(w->t, b->n_items, 3);
    TAP_STR(w->t, b->items[0].payload, "{\"a\":[1.5,\"x,]\\\"\"],\"b\":1}");
    TAP_EQ(w->t, b->items[0].payload_len, strlen(b->items[0].payload));
    TAP_STR(w->t, b->items[1].payload, "null");
    TAP_STR(w->t, b->items[2].payload, "\"\xc3\xa9\"");
    char item[96];
    (void)snprintf(item, sizeof(item), "%s:item:2", b->batch_id);
    TAP_STR(w->t, b->items[2].item_id, item);

    char id[BATCH_ID_LEN + 1];
    TAP_EQ(w->t,
           batch_id_make(bytes_str("s"), bytes_str("key"), now_ms(w), 1, id, &w->arena,
                         NULL),
           BELAY_OK);
    TAP_STR(w->t, b->batch_id, id);

    d = draft_of("s", "eXn");
    d.n_payloads = 0;
    b = enter(w, &d);
    TAP_EQ(w->t, b->enqueue_seq, 2);
    TAP_EQ(w->t, b->n_items, 0);
    TAP_STR(w->t, b->merge_group, NULL);
    TAP_EQ(w->t, put(w, "other", "eXn")->enqueue_seq, 1);
}

static void test_enters(struct tap *t)
{
    work_everywhere(t, a_batch_enters);
    work_everywhere(t, nothing_is_stored_as_nothing);
    work_everywhere(t, the_back_counts_by_its_version);
    work_everywhere(t, a_back_that_cannot_be);
}

static void refused_draft(struct work *w, const struct belay_draft *d,
                          const char *reason)
{
    struct belay_enqueued out;

    WORK_RC(w, queue_enqueue(w->space, d, &w->arena, &out, &w->err), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, reason);
}

/* The draft with one text replaced. */
static struct belay_draft draft_with(size_t at, const char *text)
{
    struct belay_draft d = draft_of("s", "eJg");

    memcpy((char *)&d + at, &text, sizeof(text));
    return d;
}

static void texts_are_refused(struct work *w)
{
    static char long_text[600];
    static const struct {
        const char *reason;
        size_t at;
        const char *text;
    } rows[] = {
        { "session_id", offsetof(struct belay_draft, session_id), NULL },
        { "session_id", offsetof(struct belay_draft, session_id), "" },
        { "session_id", offsetof(struct belay_draft, session_id), "a\nb" },
        { "session_id", offsetof(struct belay_draft, session_id), long_text },
        { "source_key", offsetof(struct belay_draft, source_key), "" },
        { "source_key", offsetof(struct belay_draft, source_key), long_text },
        { "source_key", offsetof(struct belay_draft, source_key), "\xff" },
        { "merge", offsetof(struct belay_draft, merge_group), NULL },
        { "merge", offsetof(struct belay_draft, merge_group), "" },
        { "merge", offsetof(struct belay_draft, merge_group), long_text },
    };

    memset(long_text, 'x', sizeof(long_text) - 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct belay_draft d = draft_with(rows[i].at, rows[i].text);
        refused_draft(w, &d, rows[i].reason);
    }
}

static void policies_are_refused(struct work *w)
{
    const struct belay_draft good = draft_of("s", "eJg");
    struct belay_draft d = good;

    d.delivery = BELAY_DELIVERY_UNSET;
    refused_draft(w, &d, "delivery");
    d = good;
    d.slot = 3;
    refused_draft(w, &d, "slot");
    d = good;
    d.merge = 3;
    d.merge_group = NULL;
    refused_draft(w, &d, "merge");
    d.merge = BELAY_MERGE_NEVER;
    d.merge_group = "g";
    refused_draft(w, &d, "merge");
    d = good;
    d.available_at_ms = -1;
    refused_draft(w, &d, "available_at");
}

static void payloads_are_refused(struct work *w)
{
    const char *const bad_json[] = { "1", "{" }, *const none[] = { NULL };
    struct belay_draft d = draft_of("s", "eJn");

    d.payloads = bad_json;
    d.n_payloads = 2;
    refused_draft(w, &d, "payload");
    TAP_OK(w->t, strstr(w->err.message, "payload 1: ") != NULL);
    d.payloads = none;
    d.n_payloads = 1;
    refused_draft(w, &d, "payload");
}

/* Where it is exact: 1 MiB of payloads, the end of time. */
static void bounds_of_drafts(struct work *w)
{
    static char big[1 << 20];
    const char *const payloads[] = { big, "1", "1" };
    struct belay_draft d = draft_of("s", "eJn");

    memset(big, ' ', sizeof(big) - 2);
    big[sizeof(big) - 2] = '1';
    d.payloads = payloads;
    d.n_payloads = 2;
    TAP_EQ(w->t, enter(w, &d)->n_items, 2);
    d.n_payloads = 3;
    refused_draft(w, &d, "too_large");
    TAP_EQ(w->t, w->err.actual, (1 << 20) + 1);
    d = draft_of("t", "eJn");
    d.available_at_ms = INT64_MAX;
    TAP_EQ(w->t, enter(w, &d)->available_at_ms, TIME_MAX_MS);
}

static void drafts_are_refused(struct work *w)
{
    struct buf before = work_dump(w, "default");

    texts_are_refused(w);
    policies_are_refused(w);
    payloads_are_refused(w);
    TAP_OK(w->t, is_unchanged(w, &before));
    bounds_of_drafts(w);
}

static void test_refused(struct tap *t)
{
    work_everywhere(t, drafts_are_refused);
}

static void source_keys(struct work *w)
{
    const char *const other[] = { "2" };
    struct belay_draft d = draft_of("s", "eJn");
    struct belay_enqueued first, again;

    d.source_key = "k";
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &first, &w->err), BELAY_OK);
    TAP_OK(w->t, !first.replayed && !first.payload_mismatch);
    CLEANUP(buf_release) struct buf before = work_dump(w, "default");
    pass_ms(w, 10);
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &again, &w->err), BELAY_OK);
    TAP_OK(w->t, again.replayed && !again.payload_mismatch);
    d = draft_of("s", "aXg");
    d.source_key = "k";
    d.payloads = other;
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &again, &w->err), BELAY_OK);
    TAP_OK(w->t, again.replayed && again.payload_mismatch);
    TAP_OK(w->t, is_unchanged(w, &before));
    TAP_STR(w->t, again.batch->batch_id, first.batch->batch_id);
    TAP_STR(w->t, again.batch->items[0].item_id, first.batch->items[0].item_id);
    TAP_STR(w->t, again.batch->items[0].payload, "{\"n\":1}");
    TAP_EQ(w->t, again.batch->slot, BELAY_JOIN);

    d.session_id = "other";
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &again, &w->err), BELAY_OK);
    TAP_OK(w->t, !again.replayed);
    d.session_id = "s";
    WORK_RC(w, complete(w, take(w, "s", "o", 1)), BELAY_OK);
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &again, &w->err), BELAY_OK);
    TAP_OK(w->t, !again.replayed);
    TAP_EQ(w->t, again.batch->enqueue_seq, 2);
    TAP_STR(w->t, again.batch->items[0].payload, "2");
}

static void test_source_keys(struct tap *t)
{
    work_everywhere(t, source_keys);
}

static void two_stores_enter(struct work *w)
{
    enum { MANY = 80 };
    struct store *other = work_store(w);
    struct space *there = work_space(w, other, "default");
    const char *ids[MANY];
    struct belay_draft d = draft_of("s", "eXn");

    for (size_t i = 0; i < MANY; i++) {
        struct belay_enqueued out = { .batch = NULL };
        WORK_RC(w,
                queue_enqueue(i % 2 ? there : w->space, &d, &w->arena, &out, &w->err),
                BELAY_OK);
        TAP_EQ(w->t, out.batch->enqueue_seq, (int64_t)i + 1);
        ids[i] = out.batch->batch_id;
        for (size_t k = 0; k < i; k++)
            TAP_OK(w->t, strcmp(ids[k], ids[i]) != 0);
    }
    store_close(other);
}

static void test_two_stores(struct tap *t)
{
    work_everywhere(t, two_stores_enter);
}

/* --- what a claim takes --- */

/* clang-format off */
static const struct {
    const char *name, *batches; size_t max; const char *want;
} groups[] = {
    { "exclusive alone",             "eXn eXn eJn",         8, "1 2 3" },
    { "join up to max",              "eJp eJp eJp eJp eJp", 2, "1,2 3,4 5" },
    { "never joins never",           "eJn eJn",             8, "1,2" },
    { "breaks on the merge key",     "eJa eJa eJb eJa",     8, "1,2 3 4" },
    { "breaks on the delivery",      "eJa aJa aJa",         8, "1 2,3" },
    { "breaks on an exclusive one",  "eJn eXn eJn eJn",     8, "1 2 3,4" },
};
/* clang-format on */

static void groups_are_claimed(struct work *w)
{
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        char session[8], got[64] = "";
        const struct belay_claim *c;
        (void)snprintf(session, sizeof(session), "s%zu", i);
        for (const char *p = groups[i].batches; *p; p += p[3] ? 4 : 3)
            (void)put(w, session, p);
        while ((c = take(w, session, "o", groups[i].max))) {
            size_t len = strlen(got);
            (void)snprintf(got + len, sizeof(got) - len, "%s%s", len > 0 ? " " : "",
                           seqs(c));
        }
        if (!TAP_STR(w->t, got, groups[i].want))
            printf("# row: %s\n", groups[i].name);
    }
}

static void test_groups(struct tap *t)
{
    work_everywhere(t, groups_are_claimed);
}

static void a_claim_says_it_all(struct work *w)
{
    (void)put(w, "s", "eJg");
    (void)put(w, "s", "eJg");
    pass_ms(w, 10);
    const struct belay_claim *c = take(w, "s", "me", 8);
    char token[SHA256_HEX_LEN + 1];

    if (!TAP_OK(w->t, c && c->n_batches == 2))
        return;
    TAP_STR(w->t, c->session_id, "s");
    TAP_STR(w->t, c->claim_id, "qwc:1:1");
    TAP_STR(w->t, c->owner_id, "me");
    TAP_EQ(w->t,
           claim_token_make(bytes_str("s"), bytes_str("me"), "qwc:1:1", now_ms(w),
                            token, &w->arena, NULL),
           BELAY_OK);
    TAP_STR(w->t, c->lease_token, token);
    TAP_EQ(w->t, strlen(c->lease_id), LEASE_ID_HEX);
    TAP_EQ(w->t, c->fence, 1);
    TAP_EQ(w->t, c->claimed_at_ms, now_ms(w));
    TAP_EQ(w->t, c->expires_at_ms, now_ms(w) + LEASE_MS);
    TAP_EQ(w->t, c->batches[0].enqueued_at_ms, now_ms(w) - 10);
    for (size_t i = 0; i < 2; i++) {
        TAP_STR(w->t, c->batches[i].claim_id, "qwc:1:1");
        TAP_STR(w->t, c->batches[i].owner_id, "me");
        TAP_EQ(w->t, c->batches[i].fence, 1);
        TAP_EQ(w->t, c->batches[i].expires_at_ms, c->expires_at_ms);
        TAP_STR(w->t, c->batches[i].items[0].payload, "{\"n\":1}");
    }
    CLEANUP(buf_release) struct buf dump = work_dump(w, "default");
    buf_append_char(&dump, '\0');
    TAP_OK(w->t, strstr((const char *)dump.ptr, "cli:ada") != NULL);
}

static void test_claim(struct tap *t)
{
    work_everywhere(t, a_claim_says_it_all);
}

static void large_groups(struct work *w)
{
    put_many(w, "eJn", 200, 0);
    (void)put(w, "s", "eXn");
    const struct belay_claim *c = take(w, "s", "a", 9);
    TAP_EQ(w->t, c->n_batches, 9);
    TAP_EQ(w->t, abandon(w, c), 9);
    c = take(w, "s", "a", 72);
    TAP_EQ(w->t, c->n_batches, 72);
    TAP_EQ(w->t, abandon(w, c), 72);
    c = take(w, "s", "a", BELAY_CLAIM_MAX);
    TAP_EQ(w->t, c->n_batches, 200);
    TAP_EQ(w->t, c->batches[199].enqueue_seq, 200);
    TAP_EQ(w->t, c->batches[71].fence, 2);
    TAP_EQ(w->t, c->batches[199].fence, 1);
    TAP_EQ(w->t, c->fence, 3);
    WORK_RC(w, renew(w, c, LEASE_MS, NULL), BELAY_OK);
    WORK_RC(w, complete(w, c), BELAY_OK);
    TAP_STR(w->t, listed(w, "s", false), "201");
}

static void test_large_groups(struct tap *t)
{
    work_everywhere(t, large_groups);
}

static void filtered_adjacency(struct work *w)
{
    (void)put(w, "s", "eXn");                      /* 1: will be held */
    (void)put(w, "s", "eJn");                      /* 2 */
    (void)put_at(w, "s", "eXn", now_ms(w) + 1000); /* 3: in the future */
    (void)put(w, "other", "eXn");
    (void)put(w, "s", "eJn"); /* 4 */
    (void)put(w, "s", "eXn"); /* 5: will be held */
    (void)put(w, "s", "eJn"); /* 6 */
    const struct belay_claim *one = take(w, "s", "a", 8);
    TAP_STR(w->t, seqs(one), "1");
    const struct belay_claim *group = take(w, "s", "a", 8);
    TAP_STR(w->t, seqs(group), "2,4");
    const struct belay_claim *five = take(w, "s", "a", 8);
    TAP_STR(w->t, seqs(five), "5");
    TAP_EQ(w->t, abandon(w, group), 2);
    TAP_STR(w->t, seqs(take(w, "s", "b", 8)), "2,4,6");
    TAP_STR(w->t, seqs(take(w, "s", "b", 8)), "-");
    pass_ms(w, 1000);
    TAP_STR(w->t, seqs(take(w, "s", "b", 8)), "3");
    TAP_STR(w->t, seqs(take(w, "other", "b", 8)), "1");
}

static void test_adjacency(struct tap *t)
{
    work_everywhere(t, filtered_adjacency);
}

/* Due at times that are not in the order of the sequences. */
static void many_become_due(struct work *w)
{
    enum { MANY = 600 };

    put_many(w, "eJn", MANY, now_ms(w) + 1000);
    TAP_STR(w->t, seqs(take(w, "s", "a", 1)), "-");
    pass_ms(w, 1000);
    TAP_STR(w->t, seqs(take(w, "s", "a", 1)), "1");
    TAP_STR(w->t, seqs(take(w, "s", "a", 2)), "2,3");
    const struct belay_claim *rest = take(w, "s", "a", BELAY_CLAIM_MAX);
    TAP_EQ(w->t, rest->n_batches, MANY - 3);
    for (size_t i = 0; i < rest->n_batches; i++)
        TAP_EQ(w->t, rest->batches[i].enqueue_seq, (int64_t)i + 4);
    TAP_STR(w->t, listed(w, "s", true), "");
    TAP_EQ(w->t, abandon(w, rest), MANY - 3);
}

static void test_due(struct tap *t)
{
    work_everywhere(t, many_become_due);
}

/* --- why not --- */

static void nothing_is_claimed(struct work *w)
{
    struct belay_claim_request r = request_of("s", "a", 8);
    struct belay_claimed got = ask(w, &r);

    TAP_EQ(w->t, got.why, BELAY_NO_EMPTY);
    TAP_EQ(w->t, got.next_at_ms, BELAY_TIME_NONE);
    r.max = 0;
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_ZERO_LIMIT);
    r.max = 8;

    int64_t later = now_ms(w) + 500;
    (void)put_at(w, "s", "eXn", later);
    got = ask(w, &r);
    TAP_EQ(w->t, got.why, BELAY_NO_NOT_YET_AVAILABLE);
    TAP_EQ(w->t, got.next_at_ms, later);
    pass_ms(w, 499);
    TAP_OK(w->t, !ask(w, &r).claim);
    pass_ms(w, 1);
    got = ask(w, &r);
    TAP_STR(w->t, seqs(got.claim), "1");
    TAP_EQ(w->t, got.why, BELAY_CLAIMED);
    int64_t end = got.claim->expires_at_ms;
    got = ask(w, &r);
    TAP_EQ(w->t, got.why, BELAY_NO_HEAD_HELD);
    TAP_EQ(w->t, got.next_at_ms, end);

    (void)put(w, "s", "aXn");
    (void)put(w, "s", "eXn");
    r.boundary = BELAY_ACTIVE_TURN_CHECKPOINT;
    got = ask(w, &r);
    TAP_EQ(w->t, got.why, BELAY_NO_BOUNDARY_BLOCKED);
    TAP_EQ(w->t, got.next_at_ms, end); /* 1 may head it again then */
    TAP_STR(w->t, seqs(take(w, "s", "idle", 8)), "2");
    TAP_STR(w->t, seqs(ask(w, &r).claim), "3");
    pass_ms(w, LEASE_MS);
    TAP_STR(w->t, seqs(ask(w, &r).claim), "1");
}

static void test_why(struct tap *t)
{
    work_everywhere(t, nothing_is_claimed);
}

static void exact_claims(struct work *w)
{
    const struct belay_batch *one = put(w, "s", "eJn"), *two = put(w, "s", "eJn");
    const struct belay_batch *three = put(w, "s", "eJn");
    const char *const second[] = { two->batch_id };
    const char *const turned[] = { two->batch_id, one->batch_id };
    const char *const both[] = { one->batch_id, two->batch_id };
    const char *const none[] = { NULL };
    struct belay_claim_request r = request_of("s", "a", 99);
    struct belay_claimed got;
    CLEANUP(buf_release) struct buf before = work_dump(w, "default");

    r.batch_ids = second;
    r.n_batch_ids = 1;
    got = ask(w, &r);
    TAP_OK(w->t, !got.claim);
    TAP_EQ(w->t, got.why, BELAY_NO_OTHER_BATCHES);
    r.batch_ids = turned;
    r.n_batch_ids = 2;
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_OTHER_BATCHES);
    r.n_batch_ids = 0;
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_ZERO_LIMIT);
    TAP_OK(w->t, is_unchanged(w, &before)); /* not even a fence */
    r.batch_ids = both;
    r.n_batch_ids = 2;
    got = ask(w, &r);
    TAP_STR(w->t, seqs(got.claim), "1,2");
    TAP_EQ(w->t, got.claim->fence, 1);
    TAP_STR(w->t, listed(w, "s", true), "3");
    (void)three;
    r.batch_ids = none;
    r.n_batch_ids = 1;
    WORK_RC(w,
            queue_claim(&(struct queue_site){ .space = w->space }, &r, &w->arena, &got,
                        &w->err),
            BELAY_INVALID);
}

static void test_exact(struct tap *t)
{
    work_everywhere(t, exact_claims);
}

static void requests_are_refused(struct work *w)
{
    const struct belay_claim_request good = request_of("s", "a", 1);
    struct belay_claim_request r[9];
    static const char *const reasons[] = { "session_id", "owner_id", "owner_id",
                                           "boundary",   "lease",    "lease",
                                           "max",        "wait",     "max" };
    static const char *const ids[1] = { "x" };
    struct belay_claimed out;

    for (size_t i = 0; i < COUNT_OF(r); i++)
        r[i] = good;
    r[0].session_id = "";
    r[1].owner_id = NULL;
    r[2].owner_id = "\x01";
    r[3].boundary = 2;
    r[4].lease_ms = -1;
    r[5].lease_ms = BELAY_LEASE_MAX_MS + 1;
    r[6].max = BELAY_CLAIM_MAX + 1;
    r[7].wait_ms = -1;
    r[8].batch_ids = ids;
    r[8].n_batch_ids = BELAY_CLAIM_MAX + 1;
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        WORK_RC(w,
                queue_claim(&(struct queue_site){ .space = w->space }, &r[i], &w->arena,
                            &out, &w->err),
                BELAY_INVALID);
        TAP_STR(w->t, w->err.reason, reasons[i]);
    }
}

static void test_requests(struct tap *t)
{
    work_everywhere(t, requests_are_refused);
}

/* --- holding --- */

static void late_is_not_lost(struct work *w)
{
    int64_t end = 0;

    (void)put(w, "s", "eXn");
    const struct belay_claim *c = take(w, "s", "a", 1);
    pass_ms(w, 10 * LEASE_MS);
    WORK_RC(w, renew(w, c, 500, &end), BELAY_OK);
    TAP_EQ(w->t, end, now_ms(w) + 500);
    TAP_STR(w->t, seqs(take(w, "s", "b", 1)), "-");
    pass_ms(w, 10 * LEASE_MS);
    WORK_RC(w, complete(w, c), BELAY_OK);
    TAP_STR(w->t, listed(w, "s", false), "");
}

static void test_late(struct tap *t)
{
    work_everywhere(t, late_is_not_lost);
}

/* Everything that a stale holder can try. */
static void nothing_works(struct work *w, const struct belay_claim *stale,
                          const char *reason)
{
    struct buf before = work_dump(w, "default");
    int64_t end = 7;

    WORK_RC(w, renew(w, stale, LEASE_MS, &end), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, reason);
    TAP_EQ(w->t, end, 7);
    WORK_RC(w, complete(w, stale), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, reason);
    TAP_EQ(w->t, abandon(w, stale), 0);
    TAP_OK(w->t, is_unchanged(w, &before));
}

static void takeover(struct work *w)
{
    (void)put(w, "s", "eXn");
    const struct belay_claim *first = take_for(w, "s", "a", 1, 0);
    TAP_EQ(w->t, first->expires_at_ms, now_ms(w));
    /* In the same millisecond, by the same owner. */
    const struct belay_claim *second = take(w, "s", "a", 1);
    TAP_STR(w->t, second->claim_id, "qwc:1:2");
    TAP_EQ(w->t, second->fence, 2);
    TAP_OK(w->t, strcmp(first->lease_token, second->lease_token) != 0);
    nothing_works(w, first, "superseded");
    WORK_RC(w, renew(w, second, LEASE_MS, NULL), BELAY_OK);

    TAP_EQ(w->t, abandon(w, second), 1);
    nothing_works(w, second, "released");
    nothing_works(w, first, "released");
    const struct belay_claim *third = take(w, "s", "b", 1);
    TAP_EQ(w->t, third->fence, 3);
    nothing_works(w, second, "superseded");

    /* The token alone is no proof: it can be computed. */
    struct belay_claim forged = *third;
    forged.lease_id = first->lease_id;
    nothing_works(w, &forged, "superseded");
    forged.lease_id = NULL;
    nothing_works(w, &forged, "superseded");
    forged = *third;
    forged.claim_id = "qwc:1:9";
    nothing_works(w, &forged, "superseded");

    WORK_RC(w, complete(w, third), BELAY_OK);
    nothing_works(w, third, "terminal");
    /* Sequences, and so claim ids, are never used again. */
    TAP_EQ(w->t, put(w, "s", "eXn")->enqueue_seq, 2);
    nothing_works(w, third, "terminal");
    TAP_STR(w->t, take(w, "s", "a", 1)->claim_id, "qwc:2:1");
}

static void test_takeover(struct tap *t)
{
    work_everywhere(t, takeover);
}

static void a_group_is_taken_over_in_part(struct work *w)
{
    (void)put(w, "s", "eJn");
    (void)put(w, "s", "eJn");
    const struct belay_claim *both = take_for(w, "s", "a", 2, 100);
    pass_ms(w, 100);
    const struct belay_claim *one = take(w, "s", "b", 1);
    TAP_STR(w->t, seqs(one), "1");

    struct buf before = work_dump(w, "default");
    WORK_RC(w, renew(w, both, LEASE_MS, NULL), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "superseded");
    WORK_RC(w, complete(w, both), BELAY_LEASE_LOST);
    TAP_OK(w->t, is_unchanged(w, &before));
    TAP_EQ(w->t, abandon(w, both), 1); /* what is still its own */
    TAP_STR(w->t, seqs(take(w, "s", "c", 2)), "2");
    WORK_RC(w, complete(w, one), BELAY_OK);
}

static void test_partial(struct tap *t)
{
    work_everywhere(t, a_group_is_taken_over_in_part);
}

static void renewing(struct work *w)
{
    int64_t end = 0;

    (void)put(w, "s", "eJn");
    (void)put(w, "s", "eJn");
    const struct belay_claim *c = take(w, "s", "a", 2);
    WORK_RC(w, renew(w, c, 1000, &end), BELAY_OK);
    TAP_EQ(w->t, end, c->expires_at_ms); /* L6: never nearer */
    WORK_RC(w, renew(w, c, 0, &end), BELAY_OK);
    TAP_EQ(w->t, end, c->expires_at_ms);
    WORK_RC(w, renew(w, c, BELAY_LEASE_MAX_MS, &end), BELAY_OK);
    TAP_EQ(w->t, end, now_ms(w) + BELAY_LEASE_MAX_MS);
    WORK_RC(w, renew(w, c, -1, &end), BELAY_INVALID);
    WORK_RC(w, renew(w, c, BELAY_LEASE_MAX_MS + 1, &end), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "lease");
    pass_ms(w, 2 * LEASE_MS);
    TAP_STR(w->t, seqs(take(w, "s", "b", 2)), "-");
}

static void test_renewing(struct tap *t)
{
    work_everywhere(t, renewing);
}

/* Q3: somebody looked when it was past due, and took nothing. */
static void promoted_and_still_held(struct work *w)
{
    static const char *const others[] = { "qwb:none" };
    struct belay_claim_request r = request_of("s", "b", 0);

    (void)put(w, "s", "eXn");
    const struct belay_claim *c = take_for(w, "s", "a", 1, 100);
    r.batch_ids = others;
    r.n_batch_ids = 1;
    pass_ms(w, 100);
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_OTHER_BATCHES);
    TAP_STR(w->t, listed(w, "s", true), "1");
    WORK_RC(w, renew(w, c, 100, NULL), BELAY_OK);
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_HEAD_HELD);
    pass_ms(w, 100);
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_OTHER_BATCHES);
    WORK_RC(w, complete(w, c), BELAY_OK);
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_EMPTY);

    (void)put(w, "s", "eXn");
    c = take_for(w, "s", "a", 1, 0);
    TAP_EQ(w->t, ask(w, &r).why, BELAY_NO_OTHER_BATCHES);
    TAP_EQ(w->t, abandon(w, c), 1);
    TAP_STR(w->t, seqs(take(w, "s", "b", 1)), "2");
}

static void test_promoted(struct tap *t)
{
    work_everywhere(t, promoted_and_still_held);
}

static void the_epoch_is_raised(struct work *w)
{
    struct epoch_info info;

    (void)put(w, "s", "eXn");
    const struct belay_claim *c = take(w, "s", "a", 1);
    WORK_RC(w,
            epoch_raise(w->space, bytes_str("restored"), "cli:ada", &w->arena, &info,
                        &w->err),
            BELAY_OK);
    nothing_works(w, c, "epoch");
    pass_ms(w, LEASE_MS);
    const struct belay_claim *next = take(w, "s", "a", 1);
    TAP_EQ(w->t, next->fence, ((int64_t)1 << FENCE_N_BITS) + 1);
    nothing_works(w, c, "superseded");
    WORK_RC(w, complete(w, next), BELAY_OK);
}

static void test_epoch(struct tap *t)
{
    work_everywhere(t, the_epoch_is_raised);
}

static void the_last_fence(struct work *w)
{
    struct belay_claim_request r = request_of("s", "a", 2);
    struct belay_claimed out;

    (void)put(w, "s", "eJn");
    (void)put(w, "s", "eJn");
    damage(w, &row_batch, 2, BATCH_LEASE + LEASE_FENCE, value_i64(FENCE_N_MAX));
    struct buf before = work_dump(w, "default");
    WORK_RC(w,
            queue_claim(&(struct queue_site){ .space = w->space }, &r, &w->arena, &out,
                        &w->err),
            BELAY_OUT_OF_RANGE);
    TAP_STR(w->t, w->err.reason, "fence");
    TAP_OK(w->t, is_unchanged(w, &before));
    TAP_STR(w->t, seqs(take(w, "s", "a", 1)), "1");
}

static void test_last_fence(struct tap *t)
{
    work_everywhere(t, the_last_fence);
}

static void exactly_what_is_listed(struct work *w)
{
    (void)put(w, "s", "eJn");
    (void)put(w, "s", "eJn");
    (void)put(w, "s", "eXn");
    (void)put(w, "t", "eXn");
    const struct belay_claim *c = take(w, "s", "a", 2);
    const struct belay_claim *other = take(w, "s", "b", 2);
    struct belay_batch b[3] = { c->batches[0], c->batches[1], other->batches[0] };
    struct belay_claim wrong = *c;
    struct buf before = work_dump(w, "default");

    wrong.batches = b;
    wrong.n_batches = 1;
    WORK_RC(w, complete(w, &wrong), BELAY_LEASE_LOST);
    wrong.n_batches = 3;
    WORK_RC(w, complete(w, &wrong), BELAY_LEASE_LOST);
    TAP_STR(w->t, w->err.reason, "superseded");
    b[1] = other->batches[0]; /* the right number of them */
    wrong.n_batches = 2;
    WORK_RC(w, complete(w, &wrong), BELAY_LEASE_LOST);
    b[1] = c->batches[0];
    WORK_RC(w, complete(w, &wrong), BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "duplicate_batch");
    wrong.n_batches = 3; /* and a foreign one behind it */
    WORK_RC(w, complete(w, &wrong), BELAY_INVALID);
    b[1] = c->batches[1];
    b[1].batch_id = other->batches[0].batch_id;
    wrong.n_batches = 2;
    WORK_RC(w, complete(w, &wrong), BELAY_LEASE_LOST);
    b[1].batch_id = NULL;
    b[1].enqueue_seq = 0;
    WORK_RC(w, complete(w, &wrong), BELAY_INVALID);
    wrong.n_batches = 0;
    WORK_RC(w, complete(w, &wrong), BELAY_INVALID);
    WORK_RC(w, complete_in(w, "t", c), BELAY_LEASE_LOST);
    WORK_RC(w, renew(w, &wrong, 0, NULL), BELAY_INVALID);
    TAP_OK(w->t, is_unchanged(w, &before));

    /* By their ids alone, in any order. */
    for (size_t i = 0; i < 2; i++)
        b[i] = (struct belay_batch){ .batch_id = c->batches[1 - i].batch_id };
    wrong.n_batches = 2;
    WORK_RC(w, renew(w, &wrong, 2 * LEASE_MS, NULL), BELAY_OK);
    WORK_RC(w, complete(w, &wrong), BELAY_OK);
    TAP_STR(w->t, listed(w, "s", false), "3");
}

static void test_exactly(struct tap *t)
{
    work_everywhere(t, exactly_what_is_listed);
}

/* --- removing --- */

static const struct belay_batch *cancel(struct work *w, const char *session,
                                        const char *id)
{
    const struct belay_batch *out = NULL;

    WORK_RC(w, queue_cancel(w->space, session, id, &w->arena, &out, &w->err), BELAY_OK);
    return out;
}

static void cancelling(struct work *w)
{
    const struct belay_batch *one = put(w, "s", "eXn"), *two = put(w, "s", "eXg");
    const struct belay_batch *got = cancel(w, "s", two->batch_id);

    if (!TAP_OK(w->t, got != NULL))
        return;
    TAP_STR(w->t, got->batch_id, two->batch_id);
    TAP_STR(w->t, got->items[0].payload, "{\"n\":1}");
    TAP_STR(w->t, listed(w, "s", false), "1");
    const struct belay_claim *c = take(w, "s", "a", 1);
    struct buf before = work_dump(w, "default");
    TAP_OK(w->t, !cancel(w, "s", one->batch_id));
    TAP_OK(w->t, !cancel(w, "s", two->batch_id));
    TAP_OK(w->t, !cancel(w, "t", one->batch_id));
    TAP_OK(w->t, is_unchanged(w, &before));
    TAP_STR(w->t, listed(w, "s", true), "");
    TAP_STR(w->t, listed(w, "s", false), "1");
    TAP_EQ(w->t, abandon(w, c), 1);
    TAP_OK(w->t, cancel(w, "s", one->batch_id) != NULL);

    /* A claim that is past due does not protect. */
    one = put(w, "s", "eXn");
    c = take(w, "s", "a", 1);
    pass_ms(w, LEASE_MS);
    TAP_OK(w->t, cancel(w, "s", one->batch_id) != NULL);
    nothing_works(w, c, "terminal");
    WORK_RC(w, queue_cancel(w->space, "s", "", &w->arena, &got, &w->err),
            BELAY_INVALID);

    /* And nothing of it is left, not even its source key. */
    struct belay_draft d = draft_of("s", "eXn");
    d.source_key = "k";
    (void)cancel(w, "s", enter(w, &d)->batch_id);
    TAP_EQ(w->t, enter(w, &d)->enqueue_seq, 5);
}

static void test_cancelling(struct tap *t)
{
    work_everywhere(t, cancelling);
}

static belay_rc drop(struct work *w, const char *which)
{
    return queue_drop(w->space, "s", which, &w->err);
}

/* Takes away a row, or adds an index entry, beside the batch's own. */
static belay_rc forget_name_body(struct txn *t, void *arg)
{
    struct value key[] = { value_str("s"), value_str(arg) };
    const struct row *row;
    belay_rc rc = txn_get(t, &row_batch_name, key, &row);

    return rc ? rc : txn_delete(t, &row_batch_name, key);
}

static belay_rc orphan_body(struct txn *t, void *arg)
{
    const char *index = arg;

    return txn_rank_add(t, bytes_str(index), 77, bytes_str("77"));
}

static void write_aside(struct work *w, txn_body *body, const char *arg)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };

    WORK_RC(w, txn_run(w->space, body, (void *)arg, NULL, &arena, &w->err), BELAY_OK);
}

static void dropping(struct work *w)
{
    const struct belay_batch *one = put(w, "s", "eXn"), *two = put(w, "s", "eXn");

    (void)put(w, "s", "eXn");
    const struct belay_claim *c = take(w, "s", "a", 1);
    WORK_RC(w, drop(w, one->batch_id), BELAY_OK); /* held, all the same */
    nothing_works(w, c, "terminal");
    write_aside(w, forget_name_body, two->batch_id);
    WORK_RC(w, drop(w, two->batch_id), BELAY_NOT_FOUND);
    WORK_RC(w, drop(w, "2"), BELAY_OK);
    WORK_RC(w, drop(w, "2"), BELAY_NOT_FOUND);
    TAP_STR(w->t, w->err.entity, "2");
    WORK_RC(w, drop(w, "0"), BELAY_NOT_FOUND);
    WORK_RC(w, drop(w, "-3"), BELAY_NOT_FOUND);
    WORK_RC(w, queue_drop(w->space, "t", "3", &w->err), BELAY_NOT_FOUND);
    WORK_RC(w, drop(w, NULL), BELAY_INVALID);
    TAP_STR(w->t, listed(w, "s", false), "3");
    WORK_RC(w, drop(w, "3"), BELAY_OK);
    TAP_EQ(w->t, put(w, "s", "eXn")->enqueue_seq, 4);
    TAP_STR(w->t, listed(w, "s", false), "4");
}

static void test_dropping(struct tap *t)
{
    work_everywhere(t, dropping);
}

/* --- damage --- */

#define J(text)                                                               \
    {                                                                         \
        .kind = VALUE_JSON, .b = {(const uint8_t *)(text), sizeof(text) - 1 } \
    }
#define S(text)                                                               \
    {                                                                         \
        .kind = VALUE_TEXT, .b = {(const uint8_t *)(text), sizeof(text) - 1 } \
    }
#define N(n)                        \
    {                               \
        .kind = VALUE_I64, .i = (n) \
    }

/* clang-format off */
static const struct {
    const struct row_type *type; unsigned column; struct value value;
    const char *reason, *shown;
} damages[] = {
    { &row_batch, BATCH_DELIVERY, S("some\ntimes"), "delivery", "some\\ntimes" },
    { &row_batch, BATCH_DELIVERY, { .kind = VALUE_NULL }, "delivery", "missing" },
    { &row_batch, BATCH_SLOT, S(""), "slot", "" },
    { &row_batch, BATCH_MERGE_KEY, J("\"always\""), "merge_key", "always" },
    { &row_batch, BATCH_MERGE_KEY, J("{\"group\":\"a\"b\"}"), "merge_key", "group" },
    { &row_batch, BATCH_MERGE_KEY, J("{\"group\":\"\"}"), "merge_key", "group" },
    { &row_batch, BATCH_MERGE_KEY, J("{\"group\":\"\\n\"}"), "merge_key", "group" },
    { &row_batch, BATCH_AVAILABLE_AT_MS, N(-1), "available_at_ms", "-1" },
    { &row_batch, BATCH_ENQUEUED_AT_MS, N(INT64_MAX), "enqueued_at_ms", "9223372036854775807" },
    { &row_batch, BATCH_LEASE + LEASE_FENCE, N(-5), "lease_fence", "-5" },
    { &row_batch, BATCH_CLAIM_ID, S("qwc:1:1"), "claim_id", "qwc:1:1" },
    { &row_batch, BATCH_LEASE + LEASE_TOKEN, S("t"), "claim_id", "missing" },
    { &row_batch, BATCH_ITEMS, J("{}"), "payload", "{}" },
    { &row_batch, BATCH_ITEMS, J("[1"), "payload", "[1" },
    { &row_batch, BATCH_ITEMS, J("[1,]"), "payload", "[1,]" },
    { &row_batch, BATCH_ITEMS, J("[1] "), "payload", "[1]" },
    { &row_batch, BATCH_ITEMS, J("[01]"), "payload", "[01]" },
    { &row_batch, BATCH_ITEMS, J("[\"a]"), "payload", "[" },
    { &row_batch, BATCH_ITEMS, J("[\"\\"), "payload", "[" },
    { &row_batch, BATCH_ITEMS, J("[{\"a\"}]"), "payload", "{" },
    { &row_batch, BATCH_ITEMS, J("[nul]"), "payload", "[nul]" },
    { &row_batch, BATCH_ITEMS, J(""), "payload", "" },
    { &row_batch, BATCH_ITEMS, { .kind = VALUE_NULL }, "payload", "missing" },
    { &row_batch_payload, PAYLOAD_ITEMS, { .kind = VALUE_NULL }, "payload", "missing" },
    { &row_batch_payload, PAYLOAD_ITEMS, J("[1"), "payload", "[1" },
    { &row_batch, BATCH_ITEMS,
      J("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["), "payload", "[[" },
};
/* clang-format on */

static void damage_is_named(struct work *w)
{
    struct belay_claim_request r = request_of("s", "a", 8);
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_claimed claimed;
    struct belay_batches list;

    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        const struct belay_batch *good = put(w, "s", "eXn");
        const struct belay_batch *bad = damages[i].type == &row_batch_payload
                                            ? put_long(w, "s", "eXn", 0)
                                            : put(w, "s", "eXn");
        char seq[24];
        (void)snprintf(seq, sizeof(seq), "%lld", (long long)bad->enqueue_seq);
        damage(w, damages[i].type, bad->enqueue_seq, damages[i].column,
               damages[i].value);
        /* What is before it can still be claimed. */
        const struct belay_claim *c = take(w, "s", "a", 8);
        TAP_EQ(w->t, c->batches[0].enqueue_seq, good->enqueue_seq);
        WORK_RC(w, complete(w, c), BELAY_OK);

        struct buf before = work_dump(w, "default");
        bool ok = WORK_RC(w,
                          queue_claim(&(struct queue_site){ .space = w->space }, &r,
                                      &w->arena, &claimed, &w->err),
                          BELAY_CORRUPT);
        ok &= TAP_STR(w->t, w->err.reason, damages[i].reason);
        ok &= TAP_OK(w->t, strstr(w->err.message, damages[i].shown) != NULL);
        ok &= TAP_OK(w->t, strstr(w->err.message, bad->batch_id) != NULL);
        ok &= WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &list, &w->err),
                      BELAY_CORRUPT);
        ok &= TAP_STR(w->t, w->err.reason, damages[i].reason);
        ok &= TAP_OK(w->t, is_unchanged(w, &before));
        ok &= WORK_RC(w, drop(w, i % 2 ? seq : bad->batch_id), BELAY_OK);
        ok &= TAP_STR(w->t, listed(w, "s", false), "");
        if (!ok)
            printf("# row %zu: %s\n", i, damages[i].reason);
    }
}

/* Short payloads are in the batch's row, others beside it; nobody can tell. */
static void payloads_of_any_length(struct work *w)
{
    static const size_t lengths[] = { 3, BATCH_ITEMS_MAX - 2, /* with its brackets */
                                      BATCH_ITEMS_MAX - 1, BATCH_ITEMS_MAX, 100000 };
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_draft d = draft_of("s", "eJg");
    struct belay_enqueued again;
    struct belay_batches list;
    char key[24];

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        const char *text = long_text(w, lengths[i]), *other = long_text(w, 4);
        (void)snprintf(key, sizeof(key), "key %zu", i);
        d.source_key = key;
        d.payloads = &text;
        TAP_STR(w->t, enter(w, &d)->items[0].payload, text);
        WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &again, &w->err), BELAY_OK);
        TAP_OK(w->t, again.replayed && !again.payload_mismatch);
        TAP_STR(w->t, again.batch->items[0].payload, text);
        d.payloads = &other;
        WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &again, &w->err), BELAY_OK);
        TAP_OK(w->t, again.replayed && again.payload_mismatch);
        TAP_STR(w->t, again.batch->items[0].payload, text);
    }
    WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &list, &w->err), BELAY_OK);
    const struct belay_claim *c = take(w, "s", "a", 8);
    if (!TAP_EQ(w->t, list.n, COUNT_OF(lengths)) ||
        !TAP_EQ(w->t, c->n_batches, COUNT_OF(lengths)))
        return;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        TAP_EQ(w->t, list.batches[i].items[0].payload_len, lengths[i]);
        TAP_EQ(w->t, c->batches[i].items[0].payload_len, lengths[i]);
    }
    WORK_RC(w, complete(w, c), BELAY_OK);
    struct buf left = work_dump(w, "default");
    buf_append_char(&left, '\0');
    TAP_OK(w->t, strstr((const char *)left.ptr, "batch_payload") == NULL);
    buf_release(&left);
}

static void test_payloads(struct tap *t)
{
    work_everywhere(t, payloads_of_any_length);
}

static void test_damage(struct tap *t)
{
    work_everywhere(t, damage_is_named);
}

static void an_entry_without_a_batch(struct work *w)
{
    static const char *const indexes[] = { "ready/s", "due/s" };
    struct belay_claim_request r = request_of("s", "a", 8);
    struct belay_claimed claimed;

    (void)put(w, "s", "eXn");
    for (size_t i = 0; i < COUNT_OF(indexes); i++) {
        const struct belay_claim *held = take(w, "s", "a", 1);
        write_aside(w, orphan_body, indexes[i]);
        struct buf before = work_dump(w, "default");
        WORK_RC(w,
                queue_claim(&(struct queue_site){ .space = w->space }, &r, &w->arena,
                            &claimed, &w->err),
                BELAY_CORRUPT);
        TAP_STR(w->t, w->err.reason, "rank_without_row");
        TAP_OK(w->t, is_unchanged(w, &before));
        WORK_RC(w, drop(w, "77"), BELAY_OK);
        WORK_RC(w, drop(w, "77"), BELAY_NOT_FOUND);
        TAP_EQ(w->t, abandon(w, held), 1);
    }
    TAP_STR(w->t, seqs(take(w, "s", "a", 1)), "1");
}

static void test_orphans(struct tap *t)
{
    work_everywhere(t, an_entry_without_a_batch);
}

static void note(void *arg, const struct finding *f)
{
    buf_printf(arg, "%s %.*s;", f->what, (int)f->entity.len,
               f->entity.ptr ? (const char *)f->entity.ptr : "");
}

/* What a check finds, as "code entity;". */
static bool check_says(struct work *w, const char *want)
{
    CLEANUP(buf_release) struct buf found = { 0 };
    struct check_counts counts;

    WORK_RC(w, check_store(w->store, note, &found, &counts, &w->err), BELAY_OK);
    buf_append_char(&found, '\0');
    return TAP_STR(w->t, (const char *)found.ptr, want);
}

static void checks(struct work *w)
{
    char want[512];

    (void)put(w, "s", "eXn");
    (void)put(w, "s", "eJa");
    (void)put_at(w, "s", "eXn", now_ms(w) + 1000);
    const struct belay_batch *bad = put(w, "s", "eXn");
    (void)take(w, "s", "a", 1);
    (void)take_for(w, "s", "b", 1, 0);
    TAP_EQ(w->t, abandon(w, take(w, "s", "c", 1)), 1);
    WORK_RC(w, complete(w, take(w, "s", "d", 1)), BELAY_OK);
    check_says(w, "");

    write_aside(w, orphan_body, "due/s");
    damage(w, &row_batch, 4, BATCH_DUE_AT_MS, value_i64(0));
    check_says(w, "rank_without_row 77;rank_without_row 4;row_without_rank 4;");
    damage(w, &row_batch, 4, BATCH_DUE_AT_MS, value_null());
    damage(w, &row_batch, 4, BATCH_SLOT, value_str("sometimes"));
    (void)snprintf(want, sizeof(want), "bad_value %s;rank_without_row 77;",
                   bad->batch_id);
    check_says(w, want);
    WORK_RC(w, drop(w, "4"), BELAY_OK);
    WORK_RC(w, drop(w, "77"), BELAY_OK);
    check_says(w, "");
}

static void test_checks(struct tap *t)
{
    work_everywhere(t, checks);
}

/* --- lists --- */

/* Removes all but a few of 400. */
static belay_rc remove_body(struct txn *t, void *arg)
{
    const struct row *rows[400];
    struct queue_owned owned = { .batches = rows };
    belay_rc rc = BELAY_OK;

    (void)arg;
    for (int64_t seq = 1; seq < 400 && rc == BELAY_OK; seq++) {
        struct value key[] = { value_str("s"), value_i64(seq) };
        if (seq % 97 != 1)
            rc = txn_get(t, &row_batch, key, &rows[owned.n++]);
    }
    return rc ? rc : queue_remove(t, bytes_str("s"), &owned);
}

static void lists_have_pages(struct work *w)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 3 };
    struct belay_batches out;
    char got[128] = "";

    put_many(w, "eXn", 400, 0);
    write_aside(w, remove_body, NULL);
    TAP_STR(w->t, listed(w, "s", false), "1,98,195,292,389,400");
    TAP_STR(w->t, seqs(take(w, "s", "a", 1)), "1");
    TAP_STR(w->t, listed(w, "s", false), "1,98,195,292,389,400");
    TAP_STR(w->t, listed(w, "s", true), "98,195,292,389,400");
    do {
        WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &out, &w->err),
                BELAY_OK);
        for (size_t i = 0; i < out.n; i++) {
            size_t len = strlen(got);
            (void)snprintf(got + len, sizeof(got) - len, "%lld ",
                           (long long)out.batches[i].enqueue_seq);
        }
        (void)strncat(got, "| ", sizeof(got) - strlen(got) - 1);
        page.after_seq = out.next_after_seq;
    } while (out.next_after_seq > 0);
    TAP_STR(w->t, got, "1 98 195 | 292 389 400 | ");
    page.after_seq = INT64_MAX;
    WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &out, &w->err), BELAY_OK);
    TAP_EQ(w->t, out.n, 0);
    TAP_STR(w->t, listed(w, "nowhere", false), "");
    page.after_seq = -1;
    WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &out, &w->err),
            BELAY_INVALID);
    page = (struct belay_queue_page){ .size = sizeof(page), .limit = 1001 };
    WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &out, &w->err),
            BELAY_INVALID);
    TAP_STR(w->t, w->err.reason, "limit");
}

static void test_lists(struct tap *t)
{
    work_everywhere(t, lists_have_pages);
}

/* A page has at least one batch and not much more than 16 MiB. */
static void lists_are_bounded(struct work *w)
{
    enum { MANY = 20, EACH = 1 << 20 };
    char *big = malloc(EACH + 1);
    const char *const payloads[] = { big };
    struct belay_draft d = draft_of("s", "eXn");
    struct belay_queue_page page = { .size = sizeof(page) };
    size_t pages = 0, n = 0;
    struct belay_batches out;

    memset(big, 'x', EACH);
    big[0] = big[EACH - 1] = '"';
    big[EACH] = '\0';
    d.payloads = payloads;
    for (int i = 0; i < MANY; i++)
        (void)enter(w, &d);
    do {
        arena_reset(&w->arena);
        WORK_RC(w, queue_list(w->space, "s", &page, &w->arena, &out, &w->err),
                BELAY_OK);
        TAP_OK(w->t, out.n > 0 && out.n <= 32);
        n += out.n;
        pages++;
        page.after_seq = out.next_after_seq;
    } while (out.next_after_seq > 0);
    TAP_EQ(w->t, n, MANY);
    TAP_OK(w->t, pages > 1);
    free(big);
}

static void test_bounded(struct tap *t)
{
    struct work w;

    if (work_open(&w, t, ON_MEMORY))
        lists_are_bounded(&w);
    work_close(&w);
}

/* --- the end of an inbox --- */

static belay_rc close_body(struct txn *t, void *arg)
{
    return queue_close(t, bytes_str(arg));
}

static void a_deleted_inbox(struct work *w)
{
    struct belay_claim_request r = request_of("s", "a", 8);
    struct belay_draft d = draft_of("s", "eJn");
    struct belay_enqueued entered;
    struct belay_claimed claimed;
    bool left = true;

    d.source_key = "k";
    const struct belay_batch *first = enter(w, &d);
    for (int i = 0; i < 150; i++)
        (void)put_at(w, "s", "eJn", i % 3 == 0 ? now_ms(w) + 1000 : 0);
    const struct belay_claim *c = take(w, "s", "a", 8);
    WORK_RC(w, queue_purge(w->space, bytes_str("s"), 10, &left, &w->err),
            BELAY_WRONG_STATE);
    write_aside(w, close_body, "s");
    write_aside(w, close_body, "s");
    write_aside(w, close_body, "never");
    struct buf before = work_dump(w, "default");
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &entered, &w->err),
            BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "deleted");
    TAP_STR(w->t, w->err.message, "session s: it was deleted");
    d.session_id = "never";
    WORK_RC(w, queue_enqueue(w->space, &d, &w->arena, &entered, &w->err),
            BELAY_WRONG_STATE);
    WORK_RC(w,
            queue_claim(&(struct queue_site){ .space = w->space }, &r, &w->arena,
                        &claimed, &w->err),
            BELAY_WRONG_STATE);
    TAP_STR(w->t, w->err.reason, "deleted");
    TAP_STR(w->t, listed(w, "s", false), "");
    TAP_OK(w->t, !cancel(w, "s", first->batch_id));
    TAP_OK(w->t, is_unchanged(w, &before));

    WORK_RC(w, queue_purge(w->space, bytes_str("s"), 100, &left, &w->err), BELAY_OK);
    TAP_OK(w->t, left);
    WORK_RC(w, queue_purge(w->space, bytes_str("s"), 0, &left, &w->err), BELAY_OK);
    TAP_OK(w->t, left);
    WORK_RC(w, queue_purge(w->space, bytes_str("s"), 1000, &left, &w->err), BELAY_OK);
    TAP_OK(w->t, !left);
    WORK_RC(w, queue_purge(w->space, bytes_str("never"), 9, &left, &w->err), BELAY_OK);
    WORK_RC(w, queue_purge(w->space, bytes_str("nobody"), 9, &left, &w->err), BELAY_OK);
    nothing_works(w, c, "terminal");
    CLEANUP(buf_release) struct buf dump = work_dump(w, "default");
    buf_append_char(&dump, '\0');
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "qwb:"));
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "ready/"));
    TAP_OK(w->t, !strstr((const char *)dump.ptr, "due/"));
}

static void test_deleted(struct tap *t)
{
    work_everywhere(t, a_deleted_inbox);
}

/* --- claims as text --- */

static void claims_as_text(struct work *w)
{
    const struct belay_claim *c, *back = NULL;
    const char *text = NULL, *again = NULL;

    (void)put(w, "a/b c%\xc3\xa9", "eJn");
    (void)put(w, "a/b c%\xc3\xa9", "eJn");
    c = take(w, "a/b c%\xc3\xa9", "me", 8);
    char want[256];
    (void)snprintf(want, sizeof(want), "qwc:1:1/%s/%s/a%%2Fb%%20c%%25%%C3%%A9/1,2",
                   c->lease_token, c->lease_id);
    WORK_RC(w, claim_text(c, &w->arena, &text, &w->err), BELAY_OK);
    TAP_STR(w->t, text, want);
    if (!WORK_RC(w, claim_parse(text, &w->arena, &back, &w->err), BELAY_OK))
        return;
    TAP_STR(w->t, back->session_id, c->session_id);
    TAP_STR(w->t, seqs(back), "1,2");
    TAP_STR(w->t, back->owner_id, NULL);
    WORK_RC(w, claim_text(back, &w->arena, &again, &w->err), BELAY_OK);
    TAP_STR(w->t, again, text);
    WORK_RC(w, renew(w, back, 2 * LEASE_MS, NULL), BELAY_OK);
    WORK_RC(w, complete(w, back), BELAY_OK);
    nothing_works(w, back, "terminal");
}

#define TOKEN "27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071"
#define ID "0123456789abcdef0123456789abcdef"

/* clang-format off */
static const char *const bad_claims[] = {
    "",
    "qwc:1:1",
    "qwc:1:1/" TOKEN "/" ID "/s",
    "qwc:1:1/" TOKEN "/" ID "/s/",
    "qwc:1:1/" TOKEN "/" ID "/s/1,",
    "qwc:1:1/" TOKEN "/" ID "/s/,1",
    "qwc:1:1/" TOKEN "/" ID "/s/1/2",
    "qwc:1:1/" TOKEN "/" ID "/s/1,1",
    "qwc:1:1/" TOKEN "/" ID "/s/1,3,2",
    "qwc:1:1/" TOKEN "/" ID "/s/2",
    "qwc:1:1/" TOKEN "/" ID "/s/01",
    "qwc:1:1/" TOKEN "/" ID "/s/-1",
    "qwc:1:1/" TOKEN "/" ID "/s/1 ",
    "qwc:1:1/" TOKEN "/" ID "//1",
    "qwc:1:1/" TOKEN "/" ID "/a b/1",
    "qwc:1:1/" TOKEN "/" ID "/%61/1",
    "qwc:1:1/" TOKEN "/" ID "/%2f/1",
    "qwc:1:1/" TOKEN "/" ID "/%2/1",
    "qwc:1:1/" TOKEN "/" ID "/%/1",
    "qwc:1:1/" TOKEN "/" ID "/%0A/1",
    "qwc:1:1/" TOKEN "/" ID "/%FF/1",
    "qwc:1:1/" TOKEN "/" ID "0/s/1",
    "qwc:1:1/" TOKEN "0/" ID "/s/1",
    "qwc:1:1//" ID "/s/1",
    "qwc:0:1/" TOKEN "/" ID "/s/0",
    "qwc:1:0/" TOKEN "/" ID "/s/1",
    "qwc:1/" TOKEN "/" ID "/s/1",
    "qwc:1:1:1/" TOKEN "/" ID "/s/1",
    "qwb:1:1/" TOKEN "/" ID "/s/1",
    " qwc:1:1/" TOKEN "/" ID "/s/1",
    "qwc:99999999999999999999:1/" TOKEN "/" ID "/s/99999999999999999999",
};
/* clang-format on */

static void test_claim_text(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena a = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 };
    const struct belay_claim *claim = NULL;
    struct belay_error err;

    work_everywhere(t, claims_as_text);
    for (size_t i = 0; i < COUNT_OF(bad_claims); i++) {
        if (!TAP_EQ(t, claim_parse(bad_claims[i], &a, &claim, &err), BELAY_BAD_HANDLE))
            printf("# row: %s\n", bad_claims[i]);
        TAP_STR(t, err.reason, "malformed");
    }
    TAP_EQ(t, claim_parse(NULL, &a, &claim, &err), BELAY_BAD_HANDLE);
    TAP_OK(t, !claim);

    buf_append_str(&text, "qwc:1:1/" TOKEN "/" ID "/s/1");
    for (int i = 2; i <= BELAY_CLAIM_MAX; i++)
        buf_printf(&text, ",%d", i);
    buf_append_char(&text, '\0');
    TAP_EQ(t, claim_parse((const char *)text.ptr, &a, &claim, &err), BELAY_OK);
    TAP_EQ(t, claim->n_batches, BELAY_CLAIM_MAX);
    text.len--;
    buf_append_str(&text, ",9999");
    buf_append_char(&text, '\0');
    TAP_EQ(t, claim_parse((const char *)text.ptr, &a, &claim, &err), BELAY_BAD_HANDLE);
}

/* --- waiting --- */

/* A clock that runs on by itself whenever it is looked at, faster than anybody waits. */
#define STRIDE_US ((int64_t)6 * 1000000)

static int64_t running_mono_us(void *arg)
{
    fake_advance_us(arg, STRIDE_US);
    return fake_mono_us(arg);
}

static struct store *running_store(struct work *w)
{
    struct store_options options = { .schema = &schema_belay,
                                     .clock = w->config.clock,
                                     .random = w->config.random };
    struct store *s = NULL;

    options.clock.mono_us = running_mono_us;
    WORK_RC(w, store_open(&s, w->driver, &options, &w->err), BELAY_OK);
    return s;
}

static void waiting_for_time(struct work *w)
{
    struct store *s = running_store(w);
    struct space *sp = work_space(w, s, "default");
    struct belay_claim_request r = request_of("s", "a", 1);
    struct belay_error untouched;
    struct belay_claimed got;

    memset(&untouched, 'x', sizeof(untouched));
    memcpy(&w->err, &untouched, sizeof(untouched));
    r.wait_ms = 100000;
    int64_t begun = now_ms(w);
    belay_rc rc =
        queue_claim(&(struct queue_site){ .space = sp }, &r, &w->arena, &got, &w->err);
    TAP_EQ(w->t, rc, BELAY_OK);
    TAP_OK(w->t, !got.claim);
    TAP_EQ(w->t, got.why, BELAY_NO_EMPTY);
    TAP_OK(w->t, now_ms(w) >= begun + r.wait_ms);
    TAP_OK(w->t, memcmp(&w->err, &untouched, sizeof(untouched)) == 0);

    /* Until something becomes available; until somebody's claim is past due. */
    int64_t later = now_ms(w) + 300000;
    r.wait_ms = INT64_MAX;
    (void)put_at(w, "s", "eXn", later);
    WORK_RC(
        w,
        queue_claim(&(struct queue_site){ .space = sp }, &r, &w->arena, &got, &w->err),
        BELAY_OK);
    TAP_STR(w->t, seqs(got.claim), "1");
    TAP_OK(w->t, got.claim && got.claim->claimed_at_ms >= later);
    WORK_RC(
        w,
        queue_claim(&(struct queue_site){ .space = sp }, &r, &w->arena, &got, &w->err),
        BELAY_OK);
    TAP_OK(w->t, got.claim && got.claim->fence == 2);
    store_close(s);
}

static void test_waiting(struct tap *t)
{
    work_everywhere(t, waiting_for_time);
}

/* Somebody who waits on a thread of its own, by a clock that stands still. */
struct waiter {
    struct space *sp;
    struct belay_claim_request request;
    struct belay_claimed got;
    struct belay_arena arena;
    struct belay_error err;
    belay_rc rc;
};

static void *wait_thread(void *arg)
{
    struct waiter *v = arg;

    v->rc = queue_claim(&(struct queue_site){ .space = v->sp }, &v->request, &v->arena,
                        &v->got, &v->err);
    return NULL;
}

static int64_t real_ms(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg) / 1000;
}

/* What is in the inbox when somebody begins to wait, and what ends the waiting. */
struct act {
    const struct belay_claim *held;
    const struct belay_batch *first;
    struct belay_cancel *cancel;
};

static void act_enqueue(struct work *w, struct act *a)
{
    (void)a;
    (void)put(w, "s", "eXn");
}

static void act_enqueue_later(struct work *w, struct act *a)
{
    /* The waiter learns that there is something to wait for. */
    (void)a;
    (void)put_at(w, "s", "eXn", now_ms(w) + 1);
    pass_ms(w, 1);
}

static void act_abandon(struct work *w, struct act *a)
{
    TAP_EQ(w->t, abandon(w, a->held), 1);
}

static void act_claim(struct work *w, struct act *a)
{
    (void)a;
    TAP_STR(w->t, seqs(take(w, "s", "other", 1)), "1");
}

static void act_cancel(struct work *w, struct act *a)
{
    TAP_OK(w->t, cancel(w, "s", a->first->batch_id) != NULL);
}

static void act_drop(struct work *w, struct act *a)
{
    WORK_RC(w, drop(w, a->first->batch_id), BELAY_OK);
}

static void act_complete(struct work *w, struct act *a)
{
    WORK_RC(w, complete(w, a->held), BELAY_OK);
}

static void act_close(struct work *w, struct act *a)
{
    (void)a;
    write_aside(w, close_body, "s");
}

static void act_trigger(struct work *w, struct act *a)
{
    (void)w;
    belay_cancel_trigger(a->cancel);
}

/* clang-format off */
static const struct {
    const char *name, *batches;
    bool held; /* the first one is, past due */
    bool live; /* ... or not */
    int boundary;
    void (*act)(struct work *w, struct act *a);
    belay_rc rc;
    const char *want;
} waits[] = {
    { "enqueue",            "",        false, false, BELAY_IDLE, act_enqueue, BELAY_OK, "1" },
    { "enqueue for later",  "",        false, false, BELAY_IDLE, act_enqueue_later, BELAY_OK, "1" },
    { "abandon",            "eXn",     true,  true,  BELAY_IDLE, act_abandon, BELAY_OK, "1" },
    { "a claim of the head in the way",
      "aXn eXn", false, false, BELAY_ACTIVE_TURN_CHECKPOINT, act_claim, BELAY_OK, "2" },
    { "a cancel of it",
      "aXn eXn", false, false, BELAY_ACTIVE_TURN_CHECKPOINT, act_cancel, BELAY_OK, "2" },
    { "a drop of it",
      "aXn eXn", false, false, BELAY_ACTIVE_TURN_CHECKPOINT, act_drop, BELAY_OK, "2" },
    { "its late completion",
      "aXn eXn", true,  false, BELAY_ACTIVE_TURN_CHECKPOINT, act_complete, BELAY_OK, "2" },
    { "the session is deleted", "",    false, false, BELAY_IDLE, act_close, BELAY_WRONG_STATE, "-" },
    { "cancelled",          "",        false, false, BELAY_IDLE, act_trigger, BELAY_CANCELLED, "-" },
};
/* clang-format on */

static void wait_and_act(struct work *w, size_t row)
{
    struct act act = { .held = NULL };
    struct waiter v = { .sp = w->space, .request = request_of("s", "waiter", 1) };
    pthread_t thread;

    WORK_RC(w, belay_cancel_new(&act.cancel, &w->err), BELAY_OK);
    for (const char *p = waits[row].batches; *p; p += p[3] ? 4 : 3) {
        const struct belay_batch *b = put(w, "s", p);
        act.first = act.first ? act.first : b;
    }
    if (waits[row].held)
        act.held = take_for(w, "s", "holder", 1, waits[row].live ? LEASE_MS : 0);
    v.request.boundary = waits[row].boundary;
    v.request.wait_ms = 600000;
    v.request.cancel = act.cancel;
    int64_t begun = real_ms();
    pthread_create(&thread, NULL, wait_thread, &v);
    /* Most likely it waits by then; if not, it need not be woken. */
    const struct belay_clock real = clock_system();
    real.sleep_us(real.arg, 20000);
    waits[row].act(w, &act);
    pthread_join(thread, NULL);
    /* It was woken, and did not just look again after a while. */
    TAP_OK(w->t, real_ms() - begun < 4000);
    if (!TAP_EQ(w->t, v.rc, waits[row].rc) ||
        !TAP_STR(w->t, seqs(v.got.claim), waits[row].want))
        printf("# row: %s: %s\n", waits[row].name, v.err.message);
    arena_release(&v.arena);
    belay_cancel_free(act.cancel);
}

static void test_woken(struct tap *t)
{
    static const enum work_driver drivers[] = { ON_MEMORY, ON_SQLITE_FILE, ON_POSTGRES,
                                                ON_VALKEY };

    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        for (size_t d = 0; d < COUNT_OF(drivers); d++) {
            struct work w;
            if (!work_chosen(t, drivers[d]))
                continue;
            if (work_open(&w, t, drivers[d]))
                wait_and_act(&w, i);
            work_close(&w);
        }
    }
}

/* --- many at once --- */

enum { WORKERS = 4, WORK = 120 };

struct crew {
    struct work *w;
    struct space *sp;
    _Atomic int granted[WORK + 1];
    _Atomic int done, failed;
};

static void *work_thread(void *arg)
{
    struct crew *crew = arg;
    struct belay_claim_request r = request_of("s", "o", 3);

    r.lease_ms = BELAY_LEASE_MAX_MS;
    while (atomic_load(&crew->done) < WORK && atomic_load(&crew->failed) == 0) {
        CLEANUP(arena_release) struct belay_arena arena = { 0 };
        struct belay_claimed got = { .claim = NULL };
        struct belay_error err;
        belay_rc rc = queue_claim(&(struct queue_site){ .space = crew->sp }, &r, &arena,
                                  &got, &err);
        if (rc && rc != BELAY_CONTENTION)
            atomic_fetch_add(&crew->failed, 1);
        if (rc || !got.claim)
            continue;
        for (size_t i = 0; i < got.claim->n_batches; i++)
            atomic_fetch_add(&crew->granted[got.claim->batches[i].enqueue_seq], 1);
        struct completing c = { bytes_str("s"), got.claim };
        do {
            rc = txn_run(crew->sp, complete_body, &c, NULL, &arena, &err);
        } while (rc == BELAY_CONTENTION);
        if (rc)
            atomic_fetch_add(&crew->failed, 1);
        atomic_fetch_add(&crew->done, (int)got.claim->n_batches);
    }
    return NULL;
}

static void many_claim(struct work *w)
{
    struct crew crew = { .w = w, .sp = w->space };
    pthread_t threads[WORKERS];

    for (int i = 0; i < WORK; i++)
        (void)put(w, "s", i % 5 == 0 ? "eXn" : "eJn");
    for (size_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work_thread, &crew);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    TAP_EQ(w->t, atomic_load(&crew.failed), 0);
    for (int i = 1; i <= WORK; i++)
        TAP_EQ(w->t, atomic_load(&crew.granted[i]), 1);
    TAP_STR(w->t, listed(w, "s", false), "");
}

static void test_many(struct tap *t)
{
    work_everywhere(t, many_claim);
}

/* --- what it costs, and what goes wrong on the way --- */

/* One for all that is asked, one for all that is done. */
static void round_trips(struct work *w)
{
    struct belay_draft d = draft_of("s", "eJn");

    if (!work_is_traced(w))
        return;
    d.source_key = "k";
    (void)put(w, "warm", "eXn"); /* the namespace, a commit slot */
    pass_ms(w, 100);
    trace_reset(w->driver);
    (void)enter(w, &d);
    work_expect_trips(w, 1, 1);
    (void)put(w, "s", "eJn");
    work_expect_trips(w, 1, 1);
    const struct belay_claim *c = take(w, "s", "a", 8);
    TAP_STR(w->t, seqs(c), "1,2");
    work_expect_trips(w, 1, 1);
    WORK_RC(w, renew(w, c, LEASE_MS, NULL), BELAY_OK);
    work_expect_trips(w, 1, 1);
    TAP_EQ(w->t, abandon(w, c), 2);
    work_expect_trips(w, 1, 1);
}

/* A batch is found by its key first; past due ones are moved first; payloads that have
 * rows of their own are asked for; so is what a claim is about, unless a session's commit
 * has done that. */
static void more_round_trips(struct work *w)
{
    struct belay_draft d = draft_of("s", "eJn");

    if (!work_is_traced(w))
        return;
    d.source_key = "k";
    (void)enter(w, &d);
    (void)put(w, "s", "eJn");
    pass_ms(w, 100);
    trace_reset(w->driver);
    (void)enter(w, &d);
    work_expect_trips(w, 2, 1);
    (void)take_for(w, "s", "a", 8, 0);
    trace_reset(w->driver);
    const struct belay_claim *c = take(w, "s", "a", 8);
    TAP_STR(w->t, seqs(c), "1,2");
    work_expect_trips(w, 2, 1);
    WORK_RC(w, complete(w, c), BELAY_OK);
    work_expect_trips(w, 2, 1);
    (void)put_long(w, "s", "eXn", 0);
    trace_reset(w->driver);
    c = take(w, "s", "a", 8);
    TAP_STR(w->t, seqs(c), "3");
    work_expect_trips(w, 2, 1);
}

/* Another program claims and completes what this one puts there. */
static const char *elsewhere(struct work *w, struct space *there, size_t max)
{
    struct space *here = w->space;

    w->space = there;
    const struct belay_claim *c = take(w, "s", "b", max);
    if (c)
        WORK_RC(w, complete(w, c), BELAY_OK);
    w->space = here;
    return c ? seqs(c) : "-";
}

/* Q1: who puts something into an inbox meets nobody who takes something out of it; and he who
 * knows the inbox so far sees what has entered since. */
static void producers_are_alone(struct work *w)
{
    static const char *const firsts[] = { "1", "2", "3", "4" };
    bool far = w->driver->caps & DRIVER_FAR;

    if (!work_is_traced(w))
        return;
    struct store *store = work_store(w);
    struct space *there = work_space(w, store, "default");
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        (void)put(w, "s", "eJn");
        if (i > 1) /* the namespace, a commit slot, the inbox */
            work_expect_trips(w, far ? 0 : 1, 1);
        TAP_STR(w->t, elsewhere(w, there, 1), firsts[i]);
        trace_reset(w->driver);
    }
    for (unsigned i = 0; i < 3; i++)
        (void)put(w, "s", "eJn");
    TAP_STR(w->t, elsewhere(w, there, 1), "5");
    TAP_STR(w->t, elsewhere(w, there, 1), "6");
    (void)put(w, "s", "eJn");
    TAP_STR(w->t, elsewhere(w, there, 8), "7,8");
    (void)put(w, "s", "eJn");
    (void)put(w, "s", "eJn");
    (void)put_at(w, "s", "eJn", now_ms(w) + 1000);
    TAP_STR(w->t, elsewhere(w, there, 1), "9");
    pass_ms(w, 2000);
    (void)put(w, "s", "eJn");
    TAP_STR(w->t, elsewhere(w, there, 8), "10,11,12");
    TAP_STR(w->t, elsewhere(w, there, 1), "-");
    (void)put(w, "s", "eJn");
    TAP_STR(w->t, elsewhere(w, there, 1), "13");
    store_close(store);
}

static void test_round_trips(struct tap *t)
{
    work_everywhere(t, round_trips);
    work_everywhere(t, more_round_trips);
    work_everywhere(t, producers_are_alone);
}

/* A commit that meets a conflict, or whose reply is lost. */
static void fail_next(struct work *w, enum fault_kind kind)
{
    const struct fault f = { .op = FAULT_ON_COMMIT, .kind = kind, .nth = 1 };

    WORK_RC(w, fault_arm(w->driver, &f, &w->err), BELAY_OK);
}

static void test_runs_again(struct tap *t)
{
    static const enum fault_kind kinds[] = { FAULT_CONFLICT, FAULT_LOST, FAULT_AFTER };
    struct work w;
    struct driver *faulty = NULL;
    int64_t seq = 0;

    if (!work_open(&w, t, ON_MEMORY)) {
        work_close(&w);
        return;
    }
    store_close(w.store);
    WORK_RC(&w, fault_wrap(&faulty, w.driver, &w.config.clock, &w.err), BELAY_OK);
    w.driver = faulty;
    w.store = work_store(&w);
    w.space = work_space(&w, w.store, "default");
    (void)put(&w, "warm", "eXn");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        fail_next(&w, kinds[i]);
        TAP_EQ(t, put(&w, "s", "eXn")->enqueue_seq, ++seq);
        fail_next(&w, kinds[i]);
        const struct belay_claim *c = take(&w, "s", "a", 8);
        TAP_EQ(t, c->n_batches, 1);
        TAP_EQ(t, c->batches[0].enqueue_seq, seq);
        TAP_EQ(t, c->fence, 1);
        fail_next(&w, kinds[i]);
        WORK_RC(&w, renew(&w, c, 2 * LEASE_MS, NULL), BELAY_OK);
        fail_next(&w, kinds[i]);
        TAP_EQ(t, abandon(&w, c), 1);
        c = take(&w, "s", "a", 8);
        TAP_EQ(t, c->fence, 2);
        fail_next(&w, kinds[i]);
        WORK_RC(&w, complete(&w, c), BELAY_OK);
        TAP_STR(t, listed(&w, "s", false), "");
    }
    work_close(&w);
}

static const struct tap_case cases[] = {
    { "a batch enters the inbox with all it has", test_enters },
    { "drafts that cannot be enqueued are refused by name", test_refused },
    { "queued_work_source_keys_are_idempotent", test_source_keys },
    { "two handles, many keyless enqueues in one millisecond", test_two_stores },
    { "queued_work_join_groups_by_delivery_policy_and_merge_key", test_groups },
    { "a claim says all there is to say", test_claim },
    { "large groups are claimed whole", test_large_groups },
    { "held, future and other sessions' batches part no group", test_adjacency },
    { "L12: many that become due are claimed in order", test_due },
    { "nothing to claim has a reason", test_why },
    { "queued_work_exact_claim_uses_selected_batch_ids", test_exact },
    { "requests that make no sense are refused by name", test_requests },
    { "L5: late is not lost", test_late },
    { "L4: a stale claim changes nothing", test_takeover },
    { "L6: renewing is all or nothing after a partial takeover", test_partial },
    { "L6: renewing never shortens", test_renewing },
    { "Q3: being moved to ready ends no lease", test_promoted },
    { "X10: raising the epoch makes every claim stale", test_epoch },
    { "fence at maximum: refused, nothing changed", test_last_fence },
    { "completion with duplicate, missing, extra or foreign ids", test_exactly },
    { "queued_work_cancel_removes_only_unclaimed_batches", test_cancelling },
    { "dropping asks for nothing", test_dropping },
    { "payloads of any length", test_payloads },
    { "a corrupt batch is named, and can be dropped", test_damage },
    { "an index entry without a batch is named, and can be dropped", test_orphans },
    { "a check knows where batches stand", test_checks },
    { "lists have pages", test_lists },
    { "lists are bounded in bytes", test_bounded },
    { "nothing enters a deleted inbox, and it can be emptied", test_deleted },
    { "a claim is one text, and only that", test_claim_text },
    { "a claim waits for time to pass", test_waiting },
    { "threads: a waiting claim is woken by what concerns it", test_woken },
    { "threads: L1: many claim at once, each batch is granted once", test_many },
    { "round trips", test_round_trips },
    { "a body that runs again gives the same answer", test_runs_again },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
