/* A page of the feed of events: those that are wanted, decoded. */
#include "base/json.h"
#include "work/exec_show.h"

/* Entries of one question. */
#define ENTRY_PAGE 64
#define ENTRY_MAX ((size_t)1 << 20)

/* --- which events --- */

/* One that may be wanted. */
struct candidate {
    const json_t *o;
    struct event_place next; /* behind it */
    const struct row *spec, *end;
};

static belay_rc corrupt_event(struct txn *t, struct feed_pos pos)
{
    return txn_fail(t, BELAY_CORRUPT, "event",
                    "feed " EXECUTION_FEED ": entry %lld.%lld.%lld cannot be read",
                    (long long)pos.epoch, (long long)pos.major, (long long)pos.minor);
}

static struct bytes text_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? bytes_of(json_string_value(v), json_string_length(v))
                             : bytes_of(NULL, 0);
}

/* By what the event says itself.  False with *corrupt: it says nothing. */
static bool may_match(const struct event_follow *f, const json_t *o, bool *corrupt)
{
    struct bytes id = text_of(o, "execution"), type = text_of(o, "type");
    int number = 0;

    *corrupt = !id.ptr || !vector_parse(BELAY_DIM_EVENT, type, &number);
    if (*corrupt)
        return false;
    if (f->request->types != 0 && !(f->request->types >> number & 1U))
        return false;
    if (f->id.ptr && !bytes_eq(f->id, id))
        return false;
    /* The namespace is looked at first, tags are read only where it matches. */
    struct filter by_ns = { .ns = f->filter.ns };
    return filter_matches(&by_ns, f->ns, bytes_of(NULL, 0));
}

/* Events of one entry, as far as there is room. */
static belay_rc take_entry(struct txn *t, struct event_follow *f,
                           const struct feed_entry *entry, const json_t *events,
                           struct candidate *all, size_t *n)
{
    size_t size = json_array_size(events), room = f->limit - f->n;
    struct feed_pos before = f->next.pos;
    bool corrupt = false;

    for (size_t i = (size_t)f->next.skip; i < size && *n < room; i++) {
        const json_t *o = json_array_get(events, i);
        struct event_place next = { before, (int64_t)i + 1 };
        if (i + 1 == size)
            next = (struct event_place){ entry->pos, 0 };
        if (may_match(f, o, &corrupt))
            all[(*n)++] = (struct candidate){ .o = o, .next = next };
        if (corrupt)
            return corrupt_event(t, entry->pos);
        f->next = next;
    }
    if (f->next.skip >= (int64_t)size) /* an empty one, or less than was skipped */
        f->next = (struct event_place){ entry->pos, 0 };
    return BELAY_OK;
}

static belay_rc take_entries(struct txn *t, struct event_follow *f,
                             const struct feed_entries *feed, json_t *roots,
                             struct candidate *all, size_t *n)
{
    size_t i = 0;

    for (; i < feed->n && *n < f->limit - f->n; i++) {
        json_t *events = NULL;
        belay_rc rc = json_read(feed->entry[i].data, ENTRY_MAX, &events, txn_error(t));
        if (rc == BELAY_INVALID)
            return corrupt_event(t, feed->entry[i].pos);
        if (rc)
            return rc;
        if (json_array_append_new(roots, events) < 0)
            return err_no_memory(txn_error(t), "events");
        if (!json_is_array(events))
            return corrupt_event(t, feed->entry[i].pos);
        rc = take_entry(t, f, &feed->entry[i], events, all, n);
        if (rc)
            return rc;
    }
    f->end = feed->n < ENTRY_PAGE && i == feed->n && f->next.skip == 0;
    return BELAY_OK;
}

/* --- what is beside them --- */

/* Whether its result was too long for the event. */
static bool is_apart(const json_t *o)
{
    return json_is_true(json_object_get(o, "payload_apart"));
}

/* Tags where the filter asks for one, and results that are too long for an event. */
static belay_rc look_beside(struct txn *t, const struct event_follow *f,
                            struct candidate *all, size_t n)
{
    struct belay_arena *a = txn_arena(t);
    struct value *keys = arena_zalloc(a, n, sizeof(*keys));
    struct row_want *wants = arena_zalloc(a, 2 * n, sizeof(*wants));
    const struct row **rows = arena_zalloc(a, 2 * n, sizeof(*rows));
    bool tags = filter_needs_tags(&f->filter);
    size_t asked = 0;

    if (!keys || !wants || !rows)
        return err_no_memory(txn_error(t), "events");
    for (size_t i = 0; i < n; i++) {
        keys[i] = value_text(text_of(all[i].o, "execution"));
        if (tags)
            wants[asked++] = (struct row_want){ &row_execution_spec, &keys[i] };
        if (is_apart(all[i].o))
            wants[asked++] = (struct row_want){ &row_execution_end, &keys[i] };
    }
    belay_rc rc = asked > 0 ? txn_get_many(t, wants, asked, rows) : BELAY_OK;
    for (size_t i = 0, at = 0; i < n && at < asked && rc == BELAY_OK; i++) {
        if (tags)
            all[i].spec = rows[at++];
        if (is_apart(all[i].o))
            all[i].end = rows[at++];
    }
    return rc;
}

static belay_rc matches(struct txn *t, const struct event_follow *f,
                        const struct candidate *c, bool *out)
{
    const struct belay_tag *tags = NULL;
    struct bytes value = bytes_of(NULL, 0);
    size_t n = 0;
    belay_rc rc = c->spec ? exec_tags_of(t, c->spec, &tags, &n) : BELAY_OK;

    for (size_t i = 0; i < n; i++) {
        if (bytes_eq(bytes_str(tags[i].key), f->filter.tag_key))
            value = bytes_str(tags[i].value);
    }
    *out = filter_matches(&f->filter, f->ns, value);
    return rc;
}

/* --- decoding --- */

static bool set_payload(struct belay_event *out, struct bytes content, bool is_json,
                        struct belay_arena *a)
{
    struct bytes copy;

    if (!arena_copy(a, content, &copy))
        return false;
    out->payload = copy.ptr;
    out->payload_len = copy.len;
    out->payload_is_json = is_json;
    return true;
}

/* The result of the attempt that the event is about; gone once the execution was replayed,
 * even if it has a result or an end again. */
static bool decode_apart(const struct candidate *c, struct belay_arena *a,
                         struct belay_event *out, const char **blob)
{
    const struct row *end = c->end;

    out->payload_gone = !end || row_i64(end, END_FENCE, 0) != out->fence ||
                        (end->v[END_RESULT_BLOB].kind == VALUE_NULL &&
                         end->v[END_RESULT].kind == VALUE_NULL);
    if (out->payload_gone)
        return true;
    out->payload_is_json =
        bytes_eq(row_bytes(end, END_ENCODING), bytes_str(PAYLOAD_JSON));
    if (end->v[END_RESULT_BLOB].kind != VALUE_NULL)
        return show_column(a, end, END_RESULT_BLOB, blob);
    return set_payload(out, row_bytes(end, END_RESULT), out->payload_is_json, a);
}

static bool decode_payload(const struct candidate *c, struct belay_arena *a,
                           struct belay_event *out, const char **blob)
{
    struct bytes text = text_of(c->o, "payload"),
                 coded = text_of(c->o, "payload_base64"), data;
    bool no_memory;

    if (text.ptr)
        return set_payload(out, text, true, a);
    if (!coded.ptr)
        return !is_apart(c->o) || decode_apart(c, a, out, blob);
    if (!base64_read(coded, a, &data, &no_memory))
        return !no_memory;
    out->payload = data.ptr;
    out->payload_len = data.len;
    return true;
}

static belay_rc decode(struct txn *t, struct event_follow *f, const struct candidate *c)
{
    struct belay_event *out = &f->items[f->n + f->found];
    const char **blob = &f->blobs[f->n + f->found];
    struct belay_arena *a = f->arena;
    int type = 0, outcome = 0;

    if (!vector_parse(BELAY_DIM_EVENT, text_of(c->o, "type"), &type))
        type = 0; /* may_match has seen it */
    if (!vector_parse(BELAY_DIM_OUTCOME, text_of(c->o, "outcome"), &outcome))
        outcome = (int)BELAY_TERMINAL_NONE;
    *blob = NULL;
    *out = (struct belay_event){
        .type = type,
        .outcome = outcome,
        .produced_at_ms = json_integer_value(json_object_get(c->o, "at")),
        .fence = json_integer_value(json_object_get(c->o, "fence")),
    };
    if (!event_cursor_write(&c->next, a, &out->cursor) ||
        !show_text(a, text_of(c->o, "execution"), &out->execution_id) ||
        !show_text(a, text_of(c->o, "lane"), &out->lane) ||
        !show_text(a, text_of(c->o, "worker"), &out->worker) ||
        !show_text(a, text_of(c->o, "reason"), &out->reason) ||
        !show_text(a, text_of(c->o, "flow"), &out->flow) ||
        !decode_payload(c, a, out, blob))
        return err_no_memory(txn_error(t), "events");
    return BELAY_OK;
}

belay_rc event_page(struct txn *t, void *arg)
{
    CLEANUP(json_decrefp) json_t *roots = json_array();
    struct event_follow *f = arg;
    struct candidate *all = arena_zalloc(txn_arena(t), f->limit - f->n, sizeof(*all));
    struct feed_entries feed;
    size_t n = 0;

    if (!roots || !all)
        return err_no_memory(txn_error(t), "events");
    arena_rewind(f->arena, f->mark);
    f->next = f->place;
    f->found = 0;
    belay_rc rc =
        txn_feed_read(t, bytes_str(EXECUTION_FEED), f->place.pos, ENTRY_PAGE, &feed);
    if (rc)
        return rc;
    f->lost = feed_pos_cmp(feed.trimmed, f->place.pos) > 0;
    if (f->lost)
        f->next = (struct event_place){ feed.trimmed, 0 };
    rc = take_entries(t, f, &feed, roots, all, &n);
    if (rc == BELAY_OK)
        rc = look_beside(t, f, all, n);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        bool wanted = false;
        rc = matches(t, f, &all[i], &wanted);
        if (rc == BELAY_OK && wanted) {
            rc = decode(t, f, &all[i]);
            f->found++;
        }
    }
    return rc;
}
