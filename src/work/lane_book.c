/* The book of lanes: which routes each has, as it was read last.
 *
 * A lane is known with all its routes or not at all.  Lanes that nothing was ever submitted
 * to are known, too, with none: a worker that waits for them asks once. */
#include <pthread.h>
#include <stdlib.h>

#include "work/lanes.h"

#define BOOK_LANES_MAX 4096 /* then it begins anew: anybody can ask for any lane */
#define PAGE ((size_t)16384)

struct route {
    struct route *next;
    size_t name_len, requires_len;
    char text[]; /* name, requires */
};

struct known_lane {
    struct known_lane *next;
    struct route *routes;
    size_t n_routes;
    size_t name_len;
    char name[];
};

struct lane_book {
    pthread_mutex_t mutex;
    struct known_lane *lanes;
    size_t n;
};

static struct bytes lane_name(const struct known_lane *l)
{
    return bytes_of(l->name, l->name_len);
}

static struct bytes route_name(const struct route *r)
{
    return bytes_of(r->text, r->name_len);
}

static struct bytes route_requires(const struct route *r)
{
    return bytes_of(r->text + r->name_len, r->requires_len);
}

static void free_lane(struct known_lane *l)
{
    for (struct route *r = l ? l->routes : NULL, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    free(l);
}

static void free_lanes(struct known_lane *l)
{
    for (struct known_lane *next; l; l = next) {
        next = l->next;
        free_lane(l);
    }
}

belay_rc lane_book_open(struct lane_book **out, struct belay_error *err)
{
    struct lane_book *b = calloc(1, sizeof(*b));

    if (!b)
        return err_no_memory(err, "a book of lanes");
    pthread_mutex_init(&b->mutex, NULL);
    *out = b;
    return BELAY_OK;
}

void lane_book_close(struct lane_book *b)
{
    if (!b)
        return;
    free_lanes(b->lanes);
    pthread_mutex_destroy(&b->mutex);
    free(b);
}

/* --- reading --- */

struct reading {
    const struct bytes *lanes;
    size_t n;
    struct known_lane *found; /* what this run has read */
};

static struct known_lane *new_lane(struct bytes name)
{
    struct known_lane *l = calloc(1, sizeof(*l) + name.len);

    if (!l)
        return NULL;
    l->name_len = name.len;
    memcpy(l->name, name.ptr, name.len);
    return l;
}

static belay_rc add_route(struct txn *t, struct known_lane *l, const struct hit *hit)
{
    if (!hit->rows[0]) {
        belay_rc rc =
            txn_fail(t, BELAY_CORRUPT, "route", "lane %.*s: a route of it has no row",
                     (int)l->name_len, l->name);
        err_entity(txn_error(t), hit->member);
        return rc;
    }
    struct bytes requires = row_bytes(hit->rows[0], ROUTE_REQUIRES);
    struct route *r = malloc(sizeof(*r) + hit->member.len + requires.len);
    if (!r)
        return err_no_memory(txn_error(t), "a route");
    r->name_len = hit->member.len;
    r->requires_len = requires.len;
    memcpy(r->text, hit->member.ptr, hit->member.len);
    if (requires.len > 0)
        memcpy(r->text + hit->member.len, requires.ptr, requires.len);
    r->next = l->routes;
    l->routes = r;
    l->n_routes++;
    return BELAY_OK;
}

/* One page behind `after` (NULL: the first); *out_last: where the next begins, or its
 * member is empty. */
static belay_rc read_page(struct txn *t, struct known_lane *l, struct bytes roster,
                          const struct hits *hits, struct scan_cursor *out_last)
{
    *out_last = (struct scan_cursor){ .index = roster };
    for (size_t i = 0; i < hits->n; i++) {
        belay_rc rc = add_route(t, l, &hits->hit[i]);
        if (rc)
            return rc;
    }
    if (hits->n == PAGE) {
        out_last->rank = hits->hit[PAGE - 1].rank;
        out_last->member = hits->hit[PAGE - 1].member;
    }
    return BELAY_OK;
}

/* A lane with so many routes that the first page did not have them all. */
static belay_rc read_rest(struct txn *t, struct known_lane *l, struct scan scan,
                          struct scan_cursor last)
{
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && last.member.len > 0) {
        struct scan_cursor after = last;
        struct hits hits;
        scan.after = &after;
        rc = txn_scan(t, &scan, &hits);
        if (rc == BELAY_OK)
            rc = read_page(t, l, after.index, &hits, &last);
    }
    return rc;
}

static belay_rc read_lane(struct txn *t, struct reading *r, struct bytes name,
                          const struct scan *scan, const struct hits *first)
{
    struct known_lane *l = new_lane(name);
    struct scan_cursor last;

    if (!l)
        return err_no_memory(txn_error(t), "a lane");
    l->next = r->found;
    r->found = l;
    belay_rc rc = read_page(t, l, scan->indexes[0], first, &last);
    return rc ? rc : read_rest(t, l, *scan, last);
}

static belay_rc read_body(struct txn *t, void *arg)
{
    struct reading *r = arg;
    struct belay_arena *a = txn_arena(t);
    struct scan *scans = arena_zalloc(a, r->n, sizeof(*scans));
    struct hits *hits = arena_zalloc(a, r->n, sizeof(*hits));
    struct bytes *rosters = arena_zalloc(a, r->n, sizeof(*rosters));
    struct value *keys = arena_zalloc(a, r->n, sizeof(*keys));
    struct fetch *fetch = arena_zalloc(a, r->n, sizeof(*fetch));

    free_lanes(r->found);
    r->found = NULL;
    if (!scans || !hits || !rosters || !keys || !fetch)
        return err_no_memory(txn_error(t), "lanes");
    for (size_t i = 0; i < r->n; i++) {
        if (!lane_roster(r->lanes[i], a, &rosters[i]))
            return err_no_memory(txn_error(t), "lanes");
        keys[i] = value_text(r->lanes[i]);
        fetch[i] = (struct fetch){ &row_route, &keys[i] };
        scans[i] = (struct scan){ .indexes = &rosters[i],
                                  .n_indexes = 1,
                                  .max_rank = RANK_MAX,
                                  .limit = PAGE,
                                  .fetch = &fetch[i],
                                  .n_fetch = 1 };
    }
    belay_rc rc = txn_load(t, NULL, 0, NULL, scans, r->n, hits);
    for (size_t i = 0; i < r->n && rc == BELAY_OK; i++)
        rc = read_lane(t, r, r->lanes[i], &scans[i], &hits[i]);
    return rc;
}

/* --- the book, under its mutex --- */

static struct known_lane **find_lane(struct lane_book *b, struct bytes name)
{
    struct known_lane **at = &b->lanes;

    while (*at && !bytes_eq(lane_name(*at), name))
        at = &(*at)->next;
    return at;
}

/* How many routes those lanes have; false: not all are known. */
static bool count_routes(struct lane_book *b, const struct bytes *lanes, size_t n,
                         size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const struct known_lane *l = *find_lane(b, lanes[i]);
        if (!l)
            return false;
        *out += l->n_routes;
    }
    return true;
}

static void learn(struct lane_book *b, struct known_lane *found)
{
    if (b->n >= BOOK_LANES_MAX) {
        free_lanes(b->lanes);
        b->lanes = NULL;
        b->n = 0;
    }
    for (struct known_lane *next; found; found = next) {
        struct known_lane **at = find_lane(b, lane_name(found)), *old = *at;
        next = found->next;
        found->next = old ? old->next : NULL;
        b->n += old == NULL;
        *at = found;
        free_lane(old);
    }
}

/* --- a view --- */

struct entry {
    struct bytes member, index;
};

/* The order of a scan: every entry has rank 0. */
static int entry_cmp(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = bytes_cmp(x->member, y->member);

    return order != 0 ? order : bytes_cmp(x->index, y->index);
}

static uint64_t digest_bytes(uint64_t digest, struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        digest = (digest ^ b.ptr[i]) * 0x100000001b3U; /* FNV-1a */
    return (digest ^ 0x100) * 0x100000001b3U;
}

static uint64_t digest_entry(uint64_t digest, struct bytes index, struct bytes member)
{
    return digest_bytes(digest_bytes(digest, index), member);
}

#define DIGEST_BEGIN 0xcbf29ce484222325U

static bool add_lane(const struct known_lane *l, struct bytes has,
                     struct belay_arena *a, struct lane_view *v, struct entry *entries)
{
    struct bytes *roster = &v->rosters[v->n_rosters++];

    if (!lane_roster(lane_name(l), a, roster))
        return false;
    for (const struct route *r = l->routes; r; r = r->next) {
        struct bytes name = route_name(r);
        if (!arena_copy(a, name, &entries[v->n_routes].member))
            return false;
        entries[v->n_routes++].index = *roster;
        if (capability_fits(route_requires(r), has) &&
            !lane_index(lane_name(l), name, a, &v->ready[v->n_ready++]))
            return false;
    }
    return true;
}

/* A lane that is named twice is looked at once. */
static bool is_repeated(const struct bytes *lanes, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (bytes_eq(lanes[j], lanes[i]))
            return true;
    }
    return false;
}

static belay_rc make_view(struct lane_book *b, const struct bytes *lanes, size_t n,
                          size_t n_routes, struct bytes has, struct belay_arena *a,
                          struct lane_view *out, struct belay_error *err)
{
    struct lane_view v = { .digest = DIGEST_BEGIN };
    struct entry *entries = arena_zalloc(a, n_routes, sizeof(*entries));

    v.ready = arena_zalloc(a, n_routes, sizeof(*v.ready));
    v.rosters = arena_zalloc(a, n, sizeof(*v.rosters));
    bool made = entries && v.ready && v.rosters;
    for (size_t i = 0; i < n && made; i++)
        made = is_repeated(lanes, i) ||
               add_lane(*find_lane(b, lanes[i]), has, a, &v, entries);
    if (!made)
        return err_no_memory(err, "lanes");
    if (v.n_routes > 1)
        qsort(entries, v.n_routes, sizeof(*entries), entry_cmp);
    for (size_t i = 0; i < v.n_routes && i < ROUTES_MAX; i++)
        v.digest = digest_entry(v.digest, entries[i].index, entries[i].member);
    *out = v;
    return BELAY_OK;
}

static belay_rc read_lanes(struct space *sp, struct reading *r, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    belay_rc rc = txn_run(sp, read_body, r, &read_only, &arena, err);

    if (rc == BELAY_OK)
        return rc;
    free_lanes(r->found);
    r->found = NULL;
    return rc;
}

belay_rc lane_view(struct lane_book *b, struct space *sp, const struct lane_query *q,
                   bool anew, struct belay_arena *a, struct lane_view *out,
                   struct belay_error *err)
{
    const struct bytes *lanes = q->lanes, has = q->has;
    size_t n_lanes = q->n_lanes;
    struct reading r = { .lanes = lanes, .n = n_lanes };
    size_t n_routes = 0;
    belay_rc rc = BELAY_OK;

    pthread_mutex_lock(&b->mutex);
    bool known = !anew && count_routes(b, lanes, n_lanes, &n_routes);
    /* Nobody could tell from a scan of ROUTES_MAX that there are others. */
    if (!known || n_routes > ROUTES_MAX) {
        pthread_mutex_unlock(&b->mutex);
        rc = read_lanes(sp, &r, err);
        pthread_mutex_lock(&b->mutex);
        learn(b, r.found);
        if (rc == BELAY_OK)
            (void)count_routes(b, lanes, n_lanes, &n_routes);
    }
    if (rc == BELAY_OK)
        rc = make_view(b, lanes, n_lanes, n_routes, has, a, out, err);
    pthread_mutex_unlock(&b->mutex);
    return rc;
}

bool lane_view_holds(const struct lane_view *v, const struct hits *rosters)
{
    size_t n = v->n_routes < ROUTES_MAX ? v->n_routes : ROUTES_MAX;
    uint64_t digest = DIGEST_BEGIN;

    if (rosters->n != n)
        return false;
    for (size_t i = 0; i < rosters->n; i++)
        digest = digest_entry(digest, rosters->hit[i].index, rosters->hit[i].member);
    return digest == v->digest;
}
