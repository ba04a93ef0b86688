/* Questions for parts of rank indexes, and the rows that their members name. */
#include <stdio.h>

#include "store/drivers/postgres/read.h"

/* The members of each index, at most `limit`, from the cursor on.
 * $1 ns, $2 indexes, $3 min, $4 max, $5 limit, $6 rank, $7 member, $8 index. */
static void rank_source(const struct pg_store *s, const struct scan *scan,
                        const char *more, const char *limit, const char *lock,
                        struct buf *out)
{
    const char *order = scan->descending ? "DESC" : "ASC";
    const char *cmp = scan->descending ? "<" : ">";
    bool one = scan->n_indexes == 1;

    if (!one)
        buf_append_str(out, "SELECT r.* FROM unnest($2::text[]) AS i(idx)"
                            " CROSS JOIN LATERAL (");
    buf_printf(out, "SELECT x.idx, x.rank, x.member%s FROM ", more);
    pg_table(s, "rank", out);
    buf_append_str(out, " x WHERE ");
    pg_where_index(s, "x.", one ? "$2::text" : "i.idx", out);
    buf_append_str(out, " AND x.rank >= $3::int8 AND x.rank <= $4::int8");
    if (scan->after)
        buf_printf(out,
                   " AND (x.rank, x.member) %s= ($6::int8, $7::text)"
                   " AND (x.rank, x.member, x.idx) %s ($6::int8, $7::text, $8::text)",
                   cmp, cmp);
    buf_printf(out, " ORDER BY x.rank %s, x.member %s LIMIT %s%s%s", order, order,
               limit, lock, one ? "" : ") r");
}

/* Members that are hidden from other holders: exactly those that are given (L8).  Of
 * one index they are locked where they are found.  Of several, more than enough are
 * looked at in each without a lock, and the first of all that nobody holds are locked, where
 * they lie and as they were seen: no index fits what is compared, so that there is no other
 * way to them. */
static void pick_source(const struct pg_store *s, const struct scan *scan, bool behind,
                        const char *order, struct buf *out)
{
    if (behind) {
        pg_behind_source(s, out);
        return;
    }
    if (scan->n_indexes == 1) {
        rank_source(s, scan, ", x.ctid AS tid", "$5::int8", " FOR UPDATE SKIP LOCKED",
                    out);
        return;
    }
    buf_append_str(out, "SELECT y.idx, y.rank, y.member FROM (");
    rank_source(s, scan, ", x.ctid AS tid", "4 * $5::int8 + 64", "", out);
    buf_append_str(out, ") c JOIN ");
    pg_table(s, "rank", out);
    buf_printf(out,
               " y ON y.ctid = c.tid AND y.ns IS NOT DISTINCT FROM $1 AND y.idx IS NOT"
               " DISTINCT FROM c.idx AND y.member IS NOT DISTINCT FROM c.member AND"
               " y.rank IS NOT DISTINCT FROM c.rank ORDER BY y.rank %s, y.member %s,"
               " y.idx %s LIMIT $5::int8 FOR UPDATE OF y SKIP LOCKED",
               order, order, order);
}

/* The members of a scan, at most as many as its limit says. */
static void members_source(const struct pg_store *s, const struct scan *scan, bool hold,
                           bool behind, struct buf *out)
{
    const char *order = scan->descending ? "DESC" : "ASC";
    bool several = scan->n_indexes > 1;

    if (hold) {
        pick_source(s, scan, behind, order, out);
        return;
    }
    buf_append_str(out, several ? "SELECT * FROM (" : "");
    rank_source(s, scan, "", "$5::int8", "", out);
    if (several)
        buf_printf(out, ") a ORDER BY rank %s, member %s, idx %s LIMIT $5::int8", order,
                   order, order);
}

/* A member as a number, or NULL when it is none: check_members says so. */
static const char member_i64[] =
    "CASE WHEN p.member ~ '^(0|-?[1-9][0-9]{0,18})$' AND p.member::numeric BETWEEN"
    " -9223372036854775808 AND 9223372036854775807 THEN p.member::int8 END";

/* The rows that members name: key = prefix..., member.  Each is found by its key, as in
 * pg_find_each: joined plainly, a planner with old statistics read all rows of a prefix at
 * once, and kept them.  The prefixes' parameters begin at *next; NULL: they are columns f0,
 * f1 ... of q. */
static void rank_fetches(const struct pg_store *s, const struct scan *scan,
                         unsigned *next, struct buf *out)
{
    unsigned column = 0;

    for (size_t i = 0; i < scan->n_fetch; i++) {
        const struct row_type *type = scan->fetch[i].type;
        unsigned last = type->n_key - 1U;

        buf_append_str(out, " LEFT JOIN LATERAL (SELECT x.ctid AS at, x.* FROM ");
        pg_table(s, type->name, out);
        buf_append_str(out, " x WHERE x.ns = $1");
        for (unsigned k = 0; k < last; k++) {
            buf_printf(out, " AND x.\"%s\" = ", type->columns[k].name);
            if (next)
                buf_printf(out, "$%u::%s", (*next)++,
                           pg_type_name(type->columns[k].type));
            else
                buf_printf(out, "q.f%u", column++);
        }
        buf_printf(out, " AND x.\"%s\" = %s LIMIT 1) t%zu ON true",
                   type->columns[last].name,
                   type->columns[last].type == VALUE_I64 ? member_i64 : "p.member", i);
    }
}

/* Which question, the member, the rows without their keys. */
static void rank_columns(const struct scan *scan, const char *begin, struct buf *text)
{
    buf_printf(text, "%s, p.idx, p.rank, p.member", begin);
    for (size_t i = 0; i < scan->n_fetch; i++) {
        const struct row_type *type = scan->fetch[i].type;
        buf_printf(text, ", t%zu.ver", i);
        for (unsigned k = type->n_key; k < type->n_columns; k++)
            buf_printf(text, ", t%zu.\"%s\"", i, type->columns[k].name);
    }
}

/* Where the member lies, and its rows that may be changed. */
static void place_columns(const struct scan *scan, struct buf *text)
{
    buf_append_str(text, ", p.tid");
    for (size_t i = 0; i < scan->n_fetch; i++) {
        if (!((scan->hints >> i) & 1))
            buf_printf(text, ", t%zu.at", i);
    }
}

/* What decides about the text of a scan; false: too much for a shape. */
static bool shape_of(const struct scan *scan, bool hold, bool behind,
                     struct pg_shape *out)
{
    *out = (struct pg_shape){
        .maker = "rank",
        .type = scan->n_fetch > 0 ? scan->fetch[0].type : NULL,
        .other = scan->n_fetch > 1 ? scan->fetch[1].type : NULL,
        .a = scan->hints,
        .flags = (scan->n_indexes == 1 ? 1U : 0) | (scan->after ? 2U : 0) |
                 (scan->descending ? 4U : 0) | (hold ? 8U : 0) | (behind ? 16U : 0),
    };
    return scan->n_fetch <= 2;
}

static const struct pg_sql *rank_sql(struct pg_store *s, const struct scan *scan,
                                     bool hold, bool behind)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    const char *order = scan->descending ? "DESC" : "ASC";
    unsigned next = scan->after ? 9 : behind ? 8 : 6;
    struct pg_shape shape;
    const struct pg_sql *known =
        shape_of(scan, hold, behind, &shape) ? pg_sql_known(s, &shape) : NULL;

    if (known)
        return known;
    bool one = scan->n_indexes == 1;
    rank_columns(scan, "SELECT 1::int8", &text);
    if (hold && one)
        place_columns(scan, &text);
    /* The limit counts once, whatever is joined to it (L8): on the left of all joins. */
    buf_append_str(&text, " FROM (");
    members_source(s, scan, hold, behind, &text);
    buf_append_str(&text, ") p");
    rank_fetches(s, scan, &next, &text);
    if (!one) /* one gives them in order; sorting costs a tenth of finding them */
        buf_printf(&text, " ORDER BY p.rank %s, p.member %s, p.idx %s", order, order,
                   order);
    return scan->n_fetch <= 2 ? pg_sql_made(s, &shape, &text) : pg_sql_of(s, &text);
}

static void ask_one(struct asking *q, struct asked *one)
{
    const struct read *read = &q->reads[one->reads[0]];
    const struct scan *scan = read->rank.scan;
    struct pg_pipe *p = &q->pipe;
    struct value *v = arena_zalloc(p->arena, scan->n_indexes, sizeof(*v));

    if (!v) {
        p->no_memory = true;
        return;
    }
    for (size_t i = 0; i < scan->n_indexes; i++)
        v[i] = value_text(scan->indexes[i]);
    if (read->rank.hold)
        pg_find_front(q, one, scan);
    bool behind = one->pace && one->pace->behind;
    one->call = pg_add(p, rank_sql(q->s, scan, read->rank.hold, behind),
                       8 + SCHEMA_KEY_MAX * (unsigned)scan->n_fetch);
    pg_arg_bytes(p, one->call, q->ns);
    if (scan->n_indexes == 1)
        pg_arg_bytes(p, one->call, scan->indexes[0]);
    else
        pg_arg_array(p, one->call, VALUE_TEXT, v, scan->n_indexes);
    if (behind) {
        pg_arg_behind(q, one, scan);
    } else {
        pg_arg_i64(p, one->call, scan->min_rank);
        pg_arg_i64(p, one->call, scan->max_rank);
        pg_arg_i64(p, one->call, (int64_t)scan->limit);
    }
    if (scan->after) {
        pg_arg_i64(p, one->call, scan->after->rank);
        pg_arg_bytes(p, one->call, scan->after->member);
        pg_arg_bytes(p, one->call, scan->after->index);
    }
    for (size_t i = 0; i < scan->n_fetch; i++) {
        for (unsigned k = 0; k + 1U < scan->fetch[i].type->n_key; k++)
            pg_arg_value(p, one->call, &scan->fetch[i].prefix[k]);
    }
}

/* --- several that are alike: a line an index --- */

/* Of several indexes only where few members may come: they are put in order here. */
#define FEW_MEMBERS 64

static bool is_simple(const struct read *read)
{
    const struct scan *scan = read->rank.scan;

    if (read->kind != READ_RANK || read->rank.hold || scan->after)
        return false;
    return scan->n_indexes == 1 ||
           (scan->n_fetch == 0 && scan->n_indexes <= FEW_MEMBERS &&
            scan->limit <= FEW_MEMBERS / scan->n_indexes);
}

static bool are_alike(const struct scan *a, const struct scan *b)
{
    bool alike = a->descending == b->descending && a->n_fetch == b->n_fetch;

    for (size_t i = 0; i < a->n_fetch && alike; i++)
        alike = a->fetch[i].type == b->fetch[i].type;
    return alike;
}

/* $1 ns, $2 indexes, $3 min, $4 max, $5 limits, then prefixes by the column: of scans with
 * fetches each has one index. */
static const struct pg_sql *alike_sql(struct pg_store *s, const struct scan *scan)
{
    CLEANUP(buf_release) struct buf text = { .ptr = NULL };
    CLEANUP(buf_release) struct buf names = { .ptr = NULL };
    const char *order = scan->descending ? "DESC" : "ASC";
    unsigned column = 0;

    rank_columns(scan, "SELECT q.i", &text);
    buf_append_str(&text,
                   " FROM unnest($2::text[], $3::int8[], $4::int8[], $5::int8[]");
    for (size_t i = 0; i < scan->n_fetch; i++) {
        const struct row_type *type = scan->fetch[i].type;
        for (unsigned k = 0; k + 1U < type->n_key; k++, column++) {
            buf_printf(&text, ", $%u::%s[]", 6 + column,
                       pg_type_name(type->columns[k].type));
            buf_printf(&names, ", f%u", column);
        }
    }
    buf_append_str(&text, ") WITH ORDINALITY AS q(idx, lo, hi, most");
    buf_append(&text, buf_view(&names));
    buf_append_str(&text,
                   ", i) CROSS JOIN LATERAL (SELECT x.idx, x.rank, x.member FROM ");
    pg_table(s, "rank", &text);
    buf_append_str(&text, " x WHERE ");
    pg_where_index(s, "x.", "q.idx", &text);
    buf_printf(&text,
               " AND x.rank >= q.lo AND x.rank <= q.hi ORDER BY x.rank %s, x.member %s"
               " LIMIT q.most) p",
               order, order);
    rank_fetches(s, scan, NULL, &text);
    buf_printf(&text, " ORDER BY q.i, p.rank %s, p.member %s", order, order);
    return names.failed ? NULL : pg_sql_of(s, &text);
}

/* The prefixes of one column, of all scans of the group. */
static void arg_prefixes(struct asking *q, const struct asked *group, struct value *v)
{
    const struct scan *scan = q->reads[group->reads[0]].rank.scan;

    for (size_t f = 0; f < scan->n_fetch; f++) {
        const struct row_type *type = scan->fetch[f].type;
        for (unsigned k = 0; k + 1U < type->n_key; k++) {
            for (size_t i = 0; i < group->n; i++)
                v[i] = q->reads[group->reads[i]].rank.scan->fetch[f].prefix[k];
            pg_arg_array(&q->pipe, group->call, type->columns[k].type, v, group->n);
        }
    }
}

static void ask_alike(struct asking *q, struct asked *group)
{
    const struct scan *like = q->reads[group->reads[0]].rank.scan;
    struct pg_pipe *p = &q->pipe;
    size_t n = 0, line = 0;

    for (size_t i = 0; i < group->n; i++)
        n += q->reads[group->reads[i]].rank.scan->n_indexes;
    struct value *v = arena_zalloc(p->arena, 4 * n, sizeof(*v));
    if (!v) {
        p->no_memory = true;
        return;
    }
    for (size_t i = 0; i < group->n; i++) {
        const struct scan *scan = q->reads[group->reads[i]].rank.scan;
        for (size_t k = 0; k < scan->n_indexes; k++, line++) {
            v[line] = value_text(scan->indexes[k]);
            v[n + line] = value_i64(scan->min_rank);
            v[2 * n + line] = value_i64(scan->max_rank);
            v[3 * n + line] = value_i64((int64_t)scan->limit);
        }
    }
    group->call =
        pg_add(p, alike_sql(q->s, like), 8 + SCHEMA_KEY_MAX * (unsigned)like->n_fetch);
    pg_arg_bytes(p, group->call, q->ns);
    pg_arg_array(p, group->call, VALUE_TEXT, v, n);
    for (unsigned i = 1; i < 4; i++)
        pg_arg_array(p, group->call, VALUE_I64, v + i * n, n);
    arg_prefixes(q, group, v);
}

void pg_ask_ranks(struct asking *q, size_t first)
{
    struct asked *group = &q->asked[q->n_asked++];

    group->reads = arena_zalloc(q->pipe.arena, q->n_reads - first, sizeof(size_t));
    if (!group->reads) {
        q->pipe.no_memory = true;
        return;
    }
    group->reads[group->n++] = first;
    q->done[first] = true;
    for (size_t i = first + 1; i < q->n_reads && is_simple(&q->reads[first]); i++) {
        if (q->done[i] || !is_simple(&q->reads[i]) ||
            !are_alike(q->reads[first].rank.scan, q->reads[i].rank.scan))
            continue;
        q->done[i] = true;
        group->reads[group->n++] = i;
    }
    if (group->n == 1)
        ask_one(q, group);
    else
        ask_alike(q, group);
}
