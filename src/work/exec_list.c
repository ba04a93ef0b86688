/* Lists of executions, a page at a time, along the index that fits the filter best. */
#include "work/exec_show.h"

/* Entries of one scan, and scans of one page. */
#define SCAN_PAGE 200
#define SCANS_MAX 5
/* Lanes and routes read in one round trip. */
#define ROSTER_PAGE 1000

/* --- which indexes --- */

/* prefix + name, in the arena. */
static bool index_of(const char *prefix, struct bytes name, struct belay_arena *a,
                     struct bytes *out)
{
    size_t len = strlen(prefix);
    uint8_t *text = arena_alloc(a, len + name.len + 1);

    if (!text)
        return false;
    memcpy(text, prefix, len);
    if (name.len > 0)
        memcpy(text + len, name.ptr, name.len);
    text[len + name.len] = 0;
    *out = bytes_of(text, len + name.len);
    return true;
}

/* Everything that stands in some indexes at rank 0, in pages. */
static belay_rc roster(struct txn *t, const struct bytes *indexes, size_t n_indexes,
                       struct hits *out)
{
    struct scan scan = { .indexes = indexes,
                         .n_indexes = n_indexes,
                         .max_rank = RANK_MAX,
                         .limit = ROSTER_PAGE };
    struct scan_cursor after;
    struct hits page;
    size_t cap = 0;

    *out = (struct hits){ .n = 0 };
    do {
        belay_rc rc = txn_scan(t, &scan, &page);
        if (rc)
            return rc;
        if (out->n + page.n > cap) {
            cap = 2 * (out->n + page.n);
            struct hit *more = arena_zalloc(txn_arena(t), cap, sizeof(*more));
            if (!more)
                return err_no_memory(txn_error(t), "a list");
            if (out->n > 0)
                memcpy(more, out->hit, out->n * sizeof(*more));
            out->hit = more;
        }
        if (page.n == 0)
            break;
        memcpy(&out->hit[out->n], page.hit, page.n * sizeof(*page.hit));
        out->n += page.n;
        after = (struct scan_cursor){ .rank = page.hit[page.n - 1].rank,
                                      .member = page.hit[page.n - 1].member,
                                      .index = page.hit[page.n - 1].index };
        scan.after = &after;
    } while (page.n == ROSTER_PAGE);
    return BELAY_OK;
}

belay_rc exec_ready_indexes(struct txn *t, struct bytes lane, struct bytes **out,
                            size_t *out_n)
{
    const struct bytes lane_names = bytes_str(LANE_INDEX);
    struct belay_arena *a = txn_arena(t);
    struct hits lanes = { .n = 1 }, routes;
    belay_rc rc = BELAY_OK;

    *out = NULL;
    *out_n = 0;
    if (lane.len == 0)
        rc = roster(t, &lane_names, 1, &lanes);
    struct bytes *rosters = arena_zalloc(a, lanes.n, sizeof(*rosters));
    if (!rosters)
        return err_no_memory(txn_error(t), "a list");
    for (size_t i = 0; i < lanes.n && rc == BELAY_OK; i++) {
        if (!index_of(ROUTE_INDEX, lane.len > 0 ? lane : lanes.hit[i].member, a,
                      &rosters[i]))
            rc = err_no_memory(txn_error(t), "a list");
    }
    if (rc == BELAY_OK)
        rc = roster(t, rosters, lanes.n, &routes);
    if (rc)
        return rc;
    struct bytes *all = arena_zalloc(a, routes.n, sizeof(*all));
    if (!all)
        return err_no_memory(txn_error(t), "a list");
    for (size_t i = 0; i < routes.n; i++) {
        struct bytes name = routes.hit[i].index;
        size_t prefix = strlen(ROUTE_INDEX);
        if (!lane_index(bytes_of(name.ptr + prefix, name.len - prefix),
                        routes.hit[i].member, a, &all[i]))
            return err_no_memory(txn_error(t), "a list");
    }
    *out = all;
    *out_n = routes.n;
    return BELAY_OK;
}

/* What a filter is looked up by. */
struct source {
    struct bytes *indexes;
    size_t n;
    bool by_age; /* newest first; ranks are times of creation */
    bool exact;  /* what stands there matches, unless more is asked */
};

struct listing {
    const struct belay_execution_filter *filter;
    const char *ns;
    struct source source;
    struct belay_arena *out_arena;
    struct arena_mark mark; /* of out_arena, where a run begins */
    struct belay_execution *items;
    size_t n, room;
    size_t asked; /* entries in one scan */
    struct scan_cursor at;
    bool begun; /* `at` is set */

    /* Of one run of the body. */
    size_t found; /* of this scan */
    struct hits hits;
    size_t looked; /* at so many of them */
};

static belay_rc waiting_source(struct txn *t, struct listing *l)
{
    struct bytes lane = l->filter->lane ? bytes_str(l->filter->lane) : bytes_of("", 0);
    struct bytes *ready;
    size_t n;
    belay_rc rc = exec_ready_indexes(t, lane, &ready, &n);
    if (rc)
        return rc;

    struct bytes *all = arena_zalloc(txn_arena(t), n + 2, sizeof(*all));
    if (!all)
        return err_no_memory(txn_error(t), "a list");
    if (n > 0)
        memcpy(all, ready, n * sizeof(*all));
    all[n] = bytes_str(GRANTED_INDEX);
    all[n + 1] = bytes_str(HELD_INDEX "waiting");
    l->source = (struct source){ .indexes = all, .n = n + 2 };
    return BELAY_OK;
}

static bool is_state(int32_t state, int32_t from, int32_t to)
{
    return state >= from && state <= to;
}

/* The outcome of a terminal state: both enums have the same order. */
static const char *outcome_of(int32_t state)
{
    return vector_name(BELAY_DIM_OUTCOME,
                       state - BELAY_STATE_COMPLETED + BELAY_TERMINAL_SUCCESS);
}

static bool tag_name(const struct belay_execution_filter *f, struct belay_arena *a,
                     struct bytes *out)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };

    buf_printf(&text, "%s=%s", f->tag_key, f->tag_value);
    return !text.failed && index_of(TAG_INDEX, buf_view(&text), a, out);
}

static belay_rc source_body(struct txn *t, void *arg)
{
    struct listing *l = arg;
    const struct belay_execution_filter *f = l->filter;
    struct belay_arena *a = txn_arena(t);
    struct bytes *one = arena_zalloc(a, 2, sizeof(*one));
    bool ok = one != NULL;

    if (!ok)
        return err_no_memory(txn_error(t), "a list");
    l->source = (struct source){ .indexes = one, .n = 1, .exact = true };
    if (f->state == BELAY_STATE_WAITING)
        return waiting_source(t, l);
    if (is_state(f->state, BELAY_STATE_COMPLETED, BELAY_STATE_SKIPPED)) {
        ok = index_of(DONE_INDEX, bytes_str(outcome_of(f->state)), a, &one[0]);
    } else if (f->state == BELAY_STATE_DELAYED) {
        one[0] = bytes_str(DELAYED_INDEX);
    } else if (f->state == BELAY_STATE_ACTIVE) {
        one[0] = bytes_str(LEASED_INDEX);
        one[1] = bytes_str(LOST_INDEX);
        l->source.n = 2;
    } else if (f->state != BELAY_STATE_ANY) {
        ok = index_of(HELD_INDEX, bytes_str(vector_name(BELAY_DIM_STATE, f->state)), a,
                      &one[0]);
    } else if (f->tag_key) {
        l->source.by_age = true;
        ok = tag_name(f, a, &one[0]);
    } else {
        l->source.by_age = true;
        one[0] = bytes_str(EXECUTION_INDEX);
    }
    return ok ? BELAY_OK : err_no_memory(txn_error(t), "a list");
}

/* --- one scan --- */

static bool matches(const struct belay_execution_filter *f,
                    const struct belay_execution *e)
{
    if (f->state != BELAY_STATE_ANY && e->state != f->state)
        return false;
    if (f->lane && strcmp(e->lane, f->lane) != 0)
        return false;
    if (f->flow && (!e->flow || strcmp(e->flow, f->flow) != 0))
        return false;
    if ((f->created_from_ms > 0 && e->created_at_ms < f->created_from_ms) ||
        (f->created_to_ms > 0 && e->created_at_ms > f->created_to_ms))
        return false;
    if (!f->tag_key)
        return true;
    for (size_t i = 0; i < e->n_tags; i++) {
        if (strcmp(e->tags[i].key, f->tag_key) == 0)
            return strcmp(e->tags[i].value, f->tag_value) == 0;
    }
    return false;
}

/* Takes up one entry, or leaves no trace of it. */
static belay_rc consider(struct txn *t, struct listing *l, const struct hit *hit)
{
    struct belay_execution *item = &l->items[l->n + l->found];
    struct arena_mark mark = arena_mark(l->out_arena);
    const struct exec_parts parts = { .spec = hit->rows[1] };
    struct exec e;

    if (!hit->rows[0])
        return exec_missing(t, hit->index, hit->member);
    belay_rc rc = exec_of(t, hit->rows[0], &e);
    if (rc == BELAY_OK)
        rc = exec_decode(t, &e, &parts, l->ns, l->out_arena, item);
    if (rc)
        return rc;
    if (matches(l->filter, item))
        l->found++;
    else
        arena_rewind(l->out_arena, mark);
    return BELAY_OK;
}

static belay_rc scan_body(struct txn *t, void *arg)
{
    struct listing *l = arg;
    const struct belay_execution_filter *f = l->filter;
    const struct fetch fetch[] = { { &row_execution, NULL },
                                   { &row_execution_spec, NULL } };
    struct scan scan = { .indexes = l->source.indexes,
                         .n_indexes = l->source.n,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .after = l->begun ? &l->at : NULL,
                         .descending = l->source.by_age,
                         .limit = l->asked,
                         .fetch = fetch,
                         .n_fetch = COUNT_OF(fetch) };

    arena_rewind(l->out_arena, l->mark);
    l->found = l->looked = 0;
    if (l->source.by_age && f->created_from_ms > 0)
        scan.min_rank = f->created_from_ms;
    if (l->source.by_age && f->created_to_ms > 0)
        scan.max_rank = f->created_to_ms;
    belay_rc rc = txn_scan(t, &scan, &l->hits);
    while (rc == BELAY_OK && l->looked < l->hits.n && l->n + l->found < l->room)
        rc = consider(t, l, &l->hits.hit[l->looked++]);
    return rc;
}

/* --- a page --- */

/* Nothing but the index decides, so that no more is fetched than is shown. */
static bool is_exact(const struct listing *l)
{
    const struct belay_execution_filter *f = l->filter;
    bool by_tag = f->state == BELAY_STATE_ANY && f->tag_key;

    return l->source.exact && !f->lane && !f->flow && (!f->tag_key || by_tag) &&
           (l->source.by_age || (f->created_from_ms <= 0 && f->created_to_ms <= 0));
}

/* One scan in a transaction of its own: one question, which nobody's change disturbs. */
static belay_rc list_part(struct space *sp, struct listing *l, struct belay_arena *keep,
                          bool *out_more, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { .first = NULL };
    size_t room = l->room - l->n;

    l->mark = arena_mark(l->out_arena);
    /* One more than there is room for tells whether there is more. */
    l->asked = is_exact(l) && room < SCAN_PAGE ? room + 1 : SCAN_PAGE;
    belay_rc rc = txn_run(sp, scan_body, l, &look_only, &scratch, err);
    if (rc)
        return rc;
    l->n += l->found;
    *out_more = l->looked < l->hits.n || l->hits.n == l->asked;
    if (l->looked == 0)
        return BELAY_OK;
    const struct hit *last = &l->hits.hit[l->looked - 1];
    l->at.rank = last->rank;
    l->begun = true;
    if (!arena_copy(keep, last->member, &l->at.member) ||
        !arena_copy(keep, last->index, &l->at.index))
        return err_no_memory(err, "a list");
    return BELAY_OK;
}

static belay_rc take_cursor(struct listing *l, struct belay_arena *keep,
                            struct belay_error *err)
{
    belay_rc rc = list_cursor_read(l->filter->cursor, keep, &l->at, err);

    if (rc)
        return rc;
    l->begun = true;
    for (size_t i = 0; i < l->source.n; i++) {
        if (bytes_eq(l->source.indexes[i], l->at.index))
            return BELAY_OK;
    }
    return err_reason(err, BELAY_INVALID, "cursor", "cursor: is of another list");
}

static belay_rc check_filter(const struct belay_execution_filter *f,
                             struct belay_error *err)
{
    if (f->state != BELAY_STATE_ANY && !vector_name(BELAY_DIM_STATE, f->state))
        return err_reason(err, BELAY_INVALID, "state", "state: %d is none",
                          (int)f->state);
    if (!f->tag_key != !f->tag_value)
        return err_reason(err, BELAY_INVALID, "tag",
                          "tag: a key and a value are needed");
    if (f->tag_key &&
        strlen(f->tag_key) + strlen(f->tag_value) + sizeof(TAG_INDEX "=") >
            SCHEMA_NAME_MAX)
        return err_reason(err, BELAY_INVALID, "tag", "tag: is too long");
    return f->lane ? lane_check(f->lane, err) : BELAY_OK;
}

static belay_rc list_page(struct space *sp, struct listing *l,
                          struct belay_executions *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena keep = { .first = NULL };
    bool more = true;
    belay_rc rc = txn_run(sp, source_body, l, &look_only, &keep, err);

    if (rc == BELAY_OK && l->filter->cursor)
        rc = take_cursor(l, &keep, err);
    for (unsigned i = 0; i < SCANS_MAX && rc == BELAY_OK && more && l->n < l->room; i++)
        rc = list_part(sp, l, &keep, &more, err);
    if (rc)
        return rc;
    *out = (struct belay_executions){ .items = l->items, .n = l->n };
    if (more && !list_cursor_write(&l->at, l->out_arena, &out->next_cursor))
        return err_no_memory(err, "a list");
    return BELAY_OK;
}

belay_rc exec_list(const struct exec_site *site,
                   const struct belay_execution_filter *filter, struct belay_arena *a,
                   struct belay_executions *out, struct belay_error *err)
{
    struct listing l = { .filter = filter, .out_arena = a };
    struct belay_executions page;
    belay_rc rc = look_limit(filter->limit, &l.room, err);

    if (rc == BELAY_OK)
        rc = check_filter(filter, err);
    if (rc)
        return rc;
    l.items = arena_zalloc(a, l.room, sizeof(*l.items));
    if (!l.items || !show_text(a, space_name(site->space), &l.ns))
        return err_no_memory(err, "a list");
    rc = list_page(site->space, &l, &page, err);
    if (rc == BELAY_OK)
        *out = page;
    return rc;
}
