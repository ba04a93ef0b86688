#include "work/session_impl.h"

#include "work/process_grants.h"

/* A session goes in steps.  The first makes its row say so, for ever (N3), and closes
 * the inbox: from then on nothing is added to it anywhere, so that what is found by the
 * further steps is all there is.  The last one empties the row.  Each step can be done
 * twice, by whoever comes by; an interrupted deletion is gone on with. */

#define LOG_STEP 32 /* entries, each with up to 1000 usage ids */

struct deletion {
    struct bytes session;
    bool anything; /* there was something to delete */
    bool over;     /* nothing is left but the row that says so */
    bool more;     /* the step has found something: there may be more */

    /* of a page of the log, and the rows that it tells of */
    struct log_entries entries;
    struct told *told;
    size_t n_told;
};

struct told {
    struct told *next;
    const struct row_type *type; /* row_turn or row_usage_seen */
    struct bytes name;
};

/* --- the mark --- */

/* Everything a session may have without having a row. */
static belay_rc find_anything(struct txn *t, struct deletion *d)
{
    struct value key = value_text(d->session);
    const struct value grants[] = { value_str(GRANTS_OF_SESSION), key };
    const struct row_want wants[] = { { &row_session, &key },
                                      { &row_inbox, &key },
                                      { &row_session_meta, &key },
                                      { &row_grant_count, grants } };
    const struct row *rows[COUNT_OF(wants)];
    struct bytes indexes[2];
    struct hits hits;
    belay_rc rc = session_index_in(t, INTENT_INDEX, d->session, &indexes[0]);

    if (rc == BELAY_OK)
        rc = session_index_in(t, ATTACHED_INDEX, d->session, &indexes[1]);
    if (rc)
        return rc;
    struct scan attachments = { .indexes = indexes,
                                .n_indexes = 2,
                                .min_rank = -RANK_MAX,
                                .max_rank = RANK_MAX,
                                .limit = 1 };
    rc = txn_load(t, wants, COUNT_OF(wants), rows, &attachments, 1, &hits);
    if (rc == BELAY_OK)
        d->anything = rows[0] || rows[1] || rows[2] || rows[3] || hits.n > 0;
    return rc;
}

static belay_rc mark_row(struct txn *t, struct bytes session,
                         const struct session_now *now)
{
    const struct change changes[] = { { SESSION_STATE, value_str(SESSION_DELETING) },
                                      { SESSION_NODE_COUNT, value_i64(0) } };
    struct value v[SESSION_COLUMNS] = { [SESSION_ID] = value_text(session),
                                        [SESSION_STATE] = value_str(SESSION_DELETING),
                                        [SESSION_REVISION] = value_i64(0) };
    int64_t rank = now->created_at_ms;
    belay_rc rc = BELAY_OK;

    if (now->row) {
        rc = txn_put(t, &row_session, v, changes, COUNT_OF(changes));
        if (rc == BELAY_OK)
            rc = txn_rank_remove(t, bytes_str(SESSION_INDEX), rank, session);
    } else {
        rc = txn_now(t, &rank);
        v[SESSION_CREATED_AT_MS] = v[SESSION_UPDATED_AT_MS] = value_i64(rank);
        if (rc == BELAY_OK)
            rc = txn_insert(t, &row_session, v);
    }
    return rc ? rc : txn_rank_add(t, bytes_str(SESSION_DELETING_INDEX), rank, session);
}

static bool is_deleted(const struct session_now *now)
{
    return now->row &&
           bytes_eq(row_bytes(now->row, SESSION_STATE), bytes_str(SESSION_DELETED));
}

static belay_rc mark_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct session_now now;
    belay_rc rc = find_anything(t, d);

    if (rc == BELAY_OK)
        rc = session_load(t, d->session, &now);
    if (rc)
        return rc;
    if (is_deleted(&now))
        d->anything = false;
    d->over = !d->anything;
    if (d->over || now.gone)
        return BELAY_OK;
    rc = mark_row(t, d->session, &now);
    return rc ? rc : queue_close(t, d->session);
}

/* --- steps --- */

/* Whether there is still something to do. */
static belay_rc look(struct txn *t, struct deletion *d, struct session_now *now)
{
    belay_rc rc = session_load(t, d->session, now);

    d->more = false;
    d->over = rc == BELAY_OK && is_deleted(now);
    return rc;
}

static belay_rc nodes_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct value key = value_text(d->session);
    const struct row *nodes[SESSION_STEP];
    struct session_now now;
    size_t removed;
    belay_rc rc = look(t, d, &now);

    if (rc || d->over || now.first_seq > now.last_seq)
        return rc;
    int64_t left = now.last_seq - now.first_seq + 1;
    size_t n = left < SESSION_STEP ? (size_t)left : SESSION_STEP;
    d->more = true;
    rc = rows_by_seq(t, &row_node, d->session, now.first_seq, n, nodes);
    if (rc == BELAY_OK)
        rc = nodes_remove(t, d->session, nodes, n, NULL, &removed);
    struct change change = { SESSION_FIRST_SEQ, value_i64(now.first_seq + (int64_t)n) };
    return rc ? rc : txn_put(t, &row_session, &key, &change, 1);
}

static belay_rc attachments_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct value prefix = value_text(d->session);
    struct fetch fetch = { .type = &row_attachment, .prefix = &prefix };
    struct bytes indexes[2];
    struct session_now now;
    struct hits hits;
    belay_rc rc = look(t, d, &now);

    if (rc || d->over)
        return rc;
    rc = session_index_in(t, INTENT_INDEX, d->session, &indexes[0]);
    if (rc == BELAY_OK)
        rc = session_index_in(t, ATTACHED_INDEX, d->session, &indexes[1]);
    if (rc)
        return rc;
    struct scan scan = { .indexes = indexes,
                         .n_indexes = 2,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .limit = SESSION_STEP,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    rc = txn_scan(t, &scan, &hits);
    d->more = rc == BELAY_OK && hits.n > 0;
    for (size_t i = 0; i < hits.n && rc == BELAY_OK; i++) {
        const struct hit *hit = &hits.hit[i];
        rc = hit->rows[0] ? attachment_remove(t, d->session, hit->rows[0])
                          : txn_rank_remove(t, hit->index, hit->rank, hit->member);
    }
    return rc;
}

/* --- turns and usage, found through the log --- */

static belay_rc log_look_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct session_now now;
    struct bytes stream;
    belay_rc rc = look(t, d, &now);

    d->entries = (struct log_entries){ .n = 0 };
    if (rc == BELAY_OK)
        rc = session_index_in(t, COMMIT_STREAM, d->session, &stream);
    if (rc == BELAY_OK && !d->over)
        rc = txn_log_read(t, stream, 0, LOG_STEP, &d->entries);
    d->more = d->entries.n > 0;
    return rc;
}

static belay_rc keep_told(struct deletion *d, const struct row_type *type,
                          const json_t *id, struct belay_arena *a,
                          struct belay_error *err)
{
    const char *text = json_string_value(id);

    if (!text || !*text)
        return BELAY_OK;
    struct told *told = arena_zalloc(a, 1, sizeof(*told));
    if (!told || !arena_copy(a, bytes_str(text), &told->name))
        return err_no_memory(err, "a log");
    told->type = type;
    told->next = d->told;
    d->told = told;
    d->n_told++;
    return BELAY_OK;
}

/* What one entry tells of.  One that cannot be read does not keep the session from
 * going: what only it knew of stays behind, and is in nobody's way. */
static belay_rc read_entry(struct deletion *d, struct bytes entry,
                           struct belay_arena *a, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *note = NULL;
    belay_rc rc = session_read_note(entry, &note, err);
    const json_t *id;
    size_t i;

    if (rc == BELAY_CORRUPT)
        return BELAY_OK;
    if (rc == BELAY_OK)
        rc = keep_told(d, &row_turn, json_object_get(note, "turn_id"), a, err);
    json_array_foreach(json_object_get(note, "usage_ids"), i, id)
    {
        if (rc == BELAY_OK)
            rc = keep_told(d, &row_usage_seen, id, a, err);
    }
    return rc;
}

static belay_rc delete_told(struct txn *t, const struct deletion *d)
{
    struct row_want *wants = arena_zalloc(txn_arena(t), d->n_told, sizeof(*wants));
    struct row_key *keys = arena_zalloc(txn_arena(t), d->n_told, sizeof(*keys));
    const struct row **rows =
        arena_zalloc(txn_arena(t), d->n_told, sizeof(const void *));
    size_t n = 0;

    if (!wants || !keys || !rows)
        return err_no_memory(txn_error(t), "a log");
    for (const struct told *told = d->told; told; told = told->next) {
        keys[n] = key_of_name(d->session, told->name);
        wants[n] = (struct row_want){ told->type, keys[n].v };
        n++;
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        rc = txn_get(t, wants[i].type, wants[i].key, &rows[i]); /* told of twice */
        if (rc == BELAY_OK && rows[i])
            rc = txn_delete(t, wants[i].type, wants[i].key);
    }
    return rc;
}

static belay_rc log_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct session_now now;
    struct bytes stream;
    belay_rc rc = look(t, d, &now);

    d->more = true;
    if (rc || d->over)
        return rc;
    rc = session_index_in(t, COMMIT_STREAM, d->session, &stream);
    if (rc == BELAY_OK)
        rc = delete_told(t, d);
    return rc ? rc : txn_log_trim(t, stream, d->entries.entry[d->entries.n - 1].seq);
}

/* JSON is read between the two. */
static belay_rc log_step(const struct session *s, struct deletion *d,
                         struct belay_arena *a, struct belay_error *err)
{
    d->told = NULL;
    d->n_told = 0;
    belay_rc rc = txn_run(s->sp, log_look_body, d, &session_reads, a, err);
    for (size_t i = 0; i < d->entries.n && rc == BELAY_OK; i++)
        rc = read_entry(d, d->entries.entry[i].data, a, err);
    return rc || !d->more ? rc : txn_run(s->sp, log_body, d, NULL, a, err);
}

/* --- the end --- */

static belay_rc delete_meta(struct txn *t, struct bytes session, const struct row *meta)
{
    struct value key = value_text(session);
    struct bytes index;
    belay_rc rc = txn_delete(t, &row_session_meta, &key);

    if (rc || meta->v[META_PARENT].kind == VALUE_NULL)
        return rc;
    rc = session_index_in(t, CHILD_INDEX, row_bytes(meta, META_PARENT), &index);
    return rc ? rc
              : txn_rank_remove(t, index, row_i64(meta, META_SAVED_AT_MS, 0), session);
}

/* Nothing is left in the row but that there was a session. */
static belay_rc empty_row(struct txn *t, struct bytes session,
                          const struct session_now *now)
{
    struct value key = value_text(session);
    struct change changes[SESSION_COLUMNS];
    size_t n = 0;
    int64_t now_ms = 0;
    belay_rc rc = txn_now(t, &now_ms);

    for (unsigned i = SESSION_REVISION; i < SESSION_CREATED_AT_MS; i++)
        changes[n++] = (struct change){ i, value_null() };
    changes[n++] = (struct change){ SESSION_STATE, value_str(SESSION_DELETED) };
    changes[n++] = (struct change){ SESSION_UPDATED_AT_MS, value_i64(now_ms) };
    if (rc == BELAY_OK)
        rc = txn_put(t, &row_session, &key, changes, n);
    return rc ? rc
              : txn_rank_remove(t, bytes_str(SESSION_DELETING_INDEX),
                                now->created_at_ms, session);
}

static belay_rc end_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct value key = value_text(d->session);
    const struct row_want wants[] = { { &row_session, &key },
                                      { &row_session_frames, &key },
                                      { &row_session_usage, &key },
                                      { &row_session_meta, &key } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    struct session_now now;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = look(t, d, &now);
    if (rc || d->over)
        return rc;
    if (rows[1])
        rc = txn_delete(t, &row_session_frames, &key);
    if (rc == BELAY_OK && rows[2])
        rc = txn_delete(t, &row_session_usage, &key);
    if (rc == BELAY_OK && rows[3])
        rc = delete_meta(t, d->session, rows[3]);
    return rc ? rc : empty_row(t, d->session, &now);
}

static belay_rc queue_step(const struct session *s, struct deletion *d,
                           struct belay_arena *a, struct belay_error *err)
{
    (void)a;
    return queue_purge(s->sp, d->session, SESSION_STEP, &d->more, err);
}

static belay_rc nodes_step(const struct session *s, struct deletion *d,
                           struct belay_arena *a, struct belay_error *err)
{
    return txn_run(s->sp, nodes_body, d, NULL, a, err);
}

static belay_rc attachments_step(const struct session *s, struct deletion *d,
                                 struct belay_arena *a, struct belay_error *err)
{
    return txn_run(s->sp, attachments_body, d, NULL, a, err);
}

/* What was granted to it is granted to nobody any more. */
static belay_rc grants_body(struct txn *t, void *arg)
{
    struct deletion *d = arg;
    struct session_now now;
    size_t n = 0;
    belay_rc rc = look(t, d, &now);

    if (rc || d->over)
        return rc;
    rc = grants_drop(t, d->session, SESSION_STEP, &n);
    d->more = n > 0;
    return rc;
}

static belay_rc grants_step(const struct session *s, struct deletion *d,
                            struct belay_arena *a, struct belay_error *err)
{
    return txn_run(s->sp, grants_body, d, NULL, a, err);
}

belay_rc session_delete(const struct session *s, bool *out_deleted,
                        struct belay_error *err)
{
    static belay_rc (*const steps[])(const struct session *, struct deletion *,
                                     struct belay_arena *, struct belay_error *) = {
        queue_step, nodes_step, log_step, attachments_step, grants_step
    };
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct deletion d = { .session = bytes_str(s->id) };
    belay_rc rc = session_check_id(s->id, err);

    if (rc == BELAY_OK)
        rc = txn_run(s->sp, mark_body, &d, NULL, &scratch, err);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        for (d.more = true; rc == BELAY_OK && !d.over && d.more;) {
            arena_reset(&scratch);
            rc = steps[i](s, &d, &scratch, err);
        }
    }
    arena_reset(&scratch);
    if (rc == BELAY_OK && !d.over)
        rc = txn_run(s->sp, end_body, &d, NULL, &scratch, err);
    if (rc == BELAY_OK && out_deleted)
        *out_deleted = d.anything;
    return rc;
}
