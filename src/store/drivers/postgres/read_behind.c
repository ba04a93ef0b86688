/* Picks that begin behind the one before them (fronts.h).
 *
 * The order is kept but for one thing: what comes in near what was given just now (scan.near),
 * and before it, may have to wait until the next look from the beginning. */
#include "store/drivers/postgres/read.h"

/* What is to be taken before everything behind the front; what lies behind it; and what came in
 * before it and would have been taken in another order, if anybody had looked.  That is
 * looked at only when the rest is not enough, or at the next look from the beginning. */
enum { PART_BEFORE, PART_BEHIND, PART_LATE, PARTS };

/* The parts in turn, each from (lo, lo_member) on and before (hi, hi_member).  A part is
 * looked at, and its members locked, only as far as the limit has not been reached (L8).
 * $1 ns, $2 index, $3 lo, $4 lo_member, $5 limit, $6 hi, $7 hi_member. */
void pg_behind_source(const struct pg_store *s, struct buf *out)
{
    buf_append_str(out,
                   "SELECT r.* FROM unnest($3::int8[], $4::text[], $6::int8[],"
                   " $7::text[]) AS q(lo, lo_member, hi, hi_member) CROSS JOIN"
                   " LATERAL (SELECT x.idx, x.rank, x.member, x.ctid AS tid FROM ");
    pg_table(s, "rank", out);
    buf_append_str(out, " x WHERE ");
    pg_where_index(s, "x.", "$2::text", out);
    buf_append_str(out, " AND (x.rank, x.member) >= (q.lo, q.lo_member) AND"
                        " (x.rank, x.member) < (q.hi, q.hi_member) ORDER BY x.rank,"
                        " x.member LIMIT $5::int8 FOR UPDATE SKIP LOCKED) r"
                        " LIMIT $5::int8");
}

void pg_arg_behind(struct asking *q, struct asked *one, const struct scan *scan)
{
    struct pg_pipe *p = &q->pipe;
    const struct pg_front *from = &one->pace->from;
    int64_t before = from->rank - scan->near;
    uint8_t next[PG_FRONT_MEMBER + 1]; /* of the members behind it none is less */
    struct value lo[PARTS], lo_member[PARTS], hi[PARTS], hi_member[PARTS];

    memcpy(next, from->member, from->member_len);
    next[from->member_len] = 1;
    for (unsigned i = 0; i < PARTS; i++)
        lo_member[i] = hi_member[i] = value_text(bytes_str(""));
    lo[PART_BEFORE] = value_i64(scan->min_rank);
    hi[PART_BEFORE] = lo[PART_LATE] = value_i64(before);
    lo[PART_BEHIND] = hi[PART_LATE] = value_i64(from->rank);
    lo_member[PART_BEHIND] = hi_member[PART_LATE] =
        value_text(bytes_of(next, from->member_len + 1));
    hi[PART_BEHIND] = value_i64(scan->max_rank + 1);
    pg_arg_array(p, one->call, VALUE_I64, lo, PARTS);
    pg_arg_array(p, one->call, VALUE_TEXT, lo_member, PARTS);
    pg_arg_i64(p, one->call, (int64_t)scan->limit);
    pg_arg_array(p, one->call, VALUE_I64, hi, PARTS);
    pg_arg_array(p, one->call, VALUE_TEXT, hi_member, PARTS);
}

/* Whether it begins behind the one before it.  An attempt that has picked already has to be
 * shown what it has. */
void pg_find_front(struct asking *q, struct asked *one, const struct scan *scan)
{
    bool paced = scan->near > 0 && scan->n_indexes == 1 && !scan->after &&
                 !scan->descending && !q->at->picks;
    struct pace *p = paced ? arena_zalloc(q->pipe.arena, 1, sizeof(*p)) : NULL;

    one->pace = p; /* without memory it begins at the beginning */
    if (!p)
        return;
    p->asked_us = pg_mono_us();
    p->index = pg_front_of(q->ns, scan->indexes[0]);
    p->behind = pg_front_find(&q->s->fronts, p->index, p->asked_us, &p->from) &&
                p->from.rank - scan->near > scan->min_rank;
}

void pg_pass_front(struct asking *q, const struct asked *one)
{
    const struct read *read = &q->reads[one->reads[0]];
    const struct hits *hits = &read->rank.out;
    struct pg_given given = { .n = hits->n, .all = hits->n < read->rank.scan->limit };

    if (hits->n > 0) {
        given.rank = hits->hit[hits->n - 1].rank;
        given.member = hits->hit[hits->n - 1].member;
    }
    const struct pace *p = one->pace;
    pg_front_passed(&q->s->fronts, p->index, p->behind ? &p->from : NULL, &given,
                    p->asked_us);
}
