/* Questions, in one round trip and of one snapshot (rule 1): one command, or a MULTI ...
 * EXEC of them. */
#include "store/drivers/valkey/shapes.h"

struct asking {
    struct vk_store *s;
    struct vk_attempt *at;
    struct vk_layout keys;
    struct vk_request r;
    struct read *reads;
    size_t n_reads;
    size_t
        scans_at; /* the question where the function is asked all scans; SIZE_MAX: the
                        server's own commands do */
    int64_t asked_us;
};

/* --- asking --- */

/* Entries of a stream behind a place; a negative part: from the beginning of the rest. */
static void ask_stream(struct asking *q, struct bytes key, const char *how,
                       int64_t major, int64_t minor, size_t limit)
{
    struct vk_args id = { .arena = q->r.arena };

    vk_add_id(&id, (uint64_t)major, (uint64_t)minor);
    vk_command(&q->r, 6, "XRANGE");
    vk_arg(&q->r, key);
    vk_arg_behind(&q->r, how, &id);
    vk_arg_str(&q->r, "+");
    vk_arg_str(&q->r, "COUNT");
    vk_arg_i64(&q->r, (int64_t)limit);
}

static void ask_log(struct asking *q, const struct read *read)
{
    int64_t after = read->log.after;
    struct bytes key = vk_key(&q->keys, VK_LOG, read->log.stream);

    if (after < 0)
        ask_stream(q, key, "", 0, 0, read->log.limit);
    else /* behind every entry <after>-1 */
        ask_stream(q, key, "(", after, INT64_MAX, read->log.limit);
}

/* The entries, and how far it was trimmed. */
static void ask_feed(struct asking *q, const struct read *read)
{
    struct feed_pos p = read->feed.after;
    struct bytes key = vk_key(&q->keys, VK_FEED, read->feed.feed);

    if (p.epoch < 0)
        ask_stream(q, key, "", 0, 0, read->feed.limit);
    else if (p.major < 0)
        ask_stream(q, key, "", p.epoch, 0, read->feed.limit);
    else
        ask_stream(q, key, p.minor < 0 ? "" : "(", p.epoch, p.major, read->feed.limit);
    vk_command(&q->r, 3, "HGET");
    vk_arg(&q->r, vk_key_beside(&q->keys, ":trimmed"));
    vk_arg(&q->r, read->feed.feed);
}

static void ask_key(struct asking *q, const char *command, struct bytes key)
{
    vk_command(&q->r, 2, command);
    vk_arg(&q->r, key);
}

static void ask_one(struct asking *q, size_t i)
{
    const struct read *read = &q->reads[i];

    switch (read->kind) {
    case READ_ROW:
        ask_key(q, "HGETALL", vk_key_of_row(&q->keys, &read->row.ref));
        break;
    case READ_RANK:
        if (i == q->scans_at)
            vk_ask_scans(&q->keys, &q->r, q->reads, q->n_reads, q->at);
        else if (q->scans_at == SIZE_MAX && !vk_scan_is_empty(read))
            vk_ask_plain_scan(&q->keys, &q->r, read);
        break;
    case READ_LOG:
        ask_log(q, read);
        break;
    case READ_FEED:
        ask_feed(q, read);
        break;
    case READ_CHUNK:
        ask_key(q, "GET",
                vk_key_of_chunk(&q->keys, read->chunk.upload, read->chunk.index));
        break;
    }
}

/* How many commands a question is. */
static size_t n_commands(const struct asking *q, size_t i)
{
    const struct read *read = &q->reads[i];

    if (read->kind == READ_FEED)
        return 2;
    if (read->kind == READ_RANK)
        return q->scans_at == SIZE_MAX ? !vk_scan_is_empty(read) : i == q->scans_at;
    return 1;
}

/* Where one of the scans needs the function, it is asked for all of them, by the first. */
static size_t find_scans(const struct read *reads, size_t n)
{
    size_t first = SIZE_MAX;
    bool needed = false;

    for (size_t i = 0; i < n; i++) {
        if (reads[i].kind != READ_RANK || vk_scan_is_empty(&reads[i]))
            continue;
        if (first == SIZE_MAX)
            first = i;
        needed |= !vk_scan_is_plain(&reads[i]);
    }
    return needed ? first : SIZE_MAX;
}

/* --- answers --- */

static belay_rc take_row(struct read *read, const struct vk_reply *reply,
                         struct belay_arena *a, struct belay_error *err)
{
    const struct row_type *type = read->row.ref.type;
    struct value *key = NULL;

    read->row.out = NULL;
    if (reply->kind == VK_ARRAY && reply->n == 0)
        return BELAY_OK;
    key = arena_zalloc(a, type->n_key, sizeof(*key));
    if (!key)
        return err_no_memory(err, "a row");
    for (unsigned i = 0; i < type->n_key; i++) {
        key[i] = read->row.ref.key[i];
        if (key[i].kind != VALUE_I64 && !arena_copy(a, key[i].b, &key[i].b))
            return err_no_memory(err, "a row");
    }
    return vk_row(type, key, reply, a, &read->row.out, err);
}

static belay_rc take_log(struct read *read, const struct vk_reply *reply,
                         struct belay_arena *a, struct belay_error *err)
{
    belay_rc rc = vk_is_array(reply, err);
    struct log_entry *e = rc ? NULL : arena_zalloc(a, reply->n, sizeof(*e));

    read->log.out = (struct log_entries){ .entry = e };
    if (rc)
        return rc;
    if (!e)
        return err_no_memory(err, "log entries");
    for (size_t i = 0; i < reply->n && rc == BELAY_OK; i++) {
        uint64_t seq = 0, one = 0;
        rc = vk_entry(&reply->sub[i], &seq, &one, &e[i].data, err);
        e[i].seq = (int64_t)seq;
    }
    read->log.out.n = reply->n;
    return rc;
}

static belay_rc take_feed(struct read *read, const struct vk_reply *reply,
                          struct belay_arena *a, struct belay_error *err)
{
    const struct vk_reply *trimmed = reply + 1;
    struct feed_entries *out = &read->feed.out;
    uint64_t epoch = 0, n = 0;
    belay_rc rc = vk_is_array(reply, err);

    *out = (struct feed_entries){ .entry = NULL };
    if (rc == BELAY_OK && trimmed->kind == VK_ERROR)
        rc = vk_reply_error(trimmed, "reading", err);
    if (rc)
        return rc;
    if (trimmed->kind == VK_STRING && !vk_id(trimmed->b, &epoch, &n))
        return err_reason(err, BELAY_CORRUPT, "feed",
                          "valkey: where a feed was trimmed is no position");
    out->trimmed = (struct feed_pos){ (int64_t)epoch, (int64_t)n, 0 };
    out->entry = arena_zalloc(a, reply->n, sizeof(*out->entry));
    if (!out->entry)
        return err_no_memory(err, "feed entries");
    for (size_t i = 0; i < reply->n && rc == BELAY_OK; i++) {
        rc = vk_entry(&reply->sub[i], &epoch, &n, &out->entry[i].data, err);
        out->entry[i].pos = (struct feed_pos){ (int64_t)epoch, (int64_t)n, 0 };
    }
    out->n = reply->n;
    return rc;
}

static belay_rc take_chunk(struct read *read, const struct vk_reply *reply,
                           struct belay_error *err)
{
    if (reply->kind == VK_ERROR)
        return vk_reply_error(reply, "reading", err);
    read->chunk.found = reply->kind == VK_STRING;
    read->chunk.out = read->chunk.found ? reply->b : bytes_of(NULL, 0);
    return BELAY_OK;
}

static belay_rc take_one(struct asking *q, struct read *read,
                         const struct vk_reply *reply, struct belay_arena *a,
                         struct belay_error *err)
{
    switch (read->kind) {
    case READ_ROW:
        return take_row(read, reply, a, err);
    case READ_RANK:
        return vk_take_scan(read, reply, q->scans_at == SIZE_MAX, q->at, q->asked_us, a,
                            err);
    case READ_LOG:
        return take_log(read, reply, a, err);
    case READ_FEED:
        return take_feed(read, reply, a, err);
    case READ_CHUNK:
        return take_chunk(read, reply, err);
    }
    return err_set(err, BELAY_MISUSE, "read: unknown kind of question");
}

/* The answers to the questions among all answers. */
static belay_rc find_answers(const struct vk_reply *replies, size_t n, bool block,
                             const struct vk_reply **out, size_t want,
                             struct belay_error *err)
{
    const struct vk_reply *exec = &replies[n - 1];

    *out = exec;
    if (!block)
        return BELAY_OK;
    /* What cannot even be queued is the reason, and not that EXEC then refuses. */
    for (size_t i = 0; i < n; i++) {
        if (replies[i].kind == VK_ERROR)
            return vk_reply_error(&replies[i], "reading", err);
    }
    if (exec->kind != VK_ARRAY || exec->n != want)
        return err_reason(err, BELAY_CORRUPT, "answer", "valkey: an unexpected answer");
    *out = exec->sub;
    return BELAY_OK;
}

static void ask(struct asking *q, bool time, bool block)
{
    if (time)
        vk_command(&q->r, 1, "TIME");
    if (block)
        vk_command(&q->r, 1, "MULTI");
    for (size_t i = 0; i < q->n_reads; i++)
        ask_one(q, i);
    if (block)
        vk_command(&q->r, 1, "EXEC");
    q->r.no_memory |= q->keys.no_memory;
}

/* Whether EXEC has met a function that the server has forgotten. */
static bool lacks_function(const struct vk_reply *answers, size_t n)
{
    struct bytes begins = bytes_str("ERR Function not found");

    for (size_t i = 0; i < n; i++) {
        struct bytes words = answers[i].b;
        if (answers[i].kind == VK_ERROR && words.len >= begins.len &&
            bytes_eq(bytes_of(words.ptr, begins.len), begins))
            return true;
    }
    return false;
}

/* Asked outside of MULTI ... EXEC, a function that is not there is loaded again. */
static belay_rc ask_for_function(struct asking *q, struct belay_error *err)
{
    static const struct bytes nothing = { (const uint8_t *)"", 0 };
    const struct scan any = { .indexes = &nothing, .n_indexes = 1, .limit = 1 };
    const struct read read = { .kind = READ_RANK, .rank.scan = &any };
    enum vk_reached reached;
    struct vk_reply reply;
    struct vk_request r;

    vk_request_init(&r, q->r.arena);
    vk_ask_scans(&q->keys, &r, &read, 1, q->at);
    return vk_call(q->s, q->at->ns, &r, VK_AGAIN, &reply, &reached, err);
}

/* One round trip; *answers has one for each command of the questions. */
static belay_rc exchange(struct asking *q, bool time, size_t want,
                         const struct vk_reply **answers, struct belay_error *err)
{
    size_t n = q->r.n_commands;
    struct vk_reply *replies = arena_zalloc(q->r.arena, n, sizeof(*replies));
    enum vk_reached reached;

    if (!replies || q->r.no_memory)
        return err_no_memory(err, "a question");
    q->asked_us = vk_mono_us();
    belay_rc rc = vk_call(q->s, q->at->ns, &q->r, VK_AGAIN, replies, &reached, err);
    if (rc == BELAY_OK && time)
        vk_take_time(q->s, &replies[0], q->asked_us);
    return rc ? rc : find_answers(replies, n, want > 1, answers, want, err);
}

/* The function's answer to all scans. */
static belay_rc unpack_scans(const struct vk_reply *packed, struct belay_arena *a,
                             struct vk_reply *out, struct belay_error *err)
{
    *out = *packed;
    return packed->kind == VK_STRING ? vk_unpack(packed->b, a, out, err) : BELAY_OK;
}

/* The answer to each question, one behind the other. */
static belay_rc take_all(struct asking *q, const struct vk_reply *answers,
                         struct belay_arena *a, struct belay_error *err)
{
    const struct vk_reply no_answer = { .kind = VK_NIL },
                          missing = { .kind = VK_STATUS };
    struct vk_reply scans = { .kind = VK_NIL };
    size_t n_scans = 0;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < q->n_reads && rc == BELAY_OK; i++) {
        struct read *read = &q->reads[i];
        size_t n = n_commands(q, i);
        const struct vk_reply *answer = n > 0 ? answers : &no_answer;
        if (i == q->scans_at)
            rc = unpack_scans(answers, a, &scans, err);
        if (scans.kind != VK_NIL && read->kind == READ_RANK && !vk_scan_is_empty(read))
            answer = scans.kind != VK_ARRAY ? &scans
                     : n_scans < scans.n    ? &scans.sub[n_scans++]
                                            : &missing;
        if (rc == BELAY_OK)
            rc = take_one(q, read, answer, a, err);
        answers += n;
    }
    return rc;
}

belay_rc vk_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                 struct belay_arena *a, struct belay_error *err)
{
    struct vk_store *s = (struct vk_store *)d;
    struct asking q = { .s = s,
                        .at = attempt,
                        .reads = reads,
                        .n_reads = n,
                        .scans_at = find_scans(reads, n) };
    const struct vk_reply none[2] = { { .kind = VK_NIL }, { .kind = VK_NIL } };
    const struct vk_reply *answers = none; /* two at most are looked at */
    belay_rc rc = BELAY_OK;
    size_t want = 0;

    for (size_t i = 0; i < n; i++)
        want += n_commands(&q, i);
    bool time = want > 0 && vk_time_is_due(s);
    vk_layout_init(&q.keys, s, q.at->ns, a);
    vk_request_init(&q.r, a);
    ask(&q, time, want > 1);
    if (want > 0)
        rc = exchange(&q, time, want, &answers, err);
    if (rc == BELAY_OK && lacks_function(answers, want)) {
        rc = ask_for_function(&q, err);
        if (rc == BELAY_OK)
            rc = exchange(&q, time, want, &answers, err);
    }
    return rc ? rc : take_all(&q, answers, a, err);
}

/* --- attempts --- */

belay_rc vk_begin(struct driver *d, void *attempt, struct bytes ns,
                  struct belay_error *err)
{
    struct vk_attempt *at = attempt;

    (void)err;
    at->ns = ns;
    at->generation = vk_generation((struct vk_store *)d, ns);
    return BELAY_OK;
}

/* What is still held is given back.  What has lapsed may be somebody else's by now. */
/* Lets go of what the attempt holds.  Answered before anything else is asked: whoever claims
 * again at once would find nothing but his own holds. */
static void release(struct vk_store *s, struct vk_attempt *at)
{
    struct vk_layout keys;
    struct vk_request r;
    enum vk_reached reached;
    size_t n = 0;

    vk_layout_init(&keys, s, at->ns, &at->arena);
    vk_request_init(&r, &at->arena);
    for (const struct vk_hold *h = at->holds; h; h = h->next, n++) {
        vk_command(&r, 2 + h->n, "ZREM");
        vk_arg(&r, vk_key(&keys, VK_HELD, h->index));
        for (size_t i = 0; i < h->n; i++)
            vk_arg(&r, h->members[i]);
    }
    struct vk_reply *replies = arena_zalloc(&at->arena, n, sizeof(*replies));
    if (!replies || r.no_memory || keys.no_memory)
        return;
    belay_rc rc = vk_call(s, at->ns, &r, VK_AGAIN, replies, &reached, NULL);
    (void)rc; /* they lapse */
}

void vk_end(struct driver *d, void *attempt)
{
    struct vk_attempt *at = attempt;

    if (at->holds && vk_mono_us() < at->held_until_us)
        release((struct vk_store *)d, at);
    at->holds = NULL;
    arena_release(&at->arena);
}
