/* Answers to questions for parts of rank indexes (read_rank.c). */
#include "store/drivers/postgres/read.h"

/* How many columns a fetched row has in an answer: its key is known. */
static int columns_of(const struct fetch *f)
{
    return 1 + f->type->n_columns - f->type->n_key;
}

/* The key of a row, for as long as the arena lives: the member does. */
static bool keep_key(const struct fetch *f, struct bytes member, struct belay_arena *a,
                     struct value key[SCHEMA_KEY_MAX])
{
    bool ok = true;

    if (!fetch_key(f, member, key))
        return true; /* then there is no row: pg_check_members */
    for (unsigned i = 0; i + 1U < f->type->n_key && ok; i++)
        ok = key[i].kind == VALUE_I64 || arena_copy(a, key[i].b, &key[i].b);
    return ok;
}

static bool take_hit(const struct scan *scan, const PGresult *r, int i, struct hit *hit,
                     struct belay_arena *a)
{
    int column = 4;

    hit->rank = pg_i64(r, i, 2);
    hit->rows = arena_zalloc(a, scan->n_fetch, sizeof(*hit->rows));
    if (!hit->rows || !pg_bytes(r, i, 1, a, &hit->index) ||
        !pg_bytes(r, i, 3, a, &hit->member))
        return false;
    for (size_t k = 0; k < scan->n_fetch; k++) {
        const struct fetch *f = &scan->fetch[k];
        struct value key[SCHEMA_KEY_MAX];
        if (!keep_key(f, hit->member, a, key) ||
            !pg_row(r, i, column, f->type, key, a, &hit->rows[k]))
            return false;
        column += columns_of(f);
    }
    return true;
}

/* In the order of the scan.  A list that the server has no reason to disturb is looked
 * through once. */
static void put_in_order(const struct scan *scan, struct hits *hits)
{
    for (size_t i = 1; i < hits->n; i++) {
        struct hit hit = hits->hit[i];
        size_t at = i;
        for (; at > 0; at--) {
            const struct hit *before = &hits->hit[at - 1];
            if (scan_cmp(scan, before->rank, before->member, before->index, hit.rank,
                         hit.member, hit.index) <= 0)
                break;
            hits->hit[at] = *before;
        }
        hits->hit[at] = hit;
    }
}

/* The first of the columns behind the rows. */
static int places_column(const struct scan *scan)
{
    int column = 4;

    for (size_t k = 0; k < scan->n_fetch; k++)
        column += columns_of(&scan->fetch[k]);
    return column;
}

/* Where the members lie that are locked from now on.  Without memory for that they are looked
 * for again. */
static void remember_picks(struct asking *q, const struct read *read, const PGresult *r,
                           int first, struct belay_arena *a)
{
    const struct hits *hits = &read->rank.out;
    struct pg_picks *picks =
        arena_alloc(a, sizeof(*picks) + hits->n * sizeof(*picks->pick));
    int column = places_column(read->rank.scan);

    if (!picks)
        return;
    *picks = (struct pg_picks){ .next = q->at->picks };
    for (size_t i = 0; i < hits->n; i++) {
        int line = first + (int)i;
        struct pg_pick *p = &picks->pick[picks->n];
        if (PQgetlength(r, line, column) != PG_TID_LEN)
            continue;
        *p = (struct pg_pick){
            hits->hit[i].index, hits->hit[i].member, hits->hit[i].rank, { 0 }
        };
        memcpy(p->tid, PQgetvalue(r, line, column), PG_TID_LEN);
        picks->n++;
    }
    q->at->picks = picks;
}

/* The same for the rows that they name, of fetch k. */
static void learn_rows(struct asking *q, const struct read *read, size_t k,
                       const PGresult *r, int first, int column)
{
    const struct hits *hits = &read->rank.out;
    struct pg_place *list = arena_zalloc(q->pipe.arena, hits->n, sizeof(*list));
    struct row_ref ref;

    for (size_t i = 0; list && i < hits->n; i++) {
        const struct row *row = hits->hit[i].rows[k];
        if (!row || PQgetlength(r, first + (int)i, column) != PG_TID_LEN ||
            fetch_ref(&ref, &read->rank.scan->fetch[k], hits->hit[i].member,
                      q->pipe.arena, NULL))
            continue;
        list[i] = pg_place_of_row(q->ns, &ref, row->ver);
        memcpy(list[i].tid, PQgetvalue(r, first + (int)i, column), PG_TID_LEN);
        list[i].known = true;
    }
    if (list)
        pg_places_learn(&q->s->places, list, hits->n);
}

static void remember_places(struct asking *q, const struct read *read,
                            const PGresult *r, int first, struct belay_arena *a)
{
    const struct scan *scan = read->rank.scan;
    int column = places_column(scan) + 1;

    remember_picks(q, read, r, first, a);
    for (size_t k = 0; k < scan->n_fetch && pg_plans(q->s); k++) {
        if (!((scan->hints >> k) & 1))
            learn_rows(q, read, k, r, first, column++);
    }
}

/* The lines of question `at`, from line *i on: those of its indexes, the first of which has
 * this ordinal. */
static bool take_scan(struct asking *q, const PGresult *r, size_t at, int64_t ordinal,
                      int *i)
{
    struct read *read = &q->reads[at];
    struct belay_arena *a = q->arenas[at];
    int64_t beyond = ordinal + (int64_t)read->rank.scan->n_indexes;
    int first = *i, end = first, n = PQntuples(r);

    while (end < n && pg_i64(r, end, 0) < beyond)
        end++;
    size_t n_hits = (size_t)(end - *i);
    read->rank.out =
        (struct hits){ .hit = arena_zalloc(a, n_hits, sizeof(struct hit)) };
    if (!read->rank.out.hit)
        return false;
    for (; *i < end; (*i)++) {
        if (!take_hit(read->rank.scan, r, *i, &read->rank.out.hit[read->rank.out.n++],
                      a))
            return false;
    }
    if (read->rank.hold && read->rank.scan->n_indexes == 1)
        remember_places(q, read, r, first, a);
    put_in_order(read->rank.scan, &read->rank.out);
    if (read->rank.out.n > read->rank.scan->limit) /* each index has given so many */
        read->rank.out.n = read->rank.scan->limit;
    return true;
}

bool pg_take_hits(struct asking *q, const struct asked *asked)
{
    int64_t ordinal = 1;
    bool ok = true;
    int line = 0;

    for (size_t i = 0; i < asked->n && ok; i++) {
        ok = take_scan(q, asked->call->result, asked->reads[i], ordinal, &line);
        ordinal += (int64_t)q->reads[asked->reads[i]].rank.scan->n_indexes;
    }
    if (ok && asked->pace)
        pg_pass_front(q, asked);
    return ok;
}

belay_rc pg_check_members(const struct read *read, struct belay_arena *a,
                          struct belay_error *err)
{
    const struct scan *scan = read->rank.scan;
    struct row_ref ref;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < read->rank.out.n; i++) {
        for (size_t k = 0; k < scan->n_fetch && rc == BELAY_OK; k++) {
            const struct row_type *type = scan->fetch[k].type;
            if (type->columns[type->n_key - 1].type == VALUE_I64)
                rc = fetch_ref(&ref, &scan->fetch[k], read->rank.out.hit[i].member, a,
                               err);
        }
    }
    return rc;
}
