/* Lists that can be followed: frames and events. */
#include "api/op_follow.h"

#include "api/op_execution.h"

belay_rc op_emit(const struct op_call *call, struct op_maker *m, json_t *item)
{
    json_t *owned CLEANUP(json_decrefp) = item;

    if (m->rc != BELAY_OK)
        return m->rc;
    if (!owned)
        return err_no_memory(m->err, "the answer");
    return call->follow->emit(call->follow->arg, owned, m->err);
}

belay_rc op_followed(belay_rc rc, const char *cursor, json_t **out,
                     struct belay_error *err)
{
    struct op_maker m = { .err = err };

    if (rc != BELAY_OK && rc != BELAY_CANCELLED)
        return rc;
    return op_made_pages(&m, json_array(), 0, cursor, out);
}

/* --- frames --- */

struct log_walk {
    const struct op_call *call;
    struct belay_frame_request request;
    int64_t left; /* of the limit, where it is followed */
    bool follows;
    bool pinned;  /* to one attempt */
    bool trimmed; /* some frames are not kept any more */
    bool over;
};

static bool is_wanted(const struct op_call *call, int32_t kind)
{
    bool any = false;

    for (size_t i = 0; i < call->n_values; i++) {
        const struct op_value *v = &call->values[i];
        if (strcmp(v->arg->name, "kind") != 0)
            continue;
        if (op_read_name(op_frame_kind_names, v->text) == kind)
            return true;
        any = true;
    }
    return !any;
}

/* Where to go on after a page that was empty: with the next attempt, which may have yet to
 * begin, or nowhere. */
static void go_on(struct log_walk *w, const struct belay_frames *page)
{
    bool has_next = w->request.attempt + 1 < page->attempts;

    if (!page->closed) {
        w->over = !w->follows;
    } else if (w->pinned || (!has_next && (page->terminal || !w->follows))) {
        w->over = true;
    } else {
        w->request.attempt++;
        w->request.after_seq = 0;
    }
}

/* The next attempt may have yet to begin; there will be no other one behind it. */
static belay_rc check_attempt(const struct log_walk *w, const struct belay_frames *page,
                              struct belay_error *err)
{
    int64_t after = w->request.attempt - page->attempts;

    if (!w->pinned || after < 0 || (after == 0 && !page->terminal) ||
        (w->follows && !page->terminal))
        return BELAY_OK;
    belay_rc rc = err_reason(err, BELAY_NOT_FOUND, "attempt",
                             "execution %s: there is no attempt %lld",
                             w->request.execution_id, (long long)w->request.attempt);
    err_entity(err, bytes_str(w->request.execution_id));
    return rc;
}

/* Frames of an attempt have no gaps but where they were removed. */
static belay_rc read_page(struct log_walk *w, struct belay_arena *a,
                          struct belay_frames *out, struct belay_error *err)
{
    belay_rc rc = exec_frames(&w->call->belay->site, &w->request, a, out, err);

    if (rc == BELAY_OK)
        rc = check_attempt(w, out, err);
    if (rc == BELAY_OK && out->n > 0 && out->items[0].seq > w->request.after_seq + 1)
        w->trimmed = true;
    return rc;
}

static belay_rc log_page(struct log_walk *w, struct op_maker *m)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_frames page = { 0 };
    belay_rc rc = read_page(w, &arena, &page, m->err);

    for (size_t i = 0; rc == BELAY_OK && i < page.n && w->left > 0; i++) {
        w->request.after_seq = page.items[i].seq;
        if (!is_wanted(w->call, page.items[i].kind))
            continue;
        rc = op_emit(w->call, m, op_json_frame(&page.items[i]));
        w->left--;
    }
    if (rc == BELAY_OK && page.n == 0)
        go_on(w, &page);
    w->over = w->over || w->left == 0;
    return rc;
}

static belay_rc follow_log(struct log_walk *w, json_t **out, struct belay_error *err)
{
    struct op_maker m = { .err = err };
    belay_rc rc = BELAY_OK;

    w->request.attempt = w->pinned ? w->request.attempt : 0;
    w->request.limit = FOLLOW_PAGE;
    w->request.wait_ms = w->follows ? FOLLOW_WAIT_MS : 0;
    while (rc == BELAY_OK && !w->over)
        rc = log_page(w, &m);
    rc = op_followed(rc, NULL, out, err);
    if (rc == BELAY_OK && op_set_bool(*out, "trimmed", w->trimmed)) {
        json_decref(*out);
        *out = NULL;
        rc = err_no_memory(err, "the answer");
    }
    return rc;
}

/* One page, for who asks for pages. */
static belay_rc log_answer(struct log_walk *w, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct op_maker m = { .err = err };
    struct belay_frames page = { 0 };
    belay_rc rc = read_page(w, &arena, &page, err);

    if (rc)
        return rc;
    json_t *items = json_array(), *result = json_object();
    int failed = 0;
    for (size_t i = 0; i < page.n; i++) {
        if (is_wanted(w->call, page.items[i].kind))
            failed |= json_array_append_new(items, op_json_frame(&page.items[i]));
    }
    int64_t last = page.n > 0 ? page.items[page.n - 1].seq : page.last_seq;
    failed |= json_object_set_new(result, "items", items);
    failed |= json_object_set_new(
        result, "next_cursor",
        last < page.last_seq ? json_sprintf("%lld", (long long)last) : json_null());
    failed |= op_set_time(result, "attempt", page.attempt);
    failed |= op_set_i64(result, "attempts", page.attempts);
    failed |= op_set_i64(result, "frame_count", page.frame_count);
    failed |= op_set_bool(result, "closed", page.closed);
    failed |= op_set_text(result, "closed_reason", page.closed_reason);
    failed |= op_set_bool(result, "trimmed", w->trimmed);
    return op_made(&m, result, failed, out);
}

belay_rc op_logs(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct log_walk w = {
        .call = call,
        .request = { .size = sizeof(w.request),
                     .execution_id = op_str(call, "id"),
                     .attempt = op_number(call, "attempt", -1),
                     .after_seq = op_number(call, "after", 0),
                     .limit = (size_t)op_number(call, "limit", PAGE_USUAL),
                     .cancel = call->cancel },
        .left = op_number(call, "limit", INT64_MAX),
        .follows = op_get(call, "follow") != NULL,
        .pinned = op_get(call, "attempt") != NULL,
    };

    return call->follow ? follow_log(&w, out, err) : log_answer(&w, out, err);
}

/* --- events --- */

static belay_rc read_request(const struct op_call *call, struct belay_arena *a,
                             struct belay_scanner_filter *filter,
                             struct belay_event_request *out, struct belay_error *err)
{
    const struct belay_tag *tags = NULL;
    size_t n = 0;
    belay_rc rc = op_tags(call, "tag", a, &tags, &n, err);

    if (rc)
        return rc;
    *filter = (struct belay_scanner_filter){
        .size = sizeof(*filter),
        .tag_key = n > 0 ? tags[0].key : NULL,
        .tag_value = n > 0 ? tags[0].value : NULL,
    };
    *out = (struct belay_event_request){
        .size = sizeof(*out),
        .after = op_str(call, "after"),
        .execution_id = op_str(call, "execution"),
        .filter = n > 0 ? filter : NULL,
        .limit = (size_t)op_number(call, "limit", PAGE_USUAL),
        .cancel = call->cancel,
    };
    for (size_t i = 0; i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, "type") == 0)
            out->types |= 1U << op_read_name(op_event_names, call->values[i].text);
    }
    return BELAY_OK;
}

belay_rc op_keep_cursor(struct buf *to, const char *cursor, const char **after,
                        struct belay_error *err)
{
    if (!cursor)
        return BELAY_OK;
    buf_reset(to);
    buf_append(to, bytes_of(cursor, strlen(cursor) + 1));
    if (to->failed)
        return err_no_memory(err, "a cursor");
    *after = (const char *)to->ptr;
    return BELAY_OK;
}

static belay_rc follow_events(const struct op_call *call,
                              struct belay_event_request *request, json_t **out,
                              struct belay_error *err)
{
    struct buf cursor CLEANUP(buf_release) = { 0 };
    int64_t left = op_number(call, "limit", INT64_MAX);
    struct op_maker m = { .err = err };
    belay_rc rc = BELAY_OK;

    request->wait_ms = FOLLOW_WAIT_MS;
    while (rc == BELAY_OK && left > 0) {
        struct belay_arena arena CLEANUP(arena_release) = { 0 };
        struct belay_events page = { 0 };

        request->limit = left < FOLLOW_PAGE ? (size_t)left : FOLLOW_PAGE;
        rc = exec_events(&call->belay->site, request, &arena, &page, err);
        left -= (int64_t)page.n;
        for (size_t i = 0; rc == BELAY_OK && i < page.n; i++)
            rc = op_emit(call, &m, op_json_event(&m, &page.items[i]));
        if (rc == BELAY_OK)
            rc = op_keep_cursor(&cursor, page.cursor, &request->after, err);
    }
    return op_followed(rc, NULL, out, err);
}

belay_rc op_events(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_scanner_filter filter;
    struct belay_event_request request;
    struct op_maker m = { .err = err };
    struct belay_events page = { 0 };
    belay_rc rc = read_request(call, &arena, &filter, &request, err);

    if (rc == BELAY_OK && call->follow)
        return follow_events(call, &request, out, err);
    if (rc == BELAY_OK)
        rc = exec_events(&call->belay->site, &request, &arena, &page, err);
    if (rc)
        return rc;
    json_t *items = json_array(), *result = json_object();
    bool more = page.n == request.limit;
    int failed = 0;
    for (size_t i = 0; i < page.n; i++)
        failed |= json_array_append_new(items, op_json_event(&m, &page.items[i]));
    failed |= json_object_set_new(result, "items", items);
    failed |= op_set_text(result, "next_cursor", more ? page.cursor : NULL);
    failed |= op_set_text(result, "cursor", page.cursor);
    failed |= op_set_bool(result, "trimmed", page.trimmed);
    return op_made(&m, result, failed, out);
}
