#include <inttypes.h>
#include <stdio.h>

#include "work/session_impl.h"

#define META_TEXT_MAX 4096
#define LIST_LIMIT 100 /* of a page, when none is given */
#define LIST_LIMIT_MAX 1000

/* --- saving --- */

struct meta_save {
    struct bytes session;
    const struct belay_session_meta *in;
    struct bytes caused_by; /* canonical; NULL ptr: none */
    bool only_if_absent;
};

static belay_rc check_meta(const struct session *s, const struct belay_session_meta *in,
                           struct belay_error *err)
{
    const struct {
        const char *what, *text;
    } texts[] = { { "name", in->name },
                  { "created_at", in->created_at },
                  { "model", in->model },
                  { "cwd", in->cwd } };
    belay_rc rc = session_check_id(s->id, err);

    for (size_t i = 0; i < COUNT_OF(texts) && rc == BELAY_OK; i++)
        rc = session_check_text(texts[i].text, META_TEXT_MAX, texts[i].what, err);
    if (rc == BELAY_OK && in->parent)
        rc = session_check_name(in->parent, "parent", err);
    if (rc)
        return rc;
    if (in->parent && strcmp(in->parent, s->id) == 0)
        return err_reason(err, BELAY_INVALID, "parent",
                          "session %s: cannot be its own parent", s->id);
    if (in->caused_by && !in->parent)
        return err_reason(err, BELAY_INVALID, "caused_by",
                          "session %s: has a cause and no parent", s->id);
    return BELAY_OK;
}

static belay_rc read_cause(const char *text, struct belay_arena *a, struct bytes *out,
                           struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *cause = NULL;

    if (!text)
        return BELAY_OK;
    belay_rc rc = session_json(text, "caused_by", &cause, err);
    return rc ? rc : session_canonical(cause, a, out, err);
}

static struct value text_value(const char *text)
{
    return text ? value_str(text) : value_null();
}

/* The row to be, but for its time. */
static void meta_values(const struct meta_save *m, const char *created_at,
                        struct value v[META_COLUMNS])
{
    const struct belay_session_meta *in = m->in;

    v[META_SESSION] = value_text(m->session);
    v[META_NAME] = in->name ? value_str(in->name) : value_text(m->session);
    v[META_CREATED_AT] = value_str(in->created_at ? in->created_at : created_at);
    v[META_MODEL] = value_str(in->model ? in->model : "");
    v[META_CWD] = text_value(in->cwd);
    v[META_PARENT] = text_value(in->parent);
    v[META_CAUSED_BY] = m->caused_by.ptr ? value_json(m->caused_by) : value_null();
}

/* A child stands in its parent's index at the time when it was saved with that parent. */
static belay_rc move_child(struct txn *t, struct bytes session, const struct row *old,
                           const struct value *parent, int64_t now_ms)
{
    struct bytes index;
    belay_rc rc = BELAY_OK;

    if (old && old->v[META_PARENT].kind != VALUE_NULL) {
        rc = session_index_in(t, CHILD_INDEX, row_bytes(old, META_PARENT), &index);
        if (rc == BELAY_OK)
            rc = txn_rank_remove(t, index, row_i64(old, META_SAVED_AT_MS, 0), session);
    }
    if (rc || parent->kind == VALUE_NULL)
        return rc;
    rc = session_index_in(t, CHILD_INDEX, parent->b, &index);
    return rc ? rc : txn_rank_add(t, index, now_ms, session);
}

static belay_rc put_meta(struct txn *t, const struct value *v)
{
    struct change changes[META_COLUMNS - 1];

    for (unsigned i = 1; i < META_COLUMNS; i++)
        changes[i - 1] = (struct change){ i, v[i] };
    return txn_put(t, &row_session_meta, v, changes, COUNT_OF(changes));
}

static belay_rc save_body(struct txn *t, void *arg)
{
    const struct meta_save *m = arg;
    struct value key = value_text(m->session), v[META_COLUMNS];
    const struct row_want wants[] = { { &row_session, &key },
                                      { &row_session_meta, &key } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    struct session_now now;
    char created_at[40];
    int64_t now_ms = 0;

    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = session_to_write(t, m->session, &now); /* N3 */
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    const struct row *old = rows[1];
    if (rc || (old && m->only_if_absent))
        return rc;
    (void)snprintf(created_at, sizeof(created_at), "unix:%" PRId64, now_ms / 1000);
    meta_values(m, created_at, v);
    bool stays = old && v[META_PARENT].kind != VALUE_NULL &&
                 value_eq(&old->v[META_PARENT], &v[META_PARENT]);
    v[META_SAVED_AT_MS] = stays ? old->v[META_SAVED_AT_MS] : value_i64(now_ms);
    if (!stays)
        rc = move_child(t, m->session, old, &v[META_PARENT], now_ms);
    if (rc)
        return rc;
    return old ? put_meta(t, v) : txn_insert(t, &row_session_meta, v);
}

belay_rc session_meta_save(const struct session *s,
                           const struct belay_session_meta *meta, bool only_if_absent,
                           struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct meta_save m = { .in = meta, .only_if_absent = only_if_absent };

    belay_rc rc = check_meta(s, meta, err);
    if (rc == BELAY_OK)
        rc = read_cause(meta->caused_by, &scratch, &m.caused_by, err);
    if (rc)
        return rc;
    m.session = bytes_str(s->id);
    return txn_run(s->sp, save_body, &m, NULL, &scratch, err);
}

/* --- loading --- */

struct meta_load {
    struct bytes session;
    const struct row *row;
};

static belay_rc load_body(struct txn *t, void *arg)
{
    struct meta_load *m = arg;
    struct value key = value_text(m->session);
    belay_rc rc = session_not_gone(t, m->session);

    if (rc == BELAY_OK)
        rc = txn_get(t, &row_session_meta, &key, &m->row);
    if (rc || m->row)
        return rc;
    rc = txn_fail(t, BELAY_NOT_FOUND, "", "session %.*s: it has no meta",
                  (int)m->session.len, (const char *)m->session.ptr);
    err_entity(txn_error(t), m->session);
    return rc;
}

belay_rc session_meta_load(const struct session *s, struct belay_arena *a,
                           struct belay_session_meta *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct meta_load m = { .session = bytes_str(s->id) };
    struct belay_session_meta meta = { .size = sizeof(meta) };
    const struct {
        unsigned column;
        const char **out;
    } texts[] = { { META_NAME, &meta.name },     { META_CREATED_AT, &meta.created_at },
                  { META_MODEL, &meta.model },   { META_CWD, &meta.cwd },
                  { META_PARENT, &meta.parent }, { META_CAUSED_BY, &meta.caused_by } };

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, load_body, &m, &session_reads, &scratch, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (!session_text(a, m.row, texts[i].column, texts[i].out))
            return err_no_memory(err, "a session's meta");
    }
    *out = meta;
    return BELAY_OK;
}

/* --- listing --- */

struct listing {
    bool children;
    struct bytes index;
    const struct scan_cursor *after;
    size_t limit;
    struct hits hits;
    struct session_now *now; /* one a hit */
};

/* Numbers are checked like those of one session. */
static belay_rc list_body(struct txn *t, void *arg)
{
    static const struct fetch fetch = { .type = &row_session };
    struct listing *l = arg;
    struct scan scan = { .indexes = &l->index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .after = l->after,
                         .limit = l->limit + 1,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    belay_rc rc = txn_scan(t, &scan, &l->hits);

    if (rc)
        return rc;
    l->now = arena_zalloc(txn_arena(t), l->hits.n, sizeof(*l->now));
    if (!l->now)
        return err_no_memory(txn_error(t), "a list");
    for (size_t i = 0; i < l->hits.n && rc == BELAY_OK; i++) {
        struct bytes id = l->hits.hit[i].member;
        rc = session_load(t, id, &l->now[i]);
        if (rc == BELAY_OK && !l->now[i].row && !l->children)
            rc = txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                          "session %.*s: is listed and has no row", (int)id.len,
                          (const char *)id.ptr);
    }
    return rc;
}

static belay_rc read_cursor(const char *text, struct bytes index,
                            struct scan_cursor *out, struct belay_error *err)
{
    const char *colon = strchr(text, ':');

    *out = (struct scan_cursor){ .index = index };
    if (colon)
        out->member = bytes_str(colon + 1);
    if (colon && bytes_to_i64(bytes_of(text, (size_t)(colon - text)), &out->rank) &&
        bytes_is_id(out->member, SESSION_NAME_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "cursor",
                      "cursor: is none that a list has given");
}

static belay_rc write_cursor(const struct hit *last, struct belay_arena *a,
                             const char **out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct bytes kept;

    buf_append_i64(&text, last->rank);
    buf_append_char(&text, ':');
    buf_append(&text, last->member);
    belay_rc rc = session_keep(&text, a, &kept, err);
    if (rc == BELAY_OK)
        *out = (const char *)kept.ptr;
    return rc;
}

/* A child that has only meta so far is listed with revision 0. */
static bool take_listed(const struct hit *hit, const struct session_now *now,
                        struct belay_arena *a, struct belay_head *out)
{
    struct bytes id;

    if (now->row)
        return session_take_head(now, a, out);
    *out =
        (struct belay_head){ .created_at_ms = hit->rank, .updated_at_ms = hit->rank };
    if (!arena_copy(a, hit->member, &id))
        return false;
    out->session_id = (const char *)id.ptr;
    return true;
}

static belay_rc take_list(const struct listing *l, struct belay_arena *a,
                          struct belay_sessions *out, struct belay_error *err)
{
    size_t n = l->hits.n < l->limit ? l->hits.n : l->limit;
    struct belay_head *heads = arena_zalloc(a, n, sizeof(*heads));

    if (!heads)
        return err_no_memory(err, "a list");
    *out = (struct belay_sessions){ .heads = heads };
    for (size_t i = 0; i < n; i++) {
        if (l->now[i].gone)
            continue;
        if (!take_listed(&l->hits.hit[i], &l->now[i], a, &heads[out->n++]))
            return err_no_memory(err, "a list");
    }
    return l->hits.n > n ? write_cursor(&l->hits.hit[n - 1], a, &out->next_cursor, err)
                         : BELAY_OK;
}

belay_rc session_list(struct space *sp, const char *parent, const char *cursor,
                      size_t limit, struct belay_arena *a, struct belay_sessions *out,
                      struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct listing l = { .children = parent != NULL,
                         .index = bytes_str(SESSION_INDEX),
                         .limit = session_limit(limit, LIST_LIMIT, LIST_LIMIT_MAX) };
    struct scan_cursor after;
    struct belay_sessions list;
    belay_rc rc = parent ? session_check_name(parent, "parent", err) : BELAY_OK;

    if (rc == BELAY_OK && parent &&
        !session_index(&scratch, CHILD_INDEX, bytes_str(parent), &l.index))
        rc = err_no_memory(err, "a list");
    if (rc == BELAY_OK && cursor) {
        rc = read_cursor(cursor, l.index, &after, err);
        l.after = &after;
    }
    if (rc == BELAY_OK)
        rc = txn_run(sp, list_body, &l, &session_reads, &scratch, err);
    if (rc == BELAY_OK)
        rc = take_list(&l, a, &list, err);
    if (rc == BELAY_OK)
        *out = list;
    return rc;
}
