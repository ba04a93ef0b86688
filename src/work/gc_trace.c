/* What names blobs: heads, their manifests, frames, pins, executions; and walking an
 * index. */
#include "work/checkpoint.h"
#include "work/gc_impl.h"

#define SESSIONS_PAGE 64
#define PINS_PAGE 1024
#define EXECUTIONS_PAGE 128 /* their payloads come along */
/* How often a head may move while its manifest is looked for. */
#define HEAD_TRIES 8

/* --- walking an index --- */

static belay_rc page_body(struct txn *t, void *arg)
{
    struct gc_walk *w = arg;
    struct bytes index = bytes_str(w->index);
    struct scan_cursor after = { .rank = w->rank,
                                 .member = bytes_of(w->member, w->member_len),
                                 .index = index };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = w->max_rank,
                         .after = w->begun ? &after : NULL,
                         .limit = w->limit,
                         .fetch = w->fetch,
                         .n_fetch = w->n_fetch };

    return txn_scan(t, &scan, &w->hits);
}

belay_rc gc_next(struct gc *g, struct gc_walk *w, struct belay_error *err)
{
    belay_rc rc = gc_goes_on(g, err);

    w->hits = (struct hits){ .hit = NULL };
    arena_reset(&g->page);
    if (rc == BELAY_OK)
        rc = txn_run(g->sp, page_body, w, &g->reading, &g->page, err);
    if (rc) {
        w->hits = (struct hits){ .hit = NULL };
        return rc;
    }
    w->done = w->hits.n < w->limit;
    if (w->hits.n == 0)
        return BELAY_OK;
    const struct hit *last = &w->hits.hit[w->hits.n - 1];
    memcpy(w->member, last->member.ptr, last->member.len);
    w->member_len = last->member.len;
    w->rank = last->rank;
    w->begun = true;
    return BELAY_OK;
}

/* --- refusing --- */

enum refusal {
    BAD_HEAD,
    BAD_MANIFEST,
    NO_MANIFEST,
    BAD_FRAMES,
    BAD_PIN,
    BAD_EXECUTION
};

/* It cannot be proved what is alive, so nothing goes (S5): unknown is not empty. */
static belay_rc refuse(struct gc *g, enum refusal what, struct bytes entity,
                       const char *why, struct belay_error *err)
{
    static const struct {
        const char *reason, *noun;
    } refusals[] = {
        [BAD_HEAD] = { "corrupt_head", "session" },
        [BAD_MANIFEST] = { "corrupt_manifest", "session" },
        [NO_MANIFEST] = { "missing_manifest", "session" },
        [BAD_FRAMES] = { "corrupt_frames", "session" },
        [BAD_PIN] = { "corrupt_pin", "pin" },
        [BAD_EXECUTION] = { "corrupt_execution", "execution" },
    };
    struct belay_error e;

    (void)err_reason(&e, BELAY_CORRUPT, refusals[what].reason, "%s %.*s: %s",
                     refusals[what].noun, (int)entity.len, (const char *)entity.ptr,
                     why);
    err_entity(&e, entity);
    g->refused = true;
    *err = e;
    return BELAY_CORRUPT;
}

static void mark(struct gc *g, struct bytes name)
{
    struct gc_candidate *c = gc_find(g, name);

    if (c)
        c->marked = true;
}

/* --- heads --- */

/* Marks what the head's columns name.  *out_live: it is a root. */
static belay_rc mark_head(struct gc *g, struct bytes id, const struct row *row,
                          bool *out_live, struct belay_error *err)
{
    static const unsigned refs[] = { SESSION_CHECKPOINT, SESSION_TOOL_REF,
                                     SESSION_PLUGIN_REF, SESSION_EXECUTION_REF };

    *out_live = false;
    if (!row)
        return refuse(g, BAD_HEAD, id, "is listed and has no row", err);
    struct bytes state = row_bytes(row, SESSION_STATE);
    if (bytes_eq(state, bytes_str(SESSION_DELETING)) ||
        bytes_eq(state, bytes_str(SESSION_DELETED)))
        return BELAY_OK;
    if (!bytes_eq(state, bytes_str(SESSION_ACTIVE)))
        return refuse(g, BAD_HEAD, id, "is in no state that is known", err);
    if (row_i64(row, SESSION_REVISION, -1) < 0)
        return refuse(g, BAD_HEAD, id, "has no revision", err);
    for (size_t i = 0; i < COUNT_OF(refs); i++) {
        if (row->v[refs[i]].kind == VALUE_NULL)
            continue;
        if (!blob_is_name(row_bytes(row, refs[i])))
            return refuse(g, BAD_HEAD, id, "a ref of its head is no sha256", err);
        mark(g, row_bytes(row, refs[i]));
    }
    *out_live = true;
    return BELAY_OK;
}

/* not_found: it is not there, which is for the caller to judge. */
static belay_rc mark_manifest(struct gc *g, struct bytes id, struct bytes ref,
                              struct belay_error *err)
{
    char name[SHA256_HEX_LEN + 1] = { 0 };
    struct manifest m;

    memcpy(name, ref.ptr, SHA256_HEX_LEN);
    arena_reset(&g->values);
    belay_rc rc = manifest_load(g->sp, name, &g->values, &m, err);
    if (rc == BELAY_CORRUPT)
        return refuse(g, BAD_MANIFEST, id, err->message, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < PART_MANIFEST; i++) {
        if (m.ref[i].len > 0)
            mark(g, m.ref[i]);
    }
    return BELAY_OK;
}

struct look {
    struct bytes id;
    const struct row *row;
};

static belay_rc look_body(struct txn *t, void *arg)
{
    struct look *l = arg;
    struct value key = value_text(l->id);

    return txn_get(t, &row_session, &key, &l->row);
}

static bool is_same_head(const struct row *a, const struct row *b)
{
    return a && value_eq(&a->v[SESSION_CHECKPOINT], &b->v[SESSION_CHECKPOINT]) &&
           value_eq(&a->v[SESSION_STATE], &b->v[SESSION_STATE]);
}

/* A manifest that is not there may belong to a head that has moved, or to a session
 * that was deleted, since it was read, beside another collection.  Only otherwise the
 * manifest is missing. */
static belay_rc trace_head(struct gc *g, struct bytes id, const struct row *row,
                           bool *out_live, struct belay_error *err)
{
    for (int i = 0; i < HEAD_TRIES; i++) {
        struct look look = { .id = id };
        belay_rc rc = mark_head(g, id, row, out_live, err);
        if (rc || !*out_live || row->v[SESSION_CHECKPOINT].kind == VALUE_NULL)
            return rc;
        rc = mark_manifest(g, id, row_bytes(row, SESSION_CHECKPOINT), err);
        if (rc == BELAY_OK)
            g->report->roots++;
        if (rc != BELAY_NOT_FOUND)
            return rc;
        rc = txn_run(g->sp, look_body, &look, &g->reading, &g->item, err);
        if (rc)
            return rc;
        if (is_same_head(look.row, row))
            return refuse(g, NO_MANIFEST, id, "its manifest is missing", err);
        row = look.row;
    }
    return err_set(err, BELAY_CONTENTION, "gc: a head moved %d times", HEAD_TRIES);
}

/* --- frames --- */

static belay_rc trace_frames(struct gc *g, struct bytes id, const struct row *row,
                             struct belay_error *err)
{
    const char *const *refs;
    size_t n = 0;

    if (!row || row->v[FRAMES_FRAMES].kind == VALUE_NULL)
        return BELAY_OK;
    belay_rc rc = frames_refs(row_bytes(row, FRAMES_FRAMES), &g->item, &refs, &n, err);
    if (rc == BELAY_CORRUPT)
        return refuse(g, BAD_FRAMES, id, err->message, err);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        mark(g, bytes_str(refs[i]));
        g->report->roots++;
    }
    return rc;
}

/* --- all of it --- */

/* Damage below the rows is a refusal, too. */
static belay_rc next(struct gc *g, struct gc_walk *w, enum refusal what,
                     struct belay_error *err)
{
    belay_rc rc = gc_next(g, w, err);

    if (rc == BELAY_CORRUPT)
        return refuse(g, what, bytes_str(w->index), err->message, err);
    return rc;
}

static belay_rc trace_session(struct gc *g, const struct hit *hit,
                              struct belay_error *err)
{
    bool live = false;
    belay_rc rc = gc_goes_on(g, err);

    arena_reset(&g->item);
    if (rc == BELAY_OK)
        rc = trace_head(g, hit->member, hit->rows[0], &live, err);
    if (rc || !live)
        return rc;
    return trace_frames(g, hit->member, hit->rows[1], err);
}

static belay_rc trace_sessions(struct gc *g, struct belay_error *err)
{
    static const struct fetch fetch[] = { { .type = &row_session },
                                          { .type = &row_session_frames } };
    struct gc_walk w = { .index = SESSION_INDEX,
                         .max_rank = RANK_MAX,
                         .limit = SESSIONS_PAGE,
                         .fetch = fetch,
                         .n_fetch = COUNT_OF(fetch) };
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && !w.done) {
        rc = next(g, &w, BAD_HEAD, err);
        for (size_t i = 0; i < w.hits.n && rc == BELAY_OK; i++)
            rc = trace_session(g, &w.hits.hit[i], err);
    }
    return rc;
}

static belay_rc trace_pin(struct gc *g, const struct hit *hit, struct belay_error *err)
{
    const struct row *row = hit->rows[0];

    if (!row)
        return refuse(g, BAD_PIN, hit->member, "is listed and has no row", err);
    if (!blob_is_name(row_bytes(row, PIN_SHA256)))
        return refuse(g, BAD_PIN, hit->member, "what it keeps is no sha256", err);
    mark(g, row_bytes(row, PIN_SHA256));
    g->report->roots++;
    return BELAY_OK;
}

static belay_rc trace_pins(struct gc *g, struct belay_error *err)
{
    static const struct fetch fetch = { .type = &row_pin };
    struct gc_walk w = { .index = PIN_INDEX,
                         .max_rank = RANK_MAX,
                         .limit = PINS_PAGE,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && !w.done) {
        rc = next(g, &w, BAD_PIN, err);
        for (size_t i = 0; i < w.hits.n && rc == BELAY_OK; i++)
            rc = trace_pin(g, &w.hits.hit[i], err);
    }
    return rc;
}

/* --- executions --- */

static belay_rc mark_column(struct gc *g, struct bytes id, const struct row *row,
                            unsigned column, struct belay_error *err)
{
    if (row->v[column].kind == VALUE_NULL)
        return BELAY_OK;
    if (!blob_is_name(row_bytes(row, column)))
        return refuse(g, BAD_EXECUTION, id, "what it names is no sha256", err);
    mark(g, row_bytes(row, column));
    g->report->roots++;
    return BELAY_OK;
}

/* What was submitted, and what came of it. */
static belay_rc trace_execution(struct gc *g, const struct hit *hit,
                                struct belay_error *err)
{
    const struct row *spec = hit->rows[0], *end = hit->rows[1];

    if (!spec)
        return refuse(g, BAD_EXECUTION, hit->member, "is listed and has no row", err);
    belay_rc rc = mark_column(g, hit->member, spec, SPEC_PAYLOAD_BLOB, err);
    if (rc || !end)
        return rc;
    return mark_column(g, hit->member, end, END_RESULT_BLOB, err);
}

static belay_rc trace_executions(struct gc *g, struct belay_error *err)
{
    static const struct fetch fetch[] = { { .type = &row_execution_spec },
                                          { .type = &row_execution_end } };
    struct gc_walk w = { .index = EXECUTION_INDEX,
                         .max_rank = RANK_MAX,
                         .limit = EXECUTIONS_PAGE,
                         .fetch = fetch,
                         .n_fetch = COUNT_OF(fetch) };
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && !w.done) {
        rc = next(g, &w, BAD_EXECUTION, err);
        for (size_t i = 0; i < w.hits.n && rc == BELAY_OK; i++)
            rc = trace_execution(g, &w.hits.hit[i], err);
    }
    return rc;
}

belay_rc gc_trace(struct gc *g, struct belay_error *err)
{
    g->report->roots = 0; /* of the last trace */
    belay_rc rc = trace_sessions(g, err);
    if (rc == BELAY_OK)
        rc = trace_pins(g, err);
    return rc ? rc : trace_executions(g, err);
}
