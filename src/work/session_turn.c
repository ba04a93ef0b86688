#include <inttypes.h>
#include <stdlib.h>

#include "work/session_impl.h"

#define TURN_HASH_VERSION 1
#define SESSION_TOPIC "session/"
#define LOG_LIMIT 100 /* of a page, when none is given */
#define LOG_LIMIT_MAX 1000

/* --- the hash of a turn --- */

static const char *const graph_names_of[] = {
    [BELAY_GRAPH_UNCHANGED] = "unchanged",
    [BELAY_GRAPH_APPEND] = "append",
    [BELAY_GRAPH_REPLACE] = "replace",
};

/* ,"key": in front of a value. */
static void append_key(struct buf *out, const char *key)
{
    if (out->len > 1)
        buf_append_char(out, ',');
    json_append_string(out, bytes_str(key));
    buf_append_char(out, ':');
}

static void append_text(struct buf *out, struct bytes text)
{
    if (text.ptr)
        json_append_string(out, text);
    else
        buf_append_str(out, "null");
}

/* The hash of a JSON text: texts of any depth fit then. */
static belay_rc append_hash(struct buf *out, struct bytes json, struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];
    char hex[SHA256_HEX_LEN + 1];

    if (!json.ptr) {
        buf_append_str(out, "null");
        return BELAY_OK;
    }
    belay_rc rc = sha256(json, digest, err);
    if (rc)
        return rc;
    hex_encode(bytes_of(digest, sizeof(digest)), hex);
    json_append_string(out, bytes_str(hex));
    return BELAY_OK;
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int compare_text(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* What was completed, whoever held it and in whatever order: sequences, and the ids of
 * batches that were named by nothing else. */
static belay_rc append_completed(struct buf *out, const struct commit *c,
                                 struct belay_error *err)
{
    size_t max = 0, n_seqs = 0, n_ids = 0;

    for (size_t i = 0; i < c->in->n_completes; i++)
        max += c->in->completes[i]->n_batches;
    int64_t *seqs = arena_zalloc(c->a, max, sizeof(*seqs));
    struct bytes *ids = arena_zalloc(c->a, max, sizeof(*ids));
    if (!seqs || !ids)
        return err_no_memory(err, "a turn");
    for (size_t i = 0; i < c->in->n_completes; i++) {
        const struct belay_claim *claim = c->in->completes[i];
        for (size_t j = 0; j < claim->n_batches; j++) {
            const struct belay_batch *batch = &claim->batches[j];
            if (batch->enqueue_seq > 0)
                seqs[n_seqs++] = batch->enqueue_seq;
            else
                ids[n_ids++] = bytes_str(batch->batch_id ? batch->batch_id : "");
        }
    }
    qsort(seqs, n_seqs, sizeof(*seqs), compare_i64);
    qsort(ids, n_ids, sizeof(*ids), compare_text);
    buf_append_char(out, '[');
    for (size_t i = 0; i < n_seqs; i++)
        buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", seqs[i]);
    for (size_t i = 0; i < n_ids; i++) {
        if (n_seqs + i > 0)
            buf_append_char(out, ',');
        json_append_string(out, ids[i]);
    }
    buf_append_char(out, ']');
    return BELAY_OK;
}

/* Content, and the place of the parent in the delta: ids do not count. */
static void append_nodes(struct buf *out, const struct commit *c)
{
    buf_append_char(out, '[');
    for (size_t i = 0; i < c->in->n_nodes; i++) {
        struct bytes parent = c->nodes[i].parent;
        int64_t place = parent.ptr ? graph_find(c->graph, parent) : -1;
        buf_append_str(out, i > 0 ? ",[" : "[");
        json_append_string(out, bytes_str(c->bodies[i].hash));
        if (place >= 0)
            buf_printf(out, ",%" PRId64 "]", place);
        else
            buf_append_str(out, ",null]");
    }
    buf_append_char(out, ']');
}

static void append_usage(struct buf *out, const struct commit *c)
{
    buf_append_char(out, '[');
    for (size_t i = 0; i < c->in->n_usage; i++) {
        if (i > 0)
            buf_append_char(out, ',');
        buf_append(out, c->usage[i].content);
    }
    buf_append_char(out, ']');
}

static void append_attachments(struct buf *out, const struct commit *c)
{
    buf_append_char(out, '[');
    for (size_t i = 0; i < c->in->n_attachments; i++) {
        if (i > 0)
            buf_append_char(out, ',');
        json_append_string(out, bytes_str(c->in->attachments[i]));
    }
    buf_append_char(out, ']');
}

/* Canonical JSON: the keys are in order. */
static belay_rc turn_text(const struct commit *c, struct buf *out,
                          struct belay_error *err)
{
    const char *frame = c->in->current_frame;

    buf_append_char(out, '{');
    append_key(out, "agent_frames");
    belay_rc rc = append_hash(out, c->frames, err);
    append_key(out, "attachments");
    append_attachments(out, c);
    append_key(out, "checkpoint"); /* its manifest says all of it */
    if (rc == BELAY_OK)
        rc = append_hash(
            out, c->in->checkpoint ? c->checkpoint.manifest : bytes_of(NULL, 0), err);
    append_key(out, "completed");
    if (rc == BELAY_OK)
        rc = append_completed(out, c, err);
    append_key(out, "config");
    if (rc == BELAY_OK)
        rc = append_hash(out, c->config, err);
    append_key(out, "current_frame");
    append_text(out, frame ? bytes_str(frame) : bytes_of(NULL, 0));
    append_key(out, "graph");
    append_text(out, bytes_str(graph_names_of[c->in->graph]));
    append_key(out, "nodes");
    append_nodes(out, c);
    append_key(out, "session");
    append_text(out, c->session);
    append_key(out, "usage");
    append_usage(out, c);
    append_key(out, "version");
    buf_printf(out, "%d}", TURN_HASH_VERSION);
    return rc;
}

belay_rc turn_prepare(struct commit *c, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    uint8_t digest[SHA256_LEN];

    if (!c->in->turn_id)
        return BELAY_OK;
    belay_rc rc = turn_text(c, &text, err);
    if (rc == BELAY_OK && text.failed)
        rc = err_no_memory(err, "a turn");
    if (rc == BELAY_OK)
        rc = sha256(buf_view(&text), digest, err);
    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), c->hash);
    return rc;
}

/* --- the stamp --- */

static belay_rc read_entry(struct txn *t, struct commit *c, int64_t revision)
{
    struct log_entries entries;
    struct bytes stream;
    belay_rc rc = session_index_in(t, COMMIT_STREAM, c->session, &stream);

    if (rc == BELAY_OK)
        rc = txn_log_read(t, stream, revision - 1, 1, &entries);
    if (rc)
        return rc;
    if (revision < 1 || entries.n == 0 || entries.entry[0].seq != revision)
        return txn_fail(t, BELAY_CORRUPT, "log_gap",
                        "session %s: revision %" PRId64 " is not in its log", c->s->id,
                        revision);
    c->replayed = true;
    c->entry = entries.entry[0].data;
    return BELAY_OK;
}

belay_rc turn_find(struct txn *t, struct commit *c)
{
    const struct row *turn;

    c->replayed = false;
    if (!c->in->turn_id)
        return BELAY_OK;
    struct row_key key = key_of_name(c->session, bytes_str(c->in->turn_id));
    belay_rc rc = txn_get(t, &row_turn, key.v, &turn);
    if (rc || !turn)
        return rc;
    if (bytes_eq(row_bytes(turn, TURN_HASH), bytes_str(c->hash)))
        return read_entry(t, c, row_i64(turn, TURN_REVISION, 0));
    rc = txn_fail(t, BELAY_TURN_CONFLICT, "",
                  "turn %s: was committed with other content", c->in->turn_id);
    err_entity(txn_error(t), bytes_str(c->in->turn_id));
    return rc;
}

belay_rc turn_stamp(struct txn *t, const struct commit *c)
{
    if (!c->in->turn_id)
        return BELAY_OK;
    return txn_insert(t, &row_turn,
                      (const struct value[TURN_COLUMNS]){
                          [TURN_SESSION] = value_text(c->session),
                          [TURN_ID] = value_str(c->in->turn_id),
                          [TURN_HASH] = value_str(c->hash),
                          [TURN_REVISION] = value_i64(c->now.revision),
                      });
}

/* --- the log --- */

/* Canonical JSON, like all that is stored. */
static void append_note(struct buf *out, const struct commit_note *n)
{
    buf_printf(out, "{\"at_ms\":%" PRId64, n->at_ms);
    if (n->checkpoint_ref.ptr) {
        append_key(out, "checkpoint_ref");
        json_append_string(out, n->checkpoint_ref);
    }
    append_key(out, "completed");
    buf_append(out, n->completed);
    if (n->heal) {
        append_key(out, "heal");
        buf_append_str(out, "true");
    }
    append_key(out, "leaf");
    append_text(out, n->leaf);
    if (n->manifest.ptr) {
        append_key(out, "manifest");
        buf_append(out, n->manifest);
    }
    append_key(out, "node_count");
    buf_append_i64(out, n->node_count);
    append_key(out, "node_ids");
    buf_append(out, n->node_ids);
    append_key(out, "revision");
    buf_append_i64(out, n->revision);
    if (n->turn_id.ptr) {
        append_key(out, "turn_id");
        json_append_string(out, n->turn_id);
    }
    append_key(out, "usage_ids");
    buf_append(out, n->usage_ids);
    buf_append_char(out, '}');
}

belay_rc session_note(struct txn *t, struct bytes session,
                      const struct commit_note *note)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct bytes stream, topic;

    append_note(&text, note);
    if (text.failed)
        return err_no_memory(txn_error(t), "a log entry");
    belay_rc rc = session_index_in(t, COMMIT_STREAM, session, &stream);
    if (rc == BELAY_OK)
        rc = session_index_in(t, SESSION_TOPIC, session, &topic);
    if (rc == BELAY_OK)
        rc = txn_log_append(t, stream, note->revision, buf_view(&text));
    return rc ? rc : txn_wake(t, topic);
}

belay_rc session_read_note(struct bytes entry, json_t **out, struct belay_error *err)
{
    belay_rc rc = json_read(entry, COMMIT_ENTRY_MAX, out, err);

    if (rc == BELAY_NO_MEMORY)
        return rc;
    if (rc == BELAY_OK && json_is_integer(json_object_get(*out, "revision")))
        return BELAY_OK;
    return err_reason(err, BELAY_CORRUPT, "bad_value",
                      "session: an entry of its log cannot be read");
}

/* --- an answer out of the log --- */

static belay_rc text_of(const json_t *value, struct belay_arena *a, const char **out,
                        struct belay_error *err)
{
    struct bytes copy;

    *out = NULL;
    if (!json_is_string(value))
        return BELAY_OK;
    if (!arena_copy(a, bytes_str(json_string_value(value)), &copy))
        return err_no_memory(err, "an answer");
    *out = (const char *)copy.ptr;
    return BELAY_OK;
}

static belay_rc ids_of(const json_t *list, struct belay_arena *a,
                       struct belay_committed *out, struct belay_error *err)
{
    size_t n = json_array_size(list);
    const char **ids = arena_zalloc(a, n, sizeof(const char *));
    belay_rc rc = ids ? BELAY_OK : err_no_memory(err, "an answer");

    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = text_of(json_array_get(list, i), a, &ids[i], err);
    out->node_ids = ids;
    out->n_node_ids = n;
    return rc;
}

static belay_rc take_answer(const json_t *entry, struct belay_arena *a,
                            struct belay_committed *out, struct belay_error *err)
{
    const json_t *manifest = json_object_get(entry, "manifest");
    struct bytes text;

    out->revision = json_integer_value(json_object_get(entry, "revision"));
    out->node_count = json_integer_value(json_object_get(entry, "node_count"));
    belay_rc rc =
        text_of(json_object_get(entry, "checkpoint_ref"), a, &out->checkpoint_ref, err);
    if (rc == BELAY_OK)
        rc = text_of(json_object_get(entry, "leaf"), a, &out->leaf, err);
    if (rc == BELAY_OK)
        rc = ids_of(json_object_get(entry, "node_ids"), a, out, err);
    if (rc || !manifest)
        return rc;
    rc = session_canonical(manifest, a, &text, err);
    if (rc == BELAY_OK)
        out->manifest = (const char *)text.ptr;
    return rc;
}

belay_rc turn_answer(struct bytes entry, struct belay_arena *a,
                     struct belay_committed *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *value = NULL;
    belay_rc rc = session_read_note(entry, &value, err);

    *out = (struct belay_committed){ .replayed = true };
    return rc ? rc : take_answer(value, a, out, err);
}

/* --- reading the log --- */

struct log_page {
    struct bytes session;
    int64_t after;
    size_t limit;
    struct session_now now;
    struct log_entries entries;
};

static belay_rc log_body(struct txn *t, void *arg)
{
    struct log_page *p = arg;
    struct bytes stream;
    belay_rc rc = session_to_read(t, p->session, &p->now);

    if (rc == BELAY_OK)
        rc = session_index_in(t, COMMIT_STREAM, p->session, &stream);
    return rc ? rc : txn_log_read(t, stream, p->after, p->limit, &p->entries);
}

static belay_rc take_entry(const struct log_entry *e, struct belay_arena *a,
                           struct belay_commit_entry *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *value = NULL;
    struct bytes json;
    belay_rc rc = session_read_note(e->data, &value, err);

    if (rc)
        return rc;
    out->revision = e->seq;
    out->at_ms = json_integer_value(json_object_get(value, "at_ms"));
    if (!arena_copy(a, e->data, &json))
        return err_no_memory(err, "a log");
    out->json = (const char *)json.ptr;
    return text_of(json_object_get(value, "turn_id"), a, &out->turn_id, err);
}

belay_rc session_log(const struct session *s, int64_t after, size_t limit,
                     struct belay_arena *a, struct belay_commit_log *out,
                     struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct log_page p = { .session = bytes_str(s->id),
                          .after = after < 0 ? 0 : after,
                          .limit = session_limit(limit, LOG_LIMIT, LOG_LIMIT_MAX) };

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, log_body, &p, &session_reads, &scratch, err);
    if (rc)
        return rc;
    size_t n = p.entries.n;
    struct belay_commit_entry *list = arena_zalloc(a, n, sizeof(*list));
    if (!list)
        return err_no_memory(err, "a log");
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = take_entry(&p.entries.entry[i], a, &list[i], err);
    if (rc)
        return rc;
    int64_t last = n > 0 ? list[n - 1].revision : p.now.revision;
    *out = (struct belay_commit_log){ .entries = list,
                                      .n = n,
                                      .next_after = last < p.now.revision ? last : 0 };
    return BELAY_OK;
}
