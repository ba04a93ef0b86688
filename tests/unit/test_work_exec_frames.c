/* Frames of attempts, and the feed of events, on every driver. */
#include "base/json.h"
#include "test_work_exec_hands.h"

/* --- frames --- */

static struct belay_frames frames_of(struct hands *h, const char *id, int64_t attempt,
                                     int64_t after, size_t limit)
{
    const struct belay_frame_request r = { .size = sizeof(r),
                                           .execution_id = id,
                                           .attempt = attempt,
                                           .after_seq = after,
                                           .limit = limit };
    struct belay_frames out = { .n = 0 };

    WORK_RC(h->w, exec_frames(&h->site, &r, &h->w->arena, &out, &h->w->err), BELAY_OK);
    return out;
}

static struct belay_frame frame_of(int kind, const void *bytes, size_t len)
{
    return (struct belay_frame){
        .size = sizeof(struct belay_frame), .kind = kind, .bytes = bytes, .len = len
    };
}

static void appending(struct hands *h)
{
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    struct belay_frame f[] = {
        frame_of(BELAY_FRAME_STDOUT, "line\n\x1b[0m \"\\", 11),
        frame_of(BELAY_FRAME_STDERR, "\xff\x00\x80", 3),
        frame_of(BELAY_FRAME_EVENT, "{\"a\":\"\xc3\xa4\"}", 10),
        frame_of(BELAY_FRAME_BLOB, "a\0b", 3),
        frame_of(BELAY_FRAME_STDOUT, "", 0),
    };
    struct belay_frame_appended out = { .seq = -1 };
    struct tap *t = h->w->t;

    f[2].frame_type = "step \"1\"";
    f[2].correlation_id = "c-1";
    TAP_EQ(t, frames_of(h, id, -1, 0, 0).n, 0);
    WORK_RC(h->w, exec_append_frames(&h->site, &work.handle, f, 2, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.seq, 2);
    TAP_EQ(t, out.frame_count, 2);
    pass(h, 5);
    WORK_RC(h->w,
            exec_append_frames(&h->site, &work.handle, f + 2, 3, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.seq, 5);

    struct belay_frames got = frames_of(h, id, -1, 0, 0);
    if (!TAP_EQ(t, got.n, COUNT_OF(f)))
        return;
    for (size_t i = 0; i < COUNT_OF(f); i++) {
        const struct belay_frame_row *row = &got.items[i];
        TAP_EQ(t, row->seq, i + 1);
        TAP_EQ(t, row->attempt, 0);
        TAP_EQ(t, row->kind, f[i].kind);
        TAP_EQ(t, row->mode, BELAY_FRAME_DURABLE);
        TAP_EQ(t, row->at_ms, START_MS + (i < 2 ? 0 : 5));
        TAP_OK(t, bytes_eq(bytes_of(row->bytes, row->len),
                           bytes_of(f[i].bytes, f[i].len)));
        TAP_STR(t, row->frame_type, f[i].frame_type);
        TAP_STR(t, row->correlation_id, f[i].correlation_id);
    }
    TAP_EQ(t, got.attempt, 0);
    TAP_EQ(t, got.attempts, 1);
    TAP_EQ(t, got.last_seq, 5);
    TAP_EQ(t, got.frame_count, 5);
    TAP_OK(t, !got.closed && !got.terminal && !got.closed_reason);
    got = frames_of(h, id, 0, 3, 1);
    TAP_EQ(t, got.n, 1);
    TAP_EQ(t, got.items[0].seq, 4);
    TAP_EQ(t, got.last_seq, 5);
    TAP_EQ(t, frames_of(h, id, 0, 5, 0).n, 0);
}

static void test_appending(struct tap *t)
{
    with_hands(t, appending);
}

static struct belay_frame numbered(int64_t seq)
{
    struct belay_frame f = frame_of(BELAY_FRAME_STDOUT, "x", 1);

    f.seq = seq;
    return f;
}

static void sequences(struct hands *h)
{
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    const struct belay_frame first[] = { numbered(1), numbered(5), numbered(0) };
    const struct belay_frame more[] = { numbered(5), numbered(6) };
    const struct belay_frame wrong[] = { numbered(9), numbered(0), numbered(9) };
    struct belay_frame_appended out = { .seq = -1 };
    struct tap *t = h->w->t;

    WORK_RC(h->w,
            exec_append_frames(&h->site, &work.handle, first, 3, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.frame_count, 3);
    /* The answer was lost, and the call is made again: what has no number comes twice. */
    WORK_RC(h->w,
            exec_append_frames(&h->site, &work.handle, first, 2, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.frame_count, 3);
    TAP_EQ(t, out.repeated, 2);
    TAP_EQ(t, out.seq, 3);
    WORK_RC(h->w, exec_append_frames(&h->site, &work.handle, more, 2, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.frame_count, 4);
    TAP_EQ(t, out.repeated, 1);
    WORK_RC(h->w,
            exec_append_frames(&h->site, &work.handle, wrong, 3, &out, &h->w->err),
            BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "seq");
    TAP_EQ(t, frames_of(h, id, -1, 0, 0).n, 4);
}

/* Readers see the caller's number; who hands frames on tells them another, or none. */
static void told_sequences(struct hands *h)
{
    static const int64_t told[] = { 3, 0, 70, 0 };
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    struct belay_frame f[] = { numbered(3), numbered(0), numbered(4), numbered(5) };
    struct belay_frame_appended out = { .seq = -1 };
    struct tap *t = h->w->t;

    f[2].caller_seq = 70;
    f[3].caller_seq = -1;
    WORK_RC(h->w, exec_append_frames(&h->site, &work.handle, f, 4, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.repeated, 0);
    struct belay_frames got = frames_of(h, id, -1, 0, 0);
    TAP_EQ(t, got.n, 4);
    for (size_t i = 0; i < got.n && i < COUNT_OF(told); i++)
        TAP_EQ(t, got.items[i].caller_seq, told[i]);
    WORK_RC(h->w,
            exec_append_frames(&h->site, &work.handle, &f[2], 2, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(t, out.repeated, 2);
    f[0].caller_seq = -2;
    WORK_RC(h->w, exec_append_frames(&h->site, &work.handle, f, 1, &out, &h->w->err),
            BELAY_INVALID);
}

static void test_told_sequences(struct tap *t)
{
    with_hands(t, told_sequences);
}

static void test_sequences(struct tap *t)
{
    with_hands(t, sequences);
}

static void check_refused(struct hands *h, const struct belay_work *work,
                          const struct belay_frame *f, size_t n, const char *reason)
{
    struct belay_frame_appended out = { .seq = 7 };

    WORK_RC(h->w, exec_append_frames(&h->site, &work->handle, f, n, &out, &h->w->err),
            BELAY_INVALID);
    TAP_STR(h->w->t, h->w->err.reason, reason);
    TAP_EQ(h->w->t, out.seq, 7);
}

static void limits(struct hands *h)
{
    enum { MANY = 1001, SIXTEENTH = BELAY_PAYLOAD_MAX / 16 };
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    char *bytes = arena_zalloc(&h->w->arena, BELAY_FRAME_MAX + 1, 1);
    struct belay_frame *f = arena_zalloc(&h->w->arena, MANY, sizeof(*f));
    struct belay_frame_appended out;

    for (size_t i = 0; i < MANY; i++)
        f[i] = frame_of(BELAY_FRAME_STDOUT, bytes, 1);
    check_refused(h, &work, f, 0, "frames");
    check_refused(h, &work, f, MANY, "frames");
    f[1].len = BELAY_FRAME_MAX + 1;
    check_refused(h, &work, f, 2, "frame_too_large");
    TAP_EQ(h->w->t, h->w->err.expected, BELAY_FRAME_MAX);
    TAP_EQ(h->w->t, h->w->err.actual, BELAY_FRAME_MAX + 1);
    f[1] = frame_of(9, "", 0);
    check_refused(h, &work, f, 2, "kind");
    f[1] = frame_of(BELAY_FRAME_EVENT, "", 0);
    f[1].mode = 5;
    check_refused(h, &work, f, 2, "mode");
    f[1].mode = 0;
    f[1].seq = -1;
    check_refused(h, &work, f, 2, "seq");
    f[1].seq = 0;
    f[1].frame_type = "a\n";
    check_refused(h, &work, f, 2, "frame_type");
    f[1].frame_type = NULL;
    f[1].correlation_id = "";
    check_refused(h, &work, f, 2, "correlation_id");
    for (size_t i = 0; i < 17; i++)
        f[i] = frame_of(BELAY_FRAME_STDOUT, bytes, i < 16 ? SIXTEENTH : 1);
    check_refused(h, &work, f, 17, "too_large");
    TAP_EQ(h->w->t, frames_of(h, id, -1, 0, 0).frame_count, 0);
    WORK_RC(h->w, exec_append_frames(&h->site, &work.handle, f, 16, &out, &h->w->err),
            BELAY_OK);
    TAP_EQ(h->w->t, out.frame_count, 16);
}

static void test_limits(struct tap *t)
{
    with_hands(t, limits);
}

static void retention(struct hands *h)
{
    enum { CALL = 1000, CALLS = 12 };
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    struct belay_frame *f = arena_zalloc(&h->w->arena, CALL, sizeof(*f));
    struct belay_frames got;
    size_t n = 0;
    int64_t after = 0;

    if (work_is_slow(h->w))
        return;
    for (size_t i = 0; i < CALL; i++)
        f[i] = frame_of(BELAY_FRAME_STDOUT, "x", 1);
    for (int i = 0; i < CALLS; i++)
        WORK_RC(h->w,
                exec_append_frames(&h->site, &work.handle, f, CALL, NULL, &h->w->err),
                BELAY_OK);
    append(h, &work, "last");
    got = frames_of(h, id, -1, 0, 1);
    TAP_EQ(h->w->t, got.items[0].seq, 2001);
    TAP_EQ(h->w->t, got.frame_count, 12001);
    do {
        got = frames_of(h, id, -1, after, 1000);
        n += got.n;
        after = got.n > 0 ? got.items[got.n - 1].seq : after;
    } while (got.n > 0);
    TAP_EQ(h->w->t, n, 10001);
    TAP_EQ(h->w->t, after, 12001);
}

static void test_retention(struct tap *t)
{
    with_hands(t, retention);
}

static void closed(struct hands *h)
{
    const struct belay_frame f = frame_of(BELAY_FRAME_STDOUT, "late", 4);
    const char *id = submit_plain(h);
    struct tap *t = h->w->t;

    struct belay_frames got = frames_of(h, id, -1, 0, 0);
    TAP_EQ(t, got.attempt, -1);
    TAP_OK(t, !got.closed && !got.terminal);
    struct belay_work first = take(h, "w1");
    append(h, &first, "one");
    lose(h);
    got = frames_of(h, id, -1, 0, 0);
    TAP_EQ(t, got.n, 1);
    TAP_OK(t, got.closed && !got.terminal);
    TAP_STR(t, got.closed_reason, "lease_expired");
    struct belay_work second = take(h, "w2");
    append(h, &second, "two");
    append(h, &second, "three");
    got = frames_of(h, id, 0, 0, 0);
    TAP_EQ(t, got.n, 1);
    TAP_OK(t, got.closed && !got.terminal);
    TAP_STR(t, got.closed_reason, "reclaimed");
    TAP_EQ(t, got.attempts, 2);
    got = frames_of(h, id, -1, 0, 0);
    TAP_EQ(t, got.n, 2);
    TAP_EQ(t, got.attempt, 1);
    TAP_OK(t, !got.closed);
    got = frames_of(h, id, 2, 0, 0); /* it may come yet */
    TAP_OK(t, !got.closed);
    TAP_EQ(t, got.n, 0);

    /* L4: who lost it changes nothing, nor does who has ended it. */
    struct buf before = work_dump(h->w, "default"), after;
    WORK_RC(h->w, exec_append_frames(&h->site, &first.handle, &f, 1, NULL, &h->w->err),
            BELAY_LEASE_LOST);
    TAP_STR(t, h->w->err.reason, "superseded");
    after = work_dump(h->w, "default");
    TAP_OK(t, bytes_eq(buf_view(&before), buf_view(&after)));
    buf_release(&before);
    buf_release(&after);
    complete(h, &second);
    WORK_RC(h->w, exec_append_frames(&h->site, &second.handle, &f, 1, NULL, &h->w->err),
            BELAY_LEASE_LOST);
    got = frames_of(h, id, -1, 0, 0);
    TAP_EQ(t, got.n, 2);
    TAP_OK(t, got.closed && got.terminal);
    TAP_STR(t, got.closed_reason, "attempt_success");
    TAP_OK(t, frames_of(h, id, 2, 0, 0).closed);
}

static void test_closed(struct tap *t)
{
    with_hands(t, closed);
}

static void refused_reads(struct hands *h)
{
    struct belay_frame_request r = { .size = sizeof(r), .execution_id = "exe_none" };
    struct belay_frames out;

    WORK_RC(h->w, exec_frames(&h->site, &r, &h->w->arena, &out, &h->w->err),
            BELAY_NOT_FOUND);
    TAP_STR(h->w->t, h->w->err.entity, "exe_none");
    r.limit = 1001;
    WORK_RC(h->w, exec_frames(&h->site, &r, &h->w->arena, &out, &h->w->err),
            BELAY_INVALID);
    TAP_STR(h->w->t, h->w->err.reason, "limit");
    r.limit = 0;
    r.after_seq = -1;
    WORK_RC(h->w, exec_frames(&h->site, &r, &h->w->arena, &out, &h->w->err),
            BELAY_INVALID);
    TAP_STR(h->w->t, h->w->err.reason, "after_seq");
    r.after_seq = 0;
    r.attempt = -2;
    WORK_RC(h->w, exec_frames(&h->site, &r, &h->w->arena, &out, &h->w->err),
            BELAY_INVALID);
    TAP_STR(h->w->t, h->w->err.reason, "attempt");
}

static void test_refused_reads(struct tap *t)
{
    with_hands(t, refused_reads);
}

/* --- following frames --- */

struct follower {
    const struct exec_site *site;
    struct belay_frame_request frames;
    struct belay_event_request events;
    size_t n;
    bool closed;
    belay_rc rc;
    struct belay_arena arena;
    struct belay_error err;
};

static void *frames_thread(void *arg)
{
    struct follower *f = arg;
    struct belay_frames out = { .n = 0 };

    f->rc = exec_frames(f->site, &f->frames, &f->arena, &out, &f->err);
    f->n = out.n;
    f->closed = out.closed;
    return NULL;
}

static void *events_thread(void *arg)
{
    struct follower *f = arg;
    struct belay_events out = { .n = 0 };

    f->rc = exec_events(f->site, &f->events, &f->arena, &out, &f->err);
    f->n = out.n;
    return NULL;
}

/* Runs one who waits, and meanwhile `act`. */
static void follow(struct hands *h, struct follower *f, void *(*thread)(void *),
                   void (*act)(struct hands *h, const struct belay_work *work),
                   const struct belay_work *work)
{
    int64_t begun = real_ms();
    pthread_t id;

    f->site = &h->site;
    pthread_create(&id, NULL, thread, f);
    real_pause();
    act(h, work);
    pthread_join(id, NULL);
    arena_release(&f->arena);
    WORK_RC(h->w, f->rc, BELAY_OK);
    TAP_OK(h->w->t, real_ms() - begun < 4000);
}

static void act_append(struct hands *h, const struct belay_work *work)
{
    append(h, work, "more");
}

static void woken(struct hands *h)
{
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    struct follower f = { .frames = { .size = sizeof(f.frames),
                                      .execution_id = id,
                                      .attempt = -1,
                                      .wait_ms = 600000 } };

    if (h->w->on == ON_DECORATED || h->w->on == ON_SQLITE_MEMORY)
        return;
    append(h, &work, "one");
    f.frames.after_seq = 1;
    follow(h, &f, frames_thread, act_append, &work);
    TAP_EQ(h->w->t, f.n, 1);
    TAP_OK(h->w->t, !f.closed);
    f.frames.after_seq = 2;
    follow(h, &f, frames_thread, complete, &work);
    TAP_EQ(h->w->t, f.n, 0);
    TAP_OK(h->w->t, f.closed);
}

static void test_woken(struct tap *t)
{
    with_hands(t, woken);
}

/* --- events --- */

static struct belay_events events_of(struct hands *h, struct belay_event_request r)
{
    struct belay_events out = { .n = 0 };

    r.size = sizeof(r);
    WORK_RC(h->w, exec_events(&h->site, &r, &h->w->arena, &out, &h->w->err), BELAY_OK);
    return out;
}

/* Types, as letters, of all from there on, page by page; goes on with the page's cursor or
 * with that of its last event. */
static const char *told(struct hands *h, struct belay_event_request r, bool by_event)
{
    static const char letters[] = "cArxvRi";
    static char text[256];
    size_t n = 0;

    for (int pages = 0; pages < 100; pages++) {
        struct belay_events page = events_of(h, r);
        for (size_t i = 0; i < page.n && n + 2 < sizeof(text); i++)
            text[n++] = letters[page.items[i].type];
        if (page.n == 0)
            break;
        r.after = by_event ? page.items[page.n - 1].cursor : page.cursor;
    }
    text[n] = 0;
    return text;
}

/* Three executions: one retried and completed, one lost, taken over, revoked, given back,
 * delayed and cancelled, one replayed. */
static void live(struct hands *h, const char *ids[3])
{
    static const struct belay_retry_policy once = { .size = sizeof(once),
                                                    .backoff = BELAY_BACKOFF_FIXED,
                                                    .max_retries = 1,
                                                    .delay_ms = 50 };
    static const struct belay_tag tag = { "team", "blue" };
    struct belay_work work;
    bool revoked;

    ids[0] = submit(h, (struct belay_submission){ .retry = &once });
    work = take(h, "w1");
    fail(h, &work, BELAY_FAILURE_TRANSIENT, "no");
    pass(h, 50);
    work = take(h, "w1");
    complete_with(h, &work, bytes_str("{\"ok\":true}"), true);

    ids[1] = submit(h, (struct belay_submission){ .tags = &tag, .n_tags = 1 });
    (void)take(h, "w1");
    lose(h);
    (void)take(h, "w2");
    WORK_RC(h->w, exec_revoke(&h->site, ids[1], NULL, "no", &revoked, &h->w->err),
            BELAY_OK);
    work = take(h, "w2");
    WORK_RC(h->w, exec_release(&h->site, &work.handle, &h->w->err), BELAY_OK);
    WORK_RC(h->w, exec_cancel(&h->site, ids[1], "why", NULL, &h->w->err), BELAY_OK);

    ids[2] = submit(h, (struct belay_submission){ .lane = "other" });
    work = take_from(h, "other", "w3");
    complete_with(h, &work, bytes_of("\0\xff", 2), false);
    WORK_RC(h->w, exec_replay(&h->site, ids[2], "again", &h->w->err), BELAY_OK);
}

#define LIFE "ArAcAxRvRrcAci"

static void events(struct hands *h)
{
    const char *ids[3];
    struct tap *t = h->w->t;

    TAP_EQ(t, events_of(h, (struct belay_event_request){ .limit = 1 }).n, 0);
    live(h, ids);
    for (size_t limit = 0; limit < 6; limit++) {
        struct belay_event_request r = { .limit = limit };
        TAP_STR(t, told(h, r, false), LIFE);
        TAP_STR(t, told(h, r, true), LIFE);
    }
    struct belay_event_request some = { .types = 1U << BELAY_EVENT_COMPLETION,
                                        .limit = 2 };
    TAP_STR(t, told(h, some, false), "ccc");
    some.types |= 1U << BELAY_EVENT_REVOKED;
    TAP_STR(t, told(h, some, true), "cvcc");
    some = (struct belay_event_request){ .execution_id = ids[0], .limit = 1 };
    TAP_STR(t, told(h, some, false), "ArAc");

    struct belay_events all =
        events_of(h, (struct belay_event_request){ .limit = 100 });
    if (!TAP_EQ(t, all.n, strlen(LIFE)))
        return;
    TAP_STR(t, all.items[0].execution_id, ids[0]);
    TAP_STR(t, all.items[0].lane, "l");
    TAP_STR(t, all.items[0].worker, "w1");
    TAP_EQ(t, all.items[0].fence, 1);
    TAP_EQ(t, all.items[0].produced_at_ms, START_MS);
    TAP_STR(t, all.items[1].reason, "retry");
    const struct belay_event *c = &all.items[3];
    TAP_EQ(t, c->outcome, BELAY_TERMINAL_SUCCESS);
    TAP_EQ(t, c->produced_at_ms, START_MS + 50);
    TAP_OK(t,
           bytes_eq(bytes_of(c->payload, c->payload_len), bytes_str("{\"ok\":true}")));
    TAP_OK(t, c->payload_is_json);
    c = &all.items[10];
    TAP_EQ(t, c->outcome, BELAY_TERMINAL_CANCELLED);
    TAP_STR(t, c->reason, "why");
    TAP_OK(t, !c->payload);
    c = &all.items[12];
    TAP_OK(t, bytes_eq(bytes_of(c->payload, c->payload_len), bytes_of("\0\xff", 2)));
    TAP_OK(t, !c->payload_is_json && !all.trimmed);
}

static void test_events(struct tap *t)
{
    with_hands(t, events);
}

static void filtered(struct hands *h)
{
    struct belay_scanner_filter blue = {
        .size = sizeof(blue), .ns = "default", .tag_key = "team", .tag_value = "blue"
    };
    struct belay_event_request r = { .filter = &blue, .limit = 2 };
    const char *ids[3];
    struct tap *t = h->w->t;
    struct belay_events out;

    live(h, ids);
    struct belay_events page = events_of(h, r);
    TAP_EQ(t, page.n, 2);
    TAP_STR(t, page.items[0].execution_id, ids[1]);
    r.limit = 100;
    page = events_of(h, r);
    TAP_EQ(t, page.n, strlen("AxRvRrc"));
    /* Where nothing matches, the cursor goes on all the same. */
    blue.tag_value = "red";
    page = events_of(h, r);
    TAP_EQ(t, page.n, 0);
    r.filter = NULL;
    r.after = page.cursor;
    TAP_EQ(t, events_of(h, r).n, 0);
    r.after = NULL;
    r.filter = &blue;
    blue = (struct belay_scanner_filter){ .size = sizeof(blue), .ns = "another" };
    TAP_EQ(t, events_of(h, r).n, 0);
    blue.ns = "default";
    TAP_EQ(t, events_of(h, r).n, strlen(LIFE));
    blue.tag_key = "team";
    WORK_RC(h->w, exec_events(&h->site, &r, &h->w->arena, &out, &h->w->err),
            BELAY_INVALID);
    TAP_STR(t, h->w->err.reason, "tag");
}

static void test_filtered(struct tap *t)
{
    with_hands(t, filtered);
}

static void cursors(struct hands *h)
{
    static const char *const bad[] = { "",           "e1.",          "e1.0.0.0",
                                       "e1.0.1.0.x", "e1.0.0.0.0.0", "e1.-1.0.0.0",
                                       "l1.0.0.0.0", "e1.00.1.0.0",  "later" };
    struct belay_events out;
    struct tap *t = h->w->t;

    /* "now" of an empty feed, and of longer and longer ones. */
    struct belay_events page =
        events_of(h, (struct belay_event_request){ .after = "now" });
    TAP_EQ(t, page.n, 0);
    for (int i = 0; i < 40; i++) {
        struct belay_event_request r = { .after = page.cursor, .limit = 7 };
        (void)submit_plain(h);
        struct belay_work work = take(h, "w");
        complete(h, &work);
        TAP_STR(t, told(h, r, false), "Ac");
        page = events_of(h, (struct belay_event_request){ .after = "now" });
        TAP_EQ(t, page.n, 0);
        r.after = page.cursor;
        TAP_EQ(t, events_of(h, r).n, 0);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct belay_event_request r = { .size = sizeof(r), .after = bad[i] };
        WORK_RC(h->w, exec_events(&h->site, &r, &h->w->arena, &out, &h->w->err),
                BELAY_INVALID);
        TAP_STR(t, h->w->err.reason, "cursor");
    }
}

static void test_cursors(struct tap *t)
{
    with_hands(t, cursors);
}

struct trimming {
    struct feed_pos upto;
};

static belay_rc find_body(struct txn *t, void *arg)
{
    struct trimming *c = arg;
    struct feed_entries feed;
    belay_rc rc =
        txn_feed_read(t, bytes_str(EXECUTION_FEED), (struct feed_pos){ 0 }, 2, &feed);

    if (rc == BELAY_OK && feed.n == 2)
        c->upto = feed.entry[1].pos;
    return rc;
}

static belay_rc trim_body(struct txn *t, void *arg)
{
    const struct trimming *c = arg;

    return txn_feed_trim(t, bytes_str(EXECUTION_FEED), c->upto);
}

static void trimmed(struct hands *h)
{
    struct trimming c = { .upto = { 0 } };
    struct belay_event_request first = { .limit = 1 };
    const char *ids[3];
    struct tap *t = h->w->t;

    live(h, ids);
    const char *after = events_of(h, first).cursor;
    write_aside(h, find_body, &c);
    write_aside(h, trim_body, &c);
    struct belay_events page =
        events_of(h, (struct belay_event_request){ .after = after });
    TAP_OK(t, page.trimmed);
    TAP_EQ(t, page.n, strlen(LIFE) - 2);
    page = events_of(h, (struct belay_event_request){ .after = page.items[0].cursor });
    TAP_OK(t, !page.trimmed);
    TAP_EQ(t, page.n, strlen(LIFE) - 3);
    /* From the oldest that is kept nothing is missing. */
    page = events_of(h, (struct belay_event_request){ .after = NULL });
    TAP_OK(t, !page.trimmed);
    TAP_EQ(t, page.n, strlen(LIFE) - 2);
}

static void test_trimmed(struct tap *t)
{
    with_hands(t, trimmed);
}

/* A result of n bytes, told of by an event. */
static void check_payload(struct hands *h, size_t n)
{
    struct belay_event_request r = { .types = 1U << BELAY_EVENT_COMPLETION };
    uint8_t *bytes = arena_zalloc(&h->w->arena, n, 1);

    r.after = events_of(h, (struct belay_event_request){ .after = "now" }).cursor;
    (void)submit_plain(h);
    struct belay_work work = take(h, "w");
    complete_with(h, &work, bytes_of(bytes, n), false);
    struct belay_events page = events_of(h, r);
    if (!TAP_EQ(h->w->t, page.n, 1))
        return;
    TAP_EQ(h->w->t, page.items[0].payload_len, n);
    TAP_OK(h->w->t, bytes_eq(bytes_of(page.items[0].payload, n), bytes_of(bytes, n)));
    TAP_OK(h->w->t, !page.items[0].payload_gone);
    /* Of a result that is gone there is nothing to show, but that it is gone. */
    WORK_RC(h->w, exec_replay(&h->site, work.execution_id, "", &h->w->err), BELAY_OK);
    page = events_of(h, r);
    TAP_EQ(h->w->t, page.n, 1);
    TAP_EQ(h->w->t, page.items[0].payload != NULL, n <= EVENT_PAYLOAD_MAX);
    TAP_EQ(h->w->t, page.items[0].payload_gone, n > EVENT_PAYLOAD_MAX);
    /* Nor is what came after the replay the result of the time before. */
    work = take(h, "w");
    complete_with(h, &work, bytes_of(bytes, n), false);
    page = events_of(h, r);
    TAP_EQ(h->w->t, page.n, 2);
    TAP_EQ(h->w->t, page.items[0].payload != NULL, n <= EVENT_PAYLOAD_MAX);
    TAP_EQ(h->w->t, page.items[0].payload_gone, n > EVENT_PAYLOAD_MAX);
    TAP_EQ(h->w->t, page.items[1].payload_len, n);
    TAP_OK(h->w->t, !page.items[1].payload_gone);
}

static void payloads(struct hands *h)
{
    check_payload(h, 1);
    check_payload(h, EVENT_PAYLOAD_MAX);
    check_payload(h, EVENT_PAYLOAD_MAX + 1);
    check_payload(h, RESULT_INLINE_MAX + 1);
}

static void test_payloads(struct tap *t)
{
    with_hands(t, payloads);
}

/* The last completion. */
static struct belay_event last_end(struct hands *h)
{
    struct belay_events page = events_of(
        h, (struct belay_event_request){ .types = 1U << BELAY_EVENT_COMPLETION });

    TAP_OK(h->w->t, page.n > 0);
    return page.n > 0 ? page.items[page.n - 1] : (struct belay_event){ .type = -1 };
}

static void gone(struct hands *h)
{
    static uint8_t bytes[RESULT_INLINE_MAX + 1];
    static const size_t lengths[] = { EVENT_PAYLOAD_MAX, EVENT_PAYLOAD_MAX + 1,
                                      sizeof(bytes) };
    struct belay_timer_report report = { .purged = 0 };
    struct tap *t = h->w->t;

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        (void)submit(h, (struct belay_submission){ .retention_ms = 10 });
        struct belay_work work = take(h, "w");
        complete_with(h, &work, bytes_of(bytes, lengths[i]), false);
        TAP_OK(t, last_end(h).payload && !last_end(h).payload_gone);
        pass(h, 20);
        WORK_RC(h->w, exec_timers_step(&h->site, NULL, &report, &h->w->err), BELAY_OK);
        TAP_EQ(t, report.purged, 1);
        TAP_EQ(t, last_end(h).payload_gone, lengths[i] > EVENT_PAYLOAD_MAX);
        TAP_EQ(t, last_end(h).payload == NULL, lengths[i] > EVENT_PAYLOAD_MAX);
    }
    /* What ended again without a result, under the fence of the one that had it. */
    const char *id = submit_plain(h);
    struct belay_work work = take(h, "w");
    complete_with(h, &work, bytes_of(bytes, sizeof(bytes)), false);
    const char *after = last_end(h).cursor;
    WORK_RC(h->w, exec_replay(&h->site, id, "", &h->w->err), BELAY_OK);
    WORK_RC(h->w, exec_cancel(&h->site, id, "r", NULL, &h->w->err), BELAY_OK);
    TAP_OK(t, !last_end(h).payload && !last_end(h).payload_gone);
    struct belay_events page =
        events_of(h, (struct belay_event_request){ .execution_id = id });
    for (size_t i = 0; i < page.n; i++)
        TAP_EQ(t, page.items[i].payload_gone, strcmp(page.items[i].cursor, after) == 0);
    /* And what never had one has lost none. */
    (void)submit(h, (struct belay_submission){ .retention_ms = 10 });
    work = take(h, "w");
    complete(h, &work);
    pass(h, 20);
    WORK_RC(h->w, exec_timers_step(&h->site, NULL, &report, &h->w->err), BELAY_OK);
    TAP_OK(t, !last_end(h).payload && !last_end(h).payload_gone);
}

static void test_gone(struct tap *t)
{
    with_hands(t, gone);
}

/* More events in one commit than one entry holds. */
static belay_rc flood_body(struct txn *t, void *arg)
{
    CLEANUP(event_list_release) struct event_list events;
    const int64_t *n = arg;
    char worker[200];
    belay_rc rc = BELAY_OK;

    memset(worker, 'w', sizeof(worker));
    event_list_init(&events, t);
    for (int64_t i = 0; i < *n && rc == BELAY_OK; i++) {
        struct exec e = { .id = bytes_str("exe_1") };
        const struct event_facts f = { .type = BELAY_EVENT_ACQUIRED,
                                       .at_ms = i,
                                       .fence = i + 1,
                                       .worker = bytes_of(worker, sizeof(worker)) };
        rc = event_add(&events, &e, &f);
    }
    return rc ? rc : event_flush(&events);
}

static belay_rc longest_body(struct txn *t, void *arg)
{
    struct feed_entries feed;
    belay_rc rc =
        txn_feed_read(t, bytes_str(EXECUTION_FEED), (struct feed_pos){ 0 }, 100, &feed);
    size_t *out = arg;

    for (size_t i = 0; rc == BELAY_OK && i < feed.n; i++)
        out[0] = feed.entry[i].data.len > out[0] ? feed.entry[i].data.len : out[0];
    out[1] = rc == BELAY_OK ? feed.n : 0;
    return rc;
}

static void flood(struct hands *h)
{
    int64_t n = 3000, seen = 0;
    size_t entries[2] = { 0 };
    struct belay_event_request r = { .limit = 1000 };
    bool in_order = true;

    write_aside(h, flood_body, &n);
    write_aside(h, longest_body, entries);
    TAP_OK(h->w->t, entries[0] <= (size_t)256 << 10);
    TAP_OK(h->w->t, entries[1] > 2 && entries[1] < 6);
    for (int i = 0; i < 10; i++) {
        struct belay_events page = events_of(h, r);
        for (size_t k = 0; k < page.n; k++)
            in_order &= page.items[k].fence == ++seen;
        r.after = page.cursor;
        r.limit = 999;
    }
    TAP_EQ(h->w->t, seen, n);
    TAP_OK(h->w->t, in_order);
    n = 0;
    write_aside(h, flood_body, &n); /* nothing to tell is no entry */
    size_t before = entries[1];
    write_aside(h, longest_body, entries);
    TAP_EQ(h->w->t, entries[1], before);
}

static void test_flood(struct tap *t)
{
    with_hands(t, flood);
}

static belay_rc spoil_body(struct txn *t, void *arg)
{
    const char *const *text = arg;

    return txn_feed_append(t, bytes_str(EXECUTION_FEED), bytes_str(*text), NULL);
}

static void spoiled(struct hands *h)
{
    static const char *wrong[] = { "[", "{}", "[1]", "[{\"type\":\"acquired\"}]",
                                   "[{\"type\":\"x\",\"execution\":\"e\"}]" };
    struct belay_event_request r = { .size = sizeof(r) };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct belay_events out = { .n = 7 };
        r.after = events_of(h, (struct belay_event_request){ .after = "now" }).cursor;
        write_aside(h, spoil_body, &wrong[i]);
        WORK_RC(h->w, exec_events(&h->site, &r, &h->w->arena, &out, &h->w->err),
                BELAY_CORRUPT);
        TAP_EQ(h->w->t, out.n, 7);
    }
}

static void test_spoiled(struct tap *t)
{
    with_hands(t, spoiled);
}

static void events_woken(struct hands *h)
{
    struct belay_work work;
    struct follower f = { .events = { .size = sizeof(f.events),
                                      .types = 1U << BELAY_EVENT_COMPLETION,
                                      .wait_ms = 600000 } };

    if (h->w->on == ON_DECORATED || h->w->on == ON_SQLITE_MEMORY)
        return;
    (void)submit_plain(h);
    work = take(h, "w");
    f.events.after =
        events_of(h, (struct belay_event_request){ .after = "now" }).cursor;
    follow(h, &f, events_thread, complete, &work);
    TAP_EQ(h->w->t, f.n, 1);
}

static void test_events_woken(struct tap *t)
{
    with_hands(t, events_woken);
}

static const struct tap_case cases[] = {
    { "frames are read as they were appended, text or not", test_appending },
    { "a caller's sequence is taken once", test_sequences },
    { "readers see the number that the caller gave a frame", test_told_sequences },
    { "frames beyond the limits are refused, and nothing is appended", test_limits },
    { "the last 10,000 frames are kept", test_retention },
    { "frames are closed with their attempt, and nobody appends any more",
      test_closed },
    { "reading frames refuses what cannot be", test_refused_reads },
    { "threads: who follows frames is woken by them and by the end", test_woken },
    { "events are told once each and in order, whatever the pages", test_events },
    { "events are filtered by namespace and tag", test_filtered },
    { "a cursor of now is behind everything, and a damaged one is refused",
      test_cursors },
    { "what was trimmed is told", test_trimmed },
    { "an event has its result, short or long", test_payloads },
    { "an event whose result is not kept any more says so", test_gone },
    { "events of a commit that are too long for one entry take several", test_flood },
    { "an entry that cannot be read is corrupt", test_spoiled },
    { "threads: who follows events is woken", test_events_woken },
};

int main(int argc, char **argv)
{
    return work_main(cases, COUNT_OF(cases), argc, argv);
}
