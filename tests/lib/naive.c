#include "naive.h"

#include <stdlib.h>
#include <string.h>

#include "naive_impl.h"
#include "store/wake.h"

struct attempt {
    uint64_t id;
    size_t ns_len;
    uint8_t ns[64];
};

static struct bytes attempt_ns(const struct attempt *a)
{
    return bytes_of(a->ns, a->ns_len);
}

struct record *naive_find_row(struct naive *s, struct bytes ns,
                              const struct row_ref *ref)
{
    for (size_t i = 0; i < s->n; i++) {
        if (naive_is_in(s->records[i], ITEM_ROW, ns, ref->enc))
            return s->records[i];
    }
    return NULL;
}

struct record *naive_find_number(struct naive *s, int kind, struct bytes ns,
                                 struct bytes name, int64_t number)
{
    for (size_t i = 0; i < s->n; i++) {
        if (naive_is_in(s->records[i], kind, ns, name) &&
            s->records[i]->number == number)
            return s->records[i];
    }
    return NULL;
}

struct record *naive_find_any(struct naive *s, int kind, struct bytes ns,
                              struct bytes name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (naive_is_in(s->records[i], kind, ns, name))
            return s->records[i];
    }
    return NULL;
}

/* --- attempts --- */

static belay_rc naive_begin(struct driver *d, void *attempt, struct bytes ns,
                            struct belay_error *err)
{
    struct naive *s = (struct naive *)d;
    struct attempt *a = attempt;

    if (ns.len > sizeof(a->ns))
        return err_set(err, BELAY_MISUSE, "begin: no such namespace");
    memcpy(a->ns, ns.ptr, ns.len);
    a->ns_len = ns.len;
    pthread_mutex_lock(&s->mutex);
    a->id = ++s->last_attempt;
    pthread_mutex_unlock(&s->mutex);
    return BELAY_OK;
}

static void naive_end(struct driver *d, void *attempt)
{
    struct naive *s = (struct naive *)d;
    struct attempt *a = attempt;

    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->n; i++) {
        if (s->records[i]->holder == a->id)
            s->records[i]->holder = 0;
    }
    pthread_mutex_unlock(&s->mutex);
}

/* --- reads --- */

static belay_rc read_row(struct naive *s, struct bytes ns, const struct row_ref *ref,
                         struct belay_arena *arena, const struct row **out,
                         struct belay_error *err)
{
    const struct record *r = naive_find_row(s, ns, ref);

    *out = NULL;
    if (!r)
        return BELAY_OK;
    unsigned n = r->row.type->n_columns;
    struct row *row = arena_zalloc(arena, 1, sizeof(*row));
    struct value *v = arena_zalloc(arena, n, sizeof(*v));
    bool ok = row && v;
    for (unsigned i = 0; i < n && ok; i++) {
        v[i] = r->v[i];
        ok = !naive_has_bytes(&v[i]) || arena_copy(arena, r->v[i].b, &v[i].b);
    }
    if (!ok)
        return err_no_memory(err, "a row");
    *row = (struct row){ .type = r->row.type, .ver = r->row.ver, .v = v };
    *out = row;
    return BELAY_OK;
}

static int by_scan(const void *a, const void *b, void *scan)
{
    const struct record *x = *(struct record *const *)a;
    const struct record *y = *(struct record *const *)b;

    return scan_cmp(scan, x->number, x->member, x->name, y->number, y->member, y->name);
}

static int by_number(const void *a, const void *b, void *unused)
{
    const struct record *x = *(struct record *const *)a;
    const struct record *y = *(struct record *const *)b;

    (void)unused;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool scan_wants(const struct naive *s, const struct attempt *a,
                       const struct read *q, const struct record *r)
{
    const struct scan *scan = q->rank.scan;
    bool in = false;

    for (size_t i = 0; i < scan->n_indexes; i++)
        in |= naive_is_in(r, ITEM_RANK, attempt_ns(a), scan->indexes[i]);
    if (!in || r->number < scan->min_rank || r->number > scan->max_rank)
        return false;
    if (scan->after && scan_cmp(scan, r->number, r->member, r->name, scan->after->rank,
                                scan->after->member, scan->after->index) <= 0)
        return false;
    bool held = r->holder != 0 && r->holder != a->id &&
                r->held_until_us > s->config.clock.mono_us(s->config.clock.arg);
    return !(q->rank.hold && held);
}

static belay_rc fill_hit(struct naive *s, const struct attempt *a,
                         const struct scan *scan, const struct record *r,
                         struct belay_arena *arena, struct hit *out,
                         struct belay_error *err)
{
    out->rank = r->number;
    out->rows = arena_zalloc(arena, scan->n_fetch, sizeof(*out->rows));
    if (!out->rows || !arena_copy(arena, r->name, &out->index) ||
        !arena_copy(arena, r->member, &out->member))
        return err_no_memory(err, "a hit");
    for (size_t i = 0; i < scan->n_fetch; i++) {
        struct row_ref ref;
        belay_rc rc = fetch_ref(&ref, &scan->fetch[i], r->member, arena, err);
        if (!rc)
            rc = read_row(s, attempt_ns(a), &ref, arena, &out->rows[i], err);
        if (rc)
            return rc;
    }
    return BELAY_OK;
}

static belay_rc read_rank(struct naive *s, const struct attempt *a, struct read *q,
                          struct record **found, struct belay_arena *arena,
                          struct belay_error *err)
{
    const struct scan *scan = q->rank.scan;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (scan_wants(s, a, q, s->records[i]))
            found[n++] = s->records[i];
    }
    qsort_r(found, n, sizeof(struct record *), by_scan, (void *)(uintptr_t)scan);
    if (n > scan->limit)
        n = scan->limit;
    struct hit *hit = arena_zalloc(arena, n, sizeof(*hit));
    if (!hit)
        return err_no_memory(err, "hits");
    for (size_t i = 0; i < n; i++) {
        belay_rc rc = fill_hit(s, a, scan, found[i], arena, &hit[i], err);
        if (rc)
            return rc;
        if (!q->rank.hold)
            continue;
        found[i]->holder = a->id;
        found[i]->held_until_us =
            s->config.clock.mono_us(s->config.clock.arg) + HOLD_MAX_US;
    }
    q->rank.out = (struct hits){ .hit = hit, .n = n };
    return BELAY_OK;
}

/* The entries of a log or a feed behind a number, in order; their count. */
static size_t entries_after(struct naive *s, int kind, struct bytes ns,
                            struct bytes name, int64_t after, size_t limit,
                            struct record **found)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (naive_is_in(s->records[i], kind, ns, name) && s->records[i]->number > after)
            found[n++] = s->records[i];
    }
    qsort_r(found, n, sizeof(struct record *), by_number, NULL);
    return n < limit ? n : limit;
}

static belay_rc read_log(struct naive *s, const struct attempt *a, struct read *q,
                         struct record **found, struct belay_arena *arena,
                         struct belay_error *err)
{
    size_t n = entries_after(s, ITEM_LOG, attempt_ns(a), q->log.stream, q->log.after,
                             q->log.limit, found);
    struct log_entry *entry = arena_zalloc(arena, n, sizeof(*entry));

    for (size_t i = 0; i < n && entry; i++) {
        entry[i].seq = found[i]->number;
        if (!arena_copy(arena, found[i]->data, &entry[i].data))
            return err_no_memory(err, "log entries");
    }
    q->log.out = (struct log_entries){ .entry = entry, .n = n };
    return entry ? BELAY_OK : err_no_memory(err, "log entries");
}

static belay_rc read_feed(struct naive *s, const struct attempt *a, struct read *q,
                          struct record **found, struct belay_arena *arena,
                          struct belay_error *err)
{
    size_t n = entries_after(s, ITEM_FEED, attempt_ns(a), q->feed.feed,
                             q->feed.after.major, q->feed.limit, found);
    struct feed_entry *entry = arena_zalloc(arena, n, sizeof(*entry));
    const struct record *trim =
        naive_find_any(s, KIND_TRIM, attempt_ns(a), q->feed.feed);

    for (size_t i = 0; i < n && entry; i++) {
        entry[i].pos.major = found[i]->number;
        if (!arena_copy(arena, found[i]->data, &entry[i].data))
            return err_no_memory(err, "feed entries");
    }
    q->feed.out = (struct feed_entries){ .entry = entry, .n = n };
    q->feed.out.trimmed.major = trim ? trim->number : 0;
    return entry ? BELAY_OK : err_no_memory(err, "feed entries");
}

static belay_rc read_chunk(struct naive *s, const struct attempt *a, struct read *q,
                           struct belay_arena *arena, struct belay_error *err)
{
    const struct record *r = naive_find_number(s, ITEM_CHUNK, attempt_ns(a),
                                               q->chunk.upload, q->chunk.index);

    q->chunk.found = r;
    q->chunk.out = bytes_of(NULL, 0);
    return r && !arena_copy(arena, r->data, &q->chunk.out)
               ? err_no_memory(err, "a chunk")
               : BELAY_OK;
}

static belay_rc answer(struct naive *s, const struct attempt *a, struct read *q,
                       struct record **found, struct belay_arena *arena,
                       struct belay_error *err)
{
    switch (q->kind) {
    case READ_ROW:
        return read_row(s, attempt_ns(a), &q->row.ref, arena, &q->row.out, err);
    case READ_RANK:
        return read_rank(s, a, q, found, arena, err);
    case READ_LOG:
        return read_log(s, a, q, found, arena, err);
    case READ_FEED:
        return read_feed(s, a, q, found, arena, err);
    case READ_CHUNK:
        return read_chunk(s, a, q, arena, err);
    }
    return err_set(err, BELAY_MISUSE, "read: unknown kind of question");
}

static belay_rc naive_read(struct driver *d, void *attempt, struct read *reads,
                           size_t n, struct belay_arena *arena, struct belay_error *err)
{
    struct naive *s = (struct naive *)d;

    pthread_mutex_lock(&s->mutex);
    struct record **found = malloc((s->n + 1) * sizeof(struct record *));
    belay_rc rc = found ? BELAY_OK : err_no_memory(err, "a read");
    for (size_t i = 0; i < n && !rc; i++)
        rc = answer(s, attempt, &reads[i], found, arena, err);
    free(found);
    pthread_mutex_unlock(&s->mutex);
    return rc;
}

static belay_rc naive_commit_locked(struct driver *d, void *attempt,
                                    const struct plan *plan, struct plan_result *result,
                                    struct belay_error *err)
{
    struct naive *s = (struct naive *)d;

    (void)attempt;
    pthread_mutex_lock(&s->mutex);
    belay_rc rc = naive_commit(s, plan, result, err);
    pthread_mutex_unlock(&s->mutex);
    return rc;
}

/* --- walking --- */

static int by_walk(const void *a, const void *b)
{
    const struct record *x = *(struct record *const *)a;
    const struct record *y = *(struct record *const *)b;
    int order = x->kind < y->kind ? -1 : x->kind > y->kind;

    if (order == 0 && x->kind == ITEM_ROW)
        order = strcmp(x->row.type->name, y->row.type->name);
    if (order == 0)
        order = bytes_cmp(x->name, y->name);
    if (order == 0)
        order = x->number < y->number ? -1 : x->number > y->number;
    return order ? order : bytes_cmp(x->member, y->member);
}

static belay_rc walk_sorted(struct record *const *found, size_t n, item_visit *visit,
                            void *arg, struct belay_error *err)
{
    int64_t ordinal = 0;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < n && !rc; i++) {
        const struct record *r = found[i];
        bool same = i > 0 && r->kind == found[i - 1]->kind &&
                    bytes_eq(r->name, found[i - 1]->name);
        struct item item = { .kind = (enum item_kind)r->kind, .number = r->number };
        ordinal = same ? ordinal + 1 : 1;
        if (r->kind == ITEM_FEED)
            item.number = ordinal;
        if (r->kind == ITEM_ROW) {
            item.row = &r->row;
        } else {
            item.name = r->name;
            item.member = r->member;
            item.data = r->data;
        }
        rc = visit(arg, &item, err);
    }
    return rc;
}

static belay_rc naive_walk(struct driver *d, struct bytes ns, item_visit *visit,
                           void *arg, struct belay_error *err)
{
    struct naive *s = (struct naive *)d;
    size_t n = 0;

    pthread_mutex_lock(&s->mutex);
    struct record **found = malloc((s->n + 1) * sizeof(struct record *));
    for (size_t i = 0; i < s->n && found; i++) {
        if (s->records[i]->kind != KIND_TRIM && bytes_eq(s->records[i]->ns, ns))
            found[n++] = s->records[i];
    }
    if (n > 0)
        qsort(found, n, sizeof(struct record *), by_walk);
    belay_rc rc =
        found ? walk_sorted(found, n, visit, arg, err) : err_no_memory(err, "a walk");
    free(found);
    pthread_mutex_unlock(&s->mutex);
    return rc;
}

/* --- the driver --- */

static enum durability naive_durability(struct driver *d)
{
    (void)d;
    return DURABILITY_INLINE;
}

static void naive_close(struct driver *d)
{
    struct naive *s = (struct naive *)d;

    for (size_t i = 0; i < s->n; i++)
        free(s->records[i]);
    free(s->records);
    wake_hub_close(s->d.hub);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static const struct driver_ops naive_ops = {
    .name = "naive",
    .version = DRIVER_VERSION,
    .attempt_size = sizeof(struct attempt),
    .begin = naive_begin,
    .read = naive_read,
    .commit = naive_commit_locked,
    .end = naive_end,
    .walk = naive_walk,
    .durability = naive_durability,
    .close = naive_close,
};

belay_rc naive_open(struct driver **out, const struct driver_config *config,
                    struct belay_error *err)
{
    struct naive *s = calloc(1, sizeof(*s));

    if (!s)
        return err_no_memory(err, "a naive store");
    belay_rc rc = wake_hub_open(&s->d.hub, err);
    if (rc) {
        free(s);
        return rc;
    }
    s->d.ops = &naive_ops;
    s->d.attempt_size = sizeof(struct attempt);
    s->config = *config;
    pthread_mutex_init(&s->mutex, NULL);
    *out = &s->d;
    return BELAY_OK;
}
