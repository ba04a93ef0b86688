/* Appending frames: output and events of an attempt, in order, by who holds it. */
#include "base/json.h"
#include "work/exec_show.h"

#define FRAMES_MAX 1000
#define FRAMES_BYTES_MAX ((size_t)1 << 20)
/* This many are kept; what is above goes in steps, so that not every append trims. */
#define FRAMES_KEPT 10000
#define TRIM_STEP 1000
#define FRAME_WORD_MAX 255

struct appending {
    const struct belay_frame *frames;
    struct bytes *texts; /* of each, but for its time */
    size_t n;
    struct exec_handle handle;
    struct bytes stream, topic;

    /* Of one run of the body. */
    struct exec e;
    const struct row *head;
    int64_t now_ms;
    struct belay_frame_appended out;
};

/* --- what is asked --- */

static belay_rc check_word(const char *word, const char *what, struct belay_error *err)
{
    if (!word || bytes_is_id(bytes_str(word), FRAME_WORD_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, what,
                      "frame: its %s must be 1 to %d bytes of UTF-8 without control "
                      "characters",
                      what, FRAME_WORD_MAX);
}

static belay_rc too_large(size_t i, size_t len, struct belay_error *err)
{
    belay_rc rc = err_reason(err, BELAY_INVALID, "frame_too_large",
                             "frame %zu: has %zu bytes, at most %zu are taken", i, len,
                             BELAY_FRAME_MAX);

    err_numbers(err, (int64_t)BELAY_FRAME_MAX, (int64_t)len);
    return rc;
}

static belay_rc check_frame(const struct belay_frame *f, size_t i,
                            struct belay_error *err)
{
    if (!vector_name(BELAY_DIM_FRAME_KIND, f->kind))
        return err_reason(err, BELAY_INVALID, "kind", "frame %zu: kind %d is none", i,
                          (int)f->kind);
    if (!vector_name(BELAY_DIM_FRAME_MODE, f->mode))
        return err_reason(err, BELAY_INVALID, "mode", "frame %zu: mode %d is none", i,
                          (int)f->mode);
    if (f->len > BELAY_FRAME_MAX)
        return too_large(i, f->len, err);
    if (f->seq < 0 || f->caller_seq < -1)
        return err_reason(err, BELAY_INVALID, "seq",
                          "frame %zu: sequence %lld is less than nothing", i,
                          (long long)(f->seq < 0 ? f->seq : f->caller_seq));
    belay_rc rc = check_word(f->frame_type, "frame_type", err);
    return rc ? rc : check_word(f->correlation_id, "correlation_id", err);
}

static belay_rc check_frames(const struct belay_frame *frames, size_t n,
                             struct belay_error *err)
{
    size_t bytes = 0;
    int64_t last = 0;

    if (n < 1 || n > FRAMES_MAX)
        return err_reason(err, BELAY_INVALID, "frames",
                          "frames: %zu, must be 1 to %d at once", n, FRAMES_MAX);
    for (size_t i = 0; i < n; i++) {
        belay_rc rc = check_frame(&frames[i], i, err);
        if (rc)
            return rc;
        if (frames[i].seq > 0 && frames[i].seq <= last)
            return err_reason(err, BELAY_INVALID, "seq",
                              "frame %zu: sequence %lld does not follow %lld", i,
                              (long long)frames[i].seq, (long long)last);
        last = frames[i].seq > 0 ? frames[i].seq : last;
        bytes += frames[i].len;
    }
    if (bytes <= FRAMES_BYTES_MAX)
        return BELAY_OK;
    belay_rc rc = err_reason(err, BELAY_INVALID, "too_large",
                             "frames: %zu bytes, at most %zu are taken at once", bytes,
                             FRAMES_BYTES_MAX);
    err_numbers(err, (int64_t)FRAMES_BYTES_MAX, (int64_t)bytes);
    return rc;
}

/* --- as they are kept --- */

static void add_word(struct buf *out, const char *before, const char *word)
{
    if (!word)
        return;
    buf_append_str(out, before);
    json_append_string(out, bytes_str(word));
}

/* What readers are told: not always what tells repeats. */
static int64_t told_seq(const struct belay_frame *f)
{
    return f->caller_seq != 0 ? f->caller_seq : f->seq;
}

/* All but {"at":ms, which the body knows: text where it is text, else base64. */
static void write_frame(struct buf *out, const struct belay_frame *f)
{
    struct bytes data = bytes_of(f->bytes, f->len);
    bool text =
        bytes_is_utf8(data) && (data.len == 0 || !memchr(data.ptr, 0, data.len));

    buf_append_str(out, ",\"k\":\"");
    buf_append_str(out, vector_name(BELAY_DIM_FRAME_KIND, f->kind));
    buf_append_char(out, '"');
    add_word(out, ",\"t\":", f->frame_type);
    add_word(out, ",\"c\":", f->correlation_id);
    if (told_seq(f) > 0) {
        buf_append_str(out, ",\"s\":");
        buf_append_i64(out, told_seq(f));
    }
    if (text) {
        buf_append_str(out, ",\"d\":");
        json_append_string(out, data);
    } else {
        buf_append_str(out, ",\"b\":\"");
        base64_append(out, data);
        buf_append_char(out, '"');
    }
    buf_append_char(out, '}');
}

static belay_rc write_frames(struct appending *c, struct belay_arena *a,
                             struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    c->texts = arena_zalloc(a, c->n, sizeof(*c->texts));
    if (!c->texts)
        return err_no_memory(err, "frames");
    for (size_t i = 0; i < c->n; i++) {
        buf_reset(&text);
        write_frame(&text, &c->frames[i]);
        if (text.failed || !arena_copy(a, buf_view(&text), &c->texts[i]))
            return err_no_memory(err, "frames");
    }
    return BELAY_OK;
}

/* --- appending --- */

static void head_key(const struct appending *c, struct value key[2])
{
    key[0] = value_text(c->handle.execution);
    key[1] = value_i64(c->handle.attempt);
}

static belay_rc append_one(struct txn *t, const struct appending *c, struct bytes text,
                           int64_t seq, struct buf *entry)
{
    buf_reset(entry);
    buf_append_str(entry, "{\"at\":");
    buf_append_i64(entry, c->now_ms);
    buf_append(entry, text);
    if (entry->failed)
        return err_no_memory(txn_error(t), "a frame");
    return txn_log_append(t, c->stream, seq, buf_view(entry));
}

static belay_rc write_head(struct txn *t, const struct appending *c,
                           const int64_t numbers[FRAME_HEAD_COLUMNS])
{
    struct value key[2], v[FRAME_HEAD_COLUMNS];
    struct change changes[FRAME_HEAD_COLUMNS];
    size_t n = 0;

    head_key(c, key);
    v[FRAME_HEAD_EXECUTION] = key[0];
    v[FRAME_HEAD_ATTEMPT] = key[1];
    for (unsigned i = FRAME_HEAD_LAST_SEQ; i < FRAME_HEAD_COLUMNS; i++) {
        v[i] = value_i64(numbers[i]);
        changes[n++] = (struct change){ i, v[i] };
    }
    return c->head ? txn_put(t, &row_frame_head, key, changes, n)
                   : txn_insert(t, &row_frame_head, v);
}

/* Drops what is too old, once there is enough of it. */
static belay_rc trim(struct txn *t, const struct appending *c, int64_t *head)
{
    int64_t last = head[FRAME_HEAD_LAST_SEQ];

    if (last - head[FRAME_HEAD_FIRST_SEQ] + 1 < FRAMES_KEPT + TRIM_STEP)
        return BELAY_OK;
    head[FRAME_HEAD_FIRST_SEQ] = last - FRAMES_KEPT + 1;
    return txn_log_trim(t, c->stream, last - FRAMES_KEPT);
}

static belay_rc append_new(struct txn *t, struct appending *c, int64_t *head)
{
    CLEANUP(buf_release) struct buf entry = { .ptr = NULL };
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->n && rc == BELAY_OK; i++) {
        const struct belay_frame *f = &c->frames[i];
        /* It was appended before, by a call whose answer was lost. */
        if (f->seq > 0 && f->seq <= head[FRAME_HEAD_CALLER_SEQ]) {
            c->out.repeated++;
            continue;
        }
        rc = append_one(t, c, c->texts[i], ++head[FRAME_HEAD_LAST_SEQ], &entry);
        head[FRAME_HEAD_BYTES] += (int64_t)f->len;
        if (f->seq > 0)
            head[FRAME_HEAD_CALLER_SEQ] = f->seq;
    }
    return rc;
}

/* The execution and the head of its frames, in one round trip. */
static belay_rc load(struct txn *t, struct appending *c)
{
    struct value key[2];
    head_key(c, key);
    const struct row_want wants[] = { { &row_execution, &key[0] },
                                      { &row_epoch, NULL },
                                      { &row_frame_head, key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = txn_now(t, &c->now_ms);
    c->head = rc == BELAY_OK ? rows[2] : NULL;
    return rc ? rc : exec_open(t, &c->handle, &c->e);
}

static belay_rc append_body(struct txn *t, void *arg)
{
    struct appending *c = arg;
    int64_t head[FRAME_HEAD_COLUMNS] = { [FRAME_HEAD_FIRST_SEQ] = 1 };
    belay_rc rc = load(t, c);
    if (rc)
        return rc;

    for (unsigned i = FRAME_HEAD_LAST_SEQ; c->head && i < FRAME_HEAD_COLUMNS; i++)
        head[i] = row_i64(c->head, i, i == FRAME_HEAD_FIRST_SEQ);
    int64_t before = head[FRAME_HEAD_LAST_SEQ];
    head[FRAME_HEAD_LAST_AT_MS] = c->now_ms;
    c->out.repeated = 0;
    rc = append_new(t, c, head);
    c->out.seq = c->out.frame_count = head[FRAME_HEAD_LAST_SEQ];
    if (rc || head[FRAME_HEAD_LAST_SEQ] == before)
        return rc;
    rc = trim(t, c, head);
    if (rc == BELAY_OK)
        rc = write_head(t, c, head);
    return rc ? rc : txn_wake(t, c->topic);
}

belay_rc exec_append_frames(const struct exec_site *site, const struct belay_handle *h,
                            const struct belay_frame *frames, size_t n,
                            struct belay_frame_appended *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct appending c = { .frames = frames, .n = n };
    belay_rc rc = handle_check(site, h, &c.handle, err);

    if (rc == BELAY_OK)
        rc = check_frames(frames, n, err);
    if (rc == BELAY_OK)
        rc = write_frames(&c, &arena, err);
    if (rc)
        return rc;
    if (!frame_stream(c.handle.execution, c.handle.attempt, &arena, &c.stream) ||
        !exec_topic(c.handle.execution, &arena, &c.topic))
        return err_no_memory(err, "frames");
    rc = txn_run(site->space, append_body, &c, NULL, &arena, err);
    if (rc == BELAY_OK && out)
        *out = c.out;
    return rc;
}
