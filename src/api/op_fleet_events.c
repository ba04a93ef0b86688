/* What happens in a fleet: the log of its contests, and the messages of its members. */
#include "api/op_fleet.h"
#include "api/op_follow.h"
#include "base/clock.h"
#include "fleet/follow.h"

/* --- telling --- */

#define EVENTS_PAGE ((size_t)64)
#define MESSAGES_PAGE 16

struct event_walk {
    const struct op_call *call;
    struct belay_fleet *f;
    const char *topic; /* of the messages, and no contests; NULL: all */
    struct belay_ring_cursor *contests;
    struct belay_ring_cursor *messages; /* NULL as long as nobody published any */
    uint64_t first;                     /* position of the first contest wanted */
    uint64_t skip;                      /* messages that are not */
    struct fleet_follow follow;         /* of a member */
    bool is_member, is_marked;
    json_t *items; /* where nobody listens */
    struct op_maker m;
};

static void cursor_closep(struct belay_ring_cursor **c)
{
    belay_ring_cursor_close(*c);
}

static belay_rc tell(struct event_walk *w, json_t *item)
{
    if (w->call->follow)
        return op_emit(w->call, &w->m, item);
    if (json_array_append_new(w->items, item))
        return err_no_memory(w->m.err, "the answer");
    return BELAY_OK;
}

static const char *event_name(int32_t kind)
{
    if (kind == BELAY_CONTEST_FRAME_CLAIM)
        return "claimed";
    return kind == BELAY_CONTEST_FRAME_RELEASE ? "released" : "revoked";
}

static const char *reason_name(uint8_t reason)
{
    static const char *const names[] = {
        [BELAY_CONTEST_EXPIRED] = "expired",
        [BELAY_CONTEST_DEAD] = "dead",
        [BELAY_CONTEST_FORCED] = "forced",
        [BELAY_CONTEST_STALLED] = "stalled",
    };

    return reason < COUNT_OF(names) ? names[reason] : NULL;
}

static json_t *json_event(const struct belay_ring_frame *frame,
                          const struct belay_contest_frame *c)
{
    bool is_claim = c->kind == BELAY_CONTEST_FRAME_CLAIM;
    uint64_t claim_id = is_claim ? frame->id : c->claim_id;
    bool is_forever = c->expires_at_ms > TIME_MAX_MS;
    json_t *row = json_object();
    int failed = 0;

    failed |= op_set_i64(row, "position", (int64_t)frame->position);
    failed |= op_set_time(row, "at_ms", (int64_t)frame->ver);
    failed |= op_set_text(row, "event", event_name(c->kind));
    failed |= json_object_set_new(row, "subject",
                                  op_text(bytes_of(c->subject, c->subject_len)));
    failed |= op_set_i64(row, "kind", c->subject_kind);
    failed |= op_set_i64(row, "node", belay_netid_node(claim_id));
    failed |= op_set_netid(row, "claim_id", claim_id);
    failed |= op_set_bool(row, "hashed", (frame->flags & BELAY_RING_FRAME_HASHED) != 0);
    if (is_claim) {
        failed |= json_object_set_new(row, "owner",
                                      op_text(bytes_of(c->owner, c->owner_len)));
        failed |= op_set_time(row, "expires_at_ms",
                              is_forever ? -1 : (int64_t)c->expires_at_ms);
    }
    if (c->kind == BELAY_CONTEST_FRAME_REVOKED)
        failed |= op_set_text(row, "reason", reason_name(c->reason));
    return op_whole(row, failed);
}

static json_t *json_message(const struct belay_fleet_event *e)
{
    const struct bytes data = bytes_of(e->data, e->len);
    bool is_text = bytes_is_utf8(data) && !memchr(e->data, 0, e->len);
    json_t *row = json_object();
    int failed = 0;

    failed |= op_set_time(row, "at_ms", e->timestamp_ms);
    failed |= op_set_text(row, "event", "published");
    failed |= json_object_set_new(row, "topic", op_text(bytes_str(e->topic)));
    failed |= op_set_i64(row, "node", e->node);
    failed |= op_set_netid(row, "id", e->id);
    failed |= is_text ? json_object_set_new(row, "data", op_text(data))
                      : json_object_set_new(row, "data_base64", op_to_base64(data));
    return op_whole(row, failed);
}

static json_t *json_remark(const char *event, const char *of, int64_t lost)
{
    json_t *row = json_object();
    int failed = op_set_text(row, "event", event);

    failed |= op_set_text(row, "of", of);

    if (lost > 0)
        failed |= op_set_i64(row, "lost", lost);
    return op_whole(row, failed);
}

static belay_rc tell_gaps(struct event_walk *w, const char *of,
                          const struct belay_ring_poll *poll)
{
    belay_rc rc = BELAY_OK;

    if (poll->is_reset)
        rc = tell(w, json_remark("reset", of, 0));
    if (rc == BELAY_OK && poll->lost > 0)
        rc = tell(w, json_remark("lost", of, (int64_t)poll->lost));
    return rc;
}

/* --- contests --- */

static belay_rc walk_contests(struct event_walk *w, bool *out_more)
{
    uint64_t buf[EVENTS_PAGE * BELAY_CONTEST_PAYLOAD_MAX / sizeof(uint64_t)];
    struct belay_ring_frame frames[EVENTS_PAGE];
    struct belay_ring_poll poll = { 0 };
    belay_rc rc = belay_ring_poll(w->contests, frames, EVENTS_PAGE, buf, sizeof(buf),
                                  &poll, w->m.err);

    if (rc == BELAY_OK)
        rc = tell_gaps(w, "contests", &poll);
    for (size_t i = 0; rc == BELAY_OK && i < poll.n_frames; i++) {
        struct belay_contest_frame c;
        if (frames[i].position >= w->first &&
            belay_contest_decode(frames[i].kind, frames[i].data, frames[i].len, &c))
            rc = tell(w, json_event(&frames[i], &c));
    }
    *out_more |= rc == BELAY_OK && poll.is_more;
    return rc;
}

/* --- messages --- */

/* How many are there now. */
static belay_rc count_messages(const struct event_walk *w, struct belay_ring *ring,
                               uint64_t *out)
{
    struct belay_fleet_event page[MESSAGES_PAGE];
    struct belay_ring_cursor *c CLEANUP(cursor_closep) = NULL;
    struct belay_ring_poll poll = { .n_frames = 1 };
    uint64_t n = 0;
    belay_rc rc = belay_ring_cursor_open(ring, BELAY_RING_START, &c, w->m.err);

    while (rc == BELAY_OK && poll.n_frames > 0) {
        rc = belay_fleet_event_poll(c, w->topic, page, MESSAGES_PAGE, &poll, w->m.err);
        n += rc == BELAY_OK ? poll.n_frames : 0;
    }
    *out = n;
    return rc;
}

/* The ring of messages is there once somebody has published one. */
static belay_rc find_messages(struct event_walk *w, const struct op_value *tail)
{
    struct belay_ring *ring;
    uint64_t n = 0;
    belay_rc rc = belay_ring_attach(w->f, BELAY_FLEET_EVENT_KIND, &ring, w->m.err);

    if (rc == BELAY_NOT_FOUND)
        return BELAY_OK;
    if (rc == BELAY_OK && tail)
        rc = count_messages(w, ring, &n);
    if (rc == BELAY_OK && tail && n > (uint64_t)tail->number)
        w->skip = n - (uint64_t)tail->number;
    return rc == BELAY_OK
               ? belay_ring_cursor_open(ring, BELAY_RING_START, &w->messages, w->m.err)
               : rc;
}

static belay_rc walk_messages(struct event_walk *w, bool *out_more)
{
    struct belay_fleet_event page[MESSAGES_PAGE];
    struct belay_ring_poll poll = { 0 };
    belay_rc rc = w->messages ? BELAY_OK : find_messages(w, NULL);

    if (rc != BELAY_OK || !w->messages)
        return rc;
    rc = belay_fleet_event_poll(w->messages, w->topic, page, MESSAGES_PAGE, &poll,
                                w->m.err);
    if (rc == BELAY_OK)
        rc = tell_gaps(w, "messages", &poll);
    for (size_t i = 0; rc == BELAY_OK && i < poll.n_frames; i++) {
        if (w->skip > 0)
            w->skip--;
        else
            rc = tell(w, json_message(&page[i]));
    }
    *out_more |= rc == BELAY_OK && poll.n_frames > 0;
    return rc;
}

/* --- the operations --- */

/* Between two looks: at once when there was something, and after the mark (follow.h).  Who is
 * no member can mark nothing, and looks again and again. */
static belay_rc rest(struct event_walk *w, bool had_some)
{
    if (w->call->cancel && belay_cancel_triggered(w->call->cancel))
        return err_set(w->m.err, BELAY_CANCELLED, "told to stop");
    if (had_some)
        return BELAY_OK;
    if (!w->is_member)
        return op_fleet_pause(w->call, w->m.err);
    if (w->is_marked)
        fleet_follow_nap(&w->follow);
    else
        fleet_follow_mark(&w->follow);
    w->is_marked = !w->is_marked;
    return BELAY_OK;
}

static belay_rc walk(struct event_walk *w, bool follows)
{
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK) {
        bool is_more = false;
        if (!w->topic)
            rc = walk_contests(w, &is_more);
        if (rc == BELAY_OK)
            rc = walk_messages(w, &is_more);
        if (rc == BELAY_OK && !is_more && !follows)
            return BELAY_OK;
        if (rc == BELAY_OK)
            rc = rest(w, is_more);
    }
    return rc;
}

static void walk_release(struct event_walk *w)
{
    fleet_follow_end(&w->follow);
    belay_ring_cursor_close(w->contests);
    belay_ring_cursor_close(w->messages);
    json_decref(w->items);
}

/* Who follows becomes a member, which can sleep until something happens.  Where there is no
 * room for one, looking is left. */
static belay_rc open_fleet(const struct op_call *call, struct belay_fleet **out,
                           bool *out_is_member, struct belay_error *err)
{
    *out_is_member = call->follow && op_fleet_join(call, "name", BELAY_FLEET_MUST_EXIST,
                                                   out, err) == BELAY_OK;
    return *out_is_member ? BELAY_OK : op_fleet_observe(call, "name", out, err);
}

belay_rc op_fleet_events(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    const struct op_value *tail = op_get(call, "tail");
    struct belay_ring *ring = NULL;
    bool is_member = false;
    belay_rc rc = open_fleet(call, &f, &is_member, err);

    if (rc == BELAY_OK)
        rc = belay_contest_log(f, &ring, err);
    if (rc != BELAY_OK)
        return rc;
    struct event_walk w CLEANUP(walk_release) = { .call = call,
                                                  .f = f,
                                                  .topic = op_str(call, "topic"),
                                                  .is_member = is_member,
                                                  .items = json_array(),
                                                  .m = { .err = err } };
    uint64_t head = belay_ring_head(ring, 0);
    if (tail && head > (uint64_t)tail->number)
        w.first = head - (uint64_t)tail->number;
    rc = belay_ring_cursor_open(ring, BELAY_RING_START, &w.contests, err);
    if (rc == BELAY_OK)
        rc = find_messages(&w, tail);
    if (rc == BELAY_OK && is_member)
        rc = fleet_follow_begin(&w.follow, f,
                                FOLLOW_MESSAGES | (w.topic ? 0 : FOLLOW_CONTESTS),
                                call->cancel, err);
    if (rc == BELAY_OK)
        rc = walk(&w, call->follow != NULL);
    if (call->follow)
        return op_followed(rc, NULL, out, err);
    return rc == BELAY_OK ? op_made_list(&w.m, json_incref(w.items), 0, 0, out) : rc;
}

belay_rc op_fleet_publish(const struct op_call *call, json_t **out,
                          struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    const struct op_value *data = op_get(call, "data");
    uint64_t id = 0;
    belay_rc rc = op_fleet_join(call, "fleet", 0, &f, err);

    if (rc == BELAY_OK)
        rc = belay_fleet_event_publish(f, op_str(call, "topic"),
                                       data ? data->text.ptr : NULL,
                                       data ? data->text.len : 0, &id, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed = op_set_netid(answer, "id", id);
    failed |=
        json_object_set_new(answer, "topic", op_text(op_get(call, "topic")->text));
    return op_finish(answer, failed, out, err);
}
