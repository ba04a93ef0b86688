/* Reading frames, also as they come.
 *
 * No guards: the execution is looked at first, then its frames.  Whoever appends holds the
 * execution, so when that shows an attempt that is over, all its frames are there. */
#include "base/json.h"
#include "work/exec_show.h"

#define ENTRY_MAX ((size_t)1 << 20)
/* Frames of one question; a page ends early behind this much of them. */
#define FRAME_PAGE 128
#define FRAMES_BYTES_MAX ((size_t)8 << 20)

bool frame_stream(struct bytes execution, int64_t attempt, struct belay_arena *a,
                  struct bytes *out)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_append_str(&text, FRAME_STREAM);
    buf_append(&text, execution);
    buf_append_char(&text, '/');
    buf_append_i64(&text, attempt);
    return !text.failed && arena_copy(a, buf_view(&text), out);
}

struct reading {
    const struct exec_site *site;
    const struct belay_frame_request *request;
    struct bytes id;
    size_t limit;
    struct belay_arena *arena;
    struct arena_mark mark; /* where a look begins */

    /* Of one run of the body. */
    struct belay_frames out;
};

/* --- decoding --- */

static belay_rc corrupt_frame(struct txn *t, const struct reading *r, int64_t seq)
{
    belay_rc rc = txn_fail(t, BELAY_CORRUPT, "frame",
                           "execution %.*s: frame %lld of attempt %lld cannot be read",
                           (int)r->id.len, (const char *)r->id.ptr, (long long)seq,
                           (long long)r->out.attempt);

    err_entity(txn_error(t), r->id);
    return rc;
}

static bool copy_word(const json_t *o, const char *key, struct belay_arena *a,
                      const char **out)
{
    const char *text = json_string_value(json_object_get(o, key));

    *out = NULL;
    return !text || show_text(a, bytes_str(text), out);
}

static bool copy_data(const json_t *o, struct belay_arena *a, struct bytes *out,
                      bool *no_memory)
{
    const json_t *text = json_object_get(o, "d"), *coded = json_object_get(o, "b");

    *no_memory = false;
    if (json_is_string(text)) {
        *no_memory = !arena_copy(
            a, bytes_of(json_string_value(text), json_string_length(text)), out);
        return !*no_memory;
    }
    return json_is_string(coded) &&
           base64_read(bytes_of(json_string_value(coded), json_string_length(coded)), a,
                       out, no_memory);
}

static belay_rc decode(struct txn *t, const struct reading *r,
                       const struct log_entry *entry, struct belay_frame_row *out)
{
    CLEANUP(json_decrefp) json_t *o = NULL;
    struct belay_arena *a = txn_arena(t);
    struct bytes data = { .ptr = NULL };
    bool no_memory = false;
    int kind = 0;
    belay_rc rc = json_read(entry->data, ENTRY_MAX, &o, txn_error(t));

    if (rc == BELAY_INVALID)
        return corrupt_frame(t, r, entry->seq);
    if (rc)
        return rc;
    const char *name = json_string_value(json_object_get(o, "k"));
    if (!name || !vector_parse(BELAY_DIM_FRAME_KIND, bytes_str(name), &kind) ||
        (!copy_data(o, a, &data, &no_memory) && !no_memory))
        return corrupt_frame(t, r, entry->seq);
    *out = (struct belay_frame_row){
        .attempt = r->out.attempt,
        .seq = entry->seq,
        .kind = kind,
        .mode = (int32_t)BELAY_FRAME_DURABLE,
        .at_ms = json_integer_value(json_object_get(o, "at")),
        .bytes = data.ptr,
        .len = data.len,
        .caller_seq = json_integer_value(json_object_get(o, "s")),
    };
    if (no_memory || !copy_word(o, "t", a, &out->frame_type) ||
        !copy_word(o, "c", a, &out->correlation_id))
        return err_no_memory(txn_error(t), "a frame");
    return BELAY_OK;
}

/* --- looking --- */

static belay_rc not_found(struct txn *t, struct bytes id)
{
    belay_rc rc =
        txn_fail(t, BELAY_NOT_FOUND, "execution", "execution %.*s: there is none",
                 (int)id.len, (const char *)id.ptr);

    err_entity(txn_error(t), id);
    return rc;
}

/* Whether more will come of the attempt, and why not. */
static belay_rc see_whether_closed(struct txn *t, struct reading *r,
                                   const struct exec *e)
{
    struct value key[2] = { value_text(r->id), value_i64(r->out.attempt) };
    const struct row *row = NULL;
    belay_rc rc = BELAY_OK;

    if (r->out.attempt >= r->out.attempts) { /* it has not begun */
        r->out.closed = r->out.terminal;
        r->out.closed_reason = r->out.terminal ? exec_closed_reason(e) : NULL;
        return BELAY_OK;
    }
    r->out.closed_reason = exec_closed_reason(e);
    r->out.closed = r->out.closed_reason || r->out.attempt + 1 < r->out.attempts;
    if (r->out.closed)
        rc = txn_peek(t, &row_attempt, key, &row);
    if (rc == BELAY_OK && row &&
        !show_column(txn_arena(t), row, ATTEMPT_CLOSED_REASON, &r->out.closed_reason))
        rc = err_no_memory(txn_error(t), "frames");
    return rc;
}

static belay_rc read_some(struct txn *t, struct reading *r, struct bytes stream,
                          struct belay_frame_row *items, size_t *bytes, bool *more)
{
    size_t room = r->limit - r->out.n, asked = room < FRAME_PAGE ? room : FRAME_PAGE;
    int64_t after = r->out.n > 0 ? items[r->out.n - 1].seq : r->request->after_seq;
    struct log_entries log;
    belay_rc rc = txn_log_read(t, stream, after, asked, &log);

    if (rc)
        return rc;
    for (size_t i = 0; i < log.n && rc == BELAY_OK; i++) {
        rc = decode(t, r, &log.entry[i], &items[r->out.n]);
        *bytes += log.entry[i].data.len;
        r->out.n++;
    }
    *more = log.n == asked && r->out.n < r->limit && *bytes < FRAMES_BYTES_MAX;
    return rc;
}

static belay_rc read_entries(struct txn *t, struct reading *r)
{
    struct belay_frame_row *items =
        arena_zalloc(txn_arena(t), r->limit, sizeof(*items));
    struct bytes stream;
    belay_rc rc = BELAY_OK;
    size_t bytes = 0;

    if (!items || !frame_stream(r->id, r->out.attempt, txn_arena(t), &stream))
        return err_no_memory(txn_error(t), "frames");
    r->out.items = items;
    for (bool more = true; more && rc == BELAY_OK;)
        rc = read_some(t, r, stream, items, &bytes, &more);
    /* More may have come since the head was read. */
    if (rc == BELAY_OK && r->out.n > 0 && items[r->out.n - 1].seq > r->out.frame_count)
        r->out.frame_count = items[r->out.n - 1].seq;
    return rc;
}

static belay_rc read_body(struct txn *t, void *arg)
{
    struct reading *r = arg;
    struct value key[2] = { value_text(r->id) };
    const struct row *row, *head = NULL;
    struct exec e;
    belay_rc rc = txn_peek(t, &row_execution, key, &row);

    if (rc)
        return rc;
    if (!row)
        return not_found(t, r->id);
    rc = exec_of(t, row, &e);
    if (rc)
        return rc;
    int64_t attempts = exec_i64(&e, EXEC_ATTEMPTS, 0);
    r->out = (struct belay_frames){
        .attempt = r->request->attempt < 0 ? attempts - 1 : r->request->attempt,
        .attempts = attempts,
        .terminal = vector_is_terminal(&e.vector),
    };
    rc = see_whether_closed(t, r, &e);
    key[1] = value_i64(r->out.attempt);
    if (rc == BELAY_OK && r->out.attempt < attempts)
        rc = txn_peek(t, &row_frame_head, key, &head);
    if (rc || !head)
        return rc;
    r->out.frame_count = row_i64(head, FRAME_HEAD_LAST_SEQ, 0);
    if (r->out.frame_count > r->request->after_seq)
        rc = read_entries(t, r);
    r->out.last_seq = r->out.frame_count;
    return rc;
}

static belay_rc look(void *arg, enum look *out, struct belay_error *err)
{
    struct reading *r = arg;
    const struct txn_options options = { .cancel = r->request->cancel,
                                         .read_only = true };

    arena_rewind(r->arena, r->mark);
    belay_rc rc = txn_run(r->site->space, read_body, r, &options, r->arena, err);
    *out = r->out.n > 0 || r->out.closed ? LOOK_DONE : LOOK_NOTHING;
    return rc;
}

static belay_rc check_request(const struct belay_frame_request *request,
                              struct belay_error *err)
{
    if (request->attempt < -1)
        return err_reason(err, BELAY_INVALID, "attempt",
                          "attempt: %lld is less than nothing",
                          (long long)request->attempt);
    if (request->after_seq < 0)
        return err_reason(err, BELAY_INVALID, "after_seq",
                          "after sequence: %lld is less than nothing",
                          (long long)request->after_seq);
    return exec_check_id(request->execution_id, err);
}

belay_rc exec_frames(const struct exec_site *site,
                     const struct belay_frame_request *request, struct belay_arena *a,
                     struct belay_frames *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct reading r = {
        .site = site, .request = request, .arena = a, .mark = arena_mark(a)
    };
    struct exec_watch watching = { .space = site->space,
                                   .wait_ms = request->wait_ms,
                                   .cancel = request->cancel,
                                   .look = look,
                                   .arg = &r };
    bool done = false;
    belay_rc rc = check_request(request, err);

    if (rc == BELAY_OK)
        rc = look_limit(request->limit, &r.limit, err);
    if (rc)
        return rc;
    r.id = bytes_str(request->execution_id);
    if (!exec_topic(r.id, &arena, &watching.topic))
        return err_no_memory(err, "a topic");
    rc = exec_watch(&watching, &done, err);
    if (rc == BELAY_OK)
        *out = r.out;
    return rc;
}
