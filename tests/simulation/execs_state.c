/* What a walk of the namespace shows, as plain arrays. */
#include "execs.h"

#include <stdio.h>

static uint64_t column(const struct row *r, unsigned i)
{
    return xtext(row_bytes(r, i));
}

struct reading {
    struct execs *w;
    struct xstate *st;
};

static bool is_full(struct reading *g, size_t n, size_t max)
{
    if (n < max)
        return false;
    g->st->fault = "model: too many rows";
    return true;
}

/* --- rows --- */

/* Of these a 0 need not be stored. */
static bool is_counted(unsigned column)
{
    return column == EXEC_ATTEMPTS || column == EXEC_RETRIES ||
           column == EXEC_RECLAIMS || column == EXEC_REPLAYS ||
           column == EXEC_PRIORITY || column == EXEC_LEASE + LEASE_FENCE;
}

static int64_t value_in(const struct row *r, unsigned i)
{
    const struct value *v = &r->v[i];

    if (v->kind == VALUE_NULL)
        return is_counted(i) ? 0 : XNULL;
    if (v->kind == VALUE_I64)
        return v->i;
    int64_t word = xword(i, v->b);
    return word == -2 ? (int64_t)xtext(v->b) : word;
}

static void read_execution(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;
    struct bytes id = row_bytes(r, EXEC_ID), lane = row_bytes(r, EXEC_LANE),
                 route = row_bytes(r, EXEC_ROUTE);
    char text[128];

    if (is_full(g, st->n_rows, X_ROWS))
        return;
    struct xrow *x = &st->row[st->n_rows++];
    *x = (struct xrow){ .id = xtext(id), .ver = r->ver };
    (void)snprintf(x->name, sizeof(x->name), "%.*s", (int)id.len, (const char *)id.ptr);
    for (unsigned i = 1; i < EXEC_COLUMNS; i++)
        x->v[i] = value_in(r, i);
    (void)snprintf(text, sizeof(text), "lane/%.*s/%.*s", (int)lane.len,
                   (const char *)lane.ptr, (int)route.len, (const char *)route.ptr);
    x->ready = xstr(text);
}

static struct xrow *own(struct reading *g, uint64_t id)
{
    struct xrow *x = xrow_at(g->st, id);

    if (!x)
        g->st->fault = "W1: something of an execution is there that is not";
    return x;
}

static void read_spec(struct reading *g, const struct row *r)
{
    struct xrow *x = own(g, column(r, SPEC_ID));

    if (!x)
        return;
    x->specs++;
    x->spec_ver = r->ver;
    x->requires = column(r, SPEC_REQUIRES);
    x->tags = column(r, SPEC_TAGS);
    x->key = column(r, SPEC_KEY);
    x->kind = column(r, SPEC_KIND);
}

static void read_end(struct reading *g, const struct row *r)
{
    struct xrow *x = own(g, column(r, END_ID));

    if (!x)
        return;
    x->ends++;
    x->end_ver = r->ver;
    x->end_fence = row_i64(r, END_FENCE, -1);
    x->end_class = column(r, END_FAILURE_CLASS);
}

static void read_progress(struct reading *g, const struct row *r)
{
    struct xrow *x = own(g, column(r, PROGRESS_ID));

    if (!x)
        return;
    x->progresses++;
    x->progress_ver = r->ver;
    x->progress_fence = row_i64(r, PROGRESS_FENCE, -1);
}

static void read_attempt(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;
    uint64_t whole = 0;

    if (is_full(g, st->n_attempts, X_ATTEMPTS))
        return;
    for (unsigned i = 0; i < ATTEMPT_COLUMNS; i++)
        whole = mix(whole, (uint64_t)value_in(r, i));
    st->attempt[st->n_attempts++] =
        (struct xattempt){ .execution = column(r, ATTEMPT_EXECUTION),
                           .id = column(r, ATTEMPT_ID),
                           .type = column(r, ATTEMPT_TYPE),
                           .end = column(r, ATTEMPT_END),
                           .worker = column(r, ATTEMPT_WORKER),
                           .index = row_i64(r, ATTEMPT_INDEX, -1),
                           .fence = row_i64(r, ATTEMPT_FENCE, -1),
                           .started_ms = row_i64(r, ATTEMPT_STARTED_AT_MS, XNULL),
                           .ended_ms = row_i64(r, ATTEMPT_ENDED_AT_MS, XNULL),
                           .whole = whole };
}

static void read_head(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;
    struct bytes id = row_bytes(r, FRAME_HEAD_EXECUTION);
    char text[128];

    if (is_full(g, st->n_heads, X_HEADS) || !own(g, xtext(id)))
        return;
    (void)snprintf(text, sizeof(text), "frames/%.*s/%lld", (int)id.len,
                   (const char *)id.ptr, (long long)row_i64(r, FRAME_HEAD_ATTEMPT, -1));
    st->head[st->n_heads++] =
        (struct xhead){ .execution = xtext(id),
                        .stream = xstr(text),
                        .attempt = row_i64(r, FRAME_HEAD_ATTEMPT, -1),
                        .last = row_i64(r, FRAME_HEAD_LAST_SEQ, -1),
                        .first = row_i64(r, FRAME_HEAD_FIRST_SEQ, -1),
                        .caller = row_i64(r, FRAME_HEAD_CALLER_SEQ, 0) };
}

static void read_key(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;

    if (!is_full(g, st->n_keys, X_KEYS))
        st->key[st->n_keys++] =
            (struct xkey){ .key = column(r, EXEC_KEY_KEY),
                           .execution = column(r, EXEC_KEY_EXECUTION),
                           .hash = column(r, EXEC_KEY_HASH),
                           .until_ms = row_i64(r, EXEC_KEY_UNTIL_MS, -1) };
}

static void read_grant(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;

    if (!is_full(g, st->n_grants, X_ROWS))
        st->grant[st->n_grants++] =
            (struct xgrant){ .id = column(r, GRANT_ID),
                             .execution = column(r, GRANT_EXECUTION),
                             .worker = column(r, GRANT_WORKER),
                             .until_ms = row_i64(r, GRANT_UNTIL_MS, -1) };
}

static void read_route(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;

    if (!is_full(g, st->n_routes, X_ROUTES))
        st->route[st->n_routes++] =
            (struct xroute){ .lane = column(r, ROUTE_LANE),
                             .route = column(r, ROUTE_ROUTE),
                             .requires = column(r, ROUTE_REQUIRES) };
}

static void read_batch(struct reading *g, const struct row *r)
{
    struct xstate *st = g->st;

    if (!is_full(g, st->n_batches, X_BATCHES))
        st->batch[st->n_batches++] =
            (struct xbatch){ .session = column(r, BATCH_SESSION),
                             .source = column(r, BATCH_SOURCE_KEY),
                             .seq = row_i64(r, BATCH_SEQ, -1),
                             .ver = r->ver };
}

static void read_epoch(struct reading *g, const struct row *r)
{
    g->st->epoch = row_i64(r, EPOCH_EPOCH, 0);
}

static const struct {
    const struct row_type *type;
    void (*read)(struct reading *g, const struct row *r);
} readers[] = {
    { &row_execution, read_execution }, /* before what is looked up by it */
    { &row_execution_spec, read_spec },
    { &row_execution_end, read_end },
    { &row_execution_progress, read_progress },
    { &row_attempt, read_attempt },
    { &row_frame_head, read_head },
    { &row_execution_key, read_key },
    { &row_execution_grant, read_grant },
    { &row_route, read_route },
    { &row_batch, read_batch },
    { &row_epoch, read_epoch },
};

/* --- indexes --- */

static bool begins(struct bytes name, const char *prefix)
{
    size_t len = strlen(prefix);

    return name.len >= len && memcmp(name.ptr, prefix, len) == 0;
}

static void note(struct xrank *at, const struct item *item)
{
    at->n++;
    at->index = xtext(item->name);
    at->rank = item->number;
}

/* A bit for each tag under which it stands: tag/k<n>=v<n>. */
static void read_tag(struct xrow *x, const struct item *item)
{
    const uint8_t *at = item->name.ptr;
    bool known = item->name.len == 9 && at[5] - '0' < X_TAGS && at[8] - '0' < 4;

    if (known)
        x->tag_ranks |= 1U << ((at[5] - '0') * 4 + (at[8] - '0'));
    x->tag_ranks_wrong += !known || item->number != x->v[EXEC_CREATED_AT_MS];
}

static void read_rank(struct reading *g, const struct item *item)
{
    static const char *const places[] = { "lane/",   "delayed", "leased",
                                          "granted", "held/",   "done/" };
    struct bytes name = item->name;
    bool place = false;

    for (size_t i = 0; i < COUNT_OF(places); i++)
        place |= begins(name, places[i]);
    if (begins(name, "routes/")) {
        uint64_t lane = xtext(bytes_of(name.ptr + 7, name.len - 7));
        for (size_t i = 0; i < g->st->n_routes; i++) {
            struct xroute *r = &g->st->route[i];
            r->listed += r->lane == lane && r->route == xtext(item->member);
        }
    } else if (bytes_eq(name, bytes_str("execution_keys"))) {
        struct xkey *k = xkey_at(g->st, xtext(item->member));
        if (k)
            note(&k->rank, item);
        else
            g->st->fault = "keys: one is listed that is not there";
    } else if (place || begins(name, "tag/") || bytes_eq(name, bytes_str("lost")) ||
               bytes_eq(name, bytes_str("deadlines")) ||
               bytes_eq(name, bytes_str("executions"))) {
        struct xrow *x = own(g, xtext(item->member));
        if (!x)
            return;
        if (begins(name, "tag/"))
            read_tag(x, item);
        else
            note(place                                     ? &x->place
                 : bytes_eq(name, bytes_str("lost"))       ? &x->lost
                 : bytes_eq(name, bytes_str("executions")) ? &x->listed
                                                           : &x->deadline,
                 item);
    }
}

/* --- logs --- */

static void read_log(struct reading *g, const struct item *item)
{
    if (!begins(item->name, "frames/"))
        return;
    uint64_t stream = xtext(item->name);
    for (size_t i = 0; i < g->st->n_heads; i++) {
        struct xhead *h = &g->st->head[i];
        if (h->stream != stream)
            continue;
        if (h->logs > 0 && item->number != h->last_log + 1)
            g->st->fault = "frames: a gap";
        h->logs++;
        h->last_log = item->number;
        return;
    }
    g->st->fault = "frames: some without a head";
}

/* --- all of it --- */

static belay_rc read_item(void *arg, const struct item *item, struct belay_error *err)
{
    struct reading *g = arg;

    (void)err;
    switch (item->kind) {
    case ITEM_ROW:
        for (size_t i = 0; i < COUNT_OF(readers); i++) {
            if (readers[i].type == item->row->type)
                readers[i].read(g, item->row);
        }
        break;
    case ITEM_RANK:
        read_rank(g, item);
        break;
    case ITEM_LOG:
        read_log(g, item);
        break;
    case ITEM_FEED:
        xfeed_read(g->w, g->st, item);
        break;
    case ITEM_CHUNK:
        break;
    }
    return BELAY_OK;
}

void xstate_clear(struct xstate *st)
{
    st->epoch = 0;
    st->n_rows = st->n_attempts = st->n_heads = st->n_keys = st->n_grants = 0;
    st->n_routes = st->n_batches = st->n_feed = 0;
    st->fault = NULL;
}

void xstate_read(struct execs *w, struct xstate *st)
{
    struct reading g = { .w = w, .st = st };
    struct belay_error err;

    xstate_clear(st);
    w->n_events = 0;
    if (driver_walk(w->s->memory, execs_space(), read_item, &g, &err))
        st->fault = "model: a walk failed";
}
