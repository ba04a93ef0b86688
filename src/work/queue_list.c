/* Looking at an inbox. */
#include "work/queue_rows.h"

/* Batches of a page, at most and unless told. */
#define LIST_MAX 1000
#define LIST_USUAL 100
/* A page ends early behind this much payload, which is read a few batches at a time. */
#define LIST_BYTES_MAX ((size_t)16 << 20)
#define PAYLOAD_PAGE 16
/* Sequences asked for in one round trip, and round trips in one transaction. */
#define WALK_PAGE 128
#define WALK_PAGES 64

static const struct txn_options read_only = { .read_only = true };

/* --- listing --- */

/* Sequences are dense but for what was removed, so a list walks over them; where it
 * begins and ends the inbox knows. */
struct walk {
    const struct belay_queue_page *page;
    struct bytes session;
    int64_t start;
    size_t room; /* batches wanted */

    /* Of one run of the body. */
    int64_t now_ms, next; /* next: first sequence that was not looked at */
    int64_t seen;         /* batches, listed or not */
    const struct row **rows, **payloads;
    size_t n;       /* up to room + 1, which tells that there are more */
    bool end, full; /* there is nothing behind; there is too much to go on */
};

static belay_rc walk_page(struct txn *t, struct walk *w, int64_t last)
{
    struct batch_key keys[WALK_PAGE];
    struct row_want wants[WALK_PAGE] = { { .key = NULL } };
    const struct row *rows[WALK_PAGE];
    int64_t from = w->next;
    size_t n = last - from < WALK_PAGE ? (size_t)(last - from + 1) : WALK_PAGE;

    for (size_t i = 0; i < n; i++) {
        keys[i] = batch_key(w->session, from + (int64_t)i);
        wants[i] = (struct row_want){ &row_batch, keys[i].v };
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    for (size_t i = 0; i < n && rc == BELAY_OK && w->n <= w->room; i++) {
        w->next = from + (int64_t)i + 1;
        if (!rows[i])
            continue;
        struct lease l = lease_of(rows[i], BATCH_LEASE);
        w->seen++;
        if (!w->page->pending || !lease_is_live(&l, w->now_ms))
            w->rows[w->n++] = rows[i];
    }
    return rc;
}

static belay_rc walk_inbox(struct txn *t, struct walk *w, const struct inbox *in)
{
    bool whole = w->start <= in->first_seq;
    belay_rc rc = BELAY_OK;

    w->next = whole ? in->first_seq : w->start;
    for (unsigned i = 0; i < WALK_PAGES && rc == BELAY_OK && !w->end; i++) {
        if (w->next <= in->last_seq && w->n <= w->room)
            rc = walk_page(t, w, in->last_seq);
        w->end = w->next > in->last_seq || w->n > w->room ||
                 (whole && w->seen >= in->last_seq - in->gone);
    }
    return rc;
}

/* Payloads of what is listed; full when that is too much for one page. */
static belay_rc walk_payloads(struct txn *t, struct walk *w)
{
    size_t listed = w->n < w->room ? w->n : w->room, bytes = 0;

    for (size_t i = 0; i < listed; i += PAYLOAD_PAGE) {
        size_t n = listed - i < PAYLOAD_PAGE ? listed - i : PAYLOAD_PAGE;
        belay_rc rc = batch_payloads(t, &w->rows[i], n, &w->payloads[i]);
        if (rc)
            return rc;
        for (size_t k = i; k < i + n; k++)
            bytes += batch_items(w->rows[k], w->payloads[k])->b.len;
        if (bytes > LIST_BYTES_MAX && i + n < w->n) {
            w->full = true;
            w->n = i + n;
            return BELAY_OK;
        }
    }
    return BELAY_OK;
}

static belay_rc list_body(struct txn *t, void *arg)
{
    struct walk *w = arg;
    struct inbox in = { .exists = false };

    w->n = 0;
    w->seen = 0;
    w->end = w->full = false;
    w->rows = arena_zalloc(txn_arena(t), w->room + 1, sizeof(*w->rows));
    w->payloads = arena_zalloc(txn_arena(t), w->room + 1, sizeof(*w->payloads));
    if (!w->rows || !w->payloads)
        return err_no_memory(txn_error(t), "a list");
    belay_rc rc = txn_now(t, &w->now_ms);
    if (rc == BELAY_OK)
        rc = inbox_names(&in, w->session, txn_arena(t))
                 ? inbox_get_both(t, &in)
                 : err_no_memory(txn_error(t), "a list");
    if (rc)
        return rc;
    w->end = !in.exists || in.deleted;
    rc = walk_inbox(t, w, &in);
    return rc ? rc : walk_payloads(t, w);
}

static belay_rc check_page(const struct belay_queue_page *page, struct belay_error *err)
{
    if (page->limit > LIST_MAX)
        return err_reason(err, BELAY_INVALID, "limit",
                          "limit: %zu batches, at most %d are listed at once",
                          page->limit, LIST_MAX);
    if (page->after_seq < 0)
        return err_reason(err, BELAY_INVALID, "after_seq",
                          "after sequence: %lld is less than nothing",
                          (long long)page->after_seq);
    return BELAY_OK;
}

/* One part of the list, decoded behind what is there. */
static belay_rc list_part(struct space *sp, struct walk *w, const char *session_id,
                          struct belay_batch *batches, struct belay_arena *a,
                          struct belay_batches *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { .first = NULL };
    belay_rc rc = txn_run(sp, list_body, w, &read_only, &scratch, err);
    size_t listed = w->n < w->room ? w->n : w->room;

    for (size_t i = 0; i < listed && rc == BELAY_OK; i++) {
        rc = batch_decode(w->rows[i], w->payloads[i], session_id, a, &batches[out->n],
                          err);
        out->n += rc == BELAY_OK;
    }
    if (rc)
        return rc;
    if (w->full || w->n > w->room)
        out->next_after_seq = batches[out->n - 1].enqueue_seq;
    w->end |= w->full;
    w->room -= listed;
    w->start = w->next;
    return BELAY_OK;
}

belay_rc queue_list(struct space *sp, const char *session_id,
                    const struct belay_queue_page *page, struct belay_arena *a,
                    struct belay_batches *out, struct belay_error *err)
{
    struct walk w = { .page = page };
    struct belay_batches list = { .n = 0 };
    struct bytes session;
    belay_rc rc = queue_check_session(session_id, err);

    if (rc == BELAY_OK)
        rc = check_page(page, err);
    if (rc)
        return rc;
    w.session = bytes_str(session_id);
    w.room = page->limit > 0 ? page->limit : LIST_USUAL;
    w.start = page->after_seq < RANK_MAX ? page->after_seq + 1 : RANK_MAX;
    struct belay_batch *batches = arena_zalloc(a, w.room, sizeof(*batches));
    if (!batches || !arena_copy(a, w.session, &session))
        return err_no_memory(err, "a list");
    list.batches = batches;
    do {
        rc = list_part(sp, &w, (const char *)session.ptr, batches, a, &list, err);
    } while (rc == BELAY_OK && !w.end);
    if (rc == BELAY_OK)
        *out = list;
    return rc;
}
